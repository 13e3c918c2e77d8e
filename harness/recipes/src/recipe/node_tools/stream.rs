//! STREAM: what the host's memory moves, and whether the sums come out right.

use super::{ToolFinding, read_text};
use crate::recipe::shared_findings::FileFinding;
use crate::recipe::{JobInput, Output, RecipeSpec};
use logs::node_tools::stream as source;
use metric::unit::{Better, Unit};
use metric::{Blames, Covers, DataCheck, Dim, Files, MetricSpec, Names};

const NEXT: &str = "look for corrected memory errors in the kernel log of {nodes}, and at `dmidecode -t memory` for a module that is missing";

const fn rate(name: &'static str, about: &'static str) -> MetricSpec {
    MetricSpec::new(name, about, Unit::GigabytesPerSecond, Better::Higher, Files::Output)
        .per(&[Dim::Node])
        .blaming(Blames::Node)
        .naming(Names::Coded(Some("memory"), "HRN-MEMORY-SLOW"))
        .covering(Covers::NoNics)
        .next(NEXT)
}

const COPY: MetricSpec = rate("stream.copy", "memory of the host: copies, by STREAM");
const TRIAD: MetricSpec =
    rate("stream.triad", "memory of the host: sums of two arrays into a third, by STREAM");
const OK: MetricSpec = MetricSpec::new(
    "stream.ok",
    "1 where STREAM's own check of its results passed, else 0",
    Unit::Count,
    Better::Higher,
    Files::Output,
)
.per(&[Dim::Node])
.blaming(Blames::Node)
.naming(Names::Coded(Some("node"), "HRN-NODE-BROKEN"))
.covering(Covers::NoNics)
.checking(DataCheck {
    sound: 1.0,
    cause: "memory-wrong",
    wrong: "STREAM reports wrong results",
    next: "assert `stream.ok` with `equals = 1` in the case",
})
.next("take {nodes} out of service: its memory or a CPU returns wrong data");

pub(crate) const SPEC: RecipeSpec<'static> = RecipeSpec {
    name: "stream",
    about: "what the host's memory moves, by STREAM",
    metrics: &[COPY, TRIAD, OK],
    tables: &[],
    findings: &[ToolFinding::ALL, FileFinding::ALL],
    reads_nccl_log: false,
    compares_clocks: false,
    reads_inspector: false,
    run: &run,
};

fn run(job: &JobInput) -> Output {
    let mut output = Output::default();
    let Some((_, dims, rates)) = read_text(job, &mut output, source::read) else { return output };
    output.data_wrong = !rates.valid;
    output.metrics.push(OK.of(dims.clone(), f64::from(u8::from(rates.valid))));
    if rates.valid {
        output.metrics.push(COPY.of(dims.clone(), rates.copy));
        output.metrics.push(TRIAD.of(dims, rates.triad));
    }
    output
}
