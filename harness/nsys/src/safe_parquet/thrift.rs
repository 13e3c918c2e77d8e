//! Walks Thrift's compact protocol, in which Parquet writes its metadata, without allocating and never beyond the
//! bytes that are there.

/// So many elements of any list.
const ELEMENTS: u64 = 1 << 20;

const DEEPEST: usize = 32;

/// The most elements that a list in a field of the message itself may have, where that is fewer than of any list.
pub(super) type Most<'a> = &'a dyn Fn(i64) -> Option<u64>;

/// Gets each whole number: the field of the message in which its struct stands (0: the message itself), its field,
/// itself.
pub(super) type Note<'a> = &'a mut dyn FnMut(i64, i64, i64);

pub(super) struct Walk<'a> {
    rest: &'a [u8],
}

impl<'a> Walk<'a> {
    pub(super) fn over(bytes: &'a [u8]) -> Walk<'a> {
        Walk { rest: bytes }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// One message; `None` where it is damaged or claims more than there is.
    pub(super) fn message(&mut self, most: Most<'_>, note: Note<'_>) -> Option<()> {
        self.fields(0, 0, most, note)
    }

    pub(super) fn skip(&mut self, count: u64) -> Option<()> {
        self.rest = self.rest.get(usize::try_from(count).ok()?..)?;
        Some(())
    }

    fn fields(&mut self, depth: usize, within: i64, most: Most<'_>, note: Note<'_>) -> Option<()> {
        let mut id = 0_i64;
        loop {
            let head = self.byte()?;
            let kind = head & 0x0f;
            if kind == 0 {
                return Some(());
            }
            id = match i64::from(head >> 4) {
                0 => self.signed()?,
                more => id.checked_add(more)?,
            };
            match kind {
                // The kind is the value.
                1 | 2 => {}
                4..=6 => {
                    let number = self.signed()?;
                    if depth < 2 {
                        note(within, id, number);
                    }
                }
                12 if depth < DEEPEST => {
                    self.fields(depth + 1, if depth == 0 { id } else { within }, most, note)?;
                }
                kind => {
                    let most = if depth == 0 { most(id) } else { None };
                    self.value(kind, depth, most.unwrap_or(ELEMENTS))?;
                }
            }
        }
    }

    fn value(&mut self, kind: u8, depth: usize, most: u64) -> Option<()> {
        match kind {
            1..=3 => self.skip(1),
            4..=6 => self.number().map(|_| ()),
            7 => self.skip(8),
            8 => {
                let length = self.number()?;
                self.skip(length)
            }
            9 | 10 => {
                let head = self.byte()?;
                let count = if head >> 4 == 15 { self.number()? } else { u64::from(head >> 4) };
                // Each takes a byte at least.
                if depth >= DEEPEST || count > most.min(self.rest.len() as u64) {
                    return None;
                }
                (0..count).try_for_each(|_| self.value(head & 0x0f, depth + 1, ELEMENTS))
            }
            12 if depth < DEEPEST => self.fields(depth + 1, 0, &|_| None, &mut |_, _, _| {}),
            _ => None,
        }
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn signed(&mut self) -> Option<i64> {
        let zigzag = self.number()?;
        Some((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64))
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}
