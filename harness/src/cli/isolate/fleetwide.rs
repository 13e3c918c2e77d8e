//! The runs of an isolation held against accepted baselines: what its rounds measured, and the bounds that a plan of the same
//! runs would state. What it means is told in `isolate::fleetwide`.

use super::rounds::Isolation;
use config::baseline::Baselines;
use model::artefact::PlannedBaseline;
use std::collections::{BTreeMap, BTreeSet};
use verdict::isolate::fleetwide::{self, Fleetwide, Held, Level};
use verdict::isolate::trial::{Found, Shape};
use verdict::isolate::{Answer, Trial};

/// What the runs on whole nodes were done with.
pub(super) type Versions = BTreeMap<String, BTreeSet<String>>;

pub(super) fn told(isolation: &Isolation, baselines: Option<&Baselines>) -> Fleetwide {
    let mut levels: BTreeMap<Shape, (Trial, Vec<f64>)> = BTreeMap::new();
    for Answer { trial, found } in isolation.answers() {
        if let (Shape::Together { .. } | Shape::Inside, Found::Values(values)) = (trial.shape, found) {
            let level = levels.entry(trial.shape).or_insert_with(|| (trial.clone(), Vec::new()));
            level.1.extend(values.iter().flatten().filter(|value| value.is_finite()));
        }
    }
    let level = |(shape, (trial, values)): (Shape, (Trial, Vec<f64>))| Level {
        shape,
        values,
        held: held(isolation, &trial, baselines),
    };
    fleetwide::told(&levels.into_iter().map(level).collect::<Vec<_>>())
}

fn held(isolation: &Isolation, trial: &Trial, baselines: Option<&Baselines>) -> Held {
    let planned = match isolation.baseline_of(trial, baselines) {
        Ok(Some(planned)) => planned,
        Ok(None) => return Held::Nothing("nothing is held against a baseline".to_owned()),
        Err(diagnostics) => return Held::Nothing(diagnostics.join("; ")),
    };
    let numbers = match planned {
        PlannedBaseline::Accepted(numbers) => numbers,
        PlannedBaseline::Provisional(numbers) => {
            return Held::Nothing(format!("the baseline is provisional: {}", numbers.key));
        }
        PlannedBaseline::Expired(numbers) => {
            return Held::Nothing(format!("the baseline has expired: {}", numbers.key));
        }
        PlannedBaseline::None { key } => return Held::Nothing(format!("there is no baseline: {key}")),
    };
    // Numbers of another software are compared with by nobody.
    for (part, those) in &numbers.fingerprint {
        let now = isolation.versions.get(part);
        if !now.is_some_and(|now| !now.is_empty() && now.iter().all(|one| those.contains(one))) {
            let now = now.map(|now| now.iter().cloned().collect::<Vec<_>>().join(", ")).unwrap_or_default();
            let those = those.join(", ");
            return Held::Nothing(format!(
                "{part} is `{now}`, and the baseline is of `{those}`: {}",
                numbers.key
            ));
        }
    }
    match numbers.lower {
        Some(lower) => Held::Against { lower, key: numbers.key },
        None => Held::Nothing(format!("the baseline has no lower bound: {}", numbers.key)),
    }
}
