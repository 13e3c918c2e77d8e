//! The end of a run's output. What matters stands last, so that it is on the screen when the run is over: the culprits with
//! their codes and next commands, counts, what was skipped, coverage, where the reports are, and one line in words.

use super::Report;
use super::culprit_line::{MOST_LETTERS, culprit_line};
use super::explained::{self, ExplainedCount, Explanations};
use super::last_line::{is_in_part, last_line};
use super::paint::Paint;
use super::reds;
use super::skipped;
use crate::report::text::place;
use base::text::SIMULATED;
use base::text::{count, duration, shorten, show};
use metric::finding::Finding;
use model::artefact::{CaseVerdict, Counts, Coverage, Summary};
use model::exit_code;
use std::fmt::Write;
use verdict::unjudged;

/// Lines of one kind that are shown; the reports hold the others.
const MOST: usize = 9;
/// Culprits with a line of their own.
const MOST_CULPRITS: usize = 20;

/// What the end of the output shows beside the report.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ending<'a> {
    /// Messages of other runs about the same parts.
    pub before: &'a [String],
    /// Where the JUnit report was written, where that is another place than the run's folder.
    pub junit: Option<&'a str>,
    /// Whether the reader wants colours.
    pub color: bool,
    /// Whether lines are whole, however long.
    pub verbose: bool,
}

impl Ending<'_> {
    /// Of a line, in letters.
    fn most_letters(&self) -> usize {
        if self.verbose { usize::MAX } else { MOST_LETTERS }
    }
}

/// The end of the output of a run. Lines that blame begin in the first column, as plain text, so that a program can find
/// them; each is at most 120 letters long unless whole lines are asked for.
pub fn closing(report: &Report, ending: Ending) -> String {
    let summary = report.summary;
    let paint = Paint { color: ending.color };
    let most = ending.most_letters();
    let explanations = Explanations::new(report);
    let is_red = summary.exit_code != exit_code::PASSED;
    let mut text = String::new();
    if is_red {
        reds::unexplained(&mut text, report, &explanations, paint, most);
    }
    must_end(&mut text, summary, paint);
    findings(&mut text, report.cases, paint, most);
    gap(&mut text);
    if is_red {
        culprits(&mut text, report, &explanations, ending);
    }
    line(&mut text, &counts(&summary.counts));
    line(&mut text, &shorten(&coverage(&summary.coverage), most));
    for why in skipped::lines(report.cases, most) {
        line(&mut text, &paint.yellow(&why));
    }
    // Of a run that lost a node no baseline is made.
    if summary.counts.unjudged > 0 && summary.left_out.iter().all(|left| left.after.is_none()) {
        let nodes = report.plan.nodes.len() - summary.left_out.len().min(report.plan.nodes.len());
        let (open, all) = (summary.counts.unjudged as usize, summary.counts.total as usize);
        line(&mut text, &paint.yellow(&unjudged::line(open, all, nodes)));
    }
    left_out(&mut text, summary, paint, most);
    if summary.simulated {
        line(&mut text, &paint.yellow(&format!("{SIMULATED}; seed: {}", summary.seed)));
    }
    if let Some(first) = summary.pending.first() {
        let n = count(summary.pending.len(), "assertion");
        let of = report.plan.pending.len();
        line(&mut text, &paint.yellow(&format!("still pending: {n} of {of}, first {}", show(first))));
    }
    let took = duration(summary.seconds);
    let simulated = if report.plan.simulated { " of simulated time" } else { "" };
    line(&mut text, &format!("took: {took}{simulated}"));
    if let Some(parent) = &summary.parent {
        line(&mut text, &format!("made from run: {}", show(parent)));
    }
    let folder = format!("runs/{}", show(&summary.run_id));
    line(&mut text, &format!("run folder: {folder}/"));
    line(&mut text, &format!("JUnit: {}", ending.junit.map_or(format!("{folder}/junit.xml"), show)));
    line(&mut text, &format!("page: {folder}/index.html"));
    if let Some(why) = &summary.interrupted {
        line(&mut text, &paint.red(&shorten(&format!("interrupted: {}", show(why)), most)));
        line(&mut text, "  next: harness rerun --run latest");
    }
    let last = last_line(report);
    let last = match is_red {
        true => paint.red(&last),
        false if is_in_part(report) => paint.yellow(&last),
        false => paint.green(&last),
    };
    line(&mut text, &last);
    text
}

pub(super) fn line(text: &mut String, what: &str) {
    text.push_str(what);
    text.push('\n');
}

/// An empty line between two blocks, where there is a block before.
pub(super) fn gap(text: &mut String) {
    if !text.is_empty() && !text.ends_with("\n\n") {
        text.push('\n');
    }
}

/// A line for each culprit, with what it explains, and what other runs reported of it.
fn culprits(text: &mut String, report: &Report, explanations: &Explanations, ending: Ending) {
    let (summary, most) = (report.summary, ending.most_letters());
    let paint = Paint { color: ending.color };
    let counted = explained::counts(report, explanations);
    let all = report.cases.iter().flat_map(|case| &case.verdicts).filter(|one| one.status.is_red()).count();
    for (culprit, explained) in summary.culprits.iter().zip(&counted).take(MOST_CULPRITS) {
        line(text, &paint.red(&culprit_line(culprit, report.plan, "latest", most)));
        let ExplainedCount { results, cases } = explained;
        if *results > 0 {
            line(
                text,
                &format!("  explains {results} of {all} red assertions, in {}", count(*cases, "case")),
            );
        }
    }
    if let more @ 1.. = summary.culprits.len().saturating_sub(MOST_CULPRITS) {
        line(text, &paint.red(&format!("{}: see `summary.json`", count(more, "more culprit"))));
    }
    for message in ending.before.iter().take(MOST) {
        line(text, &shorten(&show(message), most));
    }
    gap(text);
}

/// Nodes that nothing was launched on, or nothing more.
fn left_out(text: &mut String, summary: &Summary, paint: Paint, most: usize) {
    for left in summary.left_out.iter().take(MOST) {
        let message = match &left.after {
            Some(case) => {
                format!("{} quarantined after {}: {}", show(&left.node), show(case), show(&left.why))
            }
            None => format!("excluded {}: {}", show(&left.node), show(&left.why)),
        };
        line(text, &paint.yellow(&shorten(&message, most)));
    }
    if let more @ 1.. = summary.left_out.len().saturating_sub(MOST) {
        line(
            text,
            &paint
                .yellow(&format!("{} excluded or quarantined: see `summary.json`", count(more, "more node"))),
        );
    }
}

/// Compares the end of each case with the end that its suite requires, for suites that go red on purpose.
fn must_end(text: &mut String, summary: &Summary, paint: Paint) {
    let (mut ended, mut bound, mut missed) = (0, 0, 0);
    for case in &summary.cases {
        let Some(must) = case.must_end else { continue };
        bound += 1;
        if must == case.end {
            ended += 1;
        } else {
            missed += 1;
            if missed <= MOST {
                let name = show(&format!("{}::{}", case.suite, case.name));
                line(text, &paint.red(&format!("{name} must end as `{must}`, ended as: {}", case.end)));
            }
        }
    }
    if bound > 0 {
        line(text, &format!("cases that ended as required: {ended} of {bound}"));
    }
}

/// One line per code, because most findings repeat in many places.
fn findings(text: &mut String, cases: &[CaseVerdict], paint: Paint, most: usize) {
    let mut by_code: Vec<(&str, Vec<&Finding>)> = Vec::new();
    for finding in cases.iter().flat_map(|case| &case.findings) {
        match by_code.iter_mut().find(|(code, _)| *code == finding.code) {
            Some((_, findings)) => findings.push(finding),
            None => by_code.push((&finding.code, vec![finding])),
        }
    }
    if by_code.is_empty() {
        return;
    }
    gap(text);
    for (code, findings) in by_code.iter().take(MOST) {
        let first = findings[0];
        let times =
            if findings.len() > 1 { format!("{} times, first ", findings.len()) } else { String::new() };
        let head = format!("finding {}", show(code));
        let rest = format!(": {times}{}{}", place(first), show(&first.message));
        let room = most.saturating_sub(head.chars().count());
        line(text, &format!("{}{}", paint.yellow(&head), shorten(&rest, room)));
    }
    if by_code.len() > MOST {
        line(text, &format!("{} of findings: see `summary.json`", count(by_code.len() - MOST, "more kind")));
    }
}

/// Such as `47 assertions: 1 pass, 2 fail`.
pub(super) fn counts(counts: &Counts) -> String {
    let mut text = format!("{}: ", count(counts.total, "assertion"));
    let parts = [
        (counts.fail, "fail"),
        (counts.unexpected_pass, "unexpected pass"),
        (counts.error, "error"),
        (counts.inconclusive, "inconclusive"),
        (counts.skipped, "skipped"),
        (counts.expected_failure, "expected failure"),
        (counts.unjudged, "unjudged"),
    ];
    write!(text, "{} pass", counts.pass).unwrap_or_default();
    if counts.provisional > 0 {
        write!(text, " ({} provisional)", counts.provisional).unwrap_or_default();
    }
    for (n, word) in parts.into_iter().filter(|(n, _)| *n > 0) {
        write!(text, ", {n} {word}").unwrap_or_default();
    }
    text
}

/// Such as `coverage: nodes 9/12, NICs 288/384`.
pub(super) fn coverage(coverage: &Coverage) -> String {
    let shares = [
        ("nodes", coverage.nodes),
        ("ranks", coverage.ranks),
        ("NICs", coverage.nics),
        ("sizes", coverage.sizes),
    ];
    let present: Vec<String> = shares
        .into_iter()
        .filter(|(_, share)| share.expected > 0)
        .map(|(what, share)| format!("{what} {share}"))
        .collect();
    if present.is_empty() {
        return "coverage: nothing was to be measured".to_owned();
    }
    format!("coverage: {}", present.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture::Reported as _;
    use crate::report::fixture::{self, Made};
    use model::artefact::{CaseEnd, Culprit, LeftOut, Share, Status, Verdict};

    #[test]
    fn a_red_run_ends_with_what_is_unexplained_then_culprits_then_counts() {
        insta::assert_snapshot!(closing(&fixture::red().report(), Ending::default()), @r#"
        explained by no culprit:
        FAIL `nics`: rate of rdmap114s0 on p5-003 must be at least 11 GB/s, measured: 4.1 GB/s
          where: cases/nics/raw/rdmap114s0.out:12
          next: swap the cable and run `--exact` again
        nccl-p5::rest must end as `fail`, ended as: skipped
        cases that ended as required: 0 of 1

        finding clock-jump: p5-002 wall clock went back: 30 s
        finding counter-reset: 2 times, first p5-001 rdmap79s0 counter fell\x1b[2J

        culprit p5-003 rdmap113s0: 4.1 GB/s (2 partners), 31 others at 11.9 (HRN-NIC-SLOW); next: harness isolate --run latest
          explains 2 of 44 red assertions, in 1 case
        suspects p5-001 p5-002: hang\x1b[0m; next: harness isolate --run latest
          explains 41 of 44 red assertions, in 1 case

        47 assertions: 1 pass (1 provisional), 2 fail, 1 unexpected pass, 40 error, 1 inconclusive, 1 skipped, 1 expected failure
        coverage: nodes 9/12, NICs 288/384
        skipped 1 assertion of `rest`: hang
        SIMULATED: nothing in this run was measured on real hardware; seed: 1
        took: 3 min 05 s of simulated time
        run folder: runs/20261121T031000Z-nccl-p5-3f9c/
        JUnit: runs/20261121T031000Z-nccl-p5-3f9c/junit.xml
        page: runs/20261121T031000Z-nccl-p5-3f9c/index.html
        FAILED: 1 bad part on 1 of 4 nodes (exit 1)
        "#);
    }

    #[test]
    fn a_green_run_ends_with_counts_and_coverage() {
        insta::assert_snapshot!(closing(&fixture::green().report(), Ending::default()), @r#"
        2 assertions: 2 pass
        coverage: nodes 3/4, NICs 96/128
        SIMULATED: nothing in this run was measured on real hardware; seed: 1
        took: 62 s of simulated time
        run folder: runs/20261121T031000Z-nccl-p5-3f9c/
        JUnit: runs/20261121T031000Z-nccl-p5-3f9c/junit.xml
        page: runs/20261121T031000Z-nccl-p5-3f9c/index.html
        PASSED: all 2 assertions passed (exit 0)
        "#);
    }

    #[test]
    fn five_hundred_nics_that_are_red_alike_are_a_few_lines() {
        let mut case = fixture::case("nics");
        for n in 0..512 {
            let (node, nic) = (format!("p5-{:03}", n / 32 + 1), format!("rdmap{}s0", n % 32));
            case.verdicts.push(fixture::verdict("nics", "rate", &node, &nic, Status::Fail));
        }
        let text = closing(&Made::from_cases(vec![case]).report(), Ending::default());
        assert!(text.contains("FAIL nic.rate: 512 assertions of `nics`, on p5-[001-016]\n"), "{text}");
        assert!(text.lines().count() < 15, "{text}");
    }

    #[test]
    fn many_kinds_of_red_and_of_findings_are_counted_and_not_shown() {
        let mut case = fixture::case("c");
        for n in 0..30 {
            let mut verdict = fixture::verdict("c", "rate", "n", "p", Status::Fail);
            verdict.metric = format!("metric-{n:02}");
            case.verdicts.push(verdict);
            case.findings.push(Finding::new(&format!("code-{n}"), "odd"));
        }
        let text = closing(&Made::from_cases(vec![case]).report(), Ending::default());
        assert!(text.contains("21 more red assertions: see `junit.xml`\n"), "{text}");
        assert!(text.contains("21 more kinds of findings: see `summary.json`\n"), "{text}");
    }

    #[test]
    fn whatever_happened_the_output_is_at_most_200_short_lines() {
        let cases = (0..300).map(|n| {
            let mut case = fixture::case(&format!("case-{n}"));
            let status = [Status::Fail, Status::Error, Status::Skipped, Status::Inconclusive][n % 4];
            let mut verdict = fixture::verdict("c", "rate", &format!("p5-{n:03}"), &"nic".repeat(50), status);
            (verdict.metric, verdict.cause) = (format!("metric-{n}"), Some(format!("cause-{n}")));
            case.findings = vec![Finding::new(&format!("code-{n}"), "odd ".repeat(100))];
            case.culprits = vec![Culprit::Culprit {
                node: format!("p5-{n:03}"),
                part: "gpu3".into(),
                evidence: "slow ".repeat(100),
                code: None,
            }];
            case.verdicts = vec![verdict.clone(), Verdict { node: None, part: None, ..verdict }];
            case
        });
        let mut made = Made::from_cases(cases.collect());
        for (n, case) in made.summary.cases.iter_mut().enumerate() {
            case.must_end = Some(CaseEnd::Pass);
            let left = LeftOut {
                node: format!("p5-{n:03}"),
                why: "hang ".repeat(50),
                by_folder: false,
                after: None,
            };
            made.summary.left_out.push(left);
        }
        let before: Vec<String> =
            (0..300).map(|n| format!("before: p5-{n:03} {}", "named ".repeat(50))).collect();
        let report = made.report();
        let end = closing(&report, Ending { before: &before, ..Ending::default() });
        let all = crate::report::case_lines(&report, false, false) + &end;
        assert!(all.lines().count() <= 200, "{}", all.lines().count());
        let long = all.lines().find(|line| line.chars().count() > MOST_LETTERS && !line.contains("where: "));
        assert_eq!(long, None);
    }

    #[test]
    fn whole_lines_are_shown_where_they_are_asked_for() {
        let reason = format!("{}the last word", "hang ".repeat(60));
        let mut made = fixture::red();
        made.summary.interrupted = Some(reason.clone());
        made.cases[0].findings = vec![Finding::new("odd", reason.clone())];
        let left = LeftOut { node: "p5-009".into(), why: reason.clone(), by_folder: false, after: None };
        made.summary.left_out.push(left);
        let before = [format!("before: {reason}")];
        let ending = |verbose: bool| Ending { before: &before, verbose, ..Ending::default() };
        let whole = closing(&made.report(), ending(true));
        for head in ["interrupted: ", "finding odd: ", "excluded p5-009: ", "before: "] {
            assert!(whole.contains(&format!("{head}{reason}\n")), "{head}: {whole}");
        }
        let cut = closing(&made.report(), ending(false));
        assert!(!cut.contains(&reason), "{cut}");
        assert_eq!(cut.matches("the last word\n").count(), 4, "{cut}");
    }

    #[test]
    fn colour_is_optional_and_messages_of_other_runs_are_shown() {
        let report = fixture::red();
        assert!(!closing(&report.report(), Ending::default()).contains('\x1b'));
        let text = closing(
            &report.report(),
            Ending { before: &["before: p5-003 x\x1b: named".to_owned()], ..Ending::default() },
        );
        assert!(text.contains("\nbefore: p5-003 x\\x1b: named\n"), "{text}");
        let painted = closing(&report.report(), Ending { color: true, ..Ending::default() });
        assert!(painted.contains("\x1b[31mculprit p5-003 rdmap113s0: "), "{painted}");
    }

    #[test]
    fn coverage_lists_only_what_was_planned() {
        let full = Share { measured: 4, expected: 4 };
        let some = Coverage { nodes: full, sizes: full, ..Coverage::default() };
        assert_eq!(coverage(&some), "coverage: nodes 4/4, sizes 4/4");
        assert_eq!(coverage(&Coverage::default()), "coverage: nothing was to be measured");
    }
}
