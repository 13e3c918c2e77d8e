//! What an isolation says: what it will cost, who the culprits are, and what it cost.

use super::rounds::Isolation;
use super::voice::{Voice, say};
use base::nodeset;
use config::inventory::Inventory;
use model::exit_code;
use verdict::isolate::code::Code;
use verdict::isolate::evidence::{Evidence, Line};
use verdict::isolate::fleetwide::Fleetwide;
use verdict::isolate::outlook::Outlook;
use verdict::isolate::{Conclusion, Named, Place};

pub(crate) fn heading(isolation: &Isolation) {
    let asked = &isolation.asked;
    let groups = match asked.groups.len() {
        0 => "no topology groups known".to_owned(),
        n => format!("{n} topology groups"),
    };
    say!(
        isolation.voice,
        "isolate {} by `{}` on {}: {} nodes, {groups}{}",
        asked.suite,
        asked.case,
        nodeset::fold(&asked.nodes),
        asked.nodes.len(),
        simulated(&isolation.inventory)
    );
}

fn simulated(inventory: &Inventory) -> &'static str {
    if inventory.is_simulated() { " (SIMULATED)" } else { "" }
}

/// The least is that of a healthy cluster; the most, of two faults and much noise.
pub(crate) fn outlook(voice: Voice, outlook: &Outlook, seconds_each: f64, budget: Option<f64>) {
    let hours = |node_runs: usize| node_runs as f64 * seconds_each / 3600.0;
    let (best, worst) = (&outlook.best, &outlook.worst);
    say!(
        voice,
        "expected: rounds {} to {}, runs {} to {}, node-hours {:.2} to {:.2} (nothing found; two faults and much noise)",
        best.rounds,
        worst.rounds,
        best.runs,
        worst.runs,
        hours(best.node_runs),
        hours(worst.node_runs)
    );
    if let Some(budget) = budget {
        say!(voice, "budget: {budget} node-hours");
    }
}

pub(crate) fn evidence(voice: Voice, inventory: &Inventory, id: &str, found: &Evidence) {
    say!(voice, "the evidence of a run explains it, nothing is launched{}: {id}", simulated(inventory));
    found.lines.iter().for_each(|line| told(voice, line));
}

/// Where too few nodes are left to look for what they do not explain.
pub(crate) fn evidence_alone(voice: Voice, found: &Evidence, left: usize) {
    found.lines.iter().for_each(|line| told(voice, line));
    say!(
        voice,
        "could not tell whether that is all: too few nodes are left to compare with each other: {left}"
    );
}

/// What was odd, and blames nobody.
pub(crate) fn hints(voice: Voice, hints: &[String]) {
    hints
        .iter()
        .take(MOST_HINTS)
        .for_each(|hint| say!(voice, "hint, nothing else speaks against it: {hint}"));
    if hints.len() > MOST_HINTS {
        say!(voice, "hints, more of them: {}", hints.len() - MOST_HINTS);
    }
}

const MOST_HINTS: usize = 9;

/// Who is named, by the evidence at hand and by the rounds; gives these lines back.
pub(crate) fn culprits(isolation: &Isolation, conclusion: &Conclusion) -> Vec<Line> {
    let mut lines = isolation.known.clone();
    lines.extend(conclusion.named.iter().map(|named| line(isolation, named)));
    lines.iter().for_each(|line| told(isolation.voice, line));
    lines
}

/// What is said beside the culprits, what it took, and the exit code.
pub(crate) fn end(isolation: &Isolation, conclusion: &Conclusion, culprits: usize, all: &Fleetwide) -> i32 {
    let name = |node: usize| isolation.asked.nodes.get(node).cloned().unwrap_or_default();
    if !conclusion.suspects.is_empty() {
        let suspects: Vec<String> = conclusion.suspects.iter().map(|node| name(*node)).collect();
        say!(
            isolation.voice,
            "suspects, slow by less than is looked for or not surely: {}",
            nodeset::fold(&suspects)
        );
    }
    conclusion
        .open
        .iter()
        .for_each(|open| say!(isolation.voice, "could not tell: {}", named(isolation, open)));
    conclusion.notes.iter().for_each(|note| say!(isolation.voice, "note: {}", named(isolation, note)));
    fleetwide(isolation, all, culprits == 0);
    say!(
        isolation.voice,
        "looked for: what costs {:.0} % or more, since runs of a kind differ by {:.1} %",
        conclusion.looked_for * 100.0,
        conclusion.spread * 100.0
    );
    sum_of(isolation, culprits);
    // Whoever is slow with all others is nobody's fault alone: who it is could not be told.
    let is_certain = conclusion.is_certain() && !matches!(all, Fleetwide::Slow(_));
    match (culprits == 0, is_certain) {
        (false, _) => exit_code::FAILED,
        (true, true) => exit_code::PASSED,
        (true, false) => exit_code::INCONCLUSIVE,
    }
}

pub(crate) fn budget(isolation: &Isolation, needed: f64) -> i32 {
    isolation.known.iter().for_each(|line| told(isolation.voice, line));
    say!(
        isolation.voice,
        "could not tell: the next round needs about {needed:.2} node-hours, {:.2} are used of the budget: {}",
        isolation.node_hours(),
        isolation.asked.budget.unwrap_or_default()
    );
    sum_of(isolation, isolation.known.len());
    exit_code::INCONCLUSIVE
}

/// A line of its own code, which blames no node and drains none.
fn fleetwide(isolation: &Isolation, all: &Fleetwide, is_nobody: bool) {
    match all {
        Fleetwide::Good => {}
        Fleetwide::Slow(evidence) => {
            let severity = Code::find(FLEET_SLOW).map_or("configure", |code| code.severity.name());
            let nodes = nodeset::fold(&isolation.asked.nodes);
            say!(isolation.voice, "{FLEET_SLOW} {severity} {nodes} all: {evidence}");
        }
        // Where somebody is named, that is what is wrong.
        Fleetwide::Unknown(_) if !is_nobody => {}
        Fleetwide::Unknown(why) => {
            say!(isolation.voice, "note: whether all are slow alike could not be told: {why}");
        }
    }
}

const FLEET_SLOW: &str = "HRN-FLEET-SLOW";

fn told(voice: Voice, line: &Line) {
    say!(voice, "{line}");
    if let Some(code) = Code::find(line.code).filter(|code| code.drains) {
        say!(voice, "  {}", code.drain(&line.node, &line.part));
    }
}

fn sum_of(isolation: &Isolation, culprits: usize) {
    if isolation.simulated {
        say!(isolation.voice, "SIMULATED: nothing of this was measured on real hardware");
    }
    sum(isolation.voice, culprits, isolation.runs(), isolation.asked.nodes.len(), isolation.node_hours());
}

pub(crate) fn sum(voice: Voice, culprits: usize, runs: usize, nodes: usize, node_hours: f64) {
    let pairs = nodes * nodes.saturating_sub(1) / 2;
    say!(voice, "culprits {culprits}, runs {runs} (all pairs: {pairs}), node-hours {node_hours:.2}");
}

fn line(isolation: &Isolation, named: &Named) -> Line {
    let asked = &isolation.asked;
    line_of(&asked.nodes, &asked.groups, &isolation.inventory.instance.nics, named)
}

/// What is named by number, by name.
pub(crate) fn line_of(nodes: &[String], groups: &[String], nics: &[String], named: &Named) -> Line {
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
        // So little is left of nothing that is only slow.
        left if left < 0.02 && matches!(named.place, Place::Node(_) | Place::Somewhere(_)) => {
            ("HRN-NODE-BROKEN", "no run on it ended well, and its partners' runs without it did".to_owned())
        }
        left if left < 0.02 && matches!(named.place, Place::Gpu(..)) => {
            ("HRN-GPU-WRONG", "its results are wrong, or it gave none".to_owned())
        }
        left if left < 0.02 && matches!(named.place, Place::Nic(..)) => {
            ("HRN-NIC-DEAD", "no flow on it came about, with good partners".to_owned())
        }
        left => (
            Code::of(named.place).name,
            format!("{:.0} % of what its like reach, {}", left * 100.0, how(named.place)),
        ),
    };
    Line { code, node: subject, part, evidence }
}

fn how(place: Place) -> &'static str {
    match place {
        Place::Node(_) => "in runs with good partners, by itself, and on each of its GPUs",
        Place::Somewhere(_) => "in runs with good partners, and in none of its parts by itself",
        Place::Gpu(..) => "by itself",
        Place::NvLink(_) => "by itself, and more than its GPUs tell",
        Place::Nic(..) => "with good partners",
        Place::Port(_) => "on all of its NICs with good partners",
        Place::Link(..) => "with different nodes on both sides, which are good otherwise",
    }
}

/// The strategy counts nodes; a person knows them by name.
fn named(isolation: &Isolation, text: &str) -> String {
    let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
    let mut before = String::new();
    for word in &mut words {
        let number = word.trim_end_matches([',', ':']).parse::<usize>();
        if before == "node"
            && let Ok(node) = number
            && let Some(name) = isolation.asked.nodes.get(node)
        {
            *word = word.replace(&node.to_string(), name);
        }
        before = word.clone();
    }
    words.join(" ")
}
