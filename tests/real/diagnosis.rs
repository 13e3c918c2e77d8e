//! `harness diagnose` on real exports: what limits each, with numbers that the recipes print.

use crate::corpus;
use crate::fact::Fact;
use crate::small_export::ExportFolder;
use serde_json::Value;

pub(crate) const COLLECTED: &[Fact] = &[
    ("what_limits_each_real_export_is_found_and_no_more", what_limits_each_real_export_is_found_and_no_more),
    (
        "exports_of_several_years_are_not_taken_for_one_run",
        exports_of_several_years_are_not_taken_for_one_run,
    ),
];

/// The code of each finding with the percentage of the time that could be won.
const FOUND: [(&str, &[(&str, f64)]); 5] = [
    (
        "h100-2gpu-mfu-before.sqlite",
        &[
            ("hot-kernel", 45.4),
            ("idle-gpus", 9.8),
            ("host-waits", 9.8),
            ("exposed-communication", 4.2),
            ("communication-on-compute-stream", 4.2),
        ],
    ),
    ("gh200-jacobi.sqlite", &[("hot-kernel", 98.4)]),
    ("rtx3080-mock.sqlite", &[("idle-gpus", 100.0)]),
    (
        "saxpy-mpi-schema-2.9.1.sqlite",
        &[("idle-gpus", 66.0), ("synchronous-copies", 25.9), ("hot-kernel", 8.1)],
    ),
    // One fill of 1.5 us is no sample of anything.
    ("rtx4060-no-kernel-table.sqlite", &[]),
];

fn diagnosed(names: &[&str]) -> (String, Vec<Value>) {
    let all = corpus::exports();
    let inputs = names.iter().map(|name| {
        let found = all.iter().find(|export| export.file_name().is_some_and(|file| file == *name));
        found.unwrap_or_else(|| panic!("no {name}")).display().to_string()
    });
    let inputs: Vec<String> = inputs.collect();
    let words: Vec<&str> = inputs.iter().map(String::as_str).chain(["--format", "json"]).collect();
    let ran = ExportFolder::new().verb("diagnose", &words);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let lines = ran.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    (ran.stderr.clone(), lines.collect())
}

fn what_limits_each_real_export_is_found_and_no_more() {
    for (name, expected) in FOUND {
        let (_, sets) = diagnosed(&[name]);
        let findings = sets[0]["findings"].as_array().expect("findings");
        let found = findings.iter().map(|one| {
            let share = one["share"].as_f64().expect("a share");
            (one["code"].as_str().expect("a code"), (share * 1000.0).round() / 10.0)
        });
        assert_eq!(found.collect::<Vec<_>>(), expected, "{name}");
    }
}

fn exports_of_several_years_are_not_taken_for_one_run() {
    let names = ["h100-2gpu-mfu-before.sqlite", "saxpy-mpi-schema-2.9.1.sqlite"];
    let (notes, sets) = diagnosed(&names);
    assert!(notes.contains("these reports are not of one run"), "{notes}");
    let counts: Vec<usize> = sets.iter().map(|set| set["findings"].as_array().map_or(0, Vec::len)).collect();
    assert_eq!(counts, [5, 3]);
}
