//! Records of NCCL's Inspector plugin: JSON lines of v4.0 to v4.4 and of RCCL, and its Prometheus files. They are read by
//! their keys, since one version number stands for several sets of them.
//!
//! A call without a record was lost or filtered: small calls, calls without a GPU clock and what the ring overwrote leave
//! none. Only `dump_stats` counts loss. A kernel's time holds its waiting for other ranks: the late rank has the shortest,
//! so ranks are not ordered by it.

mod batch;
mod findings;
pub mod gathered;
mod gauges;
pub mod lines;
mod record;
mod series;
#[cfg(test)]
mod tests;

use crate::stream::Pieces;
use crate::text::plain;
use batch::Batch;
use metric::finding::Finding;
use record::{Body, Record};
use serde::Serialize;
use series::Tables;
use std::io::{self, BufRead};

/// What all files hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct InspectorLog {
    /// All lines, those of other programs too.
    pub lines: u64,
    /// Lines of other programs.
    pub other_lines: u64,
    /// Records of calls that were read.
    pub records: u64,
    /// Records of the proxy thread, which are not looked into.
    pub proxy_records: u64,
    /// One for each rank of each communicator.
    pub members: Vec<MemberRecords>,
    /// One for each rank, operation and size; by communicator, operation, size and rank.
    pub series: Vec<Series>,
    /// Of Prometheus files.
    pub gauges: Vec<Gauge>,
    /// Such as `inspector-dropped` and `inspector-gaps`.
    pub findings: Vec<Finding>,
    /// Each call by itself, where it was asked for.
    #[serde(skip)]
    pub calls: Vec<RankCall>,
    /// Their operations.
    #[serde(skip)]
    pub operations: Vec<String>,
}

/// One call by one rank of a communicator.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankCall {
    /// Index into `InspectorLog::members`.
    pub member: usize,
    /// Index into `InspectorLog::operations`.
    pub operation: usize,
    /// From 0, of its operation and communicator; sends and receives share one count.
    pub number: u64,
    /// As the caller gave it: of `AllGather` and `ReduceScatter` the share of one rank.
    pub bytes: u64,
    /// Microseconds by the GPU's clock, waiting for others included; nothing where it was timed on the host, or not at all.
    pub gpu_us: Option<f64>,
}

/// A rank of a communicator, as one process recorded it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct MemberRecords {
    /// As in NCCL's log.
    pub communicator: String,
    /// As the program called it.
    pub name: Option<String>,
    /// In the communicator.
    pub rank: u64,
    /// Of the communicator.
    pub ranks: u64,
    /// In a pod it is the pod's.
    pub host: Option<String>,
    /// On that host.
    pub pid: Option<u64>,
    /// Records that were read.
    pub records: u64,
    /// Calls that the plugin lost, as it counts them itself; none where it does not count.
    pub dropped: Option<u64>,
    /// Calls between the first and the last record that have none: lost or filtered.
    pub gaps: u64,
}

/// Calls of one operation and size by one rank of a communicator.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// Index into `InspectorLog::members`.
    pub member: usize,
    /// Such as `AllReduce`.
    pub operation: String,
    /// As the caller gave it: of `AllGather` and `ReduceScatter` the share of one rank.
    pub bytes: u64,
    /// Records, which are not all calls.
    pub calls: u64,
    /// Microseconds; none where no record has a time.
    pub time_us: Option<Spread>,
    /// GB/s of records with a bandwidth: types without a formula have none.
    pub algbw_gb_s: Option<Spread>,
    /// The same, over the bus.
    pub busbw_gb_s: Option<Spread>,
    /// Records timed on the host, whose times are those of callbacks.
    pub timed_on_host: u64,
}

/// The extent of some values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Spread {
    /// How many values.
    pub n: u64,
    /// The smallest.
    pub min: f64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The largest.
    pub max: f64,
}

/// A value of a Prometheus file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gauge {
    /// The file, whose name has the GPU's UUID: the label `gpu` is no identity.
    pub file: String,
    /// Such as `nccl_bus_bandwidth_gbs`.
    pub metric: String,
    /// In their order.
    pub labels: Vec<(String, String)>,
    /// Of v5.1 a mean since the last dump: of time arithmetic, of bandwidth geometric.
    pub value: f64,
}

/// Takes one stream after another: the files of the ranks of one job.
#[derive(Debug, Default)]
pub struct Reader {
    log: InspectorLog,
    tables: Tables,
    odd: findings::Odd,
    gauge_bytes: usize,
}

/// Whether a text begins as a line of the plugin does, or as one of a record over several lines.
fn begins(text: &str) -> bool {
    let bare = text.trim_start();
    bare.starts_with(['{', '}', '"', ']', '#']) || bare.starts_with("nccl_")
}

/// Of all values of Prometheus files.
const MOST_GAUGE_BYTES: usize = 256 << 20;
/// About what one takes beside its texts.
const GAUGE_BYTES: usize = 1024;

impl Reader {
    /// One that keeps each call by itself, and not their sums alone.
    pub(crate) fn keeping_calls() -> Reader {
        Reader { tables: Tables::keeping_calls(), ..Reader::default() }
    }

    /// Reads to the end. Where the stream breaks off, what was read before counts.
    pub fn read(&mut self, from: impl BufRead, file: &str) -> io::Result<()> {
        let mut pieces = Pieces::new(from);
        let mut batch: Option<Batch> = None;
        // A record over several lines, as people and other programs write it.
        let mut open: Option<(u64, String)> = None;
        let read = loop {
            let piece = match pieces.next_piece() {
                Ok(Some(piece)) => piece,
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            };
            // Zeros stand where a node that went down, or who cut the file, left no bytes.
            if piece.text.starts_with('\0') {
                self.odd.garbled(file, piece.line);
            }
            let plain = plain(piece.text.trim_end(), begins);
            // Some labels end before the blank that follows them.
            let text = plain.text.strip_prefix(' ').unwrap_or(&plain.text);
            if let Some((line, mut all)) = open.take() {
                let has_room = all.len() + text.len() < crate::stream::LONGEST;
                all.push_str(text);
                match text {
                    "}" => self.line(&all, line, piece.ended, file, &mut batch),
                    _ if has_room => open = Some((line, all)),
                    _ => self.odd.garbled(file, line),
                }
            } else if text == "{" {
                open = Some((piece.line, text.to_owned()));
            } else if piece.too_long {
                self.odd.garbled(file, piece.line);
            } else {
                self.line(text.trim_start(), piece.line, piece.ended, file, &mut batch);
            }
        };
        if let Some((line, _)) = open {
            self.odd.cut(file, line);
        }
        if let Some(batch) = batch {
            self.odd.end_of_batch(file, &batch);
        }
        self.log.lines += pieces.lines();
        read
    }

    /// What all streams say together.
    pub fn finish(self) -> InspectorLog {
        let Reader { mut log, tables, odd, .. } = self;
        let facts = tables.finish(&mut log);
        log.findings = findings::all(&log, &facts, odd);
        log
    }

    fn line(&mut self, text: &str, line: u64, ended: bool, file: &str, batch: &mut Option<Batch>) {
        if !text.starts_with('{') {
            match gauges::parse(text) {
                Some(Ok(gauge)) => self.gauge(gauge, file),
                Some(Err(())) if ended => self.odd.garbled(file, line),
                Some(Err(())) => self.odd.cut(file, line),
                None if text.starts_with('#') || text.is_empty() => {}
                None if record::is_tail(text) => self.odd.garbled(file, line),
                None => self.log.other_lines += 1,
            }
            return;
        }
        match record::parse(text) {
            Ok(record) => self.record(record, line, file, batch),
            Err(_) if !ended => self.odd.cut(file, line),
            Err(record::Unread::Broken) => self.odd.garbled(file, line),
            // Programs whose output lies beside the files write JSON, too.
            Err(record::Unread::Other) => self.log.other_lines += 1,
        }
    }

    fn gauge(&mut self, gauge: Gauge, file: &str) {
        let labels = gauge.labels.iter().map(|(name, value)| name.len() + value.len());
        self.gauge_bytes += GAUGE_BYTES + file.len() + gauge.metric.len() + labels.sum::<usize>();
        match self.gauge_bytes <= MOST_GAUGE_BYTES {
            true => self.log.gauges.push(Gauge { file: file.to_owned(), ..gauge }),
            false => self.odd.left_out += 1,
        }
    }

    fn record(&mut self, record: Record<'_>, line: u64, file: &str, batch: &mut Option<Batch>) {
        let placed = batch::place(&record, line, batch);
        if let Some(ended) = &placed.ended {
            self.odd.end_of_batch(file, ended);
        }
        if let Body::Marker(stats) = &record.body {
            match &placed.identity {
                Some(identity) => self.tables.stats(identity, stats),
                None => self.odd.garbled(file, line),
            }
            return;
        }
        match (placed.position, placed.is_bare) {
            (batch::Position::Beyond, _) => self.odd.beyond(file, line),
            (batch::Position::Outside, true) => self.odd.bare(file, line),
            _ => {}
        }
        let Some(identity) = placed.identity else { return };
        match record.body {
            Body::Call(call) => {
                self.log.records += 1;
                self.odd.call(&call);
                if call.contradicts(identity.ranks) {
                    self.odd.disagrees(file, line);
                }
                if !self.tables.call(&identity, &call) {
                    self.odd.left_out += 1;
                }
            }
            Body::Proxy => self.log.proxy_records += 1,
            Body::Marker(_) => {}
        }
    }
}
