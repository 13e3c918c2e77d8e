//! What kept each GPU of a report busy: kernels with their classes, copies and fills, and graphs that were traced as a
//! whole. The recipes compute shares, gaps and overlaps from it.

mod partition;
#[cfg(test)]
mod tests;

pub use partition::{Sets, Shares};

use crate::kernel_class::{class_of_both, communicates};
use nsys::export::{ExportError, MaybeInts, Rows};
use nsys::tables::{GRAPH_TRACE, KERNEL, MEMCPY, MEMSET, TableSpec};
use nsys::trace::NO_GROUP;
use nsys::trace::{Keys, Part, Trace, pid_of};
use std::collections::BTreeMap;

/// The tables that it is read from.
pub(crate) const TABLES: [&TableSpec; 4] = [&KERNEL, &MEMCPY, &MEMSET, &GRAPH_TRACE];

/// All operations on the GPUs of one report, as its filters leave them.
pub(crate) struct Busy {
    /// By process and number of the device; at least one, each with at least one operation.
    pub gpus: Vec<Gpu>,
    /// Each distinct pair of names once; `Operation::name` indexes it.
    pub kernels: Vec<KernelName>,
    /// From the first beginning to the last end on any GPU of the report, or what a filter by time leaves of that.
    pub window: (i64, i64),
    /// Rows of all `TABLES` that the filters left, those of `backwards` included.
    pub rows: u64,
    /// How many of them end before they begin, and are in no GPU's operations.
    pub backwards: u64,
}

/// A device as one process sees it: two processes number their devices each for itself.
pub(crate) struct Gpu {
    /// `globalPid` of the export; `None` where a row has none.
    pub process: Option<i64>,
    /// `deviceId` of the export: the process's number for the GPU.
    pub device: i64,
    /// In the order of their beginnings.
    pub operations: Vec<Operation>,
}

impl Gpu {
    /// The process id on its host, from the global one.
    pub(crate) fn pid(&self) -> Option<i64> {
        self.process.map(pid_of)
    }

    /// Whether graphs were traced as a whole, so that their kernels are unknown.
    pub(crate) fn has_whole_graphs(&self) -> bool {
        self.operations.iter().any(|one| one.kind == Activity::Graph)
    }
}

/// Times are within the filter's span, where there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Operation {
    /// Nanoseconds on the report's clock.
    pub start: i64,
    /// Nanoseconds on the report's clock; never before `start`.
    pub end: i64,
    /// `streamId` of the export; `None` where the row has none.
    pub stream: Option<i64>,
    /// `contextId` of the export; `None` where the row has none.
    pub context: Option<i64>,
    /// By the table, and for a kernel by its class.
    pub kind: Activity,
    /// Of a kernel its place among the names.
    pub name: u32,
    /// Index of its table in `TABLES`.
    pub table: u8,
    /// Index among the rows of that table that the filter left.
    pub row: u32,
}

impl Operation {
    /// `start` and `end`.
    pub(crate) fn span(&self) -> (i64, i64) {
        (self.start, self.end)
    }

    /// Duration in nanoseconds.
    pub(crate) fn ns(&self) -> u64 {
        self.end.wrapping_sub(self.start) as u64
    }
}

/// Kernels communicate or compute; copies and fills are memory's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Activity {
    /// A kernel of any class but `nccl` and `comm`.
    Compute,
    /// A kernel of the class `nccl` or `comm`.
    Communication,
    /// A copy or a fill.
    Memory,
    /// A graph of which nothing is known but when it ran.
    Graph,
}

/// Both names of a kernel, and its class.
pub(crate) struct KernelName {
    /// `shortName` of the export: `ncclDevKernel_AllReduce`.
    pub short: String,
    /// `demangledName` of the export, with types and arguments.
    pub whole: String,
    /// One of `CLASSES`, by both names.
    pub class: &'static str,
}

/// Process and number of the device.
type Place = (Option<i64>, i64);

impl Busy {
    /// `None` where nothing ran on a GPU. What ends before it begins is left out and noted.
    pub(crate) fn read(trace: &Trace) -> Result<Option<Busy>, ExportError> {
        let cut = trace.asked_span();
        let mut gpus: BTreeMap<Place, Vec<Operation>> = BTreeMap::new();
        let (mut kernels, mut rows, mut backwards) = (Vec::new(), 0, 0);
        for (at, (spec, what)) in TABLES.into_iter().zip(["kernels", "copies", "fills", "graphs"]).enumerate()
        {
            let is_kernel = spec.name == KERNEL.name;
            let mut columns = vec!["start", "end", "deviceId", "globalPid", "streamId", "contextId"];
            if is_kernel {
                columns.extend(["shortName", "demangledName"]);
            }
            let Some(table) = trace.rows(spec, &columns)? else { continue };
            rows += table.len() as u64;
            let mut of_row = Vec::new();
            if is_kernel {
                (kernels, of_row) = names(trace, &table)?;
            }
            let kind = |name: u32| match (is_kernel, kernels.get(name as usize)) {
                (true, Some(KernelName { class, .. })) if communicates(class) => Activity::Communication,
                (true, _) => Activity::Compute,
                (false, _) if spec.name == GRAPH_TRACE.name => Activity::Graph,
                (false, _) => Activity::Memory,
            };
            let columns = Columns::read(&table)?;
            // Counts what is left out, for the note.
            trace.durations(what, columns.starts, columns.ends);
            let mut last: Option<(Place, Vec<Operation>)> = None;
            for row in 0..table.len() {
                let (start, end) = (columns.starts[row], columns.ends[row]);
                if end < start {
                    backwards += 1;
                    continue;
                }
                let (from, to) = cut.unwrap_or((i64::MIN, i64::MAX));
                let (start, end) = (start.max(from), end.min(to));
                let name = of_row.get(row).copied().unwrap_or(NO_GROUP);
                let operation = Operation {
                    start,
                    end: end.max(start),
                    stream: columns.streams.get(row),
                    context: columns.contexts.get(row),
                    kind: kind(name),
                    name,
                    table: at as u8,
                    row: row as u32,
                };
                let gpu = (columns.processes.get(row), columns.devices[row]);
                // Operations of one GPU stand in long runs.
                match &mut last {
                    Some((of, run)) if *of == gpu => run.push(operation),
                    _ => {
                        if let Some((of, run)) = last.replace((gpu, vec![operation])) {
                            gpus.entry(of).or_default().extend(run);
                        }
                    }
                }
            }
            if let Some((of, run)) = last {
                gpus.entry(of).or_default().extend(run);
            }
        }
        let gpus: Vec<Gpu> = gpus
            .into_iter()
            .map(|((process, device), mut operations)| {
                operations.sort_unstable_by_key(|one| (one.start, one.end, one.table, one.row));
                Gpu { process, device, operations }
            })
            .collect();
        let Some(found) = bounds(gpus.iter().flat_map(|gpu| &gpu.operations).map(Operation::span)) else {
            return Ok(None);
        };
        // A filter that reaches beyond what was recorded finds no idle time there.
        let window = match cut {
            Some((from, to)) => {
                let (first, last) = recorded(trace)?.unwrap_or(found);
                (first.max(from), last.min(to))
            }
            None => found,
        };
        for gpu in gpus.iter().filter(|gpu| gpu.has_whole_graphs()) {
            let graphs = gpu.operations.iter().filter(|one| one.kind == Activity::Graph).count();
            trace.note(format!(
                "device {}: {graphs} CUDA graphs traced as a whole, their kernels are unknown; trace with \
                 `--cuda-graph-trace=node`",
                gpu.device
            ));
        }
        Ok(Some(Busy { gpus, kernels, window, rows, backwards }))
    }
}

struct Columns<'a> {
    starts: &'a [i64],
    ends: &'a [i64],
    devices: &'a [i64],
    processes: MaybeInts<'a>,
    streams: MaybeInts<'a>,
    contexts: MaybeInts<'a>,
}

impl Columns<'_> {
    fn read(rows: &Rows) -> Result<Columns<'_>, ExportError> {
        Ok(Columns {
            starts: rows.ints("start")?,
            ends: rows.ints("end")?,
            devices: rows.ints("deviceId")?,
            processes: rows.maybe_ints("globalPid")?,
            streams: rows.maybe_ints("streamId")?,
            contexts: rows.maybe_ints("contextId")?,
        })
    }
}

/// The names of kernels, and of each row which.
fn names(trace: &Trace, rows: &Rows) -> Result<(Vec<KernelName>, Vec<u32>), ExportError> {
    let strings = trace.strings()?;
    let short = Part::named(rows.ints("shortName")?.iter().copied(), strings, |name| name);
    let whole = Part::named(rows.ints("demangledName")?.iter().copied(), strings, |name| name);
    let keys = Keys::by(&[&short.of_row, &whole.of_row]);
    let names = keys.groups.iter().map(|group| {
        let (short, whole) = (&short.labels[group[0] as usize], &whole.labels[group[1] as usize]);
        KernelName { short: short.clone(), whole: whole.clone(), class: class_of_both(short, whole) }
    });
    Ok((names.collect(), keys.of_row))
}

/// From the first beginning to the last end on any GPU, whatever the filter leaves.
fn recorded(trace: &Trace) -> Result<Option<(i64, i64)>, ExportError> {
    let mut all = Vec::new();
    for spec in TABLES {
        let Some(rows) = trace.export().columns(spec, &["start", "end"])? else { continue };
        let spans = rows.ints("start")?.iter().copied().zip(rows.ints("end")?.iter().copied());
        all.extend(bounds(spans.filter(|(start, end)| end >= start)));
    }
    Ok(bounds(all.into_iter()))
}

fn bounds(spans: impl Iterator<Item = (i64, i64)>) -> Option<(i64, i64)> {
    spans.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)))
}
