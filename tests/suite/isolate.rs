//! `harness isolate`: from a suite that went badly to the part that makes it, on simulated clusters of 32 nodes: by the
//! evidence at hand, or by few runs. What the strategy is worth by itself is tested beside it.

use crate::project::{Project, Ran};
use std::fs;
use std::path::PathBuf;

/// What is planted, and the beginning of the line that names it; `AT` is another one for each seed.
const FAULTS: [(&str, &str); 6] = [
    ("AT:node-slow=0.6", "HRN-NODE-SLOW reboot AT node: "),
    ("AT:gpu-slow=0.6@3", "HRN-GPU-SLOW reset AT gpu3: "),
    ("AT:nvlink-slow=0.6", "HRN-NVLINK-SLOW reset AT nvlink: "),
    ("AT:nic-slow=0.5@rdmap113s0", "HRN-NIC-SLOW replace AT rdmap113s0: "),
    ("AT:port-slow=0.5", "HRN-PORT-SLOW reboot AT fabric: "),
    ("p5-003:link-slow=0.5@p5-020", "HRN-LINK-SLOW watch a-c link: "),
];

fn isolate(project: &Project, more: &[&str]) -> Ran {
    project.harness(&[&["isolate", "--suite", "nccl-p5", "--inventory", "sim-32"], more].concat())
}

fn culprits(ran: &Ran) -> Vec<&str> {
    ran.stdout.lines().filter(|line| line.starts_with("HRN-")).collect()
}

/// Every fault that the strategy names, with several seeds: the node and the noise are others each time.
fn named_with(seeds: std::ops::Range<u64>) {
    let project = Project::new();
    for (fault, line) in FAULTS {
        for seed in seeds.clone() {
            let node = format!("p5-{:03}", 1 + seed * 11 % 32);
            let (fault, line) = (fault.replace("AT", &node), line.replace("AT", &node));
            let seed = seed.to_string();
            let ran = isolate(&project, &["--no-evidence", "--seed", &seed, "--sim-fault", &fault]);
            assert_eq!(ran.code, Some(1), "{fault} {}", ran.all());
            let named = culprits(&ran);
            assert!(named.len() == 1 && named[0].starts_with(&line), "{fault}: {}", ran.all());
            let last = ran.stdout.lines().last().unwrap_or_default();
            assert!(last.starts_with("culprits 1, runs ") && last.contains("(all pairs: 496)"), "{last}");
            let _ = fs::remove_dir_all(project.path().join("runs"));
        }
    }
}

#[test]
fn each_fault_of_a_simulated_cluster_is_named_with_its_part_and_no_other_node() {
    named_with(1..2);
}

/// The other four of five seeds take minutes: `cargo test -p harness --test suite isolate -- --ignored`.
#[test]
#[ignore = "takes minutes; the first seed of the five is always run"]
fn each_fault_of_a_simulated_cluster_is_named_with_each_of_five_seeds() {
    named_with(2..6);
}

#[test]
fn a_healthy_cluster_has_no_culprit_and_every_output_says_simulated() {
    let project = Project::new();
    let ran = isolate(&project, &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert!(culprits(&ran).is_empty(), "{}", ran.all());
    assert!(ran.stdout.contains("32 nodes, 4 topology groups (SIMULATED)"), "{}", ran.all());
    assert!(ran.stdout.contains("expected: rounds 2 to "), "{}", ran.all());
    let last = ran.stdout.lines().last().unwrap_or_default();
    assert!(last.starts_with("culprits 0, runs 14 (all pairs: 496), node-hours "), "{last}");
}

#[test]
fn a_run_that_names_the_part_by_itself_is_evidence_enough_and_nothing_is_launched() {
    let project = Project::new();
    let fault = ["--sim-fault", "p5-002:nic-dead@rdmap113s0"];
    let red = project.harness(&[&["--suite", "nccl-p5", "-q", "all-all_gather"], &fault[..]].concat());
    assert_eq!(red.code, Some(1), "{}", red.all());
    let ran = project.harness(&[&["isolate", "--suite", "nccl-p5"], &fault[..]].concat());
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    assert!(
        ran.stdout.contains("HRN-NIC-DEAD replace p5-002 rdmap113s0: listed, but moved no byte"),
        "{}",
        ran.all()
    );
    assert!(ran.stdout.ends_with("culprits 1, runs 0, node-hours 0.00 (exit 1)\n"), "{}", ran.all());
    assert_eq!(project.runs(), 1);
}

/// Neither in the summary of a run, nor in the verdict of a case.
#[test]
fn culprits_that_were_written_into_a_stored_run_blame_no_node() {
    let project = Project::new();
    let fault = ["--sim-fault", "p5-002:nic-dead@rdmap113s0"];
    let red = project.harness(&[&["--suite", "nccl-p5", "-q", "all-all_gather"], &fault[..]].concat());
    assert_eq!(red.code, Some(1), "{}", red.all());
    let change = |file: &str| {
        let path = project.latest().join(file);
        let before = fs::read_to_string(&path).expect("there");
        let mut value: serde_json::Value = serde_json::from_str(&before).expect("JSON");
        assert_eq!(value["culprits"][0]["node"], "p5-002", "{before}");
        value["culprits"][0]["node"] = "p5-004".into();
        fs::write(&path, value.to_string()).expect("written");
        (path, before)
    };
    let (path, before) = change("summary.json");
    let ran = project.harness(&[&["isolate", "--suite", "nccl-p5"], &fault[..]].concat());
    assert!(ran.code == Some(2) && ran.stderr.contains("names other parts than its cases"), "{}", ran.all());
    let suspects = project.harness(&["history", "--suspects", "--kind", "simulated"]);
    assert!(!suspects.stdout.contains("p5-004"), "{}", suspects.all());
    fs::write(path, before).expect("put back");
    change("cases/all-all_gather/verdict.json");
    let ran = project.harness(&["-q", "--run", "latest", "--from", "report"]);
    assert!(ran.code == Some(3) && ran.stderr.contains("not what run "), "{}", ran.all());
    assert_eq!(project.runs(), 1);
}

#[test]
fn a_dry_run_reports_what_it_would_cost_and_a_budget_is_kept() {
    let project = Project::new();
    let dry = isolate(&project, &["--dry-run"]);
    assert_eq!((dry.code, project.runs()), (Some(0), 0), "{}", dry.all());
    assert!(dry.stdout.contains("node-hours "), "{}", dry.all());
    let poor = isolate(&project, &["--budget", "0.01"]);
    assert_eq!((poor.code, project.runs()), (Some(3), 0), "{}", poor.all());
    assert!(poor.stdout.contains("inconclusive: the next round needs about "), "{}", poor.all());
    let wrong = isolate(&project, &["--budget", "-1"]);
    assert_eq!(wrong.code, Some(2), "{}", wrong.all());
}

/// Folders of rounds, in their order.
fn rounds(project: &Project) -> Vec<PathBuf> {
    let entries = fs::read_dir(project.path().join("runs")).into_iter().flatten().flatten();
    let mut rounds: Vec<(u64, PathBuf)> = entries
        .map(|entry| entry.path())
        .filter(|path| !path.is_symlink())
        .map(|path| {
            let text = fs::read_to_string(path.join("isolation.json")).expect("a round");
            let record: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            (record["round"].as_u64().expect("a number"), path)
        })
        .collect();
    rounds.sort();
    rounds.into_iter().map(|(_, path)| path).collect()
}

#[test]
fn it_goes_on_where_it_was_ended_and_its_rounds_are_ordinary_runs() {
    let project = Project::new();
    let whole = isolate(&project, &["--sim-fault", "p5-019:gpu-slow=0.6@5"]);
    assert_eq!(culprits(&whole).len(), 1, "{}", whole.all());
    let all = rounds(&project);
    assert!(all.len() > 4, "{}", whole.all());
    let id = |path: &PathBuf| path.file_name().expect("a name").to_string_lossy().into_owned();
    let judged = project.harness(&["--run", &id(&all[0]), "--from", "judge", "-q"]);
    assert_eq!(judged.code, Some(0), "{}", judged.all());
    fs::remove_dir_all(project.path().join("runs").join(fs::read_link(project.latest()).expect("a link")))
        .expect("gone");
    // It was ended after its third round, and in the middle of that: what summed it up was not written yet.
    all[3..].iter().for_each(|folder| fs::remove_dir_all(folder).expect("removed"));
    fs::remove_file(all[2].join("summary.json")).expect("removed");
    let resumed = project.harness(&["isolate", "--resume", &id(&all[0])]);
    assert_eq!(resumed.code, Some(1), "{}", resumed.all());
    assert_eq!(culprits(&resumed), culprits(&whole), "{}", resumed.all());
    let last = |ran: &Ran| ran.stdout.lines().last().unwrap_or_default().to_owned();
    assert_eq!(last(&resumed), last(&whole));
    let none = project.harness(&["isolate", "--resume", "nothing"]);
    assert_eq!(none.code, Some(2), "{}", none.all());
}

#[test]
fn two_faults_are_both_named_and_what_one_may_hide_is_said() {
    let project = Project::new();
    let faults = ["--sim-fault", "p5-004:port-slow=0.5", "--sim-fault", "p5-030:gpu-slow=0.5@1"];
    let ran = isolate(&project, &faults);
    let named = culprits(&ran);
    assert!(
        named.len() == 2
            && named.iter().any(|line| line.starts_with("HRN-PORT-SLOW reboot p5-004 fabric: "))
            && named.iter().any(|line| line.starts_with("HRN-GPU-SLOW reset p5-030 gpu1: ")),
        "{}",
        ran.all()
    );
    assert!(ran.stdout.contains("note: NVLink of that node would be hidden"), "{}", ran.all());
}

#[test]
fn a_node_on_which_every_run_hangs_is_named_and_so_is_a_gpu_that_returns_wrong_data() {
    let project = Project::new();
    for (fault, line) in [
        ("p5-014:hang", "HRN-NODE-BROKEN reboot p5-014 node: "),
        ("p5-014:corrupt@2", "HRN-GPU-WRONG replace p5-014 gpu2: "),
    ] {
        let ran = isolate(&project, &["--no-evidence", "--sim-fault", fault]);
        let named = culprits(&ran);
        assert!(named.len() == 1 && named[0].starts_with(line), "{fault}: {}", ran.all());
    }
}

#[test]
fn no_node_is_drained_unasked_and_where_asked_each_culprit_is_reported() {
    let project = Project::new();
    let fault = ["--sim-fault", "p5-002:nic-dead@rdmap113s0"];
    project.harness(&[&["--suite", "nccl-p5", "-q", "all-all_gather"], &fault[..]].concat());
    let isolate = [&["isolate", "--suite", "nccl-p5"], &fault[..]].concat();
    let unasked = project.harness(&isolate);
    assert!(!unasked.all().contains("drained"), "{}", unasked.all());
    let asked = project.harness(&[&isolate[..], &["--drain", "--yes"]].concat());
    assert_eq!(asked.code, Some(1), "{}", asked.all());
    let line = "drained p5-002: [harness] HRN-NIC-DEAD rdmap113s0: listed, but moved no byte";
    let expected: Vec<&str> =
        asked.stdout.lines().filter(|expected| expected.starts_with("drained ")).collect();
    assert!(
        expected.len() == 1 && expected[0].starts_with(line) && expected[0].ends_with(" (SIMULATED)"),
        "{}",
        asked.all()
    );
    // There is a line of its own for what came of it, and the last line is the sum as ever.
    assert!(asked.stdout.ends_with("culprits 1, runs 0, node-hours 0.00 (exit 1)\n"), "{}", asked.all());
    let watched = isolate_link(&project);
    assert!(
        watched.stdout.contains("\nnot drained a-c: HRN-LINK-SLOW: its severity asks for no drain: watch\n"),
        "{}",
        watched.all()
    );
    for (words, expected) in [
        (&["--inventory", "sim-ssh", "--drain"][..], "--drain: only Slurm and Kubernetes drain"),
        (
            &["--inventory", "sim-ssh", "--resume-drained"][..],
            "--resume-drained: only Slurm and Kubernetes drain",
        ),
        (&["--resume-drained"][..], "--resume-drained: a simulated cluster forgets who was drained"),
        (&["--resume-drained", "--drain"][..], "cannot be used with"),
    ] {
        let refused = project.harness(&[&["isolate", "--suite", "nccl-p5"], words].concat());
        assert_eq!(refused.code, Some(2), "{words:?} {}", refused.all());
        assert!(refused.stderr.contains(expected), "{words:?} {}", refused.all());
    }
    let help = project.harness(&["isolate", "--help"]);
    let words: Vec<&str> = help.stdout.split_whitespace().collect();
    let expected = "an idle node, in a reservation that keeps others off it (in Kubernetes it stays cordoned); it is put back only where that run exits 0";
    assert!(words.join(" ").contains(expected), "{}", help.all());
}

#[test]
fn a_red_suite_that_wants_it_is_isolated_and_its_reports_name_the_culprit_and_the_runs() {
    let project = Project::new();
    project
        .write("suites/pairs.toml", &format!("on_failure = \"isolate\"\nisolate_budget_node_h = 5\n{PAIRS}"));
    let run = ["--suite", "pairs", "--inventory", "sim-32"];
    let dry = project.harness(&[&run[..], &["--dry-run"]].concat());
    assert_eq!(dry.code, Some(0), "{}", dry.all());
    let promise = "if `pairs` is red: isolation by `pairs`: at most ";
    assert!(dry.stdout.contains(promise) && dry.stdout.contains("(its budget: 5.00)"), "{}", dry.all());

    let well = project.harness(&[&run[..], &["-q"]].concat());
    assert_eq!((well.code, project.runs()), (Some(0), 1), "{}", well.all());
    assert!(!well.stdout.contains("isolate"), "{}", well.all());

    let fault = ["--sim-fault", "p5-011:nic-slow=0.4@rdmap113s0"];
    let red = project.harness(&[&run[..], &fault, &["-q"]].concat());
    assert_eq!(red.code, Some(1), "{}", red.all());
    let named = culprits(&red);
    assert!(
        named.len() == 1 && named[0].starts_with("HRN-NIC-SLOW replace p5-011 rdmap113s0: "),
        "{}",
        red.all()
    );
    // After the verdict, and the code stays that of the suite.
    let verdict = red.stdout.find("\nFAILED: ").expect("a verdict");
    assert!(red.stdout.find("\nisolate ").is_some_and(|at| at > verdict), "{}", red.all());
    assert!(red.stdout.ends_with("the run's own exit code stays: 1\n"), "{}", red.all());
    // The newest run is that of the suite, and it reports the others.
    let summary = project.json("summary.json");
    assert_eq!(summary["suites"][0], "pairs");
    let isolated = &summary["isolations"][0];
    assert_eq!((&isolated["suite"], &isolated["end"]), (&"pairs".into(), &"culprits".into()), "{summary}");
    assert_eq!(isolated["culprits"][0], named[0]);
    let rounds = isolated["rounds"].as_array().expect("rounds");
    let first = rounds[0].as_str().expect("an id");
    let record =
        fs::read_to_string(project.path().join("runs").join(first).join("isolation.json")).expect("read");
    let record: serde_json::Value = serde_json::from_str(&record).expect("JSON");
    assert_eq!(record["asked"]["brought_about_by"], summary["run_id"]);
    let junit = fs::read_to_string(project.path().join("runs/latest/junit.xml")).expect("read");
    assert!(junit.contains("name=\"isolation.runs\"") && junit.contains(first), "{junit}");
    assert!(junit.contains("HRN-NIC-SLOW replace p5-011 rdmap113s0"), "{junit}");

    let left = project.harness(&[&run[..], &fault, &["-q", "--on-failure", "nothing"]].concat());
    assert!(left.code == Some(1) && culprits(&left).is_empty(), "{}", left.all());
    // What a program reads from stdout is that run alone.
    let json = ["--format", "json"];
    let read = project.harness(&[&run[..], &fault, &json].concat());
    assert!(read.stdout.lines().all(|line| line.starts_with('{')), "{}", read.stdout);
    assert!(read.stderr.contains("HRN-NIC-SLOW replace p5-011"), "{}", read.all());
}

const PAIRS: &str = "instance = \"p5\"\nabout = \"pairs\"\n[[case]]\nname = \"pairs\"\nplacement = \"pairs\"\n\
    recipes = [\"nccl_tests\"]\ncounters = false\n\
    workload = { kind = \"nccl-tests\", op = \"all_gather\", from = \"1GiB\", to = \"1GiB\", factor = 2, iterations = 20 }\n\
    [[case.assert]]\nmetric = \"nccl.busbw\"\nsize = \"1GiB\"\nat_least = \"300 GB/s\"\n";

#[test]
fn nothing_is_isolated_where_the_machinery_alone_failed_or_the_budget_or_the_nodes_do_not_allow_it() {
    let project = Project::new();
    project.write(
        "suites/pairs.toml",
        &format!("on_failure = \"isolate\"\nisolate_budget_node_h = 0.01\n{PAIRS}"),
    );
    let run = ["--suite", "pairs", "--inventory", "sim-32", "-q"];
    let lost = project.harness(&[&run[..], &["--sim-fault", "p5-011:output-missing"]].concat());
    assert_eq!((lost.code, project.runs()), (Some(3), 1), "{}", lost.all());
    let fault = ["--sim-fault", "p5-003:nic-slow=0.4@rdmap113s0"];
    let poor = project.harness(&[&run[..], &fault].concat());
    assert_eq!(poor.code, Some(1), "{}", poor.all());
    assert!(poor.stdout.contains("inconclusive: the next round needs about "), "{}", poor.all());
    assert!(!poor.stdout.contains("(exit 3)"), "it ends with the run's exit code: {}", poor.all());
    assert_eq!(project.json("summary.json")["isolations"][0]["end"], "could not tell");
    let few = project.harness(&[&run[..], &fault, &["--nodes", "p5-[003-004]"]].concat());
    assert_eq!(few.code, Some(1), "{}", few.all());
    assert!(few.stdout.contains("not isolated: at least 4 nodes are needed"), "{}", few.all());

    // By the flag alone, the run's own estimate bounds it.
    project.write("suites/pairs.toml", PAIRS);
    let asked = project.harness(&[&run[..4], &["--on-failure", "isolate", "--dry-run"]].concat());
    assert!(asked.stdout.contains("(the run's own estimate bounds it: "), "{}", asked.all());
    for (head, expected) in [
        ("on_failure = \"isolat\"", "did you mean `isolate`"),
        ("isolate_budget_node_h = 3", "`isolate_budget_node_h` needs `on_failure"),
        ("on_failure = \"isolate\"\nisolate_budget_node_h = 0", "must be above 0"),
    ] {
        project.write("suites/pairs.toml", &format!("{head}\n{PAIRS}"));
        let wrong = project.harness(&["check"]);
        assert_eq!(wrong.code, Some(2), "{}", wrong.all());
        assert!(wrong.all().contains(expected), "{head}: {}", wrong.all());
    }
    let each = PAIRS.replace("placement = \"pairs\"", "placement = \"each\"");
    project.write("suites/pairs.toml", &format!("on_failure = \"isolate\"\n{each}"));
    let wrong = project.harness(&["check"]);
    assert!(
        wrong.all().contains("needs a case of nccl-tests over several nodes, and there is none"),
        "{}",
        wrong.all()
    );
}

fn isolate_link(project: &Project) -> Ran {
    isolate(project, &["--no-evidence", "--drain", "--yes", "--sim-fault", "p5-003:link-slow=0.5@p5-020"])
}

#[test]
fn a_fleet_that_is_slow_alike_is_said_to_be_and_no_node_is_blamed() {
    let project = Project::new();
    let faults: Vec<String> = (1..=32).map(|node| format!("p5-{node:03}:node-slow=0.7")).collect();
    let mut words = vec!["--no-evidence", "--drain", "--yes"];
    words.extend(faults.iter().flat_map(|fault| ["--sim-fault", fault]));
    let ran = isolate(&project, &words);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    let named = culprits(&ran);
    assert!(
        named.len() == 1 && named[0].starts_with("HRN-FLEET-SLOW configure p5-[001-032] all: "),
        "{}",
        ran.all()
    );
    assert!(named[0].contains("are below the baseline `"), "{}", ran.all());
    assert!(!ran.stdout.contains("drained") && !ran.stdout.contains("scontrol"), "{}", ran.all());
    let last = ran.stdout.lines().last().unwrap_or_default();
    assert!(last.starts_with("culprits 0, "), "{last}");
    // Without a baseline it cannot be determined.
    project.write(
        "baselines/sim-p5.toml",
        "instance = \"sim-p5\"
simulated = true
",
    );
    let _ = fs::remove_dir_all(project.path().join("runs"));
    let ran = isolate(&project, &words);
    assert!(culprits(&ran).is_empty(), "{}", ran.all());
    assert!(
        ran.stdout.contains("note: inconclusive whether all nodes are equally slow: there is no baseline"),
        "{}",
        ran.all()
    );
}

#[test]
fn a_node_whose_log_reports_another_way_than_it_should_take_is_named_by_that() {
    let project = Project::new();
    let fault = ["--sim-fault", "p5-002:no-gdrdma"];
    let red = project.harness(&[&["--suite", "nccl-log-p5", "-q"], &fault[..]].concat());
    assert_eq!(red.code, Some(1), "{}", red.all());
    let ran = project.harness(&[&["isolate", "--suite", "nccl-log-p5"], &fault[..]].concat());
    let named = culprits(&ran);
    assert!(
        named.len() == 1 && named[0].starts_with("HRN-NET-DOWNGRADED configure p5-002 node: "),
        "{}",
        ran.all()
    );
    assert!(ran.stdout.contains("\nculprits 1, runs 0, "), "{}", ran.all());
}

#[test]
fn evidence_that_does_not_explain_the_loss_does_not_end_the_search() {
    let project = Project::new();
    // A dead NIC costs a little, the other node half: one run of all cannot determine whom to blame for that.
    let dead = ["--sim-fault", "p5-002:nic-dead@rdmap113s0"];
    let two = [&dead[..], &["--sim-fault", "p5-003:node-slow=0.5"]].concat();
    let red = project.harness(&[&["--suite", "nccl-p5", "-q", "all-all_gather"], &two[..]].concat());
    assert_eq!(red.code, Some(1), "{}", red.all());
    let ran = project.harness(&[&["isolate", "--suite", "nccl-p5"], &two[..]].concat());
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    assert!(ran.stdout.contains("\nHRN-NIC-DEAD replace p5-002 rdmap113s0: "), "{}", ran.all());
    assert!(ran.stdout.contains("nodes left to compare with each other: "), "{}", ran.all());

    // Among more nodes the search goes on without the one that is known.
    let two = [&dead[..], &["--sim-fault", "p5-019:node-slow=0.5"]].concat();
    let of_32 = ["--suite", "nccl-p5", "--inventory", "sim-32", "-q", "pair-all_gather"];
    let red = project.harness(&[&of_32[..], &two[..]].concat());
    assert_eq!(red.code, Some(1), "{}", red.all());
    let ran = isolate(&project, &two);
    let named = culprits(&ran);
    assert!(
        named.len() == 2
            && named[0].starts_with("HRN-NIC-DEAD replace p5-002 rdmap113s0: ")
            && named[1].starts_with("HRN-NODE-SLOW reboot p5-019 node: "),
        "{}",
        ran.all()
    );
    assert!(ran.stdout.contains("names: 1; they do not explain the whole failure"), "{}", ran.all());
}

#[test]
fn what_cannot_be_isolated_is_refused_with_the_reason() {
    let project = Project::new();
    for (more, expected) in [
        (&["--nodes", "p5-[001-003]"][..], "at least 4 nodes are needed"),
        (&["--case", "gpu-each"][..], "no case of nccl-tests over several nodes is named `gpu-each`"),
        (&["--sim-fault", "p5-001:link-slow=0.5@p5-002"][..], "different `[groups]`"),
        (&["--run", "nothing"][..], "--run: "),
    ] {
        let ran = isolate(&project, more);
        assert_eq!(ran.code, Some(2), "{}", ran.all());
        assert!(ran.stderr.contains(expected), "{more:?} {}", ran.all());
    }
}

#[test]
fn every_code_has_a_page_with_cause_next_action_and_the_line_for_slurm() {
    let project = Project::new();
    let all = project.harness(&["explain"]);
    assert_eq!((all.code, all.stdout.lines().count()), (Some(0), 35), "{}", all.all());
    for line in all.stdout.lines() {
        let code = line.split(' ').next().unwrap_or_default();
        let page = project.harness(&["explain", code]);
        let headings = ["\nseverity\n", "\ncause\n", "\nnext\n", "\nSlurm\n"];
        assert!(headings.iter().all(|heading| page.stdout.contains(heading)), "{}", page.all());
        let drains = page
            .stdout
            .contains(&format!("scontrol update nodename=NODE state=drain reason=\"[harness] {code} PART\""));
        let asks = ["replace", "reboot", "reset"]
            .iter()
            .any(|word| page.stdout.contains(&format!("\nseverity\n  {word}\n")));
        assert_eq!(drains, asks, "{}", page.all());
    }
    let unknown = project.harness(&["explain", "HRN-NIC-SLOWW"]);
    assert_eq!(unknown.code, Some(2), "{}", unknown.all());
    assert!(unknown.stderr.contains("did you mean `HRN-NIC-SLOW`"), "{}", unknown.all());
}
