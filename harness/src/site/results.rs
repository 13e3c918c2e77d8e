//! What a stored run came to, in a line; what is incomplete or contradicts itself is never a pass.

use crate::report::{Report, last_line};
use model::artefact::Summary;
use model::exit_code;
use verdict::history::past::Run;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Green,
    Red,
    Amber,
}

impl Tone {
    /// The class of a heading.
    pub(super) fn name(self) -> &'static str {
        match self {
            Tone::Green => "green",
            Tone::Red => "red",
            Tone::Amber => "amber",
        }
    }

    /// The class of a word.
    pub(super) fn word_class(self) -> &'static str {
        match self {
            Tone::Green => "s-pass",
            Tone::Red => "s-fail",
            Tone::Amber => "s-error",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunResult {
    pub tone: Tone,
    /// Such as `FAILED: 1 bad part on 1 of 4 nodes (exit 1)`.
    pub line: String,
}

pub(super) fn result(run: &Run) -> RunResult {
    let amber = |line: String| RunResult { tone: Tone::Amber, line };
    let summary = match (run.stored.summary(), run.partial.first()) {
        (Ok(Some(summary)), _) => summary,
        (_, Some(why)) => return amber(format!("INCOMPLETE: {why}")),
        (Err(error), None) => return amber(format!("INCOMPLETE: {error}")),
        (Ok(None), None) => return amber("INCOMPLETE: no summary".to_owned()),
    };
    run.contradiction().map_or_else(|| summary_result(run, &summary), amber)
}

fn summary_result(run: &Run, summary: &Summary) -> RunResult {
    let report = Report::new(run.plan(), &[], summary);
    let tone = match summary.exit_code {
        exit_code::PASSED => Tone::Green,
        exit_code::FAILED => Tone::Red,
        _ => Tone::Amber,
    };
    RunResult { tone, line: last_line(&report) }
}
