//! What stands before the text of a line of NCCL's log: which process wrote it, when, and where in NCCL's source. What
//! the text says is the business of its readers.

/// How NCCL calls a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Info,
    Warn,
    Trace,
    Call,
}

const LEVELS: [(&str, Level); 4] =
    [("INFO ", Level::Info), ("WARN ", Level::Warn), ("TRACE ", Level::Trace), ("CALL ", Level::Call)];

/// The first line of NCCL in a line of text: where its mark begins, where its own text does.
pub(super) fn mark(line: &str) -> Option<(usize, usize, Level)> {
    let mut from = 0;
    while let Some(found) = line.get(from..)?.find("NCCL ") {
        let at = from + found;
        from = at + "NCCL ".len();
        let rest = line.get(from..)?;
        if let Some((word, level)) = LEVELS.iter().find(|(word, _)| rest.starts_with(word)) {
            return Some((at, from + word.len(), *level));
        }
    }
    None
}

/// `host:pid:tid [device] place`, taken off the end of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Prefix<'a> {
    /// What stands before the word that ends in the host.
    pub before: &'a str,
    /// The host, and whatever sticks to its front.
    pub word: &'a str,
    pub pid: u64,
    pub tid: u64,
    /// The device of the process that was its current one; calls have none.
    pub device: Option<u64>,
    /// The file and line of a warning, with its function where one is named.
    pub place: &'a str,
}

/// The text ends where the mark of NCCL begins.
pub(super) fn prefix(text: &str) -> Option<Prefix<'_>> {
    let text = text.trim_end();
    let bracketed = text.rsplit_once(']').and_then(|(front, place)| {
        let (front, device) = front.rsplit_once('[')?;
        process(front, Some(whole(device)?), place.trim())
    });
    // Without a device, the process is the last word.
    bracketed.or_else(|| process(text, None, ""))
}

fn process<'a>(front: &'a str, device: Option<u64>, place: &'a str) -> Option<Prefix<'a>> {
    let (front, tid) = front.trim_end().rsplit_once(':')?;
    let (front, pid) = front.rsplit_once(':')?;
    let (pid, tid) = (whole(pid)?, whole(tid)?);
    let begin = front.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let (before, word) = front.split_at_checked(begin)?;
    (!word.is_empty()).then_some(Prefix { before, word, pid, tid, device, place })
}

/// Whether a text begins with a process, or with NCCL's own mark or version.
pub(super) fn begins(text: &str) -> bool {
    let word = text.split_whitespace().next().unwrap_or("");
    let mut parts = word.rsplitn(3, ':');
    let is_process = parts.next().is_some_and(|tid| whole(tid).is_some())
        && parts.next().is_some_and(|pid| whole(pid).is_some())
        && parts.next().is_some_and(|host| !host.is_empty());
    is_process || text.trim_start().starts_with("NCCL ")
}

/// A time stamp in brackets at the end of a text, without them, and what stands before it.
pub(super) fn stamp(before: &str) -> Option<(&str, &str)> {
    let (cells, stamp) = before.trim_end().rsplit_once('[')?;
    let stamp = stamp.strip_suffix(']')?;
    (stamp.starts_with(|c: char| c.is_ascii_digit()) && stamp.len() < 40).then_some((cells, stamp))
}

/// Digits and nothing else.
fn whole(text: &str) -> Option<u64> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_names_the_process_whatever_stands_around_it() {
        let table = [
            ("a-1:12:34 [5] ", ("", "a-1", 12, 34, Some(5), "")),
            ("0: a:1:2 [0] net.cc:626 ", ("0: ", "a", 1, 2, Some(0), "net.cc:626")),
            ("a:1:2 [0] net.cc:626 (ncclNetInit) ", ("", "a", 1, 2, Some(0), "net.cc:626 (ncclNetInit)")),
            ("[1,0]<stdout>:a:1:2 [7] ", ("", "[1,0]<stdout>:a", 1, 2, Some(7), "")),
            ("[2025-01-31 12:00:00] a:1:2 ", ("[2025-01-31 12:00:00] ", "a", 1, 2, None, "")),
            ("a:1:2 [0] 12.5 ncclSend:88 ", ("", "a", 1, 2, Some(0), "12.5 ncclSend:88")),
        ];
        for (text, (before, word, pid, tid, device, place)) in table {
            assert_eq!(prefix(text), Some(Prefix { before, word, pid, tid, device, place }), "{text}");
        }
        for text in ["", "[0]", "a:b:2 [0]", "a:1 [0]", " :1:2 [0]", "prose [0]", "a:1:2 [x]"] {
            assert_eq!(prefix(text), None, "{text}");
        }
    }

    #[test]
    fn the_first_mark_of_a_line_counts() {
        assert_eq!(mark("NCCL version, then NCCL WARN x"), Some((19, 29, Level::Warn)));
        assert_eq!(mark("NCCL INFOx"), None);
        assert_eq!(mark("a NCCL INFO b NCCL CALL c"), Some((2, 12, Level::Info)));
    }

    #[test]
    fn a_time_stamp_stands_in_brackets_and_begins_with_a_digit() {
        assert_eq!(stamp("0: [2025-01-31 12:00:00.250] "), Some(("0: ", "2025-01-31 12:00:00.250")));
        assert_eq!((stamp("[rank0] "), stamp("prose "), stamp("")), (None, None, None));
    }
}
