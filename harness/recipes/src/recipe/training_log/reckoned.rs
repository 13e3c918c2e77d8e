//! How fast a training is: what its log tells, and what follows from it and from what is stated of the model. Which is which
//! is said.

use super::TrainingFacts;
use logs::training_log::{Figures, Series, StepLine, TrainerSummary, figures};
use metric::finding::Finding;

#[derive(Debug, Default)]
pub(crate) struct Throughput {
    pub step_time: Option<f64>,
    pub step_time_median: Option<f64>,
    pub step_time_cv: Option<f64>,
    pub samples_per_s: Option<f64>,
    pub tokens_per_s: Option<f64>,
    pub tflops_per_gpu: Option<f64>,
    pub mfu: Option<f64>,
    pub findings: Vec<Finding>,
    /// Why the numbers of operations are none, where they cannot be.
    pub impossible: Option<String>,
}

/// Of which steps the figures are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Of all of a run, but for its warm-up.
    Whole,
    /// Of some that somebody named: each of them counts.
    Window,
}

/// Numbers that two accounts give farther apart than this are told.
const APART: f64 = 0.1;

impl Throughput {
    pub(crate) fn of(
        facts: &TrainingFacts,
        ranks: Option<u32>,
        series: &Series,
        summary: Option<&TrainerSummary>,
        extent: Extent,
    ) -> Throughput {
        let mut made = Throughput::default();
        let mut reckoned: Vec<String> = Vec::new();
        let steps = &series.steps;
        let samples = samples(facts, ranks, steps, &mut made.findings);
        let figures_of = |value: &dyn Fn(&StepLine) -> Option<f64>| {
            let points: Vec<(u64, f64)> =
                (0..).zip(steps).filter_map(|(at, step)| Some((at, value(step)?))).collect();
            figures(&points, extent == Extent::Whole)
        };
        // Warm-up shows in times: who tells throughput alone is asked for its reciprocal.
        let told = |step: &StepLine| {
            let by_speed = || Some(samples? / step.samples_per_s.filter(|speed| *speed > 0.0)?);
            step.seconds.or_else(by_speed)
        };
        let is_told = steps.iter().any(|step| step.seconds.is_some());
        let is_mean = steps.iter().any(|step| step.is_running_mean);
        match (figures_of(&told), summary) {
            (Some(Figures { mean, median, cv, .. }), _) => {
                (made.step_time, made.step_time_median) = (Some(mean), Some(median));
                made.step_time_cv = cv.filter(|_| !is_mean);
                if !is_told {
                    reckoned.push("step times from samples per second and the step's samples".to_owned());
                }
            }
            (None, Some(summary)) => {
                made.step_time = Some(1.0 / summary.steps_per_s);
                reckoned
                    .push("step times from what the program says at its end, warm-up included".to_owned());
            }
            (None, None) => {}
        }
        let warm = figures_of(&told).map_or(0, |figures| figures.warm_up);
        let steady = |value: &dyn Fn(&StepLine) -> Option<f64>| {
            let values: Vec<f64> =
                steps.iter().skip(warm).filter_map(value).filter(|value| value.is_finite()).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        made.samples_per_s = steady(&|step| step.samples_per_s).or_else(|| {
            let own = summary.map(|summary| summary.samples_per_s);
            own.or_else(|| {
                let reached = samples? / made.step_time?;
                reckoned.push("samples per second from step times".to_owned());
                Some(reached)
            })
        });
        let ranks = ranks.map(f64::from);
        let by_log = steady(&|step| step.tokens_per_gpu_s).and_then(|tokens| Some(tokens * ranks?));
        made.tokens_per_s = by_log.or_else(|| {
            let reached = made.samples_per_s? * facts.tokens_per_sample? as f64;
            reckoned.push("tokens per second from samples of the stated length".to_owned());
            Some(reached)
        });
        let by_shape = (|| Some(made.tokens_per_s? * facts.flops_per_token? / ranks? / 1e12))();
        let by_log = steady(&|step| step.tflops_per_gpu);
        if let (Some(log), Some(shape)) = (by_log, by_shape)
            && (log - shape).abs() > APART * log.abs()
        {
            let why = format!(
                "the log tells {log:.1} TFLOP/s per GPU, and the stated model makes {shape:.1} of its tokens; the log's \
                 stands"
            );
            made.findings.push(Finding::new("training-flops-differ", why));
        }
        if by_log.is_none() && by_shape.is_some() {
            reckoned.push("TFLOP/s per GPU from tokens and the model's shape".to_owned());
        }
        made.tflops_per_gpu = by_log.or(by_shape);
        made.mfu = steady(&|step| step.mfu_percent.map(|percent| percent / 100.0)).or_else(|| {
            let part = made.tflops_per_gpu? / facts.peak_tflops.filter(|peak| *peak > 0.0)?;
            reckoned.push(format!(
                "MFU against a peak of {} TFLOP/s per GPU",
                facts.peak_tflops.unwrap_or_default()
            ));
            Some(part)
        });
        if let Some(mfu) = made.mfu.filter(|mfu| *mfu > 1.0) {
            let why = format!(
                "no GPU computes {mfu:.2} times its peak: the stated model, the samples of a step or the peak are wrong, \
                 and TFLOP/s and MFU are not given"
            );
            made.impossible = Some(why);
            (made.mfu, made.tflops_per_gpu) = (None, None);
        }
        if !reckoned.is_empty() {
            let why = format!("reckoned, and not told by the log: {}", reckoned.join("; "));
            made.findings.push(Finding::new("training-reckoned", why));
        }
        made
    }
}

/// Samples of a step, of all ranks: the log's own word first.
fn samples(
    facts: &TrainingFacts,
    ranks: Option<u32>,
    steps: &[StepLine],
    findings: &mut Vec<Finding>,
) -> Option<f64> {
    let of_ranks = || Some(facts.samples_per_rank? * u64::from(ranks?));
    let stated = facts.samples.or_else(of_ranks);
    let told = steps.iter().rev().find_map(|step| step.global_batch);
    if let (Some(told), Some(stated)) = (told, stated)
        && told != stated
    {
        let why =
            format!("a step has {told} samples by the log, and was to have: {stated}; the log's stands");
        findings.push(Finding::new("training-batch-differs", why));
    }
    told.or(stated).map(|samples| samples as f64)
}
