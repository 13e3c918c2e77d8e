//! Lines of MaxText, nanotron, picotron, nanoGPT, torchtune, timm, Composer and DeepSpeed as these print them, behind what launchers
//! put before them; and the same lines torn, mixed and contradicting themselves.

use super::{codes, log, megatron, only};
use crate::training_log::{Dialect, StepLine, TrainingLog};

fn maxtext(step: u64, seconds: f64, tflops: f64) -> String {
    let tokens = 24_576.0 / seconds;
    format!(
        "completed step: {step}, seconds: {seconds:.3}, TFLOP/s/device: {tflops:.3}, Tokens/s/device: {tokens:.3}, total_weights: \
         196608, loss: 11.689\n"
    )
}

fn nanotron(step: u64, ms: &str, tflops: &str) -> String {
    let scale = if ms.ends_with(['K', 'k']) { 1e3 } else { 1.0 };
    let ms_value = ms.trim_end_matches(['K', 'k']).parse::<f64>().expect("a number") * scale;
    let thousands = 14_672.0 / ms_value;
    let digits = if thousands < 10.0 { 2 } else { 1 };
    let tokens = format!("{thousands:.digits$}K");
    format!(
        "\x1b[2;3m07/02/2024 21:51:23 [INFO|DP=0|PP=0|TP=0|ip-10-0-162-233]\x1b[0m: iteration: {step} / 20 | consumed_tokens: 1.05M | \
         elapsed_time_per_iteration_ms: {ms} | tokens_per_sec: 89.9K | tokens_per_sec_per_gpu: {tokens} | global_batch_size: 256 | \
         lm_loss: 11 | lr: 0.0001 | model_tflops_per_gpu: {tflops} | hardware_tflops_per_gpu: {tflops} | grad_norm: 25.4 | \
         cuda_memory_allocated: 2.45G\n"
    )
}

const PICOTRON: &str = "[rank 0] Step: 12    | Loss: 10.3125 | Global batch size:   16.4K | Tokens/s:  120.5K | Tokens/s/GPU:   15.06K | \
                        Tokens: 196.61K | MFU: 12.30% | Memory usage:  61.20GB\n";
const NANOGPT: &str = "iter 10: loss 3.1042, time 135.21ms, mfu -100.00%\n";
const TORCHTUNE: &str = "Step 10 | loss:1.2345 lr:2e-05 tokens_per_second_per_gpu:1234.5 peak_memory_active:18.25 grad_norm:0.75 \n";
const TIMM: &str = "Train: 2 [  50/1251 (  4%)]  Loss: 6.95 (6.97)  Time: 0.412s, 2485.44/s  (0.523s, 1957.93/s)  LR: 1.000e-06  \
                    Data: 0.012 (0.035)\n";

fn deepspeed(step: u64, rate: f64) -> String {
    format!(
        "[2023-11-07 01:55:23,714] [INFO] [timer.py:260:stop] epoch=0/micro_step={}/global_step={step}, \
         RunningAvgSamplesPerSec=25.0257, CurrSamplesPerSec={rate}, MemAllocated=4.32GB, MaxMemAllocated=38.49GB\n",
        4 * step
    )
}

fn composer(batch: u64, loss: &str) -> String {
    format!(
        "[batch={batch}/100]:\n\t Train time/batch: {}\n\t Train time/token: 38912\n\t Train loss/train/total: {loss}\n\t Train \
         metrics/train/LanguagePerplexity: 33397.8672\n\t Train throughput/batches_per_sec: 0.1250\n\t Train \
         throughput/samples_per_sec: 64.0000\n\t Train throughput/device/batches_per_sec: 0.0078\n\t Train \
         throughput/device/tokens_per_sec: 8192.5000\n\t Train lr-DecoupledAdamW/group0: 0.0001\n",
        batch - 1
    )
}

/// How many lines are of steps, how many of these cannot be read, and what the first finding says.
fn outcome(log: &TrainingLog) -> (u64, u64, &str) {
    (log.of_steps, log.garbled, log.findings.first().map_or("", |finding| finding.message.as_str()))
}

#[test]
fn figures_of_each_program_are_in_seconds_and_of_one_gpu() {
    let step = only(&maxtext(5, 1.25, 97.566));
    assert_eq!((step.iteration, step.of, step.seconds, step.is_running_mean), (5, None, Some(1.25), false));
    let rates = (step.tflops_per_gpu, step.tokens_per_gpu_s, step.loss);
    assert_eq!(rates, (Some(97.566), Some(19660.8), Some(11.689)));
    let step = only(&nanotron(12, "1.31K", "101"));
    assert_eq!((step.iteration, step.of, step.seconds), (12, Some(20), Some(1.31)));
    assert_eq!((step.tflops_per_gpu, step.tokens_per_gpu_s), (Some(101.0), Some(11_200.0)));
    assert_eq!((step.loss, step.grad_norm, step.global_batch), (Some(11.0), Some(25.4), Some(256)));
    let older = nanotron(12, "1310.5", "1.01E+02").replace("batch_size: 256", "batch_size: 1.02K");
    let step = only(&older);
    assert_eq!((step.seconds, step.tflops_per_gpu, step.global_batch), (Some(1.3105), Some(101.0), None));
    let step = only(PICOTRON);
    assert_eq!((step.iteration, step.loss, step.tokens_per_gpu_s), (12, Some(10.3125), Some(15_060.0)));
    assert_eq!((step.seconds, step.mfu_percent), (None, None), "the MFU is that of an H100");
    let step = only(NANOGPT);
    assert_eq!((step.iteration, step.seconds, step.loss), (10, Some(135.21 / 1000.0), Some(3.1042)));
    assert_eq!(step.mfu_percent, None, "that of an A100");
    let step = only(TORCHTUNE);
    let figures = (step.iteration, step.loss, step.tokens_per_gpu_s, step.grad_norm);
    assert_eq!(figures, (10, Some(1.2345), Some(1234.5), Some(0.75)));
    let step = only(TIMM);
    assert_eq!((step.epoch, step.iteration, step.of, step.loss), (Some(2), 50, Some(1251), Some(6.95)));
    assert_eq!((step.seconds, step.samples_per_s), (Some(0.412), Some(2485.44)));
    let step = only(&deepspeed(10, 25.5));
    assert_eq!((step.iteration, step.samples_per_s, step.loss, step.epoch), (10, Some(25.5), None, None));
    let step = only(&composer(20, "8.4213"));
    assert_eq!((step.line, step.iteration, step.of, step.epoch), (1, 20, Some(100), None));
    let figures = (step.seconds, step.samples_per_s, step.tokens_per_gpu_s, step.loss);
    assert_eq!(figures, (Some(8.0), Some(64.0), Some(8192.5), Some(8.4213)));
    assert!(step.is_running_mean);
}

#[test]
fn labels_times_and_colours_of_launchers_are_taken_off() {
    let lines = [
        maxtext(5, 1.25, 97.5),
        nanotron(12, "1.31K", "101"),
        PICOTRON.to_owned(),
        NANOGPT.to_owned(),
        TORCHTUNE.to_owned(),
        TIMM.to_owned(),
        deepspeed(10, 25.5),
    ];
    for line in lines {
        let bare = only(&line);
        for (label, who) in [
            ("3: ", "3"),
            ("[default3]:", "3"),
            ("[pod/worker-3/pytorch] 2026-01-31T10:00:00.5Z ", "worker-3/pytorch"),
            ("[1,3]<stdout>:", "3"),
            (
                "\x1b[36m(RayTrainWorker pid=1193, ip=10.0.0.2)\x1b[0m ",
                "RayTrainWorker pid=1193, ip=10.0.0.2",
            ),
        ] {
            let read = log(&format!("{label}{line}").replace('\n', "\r\n"));
            assert_eq!((read.of_steps, read.garbled, read.series.len()), (1, 0, 1), "{label}{line}");
            let step = StepLine { moment_ms: bare.moment_ms, ..read.series[0].steps[0].clone() };
            assert_eq!((read.series[0].who.contains(who), step), (true, bare.clone()), "{label}{line}");
        }
    }
}

#[test]
fn a_step_at_which_maxtext_s_profiler_starts_has_no_time_and_is_no_gap() {
    let profiled = "completed profiler activation/deactivation step: 3, total_weights: 196608, loss: 11.5, lm_loss: 11.5\n";
    let text =
        [maxtext(1, 5.5, 97.5), maxtext(2, 5.5, 97.5), profiled.to_owned(), maxtext(4, 5.5, 97.5)].concat();
    let log = log(&text);
    let times: Vec<_> = log.series[0].steps.iter().map(|step| (step.iteration, step.seconds)).collect();
    assert_eq!(times, [(1, Some(5.5)), (2, Some(5.5)), (3, None), (4, Some(5.5))]);
    assert_eq!(codes(&log), [""; 0]);
    for other in ["Completed eval step: 5, seconds: 1.2, running loss=2.5\n", "completed step: 5, done\n"] {
        assert_eq!(super::log(other).of_steps, 0, "{other}");
    }
}

#[test]
fn a_time_that_contradicts_the_rate_beside_it_is_a_finding() {
    // Calls are asynchronous: a first step that compiles, one that returns at once, and then the rest.
    let times = [44.923, 0.319, 5.658, 5.402, 5.669, 5.5, 5.6, 5.7, 5.65, 5.66];
    let honest = |at: usize| maxtext(at as u64, times[at], 764.7 / times[at]);
    let all: String = (0..10).map(honest).collect();
    assert_eq!(codes(&log(&all)), [""; 0]);
    let bad: String =
        (0..10).map(|at| if at == 6 { maxtext(6, 2.8, 764.7 / 5.6) } else { honest(at) }).collect();
    assert_eq!(codes(&log(&bad)), ["training-disagrees"]);
    let ms = ["11.7K", "1.32K", "1.31K", "1.33K", "1.3K", "1.35K"];
    let tflops = ["11.3", "100", "101", "99.5", "102", "98"];
    let line = |at: usize, tflops: &str| nanotron(at as u64 + 1, ms[at], tflops);
    let all: String = (0..6).map(|at| line(at, tflops[at])).collect();
    assert_eq!(codes(&log(&all)), [""; 0]);
    let bad: String = (0..6).map(|at| line(at, if at == 3 { "49.7" } else { tflops[at] })).collect();
    assert_eq!(codes(&log(&bad)), ["training-disagrees"]);
    // The rate of tokens alone is that of another time.
    let text = nanotron(3, "1.31K", "101").replace("per_gpu: 11.2K", "per_gpu: 22.4K");
    let bad = log(&(nanotron(1, "1.31K", "101")
        + &nanotron(2, "1.31K", "101")
        + &text
        + &nanotron(4, "1.32K", "100")));
    let why = "nanotron: 22400 tokens/s x 1.31 s at iteration 3 is 29344.";
    assert_eq!(codes(&bad), ["training-disagrees"]);
    assert!(bad.findings[0].message.starts_with(why), "{:?}", bad.findings);
    let other = honest(6).replace("Tokens/s/device: 4", "Tokens/s/device: 8");
    let bad: String = (0..10).map(|at| if at == 6 { other.clone() } else { honest(at) }).collect();
    assert_eq!(codes(&log(&bad)), ["training-disagrees"]);
    let bad = log(&TIMM.replace("0.412s, ", "0.206s, "));
    let why = "skipped a step line: time and samples per second are not of the same samples";
    assert_eq!(outcome(&bad), (1, 1, why));
}

#[test]
fn a_line_that_is_torn_or_holds_two_is_no_step() {
    let nano = nanotron(12, "1.31K", "101");
    for (line, at) in [
        (maxtext(5, 1.25, 97.5), ", total_weights"),
        (maxtext(5, 1.25, 97.5), "seconds: 1.2"),
        (nano.clone(), "elapsed_time_per_iteration_ms: 1"),
        (nano.clone(), "lm_loss: 1"),
        (nano, " | model_tflops_per_gpu: 10"),
        (PICOTRON.to_owned(), "Tokens/s/GPU:   15"),
        (NANOGPT.to_owned(), "time 135.2"),
        (TIMM.to_owned(), "Time: 0.412s, 2485"),
        (TIMM.to_owned(), "Loss: 6.9"),
        (deepspeed(10, 25.5), "CurrSamplesPerSec=25"),
    ] {
        let cut = &line[..line.find(at).expect("there") + at.len()];
        let read = log(&format!("{cut}\n"));
        assert_eq!((read.of_steps, read.garbled, read.series.len()), (1, 1, 0), "{cut}");
    }
    for line in [
        maxtext(5, 1.25, 97.5),
        nanotron(12, "1.31K", "101"),
        PICOTRON.to_owned(),
        NANOGPT.to_owned(),
        TORCHTUNE.to_owned(),
        TIMM.to_owned(),
        deepspeed(10, 25.5),
    ] {
        let two = format!("{} {line}", line.trim_end());
        assert_eq!(outcome(&log(&two)), (1, 1, "skipped a step line: two step lines in one"), "{two}");
    }
    for bad in [
        nanotron(12, "1.31k", "101"),
        NANOGPT.replace("135.21ms", "0.135s"),
        NANOGPT.replace("135.21", "****"),
        TIMM.replace("2485.44/s", "2485.44"),
        TORCHTUNE.replace("1234.5", "12k"),
        deepspeed(10, 25.5).replace("25.5", "fast"),
    ] {
        assert_eq!((log(&bad).of_steps, log(&bad).garbled), (1, 1), "{bad}");
    }
}

#[test]
fn a_line_every_so_many_steps_is_one_step_of_its_own() {
    let text: String = (0..5).map(|at| NANOGPT.replace("iter 10", &format!("iter {}", at * 10))).collect();
    let log = log(&text);
    let steps: Vec<u64> = log.series[0].steps.iter().map(|step| step.iteration).collect();
    assert_eq!((steps, codes(&log)), (vec![0, 10, 20, 30, 40], vec![]));
    assert_eq!(log.series[0].dialect.counts_from(), 0);
}

#[test]
fn deepspeed_s_timer_counts_where_nothing_else_logs_steps() {
    let timers: String = (1..=4).map(|at| deepspeed(at * 10, 25.5)).collect();
    let alone = log(&timers);
    assert_eq!((alone.series[0].dialect, alone.series[0].steps.len()), (Dialect::Deepspeed, 4));
    assert_eq!((alone.of_steps, codes(&alone)), (4, vec![]));
    let both: String = (1..=4).map(|at| deepspeed(at, 25.5) + &megatron(at, "1000.0", "2.5")).collect();
    let both = log(&both);
    assert_eq!((both.series.len(), both.series[0].dialect), (1, Dialect::Megatron));
    assert_eq!((both.of_steps, both.garbled, codes(&both)), (4, 0, vec![]));
    // Those before the first step and behind the last one count as little as one that is torn.
    let torn = format!("{timers}{}{}x\n", megatron(1, "1000.0", "2.5"), timers.replace(", Curr", ""));
    assert_eq!((log(&torn).of_steps, log(&torn).garbled, log(&torn).series.len()), (1, 0, 1));
}

#[test]
fn blocks_of_composer_end_where_the_next_begins_and_mix_with_no_other() {
    let eval = "[Eval batch=1/3] Eval on eval data:\n\t Eval metrics/eval/LanguageCrossEntropy: 10.4\n";
    let text = format!("{}{}{eval}{}", composer(1, "8.5"), composer(2, "8.25"), composer(3, "8.125"));
    let steps = |log: &TrainingLog| -> Vec<(u64, u64, Option<f64>)> {
        log.series
            .iter()
            .flat_map(|it| it.steps.iter().map(|step| (step.line, step.iteration, step.loss)))
            .collect()
    };
    let read = log(&text);
    assert_eq!(steps(&read), [(1, 1, Some(8.5)), (11, 2, Some(8.25)), (23, 3, Some(8.125))]);
    assert_eq!((read.of_steps, codes(&read)), (3, vec![]));
    // Two nodes, one line of each in turn.
    let two: String = (text.lines()).map(|line| format!("0: {line}\n1: {line}\n")).collect();
    let two = log(&two);
    let who: Vec<&str> = two.series.iter().map(|series| series.who.as_str()).collect();
    assert_eq!((who, two.of_steps, two.garbled), (vec!["0", "1"], 6, 0));
    // The same without labels: the figures of one block stand among those of the other.
    let mixed: String = text.lines().map(|line| format!("{line}\n{line}\n")).collect();
    assert_eq!((log(&mixed).of_steps, log(&mixed).garbled), (6, 6));
    let epochs = composer(7, "8.5").replace("[batch=7/100]:", "[epoch=2][batch=2/5]:");
    let step = only(&epochs);
    assert_eq!((step.epoch, step.iteration, step.of), (Some(2), 2, Some(5)));
    let tokens = composer(7, "8.5").replace("[batch=7/100]:", "[token=14336/100000]:");
    assert_eq!((only(&tokens).iteration, only(&tokens).of), (7, None));
}

#[test]
fn blocks_of_composer_that_are_torn_are_no_steps() {
    let whole = composer(20, "8.5");
    let cut = |at: &str| whole[..whole.find(at).expect("there") + at.len()].to_owned();
    for (text, why) in [
        (cut("loss/train/total: 8."), "the file ends within a block"),
        (cut("[batch=20/100]:\n"), "a block without loss and throughput"),
        (whole.replace("time/batch: 19", "time/batch: 29"), "block of batch 20 with the figures of batch 30"),
        (whole.replace("total: 8.5", "total: 8.x"), "`loss/train/total` is not a number: \"8.x\""),
        (
            whole.replace("[batch=20/100]:", "[token=1/2]:").replace("Train time/batch: 19", ""),
            "a block without the number of its batch",
        ),
    ] {
        assert_eq!(outcome(&log(&text)), (1, 1, format!("skipped a step line: {why}").as_str()), "{text}");
    }
    // Below three digits a rate gives no time.
    assert_eq!(only(&whole.replace("batches_per_sec: 0.1250", "batches_per_sec: 0.0027")).seconds, None);
}

#[test]
fn the_level_of_a_logger_is_no_rank() {
    for (level, other) in [("[INFO] ", "[WARNING] "), ("INFO: ", "ERROR: "), ("3: [INFO] ", "3: [DEBUG] ")] {
        let text: String = (1..=4)
            .map(|at| format!("{}{}", if at == 3 { other } else { level }, megatron(at, "1000.0", "2.5")))
            .collect();
        let log = log(&text);
        let who = if level.starts_with('3') { "3" } else { "" };
        assert_eq!((log.series.len(), log.series[0].who.as_str()), (1, who), "{level}");
        assert_eq!(codes(&log), [""; 0], "{level}");
    }
}

#[test]
fn a_validation_of_torchtitan_is_no_step_and_no_other_rank() {
    let step = "[titan] 2025-08-12 14:22:05,123 - root - INFO - step: 20  loss: 8.12  grad_norm: 2.4  memory: 40.1GiB(50.6%)  tps: \
                3,322  tflops: 190.32  mfu: 19.24%\n";
    let validation = "[titan] 2025-08-12 14:24:05,123 - root - INFO - validate step: 20  loss: 8.2  memory: 40.1GiB(50.6%)  tps: 1,000\n";
    let log = log(&format!("{step}{validation}"));
    assert_eq!((log.of_steps, log.findings.len()), (1, 0), "{log:?}");
    assert_eq!(log.series[0].steps[0].tokens_per_gpu_s, Some(3322.0));
}

#[test]
fn megatron_of_2019_prints_losses_without_a_colon() {
    let line = |at: u64, loss: &str| {
        format!(
            " iteration {at:8}/  320000 | elapsed time per iteration (ms): 567.3 | learning rate 1.500E-06 | lm loss {loss} | loss scale \
             65536.0 |\n"
        )
    };
    let step = only(&line(100, "1.044215E+01"));
    assert_eq!((step.iteration, step.of, step.seconds), (100, Some(320_000), Some(567.3 / 1000.0)));
    assert_eq!((step.loss, step.learning_rate), (Some(10.44215), Some(1.5e-6)));
    assert_eq!(codes(&log(&(line(100, "1.04E+01") + &line(200, "NAN")))), ["training-loss-not-finite"]);
    let whole = line(100, "1.044215E+01");
    let cut = format!("{}\n", &whole[..whole.find("215E").expect("there")]);
    assert_eq!(outcome(&log(&cut)), (1, 1, "skipped a step line: line ends within `lm loss`"));
}

#[test]
fn a_loss_of_experts_stands_for_no_loss_of_the_model_that_is_left_out() {
    let line = |at: u64, losses: &str| {
        format!(
            "[2026-01-16 07:32:24] iteration {at:8}/     100 | consumed samples:        10240 | elapsed time per iteration (ms): 15800.0 | \
             throughput per GPU (TFLOP/s/GPU): 490.0 | learning rate: 4.134000E-07 | global batch size:  2048 | {losses} | loss scale: 1.0 | \
             grad norm: 2.870 | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
        )
    };
    let own = "lm loss: 1.344240E+01 | ";
    let added = "seq_load_balancing_loss: 1.000203E+00 | z_loss: 2.5E-01 | mtp_1 loss: 7.925096E+00";
    assert_eq!(only(&line(5, &format!("{own}{added}"))).loss, Some(13.4424));
    assert_eq!(only(&line(5, added)).loss, None);
    let stopped = log(&(line(5, &format!("{own}{added}")) + &line(6, added)));
    assert_eq!(codes(&stopped), ["training-loss-not-finite"]);
    let nan = added.replace("1.000203E+00", "nan");
    assert_eq!(codes(&log(&line(5, &nan))), ["training-loss-not-finite"]);
}

#[test]
fn text_behind_a_line_of_torchtitan_is_none_of_its_fields() {
    let step = "[titan] 2025-08-12 14:22:05,123 - root - INFO - step: 20  loss: 8.12  grad_norm: 2.4  memory: 40.1GiB(50.6%)  tps: \
                3,322  tflops: 190.32  mfu: 19.24%";
    for behind in [" [repeated 3x across cluster]", " NCCL version 2.27.3+cuda12.9", " tps", "  "] {
        let read = only(&format!("{step}{behind}\n"));
        assert_eq!((read.tokens_per_gpu_s, read.mfu_percent), (Some(3322.0), Some(19.24)), "{behind}");
    }
    let two = format!("{step} {step}\n");
    assert_eq!(outcome(&log(&two)), (1, 1, "skipped a step line: two step lines in one"));
}
