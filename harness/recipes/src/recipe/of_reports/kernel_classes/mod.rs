//! Time shares of kernel classes, by sum and by union, of each GPU, each report and all; and the bottleneck that
//! follows. `rule` has the rule, `published` the classes of a published script.

mod published;
mod result_tables;
mod rule;
#[cfg(test)]
mod tests;

use super::{Across, Made, RecipeKind, ReportExtract, ReportRecipe};
use crate::busy::{Busy, KernelName, Operation};
use crate::figures::Stats;
use crate::kernel_class::CLASSES;
use crate::recipe::of_reports::columns::TableDoc;
use crate::report::argument;
use crate::report::{self, ArgumentSpec, Arguments, Takes};
use crate::spans::Spans;
use nsys::export::ExportError;
use nsys::tables::{GRAPH_TRACE, KERNEL, MEMCPY, MEMCPY_OPER, MEMSET, RUNTIME, STRING_IDS};
use nsys::trace::Trace;
use rule::Figures;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub(super) const KERNEL_CLASSES: ReportRecipe = ReportRecipe {
    name: "kernel_classes",
    title: "Classes of Kernels",
    about: "time shares of kernel classes by sum and by union, the bottleneck, and what to try",
    definition: "a kernel's class follows from the words of its names; the first of nccl, comm, gemm, attention, \
                 memory, norm, elementwise, other that fits counts. `Time` is the sum of durations, which counts \
                 concurrent kernels each; `Union` is the time in which a kernel of the class ran on a GPU, summed over \
                 GPUs; shares are of all kernels. The bottleneck is the first exceeded bound of: communication (nccl \
                 and comm), the share of calls with `Synchronize` in their names in the time of all calls, compute \
                 (gemm and attention), memory (copying kernels); shares of kernels by union. Where no calls were \
                 recorded and communication does not exceed its bound, the bottleneck is unknown. `compat` has the \
                 classes of a published script, by parts of whole names, its shares by sum, its rounding of calls, and \
                 unrecorded calls count as 0. A filter by time cuts kernels",
    arguments: &[
        COMPAT,
        rule::COMMUNICATION,
        rule::SYNC,
        rule::COMPUTE,
        rule::MEMORY,
        rule::ADVISE_COMMUNICATION,
        rule::ADVISE_TRANSFERS,
        rule::ADVISE_SYNC,
        rule::ADVISE_SPREAD,
        rule::ADVISE_RUNS,
    ],
    tables: &[&KERNEL, &STRING_IDS, &RUNTIME, &MEMCPY, &MEMCPY_OPER, &MEMSET, &GRAPH_TRACE],
    kind: RecipeKind::Together(&Across {
        tables: &[
            TableDoc {
                name: "classes",
                about: "one row per class, of all reports together",
                columns: &[CLASS, NAMES],
            },
            TableDoc {
                name: "rank_classes",
                about: "one row per class of each report",
                columns: &[&["Rank"], CLASS, NAMES],
            },
            TableDoc {
                name: "gpu_classes",
                about: "one row per class on each GPU",
                columns: &[&["Rank", "PID", "Device"], CLASS, &["Class"]],
            },
            TableDoc {
                name: "bottlenecks",
                about: "what bounds the work of all reports, and of each",
                columns: &[&[
                    "Rank",
                    "Bottleneck: what bounds the work",
                    "Observed",
                    "Bound",
                    "Communication: share of time in communication",
                    "Synchronisation: share of time in synchronising calls",
                    "Compute: share of time in compute",
                    "Memory: share of time in copies and fills",
                ]],
            },
            TableDoc {
                name: "recommendations",
                about: "what to try, one row per observation",
                columns: &[&[
                    "Rank",
                    "Topic: what the advice is about",
                    "Observed",
                    "Bound",
                    "Unit",
                    "What to Try: the advice",
                ]],
            },
        ],
        charts: &[("classes", "the share of each class, as bars")],
        take,
        make,
    }),
};

const CLASS: &[&str] = &[
    "Time Share: kernel time of the class as a share of all",
    "Union Share: the same of time in which at least one kernel of the class ran",
    "Time: sum of the times of its kernels",
    "Union: time in which at least one of its kernels ran",
    "Runs: how often its kernels ran",
];
const NAMES: &[&str] =
    &["Kernels: how many kernels it has, by name", "Class", "Largest Kernel: the kernel with the most time"];

const COMPAT: ArgumentSpec =
    argument!("compat", "the classes, shares and names of a published script", Takes::Nothing);

fn classes(compat: bool) -> &'static [&'static str] {
    if compat { &published::CLASSES } else { &CLASSES }
}

#[derive(Serialize, Deserialize)]
struct Extract {
    /// By PID and device.
    gpus: Vec<((Option<i64>, i64), Classes)>,
    names: Vec<KernelStats>,
    calls: Option<Calls>,
    /// Copied between the host and GPUs; nothing where no copy was recorded.
    host_bytes: Option<u64>,
}

/// Times of each class, in the order of the classes, and of all of them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Classes {
    of: Vec<Time>,
    all: Time,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Time {
    runs: u64,
    sum: u128,
    union: u128,
}

impl Time {
    fn add(&mut self, other: Time) {
        self.runs += other.runs;
        self.sum += other.sum;
        self.union += other.union;
    }
}

impl Classes {
    fn add(&mut self, other: &Classes) {
        self.of.resize(other.of.len().max(self.of.len()), Time::default());
        for (mine, theirs) in self.of.iter_mut().zip(&other.of) {
            mine.add(*theirs);
        }
        self.all.add(other.all);
    }

    fn sum<'a>(all: impl IntoIterator<Item = &'a Classes>) -> Classes {
        let mut sum = Classes::default();
        all.into_iter().for_each(|one| sum.add(one));
        sum
    }
}

/// A kernel by its whole name, with the figures of its runs in one report.
#[derive(Serialize, Deserialize)]
struct KernelStats {
    class: usize,
    name: String,
    stats: Stats,
}

/// Time of calls, and of those that wait for a GPU; and the same as a printed table has them.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Calls {
    all: u128,
    waiting: u128,
    printed_percent: f64,
}

fn take(trace: &Trace, arguments: &Arguments) -> Result<Option<(Extract, u64)>, ExportError> {
    let Some(busy) = Busy::read(trace)? else { return Ok(None) };
    let compat = arguments.has(COMPAT.name);
    let classes = classes(compat);
    let of_name: Vec<usize> = busy.kernels.iter().map(|name| class(name, compat)).collect();
    let mut gpus = Vec::new();
    let mut runs: BTreeMap<&str, (usize, Vec<u64>)> = BTreeMap::new();
    let mut rows = 0;
    for gpu in &busy.gpus {
        let mut spans: Vec<Vec<(i64, i64)>> = vec![Vec::new(); classes.len()];
        let mut times = Classes { of: vec![Time::default(); classes.len()], all: Time::default() };
        let kernels = gpu.operations.iter().filter_map(|one| Some((one, *of_name.get(one.name as usize)?)));
        for (one, class) in kernels {
            rows += 1;
            spans[class].push(Operation::span(one));
            times.of[class].add(Time { runs: 1, sum: u128::from(one.ns()), union: 0 });
            let whole = busy.kernels[one.name as usize].whole.as_str();
            runs.entry(whole).or_insert_with(|| (class, Vec::new())).1.push(one.ns());
        }
        let spans: Vec<Spans> = spans.into_iter().map(Spans::union).collect();
        for (time, spans) in times.of.iter_mut().zip(&spans) {
            time.union = u128::from(spans.ns());
        }
        let any = Spans::union(spans.iter().flat_map(|spans| spans.as_slice()).copied());
        times.all = Time {
            runs: times.of.iter().map(|time| time.runs).sum(),
            sum: times.of.iter().map(|time| time.sum).sum(),
            union: u128::from(any.ns()),
        };
        if times.all.runs > 0 {
            gpus.push(((gpu.pid(), gpu.device), times));
        }
    }
    // Without any kernel time there are no shares.
    if gpus.iter().all(|(_, times)| times.all.sum == 0) {
        return Ok(None);
    }
    let names = runs.into_iter().filter_map(|(name, (class, mut ns))| {
        Some(KernelStats { class, name: name.to_owned(), stats: Stats::from_values_mut(&mut ns)? })
    });
    let names = names.collect();
    Ok(Some((Extract { gpus, names, calls: calls(trace)?, host_bytes: host_bytes(trace)? }, rows)))
}

fn class(name: &KernelName, compat: bool) -> usize {
    let class = if compat { published::class_of(&name.whole) } else { name.class };
    classes(compat).iter().position(|known| *known == class).unwrap_or(classes(compat).len() - 1)
}

fn calls(trace: &Trace) -> Result<Option<Calls>, ExportError> {
    let Some(groups) = report::api_calls(trace)? else { return Ok(None) };
    let mut sums = vec![0u128; groups.labels.len()];
    for (group, ns) in groups.of_row.iter().zip(&groups.values) {
        if let Some(sum) = sums.get_mut(*group as usize) {
            *sum += u128::from(*ns);
        }
    }
    let all: u128 = sums.iter().sum();
    let of_waiting =
        groups.labels.iter().zip(&sums).filter(|(words, _)| words.iter().any(|w| w.contains("Synchronize")));
    let (mut waiting, mut printed_percent) = (0, 0.0);
    for (_, sum) in of_waiting {
        waiting += sum;
        let percent = if all > 0 { 100.0 * *sum as f64 / all as f64 } else { 0.0 };
        // As the printed table has it, which is what the script reads.
        printed_percent += (percent * 10.0).round() / 10.0;
    }
    Ok((all > 0).then_some(Calls { all, waiting, printed_percent }))
}

fn host_bytes(trace: &Trace) -> Result<Option<u64>, ExportError> {
    let Some(groups) = report::memory_by_size(trace)? else { return Ok(None) };
    let is_host = |words: &Vec<String>| {
        words.iter().any(|word| word.contains("Host-to-Device") || word.contains("Device-to-Host"))
    };
    let bytes = groups
        .of_row
        .iter()
        .zip(&groups.values)
        .filter(|(group, _)| groups.labels.get(**group as usize).is_some_and(is_host));
    Ok(Some(bytes.map(|(_, bytes)| *bytes).sum()))
}

fn make(reports: &[ReportExtract<&Extract>], arguments: &Arguments) -> Made {
    let compat = arguments.has(COMPAT.name);
    let of_reports: Vec<Figures> =
        reports.iter().map(|report| rule::figures(Some(report.rank), &[report.extract], compat)).collect();
    let mut all = of_reports;
    if reports.len() > 1 {
        let together: Vec<&Extract> = reports.iter().map(|report| report.extract).collect();
        all.insert(0, rule::figures(None, &together, compat));
    }
    let tables = vec![
        ("classes", result_tables::total_table(reports, compat)),
        ("rank_classes", result_tables::rank_table(reports, compat)),
        ("gpu_classes", result_tables::gpu_table(reports, compat)),
        ("bottlenecks", result_tables::bottlenecks(&all, arguments)),
        ("recommendations", result_tables::recommendations(&all, arguments)),
    ];
    Made { tables, charts: vec![result_tables::chart(reports, compat)], ..Made::default() }
}
