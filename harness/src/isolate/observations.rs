//! What a stored run shows to `verdict::isolate::evidence`, read from its folder.

use base::nodeset;
use metric::{Dim, Limit, Metric, Role};
use model::artefact::{Status, Summary, Verdict};
use recipes::recipe;
use std::collections::BTreeMap;
use store::{self, Stored};
use verdict::history::{agreement, blameless, past};
use verdict::isolate::observations::{Loss, RunObservations, Timeouts};

pub(crate) fn read(stored: &Stored, summary: &Summary) -> Result<RunObservations, String> {
    let to_text = |error: store::StoreError| error.to_string();
    let plan = &stored.plan;
    let mut seen = RunObservations {
        culprits: summary.culprits.clone(),
        left_out: summary.left_out.clone(),
        nics: plan.instance.nics.len(),
        gpus: plan.instance.gpus as usize,
        ..RunObservations::default()
    };
    let mut cases = Vec::new();
    for case in &plan.cases {
        cases.extend(stored.verdict(&case.name).map_err(to_text)?);
    }
    if agreement::disagrees(stored, summary, &cases).map_err(to_text)? {
        return Err(format!("{}: {}", stored.folder().display(), agreement::DISAGREES));
    }
    if let Some(why) = past::run(stored.folder())?.contradiction() {
        return Err(format!("{}: {why}", stored.folder().display()));
    }
    blameless::clear(stored, &cases, &mut seen.culprits);
    let mut timeouts: BTreeMap<(String, String), u64> = BTreeMap::new();
    for case in &plan.cases {
        if let Some(outcomes) = stored.outcomes(&case.name).map_err(to_text)? {
            seen.jobs.extend(outcomes.jobs);
        }
        if let Some(verdict) = stored.verdict(&case.name).map_err(to_text)? {
            seen.findings.extend(verdict.findings.iter().cloned());
            seen.failed.extend(verdict.verdicts.iter().filter_map(failed));
            seen.losses.extend(verdict.verdicts.iter().filter_map(|verdict| loss(&case.name, verdict)));
        }
        let Some(metrics) = stored.metrics(&case.name).map_err(to_text)? else { continue };
        let timed_out = |row: &&Metric| row.value > 0.0 && recipe::has_role(&row.name, Role::Timeouts);
        for row in metrics.rows().iter().filter(timed_out) {
            if let (Some(node), Some(nic)) = (row.dims.word(Dim::Node), row.dims.word(Dim::Nic)) {
                *timeouts.entry((node.to_owned(), nic.to_owned())).or_default() += row.value as u64;
            }
        }
    }
    let timed_out = |((node, nic), events)| Timeouts { node, nic, events };
    seen.timeouts = timeouts.into_iter().map(timed_out).collect();
    seen.probe = stored.probe().map_err(to_text)?;
    Ok(seen)
}

fn failed(verdict: &Verdict) -> Option<(String, String)> {
    let node = verdict.node.clone().filter(|_| verdict.status == Status::Fail)?;
    Some((verdict.metric.clone(), node))
}

/// A collective that was measured and is too slow. Flows and lists of devices name their parts by themselves.
fn loss(case: &str, verdict: &Verdict) -> Option<Loss> {
    let limit = recipe::built_in(&verdict.metric).and_then(|metric| metric.limit);
    let is_rate = matches!(limit, Some(Limit::BusBandwidth | Limit::AlgorithmBandwidth));
    if verdict.status != Status::Fail || !is_rate {
        return None;
    }
    let expected = match (verdict.lower, verdict.upper) {
        (Some(lower), Some(upper)) => Some((lower + upper) / 2.0),
        (lower, _) => lower,
    };
    let left = verdict.observed.zip(expected.filter(|expected| *expected > 0.0));
    Some(Loss {
        case: case.to_owned(),
        nodes: nodeset::expand(&verdict.nodes).unwrap_or_default(),
        left: left.map(|(observed, expected)| observed / expected),
    })
}
