//! What limits the work of each profiled case: the largest findings of its reports, and the command that prints all of them.

use super::Context;
use crate::diagnose::kept::{CaseDiagnosis, NAME, is_work};
use crate::page::limits;
use base::text::{count, shorten, show};
use model::artefact::PlannedCase;
use recipes::result_table::escaped;
use std::io::{self, Write};

/// Cases with findings of their own on the page.
const MOST_CASES: usize = 5;
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
    let input = format!("runs/{}/cases/{case}/raw/{}", context.report.summary.run_id, kept.job);
    limits::write(found, &[input], out)
}
