//! Lines of picotron: `[rank 0] Step: 12    | Loss: 10.3125 | Global batch size:   16.4K | Tokens/s: 120K | Tokens/s/GPU: 15K | ...`.
//! Its MFU is that of an H100, whatever the GPU is, and is not read.

use super::numbers::{digits, human, number};
use super::step::{Dialect, Garbled, Parsed, ReportedStep, StepLine};
use crate::text::moment_ms;

pub(super) fn parse(text: &str) -> Parsed {
    let (before, iteration, fields) = head(text)?;
    if head(fields).is_some() {
        return Some(Err(Garbled { what: "two step lines in one".to_owned() }));
    }
    let step = StepLine { iteration, moment_ms: moment_ms(before), ..StepLine::default() };
    Some(read(step, fields).map(|step| ReportedStep { dialect: Dialect::Picotron, who: String::new(), step }))
}

/// What stands before `Step: 12    | Loss: `, its number, and what follows the word `Loss: `.
fn head(text: &str) -> Option<(&str, u64, &str)> {
    text.match_indices("Step: ").find_map(|(at, word)| {
        let (iteration, rest) = digits(&text[at + word.len()..])?;
        Some((&text[..at], iteration, rest.trim_start().strip_prefix("| Loss: ")?))
    })
}

fn read(mut step: StepLine, fields: &str) -> Result<StepLine, Garbled> {
    let mut is_whole = false;
    for (at, field) in fields.split(" | ").enumerate() {
        match field.split_once(": ") {
            None if at == 0 => step.loss = Some(number("Loss", field)?),
            Some((key @ "Tokens/s/GPU", value)) => step.tokens_per_gpu_s = Some(human(key, value)?),
            // It follows the rates.
            Some(("Tokens", _)) => is_whole = true,
            _ => {}
        }
    }
    match (step.tokens_per_gpu_s, is_whole) {
        (Some(_), true) => Ok(step),
        _ => Err(Garbled { what: "no tokens per second of a GPU".to_owned() }),
    }
}
