//! What the page shows beside verdicts: earlier numbers, differences, and what limits the work; and that it says what is
//! not there.

use super::*;
use crate::diagnose::kept::CaseDiagnosis;
use crate::report::PageContext;
use crate::report::fixture::{self, Made, Reported as _};
use model::artefact::{Format, Probe, ProbedNode, Value};
use serde_json::json;
use verdict::fingerprint::Difference;
use verdict::history::before::{LastRun, RunsBefore};

const HOSTILE: &str = "</td><script>alert(1)</script>\u{202e}";

fn page(made: &Made, context: PageContext<'_>) -> String {
    let report = Report { context, ..made.report() };
    String::from_utf8(run_page(&report).expect("a page")).expect("text")
}

fn section<'a>(page: &'a str, id: &str) -> &'a str {
    let from = page.find(&format!("id=\"{id}\"")).unwrap_or_else(|| panic!("no section `{id}`"));
    let behind = &page[from..];
    &behind[..behind.find("</section>").unwrap_or(behind.len())]
}

fn before(made: &Made, numbers: &[f64]) -> RunsBefore {
    let name = made.cases[0].verdicts[1].name.clone();
    RunsBefore { numbers: [(name, numbers.to_vec())].into(), runs: numbers.len(), ..RunsBefore::default() }
}

#[test]
fn a_number_stands_beside_what_comparable_runs_before_measured() {
    let made = fixture::red();
    let mut past = before(&made, &[11.9, 12.1]);
    let shown = page(&made, PageContext { before: Some(&past), ..PageContext::default() });
    let numbers = section(&shown, "numbers");
    for words in [
        "History: 2 simulated runs of the same suites and inventory, the newest on the right, this one the dot.",
        "<span class=\"of\">11.90 GB/s to 12.10 GB/s (n = 2)</span>",
        "<svg class=\"past\"",
    ] {
        assert!(numbers.contains(words), "no `{words}` in: {numbers}");
    }
    assert_eq!(numbers.matches("<svg class=\"past\"").count(), 1, "only the number that they measured");
    past.is_cut = true;
    let shown = page(&made, PageContext { before: Some(&past), ..PageContext::default() });
    assert!(section(&shown, "numbers").contains("History: the last 2 simulated runs "));
    // Where there are none, no line says so of each number.
    let shown = page(&made, PageContext { before: Some(&before(&made, &[])), ..PageContext::default() });
    assert!(!shown.contains("History:") && !shown.contains("<svg class=\"past\""));
    assert!(section(&shown, "differences").contains("No earlier run of the same suites and inventory"));
}

fn node(name: &str, driver: &str) -> ProbedNode {
    ProbedNode {
        node: name.into(),
        facts: [("driver".to_owned(), Value::Text(driver.into()))].into(),
        fingerprint: Some("0".into()),
        ..ProbedNode::default()
    }
}

fn probe(nodes: Vec<ProbedNode>) -> Probe {
    Probe {
        format: Format,
        harness: "0.1.0".into(),
        simulated: true,
        inventory: "default".into(),
        instance: "p5".into(),
        at: "2026-03-01T08:00:00Z".into(),
        nodes,
    }
}

#[test]
fn a_node_with_another_driver_is_named_with_what_most_have() {
    let made = fixture::green();
    let mut nodes: Vec<ProbedNode> = (1..=3).map(|n| node(&format!("p5-{n:03}"), "550.1")).collect();
    nodes.push(node("p5-004", HOSTILE));
    nodes.push(ProbedNode { node: "p5-005".into(), unprobed: Some("no route".into()), ..Default::default() });
    let probe_of = probe(nodes);
    let shown = page(&made, PageContext { probe: Some(&probe_of), ..PageContext::default() });
    let differences = section(&shown, "differences");
    assert!(differences.contains("<tr><td>driver<td>p5-004<td>&lt;/td&gt;&lt;script&gt;"), "{differences}");
    assert!(
        differences.contains("<td>550.1\n") && differences.contains("Not compared: p5-005."),
        "{differences}"
    );
    assert!(!shown.contains("<script>alert") && !shown.contains('\u{202e}'));
    let alike = probe(vec![node("p5-001", "550.1"), node("p5-002", "550.1")]);
    let shown = page(&made, PageContext { probe: Some(&alike), ..PageContext::default() });
    assert!(section(&shown, "differences").contains("None in what 2 nodes reported before the run."));
    // Nodes that were not probed are not said to be alike.
    let shown = page(&made, PageContext::default());
    assert!(section(&shown, "differences").contains("The nodes were not probed before this run"));
}

#[test]
fn what_changed_since_the_run_before_is_a_table_and_what_was_not_compared_is_said() {
    let made = fixture::green();
    let difference = |part: &str, before: &[&str], after: &[&str]| Difference {
        part: part.into(),
        before: before.iter().map(|one| (*one).to_owned()).collect(),
        after: after.iter().map(|one| (*one).to_owned()).collect(),
    };
    let mut past = before(&fixture::red(), &[]);
    past.last = Some(LastRun {
        id: "20260101T000001Z-nccl-p5-0001".into(),
        made: "2026-01-01 00:00:01".into(),
        software: vec![difference("nccl", &["2.26"], &["2.27"]), difference(HOSTILE, &[], &[HOSTILE])],
        nodes: difference("nodes", &["p5-009"], &[]),
        facts: Vec::new(),
        is_probed: false,
    });
    past.unread = (0..5).map(|n| (format!("run{n}"), "plan.json: a link".to_owned())).collect();
    let shown = page(&made, PageContext { before: Some(&past), ..PageContext::default() });
    let differences = section(&shown, "differences");
    for words in [
        "Compared with <code>20260101T000001Z-nccl-p5-0001</code>",
        "<tr><td>nccl<td><td>2.26<td>2.27",
        "<tr><td>nodes of one run only<td><td>p5-009<td>\n",
        "one of the runs was not probed",
        "Not read: run2: plan.json: a link.",
        "2 more runs could not be read.",
    ] {
        assert!(differences.contains(words), "no `{words}` in: {differences}");
    }
    assert!(!shown.contains("<script>alert"));
}

fn kept(findings: usize, changed: &[(&str, serde_json::Value)]) -> CaseDiagnosis {
    let finding = |n: usize| {
        json!({"code": format!("limit-{n}"), "share": 0.5, "what": HOSTILE, "change": "wait later",
            "recipe": "breakdown", "table": "gpus", "evidence": []})
    };
    let mut found = json!({"findings": (0..findings).map(finding).collect::<Vec<_>>(), "apart": null, "notes": [],
        "unreadable": [], "gpus": 16, "window_ns": 1e9, "simulated": true});
    changed.iter().for_each(|(key, value)| found[*key] = value.clone());
    let whole = json!({"format": 1, "job": "all", "reports": 2, "found": found});
    serde_json::from_value(whole).expect("a diagnosis")
}

fn diagnosis(diagnosis: Result<CaseDiagnosis, String>) -> String {
    let made = fixture::green();
    let diagnoses = [("nics".to_owned(), diagnosis)];
    let shown = page(&made, PageContext { diagnoses: &diagnoses, ..PageContext::default() });
    assert!(!shown.contains("<script>alert") && !shown.contains('\u{202e}'));
    let cards: Vec<usize> = shown.match_indices("class=\"card").map(|(at, _)| at).collect();
    assert!(shown[cards[0]..].starts_with("class=\"card\" id=\"grid\""), "which node comes first");
    assert!(shown[cards[1]..].starts_with("class=\"card\" id=\"diagnosis\""), "it is the card behind it");
    section(&shown, "diagnosis").to_owned()
}

#[test]
fn the_largest_findings_of_a_profiled_case_stand_behind_the_map_of_nodes_with_the_command_for_all() {
    let shown = diagnosis(Ok(kept(5, &[])));
    for words in [
        "<strong>limit-0</strong>: &lt;/td&gt;",
        "/cases/nics/raw/all --table gpus",
        "harness recipe breakdown --input runs/2026",
        "2 more findings.",
        "2 reports of all, 16 GPUs",
        "harness diagnose 2026",
    ] {
        assert!(shown.contains(words), "no `{words}` in: {shown}");
    }
    assert_eq!(shown.matches("<li>").count(), 3);
}

#[test]
fn only_reports_that_were_read_whole_and_are_of_one_run_have_nothing_that_limits_them() {
    let good = "Nothing limits it by more than 2 %";
    assert!(diagnosis(Ok(kept(0, &[]))).contains(good));
    for (key, value, words) in [
        ("apart", json!("not of one run"), "not of one run"),
        ("notes", json!(["events were lost"]), "events were lost"),
        ("unreadable", json!([["r.sqlite", "damaged"]]), "not read: r.sqlite: damaged"),
        ("gpus", json!(0), "No finding."),
    ] {
        let shown = diagnosis(Ok(kept(0, &[(key, value)])));
        assert!(!shown.contains(good) && shown.contains(words), "{key}: {shown}");
    }
    let left_out = json!({"format": 1, "job": "all", "reports": 65, "left_out": "65 reports, limit 64"});
    let shown = diagnosis(Ok(serde_json::from_value(left_out).expect("a diagnosis")));
    assert!(
        shown.contains("Left out of the page: 65 reports, limit 64.") && shown.contains("harness diagnose ")
    );
    let shown = diagnosis(Err("a link".into()));
    assert!(shown.contains("diagnosis.json cannot be read: a link"), "{shown}");
}

#[test]
fn a_run_without_profiles_has_no_card_of_them() {
    assert!(!page(&fixture::green(), PageContext::default()).contains("id=\"diagnosis\""));
}

#[test]
fn a_summary_that_is_not_believed_is_the_heading_of_its_page() {
    let why = "CONTRADICTORY: its verdicts say otherwise";
    let shown = page(&fixture::red(), PageContext { contradiction: Some(why), ..PageContext::default() });
    assert!(shown.contains(&format!("<h1 class=\"amber\" id=\"verdict\">{why}</h1>")), "{shown}");
    assert!(shown.contains(&format!("<title>{why}")) && !shown.contains("<h1 class=\"red\""), "{shown}");
}
