//! Logs of trainings as programs write them, whole and broken.

mod broken;
mod programs;

use super::*;
use proptest::prelude::*;

fn log(text: &str) -> TrainingLog {
    read(text.as_bytes()).expect("a reader in memory")
}

fn only(text: &str) -> StepLine {
    let log = log(text);
    assert_eq!((log.series.len(), log.garbled), (1, 0), "{log:?}");
    assert_eq!(log.series[0].steps.len(), 1, "{log:?}");
    log.series[0].steps[0].clone()
}

fn codes(log: &TrainingLog) -> Vec<&str> {
    log.findings.iter().map(|finding| finding.code.as_str()).collect()
}

const MEGATRON: &str = "[2025-12-19 10:49:15] iteration        7/     100 | consumed samples:          128 | elapsed time per \
                        iteration (ms): 20289.1 | throughput per GPU (TFLOP/s/GPU): 812.5 | learning rate: 3.0E-05 | global \
                        batch size:   128 | lm loss: 1.25E+01 | loss scale: 1.0 | grad norm: 10.275 | number of skipped \
                        iterations:   2 | number of nan iterations:   0 |\n";
const NEMO_2: &str = "0: Training epoch 0, iteration 45/99 | lr: 1.2e-05 | global_batch_size: 512 | global_step: 45 | \
                      reduced_train_loss: 11.03 | train_step_timing in s: 46.84 | consumed_samples: 23552 | TFLOPS_per_GPU: 401.5\n";
const NEMO_1: &str = "Epoch 0: :  47%|████▋     | 7/15 [06:19<07:13, reduced_train_loss=11.50, global_step=5.000, \
                      consumed_samples=12288.0, train_step_timing in s=49.50]";
const LIGHTNING: &str = "Epoch 1:  10%|█         | 10/100 [00:05<00:45,  2.00it/s, v_num=0, train_loss=0.5]";
const FSDP: &str = "3: 2025-04-07 22:06:25 I [train.py:103] Epoch 1 Batch 5 Steps 9 Loss: 10.02562, Speed: 16.59 \
                    samples/sec, lr: 0.000038\n";
const TORCHTITAN: &str = "[rank2]:\x1b[32m[titan] 2025-03-01 10:00:00,123 - root - INFO - \x1b[39mstep: 10  loss:  7.1235  \
                          grad_norm:  1.2  memory: 9.74GiB(10.25%)  tps: 6,423  tflops: 23.40  mfu: 35.58%\n";
const AUTOMODEL: &str = "0: 2025-09-01 07:13:44 | INFO | root | step 4 | epoch 0 | loss 9.6514 | grad_norm 2.2812 | lr 6.31e-05 | \
                         mem 38.63 GiB | tps 144882.21(72441.11/gpu) | num_label_tokens 524288\n";
const TRAINER: &str = " 10%|█         | 50/500 [01:23<12:34,  1.68s/it]\n{'loss': 2.345, 'grad_norm': 1.25, \
                       'learning_rate': 5e-05, 'epoch': 0.12}\n";

#[test]
fn each_program_s_line_gives_what_it_reports_and_nothing_else() {
    let step = only(MEGATRON);
    assert_eq!((step.iteration, step.of, step.epoch, step.global_batch), (7, Some(100), None, Some(128)));
    assert_eq!(
        (step.seconds, step.tflops_per_gpu, step.loss),
        (Some(20289.1 / 1000.0), Some(812.5), Some(12.5))
    );
    assert_eq!((step.grad_norm, step.learning_rate), (Some(10.275), Some(3e-5)));
    assert_eq!((step.skipped, step.nan, step.samples_per_s), (Some(2), Some(0), None));
    let step = only(NEMO_2);
    assert_eq!((step.epoch, step.iteration, step.of, step.seconds), (Some(0), 45, Some(99), Some(46.84)));
    assert_eq!(
        (step.tflops_per_gpu, step.loss, step.learning_rate),
        (Some(401.5), Some(11.03), Some(1.2e-5))
    );
    let step = only(NEMO_1);
    assert_eq!(
        (step.iteration, step.seconds, step.is_running_mean, step.loss),
        (7, Some(49.5), false, Some(11.5))
    );
    let step = only(LIGHTNING);
    assert_eq!((step.epoch, step.iteration, step.seconds), (Some(1), 10, Some(0.5)));
    assert!(step.is_running_mean);
    let step = only(FSDP);
    assert_eq!((step.epoch, step.iteration, step.samples_per_s), (Some(1), 5, Some(16.59)));
    assert_eq!((step.seconds, step.loss, step.moment_ms), (None, Some(10.02562), Some(1_744_063_585_000)));
    let step = only(TORCHTITAN);
    assert_eq!((step.iteration, step.tokens_per_gpu_s, step.mfu_percent), (10, Some(6423.0), Some(35.58)));
    assert_eq!(
        (step.loss, step.tflops_per_gpu, step.moment_ms),
        (Some(7.1235), Some(23.4), Some(1_740_823_200_123))
    );
    let step = only(TRAINER);
    assert_eq!((step.iteration, step.of, step.seconds), (50, Some(500), Some(1.68)));
    assert_eq!((step.loss, step.grad_norm, step.learning_rate), (Some(2.345), Some(1.25), Some(5e-5)));
}

#[test]
fn automodel_s_tokens_are_those_of_one_gpu_and_its_validation_is_no_step() {
    let step = only(AUTOMODEL);
    assert_eq!((step.iteration, step.epoch, step.of, step.seconds), (4, None, None, None));
    assert_eq!((step.tokens_per_gpu_s, step.loss), (Some(72441.11), Some(9.6514)));
    let moment_ms = Some(1_756_710_824_000);
    assert_eq!(
        (step.grad_norm, step.learning_rate, step.moment_ms),
        (Some(2.2812), Some(6.31e-5), moment_ms)
    );
    let val = "2025-09-01 07:13:44 | INFO | root | [val] name \"default\" | step 4 | epoch 0 | loss 1.0574 | lr 8.45e-05 | \
               num_label_tokens 5\n";
    assert_eq!(log(val).of_steps, 0);
    let whole = AUTOMODEL.trim_end();
    for at in [" | tps", "44882.21", "72441", "/gpu", "loss 9", "epoch "] {
        let cut = format!("{}\n", &whole[..whole.find(at).expect("there") + at.len()]);
        assert_eq!((log(&cut).of_steps, log(&cut).garbled), (1, 1), "cut behind {at}");
    }
    let glued = format!("{whole} {AUTOMODEL}");
    assert_eq!((log(&glued).of_steps, log(&glued).garbled), (1, 1), "{glued}");
    // Over two epochs, of a rank that a launcher names, in one series.
    let next = AUTOMODEL.replace("step 4 | epoch 0", "step 5 | epoch 1");
    let both = log(&format!("{AUTOMODEL}{next}").replace("0: ", "worker-0: "));
    assert_eq!(
        (both.series.len(), both.series[0].who.as_str(), both.series[0].steps.len()),
        (1, "worker-0", 2)
    );
}

#[test]
fn a_figure_of_primus_is_the_step_s_own_and_not_the_mean_behind_it() {
    let both = |ms: &str| {
        let own =
            "throughput per GPU (TFLOP/s/GPU): 100.5/34.7 | tokens per GPU (tokens/s/GPU): 2825.0/975.5";
        MEGATRON.replace("20289.1", ms).replace("throughput per GPU (TFLOP/s/GPU): 812.5", own)
    };
    let step = only(&both("92809.9/268751.1"));
    let figures = (step.seconds, step.tflops_per_gpu, step.tokens_per_gpu_s);
    assert_eq!(figures, (Some(92809.9 / 1000.0), Some(100.5), Some(2825.0)));
    for garbled in ["92809.9/", "/268751.1", "1/2/3", "92809.9/x"] {
        assert_eq!(log(&both(garbled)).garbled, 1, "{garbled}");
    }
}

#[test]
fn whose_line_it_is_keeps_ranks_apart() {
    let two = format!("0: {0}1: {0}", MEGATRON);
    let log = log(&two);
    let who: Vec<&str> = log.series.iter().map(|series| series.who.as_str()).collect();
    assert_eq!((who, log.series[0].dialect), (vec!["0", "1"], Dialect::Megatron));
}

#[test]
fn what_bridge_says_before_a_line_belongs_to_it() {
    let text = MEGATRON.replace(" throughput per GPU (TFLOP/s/GPU): 812.5 |", "");
    let text = format!("Step Time : 20.29s GPU utilization: 514.0MODEL_TFLOP/s/GPU\n{text}");
    assert_eq!(only(&text).tflops_per_gpu, Some(514.0));
}

#[test]
fn a_bar_that_is_drawn_again_is_one_step_and_another_is_none() {
    let text = "Epoch 0:   0%|    | 0/3 [00:00<?, ?it/s]\rEpoch 0:  33%|3   | 1/3 [00:01<00:02,  1.00it/s, loss=3]\rEpoch 0:  \
                33%|3   | 1/3 [00:01<00:02,  1.00it/s, loss=2]\rEpoch 0:  67%|6   | 2/3 [00:02<00:01,  1.00it/s, loss=1]\n";
    let read = log(text);
    let steps: Vec<(u64, Option<f64>)> =
        read.series[0].steps.iter().map(|step| (step.iteration, step.loss)).collect();
    assert_eq!(steps, [(1, Some(2.0)), (2, Some(1.0))]);
    for other in [
        "Map: 100%|####| 500/500 [00:01<00:00, 400.00it/s]\n",
        "Validation DataLoader 0: : 51it [00:20,  2.53it/s]\n",
    ] {
        assert_eq!(log(other).of_steps, 0, "{other}");
    }
    let named = format!(
        "Downloading: 100%|####| 7/7 [00:01<00:00, 4.00it/s]\n{}",
        TRAINER.lines().nth(1).unwrap_or("")
    );
    assert_eq!(log(&format!("{named}\n")).series[0].steps[0].iteration, 1, "no bar of the trainer's");
}

fn megatron(iteration: u64, ms: &str, loss: &str) -> String {
    format!(
        " iteration {iteration:8}/     100 | elapsed time per iteration (ms): {ms} | lm loss: {loss} | number of nan iterations:   0 |\n"
    )
}

fn run(iterations: impl IntoIterator<Item = u64>) -> String {
    iterations.into_iter().map(|iteration| megatron(iteration, "1000.0", "2.5")).collect()
}

#[test]
fn a_restart_repeats_steps_and_each_counts_once() {
    let log = log(&format!("{}{}", run(1..=10), run(6..=12)));
    assert_eq!(log.series.len(), 1);
    let series = &log.series[0];
    assert_eq!(
        series.steps.iter().map(|step| step.iteration).collect::<Vec<_>>(),
        (1..=12).collect::<Vec<_>>()
    );
    assert_eq!(series.restarts, [Restart { line: 11, from: 10, to: 6, repeated: 5 }]);
    assert_eq!(codes(&log), ["training-restart"]);
}

#[test]
fn several_jobs_in_one_file_are_runs_of_their_own() {
    let log = log(&format!("{}{}", run(1..=3), run(1..=4)));
    let steps: Vec<(u32, usize)> = log.series.iter().map(|series| (series.run, series.steps.len())).collect();
    assert_eq!(steps, [(1, 3), (2, 4)]);
    assert_eq!(codes(&log), ["training-begins-anew"]);
}

#[test]
fn a_run_of_another_length_is_another_run() {
    let log = log(&format!("{}{}", run(1..=3), run(7..=9).replace("/     100", "/     200")));
    let steps: Vec<(u32, usize)> = log.series.iter().map(|series| (series.run, series.steps.len())).collect();
    assert_eq!((steps, codes(&log)), (vec![(1, 3), (2, 3)], vec!["training-begins-anew"]));
}

#[test]
fn unlabelled_ranks_are_copies_even_if_one_is_late() {
    let text = [1, 1, 2, 2, 1, 2, 3, 3, 3].map(|at| megatron(at, "1000.0", "2.5")).concat();
    let log = log(&text);
    assert_eq!(log.series.len(), 1, "{:?}", log.findings);
    let copies: Vec<(u64, u64)> =
        log.series[0].steps.iter().map(|step| (step.iteration, step.copies)).collect();
    assert_eq!(copies, [(1, 2), (2, 2), (3, 2)]);
}

#[test]
fn two_meanings_of_a_step_in_one_file_stand_apart() {
    let log = log(&format!("{}{NEMO_1}\n", run(1..=3)));
    assert_eq!((log.series.len(), codes(&log)), (2, vec!["training-two-meanings"]));
}

#[test]
fn a_loss_that_is_no_number_is_named_with_its_step() {
    let text =
        [megatron(1, "1000.0", "2.5"), megatron(2, "1000.0", "nan"), megatron(3, "1000.0", "inf")].concat();
    let log = log(&text);
    assert_eq!(log.findings[0].message, "megatron: loss is NaN at iteration 2, first of 2");
    assert_eq!((codes(&log), log.findings[0].line), (vec!["training-loss-not-finite"], Some(2)));
    let nan = MEGATRON.replace("nan iterations:   0", "nan iterations:   3");
    assert_eq!(codes(&super::tests::log(&nan)), ["training-nan-iterations"]);
}

#[test]
fn a_loss_that_is_not_logged_any_more_is_named_with_its_step() {
    let without = |at: u64| megatron(at, "1000.0", "2.5").replace(" lm loss: 2.5 |", "");
    let skipped = |at: u64| without(at).trim_end().to_owned() + " number of skipped iterations: 1 |\n";
    let read = log(&(run(1..=5) + &(6..=12).map(without).collect::<String>()));
    assert_eq!((codes(&read), read.findings[0].line), (vec!["training-loss-not-finite"], Some(6)));
    let why = "megatron: no loss at iteration 6, first of 7: it leaves out a loss that is NaN";
    assert_eq!(read.findings[0].message, why);
    // Before the first loss, and where a line's only step was skipped, there is none.
    assert_eq!(codes(&log(&(without(1) + &run(2..=5) + &skipped(6) + &run(7..=9)))), [""; 0]);
    // Lightning logs it every so often, and a figure of it may be due.
    let bar =
        |at: u64, loss: &str| format!("Epoch 0:  1%|1| {at}/40 [06:19<07:13, 2.0it/s, v_num=1{loss}]\n");
    let every = |steps: u64, until: u64| {
        let loss = |at: u64| if at.is_multiple_of(steps) && at <= until { ", train_loss=0.5" } else { "" };
        log(&(1..=38).map(|at| bar(at, loss(at))).collect::<String>())
    };
    assert_eq!(codes(&every(5, 38)), [""; 0]);
    let read = every(5, 20);
    assert_eq!(codes(&read), ["training-loss-missing"]);
    assert_eq!(read.findings[0].message, "lightning: no loss at iteration 21, first of 18");
}

#[test]
fn nan_as_lightning_prints_it_is_a_loss_that_is_not_finite() {
    let read = log(&format!("{NEMO_1}\n").replace("loss=11.50", "loss=nan.0"));
    assert_eq!((read.garbled, codes(&read)), (0, vec!["training-loss-not-finite"]));
}

#[test]
fn a_gradient_norm_that_is_no_number_is_named_with_its_step() {
    let norm = |at: u64, norm: &str| {
        megatron(at, "1000.0", "2.5").trim_end().to_owned() + &format!(" grad norm: {norm} |\n")
    };
    let log = log(&[norm(1, "0.5"), norm(2, "nan"), norm(3, "inf")].concat());
    assert_eq!(codes(&log), ["training-grad-not-finite"]);
    assert_eq!(log.findings[0].message, "megatron: gradient norm is NaN at iteration 2, first of 2");
}

#[test]
fn lines_of_which_all_steps_were_skipped_are_named() {
    let line = |at: u64, skipped: u64| {
        megatron(at, "1000.0", "2.5").trim_end().to_owned()
            + &format!(" number of skipped iterations: {skipped} |\n")
    };
    let text =
        |lines: &[(u64, u64)]| lines.iter().map(|(at, skipped)| line(*at, *skipped)).collect::<String>();
    let skipped = log(&text(&[(10, 10), (20, 8), (30, 0)]));
    assert_eq!(codes(&skipped), ["training-all-skipped"]);
    let why =
        "megatron: all 10 iterations up to 10 were skipped and changed nothing, the first of 1 such line";
    assert_eq!(skipped.findings[0].message, why);
    assert_eq!(codes(&log(&text(&[(1, 1), (2, 1), (3, 1), (4, 1), (5, 1)]))), ["training-all-skipped"]);
    // A scale of the loss is found so.
    assert_eq!(codes(&log(&text(&[(1, 1), (2, 1), (3, 0), (4, 0), (5, 0)]))), [""; 0]);
    assert_eq!(codes(&log(&text(&[(5010, 10), (5020, 0)]))), ["training-all-skipped"], "resumed");
}

const NEOX: &str = " samples/sec: 6.500 | iteration       34/   10000 | elapsed time per iteration (ms): 4923.1 | learning rate: 2.111E-06 | \
    approx flops per GPU: 101.5TFLOPS | lm_loss: 1.118665E+01 | number of skipped iterations:   0 | number of nan iterations:   0 |\n";

#[test]
fn lines_of_gpt_neox_are_read_with_what_stands_before_the_step() {
    for (text, tflops) in [(NEOX.to_owned(), 101.5), (NEOX.replace("101.5TFLOPS", "1.2PFLOPS"), 1200.0)] {
        let step = &log(&text).series[0].steps[0];
        assert_eq!(
            (step.iteration, step.samples_per_s, step.tflops_per_gpu, step.loss),
            (34, Some(6.5), Some(tflops), Some(11.18665))
        );
    }
    assert_eq!(codes(&log(&NEOX.replace("1.118665E+01", "NAN"))), ["training-loss-not-finite"]);
    let other = |loss: &str| {
        format!(
            "iteration 7/ 100 | elapsed time per iteration (ms): 9.5 | loss scale: 1.0 | total loss: {loss} |\n"
        )
    };
    assert_eq!(log(&other("2.5")).series[0].steps[0].loss, Some(2.5));
    assert_eq!(codes(&log(&other("nan"))), ["training-loss-not-finite"]);
}

#[test]
fn the_rate_before_a_step_of_megatron_bridge_is_read_in_both_forms() {
    for rate in ["58.5MODEL_TFLOP/s/GPU", "58.5TFLOP/s/GPU"] {
        let text = format!("Step Time : 14.26s GPU utilization: {rate}\n{}", megatron(1, "14260.0", "2.5"));
        assert_eq!(log(&text).series[0].steps[0].tflops_per_gpu, Some(58.5), "{rate}");
    }
}

#[test]
fn a_step_that_a_dictionary_names_itself_is_that_step() {
    let line = |at: u64| {
        format!(
            "{{'loss': 0.5, 'train_speed(iter/s)': 0.25, 'epoch': 0.64, 'global_step/max_steps': '{at}/176', 'percentage': '31%'}}\n"
        )
    };
    let log = log(&(line(56) + &line(57)));
    let steps =
        log.series[0].steps.iter().map(|step| (step.iteration, step.of, step.seconds, step.is_running_mean));
    assert!(steps.eq([(56, Some(176), Some(4.0), true), (57, Some(176), Some(4.0), true)]), "{log:?}");
}

#[test]
fn bars_of_one_line_do_not_mix_their_figures() {
    let bar = |at: u64, loss: &str, end: &str| {
        format!(
            "Epoch 0:   3%|#  | {at}/200 [02:19<76:15, 14.05s/it, loss=nan, reduced_train_loss={loss}{end}"
        )
    };
    let cut = log(&(bar(65, "3.5", ", ") + &bar(66, "4.5", "]\n")));
    let steps: Vec<_> = cut.series[0].steps.iter().map(|step| (step.iteration, step.loss)).collect();
    assert_eq!((steps, cut.garbled), (vec![(66, Some(4.5))], 1));
    let whole = log(&(bar(65, "3.5", "]") + &bar(66, "4.5", "]\n")));
    let steps: Vec<_> = whole.series[0].steps.iter().map(|step| (step.iteration, step.loss)).collect();
    assert_eq!(steps, [(65, Some(3.5)), (66, Some(4.5))]);
}

#[test]
fn numbers_of_lines_are_no_ranks_and_ranks_no_numbers_of_lines() {
    let bar = |at: u64| format!("  1%|  | {at}/1752 [00:29<1:22:01,  2.83s/it]");
    let text = format!(
        "[1743] {}\n[1744] \n[1745] {{'loss': 3.5, 'epoch': 0.01}}\n[1759] {}\n[1760] {{'loss': 2.5, 'epoch': 0.02}}\n",
        bar(10),
        bar(20)
    );
    let numbered = log(&text);
    let steps: Vec<_> =
        numbered.series.iter().map(|series| (series.who.as_str(), series.steps.len())).collect();
    assert_eq!((steps, numbered.series[0].steps[1].iteration), (vec![("", 2)], 20));
    let ranks: String = (0..2)
        .flat_map(|at| (0..4).map(move |rank| (at, rank)))
        .map(|(at, rank)| format!("[{rank}] {}", megatron(at + 1, "1000.0", "2.5")))
        .collect();
    assert_eq!(log(&ranks).series.len(), 4);
}

#[test]
fn why_a_training_failed_is_a_finding() {
    let timeout = "[E ProcessGroupNCCL.cpp:458] [Rank 3] Watchdog caught collective operation timeout: \
                   WorkNCCL(SeqNum=96, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1800001 milliseconds before timing out.\n";
    let bar = "Epoch 0:   6%|##  | 3/50 [00:43<09:17,  1.37it/s, loss=2.6]";
    let table = [
        (
            run(1..=3)
                + "[rank5]: Traceback (most recent call last):\n[rank5]: torch.OutOfMemoryError: CUDA out of memory. Tried to\n",
            "rank 5: torch.OutOfMemoryError: CUDA out of memory. Tried to",
        ),
        (
            run(1..=3)
                + "[default0]:[rank12]:[E817 17:40:34.227531918 ProcessGroupNCCL.cpp:1515] [PG 0 (default_pg) Rank 12] Process \
                   group watchdog thread terminated with exception: CUDA error: uncorrectable ECC error encountered\n",
            "rank 12: CUDA error: uncorrectable ECC error encountered",
        ),
        (run(1..=3) + timeout, "rank 3 waited in ALLREDUCE 96 until it timed out"),
        (format!("{bar}{timeout}"), "rank 3 waited in ALLREDUCE 96 until it timed out"),
        (
            run(1..=3)
                + "Root Cause (first observed failure):\n  rank      : 6 (local_rank: 6)\n  exitcode  : -11 (pid: 7)\n",
            "torchrun: rank 6 failed first, exit code -11",
        ),
        (
            run(1..=3)
                + "Root Cause (first observed failure):\n[0]:\n  time      : 2024-10-14_03:47:40\n  host      : p5-007\n  \
                   rank      : 59 (local_rank: 3)\n  exitcode  : -9 (pid: 1004)\n",
            "torchrun: rank 59 on p5-007 failed first, exit code -9",
        ),
        (
            run(1..=3)
                + "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n====\ntrain.py FAILED\n",
            "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
        ),
        (
            run(1..=3)
                + "ERROR:megatron.core.rerun_state_machine:Unexpected result nan on rank 3 at iteration #4\n",
            "ERROR:megatron.core.rerun_state_machine:Unexpected result nan on rank 3 at iteration #4",
        ),
    ];
    for (text, why) in table {
        let log = log(&text);
        assert_eq!(codes(&log), ["training-failure"], "{text}");
        assert!(log.findings[0].message.ends_with(why), "{:?}", log.findings);
    }
    let ended = "srun: error: n1: task 0: Exited with exit code 1\n";
    for line in [
        "srun: error: ip-10-1-2-3: task 3: Segmentation fault (core dumped)",
        "slurmstepd: error: *** JOB 12 ON ip-10-1-2-3 CANCELLED AT 2024-05-05T01:01:01 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***",
        "slurmstepd: error: Detected 1 oom_kill event in StepId=12.0. Some of the step tasks have been OOM Killed.",
        "slurmstepd: error: *** JOB 12 ON ip-10-1-2-3 CANCELLED AT 2024-05-05T01:01:01 DUE TO TIME LIMIT ***",
        "[rank0]:[F1212 01:02:03.4 ProcessGroupNCCL.cpp:1557] [PG 0 Rank 0] Terminating the process after attempting to dump debug info",
        "[2024-01-30 21:38:11,091] [ERROR] [launch.py:321:sigkill_handler] ['--local_rank=3'] exits with return code = -6",
        "E0517 08:24:03.805000 14 torch/distributed/elastic/multiprocessing/api.py:826] failed (exitcode: -6) local_rank: 0 (pid: 9)",
    ] {
        let read = log(&format!("{}{line}\n", run(1..=3)));
        assert_eq!(codes(&read), ["training-failure"], "{line}");
        let quoted = read.findings[0].message.as_str();
        assert!(line.contains(quoted) && quoted.len() > 60, "{quoted}");
        // Of the lines of Slurm the one that says why.
        let both = log(&format!("{}{ended}{line}\n", run(1..=3)));
        let is_slurm = line.starts_with('s');
        assert_eq!(codes(&both).len(), if is_slurm { 1 } else { 2 }, "{line}");
    }
    let caught = "Traceback (most recent call last):\n  File \"x\"\nKeyError: 'x'\n";
    assert_eq!(codes(&log(&(run(1..=3) + caught + &run(4..=6)))), [""; 0], "an exception that was caught");
}

#[test]
fn the_placeholder_of_ranks_without_a_loss_is_no_loss() {
    let text = "[rank0]:[titan] 2025-05-28 21:13:37,816 - root - INFO - step:  1  loss: -1.0000  memory: 36.90GiB(46.63%)  tps: 4\n";
    let log = log(text);
    assert_eq!((log.series[0].who.as_str(), log.series[0].steps[0].loss), ("0", None));
}

#[test]
fn a_clock_that_goes_back_is_named() {
    let later = MEGATRON.replace("7/", "8/").replace("10:49:15", "10:49:05");
    let log = log(&format!("{MEGATRON}{later}"));
    assert_eq!(codes(&log), ["training-clock-back"]);
    assert!(log.findings[0].message.contains("back by 10.0 s at iteration 8"), "{}", log.findings[0].message);
}

#[test]
fn the_first_step_and_then_those_of_round_numbers_are_no_gap() {
    for steps in [&[1, 10, 20][..], &[1, 10, 20, 30], &[0, 100, 200, 300, 350]] {
        assert_eq!(codes(&log(&run(steps.iter().copied()))), [""; 0], "{steps:?}");
    }
    assert_eq!(codes(&log(&run([1, 9, 10, 11]))), ["training-gap"]);
}

#[test]
fn steps_that_were_not_logged_are_a_gap() {
    let log = log(&run([10, 20, 30, 50, 60, 80]));
    assert_eq!(codes(&log), ["training-gap"]);
    let why = "megatron: 50 follows iteration 30, lines are usually 10 apart, 1 more gap: steps between not logged or not readable";
    assert_eq!(log.findings[0].message, why);
}

#[test]
fn a_line_of_a_step_that_cannot_be_read_counts_for_nothing_and_is_named() {
    let bad = [
        megatron(2, "****", "2.5"),
        megatron(3, "1000.0", "2.5x"),
        " iteration 4/ 100 | lm loss: 2.5 |\n".to_owned(),
    ];
    let log =
        log(&format!("{}{}{}", megatron(1, "1000.0", "2.5"), bad.concat(), megatron(5, "1000.0", "2.5")));
    assert_eq!((log.of_steps, log.garbled, log.series[0].steps.len()), (5, 3, 2));
    assert_eq!(codes(&log), ["training-garbled"; 3]);
    assert!(log.findings[0].message.ends_with("`elapsed time per iteration (ms)` is not a number: \"****\""));
}

#[test]
fn a_line_that_the_end_of_the_file_cut_counts_for_nothing() {
    let cut = FSDP.trim_end();
    let read = log(&format!("{FSDP}{}", cut.replace("Batch 5", "Batch 6")));
    assert_eq!((read.garbled, read.series[0].steps.len(), codes(&read)), (1, 1, vec!["training-garbled"]));
    // The character that closes a line shows that it is complete.
    assert_eq!(log(MEGATRON.trim_end()).garbled, 0);
}

#[test]
fn logs_without_steps_have_none() {
    for text in [
        "",
        "\n\n",
        "prose about an iteration 7/9\n",
        "\0\0\u{7f}ELF\n",
        "validation loss at iteration 10 | lm loss value: 2 |\n",
    ] {
        let log = log(text);
        assert_eq!((log.of_steps, log.series.len()), (0, 0), "{text:?}");
    }
    assert_eq!((log("").lines, log("a").lines, log("a\nb\n").lines), (0, 1, 2));
}

#[test]
fn the_means_are_as_the_script_prints_them() {
    let line = |iteration: u64, time: &str| {
        NEMO_2.replace("iteration 45/99", &format!("iteration {iteration}/99")).replace("46.84", time)
    };
    let text: String = (40..60).map(|at| line(at, &format!("{at}.5"))).collect();
    let expected = "Steps: 5 (iterations 45-49)\nAverage train_step_timing (s): 47.500000\nAverage TFLOPS_per_GPU:        \
                    401.500000\n";
    assert_eq!(mean_of_steps(text.as_bytes(), ITERATIONS).expect("read"), expected);
    let none = "No matching iterations found in range 45-49\n";
    assert_eq!(mean_of_steps(MEGATRON.as_bytes(), ITERATIONS).expect("read"), none);
    // Without the second value a line counts for neither, and every rank's line counts.
    let odd = format!("{}{}", line(45, "1"), line(45, "3").replace("TFLOPS_per_GPU", "TFLOPS"));
    assert!(mean_of_steps(odd.as_bytes(), ITERATIONS).expect("read").starts_with("Steps: 1 "));
    let twice = format!("{0}{0}", line(46, "2"));
    assert!(mean_of_steps(twice.as_bytes(), ITERATIONS).expect("read").starts_with("Steps: 2 "));
}

/// A step's own line in the words of each program.
fn rendered(dialect: Dialect, iteration: u64, loss: f64, other: f64) -> String {
    match dialect {
        Dialect::Megatron => format!(
            " iteration {iteration:8}/ 1000000 | elapsed time per iteration (ms): {other} | lm loss: {loss:E} |\n"
        ),
        Dialect::Nemo2 => format!(
            "Training epoch 3, iteration {iteration}/1000000 | reduced_train_loss: {loss} | train_step_timing in s: {other}\n"
        ),
        Dialect::Nemo1 => format!(
            "Epoch 3: : 1%|1| {iteration}/1000000 [06:19<07:13, reduced_train_loss={loss}, train_step_timing in s={other}]\n"
        ),
        Dialect::Lightning => {
            format!(
                "Epoch 3:  1%|1| {iteration}/1000000 [06:19<07:13, {other}s/it, v_num=1, train_loss={loss}]\n"
            )
        }
        Dialect::Fsdp => {
            format!(
                "2: Epoch 3 Batch {iteration} Steps 1 Loss: {loss}, Speed: {other} samples/sec, lr: 0.1\n"
            )
        }
        Dialect::Torchtitan => {
            format!("[rank0]: step: {iteration}  loss: {loss}  memory: 1GiB(1%)  tps: {other}  mfu: 1%\n")
        }
        Dialect::Automodel => format!(
            "x | INFO | root | step {iteration} | epoch 3 | loss {loss} | mem 1 GiB | tps {other}({other}/gpu) | num 1\n"
        ),
        Dialect::Trainer => format!(
            " 10%|█ | {iteration}/1000000 [01:23<12:34, {other}s/it]\n{{'loss': {loss}, 'learning_rate': 1e-5, 'epoch': 0.1}}\n"
        ),
        Dialect::Maxtext => format!(
            "completed step: {iteration}, seconds: {other}, TFLOP/s/device: 2.5, Tokens/s/device: 9, total_weights: 7, loss: {loss}\n"
        ),
        Dialect::Nanotron => format!(
            "iteration: {iteration} / 1000000 | consumed_tokens: 1.05M | elapsed_time_per_iteration_ms: {other} | lm_loss: {loss} | \
             lr: 0.1 | hardware_tflops_per_gpu: 101\n"
        ),
        Dialect::Picotron => {
            format!(
                "Step: {iteration}    | Loss: {loss} | Tokens/s:      9K | Tokens/s/GPU: {other} | Tokens:   7M\n"
            )
        }
        Dialect::Nanogpt => format!("iter {iteration}: loss {loss}, time {other}ms, mfu -100.00%\n"),
        Dialect::Llmc => {
            format!(
                "step {iteration}/1000000 | loss {loss} (+0.1z)| norm 1.5 | {other} ms | 1% bf16 MFU | 9 tok/s\n"
            )
        }
        Dialect::Nanochat => {
            format!(
                "step {iteration}/1000000 (1%) | loss: {loss} | dt: {other}ms | tok/sec: 9 | total time: 1m\n"
            )
        }
        Dialect::Torchtune => {
            format!("Step {iteration} | loss:{loss} lr:0.1 tokens_per_second_per_gpu:{other} peak:1 \n")
        }
        Dialect::TorchtuneBar => {
            format!("1|{iteration}|Loss: {loss}:   1%|1| {iteration}/1000000 [06:19<07:13, {other}s/it]\n")
        }
        Dialect::Timm => format!(
            "Train: 3 [{iteration:>4}/1000000 (  1%)]  Loss: {loss} (9.5)  Time: {other}s, 7/s  ({other}s, 7/s)  LR: 1e-6\n"
        ),
        Dialect::Composer => format!("[batch={iteration}/1000000]:\n\t Train loss/train/total: {loss}\n"),
        Dialect::Deepspeed => {
            format!(
                "epoch=0/micro_step=7/global_step={iteration}, RunningAvgSamplesPerSec=7, CurrSamplesPerSec={other}, x\n"
            )
        }
    }
}

/// Those whose steps are lines with a loss.
const DIALECTS: [Dialect; 14] = [
    Dialect::Megatron,
    Dialect::Nemo2,
    Dialect::Nemo1,
    Dialect::Lightning,
    Dialect::Fsdp,
    Dialect::Torchtitan,
    Dialect::Automodel,
    Dialect::Trainer,
    Dialect::Maxtext,
    Dialect::Nanotron,
    Dialect::Picotron,
    Dialect::Nanogpt,
    Dialect::Torchtune,
    Dialect::Timm,
];

proptest! {
    #[test]
    fn what_is_rendered_is_read_back(at in 0..DIALECTS.len(), iteration in 1..1_000_000u64, loss in 1e-3..1e5f64, other in 1e-3..1e6f64) {
        let dialect = DIALECTS[at];
        let step = only(&rendered(dialect, iteration, loss, other));
        let milliseconds = match dialect {
            Dialect::Megatron | Dialect::Nanotron | Dialect::Nanogpt => step.seconds.map(|seconds| seconds * 1000.0),
            Dialect::Fsdp => step.samples_per_s,
            Dialect::Torchtitan | Dialect::Automodel | Dialect::Picotron | Dialect::Torchtune => step.tokens_per_gpu_s,
            _ => step.seconds,
        };
        prop_assert_eq!((step.iteration, step.loss), (iteration, Some(loss)));
        let milliseconds = milliseconds.expect("a time");
        prop_assert!((milliseconds / other - 1.0).abs() < 1e-12, "{} for {}", milliseconds, other);
    }

    /// Whatever a byte is changed to, the steps of the other lines stand as they were, and a step of the line itself is
    /// one of its program.
    #[test]
    fn a_changed_byte_changes_its_own_line_alone(at in 0..DIALECTS.len(), place in 0..4096usize, byte: u8, cut: bool) {
        let dialect = DIALECTS[at];
        let lines: Vec<String> = (1..=3).map(|step| rendered(dialect, step * 10, 2.5, 1.25)).collect();
        let mut middle = lines[1].clone().into_bytes();
        let place = place % (middle.len() - 1);
        if cut { middle.truncate(place); middle.push(b'\n') } else { middle[place] = byte }
        let text = [lines[0].as_bytes(), &middle, lines[2].as_bytes()].concat();
        let log = read(text.as_slice()).expect("a reader in memory");
        let steps = || log.series.iter().flat_map(|series| &series.steps);
        let plain = |of: u64| steps().any(|step| step.iteration == of && step.loss == Some(2.5));
        prop_assert!(plain(10), "{:?}", log);
        // A restart to an earlier step, or another run, is what such a line may look like; the last line stands in any
        // case.
        prop_assert!(plain(30), "{:?}", log);
        prop_assert!(steps().count() as u64 + log.garbled <= 4, "{:?}", log);
    }
}

#[test]
fn a_step_reported_twice_with_other_times_counts_with_the_slowest_and_is_a_finding() {
    let pairs = |first: &str, second: &str| {
        (1..=3).map(|at| megatron(at, first, "2.5") + &megatron(at, second, "2.5")).collect::<String>()
    };
    for text in [pairs("5000.0", "9000.0"), pairs("9000.0", "5000.0")] {
        let log = log(&text);
        let times: Vec<_> = log.series[0].steps.iter().map(|step| (step.seconds, step.copies)).collect();
        assert_eq!(times, [(Some(9.0), 1); 3]);
        assert_eq!(codes(&log), ["training-ranks-disagree"]);
        let why = "megatron: two lines of iteration 1 differ: 9 and 5 s per step; 3 such iterations, the slowest line is used";
        assert_eq!(log.findings[0].message, why);
    }
    assert_eq!(codes(&log(&pairs("5000.0", "5000.0"))), [""; 0], "copies");
    assert_eq!(codes(&log(&pairs("5000.0", "5010.0"))), [""; 0], "clocks of two ranks");
    let slow = TORCHTITAN.replace("[rank2]:", "").replace("6,423", "3,211");
    for text in [
        format!("{}{slow}", TORCHTITAN.replace("[rank2]:", "")),
        format!("{slow}{}", TORCHTITAN.replace("[rank2]:", "")),
    ] {
        let log = log(&text);
        assert_eq!(log.series[0].steps[0].tokens_per_gpu_s, Some(3211.0));
        assert_eq!(codes(&log), ["training-ranks-disagree"]);
    }
}

#[test]
fn a_copy_whose_loss_is_no_number_is_not_lost() {
    let log = log(&(megatron(1, "1000.0", "2.5") + &megatron(1, "1000.0", "nan")));
    assert_eq!(codes(&log), ["training-loss-not-finite"]);
}

#[test]
fn a_labelled_rank_at_half_the_speed_is_named_whatever_the_order() {
    let of = |who: &str, ms: &str| {
        (1..=6).map(|at| format!("{who}: {}", megatron(at, ms, "2.5"))).collect::<String>()
    };
    for text in [of("0", "1000.0") + &of("1", "2000.0"), of("1", "2000.0") + &of("0", "1000.0")] {
        let log = log(&text);
        assert_eq!(codes(&log), ["training-ranks-disagree"]);
        let why = "megatron of rank 1 is 2.00 times as slow as megatron of rank 0 in the same iterations";
        assert_eq!(log.findings[0].message, why);
    }
    assert_eq!(codes(&log(&(of("0", "1000.0") + &of("1", "1003.0")))), [""; 0]);
}

#[test]
fn a_labelled_rank_with_few_of_the_steps_is_not_compared() {
    let of = |who: &str, steps: u64, ms: &str| {
        (1..=steps).map(|at| format!("{who}: {}", megatron(at, ms, "2.5"))).collect::<String>()
    };
    for text in [of("0", 6, "1000.0") + &of("1", 3, "2000.0"), of("1", 3, "2000.0") + &of("0", 6, "1000.0")] {
        assert_eq!(codes(&log(&text)), [""; 0], "three of six steps say nothing of the job");
    }
    assert_eq!(codes(&log(&(of("0", 6, "1000.0") + &of("1", 4, "2000.0")))), ["training-ranks-disagree"]);
}
