//! A pack: the baselines of one site for others, without anything that names the site. It is a file of baselines, signed.
//! `help` says what it lends.

use super::propose::rounded;
use super::{Baseline, Baselines, FEWEST_ACCEPTED, State};
use recipes::catalogue::Catalogue;
use std::collections::BTreeMap;

/// The pack of another site.
#[derive(Debug, Clone, PartialEq)]
pub struct Pack {
    /// The beginning of the key that signed it.
    pub signer: String,
    /// What it holds.
    pub baselines: Baselines,
}

/// What may leave the site, and what was left out.
#[derive(Debug, Clone, PartialEq)]
pub struct Sanitised {
    /// Of runs alone, without a name.
    pub baselines: Baselines,
    /// How many entries, by reason.
    pub left_out: BTreeMap<&'static str, usize>,
}

/// As NCCL has them: whatever else stands in a key may be a name of the site.
const ALGORITHMS: [&str; 7] = ["Ring", "Tree", "CollnetDirect", "CollnetChain", "NVLS", "NVLSTree", "PAT"];
const PROTOCOLS: [&str; 3] = ["LL", "LL128", "Simple"];
const TYPES: [&str; 12] = [
    "int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "float", "double", "bfloat16", "fp8_e4m3",
    "fp8_e5m2",
];
const RUNNERS: [&str; 1] = ["torch"];

/// Parts of the software whose versions are numbers of a vendor.
const VERSIONED: [&str; 7] = ["nccl", "driver", "cuda", "libfabric", "efa_installer", "ofi_nccl", "nsys"];

/// Whether samples here and in a pack are of the same runs: two values of a key agree in all digits, in three keys or in
/// each that is shared. Values of few digits agree by chance.
pub fn have_same_runs<'a>(keys: impl Iterator<Item = (&'a [f64], &'a [f64])>) -> bool {
    let has_digits = |value: f64| format!("{value:.2e}").parse().is_ok_and(|short: f64| short != value);
    let (mut alike, mut all) = (0, 0);
    for (own, their) in keys {
        let own: Vec<f64> =
            own.iter().map(|value| rounded(*value)).filter(|value| has_digits(*value)).collect();
        if own.len() < 2 {
            continue;
        }
        all += 1;
        let mut same: Vec<f64> = own.into_iter().filter(|value| their.contains(value)).collect();
        same.sort_by(f64::total_cmp);
        same.dedup();
        alike += usize::from(same.len() > 1);
    }
    alike >= 3 || alike > 0 && alike == all
}

/// Whether it is a day, `2026-11-21`, and nothing else.
pub fn is_day(date: &str) -> bool {
    date.len() == 10
        && date
            .chars()
            .enumerate()
            .all(|(at, c)| if at == 4 || at == 7 { c == '-' } else { c.is_ascii_digit() })
}

/// Baselines without anything that names the site. `built_in`: metrics that every site has.
pub fn sanitise(baselines: &Baselines, built_in: &Catalogue) -> Sanitised {
    let mut left_out: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut entries = Vec::new();
    for entry in &baselines.entries {
        match reason_to_stay(entry, built_in) {
            Some(reason) => *left_out.entry(reason).or_default() += 1,
            None => entries.push(without_names(entry)),
        }
    }
    let Baselines { instance, simulated, between_sizes, .. } = baselines;
    let (instance, file) = (instance.clone(), String::new());
    let baselines =
        Baselines { instance, simulated: *simulated, between_sizes: *between_sizes, entries, file };
    Sanitised { baselines, left_out }
}

fn reason_to_stay(entry: &Baseline, built_in: &Catalogue) -> Option<&'static str> {
    let key = &entry.key;
    let is_one_of = |word: &Option<String>, known: &[&str]| {
        word.as_deref().is_none_or(|word| known.iter().any(|one| one.eq_ignore_ascii_case(word)))
    };
    let is_known_key = is_one_of(&key.dtype, &TYPES)
        && is_one_of(&key.algorithm, &ALGORITHMS)
        && is_one_of(&key.protocol, &PROTOCOLS)
        && is_one_of(&key.runner, &RUNNERS);
    if entry.runs.is_empty() {
        Some("not of runs of this site")
    } else if entry.state == State::Expired || entry.rejected_by.is_some() {
        Some("expired")
    } else if entry.samples.len() < FEWEST_ACCEPTED {
        Some("of fewer than five runs")
    } else if entry.pack.is_some() {
        Some("made with the pack of another site")
    } else if key.training.is_some() || key.kernel.is_some() {
        Some("of a training or a kernel, whose name may be your own")
    } else if !built_in.metrics().any(|metric| *metric.name == *entry.metric) {
        Some("a metric of your own recipes")
    } else if !is_known_key {
        Some("an algorithm, protocol or type that NCCL does not have")
    } else {
        None
    }
}

fn without_names(entry: &Baseline) -> Baseline {
    let versions = |part: &str| -> Option<Vec<String>> {
        let those = entry.fingerprint.get(part)?;
        // What stands behind the digits may be the name of a build.
        let digits = |one: &String| -> String {
            one.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect()
        };
        let those: Vec<String> = those.iter().map(digits).filter(|one| !one.is_empty()).collect();
        (!those.is_empty()).then_some(those)
    };
    let fingerprint =
        VERSIONED.into_iter().filter_map(|part| Some((part.to_owned(), versions(part)?))).collect();
    Baseline {
        metric: entry.metric.clone(),
        key: entry.key.clone(),
        unit: entry.unit,
        better: entry.better,
        state: State::Provisional,
        samples: entry.samples.clone(),
        lower: entry.lower,
        upper: entry.upper,
        floor: None,
        floor_source: None,
        spread: entry.spread,
        pack: None,
        quantiles: entry.quantiles,
        fingerprint,
        runs: Vec::new(),
        source: "runs of another site".to_owned(),
        accepted_by: None,
        rejected_by: None,
        reason: None,
        date: entry.date.clone().filter(|date| is_day(date)),
        simulated: entry.simulated,
        line: 0,
    }
}
