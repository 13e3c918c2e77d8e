//! The small runs of an isolation: what of the suite's case they keep, and what they leave out.

use super::round::{Probes, lint, spans};
use super::trial::{Aim, Shape, Trial};
use config::inventory::{Instances, Inventory};
use config::suite::{Case, Requires, Step, Suite, Workload};
use metric::op::Op;
use recipes::catalogue::Catalogue;

const SUITE: &str = r#"
instance = "p5"
about = "x"
[[case]]
name = "alone"
about = "one node"
placement = "each"
workload = { kind = "nccl-tests", op = "all_gather", from = "1MiB", to = "64MiB", factor = 4, iterations = 20 }
recipes = ["nccl_tests"]
limit_s = 600
[[case.assert]]
metric = "nccl.wrong"
equals = 0
[[case]]
name = "sweep"
about = "all sizes"
placement = "pairs"
workload = { kind = "nccl-tests", op = "all_reduce", from = "1MiB", to = "8GiB", factor = 2, iterations = 20 }
recipes = ["nccl_tests", "efa_traffic"]
limit_s = 600
[[case.assert]]
metric = "nccl.wrong"
equals = 0
"#;

pub(super) fn suite() -> Suite {
    Suite::read(SUITE, "suites/x.toml", &Catalogue::built_in()).expect("a suite")
}

pub(super) fn probes(suite: &Suite, named: Option<&str>) -> Result<Probes, String> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a root");
    let instances = Instances::load(root).expect("sound instances");
    let text = "kind = \"simulated\"\ninstance = \"sim-p5\"\nnodes = \"p5-[001-004]\"\nreach = { via = \"slurm\" }\n";
    let inventory = Inventory::read(text, "inventory/x.toml", &instances).expect("good");
    Probes::choose(suite, &inventory, named)
}

fn trial(aim: Aim, shape: Shape) -> Trial {
    Trial { aim, shape, nodes: vec![0, 1] }
}

fn cases(suite: &Suite) -> Vec<Case> {
    let trials = [
        trial(Aim::Node(0), Shape::Together { nodes: 2, across: false }),
        trial(Aim::Inside(0), Shape::Inside),
        trial(Aim::Gpus(0), Shape::Gpus),
        trial(Aim::Nics(0), Shape::Nics),
    ];
    let nodes = ["p5-001", "p5-002"].map(str::to_owned);
    probes(suite, None).expect("probes").round(&nodes, &trials).0.cases
}

fn tests(case: &Case) -> &config::suite::NcclTests {
    match &case.workload {
        Workload::NcclTests(tests) => tests,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_shape_of_run_is_placed_as_it_needs_with_one_size_and_checked_data() {
    let cases = cases(&suite());
    let shown: Vec<_> = cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(shown, ["together-2", "inside", "gpus", "nics"]);
    use config::suite::Placement::{Each, EachGpu, Groups, Pairs};
    assert_eq!(
        cases.iter().map(|case| case.placement).collect::<Vec<_>>(),
        [Groups(2), Each, EachGpu, Pairs]
    );
    for case in &cases[..3] {
        let tests = tests(case);
        assert_eq!(
            (tests.op, tests.min_bytes, tests.max_bytes),
            (Op::AllReduce, 1 << 30, 1 << 30),
            "{}",
            case.name
        );
        assert!(tests.check && tests.step == Step::Factor(2));
        assert_eq!(case.recipes, ["nccl_tests"]);
        assert_eq!(
            (case.assertions[0].bound.equals, case.assertions[0].sizes.as_slice()),
            (Some(0.0), [1 << 30].as_slice())
        );
    }
    let nics = &cases[3];
    assert!(
        matches!(&nics.workload, Workload::NicPairs(pairs) if pairs.message_bytes == 1 << 20),
        "{:?}",
        nics.workload
    );
    assert_eq!(nics.recipes, ["nic_flows"]);
    let rate = &nics.assertions[0];
    assert_eq!((rate.metric.as_str(), rate.per, rate.sizes.len()), ("nic.rate", config::suite::Per::Nic, 0));
    assert_eq!((rate.bound.at_least, rate.bound.equals), (Some(6.25), None), "half of the line rate");
}

#[test]
fn preconditions_and_expectations_of_the_suites_case_are_not_those_of_a_small_run() {
    let mut odd = suite();
    let case = &mut odd.cases[1];
    case.tags = vec!["nightly".into()];
    case.requires = Requires { min_nodes: Some(8), ..Requires::default() };
    case.after = vec!["alone".into()];
    case.expected_failure = Some("known".into());
    case.must_end = Some(model::artefact::CaseEnd::Fail);
    case.repeats = 5;
    case.retry_infrastructure = true;
    case.counters.enabled = true;
    for small in cases(&odd) {
        assert!(small.tags.is_empty() && small.after.is_empty(), "{}", small.name);
        assert_eq!(small.requires, Requires::default());
        assert_eq!((small.expected_failure, small.must_end, small.repeats), (None, None, 1));
        assert!(!small.retry_infrastructure && !small.counters.enabled);
        assert_ne!(small.about, "all sizes");
    }
}

#[test]
fn the_size_is_the_largest_that_is_asserted_or_the_largest_up_to_one_gibibyte() {
    let mut asserted = suite();
    asserted.cases[1].assertions[0].sizes = vec![16 << 20, 256 << 20];
    assert_eq!(tests(&cases(&asserted)[0]).max_bytes, 256 << 20);
    asserted.cases[1].assertions[0].sizes = vec![3 << 20];
    assert_eq!(tests(&cases(&asserted)[0]).max_bytes, 1 << 30, "a size that is not run");
    let mut large = suite();
    let Workload::NcclTests(of_case) = &mut large.cases[1].workload else { panic!("nccl-tests") };
    of_case.min_bytes = 2 << 30;
    assert_eq!(tests(&cases(&large)[0]).max_bytes, 8 << 30);
}

#[test]
fn a_case_on_single_nodes_or_split_communicators_says_nothing_of_sets_of_nodes() {
    let suite = suite();
    assert!(!spans(&suite.cases[0]) && spans(&suite.cases[1]));
    let mut split = suite.cases[1].clone();
    let Workload::NcclTests(of_case) = &mut split.workload else { panic!("nccl-tests") };
    of_case.split_mask = Some("0x7".into());
    assert!(!spans(&split));
    let mut single = suite.cases[1].clone();
    single.placement = config::suite::Placement::Nodes(1);
    assert!(!spans(&single));
    assert_eq!(probes(&suite, None).expect("probes").case, "sweep");
    assert_eq!(probes(&suite, Some("sweep")).expect("probes").case, "sweep");
    assert!(probes(&suite, Some("alone")).expect_err("no set of nodes").contains("sweep"));
    let mut none = suite.clone();
    none.cases.truncate(1);
    assert!(probes(&none, None).is_err());
    assert!(lint(&none).is_none(), "it asks for no isolation");
    none.on_failure = config::suite::OnFailure::Isolate { budget_node_h: None };
    assert!(lint(&none).is_some());
    let mut some = suite;
    some.on_failure = none.on_failure;
    assert!(lint(&some).is_none());
}

#[test]
fn the_flows_of_a_pair_go_both_ways_one_after_the_other() {
    let nodes = ["p5-001", "p5-002"].map(str::to_owned);
    let trials = [trial(Aim::Nics(0), Shape::Nics)];
    let (_, sets, tried) = probes(&suite(), None).expect("probes").round(&nodes, &trials);
    let shown: Vec<_> = sets["nics"].iter().map(|placed| (placed.nodes.join(" "), placed.round)).collect();
    assert_eq!(shown, [("p5-001 p5-002".to_owned(), 1), ("p5-002 p5-001".to_owned(), 2)]);
    assert_eq!(tried[0].jobs.len(), 2);
}
