//! The judged numbers by case: value, bound, baseline and verdict. What is red has a row each; what passed is folded
//! where the run is large, and the page says so.

use super::marks::word;
use super::{Context, past};
use crate::page::with_code;
use crate::report::culprit_line::subject as culprit_of;
use crate::report::text::{own_name, subject};
use base::text::{count, duration, shorten, show, thousands};
use metric::unit::Unit;
use model::artefact::{CaseVerdict, PlannedAssertion, PlannedBaseline, PlannedCase, Status, Verdict};
use recipes::result_table::escaped;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Rows of the whole page: about a third of a kilobyte each.
const MOST_ROWS: usize = 2_000;
/// Red rows of one case.
const MOST_RED: usize = 100;
/// Cases that are open when the page is opened.
const MOST_OPEN: usize = 3;
/// Letters of a message.
const MOST_MESSAGE: usize = 400;

pub(super) fn section(context: &Context, out: &mut dyn Write) -> io::Result<()> {
    let report = context.report;
    let all: usize = report.cases.iter().map(|case| case.verdicts.len()).sum();
    let is_whole = all <= MOST_ROWS;
    writeln!(out, "<section id=\"numbers\">\n<h2>Numbers</h2>")?;
    let folded = match is_whole {
        true => String::new(),
        false => " Numbers that passed are folded by what was measured; each of them is in <code>verdict.json</code> of its \
                  case."
            .to_owned(),
    };
    writeln!(
        out,
        "<p class=\"of\">{} assertions in {}.{folded}{}</p>",
        thousands(all),
        count(report.cases.len(), "case"),
        escaped(&history(context))
    )?;
    writeln!(
        out,
        "<p class=\"tools\"><button type=\"button\" data-every hidden>Open or close all cases</button></p>"
    )?;
    let (mut opened, mut rows) = (0, MOST_ROWS);
    for (at, planned) in report.plan.cases.iter().enumerate() {
        let Some(case) = report.cases.iter().find(|case| case.case == planned.name) else {
            writeln!(
                out,
                "<p class=\"card case\" id=\"case-{at}\"><span class=\"badge s-none\">not run</span> <strong>{}</strong> was not \
                 judged.</p>",
                escaped(&planned.name)
            )?;
            continue;
        };
        // What names a part is what a person opens first.
        let names_part = case.verdicts.iter().any(|one| one.part.is_some() && one.status == Status::Fail);
        let is_open = names_part && opened < MOST_OPEN;
        opened += usize::from(is_open);
        case_section(context, at, planned, case, (is_open, is_whole, &mut rows), out)?;
    }
    writeln!(out, "</section>")
}

/// What the column of earlier numbers is of.
fn history(context: &Context) -> String {
    let Some(before) = context.report.context.before else { return String::new() };
    let kind = match context.report.summary.simulated {
        true => "simulated",
        false => "real",
    };
    match (before.runs, before.is_cut) {
        (0, _) => String::new(),
        (n, false) => format!(
            " History: {} of the same suites and inventory, the newest on the right, this one the dot.",
            count(n, &format!("{kind} run"))
        ),
        (n, true) => format!(
            " History: the last {} of the same suites and inventory, the newest on the right, this one the dot; older \
             ones were not read.",
            count(n, &format!("{kind} run"))
        ),
    }
}

fn earlier<'a>(context: &Context<'a>, verdict: &Verdict) -> &'a [f64] {
    let numbers = context.report.context.before.and_then(|before| before.numbers.get(&verdict.name));
    numbers.map(Vec::as_slice).unwrap_or_default()
}

fn case_section(
    context: &Context,
    at: usize,
    planned: &PlannedCase,
    case: &CaseVerdict,
    (is_open, is_whole, rows): (bool, bool, &mut usize),
    out: &mut dyn Write,
) -> io::Result<()> {
    let open = if is_open { " open" } else { "" };
    let worst =
        case.verdicts.iter().map(|verdict| verdict.status).min_by_key(|one| super::marks::weight(*one));
    writeln!(
        out,
        "<details class=\"card case\" id=\"case-{at}\"{open}>\n<summary>{} <strong>{}</strong> <span class=\"of\">{}, {}</span></summary>",
        worst.map(word).unwrap_or_default(),
        escaped(&case.case),
        counts(case),
        duration(case.seconds)
    )?;
    if !planned.about.is_empty() {
        writeln!(out, "<p>{}</p>", with_code(&planned.about))?;
    }
    let assertions: BTreeMap<&str, &PlannedAssertion> =
        planned.assertions.iter().map(|one| (one.name.as_str(), one)).collect();
    let (red, rest): (Vec<&Verdict>, Vec<&Verdict>) =
        case.verdicts.iter().partition(|one| one.status.is_red());
    let shown = red.len().min(MOST_RED).min(*rows);
    *rows -= shown;
    let measured: Vec<&Verdict> = rest.iter().filter(|one| one.observed.is_some()).copied().collect();
    let listed: &[&Verdict] = if is_whole { &measured } else { &[] };
    if shown + listed.len() > 0 {
        head(&["assertion", "value", "", "bound", "baseline", "history", "verdict"], out)?;
        for verdict in red[..shown].iter().chain(listed) {
            row(context, case, verdict, assertions.get(verdict.name.as_str()).copied(), out)?;
        }
        writeln!(out, "</tbody>\n</table>\n</div>")?;
    }
    if let more @ 1.. = red.len() - shown {
        let file = format!("cases/{}/verdict.json", case.case);
        writeln!(
            out,
            "<p class=\"drawn\">{} in {}.</p>",
            count(more, "more red assertion"),
            context.link(&file, &file)
        )?;
    }
    if !is_whole {
        folded(context, case, &measured, out)?;
    }
    let unmeasured = rest.len() - measured.len();
    if unmeasured > 0 {
        writeln!(
            out,
            "<p class=\"drawn\">{} without a number: see <a href=\"#unmeasured\">what was not measured</a>.</p>",
            count(unmeasured, "more assertion")
        )?;
    }
    writeln!(out, "</details>")
}

fn head(columns: &[&str], out: &mut dyn Write) -> io::Result<()> {
    write!(out, "<div class=\"scroller numbers\">\n<table>\n<thead><tr>")?;
    for column in columns {
        write!(out, "<th scope=\"col\" class=\"text\">{column}</th>")?;
    }
    writeln!(out, "</tr></thead>\n<tbody>")
}

fn counts(case: &CaseVerdict) -> String {
    let of = |status: Status| case.verdicts.iter().filter(|one| one.status == status).count();
    let parts = super::marks::BY_WEIGHT.map(|status| (of(status), status.name()));
    parts
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, name)| format!("{} {name}", thousands(*n)))
        .collect::<Vec<_>>()
        .join(", ")
}

fn row(
    context: &Context,
    case: &CaseVerdict,
    verdict: &Verdict,
    planned: Option<&PlannedAssertion>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let name = own_name(&verdict.name, &case.suite, &case.case);
    let value = verdict.observed.map_or_else(
        || verdict.cause.clone().unwrap_or_else(|| "not measured".to_owned()),
        |observed| verdict.unit.show(observed),
    );
    let baseline = planned.and_then(|one| one.bound.baseline.as_ref());
    let provisional = if verdict.provisional { " provisional" } else { "" };
    write!(
        out,
        "<tr><td>{}<td class=\"number\">{}<td>{}<td>{}<td>{}<td>{}<td>{}{provisional}",
        escaped(&show(name)),
        escaped(&value),
        bar(verdict, baseline),
        escaped(bound(verdict, "").trim_start()),
        escaped(&baseline.map(|one| in_words(one, verdict.unit)).unwrap_or_default()),
        past::cell(earlier(context, verdict), verdict.observed, verdict.unit),
        word(verdict.status)
    )?;
    if verdict.status.is_red() {
        write!(out, "<p>{}</p>", escaped(&shorten(&show(&verdict.message), MOST_MESSAGE)))?;
        if let Some(culprit) = context.explanations.culprit_of(verdict) {
            write!(out, "<p class=\"why\">explained by {}</p>", escaped(&culprit_of(culprit)))?;
        }
        if let Some(next) = &verdict.next {
            write!(out, "<p class=\"why\">next: {}</p>", with_code(&shorten(&show(next), MOST_MESSAGE)))?;
        }
        for evidence in verdict.evidence.iter().take(4) {
            let line = evidence.line.map(|line| format!(":{line}")).unwrap_or_default();
            let name = evidence.file.strip_prefix("cases/").unwrap_or(&evidence.file);
            write!(out, "<p>{}{line}</p>", context.link(&evidence.file, name))?;
        }
    }
    writeln!(out)
}

/// What passed in a large run: one row for each thing that was measured, with the number that is nearest to its bound.
fn folded(
    context: &Context,
    case: &CaseVerdict,
    measured: &[&Verdict],
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut groups: BTreeMap<(Status, &str), Vec<&Verdict>> = BTreeMap::new();
    for verdict in measured {
        let name = own_name(&verdict.name, &case.suite, &case.case);
        let label = name.rsplit_once('@').map_or(name, |(label, _)| label);
        groups.entry((verdict.status, label)).or_default().push(verdict);
    }
    if groups.is_empty() {
        return Ok(());
    }
    head(&["what", "numbers", "least to most", "nearest to its bound", "", "its history", "verdict"], out)?;
    for ((status, label), verdicts) in groups {
        let observed = || verdicts.iter().filter_map(|one| one.observed);
        let (least, most) =
            (observed().fold(f64::INFINITY, f64::min), observed().fold(f64::NEG_INFINITY, f64::max));
        let unit = verdicts[0].unit;
        let range = if least == most {
            unit.show(least)
        } else {
            format!("{} to {}", unit.show(least), unit.show(most))
        };
        let nearest =
            verdicts.iter().min_by(|a, b| margin(a).total_cmp(&margin(b))).copied().unwrap_or(verdicts[0]);
        writeln!(
            out,
            "<tr><td>{}<td class=\"number\">{}<td>{}<td>{} on {}{}<td>{}<td>{}<td>{}",
            escaped(&show(label)),
            thousands(verdicts.len()),
            escaped(&range),
            escaped(&nearest.observed.map(|one| nearest.unit.show(one)).unwrap_or_default()),
            escaped(&subject(nearest)),
            escaped(&bound(nearest, ", ")),
            bar(nearest, None),
            past::cell(earlier(context, nearest), nearest.observed, nearest.unit),
            word(status)
        )?;
    }
    writeln!(out, "</tbody>\n</table>\n</div>")
}

/// How far from its nearest bound a number lies, as a fraction of the bound.
fn margin(verdict: &Verdict) -> f64 {
    let Some(observed) = verdict.observed else { return f64::INFINITY };
    let from = |bound: Option<f64>, sign: f64| {
        bound.map_or(f64::INFINITY, |bound| sign * (observed - bound) / bound.abs().max(f64::MIN_POSITIVE))
    };
    from(verdict.lower, 1.0).min(from(verdict.upper, -1.0))
}

/// Such as `, at least 11.00 GB/s`; nothing where no bound was applied.
pub(super) fn bound(verdict: &Verdict, before: &str) -> String {
    let show = |value: f64| verdict.unit.show(value);
    match (verdict.lower, verdict.upper) {
        (Some(lower), Some(upper)) if lower == upper => format!("{before}exactly {}", show(lower)),
        (Some(lower), Some(upper)) => format!("{before}{} to {}", show(lower), show(upper)),
        (Some(lower), None) => format!("{before}at least {}", show(lower)),
        (None, Some(upper)) => format!("{before}at most {}", show(upper)),
        (None, None) => String::new(),
    }
}

/// The median of the baseline, how many samples made it, and what it is worth.
fn in_words(baseline: &PlannedBaseline, unit: Unit) -> String {
    let (numbers, state) = match baseline {
        PlannedBaseline::None { .. } => return "none".to_owned(),
        PlannedBaseline::Accepted(numbers) => (numbers, ""),
        PlannedBaseline::Provisional(numbers) => (numbers, ", provisional"),
        PlannedBaseline::Expired(numbers) => (numbers, ", expired"),
    };
    match numbers.predicted {
        Some(half_width) => format!("{:.0} +- {half_width:.0} {} (predicted)", numbers.median, unit.name()),
        None => format!("{} (n = {}{state})", unit.show(numbers.median), numbers.n),
    }
}

/// The number as a bar, its bounds as lines, and the median of the baseline as a dashed one.
fn bar(verdict: &Verdict, baseline: Option<&PlannedBaseline>) -> String {
    let median = match baseline {
        Some(
            PlannedBaseline::Accepted(numbers)
            | PlannedBaseline::Provisional(numbers)
            | PlannedBaseline::Expired(numbers),
        ) => Some(numbers.median),
        _ => None,
    };
    let Some(observed) = verdict.observed else { return String::new() };
    let all = [Some(observed), verdict.lower, verdict.upper, median];
    let is_drawn = all.iter().flatten().all(|value| value.is_finite() && *value >= 0.0);
    let most = all.iter().flatten().fold(0.0, |most: f64, value| most.max(*value)) * 1.05;
    if !is_drawn || most <= 0.0 || (verdict.lower.is_none() && verdict.upper.is_none()) {
        return String::new();
    }
    let place = |value: f64| (value / most * 100.0).round();
    let class = if verdict.status.is_red() { "f" } else { "v" };
    let mut text = format!(
        "<svg class=\"bar\" viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect class=\"{class}\" width=\"{}\" height=\"10\"/>",
        place(observed)
    );
    for (value, class) in [(verdict.lower, "b"), (verdict.upper, "b"), (median, "m")] {
        if let Some(value) = value {
            text.push_str(&format!("<path class=\"{class}\" d=\"M{} 0v10\"/>", place(value)));
        }
    }
    text + "</svg>"
}
