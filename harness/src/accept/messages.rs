//! The messages of an acceptance, one function each: its costs, the result of each stage and of each node, what was not
//! measured, and errors. `accept` prints them.

use super::cost_estimate::CostEstimate;
use super::rejection_line::rejection_line;
use base::nodeset;
use base::text::{command_line, count, duration};
use model::artefact::acceptance::{Acceptance, StageRecord};
use model::artefact::{CommonFailure, absence, remedy};
use model::exit_code;
use std::collections::BTreeSet;
use std::path::Path;
use verdict::accept::schedule::Schedule;
use verdict::accept::soak::growth::Growth;
use verdict::accept::soak::moment;
use verdict::accept::stages::Stage;
use verdict::history::hardware::Unvouched;

pub(crate) fn heading(nodes: &[String], suite: &str, vouched: &str, is_simulated: bool) -> String {
    let simulated = if is_simulated { " (SIMULATED)" } else { "" };
    let (names, all) = (nodeset::fold(nodes), count(nodes.len(), "node"));
    format!("accept {names}: {all} by `{suite}`, compared with {vouched}{simulated}")
}

pub(crate) fn delivery(folder: &Path) -> String {
    format!("delivery: {}", folder.display())
}

pub(crate) fn cost_estimate(cost_estimate: &CostEstimate, budget: Option<f64>) -> Vec<String> {
    let mut lines = vec!["stage preflight: every node is probed".to_owned()];
    lines.extend(cost_estimate.stages.iter().map(|of| {
        format!(
            "stage {}: {}, {:.2} node-hours, {} {}",
            of.stage.name(),
            count(of.jobs, "job"),
            of.node_hours,
            duration(of.seconds as f64),
            match of.windows {
                0 | 1 => "with one case at a time".to_owned(),
                windows =>
                    format!("in {windows} windows; `--soak LENGTH` changes it, `--soak 0` leaves it out"),
            }
        )
    }));
    lines.push(format!(
        "expected: runs {} to {}, node-hours {:.2} to {:.2} (all are good; with every repeat, retry and search)",
        cost_estimate.best.runs,
        cost_estimate.worst.runs,
        cost_estimate.best.node_hours,
        cost_estimate.worst.node_hours
    ));
    lines.extend(budget.map(|budget| format!("budget: {budget} node-hours")));
    lines
}

/// After each stage.
pub(crate) fn stage(stage: &StageRecord, schedule: &Schedule, node_hours: f64) -> Vec<String> {
    let of = |name: &String| *name == stage.name;
    let rejected: Vec<String> =
        schedule.rejected.iter().filter(|one| of(&one.stage)).map(|one| one.node.clone()).collect();
    let open: Vec<String> =
        schedule.undecided.iter().filter(|one| of(&one.stage)).map(|one| one.node.clone()).collect();
    let mut lines = vec![format!(
        "{}: passed {}, rejected {}, not decided {}, runs {}, {node_hours:.2} node-hours so far",
        stage.name,
        counted(&schedule.candidates),
        counted(&rejected),
        counted(&open),
        stage.runs.len()
    )];
    let withdrawn = schedule.withdrawn.iter().filter(|one| of(&one.stage));
    lines.extend(withdrawn.map(|one| format!("  {} is no longer a partner: {}", one.node, one.why)));
    lines
}

/// Commands of a kind that are printed.
const MOST_NEXT: usize = 4;

/// The exit code of an acceptance that came to its end.
pub(crate) fn outcome_code(of: &Acceptance) -> i32 {
    match (of.rejected.is_empty(), of.undecided.is_empty()) {
        (false, _) => exit_code::FAILED,
        (true, false) => exit_code::INCONCLUSIVE,
        (true, true) if of.accepted.is_empty() => exit_code::INCONCLUSIVE,
        (true, true) => exit_code::PASSED,
    }
}

/// `copied` is the vendor's copy and how many files it has.
pub(crate) fn conclusion(of: &Acceptance, certificate: &Path, copied: Option<(usize, &Path)>) -> Vec<String> {
    let mut lines = Vec::new();
    for one in &of.rejected {
        lines.extend(one.culprits.iter().map(|culprit| rejection_line(one, culprit)));
    }
    // One kind of fault may reject a hundred nodes: the commands are those of the first few.
    let codes: BTreeSet<&str> =
        of.rejected.iter().flat_map(|one| &one.culprits).map(|culprit| culprit.code.as_str()).collect();
    lines.extend(codes.iter().take(MOST_NEXT).map(|code| format!("next: harness explain {code}")));
    // A preflight leaves no run to return it with.
    let by_run = of.rejected.iter().filter(|one| one.run.is_some());
    let nodes: BTreeSet<&str> = by_run.map(|one| one.node.as_str()).collect();
    let runs = runs_elsewhere(certificate);
    lines.extend(nodes.iter().take(MOST_NEXT).map(|node| format!("next: harness rma {node}{runs}")));
    if let more @ 1.. = nodes.len().saturating_sub(MOST_NEXT) {
        lines.push(format!("next: `harness rma` of {}", count(more, "more rejected node")));
    }
    for (stage, nodes, why) in of.undecided_alike() {
        lines.push(format!("not decided at {stage}: {}: {why}", nodeset::fold(&nodes)));
    }
    lines.extend(probe_again(of));
    lines.extend(of.not_checked.iter().map(|what| format!("not checked: {what}")));
    lines.extend(of.not_measured.iter().map(|what| format!("not measured: {what}")));
    lines.extend(of.note.clone());
    if let Some((files, folder)) = copied {
        lines.push(format!("for the vendor: {} in {}", count(files, "file"), folder.display()));
    }
    lines.push(format!("certificate: {}", certificate.display()));
    let code = outcome_code(of);
    lines.push(format!(
        "accepted {}, rejected {}, not decided {}, runs {}, node-hours {:.2} (exit {code})",
        of.accepted.len(),
        of.rejected.len(),
        of.undecided.len(),
        of.stages.iter().map(|stage| stage.runs.len()).sum::<usize>(),
        of.node_hours
    ));
    lines
}

/// What shows whether a node that the preflight left open is mended: no run has looked at it.
fn probe_again(of: &Acceptance) -> Option<String> {
    let open = of.undecided.iter().filter(|one| one.stage == Stage::Preflight.name());
    let nodes: Vec<String> = open.map(|one| one.node.clone()).collect();
    let arguments =
        ["--inventory", of.inventory.as_str(), "--nodes", nodeset::fold(&nodes).as_str()].map(str::to_owned);
    (!nodes.is_empty()).then(|| format!("next: harness inventory probe {}", command_line(&arguments)))
}

/// The folder of its runs, where the delivery does not lie where others look for it.
fn runs_elsewhere(certificate: &Path) -> String {
    let Some(delivery) = certificate.parent() else { return String::new() };
    let is_own = delivery.parent().and_then(Path::file_name).is_some_and(|name| name == "deliveries");
    let argument = || command_line(&["--runs".to_owned(), delivery.join("runs").display().to_string()]);
    if is_own { String::new() } else { format!(" {}", argument()) }
}

pub(crate) fn interrupted(folder: &Path) -> String {
    format!("interrupted: {}", continues(folder))
}

pub(crate) fn continues(folder: &Path) -> String {
    format!("`harness accept --resume {}` goes on", folder.display())
}

pub(crate) fn over_budget(needed: f64) -> String {
    format!("the next run needs {needed:.2} node-hours")
}

/// Why nodes are not decided where the budget runs out.
pub(crate) fn budget_spent(needed: f64, used: f64, budget: f64) -> String {
    format!("the next run needs about {needed:.2} node-hours; used {used:.2} of the budget of {budget}")
}

/// What a repeat of near misses is for, in the certificate.
pub(crate) fn repeat(at: usize, of: usize, cases: &BTreeSet<String>) -> String {
    let cases = cases.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    format!("repeat {at} of at most {of} of what narrowly missed its baseline: {cases}")
}

pub(crate) fn unprobed(why: &str) -> String {
    format!("it could not be probed: {why}")
}

pub(crate) fn gpus_unread(why: &str) -> String {
    format!("its GPUs could not be read: {why}")
}

pub(crate) fn too_few_nodes(case: &str, new: usize, good: usize) -> String {
    format!("too few nodes to run `{case}` with it: new nodes left {new}, known-good nodes {good}")
}

pub(crate) fn slow_group(nodes: &[String]) -> String {
    format!("slow group not isolated: too few nodes, or no case to isolate with: {}", nodeset::fold(nodes))
}

pub(crate) fn no_case(stage: &str) -> String {
    format!("{stage}: the suite has no case for this stage")
}

/// A case that was skipped on nodes without its program.
pub(crate) fn not_checked(case: &str, program: &str, nodes: &[String]) -> String {
    let on = count(nodes.len(), "node");
    format!("{case} ({} {on}: {}{})", absence(program), nodeset::fold(nodes), remedy(program))
}

/// Why a node is not decided on which cases were skipped.
pub(crate) fn strict_refuses(skipped: &[String]) -> String {
    format!("not checked, which `--strict` refuses: {}", skipped.join("; "))
}

pub(crate) fn no_soak() -> String {
    "soak: left out by `--soak 0`".to_owned()
}

/// Why a run has no result of a node.
pub(crate) fn common_cause(failure: &CommonFailure) -> String {
    format!("{}; {}", failure.reason(), failure.check)
}

/// What one window of a soak is for, in the certificate.
pub(crate) fn window(at: u32, windows: u32, from_s: u32, to_s: u32) -> String {
    let (from, to) = (moment(f64::from(from_s)), moment(f64::from(to_s)));
    format!("window {at} of {windows}, {from} to {to} of load on each node")
}

pub(crate) fn retry_of_window(window: &str) -> String {
    format!("{window}: retry of what an infrastructure failure kept from being measured")
}

/// After each window of a soak.
pub(crate) fn window_over(at: u32, windows: u32, soaked_s: u32, schedule: &Schedule, left: usize) -> String {
    let passed = count(schedule.candidates.len(), "node");
    let left = if left > 0 { format!(", {left} left out now") } else { String::new() };
    format!(
        "soak: window {at} of {windows} judged, {} of load, passed {passed}{left}",
        moment(f64::from(soaked_s))
    )
}

/// Where the evidence of a rejection stands in the soak; `from` is when it began, where that is known.
pub(crate) fn soaked(evidence: &str, from: Option<f64>, window: u32, windows: u32) -> String {
    match from {
        Some(from) => {
            format!("{evidence}; in the soak from {} on, window {window} of {windows}", moment(from))
        }
        None => format!("{evidence}; in the soak by window {window} of {windows}"),
    }
}

pub(crate) fn grows_alike(growth: &Growth) -> String {
    format!(
        "{}: {}, and so do most other nodes, or too few were compared: not attributable to a node",
        growth.part, growth.evidence
    )
}

pub(crate) fn too_short_for_growth(windows: u32, fewest: u32) -> String {
    format!("soak: slow growth (errors, memory) can be named from {fewest} windows on, it had {windows}")
}

pub(crate) fn growth_unread(metric: &str, nodes: &[String]) -> String {
    format!("soak: whether `{metric}` grows, it was not read: {}", nodeset::fold(nodes))
}

pub(crate) fn not_reached(stage: &str) -> String {
    format!("{stage}: no node reached it, or the budget ran out")
}

/// Fewer nodes ran together than came into the last stage.
pub(crate) fn fewer_at_once(entered: usize, case: &str, at_once: usize, sets: usize) -> String {
    let sets = count(sets, "set");
    format!(
        "all {entered} at once: `{case}` was run on {at_once} at a time, in {sets} of nodes, for which there are baselines"
    )
}

pub(crate) fn provisional(assertions: u32) -> String {
    let assertions = count(assertions, "assertion");
    format!("{assertions} passed against provisional baselines only, which are not accepted yet")
}

pub(crate) fn fact_unknown(fact: &str, why: &str, nodes: &[String]) -> String {
    format!("{fact}, by the preflight: {why}: {}", nodeset::fold(nodes))
}

pub(crate) fn folder_taken(folder: &Path) -> String {
    format!("--output: it is not empty; `--resume DIR` continues a delivery: {}", folder.display())
}

pub(crate) fn fault_of_real_cluster(inventory: &str) -> String {
    format!("--sim-fault: needs a simulated cluster, `{inventory}` is a real one")
}

pub(crate) fn partner_is_new(node: &str) -> String {
    format!("--partners: a node cannot be new and known to be good: `{node}`")
}

pub(crate) fn vouched(good: &[String], run: &str, blamed: &[String], unvouched: &Unvouched) -> String {
    let mut vouched = format!("{}, which passed run {run}", nodeset::fold(good));
    if !blamed.is_empty() {
        vouched += &format!(
            "; not with {}, which a run blames and none has cleared (`harness history --suspects`)",
            nodeset::fold(blamed)
        );
    }
    if !unvouched.other.is_empty() {
        vouched +=
            &format!("; not with {}: other hardware has the name now", nodeset::fold(&unvouched.other));
    }
    if !unvouched.unknown.is_empty() {
        let nodes = nodeset::fold(&unvouched.unknown);
        vouched += &format!("; hardware then or now unknown, taken as the same: {nodes}");
    }
    vouched
}

/// Why a partner is none.
pub(crate) fn other_hardware(run: &str) -> String {
    format!("its hardware is not what passed run {run}")
}

pub(crate) fn hardware_unread(partners: &[String], run: &str) -> String {
    let nodes = nodeset::fold(partners);
    format!("whether partners have the hardware that passed run {run}: unknown, taken as the same: {nodes}")
}

pub(crate) fn no_partners(inventory: &str, others: &[String]) -> String {
    format!(
        "no passing run shows that a node of `{inventory}` beside the new ones is good, suspects aside; name good ones of {} \
         with `--partners RANGE`, or compare the new nodes with each other: `--partners none`",
        nodeset::fold(others)
    )
}

pub(crate) fn name_left(file: &str, name: &str) -> String {
    format!("no copy is made, a name would be left in `{file}`, where it is part of a longer word: `{name}`")
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
