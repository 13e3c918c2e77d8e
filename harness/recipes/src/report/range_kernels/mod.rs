//! Kernels by the ranges within which they were launched.

mod crowded;

use super::kernels::{BASE, MANGLED, name_column, names};
use super::measured::{Group, GroupKey, Shows, columns, sort};
use super::summary::fitting;
use super::{Arguments, ReportSpec};
use crate::figures::{Figure, Gathered, Grouped, Keeps};
use crate::result_table::ResultTable;
use nsys::export::ExportError;
use nsys::tables::{KERNEL, NVTX_EVENTS, RUNTIME, STRING_IDS};
use nsys::trace::launches::Calls;
use nsys::trace::nesting::{Thread, threads};
use nsys::trace::nvtx::{Ranges, Style};
use nsys::trace::{Part, Trace, pid_of, tid_of};
use rayon::prelude::*;
use std::collections::{BTreeMap, HashMap};

pub(super) const NVTX_KERN_SUM: ReportSpec = ReportSpec {
    name: "nvtx_kern_sum",
    title: "NVTX Range Kernel Summary",
    about: "kernels by name within ranges by name, style and thread. A kernel belongs to every range of one thread within \
            which its call lies on that thread, borders included: within two ranges of one name it counts twice",
    data: "NV Tools Extension (NVTX) and CUDA kernel",
    arguments: &[BASE, MANGLED],
    tables: &[&NVTX_EVENTS, &STRING_IDS, &RUNTIME, &KERNEL],
    run: |trace, arguments| {
        let Some(mut groups) = kernels_by_range(trace, arguments)? else { return Ok(None) };
        sort(&mut groups);
        let name = "nvtx_kern_sum";
        let columns = columns(&groups, RANGE_SHOWS, |value| fitting(name, value).map(Some))?;
        Ok(Some(ResultTable::new(name, "NVTX Range Kernel Summary", columns)))
    },
};

/// Kernels within ranges, by range, style, thread and kernel. Measures: the kernels' time, and how many ranges have one.
pub(crate) fn kernels_by_range<K: Keeps>(
    trace: &Trace,
    arguments: &Arguments,
) -> Result<Option<Vec<Group<K>>>, ExportError> {
    let Some(ranges) = Ranges::read(trace)? else { return Ok(None) };
    let threads = threads(&ranges);
    let Some(kernels) = Kernels::read(trace, arguments, &threads)? else { return Ok(None) };
    let mut groups: BTreeMap<(usize, bool, u32), Vec<usize>> = BTreeMap::new();
    for (number, thread) in threads.iter().enumerate() {
        for row in &thread.ranges {
            let is_started = ranges.style[*row] == Style::StartEnd;
            let label = ranges.label.of_row[*row];
            groups.entry((number, is_started, label)).or_default().push(*row);
        }
    }
    let groups: Vec<_> = groups.into_iter().collect();
    let found = groups.par_iter().map(|((thread, _, _), rows)| {
        let spans = rows.iter().map(|row| (ranges.start[*row], ranges.end[*row]));
        within(&kernels.of_thread[*thread], &spans.collect::<Vec<_>>())
    });
    let found: Vec<Vec<Within<K>>> = found.collect();
    let mut measured = Vec::new();
    for ((_, rows), within) in groups.iter().zip(found) {
        let row = rows[0];
        let text = |text: &str| GroupKey::Text(text.to_owned());
        measured.extend(within.into_iter().map(|one| Group {
            words: vec![
                text(ranges.label(row)),
                text(ranges.style[row].name()),
                GroupKey::Number(pid_of(ranges.global_tid[row])),
                GroupKey::Number(tid_of(ranges.global_tid[row])),
                text(&kernels.labels[one.name as usize]),
            ],
            measures: vec![Some(Gathered::All(one.kept)), Gathered::sum([one.ranges])],
        }));
    }
    Ok((!measured.is_empty()).then_some(measured))
}

/// Of `kernels_by_range`.
pub(crate) const RANGE_SHOWS: &[Shows] = &[
    Shows::Text("NVTX Range", 0),
    Shows::Text("Style", 1),
    Shows::Number("PID", 2),
    Shows::Number("TID", 3),
    Shows::plain("NVTX Inst", 1, Figure::Total),
    Shows::plain("Kern Inst", 0, Figure::Count),
    Shows::bare("Total Time", 0, Figure::Total),
    Shows::bare("Avg", 0, Figure::Mean),
    Shows::bare("Med", 0, Figure::Median),
    Shows::bare("Min", 0, Figure::Min),
    Shows::bare("Max", 0, Figure::Max),
    Shows::bare("StdDev", 0, Figure::Deviation),
    Shows::Text("Kernel Name", 4),
];

/// One kernel and one call that launched it.
struct Launched {
    call: (i64, i64),
    name: u32,
    ns: u64,
}

struct Kernels {
    /// Of each thread those that it launched, the call that began earlier first.
    of_thread: Vec<Vec<Launched>>,
    labels: Vec<String>,
}

impl Kernels {
    fn read(
        trace: &Trace,
        arguments: &Arguments,
        threads: &[Thread],
    ) -> Result<Option<Kernels>, ExportError> {
        let columns = ["start", "end", "demangledName", "correlationId", "globalPid", name_column(arguments)];
        let Some(kernels) = trace.rows(&KERNEL, &columns)? else { return Ok(None) };
        let Some(calls) = Calls::read(trace, &[])? else { return Ok(None) };
        let names = names(trace, &kernels, arguments)?;
        let durations = trace.durations("kernels", kernels.ints("start")?, kernels.ints("end")?);
        let (starts, ends) = (calls.rows().ints("start")?, calls.rows().ints("end")?);
        let tids = calls.rows().maybe_ints("globalTid")?;
        let numbers = threads.iter().enumerate().map(|(number, thread)| (thread.global_tid, number));
        let numbers: HashMap<i64, usize> = numbers.collect();
        let mut of_thread: Vec<Vec<Launched>> = threads.iter().map(|_| Vec::new()).collect();
        for launch in calls.launches(trace, "kernels", &kernels)? {
            let (kernel, call) = (launch.operation as usize, launch.call as usize);
            if let Some(number) = tids.get(call).and_then(|tid| numbers.get(&tid)) {
                let (name, ns) = (names.of_row[kernel], durations.ns()[kernel]);
                of_thread[*number].push(Launched { call: (starts[call], ends[call]), name, ns });
            }
        }
        for launched in &mut of_thread {
            launched.sort_by_key(|one| one.call.0);
        }
        Ok(Some(Kernels { of_thread, labels: names.labels }))
    }
}

/// The kernels of one name within ranges.
#[derive(Debug, PartialEq)]
struct Within<K> {
    name: u32,
    /// How many of the ranges have one.
    ranges: u64,
    kept: K,
}

/// What lies within ranges of one name: spans in the order of their beginnings.
fn within<K: Keeps>(launched: &[Launched], spans: &[(i64, i64)]) -> Vec<Within<K>> {
    let run = |(start, end): &(i64, i64)| {
        let from = launched.partition_point(|one| one.call.0 < *start);
        from..from.max(launched.partition_point(|one| one.call.0 <= *end))
    };
    let looked_at: usize = spans.iter().map(|span| run(span).len()).sum();
    if looked_at > MOST_LOOKS * launched.len() {
        return crowded::within(launched, spans);
    }
    let (mut names, mut of_span, mut ns) = (Vec::new(), Vec::new(), Vec::new());
    for (number, span) in spans.iter().enumerate() {
        for one in launched[run(span)].iter().filter(|one| one.call.1 <= span.1) {
            names.push(i64::from(one.name));
            of_span.push(number);
            ns.push(one.ns);
        }
    }
    let names = Part::numbers(names.into_iter());
    let (mut ranges, mut last) = (vec![0; names.labels.len()], vec![usize::MAX; names.labels.len()]);
    for (name, span) in names.of_row.iter().zip(of_span) {
        if std::mem::replace(&mut last[*name as usize], span) != span {
            ranges[*name as usize] += 1;
        }
    }
    let kept = Grouped::new(&names.of_row, &ns, names.labels.len()).gather();
    let found = names.labels.iter().zip(ranges).zip(kept);
    let found =
        found.filter_map(|((name, ranges), kept)| Some(Within { name: *name as u32, ranges, kept: kept? }));
    found.collect()
}

/// Ranges of one name seldom stand in one another. Where each kernel would be looked at more often than this, it is
/// weighed instead.
const MOST_LOOKS: usize = 4;

#[cfg(test)]
mod tests {
    use super::super::tests::lines;
    use crate::testing::Made;

    #[test]
    fn kernels_are_summed_within_ranges_by_name_style_and_thread() {
        let made = Made::begin();
        made.string(1, "a(int)").string(2, "a").string(3, "b()").string(4, "b");
        made.range((0, 100), 3, "step").range((200, 300), 3, "step").range((0, 100), 4, "step");
        made.started((0, 250), (3, 3), "step");
        made.call((10, 20), 3, 1, 9).kernel((1000, 1010), 1, 1).call((30, 40), 3, 2, 9).kernel(
            (1020, 1050),
            2,
            1,
        );
        made.call((210, 220), 3, 3, 9).kernel((1100, 1150), 3, 1).kernel((1200, 1207), 3, 3);
        made.call((90, 101), 3, 4, 9).kernel((2000, 2999), 4, 3).call((50, 50), 4, 5, 9).kernel(
            (3000, 3001),
            5,
            1,
        );
        let head =
            "NVTX Range|Style|PID|TID|NVTX Inst|Kern Inst|Total Time|Avg|Med|Min|Max|StdDev|Kernel Name";
        assert_eq!(
            lines(&made.trace(), "nvtx_kern_sum:base"),
            [
                head,
                ":step|StartEnd|40|3|1|2|1006|503.0|503.0|7|999|701.4|b",
                ":step|PushPop|40|3|2|3|90|30.0|30.0|10|50|20.0|a",
                ":step|StartEnd|40|3|1|3|90|30.0|30.0|10|50|20.0|a",
                ":step|PushPop|40|3|1|1|7|7.0|7.0|7|7|0.0|b",
                ":step|PushPop|40|4|1|1|1|1.0|1.0|1|1|0.0|a",
            ]
        );
    }

    #[test]
    fn a_kernel_within_two_ranges_of_one_name_counts_twice() {
        let made = Made::begin();
        made.string(1, "a");
        made.range((0, 100), 3, "f").range((10, 90), 3, "f").range((50, 150), 3, "f");
        made.call((60, 61), 3, 1, 9).kernel((500, 510), 1, 1).call((20, 21), 3, 2, 9).kernel(
            (600, 630),
            2,
            1,
        );
        let found = lines(&made.trace(), "nvtx_kern_sum");
        assert_eq!(found[1..], [":f|PushPop|40|3|3|5|90|18.0|10.0|10|30|11.0|a"]);
    }
}
