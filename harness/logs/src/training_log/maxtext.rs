//! Lines of MaxText: `completed step: 5, seconds: 1.230, TFLOP/s/device: 97.566, Tokens/s/device: 1989.820, total_weights: 196608,
//! loss: 12.038`. Each process prints one for each step; its rates are those of one device.

use super::numbers::{decimals, digits, number};
use super::step::{Dialect, Garbled, Parsed, ReportedStep, StepLine};
use crate::text::moment_ms;

const STEP: &str = "completed step: ";
/// A step at which its profiler starts or stops: its time is left out.
const PROFILED: &str = "completed profiler activation/deactivation step: ";

pub(super) fn parse(text: &str) -> Parsed {
    let (at, word) = [STEP, PROFILED].into_iter().find_map(|word| Some((text.find(word)?, word)))?;
    let (iteration, rest) = digits(&text[at + word.len()..])?;
    let is_timed = word == STEP;
    if !rest.starts_with(if is_timed { ", seconds: " } else { ", total_weights: " }) {
        return None;
    }
    if rest.contains(STEP) || rest.contains(PROFILED) {
        return Some(Err(Garbled { what: "two step lines in one".to_owned() }));
    }
    let step = StepLine { iteration, moment_ms: moment_ms(&text[..at]), ..StepLine::default() };
    Some(read(step, rest).map(|step| ReportedStep { dialect: Dialect::Maxtext, who: String::new(), step }))
}

fn read(mut step: StepLine, fields: &str) -> Result<StepLine, Garbled> {
    let (mut of_time, mut of_flops) = (None, None);
    for field in fields.split(", ") {
        let Some((key, value)) = field.split_once(": ") else { continue };
        match key {
            "seconds" => {
                step.seconds = Some(number(key, value)?);
                of_time = decimals(value).map(|of_seconds| of_seconds - 3);
            }
            "TFLOP/s/device" => {
                step.tflops_per_gpu = Some(number(key, value)?);
                of_flops = decimals(value);
            }
            "Tokens/s/device" => {
                step.tokens_per_gpu_s = Some(number(key, value)?);
                step.token_decimals = decimals(value);
            }
            "loss" => step.loss = Some(number(key, value)?),
            "grad_norm" => step.grad_norm = Some(number(key, value)?),
            _ => {}
        }
    }
    step.decimals = of_time.zip(of_flops);
    // It stands in every line, behind the rates.
    match step.loss {
        Some(_) => Ok(step),
        None => Err(Garbled { what: "no loss".to_owned() }),
    }
}
