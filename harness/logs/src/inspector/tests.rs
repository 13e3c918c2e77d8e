//! Tests of records in all forms, and of files that are damaged, partial or of other programs.

use super::*;

fn read(texts: &[&str]) -> InspectorLog {
    let mut reader = Reader::default();
    for (text, number) in texts.iter().zip(1..) {
        reader.read(text.as_bytes(), &format!("{number}.log")).expect("a reader in memory");
    }
    reader.finish()
}

fn messages(log: &InspectorLog) -> Vec<String> {
    log.findings.iter().map(|it| format!("{}: {}", it.code, it.message)).collect()
}

fn found(text: &str) -> Vec<String> {
    messages(&read(&[text]))
}

/// Of a communicator of one rank, so that no other is expected.
const HEAD: &str = r#""header":{"id":"0xa1","comm_name":"dp","rank":0,"n_ranks":1,"nnodes":1},"metadata":{"inspector_output_format_version":"v4.3","hostname":"n1","pid":7}"#;

fn coll(number: u64) -> String {
    format!(
        r#""coll_perf":{{"coll":"AllReduce","coll_sn":{number},"coll_msg_size_bytes":4096,"coll_exec_time_us":{},"coll_timing_source":"kernel_gpu","coll_algobw_gbs":{:.6},"coll_busbw_gbs":0.000000}}"#,
        100 + number,
        4.096 / (100 + number) as f64
    )
}

fn full(number: u64) -> String {
    format!("{{{HEAD},{}}}\n", coll(number))
}

fn bare(number: u64) -> String {
    format!("{{{}}}\n", coll(number))
}

fn marker(records: u64, dropped: u64) -> String {
    format!(
        "{{{HEAD},\"dump_stats\":{{\"coll_records\":{records},\"coll_dropped_total\":{dropped},\"coll_dropped_since_last_dump\":0,\
         \"p2p_records\":0,\"p2p_dropped_total\":0,\"p2p_dropped_since_last_dump\":0}}}}\n"
    )
}

#[test]
fn calls_are_summed_by_rank_operation_and_size() {
    let text = (1..=3).map(full).collect::<String>();
    let p2p = format!(
        "{{{HEAD},\"p2p_perf\":{{\"p2p\":\"Send\",\"p2p_sn\":5,\"p2p_peer\":1,\"p2p_msg_size_bytes\":8192,\"p2p_exec_time_us\":5.5,\
         \"p2p_algobw_gbs\":1.5,\"p2p_busbw_gbs\":1.5}}}}\n"
    );
    let log = read(&[&text, &p2p]);
    assert_eq!(messages(&log), Vec::<String>::new());
    assert_eq!((log.records, log.members.len(), log.series.len()), (4, 1, 2));
    let (reduce, send) = (&log.series[0], &log.series[1]);
    assert_eq!((reduce.operation.as_str(), reduce.bytes, reduce.calls), ("AllReduce", 4096, 3));
    assert_eq!(reduce.time_us, Some(Spread { n: 3, min: 101.0, mean: 102.0, max: 103.0 }));
    assert_eq!(reduce.algbw_gb_s.map(|it| it.max), Some(0.040554));
    assert_eq!((send.operation.as_str(), send.algbw_gb_s.map(|it| it.max)), ("Send", Some(1.5)));
    assert_eq!(log.members[0].name.as_deref(), Some("dp"));
}

#[test]
fn bare_records_belong_to_their_marker_and_to_no_other() {
    let whole = [marker(2, 0), bare(1), bare(2), marker(1, 0), bare(3)].concat();
    let log = read(&[&whole]);
    assert_eq!((messages(&log), log.records), (Vec::new(), 3));
    let lost_marker = [bare(1), bare(2)].concat();
    let log = read(&[&lost_marker]);
    assert_eq!(
        messages(&log),
        ["inspector-bare: 2 lines without a header and marker, left out; the first: 1.log:1"]
    );
    assert_eq!(log.records, 0);
    let beyond = [marker(1, 0), bare(1), bare(2)].concat();
    let log = read(&[&beyond]);
    assert_eq!(
        messages(&log),
        ["inspector-beyond: 1 line more than their marker announced; the first: 1.log:3"]
    );
    assert_eq!(log.records, 1);
    let short = [marker(3, 0), bare(1), marker(1, 0), bare(2)].concat();
    assert_eq!(found(&short), ["inspector-short: 2 records announced and never came; the first: 1.log:1"]);
    // One file's marker is none of the next.
    let log = read(&[&marker(1, 0), &bare(1)]);
    let codes: Vec<&str> = log.findings.iter().map(|it| it.code.as_str()).collect();
    assert_eq!((codes, log.records), (vec!["inspector-bare", "inspector-short"], 0));
    // Records with headers of their own, v4.1 and v4.2, are announced too.
    assert_eq!(found(&[marker(2, 0), full(1), full(2)].concat()), Vec::<String>::new());
    let other = full(2).replace("0xa1", "0xb2");
    assert_eq!(
        found(&[marker(2, 0), full(1), other].concat()),
        ["inspector-short: 1 record announced and never came; the first: 1.log:1"]
    );
}

#[test]
fn loss_is_what_the_plugin_counts_and_gaps_are_lost_or_filtered() {
    let text = [marker(0, 4096), marker(2, 4100), bare(1), bare(10)].concat();
    let log = read(&[&text]);
    assert_eq!(
        messages(&log),
        [
            "inspector-dropped: rank 0 of 0xa1: 4100 calls dropped, 2 recorded",
            "inspector-gaps: 8 calls of 1 rank without a record: lost or filtered",
        ]
    );
    assert_eq!((log.members[0].dropped, log.members[0].gaps), (Some(4100), 8));
    assert_eq!(log.findings[0].node.as_deref(), Some("n1"));
    let old = [full(1), full(5)].concat().replace("\"comm_name\":\"dp\",", "");
    assert_eq!(
        found(&old),
        [
            "inspector-gaps: 3 calls of 1 rank without a record: lost or filtered; NCCL before 2.30 keeps one a dump"
        ]
    );
    let ring: String = (1..=1024).map(full).collect();
    assert_eq!(
        found(&ring),
        ["inspector-ring: 1 rank with a multiple of 1024 records: full rings, loss not counted"]
    );
    // Each type of collective has a counter of its own.
    let types = [full(1), full(2), full(7).replace("AllReduce", "AllGather")].concat();
    assert_eq!(found(&types), Vec::<String>::new());
}

#[test]
fn damaged_files_are_reported_and_the_sound_part_stands() {
    let text = [full(1), full(2)].concat();
    let cut = &text[..text.len() - 20];
    let log = read(&[cut]);
    assert_eq!(
        (messages(&log), log.records),
        (vec!["inspector-cut: 1 line cut at the end of a file; the first: 1.log:2".to_owned()], 1)
    );
    let broken = text.replacen("\"coll_sn\":1", "\"coll_sn\":", 1);
    assert_eq!(found(&broken), ["inspector-garbled: 1 line not readable; the first: 1.log:1"]);
    for (before, after) in
        [("\"rank\":0", "\"rank\":3"), ("4096", "-1"), ("\"coll_sn\":1", "\"coll_sn\":1.5")]
    {
        assert_eq!(
            found(&text.replacen(before, after, 1)),
            ["inspector-garbled: 1 line not readable; the first: 1.log:1"]
        );
    }
    assert_eq!(
        found(&marker(0, 0).replace("\"coll_records\":0", "\"coll_records\":-5")),
        ["inspector-garbled: 1 line not readable; the first: 1.log:1"]
    );
    let twice = read(&[&full(1), &full(1)]);
    assert_eq!(
        messages(&twice),
        ["inspector-copies: 1 record with the number of another: files given twice?"]
    );
    let long = format!("{}{}", full(1), full(2).replace("\"n1\"", &format!("\"{}\"", "n".repeat(70_000))));
    assert_eq!(found(&long), ["inspector-garbled: 1 line not readable; the first: 1.log:2"]);
}

/// Each has the number of the next call outside of the graph.
#[test]
fn replays_of_a_graph_are_no_copies() {
    let rate = |us: u32| format!("{:.6}", 4.096 / f64::from(us));
    let replay =
        |us: u32| full(2).replace("time_us\":102", &format!("time_us\":{us}")).replace(&rate(102), &rate(us));
    let text = [full(1), replay(101), replay(105), replay(105), full(2), full(3)].concat();
    assert_eq!(found(&text), Vec::<String>::new());
    // A file that is given twice goes back to its first number.
    let doubled = format!("{text}{text}");
    assert!(found(&doubled)[0].starts_with("inspector-copies: "), "{:?}", found(&doubled));
}

#[test]
fn output_of_other_programs_beside_the_records_is_passed_over() {
    let text = format!("[2026-01-02] epoch 1\n{{'loss': 2.5}}\n{{\"step\": 1}}\n{}\n", full(1));
    let log = read(&[&text]);
    assert_eq!((messages(&log), log.records, log.other_lines), (Vec::new(), 1, 3));
}

#[test]
fn a_record_over_several_lines_is_read() {
    let value: serde_json::Value = serde_json::from_str(&full(1)).expect("JSON");
    let pretty = serde_json::to_string_pretty(&value).expect("JSON");
    let log = read(&[&format!("{pretty}\n{pretty}\n")]);
    assert_eq!(log.records, 2);
    assert_eq!(
        found(&pretty[..pretty.len() - 4]),
        ["inspector-cut: 1 line cut at the end of a file; the first: 1.log:1"]
    );
}

#[test]
fn what_times_and_sizes_cannot_show_is_said() {
    let host = full(1).replace("kernel_gpu", "kernel_cpu");
    assert_eq!(
        found(&host),
        ["inspector-host-times: 1 record timed by callbacks on the host, not by the GPU"]
    );
    let wrapped = full(1).replace("4096", "18446744073709547520");
    let log = read(&[&wrapped]);
    assert_eq!(
        messages(&log),
        ["inspector-size: 1 record with a size near 2^64: unknown data type, no bandwidth"]
    );
    assert_eq!(log.series[0].algbw_gb_s, None);
    // A type without a formula has no bandwidth, and not 0.
    let none = full(1).replace("AllReduce", "AllToAll").replace("0.040554", "0.000000");
    let log = read(&[&none]);
    assert_eq!((messages(&log), log.series[0].algbw_gb_s, log.series[0].busbw_gb_s), (vec![], None, None));
}

#[test]
fn ranks_without_records_and_ranks_of_two_processes_are_reported() {
    let of_two = full(1).replace("\"n_ranks\":1", "\"n_ranks\":2");
    assert_eq!(
        found(&of_two),
        ["inspector-ranks: 0xa1: 1 of 2 ranks have records: others lost, filtered or not given"]
    );
    let again = full(1).replace("\"pid\":7", "\"pid\":8");
    let log = read(&[&full(1), &again]);
    assert_eq!(
        messages(&log),
        ["inspector-processes: rank 0 of 0xa1: several processes, of several jobs or restarts; 1 such"]
    );
}

#[test]
fn a_rank_with_far_fewer_records_than_its_peers_is_reported() {
    let file = |rank: u64, numbers: std::ops::Range<u64>| {
        let head = format!("\"rank\":{rank},\"n_ranks\":3");
        numbers.map(full).collect::<String>().replace("\"rank\":0,\"n_ranks\":1", &head)
    };
    let peers = [file(0, 0..100), file(1, 0..100)];
    for numbers in [0..40, 60..100] {
        assert_eq!(
            messages(&read(&[&peers[0], &peers[1], &file(2, numbers.clone())])),
            [format!(
                "inspector-partial: rank 2 of 0xa1: {} records of AllReduce, most ranks have 100: files cut or incomplete",
                numbers.end - numbers.start
            )]
        );
    }
    // A writing that is still to come, and what the ring dropped by the plugin's own count, is no cut.
    assert_eq!(messages(&read(&[&peers[0], &peers[1], &file(2, 0..90)])), Vec::<String>::new());
    let head = "\"rank\":2,\"n_ranks\":3";
    let dropped = marker(40, 60).replace("\"rank\":0,\"n_ranks\":1", head);
    let log = read(&[&peers[0], &peers[1], &[dropped, file(2, 60..100)].concat()]);
    assert_eq!(messages(&log), ["inspector-dropped: rank 2 of 0xa1: 60 calls dropped, 40 recorded"]);
    // Stages of a pipeline send and receive as often as they need.
    let sends = |text: &str| text.replace("\"coll", "\"p2p").replace("AllReduce", "Send");
    let log = read(&[&sends(&peers[0]), &sends(&peers[1]), &sends(&file(2, 0..40))]);
    assert!(!messages(&log).iter().any(|it| it.starts_with("inspector-partial")), "{:?}", messages(&log));
}

#[test]
fn prometheus_files_are_read_with_their_labels() {
    let labels = r#"version="v5.1",slurm_job_id="7",node="n1",gpu="GPU0",comm_name="a \"b\"",n_nodes="1",nranks="4",collective="AllReduce",message_size="4-5GB",algo_proto="Ring_ll""#;
    let text = format!(
        "# HELP x\nnccl_bus_bandwidth_gbs{{{labels}}} 678.263\nnccl_collective_exec_time_microseconds{{{labels}}} 9498.47 1700000000\n"
    );
    let log = read(&[&text]);
    assert_eq!((messages(&log), log.gauges.len()), (Vec::new(), 2));
    let gauge = &log.gauges[0];
    assert_eq!(
        (gauge.metric.as_str(), gauge.value, gauge.labels.len()),
        ("nccl_bus_bandwidth_gbs", 678.263, 10)
    );
    assert_eq!(gauge.labels[4], ("comm_name".to_owned(), "a \"b\"".to_owned()));
    let dropped = "nccl_collectives_dropped_total{version=\"v5.1\",node=\"n1\",gpu=\"GPU0\"} 12\n";
    assert_eq!(found(dropped), ["inspector-dropped: 1.log: nccl_collectives_dropped_total 12"]);
    let unnamed = text.replace(r#"a \"b\""#, "unknown");
    assert_eq!(
        found(&unnamed),
        ["inspector-unnamed: 2 values without a communicator's name: several may be one"]
    );
    assert_eq!(
        found("nccl_bus_bandwidth_gbs{node=\"n1\"} x\n"),
        ["inspector-garbled: 1 line not readable; the first: 1.log:1"]
    );
    assert_eq!(
        found("nccl_bus_bandwidth_gbs{node=\"n"),
        ["inspector-cut: 1 line cut at the end of a file; the first: 1.log:1"]
    );
}

#[test]
fn records_of_the_proxy_are_counted_and_their_loss_is_reported() {
    let stats = marker(0, 0).replace(
        "\"p2p_records\":0,",
        "\"p2p_records\":0,\"proxy_records\":1,\"proxy_ops_dropped_total\":3,",
    );
    let log = read(&[&format!("{stats}{{\"proxy_trace\":{{\"x\":[1]}}}}\n")]);
    assert_eq!(
        (log.proxy_records, messages(&log)),
        (1, vec!["inspector-dropped: 3 records of the proxy dropped".to_owned()])
    );
}

/// A record as the plugin writes it, and the same with other figures.
fn eight_ranks(coll: &str, bytes: u64, time: &str, algbw: &str, busbw: &str) -> String {
    let head = HEAD.replace("\"n_ranks\":1", "\"n_ranks\":8");
    format!(
        "{{{head},\"coll_perf\":{{\"coll\":\"{coll}\",\"coll_sn\":1,\"coll_msg_size_bytes\":{bytes},\
         \"coll_exec_time_us\":{time},\"coll_algobw_gbs\":{algbw},\"coll_busbw_gbs\":{busbw}}}}}\n"
    )
}

#[test]
fn bandwidths_are_compared_with_bytes_time_and_ranks() {
    let disagrees = |text: &str| {
        let log = read(&[text]);
        log.findings.iter().any(|it| it.code == "inspector-disagrees")
    };
    let honest = [
        // Both as published.
        ("AllReduce", 17_179_869_184, "61974", "277.210914", "485.119099"),
        ("ReduceScatter", 2_147_483_648, "41057", "418.439467", "366.134533"),
        ("AllGather", 2_147_483_648, "41057", "418.439467", "366.134533"),
        ("Broadcast", 8_192, "10", "0.819200", "0.819200"),
        ("Reduce", 8_192, "10.0", "0.8192", "0.8192"),
        // Fewer digits, a rate below the last of them, and a time of 0, of which the plugin makes no bandwidth.
        ("AllReduce", 17_179_869_184, "61974", "277.2", "485"),
        ("AllReduce", 4, "90000", "0.000000", "0.000000"),
        ("AllReduce", 4_096, "0", "0.000000", "0.000000"),
        // Types that it has no formula for.
        ("AllToAll", 8_192, "10", "0.000000", "0.000000"),
        ("AllToAll", 8_192, "10", "3.5", "0.1"),
    ];
    for (coll, bytes, time, algbw, busbw) in honest {
        let text = eight_ranks(coll, bytes, time, algbw, busbw);
        assert!(!disagrees(&text), "{text}");
        let p2p = text.replace("coll", "p2p");
        assert_eq!(
            disagrees(&p2p),
            !matches!(coll, "Broadcast" | "Reduce") && time != "0" && bytes != 4,
            "{p2p}"
        );
    }
    let altered = [
        ("AllReduce", 17_179_869_184, "61974", "554.421828", "970.238198"),
        ("AllReduce", 17_179_869_184, "61974", "277.210914", "485.119199"),
        ("AllReduce", 17_179_869_184, "61974", "277.211914", "485.119099"),
        ("AllReduce", 17_179_869_184, "61973", "277.210914", "485.119099"),
        ("AllReduce", 17_179_869_185_000, "61974", "277.210914", "485.119099"),
        ("AllGather", 17_179_869_184, "61974", "277.210914", "485.119099"),
        ("AllReduce", 17_179_869_184, "61974", "277.210914", "0.000000"),
        ("AllReduce", 17_179_869_184, "61974", "-277.210914", "485.119099"),
        ("AllReduce", 4_096, "0", "7.5", "13.125"),
    ];
    for (coll, bytes, time, algbw, busbw) in altered {
        let text = eight_ranks(coll, bytes, time, algbw, busbw);
        assert!(disagrees(&text), "{text}");
    }
    let twice = eight_ranks("AllReduce", 8192, "10", "1.6384", "2.8672");
    assert_eq!(
        messages(&read(&[&twice]))[0],
        "inspector-disagrees: 1 record with bandwidths that bytes, time and ranks do not give; the first: 1.log:1"
    );
    // One of them may be missing, and so may the time.
    for text in
        ["\"coll_busbw_gbs\":485.119099", "\"coll_algobw_gbs\":277.210914,\"coll_busbw_gbs\":485.119099"]
    {
        let whole = eight_ranks("AllReduce", 17_179_869_184, "61974", "277.210914", "485.119099");
        let (before, _) = whole.split_once("\"coll_algobw_gbs\"").expect("a bandwidth");
        let record = format!("{before}{text}}}}}\n");
        assert!(!disagrees(&record) && disagrees(&record.replace("485", "486")), "{record}");
        let timeless = record.replace("\"coll_exec_time_us\":61974,", "");
        assert!(!disagrees(&timeless), "{timeless}");
    }
}

/// A file alone, of which no peer shows what is missing.
#[test]
fn a_file_that_lost_its_beginning_or_ends_in_zeros_is_reported() {
    let expected = ["inspector-garbled: 1 line not readable; the first: 1.log:1"];
    let whole = [full(1), full(2)].concat();
    let at = |key: &str| whole.find(key).expect("a key");
    for cut in [1, at("\"metadata\""), at("\"coll_sn\"")] {
        let log = read(&[&whole[cut..]]);
        assert_eq!((messages(&log), log.records), (expected.map(str::to_owned).to_vec(), 1), "{cut}");
    }
    // A node that went down leaves zeros where its last lines were to stand.
    let zeros = format!("{}{}", full(1), "\0".repeat(100));
    assert_eq!(found(&zeros), ["inspector-garbled: 1 line not readable; the first: 1.log:2"]);
    assert_eq!(found("other output }}\n"), Vec::<String>::new());
}
