//! Megatron-DeepSpeed prints the samples and the time of an iteration, and samples per second beside them: one follows from the
//! others, so a line in which it does not was torn, mixed with another, or is of another unit.

use super::flops::CODE;
use super::gather::Series;
use super::step::StepLine;
use metric::finding::Finding;

/// Rounding, also of small rates with three decimals, makes less of a difference.
const APART: f64 = 0.02;

/// By what factor the rate is not that of the samples and the time.
fn factor(step: &StepLine) -> Option<f64> {
    let (seconds, rate) = step.seconds.zip(step.samples_per_s)?;
    let factor = seconds * rate / step.global_batch? as f64;
    // Of lines that differ, time and rate may be of two ranks; rates below have too few digits.
    let is_plain = step.fastest.is_none() && !step.is_running_mean && rate >= 0.05;
    (is_plain && factor.is_finite()).then_some(factor)
}

pub(super) fn conflicting_lines(series: &Series) -> Option<Finding> {
    let mut all = series.steps.iter().filter(|step| factor(step).is_some_and(|it| (it - 1.0).abs() > APART));
    let step = all.next()?;
    let more = 1 + all.count();
    let ((seconds, rate), batch) = step.seconds.zip(step.samples_per_s).zip(step.global_batch)?;
    let why = format!(
        "{}: {rate} samples/s x {seconds} s at iteration {} is {:.1} samples, its batch is {batch}; first of {more}",
        series.render(),
        step.iteration,
        seconds * rate
    );
    Some(Finding::new(CODE, why).line(step.line))
}

#[cfg(test)]
mod tests {
    use super::super::read;

    fn found(rates: &[&str]) -> Vec<String> {
        let line = |(at, rate): (usize, &&str)| {
            format!(
                " iteration {at:8}/     200 | consumed samples: {:12} | elapsed time per iteration (ms): 5350.0 | global batch size: \
                 192 | lm loss: 1.100000E+01 | number of nan iterations:   0 | samples per second: {rate} | TFLOPs: 48.77 |\n",
                at * 192
            )
        };
        let text: String = (1..).zip(rates).map(line).collect();
        let log = read(text.as_bytes()).expect("read");
        log.findings.iter().map(|it| format!("{}: {}", it.code, it.message)).collect()
    }

    #[test]
    fn samples_per_second_that_batch_and_time_do_not_give_are_a_finding() {
        assert_eq!(found(&["35.888", "35.9", "36", "35.888"]), Vec::<String>::new());
        let why = "training-disagrees: megatron: 17.9 samples/s x 5.35 s at iteration 2 is 95.8 samples, its batch is 192; first of 1";
        assert_eq!(found(&["35.888", "17.900", "35.888"]), [why]);
        assert_eq!(found(&["0.035", "nan", "35.888"]), Vec::<String>::new(), "too few digits, and none");
        assert!(
            found(&["4.486", "4.486"])[0].ends_with("its batch is 192; first of 2"),
            "of one GPU of eight"
        );
    }
}
