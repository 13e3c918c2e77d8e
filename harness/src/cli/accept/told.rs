//! What an acceptance says while it goes on: what it will cost, what became of each stage, and who is what at the end.

use super::certificate::{MARKDOWN, VENDOR};
use super::counted;
use super::outlook::Outlook;
use super::stages::Accepting;
use base::nodeset;
use base::text::duration;
use model::artefact::acceptance::Acceptance;

pub(super) fn heading(accepting: &Accepting) {
    let asked = &accepting.delivery.record.asked;
    let simulated = if accepting.delivery.inventory.is_simulated() { " (SIMULATED)" } else { "" };
    println!(
        "accept {}: {} nodes by `{}`, held against {}{simulated}",
        nodeset::fold(&asked.nodes),
        asked.nodes.len(),
        asked.suite,
        asked.vouched
    );
    println!("delivery: {}", accepting.delivery.folder.display());
}

pub(super) fn outlook(outlook: &Outlook, budget: Option<f64>) {
    println!("stage preflight: every node is asked what it is and has");
    for of in &outlook.stages {
        println!(
            "stage {}: {} jobs, {:.2} node-hours, {} where no two cases run side by side",
            of.stage.name(),
            of.jobs,
            of.node_hours,
            duration(of.seconds as f64)
        );
    }
    println!(
        "expected: runs {} to {}, node-hours {:.2} to {:.2} (all are good; every stage twice, and two searches)",
        outlook.best.runs, outlook.worst.runs, outlook.best.node_hours, outlook.worst.node_hours
    );
    if let Some(budget) = budget {
        println!("budget: {budget} node-hours");
    }
}

/// After each stage, of the stage that was the last.
pub(super) fn stage(accepting: &Accepting) {
    let Some(stage) = accepting.stages.last() else { return };
    let course = &accepting.course;
    let of = |name: &String| *name == stage.name;
    let rejected: Vec<String> =
        course.rejected.iter().filter(|one| of(&one.stage)).map(|one| one.node.clone()).collect();
    let open: Vec<String> =
        course.undecided.iter().filter(|one| of(&one.stage)).map(|one| one.node.clone()).collect();
    println!(
        "{}: passed {}, rejected {}, not decided {}, runs {}, {:.2} node-hours so far",
        stage.name,
        counted(&course.candidates),
        counted(&rejected),
        counted(&open),
        stage.runs.len(),
        accepting.delivery.node_hours()
    );
    for one in course.withdrawn.iter().filter(|one| of(&one.stage)) {
        println!("  {} is no partner any more: {}", one.node, one.why);
    }
}

pub(super) fn conclusion(accepting: &Accepting, of: &Acceptance, copied: Option<usize>) {
    for one in &of.rejected {
        for culprit in &one.culprits {
            println!(
                "rejected at {}: {} {} {} {}: {}",
                one.stage, culprit.code, culprit.severity, one.node, culprit.part, culprit.evidence
            );
        }
    }
    for (stage, nodes, why) in of.undecided_alike() {
        println!("not decided at {stage}: {}: {why}", nodeset::fold(&nodes));
    }
    of.not_measured.iter().for_each(|what| println!("not measured: {what}"));
    if let Some(note) = &of.note {
        println!("{note}");
    }
    let folder = accepting.delivery.folder.display();
    if let Some(copied) = copied {
        println!("for the vendor: {copied} files in {folder}/{VENDOR}");
    }
    println!("certificate: {folder}/{MARKDOWN}");
    println!(
        "accepted {}, rejected {}, not decided {}, runs {}, node-hours {:.2}",
        of.accepted.len(),
        of.rejected.len(),
        of.undecided.len(),
        of.stages.iter().map(|stage| stage.runs.len()).sum::<usize>(),
        of.node_hours
    );
}
