//! The numbers of baselines, as a plan holds them: copied in when it is made, and again when a run that is over is to be
//! judged by what is accepted by then.

use crate::artefact::{BaselineNumbers, Plan, PlannedBaseline};
use crate::baseline::{Baseline, BaselineKey, Baselines, State};
use crate::size;
use std::collections::BTreeMap;

/// Looks every baseline of the plan up again, by its key. Gives the keys whose numbers or state are others now.
pub fn rebaseline(plan: &mut Plan, baselines: &Baselines) -> Vec<String> {
    let instance = &plan.instance.name;
    let by_key: BTreeMap<String, &Baseline> =
        baselines.entries.iter().map(|entry| (shown(instance, &entry.metric, &entry.key), entry)).collect();
    let mut changed = Vec::new();
    for assertion in plan.cases.iter_mut().flat_map(|case| &mut case.assertions) {
        let Some(was) = &mut assertion.bound.baseline else { continue };
        let key = key(was).to_owned();
        let now = planned(key.clone(), by_key.get(&key).copied());
        if *was != now {
            *was = now;
            if !changed.contains(&key) {
                changed.push(key);
            }
        }
    }
    changed
}

/// The numbers of a baseline, or that there is none for the key.
pub fn planned(shown: String, found: Option<&Baseline>) -> PlannedBaseline {
    let Some(found) = found else { return PlannedBaseline::None { key: shown } };
    let numbers = BaselineNumbers {
        key: shown,
        n: found.samples.len() as u32,
        median: found.median(),
        lower: found.lower,
        upper: found.upper,
        source: found.source.clone(),
    };
    match found.state {
        State::Accepted => PlannedBaseline::Accepted(numbers),
        State::Provisional => PlannedBaseline::Provisional(numbers),
        State::Expired => PlannedBaseline::Expired(numbers),
    }
}

/// The key as plans and messages hold it: no two keys are shown alike.
pub fn shown(instance: &str, metric: &str, key: &BaselineKey) -> String {
    let words = [
        key.op.map(|op| op.name().to_owned()),
        key.size_bytes.map(size::show),
        key.nodes.map(|nodes| format!("{nodes} nodes")),
        key.ranks.map(|ranks| format!("{ranks} ranks")),
        key.training.as_ref().map(|training| format!("training {training}")),
    ];
    format!("{instance} {metric} {}", words.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

fn key(planned: &PlannedBaseline) -> &str {
    match planned {
        PlannedBaseline::None { key } => key,
        PlannedBaseline::Provisional(numbers)
        | PlannedBaseline::Accepted(numbers)
        | PlannedBaseline::Expired(numbers) => &numbers.key,
    }
}
