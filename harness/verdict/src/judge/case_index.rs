//! What is asked of a case for each of its assertions, found by name: a case of thousands of nodes has as many jobs, and
//! to look through all of them for each assertion costs the square of the nodes.

use super::CaseData;
use model::artefact::{
    CollectedFile, ControlRun, FileKind, JobRecord, MissingFile, PlannedAssertion, PlannedJob,
};
use std::collections::{BTreeMap, BTreeSet};

type JobAndNode<'a> = (&'a str, Option<&'a str>);
/// A file with its place among all.
type PlacedFile<'a> = (usize, &'a CollectedFile);

pub(crate) struct CaseIndex<'a> {
    planned: BTreeMap<&'a str, &'a PlannedJob>,
    records: BTreeMap<&'a str, &'a JobRecord>,
    files: BTreeMap<JobAndNode<'a>, Vec<PlacedFile<'a>>>,
    /// By job: those without any file are absent.
    nodes_with_files: BTreeMap<&'a str, BTreeSet<Option<&'a str>>>,
    /// The first refused output of each job. Reports of profilers have an audit of their own.
    refused: BTreeMap<&'a str, &'a MissingFile>,
    /// The control run of a job, and what the profiler or NCCL's Inspector may cost it.
    control_runs: BTreeMap<&'a str, (&'a str, f64)>,
}

impl<'a> CaseIndex<'a> {
    pub(super) fn new(data: &CaseData<'a>) -> CaseIndex<'a> {
        let mut index = CaseIndex {
            planned: BTreeMap::new(),
            records: BTreeMap::new(),
            files: BTreeMap::new(),
            nodes_with_files: BTreeMap::new(),
            refused: BTreeMap::new(),
            control_runs: BTreeMap::new(),
        };
        for job in &data.case.jobs {
            index.planned.entry(&job.name).or_insert(job);
            if let Some(ControlRun::Bare { of, cost_at_most }) = &job.control_run {
                index.control_runs.entry(of).or_insert((job.name.as_str(), *cost_at_most));
            }
        }
        for record in &data.jobs.jobs {
            index.records.entry(&record.name).or_insert(record);
        }
        for (place, file) in data.collected.files.iter().enumerate() {
            let node = file.node.as_deref();
            index.files.entry((file.job.as_str(), node)).or_default().push((place, file));
            index.nodes_with_files.entry(&file.job).or_default().insert(node);
        }
        use FileKind::{ProfileAccount, ProfileReport, ProfileTable};
        let is_output = |kind| !matches!(kind, ProfileAccount | ProfileReport | ProfileTable);
        for file in data.collected.missing.iter().filter(|file| file.refused && is_output(file.kind)) {
            index.refused.entry(&file.job).or_insert(file);
        }
        index
    }

    pub(super) fn planned(&self, job: &str) -> Option<&'a PlannedJob> {
        self.planned.get(job).copied()
    }

    pub(super) fn record(&self, job: &str) -> Option<&'a JobRecord> {
        self.records.get(job).copied()
    }

    pub(super) fn refused(&self, job: &str) -> Option<&'a MissingFile> {
        self.refused.get(job).copied()
    }

    pub(super) fn control_run(&self, job: &str) -> Option<(&'a str, f64)> {
        self.control_runs.get(job).copied()
    }

    /// The first files of its jobs that are its node's or of no node, in the order in which they were collected.
    pub(super) fn files_of(
        &self,
        assertion: &PlannedAssertion,
        most: usize,
        wanted: &dyn Fn(&CollectedFile) -> bool,
    ) -> Vec<&'a CollectedFile> {
        let mut found: BTreeMap<usize, &'a CollectedFile> = BTreeMap::new();
        for job in &assertion.jobs {
            let all = || self.nodes_with_files.get(job.as_str()).into_iter().flatten().copied();
            let nodes: Vec<Option<&str>> = match assertion.node.as_deref() {
                Some(node) => vec![None, Some(node)],
                None => all().collect(),
            };
            for node in nodes {
                let files = self.files.get(&(job.as_str(), node)).into_iter().flatten();
                found.extend(files.filter(|(_, file)| wanted(file)).take(most).copied());
            }
        }
        found.into_values().take(most).collect()
    }
}
