//! Why ranks left no records of NCCL's Inspector, where their nodes report it to the probe.

use metric::finding::Finding;
use model::artefact::{PlannedJob, Probe};
use recipes::recipe::inspector::{UNAVAILABLE, WITHOUT_RECORDS};

/// Puts what is lacking on the nodes before the findings that it explains.
pub(super) fn explain(planned: &PlannedJob, probe: &Probe, findings: &mut Vec<Finding>) {
    if findings.iter().any(|finding| WITHOUT_RECORDS.contains(&finding.code.as_str())) {
        let lacks = plan::without_inspector(planned, probe);
        findings.splice(0..0, lacks.into_iter().map(|why| Finding::new(UNAVAILABLE, why)));
    }
}
