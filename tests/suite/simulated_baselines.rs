//! The baselines of the simulated instances are what the simulated cluster measures when it is healthy: made by running
//! it, and kept fresh by this test: by its first seed always, by all five where it is asked for, as they take minutes.
//! `UPDATE_BASELINES=1 tests/nightly five_seeds` rewrites them.

use crate::project::{Project, root};
use config::baseline::{Baseline, BaselineKey, Baselines, State};
use metric::op::Op;
use metric::unit::{Better, Unit};
use recipes::catalogue::Catalogue;
use std::collections::BTreeMap;
use std::fs;

/// Independent runs: enough for an accepted baseline.
const SEEDS: [u64; 5] = [1001, 1002, 1003, 1004, 1005];
/// Bounds on either side of the median: six times the spread of the model.
const BAND: f64 = 0.06;

#[test]
fn the_baselines_of_the_simulated_p5_are_fresh() {
    check_first("sim-p5", &on_p5());
}

#[test]
fn the_baselines_of_the_simulated_p4de_are_fresh() {
    check_first("sim-p4de", &on_p4de());
}

#[test]
#[ignore = "takes minutes; the first seed of the five is always run"]
fn the_baselines_of_the_simulated_instances_are_fresh_with_each_of_five_seeds() {
    check("sim-p5", &on_p5());
    check("sim-p4de", &on_p4de());
}

fn on_p5() -> Vec<Made> {
    let on_four = ["nccl-p5", "scale", "fsdp-p5", "nemo-p5"].map(|suite| Made::on("default", suite));
    // The cases of the canary that need a baseline and have no fault; the others give no sample.
    let healthy = ["all-is-well", "provisional-within-bounds"].map(|case| Made {
        inventory: "default",
        suite: "canary",
        more: vec![case],
    });
    // Deliveries are of many nodes, and no number is taken over from fewer.
    let on_more = ["p5-[001-008]", "p5-[001-016]", "p5-[001-032]"].map(|nodes| Made {
        inventory: "sim-64",
        suite: "acceptance-p5",
        more: vec!["--nodes", nodes, "all-all_"],
    });
    on_four.into_iter().chain(healthy).chain(on_more).collect()
}

fn on_p4de() -> Vec<Made> {
    ["nccl-p4de", "ddp-p4de"].map(|suite| Made::on("sim-p4de", suite)).into()
}

/// What is run for it, with each seed.
struct Made {
    inventory: &'static str,
    suite: &'static str,
    more: Vec<&'static str>,
}

impl Made {
    fn on(inventory: &'static str, suite: &'static str) -> Made {
        Made { inventory, suite, more: Vec::new() }
    }
}

fn check(instance: &str, runs: &[Made]) {
    let schema = "#:schema ../docs/schemas/baselines.schema.json\n";
    let made = format!("{schema}{}", made(instance, &SEEDS, runs).render());
    let path = root().join(format!("baselines/{instance}.toml"));
    if std::env::var_os("UPDATE_BASELINES").is_some() {
        fs::write(&path, made).expect("written");
        return;
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == made,
        "baselines/{instance}.toml is not what the simulated cluster measures; UPDATE_BASELINES=1"
    );
}

/// Each baseline that is kept has what the first seed gives as its first sample, and there is no other.
fn check_first(instance: &str, runs: &[Made]) {
    let file = format!("baselines/{instance}.toml");
    let kept = fs::read_to_string(root().join(&file)).expect("read");
    let kept = Baselines::read(&kept, &file, &Catalogue::built_in()).expect("baselines");
    let made = made(instance, &SEEDS[..1], runs);
    let firsts = |all: &Baselines| -> BTreeMap<String, Option<f64>> {
        let name = |one: &Baseline| format!("{} {:?} {:?} {:?}", one.metric, one.key, one.unit, one.better);
        all.entries.iter().map(|one| (name(one), one.samples.first().copied())).collect()
    };
    assert_eq!(firsts(&kept), firsts(&made), "{file}");
    for one in &kept.entries {
        let (samples, bounds) = (&one.samples, [one.lower, one.upper].map(|bound| bound.expect("a bound")));
        let wanted = if one.state == State::Provisional { 3 } else { SEEDS.len() };
        assert_eq!(samples.len(), wanted, "{file}: {} {:?}", one.metric, one.key);
        let middle = median(samples.clone());
        // Samples and bounds are rounded each by itself.
        let place = if one.metric.starts_with("train.") { 0.0001 } else { 0.01 };
        for (bound, share) in bounds.into_iter().zip([1.0 - BAND, 1.0 + BAND]) {
            let off = (bound - middle * share).abs();
            assert!(off < 1.1 * place, "{file}: {} {:?}: bound {bound}", one.metric, one.key);
        }
    }
}

fn made(instance: &str, seeds: &[u64], runs: &[Made]) -> Baselines {
    let project = Project::new();
    // Without the old ones, every assertion against a baseline says which key it misses and what it saw.
    let none = format!("instance = \"{instance}\"\nsimulated = true\n");
    project.write(&format!("baselines/{instance}.toml"), &none);
    let mut seen: BTreeMap<(String, BaselineKey), BTreeMap<u64, Vec<f64>>> = BTreeMap::new();
    let mut units: BTreeMap<String, (Unit, Better)> = BTreeMap::new();
    for seed in seeds {
        for Made { inventory, suite, more } in runs {
            let text = seed.to_string();
            // No node is left out of a later case.
            let args =
                ["-q", "--suite", suite, "--inventory", inventory, "--seed", &text, "--keep-bad-nodes"];
            project.harness(&[&args[..], more].concat());
            let plan: model::artefact::Plan =
                serde_json::from_value(project.json("plan.json")).expect("a plan");
            for case in plan.cases.iter().filter(|case| case.sim_faults.is_empty() && case.skip.is_none()) {
                let verdicts = project.json(&format!("cases/{}/verdict.json", case.name));
                for (assertion, verdict) in
                    case.assertions.iter().zip(verdicts["verdicts"].as_array().expect("all"))
                {
                    let Some(model::artefact::PlannedBaseline::None { key }) = &assertion.bound.baseline
                    else {
                        continue;
                    };
                    let (_, key) = plan::read_shown(key).expect("a key");
                    // The model knows of no placement: one number stands for any.
                    let key = key.anywhere();
                    // Three nodes are the canary's: no baseline is accepted for them.
                    if key.nodes == Some(3) {
                        continue;
                    }
                    let observed =
                        verdict["observed"].as_f64().unwrap_or_else(|| panic!("{}", assertion.name));
                    units.insert(assertion.metric.clone(), (assertion.unit, assertion.better));
                    let samples = seen.entry((assertion.metric.clone(), key)).or_default();
                    samples.entry(*seed).or_default().push(observed);
                }
            }
        }
    }
    assert!(!seen.is_empty(), "nothing asked for a baseline");
    let entries = seen.into_iter().map(|((metric, key), by_seed)| {
        // The numbers of one run are not independent: one sample per run, its median.
        let mut samples: Vec<f64> = by_seed.into_values().map(median).collect();
        // The canary needs one provisional baseline: too few samples to be accepted.
        let provisional = key.size_bytes == Some(4 << 30) && key.op == Some(Op::AllGather);
        samples.truncate(if provisional { 3 } else { samples.len() });
        let middle = median(samples.clone());
        let (unit, better) = units[&metric];
        // Times and shares of trainings are small numbers.
        let places = if metric.starts_with("train.") { 10_000.0 } else { 100.0 };
        let rounded = |value: f64| (value * places).round() / places;
        Baseline {
            metric,
            key,
            unit,
            better,
            state: if provisional { State::Provisional } else { State::Accepted },
            samples: samples.into_iter().map(rounded).collect(),
            lower: Some(rounded(middle * (1.0 - BAND))),
            upper: Some(rounded(middle * (1.0 + BAND))),
            floor: None,
            floor_source: None,
            spread: None,
            pack: None,
            quantiles: None,
            fingerprint: BTreeMap::new(),
            runs: Vec::new(),
            source: "the simulated cluster, healthy".to_owned(),
            accepted_by: None,
            rejected_by: None,
            reason: None,
            date: None,
            simulated: true,
            line: 0,
        }
    });
    Baselines {
        instance: instance.to_owned(),
        simulated: true,
        between_sizes: false,
        entries: entries.collect(),
        file: String::new(),
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    (values[(n - 1) / 2] + values[n / 2]) / 2.0
}
