//! Compares the rows of all ranks with the printed ones: metrics of both, and a warning where they contradict each other.

use super::super::{Contradiction, InputFile, JobInput, Output};
use super::printed::{Printed, Row};
use super::rank::{RankRows, Timed};
use super::{BUSBW, RATIO, TIME, WAIT, dims};
use crate::recipe::nccl_profile::ProfileFinding;
use metric::finding::Finding;
use metric::{Dim, Dims};
use nsys::nccl::sequence::Placement;

/// Tolerance between the two times: a fraction of the printed one, plus the time per operation from the end of the last
/// kernel to the program's reading of the clock.
const PART: f64 = 0.05;
const PER_OPERATION_US: f64 = 5.0;

/// All metrics that follow from the time of a row, so not those of correctness.
fn time_metrics() -> Vec<String> {
    let own = [TIME.name, RATIO.name, BUSBW.name].map(String::from);
    ["nccl.busbw", "nccl.algbw", "nccl.time"].map(str::to_owned).into_iter().chain(own).collect()
}

/// Reports a rank whose calls are not those of the output.
pub(super) fn differs(file: &InputFile, why: String, output: &mut Output) {
    let finding = file.finding(ProfileFinding::CallsDisagree.code(), why);
    output.doubts.push(Contradiction {
        metrics: time_metrics(),
        dims: Dims::new(),
        cause: finding.code.clone(),
        why: format!("{}: {}", file.shown, finding.message),
    });
    output.findings.push(finding);
}

pub(super) fn rows(job: &JobInput, printed: &Printed, ranks: &[RankRows], output: &mut Output) {
    for row in &printed.rows {
        let placement = if row.place == "in" { Placement::InPlace } else { Placement::OutOfPlace };
        let timed: Vec<(&InputFile, &Timed)> = ranks
            .iter()
            .filter_map(|rank| Some((rank.file, rank.rows.get(&(row.number, placement))?)))
            .collect();
        if timed.is_empty() {
            continue;
        }
        let operations = printed.timed as f64;
        let us = |timed: &Timed| timed.end.wrapping_sub(timed.start) as f64 / 1e3 / operations;
        let profiled_us = timed.iter().map(|(_, timed)| us(timed)).sum::<f64>() / timed.len() as f64;
        let dims = || dims(job, printed, row);
        output.metrics.push(TIME.of(dims(), profiled_us));
        if row.time_us > 0.0 {
            output.metrics.push(RATIO.of(dims(), profiled_us / row.time_us));
        }
        let of_rank = |(file, timed): &(&InputFile, &Timed)| RankKernels {
            rank: file.rank,
            node: file.node.clone(),
            kernels_ns: timed.kernels_ns.clone(),
        };
        transfer(job, printed, row, &timed.iter().map(of_rank).collect::<Vec<_>>(), output);
        if let Some(why) = contradiction(row, profiled_us, timed.len()) {
            let of = format!("{} of {} bytes, {}", printed.op, row.size_bytes, placement.name());
            let why = format!("{of}: {why}");
            output.findings.push(Finding::new(ProfileFinding::TimeDisagrees.code(), why.clone()));
            let dims = Dims::new()
                .with(Dim::Op, printed.op.name())
                .with(Dim::SizeBytes, row.size_bytes)
                .with(Dim::Place, row.place);
            let cause = ProfileFinding::TimeDisagrees.code().to_owned();
            output.doubts.push(Contradiction { metrics: time_metrics(), dims, cause, why });
        }
    }
}

/// The message with both times, where they are too far apart.
fn contradiction(row: &Row, profiled_us: f64, ranks: usize) -> Option<String> {
    let allowed = PART * row.time_us + PER_OPERATION_US + row.rounding_us;
    // NaN agrees with nothing.
    let agree = (profiled_us - row.time_us).abs() <= allowed;
    (!agree).then(|| {
        format!(
            "{:.2} us printed, {profiled_us:.2} us by the reports of {ranks} ranks; tolerance {allowed:.2} us",
            row.time_us
        )
    })
}

/// How long the kernels of the timed operations of one row took on one rank.
pub(super) struct RankKernels {
    pub rank: Option<u32>,
    pub node: Option<String>,
    /// In the order of the operations, which is the same for all ranks.
    pub kernels_ns: Vec<u64>,
}

/// The fastest rank of each operation arrived last and did not wait: its kernel is the transfer, and the excess of the
/// others is waiting.
pub(super) fn transfer(
    job: &JobInput,
    printed: &Printed,
    row: &Row,
    timed: &[RankKernels],
    output: &mut Output,
) {
    let count = timed.iter().map(|rank| rank.kernels_ns.len()).min().unwrap_or(0);
    if count == 0 {
        return;
    }
    let fastest: Vec<u64> =
        (0..count).map(|at| timed.iter().map(|rank| rank.kernels_ns[at]).min().unwrap_or_default()).collect();
    let dims = || dims(job, printed, row);
    let mean_us = fastest.iter().map(|ns| u128::from(*ns)).sum::<u128>() as f64
        / 1e3
        / (count as f64 * f64::from(printed.aggregated));
    if mean_us > 0.0 {
        let algbw = printed.op.algbw_gb_s(row.size_bytes, printed.ranks, mean_us);
        output.metrics.push(BUSBW.of(dims(), algbw * printed.op.bus_factor(printed.ranks)));
    }
    for rank in timed {
        let (Some(number), Some(node)) = (rank.rank, &rank.node) else { continue };
        let waited: u128 =
            rank.kernels_ns.iter().zip(&fastest).map(|(ns, least)| u128::from(ns - least)).sum();
        let wait_us = waited as f64 / 1e3 / count as f64;
        let dims = dims().with(Dim::Rank, number).with(Dim::Node, node.as_str());
        output.metrics.push(WAIT.of(dims, wait_us));
    }
}
