//! The suite that ships, over a simulated Slurm and simulated ssh, a real Slurm and real ssh, with the same model
//! behind all of them: the same verdicts, the same culprits, and run folders that differ only where they must.

mod analysed;
mod differ;
mod pods;
mod trainings;
mod ways;

use crate::fact::{Fact, trials};
use crate::{kubernetes_cluster, slurm_cluster, ssh};
use libtest_mimic::Trial;
use serde_json::Value;
use std::collections::BTreeMap;
use ways::{SHORT_S, SuiteRequest, Way};

pub(crate) const FACTS: &[Fact] = &[
    ("nccl_p5_ends_with_the_same_verdicts_over_all_of_them", healthy),
    ("a_dead_nic_and_a_slow_gpu_are_the_culprits_over_all_of_them", ill),
];

pub(crate) fn tests() -> Vec<Trial> {
    let facts = [FACTS, trainings::FACTS].concat();
    trials("same", &facts, slurm_cluster::absent().or(ssh::hosts::absent()))
}

/// Those that need a Kubernetes and no Slurm.
pub(crate) fn in_pods() -> Vec<Trial> {
    trials("kubernetes", &[pods::FACTS, analysed::FACTS].concat(), kubernetes_cluster::absent())
}

/// What is read off counters by the machine's own clock, and the rest of a workload of which a part was over:
/// near to the model, and not it.
const BY_THE_CLOCK: [(&str, f64); 2] = [("node.efa_tx", 0.6), ("nic.share", 1e-6)];

fn healthy() {
    let ways = ways::all(&SuiteRequest { suite: "nccl-p5", faults: &[], text: "", floor_s: SHORT_S });
    for way in &ways {
        assert_eq!(way.ran.code, Some(0), "{}: {}", way.name, way.ran.all());
        way.assert_marked();
    }
    assert_same_verdicts(&ways);
    let [slurm, ssh, real_slurm, real_ssh] = &ways;
    assert_no_baselines(real_slurm);
    for (simulated, real) in [(slurm, real_slurm), (ssh, real_ssh)] {
        let seen = differ::between(&simulated.project.latest(), &real.project.latest());
        println!("{} and {} differ in", simulated.name, real.name);
        for (line, many) in &seen.reported {
            println!("  {line}: {many}");
        }
        assert!(seen.strange.is_empty(), "{} and {}: {:#?}", simulated.name, real.name, seen.strange);
    }
}

/// What stand-ins measured says so where it is written down as baselines, and is refused for a real instance.
fn assert_no_baselines(way: &Way) {
    let measured = std::fs::read_to_string(way.project.path().join("baselines/p5.toml")).expect("baselines");
    way.project.write("baselines/p5.toml", &format!("simulated = true\n{measured}"));
    let checked = way.project.harness(&["check"]);
    assert_eq!(checked.code, Some(2), "{}", checked.all());
    assert!(
        checked.all().contains("simulated baselines are for a `sim-` instance only"),
        "{}",
        checked.all()
    );
}

/// Some cases of the suite that ships, one operation for all.
fn parts(kept: &[&str]) -> String {
    "instance = \"p5\"\nabout = \"parts of the suite that ships\"\n".to_owned() + &cases_of("nccl-p5", kept)
}

/// Some cases of a suite that ships, one operation for all.
fn cases_of(suite: &str, kept: &[&str]) -> String {
    let path = crate::project::root().join(format!("suites/{suite}.toml"));
    let shipped = std::fs::read_to_string(path).expect("a suite");
    let (_, cases) = shipped.split_once("\n[[case]]\n").expect("cases");
    let is_kept = |case: &&str| kept.iter().any(|name| case.starts_with(&format!("name = \"{name}\"\n")));
    let chosen: Vec<&str> = cases.split("\n[[case]]\n").filter(is_kept).collect();
    assert_eq!(chosen.len(), kept.len(), "{suite} has no longer all of {kept:?}");
    let mut text = String::new();
    for line in chosen.into_iter().flat_map(|case| ["[[case]]"].into_iter().chain(case.lines())) {
        text += if line.starts_with("matrix = ") { "matrix = { op = [\"all_reduce\"] }" } else { line };
        text += "\n";
    }
    text
}

fn ill() {
    let dead = (
        &["n2:nic-dead@rdmap80s0", "n3:gpu-slow=0.6@5"][..],
        &["gpu-each", "node-{op}", "all-all_gather"][..],
        &["culprit n2 rdmap80s0", "culprit n3 gpu5"][..],
    );
    let slow = (&["n4:nic-slow=0.4@rdmap113s0"][..], &["nic-pairs"][..], &["culprit n4 rdmap113s0"][..]);
    for (faults, cases, culprits) in [dead, slow] {
        let ways = ways::all(&SuiteRequest { suite: "ill", faults, text: &parts(cases), floor_s: SHORT_S });
        for way in &ways {
            assert_eq!(way.ran.code, Some(1), "{}: {}", way.name, way.ran.all());
            let mut blamed = way.ran.blamed();
            blamed.sort();
            assert_eq!(blamed, culprits, "{}: {}", way.name, way.ran.all());
            way.assert_marked();
        }
        assert_same_verdicts(&ways);
    }
}

/// Every verdict of every case: status, cause, part, bounds, how many were measured, and what was observed.
fn assert_same_verdicts(ways: &[Way]) {
    let [first, others @ ..] = ways else { panic!("nothing to compare") };
    let wanted = verdicts(first);
    for way in others {
        let found = verdicts(way);
        let names = |of: &BTreeMap<String, Value>| of.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&found), names(&wanted), "{}", way.name);
        for (name, verdict) in &found {
            let other = &wanted[name];
            for key in [
                "status",
                "provisional",
                "unit",
                "lower",
                "upper",
                "n",
                "n_expected",
                "node",
                "part",
                "cause",
            ] {
                assert_eq!(verdict[key], other[key], "{key} of {name} over {} and {}", way.name, first.name);
            }
            let near = BY_THE_CLOCK.iter().find(|(metric, _)| verdict["metric"] == *metric);
            match (near, verdict["observed"].as_f64(), other["observed"].as_f64()) {
                (Some((_, by)), Some(one), Some(two)) => {
                    assert!(
                        (one - two).abs() <= by * two.abs(),
                        "{name}: {one} over {}, {two} over {}",
                        way.name,
                        first.name
                    );
                }
                (_, one, two) => assert_eq!(one, two, "{name} over {} and {}", way.name, first.name),
            }
        }
    }
    println!("{} verdicts are the same over {} ways", wanted.len(), ways.len());
}

fn verdicts(way: &Way) -> BTreeMap<String, Value> {
    let plan = way.project.json("plan.json");
    let cases = plan["cases"].as_array().expect("cases").iter();
    let of_case = |case: &Value| {
        let name = case["name"].as_str().expect("a name");
        let file = way.project.json(&format!("cases/{name}/verdict.json"));
        let verdicts = file["verdicts"].as_array().expect("verdicts").clone();
        assert_eq!(verdicts.len(), case["assertions"].as_array().expect("assertions").len(), "{name}");
        verdicts
    };
    let named = |verdict: Value| (verdict["name"].as_str().expect("a name").to_owned(), verdict);
    cases.flat_map(of_case).map(named).collect()
}
