//! Figures of nccl-tests that follow from others, computed again, apart from the reader's own check: time and size
//! give algbw, algbw and the number of ranks give busbw, and all busbw give the average.

use logs::nccl_tests::{Half, NcclRun};
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
