//! One record of a table: a header of types, then the values, found without copying any of them. Which record lies where
//! on a page is not told here.

/// A value as it is stored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Cell<'a> {
    Null,
    Integer(i64),
    Real(f64),
    Text(&'a [u8]),
    Blob(&'a [u8]),
}

impl Cell<'_> {
    pub fn kind(&self) -> &'static str {
        match self {
            Cell::Null => "Null",
            Cell::Integer(_) => "Integer",
            Cell::Real(_) => "Real",
            Cell::Text(_) => "Text",
            Cell::Blob(_) => "Blob",
        }
    }
}

/// A number of four bytes; zero where there are not four.
pub(super) fn big_endian(bytes: &[u8]) -> u32 {
    bytes.try_into().map_or(0, u32::from_be_bytes)
}

/// A number of one to nine bytes, and how many they are; `None` where it is cut off.
#[inline(always)]
pub(super) fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    match bytes.first() {
        Some(byte) if *byte < 0x80 => Some((u64::from(*byte), 1)),
        _ => long_varint(bytes),
    }
}

fn long_varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut number = 0u64;
    for (at, byte) in bytes.iter().take(9).enumerate() {
        if at == 8 {
            return Some((number << 8 | u64::from(*byte), 9));
        }
        number = number << 7 | u64::from(byte & 0x7f);
        if *byte < 0x80 {
            return Some((number, at + 1));
        }
    }
    None
}

/// Where one field lies in its record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spot {
    serial: u64,
    start: usize,
    end: usize,
}

/// Where the wanted fields lie, kept from one row to the next: in neighbouring rows the headers are mostly equal.
#[derive(Default)]
pub(super) struct Layout {
    /// The header of the last row, as far as it was looked at.
    header: Vec<u8>,
    pub spots: Vec<Spot>,
    /// How much of the record these fields, and the header, take up.
    pub needed: usize,
}

impl Layout {
    /// Looks the header over. `fields` ascend; a record that ends before one of them has none in it.
    #[inline(always)]
    pub fn find(&mut self, record: &[u8], fields: &[usize]) -> Result<(), &'static str> {
        match record.get(..self.header.len()) {
            Some(same) if same == self.header && !same.is_empty() => Ok(()),
            _ => self.find_anew(record, fields),
        }
    }

    fn find_anew(&mut self, record: &[u8], fields: &[usize]) -> Result<(), &'static str> {
        const CUT: &str = "the header of its record is cut off";
        self.header.clear();
        self.spots.clear();
        let (length, mut at) = varint(record).ok_or(CUT)?;
        let length = usize::try_from(length).map_err(|_| CUT)?;
        let header = record.get(..length).filter(|header| header.len() >= at).ok_or(CUT)?;
        let mut value = length;
        let mut next = 0;
        for field in fields {
            while next <= *field && at < length {
                let (serial, bytes) = varint(header.get(at..).unwrap_or_default()).ok_or(CUT)?;
                let size = size(serial).ok_or("its record has a type that none has")?;
                let end = value.checked_add(size).ok_or("its record is longer than any")?;
                if next == *field {
                    self.spots.push(Spot { serial, start: value, end });
                }
                (at, value, next) = (at + bytes, end, next + 1);
            }
            if next <= *field {
                self.spots.push(Spot { serial: 0, start: length, end: length });
            }
        }
        self.needed = value;
        // Only a header that was sound is taken for that of the next row.
        self.header.extend_from_slice(header.get(..at).unwrap_or_default());
        Ok(())
    }
}

fn size(serial: u64) -> Option<usize> {
    match serial {
        0..=4 => Some(serial as usize),
        5 => Some(6),
        6 | 7 => Some(8),
        8 | 9 => Some(0),
        10 | 11 => None,
        _ => usize::try_from((serial - 12) / 2).ok(),
    }
}

impl Spot {
    /// A whole number, where there is one. `record` may go on behind the record's end.
    #[inline(always)]
    pub fn integer(&self, record: &[u8]) -> Option<i64> {
        match self.serial {
            1..=6 => {
                let bits = 64 - 8 * (self.end - self.start) as u32;
                // One read of eight bytes, whatever the width; only at the end of a page there are not as many.
                if let Some(bytes) = record.get(self.start..).and_then(|rest| rest.first_chunk::<8>()) {
                    return Some(i64::from_be_bytes(*bytes) >> bits);
                }
                let bytes = record.get(self.start..self.end)?;
                let number = bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
                Some((number << bits) as i64 >> bits)
            }
            8 => Some(0),
            9 => Some(1),
            _ => None,
        }
    }

    /// `None` where the record ends before its value.
    pub fn cell<'a>(&self, record: &'a [u8]) -> Option<Cell<'a>> {
        let bytes = record.get(self.start..self.end)?;
        Some(match self.serial {
            0 => Cell::Null,
            7 => match f64::from_be_bytes(bytes.try_into().ok()?) {
                // The engine too has no value for what is not a number.
                number if number.is_nan() => Cell::Null,
                number => Cell::Real(number),
            },
            1..=9 => Cell::Integer(self.integer(record)?),
            serial if serial % 2 == 0 => Cell::Blob(bytes),
            _ => Cell::Text(bytes),
        })
    }
}
