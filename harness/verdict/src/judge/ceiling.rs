//! A number above what the hardware can do is no measurement, neither a good nor a bad one.

use super::{Measured, subject};
use model::artefact::{PlannedAssertion, Status, Verdict};

/// Whether any of the assertion's numbers is impossible; the verdict then says so.
pub(super) fn judge(assertion: &PlannedAssertion, measured: &Measured, verdict: &mut Verdict) -> bool {
    let Some(ceiling) = assertion.bound.ceiling else { return false };
    let highest = measured.values().map(|(_, value)| value).max_by(f64::total_cmp);
    let Some(highest) = highest.filter(|highest| *highest > ceiling) else { return false };
    let show = |value: f64| assertion.unit.show(value);
    verdict.status = Status::Inconclusive;
    verdict.observed = Some(highest);
    verdict.upper = Some(ceiling);
    verdict.cause = Some("above-ceiling".to_owned());
    verdict.message = format!(
        "{}: {}, above the hardware limit of {}: broken measurement",
        subject(assertion),
        show(highest),
        show(ceiling)
    );
    verdict.next = Some("check how many ranks and nodes took part, and the program's clock".to_owned());
    true
}
