//! The steps of a window by the log: which lines are theirs, and how fast these steps were. Recipe `window` does the
//! same from reports.

use super::throughput::{Extent, Throughput};
use super::{TrainingFacts, job_metric};
use crate::recipe::training_log::TrainingFinding;
use crate::recipe::window::StepWindow;
use crate::recipe::{JobInput, Output};
use logs::training_log::Series;
use metric::MetricSpec;
use metric::finding::Finding;
use metric::unit::{Better, Unit};

pub(super) const STEP_TIME: MetricSpec = job_metric(
    "train.window_step_time",
    "mean step time of the window by the log",
    Unit::Seconds,
    Better::Lower,
);
pub(super) const SAMPLES: MetricSpec = job_metric(
    "train.window_samples_per_s",
    "samples per second of all ranks in the steps of the window",
    Unit::PerSecond,
    Better::Higher,
);
pub(super) const TOKENS: MetricSpec = job_metric(
    "train.window_tokens_per_s",
    "tokens per second of all ranks in the steps of the window",
    Unit::PerSecond,
    Better::Higher,
);
pub(super) const TFLOPS: MetricSpec = job_metric(
    "train.window_tflops_per_gpu",
    "TFLOP/s of each GPU in the steps of the window",
    Unit::Teraflops,
    Better::Higher,
);
pub(super) const MFU: MetricSpec = job_metric(
    "train.window_mfu",
    "model FLOPs utilization in the steps of the window, as a fraction of the GPU's peak",
    Unit::Ratio,
    Better::Higher,
);
pub(super) const METRICS: [MetricSpec; 5] = [STEP_TIME, SAMPLES, TOKENS, TFLOPS, MFU];

/// Code of the finding that says why the log gives no numbers for a window.
pub(super) const UNKNOWN: &str = TrainingFinding::WindowUnknown.code();

pub(super) fn put(
    job: &JobInput,
    (facts, ranks): (&TrainingFacts, Option<u32>),
    series: &Series,
    output: &mut Output,
) {
    let Some(asked) = &job.window else { return };
    let unknown = |why: String| {
        let why = format!("the log gives no times for steps {}..{}: {why}", asked.first, asked.last);
        Finding::new(UNKNOWN, why)
    };
    let steps = match lines_in_window(series, asked) {
        Ok(steps) => steps,
        Err(why) => return output.findings.push(unknown(why)),
    };
    let throughput = Throughput::compute(facts, ranks, &steps, None, Extent::Window);
    // Computed values and contradictions are reported once, for the whole run.
    output.findings.extend(throughput.impossible.map(&unknown));
    if throughput.step_time.is_none() {
        output.findings.push(unknown(
            "its lines lack both step time and throughput; use `window.step_time` from the reports"
                .to_owned(),
        ));
    }
    let values = [
        throughput.step_time,
        throughput.samples_per_s,
        throughput.tokens_per_s,
        throughput.tflops_per_gpu,
        throughput.mfu,
    ];
    for (spec, value) in METRICS.iter().zip(values) {
        output
            .metrics
            .extend(value.filter(|value| value.is_finite()).map(|value| spec.of(job.dims(), value)));
    }
}

/// All lines of the window's steps, in a log of one run from its first step on; or why they are unknown.
fn lines_in_window(series: &Series, asked: &StepWindow) -> Result<Series, String> {
    let (word, from) = (series.dialect.word(), series.dialect.counts_from());
    let Some(first) = series.steps.first() else { return Err("it has no step".to_owned()) };
    if series.run > 1 || !series.restarts.is_empty() {
        return Err("the run restarted or went back, so its step numbers are ambiguous".to_owned());
    }
    if first.iteration > from {
        return Err(format!(
            "it begins at {word} {}, so the window's steps cannot be located",
            first.iteration
        ));
    }
    let of_epoch = series.steps.iter().filter(|step| step.epoch == first.epoch);
    let steps: Vec<_> = of_epoch
        .filter(|step| {
            step.iteration.checked_sub(from).is_some_and(|it| (asked.first..=asked.last).contains(&it))
        })
        .cloned()
        .collect();
    let (found, wanted) = (steps.len() as u64, asked.count());
    if found < wanted {
        let last = series.steps.last().map_or(first.iteration, |step| step.iteration);
        return Err(format!("it has {found} of {wanted} lines; its last line is {word} {last}"));
    }
    if steps.iter().any(|step| step.is_running_mean) {
        return Err(
            "it prints running means, which include other steps; use `window.step_time` from the reports"
                .to_owned(),
        );
    }
    if series.is_of_means() {
        return Err(
            "its lines are means of all steps since the line before; use `window.step_time` from the reports"
                .to_owned(),
        );
    }
    Ok(Series { steps, ..series.clone() })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{FACTS, falls, fsdp, message, value, windowed as ran};
    use super::*;

    #[test]
    fn figures_of_a_window_are_those_of_its_steps_alone() {
        let slow = fsdp(40, falls).replace("Speed: 16.0", "Speed: 8.0");
        let quick: String = (slow.lines().enumerate())
            .map(|(at, line)| if (30..33).contains(&at) { line.replace("Speed: 8.0", "Speed: 16.0") } else { line.to_owned() } + "\n")
            .collect();
        let output = ran((30, 32), FACTS, &quick);
        let about = |name: &str, expected: f64| {
            let value = value(&output, name).unwrap_or_else(|| panic!("no {name}: {:?}", output.findings));
            assert!((value - expected).abs() < 0.002 * expected, "{name}: {value}, not {expected}");
        };
        about("train.window_step_time", 16.0 / 16.01);
        about("train.window_samples_per_s", 16.01);
        about("train.window_tokens_per_s", 16.01 * 4096.0);
        about("train.window_tflops_per_gpu", 16.01 * 4096.0 * 4.687e10 / 16.0 / 1e12);
        about("train.window_mfu", 16.01 * 4096.0 * 4.687e10 / 16.0 / 989e12);
        assert!(
            value(&output, "train.step_time").is_some_and(|whole| whole > 1.5),
            "the whole run was slower"
        );
    }

    #[test]
    fn a_window_that_the_log_lacks_in_part_has_a_reason_and_no_number() {
        let all = fsdp(40, falls);
        let hole: String = all.split_inclusive('\n').filter(|line| !line.contains("Batch 31 ")).collect();
        let late: String = all.split_inclusive('\n').skip(5).collect();
        let again = fsdp(36, falls) + &all.split_inclusive('\n').skip(20).collect::<String>();
        let bar = |at: u64| {
            format!(
                "\r{at}%|#| {at}/40 [00:01<00:02, 2.00it/s]\n{{'loss': 4.0, 'grad_norm': 1.0, 'epoch': 0.1}}\n"
            )
        };
        let trainer: String = (1..=40).map(bar).collect();
        let tenth = |step: u64| format!("step: {step}  loss: 7.1  memory: 9.74GiB(10.25%)  tps: 1000\n");
        let means: String = [1, 10, 20, 30, 40].map(tenth).concat();
        for (text, window, why) in [
            (all.clone(), (38, 43), "it has 2 of 6 lines; its last line is batch 39"),
            (all, (50, 52), "it has 0 of 3 lines"),
            (hole, (30, 32), "it has 2 of 3 lines"),
            (late, (30, 32), "it begins at batch 5"),
            (again, (30, 32), "restarted or went back"),
            (trainer, (30, 32), "it prints running means"),
            (means, (9, 9), "its lines are means of all steps since the line before"),
        ] {
            let output = ran(window, FACTS, &text);
            let text = message(&output, UNKNOWN).unwrap_or_else(|| panic!("{why}: {:?}", output.findings));
            assert!(text.contains(why), "{text}");
            assert!(!output.metrics.iter().any(|metric| metric.name.starts_with("train.window_")), "{why}");
        }
        let whole = ran((0, 0), FACTS, &fsdp(40, falls));
        assert_eq!(message(&whole, UNKNOWN), None, "{:?}", whole.findings);
    }

    #[test]
    fn logs_that_count_from_one_are_read_as_windows_count() {
        let line =
            |step: u64| format!("step: {step}  loss: 7.1  memory: 9.74GiB(10.25%)  tps: {}\n", 1000 + step);
        let text: String = (1..=40).map(line).collect();
        let output = ran((9, 9), FACTS, &text);
        assert_eq!(value(&output, "train.window_tokens_per_s"), Some(16.0 * 1010.0), "{:?}", output.findings);
    }
}
