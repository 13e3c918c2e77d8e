//! The pace of one kernel or one range over a run: each instance, how long it took, how long nothing of it ran before,
//! and whether ranks keep step. `extract` chooses the name, `result_tables` makes the tables.

mod charts;
mod extract;
mod instances;
mod result_tables;
#[cfg(test)]
mod tests;

use super::{Across, Made, RecipeKind, ReportExtract, ReportRecipe};
use crate::recipe::of_reports::columns::TableDoc;
use crate::report::argument;
use crate::report::{ArgumentSpec, Arguments};
use extract::{Extract, NameRequest, Series};
use instances::Source;
use nsys::tables::{GRAPH_TRACE, KERNEL, MEMCPY, MEMSET, NVTX_EVENTS, RUNTIME, STRING_IDS};

pub(super) const CUDA_GPU_KERN_PACE: ReportRecipe = ReportRecipe {
    name: "cuda_gpu_kern_pace",
    title: "Pace of a Kernel",
    about: "one kernel over the run: how long each of its instances took on each rank, how far apart they are, and \
            whether ranks keep step",
    definition: "the instances of each rank, process and device, sorted by start and numbered from 0. The distance is \
                 from the end of the instance before to the start: negative where they overlap. `Accumulated` is the \
                 sum of durations so far. `Common Start` is since the zero of the earliest report, by the clocks of \
                 the hosts, where every report has its own. Ranks are compared up to the fewest instances. A name is a \
                 full one or a short one without arguments, which selects all kernels that have it. Without a name, \
                 the full name with the largest total time over all reports is used",
    arguments: &[NAME, LIKE],
    tables: &[&KERNEL, &STRING_IDS],
    kind: RecipeKind::Together(&Across {
        tables: TABLES,
        charts: CHARTS,
        take: |trace, arguments| extract::take(&KERNELS, trace, &name_request(arguments)),
        make: |reports, arguments| make(&KERNELS, &CUDA_GPU_KERN_PACE, reports, arguments),
    }),
};

pub(super) const NVTX_PACE: ReportRecipe = ReportRecipe {
    name: "nvtx_pace",
    title: "Pace of a Range",
    about: "one range of NVTX over the run: how long each of its instances took on each rank, how far apart they are, and \
            whether ranks keep step",
    definition: "of each rank and process the instances in the order of their beginnings, numbered from 0, whatever thread \
                 they are of; from begin to end on the thread. Distances, sums and common starts as in \
                 `cuda_gpu_kern_pace`. A name may stand with or without its domain before a colon. Without a name it is the \
                 one with the largest total time over all reports",
    arguments: &[NAME, LIKE],
    tables: &[&NVTX_EVENTS, &STRING_IDS],
    kind: RecipeKind::Together(&Across {
        tables: RANGE_TABLES,
        charts: CHARTS,
        take: |trace, arguments| extract::take(&RANGES, trace, &name_request(arguments)),
        make: |reports, arguments| make(&RANGES, &NVTX_PACE, reports, arguments),
    }),
};

pub(super) const NVTX_GPU_PROJ_PACE: ReportRecipe = ReportRecipe {
    name: "nvtx_gpu_proj_pace",
    title: "Pace of a Range on the GPUs",
    about: "the work of one range on the GPUs over the run: how long each of its instances took on each rank, how far \
            apart they are, and whether ranks keep step",
    definition: "ranges projected as in `nvtx_gpu_proj_sum`; of each rank and process the projections in the order of \
                 their beginnings, numbered from 0. Distances, sums and common starts as in `cuda_gpu_kern_pace`. A name may \
                 stand with or without its domain before a colon. Without a name it is the one with the largest total time \
                 on the GPUs over all reports",
    arguments: &[NAME, LIKE],
    tables: &[&NVTX_EVENTS, &STRING_IDS, &RUNTIME, &KERNEL, &MEMCPY, &MEMSET, &GRAPH_TRACE],
    kind: RecipeKind::Together(&Across {
        tables: RANGE_TABLES,
        charts: CHARTS,
        take: |trace, arguments| extract::take(&PROJECTIONS, trace, &name_request(arguments)),
        make: |reports, arguments| make(&PROJECTIONS, &NVTX_GPU_PROJ_PACE, reports, arguments),
    }),
};

const TABLES: &[TableDoc] = &[
    TableDoc { columns: &[&["Rank", "PID", "Device"], FIGURES], ..STATS },
    TableDoc { columns: &[&["Rank", "PID", "Device"], INSTANCES], ..PACE },
    ACROSS,
];

/// Of ranges, which are on no device.
const RANGE_TABLES: &[TableDoc] = &[STATS, PACE, ACROSS];

const STATS: TableDoc = TableDoc {
    name: "stats",
    about: "one row per place that has instances",
    columns: &[&["Rank", "PID"], FIGURES],
};

const PACE: TableDoc =
    TableDoc { name: "pace", about: "one row per instance", columns: &[&["Rank", "PID"], INSTANCES] };

const ACROSS: TableDoc = TableDoc {
    name: "across",
    about: "one row per instance over all ranks",
    columns: &[&[
        "Instance",
        "Min",
        "Med",
        "Max",
        "Slowest Rank",
        "First to Last Start: time from the first start to the last",
    ]],
};

const FIGURES: &[&str] = &[
    "Count",
    "Total",
    "Avg",
    "Med",
    "Q1",
    "Q3",
    "Min",
    "Max",
    "StdDev",
    "CV",
    "Distance Avg: the mean of the distances",
    "Distance Med: their median",
    "Distance Q1: their first quartile",
    "Distance Q3: their third quartile",
    "Distance Min: the smallest",
    "Distance Max: the largest",
    "Distance StdDev: their standard deviation",
];

const INSTANCES: &[&str] = &[
    "Instance",
    "Start",
    "End",
    "Duration",
    "Distance",
    "Accumulated: the sum of the durations so far",
    "Common Start: the start on the clock that all reports share",
];

const CHARTS: &[(&str, &str)] = &[
    ("duration", "how long each instance took, one line per place"),
    ("distance", "idle time before each instance"),
    ("progress", "when each instance began"),
];

const NAME: ArgumentSpec = argument!(
    "name",
    "exact name of the kernel or range; escape a colon, comma or backslash in it with a backslash. By default \
            the name with the largest total time",
    Takes::Text(""),
    "name"
);

const LIKE: ArgumentSpec = argument!(
    "like",
    "part of the name: of the names that contain it the one with the largest total time",
    Takes::Text(""),
    "name"
);

fn name_request(arguments: &Arguments) -> NameRequest<'_> {
    NameRequest { name: arguments.text(&NAME), like: arguments.text(&LIKE) }
}

/// The kind of instances, and their source.
struct Subject {
    what: &'static str,
    whats: &'static str,
    source: Source,
}

const KERNELS: Subject = Subject { what: "kernel", whats: "kernels", source: instances::kernels };
const RANGES: Subject = Subject { what: "range", whats: "ranges", source: instances::ranges };
const PROJECTIONS: Subject = Subject { what: "range", whats: "ranges", source: instances::projections };

fn make(
    of: &Subject,
    recipe: &ReportRecipe<'static>,
    reports: &[ReportExtract<&Extract>],
    arguments: &Arguments,
) -> Made {
    let mut made = Made::default();
    let chosen = match extract::choose(of, reports, &name_request(arguments)) {
        Ok(chosen) => chosen,
        Err(why) => {
            made.notes.push(format!("{}: {why}", recipe.name));
            return made;
        }
    };
    made.notes.extend(chosen.note.iter().map(|note| format!("{}: {note}", recipe.name)));
    let aligned = extract::shifts(reports);
    if aligned.is_none() && reports.len() > 1 {
        made.notes.push(format!(
            "{}: reports are not aligned, since some lack the time of their zero; beginnings are each report's own",
            recipe.name
        ));
    }
    let mut all: Vec<Series> = Vec::new();
    for (at, part) in extract::series(of, reports, &chosen).into_iter().enumerate() {
        match part {
            Ok(series) => {
                let shift = aligned.as_ref().map(|shifts| shifts[at]);
                all.extend(series.into_iter().map(|one| Series { shift, ..one }));
            }
            Err(why) => made.unreadable.push((reports[at].file.clone(), why.to_string())),
        }
    }
    made.notes
        .extend(result_tables::differences(&all, reports).map(|note| format!("{}: {note}", recipe.name)));
    made.tables.push(("stats", result_tables::stats(recipe, &all)));
    made.tables.push(("pace", result_tables::pace(recipe, &all)));
    if all.len() > 1 {
        made.tables.push(("across", result_tables::across(recipe, &all)));
    }
    made.charts = charts::render(&chosen.title, &all);
    made
}
