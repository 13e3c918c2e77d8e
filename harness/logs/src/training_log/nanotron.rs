//! Lines of nanotron: `iteration: 12 / 100 | consumed_tokens: 1.2M | elapsed_time_per_iteration_ms: 1.31K | ... | lm_loss: 10.9 |
//! ... | hardware_tflops_per_gpu: 101`. Its numbers have three significant digits, and `K` or `M` behind them.

use super::numbers::{digits, human};
use super::step::{Dialect, Garbled, Parsed, ReportedStep, StepLine};
use crate::text::moment_ms;

pub(super) fn parse(text: &str) -> Parsed {
    let (before, iteration, of, fields) = head(text)?;
    // Other programs begin so, too.
    if !fields.trim_start().starts_with("consumed_") {
        return None;
    }
    if head(fields).is_some() {
        return Some(Err(Garbled { what: "two step lines in one".to_owned() }));
    }
    let step = StepLine { iteration, of: Some(of), moment_ms: moment_ms(before), ..StepLine::default() };
    Some(read(step, fields).map(|step| ReportedStep { dialect: Dialect::Nanotron, who: String::new(), step }))
}

/// What stands before `iteration: 12 / 100 | `, both numbers, and what follows.
fn head(text: &str) -> Option<(&str, u64, u64, &str)> {
    text.match_indices("iteration: ").find_map(|(at, word)| {
        let (iteration, rest) = digits(&text[at + word.len()..])?;
        let (of, rest) = digits(rest.strip_prefix(" / ")?)?;
        Some((&text[..at], iteration, of, rest.strip_prefix(" | ")?))
    })
}

fn read(mut step: StepLine, fields: &str) -> Result<StepLine, Garbled> {
    let (mut milliseconds, mut is_whole) = (None, false);
    for field in fields.split(" | ") {
        let Some((key, value)) = field.split_once(": ") else { continue };
        match key.trim() {
            key @ "elapsed_time_per_iteration_ms" => milliseconds = Some(human(key, value)?),
            key @ "tokens_per_sec_per_gpu" => step.tokens_per_gpu_s = Some(human(key, value)?),
            key @ "lm_loss" => step.loss = Some(human(key, value)?),
            key @ "lr" => step.learning_rate = Some(human(key, value)?),
            key @ "model_tflops_per_gpu" => step.tflops_per_gpu = Some(human(key, value)?),
            key @ "grad_norm" => step.grad_norm = Some(human(key, value)?),
            // Below 1,000 it is exact.
            "global_batch_size" => step.global_batch = value.trim().parse().ok(),
            // It stands behind all that is read but the norm, and holds what recomputation adds.
            key @ "hardware_tflops_per_gpu" => is_whole = human(key, value).is_ok(),
            _ => {}
        }
    }
    step.seconds = milliseconds.map(|milliseconds| milliseconds / 1000.0);
    step.decimals = milliseconds.and_then(decimals).zip(step.tflops_per_gpu.and_then(decimals));
    step.token_decimals = step.tokens_per_gpu_s.and_then(decimals);
    match (step.seconds, step.loss, is_whole) {
        (Some(_), Some(_), true) => Ok(step),
        (None, ..) => Err(Garbled { what: "no step time".to_owned() }),
        _ => Err(Garbled { what: "line ends before `hardware_tflops_per_gpu`".to_owned() }),
    }
}

/// Decimals of a number of three significant digits: below 0 where the last one is no unit.
fn decimals(value: f64) -> Option<i8> {
    (value.is_finite() && value > 0.0).then(|| 2 - value.log10().floor().clamp(-60.0, 60.0) as i8)
}
