//! DCGM's diagnosis: how many of its tests failed on each GPU, and on the node as a whole.

use super::{ToolFinding, about, read_text};
use crate::recipe::shared_findings::FileFinding;
use crate::recipe::{JobInput, Output, RecipeSpec, Workload};
use logs::node_tools::dcgm::{self, Status};
use metric::finding_kinds;
use metric::unit::{Better, Unit};
use metric::{Blames, Covers, DataCheck, Dim, Files, MetricSpec, Names};
use std::collections::{BTreeMap, BTreeSet};

const CHECK: DataCheck = DataCheck {
    sound: 0.0,
    cause: "diagnosis-failed",
    wrong: "DCGM reports failed tests",
    next: "assert `dcgm.failed` and `dcgm.node_failed` with `equals = 0` in the case",
};
const NEXT: &str = "look at the message of the test, and run `dcgmi diag` again on {nodes}; a reset may help, else replace it";

const FAILED: MetricSpec = MetricSpec::new(
    "dcgm.failed",
    "tests of DCGM's diagnosis that failed on the GPU; from level 2 on not given where its memory or its PCIe link was not tested",
    Unit::Count,
    Better::Lower,
    Files::Output,
)
.per(&[Dim::Node, Dim::Gpu])
.blaming(Blames::Part)
.naming(Names::Coded(None, "HRN-GPU-DIAGNOSIS"))
.explained_by(&[DcgmFinding::Failed.code()])
.checking(CHECK)
.next(NEXT);
const NODE_FAILED: MetricSpec = MetricSpec::new(
    "dcgm.node_failed",
    "tests of DCGM's diagnosis that failed and concern no single GPU: settings, libraries, switches",
    Unit::Count,
    Better::Lower,
    Files::Output,
)
.per(&[Dim::Node])
.blaming(Blames::OddNode)
.naming(Names::Coded(Some("node"), "HRN-NODE-UNFIT"))
.covering(Covers::NoNics)
.explained_by(&[DcgmFinding::Failed.code()])
.checking(CHECK)
.next("look at the message of the test: most are settings, such as persistence mode, and no hardware");

pub(crate) const SPEC: RecipeSpec<'static> = RecipeSpec {
    name: "dcgm_diag",
    about: "DCGM's diagnosis: the tests that failed, by GPU",
    metrics: &[FAILED, NODE_FAILED],
    tables: &[],
    findings: &[DcgmFinding::ALL, ToolFinding::ALL, FileFinding::ALL],
    reads_nccl_log: false,
    compares_clocks: false,
    reads_inspector: false,
    run: &run,
};

finding_kinds! {
    /// Of tests of DCGM.
    pub(crate) enum DcgmFinding {
        Failed = "dcgm-failed": Note,
        Warned = "dcgm-warned": Note,
        Skipped = "dcgm-skipped": Note,
    }
}

/// What came of the tests of a GPU, or of the node.
#[derive(Default)]
struct Tested {
    failed: u32,
    /// A test of it had no result.
    is_unmeasured: bool,
    /// Any test that names it had a result.
    has_run: bool,
    /// Of `HARDWARE`, those that ran.
    hardware: BTreeSet<&'static str>,
}

/// Tests of each level from 2 on, as DCGM 4 calls them and as older ones do.
const HARDWARE: [(&str, &str); 2] = [("memory", "gpu memory"), ("pcie", "pcie")];

fn hardware(test: &str) -> Option<&'static str> {
    let test = test.to_ascii_lowercase();
    HARDWARE.iter().find(|(new, old)| test == *new || test == *old).map(|(new, _)| *new)
}

fn run(job: &JobInput) -> Output {
    let mut output = Output::default();
    let Some((file, dims, diagnosis)) = read_text(job, &mut output, dcgm::read) else { return output };
    let level = match &job.workload {
        Workload::NodeTool { level, .. } => level.unwrap_or_default(),
        _ => 0,
    };
    let mut gpus: BTreeMap<u32, Tested> = BTreeMap::new();
    let mut of_node = Tested::default();
    for result in &diagnosis.results {
        if let Some(gpu) = result.gpu {
            gpus.entry(gpu).or_default().has_run |= result.status.has_shown();
        }
        let gpu = result.gpu.filter(|_| !result.is_of_node());
        let tested = gpu.map_or(&mut of_node, |gpu| gpus.entry(gpu).or_default());
        tested.failed += u32::from(result.status == Status::Fail);
        tested.is_unmeasured |= result.status == Status::Unmeasured;
        if result.status.has_shown() {
            tested.hardware.extend(hardware(&result.test));
        }
        let (code, word) = match result.status {
            Status::Fail => (DcgmFinding::Failed.code(), "failed"),
            Status::Warn => (DcgmFinding::Warned.code(), "warns"),
            Status::Skip => (DcgmFinding::Skipped.code(), "was skipped"),
            Status::Unmeasured => (ToolFinding::NotMeasured.code(), "measured nothing, run it by itself"),
            Status::Pass => continue,
        };
        let why = if result.why.is_empty() { String::new() } else { format!(": {}", result.why.join("; ")) };
        let message = format!("test `{}` of DCGM {word}{why}", result.test);
        output.findings.push(about(job, file, code, result.gpu, message));
    }
    output.data_wrong = of_node.failed > 0 || gpus.values().any(|tested| tested.failed > 0);
    // Tests that are cut off may be the ones that failed.
    let has_run = diagnosis.results.iter().any(|result| result.status.has_shown());
    let is_whole = diagnosis.incomplete.is_none() && !of_node.is_unmeasured && has_run;
    if let Some(what) = diagnosis.incomplete {
        let message = format!("{what}: tests may be missing");
        output.findings.push(about(job, file, ToolFinding::NotMeasured.code(), None, message));
    }
    if !has_run {
        let message = "no test of DCGM has a result".to_owned();
        output.findings.push(about(job, file, ToolFinding::NotMeasured.code(), None, message));
    }
    if is_whole || of_node.failed > 0 {
        output.metrics.push(NODE_FAILED.of(dims.clone(), f64::from(of_node.failed)));
    }
    for (gpu, tested) in &gpus {
        // A diagnosis of level 2 that looked at no memory, or at no link, has not shown that the GPU is good.
        let all = tested.hardware.union(&of_node.hardware).count() == HARDWARE.len();
        let is_enough = all || level < 2 && tested.has_run;
        if tested.failed > 0 || is_whole && !tested.is_unmeasured && is_enough {
            output.metrics.push(FAILED.of(dims.clone().with(Dim::Gpu, *gpu), f64::from(tested.failed)));
        } else if is_whole && !tested.is_unmeasured {
            let why = match level < 2 {
                true => "no test of DCGM has a result for it",
                false => "DCGM did not test its memory or its PCIe link",
            };
            let why = why.to_owned();
            output.findings.push(about(job, file, ToolFinding::NotMeasured.code(), Some(*gpu), why));
        }
    }
    for (name, version) in [("dcgm", diagnosis.version), ("driver", diagnosis.driver)] {
        output.versions.extend(version.map(|version| (name.to_owned(), [version].into())));
    }
    output
}
