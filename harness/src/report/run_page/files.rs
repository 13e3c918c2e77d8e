//! Links to what the page was made from, by paths relative to it, and how to make pages of its reports.

use super::Context;
use base::text::show;
use recipes::result_table::escaped;
use std::io::{self, Write};

/// Files that every run has.
const OF_RUN: [(&str, &str); 5] = [
    ("junit.xml", "for CI"),
    ("summary.json", "counts, coverage, culprits"),
    ("plan.json", "everything decided before the launch"),
    ("run.json", "when it began and ended"),
    ("events.jsonl", "what happened, one event a line"),
];
/// Cases with links of their own.
const MOST_CASES: usize = 500;

pub(super) fn section(context: &Context, out: &mut dyn Write) -> io::Result<()> {
    let report = context.report;
    writeln!(out, "<section class=\"card\" id=\"files\">\n<h2>Files</h2>")?;
    if context.to_run.is_none() {
        writeln!(out, "<p class=\"of\">In the folder of the run, which is not here.</p>")?;
    }
    writeln!(out, "<ul class=\"files\">")?;
    for (file, about) in OF_RUN {
        writeln!(out, "<li>{}: {about}</li>", context.link(file, file))?;
    }
    writeln!(out, "</ul>\n<details>\n<summary>Files of each case</summary>\n<ul>")?;
    for case in report.cases.iter().take(MOST_CASES) {
        let folder = format!("cases/{}", case.case);
        // A case of which no job ran left no files.
        let ran = report.jobs.iter().any(|(name, jobs)| {
            *name == case.case && jobs.jobs.iter().any(|job| job.started.is_some() || job.submitted.is_some())
        });
        let has_trace = report.traces.iter().any(|(name, _)| *name == case.case);
        let has_diagnosis = report.context.diagnoses.iter().any(|(name, _)| *name == case.case);
        let files = [
            "verdict.json",
            "metrics.parquet",
            "collected.json",
            "job.json",
            "trace.json",
            "diagnosis.json",
            "raw",
        ];
        let links: Vec<String> = files
            .iter()
            .filter(|file| match **file {
                "raw" => ran,
                "trace.json" => has_trace,
                "diagnosis.json" => has_diagnosis,
                _ => true,
            })
            .map(|file| context.link(&format!("{folder}/{file}"), file))
            .collect();
        writeln!(out, "<li>{}: {}</li>", escaped(&case.case), links.join(", "))?;
    }
    writeln!(out, "</ul>\n</details>")?;
    let has_reports = report.plan.cases.iter().flat_map(|case| &case.jobs).any(|job| job.profile.is_some());
    if has_reports {
        let command = format!(
            "harness recipe all --input {} --output pages",
            show(&format!("runs/{}", report.summary.run_id))
        );
        writeln!(
            out,
            "<p>Pages of its profiler reports, where they were kept: <code>{}</code></p>",
            escaped(&command)
        )?;
    }
    writeln!(out, "</section>")
}
