//! Records of NCCL's Inspector over all jobs of a case: why ranks left none, where their nodes report it to the probe, and what
//! the recording costs.

use metric::Metric;
use metric::finding::Finding;
use model::artefact::{ControlRun, PlannedCase, PlannedJob, Probe};
use recipes::recipe::inspector::{self, UNAVAILABLE, WITHOUT_RECORDS};
use std::collections::{BTreeMap, BTreeSet};

/// Of each job that ran with Inspector alone, and of which a control run without it is there.
pub(super) fn overheads(case: &PlannedCase, rows: &[Metric]) -> Vec<Metric> {
    let alone = case.jobs.iter().filter(|job| job.is_inspected() && job.profile.is_none());
    let alone: BTreeSet<&str> = alone.map(|job| job.name.as_str()).collect();
    let mut control_runs: BTreeMap<&str, &str> = BTreeMap::new();
    for job in &case.jobs {
        if let Some(ControlRun::Bare { of, .. }) = &job.control_run
            && alone.contains(of.as_str())
        {
            control_runs.insert(of, &job.name);
        }
    }
    inspector::overheads(rows, &control_runs)
}

/// Puts what is lacking on the nodes before the findings that it explains.
pub(super) fn explain(planned: &PlannedJob, probe: &Probe, findings: &mut Vec<Finding>) {
    if findings.iter().any(|finding| WITHOUT_RECORDS.contains(&finding.code.as_str())) {
        let lacks = plan::without_inspector(planned, probe);
        findings.splice(0..0, lacks.into_iter().map(|why| Finding::new(UNAVAILABLE, why)));
    }
}
