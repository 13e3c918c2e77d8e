//! Every era, prefix and option of the text, and the JSON.

use super::super::*;
use super::{WHOLE, codes, only, text};

fn first_row(read: &NcclTests) -> &Row {
    only(read).rows.first().unwrap_or_else(|| panic!("no row: {read:#?}"))
}

#[test]
fn a_whole_log_is_read_whole() {
    let read = text(WHOLE);
    let run = only(&read);
    assert_eq!(codes(&read), Vec::<&str>::new());
    assert_eq!((run.op, run.format), (Some(Op::AllReduce), Format::WideText));
    assert_eq!(run.nccl_tests_version.as_deref(), Some("2.17.6"));
    assert_eq!(run.nccl_version.as_deref(), Some("2.26.2"));
    let parameters = run.parameters.clone().expect("parameters");
    assert_eq!((parameters.threads, parameters.gpus_per_thread), (Some(1), Some(2)));
    assert_eq!((parameters.min_bytes, parameters.max_bytes), (Some(8 << 20), Some(32 << 20)));
    assert_eq!((parameters.step, parameters.warmup), (Some(Step::Factor(2)), Some(1)));
    assert_eq!((parameters.iterations, parameters.agg_iterations), (Some(20), Some(1)));
    assert_eq!((parameters.validation, parameters.graph), (Some(1), Some(0)));
    assert_eq!(run.ranks.iter().map(|r| r.rank).collect::<Vec<_>>(), [0, 1]);
    assert_eq!((run.rows.len(), run.concluded, &run.failure), (3, true, &None));
    assert_eq!(run.out_of_bounds, Some(OutOfBounds { count: 0, ok: true }));
    assert_eq!(run.average_busbw_gb_s, Some(128.462));
    let row = first_row(&read);
    assert_eq!((row.size_bytes, row.count, row.line), (8 << 20, 2 << 20, 12));
    assert_eq!((row.dtype.as_str(), row.redop.as_deref(), row.root), ("float", Some("sum"), None));
    assert_eq!(row.in_place.as_ref().map(|half| half.busbw_gb_s), Some(103.59));
    assert_eq!(recompute(run, None), []);
    assert_eq!(ranks_from_ratio(run), Some((1.0, Some(2))));
    assert_eq!(read.lines, read.understood + 1, "all but the blank line");
}

#[test]
fn rows_of_every_form_are_rows() {
    let error = "#  size  count  type  redop  time  algbw  busbw  error  time  algbw  busbw  error\n";
    let root = "# size count type redop root time algbw busbw error time algbw busbw error\n";
    let rooted = "# size count type root time algbw busbw error time algbw busbw error\n";
    let wrong = "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n";
    let stamp = "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong timestamp\n";
    let cpu = "# size count type redop root cputime algbw busbw #wrong cputime algbw busbw #wrong\n";
    let iter = "# size count type redop root time algbw busbw #wrong i_min i_max i_p99 i_cv% \
                time algbw busbw #wrong i_min i_max i_p99 i_cv%\n";
    let table: [(&str, &str, &str); 24] = [
        ("up to 2.11", error, "1024 256 float sum 34.94 0.03 0.05 4e-07 35.20 0.03 0.05 4e-07"),
        ("without redop", error, "1024 32 float 88.17 0.01 0.01 N/A 88.98 0.01 0.01 N/A"),
        ("with a root", root, "1024 256 float sum 0 35.49 0.01 0.01 0e+00 35.53 0.01 0.01 0e+00"),
        ("with a root only", rooted, "1024 256 float 3 35.49 0.01 0.01 0e+00 35.53 0.01 0.01 0e+00"),
        ("2.13", wrong, "1024 256 float sum -1 34.94 0.03 0.05 0 35.20 0.03 0.05 0"),
        ("none", wrong, "1024 256 float none -1 34.94 0.03 0.05 0 35.20 0.03 0.05 N/A"),
        ("exponents", wrong, "1024 256 float sum -1 1.2e+07 0.03 0.05 1e+06 1.3e+07 1e+06 2e+06 1.5e+06"),
        ("large times", wrong, "1024 256 float sum -1 11163 0.03 0.05 0 133878 0.03 0.05 0"),
        ("-S", stamp, "1024 256 float sum -1 34.94 0.03 0.05 0 35.20 0.03 0.05 0 2025-01-31 12:00:00"),
        ("-C", cpu, "1024 256 float sum -1 34.94 0.03 0.05 0 35.20 0.03 0.05 0"),
        (
            "-I",
            iter,
            "1024 256 float sum -1 34.94 0.03 0.05 0 30.00 40.00 39.00 5.10 35.20 0.03 0.05 0 30.00 40.00 39.00 5.10",
        ),
        ("bare", "", "1024 256 float sum -1 34.94 0.03 0.05 0 35.20 0.03 0.05 0"),
        ("bare with a root", "", "1024 256 float sum 0 34.94 0.03 0.05 N/A 35.20 0.03 0.05 N/A"),
        ("bare of 2019", "", "1024 256 float sum 34.94 0.03 0.05 4e-07 35.20 0.03 0.05 4e-07"),
        ("bare -S", "", "1024 256 float sum -1 34.94 0.03 0.05 0 35.20 0.03 0.05 0 2025-01-31 12:00:00"),
        ("bfloat16", wrong, "1024 512 bfloat16 avg -1 34.94 0.03 0.05 0 35.20 0.03 0.05 0"),
        ("f8e4m3", wrong, "1024 1024 f8e4m3 mulsum -1 34.94 0.03 0.05 0 35.20 0.03 0.05 0"),
        ("srun", "", "0: 1024 256 float sum -1 34.94 0.03 0.05 0 35.20 0.03 0.05 0"),
        ("padded srun", "", " 12: 1024 256 float sum -1 34.94 0.03 0.05 0 35.20 0.03 0.05 0"),
        (
            "mpirun in pieces",
            "",
            "[1,0]<stdout>: 1024 256 float sum -1 34.94 0.03 0.05 0[1,0]<stdout>: 35.20 0.03 0.05 0",
        ),
        (
            "mpirun in pieces of a number",
            "",
            "[1,0]<stdout>: 1024 256 float sum -1 34.[1,0]<stdout>:94 0.03 0.05 0 35.20 0.03 0.05 0",
        ),
        ("mpirun", "", "[1,0]<stdout>: 1024 256 float sum -1 34.94 0.03 0.05 0 35.20 0.03 0.05 0"),
        ("a fence", "```\n", "1024 256 float sum -1 34.94 0.03 0.05 0 35.20 0.03 0.05 0\r\n```"),
        ("colours", "", "\x1b[32m1024 256 float sum -1 34.94 0.03 0.05 0 35.20 0.03 0.05 0\x1b[0m"),
    ];
    for (what, headings, row) in table {
        let read = text(&format!("{headings}{row}\n"));
        assert_eq!(only(&read).rows.len(), 1, "{what}: {read:#?}");
        let row = first_row(&read);
        assert_eq!(row.size_bytes, 1024, "{what}");
        assert!(row.out_of_place.is_some() && row.in_place.is_some(), "{what}");
        assert_eq!(row.timestamp.is_some(), what.contains("-S"), "{what}");
        assert_eq!(only(&read).cpu_time, what == "-C", "{what}");
        let iterations = row.in_place.as_ref().and_then(|half| half.iterations);
        assert_eq!(iterations.map(|i| i.cv_pct), (what == "-I").then_some(5.1), "{what}");
        assert_eq!(row.root, if what == "with a root only" { Some(3) } else { row.root }, "{what}");
        assert_eq!(codes(&read), ["not-concluded"], "{what}");
    }
}

#[test]
fn an_error_is_no_count() {
    let read = text("1024 256 float sum 34.94 0.03 0.05 4e-07 35.20 0.03 0.05 N/A\n");
    assert_eq!(first_row(&read).out_of_place.as_ref().map(|half| half.wrong), Some(Wrong::MaxError(4e-7)));
    assert_eq!(first_row(&read).in_place.as_ref().map(|half| half.wrong), Some(Wrong::NotChecked));
}

#[test]
fn runs_in_one_file_stay_apart() {
    let read = text(&format!("{WHOLE}$ ./alltoall_perf -b 8\n{}", WHOLE.replace("all_reduce", "alltoall")));
    let ops: Vec<_> = read.runs.iter().map(|run| (run.op, run.rows.len(), run.concluded)).collect();
    assert_eq!(ops, [(Some(Op::AllReduce), 3, true), (Some(Op::AllToAll), 3, true)]);
}

#[test]
fn ranks_that_formed_no_job_are_read_as_runs_of_their_own() {
    let mut mixed = String::new();
    for line in WHOLE.lines() {
        mixed.push_str(&format!("0: {line}\n1: {line}\n"));
    }
    let read = text(&mixed);
    assert_eq!(read.runs.iter().map(|run| run.rows.len()).collect::<Vec<_>>(), [3, 3]);
    assert_eq!(codes(&read), Vec::<&str>::new());
}

#[test]
fn labels_of_mpich_within_rows_are_taken_out() {
    let mut labelled = String::new();
    for line in WHOLE.lines() {
        // A row is flushed behind its root and behind its first half.
        let pieces = line.trim_start().starts_with(|c: char| c.is_ascii_digit());
        let line = match pieces {
            true => line.replacen("-1 ", "-1[0] ", 1).replacen("       0 ", "       0[0] ", 1),
            false => line.to_owned(),
        };
        labelled.push_str(&format!("[0] {line}\n"));
    }
    assert!(labelled.contains("-1[0]    83.33") && labelled.contains("       0[0]   127.00"), "{labelled}");
    let read = text(&labelled);
    assert_eq!((codes(&read), only(&read).rows.len()), (Vec::new(), 3));
    let mut plain = text(WHOLE);
    plain.runs.iter_mut().flat_map(|run| &mut run.rows).for_each(|row| row.line = 0);
    let mut rows = only(&read).rows.clone();
    rows.iter_mut().for_each(|row| row.line = 0);
    assert_eq!(rows, only(&plain).rows);
    let log = "-1[0] alpha-1:1001:1002 [0] NCCL INFO 8388608 Bytes -> Algo 1 proto 2\n[0]    83.33";
    let read = text(&labelled.replacen("-1[0]    83.33", log, 1));
    assert_eq!((codes(&read), only(&read).rows.len()), (Vec::new(), 3));
    // Another rank's label is none of this row's.
    let read = text(&labelled.replacen("-1[0]", "-1[1]", 1));
    assert_eq!((codes(&read).contains(&"row-odd"), only(&read).rows.len()), (true, 2));
}

#[test]
fn headers_in_a_burst_are_reported() {
    let head = "# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 1 iters: 20\n";
    let read = text(&format!("{head}{head}8 2 float sum -1 34.94 0.00 0.00 0 35.20 0.00 0.00 0\n"));
    assert!(codes(&read).contains(&"interleaved-tables"), "{read:#?}");
}

#[test]
fn the_command_line_names_the_operation_where_the_program_does_not() {
    let row = "8 2 float none -1 34.94 0.00 0.00 0 35.20 0.00 0.00 N/A\n";
    let op = |text: &str| super::text(text).runs.first().and_then(|run| run.op);
    assert_eq!(op(&format!("+ srun /x/alltoall_perf -b 8 -e 8\n{row}")), Some(Op::AllToAll));
    assert_eq!(op(row), None);
    assert_eq!(op(&format!("alltoall_perf was used\n{row}")), None);
}

#[test]
fn what_is_not_of_nccl_tests_is_refused_with_a_reason() {
    let table = [
        ("", "the file is empty"),
        ("a,b,c,d\n1,2,3,4\n", "comma-separated values, which nccl-tests does not print"),
        ("hello\n", "no row, header or failure of nccl-tests"),
        ("<!DOCTYPE html>\n<title>a run</title>\n", "no row, header or failure of nccl-tests"),
        (
            "a:1:2 [0] NCCL INFO x\n",
            "only lines of NCCL or of launchers: no row, header or failure of nccl-tests",
        ),
        ("{\"a\": 1}", "JSON without `config` and `results`"),
        ("{\"a\"", "truncated JSON without one complete value"),
    ];
    for (bytes, reason) in table {
        assert_eq!(
            read(bytes.as_bytes(), "x").map_err(|error| error.reason),
            Err(reason.to_owned()),
            "{bytes}"
        );
    }
}

const JSON: &str = r#"{"version":2,"start_time":"2025-01-31 12:00:00","args":["\/x\/all_reduce_perf","-J","a"],
"env":["TOKEN=hush","A=1"],"nccl_version":22602,"config":{"nthreads":1,"ngpus":1,"minimum_bytes":8,"maximum_bytes":16,
"step_factor":2,"warmup_iters":1,"iterations":20,"aggregated_iterations":1,"validation":1,"graph":0,
"blocking_collectives":"false","parallel_init":"false","devices":[{"rank":0,"group":0,"pid":7,"hostname":"a","device":0,
"device_hex":"0000:17:00","device_info":"GPU"},{"rank":1,"group":0,"pid":8,"hostname":"b","device":0,
"device_hex":"0000:17:00","device_info":"GPU"}]},"results":[{"size":8388608,"count":2097152,"type":"float",
"redop":"sum","root":"    -1","out_of_place":{"time":83.330000,"alg_bw":100.667323,"bus_bw":100.667323,"nwrong":0.000000},
"in_place":{"time":80.980000,"alg_bw":103.588639,"bus_bw":103.588639,"nwrong":null},"actual_iterations":20,
"experiment_name":"x"},{"size":16777216,"count":4194304,"type":"float","redop":"none","root":"     0",
"out_of_place":{"time":128.3,"alg_bw":130.765518,"bus_bw":130.765518,"nwrong":0.0},
"in_place":{"time":127.0,"alg_bw":132.104063,"bus_bw":132.104063,"nwrong":0.0},
"out_of_place_per_iter":{"min_us":1.0,"max_us":2.0,"p99_us":2.0,"cv_pct":3.0,"times_us":[1.0,2.0]}}],
"out_of_bounds":{"count":0,"okay":"true"},"average_bus_bandwidith":{"bandwidith":117.1,"okay":"unchecked"},
"errors":[""],"end_time":"2025-01-31 12:00:10"}
"#;

#[test]
fn json_is_read_with_its_misspellings_and_without_the_environment() {
    let read = text(JSON);
    let run = only(&read);
    assert_eq!((run.op, run.format, run.concluded), (Some(Op::AllReduce), Format::Json { version: 2 }, true));
    assert_eq!((run.average_busbw_gb_s, run.rows.len(), run.ranks.len()), (Some(117.1), 2, 2));
    assert_eq!(run.nccl_version.as_deref(), Some("2.26.2"));
    assert_eq!(run.rows.iter().map(|row| row.root).collect::<Vec<_>>(), [None, Some(0)]);
    assert_eq!(
        run.rows.first().and_then(|row| row.in_place.as_ref()).map(|half| half.wrong),
        Some(Wrong::NotChecked)
    );
    assert_eq!(codes(&read), Vec::<&str>::new());
    assert_eq!(recompute(run, None), []);
    assert!(!serde_json::to_string(&read).expect("JSON").contains("hush"));
}

/// With several GPUs of a process, the devices are the first of each.
#[test]
fn json_of_several_gpus_per_process_does_not_list_all_ranks() {
    assert_eq!(unlisted(only(&text(JSON))), 0);
    let eight = text(&JSON.replace("\"ngpus\":1", "\"ngpus\":8"));
    assert_eq!(unlisted(only(&eight)), 7);
    assert_eq!(recompute(only(&eight), None), []);
    let huge =
        text(&JSON.replace("\"nthreads\":1,\"ngpus\":1", "\"nthreads\":18446744073709551615,\"ngpus\":2"));
    assert_eq!(unlisted(only(&huge)), u64::MAX - 1);
}

#[test]
fn json_cut_anywhere_gives_only_rows_that_are_whole() {
    let whole = text(JSON);
    let rows = &only(&whole).rows;
    for end in 0..JSON.len() {
        let cut = JSON.get(..end).unwrap_or_default();
        let Ok(read) = read(cut.as_bytes(), "x") else { continue };
        let ended = JSON.trim_end().len() <= end;
        assert_eq!(codes(&read).contains(&"truncated-json"), !ended, "{end}");
        let run = only(&read);
        for (row, original) in run.rows.iter().zip(rows) {
            // Statistics stand behind the halves, and a cut may take them.
            let mut row = row.clone();
            row.out_of_place.as_mut().expect("a half").iterations =
                original.out_of_place.as_ref().and_then(|half| half.iterations);
            assert_eq!(&row, original, "{end}");
        }
        assert!(!serde_json::to_string(&read).expect("JSON").contains("hush"));
    }
}

#[test]
fn a_row_lost_from_json_is_missed_by_the_sizes_of_its_config() {
    let json = JSON.replacen(
        "\"minimum_bytes\":8,\"maximum_bytes\":16",
        "\"minimum_bytes\":8388608,\"maximum_bytes\":16777216",
        1,
    );
    let json = json.replacen(":117.1,", ":116.781,", 1);
    let compared =
        |json: &str| -> Vec<String> { closing(only(&text(json))).into_iter().map(|it| it.message).collect() };
    assert_eq!(compared(&json), Vec::<String>::new());
    // The average is one of the row that is left, so that nothing else shows it.
    let first = json.find("{\"size\":8388608").expect("a row");
    let second = json.find("{\"size\":16777216").expect("a row");
    let lost = format!("{}{}", &json[..first], &json[second..]).replace(":116.781,", ":131.434841,");
    assert_eq!(compared(&lost), ["1 rows, no row of size 8388608; the header announces 2 sizes"]);
}

#[test]
fn json_with_no_numbers_or_wrapped_sizes_gives_findings() {
    for figure in ["\"nan\"", "nan", "-nan", "inf"] {
        let read = text(&JSON.replacen("83.330000", figure, 1));
        assert_eq!((only(&read).rows.len(), codes(&read)), (1, vec!["not-a-number"]), "{figure}");
    }
    for size in ["-2147483648", "0"] {
        let read = text(&JSON.replacen("8388608", size, 1));
        assert_eq!((only(&read).rows.len(), codes(&read)), (1, vec!["size-overflowed"]), "{size}");
    }
}

#[test]
fn tags_of_mpirun_are_taken_out_wherever_they_stand() {
    let tag = "[1,0]<stdout>:";
    let torn = WHOLE
        .replace("      -1  ", &format!("      -1{tag}  "))
        .replace("       0   ", &format!("      0{tag}    "));
    for front in [tag, "", "0: ", "2025-01-31T12:00:00.5Z [1,0]<stdout>:"] {
        let text: String = torn.lines().map(|line| format!("{front}{line}\n")).collect();
        let read = super::text(&text);
        assert_eq!((only(&read).rows.len(), codes(&read)), (3, vec![]), "{front:?}");
    }
}

#[test]
fn a_brace_before_a_log_does_not_make_it_json() {
    for front in ["{\"level\":\"info\"}\n", "{'a': 1, 'b': [2]}\n", "{\n", "{\"results\": 1}\n"] {
        let read = text(&format!("{front}{WHOLE}"));
        assert_eq!((only(&read).rows.len(), codes(&read)), (3, vec![]), "{front:?}");
    }
}

#[test]
fn messages_of_json() {
    let changes = [
        ("8388608", "-8388608"),
        ("\"size\"", "\"bytes\""),
        ("\"type\"", "\"kind\""),
        ("\"in_place\"", "\"inside\""),
        ("\"nwrong\"", "\"wrong\""),
        ("\"alg_bw\"", "\"bw\""),
        ("83.330000", "-1.0"),
        ("\"out_of_bounds\"", "\"bounds\""),
        ("\"results\":[", "\"results\":[],\"others\":["),
    ];
    let lines = changes.map(|(from, to)| {
        assert!(JSON.contains(from), "{from}");
        let read = text(&JSON.replacen(from, to, 1));
        let found = read.findings.iter().map(|finding| format!("  {}: {}\n", finding.code, finding.message));
        format!("{from} -> {to}\n{}", found.collect::<String>())
    });
    insta::assert_snapshot!(lines.concat());
}

#[test]
fn tables_of_nccl_1_have_milliseconds() {
    let head = "nThread 1 nGpus 2 minBytes 64 maxBytes 1048576 step: 2(factor) warmup iters: 5 iters: 20 validation: 1\n";
    let table = |op: &str, root: &str| {
        format!(
            "{head}#      bytes             N    type      op {op}    time  algbw  busbw      res     time  algbw  busbw      res\n\
             1048576        262144   float     sum {root}   0.080  13.11  13.11    0e+00    0.060  17.48  17.48      N/A\n \
             Out of bounds values : 0 OK\n Avg bus bandwidth    : 15.3\n"
        )
    };
    for (op, root, expected) in [("", "", None), ("root", "1", Some(1))] {
        let read = text(&table(op, root));
        let row = first_row(&read);
        let half = row.out_of_place.clone().expect("a half");
        assert_eq!((half.time_us, half.algbw_gb_s, half.wrong), (80.0, 13.11, Wrong::MaxError(0.0)));
        assert!((half.rounding.time_us - 0.5).abs() < 1e-9);
        assert_eq!((row.root, row.redop.as_deref(), only(&read).concluded), (expected, Some("sum"), true));
    }
}

#[test]
fn closing_lines_with_tabs_are_seen() {
    let read =
        text(&WHOLE.replace("# Out of bounds values : 0 OK", "#\tOut\tof\tbounds\tvalues\t:\t3\tFAILED"));
    assert_eq!(only(&read).out_of_bounds, Some(OutOfBounds { count: 3, ok: false }));
}

#[test]
fn a_label_of_mpich_is_one_within_a_row_that_nccl_broke_too() {
    let nccl = "alpha-1:7:7 [0] NCCL INFO 1024 Bytes -> Algo 0 proto 0 time 25.2\n";
    let log = format!(
        "[0] # size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n\
         [0]         1024           256     float     sum      -1[0] {nccl}[0] {nccl}\
         [0]    34.94    0.03    0.05      0[0] {nccl}[0]    35.20    0.03    0.05      0\n\
         [0] # Out of bounds values : 0 OK\n[0] # Avg bus bandwidth    : 0.05\n"
    );
    let read = text(&log);
    let row = first_row(&read);
    assert_eq!((codes(&read).len(), row.size_bytes), (0, 1024), "{read:#?}");
    assert_eq!(row.in_place.as_ref().map(|half| half.time_us), Some(35.2));
}
