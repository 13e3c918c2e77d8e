//! Runs that came to nothing: the class, the line and the host of the first cause; and figures that disagree.

use super::super::*;
use super::{WHOLE, codes, only, text};

/// `WHOLE` up to its first row, and then what went wrong.
fn after_one_row(end: &str) -> String {
    let mut log: String = WHOLE.split_inclusive('\n').take(12).collect();
    log.push_str(end);
    log
}

#[test]
fn the_first_cause_is_reported_not_the_last_symptom() {
    use FailureClass::*;
    let table: [(&str, FailureClass, u64, Option<&str>); 11] = [
        (
            "alpha-1: Test NCCL failure common.cu:392 'unhandled system error / '\n\
             alpha-1:1001:1003 [0] socket.cc:9 NCCL WARN read: Connection reset by peer\n\
             srun: error: alpha-1: task 0: Exited with exit code 3\n",
            ConnectionLost,
            14,
            Some("alpha-1"),
        ),
        (
            "alpha-1: Test NCCL failure common.cu:392 'remote process exited or there was a network error / '\n\
             .. alpha-1 pid 1001: Test failure common.cu:590\n\
             srun: error: Node failure on alpha-2\n",
            NodeFailure,
            15,
            Some("alpha-2"),
        ),
        // https://github.com/awslabs/awsome-distributed-ai/issues/519: who lost its peer is not who failed.
        (
            "alpha-2: Test NCCL failure common.cu:392 'remote process exited or there was a network error / '\n\
             alpha-1: Test NCCL failure common.cu:392 'internal error - please report this issue / '\n",
            NcclError,
            14,
            Some("alpha-1"),
        ),
        (
            "alpha-2: Test NCCL failure common.cu:392 'remote process exited or there was a network error / '\n\
             .. alpha-2 pid 7: Test failure common.cu:590\nsrun: error: alpha-1: task 0: Exited with exit code 3\n",
            ConnectionLost,
            13,
            Some("alpha-2"),
        ),
        ("alpha-1: Test CUDA failure common.cu:9 'out of memory'\n", OutOfMemory, 13, Some("alpha-1")),
        ("alpha-1: Test timeout (30s) common.cu:1\n", TimedOut, 13, Some("alpha-1")),
        (
            "slurmstepd: error: *** STEP 7.0 ON alpha-1 CANCELLED AT 2025-01-31T12:00:00 DUE TO TIME LIMIT ***\n",
            TimeLimit,
            13,
            None,
        ),
        ("Segmentation fault (core dumped)\n", Signal, 13, None),
        ("srun: error: alpha-1: tasks 0-1: Exited with exit code 1\n", Exited, 13, Some("alpha-1")),
        ("alpha-1:1:2 [0] NCCL WARN network Libfabric not found.\n", NetworkNotFound, 13, Some("alpha-1")),
        ("write: No space left on device\n", NoSpace, 13, None),
    ];
    for (end, class, line, node) in table {
        let read = text(&after_one_row(end));
        let run = only(&read);
        let failure = run.failure.clone().unwrap_or_else(|| panic!("{end}"));
        assert_eq!((failure.class, failure.line, failure.node.as_deref()), (class, line, node), "{end}");
        assert_eq!((run.rows.len(), run.concluded), (1, false), "{end}");
    }
}

#[test]
fn what_several_hosts_report_alike_is_of_none_of_them() {
    use FailureClass::*;
    let failed = |why: &str| {
        let line = |host: &str| {
            format!(
                "{host}: Test CUDA failure common.cu:1030 '{why}'\n .. {host} pid 47884: Test failure common.cu:891\n"
            )
        };
        let [one, both] = [line("alpha-1"), line("alpha-1") + &line("alpha-2")].map(|end| {
            let read = text(&after_one_row(&end));
            let failure = only(&read).failure.clone().unwrap_or_else(|| panic!("{end}"));
            (failure.class, failure.node)
        });
        (one, both)
    };
    let (one, both) = failed("uncorrectable ECC error encountered");
    assert_eq!(one, (CudaError, Some("alpha-1".to_owned())));
    assert_eq!(both, (CudaError, None));
    for why in [
        "invalid device ordinal",
        "no kernel image is available for execution on the device",
        "CUDA driver version is insufficient for CUDA runtime version",
    ] {
        assert_eq!(failed(why), ((NotStarted, None), (NotStarted, None)), "{why}");
    }
    let nodes = "srun: error: Node failure on alpha-1\nsrun: error: Node failure on alpha-2\n";
    let read = text(&after_one_row(nodes));
    assert_eq!(only(&read).failure.as_ref().map(|it| it.node.as_deref()), Some(Some("alpha-1")));
}

#[test]
fn a_try_that_did_not_start_is_no_failure_of_the_run_that_ended() {
    let line = "ssh: Could not resolve hostname n-2: Name or service not known\n";
    let alone = text(line);
    assert_eq!(only(&alone).failure.as_ref().map(|it| it.class), Some(FailureClass::NotStarted));
    let before = text(&format!("{line}{WHOLE}"));
    assert_eq!((&only(&before).failure, codes(&before)), (&None, vec!["error-noted"]));
    let broken = text(&format!("{line}{}", after_one_row("")));
    assert_eq!(only(&broken).failure.as_ref().map(|it| it.class), Some(FailureClass::NotStarted));
    let within = text(&after_one_row(line));
    assert_eq!(only(&within).failure.as_ref().map(|it| it.class), Some(FailureClass::NotStarted));
}

#[test]
fn rows_behind_two_open_heads_are_of_neither_unless_the_same_hosts_try_again() {
    let head: String = WHOLE.split_inclusive('\n').take(11).collect();
    let rows = |host: &str| {
        let read = text(&format!("{}{WHOLE}", head.replace("alpha-1", host)));
        assert!(codes(&read).contains(&"interleaved-tables"), "{:?}", read.findings);
        read.runs.iter().map(|run| run.rows.len()).sum::<usize>()
    };
    assert_eq!((rows("beta-01"), rows("alpha-1")), (0, 3));
}

#[test]
fn closing_lines_without_a_row_are_not_called_missing() {
    let row = "8388608       2097152     float     sum      -1    83,33  100,67  100,67       0    80,98  103,59  103,59       0";
    let read = text(&format!(
        "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n{row}\n# Out of bounds values : 0 OK\n"
    ));
    let message = read.findings.iter().find(|it| it.code == "no-rows").map(|it| it.message.as_str());
    assert_eq!(message, Some("run has closing lines, and no row that could be read"));
}

#[test]
fn wrong_data_is_a_failure_that_concludes() {
    let read = text(&WHOLE.replace("values : 0 OK", "values : 12 FAILED"));
    let run = only(&read);
    assert_eq!(run.out_of_bounds, Some(OutOfBounds { count: 12, ok: false }));
    assert_eq!(run.failure.as_ref().map(|f| (f.class, f.line)), Some((FailureClass::OutOfBounds, 15)));
    let read = text(&WHOLE.replace(": 128.462 ", ": 128.462 FAILED"));
    assert_eq!(only(&read).failure.as_ref().map(|f| f.class), Some(FailureClass::BelowMinimum));
}

#[test]
fn a_warning_of_a_run_that_ended_well_is_no_failure() {
    let log = WHOLE.replacen("# Out", "a:1:2 [0] x.cc:1 NCCL WARN Connection refused\n# Out", 1);
    assert_eq!((only(&text(&log)).failure.clone(), codes(&text(&log))), (None, vec!["nccl-warn"]));
    let read = text(&format!("{}\n# error: Connection refused\n", log.trim_end()));
    assert_eq!((only(&read).failure.clone(), codes(&read)), (None, vec!["nccl-warn", "error-noted"]));
}

#[test]
fn a_table_without_an_end_is_reported() {
    assert_eq!(codes(&text(&after_one_row(""))), ["not-concluded"]);
    let head: String = WHOLE.split_inclusive('\n').take(7).collect();
    assert_eq!(codes(&text(&head)), ["no-rows"]);
}

#[test]
fn messages() {
    let whole = |from: &str, to: &str| text(&WHOLE.replacen(from, to, 1));
    let warned = "a:1:2 [0] x.cc:1 NCCL WARN Connection refused\n# Out";
    let head: String = WHOLE.split_inclusive('\n').take(7).collect();
    let without_rows: String = WHOLE
        .split_inclusive('\n')
        .enumerate()
        .filter(|(at, _)| !(11..14).contains(at))
        .map(|(_, line)| line)
        .collect();
    let reads = [
        text(&after_one_row("")),
        text(&head),
        text(&without_rows),
        text(&format!("{head}{WHOLE}")),
        text(&after_one_row(WHOLE)),
        text(&after_one_row("        1048576        26")),
        whole("# Out", warned),
        text(&format!("{}\n# error: Connection refused\n", WHOLE.trim_end())),
        whole("values : 0 OK", "values : 12 OK"),
        whole("100.67  100.67", "100.67  nan"),
    ];
    let recomputed = recompute(only(&whole("100.67  100.67", "100.67  188.76")), None);
    let compared = reads.iter().flat_map(|read| read.runs.iter().flat_map(closing)).collect::<Vec<_>>();
    let found = reads.iter().flat_map(|read| read.findings.iter());
    let all = found.chain(&compared).chain(&recomputed);
    let lines: Vec<String> = all.map(|finding| format!("{}: {}", finding.code, finding.message)).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn messages_of_rows() {
    let row = "     8388608       2097152     float     sum      -1    83.33  100.67  100.67       0    80.98  103.59  103.59       0";
    let first = "     8388608       2097152     float     sum      -1    83.33  100.67  100.67       0";
    let changes = [
        ("83.33", "83,33"),
        ("       0    80.98", "       ?    80.98"),
        ("80.98  103.59", "N/A  103.59"),
        ("    -1    83.33", "    -7    83.33"),
        (row, &format!("{row} 1 2 3 4")),
        (row, "8388608 2097152 float"),
        ("     8388608       2097152     float     sum ", " float     sum "),
        ("    16777216       4194304", "     8388608       2097152"),
        ("#       size         count", "#  job  size         count"),
        ("\n# Out of bounds", "\n     8388608       2097152     float     sum      -1\n# Out of bounds"),
        ("128.462", "128.462 FAILED"),
    ];
    let lines = changes.map(|(from, to)| {
        assert!(WHOLE.contains(from), "{from}");
        let read = text(&WHOLE.replacen(from, to, 1));
        let found = read.findings.iter().map(|finding| format!("  {}: {}\n", finding.code, finding.message));
        let failed = read.runs.iter().filter_map(|run| run.failure.as_ref());
        let failed = failed.map(|failure| format!("  failure: {failure:?}\n"));
        format!("{} -> {}\n{}", from.trim(), to.trim(), found.chain(failed).collect::<String>())
    });
    let cut = text(&format!("{}\n{}{first}", &WHOLE[..WHOLE.find(row).expect("a row")], ""));
    let cut = cut.findings.iter().map(|finding| format!("  {}: {}\n", finding.code, finding.message));
    insta::assert_snapshot!(format!("{}cut in a row\n{}", lines.concat(), cut.collect::<String>()));
}

#[test]
fn a_failure_after_a_whole_run_is_another_runs() {
    let read = text(&format!("{WHOLE}b: Test CUDA failure common.cu:9 'no device'\n{WHOLE}"));
    let failures: Vec<_> = read.runs.iter().map(|run| (run.rows.len(), run.failure.is_some())).collect();
    assert_eq!(failures, [(3, false), (0, true), (3, false)]);
}

#[test]
fn inconsistent_bandwidths_are_reported() {
    let read = text(&WHOLE.replacen("100.67  100.67", "100.67  188.76", 1));
    let findings = recompute(only(&read), None);
    assert_eq!(
        findings.iter().map(|f| (f.code.as_str(), f.line)).collect::<Vec<_>>(),
        [("bandwidth-disagrees", Some(12))]
    );
    let read = text(&WHOLE.replacen("100.67  100.67", "101.67  101.67", 1));
    assert_eq!(recompute(only(&read), None).len(), 1);
    assert_eq!(recompute(only(&text(WHOLE)), Some(16)).len(), 6, "of two ranks, not of sixteen");
}

#[test]
fn each_operation_is_recomputed_by_its_own_rule() {
    for op in Op::ALL {
        for ranks in [2, 3, 8, 16, 128, 1440] {
            for (size, time) in
                [(0, 6.25), (16, 35.5), (1 << 20, 123.45), (1 << 30, 4321.5), (1 << 34, 66132.0)]
            {
                let algbw = op.algbw_gb_s(size, ranks, time);
                let busbw = algbw * if op == Op::Hypercube { 1.0 } else { op.bus_factor(ranks) };
                let half = Half::printed(time, algbw, busbw, Wrong::Count(0.0));
                let row = Row {
                    size_bytes: size,
                    count: size / 4,
                    dtype: "float".to_owned(),
                    redop: None,
                    root: None,
                    out_of_place: half.clone(),
                    in_place: None,
                    timestamp: None,
                    line: 1,
                };
                let run = NcclRun { op: Some(op), rows: vec![row], ..NcclRun::default() };
                assert_eq!(recompute(&run, Some(ranks)), [], "{op} {ranks} {size}");
                let half = half.expect("figures");
                assert!(ratio_matches(op, ranks, half.algbw_gb_s, half.busbw_gb_s), "{op} {ranks} {size}");
                assert_eq!(recompute(&run, None), [], "{op} {ranks} {size}");
            }
        }
    }
    assert!(!ratio_matches(Op::AllReduce, 16, 200.0, 350.0));
    assert!(!ratio_matches(Op::AllReduce, 0, 1.0, 1.0));
}

#[test]
fn the_old_form_of_gathering_is_a_convention_of_its_own() {
    let row = "1073741824 33554432 float 4194.3 224.00 224.00 0e+00 4194.3 224.00 224.00 0e+00\n";
    let mut read = text(row);
    let run = read.runs.first_mut().expect("a run");
    run.op = Some(Op::AllGather);
    assert_eq!(recompute(run, Some(8)), []);
    assert_eq!(recompute(run, Some(4)).len(), 2);
}
