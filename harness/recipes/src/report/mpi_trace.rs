//! Each call of MPI, with its partner and its bytes.

use super::ReportSpec;
use super::mpi::SOURCES;
use crate::result_table::{Column, Quantity, ResultTable};
use nsys::export::ExportError;
use nsys::tables::{MPI_COLLECTIVES, MPI_OTHER, MPI_P2P, MPI_RANKS, MPI_START_WAIT, STRING_IDS};
use nsys::trace::{Trace, pid_of, process_of, tid_of};
use std::collections::HashMap;

pub(super) const MPI_EVENT_TRACE: ReportSpec = ReportSpec {
    name: "mpi_event_trace",
    title: "MPI Event Trace",
    about: "each call of MPI in the order of their beginnings; calls without an end are left out",
    data: "MPI",
    arguments: &[],
    tables: &[&MPI_P2P, &MPI_COLLECTIVES, &MPI_START_WAIT, &MPI_OTHER, &MPI_RANKS, &STRING_IDS],
    run: |trace, _| {
        let calls = calls(trace)?;
        if calls.is_empty() {
            return Ok(None);
        }
        let ranks = Ranks::read(trace)?;
        let (plain, ns) = (Quantity::Plain, Quantity::BareNanoseconds);
        let maybe = |name: &str, value: &dyn Fn(&Call) -> Option<i64>| {
            Column::maybe_integers(name, plain, calls.iter().map(value))
        };
        let columns = vec![
            Column::integers("Start", ns, calls.iter().map(|call| call.start)),
            Column::integers("End", ns, calls.iter().map(|call| call.end)),
            Column::integers("Duration", ns, calls.iter().map(|call| call.end.saturating_sub(call.start))),
            Column::texts("Event", calls.iter().map(|call| call.name.as_str())),
            maybe("Pid", &|call| call.tid.map(pid_of)),
            maybe("Tid", &|call| call.tid.map(tid_of)),
            maybe("Tag", &|call| call.tag),
            maybe("Rank", &|call| ranks.rank(call.tid?)),
            maybe("PeerRank", &|call| call.peer),
            maybe("RootRank", &|call| call.root),
            maybe("Size", &|call| call.size),
            maybe("CollSendSize", &|call| call.sent),
            maybe("CollRecvSize", &|call| call.received),
        ];
        Ok(Some(ResultTable::new("mpi_event_trace", "MPI Event Trace", columns)))
    },
};

#[derive(Default)]
struct Call {
    start: i64,
    end: i64,
    name: String,
    tid: Option<i64>,
    tag: Option<i64>,
    peer: Option<i64>,
    root: Option<i64>,
    size: Option<i64>,
    sent: Option<i64>,
    received: Option<i64>,
}

fn calls(trace: &Trace) -> Result<Vec<Call>, ExportError> {
    let mut calls = Vec::new();
    let strings = trace.strings()?;
    for (_, spec) in SOURCES {
        let names: Vec<&str> = spec.columns.iter().map(|column| column.name).collect();
        let Some(rows) = trace.rows(spec, &names)? else { continue };
        let (starts, ends) = (rows.ints("start")?, rows.maybe_ints("end")?);
        // Counts what is left out, for the note.
        trace.open_durations("calls of MPI", starts, &ends);
        let (tids, texts) = (rows.maybe_ints("globalTid")?, rows.maybe_ints("textId")?);
        let mut others = HashMap::new();
        for name in ["tag", "remoteRank", "rootRank", "size", "recvSize"] {
            if names.contains(&name) {
                others.insert(name, rows.maybe_ints(name)?);
            }
        }
        let collective = spec.name == MPI_COLLECTIVES.name;
        for (row, start) in starts.iter().enumerate() {
            let Some(end) = ends.get(row).filter(|end| end >= start) else { continue };
            let of = |name: &str| others.get(name).and_then(|column| column.get(row));
            calls.push(Call {
                start: *start,
                end,
                name: texts.get(row).map(|id| strings.render(id).into_owned()).unwrap_or_default(),
                tid: tids.get(row),
                tag: of("tag"),
                peer: of("remoteRank"),
                root: of("rootRank"),
                size: if collective { None } else { of("size") },
                sent: if collective { of("size") } else { None },
                received: of("recvSize"),
            });
        }
    }
    calls.sort_by(|a, b| (a.start, a.end, a.tid, &a.name).cmp(&(b.start, b.end, b.tid, &b.name)));
    Ok(calls)
}

/// The rank of a thread, or of the process that it belongs to.
struct Ranks(HashMap<i64, i64>);

impl Ranks {
    fn read(trace: &Trace) -> Result<Ranks, ExportError> {
        let mut ranks = HashMap::new();
        if let Some(rows) = trace.export().table(&MPI_RANKS)? {
            for (tid, rank) in rows.ints("globalTid")?.iter().zip(rows.ints("rank")?) {
                ranks.insert(*tid, *rank);
                ranks.entry(process_of(*tid)).or_insert(*rank);
            }
        }
        Ok(Ranks(ranks))
    }

    fn rank(&self, tid: i64) -> Option<i64> {
        self.0.get(&tid).or_else(|| self.0.get(&process_of(tid))).copied()
    }
}
