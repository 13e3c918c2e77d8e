//! GPU time of each step: of each range of a name, by the calls that begin within it.

use super::Row;
use crate::busy::{Busy, Sets, TABLES};
use nsys::export::ExportError;
use nsys::trace::launches::Calls;
use nsys::trace::nvtx::Ranges;
use nsys::trace::{Trace, process_of};
use std::collections::{BTreeMap, HashMap};

/// Steps of one process are numbered in the order of their beginnings. A GPU on which a step launched nothing has no row
/// of it.
pub(super) fn rows_of_steps(
    trace: &Trace,
    busy: &Busy,
    sets: &[Sets],
    name: &str,
) -> Result<Vec<Row>, ExportError> {
    let steps = named(trace, name)?;
    if steps.is_empty() {
        trace.note(format!("no step: no range is named `{name}`"));
        return Ok(Vec::new());
    }
    let launched = launched(trace, &steps)?;
    let mut windows: BTreeMap<(usize, u32), (i64, i64, u64)> = BTreeMap::new();
    for (at, gpu) in busy.gpus.iter().enumerate() {
        for one in &gpu.operations {
            let Some(step) = launched[usize::from(one.table)].get(one.row as usize).copied().flatten() else {
                continue;
            };
            let window = windows.entry((at, step)).or_insert((one.start, one.end, 0));
            *window = (window.0.min(one.start), window.1.max(one.end), window.2 + 1);
        }
    }
    if windows.is_empty() {
        trace.note(format!("no step: no call within ranges named `{name}` launched anything"));
    }
    let rows = windows.into_iter().map(|((gpu, step), (start, end, operations))| Row {
        pid: busy.gpus[gpu].pid(),
        device: busy.gpus[gpu].device,
        number: Some(i64::from(step)),
        start,
        operations,
        shares: sets[gpu].within(start, end),
    });
    Ok(rows.collect())
}

/// Of each process the steps that do not begin within an earlier one.
fn named(trace: &Trace, name: &str) -> Result<HashMap<i64, Vec<(i64, i64)>>, ExportError> {
    let mut steps: HashMap<i64, Vec<(i64, i64)>> = HashMap::new();
    let Some(ranges) = Ranges::read(trace)? else { return Ok(steps) };
    for row in (0..ranges.len()).filter(|row| ranges.name(*row) == name || ranges.label(*row) == name) {
        let span = (ranges.start[row], ranges.end[row]);
        steps.entry(process_of(ranges.global_tid[row])).or_default().push(span);
    }
    let mut within = 0;
    for steps in steps.values_mut() {
        // Of two that begin together the longer one is the step.
        steps.sort_by_key(|(start, end)| (*start, std::cmp::Reverse(*end)));
        let mut last = None;
        steps.retain(|(start, end)| {
            let is_within = last.is_some_and(|last| *start < last);
            within += usize::from(is_within);
            if !is_within {
                last = Some(*end);
            }
            !is_within
        });
    }
    if within > 0 {
        trace.note(format!("nested ranges of the same name, not counted as steps: {within}"));
    }
    Ok(steps)
}

/// Of each row of each table the step whose calls launched it.
fn launched(
    trace: &Trace,
    steps: &HashMap<i64, Vec<(i64, i64)>>,
) -> Result<[Vec<Option<u32>>; 4], ExportError> {
    let mut launched: [Vec<Option<u32>>; 4] = Default::default();
    let Some(calls) = Calls::read(trace, &[])? else { return Ok(launched) };
    let (starts, tids) = (calls.rows().ints("start")?, calls.rows().maybe_ints("globalTid")?);
    let step = |call: usize| {
        let steps = steps.get(&process_of(tids.get(call)?))?;
        let begun = steps.partition_point(|step| step.0 <= starts[call]).checked_sub(1)?;
        (starts[call] <= steps[begun].1).then_some(begun as u32)
    };
    let tables = TABLES.into_iter().zip(["kernels", "copies", "fills", "graphs"]);
    for ((spec, what), of_row) in tables.zip(&mut launched) {
        let columns = ["start", "end", "correlationId", "globalPid"];
        let Some(operations) = trace.rows(spec, &columns)? else { continue };
        *of_row = vec![None; operations.len()];
        for launch in calls.launches(trace, what, &operations)? {
            let known = &mut of_row[launch.operation as usize];
            *known = known.or_else(|| step(launch.call as usize));
        }
    }
    Ok(launched)
}
