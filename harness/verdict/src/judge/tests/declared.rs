//! What the judge makes of each metric that a recipe gives, as a table.

use super::*;
use metric::Covers;
use recipes::catalogue::Catalogue;

const KINDS: [FileKind; 9] = [
    FileKind::NcclTests,
    FileKind::GpuNcclTests,
    FileKind::Counters,
    FileKind::Flow,
    FileKind::Stdout,
    FileKind::Stderr,
    FileKind::Log,
    FileKind::ProfileReport,
    FileKind::ProfileTable,
];

#[test]
fn each_metric_has_its_files_its_blame_and_its_next_step() {
    let mut table = String::new();
    for metric in Catalogue::built_in().metrics() {
        let files: Vec<String> = KINDS
            .iter()
            .filter(|kind| gate::feeds(&Catalogue::built_in(), **kind, &metric.name))
            .map(|kind| format!("{kind:?}"))
            .collect();
        let asked = assertion(&metric.name, at_least(1.0));
        let explained = metric.explained_by.join(", ");
        let covers = match metric.covers {
            Covers::All => "all",
            Covers::Nics => "NICs",
            Covers::NoNics => "all but NICs",
            Covers::Nothing => "no part",
        };
        table += &format!(
            "{}: {:?}; from {}; explained by [{explained}]; covers {covers}\n  {}\n",
            metric.name,
            metric.blames,
            files.join(", "),
            next_step(&asked, Status::Fail)
        );
    }
    insta::assert_snapshot!(table);
}

#[test]
fn assertions_are_named_without_the_prefix_of_nccl_alone() {
    for metric in Catalogue::built_in().metrics() {
        assert_eq!(metric.short_name(), metric.name.trim_start_matches("nccl."));
    }
}

#[test]
fn wrong_data_that_nothing_checks_asks_for_the_check_that_the_recipes_of_the_case_declare() {
    for (recipe, cause, next) in [
        ("training_log", "loss-not-finite", "assert `train.loss_finite` in the case"),
        (
            "nccl_tests",
            "data-wrong",
            "assert `nccl.wrong` in the case, and run suite `nccl-p5`, case `gpu-each`: it checks each GPU separately",
        ),
        ("command", "data-wrong", "add the recipe that reads it, and assert its metric"),
    ] {
        let mut world = World::new(at_least(10.0)).saw(100.0);
        world.case.recipes = vec![recipe.to_owned()];
        world.analysis().data_wrong = true;
        let verdict = world.one();
        assert_eq!(verdict.status, Status::Inconclusive, "{recipe}");
        assert_eq!(
            (verdict.cause.as_deref(), verdict.next.as_deref()),
            (Some(cause), Some(next)),
            "{recipe}"
        );
    }
}
