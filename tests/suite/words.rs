//! Whatever stands in a suite reaches its program as it is, or is refused with its place: on this machine, by a real bash.
//! The same over ssh and under Slurm is tested on real servers.

#[path = "../words/mod.rs"]
mod drawn;

use crate::project::Project;
use drawn::{Words, quoted, recorder, seeds};

#[test]
fn drawn_words_arrive_as_they_are_on_this_machine() {
    for seed in seeds(6) {
        let words = Words::drawn(seed);
        let project = Project::new();
        let (program, told) = (project.path().join("recorder"), project.path().join("told"));
        recorder(&program, &told);
        let shared = project.path().join(&words.folder).join("shared");
        project.write(
            "inventory/here.toml",
            &format!(
                "kind = \"real\"\ninstance = \"p5\"\nnodes = \"here-1\"\n[reach]\nvia = \"local\"\n[paths]\nshared = {}\n",
                quoted(&shared.display().to_string())
            ),
        );
        project.write(
            "suites/test.toml",
            &format!("instance = \"p5\"\nabout = \"x\"\n{}", words.case(&program, "each")),
        );
        let ran = project.harness(&["--suite", "test", "--inventory", "here"]);
        assert_eq!(ran.code, Some(0), "seed {seed}: {}", ran.all());
        words.assert_arrived(&told, &["here"]);
    }
}

#[test]
fn what_cannot_arrive_as_itself_is_refused_with_its_place() {
    let of = |workload: &str| {
        let project = Project::new();
        let case = "[[case]]\nname = \"one\"\nplacement = \"each\"\nrecipes = [\"command\"]\n";
        let assertion = "[[case.assert]]\nmetric = \"command.exit_code\"\nequals = 0\n";
        project.write(
            "suites/test.toml",
            &format!("instance = \"sim-p5\"\nabout = \"x\"\n{case}workload = {{ kind = \"command\", {workload} }}\n{assertion}"),
        );
        let ran = project.harness(&["--suite", "test", "--dry-run"]);
        (ran.code, ran.stderr)
    };
    for (workload, told) in [
        ("program = \"-x\"", "no name of a program: \"-x\"; write its path"),
        ("program = \"A=b\"", "no name of a program"),
        ("program = \"exit\"", "a word of the shell, and no program: `exit`"),
        ("program = \"if\"", "a word of the shell"),
        ("program = \"a\\u0000b\"", "no argument can hold a zero byte"),
        ("program = \"true\", args = [\"a\\u0000b\"]", "no argument can hold a zero byte: \"a\\0b\""),
        ("program = \"true\", args = [\"env:A B\"]", "no name of a variable behind `env:`"),
        ("program = \"true\", environment = { A = \"x\\ny\" }", "an environment variable is one line: `A`"),
        ("program = \"true\", environment = { \"A B\" = \"x\" }", "not a name of an environment variable"),
        ("program = \"true\", environment = { A = \"env:$(id)\" }", "no name of a variable behind `env:`"),
    ] {
        let (code, stderr) = of(workload);
        assert_eq!(code, Some(2), "{workload}: {stderr}");
        assert!(stderr.contains("suites/test.toml:7:") && stderr.contains(told), "{workload}: {stderr}");
    }
    for workload in [
        "program = \"./a=b\"",
        "program = \"/bin/if\"",
        "program = \"true\", args = [\"-x\", \"A=b\", \"if\"]",
    ] {
        assert_eq!(of(workload).0, Some(0), "{workload}");
    }
}
