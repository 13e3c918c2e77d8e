//! Takes a plan through the stages, one case at a time: run, collect, analyze, judge; then the reports.
//! It decides nothing itself: each stage is a function from artefact to artefact, and this is where they meet.

use crate::analyze;
use crate::diagnose;
use crate::page_facts::PageFacts;
use crate::panics;
use crate::report::{Progress, REPORTERS, Report, ReportError};
use crate::summary::{RunningCounts, summarise};
use crate::tasks::{self, Cluster};
use crate::trace::kept;
use crate::trace::of_run::CaseArtefacts;
use base::text::count;
use cluster::collect;
use cluster::interrupt;
use cluster::launch::folder::Folders;
use cluster::reach::Reach;
use cluster::reach::redacted::Redacted;
use cluster::run::{Clock, Event, History, Runner, quarantine};
use job::script::files;
use metric::Metrics;
use model::artefact::{
    Analysis, CaseJobs, CaseVerdict, Collected, CollectedFile, Culprit, Format, JobOutcome, LEFT_OUT,
    LeftOut, Plan, PlannedCase, RunRecord, Status, Summary, Unfit, Verdict,
};
use recipes::catalogue::Catalogue;
use recipes::recipe::ExtractStore;
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use store::{self, Store, StoreError};
use verdict::fingerprint;
use verdict::judge::common_failure::normalised;
use verdict::judge::{self, CaseData, Judged};

/// A finished run: its verdicts by case, and its summary.
pub(crate) struct Finished {
    /// In the order of the plan.
    pub cases: Vec<CaseVerdict>,
    /// What `summary.json` and the terminal show.
    pub summary: Summary,
    /// The plan as it was amended on the way, where nodes were quarantined.
    pub amended: Option<Plan>,
    /// Its cases were printed as they ended, as lines of JSON.
    pub streamed: bool,
}

/// Plans the same run on fewer nodes; `None` if that is impossible.
pub(crate) type Replan<'a> = &'a dyn Fn(&[String]) -> Option<Plan>;

/// Forgets what a job left on a simulated cluster once it is home, to bound memory.
pub(crate) type Release<'a> = &'a dyn Fn(&str);

/// Called as each case is judged, with a report of all cases so far, the last of them judged just now; of those before it
/// the report has what is red. It names only parts that a case's own numbers show: nodes at fault by elimination are named
/// when the run is over.
pub(crate) type OnCase<'a> = &'a dyn Fn(&Report);

/// The environment of a run.
pub(crate) struct World<'a> {
    /// Path to the nodes, real or simulated.
    pub reach: &'a dyn Reach,
    /// The time of the run, simulated or real.
    pub clock: Clock,
    /// Called with the folder of each job whose case is judged.
    pub release: Release<'a>,
    /// What a process before this one had done of the run.
    pub history: Option<&'a History>,
    /// The cluster whose nodes read the reports; this machine if `None`.
    pub on: Option<&'a Cluster>,
    /// The recipes of the plan.
    pub catalogue: &'a Catalogue,
    /// How cases that have not begun are planned without a node that was quarantined.
    pub replan: Option<Replan<'a>>,
    /// The most jobs that are launched at the same time over ssh.
    pub at_once: usize,
    /// Reports while the run goes on.
    pub on_case: Option<OnCase<'a>>,
}

/// Runs and judges all cases of a plan, and writes their artefacts, but no report.
pub(crate) async fn run(
    plan: &Plan,
    world: World<'_>,
    store: &Store,
    progress: &mut Progress,
) -> Result<Finished, StoreError> {
    let World { reach, clock, release, history, on, catalogue, replan, at_once, on_case } = world;
    let mut record = RunRecord {
        format: Format,
        started: clock.started(),
        ended: None,
        seconds: None,
        stopped: None,
        signal_exit_code: None,
        artefacts: None,
    };
    let cluster = store::cluster_of(&store.folder())?;
    // Messages about commands and errors are redacted here; files are redacted when they are collected.
    let clean = Redacted { reach, redactor: store.redactor() };
    let reach: &dyn Reach = &clean;
    let folders = Folders { reach, launcher: plan.launcher, nodes: &plan.nodes };
    write_record(&record, store)?;
    let mut judged: Vec<Option<Judged>> = plan.cases.iter().map(|_| None).collect();
    let mut so_far: Vec<CaseVerdict> = Vec::new();
    let mut counts_so_far = RunningCounts::default();
    let mut failures = 0;
    let mut outcomes: Vec<JobOutcome> = Vec::new();
    let mut named: Vec<Culprit> = Vec::new();
    // One at most for each node that is quarantined.
    let amendments: Vec<OnceCell<Plan>> = plan.nodes.iter().map(|_| OnceCell::new()).collect();
    let mut plan = plan;
    let mut event_error = None;
    let mut event_log = EventLog::default();
    let simulated = plan.simulated;
    progress.begin(plan);
    let progress = RefCell::new(progress);
    let mut on_event = |event: Option<&Event>, now: Duration| {
        // Simulated hours pass in no time: a heartbeat for each would be noise, so time passes with events only.
        let mut progress = progress.borrow_mut();
        if !simulated || event.is_some() {
            progress.tick(now);
        }
        let Some(event) = event else { return };
        event_log.show(&mut progress, event);
        if let Err(error) = store.event(event) {
            event_error.get_or_insert(error);
        }
    };
    let mut runner = match history {
        None => Runner::new(plan, reach, clock, &mut on_event, store.secrets()),
        Some(history) => Runner::resume(plan, reach, clock, &mut on_event, store.secrets(), history),
    };
    runner = runner.at_once(at_once);
    while let Some(finished) = runner.next().await {
        let Some(case) = plan.cases.get(finished.case) else { continue };
        let folder = store.case(&case.name);
        store.write_json(&folder.join("job.json"), &finished.jobs)?;
        let (launched, effective) = (case.launched(&finished.jobs), case.effective(&finished.jobs));
        // Files that were collected before may be gone from the nodes.
        let collected = match history.map(|_| store::read_json(&folder.join("collected.json"))) {
            Some(Ok(collected)) => collected,
            _ => {
                let collect = collect::collect(&launched, &finished.jobs, folders, None, store);
                runner.meanwhile(collect).await?
            }
        };
        store.write_json(&folder.join("collected.json"), &collected)?;
        let fit = Unfit::new();
        let seen = CaseFiles { jobs: &finished.jobs, collected: &collected, unfit: &fit };
        let kept = runner.meanwhile(extract(plan, &effective, &seen, on, catalogue, store)).await?;
        let (metrics, analysis) = analyze_case(plan, &effective, &seen, &kept, catalogue, store)?;
        let data = CaseData {
            case: &effective,
            launcher: plan.launcher,
            cluster: cluster.as_ref(),
            instance: &plan.instance,
            jobs: &finished.jobs,
            collected: &collected,
            analysis: &analysis,
            metrics: &metrics,
            catalogue,
        };
        let of_case = judge_case(&data, store)?;
        runner.meanwhile(keep_excerpts(&data, &of_case, store)).await?;
        let keep = collect::keep(&launched, &collected, of_case.verdict.end, folders, store);
        if let Some(kept) = runner.meanwhile(keep).await? {
            store.write_json(&folder.join("reports.json"), &kept)?;
        }
        for job in &case.jobs {
            release(&job.folder);
        }
        outcomes.extend(of_case.outcomes.jobs.iter().cloned());
        named.extend(of_case.verdict.culprits.iter().cloned());
        // After the stop there is nothing to leave a node out of, and what was cut short shows nothing about it.
        let more = match runner.stopped() {
            Some(_) => Vec::new(),
            None => quarantined(plan, &case.name, &outcomes, &named, catalogue),
        };
        if !more.is_empty()
            && let Some(cell) = amendments.iter().find(|cell| cell.get().is_none())
        {
            let rest = replan.filter(|_| plan.allocations.is_empty()).and_then(|replan| {
                let gone = |node: &String| plan.left_out.iter().chain(&more).any(|left| left.node == *node);
                let rest: Vec<String> = plan.nodes.iter().filter(|node| !gone(node)).cloned().collect();
                (!rest.is_empty()).then(|| replan(&rest)).flatten()
            });
            // Only what was read when the run was planned may plan it again.
            let rest = rest.filter(|rest| rest.sources == plan.sources);
            let amended = plan::quarantine(plan, rest, more.clone(), &|case| runner.has_begun(case));
            store.write_json(&store.folder().join("plan.json"), &amended)?;
            plan = cell.get_or_init(|| amended);
            runner.amend(plan, &more);
        }
        // A node that was left out is reported, and does not block the later cases of the others.
        let gone: BTreeSet<&str> = plan.left_out.iter().map(|left| left.node.as_str()).collect();
        let end = judge::end_of_those_that_took_part(&of_case.verdict.verdicts, &gone);
        runner.settle(finished.case, end);
        if let Some(failure) = of_case.verdict.common_failure.as_ref().filter(|failure| !failure.expected) {
            runner.stop(&failure.reason());
        }
        let counts = |verdict: &&Verdict| match verdict.status {
            Status::Fail => true,
            // A node that is known to be bad is counted where it went badly.
            Status::Error => plan.max_fail_errors && verdict.cause.as_deref() != Some(LEFT_OUT),
            _ => false,
        };
        failures += of_case.verdict.verdicts.iter().filter(counts).count();
        if let Some(max) = plan.max_fail
            && failures as u64 >= u64::from(max)
        {
            let what = if plan.max_fail_errors { "failed or ended in errors" } else { "failed" };
            let failures = count(failures, "assertion");
            runner.stop(&format!("--max-fail {max}: {failures} {what}"));
        }
        progress.borrow_mut().case_judged(&of_case.verdict);
        if let Some(on_case) = on_case {
            counts_so_far.add(&of_case.verdict);
            so_far.push(of_case.verdict.clone());
            let culprits = judge::merge_culprits(named.clone(), Vec::new());
            let summary = counts_so_far.summary(plan, &record, culprits);
            on_case(&Report { cluster: cluster.as_ref(), ..Report::new(plan, &so_far, &summary) });
            // Of earlier cases only what a culprit explains is shown.
            if let Some(last) = so_far.last_mut() {
                last.verdicts.retain(|verdict| verdict.status.is_red());
                last.verdicts.shrink_to_fit();
            }
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
    close_record(&mut record, plan, store)?;
    let finished = finish(plan, &record, judged.into_iter().flatten().collect(), catalogue);
    let amended = amendments.iter().any(|cell| cell.get().is_some()).then(|| plan.clone());
    Ok(Finished { amended, ..finished })
}

/// The nodes that take no part in what comes after a case: those that hung, were lost or crashed in it.
fn quarantined(
    plan: &Plan,
    case: &str,
    outcomes: &[JobOutcome],
    named: &[Culprit],
    catalogue: &Catalogue,
) -> Vec<LeftOut> {
    if plan.keep_bad_nodes {
        return Vec::new();
    }
    let is_new = |node: &String| !plan.left_out.iter().any(|left| left.node == *node);
    let all = quarantine::named(outcomes, named, catalogue).into_iter().filter(|(node, _)| is_new(node));
    all.map(|(node, why)| LeftOut { node, why, by_folder: false, after: Some(case.to_owned()) }).collect()
}

/// Summarises all cases, in the order of the plan.
pub(crate) fn finish(
    plan: &Plan,
    record: &RunRecord,
    judged: Vec<Judged>,
    catalogue: &Catalogue,
) -> Finished {
    let summary = summarise(plan, record, &judged.iter().collect::<Vec<_>>(), catalogue);
    let cases = judged.into_iter().map(|judged| judged.verdict).collect();
    Finished { cases, summary, amended: None, streamed: false }
}

/// Writes `run.json`.
pub(crate) fn write_record(record: &RunRecord, store: &Store) -> Result<(), StoreError> {
    store.write_json(&store.folder().join("run.json"), record)
}

/// The same when the run is over, with what it wrote.
pub(crate) fn close_record(record: &mut RunRecord, plan: &Plan, store: &Store) -> Result<(), StoreError> {
    record.artefacts = Some(store::digests(&store.folder(), plan)?);
    write_record(record, store)
}

/// The jobs and collected files of a case.
pub(crate) struct CaseFiles<'a> {
    /// `cases/<case>/job.json`.
    pub jobs: &'a CaseJobs,
    /// `cases/<case>/collected.json`.
    pub collected: &'a Collected,
    /// Jobs whose files are not read, and why.
    pub unfit: &'a Unfit,
}

/// What recipes take from the reports of a case: on the nodes of a cluster, or in limited processes of this machine.
pub(crate) async fn extract(
    plan: &Plan,
    case: &PlannedCase,
    seen: &CaseFiles<'_>,
    on: Option<&Cluster>,
    catalogue: &Catalogue,
    store: &Store,
) -> Result<Arc<ExtractStore>, StoreError> {
    let folder = store.case(&case.name);
    let inputs = || analyze::inputs(case, &plan.instance, seen.jobs, seen.collected, seen.unfit, &folder);
    let Some(cluster) = on else {
        let reads =
            |name: &&String| catalogue.job_recipe(name).is_some_and(|recipe| !recipe.tables.is_empty());
        let recipes: Vec<String> = case.recipes.iter().filter(reads).cloned().collect();
        let (inputs, own) = (inputs(), plan.recipes.clone());
        let read = tokio::task::spawn_blocking(move || tasks::local::extract(inputs, &recipes, &own));
        return read.await.map(Arc::new).map_err(|error| StoreError::other(&folder, &error));
    };
    // Before there is anything of it that a process could leave behind.
    store.write_json(&store.folder().join("analyses.json"), &cluster.analyses().await)?;
    let mut note = |what: &str| eprintln!("note: {what}");
    let kept = tasks::extract(cluster, &plan.run_id, inputs(), &case.recipes, &plan.recipes, &mut note).await;
    Ok(Arc::new(kept))
}

/// Computes the metrics of a case from its collected files.
pub(crate) fn analyze_case(
    plan: &Plan,
    case: &PlannedCase,
    seen: &CaseFiles,
    kept: &Arc<ExtractStore>,
    catalogue: &Catalogue,
    store: &Store,
) -> Result<(Metrics, Analysis), StoreError> {
    let folder = store.case(&case.name);
    let CaseFiles { jobs, collected, unfit } = *seen;
    let probe = store.probe()?;
    let with = (catalogue, kept, probe.as_ref());
    let (metrics, mut analysis) =
        analyze::analyze(case, &plan.instance, jobs, collected, unfit, &folder, with);
    for job in &case.jobs {
        if let Some(of_job) = analysis.jobs.get_mut(&job.name) {
            let digests = image_digests(collected, &job.name, &folder);
            fingerprint::complete(&mut of_job.versions, job, probe.as_ref(), &digests);
        }
    }
    let table = recipes::parquet::to_parquet(&metrics).map_err(|error| StoreError::other(&folder, &error))?;
    store.write(&folder.join("metrics.parquet"), &table)?;
    store.write_json(&folder.join("analysis.json"), &analysis)?;
    Ok((metrics, analysis))
}

/// What the nodes of a job wrote down of the image that docker or podman ran.
fn image_digests(collected: &Collected, job: &str, folder: &Path) -> BTreeSet<String> {
    let is_one = |file: &&CollectedFile| {
        let of_node = |node: &String| Path::new(&file.path).ends_with(files::node_file(files::IMAGE, node));
        file.job == job && file.bytes < 200 && file.node.as_ref().is_some_and(of_node)
    };
    let read = |file: &CollectedFile| std::fs::read_to_string(folder.join(&file.path)).ok();
    let is_digest = |text: &String| {
        text.strip_prefix("sha256:")
            .is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    let texts = collected.files.iter().filter(is_one).filter_map(read);
    texts.map(|text| text.trim().to_owned()).filter(is_digest).collect()
}

/// Takes the files of a case, which are home, to its verdict.
pub(crate) async fn judge_files(
    plan: &Plan,
    case: &PlannedCase,
    seen: &CaseFiles<'_>,
    catalogue: &Catalogue,
    store: &Store,
) -> Result<Judged, StoreError> {
    let kept = extract(plan, case, seen, None, catalogue, store).await?;
    let (metrics, analysis) = analyze_case(plan, case, seen, &kept, catalogue, store)?;
    let data = CaseData {
        case,
        launcher: plan.launcher,
        // What operators started is not known to be reached by this kubectl.
        cluster: None,
        instance: &plan.instance,
        jobs: seen.jobs,
        collected: seen.collected,
        analysis: &analysis,
        metrics: &metrics,
        catalogue,
    };
    let judged = judge_case(&data, store)?;
    keep_excerpts(&data, &judged, store).await?;
    Ok(judged)
}

/// Judges the metrics of a case.
pub(crate) fn judge_case(data: &CaseData<'_>, store: &Store) -> Result<Judged, StoreError> {
    let judged = judge::judge(data);
    let folder = store.case(&data.case.name);
    store.write_json(&folder.join("verdict.json"), &judged.verdict)?;
    store.write_json(&folder.join("outcomes.json"), &judged.outcomes)?;
    Ok(judged)
}

/// Keeps what the reports of a case say, where it has any: what limits its work and, of one that failed, the window that
/// shows it.
pub(crate) async fn keep_excerpts(
    data: &CaseData<'_>,
    judged: &Judged,
    store: &Store,
) -> Result<(), StoreError> {
    let artefacts = CaseArtefacts {
        case: data.case,
        instance: data.instance,
        jobs: data.jobs,
        collected: data.collected,
        verdict: Some(&judged.verdict),
        folder: &store.case(&data.case.name),
    };
    diagnose::kept::keep(&artefacts, store).await?;
    kept::keep(&artefacts, store).await
}

/// Writes every report that is a file of the run's folder, and gives them back by name. One that cannot be made keeps
/// none of the others from being written.
pub(crate) fn write_reports(
    plan: &Plan,
    finished: &Finished,
    store: &Store,
) -> (Vec<(&'static str, Vec<u8>)>, Vec<StoreError>) {
    let facts = PageFacts::read(plan, &finished.cases, &store.folder()).with_past(plan, &finished.cases);
    let report = facts.report(plan, &finished.cases, &finished.summary);
    let (mut written, mut errors) = (Vec::new(), Vec::new());
    for reporter in &REPORTERS {
        let path = store.folder().join(reporter.file);
        let rendered = panics::caught(reporter.file, || (reporter.render)(&report));
        let rendered = rendered.unwrap_or_else(|why| Err(ReportError(format!("internal error: {why}"))));
        let rendered = rendered.map_err(|error| StoreError::other(&path, &error));
        match rendered.and_then(|bytes| store.write_text(&path, &bytes)) {
            Ok(bytes) => written.push((reporter.file, bytes)),
            Err(error) => errors.push(error),
        }
    }
    (written, errors)
}

/// Progress messages of a run; a message that many jobs or cases share is printed once.
#[derive(Default)]
struct EventLog {
    /// Why jobs were not launched, without what differs from one to the next.
    not_launched: BTreeSet<String>,
}

impl EventLog {
    fn show(&mut self, progress: &mut Progress, event: &Event) {
        match event {
            Event::JobSubmitted { case, job, nodes, estimate_s, .. } => {
                progress.job_started(case, job, nodes, *estimate_s);
            }
            Event::JobStarted { case, job, .. } => progress.job_began(case, job),
            Event::JobStarting { case, job, reason, .. } => progress.job_starting(case, job, reason),
            Event::SubmitLimit { most_jobs, why, .. } => {
                let key = match most_jobs {
                    0 => "your other jobs have to end first".to_owned(),
                    most => {
                        format!("the others wait; `most_jobs = {most}` in `[reach]` stays below the limit")
                    }
                };
                progress.note(&format!("Slurm accepts no more jobs for now: {key}: {why}"));
            }
            Event::JobEnded { case, job, end, .. } => progress.job_ended(case, job, end),
            Event::JobAgain { case, job, cause, .. } => {
                progress.note(&format!("{case} {job} is relaunched, the first attempt ended: {cause}"));
            }
            Event::JobNotSubmitted { case, job, why, .. }
                if self.not_launched.insert(normalised(why, &BTreeSet::new())) =>
            {
                progress.note(&format!("cannot launch {case} {job}: {why}"));
            }
            Event::NodeQuarantined { node, after, why, .. } => {
                progress.note(&format!("{node} quarantined after {after}: {why}"));
            }
            Event::RunStopped { why, .. } => progress.stopping(why),
            // What is not run of a case is said with its verdict.
            _ => {}
        }
    }
}
