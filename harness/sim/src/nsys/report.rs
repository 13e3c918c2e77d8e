//! The tables of one report, as an export has them. What the profiler saw is in `observed`; that a report can be lost
//! or cut, beside it.

use super::Rank;
use super::events::Range;
use super::layouts::Layouts;
use super::observed::Observed;
use crate::active_faults::Report as Ailing;
use crate::noise;
use crate::over::NamedTables;
use nsys::tables::write::{self, Columns};
use nsys::tables::{self, TableSpec};
use std::collections::BTreeMap;

/// Types of events, as exports number them.
const PUSH_POP: i64 = 59;
const DOMAIN: i64 = 75;
/// The number of NCCL's domain in each process; the default one is 0.
const NCCL_DOMAIN: i64 = 1;

/// An export is lazy: a table without a row is not there. Those that were not requested are not made.
pub(super) fn tables(rank: &Rank, epoch_s: f64) -> NamedTables {
    if rank.profile.export == "none" {
        return Vec::new();
    }
    let seen = Observed::new(rank, epoch_s);
    let report = Report { rank, seen: &seen, names: names(&seen) };
    let mut made = NamedTables::new();
    let mut put = |spec: &TableSpec, rows: usize, bytes: &dyn Fn() -> Result<Vec<u8>, String>| {
        let wanted = &rank.profile.tables;
        if rows > 0
            && (wanted.is_empty() || wanted.iter().any(|table| table == spec.name))
            && let Ok(bytes) = bytes()
        {
            made.push((format!("{}.parquet", spec.name), bytes));
        }
    };
    let events = &seen.events;
    put(&tables::KERNEL, events.kernels.len(), &|| report.kernels());
    put(&tables::GRAPH_TRACE, seen.graphs.len(), &|| report.graphs());
    put(&tables::MEMCPY, events.copies.len(), &|| report.copies());
    put(&tables::RUNTIME, events.calls.len(), &|| report.calls());
    put(&tables::NVTX_EVENTS, events.ranges.len(), &|| report.ranges());
    let layouts = if report.forms().blobs { Layouts::new(events, NCCL_DOMAIN) } else { Layouts::default() };
    put(&tables::NVTX_PAYLOAD_SCHEMAS, layouts.layouts.len(), &|| layouts.layouts());
    put(&tables::NVTX_PAYLOAD_SCHEMA_ENTRIES, layouts.layouts.len(), &|| layouts.fields());
    put(&tables::NVTX_PAYLOAD_ENUMS, layouts.processes, &|| layouts.enumerations());
    put(&tables::NVTX_PAYLOAD_ENUM_ENTRIES, layouts.processes, &|| layouts.names());
    put(&tables::STRING_IDS, 1, &|| report.strings());
    put(&tables::PROCESSES, events.processes.len(), &|| report.processes());
    put(&tables::SESSION_START, 1, &|| report.session());
    put(&tables::SYSTEM_ENV, 1, &|| report.host());
    put(&tables::TARGET_INFO_GPU, 1, &|| report.gpus());
    put(&tables::DIAGNOSTIC_EVENT, 1, &|| report.diagnostics());
    put(&tables::META_DATA_EXPORT, 1, &|| write::meta("3.20.0", &rank.profile.version.to_string()));
    made
}

/// What each report says of itself.
const NOT_REAL: &str = "nothing in this report was measured on real hardware";

/// In which forms payloads stand in an export.
struct Forms {
    json: bool,
    blobs: bool,
}

struct Report<'a> {
    rank: &'a Rank<'a>,
    seen: &'a Observed,
    names: BTreeMap<&'a str, i64>,
}

/// The strings of an export: names that are registered once and referred to.
fn names(seen: &Observed) -> BTreeMap<&str, i64> {
    let events = &seen.events;
    let registered = events.ranges.iter().filter(|range| range.of_nccl).map(|range| &*range.name);
    let all = (events.kernels.iter().map(|kernel| &*kernel.name))
        .chain(events.calls.iter().map(|call| call.name))
        .chain(registered);
    let mut names = BTreeMap::new();
    for name in all {
        let next = names.len() as i64 + 1;
        names.entry(name).or_insert(next);
    }
    names
}

impl Report<'_> {
    fn id(&self, name: &str) -> i64 {
        self.names.get(name).copied().unwrap_or_default()
    }

    fn kernels(&self) -> Result<Vec<u8>, String> {
        let rows = &self.seen.events.kernels;
        let names: Vec<i64> = rows.iter().map(|row| self.id(&row.name)).collect();
        // A node's number holds the number of its graph.
        let node = |row: &super::events::Kernel| row.node.map(|node| node.graph << 32 | node.number);
        Columns::new(&tables::KERNEL, rows.len())
            .numbers("start", rows.iter().map(|row| row.start))
            .numbers("end", rows.iter().map(|row| row.end))
            .numbers("deviceId", rows.iter().map(|row| row.device))
            .numbers("contextId", rows.iter().map(|_| 1))
            .numbers("streamId", rows.iter().map(|row| row.stream))
            .numbers("correlationId", rows.iter().map(|row| row.correlation))
            .numbers("globalPid", rows.iter().map(|row| row.global_pid))
            .numbers("demangledName", names.iter().copied())
            .numbers("shortName", names.iter().copied())
            .integers("graphNodeId", rows.iter().map(node))
            .integers("graphId", rows.iter().map(|row| row.node.map(|node| node.graph)))
            .bytes()
    }

    fn graphs(&self) -> Result<Vec<u8>, String> {
        let rows = &self.seen.graphs;
        Columns::new(&tables::GRAPH_TRACE, rows.len())
            .numbers("start", rows.iter().map(|row| row.start))
            .numbers("end", rows.iter().map(|row| row.end))
            .numbers("deviceId", rows.iter().map(|row| row.device))
            .numbers("contextId", rows.iter().map(|_| 1))
            .numbers("streamId", rows.iter().map(|row| row.stream))
            .numbers("correlationId", rows.iter().map(|row| row.correlation))
            .numbers("globalPid", rows.iter().map(|row| row.global_pid))
            .integers("graphId", rows.iter().map(|row| row.node.map(|node| node.graph)))
            .bytes()
    }

    fn copies(&self) -> Result<Vec<u8>, String> {
        let rows = &self.seen.events.copies;
        Columns::new(&tables::MEMCPY, rows.len())
            .numbers("start", rows.iter().map(|row| row.start))
            .numbers("end", rows.iter().map(|row| row.end))
            .numbers("bytes", rows.iter().map(|row| row.bytes as i64))
            .numbers("copyKind", rows.iter().map(|row| row.kind))
            .numbers("deviceId", rows.iter().map(|row| row.device))
            .numbers("contextId", rows.iter().map(|_| 1))
            .numbers("streamId", rows.iter().map(|row| row.stream))
            .numbers("correlationId", rows.iter().map(|row| row.correlation))
            .numbers("globalPid", rows.iter().map(|row| row.global_pid))
            .bytes()
    }

    fn calls(&self) -> Result<Vec<u8>, String> {
        let rows = &self.seen.events.calls;
        Columns::new(&tables::RUNTIME, rows.len())
            .numbers("start", rows.iter().map(|row| row.start))
            .numbers("end", rows.iter().map(|row| row.end))
            .numbers("eventClass", rows.iter().map(|_| 0))
            .numbers("globalTid", rows.iter().map(|row| row.global_tid))
            .numbers("correlationId", rows.iter().map(|row| row.correlation))
            .numbers("nameId", rows.iter().map(|row| self.id(row.name)))
            .numbers("returnValue", rows.iter().map(|_| 0))
            .bytes()
    }

    /// The domains come first: each process names its own when it loads NCCL.
    fn ranges(&self) -> Result<Vec<u8>, String> {
        let rows = &self.seen.events.ranges;
        let mut domains: Vec<i64> = rows.iter().filter(|row| row.of_nccl).map(|row| row.global_tid).collect();
        domains.sort_unstable();
        domains.dedup();
        let none = || domains.iter().map(|_| None::<i64>);
        let own = |name: &str| Some(name.to_owned());
        let domain = |of_nccl: bool| if of_nccl { NCCL_DOMAIN } else { 0 };
        let first = rows.first().map_or(0, |row| row.start);
        let texts = rows.iter().map(|row| if row.of_nccl { None } else { own(&row.name) });
        let ids = rows.iter().map(|row| row.of_nccl.then(|| self.id(&row.name)));
        let forms = self.forms();
        let json = |row: &Range| row.payload.filter(|_| forms.json).map(|payload| payload.json());
        let blob = |row: &Range| row.payload.filter(|_| forms.blobs)?.blob(NCCL_DOMAIN, &row.name);
        Columns::new(&tables::NVTX_EVENTS, domains.len() + rows.len())
            .numbers("start", domains.iter().map(|_| first).chain(rows.iter().map(|row| row.start)))
            .integers("end", none().chain(rows.iter().map(|row| Some(row.end))))
            .numbers("eventType", domains.iter().map(|_| DOMAIN).chain(rows.iter().map(|_| PUSH_POP)))
            .texts("text", domains.iter().map(|_| own("NCCL")).chain(texts))
            .integers("textId", none().chain(ids))
            .numbers("globalTid", domains.iter().copied().chain(rows.iter().map(|row| row.global_tid)))
            .numbers(
                "domainId",
                domains.iter().map(|_| NCCL_DOMAIN).chain(rows.iter().map(|row| domain(row.of_nccl))),
            )
            .texts("jsonText", domains.iter().map(|_| None).chain(rows.iter().map(json)))
            .blobs("binaryData", domains.iter().map(|_| None).chain(rows.iter().map(blob)))
            .bytes()
    }

    /// Releases and their switches differ in the forms of payloads that an export has; here clusters do.
    fn forms(&self) -> Forms {
        let forms = noise::digest(self.rank.cluster.seed, &["forms of payloads"]) % 3;
        Forms { json: forms != 1, blobs: forms != 0 }
    }

    fn strings(&self) -> Result<Vec<u8>, String> {
        let mut rows: Vec<(i64, String)> =
            self.names.iter().map(|(name, id)| (*id, (*name).to_owned())).collect();
        rows.sort_unstable();
        write::strings(&rows)
    }

    fn processes(&self) -> Result<Vec<u8>, String> {
        let rows = &self.seen.events.processes;
        Columns::new(&tables::PROCESSES, rows.len())
            .numbers("globalPid", rows.iter().map(|row| row.global_pid))
            .numbers("pid", rows.iter().map(|row| row.global_pid >> 24 & 0xff_ffff))
            .texts("name", rows.iter().map(|row| Some(&*row.name)))
            .bytes()
    }

    fn session(&self) -> Result<Vec<u8>, String> {
        let start = [self.seen.session_ns].into_iter();
        Columns::new(&tables::SESSION_START, 1).numbers("utcEpochNs", start).bytes()
    }

    fn host(&self) -> Result<Vec<u8>, String> {
        Columns::new(&tables::SYSTEM_ENV, 2)
            .texts("name", [Some("Hostname"), Some(tables::SIMULATED)].into_iter())
            .texts("value", [Some(self.rank.host()), Some(NOT_REAL)].into_iter())
            .bytes()
    }

    fn gpus(&self) -> Result<Vec<u8>, String> {
        let cluster = self.rank.cluster;
        let all = || 0..i64::from(cluster.gpus);
        Columns::new(&tables::TARGET_INFO_GPU, all().count())
            .numbers("id", all())
            .texts("name", all().map(|_| Some(cluster.gpu_name.as_str())))
            .numbers("cuDevice", all())
            .bytes()
    }

    fn diagnostics(&self) -> Result<Vec<u8>, String> {
        let events = self.seen.events.kernels.len();
        let mut rows = vec![(1, format!("Number of CUDA events collected: \t{events}."))];
        if self.rank.ailing() == Some(Ailing::EventsDropped) {
            let lost = "Not all CUDA events might have been collected: 4096 events were dropped.";
            rows.push((3, lost.to_owned()));
        }
        write::diagnostics(&rows)
    }
}
