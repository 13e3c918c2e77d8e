//! Collection against a folder made of words: what is found, and what is missing and why.

use super::*;
use crate::reach::sink::Sink;
use crate::reach::{Answer, Command, Wait};
use crate::reach::{Host, Reach};
use base::digest::sha256;
use model::artefact::Launcher;
use model::artefact::{FileKind, JobProperties, PlannedJob, WorkloadFacts};
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

pub(super) fn case() -> PlannedCase {
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
        not_installed: None,
        expected_failure: None,
        must_end: None,
        sim_faults: Vec::new(),
        properties: JobProperties { limit_s: 1, stall_s: None, queue_limit_s: 1 },
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
            control_run: None,
            again_of: None,
            evidence: None,
        }],
        assertions: Vec::new(),
    }
}

pub(super) fn ended(end: Ended) -> CaseJobs {
    let record = JobRecord {
        name: "j".into(),
        handle: None,
        submitted: None,
        started: None,
        ended: None,
        seconds: None,
        end,
        blamed: None,
        findings: Vec::new(),
    };
    CaseJobs { format: Format, skipped: None, jobs: vec![record] }
}

fn collect_with(end: Ended) -> Collected {
    collect_case(&case(), end)
}

fn collect_case(case: &PlannedCase, end: Ended) -> Collected {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir_all(folder.path().join("suites")).expect("suites");
    std::fs::create_dir_all(folder.path().join("inventory")).expect("inventory");
    let home = store::Home::find(folder.path()).expect("home");
    let store = Store::create(&home, "run").expect("store");
    let files = Files(BTreeMap::from([
        ("/f/good", b"hello".as_slice()),
        ("/f/empty", b""),
        ("/f/broken", b"broken"),
        ("/f/empty-err", b""),
        ("/f/broken-err", b"broken"),
    ]));
    let jobs = ended(end);
    let folders = Folders { reach: &files, launcher: Launcher::Slurm, nodes: &[] };
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("runtime");
    let collected = runtime.block_on(collect(case, &jobs, folders, None, &store)).expect("collected");
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
fn an_empty_stdout_is_missing_only_where_another_rank_than_rank_0_prints() {
    let missing = |program: &str, printed: &str| {
        let mut case = case();
        case.workload =
            WorkloadFacts::Training { program: program.to_owned(), facts: metric::TrainingFacts::default() };
        let of_node = |name: &str| ExpectedFile {
            name: name.to_owned(),
            kind: FileKind::Stdout,
            node: None,
            part: None,
            rank: None,
        };
        case.jobs[0].expected = [printed, "empty"].map(of_node).into();
        let collected = collect_case(&case, Ended::Exited { code: 0 });
        collected.missing.into_iter().map(|file| format!("{}: {}", file.name, file.why)).collect::<Vec<_>>()
    };
    assert_eq!(missing("torch-ddp", "good"), Vec::<String>::new());
    assert_eq!(missing("torchrun", "good"), ["empty: empty"]);
    // Rank 0 printed nothing either.
    assert_eq!(missing("torch-ddp", "gone"), ["gone: not there", "empty: empty"]);
}

/// A file that comes in two goes: the first breaks off.
struct BreaksOff(Result<&'static [u8], ReachError>);

impl Reach for BreaksOff {
    fn exec<'a>(&'a self, _: &'a Host, _: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
        Box::pin(async { Ok(Answer::ok("")) })
    }
    fn put<'a>(&'a self, _: &'a Host, _: &'a str, _: &'a [u8]) -> Wait<'a, Result<(), ReachError>> {
        Box::pin(async { Ok(()) })
    }
    fn get<'a>(&'a self, _: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
        Box::pin(async move { Err(ReachError::NotFound { path: path.into() }) })
    }
    fn fetch<'a>(
        &'a self,
        _: &'a Host,
        path: &'a str,
        sink: &'a mut dyn Sink,
    ) -> Wait<'a, Result<u64, ReachError>> {
        Box::pin(async move {
            if path != "/f/good" {
                return Err(ReachError::NotFound { path: path.into() });
            }
            let unwritten = crate::reach::sink::unwritten;
            sink.restart().map_err(unwritten)?;
            for _ in 0..4 {
                sink.append(&[b'x'; 64 << 10]).map_err(unwritten)?;
            }
            let bytes = self.0.clone()?;
            sink.restart().and_then(|()| sink.append(bytes)).map_err(unwritten)?;
            Ok(bytes.len() as u64)
        })
    }
}

fn collect_from(reach: &dyn Reach, store: &Store) -> Result<Collected, StoreError> {
    let folders = Folders { reach, launcher: Launcher::Slurm, nodes: &[] };
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("runtime");
    runtime.block_on(collect(&case(), &ended(Ended::Exited { code: 0 }), folders, None, store))
}

#[test]
fn nothing_stays_of_a_file_that_broke_off() {
    let home = tempfile::tempdir().expect("a folder");
    let lies = |store: &Store| {
        let entries = std::fs::read_dir(store.raw("c", "j")).expect("there");
        entries.map(|entry| entry.expect("read").file_name().into_string().expect("text")).collect::<Vec<_>>()
    };
    let store = Store::create_in(home.path(), "again").expect("store");
    let collected = collect_from(&BreaksOff(Ok(b"HF_TOKEN=abc\n")), &store).expect("collected");
    let clean = b"HF_TOKEN=[redacted]\n";
    assert_eq!(std::fs::read(store.raw("c", "j").join("good")).expect("there"), clean);
    let file = &collected.files[0];
    assert_eq!((file.bytes, file.redacted, &file.sha256), (clean.len() as u64, 1, &sha256(clean)));
    assert_eq!(lies(&store), ["good"]);

    let store = Store::create_in(home.path(), "never").expect("store");
    let lost = ReachError::Failed { what: "cannot read".into(), why: "gone".into() };
    let collected = collect_from(&BreaksOff(Err(lost)), &store).expect("collected");
    assert_eq!((collected.files.len(), collected.missing[0].why.as_str()), (0, "cannot read: gone"));
    assert_eq!(lies(&store), [] as [&str; 0]);
}

/// A file that an NFS client remembers as absent until something is written into its folder here.
struct RemembersAbsence(Files, std::cell::Cell<bool>);

impl Reach for RemembersAbsence {
    fn exec<'a>(&'a self, host: &'a Host, command: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
        self.0.exec(host, command)
    }
    fn put<'a>(&'a self, host: &'a Host, path: &'a str, bytes: &'a [u8]) -> Wait<'a, Result<(), ReachError>> {
        self.1.set(self.1.get() || path.starts_with("/f/"));
        self.0.put(host, path, bytes)
    }
    fn get<'a>(&'a self, host: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
        match path == "/f/gone" && !self.1.get() {
            true => Box::pin(async { Err(ReachError::NotFound { path: path.into() }) }),
            false => self.0.get(host, path),
        }
    }
}

#[test]
fn a_file_that_nfs_remembers_as_absent_is_collected() {
    let home = tempfile::tempdir().expect("a folder");
    let store = Store::create_in(home.path(), "run").expect("store");
    let files = Files(BTreeMap::from([("/f/good", b"x".as_slice()), ("/f/gone", b"there")]));
    let reach = RemembersAbsence(files, std::cell::Cell::new(false));
    let collected = collect_from(&reach, &store).expect("collected");
    let found: Vec<&str> = collected.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(found, ["raw/j/good", "raw/j/gone"]);
}

#[test]
fn a_file_that_cannot_be_written_here_is_no_fault_of_the_node() {
    let home = tempfile::tempdir().expect("a folder");
    let store = Store::create_in(home.path(), "run").expect("store");
    std::fs::create_dir_all(store.case("c")).expect("made");
    std::fs::write(store.case("c").join("raw"), "no folder").expect("written");
    let why = collect_from(&BreaksOff(Ok(b"x")), &store).expect_err("stopped").to_string();
    assert!(why.contains("raw/j/good: "), "{why}");
}

#[test]
fn a_job_that_was_not_run_has_left_nothing_whatever_lies_in_its_folder() {
    for (end, reason) in [
        (Ended::NotRun { why: "precondition".into() }, "the job was not run: precondition"),
        (Ended::LaunchFailed { why: "no".into() }, "the job was not launched"),
        (Ended::HostUnreachable { why: "no".into() }, "the job was not launched"),
    ] {
        let collected = collect_with(end);
        assert!(collected.files.is_empty());
        assert_eq!(collected.missing.len(), 4);
        assert!(collected.missing.iter().all(|file| file.why == reason));
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
