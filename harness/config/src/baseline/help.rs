//! What packs of other sites lend to proposals: for each metric the pack that predicts the runs best, if any does.

use super::BaselineKey;
use super::pack::{Pack, have_same_runs};
use super::propose::PackUse;
use crate::bounds::{self, Foreign, Helped, KeySpread, Measured, Pool, SharedKey, Spread};
use model::artefact::PackHelp;
use std::collections::BTreeMap;

/// Less than this, as a fraction, is nothing to look at.
const NOTABLE: f64 = 0.03;

/// What a pack lends to the baseline of one key.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Help {
    /// What is expected here.
    pub middle: f64,
    /// Of one number.
    pub spread: Spread,
    /// For the file.
    pub pack: PackHelp,
}

/// What packs say of one metric.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Chosen<'a> {
    /// How well each predicts.
    pub used: Vec<PackUse>,
    /// What the best of them lends.
    pub helped: BTreeMap<&'a BaselineKey, Help>,
    /// Medians that lie off what it predicts, as a fraction.
    pub off: BTreeMap<&'a BaselineKey, f64>,
}

/// The pack that predicts the metric's keys best, and what it lends to each.
pub(super) fn choose<'a>(
    packs: &[Pack],
    metric: &str,
    ours: &BTreeMap<&'a BaselineKey, &Measured>,
    least: f64,
) -> Chosen<'a> {
    let (mut chosen, mut best) =
        (Chosen::default(), None::<(Foreign, &Pack, BTreeMap<&'a BaselineKey, SharedKey>)>);
    for pack in packs {
        let shared = shared(pack, metric, ours, least);
        if shared.is_empty() {
            continue;
        }
        let keys: Vec<SharedKey> = shared.values().copied().collect();
        let samples = ours.iter().filter_map(|(key, own)| {
            Some((own.samples.as_slice(), pack.baselines.find(metric, key)?.samples.as_slice()))
        });
        let foreign = if have_same_runs(samples) { None } else { Foreign::fit(&keys, least) };
        let error = foreign.as_ref().map(Foreign::error);
        let (signer, metric) = (pack.signer.clone(), metric.to_owned());
        chosen.used.push(PackUse { signer, metric, shared: shared.len(), error });
        if let Some(foreign) = foreign
            && best.as_ref().is_none_or(|(other, _, _)| foreign.error() < other.error())
        {
            best = Some((foreign, pack, shared));
        }
    }
    let Some((foreign, pack, shared)) = best else { return chosen };
    for (key, one) in shared {
        let residual = foreign.residual(&one).filter(|one| one.is_off && one.off.abs() > NOTABLE);
        chosen.off.extend(residual.map(|residual| (key, residual.off)));
        let (Some(Helped { middle, worth, spread }), Some(own)) = (foreign.help(&one), ours.get(key)) else {
            continue;
        };
        let spread = with_within(spread, own.within);
        let pack = PackHelp { signer: pack.signer.clone(), worth: (worth * 10.0).floor() / 10.0 };
        chosen.helped.insert(key, Help { middle, spread, pack });
    }
    chosen
}

/// The keys of both.
fn shared<'a>(
    pack: &Pack,
    metric: &str,
    ours: &BTreeMap<&'a BaselineKey, &Measured>,
    least: f64,
) -> BTreeMap<&'a BaselineKey, SharedKey> {
    let entries = pack.baselines.entries.iter().filter(|entry| entry.metric == metric);
    let spreads: Vec<KeySpread> =
        entries.filter_map(|entry| KeySpread::from_values(&entry.samples)).collect();
    let pool = Pool::fit(&spreads, least);
    let keys = ours.iter().filter_map(|(key, own)| {
        let entry = pack.baselines.find(metric, key)?;
        let their_runs = entry.samples.len() as u32;
        let shared = SharedKey {
            middle: own.middle,
            runs: own.samples.len() as u32,
            spread: own.between,
            their_middle: entry.median(),
            their_runs,
            their_spread: bounds::spread(pool.as_ref(), KeySpread::from_values(&entry.samples), their_runs),
        };
        Some((*key, shared))
    });
    keys.collect()
}

/// Samples of a pack are of whole runs: what numbers of one run vary by is our own measurement.
fn with_within(between: Spread, within: Option<KeySpread>) -> Spread {
    let Some(within) = within else { return between };
    let both = KeySpread { relative: between.relative, freedom: between.freedom }.and(within);
    Spread { relative: both.relative, freedom: both.freedom }
}
