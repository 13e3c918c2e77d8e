//! The files of all processes of a job in one text, as the job's script puts them together: which variables the plugin ran
//! under, then each file behind a line with its name, and a last line that proves the text complete.

use super::{InspectorLog, Reader};
use std::collections::BTreeMap;
use std::io::{self, BufRead};

/// What such a text holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gathered {
    /// The records of all files.
    pub log: InspectorLog,
    /// `NCCL_INSPECTOR_` variables of the job, as its shell quotes them.
    pub settings: BTreeMap<String, String>,
    /// Files in the text.
    pub files: u64,
    /// Files of which only the beginning was taken, for their size.
    pub cut: Vec<String>,
    /// Files with fewer bytes than were taken of them: the text lost a part.
    pub short: Vec<String>,
    /// The last line is there, nothing is behind it, and no file has fewer bytes than were taken of it.
    pub is_complete: bool,
}

/// The first line.
const HEAD: &[u8] = b"harness-inspector 1";
/// What a line begins with that is of no file.
const MARK: &[u8] = b"== ";
/// A file is held whole while it is read; what is beyond is left out, and counted as cut.
const MOST_FILE: usize = 64 << 20;
/// Of a single line.
const MOST_LINE: u64 = 1 << 20;
/// Variables that are kept.
const MOST_SETTINGS: usize = 64;

impl Gathered {
    /// The value of a variable as a number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.settings.get(name)?.trim_matches('\'').parse().ok()
    }
}

/// A file whose lines are being taken.
struct Open {
    name: String,
    bytes: Vec<u8>,
    is_cut: bool,
    /// Bytes that its line announces.
    taken: u64,
    /// Bytes that came, those that are left out too.
    came: u64,
}

/// Nothing where the text is not such a one.
pub fn read(from: impl BufRead) -> io::Result<Option<Gathered>> {
    read_by(Reader::default(), from)
}

/// The same with each call by itself.
pub fn read_calls(from: impl BufRead) -> io::Result<Option<Gathered>> {
    read_by(Reader::keeping_calls(), from)
}

fn read_by(mut reader: Reader, mut from: impl BufRead) -> io::Result<Option<Gathered>> {
    let mut gathered = Gathered::default();
    let mut open: Option<Open> = None;
    let mut line = Vec::new();
    let mut is_first = true;
    let mut has_more = false;
    while next(&mut from, &mut line)? {
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        if std::mem::take(&mut is_first) {
            if text != HEAD {
                return Ok(None);
            }
            continue;
        }
        has_more |= gathered.is_complete;
        match text.strip_prefix(MARK) {
            Some(mark) => {
                close(open.take(), &mut reader, &mut gathered)?;
                let mark = String::from_utf8_lossy(mark);
                let mut words = mark.split(' ');
                match words.next() {
                    Some("set") if gathered.settings.len() < MOST_SETTINGS => {
                        if let Some((name, value)) =
                            mark.strip_prefix("set ").and_then(|it| it.split_once('='))
                        {
                            gathered.settings.insert(name.to_owned(), value.to_owned());
                        }
                    }
                    Some("file") => {
                        let name = words.next().unwrap_or_default().to_owned();
                        let sizes = (words.next(), words.next());
                        let taken = sizes.1.and_then(|taken| taken.parse().ok()).unwrap_or(0);
                        let is_cut = sizes.0 != sizes.1;
                        open = Some(Open { name, bytes: Vec::new(), is_cut, taken, came: 0 });
                    }
                    Some("end") => gathered.is_complete = true,
                    _ => {}
                }
            }
            None => {
                if let Some(file) = &mut open {
                    file.came += line.len() as u64;
                    match file.bytes.len() + line.len() <= MOST_FILE {
                        true => file.bytes.extend_from_slice(&line),
                        false => file.is_cut = true,
                    }
                }
            }
        }
    }
    close(open, &mut reader, &mut gathered)?;
    gathered.is_complete &= !has_more && gathered.short.is_empty();
    gathered.log = reader.finish();
    Ok((!is_first).then_some(gathered))
}

/// The next line, or a part of one that is too long.
fn next(from: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    Ok(io::Read::take(from, MOST_LINE).read_until(b'\n', line)? > 0)
}

fn close(open: Option<Open>, reader: &mut Reader, gathered: &mut Gathered) -> io::Result<()> {
    let Some(file) = open else { return Ok(()) };
    // Who put the files together ended each with a line's end of its own.
    let bytes = file.bytes.strip_suffix(b"\n").unwrap_or(&file.bytes);
    gathered.files += 1;
    if file.is_cut {
        gathered.cut.push(file.name.clone());
    }
    // The line's end is one byte more.
    if file.came <= file.taken {
        gathered.short.push(file.name.clone());
    }
    reader.read(bytes, &file.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: &str = r#"{"header":{"id":"0x1","rank":RANK,"n_ranks":2,"nnodes":1},"metadata":{"hostname":"h","pid":1},"coll_perf":{"coll":"AllReduce","coll_sn":0,"coll_msg_size_bytes":8192,"coll_exec_time_us":10,"coll_busbw_gbs":1.0}}"#;

    fn call(rank: u32) -> String {
        CALL.replace("RANK", &rank.to_string())
    }

    #[test]
    fn each_file_is_read_by_itself_and_a_line_that_breaks_off_is_of_its_own_file() {
        let (whole, half) = (call(0), call(1));
        let text = format!(
            "harness-inspector 1\n== set NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES=8192\n== file a 9 9\n{whole}\n\n\
             == file b 9 4\n{}\n== end\n",
            &half[..90]
        );
        let read = read(text.as_bytes()).expect("read").expect("such a text");
        assert_eq!((read.files, read.is_complete, read.cut.as_slice()), (2, true, &["b".to_owned()][..]));
        assert_eq!(read.number("NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES"), Some(8192));
        assert_eq!(read.log.records, 1);
        let codes: Vec<&str> = read.log.findings.iter().map(|it| it.code.as_str()).collect();
        assert!(codes.contains(&"inspector-cut") && codes.contains(&"inspector-ranks"), "{codes:?}");
    }

    #[test]
    fn each_call_is_kept_where_that_is_asked_for() {
        let host = call(1).replace("\"coll_sn\":0", "\"coll_sn\":3,\"coll_timing_source\":\"kernel_cpu\"");
        let text = format!("harness-inspector 1\n== file a 9 9\n{}\n{host}\n\n== end\n", call(0));
        let read = |text: &str| super::read_calls(text.as_bytes()).expect("read").expect("such a text").log;
        let log = read(&text);
        let calls: Vec<_> =
            log.calls.iter().map(|it| (log.members[it.member].rank, it.number, it.gpu_us)).collect();
        assert_eq!(calls, [(0, 0, Some(10.0)), (1, 3, None)]);
        assert_eq!(
            (log.operations[log.calls[1].operation].as_str(), log.calls[1].bytes),
            ("AllReduce", 8192)
        );
        assert!(super::read(text.as_bytes()).expect("read").expect("such a text").log.calls.is_empty());
    }

    #[test]
    fn another_text_is_refused_and_one_without_its_last_line_is_incomplete() {
        assert_eq!(read(&b"hello\n"[..]).expect("read"), None);
        assert_eq!(read(&b""[..]).expect("read"), None);
        let text = format!("harness-inspector 1\n== file a 9 9\n{}\n\n", call(0));
        let read = read(text.as_bytes()).expect("read").expect("such a text");
        assert!(!read.is_complete && read.log.records == 1);
    }

    #[test]
    fn a_text_that_lost_a_part_of_a_file_or_goes_on_behind_its_end_is_incomplete() {
        let file = call(0);
        let of = |taken: usize, behind: &str| {
            let text = format!("harness-inspector 1\n== file a {taken} {taken}\n{file}\n== end\n{behind}");
            let read = read(text.as_bytes()).expect("read").expect("such a text");
            (read.is_complete, read.short)
        };
        assert_eq!(of(file.len(), ""), (true, Vec::new()));
        // A process may write between the count and the copy.
        assert_eq!(of(file.len() - 1, ""), (true, Vec::new()));
        assert_eq!(of(file.len() + 1, ""), (false, vec!["a".to_owned()]));
        assert_eq!(of(file.len(), "harness-inspector 1\n"), (false, Vec::new()));
    }
}
