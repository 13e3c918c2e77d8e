//! How durations of kernels are spread: how many instances of one kernel, or of all, took how long, over all ranks and on
//! each.

use super::{Across, Made, RecipeKind, ReportExtract, ReportRecipe};
use crate::chart::{Axis, Bins, Chart, Figure, Histogram};
use crate::figures::{Edges, Tally};
use crate::recipe::of_reports::columns::TableDoc;
use crate::report::argument;
use crate::report::{ArgumentSpec, Arguments, Takes};
use crate::result_table::{Column, Quantity, ResultTable};
use nsys::export::ExportError;
use nsys::tables::{KERNEL, STRING_IDS};
use nsys::trace::{Part, Trace};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub(super) const CUDA_GPU_KERN_HIST: ReportRecipe = ReportRecipe {
    name: "cuda_gpu_kern_hist",
    title: "Durations of Kernels",
    about: "histogram of the durations of one kernel, or of all kernels, over all ranks and on each",
    definition: "from start to end on the GPU. A bin includes its lower border and not its upper one, the last bin \
                 both. Borders are whole nanoseconds from the shortest to the longest duration over all reports, \
                 spaced logarithmically, or with `linear` evenly; durations of 0 have a bin of their own, and there \
                 are no more bins than whole nanoseconds. Probabilities are of all instances of the same row's ranks, \
                 and add up to 1. A name is a full one or a short one without arguments",
    arguments: &[NAME, BINS, LINEAR],
    tables: &[&KERNEL, &STRING_IDS],
    kind: RecipeKind::Together(&Across {
        tables: &[
            TableDoc {
                name: "histogram",
                about: "one row per bin, of all reports together",
                columns: &[&[
                    "Lower",
                    "Upper",
                    "Count: kernels whose duration lies in the bin",
                    "Probability",
                ]],
            },
            TableDoc {
                name: "rank_histograms",
                about: "one row per bin of each report",
                columns: &[&[
                    "Rank",
                    "Lower",
                    "Upper",
                    "Count: kernels whose duration lies in the bin",
                    "Probability",
                ]],
            },
        ],
        charts: &[("histogram", "number of instances in each bin, of each rank")],
        take,
        make,
    }),
};

const NAME: ArgumentSpec = argument!(
    "name",
    "only instances of this kernel, by its exact name; escape a colon, comma or backslash in it with a backslash",
    Takes::Text("")
);

const BINS: ArgumentSpec = argument!("bins", "number of bins, from 1 to 1000", Takes::Number(60));

const LINEAR: ArgumentSpec =
    argument!("linear", "evenly spaced borders instead of logarithmic ones", Takes::Nothing);

#[derive(Serialize, Deserialize)]
struct Extract {
    /// Each duration with how often it came.
    durations: Vec<(u64, u64)>,
    /// Where no kernel has the requested name: all names with their total times.
    others: BTreeMap<String, u128>,
}

fn take(trace: &Trace, arguments: &Arguments) -> Result<Option<(Extract, u64)>, ExportError> {
    let columns = ["start", "end", "demangledName", "shortName"];
    let Some(rows) = trace.rows(&KERNEL, &columns)? else { return Ok(None) };
    let (starts, ends) = (rows.ints("start")?, rows.ints("end")?);
    let all = trace.durations("kernels", starts, ends).into_ns();
    let forwards = (0..all.len()).filter(|row| ends[*row] >= starts[*row]);
    let asked = arguments.text(&NAME);
    let (mut chosen, mut others) = (Vec::new(), BTreeMap::new());
    if asked.is_empty() {
        chosen.extend(forwards.map(|row| all[row]));
    } else {
        let strings = trace.strings()?;
        let whole = Part::named(rows.ints("demangledName")?.iter().copied(), strings, |name| name);
        let short = Part::named(rows.ints("shortName")?.iter().copied(), strings, |name| name);
        let of = |part: &Part<String>, row: usize| part.labels[part.of_row[row] as usize].as_str() == asked;
        let mut totals = vec![0u128; short.labels.len()];
        for row in forwards {
            totals[short.of_row[row] as usize] += u128::from(all[row]);
            if of(&whole, row) || of(&short, row) {
                chosen.push(all[row]);
            }
        }
        if chosen.is_empty() {
            others = short.labels.into_iter().zip(totals).collect();
        }
    }
    let rows = chosen.len() as u64;
    if rows == 0 && others.is_empty() {
        return Ok(None);
    }
    Ok(Some((Extract { durations: Tally::from_values(&chosen).counted().to_vec(), others }, rows)))
}

fn make(reports: &[ReportExtract<&Extract>], arguments: &Arguments) -> Made {
    let (mut made, asked) = (Made::default(), arguments.text(&NAME));
    let (with, without): (Vec<&ReportExtract<&Extract>>, Vec<&ReportExtract<&Extract>>) =
        reports.iter().partition(|report| !report.extract.durations.is_empty());
    if with.is_empty() {
        made.notes.push(format!(
            "{}: no kernel named `{asked}`; {}",
            CUDA_GPU_KERN_HIST.name,
            largest(reports)
        ));
        return made;
    }
    if !without.is_empty() {
        let ranks: Vec<String> = without.iter().map(|report| report.rank.to_string()).collect();
        made.notes.push(format!(
            "{}: ranks without the kernel: {}",
            CUDA_GPU_KERN_HIST.name,
            ranks.join(", ")
        ));
    }
    let values = || with.iter().flat_map(|report| report.extract.durations.iter().copied());
    let least = values().map(|(ns, _)| ns).min().unwrap_or_default();
    let most = values().map(|(ns, _)| ns).max().unwrap_or_default();
    let (bins, linear) = (arguments.number(&BINS), arguments.has(LINEAR.name));
    let edges = if linear { Edges::linear(least, most, bins) } else { Edges::log(least, most, bins) };
    let of_ranks: Vec<(i64, Vec<u64>)> = with
        .iter()
        .map(|report| (report.rank, edges.count(report.extract.durations.iter().copied())))
        .collect();
    let mut all = vec![0; edges.bins().count()];
    for (_, counts) in &of_ranks {
        all.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    let ranked: Vec<(Option<i64>, &[u64])> =
        of_ranks.iter().map(|(rank, counts)| (Some(*rank), counts.as_slice())).collect();
    made.tables.push(("histogram", result_table(&edges, &[(None, &all)])));
    made.tables.push(("rank_histograms", result_table(&edges, &ranked)));
    made.charts.push(chart(asked, linear, &edges, &of_ranks));
    made
}

/// How many other names are suggested where one does not exist.
const SUGGESTIONS: usize = 3;

fn largest(reports: &[ReportExtract<&Extract>]) -> String {
    let mut totals: BTreeMap<&str, u128> = BTreeMap::new();
    for (name, ns) in reports.iter().flat_map(|report| &report.extract.others) {
        *totals.entry(name).or_default() += ns;
    }
    let mut order: Vec<(&str, u128)> = totals.into_iter().collect();
    order.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let names: Vec<String> = order.iter().take(SUGGESTIONS).map(|(name, _)| format!("`{name}`")).collect();
    format!("the longest-running are {}", names.join(", "))
}

fn result_table(edges: &Edges, all: &[(Option<i64>, &[u64])]) -> ResultTable {
    let rows =
        || all.iter().flat_map(|(rank, counts)| edges.bins().zip(counts.iter()).map(move |row| (*rank, row)));
    let (plain, time) = (Quantity::Plain, Quantity::Nanoseconds);
    let whole = |value: u64| i64::try_from(value).ok();
    let parts = all.iter().flat_map(|(_, counts)| {
        let sum: u64 = counts.iter().sum();
        counts.iter().map(move |count| (sum > 0).then(|| *count as f64 / sum as f64))
    });
    let parts = Column::maybe_decimals("Probability", Quantity::Fraction, parts.collect::<Vec<_>>());
    let mut columns = Vec::new();
    if all.iter().any(|(rank, _)| rank.is_some()) {
        columns.push(Column::maybe_integers("Rank", plain, rows().map(|(rank, _)| rank)));
    }
    columns.extend([
        Column::maybe_integers("Lower", time, rows().map(|(_, ((lower, _), _))| whole(lower))),
        Column::maybe_integers("Upper", time, rows().map(|(_, ((_, upper), _))| whole(upper))),
        Column::maybe_integers("Count", plain, rows().map(|(_, (_, count))| whole(*count))),
        parts,
    ]);
    ResultTable::new(CUDA_GPU_KERN_HIST.name, CUDA_GPU_KERN_HIST.title, columns)
}

fn chart(asked: &str, linear: bool, edges: &Edges, of_ranks: &[(i64, Vec<u64>)]) -> Chart {
    let series = of_ranks.iter().map(|(rank, counts)| Bins {
        label: format!("rank {rank}"),
        rank: Some(*rank),
        counts: counts.clone(),
    });
    let axis = if linear { Axis::linear } else { Axis::log };
    let of = if asked.is_empty() { "all Kernels" } else { asked };
    Chart {
        name: "histogram".into(),
        title: format!("Durations of {of}"),
        about: "number of instances by duration: one narrow peak is an even pace, several peaks are several ways to \
                run, a long tail is time lost in a few instances"
            .to_owned(),
        figure: Figure::Histogram(Histogram {
            x: axis("Duration", Quantity::Nanoseconds),
            edges: edges.as_slice().iter().map(|edge| *edge as f64).collect(),
            series: series.collect(),
            marks: Vec::new(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use crate::chart::{Axis, Figure, Scale};
    use crate::recipe::of_reports::Outcome;
    use crate::recipe::of_reports::tests::{decimals, inputs, integers, surveyed, table};
    use crate::testing::Made;

    /// Kernels with these durations, one behind the other: gemm, and from a thousand on another.
    fn rank(durations: &[i64]) -> Made {
        let made = Made::begin();
        made.string(1, "void gemm<int>(a)").string(2, "gemm").string(3, "other()").string(4, "other");
        for (at, ns) in durations.iter().enumerate() {
            let start = 100_000 * at as i64;
            made.kernel((start, start + ns), 1, if *ns < 1000 { 1 } else { 3 });
        }
        made
    }

    fn run_recipe(words: &[&str], reports: &[Made]) -> Outcome {
        surveyed("cuda_gpu_kern_hist", words, &inputs(reports.iter().map(Made::path).collect()))
    }

    #[test]
    fn durations_are_counted_over_all_ranks_and_on_each_in_the_same_bins() {
        let outcome =
            run_recipe(&["bins=4"], &[rank(&[10, 10, 99, 100, 1000]), rank(&[10_000, 100_000, 999])]);
        let all = table(&outcome, "histogram");
        assert_eq!(integers(all, "Lower"), [Some(10), Some(100), Some(1000), Some(10_000)]);
        assert_eq!(integers(all, "Upper"), [Some(100), Some(1000), Some(10_000), Some(100_000)]);
        assert_eq!(integers(all, "Count"), [Some(3), Some(2), Some(1), Some(2)]);
        assert_eq!(decimals(all, "Probability"), [Some(0.375), Some(0.25), Some(0.125), Some(0.25)]);
        let ranks = table(&outcome, "rank_histograms");
        assert_eq!(integers(ranks, "Rank")[3..5], [Some(0), Some(1)]);
        let counts = integers(ranks, "Count");
        assert_eq!(counts, [3, 1, 1, 0, 0, 1, 0, 2].map(Some));
        let sum: f64 = decimals(ranks, "Probability")[..4].iter().flatten().sum();
        assert!((sum - 1.0).abs() < 1e-12);
        let Figure::Histogram(figure) = &outcome.charts[0].figure else { panic!("no histogram") };
        assert_eq!(figure.edges, [10.0, 100.0, 1000.0, 10_000.0, 100_000.0]);
        assert!(matches!(figure.x, Axis { scale: Scale::Log, .. }));
        let series: Vec<(Option<i64>, &[u64])> =
            figure.series.iter().map(|one| (one.rank, one.counts.as_slice())).collect();
        assert_eq!(series, [(Some(0), &[3, 1, 1, 0][..]), (Some(1), &[0, 1, 0, 2])]);
    }

    #[test]
    fn one_kernel_alone_is_counted_by_its_whole_or_its_short_name() {
        for name in ["gemm", "void gemm<int>(a)"] {
            let name_word = format!("name={name}");
            let outcome =
                run_recipe(&[&name_word, "linear", "bins=2"], &[rank(&[10, 20, 5000]), rank(&[7000])]);
            assert_eq!(integers(table(&outcome, "histogram"), "Lower"), [Some(10), Some(15)], "{name}");
            assert_eq!(integers(table(&outcome, "histogram"), "Count"), [Some(1), Some(1)]);
            assert_eq!(outcome.notes, ["cuda_gpu_kern_hist: ranks without the kernel: 1"]);
        }
    }

    #[test]
    fn an_unknown_name_gives_no_table_and_suggests_the_largest() {
        let outcome = run_recipe(&["name=gem"], &[rank(&[10, 20, 5000])]);
        assert!(outcome.tables.is_empty() && outcome.charts.is_empty());
        assert_eq!(
            outcome.notes,
            ["cuda_gpu_kern_hist: no kernel named `gem`; the longest-running are `other`, `gemm`"]
        );
    }

    #[test]
    fn one_duration_alone_and_none_at_all_have_a_bin() {
        let outcome = run_recipe(&[], &[rank(&[10])]);
        assert_eq!(integers(table(&outcome, "histogram"), "Upper"), [Some(11)]);
        assert_eq!(decimals(table(&outcome, "histogram"), "Probability"), [Some(1.0)]);
        let outcome = run_recipe(&["bins=1"], &[rank(&[0, 10])]);
        assert_eq!(integers(table(&outcome, "histogram"), "Lower"), [Some(0), Some(1)]);
        let made = Made::begin();
        made.range((0, 9), 3, "step");
        assert!(run_recipe(&[], &[made]).tables.is_empty());
    }
}
