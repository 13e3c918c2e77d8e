//! Lines of words with values behind them: those of the FSDP samples, and those of torchtitan.

use super::numbers::{after, count, digits, number};
use super::step::{Dialect, Garbled, Parsed, ReportedStep, StepLine};
use crate::text::moment_ms;

/// `Epoch 0 Batch 7 Steps 8 Loss: 10.02562, Speed: 16.59 samples/sec, lr: 0.000038`, of which older ones print neither epoch nor
/// steps.
pub(super) fn fsdp(text: &str) -> Parsed {
    let (before, rest) = text.split_once("Batch ")?;
    let (iteration, fields) = digits(rest)?;
    let loss = after(fields, "Loss:")?;
    let speed = after(loss, "Speed:")?;
    let epoch = before.rsplit_once("Epoch ").and_then(|(_, rest)| digits(rest)).map(|(epoch, _)| epoch);
    let step = StepLine { epoch, iteration, moment_ms: moment_ms(before), ..StepLine::default() };
    let read = || -> Result<StepLine, Garbled> {
        let unit = speed.split_whitespace().nth(1).unwrap_or("");
        if !unit.starts_with("samples/sec") {
            return Err(Garbled { what: format!("`Speed` is not in samples/sec: {unit:?}") });
        }
        let learning_rate = after(speed, "lr:").map(|rate| number("lr", rate)).transpose()?;
        let (loss, speed) = (number("Loss", loss)?, number("Speed", speed)?);
        Ok(StepLine { loss: Some(loss), samples_per_s: Some(speed), learning_rate, ..step })
    };
    Some(read().map(|step| ReportedStep { dialect: Dialect::Fsdp, who: String::new(), step }))
}

/// `step: 10  loss: 7.1235  grad_norm: 1.2  memory: 9.74GiB(10.25%)  tps: 6,423  tflops: 23.4  mfu: 35.58%`; older ones say `wps`
/// for `tps`.
pub(super) fn torchtitan(text: &str) -> Parsed {
    let (before, rest) = text.split_once("step:")?;
    // Its validation prints the same fields with rates of its own.
    if before.trim_end().ends_with("validate") {
        return None;
    }
    let mut words = rest.split_whitespace();
    let iteration = words.next()?;
    let mut fields = Vec::new();
    // Ray and others put a text of their own behind the fields: `[repeated 3x across cluster]`.
    while let Some(key) = words.next().and_then(|word| word.strip_suffix(':')) {
        fields.push((key, words.next().unwrap_or("")));
    }
    let has = |name: &str| fields.iter().any(|(key, _)| *key == name);
    if !has("loss") || !(has("tps") || has("wps") || has("memory")) {
        return None;
    }
    if rest.contains(" step: ") {
        return Some(Err(Garbled { what: "two step lines in one".to_owned() }));
    }
    let read = || -> Result<StepLine, Garbled> {
        let iteration = count("step", iteration)?;
        let mut step = StepLine { iteration, moment_ms: moment_ms(before), ..StepLine::default() };
        for (key, value) in &fields {
            let place = match *key {
                "loss" => &mut step.loss,
                "grad_norm" => &mut step.grad_norm,
                "tps" | "wps" => &mut step.tokens_per_gpu_s,
                "tflops" => &mut step.tflops_per_gpu,
                "mfu" => &mut step.mfu_percent,
                "lr" => &mut step.learning_rate,
                _ => continue,
            };
            *place = Some(number(key, value)?);
        }
        // Ranks of a pipeline that have no last stage print it in place of the loss.
        step.loss = step.loss.filter(|loss| *loss != -1.0);
        Ok(step)
    };
    Some(read().map(|step| ReportedStep { dialect: Dialect::Torchtitan, who: String::new(), step }))
}
