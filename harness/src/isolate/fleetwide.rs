//! The runs of an isolation compared with accepted baselines: what its rounds measured, and the bounds that a plan of
//! the same runs would state. What follows from it is decided in `verdict::isolate::fleetwide`.

use super::rounds::Isolation;
use config::baseline::Baselines;
use model::artefact::PlannedBaseline;
use std::collections::BTreeMap;
use verdict::isolate::fleetwide::{self, Fleetwide, Level, Reference};
use verdict::isolate::trial::{Found, Shape};
use verdict::isolate::{Answer, Trial};

pub(crate) fn compare(isolation: &Isolation, baselines: Option<&Baselines>) -> Fleetwide {
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
        reference: reference(isolation, &trial, baselines),
    };
    fleetwide::judge(&levels.into_iter().map(level).collect::<Vec<_>>())
}

fn reference(isolation: &Isolation, trial: &Trial, baselines: Option<&Baselines>) -> Reference {
    let planned = match isolation.baseline_of(trial, baselines) {
        Ok(Some(planned)) => planned,
        Ok(None) => return Reference::Missing("no assertion is compared with a baseline".to_owned()),
        Err(diagnostics) => return Reference::Missing(diagnostics.join("; ")),
    };
    let numbers = match planned {
        PlannedBaseline::Accepted(numbers) => numbers,
        PlannedBaseline::Provisional(numbers) if numbers.predicted.is_some() => {
            return Reference::Missing(format!("there is no baseline, only a prediction: {}", numbers.key));
        }
        PlannedBaseline::Provisional(numbers) => {
            return Reference::Missing(format!("the baseline is provisional: {}", numbers.key));
        }
        PlannedBaseline::Expired(numbers) => {
            return Reference::Missing(format!("the baseline has expired: {}", numbers.key));
        }
        PlannedBaseline::None { key } => return Reference::Missing(format!("there is no baseline: {key}")),
    };
    // Numbers of other software versions are not comparable.
    for (part, those) in &numbers.fingerprint {
        let now = isolation.versions.get(part);
        if !now.is_some_and(|now| !now.is_empty() && now.iter().all(|one| those.contains(one))) {
            let now = now.map(|now| now.iter().cloned().collect::<Vec<_>>().join(", ")).unwrap_or_default();
            let those = those.join(", ");
            return Reference::Missing(format!(
                "{part} is `{now}`, the baseline was measured with `{those}`: {}",
                numbers.key
            ));
        }
    }
    match numbers.lower {
        Some(lower) => Reference::Baseline { lower, key: numbers.key },
        None => Reference::Missing(format!("the baseline has no lower bound: {}", numbers.key)),
    }
}
