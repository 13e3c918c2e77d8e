//! Takes a plan through the stages, one case at a time: run, collect, analyze, judge; then the reports.
//! It decides nothing itself: each stage is a function from artefact to artefact, and this is where they meet.

use crate::artefact::{CaseEnd, CaseSummary, CaseVerdict, Counts, FORMAT, Plan, Status, Summary, Verdict};
use crate::judge::{self, CaseData, CoverageSets, JobOutcome};
use crate::reach::Reach;
use crate::report::{Progress, REPORTERS, Report, SIMULATED};
use crate::run::{Clock, Event, History, Runner};
use crate::store::{self, Store, StoreError};
use crate::{analyze, collect, exit_code, interrupt, nodeset};
use std::time::Duration;

/// A run that is over: what it showed, case by case and as a whole.
pub struct Finished {
    pub cases: Vec<CaseVerdict>,
    pub summary: Summary,
}

/// Forgets what a job left on a pretend cluster once it is home, to bound memory.
pub type Release<'a> = &'a dyn Fn(&str);

/// How a run gets at the world.
pub struct World<'a> {
    pub reach: &'a dyn Reach,
    pub clock: Clock,
    pub release: Release<'a>,
    /// What a process before this one had done of the run.
    pub history: Option<&'a History>,
}

pub async fn run(
    plan: &Plan,
    world: World<'_>,
    store: &Store,
    progress: &mut Progress,
) -> Result<Finished, StoreError> {
    let World { reach, clock, release, history } = world;
    let started = clock.started();
    progress.stage("run");
    let mut cases: Vec<Option<CaseVerdict>> = plan.cases.iter().map(|_| None).collect();
    let mut outcomes: Vec<JobOutcome> = Vec::new();
    let mut coverage = CoverageSets::default();
    let mut failures = 0;
    let mut event_error = None;
    let mut tell = |event: Option<&Event>, now: Duration| {
        // Pretend hours pass in no time: a heartbeat for each would be noise, so time is told with events alone.
        if !plan.simulated || event.is_some() {
            progress.tick(now);
        }
        let Some(event) = event else { return };
        show(progress, event);
        if let Err(error) = store.event(event) {
            event_error.get_or_insert(error);
        }
    };
    let mut runner = match history {
        None => Runner::new(plan, reach, clock, &mut tell),
        Some(history) => Runner::resume(plan, reach, clock, &mut tell, history),
    };
    while let Some(finished) = runner.next().await {
        let Some(case) = plan.cases.get(finished.case) else { continue };
        let folder = store.case(&case.name);
        store.write_json(&folder.join("job.json"), &finished.jobs)?;
        // What was brought home already may be gone from the nodes.
        let collected = match history.map(|_| store::read_json(&folder.join("collected.json"))) {
            Some(Ok(collected)) => collected,
            _ => collect::collect(case, &finished.jobs, reach, store).await?,
        };
        store.write_json(&folder.join("collected.json"), &collected)?;
        let (metrics, analysis) = analyze::analyze(case, &plan.instance, &finished.jobs, &collected, &folder);
        let table =
            recipes::parquet::to_parquet(&metrics).map_err(|error| StoreError::other(&folder, &error))?;
        store.write(&folder.join("metrics.parquet"), &table)?;
        store.write_json(&folder.join("analysis.json"), &analysis)?;
        let judged = judge::judge(&CaseData {
            case,
            instance: &plan.instance,
            jobs: &finished.jobs,
            collected: &collected,
            analysis: &analysis,
            metrics: &metrics,
            skipped: finished.skipped.as_deref(),
        });
        store.write_json(&folder.join("verdict.json"), &judged.verdict)?;
        if let Some(kept) = collect::keep(case, &collected, judged.verdict.end, reach, store).await? {
            store.write_json(&folder.join("reports.json"), &kept)?;
        }
        for job in &case.jobs {
            release(&job.folder);
        }
        runner.settle(finished.case, judged.verdict.end);
        failures += judged.verdict.verdicts.iter().filter(|verdict| verdict.status == Status::Fail).count();
        if let Some(max) = plan.max_fail
            && failures as u64 >= u64::from(max)
        {
            runner.stop(&format!("--max-fail {max}: {failures} assertions have failed"));
        }
        outcomes.extend(judged.outcomes);
        coverage.unite(judged.coverage);
        cases[finished.case] = Some(judged.verdict);
    }
    let stopped = runner.stopped().map(str::to_owned);
    drop(runner);
    if let Some(error) = event_error {
        return Err(error);
    }
    let cases: Vec<CaseVerdict> = cases.into_iter().flatten().collect();
    let summary = summarise(plan, &cases, &outcomes, &coverage, started, &clock, stopped);
    Ok(Finished { cases, summary })
}

/// Writes every report that is a file of the run's folder, and gives them back by name.
pub fn write_reports(
    plan: &Plan,
    finished: &Finished,
    store: &Store,
) -> Result<Vec<(&'static str, Vec<u8>)>, StoreError> {
    let report = Report { plan, cases: &finished.cases, summary: &finished.summary };
    let mut written = Vec::new();
    for reporter in &REPORTERS {
        let path = store.folder().join(reporter.file);
        let bytes = (reporter.render)(&report).map_err(|error| StoreError::other(&path, &error))?;
        store.write(&path, &bytes)?;
        written.push((reporter.file, bytes));
    }
    Ok(written)
}

fn summarise(
    plan: &Plan,
    cases: &[CaseVerdict],
    outcomes: &[JobOutcome],
    coverage: &CoverageSets,
    started: String,
    clock: &Clock,
    interrupted: Option<String>,
) -> Summary {
    let mut counts = Counts::default();
    let summaries: Vec<CaseSummary> = cases
        .iter()
        .map(|case| {
            let own = count(&case.verdicts);
            add(&mut counts, &own);
            let planned =
                plan.cases.iter().find(|planned| planned.suite == case.suite && planned.name == case.case);
            CaseSummary {
                suite: case.suite.clone(),
                name: case.case.clone(),
                end: case.end,
                must_end: planned.and_then(|planned| planned.must_end),
                seconds: case.seconds,
                counts: own,
                coverage: case.coverage,
                findings: case.findings.clone(),
            }
        })
        .collect();
    let named = cases.iter().flat_map(|case| case.culprits.clone()).collect::<Vec<_>>();
    let of_run = judge::culprits_of_run(outcomes, &named);
    let mut code = exit_code::of(&counts);
    if interrupted.is_some()
        && let Some(asked) = interrupt::asked()
    {
        code = asked;
    }
    Summary {
        format: FORMAT,
        run_id: plan.run_id.clone(),
        parent: plan.parent.clone(),
        harness: plan.harness.clone(),
        simulated: plan.simulated,
        note: plan.simulated.then(|| SIMULATED.to_owned()),
        suites: plan.suites.clone(),
        inventory: plan.inventory.clone(),
        instance: plan.instance.name.clone(),
        nodes: nodeset::fold(&plan.nodes),
        seed: plan.seed,
        started,
        ended: clock.now(),
        seconds: (clock.elapsed().as_secs_f64() * 1e3).round() / 1e3,
        interrupted,
        exit_code: code,
        counts,
        coverage: coverage.counts(),
        culprits: if code == exit_code::PASSED { Vec::new() } else { judge::merge_culprits(named, of_run) },
        cases: summaries,
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
}

/// Cases whose end differs from what the suite says it must be.
pub fn ended_otherwise(summary: &Summary) -> Vec<(&str, CaseEnd, CaseEnd)> {
    summary
        .cases
        .iter()
        .filter_map(|case| {
            let must = case.must_end?;
            (must != case.end).then_some((case.name.as_str(), must, case.end))
        })
        .collect()
}

fn show(progress: &mut Progress, event: &Event) {
    match event {
        Event::JobSubmitted { case, job, nodes, estimate_s, .. } => {
            progress.job_started(case, job, nodes, *estimate_s);
        }
        Event::JobEnded { case, job, end, .. } => progress.job_ended(case, job, end),
        Event::JobNotSubmitted { case, job, why, .. } => {
            progress.stage(&format!("{case} {job} could not be launched: {why}"));
        }
        Event::CaseNotRun { case, why, .. } => progress.stage(&format!("{case} is not run: {why}")),
        Event::RunStopped { why, .. } => progress.stage(&format!("stopping: {why}")),
        _ => {}
    }
}
