//! Ranges by what their threads launched within them: from the begin of the first operation on a GPU to the end of the
//! last, gaps included.

use super::ReportSpec;
use super::pushpop::shallow_enough;
use super::summary::fitting;
use crate::figures::Grouped;
use crate::sheet::{Column, Quantity, Sheet};
use crate::source::nsys_export::ExportError;
use crate::tables::{GRAPH_TRACE, KERNEL, MEMCPY, MEMSET, NVTX_EVENTS, RUNTIME, STRING_IDS, TableSpec};
use crate::trace::nesting::{Place, path, places, threads};
use crate::trace::nvtx::{Ranges, Style};
use crate::trace::projection::{Work, project};
use crate::trace::{Keys, Part, Trace, pid_of, tid_of};
use std::cmp::Reverse;

const TABLES: &[&TableSpec] = &[&NVTX_EVENTS, &STRING_IDS, &RUNTIME, &KERNEL, &MEMCPY, &MEMSET, &GRAPH_TRACE];
const DATA: &str = "NV Tools Extension (NVTX) and CUDA trace";

pub(super) const NVTX_GPU_PROJ_TRACE: ReportSpec = ReportSpec {
    name: "nvtx_gpu_proj_trace",
    title: "NVTX GPU Projection Trace",
    about: "each range that launched work, from the begin of its first operation on a GPU to the end of its last one. An \
            operation (kernel, copy, fill, or graph that was traced as a whole) belongs to every range of one thread \
            within which its call lies on that thread, borders included; only such ranges are counted as children, and \
            start/end ranges have no level",
    data: DATA,
    arguments: &[],
    tables: TABLES,
    run: |trace, _| {
        let Some(all) = Projected::read(trace)? else { return Ok(None) };
        all.each().map(Some)
    },
};

pub(super) const NVTX_GPU_PROJ_SUM: ReportSpec = ReportSpec {
    name: "nvtx_gpu_proj_sum",
    title: "NVTX GPU Projection Summary",
    about: "ranges that launched work by name and style, with the time from the begin of each one's first operation on a \
            GPU to the end of its last one; see `nvtx_gpu_proj_trace`. Ranges that stand in one another count each",
    data: DATA,
    arguments: &[],
    tables: TABLES,
    run: |trace, _| {
        let Some(all) = Projected::read(trace)? else { return Ok(None) };
        all.by_name().map(Some)
    },
};

struct Projected {
    ranges: Ranges,
    places: Vec<Option<Place>>,
    /// The ranges that launched something, in the order of their projections.
    work: Vec<(usize, Work)>,
    /// Of each range how many of them stand in it directly.
    children: Vec<i64>,
}

impl Projected {
    fn read(trace: &Trace) -> Result<Option<Projected>, ExportError> {
        let Some(ranges) = Ranges::read(trace)? else { return Ok(None) };
        let threads = threads(&ranges);
        let places = places(&ranges, &threads);
        let all = project(trace, &ranges, &threads)?;
        let across = ranges.end_tid.iter().flatten().count();
        if across > 0 {
            trace.note(format!("NVTX: ranges that end on another thread, not projected: {across}"));
        }
        let mut work: Vec<(usize, Work)> =
            all.into_iter().enumerate().filter_map(|(row, work)| Some((row, work?))).collect();
        work.sort_by_key(|(row, work)| (work.start, ranges.start[*row], Reverse(ranges.end[*row]), *row));
        let mut children = vec![0; ranges.len()];
        for (row, _) in &work {
            if let Some(parent) = places[*row].and_then(|place| place.parent) {
                children[parent] += 1;
            }
        }
        Ok((!work.is_empty()).then_some(Projected { ranges, places, work, children }))
    }

    fn each(&self) -> Result<Sheet, ExportError> {
        let report = NVTX_GPU_PROJ_TRACE.name;
        let (ranges, work) = (&self.ranges, &self.work);
        let place = |row: usize| self.places[row];
        shallow_enough(report, work.iter().filter_map(|(row, _)| Some(place(*row)?.level)))?;
        let (plain, time) = (Quantity::Plain, Quantity::Nanoseconds);
        let of = |value: &dyn Fn(usize) -> i64| work.iter().map(|(row, _)| value(*row)).collect::<Vec<_>>();
        let of_place = |value: &dyn Fn(Place) -> Option<i64>| {
            work.iter().map(|(row, _)| place(*row).and_then(value)).collect::<Vec<_>>()
        };
        let long: Result<Vec<i64>, _> = work.iter().map(|(_, work)| fitting(report, work.ns())).collect();
        let lasted: Result<Vec<i64>, _> =
            work.iter().map(|(row, _)| fitting(report, ranges.ns(*row))).collect();
        let columns = vec![
            Column::texts("Name", work.iter().map(|(row, _)| ranges.label(*row))),
            Column::integers("Projected Start", time, work.iter().map(|(_, work)| work.start)),
            Column::integers("Projected Duration", time, long?),
            Column::integers("Orig Start", time, of(&|row| ranges.start[row])),
            Column::integers("Orig Duration", time, lasted?),
            Column::texts("Style", work.iter().map(|(row, _)| ranges.style[*row].name())),
            Column::integers("PID", plain, of(&|row| pid_of(ranges.global_tid[row]))),
            Column::integers("TID", plain, of(&|row| tid_of(ranges.global_tid[row]))),
            Column::integers("NumGPUOps", plain, work.iter().map(|(_, work)| work.operations as i64)),
            Column::maybe_integers("Lvl", plain, of_place(&|place| Some(place.level as i64))),
            Column::integers("NumChild", plain, of(&|row| self.children[row])),
            Column::integers("RangeId", plain, of(&|row| ranges.id[row])),
            Column::maybe_integers(
                "ParentId",
                plain,
                of_place(&|place| place.parent.map(|parent| ranges.id[parent])),
            ),
            Column::maybe_texts(
                "RangeStack",
                work.iter().map(|(row, _)| place(*row).map(|_| path(ranges, &self.places, *row))),
            ),
        ];
        Ok(Sheet { name: report, title: NVTX_GPU_PROJ_TRACE.title, columns })
    }

    fn by_name(&self) -> Result<Sheet, ExportError> {
        let report = NVTX_GPU_PROJ_SUM.name;
        let (ranges, work) = (&self.ranges, &self.work);
        let names: Vec<u32> = work.iter().map(|(row, _)| ranges.label.of_row[*row]).collect();
        let is_started = |row: usize| i64::from(ranges.style[row] == Style::StartEnd);
        let styles = Part::numbers(work.iter().map(|(row, _)| is_started(*row)));
        let keys = Keys::by(&[&names, &styles.of_row]);
        let projected: Vec<u64> = work.iter().map(|(_, work)| work.ns()).collect();
        let stats = Grouped::new(&keys.of_row, &projected, keys.groups.len()).stats();
        let mut sums: Vec<Sums> = vec![Sums::default(); keys.groups.len()];
        for ((row, work), group) in work.iter().zip(&keys.of_row) {
            let sums = &mut sums[*group as usize];
            sums.range_ns += u128::from(ranges.ns(*row));
            sums.operations += u128::from(work.operations);
            sums.children += self.children[*row] as u128;
            if let Some(place) = self.places[*row] {
                (sums.levels, sums.placed) = (sums.levels + place.level as u128, sums.placed + 1);
            }
        }
        let words = |group: usize| {
            let (name, style) = (keys.groups[group][0], keys.groups[group][1]);
            let style = if styles.labels[style as usize] == 1 { Style::StartEnd } else { Style::PushPop };
            (ranges.label.labels[name as usize].as_str(), style.name())
        };
        // Every group has a row, so that each has its figures.
        let mut rows: Vec<_> = stats.into_iter().zip(sums).enumerate().collect();
        rows.sort_by_key(|(group, (stats, _))| {
            (Reverse(stats.as_ref().map(|stats| stats.total)), words(*group))
        });
        let mut columns = Vec::new();
        let (plain, time) = (Quantity::Plain, Quantity::Nanoseconds);
        columns.push(Column::texts("Range", rows.iter().map(|(group, _)| words(*group).0)));
        columns.push(Column::texts("Style", rows.iter().map(|(group, _)| words(*group).1)));
        let stats: Vec<_> = rows.iter().filter_map(|(_, (stats, _))| stats.as_ref()).collect();
        let sums: Vec<_> = rows.iter().map(|(_, (_, sums))| sums).collect();
        let whole = |name: &str, quantity, values: Vec<u128>| {
            let values: Result<Vec<i64>, _> =
                values.into_iter().map(|value| fitting(report, value)).collect();
            Ok::<_, ExportError>(Column::integers(name, quantity, values?))
        };
        let mean = |name: &str, value: &dyn Fn(&Sums) -> u128| {
            let counts = stats.iter().map(|stats| stats.count);
            let means = sums.iter().zip(counts).map(|(sums, count)| value(sums) as f64 / count as f64);
            Column::decimals(name, plain, means)
        };
        columns.extend([
            whole("Total Proj Time", time, stats.iter().map(|stats| stats.total).collect())?,
            whole("Total Range Time", time, sums.iter().map(|sums| sums.range_ns).collect())?,
            whole("Range Instances", plain, stats.iter().map(|stats| u128::from(stats.count)).collect())?,
            Column::decimals("Proj Avg", time, stats.iter().map(|stats| stats.mean)),
            Column::decimals("Proj Med", time, stats.iter().map(|stats| stats.median)),
            whole("Proj Min", time, stats.iter().map(|stats| u128::from(stats.min)).collect())?,
            whole("Proj Max", time, stats.iter().map(|stats| u128::from(stats.max)).collect())?,
            Column::decimals("Proj StdDev", time, stats.iter().map(|stats| stats.stddev)),
            whole("Total GPU Ops", plain, sums.iter().map(|sums| sums.operations).collect())?,
            mean("Avg GPU Ops", &|sums| sums.operations),
            Column::maybe_decimals(
                "Avg Range Lvl",
                plain,
                sums.iter().map(|sums| (sums.placed > 0).then(|| sums.levels as f64 / sums.placed as f64)),
            ),
            mean("Avg Num Child", &|sums| sums.children),
        ]);
        Ok(Sheet { name: report, title: NVTX_GPU_PROJ_SUM.title, columns })
    }
}

/// Of the ranges of one name and style.
#[derive(Debug, Clone, Default)]
struct Sums {
    range_ns: u128,
    operations: u128,
    children: u128,
    /// Only push/pop ranges have a level.
    levels: u128,
    placed: u64,
}
