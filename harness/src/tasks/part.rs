//! The file that a task hands back: one line that says what it is, and behind it what was taken of the reports, as bytes of
//! `recipes`. An incomplete file, or one for another order, is refused.

use super::order::FORMAT;
use base::digest::sha256;
use serde::{Deserialize, Serialize};

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    format: u32,
    /// The digest of the order that it was made for.
    order: String,
    task: usize,
    bytes: usize,
    sha256: String,
}

pub(super) fn write(order: &str, task: usize, part: &[u8]) -> Result<Vec<u8>, String> {
    let head =
        Head { format: FORMAT, order: order.to_owned(), task, bytes: part.len(), sha256: sha256(part) };
    let mut file = serde_json::to_vec(&head).map_err(|error| error.to_string())?;
    file.push(b'\n');
    file.extend_from_slice(part);
    Ok(file)
}

pub(super) fn read<'a>(order: &str, task: usize, file: &'a [u8]) -> Result<&'a [u8], String> {
    let end = file.iter().position(|byte| *byte == b'\n').ok_or("it has no first line")?;
    let (head, part) = (&file[..end], &file[end + 1..]);
    let head: Head = serde_json::from_slice(head).map_err(|error| format!("its first line: {error}"))?;
    if head.format != FORMAT {
        return Err(format!("written in format {}, but this harness reads format {FORMAT}", head.format));
    }
    if (head.order.as_str(), head.task) != (order, task) {
        return Err("it was made for another analysis".to_owned());
    }
    if part.len() != head.bytes {
        return Err(format!("expected {} bytes, found {}", head.bytes, part.len()));
    }
    match sha256(part) == head.sha256 {
        true => Ok(part),
        false => Err("its digest does not match its content".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_comes_back_as_it_was_written_and_only_for_its_order_and_task() {
        let file = write("abc", 3, b"\x00part\n").expect("written");
        assert_eq!(read("abc", 3, &file), Ok(&b"\x00part\n"[..]));
        for (order, task) in [("abd", 3), ("abc", 4)] {
            assert!(read(order, task, &file).is_err_and(|why| why.contains("another analysis")));
        }
    }

    #[test]
    fn a_part_that_is_cut_off_or_changed_is_none() {
        let file = write("abc", 3, b"the part").expect("written");
        for length in 0..file.len() {
            assert!(read("abc", 3, &file[..length]).is_err(), "{length}");
        }
        let mut changed = file.clone();
        *changed.last_mut().expect("bytes") ^= 1;
        assert_eq!(read("abc", 3, &changed), Err("its digest does not match its content".to_owned()));
        let newer = String::from_utf8(file).expect("text").replace("\"format\":1", "\"format\":2");
        assert!(read("abc", 3, newer.as_bytes()).is_err_and(|why| why.contains("format 2")));
    }
}
