//! What recipes make of programs that test a node: one small output for each rule.

use super::super::{FileRole, InputFile, JobInput, Output, RecipeSpec, Workload, testing};
use super::{
    dcgm_diag, fio, gpu_allocation, gpu_burn, gpu_state, iperf3, nic_latency, nvbandwidth, stream, stress_ng,
};
use std::fmt::Write as _;

/// What a recipe makes of an output of one node.
fn run_on(spec: &RecipeSpec<'_>, text: &str, code: i32) -> Output {
    run_at(2, spec, text, code)
}

fn run_at(level: u32, spec: &RecipeSpec<'_>, text: &str, code: i32) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("stdout");
    std::fs::write(&path, text).expect("written");
    let workload = Workload::NodeTool { seconds: Some(3600), level: Some(level) };
    let mut job: JobInput = testing::job(workload, &[], |_| "n1".to_owned(), 0);
    job.nodes = vec!["n1".to_owned()];
    job.exit_code = Some(code);
    let shown = "raw/n1/stdout".to_owned();
    let role = if spec.name == "gpu_state" { FileRole::GpuState } else { FileRole::Stdout };
    job.files.push(InputFile { role, path, shown, node: None, part: None, rank: None });
    (spec.run)(&job)
}

/// Metrics and what is said, one line each.
fn lines(output: &Output) -> Vec<String> {
    let metric = |metric: &metric::Metric| {
        let gpu = metric.dims.number(metric::Dim::Gpu).map(|gpu| format!(" gpu{gpu}")).unwrap_or_default();
        format!("{}{gpu} {}", metric.name, metric.unit.show(metric.value))
    };
    let said = output.findings.iter().map(|it| format!("{}: {}", it.code, it.message));
    output.metrics.iter().map(metric).chain(said).collect()
}

#[test]
fn failed_tests_of_dcgm_count_on_their_gpu_and_settings_on_the_node() {
    let text = r#"{"DCGM Diagnostic": {"test_categories": [{"category": "Deployment", "tests": [
        {"name": "software", "results": [{"entity_group": "GPU", "entity_id": 0, "status": "Fail",
          "warnings": [{"warning": "Persistence mode for GPU 0 is disabled."}]}]}]},
        {"category": "Hardware", "tests": [
        {"name": "memory", "results": [{"entity_group": "GPU", "entity_id": 0, "status": "Pass"},
          {"entity_group": "GPU", "entity_id": 1, "status": "Fail", "warnings": [{"warning": "row remapping failed"}]},
          {"entity_group": "GPU", "entity_id": 2, "status": "Skip"}]},
        {"name": "pcie", "results": [{"entity_group": "GPU", "entity_id": 0, "status": "Warn"},
          {"entity_group": "GPU", "entity_id": 2, "status": "Pass"}]}]}]}}"#;
    let output = run_on(&dcgm_diag::SPEC, text, 226);
    let expected = [
        "dcgm.node_failed 1",
        "dcgm.failed gpu0 0",
        "dcgm.failed gpu1 1",
        "dcgm-failed: test `software` of DCGM failed: Persistence mode for GPU 0 is disabled.",
        "dcgm-failed: test `memory` of DCGM failed: row remapping failed",
        "dcgm-skipped: test `memory` of DCGM was skipped",
        "dcgm-warned: test `pcie` of DCGM warns",
        "tool-not-measured: DCGM did not test its memory or its PCIe link",
    ];
    assert_eq!(lines(&output), expected);
    assert!(output.data_wrong && output.failure.is_none());
}

#[test]
fn a_test_of_dcgm_that_measured_nothing_blames_nothing_and_passes_nothing() {
    let of = |name: &str, results: &str| {
        format!(
            r#"{{"DCGM Diagnostic": {{"test_categories": [{{"category": "Hardware", "tests": [
            {{"name": "memory", "results": [{{"entity_group": "GPU", "entity_id": 0, "status": "Pass"}}, {{"entity_group": "GPU", "entity_id": 1, "status": "Pass"}}]}},
            {{"name": "pcie", "results": [{{"entity_group": "GPU", "entity_id": 0, "status": "Pass"}}, {{"entity_group": "GPU", "entity_id": 1, "status": "Pass"}}]}},
            {{"name": "{name}", {results}}}]}}]}}}}"#
        )
    };
    let busy = "The memory copy utilitization for the GPU: 1 is greater than 10%. This may affect the results of the nvbandwidth test.";
    let results = format!(
        r#""results": [{{"entity_group": "GPU", "entity_id": 1, "status": "Fail", "warnings": [{{"warning": "{busy}"}}]}}]"#
    );
    let output = run_on(&dcgm_diag::SPEC, &of("nvbandwidth", &results), 226);
    let said =
        format!("tool-not-measured: test `nvbandwidth` of DCGM measured nothing, run it by itself: {busy}");
    assert_eq!(lines(&output), ["dcgm.node_failed 0".to_owned(), "dcgm.failed gpu0 0".to_owned(), said]);
    assert!(!output.data_wrong);
    let internal = r#""results": [], "test_summary": {"status": "Fail", "warnings": [{"warning": "There was an internal error during the test: 'x'"}]}"#;
    let output = run_on(&dcgm_diag::SPEC, &of("pcie", internal), 226);
    assert!(output.metrics.is_empty() && !output.data_wrong, "{:?}", lines(&output));
}

#[test]
fn tests_of_dcgm_that_did_not_run_pass_nothing() {
    let head = "+-----+-----+\n| Diagnostic                | Result           |\n+=====+=====+\n+-----  Deployment  ---+-----+\n";
    let of = |rows: &str| lines(&run_at(1, &dcgm_diag::SPEC, &format!("{head}{rows}+-----+-----+\n"), 0));
    // GPU 1 was detached.
    let skipped = "dcgm-skipped: test `software` of DCGM was skipped";
    let of_gpu = "tool-not-measured: no test of DCGM has a result for it";
    let expected = ["dcgm.node_failed 0", "dcgm.failed gpu0 0", skipped, of_gpu];
    assert_eq!(of("| software | Pass |\n| | GPU0: Pass |\n| | GPU1: |\n"), expected);
    let none = "tool-not-measured: no test of DCGM has a result";
    assert_eq!(of("| software | |\n| | GPU0: |\n"), [skipped, none]);
    assert_eq!(of("| software | Skip - All |\n"), [skipped, none]);
}

#[test]
fn a_gpu_that_failed_below_those_that_passed_in_a_table_is_counted() {
    let table = "+-----+-----+\n| Diagnostic                | Result           |\n+=====+=====+\n+-----  Hardware  ---+-----+\n\
        | GPU Memory | Pass - GPUs: 1, 2 |\n|  | Fail - GPU: 0 |\n| Warning | GPU 0 row remapping failed |\n| PCIe | Pass - GPUs: 0, 1, 2 |\n";
    let failed = "dcgm-failed: test `GPU Memory` of DCGM failed: GPU 0 row remapping failed";
    let whole = run_on(&dcgm_diag::SPEC, &format!("{table}+-----+-----+\n"), 226);
    let expected =
        ["dcgm.node_failed 0", "dcgm.failed gpu0 1", "dcgm.failed gpu1 0", "dcgm.failed gpu2 0", failed];
    assert_eq!(lines(&whole), expected);
    // Tests that are cut off may be the ones that failed.
    let cut = run_on(&dcgm_diag::SPEC, table, 226);
    let missing = "tool-not-measured: the table has no closing rule: tests may be missing";
    assert_eq!(lines(&cut), ["dcgm.failed gpu0 1", failed, missing]);
}

#[test]
fn wrong_products_count_though_their_number_overflowed_and_the_end_is_missing() {
    let wrong = |text: String| text.replace("errors: 0 - 0 ", "errors: 0 - -7340032  (WARNING!) ");
    for closing in ["", "\tGPU 0: OK\n\tGPU 1: FAULTY\n"] {
        let output = run_on(&gpu_burn::SPEC, &wrong(burned(|_| 500_000.0, closing)), 0);
        let lines = lines(&output);
        assert!(output.data_wrong && lines.contains(&"burn.ok gpu1 0".to_owned()), "{lines:?}");
        assert!(!lines.contains(&"burn.ok gpu0 0".to_owned()), "{lines:?}");
        let why = "burn-wrong: more products than gpu-burn can count came out wrong".to_owned();
        assert!(lines.contains(&why), "{lines:?}");
    }
    let contradiction = wrong(burned(|_| 500_000.0, "\tGPU 0: OK\n\tGPU 1: OK\n"));
    assert!(run_on(&gpu_burn::SPEC, &contradiction, 0).not_comparable.is_some());
}

#[test]
fn a_test_of_nvbandwidth_that_found_wrong_data_has_no_rate() {
    let text = "nvbandwidth Version: v0.7\nRunning host_to_device_memcpy_ce.\n 0\n0 55.10\n\nSUM host_to_device_memcpy_ce 55.10\n\
        Running device_to_host_memcpy_ce.\n Invalid value when checking the pattern at 0x10\nASSERT in expression x == 0\n";
    let expected = [
        "nvbandwidth.from_host gpu0 55.10 GB/s",
        "tool-not-measured: no rate of device_to_host_memcpy_ce: Invalid value when checking the pattern at 0x10",
    ];
    assert_eq!(lines(&run_on(&nvbandwidth::SPEC, text, 1)), expected);
}

#[test]
fn a_program_that_prints_no_result_and_fails_is_a_failure_of_no_place() {
    for spec in [&dcgm_diag::SPEC, &nvbandwidth::SPEC, &gpu_burn::SPEC, &stream::SPEC, &fio::SPEC] {
        let output = run_on(spec, "Error: it does not run here\n", 1);
        let failure = output.failure.as_ref().expect("a failure");
        assert_eq!((failure.cause.as_str(), failure.node.as_deref()), ("tool-failed", None), "{}", spec.name);
        assert!(failure.evidence.contains("it does not run here"), "{}", failure.evidence);
        assert!(output.metrics.is_empty() && !output.data_wrong);
        assert!(run_on(spec, "Error: it does not run here\n", 0).failure.is_none());
    }
}

#[test]
fn a_slow_gpu_is_slow_in_its_median_and_a_slow_pair_only_as_the_slowest() {
    let matrix = |rate: fn(u32, u32) -> u32| {
        let row = |one: u32| {
            let cell = |other: u32| {
                if one == other { "\"N/A\"".to_owned() } else { format!("\"{}\"", rate(one, other)) }
            };
            format!("[{}]", (0..4).map(cell).collect::<Vec<_>>().join(","))
        };
        let rows = (0..4).map(row).collect::<Vec<_>>().join(",");
        format!(
            r#"{{"nvbandwidth": {{"testcases": [{{"name": "device_to_device_memcpy_read_ce", "status": "Passed",
                "bandwidth_matrix": [{rows}]}}]}}}}"#
        )
    };
    let slow_gpu =
        run_on(&nvbandwidth::SPEC, &matrix(|one, other| if one == 2 || other == 2 { 100 } else { 300 }), 0);
    let expected = [
        "nvbandwidth.between gpu0 300.0 GB/s",
        "nvbandwidth.between gpu1 300.0 GB/s",
        "nvbandwidth.between gpu2 100.0 GB/s",
        "nvbandwidth.between gpu3 300.0 GB/s",
        "nvbandwidth.slowest_pair 100.0 GB/s",
    ];
    assert_eq!(lines(&slow_gpu), expected);
    let slow_pair =
        run_on(&nvbandwidth::SPEC, &matrix(|one, other| if one + other == 1 { 100 } else { 300 }), 0);
    let lost = run_on(&nvbandwidth::SPEC, &matrix(|one, other| if one + other == 1 { 0 } else { 300 }), 0);
    let numbers: Vec<String> = lines(&lost).into_iter().filter(|line| line.ends_with("GB/s")).collect();
    assert_eq!(numbers, ["nvbandwidth.between gpu2 300.0 GB/s", "nvbandwidth.between gpu3 300.0 GB/s"]);
    let slow: Vec<String> = lines(&slow_pair).into_iter().filter(|line| line.contains("100.0")).collect();
    assert_eq!(slow, ["nvbandwidth.slowest_pair 100.0 GB/s"]);
}

/// A run of two GPUs, of which the second has these rates by hundredth of the run.
fn burned(rate: impl Fn(u32) -> f64, closing: &str) -> String {
    let mut text = String::new();
    for part in 0..100 {
        let (done, rate) = (part + 1, rate(part));
        write!(
            text,
            "\r{part}.0%  proc'd: {done} (500000 Gflop/s) - {done} ({rate:.0} Gflop/s)   errors: 0 - 0   temps: -- - -- "
        )
        .expect("text");
    }
    text + "\ndone\n\nTested 2 GPUs:\n" + closing
}

#[test]
fn a_gpu_that_slows_down_is_shown_with_its_minute() {
    let text = burned(|part| if part < 40 { 500_000.0 } else { 300_000.0 }, "\tGPU 0: OK\n\tGPU 1: OK\n");
    let output = run_on(&gpu_burn::SPEC, &text, 0);
    let expected = [
        "burn.ok gpu0 1",
        "burn.ended gpu0 1",
        "burn.kept gpu0 1.000",
        "burn.rate gpu0 500.0 TFLOP/s",
        "burn.ok gpu1 1",
        "burn.ended gpu1 1",
        "burn.kept gpu1 0.600",
        "burn.rate gpu1 340.0 TFLOP/s",
        "burn-slowed: fell from 500.0 TFLOP/s to 300.0 TFLOP/s after 24 min",
    ];
    assert_eq!(lines(&output), expected);
}

#[test]
fn without_its_closing_lines_a_burn_shows_no_gpu_that_is_good() {
    let output = run_on(&gpu_burn::SPEC, &burned(|_| 500_000.0, ""), 0);
    assert!(
        lines(&output).iter().all(|line| !line.starts_with("burn.ok") && !line.starts_with("burn.ended"))
    );
}

#[test]
fn a_gpu_that_died_has_no_right_products_and_no_end() {
    let text = burned(|_| 500_000.0, "\tGPU 0: OK\n\tGPU 1: FAULTY\n").replace(
        "\r60.0%  proc'd: 61 (500000 Gflop/s) - 61 (500000 Gflop/s)   errors: 0 - 0",
        "\r60.0%  proc'd: 61 (500000 Gflop/s) - -1 (500000 Gflop/s)   errors: 0 - 77  (DIED!)",
    );
    let output = run_on(&gpu_burn::SPEC, &text, 0);
    let of_second: Vec<String> = lines(&output).into_iter().filter(|line| line.contains("gpu1")).collect();
    assert_eq!(of_second[0], "burn.ended gpu1 0");
    assert!(of_second.iter().all(|line| !line.starts_with("burn.ok")), "{of_second:?}");
    assert!(output.data_wrong);
}

#[test]
fn a_gpu_that_finishes_nothing_any_more_has_not_ended_though_its_closing_line_is_ok() {
    let mut text = burned(|_| 500_000.0, "\tGPU 0: OK\n\tGPU 1: OK\n");
    for part in 31..101 {
        text = text.replace(&format!(" - {part} (500000"), " - 30 (500000");
    }
    let output = run_on(&gpu_burn::SPEC, &text, 0);
    let found = lines(&output);
    assert!(found.contains(&"burn.ended gpu1 0".to_owned()), "{found:?}");
    assert!(found.contains(&"burn.kept gpu1 0.000".to_owned()), "{found:?}");
    assert!(found.contains(&"burn-stopped: finished nothing after 18 min".to_owned()), "{found:?}");
    assert!(found.iter().all(|line| !line.starts_with("burn.ok gpu1")) && output.data_wrong);
}

#[test]
fn a_process_that_never_began_says_nothing_of_its_gpu() {
    let text = burned(|_| 500_000.0, "\tGPU 0: OK\n\tGPU 1: FAULTY\n");
    let text = (1..101).fold(text, |text, part| text.replace(&format!(" - {part} (500000"), " - -1 (0"));
    let output = run_on(&gpu_burn::SPEC, &text, 0);
    let of_second: Vec<String> = lines(&output).into_iter().filter(|line| line.contains("gpu1")).collect();
    assert!(of_second.is_empty() && !output.data_wrong, "{of_second:?}");
    assert!(lines(&output).contains(&"tool-not-measured: it finished no product".to_owned()));
}

#[test]
fn wrong_sums_of_stream_and_errors_of_fio_give_no_rate() {
    let output = run_on(
        &stream::SPEC,
        "Number of Threads counted = 4\nMemory per array = 915.5 MiB\nCopy: 1000.0 1\nTriad: 1000.0 1\nFailed Validation on array a[]\n",
        0,
    );
    assert_eq!(lines(&output), ["stream.ok 0"]);
    assert!(output.data_wrong);
    let text = r#"{"jobs": [{"error": 5, "read": {"io_bytes": 1000, "bw_bytes": 1000, "iops": 1.0, "runtime": 1000, "total_ios": 1}}]}"#;
    let output = run_on(&fio::SPEC, text, 1);
    assert_eq!(lines(&output), ["fio.errors 1"]);
    assert!(output.data_wrong);
    // No space is no fault of the disk.
    let full = run_on(&fio::SPEC, &text.replace("\"error\": 5", "\"error\": 28"), 1);
    assert!(full.metrics.is_empty() && !full.data_wrong);
    assert!(full.failure.expect("a failure").evidence.contains("no space left"));
}

/// Two GPUs, of which the second has these values before, during and after.
fn state(second: [&str; 3], end: &str) -> String {
    let [before, during, after] = second;
    let rows = |phase: &str, at: u32, row: &str| {
        format!("at {phase} {at}.00\nrow 0, 5, 5, 16, 16, 60, 0x4, 0, No\nrow {row}\n")
    };
    format!(
        "harness-gpu-state 1\nfields index,pcie.link.gen.current,pcie.link.gen.max,pcie.link.width.current,\
         pcie.link.width.max,temperature.gpu,clocks_event_reasons.active,ecc.errors.uncorrected.volatile.total,\
         remapped_rows.pending\n{}nokernellog dmesg: Operation not permitted\n{}{}{end}",
        rows("before", 100, before),
        rows("during", 160, during),
        rows("after", 220, after),
    )
}

#[test]
fn what_ails_a_gpu_is_in_its_readings() {
    let text = state(
        [
            "1, 1, 5, 16, 16, 30, 0x1, 4, No",
            "1, 4, 5, 8, 16, 91, 0x44, 5, No",
            "1, 1, 5, 8, 16, 50, 0x1, 7, Yes",
        ],
        "end\n",
    );
    let of_second: Vec<String> = lines(&run_on(&gpu_state::SPEC, &text, 0))
        .into_iter()
        .filter(|line| !line.contains("gpu0"))
        .collect();
    let expected = [
        "gpu.pcie_width gpu1 0.500",
        "gpu.pcie_generation gpu1 0.800",
        "gpu.slowed gpu1 1.000",
        "gpu.ecc_uncorrected gpu1 3",
        "gpu.memory_pending gpu1 1",
        "gpu-slowed: hardware or heat lowered its clocks after 60 s; hottest: 91 C",
    ];
    assert_eq!(of_second, expected);
}

#[test]
fn the_clock_under_load_is_a_fraction_of_the_highest_and_idle_readings_do_not_count() {
    let rows = |clocks: &[u32]| -> String {
        let at = |(at, clock): (usize, &u32)| {
            format!("at during {}\nrow 0, {clock}, 1980, 0x4\nrow 1, 345, 1980, 0x1\n", 100 + 10 * at)
        };
        clocks.iter().enumerate().map(at).collect()
    };
    for (clocks, expected) in [
        (&[1980, 1980, 990][..], vec!["gpu.clock gpu0 1.000"]),
        (&[990, 1980], vec!["gpu.clock gpu0 0.500"]),
        (&[], vec![]),
    ] {
        let text = format!(
            "harness-gpu-state 1\nfields index,clocks.current.sm,clocks.max.sm,clocks_event_reasons.active\n{}end\n",
            rows(clocks)
        );
        let mut found = lines(&run_on(&gpu_state::SPEC, &text, 0));
        found.retain(|line| line.starts_with("gpu.clock"));
        assert_eq!(found, expected);
    }
}

#[test]
fn an_idle_gpu_may_lower_its_link_and_a_power_limit_is_no_fault() {
    let text = state(
        [
            "1, 1, 5, 16, 16, 30, 0x1, 0, No",
            "1, 5, 5, 16, 16, 60, 0x4, 0, No",
            "1, 1, 5, 16, 16, 50, 0x1, 0, No",
        ],
        "end\n",
    );
    let of_second: Vec<String> =
        lines(&run_on(&gpu_state::SPEC, &text, 0)).into_iter().filter(|line| line.contains("gpu1")).collect();
    let expected = [
        "gpu.pcie_width gpu1 1.000",
        "gpu.pcie_generation gpu1 1.000",
        "gpu.slowed gpu1 0.000",
        "gpu.ecc_uncorrected gpu1 0",
        "gpu.memory_pending gpu1 0",
    ];
    assert_eq!(of_second, expected);
}

#[test]
fn a_state_without_its_end_gives_no_number_that_it_would_need() {
    let text = state(
        [
            "1, 1, 5, 16, 16, 30, 0x1, 0, No",
            "1, 5, 5, 16, 16, 60, 0x4, 0, No",
            "1, 1, 5, 16, 16, 50, 0x1, 0, No",
        ],
        "",
    );
    let found = lines(&run_on(&gpu_state::SPEC, &text, 0));
    let numbers = |name: &str| found.iter().filter(|line| line.starts_with(name)).count();
    assert_eq!(
        (numbers("gpu.pcie_width"), numbers("gpu.ecc_uncorrected"), numbers("gpu.memory_pending")),
        (2, 0, 0)
    );
    assert!(found.iter().any(|line| line.starts_with("gpu-state-not-read: ")), "{found:?}");
}

#[test]
fn what_was_read_before_alone_is_no_pass() {
    let gone = state(["1, 1, 5, 16, 16, 30, 0x1, 0, No", "1, 5, 5, 16, 16, 60, 0x4, 0, No", "x"], "end\n");
    let found = lines(&run_on(&gpu_state::SPEC, &gone, 0));
    let numbers = ["gpu.pcie_width gpu1", "gpu.ecc_uncorrected gpu1", "gpu.memory_pending gpu1"];
    assert!(found.iter().all(|line| numbers.iter().all(|number| !line.starts_with(number))), "{found:?}");
    assert!(found.contains(&"gpu-gone: listed before the program, and not after it".to_owned()), "{found:?}");
    let unknown = "1, [N/A], 5, 16, 16, 30, 0x1, [Unknown Error], [N/A]";
    let found = lines(&run_on(
        &gpu_state::SPEC,
        &state(["1, 1, 5, 16, 16, 30, 0x1, 0, No", unknown, unknown], "end\n"),
        0,
    ));
    let of_second: Vec<&String> = found.iter().filter(|line| line.contains("gpu1")).collect();
    assert_eq!(of_second, ["gpu.pcie_width gpu1 1.000", "gpu.slowed gpu1 0.000"]);
}

#[test]
fn a_gpu_that_is_lost_under_load_has_no_link_and_all_that_are_lost_blame_none() {
    let row = "1, 1, 5, 16, 16, 30, 0x1, 0, No";
    let lost = "failed Unable to determine the device handle for GPU1: 0000:CA:00.0: GPU is lost";
    let one = state([row, row, "x"], "end\n").replace("row x", lost);
    let found = lines(&run_on(&gpu_state::SPEC, &one, 0));
    for expected in [
        "gpu.pcie_width gpu0 1.000",
        "gpu.pcie_width gpu1 0.000",
        "gpu-gone: listed before the program, and not after it",
    ] {
        assert!(found.contains(&expected.to_owned()), "{expected}: {found:?}");
    }
    let (before, after) = one.split_once("at after").expect("a reading");
    let all = format!("{before}at after{}", after.replace("row 0, 5, 5, 16, 16, 60, 0x4, 0, No\n", ""));
    let found = lines(&run_on(&gpu_state::SPEC, &all, 0));
    assert!(found.iter().all(|line| !line.starts_with("gpu.pcie_width")), "{found:?}");
}

#[test]
fn an_idle_gpu_has_no_generation() {
    let idle = "1, 1, 5, 16, 16, 30, 0x1, 0, No";
    let found = lines(&run_on(&gpu_state::SPEC, &state([idle, idle, idle], "end\n"), 0));
    assert!(found.iter().all(|line| !line.starts_with("gpu.pcie_generation gpu1")), "{found:?}");
}

#[test]
fn errors_beside_a_closing_line_that_says_ok_are_no_pass() {
    let text = burned(|_| 500_000.0, "\tGPU 0: OK\n\tGPU 1: OK\n")
        .replace("errors: 0 - 0", "errors: 0 - 3  (WARNING!)");
    let output = run_on(&gpu_burn::SPEC, &text, 0);
    assert!(lines(&output).iter().all(|line| !line.starts_with("burn.ok gpu1")));
    assert!(output.not_comparable.expect("a contradiction").why.contains("its closing line says `OK`"));
}

const ROW: &str = "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n\
                   256     10k     =10k     4.8m        0.24s     21.28      12.03       0.08\n";

/// `run_on` knows no NIC.
#[test]
fn messages_of_an_unknown_nic_and_of_one_that_is_silent_are_no_latency() {
    let output = run_on(&nic_latency::SPEC, &format!("device eth0\n{ROW}"), 0);
    assert_eq!(lines(&output), ["not-understood: the instance has no such NIC: eth0"]);
    let output = run_on(&nic_latency::SPEC, "not-connected rdmap79s0 no answer in 30 s, attempts: 3\n", 0);
    assert_eq!(lines(&output), ["tool-not-measured: rdmap79s0: no answer in 30 s, attempts: 3"]);
    assert_eq!(output.findings[0].part.as_deref(), Some("rdmap79s0"));
}

#[test]
fn a_server_that_was_not_ready_leaves_nothing_measured_and_blames_neither_node() {
    let text = "not-started server p5-001 was not ready after 30 s\n";
    let output = run_on(&nic_latency::SPEC, text, 0);
    assert_eq!(lines(&output), ["tool-not-measured: server p5-001 was not ready after 30 s"]);
}

#[test]
fn wrong_memory_under_stress_counts_and_is_no_rate() {
    let text = "stress-ng: fail:  [5464] vm: detected 16 bit errors while stressing memory\n";
    let output = run_on(&stress_ng::SPEC, text, 2);
    assert!(output.data_wrong && output.failure.is_none());
    let expected = ["stress.wrong 1", "stress-wrong: vm: detected 16 bit errors while stressing memory"];
    assert_eq!(lines(&output), expected);
    let output = run_on(&stress_ng::SPEC, "stress-ng: fail:  [5] vm: calloc failed on vm_swap\n", 3);
    assert!(output.failure.is_some() && output.metrics.is_empty(), "{:?}", lines(&output));
}

#[test]
fn processors_that_others_had_name_no_slow_processor() {
    let text = |user: &str| {
        format!(
            "stress-ng: info:  [7] dispatching hogs: 4 cpu, 4 vm\n\
             stress-ng: metrc: [7] cpu              515396    120.00    {user}      0.18      4294.97        1137.24\n\
             stress-ng: metrc: [7] vm              2261023    120.00    223.80      1.80     18841.86       10022.27\n\
             stress-ng: info:  [7] successful run completed in 2 mins, 0.78 secs\n"
        )
    };
    let output = run_on(&stress_ng::SPEC, &text("100.00"), 0);
    let [finding] = output.findings.as_slice() else { panic!("{:?}", lines(&output)) };
    assert_eq!((finding.code.as_str(), finding.node.as_deref()), ("stress-shared", Some("n1")));
    let why = "other processes or a quota had 32 % of the processors, limit 5 %";
    assert_eq!(finding.message, why);
    let metric = stress_ng::SPEC.metrics.iter().find(|metric| metric.name == "stress.cpu").expect("there");
    let code = |message: &str| metric.culprit_code(message).map(|(_, code)| code);
    assert_eq!(code(&format!("stress.cpu on n1: 60: {}", finding.message)), Some("HRN-CPU-SHARED"));
    // As runs of older versions have it.
    let older = "other processes or a limit had 32 % of the processors' time; busiest, in % of one: java 6";
    assert_eq!(code(&format!("stress.cpu on n1: 60: {older}")), Some("HRN-CPU-SHARED"));
    assert_eq!(code("stress.cpu on n1: 60"), Some("HRN-CPU-SLOW"));
    assert!(run_on(&stress_ng::SPEC, &text("240.00"), 0).findings.is_empty());
    let output = run_on(&stress_ng::SPEC, &format!("busy: 128 python3\nbusy: 6 java\n{}", text("100.00")), 0);
    assert_eq!(output.findings[0].message, format!("{why}; busiest: python3 128 %, java 6 %"));
    let busy = format!("busy: 128 {}\n", "x".repeat(60)).repeat(3);
    let output = run_on(&stress_ng::SPEC, &(busy + &text("100.00")), 0);
    assert!(output.findings[0].message.len() <= 120, "{}", output.findings[0].message);
}

#[test]
fn tcp_that_did_not_connect_has_no_rate() {
    let output = run_on(&iperf3::SPEC, "{\"error\": \"unable to connect to server\", \"end\": {}}\n", 0);
    assert_eq!(lines(&output), ["tool-not-measured: iperf3 failed: unable to connect to server"]);
}

#[test]
fn a_step_with_other_gpus_than_it_asked_for_counts_and_one_that_did_not_run_is_no_zero() {
    let gpu = |index: usize| format!("GPU {index}: NVIDIA H100 80GB HBM3 (UUID: GPU-{index})\n");
    let one = format!("step 1\nvisible 0\n{}status 0 \n", gpu(0));
    let two = format!("step 2\nvisible 0,1\n{}status 0 \n", (0..8).map(gpu).collect::<String>());
    let refused = "step 2\nstatus 1 srun: error: Unable to create step\n";
    let of = |parts: &[&str]| lines(&run_on(&gpu_allocation::SPEC, &format!("{}end\n", parts.concat()), 0));
    let why =
        "allocation-wrong: a step that asked for 2 GPUs: nvidia-smi lists 8 GPUs, CUDA_VISIBLE_DEVICES has 2";
    let absent =
        "tool-not-measured: a step that asked for 2 GPUs did not run: srun: error: Unable to create step";
    assert_eq!(of(&[one.as_str()]), ["allocation.wrong 0"]);
    assert_eq!(of(&[one.as_str(), two.as_str()]), ["allocation.wrong 1", why]);
    assert_eq!(of(&[one.as_str(), refused]), [absent]);
    assert_eq!(of(&[two.as_str(), refused]), ["allocation.wrong 1", why, absent]);
    assert!(run_on(&gpu_allocation::SPEC, "", 127).failure.is_some());
}
