//! The contract of the command line: what is said where, with which exit code, and what is refused.

use crate::project::Project;

#[test]
fn the_main_command_passes_accounts_for_every_nic_and_says_that_it_is_simulated() {
    let project = Project::new();
    let ran =
        project.harness(&["--suite", "nccl-p5", "--junit", "out/junit.xml", "--json", "out/summary.json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert!(ran.stdout.contains("coverage: nodes 4/4, ranks 32/32, NICs 128/128"), "{}", ran.all());
    let junit = std::fs::read_to_string(project.path().join("out/junit.xml")).expect("junit");
    let summary = std::fs::read_to_string(project.path().join("out/summary.json")).expect("summary");
    // The same but for where attachments are: each document finds them from its own place.
    let id = std::fs::read_link(project.latest()).expect("a link").display().to_string();
    let copied = junit.replace(&format!("|../runs/{id}/cases/"), "|cases/");
    assert_eq!(copied, std::fs::read_to_string(project.latest().join("junit.xml")).expect("the same"));
    let attached = junit.split("[[ATTACHMENT|").nth(1).and_then(|rest| rest.split("]]").next()).expect("one");
    assert!(project.path().join("out").join(attached).exists(), "{attached}");
    assert_eq!(summary, std::fs::read_to_string(project.latest().join("summary.json")).expect("the same"));
    for text in [&ran.stdout, &junit, &summary] {
        assert!(text.contains("SIMULATED"));
    }
    assert!(summary.contains("\"simulated\": true"));
    let plan = project.json("plan.json");
    let nics = plan["instance"]["nics"].as_array().expect("nics");
    assert_eq!(nics.len(), 32);
    for node in ["p5-001", "p5-002", "p5-003", "p5-004"] {
        for nic in nics {
            let nic = nic.as_str().unwrap_or_default();
            assert!(junit.contains(&format!("{node}/{nic}")), "{node} {nic} is not accounted for");
        }
    }
}

#[test]
fn a_closed_stdout_ends_quietly_with_the_reports_written() {
    let project = Project::new();
    let mut command = project.command(&["--suite", "nccl-p5"]);
    let mut child = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("starts");
    drop(child.stdout.take());
    let ran = crate::project::ran(child.wait_with_output().expect("ends"));
    assert!(!ran.stderr.contains("panic"), "{}", ran.all());
    assert!(project.latest().join("junit.xml").is_file());
    assert_eq!(ran.code, Some(0), "{}", ran.all());
}

#[test]
fn no_more_jobs_are_in_the_queue_than_the_inventory_says() {
    let project = Project::new();
    project.write(
        "inventory/few.toml",
        "kind = \"simulated\"\ninstance = \"sim-p5\"\nnodes = \"p5-[001-004]\"\n[reach]\nvia = \"slurm\"\nmost_jobs = 2\n",
    );
    // So many jobs were asked for and had not ended at the same time.
    let most = || {
        let events = std::fs::read_to_string(project.latest().join("events.jsonl")).expect("events");
        let (mut live, mut most) = (0_i32, 0);
        for line in events.lines() {
            live += i32::from(line.contains("\"event\":\"job-submitted\""));
            live -= i32::from(line.contains("\"event\":\"job-ended\""));
            most = most.max(live);
        }
        assert_eq!(live, 0, "every job ended");
        most
    };
    for (inventory, expected) in [("default", 4), ("few", 2)] {
        let ran = project.harness(&["--suite", "nccl-p5", "-q", "--inventory", inventory, "node-all_reduce"]);
        assert_eq!((ran.code, most()), (Some(0), expected), "{inventory}: {}", ran.all());
    }
}

#[test]
fn shells_complete_every_verb_but_internal_ones() {
    let project = Project::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let ran = project.harness(&["completions", shell]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{shell}");
        for expected in ["isolate", "function-trace", "sim-fault", "help"] {
            assert!(ran.stdout.contains(expected), "{shell}: no `{expected}`");
        }
        assert!(!ran.stdout.contains("answer-query"), "{shell}");
    }
    assert_eq!(project.harness(&["completions", "sh"]).code, Some(2));
    project.write("complete.bash", &project.harness(&["completions", "bash"]).stdout);
    for (typed, expected) in [
        (&["harness", "isol"][..], "isolate\n"),
        (&["harness", "help", "cle"], "clean\n"),
        (&["harness", "baseline", "pro"], "propose\n"),
        (&["harness", "clean", "--dry"], "--dry-run\n"),
        (&["harness", "--sim-f"], "--sim-fault\n"),
    ] {
        let (words, last) = (typed.join(" "), typed.len() - 1);
        let script = format!(
            "source complete.bash; COMP_WORDS=({words}); COMP_CWORD={last}; \
             _harness harness {} {}; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            typed[last],
            typed[last - 1],
        );
        let mut bash = std::process::Command::new("bash");
        let output = bash.args(["-c", &script]).current_dir(project.path()).output().expect("bash");
        let ran = crate::project::ran(output);
        assert_eq!(ran.stdout, expected, "{typed:?}: {}", ran.all());
    }
}
