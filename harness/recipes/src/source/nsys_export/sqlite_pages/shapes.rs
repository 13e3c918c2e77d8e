//! The headers that records of one table have in common. Most rows have one of a few, so that where the wanted fields lie
//! is found out once for each header, and not for each row.

use super::record::{Layout, Spot};

/// Headers are told apart by this many bytes.
const BYTES: usize = 32;
const WORDS: usize = BYTES / 8;
const SLOTS: usize = 256;
/// More shapes than this are forgotten when the next page begins.
const MANY: usize = 1024;

pub(super) struct Shapes {
    /// Which bytes of a record belong to the header, as far as it matters.
    mask: [u64; WORDS],
    known: Vec<Known>,
    /// The spots of all shapes, one shape after the other.
    pub spots: Vec<Spot>,
    /// Where the shape of a header may be found among those that are known.
    slots: [u32; SLOTS],
}

struct Known {
    key: [u64; WORDS],
    needed: usize,
}

/// One record of a page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shaped {
    /// Where it begins on its page.
    pub begin: u32,
    /// Where the spots of its shape begin.
    pub spots: u32,
}

impl Shapes {
    /// `None` where the wanted fields lie too far behind.
    pub fn new(layout: &Layout) -> Option<Shapes> {
        // The length of the header stands before the types.
        let used = layout.types() + 1;
        if used > BYTES {
            return None;
        }
        let mut at = 0..BYTES;
        let mask = [(); WORDS].map(|()| {
            let bytes = [(); 8].map(|()| if at.next().is_some_and(|at| at < used) { 0xff } else { 0 });
            u64::from_le_bytes(bytes)
        });
        Some(Shapes { mask, known: Vec::new(), spots: Vec::new(), slots: [0; SLOTS] })
    }

    /// What was found for the pages before is not asked for any more.
    pub fn begin_page(&mut self) {
        if self.known.len() > MANY {
            self.known.clear();
            self.spots.clear();
        }
    }

    /// The shape of a record, and how much of it the header and the wanted fields take up. `bytes` go on behind the record
    /// to the end of its page. `None` for one whose header is not of types of one byte, or not sound.
    #[inline(always)]
    pub fn of(&mut self, layout: &Layout, bytes: &[u8], begin: u32) -> Option<(Shaped, usize)> {
        let first = match bytes.first_chunk::<BYTES>() {
            Some(first) => *first,
            None => padded(bytes),
        };
        let mut key = self.mask;
        let mut mixed = 0u64;
        for (word, bytes) in key.iter_mut().zip(first.as_chunks::<8>().0) {
            *word &= u64::from_le_bytes(*bytes);
            mixed = (mixed.rotate_left(29) ^ *word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        let slot = (mixed >> 56) as usize;
        let at = self.slots[slot % SLOTS];
        if let Some(known) = self.known.get(at as usize)
            && known.key == key
        {
            let spots = at * layout.fields() as u32;
            return Some((Shaped { begin, spots }, known.needed));
        }
        self.another(layout, bytes, key, slot).map(|(spots, needed)| (Shaped { begin, spots }, needed))
    }

    #[inline(never)]
    fn another(
        &mut self,
        layout: &Layout,
        bytes: &[u8],
        key: [u64; WORDS],
        slot: usize,
    ) -> Option<(u32, usize)> {
        let (length, types) = bytes.split_first()?;
        let types = types.get(..layout.types())?;
        let short =
            *length < 0x80 && usize::from(*length) > types.len() && types.iter().all(|byte| *byte < 0x80);
        if !short {
            return None;
        }
        let at = self.spots.len();
        let Ok(needed) = layout.find(bytes, &mut self.spots) else {
            self.spots.truncate(at);
            return None;
        };
        self.slots[slot % SLOTS] = self.known.len() as u32;
        self.known.push(Known { key, needed });
        Some((at as u32, needed))
    }
}

#[inline(never)]
fn padded(bytes: &[u8]) -> [u8; BYTES] {
    let mut all = [0; BYTES];
    all.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    all
}
