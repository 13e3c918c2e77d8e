//! Every file under `tests/scenarios`: a cluster, a seed, faults and a suite, and what must come of it.

use crate::project::{Project, root};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    /// What it shows, in a sentence.
    about: String,
    #[serde(default = "default_inventory")]
    inventory: String,
    suite: String,
    #[serde(default = "default_seed")]
    seed: u64,
    #[serde(default)]
    faults: Vec<String>,
    /// Further arguments.
    #[serde(default)]
    args: Vec<String>,
    expect: Expect,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    exit_code: i32,
    /// The lines that blame, without their evidence, in their order.
    #[serde(default)]
    blamed: Vec<String>,
    /// How cases end.
    #[serde(default)]
    cases: BTreeMap<String, String>,
}

fn default_inventory() -> String {
    "default".to_owned()
}

fn default_seed() -> u64 {
    1
}

#[test]
fn every_scenario_ends_as_it_says() {
    let project = Project::new();
    let mut wrong = Vec::new();
    let mut count = 0;
    let mut files: Vec<_> =
        fs::read_dir(root().join("tests/scenarios")).expect("scenarios").flatten().collect();
    files.sort_by_key(|entry| entry.file_name());
    for file in files {
        let name = file.file_name().to_string_lossy().into_owned();
        let text = fs::read_to_string(file.path()).expect("read");
        let scenario: Scenario = toml::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let seed = scenario.seed.to_string();
        let mut args =
            vec!["-q", "--suite", &scenario.suite, "--inventory", &scenario.inventory, "--seed", &seed];
        for fault in &scenario.faults {
            args.extend(["--sim-fault", fault]);
        }
        args.extend(scenario.args.iter().map(String::as_str));
        let ran = project.harness(&args);
        count += 1;
        let mut differs = Vec::new();
        if ran.code != Some(scenario.expect.exit_code) {
            differs.push(format!("exit {:?} instead of {}", ran.code, scenario.expect.exit_code));
        }
        if ran.blamed() != scenario.expect.blamed {
            differs.push(format!("blamed {:?} instead of {:?}", ran.blamed(), scenario.expect.blamed));
        }
        let summary = project.json("summary.json");
        for (case, end) in &scenario.expect.cases {
            let found =
                summary["cases"].as_array().into_iter().flatten().find(|found| found["name"] == **case);
            match found {
                Some(found) if found["end"] == **end => {}
                Some(found) => differs.push(format!("{case} ended {} instead of {end}", found["end"])),
                None => differs.push(format!("no case {case}")),
            }
        }
        if !differs.is_empty() {
            wrong.push(format!("{name} ({}): {}\n{}", scenario.about, differs.join("; "), ran.all()));
        }
    }
    assert!(count >= 5, "only {count} scenarios");
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
