//! Calls into the C library, by name.

use super::ReportSpec;
use super::summary::{Groups, Summary};
use nsys::export::ExportError;
use nsys::tables::{OSRT_API, STRING_IDS};
use nsys::trace::NO_GROUP;
use nsys::trace::{Part, Trace};

/// The class of a call that was seen to begin and to end.
const WHOLE_CALL: i64 = 27;

pub(super) const OSRT_SUM: ReportSpec = ReportSpec {
    name: "osrt_sum",
    title: "OS Runtime Summary",
    about: "calls into the C library by name; calls that were only seen to begin, or to end, are left out",
    data: "OS Runtime trace",
    arguments: &[],
    tables: &[&OSRT_API, &STRING_IDS],
    run: |trace, _| {
        let Some(groups) = calls(trace)? else { return Ok(None) };
        Summary::new(groups).time_table("osrt_sum", "OS Runtime Summary", "Num Calls", &["Name"]).map(Some)
    },
};

/// Whole calls by name, with their durations.
pub(crate) fn calls(trace: &Trace) -> Result<Option<Groups>, ExportError> {
    let Some(rows) = trace.rows(&OSRT_API, &["start", "end", "nameId", "eventClass"])? else {
        return Ok(None);
    };
    let (starts, ends) = (rows.ints("start")?, rows.ints("end")?);
    let mut names = Part::named(rows.ints("nameId")?.iter().copied(), trace.strings()?, |name| name);
    let durations = trace.durations("calls of the C library", starts, ends);
    durations.mask(starts, |row| Some(ends[row]), &mut names.of_row);
    let classes = rows.maybe_ints("eventClass")?;
    let mut halves = 0;
    for (row, group) in names.of_row.iter_mut().enumerate() {
        if classes.get(row).is_some_and(|class| class != WHOLE_CALL) {
            *group = NO_GROUP;
            halves += 1;
        }
    }
    if halves > 0 {
        trace.note(format!("C library calls without a begin or an end, left out: {halves}"));
    }
    Ok(Groups::named(names.of_row, durations.into_ns(), names.labels).any())
}
