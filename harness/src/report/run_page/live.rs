//! What the page of a run that goes on says of it: how far it is, and which jobs run.

use base::text::count;
use model::artefact::{CaseVerdict, Counts};
use recipes::result_table::escaped;
use std::io::{self, Write};

/// Jobs that are named one by one.
const MOST_JOBS: usize = 20;

/// How far a run is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RunState {
    /// Cases that are judged, of how many.
    pub judged: usize,
    pub cases: usize,
    /// The jobs that were submitted and have not ended: case, name and nodes.
    pub running: Vec<(String, String, String)>,
    pub ended: usize,
}

impl RunState {
    /// Such as `RUNNING: 3 of 12 cases judged, 1 assertion failed so far`; never that it passed.
    pub(super) fn headline(&self, counts: &Counts) -> String {
        let failed = counts.fail + counts.unexpected_pass;
        let open = counts.inconclusive + counts.error;
        let mut text = format!("RUNNING: {} of {} judged", self.judged, count(self.cases, "case"));
        for (n, word) in [(failed, "failed"), (open, "not decided")] {
            if n > 0 {
                text.push_str(&format!(", {} {word}", count(n, "assertion")));
            }
        }
        text + if failed + open > 0 { " so far" } else { "" }
    }

    pub(super) fn section(&self, cases: &[CaseVerdict], out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "<section class=\"card\" id=\"now\">\n<h2>Now</h2>\n<p id=\"live\" role=\"status\">The page follows the run. What is \
             red may be explained by a later case.</p>"
        )?;
        writeln!(
            out,
            "<p>{} ended, {} queued or running; the last case that was judged: {}.</p>",
            count(self.ended, "job"),
            self.running.len(),
            escaped(cases.last().map_or("none yet", |case| &case.case))
        )?;
        writeln!(out, "<ul class=\"files\">")?;
        for (case, job, nodes) in self.running.iter().take(MOST_JOBS) {
            writeln!(out, "<li>{}: {} on {}</li>", escaped(case), escaped(job), escaped(nodes))?;
        }
        writeln!(out, "</ul>")?;
        if let more @ 1.. = self.running.len().saturating_sub(MOST_JOBS) {
            writeln!(out, "<p class=\"drawn\">{}.</p>", count(more, "more job"))?;
        }
        writeln!(out, "</section>")
    }
}
