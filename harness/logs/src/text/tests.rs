//! Each prefix before the lines of each reader.

use super::super::{
    flow_log, inspector, lttng, mpi_log, nccl_debug, nccl_tests, ras, torch_failure, training_log,
};
use super::*;
use std::io::Cursor;

/// What stands before a line, and the tag that it leaves.
const PREFIXES: &[(&str, &str)] = &[
    ("", ""),
    ("0: ", "0"),
    (" 12: ", "12"),
    ("[rank3]:", "3"),
    ("[default7]:", "7"),
    ("0: [default7]:", "0 7"),
    ("[1,0]<stdout>:", "1,0"),
    ("[1,0]<stderr>:", "1,0"),
    ("[prterun-a-77@1,3]<stdout>: ", "prterun-a-77@1,3"),
    ("[1,mpirank:8,algo-2]<stdout>:", "1,mpirank:8,algo-2"),
    ("[3]<stdout>:", "3"),
    ("(head, rank=0, pid=3808) ", "0"),
    ("(worker1, rank=1, pid=77, ip=10.0.0.2) [1,3]<stdout>:", "1 1,3"),
    ("(RayTrainWorker pid=1193, ip=10.0.0.2) ", "RayTrainWorker pid=1193, ip=10.0.0.2"),
    ("\x1b[36m(task pid=12)\x1b[0m ", "task pid=12"),
    ("2025-11-20T10:00:01.123456789Z stdout F ", ""),
    ("2025-11-20T10:00:01.5+00:00 stderr P 3: ", "3"),
    ("Thu Nov 20 10:00:01 2025<stdout>:", ""),
    ("Thu Nov 20 10:00:01 2025[1,0]<stdout>:", "1,0"),
    ("2025-11-20T10:00:01.123456789Z ", ""),
    ("[2025-11-20 10:00:01] ", ""),
    ("[2025-11-20 10:00:01] 3: ", "3"),
    ("[pod/worker-0/main] ", "worker-0/main"),
    ("[pod/worker-0/main] 2025-11-20T10:00:01Z ", "worker-0/main"),
    ("2025-11-20T10:00:01Z [pod/worker-0/main] ", "worker-0/main"),
    ("worker-0 main ", "worker-0 main"),
    ("worker-0 main 2025-11-20T10:00:01.5Z ", "worker-0 main"),
    ("Nov 20 10:00:01 node-1 unit[1]: ", "node-1"),
    ("Nov  2 10:00:01 node-1 unit[1]: ", "node-1"),
    ("2025-11-20T10:00:01+0000 node-1 unit[1]: ", "node-1"),
    ("2025-11-20 10:00:01,123 - INFO - ", ""),
    ("2025-11-20 10:00:01,123 - root - INFO - ", ""),
    ("[rank2]:2025-11-20 10:00:01,123 - root - INFO - ", "2"),
    ("worker-1  | ", "worker-1"),
    ("worker-1\t", "worker-1"),
    ("12:30:01: ", ""),
    ("12:30:01.250 | ", ""),
    ("[12:30:01] ", ""),
    ("[1084456.074562] ", ""),
    ("worker-1  | 0: ", "worker-1 0"),
    ("\x1b(B\x1b[m", ""),
    ("\x1b]0;title\x1b\\\x1b[1;32m", ""),
    ("\x1b[36mworker-0\x1b[0m \x1b[35mmain\x1b[0m ", "worker-0 main"),
];

fn prefixed(prefix: &str, text: &str) -> String {
    text.lines().map(|line| format!("{prefix}{line}\n")).collect()
}

#[test]
fn a_table_of_nccl_tests_is_read_from_the_lines_that_docker_keeps() {
    let wrap = |line: &str| {
        serde_json::json!({"log": format!("{line}\n"), "stream": "stdout", "time": "2025-11-20T10:00:01Z"})
            .to_string()
            + "\n"
    };
    let text: String = TABLE.lines().map(wrap).collect();
    let read = nccl_tests::read(text.as_bytes(), "log").expect("a table");
    assert_eq!((read.findings.len(), read.runs[0].rows.len(), read.runs[0].concluded), (0, 2, true));
}

#[test]
fn the_rank_of_a_label_is_known() {
    let task = |line: &str| plain(line, |_| false).numbers.task;
    assert_eq!(task("[1,mpirank:8,algo-2]<stdout>:x"), Some(8));
    assert_eq!(task("[3]<stderr>:x"), Some(3));
    assert_eq!(task("(head, rank=4, pid=3808) x"), Some(4));
    assert_eq!(task("(RayTrainWorker pid=1193) x"), None);
    for line in ["(a pid=x) y", "(see pid=12 of the other program in the log) y", "(pid) y", "f(a, pid=3)"] {
        assert_eq!(plain(line, |_| false).text, line);
    }
}

const TABLE: &str = "\
# nThread 1 nGpus 1 minBytes 1024 maxBytes 2048 step: 2(factor) warmup iters: 1 iters: 20
#  Rank  0 Group  0 Pid   1001 on    alpha-1 device  0 [0000:17:00] NVIDIA Test GPU
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
        1024           256     float     sum      -1    34.94    0.03    0.05       0    35.20    0.03    0.05     N/A
        2048           512     float     sum      -1    34.94    0.06    0.10       0    35.20    0.06    0.10     N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 0.075
";

#[test]
fn a_table_of_nccl_tests_is_read_behind_every_prefix() {
    for (prefix, tag) in PREFIXES {
        let read = nccl_tests::read(prefixed(prefix, TABLE).as_bytes(), "log")
            .unwrap_or_else(|e| panic!("{prefix:?}: {e}"));
        assert_eq!(read.findings, [], "{prefix:?}");
        let [run] = read.runs.as_slice() else { panic!("{prefix:?}: {read:#?}") };
        assert_eq!((run.rows.len(), run.ranks.len(), run.concluded), (2, 1, true), "{prefix:?}");
        let begins = |text: &str| text.trim_start().starts_with(['#', '1', '2']);
        assert_eq!(plain(&prefixed(prefix, "# x"), begins).tag, *tag, "{prefix:?}");
    }
}

#[test]
fn steps_are_read_behind_every_prefix() {
    let lines = [
        "iteration        7/     100 | elapsed time per iteration (ms): 20289.1 | lm loss: 1.25E+01 |",
        "Training epoch 0, iteration 45/99 | train_step_timing in s: 46.84 | reduced_train_loss: 11.03",
        "Epoch 1 Batch 5 Steps 9 Loss: 10.02562, Speed: 16.59 samples/sec, lr: 0.000038",
        "step: 10  loss:  7.1235  memory: 9.74GiB(10.25%)  tps: 6,423",
        "Epoch 0:  47%|####     | 7/15 [06:19<07:13, train_step_timing in s=49.50]",
    ];
    for (prefix, tag) in PREFIXES {
        for line in lines {
            let log = training_log::read(prefixed(prefix, line).as_bytes()).expect("in memory");
            let [series] = log.series.as_slice() else { panic!("{prefix:?}: {line}: {log:#?}") };
            assert_eq!(
                (series.who.as_str(), series.steps.len(), log.garbled),
                (*tag, 1, 0),
                "{prefix:?}: {line}"
            );
            let stamped = prefix.contains("2025-");
            assert_eq!(series.steps[0].moment_ms.is_some(), stamped, "{prefix:?}: {line}");
        }
    }
}

#[test]
fn lines_of_nccl_are_read_behind_every_prefix() {
    let line = "alpha-1:100:200 [3] NCCL INFO AllReduce: opCount 1f sendbuff 0x7f00 recvbuff 0x7f10 count 4 datatype 7 op 0 root 0 \
                comm 0x50 [nranks=2] stream 0x55";
    for (prefix, _) in PREFIXES {
        for own in ["", "[2025-11-20 10:00:01] "] {
            let text = prefixed(prefix, &format!("{own}{line}"));
            let log = nccl_debug::read(Cursor::new(&text), "log", &nccl_debug::EDGES).expect("in memory");
            assert_eq!((log.of_nccl, log.understood, log.operations.len()), (1, 1, 1), "{prefix:?}{own}");
            assert_eq!(log.hosts, ["alpha-1"], "{prefix:?}{own}");
        }
    }
}

#[test]
fn calls_of_mpi_are_read_behind_every_prefix() {
    let line = "[12.5] MPI_Allreduce: world_rank=3 comm_rank=3 comm_size=8 bytes=64 comm=0x55";
    for (prefix, _) in PREFIXES {
        let mut reader = mpi_log::Reader::new(&[]);
        reader.read(prefixed(prefix, line).as_bytes(), "log").expect("in memory");
        let log = reader.finish();
        assert_eq!((log.of_mpi, log.understood), (1, 1), "{prefix:?}");
    }
}

/// Of a training that torchrun ran; `[rank2]:` is PyTorch's own and stands behind all other labels.
const TORCH: &str = "\
[rank2]: Traceback (most recent call last):
[rank2]:   File \"/w/train.py\", line 120, in <module>
[rank2]: RuntimeError: CUDA error: an illegal memory access was encountered
Root Cause (first observed failure):
[0]:
  time      : 2026-11-22_10:11:12
  host      : n2
  rank      : 2 (local_rank: 0)
  exitcode  : -9 (pid: 4711)
============================================================
  rank      : 7 (after the block)
[W socket.cpp:601] [c10d] The IPv4 network addresses of (n1, 29500) cannot be retrieved (gai error: -2)
";

#[test]
fn failures_of_trainings_are_read_behind_every_prefix() {
    let read = |text: &str| {
        let mut reader = torch_failure::Reader::default();
        text.lines().zip(1..).for_each(|(text, line)| reader.line(text, line));
        reader.finish()
    };
    for (prefix, _) in PREFIXES {
        let account = read(&prefixed(prefix, TORCH));
        let cause = account.root_cause.clone().unwrap_or_else(|| panic!("{prefix:?}: {account:?}"));
        assert_eq!(
            (cause.rank, cause.host.as_deref(), cause.exit_code, cause.line),
            (Some(2), Some("n2"), Some(-9), 4),
            "{prefix:?}"
        );
        let (rank, said) = account.first_exception().unwrap_or_else(|| panic!("{prefix:?}: {account:?}"));
        assert_eq!(
            (rank, said.line, said.text.as_str()),
            (Some(2), 3, "RuntimeError: CUDA error: an illegal memory access was encountered"),
            "{prefix:?}"
        );
        let met = account.rendezvous.unwrap_or_else(|| panic!("{prefix:?}"));
        assert_eq!(met.to, Some(("n1".to_owned(), 29500)), "{prefix:?}");
        // Older versions of PyTorch name no rank.
        let old = "Traceback (most recent call last):\n  File \"x\"\nKeyError: 'input_ids'\n";
        let account = read(&prefixed(prefix, old));
        let said = account.first_exception().map(|(_, said)| said.text.as_str());
        assert_eq!(said, Some("KeyError: 'input_ids'"), "{prefix:?}");
    }
}

#[test]
fn the_rate_of_a_flow_is_read_behind_every_prefix() {
    let fabtests = "path gpu 3 sysfs\n---\nfi_rma_bw -m :\n- { xfer_size: 1048576, iterations: 60000, total: 62914560000, time: \
                    5.242880, MB/sec: 12000.000000, usec/xfer: 87.381332, Mxfers/sec: 0.011444 }\n";
    let perftest = "path gpu 3 sysfs\n #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n \
                    1048576    60000            0.00               96.00  \t\t   0.011444\n";
    for (prefix, _) in PREFIXES {
        for text in [fabtests, perftest] {
            let text = prefixed(prefix, text);
            let flow =
                flow_log::read(text.as_bytes(), "log").unwrap_or_else(|gap| panic!("{prefix:?}: {gap}"));
            assert!((flow.rate_gb_s - 12.0).abs() < 1e-9, "{prefix:?}: {flow:?}");
            let path = flow_log::FlowPath::read(text.as_bytes());
            assert_eq!(path, Some(flow_log::FlowPath::Gpu { gpu: 3, from_sysfs: true }), "{prefix:?}");
        }
        let gap = flow_log::read(prefixed(prefix, "tool-missing fi_rma_bw p5-001").as_bytes(), "log");
        assert_eq!(gap.map_err(|gap| gap.kind), Err(flow_log::GapKind::ToolMissing), "{prefix:?}");
    }
}

#[test]
fn records_of_inspector_are_read_behind_every_prefix() {
    let bytes = include_str!("../../../../tests/fuzz/seeds/inspector/v4.3.log");
    let whole = |text: &str| {
        let mut reader = inspector::Reader::default();
        reader.read(text.as_bytes(), "log").expect("in memory");
        let log = reader.finish();
        (log.records, log.proxy_records, log.other_lines, log.series, log.findings)
    };
    let gauge = "nccl_bus_bandwidth_gbs{version=\"v5.1\",rank=\"3\"} 12.5\n";
    for (prefix, _) in PREFIXES {
        assert_eq!(whole(&prefixed(prefix, bytes)), whole(bytes), "{prefix:?}");
        let mut reader = inspector::Reader::default();
        reader.read(prefixed(prefix, gauge).as_bytes(), "log").expect("in memory");
        assert_eq!(reader.finish().gauges.len(), 1, "{prefix:?}");
    }
    let over_lines = bytes.lines().next().expect("a record").replace(',', ",\n").replace(":{", ": {\n  ");
    let over_lines = format!("{{\n  {}\n}}\n", &over_lines[1..over_lines.len() - 1]);
    for prefix in ["0: ", "worker-0 main ", "\x1b[32m"] {
        assert_eq!(whole(&prefixed(prefix, &over_lines)), whole(&over_lines), "{prefix:?}");
    }
}

#[test]
fn reports_of_ras_are_read_behind_every_prefix() {
    let text = include_str!("../../../../tests/fuzz/seeds/ras/report.txt").replace("      OK", "  INCOMPLETE").replace(
        "Errors\n======\n",
        "Errors\n======\n\n#0-0 (00264af53edbe986) INCOMPLETE\n  Missing communicator data from 1 rank\n  \
         Rank 13 -- GPU 5 managed by process 41 on node 10.0.0.2\n",
    );
    let json = include_str!("../../../../tests/fuzz/seeds/ras/report.json");
    let event = "[2025-12-19 13:07:07] PEER_DEAD: Process 1524345 on node 172.16.64.245 managing GPU 1\n";
    let read = |text: &str| {
        let mut reader = ras::Reader::default();
        reader.read(text.as_bytes(), "log").unwrap_or_else(|e| panic!("{e}: {text}"));
        reader.finish()
    };
    assert_eq!(read(&text).reports[0].communicators[0].missing.len(), 1);
    for text in [text.as_str(), json, event] {
        for (prefix, _) in PREFIXES {
            assert_eq!(read(&prefixed(prefix, text)), read(text), "{prefix:?}");
        }
    }
}

#[test]
fn events_of_lttng_are_read_behind_every_prefix() {
    let seed = include_str!("../../../../tests/fuzz/seeds/lttng/two-rails.txt");
    let others = "[2026-01-02 00:00:01.000000000] nccl_ofi_plugin:Flush: { }\n[00:00:02.1] host other:thing: { a = 1 }\n\
                  [1.5] h nccl_ofi_plugin:Read: { note = \"a: b\" }\n";
    for text in [seed, others] {
        let whole = lttng::read(text.as_bytes()).expect("sound");
        assert!(whole.events.len() >= 2, "{whole:?}");
        for (prefix, _) in PREFIXES {
            assert_eq!(lttng::read(prefixed(prefix, text).as_bytes()).as_ref(), Ok(&whole), "{prefix:?}");
        }
    }
}

#[test]
fn tags_within_a_line_go_in_every_reader() {
    let torn = |text: &str, at: &str| text.replacen(at, &format!("[1,0]<stdout>:{at}"), 1);
    let step =
        torn("iteration 7/ 100 | elapsed time per iteration (ms): 20289.1 | lm loss: 1.25E+01 |", "289.1");
    let log = training_log::read(step.as_bytes()).expect("in memory");
    assert!((log.series[0].steps[0].seconds.unwrap_or_default() - 20.2891).abs() < 1e-9);
    for at in ["NCCL", "sendbuff", "0x7f10", "count 4"] {
        let line = "a:100:200 [3] NCCL INFO AllReduce: opCount 1f sendbuff 0x7f00 recvbuff 0x7f10 count 4 datatype 7 op 0 root 0 comm \
                    0x50 [nranks=2] stream 0x55\n";
        let log =
            nccl_debug::read(Cursor::new(torn(line, at)), "log", &nccl_debug::EDGES).expect("in memory");
        assert_eq!((log.understood, log.operations.len(), log.hosts), (1, 1, vec!["a".to_owned()]), "{at}");
    }
    let mut reader = mpi_log::Reader::new(&[]);
    let line =
        torn("[12.5] MPI_Allreduce: world_rank=3 comm_rank=3 comm_size=8 bytes=64 comm=0x55\n", "comm_size");
    reader.read(line.as_bytes(), "log").expect("in memory");
    assert_eq!(reader.finish().understood, 1);
}

#[test]
fn output_of_programs_is_no_label() {
    let begins = |text: &str| text.trim_start().starts_with('#');
    for line in [
        "host: Test NCCL failure",
        "host:1:2 [0] NCCL INFO x",
        "prose of two words",
        "[titan] x",
        "a - INFO - # x",
        "1:2 x",
    ] {
        let plain = plain(line, begins);
        assert_eq!((plain.tag.as_str(), &*plain.text), ("", line));
    }
    for (line, tag, text) in [
        ("0:            8", "0", "           8"),
        ("[1,0]<stdout>:   8  2 float[1,0]<stdout>:  sum", "1,0", "   8  2 float  sum"),
        ("[1,0]<stdout>: 8 [1,3]<stdout>: 2", "1,0", " 8  2"),
        ("node-1:    # x", "node-1", "   # x"),
        ("N/A\x1b(B\x1b[m 1\x1b", "", "N/A 1"),
        ("a\u{9b}31mb\x1bP1;2q\x1b\\c\x1b7d", "", "abcd"),
        ("<std> <stdout>: [a]<stdout>: [1,0]<stdo", "", "<std> <stdout>: [a]<stdout>: [1,0]<stdo"),
    ] {
        let plain = plain(line, begins);
        assert_eq!((plain.tag.as_str(), &*plain.text), (tag, text), "{line:?}");
    }
}
