//! The numbers of baselines, as a plan holds them: copied in when it is made, and again when a run that is over is to be
//! judged by what is accepted by then.

use base::size;
use config::baseline::{Baseline, BaselineKey, Baselines, State};
use config::bounds;
use config::toml_reader::quantity;
use metric::op::Op;
use model::artefact::{BaselineNumbers, Plan, PlannedBaseline, PlannedCase};

/// Looks every baseline of the plan up again, by its key. Gives the keys whose numbers or state are others now.
pub fn rebaseline(plan: &mut Plan, baselines: &Baselines) -> Vec<String> {
    let instance = &plan.instance.name;
    let mut before = plan.cases.clone();
    for assertion in plan.cases.iter_mut().flat_map(|case| &mut case.assertions) {
        let Some(was) = &mut assertion.bound.baseline else { continue };
        let key = key(was).to_owned();
        let found = match stands_for(baselines, instance, &key) {
            Some(found) => planned(key, found, baselines),
            None => between_shown(baselines, &assertion.metric, key),
        };
        // A prediction depends on no file: it stands until one has the key.
        let is_predicted =
            matches!(was, PlannedBaseline::Provisional(numbers) if numbers.predicted.is_some());
        if !(is_predicted && matches!(found, PlannedBaseline::None { .. })) {
            *was = found;
        }
    }
    widen(&mut plan.cases, Some(baselines));
    let was = before.iter_mut().flat_map(|case| &mut case.assertions).map(|one| one.bound.baseline.take());
    let now = plan.cases.iter().flat_map(|case| &case.assertions).map(|one| &one.bound.baseline);
    let mut changed = Vec::new();
    for (was, now) in was.zip(now) {
        if let Some(now_is) = now
            && was != *now
            && !changed.iter().any(|one| one == key(now_is))
        {
            changed.push(key(now_is).to_owned());
        }
    }
    changed
}

/// The baseline that stands for a shown key.
fn stands_for<'a>(baselines: &'a Baselines, instance: &str, shown: &str) -> Option<&'a Baseline> {
    let (metric, key) = read_shown(shown)?;
    (shown.split(' ').next()? == instance).then(|| baselines.find_for(&metric, &key))?
}

/// The numbers for a key: its own, or, where the file allows it, those drawn between two sizes; or that there are none.
pub fn look_up(
    baselines: Option<&Baselines>,
    instance: &str,
    metric: &str,
    key: &BaselineKey,
) -> PlannedBaseline {
    let shown = render_key(instance, metric, key);
    let Some(baselines) = baselines else { return PlannedBaseline::None { key: shown } };
    match baselines.find_for(metric, key) {
        Some(found) => planned(shown, found, baselines),
        None => between(baselines, metric, key, shown),
    }
}

fn planned(shown: String, found: &Baseline, baselines: &Baselines) -> PlannedBaseline {
    let numbers = BaselineNumbers {
        key: shown,
        n: found.samples.len() as u32,
        median: found.median(),
        lower: found.lower,
        upper: found.upper,
        source: found.source.clone(),
        file: baselines.file.clone(),
        spread: found.spread.map(|spread| spread.relative),
        floor: found.floor,
        predicted: None,
        widened_for: None,
        pack: found.pack.clone(),
        between: None,
        fingerprint: found.fingerprint.clone(),
    };
    match found.state {
        State::Accepted => PlannedBaseline::Accepted(numbers),
        State::Provisional => PlannedBaseline::Provisional(numbers),
        State::Expired => PlannedBaseline::Expired(numbers),
    }
}

/// A tenth of the distance between the two sizes' medians is added on both sides: the curve between them is not known.
const OF_THE_STEP: f64 = 0.1;

/// Between the next smaller and the next larger size that have numbers, on a logarithmic scale of size; never between
/// anything else. What is drawn is provisional, whatever its ends are.
fn between(baselines: &Baselines, metric: &str, key: &BaselineKey, shown: String) -> PlannedBaseline {
    let none = PlannedBaseline::None { key: shown.clone() };
    let (true, Some(bytes)) = (baselines.between_sizes, key.size_bytes) else { return none };
    let alike = |entry: &&Baseline| {
        let but_for_size = BaselineKey { size_bytes: key.size_bytes, ..entry.key.clone() };
        let is_it = but_for_size == *key || but_for_size == key.anywhere();
        entry.metric == metric && is_it && entry.state != State::Expired
    };
    let sizes =
        || baselines.entries.iter().filter(alike).filter_map(|entry| Some((entry.key.size_bytes?, entry)));
    let below = sizes().filter(|(size, _)| *size < bytes).max_by_key(|(size, _)| *size);
    let above = sizes().filter(|(size, _)| *size > bytes).min_by_key(|(size, _)| *size);
    let (Some((low, small)), Some((high, large))) = (below, above) else { return none };
    // Two kinds of software, or of placement, give no number of either.
    if small.fingerprint != large.fingerprint || small.key.placement != large.key.placement {
        return none;
    }
    let ln = |bytes: u64| (bytes as f64).ln();
    let part = (ln(bytes) - ln(low)) / (ln(high) - ln(low));
    let drawn = |a: f64, b: f64| a + (b - a) * part;
    let step = OF_THE_STEP * (large.median() - small.median()).abs();
    let bound = |a: Option<f64>, b: Option<f64>, more: f64| Some((drawn(a?, b?) + more).max(0.0));
    PlannedBaseline::Provisional(BaselineNumbers {
        key: shown,
        n: small.samples.len().min(large.samples.len()) as u32,
        median: drawn(small.median(), large.median()),
        lower: bound(small.lower, large.lower, -step),
        upper: bound(small.upper, large.upper, step),
        source: format!("{}; {}", small.source, large.source),
        file: baselines.file.clone(),
        spread: None,
        floor: bound(small.floor, large.floor, -step),
        predicted: None,
        widened_for: None,
        pack: small.pack.clone().or_else(|| large.pack.clone()),
        between: Some(format!("{} and {}", size::show(low), size::show(high))),
        fingerprint: small.fingerprint.clone(),
    })
}

/// As `between`, where only the rendered key of a finished run is known.
fn between_shown(baselines: &Baselines, metric: &str, shown_key: String) -> PlannedBaseline {
    match read_shown(&shown_key) {
        Some((_, key)) => between(baselines, metric, &key, shown_key),
        None => PlannedBaseline::None { key: shown_key },
    }
}

/// The bounds of a file stand for so many numbers judged at once as it says. Where a plan judges more, each is asked for
/// less, so that a healthy cluster is not red more often.
pub(crate) fn widen(cases: &mut [PlannedCase], baselines: Option<&Baselines>) {
    let Some(baselines) = baselines else { return };
    let judged = cases
        .iter()
        .flat_map(|case| &case.assertions)
        .filter(|one| matches!(one.bound.baseline, Some(PlannedBaseline::Accepted(_))))
        .count() as u32;
    for assertion in cases.iter_mut().flat_map(|case| &mut case.assertions) {
        let Some(PlannedBaseline::Accepted(numbers)) = &mut assertion.bound.baseline else { continue };
        let entry = stands_for(baselines, &baselines.instance, &numbers.key);
        let Some(spread) = entry.and_then(|entry| entry.spread) else { continue };
        if judged <= spread.judged {
            continue;
        }
        let by = bounds::widening(numbers.n, spread.freedom, spread.judged, judged);
        let median = numbers.median;
        numbers.lower = numbers.lower.map(|lower| (median - (median - lower) * by).max(0.0));
        numbers.upper = numbers.upper.map(|upper| median + (upper - median) * by);
        numbers.widened_for = Some(judged);
    }
}

/// The key as plans and messages hold it: no two keys are shown alike.
pub(crate) fn render_key(instance: &str, metric: &str, key: &BaselineKey) -> String {
    let words = [
        key.op.map(|op| op.name().to_owned()),
        key.size_bytes.map(size::show),
        key.nodes.map(|nodes| format!("{nodes} nodes")),
        key.ranks.map(|ranks| format!("{ranks} ranks")),
        key.placement.as_ref().map(|placement| format!("placement {placement}")),
        key.training.as_ref().map(|training| format!("training {training}")),
        key.dtype.as_ref().map(|dtype| format!("type {dtype}")),
        key.algorithm.as_ref().map(|one| format!("algorithm {one}")),
        key.protocol.as_ref().map(|one| format!("protocol {one}")),
        key.runner.as_ref().map(|one| format!("runner {one}")),
        key.kernel.as_ref().map(|one| format!("kernel {one}")),
    ];
    format!("{instance} {metric} {}", words.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

/// What `shown` was made of: the metric and the key. Nothing where it is no such text.
pub fn read_shown(text: &str) -> Option<(String, BaselineKey)> {
    let mut words = text.splitn(3, ' ');
    let (_, metric) = (words.next()?, words.next()?);
    let mut key = BaselineKey::default();
    let mut rest = words.next().unwrap_or_default();
    while !rest.is_empty() {
        // The name of a kernel may hold anything, and stands last.
        if let Some(kernel) = rest.strip_prefix("kernel ") {
            key.kernel = Some(kernel.to_owned());
            break;
        }
        let (word, after) = rest.split_once(", ").unwrap_or((rest, ""));
        rest = after;
        match word.split_once(' ') {
            Some((n, "nodes")) => key.nodes = Some(n.parse().ok()?),
            Some((n, "ranks")) => key.ranks = Some(n.parse().ok()?),
            Some(("placement", name)) => key.placement = Some(name.to_owned()),
            Some(("training", name)) => key.training = Some(name.to_owned()),
            Some(("type", name)) => key.dtype = Some(name.to_owned()),
            Some(("algorithm", name)) => key.algorithm = Some(name.to_owned()),
            Some(("protocol", name)) => key.protocol = Some(name.to_owned()),
            Some(("runner", name)) => key.runner = Some(name.to_owned()),
            Some(_) => return None,
            None => match Op::from_name(word) {
                Some(op) => key.op = Some(op),
                None => key.size_bytes = Some(quantity::size(word).ok()?),
            },
        }
    }
    Some((metric.to_owned(), key))
}

/// The key as it is shown.
pub fn key(planned: &PlannedBaseline) -> &str {
    match planned {
        PlannedBaseline::None { key } => key,
        PlannedBaseline::Provisional(numbers)
        | PlannedBaseline::Accepted(numbers)
        | PlannedBaseline::Expired(numbers) => &numbers.key,
    }
}

#[cfg(test)]
#[path = "baseline_tests.rs"]
mod tests;
