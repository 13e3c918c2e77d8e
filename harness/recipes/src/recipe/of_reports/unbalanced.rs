//! Each unbalanced NVTX range, with its thread and the time of the half that exists.

use super::{RecipeKind, ReportRecipe};
use crate::result_table::{Column, Quantity, ResultTable};
use nsys::tables::{NVTX_EVENTS, STRING_IDS};
use nsys::trace::balance::Balance;

pub(super) const NVTX_UNBALANCED: ReportRecipe = ReportRecipe {
    name: "nvtx_unbalanced",
    title: "NVTX Ranges Without an End or a Beginning",
    about: "pushes without a pop, pops without a push and ranges without an end, by thread and time",
    definition: "a range without an end was open when the capture ended; halves that the profiler left in rows of \
                 their own are put together by their thread's order, those of start and end are not. `Nth` counts \
                 those that lack the same under one name on one thread: a capture that ends within a range leaves one \
                 open, so that a second push of a name means a missing pop. A pop without a push may be that of a \
                 range which began before the capture did",
    arguments: &[],
    tables: &[&NVTX_EVENTS, &STRING_IDS],
    kind: RecipeKind::Rows {
        columns: &[&[
            "PID",
            "TID",
            "At: when it was pushed or popped",
            "Lacks: what is missing, its push or its pop",
            "Nth: how many of its thread came before",
            "Range",
        ]],
        of: |trace, _| {
            let Some(Balance { odd, whole }) = Balance::read(trace)? else { return Ok(None) };
            trace.note(format!("NVTX: balanced ranges: {whole}"));
            let plain = Quantity::Plain;
            let columns = vec![
                Column::integers("PID", plain, odd.iter().map(|odd| odd.pid)),
                Column::integers("TID", plain, odd.iter().map(|odd| odd.tid)),
                Column::integers("At", Quantity::BareNanoseconds, odd.iter().map(|odd| odd.at)),
                Column::texts("Lacks", odd.iter().map(|odd| odd.lack.name())),
                Column::integers("Nth", plain, odd.iter().map(|odd| odd.nth as i64)),
                Column::texts("Range", odd.iter().map(|odd| odd.label.as_str())),
            ];
            Ok(Some(ResultTable::new(NVTX_UNBALANCED.name, NVTX_UNBALANCED.title, columns)))
        },
    },
};

#[cfg(test)]
mod tests {
    use super::super::tests::{inputs, integers, surveyed, table, texts};
    use crate::testing::Made;

    #[test]
    fn each_range_that_lacks_a_half_is_a_row_of_its_report() {
        let (one, two) = (Made::begin(), Made::begin());
        one.range((0, 5), 3, "a").event(59, 3, &[("start", 7.into()), ("text", "b".to_owned().into())]);
        two.range((0, 5), 3, "a");
        let outcome = surveyed("nvtx_unbalanced", &[], &inputs(vec![one.path(), two.path()]));
        let rows = table(&outcome, "rows");
        assert_eq!(texts(rows, "Lacks"), ["pop"]);
        assert_eq!(texts(rows, "Range"), [":b"]);
        assert_eq!((integers(rows, "At"), integers(rows, "TID")), (vec![Some(7)], vec![Some(3)]));
    }
}
