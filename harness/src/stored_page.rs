//! The page of a stored run, made from its artefacts alone.

use crate::page_facts::PageFacts;
use crate::report::{Report, RunState, run_page_at, run_page_live};
use crate::summary::summarise;
use base::text::show;
use model::artefact::{CaseVerdict, Format, RunRecord, Summary};
use recipes::catalogue::Catalogue;
use std::path::Path;
use store::Stored;
use verdict::history::past::{self, moment};
use verdict::judge::{self, Judged};

/// What the page of a run shows.
pub(crate) struct PageArtefacts<'a> {
    run: &'a Stored,
    cases: Vec<CaseVerdict>,
    summary: Summary,
    facts: PageFacts,
    contradiction: Option<String>,
}

impl PageArtefacts<'_> {
    /// Of a run that has ended.
    pub(crate) fn read(run: &Stored) -> Result<PageArtefacts<'_>, String> {
        let id = show(&run.plan.run_id);
        let mut summary = run.summary().map_err(|error| error.to_string())?.ok_or_else(|| {
            format!("run `{id}` has not ended: watch it with `harness watch`, or go on with `harness resume`")
        })?;
        let contradiction = disbelieve(run, &mut summary);
        let mut cases = Vec::new();
        for case in &run.plan.cases {
            cases.extend(run.verdict(&case.name).map_err(|error| error.to_string())?);
        }
        let facts = PageFacts::read(&run.plan, &cases, run.folder());
        Ok(PageArtefacts { run, cases, summary, facts, contradiction })
    }

    /// With what comparable runs before it measured.
    pub(crate) fn with_past(mut self) -> Self {
        self.facts = self.facts.with_past(&self.run.plan, &self.cases);
        self
    }

    /// Of a run that goes on: what its judged cases show. Which parts the run as a whole names is known at its end.
    pub(crate) fn so_far<'a>(run: &'a Stored, catalogue: &Catalogue) -> Result<PageArtefacts<'a>, String> {
        let mut judged = Vec::new();
        for case in &run.plan.cases {
            let verdict = run.verdict(&case.name).map_err(|error| error.to_string())?;
            let outcomes = run.outcomes(&case.name).map_err(|error| error.to_string())?;
            // One of them is written after the other.
            judged.extend(verdict.zip(outcomes).map(|(verdict, outcomes)| Judged { verdict, outcomes }));
        }
        let record = run.record().map_err(|error| error.to_string())?.unwrap_or_else(|| RunRecord {
            format: Format,
            started: moment(&run.plan.run_id).unwrap_or_default(),
            ended: None,
            seconds: None,
            stopped: None,
            signal_exit_code: None,
            artefacts: None,
        });
        let mut summary = summarise(&run.plan, &record, &judged.iter().collect::<Vec<_>>(), catalogue);
        let named = judged.iter().flat_map(|judged| judged.verdict.culprits.clone()).collect();
        summary.culprits = judge::merge_culprits(named, Vec::new());
        let cases: Vec<CaseVerdict> = judged.into_iter().map(|judged| judged.verdict).collect();
        let facts = PageFacts::read(&run.plan, &cases, run.folder());
        Ok(PageArtefacts { run, cases, summary, facts, contradiction: None })
    }

    /// How many cases are judged.
    pub(crate) fn judged(&self) -> usize {
        self.cases.len()
    }

    /// The page of a run that goes on, without secrets and without links.
    pub(crate) fn render_live(&self, state: &RunState) -> Result<Vec<u8>, String> {
        let page = run_page_live(&self.report(), state).map_err(|error| error.to_string())?;
        Ok(store::redactor().bytes(&page).bytes)
    }

    /// The page without secrets. `to_run` is the path from it to the run's folder, where its reader has that.
    pub(crate) fn render(&self, to_run: Option<&Path>) -> Result<Vec<u8>, String> {
        let page = run_page_at(&self.report(), to_run).map_err(|error| error.to_string())?;
        Ok(store::redactor().bytes(&page).bytes)
    }

    fn report(&self) -> Report<'_> {
        let mut report = self.facts.report(&self.run.plan, &self.cases, &self.summary);
        report.context.contradiction = self.contradiction.as_deref();
        report
    }
}

/// Why the summary of a stored run is not believed, where that is so: it blames the parts then that its cases do.
pub(crate) fn disbelieve(run: &Stored, summary: &mut Summary) -> Option<String> {
    let (why, culprits) = match past::run(run.folder()) {
        Ok(run) => (run.contradiction()?, run.culprits),
        Err(why) => (format!("INCOMPLETE: not compared with its verdicts: {why}"), Vec::new()),
    };
    summary.culprits = culprits;
    Some(why)
}
