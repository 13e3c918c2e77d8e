//! Whatever stands in a suite reaches its program as it is, or is refused with its place: on this machine, by a real
//! bash. The same over ssh and under Slurm is tested on real servers.

#[path = "../words/mod.rs"]
mod drawn;

use crate::project::Project;
use drawn::{Words, quoted, recorder, seeds};

#[test]
fn drawn_words_arrive_as_they_are_on_this_machine() {
    for seed in seeds(6) {
        let words = Words::drawn(seed);
        let project = Project::new();
        let (program, reported) = (project.path().join("recorder"), project.path().join("reported"));
        recorder(&program, &reported);
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
        words.assert_arrived(&reported, &["here"]);
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
    for (workload, expected) in [
        ("program = \"-x\"", "not a program name: \"-x\"; write its path"),
        ("program = \"A=b\"", "not a program name"),
        ("program = \"exit\"", "a shell keyword or builtin, not a program: `exit`"),
        ("program = \"if\"", "a shell keyword or builtin"),
        ("program = \"a\\u0000b\"", "an argument cannot contain a zero byte"),
        ("program = \"true\", args = [\"a\\u0000b\"]", "an argument cannot contain a zero byte: \"a\\0b\""),
        ("program = \"true\", args = [\"env:A B\"]", "no variable name after `env:`"),
        (
            "program = \"true\", environment = { A = \"x\\ny\" }",
            "an environment variable must be one line: `A`",
        ),
        ("program = \"true\", environment = { \"A B\" = \"x\" }", "not an environment variable name"),
        ("program = \"true\", environment = { A = \"env:$(id)\" }", "no variable name after `env:`"),
    ] {
        let (code, stderr) = of(workload);
        assert_eq!(code, Some(2), "{workload}: {stderr}");
        assert!(stderr.contains("suites/test.toml:7:") && stderr.contains(expected), "{workload}: {stderr}");
    }
    for workload in [
        "program = \"./a=b\"",
        "program = \"/bin/if\"",
        "program = \"true\", args = [\"-x\", \"A=b\", \"if\"]",
    ] {
        assert_eq!(of(workload).0, Some(0), "{workload}");
    }
}
