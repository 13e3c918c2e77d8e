//! Who is to blame: each culprit with its code, evidence, limit and next command; then what no culprit explains, and what
//! the codes ask for.

use super::Context;
use super::marks::word;
use crate::page::with_code;
use crate::report::culprit_line::{evidence, next_command, subject};
use crate::report::explained::{self, ExplainedCount};
use crate::report::text::subject as subject_of;
use crate::report::{Report, headline, last_lines};
use base::text::{count, shorten, show};
use model::artefact::{Culprit, Status, Verdict};
use recipes::result_table::escaped;
use std::collections::BTreeMap;
use std::io::{self, Write};
use verdict::isolate::code::Code;

/// Culprits that have their evidence on the page; the summary holds all.
const MOST: usize = 20;
/// Letters of an evidence, so that the next command is never far from the part.
const MOST_EVIDENCE: usize = 300;
/// Kinds of red results that no culprit explains.
const MOST_KINDS: usize = 10;

pub(super) fn section(context: &Context, out: &mut dyn Write) -> io::Result<()> {
    let report = context.report;
    let summary = report.summary;
    if let Some(failure) = &summary.common_failure {
        writeln!(
            out,
            "<section class=\"warning\" id=\"broken\">\n<h2>The launcher, the image or the tool is broken</h2>\n<p>{}; no \
             node is blamed.</p>\n<pre>{}</pre>\n<p class=\"next\">check: {}</p>\n</section>",
            escaped(&headline(failure)),
            last_lines(&failure.words)
                .lines()
                .map(|line| escaped(line.trim_start()) + "\n")
                .collect::<String>(),
            with_code(&failure.check)
        )?;
    }
    if let Some(why) = &summary.interrupted {
        let next = "harness rerun --run ".to_owned() + &show(&summary.run_id);
        writeln!(
            out,
            "<p class=\"warning\" id=\"interrupted\">Interrupted: {}. <span class=\"next\">next: <code>{}</code></span></p>",
            escaped(&shorten(why, MOST_EVIDENCE)),
            escaped(&next)
        )?;
    }
    if !summary.culprits.is_empty() {
        let explained = explained::counts(report, &context.explanations);
        writeln!(out, "<section id=\"culprits\">\n<ol class=\"culprits\">")?;
        for (culprit, explained) in summary.culprits.iter().zip(&explained).take(MOST) {
            entry(report, culprit, explained, out)?;
        }
        writeln!(out, "</ol>")?;
        if let more @ 1.. = summary.culprits.len().saturating_sub(MOST) {
            let summary = context.link("summary.json", "summary.json");
            writeln!(out, "<p class=\"drawn\">{} in {summary}.</p>", count(more, "more culprit"))?;
        }
        writeln!(out, "</section>")?;
    }
    unexplained(context, out)?;
    codes(report, out)
}

fn entry(
    report: &Report,
    culprit: &Culprit,
    explained: &ExplainedCount,
    out: &mut dyn Write,
) -> io::Result<()> {
    let code = Code::for_culprit(culprit);
    writeln!(out, "<li data-code=\"{}\">", code.map_or("", |code| code.name))?;
    let badge = code.map(|code| format!(" <code class=\"badge s-fail\">{}</code>", code.name));
    writeln!(out, "<p><strong>{}</strong>{}</p>", escaped(&subject(culprit)), badge.unwrap_or_default())?;
    let limit = limit(report, culprit).map(|limit| format!(" (limit {limit})")).unwrap_or_default();
    writeln!(
        out,
        "<p>{}{}</p>",
        escaped(&shorten(&show(evidence(culprit)), MOST_EVIDENCE)),
        escaped(&limit)
    )?;
    if let Some(next) = next_command(culprit, report.plan, &report.summary.run_id) {
        writeln!(out, "<p class=\"next\">next: <code>{}</code></p>", escaped(&next))?;
    }
    if explained.results > 0 {
        let results = count(explained.results, "red assertion");
        writeln!(out, "<p class=\"of\">explains {results} in {}</p>", count(explained.cases, "case"))?;
    }
    writeln!(out, "</li>")
}

/// The limit that the part's own number does not keep, where the evidence does not name it.
fn limit(report: &Report, culprit: &Culprit) -> Option<String> {
    let Culprit::Culprit { node, part, evidence, .. } = culprit else { return None };
    let is_own = |verdict: &&Verdict| verdict.status == Status::Fail && verdict.node.as_ref() == Some(node);
    let broken = |verdict: &Verdict| {
        // Of a verdict about all NICs of a node, the number of this one.
        let own = verdict.part.as_ref() == Some(part);
        let observed = if own { verdict.observed } else { verdict.nics.get(part).copied() };
        Some((verdict.unit, broken_limit(verdict, observed?)?))
    };
    let verdicts = report.cases.iter().flat_map(|case| &case.verdicts);
    let (unit, limit) = verdicts.filter(is_own).find_map(broken)?;
    let is_named = ["limit", "expected", "below", "above"].iter().any(|word| evidence.contains(word));
    (!is_named).then(|| unit.show(limit))
}

/// The bound that a number does not keep.
fn broken_limit(verdict: &Verdict, observed: f64) -> Option<f64> {
    verdict.lower.filter(|lower| observed < *lower).or(verdict.upper.filter(|upper| observed > *upper))
}

/// What is red and explained by no culprit, by its metric or cause, the most frequent first.
fn unexplained(context: &Context, out: &mut dyn Write) -> io::Result<()> {
    let mut kinds: BTreeMap<(Status, &str), (usize, &Verdict)> = BTreeMap::new();
    for verdict in context.report.cases.iter().flat_map(|case| &case.verdicts) {
        if !verdict.status.is_red() || context.explanations.index_of(verdict).is_some() {
            continue;
        }
        let what = verdict.cause.as_deref().unwrap_or(&verdict.metric);
        kinds.entry((verdict.status, what)).or_insert((0, verdict)).0 += 1;
    }
    if kinds.is_empty() {
        return Ok(());
    }
    let title = if context.report.summary.culprits.is_empty() { "Red" } else { "Explained by no culprit" };
    writeln!(out, "<section class=\"card\" id=\"unexplained\">\n<h2>{title}</h2>\n<ul class=\"files\">")?;
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by_key(|((status, _), (times, _))| (super::marks::weight(*status), std::cmp::Reverse(*times)));
    for ((status, _), (times, first)) in kinds.iter().take(MOST_KINDS) {
        let times = if *times > 1 { format!("{times} times, first ") } else { String::new() };
        let next =
            first.next.as_deref().map(|next| format!(" Next: {}.", with_code(next.trim_end_matches('.'))));
        writeln!(
            out,
            "<li>{} {}{}: {}.{}</li>",
            word(*status),
            times,
            escaped(&subject_of(first)),
            escaped(&shorten(&show(&first.message), MOST_EVIDENCE)),
            next.unwrap_or_default()
        )?;
    }
    writeln!(out, "</ul>")?;
    if let more @ 1.. = kinds.len().saturating_sub(MOST_KINDS) {
        writeln!(out, "<p class=\"drawn\">{} in the cases below.</p>", count(more, "more kind"))?;
    }
    writeln!(out, "</section>")
}

/// What each code means, each once, and the commands that take nodes out of the queue.
fn codes(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let mut codes: Vec<&Code> = Vec::new();
    for code in report.summary.culprits.iter().filter_map(Code::for_culprit) {
        if !codes.iter().any(|known| known.name == code.name) {
            codes.push(code);
        }
    }
    if codes.is_empty() {
        return Ok(());
    }
    writeln!(out, "<details class=\"card\" id=\"codes\">\n<summary>What to do about it</summary>")?;
    for code in codes {
        writeln!(
            out,
            "<h3>{}: {}</h3>\n<dl class=\"facts\"><dt>usual cause</dt><dd>{}</dd><dt>to do</dt><dd>{}</dd></dl>",
            code.name,
            with_code(code.what),
            with_code(code.cause),
            with_code(code.next)
        )?;
        let of_code =
            |culprit: &&Culprit| Code::for_culprit(culprit).is_some_and(|own| own.name == code.name);
        for culprit in report.summary.culprits.iter().filter(of_code).take(MOST) {
            if let Culprit::Culprit { node, part, .. } = culprit
                && let Some(drain) = code.drain(report.plan.launcher, report.cluster, node, part)
            {
                let drain = escaped(&show(&drain));
                writeln!(out, "<p class=\"next\">drain it (not run): <code>{drain}</code></p>")?;
            }
        }
    }
    writeln!(out, "</details>")
}
