//! stress-ng: what the processors of the host do under load, and whether they and its memory give right results.

use super::{ToolFinding, about, result};
use crate::recipe::shared_findings::FileFinding;
use crate::recipe::{FileRole, JobInput, Output, RecipeSpec, bytes_of};
use logs::node_tools::stress as source;
use metric::finding_kinds;
use metric::unit::{Better, Unit};
use metric::{Blames, Covers, DataCheck, Dim, Files, MetricSpec, Names, RunNoise};

/// In what is said of processors that were not the load's alone. In older runs a limit had them.
const SHARED: &str = "other processes or a ";
/// Below this part of the processors' time it is the system's own.
const LEAST_LOST: f64 = 0.05;
/// A line of a screen.
const LONGEST: usize = 120;

const CPU: MetricSpec = MetricSpec::new(
    "stress.cpu",
    "operations per second on all processors of the host under load, by stress-ng",
    Unit::PerSecond,
    Better::Higher,
    Files::Output,
)
.per(&[Dim::Node])
.blaming(Blames::OddNode)
.naming(Names::Coded(Some("cpu"), "HRN-CPU-SLOW"))
// No fault of its processors: nothing is drained for it.
.coding(SHARED, "HRN-CPU-SHARED")
.explained_by(&[StressFinding::Shared.code()])
.covering(Covers::NoNics)
// Its operations change from release to release.
.varying(RunNoise::NotComparable)
.next(
    "look at temperatures, clocks and the governor of the processors of {nodes} under load, and at \
     `ps -eo pid,user,pcpu,comm --sort=-pcpu`",
);

const WRONG: MetricSpec = MetricSpec::new(
    "stress.wrong",
    "wrong results of processors and wrong contents of memory that stress-ng found",
    Unit::Count,
    Better::Lower,
    Files::Output,
)
.per(&[Dim::Node])
.blaming(Blames::Node)
.naming(Names::Coded(Some("node"), "HRN-NODE-BROKEN"))
.covering(Covers::NoNics)
.checking(DataCheck {
    sound: 0.0,
    cause: "stress-wrong",
    wrong: "stress-ng found wrong results",
    next: "assert `stress.wrong` with `equals = 0` in the case",
})
.explained_by(&[StressFinding::Wrong.code()])
.next("take {nodes} out of service: its memory or a CPU returns wrong data");

pub(crate) const SPEC: RecipeSpec<'static> = RecipeSpec {
    name: "stress_ng",
    about: "rate and right results of the host's processors and memory under load, by stress-ng",
    metrics: &[CPU, WRONG],
    tables: &[],
    findings: &[StressFinding::ALL, ToolFinding::ALL, FileFinding::ALL],
    reads_nccl_log: false,
    compares_clocks: false,
    reads_inspector: false,
    run: &run,
};

finding_kinds! {
    /// Of a host under load.
    pub(crate) enum StressFinding {
        Wrong = "stress-wrong": Note,
        Shared = "stress-shared": Note,
    }
}

fn run(job: &JobInput) -> Output {
    let mut output = Output::default();
    let [node] = job.nodes.as_slice() else { return output };
    // Releases before 0.15.08 print to stderr.
    let (mut text, mut first) = (String::new(), None);
    for file in job.files_of(FileRole::Stdout).chain(job.files_of(FileRole::Stderr)) {
        let Some(bytes) = bytes_of(file, &mut output) else { continue };
        text.push_str(&String::from_utf8_lossy(&bytes));
        text.push('\n');
        first.get_or_insert(file);
    }
    let Some(file) = first else { return output };
    let Some(stressed) = result(job, file, source::read(&text), &mut output) else { return output };
    let dims = job.dims().with(Dim::Node, node.as_str());
    output.data_wrong = !stressed.wrong.is_empty();
    output.metrics.push(WRONG.of(dims.clone(), stressed.wrong.len() as f64));
    output.metrics.extend(stressed.cpu.map(|rate| CPU.of(dims, rate)));
    if let Some(lost) = stressed.lost.filter(|lost| *lost >= LEAST_LOST) {
        let (percent, limit) = (100.0 * lost, 100.0 * LEAST_LOST);
        let mut why = format!("{SHARED}quota had {percent:.0} % of the processors, limit {limit:.0} %");
        for (at, one) in stressed.busy.iter().enumerate() {
            let before = if at == 0 { "; busiest: " } else { ", " };
            let next = format!("{before}{} {} %", one.name, one.percent);
            if why.len() + next.len() > LONGEST {
                break;
            }
            why += &next;
        }
        output.findings.push(about(job, file, StressFinding::Shared.code(), None, why));
    }
    let note = |line: String| about(job, file, StressFinding::Wrong.code(), None, line);
    output.findings.extend(stressed.wrong.into_iter().map(note));
    output
}
