//! Where in a report steps are looked for: ranges first; then capture ranges, where there are several; then kernels of
//! the busiest stream.

use super::{Found, Ran, Source, Span, asked_for, find_by_capture, find_by_kernels, repeated};
use nsys::export::ExportError;
use nsys::tables::{GRAPH_TRACE, KERNEL, RUNTIME};
use nsys::trace::nvtx::Ranges;
use nsys::trace::{Part, Trace};
use std::collections::BTreeMap;

/// What a person wants to know.
#[derive(Debug, Clone, Copy, Default)]
pub struct StepRequest<'a> {
    /// Ranges of this name, and nothing else.
    pub range: Option<&'a str>,
    /// This source alone.
    pub source: Option<Source>,
}

/// Or why nothing is said to be a step, by source.
pub fn find_in_trace(
    trace: &Trace,
    request: &StepRequest,
) -> Result<Result<Found, Vec<String>>, ExportError> {
    if let Some(name) = request.range {
        let why = || vec![format!("no range named `{name}` begins and ends on one thread")];
        return Ok(ranges(trace, Some(name))?.ok_or_else(why));
    }
    let wanted = |source| request.source.is_none_or(|asked| asked == source);
    let mut why = Vec::new();
    if wanted(Source::Ranges) {
        match ranges(trace, None)? {
            Some(found) => return Ok(Ok(found)),
            None => why.push("ranges: none repeat like steps".to_owned()),
        }
    }
    if wanted(Source::Capture) {
        // One capture is a whole run, and several are its steps, unless the source is named.
        let enough = if request.source.is_some() { 1 } else { FEWEST_CAPTURES };
        match capture(trace)?.filter(|found| found.steps.len() >= enough) {
            Some(found) => return Ok(Ok(found)),
            None => why.push("capture: too few calls to start and stop the profiler".to_owned()),
        }
    }
    if wanted(Source::Kernels) {
        match kernels(trace)? {
            Ok(found) => return Ok(Ok(found)),
            Err(none) => why.push(format!("kernels: {none}")),
        }
    }
    Ok(Err(why))
}

const FEWEST_CAPTURES: usize = 3;

fn ranges(trace: &Trace, name: Option<&str>) -> Result<Option<Found>, ExportError> {
    let Some(ranges) = Ranges::read(trace)? else { return Ok(None) };
    let own = (0..ranges.len()).filter(|row| ranges.end_tid[*row].is_none());
    let spans = own.map(|row| Span {
        thread: ranges.global_tid[row],
        domain: ranges.domain(row),
        name: ranges.name(row),
        start: ranges.start[row],
        end: ranges.end[row],
    });
    let spans: Vec<Span> = spans.collect();
    Ok(match name {
        Some(name) => asked_for(name, &spans),
        None => repeated(&spans),
    })
}

fn capture(trace: &Trace) -> Result<Option<Found>, ExportError> {
    let Some(calls) = trace.rows(&RUNTIME, &["start", "end", "nameId"])? else { return Ok(None) };
    let (starts, ends, names) = (calls.ints("start")?, calls.ints("end")?, calls.ints("nameId")?);
    let strings = trace.strings()?;
    let mut known: BTreeMap<i64, Option<(bool, bool)>> = BTreeMap::new();
    // By whether it is of the runtime: that calls the driver in turn.
    let mut moments = BTreeMap::from([(true, (Vec::new(), Vec::new())), (false, Default::default())]);
    for (row, id) in names.iter().enumerate() {
        let call = known.entry(*id).or_insert_with(|| {
            let name = strings.get(*id)?;
            let of_runtime = name.starts_with("cuda");
            let rest = name.strip_prefix("cuda").or(name.strip_prefix("cu"))?;
            let is_start = rest.starts_with("ProfilerStart");
            (is_start || rest.starts_with("ProfilerStop")).then_some((of_runtime, is_start))
        });
        let Some((of_runtime, is_start)) = *call else { continue };
        let (begun, stopped) = moments.entry(of_runtime).or_default();
        match is_start {
            true => begun.push(ends[row]),
            false => stopped.push(starts[row]),
        }
    }
    let of = |of_runtime: bool| {
        moments.get(&of_runtime).and_then(|(begun, stopped)| find_by_capture(begun, stopped))
    };
    Ok(of(true).or_else(|| of(false)))
}

fn kernels(trace: &Trace) -> Result<Result<Found, String>, ExportError> {
    // A stream is one of a process and a device.
    type Stream = (Option<i64>, i64, Option<i64>);
    let mut streams: BTreeMap<Stream, Vec<Ran>> = BTreeMap::new();
    let mut labels: Vec<String> = Vec::new();
    if let Some(rows) =
        trace.rows(&KERNEL, &["start", "end", "deviceId", "streamId", "shortName", "globalPid"])?
    {
        let names = Part::named(rows.ints("shortName")?.iter().copied(), trace.strings()?, |name| name);
        let (starts, ends) = (rows.ints("start")?, rows.ints("end")?);
        let (devices, of_stream) = (rows.ints("deviceId")?, rows.ints("streamId")?);
        let pids = rows.maybe_ints("globalPid")?;
        trace.durations("kernels", starts, ends);
        for row in (0..rows.len()).filter(|row| ends[*row] >= starts[*row]) {
            let ran = Ran { name: names.of_row[row], start: starts[row], end: ends[row] };
            streams.entry((pids.get(row), devices[row], Some(of_stream[row]))).or_default().push(ran);
        }
        labels = names.labels;
    }
    if let Some(rows) =
        trace.rows(&GRAPH_TRACE, &["start", "end", "deviceId", "streamId", "graphId", "globalPid"])?
    {
        let (starts, ends, devices) = (rows.ints("start")?, rows.ints("end")?, rows.ints("deviceId")?);
        let (of_stream, graphs) = (rows.maybe_ints("streamId")?, rows.maybe_ints("graphId")?);
        let pids = rows.maybe_ints("globalPid")?;
        let ids = Part::numbers((0..rows.len()).map(|row| graphs.get(row).unwrap_or_default()));
        let before = labels.len() as u32;
        labels.extend(ids.labels.iter().map(|id| format!("[CUDA graph {id}]")));
        for row in (0..rows.len()).filter(|row| ends[*row] >= starts[*row]) {
            let ran = Ran { name: before + ids.of_row[row], start: starts[row], end: ends[row] };
            streams.entry((pids.get(row), devices[row], of_stream.get(row))).or_default().push(ran);
        }
    }
    // Of two as busy the first.
    let busy =
        |ran: &[Ran]| ran.iter().map(|one| u128::from(one.end.wrapping_sub(one.start) as u64)).sum::<u128>();
    let busiest = streams.into_values().rev().max_by_key(|ran| busy(ran));
    let Some(mut ran) = busiest else { return Ok(Err("the report has none".to_owned())) };
    ran.sort_by_key(|one| (one.start, one.end));
    Ok(find_by_kernels(&ran, &labels))
}
