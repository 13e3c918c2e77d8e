//! The artefacts of a stored run are those that it wrote: a file of another run in their place is no result of it.

use crate::little::{id, project};
use std::fs;

const STAGES: [&str; 4] = ["collect", "analyze", "judge", "report"];

#[test]
fn a_file_of_another_run_in_the_place_of_an_artefact_is_exit_3_and_named() {
    let project = project();
    let run = |args: &[&str]| {
        project.harness(&[&["-q", "--suite", "little", "--nodes", "p5-[001-002]"], args].concat());
        project.path().join("runs").join(id(&project))
    };
    let own = run(&["--sim-fault", "p5-002:nic-slow=0.4@rdmap113s0"]);
    let other = run(&["--seed", "8"]);
    let (id, other_id) = (own.file_name().expect("an id"), other.file_name().expect("an id"));
    let refused = |from: &str, file: &str, line: &str| {
        let ran = project.harness(&["replay", "-q", "--run", &id.to_string_lossy(), "--from", from]);
        assert_eq!(ran.code, Some(3), "{from} {file}: {}", ran.all());
        let is_it = ran.stderr.contains(file) && ran.stderr.contains(line) && ran.stderr.lines().count() == 1;
        assert!(is_it, "{from} {file}: {}", ran.all());
    };
    let runs = project.runs();
    let wrote = format!("not what run `{}` wrote", id.display());
    for (file, stages, line) in [
        ("cases/pair/metrics.parquet", &["judge", "report"][..], wrote.as_str()),
        ("cases/pair/analysis.json", &["judge"], &wrote),
        ("cases/pair/collected.json", &["analyze", "judge", "report"], &wrote),
        ("cases/pair/job.json", &STAGES, &wrote),
        ("cases/pair/verdict.json", &["report"], &wrote),
        ("run.json", &STAGES, &format!("of run `{}`", other_id.display())),
    ] {
        let bytes = fs::read(own.join(file)).expect("there");
        let mut laid = fs::read(other.join(file)).expect("there");
        // Both were read alike, or ran alike: any other byte does for another run's.
        if laid == bytes {
            laid.push(b'\n');
        }
        fs::write(own.join(file), laid).expect("laid");
        stages.iter().for_each(|from| refused(from, file, line));
        fs::write(own.join(file), bytes).expect("put back");
    }
    // With an assertion less the rest would pass.
    let text = fs::read(own.join("plan.json")).expect("there");
    let mut plan: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
    plan["cases"][0]["assertions"].as_array_mut().expect("assertions").pop();
    fs::write(own.join("plan.json"), plan.to_string()).expect("changed");
    STAGES.iter().for_each(|from| refused(from, "plan.json", &wrote));
    fs::write(own.join("plan.json"), text).expect("put back");
    let probe = r#"{"format": 1, "harness": "0.1.0", "simulated": true, "inventory": "sim-p5", "instance": "p5", "at": "", "nodes": []}"#;
    // What this run had not written at all is not its own either.
    fs::write(own.join("probe.json"), probe).expect("laid");
    refused("judge", "probe.json", &wrote);
    assert_eq!(project.runs(), runs);
}
