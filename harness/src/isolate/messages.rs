//! What an isolation prints: what it will cost, the culprits, and what it cost.

use super::request::IsolationOutcome;
use super::rounds::Isolation;
use crate::report::culprit_line::{MOST_LETTERS, brief};
use crate::session::output::Output;
use base::nodeset;
use base::text::count;
use cluster::reach::pods::cluster_known;
use config::inventory::{Inventory, ReachBy};
use model::artefact::LeftOut;
use model::exit_code;
use verdict::isolate::code::Code;
use verdict::isolate::cost_estimate::CostEstimate;
use verdict::isolate::evidence::{self, Evidence, EvidenceLine};
use verdict::isolate::fleetwide::Fleetwide;
use verdict::isolate::{Conclusion, Named, Place};

pub(crate) fn heading(isolation: &Isolation) {
    let asked = &isolation.asked;
    let groups = match asked.groups.len() {
        0 => "no topology groups known".to_owned(),
        n => count(n, "topology group"),
    };
    isolation.output.print(format_args!(
        "isolate {} by `{}` on {}: {}, {groups}{}",
        asked.suite,
        asked.case,
        nodeset::fold(&asked.nodes),
        count(asked.nodes.len(), "node"),
        simulated(&isolation.inventory)
    ));
}

fn simulated(inventory: &Inventory) -> &'static str {
    if inventory.is_simulated() { " (SIMULATED)" } else { "" }
}

/// The least is that of a healthy cluster; the most, of two faults and much noise.
pub(crate) fn cost_estimate(
    output: Output,
    cost_estimate: &CostEstimate,
    seconds_each: f64,
    budget: Option<f64>,
) {
    let hours = |node_runs: usize| node_runs as f64 * seconds_each / 3600.0;
    let (best, worst) = (&cost_estimate.best, &cost_estimate.worst);
    output.print(format_args!("expected: rounds {} to {}, runs {} to {}, node-hours {:.2} to {:.2} (least: nothing is found; most: two faults and much noise)",
        best.rounds,
        worst.rounds,
        best.runs,
        worst.runs,
        hours(best.node_runs),
        hours(worst.node_runs)));
    if let Some(budget) = budget {
        output.print(format_args!("budget: {budget} node-hours"));
    }
}

pub(crate) fn evidence(output: Output, inventory: &Inventory, id: &str, found: &Evidence) {
    output.print(format_args!("run {id} explains the failure; nothing is launched{}", simulated(inventory)));
    found.lines.iter().for_each(|line| print_culprit(output, inventory, line));
}

/// Too few nodes are left to look for what this evidence does not explain.
pub(crate) fn evidence_alone(output: Output, inventory: &Inventory, found: &Evidence, left: usize) {
    found.lines.iter().for_each(|line| print_culprit(output, inventory, line));
    output.print(format_args!(
        "inconclusive beyond that: nodes left to compare with each other: {left}, too few"
    ));
}

/// The probe left too few nodes to compare with each other. Those that are at fault themselves are named all the same.
pub(crate) fn too_few_are_fit(
    output: Output,
    inventory: &Inventory,
    left_out: &[LeftOut],
    fit: &[String],
) -> IsolationOutcome {
    let culprits = evidence::from_culprits(&[], left_out).lines;
    culprits.iter().for_each(|line| print_culprit(output, inventory, line));
    output.print(format_args!("inconclusive: nodes that can pass: {}, too few to compare", fit.len()));
    let code = if culprits.is_empty() { exit_code::INCONCLUSIVE } else { exit_code::FAILED };
    IsolationOutcome::without_rounds(code, culprits, inventory.is_simulated())
}

/// Anomalies that are not attributable.
pub(crate) fn hints(output: Output, hints: &[String]) {
    hints
        .iter()
        .take(MOST_HINTS)
        .for_each(|hint| output.print(format_args!("hint, too little to name a culprit: {hint}")));
    if hints.len() > MOST_HINTS {
        output.print(format_args!("further hints: {}", hints.len() - MOST_HINTS));
    }
}

const MOST_HINTS: usize = 9;

/// Prints and returns the culprits by the evidence at hand and by the rounds.
pub(crate) fn culprits(isolation: &Isolation, conclusion: &Conclusion) -> Vec<EvidenceLine> {
    let mut lines = isolation.known.clone();
    lines.extend(conclusion.named.iter().map(|named| line(isolation, named)));
    lines.iter().for_each(|line| print_culprit(isolation.output, &isolation.inventory, line));
    lines
}

/// Prints suspects, open questions and costs; gives the exit code.
pub(crate) fn end(isolation: &Isolation, conclusion: &Conclusion, culprits: usize, all: &Fleetwide) -> i32 {
    let name = |node: usize| isolation.asked.nodes.get(node).cloned().unwrap_or_default();
    if !conclusion.suspects.is_empty() {
        let suspects: Vec<String> = conclusion.suspects.iter().map(|node| name(*node)).collect();
        isolation.output.print(format_args!(
            "suspects (loss below the threshold, or low confidence): {}",
            nodeset::fold(&suspects)
        ));
    }
    conclusion
        .open
        .iter()
        .for_each(|open| isolation.output.print(format_args!("inconclusive: {}", named(isolation, open))));
    conclusion
        .notes
        .iter()
        .for_each(|note| isolation.output.print(format_args!("note: {}", named(isolation, note))));
    fleetwide(isolation, all, culprits == 0);
    isolation.output.print(format_args!(
        "threshold: losses of {:.0} % or more; comparable runs differ by {:.1} %",
        conclusion.looked_for * 100.0,
        conclusion.spread * 100.0
    ));
    let unexplained = isolation.asked.unexplained.as_deref().filter(|_| culprits == 0);
    if let Some(run) = unexplained {
        isolation.output.print(format_args!(
            "inconclusive: run {run} failed, and nothing here explains that; next: harness runs show --run {run}"
        ));
    }
    // If all nodes are slow, no culprit can be separated from its peers.
    let is_certain = conclusion.is_certain() && !matches!(all, Fleetwide::Slow(_));
    // Of a node that took no part nothing is known.
    let is_certain = is_certain && isolation.asked.left_out.is_empty() && unexplained.is_none();
    let code = match (culprits == 0, is_certain) {
        (false, _) => exit_code::FAILED,
        (true, true) => exit_code::PASSED,
        (true, false) => exit_code::INCONCLUSIVE,
    };
    sum_of(isolation, culprits, code);
    code
}

pub(crate) fn budget(isolation: &Isolation, needed: f64) -> i32 {
    isolation.known.iter().for_each(|line| print_culprit(isolation.output, &isolation.inventory, line));
    isolation.output.print(format_args!(
        "inconclusive: the next round needs about {needed:.2} node-hours; used {:.2} of the budget of {}",
        isolation.node_hours(),
        isolation.asked.budget.unwrap_or_default()
    ));
    sum_of(isolation, isolation.known.len(), exit_code::INCONCLUSIVE);
    exit_code::INCONCLUSIVE
}

/// A line of its own code, which blames no node and drains none.
fn fleetwide(isolation: &Isolation, all: &Fleetwide, is_unattributed: bool) {
    match all {
        Fleetwide::Good => {}
        Fleetwide::Slow(evidence) => {
            let severity = Code::find(FLEET_SLOW).map_or("configure", |code| code.severity.name());
            let nodes = nodeset::fold(&isolation.asked.nodes);
            isolation.output.print(format_args!("{FLEET_SLOW} {severity} {nodes} all: {evidence}"));
        }
        // A named culprit explains the failure already.
        Fleetwide::Unknown(_) if !is_unattributed => {}
        Fleetwide::Unknown(why) => {
            isolation
                .output
                .print(format_args!("note: inconclusive whether all nodes are equally slow: {why}"));
        }
    }
}

const FLEET_SLOW: &str = "HRN-FLEET-SLOW";

fn print_culprit(output: Output, inventory: &Inventory, line: &EvidenceLine) {
    let whole = line.to_string();
    let head = whole.strip_suffix(line.evidence.as_str()).unwrap_or_default();
    let room = MOST_LETTERS.saturating_sub(head.chars().count());
    output.print(format_args!("{head}{}", brief(&line.evidence, room)));
    let code = Code::find(line.code);
    let cluster = match &inventory.reach {
        ReachBy::Kubernetes(reach) => Some(cluster_known(reach)),
        _ => None,
    };
    let launcher = inventory.reach.launcher();
    if let Some(drain) = code.and_then(|code| code.drain(launcher, cluster.as_ref(), &line.node, &line.part))
    {
        output.print(format_args!("  {drain}"));
    } else {
        output.print(format_args!("  next: harness explain {}", line.code));
    }
}

fn sum_of(isolation: &Isolation, culprits: usize, code: i32) {
    if isolation.simulated {
        isolation.output.print(format_args!("SIMULATED: nothing of this was measured on real hardware"));
    }
    let (runs, nodes) = (isolation.runs(), isolation.asked.nodes.len());
    // A run that began it ends with an exit code of its own.
    let code = isolation.asked.brought_about_by.is_none().then_some(code);
    sum(isolation.output, culprits, runs, nodes, isolation.node_hours(), code);
}

/// The last line, with the exit code where that is the program's.
pub(crate) fn sum(
    output: Output,
    culprits: usize,
    runs: usize,
    nodes: usize,
    node_hours: f64,
    code: Option<i32>,
) {
    let pairs = nodes * nodes.saturating_sub(1) / 2;
    // What it spares; of a few nodes, or where nothing was run, nothing.
    let spared = if (1..pairs).contains(&runs) { format!(" (all pairs: {pairs})") } else { String::new() };
    let exit = code.map(|code| format!(" (exit {code})")).unwrap_or_default();
    output.print(format_args!("culprits {culprits}, runs {runs}{spared}, node-hours {node_hours:.2}{exit}"));
}

fn line(isolation: &Isolation, named: &Named) -> EvidenceLine {
    let asked = &isolation.asked;
    line_of(&asked.nodes, &asked.groups, &isolation.inventory.instance.nics, named)
}

/// What is named by number, by name.
pub(crate) fn line_of(nodes: &[String], groups: &[String], nics: &[String], named: &Named) -> EvidenceLine {
    let node = |node: usize| nodes.get(node).cloned().unwrap_or_default();
    let group = |group: usize| groups.get(group).cloned().unwrap_or_else(|| format!("group {group}"));
    let nic = |nic: usize| nics.get(nic).cloned().unwrap_or_default();
    let (subject, part) = match named.place {
        Place::Node(at) | Place::Somewhere(at) => (node(at), "node".to_owned()),
        Place::Gpu(at, gpu) => (node(at), format!("gpu{gpu}")),
        Place::NvLink(at) => (node(at), "nvlink".to_owned()),
        Place::Nic(at, which) => (node(at), nic(which)),
        Place::Port(at) => (node(at), "fabric".to_owned()),
        Place::Link(a, b) => (format!("{}-{}", group(a), group(b)), "link".to_owned()),
    };
    let (code, evidence) = match named.left {
        // A component that is only slow keeps more than that.
        left if left < 0.02 && matches!(named.place, Place::Node(_) | Place::Somewhere(_)) => {
            ("HRN-NODE-BROKEN", "every run on it failed, its partners' runs without it passed".to_owned())
        }
        left if left < 0.02 && matches!(named.place, Place::Gpu(..)) => {
            ("HRN-GPU-WRONG", "its results are wrong, or it gave none".to_owned())
        }
        left if left < 0.02 && matches!(named.place, Place::Nic(..)) => {
            ("HRN-NIC-DEAD", "no flow on it could be set up, with good partners".to_owned())
        }
        left => (
            Code::for_place(named.place).name,
            format!("{:.0} % of what its peers reach, {}", left * 100.0, how(named.place)),
        ),
    };
    EvidenceLine { code, node: subject, part, evidence }
}

fn how(place: Place) -> &'static str {
    match place {
        Place::Node(_) => "in runs with good partners, by itself, and on each of its GPUs",
        Place::Somewhere(_) => "in runs with good partners, and in none of its parts by itself",
        Place::Gpu(..) => "by itself",
        Place::NvLink(_) => "by itself, and by more than its GPUs explain",
        Place::Nic(..) => "with good partners",
        Place::Port(_) => "on all of its NICs with good partners",
        Place::Link(..) => "with different nodes on both sides, which are good otherwise",
    }
}

/// The strategy counts nodes and topology groups; a person knows them by name.
fn named(isolation: &Isolation, text: &str) -> String {
    with_names(&isolation.asked.nodes, &isolation.asked.groups, text)
}

fn with_names(nodes: &[String], groups: &[String], text: &str) -> String {
    let mut counted: Option<&[String]> = None;
    let words = text.split(' ').map(|word| {
        let number = word.trim_start_matches('[').trim_end_matches([',', ':', ']']);
        let name = counted.and_then(|names| names.get(number.parse::<usize>().ok()?));
        counted = match word {
            "node" | "nodes" => Some(nodes),
            "group" | "groups" => Some(groups),
            _ if name.is_some() || word == "and" => counted,
            _ => None,
        };
        name.map_or(word.to_owned(), |name| word.replace(['[', ']'], "").replace(number, name))
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_and_groups_are_called_by_their_names() {
        let [nodes, groups] =
            [["p5-001", "p5-002"], ["rack-a", "rack-b"]].map(|names| names.map(str::to_owned));
        for (text, expected) in [
            ("node 1 is slow, of 2", "node p5-002 is slow, of 2"),
            ("not run: nodes [0, 1] together", "not run: nodes p5-001, p5-002 together"),
            ("no good node in group 1 to test 1 with", "no good node in group rack-b to test 1 with"),
            ("groups 0 and 1: link is slow", "groups rack-a and rack-b: link is slow"),
            ("groups [0, 1] are slow", "groups rack-a, rack-b are slow"),
            ("1 of 2 groups are slow; node 7", "1 of 2 groups are slow; node 7"),
        ] {
            assert_eq!(with_names(&nodes, &groups, text), expected);
        }
    }

    #[test]
    fn messages() {
        let [nodes, groups, nics] = [["p5-001", "p5-002"], ["a", "c"], ["rdmap113s0", "rdmap114s0"]]
            .map(|names| names.map(str::to_owned).to_vec());
        let places = [
            Place::Node(0),
            Place::Somewhere(0),
            Place::Gpu(0, 3),
            Place::NvLink(0),
            Place::Nic(1, 0),
            Place::Port(1),
            Place::Link(0, 1),
        ];
        let slow = places.map(|place| Named { place, left: 0.5 });
        let broken =
            [Place::Node(0), Place::Gpu(0, 3), Place::Nic(1, 0)].map(|place| Named { place, left: 0.0 });
        let all = slow.iter().chain(&broken);
        let lines: Vec<String> =
            all.map(|named| line_of(&nodes, &groups, &nics, named).to_string()).collect();
        insta::assert_snapshot!(lines.join("\n"), @"
        HRN-NODE-SLOW reboot p5-001 node: 50 % of what its peers reach, in runs with good partners, by itself, and on each of its GPUs
        HRN-NODE-UNCLEAR watch p5-001 node: 50 % of what its peers reach, in runs with good partners, and in none of its parts by itself
        HRN-GPU-SLOW reset p5-001 gpu3: 50 % of what its peers reach, by itself
        HRN-NVLINK-SLOW reset p5-001 nvlink: 50 % of what its peers reach, by itself, and by more than its GPUs explain
        HRN-NIC-SLOW replace p5-002 rdmap113s0: 50 % of what its peers reach, with good partners
        HRN-PORT-SLOW reboot p5-002 fabric: 50 % of what its peers reach, on all of its NICs with good partners
        HRN-LINK-SLOW watch a-c link: 50 % of what its peers reach, with different nodes on both sides, which are good otherwise
        HRN-NODE-BROKEN reboot p5-001 node: every run on it failed, its partners' runs without it passed
        HRN-GPU-WRONG replace p5-001 gpu3: its results are wrong, or it gave none
        HRN-NIC-DEAD replace p5-002 rdmap113s0: no flow on it could be set up, with good partners
        ");
    }
}
