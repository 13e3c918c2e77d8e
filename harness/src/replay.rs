//! Replays a stored run from a later stage, as a run of its own: it needs no cluster and no inventory, because the
//! stages read only artefacts. The stored run is read and never written; what each stage does is in `pipeline`.

use crate::pipeline::{self, CaseFiles, Finished};
use crate::tasks::Cluster;
use cluster::collect;
use cluster::reach::Reach;
use metric::Metrics;
use metric::lacks::NotComparable;
use model::artefact::{
    Analysis, CaseJobs, Collected, Culprit, Ended, Format, JobAnalysis, JobRecord, MissingFile, Plan,
    PlannedCase, RunRecord,
};
use recipes::catalogue::Catalogue;
use std::path::Path;
use store::{Store, StoreError, Stored};
use verdict::judge::CaseData;
use verdict::judge::Judged;

/// The first stage that is replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum From {
    /// Re-read the files in `raw/`, then continue
    Collect,
    /// Compute metrics, verdicts and reports from the collected files
    Analyze,
    /// Judge the stored metrics, by the baselines as they are now
    Judge,
    /// Write the reports of the stored verdicts
    Report,
}

impl From {
    /// As the command line has it, such as `judge`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            From::Collect => "collect",
            From::Analyze => "analyze",
            From::Judge => "judge",
            From::Report => "report",
        }
    }
}

/// The input of a replay, which is read completely before anything is written.
pub(crate) struct ReplayInput<'a> {
    parent: &'a Stored,
    plan: Plan,
    from: From,
    record: RunRecord,
    cases: Vec<CaseInput>,
}

struct CaseInput {
    jobs: CaseJobs,
    collected: Option<Collected>,
    analyzed: Option<(Analysis, Metrics)>,
    judged: Option<Judged>,
    /// What the verdict was made of.
    made_of: Option<(Analysis, Metrics)>,
}

/// The plan of a run that is made from another: its own id, and the parent's name.
pub(crate) fn child(parent: &Plan, run_id: String, from: From) -> Plan {
    Plan {
        format: Format,
        run_id,
        parent: Some(parent.run_id.clone()),
        replayed_from: Some(from.name().to_owned()),
        harness: env!("CARGO_PKG_VERSION").to_owned(),
        ..parent.clone()
    }
}

/// Reads what the stages from `from` on need of the stored run. `plan` is a child of the stored one.
pub(crate) fn ready(parent: &Stored, plan: Plan, from: From) -> Result<ReplayInput<'_>, StoreError> {
    parent.check_plan()?;
    let mut cases = Vec::new();
    let mut without = 0;
    for case in &plan.cases {
        let jobs = parent.jobs(&case.name)?;
        without += usize::from(jobs.is_none());
        let collected = parent.collected(&case.name)?;
        // Taken over as it is.
        parent.kept(&case.name)?;
        // A result without what it was made of shows nothing.
        let is_complete = jobs.is_some() && collected.is_some();
        let analyzed = match from {
            From::Judge | From::Report => parent.analysis(&case.name)?.zip(parent.metrics(&case.name)?),
            _ => None,
        };
        let analyzed = analyzed.filter(|_| is_complete);
        let judged = match from {
            From::Report => judged(parent, &case.name)?.filter(|_| analyzed.is_some()),
            _ => None,
        };
        let (analyzed, made_of) = if from == From::Report { (None, analyzed) } else { (analyzed, None) };
        let jobs = jobs.unwrap_or_else(|| none_run(case));
        cases.push(CaseInput { jobs, collected, analyzed, judged, made_of });
    }
    parent.probe()?;
    let record = record(parent, without, cases.len())?;
    Ok(ReplayInput { parent, plan, from, record, cases })
}

impl ReplayInput<'_> {
    /// The plan of the new run, whose parent is the stored one.
    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Judges again what stored verdicts were made of: one that does not follow from it was changed, or is another run's.
    pub(crate) fn check(&self, catalogue: &Catalogue) -> Result<(), StoreError> {
        let cluster = store::cluster_of(self.parent.folder())?;
        for (case, input) in self.plan.cases.iter().zip(&self.cases) {
            let CaseInput {
                jobs,
                collected: Some(collected),
                judged: Some(stored),
                made_of: Some(made_of),
                ..
            } = input
            else {
                continue;
            };
            let (analysis, metrics) = made_of;
            let effective = case.effective(jobs);
            let instance = &self.plan.instance;
            let launcher = self.plan.launcher;
            let data = CaseData {
                case: &effective,
                launcher,
                cluster: cluster.as_ref(),
                instance,
                jobs,
                collected,
                analysis,
                metrics,
                catalogue,
            };
            if !follows(stored, &data) {
                let path = self.parent.case(&case.name).join("verdict.json");
                let why = "does not follow from the jobs and metrics beside it; `--from judge` judges these";
                return Err(StoreError::other(&path, &why));
            }
        }
        Ok(())
    }

    /// Runs the stages, and writes their artefacts. Missing files are fetched from `beyond`, if
    /// given; reports are read by the nodes of a cluster, where `on` is one.
    pub(crate) async fn replay(
        self,
        beyond: Option<&dyn Reach>,
        on: Option<&Cluster>,
        catalogue: &Catalogue,
        store: &Store,
    ) -> Result<Finished, StoreError> {
        let ReplayInput { parent, plan, from, mut record, cases } = self;
        store.write_json(&store.folder().join("plan.json"), &plan)?;
        // The probe of the nodes is part of the evidence of their numbers.
        store.carry(parent.folder(), &|file| file == Path::new("probe.json"))?;
        let cluster = store::cluster_of(parent.folder())?;
        if let Some(cluster) = &cluster {
            store.is_in(cluster)?;
        }
        if from > From::Collect {
            store.carry(parent.folder(), &|file| is_carried(file, from))?;
        }
        pipeline::write_record(&record, store)?;
        let mut judged = Vec::new();
        for (case, ready) in plan.cases.iter().zip(cases) {
            let folder = store.case(&case.name);
            let CaseInput { jobs, collected, analyzed, judged: stored, made_of: _ } = ready;
            store.write_json(&folder.join("job.json"), &jobs)?;
            let (launched, effective) = (case.launched(&jobs), case.effective(&jobs));
            let collected = match (from, collected) {
                (From::Collect, before) => {
                    let at_home = parent.case(&case.name);
                    collect::collect_again(&plan, &launched, &jobs, before.as_ref(), &at_home, beyond, store)
                        .await?
                }
                (_, Some(collected)) => collected,
                (_, None) => none_collected(&launched),
            };
            store.write_json(&folder.join("collected.json"), &collected)?;
            if let Some(stored) = stored {
                judged.push(stored);
                continue;
            }
            let (metrics, analysis) = match (from, analyzed) {
                (From::Collect | From::Analyze, _) => {
                    let unfit = collect::unfit(&collected, &folder);
                    let seen = CaseFiles { jobs: &jobs, collected: &collected, unfit: &unfit };
                    let kept = pipeline::extract(&plan, &effective, &seen, on, catalogue, store).await?;
                    pipeline::analyze_case(&plan, &effective, &seen, &kept, catalogue, store)?
                }
                (_, Some((analysis, metrics))) => (metrics, analysis),
                (_, None) => (Metrics::default(), none_analyzed(&effective)),
            };
            let data = CaseData {
                case: &effective,
                launcher: plan.launcher,
                cluster: cluster.as_ref(),
                instance: &plan.instance,
                jobs: &jobs,
                collected: &collected,
                analysis: &analysis,
                metrics: &metrics,
                catalogue,
            };
            let of_case = pipeline::judge_case(&data, store)?;
            pipeline::keep_excerpts(&data, &of_case, store).await?;
            judged.push(of_case);
        }
        if from == From::Collect {
            store.carry(parent.folder(), &|file| is_carried(file, from))?;
        }
        pipeline::close_record(&mut record, &plan, store)?;
        Ok(pipeline::finish(&plan, &record, judged, catalogue))
    }
}

/// Whether a file is copied as it is: events, collected files, and the results of the stages before `from`.
fn is_carried(file: &Path, from: From) -> bool {
    let inner: Vec<&str> = file.iter().filter_map(|part| part.to_str()).collect();
    match inner.as_slice() {
        [name] => name.ends_with(".jsonl") || ["probe.json", "cluster.json"].contains(name),
        ["cases", _, "raw", ..] => true,
        ["cases", _, "metrics.parquet" | "analysis.json"] => from > From::Analyze,
        ["cases", _, "verdict.json" | "outcomes.json"] => from > From::Judge,
        ["cases", _, "reports.json" | "trace.json" | "diagnosis.json"] => true,
        _ => false,
    }
}

/// Whether a stored verdict is what its jobs and metrics come to.
fn follows(stored: &Judged, data: &CaseData<'_>) -> bool {
    let judged = verdict::judge::judge(data);
    let statuses = |judged: &Judged| -> Vec<_> {
        judged.verdict.verdicts.iter().map(|one| (one.name.clone(), one.status)).collect()
    };
    statuses(stored) == statuses(&judged)
        && stored.verdict.end == judged.verdict.end
        && stored.verdict.common_failure.is_some() == judged.verdict.common_failure.is_some()
        && name_the_same(&stored.verdict.culprits, &judged.verdict.culprits)
}

/// The same parts by the same codes, which earlier versions did not write. How they are worded is the version's.
fn name_the_same(stored: &[Culprit], judged: &[Culprit]) -> bool {
    let is_same = |(stored, judged): (&Culprit, &Culprit)| match (stored, judged) {
        (
            Culprit::Culprit { node, part, code, .. },
            Culprit::Culprit { node: its_node, part: its_part, code: its_code, .. },
        ) => node == its_node && part == its_part && (code.is_none() || code == its_code),
        (Culprit::Suspects { nodes, .. }, Culprit::Suspects { nodes: its_nodes, .. }) => nodes == its_nodes,
        (Culprit::Fleet { .. }, Culprit::Fleet { .. }) => true,
        _ => false,
    };
    stored.len() == judged.len() && stored.iter().zip(judged).all(is_same)
}

fn judged(parent: &Stored, case: &str) -> Result<Option<Judged>, StoreError> {
    let Some(verdict) = parent.verdict(case)? else { return Ok(None) };
    match parent.outcomes(case)? {
        Some(outcomes) => Ok(Some(Judged { verdict, outcomes })),
        None => {
            let path = parent.case(case).join("outcomes.json");
            Err(StoreError::other(
                &path,
                &"missing, though `verdict.json` is there; `--from judge` makes it again",
            ))
        }
    }
}

/// How the stored run went. One that did not come to its end, or lost what it had, says so.
fn record(parent: &Stored, without: usize, of: usize) -> Result<RunRecord, StoreError> {
    let record = parent.record()?;
    let ended = record.as_ref().is_some_and(|record| record.ended.is_some());
    if let Some(record) = record.clone().filter(|_| ended) {
        return Ok(RunRecord { artefacts: None, ..record });
    }
    let events = parent.first_and_last_event()?;
    let Some((started, last)) =
        record.map(|record| record.started).zip(events.as_ref().map(|events| events.1.clone())).or(events)
    else {
        let path = parent.folder().join("run.json");
        return Err(StoreError::other(&path, &"the run had not begun: there is nothing to replay"));
    };
    Ok(RunRecord {
        format: Format,
        seconds: seconds_between(&started, &last),
        started,
        ended: Some(last),
        stopped: Some(format!("the run did not finish: {without} of {of} cases have no results")),
        signal_exit_code: None,
        artefacts: None,
    })
}

fn seconds_between(from: &str, to: &str) -> Option<f64> {
    let moment = |text: &str| {
        time::OffsetDateTime::parse(text, &time::format_description::well_known::Iso8601::DEFAULT).ok()
    };
    let between = (moment(to)? - moment(from)?).as_seconds_f64();
    Some((between * 1e3).round() / 1e3)
}

/// The jobs of a case that has none on record.
fn none_run(case: &PlannedCase) -> CaseJobs {
    let never = |name: &String| JobRecord {
        name: name.clone(),
        handle: None,
        submitted: None,
        started: None,
        ended: None,
        seconds: None,
        end: Ended::NotRun { why: "the stored run has no record of this job".to_owned() },
        blamed: None,
        findings: Vec::new(),
    };
    let first = case.jobs.iter().filter(|job| job.again_of.is_none());
    let jobs = first.map(|job| never(&job.name)).collect();
    CaseJobs { format: Format, skipped: case.skip.clone(), jobs }
}

/// What is missing of a case whose files were not accounted for: all that must be there.
fn none_collected(case: &PlannedCase) -> Collected {
    let mut missing = Vec::new();
    for job in &case.jobs {
        missing.extend(job.expected.iter().filter(|file| file.kind.is_required()).map(|file| MissingFile {
            job: job.name.clone(),
            name: file.name.clone(),
            kind: file.kind,
            node: file.node.clone(),
            part: file.part.clone(),
            rank: file.rank,
            why: "the stored run did not list it; try `--from collect`".to_owned(),
            refused: false,
        }));
    }
    Collected { format: Format, files: Vec::new(), missing, changed: Vec::new(), simulated: Vec::new() }
}

/// The analysis of a case that has none: its jobs cannot be judged, whatever became of them.
fn none_analyzed(case: &PlannedCase) -> Analysis {
    let why = "the stored run has no metrics of it";
    let none = NotComparable { cause: "not-analyzed".to_owned(), why: why.to_owned() };
    let job = JobAnalysis { not_comparable: Some(none), ..JobAnalysis::default() };
    Analysis { format: Format, jobs: case.jobs.iter().map(|one| (one.name.clone(), job.clone())).collect() }
}
