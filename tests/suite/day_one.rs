//! The first day of a fleet: published figures are its only baselines. The whole table is `cargo bench --bench day_one`.

use crate::project::{self, Project};
use harness::sweep::day_one::{DayOne, draw, outcome};

fn day_one() -> DayOne {
    DayOne::read(&project::root(), "acceptance-p5").expect("the project's own files")
}

#[test]
fn healthy_fleets_of_any_size_are_green_on_day_one_and_count_what_is_unjudged() {
    let day_one = day_one();
    for (nodes, seed) in [(4, 1), (4, 2), (7, 1)] {
        let folder = tempfile::tempdir().expect("a folder");
        let summary = day_one.run(nodes, &[], seed, folder.path()).expect("a run");
        assert_eq!(summary.exit_code, 0, "{nodes} nodes, seed {seed}: {:?}", summary.counts);
        assert_eq!(summary.culprits, [], "{nodes} nodes, seed {seed}");
        assert!(summary.counts.unjudged > 0 && summary.counts.inconclusive == 0, "{:?}", summary.counts);
    }
}

#[test]
fn acceptance_on_day_one_decides_every_healthy_node() {
    for (nodes, seed) in [(4, 1), (7, 2)] {
        let folder = tempfile::tempdir().expect("a folder");
        let made = day_one().accept(nodes, seed, folder.path()).expect("a delivery");
        assert_eq!(made.accepted.len(), nodes, "{:?} {:?}", made.rejected, made.undecided);
        assert_eq!((made.rejected.len(), made.undecided.len()), (0, 0));
    }
}

#[test]
fn faults_are_named_on_day_one_and_innocents_are_not() {
    let day_one = day_one();
    let nics = day_one.inventory(7).expect("an inventory").instance.nics;
    for kind in ["gpu", "nic", "port", "nvlink", "node"] {
        let injected = draw(kind, 7, &nics, 1);
        let folder = tempfile::tempdir().expect("a folder");
        let summary = day_one.run(7, &injected.faults, 1, folder.path()).expect("a run");
        let came = outcome(&summary, &injected);
        let named: Vec<String> = summary.culprits.iter().map(ToString::to_string).collect();
        assert_eq!(came.exit_code, 1, "{:?}: {named:?}", injected.faults);
        assert!(came.all_named && !came.innocent_named, "{:?}: {named:?}", injected.faults);
    }
}

#[test]
fn three_nodes_that_disagree_exit_3_without_a_culprit() {
    let day_one = day_one();
    let folder = tempfile::tempdir().expect("a folder");
    let faults = ["p5-002:nvlink-slow=0.75".to_owned()];
    let summary = day_one.run(3, &faults, 1, folder.path()).expect("a run");
    assert_eq!((summary.exit_code, summary.culprits.as_slice()), (3, [].as_slice()), "{:?}", summary.counts);
}

#[test]
fn an_unjudged_number_exits_3_where_strict_is_asked_for() {
    let project = Project::new();
    // No simulated baseline is of five nodes.
    let five =
        "kind = \"simulated\"\ninstance = \"sim-p5\"\nnodes = \"p5-[001-005]\"\n\n[reach]\nvia = \"slurm\"\n";
    project.write("inventory/five.toml", five);
    let run = |more: &[&str]| {
        let args = ["--suite", "nccl-p5", "--inventory", "five", "--no-probe"];
        project.harness(&[&args[..], more, &["all-all_reduce"]].concat())
    };
    let lenient = run(&[]);
    assert_eq!(lenient.code, Some(0), "{}", lenient.all());
    assert!(
        lenient.stdout.contains("2 of 11 numbers have nothing to compare with on 5 nodes"),
        "{}",
        lenient.all()
    );
    let strict = run(&["--strict"]);
    assert_eq!((strict.code, strict.blamed()), (Some(3), Vec::new()), "{}", strict.all());
}
