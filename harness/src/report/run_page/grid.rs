//! The grid of nodes by cases: in each cell the worst verdict of a node in a case, its own or of a job that it shared.

use super::Context;
use super::marks::{BY_WEIGHT, mark};
use super::node_cells::{Cell, meaning, node_cells, sign};
use base::nodeset;
use base::text::count;
use model::artefact::Status;
use recipes::result_table::escaped;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Nodes with a row each; of more, those with the same results share one.
const MOST_ROWS: usize = 64;
/// Rows of nodes that differ.
const MOST_GROUPS: usize = 512;

/// Nodes whose cells are the same.
struct Row {
    nodes: Vec<String>,
    cells: Vec<Cell>,
}

pub(super) fn section(context: &Context, out: &mut dyn Write) -> io::Result<()> {
    let plan = context.report.plan;
    let rows = rows(context);
    writeln!(out, "<section class=\"card\" id=\"grid\">\n<h2>Nodes and cases</h2>")?;
    if rows.is_empty() || plan.cases.is_empty() {
        return writeln!(out, "<p>No node took part in a case.</p>\n</section>");
    }
    let folded = if plan.nodes.len() > MOST_ROWS { " Nodes with the same results share a row." } else { "" };
    writeln!(
        out,
        "<p class=\"of\">The worst verdict of each node in each case; the worst nodes first.{folded}</p>"
    )?;
    legend(&rows, out)?;
    write!(
        out,
        "<div class=\"scroller map\" tabindex=\"0\" role=\"group\" aria-label=\"grid of nodes by cases: move with the arrow keys\" data-map=\"grid-readout\" data-n=\"not run\""
    )?;
    for status in BY_WEIGHT {
        let class = mark(status).class;
        write!(out, " data-{class}=\"{0}\" data-s{class}=\"{0} of a job that it shared\"", status.name())?;
    }
    write!(out, ">\n<table>\n<thead><tr><th scope=\"col\">node</th>")?;
    for (at, case) in plan.cases.iter().enumerate() {
        write!(
            out,
            "<th scope=\"col\" class=\"up\"><a href=\"#case-{at}\">{}</a></th>",
            escaped(&case.name)
        )?;
    }
    writeln!(out, "</tr></thead>\n<tbody>")?;
    for row in rows.iter().take(MOST_GROUPS) {
        let many = if row.nodes.len() > 1 { format!(" ({})", row.nodes.len()) } else { String::new() };
        write!(out, "<tr><th scope=\"row\">{}{many}</th>", escaped(&nodeset::fold(&row.nodes)))?;
        for cell in &row.cells {
            let (class, letter) = sign(*cell);
            write!(out, "<td class=\"{class}\">{letter}")?;
        }
        writeln!(out)?;
    }
    writeln!(out, "</tbody>\n</table>\n</div>")?;
    writeln!(
        out,
        "<p class=\"readout\" id=\"grid-readout\" role=\"status\">Arrow keys move from cell to cell, Enter goes to the \
         case.</p>"
    )?;
    if let more @ 1.. = rows.len().saturating_sub(MOST_GROUPS) {
        writeln!(out, "<p class=\"drawn\">{} not shown.</p>", count(more, "more row"))?;
    }
    writeln!(out, "</section>")
}

/// The signs that the grid has.
fn legend(rows: &[Row], out: &mut dyn Write) -> io::Result<()> {
    let mut cells: Vec<Cell> = rows.iter().flat_map(|row| &row.cells).copied().collect();
    cells.sort();
    cells.dedup();
    writeln!(out, "<p class=\"legend map\">")?;
    let (mut own, mut known) = (Vec::new(), Vec::new());
    for cell in &cells {
        let (class, letter) = sign(*cell);
        let words = meaning(*cell);
        if !known.contains(&words) {
            own.push((class, letter, words.clone()));
            known.push(words);
        }
    }
    for (class, letter, words) in own {
        writeln!(out, "<span class=\"key\"><span class=\"sign {class}\">{letter}</span> {words}</span>")?;
    }
    writeln!(out, "</p>")
}

/// The worst rows first; of equals, in the order of the plan.
fn rows(context: &Context) -> Vec<Row> {
    let plan = context.report.plan;
    let cells = node_cells(plan, context.report.cases);
    let mut rows: Vec<Row> = Vec::new();
    let mut known: BTreeMap<Vec<Cell>, usize> = BTreeMap::new();
    for (node, cells) in plan.nodes.iter().zip(cells) {
        match known.get(&cells).filter(|_| plan.nodes.len() > MOST_ROWS) {
            Some(at) => rows[*at].nodes.push(node.clone()),
            None => {
                known.insert(cells.clone(), rows.len());
                rows.push(Row { nodes: vec![node.clone()], cells });
            }
        }
    }
    rows.sort_by_cached_key(|row| std::cmp::Reverse(badness(row)));
    rows
}

/// How many cells are red by the node's own numbers, and how many by jobs that it shared.
fn badness(row: &Row) -> (usize, usize) {
    let is_red = |cell: &&Cell| BY_WEIGHT.get(cell.weight).is_some_and(|status: &Status| status.is_red());
    let red = || row.cells.iter().filter(is_red);
    (red().filter(|cell| !cell.is_shared).count(), red().filter(|cell| cell.is_shared).count())
}
