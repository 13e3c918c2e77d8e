//! Each way in which a report can be missing, empty or unreadable: its cause, its rank, its node.

use super::*;
use job::profile::{Keep, NsysVersion};
use job::window::{PlannedWindow, Steps, Way};
use model::artefact::{ChangedFile, Format, MissingFile};

const DIGEST: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const TABLE: &str = "c.r3_pqtdir/StringIds.parquet";

fn profile() -> PlannedProfile {
    PlannedProfile {
        version: NsysVersion::new(2025, 3),
        ranks: vec![ProfiledRank { rank: 3, node: "n1".into() }],
        delay_s: 30,
        keep: Keep::OnFailure,
        window: None,
    }
}

fn windowed(text: &str) -> RankReport {
    let steps = Steps { first: 70, last: 75 };
    let window = PlannedWindow { steps, way: Way::Hook, why: String::new(), ends_after: None };
    let profile = PlannedProfile { window: Some(window), ..profile() };
    let collected = collected(&[], &[(FileKind::ProfileAccount, "profile.rank3.txt")]);
    audit(&job(), &profile, &collected, &|_| Some(text.to_owned())).remove(0)
}

#[test]
fn a_report_that_is_not_there_since_its_window_never_opened_has_that_cause() {
    let begun = "profile 1\nrank 3 3\nnode n1\nseconds 90\nexit 0\n";
    for (mark, cause, message) in [
        ("window {\"way\": \"hook\", \"steps\": 30}\n", "window-missed", "last step was 29"),
        ("", "window-never-opened", "the hook saw no step"),
        ("window {\"way\"\n", "window-garbled", "unreadable capture marker"),
        ("window {\"way\": \"hook\", \"opened\": 70}\n", "report-missing", "nsys left no x"),
    ] {
        let report = windowed(&format!("{begun}{mark}missing nsys left no x\nend\n"));
        assert_eq!(report.findings.len(), 1, "{:?}", report.findings);
        assert_eq!(
            (report.findings[0].code.as_str(), report.findings[0].node.as_deref()),
            (cause, (cause != "window-missed").then_some("n1"))
        );
        assert!(report.findings[0].message.contains(message), "{}", report.findings[0].message);
    }
}

fn job() -> PlannedJob {
    PlannedJob {
        name: "j".into(),
        nodes: vec!["n1".into()],
        round: 0,
        ranks: 8,
        folder: "/f".into(),
        files: Vec::new(),
        launch: Vec::new(),
        expected: Vec::new(),
        estimate_s: 1,
        limit_s: 1,
        secrets: Vec::new(),
        profile: Some(profile()),
        control_run: None,
        again_of: None,
        evidence: None,
    }
}

fn file(kind: FileKind, name: &str) -> CollectedFile {
    CollectedFile {
        job: "j".into(),
        path: format!("raw/j/{name}"),
        kind,
        node: Some("n1".into()),
        part: None,
        rank: Some(3),
        bytes: 1,
        sha256: DIGEST.into(),
        redacted: 0,
    }
}

fn collected(missing: &[(FileKind, &str)], files: &[(FileKind, &str)]) -> Collected {
    let lost = |(kind, name): &(FileKind, &str)| MissingFile {
        job: "j".into(),
        name: (*name).into(),
        kind: *kind,
        node: Some("n1".into()),
        part: None,
        rank: Some(3),
        why: "not there".into(),
        refused: false,
    };
    Collected {
        format: Format,
        files: files.iter().map(|(kind, name)| file(*kind, name)).collect(),
        missing: missing.iter().map(lost).collect(),
        changed: Vec::new(),
        simulated: Vec::new(),
    }
}

/// The one report of a job whose rank 3 left that account, with its table home.
fn audit_account(account: &[&str]) -> RankReport {
    let home =
        collected(&[], &[(FileKind::ProfileAccount, "profile.rank3.txt"), (FileKind::ProfileTable, TABLE)]);
    weighed(&home, Some(account))
}

fn weighed(collected: &Collected, account: Option<&[&str]>) -> RankReport {
    let text = account.map(|lines| {
        let lines = lines.iter().map(|line| line.replace("DIGEST", DIGEST) + "\n").collect::<String>();
        format!("profile 1\nrank 3 3\n{lines}")
    });
    let mut reports = audit(&job(), &profile(), collected, &|_| text.clone());
    assert_eq!(reports.len(), 1);
    reports.remove(0)
}

fn causes(report: &RankReport) -> Vec<&str> {
    report.findings.iter().map(|finding| finding.code.as_str()).collect()
}

const WHOLE: [&str; 7] = [
    "node n1",
    "nsys 2025.3.1",
    "report-file 9 DIGEST c.r3.nsys-rep",
    "seconds 60.00",
    "export parquetdir 0",
    "table 1 DIGEST c.r3_pqtdir/StringIds.parquet",
    "end",
];

fn without<'a>(word: &str) -> Vec<&'a str> {
    WHOLE.into_iter().filter(|line| !line.starts_with(word)).collect()
}

#[test]
fn a_whole_report_feeds_the_recipes_and_leaves_no_finding() {
    let report = audit_account(&WHOLE);
    assert_eq!(report.tables, Some(vec![format!("raw/j/{TABLE}")]));
    assert_eq!(causes(&report), [] as [&str; 0]);
}

/// Accounts of unusable reports, each with its cause.
fn unusable() -> Vec<(Vec<&'static str>, &'static str)> {
    let mut cut = WHOLE.to_vec();
    cut.pop();
    let with = |start: &str, other: &'static str| -> Vec<&'static str> {
        WHOLE.into_iter().map(|line| if line.starts_with(start) { other } else { line }).collect()
    };
    let late = vec!["node n1", "nsys 2025.3.1", "seconds 12.00", "missing nsys left no c.r3.nsys-rep", "end"];
    let none = vec!["node n1", "nsys 2025.3.1", "seconds 60.00", "missing nsys left no c.r3.nsys-rep", "end"];
    vec![
        (vec!["node n1", "bare nsys-missing nsys", "end"], "nsys-missing"),
        (vec!["node n1", "nsys 2023.2", "bare nsys-old 2023.2 is older than 2025.3", "end"], "nsys-old"),
        (vec!["node n1", "nsys 2025.3.1", "report c.r3"], "report-missing"),
        (none, "report-missing"),
        (late, "outside-window"),
        (with("report-file", "report-file 0 DIGEST c.r3.nsys-rep"), "report-empty"),
        (with("export", "export parquetdir 1"), "report-unreadable"),
        (cut, "report-missing"),
        (without("export"), "report-missing"),
        (without("table"), "report-empty"),
        (vec!["node n1", "nonsense"], "report-garbled"),
        (vec!["node n1", "rank 4 4", "end"], "report-garbled"),
    ]
}

#[test]
fn every_unusable_report_has_its_cause_and_names_its_rank_and_node() {
    for (account, cause) in unusable() {
        let report = audit_account(&account);
        assert_eq!(causes(&report), [cause], "{account:?}");
        assert_eq!(report.tables, None, "{account:?}");
        assert_eq!(report.findings[0].node.as_deref(), Some("n1"), "{account:?}");
        assert!(report.findings[0].message.starts_with("rank 3: "), "{account:?}");
        assert!(CAUSES.contains(&cause), "the judge knows it: {cause}");
    }
}

#[test]
fn messages() {
    let lost = collected(&[(FileKind::ProfileAccount, "profile.rank3.txt")], &[]);
    let mut reports = vec![weighed(&lost, None)];
    reports.extend(unusable().iter().map(|(account, _)| audit_account(account)));
    for (line, other) in [(0, "node n2"), (3, "recovered c.r3.qdstrm")] {
        let mut account = WHOLE.to_vec();
        if line == 0 {
            account[0] = other
        } else {
            account.insert(line, other)
        }
        reports.push(audit_account(&account));
    }
    let lines = reports.iter().flat_map(|report| &report.findings);
    let lines: Vec<String> = lines.map(|finding| format!("{}: {}", finding.code, finding.message)).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn an_account_or_a_table_that_was_not_collected_is_reported_with_the_reason() {
    let report = weighed(&collected(&[(FileKind::ProfileAccount, "profile.rank3.txt")], &[]), None);
    assert_eq!(causes(&report), ["report-missing"]);
    assert!(report.findings[0].message.contains("not there"));
    let lost =
        collected(&[(FileKind::ProfileTable, TABLE)], &[(FileKind::ProfileAccount, "profile.rank3.txt")]);
    let report = weighed(&lost, Some(&WHOLE));
    assert_eq!((causes(&report), report.tables.clone()), (vec!["table-missing"], None));
    let unread = collected(&[], &[(FileKind::ProfileAccount, "profile.rank3.txt")]);
    assert_eq!(causes(&weighed(&unread, None)), ["report-garbled"]);
}

#[test]
fn a_file_that_was_lost_after_it_was_collected_says_nothing_about_its_node() {
    let gone = |mut collected: Collected, name: &str| {
        let path = format!("raw/j/{name}");
        collected.changed.push(ChangedFile { job: "j".into(), path, how: Change::Gone });
        collected
    };
    let account =
        gone(collected(&[(FileKind::ProfileAccount, "profile.rank3.txt")], &[]), "profile.rank3.txt");
    assert_eq!(causes(&weighed(&account, None)), ["report-not-read"]);
    let lost =
        collected(&[(FileKind::ProfileTable, TABLE)], &[(FileKind::ProfileAccount, "profile.rank3.txt")]);
    assert_eq!(causes(&weighed(&gone(lost, TABLE), Some(&WHOLE))), ["report-not-read"]);
}

#[test]
fn a_report_that_was_recovered_or_came_from_another_node_counts_and_says_so() {
    let mut account = WHOLE.to_vec();
    account.insert(3, "recovered c.r3.qdstrm");
    let report = audit_account(&account);
    assert_eq!(causes(&report), ["report-recovered"]);
    assert!(report.tables.is_some());
    let mut account = WHOLE.to_vec();
    account[0] = "node n2";
    let report = audit_account(&account);
    assert_eq!((causes(&report), report.node.as_str()), (vec!["rank-elsewhere"], "n2"));
}

#[test]
fn a_case_whose_recipes_read_no_table_needs_no_export() {
    let account: Vec<&str> = without("table")
        .into_iter()
        .map(|line| if line.starts_with("export") { "export none 0" } else { line })
        .collect();
    let report = audit_account(&account);
    assert_eq!((causes(&report), report.tables.clone()), (Vec::new(), Some(Vec::new())));
}
