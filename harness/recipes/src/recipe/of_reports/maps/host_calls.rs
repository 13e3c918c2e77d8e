//! Of each GPU how much of its time kernels ran and its process was within calls of MPI or of UCX, each alone and both at
//! once.

use super::cuda::{runs, span, union, with};
use super::shares::{self, Extract, ProcessGpu, Shares};
use super::window::{BINS, NO_SHIFT};
use crate::busy::Busy;
use crate::recipe::of_reports::columns::TableDoc;
use crate::recipe::of_reports::together::Share;
use crate::recipe::of_reports::{Across, Made, RecipeKind, ReportExtract, ReportRecipe};
use crate::report::{Arguments, MPI_SOURCES};
use crate::spans::Spans;
use nsys::export::ExportError;
use nsys::tables::{
    GRAPH_TRACE, KERNEL, MPI_COLLECTIVES, MPI_OTHER, MPI_P2P, MPI_START_WAIT, NVTX_EVENTS, STRING_IDS,
    TableSpec, UCP, UCP_PROGRESS, UCP_SUBMIT,
};
use nsys::trace::nvtx::{Domains, PUSH_POP, START_END};
use nsys::trace::{Trace, process_of};
use std::collections::BTreeMap;

pub(in super::super) const MPI_GPU_TIME_UTIL_MAP: ReportRecipe = ReportRecipe {
    name: "mpi_gpu_time_util_map",
    title: "GPU Time and MPI",
    about: "fraction of time in which kernels ran, the process was within MPI, and both at once, by GPU and over time",
    definition: "as `cuda_gpu_time_util_map`; with the union of the GPU's kernels, the union of all MPI calls of all \
                 threads of its process, and the intersection of both. A call without an end is left out. In reports \
                 of 2022, which have no tables of MPI, the ranges of NVTX's domain `MPI` are the calls",
    arguments: &[BINS, NO_SHIFT],
    tables: &[
        &MPI_P2P,
        &MPI_COLLECTIVES,
        &MPI_START_WAIT,
        &MPI_OTHER,
        &KERNEL,
        &GRAPH_TRACE,
        &NVTX_EVENTS,
        &STRING_IDS,
    ],
    kind: RecipeKind::Together(&Across {
        tables: &[
            TableDoc {
                name: "totals",
                about: "one row per GPU of each process, or per process",
                columns: &[
                    &["Rank", "PID", "Device", "Measured"],
                    &[
                        "Kernels Time: time in which kernels ran",
                        "MPI Time: time in which the process was within MPI",
                        "Overlap Time: time in which both went on at once",
                    ],
                    &[
                        "Kernels: share of the measured time in which kernels ran",
                        "MPI: share of the measured time in which the process was within MPI",
                        "Overlap: share of the measured time in which both went on at once",
                    ],
                ],
            },
            TableDoc {
                name: "heatmap",
                about: "one row per bin of time of each",
                columns: &[
                    &["Rank", "PID", "Device", "Start", "End", "Measured"],
                    &[
                        "Kernels: share of the measured time in which kernels ran",
                        "MPI: share of the measured time in which the process was within MPI",
                        "Overlap: share of the measured time in which both went on at once",
                    ],
                ],
            },
        ],
        charts: &[
            ("kernels", "the share of time in which kernels ran, over time, by GPU"),
            ("mpi", "the same of the process within MPI"),
            ("overlap", "the same of both at once"),
        ],
        take: take_mpi,
        make: make_mpi,
    }),
};

pub(in super::super) const UCX_GPU_TIME_UTIL_MAP: ReportRecipe = ReportRecipe {
    name: "ucx_gpu_time_util_map",
    title: "GPU Time and UCX",
    about: "fraction of time in which kernels ran, the process was within UCX, and both at once, by GPU and over time",
    definition: "as `mpi_gpu_time_util_map`, with the calls of UCX of all kinds in place of those of MPI",
    arguments: &[BINS, NO_SHIFT],
    tables: &[&UCP, &UCP_SUBMIT, &UCP_PROGRESS, &KERNEL, &GRAPH_TRACE, &STRING_IDS],
    kind: RecipeKind::Together(&Across {
        tables: &[
            TableDoc {
                name: "totals",
                about: "one row per GPU of each process, or per process",
                columns: &[
                    &["Rank", "PID", "Device", "Measured"],
                    &[
                        "Kernels Time: time in which kernels ran",
                        "UCX Time: time in which the process was within UCX",
                        "Overlap Time: time in which both went on at once",
                    ],
                    &[
                        "Kernels: share of the measured time in which kernels ran",
                        "UCX: share of the measured time in which the process was within UCX",
                        "Overlap: share of the measured time in which both went on at once",
                    ],
                ],
            },
            TableDoc {
                name: "heatmap",
                about: "one row per bin of time of each",
                columns: &[
                    &["Rank", "PID", "Device", "Start", "End", "Measured"],
                    &[
                        "Kernels: share of the measured time in which kernels ran",
                        "UCX: share of the measured time in which the process was within UCX",
                        "Overlap: share of the measured time in which both went on at once",
                    ],
                ],
            },
        ],
        charts: &[
            ("kernels", "the share of time in which kernels ran, over time, by GPU"),
            ("ucx", "the same of the process within UCX"),
            ("overlap", "the same of both at once"),
        ],
        take: take_ucx,
        make: make_ucx,
    }),
};

const KERNELS: shares::ShareKind =
    shares::ShareKind { name: "kernels", heading: "Kernels", title: "GPU time in which kernels ran" };

const OF_MPI: Shares = Shares {
    name: MPI_GPU_TIME_UTIL_MAP.name,
    title: MPI_GPU_TIME_UTIL_MAP.title,
    kinds: &[
        KERNELS,
        shares::ShareKind { name: "mpi", heading: "MPI", title: "time in which the process was within MPI" },
    ],
    both: Some(shares::ShareKind {
        name: "overlap",
        heading: "Overlap",
        title: "time in which kernels ran and the process was within MPI",
    }),
};

const OF_UCX: Shares = Shares {
    name: UCX_GPU_TIME_UTIL_MAP.name,
    title: UCX_GPU_TIME_UTIL_MAP.title,
    kinds: &[
        KERNELS,
        shares::ShareKind { name: "ucx", heading: "UCX", title: "time in which the process was within UCX" },
    ],
    both: Some(shares::ShareKind {
        name: "overlap",
        heading: "Overlap",
        title: "time in which kernels ran and the process was within UCX",
    }),
};

fn take_mpi(trace: &Trace, _: &Arguments) -> Share<Extract> {
    let mut calls = Calls::default();
    for (_, spec) in MPI_SOURCES {
        calls.take(trace, spec, "calls of MPI")?;
    }
    if calls.rows == 0 {
        calls.take_ranges(trace)?;
    }
    take(trace, calls)
}

fn take_ucx(trace: &Trace, _: &Arguments) -> Share<Extract> {
    let mut calls = Calls::default();
    for spec in [&UCP, &UCP_SUBMIT, &UCP_PROGRESS] {
        calls.take(trace, spec, "calls of UCX")?;
    }
    take(trace, calls)
}

fn make_mpi(reports: &[ReportExtract<&Extract>], arguments: &Arguments) -> Made {
    shares::make(&OF_MPI, reports, arguments)
}

fn make_ucx(reports: &[ReportExtract<&Extract>], arguments: &Arguments) -> Made {
    shares::make(&OF_UCX, reports, arguments)
}

/// Spans of calls, by the process of their thread where that is recorded.
#[derive(Default)]
struct Calls {
    of_process: BTreeMap<Option<i64>, Vec<(i64, i64)>>,
    rows: u64,
}

impl Calls {
    fn take(&mut self, trace: &Trace, spec: &'static TableSpec, what: &str) -> Result<(), ExportError> {
        let Some(rows) = trace.rows(spec, &["start", "end", "globalTid"])? else { return Ok(()) };
        let (starts, ends, tids) =
            (rows.ints("start")?, rows.maybe_ints("end")?, rows.maybe_ints("globalTid")?);
        // Counts what is left out, for the note.
        trace.open_durations(what, starts, &ends);
        for (row, start) in starts.iter().enumerate() {
            if let Some(end) = ends.get(row) {
                self.put(trace, tids.get(row), (*start, end));
            }
        }
        Ok(())
    }

    fn take_ranges(&mut self, trace: &Trace) -> Result<(), ExportError> {
        let columns = ["start", "end", "eventType", "globalTid", "domainId"];
        let Some(rows) = trace.rows(&NVTX_EVENTS, &columns)? else { return Ok(()) };
        let (starts, ends, kinds) = (rows.ints("start")?, rows.maybe_ints("end")?, rows.ints("eventType")?);
        let (tids, ids) = (rows.maybe_ints("globalTid")?, rows.maybe_ints("domainId")?);
        let domains = Domains::read(trace.export())?;
        for (row, start) in starts.iter().enumerate() {
            let of = |tid: i64, id: i64| id != 0 && domains.name(tid, id) == "MPI";
            let is_call = [PUSH_POP, START_END].contains(&kinds[row])
                && tids.get(row).zip(ids.get(row)).is_some_and(|(tid, id)| of(tid, id));
            if let (true, Some(end)) = (is_call, ends.get(row)) {
                self.put(trace, tids.get(row), (*start, end));
            }
        }
        Ok(())
    }

    fn put(&mut self, trace: &Trace, tid: Option<i64>, (start, end): (i64, i64)) {
        let (from, to) = trace.asked_span().unwrap_or((i64::MIN, i64::MAX));
        if end >= start {
            self.rows += 1;
            let cut = (start.max(from), end.min(to));
            self.of_process.entry(tid.map(process_of)).or_default().push(cut);
        }
    }
}

fn take(trace: &Trace, calls: Calls) -> Share<Extract> {
    if calls.rows == 0 {
        return Ok(None);
    }
    let first = calls.of_process.values().flatten().copied();
    let Some(mut shown) = first.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1))) else {
        return Ok(None);
    };
    let unions: BTreeMap<Option<i64>, Spans> =
        calls.of_process.into_iter().map(|(process, spans)| (process, Spans::union(spans))).collect();
    let mut places: Vec<ProcessGpu> = Vec::new();
    let mut rows = calls.rows;
    if let Some(busy) = Busy::read(trace)?
        && let Some((kernels, more)) = span(&busy, runs)
    {
        shown = (shown.0.min(kernels.0), shown.1.max(kernels.1));
        rows += more;
        let places_of = with(&busy, runs).map(|gpu| ProcessGpu {
            process: gpu.process,
            device: Some(gpu.device),
            sets: vec![Some(union(gpu, runs)), Some(process_spans(&unions, gpu.process))],
            unknown: Spans::default(),
        });
        places.extend(places_of);
    }
    // Where the process of a GPU is not recorded, all calls are shown for it.
    let without_process = places.iter().any(|place| place.process.is_none());
    for (process, union) in unions {
        if !without_process && places.iter().all(|place| place.process != process) {
            places.push(ProcessGpu {
                process,
                device: None,
                sets: vec![None, Some(union)],
                unknown: Spans::default(),
            });
        }
    }
    Ok(Some((shares::extract(trace, shown, places), rows)))
}

fn process_spans(unions: &BTreeMap<Option<i64>, Spans>, process: Option<i64>) -> Spans {
    match process {
        Some(_) => unions.get(&process).cloned().unwrap_or_default(),
        None => Spans::union(unions.values().flat_map(|union| union.as_slice().iter().copied())),
    }
}
