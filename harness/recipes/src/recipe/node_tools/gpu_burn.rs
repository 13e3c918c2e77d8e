//! gpu-burn: whether each GPU computes right under full load, how fast, and whether it keeps its rate.

use super::{ToolFinding, about, after, printed, result};
use crate::recipe::shared_findings::FileFinding;
use crate::recipe::{JobInput, NotComparable, Output, RecipeSpec, Workload, read_stream};
use logs::node_tools::gpu_burn::{self as source, Gpu, PARTS};
use metric::finding_kinds;
use metric::unit::{Better, Unit};
use metric::{Blames, Covers, DataCheck, Dim, Files, MetricSpec, Names, RunNoise};

const OK: MetricSpec = MetricSpec::new(
    "burn.ok",
    "1 where every product of the GPU came out right, else 0",
    Unit::Count,
    Better::Higher,
    Files::Output,
)
.per(&[Dim::Node, Dim::Gpu])
.blaming(Blames::Part)
.naming(Names::Coded(None, "HRN-GPU-WRONG"))
.explained_by(&[BurnFinding::Wrong.code()])
.checking(DataCheck {
    sound: 1.0,
    cause: "burn-wrong",
    wrong: "gpu-burn reports wrong products",
    next: "assert `burn.ok` with `equals = 1` in the case",
})
.next("take {nodes} out of service: its results cannot be trusted");
const ENDED: MetricSpec = MetricSpec::new(
    "burn.ended",
    "1 where the GPU computed to the end of the load, else 0: its process died, or it finished nothing any more",
    Unit::Count,
    Better::Higher,
    Files::Output,
)
.per(&[Dim::Node, Dim::Gpu])
.blaming(Blames::Part)
.naming(Names::Coded(None, "HRN-GPU-DIED"))
.explained_by(&[BurnFinding::Stopped.code()])
.checking(DataCheck {
    sound: 1.0,
    cause: "burn-died",
    wrong: "gpu-burn reports a GPU that died",
    next: "assert `burn.ended` with `equals = 1` in the case",
})
.next("look for Xid errors in the kernel log of {nodes}");
const RATE: MetricSpec = MetricSpec::new(
    "burn.rate",
    "matrix products of the GPU under full load: mean rate, without the first quarter of the run",
    Unit::Teraflops,
    Better::Higher,
    Files::Output,
)
.per(&[Dim::Node, Dim::Gpu])
.blaming(Blames::Part)
.naming(Names::Coded(None, "HRN-GPU-SLOW"))
.covering(Covers::NoNics)
.next("look at clocks, temperatures and throttle reasons with `nvidia-smi -q -d PERFORMANCE,TEMPERATURE` on {nodes}");
const KEPT: MetricSpec = MetricSpec::new(
    "burn.kept",
    "mean rate of its slowest 5 % of the run, divided by that of the first 20 %: below 1 it slowed down",
    Unit::Ratio,
    Better::Higher,
    Files::Output,
)
.per(&[Dim::Node, Dim::Gpu])
.blaming(Blames::Part)
.covering(Covers::NoNics)
.varying(RunNoise::FRACTION)
.naming(Names::Coded(None, "HRN-GPU-THROTTLES"))
.explained_by(&[BurnFinding::Slowed.code()])
.next("look at temperatures and throttle reasons with `nvidia-smi -q -d PERFORMANCE,TEMPERATURE` on {nodes} under load");

pub(crate) const SPEC: RecipeSpec<'static> = RecipeSpec {
    name: "gpu_burn",
    about: "right products, rate and lasting rate of each GPU under full load, by gpu-burn",
    metrics: &[OK, ENDED, KEPT, RATE],
    tables: &[],
    findings: &[BurnFinding::ALL, ToolFinding::ALL, FileFinding::ALL],
    reads_nccl_log: false,
    compares_clocks: false,
    reads_inspector: false,
    run: &run,
};

finding_kinds! {
    /// Of GPUs under load.
    pub(crate) enum BurnFinding {
        Wrong = "burn-wrong": Note,
        Slowed = "burn-slowed": Note,
        Stopped = "burn-stopped": Note,
    }
}

/// Below it a person is shown when the GPU slowed down; what is too slow, a suite decides.
const SHOWN_BELOW: f64 = 0.97;

fn run(job: &JobInput) -> Output {
    let mut output = Output::default();
    let Some((file, dims)) = printed(job) else { return output };
    let Some(read) = read_stream(file, &mut output, source::read) else { return output };
    let Some(burn) = result(job, file, read, &mut output) else { return output };
    for (gpu, seen) in (0u32..).zip(&burn.gpus) {
        let at = dims.clone().with(Dim::Gpu, gpu);
        let flag = |is_so: bool| f64::from(u8::from(is_so));
        let mut note = |code: &str, message: String| {
            output.findings.push(about(job, file, code, Some(gpu), message));
        };
        // A process that never began, as where another one has the memory, shows nothing of its GPU.
        if !seen.computed() {
            note(ToolFinding::NotMeasured.code(), "it finished no product".to_owned());
            continue;
        }
        let is_wrong = !seen.died && (seen.ok == Some(false) || seen.ok.is_none() && seen.is_wrong());
        // gpu-burn calls a GPU faulty that has an error.
        let disagrees = !seen.died && seen.is_wrong() && seen.ok == Some(true);
        if disagrees {
            let message = format!("{} came out wrong, and its closing line says `OK`", seen.wrong_products());
            output.not_comparable = Some(NotComparable {
                cause: ToolFinding::NotMeasured.code().to_owned(),
                why: format!("{}: gpu{gpu}: {message}", file.shown),
            });
        } else if is_wrong {
            note(BurnFinding::Wrong.code(), format!("{} came out wrong", seen.wrong_products()));
        }
        let has_ended = !seen.died && seen.stopped.is_none();
        if let Some(part) = seen.stopped {
            note(BurnFinding::Stopped.code(), format!("finished nothing {}", when(job, part + 1)));
        }
        // Without its closing line it may not have come to its end.
        if is_wrong || seen.ok.is_some() && has_ended && !disagrees {
            output.metrics.push(OK.of(at.clone(), flag(!is_wrong)));
        }
        if !has_ended || seen.ok.is_some() {
            output.metrics.push(ENDED.of(at.clone(), flag(has_ended)));
        }
        if let Some(slow) = slowest(seen).filter(|slow| slow.kept < SHOWN_BELOW) {
            let message = format!(
                "fell from {} to {} {}",
                Unit::Teraflops.show(slow.first / 1000.0),
                Unit::Teraflops.show(slow.first * slow.kept / 1000.0),
                when(job, slow.part)
            );
            output.findings.push(about(job, file, BurnFinding::Slowed.code(), Some(gpu), message));
        }
        output.metrics.extend(slowest(seen).map(|slow| KEPT.of(at.clone(), slow.kept)));
        output.metrics.extend(mean(seen, PARTS / 4..PARTS).map(|rate| RATE.of(at, rate / 1000.0)));
        output.data_wrong |= is_wrong || !has_ended;
    }
    output
}

/// When a part of the run began.
fn when(job: &JobInput, part: usize) -> String {
    match &job.workload {
        Workload::NodeTool { seconds: Some(seconds), .. } => {
            after(f64::from(*seconds) * part as f64 / PARTS as f64)
        }
        _ => format!("after {part} % of the run"),
    }
}

/// The mean of a range of parts; nothing where fewer than a fifth of them have a rate.
fn mean(gpu: &Gpu, range: std::ops::Range<usize>) -> Option<f64> {
    let length = range.len();
    let rates: Vec<f64> = gpu.rates.get(range)?.iter().flatten().copied().collect();
    (!rates.is_empty() && rates.len() * 5 >= length).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
}

struct Slowest {
    /// In Gflop/s, of the first fifth of the run without its first twentieth.
    first: f64,
    /// The part that is left of it.
    kept: f64,
    /// Where that begins, in hundredths of the run.
    part: usize,
}

/// The slowest of the windows behind the first fifth.
fn slowest(gpu: &Gpu) -> Option<Slowest> {
    const WINDOW: usize = PARTS / 20;
    let first = mean(gpu, WINDOW..PARTS / 5)?;
    let windows = (PARTS / 5..=PARTS - WINDOW).filter_map(|at| Some((at, mean(gpu, at..at + WINDOW)?)));
    let (slowest_at, slowest) = windows.clone().min_by(|(_, one), (_, other)| one.total_cmp(other))?;
    // It began where it first was nearly as slow.
    let began =
        windows.clone().find(|(_, rate)| *rate <= slowest + 0.1 * (first - slowest)).map(|(at, _)| at);
    Some(Slowest { first, kept: slowest / first, part: began.unwrap_or(slowest_at) })
}
