//! Progress bars: `Epoch 0:  47%|####7     | 7/15 [06:19<07:13, 1.2s/it, key=value]`, as Lightning draws them, and with
//! its own fields NeMo 1. The bars of the Trainer have the step only.

use super::numbers::{count, digits, number};
use super::step::{Dialect, Garbled, Parsed, ReportedStep, StepLine};
use crate::text::moment_ms;

/// A bar, as far as it goes.
#[derive(Debug, PartialEq)]
pub(super) struct Bar<'a> {
    /// What stands before its numbers.
    pub head: &'a str,
    pub at: u64,
    pub of: u64,
    /// The time of one step by the bar's rate; none while it prints none.
    pub seconds: Option<f64>,
    pub fields: Vec<(&'a str, &'a str)>,
}

/// The first bar of a text that is whole.
pub(super) fn bar(text: &str) -> Option<Bar<'_>> {
    text.match_indices(" [").find_map(|(open, _)| {
        let numbers = text[..open].rfind(['|', ' ']).map_or(0, |at| at + 1);
        let (at, rest) = digits(&text[numbers..open])?;
        let (of, rest) = digits(rest.strip_prefix('/')?)?;
        let (inside, _) = text[open + 2..].split_once(']')?;
        let mut bar = Bar { head: &text[..numbers], at, of, seconds: None, fields: Vec::new() };
        // Its first part is the time that went by: `06:19<07:13`.
        let mut parts = inside.split(", ").peekable();
        let time = parts.next_if(|part| part.contains('<') && part.contains(':'))?;
        (rest.is_empty() && !time.contains('=')).then_some(())?;
        for part in parts {
            if let Some((key, value)) = part.split_once('=') {
                bar.fields.push((key.trim(), value));
            } else if let Some(rate) = part.trim().strip_suffix("it/s") {
                bar.seconds = rate.parse().ok().filter(|rate| *rate > 0.0).map(|rate: f64| 1.0 / rate);
            } else if let Some(seconds) = part.trim().strip_suffix("s/it") {
                bar.seconds = seconds.parse().ok();
            }
        }
        Some(bar)
    })
}

/// A text at each further `Epoch 0:  47%|`: bars that were drawn without a line break or a carriage return between them.
pub(super) fn drawn(text: &str) -> Vec<&str> {
    let begins = text.match_indices("Epoch ").filter(|(at, word)| {
        let percent = digits(&text[at + word.len()..])
            .and_then(|(_, rest)| rest.strip_prefix(':'))
            .and_then(|rest| digits(rest.trim_start()));
        percent.is_some_and(|(_, rest)| rest.starts_with("%|"))
    });
    let mut parts = Vec::new();
    let mut from = 0;
    for (at, _) in begins.skip(1) {
        parts.extend(text.get(from..at));
        from = at;
    }
    parts.extend(text.get(from..));
    parts
}

/// Whether a text is a bar that another one was drawn over.
pub(super) fn is_cut(text: &str) -> bool {
    let numbers = text.split_once("Epoch ").and_then(|(_, rest)| rest.split_once("%|"));
    numbers.is_some_and(|(_, rest)| {
        rest.split_once('[').is_some_and(|(_, inside)| inside.contains('<') && !inside.contains(']'))
    })
}

pub(super) fn parse(text: &str) -> Parsed {
    let bar = bar(text)?;
    let (epoch, rest) = digits(bar.head.rsplit_once("Epoch ")?.1.trim_start())?;
    // At 0 no step has ended.
    if !rest.starts_with(':') || bar.at == 0 {
        return None;
    }
    let step = StepLine {
        epoch: Some(epoch),
        iteration: bar.at,
        of: Some(bar.of),
        moment_ms: moment_ms(bar.head),
        ..StepLine::default()
    };
    Some(read(step, &bar).map(|(dialect, step)| ReportedStep { dialect, who: String::new(), step }))
}

fn read(mut step: StepLine, bar: &Bar) -> Result<(Dialect, StepLine), Garbled> {
    let mut dialect = Dialect::Lightning;
    for (key, value) in &bar.fields {
        match *key {
            "train_step_timing in s" => {
                dialect = Dialect::Nemo1;
                step.seconds = Some(number(key, value)?);
            }
            "reduced_train_loss" | "train_loss" | "train_loss_step" | "loss" => {
                step.loss = Some(number(key, value)?);
            }
            "grad_norm" => step.grad_norm = Some(number(key, value)?),
            "lr" | "learning_rate" => step.learning_rate = Some(number(key, value)?),
            "TFLOPS_per_GPU" => step.tflops_per_gpu = Some(number(key, value)?),
            "global_batch_size" => step.global_batch = Some(count(key, value)?),
            _ => {}
        }
    }
    if step.seconds.is_none() {
        step.seconds = bar.seconds;
        step.is_running_mean = bar.seconds.is_some();
    }
    Ok((dialect, step))
}
