//! How a training went, from the log that it prints: how long its steps took, what it got through, whether its loss is a
//! number and falls. How logs are read is told in `logs::training_log`; why a training stopped, in `stopped`.

pub mod raised;
mod reckoned;
mod stopped;
#[cfg(test)]
mod tests;
mod window;

use self::reckoned::{Extent, Throughput};
use super::efa_traffic;
use super::{Failure, FileRole, InputFile, JobInput, Output, RecipeSpec, TrainingFacts, Workload};
use logs::training_log::{self as source, Dialect, Series, StepLine, TrainerSummary, figures};
use metric::finding::Finding;
use metric::unit::{Better, Unit};
use metric::{Blames, Dim, MetricSpec};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;

const fn of_job(name: &'static str, about: &'static str, unit: Unit, better: Better) -> MetricSpec {
    MetricSpec { name, about, unit, better, dims: &[], blames: Blames::Node }
}

const STEP_TIME: MetricSpec = of_job(
    "train.step_time",
    "how long a step takes behind the warm-up: the mean",
    Unit::Seconds,
    Better::Lower,
);
const STEP_TIME_MEDIAN: MetricSpec =
    of_job("train.step_time_median", "the same, the median", Unit::Seconds, Better::Lower);
const STEP_TIME_CV: MetricSpec = of_job(
    "train.step_time_cv",
    "how much the steps behind the warm-up differ, in parts of their mean; not given where the log tells running means",
    Unit::Ratio,
    Better::Lower,
);
const SAMPLES: MetricSpec = of_job(
    "train.samples_per_s",
    "samples per second of all ranks together, as the log tells it, or from the step's samples and time",
    Unit::PerSecond,
    Better::Higher,
);
const TOKENS: MetricSpec = of_job(
    "train.tokens_per_s",
    "tokens per second of all ranks together, as the log tells it, or from samples and their length",
    Unit::PerSecond,
    Better::Higher,
);
const TFLOPS: MetricSpec = of_job(
    "train.tflops_per_gpu",
    "what each GPU computes, as the log tells it, or from tokens and the model's shape: 6 x parameters + 12 x layers x \
     hidden x sequence operations a token",
    Unit::Teraflops,
    Better::Higher,
);
const MFU: MetricSpec = of_job(
    "train.mfu",
    "the part of a GPU's peak of dense bfloat16 that the model's own operations take, as the log tells it, or from \
     TFLOP/s per GPU and the instance's profile",
    Unit::Ratio,
    Better::Higher,
);
// A loss is that of all ranks together; a rank whose numbers are none is named by the program.
const LOSS: MetricSpec = of_job("train.loss", "the last loss that is a number", Unit::Count, Better::Lower)
    .blaming(Blames::Nobody);
const LOSS_FINITE: MetricSpec = of_job(
    "train.loss_finite",
    "1 where every loss and every norm of gradients is a number, 0 where one is not",
    Unit::Count,
    Better::Higher,
)
.blaming(Blames::Part);
const LOSS_SLOPE: MetricSpec = MetricSpec {
    name: "train.loss_slope",
    about: "by how much the loss changes from one step to the next, over the whole run: below 0 it falls",
    unit: Unit::Count,
    better: Better::Lower,
    dims: &[],
    blames: Blames::Nobody,
};
const LOSS_FALLING: MetricSpec = of_job(
    "train.loss_falling",
    "1 where the loss falls beyond doubt over the whole run, 0 where it does not",
    Unit::Count,
    Better::Higher,
)
.blaming(Blames::Nobody);
const GRAD_NORM: MetricSpec =
    of_job("train.grad_norm", "the last norm of gradients that is a number", Unit::Count, Better::Neither);
const STEPS: MetricSpec =
    of_job("train.steps", "steps that the log tells, each once", Unit::Count, Better::Neither);
const STEPS_MISSING: MetricSpec = of_job(
    "train.steps_missing",
    "steps that were to be run and are not told; not given where nobody said how many",
    Unit::Count,
    Better::Lower,
);
const RESTARTS: MetricSpec = of_job(
    "train.restarts",
    "how often the run went on at an earlier step, or began anew",
    Unit::Count,
    Better::Lower,
);
const EFA_PER_STEP: MetricSpec = MetricSpec {
    name: "train.efa_bytes_per_step",
    about: "bytes that a node sent through its NICs by their counters, over the steps told: of the whole run, start-up \
            and checkpoints included",
    unit: Unit::Bytes,
    better: Better::Neither,
    dims: &[Dim::Node],
    blames: Blames::Node,
};

pub const SPEC: RecipeSpec = RecipeSpec {
    name: "training_log",
    about: "step times, throughput, loss and its course, from the log that a training prints",
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
        EFA_PER_STEP,
        window::METRICS[0],
        window::METRICS[1],
        window::METRICS[2],
        window::METRICS[3],
        window::METRICS[4],
    ],
    tables: &[],
    causes: &[window::UNKNOWN],
    run: &run,
};

/// What stands in the code of the finding that names the step of a loss that is none.
pub const NOT_FINITE: &str = "training-loss-not-finite";
/// And in that of the one that counts iterations which came to nothing.
const NAN_ITERATIONS: &str = "training-nan-iterations";
/// And the rank, where the program itself says which.
pub const NAN_RANK: &str = "training-nan-rank";
/// And how far a run came that was to go on.
pub const ENDED_EARLY: &str = "training-ended-early";

fn run(job: &JobInput) -> Output {
    let mut output = Output::default();
    let none = TrainingFacts::default();
    let (facts, ranks) = match &job.workload {
        Workload::Training { facts, ranks } => (facts, Some(*ranks)),
        Workload::Command => (&none, None),
        Workload::NcclTests { .. } | Workload::NicPairs { .. } => return output,
    };
    let says_so = stopped::look(job, ranks, &mut output);
    let Some(Chosen { steps, time }) = read(job, &mut output) else { return output };
    // The steps are those of one rank; a loss that is none is one on whichever rank it was printed.
    let nan = says_so || output.findings.iter().any(|it| it.code == NOT_FINITE || it.code == NAN_ITERATIONS);
    let told = of_steps(job, facts, &steps, nan, &mut output);
    of_time(job, (facts, ranks), &time.series, time.summary.as_ref(), &mut output);
    window::put(job, (facts, ranks), &time.series, &mut output);
    efa_per_step(job, told, &mut output);
    output
}

/// The steps of one rank's run, and what its program says at the end.
struct Account {
    series: Series,
    summary: Option<TrainerSummary>,
    /// The longest run of this rank: of several runs the last counts, which went on where the others stopped.
    longest: usize,
    file: usize,
}

/// What counts of a job's logs.
struct Chosen {
    /// Of the rank that reports most steps, the first of equals.
    steps: Series,
    /// The slowest rank, which holds up all others.
    time: Account,
}

/// The steps of the run that counts: what restarted runs say beside it, and how far ranks differ, are findings.
fn read(job: &JobInput, output: &mut Output) -> Option<Chosen> {
    let files: Vec<&InputFile> =
        job.files_of(FileRole::Stdout).chain(job.files_of(FileRole::Stderr)).collect();
    let mut accounts: Vec<Account> = Vec::new();
    let mut lines = 0;
    let mut is_read = false;
    for (at, file) in files.iter().enumerate() {
        let log = match File::open(&file.path).and_then(|open| source::read(BufReader::new(open))) {
            Ok(log) => log,
            Err(error) => {
                let why = format!("cannot be read: {error}");
                output.findings.push(Finding::new("unreadable", why).file(&file.shown));
                continue;
            }
        };
        is_read = true;
        lines += log.lines;
        output.findings.extend(log.findings.into_iter().map(|it| of_node(it.file(&file.shown), file)));
        for series in log.series {
            let same = accounts.last_mut().filter(|last| {
                (last.file, last.series.dialect, &last.series.who) == (at, series.dialect, &series.who)
            });
            match same {
                Some(last) => {
                    last.longest = last.longest.max(series.steps.len());
                    last.series = series;
                }
                None => accounts.push(Account {
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
            let why = format!("no line of {lines} names a step; let the program write each step to stdout");
            output.findings.push(Finding::new("not-understood", why));
        }
        return None;
    };
    // What ranks are compared with stands first.
    accounts.swap(0, first);
    let ranks: Vec<&Series> = accounts.iter().map(|it| &it.series).collect();
    let slow = source::slowest(&ranks).and_then(|slow| {
        let at = accounts.iter().position(|it| std::ptr::eq(&it.series, slow.series))?;
        // Within a file the reader reports it.
        let is_across =
            accounts.iter().any(|it| std::ptr::eq(&it.series, slow.fastest) && it.file != accounts[at].file);
        let file = files[accounts[at].file];
        output.findings.extend(is_across.then(|| of_node(slow.finding().file(&file.shown), file)));
        Some(at)
    });
    let steps = accounts.first()?.series.clone();
    Some(Chosen { steps, time: accounts.swap_remove(slow.unwrap_or(0)) })
}

fn of_node(finding: Finding, file: &InputFile) -> Finding {
    match &file.node {
        Some(node) => finding.node(node.as_str()),
        None => finding,
    }
}

/// What follows from a step's time and what is stated of the training, where no log is asked.
pub(super) fn by_step_time(facts: &TrainingFacts, ranks: u32, seconds: f64) -> Throughput {
    let step = StepLine { seconds: Some(seconds), ..StepLine::default() };
    let (dialect, who, restarts) = (Dialect::Lightning, String::new(), Vec::new());
    let series = Series { dialect, who, run: 1, steps: vec![step], restarts };
    Throughput::of(facts, Some(ranks), &series, None, Extent::Window)
}

/// What does not need time; gives the number of steps.
fn of_steps(job: &JobInput, facts: &TrainingFacts, series: &Series, nan: bool, output: &mut Output) -> u64 {
    let steps = &series.steps;
    let told = steps.len() as u64 * apart(steps);
    let dims = || job.dims();
    output.metrics.push(STEPS.of(dims(), told as f64));
    let restarts = series.restarts.len() as u64 + u64::from(series.run.saturating_sub(1));
    output.metrics.push(RESTARTS.of(dims(), restarts as f64));
    if let Some(expected) = facts.steps.map(u64::from) {
        let missing = expected.saturating_sub(told);
        output.metrics.push(STEPS_MISSING.of(dims(), missing as f64));
        if let (1.., Some(last)) = (missing, steps.last()) {
            let why = format!(
                "{}: ended at {} {}: {told} of {expected} steps are told",
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
        // Some programs print another number where the loss is none.
        let why = format!(
            "{}: the gradients are no number at {} {}, whatever loss is printed there",
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
    if nan || odd.is_some() || !losses.is_empty() {
        output.metrics.push(LOSS_FINITE.of(dims(), f64::from(u8::from(!nan && odd.is_none()))));
    }
    let last = |values: &mut dyn Iterator<Item = f64>| values.filter(|value| value.is_finite()).last();
    if let Some(loss) = last(&mut losses.iter().map(|(_, loss)| *loss)) {
        output.metrics.push(LOSS.of(dims(), loss));
    }
    if let Some(norm) = last(&mut steps.iter().filter_map(|step| step.grad_norm)) {
        output.metrics.push(GRAD_NORM.of(dims(), norm));
    }
    // A course with holes in it is none.
    if losses.iter().all(|(_, loss)| loss.is_finite())
        && let Some((slope, _, high)) = figures(&losses, false).and_then(|figures| figures.slope)
    {
        output.metrics.push(LOSS_SLOPE.of(dims(), slope));
        output.metrics.push(LOSS_FALLING.of(dims(), f64::from(u8::from(high < 0.0))));
    }
    told
}

/// How far apart the steps are that are told.
fn apart(steps: &[StepLine]) -> u64 {
    let mut usual: BTreeMap<u64, u64> = BTreeMap::new();
    for pair in steps.windows(2).filter(|pair| pair[0].epoch == pair[1].epoch) {
        *usual.entry(pair[1].iteration.saturating_sub(pair[0].iteration)).or_default() += 1;
    }
    let most = usual.into_iter().max_by_key(|(distance, count)| (*count, std::cmp::Reverse(*distance)));
    most.map_or(1, |(distance, _)| distance.max(1))
}

fn of_time(
    job: &JobInput,
    (facts, ranks): (&TrainingFacts, Option<u32>),
    series: &Series,
    summary: Option<&TrainerSummary>,
    output: &mut Output,
) {
    let throughput = Throughput::of(facts, ranks, series, summary, Extent::Whole);
    output.findings.extend(throughput.findings.iter().cloned());
    let impossible = throughput.impossible.clone().map(|why| Finding::new("training-impossible", why));
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

/// What some of a node's NICs sent is not what the node sent: one that is not known leaves the node without a number.
fn efa_per_step(job: &JobInput, steps: u64, output: &mut Output) {
    if steps == 0 || job.files_of(FileRole::Counters).next().is_none() {
        return;
    }
    // Whose recipe it is tells what is odd about the counters.
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
