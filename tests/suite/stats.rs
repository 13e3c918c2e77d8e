//! What `harness stats` puts on stdout: the tables that were asked for and nothing else, in every format; and its exit
//! codes.

use crate::project::Ran;
use crate::small_export::{ExportFolder, PLAIN, Report};
use std::io::Read;
use std::process::Stdio;

fn place() -> ExportFolder {
    let place = ExportFolder::new();
    place.sqlite("a.sqlite", PLAIN);
    place
}

/// A name as programs may write them to do harm, and long.
fn hostile() -> String {
    format!("\x1b]0;x\x07\0 \u{9b}2J<script>alert(1)</script>,\"q\"\r\n\t{}", "n".repeat(10_000))
}

#[track_caller]
fn assert_reported(ran: &Ran, code: i32, expected: &str) {
    assert_eq!(ran.code, Some(code), "{}", ran.all());
    assert!(ran.stderr.contains(expected), "no `{expected}` in\n{}", ran.all());
}

#[test]
fn stdout_holds_the_table_and_stderr_all_else() {
    let ran = place().stats(&["-r", "cuda_gpu_kern_sum", "a.sqlite"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert_eq!(
        ran.stdout,
        "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n\
         96.8,15317,2,7658.5,7658.5,7468,7849,269.4,\"gemm<float, 2>\"\n\
         3.2,500,1,500.0,500.0,500,500,0.0,copy\n"
    );
    assert_eq!(ran.stderr, "Processing [a.sqlite] with [cuda_gpu_kern_sum]...\n");
    assert_eq!(place().stats(&["-q", "-r", "gpukernsum", "a.sqlite"]).stderr, "");
}

#[test]
fn a_folder_of_parquet_files_gives_the_same_table() {
    let place = place();
    place.parquet("b_pqtdir", PLAIN.kernels);
    let of = |input: &str| {
        let ran = place.stats(&["-r", "cuda_gpu_kern_sum", input]);
        assert_eq!(ran.code, Some(0), "{}", ran.all());
        ran.stdout
    };
    assert_eq!(of("a.sqlite"), of("b_pqtdir"));
    assert_eq!(of("a.sqlite"), of("b_pqtdir/"));
}

#[test]
fn what_a_report_has_no_data_for_is_skipped_and_prints_nothing() {
    let place = place();
    let ran = place.stats(&["a.sqlite"]);
    assert_reported(&ran, 0, "SKIPPED: a.sqlite does not contain OS Runtime trace data.\n");
    assert!(ran.stdout.starts_with("Time (%)") && !ran.stdout.contains("\n\n\n"), "{}", ran.stdout);
    assert_eq!(ran.stdout.matches("Time (%),").count(), 3, "{}", ran.stdout);
    let ran = place.stats(&["-q", "-r", "osrt_sum,mpi_event_sum", "a.sqlite"]);
    assert_reported(&ran, 3, "SKIPPED: a.sqlite does not contain MPI data.\n");
    assert_eq!((ran.stdout.as_str(), ran.stderr.lines().count()), ("", 2));
}

#[test]
fn an_input_that_cannot_be_read_is_named_and_stops_no_other() {
    let place = place();
    place.write("broken.sqlite", "SQLite format 3\0 and no more");
    place.write("empty.sqlite", "");
    place.write("words.txt", "no report");
    for (input, expected) in [
        ("b.sqlite", "error: b.sqlite: no such file or folder; did you mean `a.sqlite`?"),
        ("broken.sqlite", "error: broken.sqlite: "),
        ("empty.sqlite", "error: empty.sqlite: `empty.sqlite` is not a readable export: the file is empty"),
        ("words.txt", "error: words.txt: `words.txt` is not a readable export"),
    ] {
        let ran = place.stats(&["-r", "cuda_api_sum", input, "a.sqlite"]);
        assert_reported(&ran, 2, expected);
        assert!(ran.stdout.contains("cudaLaunchKernel"), "{}", ran.all());
        let alone = place.stats(&["-r", "cuda_api_sum", input]);
        assert_reported(&alone, 2, expected);
        assert_eq!(alone.stdout, "");
    }
}

#[test]
fn an_export_that_was_cut_off_is_an_error_and_never_a_table_of_what_is_left() {
    let place = place();
    let whole = std::fs::read(place.path("a.sqlite")).expect("read");
    for part in [100, 1024, whole.len() / 2, whole.len() - 4096] {
        std::fs::write(place.path("cut.sqlite"), &whole[..part]).expect("written");
        let ran = place.stats(&["-r", "cuda_gpu_kern_sum,cuda_api_sum,nvtx_sum", "cut.sqlite"]);
        assert_reported(&ran, 2, "error: cut.sqlite: ");
    }
}

#[test]
fn diagnostics_are_reported_all_at_once_with_the_nearest_right_word() {
    let place = place();
    for (args, expected) in [
        (&["-r", "cuda_api_smu", "a.sqlite"][..], "did you mean `cuda_api_sum`?"),
        (&["-r", "cuda_gpu_kern_sum:bsae", "a.sqlite"], "did you mean `base`?"),
        (&["-r", "cuda_gpu_kern_sum:base:mangled", "a.sqlite"], "exclude each other"),
        (&["-r", "network_congestion:ticks_threshold=x", "a.sqlite"], "takes a whole number, not `x`"),
        (&["-f", "cvs", "a.sqlite"], "known formats: column, table, csv,"),
        (&["-f", "tabel", "a.sqlite"], "did you mean `table`?"),
        (&["-f", "column:noheader", "a.sqlite"], "did you mean `nohdr`?"),
        (&["-o", "@less", "a.sqlite"], "is not run as a command; pipe stdout into it"),
        (&["--timeunit", "mesc", "a.sqlite"], "did you mean `msec`?"),
        (&["--headings", "2023", "a.sqlite"], "2022"),
        (&["--filter-time", "5", "a.sqlite"], "invalid time span"),
        (&["--filter-nvtx", "a@b@c", "a.sqlite"], "invalid range: two `@`"),
        (&["--filter-time", "1/2", "--filter-nvtx", "x", "a.sqlite"], "cannot be used with"),
        (&["--reprot", "cuda_api_sum", "a.sqlite"], "--report"),
        (&["--help-reports", "osrtsmu"], "did you mean `osrt_sum`?"),
        (&["--help-formats", "jsn"], "did you mean `json`?"),
        (&[], "INPUT"),
    ] {
        let ran = place.stats(args);
        assert_reported(&ran, 2, expected);
        assert_eq!(ran.stdout, "", "{args:?}");
    }
    let ran = place.stats(&["-r", "x", "-f", "y", "-o", "@z", "--filter-time", "t", "a.sqlite"]);
    assert_eq!(ran.stderr.lines().filter(|line| line.starts_with("error: --")).count(), 4, "{}", ran.all());
}

#[test]
fn the_manual_lists_every_report_and_format() {
    let place = ExportFolder::new();
    let ran = place.stats(&["--help-reports"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{}", ran.all());
    for report in recipes::report::LIST {
        assert!(ran.stdout.contains(report.name), "{}", report.name);
    }
    assert!(place.stats(&["--help-reports", "gpukernsum"]).stdout.contains(":mangled"));
    assert!(place.stats(&["--help-formats"]).stdout.contains("htable"));
    assert!(place.stats(&["--help-formats", "tsv"]).stdout.contains(":esc"));
    assert_eq!(place.stats(&["--help"]).code, Some(0));
}

#[test]
fn tables_for_people_have_titles_and_tables_for_programs_have_none() {
    let place = place();
    place.sqlite("b.sqlite", PLAIN);
    let reports = "cuda_api_sum,cuda_gpu_kern_sum";
    let ran = place.stats(&["-q", "-r", reports, "-f", "column", "a.sqlite"]);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines[0], " ** CUDA API Summary (cuda_api_sum):");
    assert_eq!(
        (lines[1], lines[7]),
        ("", " ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("15,317"), "{}", ran.stdout);
    let ran = place.stats(&["-q", "-r", "cuda_api_sum", "-f", "table", "a.sqlite", "b.sqlite"]);
    assert!(ran.stdout.contains(" ** b.sqlite: CUDA API Summary (cuda_api_sum):\n\n+--"), "{}", ran.stdout);
    let ran = place.stats(&["-q", "-r", reports, "-f", "json", "a.sqlite", "b.sqlite"]);
    assert_eq!(ran.stdout.lines().count(), 4);
    for line in ran.stdout.lines() {
        let rows: serde_json::Value = serde_json::from_str(line).expect("an array a line");
        assert_eq!(rows.as_array().map(Vec::len), Some(2));
    }
    for format in ["csv", "tsv"] {
        let ran = place.stats(&["-q", "-r", reports, "-f", format, "a.sqlite"]);
        let tables: Vec<&str> = ran.stdout.split("\n\n").collect();
        assert_eq!(tables.len(), 2, "{}", ran.stdout);
        assert!(tables.iter().all(|table| table.starts_with("Time (%)")), "{}", ran.stdout);
    }
}

#[test]
fn times_are_shown_in_the_unit_that_their_heading_says() {
    let of = |args: &[&str]| {
        let ran = place().stats(&[args, &["-r", "cuda_gpu_kern_sum", "a.sqlite"]].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.all());
        ran.stdout.lines().take(2).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        of(&["--timeunit", "usec"]),
        [
            "Time (%),Total Time (us),Instances,Avg (us),Med (us),Min (us),Max (us),StdDev (us),Name",
            "96.8,15.317,2,7.659,7.659,7.468,7.849,0.269,\"gemm<float, 2>\"",
        ]
    );
    assert!(of(&["--timeunit=msec"])[1].starts_with("96.8,0.015317,2,"));
    assert_eq!(of(&["--timeunit", "ms"]), of(&["--timeunit=msec"]));
    assert!(of(&["--timeunit", "seconds"])[1].starts_with("96.8,0.000015317,2,"));
    assert_eq!(
        of(&["--headings", "2022"]),
        [
            "Time(%),Total Time (ns),Instances,Average,Minimum,Maximum,StdDev,Name",
            "96.8,15317,2,7658.5,7468,7849,269.4,\"gemm<float, 2>\"",
        ]
    );
}

#[test]
fn filters_leave_what_overlaps_a_span_or_a_range() {
    let of = |args: &[&str]| {
        place().stats(&[&["-q", "-r", "cuda_gpu_kern_sum:base"], args, &["a.sqlite"]].concat())
    };
    let names = |ran: &Ran| -> Vec<String> {
        let cells =
            ran.stdout.lines().skip(1).map(|line| line.splitn(9, ',').last().unwrap_or_default().to_owned());
        cells.collect()
    };
    assert_eq!(names(&of(&["--filter-time", "19us/"])), ["copy"]);
    assert_eq!(names(&of(&["--filter-time", "/0.01ms"])), ["\"gemm<float, 2>\""]);
    assert!(of(&["--filter-time", "/9000"]).stdout.contains("100.0,7468,1,"));
    // What ran is kept by the call that launched it: the third kernel's call lies in the second range.
    assert_eq!(names(&of(&["--filter-nvtx", "second\\/half"])), ["copy"]);
    for args in [["--filter-nvtx", "third"], ["--filter-nvtx", "first@NCCL"], ["--filter-time", "1s/2s"]] {
        let ran = of(&args);
        assert_reported(&ran, 3, "SKIPPED: a.sqlite does not contain CUDA kernel data.");
        assert!(ran.stderr.contains("note: a.sqlite: rows that the filter removes"), "{}", ran.all());
        assert_eq!(ran.stdout, "");
    }
}

#[test]
fn names_that_were_written_to_do_harm_do_none_in_any_format() {
    let place = ExportFolder::new();
    let name = hostile();
    place.sqlite("a.sqlite", Report { kernels: &[(0, 5, &name)], ..Report::default() });
    let of = |format: &str| {
        let ran = place.stats(&["-q", "-r", "cuda_gpu_kern_sum", "-f", format, "a.sqlite"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{}", ran.all());
        ran.stdout
    };
    for format in ["column", "column:nolimit", "table", "htable", "hdoc"] {
        let text = of(format);
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{format}: {text}");
        assert!(text.contains("\\x1b]0;x\\x07\\x00 \\x9b2J"), "{format}: {text}");
    }
    for format in ["htable", "hdoc"] {
        assert!(!of(format).contains("<script"), "{format}");
    }
    assert_eq!(of("column").lines().last().map(|line| line.ends_with('…')), Some(true));
    assert!(of("column:nolimit").len() > 10_000);
    let rows: serde_json::Value = serde_json::from_str(&of("json")).expect("JSON");
    assert_eq!(rows[0]["Name"], name.as_str());
    let csv = of("csv:nohdr");
    // Within quotes a cell may have line breaks.
    assert!(!csv.contains(|c: char| c.is_control() && !"\n\r\t".contains(c)), "{csv}");
    assert!(csv.contains("\\x1b]0;x\\x07\\x00 \\x9b2J"), "{csv}");
    assert_eq!(of("tsv:nohdr").matches('\t').count(), 8);
    assert_eq!(of("tsv:nohdr:esc").lines().count(), 1);
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let place = ExportFolder::new();
    let names: Vec<String> = (0..200).map(|at| format!("{at}{}", "x".repeat(5_000))).collect();
    let kernels: Vec<(i64, i64, &str)> = names.iter().map(|name| (0, 5, name.as_str())).collect();
    place.sqlite("a.sqlite", Report { kernels: &kernels, ..Report::default() });
    let mut command = place.command(&["-q", "-r", "cuda_gpu_kern_sum,cuda_gpu_kern_sum", "a.sqlite"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut first = [0; 8];
    child.stdout.take().expect("a pipe").read_exact(&mut first).expect("a beginning");
    let ended = child.wait_with_output().expect("it ends");
    assert_eq!((&first, ended.status.code()), (b"Time (%)", Some(0)));
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
}
