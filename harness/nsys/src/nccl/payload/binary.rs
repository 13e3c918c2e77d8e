//! Binary payloads: a head of four numbers, then the fields, then further payloads. Tools that pass exports on write
//! such bytes as hexadecimal digits, which are read too.

use super::layouts::{FieldPlace, Layout, Layouts};
use super::{Payload, Refusal, Value};
use std::borrow::Cow;

/// Domain, layout, size of the payload, and where it begins, or where it ends.
const HEAD: usize = 32;

pub(super) fn read(bytes: &[u8], function: &str, layouts: &Layouts, domain: i64) -> Result<Payload, Refusal> {
    match read_raw(bytes, function, layouts, domain) {
        Ok(payload) => Ok(payload),
        Err(why) => match decode_hex(bytes) {
            Some(bytes) => read_raw(&bytes, function, layouts, domain),
            None => Err(why),
        },
    }
}

fn read_raw(bytes: &[u8], function: &str, layouts: &Layouts, domain: i64) -> Result<Payload, Refusal> {
    let mut payload = Payload::default();
    let mut rest = bytes;
    while !rest.is_empty() {
        let (block, behind) = Block::split(rest, !std::ptr::eq(rest, bytes))?;
        let layout = layouts.layout(domain, block.layout, function, block.fields.len())?;
        payload = payload.or(take(&layout, block.fields, layouts)?);
        rest = behind;
    }
    Ok(payload)
}

/// One payload.
struct Block<'a> {
    layout: u64,
    fields: &'a [u8],
}

impl Block<'_> {
    /// `further` where another one stands before it: what is too little for a head is then too much behind that one.
    fn split(bytes: &[u8], further: bool) -> Result<(Block<'_>, &[u8]), Refusal> {
        let short = if further { Refusal::Long } else { Refusal::Short };
        let word = |at: usize| -> Result<u64, Refusal> {
            let word = bytes.get(at * 8..at * 8 + 8).and_then(|word| word.try_into().ok());
            word.map(u64::from_le_bytes).ok_or(short)
        };
        let (layout, size, last) = (word(1)?, word(2)?, word(3)?);
        // Descriptions differ on whether the last word says where the payload begins, or how long all of it is.
        let total = size.checked_add(HEAD as u64).ok_or(Refusal::Short)?;
        if last != HEAD as u64 && last != total {
            return Err(if further { Refusal::Long } else { Refusal::Misaligned });
        }
        let size = usize::try_from(size).map_err(|_| Refusal::Short)?;
        let (fields, behind) =
            bytes.get(HEAD..).and_then(|rest| rest.split_at_checked(size)).ok_or(Refusal::Short)?;
        Ok((Block { layout, fields }, behind))
    }
}

fn take(layout: &Layout, fields: &[u8], layouts: &Layouts) -> Result<Payload, Refusal> {
    let mut payload = Payload::default();
    for FieldPlace { field, offset, width, enumeration } in &layout.places {
        if offset % width != 0 {
            return Err(Refusal::Misaligned);
        }
        let bytes = fields.get(*offset..offset + width).ok_or(Refusal::NotOfItsSize)?;
        let number = match bytes {
            [a, b, c, d] => i128::from(i32::from_le_bytes([*a, *b, *c, *d])),
            bytes => {
                let bytes = bytes.try_into().map_err(|_| Refusal::NotOfItsSize)?;
                i128::from(u64::from_le_bytes(bytes))
            }
        };
        let word = enumeration.and_then(|enumeration| layouts.word(enumeration, number));
        let value = match word {
            Some(word) => Value::Word(Cow::Borrowed(word)),
            None => Value::Number(number),
        };
        payload.put(*field, value)?;
    }
    Ok(payload)
}

/// `00ff...`, `0x00ff...`, `\x00\xFF...` with letters that can be printed as they are; `None` for anything else.
fn decode_hex(bytes: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(bytes).ok()?;
    if text.contains("\\x") {
        let mut all = Vec::new();
        let mut rest = text.as_bytes();
        while let [first, behind @ ..] = rest {
            rest = match (first, behind) {
                (b'\\', [b'x', high, low, behind @ ..]) => {
                    all.push(digit(*high)? << 4 | digit(*low)?);
                    behind
                }
                (letter, behind) => {
                    all.push(*letter);
                    behind
                }
            };
        }
        return Some(all);
    }
    let digits = text.strip_prefix("0x").unwrap_or(text).as_bytes();
    let (pairs, []) = digits.as_chunks::<2>() else { return None };
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

fn digit(letter: u8) -> Option<u8> {
    char::from(letter).to_digit(16).map(|digit| digit as u8)
}
