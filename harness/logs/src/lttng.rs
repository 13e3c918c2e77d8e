//! Traces of LTTng as babeltrace prints them, a line for each event:
//!
//! ```text
//! [10:20:30.000000001] (+0.000000001) host nccl_ofi_plugin:Send: { cpu_id = 1 }, { dev = 0, size = 4096, comm = 0x7f }
//! ```
//!
//! Events of the network plugin of NCCL on AWS are taken, those of others counted. What they mean is for recipes to say.

use super::stream::Pieces;
use super::text::{front, without_escapes, without_tags};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io::BufRead;

const PROVIDER: &str = "nccl_ofi_plugin";

/// One event of the plugin `nccl_ofi_plugin`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Since midnight, or since 1970, as the clock was printed.
    pub ns: i64,
    /// None where the trace prints none.
    pub host: Option<String>,
    /// Without the provider.
    pub name: String,
    /// Field `dev`: the device, as the plugin numbers them.
    pub dev: Option<i64>,
    /// Field `rail_id` or `rail`.
    pub rail: Option<i64>,
    /// Field `size`, in bytes.
    pub size: Option<u64>,
    /// Field `comm`: a pointer as it is printed, such as `0x7F01`.
    pub comm: Option<String>,
    /// Field `msg_seq_num`: the plugin's number of the message.
    pub sequence: Option<i64>,
    /// Field `request`: a pointer as it is printed.
    pub request: Option<String>,
}

/// The result of one trace.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// In the order of the trace.
    pub events: Vec<Event>,
    /// Of other providers.
    pub others: usize,
}

/// The first line that is none of an event is an error that names it.
pub fn read(from: impl BufRead) -> Result<Read, String> {
    let mut read = Read::default();
    let mut pieces = Pieces::new(from);
    while let Some(piece) = pieces.next_piece().map_err(|error| error.to_string())? {
        let line = without_escapes(&piece.text);
        let front = front(&line, begins);
        let text = line.get(front.length..).unwrap_or("").trim_start();
        if text.is_empty() {
            continue;
        }
        // The time stamp that its host follows at once is the event's own.
        let own = front.last_stamp.filter(|_| !text.starts_with('[')).map_or(0, str::len);
        let text = without_tags(line.get(front.length - own..).unwrap_or(""));
        match event(text.trim()) {
            Some(Some(event)) => read.events.push(event),
            Some(None) => read.others += 1,
            None => {
                return Err(format!(
                    "line {} is not a babeltrace event like `[10:20:30.000000001] host {PROVIDER}:Send: {{ dev = 0, \
                     size = 4096 }}`; convert the trace again with `babeltrace2`",
                    piece.line
                ));
            }
        }
    }
    Ok(read)
}

/// Whether a text begins as an event does, with its clock or behind it.
fn begins(text: &str) -> bool {
    let text = text.trim_start();
    let behind = text.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    let text = behind.filter(|(clock, _)| nanoseconds(clock).is_some()).map_or(text, |(_, rest)| rest);
    let text = text.strip_prefix("(+").and_then(|rest| rest.split_once(") ")).map_or(text, |(_, rest)| rest);
    let Some(head) = text.split_once('{').and_then(|(head, _)| head.trim().strip_suffix(':')) else {
        return false;
    };
    // In front of a clock stand labels.
    let name = head.rsplit_once(' ').map_or(head, |(_, name)| name);
    name.contains(':') && !head.contains('[')
}

/// `None` where the line is none, nothing in it where the event is another provider's.
fn event(line: &str) -> Option<Option<Event>> {
    let (clock, rest) = line.strip_prefix('[')?.split_once(']')?;
    let ns = nanoseconds(clock)?;
    let mut rest = rest.trim_start();
    if let Some(behind) = rest.strip_prefix("(+") {
        rest = behind.split_once(')')?.1.trim_start();
    }
    let (head, fields) = rest.split_at(rest.find('{')?);
    let head = head.trim().strip_suffix(':')?;
    let (host, name) = match head.rsplit_once(' ') {
        Some((host, name)) => (Some(host.trim().to_owned()), name),
        None => (None, head),
    };
    let (provider, name) = name.split_once(':')?;
    if provider != PROVIDER {
        return Some(None);
    }
    let fields = pairs(fields)?;
    let number = |names: &[&str]| -> Result<Option<i128>, ()> {
        match names.iter().find_map(|name| fields.get(name)) {
            Some(value) => number(value).map(Some).ok_or(()),
            None => Ok(None),
        }
    };
    let whole = |names: &[&str]| -> Option<Option<i64>> {
        number(names).ok()?.map_or(Some(None), |value| i64::try_from(value).ok().map(Some))
    };
    let word = |name: &str| fields.get(name).map(|value| (*value).to_owned());
    Some(Some(Event {
        ns,
        host,
        name: name.to_owned(),
        dev: whole(&["dev"])?,
        rail: whole(&["rail_id", "rail"])?,
        size: number(&["size"]).ok()?.map_or(Some(None), |value| u64::try_from(value).ok().map(Some))?,
        comm: word("comm"),
        sequence: whole(&["msg_seq_num"])?,
        request: word("request"),
    }))
}

/// `10:20:30.000000001`, `2026-01-02 10:20:30.000000001`, of which the date is not taken, or seconds.
fn nanoseconds(clock: &str) -> Option<i64> {
    let clock = clock.trim();
    let time = clock.rsplit_once(' ').map_or(clock, |(_, time)| time);
    let (whole, part) = time.split_once('.').unwrap_or((time, "0"));
    let mut seconds = 0i64;
    for piece in whole.split(':') {
        seconds = seconds.checked_mul(60)?.checked_add(piece.parse::<u32>().ok()?.into())?;
    }
    if part.is_empty() || part.len() > 9 || !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let ns: i64 = format!("{part:0<9}").parse().ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(ns)
}

/// The fields of all braces of a line; those within others are left out.
fn pairs(text: &str) -> Option<HashMap<&str, &str>> {
    let mut pairs = HashMap::new();
    let (mut depth, mut begin, mut quoted) = (0usize, 0, false);
    for (at, letter) in text.char_indices() {
        match letter {
            '"' => quoted = !quoted,
            _ if quoted => {}
            '{' | '[' => {
                depth += 1;
                if depth == 1 {
                    begin = at + 1;
                }
            }
            '}' | ']' | ',' if depth == 1 => {
                if let Some((name, value)) = text[begin..at].split_once('=') {
                    pairs.insert(name.trim(), value.trim().trim_matches('"'));
                }
                begin = at + 1;
                depth -= usize::from(letter != ',');
            }
            '}' | ']' => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    (depth == 0 && !quoted).then_some(pairs)
}

fn number(value: &str) -> Option<i128> {
    match value.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16).ok(),
        None => value.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_the_plugin_are_read_with_their_sizes_and_rails() {
        let text = "\
[10:20:30.000000001] (+?.?????????) ip-10-0-0-1 nccl_ofi_plugin:Send: { cpu_id = 3 }, { dev = 2, size = 1048576, comm = 0x7F01, peer_addr = 12, msg_seq_num = 5, request = 0x7F02 }
[10:20:30.5] (+0.499999999) ip-10-0-0-1 nccl_ofi_plugin:Send_write_segment_start: { dev = 2, rail_id = 1, size = 0x80000, note = \"a, b = {\" }
[2026-01-02 00:00:01.000000000] nccl_ofi_plugin:Flush: { }

[00:00:02.1] host other:thing: { a = [ [0] = 1, [1] = 2 ] }
";
        let read = read(text.as_bytes()).expect("sound");
        assert_eq!((read.events.len(), read.others), (3, 1));
        let [send, segment, flush] = read.events.as_slice() else { panic!("three") };
        assert_eq!((send.ns, send.host.as_deref()), (37_230_000_000_001, Some("ip-10-0-0-1")));
        assert_eq!((send.name.as_str(), send.dev, send.size), ("Send", Some(2), Some(1 << 20)));
        assert_eq!((send.comm.as_deref(), send.sequence), (Some("0x7F01"), Some(5)));
        assert_eq!((segment.rail, segment.size, segment.ns), (Some(1), Some(1 << 19), 37_230_500_000_000));
        assert_eq!((flush.ns, flush.host.as_deref(), flush.size), (1_000_000_000, None, None));
    }

    #[test]
    fn a_line_that_is_no_event_is_named() {
        for line in [
            "plain words",
            "[10:20:30.1 host nccl_ofi_plugin:Send: { }",
            "[ten] host nccl_ofi_plugin:Send: { }",
            "[1.2] host nccl_ofi_plugin:Send: { size = many }",
            "[1.2] host nccl_ofi_plugin:Send: { size = -1 }",
            "[1.2] host nccl_ofi_plugin:Send: { size = 1",
            "[1.2] host nccl_ofi_plugin:Send { size = 1 }",
            "[1.1234567890] host nccl_ofi_plugin:Send: { }",
        ] {
            let error =
                read(format!("\n[1.5] h nccl_ofi_plugin:Read: {{ }}\n{line}\n").as_bytes()).expect_err(line);
            assert!(error.starts_with("line 3 is not a babeltrace event"), "{error}");
        }
    }
}
