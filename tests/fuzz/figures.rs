//! Figures that follow from others, computed again, apart from the readers' own checks: of nccl-tests and NCCL's Inspector
//! time and size give algbw, algbw and the number of ranks give busbw; all busbw give the average; times and arrays give
//! STREAM's rates; TFLOP/s and times of Megatron's steps give one number. A contradiction is here a little more than what
//! the readers take for one.

use logs::inspector::{InspectorLog, MemberRecords, Series, Spread};
use logs::nccl_tests::{Half, NcclRun};
use logs::training_log::{self, Dialect, StepLine, TrainingLog};
use metric::op::Op;

/// Why a run that was read without a finding contradicts itself.
pub(crate) fn contradiction(run: &NcclRun) -> Option<String> {
    let halves = run.rows.iter().flat_map(|row| {
        [&row.out_of_place, &row.in_place].into_iter().flatten().map(|half| (row.size_bytes, half))
    });
    // Other operations count other bytes, and times of the CPU are not those that bandwidths come from.
    if run.cpu_time || run.op != Some(Op::AllReduce) {
        return None;
    }
    halves.clone().find_map(|(size, half)| half_contradiction(size, half))
}

fn half_contradiction(size: u64, half: &Half) -> Option<String> {
    let (time, algbw) = (half.time_us, half.algbw_gb_s);
    // Bytes in a microsecond are a thousandth of a gigabyte in a second. What rounding can hide is no contradiction: the
    // last digit of a printed time is a whole at worst, that of a bandwidth a hundredth, and a tenth above 10,000.
    let (low, high) = (size as f64 / (time + 0.51) / 1e3, size as f64 / (time - 0.51).max(1e-9) / 1e3);
    let round = if algbw >= 9_999.0 { 0.51 } else { 0.0051 };
    let fits = algbw + round >= low && algbw - round <= high;
    (!fits).then(|| format!("size {size} in {time} us is no algbw of {algbw} GB/s"))
}

/// Whether the printed average is that of the rows. It is taken of what the program measured, and the rows are rounded.
pub(crate) fn average(run: &NcclRun) -> Option<String> {
    let halves = run.rows.iter().flat_map(|row| [&row.out_of_place, &row.in_place]).flatten();
    let rates: Vec<f64> = halves.map(|half| half.busbw_gb_s).collect();
    let printed = run.average_busbw_gb_s.filter(|_| run.concluded && !rates.is_empty())?;
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let fits = (mean - printed).abs() <= 0.011 + printed.abs() * 1e-4;
    (!fits).then(|| format!("the mean of the rows is {mean} GB/s, the printed average {printed} GB/s"))
}

/// The sums over the calls of a rank: the best bandwidth is that of the shortest time, the lowest that of the longest.
pub(crate) fn inspector(log: &InspectorLog) -> Option<String> {
    log.series.iter().find_map(|series| {
        let member = log.members.get(series.member)?;
        let formulas = formulas(series, member);
        let (algbw, busbw) = (series.algbw_gb_s?, series.busbw_gb_s?);
        let is_of_all = [algbw, busbw].iter().all(|spread| spread.n == series.calls);
        let time = series.time_us.filter(|time| time.n == series.calls && is_of_all)?;
        let fits = |(bytes, factor): &(f64, f64)| follows(*bytes, *factor, time, algbw, busbw);
        let is_odd = !formulas.is_empty() && !formulas.iter().any(fits);
        is_odd.then(|| {
            format!("{} bytes of {} in {time:?} us: {algbw:?}, {busbw:?}", series.bytes, series.operation)
        })
    })
}

/// Bytes that count, and how many times the rate goes over the bus. Whether a call is one between two ranks is not known.
fn formulas(series: &Series, member: &MemberRecords) -> Vec<(f64, f64)> {
    let (bytes, ranks) = (series.bytes as f64, member.ranks as f64);
    let pair = (bytes, 1.0);
    match series.operation.as_str() {
        "AllReduce" => vec![(bytes, 2.0 * (ranks - 1.0) / ranks), pair],
        "AllGather" | "ReduceScatter" => vec![(bytes * ranks, (ranks - 1.0) / ranks), pair],
        "Broadcast" | "Reduce" | "Send" | "Recv" => vec![pair],
        _ => Vec::new(),
    }
}

/// The digits are not known any more: a time may have been rounded to a microsecond, a bandwidth to a GB/s.
fn follows(bytes: f64, factor: f64, time: Spread, algbw: Spread, busbw: Spread) -> bool {
    let around = |time: f64| (bytes / (time + 0.51) / 1e3, bytes / (time - 0.51).max(1e-9) / 1e3);
    let is_rate = |rate: f64, time: f64| {
        let (low, high) = around(time);
        rate * (1.0 + 1e-6) + 0.51 >= low && rate * (1.0 - 1e-6) - 0.51 <= high
    };
    let is_bus = |bus: f64, rate: f64| (bus - rate * factor).abs() <= 0.51 * (1.0 + factor) + 1e-6 * bus;
    is_rate(algbw.max, time.min)
        && is_rate(algbw.min, time.max)
        && is_bus(busbw.max, algbw.max)
        && is_bus(busbw.min, algbw.min)
}

/// Of a row that was read: its rate, and the arrays that were moved in its least time.
pub(crate) fn stream(text: &str) -> Option<String> {
    let after = |name: &str| text.lines().find_map(|line| line.trim().strip_prefix(name));
    let size =
        text.lines().find_map(|line| line.trim().strip_prefix("Memory per array")?.trim().strip_prefix('='));
    let array = plain(size?.split_whitespace().next()?)?;
    [("Copy:", 2.0), ("Triad:", 3.0)].into_iter().find_map(|(name, arrays)| {
        let words: Vec<&str> = after(name)?.split_whitespace().collect();
        let (rate, time) = (plain(words.first()?)?, plain(words.get(2)?)?);
        let mib = arrays * 1.048_576;
        let fits = rate.0 * time.0 <= array.1 * mib * 1.0001 && rate.1 * time.1 * 1.0001 >= array.0 * mib;
        (!fits).then(|| format!("{name} {rate:?} MB/s in {time:?} s, arrays of {array:?} MiB"))
    })
}

/// Where a number in plain digits may lie.
fn plain(word: &str) -> Option<(f64, f64)> {
    if !word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return None;
    }
    let value: f64 = word.parse().ok()?;
    let decimals = word.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let half = 0.51 * 0.1_f64.powi(decimals as i32);
    Some((value - half, value + half))
}

/// A step of Megatron between two with the same batch and the same TFLOP, which has others.
pub(crate) fn training(log: &TrainingLog) -> Option<String> {
    let is_plain = |series: &&training_log::Series| {
        series.dialect == Dialect::Megatron
            && series.restarts.is_empty()
            && series.steps.iter().all(|it| it.copies == 0 && (it.decimals.is_none() || flops(it).is_some()))
    };
    log.series.iter().filter(is_plain).find_map(|series| {
        series.steps.windows(3).find_map(|steps| {
            let [before, step, after] = steps else { return None };
            let batch = step.global_batch.filter(|_| {
                before.global_batch == step.global_batch && after.global_batch == step.global_batch
            })?;
            let (one, this, other) = (flops(before)?, flops(step)?, flops(after)?);
            let all: Vec<(f64, f64)> =
                series.steps.iter().filter(|it| it.global_batch == Some(batch)).filter_map(flops).collect();
            let usual = all.iter().filter(|it| (it.0 - one.0).abs() <= one.1).count();
            let differs = |it: (f64, f64)| (this.0 - it.0).abs() > 4.0 * (this.1 + it.1);
            let is_odd = (one.0 - other.0).abs() <= (one.1 + other.1) / 2.0
                && differs(one)
                && differs(other)
                && 2 * usual >= all.len();
            is_odd.then(|| format!("line {}: {} TFLOP between {} and {}", step.line, this.0, one.0, other.0))
        })
    })
}

/// TFLOP of a step, and how far the printed digits leave it open to either side.
fn flops(step: &StepLine) -> Option<(f64, f64)> {
    let ((seconds, rate), (of_time, of_rate)) = step.seconds.zip(step.tflops_per_gpu).zip(step.decimals)?;
    let half = |decimals: i8| 0.5 * 0.1_f64.powi(i32::from(decimals));
    let flops = seconds * rate;
    let open = half(of_time) / 1e3 * rate + half(of_rate) * seconds;
    // Of few digits nothing follows.
    (seconds > 0.0 && rate > 0.0 && flops.is_finite() && open < flops / 10.0).then_some((flops, open))
}
