//! Lines of NeMo Automodel: `step 9 | epoch 0 | loss 0.6974 | grad_norm 2.27 | lr 6.0e-05 | mem 38.63 GiB | tps 11278.56(1409.82/gpu)
//! | num_label_tokens 524288`, behind a logger's time, level and name. Steps are counted through all epochs.

use super::numbers::{count, digits, number};
use super::step::{Dialect, Garbled, Parsed, ReportedStep, StepLine};
use crate::text::moment_ms;

pub(super) fn parse(text: &str) -> Parsed {
    let (before, iteration, fields) = head(text)?;
    // `[val] name "default" | step 9 | epoch 0 | loss ...`
    if before.contains("[val]") {
        return None;
    }
    if head(fields).is_some() {
        return Some(Err(Garbled { what: "two step lines in one".to_owned() }));
    }
    let step = StepLine { iteration, moment_ms: moment_ms(before), ..StepLine::default() };
    Some(read(step, fields).map(|step| ReportedStep {
        dialect: Dialect::Automodel,
        who: String::new(),
        step,
    }))
}

/// What stands before `step 9 | epoch `, its number, and what follows.
fn head(text: &str) -> Option<(&str, u64, &str)> {
    text.match_indices("step ").find_map(|(at, word)| {
        let (iteration, rest) = digits(&text[at + word.len()..])?;
        Some((&text[..at], iteration, rest.strip_prefix(" | epoch ")?))
    })
}

fn read(mut step: StepLine, fields: &str) -> Result<StepLine, Garbled> {
    let mut fields = fields.split('|');
    count("epoch", fields.next().unwrap_or(""))?;
    for field in fields {
        let Some((key, value)) = field.trim().split_once(' ') else { continue };
        match key {
            "loss" => step.loss = Some(number(key, value)?),
            "grad_norm" => step.grad_norm = Some(number(key, value)?),
            "lr" => step.learning_rate = Some(number(key, value)?),
            "tps" => step.tokens_per_gpu_s = Some(per_gpu(value)?),
            _ => {}
        }
    }
    // Both stand in every line: without them it is incomplete.
    match (step.loss, step.tokens_per_gpu_s) {
        (Some(_), Some(_)) => Ok(step),
        _ => Err(Garbled { what: "no loss or no tokens per second".to_owned() }),
    }
}

/// `11278.56(1409.82/gpu)`: of all GPUs, and of one.
fn per_gpu(value: &str) -> Result<f64, Garbled> {
    let bad = || Garbled { what: "`tps` is not of all GPUs and of one".to_owned() };
    let (all, rest) = value.split_once('(').ok_or_else(bad)?;
    number("tps", all)?;
    number("tps", rest.strip_suffix("/gpu)").ok_or_else(bad)?)
}
