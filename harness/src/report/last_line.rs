//! The last line of a run: what came of it, in words, with the exit code.

use super::Report;
use base::text::count;
use model::artefact::{Counts, Culprit, Summary};
use model::exit_code;
use std::collections::BTreeSet;
use verdict::unjudged;

/// Such as `FAILED: 1 bad part on 1 of 4 nodes (exit 1)`.
pub(crate) fn last_line(report: &Report) -> String {
    let summary = report.summary;
    let code = summary.exit_code;
    format!("{} (exit {code})", outcome(report))
}

/// Whether whole cases were skipped.
pub(super) fn is_in_part(report: &Report) -> bool {
    report.cases.iter().any(|case| unjudged::is_unmeasured(report.plan, case))
}

fn outcome(report: &Report) -> String {
    let (summary, counts) = (report.summary, &report.summary.counts);
    let (nodes, pending_at_first) = (report.plan.nodes.len(), report.plan.pending.len());
    match summary.exit_code {
        exit_code::PASSED if is_in_part(report) => format!("PASSED in part: {}", passed(counts)),
        exit_code::PASSED => format!("PASSED: {}", passed(counts)),
        exit_code::FAILED => format!("FAILED: {}", blamed(summary, nodes)),
        exit_code::INCONCLUSIVE if is_decided(counts) && report.plan.strict && is_in_part(report) => {
            format!("INCONCLUSIVE: {}, which `--strict` refuses", passed(counts))
        }
        exit_code::INCONCLUSIVE if is_decided(counts) && unjudged::are_names_unknown(report.plan) => {
            format!("INCONCLUSIVE: {}; NICs without names were not tested", passed(counts))
        }
        exit_code::INCONCLUSIVE if is_decided(counts) => {
            format!("INCONCLUSIVE: {}; see the errors above", passed(counts))
        }
        exit_code::INCONCLUSIVE => format!("INCONCLUSIVE: {}", undecided(summary, nodes)),
        exit_code::NOTHING_SELECTED => {
            format!("NOTHING WAS MEASURED: {} skipped", count(counts.skipped, "assertion"))
        }
        exit_code::OWES => {
            let still = summary.pending.len();
            format!(
                "INCOMPLETE: the rerun has no failure, and {still} of {pending_at_first} assertions are still pending"
            )
        }
        exit_code::INTERRUPTED | exit_code::TERMINATED => {
            format!("INTERRUPTED: {} before it stopped, reports are written", judged(counts))
        }
        _ => judged(counts),
    }
}

/// Whether the assertions leave nothing open.
fn is_decided(counts: &Counts) -> bool {
    counts.total > 0 && counts.error + counts.inconclusive + counts.unjudged == 0
}

/// `all N assertions passed` only where that is so.
fn passed(counts: &Counts) -> String {
    if counts.pass == counts.total {
        return format!("all {} passed", count(counts.total, "assertion"));
    }
    let mut text = format!("{} of {} passed", counts.pass, count(counts.total, "assertion"));
    for (n, word) in [
        (counts.skipped, "skipped"),
        (counts.expected_failure, "failed as expected"),
        (counts.unjudged, "unjudged"),
    ] {
        if n > 0 {
            text.push_str(&format!(", {n} {word}"));
        }
    }
    text
}

fn judged(counts: &Counts) -> String {
    let red = counts.fail + counts.unexpected_pass;
    format!("{} passed and {red} failed of {}", counts.pass, count(counts.total, "assertion"))
}

/// The bad parts, or why none is named.
fn blamed(summary: &Summary, nodes: usize) -> String {
    let counts = &summary.counts;
    if let Some(parts) = parts(summary, nodes) {
        return parts;
    }
    let failed = match (counts.fail, counts.unexpected_pass) {
        (0, passed) => format!("{} passed that must fail", count(passed, "assertion")),
        (failed, _) => format!("{failed} of {}", count(counts.total, "assertion")),
    };
    format!("{failed}, {}", unnamed(summary))
}

fn undecided(summary: &Summary, nodes: usize) -> String {
    let counts = &summary.counts;
    let open = counts.error + counts.inconclusive;
    let what = match open {
        0 => unjudged::without_comparison(counts.unjudged as usize, counts.total as usize),
        open => format!("{open} of {} not decided", count(counts.total, "assertion")),
    };
    match parts(summary, nodes) {
        Some(parts) => format!("{what}; {parts}"),
        None if open == 0 => what,
        None => format!("{what}, {}", unnamed(summary)),
    }
}

/// `1 bad part on 1 of 4 nodes`.
fn parts(summary: &Summary, nodes: usize) -> Option<String> {
    let named: BTreeSet<(&str, &str)> = summary
        .culprits
        .iter()
        .filter_map(|culprit| match culprit {
            Culprit::Culprit { node, part, .. } => Some((node.as_str(), part.as_str())),
            Culprit::Suspects { .. } | Culprit::Fleet { .. } => None,
        })
        .collect();
    let bad: BTreeSet<&str> = named.iter().map(|(node, _)| *node).collect();
    let whole = named.iter().all(|(_, part)| *part == "node");
    match (named.len(), whole) {
        (0, _) => None,
        (n, true) => Some(format!("{} of {nodes}", count(n, "bad node"))),
        (n, false) => Some(format!("{} on {} of {}", count(n, "bad part"), bad.len(), count(nodes, "node"))),
    }
}

fn unnamed(summary: &Summary) -> String {
    let suspects: BTreeSet<&String> = summary
        .culprits
        .iter()
        .filter_map(|culprit| match culprit {
            Culprit::Suspects { nodes, .. } => Some(nodes),
            _ => None,
        })
        .flatten()
        .collect();
    match suspects.len() {
        0 => "no part is blamed".to_owned(),
        n => format!("{n} suspected nodes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;
    use crate::report::fixture::{Made, Reported as _};
    use model::artefact::{CaseEnd, Status};

    #[test]
    fn the_last_line_is_in_words_and_has_the_exit_code() {
        let made = |statuses: &[Status]| {
            let mut case = fixture::case("c");
            case.verdicts =
                statuses.iter().map(|status| fixture::verdict("c", "rate", "n", "p", *status)).collect();
            Made::from_cases(vec![case])
        };
        use Status::{Error, Fail, Inconclusive, Pass, Skipped, UnexpectedPass, Unjudged};
        let mut all = vec![
            fixture::red(),
            made(&[Pass, Pass]),
            made(&[Pass, Skipped, Skipped]),
            made(&[Pass, Unjudged]),
            made(&[Fail, Pass]),
            made(&[UnexpectedPass]),
            made(&[Error, Inconclusive, Pass]),
            made(&[Unjudged]),
            made(&[Skipped]),
        ];
        let mut stopped = made(&[Pass, Error]);
        stopped.summary.exit_code = exit_code::INTERRUPTED;
        let mut owes = made(&[Pass]);
        owes.summary.exit_code = exit_code::OWES;
        owes.summary.pending = vec!["a".into()];
        owes.plan.pending = vec!["a".into(), "b".into()];
        let mut node = made(&[Error, Pass]);
        node.summary.culprits = vec![Culprit::Culprit {
            node: "p5-002".into(),
            part: "node".into(),
            evidence: "hang".into(),
            code: None,
        }];
        let mut unwritten = made(&[Pass, Pass]);
        unwritten.summary.exit_code = exit_code::INCONCLUSIVE;
        let in_part = || {
            let mut cases = [Pass, Skipped].map(|status| {
                let mut case = fixture::case(&status.to_string());
                case.verdicts = vec![fixture::verdict("c", "rate", "n", "p", status)];
                case
            });
            cases[1].end = CaseEnd::Skipped;
            Made::from_cases(cases.into())
        };
        let mut strict = in_part();
        strict.plan.strict = true;
        strict.summary.exit_code = exit_code::INCONCLUSIVE;
        all.extend([stopped, owes, node, unwritten, in_part(), strict]);
        let lines: Vec<String> = all.iter().map(|made| last_line(&made.report())).collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        FAILED: 1 bad part on 1 of 4 nodes (exit 1)
        PASSED: all 2 assertions passed (exit 0)
        PASSED: 1 of 3 assertions passed, 2 skipped (exit 0)
        PASSED: 1 of 2 assertions passed, 1 unjudged (exit 0)
        FAILED: 1 of 2 assertions, no part is blamed (exit 1)
        FAILED: 1 assertion passed that must fail, no part is blamed (exit 1)
        INCONCLUSIVE: 2 of 3 assertions not decided, no part is blamed (exit 3)
        INCONCLUSIVE: 1 of 1 number has nothing to compare with (exit 3)
        NOTHING WAS MEASURED: 1 assertion skipped (exit 4)
        INTERRUPTED: 1 passed and 0 failed of 2 assertions before it stopped, reports are written (exit 130)
        INCOMPLETE: the rerun has no failure, and 1 of 2 assertions are still pending (exit 5)
        INCONCLUSIVE: 1 of 2 assertions not decided; 1 bad node of 4 (exit 3)
        INCONCLUSIVE: all 2 assertions passed; see the errors above (exit 3)
        PASSED in part: 1 of 2 assertions passed, 1 skipped (exit 0)
        INCONCLUSIVE: 1 of 2 assertions passed, 1 skipped, which `--strict` refuses (exit 3)
        "#);
    }
}
