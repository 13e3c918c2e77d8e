//! Lines of trainings that hold a time or a rate, and from which no step's follows with certainty: why.

/// What a form is called in messages, and the texts that all stand in its lines.
const FORMS: &[(&str, &[&str])] = &[
    ("events of MLPerf, which hold no step's time", &[":::MLLOG "]),
    ("rates of fairseq, which are means between lines", &["| train_inner | "]),
    (LITGPT, &["iter ", " step ", " | iter time: "]),
    // Of 2023, also those of lit-gpt, Lit-LLaMA and TinyLlama.
    (LITGPT, &["iter ", ": loss ", ", time: ", "ms"]),
    (LITGPT, &["iter ", ": loss ", ", iter time: ", "ms"]),
    ("bars of Levanter, which round the number of a step", &["Progress on:train ", "it rate:"]),
    ("older timers of DeepSpeed, which name no step", &["SamplesPerSec="]),
    ("timers of DeepSpeed, which name no step", &["time (ms) | ", "microstep: "]),
    ("means of DeepSpeed's pipelines between lines", &["steps: ", " iter time (s): "]),
    ("steps of OLMo, whose figures stand on lines of their own", &["throughput/device/"]),
    ("steps of verl, which hold more than a training", &["step:", " - ", "timing_s/step:"]),
    (OPENMMLAB, &["][", ", time: ", ", data_time: "]),
    (OPENMMLAB, &["][", "  time: ", "  data_time: "]),
    ("means of detectron2 over the last steps", &["d2.utils.events", " time: "]),
    ("times of open_clip, of which each line has the last one", &["Train Epoch: ", "Batch (t): "]),
    ("Rich's bars of Lightning, which have no time of a step", &["Epoch ", "it/s ", " • "]),
    ("means of modded-nanogpt since its start", &["train_time:", "step_avg:"]),
];

const OPENMMLAB: &str = "means of OpenMMLab's trainings between lines";

const LITGPT: &str = "iterations of LitGPT, which may be parts of a step";

/// Why a line that is none of a step is not read as one.
pub(super) fn reason(text: &str) -> Option<&'static str> {
    // Most lines hold none of their words.
    let is_one = |(_, words): &&(&str, &[&str])| words.iter().all(|word| text.contains(word));
    FORMS.iter().find(is_one).map(|(reason, _)| *reason)
}

#[cfg(test)]
mod tests {
    use super::super::read;

    #[test]
    fn lines_from_which_no_step_follows_are_counted_with_the_reason() {
        for (line, reason) in [
            (
                "0: :::MLLOG {\"namespace\": \"\", \"time_ms\": 1721026805975, \"event_type\": \"POINT_IN_TIME\", \"key\": \
                 \"tracked_stats\", \"value\": {\"throughput\": 1.95}, \"metadata\": {\"step\": 3072}}",
                "events of MLPerf, which hold no step's time",
            ),
            (
                "2021-01-12 14:35:05 | INFO | train_inner | {\"epoch\": 3, \"loss\": \"9.36\", \"wps\": \"14185.4\", \"ups\": \
                 \"0.5\", \"wpb\": \"28201.6\", \"num_updates\": \"300\"}",
                "rates of fairseq, which are means between lines",
            ),
            (
                "Epoch 1 | iter 64 step 2 | loss train: 3.101, val: n/a | iter time: 123.45 ms (step) remaining time: 0:01:02",
                "iterations of LitGPT, which may be parts of a step",
            ),
            (
                "iter 3 step 0: loss 2.1834, time: 1234.56ms",
                "iterations of LitGPT, which may be parts of a step",
            ),
            ("iter 3: loss 2.1834, time: 1234.56ms", "iterations of LitGPT, which may be parts of a step"),
            (
                "iter 31 step 4: loss 10.4123, iter time: 912.34ms (optimizer.step) remaining time: 12.3 hours. ",
                "iterations of LitGPT, which may be parts of a step",
            ),
            (
                "Progress on:train 1.20kit/10.0kit rate:1.1it/s remaining:2:15:00 elapsed:18:00 postfix:loss=3.2",
                "bars of Levanter, which round the number of a step",
            ),
            (
                "[2022-08-29 06:58:56,176] [INFO] [timer.py:198:stop] 0/20, RunningAvgSamplesPerSec=232.7, CurrSamplesPerSec=227.4, \
                 MemAllocated=0.36GB, MaxMemAllocated=15.06GB",
                "older timers of DeepSpeed, which name no step",
            ),
            (
                "[Rank 0] time (ms) | fwd_microstep: 10.05 | bwd_microstep: 20.13 | step_microstep: 4.01",
                "timers of DeepSpeed, which name no step",
            ),
            (
                "steps: 10 loss: 2.1234 iter time (s): 1.245 samples/sec: 25.7",
                "means of DeepSpeed's pipelines between lines",
            ),
            ("    throughput/device/TPS=14,813", "steps of OLMo, whose figures stand on lines of their own"),
            (
                "(TaskRunner pid=7) step:2 - actor/kl_loss:0.001 - timing_s/gen:74.020 - timing_s/step:96.551 - perf/throughput:5667.376",
                "steps of verl, which hold more than a training",
            ),
            (
                "2020-05-08 18:56:16,649 - mmdet - INFO - Epoch [1][2400/7517]\tlr: 0.00125, eta: 4:33:09, time: 0.595, data_time: \
                 0.032, memory: 6836, loss: 0.4890",
                "means of OpenMMLab's trainings between lines",
            ),
            (
                "04/21 21:03:53 - mmengine - INFO - Epoch(train) [1][10/90]  lr: 1.000e-02  eta: 0:00:25  time: 0.010  data_time: 0.000  \
                 memory: 0  loss: 11.4723",
                "means of OpenMMLab's trainings between lines",
            ),
            (
                "[05/08 18:56:16 d2.utils.events]:  eta: 4:33:09  iter: 19  total_loss: 5.2  time: 0.2341  data_time: 0.0123  lr: 1.9e-05",
                "means of detectron2 over the last steps",
            ),
            (
                "2023-06-29,15:44:40 | INFO | Train Epoch: 0 [ 64/109468 (0%)] Loss: 1.0672 (1.067) Data (t): 14.173 Batch (t): 18.240, \
                 1.75441/s LR: 0.000000",
                "times of open_clip, of which each line has the last one",
            ),
            (
                "Epoch 4/9  ━━━━━━━━━ 232/291 0:00:33 • 0:00:09 7.00it/s v_num: 0 loss: 0.398",
                "Rich's bars of Lightning, which have no time of a step",
            ),
            ("step:126/1750 train_time:12107ms step_avg:96.08ms", "means of modded-nanogpt since its start"),
        ] {
            let log = read(format!("prose\n{line}\n{line}\n").as_bytes()).expect("read");
            assert_eq!((log.of_steps, log.series.len(), log.findings.len()), (0, 0, 0), "{line}");
            assert_eq!(log.refused.iter().collect::<Vec<_>>(), [(&reason, &2)], "{line}");
        }
    }
}
