//! Brings home what a case's jobs left, digests it, and names what is missing. It reads no measurement.

use crate::artefact::{
    CaseJobs, Collected, CollectedFile, Ended, ExpectedFile, FORMAT, JobRecord, MissingFile, PlannedCase,
};
use crate::reach::{Host, Reach, ReachError};
use crate::store::{Store, StoreError, sha256};

/// Every file that the plan expects of the case's jobs is found in `files` or in `missing`.
pub async fn collect(
    case: &PlannedCase,
    jobs: &CaseJobs,
    reach: &dyn Reach,
    store: &Store,
) -> Result<Collected, StoreError> {
    let mut collected = Collected { format: FORMAT, files: Vec::new(), missing: Vec::new() };
    for planned in &case.jobs {
        let record = jobs.jobs.iter().find(|record| record.name == planned.name);
        for expected in &planned.expected {
            let path = format!("{}/{}", planned.folder, expected.name);
            let fetched = match record.map(never_ran) {
                Some(None) => reach.get(&Host::Here, &path).await.map_err(|error| why(&error)),
                Some(Some(reason)) => Err(reason),
                None => Err("the job has no record".to_owned()),
            };
            match fetched {
                // An empty file where something had to be printed is as good as none, and says so.
                Ok(bytes) if bytes.is_empty() && expected.kind.is_required() => {
                    collected.missing.push(missing(&planned.name, expected, "empty".to_owned()));
                }
                Ok(bytes) => {
                    store.write(&store.raw(&case.name, &planned.name).join(&expected.name), &bytes)?;
                    collected.files.push(CollectedFile {
                        job: planned.name.clone(),
                        path: format!("raw/{}/{}", planned.name, expected.name),
                        kind: expected.kind,
                        node: expected.node.clone(),
                        part: expected.part.clone(),
                        bytes: bytes.len() as u64,
                        sha256: sha256(&bytes),
                    });
                }
                Err(why) => {
                    if expected.kind.is_required() {
                        collected.missing.push(missing(&planned.name, expected, why));
                    }
                }
            }
        }
    }
    Ok(collected)
}

/// Why a job can have left nothing at all.
fn never_ran(record: &JobRecord) -> Option<String> {
    match &record.end {
        Ended::NotRun { why } => Some(format!("the job was not run: {why}")),
        Ended::LaunchFailed { .. } => Some("the job was not launched".to_owned()),
        _ => None,
    }
}

fn missing(job: &str, expected: &ExpectedFile, why: String) -> MissingFile {
    MissingFile {
        job: job.to_owned(),
        name: expected.name.clone(),
        kind: expected.kind,
        node: expected.node.clone(),
        part: expected.part.clone(),
        why,
    }
}

fn why(error: &ReachError) -> String {
    match error {
        ReachError::NotFound { .. } => "not there".to_owned(),
        error => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artefact::{FileKind, PlannedJob, WorkloadFacts};
    use crate::reach::{Answer, Command, Wait};
    use std::collections::BTreeMap;

    struct Files(BTreeMap<&'static str, &'static [u8]>);

    impl Reach for Files {
        fn exec<'a>(&'a self, _: &'a Host, _: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
            Box::pin(async { Ok(Answer::ok("")) })
        }
        fn put<'a>(&'a self, _: &'a Host, _: &'a str, _: &'a [u8]) -> Wait<'a, Result<(), ReachError>> {
            Box::pin(async { Ok(()) })
        }
        fn get<'a>(&'a self, _: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
            let found = match self.0.get(path) {
                Some(bytes) if *bytes == b"broken" => {
                    Err(ReachError::Failed { what: "cannot read".into(), why: "disk".into() })
                }
                Some(bytes) => Ok(bytes.to_vec()),
                None => Err(ReachError::NotFound { path: path.into() }),
            };
            Box::pin(async { found })
        }
    }

    fn case() -> PlannedCase {
        let expected = |name: &str, kind| ExpectedFile { name: name.into(), kind, node: None, part: None };
        PlannedCase {
            suite: "s".into(),
            name: "c".into(),
            about: String::new(),
            tags: Vec::new(),
            workload: WorkloadFacts::Command { program: "true".into() },
            recipes: Vec::new(),
            after: Vec::new(),
            skip: None,
            expected_failure: None,
            must_end: None,
            sim_faults: Vec::new(),
            limit_s: 1,
            queue_limit_s: 1,
            jobs: vec![PlannedJob {
                name: "j".into(),
                nodes: vec!["n1".into()],
                round: 1,
                ranks: 1,
                folder: "/f".into(),
                files: Vec::new(),
                launch: Vec::new(),
                expected: vec![
                    expected("good", FileKind::Stdout),
                    expected("empty", FileKind::Counters),
                    expected("gone", FileKind::Flow),
                    expected("broken", FileKind::NcclTests),
                    expected("no-log", FileKind::Log),
                    expected("empty-err", FileKind::Stderr),
                ],
                estimate_s: 1,
                limit_s: 1,
            }],
            assertions: Vec::new(),
        }
    }

    fn collect_with(end: Ended) -> Collected {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(folder.path().join("suites")).expect("suites");
        std::fs::create_dir_all(folder.path().join("inventory")).expect("inventory");
        let home = crate::store::Home::find(folder.path()).expect("home");
        let store = Store::create(&home, "run").expect("store");
        let files = Files(BTreeMap::from([
            ("/f/good", b"hello".as_slice()),
            ("/f/empty", b""),
            ("/f/broken", b"broken"),
            ("/f/empty-err", b""),
        ]));
        let jobs = CaseJobs {
            format: FORMAT,
            jobs: vec![JobRecord {
                name: "j".into(),
                handle: None,
                submitted: None,
                started: None,
                ended: None,
                seconds: None,
                end,
                blamed: None,
            }],
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("runtime");
        let collected = runtime.block_on(collect(&case(), &jobs, &files, &store)).expect("collected");
        for file in &collected.files {
            assert!(store.case("c").join(&file.path).is_file(), "{}", file.path);
        }
        collected
    }

    #[test]
    fn what_is_absent_empty_or_unreadable_is_named_and_what_may_be_absent_is_not() {
        let collected = collect_with(Ended::Exited { code: 0 });
        let found: Vec<&str> = collected.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(found, ["raw/j/good", "raw/j/empty-err"]);
        assert_eq!(collected.files[0].bytes, 5);
        assert_eq!(collected.files[0].sha256, sha256(b"hello"));
        let missing: Vec<(&str, &str)> =
            collected.missing.iter().map(|file| (file.name.as_str(), file.why.as_str())).collect();
        assert_eq!(missing, [("empty", "empty"), ("gone", "not there"), ("broken", "cannot read: disk")]);
    }

    #[test]
    fn a_job_that_was_not_run_has_left_nothing_whatever_lies_in_its_folder() {
        for (end, told) in [
            (Ended::NotRun { why: "precondition".into() }, "the job was not run: precondition"),
            (Ended::LaunchFailed { why: "no".into() }, "the job was not launched"),
        ] {
            let collected = collect_with(end);
            assert!(collected.files.is_empty());
            assert_eq!(collected.missing.len(), 4);
            assert!(collected.missing.iter().all(|file| file.why == told));
        }
    }
}
