//! Which parts were blamed: those that no run has cleared since come first, with evidence and next command.

use super::page::{LONGEST_NAME, SitePage};
use super::results::Tone;
use crate::page::with_code;
use crate::report::culprit_line::next_command;
use base::text::{count, shorten, show};
use model::artefact::Culprit;
use recipes::result_table::escaped;
use std::io::{self, Write};
use verdict::history::past::RunKind;
use verdict::history::suspects::{LOOKED_BACK, Suspect, not_counted};

/// Of its last runs so many blame a part that is intermittent, whatever the newest run came to.
const INTERMITTENT: usize = 2;
/// Suspects of one list that have their evidence on the page.
const MOST_OPEN: usize = 20;
/// Rows of those that were cleared.
const MOST_CLEARED: usize = 100;
const MOST_EVIDENCE: usize = 300;

pub(super) fn section(page: &SitePage, out: &mut dyn Write) -> io::Result<()> {
    if page.kind == RunKind::Canary {
        return Ok(());
    }
    let (mut open, mut cleared): (Vec<&Suspect>, Vec<&Suspect>) =
        page.blamed.suspects.iter().partition(|suspect| suspect.is_open());
    let mut intermittent: Vec<&Suspect> =
        cleared.extract_if(.., |suspect| suspect.lately(LOOKED_BACK).1 >= INTERMITTENT).collect();
    // Who was blamed last first; the command line has the most often blamed first.
    for list in [&mut open, &mut intermittent, &mut cleared] {
        list.sort_by_key(|suspect| std::cmp::Reverse(suspect.blamed().last().copied()));
    }
    writeln!(out, "<section id=\"suspects\">")?;
    let is_green = page.results.last().is_none_or(|newest| newest.tone == Tone::Green);
    if open.is_empty() && intermittent.is_empty() {
        let none = match is_green {
            true => "No part is suspected now.",
            false => "No part is named: what the newest run shows is no part's alone, or not known.",
        };
        writeln!(out, "<p>{none}</p>")?;
    }
    list(page, &open, &format!("{} now", count(open.len(), "suspect")), out)?;
    let title =
        format!("{}, blamed in several of the last runs", count(intermittent.len(), "intermittent part"));
    list(page, &intermittent, &title, out)?;
    if !cleared.is_empty() {
        writeln!(
            out,
            "<details class=\"card\">\n<summary>{} passed since what {} blamed in</summary>\n<ul>",
            count(cleared.len(), "part"),
            if cleared.len() == 1 { "it was" } else { "they were" }
        )?;
        for suspect in cleared.iter().take(MOST_CLEARED) {
            writeln!(
                out,
                "<li>{}: {}, last in {}; cleared in {}</li>",
                escaped(&part(suspect)),
                record(suspect),
                last(page, suspect),
                suspect.cleared.last().map(|run| made(page, *run)).unwrap_or_default()
            )?;
        }
        writeln!(out, "</ul>\n</details>")?;
    }
    for (component, replaced) in &page.blamed.gone {
        writeln!(out, "<p class=\"of\">Replaced: {}</p>", escaped(&show(&not_counted(component, replaced))))?;
    }
    writeln!(out, "</section>")
}

/// Suspects that have their evidence on the page.
fn list(page: &SitePage, suspects: &[&Suspect], title: &str, out: &mut dyn Write) -> io::Result<()> {
    if suspects.is_empty() {
        return Ok(());
    }
    writeln!(out, "<h2>{title}</h2>\n<ol class=\"culprits\">")?;
    for suspect in suspects.iter().take(MOST_OPEN) {
        entry(page, suspect, out)?;
    }
    writeln!(out, "</ol>")?;
    if let more @ 1.. = suspects.len().saturating_sub(MOST_OPEN) {
        writeln!(
            out,
            "<p class=\"drawn\">{}: <code>harness history --suspects</code> lists all.</p>",
            count(more, "more suspect")
        )?;
    }
    Ok(())
}

fn entry(page: &SitePage, suspect: &Suspect, out: &mut dyn Write) -> io::Result<()> {
    let codes: Vec<&str> = suspect.codes.iter().copied().filter(|code| *code != "-").collect();
    let badge = match codes.as_slice() {
        [] => String::new(),
        codes => format!(" <code class=\"badge s-fail\">{}</code>", codes.join(" ")),
    };
    writeln!(out, "<li>\n<p><strong>{}</strong>{badge}</p>", escaped(&part(suspect)))?;
    writeln!(out, "<p>{}</p>", escaped(&shorten(&show(&suspect.evidence), MOST_EVIDENCE)))?;
    if let Some(next) = next(page, suspect, &codes) {
        writeln!(out, "<p class=\"next\">next: {}</p>", with_code(&format!("`{next}`")))?;
    }
    let (of, times) = suspect.lately(LOOKED_BACK);
    let lately = match of {
        // Its node was left out of every run.
        0 => String::new(),
        _ => format!(", in {times} of the last {} with it", count(of, "run")),
    };
    writeln!(out, "<p class=\"of\">{}{lately}; last in {}</p>\n</li>", record(suspect), last(page, suspect))
}

fn part(suspect: &Suspect) -> String {
    let part = &suspect.component;
    let [node, name, inventory] =
        [&part.node, &part.part, &part.inventory].map(|name| shorten(&show(name), LONGEST_NAME));
    format!("{node} {name} ({inventory})")
}

/// How often it was blamed, and how.
fn record(suspect: &Suspect) -> String {
    let named = suspect.culprit.len();
    let one_of_several = suspect.suspect.len();
    match (named, one_of_several) {
        (named, 0) => format!("named in {}", count(named, "run")),
        (0, several) => format!("one of several suspects in {}", count(several, "run")),
        (named, several) => format!("named in {}, one of several suspects in {several}", count(named, "run")),
    }
}

fn last(page: &SitePage, suspect: &Suspect) -> String {
    suspect.blamed().last().map(|run| made(page, *run)).unwrap_or_default()
}

fn made(page: &SitePage, run: usize) -> String {
    let made = page.past.runs.get(run).map(|run| run.made.as_str()).unwrap_or_default();
    page.link(run, made)
}

/// As the run said that blamed it last; what its code means where another run or an isolation did.
fn next(page: &SitePage, suspect: &Suspect, codes: &[&str]) -> Option<String> {
    let run = page.past.runs.get(*suspect.blamed().last()?)?;
    let is_about = |culprit: &&Culprit| match culprit {
        Culprit::Culprit { node, part, .. } => {
            (node, part) == (&suspect.component.node, &suspect.component.part)
        }
        Culprit::Suspects { nodes, .. } => nodes.contains(&suspect.component.node),
        Culprit::Fleet { .. } => false,
    };
    let of_run = run.culprits.iter().find(is_about);
    let of_code = || codes.first().map(|code| format!("harness explain {code}"));
    of_run.and_then(|culprit| next_command(culprit, run.plan(), run.id())).or_else(of_code)
}
