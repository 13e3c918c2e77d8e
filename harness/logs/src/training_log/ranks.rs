//! The same steps as several ranks report them. The slowest rank holds up all others, so its figures count; a
//! difference beyond rounding is a finding, because ranks of one job run in step.

use super::gather::Series;
use super::step::{Dialect, StepLine};
use metric::finding::Finding;
use std::collections::BTreeMap;

/// Rounding and the clocks of ranks that run in step make less of a difference.
const APART: f64 = 0.01;

/// A figure of how fast a step was.
struct Pace {
    unit: &'static str,
    is_time: bool,
    of: fn(&StepLine) -> Option<f64>,
    set: fn(&mut StepLine, f64),
}

const PACES: [Pace; 5] = [
    Pace {
        unit: "s per step",
        is_time: true,
        of: |it| it.seconds,
        set: |it, value| it.seconds = Some(value),
    },
    Pace {
        unit: "samples/s",
        is_time: false,
        of: |it| it.samples_per_s,
        set: |it, value| it.samples_per_s = Some(value),
    },
    Pace {
        unit: "tokens/s per GPU",
        is_time: false,
        of: |it| it.tokens_per_gpu_s,
        set: |it, value| it.tokens_per_gpu_s = Some(value),
    },
    Pace {
        unit: "TFLOP/s per GPU",
        is_time: false,
        of: |it| it.tflops_per_gpu,
        set: |it, value| it.tflops_per_gpu = Some(value),
    },
    Pace {
        unit: "MFU %",
        is_time: false,
        of: |it| it.mfu_percent,
        set: |it, value| it.mfu_percent = Some(value),
    },
];

/// The best figure of all lines of a step, in the order of `PACES`.
pub(super) type Fastest = [Option<f64>; 5];

/// Takes in another line of a step: what is slowest counts, and so does a loss that is no number.
pub(super) fn add_copy(step: &mut StepLine, copy: &StepLine) {
    step.copies += 1;
    for value in [(&mut step.loss, copy.loss), (&mut step.grad_norm, copy.grad_norm)] {
        // Ranks without the last stage of a pipeline have none.
        if value.0.is_none() || value.1.is_some_and(|number| !number.is_finite()) {
            *value.0 = value.1;
        }
    }
    (step.nan, step.skipped) = (step.nan.max(copy.nan), step.skipped.max(copy.skipped));
    if PACES.iter().all(|pace| (pace.of)(step) == (pace.of)(copy)) {
        return;
    }
    let mut fastest =
        step.fastest.take().unwrap_or_else(|| Box::new(PACES.each_ref().map(|pace| (pace.of)(step))));
    for (pace, fast) in PACES.iter().zip(fastest.iter_mut()) {
        let Some(theirs) = (pace.of)(copy) else { continue };
        let (mine, best) = ((pace.of)(step).unwrap_or(theirs), fast.unwrap_or(theirs));
        let (slow, quick) = match pace.is_time {
            true => (mine.max(theirs), best.min(theirs)),
            false => (mine.min(theirs), best.max(theirs)),
        };
        (pace.set)(step, slow);
        *fast = Some(quick);
    }
    step.fastest = Some(fastest);
}

/// The unit in which lines of a step differ, with the slowest figure and the best.
fn differs(step: &StepLine) -> Option<(&'static str, f64, f64)> {
    let fastest = step.fastest.as_deref()?;
    PACES.iter().zip(fastest).find_map(|(pace, fast)| {
        let (slow, fast) = ((pace.of)(step)?, (*fast)?);
        ((slow - fast).abs() > APART * slow.abs().max(fast.abs())).then_some((pace.unit, slow, fast))
    })
}

/// Lines of ranks without a label.
pub(super) fn conflicting_lines(series: &Series) -> Option<Finding> {
    let mut all = series.steps.iter().filter_map(|step| Some((step, differs(step)?)));
    let (step, (unit, slow, fast)) = all.next()?;
    let more = 1 + all.count();
    let words = if more == 1 { series.dialect.word() } else { series.dialect.plural() };
    let why = format!(
        "{}: two lines of {} {} differ: {slow} and {fast} {unit}; {more} such {words}, the slowest line is used",
        series.render(),
        series.dialect.word(),
        step.iteration
    );
    Some(Finding::new(CODE, why).line(step.line))
}

/// What stands in the code of the finding that ranks report other times of the same steps.
pub const CODE: &str = "training-ranks-disagree";

/// The slowest of ranks that are not equally fast.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slowest<'a> {
    pub series: &'a Series,
    pub fastest: &'a Series,
    /// How many times as slow it is.
    pub times: f64,
}

impl Slowest<'_> {
    pub fn finding(&self) -> Finding {
        let why = format!(
            "{} is {:.2} times as slow as {} in the same {}",
            self.series.render(),
            self.times,
            self.fastest.render(),
            self.series.dialect.plural()
        );
        let finding = Finding::new(CODE, why);
        self.series.steps.first().map_or(finding.clone(), |step| finding.line(step.line))
    }
}

/// Nothing where ranks are equally fast in the steps that they share, or share none.
pub fn slowest<'a>(ranks: &[&'a Series]) -> Option<Slowest<'a>> {
    let (first, others) = ranks.split_first()?;
    let (mut slow, mut fast) = ((*first, 1.0), (*first, 1.0));
    for other in others.iter().filter(|it| it.dialect == first.dialect) {
        let Some(times) = times_as_slow(other, first) else { continue };
        if times > slow.1 {
            slow = (*other, times);
        }
        if times < fast.1 {
            fast = (*other, times);
        }
    }
    let times = slow.1 / fast.1;
    (times > 1.0 + APART && times.is_finite()).then_some(Slowest { series: slow.0, fastest: fast.0, times })
}

/// The last run of each rank of a file, those of one program together.
pub(super) fn slowest_of_programs(series: &[Series]) -> impl Iterator<Item = Finding> {
    let mut programs: BTreeMap<Dialect, Vec<&Series>> = BTreeMap::new();
    for (at, one) in series.iter().enumerate() {
        let goes_on =
            series.get(at + 1).is_some_and(|next| (next.dialect, &next.who) == (one.dialect, &one.who));
        if !goes_on {
            programs.entry(one.dialect).or_default().push(one);
        }
    }
    programs.into_values().filter_map(|ranks| Some(slowest(&ranks)?.finding()))
}

/// The median over the steps that both report: the first ones of a rank that starts late say little.
fn times_as_slow(one: &Series, other: &Series) -> Option<f64> {
    let mut rest = other.steps.iter().peekable();
    let mut ratios: Vec<f64> = Vec::new();
    for step in &one.steps {
        while rest.next_if(|it| it.place() < step.place()).is_some() {}
        if let Some(same) = rest.next_if(|it| it.place() == step.place()) {
            ratios.extend(ratio(step, same));
        }
    }
    // A log that was cut has no say about all steps.
    if ratios.len() * 2 <= one.steps.len().max(other.steps.len()) {
        return None;
    }
    ratios.sort_by(f64::total_cmp);
    ratios.get(ratios.len() / 2).copied()
}

fn ratio(one: &StepLine, other: &StepLine) -> Option<f64> {
    PACES.iter().find_map(|pace| {
        let (a, b) = ((pace.of)(one)?, (pace.of)(other)?);
        let ratio = if pace.is_time { a / b } else { b / a };
        (ratio.is_finite() && ratio > 0.0).then_some(ratio)
    })
}
