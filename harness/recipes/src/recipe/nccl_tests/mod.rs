//! Bandwidth, time and correctness of a collective, from what nccl-tests printed.
//! `logs::nccl_tests` reads its output in all forms.

mod planned;
#[cfg(test)]
mod tests;

use super::efa_traffic::OTHER_TRANSPORT;
use super::{
    Failure, FileRole, InputFile, JobInput, NotComparable, Output, RecipeSpec, Workload, read_stream,
};
use crate::recipe::ras_hang::{self, Behind, Late};
use crate::recipe::shared_findings::FileFinding;
use crate::recipe::training_log;
use logs::nccl_tests::RowFinding;
use logs::nccl_tests::{self as source, FailureClass, Half, NcclRun, Wrong};
use metric::finding::Finding;
use metric::finding_kinds;
use metric::op::Op;
use metric::unit::{Better, Unit};
use metric::{Blames, Covers, DataCheck, Dim, Dims, Files, Limit, MetricSpec, Names, Role};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufReader;

/// A metric of what nccl-tests ran.
pub(super) const fn nccl_metric(
    name: &'static str,
    about: &'static str,
    unit: Unit,
    better: Better,
    files: Files,
) -> MetricSpec {
    MetricSpec::new(name, about, unit, better, files)
        .blaming(Blames::Node)
        .naming(Names::GpuAlone)
        .explained_by(OTHER_TRANSPORT)
        .with(&[Role::BetweenNodes, Role::ShortName])
        .next(
            "run `harness isolate`, or the cases nic-pairs and gpu-each of `nccl-p5`, to find the slow part",
        )
}

const fn row_metric(name: &'static str, about: &'static str, unit: Unit, better: Better) -> MetricSpec {
    nccl_metric(name, about, unit, better, Files::Output).per(&[Dim::Op, Dim::SizeBytes, Dim::Place])
}

/// The load on the hardware, comparable between numbers of ranks.
pub const BUSBW: MetricSpec = row_metric(
    "nccl.busbw",
    "bus bandwidth as printed: the load on the hardware, comparable between numbers of ranks",
    Unit::GigabytesPerSecond,
    Better::Higher,
)
.limited(Limit::BusBandwidth)
.with(&[Role::Rate, Role::BetweenNodes, Role::ShortName]);
/// Size over time.
pub const ALGBW: MetricSpec =
    row_metric("nccl.algbw", "size over time", Unit::GigabytesPerSecond, Better::Higher)
        .limited(Limit::AlgorithmBandwidth)
        .with(&[Role::Rate, Role::BetweenNodes, Role::ShortName]);
/// Of one operation.
pub const TIME: MetricSpec =
    row_metric("nccl.time", "mean time of one operation", Unit::Microseconds, Better::Lower)
        .limited(Limit::Time)
        .with(&[Role::ShowsSizes, Role::BetweenNodes, Role::ShortName]);
/// Elements that came out wrong.
pub const WRONG: MetricSpec = row_metric(
    "nccl.wrong",
    "wrong elements; not given where results were not checked",
    Unit::Count,
    Better::Lower,
)
.covering(Covers::Nothing)
.checking(DataCheck {
    sound: 0.0,
    cause: "data-wrong",
    wrong: "nccl-tests reports wrong data",
    next: "assert `nccl.wrong` in the case, and run suite `nccl-p5`, case `gpu-each`: it checks each GPU separately",
})
.with(&[Role::BetweenNodes, Role::ShortName])
.next("take {nodes} out of service: its results cannot be trusted; run suite `nccl-p5`, case `gpu-each`, on them");
const RANKS: MetricSpec =
    nccl_metric("nccl.ranks", "ranks that the program listed", Unit::Count, Better::Neither, Files::Output);

/// For cases of nccl-tests; tests of single GPUs have the dimensions `node` and `gpu`.
pub const SPEC: RecipeSpec = RecipeSpec {
    name: "nccl_tests",
    about: "bandwidth, time and correctness of a collective, from the table that nccl-tests prints",
    metrics: &[BUSBW, ALGBW, TIME, WRONG, RANKS],
    tables: &[],
    findings: &[FileFinding::ALL, RowFinding::ALL, RunFinding::ALL],
    reads_nccl_log: false,
    compares_clocks: false,
    reads_inspector: false,
    run: &run,
};

fn run(job: &JobInput) -> Output {
    let mut output = Output::default();
    let Workload::NcclTests { op, ranks_per_communicator, .. } = &job.workload else {
        return output;
    };
    let mut behind = Behind::MayWait;
    if by_torch(job) {
        for file in printed_by_torch(job) {
            behind = read_file(job, file, *op, *ranks_per_communicator, job.dims(), &mut output);
        }
        clear_shared_node(job, &mut output);
        training_log::find_causes(job, *ranks_per_communicator, behind, &mut output);
        return output;
    }
    for file in job.files_of(FileRole::NcclTests) {
        behind = read_file(job, file, *op, *ranks_per_communicator, job.dims(), &mut output);
    }
    if let Some(Late { node: Some(node), evidence, .. }) =
        ras_hang::read(job, *ranks_per_communicator, behind, &mut output)
    {
        let failure = Failure { cause: ras_hang::DESYNC.to_owned(), node: Some(node), evidence };
        output.failure.get_or_insert(failure);
    }
    let mut gpus = BTreeMap::new();
    for file in job.files_of(FileRole::GpuNcclTests) {
        let mut dims = job.dims();
        if let Some(node) = &file.node {
            dims.set(Dim::Node, node.as_str());
        }
        if let Some(gpu) = file.part.as_deref().and_then(|part| part.strip_prefix("gpu")?.parse::<u64>().ok())
        {
            dims.set(Dim::Gpu, gpu);
        }
        read_each(job, file, *op, dims, &mut gpus, &mut output);
    }
    clear_shared_node(job, &mut output);
    output
}

/// Names no node where programs of several nodes report the same failure, each in a file of its own: the first file is only
/// read first. Slurm names each node that failed.
fn clear_shared_node(job: &JobInput, output: &mut Output) {
    let Some(failure) = output.failure.as_mut().filter(|failure| failure.node.is_some()) else { return };
    if failure.cause == FailureClass::NodeFailure.name() {
        return;
    }
    let files = job.files_of(FileRole::NcclTests).chain(job.files_of(FileRole::GpuNcclTests));
    let nodes: BTreeSet<String> = files.flat_map(|file| reporters(file, &failure.cause)).collect();
    if nodes.len() > 1 {
        failure.node = None;
    }
}

/// The nodes that report a failure of this cause in a file: its own, or those that a file of the whole job names.
fn reporters(file: &InputFile, cause: &str) -> Vec<String> {
    let opened = File::open(&file.path).map(BufReader::new);
    let Ok(Ok(read)) = opened.and_then(|from| source::read_stream(from, &file.shown)) else {
        return Vec::new();
    };
    let failures = read.runs.into_iter().filter_map(|run| run.failure);
    let alike = failures.filter(|failure| failure.class.name() == cause);
    alike.filter_map(|failure| file.node.clone().or(failure.node)).collect()
}

/// The GPU and the file of each program that runs on one GPU: two on the same one show nothing of the other.
type SeenGpus = BTreeMap<(Option<String>, String), String>;

fn read_each(job: &JobInput, file: &InputFile, op: Op, dims: Dims, gpus: &mut SeenGpus, output: &mut Output) {
    let Some(runs) = read_file_runs(job, file, op, Some(1), dims, output).map(|(_, runs)| runs) else {
        return;
    };
    for rank in runs.iter().flat_map(|run| &run.ranks) {
        let Some(gpu) = planned::gpu_id(rank).map(str::to_owned) else { continue };
        if let Some(other) = gpus.insert((file.node.clone(), gpu.clone()), file.shown.clone()) {
            let why = format!("{} and {other} ran on the same GPU, {gpu}", file.shown);
            not_comparable(output, WRONG_RANKS, why);
        }
    }
}

fn by_torch(job: &JobInput) -> bool {
    matches!(job.workload, Workload::NcclTests { by_torch: true, .. })
}

/// Rank 0 prints the table, on one of the nodes; the others print what their images greet with. Where none has a table, the
/// first shows what there is.
fn printed_by_torch(job: &JobInput) -> Vec<&InputFile> {
    let has_table = |file: &&InputFile| {
        let opened = File::open(&file.path).map(BufReader::new);
        let read = opened.and_then(|from| source::read_stream(from, &file.shown));
        matches!(read, Ok(Ok(read)) if read.runs.iter().any(|run| !run.ranks.is_empty() || !run.rows.is_empty()))
    };
    let with_table: Vec<&InputFile> = job.files_of(FileRole::NcclTests).filter(has_table).collect();
    match with_table.is_empty() {
        true => job.files_of(FileRole::NcclTests).take(1).collect(),
        false => with_table,
    }
}

/// What it proves there that a rank launched less than the others.
fn read_file(
    job: &JobInput,
    file: &InputFile,
    op: Op,
    ranks: Option<u32>,
    dims: Dims,
    output: &mut Output,
) -> Behind {
    read_file_runs(job, file, op, ranks, dims, output).map_or(Behind::MayWait, |(behind, _)| behind)
}

/// The same, and the runs of the file; nothing where it is none of nccl-tests.
fn read_file_runs(
    job: &JobInput,
    file: &InputFile,
    op: Op,
    ranks: Option<u32>,
    dims: Dims,
    output: &mut Output,
) -> Option<(Behind, Vec<NcclRun>)> {
    let read = read_stream(file, output, |from| source::read_stream(from, &file.shown));
    let read = match read? {
        Ok(read) => read,
        Err(error) => {
            let program = if by_torch(job) { "torch-collective" } else { "nccl-tests" };
            let message = format!("output of {program} not understood: {error}");
            output.findings.push(about(file, Finding::new(FileFinding::NotUnderstood.code(), message)));
            return None;
        }
    };
    for finding in &read.findings {
        if let Some(cause) = broken_by(&finding.code) {
            not_comparable(output, cause, format!("{}: {}", file.shown, finding.message));
        }
    }
    output.findings.extend(read.findings.into_iter().map(|finding| about(file, finding)));
    for run in &read.runs {
        let versions = [
            ("nccl-tests", &run.nccl_tests_version),
            ("pytorch", &run.pytorch_version),
            ("nccl", &run.nccl_version),
        ];
        for (name, version) in versions {
            if let Some(version) = version {
                output.versions.entry(name.to_owned()).or_default().insert(version.clone());
            }
        }
        if let Some(failure) = &run.failure {
            if failure.class == FailureClass::OutOfBounds {
                output.data_wrong = true;
            } else if output.failure.is_none() {
                output.failure = Some(Failure {
                    cause: failure.class.name().to_owned(),
                    node: failure.node.clone().filter(|_| blames_reporter(failure.class)),
                    evidence: format!("{}:{}: {}", file.shown, failure.line, failure.cause),
                });
            }
        }
    }
    // One launch prints one table. Several mean that the ranks did not find each other, and each node or rank ran on
    // its own: the numbers are not those of the declared job.
    let with_rows: Vec<&NcclRun> = read.runs.iter().filter(|run| !run.rows.is_empty()).collect();
    if with_rows.len() > 1 {
        let message =
            format!("{} tables in one output, expected 1: the ranks did not form one job", with_rows.len());
        not_comparable(output, WRONG_RANKS, format!("{}: {message}", file.shown));
    }
    if !with_rows.is_empty() {
        // A program that ended well prints nothing of the kind, before its table or behind it.
        let failures = read.runs.iter().filter_map(|run| Some((run, run.failure.as_ref()?)));
        for (run, failure) in failures {
            let is_of_rows = failure.class == FailureClass::OutOfBounds && !run.rows.is_empty();
            if job.exit_code == Some(0) && !is_of_rows {
                let why = format!("{}:{}: {}", file.shown, failure.line, failure.cause);
                not_comparable(output, failure.class.name(), format!("it ended with exit code 0, but {why}"));
            }
        }
        for finding in read.runs.iter().filter(|run| run.rows.is_empty()).flat_map(source::closing) {
            not_comparable(output, "garbled", format!("{}: {}", file.shown, finding.message));
            output.findings.push(about(file, finding));
        }
    }
    let behind = match with_rows.as_slice() {
        [run] if meets(run) => Behind::DidNotCome,
        _ => Behind::MayWait,
    };
    for run in with_rows {
        compare(run, file, op, ranks, output);
        for (cause, why) in planned::contradictions(run, job, file, ranks) {
            not_comparable(output, cause, format!("{}: {why}", file.shown));
        }
        for finding in source::recompute(run, ranks) {
            not_comparable(output, "bandwidth-disagrees", format!("{}: {}", file.shown, finding.message));
            output.findings.push(about(file, finding));
        }
        for finding in source::closing(run) {
            not_comparable(output, "garbled", format!("{}: {}", file.shown, finding.message));
            output.findings.push(about(file, finding));
        }
        metrics_of(job, run, op, ranks, &dims, output);
    }
    Some((behind, read.runs))
}

/// Whether all ranks of a run that has a row are at the same launches, unless one does not come. They meet after the first
/// operation of a size and after its timed ones, and not before the first row. Where more are timed than a queue takes, a
/// rank that waits for what it receives is held up while it launches.
fn meets(run: &NcclRun) -> bool {
    let timed = run.parameters.as_ref().and_then(|all| all.iterations.zip(all.agg_iterations));
    timed.is_some_and(|(iterations, each)| iterations.saturating_mul(each) <= MOST_QUEUED)
}

/// Far fewer than the 1024 launches that CUDA queues.
const MOST_QUEUED: u64 = 100;

/// Whether a failure is the fault of the node that reports it. A lost connection or time-out is mostly reported by the
/// node that waited, so it does not name one.
fn blames_reporter(class: FailureClass) -> bool {
    matches!(
        class,
        FailureClass::NodeFailure
            | FailureClass::CudaError
            | FailureClass::OutOfMemory
            | FailureClass::NetworkNotFound
    )
}

const WRONG_RANKS: &str = RunFinding::WrongRanks.code();
const OTHER_SWEEP: &str = RunFinding::OtherSweep.code();

finding_kinds! {
    /// Of a run that is not the declared one.
    pub(crate) enum RunFinding {
        WrongRanks = "wrong-ranks":
            Advice("check that the launcher's MPI plugin and nccl-tests' MPI are the same; see `srun --mpi=list`"),
        OtherSweep = "other-sweep":
            Advice("compare the command in the job's `job.sh` with what ran: a wrapper script or a variable may change it"),
    }
}

/// The cause, for codes of tables that are cut or garbled: their remaining rows were measured, but the rest is unknown.
fn broken_by(code: &str) -> Option<&'static str> {
    match code {
        "not-concluded" | "read-in-part" => Some("cut"),
        "row-cut" | "row-odd" | "not-a-number" | "size-overflowed" | "truncated-json" => Some("garbled"),
        // Several headers in a row, so that rows cannot be assigned to tables.
        "interleaved-tables" => Some(WRONG_RANKS),
        _ => None,
    }
}

fn not_comparable(output: &mut Output, cause: &str, why: String) {
    output.not_comparable.get_or_insert(NotComparable { cause: cause.to_owned(), why });
}

/// The gate before any number is judged: was this the operation, on the ranks, that were declared?
fn compare(run: &NcclRun, file: &InputFile, op: Op, ranks: Option<u32>, output: &mut Output) {
    let mut mismatch = |why: String| {
        not_comparable(output, WRONG_RANKS, format!("{}: {why}", file.shown));
    };
    if let Some(seen) = run.op
        && seen != op
    {
        mismatch(format!("ran `{seen}`, declared `{op}`"));
    }
    let Some(ranks) = ranks else { return };
    // A job that is split into groups lists all its ranks, so only an equal or larger number is right.
    let listed = run.ranks.len() as u64;
    if listed > 0 && listed < u64::from(ranks) {
        mismatch(format!("ranks listed: {listed}, declared: {ranks}"));
    }
    let off = run.rows.iter().flat_map(|row| [&row.out_of_place, &row.in_place]).flatten().find(|half| {
        half.algbw_gb_s >= 1.0 && !source::ratio_matches(op, ranks, half.algbw_gb_s, half.busbw_gb_s)
    });
    if let Some(half) = off {
        let ratio = half.busbw_gb_s / half.algbw_gb_s;
        let expected = op.bus_factor(ranks);
        mismatch(format!("busbw/algbw is {ratio:.3}, expected {expected:.3} for {ranks} ranks of `{op}`"));
    }
}

fn metrics_of(job: &JobInput, run: &NcclRun, op: Op, ranks: Option<u32>, dims: &Dims, output: &mut Output) {
    let mut ranks_dims = dims.clone();
    ranks_dims.set(Dim::Op, op.name());
    output.metrics.push(RANKS.of(ranks_dims, run.ranks.len() as f64));
    for row in &run.rows {
        let Some(size_bytes) = declared_size(row.size_bytes, job, ranks) else { continue };
        for (place, half) in [("out", &row.out_of_place), ("in", &row.in_place)] {
            let Some(half) = half else { continue };
            let dims = || {
                dims.clone().with(Dim::Op, op.name()).with(Dim::SizeBytes, size_bytes).with(Dim::Place, place)
            };
            output.metrics.push(BUSBW.of(dims(), half.busbw_gb_s));
            output.metrics.push(ALGBW.of(dims(), half.algbw_gb_s));
            output.metrics.push(TIME.of(dims(), half.time_us));
            if let Some(wrong) = wrong(half) {
                output.metrics.push(WRONG.of(dims(), wrong));
            }
        }
    }
}

/// The size of the sweep that a row was measured for. Operations with a count per rank round it down to 16 bytes, so
/// that on 24 ranks 1 GiB is printed as a little less; and the smallest sizes as nothing, which is no measurement.
pub(super) fn declared_size(printed: u64, job: &JobInput, ranks: Option<u32>) -> Option<u64> {
    let Workload::NcclTests { sizes, .. } = &job.workload else { return Some(printed) };
    if printed == 0 || sizes.contains(&printed) {
        return Some(printed).filter(|printed| *printed > 0);
    }
    let rounding = 16 * u64::from(ranks.unwrap_or(1));
    let above = sizes.iter().copied().filter(|size| *size > printed).min();
    Some(above.filter(|size| size - printed < rounding).unwrap_or(printed))
}

fn wrong(half: &Half) -> Option<f64> {
    match half.wrong {
        Wrong::Count(count) => Some(count),
        // Old versions print the largest error, whose bound is theirs and not printed: nothing to count.
        Wrong::MaxError(_) | Wrong::NotChecked => None,
    }
}

fn about(file: &InputFile, mut finding: Finding) -> Finding {
    finding.file.get_or_insert_with(|| file.shown.clone());
    if finding.node.is_none() {
        finding.node = file.node.clone();
    }
    if finding.part.is_none() {
        finding.part = file.part.clone();
    }
    finding
}

/// The first of the job's nodes that a text names as a whole word. Hosts report the first part of a name with points:
/// it counts where only one node has it, and where it is no mere word or number.
pub fn named_node(text: &str, nodes: &[String]) -> Option<String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let is_name = |word: &str| {
        word.contains(|c: char| c.is_ascii_digit()) && word.contains(|c: char| c.is_ascii_alphabetic())
    };
    let named = |word: &str| {
        let mut found = nodes.iter().filter(|node| is_name(word) && node.split('.').next() == Some(word));
        nodes.iter().find(|node| *node == word).or(found.next().filter(|_| found.next().is_none()))
    };
    text.split(|c| !is_word(c)).find_map(named).cloned()
}
