//! What limits the work of each profiled case: the largest findings of its reports, and the command that prints all of them.

use super::Context;
use crate::diagnose::kept::{CaseDiagnosis, CaseFinding, NAME, is_work};
use base::text::{count, shorten, show};
use model::artefact::PlannedCase;
use recipes::result_table::escaped;
use std::io::{self, Write};

/// Cases with findings of their own on the page.
const MOST_CASES: usize = 5;
/// Findings of one case.
const MOST_FINDINGS: usize = 3;
/// Letters of a sentence.
const MOST_LETTERS: usize = 300;

/// Of a run that has profiled a case and has ended.
pub(super) fn is_shown(context: &Context) -> bool {
    let diagnoses = context.report.context.diagnoses;
    !diagnoses.is_empty() || context.state.is_none() && profiled(context) > 0
}

fn profiled(context: &Context) -> usize {
    let is_profiled =
        |case: &&PlannedCase| is_work(case) && case.jobs.iter().any(|job| job.profile.is_some());
    context.report.plan.cases.iter().filter(is_profiled).count()
}

pub(super) fn section(context: &Context, out: &mut dyn Write) -> io::Result<()> {
    if !is_shown(context) {
        return Ok(());
    }
    let (diagnoses, profiled) = (context.report.context.diagnoses, profiled(context));
    writeln!(out, "<section class=\"card\" id=\"diagnosis\">\n<h2>What limits the work</h2>")?;
    for (case, read) in diagnoses.iter().take(MOST_CASES) {
        writeln!(out, "<h3>{}</h3>", escaped(&show(case)))?;
        match read {
            Ok(kept) => render_case(context, case, kept, out)?,
            Err(why) => writeln!(
                out,
                "<p>{NAME} cannot be read: {}</p>",
                escaped(&shorten(&show(why), MOST_LETTERS))
            )?,
        }
    }
    if let more @ 1.. = diagnoses.len().saturating_sub(MOST_CASES) {
        writeln!(out, "<p class=\"drawn\">{} with a {NAME} in its folder.</p>", count(more, "more case"))?;
    }
    if let without @ 1.. = profiled.saturating_sub(diagnoses.len()) {
        writeln!(
            out,
            "<p class=\"drawn\">{} whose reports are not in this folder: they were not profiled in the end, or their \
             reports stayed on the cluster.</p>",
            count(without, "profiled case")
        )?;
    }
    let run = show(&context.report.summary.run_id);
    writeln!(
        out,
        "<p class=\"next\">all findings with their evidence: <code>harness diagnose {}</code></p>\n</section>",
        escaped(&run)
    )
}

fn render_case(context: &Context, case: &str, kept: &CaseDiagnosis, out: &mut dyn Write) -> io::Result<()> {
    let file = format!("cases/{case}/{NAME}");
    let reports = count(kept.reports, "report");
    let job = escaped(&shorten(&show(&kept.job), MOST_LETTERS));
    let Some(found) = &kept.found else {
        let why = kept.left_out.as_deref().unwrap_or("no reason was kept");
        return writeln!(
            out,
            "<p>Left out of the page: {}.</p>",
            escaped(&shorten(&show(why), MOST_LETTERS))
        );
    };
    writeln!(
        out,
        "<p class=\"of\">{reports} of {job}, {}; {}.</p>",
        count(found.gpus, "GPU"),
        context.link(&file, NAME)
    )?;
    let notes = found.apart.iter().chain(&found.notes).cloned();
    let unread = found.unreadable.iter().map(|(report, why)| format!("not read: {report}: {why}"));
    let said: Vec<String> = notes.chain(unread).collect();
    for line in said.iter().take(MOST_FINDINGS) {
        writeln!(out, "<p class=\"warning\">{}</p>", escaped(&shorten(&show(line), MOST_LETTERS)))?;
    }
    if let more @ 1.. = said.len().saturating_sub(MOST_FINDINGS) {
        writeln!(out, "<p class=\"drawn\">{}.</p>", count(more, "more note"))?;
    }
    // Only what was read whole, and can be known, is good news.
    if found.findings.is_empty() {
        let line = match said.is_empty() && found.gpus > 0 {
            true => "Nothing limits it by more than 2 %: no exposed communication, idle time or copies.",
            false => "No finding.",
        };
        return writeln!(out, "<p>{line}</p>");
    }
    let input = format!("runs/{}/cases/{case}/raw/{}", context.report.summary.run_id, kept.job);
    let input = shorten(&show(&input), MOST_LETTERS);
    writeln!(out, "<ol>")?;
    for finding in found.findings.iter().take(MOST_FINDINGS) {
        entry(finding, &input, out)?;
    }
    writeln!(out, "</ol>")?;
    match found.findings.len().saturating_sub(MOST_FINDINGS) {
        0 => Ok(()),
        more => writeln!(out, "<p class=\"drawn\">{}.</p>", count(more, "more finding")),
    }
}

fn entry(finding: &CaseFinding, input: &str, out: &mut dyn Write) -> io::Result<()> {
    let short = |text: &str| escaped(&shorten(&show(text), MOST_LETTERS));
    writeln!(
        out,
        "<li><strong>{}</strong>: {}<p class=\"of\">change: {}; shown by <code>harness recipe {} --input {} --table {}</code></p></li>",
        short(&finding.code),
        short(&finding.what),
        short(&finding.change),
        short(&finding.recipe),
        escaped(input),
        short(&finding.table)
    )
}
