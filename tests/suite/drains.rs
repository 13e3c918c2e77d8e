//! `isolate --drain` takes no node out of the queue by accident: somebody agrees, there is a limit, and a hang that all
//! nodes share drains none.

use crate::project::{Project, Ran};
use std::fs::File;
use std::io::{Read, Write};
use std::process::Stdio;

const DEAD: [&str; 2] = ["p5-002:nic-dead@rdmap113s0", "p5-017:nic-dead@rdmap79s0"];

/// A red run of 32 nodes with these faults, after which the evidence names them.
fn red(faults: &[&str]) -> (Project, Vec<String>) {
    let project = Project::new();
    let faults: Vec<String> =
        faults.iter().flat_map(|fault| ["--sim-fault".to_owned(), (*fault).to_owned()]).collect();
    let of = ["--suite", "nccl-p5", "--inventory", "sim-32"].map(str::to_owned);
    let run = [&of[..], &["-q".to_owned(), "pair-all_gather".to_owned()], &faults[..]].concat();
    let ran = project.harness(&run.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    (project, [&["isolate".to_owned()], &of[..], &faults[..]].concat())
}

fn isolate(project: &Project, words: &[String], more: &[&str]) -> Ran {
    let words: Vec<&str> = words.iter().map(String::as_str).chain(more.iter().copied()).collect();
    project.harness(&words)
}

fn drained(ran: &Ran) -> usize {
    ran.stdout.lines().filter(|line| line.starts_with("drained ")).count()
}

#[test]
fn without_a_terminal_nothing_is_drained_unless_yes_is_given() {
    let (project, words) = red(&DEAD[..1]);
    let ran = isolate(&project, &words, &["--drain"]);
    assert_eq!((ran.code, drained(&ran)), (Some(1), 0), "{}", ran.all());
    assert!(
        ran.stdout.contains("\nwould drain p5-002: [harness] HRN-NIC-DEAD rdmap113s0: "),
        "{}",
        ran.all()
    );
    let line = format!("harness {} --drain --yes", words.join(" "));
    assert!(ran.stdout.contains(&line), "{line}: {}", ran.all());
    let ran = isolate(&project, &words, &["--drain", "--yes"]);
    assert_eq!((ran.code, drained(&ran)), (Some(1), 1), "{}", ran.all());
    // Where the rounds have found it, the line that drains it runs none of them again.
    let slow = ["--no-evidence", "--sim-fault", "p5-003:port-slow=0.5", "--drain"];
    let of = ["isolate", "--suite", "nccl-p5", "--inventory", "sim-32"].map(str::to_owned);
    let ran = isolate(&project, &of, &slow);
    assert_eq!((ran.code, drained(&ran)), (Some(1), 0), "{}", ran.all());
    let line = ran.stdout.lines().find_map(|line| line.split_once(": `harness ")).map(|(_, line)| line);
    let line = line.and_then(|line| line.strip_suffix('`')).expect("a line to run");
    assert!(line.starts_with("isolate --resume "), "{line}");
    let runs = project.runs();
    let ran = project.harness(&line.split(' ').collect::<Vec<_>>());
    assert_eq!((ran.code, drained(&ran), project.runs()), (Some(1), 1, runs), "{}", ran.all());
}

#[test]
fn more_nodes_than_the_limit_are_drained_only_where_their_number_is_given() {
    let (project, words) = red(&DEAD);
    let ran = isolate(&project, &words, &["--drain", "--yes"]);
    assert_eq!((ran.code, drained(&ran)), (Some(1), 0), "{}", ran.all());
    let reported = "nothing is drained: 2 to drain and 0 drained by the harness before, limit 1; `--drain-at-most 2` allows it";
    assert!(ran.stdout.contains(reported), "{}", ran.all());
    let ran = isolate(&project, &words, &["--drain", "--yes", "--drain-at-most", "2"]);
    assert_eq!((ran.code, drained(&ran)), (Some(1), 2), "{}", ran.all());
}

/// A suite of these cases, each of which runs a command on each node.
fn each_node(cases: &[&str]) -> String {
    let case = |name: &&str| {
        format!(
            "[[case]]\nname = \"{name}\"\nplacement = \"each\"\nlimit_s = 10\nrecipes = [\"command\"]\n\
             workload = {{ kind = \"command\", program = \"true\" }}\n\
             [[case.assert]]\nmetric = \"command.exit_code\"\nequals = 0\n"
        )
    };
    format!("instance = \"sim-p5\"\nabout = \"each\"\n{}", cases.iter().map(case).collect::<String>())
}

#[test]
fn a_node_on_which_one_job_hung_is_not_drained_and_one_with_two_is() {
    let not_drained =
        "not drained p5-002: HRN-NODE-BROKEN: one job that hit its time limit is no proof; rerun it\n";
    for (cases, drains) in [(&["each"][..], 0), (&["each", "again"][..], 1)] {
        let project = Project::new();
        project.write("suites/each.toml", &each_node(cases));
        let of = ["--suite", "each", "--sim-fault", "p5-002:hang"];
        // Otherwise no second job comes to the node.
        let ran = project.harness(&[&of[..], &["-q", "--keep-bad-nodes"]].concat());
        assert_eq!(
            (ran.code, ran.blamed()),
            (Some(3), vec!["culprit p5-002 node".to_owned()]),
            "{}",
            ran.all()
        );
        let ran = project.harness(&[&["isolate"][..], &of, &["--drain", "--yes"]].concat());
        assert_eq!((ran.code, drained(&ran)), (Some(1), drains), "{cases:?} {}", ran.all());
        assert_eq!(ran.stdout.contains(not_drained), drains == 0, "{cases:?} {}", ran.all());
    }
}

/// Whose fault a limit that is too short, or a program that sleeps, never is.
#[test]
fn a_hang_that_all_nodes_share_drains_none() {
    for suite in [("nccl-p5", None), ("each", Some(each_node(&["each"])))] {
        let project = Project::new();
        if let Some(text) = suite.1 {
            project.write("suites/each.toml", &text);
        }
        let mut words: Vec<String> = ["--suite", suite.0].map(str::to_owned).to_vec();
        for node in 1..=4 {
            words.extend(["--sim-fault".to_owned(), format!("p5-00{node}:hang")]);
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let ran = project.harness(&[&words[..], &["-q"]].concat());
        assert_eq!((ran.code, ran.blamed()), (Some(3), Vec::new()), "{}", ran.all());
        let drain = ["--drain", "--yes", "--no-evidence"];
        for more in [&drain[..2], &drain] {
            // There is nothing to run on sets of nodes in a suite of commands.
            if suite.0 == "each" && more.len() > 2 {
                continue;
            }
            let ran = project.harness(&[&["isolate"], &words[..], more].concat());
            assert_eq!((ran.code, drained(&ran)), (Some(3), 0), "{more:?} {}", ran.all());
            assert!(!ran.stdout.contains("HRN-NODE"), "{more:?} {}", ran.all());
        }
    }
}

/// The harness at a terminal of its own, with this line typed.
fn typed(project: &Project, words: &[&str], line: &str) -> (String, Option<i32>) {
    let pty = nix::pty::openpty(None, None).expect("a terminal");
    let slave = || Stdio::from(pty.slave.try_clone().expect("cloned"));
    let mut command = project.command(words);
    let mut child = command.stdin(slave()).stdout(slave()).stderr(slave()).spawn().expect("it starts");
    drop((pty.slave, command));
    let mut terminal = File::from(pty.master);
    terminal.write_all(line.as_bytes()).expect("typed");
    let (mut shown, mut some) = (Vec::new(), [0; 4096]);
    while let Ok(n @ 1..) = terminal.read(&mut some) {
        shown.extend(some.iter().take(n));
    }
    (String::from_utf8_lossy(&shown).into_owned(), child.wait().expect("it ends").code())
}

#[test]
fn at_a_terminal_it_asks_and_only_yes_drains() {
    let (project, words) = red(&DEAD[..1]);
    let words: Vec<&str> = words.iter().map(String::as_str).chain(["--drain"]).collect();
    for (line, is_drained) in [("y\n", true), ("n\n", false), ("\n", false), ("yes, all\n", false)] {
        let (shown, code) = typed(&project, &words, line);
        assert_eq!(code, Some(1), "{shown}");
        assert!(
            shown.contains("would drain p5-002: ") && shown.contains("drain this node? [y/N]"),
            "{shown}"
        );
        assert_eq!(shown.contains("drained p5-002: "), is_drained, "{line:?} {shown}");
    }
}

#[test]
fn a_node_that_came_under_an_old_name_is_not_drained_for_what_the_old_one_did() {
    let inventory = |world: &str| {
        format!(
            "kind = \"simulated\"\ninstance = \"sim-p5\"\nnodes = \"p5-[001-006]\"\n[reach]\nvia = \"slurm\"\n\
             [world]\n{world}\n"
        )
    };
    let suite = ["--suite", "nccl-p5", "--inventory", "mine", "--probe"];
    for (world, drains) in [
        ("", 1),
        ("replaced = [\"p5-001\"]", 1),
        ("replaced = [\"p5-002\"]", 0),
        // A node that gives no answer may be broken just so.
        ("replaced = [\"p5-002\"]\nsbatch_refuses = \"no\"", 1),
    ] {
        let project = Project::new();
        project.write("inventory/mine.toml", &inventory(""));
        let fault = ["-q", "nic-pairs", "--sim-fault", "p5-002:nic-slow=0.4@rdmap113s0"];
        let ran = project.harness(&[&suite[..], &fault].concat());
        assert_eq!(ran.blamed(), ["culprit p5-002 rdmap113s0"], "{}", ran.all());
        project.write("inventory/mine.toml", &inventory(world));
        let ran = project.harness(&[&["isolate"][..], &suite, &["--drain", "--yes"]].concat());
        assert_eq!(drained(&ran), drains, "{world}: {}", ran.all());
        let line = " names p5-002 rdmap113s0, and its node has other hardware now\n";
        assert_eq!(ran.stderr.contains(line), drains == 0, "{}", ran.all());
    }
}
