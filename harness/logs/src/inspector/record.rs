//! One line of JSON: a call, a marker, or a record of the proxy thread; with its header, or bare in a batch.

use crate::range::Range;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Number;
use std::borrow::Cow;

#[derive(Deserialize)]
struct RecordJson<'a> {
    #[serde(borrow)]
    header: Option<Header<'a>>,
    #[serde(borrow)]
    metadata: Option<Metadata<'a>>,
    #[serde(borrow)]
    coll_perf: Option<CallJson<'a>>,
    #[serde(borrow)]
    p2p_perf: Option<CallJson<'a>>,
    dump_stats: Option<Stats>,
    proxy_trace: Option<IgnoredAny>,
    proxy_op: Option<IgnoredAny>,
    proxy_op_start: Option<IgnoredAny>,
    proxy_op_segment: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Header<'a> {
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    comm_name: Option<Cow<'a, str>>,
    rank: Option<Number>,
    n_ranks: Option<Number>,
}

#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(borrow)]
    hostname: Option<Cow<'a, str>>,
    pid: Option<Number>,
    dump_timestamp_us: Option<Number>,
}

/// Collectives, and sends and receives, whose keys differ in their beginning alone.
#[derive(Deserialize)]
struct CallJson<'a> {
    #[serde(borrow, alias = "p2p")]
    coll: Option<Cow<'a, str>>,
    #[serde(alias = "p2p_sn")]
    coll_sn: Option<Number>,
    #[serde(alias = "p2p_msg_size_bytes")]
    coll_msg_size_bytes: Option<Number>,
    #[serde(alias = "p2p_exec_time_us")]
    coll_exec_time_us: Option<f64>,
    #[serde(borrow, alias = "p2p_timing_source")]
    coll_timing_source: Option<Cow<'a, str>>,
    #[serde(alias = "p2p_algobw_gbs")]
    coll_algobw_gbs: Option<f64>,
    #[serde(alias = "p2p_busbw_gbs")]
    coll_busbw_gbs: Option<f64>,
}

/// What the plugin announces and counts.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Stats {
    pub coll_records: u64,
    pub coll_dropped_total: u64,
    pub p2p_records: u64,
    pub p2p_dropped_total: u64,
    pub proxy_records: u64,
    pub proxy_dropped_total: u64,
    pub proxy_ops_dropped_total: u64,
}

/// Whose record it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Identity {
    pub communicator: String,
    pub rank: u64,
    pub ranks: u64,
    pub host: Option<String>,
    pub pid: Option<u64>,
    pub name: Option<String>,
}

pub(super) struct Record<'a> {
    header: Option<Header<'a>>,
    metadata: Option<Metadata<'a>>,
    pub body: Body<'a>,
}

pub(super) enum Body<'a> {
    Call(Call<'a>),
    Marker(Stats),
    Proxy,
}

/// A collective, a send or a receive.
pub(super) struct Call<'a> {
    pub is_p2p: bool,
    pub operation: Cow<'a, str>,
    /// Of the communicator and, of collectives, the type.
    pub number: u64,
    pub bytes: u64,
    pub time_us: Option<f64>,
    pub algbw: Option<f64>,
    pub busbw: Option<f64>,
    /// Both bandwidths as they stand there, 0 too; none of a size that means nothing.
    printed: [Option<f64>; 2],
    pub is_timed_on_host: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unread {
    Broken,
    Other,
}

/// Of hosts, communicators and operations; what is longer is damaged.
const LONGEST_NAME: usize = 256;

/// One of them stands in every record, damaged or not.
const OWN_KEYS: [&str; 4] = ["_perf\"", "\"dump_stats\"", "\"header\"", "\"proxy_"];

/// Of which the end of a record has one, wherever its beginning was cut off.
const LATE_KEYS: [&str; 5] = ["\"coll_", "\"p2p_", "\"dump_stats\"", "\"n_ranks\"", "\"hostname\""];

/// Whether a text is the end of a record whose beginning is not there.
pub(super) fn is_tail(text: &str) -> bool {
    text.ends_with("}}") && LATE_KEYS.iter().any(|key| text.contains(key))
}

pub(super) fn parse(text: &str) -> Result<Record<'_>, Unread> {
    let json: RecordJson<'_> = serde_json::from_str(text).map_err(|_| {
        // Job output beside the files has braces, too.
        let is_record = OWN_KEYS.iter().any(|key| text.contains(key));
        if is_record { Unread::Broken } else { Unread::Other }
    })?;
    let has_proxy = json.proxy_trace.is_some()
        || json.proxy_op.is_some()
        || json.proxy_op_start.is_some()
        || json.proxy_op_segment.is_some();
    let body = match (json.dump_stats, json.coll_perf, json.p2p_perf) {
        (Some(stats), _, _) => Body::Marker(stats),
        (None, Some(call), _) => Body::Call(call.checked(false).ok_or(Unread::Broken)?),
        (None, None, Some(call)) => Body::Call(call.checked(true).ok_or(Unread::Broken)?),
        (None, None, None) if has_proxy => Body::Proxy,
        (None, None, None) => return Err(Unread::Other),
    };
    // A header without an identity is damage, and no bare line.
    if json.header.as_ref().is_some_and(|header| header.numbers().is_none()) {
        return Err(Unread::Broken);
    }
    Ok(Record { header: json.header, metadata: json.metadata, body })
}

impl Header<'_> {
    /// The rank, and how many there are.
    fn numbers(&self) -> Option<(u64, u64)> {
        let (rank, ranks) = (self.rank.as_ref()?.as_u64()?, self.n_ranks.as_ref()?.as_u64()?);
        let names = [self.id.as_deref(), self.comm_name.as_deref()];
        let is_short = names.into_iter().flatten().all(|name| name.len() <= LONGEST_NAME);
        (rank < ranks && self.id.is_some() && is_short).then_some((rank, ranks))
    }
}

impl Record<'_> {
    /// When it was written, by the clock of its host; nothing of a bare line.
    pub(super) fn at_us(&self) -> Option<u64> {
        self.metadata.as_ref()?.dump_timestamp_us.as_ref()?.as_u64()
    }

    /// Nothing of a bare line.
    pub(super) fn identity(&self) -> Option<Identity> {
        let header = self.header.as_ref()?;
        let (rank, ranks) = header.numbers()?;
        let metadata = self.metadata.as_ref();
        Some(Identity {
            communicator: header.id.as_deref()?.to_owned(),
            rank,
            ranks,
            host: metadata
                .and_then(|it| it.hostname.as_deref())
                .map(|host| host.chars().take(LONGEST_NAME).collect()),
            pid: metadata.and_then(|it| it.pid.as_ref()?.as_u64()),
            name: header.comm_name.as_deref().map(str::to_owned),
        })
    }
}

impl<'a> CallJson<'a> {
    fn checked(self, is_p2p: bool) -> Option<Call<'a>> {
        let positive = |value: Option<f64>| value.filter(|value| value.is_finite() && *value > 0.0);
        let source = self.coll_timing_source.as_deref();
        let bytes = self.coll_msg_size_bytes?.as_u64()?;
        // A type of data that the plugin does not know gives a size below 0: its bandwidth means nothing.
        let has_size = i64::try_from(bytes).is_ok();
        Some(Call {
            is_p2p,
            operation: self.coll.filter(|name| name.len() <= LONGEST_NAME)?,
            number: self.coll_sn?.as_u64()?,
            bytes,
            time_us: self.coll_exec_time_us.filter(|time| time.is_finite() && *time >= 0.0),
            algbw: positive(self.coll_algobw_gbs).filter(|_| has_size),
            busbw: positive(self.coll_busbw_gbs).filter(|_| has_size),
            printed: [self.coll_algobw_gbs, self.coll_busbw_gbs].map(|value| value.filter(|_| has_size)),
            is_timed_on_host: matches!(source, Some("kernel_cpu" | "collective_cpu")),
        })
    }
}

impl Call<'_> {
    /// The bytes that the plugin divides by the time, and how many times that rate goes over the bus. Nothing of types for
    /// which it has no formula.
    fn formula(&self, ranks: u64) -> Option<(f64, f64)> {
        let (bytes, ranks) = (self.bytes as f64, ranks as f64);
        let share = (ranks - 1.0) / ranks;
        match &*self.operation {
            _ if self.is_p2p => Some((bytes, 1.0)),
            "AllReduce" => Some((bytes, 2.0 * share)),
            "AllGather" | "ReduceScatter" => Some((bytes * ranks, share)),
            "Broadcast" | "Reduce" | "Send" | "Recv" | "SendRecv" => Some((bytes, 1.0)),
            _ => None,
        }
    }

    /// Whether a bandwidth is not that of the bytes, the time and the ranks beside it, as exactly as the digits show. The
    /// plugin computes them from the time that it prints.
    pub(super) fn contradicts(&self, ranks: u64) -> bool {
        let Some((bytes, factor)) = self.formula(ranks) else { return false };
        let digits = |value: f64| Range::printed(&value.to_string());
        let [algbw, busbw] = self.printed;
        // Of no time, the plugin makes no bandwidth.
        let time = self.time_us.filter(|time| *time > 0.0 || algbw != Some(0.0)).and_then(digits);
        let mut expected = time.map(|time| Range {
            low: bytes / (time.high * 1e3) * (1.0 - 1e-9),
            high: if time.low > 0.0 { bytes / (time.low * 1e3) * (1.0 + 1e-9) } else { f64::INFINITY },
        });
        if let Some(printed) = algbw.and_then(digits) {
            if expected.is_some_and(|expected| !expected.meets(printed)) {
                return true;
            }
            expected = Some(expected.map_or(printed, |expected| expected.and(printed)));
        }
        let Some((expected, printed)) = expected.zip(busbw.and_then(digits)) else { return false };
        let high = if factor > 0.0 { expected.high * factor } else { 0.0 };
        !Range { low: expected.low * factor, high }.meets(printed)
    }
}
