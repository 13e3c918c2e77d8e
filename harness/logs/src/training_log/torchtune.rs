//! Lines of torchtune's loggers: `Step 10 | loss:1.2345 lr:2e-05 tokens_per_second_per_gpu:1234.5 ...`. Tokens are those of the step
//! itself, however many lie between two lines.

use super::numbers::{digits, number};
use super::step::{Dialect, Garbled, Parsed, ReportedStep, StepLine};
use crate::text::moment_ms;

const RATE: &str = "tokens_per_second_per_gpu";

pub(super) fn parse(text: &str) -> Parsed {
    let (before, iteration, fields) = head(text)?;
    // Other programs begin so, too.
    if !fields.contains(RATE) {
        return None;
    }
    if head(fields).is_some() {
        return Some(Err(Garbled { what: "two step lines in one".to_owned() }));
    }
    let step = StepLine { iteration, moment_ms: moment_ms(before), ..StepLine::default() };
    Some(read(step, fields).map(|step| ReportedStep {
        dialect: Dialect::Torchtune,
        who: String::new(),
        step,
    }))
}

/// What stands before `Step 10 | `, its number, and what follows.
fn head(text: &str) -> Option<(&str, u64, &str)> {
    text.match_indices("Step ").find_map(|(at, word)| {
        let (iteration, rest) = digits(&text[at + word.len()..])?;
        Some((&text[..at], iteration, rest.strip_prefix(" | ")?))
    })
}

fn read(mut step: StepLine, fields: &str) -> Result<StepLine, Garbled> {
    for field in fields.split_whitespace() {
        let Some((key, value)) = field.split_once(':') else { continue };
        match key {
            "loss" => step.loss = Some(number(key, value)?),
            "lr" => step.learning_rate = Some(number(key, value)?),
            "grad_norm" => step.grad_norm = Some(number(key, value)?),
            RATE => step.tokens_per_gpu_s = Some(number(key, value)?),
            _ => {}
        }
    }
    match (step.loss, step.tokens_per_gpu_s) {
        (Some(_), Some(_)) => Ok(step),
        _ => Err(Garbled { what: "no loss or no tokens per second".to_owned() }),
    }
}
