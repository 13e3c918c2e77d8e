//! What was collected of a case, job by job: whoever reads the files of one job would look through those of all
//! otherwise, which costs the square of the nodes.

use model::artefact::{ChangedFile, Collected, CollectedFile, Format, MissingFile};
use std::collections::BTreeMap;

/// The collected files of each job.
pub(super) struct ByJob<'a>(BTreeMap<&'a str, JobFiles<'a>>);

#[derive(Default)]
struct JobFiles<'a> {
    files: Vec<&'a CollectedFile>,
    missing: Vec<&'a MissingFile>,
    changed: Vec<&'a ChangedFile>,
}

impl<'a> ByJob<'a> {
    pub(super) fn new(collected: &'a Collected) -> ByJob<'a> {
        let mut jobs: BTreeMap<&str, JobFiles> = BTreeMap::new();
        for file in &collected.files {
            jobs.entry(&file.job).or_default().files.push(file);
        }
        for file in &collected.missing {
            jobs.entry(&file.job).or_default().missing.push(file);
        }
        for file in &collected.changed {
            jobs.entry(&file.job).or_default().changed.push(file);
        }
        ByJob(jobs)
    }

    /// As if the case had but this job.
    pub(super) fn job(&self, name: &str) -> Collected {
        let none = JobFiles::default();
        let of_job = self.0.get(name).unwrap_or(&none);
        Collected {
            format: Format,
            files: of_job.files.iter().copied().cloned().collect(),
            missing: of_job.missing.iter().copied().cloned().collect(),
            changed: of_job.changed.iter().copied().cloned().collect(),
            simulated: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::artefact::{Change, FileKind};

    #[test]
    fn each_job_has_its_own_files_in_the_order_of_the_case() {
        let file = |job: &str, name: &str| CollectedFile {
            job: job.to_owned(),
            path: format!("raw/{job}/{name}"),
            kind: FileKind::Log,
            node: None,
            part: None,
            rank: None,
            bytes: 1,
            sha256: String::new(),
            redacted: 0,
        };
        let missing = MissingFile {
            job: "b".to_owned(),
            name: "stdout".to_owned(),
            kind: FileKind::Stdout,
            node: None,
            part: None,
            rank: None,
            why: "empty".to_owned(),
            refused: false,
        };
        let changed = ChangedFile { job: "a".to_owned(), path: "raw/a/2".to_owned(), how: Change::Edited };
        let case = Collected {
            format: Format,
            files: vec![file("a", "1"), file("b", "1"), file("a", "2")],
            missing: vec![missing.clone()],
            changed: vec![changed.clone()],
            simulated: Vec::new(),
        };
        let by_job = ByJob::new(&case);
        assert_eq!(by_job.job("a").files, [file("a", "1"), file("a", "2")]);
        assert_eq!((by_job.job("a").missing, by_job.job("a").changed), (vec![], vec![changed]));
        assert_eq!((by_job.job("b").files, by_job.job("b").missing), (vec![file("b", "1")], vec![missing]));
        assert!(by_job.job("c").files.is_empty());
    }
}
