//! What the declared spread of a metric allows, where it compares numbers of one run with each other: such bounds are
//! moved apart, so that a healthy suite stays green however many it judges. What the bounds are is the suite's word.

use config::bounds;
use metric::Role;
use model::artefact::PlannedCase;
use recipes::recipe;

/// A comparison is of two numbers that each vary: one new number against one that is known no better.
const OF_ONE: u32 = 1;

pub(crate) fn widen(cases: &mut [PlannedCase]) {
    let assertions = || cases.iter().flat_map(|case| &case.assertions);
    let with_spread = assertions().filter(|one| one.bound.spread.is_some());
    let judged: u32 = with_spread.map(|one| one.parts.len().max(1) as u32).sum();
    for assertion in cases.iter_mut().flat_map(|case| &mut case.assertions) {
        let Some(spread) = &mut assertion.bound.spread else { continue };
        spread.judged = judged;
        spread.allows = recipe::has_role(&assertion.metric, Role::ComparesWithin)
            .then(|| bounds::factor(OF_ONE, judged, f64::INFINITY) * spread.relative);
    }
}
