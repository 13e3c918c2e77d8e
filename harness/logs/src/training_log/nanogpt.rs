//! Lines of nanoGPT: `iter 10: loss 3.1042, time 135.21ms, mfu 30.10%`, each with the time of its own iteration, however many lie
//! between two lines. Its MFU is a running mean of that of an A100, whatever the GPU is, and is not read.

use super::numbers::{digits, number, part_near};
use super::step::{Dialect, Garbled, Parsed, ReportedStep, StepLine};
use crate::text::moment_ms;

pub(super) fn parse(text: &str) -> Parsed {
    let (before, iteration, loss, rest) = head(text)?;
    if head(rest).is_some() {
        return Some(Err(Garbled { what: "two step lines in one".to_owned() }));
    }
    let step = StepLine { iteration, moment_ms: moment_ms(before), ..StepLine::default() };
    let read = || -> Result<StepLine, Garbled> {
        let Some((milliseconds, _)) = rest.split_once("ms") else {
            return Err(Garbled { what: "`time` is not in ms".to_owned() });
        };
        let seconds = Some(number("time", milliseconds)? / 1000.0);
        Ok(StepLine { loss: Some(number("loss", loss)?), seconds, ..step })
    };
    Some(read().map(|step| ReportedStep { dialect: Dialect::Nanogpt, who: String::new(), step }))
}

/// What stands before `iter 10: loss `, its number, its loss, and what follows `, time `.
fn head(text: &str) -> Option<(&str, u64, &str, &str)> {
    text.match_indices("iter ").find_map(|(at, word)| {
        let (before, rest) = (&text[..at], &text[at + word.len()..]);
        let (iteration, rest) = digits(rest)?;
        let (loss, rest) = part_near(rest.strip_prefix(": loss ")?, ", time ")?;
        let is_word = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        is_word.then_some((before, iteration, loss, rest))
    })
}
