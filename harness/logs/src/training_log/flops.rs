//! Megatron, nanotron and MaxText compute TFLOP/s, the latter two also tokens/s, from the batch and the time that they print
//! beside it, so rate times time is one number for all steps of a batch. It is another one where a restart has another
//! number of GPUs, and different in each step where lengths of sequences count: neither contradicts anything. A step does
//! that stands alone between two that agree, in a run of which at least half agree with them.

use super::gather::Series;
use super::step::{Dialect, StepLine};
use crate::range::Range;
use metric::finding::Finding;
use std::collections::BTreeMap;

/// Code of the finding that TFLOP/s and time of a step contradict those of the others.
pub const CODE: &str = "training-disagrees";

/// A rate of one GPU that follows from the time beside it.
struct Rate {
    name: &'static str,
    /// What comes of it times the time.
    work: &'static str,
    /// Its value, and the decimals that it is printed with.
    printed: fn(&StepLine) -> Option<(f64, i8)>,
}

const RATES: [Rate; 2] = [
    Rate {
        name: "TFLOP/s",
        work: "TFLOP",
        printed: |step| step.tflops_per_gpu.zip(step.decimals.map(|(_, of_rate)| of_rate)),
    },
    Rate { name: "tokens/s", work: "tokens", printed: |step| step.tokens_per_gpu_s.zip(step.token_decimals) },
];

/// The work of one GPU in one step, as exactly as the printed digits show.
fn work(step: &StepLine, rate: &Rate) -> Option<Range> {
    let (seconds, (of_time, _)) = step.seconds.zip(step.decimals)?;
    let (rate, of_rate) = (rate.printed)(step)?;
    let half = |decimals: i8| 0.5 * 0.1_f64.powi(i32::from(decimals));
    // Of lines that differ, time and rate may be of two ranks.
    let is_plain = step.fastest.is_none() && seconds > 0.0 && rate > 0.0 && (seconds * rate).is_finite();
    is_plain.then(|| Range::around(seconds, half(of_time) / 1e3).times(Range::around(rate, half(of_rate))))
}

fn middle(range: Range) -> f64 {
    range.low / 2.0 + range.high / 2.0
}

pub(super) fn conflicting_steps(series: &Series) -> Option<Finding> {
    if !matches!(series.dialect, Dialect::Megatron | Dialect::Nanotron | Dialect::Maxtext) {
        return None;
    }
    // A wrong time contradicts both rates: one finding is enough.
    RATES.iter().find_map(|rate| conflicting_rates(series, rate))
}

fn conflicting_rates(series: &Series, rate: &Rate) -> Option<Finding> {
    // Only Megatron's batch grows while the run goes on, and only it prints every batch exactly.
    let batch = |step: &StepLine| step.global_batch.or((series.dialect != Dialect::Megatron).then_some(0));
    let mut by_batch: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for (batch, work) in series.steps.iter().filter_map(|step| batch(step).zip(work(step, rate))) {
        by_batch.entry(batch).or_default().push(middle(work));
    }
    by_batch.values_mut().for_each(|all| all.sort_by(f64::total_cmp));
    let is_usual = |batch: u64, work: Range| {
        let all = by_batch.get(&batch).map_or(&[][..], Vec::as_slice);
        let width = work.high - work.low;
        let below = all.partition_point(|it| *it < work.low - width / 2.0);
        let upto = all.partition_point(|it| *it <= work.high + width / 2.0);
        2 * (upto - below) >= all.len()
    };
    // A run that goes on may have other GPUs.
    let begins_again = |step: &StepLine| series.restarts.iter().any(|restart| restart.line == step.line);
    let alone = series.steps.windows(3).filter_map(|steps| {
        let [before, step, after] = steps else { return None };
        let of_step = batch(step)?;
        if [before, after].iter().any(|it| batch(it) != Some(of_step)) {
            return None;
        }
        let (low, this, high) = (work(before, rate)?, work(step, rate)?, work(after, rate)?);
        let differs = low.meets(high) && !this.meets(low) && !this.meets(high);
        let is_one = differs && is_usual(of_step, low) && !begins_again(step) && !begins_again(after);
        is_one.then_some((step, this, low))
    });
    let mut alone = alone.peekable();
    let (step, this, usual) = alone.next()?;
    let more = 1 + alone.count();
    let ((value, _), seconds) = (rate.printed)(step).zip(step.seconds)?;
    let (name, made) = (rate.name, rate.work);
    let why = format!(
        "{}: {value} {name} x {seconds} s at iteration {} is {:.1} {made}, {:.1} before and after; first of {more}",
        series.render(),
        step.iteration,
        middle(this),
        middle(usual)
    );
    Some(Finding::new(CODE, why).line(step.line))
}

#[cfg(test)]
mod tests {
    use super::super::read;

    fn log(steps: &[(f64, f64, u32)]) -> String {
        let line = |(at, (ms, rate, batch)): (usize, &(f64, f64, u32))| {
            format!(
                " iteration {at:8}/     100 | elapsed time per iteration (ms): {ms:.1} | throughput per GPU \
                 (TFLOP/s/GPU): {rate:.1} | global batch size: {batch:5} | lm loss: 1.0E+00 |\n"
            )
        };
        (1..).zip(steps).map(line).collect()
    }

    fn found(text: &str) -> Vec<String> {
        let log = read(text.as_bytes()).expect("read");
        log.findings.iter().map(|it| format!("{}: {}", it.code, it.message)).collect()
    }

    /// Steps of 4000 TFLOP in 10 s and more, as Megatron rounds both.
    fn honest(from: usize, flops: f64, batch: u32) -> Vec<(f64, f64, u32)> {
        let time = |at: usize| 10.0 + (at * 7919 % 997) as f64 / 331.7;
        (from..from + 20).map(|at| (time(at) * 1e3, flops / time(at), batch)).collect()
    }

    #[test]
    fn flops_that_differ_between_two_that_agree_are_a_finding() {
        let mut steps = honest(0, 4000.0, 64);
        assert_eq!(found(&log(&steps)), Vec::<String>::new());
        (steps[9].0, steps[9].1) = (10_000.0, 800.0);
        let expected = "training-disagrees: megatron: 800 TFLOP/s x 10 s at iteration 10 is 8000.0 TFLOP, ";
        let lines = found(&log(&steps));
        assert!(lines.len() == 1 && lines[0].starts_with(expected), "{lines:?}");
        assert!(lines[0].ends_with(" before and after; first of 1"), "{lines:?}");
        let in_turn: Vec<(f64, f64, u32)> =
            (0..20).map(|at| (10_000.0, if at % 2 == 0 { 400.0 } else { 800.0 }, 64)).collect();
        assert_eq!(found(&log(&in_turn)).len(), 1);
        let two = log(&in_turn).lines().map(|line| format!("0: {line}\n1: {line}\n")).collect::<String>();
        assert_eq!(found(&two).len(), 2);
    }

    #[test]
    fn other_gpus_other_batches_and_sequences_of_any_length_contradict_nothing() {
        let restarted = [honest(0, 4000.0, 64), honest(20, 8000.0, 64), honest(40, 4000.0, 64)].concat();
        assert_eq!(found(&log(&restarted)), Vec::<String>::new());
        let ramp = [honest(0, 1000.0, 16), honest(20, 2000.0, 32), honest(40, 4000.0, 64)].concat();
        assert_eq!(found(&log(&ramp)), Vec::<String>::new());
        let each: Vec<(f64, f64, u32)> =
            (0..20).map(|at| (10_000.0, 400.0 + f64::from(at * 37 % 101), 64)).collect();
        assert_eq!(found(&log(&each)), Vec::<String>::new());
        // Two lengths by chance next to each other, where most steps have others.
        let mut some = each;
        (some[3].1, some[5].1) = (444.0, 444.0);
        assert_eq!(found(&log(&some)), Vec::<String>::new());
        let mut last = honest(0, 4000.0, 64);
        last[19].1 *= 2.0;
        assert_eq!(found(&log(&last)), Vec::<String>::new(), "what follows it is not known");
    }

    #[test]
    fn figures_without_a_batch_or_of_other_programs_are_not_compared() {
        let mut steps = honest(0, 4000.0, 64);
        steps[9].1 = 800.0;
        let text = log(&steps);
        assert_eq!(found(&text.replace("global batch size", "something")), Vec::<String>::new());
        assert_eq!(found(&text.replace("throughput per GPU (TFLOP/s/GPU)", "TFLOPs")), Vec::<String>::new());
        assert_eq!(
            found(&text.replace("throughput per GPU (TFLOP/s/GPU): 800.0", "x: 1")),
            Vec::<String>::new()
        );
    }
}
