//! Checks the output of nccl-tests against the reports of its ranks: time, calls, kernels and sizes of each row. Adds
//! what the output lacks: how fast the transfer itself was, and which ranks waited in it. Where both contradict each
//! other the printed numbers cannot be trusted, and both are reported.

mod compared;
pub(super) mod inspected;
pub(super) mod printed;
mod rank;
#[cfg(test)]
mod tests;

use super::inspector::{self, InspectorFinding};
use super::nccl_tests::nccl_metric;
use super::{FileRole, InputFile, JobInput, Output, RecipeSpec, Workload};
use crate::recipe::shared_findings::{CallFinding, ReportFinding};
use metric::finding::Finding;
use metric::finding_kinds;
use metric::unit::{Better, Unit};
use metric::{Dim, Files, MetricSpec};
use printed::Printed;
use rank::{RankError, RankRows};

const fn row_metric(name: &'static str, about: &'static str, unit: Unit, better: Better) -> MetricSpec {
    nccl_metric(name, about, unit, better, Files::Reports).per(&[Dim::Op, Dim::SizeBytes, Dim::Place])
}

const TIME: MetricSpec = row_metric(
    "nccl.profile_time",
    "mean time of one operation by the reports: from the first launching call to the end of the last kernel, mean over \
     the profiled ranks",
    Unit::Microseconds,
    Better::Lower,
);
const RATIO: MetricSpec = row_metric(
    "nccl.profile_ratio",
    "ratio of the time by the reports to the printed one",
    Unit::Ratio,
    Better::Neither,
);
const BUSBW: MetricSpec = row_metric(
    "nccl.profile_busbw",
    "bus bandwidth of the transfer alone: by the fastest rank of each operation, whose kernel waited least",
    Unit::GigabytesPerSecond,
    Better::Higher,
);
const RANKS: MetricSpec = nccl_metric(
    "nccl.profile_ranks",
    "ranks whose reports were compared with the output",
    Unit::Count,
    Better::Neither,
    Files::Reports,
);
const WAIT: MetricSpec = MetricSpec::new(
    "rank.nccl_wait",
    "excess of a rank's kernel times over the fastest rank's, mean over the timed operations",
    Unit::Microseconds,
    Better::Lower,
    Files::Reports,
)
.per(&[Dim::Rank, Dim::Node, Dim::Op, Dim::SizeBytes, Dim::Place]);

/// Reads nsys reports, or records of NCCL's Inspector, and the output of nccl-tests.
pub(crate) const SPEC: RecipeSpec = RecipeSpec {
    name: "nccl_profile",
    about: "the output of nccl-tests compared with nsys reports, or with records of NCCL's Inspector",
    metrics: &[TIME, RATIO, BUSBW, RANKS, WAIT],
    tables: nsys::nccl::TABLES_AND_DIAGNOSTICS,
    findings: &[
        ReportFinding::ALL,
        CallFinding::ALL,
        ProfileFinding::ALL,
        InspectorFinding::ALL,
        inspector::FROM_READER,
    ],
    reads_nccl_log: false,
    compares_clocks: false,
    reads_inspector: true,
    run: &run,
};

finding_kinds! {
    /// Of output and reports that were compared.
    pub(crate) enum ProfileFinding {
        NotCompared = "profile-not-compared": NoNumber,
        CallsDisagree = "profile-calls-disagree": NoNumber,
        TimeDisagrees = "profile-time-disagrees": Note,
        NoLaunches = "profile-no-launches": NoNumber,
    }
}

fn run(job: &JobInput) -> Output {
    let mut output = Output::default();
    if !matches!(job.workload, Workload::NcclTests { .. }) {
        return output;
    }
    let exports: Vec<&InputFile> = job.files_of(FileRole::NsysExport).collect();
    let records = job.files_of(FileRole::Inspector).next().filter(|_| exports.is_empty());
    // The collector reports missing reports.
    if exports.is_empty() && records.is_none() {
        return output;
    }
    let printed = match Printed::read(job) {
        Ok(printed) => printed,
        Err(why) => {
            output.findings.push(Finding::new(ProfileFinding::NotCompared.code(), why));
            return output;
        }
    };
    if let Some(file) = records {
        inspected::rows(job, &printed, file, &mut output);
        return output;
    }
    let mut ranks = Vec::new();
    let mut whole = job.has_every_export();
    for file in exports {
        let read = job.report_extract(SPEC.name, file, || match rank::read(file, &printed) {
            Ok(rows) => Ok(Ok(rows)),
            Err(RankError::Differs(why)) => Ok(Err(why)),
            Err(RankError::Broken { code, why }) => Err((code, why)),
        });
        whole &= matches!(read, Ok(Ok(_)));
        match read {
            Ok(Ok(rows)) => ranks.push(RankRows { file, rows }),
            // One rank with other calls than printed makes all of the output untrustworthy.
            Ok(Err(why)) => compared::differs(file, why, &mut output),
            Err(finding) => output.findings.push(*finding),
        }
    }
    if !ranks.is_empty() {
        output.metrics.push(RANKS.of(job.dims(), ranks.len() as f64));
        compared::rows(job, &printed, &ranks, &mut output);
    }
    // A mean needs all ranks; a contradiction by some of them counts all the same.
    if !whole {
        output.metrics.clear();
    }
    output
}

/// Dimensions of one row.
fn dims(job: &JobInput, printed: &Printed, row: &printed::Row) -> metric::Dims {
    job.dims()
        .with(Dim::Op, printed.op.name())
        .with(Dim::SizeBytes, row.size_bytes)
        .with(Dim::Place, row.place)
}
