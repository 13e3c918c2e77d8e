//! The summary of a run in Markdown: what came of it, the culprits with evidence and next command, counts, and what was
//! skipped. Every foreign text stands in a code span, where nothing is a link, a mention or HTML.

use super::culprit_line::{evidence, next_command, subject};
use super::explained::{self, Explanations};
use super::last_line::last_line;
use super::paint::Paint;
use super::terminal::{counts, coverage};
use super::{Report, broken, reds, skipped};
use base::redact::mask_accounts;
use base::text::{SIMULATED, count, duration, shorten, show};
use model::artefact::{CaseEnd, Summary};
use std::fmt::Write;
use verdict::isolate::code::Code;

/// How each begins: Markdown does not show it.
pub(crate) const BEGINS: &str = "<!-- harness: summary of a run -->\n";
/// Rows of a table and lines of a list; the run's own reports hold the others.
const MOST: usize = 50;
/// Of a foreign text, in letters.
const MOST_LETTERS: usize = 400;

/// The summary.
pub(crate) fn markdown(report: &Report) -> String {
    let summary = report.summary;
    let mut text = format!("{BEGINS}## {}\n", last_line(report));
    if summary.simulated {
        paragraph(&mut text, &format!("**{SIMULATED}**; seed: {}", summary.seed));
    }
    common_failure(&mut text, summary);
    let explanations = Explanations::new(report);
    if summary.exit_code != 0 {
        culprits(&mut text, report, &explanations);
        if summary.common_failure.is_none() {
            unexplained(&mut text, report, &explanations);
            bad_cases(&mut text, summary);
        }
    }
    isolations(&mut text, summary);
    paragraph(&mut text, &counts(&summary.counts));
    paragraph(&mut text, &coverage(&summary.coverage));
    let skips = skipped::lines(report.cases, MOST_LETTERS);
    list(&mut text, "Skipped", &skips.iter().map(|line| code(line)).collect::<Vec<_>>());
    let left_out = summary.left_out.iter().map(|left| code(&format!("{}: {}", left.node, left.why)));
    list(&mut text, "Nodes that were left out", &left_out.collect::<Vec<_>>());
    if let Some(why) = &summary.interrupted {
        paragraph(&mut text, &format!("Interrupted: {}", code(why)));
    }
    paragraph(&mut text, &about(summary));
    mask_accounts(&text)
}

/// At most so many bytes of a summary: whole lines, and one that says that others are missing. Empty where there is no room
/// for both.
pub(crate) fn cut(text: &str, most: usize) -> String {
    const NOTE: &str =
        "\nThe rest is cut: GitHub shows at most 1 MiB of a step. The run's folder has all of it.\n";
    if text.len() <= most {
        return text.to_owned();
    }
    let room = text.floor_char_boundary(most.saturating_sub(NOTE.len()));
    match text[..room].rfind('\n') {
        Some(end) if end >= BEGINS.len() => format!("{}\n{NOTE}", &text[..end]),
        _ => String::new(),
    }
}

/// A foreign text that can be nothing but text, in a table too: a code span with longer fences than any within it. In a table
/// a bar needs an odd number of backslashes before it.
fn code(text: &str) -> String {
    let shown = shorten(show(text).trim(), MOST_LETTERS);
    if shown.is_empty() {
        return "-".to_owned();
    }
    let (mut inner, mut slashes, mut ticks, mut most_ticks) = (String::with_capacity(shown.len()), 0, 0, 0);
    for c in shown.chars() {
        if c == '|' {
            inner.push_str(if slashes % 2 == 0 { "\\" } else { "\\\\" });
        }
        slashes = if c == '\\' { slashes + 1 } else { 0 };
        ticks = if c == '`' { ticks + 1 } else { 0 };
        most_ticks = most_ticks.max(ticks);
        inner.push(c);
    }
    let fence = "`".repeat(most_ticks + 1);
    let gap = if inner.starts_with('`') || inner.ends_with('`') { " " } else { "" };
    format!("{fence}{gap}{inner}{gap}{fence}")
}

fn paragraph(text: &mut String, what: &str) {
    // Infallible: writing to a string.
    let _ = writeln!(text, "\n{what}");
}

/// Nothing where there are no lines.
fn list(text: &mut String, head: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    paragraph(text, &format!("{head}:\n"));
    for line in lines.iter().take(MOST) {
        let _ = writeln!(text, "- {line}");
    }
    if let more @ 1.. = lines.len().saturating_sub(MOST) {
        let _ = writeln!(text, "- {} in `summary.json`", count(more, "more line"));
    }
}

/// A table of cells that are fit to be shown.
fn table<const N: usize>(text: &mut String, head: [&str; N], rows: &[[String; N]]) {
    if rows.is_empty() {
        return;
    }
    paragraph(text, &format!("| {} |\n|{}", head.join(" | "), "---|".repeat(N)));
    for row in rows.iter().take(MOST) {
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    if let more @ 1.. = rows.len().saturating_sub(MOST) {
        paragraph(text, &format!("{}: see `summary.json`", count(more, "more row")));
    }
}

fn culprits(text: &mut String, report: &Report, explanations: &Explanations) {
    let counted = explained::counts(report, explanations);
    let rows: Vec<[String; 5]> = report
        .summary
        .culprits
        .iter()
        .zip(counted)
        .map(|(culprit, explained)| {
            let subject = subject(culprit);
            [
                code(subject.strip_prefix("culprit ").unwrap_or(&subject)),
                Code::for_culprit(culprit).map_or("-".to_owned(), |of| code(of.name)),
                code(evidence(culprit)),
                next_command(culprit, report.plan, &report.summary.run_id)
                    .map_or("-".to_owned(), |next| code(&next)),
                explained.results.to_string(),
            ]
        })
        .collect();
    table(text, ["culprit", "code", "evidence", "next command", "red assertions explained"], &rows);
}

/// The launcher, image or tool that is broken, in its own words.
fn common_failure(text: &mut String, summary: &Summary) {
    let Some(failure) = &summary.common_failure else { return };
    paragraph(text, &format!("{}; no node is blamed", code(&broken::headline(failure))));
    let words = &failure.words[failure.words.len().saturating_sub(3)..];
    list(text, "Its last lines", &words.iter().map(|line| code(line)).collect::<Vec<_>>());
    paragraph(text, &format!("Check: {}", code(&failure.check)));
}

/// As the terminal groups them.
fn unexplained(text: &mut String, report: &Report, explanations: &Explanations) {
    let mut lines = String::new();
    reds::unexplained(&mut lines, report, explanations, Paint { color: false }, MOST_LETTERS);
    let head = "explained by no culprit:\n";
    let lines = lines.strip_prefix(head).unwrap_or(&lines).lines();
    list(text, "Explained by no culprit", &lines.map(code).collect::<Vec<_>>());
}

fn bad_cases(text: &mut String, summary: &Summary) {
    let is_bad = |end: CaseEnd| !matches!(end, CaseEnd::Pass | CaseEnd::Skipped);
    let rows: Vec<[String; 3]> = summary
        .cases
        .iter()
        .filter(|case| is_bad(case.end))
        .map(|case| {
            [code(&format!("{}::{}", case.suite, case.name)), case.end.to_string(), counts(&case.counts)]
        })
        .collect();
    table(text, ["case", "ended", "assertions"], &rows);
}

fn isolations(text: &mut String, summary: &Summary) {
    let lines: Vec<String> = summary
        .isolations
        .iter()
        .flat_map(|one| match one.culprits.is_empty() {
            true => vec![format!("{}: {}", code(&one.suite), code(&one.end))],
            false => one.culprits.iter().map(|line| code(line)).collect(),
        })
        .collect();
    list(text, "Isolated by further runs", &lines);
}

fn about(summary: &Summary) -> String {
    let simulated = if summary.simulated { " of simulated time" } else { "" };
    format!(
        "Run {} of {} on {}, inventory {}; took {}{simulated}. Its folder: {}",
        code(&summary.run_id),
        code(&summary.suites.join(" ")),
        code(&summary.nodes),
        code(&summary.inventory),
        duration(summary.seconds),
        code(&format!("runs/{}/", summary.run_id)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture::{self, Made, Reported as _};
    use model::artefact::{Culprit, LeftOut, Status};

    #[test]
    fn a_red_run_is_its_culprits_then_what_is_unexplained_then_counts() {
        insta::assert_snapshot!(markdown(&fixture::red().report()));
    }

    #[test]
    fn a_green_run_is_counts_and_coverage() {
        insta::assert_snapshot!(markdown(&fixture::green().report()));
    }

    /// What GitHub's parser sees of a row: a bar ends a cell unless an odd number of backslashes stands before it.
    fn cells(row: &str) -> usize {
        let (mut bars, mut slashes) = (0, 0);
        for c in row.chars() {
            bars += usize::from(c == '|' && slashes % 2 == 0);
            slashes = if c == '\\' { slashes + 1 } else { 0 };
        }
        bars - 1
    }

    #[test]
    fn foreign_text_stays_in_its_cell_and_in_its_code_span() {
        let hostile = [
            "a | b",
            r"a \| b",
            r"a \\| b",
            "`",
            "``` | ```",
            "a ` b",
            "[x](http://x.y)",
            "<img src=x>",
            "http://x.y",
            "@all",
            "-->",
            "a\n| b |",
            "\u{202e}",
            "",
        ];
        for text in hostile {
            let span = code(text);
            let fence = span.len() - span.trim_start_matches('`').len();
            assert_eq!(span == "-", fence == 0, "{span}");
            let inner = &span[fence..span.len() - fence];
            let runs = inner.split(|c| c != '`').map(str::len);
            assert!(fence == 0 || runs.max() < Some(fence), "a fence of {fence} ends within {span}");
            assert_eq!(cells(&format!("| {span} | {span} |")), 2, "{span}");
            assert!(!span.contains('\n'), "{span}");

            let mut made = fixture::red();
            let part =
                Culprit::Culprit { node: text.into(), part: text.into(), evidence: text.into(), code: None };
            made.summary.culprits = vec![part];
            made.summary.interrupted = Some(text.into());
            made.cases[2].verdicts[0].message = format!("a on b: skipped: {text}");
            made.cases[0].verdicts[1].message = text.into();
            let rows = markdown(&made.report());
            let rows: Vec<&str> = rows.lines().filter(|line| line.starts_with('|')).collect();
            let (culprits, cases) = rows.split_at(3);
            assert!(culprits.iter().all(|row| cells(row) == 5), "{culprits:#?}");
            assert!(cases.iter().all(|row| cells(row) == 3), "{cases:#?}");
        }
    }

    #[test]
    fn whatever_happened_it_is_small() {
        let cases = (0..600).map(|n| {
            let mut case = fixture::case(&format!("case-{n}"));
            case.end = CaseEnd::Fail;
            let mut verdict = fixture::verdict(
                "c",
                "rate",
                &format!("p5-{n:03}"),
                "nic",
                [Status::Fail, Status::Skipped][n % 2],
            );
            verdict.metric = format!("metric-{n}");
            verdict.message = format!("a: skipped: {n}{}", "long ".repeat(1000));
            case.verdicts = vec![verdict];
            case.culprits =
                vec![Culprit::Suspects { nodes: vec![format!("n{n}")], evidence: "slow ".repeat(1000) }];
            case
        });
        let mut made = Made::from_cases(cases.collect());
        let left =
            |n| LeftOut { node: format!("n{n}"), why: "hang ".repeat(1000), by_folder: false, after: None };
        made.summary.left_out = (0..600).map(left).collect();
        let text = markdown(&made.report());
        assert!(text.len() < 200_000, "{}", text.len());
        assert!(text.contains("550 more rows: see `summary.json`"), "{text}");
        assert!(text.contains("- 550 more lines in `summary.json`"), "{text}");
    }

    #[test]
    fn a_summary_that_is_too_long_is_cut_between_lines_and_says_so() {
        let text = markdown(&fixture::red().report());
        assert_eq!(cut(&text, text.len()), text);
        for most in 0..text.len() {
            let cut = cut(&text, most);
            assert!(cut.len() <= most);
            if !cut.is_empty() {
                let (head, note) = cut.split_once("\n\nThe rest is cut").unwrap();
                assert!(text.starts_with(&format!("{head}\n")) && note.contains("1 MiB"), "{cut}");
            }
        }
        assert!(!cut(&text, 400).is_empty());
    }
}
