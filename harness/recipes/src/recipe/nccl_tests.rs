//! Bandwidth, time and correctness of a collective, from what nccl-tests printed.
//! How its output is read in all its forms is `logs::nccl_tests`'s business.

use super::{
    Failure, FileRole, InputFile, JobInput, NotComparable, Output, RecipeSpec, Workload, read_stream,
};
use logs::nccl_tests::{self as source, FailureClass, Half, NcclRun, Wrong};
use metric::finding::Finding;
use metric::op::Op;
use metric::unit::{Better, Unit};
use metric::{Blames, Dim, Dims, MetricSpec};

const ROW: &[Dim] = &[Dim::Op, Dim::SizeBytes, Dim::Place];

const BUSBW: MetricSpec = MetricSpec {
    name: "nccl.busbw",
    about: "bus bandwidth as printed: what the hardware had to carry, comparable between numbers of ranks",
    unit: Unit::GigabytesPerSecond,
    better: Better::Higher,
    dims: ROW,
    blames: Blames::Node,
};
const ALGBW: MetricSpec = MetricSpec {
    name: "nccl.algbw",
    about: "size over time",
    unit: Unit::GigabytesPerSecond,
    better: Better::Higher,
    dims: ROW,
    blames: Blames::Node,
};
const TIME: MetricSpec = MetricSpec {
    name: "nccl.time",
    about: "mean time of one operation",
    unit: Unit::Microseconds,
    better: Better::Lower,
    dims: ROW,
    blames: Blames::Node,
};
const WRONG: MetricSpec = MetricSpec {
    name: "nccl.wrong",
    about: "elements that came out wrong; not given where they were not checked",
    unit: Unit::Count,
    better: Better::Lower,
    dims: ROW,
    blames: Blames::Node,
};
const RANKS: MetricSpec = MetricSpec {
    name: "nccl.ranks",
    about: "ranks that the program listed",
    unit: Unit::Count,
    better: Better::Neither,
    dims: &[],
    blames: Blames::Node,
};

pub const SPEC: RecipeSpec = RecipeSpec {
    name: "nccl_tests",
    about: "bandwidth, time and correctness of a collective, from the table that nccl-tests prints",
    metrics: &[BUSBW, ALGBW, TIME, WRONG, RANKS],
    tables: &[],
    causes: &[],
    run: &run,
};

fn run(job: &JobInput) -> Output {
    let mut output = Output::default();
    let Workload::NcclTests { op, ranks_per_communicator, .. } = &job.workload else {
        return output;
    };
    for file in job.files_of(FileRole::NcclTests) {
        read_file(job, file, *op, *ranks_per_communicator, job.dims(), &mut output);
    }
    for file in job.files_of(FileRole::GpuNcclTests) {
        let mut dims = job.dims();
        if let Some(node) = &file.node {
            dims.set(Dim::Node, node.as_str());
        }
        if let Some(gpu) = file.part.as_deref().and_then(|part| part.strip_prefix("gpu")?.parse::<u64>().ok())
        {
            dims.set(Dim::Gpu, gpu);
        }
        read_file(job, file, *op, Some(1), dims, &mut output);
    }
    output
}

fn read_file(job: &JobInput, file: &InputFile, op: Op, ranks: Option<u32>, dims: Dims, output: &mut Output) {
    let read = read_stream(file, output, |from| source::read_stream(from, &file.shown));
    let Some(read) = read else { return };
    let read = match read {
        Ok(read) => read,
        Err(error) => {
            let message = format!("no output of nccl-tests could be read: {error}");
            output.findings.push(about(file, Finding::new("not-understood", message)));
            return;
        }
    };
    for finding in &read.findings {
        if let Some(cause) = broken_by(&finding.code) {
            not_comparable(output, cause, format!("{}: {}", file.shown, finding.message));
        }
    }
    output.findings.extend(read.findings.into_iter().map(|finding| about(file, finding)));
    for run in &read.runs {
        for (name, version) in [("nccl-tests", &run.nccl_tests_version), ("nccl", &run.nccl_version)] {
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
                    node: failure.node.clone().filter(|_| speaks_of_itself(failure.class)),
                    evidence: format!("{}:{}: {}", file.shown, failure.line, failure.cause),
                });
            }
        }
    }
    // One launch prints one table. Several mean that the ranks did not find each other, and each node, or each rank,
    // ran a world of its own: numbers, but not of what was asked for.
    let with_rows: Vec<&NcclRun> = read.runs.iter().filter(|run| !run.rows.is_empty()).collect();
    if with_rows.len() > 1 {
        let message = format!("{} tables in one output: the ranks did not form one job", with_rows.len());
        not_comparable(output, WRONG_RANKS, format!("{}: {message}", file.shown));
    }
    if !with_rows.is_empty() {
        for finding in read.runs.iter().filter(|run| run.rows.is_empty()).flat_map(source::closing) {
            not_comparable(output, "garbled", format!("{}: {}", file.shown, finding.message));
            output.findings.push(about(file, finding));
        }
    }
    for run in with_rows {
        compare(run, file, op, ranks, output);
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
}

/// Whether a failure lies on the node that tells of it. Who reports a lost connection or a time-out is mostly the one
/// that waited, and naming it would blame an innocent.
fn speaks_of_itself(class: FailureClass) -> bool {
    matches!(
        class,
        FailureClass::NodeFailure
            | FailureClass::CudaError
            | FailureClass::OutOfMemory
            | FailureClass::NoSpace
            | FailureClass::NetworkNotFound
    )
}

const WRONG_RANKS: &str = "wrong-ranks";

/// What is left of a table that is cut or mangled was measured, but nobody knows what the rest would have said.
fn broken_by(code: &str) -> Option<&'static str> {
    match code {
        "not-concluded" | "read-in-part" => Some("cut"),
        "row-cut" | "row-odd" | "not-a-number" | "size-overflowed" | "truncated-json" => Some("garbled"),
        // Several heads in a burst, with nothing that tells their rows apart.
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
        mismatch(format!("`{op}` was declared, `{seen}` was run"));
    }
    let Some(ranks) = ranks else { return };
    // A job that is split into groups lists all its ranks, so only an equal or larger number is right.
    let listed = run.ranks.len() as u64;
    if listed > 0 && listed < u64::from(ranks) {
        mismatch(format!("{ranks} ranks were declared, {listed} are listed"));
    }
    let off = run.rows.iter().flat_map(|row| [&row.out_of_place, &row.in_place]).flatten().find(|half| {
        half.algbw_gb_s >= 1.0 && !source::ratio_matches(op, ranks, half.algbw_gb_s, half.busbw_gb_s)
    });
    if let Some(half) = off {
        let ratio = half.busbw_gb_s / half.algbw_gb_s;
        let expected = op.bus_factor(ranks);
        mismatch(format!("busbw/algbw is {ratio:.3}, {ranks} ranks of `{op}` give {expected:.3}"));
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

/// The first of the job's nodes that a text names as a whole word.
pub fn named_node(text: &str, nodes: &[String]) -> Option<String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    text.split(|c| !is_word(c)).find_map(|word| nodes.iter().find(|node| *node == word).cloned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(op: Op, sizes: &[u64], ranks: u32) -> JobInput {
        JobInput {
            case: "c".into(),
            job: "j".into(),
            round: 1,
            nodes: vec!["n1".into()],
            nics: Vec::new(),
            tx_counters: Vec::new(),
            rx_counters: Vec::new(),
            conservation_shown: false,
            workload: Workload::NcclTests {
                op,
                sizes: sizes.to_vec(),
                ranks_per_communicator: Some(ranks),
                checked: true,
            },
            exit_code: Some(0),
            seconds: None,
            files: Vec::new(),
            expected_exports: Vec::new(),
            window: None,
            kept: Default::default(),
        }
    }

    #[test]
    fn a_row_is_of_the_size_that_was_asked_for() {
        let job = job(Op::AllGather, &[8, 1024, 1 << 30], 24);
        let table = [
            (0, None),
            (1024, Some(1024)),
            (768, Some(1024)),
            ((1 << 30) - 64, Some(1 << 30)),
            // Too far from any: a size of its own.
            ((1 << 30) - 384, Some((1 << 30) - 384)),
            (2 << 30, Some(2 << 30)),
        ];
        for (printed, size) in table {
            assert_eq!(declared_size(printed, &job, Some(24)), size, "{printed}");
        }
    }

    #[test]
    fn a_node_is_named_as_a_whole_word_only() {
        let nodes = ["p5-1", "p5-11"].map(str::to_owned);
        assert_eq!(named_node("srun: error: p5-11: task 3: Killed", &nodes), Some("p5-11".into()));
        assert_eq!(named_node("p5-111 is not ours", &nodes), None);
    }

    /// Two ranks, two sizes, all well.
    const WHOLE: &str = "\
# nccl-tests version 2.17.6 nccl-headers=22809 nccl-library=22809
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 1 minBytes 8388608 maxBytes 16777216 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid   1001 on         n1 device  0 [0000:17:00] NVIDIA Test GPU
#  Rank  1 Group  0 Pid   1002 on         n1 device  1 [0000:65:00] NVIDIA Test GPU
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
     8388608       2097152     float     sum      -1    83.33  100.67  100.67       0    80.98  103.59  103.59       0
    16777216       4194304     float     sum      -1   128.30  130.77  130.77       0   127.00  132.10  132.10       0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 116.782
#
# Collective test concluded: all_reduce_perf
#
";

    fn output_of(text: &str) -> Output {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), text).expect("written");
        let mut job = job(Op::AllReduce, &[8 << 20, 16 << 20], 2);
        job.files.push(InputFile {
            role: FileRole::NcclTests,
            path: file.path().to_owned(),
            shown: "raw/j/stdout".into(),
            node: None,
            part: None,
            rank: None,
        });
        run(&job)
    }

    fn without_rows(text: &str) -> String {
        text.lines().filter(|line| line.starts_with('#')).map(|line| format!("{line}\n")).collect()
    }

    fn cause(text: &str) -> Option<String> {
        output_of(text).not_comparable.map(|not| not.cause)
    }

    #[test]
    fn a_whole_table_gives_every_number_of_both_placements() {
        let output = output_of(WHOLE);
        assert_eq!(output.not_comparable, None);
        assert_eq!(output.findings, []);
        assert!(
            output.versions["nccl-tests"].contains("2.17.6") && output.versions["nccl"].contains("2.28.9")
        );
        let count = |name: &str| output.metrics.iter().filter(|metric| &*metric.name == name).count();
        assert_eq!(
            ["nccl.busbw", "nccl.algbw", "nccl.time", "nccl.wrong", "nccl.ranks"].map(count),
            [4, 4, 4, 4, 1]
        );
    }

    #[test]
    fn numbers_that_stand_there_and_say_nothing_are_told_apart() {
        let cut = WHOLE.split("# Out of bounds").next().unwrap_or_default();
        // A row of which half is missing, in a table that concludes.
        let torn = WHOLE.replace("       0   127.00  132.10  132.10       0", "");
        let one_rank: String =
            WHOLE.lines().filter(|line| !line.contains("Rank  1")).map(|line| format!("{line}\n")).collect();
        let table = [
            (WHOLE.to_owned(), None),
            (cut.to_owned(), Some("cut")),
            (torn, Some("garbled")),
            (WHOLE.replace("128.30  130.77", "128.30  190.77"), Some("wrong-ranks")),
            (WHOLE.replace("128.30  130.77  130.77", "128.30  190.77  190.77"), Some("bandwidth-disagrees")),
            (WHOLE.replace("128.30  130.77  130.77", "  0.00  130.77  130.77"), Some("bandwidth-disagrees")),
            (WHOLE.replace("130.77  130.77", "NaN  130.77"), Some("garbled")),
            (one_rank, Some("wrong-ranks")),
            (format!("{WHOLE}{WHOLE}"), Some("wrong-ranks")),
            (WHOLE.replace("all_reduce_perf", "all_gather_perf"), Some("wrong-ranks")),
            (format!("{WHOLE}{}", without_rows(WHOLE)), Some("garbled")),
        ];
        for (text, expected) in table {
            assert_eq!(cause(&text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn wrong_data_is_a_number_and_no_failure_of_the_machinery() {
        let text = WHOLE
            .replace("132.10  132.10       0", "132.10  132.10      77")
            .replace("values : 0 OK", "values : 1 FAILED");
        let output = output_of(&text);
        assert!(output.data_wrong && output.failure.is_none() && output.not_comparable.is_none());
        assert!(output.metrics.iter().any(|metric| &*metric.name == "nccl.wrong" && metric.value == 77.0));
    }

    #[test]
    fn an_output_of_something_else_gives_no_number() {
        for text in ["", "hello\n", "\0\0\0"] {
            let output = output_of(text);
            assert_eq!(output.metrics, []);
            assert_eq!(output.findings[0].code, "not-understood");
        }
    }
}
