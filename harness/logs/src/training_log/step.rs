//! One training step, as a line of a log has it.

use super::ranks::Fastest;
use serde::Serialize;

/// Whose lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// Megatron-LM, what was made of it, and Megatron-Bridge.
    Megatron,
    /// `Training epoch 0, iteration 7/99 | key: value | ...`.
    Nemo2,
    /// The progress bar of Lightning, with the fields of NeMo 1.
    Nemo1,
    /// Its progress bar, without the fields of NeMo 1.
    Lightning,
    /// The FSDP samples: `Batch 7 Loss: ..., Speed: ... samples/sec`.
    Fsdp,
    /// `step: 10  loss: 7.1235  ...  tps: 6,423`.
    Torchtitan,
    /// NeMo Automodel: `step 9 | epoch 0 | loss 0.6974 | ...`.
    Automodel,
    /// The Trainer of Hugging Face.
    Trainer,
    /// `completed step: 5, seconds: 1.230, TFLOP/s/device: ...`.
    Maxtext,
    /// `iteration: 12 / 100 | consumed_tokens: 1.2M | ...`.
    Nanotron,
    /// `Step: 12    | Loss: 10.3125 | ... | Tokens/s/GPU: 15K | ...`.
    Picotron,
    /// `iter 10: loss 3.1042, time 135.21ms, ...`.
    Nanogpt,
    /// `Step 10 | loss:1.2345 ... tokens_per_second_per_gpu:1234.5`.
    Torchtune,
    /// Its progress bar, where it logs no lines: `1|100|Loss: 1.25:   3%|2     | 100/3251 [...]`.
    TorchtuneBar,
    /// `Train: 0 [  50/1251 (  4%)]  Loss: ...  Time: 0.412s, ...`.
    Timm,
    /// Blocks of Composer's console logger, and LLM Foundry's.
    Composer,
    /// The timer of DeepSpeed, where nothing else logs steps.
    Deepspeed,
    /// llm.c: `step   61/74 | loss 3.208939 | ... | 44.57 ms | ... tok/s`.
    Llmc,
    /// nanochat: `step 00001/21400 (0.00%) | loss: 10.81 | ... | dt: 460.12ms | ...`.
    Nanochat,
}

impl Dialect {
    /// For messages, such as `nemo-2`; in JSON it is `nemo2`.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Megatron => "megatron",
            Dialect::Nemo2 => "nemo-2",
            Dialect::Nemo1 => "nemo-1",
            Dialect::Lightning => "lightning",
            Dialect::Fsdp => "fsdp",
            Dialect::Torchtitan => "torchtitan",
            Dialect::Automodel => "automodel",
            Dialect::Trainer => "trainer",
            Dialect::Maxtext => "maxtext",
            Dialect::Nanotron => "nanotron",
            Dialect::Picotron => "picotron",
            Dialect::Nanogpt => "nanogpt",
            Dialect::Torchtune => "torchtune",
            Dialect::TorchtuneBar => "torchtune-bar",
            Dialect::Timm => "timm",
            Dialect::Composer => "composer",
            Dialect::Deepspeed => "deepspeed",
            Dialect::Llmc => "llmc",
            Dialect::Nanochat => "nanochat",
        }
    }

    /// Whether a step's line is written again and again while the step goes on: the last one counts.
    pub(crate) fn is_a_bar(self) -> bool {
        matches!(self, Dialect::Nemo1 | Dialect::Lightning | Dialect::TorchtuneBar)
    }

    /// Whether nothing can be set so that it logs fewer lines than steps: `log_metrics` of
    /// <https://github.com/AI-Hypercomputer/maxtext/blob/main/src/MaxText/metric_logger.py>.
    pub(crate) fn logs_each_step(self) -> bool {
        self == Dialect::Maxtext
    }

    /// The number of its first step.
    pub fn counts_from(self) -> u64 {
        match self {
            // Automodel's of 2025 count from 1: a log that begins so has no window, and none that is one step off.
            Dialect::Fsdp
            | Dialect::Nemo2
            | Dialect::Automodel
            | Dialect::Maxtext
            | Dialect::Nanogpt
            | Dialect::Nanochat
            | Dialect::Timm => 0,
            Dialect::Megatron
            | Dialect::Nemo1
            | Dialect::Lightning
            | Dialect::Torchtitan
            | Dialect::Trainer
            | Dialect::Nanotron
            | Dialect::Picotron
            | Dialect::Torchtune
            | Dialect::TorchtuneBar
            | Dialect::Composer
            | Dialect::Llmc
            | Dialect::Deepspeed => 1,
        }
    }

    /// What its lines call a step.
    pub fn word(self) -> &'static str {
        match self {
            Dialect::Fsdp | Dialect::Composer => "batch",
            Dialect::Torchtitan
            | Dialect::Automodel
            | Dialect::Trainer
            | Dialect::Maxtext
            | Dialect::Picotron
            | Dialect::Torchtune
            | Dialect::TorchtuneBar
            | Dialect::Timm
            | Dialect::Llmc
            | Dialect::Nanochat
            | Dialect::Deepspeed => "step",
            Dialect::Megatron
            | Dialect::Nemo2
            | Dialect::Nemo1
            | Dialect::Lightning
            | Dialect::Nanotron
            | Dialect::Nanogpt => "iteration",
        }
    }

    /// Their name for several.
    pub fn plural(self) -> &'static str {
        match self.word() {
            "batch" => "batches",
            "step" => "steps",
            _ => "iterations",
        }
    }
}

/// A value that was not logged is none, never zero. A value that is not finite was logged as such.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct StepLine {
    /// One-based.
    pub line: u64,
    /// None where lines have none, or steps count through all epochs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// As the program counts: some from 0, some from 1, and some restart in each epoch.
    pub iteration: u64,
    /// How many there are to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<u64>,
    /// How long the step took; of several lines, the longest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Whether the program logs a running mean of the last steps instead of this one's time.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_running_mean: bool,
    /// Whether the program printed no number of the step, so that `iteration` counts its lines.
    #[serde(skip)]
    pub is_counted: bool,
    /// As logged; of several lines, the lowest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples_per_s: Option<f64>,
    /// As logged, of one GPU; of several lines, the lowest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_gpu_s: Option<f64>,
    /// As logged, of one GPU; of several lines, the lowest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tflops_per_gpu: Option<f64>,
    /// Model FLOPs utilization, as logged; of several lines, the lowest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mfu_percent: Option<f64>,
    /// The training loss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Norm of the gradients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grad_norm: Option<f64>,
    /// As logged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learning_rate: Option<f64>,
    /// Samples of one step, over all GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub global_batch: Option<u64>,
    /// Steps since the line before that changed nothing, because their gradients were not finite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<u64>,
    /// Value of `number of nan iterations`, which Megatron logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nan: Option<u64>,
    /// The line's time stamp, in milliseconds of a clock whose zone is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moment_ms: Option<i64>,
    /// How many more lines logged this step, such as those of other ranks.
    #[serde(skip_serializing_if = "is_zero")]
    pub copies: u64,
    /// Of programs that compute one from the other, the decimals that milliseconds and TFLOP/s are printed with: below 0 where
    /// the last digit is no unit.
    #[serde(skip)]
    pub decimals: Option<(i8, i8)>,
    /// Those of `tokens_per_gpu_s`, where the program computes it from the time, too.
    #[serde(skip)]
    pub token_decimals: Option<i8>,
    /// The best figures of all lines of this step, where they differ; its own are the slowest.
    #[serde(skip)]
    pub fastest: Option<Box<Fastest>>,
}

// The signature is serde's.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl StepLine {
    /// Where it stands among the others.
    pub(crate) fn place(&self) -> (u64, u64) {
        (self.epoch.unwrap_or(0), self.iteration)
    }
}

/// A line of a step: its rank, and its values.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ReportedStep {
    pub dialect: Dialect,
    /// The rank or task, as far as the line's prefix has it.
    pub who: String,
    pub step: StepLine,
}

/// A line that is one of a step by its form, and of which something cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Garbled {
    /// What cannot be read.
    pub what: String,
}

/// Nothing where a line is none of a step.
pub(super) type Parsed = Option<Result<ReportedStep, Garbled>>;
