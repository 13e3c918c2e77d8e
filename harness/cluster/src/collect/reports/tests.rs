//! Tables and whole reports that come home, come broken, or do not come; and what is freed on the nodes.

use super::*;
use crate::reach::{Answer, Command, Host, Reach, Wait};
use base::digest::sha256;
use job::profile::NsysVersion;
use model::artefact::{CaseJobs, Ended, JobProperties, JobRecord, Launcher, ProfiledRank, WorkloadFacts};
use std::cell::RefCell;
use std::collections::BTreeMap;

const TABLE: &[u8] = b"a table";
const REPORT: &[u8] = b"a report";

/// A folder of the nodes; the first reading of a name may give other bytes, as a copy that broke off does.
struct Nodes {
    files: RefCell<BTreeMap<String, Vec<u8>>>,
    broken_once: RefCell<Vec<String>>,
}

impl Reach for Nodes {
    fn exec<'a>(&'a self, _: &'a Host, command: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
        Box::pin(async move {
            for path in crate::reach::removed(&command.argv).expect("nothing else is asked") {
                self.files.borrow_mut().remove(&path);
            }
            Ok(Answer::ok(""))
        })
    }
    fn put<'a>(&'a self, _: &'a Host, _: &'a str, _: &'a [u8]) -> Wait<'a, Result<(), ReachError>> {
        Box::pin(async { Ok(()) })
    }
    fn get<'a>(&'a self, _: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
        Box::pin(async move {
            let mut broken = self.broken_once.borrow_mut();
            if let Some(at) = broken.iter().position(|name| path.ends_with(name.as_str())) {
                broken.remove(at);
                return Ok(b"half".to_vec());
            }
            let found = self.files.borrow().get(path).cloned();
            found.ok_or_else(|| ReachError::NotFound { path: path.to_owned() })
        })
    }
}

fn account(rank: u32) -> String {
    format!(
        "profile 1\nrank {rank} {rank}\nnode n1\nreport-file {} {} r{rank}.nsys-rep\nexport parquetdir 0\n\
         table {} {} r{rank}_pqtdir/StringIds.parquet\nend\n",
        REPORT.len(),
        sha256(REPORT),
        TABLE.len(),
        sha256(TABLE)
    )
}

/// Two profiled ranks of one job, with all that they left.
fn nodes() -> Nodes {
    let mut files = BTreeMap::new();
    for rank in [0, 1] {
        files.insert(format!("/f/profile.rank{rank}.txt"), account(rank).into_bytes());
        files.insert(format!("/f/r{rank}.nsys-rep"), REPORT.to_vec());
        files.insert(format!("/f/r{rank}_pqtdir/StringIds.parquet"), TABLE.to_vec());
    }
    Nodes { files: RefCell::new(files), broken_once: RefCell::new(Vec::new()) }
}

fn case(keep: Keep) -> PlannedCase {
    let rank = |rank| ProfiledRank { rank, node: "n1".into() };
    let expected = |rank: u32| ExpectedFile {
        name: account::file_name(rank),
        kind: FileKind::ProfileAccount,
        node: Some("n1".into()),
        part: None,
        rank: Some(rank),
    };
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
            ranks: 2,
            folder: "/f".into(),
            files: Vec::new(),
            launch: Vec::new(),
            expected: vec![expected(0), expected(1)],
            estimate_s: 1,
            limit_s: 1,
            secrets: Vec::new(),
            profile: Some(PlannedProfile {
                version: NsysVersion::new(2025, 3),
                ranks: vec![rank(0), rank(1)],
                delay_s: 0,
                keep,
                window: None,
            }),
            control_run: None,
            again_of: None,
            evidence: None,
        }],
        assertions: Vec::new(),
    }
}

/// What was collected and kept, and what is left on the nodes.
fn brought(nodes: &Nodes, how: Keep, end: CaseEnd) -> (Collected, KeptReports, Vec<String>) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::create_in(folder.path(), "run").expect("store");
    let jobs = CaseJobs {
        format: Format,
        skipped: None,
        jobs: vec![JobRecord {
            name: "j".into(),
            handle: None,
            submitted: None,
            started: None,
            ended: None,
            seconds: None,
            end: Ended::Exited { code: 0 },
            blamed: None,
            findings: Vec::new(),
        }],
    };
    let case = case(how);
    let folders = Folders { reach: nodes, launcher: Launcher::Slurm, nodes: &[] };
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("runtime");
    runtime.block_on(async {
        let collected = super::super::collect(&case, &jobs, folders, None, &store).await.expect("collected");
        let kept = keep(&case, &collected, end, folders, &store).await.expect("kept").expect("profiled");
        for file in collected.files.iter().chain(&kept.files) {
            assert!(store.case("c").join(&file.path).is_file(), "{}", file.path);
        }
        let left = nodes.files.borrow().keys().filter(|name| !name.ends_with(".txt")).cloned().collect();
        (collected, kept, left)
    })
}

fn names(kept: &KeptReports) -> Vec<&str> {
    kept.files.iter().map(|file| file.path.as_str()).collect()
}

#[test]
fn tables_always_come_home_and_whole_reports_as_the_suite_says() {
    for (how, end, reports) in [
        (Keep::Always, CaseEnd::Pass, &["raw/j/r0.nsys-rep", "raw/j/r1.nsys-rep"][..]),
        (Keep::OnFailure, CaseEnd::Pass, &[]),
        (Keep::OnFailure, CaseEnd::Fail, &["raw/j/r0.nsys-rep", "raw/j/r1.nsys-rep"]),
        (Keep::OnFailure, CaseEnd::Inconclusive, &["raw/j/r0.nsys-rep", "raw/j/r1.nsys-rep"]),
        (Keep::First(1), CaseEnd::Pass, &["raw/j/r0.nsys-rep"]),
        (Keep::First(0), CaseEnd::Fail, &[]),
    ] {
        let (collected, kept, left) = brought(&nodes(), how, end);
        let tables = collected.files.iter().filter(|file| file.kind == FileKind::ProfileTable);
        assert_eq!(tables.map(|file| file.rank).collect::<Vec<_>>(), [Some(0), Some(1)], "{how:?}");
        assert_eq!(names(&kept), reports, "{how:?} {end:?}");
        assert_eq!((collected.missing.len(), kept.missing.len()), (0, 0));
        assert_eq!(left, [] as [String; 0], "unneeded files are removed from the nodes: {how:?}");
        assert_eq!(kept.removed.len(), 4);
    }
}

#[test]
fn a_copy_that_broke_off_is_refetched() {
    let nodes = nodes();
    nodes.broken_once.borrow_mut().push("r0_pqtdir/StringIds.parquet".to_owned());
    let (collected, ..) = brought(&nodes, Keep::Always, CaseEnd::Pass);
    assert_eq!(collected.missing.len(), 0);
}

#[test]
fn bytes_that_are_not_those_of_the_node_are_missing_and_stay_on_the_node() {
    let nodes = nodes();
    nodes.files.borrow_mut().insert("/f/r0_pqtdir/StringIds.parquet".to_owned(), b"other".to_vec());
    let (collected, kept, left) = brought(&nodes, Keep::OnFailure, CaseEnd::Pass);
    let missing = &collected.missing[0];
    assert_eq!(
        (missing.kind, missing.rank, missing.node.as_deref()),
        (FileKind::ProfileTable, Some(0), Some("n1"))
    );
    assert!(missing.why.contains("digest"), "{}", missing.why);
    assert_eq!(left, ["/f/r0.nsys-rep", "/f/r0_pqtdir/StringIds.parquet"]);
    assert_eq!(kept.removed, ["j/r1.nsys-rep", "j/r1_pqtdir/StringIds.parquet"]);
}

#[test]
fn a_whole_report_that_does_not_come_is_named_and_not_removed() {
    let nodes = nodes();
    nodes.files.borrow_mut().remove("/f/r1.nsys-rep");
    let (_, kept, left) = brought(&nodes, Keep::Always, CaseEnd::Pass);
    assert_eq!(kept.missing.iter().map(|file| file.name.as_str()).collect::<Vec<_>>(), ["r1.nsys-rep"]);
    assert_eq!(left, ["/f/r1_pqtdir/StringIds.parquet"]);
}
