//! Collection against a folder made of words: what is found, and what is missing and why.

use super::*;
use crate::artefact::Launcher;
use crate::artefact::{FileKind, PlannedJob, WorkloadFacts};
use crate::digest::sha256;
use crate::reach::{Answer, Command, Wait};
use crate::reach::{Host, Reach};
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
    let expected =
        |name: &str, kind| ExpectedFile { name: name.into(), kind, node: None, part: None, rank: None };
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
        stall_s: None,
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
                expected("broken-err", FileKind::Stderr),
            ],
            estimate_s: 1,
            limit_s: 1,
            secrets: Vec::new(),
            profile: None,
            kin: None,
            again_of: None,
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
        ("/f/broken-err", b"broken"),
    ]));
    let jobs = CaseJobs {
        format: FORMAT,
        skipped: None,
        jobs: vec![JobRecord {
            name: "j".into(),
            handle: None,
            submitted: None,
            started: None,
            ended: None,
            seconds: None,
            end,
            blamed: None,
            findings: Vec::new(),
        }],
    };
    let folders = Folders { reach: &files, launcher: Launcher::Slurm, nodes: &[] };
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("runtime");
    let collected = runtime.block_on(collect(&case(), &jobs, folders, None, &store)).expect("collected");
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
    let wanted = [
        ("empty", "empty"),
        ("gone", "not there"),
        ("broken", "cannot read: disk"),
        ("broken-err", "cannot read: disk"),
    ];
    assert_eq!(missing, wanted);
    let refused = collected.missing.iter().filter(|file| file.refused).map(|file| file.name.as_str());
    assert_eq!(refused.collect::<Vec<_>>(), ["broken", "broken-err"]);
}

#[test]
fn a_job_that_was_not_run_has_left_nothing_whatever_lies_in_its_folder() {
    for (end, told) in [
        (Ended::NotRun { why: "precondition".into() }, "the job was not run: precondition"),
        (Ended::LaunchFailed { why: "no".into() }, "the job was not launched"),
        (Ended::HostUnreachable { why: "no".into() }, "the job was not launched"),
    ] {
        let collected = collect_with(end);
        assert!(collected.files.is_empty());
        assert_eq!(collected.missing.len(), 4);
        assert!(collected.missing.iter().all(|file| file.why == told));
    }
}

#[test]
fn a_job_that_was_launched_before_its_host_was_lost_may_have_left_files() {
    let mut record = JobRecord {
        name: "j".into(),
        handle: Some("7".into()),
        submitted: None,
        started: None,
        ended: None,
        seconds: None,
        end: Ended::HostUnreachable { why: "no".into() },
        blamed: None,
        findings: Vec::new(),
    };
    assert_eq!(never_ran(&record), None);
    record.handle = None;
    assert_eq!(never_ran(&record).as_deref(), Some("the job was not launched"));
}
