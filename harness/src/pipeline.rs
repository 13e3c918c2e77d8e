//! Takes a plan through the stages, one case at a time: run, collect, analyze, judge; then the reports.
//! It decides nothing itself: each stage is a function from artefact to artefact, and this is where they meet.

use crate::artefact::{
    Analysis, CaseJobs, CaseVerdict, Collected, FORMAT, Plan, PlannedCase, RunRecord, Status, Summary,
};
use crate::judge::{self, CaseData, Judged};
use crate::launch::folder::Folders;
use crate::reach::Reach;
use crate::redact::Clean;
use crate::report::{Progress, REPORTERS, Report};
use crate::run::{Clock, Event, History, Runner};
use crate::store::{self, Store, StoreError};
use crate::summary::summarise;
use crate::tasks::{self, Cluster};
use crate::{analyze, collect, fingerprint, interrupt};
use recipes::metric::Metrics;
use recipes::recipe::Kept;
use std::sync::Arc;
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
    /// The cluster whose nodes read the reports; this machine, where there is none.
    pub on: Option<&'a Cluster>,
}

pub async fn run(
    plan: &Plan,
    world: World<'_>,
    store: &Store,
    progress: &mut Progress,
) -> Result<Finished, StoreError> {
    let World { reach, clock, release, history, on } = world;
    let mut record = RunRecord {
        format: FORMAT,
        started: clock.started(),
        ended: None,
        seconds: None,
        stopped: None,
        signal_exit_code: None,
    };
    // What is told of commands and errors is told without secrets; files are cleaned when they come home.
    let clean = Clean { reach, redactor: store.redactor() };
    let reach: &dyn Reach = &clean;
    let folders = Folders { reach, launcher: plan.launcher, nodes: &plan.nodes };
    write_record(&record, store)?;
    progress.stage("run");
    let mut judged: Vec<Option<Judged>> = plan.cases.iter().map(|_| None).collect();
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
        None => Runner::new(plan, reach, clock, &mut tell, store.secrets()),
        Some(history) => Runner::resume(plan, reach, clock, &mut tell, store.secrets(), history),
    };
    while let Some(finished) = runner.next().await {
        let Some(case) = plan.cases.get(finished.case) else { continue };
        let folder = store.case(&case.name);
        store.write_json(&folder.join("job.json"), &finished.jobs)?;
        let (launched, standing) = (case.launched(&finished.jobs), case.standing(&finished.jobs));
        // What was brought home already may be gone from the nodes.
        let collected = match history.map(|_| store::read_json(&folder.join("collected.json"))) {
            Some(Ok(collected)) => collected,
            _ => collect::collect(&launched, &finished.jobs, folders, None, store).await?,
        };
        store.write_json(&folder.join("collected.json"), &collected)?;
        let fit = analyze::Unfit::new();
        let seen = Seen { jobs: &finished.jobs, collected: &collected, unfit: &fit };
        let kept = kept(plan, &standing, &seen, on, store).await?;
        let (metrics, analysis) = analyze_case(plan, &standing, &seen, &kept, store)?;
        let of_case = judge_case(plan, &standing, &finished.jobs, &collected, &analysis, &metrics, store)?;
        if let Some(kept) = collect::keep(&launched, &collected, of_case.verdict.end, folders, store).await? {
            store.write_json(&folder.join("reports.json"), &kept)?;
        }
        for job in &case.jobs {
            release(&job.folder);
        }
        // A node that was left out is told, and does not keep the others from what comes after.
        runner.settle(finished.case, judge::end_of_those_that_took_part(&of_case.verdict.verdicts));
        failures += of_case.verdict.verdicts.iter().filter(|verdict| verdict.status == Status::Fail).count();
        if let Some(max) = plan.max_fail
            && failures as u64 >= u64::from(max)
        {
            runner.stop(&format!("--max-fail {max}: {failures} assertions have failed"));
        }
        judged[finished.case] = Some(of_case);
    }
    record.stopped = runner.stopped().map(str::to_owned);
    drop(runner);
    if let Some(error) = event_error {
        return Err(error);
    }
    record.signal_exit_code = record.stopped.as_ref().and_then(|_| interrupt::asked());
    record.ended = Some(clock.now());
    record.seconds = Some((clock.elapsed().as_secs_f64() * 1e3).round() / 1e3);
    write_record(&record, store)?;
    Ok(finish(plan, &record, judged.into_iter().flatten().collect()))
}

/// What all cases together came to. They stand in the plan's order, however they ended.
pub fn finish(plan: &Plan, record: &RunRecord, judged: Vec<Judged>) -> Finished {
    let summary = summarise(plan, record, &judged);
    Finished { cases: judged.into_iter().map(|judged| judged.verdict).collect(), summary }
}

pub fn write_record(record: &RunRecord, store: &Store) -> Result<(), StoreError> {
    store.write_json(&store.folder().join("run.json"), record)
}

/// What came home of a case.
pub struct Seen<'a> {
    pub jobs: &'a CaseJobs,
    pub collected: &'a Collected,
    pub unfit: &'a analyze::Unfit,
}

/// What the nodes of a cluster take from the reports of a case; nothing where none is to.
pub async fn kept(
    plan: &Plan,
    case: &PlannedCase,
    seen: &Seen<'_>,
    on: Option<&Cluster>,
    store: &Store,
) -> Result<Arc<Kept>, StoreError> {
    let Some(cluster) = on else { return Ok(Arc::default()) };
    // Before there is anything of it that a process could leave behind.
    store.write_json(&store.folder().join("analyses.json"), &cluster.analyses())?;
    let folder = store.case(&case.name);
    let inputs = analyze::inputs(case, &plan.instance, seen.jobs, seen.collected, seen.unfit, &folder);
    let mut tell = |what: &str| eprintln!("note: {what}");
    let kept = tasks::kept(cluster, &plan.run_id, inputs, &case.recipes, &plan.recipes, &mut tell).await;
    Ok(Arc::new(kept))
}

/// What came home of a case to its numbers.
pub fn analyze_case(
    plan: &Plan,
    case: &PlannedCase,
    seen: &Seen,
    kept: &Arc<Kept>,
    store: &Store,
) -> Result<(Metrics, Analysis), StoreError> {
    let folder = store.case(&case.name);
    let Seen { jobs, collected, unfit } = *seen;
    let (metrics, mut analysis) =
        analyze::analyze(case, &plan.instance, jobs, collected, unfit, &folder, kept);
    let probe = store.probe()?;
    for job in &case.jobs {
        if let Some(of_job) = analysis.jobs.get_mut(&job.name) {
            fingerprint::complete(&mut of_job.versions, job, probe.as_ref());
        }
    }
    let table = recipes::parquet::to_parquet(&metrics).map_err(|error| StoreError::other(&folder, &error))?;
    store.write(&folder.join("metrics.parquet"), &table)?;
    store.write_json(&folder.join("analysis.json"), &analysis)?;
    Ok((metrics, analysis))
}

/// The numbers of a case to its verdicts.
pub fn judge_case(
    plan: &Plan,
    case: &PlannedCase,
    jobs: &CaseJobs,
    collected: &Collected,
    analysis: &Analysis,
    metrics: &Metrics,
    store: &Store,
) -> Result<Judged, StoreError> {
    let instance = &plan.instance;
    let judged = judge::judge(&CaseData { case, instance, jobs, collected, analysis, metrics });
    let folder = store.case(&case.name);
    store.write_json(&folder.join("verdict.json"), &judged.verdict)?;
    store.write_json(&folder.join("outcomes.json"), &judged.outcomes)?;
    Ok(judged)
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
        written.push((reporter.file, store.write_text(&path, &bytes)?));
    }
    Ok(written)
}

fn show(progress: &mut Progress, event: &Event) {
    match event {
        Event::JobSubmitted { case, job, nodes, estimate_s, .. } => {
            progress.job_started(case, job, nodes, *estimate_s);
        }
        Event::JobEnded { case, job, end, .. } => progress.job_ended(case, job, end),
        Event::JobAgain { case, job, cause, .. } => {
            progress.stage(&format!("{case} {job} is launched: the first attempt ended: {cause}"));
        }
        Event::JobNotSubmitted { case, job, why, .. } => {
            progress.stage(&format!("{case} {job} could not be launched: {why}"));
        }
        Event::CaseNotRun { case, why, .. } => progress.stage(&format!("{case} is not run: {why}")),
        Event::RunStopped { why, .. } => progress.stage(&format!("stopping: {why}")),
        _ => {}
    }
}
