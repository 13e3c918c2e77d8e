//! Pods of a real Kubernetes beside simulated and real ssh: by the same model the same verdicts and the same culprits, for
//! the suite that ships, for twelve faults, for node tools, for a training, and for what `isolate` and `accept` make of runs.

use super::trainings::first_case;
use super::ways::{SHORT_S, SuiteRequest, Way, beside_pods, by_pods, pods, simulated_ssh};
use super::{assert_same_verdicts, parts};
use crate::fact::Fact;
use crate::project::root;
use crate::table::{self, Row};
use std::fs;

pub(super) const FACTS: &[Fact] = &[
    ("nccl_p5_has_the_verdicts_of_simulated_ssh", healthy),
    ("six_faults_of_nodes_have_the_verdicts_and_culprits_of_ssh", nodes),
    ("six_faults_between_nodes_have_the_verdicts_and_culprits_of_ssh", fabric),
    ("node_tools_and_collectives_by_pytorch_have_the_verdicts_of_simulated_ssh", tools),
    ("nemo_p5_with_fewer_steps_passes_in_pods", nemo),
    ("isolate_names_the_slow_nic_of_one_of_four_pods", isolated),
    ("accept_rejects_the_one_of_two_new_nodes_with_a_slow_nic", accepted),
];

fn healthy() {
    compare_healthy(&SuiteRequest { suite: "nccl-p5", faults: &[], text: "", floor_s: SHORT_S });
}

fn compare_healthy(asked: &SuiteRequest<'_>) {
    let ways = [simulated_ssh(asked), by_pods(asked)];
    for way in &ways {
        let ended = (way.ran.code, way.ran.blamed());
        assert_eq!(ended, (Some(0), Vec::new()), "{}: {}", way.name, way.ran.all());
        way.assert_marked();
    }
    assert_same_verdicts(&ways);
}

/// A fault, the cases that it is looked for in, and its line of the table.
type FaultRow = (&'static str, &'static [&'static str], &'static str);

/// Each fault by itself.
fn compare(faults: &[FaultRow]) {
    for (fault, cases, line) in faults {
        let asked = SuiteRequest { suite: "parts", faults: &[*fault], text: &parts(cases), floor_s: SHORT_S };
        let ways = beside_pods(&asked);
        let row = |way: &Way| Row::seen(&way.project, &way.ran, "");
        let [first, others @ ..] = ways.as_slice() else { panic!("nothing to compare") };
        assert_ne!(first.ran.code, Some(0), "{fault} shows in none of {cases:?}");
        for way in others {
            assert_eq!(way.ran.code, first.ran.code, "{fault}: {}: {}", way.name, way.ran.all());
            way.assert_marked();
            table::note(line, row(way), &row(first), &way.ran);
        }
        assert_same_verdicts(&ways);
    }
}

const GPUS: &[&str] = &["gpu-each"];
const NODE: &[&str] = &["node-{op}"];
const PAIRS: &[&str] = &["pair-{op}"];

fn nodes() {
    compare(&[
        ("n3:gpu-slow=0.6@5", GPUS, "a slow GPU of n3, in pods as over ssh"),
        ("n2:corrupt@3", GPUS, "a GPU of n2 that computes wrong data, in pods as over ssh"),
        ("n1:nvlink-slow=0.5", NODE, "slow NVLinks of n1, in pods as over ssh"),
        ("n4:node-slow=0.7", NODE, "a slow node n4, in pods as over ssh"),
        ("n2:rank-dies", NODE, "a rank of n2 that dies, in pods as over ssh"),
    ]);
    unlisted();
}

/// Real nodes are probed before anything runs, and simulated ones are not: the node is left out, over ssh and in pods.
fn unlisted() {
    let text = parts(PAIRS);
    let faults = &["n1:nic-missing@rdmap80s0"];
    let asked = SuiteRequest { suite: "parts", faults, text: &text, floor_s: SHORT_S };
    let wanted = Row::new("9 error left-out", "culprit n1 node", "24 pass");
    for way in beside_pods(&asked).iter().skip(1) {
        let seen = Row::seen(&way.project, &way.ran, "");
        table::note("a NIC of n1 that is not listed, in pods as over ssh", seen, &wanted, &way.ran);
        assert_eq!(way.ran.code, Some(3), "{}: {}", way.name, way.ran.all());
        way.assert_marked();
    }
}

fn fabric() {
    compare(&[
        ("n1:port-slow=0.5", PAIRS, "all NICs of n1 slow, in pods as over ssh"),
        ("n3:no-gdrdma", PAIRS, "NICs of n3 that do not reach GPU memory, in pods as over ssh"),
        ("n3:node-slow=0.7", PAIRS, "a slow node n3 between nodes, in pods as over ssh"),
        ("n1:disk-full", PAIRS, "a full disk of n1, in pods as over ssh"),
        ("n2:nic-dead@rdmap80s0", &["all-all_gather"], "a dead NIC of n2, in pods as over ssh"),
        ("n4:nic-slow=0.4@rdmap113s0", &["nic-pairs"], "a slow NIC of n4, in pods as over ssh"),
    ]);
}

/// Those that read the state of GPUs need an nvidia-smi that lives as long as their load.
const TOOLS: &[&str] = &["diagnosis", "copies", "memory", "disk"];

fn tools() {
    let mut text = "instance = \"p5\"\nabout = \"each node, and PyTorch\"\n".to_owned();
    for (suite, kept) in [("node-p5", TOOLS), ("torch-p5", &["node-{op}", "pair-{op}"][..])] {
        text += &super::cases_of(suite, kept);
    }
    let mut asked = SuiteRequest { suite: "tools", faults: &[], text: &text, floor_s: SHORT_S };
    compare_healthy(&asked);
    asked.faults = &["n2:pcie-slow=0.5@3", "n4:memory-slow=0.5"];
    let ways = [simulated_ssh(&asked), by_pods(&asked)];
    for way in &ways {
        let wanted = vec!["culprit n2 gpu3".to_owned(), "culprit n4 memory".to_owned()];
        let mut blamed = way.ran.blamed();
        blamed.sort();
        assert_eq!((way.ran.code, blamed), (Some(1), wanted), "{}: {}", way.name, way.ran.all());
    }
    assert_same_verdicts(&ways);
}

/// All of it is lived through, as over Slurm.
fn nemo() {
    let text = first_case("nemo-p5", &[("steps = 40", "steps = 12"), ("20..25", "6..11")]);
    let way = by_pods(&SuiteRequest { suite: "nemo-p5", faults: &[], text: &text, floor_s: 600.0 });
    assert_eq!(way.ran.code, Some(0), "{}", way.ran.all());
    way.assert_marked();
}

const SLOW_NIC: &[&str] = &["n4:nic-slow=0.5@rdmap113s0"];
const FLOWS: &str = "instance = \"p5\"\nabout = \"each node, and flows between pairs\"\n\
    [[case]]\nname = \"node\"\nplacement = \"each\"\nrecipes = [\"nccl_tests\"]\n\
    workload = { kind = \"nccl-tests\", op = \"all_reduce\", from = \"1GiB\", to = \"1GiB\", factor = 2 }\n\
    [[case.assert]]\nmetric = \"nccl.wrong\"\nequals = 0\n\
    [[case]]\nname = \"nic-pairs\"\nplacement = \"pairs\"\nrecipes = [\"nic_flows\"]\n\
    workload = { kind = \"nic-pairs\", seconds = 5 }\n\
    [[case.assert]]\nmetric = \"nic.rate\"\nper = \"nic\"\nat_least = \"11 GB/s\"\n\
    [[case]]\nname = \"all\"\nplacement = \"all\"\nrecipes = [\"nccl_tests\"]\n\
    workload = { kind = \"nccl-tests\", op = \"all_gather\", from = \"1GiB\", to = \"1GiB\", factor = 2 }\n\
    [[case.assert]]\nmetric = \"nccl.wrong\"\nequals = 0\n";

fn isolated() {
    let asked = SuiteRequest { suite: "flows", faults: SLOW_NIC, text: FLOWS, floor_s: SHORT_S };
    let (bench, _programs) = pods(&asked);
    let ran = bench.harness(&["isolate", "--suite", "flows", "--inventory", "way"]);
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    let named: Vec<&str> = ran.stdout.lines().filter(|line| line.starts_with("HRN-")).collect();
    let is_right = named.len() == 1 && named[0].starts_with("HRN-NIC-SLOW replace n4 rdmap113s0: ");
    assert!(is_right, "{}", ran.all());
    bench.assert_nothing_is_left();
}

/// The suite that ships for it, without its day of load and what it asks of the host, which this machine has not.
fn accepted() {
    let path = root().join("suites/acceptance-p5.toml");
    let text = fs::read_to_string(&path).expect("a suite");
    let (head, bounds) = text.split_once("\n[probe]").expect("bounds of the host");
    let text = format!("{head}\n{}", &bounds[bounds.find("\n[[").expect("cases")..]);
    let asked = SuiteRequest { suite: "acceptance-p5", faults: SLOW_NIC, text: &text, floor_s: SHORT_S };
    let (bench, _programs) = pods(&asked);
    let words =
        ["accept", "--suite", "acceptance-p5", "--inventory", "way", "--soak", "0", "--output", "out"];
    let ran = bench.harness(&[&words[..], &["--nodes", "n[3-4]", "--partners", "n[1-2]"]].concat());
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    assert!(ran.stdout.contains("rejected at pairs: HRN-NIC-SLOW replace n4 rdmap113s0: "), "{}", ran.all());
    // Without it there are no four nodes for the next stage.
    let undecided = "not decided at groups: n3: too few nodes to run `group-all_gather` with it";
    assert!(ran.stdout.contains(undecided), "{}", ran.all());
    let last = ran.stdout.lines().last().unwrap_or_default();
    assert!(last.starts_with("accepted 0, rejected 1, not decided 1, "), "{}", ran.all());
    bench.assert_nothing_is_left();
}
