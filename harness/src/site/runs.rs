//! The newest run of each suite and inventory, and all runs.

use super::page::{LONGEST_NAME, SitePage};
use base::text::{count, shorten, show};
use recipes::result_table::escaped;
use std::collections::BTreeSet;
use std::io::{self, Write};

/// Rows of the newest runs.
const MOST_NEWEST: usize = 30;
/// A longer result is shortened.
const LONGEST_RESULT: usize = 300;
/// Rows of all runs.
const MOST: usize = 500;

/// The newest run of each suite and inventory, the newest first.
pub(super) fn newest_of_each(page: &SitePage) -> Vec<usize> {
    let mut known = BTreeSet::new();
    let runs = page.past.runs.iter().enumerate().rev();
    let newest = runs.filter(|(_, run)| {
        let plan = run.plan();
        known.insert((plan.suites.join(", "), plan.inventory.as_str()))
    });
    newest.map(|(at, _)| at).collect()
}

/// What each suite came to last.
pub(super) fn newest(page: &SitePage, out: &mut dyn Write) -> io::Result<()> {
    let newest = newest_of_each(page);
    if newest.len() < 2 {
        return Ok(());
    }
    writeln!(out, "<section class=\"card\" id=\"newest\">\n<h2>Newest run of each suite</h2>")?;
    table(page, newest.iter().take(MOST_NEWEST).copied(), out)?;
    if let more @ 1.. = newest.len().saturating_sub(MOST_NEWEST) {
        writeln!(out, "<p class=\"drawn\">{} below.</p>", count(more, "more suite"))?;
    }
    writeln!(out, "</section>")
}

/// Every run, the newest first.
pub(super) fn all(page: &SitePage, out: &mut dyn Write) -> io::Result<()> {
    let runs = page.past.runs.len();
    writeln!(out, "<section class=\"card\" id=\"runs\">\n<h2>All runs</h2>")?;
    if runs == 0 {
        return writeln!(out, "<p>None.</p>\n</section>");
    }
    writeln!(
        out,
        "<p class=\"of\">A run without a link has no page here: it is older than those that have one, or none can be made of it; <code>harness page</code> makes it or reports why.</p>"
    )?;
    writeln!(out, "<details>\n<summary>{}</summary>", count(runs, "run"))?;
    table(page, (0..runs).rev().take(MOST), out)?;
    if let more @ 1.. = runs.saturating_sub(MOST) {
        writeln!(
            out,
            "<p class=\"drawn\">{}: <code>harness runs list</code> lists all.</p>",
            count(more, "older run")
        )?;
    }
    writeln!(out, "</details>\n</section>")
}

fn table(page: &SitePage, runs: impl Iterator<Item = usize>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<div class=\"scroller numbers\">\n<table>\n<thead><tr>")?;
    for column in ["run", "suite", "inventory", "nodes", "verdict"] {
        write!(out, "<th scope=\"col\" class=\"text\">{column}</th>")?;
    }
    writeln!(out, "</tr></thead>\n<tbody>")?;
    for at in runs {
        let (run, result) = (&page.past.runs[at], &page.results[at]);
        let plan = run.plan();
        writeln!(
            out,
            "<tr><td>{}<td>{}<td>{}<td class=\"number\">{}<td><span class=\"{}\">{}</span>",
            page.link(at, &run.made),
            escaped(&shorten(&show(&plan.suites.join(", ")), LONGEST_NAME)),
            escaped(&shorten(&show(&plan.inventory), LONGEST_NAME)),
            plan.nodes.len(),
            result.tone.word_class(),
            escaped(&shorten(&show(&result.line), LONGEST_RESULT))
        )?;
    }
    writeln!(out, "</tbody>\n</table>\n</div>")
}
