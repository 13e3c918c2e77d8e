//! Isolates the faulty component of a red run: parts that a measurement names by itself, then nodes that launchers
//! name, then the one node that is in every failed job and in no good one. A good node is never named.

use super::common_failure::HANGS;
use super::nic_rate::NicRateCache;
use super::trainings_alike;
use super::widespread_parts;
use super::{CaseData, Verdict};
use crate::isolate::code::Code;
use crate::isolate::siblings::{self, Devices, Part, Rate};
use metric::{Blames, Names};
use model::artefact::{BELOW_FLOOR, Culprit, JobOutcome, LEFT_OUT, PlannedAssertion, Status, WorkKind};
use recipes::catalogue::Catalogue;
use recipes::recipe;
use std::collections::{BTreeMap, BTreeSet};

/// The parts that this case's measurements name by themselves.
pub(crate) fn find_in_case(data: &CaseData, verdicts: &[Verdict], nic_rates: &NicRateCache) -> Vec<Culprit> {
    let mut named: Vec<(&str, Part)> = Vec::new();
    for (assertion, verdict) in data.case.assertions.iter().zip(verdicts) {
        if verdict.status == Status::Fail && verdict.cause.as_deref() != Some(BELOW_FLOOR) {
            let parts = named_by(data, assertion, verdict).into_iter();
            named.extend(parts.map(|part| (assertion.metric.as_str(), part)));
        }
    }
    let (named, alike) = widespread_parts::split(data, named);
    let mut parts = first_of_each(data, named);
    parts.extend(nic_rates.parts());
    let devices = Devices { nics: data.instance.nics.len(), gpus: data.instance.gpus as usize };
    let mut culprits: Vec<Culprit> = siblings::unite(parts, devices).into_iter().map(from_part).collect();
    culprits.extend(nic_rates.others());
    culprits.extend(alike);
    culprits
}

/// Of several numbers by which a program speaks against one part, the one that is asserted first says what ails it.
fn first_of_each(data: &CaseData, named: Vec<(&str, Part)>) -> Vec<Part> {
    let is_coded = |metric: &str| {
        recipe::built_in(metric).is_some_and(|metric| matches!(metric.names, Names::Coded(..)))
    };
    let place = |metric: &str| data.case.assertions.iter().position(|assertion| assertion.metric == metric);
    let (mut coded, others): (Vec<_>, Vec<_>) = named.into_iter().partition(|(metric, _)| is_coded(metric));
    coded.sort_by_key(|(metric, _)| place(metric));
    let mut seen: BTreeSet<(String, String)> = BTreeSet::new();
    coded.retain(|(_, part)| seen.insert((part.node.clone(), part.part.clone())));
    others.into_iter().chain(coded).map(|(_, part)| part).collect()
}

fn from_part(part: Part) -> Culprit {
    let Part { node, part, evidence, code, .. } = part;
    Culprit::Culprit { node, part, evidence, code: code.map(str::to_owned) }
}

/// A culprit of a run always has a code: one whose part is not known has that of such nodes.
fn with_code(part: Part) -> Culprit {
    let culprit = from_part(part);
    let found = Code::for_culprit(&culprit).map(|code| code.name.to_owned());
    match culprit {
        Culprit::Culprit { node, part, evidence, code } => {
            Culprit::Culprit { node, part, evidence, code: code.or(found) }
        }
        other => other,
    }
}

fn part(node: &str, part: &str, evidence: String) -> Part {
    let code = Code::from_evidence(part, &evidence).map(|code| code.name);
    Part { node: node.to_owned(), part: part.to_owned(), code, evidence, rate: None }
}

/// Only what a single part can be responsible for: a device that is not there or moved nothing, a GPU that ran alone.
fn named_by(data: &CaseData, assertion: &PlannedAssertion, verdict: &Verdict) -> Vec<Part> {
    let Some(metric) = recipe::built_in(&assertion.metric) else { return Vec::new() };
    let names = metric.names;
    if let Names::FirstFinding(code) = names {
        return first_finding(data, assertion, code);
    }
    let Some(node) = &assertion.node else { return Vec::new() };
    if let Some((of_node, code)) = metric.culprit_code(&verdict.message) {
        return coded(assertion, verdict, node, assertion.part.as_deref().or(of_node), code);
    }
    if let Names::Findings(code) = names {
        return findings(data, assertion, node, code);
    }
    let parts: Vec<(String, f64)> = match (&assertion.part, verdict.observed) {
        (Some(part), Some(observed)) => vec![(part.clone(), observed)],
        (Some(_), None) => return Vec::new(),
        (None, _) => odd_parts(data, assertion),
    };
    let evidence = |part: &str, observed: f64| match names {
        Names::Unlisted if observed == 0.0 => {
            Some(format!("not listed, expected by the profile of {}", data.instance.name))
        }
        // A share is no rate; a NIC that moved something is never named by it.
        Names::Unmoved if observed == 0.0 => {
            Some(format!("listed, but moved no byte in `{}` while its peers did", data.case.name))
        }
        Names::GpuAlone if part.starts_with("gpu") => Some(verdict.message.clone()),
        _ => None,
    };
    parts
        .into_iter()
        .filter_map(|(name, observed)| {
            let named = part(node, &name, evidence(&name, observed)?);
            let expected = verdict.lower.zip(verdict.upper).map(|(lower, upper)| (lower + upper) / 2.0);
            let rate = Rate { value: observed, healthy: expected.or(verdict.lower), unit: assertion.unit };
            Some(Part { rate: (named.code == Some("HRN-GPU-SLOW")).then_some(rate), ..named })
        })
        .collect()
}

/// What a program measured that tests one node by itself: the metric says what it speaks against.
fn coded(
    assertion: &PlannedAssertion,
    verdict: &Verdict,
    node: &str,
    part: Option<&str>,
    code: &'static str,
) -> Vec<Part> {
    let (Some(part), Some(value)) = (part, verdict.observed) else { return Vec::new() };
    let expected = verdict.lower.zip(verdict.upper).map(|(lower, upper)| (lower + upper) / 2.0);
    let rate = (code == "HRN-GPU-SLOW").then_some(Rate {
        value,
        healthy: expected.or(verdict.lower),
        unit: assertion.unit,
    });
    // The line of a culprit begins with its node.
    let evidence = verdict.message.replacen(&format!(" on {node}:"), ":", 1);
    vec![Part { node: node.to_owned(), part: part.to_owned(), code: Some(code), evidence, rate }]
}

/// The parts that the recipe is sure of, such as stragglers: it compared the ranks with each other, so that a run with another partner
/// would add nothing.
fn findings(data: &CaseData, assertion: &PlannedAssertion, node: &str, code: &str) -> Vec<Part> {
    let jobs = assertion.jobs.iter().filter_map(|job| data.analysis.jobs.get(job));
    let findings = jobs.flat_map(|analysis| &analysis.findings);
    findings
        .filter(|finding| finding.code == code && finding.node.as_deref() == Some(node))
        .map(|finding| part(node, finding.part.as_deref().unwrap_or("node"), finding.message.clone()))
        .collect()
}

/// The parts that the program itself names, one in each job, such as the rank whose loss is not finite. What most nodes have
/// alike comes from the program or its data.
fn first_finding(data: &CaseData, assertion: &PlannedAssertion, code: &str) -> Vec<Part> {
    let jobs = || data.case.jobs.iter().filter(|job| assertion.jobs.contains(&job.name));
    let mut parts: BTreeMap<(&str, &str), Part> = BTreeMap::new();
    for analysis in jobs().filter_map(|job| data.analysis.jobs.get(&job.name)) {
        let found = analysis.findings.iter().find(|finding| finding.code == code);
        let Some((finding, node)) = found.and_then(|it| Some((it, it.node.as_deref()?))) else { continue };
        let name = finding.part.as_deref().unwrap_or("node");
        parts.entry((node, name)).or_insert_with(|| part(node, name, finding.message.clone()));
    }
    let named: BTreeSet<&str> = parts.keys().map(|(node, _)| *node).collect();
    let all: BTreeSet<&String> = jobs().flat_map(|job| &job.nodes).collect();
    match named.len() > 1 && are_most(named.len(), all.len()) {
        true => Vec::new(),
        false => parts.into_values().collect(),
    }
}

/// The parts of an assertion over a whole node that are at zero.
fn odd_parts(data: &CaseData, assertion: &PlannedAssertion) -> Vec<(String, f64)> {
    let measured = super::Measured::select(data.metrics, assertion, &assertion.jobs);
    measured
        .values()
        .filter(|(_, value)| *value == 0.0)
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// The nodes at fault by the run as a whole, given the parts that are named already.
pub fn culprits_of_run(outcomes: &[JobOutcome], named: &[Culprit], catalogue: &Catalogue) -> Vec<Culprit> {
    let mut culprits = Vec::new();
    let guilty_parts: BTreeSet<&str> = named
        .iter()
        .filter_map(|culprit| match culprit {
            Culprit::Culprit { node, .. } => Some(node.as_str()),
            _ => None,
        })
        .collect();
    let causes: BTreeSet<&str> =
        outcomes.iter().filter_map(|outcome| outcome.bad.as_ref().map(|bad| bad.cause.as_str())).collect();
    // A job that stalled has hung, and was ended sooner.
    let kind = |cause: &str| if HANGS.contains(&cause) { HANGS[0].to_owned() } else { cause.to_owned() };
    let kinds_of_causes: BTreeSet<String> = causes.into_iter().map(kind).collect();
    for cause in kinds_of_causes.iter().map(String::as_str) {
        let (bad, good): (Vec<&JobOutcome>, Vec<&JobOutcome>) = outcomes
            .iter()
            .partition(|outcome| outcome.bad.as_ref().is_some_and(|bad| kind(&bad.cause) == cause));
        let bad = without_widespread(bad, outcomes);
        // What went badly for another cause says nothing about this one, nor does a workload that cannot show it.
        let kinds: BTreeSet<WorkKind> = bad.iter().map(|outcome| outcome.kind).collect();
        let good: Vec<&JobOutcome> = good
            .into_iter()
            .filter(|outcome| outcome.bad.is_none() && kinds.contains(&outcome.kind))
            .collect();
        let named_by_launcher: BTreeMap<&str, &str> = bad
            .iter()
            .filter_map(|outcome| outcome.bad.as_ref())
            .filter_map(|bad| Some((bad.node.as_deref()?, bad.evidence.as_str())))
            .rev()
            .collect();
        for (node, evidence) in &named_by_launcher {
            culprits.push(node_culprit(node, cause, evidence));
        }
        let explained: BTreeSet<&str> =
            named_by_launcher.keys().copied().chain(guilty_parts.iter().copied()).collect();
        let evidence = |outcome: &JobOutcome| {
            let (job, case) = (&outcome.job, &outcome.case);
            let seen = outcome.bad.as_ref().map(|bad| bad.evidence.as_str()).unwrap_or_default();
            format!("job {job} of `{case}`: {seen}")
        };
        culprits.extend(eliminate(&bad, &good, &explained, cause, &evidence));
    }
    culprits.extend(slow_nodes(outcomes, &guilty_parts, &culprits, catalogue));
    culprits
}

fn nodes_of<'a>(outcomes: impl Iterator<Item = &'a JobOutcome>) -> BTreeSet<String> {
    outcomes.flat_map(|outcome| outcome.nodes.iter().cloned()).collect()
}

/// Fewer nodes than these are most of a case's only where they are all of them.
const FEWEST_OF_MOST: usize = 3;

/// Whether what so many of a case's nodes share is the case's own fault: its program, its limit or its launcher.
pub(crate) fn are_most(bad: usize, all: usize) -> bool {
    (all > 1 && bad == all) || (bad >= FEWEST_OF_MOST && bad * 2 > all)
}

/// Whether so few are unlike those that did well that they are the odd ones. Of two halves either may be.
pub(crate) fn are_few(odd: usize, well: usize) -> bool {
    odd < well || (odd == 1 && well == 1)
}

/// Without those of a case in which most nodes went badly alike: that is the case's fault, or the launcher's.
fn without_widespread<'a>(mut bad: Vec<&'a JobOutcome>, all: &[JobOutcome]) -> Vec<&'a JobOutcome> {
    let cases: BTreeSet<&str> = bad.iter().map(|outcome| outcome.case.as_str()).collect();
    let is_widespread = |case: &str| {
        let of_case = || all.iter().filter(|outcome| outcome.case == case);
        let nodes = nodes_of(of_case());
        let cleared = nodes_of(of_case().filter(|outcome| outcome.bad.is_none()));
        let own = || bad.iter().filter(|outcome| outcome.case == case);
        let blamed: Vec<BTreeSet<String>> = own()
            .map(|outcome| match outcome.bad.as_ref().and_then(|bad| bad.node.clone()) {
                Some(node) => BTreeSet::from([node]),
                None => outcome.nodes.iter().cloned().collect(),
            })
            .collect();
        let in_all =
            blamed.iter().skip(1).fold(blamed.first().cloned().unwrap_or_default(), |all, more| &all & more);
        let left: BTreeSet<&String> =
            blamed.iter().flatten().filter(|node| !cleared.contains(*node)).collect();
        in_all.is_empty() && are_most(left.len(), nodes.len())
    };
    // Each node's own probe is evidence by itself.
    let left_out = |outcome: &JobOutcome| outcome.bad.as_ref().is_some_and(|bad| bad.cause == LEFT_OUT);
    let widespread: BTreeSet<String> = cases
        .into_iter()
        .filter(|case| {
            !bad.iter().any(|outcome| outcome.case == *case && left_out(outcome)) && is_widespread(case)
        })
        .map(str::to_owned)
        .collect();
    bad.retain(|outcome| !widespread.contains(&outcome.case));
    bad
}

/// Measured failures of whole jobs, where no part explains them.
fn slow_nodes(
    outcomes: &[JobOutcome],
    guilty_parts: &BTreeSet<&str>,
    named: &[Culprit],
    catalogue: &Catalogue,
) -> Vec<Culprit> {
    let mut culprits = Vec::new();
    let mut alike: Vec<(&str, &JobOutcome)> = Vec::new();
    let mut explained = guilty_parts.clone();
    explained.extend(named.iter().filter_map(|culprit| match culprit {
        Culprit::Culprit { node, .. } => Some(node.as_str()),
        _ => None,
    }));
    let metrics: BTreeSet<&str> = outcomes
        .iter()
        .flat_map(|outcome| {
            outcome.judged.iter().filter(|(_, failed)| **failed).map(|(metric, _)| metric.as_str())
        })
        .filter(|metric| matches!(blames(catalogue, metric), Blames::Node | Blames::OddNode))
        .collect();
    for metric in metrics {
        let (mut bad, good): (Vec<&JobOutcome>, Vec<&JobOutcome>) = outcomes
            .iter()
            .filter(|outcome| outcome.judged.contains_key(metric))
            .partition(|outcome| outcome.judged.get(metric) == Some(&true));
        if trainings_alike::is_of_training(catalogue, metric) {
            let is_alike = |outcome: &&JobOutcome| {
                let has_good = good.iter().any(|good| good.case == outcome.case);
                !has_good && trainings_alike::none_is_late(outcome, catalogue)
            };
            let (all, some): (Vec<&JobOutcome>, Vec<&JobOutcome>) = bad.into_iter().partition(is_alike);
            bad = some;
            alike.extend(all.into_iter().map(|outcome| (metric, outcome)));
        }
        let bad = match blames(catalogue, metric) {
            Blames::OddNode => without_most(bad, &good),
            _ => {
                let (bad, fleet) = without_alike(bad, &good, &explained, metric);
                culprits.extend(fleet);
                bad
            }
        };
        let evidence = |outcome: &JobOutcome| match outcome.worst.get(metric) {
            Some(worst) => worst.clone(),
            // An outcome that an older version stored.
            None => format!("out of bounds in job {} of `{}`", outcome.job, outcome.case),
        };
        culprits.extend(eliminate(&bad, &good, &explained, metric, &evidence));
    }
    let unnamed = trainings_alike::unnamed(&alike, &explained, &culprits);
    culprits.extend(unnamed);
    culprits
}

/// What its recipe declares; a metric that no recipe declares blames no node.
pub(crate) fn blames(catalogue: &Catalogue, metric: &str) -> Blames {
    catalogue.metric(metric).map(|(_, metric)| metric.blames).unwrap_or_default()
}

/// Without the jobs of single nodes in a case that most of its nodes fail alike: such a limit says nothing about a node,
/// unless each of them has a culprit of its own.
fn without_alike<'a>(
    mut bad: Vec<&'a JobOutcome>,
    good: &[&JobOutcome],
    explained: &BTreeSet<&str>,
    metric: &str,
) -> (Vec<&'a JobOutcome>, Vec<Culprit>) {
    let cleared = nodes_of(good.iter().copied());
    let alone = |outcome: &JobOutcome| outcome.nodes.len() == 1;
    let cases: BTreeSet<String> = bad.iter().map(|outcome| outcome.case.clone()).collect();
    let mut fleet = Vec::new();
    for case in cases {
        let of_case = |outcome: &JobOutcome| outcome.case == case && alone(outcome);
        let failed = nodes_of(bad.iter().copied().filter(|outcome| of_case(outcome)));
        let all = failed.len() + nodes_of(good.iter().copied().filter(|outcome| of_case(outcome))).len();
        let is_explained = failed.iter().all(|node| explained.contains(node.as_str()));
        if is_explained || !are_most(failed.difference(&cleared).count(), all) {
            continue;
        }
        let worst = bad.iter().find(|outcome| of_case(outcome)).and_then(|outcome| outcome.worst.get(metric));
        let worst = worst.map(|worst| format!("; {worst}")).unwrap_or_default();
        let n = failed.len();
        let evidence =
            format!("{n} of {all} nodes fail `{metric}` alike in `{case}`: check its limit{worst}");
        fleet.push(Culprit::Fleet { evidence });
        bad.retain(|outcome| !of_case(outcome));
    }
    (bad, fleet)
}

/// Without the jobs of a case whose nodes did badly for the most part.
fn without_most<'a>(mut bad: Vec<&'a JobOutcome>, good: &[&JobOutcome]) -> Vec<&'a JobOutcome> {
    let of = |jobs: &[&JobOutcome], case: &str| {
        nodes_of(jobs.iter().copied().filter(|outcome| outcome.case == case))
    };
    let few: BTreeSet<String> = bad
        .iter()
        .map(|outcome| outcome.case.clone())
        .filter(|case| {
            let well = of(good, case);
            are_few(of(&bad, case).difference(&well).count(), well.len())
        })
        .collect();
    bad.retain(|outcome| few.contains(&outcome.case));
    bad
}

/// The nodes of bad jobs, less those of good jobs: one left is the culprit, several are suspects.
fn eliminate(
    bad: &[&JobOutcome],
    good: &[&JobOutcome],
    explained: &BTreeSet<&str>,
    cause: &str,
    evidence: &dyn Fn(&JobOutcome) -> String,
) -> Vec<Culprit> {
    let mut culprits = Vec::new();
    let cleared: BTreeSet<&str> =
        good.iter().flat_map(|outcome| outcome.nodes.iter().map(String::as_str)).collect();
    let mut guilty: BTreeSet<&str> = explained.clone();
    let mut left: Vec<&&JobOutcome> = bad.iter().collect();
    // A job on one node convicts that node, unless the node did well elsewhere; then jobs that hold a convicted node
    // need no second one.
    left.sort_by_key(|outcome| outcome.nodes.len());
    let mut open: Vec<(&JobOutcome, BTreeSet<&str>)> = Vec::new();
    for outcome in left {
        if outcome.nodes.iter().any(|node| guilty.contains(node.as_str())) {
            continue;
        }
        let suspects: BTreeSet<&str> =
            outcome.nodes.iter().map(String::as_str).filter(|node| !cleared.contains(node)).collect();
        match suspects.iter().next() {
            Some(node) if suspects.len() == 1 => {
                guilty.insert(node);
                culprits.push(node_culprit(node, cause, &evidence(outcome)));
            }
            _ => open.push((outcome, suspects)),
        }
    }
    open.retain(|(outcome, _)| !outcome.nodes.iter().any(|node| guilty.contains(node.as_str())));
    let Some((first, _)) = open.first() else { return culprits };
    // What remains in all of the jobs that no culprit explains.
    let common = open.iter().skip(1).fold(open[0].1.clone(), |all, (_, some)| &all & some);
    let mut common_nodes = common.iter();
    match (common_nodes.next(), common_nodes.next()) {
        (Some(node), None) => culprits.push(node_culprit(node, cause, &evidence(first))),
        (Some(_), Some(_)) => culprits.push(suspects(&common, cause, &evidence(first))),
        (None, _) => {
            let union: BTreeSet<&str> = open.iter().flat_map(|(_, some)| some.iter().copied()).collect();
            // Every node did well elsewhere: they are bad together only, and all of the job's are named.
            let all: BTreeSet<&str> =
                if union.is_empty() { first.nodes.iter().map(String::as_str).collect() } else { union };
            culprits.push(suspects(&all, cause, &evidence(first)));
        }
    }
    culprits
}

fn node_culprit(node: &str, cause: &str, evidence: &str) -> Culprit {
    from_part(part(node, "node", format!("{cause}: {evidence}")))
}

fn suspects(nodes: &BTreeSet<&str>, cause: &str, evidence: &str) -> Culprit {
    let nodes = nodes.iter().map(|node| (*node).to_owned()).collect();
    Culprit::Suspects { nodes, evidence: format!("{cause}: {evidence}") }
}

/// Each part once, with the first evidence; and no suspects where one of them is convicted.
pub fn merge(per_case: Vec<Culprit>, of_run: Vec<Culprit>) -> Vec<Culprit> {
    let mut seen: BTreeSet<(String, String)> = BTreeSet::new();
    let mut convicted: BTreeSet<String> = BTreeSet::new();
    let mut merged = Vec::new();
    let all: Vec<Culprit> = per_case.into_iter().chain(of_run).collect();
    for culprit in &all {
        if let Culprit::Culprit { node, part, .. } = culprit
            && seen.insert((node.clone(), part.clone()))
        {
            convicted.insert(node.clone());
            merged.push(culprit.clone());
        }
    }
    let parts = merged.into_iter().filter_map(|culprit| match culprit {
        Culprit::Culprit { node, part, evidence, code } => {
            let code = code.and_then(|code| Code::find(&code)).map(|code| code.name);
            Some(Part { node, part, code, evidence, rate: None })
        }
        _ => None,
    });
    let mut merged: Vec<Culprit> = siblings::absorb(parts.collect()).into_iter().map(with_code).collect();
    for culprit in all {
        match &culprit {
            Culprit::Suspects { nodes, .. }
                if !nodes.iter().any(|node| convicted.contains(node))
                    && seen.insert((nodes.join(" "), String::new())) =>
            {
                merged.push(culprit);
            }
            Culprit::Fleet { evidence } if seen.insert((String::new(), evidence.clone())) => {
                merged.push(culprit)
            }
            _ => {}
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::artefact::Bad;

    fn outcome(nodes: &[&str], bad: Option<(&str, Option<&str>)>) -> JobOutcome {
        JobOutcome {
            case: "c".into(),
            kind: WorkKind::Collective,
            job: nodes.join("+"),
            nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
            bad: bad.map(|(cause, node)| Bad {
                cause: cause.into(),
                node: node.map(str::to_owned),
                evidence: "seen".into(),
            }),
            judged: BTreeMap::new(),
            worst: Default::default(),
        }
    }

    fn lines(outcomes: &[JobOutcome]) -> Vec<String> {
        let culprits = merge(Vec::new(), culprits_of_run(outcomes, &[], &Catalogue::built_in()));
        culprits
            .iter()
            .map(|culprit| culprit.to_string().split(':').next().unwrap_or_default().to_owned())
            .collect()
    }

    #[test]
    fn a_node_named_by_the_launcher_comes_first() {
        let jobs = [outcome(&["n1", "n2"], Some(("NODE_FAIL", Some("n2")))), outcome(&["n1"], None)];
        assert_eq!(lines(&jobs), ["culprit n2 node"]);
    }

    #[test]
    fn the_node_in_all_that_hung_and_in_nothing_that_went_well_is_named() {
        let hang = Some(("hang", None));
        let jobs = [
            outcome(&["n1"], None),
            outcome(&["n2"], hang),
            outcome(&["n3"], None),
            outcome(&["n1", "n2"], hang),
            outcome(&["n1", "n2", "n3"], hang),
        ];
        assert_eq!(lines(&jobs), ["culprit n2 node"]);
        let jobs = [outcome(&["n1", "n2"], hang), outcome(&["n2", "n3"], hang), outcome(&["n1", "n3"], None)];
        assert_eq!(lines(&jobs), ["culprit n2 node"]);
    }

    #[test]
    fn the_one_node_that_all_bad_jobs_share_is_named_though_nothing_went_well() {
        let hang = Some(("hang", None));
        let jobs = [outcome(&["n1", "n2"], hang), outcome(&["n2", "n3"], hang), outcome(&["n2", "n4"], hang)];
        assert_eq!(lines(&jobs), ["culprit n2 node"]);
        let jobs = [outcome(&["n1", "n2", "n3"], hang), outcome(&["n1", "n2", "n4"], hang)];
        assert_eq!(lines(&jobs), ["suspects n1 n2"]);
    }

    #[test]
    fn a_node_is_not_cleared_by_work_that_could_not_show_the_cause_nor_by_another_failure() {
        let wrong = Some(("wrong-ranks", None));
        let mut flows = outcome(&["n1", "n2"], None);
        flows.kind = WorkKind::Flows;
        let jobs = [outcome(&["n1", "n2"], wrong), outcome(&["n1"], None), flows];
        assert_eq!(lines(&jobs), ["culprit n2 node"]);
        let jobs = [
            outcome(&["n1", "n2"], wrong),
            outcome(&["n1"], None),
            outcome(&["n2", "n3"], Some(("hang", Some("n3")))),
        ];
        assert_eq!(lines(&jobs), ["culprit n3 node", "culprit n2 node"]);
    }

    #[test]
    fn a_pair_alone_leaves_suspects() {
        let jobs = [outcome(&["n1", "n2"], Some(("hang", None))), outcome(&["n3", "n4"], None)];
        assert_eq!(lines(&jobs), ["suspects n1 n2"]);
    }

    #[test]
    fn two_bad_nodes_are_both_named_by_their_own_jobs() {
        let hang = Some(("hang", None));
        let jobs = [
            outcome(&["n1"], hang),
            outcome(&["n2"], None),
            outcome(&["n3"], hang),
            outcome(&["n1", "n2"], hang),
            outcome(&["n2", "n3"], hang),
        ];
        assert_eq!(lines(&jobs), ["culprit n1 node", "culprit n3 node"]);
    }

    #[test]
    fn a_failure_of_most_nodes_of_a_case_blames_no_node() {
        let hang = Some(("hang", None));
        let alone =
            ["n1", "n2", "n3", "n4"].map(|node| outcome(&[node], if node == "n4" { None } else { hang }));
        assert_eq!(lines(&alone), Vec::<String>::new());
        let named = ["n1", "n2", "n3"].map(|node| outcome(&[node], Some(("rank-failed", Some(node)))));
        assert_eq!(lines(&named), Vec::<String>::new());
        let half =
            ["n1", "n2", "n3", "n4"].map(|node| outcome(&[node], if node < "n3" { hang } else { None }));
        assert_eq!(lines(&half), ["culprit n1 node", "culprit n2 node"]);
    }

    #[test]
    fn nodes_that_are_bad_only_together_are_suspects_and_never_culprits() {
        let jobs =
            [outcome(&["n1"], None), outcome(&["n2"], None), outcome(&["n1", "n2"], Some(("hang", None)))];
        assert_eq!(lines(&jobs), ["suspects n1 n2"]);
    }

    #[test]
    fn a_slow_job_is_explained_by_the_part_that_is_named_already() {
        let mut slow = outcome(&["n1", "n2"], None);
        slow.judged.insert("nccl.busbw".into(), true);
        let named = [from_part(part("n2", "rdmap0s0", "4.1 GB/s".into()))];
        assert_eq!(culprits_of_run(&[slow.clone()], &named, &Catalogue::built_in()), []);
        assert_eq!(lines(&[slow]), ["suspects n1 n2"]);
    }

    fn judged(nodes: &[&str], metric: &str, failed: bool) -> JobOutcome {
        let mut outcome = outcome(nodes, None);
        outcome.judged.insert(metric.into(), failed);
        outcome
    }

    #[test]
    fn a_slow_job_is_explained_by_a_node_that_broke_another_job() {
        let jobs = [
            outcome(&["n2", "n3"], Some(("NODE_FAIL", Some("n2")))),
            judged(&["n2", "n4"], "nccl.busbw", true),
            judged(&["n2"], "nccl.busbw", false),
        ];
        assert_eq!(lines(&jobs), ["culprit n2 node"]);
    }

    #[test]
    fn a_metric_blames_only_what_its_recipe_declares() {
        let three_of_four =
            |metric: &str| lines(&["n1", "n2", "n3", "n4"].map(|node| judged(&[node], metric, node != "n4")));
        let one_of_four =
            |metric: &str| lines(&["n1", "n2", "n3", "n4"].map(|node| judged(&[node], metric, node == "n2")));
        assert_eq!(one_of_four("nccl.busbw"), ["culprit n2 node"]);
        // What most nodes share is the fault of the limit, or of the program.
        assert_eq!(three_of_four("nccl.busbw"), ["no culprit"], "three of four are most");
        let two_of_four =
            |metric: &str| lines(&["n1", "n2", "n3", "n4"].map(|node| judged(&[node], metric, node < "n3")));
        assert_eq!(two_of_four("nccl.busbw"), ["culprit n1 node", "culprit n2 node"]);
        let all = |nodes: &[&str]| {
            let jobs: Vec<JobOutcome> =
                nodes.iter().map(|node| judged(&[*node], "nccl.busbw", true)).collect();
            lines(&jobs)
        };
        assert_eq!(all(&["n1"]), ["culprit n1 node"], "one node has none to be like");
        assert_eq!(all(&["n1", "n2"]), ["no culprit"]);
        assert_eq!(all(&["n1", "n2", "n3", "n4"]), ["no culprit"]);
        assert_eq!(one_of_four("command.exit_code"), ["culprit n2 node"]);
        assert_eq!(three_of_four("command.exit_code"), Vec::<String>::new());
        for metric in
            ["nvtx.push_without_pop", "step.time", "nic.rate", "train.loss_finite", "mine.of_a_user"]
        {
            assert_eq!(one_of_four(metric), Vec::<String>::new(), "{metric}");
        }
        assert_eq!(lines(&[judged(&["n1", "n2"], "command.exit_code", true)]), Vec::<String>::new());
    }

    fn suspects(nodes: &[&str]) -> Culprit {
        let nodes = nodes.iter().map(|node| (*node).to_owned()).collect();
        Culprit::Suspects { nodes, evidence: "slow".into() }
    }

    fn fleet(evidence: &str) -> Culprit {
        Culprit::Fleet { evidence: evidence.into() }
    }

    #[test]
    fn equal_lines_are_merged() {
        let merged =
            merge(vec![suspects(&["n1", "n2"]), fleet("low")], vec![suspects(&["n1", "n2"]), fleet("low")]);
        assert_eq!(merged, [suspects(&["n1", "n2"]), fleet("low")]);
        let merged = merge(vec![fleet("low"), fleet("lower")], Vec::new());
        assert_eq!(merged, [fleet("low"), fleet("lower")]);
    }

    #[test]
    fn a_culprit_is_not_listed_as_a_suspect_too() {
        let named = from_part(part("n2", "a", "slow".into()));
        let merged = merge(vec![suspects(&["n1", "n2"]), suspects(&["n3", "n4"])], vec![named.clone()]);
        assert_eq!(merged, [named, suspects(&["n3", "n4"])]);
    }
}
