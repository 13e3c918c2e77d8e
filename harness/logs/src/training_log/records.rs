//! Steps as JSON, a line each: `trainer_log.jsonl` of LlamaFactory, and `logging.jsonl` of ms-swift. Both are the Trainer's.

use super::numbers::{digits, number};
use super::step::{Dialect, Garbled, Parsed, ReportedStep, StepLine};

const STEP: &str = "{\"current_steps\": ";
const OF_SWIFT: &str = "\"global_step/max_steps\": ";
/// LlamaFactory logs whole seconds: a shorter interval says too little of a step.
const LEAST_S: f64 = 20.0;

/// The last line of whoever wrote it: times are logged since the start.
#[derive(Debug, Default)]
pub(super) struct Records {
    last: Option<(String, u64, f64)>,
}

impl Records {
    /// Lines of evaluations and of the end have no loss, and are no steps.
    pub(super) fn parse(&mut self, who: &str, text: &str) -> Parsed {
        let text = text.trim();
        let is_swift = text.starts_with("{\"") && text.contains(OF_SWIFT);
        if !is_swift && !text.starts_with(STEP) {
            return None;
        }
        let Some(inside) = text.strip_prefix("{\"").and_then(|text| text.strip_suffix('}')) else {
            return Some(Err(Garbled { what: "the line is cut off".to_owned() }));
        };
        if inside.contains('}') {
            return Some(Err(Garbled { what: "two step lines in one".to_owned() }));
        }
        let fields: Vec<(&str, &str)> =
            inside.split(", \"").filter_map(|field| field.split_once("\": ")).collect();
        let value = |name: &str| {
            let found = fields.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| value.trim()).filter(|value| *value != "null")
        };
        let loss = value("loss")?;
        let read = self.read(who, loss, value);
        Some(read.map(|step| ReportedStep { dialect: Dialect::Trainer, who: String::new(), step }))
    }

    fn read<'a>(
        &mut self,
        who: &str,
        loss: &str,
        value: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<StepLine, Garbled> {
        let missing = || Garbled { what: "no number of the step".to_owned() };
        let (iteration, of) = match value("global_step/max_steps") {
            Some(both) => both.trim_matches('"').split_once('/').ok_or_else(missing)?,
            None => (value("current_steps").ok_or_else(missing)?, value("total_steps").unwrap_or_default()),
        };
        let (iteration, rest) = digits(iteration).ok_or_else(missing)?;
        if !rest.is_empty() {
            return Err(missing());
        }
        let of_key = |key| value(key).map(|value| number(key, value)).transpose();
        let mut step = StepLine {
            iteration,
            of: digits(of).map(|(of, _)| of),
            loss: Some(number("loss", loss)?),
            grad_norm: of_key("grad_norm")?,
            learning_rate: of_key("lr")?.or(of_key("learning_rate")?),
            ..StepLine::default()
        };
        let speed = of_key("train_speed(iter/s)")?.filter(|speed| speed.is_finite() && *speed > 0.0);
        step.seconds = match (speed, value("elapsed_time").and_then(elapsed_s)) {
            (Some(speed), _) => Some(1.0 / speed),
            (None, Some(elapsed)) => self.since_last(who, iteration, elapsed),
            (None, None) => None,
        };
        step.is_running_mean = step.seconds.is_some();
        Ok(step)
    }

    /// The mean of the steps since the last line from which enough time went by.
    fn since_last(&mut self, who: &str, iteration: u64, elapsed_s: f64) -> Option<f64> {
        let begin = |records: &mut Records| records.last = Some((who.to_owned(), iteration, elapsed_s));
        let Some((_, before, from_s)) = self.last.as_ref().filter(|(last, ..)| last == who) else {
            begin(self);
            return None;
        };
        let (before, took_s) = (*before, elapsed_s - from_s);
        if iteration <= before || took_s < 0.0 {
            // Another run, or the same line again.
            begin(self);
            return None;
        }
        if took_s < LEAST_S {
            return None;
        }
        begin(self);
        Some(took_s / (iteration - before) as f64)
    }
}

/// `"5:13:22"`, `"1 day, 5:13:22"`.
fn elapsed_s(text: &str) -> Option<f64> {
    let text = text.trim_matches('"');
    let (days, clock) = match text.split_once(" day") {
        Some((days, rest)) => (days.parse::<u32>().ok()?, rest.split_once(", ")?.1),
        None => (0, text),
    };
    let mut parts = clock.split(':').map(|part| part.parse::<u32>().ok());
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    if parts.next().is_some() || minutes >= 60 || seconds >= 60 {
        return None;
    }
    Some(f64::from(days) * 86_400.0 + f64::from(hours) * 3600.0 + f64::from(minutes * 60 + seconds))
}

#[cfg(test)]
mod tests {
    use super::super::{Dialect, TrainingLog, read};
    use super::elapsed_s;

    fn log(text: &str) -> TrainingLog {
        read(text.as_bytes()).expect("a reader in memory")
    }

    fn line(step: u32, loss: &str, elapsed: &str) -> String {
        format!(
            "{{\"current_steps\": {step}, \"total_steps\": 500, \"loss\": {loss}, \"lr\": 5e-05, \"epoch\": 0.02, \"percentage\": 2.0, \
             \"elapsed_time\": \"{elapsed}\", \"remaining_time\": \"0:57:12\", \"throughput\": 4512.33, \"total_tokens\": 315840}}\n"
        )
    }

    #[test]
    fn the_file_of_llama_factory_has_steps_and_the_time_between_them() {
        let eval = line(20, "null", "0:02:30");
        let text =
            line(10, "1.25", "0:01:10") + &line(20, "1.125", "0:02:20") + &eval + &line(30, "NaN", "0:03:40");
        let read = log(&text);
        assert_eq!((read.of_steps, read.garbled, read.series.len()), (3, 0, 1));
        let series = &read.series[0];
        assert_eq!(series.dialect, Dialect::Trainer);
        let steps: Vec<(u64, Option<u64>, Option<f64>)> =
            series.steps.iter().map(|step| (step.iteration, step.of, step.seconds)).collect();
        assert_eq!(steps, [(10, Some(500), None), (20, Some(500), Some(7.0)), (30, Some(500), Some(8.0))]);
        assert_eq!((series.steps[0].loss, series.steps[0].learning_rate), (Some(1.25), Some(5e-5)));
        assert!(series.steps[2].loss.is_some_and(f64::is_nan), "a loss that is no number is reported");
    }

    #[test]
    fn older_lines_name_the_rate_in_full_and_end_without_a_loss() {
        let old = |step: u32, loss: &str| {
            format!(
                "{{\"current_steps\": {step}, \"total_steps\": 3235, \"loss\": {loss}, \"eval_loss\": null, \"learning_rate\": 1.5e-08, \
                 \"epoch\": 0.99, \"percentage\": 98.92, \"elapsed_time\": \"1 day, 5:13:22\", \"remaining_time\": \"0:03:25\"}}\n"
            )
        };
        let read = log(&(old(3200, "4.5") + &old(3235, "null")));
        assert_eq!((read.of_steps, read.series[0].steps.len()), (1, 1));
        assert_eq!(read.series[0].steps[0].learning_rate, Some(1.5e-8));
    }

    #[test]
    fn the_file_of_swift_has_its_own_speed() {
        let text = "{\"loss\": 1.5, \"grad_norm\": 1.1, \"learning_rate\": 1e-06, \"epoch\": 0.01, \"global_step/max_steps\": \
                    \"10/936\", \"percentage\": \"1.07%\", \"elapsed_time\": \"1m 22s\", \"train_speed(iter/s)\": 0.125}\n";
        let step = &log(text).series[0].steps[0];
        assert_eq!(
            (step.iteration, step.of, step.seconds, step.grad_norm),
            (10, Some(936), Some(8.0), Some(1.1))
        );
    }

    #[test]
    fn a_line_that_is_cut_or_two_in_one_is_garbled() {
        let whole = line(10, "1.25", "0:01:10");
        for text in [format!("{}\n", &whole[..60]), format!("{}{whole}", whole.trim_end())] {
            let read = log(&text);
            assert_eq!((read.of_steps, read.garbled), (1, 1), "{text}");
        }
        for text in ["5:60:00", "x", "5:13", "1 day", ""] {
            assert_eq!(elapsed_s(text), None, "{text}");
        }
    }
}
