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
];

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
        ] {
            let log = read(format!("prose\n{line}\n{line}\n").as_bytes()).expect("read");
            assert_eq!((log.of_steps, log.series.len(), log.findings.len()), (0, 0, 0), "{line}");
            assert_eq!(log.refused.iter().collect::<Vec<_>>(), [(&reason, &2)], "{line}");
        }
    }
}
