//! A known value as lists and dumps of its bytes show it: `0x73, 0xc3`, `[115, 195]`, and the rows of `xxd`, `hexdump -C`
//! and `od -c`, with the letters that these put beside them.

use super::escapes;
use super::labels::label;

/// One byte of a value is written in no more bytes than these.
const MOST_A_BYTE: usize = 12;
/// A row's letters are no more than these.
const LONGEST_COLUMN: usize = 96;
/// What may part two bytes of a list.
const MOST_PARTED: usize = 4;

/// How a byte is written: the length of what stands for it at the beginning of a text.
type Unit = fn(u8, &[u8]) -> Option<usize>;

/// The two bytes with which a value may begin in these forms, by its first one.
pub(super) fn begins(first: u8) -> impl Iterator<Item = [u8; 2]> {
    let mut forms = vec![format!("{first:02x}"), format!("{first:02X}"), format!("{first:03o}")];
    forms.extend([format!("{first},"), format!("{first} ")]);
    forms.into_iter().filter_map(|form| form.as_bytes().first_chunk().copied())
}

/// How far a value goes that begins here in one of these forms.
pub(super) fn length(value: &[u8], rest: &[u8]) -> Option<usize> {
    // Four columns began before the letter in them.
    let units: [(Unit, Unit); 3] = [(hex, hex), (decimal, decimal), (letter, cell)];
    units.into_iter().find_map(|(first, unit)| list(value, rest, first, unit))
}

fn list(value: &[u8], rest: &[u8], begins: Unit, unit: Unit) -> Option<usize> {
    let (first, others) = value.split_first()?;
    let mut at = begins(*first, rest)?;
    for byte in others {
        let here = rest.get(at..)?;
        let one = unit(*byte, here).or_else(|| {
            let row = row(here);
            (row > 0).then(|| unit(*byte, &here[row..])).flatten().map(|length| row + length)
        })?;
        at += one;
        if at > value.len() * MOST_A_BYTE {
            return None;
        }
    }
    Some(at + column(&rest[at..]))
}

fn count(rest: &[u8], class: fn(u8) -> bool, most: usize) -> usize {
    rest.iter().take(most).take_while(|byte| class(**byte)).count()
}

/// Two digits of sixteen, also behind `0x`.
fn hex(byte: u8, rest: &[u8]) -> Option<usize> {
    let parted = count(rest, |byte| b" ,:-\t".contains(&byte), MOST_PARTED);
    let is_marked = matches!(rest.get(parted..parted + 2), Some(b"0x" | b"0X"));
    let at = parted + if is_marked { 2 } else { 0 };
    let digit = |at: usize| char::from(*rest.get(at)?).to_digit(16);
    let (high, low) = (digit(at)?, digit(at + 1));
    match low {
        Some(low) if high * 16 + low == u32::from(byte) => Some(at + 2),
        None if is_marked && high == u32::from(byte) => Some(at + 1),
        _ => None,
    }
}

fn decimal(byte: u8, rest: &[u8]) -> Option<usize> {
    let parted = count(rest, |byte| b" ,\t".contains(&byte), MOST_PARTED);
    let digits = count(&rest[parted..], |byte| byte.is_ascii_digit(), 4);
    let text = std::str::from_utf8(&rest[parted..parted + digits]).ok()?;
    (text.parse() == Ok(byte)).then_some(parted + digits)
}

/// Four columns of `od -c`: a letter, or three digits of eight.
fn cell(byte: u8, rest: &[u8]) -> Option<usize> {
    let blanks = count(rest, |byte| byte == b' ', 3);
    let narrow = letter(byte, rest.get(blanks..)?)?;
    (blanks == 3 || blanks + narrow == 4).then_some(blanks + narrow)
}

fn letter(byte: u8, rest: &[u8]) -> Option<usize> {
    if !(b' '..=b'~').contains(&byte) {
        let octal = format!("{byte:03o}");
        return rest.starts_with(octal.as_bytes()).then_some(octal.len());
    }
    // JSON puts a backslash before some.
    let slashes = if byte == b'\\' { 0 } else { count(rest, |byte| byte == b'\\', 4) };
    (rest.get(slashes) == Some(&byte)).then_some(slashes + 1)
}

/// The length of what stands between the last byte of a row and the first of the next: letters, the end of the line, what a
/// launcher puts before the next, and its place in what is dumped.
fn row(rest: &[u8]) -> usize {
    if !matches!(rest.first(), Some(b' ' | b',' | b'\n' | b'\r' | b'\\')) {
        return 0;
    }
    let length = rest.len().min(LONGEST_COLUMN);
    let Some(end) = (0..length).find(|at| escapes::line_break(&rest[*at..]) > 0) else { return 0 };
    let mut at = end + escapes::line_break(&rest[end..]);
    at += label(&rest[at..]);
    let place = count(&rest[at..], |byte| byte.is_ascii_hexdigit(), 17);
    let is_place = (6..17).contains(&place) && matches!(rest.get(at + place), Some(b':' | b' '));
    at + if is_place { place } else { 0 }
}

/// The length of the rest of a row, with its letters; 0 where it has none.
fn column(rest: &[u8]) -> usize {
    let bytes = count(rest, |byte| byte == b' ' || byte.is_ascii_hexdigit(), LONGEST_COLUMN);
    if !rest[..bytes].windows(2).any(|two| two == b"  ") {
        return 0;
    }
    let ends_text = |at: usize| {
        rest[at] == b'"'
            && rest.get(at + 1).is_none_or(|next| next.is_ascii_control() || b",]}".contains(next))
    };
    let length = rest.len().min(LONGEST_COLUMN);
    let ends = |at: &usize| escapes::line_break(&rest[*at..]) > 0 || rest[*at] == 0 || ends_text(*at);
    (0..length).find(ends).unwrap_or(length)
}
