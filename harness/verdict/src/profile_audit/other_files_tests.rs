//! Files of another job, kind or rank are no account of a rank; and counters of a node are sampled by one rank of it.

use super::*;
use job::profile::{Keep, NsysVersion};
use model::artefact::{Format, MissingFile};

const DIGEST: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn job() -> PlannedJob {
    PlannedJob { name: "j".into(), ..fixture::plan().cases[0].jobs[0].clone() }
}

fn profile(ranks: &[u32]) -> PlannedProfile {
    PlannedProfile {
        version: NsysVersion::new(2025, 3),
        ranks: ranks.iter().map(|rank| ProfiledRank { rank: *rank, node: "n1".into() }).collect(),
        delay_s: 30,
        keep: Keep::OnFailure,
        window: None,
    }
}

fn missing(job: &str, kind: FileKind, rank: u32, name: &str, why: &str) -> MissingFile {
    MissingFile {
        job: job.into(),
        name: name.into(),
        kind,
        node: Some("n1".into()),
        part: None,
        rank: Some(rank),
        why: why.into(),
        refused: false,
    }
}

fn account(job: &str, kind: FileKind, rank: u32) -> CollectedFile {
    CollectedFile {
        job: job.into(),
        path: format!("raw/{job}/profile.rank{rank}.txt"),
        kind,
        node: Some("n1".into()),
        part: None,
        rank: Some(rank),
        bytes: 1,
        sha256: DIGEST.into(),
        redacted: 0,
    }
}

fn collected(files: Vec<CollectedFile>, missing: Vec<MissingFile>) -> Collected {
    Collected { format: Format, files, missing, changed: Vec::new(), simulated: Vec::new() }
}

fn text(rank: u32, more: &str) -> String {
    format!(
        "profile 1\nrank {rank} {rank}\nnode n1\nnsys 2025.3.1\n{more}report-file 9 {DIGEST} c.nsys-rep\nseconds 60.00\n\
         export parquetdir 0\ntable 1 {DIGEST} c.r3_pqtdir/StringIds.parquet\nend\n"
    )
}

#[test]
fn why_an_account_is_missing_is_read_from_the_entry_of_its_own_job_kind_and_rank() {
    let kind = FileKind::ProfileAccount;
    let why = |entry: MissingFile| {
        let report = audit(&job(), &profile(&[3]), &collected(Vec::new(), vec![entry]), &|_| None).remove(0);
        assert_eq!(report.findings[0].code, "report-missing");
        report.findings[0].message.contains("the disk was full")
    };
    let entry = |job: &str, kind, rank| missing(job, kind, rank, "x", "the disk was full");
    assert!(why(entry("j", kind, 3)));
    for other in [entry("k", kind, 3), entry("j", FileKind::ProfileTable, 3), entry("j", kind, 4)] {
        assert!(!why(other.clone()), "{other:?}");
    }
}

#[test]
fn an_account_of_another_job_or_rank_is_not_used_for_this_rank() {
    let kind = FileKind::ProfileAccount;
    for other in [account("k", kind, 3), account("j", kind, 4), account("j", FileKind::ProfileTable, 3)] {
        let files = collected(vec![other.clone()], Vec::new());
        let report = audit(&job(), &profile(&[3]), &files, &|_| Some(text(3, ""))).remove(0);
        assert_eq!(report.findings[0].code, "report-missing", "{other:?}");
    }
}

#[test]
fn why_a_table_is_missing_is_read_from_the_entry_of_its_own_job_rank_and_name() {
    let (kind, table) = (FileKind::ProfileTable, "c.r3_pqtdir/StringIds.parquet");
    let why = |entry: MissingFile| {
        let files = collected(vec![account("j", FileKind::ProfileAccount, 3)], vec![entry]);
        let report = audit(&job(), &profile(&[3]), &files, &|_| Some(text(3, ""))).remove(0);
        assert_eq!(report.findings[0].code, "table-missing", "{:?}", report.findings);
        report.findings[0].message.contains("the disk was full")
    };
    let entry = |job: &str, rank, name: &str| missing(job, kind, rank, name, "the disk was full");
    assert!(why(entry("j", 3, table)));
    for other in [entry("k", 3, table), entry("j", 4, table), entry("j", 3, "c.r3_pqtdir/OTHER.parquet")] {
        assert!(!why(other.clone()), "{other:?}");
    }
}

#[test]
fn a_rank_that_was_killed_before_its_report_has_another_reason_than_one_that_left_none() {
    let message = |ending: &str| {
        let account = account("j", FileKind::ProfileAccount, 3);
        let begun = format!("profile 1\nrank 3 3\nnode n1\nnsys 2025.3.1\nseconds 60.00\n{ending}");
        let files = collected(vec![account], Vec::new());
        audit(&job(), &profile(&[3]), &files, &|_| Some(begun.clone())).remove(0).findings[0].message.clone()
    };
    assert!(message("").contains("stopped before its report was written"), "{}", message(""));
    assert!(message("missing nsys left no x\nend\n").contains("nsys left no x"));
    assert!(message("missing nsys left no x\n").contains("nsys left no x"));
    assert!(!message("end\n").contains("stopped before"), "{}", message("end\n"));
}
