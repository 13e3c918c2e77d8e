//! `harness isolate` over a real Slurm whose programs are stand-ins: one fault among eight nodes, its part, and nothing left;
//! and nodes that are drained for what was found, and come back when they are well.

use super::bench::Bench;
use crate::bed::StandIns;
use crate::fact::Fact;
use crate::project::{Project, ran};
use crate::slurm_cluster::Cluster;
use std::collections::BTreeSet;
use std::fs;

pub(super) const FACTS: &[Fact] = &[
    (
        "one_slow_nic_among_eight_nodes_is_named_and_no_other",
        one_slow_nic_among_eight_nodes_is_named_and_no_other,
    ),
    (
        "a_culprit_is_drained_only_where_asked_and_comes_back_only_after_a_run_that_passes",
        a_culprit_is_drained_only_where_asked_and_comes_back_only_after_a_run_that_passes,
    ),
    ("a_hang_that_all_nodes_share_drains_none", a_hang_that_all_nodes_share_drains_none),
    ("no_more_nodes_are_drained_than_the_limit_whatever_earlier_calls_did", the_limit),
];

pub(super) fn inventory(project: &Project, nodes: &str, programs: &StandIns, cluster: &Cluster) {
    let slurm = cluster.first_on_path();
    let (shared, state) = (project.path().join("shared"), programs.state());
    let (shared, state) = (shared.display(), state.display());
    project.write(
        "inventory/live.toml",
        &format!(
            "kind = \"real\"\ninstance = \"p5\"\nnodes = \"{nodes}\"\n[reach]\nvia = \"slurm\"\nmpi = \"pmi2\"\n\
             [paths]\nshared = \"{shared}\"\nnccl_tests = \"{state}/bin\"\ncounters = \"{state}/hosts/{{host}}\"\n\
             [environment]\nPATH = \"{state}/bin:{slurm}/usr/local/bin:/usr/bin:/bin\"\n"
        ),
    );
}

fn one_slow_nic_among_eight_nodes_is_named_and_no_other() {
    let project = Project::new();
    let fault = "seed = 7\nfaults = [\"n6:nic-slow=0.5@rdmap113s0\"]\nfloor_s = 0.8\n";
    let programs = StandIns::new("n[1-8]", fault);
    let cluster = Cluster::start(8);
    inventory(&project, "n[1-8]", &programs, &cluster);
    let mut command = project.command(&["isolate", "--suite", "nccl-p5", "--inventory", "live"]);
    command.envs(cluster.variables());
    let ran = ran(command.output().expect("the harness starts"));
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    let named: Vec<&str> = ran.stdout.lines().filter(|line| line.starts_with("HRN-")).collect();
    let right = named.len() == 1 && named[0].starts_with("HRN-NIC-SLOW replace n6 rdmap113s0: ");
    assert!(right, "{}", ran.all());
    // Its programs only simulated, and that is reported though the cluster is a real one.
    assert!(ran.stdout.contains("SIMULATED"), "{}", ran.all());
    let last = ran.stdout.lines().last().unwrap_or_default();
    assert!(last.starts_with("culprits 1, runs ") && last.contains("(all pairs: 28)"), "{last}");
    cluster.assert_nothing_is_left();
}

const SMALL: &str = "instance = \"p5\"\nabout = \"every NIC, in one short job\"\n\
    [[case]]\nname = \"all\"\nplacement = \"all\"\nrecipes = [\"nccl_tests\", \"efa_traffic\"]\nlimit_s = 120\n\
    workload = { kind = \"nccl-tests\", op = \"all_gather\", from = \"1GiB\", to = \"1GiB\", factor = 2, iterations = 20 }\n\
    [[case.assert]]\nmetric = \"nccl.wrong\"\nequals = 0\n\
    [[case.assert]]\nmetric = \"nic.present\"\nper = \"nic\"\nequals = 1\n\
    [[case.assert]]\nmetric = \"nic.share\"\nper = \"nic\"\nat_least = 0.9\n";

fn a_culprit_is_drained_only_where_asked_and_comes_back_only_after_a_run_that_passes() {
    let project = Project::new();
    let faults =
        "seed = 7\nfloor_s = 0.8\nfaults = [\"n2:nic-dead@rdmap113s0\", \"n3:nic-dead@rdmap79s0\"]\n";
    let programs = StandIns::new("n[1-4]", faults);
    let cluster = Cluster::start(4);
    inventory(&project, "n[1-4]", &programs, &cluster);
    project.write("suites/small.toml", SMALL);
    let harness = |words: &[&str]| {
        let mut command = project.command(words);
        command.envs(cluster.variables());
        ran(command.output().expect("the harness starts"))
    };
    let said = |node: &str| {
        let line = cluster.ask(&["scontrol", "--oneliner", "show", "node", node]);
        let state = line.split("State=").nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or_default();
        let reason = line.split_once(" Reason=").map(|(_, reason)| reason).unwrap_or_default();
        format!("{state} {reason}").trim().to_owned()
    };
    let of_live = ["--suite", "small", "--inventory", "live"];
    let red = harness(&[&of_live[..], &["--no-probe", "-q"]].concat());
    assert_eq!(red.code, Some(1), "{}", red.all());
    cluster.ask(&["scontrol", "update", "NodeName=n2", "State=DRAIN", "Reason=a fan is loud"]);

    let isolate = [&["isolate"], &of_live[..]].concat();
    let named = harness(&isolate);
    assert_eq!((named.code, said("n3")), (Some(1), "IDLE".to_owned()), "{}", named.all());

    // There is no terminal to agree at.
    let unanswered = harness(&[&isolate[..], &["--drain"]].concat());
    assert!(unanswered.stdout.contains("\nwould drain n3: [harness] HRN-NIC-DEAD"), "{}", unanswered.all());
    assert_eq!((unanswered.code, said("n3")), (Some(1), "IDLE".to_owned()), "{}", unanswered.all());

    let drained = harness(&[&isolate[..], &["--drain", "--yes"]].concat());
    assert_eq!(drained.code, Some(1), "{}", drained.all());
    let reason = said("n3");
    assert!(
        reason.starts_with("IDLE+DRAIN [harness] HRN-NIC-DEAD rdmap79s0: listed, but moved no byte"),
        "{reason}"
    );
    assert!(drained.stdout.contains("drained n3: [harness] HRN-NIC-DEAD rdmap79s0: "), "{}", drained.all());
    let others = "not drained n2, its reason in Slurm is not the harness's: IDLE+DRAIN: a fan is loud [root@";
    assert!(drained.stdout.contains(others), "{}", drained.all());
    assert!(drained.stdout.contains("\nculprits 2, runs 0, "), "{}", drained.all());
    assert!(said("n2").starts_with("IDLE+DRAIN a fan is loud [root@"), "{}", said("n2"));
    assert_eq!((said("n1"), said("n4")), ("IDLE".to_owned(), "IDLE".to_owned()));

    // Nothing was mended: it runs, is bad, and is where it was.
    let again = [&isolate[..], &["--resume-drained"]].concat();
    let bad = harness(&again);
    assert!(matches!(bad.code, Some(1 | 3)), "{}", bad.all());
    assert!(bad.stdout.contains("n3 stays drained, its re-check ended with exit code "), "{}", bad.all());
    let without_time = |text: &str| text.rsplit_once(" [").map(|(reason, _)| reason.to_owned());
    assert_eq!(without_time(&said("n3")), without_time(&reason), "{}", bad.all());
    let reservations = || cluster.ask(&["scontrol", "--oneliner", "show", "reservation"]);
    assert_eq!(reservations(), "No reservations in the system");

    fs::write(
        programs.state().join("cluster.toml"),
        fs::read_to_string(programs.state().join("cluster.toml"))
            .expect("read")
            .replace(faults, "seed = 7\nfloor_s = 0.8\n"),
    )
    .expect("written");
    let well = harness(&again);
    assert_eq!(well.code, Some(0), "{}", well.all());
    assert!(
        well.stdout.contains("resumed n3: its re-check has passed, it was drained for: [harness]"),
        "{}",
        well.all()
    );
    assert!(
        well.stdout.contains("n2 stays drained, its reason in Slurm is not the harness's: "),
        "{}",
        well.all()
    );
    assert_eq!(said("n3"), "IDLE");
    assert!(said("n2").starts_with("IDLE+DRAIN a fan is loud [root@"), "{}", said("n2"));
    assert_eq!(reservations(), "No reservations in the system");
    cluster.assert_nothing_is_left();
}

/// A program that sleeps everywhere stands for a wrong path, a slow licence server, or a limit that is too short.
fn a_hang_that_all_nodes_share_drains_none() {
    let case = "[[case]]\nname = \"each\"\nplacement = \"each\"\nrecipes = [\"command\"]\nlimit_s = 5\n\
        workload = { kind = \"command\", program = \"BENCH/bin/sleeps\" }\n\
        [[case.assert]]\nmetric = \"command.exit_code\"\nequals = 0\n";
    let bench = Bench::new(case);
    bench.program("sleeps", "exec sleep 1000");
    let of_live = ["--suite", "live", "--inventory", "live"];
    let harness = |words: &[&str]| ran(bench.command(words).output().expect("the harness starts"));
    let hung = harness(&[&of_live[..], &["--no-probe", "-q"]].concat());
    assert_eq!((hung.code, hung.blamed()), (Some(3), Vec::new()), "{}", hung.all());
    let isolate = [&["isolate"], &of_live[..], &["--drain", "--yes", "--drain-at-most", "4"]].concat();
    let drained = harness(&isolate);
    assert_eq!(drained.code, Some(3), "{}", drained.all());
    assert!(!drained.stdout.contains("drained"), "{}", drained.all());
    let states = bench.cluster.ask(&["sinfo", "--noheader", "--Node", "--format=%T"]);
    assert!(states.lines().all(|state| state == "idle"), "{states}");
    bench.cluster.assert_nothing_is_left();
}

fn the_limit() {
    let project = Project::new();
    let faults =
        "seed = 7\nfloor_s = 0.8\nfaults = [\"n2:nic-dead@rdmap113s0\", \"n3:nic-dead@rdmap79s0\"]\n";
    let programs = StandIns::new("n[1-4]", faults);
    let cluster = Cluster::start(4);
    inventory(&project, "n[1-4]", &programs, &cluster);
    project.write("suites/small.toml", SMALL);
    let harness = |words: &[&str]| {
        let mut command = project.command(words);
        command.envs(cluster.variables());
        ran(command.output().expect("the harness starts"))
    };
    let drained = || {
        let reported = cluster.ask(&["sinfo", "--noheader", "--Node", "--states=drain", "--format=%n"]);
        // A node is listed once for each of its partitions.
        reported.lines().map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(" ")
    };
    let of_live = ["--suite", "small", "--inventory", "live"];
    let red = harness(&[&of_live[..], &["--no-probe", "-q"]].concat());
    assert_eq!(red.code, Some(1), "{}", red.all());
    let isolate = [&["isolate"], &of_live[..], &["--drain", "--yes"]].concat();
    let both = harness(&isolate);
    let reported =
        "nothing is drained: 2 to drain and 0 drained by the harness before, limit 1; `--drain-at-most 2`";
    assert!(both.stdout.contains(reported), "{}", both.all());
    assert_eq!(drained(), "");
    // What an earlier call drained counts: a second call is no way past the limit.
    cluster.ask(&[
        "scontrol",
        "update",
        "NodeName=n2",
        "State=DRAIN",
        "Reason=[harness] HRN-NIC-DEAD x, run 1",
    ]);
    let second = harness(&isolate);
    let reported =
        "nothing is drained: 1 to drain and 1 drained by the harness before, limit 1; `--drain-at-most 2`";
    assert!(second.stdout.contains(reported), "{}", second.all());
    assert_eq!(drained(), "n2");
    let allowed = harness(&[&isolate[..], &["--drain-at-most", "2"]].concat());
    assert!(allowed.stdout.contains("\ndrained n3: "), "{}", allowed.all());
    assert_eq!(drained(), "n2 n3");
    cluster.assert_nothing_is_left();
}
