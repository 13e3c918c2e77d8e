//! The output of nccl-tests in the run of a report: the mean time of each size, and the number of calls, which
//! separates timed calls from warm-up and checks. `logs::nccl_tests` reads the output.

use logs::nccl_tests::{NcclRun, element_bytes, read_stream};
use metric::op::Op;
use nsys::nccl::sequence::{Placement, Plan, doubled};
use nsys::regular_file;
use nsys::trace::Trace;
use serde::{Deserialize, Serialize};
use std::io::BufReader;
use std::path::Path;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Printed {
    /// The name of the output in messages.
    pub file: String,
    /// `None` where the output lacks it.
    pub op: Option<Op>,
    pub means: Vec<Mean>,
    /// The calls that each rank must have made, with the current and the older warm-up. Empty where the output lacks
    /// the parameters.
    pub plans: Vec<Plan>,
}

/// Of one size, as it is printed, and one placement.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Mean {
    pub size: u64,
    pub placement: Placement,
    pub ns: f64,
}

/// The name of a job's output in runs.
const STDOUT: &str = "stdout";

/// From the named file, else from the job's output in the folder of the report. A note says why there is nothing,
/// except where the file does not exist.
pub(super) fn read(trace: &Trace, named: &str) -> Option<Printed> {
    let path = match named {
        "" => trace.export().path().parent()?.join(STDOUT),
        named => Path::new(named).to_owned(),
    };
    let file = short_name(&path);
    let note_missing =
        |why: &str| trace.note(format!("{file}: no times of nccl-tests to compare with: {why}"));
    let opened = regular_file::open(&path).map(BufReader::new);
    let read = match opened.and_then(|from| read_stream(from, &file)) {
        Ok(read) => read,
        Err(_) if named.is_empty() => return None,
        Err(error) => {
            note_missing(&error.to_string());
            return None;
        }
    };
    let runs: Vec<NcclRun> = match read {
        Ok(read) => read.runs.into_iter().filter(|run| !run.rows.is_empty()).collect(),
        // The output of another program.
        Err(_) if named.is_empty() => return None,
        Err(error) => {
            note_missing(&error.to_string());
            return None;
        }
    };
    match runs.as_slice() {
        [] if named.is_empty() => None,
        [] => {
            note_missing("no row");
            None
        }
        [run] if run.cpu_time => {
            note_missing("they are CPU times");
            None
        }
        [run] => Some(Printed { op: run.op, means: means(run), plans: plans(run).unwrap_or_default(), file }),
        several => {
            note_missing(&format!("{} tables, expected 1", several.len()));
            None
        }
    }
}

/// With its folder, which names the job.
fn short_name(path: &Path) -> String {
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let parts = [path.parent().and_then(name), name(path)];
    parts.into_iter().flatten().collect::<Vec<_>>().join("/")
}

fn means(run: &NcclRun) -> Vec<Mean> {
    let rows = run.rows.iter().flat_map(|row| {
        let halves = [(Placement::OutOfPlace, &row.out_of_place), (Placement::InPlace, &row.in_place)];
        halves.map(|(placement, half)| {
            Some(Mean { size: row.size_bytes, placement, ns: half.as_ref()?.time_us * 1000.0 })
        })
    });
    rows.flatten().filter(|mean| mean.ns.is_finite() && mean.ns > 0.0).collect()
}

fn plans(run: &NcclRun) -> Option<Vec<Plan>> {
    let said = run.parameters.as_ref()?;
    // Graphs are called for once and not traced again.
    if said.graph.is_some_and(|launches| launches > 0) {
        return None;
    }
    let number = |value: Option<u64>| u32::try_from(value?).ok();
    let (warmup, iterations) = (number(said.warmup)?, number(said.iterations).filter(|count| *count > 0)?);
    let (checks, aggregated) = (number(said.validation)?, number(said.agg_iterations.or(Some(1)))?.max(1));
    let rows: Option<Vec<u64>> =
        run.rows.iter().map(|row| row.count.checked_mul(element_bytes(&row.dtype)?)).collect();
    let rows = rows?;
    let least = said.min_bytes.or(run.rows.first().map(|row| row.size_bytes))?;
    let most = said.max_bytes.or(run.rows.last().map(|row| row.size_bytes))?;
    let plan = |warmups: usize| Plan {
        rows: rows.clone(),
        // Only the number of warm-up rows is known: the part of one rank is rounded.
        warmup_rows: if warmup == 0 { Vec::new() } else { vec![0; warmups] },
        warmup,
        iterations,
        aggregated,
        checks,
        in_place: run.rows.iter().any(|row| row.in_place.is_some()),
        cycles: 1,
    };
    Some(vec![plan(doubled(least, most).len()), plan(2)])
}
