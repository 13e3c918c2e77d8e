//! The page of a run: what comes first, what it is made of, and that foreign words stay words.

use super::*;
use crate::report::fixture::{self, Made, Reported as _};
use model::artefact::{CaseJobs, Culprit, Ended, Format, JobRecord, LeftOut, Status};

fn page(made: &Made) -> String {
    String::from_utf8(run_page(&made.report()).expect("a page")).expect("text")
}

/// What a reader sees of the body: without markup, scripts and blanks.
fn visible(page: &str) -> String {
    let body = page.split_once("<body>").expect("a body").1;
    let body = body.split_once("<script>").map_or(body, |(before, _)| before);
    let mut text = String::new();
    for part in body.split('<') {
        text.push_str(part.split_once('>').map_or(part, |(_, behind)| behind));
        text.push(' ');
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn section<'a>(page: &'a str, id: &str) -> &'a str {
    let from = page.find(&format!("id=\"{id}\"")).unwrap_or_else(|| panic!("no section `{id}`"));
    let behind = &page[from..];
    &behind[..behind.find("</section>").unwrap_or(behind.len())]
}

#[test]
fn the_verdict_the_culprits_and_the_next_command_come_first() {
    let text = visible(&page(&fixture::red()));
    assert!(text.starts_with("FAILED: 1 bad part on 1 of 4 nodes (exit 1) Dark SIMULATED: "), "{text}");
    let first: String = text.chars().take(1_000).collect();
    let places = [
        "culprit p5-003 rdmap113s0",
        "HRN-NIC-SLOW",
        "4.1 GB/s",
        "next: harness isolate --run 2026",
        "suspects p5-001 p5-002",
    ]
    .map(|words| first.find(words).unwrap_or_else(|| panic!("no `{words}` in: {first}")));
    assert!(places.is_sorted(), "{places:?}: {first}");
}

#[test]
fn a_green_run_says_so_and_blames_nothing() {
    let page = page(&fixture::green());
    assert!(visible(&page).starts_with("PASSED: all 2 assertions passed (exit 0)"), "{}", visible(&page));
    assert!(!page.contains("id=\"culprits\"") && !page.contains("id=\"unexplained\""));
}

#[test]
fn a_broken_launcher_is_named_before_everything_else() {
    let mut made = fixture::red();
    made.summary.culprits.clear();
    made.summary.common_failure = Some(model::artefact::CommonFailure {
        case: "gpu-each".into(),
        jobs: 4,
        nodes: "p5-[001-004]".into(),
        cause: "exit 1".into(),
        words: vec!["srun: error: <mpi> plugin".into()],
        check: "`srun --mpi=list`".into(),
        expected: false,
    });
    made.summary.interrupted = Some("by <hand>".into());
    let text: String = visible(&page(&made)).chars().take(1_000).collect();
    for words in [
        "all 4 jobs of `gpu-each` failed in the same way",
        "srun: error: &lt;mpi&gt; plugin",
        "check: srun --mpi=list",
        "Interrupted: by &lt;hand&gt;",
        "harness rerun --run 2026",
    ] {
        assert!(text.contains(words), "no `{words}` in: {text}");
    }
}

#[test]
fn each_node_has_a_row_and_each_case_a_column_with_letters_beside_colours() {
    let mut case = fixture::case("nics");
    case.verdicts = vec![
        fixture::verdict("nics", "rate", "p5-001", "rdmap113s0", Status::Pass),
        fixture::verdict("nics", "rate", "p5-002", "rdmap113s0", Status::Fail),
        fixture::verdict("nics", "rate", "p5-003", "rdmap113s0", Status::Error),
    ];
    let mut made = Made::from_cases(vec![case]);
    made.plan.nodes = (1..=4).map(|n| format!("p5-{n:03}")).collect();
    let page = page(&made);
    let grid = section(&page, "grid");
    let rows: Vec<&str> = grid.lines().filter(|line| line.starts_with("<tr><th scope=\"row\">")).collect();
    assert_eq!(rows.len(), 4, "{grid}");
    assert!(
        rows[0].contains("p5-002</th>") && rows[0].contains("<td class=\"f\">F"),
        "the worst comes first: {rows:?}"
    );
    assert!(
        rows.iter().any(|row| row.contains("p5-003</th>") && row.contains("<td class=\"e\">E")),
        "{rows:?}"
    );
    assert!(
        rows.iter().any(|row| row.contains("p5-001</th>") && row.contains("<td class=\"p\">✓")),
        "{rows:?}"
    );
    assert!(
        rows.iter().any(|row| row.contains("p5-004</th>") && row.contains("<td class=\"n\">")),
        "{rows:?}"
    );
    // The map has the part that is below its limit, and hatches the one that has no number.
    let map = section(&page, "parts");
    assert!(map.contains("<td class=f title=\""), "{map}");
}

#[test]
fn nodes_of_a_large_run_share_rows_and_what_passed_is_folded() {
    let nodes: Vec<String> = (1..=512).map(|n| format!("p5-{n:03}")).collect();
    let mut case = fixture::case("nics");
    for (at, node) in nodes.iter().enumerate() {
        for part in 0..8 {
            let status = if (at, part) == (7, 3) { Status::Fail } else { Status::Pass };
            case.verdicts.push(fixture::verdict("nics", "rate", node, &format!("gpu{part}"), status));
        }
    }
    let mut made = Made::from_cases(vec![case]);
    made.plan.nodes = nodes;
    let page = page(&made);
    let rows = section(&page, "grid").matches("<tr><th scope=\"row\">").count();
    assert_eq!(rows, 2, "one bad node, and all others");
    assert!(section(&page, "grid").contains("p5-[001-007,009-512] (511)"));
    assert_eq!(
        section(&page, "parts").matches("<tr><th scope=\"row\">").count(),
        512,
        "each node has its parts"
    );
    assert_eq!(section(&page, "parts").matches("<td class=").count(), 512 * 8);
    let numbers = section(&page, "numbers");
    assert!(
        numbers.contains("Numbers that passed are folded")
            && numbers.contains("<td class=\"number\">4,095<td>")
    );
    assert!(page.len() < 500_000, "{}", page.len());
}

#[test]
fn a_verdict_about_all_nics_of_a_node_shows_each_of_them() {
    let mut case = fixture::case("nics");
    let mut verdict = fixture::verdict("nics", "rate", "p5-001", "rdmap113s0", Status::Fail);
    verdict.part = None;
    verdict.nics = [("rdmap113s0".to_owned(), 4.1), ("rdmap114s0".to_owned(), 11.9)].into();
    case.verdicts = vec![verdict];
    let mut made = Made::from_cases(vec![case]);
    made.plan.nodes = vec!["p5-001".into()];
    made.summary.culprits = vec![Culprit::Culprit {
        node: "p5-001".into(),
        part: "rdmap113s0".into(),
        evidence: "4.1 GB/s, the other 31 at 11.9".into(),
        code: None,
    }];
    made.plan.instance.nics = ["rdmap113s0", "rdmap114s0", "rdmap115s0"].map(str::to_owned).to_vec();
    let page = page(&made);
    assert!(
        section(&page, "culprits").contains("4.1 GB/s, the other 31 at 11.9 (limit 11.00 GB/s)"),
        "{page}"
    );
    let map = section(&page, "parts");
    let row = map.lines().find(|line| line.starts_with("<tr><th scope=\"row\">p5-001")).expect("a row");
    // The node is red by its own number, though the verdict is about more than one part.
    assert!(section(&page, "grid").contains("<td class=\"f\">F"), "{page}");
    // The one that is bad, the one that is not, and the one that has no number.
    for cell in [
        "<td class=f title=\"nics: nic.rate 4.10 GB/s, at least 11.00 GB/s\">37",
        "<td class=h1 title=\"nics: nic.rate 11.90 GB/s, at least 11.00 GB/s\">108<td class=n>",
    ] {
        assert!(row.contains(cell), "no `{cell}` in: {row}");
    }
}

#[test]
fn what_was_not_measured_is_named_with_its_reason() {
    let mut made = fixture::red();
    let left = LeftOut { node: "p5-009".into(), why: "no <GPU>".into(), by_folder: false, after: None };
    made.summary.left_out.push(left);
    made.summary.pending.push("nccl-p5::nics::rate@p5-001".into());
    let page = page(&made);
    let open = section(&page, "unmeasured");
    for words in [
        "9 of 12",
        "288 of 384",
        "p5-009 excluded before the first case: no &lt;GPU&gt;",
        "rate@p5-001",
        "skipped",
    ] {
        assert!(open.contains(words), "no `{words}` in: {open}");
    }
}

#[test]
fn jobs_are_bars_on_one_axis_and_bad_ones_are_named() {
    let made = fixture::red();
    let case = &made.plan.cases[0];
    let job = |name: &str, from: u32, end: Ended| JobRecord {
        name: name.to_owned(),
        handle: None,
        submitted: None,
        started: Some(format!("2026-11-21T03:{from:02}:00.000Z")),
        ended: Some(format!("2026-11-21T03:{:02}:00.000Z", from + 1)),
        seconds: Some(60.0),
        end,
        blamed: None,
        findings: Vec::new(),
    };
    let records =
        vec![job("one", 10, Ended::Exited { code: 0 }), job("two", 13, Ended::TimeLimit { limit_s: 60 })];
    let jobs = [(case.name.clone(), CaseJobs { format: Format, skipped: None, jobs: records })];
    let report = Report { jobs: &jobs, ..made.report() };
    let page = String::from_utf8(run_page(&report).expect("a page")).expect("text");
    let time = section(&page, "timeline");
    assert!(time.contains("<rect x=\"0.0\" width=\"249.6\" y=\"1\" height=\"12\"><title>"), "{time}");
    assert!(
        time.contains("<rect x=\"750.0\" width=\"249.6\" y=\"1\" height=\"12\" class=\"f\"><title>"),
        "{time}"
    );
    assert!(time.contains("two: time-limit, limit_s 60"), "{time}");
    // Without records the page says that it has none.
    assert!(self::page(&made).contains("No job of this run has a begin and an end."));
}

#[test]
fn foreign_words_stay_words_and_links_stay_in_the_run() {
    const HOSTILE: &str = "\"><img src=x onerror=alert(1)></script><script>alert(2)</script>\u{202e}";
    let mut made = fixture::red();
    made.summary.culprits.push(Culprit::Culprit {
        node: HOSTILE.into(),
        part: HOSTILE.into(),
        evidence: HOSTILE.into(),
        code: Some(HOSTILE.into()),
    });
    for case in &mut made.cases {
        for verdict in &mut case.verdicts {
            verdict.message = HOSTILE.into();
            verdict.next = Some(format!("`{HOSTILE}`"));
            verdict.cause = Some(HOSTILE.into());
            verdict.baseline = Some(HOSTILE.into());
            for evidence in &mut verdict.evidence {
                evidence.file = "../../../etc/passwd".into();
            }
        }
        case.versions.insert(HOSTILE.into(), [HOSTILE.to_owned()].into());
    }
    made.plan.nodes.push(HOSTILE.into());
    made.plan.settings.insert(HOSTILE.into(), HOSTILE.into());
    made.plan.sim_faults.push(HOSTILE.into());
    made.summary.nodes = HOSTILE.into();
    made.summary.suites = vec![HOSTILE.into()];
    made.summary.started = HOSTILE.into();
    made.summary.run_id = HOSTILE.into();
    let page = page(&made);
    assert!(
        !page.contains("<img") && !page.contains("<script>alert") && !page.contains('\u{202e}'),
        "{page}"
    );
    assert_eq!(page.matches("<script").count(), 2, "the description and the page's own");
    assert!(!page.contains("etc/passwd\""), "a link that leads out of the run");
    for link in page.split("href=\"").skip(1) {
        let link = link.split('"').next().unwrap_or_default();
        assert!(!link.contains("..") && !link.contains("script:"), "{link}");
    }
    // No handler and no style stands in the markup: the policy would refuse them.
    let body = page.split_once("<body>").expect("a body").1;
    assert!(!body.contains(" style=\"") && !body.contains(" onclick"), "{body}");
}

#[test]
fn a_page_that_lies_elsewhere_links_to_the_run() {
    let made = fixture::green();
    let text = run_page_at(&made.report(), Some(Path::new("../runs/a b"))).expect("a page");
    let text = String::from_utf8(text).expect("text");
    assert!(text.contains("href=\"../runs/a%20b/junit.xml\""), "{text}");
    // Who does not have the run gets no link into it.
    let text = run_page_at(&made.report(), None).expect("a page");
    let text = String::from_utf8(text).expect("text");
    let mut links = text.split("href=\"").skip(1).filter(|link| !link.starts_with('#'));
    assert!(links.all(|link| link.starts_with("data:,")) && text.contains("junit.xml"), "{text}");
}
