//! Reads `baselines/*.toml`.

use super::{
    Baseline, BaselineKey, BaselineSpread, Baselines, FEWEST_ACCEPTED, PENDING, State, are_enough, form,
};
use crate::diagnostic::Diagnostics;
use crate::suite::PLACEMENTS;
use crate::toml_reader::quantity::size_of;
use crate::toml_reader::{self, Table, Value};
use metric::op::Op;
use metric::unit::{Better, Unit};
use metric::{Dim, MetricSpec, Role};
use model::artefact::PackHelp;
use recipes::catalogue::Catalogue;
use std::collections::BTreeMap;

/// Which way a metric is better, as files have it.
pub const BETTERS: [(&str, Better); 3] =
    [("higher", Better::Higher), ("lower", Better::Lower), ("neither", Better::Neither)];
pub(super) const STATES: [State; 3] = [State::Accepted, State::Provisional, State::Expired];

pub(super) fn baselines(text: &str, file: &str, catalogue: &Catalogue) -> Result<Baselines, Diagnostics> {
    let metrics: Vec<(&str, &MetricSpec)> =
        catalogue.metrics().map(|metric| (&*metric.name, metric)).collect();
    toml_reader::read(text, file, |table| {
        let instance = table.need("instance").and_then(|value| value.non_empty_text());
        let simulated_value = table.get("simulated");
        let simulated = simulated_value.as_ref().map_or(Some(false), |value| value.boolean());
        if let (Some(instance), Some(simulated)) = (&instance, simulated)
            && instance.starts_with("sim-") != simulated
        {
            let message = match simulated {
                true => format!("simulated baselines are for a `sim-` instance only, not for: `{instance}`"),
                false => format!("baselines of a `sim-` instance must say `simulated = true`: `{instance}`"),
            };
            match &simulated_value {
                Some(value) => value.diagnostic(message),
                None => table.diagnostic(message),
            }
        }
        let between_sizes = table.get("between_sizes").map_or(Some(false), |value| value.boolean());
        let tables = table.get("baseline").and_then(|value| value.list()).unwrap_or_default();
        table.close(form::file);
        let mut entries: Vec<Baseline> = Vec::new();
        let mut seen: BTreeMap<(String, BaselineKey), usize> = BTreeMap::new();
        for entry in tables.iter().filter_map(|value| value.table()) {
            let Some(baseline) = read_one(&entry, simulated.unwrap_or(false), &metrics) else { continue };
            match seen.insert((baseline.metric.clone(), baseline.key.clone()), baseline.line) {
                Some(line) => entry.diagnostic(format!(
                    "duplicate of the baseline in line {line}: `{}`",
                    format!("{} {}", baseline.metric, baseline.key).trim_end()
                )),
                None => {
                    if baseline.rejected_by.is_some() && !file.ends_with(PENDING) {
                        entry.diagnostic("`rejected_by` is for pending baselines only");
                    }
                    entries.push(baseline);
                }
            }
        }
        let (simulated, between_sizes) = (simulated?, between_sizes?);
        Some(Baselines { instance: instance?, simulated, between_sizes, entries, file: file.to_owned() })
    })
}

fn read_one(table: &Table<'_>, simulated: bool, metrics: &[(&str, &MetricSpec)]) -> Option<Baseline> {
    let metric = table.need("metric").and_then(|value| value.one_of(metrics));
    let key = read_key(table, metric);
    let units = Unit::ALL.map(|unit| (unit.name(), unit));
    let unit = table.need("unit").and_then(|value| {
        let unit = value.one_of(&units)?;
        if let Some(metric) = metric.filter(|metric| metric.unit != unit) {
            value.diagnostic(format!("wrong unit, `{}` is in {}: `{unit}`", metric.name, metric.unit));
            return None;
        }
        Some(unit)
    });
    let better = table.get("better").map_or(metric.map(|metric| metric.better), |value| {
        let better = value.one_of(&BETTERS)?;
        if metric.is_some_and(|metric| metric.better != better) {
            value.diagnostic("`better` contradicts the direction of the metric");
        }
        Some(better)
    });
    let states = STATES.map(|state| (state.name(), state));
    let state_value = table.need("state");
    let state = state_value.as_ref().and_then(|value| value.one_of(&states));
    let samples_value = table.need("samples");
    let samples = samples_value.as_ref().and_then(read_samples);
    let lower_value = table.get("lower");
    let lower = lower_value.as_ref().map(amount);
    let upper_value = table.get("upper");
    let upper = upper_value.as_ref().map(amount);
    let floor_value = table.get("floor");
    let floor = floor_value.as_ref().and_then(amount);
    let floor_source = table.get("floor_source").and_then(|value| value.non_empty_text());
    let spread = read_spread(table);
    let pack = read_pack(table);
    let quantiles = table.get("quantiles").and_then(|value| read_quantiles(&value));
    let fingerprint = table.get("fingerprint").map(|value| read_fingerprint(&value)).unwrap_or_default();
    let runs = table.get("runs").map(|value| value.texts()).unwrap_or_default();
    let source = table.need("source").and_then(|value| value.non_empty_text());
    let [accepted_by, rejected_by, reason, date] = ["accepted_by", "rejected_by", "reason", "date"]
        .map(|key| table.get(key).and_then(|value| value.non_empty_text()));
    table.close(form::baseline);
    if let (Some(State::Accepted), Some(samples), Some(value)) = (state, &samples, &state_value)
        && !are_enough(samples.len(), pack.as_ref())
    {
        let message =
            format!("an accepted baseline needs at least {FEWEST_ACCEPTED} samples, not {}", samples.len());
        value.diagnostic_with(message, "write `state = \"provisional\"`");
    }
    let baseline = Baseline {
        metric: metric?.name.to_string(),
        key,
        unit: unit?,
        better: better?,
        state: state?,
        samples: samples?,
        lower: lower.unwrap_or_default(),
        upper: upper.unwrap_or_default(),
        floor,
        floor_source,
        spread,
        pack,
        quantiles,
        fingerprint,
        runs,
        source: source?,
        accepted_by,
        rejected_by,
        reason,
        date,
        simulated,
        line: table.line(),
    };
    if let Some(value) = &floor_value {
        floor_is_sound(&baseline, value);
    }
    let median = baseline.median();
    let show = |value: f64| baseline.unit.show(value);
    if let (Some(lower), Some(value)) = (baseline.lower, &lower_value)
        && lower > median
    {
        value.diagnostic(format!(
            "`lower` is above the median of the samples: {} > {}",
            show(lower),
            show(median)
        ));
    }
    if let (Some(upper), Some(value)) = (baseline.upper, &upper_value)
        && upper < median
    {
        value.diagnostic(format!(
            "`upper` is below the median of the samples: {} < {}",
            show(upper),
            show(median)
        ));
    }
    Some(baseline)
}

/// A floor is a published figure below the bound, and its file says where it is from.
fn floor_is_sound(baseline: &Baseline, value: &Value<'_>) {
    if baseline.state == State::Accepted {
        value.diagnostic("an accepted baseline has its own bounds: remove `floor`");
    }
    if baseline.better != Better::Higher {
        value.diagnostic("`floor` needs a metric where higher is better");
    }
    if baseline.floor_source.is_none() {
        value.diagnostic("`floor` needs `floor_source`: the rule and the figures");
    }
    let least = baseline.lower.unwrap_or_else(|| baseline.median());
    if baseline.floor.is_some_and(|floor| floor > least) {
        let show = |value: f64| baseline.unit.show(value);
        let floor = show(baseline.floor.unwrap_or_default());
        value.diagnostic(format!("`floor` is above the lower bound: {floor} > {}", show(least)));
    }
}

fn read_key(table: &Table<'_>, metric: Option<&MetricSpec>) -> BaselineKey {
    let ops = Op::ALL.map(|op| (op.name(), op));
    // A metric may be kept apart by more than it knows of itself: a node's traffic by the operation that made it.
    let op_value = table.get("op");
    let op = op_value.as_ref().and_then(|value| value.one_of(&ops));
    let size_value = table.get("size");
    let size_bytes = size_value.as_ref().and_then(size_of);
    let nodes = table.get("nodes").and_then(|value| value.small(1..=100_000));
    let ranks = table.get("ranks").and_then(|value| value.small(1..=10_000_000));
    let placement_value = table.get("placement");
    let placements = PLACEMENTS.map(|name| (name, name));
    let placement = placement_value.as_ref().and_then(|value| value.one_of(&placements)).map(str::to_owned);
    let training_value = table.get("training");
    let training = training_value.as_ref().and_then(|value| value.non_empty_text());
    if let Some(metric) = metric.filter(|metric| metric.is(Role::OfTraining))
        && training_value.is_none()
    {
        table.diagnostic(format!("missing key: `training`, `{}` depends on it", metric.name));
    }
    let [dtype, algorithm, protocol, runner, kernel] = ["type", "algorithm", "protocol", "runner", "kernel"]
        .map(|key| table.get(key).and_then(|value| value.non_empty_text()));
    if let Some(metric) = metric {
        let absent = [("op", Dim::Op, op_value.is_none()), ("size", Dim::SizeBytes, size_value.is_none())];
        for (key, _, _) in absent.iter().filter(|(_, dim, absent)| *absent && metric.dims.contains(dim)) {
            table.diagnostic(format!("missing key: `{key}`, `{}` depends on it", metric.name));
        }
    }
    BaselineKey {
        op,
        size_bytes,
        nodes,
        ranks,
        placement,
        training,
        dtype,
        algorithm,
        protocol,
        runner,
        kernel,
    }
}

fn read_samples(value: &Value<'_>) -> Option<Vec<f64>> {
    let list = value.list()?;
    if list.is_empty() {
        value.diagnostic("a baseline needs at least one sample");
        return None;
    }
    list.iter().map(amount).collect()
}

/// All three or none: bounds cannot be widened by half of what they were made of.
fn read_spread(table: &Table<'_>) -> Option<BaselineSpread> {
    let [relative, freedom] = ["spread", "freedom"].map(|key| table.get(key).map(|value| amount(&value)));
    let judged = table.get("judged").map(|value| value.small(1..=10_000_000));
    match (relative, freedom, judged) {
        (None, None, None) => None,
        (Some(relative), Some(freedom), Some(judged)) => {
            Some(BaselineSpread { relative: relative?, freedom: freedom?, judged: judged? })
        }
        _ => {
            table.diagnostic("`spread`, `freedom` and `judged` must be set together");
            None
        }
    }
}

/// Both or none.
fn read_pack(table: &Table<'_>) -> Option<PackHelp> {
    let signer = table.get("pack").map(|value| value.non_empty_text());
    let worth = table.get("pack_worth").map(|value| amount(&value));
    match (signer, worth) {
        (None, None) => None,
        (Some(signer), Some(worth)) => Some(PackHelp { signer: signer?, worth: worth? }),
        _ => {
            table.diagnostic("`pack` and `pack_worth` must be set together");
            None
        }
    }
}

fn read_quantiles(value: &Value<'_>) -> Option<[f64; 4]> {
    let list: Vec<f64> = value.list()?.iter().map(amount).collect::<Option<_>>()?;
    match <[f64; 4]>::try_from(list) {
        Ok(four) if four.is_sorted() => Some(four),
        _ => {
            value.diagnostic("`quantiles` must be four increasing numbers, of 5, 25, 75 and 95 %");
            None
        }
    }
}

/// One version, or a list of those that are comparable.
fn read_fingerprint(value: &Value<'_>) -> BTreeMap<String, Vec<String>> {
    let Some(table) = value.table() else { return BTreeMap::new() };
    let mut parts = BTreeMap::new();
    for (name, _, value) in table.entries() {
        let those = match value.scalar() {
            Some(_) => value.non_empty_text().into_iter().collect(),
            None => value.texts(),
        };
        if those.is_empty() {
            value.diagnostic(format!("no version given for `{}`", name.escape_debug()));
        }
        parts.insert(name.to_owned(), those);
    }
    parts
}

fn amount(value: &Value<'_>) -> Option<f64> {
    let number = value.number()?;
    if number < 0.0 {
        value.diagnostic(format!("`{}` must be at least 0, not: {number}", value.key()));
        return None;
    }
    Some(number)
}
