//! What a person reads after the results of a run: the culprits, what is red, then counts, coverage and the run folder.
//! The results themselves are printed by libtest-mimic (`trials.rs`).

use super::Report;
use crate::report::text::{is_red, place, subject};
use base::nodeset;
use base::text::SIMULATED;
use base::text::{count, duration, show};
use metric::finding::Finding;
use model::artefact::{CaseVerdict, Counts, Coverage, Status, Summary, Verdict};
use model::exit_code;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use verdict::unjudged;

/// Groups of red verdicts, and of findings, that are shown; the reports hold the others.
const MOST: usize = 9;
/// Parts of one red group that are named one by one.
const MOST_PARTS: usize = 4;

/// The end of the output of a run. In a run that does not exit 0 it begins with one line per culprit, as plain
/// text in the first column, so that a program can find it; `before` are the messages of other runs about those parts.
pub fn closing(report: &Report, before: &[String], color: bool) -> String {
    let summary = report.summary;
    let paint = Paint { color };
    let mut text = String::new();
    if summary.exit_code != exit_code::PASSED {
        for culprit in &summary.culprits {
            line(&mut text, &paint.red(&show(&culprit.to_string())));
        }
        for message in before {
            line(&mut text, &show(message));
        }
        gap(&mut text);
        reds(&mut text, report, &paint);
    }
    must_end(&mut text, summary, &paint);
    findings(&mut text, report.cases, &paint);
    gap(&mut text);
    line(&mut text, &counts(&summary.counts));
    line(&mut text, &coverage(&summary.coverage));
    if summary.counts.unjudged > 0 {
        let nodes = report.plan.nodes.len() - summary.left_out.len().min(report.plan.nodes.len());
        let (open, all) = (summary.counts.unjudged as usize, summary.counts.total as usize);
        line(&mut text, &paint.yellow(&unjudged::line(open, all, nodes)));
    }
    for left in &summary.left_out {
        let message = match &left.after {
            Some(case) => {
                format!("{} quarantined after {}: {}", show(&left.node), show(case), show(&left.why))
            }
            None => format!("excluded {}: {}", show(&left.node), show(&left.why)),
        };
        line(&mut text, &paint.yellow(&message));
    }
    if summary.simulated {
        line(&mut text, &paint.yellow(&format!("{SIMULATED}; seed: {}", summary.seed)));
    }
    if let Some(first) = summary.pending.first() {
        let n = count(summary.pending.len(), "assertion");
        let of = report.plan.pending.len();
        line(&mut text, &paint.yellow(&format!("still pending: {n} of {of}, first {}", show(first))));
    }
    let took = duration(summary.seconds);
    line(
        &mut text,
        &format!("took: {took}{}", if report.plan.simulated { " of simulated time" } else { "" }),
    );
    line(&mut text, &format!("run folder: runs/{}/", show(&summary.run_id)));
    if let Some(parent) = &summary.parent {
        line(&mut text, &format!("made from run: {}", show(parent)));
    }
    if let Some(why) = &summary.interrupted {
        line(&mut text, &paint.red(&format!("interrupted: {}", show(why))));
    }
    let code = summary.exit_code;
    let open = match summary.counts.unjudged {
        0 => String::new(),
        n => format!("; {n} unjudged"),
    };
    let ending = format!("exit {code}: {}{open}", meaning(code));
    let is_well = code == exit_code::PASSED;
    line(&mut text, &if is_well { paint.green(&ending) } else { paint.red(&ending) });
    text
}

struct Paint {
    color: bool,
}

impl Paint {
    fn with(&self, code: u8, text: &str) -> String {
        if self.color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn red(&self, text: &str) -> String {
        self.with(31, text)
    }

    fn yellow(&self, text: &str) -> String {
        self.with(33, text)
    }

    fn green(&self, text: &str) -> String {
        self.with(32, text)
    }

    fn status(&self, status: Status, text: &str) -> String {
        match status {
            Status::Fail | Status::UnexpectedPass => self.red(text),
            Status::Inconclusive | Status::Error => self.yellow(text),
            Status::Pass | Status::Skipped | Status::ExpectedFailure | Status::Unjudged => text.to_owned(),
        }
    }
}

fn line(text: &mut String, what: &str) {
    text.push_str(what);
    text.push('\n');
}

/// An empty line between two blocks, where there is a block before.
fn gap(text: &mut String) {
    if !text.is_empty() && !text.ends_with("\n\n") {
        text.push('\n');
    }
}

/// Verdicts of one case that are red in the same way on many parts.
struct RedGroup<'a> {
    case: &'a CaseVerdict,
    status: Status,
    verdicts: Vec<&'a Verdict>,
    /// Of the same metric in the same case, red or not.
    of: usize,
}

/// Failures first, then errors, then inconclusive results.
fn reds(text: &mut String, report: &Report, paint: &Paint) {
    let mut groups: Vec<RedGroup> = report.cases.iter().flat_map(red_groups).collect();
    groups.sort_by_key(|group| weight(group.status));
    let mut head = None;
    for group in groups.iter().take(MOST) {
        let case = (&group.case.suite, &group.case.case);
        if head != Some(case) {
            head = Some(case);
            line(text, &format!("{}::{}", show(case.0), show(case.1)));
        }
        red(text, group, paint);
    }
    if groups.len() > MOST {
        let more: usize = groups[MOST..].iter().map(|group| group.verdicts.len()).sum();
        line(text, &format!("{}: see `junit.xml`", count(more, "more red assertion")));
    }
}

fn weight(status: Status) -> u8 {
    match status {
        Status::Fail | Status::UnexpectedPass => 0,
        Status::Error => 1,
        _ => 2,
    }
}

fn red_groups(case: &CaseVerdict) -> Vec<RedGroup<'_>> {
    let mut total: BTreeMap<&str, usize> = BTreeMap::new();
    let mut found: BTreeMap<(Status, &str, Option<&str>), Vec<&Verdict>> = BTreeMap::new();
    for verdict in &case.verdicts {
        *total.entry(&verdict.metric).or_default() += 1;
        if is_red(verdict.status) {
            let key = (verdict.status, verdict.metric.as_str(), verdict.cause.as_deref());
            found.entry(key).or_default().push(verdict);
        }
    }
    found
        .into_iter()
        .map(|((status, metric, _), verdicts)| RedGroup { case, status, verdicts, of: total[metric] })
        .collect()
}

fn red(text: &mut String, group: &RedGroup, paint: &Paint) {
    let first = group.verdicts[0];
    let status = paint.status(group.status, group.status.name());
    let metric = show(&first.metric);
    if let [only] = group.verdicts[..] {
        line(text, &format!("  {status} {metric}: {}", show(&only.message)));
    } else {
        let (n, of) = (group.verdicts.len(), group.of);
        line(text, &format!("  {status} {metric}: {n} of {of}, on {}", parts(&group.verdicts)));
        line(text, &format!("    first: {}", show(&first.message)));
    }
    if let Some(evidence) = first.evidence.first() {
        let at = evidence.line.map(|line| format!(":{line}")).unwrap_or_default();
        line(text, &format!("    where: {}{at}", show(&evidence.file)));
    }
    if let Some(next) = &first.next {
        line(text, &format!("    next: {}", show(next)));
    }
}

/// The parts one by one where they are few, otherwise their nodes.
fn parts(verdicts: &[&Verdict]) -> String {
    let subjects: BTreeSet<String> = verdicts.iter().map(|verdict| subject(verdict)).collect();
    if subjects.len() <= MOST_PARTS {
        return subjects.into_iter().collect::<Vec<_>>().join(", ");
    }
    let nodes: BTreeSet<&String> = verdicts.iter().filter_map(|verdict| verdict.node.as_ref()).collect();
    if nodes.is_empty() {
        return format!("{} sets of nodes", subjects.len());
    }
    let nodes: Vec<String> = nodes.into_iter().cloned().collect();
    show(&nodeset::fold(&nodes))
}

/// Compares the end of each case with the end that its suite requires, for suites that go red on purpose.
fn must_end(text: &mut String, summary: &Summary, paint: &Paint) {
    let (mut ended, mut bound) = (0, 0);
    for case in &summary.cases {
        let Some(must) = case.must_end else { continue };
        bound += 1;
        if must == case.end {
            ended += 1;
        } else {
            let name = show(&format!("{}::{}", case.suite, case.name));
            line(text, &paint.red(&format!("{name} must end as `{must}`, ended as: {}", case.end)));
        }
    }
    if bound > 0 {
        line(text, &format!("cases that ended as required: {ended} of {bound}"));
    }
}

/// One line per code, because most findings repeat in many places.
fn findings(text: &mut String, cases: &[CaseVerdict], paint: &Paint) {
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
        let head = paint.yellow(&format!("finding {}", show(code)));
        line(text, &format!("{head}: {times}{}{}", place(first), show(&first.message)));
    }
    if by_code.len() > MOST {
        line(text, &format!("{} of findings: see `summary.json`", count(by_code.len() - MOST, "more kind")));
    }
}

fn counts(counts: &Counts) -> String {
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

fn coverage(coverage: &Coverage) -> String {
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

/// The meaning of an exit code, from the table of exit codes.
fn meaning(code: i32) -> &'static str {
    let code = code.to_string();
    exit_code::TABLE
        .lines()
        .filter_map(|row| row.trim().split_once(' '))
        .find(|(number, _)| *number == code)
        .map_or("not in the table of exit codes", |(_, meaning)| meaning.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture::Reported as _;
    use crate::report::fixture::{self, Made};
    use model::artefact::Share;

    #[test]
    fn a_red_run_ends_with_culprits_then_what_is_red_then_counts() {
        insta::assert_snapshot!(closing(&fixture::red().report(), &[], false), @r#"
        culprit p5-003 rdmap113s0: 4.1 GB/s with p5-002 and with p5-004, the other 31 at 11.9 (HRN-NIC-SLOW)
        suspects p5-001 p5-002: hang\x1b[0m; needs another partner

        nccl-p5::nics
          fail nic.rate: 2 of 3, on p5-003 rdmap113s0, p5-003 rdmap114s0
            first: rate of rdmap113s0 on p5-003 must be at least 11 GB/s, measured: 4.1 GB/s
            where: cases/nics/raw/rdmap113s0.out:12
            next: swap the cable and run `--exact` again
          unexpected pass nic.drops: drops of rdmap113s0 on p5-003 must be at least 11 GB/s, measured: 11.9 GB/s
            where: cases/nics/raw/rdmap113s0.out:12
            next: swap the cable and run `--exact` again
        nccl-p5::all-reduce
          error nic.share: 40 of 40, on p5-001
            first: share of rdmap0s0 on p5-001 was not measured: hang
            where: cases/all-reduce/raw/rdmap0s0.out:12
            next: swap the cable and run `--exact` again
          inconclusive nic.busbw: busbw of gpu3 on p5-001 was not measured: hang
            where: cases/all-reduce/raw/gpu3.out:12
            next: swap the cable and run `--exact` again
        nccl-p5::rest must end as `fail`, ended as: skipped
        cases that ended as required: 0 of 1

        finding clock-jump: p5-002 wall clock went back: 30 s
        finding counter-reset: 2 times, first p5-001 rdmap79s0 counter fell\x1b[2J

        47 assertions: 1 pass (1 provisional), 2 fail, 1 unexpected pass, 40 error, 1 inconclusive, 1 skipped, 1 expected failure
        coverage: nodes 9/12, NICs 288/384
        SIMULATED: nothing in this run was measured on real hardware; seed: 1
        took: 3 min 05 s of simulated time
        run folder: runs/20261121T031000Z-nccl-p5-3f9c/
        exit 1: failed: a measured value is out of bounds (takes precedence over 3; both counts are printed)
        "#);
    }

    #[test]
    fn a_green_run_ends_with_counts_and_coverage() {
        insta::assert_snapshot!(closing(&fixture::green().report(), &[], false), @r#"
        2 assertions: 2 pass
        coverage: nodes 3/4, NICs 96/128
        SIMULATED: nothing in this run was measured on real hardware; seed: 1
        took: 62 s of simulated time
        run folder: runs/20261121T031000Z-nccl-p5-3f9c/
        exit 0: all passed
        "#);
    }

    #[test]
    fn five_hundred_nics_that_are_red_alike_are_a_few_lines() {
        let mut case = fixture::case("nics");
        for n in 0..512 {
            let (node, nic) = (format!("p5-{:03}", n / 32 + 1), format!("rdmap{}s0", n % 32));
            case.verdicts.push(fixture::verdict("nics", "rate", &node, &nic, Status::Fail));
        }
        let text = closing(&Made::from_cases(vec![case]).report(), &[], false);
        assert!(text.contains("fail nic.rate: 512 of 512, on p5-[001-016]\n"), "{text}");
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
        let text = closing(&Made::from_cases(vec![case]).report(), &[], false);
        assert!(text.contains("21 more red assertions: see `junit.xml`\n"), "{text}");
        assert!(text.contains("21 more kinds of findings: see `summary.json`\n"), "{text}");
    }

    #[test]
    fn every_exit_code_has_its_meaning_and_colour_is_optional() {
        for code in [0, 1, 2, 3, 4, 5, 130, 143] {
            assert_ne!(meaning(code), meaning(99), "{code}");
        }
        let report = fixture::red();
        assert!(!closing(&report.report(), &[], false).contains('\x1b'));
        let text = closing(&report.report(), &["before: p5-003 x\x1b: named".to_owned()], false);
        assert!(text.contains("\nbefore: p5-003 x\\x1b: named\n"), "{text}");
        let painted = closing(&report.report(), &[], true);
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
