//! Ten numbers of a report as one timeline, whatever its GPUs and processes: the output of a published script, for
//! comparison with older figures. The other tables have the correct numbers.

use super::BREAKDOWN;
use crate::result_table::{Column, Quantity, ResultTable};
use crate::spans::Spans;
use nsys::export::{ExportError, Rows};
use nsys::tables::{ANALYSIS_DETAILS, KERNEL, MEMCPY, MEMSET, TableSpec};
use nsys::trace::Trace;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// In nanoseconds. Idle time is negative where more was recorded than the session lasted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Compat {
    pub session: i64,
    pub active: i64,
    pub compute: i64,
    pub communication: i64,
    pub memory: i64,
    pub compute_communication: i64,
    pub compute_memory: i64,
    pub communication_memory: i64,
}

/// The length of the session by the first row.
pub(super) fn session(trace: &Trace) -> Result<Option<i64>, ExportError> {
    let Some(rows) = trace.export().columns(&ANALYSIS_DETAILS, &["startTime", "stopTime"])? else {
        return Ok(None);
    };
    let (starts, stops) = (rows.maybe_ints("startTime")?, rows.maybe_ints("stopTime")?);
    Ok(stops.get(0).zip(starts.get(0)).and_then(|(stop, start)| stop.checked_sub(start)))
}

/// Of the whole report. `None`, with a note, where it lacks kernels or the length of the session.
pub(super) fn read(trace: &Trace) -> Result<Option<Compat>, ExportError> {
    let Some(kernels) = trace.export().columns(&KERNEL, &["start", "end", "demangledName"])? else {
        trace.note("none of the ten numbers: no kernels".to_owned());
        return Ok(None);
    };
    let Some(session) = session(trace)? else {
        trace.note(format!(
            "none of the ten numbers: no length of the session in `{}`",
            ANALYSIS_DETAILS.name
        ));
        return Ok(None);
    };
    let (strings, ids) = (trace.strings()?, kernels.maybe_ints("demangledName")?);
    let (mut communication, mut compute) = (Vec::new(), Vec::new());
    let all = spans(&kernels)?;
    let mut of_id: HashMap<i64, Option<ScriptKind>> = HashMap::new();
    for (row, span) in all.iter().enumerate() {
        // A kernel without a name has no class, but counts as busy.
        let Some(id) = ids.get(row) else { continue };
        match *of_id.entry(id).or_insert_with(|| strings.get(id).and_then(kind)) {
            Some(ScriptKind::Communication) => communication.extend(span),
            Some(ScriptKind::Compute) => compute.extend(span),
            None => {}
        }
    }
    let mut memory = Vec::new();
    for spec in [&MEMCPY, &MEMSET] {
        memory.extend(table_spans(trace, spec)?);
    }
    let [communication, compute, memory] = [communication, compute, memory].map(Spans::union);
    let ns = |spans: &Spans| spans.ns() as i64;
    let both = |one: &Spans, two: &Spans| ns(one) + ns(two) - ns(&one.or(two));
    Ok(Some(Compat {
        session,
        active: ns(&Spans::union(all.into_iter().flatten()).or(&memory)),
        compute: ns(&compute),
        communication: ns(&communication),
        memory: ns(&memory),
        compute_communication: both(&compute, &communication),
        compute_memory: both(&compute, &memory),
        communication_memory: both(&communication, &memory),
    }))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScriptKind {
    Communication,
    Compute,
}

fn kind(name: &str) -> Option<ScriptKind> {
    let name = name.to_ascii_lowercase();
    match () {
        () if name.contains("nccl") => Some(ScriptKind::Communication),
        () if name.contains("memcpy") || name.contains("memset") || has_mem_copy(&name) => None,
        () => Some(ScriptKind::Compute),
    }
}

/// The underscore of the script's pattern stands for any one letter.
fn has_mem_copy(lower: &str) -> bool {
    let letters: Vec<char> = lower.chars().collect();
    letters.windows(8).any(|part| part[..3] == ['m', 'e', 'm'] && part[4..] == ['c', 'o', 'p', 'y'])
}

fn spans(rows: &Rows) -> Result<Vec<Option<(i64, i64)>>, ExportError> {
    let (starts, ends) = (rows.maybe_ints("start")?, rows.maybe_ints("end")?);
    Ok(starts.iter().zip(ends.iter()).map(|(start, end)| start.zip(end)).collect())
}

fn table_spans(trace: &Trace, spec: &'static TableSpec) -> Result<Vec<(i64, i64)>, ExportError> {
    match trace.export().columns(spec, &["start", "end"])? {
        Some(rows) => Ok(spans(&rows)?.into_iter().flatten().collect()),
        None => Ok(Vec::new()),
    }
}

impl Compat {
    fn idle(&self) -> i64 {
        self.session.saturating_sub(self.active)
    }

    fn utilisation(&self) -> Option<f64> {
        (self.session > 0).then(|| self.active as f64 / self.session as f64 * 100.0)
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let line = |name: &str, ns: i64| format!("{name:<35} | {:15.6}", ns as f64 / 1e9);
        let rule = || "-".repeat(60);
        let mut lines = vec![
            String::new(),
            format!("{:<35} | {:>15}", "Distributed Training Metric", "Duration (s)"),
            rule(),
            line("Total Session Time", self.session),
            line("GPU Active (any work)", self.active),
            line("GPU Idle Time", self.idle()),
            rule(),
            line("Compute (FLOP-ish kernels)", self.compute),
            line("Communication (NCCL kernels)", self.communication),
            line("Memory ops (memcpy/memset)", self.memory),
            rule(),
            line("Compute ∩ Comm overlap", self.compute_communication),
            line("Compute ∩ Mem overlap", self.compute_memory),
            line("Comm ∩ Mem overlap", self.communication_memory),
            rule(),
        ];
        lines.extend(self.utilisation().map(|percent| format!("Overall GPU Utilization: {percent:.2}%")));
        lines
    }
}

pub(super) fn result_table(all: &[(i64, Compat)]) -> ResultTable {
    let time = |name: &str, of: fn(&Compat) -> i64| {
        Column::integers(name, Quantity::Nanoseconds, all.iter().map(|(_, one)| of(one)))
    };
    let columns = vec![
        Column::integers("Rank", Quantity::Plain, all.iter().map(|(rank, _)| *rank)),
        time("Session", |one| one.session),
        time("Active", |one| one.active),
        time("Idle", Compat::idle),
        time("Compute", |one| one.compute),
        time("Communication", |one| one.communication),
        time("Memory", |one| one.memory),
        time("Compute and Communication", |one| one.compute_communication),
        time("Compute and Memory", |one| one.compute_memory),
        time("Communication and Memory", |one| one.communication_memory),
        Column::maybe_decimals(
            "Utilisation",
            Quantity::Percent,
            all.iter().map(|(_, one)| one.utilisation()),
        ),
    ];
    ResultTable::new(BREAKDOWN.name, BREAKDOWN.title, columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_of_the_kinds_that_the_patterns_of_the_script_give_them() {
        for (name, expected) in [
            ("NCCLdevKernel", Some(ScriptKind::Communication)),
            ("memcpy_of_nccl", Some(ScriptKind::Communication)),
            ("my_MemCpy_kernel", None),
            ("memset32", None),
            ("mem_copy", None),
            ("a_mem-copy", None),
            ("memcopy", Some(ScriptKind::Compute)),
            ("gemm", Some(ScriptKind::Compute)),
            ("", Some(ScriptKind::Compute)),
        ] {
            assert_eq!(kind(name), expected, "{name}");
        }
    }

    #[test]
    fn a_session_of_no_length_has_no_utilisation() {
        let none = Compat {
            session: 0,
            active: 5,
            compute: 5,
            communication: 0,
            memory: 0,
            compute_communication: 0,
            compute_memory: 0,
            communication_memory: 0,
        };
        assert_eq!(none.lines().len(), 15);
        assert_eq!(none.lines()[5], "GPU Idle Time                       |       -0.000000");
    }
}
