//! The line of DeepSpeed's own timer: `epoch=0/micro_step=40/global_step=10, RunningAvgSamplesPerSec=25.02, CurrSamplesPerSec=25.70,
//! ...`. The second rate is that of the step itself, of all ranks, without what the program does between steps.

use super::numbers::{digits, number};
use super::step::{Dialect, Garbled, Parsed, ReportedStep, StepLine};
use crate::text::moment_ms;

const MEAN: &str = ", RunningAvgSamplesPerSec=";

pub(super) fn parse(text: &str) -> Parsed {
    let (before, rates) = text.split_once(MEAN)?;
    // Those of 2022 have no names before their numbers, of which the second is of steps or of parts of them.
    let (before, iteration) = before.rsplit_once("/global_step=")?;
    let (iteration, rest) = digits(iteration)?;
    if !rest.is_empty() {
        return None;
    }
    if rates.contains(MEAN) {
        return Some(Err(Garbled { what: "two step lines in one".to_owned() }));
    }
    let step = StepLine { iteration, moment_ms: moment_ms(before), ..StepLine::default() };
    let read = || -> Result<StepLine, Garbled> {
        // A comma stands behind it, or it was cut.
        let rate = rates.split_once(", CurrSamplesPerSec=").and_then(|(_, rest)| rest.split_once(','));
        let (rate, _) = rate.ok_or_else(|| Garbled { what: "no `CurrSamplesPerSec`".to_owned() })?;
        Ok(StepLine { samples_per_s: Some(number("CurrSamplesPerSec", rate)?), ..step })
    };
    Some(read().map(|step| ReportedStep { dialect: Dialect::Deepspeed, who: String::new(), step }))
}
