//! Tables of nccl-tests: complete, cut, garbled and of other jobs.

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
            by_torch: false,
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
fn a_row_counts_for_the_declared_size() {
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
    let nodes =
        ["ip-10-0-1-1.ec2.internal", "ip-10-0-1-2.ec2.internal", "10.0.1.3", "task.x"].map(str::to_owned);
    let named = Some("ip-10-0-1-2.ec2.internal".to_owned());
    for text in ["rank 9 on node ip-10-0-1-2 exited", "on ip-10-0-1-2.ec2.internal: 10"] {
        assert_eq!(named_node(text, &nodes), named, "{text}");
    }
    assert_eq!(named_node("task 10 on ip-10-0-1-3", &nodes), None);
    let alike = ["ip-1.a", "ip-1.b"].map(str::to_owned);
    assert_eq!(named_node("ip-1 is one of two", &alike), None);
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
    assert!(output.versions["nccl-tests"].contains("2.17.6") && output.versions["nccl"].contains("2.28.9"));
    let count = |name: &str| output.metrics.iter().filter(|metric| &*metric.name == name).count();
    assert_eq!(
        ["nccl.busbw", "nccl.algbw", "nccl.time", "nccl.wrong", "nccl.ranks"].map(count),
        [4, 4, 4, 4, 1]
    );
}

#[test]
fn tables_that_cannot_be_compared_are_named_with_their_cause() {
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
fn wrong_data_is_a_metric_and_no_infrastructure_failure() {
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

#[test]
fn messages() {
    let one_rank: String =
        WHOLE.lines().filter(|line| !line.contains("Rank  1")).map(|line| format!("{line}\n")).collect();
    let texts = [
        "hello\n".to_owned(),
        WHOLE.split("# Out of bounds").next().unwrap_or_default().to_owned(),
        WHOLE.replace("128.30  130.77", "128.30  190.77"),
        WHOLE.replace("128.30  130.77  130.77", "128.30  190.77  190.77"),
        one_rank,
        format!("{WHOLE}{WHOLE}"),
        WHOLE.replace("all_reduce_perf", "all_gather_perf"),
    ];
    let outputs: Vec<Output> = texts.iter().map(|text| output_of(text)).collect();
    insta::assert_snapshot!(crate::recipe::testing::messages(&outputs));
}
