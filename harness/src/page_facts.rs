//! What the page of a run shows beside its verdicts: jobs, excerpts and diagnoses of reports, the probe of its nodes, and
//! what comparable runs before it measured.

use crate::diagnose::kept::{self as diagnoses, CaseDiagnosis};
use crate::report::{PageContext, Report};
use crate::trace::kept as traces;
use model::artefact::{CaseJobs, CaseVerdict, Plan, Probe, RunCluster, Summary};
use recipes::excerpt::ReadTrace;
use std::path::{Path, PathBuf};
use store::vetting;
use verdict::history::before::{RunOf, RunsBefore};

/// Read from the folder of the run.
pub(crate) struct PageFacts {
    folder: PathBuf,
    jobs: Vec<(String, CaseJobs)>,
    traces: Vec<(String, Result<ReadTrace, String>)>,
    diagnoses: Vec<(String, Result<CaseDiagnosis, String>)>,
    probe: Option<Probe>,
    cluster: Option<RunCluster>,
    before: Option<RunsBefore>,
}

impl PageFacts {
    /// What cannot be read is not shown: the run stands without it.
    pub(crate) fn read(plan: &Plan, cases: &[CaseVerdict], folder: &Path) -> PageFacts {
        let of_case = |case: &str| folder.join("cases").join(case);
        let jobs = plan.cases.iter().filter_map(|case| {
            let jobs = store::read_json(&of_case(&case.name).join("job.json")).ok()?;
            Some((case.name.clone(), jobs))
        });
        PageFacts {
            folder: folder.to_owned(),
            jobs: jobs.collect(),
            traces: traces::read_all(plan, cases, &of_case),
            diagnoses: diagnoses::read_all(plan, &of_case),
            probe: store::read_json(&folder.join("probe.json")).ok(),
            cluster: store::cluster_of(folder).ok().flatten(),
            before: None,
        }
    }

    /// With the comparable runs that lie beside it.
    pub(crate) fn with_past(mut self, plan: &Plan, cases: &[CaseVerdict]) -> PageFacts {
        let run = RunOf { folder: &self.folder, plan, cases, probe: self.probe.as_ref() };
        self.before = Some(RunsBefore::read(&run, &vetting::refused));
        self
    }

    pub(crate) fn report<'a>(
        &'a self,
        plan: &'a Plan,
        cases: &'a [CaseVerdict],
        summary: &'a Summary,
    ) -> Report<'a> {
        let context = PageContext {
            probe: self.probe.as_ref(),
            before: self.before.as_ref(),
            diagnoses: &self.diagnoses,
            contradiction: None,
        };
        let cluster = self.cluster.as_ref();
        Report {
            cluster,
            jobs: &self.jobs,
            traces: &self.traces,
            context,
            ..Report::new(plan, cases, summary)
        }
    }
}
