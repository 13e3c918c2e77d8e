//! Regions of time in which a GPU was little used.

use super::{note_none, overheads};
use crate::busy::{Busy, Operation};
use crate::chart::{Along, Axis, Chart, ChartLine, Figure, Lines, Mark};
use crate::recipe::of_reports::columns::{OutputTable, TableDoc};
use crate::recipe::of_reports::together::{Extract, Share};
use crate::recipe::of_reports::{Made, RecipeKind, ReportExtract, ReportRecipe, Together, encoding, labels};
use crate::report::argument;
use crate::report::{ArgumentSpec, Arguments, Takes};
use crate::result_table::{Column, Quantity, ResultTable};
use nsys::tables::{GRAPH_TRACE, KERNEL, MEMCPY, MEMSET, PROFILER_OVERHEAD};
use nsys::trace::Trace;
use serde::{Deserialize, Serialize};
use std::sync::Mutex;

pub(in super::super) const GPU_TIME_UTIL: ReportRecipe = ReportRecipe {
    name: "gpu_time_util",
    title: "Regions of Little Use",
    about: "regions of time in which a GPU was little used",
    definition: "per process and GPU: from the beginning of the first operation to the end of the last one time is cut \
                 into equal chunks; a chunk's use is the time that operations (kernels, copies, fills, whole graphs) \
                 and the profiler's own overhead in the process have in it, added up, so that it may exceed 100 %, of \
                 its length. Chunks below the threshold are listed, the least used first; those that follow one \
                 another are one region, with their use together. No more chunks are cut than there are nanoseconds, \
                 or 1,000,000. A filter by time cuts operations",
    arguments: &[THRESHOLD, CHUNKS],
    tables: &[&KERNEL, &MEMCPY, &MEMSET, &GRAPH_TRACE, &PROFILER_OVERHEAD],
    kind: RecipeKind::Together(&Utilisation),
};

struct Utilisation;

/// Of one GPU.
#[derive(Serialize, Deserialize)]
struct GpuUse {
    pid: Option<i64>,
    device: i64,
    regions: Vec<Region>,
    /// Of each chunk its middle and its use in percent.
    over_time: Vec<(f64, f64)>,
}

impl Together for Utilisation {
    fn tables(&self) -> Vec<OutputTable> {
        let tables: &[TableDoc] = &[TableDoc {
            name: "rows",
            about: "one row per chunk of time of a GPU that was used little",
            columns: &[&[
                "Rank",
                "In Use: share of the time in which an operation ran",
                "Start",
                "Duration",
                "PID",
                "Device",
            ]],
        }];
        tables.iter().map(TableDoc::table).collect()
    }

    fn charts(&self) -> &'static [(&'static str, &'static str)] {
        &[("use", "use of each chunk of time, one line per GPU, and the threshold")]
    }

    fn to_bytes(&self, extract: &Extract) -> Result<Vec<u8>, String> {
        encoding::extract_to_bytes::<Vec<GpuUse>>(extract)
    }

    fn read_bytes(&self, bytes: &[u8]) -> Result<Extract, String> {
        encoding::extract_from_bytes::<Vec<GpuUse>>(bytes)
    }

    fn take(&self, trace: &Trace, arguments: &Arguments, _: &Mutex<Extract>) -> Share<Extract> {
        let Some(busy) = Busy::read(trace)? else { return Ok(None) };
        let overheads = overheads(trace)?;
        let threshold = arguments.number(&THRESHOLD) as f64;
        let mut found: Vec<GpuUse> = Vec::new();
        for gpu in &busy.gpus {
            let spans = gpu.operations.iter().map(Operation::span);
            let Some((first, last)) = spans.clone().reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)))
            else {
                continue;
            };
            let overhead = gpu.process.and_then(|process| overheads.get(&process));
            let mut chunks = Chunks::cut(first, last, arguments.number(&CHUNKS));
            spans.chain(overhead.into_iter().flatten().copied()).for_each(|span| chunks.add(span));
            found.push(GpuUse {
                pid: gpu.pid(),
                device: gpu.device,
                regions: chunks.below(threshold),
                over_time: chunks.all().map(|one| (one.middle(), one.use_percent())).collect(),
            });
        }
        let regions = found.iter().map(|one| one.regions.len()).sum();
        note_none(trace, GPU_TIME_UTIL.name, "operations", busy.rows as usize, regions);
        Ok(Some((Box::new(found), regions as u64)))
    }

    fn make(&self, _: Extract, reports: Vec<ReportExtract<&Extract>>, arguments: &Arguments) -> Made {
        let mut all: Vec<(i64, &GpuUse)> = Vec::new();
        for ReportExtract { rank, extract, .. } in reports {
            let used = extract.downcast_ref::<Vec<GpuUse>>();
            all.extend(used.into_iter().flatten().map(|one| (rank, one)));
        }
        let charts = chart(&all, arguments.number(&THRESHOLD) as f64).into_iter().collect();
        Made { tables: vec![("rows", result_table(&all))], charts, ..Made::default() }
    }

    fn shows_empty_tables(&self) -> bool {
        true
    }
}

/// Of each rank the least used region first.
fn result_table(all: &[(i64, &GpuUse)]) -> ResultTable {
    let mut found: Vec<(i64, &Region, &GpuUse)> =
        all.iter().flat_map(|(rank, used)| used.regions.iter().map(move |one| (*rank, one, *used))).collect();
    found.sort_by(|one, two| one.0.cmp(&two.0).then(one.1.use_percent().total_cmp(&two.1.use_percent())));
    let (plain, ns) = (Quantity::Plain, Quantity::Nanoseconds);
    let length = |one: &Region| one.end.wrapping_sub(one.start);
    let columns = vec![
        Column::integers("Rank", plain, found.iter().map(|(rank, ..)| *rank)),
        Column::decimals("In Use", Quantity::Percent, found.iter().map(|(_, one, _)| one.use_percent())),
        Column::integers("Start", ns, found.iter().map(|(_, one, _)| one.start)),
        Column::integers("Duration", ns, found.iter().map(|(_, one, _)| length(one))),
        Column::maybe_integers("PID", plain, found.iter().map(|(.., used)| used.pid)),
        Column::integers("Device", plain, found.iter().map(|(.., used)| used.device)),
    ];
    ResultTable::new(GPU_TIME_UTIL.name, GPU_TIME_UTIL.title, columns)
}

/// None where no GPU had a moment.
fn chart(all: &[(i64, &GpuUse)], threshold: f64) -> Option<Chart> {
    let places: Vec<labels::LabelKey> =
        all.iter().map(|(rank, used)| (*rank, used.pid, Some(used.device))).collect();
    let lines = all.iter().zip(labels::unique(&places)).map(|((rank, used), label)| ChartLine {
        label,
        rank: Some(*rank),
        points: used.over_time.iter().map(|(at, percent)| (*at, Some(*percent))).collect(),
    });
    let lines: Vec<ChartLine> = lines.filter(|line| !line.points.is_empty()).collect();
    (!lines.is_empty()).then(|| Chart {
        name: "use".into(),
        title: "Use of each GPU over Time".to_owned(),
        about: "fraction of each chunk of time filled by operations, added up; chunks below the mark are in the table. \
                Times are each report's own"
            .to_owned(),
        figure: Figure::Lines(Lines {
            x: Axis::linear("Time", Quantity::Nanoseconds),
            y: Axis::linear("In Use", Quantity::Percent),
            lines,
            marks: vec![Mark { label: "threshold".to_owned(), along: Along::Y, at: threshold }],
        }),
    })
}

const THRESHOLD: ArgumentSpec =
    argument!("threshold", "list chunks with less use than this, in percent", Takes::Number(50));

const CHUNKS: ArgumentSpec = argument!(
    "chunks",
    "number of chunks that the time of each GPU is cut into, at least one",
    Takes::Number(30)
);

const MOST_CHUNKS: u64 = 1_000_000;

struct Chunks {
    /// Where chunks begin, and where the last one ends.
    edges: Vec<i64>,
    /// The time of spans in the chunks in which they begin or end.
    partly: Vec<u128>,
    /// How many more spans cover a chunk wholly than the one before it.
    wholly: Vec<i64>,
}

#[derive(Serialize, Deserialize)]
struct Region {
    start: i64,
    end: i64,
    used: u128,
}

impl Region {
    fn middle(&self) -> f64 {
        self.start as f64 + self.end.wrapping_sub(self.start) as u64 as f64 / 2.0
    }

    fn use_percent(&self) -> f64 {
        100.0 * self.used as f64 / (self.end.wrapping_sub(self.start) as u64) as f64
    }
}

impl Chunks {
    /// Nothing is cut of a span without a moment.
    fn cut(first: i64, last: i64, chunks: u64) -> Chunks {
        let length = last.wrapping_sub(first) as u64;
        let chunks = chunks.clamp(1, MOST_CHUNKS).min(length);
        let edge = |at: u64| {
            let behind = u128::from(length) * u128::from(at) / u128::from(chunks.max(1));
            first.wrapping_add(behind as i64)
        };
        let edges: Vec<i64> = (0..=chunks).map(edge).collect();
        Chunks { edges, partly: vec![0; chunks as usize], wholly: vec![0; chunks as usize + 1] }
    }

    fn add(&mut self, (start, end): (i64, i64)) {
        let count = self.partly.len();
        let (start, end) = (start.max(self.edges[0]), end.min(self.edges[count]));
        if start >= end {
            return;
        }
        // The chunk in which it begins, and the one in which its last moment lies.
        let from = self.edges.partition_point(|edge| *edge <= start) - 1;
        let to = self.edges.partition_point(|edge| *edge < end) - 1;
        let within = |from: i64, to: i64| u128::from(to.wrapping_sub(from) as u64);
        if from == to {
            self.partly[from] += within(start, end);
            return;
        }
        self.partly[from] += within(start, self.edges[from + 1]);
        self.partly[to] += within(self.edges[to], end);
        self.wholly[from + 1] += 1;
        self.wholly[to] -= 1;
    }

    /// Each chunk as a region of its own.
    fn all(&self) -> impl Iterator<Item = Region> {
        let mut covering = 0;
        self.partly.iter().enumerate().map(move |(at, partly)| {
            covering += self.wholly[at];
            let (start, end) = (self.edges[at], self.edges[at + 1]);
            let length = end.wrapping_sub(start) as u64;
            Region { start, end, used: partly + covering as u128 * u128::from(length) }
        })
    }

    fn below(&self, threshold: f64) -> Vec<Region> {
        let mut regions: Vec<Region> = Vec::new();
        for chunk in self.all().filter(|chunk| chunk.use_percent() < threshold) {
            match regions.last_mut().filter(|last| last.end == chunk.start) {
                Some(last) => (last.end, last.used) = (chunk.end, last.used + chunk.used),
                None => regions.push(chunk),
            }
        }
        regions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn every_chunk_has_what_spans_have_in_it(
            spans in proptest::collection::vec((-10i64..120, 0i64..80), 0..20),
            chunks in 0u64..40,
        ) {
            let mut cut = Chunks::cut(0, 100, chunks);
            spans.iter().for_each(|(start, ns)| cut.add((*start, start + ns)));
            // All but what is endlessly used is below this, each chunk for itself or together.
            let seen: u128 = cut.below(f64::INFINITY).iter().map(|region| region.used).sum();
            let within = |(start, ns): &(i64, i64)| (start + ns).min(100) - (*start).max(0);
            let expected: i64 = spans.iter().map(within).filter(|ns| *ns > 0).sum();
            proptest::prop_assert_eq!(seen, expected as u128);
            proptest::prop_assert_eq!(cut.edges.last(), Some(&100));
        }
    }

    #[test]
    fn chunks_that_follow_one_another_are_one_region() {
        let mut chunks = Chunks::cut(0, 100, 10);
        for span in [(0, 10), (10, 14), (20, 21), (40, 100), (50, 60)] {
            chunks.add(span);
        }
        let regions = chunks.below(50.0);
        let spans: Vec<(i64, i64, u128)> = regions.iter().map(|one| (one.start, one.end, one.used)).collect();
        assert_eq!(spans, [(10, 40, 5)]);
        assert!(Chunks::cut(5, 5, 30).below(50.0).is_empty());
    }
}
