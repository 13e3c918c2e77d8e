//! The heat map of every NIC and GPU that was judged by itself: the worst of its numbers as a part of its limit.

use super::Context;
use super::marks::weight;
use base::nodeset;
use base::text::count;
use metric::unit::Unit;
use model::artefact::{Status, Verdict};
use recipes::result_table::escaped;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

/// Cells of which each has its exact number in words; of more, only those that are red.
const MOST_IN_WORDS: usize = 4_096;
/// Parts of a node: more are no part of a machine that exists.
const MOST_PARTS: usize = 96;

/// The worst number of a part.
struct PartNumber<'a> {
    verdict: &'a Verdict,
    case: &'a str,
    /// Of the part itself, where the verdict is about all NICs of a node.
    status: Status,
    observed: Option<f64>,
    /// 1 is the limit itself, less is out of bounds; `None` where a fraction says nothing.
    share: Option<f64>,
}

pub(super) fn section(context: &Context, out: &mut dyn Write) -> io::Result<()> {
    let plan = context.report.plan;
    let numbers = numbers(context);
    writeln!(out, "<section class=\"card\" id=\"parts\">\n<h2>NICs and GPUs</h2>")?;
    if numbers.is_empty() {
        return writeln!(out, "<p>No NIC and no GPU was judged by itself in this run.</p>\n</section>");
    }
    let measured: BTreeSet<&str> = numbers.keys().map(|(_, part)| *part).collect();
    let mut columns: Vec<String> = Vec::new();
    let gpus: Vec<String> = (0..plan.instance.gpus.min(64)).map(|gpu| format!("gpu{gpu}")).collect();
    // All of a kind, or none of it: a part that lacks a number beside its peers is seen.
    for kind in [&gpus, &plan.instance.nics] {
        if kind.iter().any(|part| measured.contains(part.as_str())) {
            columns.extend(kind.iter().cloned());
        }
    }
    let mut other: Vec<String> = measured
        .iter()
        .filter(|part| !columns.iter().any(|known| known == *part))
        .map(|part| (*part).to_owned())
        .collect();
    nodeset::sort(&mut other);
    columns.extend(other);
    columns.truncate(MOST_PARTS);
    let is_whole = columns.len() * plan.nodes.len() <= MOST_IN_WORDS;
    writeln!(
        out,
        "<p class=\"of\">The worst rate or time of each part, in percent of its limit: 100 is the limit itself, less is \
         out of bounds, more is better. Anything else that is red comes before it. What was not measured is hatched.</p>"
    )?;
    writeln!(
        out,
        "<p class=\"legend map\"><span class=\"key\"><span class=\"sign f\">40</span> out of bounds</span> <span \
         class=\"key\"><span class=\"sign h0\">100</span> <span class=\"sign h1\">105</span> <span class=\"sign \
         h2\">115</span> <span class=\"sign h3\">130</span> within</span> <span class=\"key\"><span class=\"sign \
         n\">&nbsp;</span> not measured</span></p>"
    )?;
    writeln!(
        out,
        "<div class=\"scroller map\" tabindex=\"0\" role=\"group\" aria-label=\"map of NICs and GPUs: move with the arrow \
         keys\" data-map=\"parts-readout\" data-n=\"not measured\">\n<table>\n<thead><tr><th scope=\"col\">node</th>"
    )?;
    for part in &columns {
        write!(out, "<th scope=\"col\" class=\"up\"><span>{}</span></th>", escaped(part))?;
    }
    writeln!(out, "</tr></thead>\n<tbody>")?;
    let bad_nodes: BTreeSet<&str> =
        numbers.iter().filter(|(_, number)| number.status.is_red()).map(|((node, _), _)| *node).collect();
    let (bad, good): (Vec<&String>, Vec<&String>) =
        plan.nodes.iter().partition(|node| bad_nodes.contains(node.as_str()));
    for node in bad.into_iter().chain(good) {
        write!(out, "<tr><th scope=\"row\">{}</th>", escaped(node))?;
        for part in &columns {
            match numbers.get(&(node.as_str(), part.as_str())) {
                Some(number) => cell(number, is_whole, out)?,
                None => write!(out, "<td class=n>")?,
            }
        }
        writeln!(out)?;
    }
    writeln!(out, "</tbody>\n</table>\n</div>")?;
    writeln!(
        out,
        "<p class=\"readout\" id=\"parts-readout\" role=\"status\">Point at a cell, or move with the arrow keys.</p>"
    )?;
    if !is_whole {
        writeln!(
            out,
            "<p class=\"drawn\">Only red cells say their number; those of all {} are in the case's verdict.json.</p>",
            count(numbers.len(), "part")
        )?;
    }
    writeln!(out, "</section>")
}

fn cell(number: &PartNumber, is_whole: bool, out: &mut dyn Write) -> io::Result<()> {
    let percent = number.share.map(|share| (share * 100.0).floor().min(999.0));
    let class = match (number.status, percent) {
        (Status::Fail | Status::UnexpectedPass, _) => "f",
        (Status::Error | Status::Inconclusive, _) => "i",
        (_, Some(percent)) if percent >= 130.0 => "h3",
        (_, Some(percent)) if percent >= 115.0 => "h2",
        (_, Some(percent)) if percent >= 105.0 => "h1",
        (Status::Pass | Status::ExpectedFailure, _) => "h0",
        _ => "n",
    };
    let letter = super::marks::mark(number.status).letter;
    let text = percent
        .filter(|_| class != "n" && class != "i")
        .map_or_else(|| letter.to_owned(), |percent| percent.to_string());
    if is_whole || number.status.is_red() {
        let words = format!("{}: {}", number.case, in_words(number));
        write!(out, "<td class={class} title=\"{}\">{text}", escaped(&words))
    } else {
        write!(out, "<td class={class}>{text}")
    }
}

/// The number, its limit, and what it is a number of.
fn in_words(number: &PartNumber) -> String {
    let verdict = number.verdict;
    let observed = match number.observed {
        Some(observed) => verdict.unit.show(observed),
        None => return format!("{} {}", verdict.metric, verdict.cause.as_deref().unwrap_or("not measured")),
    };
    format!("{} {observed}{}", verdict.metric, super::numbers::bound(verdict, ", "))
}

/// By node and part.
fn numbers<'a>(context: &Context<'a>) -> BTreeMap<(&'a str, &'a str), PartNumber<'a>> {
    let mut numbers: BTreeMap<(&str, &str), PartNumber> = BTreeMap::new();
    let mut add = |node: &'a str, part: &'a str, fresh: PartNumber<'a>| {
        let known = numbers.get(&(node, part));
        if known.is_none_or(|known| is_worse(&fresh, known)) {
            numbers.insert((node, part), fresh);
        }
    };
    for case in context.report.cases {
        for verdict in &case.verdicts {
            let Some(node) = &verdict.node else { continue };
            let number = |observed: Option<f64>| {
                let share = share(verdict, observed);
                // The node's verdict is that of its worst NIC: the others are within the same bounds.
                let is_within = share.is_some_and(|share| share >= 1.0) && verdict.part.is_none();
                let status = if is_within { Status::Pass } else { verdict.status };
                PartNumber { verdict, case: &case.case, status, observed, share }
            };
            match &verdict.part {
                Some(part) if part != "node" => add(node, part, number(verdict.observed)),
                _ => verdict.nics.iter().for_each(|(nic, rate)| add(node, nic, number(Some(*rate)))),
            }
        }
    }
    numbers
}

/// What is red first; then rates and times, which say how good a part is, before counts and ratios.
fn is_worse(fresh: &PartNumber, known: &PartNumber) -> bool {
    let key = |number: &PartNumber| {
        let unit = number.verdict.unit;
        let red = if number.status.is_red() { weight(number.status) } else { usize::MAX };
        (red, !unit.varies() || unit == Unit::Ratio)
    };
    let share = |number: &PartNumber| number.share.unwrap_or(f64::INFINITY);
    key(fresh).cmp(&key(known)).then(share(fresh).total_cmp(&share(known))).is_lt()
}

/// How far a number is within its bounds: of a lower bound the number by the bound, of an upper one the other way round.
fn share(verdict: &Verdict, observed: Option<f64>) -> Option<f64> {
    let observed = observed.filter(|observed| observed.is_finite() && *observed >= 0.0)?;
    let below = verdict.lower.filter(|lower| *lower > 0.0).map(|lower| observed / lower);
    let above = verdict.upper.filter(|upper| *upper > 0.0 && observed > 0.0).map(|upper| upper / observed);
    match (below, above) {
        (Some(below), Some(above)) => Some(below.min(above)),
        (one, other) => one.or(other),
    }
}
