//! What a run leaves over ssh: no secret in its folder, nothing on the nodes after `clean`; and what it sends arrives
//! as it is.

use super::hosts::{Hosts, processes_with, wait_until};
use crate::fact::Fact;
use crate::planted::{CORE, TOKEN, assert_found_nowhere, files};
use crate::project::{Project, ran};
use crate::words::{Words, quoted, recorder, seeds};
use std::fs;
use std::process::Stdio;

pub(super) const FACTS: &[Fact] = &[
    ("a_planted_token_reaches_every_node_and_is_found_nowhere_in_the_run", planted),
    ("what_a_killed_harness_left_on_nodes_is_ended_by_clean", left),
    ("a_node_that_gives_no_answer_is_not_said_to_be_clean", silent),
    ("drawn_words_arrive_as_they_are_on_every_node", drawn_words_arrive),
];

const ARGS: [&str; 4] = ["--suite", "test", "--inventory", "live"];

fn bench(many: usize, program: &str) -> (Hosts, Project) {
    let (hosts, project) = (Hosts::start(many), Project::new());
    project.write("inventory/live.toml", &hosts.inventory("heartbeat_timeout_s = 300"));
    project.write(
        "suites/test.toml",
        &format!(
            "instance = \"p5\"\nabout = \"x\"\n[[case]]\nname = \"one\"\nplacement = \"all\"\nlimit_s = 120\n\
             workload = {{ kind = \"command\", program = \"bash\", args = [\"-c\", {}, \"--token\", \"env:PLANTED\"],\
             environment = {{ MY_TOKEN = \"env:PLANTED\" }} }}\n\
             recipes = [\"command\"]\n[[case.assert]]\nmetric = \"command.exit_code\"\nequals = 0\n",
            quoted(program)
        ),
    );
    (hosts, project)
}

fn planted() {
    let (hosts, project) = bench(
        2,
        "env; echo \"$0 $1\"; echo \"not let in: $MY_TOKEN\" >&2; [[ $1 == \"$MY_TOKEN\" && -n $1 ]]",
    );
    let ran = ran(project.command(&ARGS).env("PLANTED", TOKEN).output().expect("the harness starts"));
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert!(!ran.all().contains(CORE), "{}", ran.all());
    assert_found_nowhere(&project.latest(), CORE);
    let left = files(&hosts.path("shared"));
    let given = |file: &&std::path::PathBuf| file.display().to_string().contains("/secrets");
    assert!(!left.iter().any(|file| given(&file)), "{left:?}");
}

fn left() {
    let (hosts, project) = bench(3, "trap '' TERM; while :; do sleep 1; done");
    let shared = hosts.path("shared").display().to_string();
    let mut command = project.command(&ARGS);
    let mut run =
        command.env("PLANTED", TOKEN).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts");
    // The supervisor and the script on each of them.
    let supervisors =
        || processes_with(&shared).into_iter().filter(|(_, line)| line.contains(" keep ")).count();
    wait_until(60, "the jobs run", || supervisors() == 3 && project.latest().join("events.jsonl").exists());
    wait_until(60, "the run reports it", || {
        fs::read_to_string(project.latest().join("events.jsonl")).unwrap_or_default().contains("job-started")
    });
    run.kill().expect("killed");
    run.wait().expect("gone");
    let clean = |more: &[&str]| project.harness(&[&["clean", "--run", "latest"], more].concat());
    let output = clean(&["--dry-run"]);
    assert_eq!(output.code, Some(1), "{}", output.all());
    for node in ["h1", "h2", "h3"] {
        assert!(output.stdout.lines().any(|line| line.trim_start().starts_with(node)), "{}", output.all());
    }
    assert_eq!(supervisors(), 3, "telling ends nothing");
    let cleaned = clean(&[]);
    assert_eq!(cleaned.code, Some(0), "{}", cleaned.all());
    assert!(processes_with(&shared).is_empty(), "{:?}", processes_with(&shared));
    let again = clean(&[]);
    assert!(again.code == Some(0) && again.stdout.contains("nothing is left: 0 found"), "{}", again.all());
}

fn silent() {
    let (hosts, project) = bench(2, "true");
    let run = ran(project.command(&ARGS).env("PLANTED", TOKEN).output().expect("the harness starts"));
    assert_eq!(run.code, Some(0), "{}", run.all());
    hosts.down(2);
    let reported = project.harness(&["clean", "--run", "latest"]);
    assert_eq!(reported.code, Some(3), "{}", reported.all());
    assert!(reported.stdout.contains("h2 could not be asked"), "{}", reported.all());
}

fn drawn_words_arrive() {
    let hosts = Hosts::start(2);
    for seed in seeds(3) {
        let words = Words::drawn(seed);
        let project = Project::new();
        let (program, reported) = (project.path().join("recorder"), project.path().join("reported"));
        recorder(&program, &reported);
        let shared = hosts.path("shared").display().to_string();
        let folder = format!("{shared}/{}/x", words.folder);
        let inventory = hosts
            .inventory("")
            .replace(&format!("shared = \"{shared}\""), &format!("shared = {}", quoted(&folder)));
        project.write("inventory/live.toml", &inventory);
        project.write(
            "suites/test.toml",
            &format!("instance = \"p5\"\nabout = \"x\"\n{}", words.case(&program, "all")),
        );
        let ran = project.harness(&ARGS);
        assert_eq!(ran.code, Some(0), "seed {seed}: {}", ran.all());
        words.assert_arrived(&reported, &["h1", "h2"]);
    }
}
