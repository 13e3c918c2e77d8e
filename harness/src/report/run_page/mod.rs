//! `index.html`: the run as one page for people, offline, that shows the verdict and its culprits first. It computes no
//! verdict: each section shows what the artefacts hold, and says what it leaves out.

mod culprits;
mod diagnosis;
mod differences;
mod environment;
mod files;
mod grid;
pub(crate) mod live;
mod marks;
pub(crate) mod node_cells;
mod numbers;
mod parts;
mod past;
mod timeline;
mod unmeasured;
mod windows;

#[cfg(test)]
mod context_tests;
#[cfg(test)]
mod tests;

use super::explained::Explanations;
use super::last_line::{is_in_part, last_line};
use super::{Report, ReportError};
use crate::page::{address, live_foot, live_head, run_foot, run_head};
use base::redact::mask_accounts;
use base::text::{SIMULATED, count, duration, show};
use live::RunState;
use model::exit_code;
use recipes::result_table::escaped;
use serde::Serialize;
use std::io::{self, Write};
use std::path::{Component, Path};

/// The name of the page in the run's folder.
pub(crate) const NAME: &str = "index.html";

/// The page of the run's folder.
pub(super) fn run_page(report: &Report) -> Result<Vec<u8>, ReportError> {
    run_page_at(report, Some(Path::new("")))
}

/// The page where it lies elsewhere: `to_run` is the path from there to the run's folder, if the reader has that.
pub(crate) fn run_page_at(report: &Report, to_run: Option<&Path>) -> Result<Vec<u8>, ReportError> {
    render(&Context { report, explanations: Explanations::new(report), to_run, state: None })
}

/// The page of a run that goes on.
pub(crate) fn run_page_live(report: &Report, state: &RunState) -> Result<Vec<u8>, ReportError> {
    let explanations = Explanations::new(report);
    render(&Context { report, explanations, to_run: None, state: Some(state) })
}

fn render(context: &Context) -> Result<Vec<u8>, ReportError> {
    let mut text = Vec::new();
    write(context, &mut text)
        .map_err(|why| ReportError(format!("cannot make the page of the run: {why}")))?;
    Ok(mask_accounts(&String::from_utf8_lossy(&text)).into_bytes())
}

/// What every section is made from.
struct Context<'a> {
    report: &'a Report<'a>,
    explanations: Explanations<'a>,
    to_run: Option<&'a Path>,
    /// How far it is, where it goes on.
    state: Option<&'a RunState>,
}

impl Context<'_> {
    /// The link to a file of the run's folder, with its path as text; text alone where the path leads elsewhere, or the
    /// reader does not have the folder.
    fn link(&self, file: &str, text: &str) -> String {
        match self.to_run.filter(|_| is_inside(file)) {
            Some(to_run) => {
                let link = address(&to_run.join(file));
                format!("<a href=\"{}\">{}</a>", escaped(&link), escaped(text))
            }
            None => escaped(text),
        }
    }
}

/// Whether a path leads below the folder that it starts in: artefacts may come from anywhere.
fn is_inside(file: &str) -> bool {
    !file.is_empty() && Path::new(file).components().all(|part| matches!(part, Component::Normal(_)))
}

/// The description of the page for programs.
#[derive(Serialize)]
struct RunAbout {
    run: u32,
    id: String,
    /// Of a run that is over.
    exit_code: Option<i32>,
    simulated: bool,
}

fn write(context: &Context, out: &mut dyn Write) -> io::Result<()> {
    let Report { plan, summary, .. } = context.report;
    let contradiction = context.report.context.contradiction;
    let headline = match context.state {
        Some(state) => state.headline(&summary.counts),
        None => contradiction.map_or_else(|| last_line(context.report), str::to_owned),
    };
    let about = RunAbout {
        run: 1,
        id: show(&summary.run_id),
        exit_code: (context.state.is_none() && contradiction.is_none()).then_some(summary.exit_code),
        simulated: summary.simulated,
    };
    let title = format!("{headline} · {}", summary.run_id);
    match context.state {
        Some(_) => live_head(out, &title, &about)?,
        None => run_head(out, &title, &about)?,
    }
    let tone = match (summary.exit_code, context.state) {
        _ if contradiction.is_some() => "amber",
        (exit_code::FAILED, _) => "red",
        // A run that goes on has not passed.
        (exit_code::PASSED, None) if !is_in_part(context.report) => "green",
        _ => "amber",
    };
    writeln!(
        out,
        "<header>\n<div class=\"line\">\n<h1 class=\"{tone}\" id=\"verdict\">{}</h1>\n\
         <button type=\"button\" id=\"theme\">Dark</button>\n</div>",
        escaped(&headline)
    )?;
    if summary.simulated {
        writeln!(out, "<p class=\"simulated\" id=\"simulated\">{}.</p>", escaped(SIMULATED))?;
    }
    writeln!(out, "</header>\n<main>")?;
    if let Some(state) = context.state {
        state.section(context.report.cases, out)?;
    }
    culprits::section(context, out)?;
    let took = if plan.simulated { " of simulated time" } else { "" };
    let took = match context.state {
        Some(_) => String::new(),
        None => format!(", took {}{took}", duration(summary.seconds)),
    };
    writeln!(
        out,
        "<p class=\"of\">Suite {} on {} ({}, {}). Began {}{took}. Run <code>{}</code>.</p>",
        escaped(&summary.suites.join(", ")),
        escaped(&summary.nodes),
        count(plan.nodes.len(), "node"),
        escaped(&summary.instance),
        escaped(&summary.started),
        escaped(&summary.run_id)
    )?;
    contents(context, out)?;
    grid::section(context, out)?;
    windows::section(context, out)?;
    diagnosis::section(context, out)?;
    parts::section(context, out)?;
    numbers::section(context, out)?;
    unmeasured::section(context, out)?;
    timeline::section(context, out)?;
    differences::section(context, out)?;
    environment::section(context, out)?;
    files::section(context, out)?;
    writeln!(out, "</main>")?;
    match context.state {
        Some(_) => live_foot(out),
        None => run_foot(out),
    }
}

/// Where each section is.
fn contents(context: &Context, out: &mut dyn Write) -> io::Result<()> {
    let sections = [
        ("grid", "Nodes and cases"),
        ("windows", "Failing windows"),
        ("diagnosis", "What limits the work"),
        ("parts", "NICs and GPUs"),
        ("numbers", "Numbers"),
        ("unmeasured", "Not measured"),
        ("timeline", "What ran when"),
        ("differences", "Differences"),
        ("environment", "Environment"),
        ("files", "Files"),
    ];
    writeln!(out, "<nav aria-label=\"sections\">\n<ul class=\"contents\">")?;
    let is_there = |id: &str| match id {
        "diagnosis" => diagnosis::is_shown(context),
        "windows" => !context.report.traces.is_empty(),
        _ => true,
    };
    for (id, title) in sections.into_iter().filter(|(id, _)| is_there(id)) {
        writeln!(out, "<li><a href=\"#{id}\">{title}</a></li>")?;
    }
    writeln!(out, "</ul>\n</nav>")
}
