//! Tables of nccl-tests: complete, cut, garbled and of other jobs.

use super::*;
use crate::recipe::testing;
use metric::SweepFacts;

fn job(op: Op, sizes: &[u64], ranks: u32) -> JobInput {
    let mut workload = testing::nccl_workload(op, sizes, Some(ranks));
    if let Workload::NcclTests { sweep, .. } = &mut workload {
        *sweep = Some(SweepFacts {
            iterations: 20,
            warmup: 1,
            dtype: "float".into(),
            redop: Some("sum".into()),
            root: None,
            gpu: "H100".into(),
        });
    }
    JobInput { round: 1, ..testing::job(workload, &[], |_| "n1".to_owned(), 0) }
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
    output_with(text, 2, |_| ())
}

/// Of a job of that many ranks, which a test changes as it needs.
fn output_with(text: &str, ranks: u32, change: impl FnOnce(&mut JobInput)) -> Output {
    let file = testing::file_with(text);
    let mut job = job(Op::AllReduce, &[8 << 20, 16 << 20], ranks);
    job.files.push(testing::job_file(FileRole::NcclTests, file.path(), "stdout"));
    change(&mut job);
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

/// Of what is printed twice, of the plan, and of what every version prints: each contradiction by itself.
#[test]
fn a_table_that_contradicts_its_plan_or_itself_is_not_comparable() {
    let (ranks, sweep, garbled) = (Some("wrong-ranks"), Some("other-sweep"), Some("garbled"));
    let changes = [
        ("values : 0 OK", "values : 0 FAILED", garbled),
        ("values : 0 OK", "values : nan OK", garbled),
        ("# Out of bounds values : 0 OK\n", "", garbled),
        ("bandwidth    : 116.782", "bandwidth    : nan", garbled),
        ("bandwidth    : 116.782", "bandwidth    : ", garbled),
        ("# Avg bus bandwidth    : 116.782\n", "", garbled),
        ("# Collective test concluded: all_reduce_perf\n", "", garbled),
        (
            "concluded: all_reduce_perf\n",
            "concluded: all_reduce_perf\n# Out of bounds values : 7 FAILED\n",
            Some("out-of-bounds"),
        ),
        (
            "concluded: all_reduce_perf\n",
            "concluded: all_reduce_perf\nn1: Test NCCL failure common.cu:401 'unhandled system error'\n",
            Some("nccl-error"),
        ),
        (
            "concluded: all_reduce_perf\n",
            "concluded: all_reduce_perf\nSegmentation fault (core dumped)\n",
            Some("signal"),
        ),
        ("validation: 1", "validation: 0", sweep),
        (" iters: 20", " iters: 1", sweep),
        ("warmup iters: 1 ", "warmup iters: 0 ", sweep),
        ("agg iters: 1", "agg iters: 8", sweep),
        ("graph: 0", "graph: 10", sweep),
        ("sum      -1    83", "max      -1    83", sweep),
        ("sum      -1    83", "sum       3    83", sweep),
        ("4194304     float", "8388608  bfloat16", sweep),
        ("2097152     float", "2097100     float", garbled),
        ("2097152     float", " 524288     float", garbled),
        ("[0000:17:00] NVIDIA Test GPU", "[0000:17:00] NVIDIA A100-SXM4-80GB", sweep),
        ("[0000:65:00]", "[0000:17:00]", ranks),
        ("1002 on         n1", "1002 on      other", ranks),
        ("#  Rank  1 ", "#  Rank  2 ", ranks),
    ];
    for (from, to, expected) in changes {
        let text = WHOLE.replace(from, to);
        assert_ne!(text, WHOLE, "{from}");
        assert_eq!(
            cause(&text).as_deref(),
            expected,
            "{from} -> {to}\n{:?}",
            output_of(&text).not_comparable
        );
    }
    let without = |word: &str| -> String {
        WHOLE.lines().filter(|line| !line.contains(word)).map(|line| format!("{line}\n")).collect()
    };
    assert_eq!(cause(&without("Pid")).as_deref(), ranks);
    assert_eq!(cause(&without("nThread")).as_deref(), garbled);
    assert_eq!(cause(&without("time   algbw")).as_deref(), garbled);
    let ninth = WHOLE.replace(
        "#\n#                                                              out",
        "#  Rank  2 Group  0 Pid   1003 on         n1 device  2 [0000:66:00] NVIDIA Test GPU\n#\n#          out",
    );
    assert_eq!(cause(&ninth).as_deref(), ranks, "{ninth}");
}

/// Names, ids and lines as versions and clusters print them.
#[test]
fn what_old_versions_and_other_names_print_of_a_healthy_job_is_comparable() {
    let old = WHOLE
        .replace(" agg iters: 1 validation: 1 graph: 0", " validation: 1")
        .replace("[0000:17:00]", "[0x00]")
        .replace("[0000:65:00]", "[0x00]");
    let newest = WHOLE
        .replace("NVIDIA Test GPU", "NVIDIA H100 80GB HBM3")
        .replace(" on         n1 ", " on  n1.internal ");
    // A pod, or a host whose name is not the inventory's.
    let pod = WHOLE.replace(" on         n1 ", " on harness-x-0 ");
    let plain = WHOLE.lines().filter(|line| !line.contains("Collective test") && !line.contains("version"));
    let plain: String = plain.map(|line| format!("{line}\n")).collect();
    for text in [old, newest, pod, plain] {
        assert_eq!(output_of(&text).not_comparable, None, "{text}");
    }
}

#[test]
fn programs_on_single_gpus_ran_on_different_ones() {
    let one = |bus: &str| {
        let kept = WHOLE.lines().filter(|line| !line.contains("Rank  1"));
        let text: String = kept.map(|line| format!("{line}\n")).collect();
        // On one rank nothing crosses a bus.
        text.replace("100.67  100.67", "100.67    0.00")
            .replace("103.59  103.59", "103.59    0.00")
            .replace("130.77  130.77", "130.77    0.00")
            .replace("132.10  132.10", "132.10    0.00")
            .replace("bandwidth    : 116.782", "bandwidth    : 0")
            .replace("[0000:17:00]", bus)
    };
    let cause_of = |buses: [&str; 2]| {
        let files: Vec<tempfile::NamedTempFile> =
            (buses.iter()).map(|bus| testing::file_with(&one(bus))).collect();
        let mut job = job(Op::AllReduce, &[8 << 20, 16 << 20], 1);
        job.files = (files.iter().enumerate())
            .map(|(gpu, file)| InputFile {
                role: FileRole::GpuNcclTests,
                path: file.path().to_owned(),
                shown: format!("raw/j/gpu{gpu}.out"),
                node: Some("n1".into()),
                part: Some(format!("gpu{gpu}")),
                rank: None,
            })
            .collect();
        run(&job).not_comparable.map(|not| (not.cause, not.why))
    };
    assert_eq!(cause_of(["[0000:17:00]", "[0000:65:00]"]), None);
    assert_eq!(cause_of(["[0x00]", "[0x00]"]), None, "the bus alone is printed");
    let (cause, why) = cause_of(["[0000:86:00]", "[0000:86:00]"]).expect("not comparable");
    assert_eq!(cause, "wrong-ranks");
    assert!(why.contains("ran on the same GPU, 0000:86:00"), "{why}");
}

#[test]
fn hosts_of_a_job_are_its_nodes() {
    let not_comparable = |nodes: &[&str], hosts: [&str; 2], names: &[(&str, &str)]| {
        let text = WHOLE.replacen(" on         n1 ", &format!(" on {} ", hosts[0]), 1).replacen(
            " on         n1 ",
            &format!(" on {} ", hosts[1]),
            1,
        );
        let names = names.iter().map(|(node, name)| ((*node).to_owned(), (*name).to_owned()));
        let output = output_with(&text, 2, |job| {
            job.nodes = nodes.iter().map(|node| (*node).to_owned()).collect();
            job.host_names = names.collect();
        });
        output.not_comparable
    };
    let cause_of = |nodes: &[&str], hosts: [&str; 2]| not_comparable(nodes, hosts, &[]).map(|not| not.cause);
    let ranks = Some("wrong-ranks".to_owned());
    assert_eq!(cause_of(&["ip-10-0-0-1.ec2.internal", "b"], ["ip-10-0-0-1", "b"]), None);
    assert_eq!(cause_of(&["10.0.0.1", "10.0.0.2"], ["ip-10-0-0-1", "ip-10-0-0-2"]), None);
    assert_eq!(cause_of(&["10.0.0.1", "b"], ["ip-10-0-0-1", "b"]), None);
    assert_eq!(cause_of(&["a", "b"], ["worker-0", "worker-1"]), None);
    assert_eq!(cause_of(&["a", "b"], ["a", "c"]), ranks);
    assert_eq!(cause_of(&["a"], ["a", "b"]), ranks);
    assert_eq!(cause_of(&["a"], ["x", "y"]), ranks);
    // One name for all: which ranks ran where is unknown, and that a node ran any.
    assert_eq!(cause_of(&["a", "b"], ["x", "x"]), ranks);
    assert_eq!(cause_of(&["a", "b"], ["a", "a"]), ranks);
    assert_eq!(cause_of(&["a.one", "a.two"], ["a", "a"]), None);
    // As the probe read them.
    let probed = |hosts: [&str; 2], names: &[(&str, &str)]| not_comparable(&["h1", "h2"], hosts, names);
    let both = [("h1", "ip-1.internal"), ("h2", "ip-2.internal")];
    assert_eq!(probed(["ip-1", "ip-2"], &both), None);
    let other = probed(["ip-1", "ip-9"], &both).expect("not comparable");
    assert_eq!(other.cause, "wrong-ranks");
    let why =
        "a rank ran on ip-9, nodes of the job: h1 (host name ip-1.internal), h2 (host name ip-2.internal)";
    assert!(other.why.ends_with(why), "{}", other.why);
    assert_eq!(probed(["h1", "h2"], &both), None, "the nodes' own names are of no other host");
    assert!(probed(["ip-1", "ip-1"], &both).is_some());
    assert_eq!(probed(["ip-1", "ip-9"], &both[..1]), None, "h2 was not probed");
    assert_eq!(probed(["ip-1", "h2"], &both[..1]), None);
    assert!(probed(["ip-8", "ip-9"], &both[..1]).is_some(), "one of them must be h1");
}

#[test]
fn ranks_are_numbered_node_by_node() {
    let not_comparable = |hosts: [&str; 4]| {
        let rank = |at: usize| {
            let host = hosts[at];
            format!(
                "#  Rank  {at} Group  0 Pid   100{at} on {host} device  {at} [0000:{at}7:00] NVIDIA Test GPU\n"
            )
        };
        let ranks: String = (0..4).map(rank).collect();
        let (head, rest) = WHOLE.split_once("#  Rank  0").expect("ranks");
        let (_, table) = rest.split_once("#\n").expect("a table");
        let table = table
            .replace("100.67  100.67", "100.67  151.01")
            .replace("103.59  103.59", "103.59  155.39")
            .replace("130.77  130.77", "130.77  196.16")
            .replace("132.10  132.10", "132.10  198.15")
            .replace("bandwidth    : 116.782", "bandwidth    : 175.177");
        let output = output_with(&format!("{head}{ranks}#\n{table}"), 4, |job| {
            job.nodes = vec!["a".to_owned(), "b".to_owned()];
        });
        output.not_comparable
    };
    assert_eq!(not_comparable(["a", "a", "b", "b"]), None);
    assert_eq!(not_comparable(["b", "b", "a", "a"]), None, "Slurm's order of nodes may be another");
    // As `--distribution=cyclic` deals them out.
    let not = not_comparable(["a", "b", "a", "b"]).expect("not comparable");
    assert_eq!(not.cause, "wrong-ranks");
    assert!(not.why.contains("rank 2 ran on a: ranks are not numbered node by node"), "{}", not.why);
}

#[test]
fn a_gpu_where_the_probe_found_none_is_not_that_of_the_node() {
    let cause_of = |places: &[&str]| {
        let places = places.iter().map(|place| (*place).to_owned()).collect();
        let output = output_with(WHOLE, 2, |job| {
            job.gpu_places.insert("n1".to_owned(), places);
        });
        output.not_comparable.map(|not| (not.cause, not.why))
    };
    assert_eq!(cause_of(&["0000:17:00", "0000:65:00", "0000:07:00"]), None);
    let (cause, why) = cause_of(&["0000:17:00", "0000:66:00"]).expect("not comparable");
    assert_eq!(cause, "wrong-ranks");
    assert!(why.contains("rank 1 ran on GPU 0000:65:00, and the probe found none there on n1"), "{why}");
}

#[test]
fn what_files_of_several_nodes_report_alike_names_none_of_them() {
    let failure = |role: FileRole, said: [&str; 2]| {
        let files = said.map(testing::file_with);
        let mut job = job(Op::AllReduce, &[8 << 20, 16 << 20], 2);
        job.nodes = vec!["n1".into(), "n2".into()];
        job.exit_code = Some(1);
        job.files = files
            .iter()
            .zip(["n1", "n2"])
            .map(|(file, node)| InputFile {
                role,
                path: file.path().to_owned(),
                shown: format!("raw/j/stdout.{node}"),
                node: Some(node.into()),
                part: None,
                rank: None,
            })
            .collect();
        let failure = run(&job).failure.expect("a failure");
        (failure.cause, failure.node)
    };
    let full = ["n1", "n2"].map(|node| format!("{node}: Test CUDA failure common.cu:892 'out of memory'\n"));
    let [first, second] = full.each_ref().map(String::as_str);
    let lost = "n2: Test NCCL failure common.cu:958 'remote process exited or there was a network error'\n";
    for role in [FileRole::NcclTests, FileRole::GpuNcclTests] {
        assert_eq!(failure(role, [first, second]), ("out-of-memory".into(), None));
        assert_eq!(failure(role, [first, lost]), ("out-of-memory".into(), Some("n1".into())));
        assert_eq!(failure(role, ["", second]), ("out-of-memory".into(), Some("n2".into())));
    }
    // Slurm names each node that it lost.
    let gone = ["srun: error: Node failure on n1\n", "srun: error: Node failure on n2\n"];
    assert_eq!(failure(FileRole::NcclTests, gone), ("node-failure".into(), Some("n1".into())));
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
