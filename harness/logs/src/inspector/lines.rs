//! Lines of a file that grows, one at a time: what calls they record, and whose. What stands between two lines is kept with
//! the place in the file, so that reading can go on after any line.

use super::batch::{self, Batch, Position};
use super::record::{self, Body, Record, Unread};
use serde::{Deserialize, Serialize};

/// A call of one rank.
#[derive(Debug, Clone, PartialEq)]
pub struct CallRecord {
    /// Its hash, as in NCCL's log.
    pub communicator: String,
    /// In the communicator.
    pub rank: u64,
    /// Of the communicator.
    pub ranks: u64,
    /// In a pod it is the pod's; empty where it is not given.
    pub host: String,
    /// On that host; 0 where it is not given.
    pub pid: u64,
    /// Such as `AllReduce`.
    pub operation: String,
    /// A send or a receive, whose numbers are those of its rank alone.
    pub is_p2p: bool,
    /// Of the communicator and the operation: equal on all ranks.
    pub number: u64,
    /// As the caller gave it: of `AllGather` and `ReduceScatter` the share of one rank.
    pub bytes: u64,
    /// Of its kernel on the GPU's clock; none where it is a time of the host, or was not taken.
    pub time_us: Option<f64>,
    /// GB/s over the bus.
    pub busbw: Option<f64>,
    /// When it was written, by the host's clock, in microseconds since 1970.
    pub at_us: Option<u64>,
}

/// What a line is.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// A call.
    Call(CallRecord),
    /// A marker or a record of the proxy thread.
    Other,
    /// Of another program, or empty.
    Foreign,
    /// A record that cannot be read or contradicts itself, or of which it is unknown whose it is.
    Damaged,
}

/// A line that was read, and belongs to no batch yet.
pub struct ParsedLine<'a>(Result<Record<'a>, Unread>);

impl<'a> ParsedLine<'a> {
    /// Reads one line, without its end.
    pub fn parse(text: &'a str) -> ParsedLine<'a> {
        let text = text.trim();
        ParsedLine(if text.starts_with('{') { record::parse(text) } else { Err(Unread::Other) })
    }

    /// When it was written, by the clock of its host; nothing of a line without a header.
    pub fn at_us(&self) -> Option<u64> {
        self.0.as_ref().ok()?.at_us()
    }
}

/// Where a file stands between two of its lines.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct FileLines {
    batch: Option<Batch>,
}

impl FileLines {
    /// Takes the next line.
    pub fn take(&mut self, line: ParsedLine<'_>) -> Line {
        let record = match line.0 {
            Ok(record) => record,
            Err(Unread::Other) => return Line::Foreign,
            Err(Unread::Broken) => return Line::Damaged,
        };
        let placed = batch::place(&record, 0, &mut self.batch);
        let Some(identity) = placed.identity else { return Line::Damaged };
        match record.body {
            Body::Call(_) if placed.position == Position::Beyond && placed.is_bare => Line::Damaged,
            Body::Call(call) if call.contradicts(identity.ranks) => Line::Damaged,
            Body::Call(call) => Line::Call(CallRecord {
                communicator: identity.communicator,
                rank: identity.rank,
                ranks: identity.ranks,
                host: identity.host.unwrap_or_default(),
                pid: identity.pid.unwrap_or_default(),
                operation: call.operation.into_owned(),
                is_p2p: call.is_p2p,
                number: call.number,
                bytes: call.bytes,
                time_us: call.time_us.filter(|_| !call.is_timed_on_host),
                busbw: call.busbw,
                at_us: placed.at_us,
            }),
            Body::Proxy | Body::Marker(_) => Line::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = r#""header":{"id":"0xa1","rank":3,"n_ranks":8,"nnodes":2},"metadata":{"dump_timestamp_us":17,"hostname":"n1","pid":7}"#;
    const CALL: &str = r#""coll_perf":{"coll":"AllReduce","coll_sn":9,"coll_msg_size_bytes":4096,"coll_exec_time_us":100,"coll_timing_source":"kernel_gpu","coll_busbw_gbs":0.07168}"#;

    fn marker(records: u64) -> String {
        format!(
            "{{{HEAD},\"dump_stats\":{{\"coll_records\":{records},\"coll_dropped_total\":0,\"p2p_records\":0,\"p2p_dropped_total\":0}}}}"
        )
    }

    fn take(lines: &mut FileLines, text: &str) -> Line {
        lines.take(ParsedLine::parse(text))
    }

    #[test]
    fn a_bare_record_is_of_its_marker_after_a_restart_too() {
        let mut lines = FileLines::default();
        assert_eq!(take(&mut lines, &marker(1)), Line::Other);
        let kept = serde_json::to_string(&lines).expect("JSON");
        let mut lines: FileLines = serde_json::from_str(&kept).expect("the same");
        let Line::Call(call) = take(&mut lines, &format!("{{{CALL}}}")) else { panic!("no call") };
        assert_eq!((call.rank, call.host.as_str(), call.at_us, call.number), (3, "n1", Some(17), 9));
        assert_eq!(call.time_us, Some(100.0));
        assert_eq!(take(&mut lines, &format!("{{{CALL}}}")), Line::Damaged, "beyond what was announced");
    }

    #[test]
    fn lines_of_others_and_damaged_ones_are_kept_apart() {
        let mut lines = FileLines::default();
        for (text, expected) in [
            ("", Line::Foreign),
            ("loss 3.1", Line::Foreign),
            ("{\"loss\":3}", Line::Foreign),
            ("{\"header\":{\"id\":\"0x", Line::Damaged),
        ] {
            assert_eq!(take(&mut lines, text), expected, "{text}");
        }
        assert_eq!(take(&mut lines, &format!("{{{CALL}}}")), Line::Damaged, "a bare one without a marker");
        let altered = format!("{{{HEAD},{}}}", CALL.replace("0.07168", "0.14336"));
        assert_eq!(take(&mut lines, &altered), Line::Damaged, "another bandwidth than bytes and time give");
    }

    #[test]
    fn times_of_the_host_are_no_times() {
        let text = format!("{{{HEAD},{}}}", CALL.replace("kernel_gpu", "kernel_cpu"));
        let Line::Call(call) = take(&mut FileLines::default(), &text) else { panic!("no call") };
        assert_eq!(call.time_us, None);
    }
}
