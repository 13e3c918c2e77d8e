//! One verdict per planned assertion: first whether the job can be judged at all, then its numbers.
//! Each way to compare a number is one file; `culprit.rs` isolates the faulty component.

pub mod absent;
mod attempts;
mod baseline;
mod bound;
mod case_index;
mod ceiling;
pub mod common_failure;
mod contradiction;
mod control_run;
mod coverage;
pub mod culprit;
mod ending;
mod gate;
mod measured;
mod nic_rate;
mod peer_group;
mod peers;
mod repeat_spread;
mod support;
#[cfg(test)]
mod tests;
mod trainings_alike;
mod trust;
mod warning;
mod widespread_parts;
mod worst;

use base::text::first_few;
use case_index::CaseIndex;
pub use coverage::reads_nics;
use gate::Gate;
pub use measured::Measured;
use measured::part_name;
use metric::finding::{Finding, Meaning};
use metric::{Dim, MetricSpec, Metrics};
use model::artefact::{
    Analysis, CaseEnd, CaseJobs, CaseOutcomes, CaseVerdict, Collected, CollectedFile, Ended, Evidence,
    Format, InstanceFacts, JudgedBy, LEFT_OUT, Launcher, PlannedAssertion, PlannedCase, RunCluster, Status,
    Verdict,
};
use nic_rate::NicRateCache;
use peers::PeerCache;
pub(crate) use peers::{FEWEST_TO_NAME, few_peers};
use recipes::catalogue::Catalogue;
use recipes::recipe;
use std::collections::{BTreeMap, BTreeSet};

/// Everything that is known of a case once its jobs have ended.
pub struct CaseData<'a> {
    /// Assertions and jobs, from `plan.json`.
    pub case: &'a PlannedCase,
    /// By which its jobs were launched, from `plan.json`.
    pub launcher: Launcher,
    /// Where its pods were, from `cluster.json`.
    pub cluster: Option<&'a RunCluster>,
    /// The instance type, from `plan.json`.
    pub instance: &'a InstanceFacts,
    /// How each job ended, from `job.json`.
    pub jobs: &'a CaseJobs,
    /// From `collected.json`: which files there are, and which are missing.
    pub collected: &'a Collected,
    /// From `analysis.json`: findings, failures and contradictions by job.
    pub analysis: &'a Analysis,
    /// From `metrics.parquet`.
    pub metrics: &'a Metrics,
    /// The recipes of the plan.
    pub catalogue: &'a Catalogue,
}

/// What judging a case gives: its verdicts, and what the judgement over all cases needs beside them.
pub struct Judged {
    /// For the case's `verdict.json`.
    pub verdict: CaseVerdict,
    /// For the case's `outcomes.json`.
    pub outcomes: CaseOutcomes,
}

/// One verdict for each assertion of the case, in their order, and its culprits.
pub fn judge(data: &CaseData) -> Judged {
    let index = CaseIndex::new(data);
    let gates = gate::gates(data, &index);
    let (mut nic_rates, peers) = (NicRateCache::default(), PeerCache::new(data.case, &gates));
    let mut verdicts: Vec<Verdict> = data
        .case
        .assertions
        .iter()
        .map(|assertion| {
            let mut verdict = judge_one(data, &index, &gates, &mut nic_rates, &peers, assertion);
            warning::soften(assertion, &mut verdict);
            attempts::add_first(&index, assertion, &mut verdict);
            verdict
        })
        .collect();
    if let Some(reason) = &data.case.expected_failure {
        expect_failure(&mut verdicts, reason);
    }
    let coverage = coverage::collect(data, &gates);
    let common_failure = common_failure::find(data, &gates);
    let mut outcomes = gate::outcomes(data, &index, &gates, &verdicts);
    if common_failure.is_some() {
        // What fails everywhere speaks against no node.
        outcomes.retain(|outcome| outcome.bad.is_none());
    }
    let culprits = culprit::find_in_case(data, &verdicts, &nic_rates);
    Judged {
        verdict: CaseVerdict {
            format: Format,
            suite: data.case.suite.clone(),
            case: data.case.name.clone(),
            end: end_of(&verdicts),
            seconds: data.jobs.jobs.iter().filter_map(|job| job.seconds).fold(0.0, f64::max),
            simulated: !data.collected.simulated.is_empty(),
            coverage: coverage.counts(),
            versions: versions(data),
            findings: findings(data, &index, &verdicts),
            verdicts,
            culprits,
            common_failure,
        },
        outcomes: CaseOutcomes { format: Format, jobs: outcomes, coverage },
    }
}

fn judge_one(
    data: &CaseData,
    index: &CaseIndex,
    gates: &BTreeMap<&str, Gate>,
    nic_rates: &mut NicRateCache,
    peers: &PeerCache,
    assertion: &PlannedAssertion,
) -> Verdict {
    let mut verdict = blank(data, index, assertion);
    if let Some(why) = &data.jobs.skipped {
        verdict.status = Status::Skipped;
        verdict.message = format!("{}: skipped: {why}", subject(assertion));
        return verdict;
    }
    if absent::skip(data.case, assertion, &mut verdict) {
        return verdict;
    }
    let is_nic_rate = nic_rate::judges(assertion);
    if let Some((status, cause, message, next)) = gate::shut(gates, assertion, is_nic_rate) {
        verdict.status = status;
        verdict.cause = Some(cause);
        verdict.message = format!("{}: {message}", subject(assertion));
        verdict.next = Some(next);
        return verdict;
    }
    if contradiction::judge(data, assertion, &mut verdict) {
        return verdict;
    }
    if is_nic_rate {
        nic_rate::judge(data, nic_rates, assertion, &mut verdict);
        return verdict;
    }
    let (jobs, instead) = match control_run::choose(data, index, gates, assertion, &mut verdict) {
        control_run::Chosen::Own => (assertion.jobs.clone(), None),
        control_run::Chosen::Bare(jobs, why) => (jobs, Some(why)),
        control_run::Chosen::Unknown => return verdict,
    };
    compare(data, assertion, &Measured::select(data.metrics, assertion, &jobs), peers, &mut verdict);
    if let Some(why) = instead {
        verdict.message = format!("{}; {why}", verdict.message);
    }
    verdict
}

/// Numbers compared with everything that the assertion states; the worst result is the verdict.
fn compare(
    data: &CaseData,
    assertion: &PlannedAssertion,
    measured: &Measured,
    peers: &PeerCache,
    verdict: &mut Verdict,
) {
    verdict.n = measured.n();
    if measured.n_expected == 0 {
        // An assertion without numbers has shown nothing, and that is no pass.
        not_measured(data, assertion, measured, verdict);
        return;
    }
    if absent::judge(data, assertion, measured, verdict) || ceiling::judge(assertion, measured, verdict) {
        return;
    }
    let mut findings = Vec::new();
    if let Some(judged) = bound::judge(assertion, measured) {
        findings.push(judged);
    }
    findings.extend(trust::judge(data, assertion, measured, peers, verdict));
    if let Some(judged) = repeat_spread::judge(assertion, measured) {
        findings.push(judged);
    }
    // Of equals the first is reported: a constant before a baseline, a baseline before peers.
    let worst = findings.into_iter().rev().max_by_key(|judged| gravity(judged.status));
    match worst {
        // Out of bounds is out of bounds, whatever else was not measured.
        Some(judged) if judged.status == Status::Fail => {
            if judged.by != JudgedBy::Floor {
                verdict.cause = None;
            }
            judged.into_verdict(assertion, verdict);
            if let Some(why) = explanation(data, assertion) {
                verdict.message = format!("{}: {why}", verdict.message);
            }
        }
        _ if !measured.missing.is_empty() => not_measured(data, assertion, measured, verdict),
        Some(judged) => judged.into_verdict(assertion, verdict),
        None => unjudged(assertion, measured, verdict),
    }
}

/// Measured, and there is nothing to compare it with.
fn unjudged(assertion: &PlannedAssertion, measured: &Measured, verdict: &mut Verdict) {
    let bound = &assertion.bound;
    if bound.baseline.is_none() && bound.within_peers.is_none() {
        verdict.message = format!("{}: the assertion has no bound to compare with", subject(assertion));
        verdict.next = Some("add a bound to the assertion, for example `at_least`".to_owned());
        return;
    }
    let Some((_, number)) = measured.numbers().next() else { return };
    let mut lacks = Vec::new();
    if let Some(baseline) = &bound.baseline {
        lacks.push(format!("no baseline for {}", plan::key(baseline)));
    }
    if bound.within_peers.is_some() {
        lacks.push("no peers".to_owned());
    }
    verdict.status = Status::Unjudged;
    verdict.observed = Some(number.value);
    verdict.runs = number.runs.clone();
    let value = assertion.unit.show(number.value);
    verdict.message = format!("{}: {value}: {}", subject(assertion), lacks.join(", "));
    verdict.next = Some("run it four times more, then `harness baseline propose`".to_owned());
}

/// The finding that explains a number: at which step and rank the loss is not finite, or which transport NCCL used.
fn explanation(data: &CaseData, assertion: &PlannedAssertion) -> Option<String> {
    let codes = recipe::built_in(&assertion.metric)?.explained_by;
    let jobs = assertion.jobs.iter().filter_map(|job| data.analysis.jobs.get(job));
    let findings: Vec<_> = jobs.flat_map(|analysis| &analysis.findings).collect();
    // That of another part explains nothing of this one.
    let is_of_it = |finding: &&&Finding| {
        assertion.part.is_none() || finding.part.is_none() || finding.part == assertion.part
    };
    let found =
        codes.iter().find_map(|code| findings.iter().filter(is_of_it).find(|finding| finding.code == *code));
    found.map(|finding| finding.message.clone())
}

/// The result of one comparison of an assertion.
pub(crate) struct JudgedBound {
    status: Status,
    observed: f64,
    /// Of its independent runs, where there were several: the one observed is their median.
    runs: Vec<f64>,
    lower: Option<f64>,
    upper: Option<f64>,
    /// The parts out of bounds, where there are several parts: for the message.
    odd: Vec<String>,
    /// What was expected, or why nothing could be compared: the second half of the message.
    comparison: String,
    /// What to try, where that is not the usual next step.
    next: Option<String>,
    by: JudgedBy,
}

impl JudgedBound {
    fn into_verdict(self, assertion: &PlannedAssertion, verdict: &mut Verdict) {
        verdict.status = self.status;
        verdict.judged_by = Some(self.by);
        verdict.observed = Some(self.observed);
        verdict.lower = self.lower;
        verdict.upper = self.upper;
        let mut seen = assertion.unit.show(self.observed);
        if let Some((least, most)) = ends(&self.runs) {
            let (least, most) = (assertion.unit.show(least), assertion.unit.show(most));
            seen.push_str(&format!(" (median of {} runs, {least} to {most})", self.runs.len()));
        }
        verdict.runs = self.runs;
        let who = match self.odd.as_slice() {
            [] => String::new(),
            odd => format!(" ({})", first_few(odd, MOST_NAMED)),
        };
        verdict.message = format!("{}: {seen}{who}, {}", subject(assertion), self.comparison);
        if self.status != Status::Pass {
            verdict.next = Some(self.next.unwrap_or_else(|| next_step(assertion, self.status)));
        }
    }
}

/// The least and the most of several.
fn ends(runs: &[f64]) -> Option<(f64, f64)> {
    let least = runs.iter().copied().min_by(f64::total_cmp)?;
    Some((least, runs.iter().copied().max_by(f64::total_cmp)?))
}

fn blank(data: &CaseData, index: &CaseIndex, assertion: &PlannedAssertion) -> Verdict {
    let records = assertion.jobs.iter().filter_map(|job| index.record(job));
    let seconds = records.filter_map(|job| job.seconds).fold(0.0, f64::max);
    Verdict {
        name: assertion.name.clone(),
        status: Status::Inconclusive,
        provisional: false,
        metric: assertion.metric.clone(),
        unit: assertion.unit,
        observed: None,
        runs: Vec::new(),
        nics: BTreeMap::new(),
        lower: None,
        upper: None,
        n: 0,
        n_expected: assertion.parts.len().max(1) as u32,
        baseline: None,
        message: String::new(),
        next: None,
        evidence: evidence(data, index, assertion),
        nodes: assertion.nodes.clone(),
        node: assertion.node.clone(),
        part: assertion.part.clone(),
        cause: None,
        judged_by: None,
        seconds,
    }
}

/// The files that an assertion's numbers come from; the job's folder where there are none.
fn evidence(data: &CaseData, index: &CaseIndex, assertion: &PlannedAssertion) -> Vec<Evidence> {
    let case = &data.case.name;
    let is_about = |file: &CollectedFile| {
        let of_part = assertion.part.is_none() || file.part.is_none() || file.part == assertion.part;
        of_part && gate::feeds(data.catalogue, file.kind, &assertion.metric)
    };
    let files: Vec<Evidence> = index
        .files_of(assertion, 4, &is_about)
        .into_iter()
        .map(|file| Evidence { file: format!("cases/{case}/{}", file.path), line: None })
        .collect();
    if !files.is_empty() {
        return files;
    }
    let folder = |job: &String| Evidence { file: format!("cases/{case}/raw/{job}"), line: None };
    assertion.jobs.iter().take(4).map(folder).collect()
}

/// A message names so many parts, and counts the others.
const MOST_NAMED: usize = 4;

fn not_measured(data: &CaseData, assertion: &PlannedAssertion, measured: &Measured, verdict: &mut Verdict) {
    verdict.status = Status::Inconclusive;
    let missing = match measured.missing.as_slice() {
        [] => String::new(),
        [one] if one.is_empty() => String::new(),
        many => format!(": {}", first_few(many, MOST_NAMED)),
    };
    let because = gate::why_missing(data, assertion);
    let (n, of) = (measured.n(), measured.n_expected);
    let message = format!("{}: not measured{missing} ({n} of {of} numbers)", subject(assertion));
    verdict.message = match &because {
        Some((_, why)) => format!("{message}: {why}"),
        None => message,
    };
    let cause = because.map_or_else(|| "not-measured".to_owned(), |(cause, _)| cause);
    let next = match data.catalogue.meaning(&cause) {
        Meaning::NotRecorded(next) => next,
        _ => "see the findings and the files of the job, then rerun the case",
    };
    (verdict.cause, verdict.next) = (Some(cause), Some(next.to_owned()));
}

/// The subject of an assertion's messages: metric, operation, size and nodes.
pub(crate) fn subject(assertion: &PlannedAssertion) -> String {
    let mut text = assertion.metric.clone();
    for (dim, value) in assertion.dims.iter() {
        match dim {
            Dim::Op | Dim::Direction => text.push_str(&format!(" {value}")),
            Dim::SizeBytes => text.push_str(&format!(" {}", part_name(dim, &value.to_string()))),
            _ => {}
        }
    }
    match (&assertion.node, &assertion.part) {
        (Some(node), Some(part)) => format!("{text} on {node} {part}"),
        _ => format!("{text} on {}", assertion.nodes),
    }
}

fn next_step(assertion: &PlannedAssertion, status: Status) -> String {
    if status == Status::Inconclusive {
        return "accept a baseline for this key, or narrow the assertion".to_owned();
    }
    let next = recipe::built_in(&assertion.metric).map_or(MetricSpec::NEXT, |metric| metric.next);
    next.replace("{nodes}", &assertion.nodes)
}

/// Whether a verdict only reports: a warning, or a number whose source or program a node does not have. It judges
/// nothing, and running it again would change nothing.
pub(crate) fn is_reported_only(verdict: &Verdict) -> bool {
    let causes = [warning::WARNING, absent::ABSENT, absent::NOT_INSTALLED];
    verdict.status == Status::Skipped && verdict.cause.as_deref().is_some_and(|cause| causes.contains(&cause))
}

/// The order in which verdicts of one assertion outweigh each other.
fn gravity(status: Status) -> u8 {
    match status {
        Status::Fail | Status::UnexpectedPass => 3,
        Status::Error => 2,
        Status::Inconclusive => 1,
        Status::Pass | Status::Skipped | Status::ExpectedFailure | Status::Unjudged => 0,
    }
}

/// A declared failure: what fails is expected to; if all passes, the declaration is out of date.
fn expect_failure(verdicts: &mut [Verdict], reason: &str) {
    let all_passed = !verdicts.is_empty() && verdicts.iter().all(|verdict| verdict.status == Status::Pass);
    for verdict in verdicts {
        match verdict.status {
            Status::Fail => {
                verdict.status = Status::ExpectedFailure;
                verdict.message = format!("expected to fail: {reason}: {}", verdict.message);
            }
            Status::Pass if all_passed => {
                verdict.status = Status::UnexpectedPass;
                verdict.message = format!("passed, but is declared to fail: {reason}: {}", verdict.message);
                verdict.next = Some("remove `expected_failure` from the case".to_owned());
            }
            _ => {}
        }
    }
}

/// How a case ended on the nodes that took part, for those that come after it; an error where none did.
pub fn end_of_those_that_took_part(verdicts: &[Verdict], quarantined: &BTreeSet<&str>) -> CaseEnd {
    let is_gone = |verdict: &Verdict| {
        let nodes = base::nodeset::expand(&verdict.nodes).unwrap_or_default();
        !nodes.is_empty() && nodes.iter().all(|node| quarantined.contains(node.as_str()))
    };
    let is_left_out = |verdict: &&Verdict| verdict.cause.as_deref() == Some(LEFT_OUT) || is_gone(verdict);
    let took_part: Vec<Verdict> = verdicts.iter().filter(|verdict| !is_left_out(verdict)).cloned().collect();
    match took_part.is_empty() && !verdicts.is_empty() {
        true => CaseEnd::Error,
        false => end_of(&took_part),
    }
}

/// The worst of a case's verdicts. A case without any has shown nothing.
fn end_of(verdicts: &[Verdict]) -> CaseEnd {
    let any = |status: &[Status]| verdicts.iter().any(|verdict| status.contains(&verdict.status));
    if any(&[Status::Fail, Status::UnexpectedPass]) {
        CaseEnd::Fail
    } else if any(&[Status::Error]) {
        CaseEnd::Error
    } else if any(&[Status::Inconclusive]) {
        CaseEnd::Inconclusive
    } else if any(&[Status::ExpectedFailure]) || (any(&[Status::Skipped]) && !any(&[Status::Pass])) {
        CaseEnd::Skipped
    } else if !any(&[Status::Pass]) {
        CaseEnd::Inconclusive
    } else {
        CaseEnd::Pass
    }
}

/// Over all jobs, each version that was reported.
fn versions(data: &CaseData) -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, versions) in data.analysis.jobs.values().flat_map(|analysis| &analysis.versions) {
        all.entry(name.clone()).or_default().extend(versions.iter().cloned());
    }
    all
}

fn findings(data: &CaseData, index: &CaseIndex, verdicts: &[Verdict]) -> Vec<Finding> {
    let mut all = attempts::findings(data, index);
    all.extend(warning::findings(&data.case.assertions, verdicts));
    for (job, analysis) in &data.analysis.jobs {
        for finding in &analysis.findings {
            let mut finding = finding.clone();
            // A finding without a file still names its job.
            finding.file.get_or_insert_with(|| format!("raw/{job}"));
            all.push(finding);
        }
    }
    all
}

/// Whether the job's script ran to its end.
pub(crate) fn exited(end: &Ended) -> Option<i32> {
    match end {
        Ended::Exited { code } => Some(*code),
        _ => None,
    }
}

pub use culprit::culprits_of_run;
pub use culprit::merge as merge_culprits;
