//! fio: what a disk or a shared file system moves.

use super::{ToolFinding, read_text};
use crate::recipe::shared_findings::FileFinding;
use crate::recipe::{JobInput, Output, RecipeSpec};
use logs::node_tools::fio as source;
use metric::unit::{Better, Unit};
use metric::{Blames, Covers, DataCheck, Dim, Files, MetricSpec, Names, RunNoise};

const NEXT: &str =
    "look at `dmesg` and `smartctl -a` of the disk on {nodes}; of a shared file system, at its servers";

const fn disk_metric(name: &'static str, about: &'static str, unit: Unit, better: Better) -> MetricSpec {
    MetricSpec::new(name, about, unit, better, Files::Output)
        .per(&[Dim::Node])
        .blaming(Blames::OddNode)
        .naming(Names::Coded(Some("disk"), "HRN-DISK-SLOW"))
        .covering(Covers::NoNics)
        .next(NEXT)
}

const READ: MetricSpec =
    disk_metric("fio.read", "bytes read per second", Unit::GigabytesPerSecond, Better::Higher);
const WRITE: MetricSpec =
    disk_metric("fio.write", "bytes written per second", Unit::GigabytesPerSecond, Better::Higher);
const READS: MetricSpec = disk_metric("fio.reads", "reads per second", Unit::PerSecond, Better::Higher);
const WRITES: MetricSpec = disk_metric("fio.writes", "writes per second", Unit::PerSecond, Better::Higher);
// The tail of a distribution differs more from run to run than its mean.
const P99: MetricSpec = disk_metric(
    "fio.p99",
    "99th percentile of the latency, of reads or writes, whichever is longer",
    Unit::Microseconds,
    Better::Lower,
)
.varying(RunNoise::NotComparable);
const ERRORS: MetricSpec =
    disk_metric("fio.errors", "jobs of fio that ended with an error", Unit::Count, Better::Lower)
        .checking(DataCheck {
            sound: 0.0,
            cause: "disk-errors",
            wrong: "fio reports errors",
            next: "assert `fio.errors` with `equals = 0` in the case",
        })
        .naming(Names::Coded(Some("disk"), "HRN-DISK-ERRORS"));

pub(crate) const SPEC: RecipeSpec<'static> = RecipeSpec {
    name: "fio",
    about: "rate, operations and latency of a disk or a shared file system, by fio",
    metrics: &[READ, WRITE, READS, WRITES, P99, ERRORS],
    tables: &[],
    findings: &[ToolFinding::ALL, FileFinding::ALL],
    reads_nccl_log: false,
    compares_clocks: false,
    reads_inspector: false,
    run: &run,
};

fn run(job: &JobInput) -> Output {
    let mut output = Output::default();
    let Some((_, dims, measured)) = read_text(job, &mut output, source::read) else { return output };
    output.data_wrong = measured.errors > 0;
    output.metrics.push(ERRORS.of(dims.clone(), f64::from(measured.errors)));
    // What was moved until an error came is no rate.
    if measured.errors == 0 {
        let sides = [(measured.read, READ, READS), (measured.write, WRITE, WRITES)];
        for (side, rate, operations) in sides {
            let Some(side) = side else { continue };
            output.metrics.push(rate.of(dims.clone(), side.rate_gb_s));
            output.metrics.push(operations.of(dims.clone(), side.operations));
        }
        let p99 = [measured.read, measured.write].into_iter().flatten().filter_map(|side| side.p99_us);
        output.metrics.extend(p99.reduce(f64::max).map(|us| P99.of(dims, us)));
    }
    output.versions.extend(measured.version.map(|version| ("fio".to_owned(), [version].into())));
    output
}
