//! How far communication is hidden behind computation: of each kernel how much of it runs beside kernels of the other
//! kind on its GPU, and of each GPU how much of its communication is exposed.

use super::{Across, Made, RecipeKind, ReportExtract, ReportRecipe, labels};
use crate::busy::{self, Busy, Operation};
use crate::chart::{Axis, Bar, Bars, Chart, Figure};
use crate::recipe::of_reports::columns::TableDoc;
use crate::report::argument;
use crate::report::{ArgumentSpec, Arguments, Takes};
use crate::result_table::{Column, Quantity, ResultTable};
use crate::spans::Spans;
use nsys::export::ExportError;
use nsys::tables::{GRAPH_TRACE, KERNEL, MEMCPY, MEMSET, STRING_IDS};
use nsys::trace::Trace;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub(super) const NCCL_GPU_OVERLAP_TRACE: ReportRecipe = ReportRecipe {
    name: "nccl_gpu_overlap_trace",
    title: "Communication beside Computation",
    about: "how much of each kernel overlaps with kernels of the other kind, and how much communication is exposed",
    definition: "kernels of the classes nccl and comm communicate, all others compute; with `nccl-only` those \
                 communicate whose names begin with nccl. The overlap of a kernel is the part of it during which a \
                 kernel of the other kind runs on the same GPU; kernels of its own kind on other streams do not count. \
                 Totals are lengths of unions: exposed communication is communication without a moment of computation. \
                 Percentages are of the GPU's own total. A filter by time cuts kernels. Where graphs were traced as a \
                 whole, their kernels are unknown: overlaps of that GPU are lower bounds, and exposed communication is \
                 left empty",
    arguments: &[NCCL_ONLY],
    tables: &[&KERNEL, &STRING_IDS, &MEMCPY, &MEMSET, &GRAPH_TRACE],
    kind: RecipeKind::Together(&Across {
        tables: &[
            TableDoc {
                name: "totals",
                about: "one row per GPU of each process",
                columns: &[&[
                    "Rank",
                    "PID",
                    "Device",
                    "Communication",
                    "Compute",
                    "Overlap",
                    "Overlap of Communication: overlap as a share of communication",
                    "Overlap of Compute: overlap as a share of compute",
                    "Exposed Communication",
                    "Exposed of Communication",
                ]],
            },
            TableDoc {
                name: "trace",
                about: "one row per kernel",
                columns: &[&[
                    "Rank",
                    "PID",
                    "Device",
                    "Stream",
                    "Start",
                    "Duration",
                    "Kind: compute or communication",
                    "Overlap: time beside kernels of the other kind",
                    "Overlap of Duration: the same as a share of its duration",
                    "Name: the kernel",
                ]],
            },
        ],
        charts: &[("exposed", "the exposed part of each GPU's communication, as bars")],
        take,
        make,
    }),
};

const NCCL_ONLY: ArgumentSpec =
    argument!("nccl-only", "communication is only kernels whose names begin with nccl", Takes::Nothing);

#[derive(Serialize, Deserialize)]
struct Extract {
    gpus: Vec<Totals>,
    kernels: Vec<Row>,
    names: Vec<Arc<str>>,
}

#[derive(Serialize, Deserialize)]
struct Totals {
    pid: Option<i64>,
    device: i64,
    /// Lengths of unions: communication, computation, both at once.
    communication: u64,
    compute: u64,
    overlap: u64,
    has_graphs: bool,
}

#[derive(Serialize, Deserialize)]
struct Row {
    gpu: u32,
    communicates: bool,
    start: i64,
    ns: u64,
    stream: Option<i64>,
    overlap: u64,
    name: u32,
}

fn take(trace: &Trace, arguments: &Arguments) -> Result<Option<(Extract, u64)>, ExportError> {
    let Some(busy) = Busy::read(trace)? else { return Ok(None) };
    let nccl_only = arguments.has(NCCL_ONLY.name);
    let communicates = |one: &Operation| match busy.kernels.get(one.name as usize) {
        Some(name) if nccl_only => name.short.to_lowercase().starts_with("nccl"),
        _ => one.kind == busy::Activity::Communication,
    };
    let is_kernel = |one: &&Operation| (one.name as usize) < busy.kernels.len();
    let (mut gpus, mut kernels) = (Vec::new(), Vec::new());
    for (at, gpu) in busy.gpus.iter().enumerate() {
        let of = |wanted: bool| {
            let of_kind = gpu.operations.iter().filter(is_kernel).filter(|one| communicates(one) == wanted);
            Spans::union(of_kind.map(Operation::span))
        };
        let (communication, compute) = (of(true), of(false));
        let (beside_communication, beside_compute) = (compute.ruler(), communication.ruler());
        for one in gpu.operations.iter().filter(is_kernel) {
            let communicates = communicates(one);
            let other = if communicates { &beside_communication } else { &beside_compute };
            kernels.push(Row {
                gpu: at as u32,
                communicates,
                start: one.start,
                ns: one.ns(),
                stream: one.stream,
                overlap: other.within(one.start, one.end),
                name: one.name,
            });
        }
        gpus.push(Totals {
            pid: gpu.pid(),
            device: gpu.device,
            communication: communication.ns(),
            compute: compute.ns(),
            overlap: communication.and(&compute).ns(),
            has_graphs: gpu.has_whole_graphs(),
        });
    }
    if kernels.is_empty() {
        return Ok(None);
    }
    let names = busy.kernels.into_iter().map(|name| Arc::from(name.whole)).collect();
    let rows = kernels.len() as u64;
    Ok(Some((Extract { gpus, kernels, names }, rows)))
}

fn make(reports: &[ReportExtract<&Extract>], _: &Arguments) -> Made {
    let tables = vec![("totals", totals(reports)), ("trace", rows(reports))];
    Made { tables, charts: chart(reports).into_iter().collect(), ..Made::default() }
}

/// `None` where no GPU communicated, or its overlap is unknown.
fn chart(reports: &[ReportExtract<&Extract>]) -> Option<Chart> {
    let all: Vec<(i64, &Totals)> =
        reports.iter().flat_map(|report| report.extract.gpus.iter().map(|gpu| (report.rank, gpu))).collect();
    let places: Vec<labels::LabelKey> =
        all.iter().map(|(rank, gpu)| (*rank, gpu.pid, Some(gpu.device))).collect();
    let bars = all.iter().zip(labels::unique(&places)).map(|((rank, gpu), label)| Bar {
        label,
        rank: Some(*rank),
        value: share(exposed(gpu), gpu.communication),
    });
    let bars: Vec<Bar> = bars.collect();
    bars.iter().any(|bar| bar.value.is_some()).then(|| Chart {
        name: "exposed".into(),
        title: "Exposed Communication".to_owned(),
        about:
            "fraction of each GPU's communication without compute beside it; hidden communication costs no time"
                .to_owned(),
        figure: Figure::Bars(Bars {
            value: Axis::linear("Exposed of Communication", Quantity::Percent),
            bars,
            marks: Vec::new(),
        }),
    })
}

/// Not known where graphs were traced as a whole.
fn exposed(gpu: &Totals) -> Option<u64> {
    (!gpu.has_graphs).then_some(gpu.communication - gpu.overlap)
}

fn share(part: Option<u64>, whole: u64) -> Option<f64> {
    part.filter(|_| whole > 0).map(|part| 100.0 * part as f64 / whole as f64)
}

fn totals(reports: &[ReportExtract<&Extract>]) -> ResultTable {
    let all: Vec<(i64, &Totals)> =
        reports.iter().flat_map(|report| report.extract.gpus.iter().map(|gpu| (report.rank, gpu))).collect();
    let time = |name: &str, of: &dyn Fn(&Totals) -> Option<u64>| {
        let values = all.iter().map(|(_, gpu)| of(gpu).and_then(|ns| i64::try_from(ns).ok()));
        Column::maybe_integers(name, Quantity::Nanoseconds, values)
    };
    let percent = |name: &str, of: &dyn Fn(&Totals) -> Option<f64>| {
        Column::maybe_decimals(name, Quantity::Percent, all.iter().map(|(_, gpu)| of(gpu)))
    };
    let columns = vec![
        Column::integers("Rank", Quantity::Plain, all.iter().map(|(rank, _)| *rank)),
        Column::maybe_integers("PID", Quantity::Plain, all.iter().map(|(_, gpu)| gpu.pid)),
        Column::integers("Device", Quantity::Plain, all.iter().map(|(_, gpu)| gpu.device)),
        time("Communication", &|gpu| Some(gpu.communication)),
        time("Compute", &|gpu| Some(gpu.compute)),
        time("Overlap", &|gpu| Some(gpu.overlap)),
        percent("Overlap of Communication", &|gpu| share(Some(gpu.overlap), gpu.communication)),
        percent("Overlap of Compute", &|gpu| share(Some(gpu.overlap), gpu.compute)),
        time("Exposed Communication", &exposed),
        percent("Exposed of Communication", &|gpu| share(exposed(gpu), gpu.communication)),
    ];
    ResultTable::new(NCCL_GPU_OVERLAP_TRACE.name, NCCL_GPU_OVERLAP_TRACE.title, columns)
}

fn rows(reports: &[ReportExtract<&Extract>]) -> ResultTable {
    let all: Vec<(i64, &Extract, &Row)> = reports
        .iter()
        .flat_map(|report| report.extract.kernels.iter().map(|row| (report.rank, report.extract, row)))
        .collect();
    let gpu = |extract: &Extract, row: &Row| {
        (extract.gpus[row.gpu as usize].pid, extract.gpus[row.gpu as usize].device)
    };
    let time = |name: &str, of: fn(&Row) -> u64| {
        let values = all.iter().map(|(.., row)| i64::try_from(of(row)).ok());
        Column::maybe_integers(name, Quantity::Nanoseconds, values)
    };
    let kinds: [Arc<str>; 2] = [Arc::from("compute"), Arc::from("communication")];
    let columns = vec![
        Column::integers("Rank", Quantity::Plain, all.iter().map(|(rank, ..)| *rank)),
        Column::maybe_integers(
            "PID",
            Quantity::Plain,
            all.iter().map(|(_, extract, row)| gpu(extract, row).0),
        ),
        Column::integers("Device", Quantity::Plain, all.iter().map(|(_, extract, row)| gpu(extract, row).1)),
        Column::maybe_integers("Stream", Quantity::Plain, all.iter().map(|(.., row)| row.stream)),
        Column::integers("Start", Quantity::Nanoseconds, all.iter().map(|(.., row)| row.start)),
        time("Duration", |row| row.ns),
        Column::texts("Kind", all.iter().map(|(.., row)| kinds[usize::from(row.communicates)].clone())),
        time("Overlap", |row| row.overlap),
        Column::maybe_decimals(
            "Overlap of Duration",
            Quantity::Percent,
            all.iter().map(|(.., row)| share(Some(row.overlap), row.ns)),
        ),
        Column::texts("Name", all.iter().map(|(_, extract, row)| extract.names[row.name as usize].clone())),
    ];
    ResultTable::new(NCCL_GPU_OVERLAP_TRACE.name, NCCL_GPU_OVERLAP_TRACE.title, columns)
}

#[cfg(test)]
mod tests {
    use crate::recipe::of_reports::tests::{decimals, inputs, integers, surveyed, table, texts};
    use crate::testing::Made;

    /// Communication from 0 to 10 and from 4 to 12, computation from 5 to 8 and from 20 to 30, a fill from 0 to 12.
    fn made() -> Made {
        let made = Made::begin();
        for (id, whole) in
            [(1, "ncclDevKernel_SendRecv()"), (3, "void deep_ep::intranode::dispatch<8>()"), (5, "gemm()")]
        {
            made.string(id, whole).string(id + 1, whole.split(['(', '<']).next().unwrap_or_default());
        }
        made.kernel((0, 10), 1, 1).kernel((4, 12), 2, 3).kernel((5, 8), 3, 5).kernel((20, 30), 4, 5);
        made.fill((0, 12), 5);
        made
    }

    #[test]
    fn overlaps_are_with_kernels_of_the_other_kind_alone() {
        let outcome = surveyed("nccl_gpu_overlap_trace", &[], &inputs(vec![made().path()]));
        let totals = table(&outcome, "totals");
        for (column, expected) in
            [("Communication", 12), ("Compute", 13), ("Overlap", 3), ("Exposed Communication", 9)]
        {
            assert_eq!(integers(totals, column), [Some(expected)], "{column}");
        }
        assert_eq!(decimals(totals, "Exposed of Communication"), [Some(75.0)]);
        let trace = table(&outcome, "trace");
        assert_eq!(integers(trace, "Overlap"), [Some(3), Some(3), Some(3), Some(0)]);
        assert_eq!(texts(trace, "Kind"), ["communication", "communication", "compute", "compute"]);
    }

    #[test]
    fn communication_may_be_what_begins_with_nccl_alone() {
        let outcome = surveyed("nccl_gpu_overlap_trace", &["nccl-only"], &inputs(vec![made().path()]));
        assert_eq!(integers(table(&outcome, "totals"), "Overlap"), [Some(6)]);
        assert_eq!(texts(table(&outcome, "trace"), "Kind")[1], "compute");
    }

    #[test]
    fn without_kernels_there_is_nothing_to_overlap() {
        let made = Made::begin();
        made.fill((0, 12), 5);
        assert!(surveyed("nccl_gpu_overlap_trace", &[], &inputs(vec![made.path()])).tables.is_empty());
    }
}
