//! The page of all runs of one kind: the worst that is open and the suspects first.

use super::certificates;
use super::grid;
use super::headline;
use super::results::{RunResult, result};
use super::runs;
use super::suspects;
use super::trends;
use crate::accept::certificate_files::StoredCertificate;
use crate::page::{address, site_foot, site_head};
use crate::report::not_counted;
use base::text::{SIMULATED, count, shorten, show};
use recipes::result_table::escaped;
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;
use verdict::history::past::{Past, RunKind};
use verdict::history::suspects::{Blamed, blamed};

/// A longer line about what is not counted is shortened.
const LONGEST_LINE: usize = 400;
/// A longer name of a suite, an inventory or a part is shortened.
pub(super) const LONGEST_NAME: usize = 80;
/// Lines about what is not counted; the verb prints all of them.
const MOST_UNCOUNTED: usize = 100;

pub(super) struct SitePage<'a> {
    pub past: &'a Past,
    pub kind: RunKind,
    pub blamed: Blamed,
    pub results: Vec<RunResult>,
    pub certificates: Vec<&'a StoredCertificate>,
    /// What was not read beside the runs that are not counted.
    unread: &'a [String],
    /// Of each run, where it has one.
    pages: Vec<Option<String>>,
    /// All pages of the site.
    names: &'a [(RunKind, String)],
}

/// The description of the page for programs.
#[derive(Serialize)]
struct SiteAbout {
    site: u32,
    kind: &'static str,
    runs: usize,
    newest: String,
    open_suspects: usize,
    simulated: bool,
}

impl<'a> SitePage<'a> {
    pub(super) fn new(
        past: &'a Past,
        kind: RunKind,
        certificates: Vec<&'a StoredCertificate>,
        unread: &'a [String],
        pages: Vec<Option<String>>,
        names: &'a [(RunKind, String)],
    ) -> SitePage<'a> {
        let results = past.runs.iter().map(result).collect();
        SitePage { past, kind, blamed: blamed(past), results, certificates, unread, pages, names }
    }

    /// Some words that lead to the page of a run, if it has one.
    pub(super) fn link(&self, run: usize, words: &str) -> String {
        match self.pages.get(run).and_then(Option::as_ref) {
            Some(page) => {
                format!("<a href=\"{}\">{}</a>", escaped(&address(Path::new(page))), escaped(words))
            }
            None => escaped(words),
        }
    }

    pub(super) fn render(&self) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        self.write(&mut text)?;
        Ok(text)
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let newest = self.past.runs.last();
        let simulated = self.past.runs.iter().any(|run| run.is_simulated())
            || self.certificates.iter().any(|one| one.acceptance.simulated);
        let RunResult { tone, line: headline } = headline::headline(self);
        let tone = tone.name();
        let about = SiteAbout {
            site: 1,
            kind: self.kind.name(),
            runs: self.past.runs.len(),
            newest: newest.map(|run| show(run.id())).unwrap_or_default(),
            open_suspects: self.blamed.suspects.iter().filter(|one| one.is_open()).count(),
            simulated,
        };
        site_head(out, &format!("{headline} · {} runs", self.kind.name()), &about)?;
        writeln!(
            out,
            "<header>\n<div class=\"line\">\n<h1 class=\"{tone}\" id=\"verdict\">{}</h1>\n\
             <button type=\"button\" id=\"theme\">Dark</button>\n</div>",
            escaped(&headline)
        )?;
        if simulated {
            let note = SIMULATED.replace("this run", "these runs");
            writeln!(out, "<p class=\"simulated\" id=\"simulated\">{}.</p>", escaped(&note))?;
        }
        if self.kind == RunKind::Canary {
            writeln!(
                out,
                "<p class=\"warning\">Canary runs go red on purpose: they make no node suspect, and clear none.</p>"
            )?;
        }
        self.summary(out)?;
        writeln!(out, "</header>\n<main>")?;
        suspects::section(self, out)?;
        runs::newest(self, out)?;
        self.contents(out)?;
        grid::section(self, out)?;
        trends::section(self, out)?;
        certificates::section(self, out)?;
        runs::all(self, out)?;
        self.uncounted(out)?;
        writeln!(out, "</main>")?;
        site_foot(out)
    }

    /// What the page is made of.
    fn summary(&self, out: &mut dyn Write) -> io::Result<()> {
        let runs = &self.past.runs;
        let nodes: BTreeSet<(&str, &str)> = runs
            .iter()
            .flat_map(|run| {
                run.plan().nodes.iter().map(|node| (run.plan().inventory.as_str(), node.as_str()))
            })
            .collect();
        if let (Some(first), Some(last)) = (runs.first(), runs.last()) {
            let suites = shorten(&show(&last.plan().suites.join(", ")), LONGEST_NAME);
            let result = self.results.last().map(|result| result.line.as_str()).unwrap_or_default();
            writeln!(
                out,
                "<p class=\"of\">Newest run: {} of suite {} on {} ({}): {}. {} on {} since {}.</p>",
                self.link(runs.len() - 1, &last.made),
                escaped(&suites),
                escaped(&shorten(&show(&last.plan().inventory), LONGEST_NAME)),
                count(last.plan().nodes.len(), "node"),
                escaped(&shorten(&show(result), LONGEST_LINE)),
                count(runs.len(), &format!("{} run", self.kind.name())),
                count(nodes.len(), "node"),
                escaped(&first.made)
            )?;
        }
        let others: Vec<String> = self
            .names
            .iter()
            .filter(|(kind, _)| *kind != self.kind)
            .map(|(kind, name)| format!("<a href=\"{name}\">{} runs</a>", kind.name()))
            .collect();
        if !others.is_empty() {
            writeln!(out, "<p class=\"of\">Never mixed with these: {}.</p>", others.join(", "))?;
        }
        if let n @ 1.. = self.past.passed.len() + self.unread.len() {
            writeln!(
                out,
                "<p class=\"of\"><a href=\"#uncounted\">{} not counted</a>, each with its reason.</p>",
                count(n, "entry").replace("entrys", "entries") + if n == 1 { " is" } else { " are" }
            )?;
        }
        Ok(())
    }

    fn contents(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "<nav aria-label=\"sections\">\n<ul class=\"contents\">")?;
        for (id, title) in [
            ("grid", "Nodes over time"),
            ("trends", "Trends"),
            ("certificates", "Certificates"),
            ("runs", "All runs"),
        ] {
            writeln!(out, "<li><a href=\"#{id}\">{title}</a></li>")?;
        }
        writeln!(out, "</ul>\n</nav>")
    }

    /// What is not counted, with the reason.
    fn uncounted(&self, out: &mut dyn Write) -> io::Result<()> {
        let runs = not_counted(self.past);
        let lines: Vec<&str> = runs.lines().map(|line| line.trim_start_matches("not counted: ")).collect();
        let all: Vec<&str> = lines.into_iter().chain(self.unread.iter().map(String::as_str)).collect();
        if all.is_empty() {
            return Ok(());
        }
        writeln!(out, "<section class=\"card\" id=\"uncounted\">\n<h2>Not counted</h2>\n<ul>")?;
        for line in all.iter().take(MOST_UNCOUNTED) {
            writeln!(out, "<li>{}</li>", escaped(&shorten(&show(line), LONGEST_LINE)))?;
        }
        writeln!(out, "</ul>")?;
        if let more @ 1.. = all.len().saturating_sub(MOST_UNCOUNTED) {
            writeln!(
                out,
                "<p class=\"drawn\">{}: <code>harness site</code> prints all.</p>",
                count(more, "more line")
            )?;
        }
        writeln!(out, "</section>")
    }
}
