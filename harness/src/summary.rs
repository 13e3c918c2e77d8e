//! Summarises the cases of a run: counts, coverage, culprits, pending assertions, and the exit code. Pure.

use base::nodeset;
use base::text::SIMULATED;
use model::artefact::{
    CaseSummary, CaseVerdict, Counts, Coverage, CoverageSets, Culprit, Format, JobOutcome, Plan, RunRecord,
    Status, Summary, Verdict,
};
use model::exit_code;
use recipes::catalogue::Catalogue;
use verdict::judge::{self, Judged, common_failure};
use verdict::pending;
use verdict::unjudged;

/// Makes the summary of a run from its judged cases.
pub(crate) fn summarise(
    plan: &Plan,
    record: &RunRecord,
    judged: &[&Judged],
    catalogue: &Catalogue,
) -> Summary {
    let mut counts = Counts::default();
    let mut coverage = CoverageSets::default();
    let mut outcomes: Vec<JobOutcome> = Vec::new();
    let mut cases = Vec::new();
    for Judged { verdict: case, outcomes: of_case } in judged {
        let own = count(&case.verdicts);
        add(&mut counts, &own);
        outcomes.extend(of_case.jobs.iter().cloned());
        let planned =
            plan.cases.iter().find(|planned| planned.suite == case.suite && planned.name == case.case);
        coverage.unite(&of_case.coverage);
        // What a case on too few nodes would have measured is still asked for.
        if planned.is_some_and(|case| case.skip.is_some() && judge::reads_nics(case, catalogue)) {
            plan.nodes.iter().for_each(|node| coverage.nics_of_nodes.expect(node, &plan.instance.nics));
        }
        cases.push(CaseSummary {
            suite: case.suite.clone(),
            name: case.case.clone(),
            end: case.end,
            must_end: planned.and_then(|planned| planned.must_end),
            seconds: case.seconds,
            counts: own,
            coverage: case.coverage,
            findings: case.findings.clone(),
        });
    }
    let common_failure = common_failure::ends_run(judged.iter().map(|judged| &judged.verdict)).cloned();
    common_failure::clear(&mut outcomes, common_failure.as_ref());
    let named = judged.iter().flat_map(|judged| judged.verdict.culprits.clone()).collect::<Vec<_>>();
    let of_run = judge::culprits_of_run(&outcomes, &named, catalogue);
    let pending = pending::still_pending(plan, judged.iter().map(|judged| &judged.verdict));
    let own = match exit_code::from_counts(&counts) {
        exit_code::PASSED => {
            let verdicts: Vec<_> = judged.iter().map(|judged| &judged.verdict).collect();
            let is_open =
                || counts.unjudged > 0 || verdicts.iter().any(|case| unjudged::is_unmeasured(plan, case));
            let is_refused = plan.strict && is_open();
            let lacks = is_refused
                || unjudged::are_names_unknown(plan)
                || !unjudged::nodes_without_judged(plan, &verdicts).is_empty();
            if lacks { exit_code::INCONCLUSIVE } else { exit_code::PASSED }
        }
        code => code,
    };
    let is_red = matches!(own, exit_code::FAILED | exit_code::INCONCLUSIVE);
    let code = match record.signal_exit_code {
        Some(code) => code,
        None if !is_red && !pending.is_empty() => exit_code::OWES,
        None => own,
    };
    let simulated = plan.simulated || judged.iter().any(|judged| judged.verdict.simulated);
    Summary {
        exit_code: code,
        pending,
        counts,
        coverage: coverage.counts(),
        culprits: match code {
            exit_code::PASSED | exit_code::OWES => Vec::new(),
            _ => judge::merge_culprits(named, of_run),
        },
        common_failure,
        cases,
        ..run_facts(plan, record, simulated)
    }
}

/// What a summary says of the run before any case is judged.
fn run_facts(plan: &Plan, record: &RunRecord, simulated: bool) -> Summary {
    Summary {
        format: Format,
        run_id: plan.run_id.clone(),
        parent: plan.parent.clone(),
        harness: plan.harness.clone(),
        simulated,
        note: simulated.then(|| SIMULATED.to_owned()),
        suites: plan.suites.clone(),
        inventory: plan.inventory.clone(),
        instance: plan.instance.name.clone(),
        nodes: nodeset::fold(&plan.nodes),
        left_out: plan.left_out.clone(),
        seed: plan.seed,
        started: record.started.clone(),
        ended: record.ended.clone().unwrap_or_else(|| record.started.clone()),
        seconds: record.seconds.unwrap_or_default(),
        interrupted: record.stopped.clone(),
        exit_code: exit_code::INCONCLUSIVE,
        pending: Vec::new(),
        counts: Counts::default(),
        coverage: Coverage::default(),
        culprits: Vec::new(),
        common_failure: None,
        isolations: Vec::new(),
        cases: Vec::new(),
    }
}

/// The counts of a run that goes on. Each case is added once: to go through all of them after each of them costs the
/// square of the cases.
#[derive(Default)]
pub(crate) struct RunningCounts {
    counts: Counts,
    simulated: bool,
}

impl RunningCounts {
    /// A case was judged.
    pub(crate) fn add(&mut self, case: &CaseVerdict) {
        add(&mut self.counts, &count(&case.verdicts));
        self.simulated |= case.simulated;
    }

    /// The summary so far: counts and culprits alone. A run that goes on has not passed.
    pub(crate) fn summary(&self, plan: &Plan, record: &RunRecord, culprits: Vec<Culprit>) -> Summary {
        let code = match exit_code::from_counts(&self.counts) {
            exit_code::PASSED => exit_code::INCONCLUSIVE,
            code => code,
        };
        let simulated = plan.simulated || self.simulated;
        Summary { exit_code: code, counts: self.counts, culprits, ..run_facts(plan, record, simulated) }
    }
}

fn count(verdicts: &[Verdict]) -> Counts {
    let mut counts = Counts::default();
    for verdict in verdicts {
        counts.total += 1;
        *match verdict.status {
            Status::Pass => &mut counts.pass,
            Status::Fail => &mut counts.fail,
            Status::Inconclusive => &mut counts.inconclusive,
            Status::Error => &mut counts.error,
            Status::Skipped => &mut counts.skipped,
            Status::ExpectedFailure => &mut counts.expected_failure,
            Status::UnexpectedPass => &mut counts.unexpected_pass,
            Status::Unjudged => &mut counts.unjudged,
        } += 1;
        counts.provisional += u32::from(verdict.provisional && verdict.status == Status::Pass);
    }
    counts
}

fn add(sum: &mut Counts, more: &Counts) {
    sum.total += more.total;
    sum.pass += more.pass;
    sum.provisional += more.provisional;
    sum.fail += more.fail;
    sum.inconclusive += more.inconclusive;
    sum.error += more.error;
    sum.skipped += more.skipped;
    sum.expected_failure += more.expected_failure;
    sum.unexpected_pass += more.unexpected_pass;
    sum.unjudged += more.unjudged;
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixture::{Made, green, red};

    fn so_far(made: &Made) -> Summary {
        let record = RunRecord {
            format: Format,
            started: "2026-03-01T08:00:00Z".to_owned(),
            ended: None,
            seconds: None,
            stopped: None,
            signal_exit_code: None,
            artefacts: None,
        };
        let mut running = RunningCounts::default();
        made.cases.iter().for_each(|case| running.add(case));
        running.summary(&made.plan, &record, made.summary.culprits.clone())
    }

    #[test]
    fn counts_of_a_run_that_goes_on_are_those_of_its_cases_so_far() {
        let red = red();
        let summary = so_far(&red);
        assert_eq!((summary.counts, summary.exit_code), (red.summary.counts, exit_code::FAILED));
        assert_eq!((&summary.culprits, &summary.run_id), (&red.summary.culprits, &red.plan.run_id));
    }

    #[test]
    fn a_run_that_goes_on_has_not_passed() {
        assert_eq!(so_far(&green()).exit_code, exit_code::INCONCLUSIVE);
    }
}
