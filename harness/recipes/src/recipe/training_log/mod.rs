//! Metrics of a training from its log: step times, throughput, and whether its loss is finite and falls.
//! `logs::training_log` reads the logs; `stopped` says why a training stopped.

mod hang;
mod stopped;
#[cfg(test)]
mod tests;
mod throughput;
pub mod torch_failure;

pub(in crate::recipe) use stopped::find_causes;
mod weights;
mod window;

use self::throughput::{Extent, Throughput};
use super::efa_traffic;
use super::{
    Failure, FileRole, InputFile, JobInput, NotComparable, Output, RecipeSpec, TrainingFacts, Workload,
};
use crate::recipe::ras_hang::Behind;
use crate::recipe::shared_findings::{FileFinding, RateFinding};
use logs::training_log::{self as source, Dialect, Series, StepLine, TrainerSummary, figures};
use metric::finding::Finding;
use metric::finding_kinds;
use metric::unit::{Better, Unit};
use metric::{Blames, DataCheck, Dim, Files, MetricSpec, Names, Role, RunNoise};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;

const fn job_metric(name: &'static str, about: &'static str, unit: Unit, better: Better) -> MetricSpec {
    MetricSpec::new(name, about, unit, better, Files::Output)
        .blaming(Blames::Node)
        .with(&[Role::OfTraining])
        .next("run `harness logs steps` on stdout of the job, in `raw` of the case")
}

const STEP_TIME: MetricSpec =
    job_metric("train.step_time", "mean step time after the warm-up", Unit::Seconds, Better::Lower);
const STEP_TIME_MEDIAN: MetricSpec =
    job_metric("train.step_time_median", "median step time after the warm-up", Unit::Seconds, Better::Lower);
const STEP_TIME_CV: MetricSpec = job_metric(
    "train.step_time_cv",
    "coefficient of variation of step times after the warm-up; not given where the log prints means of several steps",
    Unit::Ratio,
    Better::Lower,
)
.varying(RunNoise::FRACTION);
const SAMPLES: MetricSpec = job_metric(
    "train.samples_per_s",
    "samples per second of all ranks together, as logged, or from the samples and the time of a step",
    Unit::PerSecond,
    Better::Higher,
);
const TOKENS: MetricSpec = job_metric(
    "train.tokens_per_s",
    "tokens per second of all ranks together, as logged, or from samples and their length",
    Unit::PerSecond,
    Better::Higher,
);
const TFLOPS: MetricSpec = job_metric(
    "train.tflops_per_gpu",
    "TFLOP/s of each GPU, as logged, or from tokens and the model's shape: 6 x parameters + 12 x layers x hidden x \
     sequence operations per token",
    Unit::Teraflops,
    Better::Higher,
);
const MFU: MetricSpec = job_metric(
    "train.mfu",
    "model FLOPs utilization as a fraction of the GPU's dense bfloat16 peak, as logged, or from TFLOP/s per GPU and \
     the instance's profile",
    Unit::Ratio,
    Better::Higher,
);
// The loss is that of all ranks together; the program itself names a rank with NaN.
const LOSS: MetricSpec =
    job_metric("train.loss", "the last finite loss", Unit::Count, Better::Lower).blaming(Blames::NoNode);
const LOSS_FINITE: MetricSpec = job_metric(
    "train.loss_finite",
    "1 where every loss and every gradient norm is finite, 0 where one is not",
    Unit::Count,
    Better::Higher,
)
.blaming(Blames::Part)
.naming(Names::FirstFinding(NAN_RANK))
.explained_by(&[NAN_RANK, NOT_FINITE])
.checking(DataCheck {
    sound: 1.0,
    cause: "loss-not-finite",
    wrong: "the training loss is not finite",
    next: "assert `train.loss_finite` in the case",
})
.with(&[Role::OfTraining]);
const LOSS_SLOPE: MetricSpec = job_metric(
    "train.loss_slope",
    "change of the loss per step over the whole run; below 0 it falls",
    Unit::Count,
    Better::Lower,
)
.blaming(Blames::NoNode);
const LOSS_FALLING: MetricSpec = job_metric(
    "train.loss_falling",
    "1 where the loss falls significantly over the whole run, 0 where it does not",
    Unit::Count,
    Better::Higher,
)
.blaming(Blames::NoNode);
const GRAD_NORM: MetricSpec =
    job_metric("train.grad_norm", "the last finite gradient norm", Unit::Count, Better::Neither);
const STEPS: MetricSpec =
    job_metric("train.steps", "distinct steps in the log", Unit::Count, Better::Neither);
const STEPS_MISSING: MetricSpec = job_metric(
    "train.steps_missing",
    "planned steps that the log lacks; not given where no number of steps is planned",
    Unit::Count,
    Better::Lower,
)
.explained_by(&[ENDED_EARLY]);
const RESTARTS: MetricSpec = job_metric(
    "train.restarts",
    "how often the run restarted or went back to an earlier step",
    Unit::Count,
    Better::Lower,
);
const EFA_PER_STEP: MetricSpec = job_metric(
    "train.efa_bytes_per_step",
    "bytes that a node sent through its NICs per logged step, by their counters: of the whole run, start-up and \
     checkpoints included",
    Unit::Bytes,
    Better::Neither,
)
.per(&[Dim::Node]);

/// For trainings and commands: reads the steps that they log to stdout and stderr.
pub(crate) const SPEC: RecipeSpec = RecipeSpec {
    name: "training_log",
    about: "step times, throughput and loss, from the log of a training",
    metrics: &[
        STEP_TIME,
        STEP_TIME_MEDIAN,
        STEP_TIME_CV,
        SAMPLES,
        TOKENS,
        TFLOPS,
        MFU,
        LOSS,
        LOSS_FINITE,
        LOSS_SLOPE,
        LOSS_FALLING,
        GRAD_NORM,
        STEPS,
        STEPS_MISSING,
        RESTARTS,
        weights::EQUAL,
        EFA_PER_STEP,
        window::STEP_TIME,
        window::SAMPLES,
        window::TOKENS,
        window::TFLOPS,
        window::MFU,
    ],
    tables: &[],
    findings: &[TrainingFinding::ALL, FileFinding::ALL, RateFinding::ALL],
    reads_nccl_log: false,
    compares_clocks: false,
    reads_inspector: false,
    run: &run,
};

finding_kinds! {
    /// Of the log of a training, and why one failed.
    pub(crate) enum TrainingFinding {
        WindowUnknown = "training-window-unknown": NoNumber,
        LossNotFinite = "training-loss-not-finite": Note,
        GradNotFinite = "training-grad-not-finite": Note,
        NanIterations = "training-nan-iterations": Note,
        NanRank = "training-nan-rank": Note,
        EndedEarly = "training-ended-early": Note,
        WeightsOfRank = "training-weights-of-rank": Note,
        WeightsDiffer = "training-weights-differ": Note,
        WeightsUnknown = "training-weights-unknown": NoNumber,
        FlopsDiffer = "training-flops-differ": Note,
        Computed = "training-reckoned": Note,
        BatchDiffers = "training-batch-differs": Note,
        Rendezvous = "rendezvous": NoPlace,
        Exception = "exception": NoPlace,
        NoDumps = "training-no-dump": Note,
        CollectiveMismatch = "collective-mismatch": NoPlace,
        HangUndecided = "hang-undecided": NoPlace,
    }
}

/// Code of the finding that names the step whose loss is not finite.
pub const NOT_FINITE: &str = TrainingFinding::LossNotFinite.code();
/// Code of the finding that counts iterations with NaN.
const NAN_ITERATIONS: &str = TrainingFinding::NanIterations.code();
/// Code of the finding that names the rank with NaN, where the program says which.
pub const NAN_RANK: &str = TrainingFinding::NanRank.code();
/// Code of the finding of a run that ended before its planned steps.
pub const ENDED_EARLY: &str = TrainingFinding::EndedEarly.code();

fn run(job: &JobInput) -> Output {
    let mut output = Output::default();
    let none = TrainingFacts::default();
    let (facts, ranks) = match &job.workload {
        Workload::Training { facts, ranks } => (facts, Some(*ranks)),
        Workload::Command => (&none, None),
        Workload::NcclTests { .. } | Workload::NicPairs { .. } | Workload::NodeTool { .. } => return output,
    };
    let has_nan = stopped::find_causes(job, ranks, Behind::MayWait, &mut output);
    let Some(logs) = read(job, &mut output) else { return output };
    let ReferenceLogs { steps, time, garbled_losses, logs_each_step } = logs;
    // Ranks that train have met.
    if output.failure.as_ref().is_some_and(|failure| failure.cause == torch_failure::RENDEZVOUS) {
        output.failure = None;
    }
    // The steps are those of one rank; NaN on any rank counts.
    let of_nan = [NOT_FINITE, TrainingFinding::GradNotFinite.code(), NAN_ITERATIONS];
    let nan = has_nan || output.findings.iter().any(|it| of_nan.contains(&it.code.as_str()));
    let counted = (&steps, time.summary.as_ref());
    let log = LogState { nan, garbled_losses, logs_each_step };
    let logged_steps = put_steps(job, facts, counted, log, &mut output);
    put_times(job, (facts, ranks), &time.series, time.summary.as_ref(), &mut output);
    window::put(job, (facts, ranks), &time.series, &mut output);
    weights::put(job, (facts, ranks), &mut output);
    efa_per_step(job, logged_steps, &mut output);
    output
}

/// The steps of one rank's run, and the summary that its program prints at the end.
struct RankLog {
    series: Series,
    summary: Option<TrainerSummary>,
    /// Steps of this rank's longest run. Of several runs the last one counts: it continued where the others stopped.
    longest: usize,
    file: usize,
}

/// The ranks whose logs represent the job.
struct ReferenceLogs {
    /// Of the rank that reports most steps, the first of equals.
    steps: Series,
    /// The slowest rank, which holds up all others.
    time: RankLog,
    /// Whether the loss of a step of any rank could not be read.
    garbled_losses: bool,
    /// Whether the program logs each step.
    logs_each_step: bool,
}

/// What holds of the log as a whole.
#[derive(Clone, Copy)]
struct LogState {
    nan: bool,
    garbled_losses: bool,
    logs_each_step: bool,
}

/// The steps of the run that counts. Restarted runs and differences between ranks become findings.
fn read(job: &JobInput, output: &mut Output) -> Option<ReferenceLogs> {
    let files: Vec<&InputFile> =
        job.files_of(FileRole::Stdout).chain(job.files_of(FileRole::Stderr)).collect();
    let mut accounts: Vec<RankLog> = Vec::new();
    let mut lines = 0;
    let mut is_read = false;
    let (mut garbled_losses, mut logs_each_step) = (false, false);
    for (at, file) in files.iter().enumerate() {
        let log = match File::open(&file.path).and_then(|open| source::read(BufReader::new(open))) {
            Ok(log) => log,
            Err(error) => {
                let why = format!("cannot be read: {error}");
                output.findings.push(Finding::new(FileFinding::Unreadable.code(), why).file(&file.shown));
                continue;
            }
        };
        is_read = true;
        lines += log.lines;
        garbled_losses |= log.garbled_losses > 0;
        logs_each_step |= log.logs_each_step;
        // `stopped` says why it failed, with the rank that began it.
        if let Some(finding) = log.findings.iter().find(|it| it.code == source::FLOPS_DISAGREE) {
            let (cause, why) = (finding.code.clone(), format!("{}: {}", file.shown, finding.message));
            output.not_comparable.get_or_insert(NotComparable { cause, why });
        }
        let findings = log.findings.into_iter().filter(|it| it.code != source::FAILURE);
        output.findings.extend(findings.map(|it| on_node(it.file(&file.shown), file)));
        for series in log.series {
            let same = accounts.last_mut().filter(|last| {
                (last.file, last.series.dialect, &last.series.who) == (at, series.dialect, &series.who)
            });
            match same {
                Some(last) => {
                    last.longest = last.longest.max(series.steps.len());
                    last.series = series;
                }
                None => accounts.push(RankLog {
                    longest: series.steps.len(),
                    series,
                    summary: log.summary,
                    file: at,
                }),
            }
        }
    }
    let most = accounts.iter().map(|it| it.longest).max();
    let Some(first) = accounts.iter().position(|it| Some(it.longest) == most) else {
        if is_read {
            let why = format!("no step found in {lines} lines; let the program print each step to stdout");
            output.findings.push(Finding::new(FileFinding::NotUnderstood.code(), why));
        }
        return None;
    };
    // The reference rank comes first.
    accounts.swap(0, first);
    let ranks: Vec<&Series> = accounts.iter().map(|it| &it.series).collect();
    let slow = source::slowest(&ranks).and_then(|slow| {
        let at = accounts.iter().position(|it| std::ptr::eq(&it.series, slow.series))?;
        // Within a file the reader reports it.
        let is_across =
            accounts.iter().any(|it| std::ptr::eq(&it.series, slow.fastest) && it.file != accounts[at].file);
        let file = files[accounts[at].file];
        output.findings.extend(is_across.then(|| on_node(slow.finding().file(&file.shown), file)));
        Some(at)
    });
    let steps = accounts.first()?.series.clone();
    let time = accounts.swap_remove(slow.unwrap_or(0));
    Some(ReferenceLogs { steps, time, garbled_losses, logs_each_step })
}

fn on_node(finding: Finding, file: &InputFile) -> Finding {
    match &file.node {
        Some(node) => finding.node(node.as_str()),
        None => finding,
    }
}

/// Throughput from a step's time and the stated facts, without a log.
pub(super) fn by_step_time(facts: &TrainingFacts, ranks: u32, seconds: f64) -> Throughput {
    let step = StepLine { seconds: Some(seconds), ..StepLine::default() };
    let (dialect, who, restarts) = (Dialect::Lightning, String::new(), Vec::new());
    let series = Series { dialect, who, run: 1, steps: vec![step], restarts };
    Throughput::compute(facts, Some(ranks), &series, None, Extent::Window)
}

/// Metrics that need no times. Returns the number of logged steps.
fn put_steps(
    job: &JobInput,
    facts: &TrainingFacts,
    (series, summary): (&Series, Option<&TrainerSummary>),
    LogState { nan, garbled_losses, logs_each_step }: LogState,
    output: &mut Output,
) -> u64 {
    let steps = &series.steps;
    let by_summary = summary.and_then(|summary| summary.steps_of(series, facts.steps.map(u64::from)));
    let stand_for = by_summary.unwrap_or_else(|| logged_steps(steps));
    // Of a program that logs each step, a line that is not there was lost, and how long its step took is not known.
    let logged = if logs_each_step { steps.len() as u64 } else { stand_for };
    let dims = || job.dims();
    output.metrics.push(STEPS.of(dims(), logged as f64));
    let restarts = series.restarts.len() as u64 + u64::from(series.run.saturating_sub(1));
    output.metrics.push(RESTARTS.of(dims(), restarts as f64));
    if let Some(expected) = facts.steps.map(u64::from) {
        let missing = expected.saturating_sub(logged);
        output.metrics.push(STEPS_MISSING.of(dims(), missing as f64));
        if let (1.., Some(last)) = (missing, steps.last()) {
            let why = format!(
                "{}: ended at {} {}: {logged} of {expected} steps logged",
                series.dialect.name(),
                series.dialect.word(),
                last.iteration
            );
            output.findings.push(Finding::new(ENDED_EARLY, why));
        }
    }
    let is_finite = |value: Option<f64>| value.is_none_or(f64::is_finite);
    let odd = steps.iter().find(|step| {
        !is_finite(step.loss) || !is_finite(step.grad_norm) || step.nan.is_some_and(|nan| nan > 0)
    });
    if let Some(step) = odd.filter(|step| is_finite(step.loss)) {
        // Some programs print another number where the loss is NaN.
        let why = format!(
            "{}: gradients not finite at {} {}, whatever loss is printed there",
            series.dialect.name(),
            series.dialect.word(),
            step.iteration
        );
        output.findings.push(Finding::new(NOT_FINITE, why).line(step.line));
    }
    if nan || odd.is_some() {
        output.data_wrong = true;
    }
    let losses: Vec<(u64, f64)> = (0..).zip(steps).filter_map(|(at, step)| Some((at, step.loss?))).collect();
    // A loss that is not known is neither finite nor falling.
    let is_known = !losses.is_empty() && !garbled_losses && series.loss_stops().is_none();
    if nan || odd.is_some() || is_known {
        output.metrics.push(LOSS_FINITE.of(dims(), f64::from(u8::from(!nan && odd.is_none()))));
    }
    let last = |values: &mut dyn Iterator<Item = f64>| values.filter(|value| value.is_finite()).last();
    if let Some(loss) = last(&mut losses.iter().map(|(_, loss)| *loss)) {
        output.metrics.push(LOSS.of(dims(), loss));
    }
    if let Some(norm) = last(&mut steps.iter().filter_map(|step| step.grad_norm)) {
        output.metrics.push(GRAD_NORM.of(dims(), norm));
    }
    // With a NaN in between, a slope means nothing.
    if is_known
        && losses.iter().all(|(_, loss)| loss.is_finite())
        && let Some((slope, _, high)) = figures(&losses, false).and_then(|figures| figures.slope)
    {
        output.metrics.push(LOSS_SLOPE.of(dims(), slope));
        output.metrics.push(LOSS_FALLING.of(dims(), f64::from(u8::from(high < 0.0))));
    }
    stand_for
}

/// How many steps the lines stand for: some programs log every tenth alone. A distance that is seen once, and from the first line
/// to the begin neither, may be a gap as well: then no more steps are counted than lie between the first line and the last.
fn logged_steps(steps: &[StepLine]) -> u64 {
    let mut usual: BTreeMap<u64, u64> = BTreeMap::new();
    for pair in steps.windows(2).filter(|pair| pair[0].epoch == pair[1].epoch) {
        *usual.entry(pair[1].iteration.saturating_sub(pair[0].iteration)).or_default() += 1;
    }
    let most = usual.into_iter().max_by_key(|(distance, count)| (*count, std::cmp::Reverse(*distance)));
    let (distance, count) = most.unwrap_or((1, 1));
    let logged = (steps.len() as u64).saturating_mul(distance.max(1));
    let (Some(first), Some(last)) = (steps.first(), steps.last()) else { return 0 };
    let is_interval = count > 1 || [first.iteration, first.iteration.saturating_add(1)].contains(&distance);
    let between = last.iteration.saturating_sub(first.iteration).saturating_add(1).max(steps.len() as u64);
    if is_interval { logged } else { logged.min(between) }
}

fn put_times(
    job: &JobInput,
    (facts, ranks): (&TrainingFacts, Option<u32>),
    series: &Series,
    summary: Option<&TrainerSummary>,
    output: &mut Output,
) {
    let throughput = Throughput::compute(facts, ranks, series, summary, Extent::Whole);
    output.findings.extend(throughput.findings.iter().cloned());
    let impossible =
        throughput.impossible.clone().map(|why| Finding::new(RateFinding::Impossible.code(), why));
    output.findings.extend(impossible);
    let mut put = |spec: &MetricSpec, value: Option<f64>| {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            output.metrics.push(spec.of(job.dims(), value));
        }
    };
    put(&STEP_TIME, throughput.step_time);
    put(&STEP_TIME_MEDIAN, throughput.step_time_median);
    put(&STEP_TIME_CV, throughput.step_time_cv);
    put(&SAMPLES, throughput.samples_per_s);
    put(&TOKENS, throughput.tokens_per_s);
    put(&TFLOPS, throughput.tflops_per_gpu);
    put(&MFU, throughput.mfu);
}

/// A node with one unknown NIC has no number: the sum of the others is not what the node sent.
fn efa_per_step(job: &JobInput, steps: u64, output: &mut Output) {
    if steps == 0 || job.files_of(FileRole::Counters).next().is_none() {
        return;
    }
    // `efa_traffic` reports what is wrong with the counters.
    let traffic = efa_traffic::traffic(job, &mut Output::default());
    for node in &job.nodes {
        let of_node = traffic.nics.iter().filter(|nic| nic.node == *node && nic.listed != Some(false));
        let sent: Option<Vec<u64>> = of_node.map(|nic| nic.tx_bytes).collect();
        if let Some(sent) = sent.filter(|sent| !sent.is_empty()) {
            let bytes: u128 = sent.into_iter().map(u128::from).sum();
            let dims = job.dims().with(Dim::Node, node.as_str());
            output.metrics.push(EFA_PER_STEP.of(dims, (bytes / u128::from(steps)) as f64));
        }
    }
}

fn failure(cause: &str, node: Option<&String>, evidence: String) -> Failure {
    Failure { cause: cause.to_owned(), node: node.cloned(), evidence }
}

/// The node of the job that a host's name is of: hosts name themselves with or without their domain.
fn named_node<'a>(job: &'a JobInput, host: &str) -> Option<&'a String> {
    job.nodes.iter().find(|node| host == *node || host.split('.').next() == Some(node.as_str()))
}

/// The GPU that a rank reports as its own, unless its number in the job contradicts that: where a launcher shows each rank one
/// GPU alone, all of them report device 0.
fn part_of(job: &JobInput, ranks: Option<u32>, rank: u64, device: u64) -> Option<String> {
    let per_node = ranks.and_then(|ranks| u64::from(ranks).checked_div(job.nodes.len() as u64));
    let is_its_own = per_node.is_none_or(|per_node| rank.checked_rem(per_node) == Some(device));
    is_its_own.then(|| format!("gpu{device}"))
}

/// Ranks are numbered node by node.
fn node_of(job: &JobInput, ranks: Option<u32>, rank: u64) -> Option<&String> {
    let per_node = u64::from(ranks?).checked_div(job.nodes.len() as u64).filter(|per_node| *per_node > 0)?;
    job.nodes.get((rank / per_node) as usize)
}
