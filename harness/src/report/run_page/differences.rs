//! What differs between the nodes of the run, and between it and the comparable run before: versions, firmware, files,
//! settings, variables and nodes. It says what was not compared.

use super::Context;
use base::nodeset;
use base::text::{count, shorten, show};
use config::facts::{ChangedFact, Comparison, against_majority};
use recipes::result_table::escaped;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use verdict::fingerprint::Difference;
use verdict::history::before::{LastRun, RunsBefore};

/// Rows of each table.
const MOST_ROWS: usize = 40;
/// Letters of a cell.
const MOST_LETTERS: usize = 200;
/// Runs that could not be read and are named.
const MOST_UNREAD: usize = 3;

pub(super) fn section(context: &Context, out: &mut dyn Write) -> io::Result<()> {
    let page = context.report.context;
    writeln!(
        out,
        "<section class=\"card\" id=\"differences\">\n<h2>Differences</h2>\n<h3>Between nodes</h3>"
    )?;
    match page.probe {
        Some(probe) => between_nodes(&against_majority(probe), out)?,
        None => writeln!(
            out,
            "<p>The nodes were not probed before this run: <code>harness inventory diff</code> compares them now.</p>"
        )?,
    }
    versions(context, out)?;
    if let Some(before) = page.before {
        writeln!(out, "<h3>Since the comparable run before</h3>")?;
        match &before.last {
            Some(last) => since(last, &context.report.summary.run_id, out)?,
            None => {
                writeln!(out, "<p>No earlier run of the same suites and inventory lies beside this one.</p>")?
            }
        }
        unread(before, out)?;
    }
    writeln!(out, "</section>")
}

fn short(text: &str) -> String {
    escaped(&shorten(&show(text), MOST_LETTERS))
}

/// Rows of a table; how many are not shown stands below it.
fn table(heads: &[&str], rows: &[Vec<String>], out: &mut dyn Write) -> io::Result<()> {
    write!(out, "<div class=\"scroller numbers\">\n<table>\n<thead><tr>")?;
    for head in heads {
        write!(out, "<th scope=\"col\" class=\"text\">{head}</th>")?;
    }
    writeln!(out, "</tr></thead>\n<tbody>")?;
    for row in rows.iter().take(MOST_ROWS) {
        let cells: String = row.iter().map(|cell| format!("<td>{}", short(cell))).collect();
        writeln!(out, "<tr>{cells}")?;
    }
    writeln!(out, "</tbody>\n</table>\n</div>")?;
    match rows.len().saturating_sub(MOST_ROWS) {
        0 => Ok(()),
        more => writeln!(out, "<p class=\"drawn\">{}.</p>", count(more, "more difference")),
    }
}

fn between_nodes(compared: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    let mut nodes: BTreeMap<(&str, &str, &str), Vec<&str>> = BTreeMap::new();
    for one in &compared.differences {
        nodes.entry((&one.fact, &one.value, &one.expected)).or_default().push(&one.node);
    }
    let differing = nodes.into_iter().map(|((fact, value, expected), nodes)| {
        vec![fact.to_owned(), nodeset::fold(&nodes), value.to_owned(), expected.to_owned()]
    });
    let ties = compared.ties.iter().flat_map(|tie| {
        let row = move |(value, nodes): &(String, Vec<String>)| {
            vec![tie.fact.clone(), nodeset::fold(nodes), value.clone(), "no majority".to_owned()]
        };
        tie.values.iter().map(row)
    });
    let rows: Vec<Vec<String>> = differing.chain(ties).collect();
    match rows.is_empty() {
        true => writeln!(
            out,
            "<p>None in what {} reported before the run.</p>",
            count(compared.compared, "node")
        )?,
        false => table(&["fact", "nodes", "value", "most nodes"], &rows, out)?,
    }
    let unprobed: Vec<&String> = compared.unprobed.keys().collect();
    match unprobed.is_empty() {
        true => Ok(()),
        false => writeln!(out, "<p class=\"drawn\">Not compared: {}.</p>", short(&nodeset::fold(&unprobed))),
    }
}

/// What jobs printed otherwise than others of the run.
fn versions(context: &Context, out: &mut dyn Write) -> io::Result<()> {
    let mut all: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, versions) in context.report.cases.iter().flat_map(|case| &case.versions) {
        all.entry(name).or_default().extend(versions.iter().map(String::as_str));
    }
    for (name, versions) in all.into_iter().filter(|(_, versions)| versions.len() > 1) {
        let versions: Vec<&str> = versions.into_iter().collect();
        writeln!(
            out,
            "<p>Jobs of this run ran with {} of {}: {}.</p>",
            count(versions.len(), "version"),
            short(name),
            short(&versions.join(", "))
        )?;
    }
    Ok(())
}

fn since(last: &LastRun, run: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "<p class=\"of\">Compared with <code>{0}</code> of {1}; its numbers: <code>harness compare {0} {2}</code>.</p>",
        short(&last.id),
        short(&last.made),
        short(run)
    )?;
    let mut rows: Vec<Vec<String>> = Vec::new();
    let Difference { before, after, .. } = &last.nodes;
    if !before.is_empty() || !after.is_empty() {
        let fold = |nodes: &BTreeSet<String>| match nodes.is_empty() {
            true => String::new(),
            false => nodeset::fold(&nodes.iter().collect::<Vec<_>>()),
        };
        rows.push(vec!["nodes of one run only".to_owned(), String::new(), fold(before), fold(after)]);
    }
    rows.extend(last.software.iter().map(|one| {
        let of = |values: &BTreeSet<String>| values.iter().cloned().collect::<Vec<_>>().join(", ");
        vec![one.part.clone(), String::new(), of(&one.before), of(&one.after)]
    }));
    rows.extend(last.facts.iter().map(|ChangedFact { fact, nodes, before, after }| {
        vec![(*fact).to_owned(), nodes.clone(), before.clone(), after.clone()]
    }));
    match rows.is_empty() {
        true => writeln!(out, "<p>None: the same software, files, settings, variables and nodes.</p>")?,
        false => table(&["what", "nodes", "then", "now"], &rows, out)?,
    }
    match last.is_probed {
        true => Ok(()),
        false => writeln!(
            out,
            "<p class=\"drawn\">What nodes report of themselves was not compared: one of the runs was not probed.</p>"
        ),
    }
}

fn unread(before: &RunsBefore, out: &mut dyn Write) -> io::Result<()> {
    for (folder, why) in before.unread.iter().take(MOST_UNREAD) {
        writeln!(out, "<p class=\"drawn\">Not read: {}: {}.</p>", short(folder), short(why))?;
    }
    match before.unread.len().saturating_sub(MOST_UNREAD) {
        0 => Ok(()),
        more => writeln!(out, "<p class=\"drawn\">{} could not be read.</p>", count(more, "more run")),
    }
}
