//! The cases of the suite that ships which need no MPI across nodes, and a training: in pods of a real Kubernetes they have
//! the verdicts and the culprits that they have over simulated ssh, by the same model, whatever the fault.

use super::trainings::first_case;
use super::ways::{SHORT_S, SuiteRequest, by_pods, pods, simulated_ssh};
use super::{assert_same_verdicts, parts};
use crate::fact::Fact;

pub(super) const FACTS: &[Fact] = &[
    ("a_healthy_suite_has_the_verdicts_of_simulated_ssh", healthy),
    ("faults_of_gpus_and_nvlink_have_the_culprits_of_simulated_ssh", gpus),
    ("faults_of_nics_have_the_culprits_of_simulated_ssh", nics),
    ("crashes_and_hangs_have_the_culprits_of_simulated_ssh", programs),
    ("nemo_p5_with_fewer_steps_passes_in_pods", nemo),
    ("isolate_names_the_slow_nic_of_one_of_four_pods", isolated),
    ("accept_rejects_the_one_of_two_new_nodes_with_a_slow_nic", accepted),
];

const NODES: &[&str] = &["gpu-each", "node-{op}"];
/// 32 flows at a time between each two of the nodes: minutes on a busy machine.
const FLOWS_TOO: &[&str] = &["node-{op}", "nic-pairs"];

/// Each fault by itself, on both.
fn compare(cases: &[&str], faults: &[&[&str]]) {
    for faults in faults {
        let asked = SuiteRequest { suite: "parts", faults, text: &parts(cases), floor_s: SHORT_S };
        let ways = [simulated_ssh(&asked), by_pods(&asked)];
        let [simulated, pods] = &ways;
        println!("{faults:?}: exit {:?}, {:?}", pods.ran.code, pods.ran.blamed());
        assert_eq!(pods.ran.code, simulated.ran.code, "{faults:?}: {}", pods.ran.all());
        let sorted = |mut blamed: Vec<String>| {
            blamed.sort();
            blamed
        };
        assert_eq!(
            sorted(pods.ran.blamed()),
            sorted(simulated.ran.blamed()),
            "{faults:?}: {}",
            pods.ran.all()
        );
        assert_eq!(pods.ran.blamed().is_empty(), faults.is_empty(), "{faults:?}: {}", pods.ran.all());
        pods.assert_marked();
        assert_same_verdicts(&ways);
    }
}

fn healthy() {
    compare(NODES, &[&[]]);
}

fn gpus() {
    compare(
        NODES,
        &[&["n3:gpu-slow=0.6@5"], &["n1:nvlink-slow=0.5"], &["n2:corrupt@3"], &["n4:node-slow=0.7"]],
    );
}

fn nics() {
    let all: &[&[&str]] = &[
        &["n2:nic-dead@rdmap80s0"],
        &["n4:nic-slow=0.4@rdmap113s0"],
        &["n1:port-slow=0.5"],
        &["n2:nic-dead@rdmap80s0", "n3:gpu-slow=0.6@5"],
    ];
    compare(FLOWS_TOO, all);
}

fn programs() {
    compare(NODES, &[&["n2:rank-dies"], &["n3:garbled"], &["n1:wrong-ranks"], &["n4:output-missing"]]);
}

fn nemo() {
    let text = first_case("nemo-p5", &[("steps = 40", "steps = 12"), ("20..25", "6..11")]);
    let way = by_pods(&SuiteRequest { suite: "nemo-p5", faults: &[], text: &text, floor_s: 600.0 });
    assert_eq!(way.ran.code, Some(0), "{}", way.ran.all());
    way.assert_marked();
}

const SLOW: SuiteRequest<'static> =
    SuiteRequest { suite: "flows", faults: &["n4:nic-slow=0.5@rdmap113s0"], text: FLOWS, floor_s: SHORT_S };
const FLOWS: &str = "instance = \"p5\"\nabout = \"each node, and flows between pairs\"\n\
    [[case]]\nname = \"node\"\nplacement = \"each\"\nrecipes = [\"nccl_tests\"]\n\
    workload = { kind = \"nccl-tests\", op = \"all_reduce\", from = \"1GiB\", to = \"1GiB\", factor = 2 }\n\
    [[case.assert]]\nmetric = \"nccl.wrong\"\nequals = 0\n\
    [[case]]\nname = \"nic-pairs\"\nplacement = \"pairs\"\nrecipes = [\"nic_flows\"]\n\
    workload = { kind = \"nic-pairs\", seconds = 5 }\n\
    [[case.assert]]\nmetric = \"nic.rate\"\nper = \"nic\"\nat_least = \"11 GB/s\"\n";

fn isolated() {
    let (bench, _programs) = pods(&SLOW);
    let ran = bench.harness(&["isolate", "--suite", "flows", "--inventory", "way"]);
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    let named: Vec<&str> = ran.stdout.lines().filter(|line| line.starts_with("HRN-")).collect();
    let right = named.len() == 1 && named[0].starts_with("HRN-NIC-SLOW replace n4 rdmap113s0: ");
    assert!(right, "{}", ran.all());
    bench.assert_nothing_is_left();
}

fn accepted() {
    let (bench, _programs) = pods(&SLOW);
    let new = ["--nodes", "n[3-4]", "--partners", "n[1-2]", "--out", "out"];
    let ran = bench.harness(&[&["accept", "--suite", "flows", "--inventory", "way"], &new[..]].concat());
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    assert!(ran.stdout.contains("rejected at pairs: HRN-NIC-SLOW replace n4 rdmap113s0: "), "{}", ran.all());
    let last = ran.stdout.lines().last().unwrap_or_default();
    assert!(last.starts_with("accepted 1, rejected 1, not decided 0, "), "{}", ran.all());
    bench.assert_nothing_is_left();
}
