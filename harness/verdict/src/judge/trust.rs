//! What a number is compared with, in the order of trust: an accepted baseline; peers of the same run, where there are
//! enough to name one; a published figure, or a prediction. Below a published floor, or the interval of a prediction, a
//! number fails whatever its peers show.

use super::peers::PeerCache;
use super::{CaseData, JudgedBound, Measured, baseline, peers};
use model::artefact::{
    BELOW_FLOOR, BaselineNumbers, JudgedBy, PlannedAssertion, PlannedBaseline, Status, Verdict,
};

/// Every comparison that counts, the most trusted first. Nothing where there is nothing to compare with.
pub(super) fn judge(
    data: &CaseData,
    assertion: &PlannedAssertion,
    measured: &Measured,
    cache: &PeerCache,
    verdict: &mut Verdict,
) -> Vec<JudgedBound> {
    let of_peers = peers::judge(data, assertion, measured, cache);
    let known = baseline::judge(data, assertion, measured, verdict);
    let can_name = |peers: &JudgedBound| match peers.by {
        JudgedBy::Peers { of } => of as usize >= peers::FEWEST_TO_NAME,
        _ => false,
    };
    match &assertion.bound.baseline {
        None | Some(PlannedBaseline::None { .. }) => of_peers.into_iter().collect(),
        // Peers that contradict each other say nothing against a baseline.
        Some(PlannedBaseline::Accepted(_)) => {
            let of_peers = of_peers.filter(|peers| can_name(peers) && peers.status != Status::Inconclusive);
            known.into_iter().chain(of_peers).collect()
        }
        Some(PlannedBaseline::Expired(_)) => match of_peers {
            Some(peers) if can_name(&peers) => vec![peers],
            few => known.into_iter().chain(few).collect(),
        },
        Some(PlannedBaseline::Provisional(numbers)) => {
            let enough = of_peers.as_ref().is_some_and(can_name);
            let is_low = of_peers.as_ref().is_some_and(|peers| peers.status == Status::Fail);
            if let Some(low) = below_floor(assertion, measured, numbers) {
                if is_low {
                    return of_peers.into_iter().chain([low]).collect();
                }
                // A number that no measurement separates from its peers is no part's fault.
                verdict.cause = Some(BELOW_FLOOR.to_owned());
                return vec![low];
            }
            if enough {
                verdict.provisional = false;
                verdict.baseline = None;
                return of_peers.into_iter().collect();
            }
            known.into_iter().chain(of_peers).collect()
        }
    }
}

/// The lowest number, where it is below what any published system of that kind showed.
fn below_floor(
    assertion: &PlannedAssertion,
    measured: &Measured,
    numbers: &BaselineNumbers,
) -> Option<JudgedBound> {
    let floor = numbers.floor?;
    let (_, lowest) = measured.numbers().min_by(|a, b| a.1.value.total_cmp(&b.1.value))?;
    if lowest.value >= floor {
        return None;
    }
    let odd = measured.values().filter(|(name, value)| !name.is_empty() && *value < floor);
    let mut odd: Vec<String> = odd.map(|(name, _)| name.to_owned()).collect();
    odd.dedup();
    Some(JudgedBound {
        status: Status::Fail,
        observed: lowest.value,
        runs: lowest.runs.clone(),
        lower: Some(floor),
        upper: None,
        odd,
        comparison: baseline::predicted(assertion, numbers).unwrap_or_else(|| {
            format!("expected at least {}, the published floor", assertion.unit.show(floor))
        }),
        next: Some(
            "if all nodes are equally slow, check what they share: EFA, NCCL and plugin versions, NCCL_*, FI_*, \
             the order of nodes"
                .to_owned(),
        ),
        by: JudgedBy::Floor,
    })
}
