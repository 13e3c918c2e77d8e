//! What the run does not show: coverage, nodes that were left out, and assertions without a verdict of pass or fail, by
//! their reason.

use super::Context;
use super::marks::{weight, word};
use crate::page::with_code;
use crate::report::skipped;
use base::text::{count, shorten, show, thousands};
use model::artefact::{Status, Verdict};
use recipes::result_table::escaped;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

/// Reasons with a row each.
const MOST_REASONS: usize = 60;
/// Nodes, assertions or cases that are named one by one.
const MOST_NAMED: usize = 40;
const MOST_LETTERS: usize = 400;

#[derive(Default)]
struct Reason<'a> {
    assertions: usize,
    cases: BTreeSet<&'a str>,
    next: Option<&'a str>,
}

pub(super) fn section(context: &Context, out: &mut dyn Write) -> io::Result<()> {
    let summary = context.report.summary;
    writeln!(out, "<section class=\"card\" id=\"unmeasured\">\n<h2>Not measured</h2>\n<dl class=\"facts\">")?;
    let coverage = &summary.coverage;
    for (what, share) in [
        ("nodes measured", coverage.nodes),
        ("ranks measured", coverage.ranks),
        ("NICs measured", coverage.nics),
        ("sizes measured", coverage.sizes),
    ] {
        if share.expected > 0 {
            writeln!(
                out,
                "<dt>{what}</dt><dd>{} of {}</dd>",
                thousands(share.measured as usize),
                thousands(share.expected as usize)
            )?;
        }
    }
    writeln!(out, "</dl>")?;
    if !summary.left_out.is_empty() {
        writeln!(out, "<h3>Nodes that were left out</h3>\n<ul class=\"files\">")?;
        for left in summary.left_out.iter().take(MOST_NAMED) {
            let when = match &left.after {
                Some(case) => format!("quarantined after {}", show(case)),
                None => "excluded before the first case".to_owned(),
            };
            let why = shorten(&show(&left.why), MOST_LETTERS);
            writeln!(out, "<li>{} {}: {}</li>", escaped(&left.node), escaped(&when), escaped(&why))?;
        }
        more(summary.left_out.len(), "more node", out)?;
        writeln!(out, "</ul>")?;
    }
    if !summary.pending.is_empty() {
        writeln!(out, "<h3>Still pending from the run before</h3>\n<ul class=\"files\">")?;
        for name in summary.pending.iter().take(MOST_NAMED) {
            writeln!(out, "<li>{}</li>", escaped(&show(name)))?;
        }
        more(summary.pending.len(), "more assertion", out)?;
        writeln!(out, "</ul>")?;
    }
    reasons(context, out)?;
    writeln!(out, "</section>")
}

fn more(all: usize, word: &str, out: &mut dyn Write) -> io::Result<()> {
    match all.saturating_sub(MOST_NAMED) {
        0 => Ok(()),
        more => writeln!(out, "<li>{}</li>", count(more, word)),
    }
}

fn reasons(context: &Context, out: &mut dyn Write) -> io::Result<()> {
    let mut reasons: BTreeMap<(usize, String), (Status, Reason)> = BTreeMap::new();
    for case in context.report.cases {
        for verdict in case.verdicts.iter().filter(|one| is_open(one)) {
            let key = (weight(verdict.status), why(verdict));
            let (_, reason) = reasons.entry(key).or_insert((verdict.status, Reason::default()));
            reason.assertions += 1;
            reason.cases.insert(&case.case);
            reason.next = reason.next.or(verdict.next.as_deref());
        }
    }
    if reasons.is_empty() {
        return writeln!(out, "<p>Every assertion of this run passed or failed by a number.</p>");
    }
    writeln!(
        out,
        "<div class=\"scroller numbers\">\n<table>\n<thead><tr><th scope=\"col\">assertions</th><th scope=\"col\" \
         class=\"text\">verdict</th><th scope=\"col\" class=\"text\">why</th><th scope=\"col\" \
         class=\"text\">cases</th></tr></thead>\n<tbody>"
    )?;
    for ((_, why), (status, reason)) in reasons.iter().take(MOST_REASONS) {
        let mut cases: Vec<String> = reason.cases.iter().take(4).map(|case| escaped(&show(case))).collect();
        if reason.cases.len() > 4 {
            cases.push(format!("{} more", reason.cases.len() - 4));
        }
        let next = reason.next.map(|next| {
            format!("<p class=\"why\">next: {}</p>", with_code(&shorten(&show(next), MOST_LETTERS)))
        });
        writeln!(
            out,
            "<tr><td class=\"number\">{}<td>{}<td>{}{}<td>{}",
            thousands(reason.assertions),
            word(*status),
            with_code(&shorten(&show(why), MOST_LETTERS)),
            next.unwrap_or_default(),
            cases.join(", ")
        )?;
    }
    writeln!(out, "</tbody>\n</table>\n</div>")?;
    if let more @ 1.. = reasons.len().saturating_sub(MOST_REASONS) {
        writeln!(out, "<p class=\"drawn\">{} not shown.</p>", count(more, "more reason"))?;
    }
    Ok(())
}

/// Neither passed nor failed by a number.
fn is_open(verdict: &Verdict) -> bool {
    match verdict.status {
        Status::Pass | Status::Fail | Status::ExpectedFailure | Status::UnexpectedPass => false,
        Status::Inconclusive | Status::Error | Status::Skipped | Status::Unjudged => true,
    }
}

fn why(verdict: &Verdict) -> String {
    match verdict.status {
        Status::Skipped => skipped::why(verdict),
        Status::Unjudged => "measured, and there is nothing to compare it with".to_owned(),
        _ => match verdict.cause.as_deref() {
            Some(cause) => cause.to_owned(),
            None => verdict.message.clone(),
        },
    }
}
