//! Ranges by what their threads launched within them: from the begin of the first operation on a GPU to the end of the
//! last, gaps included.

use super::ReportSpec;
use super::measured::{Group, GroupKey, Shows, columns, sort};
use super::projected_rows;
use super::summary::fitting;
use crate::figures::{Figure, Gathered, Grouped, Keeps};
use crate::result_table::ResultTable;
use nsys::export::ExportError;
use nsys::tables::{GRAPH_TRACE, KERNEL, MEMCPY, MEMSET, NVTX_EVENTS, RUNTIME, STRING_IDS, TableSpec};
use nsys::trace::nesting::{NestedPosition, Thread, places, threads};
use nsys::trace::nvtx::{Ranges, Style};
use nsys::trace::projection::{Launched, Work};
use nsys::trace::{Keys, Part, Trace};
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
    run: |trace, _| projected_rows::published(trace),
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
        let Some(mut groups) = projected_by_name(trace)? else { return Ok(None) };
        sort(&mut groups);
        let name = "nvtx_gpu_proj_sum";
        let columns = columns(&groups, PROJECTED_SHOWS, |value| fitting(name, value).map(Some))?;
        Ok(Some(ResultTable::new(name, "NVTX GPU Projection Summary", columns)))
    },
};

pub(super) struct Projected {
    pub(super) ranges: Ranges,
    pub(super) places: Vec<Option<NestedPosition>>,
    /// The ranges that launched something, in the order of their projections.
    pub(super) work: Vec<(usize, Work)>,
    /// Of each range how many of them stand in it directly.
    pub(super) children: Vec<i64>,
    threads: Vec<Thread>,
    launched: Option<Launched>,
}

impl Projected {
    /// Nothing where there are no ranges.
    pub(super) fn read(trace: &Trace) -> Result<Option<Projected>, ExportError> {
        let Some(ranges) = Ranges::read(trace)? else { return Ok(None) };
        let threads = threads(&ranges);
        let places = places(&ranges, &threads);
        let launched = Launched::read(trace)?;
        let all = match &launched {
            Some(launched) => launched.within(&ranges, &threads)?,
            None => Vec::new(),
        };
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
        Ok(Some(Projected { ranges, places, work, children, threads, launched }))
    }

    /// What threads launched outside all their ranges, in the order of their numbers.
    pub(super) fn outside(&self) -> Result<Vec<(i64, Work)>, ExportError> {
        match &self.launched {
            Some(launched) => launched.outside(&self.ranges, &self.threads),
            None => Ok(Vec::new()),
        }
    }

    fn by_name<K: Keeps>(&self) -> Vec<Group<K>> {
        let (ranges, work) = (&self.ranges, &self.work);
        let names: Vec<u32> = work.iter().map(|(row, _)| ranges.label.of_row[*row]).collect();
        let is_started = |row: usize| i64::from(ranges.style[row] == Style::StartEnd);
        let styles = Part::numbers(work.iter().map(|(row, _)| is_started(*row)));
        let keys = Keys::by(&[&names, &styles.of_row]);
        let projected: Vec<u64> = work.iter().map(|(_, work)| work.ns()).collect();
        let kept = Grouped::new(&keys.of_row, &projected, keys.groups.len()).gather::<K>();
        let mut sums: Vec<[(u64, u128); 4]> = vec![Default::default(); keys.groups.len()];
        for ((row, work), group) in work.iter().zip(&keys.of_row) {
            // Only push/pop ranges have a level.
            let level = self.places[*row].map(|place| place.level as u64);
            let values =
                [Some(ranges.ns(*row)), Some(work.operations), level, Some(self.children[*row] as u64)];
            for ((count, total), value) in sums[*group as usize].iter_mut().zip(values) {
                *count += u64::from(value.is_some());
                *total += u128::from(value.unwrap_or_default());
            }
        }
        let groups = keys.groups.iter().zip(kept).zip(sums).map(|((group, kept), sums)| {
            let style = if styles.labels[group[1] as usize] == 1 { Style::StartEnd } else { Style::PushPop };
            let words = [ranges.label.labels[group[0] as usize].as_str(), style.name()];
            let mut measures = vec![kept.map(Gathered::All)];
            measures.extend(sums.map(|(count, total)| (count > 0).then_some(Gathered::Sum { count, total })));
            Group { words: words.map(|word| GroupKey::Text(word.to_owned())).into(), measures }
        });
        groups.collect()
    }
}

/// Ranges by name and style. Measures: the projection, the range itself, operations, level, children.
pub(crate) fn projected_by_name<K: Keeps>(trace: &Trace) -> Result<Option<Vec<Group<K>>>, ExportError> {
    Ok(Projected::read(trace)?.map(|all| all.by_name()).filter(|groups| !groups.is_empty()))
}

/// Of `projected_by_name`.
pub(crate) const PROJECTED_SHOWS: &[Shows] = &[
    Shows::Text("Range", 0),
    Shows::Text("Style", 1),
    Shows::ns("Total Proj Time", 0, Figure::Total),
    Shows::ns("Total Range Time", 1, Figure::Total),
    Shows::plain("Range Instances", 0, Figure::Count),
    Shows::ns("Proj Avg", 0, Figure::Mean),
    Shows::ns("Proj Med", 0, Figure::Median),
    Shows::ns("Proj Min", 0, Figure::Min),
    Shows::ns("Proj Max", 0, Figure::Max),
    Shows::ns("Proj StdDev", 0, Figure::Deviation),
    Shows::plain("Total GPU Ops", 2, Figure::Total),
    Shows::plain("Avg GPU Ops", 2, Figure::Mean),
    Shows::plain("Avg Range Lvl", 3, Figure::Mean),
    Shows::plain("Avg Num Child", 4, Figure::Mean),
];

#[cfg(test)]
mod tests {
    use super::super::tests::{lines, run};
    use crate::testing::{Made, OTHER_PROCESS, PROCESS};
    use nsys::trace::{Filter, RangeFilter};

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
        made.kernel((i64::MIN, 0), 1, 1).kernel((5, i64::MAX - 1), 1, 1);
        for report in ["nvtx_gpu_proj_trace", "nvtx_gpu_proj_sum"] {
            let error = run(&made.trace(), report).expect_err("too long").to_string();
            assert!(error.contains("does not fit into 64 bits"), "{error}");
        }
    }
}
