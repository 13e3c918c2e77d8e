//! Tests of reports in both forms, as NCCL prints them and damaged.

use super::*;

fn read(texts: &[&str]) -> RasLog {
    let mut reader = Reader::default();
    for (text, number) in texts.iter().zip(1..) {
        reader.read(text.as_bytes(), &format!("{number}.txt")).expect("a report");
    }
    reader.finish()
}

fn messages(log: &RasLog) -> Vec<String> {
    log.findings.iter().map(|it| format!("{}: {}", it.code, it.message)).collect()
}

fn codes(text: &str) -> Vec<String> {
    read(&[text]).findings.into_iter().map(|it| it.code).collect()
}

const HEAD: &str = "\
NCCL version 2.27.5 compiled with CUDA 12.9
CUDA runtime version 12090, driver version 12080

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      2          8            1         16       16

Communicators... (0.01s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
";

/// A text of one communicator of 16 ranks.
fn text(errors: &str, below_errors: &str, below_warnings: &str) -> String {
    format!(
        "{HEAD}    0         1         2         8        16        16   RUNNING  {errors}\n\n\
         Errors\n======\n\n{below_errors}Warnings\n========\n\n{below_warnings}"
    )
}

fn json_rank(rank: u64, all_reduce: u64) -> String {
    format!(
        r#"{{"rank": {rank}, "host": "10.0.0.{rank}", "pid": {}, "cuda_dev": 0, "nvml_dev": 0,
        "status": {{"init_state": 0, "async_error": 0, "finalize_called": false, "destroy_flag": false,
        "abort_flag": false}}, "collective_counts": {{"AllReduce": {all_reduce}, "AllGather": 7}}}}"#,
        100 + rank
    )
}

fn json(time: &str, size: u64, ranks: &[String], missing: &[String]) -> String {
    format!(
        r#"{{"nccl_version": "2.28.9", "timestamp": "{time}", "communicators_count": 1, "communicators": [
        {{"hash": "0xf31e", "secondary_hash": "0x1:0x2", "size": {size}, "ranks_count": {},
        "missing_ranks_count": {}, "ranks": [{}], "missing_ranks": [{}]}}],
        "ras": {{"collection_time_sec": 0.001, "timeouts_count": 0}}}}"#,
        ranks.len(),
        missing.len(),
        ranks.join(","),
        missing.join(",")
    )
}

#[test]
fn a_report_without_a_fault_has_no_finding() {
    let log = read(&[&text("OK", "", "")]);
    assert_eq!(messages(&log), Vec::<String>::new());
    let report = &log.reports[0];
    assert_eq!((report.nccl_version.as_deref(), report.processes), (Some("2.27.5"), Some(16)));
    assert_eq!((report.communicators_count, report.collection_s, report.has_end), (1, Some(0.01), true));
    let ranks: Vec<String> = (0..4).map(|rank| json_rank(rank, 9)).collect();
    assert_eq!(messages(&read(&[&json("t", 4, &ranks, &[])])), Vec::<String>::new());
}

#[test]
fn a_text_names_missing_dead_and_failed_ranks() {
    let errors = "INCOMPLETE\n  Missing communicator data from 1 job process\n  \
                  Process 41 on node 10.0.0.2 managing GPU 5\n\n\
                  DEAD\n  1 job process is considered dead (unreachable via the RAS network)\n  \
                  Process 42 on node 10.0.0.2 managing GPUs 6,7\n\n\
                  #0-0 (00264af53edbe986) INCOMPLETE\n  Missing communicator data from 3 ranks\n  \
                  Rank 13 -- GPU 5 managed by process 41 on node 10.0.0.2\n  \
                  Rank 14 -- GPU 6,7 managed by process 42 on node 10.0.0.2\n  \
                  Rank 15 -- [process information not found]\n\n\
                  #0-0 (00264af53edbe986) ERROR\n  Asynchronous error on 1 rank\n  \
                  Rank 3 reported remote process error -- GPU 3 (NVML 4) managed by process 33 on node 10.0.0.1\n\n";
    let log = read(&[&text(
        "INCOMPLETE,ERROR",
        errors,
        "TIMEOUT\n  Encountered 2 communication timeouts while gathering communicator data\n",
    )]);
    insta::assert_snapshot!(messages(&log).join("\n"), @r"
    ras-incomplete: 2 time-outs while RAS collected: the report is incomplete
    ras-incomplete: processes without an answer: 1, 1 of them listed
    ras-process-silent: process did not answer: 10.0.0.2 GPU 5 pid 41
    ras-process-dead: process dead, 60 s without contact: 10.0.0.2 GPU 6,7 pid 42
    ras-rank-missing: rank 13 of 0x264af53edbe986: no answer; 10.0.0.2 GPU 5 pid 41
    ras-rank-dead: rank 14 of 0x264af53edbe986: dead, 60 s without contact; 10.0.0.2 GPU 6,7 pid 42
    ras-rank-missing: rank 15 of 0x264af53edbe986: no answer; process unknown
    ras-rank-error: asynchronous error on rank 3 of 0x264af53edbe986: remote process error
    ");
    assert_eq!(log.reports[0].communicators.len(), 1);
    assert_eq!(log.reports[0].communicators[0].hash, "0x264af53edbe986");
    let named: Vec<_> =
        log.findings.iter().filter_map(|it| Some((it.node.as_deref()?, it.part.as_deref()))).collect();
    assert!(named.contains(&("10.0.0.1", Some("gpu3"))), "{named:?}");
}

#[test]
fn texts_of_2_24_number_missing_ranks_alone() {
    let errors = "DEAD\n  2 job processes are considered dead (unreachable via the RAS network)\n\n\
                  #0-0 (1) INCOMPLETE\n  Missing communicator data from 2 ranks\n  The missing ranks: 3, 5\n\n";
    let log = read(&[&text("INCOMPLETE", errors, "")]);
    let missing = &log.reports[0].communicators[0].missing;
    let ranks: Vec<_> = missing.iter().map(|it| (it.rank.rank, it.why)).collect();
    assert_eq!(ranks, [(3, Absence::Dead), (5, Absence::Dead)]);
}

#[test]
fn the_late_rank_is_named_and_the_few_that_wait_are_not() {
    let behind = "#0-0 (f3) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n  \
                  15 ranks have launched up to operation 101\n  \
                  Rank 3 has launched up to operation 100 -- GPU 3 managed by process 33 on node 10.0.0.1\n\n";
    let log = read(&[&text("MISMATCH", "", behind)]);
    let expected =
        "ras-rank-behind: rank 3 of 0xf3: 100 AllReduce, 15 others 101; 10.0.0.1 GPU 3 pid 33; in one report";
    assert_eq!(messages(&log), [expected]);
    let ahead = "#0-0 (f3) MISMATCH\n  Communicator ranks have different AllGather operation counts\n  \
                 14 ranks have launched up to operation 640\n  2 ranks have launched up to operation 641\n  \
                 Rank 12 -- GPU 4 managed by process 32 on node 10.0.0.1\n  \
                 Rank 13 -- GPU 5 managed by process 33 on node 10.0.0.1\n\n";
    let expected = "ras-counts-differ: AllGather of 0xf3: ranks 12, 13 at 641, 14 others at 640: the few wait, no culprit";
    assert_eq!(messages(&read(&[&text("MISMATCH", "", ahead)])), [expected]);
    let tie = "#0-0 (f3) MISMATCH\n  Communicator ranks have different collective operation counts\n  \
               8 ranks have launched up to operation 640\n  8 ranks have not launched any operations\n\n";
    let expected =
        "ras-counts-differ: operations of 0xf3: 8 ranks at 0, 8 ranks at 640; no majority, no culprit";
    assert_eq!(messages(&read(&[&text("MISMATCH", "", tie)])), [expected]);
    let unlisted = "#0-0 (f3) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n\n";
    let expected = "ras-counts-differ: AllReduce of 0xf3: ranks differ, the report does not list them";
    assert_eq!(messages(&read(&[&text("MISMATCH", "", unlisted)])), [expected]);
}

#[test]
fn a_lag_that_stays_is_seen_in_several_reports_and_one_that_is_over_is_not_reported() {
    let at = |time: &str, late: u64, others: u64| {
        let ranks: Vec<String> =
            (0..4).map(|rank| json_rank(rank, if rank == 1 { late } else { others })).collect();
        json(time, 4, &ranks, &[])
    };
    let end = |log: &RasLog| {
        log.findings
            .iter()
            .map(|it| it.message.rsplit("; ").next().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(end(&read(&[&at("1", 100, 101), &at("2", 100, 101)])), ["in 2 reports"]);
    assert_eq!(
        end(&read(&[&at("1", 100, 101), &at("1", 100, 101)])),
        ["in one report"],
        "of two nodes at once"
    );
    assert_eq!(end(&read(&[&at("1", 100, 101), &at("2", 105, 106)])), ["in one report"], "it moved on");
    assert_eq!(end(&read(&[&at("1", 100, 101), &at("2", 106, 106)])), Vec::<String>::new());
}

#[test]
fn json_with_a_missing_rank_is_read_with_its_comma_and_without() {
    let missing = |comma: &str, dead: bool, unresponsive: bool| {
        format!(
            r#"{{"rank": 1, "host": "10.0.0.1", "pid": 101, "cuda_dev": 1, "nvml_dev": 2{comma}
            "status": {{"unresponsive": {unresponsive}, "considered_dead": {dead}}}}}"#
        )
    };
    let read_missing = |comma: &str, dead, unresponsive| {
        messages(&read(&[&json("t", 2, &[json_rank(0, 5)], &[missing(comma, dead, unresponsive)])]))
    };
    let who = "10.0.0.1 GPU 1 (NVML 2) pid 101";
    assert_eq!(
        read_missing(",", false, true),
        [format!("ras-rank-missing: rank 1 of 0xf31e: no answer; {who}")]
    );
    assert_eq!(
        read_missing("", true, true),
        [
            "ras-mended: commas behind `nvml_dev` that NCCL 2.28 leaves out, added: 1".to_owned(),
            format!("ras-rank-dead: rank 1 of 0xf31e: dead, 60 s without contact; {who}"),
        ]
    );
    assert_eq!(
        read_missing(",", false, false),
        ["ras-no-member: ranks of 0xf31e that answered and are no members: 1; starting or ending"]
    );
    // Elsewhere a missing comma is an error.
    let broken = json("t", 1, &[json_rank(0, 5).replace("\"nvml_dev\": 0,", "\"nvml_dev\": 0")], &[]);
    let mut reader = Reader::default();
    let why = reader.read(broken.as_bytes(), "x").expect_err("broken").reason;
    assert!(why.starts_with("broken JSON at line 4"), "{why}");
}

#[test]
fn an_incomplete_report_is_never_without_a_finding() {
    let full = text("OK", "", "");
    let cut = full.find("Warnings").expect("a section");
    assert_eq!(codes(&full[..cut]), ["ras-cut"]);
    let unlisted = "ras-incomplete: group 0: INCOMPLETE without its ranks: the report does not list them";
    assert_eq!(messages(&read(&[&text("INCOMPLETE", "", "")])), [unlisted]);
    let slow = "ras-slow: RAS collected for 2.05 s, limit 2 s: peers are slow or gone";
    assert_eq!(messages(&read(&[&full.replace("(0.01s)", "(2.05s)")])), [slow]);
    let absurd = "ras-absurd: group 0 has an impossible number of ranks: unset memory";
    assert_eq!(
        messages(&read(&[&full.replace("16        16   RUNNING", "-9        16   RUNNING")])),
        [absurd]
    );
    for (line, expected) in [
        (
            "ERROR: Unknown command set format json",
            "this NCCL knows no `set format`: it is older than 2.28.7 and gives text only",
        ),
        ("ERROR: Invalid timeout value x", "RAS refused the request: ERROR: Invalid timeout value x"),
        (
            "Failed to connect to the NCCL RAS service!",
            "no answer of RAS: Failed to connect to the NCCL RAS service!",
        ),
    ] {
        assert_eq!(messages(&read(&[line])), [format!("ras-no-answer: {expected}")]);
    }
    let empty = format!("{HEAD}\nErrors\n======\n\nWarnings\n========\n")
        .replace("Group ", "No communicator data collected!\nX ");
    assert_eq!(codes(&empty), ["ras-incomplete", "ras-incomplete"]);
    let ranks = [json_rank(0, 5), json_rank(1, 5)];
    let expected = "ras-contradicts: 0xf31e has size 3, with 2 ranks and 0 missing: starting, ending or cut";
    assert_eq!(messages(&read(&[&json("t", 3, &ranks, &[])])), [expected]);
    let expected = "ras-contradicts: communicators listed: 1, announced: 2";
    let announced = json("t", 2, &ranks, &[]).replace("_count\": 1, \"comm", "_count\": 2, \"comm");
    assert_eq!(messages(&read(&[&announced])), [expected]);
    assert_eq!(
        codes(&json("t", 2, &ranks, &[]).replace("\"timeouts_count\": 0", "\"timeouts_count\": 3")),
        ["ras-incomplete"]
    );
    let failed = json("t", 2, &ranks, &[]).replacen("\"async_error\": 0", "\"async_error\": 6", 1);
    assert_eq!(codes(&failed), ["ras-rank-error"]);
    let ending = json("t", 2, &ranks, &[]).replacen("\"abort_flag\": false", "\"abort_flag\": true", 1);
    assert_eq!(
        messages(&read(&[&ending])),
        ["ras-status-differs: ranks of 0xf31e differ in status: ABORT: rank 0; RUNNING: rank 1"]
    );
}

#[test]
fn a_rank_that_a_report_lists_twice_is_no_culprit() {
    for count in [5, 9] {
        let ranks = [json_rank(0, 9), json_rank(1, 9), json_rank(2, count), json_rank(2, 9)];
        let expected = "ras-contradicts: 0xf31e lists rank 2 more than once: left out";
        assert_eq!(messages(&read(&[&json("t", 4, &ranks, &[])])), [expected]);
    }
    let process = "-- GPU 3 managed by process 33 on node 10.0.0.1";
    let behind = format!(
        "#0-0 (f3) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n  \
         14 ranks have launched up to operation 101\n  \
         Rank 3 has launched up to operation 100 {process}\n  \
         Rank 3 has launched up to operation 99 {process}\n\n"
    );
    let expected = "ras-contradicts: AllReduce of 0xf3: two counts of rank 3; no culprit";
    assert_eq!(messages(&read(&[&text("MISMATCH", "", &behind)])), [expected]);
}

#[test]
fn numbers_of_unset_memory_are_left_out_and_the_sound_part_stands() {
    let ranks = [json_rank(0, 5), json_rank(21474, 5)];
    assert_eq!(codes(&json("t", 2, &ranks, &[])), ["ras-absurd"]);
    assert_eq!(codes(&json("t", 0, &[], &[])), ["ras-absurd"]);
    let errors = "#0-0 (1) INCOMPLETE\n  Missing communicator data from 1 rank\n  Rank 32767 -- [process information not found]\n\n";
    let log = read(&[&text("INCOMPLETE", errors, "")]);
    assert_eq!(
        messages(&log),
        [
            "ras-absurd: 1 rank numbers of 0x1 beyond its size: left out",
            "ras-rank-missing: 1 more rank of 0x1 missing, not listed"
        ]
    );
}

#[test]
fn events_of_the_monitor_are_read_in_both_forms() {
    let text = "SERVER PROTOCOL 2\nOK\n[2026-01-02 03:04:05] PEER_NEW: Process 7 on node 10.0.0.1 managing GPU 0\n\
                [2026-01-02 03:05:05] PEER_DEAD: Process 7 on node 10.0.0.1 managing GPU 0\n";
    let json = "OK\n{\"timestamp\": \"2026-01-02 03:05:05\", \"group\": \"LIFECYCLE\", \"event\": \"PEER_DEAD\",\n\
                \"peer\": {\"host\": \"10.0.0.1\", \"pid\": 7, \"cuda_devs\": [0], \"nvml_devs\": [0]}, \"details\": \"\"}\n";
    let expected =
        ["ras-process-dead: process died as RAS sees it, 2026-01-02 03:05:05: 10.0.0.1 GPU 0 pid 7"];
    assert_eq!(messages(&read(&[text])), expected);
    assert_eq!(read(&[text]).events.len(), 2);
    assert_eq!(messages(&read(&[json])), expected);
    let cut = format!("{json}{}", json.get(3..60).expect("a part"));
    assert_eq!(messages(&read(&[&cut])), ["ras-cut: JSON breaks off or is broken at line 3", expected[0]]);
}

#[test]
fn what_is_no_report_is_refused_with_the_reason() {
    let refuse = |text: &str| Reader::default().read(text.as_bytes(), "x").expect_err(text).reason;
    assert_eq!(refuse(" \n"), "the file is empty");
    assert_eq!(refuse("prose\n"), "no report of NCCL RAS; expected the output of `ncclras`, text or JSON");
    let diagnostics = "n1:4711 NCCL DIAG all checks passed\n";
    assert!(refuse(diagnostics).starts_with("diagnostics of NCCL RAS, which are not read"));
    assert!(refuse("BUSY: diagnostics already in progress\n").starts_with("RAS was busy with diagnostics"));
    assert_eq!(refuse("{\"rank\": 0}"), "JSON without `communicators`, which is no report of NCCL RAS");
    assert_eq!(refuse("{\"communicators\": ["), "truncated JSON: the report is incomplete");
    let large = vec![b' '; MOST_BYTES + 1];
    let why = Reader::default().read(&large, "x").expect_err("too large").reason;
    assert_eq!(why, "larger than the limit of 64 MiB");
}

#[test]
fn many_late_ranks_are_counted_where_the_report_does_not_list_them() {
    let behind = "#0-0 (f3) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n  \
                  11 ranks have launched up to operation 101\n  5 ranks have launched up to operation 100\n\n";
    let expected = "ras-rank-behind: 5 more ranks of 0xf3, not listed: 100 AllReduce, 11 others 101";
    assert_eq!(messages(&read(&[&text("MISMATCH", "", behind)])), [expected]);
}

#[test]
fn several_reports_of_one_file_are_kept_apart() {
    let log = read(&[&format!("{}{}", text("OK", "", ""), text("OK", "", ""))]);
    assert_eq!((log.reports.len(), log.findings.len()), (2, 0));
}

#[test]
fn answers_that_ran_into_one_another_name_no_rank() {
    let behind = "#0-0 (f3) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n  \
                  15 ranks have launched up to operation 101\n  1 rank has launched up to operation 100\n  \
                  Rank 3 -- GPU 5 managed by process 41 on node 10.0.0.2\n\n";
    let (fine, late) = (text("OK", "", ""), text("MISMATCH", "", behind));
    assert!(codes(&late).contains(&"ras-rank-behind".to_owned()));
    let table = |text: &str| text[text.find("Communicators...").expect("a table")..].to_owned();
    let lines = |text: &str| text.split_inclusive('\n').map(str::to_owned).collect::<Vec<_>>();
    let mut other = lines(&fine).into_iter();
    let mixed: String =
        lines(&late).into_iter().flat_map(|line| [Some(line), other.next()]).flatten().collect();
    // A second answer without its beginning, and one line of each in turn.
    for text in [format!("{fine}{}", table(&late)), mixed] {
        let found = messages(&read(&[&text]));
        assert!(found.iter().any(|it| it.starts_with("ras-contradicts: two answers")), "{found:?}");
        assert!(!found.iter().any(|it| it.starts_with("ras-rank")), "{found:?}");
    }
}

#[test]
fn answers_of_another_form_or_job_in_one_file_are_no_proof() {
    let ranks: Vec<String> = (0..4).map(|rank| json_rank(rank, 9)).collect();
    let json = json("t", 4, &ranks, &[]);
    let behind = format!("{}{json}", text("OK", "", ""));
    let expected = "ras-contradicts: JSON behind a text is not read: give each answer a file of its own";
    assert_eq!(messages(&read(&[&behind])), [expected]);
    let (head, rest) = json.split_once("\"communicators\": [").expect("a list");
    let (one, end) = rest.split_once("],\n        \"ras\"").expect("an end");
    let doubled =
        format!("{head}\"communicators\": [{one},{one}],\"ras\"{end}").replace("_count\": 1", "_count\": 2");
    let expected = "ras-contradicts: 0xf31e is listed twice: two answers in one report, left out";
    assert_eq!(messages(&read(&[&doubled])), [expected]);
    let other = json.replace("2.28.9", "2.29.2");
    let expected = "ras-contradicts: answers of NCCL 2.28.9 and 2.29.2: of different jobs";
    assert_eq!(messages(&read(&[&format!("{json}\n{other}")])), [expected]);
    assert_eq!(messages(&read(&[&json, &other])), Vec::<String>::new(), "each in a file of its own");
}
