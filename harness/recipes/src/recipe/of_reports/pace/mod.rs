//! The pace of one kernel or one range over a run: each instance, how long it took, how long nothing of it ran before,
//! and whether ranks keep step. Which name is shown is told in `taken`, what stands in the tables in `sheets`.

mod instances;
mod pictures;
mod sheets;
mod taken;
#[cfg(test)]
mod tests;

use super::{Across, Kind, Made, Of, ReportRecipe};
use crate::report::{ArgumentSpec, Arguments, Takes};
use instances::Source;
use nsys::tables::{GRAPH_TRACE, KERNEL, MEMCPY, MEMSET, NVTX_EVENTS, RUNTIME, STRING_IDS};
use taken::{Asked, Series, Taken};

pub(super) const CUDA_GPU_KERN_PACE: ReportRecipe = ReportRecipe {
    name: "cuda_gpu_kern_pace",
    title: "Pace of a Kernel",
    about: "one kernel over the run: how long each of its instances took on each rank, how far apart they are, and \
            whether ranks keep step",
    definition: "of each rank, process and device the instances in the order of their beginnings, numbered from 0. The \
                 distance is from the end of the instance before to the beginning: less than nothing where they run at once. \
                 `Accumulated` is the sum of durations so far. `Common Start` is since the zero of the earliest report, by \
                 the clocks of the hosts, where every report tells its own. Ranks are compared as far as all have instances. \
                 A name is a whole one or a short one, without its arguments; of a short one all kernels are taken that have \
                 it. Without a name it is the whole name with the largest total time over all reports",
    arguments: &[NAME, LIKE],
    tables: &[&KERNEL, &STRING_IDS],
    kind: Kind::Together(&Across {
        tables: TABLES,
        pictures: PICTURES,
        take: |trace, arguments| taken::take(&KERNELS, trace, &asked(arguments)),
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
    kind: Kind::Together(&Across {
        tables: TABLES,
        pictures: PICTURES,
        take: |trace, arguments| taken::take(&RANGES, trace, &asked(arguments)),
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
    kind: Kind::Together(&Across {
        tables: TABLES,
        pictures: PICTURES,
        take: |trace, arguments| taken::take(&PROJECTIONS, trace, &asked(arguments)),
        make: |reports, arguments| make(&PROJECTIONS, &NVTX_GPU_PROJ_PACE, reports, arguments),
    }),
};

const TABLES: &[&str] = &["stats", "pace", "across"];

const PICTURES: &[(&str, &str)] = &[
    ("duration", "how long each instance took, one line per place"),
    ("distance", "how long nothing of it ran before each instance"),
    ("progress", "when each instance began"),
];

const NAME: ArgumentSpec = ArgumentSpec {
    name: "name",
    about: "whose pace it is, by its exact name; a colon, a comma or a backslash in it stands behind a backslash. Where it \
            is not given, the name with the largest total time",
    takes: Takes::Text(""),
    choice: Some("name"),
};

const LIKE: ArgumentSpec = ArgumentSpec {
    name: "like",
    about: "a part of the name: of the names that have it in them the one with the largest total time",
    takes: Takes::Text(""),
    choice: Some("name"),
};

fn asked(arguments: &Arguments) -> Asked<'_> {
    Asked { name: arguments.text(&NAME), like: arguments.text(&LIKE) }
}

/// What instances are of, and where they come from.
struct Subject {
    what: &'static str,
    whats: &'static str,
    source: Source,
}

const KERNELS: Subject = Subject { what: "kernel", whats: "kernels", source: instances::kernels };
const RANGES: Subject = Subject { what: "range", whats: "ranges", source: instances::ranges };
const PROJECTIONS: Subject = Subject { what: "range", whats: "ranges", source: instances::projections };

fn make(of: &Subject, recipe: &ReportRecipe, reports: &[Of<&Taken>], arguments: &Arguments) -> Made {
    let mut made = Made::default();
    let chosen = match taken::choose(of, reports, &asked(arguments)) {
        Ok(chosen) => chosen,
        Err(why) => {
            made.notes.push(format!("{}: {why}", recipe.name));
            return made;
        }
    };
    made.notes.extend(chosen.note.iter().map(|note| format!("{}: {note}", recipe.name)));
    let aligned = taken::shifts(reports);
    if aligned.is_none() && reports.len() > 1 {
        made.notes.push(format!(
            "{}: some reports do not tell when their zero was, so that beginnings are each report's own",
            recipe.name
        ));
    }
    let mut all: Vec<Series> = Vec::new();
    for (at, part) in taken::series(of, reports, &chosen).into_iter().enumerate() {
        match part {
            Ok(series) => {
                let shift = aligned.as_ref().map(|shifts| shifts[at]);
                all.extend(series.into_iter().map(|one| Series { shift, ..one }));
            }
            Err(why) => made.unreadable.push((reports[at].file.clone(), why.to_string())),
        }
    }
    made.notes.extend(sheets::differences(&all, reports).map(|note| format!("{}: {note}", recipe.name)));
    made.tables.push(("stats", sheets::stats(recipe, &all)));
    made.tables.push(("pace", sheets::pace(recipe, &all)));
    if all.len() > 1 {
        made.tables.push(("across", sheets::across(recipe, &all)));
    }
    made.pictures = pictures::of(&chosen.title, &all);
    made
}
