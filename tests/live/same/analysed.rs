//! A run whose reports pods read where they lie has the verdicts that one machine makes of them; what a harness that was
//! killed meanwhile left of its pods and folders, `clean` finds by the run and ends.

use super::parts;
use super::ways::{SHORT_S, SuiteRequest, pods};
use crate::fact::Fact;
use crate::kubernetes::bench::{Bench, until};
use crate::project::Ran;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

pub(super) const FACTS: &[Fact] =
    &[("a_run_whose_reports_pods_read_has_the_verdicts_of_one_machine_and_clean_ends_the_rest", analysed)];

const CASE: &str = "kernels-all_reduce";

/// Its runs lie in the folder that pods see.
struct World(Bench);

impl World {
    fn home(&self) -> PathBuf {
        self.0.project.path().join("shared/home")
    }

    fn harness(&self, words: &[&str]) -> Ran {
        let mut command = self.0.command(words);
        crate::project::ran(command.current_dir(self.home()).output().expect("the harness starts"))
    }

    /// Status and observed value of each assertion of the newest run.
    fn verdicts(&self) -> Vec<(String, Value, Value)> {
        let file = self.home().join(format!("runs/latest/cases/{CASE}/verdict.json"));
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let file: Value = serde_json::from_str(&text).expect("JSON");
        let verdicts = file["verdicts"].as_array().expect("verdicts").iter();
        let of = |one: &Value| {
            let name = one["name"].as_str().expect("a name").to_owned();
            (name, one["status"].clone(), one["observed"].clone())
        };
        verdicts.map(of).collect()
    }

    fn folders_of_analyses(&self) -> usize {
        let shared = fs::read_dir(self.0.shared()).expect("a folder").flatten();
        shared.filter(|entry| entry.file_name().to_string_lossy().starts_with("analysis-")).count()
    }
}

fn analysed() {
    let text = parts(&["kernels-{op}"]);
    let asked = SuiteRequest { suite: "parts", faults: &[], text: &text, floor_s: SHORT_S };
    let (bench, _programs) = pods(&asked);
    let inventory = bench.project.path().join("inventory/way.toml").display().to_string();
    let world = World(bench);
    fs::write(world.home().join("suites/parts.toml"), &text).expect("written");
    fs::copy(world.0.project.path().join("baselines/p5.toml"), world.home().join("baselines/p5.toml"))
        .expect("copied");
    let in_pods = ["--analyze-on", "kubernetes", "--inventory", &inventory];
    let ran = world.harness(&[&["--suite", "parts", "--quiet"][..], &in_pods].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let there = world.verdicts();
    world.0.assert_nothing_is_left();
    assert_eq!(world.folders_of_analyses(), 0);

    let here = world.harness(&["replay", "--run", "latest", "--from", "analyze"]);
    assert_eq!(here.code, Some(0), "{}", here.all());
    assert!(there.len() > 5, "{there:?}");
    assert_eq!(world.verdicts(), there);

    let again = [&["replay", "--run", "latest", "--from", "analyze"][..], &in_pods].concat();
    let mut command = world.0.command(&again);
    let mut child = command.current_dir(world.home()).spawn().expect("the harness starts");
    until(60, "the pods of the analysis", || world.0.pods().contains("harness-"));
    child.kill().expect("killed");
    child.wait().expect("ended");
    assert_eq!(world.folders_of_analyses(), 1);
    let cleaned = world.harness(&["clean", "--all"]);
    assert_eq!(cleaned.code, Some(0), "{}", cleaned.all());
    assert!(cleaned.stdout.contains("  pod  ") && cleaned.stdout.contains("analysis"), "{}", cleaned.all());
    assert_eq!(world.folders_of_analyses(), 0, "{}", cleaned.all());
    world.0.assert_nothing_is_left();
}
