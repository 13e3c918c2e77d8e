//! Steps of a repeating run, such as training iterations: where they begin and end, found in ranges, in capture ranges
//! or in the order of kernels, and their times. `trace` chooses the rows of a report; the rest knows no report.

use serde::{Deserialize, Serialize};

mod capture;
mod figures;
mod kernels;
mod name;
mod ranges;
#[cfg(test)]
mod tests;
mod trace;
mod window;

pub(crate) use capture::find_by_capture;
pub use figures::{Figures, figures};
pub use kernels::Ran;
pub(crate) use kernels::find_by_kernels;
pub use name::{Stem, stem};
pub(crate) use ranges::asked_for;
pub use ranges::{Span, repeated};
pub use trace::{StepRequest, find_in_trace};
pub use window::{Window, window};

/// One step, in nanoseconds of its report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// As the range's name says, where it does.
    pub number: Option<u64>,
    /// Begin of the range, the capture or the first kernel.
    pub start: i64,
    /// Of kernels the start of the next step, where there is one; see `has_end`.
    pub end: i64,
    /// How much of it is as in the other steps, from 0 to 1; not known of ranges.
    pub alike: Option<f64>,
    /// Whether its end is where the next one begins, or its own. Of the last step of kernels only these are known, and
    /// not how long it went on.
    pub has_end: bool,
}

impl Step {
    /// The distance of any two 64-bit numbers fits.
    pub(crate) fn ns(&self) -> u64 {
        self.end.wrapping_sub(self.start) as u64
    }

    /// Whether it is one like the others: one of which most is unlike them is shown, and counts for no figure.
    pub fn is_whole(&self) -> bool {
        self.alike.is_none_or(|alike| alike >= HALF)
    }
}

const HALF: f64 = 0.5;

/// What the steps of a report were found in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Source {
    /// NVTX ranges of the requested name, or that repeat like steps.
    Ranges,
    /// From each call that starts the profiler to the one that stops it.
    Capture,
    /// The repeating order of kernels on the busiest stream.
    Kernels,
}

impl Source {
    /// As in the arguments of the recipe `steps`: `ranges`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Source::Ranges => "ranges",
            Source::Capture => "capture",
            Source::Kernels => "kernels",
        }
    }
}

/// Steps in the order of their beginnings, at least one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// The same for all steps.
    pub source: Source,
    /// The name of the ranges without a number, or of the kernel with which each step begins.
    pub by: String,
    /// Some may be unlike the others; see `Step::is_whole`.
    pub steps: Vec<Step>,
    /// How sure it is that these are steps, from 0 to 1.
    pub confidence: f64,
    /// What was left out, and what is not sure.
    pub notes: Vec<String>,
}
