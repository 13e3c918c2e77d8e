//! Each push/pop range, and how it nests in those of its thread.

use super::ReportSpec;
use super::summary::fitting;
use crate::result_table::{Column, Quantity, ResultTable};
use nsys::export::ExportError;
use nsys::tables::{NVTX_EVENTS, STRING_IDS};
use nsys::trace::nesting::{NestedPosition, path, places, threads};
use nsys::trace::nvtx::{Ranges, Style};
use nsys::trace::{pid_of, tid_of};

pub(super) const NVTX_PUSHPOP_TRACE: ReportSpec = ReportSpec {
    name: "nvtx_pushpop_trace",
    title: "NVTX Push/Pop Range Trace",
    about: "each range that was pushed and popped, in the order of their beginnings. The ranges of a thread stand in one \
            another whatever their domains; DurChild is the time of those that stand in it directly, and the name in \
            NameTree is set in by its level",
    data: "NV Tools Extension (NVTX)",
    arguments: &[],
    tables: &[&NVTX_EVENTS, &STRING_IDS],
    run: |trace, _| {
        let Some(ranges) = Ranges::read(trace)? else { return Ok(None) };
        let places = places(&ranges, &threads(&ranges));
        let across =
            (0..ranges.len()).filter(|row| is_pushed(&ranges, *row) && places[*row].is_none()).count();
        if across > 0 {
            trace.note(format!("NVTX: push/pop ranges that end on another thread, left out: {across}"));
        }
        trace_of(&ranges, &places)
    },
};

fn is_pushed(ranges: &Ranges, row: usize) -> bool {
    ranges.style[row] == Style::PushPop
}

fn trace_of(ranges: &Ranges, places: &[Option<NestedPosition>]) -> Result<Option<ResultTable>, ExportError> {
    let report = NVTX_PUSHPOP_TRACE.name;
    let mut order: Vec<(usize, NestedPosition)> =
        places.iter().enumerate().filter_map(|(row, place)| Some((row, (*place)?))).collect();
    if order.is_empty() {
        return Ok(None);
    }
    shallow_enough(report, order.iter().map(|(_, place)| place.level))?;
    order.sort_by_key(|(row, place)| (ranges.start[*row], ranges.global_tid[*row], place.level, *row));
    let (mut children, mut of_children) = (vec![0i64; ranges.len()], vec![0u128; ranges.len()]);
    for (row, place) in &order {
        if let Some(parent) = place.parent {
            children[parent] += 1;
            of_children[parent] += u128::from(ranges.ns(*row));
        }
    }
    let (plain, bare) = (Quantity::Plain, Quantity::BareNanoseconds);
    let mut columns = vec![Column::integers("Start", bare, order.iter().map(|(row, _)| ranges.start[*row]))];
    columns.push(Column::integers("End", bare, order.iter().map(|(row, _)| ranges.end[*row])));
    let mut span = |name: &str, value: &dyn Fn(usize) -> i128| {
        let values: Result<Vec<i64>, _> = order.iter().map(|(row, _)| fitting(report, value(*row))).collect();
        columns.push(Column::integers(name, bare, values?));
        Ok::<_, ExportError>(())
    };
    // Children whose borders cross may take longer together than the range in which they stand.
    span("Duration", &|row| i128::from(ranges.ns(row)))?;
    span("DurChild", &|row| of_children[row] as i128)?;
    span("DurNonChild", &|row| i128::from(ranges.ns(row)) - of_children[row] as i128)?;
    let of = |value: &dyn Fn(usize) -> i64| order.iter().map(|(row, _)| value(*row)).collect::<Vec<_>>();
    columns.extend([
        Column::texts("Name", order.iter().map(|(row, _)| ranges.label(*row))),
        Column::integers("PID", plain, of(&|row| pid_of(ranges.global_tid[row]))),
        Column::integers("TID", plain, of(&|row| tid_of(ranges.global_tid[row]))),
        Column::integers("Lvl", plain, order.iter().map(|(_, place)| place.level as i64)),
        Column::integers("NumChild", plain, of(&|row| children[row])),
        Column::integers("RangeId", plain, of(&|row| ranges.id[row])),
        Column::maybe_integers(
            "ParentId",
            plain,
            order.iter().map(|(_, place)| place.parent.map(|parent| ranges.id[parent])),
        ),
        Column::texts("RangeStack", order.iter().map(|(row, _)| path(ranges, places, *row))),
        Column::texts(
            "NameTree",
            order.iter().map(|(row, place)| format!("{}{}", "  ".repeat(place.level), ranges.label(*row))),
        ),
    ]);
    Ok(Some(ResultTable::new(report, NVTX_PUSHPOP_TRACE.title, columns)))
}

/// All stacks of ranges written out have this many ids at most.
const MOST_IDS: usize = 1 << 27;

/// Every row repeats its whole stack: a hundred thousand ranges, each in the one before, would fill any memory.
pub(super) fn shallow_enough(
    report: &'static str,
    levels: impl Iterator<Item = usize>,
) -> Result<(), ExportError> {
    let ids: usize = levels.map(|level| level + 1).sum();
    if ids > MOST_IDS {
        let why = format!("ranges nest too deeply to write the stack of each: {ids} ids");
        return Err(ExportError::Broken { table: report, why });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{lines, run};
    use super::shallow_enough;
    use crate::testing::Made;

    #[test]
    fn ranges_have_rows_with_their_nesting() {
        let made = Made::begin();
        made.range((5, 40), 3, "inner").range((0, 100), 3, "outer").range((50, 100), 3, "inner");
        made.range((10, 20), 3, "leaf").range((0, 30), 4, "other").started((0, 200), (3, 3), "whole");
        let found = lines(&made.trace(), "nvtx_pushpop_trace");
        let head = "Start|End|Duration|DurChild|DurNonChild|Name|PID|TID|Lvl|NumChild|RangeId|ParentId|RangeStack|\
                    NameTree";
        assert_eq!(
            found,
            [
                head,
                "0|100|100|85|15|:outer|40|3|0|2|2||:2|:outer",
                "0|30|30|0|30|:other|40|4|0|0|5||:5|:other",
                "5|40|35|10|25|:inner|40|3|1|1|1|2|:2:1|  :inner",
                "10|20|10|0|10|:leaf|40|3|2|0|4|1|:2:1:4|    :leaf",
                "50|100|50|0|50|:inner|40|3|1|0|3|2|:2:3|  :inner",
            ]
        );
    }

    #[test]
    fn a_range_that_only_crosses_another_does_not_stand_in_it() {
        let made = Made::begin();
        made.range((0, 10), 3, "a").range((5, 15), 3, "b").range((6, 9), 3, "c").range((15, 15), 3, "d");
        made.range((5, 15), 3, "e");
        let found = lines(&made.trace(), "nvtx_pushpop_trace");
        let stacks: Vec<&str> = found[1..].iter().filter_map(|line| line.split('|').nth(12)).collect();
        assert_eq!(stacks, [":1", ":2", ":2:5", ":2:5:3", ":2:5:4"]);
    }

    #[test]
    fn only_pushed_ranges_have_rows_and_those_of_two_threads_are_counted_in_a_note() {
        let made = Made::begin();
        made.started((0, 10), (3, 3), "a");
        assert!(lines(&made.trace(), "nvtx_pushpop_trace").is_empty());
        let own = [("end", 5i64.into()), ("endGlobalTid", 77i64.into())];
        made.event(nsys::trace::nvtx::PUSH_POP, 3, &own).range((0, 1), 3, "b");
        let trace = made.trace();
        assert_eq!(lines(&trace, "nvtx_pushpop_trace").len(), 2);
        assert_eq!(trace.notes(), ["NVTX: push/pop ranges that end on another thread, left out: 1"]);
    }

    #[test]
    fn times_before_zero_are_times_and_spans_that_do_not_fit_are_errors() {
        let made = Made::begin();
        made.range((-30, -10), 3, "before");
        assert!(lines(&made.trace(), "nvtx_pushpop_trace")[1].starts_with("-30|-10|20|0|20|:before"));
        made.range((i64::MIN, i64::MAX - 1), 3, "ever");
        let error = run(&made.trace(), "nvtx_pushpop_trace").expect_err("too long").to_string();
        assert!(error.contains("does not fit into 64 bits"), "{error}");
    }

    #[test]
    fn stacks_that_would_fill_the_memory_are_an_error() {
        assert!(shallow_enough("r", (0..1000).map(|_| 50)).is_ok());
        let error = shallow_enough("r", 0..100_000).expect_err("deep").to_string();
        assert!(error.contains("nest too deeply"), "{error}");
    }
}
