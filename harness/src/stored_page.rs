//! The page of a stored run, made from its artefacts alone.

use crate::pipeline::jobs_of;
use crate::report::{Report, run_page_at};
use crate::trace::kept;
use base::text::show;
use model::artefact::{CaseJobs, CaseVerdict, Summary};
use recipes::excerpt::ReadTrace;
use std::path::Path;
use store::Stored;

/// What the page of a run shows.
pub(crate) struct PageArtefacts<'a> {
    run: &'a Stored,
    cases: Vec<CaseVerdict>,
    summary: Summary,
    jobs: Vec<(String, CaseJobs)>,
    traces: Vec<(String, Result<ReadTrace, String>)>,
}

impl PageArtefacts<'_> {
    /// Of a run that has ended.
    pub(crate) fn read(run: &Stored) -> Result<PageArtefacts<'_>, String> {
        let id = show(&run.plan.run_id);
        let summary = run.summary().map_err(|error| error.to_string())?.ok_or_else(|| {
            format!("run `{id}` has not ended: watch it with `harness watch`, or go on with `harness resume`")
        })?;
        let mut cases = Vec::new();
        for case in &run.plan.cases {
            cases.extend(run.verdict(&case.name).map_err(|error| error.to_string())?);
        }
        let jobs = jobs_of(&run.plan, &|case| run.case(case));
        let traces = kept::read_all(&run.plan, &cases, &|case| run.case(case));
        Ok(PageArtefacts { run, cases, summary, jobs, traces })
    }

    /// The page without secrets. `to_run` is the path from it to the run's folder, where its reader has that.
    pub(crate) fn render(&self, to_run: Option<&Path>) -> Result<Vec<u8>, String> {
        let report = Report {
            plan: &self.run.plan,
            cases: &self.cases,
            summary: &self.summary,
            jobs: &self.jobs,
            traces: &self.traces,
        };
        let page = run_page_at(&report, to_run).map_err(|error| error.to_string())?;
        Ok(store::redactor().bytes(&page).bytes)
    }
}
