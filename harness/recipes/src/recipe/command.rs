//! Any program: how it ended, and how long it took.

use super::{JobInput, Output, RecipeSpec};
use metric::unit::{Better, Unit};
use metric::{Blames, Files, MetricSpec, RunNoise};

pub(super) const EXIT_CODE: MetricSpec = MetricSpec::new(
    "command.exit_code",
    "the exit code of the program; the highest of its tasks",
    Unit::Count,
    Better::Neither,
    Files::Output,
)
.blaming(Blames::OddNode)
.next("look at stdout and stderr of the job, in `raw` of the case");
const SECONDS: MetricSpec = MetricSpec::new(
    "command.seconds",
    "how long the job ran, launch included; exact to two looks of the harness at its jobs, 10 s",
    Unit::Seconds,
    Better::Lower,
    Files::Output,
)
// A launcher is asked every few seconds whether a job has ended.
.varying(RunNoise::Absolute(1.5))
.resolved_to(10.0);

/// Reads no file: only the exit code and the time of the job.
pub(crate) const SPEC: RecipeSpec = RecipeSpec {
    name: "command",
    about: "how a program ended, and how long it took",
    metrics: &[EXIT_CODE, SECONDS],
    tables: &[],
    findings: &[],
    reads_nccl_log: false,
    compares_clocks: false,
    reads_inspector: false,
    run: &run,
};

fn run(job: &JobInput) -> Output {
    let mut output = Output::default();
    if let Some(code) = job.exit_code {
        output.metrics.push(EXIT_CODE.of(job.dims(), f64::from(code)));
    }
    if let Some(seconds) = job.seconds {
        output.metrics.push(SECONDS.of(job.dims(), seconds));
    }
    output
}
