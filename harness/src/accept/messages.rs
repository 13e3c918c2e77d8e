//! What an acceptance prints: its costs, the result of each stage, and at the end that of each node.

use super::acceptance_session::AcceptanceSession;
use super::certificate::{MARKDOWN, VENDOR};
use super::cost_estimate::CostEstimate;
use base::nodeset;
use base::text::duration;
use model::artefact::acceptance::Acceptance;

pub(crate) fn heading(accepting: &AcceptanceSession) {
    let asked = &accepting.delivery.record.asked;
    let simulated = if accepting.delivery.inventory.is_simulated() { " (SIMULATED)" } else { "" };
    println!(
        "accept {}: {} nodes by `{}`, compared with {}{simulated}",
        nodeset::fold(&asked.nodes),
        asked.nodes.len(),
        asked.suite,
        asked.vouched
    );
    println!("delivery: {}", accepting.delivery.folder.display());
}

pub(crate) fn cost_estimate(cost_estimate: &CostEstimate, budget: Option<f64>) {
    println!("stage preflight: every node is probed");
    for of in &cost_estimate.stages {
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
        cost_estimate.best.runs,
        cost_estimate.worst.runs,
        cost_estimate.best.node_hours,
        cost_estimate.worst.node_hours
    );
    if let Some(budget) = budget {
        println!("budget: {budget} node-hours");
    }
}

/// After each stage, of the stage that was the last.
pub(crate) fn stage(accepting: &AcceptanceSession) {
    let Some(stage) = accepting.stages.last() else { return };
    let schedule = &accepting.schedule;
    let of = |name: &String| *name == stage.name;
    let rejected: Vec<String> =
        schedule.rejected.iter().filter(|one| of(&one.stage)).map(|one| one.node.clone()).collect();
    let open: Vec<String> =
        schedule.undecided.iter().filter(|one| of(&one.stage)).map(|one| one.node.clone()).collect();
    println!(
        "{}: passed {}, rejected {}, not decided {}, runs {}, {:.2} node-hours so far",
        stage.name,
        counted(&schedule.candidates),
        counted(&rejected),
        counted(&open),
        stage.runs.len(),
        accepting.delivery.node_hours()
    );
    for one in schedule.withdrawn.iter().filter(|one| of(&one.stage)) {
        println!("  {} is no longer a partner: {}", one.node, one.why);
    }
}

pub(crate) fn conclusion(accepting: &AcceptanceSession, of: &Acceptance, copied: Option<usize>) {
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

/// Nodes as a person reads them, and how many.
fn counted(nodes: &[String]) -> String {
    match nodes.len() {
        0 => "none".to_owned(),
        n => format!("{n} ({})", nodeset::fold(nodes)),
    }
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn messages_of_counts() {
        let nodes = ["p5-003", "p5-001", "p5-002", "p5-009"].map(str::to_owned);
        let lines = [counted(&[]), counted(&nodes[..1]), counted(&nodes)];
        insta::assert_snapshot!(lines.join("\n"));
    }
}
