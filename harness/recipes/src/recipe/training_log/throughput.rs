//! Throughput of a training: as logged, or computed from the log and the stated model. A finding names the computed
//! values.

use super::TrainingFacts;
use crate::recipe::training_log::TrainingFinding;
use logs::training_log::{Dialect, Figures, Series, StepLine, TrainerSummary, figures};
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
    /// Why TFLOP/s and MFU are not given, where they are impossible.
    pub impossible: Option<String>,
}

/// The steps that the figures cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The whole run without its warm-up.
    Whole,
    /// Named steps: each of them counts.
    Window,
}

/// A larger relative difference between two sources is reported.
const MOST_DIFFERENCE: f64 = 0.1;

impl Throughput {
    pub(crate) fn compute(
        facts: &TrainingFacts,
        ranks: Option<u32>,
        series: &Series,
        summary: Option<&TrainerSummary>,
        extent: Extent,
    ) -> Throughput {
        let mut made = Throughput::default();
        let mut computed: Vec<String> = Vec::new();
        let steps = &series.steps;
        let samples = samples(facts, ranks, steps, &mut made.findings);
        let figures_of = |value: &dyn Fn(&StepLine) -> Option<f64>| {
            let points: Vec<(u64, f64)> =
                (0..).zip(steps).filter_map(|(at, step)| Some((at, value(step)?))).collect();
            figures(&points, extent == Extent::Whole)
        };
        // Warm-up is found by times; a log with throughput alone gives them as its reciprocal.
        let seconds = |step: &StepLine| {
            let by_speed = || Some(samples? / step.samples_per_s.filter(|speed| *speed > 0.0)?);
            step.seconds.or_else(by_speed)
        };
        let has_seconds = steps.iter().any(|step| step.seconds.is_some());
        let is_mean = series.is_of_means() || steps.iter().any(|step| step.is_running_mean);
        match (figures_of(&seconds), summary) {
            (Some(Figures { mean, median, cv, .. }), _) => {
                (made.step_time, made.step_time_median) = (Some(mean), Some(median));
                made.step_time_cv = cv.filter(|_| !is_mean);
                if !has_seconds {
                    computed.push("step times from samples per second and samples per step".to_owned());
                }
            }
            (None, Some(summary)) => {
                made.step_time = Some(1.0 / summary.steps_per_s);
                computed.push("step times from the program's summary, warm-up included".to_owned());
            }
            (None, None) => {}
        }
        let warm = figures_of(&seconds).map_or(0, |figures| figures.warm_up);
        let steady = |value: &dyn Fn(&StepLine) -> Option<f64>| {
            let values: Vec<f64> =
                steps.iter().skip(warm).filter_map(value).filter(|value| value.is_finite()).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        made.samples_per_s = steady(&|step| step.samples_per_s).or_else(|| {
            let own = summary.map(|summary| summary.samples_per_s);
            own.or_else(|| {
                let reached = samples? / made.step_time?;
                computed.push("samples per second from step times".to_owned());
                Some(reached)
            })
        });
        let ranks = ranks.map(f64::from);
        // Axolotl's are tokens with a loss only, and fewer than the GPUs computed.
        let counts_all = series.dialect != Dialect::Trainer;
        let by_log = steady(&|step| step.tokens_per_gpu_s.filter(|_| counts_all));
        let by_log = by_log.and_then(|tokens| Some(tokens * ranks?));
        made.tokens_per_s = by_log.or_else(|| {
            let reached = made.samples_per_s? * facts.tokens_per_sample? as f64;
            computed.push("tokens per second from samples and their stated length".to_owned());
            Some(reached)
        });
        let by_shape = (|| Some(made.tokens_per_s? * facts.flops_per_token? / ranks? / 1e12))();
        let by_log = steady(&|step| step.tflops_per_gpu);
        if let (Some(log), Some(shape)) = (by_log, by_shape)
            && (log - shape).abs() > MOST_DIFFERENCE * log.abs()
        {
            let why = format!(
                "TFLOP/s per GPU: {log:.1} by the log (used), {shape:.1} by the stated model; check the model's shape"
            );
            made.findings.push(Finding::new(TrainingFinding::FlopsDiffer.code(), why));
        }
        if by_log.is_none() && by_shape.is_some() {
            computed.push("TFLOP/s per GPU from tokens and the model's shape".to_owned());
        }
        made.tflops_per_gpu = by_log.or(by_shape);
        made.mfu = steady(&|step| step.mfu_percent.map(|percent| percent / 100.0)).or_else(|| {
            let part = made.tflops_per_gpu? / facts.peak_tflops.filter(|peak| *peak > 0.0)?;
            computed.push(format!(
                "MFU from a peak of {} TFLOP/s per GPU",
                facts.peak_tflops.unwrap_or_default()
            ));
            Some(part)
        });
        if let Some(mfu) = made.mfu.filter(|mfu| *mfu > 1.0) {
            let why = format!(
                "MFU {mfu:.2} is above 1: the stated model, samples per step or peak are wrong; TFLOP/s and MFU are \
                 not given"
            );
            made.impossible = Some(why);
            (made.mfu, made.tflops_per_gpu) = (None, None);
        }
        if !computed.is_empty() {
            let why = format!("computed, not logged: {}", computed.join("; "));
            made.findings.push(Finding::new(TrainingFinding::Computed.code(), why));
        }
        made
    }
}

/// Samples per step of all ranks: as logged, else as stated.
fn samples(
    facts: &TrainingFacts,
    ranks: Option<u32>,
    steps: &[StepLine],
    findings: &mut Vec<Finding>,
) -> Option<f64> {
    let of_ranks = || Some(facts.samples_per_rank? * u64::from(ranks?));
    let stated = facts.samples.or_else(of_ranks);
    let logged = steps.iter().rev().find_map(|step| step.global_batch);
    if let (Some(logged), Some(stated)) = (logged, stated)
        && logged != stated
    {
        let why = format!("samples per step: {logged} by the log (used), {stated} as stated");
        findings.push(Finding::new(TrainingFinding::BatchDiffers.code(), why));
    }
    logged.or(stated).map(|samples| samples as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_that_have_a_loss_are_not_those_that_gpus_computed() {
        let of = |dialect| {
            let step = |iteration| StepLine {
                iteration,
                seconds: Some(2.0),
                tokens_per_gpu_s: Some(100.0),
                ..StepLine::default()
            };
            let steps = (1..=3).map(step).collect();
            let series = Series { dialect, who: String::new(), run: 1, steps, restarts: Vec::new() };
            let facts =
                TrainingFacts { samples: Some(8), tokens_per_sample: Some(1000), ..TrainingFacts::default() };
            Throughput::compute(&facts, Some(4), &series, None, Extent::Window).tokens_per_s
        };
        assert_eq!((of(Dialect::Torchtune), of(Dialect::Trainer)), (Some(400.0), Some(4000.0)));
    }
}
