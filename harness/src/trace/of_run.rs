//! The profiled jobs of a run: the reports of their ranks, and which job of a case shows what failed.

use crate::analyze;
use model::artefact::{CaseJobs, CaseVerdict, Collected, InstanceFacts, PlannedCase, Unfit};
use recipes::excerpt::ExcerptInput;
use recipes::recipe::FileRole;
use std::path::Path;
use store::Stored;

/// The reports of one job.
pub(crate) struct TracedJob {
    pub case: String,
    pub job: String,
    pub inputs: Vec<ExcerptInput>,
    /// Nodes that red results of the case are about: their ranks come first.
    pub first: Vec<String>,
    /// Other jobs of the case that have reports.
    pub others: usize,
}

/// Artefacts of a case.
pub(crate) struct CaseArtefacts<'a> {
    pub case: &'a PlannedCase,
    pub instance: &'a InstanceFacts,
    pub jobs: &'a CaseJobs,
    pub collected: &'a Collected,
    pub verdict: Option<&'a CaseVerdict>,
    /// The folder of the case.
    pub folder: &'a Path,
}

impl CaseArtefacts<'_> {
    /// Of the jobs that have reports the one that red results name; else the first.
    pub(crate) fn traced(&self) -> Option<TracedJob> {
        let CaseArtefacts { case, instance, jobs, collected, verdict, folder } = *self;
        let with_reports = analyze::inputs(case, instance, jobs, collected, &Unfit::new(), folder)
            .into_iter()
            .map(|job| {
                let inputs = job.files_of(FileRole::NsysExport).filter(|file| file.path.exists());
                let inputs = inputs.map(|file| ExcerptInput {
                    path: file.path.clone(),
                    shown: file.shown.rsplit('/').next().unwrap_or_default().to_owned(),
                    rank: file.rank.map_or(-1, i64::from),
                    node: file.node.clone(),
                });
                let mut inputs: Vec<ExcerptInput> = inputs.collect();
                inputs.sort_by_key(|input| input.rank);
                (job.job, inputs)
            })
            .filter(|(_, inputs)| !inputs.is_empty());
        let mut with_reports: Vec<(String, Vec<ExcerptInput>)> = with_reports.collect();
        let red = || verdict.into_iter().flat_map(|case| &case.verdicts).filter(|one| one.status.is_red());
        let is_named = |job: &str| {
            let raw = format!("cases/{}/raw/{job}", case.name);
            let evidence = || red().flat_map(|one| &one.evidence);
            evidence().any(|one| one.file == raw || one.file.starts_with(&format!("{raw}/")))
        };
        let at = with_reports.iter().position(|(job, _)| is_named(job)).unwrap_or(0);
        let others = with_reports.len().saturating_sub(1);
        let (job, inputs) = (at < with_reports.len()).then(|| with_reports.swap_remove(at))?;
        let mut first: Vec<String> = red().filter_map(|one| one.node.clone()).collect();
        first.sort();
        first.dedup();
        Some(TracedJob { case: case.name.clone(), job, inputs, first, others })
    }

    /// Whether anything of it is red.
    pub(crate) fn is_red(&self) -> bool {
        self.verdict.is_some_and(|case| case.verdicts.iter().any(|one| one.status.is_red()))
    }
}

/// The job of a stored run that is shown: of the case that is named; else of the first red one with reports, else of the
/// first with reports.
pub(crate) fn find(run: &Stored, named: Option<&str>) -> Result<TracedJob, String> {
    let id = base::text::show(&run.plan.run_id);
    if let Some(named) = named
        && !run.plan.cases.iter().any(|case| case.name == named)
    {
        let names: Vec<&str> = run.plan.cases.iter().map(|case| case.name.as_str()).collect();
        let near = base::suggest::nearest(named, names.iter().copied());
        let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        return Err(format!("no case `{}` in run `{id}`{near}", base::text::show(named)));
    }
    let mut green = None;
    for case in run.plan.cases.iter().filter(|case| named.is_none_or(|named| case.name == named)) {
        let read = |error: store::StoreError| error.to_string();
        let (Some(jobs), Some(collected)) =
            (run.jobs(&case.name).map_err(read)?, run.collected(&case.name).map_err(read)?)
        else {
            continue;
        };
        let verdict = run.verdict(&case.name).map_err(read)?;
        let case = &case.effective(&jobs);
        let artefacts = CaseArtefacts {
            case,
            instance: &run.plan.instance,
            jobs: &jobs,
            collected: &collected,
            verdict: verdict.as_ref(),
            folder: &run.case(&case.name),
        };
        match artefacts.traced() {
            Some(job) if artefacts.is_red() => return Ok(job),
            job => green = green.or(job),
        }
    }
    green.ok_or_else(|| {
        format!(
            "no case of run `{id}` has reports: a case asks for them by `profile`, and keeps them by `keep`"
        )
    })
}
