//! What a stored check measured of each of its nodes, in the form that falls are judged in.

use crate::session::preflight;
use base::text::show;
use config::inventory::Inventory;
use fleet::{Failure, Reading};
use metric::unit::{Better, Unit};
use metric::{Dim, DimValue, Dims, Metrics, Query};
use model::artefact::{
    CaseVerdict, Culprit, LeftOut, Plan, PlannedAssertion, PlannedCase, Probe, Value, Verdict,
};
use model::exit_code;
use recipes::recipe;
use std::collections::BTreeMap;
use store::Stored;
use verdict::isolate::code::Code;
use verdict::isolate::evidence::{self, EvidenceLine};

/// Cases that are named as those to take.
const MOST_CASES: usize = 3;
/// Of the whole node.
const NODE: &str = "node";

/// What came of a check.
#[derive(Debug, Default, PartialEq)]
pub(super) struct CheckResult {
    /// Of the nodes that were measured.
    pub readings: Vec<Reading>,
    /// The ids of parts, by node.
    pub hardware: BTreeMap<String, BTreeMap<String, String>>,
    /// Nodes of jobs, times their seconds.
    pub node_s: f64,
    /// How many nodes, and node-seconds, jobs that were measured took.
    pub measured: (usize, f64),
    /// Why nodes were not launched on.
    pub left_out: Vec<LeftOut>,
    /// What the suite failed on without blaming one node, by node.
    pub unattributed: BTreeMap<String, String>,
}

/// What the probe alone shows, where nothing was launched.
pub(super) fn from_probe(probe: &Probe, inventory: &Inventory) -> CheckResult {
    let mut values = BTreeMap::new();
    let left_out = preflight::unfit(probe, inventory);
    add_failures(&evidence::from_culprits(&[], &left_out).lines, &mut values);
    CheckResult {
        hardware: probe.nodes.iter().map(|node| (node.node.clone(), ids(&node.facts))).collect(),
        readings: values.into_values().collect(),
        left_out,
        ..CheckResult::default()
    }
}

fn add_failures(lines: &[EvidenceLine], values: &mut BTreeMap<String, Reading>) {
    for line in lines.iter().filter(|line| is_of_node(line.code)) {
        let failures = &mut reading(values, &line.node).failures;
        if !failures.iter().any(|failure| failure.part == line.part) {
            failures.push(Failure { part: line.part.clone(), code: line.code.to_owned() });
        }
    }
}

/// Reads the artefacts of a run.
pub(super) fn read(stored: &Stored, inventory: &Inventory) -> Result<CheckResult, String> {
    let text = |error: store::StoreError| error.to_string();
    let mut result = CheckResult::default();
    let mut values: BTreeMap<String, Reading> = BTreeMap::new();
    let mut seconds_of: BTreeMap<&str, f64> = BTreeMap::new();
    for case in &stored.plan.cases {
        let jobs = stored.jobs(&case.name).map_err(text)?.map(|jobs| jobs.jobs).unwrap_or_default();
        for planned in &case.jobs {
            let seconds = jobs.iter().find(|job| job.name == planned.name).and_then(|job| job.seconds);
            let seconds = seconds.filter(|seconds| seconds.is_finite() && *seconds > 0.0).unwrap_or_default();
            result.node_s += seconds * planned.nodes.len() as f64;
            for node in &planned.nodes {
                *seconds_of.entry(node).or_default() += seconds;
            }
        }
        let verdict = stored.verdict(&case.name).map_err(text)?;
        let metrics = stored.metrics(&case.name).map_err(text)?;
        if let (Some(verdict), Some(metrics)) = (verdict, metrics) {
            add(case, &verdict, &metrics, &mut values);
        }
    }
    let summary = stored.summary().map_err(text)?;
    let failed = summary.as_ref().is_some_and(|it| it.exit_code == exit_code::FAILED);
    let culprits = summary.map(|it| it.culprits).unwrap_or_default();
    if let Some(probe) = stored.probe().map_err(text)? {
        let from_probe = from_probe(&probe, inventory);
        (result.hardware, result.left_out) = (from_probe.hardware, from_probe.left_out);
    }
    let lines = evidence::from_culprits(&culprits, &result.left_out).lines;
    add_failures(&lines, &mut values);
    values.retain(|node, _| inventory.nodes.contains(node));
    result.unattributed = unattributed(&culprits, &lines, failed, &stored.plan.nodes);
    for node in values.keys() {
        let seconds = seconds_of.get(node.as_str()).copied().unwrap_or_default();
        result.measured = (result.measured.0 + 1, result.measured.1 + seconds);
    }
    result.readings = values.into_values().collect();
    Ok(result)
}

/// What the suite failed on without blaming one node, by the nodes that it is about. A check whose run failed is never good.
fn unattributed(
    culprits: &[Culprit],
    lines: &[EvidenceLine],
    failed: bool,
    nodes: &[String],
) -> BTreeMap<String, String> {
    let mut why = BTreeMap::new();
    // What was not measured counts for nothing.
    if !failed {
        return why;
    }
    let mut add = |nodes: &[String], text: &str| {
        for node in nodes {
            why.entry(node.clone()).or_insert_with(|| text.to_owned());
        }
    };
    for culprit in culprits {
        match culprit {
            Culprit::Suspects { nodes, evidence } => add(nodes, evidence),
            Culprit::Fleet { evidence } => add(nodes, evidence),
            Culprit::Culprit { .. } => {}
        }
    }
    for line in lines.iter().filter(|line| ["HRN-FLEET-SLOW", "HRN-LINK-SLOW"].contains(&line.code)) {
        add(nodes, &line.evidence);
    }
    if why.is_empty() && !lines.iter().any(|line| is_of_node(line.code)) {
        let text = "its run failed; `harness runs show` shows on what";
        nodes.iter().for_each(|node| drop(why.insert(node.clone(), text.to_owned())));
    }
    why
}

/// What the cluster lost, and what all nodes or the way between two share, is no failure of a node.
fn is_of_node(code: &str) -> bool {
    Code::find(code).is_some()
        && !["HRN-NODE-LOST", "HRN-FLEET-SLOW", "HRN-FLEET-UNCONNECTED", "HRN-LINK-SLOW"].contains(&code)
}

fn reading<'a>(values: &'a mut BTreeMap<String, Reading>, node: &str) -> &'a mut Reading {
    let new = || Reading { node: node.to_owned(), ..Reading::default() };
    values.entry(node.to_owned()).or_insert_with(new)
}

fn add(case: &PlannedCase, verdict: &CaseVerdict, metrics: &Metrics, values: &mut BTreeMap<String, Reading>) {
    let judged: BTreeMap<&str, &Verdict> =
        verdict.verdicts.iter().map(|one| (one.name.as_str(), one)).collect();
    for assertion in case.assertions.iter().filter(|it| is_rate(it.unit) && it.better != Better::Neither) {
        if !judged.get(assertion.name.as_str()).is_some_and(|one| one.is_measured()) {
            continue;
        }
        let whole = [Dims::new()];
        let parts = if assertion.parts.is_empty() { &whole[..] } else { &assertion.parts[..] };
        for part in parts {
            let mut dims = assertion.dims.clone();
            part.iter().for_each(|(dim, value)| dims.set(dim, value.clone()));
            let query = Query { metric: assertion.metric.clone(), dims };
            for row in metrics.select_of_jobs(&query, &assertion.jobs) {
                let Some(node) = node_of(case, assertion, &row.dims) else { continue };
                if !(row.value.is_finite() && row.value > 0.0) {
                    continue;
                }
                let sign = if assertion.better == Better::Lower { -1.0 } else { 1.0 };
                let value = sign * row.value.ln();
                let test = format!("{} {}", case.name, test_of(assertion));
                let of_test = reading(values, &node).values.entry(test).or_default();
                let least = of_test.entry(part_of(&row.dims)).or_insert(value);
                *least = least.min(value);
            }
        }
    }
}

/// An error where no case that is asked for gives a number of one node: checks would cost time and measure nothing.
pub(super) fn refused(plan: &Plan, named: &[String]) -> Result<(), String> {
    let mut asked = plan.cases.iter().filter(|case| named.is_empty() || named.contains(&case.name));
    if asked.any(|case| case.skip.is_some() || gives_numbers(case)) {
        return Ok(());
    }
    let what = match named {
        [] => "the suite gives".to_owned(),
        [one] => format!("case `{}` gives", show(one)),
        _ => "the cases give".to_owned(),
    };
    let usable = plan.cases.iter().filter(|case| case.skip.is_none() && gives_numbers(case));
    let usable: Vec<String> = usable.take(MOST_CASES).map(|case| format!("`{}`", show(&case.name))).collect();
    Err(match usable.as_slice() {
        [] => format!("{what} no number of one node, which is what a watch follows; take another suite"),
        some => {
            format!("{what} no number of one node, which is what a watch follows; take {}", some.join(", "))
        }
    })
}

/// Whether some number of the case is one that `add` would take.
fn gives_numbers(case: &PlannedCase) -> bool {
    let is_single =
        |job: &String| case.jobs.iter().any(|planned| planned.name == *job && planned.nodes.len() == 1);
    // What recipes of the project declare is not known before it is measured.
    let is_per_node = |metric: &str| recipe::built_in(metric).is_none_or(|it| it.dims.contains(&Dim::Node));
    case.assertions.iter().any(|it| {
        is_rate(it.unit)
            && it.better != Better::Neither
            && (it.node.is_some() || it.jobs.iter().any(is_single) || is_per_node(&it.metric))
    })
}

fn is_rate(unit: Unit) -> bool {
    !matches!(unit, Unit::Count | Unit::Ratio | Unit::Bytes)
}

/// The one node that a number is of; what several nodes made together is of none of them.
fn node_of(case: &PlannedCase, assertion: &PlannedAssertion, dims: &Dims) -> Option<String> {
    let named = dims.word(Dim::Node).or(assertion.node.as_deref());
    if let Some(named) = named {
        return Some(named.to_owned());
    }
    let job = dims.word(Dim::Job)?;
    match case.jobs.iter().find(|planned| planned.name == job)?.nodes.as_slice() {
        [node] => Some(node.clone()),
        _ => None,
    }
}

fn part_of(dims: &Dims) -> String {
    match (dims.word(Dim::Nic), dims.number(Dim::Gpu)) {
        (Some(nic), _) => nic.to_owned(),
        (None, Some(gpu)) => format!("gpu{gpu}"),
        (None, None) => NODE.to_owned(),
    }
}

/// The metric, and what of it: an operation, a size, a class.
fn test_of(assertion: &PlannedAssertion) -> String {
    let mut text = assertion.metric.clone();
    for (dim, value) in assertion.dims.iter() {
        match (dim, value) {
            (Dim::SizeBytes, DimValue::Number(bytes)) => text += &format!(" {}", base::size::show(*bytes)),
            (Dim::Op | Dim::Kernel | Dim::Class | Dim::Direction | Dim::Place, value) => {
                text += &format!(" {value}");
            }
            _ => {}
        }
    }
    text
}

/// Of GPUs and NICs, by their places: what a node's past is kept by.
fn ids(facts: &BTreeMap<String, Value>) -> BTreeMap<String, String> {
    let mut ids = BTreeMap::new();
    for key in ["gpu_ids", "nic_ids"] {
        let Some(Value::Names(rows)) = facts.get(key) else { continue };
        for row in rows {
            let mut words = row.split(' ');
            if let (Some(place), Some(id)) = (words.next(), words.next())
                && id.bytes().any(|byte| byte.is_ascii_hexdigit() && byte != b'0')
            {
                ids.insert(place.to_owned(), id.to_owned());
            }
        }
    }
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_zeros_are_none() {
        let names = |rows: &[&str]| Value::Names(rows.iter().map(|row| (*row).to_owned()).collect());
        let facts = BTreeMap::from([
            ("gpu_ids".to_owned(), names(&["gpu0 GPU-5e3f 165", "gpu1"])),
            ("nic_ids".to_owned(), names(&["rdmap79s0 0000000000000000 x", "rdmap80s0 00000000000000a1 x"])),
        ]);
        let ids = ids(&facts);
        let ids: Vec<(&str, &str)> = ids.iter().map(|(place, id)| (place.as_str(), id.as_str())).collect();
        assert_eq!(ids, [("gpu0", "GPU-5e3f"), ("rdmap80s0", "00000000000000a1")]);
    }

    #[test]
    fn a_run_that_failed_without_a_culprit_is_no_good_check() {
        let nodes = ["a".to_owned(), "b".to_owned(), "c".to_owned()];
        let line = |code| EvidenceLine {
            code,
            node: "a".to_owned(),
            part: "node".to_owned(),
            evidence: "low".to_owned(),
        };
        let alike = Culprit::Fleet { evidence: "all alike".to_owned() };
        let pair = Culprit::Suspects { nodes: nodes[..2].to_vec(), evidence: "a pair".to_owned() };
        let count = |culprits: &[Culprit], lines: &[EvidenceLine], failed| {
            unattributed(culprits, lines, failed, &nodes).len()
        };
        assert_eq!(count(&[], &[], false), 0);
        assert_eq!(count(std::slice::from_ref(&alike), &[], true), 3);
        assert_eq!(count(&[alike], &[], false), 0);
        assert_eq!(count(&[pair], &[line("HRN-NIC-DEAD")], true), 2);
        assert_eq!(count(&[], &[line("HRN-NIC-DEAD")], true), 0);
        assert_eq!(count(&[], &[line("HRN-LINK-SLOW")], true), 3);
        assert_eq!(count(&[], &[], true), 3);
    }

    #[test]
    fn what_the_cluster_lost_is_no_failure_of_a_node() {
        assert!(is_of_node("HRN-NIC-DEAD") && is_of_node("HRN-NODE-UNFIT"));
        for code in ["HRN-NODE-LOST", "HRN-FLEET-SLOW", "HRN-FLEET-UNCONNECTED", "HRN-LINK-SLOW", "X"] {
            assert!(!is_of_node(code), "{code}");
        }
    }
}
