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
    assert_eq!(junit, std::fs::read_to_string(project.latest().join("junit.xml")).expect("the same"));
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
fn listing_names_every_assertion_launches_nothing_and_prints_nothing_else() {
    let project = Project::new();
    let ran = project.harness(&["--suite", "nccl-p5", "--list", "--format", "terse"]);
    assert_eq!(ran.code, Some(0));
    assert_eq!(ran.stderr, "");
    assert!(ran.stdout.lines().count() > 300);
    assert!(ran.stdout.lines().all(|line| line.ends_with(": test")), "{}", ran.stdout);
    let none = project.harness(&["--suite", "nccl-p5", "--list", "no-such-thing"]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), ""), "{}", none.all());
    let json = project.harness(&["--suite", "nccl-p5", "--list", "--format", "json", "gpu-each"]);
    for line in json.stdout.lines() {
        let value: serde_json::Value = serde_json::from_str(line).expect("an object a line");
        assert!(value["name"].as_str().is_some_and(|name| name.contains("gpu-each")), "{line}");
    }
    assert_eq!(project.runs(), 0);
}

#[test]
fn a_dry_run_prints_scripts_and_launches_nothing() {
    let project = Project::new();
    let ran = project.harness(&["--suite", "nccl-p5", "--dry-run", "pair-all_gather"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    for expected in
        ["#SBATCH --nodes=2", "all_gather_perf", "counters.sh", "p5-[001-002]", "node-hours", "sbatch"]
    {
        assert!(ran.stdout.contains(expected), "no `{expected}` in\n{}", ran.stdout);
    }
    assert_eq!(project.runs(), 0);
}

#[test]
fn diagnostics_in_arguments_exit_2_and_suggest_the_nearest_right_one() {
    let project = Project::new();
    for (args, expected) in [
        (&["--siute", "nccl-p5"][..], "--suite"),
        (&["--suite", "nccl-p6"][..], "nccl-p5"),
        (&["--suite", "nccl-p5", "--inventory", "defualt"][..], "default"),
        (&["--suite", "nccl-p5", "--set", "limt_s=3"][..], "limit_s"),
        (&["--suite", "nccl-p5", "--set", "limit_s=soon"][..], "soon"),
        (&["--suite", "nccl-p5", "--nodes", "p5-[001-009]"][..], "p5-005"),
        (&["--suite", "nccl-p5", "--nodes", "p5-[001"][..], "p5-[001"),
        (&["--suite", "nccl-p5", "--bench"][..], "--bench"),
        (&["--suite", "nccl-p5", "--test-threads", "4"][..], "--test-threads"),
        (&["--suite", "nccl-p5", "--logfile", "x"][..], "--logfile"),
        (&["--suite", "nccl-p5", "-Z", "unstable-options"][..], "-Z"),
        (&["--suite", "nccl-p4de"][..], "nccl-p4de"),
        (&[][..], "nccl-p5"),
    ] {
        let ran = project.harness(args);
        assert_eq!(ran.code, Some(2), "{args:?}: {}", ran.all());
        assert!(ran.stderr.contains(expected), "{args:?}: no `{expected}` in {}", ran.stderr);
        assert_eq!(ran.stdout, "", "{args:?}");
    }
    assert_eq!(project.runs(), 0);
}

#[test]
fn help_prints_the_table_of_exit_codes() {
    let project = Project::new();
    let ran = project.harness(&["--help"]);
    assert_eq!(ran.code, Some(0));
    for expected in ["130", "inconclusive", "nothing selected", "--sim-fault", "HARNESS_INVENTORY"] {
        assert!(ran.stdout.contains(expected), "no `{expected}` in\n{}", ran.stdout);
    }
}

#[test]
fn json_format_holds_json_lines_only() {
    let project = Project::new();
    let fault = ["--sim-fault", "p5-002:corrupt@3"];
    let ran =
        project.harness(&[&["--suite", "nccl-p5", "--format", "json", "gpu-each"][..], &fault].concat());
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    let events: Vec<serde_json::Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).expect("a JSON line")).collect();
    assert!(events.iter().any(|event| event["type"] == "culprit" && event["node"] == "p5-002"));
    assert!(events.iter().any(|event| event["simulated"] == true));
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
fn after_two_dashes_a_verb_is_a_filter() {
    let project = Project::new();
    let ran = project.harness(&["--suite", "nccl-p5", "--list", "--", "check"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{}", ran.all());
}

#[test]
fn check_lints_what_ships_and_finds_nothing() {
    let project = Project::new();
    let ran = project.harness(&["check"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    project.write("suites/bad.toml", "instance = \"p5\"\nabuot = \"x\"\n[[case]]\nname = \"a\"\n");
    let ran = project.harness(&["check"]);
    assert_eq!(ran.code, Some(2), "{}", ran.all());
    assert!(ran.stdout.contains("suites/bad.toml:2"), "{}", ran.stdout);
    assert!(ran.stdout.contains("about"), "{}", ran.stdout);
}

#[test]
fn a_run_that_reaches_max_fail_launches_nothing_more() {
    let project = Project::new();
    let args = ["--suite", "nccl-p5", "-q", "--max-fail", "1", "--sim-fault", "p5-002:corrupt@3"];
    let ran = project.harness(&args);
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    let summary = project.json("summary.json");
    assert!(summary["interrupted"].as_str().is_some_and(|why| why.contains("--max-fail")), "{summary}");
    let errors = summary["counts"]["error"].as_u64().unwrap_or_default();
    assert!(errors > 0, "what was not launched is no pass");
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
        let ran = project.harness(&["--suite", "nccl-p5", "-q", "--inventory", inventory]);
        assert_eq!((ran.code, most()), (Some(0), expected), "{inventory}: {}", ran.all());
    }
}

#[test]
fn a_simulated_cluster_has_no_login_host() {
    let project = Project::new();
    project.write(
        "inventory/login.toml",
        "kind = \"simulated\"\ninstance = \"sim-p5\"\nnodes = \"p5-[001-004]\"\n[reach]\nvia = \"slurm\"\nlogin = \"l\"\n",
    );
    let ran = project.harness(&["--suite", "nccl-p5", "--inventory", "login", "--list"]);
    assert_eq!(ran.code, Some(2), "{}", ran.all());
    assert!(ran.stderr.contains("a simulated cluster has no login host; remove `login`"), "{}", ran.stderr);
}

#[test]
fn a_run_over_its_time_limit_is_inconclusive() {
    let project = Project::new();
    let ran = project.harness(&["--suite", "nccl-p5", "-q", "--timeout", "60"]);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert!(project.latest().join("junit.xml").is_file());
}

#[test]
fn suites_of_another_instance_and_simulated_baselines_for_real_nodes_are_refused() {
    let project = Project::new();
    project.write(
        "inventory/liar.toml",
        "kind = \"real\"\ninstance = \"sim-p5\"\nnodes = \"n[1-2]\"\n[reach]\nvia = \"slurm\"\n[paths]\nshared = \"/fsx\"\nnccl_tests = \"/opt\"\n",
    );
    let ran = project.harness(&["--suite", "nccl-p5", "--inventory", "liar", "--list"]);
    assert_eq!(ran.code, Some(2), "{}", ran.all());
    project.write(
        "inventory/real.toml",
        "kind = \"real\"\ninstance = \"p5\"\nnodes = \"n[1-2]\"\n[reach]\nvia = \"slurm\"\n[paths]\nshared = \"/fsx\"\nnccl_tests = \"/opt\"\n",
    );
    let ran =
        project.harness(&["--suite", "nccl-p5", "--inventory", "real", "--sim-fault", "n1:hang", "--list"]);
    assert_eq!(ran.code, Some(2), "{}", ran.all());
    let ran = project.harness(&["--suite", "nccl-p5", "--inventory", "real", "--list"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
}

#[test]
fn an_inventory_of_other_machines_is_refused_and_those_that_would_do_are_named() {
    let project = Project::new();
    let ran = project.harness(&["--suite", "ddp-p4de", "--list"]);
    assert_eq!(ran.code, Some(2), "{}", ran.all());
    let reported =
        "suite `ddp-p4de` is for `p4de`, inventory `default` has `sim-p5`: try `--inventory sim-p4de`";
    assert!(ran.stderr.contains(reported), "{}", ran.all());
    assert!(!ran.stderr.contains("sim-512"), "{}", ran.all());
}

#[test]
fn a_reservation_that_is_given_is_the_one_that_jobs_run_in() {
    let project = Project::new();
    project.write(
        "inventory/mine.toml",
        "kind = \"simulated\"\ninstance = \"sim-p5\"\nnodes = \"p5-[001-002]\"\n[reach]\nvia = \"slurm\"\nreservation = \"of-the-file\"\n",
    );
    let shown = |more: &[&str]| {
        let args = [&["--suite", "nccl-p5", "--inventory", "mine", "--dry-run"], more].concat();
        project.harness(&args)
    };
    let plain = shown(&[]);
    assert!(plain.stdout.contains("#SBATCH --reservation=of-the-file\n"), "{}", plain.all());
    let given = shown(&["--reservation", "maintenance_1"]);
    assert_eq!(given.code, Some(0), "{}", given.all());
    assert!(given.stdout.contains("#SBATCH --reservation=maintenance_1\n"), "{}", given.all());
    assert!(!given.stdout.contains("of-the-file"), "{}", given.all());
    for (inventory, name, expected) in [
        ("sim-ssh", "x", "only Slurm has reservations"),
        ("mine", "--x y", "not a reservation name: \"--x y\""),
    ] {
        let flag = format!("--reservation={name}");
        let ran = project.harness(&["--suite", "nccl-p5", "--inventory", inventory, "--dry-run", &flag]);
        assert_eq!(ran.code, Some(2), "{}", ran.all());
        assert!(ran.stderr.contains(expected), "{}", ran.all());
    }
}

#[test]
fn a_verb_that_is_none_is_an_error_and_no_filter() {
    let project = Project::new();
    for (args, wanted) in [
        (&["isolat", "--suite", "nccl-p5"][..], "no verb `isolat`; did you mean `isolate`?"),
        (&["recipes", "list"], "no verb `recipes`; did you mean `recipe`?"),
        (&["run", "--suite", "nccl-p5"], "no verb `run`; suites are run without a verb"),
        (&["help", "isolat"], "no verb `isolat`"),
    ] {
        let ran = project.harness(args);
        assert_eq!(ran.code, Some(2), "{args:?}: {}", ran.all());
        assert!(ran.stderr.contains(wanted), "{args:?}: {}", ran.all());
    }
    let help = project.harness(&["help"]);
    assert_eq!((help.code, help.stdout.contains("Verbs")), (Some(0), true), "{}", help.all());
    let of_verb = project.harness(&["help", "clean"]);
    assert_eq!(
        (of_verb.code, of_verb.stdout.contains("Usage: harness clean ")),
        (Some(0), true),
        "{}",
        of_verb.all()
    );
    for flag in ["--version", "-V"] {
        let version = project.harness(&[flag]);
        assert_eq!(version.stdout, format!("harness {}\n", env!("CARGO_PKG_VERSION")), "{}", version.all());
        assert_eq!(version.code, Some(0));
    }
    assert_eq!(project.runs(), 0);
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

#[test]
fn a_report_that_cannot_be_written_hides_no_failure() {
    let project = Project::new();
    let fault = ["--sim-fault", "p5-002:nic-slow=0.4@rdmap113s0"];
    let red = ["--suite", "nccl-p5", "-q", fault[0], fault[1], "--junit", "/proc/nope/x.xml", "nic-pairs"];
    let ran = project.harness(&red);
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    assert!(ran.stderr.contains("/proc/nope/x.xml"), "{}", ran.all());
    let green = ["--suite", "nccl-p5", "-q", "--junit", "/proc/nope/x.xml", "nic-pairs"];
    assert_eq!(project.harness(&green).code, Some(3));
}
