//! What packs of other sites lend to proposals: for each metric the pack that predicts the runs best, if any does.

use super::BaselineKey;
use super::pack::Pack;
use super::propose::PackUse;
use crate::bounds::{self, Foreign, Helped, KeySpread, Measured, Pool, SharedKey, Spread};
use model::artefact::PackHelp;
use std::collections::BTreeMap;

/// So many times the error of all predictions is no chance any more.
const FAR: f64 = 3.0;

/// And less than this, as a fraction, is nothing to look at.
const NOTABLE: f64 = 0.1;

/// What a pack lends to the baseline of one key.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Help {
    /// What is expected here.
    pub middle: f64,
    /// Of one number.
    pub spread: Spread,
    /// For the file.
    pub pack: PackHelp,
    /// What was measured, off what the pack predicts, as a fraction.
    pub off: f64,
    /// Whether that is more than chance.
    pub is_off: bool,
}

/// How well each pack predicts the metric's keys, and what the best of them lends to each.
pub(super) fn choose<'a>(
    packs: &[Pack],
    metric: &str,
    ours: &BTreeMap<&'a BaselineKey, &Measured>,
    least: f64,
) -> (Vec<PackUse>, BTreeMap<&'a BaselineKey, Help>) {
    let (mut used, mut best) = (Vec::new(), None::<(Foreign, &Pack, BTreeMap<&'a BaselineKey, SharedKey>)>);
    for pack in packs {
        let shared = shared(pack, metric, ours, least);
        if shared.is_empty() {
            continue;
        }
        let keys: Vec<SharedKey> = shared.values().copied().collect();
        let foreign = Foreign::fit(&keys, least);
        let error = foreign.as_ref().map(Foreign::error);
        let (signer, metric) = (pack.signer.clone(), metric.to_owned());
        used.push(PackUse { signer, metric, shared: shared.len(), error });
        if let Some(foreign) = foreign
            && best.as_ref().is_none_or(|(other, _, _)| foreign.error() < other.error())
        {
            best = Some((foreign, pack, shared));
        }
    }
    let Some((foreign, pack, shared)) = best else { return (used, BTreeMap::new()) };
    let help = |key: &BaselineKey, shared: &SharedKey| {
        let Helped { middle, worth, spread, off } = foreign.help(shared)?;
        let spread = with_within(spread, ours.get(key)?.within);
        let is_off = off.abs() > NOTABLE.max(FAR * foreign.error());
        let pack = PackHelp { signer: pack.signer.clone(), worth: (worth * 10.0).floor() / 10.0 };
        Some(Help { middle, spread, pack, off, is_off })
    };
    let helped = shared.iter().filter_map(|(key, one)| Some((*key, help(key, one)?))).collect();
    (used, helped)
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
