//! Nodes by runs over time. The newest runs have a column each, older ones share columns, and nodes of a large fleet with
//! the same results share a row: the map stays small however many runs there are.

use super::node_status::{NodeStatus, node_statuses};
use super::page::SitePage;
use base::nodeset;
use base::text::{count, show};
use recipes::result_table::escaped;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::ops::Range;

/// Columns of the map; half of them are of one run each where there are more runs.
pub(super) const MOST_COLUMNS: usize = 240;
/// Nodes with a row each; of more, those with the same results share one.
const MOST_ROWS: usize = 64;
/// Rows of nodes that differ.
const MOST_GROUPS: usize = 256;
/// How many of the newest columns decide first which row is the worst.
const LATELY: usize = 10;

/// Nodes of one inventory that share a row.
struct Group<'a> {
    inventory: &'a str,
    nodes: Vec<&'a str>,
    cells: Vec<NodeStatus>,
}

struct Row {
    label: String,
    cells: Vec<NodeStatus>,
}

pub(super) fn section(page: &SitePage, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<section class=\"card\" id=\"grid\">\n<h2>Nodes over time</h2>")?;
    let columns = columns(page.past.runs.len());
    let (rows, is_folded) = rows(page, &columns);
    if rows.is_empty() {
        return writeln!(out, "<p>No node took part in a run.</p>\n</section>");
    }
    let shared = columns.iter().map(Range::len).max().unwrap_or(1);
    let older = match shared {
        0 | 1 => String::new(),
        most => format!(
            " Of {} runs the newest {} have a column each; older columns are up to {most} runs with the worst of each node.",
            page.past.runs.len(),
            columns.iter().filter(|runs| runs.len() == 1).count()
        ),
    };
    let folded = if is_folded { " Nodes with the same results in all of them share a row." } else { "" };
    writeln!(
        out,
        "<p class=\"of\">The worst verdict of each node in each run, the newest run first; the worst nodes first.{older}{folded}</p>"
    )?;
    let signs: BTreeSet<NodeStatus> = rows.iter().flat_map(|row| &row.cells).copied().collect();
    legend(&signs, out)?;
    write!(
        out,
        "<div class=\"scroller map\" tabindex=\"0\" role=\"group\" aria-label=\"nodes by runs: move with the arrow keys\" data-map=\"grid-readout\""
    )?;
    for sign in &signs {
        write!(out, " data-{}=\"{}\"", sign.sign().0, sign.meaning())?;
    }
    write!(out, ">\n<table>\n<thead><tr><th scope=\"col\">node</th>")?;
    for runs in &columns {
        write!(out, "<th scope=\"col\" class=\"up\"><span>{}</span></th>", heading(page, runs))?;
    }
    writeln!(out, "</tr></thead>\n<tbody>")?;
    for row in rows.iter().take(MOST_GROUPS) {
        write!(out, "<tr><th scope=\"row\">{}</th>", escaped(&row.label))?;
        for status in &row.cells {
            let (class, letter) = status.sign();
            write!(out, "<td class={class}>{letter}")?;
        }
        writeln!(out)?;
    }
    writeln!(out, "</tbody>\n</table>\n</div>")?;
    writeln!(
        out,
        "<p class=\"readout\" id=\"grid-readout\" role=\"status\">Arrow keys move from cell to cell, Enter goes to the run.</p>"
    )?;
    if rows.len() > MOST_GROUPS {
        let more = &rows[MOST_GROUPS..];
        let red = more.iter().filter(|row| row.cells.iter().any(|status| status.is_red())).count();
        writeln!(
            out,
            "<p class=\"drawn\">{} not shown, {red} of them with something red.</p>",
            count(more.len(), "more row")
        )?;
    }
    writeln!(out, "</section>")
}

/// The runs of each column, the newest first.
pub(super) fn columns(runs: usize) -> Vec<Range<usize>> {
    let alone = if runs <= MOST_COLUMNS { runs } else { MOST_COLUMNS / 2 };
    let older = runs - alone;
    let together = older.div_ceil(MOST_COLUMNS - MOST_COLUMNS / 2).max(1);
    let single = (older..runs).rev().map(|run| run..run + 1);
    let shared = (0..older.div_ceil(together)).map(|nth| {
        let end = older - nth * together;
        end.saturating_sub(together)..end
    });
    single.chain(shared).collect()
}

/// When it was, which leads to the run; of several, when the last of them was.
fn heading(page: &SitePage, runs: &Range<usize>) -> String {
    let made = |run: usize| page.past.runs.get(run).map(|run| run.made.as_str()).unwrap_or_default();
    let last = made(runs.end - 1);
    match runs.len() {
        1 => page.link(runs.start, last),
        n => escaped(&format!("{n} runs to {last}")),
    }
}

fn legend(signs: &BTreeSet<NodeStatus>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<p class=\"legend map\">")?;
    let mut known = BTreeSet::new();
    for status in signs {
        let ((class, letter), words) = (status.sign(), status.meaning());
        if known.insert(words.clone()) {
            writeln!(out, "<span class=\"key\"><span class=\"sign {class}\">{letter}</span> {words}</span>")?;
        }
    }
    writeln!(out, "</p>")
}

/// The worst of late first, and whether nodes share rows. Equal names of two inventories are other nodes.
fn rows(page: &SitePage, columns: &[Range<usize>]) -> (Vec<Row>, bool) {
    let mut cells: BTreeMap<(&str, &str), Vec<NodeStatus>> = BTreeMap::new();
    for (column, runs) in columns.iter().enumerate() {
        for run in page.past.runs.get(runs.clone()).into_iter().flatten() {
            for (node, status) in node_statuses(run) {
                let key = (run.plan().inventory.as_str(), node);
                let row = cells.entry(key).or_insert_with(|| vec![NodeStatus::ABSENT; columns.len()]);
                row[column] = row[column].min(status);
            }
        }
    }
    let is_folded = cells.len() > MOST_ROWS;
    let inventories: BTreeSet<&str> = cells.keys().map(|(inventory, _)| *inventory).collect();
    let mut groups: Vec<Group> = Vec::new();
    let mut known: BTreeMap<(&str, Vec<NodeStatus>), usize> = BTreeMap::new();
    for ((inventory, node), cells) in cells {
        match known.get(&(inventory, cells.clone())).filter(|_| is_folded) {
            Some(at) => groups[*at].nodes.push(node),
            None => {
                known.insert((inventory, cells.clone()), groups.len());
                groups.push(Group { inventory, nodes: vec![node], cells });
            }
        }
    }
    groups.sort_by(|a, b| {
        let first = |group: &Group| group.nodes.first().copied().unwrap_or_default().to_owned();
        (Reverse(badness(&a.cells)), a.inventory)
            .cmp(&(Reverse(badness(&b.cells)), b.inventory))
            .then_with(|| nodeset::compare(&first(a), &first(b)))
    });
    let label = |inventory: &str, nodes: &[&str]| {
        let of = if inventories.len() > 1 { format!("{}: ", show(inventory)) } else { String::new() };
        let many = if nodes.len() > 1 { format!(" ({})", nodes.len()) } else { String::new() };
        format!("{of}{}{many}", nodeset::fold(nodes))
    };
    let rows = groups
        .into_iter()
        .map(|group| Row { label: label(group.inventory, &group.nodes), cells: group.cells })
        .collect();
    (rows, is_folded)
}

/// Red cells of late, then in all: by the node's own numbers, then by jobs that it shared.
fn badness(cells: &[NodeStatus]) -> [usize; 4] {
    let own = |cells: &[NodeStatus]| cells.iter().filter(|status| status.is_own_red()).count();
    let red = |cells: &[NodeStatus]| cells.iter().filter(|status| status.is_red()).count();
    let lately = &cells[..cells.len().min(LATELY)];
    [own(lately), own(cells), red(lately), red(cells)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_has_a_column_and_the_newest_have_one_each() {
        assert!(columns(0).is_empty());
        assert_eq!(columns(3), [2..3, 1..2, 0..1]);
        for runs in [1, 239, 240, 241, 360, 361, 1_000, 100_000] {
            let columns = columns(runs);
            assert!(columns.len() <= MOST_COLUMNS, "{runs}: {}", columns.len());
            let mut end = runs;
            for column in &columns {
                assert_eq!(column.end, end, "{runs}");
                assert!(column.start < column.end, "{runs}: {column:?}");
                end = column.start;
            }
            assert_eq!(end, 0, "{runs}");
            let alone = columns.iter().take_while(|column| column.len() == 1).count();
            assert!(alone >= runs.min(MOST_COLUMNS / 2), "{runs}: {alone}");
        }
    }
}
