//! Readers of programs that test a node, on small outputs of each form; `tests/real` has outputs of real machines.

use super::dcgm::Status;
use super::gpu_state::Phase;
use super::{dcgm, fio, gpu_burn, nvbandwidth, stream};

fn results(text: &str) -> Vec<(String, Option<u32>, Status)> {
    let read = dcgm::read(text).expect(text);
    read.results.into_iter().map(|result| (result.test, result.gpu, result.status)).collect()
}

#[test]
fn a_diagnosis_is_read_in_the_json_of_dcgm_3_and_4_and_as_a_table() {
    let expected = [
        ("software".to_owned(), None, Status::Pass),
        ("memory".to_owned(), Some(0), Status::Pass),
        ("memory".to_owned(), Some(3), Status::Fail),
        ("pcie".to_owned(), Some(0), Status::Skip),
    ];
    let old = r#"Info: note
        {"DCGM GPU Diagnostic": {"version": "3.3.5", "test_categories": [{"category": "Deployment", "tests": [
        {"name": "software", "results": [{"status": "Pass"}]},
        {"name": "memory", "results": [{"gpu_ids": "0", "status": "Pass"}, {"gpu_id": "3", "status": "Fail", "warnings": "bad"}]},
        {"name": "pcie", "results": [{"gpu_id": 0, "status": "Skip"}]}]}]}}"#;
    let new = r#"{"DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": [
        {"name": "software", "results": [{"entity_group": "CPU", "entity_id": 0, "status": "Pass"}]},
        {"name": "memory", "results": [{"entity_group": "GPU", "entity_id": 0, "status": "Pass"},
         {"entity_group": "GPU", "entity_id": 3, "status": "Fail", "warnings": [{"warning": "bad", "error_id": 1}]}],
         "test_summary": {"status": "Fail"}},
        {"name": "pcie", "results": [{"entity_group": "GPU", "entity_id": 0, "status": "Skip"}]}]}]},
        "metadata": {"version": "4.2.3"}}"#;
    let table = "| Diagnostic | Result |\n+===+\n|-----  Deployment  -----+-----|\n| software | Pass |\n| memory | Pass - GPU: 0 |\n\
                 | memory | Fail - GPU: 3 |\n| Warning | bad |\n| pcie | Skip - GPU: 0 |\n";
    for text in [old, new, table] {
        assert_eq!(results(text), expected, "{text}");
        let read = dcgm::read(text).expect("read");
        assert_eq!(read.results[2].why, ["bad"]);
    }
    assert_eq!(dcgm::read(new).expect("read").version.as_deref(), Some("4.2.3"));
}

const HEAD: &str = "+-----+-----+\n| Diagnostic                | Result           |\n+===========+=======+\n\
    |-----  Metadata  ----------+------|\n| DCGM Version   | 3.3.1 |\n| EUD Test Version | eud.1 |\n| Number of CPUs Detected | 2 |\n\
    +-----  Hardware  -------+-------+\n";

#[test]
fn a_gpu_that_failed_below_those_that_passed_is_a_result() {
    let table = format!(
        "{HEAD}| GPU Memory | Pass - GPUs: 0, 2, 1 |\n|  | 1, 13 |\n|  | Fail - GPUs: 3, 4 |\n\
         | Warning | GPU 4 Thermal violations totaling 7.5 seconds st |\n|  | arted |\n| Info | GPU 0 is warm |\n\
         | Targeted Power | Pass - All |\n+-----+-----+\n"
    );
    let memory = |gpu, status| ("GPU Memory".to_owned(), gpu, status);
    let passed = [0, 2, 11, 13].map(|gpu| memory(Some(gpu), Status::Pass));
    // What the warning says is about GPU 4.
    let failed = [(3, Status::Unmeasured), (4, Status::Fail)].map(|(gpu, status)| memory(Some(gpu), status));
    let power = [("Targeted Power".to_owned(), None, Status::Pass)];
    assert_eq!(results(&table), [&passed[..], &failed, &power].concat());
    let read = dcgm::read(&table).expect("read");
    let why: Vec<_> = read.results.iter().map(|result| result.why.len()).collect();
    assert_eq!(why, [1, 0, 0, 0, 0, 1, 0], "a text is about the GPU that it names");
    assert_eq!(read.results[5].why, ["GPU 4 Thermal violations totaling 7.5 seconds started"]);
    assert_eq!((read.version.as_deref(), read.incomplete), (Some("3.3.1"), None));
}

#[test]
fn results_by_gpu_of_dcgm_4_stand_below_the_test() {
    let table = format!(
        "{HEAD}| memory | Fail |\n|  | GPU0: Pass |\n|  | GPU1: Fail |\n| Warning: GPU1 | page faults |\n\
         | pcie | Warn |\n|  | GPU0: Pass |\n|  | GPU1: Pass |\n| cpu_eud | Pass |\n|  | CPU0: Pass |\n+-----+-----+\n"
    );
    let expected = [
        ("memory", Some(0), Status::Pass),
        ("memory", Some(1), Status::Fail),
        ("pcie", Some(0), Status::Pass),
        ("pcie", Some(1), Status::Pass),
        // What only the summary knows.
        ("pcie", None, Status::Warn),
        ("cpu_eud", None, Status::Pass),
    ];
    assert_eq!(results(&table), expected.map(|(test, gpu, status)| (test.to_owned(), gpu, status)));
    assert_eq!(dcgm::read(&table).expect("read").results[1].why, ["page faults"]);
}

/// As `dcgmi/Diag.cpp` of DCGM 2, 3 and 4 prints it.
#[test]
fn each_word_for_a_result_of_dcgm_is_known() {
    let table = format!(
        "{HEAD}| memory | Pass - GPUs: 0 |\n|  | Fail - GPU: 1 |\n|  | Warn - GPU: 2 |\n|  | Skip - GPU: 3 |\n\
         | pcie | Warn |\n|  | GPU0: Pass |\n|  | GPU1: Fail |\n| Warning: GPU1 | slow |\n|  | GPU2: |\n\
         | nvbandwidth |  |\n|  | GPU0: |\n| Targeted Power | Warning - All |\n| Targeted Stress | Not Run |\n+-----+-----+\n"
    );
    let expected = [
        ("memory", Some(0), Status::Pass),
        ("memory", Some(1), Status::Fail),
        ("memory", Some(2), Status::Warn),
        ("memory", Some(3), Status::Skip),
        ("pcie", Some(0), Status::Pass),
        // By GPU, DCGM 4 prints a warning as a failure.
        ("pcie", Some(1), Status::Warn),
        ("pcie", Some(2), Status::Skip),
        ("nvbandwidth", Some(0), Status::Skip),
        ("Targeted Power", None, Status::Warn),
        ("Targeted Stress", None, Status::Skip),
    ];
    assert_eq!(results(&table), expected.map(|(test, gpu, status)| (test.to_owned(), gpu, status)));
    for (word, status) in [
        ("Pass", Status::Pass),
        ("Fail", Status::Fail),
        ("Warn", Status::Warn),
        ("Warning", Status::Warn),
        ("Skip", Status::Skip),
        ("Not Run", Status::Skip),
        ("", Status::Skip),
    ] {
        let json = format!(
            r#"{{"DCGM Diagnostic": {{"test_categories": [{{"tests": [{{"name": "pcie", "results": [{{"gpu_id": 0, "status": "{word}"}}]}}]}}]}}}}"#
        );
        assert_eq!(results(&json), [("pcie".to_owned(), Some(0), status)], "{word}");
    }
    // In JSON it then has its name alone.
    let json = r#"{"DCGM Diagnostic": {"test_categories": [{"tests": [{"name": "nvbandwidth"}]}]}}"#;
    assert_eq!(results(json), [("nvbandwidth".to_owned(), None::<u32>, Status::Skip)]);
}

/// DCGM 4.2 to 4.5 on sound nodes: the program of a test wrote more than DCGM reads, or a GPU was not idle yet.
#[test]
fn a_test_of_dcgm_that_measured_nothing_is_no_failure_and_no_pass() {
    let internal = "| Warning                   | There was an internal error during the test:   |\n\
        |                           | 'Output of child process (11167) couldn't be   |\n\
        |                           | parsed: '* Line 1, Column 1   Syntax error: v  |\n";
    let table = format!(
        "{HEAD}| memory | Pass |\n|  | GPU0: Pass |\n|  | GPU1: Pass |\n| pcie | Fail |\n{internal}{internal}\
         |  | GPU0: Pass |\n|  | GPU1: Pass |\n+-----+-----+\n"
    );
    let unmeasured = ("pcie".to_owned(), None, Status::Unmeasured);
    assert_eq!(results(&table).last(), Some(&unmeasured), "{:?}", results(&table));
    let outputs = super::output::read(&table).expect("read");
    assert!(outputs[0].failures.is_empty(), "{outputs:?}");
    assert!(
        outputs[0].findings[0].starts_with("pcie measured nothing on the node: There was"),
        "{outputs:?}"
    );
    // What is wrong beside it is.
    let both = table.replacen("|  | GPU0: Pass |\n|  | GPU1: Pass |\n+", "| Warning | link is down |\n+", 1);
    assert_eq!(results(&both).last(), Some(&("pcie".to_owned(), None, Status::Fail)));
    let busy = "The memory copy utilitization for the GPU: 2 is greater than 10%. This may affect the results of the nvbandwidth test.";
    let json = format!(
        r#"{{"DCGM Diagnostic": {{"test_categories": [{{"category": "Integration", "tests": [{{"name": "nvbandwidth", "results": [
        {{"entity_group": "GPU", "entity_id": 1, "status": "Fail"}},
        {{"entity_group": "GPU", "entity_id": 2, "status": "Fail", "warnings": [{{"error_id": 29, "warning": "{busy}"}}]}}]}}]}}]}}}}"#
    );
    let expected = [1, 2].map(|gpu| ("nvbandwidth".to_owned(), Some(gpu), Status::Unmeasured));
    assert_eq!(results(&json), expected);
    let outputs = super::output::read(&json).expect("read");
    let [output] = &outputs[..] else { panic!("of one program: {outputs:?}") };
    assert_eq!((output.failures.len(), output.findings.len()), (0, 2));
    // An error of one GPU may be the GPU's, and is none of the others'.
    let of_gpu = json.replace(busy, "There was an internal error during the test: 'x'");
    let expected = [(1, Status::Unmeasured), (2, Status::Fail)];
    assert_eq!(results(&of_gpu), expected.map(|(gpu, status)| ("nvbandwidth".to_owned(), Some(gpu), status)));
    let silent = json.replace(&format!(r#", "warnings": [{{"error_id": 29, "warning": "{busy}"}}]"#), "");
    assert!(results(&silent).iter().all(|(.., status)| *status == Status::Fail), "{silent}");
}

/// DCGM 4.5 passes memory of which it tested nothing.
#[test]
fn what_dcgm_says_of_a_test_that_passed_is_not_dropped() {
    let of = |warning: &str| {
        let text = format!(
            r#"{{"DCGM Diagnostic": {{"test_categories": [{{"category": "Hardware", "tests": [{{"name": "memory", "results": [
            {{"entity_group": "GPU", "entity_id": 2, "status": "Pass", "warnings": [{{"error_id": 66, "warning": "{warning}"}}]}}]}}]}}]}}}}"#
        );
        results(&text)[0].2
    };
    assert_eq!(of("Couldn't allocate at least 75.0% of GPU memory on GPU 2"), Status::Unmeasured);
    assert_eq!(of("odd"), Status::Warn);
}

#[test]
fn a_table_that_warns_of_a_gpu_that_passed_is_read_as_its_json_is() {
    let table = format!(
        "{HEAD}| memory | Pass |\n|  | GPU0: Pass |\n|  | GPU1: Pass |\n| Warning: GPU0 | Error using CUDA API |\n\
         | Info: GPU1 | tested 98 % |\n+-----+-----+\n"
    );
    let expected = [(0, Status::Warn), (1, Status::Pass)];
    assert_eq!(results(&table), expected.map(|(gpu, status)| ("memory".to_owned(), Some(gpu), status)));
}

/// From level 3 on DCGM has a test of this name.
#[test]
fn a_test_that_is_called_like_a_program_is_no_output_of_it() {
    let text = r#"{"DCGM Diagnostic": {"test_categories": [{"category": "Integration", "tests": [{"name": "nvbandwidth",
        "results": [{"entity_group": "GPU", "entity_id": 0, "status": "Pass"}]}]}]}}"#;
    let outputs = super::output::read(text).expect("read");
    let [output] = &outputs[..] else { panic!("of one program: {outputs:?}") };
    assert_eq!((output.program, output.findings.len()), ("dcgmi diag", 0), "{output:?}");
}

#[test]
fn a_latency_of_nvbandwidth_is_in_nanoseconds() {
    let text = "nvbandwidth Version: v0.6\nRunning host_device_latency_sm.\nmemory latency SM CPU(row) <-> GPU(column) (ns)\n           0\n 0    772.58\n\n\
                SUM host_device_latency_sm 772.58\n";
    let outputs = super::output::read(text).expect("read");
    let row = &outputs[0].rows[0];
    assert_eq!((row.value, row.unit), (Some(772.58), "ns"), "{outputs:?}");
}

#[test]
fn a_table_that_is_cut_is_read_and_called_incomplete() {
    let cut = format!("{HEAD}| memory | Pass - GPUs: 0, 1 |\n");
    let headless =
        "+-----  Integration  ---+-----+\n| PCIe | Fail - All |\n| Warning | GPU 0 link is down |\n";
    for (text, what) in [(cut.as_str(), "closing rule"), (headless, "beginning")] {
        let read = dcgm::read(text).expect("read");
        assert!(read.incomplete.is_some_and(|it| it.contains(what)), "{read:?}");
        let outputs = super::output::read(text).expect("read");
        let [output] = &outputs[..] else { panic!("of one program") };
        assert_eq!(output.findings.len(), 1);
    }
    assert_eq!(results(headless), [("PCIe".to_owned(), None, Status::Fail)]);
}

#[test]
fn what_only_the_summary_of_a_test_knows_is_a_result() {
    let text = r#"{"DCGM Diagnostic": {"test_categories": [{"tests": [{"name": "eud", "results": [],
        "test_summary": {"status": "Fail", "warnings": [{"warning": "not installed"}]}}]}]}}"#;
    assert_eq!(results(text), [("eud".to_owned(), None, Status::Fail)]);
}

#[test]
fn a_setting_that_dcgm_lists_at_a_gpu_is_a_failure_of_the_node() {
    let failures = |why: &str| {
        let text = format!(
            r#"{{"DCGM Diagnostic": {{"test_categories": [{{"category": "Deployment", "tests": [{{"name": "software", "results": [
            {{"entity_group": "GPU", "entity_group_id": 1, "entity_id": 0, "status": "Fail", "warnings":
            [{{"error_category": 8, "error_id": 29, "error_severity": 5, "warning": "{why}"}}]}}], "test_summary": {{"status": "Fail"}}}}]}}]}}}}"#
        );
        super::output::read(&text).expect("read")[0].failures.clone()
    };
    let why = "Persistence Mode: Persistence mode for GPU 0 is disabled.";
    assert_eq!(failures(why), [format!("software failed on the node: {why}")]);
    let why = "Page Retirement/Row Remap: GPU 0 has a row remap failure.";
    assert_eq!(failures(why), [format!("software failed on GPU 0: {why}")]);
}

#[test]
fn copies_are_read_as_json_and_as_text() {
    let json = r#"{"nvbandwidth": {"version": "v0.7", "Driver Version": "570", "testcases": [
        {"name": "host_to_device_memcpy_ce", "status": "Passed", "bandwidth_matrix": [["55.1", "54.9"]], "sum": 110.0},
        {"name": "device_to_device_memcpy_read_ce", "status": "Passed",
         "bandwidth_matrix": [["N/A", "370"], ["371", "N/A"]], "sum": 741}]}}"#;
    let text = "nvbandwidth Version: v0.7\nDriver Version: 570\nRunning host_to_device_memcpy_ce.\nmemcpy CE CPU(row) -> GPU(column)\n   \
                0  1\n 0 55.10 54.90\n\nSUM host_to_device_memcpy_ce 110.00\n\nRunning device_to_device_memcpy_read_ce.\n 0 1\n\
                0 N/A 370.00\n1 371.00 N/A\n\nSUM device_to_device_memcpy_read_ce 741.00\n";
    for text in [json, text] {
        let read = nvbandwidth::read(text).expect("read");
        let rates: Vec<_> = read.tests.iter().map(|test| test.rates.clone().expect("rates")).collect();
        assert_eq!(rates[0], [[Some(55.1), Some(54.9)]]);
        assert_eq!(rates[1], [[None, Some(370.0)], [Some(371.0), None]]);
        assert_eq!(read.driver.as_deref(), Some("570"));
    }
}

#[test]
fn a_test_of_nvbandwidth_that_failed_is_a_failure_and_one_that_is_cut_a_finding() {
    let head = "nvbandwidth Version: v0.7\nRunning a.\n 0\n0 55.10\n\nSUM a 55.10\n\nRunning b.\n";
    let table = [
        (" Invalid value when checking the pattern at 0x10\nASSERT in expression x == 0\n", 1, 0),
        ("[CUDA_ERROR_NOT_PERMITTED] operation not permitted in expression x\n", 1, 0),
        ("terminate called after throwing an instance of 'std::bad_alloc'\nAborted (core dumped)\n", 1, 0),
        (" 0\n0 4.0\nSUM b 4.0\nSegmentation fault (core dumped)\n", 1, 0),
        ("Error: peers were lost\nRunning c.\n 0\n0 4.0\nSUM c 4.0\n", 1, 0),
        (" 0\n0 4.0\nSUM b 4.0\nERROR: Testcase x not found!\n", 1, 0),
        (" 0\n0 4.0\n", 0, 1),
        (" 0\n0 4.0\nSUM b 8.0\n", 0, 1),
        (" 0\n0 4.0\nSUM b 4.0\nWaiving c.\n", 0, 0),
        (" 0\n0 4.0\nSUM b 4.0\nWaived: \n", 0, 0),
        ("Waived: \n", 0, 1),
    ];
    for (rest, failures, findings) in table {
        let outputs = super::output::read(&format!("{head}{rest}")).expect(rest);
        let [output] = &outputs[..] else { panic!("{rest}: {outputs:?}") };
        assert_eq!(
            (output.failures.len(), output.findings.len()),
            (failures, findings),
            "{rest}: {output:?}"
        );
        assert_eq!(output.rows[0].value, Some(55.1), "{rest}");
    }
}

#[test]
fn a_waived_test_of_nvbandwidth_that_has_no_name_is_a_row() {
    let read =
        nvbandwidth::read("nvbandwidth Version: v0.8\nRunning a.\n 0\n0 55.10\n\nSUM a 55.10\n\nWaived: \n");
    let tests = read.expect("read").tests;
    let last = tests.last().map(|test| (test.name.as_str(), test.rates.clone()));
    assert_eq!((tests.len(), last), (2, Some(("a test without a name", Err(nvbandwidth::NoRates::Waived)))));
    let alone = nvbandwidth::read("nvbandwidth Version: v0.8\nWaived: \n").expect("read");
    assert_eq!(alone.tests.len(), 1);
}

#[test]
fn both_directions_of_nvbandwidth_and_their_total_are_tests_of_their_own() {
    const NAME: &str = "device_to_device_bidirectional_memcpy_read_ce";
    let part = |title: &str, part: &str, rate: f64| {
        format!(
            "memcpy CE GPU(row) <-> GPU(column) {title} bandwidth (GB/s)\n           0         1\n 0       N/A    {rate:.2}\n 1    {rate:.2}       \
             N/A\n\nSUM {NAME}_{part} {:.2}\n\n",
            2.0 * rate
        )
    };
    let next = "Running all_to_host_memcpy_ce.\n 0\n 0 55.10\n\nSUM all_to_host_memcpy_ce 55.10\n";
    let both = part("Read1", "read1", 760.10) + &part("Read2", "read2", 761.11);
    let total = part("Total", "total", 1521.21);
    let read = |parts: &str, next: &str| {
        nvbandwidth::read(&format!("nvbandwidth Version: v0.10.0\nRunning {NAME}.\n{parts}{next}"))
            .expect("read")
            .tests
    };
    for next in [next, ""] {
        let tests = read(&format!("{both}{total}"), next);
        let rates: Vec<_> =
            tests.iter().take(3).map(|test| test.rates.clone().expect("rates")[0][1]).collect();
        assert_eq!(rates, [Some(760.1), Some(761.11), Some(1521.21)]);
        assert_eq!(
            (tests.len(), tests[2].name.as_str()),
            (if next.is_empty() { 3 } else { 4 }, &*format!("{NAME}_total"))
        );
    }
    // Cut behind the second direction, and within the total.
    for parts in [both.clone(), both + total.split("SUM").next().expect("the matrix")] {
        let tests = read(&parts, "");
        assert_eq!((tests.len(), tests[2].name.as_str(), tests[2].rates.is_err()), (3, NAME, true));
    }
}

#[test]
fn every_program_of_a_text_is_read() {
    let burn = "10.0%  proc'd: 10 (500 Gflop/s)   errors: 0   temps: 38 C \ndone\n\nTested 1 GPUs:\n\tGPU 0: FAULTY\n";
    let table = format!("{HEAD}| memory | Pass - All |\n+-----+-----+\n");
    let outputs = super::output::read(&format!("{table}{burn}")).expect("read");
    let seen: Vec<_> = outputs.iter().map(|output| (output.program, output.failures.len())).collect();
    assert_eq!(seen, [("dcgmi diag", 0), ("gpu_burn", 1)]);
    let outputs = super::output::read(&format!("{table}{{\"fio version\": ")).expect("read");
    assert_eq!(outputs[0].findings, ["also in the file, and not read: the JSON of fio is cut off"]);
}

fn burn(text: &str) -> gpu_burn::Burn {
    gpu_burn::read(text.as_bytes()).expect("in memory").expect("a result")
}

#[test]
fn a_burn_has_rates_errors_and_verdicts_by_gpu() {
    // Behind a note of a GPU there is no blank before the dash.
    let text = "\r10.0%  proc'd: 10 (500 Gflop/s) - 10 (490 Gflop/s) - 10 (480 Gflop/s)   errors: 0 - 2  (WARNING!)- 0   temps: 38 C - -- - -- \r\
                11.0%  proc'd: 20 (510 Gflop/s) - 20 (490 Gflop/s) - 20 (480 Gflop/s)   errors: 0 - 3  (WARNING!)- 0   temps: 38 C \n\
                \tSummary at:   now\n\n\
                \r50.0%  proc'd: 30 (505 Gflop/s) - 30 (490 Gflop/s) - -1 (480 Gflop/s)   errors: 0 - 1  (WARNING!)- -1  (DIED!)  temps: 38 C \n\
                done\n\nTested 3 GPUs:\n\tGPU 0: OK\n\tGPU 1: FAULTY\n\tGPU 2: FAULTY\n";
    let read = burn(text);
    let [first, second, third] = read.gpus.as_slice() else { panic!("{read:?}") };
    assert_eq!((first.errors, first.died, first.ok), (0, false, Some(true)));
    // The counter restarts at 0 after each summary.
    assert_eq!((second.errors, second.died, second.ok), (4, false, Some(false)));
    assert_eq!((third.errors, third.died, third.ok), (0, true, Some(false)));
    let rates = [first.rates[10], first.rates[11], first.rates[12], first.rates[50]];
    assert_eq!(rates, [Some(500.0), Some(510.0), None, Some(505.0)]);
    assert_eq!(third.rates[50], None);
}

#[test]
fn a_count_of_errors_that_overflowed_is_no_absence_of_errors() {
    let read = burn(
        "10.0%  proc'd: 10 (500 Gflop/s) - 10 (490 Gflop/s) - 10 (480 Gflop/s)   errors: 0 - -7340032  (WARNING!)- 3  (WARNING!)  temps: 1 C \n\
         20.0%  proc'd: 20 (500 Gflop/s) - 20 (490 Gflop/s) - 20 (480 Gflop/s)   errors: 0 - -9340032  (WARNING!)- -5  (WARNING!)  temps: 1 C \n",
    );
    let seen: Vec<_> = read.gpus.iter().map(|gpu| (gpu.is_wrong(), gpu.wrong_products())).collect();
    let expected = [
        (false, "0 products"),
        (true, "more products than gpu-burn can count"),
        (true, "more than 3 products"),
    ];
    assert_eq!(seen, expected.map(|(is_wrong, count)| (is_wrong, count.to_owned())));
}

#[test]
fn a_burn_without_an_end_or_without_a_product_is_no_pass() {
    let seen = |text: &str| {
        let outputs = super::output::read(text).expect(text);
        (outputs[0].failures.clone(), outputs[0].findings.len())
    };
    let progress = "50.0%  proc'd: 10 (500 Gflop/s)   errors: 0   temps: 38 C \n";
    assert_eq!(seen(progress), (vec![], 1));
    // https://github.com/wilicc/gpu-burn/issues/124: nothing speaks for the GPU, and nothing against it.
    assert_eq!(seen("Tested 1 GPUs:\n\tGPU 0: OK\n"), (vec![], 1));
}

#[test]
fn a_gpu_that_stands_still_keeps_no_rate() {
    let line = |part: u32| {
        let still = part.min(30);
        format!(
            "\r{part}.0%  proc'd: {} (500 Gflop/s) - {} (490 Gflop/s)   errors: 0 - 0   temps: -- - -- ",
            part + 1,
            still + 1
        )
    };
    let text =
        (0..100).map(line).collect::<String>() + "\ndone\n\nTested 2 GPUs:\n\tGPU 0: OK\n\tGPU 1: OK\n";
    let read = burn(&text);
    assert_eq!((read.gpus[0].stopped, read.gpus[1].stopped), (None, Some(30)));
    assert_eq!((read.gpus[1].rates[20], read.gpus[1].rates[60]), (Some(490.0), Some(0.0)));
}

#[test]
fn the_end_of_one_burn_is_no_end_of_another() {
    let progress =
        |part: u32| format!("{part}.0%  proc'd: {} (500 Gflop/s)   errors: 0   temps: 38 C \n", part + 1);
    let whole = progress(10) + &progress(90) + "done\n\nTested 1 GPUs:\n\tGPU 0: OK\n";
    assert_eq!(burn(&whole).gpus[0].ok, Some(true));
    // Killed before its end, with the output of a run before it; and lines in another order.
    for text in [whole.clone() + &progress(20), progress(50) + &whole, progress(95) + &whole] {
        let why = gpu_burn::read(text.as_bytes()).expect("in memory").expect_err(&text);
        assert_eq!(why, "gpu-burn's progress goes back: it ran more than once");
    }
}

#[test]
fn a_second_json_document_is_not_passed_over() {
    let of = |status: &str| {
        format!(
            r#"{{"DCGM Diagnostic": {{"test_categories": [{{"tests": [{{"name": "pcie", "results": [{{"gpu_id": 0, "status": "{status}"}}]}}]}}]}}}}"#
        )
    };
    let more = "printed more than one JSON document: it ran more than once";
    let why = dcgm::read(&format!("{}\n{}\n", of("Pass"), of("Fail"))).expect_err("two documents");
    assert_eq!(why, format!("dcgmi {more}"));
    // A note behind it is none.
    assert!(dcgm::read(&format!("{}\nSuccessfully ran {{1}}\n", of("Pass"))).is_ok());
}

#[test]
fn a_line_of_progress_that_is_cut_counts_for_nothing() {
    let read = burn("\r10.0%  proc'd: 10 (500 Gflop/s)   errors: 0   temps: 38 C \r20.0%  proc'd: 20 (5");
    assert_eq!(read.gpus[0].rates.iter().flatten().count(), 1);
    assert_eq!(read.gpus[0].ok, None);
}

#[test]
fn stream_and_fio_are_read_with_their_own_checks() {
    let text = "Number of Threads counted = 96\nMemory per array = 4096.0 MiB (= 4.0 GiB).\nFunction    Best Rate MB/s  Avg time     Min time     Max time\nCopy:          490180.5     0.017599     0.017524     0.017731\nTriad:         505256.0     0.025583     0.025502     0.025785\nSolution Validates: yes\n";
    assert_eq!(stream::read(text), Ok(stream::Rates { copy: 490.1805, triad: 505.256, valid: true }));
    for (printed, altered, why) in [
        ("490180.5", "980180.5", "Copy: 980180.5 MB/s is not 2 arrays in 0.017524 s"),
        ("0.017524", "0.017525", "Copy: 490180.5 MB/s is not 2 arrays in 0.017525 s"),
        ("505256.0", "505356.0", "Triad: 505356.0 MB/s is not 3 arrays in 0.025502 s"),
        ("= 4096.0", "= 8192.0", "Copy: 490180.5 MB/s is not 2 arrays in 0.017524 s"),
        ("     0.017524     0.017731", "", "the row of Copy has no least time"),
    ] {
        assert_eq!(stream::read(&text.replace(printed, altered)), Err(why.to_owned()), "{altered}");
    }
    let failed = text.replace("Solution Validates", "Failed Validation on array a[]");
    assert!(!stream::read(&failed).expect("read").valid);
    let read = fio::read(FIO).expect("read");
    let side = read.read.expect("reads");
    assert_eq!((side.rate_gb_s, side.operations, side.p99_us), (4.0, 1_000_000.0, Some(250.0)));
    assert_eq!((read.write, read.errors, read.version.as_deref()), (None, 0, Some("fio-3.36")));
}

const FIO: &str = r#"fio: a note
    {"fio version": "fio-3.36", "jobs": [{"error": 0,
     "read": {"io_bytes": 8000000000, "bw_bytes": 4000000000, "iops": 1000000.0, "runtime": 2000, "total_ios": 2000000,
              "clat_ns": {"percentile": {"99.000000": 250000}}},
     "write": {"io_bytes": 0, "bw_bytes": 0, "iops": 0.0, "runtime": 0, "total_ios": 0}}]}"#;

#[test]
fn messages() {
    let lines = [
        dcgm::read("").expect_err("empty"),
        dcgm::read("Error: unable to establish a connection to the specified host: localhost\nError: Unable to connect to host engine. Host engine is not running.\n")
            .expect_err("no JSON"),
        dcgm::read(r#"{"DCGM Diagnostic": {"runtime_error": "already running"}}"#).expect_err("an error"),
        dcgm::read(r#"{"DCGM Diagnostic": {"test_categories": []}}"#).expect_err("no test"),
        dcgm::read(r#"{"DCGM Diagnostic": {"test_categories": [{"tests": [{"name": "pcie", "results": [{"status": "Maybe"}]}]}]}}"#)
            .expect_err("a status"),
        dcgm::read(r#"{"DCGM Diagnostic": {"test_categories": [{"tests": [{"name": "pcie", "results": [{"gpu_id": "x", "status": "Pass"}]}]}]}}"#)
            .expect_err("a GPU"),
        dcgm::read("{\"other\": 1}").expect_err("other JSON"),
        dcgm::read("{\"DCGM Diagnostic\": {\"test_cat").expect_err("cut"),
        nvbandwidth::read("").expect_err("empty"),
        nvbandwidth::read(r#"{"nvbandwidth": {"error": "CUDA error: CUDA_ERROR_NO_DEVICE"}}"#).expect_err("an error"),
        nvbandwidth::read(r#"{"nvbandwidth": {"testcases": []}}"#).expect_err("no test"),
        nvbandwidth::read(r#"{"nvbandwidth": {"testcases": [{"name": "a", "status": "Waived"}, {"name": "b", "status": "Error"},
            {"name": "c", "status": "Passed", "bandwidth_matrix": [["1", "x"]]},
            {"name": "d", "status": "Passed", "bandwidth_matrix": [["10", "20"]], "sum": 40}]}}"#)
            .expect("tests")
            .tests
            .into_iter()
            .map(|test| format!("{}: {}", test.name, test.rates.expect_err("no rates")))
            .collect::<Vec<_>>()
            .join("\n"),
        gpu_burn::read(&b""[..]).expect("in memory").expect_err("empty"),
        gpu_burn::read(&b"Couldn't init CUDA: no device\n"[..]).expect("in memory").expect_err("no GPU"),
        stream::read("").expect_err("empty"),
        stream::read("Killed\n").expect_err("killed"),
        stream::read("Number of Threads counted = 4\nMemory per array = 915.5 MiB\nCopy: 1 1\nTriad: 1 1\n").expect_err("no check"),
        stream::read("Copy: 1 1\nTriad: 1 1\n").expect_err("no OpenMP"),
        stream::read("Number of Threads counted = 4\nMemory per array = 76.3 MiB\nCopy: 1 1\nTriad: 1 1\n").expect_err("small"),
        stream::read("Number of Threads counted = 4\nCopy: 1 1\nTriad: 1 1\n").expect_err("no size"),
        stream::read("Copy: 1 1\nCopy: 1 1\nTriad: 1 1\n").expect_err("twice"),
        stream::read("Copy: nan 1\nTriad: 1 1\n").expect_err("no number"),
        stream::read("Number of Threads counted = 4\nMemory per array = 915.5 MiB\nCopy: 1 1\nTriad: 1 1\nSolution Validates\n").expect_err("no times"),
        stream::read("Number of Threads counted = 4\nMemory per array = 915.5 MiB\nCopy: 96000.0 2 2 2\nTriad: 1 1\nSolution Validates\n").expect_err("another rate"),
        fio::read("fio: pid=12, err=2/file:filesetup.c:174, func=open, error=No such file or directory\n")
            .expect_err("no JSON"),
        fio::read(&FIO.replace("4000000000", "5000000000")).expect_err("another rate"),
        fio::read(r#"{"jobs": []}"#).expect_err("nothing"),
    ];
    insta::assert_snapshot!(lines.join("\n"));
}

const STATE: &str = "harness-gpu-state 1\n\
    fields index,pcie.link.width.current,pcie.link.width.max,clocks_throttle_reasons.active,ecc.errors.uncorrected.volatile.total,remapped_rows.pending\n\
    at before 100.00\nrow 0, 16, 16, 0x0000000000000001, 0, No\nlink GPU 0: NVIDIA (UUID: x)\nlink  Link 0: 26.562 GB/s\n\
    link  Link 0: Replay Errors: 2\nlink  Link 0: FEC Errors - 0: 100\nkernellog\nxid [1] NVRM: Xid (PCI:0000:53:00): 31, old\n\
    at during 110.00\nrow 0, 16, 16, 0x0000000000000004, 1, No\nfailed Unable to determine the device handle\n\
    at after 130.50\nrow 0, 8, 16, 0x0000000000000001, 2, Yes\nlink GPU 0: NVIDIA (UUID: x)\nlink  Link 0: <inactive>\n\
    link  Link 0: Replay Errors: 5\nlink  Link 0: FEC Errors - 0: 900\nkernellog\nxid [1] NVRM: Xid (PCI:0000:53:00): 31, old\nxid [2] NVRM: Xid (PCI:0000:53:00): 48, new\nend\n";

#[test]
fn the_state_of_gpus_is_read_with_what_came_in_between() {
    let states = super::gpu_state::read(STATE.as_bytes()).expect("in memory").expect("read");
    assert!(states.complete);
    assert_eq!(states.new_xids.as_deref(), Some(&["[2] NVRM: Xid (PCI:0000:53:00): 48, new".to_owned()][..]));
    assert_eq!(states.failed, ["Unable to determine the device handle"]);
    let gpu = &states.gpus[&0];
    assert_eq!((gpu.links, gpu.link_errors), (Some(0), Some(3)));
    let readings: Vec<_> =
        gpu.readings.iter().map(|it| (it.at_s, it.phase, it.reasons, it.uncorrected)).collect();
    assert_eq!(
        readings,
        [
            (0.0, Phase::Before, Some(1), Some(0)),
            (10.0, Phase::During, Some(4), Some(1)),
            (30.5, Phase::After, Some(1), Some(2))
        ]
    );
    assert_eq!(gpu.readings[2].memory_pending, Some(true));
}

/// As nvidia-smi prints one GPU of eight whose links are all down.
#[test]
fn a_gpu_whose_links_are_all_down_has_none_where_others_have_some() {
    let none = "NVML: Unable to retrieve Nvlink information as all links are inActive";
    let of = |phase: &str, other: &str, links: &str| {
        format!(
            "at {phase} 100.00\nlink GPU 0: NVIDIA (UUID: x)\nlink \t {other}\nlink GPU 4: NVIDIA (UUID: y)\nlink {links}\n"
        )
    };
    let links = |before: String, after: String| {
        let text = format!("harness-gpu-state 1\nfields index\n{before}{after}end\n");
        let states = super::gpu_state::read(text.as_bytes()).expect("in memory").expect("read");
        states.gpus.get(&4).and_then(|gpu| gpu.links)
    };
    let up = "Link 0: 26.562 GB/s";
    assert_eq!(links(of("before", up, none), of("after", up, none)), Some(0));
    assert_eq!(links(of("before", up, &format!(" {up}")), of("after", up, none)), Some(0));
    assert_eq!(links(of("before", none, none), of("after", none, none)), None, "GPUs without links");
}

/// A query that broke off, and a row that cannot be read, say nothing of GPUs that are not listed.
#[test]
fn a_gpu_is_lost_where_others_are_listed_and_nvidia_smi_went_to_the_end() {
    let lost = |after: &str| -> Vec<u32> {
        let text = format!(
            "harness-gpu-state 1\nfields index,temperature.gpu\nat before 100.00\nrow 0, 30\nrow 1, 30\nrow 2, 30\n\
             at after 200.00\n{after}end\n"
        );
        let states = super::gpu_state::read(text.as_bytes()).expect("in memory").expect("read");
        states.gpus.iter().filter(|(_, gpu)| gpu.lost).map(|(index, _)| *index).collect()
    };
    let named = "failed Unable to determine the device handle for GPU1: 0000:CA:00.0: GPU is lost\n";
    assert_eq!(lost("row 0, 30\nrow 2, 30\n"), [1]);
    assert_eq!(lost(&format!("row 0, 30\nrow 2, 30\n{named}")), [1]);
    for nothing_known in [
        "row 0, 30\nrow 1, 30\nrow 2, 30\n",
        named,
        "row 0, 30\nfailed nvidia-smi ended with 139\n",
        format!("row 0, 30\n{named}").as_str(),
        "row 0, 30\nrow 1\nrow 2, 30\n",
    ] {
        assert!(lost(nothing_known).is_empty(), "{nothing_known}");
    }
}

/// The counters of NVLink 5: what was mended on the way counts for nothing.
#[test]
fn errors_of_newer_links_are_counted() {
    for (name, errors) in [
        ("Rx Errors", 50),
        ("Rx remote Errors", 50),
        ("Rx General Errors", 50),
        ("Link recovery failed events", 50),
        ("Link recovery successful events", 0),
        ("Symbol Errors", 0),
        ("FEC Errors - 0", 0),
    ] {
        let text = STATE
            .replace(
                "Link 0: Replay Errors: 2",
                &format!("Link 0: {name}: 0\nlink  Link 0: Malformed packet Errors: 0"),
            )
            .replace(
                "Link 0: Replay Errors: 5",
                &format!("Link 0: {name}: 50\nlink  Link 0: Malformed packet Errors: 0"),
            );
        let states = super::gpu_state::read(text.as_bytes()).expect("in memory").expect("read");
        assert_eq!(states.gpus[&0].link_errors, Some(errors), "{name}");
    }
}

#[test]
fn the_end_of_one_file_of_states_is_no_end_of_another() {
    let (cut, _) = STATE.split_once("at after").expect("longer");
    let during = "at during 140.00\nrow 0, 16, 16, 0x0000000000000004, 9, No\n";
    let why =
        |text: String| super::gpu_state::read(text.as_bytes()).expect("in memory").expect_err("refused");
    let lines = [STATE.to_owned() + cut, cut.to_owned() + STATE, STATE.to_owned() + during].map(why);
    let two = "two runs wrote the file of GPU states";
    assert_eq!(lines, [two, two, "lines stand behind the end of the GPU states"]);
}

#[test]
fn a_state_that_is_cut_or_of_another_kind_says_so() {
    let cut = &STATE[..STATE.len() - 6];
    let states = super::gpu_state::read(cut.as_bytes()).expect("in memory").expect("read");
    assert!(!states.complete);
    let why = |text: &str| super::gpu_state::read(text.as_bytes()).expect("in memory").expect_err(text);
    let lines =
        [why(""), why("hello\n"), why("harness-gpu-state 1\nabsent nvidia-smi is not on PATH\nend\n")];
    insta::assert_snapshot!(lines.join("\n"));
}
