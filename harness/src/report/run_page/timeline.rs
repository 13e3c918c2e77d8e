//! What ran when: the jobs of each case, and the nodes that they ran on, on one axis of time.

use super::Context;
use base::text::{count, duration, show, thousands};
use model::artefact::{Ended, JobRecord, PlannedCase};
use recipes::result_table::escaped;
use std::collections::BTreeMap;
use std::io::{self, Write};
use time::OffsetDateTime;
use time::format_description::well_known::Iso8601;

/// Nodes with a lane each, those of jobs that ended badly first.
const MOST_LANES: usize = 64;
/// Bars of one lane; what lies closer is one bar to the eye.
const MOST_BARS: usize = 400;
/// Of the axis.
const WIDTH: f64 = 1_000.0;

/// A job that ran.
struct Span<'a> {
    case: &'a str,
    job: &'a str,
    nodes: &'a [String],
    from: OffsetDateTime,
    to: OffsetDateTime,
    is_bad: bool,
}

pub(super) fn section(context: &Context, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<section class=\"card\" id=\"timeline\">\n<h2>What ran when</h2>")?;
    let spans = spans(context);
    let began = spans.iter().map(|span| span.from).min();
    let ended = spans.iter().map(|span| span.to).max();
    let (Some(began), Some(ended)) = (began, ended) else {
        return writeln!(out, "<p>No job of this run has a begin and an end.</p>\n</section>");
    };
    let length = (ended - began).as_seconds_f64().max(0.001);
    let axis = Axis { began, length };
    writeln!(
        out,
        "<p class=\"of\">{} {} in {}. Red bars: jobs that did not exit 0.</p>",
        thousands(spans.len()),
        if spans.len() == 1 { "job" } else { "jobs" },
        duration(length)
    )?;
    writeln!(out, "<h3>Cases</h3>\n<table class=\"gantt\">\n<tbody>")?;
    for (at, case) in context.report.plan.cases.iter().enumerate() {
        let of_case: Vec<&Span> = spans.iter().filter(|span| span.case == case.name).collect();
        if of_case.is_empty() {
            continue;
        }
        let title = format!("<a href=\"#case-{at}\">{}</a>", escaped(&case.name));
        lane(&title, &of_case, &axis, out)?;
    }
    axis.ticks(out)?;
    writeln!(out, "</tbody>\n</table>")?;
    nodes(context, &spans, &axis, out)?;
    bad_jobs(context, out)?;
    writeln!(out, "</section>")
}

/// The time that is drawn.
struct Axis {
    began: OffsetDateTime,
    length: f64,
}

impl Axis {
    fn place(&self, at: OffsetDateTime) -> f64 {
        ((at - self.began).as_seconds_f64() / self.length * WIDTH).clamp(0.0, WIDTH)
    }

    fn ticks(&self, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "<tr class=\"ticks\"><th></th><td><p class=\"axis\">")?;
        for quarter in 0..=4 {
            write!(out, "<span>{}</span>", duration((self.length * f64::from(quarter) / 4.0).round()))?;
        }
        writeln!(out, "</p></td></tr>")
    }
}

fn nodes(context: &Context, spans: &[Span], axis: &Axis, out: &mut dyn Write) -> io::Result<()> {
    let mut of_node: BTreeMap<&str, Vec<&Span>> = BTreeMap::new();
    for span in spans {
        for node in span.nodes {
            of_node.entry(node).or_default().push(span);
        }
    }
    let mut nodes: Vec<&String> =
        context.report.plan.nodes.iter().filter(|node| of_node.contains_key(node.as_str())).collect();
    let bad = |node: &str| of_node.get(node).is_some_and(|spans| spans.iter().any(|span| span.is_bad));
    let blamed: Vec<&str> =
        context.report.summary.culprits.iter().flat_map(|culprit| culprit.nodes()).collect();
    nodes.sort_by_key(|node| (!blamed.contains(&node.as_str()), !bad(node)));
    writeln!(out, "<h3>Nodes</h3>\n<table class=\"gantt\">\n<tbody>")?;
    for node in nodes.iter().take(MOST_LANES) {
        lane(&escaped(node), &of_node[node.as_str()], axis, out)?;
    }
    axis.ticks(out)?;
    writeln!(out, "</tbody>\n</table>")?;
    if let more @ 1.. = nodes.len().saturating_sub(MOST_LANES) {
        writeln!(
            out,
            "<p class=\"drawn\">{} not drawn: those that are blamed, and those of jobs that ended badly, come first.</p>",
            count(more, "more node")
        )?;
    }
    Ok(())
}

/// Bars that would lie upon each other are one.
struct Bar {
    from: f64,
    to: f64,
    jobs: usize,
    name: String,
    is_bad: bool,
}

fn lane(title: &str, spans: &[&Span], axis: &Axis, out: &mut dyn Write) -> io::Result<()> {
    let mut sorted: Vec<&&Span> = spans.iter().collect();
    sorted.sort_by_key(|span| span.from);
    let mut bars: Vec<Bar> = Vec::new();
    for span in sorted {
        let (from, to) = (axis.place(span.from), axis.place(span.to));
        match bars.last_mut() {
            // A bad job has a bar of its own.
            Some(last)
                if from < last.to - 0.05 && last.is_bad == span.is_bad
                    || bars_are_many(spans, from, last) =>
            {
                last.to = last.to.max(to);
                last.jobs += 1;
                last.is_bad |= span.is_bad;
            }
            _ => bars.push(Bar {
                from,
                to,
                jobs: 1,
                name: format!(
                    "{} {}, {}",
                    span.case,
                    span.job,
                    duration((span.to - span.from).as_seconds_f64())
                ),
                is_bad: span.is_bad,
            }),
        }
    }
    write!(
        out,
        "<tr><th scope=\"row\">{title}</th><td><svg viewBox=\"0 0 1000 14\" preserveAspectRatio=\"none\">"
    )?;
    for bar in &bars {
        let class = if bar.is_bad { " class=\"f\"" } else { "" };
        let name = match bar.jobs {
            1 => bar.name.clone(),
            jobs => format!("{}, and {} at the same time", bar.name, jobs - 1),
        };
        write!(
            out,
            "<rect x=\"{:.1}\" width=\"{:.1}\" y=\"1\" height=\"12\"{class}><title>{}</title></rect>",
            bar.from,
            (bar.to - bar.from - 0.4).max(0.8),
            escaped(&show(&name))
        )?;
    }
    writeln!(out, "</svg></td></tr>")
}

/// A lane of very many jobs is drawn as coarsely as the eye sees it.
fn bars_are_many(spans: &[&Span], from: f64, last: &Bar) -> bool {
    spans.len() > MOST_BARS && from - last.to < WIDTH / MOST_BARS as f64
}

/// Jobs that did not exit 0, with how they ended.
fn bad_jobs(context: &Context, out: &mut dyn Write) -> io::Result<()> {
    let report = context.report;
    let jobs = || report.jobs.iter().flat_map(|(case, jobs)| jobs.jobs.iter().map(move |job| (case, job)));
    let bad: Vec<_> = jobs().filter(|(_, job)| is_bad(&job.end)).collect();
    if bad.is_empty() {
        return Ok(());
    }
    writeln!(out, "<details>\n<summary>{} did not exit 0</summary>\n<ul>", count(bad.len(), "job"))?;
    for (case, job) in bad.iter().take(MOST_LANES) {
        let how = base::text::shorten(&show(&in_words(&job.end)), 300);
        writeln!(out, "<li>{} {}: {}</li>", escaped(case), escaped(&job.name), escaped(&how))?;
    }
    if let more @ 1.. = bad.len().saturating_sub(MOST_LANES) {
        writeln!(out, "<li>{}</li>", count(more, "more job"))?;
    }
    writeln!(out, "</ul>\n</details>")
}

fn is_bad(end: &Ended) -> bool {
    !matches!(end, Ended::Exited { code: 0 })
}

/// As `job.json` has it, with its reason.
fn in_words(end: &Ended) -> String {
    let value = serde_json::to_value(end).unwrap_or_default();
    let fields = value.as_object().into_iter().flatten().map(|(name, value)| match (name.as_str(), value) {
        ("how", serde_json::Value::String(how)) => how.clone(),
        (name, serde_json::Value::String(text)) => format!("{name}: {text}"),
        (name, value) => format!("{name} {value}"),
    });
    fields.collect::<Vec<_>>().join(", ")
}

/// Every job with a begin and an end.
fn spans<'a>(context: &Context<'a>) -> Vec<Span<'a>> {
    let mut spans = Vec::new();
    for case in &context.report.plan.cases {
        let Some((_, jobs)) = context.report.jobs.iter().find(|(name, _)| *name == case.name) else {
            continue;
        };
        let planned: BTreeMap<&str, &[String]> =
            case.jobs.iter().map(|job| (job.name.as_str(), job.nodes.as_slice())).collect();
        spans.extend(
            jobs.jobs.iter().filter_map(|job| span(case, job, planned.get(job.name.as_str()).copied())),
        );
    }
    spans
}

fn span<'a>(case: &'a PlannedCase, job: &'a JobRecord, nodes: Option<&'a [String]>) -> Option<Span<'a>> {
    let moment = |text: &String| OffsetDateTime::parse(text, &Iso8601::DEFAULT).ok();
    let from = job.started.as_ref().or(job.submitted.as_ref()).and_then(moment)?;
    let to = job.ended.as_ref().and_then(moment).filter(|to| *to >= from)?;
    Some(Span {
        case: &case.name,
        job: &job.name,
        nodes: nodes.unwrap_or_default(),
        from,
        to,
        is_bad: is_bad(&job.end),
    })
}
