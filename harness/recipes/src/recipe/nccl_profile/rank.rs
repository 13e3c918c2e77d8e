//! The rows by the report of one rank: when the timed operations began and ended, and how long the kernels of each took.

use super::super::InputFile;
use super::printed::Printed;
use crate::recipe::shared_findings::{CallFinding, ReportFinding};
use nsys::loss::loss;
use nsys::nccl::NcclCalls;
use nsys::nccl::sequence::{CallPosition, Difference, Part, Placement, assign};
use nsys::trace::Trace;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

pub(super) struct RankRows<'a> {
    pub file: &'a InputFile,
    pub rows: Rows,
}

/// By row of the output, and its placement.
pub(super) type Rows = BTreeMap<(u32, Placement), Timed>;

/// The timed operations of one placement of one size.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Timed {
    /// The start of the first launching call.
    pub start: i64,
    /// The end of the last kernel.
    pub end: i64,
    /// Of each operation, from its first kernel's start to its last one's end.
    pub kernels_ns: Vec<u64>,
}

pub(super) enum RankError {
    /// Nothing can be read from it.
    Broken { code: &'static str, why: String },
    /// It contradicts the output.
    Differs(String),
}

/// One call of the sequence: a call of NCCL by itself, or a group of such.
struct Unit {
    bytes: Option<u64>,
    is_group: bool,
    kernels: std::ops::Range<u32>,
}

pub(super) fn read(file: &InputFile, printed: &Printed) -> Result<Rows, RankError> {
    let broken = |code, why: String| RankError::Broken { code, why };
    let unreadable =
        |error: nsys::export::ExportError| broken(ReportFinding::Unreadable.code(), error.to_string());
    let trace = Trace::open(&file.path).map_err(unreadable)?;
    if let Some((code, text)) = loss(trace.export()).map_err(unreadable)? {
        return Err(broken(code, format!("the profiler reported: {text}")));
    }
    let calls = NcclCalls::read(&trace).map_err(unreadable)?;
    let Some(calls) = calls.filter(|calls| !calls.calls.is_empty()) else {
        let why = "no NCCL call was traced; trace `nvtx`, and use an NCCL built with NVTX ranges";
        return Err(broken(CallFinding::NoNcclCalls.code(), why.to_owned()));
    };
    let units = units(&calls);
    let places = places(&units, printed).map_err(|difference| RankError::Differs(difference.to_string()))?;
    let mut rows = Rows::new();
    let (mut bare, mut several) = (0u64, 0u64);
    for (unit, place) in units.iter().zip(&places) {
        let (Part::Timed { .. }, Some(placement)) = (place.part, place.placement) else { continue };
        let kernels = calls.kernels.get(unit.kernels.start as usize..unit.kernels.end as usize);
        let kernels = kernels.unwrap_or_default();
        let launched = kernels.iter().filter_map(|kernel| kernel.launch_start).min();
        let (Some(launched), Some(first), Some(last)) = (
            launched,
            kernels.iter().map(|kernel| kernel.start).min(),
            kernels.iter().map(|kernel| kernel.end).max(),
        ) else {
            bare += 1;
            continue;
        };
        // A call by itself is one kernel; a group may need several, for its GPUs and for many peers.
        several += u64::from(!unit.is_group && kernels.len() > 1);
        let timed = rows.entry((place.row, placement)).or_insert_with(|| Timed {
            start: launched,
            end: last,
            kernels_ns: Vec::new(),
        });
        timed.start = timed.start.min(launched);
        timed.end = timed.end.max(last);
        timed.kernels_ns.push(last.wrapping_sub(first) as u64);
    }
    for (count, what) in [(bare, "no kernel in the report"), (several, "several kernels each")] {
        if count > 0 {
            return Err(RankError::Differs(format!("{count} timed calls launched {what}")));
        }
    }
    Ok(rows)
}

/// In the order of the calls. Calls of several threads have no order: such a report has more calls than a plan has for
/// one rank.
fn units(calls: &NcclCalls) -> Vec<Unit> {
    let mut groups = BTreeSet::new();
    let mut units = Vec::new();
    for call in &calls.calls {
        let kernels = match call.group {
            Some(group) if !groups.insert(group) => continue,
            Some(group) => {
                calls.groups.get(group as usize).map_or(call.kernels.clone(), |group| group.kernels.clone())
            }
            None => call.kernels.clone(),
        };
        units.push(Unit { bytes: call.bytes, is_group: call.group.is_some(), kernels });
    }
    units
}

/// By the plan, with the current or the older warm-up, that has as many calls.
fn places(units: &[Unit], printed: &Printed) -> Result<Vec<CallPosition>, Difference> {
    let seen = units.len() as u64;
    let [plan, older] = &printed.plans;
    let plan = [plan, older].into_iter().find(|plan| plan.calls() == seen);
    let plan = plan.ok_or(Difference::Count { expected: printed.plans[0].calls(), seen })?;
    let warmups = plan.warmup_rows.len() * plan.warmup as usize;
    let sizes = units.iter().enumerate().map(|(at, unit)| unit.bytes.filter(|_| at >= warmups));
    assign(&sizes.collect::<Vec<_>>(), plan)
}
