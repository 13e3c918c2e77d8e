//! Trainings over real servers: shortened suites that ship pass over a real Slurm, and a window that the watcher of the
//! log makes holds the steps that were asked for, over a real Slurm and real ssh.

use super::ways::{self, SuiteRequest, Way};
use crate::fact::Fact;
use crate::project::root;
use std::fs;

pub(super) const FACTS: &[Fact] = &[
    ("fsdp_p5_with_fewer_steps_passes_over_a_real_slurm", fsdp),
    ("nemo_p5_with_fewer_steps_passes_over_a_real_slurm", nemo),
    ("a_window_that_the_watcher_makes_holds_its_steps_over_a_real_slurm_and_real_ssh", watched),
];

/// The first case of a suite that ships, with other words in the place of some.
pub(super) fn first_case(suite: &str, instead: &[(&str, &str)]) -> String {
    let path = root().join(format!("suites/{suite}.toml"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let head = text.find("[[case]]").expect("a case");
    let end = text[head + 1..].find("[[case]]").map_or(text.len(), |at| head + 1 + at);
    instead.iter().fold(text[..end].to_owned(), |text, (word, other)| {
        assert!(text.contains(word), "{suite} has no `{word}` any more");
        text.replace(word, other)
    })
}

/// All of it is lived through: what crosses between nodes in a step is read off their counters.
fn passes(suite: &str, instead: &[(&str, &str)]) {
    let text = first_case(suite, instead);
    let way = ways::by_slurm(&SuiteRequest { suite, faults: &[], text: &text, floor_s: 600.0 });
    assert_eq!(way.ran.code, Some(0), "{}", way.ran.all());
    way.assert_marked();
}

fn fsdp() {
    passes("fsdp-p5", &[("steps = 80", "steps = 24"), ("70..75", "16..21")]);
}

fn nemo() {
    passes("nemo-p5", &[("steps = 40", "steps = 12"), ("20..25", "6..11")]);
}

/// Steps take longer than the watcher needs to see one, and a node that is busy to start nsys.
const WATCHED: &str = r#"instance = "p5"
about = "a window that a watcher of the log makes"

[[case]]
name = "watched"
placement = 2
recipes = ["training_log", "window"]
workload = { kind = "fsdp", steps = 8, batch = 6, sharding = "hybrid", model = { parameters = 6_738_415_616, layers = 32, hidden = 4096, intermediate = 11_008, heads = 32, key_value_heads = 32, sequence = 4096, vocabulary = 32_000 } }

[case.profile]
ranks = "all"
steps = "3..5"
way = "watch"

[[case.assert]]
metric = "train.steps_missing"
equals = 0

[[case.assert]]
metric = "window.steps"
per = "node"
equals = 3

[[case.assert]]
metric = "window.first"
per = "node"
equals = 3
"#;

fn watched() {
    let asked = SuiteRequest { suite: "watched", faults: &[], text: WATCHED, floor_s: 600.0 };
    for way in [ways::by_slurm(&asked), ways::by_ssh(&asked)] {
        assert_eq!(way.ran.code, Some(0), "{}: {}", way.name, way.ran.all());
        way.assert_marked();
        let marks = marks(&way);
        assert_eq!(marks.len(), 2, "{}: {marks:?}", way.name);
        // The second node prints no step: it is reported about those that matter alone.
        let reported = r#"{"way":"watch","opened":3,"closed":5,"steps":"#;
        assert!(marks.iter().all(|mark| mark.starts_with(reported)), "{}: {marks:?}", way.name);
    }
}

/// What the watchers of a run wrote down.
fn marks(way: &Way) -> Vec<String> {
    let raw = way.project.latest().join("cases/watched/raw");
    let jobs = fs::read_dir(&raw).unwrap_or_else(|error| panic!("{}: {error}", raw.display())).flatten();
    let files = jobs.flat_map(|job| fs::read_dir(job.path()).into_iter().flatten().flatten());
    let accounts = files.filter(|file| file.file_name().to_string_lossy().starts_with("profile.rank"));
    let text = |file: fs::DirEntry| fs::read_to_string(file.path()).expect("an account");
    let mark = |text: String| text.lines().find_map(|line| line.strip_prefix("window ").map(str::to_owned));
    accounts.filter_map(|file| mark(text(file))).collect()
}
