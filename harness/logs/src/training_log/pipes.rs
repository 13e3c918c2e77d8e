//! Lines of fields between pipes: `iteration 7/ 100 | key: value | ...` of Megatron, and `Training epoch 0, iteration
//! 7/99 | key: value | ...` of NeMo 2.

use super::numbers::{after, count, decimals, digits, number};
use super::step::{Dialect, Garbled, Parsed, ReportedStep, StepLine};
use crate::text::moment_ms;

pub(super) fn parse(text: &str) -> Parsed {
    let (before, iteration, of, fields) = head(text)?;
    if before.contains("alidation") {
        return None;
    }
    let dialect = match before.contains("Training epoch") {
        true => Dialect::Nemo2,
        false => Dialect::Megatron,
    };
    let epoch = before.split_once("Training epoch").and_then(|(_, rest)| digits(rest.trim_start()));
    let step = StepLine {
        epoch: epoch.map(|(epoch, _)| epoch),
        iteration,
        of: Some(of),
        moment_ms: moment_ms(before),
        // GPT-NeoX prints it before the number of the step.
        samples_per_s: after(before, "samples/sec:").and_then(|rate| number("samples/sec", rate).ok()),
        ..StepLine::default()
    };
    if head(fields).is_some() {
        return Some(Err(Garbled { what: "two step lines in one".to_owned() }));
    }
    // Megatron closes each of its fields: one that is left open was cut, and its number with it.
    if dialect == Dialect::Megatron
        && let Some((_, open)) = fields.rsplit_once('|')
        && let Some((key, _)) = key_and_value(open)
        && (KEYS.contains(&key) || is_loss(key))
    {
        return Some(Err(Garbled { what: format!("line ends within `{key}`") }));
    }
    Some(read(step, fields).map(|step| ReportedStep { dialect, who: String::new(), step }))
}

/// What stands before `iteration 7/ 100 |`, both numbers, and what follows.
fn head(text: &str) -> Option<(&str, u64, u64, &str)> {
    text.match_indices("iteration").find_map(|(at, word)| {
        let rest = text[at + word.len()..].strip_prefix(' ')?;
        let (iteration, rest) = digits(rest.trim_start())?;
        let (of, rest) = digits(rest.trim_start().strip_prefix('/')?.trim_start())?;
        let fields = rest.trim_start().strip_prefix('|')?;
        Some((&text[..at], iteration, of, fields))
    })
}

/// What is read of Megatron's fields, as far as a cut one would be taken for a whole one.
const KEYS: &[&str] = &[
    "elapsed time per iteration (ms)",
    "elapsed time per iteration (s)",
    "throughput per GPU (TFLOP/s/GPU)",
    "TFLOPs",
    "samples per second",
    "tokens per gpu per second (tgs)",
    "tokens per GPU (tokens/s/GPU)",
    "approx flops per GPU",
    "grad norm",
    "learning rate",
    "global batch size",
    "number of skipped iterations",
    "number of nan iterations",
];

/// What Megatron-LM of 2019 printed without a colon behind it: `| learning rate 1.500E-06 | lm loss 1.044E+01 |`.
const BARE_KEYS: [&str; 7] =
    ["learning rate", "lm loss", "nsp loss", "sop loss", "total loss", "loss scale", "grad norm"];

/// `lm loss: 1.044E+01`, and of 2019 `lm loss 1.044E+01`.
fn key_and_value(field: &str) -> Option<(&str, &str)> {
    if let Some((key, value)) = field.split_once(':') {
        return Some((key.trim(), value));
    }
    let field = field.trim();
    BARE_KEYS.iter().find_map(|key| Some((*key, field.strip_prefix(*key)?.strip_prefix(' ')?)))
}

/// Losses that programs print beside others, which count where they do.
const LOSSES: &[&str] = &["lm loss", "lm_loss", "reduced_train_loss", "loss"];

/// Whether a field is a loss of the training, whatever the program calls it.
fn is_loss(key: &str) -> bool {
    LOSSES.contains(&key) || key.ends_with("loss") && !key.contains("val")
}

/// Whether a loss is one that is added to that of the model: of experts' loads, or of tokens farther ahead. Megatron leaves
/// out a `lm loss` that is NaN, and prints these nevertheless.
fn is_added(key: &str) -> bool {
    ["balancing", "z_loss", "aux", "mtp", "indexer"].iter().any(|word| key.contains(word))
}

fn read(mut step: StepLine, fields: &str) -> Result<StepLine, Garbled> {
    let mut other_loss = None;
    let (mut of_time, mut of_flops) = (None, None);
    for field in fields.split('|') {
        let Some((key, value)) = key_and_value(field) else { continue };
        match key {
            "elapsed time per iteration (ms)" => {
                step.seconds = Some(last(key, value)? / 1000.0);
                of_time = decimals_of_step(value);
            }
            "elapsed time per iteration (s)" | "train_step_timing in s" => {
                step.seconds = Some(number(key, value)?)
            }
            "throughput per GPU (TFLOP/s/GPU)" | "TFLOPS_per_GPU" | "TFLOPs" => {
                step.tflops_per_gpu = Some(last(key, value)?);
                of_flops = decimals_of_step(value).filter(|_| key.starts_with("throughput"));
            }
            "approx flops per GPU" => step.tflops_per_gpu = Some(flops(key, value)?),
            "samples per second" => step.samples_per_s = Some(number(key, value)?),
            "tokens per gpu per second (tgs)" | "tokens/sec/gpu" | "tokens per GPU (tokens/s/GPU)" => {
                step.tokens_per_gpu_s = Some(last(key, value)?)
            }
            _ if LOSSES.contains(&key) => step.loss = Some(number(key, value)?),
            _ if is_loss(key) => {
                let loss = number(key, value)?;
                if loss.is_finite() && is_added(key) {
                    continue;
                }
                // Of several parts, one that is no number counts.
                let counts = other_loss.is_none_or(|other: f64| other.is_finite() && !loss.is_finite());
                other_loss = if counts { Some(loss) } else { other_loss };
            }
            "grad norm" | "grad_norm" => step.grad_norm = Some(number(key, value)?),
            "learning rate" | "lr" => step.learning_rate = Some(number(key, value)?),
            "global batch size" | "global_batch_size" => step.global_batch = Some(count(key, value)?),
            "number of skipped iterations" => step.skipped = Some(count(key, value)?),
            "number of nan iterations" => step.nan = Some(count(key, value)?),
            _ => {}
        }
    }
    step.loss = step.loss.or(other_loss);
    step.decimals = of_time.zip(of_flops);
    // A step's time stands in every line of either program: without it the line is incomplete.
    match step.seconds {
        Some(_) => Ok(step),
        None => Err(Garbled { what: "no step time".to_owned() }),
    }
}

/// `112.9TFLOPS`, `1.2PFLOPS` of GPT-NeoX.
fn flops(key: &str, value: &str) -> Result<f64, Garbled> {
    let value = value.trim();
    match (value.strip_suffix("TFLOPS"), value.strip_suffix("PFLOPS")) {
        (Some(tera), _) => number(key, tera),
        (None, Some(peta)) => Ok(number(key, peta)? * 1000.0),
        (None, None) => Err(Garbled { what: format!("`{key}` is not in TFLOPS or PFLOPS") }),
    }
}

/// `92809.9/268751.1` of AMD's Primus: that of the step, and the mean of all so far.
fn last(key: &str, value: &str) -> Result<f64, Garbled> {
    let Some((of_step, mean)) = value.split_once('/') else { return number(key, value) };
    number(key, mean)?;
    number(key, of_step)
}

/// Those of the first of both.
fn decimals_of_step(value: &str) -> Option<i8> {
    decimals(value.split_once('/').map_or(value, |(of_step, _)| of_step))
}

/// `Step Time : 6.93s GPU utilization: 514.0MODEL_TFLOP/s/GPU`, which Megatron-Bridge puts before a step's line; that of 2025
/// says no `MODEL_`.
pub(super) fn tflops_before(text: &str) -> Option<f64> {
    let (_, rest) = text.split_once("GPU utilization:")?;
    let (value, _) = rest.split_once("TFLOP/s/GPU")?;
    number("GPU utilization", value.strip_suffix("MODEL_").unwrap_or(value)).ok()
}
