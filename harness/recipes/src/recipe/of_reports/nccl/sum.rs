//! Functions of NCCL by the time that their threads spent in them: all of them, those of each rank, and those that move
//! data by communicator and class of size.

use crate::figures::{Stats, Tally};
use crate::recipe::of_reports::columns::{FIGURES, TableDoc};
use crate::recipe::of_reports::survey::{SUMMARY_CHARTS, result_table, summary_charts};
use crate::recipe::of_reports::{Across, Made, RecipeKind, ReportExtract, ReportRecipe};
use crate::report::Arguments;
use crate::result_table::Quantity;
use nsys::export::ExportError;
use nsys::nccl::{Call, NcclCalls, TABLES, is_of_nccl};
use nsys::trace::Trace;
use nsys::trace::nvtx::{Ranges, Style};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub(crate) const NCCL_SUM: ReportRecipe = ReportRecipe {
    name: "nccl_sum",
    title: "NCCL Summary",
    about: "functions of NCCL and the time that threads spent in them, over all ranks, by rank, and by communicator and \
            size",
    definition: "ranges of the domain `NCCL` by name, from begin to end on their threads, which is not the time of the \
                 transfer: that is in `nccl_msg`. Classes of size have their lower border, a power of two, and not their \
                 upper one; sizes are those of payloads, of one rank's part where a payload counts a part. Of records of \
                 NCCL's Inspector, the times are those of kernels, which hold the waiting for other ranks",
    arguments: &[],
    tables: TABLES,
    kind: RecipeKind::Together(&Across {
        tables: &[
            TableDoc {
                name: "all_stats",
                about: "one row per function, of all reports together",
                columns: &[&["Time"], FIGURES, &["Name: the function"]],
            },
            TableDoc {
                name: "rank_stats",
                about: "one row per function of each report",
                columns: &[&["Rank", "Time"], FIGURES, &["Name: the function"]],
            },
            TableDoc {
                name: "size_stats",
                about: "one row per class of sizes of each communicator",
                columns: &[
                    &["Time"],
                    FIGURES,
                    &["Communicator", "Operation", "Size Class: powers of two that the bytes lie between"],
                ],
            },
        ],
        charts: SUMMARY_CHARTS,
        take,
        make,
    }),
};

/// Times by words.
type Tallies = BTreeMap<Vec<String>, Tally>;

#[derive(Serialize, Deserialize)]
pub(super) struct Extract {
    functions: Tallies,
    sizes: Tallies,
}

fn take(trace: &Trace, _: &Arguments) -> Result<Option<(Extract, u64)>, ExportError> {
    let Some(ranges) = Ranges::read(trace)? else { return Ok(None) };
    let mut of_functions: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for row in 0..ranges.len() {
        let name = ranges.name(row);
        if ranges.style[row] == Style::PushPop && is_of_nccl(ranges.domain(row), ranges.domain_id[row], name)
        {
            of_functions.entry(name).or_default().push(ranges.ns(row));
        }
    }
    let rows = of_functions.values().map(|values| values.len() as u64).sum();
    let functions =
        of_functions.into_iter().map(|(name, values)| (vec![name.to_owned()], Tally::from_values(&values)));
    let functions = functions.collect();
    let mut of_sizes: BTreeMap<Vec<String>, Vec<u64>> = BTreeMap::new();
    for call in NcclCalls::read(trace)?.iter().flat_map(|nccl| &nccl.calls) {
        of_sizes.entry(size_key(call)).or_default().push(call.ns());
    }
    let sizes = of_sizes.into_iter().map(|(words, values)| (words, Tally::from_values(&values))).collect();
    Ok((rows > 0).then_some((Extract { functions, sizes }, rows)))
}

/// Of calls of which only the time of their kernels is known. Those without one do not count.
pub(super) fn from_kernels(nccl: &NcclCalls) -> Extract {
    let (mut of_functions, mut of_sizes) = (BTreeMap::new(), BTreeMap::new());
    for call in &nccl.calls {
        let Some(kernel) = nccl.kernels_of(call).first() else { continue };
        let ns = kernel.end.saturating_sub(kernel.start).max(0) as u64;
        let values: &mut Vec<u64> = of_functions.entry(vec![call.function.name().to_owned()]).or_default();
        values.push(ns);
        let values: &mut Vec<u64> = of_sizes.entry(size_key(call)).or_default();
        values.push(ns);
    }
    let tally = |(words, values): (Vec<String>, Vec<u64>)| (words, Tally::from_values(&values));
    Extract {
        functions: of_functions.into_iter().map(tally).collect(),
        sizes: of_sizes.into_iter().map(tally).collect(),
    }
}

/// Communicator, function and class of size.
fn size_key(call: &Call) -> Vec<String> {
    let communicator = call.communicator.map(super::communicator);
    vec![
        communicator.unwrap_or_else(|| NOT_RECORDED.to_owned()),
        call.function.name().to_owned(),
        call.bytes.map_or_else(|| NOT_RECORDED.to_owned(), class),
    ]
}

const NOT_RECORDED: &str = "not recorded";

/// Powers of two, in bytes.
fn class(bytes: u64) -> String {
    match bytes.checked_ilog2() {
        None => "0 B".to_owned(),
        Some(bits) => format!("{} to {}", power(bits), power(bits + 1)),
    }
}

fn power(bits: u32) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    format!("{} {}", 1u64 << (bits % 10), UNITS[(bits / 10) as usize % UNITS.len()])
}

pub(super) fn make(reports: &[ReportExtract<&Extract>], _: &Arguments) -> Made {
    type Rows = Vec<(Option<i64>, Vec<String>, Stats)>;
    let (mut all, mut sizes) = (Tallies::new(), Tallies::new());
    let mut of_ranks: Rows = Vec::new();
    for report in reports {
        for (words, tally) in &report.extract.functions {
            all.entry(words.clone()).or_default().add(tally.clone());
            let stats = tally.clone().stats();
            of_ranks.extend(stats.map(|stats| (Some(report.rank), words.clone(), stats)));
        }
        for (words, tally) in &report.extract.sizes {
            sizes.entry(words.clone()).or_default().add(tally.clone());
        }
    }
    let rows = |tallies: Tallies| -> Rows {
        tallies.into_iter().filter_map(|(words, mut tally)| Some((None, words, tally.stats()?))).collect()
    };
    let of = |words: &[&str], rows: Rows| result_table(&NCCL_SUM, Quantity::Nanoseconds, words, rows);
    let (all, sizes) = (rows(all), rows(sizes));
    let charts = summary_charts(NCCL_SUM.title, Quantity::Nanoseconds, &all);
    let by_size = of(&["Communicator", "Operation", "Size Class"], sizes);
    let tables = vec![
        ("all_stats", of(&["Name"], all)),
        ("rank_stats", of(&["Name"], of_ranks)),
        ("size_stats", by_size),
    ];
    Made { tables, charts, ..Made::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_size_are_powers_of_two() {
        for (bytes, name) in [
            (0, "0 B"),
            (1, "1 B to 2 B"),
            (1023, "512 B to 1 KiB"),
            (1024, "1 KiB to 2 KiB"),
            (1 << 30, "1 GiB to 2 GiB"),
            (u64::MAX, "8 EiB to 16 EiB"),
        ] {
            assert_eq!(class(bytes), name);
        }
    }
}
