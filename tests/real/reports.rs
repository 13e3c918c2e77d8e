//! Reports of a run through the programs of others that read them: metrics through Prometheus' own Python parsers, CTRF through
//! a validator of JSON Schema, JUnit through libxml2.

use crate::fact::Fact;
use crate::needs;
use crate::project::{Project, root};
use serde_json::Value;
use std::process::Command;

pub(crate) const METRICS: &[Fact] = &[(
    "metrics_are_the_same_through_both_reference_parsers",
    metrics_are_the_same_through_both_reference_parsers,
)];
pub(crate) const SCHEMA: &[Fact] =
    &[("ctrf_is_valid_by_a_reference_validator", ctrf_is_valid_by_a_reference_validator)];
pub(crate) const JUNIT: &[Fact] = &[(
    "junit_for_jenkins_is_valid_by_its_schema_whatever_came_of_the_run",
    junit_for_jenkins_is_valid_by_its_schema_whatever_came_of_the_run,
)];

const INVENTORY: &str = r#"kind = "simulated"
instance = "sim-p5"
nodes = "p5-[001-004]"
"#;

fn python(script: &str, arguments: &[&str], project: &Project) -> (bool, String) {
    let mut command = Command::new(needs::pandas());
    command.args(["-c", script]).args(arguments).current_dir(project.path());
    let output = command.output().expect("python starts");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

/// Every sample as `[name, labels, value]`.
const PARSE: &str = "
import json, sys
from prometheus_client import parser
from prometheus_client.openmetrics import parser as strict
parse = {'prometheus': parser, 'openmetrics': strict}[sys.argv[1]].text_string_to_metric_families
samples = [[s.name, s.labels, s.value, s.timestamp] for f in parse(open(sys.argv[2]).read()) for s in f.samples]
print(json.dumps(sorted(samples, key=str)))
";

fn metrics_are_the_same_through_both_reference_parsers() {
    let project = Project::new();
    // What ends a label, a list of labels or a name, unless it is escaped.
    let name = r#"a"b,c="d{e}"#;
    project.write(&format!("inventory/{name}.toml"), INVENTORY);
    let ran = project.harness(&[
        "run",
        "--suite",
        "nccl-p5",
        "-q",
        "nic-pairs",
        "--inventory",
        &format!("inventory/{name}.toml"),
        "--sim-fault",
        "p5-002:nic-slow=0.4@rdmap113s0",
        "--prometheus",
        "a.prom",
        "--openmetrics",
        "a.txt",
    ]);
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    let read = |form: &str, file: &str| -> Vec<Value> {
        let (is_good, text) = python(PARSE, &[form, file], &project);
        assert!(is_good, "{form}: {text}");
        serde_json::from_str(&text).expect("JSON")
    };
    let (own, open) = (read("prometheus", "a.prom"), read("openmetrics", "a.txt"));
    assert_eq!(own, open);
    let of = |name: &str| own.iter().filter(|sample| sample[0] == name).collect::<Vec<_>>();
    assert!(own.iter().all(|sample| sample[1]["inventory"] == name && sample[3].is_null()), "{own:?}");
    assert_eq!(of("harness_run_exit_code")[0][2].as_f64(), Some(1.0));
    let culprit = &of("harness_culprit")[0][1];
    assert_eq!(
        [&culprit["kind"], &culprit["node"], &culprit["part"], &culprit["code"]],
        ["culprit", "p5-002", "rdmap113s0", "HRN-NIC-SLOW"]
    );
    let of_rate =
        |name: &str| of(name).iter().map(|sample| sample[2].as_f64().unwrap()).fold(f64::MAX, f64::min);
    assert!(of_rate("harness_worst_value") < of_rate("harness_worst_value_lower_bound"));
    // The strict one refuses what is cut.
    let text = std::fs::read_to_string(project.path().join("a.txt")).expect("written");
    project.write("cut.txt", text.strip_suffix("# EOF\n").expect("an end"));
    assert!(!python(PARSE, &["openmetrics", "cut.txt"], &project).0);
}

fn ctrf_is_valid_by_a_reference_validator() {
    const VALIDATE: &str = "
import json, sys, jsonschema
document, schema = (json.load(open(file)) for file in sys.argv[1:3])
jsonschema.Draft7Validator(schema, format_checker=jsonschema.FormatChecker()).validate(document)
";
    let project = Project::new();
    let faults = ["--sim-fault", "p5-002:nic-slow=0.4@rdmap113s0"];
    let ran =
        project.harness(&[&["run", "--suite", "nccl-p5", "-q", "--ctrf", "c.json"][..], &faults].concat());
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    let schema = root().join("tests/schemas/ctrf-0.0.json").display().to_string();
    let (is_good, text) = python(VALIDATE, &["c.json", &schema], &project);
    assert!(is_good, "{text}");
    let text = std::fs::read_to_string(project.path().join("c.json")).expect("written");
    project.write("d.json", &text.replace("\"status\": \"passed\"", "\"status\": \"green\""));
    assert!(!python(VALIDATE, &["d.json", &schema], &project).0);
}

/// Green, red, inconclusive, without a node, and with cases that are skipped.
const OUTCOMES: [(i32, &[&str]); 5] = [
    (0, &[]),
    (1, &["--sim-fault", "p5-002:nic-slow=0.4@rdmap113s0"]),
    (3, &["nic-pairs", "--sim-fault", "p5-002:nic-dead@rdmap79s0"]),
    (3, &["--sim-fault", "p5-002:node-fails"]),
    (0, &["--nodes", "p5-001"]),
];

fn junit_for_jenkins_is_valid_by_its_schema_whatever_came_of_the_run() {
    let schema = root().join("tests/schemas/junit-10.xsd").display().to_string();
    let project = Project::new();
    let is_valid = |file: &str| {
        let mut command = Command::new("xmllint");
        command.args(["--nonet", "--noout", "--schema", &schema, file]).current_dir(project.path());
        let output = command.output().expect("xmllint starts");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let common = ["run", "--suite", "nccl-p5", "-q", "--junit", "j.xml", "--junit-flavor"];
    for (code, more) in OUTCOMES {
        let ran = project.harness(&[&common[..], &["jenkins"][..], more].concat());
        assert_eq!(ran.code, Some(code), "{more:?}: {}", ran.all());
        let (is_good, text) = is_valid("j.xml");
        assert!(is_good, "{more:?}: {text}");
    }
    // Properties of testcases and counts of the whole are beyond the schema, which shows that it was read.
    let ran = project.harness(&[&common[..], &["default", "nic-pairs"][..]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let (is_good, text) = is_valid("j.xml");
    assert!(!is_good && text.contains("'properties'"), "{text}");
}
