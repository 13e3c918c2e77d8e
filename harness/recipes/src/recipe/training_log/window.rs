//! The steps of a window by the log: which lines are theirs, and how fast these steps were. What a trace shows of the same steps
//! is recipe `window`'s business.

use super::reckoned::{Extent, Throughput};
use super::{TrainingFacts, of_job};
use crate::recipe::window::Asked;
use crate::recipe::{JobInput, Output};
use logs::training_log::Series;
use metric::MetricSpec;
use metric::finding::Finding;
use metric::unit::{Better, Unit};

const STEP_TIME: MetricSpec = of_job(
    "train.window_step_time",
    "how long a step of the window takes by the log: the mean",
    Unit::Seconds,
    Better::Lower,
);
const SAMPLES: MetricSpec = of_job(
    "train.window_samples_per_s",
    "samples per second of all ranks in the steps of the window",
    Unit::PerSecond,
    Better::Higher,
);
const TOKENS: MetricSpec = of_job(
    "train.window_tokens_per_s",
    "tokens per second of all ranks in the steps of the window",
    Unit::PerSecond,
    Better::Higher,
);
const TFLOPS: MetricSpec = of_job(
    "train.window_tflops_per_gpu",
    "what each GPU computes in the steps of the window",
    Unit::Teraflops,
    Better::Higher,
);
const MFU: MetricSpec = of_job(
    "train.window_mfu",
    "the part of a GPU's peak that the model's operations take in the steps of the window",
    Unit::Ratio,
    Better::Higher,
);
pub(super) const METRICS: [MetricSpec; 5] = [STEP_TIME, SAMPLES, TOKENS, TFLOPS, MFU];

/// What stands in the code of the finding that says why nothing is told of a window.
pub(super) const UNKNOWN: &str = "training-window-unknown";

pub(super) fn put(
    job: &JobInput,
    (facts, ranks): (&TrainingFacts, Option<u32>),
    series: &Series,
    output: &mut Output,
) {
    let Some(asked) = &job.window else { return };
    let unknown = |why: String| {
        let why = format!("of steps {}..{} the log gives no times: {why}", asked.first, asked.last);
        Finding::new(UNKNOWN, why)
    };
    let steps = match of_window(series, asked) {
        Ok(steps) => steps,
        Err(why) => return output.findings.push(unknown(why)),
    };
    let told = Throughput::of(facts, ranks, &steps, None, Extent::Window);
    // What is reckoned or contradicts itself in the whole run is so in a part of it, and told once.
    output.findings.extend(told.impossible.map(&unknown));
    if told.step_time.is_none() {
        output.findings.push(unknown(
            "its lines tell neither a step's time nor its throughput; `window.step_time` is the reports'"
                .to_owned(),
        ));
    }
    let values = [told.step_time, told.samples_per_s, told.tokens_per_s, told.tflops_per_gpu, told.mfu];
    for (spec, value) in METRICS.iter().zip(values) {
        output
            .metrics
            .extend(value.filter(|value| value.is_finite()).map(|value| spec.of(job.dims(), value)));
    }
}

/// The lines of the window's steps, all of them, in a log whose numbers are those of one run from its first step on; or why
/// nobody can tell which they are.
fn of_window(series: &Series, asked: &Asked) -> Result<Series, String> {
    let (word, from) = (series.dialect.word(), series.dialect.counts_from());
    let Some(first) = series.steps.first() else { return Err("it tells no step".to_owned()) };
    if series.run > 1 || !series.restarts.is_empty() {
        return Err("the run began anew or went back, and its numbers are not those of one run".to_owned());
    }
    if first.iteration > from {
        return Err(format!(
            "it begins at {word} {}, and whether a window counts from there nobody can tell",
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
    let (told, wanted) = (steps.len() as u64, asked.count());
    if told < wanted {
        let last = series.steps.last().map_or(first.iteration, |step| step.iteration);
        return Err(format!("{told} of its {wanted} lines are there, the last of all is of {word} {last}"));
    }
    if steps.iter().any(|step| step.is_running_mean) {
        return Err("it tells running means, in which other steps count too; `window.step_time` is of these"
            .to_owned());
    }
    Ok(Series { steps, ..series.clone() })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{FACTS, falls, fsdp, of_window as ran, told, value};
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
    fn a_window_that_the_log_does_not_tell_whole_has_no_number_and_a_reason() {
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
        for (text, window, why) in [
            (all.clone(), (38, 43), "2 of its 6 lines are there, the last of all is of batch 39"),
            (all, (50, 52), "0 of its 3 lines are there"),
            (hole, (30, 32), "2 of its 3 lines are there"),
            (late, (30, 32), "it begins at batch 5"),
            (again, (30, 32), "began anew or went back"),
            (trainer, (30, 32), "it tells running means"),
        ] {
            let output = ran(window, FACTS, &text);
            let found = told(&output, UNKNOWN).unwrap_or_else(|| panic!("{why}: {:?}", output.findings));
            assert!(found.contains(why), "{found}");
            assert!(!output.metrics.iter().any(|metric| metric.name.starts_with("train.window_")), "{why}");
        }
        let whole = ran((0, 0), FACTS, &fsdp(40, falls));
        assert_eq!(told(&whole, UNKNOWN), None, "{:?}", whole.findings);
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
