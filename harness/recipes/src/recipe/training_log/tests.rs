//! Logs written into a folder, and the recipe's output for them.

use super::*;
use crate::recipe::window::StepWindow;
use metric::Metric;
use std::path::Path;

pub(super) const FACTS: TrainingFacts = TrainingFacts {
    steps: Some(40),
    samples_per_rank: Some(1),
    samples: None,
    tokens_per_sample: Some(4096),
    flops_per_token: Some(4.687e10),
    peak_tflops: Some(989.0),
};

/// A job of two nodes with eight ranks each that printed these texts.
pub(super) fn ran(facts: TrainingFacts, stdout: &str, stderr: &str) -> Output {
    with(None, facts, stdout, stderr)
}

/// A job whose profiler was to capture these steps.
pub(super) fn windowed((first, last): (u64, u64), facts: TrainingFacts, stdout: &str) -> Output {
    with(Some(StepWindow { first, last, marks: BTreeMap::new(), planned_steps: None }), facts, stdout, "")
}

fn with(window: Option<StepWindow>, facts: TrainingFacts, stdout: &str, stderr: &str) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |role, name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        InputFile { role, path, shown: format!("raw/j/{name}"), node: None, part: None, rank: None }
    };
    let files = vec![file(FileRole::Stdout, "stdout", stdout), file(FileRole::Stderr, "stderr", stderr)];
    let workload = Workload::Training { facts, ranks: 16 };
    let blank = crate::recipe::testing::job(workload, &[], |_| "n1".into(), 0);
    (SPEC.run)(&JobInput { files, nodes: vec!["n1".into(), "n2".into()], window, ..blank })
}

pub(super) fn value(output: &Output, name: &str) -> Option<f64> {
    let of_name = |metric: &&Metric| &*metric.name == name;
    output.metrics.iter().find(of_name).map(|metric| metric.value)
}

pub(super) fn message(output: &Output, code: &str) -> Option<String> {
    output.findings.iter().find(|finding| finding.code == code).map(|finding| finding.message.clone())
}

/// The first steps take longer, as they do.
pub(super) fn fsdp(steps: u64, loss: impl Fn(u64) -> f64) -> String {
    let speed = |step: u64| if step < 2 { 4.0 } else { 16.0 + 0.01 * (step % 3) as f64 };
    let line = |step: u64| {
        format!(
            "0: 2024-07-01 10:00:{:02} I [train.py:102] Epoch 0 Batch {step} Steps {} Loss: {:.5}, Speed: {:.2} samples/sec, lr: 0.000006\n",
            step % 60,
            step + 1,
            loss(step),
            speed(step)
        )
    };
    (0..steps).map(line).collect()
}

pub(super) fn falls(step: u64) -> f64 {
    10.0 - 0.05 * step as f64 + 0.01 * (step % 4) as f64
}

#[test]
fn failures_are_reported_with_the_training_s_own_message() {
    let failed = |code, stderr: &str| {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("stderr");
        std::fs::write(&path, stderr).expect("written");
        let shown = "raw/j/stderr".to_owned();
        let files =
            vec![InputFile { role: FileRole::Stderr, path, shown, node: None, part: None, rank: None }];
        let workload = Workload::Training { facts: FACTS, ranks: 16 };
        let blank = crate::recipe::testing::job(workload, &[], |_| "n1".into(), 0);
        let nodes = vec!["n1".into(), "n2".into()];
        (SPEC.run)(&JobInput { files, nodes, exit_code: Some(code), ..blank })
            .failure
            .map(|failure| (failure.cause, failure.node, failure.evidence))
    };
    let summary = "Root Cause (first observed failure):\n[0]:\n  host : n2.local\n  rank : 9 (local_rank: 1)\n  exitcode : 1 (pid: 7)\n=====\n";
    let cuda = "[rank9]: RuntimeError: CUDA error: uncorrectable ECC error encountered\n";
    let (cause, node, evidence) = failed(1, &format!("{cuda}{summary}")).expect("reported");
    assert_eq!((cause.as_str(), node.as_deref()), ("gpu-error", Some("n2")));
    assert_eq!(
        evidence,
        "raw/j/stderr:1: rank 9 on n2: RuntimeError: CUDA error: uncorrectable ECC error encountered"
    );
    assert_eq!(failed(0, cuda), None, "what was caught is no failure");
    let key = "[rank9]: KeyError: 'input_ids'\n";
    let (cause, node, _) = failed(1, &format!("{key}{summary}")).expect("reported");
    assert_eq!((cause.as_str(), node), ("exception", None), "the program's own fault");
    let met = "The client socket has timed out after 60000ms while trying to connect to (n1, 29500).\n";
    let (cause, node, evidence) = failed(1, met).expect("reported");
    assert_eq!((cause.as_str(), node), ("rendezvous", None));
    // Ranks that raise something else had met.
    let (cause, ..) = failed(1, &format!("{met}{key}")).expect("reported");
    assert_eq!(cause, "exception");
    assert!(evidence.contains("n2 did not reach n1:29500"), "{evidence}");
}

/// What a job that failed with these lines on stderr is reported as: cause, node and evidence.
fn failed_with(stderr: &str) -> Option<(String, Option<String>, String)> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("stderr");
    std::fs::write(&path, stderr).expect("written");
    let shown = "raw/j/stderr".to_owned();
    let files = vec![InputFile { role: FileRole::Stderr, path, shown, node: None, part: None, rank: None }];
    let workload = Workload::Training { facts: FACTS, ranks: 16 };
    let blank = crate::recipe::testing::job(workload, &[], |_| "n1".into(), 0);
    let nodes = vec!["n1".into(), "n2".into()];
    let output = (SPEC.run)(&JobInput { files, nodes, exit_code: Some(1), ..blank });
    output.failure.map(|failure| (failure.cause, failure.node, failure.evidence))
}

/// torchrun's block of a rank of a host that ended with this code, at a second of the day.
pub(super) fn block(code: i64, host: &str, rank: u64, second: u64) -> String {
    format!(
        "Root Cause (first observed failure):\n[0]:\n  time      : 2026-06-08_19:04:{second:02}\n  host      : {host}\n  \
         rank      : {rank} (local_rank: {})\n  exitcode  : {code} (pid: 7)\n  error_file: <N/A>\n=====\n",
        rank % 8
    )
}

/// Cause and node of a job that failed so.
fn blamed(stderr: &str) -> (String, Option<String>) {
    let (cause, node, _) = failed_with(stderr).unwrap_or_else(|| panic!("{stderr}"));
    (cause, node)
}

#[test]
fn only_errors_of_the_hardware_blame_a_node() {
    let failed = |why: &str| blamed(&format!("[rank9]: RuntimeError: {why}\n{}", block(1, "n2", 9, 45)));
    for why in [
        "CUDA error: device-side assert triggered",
        "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
        "CUDA error: invalid device ordinal",
        "CUDA error: no kernel image is available for execution on the device",
        "CUDA error: an illegal memory access was encountered",
        "CUDA error: out of memory",
        "CUDA error: CUDA-capable device(s) is/are busy or unavailable",
        "CUDA error: all CUDA-capable devices are busy or unavailable",
        "CUDA error: hardware stack error",
        "CUDA error: unspecified launch failure",
        "No NVLink connection between GPU 0 and GPU 0, but it was asked for",
    ] {
        assert_eq!(failed(why), ("exception".into(), None), "{why}");
    }
    for why in [
        "CUDA error: uncorrectable ECC error encountered",
        "CUDA error: uncorrectable NVLink error detected during the execution",
        "CUDA error: system not yet initialized",
        "CUDA error: unknown error",
    ] {
        assert_eq!(failed(why), ("gpu-error".into(), Some("n2".into())), "{why}");
        let other = format!("[rank0]: RuntimeError: {why}\n[rank9]: RuntimeError: {why}\n");
        let other = blamed(&(other + &block(1, "n2", 9, 45)));
        assert_eq!(other, ("exception".into(), None), "on both nodes: {why}");
    }
}

#[test]
fn a_rank_that_noticed_that_its_peer_was_gone_is_not_blamed() {
    let watchdog = |rank: u64, why: &str| {
        format!(
            "[rank{rank}]:[E1212 11:37:23.484910490 ProcessGroupNCCL.cpp:2068] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] Process \
             group watchdog thread terminated with exception: {why}\n"
        )
    };
    let gone = "NCCL error: remote process exited or there was a network error, NCCL version 2.26.2\n\
                ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.\nLast error:\n\
                socketPollConnect: Connect to 10.1.0.2<42113> returned 113(No route to host) errno 115(Operation now in progress)\n\
                terminate called after throwing an instance of 'c10::DistBackendError'";
    let aborted = block(-6, "n1", 0, 45);
    assert_eq!(blamed(&(watchdog(0, gone) + &aborted)), ("exception".into(), None));
    let ecc = watchdog(0, "CUDA error: uncorrectable ECC error encountered");
    assert_eq!(blamed(&(ecc + &aborted)), ("gpu-error".into(), Some("n1".into())));
    let died = |code: i64| blamed(&block(code, "n1", 0, 45));
    for code in [-6, -15] {
        assert_eq!(died(code), ("exception".into(), None), "{code}");
    }
    // Rank 9's node, by the numbers of the ranks; rank 0 only lost it.
    let lost = "[rank0]: torch.distributed.DistBackendError: NCCL error in: x.cpp:1, remote process exited or there was a network error\n";
    let ecc = "[rank9]: torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered\n";
    assert_eq!(
        blamed(&format!("{lost}{ecc}{}", block(1, "n1", 0, 45))),
        ("gpu-error".into(), Some("n2".into()))
    );
    // Where numbers do not go by the order of nodes, they name none.
    assert_eq!(blamed(&format!("{lost}{ecc}{}", block(1, "n2", 0, 45))), ("gpu-error".into(), None));
    assert_eq!(blamed(&format!("{lost}{}", block(-9, "n2", 9, 45))), ("rank-died".into(), Some("n2".into())));
    // Of two nodes at the same time, the one that only aborted gives way, and else none is named.
    for (code, node) in [(-6, Some("n2".to_owned())), (-9, None)] {
        let (a, b) = (block(code, "n1", 0, 45), block(-9, "n2", 9, 45));
        assert_eq!(blamed(&format!("{a}{b}")), ("rank-died".into(), node.clone()), "{code}");
        assert_eq!(blamed(&format!("{b}{a}")), ("rank-died".into(), node), "{code}");
    }
    for code in [-7, -9, -11] {
        assert_eq!(died(code), ("rank-died".into(), Some("n1".into())), "{code}");
    }
}

#[test]
fn failures_are_read_behind_labels_time_stamps_and_colours() {
    let raised = "Traceback (most recent call last):\n  File \"train.py\", line 3\nKeyError: 'input_ids'\n";
    let cuda = "[rank9]: RuntimeError: CUDA error: uncorrectable ECC error encountered\n";
    let summary = "Root Cause (first observed failure):\n[0]:\n  host      : n2.local\n  rank      : 9 (local_rank: 1)\n  exitcode  : 1 (pid: 7)\n=====\n";
    let nan = "Rank 13: found NaN in local grad norm in backward pass before data-parallel communication collective. Device: 5, node: n2\n";
    let srun = "srun: error: n1: task 0: Exited with exit code 1\n";
    let labels = [
        "0: ",
        "[default1]:",
        "0: [default1]:",
        "[1,0]<stderr>:",
        "2025-11-20T10:00:01.5Z ",
        "[pod/worker-0/main] ",
        "worker-0 main ",
        "worker-0  | ",
        "Nov 20 10:00:01 n1 train[12]: ",
        "\u{1b}[36m",
    ];
    for label in labels {
        let failed = |text: &str| {
            let end = if label.starts_with('\u{1b}') { "\u{1b}[0m" } else { "" };
            let text: String = text.lines().map(|line| format!("{label}{line}{end}\n")).collect();
            let (cause, node, evidence) = failed_with(&(text + srun)).unwrap_or_else(|| panic!("{label:?}"));
            assert!(evidence.starts_with("raw/j/stderr:"), "{label:?}: {evidence}");
            (cause, node)
        };
        let expected = |cause: &str, node: Option<&str>| (cause.to_owned(), node.map(str::to_owned));
        assert_eq!(failed(raised), expected("exception", None), "{label:?}");
        assert_eq!(failed(&format!("{cuda}{summary}")), expected("gpu-error", Some("n2")), "{label:?}");
        assert_eq!(failed(nan), expected("nan", Some("n2")), "{label:?}");
    }
}

#[test]
fn nan_on_another_rank_than_the_reference_rank_is_no_pass() {
    let other = fsdp(10, |step| if step == 5 { f64::NAN } else { falls(step) }).replace("0: 2024", "3: 2024");
    let output = ran(FACTS, &(fsdp(40, falls) + &other), "");
    assert_eq!(value(&output, "train.steps"), Some(40.0));
    assert_eq!(value(&output, "train.loss_finite"), Some(0.0));
    assert!(output.data_wrong);
    let output = ran(FACTS, &fsdp(40, falls), &other);
    assert_eq!(value(&output, "train.loss_finite"), Some(0.0), "in another file");
}

#[test]
fn the_fsdp_sample_log_gives_step_times_throughput_and_a_falling_loss() {
    let output = ran(FACTS, &fsdp(40, falls), "");
    let about = |name: &str, expected: f64| {
        let value = value(&output, name).unwrap_or_else(|| panic!("no {name}: {:?}", output.findings));
        assert!((value - expected).abs() < 0.002 * expected.abs(), "{name}: {value}, not {expected}");
    };
    about("train.step_time", 16.0 / 16.01);
    about("train.step_time_median", 16.0 / 16.01);
    about("train.samples_per_s", 16.01);
    about("train.tokens_per_s", 16.01 * 4096.0);
    about("train.tflops_per_gpu", 16.01 * 4096.0 * 4.687e10 / 16.0 / 1e12);
    about("train.mfu", 16.01 * 4096.0 * 4.687e10 / 16.0 / 989e12);
    about("train.loss_slope", -0.05);
    assert_eq!(value(&output, "train.loss_falling"), Some(1.0));
    assert_eq!(value(&output, "train.loss_finite"), Some(1.0));
    assert_eq!(
        (value(&output, "train.steps"), value(&output, "train.steps_missing")),
        (Some(40.0), Some(0.0))
    );
    assert_eq!(value(&output, "train.grad_norm"), None, "missing values are not 0");
    let how = message(&output, "training-reckoned").expect("said");
    assert!(how.contains("step times from samples per second") && how.contains("model's shape"), "{how}");
}

#[test]
fn metrics_that_need_unstated_facts_are_not_given() {
    let output = ran(TrainingFacts::default(), &fsdp(40, falls), "");
    for name in
        ["train.step_time", "train.tokens_per_s", "train.tflops_per_gpu", "train.mfu", "train.steps_missing"]
    {
        assert_eq!(value(&output, name), None, "{name}");
    }
    assert!(value(&output, "train.samples_per_s").is_some());
}

#[test]
fn a_nan_loss_is_named_with_its_step() {
    let output = ran(FACTS, &fsdp(40, |step| if step == 31 { f64::NAN } else { falls(step) }), "");
    assert_eq!(value(&output, "train.loss_finite"), Some(0.0));
    assert!(
        message(&output, NOT_FINITE).expect("reported").contains("NaN at batch 31"),
        "{:?}",
        output.findings
    );
    assert_eq!(value(&output, "train.loss_falling"), None, "no slope over a gap");
    assert!(output.data_wrong);
}

#[test]
fn a_loss_that_is_not_printed_or_not_readable_is_no_pass() {
    let lines = |change: &dyn Fn(&str) -> String| {
        let text = megatron(400.0);
        let lines = text.lines().zip(1..);
        lines
            .map(|(line, at)| if at > 30 { change(line) } else { line.to_owned() } + "\n")
            .collect::<String>()
    };
    let without = |line: &str| {
        let (before, rest) = line.split_once("lm loss").expect("a loss");
        format!("{before}{}", rest.split_once("| ").expect("a field").1)
    };
    let output = ran(FACTS, &lines(&without), "");
    assert_eq!(value(&output, "train.loss_finite"), Some(0.0), "Megatron leaves out NaN");
    assert_eq!(value(&output, "train.loss_falling"), None);
    assert!(message(&output, NOT_FINITE).expect("reported").contains("no loss at iteration 31, first of 10"));
    let output = ran(FACTS, &lines(&|line| line.replace("lm loss: ", "lm loss: x")), "");
    assert_eq!((value(&output, "train.steps"), value(&output, "train.loss_finite")), (Some(30.0), None));
    assert_eq!(value(&output, "train.loss_falling"), None);
    let output = ran(FACTS, &lines(&str::to_owned), "");
    assert_eq!(value(&output, "train.loss_finite"), Some(1.0), "{:?}", output.findings);
}

#[test]
fn a_loss_that_stays_or_grows_does_not_fall() {
    for losses in
        [|_: u64| 5.0, |step: u64| 5.0 + 0.01 * step as f64, |step: u64| 5.0 + ((step * 7) % 5) as f64]
    {
        let output = ran(FACTS, &fsdp(40, losses), "");
        assert_eq!(value(&output, "train.loss_falling"), Some(0.0));
    }
    assert_eq!(value(&ran(FACTS, &fsdp(4, falls), ""), "train.loss_falling"), None, "four steps are too few");
}

#[test]
fn missing_steps_are_counted_and_the_last_step_is_reported() {
    let output = ran(FACTS, &fsdp(25, falls), "");
    assert_eq!(value(&output, "train.steps_missing"), Some(15.0));
    assert!(
        message(&output, ENDED_EARLY).expect("reported").contains("batch 24: 25 of 40"),
        "{:?}",
        output.findings
    );
}

#[test]
fn a_log_without_steps_gives_a_finding_and_no_number() {
    for text in ["", "hello\nworld\n", "\u{0}\u{1}\u{2}"] {
        let output = ran(FACTS, text, "");
        assert!(output.metrics.is_empty(), "{:?}", output.metrics);
        assert!(message(&output, "not-understood").is_some());
    }
}

fn megatron(tflops: f64) -> String {
    let line = |step: u64| {
        format!(
            " [2025-01-31 12:00:{:02}] iteration {step:8}/      40 | consumed samples: {:12} | elapsed time per iteration (ms): {:.1} | \
             throughput per GPU (TFLOP/s/GPU): {tflops:.1} | learning rate: 1.0E-04 | global batch size:    32 | lm loss: {:.6E} | \
             loss scale: 1.0 | grad norm: 1.250 | number of skipped iterations:   0 | number of nan iterations:   0 |\n",
            step % 60,
            step * 32,
            1000.0 + (step % 3) as f64,
            falls(step)
        )
    };
    (1..=40).map(line).collect()
}

#[test]
fn means_of_ten_steps_have_no_variation_of_steps() {
    let all = megatron(400.0);
    let tenth: String = all.split_inclusive('\n').skip(9).step_by(10).collect();
    let (of_all, of_means) = (ran(FACTS, &all, ""), ran(FACTS, &tenth, ""));
    assert!(value(&of_all, "train.step_time_cv").is_some());
    assert_eq!(value(&of_means, "train.step_time_cv"), None);
    for output in [of_all, of_means] {
        assert!(value(&output, "train.step_time").is_some_and(|it| (it - 1.001).abs() < 0.001));
        assert_eq!(value(&output, "train.steps"), Some(40.0));
    }
}

#[test]
fn rates_of_a_device_and_of_all_ranks_are_not_mixed_up() {
    let maxtext = |step: u64| {
        format!(
            "completed step: {step}, seconds: 2.000, TFLOP/s/device: 200.000, Tokens/s/device: 4096.000, total_weights: 65536, loss: \
             {:.3}\n",
            falls(step)
        )
    };
    let output = ran(FACTS, &(0..40).map(maxtext).collect::<String>(), "");
    let of = |name: &str| value(&output, name);
    assert_eq!((of("train.step_time"), of("train.tflops_per_gpu")), (Some(2.0), Some(200.0)));
    assert_eq!((of("train.tokens_per_s"), of("train.steps")), (Some(4096.0 * 16.0), Some(40.0)));
    let deepspeed = |step: u64| {
        format!(
            "[2023-11-07 01:55:23,714] [INFO] [timer.py:260:stop] epoch=0/micro_step={step}/global_step={step}, \
             RunningAvgSamplesPerSec=7.5, CurrSamplesPerSec=8.0, MemAllocated=4.32GB, MaxMemAllocated=38.49GB\n"
        )
    };
    let output = ran(FACTS, &(1..=40).map(deepspeed).collect::<String>(), "");
    let of = |name: &str| value(&output, name);
    assert_eq!((of("train.samples_per_s"), of("train.step_time")), (Some(8.0), Some(2.0)));
    assert_eq!((of("train.tokens_per_s"), of("train.loss_finite")), (Some(8.0 * 4096.0), None));
}

#[test]
fn a_log_whose_throughput_contradicts_its_times_is_not_comparable() {
    let text = megatron(400.0);
    assert_eq!(ran(FACTS, &text, "").not_comparable, None);
    let line = |step: u64| text.lines().nth(step as usize).expect("a line").to_owned() + "\n";
    let altered = |step: u64| {
        line(step).replace("(ms): 1001.0", "(ms): 1000.0").replace("(ms): 1002.0", "(ms): 1000.0")
    };
    let same: String = (0..40).map(altered).collect();
    let odd = altered(20).replace("400.0", "800.0");
    let output = ran(FACTS, &same.replace(&altered(20), &odd), "");
    let cause = output.not_comparable.as_ref().map(|it| it.cause.as_str());
    assert_eq!((cause, message(&output, "training-disagrees").is_some()), (Some("training-disagrees"), true));
}

#[test]
fn logged_values_win_and_contradictions_are_reported() {
    // 32 samples of 4096 tokens a second on 16 ranks.
    let own = 32.0 * 4096.0 * 4.687e10 / 16.0 / 1e12;
    let facts = || TrainingFacts { samples_per_rank: None, samples: Some(32), ..FACTS };
    let agrees = ran(facts(), &megatron(own), "");
    assert!((value(&agrees, "train.tflops_per_gpu").expect("reported") - own).abs() < 0.1);
    assert_eq!(
        (message(&agrees, "training-flops-differ"), message(&agrees, "training-batch-differs")),
        (None, None)
    );
    let differs = ran(TrainingFacts { samples: Some(64), ..facts() }, &megatron(2.0 * own), "");
    assert!((value(&differs, "train.tflops_per_gpu").expect("reported") - 2.0 * own).abs() < 0.1);
    assert!(message(&differs, "training-flops-differ").is_some());
    assert!(message(&differs, "training-batch-differs").expect("reported").contains("32 by the log"));
    assert_eq!(value(&differs, "train.grad_norm"), Some(1.25));
}

#[test]
fn an_mfu_above_1_is_not_given() {
    let output = ran(TrainingFacts { peak_tflops: Some(100.0), ..FACTS }, &fsdp(40, falls), "");
    assert_eq!((value(&output, "train.mfu"), value(&output, "train.tflops_per_gpu")), (None, None));
    assert!(message(&output, "training-impossible").is_some());
}

#[test]
fn nan_gradients_count_though_the_trainer_prints_a_loss_of_zero() {
    let line = |step: u64| {
        let (loss, norm) =
            if step < 30 { (falls(step).to_string(), "1.1") } else { ("0.0".to_owned(), "nan") };
        format!("{{'loss': {loss}, 'grad_norm': {norm}, 'learning_rate': 5e-05, 'epoch': 0.01}}\n")
    };
    let text: String = (0..40).map(line).collect();
    let end = "{'train_runtime': 20.0, 'train_samples_per_second': 32.0, 'train_steps_per_second': 2.0, 'train_loss': 3.1, 'epoch': 1.0}\n";
    let output = ran(FACTS, &(text + end), "");
    assert_eq!(value(&output, "train.loss_finite"), Some(0.0));
    assert!(message(&output, NOT_FINITE).expect("reported").contains("at step 31"), "{:?}", output.findings);
    assert_eq!(
        (value(&output, "train.step_time"), value(&output, "train.samples_per_s")),
        (Some(0.5), Some(32.0))
    );
    assert_eq!(value(&output, "train.step_time_cv"), None, "one mean has no CV");
}

#[test]
fn lines_of_the_trainer_that_stand_for_several_steps_are_no_missing_steps() {
    let lines: String = (1..=4)
        .map(|at| format!("{{'loss': {}.5, 'learning_rate': 5e-05, 'epoch': 0.{at}}}\n", 9 - at))
        .collect();
    let end = "{'train_runtime': 20.0, 'train_samples_per_second': 32.0, 'train_steps_per_second': 2.0, 'train_loss': 3.1, 'epoch': 1.0}\n";
    let output = ran(FACTS, &format!("{lines}{end}"), "");
    assert_eq!(
        (value(&output, "train.steps"), value(&output, "train.steps_missing")),
        (Some(40.0), Some(0.0))
    );
    assert_eq!(message(&output, ENDED_EARLY), None);
    let cut = ran(FACTS, &lines, "");
    assert_eq!((value(&cut, "train.steps"), value(&cut, "train.steps_missing")), (Some(4.0), Some(36.0)));
}

pub(super) fn waits(ranks: impl Iterator<Item = u64>) -> String {
    let line = |rank: u64| {
        format!(
            "[rank{rank}]:[E1122 01:02:03.123 ProcessGroupNCCL.cpp:629] [Rank {}] Watchdog caught collective operation timeout: \
             WorkNCCL(SeqNum=81, OpType=_ALLGATHER_BASE, NumelIn=7, NumelOut=56, Timeout(ms)=600000) ran for 600012 milliseconds \
             before timing out.\n",
            rank % 8
        )
    };
    ranks.map(line).collect()
}

#[test]
fn in_a_hang_the_silent_rank_is_named() {
    let output = ran(FACTS, &fsdp(20, falls), &waits((0..16).filter(|rank| *rank != 13)));
    let failure = output.failure.expect("a failure");
    assert_eq!((failure.cause.as_str(), failure.node.as_deref()), ("desync", Some("n2")));
    assert!(failure.evidence.contains("rank 13 never called it"), "{}", failure.evidence);
    // One complaint alone leaves all others silent.
    let output = ran(FACTS, &fsdp(20, falls), &waits(std::iter::once(3)));
    assert_eq!(
        output.failure.map(|failure| (failure.cause, failure.node)),
        Some(("collective-timeout".into(), None))
    );
}

#[test]
fn ranks_that_say_that_they_called_it_are_not_silent() {
    let hung = |text: String| {
        let failure = ran(FACTS, &fsdp(20, falls), &text).failure.expect("a failure");
        (failure.cause, failure.node, failure.evidence)
    };
    let asked = |rank: u64, called: u64| {
        format!(
            "[rank{rank}]:[E626 06:24:45.103881913 ProcessGroupNCCL.cpp:1682] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] Received a \
             dump signal due to a collective timeout from  rank 1 and we will try our best to dump the debug info. Last enqueued \
             NCCL work: {called}, last completed NCCL work: 80.This is most likely\n"
        )
    };
    let status = |rank: u64, called: u64| {
        format!(
            "[rank{rank}]:[E626 06:24:45.103881913 ProcessGroupNCCL.cpp:2241] [PG ID 0 PG GUID 0(default_pg) Rank {rank}]  failure \
             detected by watchdog at work sequence id: 81 PG status: last enqueued work: {called}, last completed work: 80\n"
        )
    };
    for line in [&asked as &dyn Fn(u64, u64) -> String, &status] {
        let others = |called: u64| (11..16).map(|rank| line(rank, called)).collect::<String>();
        let (cause, node, evidence) = hung(waits(0..11) + &others(84));
        assert_eq!((cause.as_str(), node), ("collective-timeout", None), "{evidence}");
        let (cause, node, evidence) = hung(waits(0..11) + &others(84) + &line(13, 80));
        assert_eq!((cause.as_str(), node), ("collective-timeout", None), "{evidence}");
        assert!(evidence.ends_with("; rank 13 had called 80, they wait in 81"), "{evidence}");
    }
    // Of a node that nothing was read of, silence says nothing.
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("stderr");
    std::fs::write(&path, waits(0..12)).expect("written");
    let shown = "raw/j/stderr".to_owned();
    let files = vec![InputFile { role: FileRole::Stderr, path, shown, node: None, part: None, rank: None }];
    let workload = Workload::Training { facts: FACTS, ranks: 16 };
    let blank = crate::recipe::testing::job(workload, &[], |_| "n1".into(), 0);
    let nodes = (1..=4).map(|node| format!("n{node}")).collect();
    let output = (SPEC.run)(&JobInput { files, nodes, exit_code: Some(1), ..blank });
    let failure = output.failure.expect("a failure");
    assert_eq!((failure.cause.as_str(), failure.node), ("collective-timeout", None));
    assert!(
        failure.evidence.ends_with("; ranks 12, 13, 14, 15 on n4 reported nothing"),
        "{}",
        failure.evidence
    );
}

#[test]
fn ranks_of_smaller_groups_are_those_of_the_job_behind_any_label() {
    let ray = |text: String| -> String {
        let line = |line: &str| format!("(Worker[rank={}] pid=7, ip=10.1.2.206) {line}\n", line.len());
        text.lines().map(line).collect()
    };
    let output = ran(FACTS, &fsdp(20, falls), &ray(waits(0..16)));
    let failure = output.failure.expect("a failure");
    assert_eq!((failure.cause.as_str(), failure.node), ("collective-timeout", None), "{}", failure.evidence);
    // Without the number in the job nothing says who is silent.
    let unnamed = waits(0..15).replace("[Rank ", "[PG ID 1 PG GUID 1(DP) Rank ");
    let unnamed: String =
        unnamed.lines().map(|line| format!("{}\n", line.split_once(":[").expect("a label").1)).collect();
    let output = ran(FACTS, &fsdp(20, falls), &unnamed.replace("E1122", "[E1122"));
    let failure = output.failure.expect("a failure");
    assert_eq!((failure.cause.as_str(), failure.node), ("collective-timeout", None), "{}", failure.evidence);
}

/// By lines of NeMo 2, which count from 0.
#[test]
fn lines_that_are_missing_between_two_are_no_interval_of_logging() {
    let step = |at: u64| {
        format!(
            "Training epoch 0, iteration {at}/39 | lr: 0.001 | global_batch_size: 16 | global_step: {at} | reduced_train_loss: {} \
             | train_step_timing in s: 0.5 | consumed_samples: {}\n",
            10.0 - 0.1 * at as f64,
            16 * (at + 1)
        )
    };
    for (lines, logged, missing) in [
        (vec![0_u64, 20], 21.0, 19.0),
        (vec![0, 1, 2], 3.0, 37.0),
        // Every tenth, and every twentieth, to the end.
        (vec![9, 19, 29, 39], 40.0, 0.0),
        (vec![19, 39], 40.0, 0.0),
        // One that goes on behind a checkpoint.
        (vec![100, 139], 40.0, 0.0),
    ] {
        let text: String = lines.iter().map(|at| step(*at)).collect();
        let output = ran(FACTS, &text, "");
        let seen = ["train.steps", "train.steps_missing"].map(|name| value(&output, name));
        assert_eq!(seen, [Some(logged), Some(missing)], "{lines:?}");
    }
}

#[test]
fn every_second_line_of_a_program_that_logs_each_step_is_missing() {
    let own = |step: u64| format!("Training epoch 0, iteration {step}/39 | train_step_timing in s: 1.0\n");
    let maxtext = |step: u64| format!("completed step: {step}, seconds: 1.000, loss: 11.689\n");
    let missing = |head: &str, line: &dyn Fn(u64) -> String, by: usize| {
        let text = (0..40).step_by(by).map(line).collect::<String>();
        value(&ran(FACTS, &(head.to_owned() + &text), ""), "train.steps_missing")
    };
    let head = "torch_ddp.py: PyTorch 2.9.1+cu129, nccl, 1000 weights\n";
    assert_eq!([missing(head, &own, 1), missing(head, &own, 2)], [Some(0.0), Some(20.0)]);
    assert_eq!([missing("", &maxtext, 1), missing("", &maxtext, 2)], [Some(0.0), Some(20.0)]);
    // Others may be set to log every second step.
    assert_eq!(missing("", &own, 2), Some(0.0));
}

#[test]
fn a_rank_that_reports_nan_is_named_with_its_gpu() {
    let said = "AssertionError: Rank 13: found NaN in local grad norm in backward pass before data-parallel communication \
                collective. Device: 5, node: n2.cluster.local\n";
    let output = ran(FACTS, &fsdp(20, falls), said);
    let finding = output.findings.iter().find(|finding| finding.code == NAN_RANK).expect("reported");
    assert_eq!((finding.node.as_deref(), finding.part.as_deref()), (Some("n2"), Some("gpu5")));
    // Where each rank sees one GPU alone, all of them report device 0.
    let alike = ran(FACTS, &fsdp(20, falls), &said.replace("Device: 5", "Device: 0"));
    let unnamed = alike.findings.iter().find(|finding| finding.code == NAN_RANK).expect("reported");
    assert_eq!((unnamed.node.as_deref(), unnamed.part.as_deref()), (Some("n2"), None));
    assert_eq!(value(&output, "train.loss_finite"), Some(0.0));
    assert!(Path::new(finding.file.as_deref().expect("a file")).ends_with("stderr"));
}

#[test]
fn a_run_that_was_restarted_counts_its_steps_once() {
    let text = fsdp(30, falls) + &fsdp(40, falls).split_inclusive('\n').skip(20).collect::<String>();
    let output = ran(FACTS, &text, "");
    assert_eq!((value(&output, "train.steps"), value(&output, "train.restarts")), (Some(40.0), Some(1.0)));
}

/// The lines of two ranks, one after the other, step by step.
fn together(first: &str, second: &str) -> String {
    first.lines().zip(second.lines()).map(|(a, b)| format!("{a}\n{b}\n")).collect()
}

#[test]
fn the_slowest_rank_is_judged_whatever_its_label_and_the_order_of_lines() {
    let quick = fsdp(40, falls);
    let slow = quick.replace("Speed: 16.0", "Speed: 8.0");
    let bare = |text: &str| text.replace("0: 2024", "2024");
    let other = |text: &str| text.replace("0: 2024", "1: 2024");
    let table = [
        ("no labels, slow first", together(&bare(&slow), &bare(&quick)), String::new()),
        ("no labels, slow last", together(&bare(&quick), &bare(&slow)), String::new()),
        ("rank 0 slow", together(&slow, &other(&quick)), String::new()),
        ("rank 1 slow", together(&quick, &other(&slow)), String::new()),
        ("in another file", quick.clone(), other(&slow)),
        ("in the first file", other(&slow), quick.clone()),
    ];
    for (what, stdout, stderr) in table {
        let output = ran(FACTS, &stdout, &stderr);
        let speed = value(&output, "train.samples_per_s").unwrap_or_default();
        assert!((speed - 8.01).abs() < 0.02, "{what}: {speed}");
        assert_eq!(value(&output, "train.steps"), Some(40.0), "{what}");
        assert!(message(&output, "training-ranks-disagree").is_some(), "{what}: {:?}", output.findings);
    }
    let equal = ran(FACTS, &together(&quick, &other(&quick)), "");
    assert_eq!(message(&equal, "training-ranks-disagree"), None);
}

#[test]
fn messages() {
    let other = |text: &str| text.replace("0: 2024", "1: 2024");
    let slow = fsdp(40, falls).replace("Speed: 16.0", "Speed: 8.0");
    let nan = "AssertionError: Rank 13: found NaN in local grad norm in backward pass. Device: 5, node: n2\n";
    let sixty_four = TrainingFacts { samples_per_rank: None, samples: Some(64), ..FACTS };
    let zero = "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 5e-05, 'epoch': 0.01}\n".repeat(4);
    let end = "{'train_runtime': 20.0, 'train_samples_per_second': 32.0, 'train_steps_per_second': 2.0, 'train_loss': 3.1, 'epoch': 1.0}\n";
    let outputs = [
        ran(FACTS, &fsdp(25, falls), ""),
        ran(FACTS, "hello\nworld\n", ""),
        ran(TrainingFacts { peak_tflops: Some(100.0), ..FACTS }, &fsdp(40, falls), ""),
        ran(sixty_four, &megatron(400.0), ""),
        ran(FACTS, &(zero + end), ""),
        ran(FACTS, &together(&fsdp(40, falls), &other(&slow)), ""),
        ran(FACTS, &fsdp(40, falls), &waits((0..16).filter(|rank| *rank != 13))),
        ran(FACTS, &fsdp(40, falls), &waits(std::iter::once(3))),
        ran(FACTS, &fsdp(40, falls), nan),
        windowed((38, 43), FACTS, &fsdp(40, falls)),
    ];
    insta::assert_snapshot!(crate::recipe::testing::messages(&outputs));
}
