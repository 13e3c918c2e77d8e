//! One record of a table: a header of types, then the values, located without copying them.

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
    pub(super) fn kind(&self) -> &'static str {
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

/// How many bytes the number has, where it is not needed itself.
#[inline(always)]
pub(super) fn varint_length(bytes: &[u8]) -> Option<usize> {
    // The last byte is the first of those that have no highest bit.
    let eight =
        bytes.first_chunk::<8>().map_or(0, |bytes| !u64::from_le_bytes(*bytes) & 0x8080_8080_8080_8080);
    match eight {
        0 => varint(bytes).map(|(_, length)| length),
        ends => Some(ends.trailing_zeros() as usize / 8 + 1),
    }
}

#[inline(never)]
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
    start: u32,
    end: u32,
    /// The type of the value; blobs and texts of all lengths are one type each.
    serial: u8,
    /// The rest of eight bytes beside a number of this width.
    bits: u8,
}

const BLOB: u8 = 12;
const TEXT: u8 = 13;

/// Which fields of a record are wanted.
pub(super) struct Layout {
    /// Their places in a record, ascending.
    fields: Vec<usize>,
}

impl Layout {
    pub(super) fn new(fields: Vec<usize>) -> Layout {
        Layout { fields }
    }

    /// How many fields there are.
    pub(super) fn fields(&self) -> usize {
        self.fields.len()
    }

    /// How many types stand in a header up to that of the last of them.
    pub(super) fn types(&self) -> usize {
        self.fields.last().map_or(0, |last| last + 1)
    }

    /// Looks the header over, puts where each field lies behind the other spots, and gives how much of the record they
    /// and the header take up. A record that ends before a field has none in it.
    pub(super) fn find(&self, record: &[u8], spots: &mut Vec<Spot>) -> Result<usize, &'static str> {
        const CUT: &str = "record header is truncated";
        let (length, mut at) = varint(record).ok_or(CUT)?;
        let length = usize::try_from(length).map_err(|_| CUT)?;
        let header = record.get(..length).filter(|header| header.len() >= at).ok_or(CUT)?;
        let mut value = u32::try_from(length).map_err(|_| CUT)?;
        let mut next = 0;
        for field in &self.fields {
            let mut spot = Spot { start: value, end: value, serial: 0, bits: 0 };
            while next <= *field && at < length {
                let (serial, bytes) = varint(header.get(at..).unwrap_or_default()).ok_or(CUT)?;
                let size = size(serial).ok_or("record has an invalid type")?;
                let end = u32::try_from(size).ok().and_then(|size| value.checked_add(size));
                let end = end.ok_or("record is longer than 4 GiB")?;
                if next == *field {
                    let kind = if serial < 12 { serial as u8 } else { BLOB | (serial & 1) as u8 };
                    let bits = if kind < 7 { 64 - 8 * size as u8 } else { 0 };
                    spot = Spot { start: value, end, serial: kind, bits: bits & 63 };
                }
                (at, value, next) = (at + bytes, end, next + 1);
            }
            spots.push(spot);
        }
        Ok(value as usize)
    }
}

fn size(serial: u64) -> Option<u64> {
    match serial {
        0..=4 => Some(serial),
        5 => Some(6),
        6 | 7 => Some(8),
        8 | 9 => Some(0),
        10 | 11 => None,
        _ => Some((serial - 12) / 2),
    }
}

impl Spot {
    /// A whole number, as far as one can be had at once: eight bytes are read whatever its width. `None` where it is
    /// none, or where there are not as many bytes from its begin to the end of what it lies in.
    #[inline(always)]
    pub(super) fn integer(&self, bytes: &[u8], begin: u32) -> Option<i64> {
        match self.serial {
            1..=6 => {
                let eight = bytes.get((begin + self.start) as usize..)?.first_chunk::<8>()?;
                Some(i64::from_be_bytes(*eight) >> (self.bits & 63))
            }
            8 => Some(0),
            9 => Some(1),
            _ => None,
        }
    }

    /// `None` where the record ends before it.
    pub(super) fn cell<'a>(&self, record: &'a [u8]) -> Option<Cell<'a>> {
        let value = record.get(self.start as usize..self.end as usize)?;
        Some(match self.serial {
            0 => Cell::Null,
            7 => match f64::from_be_bytes(value.try_into().ok()?) {
                // The engine too has no value for what is not a number.
                number if number.is_nan() => Cell::Null,
                number => Cell::Real(number),
            },
            8 => Cell::Integer(0),
            9 => Cell::Integer(1),
            BLOB => Cell::Blob(value),
            TEXT => Cell::Text(value),
            _ => {
                let number = value.iter().fold(0, |number, byte| number << 8 | i64::from(*byte));
                Cell::Integer(number << self.bits >> self.bits)
            }
        })
    }
}
