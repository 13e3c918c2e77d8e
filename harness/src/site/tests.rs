//! Pages of many small made-up runs: what is on them, that foreign names are words, and that they stay small.

use super::page::SitePage;
use crate::accept::certificate_files::StoredCertificate;
use crate::accept::message_tests;
use crate::report::fixture::{self, Made};
use model::artefact::{Culprit, LeftOut, RunRecord, Status};
use model::exit_code;
use std::fs;
use std::path::Path;
use verdict::history::past::{self, Past, RunKind};

/// Writes a run of a folder of runs.
fn put(runs: &Path, made: &Made) {
    let folder = runs.join(&made.plan.run_id);
    let write = |path: &str, text: String| {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().expect("one")).expect("made");
        fs::write(path, text).expect("written");
    };
    let record = RunRecord {
        format: model::artefact::Format,
        started: "2026-01-01T00:00:00.000Z".into(),
        ended: Some("2026-01-01T00:01:00.000Z".into()),
        seconds: Some(60.0),
        stopped: None,
        signal_exit_code: None,
        artefacts: None,
    };
    write("plan.json", serde_json::to_string(&made.plan).expect("JSON"));
    write("run.json", serde_json::to_string(&record).expect("JSON"));
    write("summary.json", serde_json::to_string(&made.summary).expect("JSON"));
    for case in &made.cases {
        write(&format!("cases/{}/verdict.json", case.case), serde_json::to_string(case).expect("JSON"));
    }
}

/// A run of day `day` in which these nodes failed, of as many nodes.
fn made(day: usize, nodes: usize, failed: &[usize]) -> Made {
    let mut case = fixture::case("nics");
    let name = |node: usize| format!("p5-{node:03}");
    for node in 1..=nodes {
        let status = if failed.contains(&node) { Status::Fail } else { Status::Pass };
        case.verdicts.push(fixture::verdict("nics", "rate", &name(node), "rdmap79s0", status));
    }
    case.culprits = failed
        .iter()
        .map(|node| Culprit::Culprit {
            node: name(*node),
            part: "rdmap79s0".into(),
            evidence: format!("4.{day} GB/s, limit 11 GB/s"),
            code: Some("HRN-NIC-SLOW".into()),
        })
        .collect();
    let mut made = Made::from_cases(vec![case]);
    made.plan.nodes = (1..=nodes).map(name).collect();
    let planned = made.plan.cases.first().cloned().expect("a case of the fixture");
    let mut planned = model::artefact::PlannedCase { name: "nics".into(), skip: None, ..planned };
    let (job, assertion) = (planned.jobs.first().cloned(), planned.assertions.first().cloned());
    planned.jobs = job
        .into_iter()
        .map(|job| model::artefact::PlannedJob { nodes: made.plan.nodes.clone(), ..job })
        .collect();
    let assertion = assertion.expect("an assertion of the fixture");
    planned.assertions = made.cases[0]
        .verdicts
        .iter()
        .map(|verdict| model::artefact::PlannedAssertion {
            name: verdict.name.clone(),
            node: verdict.node.clone(),
            part: verdict.part.clone(),
            ..assertion.clone()
        })
        .collect();
    made.plan.cases = vec![planned];
    made.plan.run_id = format!("2026{:02}{:02}T031000Z-nccl-p5-{day:04}", 1 + day / 28, 1 + day % 28);
    made.summary.run_id = made.plan.run_id.clone();
    made.plan.simulated = false;
    made.summary.simulated = false;
    made.cases[0].simulated = false;
    made
}

fn read(runs: &Path) -> Past {
    past::outlines(runs, Some(1_000)).expect("a folder").past
}

fn page(past: &Past, certificates: Vec<&StoredCertificate>) -> String {
    let pages = past.runs.iter().map(|run| Some(format!("runs/{}.html", run.id()))).collect();
    let names = [(RunKind::Real, "index.html".to_owned()), (RunKind::Canary, "canary.html".to_owned())];
    let page = SitePage::new(past, RunKind::Real, certificates, &[], pages, &names);
    String::from_utf8(page.render().expect("a page")).expect("text")
}

fn section<'a>(page: &'a str, id: &str) -> &'a str {
    let from = page.find(&format!("id=\"{id}\"")).unwrap_or_else(|| panic!("no section {id}"));
    let rest = &page[from..];
    rest.split_once("</section>").map_or(rest, |(section, _)| section)
}

#[test]
fn the_newest_verdict_and_open_suspects_come_first_and_nodes_have_a_row_over_time() {
    let folder = tempfile::tempdir().expect("a folder");
    put(folder.path(), &made(0, 4, &[3]));
    put(folder.path(), &made(1, 4, &[]));
    put(folder.path(), &made(2, 4, &[2]));
    let past = read(folder.path());
    assert!(past.passed.is_empty(), "{:?}", past.passed);
    let page = page(&past, Vec::new());
    let heading = page.split_once("id=\"verdict\">").expect("a heading").1;
    assert!(heading.starts_with("FAILED: 1 bad part on 1 of 4 nodes (exit 1)"), "{heading}");
    let suspects = section(&page, "suspects");
    assert!(
        suspects.contains("1 suspect now")
            && suspects.contains("p5-002 rdmap79s0")
            && suspects.contains("4.2 GB/s"),
        "{suspects}"
    );
    assert!(suspects.contains("next: <code>harness ") && suspects.contains("HRN-NIC-SLOW"), "{suspects}");
    let cleared = suspects.split_once("<details").expect("one that was cleared").1;
    assert!(cleared.contains("p5-003") && !cleared.contains("p5-002"), "{cleared}");
    let grid = section(&page, "grid");
    let rows: Vec<&str> = grid.lines().filter(|line| line.starts_with("<tr><th scope=\"row\">")).collect();
    assert_eq!(rows.len(), 4, "{grid}");
    assert_eq!(rows[0], "<tr><th scope=\"row\">p5-002</th><td class=f>F<td class=p>✓<td class=p>✓");
    assert_eq!(rows[1], "<tr><th scope=\"row\">p5-003</th><td class=p>✓<td class=p>✓<td class=f>F");
    assert!(page.contains("<a href=\"canary.html\">canary runs</a>"), "{page}");
}

#[test]
fn a_green_newest_run_hides_no_open_suspect_and_no_red_run_of_another_suite() {
    let folder = tempfile::tempdir().expect("a folder");
    put(folder.path(), &made(0, 4, &[2]));
    let mut other = made(1, 2, &[]);
    other.plan.suites = vec!["loose".into()];
    for case in &mut other.plan.cases {
        case.suite = "loose".into();
    }
    for case in &mut other.cases {
        case.suite = "loose".into();
        case.verdicts.retain(|verdict| verdict.node.as_deref() != Some("p5-002"));
    }
    for case in &mut other.plan.cases {
        case.assertions.retain(|assertion| assertion.node.as_deref() != Some("p5-002"));
    }
    put(folder.path(), &other);
    let past = read(folder.path());
    assert_eq!(past.runs.len(), 2, "{:?}", past.passed);
    let page = page(&past, Vec::new());
    let heading = page.split_once("<h1 class=\"").expect("a heading").1;
    assert!(
        heading.starts_with(
            "red\" id=\"verdict\">1 open suspect: p5-002 rdmap79s0 (HRN-NIC-SLOW); newest run of "
        ),
        "{heading}"
    );
    assert!(heading.contains("FAILED: 1 bad part"), "{heading}");
    assert!(page.contains("of suite loose on "), "{page}");
}

#[test]
fn what_is_incomplete_left_out_or_contradicts_itself_is_never_a_pass() {
    let folder = tempfile::tempdir().expect("a folder");
    let runs = folder.path();
    let mut left = made(0, 4, &[]);
    left.plan.left_out.push(LeftOut {
        node: "p5-009".into(),
        why: "no GPU".into(),
        by_folder: false,
        after: None,
    });
    put(runs, &left);
    let unjudged = made(1, 4, &[]);
    put(runs, &unjudged);
    fs::remove_file(runs.join(&unjudged.plan.run_id).join("cases/nics/verdict.json")).expect("removed");
    let mut lies = made(2, 4, &[2]);
    lies.summary.exit_code = exit_code::PASSED;
    lies.summary.culprits.clear();
    put(runs, &lies);
    let past = read(runs);
    let page = page(&past, Vec::new());
    assert!(page.contains("CONTRADICTORY: `summary.json` says passed, and 1 verdict is red"), "{page}");
    assert!(page.contains("<h1 class=\"red\""), "another part is suspected: {page}");
    let suspects = section(&page, "suspects");
    assert!(suspects.contains("2 suspects now") && suspects.contains("p5-002 rdmap79s0"), "{suspects}");
    assert!(!suspects.contains("of the last 0 runs"), "{suspects}");
    let all = section(&page, "runs");
    assert!(all.contains("<span class=\"s-error\">INCOMPLETE: case `nics` was not judged</span>"), "{all}");
    let grid = section(&page, "grid");
    let row = |node: &str| grid.lines().find(|line| line.contains(&format!(">{node}</th>"))).expect("a row");
    assert!(row("p5-001").ends_with("<td class=p>✓<td class=m>…<td class=p>✓"), "{}", row("p5-001"));
    assert!(row("p5-009").ends_with("<td class=n><td class=n><td class=o>L"), "{}", row("p5-009"));
    // A run without a summary is incomplete, too.
    fs::remove_file(runs.join(&lies.plan.run_id).join("summary.json")).expect("removed");
    assert!(self::page(&read(runs), Vec::new()).contains("INCOMPLETE: no summary"));
}

#[test]
fn a_part_that_is_blamed_now_and_then_is_open_on_the_page_although_its_node_passed_last() {
    let folder = tempfile::tempdir().expect("a folder");
    for day in 0..6 {
        put(folder.path(), &made(day, 4, if day % 2 == 0 { &[2] } else { &[] }));
    }
    let page = page(&read(folder.path()), Vec::new());
    let suspects = section(&page, "suspects");
    assert!(
        suspects.contains("1 intermittent part") && suspects.contains("in 2 of the last 5 runs"),
        "{suspects}"
    );
    assert!(suspects.contains("next: <code>harness ") && !suspects.contains("<details"), "{suspects}");
    assert!(!suspects.contains("No part is suspected now"), "{suspects}");
}

#[test]
fn a_newest_run_that_blames_nothing_and_did_not_pass_clears_no_fleet() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut failed = made(0, 4, &[2]);
    failed.summary.culprits.clear();
    failed.summary.exit_code = exit_code::INCONCLUSIVE;
    put(folder.path(), &failed);
    let page = page(&read(folder.path()), Vec::new());
    assert!(section(&page, "suspects").contains("No part is named: "), "{page}");
}

#[test]
fn long_names_are_shortened() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut made = made(0, 4, &[2]);
    let long = "x".repeat(3_000);
    made.plan.inventory = long.clone();
    made.plan.suites = vec![long.clone()];
    made.plan.cases[0].suite = long.clone();
    put(folder.path(), &made);
    let page = page(&read(folder.path()), Vec::new());
    assert!(!page.contains(&"x".repeat(400)), "{page}");
}

#[test]
fn an_acceptance_stands_until_a_later_run_blames_the_node() {
    let folder = tempfile::tempdir().expect("a folder");
    put(folder.path(), &made(0, 4, &[1]));
    put(folder.path(), &made(5, 4, &[2]));
    let past = read(folder.path());
    let mut acceptance = message_tests::acceptance();
    acceptance.simulated = false;
    acceptance.delivery = "20260103T000000Z-accept-0001".into();
    acceptance.inventory = past.runs[0].plan().inventory.clone();
    acceptance.accepted = vec!["p5-001".into(), "p5-002".into()];
    let stored = StoredCertificate { name: "d".into(), acceptance: acceptance.clone(), altered: None };
    let text = page(&past, vec![&stored]);
    let certificates = section(&text, "certificates");
    let since = certificates.split_once("<dt>blamed since</dt>").expect("blamed since").1;
    let since = since.split_once("</dd>").expect("an end").0;
    assert!(since.contains("p5-002 rdmap79s0 in ") && since.contains("open"), "{since}");
    assert!(!since.contains("p5-001"), "it was blamed before: {since}");
    acceptance.delivery = "mine".into();
    let stored = StoredCertificate { name: "d".into(), acceptance, altered: None };
    assert!(page(&past, vec![&stored]).contains("unknown: the name of the delivery"));
}

#[test]
fn foreign_names_stay_words() {
    const HOSTILE: &str = "\"><img src=x onerror=alert(1)></script><script>alert(2)</script>\u{202e}";
    let folder = tempfile::tempdir().expect("a folder");
    let mut made = made(0, 4, &[2]);
    made.plan.inventory = HOSTILE.into();
    made.plan.suites = vec![HOSTILE.into()];
    made.plan.nodes.push(HOSTILE.into());
    made.plan.cases[0].suite = HOSTILE.into();
    made.plan.cases[0].assertions[0].metric = HOSTILE.into();
    made.cases[0].suite = HOSTILE.into();
    for culprit in [&mut made.summary.culprits[0], &mut made.cases[0].culprits[0]] {
        *culprit = Culprit::Culprit {
            node: "p5-002".into(),
            part: HOSTILE.into(),
            evidence: HOSTILE.into(),
            code: Some(HOSTILE.into()),
        };
    }
    put(folder.path(), &made);
    fs::create_dir(folder.path().join("<b>&")).expect("made");
    let mut acceptance = message_tests::acceptance();
    for text in
        [&mut acceptance.nodes, &mut acceptance.vouched, &mut acceptance.suite, &mut acceptance.delivery]
    {
        *text = HOSTILE.into();
    }
    acceptance.accepted.push(HOSTILE.into());
    let stored = StoredCertificate { name: HOSTILE.into(), acceptance, altered: None };
    let text = page(&read(folder.path()), vec![&stored]);
    assert!(
        !text.contains("<img") && !text.contains("<script>alert") && !text.contains('\u{202e}'),
        "{text}"
    );
    assert!(!text.contains("<b>&") && text.contains("&lt;b&gt;&amp;"), "{text}");
    assert_eq!(text.matches("<script").count(), 2, "the description and the page's own");
    for link in text.split("href=\"").skip(1) {
        let link = link.split('"').next().unwrap_or_default();
        assert!(!link.contains("..") && !link.contains("script:") && !link.contains("//"), "{link}");
    }
    let body = text.split_once("<body>").expect("a body").1;
    assert!(!body.contains(" style=\"") && !body.contains(" onclick"), "{body}");
}

#[test]
fn a_page_of_many_runs_of_a_large_fleet_stays_small() {
    let folder = tempfile::tempdir().expect("a folder");
    // Every node fails now and then, so that no two rows are the same.
    for day in 0..250 {
        let failed: Vec<usize> = (0..8).map(|n| 1 + (day * 37 + n * 61 + n * n * day) % 300).collect();
        put(folder.path(), &made(day, 300, &failed));
    }
    let past = read(folder.path());
    assert_eq!(past.runs.len(), 250);
    let page = page(&past, Vec::new());
    let grid = section(&page, "grid");
    let rows = grid.lines().filter(|line| line.starts_with("<tr><th scope=\"row\">")).count();
    assert_eq!(rows, 256, "the worst rows");
    assert!(grid.contains("Of 250 runs the newest 120 have a column each"), "{grid}");
    assert!(grid.contains("more rows not shown, "), "{grid}");
    assert!(page.len() < 2_000_000, "{}", page.len());
}
