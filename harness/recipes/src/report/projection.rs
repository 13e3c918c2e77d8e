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

#[cfg(test)]
mod tests {
    use super::super::tests::{lines, run};
    use crate::trace::testing::{Made, OTHER_PROCESS, PROCESS};
    use crate::trace::{Filter, RangeFilter};

    /// Two steps with a part each, kernels of both and a fill, and a range that launches nothing.
    fn made() -> Made {
        let made = Made::begin();
        made.range((0, 100), 3, "step").range((10, 40), 3, "part").range((200, 300), 3, "step");
        made.range((210, 240), 3, "part").range((50, 60), 3, "idle").started((5, 250), (3, 3), "whole");
        made.call((12, 20), 3, 1, 1).kernel((500, 600), 1, 1);
        made.call((30, 40), 3, 2, 1).fill((550, 700), 2);
        made.call((41, 45), 3, 3, 1).kernel((40, 90), 3, 1);
        made.call((210, 240), 3, 4, 1).kernel((800, 801), 4, 1).kernel((805, 806), 4, 1);
        // A call that crosses the end of its step, one outside all ranges, one of another thread and of another process.
        made.call((290, 301), 3, 5, 1).kernel((900, 999), 5, 1);
        made.call((400, 401), 3, 6, 1).kernel((402, 403), 6, 1);
        made.call((12, 20), 4, 7, 1).kernel((502, 503), 7, 1);
        made.call_of(OTHER_PROCESS, (12, 20), 3, 8, 1).kernel_of(OTHER_PROCESS, (502, 503), 8, 1);
        made
    }

    #[test]
    fn ranges_are_projected_from_their_first_operation_to_their_last() {
        let head = "Name|Projected Start (ns)|Projected Duration (ns)|Orig Start (ns)|Orig Duration (ns)|Style|PID|TID|\
                    NumGPUOps|Lvl|NumChild|RangeId|ParentId|RangeStack";
        assert_eq!(
            lines(&made().trace(), "nvtx_gpu_proj_trace"),
            [
                head,
                ":step|40|660|0|100|PushPop|40|3|3|0|1|1||:1",
                ":whole|40|766|5|245|StartEnd|40|3|5||0|6||",
                ":part|500|200|10|30|PushPop|40|3|2|1|0|2|1|:1:2",
                ":step|800|6|200|100|PushPop|40|3|2|0|1|3||:3",
                ":part|800|6|210|30|PushPop|40|3|2|1|0|4|3|:3:4",
            ]
        );
    }

    #[test]
    fn projections_are_summed_by_name_and_style() {
        let head = "Range|Style|Total Proj Time (ns)|Total Range Time (ns)|Range Instances|Proj Avg (ns)|Proj Med (ns)|\
                    Proj Min (ns)|Proj Max (ns)|Proj StdDev (ns)|Total GPU Ops|Avg GPU Ops|Avg Range Lvl|Avg Num Child";
        assert_eq!(
            lines(&made().trace(), "nvtx_gpu_proj_sum"),
            [
                head,
                ":whole|StartEnd|766|245|1|766.0|766.0|766|766|0.0|5|5.0||0.0",
                ":step|PushPop|666|200|2|333.0|333.0|6|660|462.4|5|2.5|0.0|1.0",
                ":part|PushPop|206|60|2|103.0|103.0|6|200|137.2|4|2.0|1.0|0.0",
            ]
        );
    }

    #[test]
    fn borders_belong_to_ranges() {
        let made = Made::begin();
        made.range((10, 20), 3, "a").range((20, 30), 3, "b").range((21, 30), 3, "c").range((10, 19), 3, "d");
        made.call((10, 20), 3, 1, 1).kernel((50, 51), 1, 1).call((20, 20), 3, 2, 1).kernel((60, 61), 2, 1);
        let found = lines(&made.trace(), "nvtx_gpu_proj_trace");
        let operations: Vec<Vec<&str>> = found[1..].iter().map(|line| line.split('|').collect()).collect();
        let operations: Vec<(&str, &str)> = operations.iter().map(|cells| (cells[0], cells[8])).collect();
        assert_eq!(operations, [(":a", "2"), (":b", "1")]);
    }

    #[test]
    fn ranges_of_two_threads_are_not_projected_and_counted_in_a_note() {
        let made = Made::begin();
        made.started((0, 100), (3, 4), "across").call((10, 20), 3, 1, 1).kernel((50, 51), 1, 1);
        let trace = made.trace();
        assert!(lines(&trace, "nvtx_gpu_proj_sum").is_empty());
        assert_eq!(trace.notes(), ["NVTX: ranges that end on another thread, not projected: 1"]);
    }

    #[test]
    fn a_graph_that_was_traced_as_a_whole_is_one_operation() {
        let made = Made::begin();
        made.range((0, 100), 3, "step").call((10, 20), 3, 1, 1);
        let numbers =
            [("start", 50), ("end", 90), ("deviceId", 0), ("correlationId", 1), ("globalPid", PROCESS)];
        let row: Vec<_> = numbers.iter().map(|(name, value)| (*name, i64::into(*value))).collect();
        made.put(&super::GRAPH_TRACE, &row);
        let found = lines(&made.trace(), "nvtx_gpu_proj_trace");
        assert_eq!(found[1..], [":step|50|40|0|100|PushPop|40|3|1|0|0|1||:1"]);
    }

    #[test]
    fn nothing_is_projected_without_calls_without_ranges_or_without_operations() {
        let (calls, ranges) = (Made::begin(), Made::begin());
        calls.call((10, 20), 3, 1, 1).kernel((50, 51), 1, 1);
        ranges.range((0, 100), 3, "step").kernel((50, 51), 1, 1);
        let neither = Made::begin();
        neither.range((0, 100), 3, "step").call((10, 20), 3, 1, 1);
        for made in [calls, ranges, neither] {
            for report in ["nvtx_gpu_proj_trace", "nvtx_gpu_proj_sum", "nvtx_kern_sum"] {
                assert!(lines(&made.trace(), report).is_empty(), "{report}");
            }
        }
    }

    #[test]
    fn a_filter_by_ranges_leaves_what_its_calls_launched_and_their_ranges() {
        let filter: RangeFilter = "step/1".parse().expect("a range");
        let trace = made().trace().filtered(&Filter::Range(filter)).expect("filtered");
        let found = lines(&trace, "nvtx_gpu_proj_trace");
        let ids: Vec<&str> = found[1..].iter().filter_map(|line| line.split('|').nth(11)).collect();
        assert_eq!(ids, ["6", "3", "4"], "the whole run overlaps the step, the other step does not");
        assert!(found[1].starts_with(":whole|800|6|"), "{}", found[1]);
    }

    #[test]
    fn a_projection_that_does_not_fit_is_an_error() {
        let made = Made::begin();
        made.range((0, 100), 3, "step").call((10, 20), 3, 1, 1);
        made.kernel((i64::MIN, 0), 1, 1).kernel((5, i64::MAX), 1, 1);
        for report in ["nvtx_gpu_proj_trace", "nvtx_gpu_proj_sum"] {
            let error = run(&made.trace(), report).expect_err("too long").to_string();
            assert!(error.contains("does not fit into 64 bits"), "{error}");
        }
    }
}
