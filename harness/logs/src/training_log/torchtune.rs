//! Lines of torchtune's loggers: `Step 10 | loss:1.2345 lr:2e-05 tokens_per_second_per_gpu:1234.5 ...`. Tokens are those of the step
//! itself, however many lie between two lines.

use super::bar::bar;
use super::numbers::{digits, number};
use super::step::{Dialect, Garbled, Parsed, ReportedStep, StepLine};
use crate::text::moment_ms;

const RATE: &str = "tokens_per_second_per_gpu";

pub(super) fn parse(text: &str) -> Parsed {
    let (before, iteration, fields) = head(text)?;
    // Other programs begin so, too.
    if !fields.contains(RATE) {
        return None;
    }
    if head(fields).is_some() {
        return Some(Err(Garbled { what: "two step lines in one".to_owned() }));
    }
    let step = StepLine { iteration, moment_ms: moment_ms(before), ..StepLine::default() };
    Some(read(step, fields).map(|step| ReportedStep {
        dialect: Dialect::Torchtune,
        who: String::new(),
        step,
    }))
}

/// What stands before `Step 10 | `, its number, and what follows.
fn head(text: &str) -> Option<(&str, u64, &str)> {
    text.match_indices("Step ").find_map(|(at, word)| {
        let (iteration, rest) = digits(&text[at + word.len()..])?;
        Some((&text[..at], iteration, rest.strip_prefix(" | ")?))
    })
}

fn read(mut step: StepLine, fields: &str) -> Result<StepLine, Garbled> {
    for field in fields.split_whitespace() {
        let Some((key, value)) = field.split_once(':') else { continue };
        match key {
            "loss" => step.loss = Some(number(key, value)?),
            "lr" => step.learning_rate = Some(number(key, value)?),
            "grad_norm" => step.grad_norm = Some(number(key, value)?),
            RATE => step.tokens_per_gpu_s = Some(number(key, value)?),
            _ => {}
        }
    }
    match (step.loss, step.tokens_per_gpu_s) {
        (Some(_), Some(_)) => Ok(step),
        _ => Err(Garbled { what: "no loss or no tokens per second".to_owned() }),
    }
}

/// Its progress bar, which the usual logger leaves alone on the screen: `1|100|Loss: 1.25:   3%|2     | 100/3251
/// [03:10<1:40:00,  1.90s/it]`, of epoch 1 and step 100.
pub(super) fn drawn(text: &str) -> Parsed {
    let bar = bar(text)?;
    let (before, description) = bar.head.split_once("|Loss: ")?;
    let (before, iteration) = before.rsplit_once('|')?;
    // A label may stand before the epoch.
    let epoch = before.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let epoch: u64 = before.get(epoch..)?.parse().ok()?;
    let (iteration, rest) = digits(iteration)?;
    if !rest.is_empty() || epoch == 0 {
        return None;
    }
    let (loss, _) = description.rsplit_once(": ").unwrap_or((description, ""));
    // Early ones count again from 1 in each epoch.
    let before = if iteration > bar.of { 0 } else { (epoch - 1).saturating_mul(bar.of) };
    let step = StepLine {
        iteration: before.saturating_add(iteration),
        seconds: bar.seconds,
        is_running_mean: bar.seconds.is_some(),
        ..StepLine::default()
    };
    let read = number("Loss", loss).map(|loss| StepLine { loss: Some(loss), ..step });
    Some(read.map(|step| ReportedStep { dialect: Dialect::TorchtuneBar, who: String::new(), step }))
}

#[cfg(test)]
mod tests {
    use super::super::{Dialect, read};

    const LINES: &str = "Step 1 | loss:1.75 lr:2e-05 tokens_per_second_per_gpu:1234.5 \n\
                         Step 2 | loss:1.5 lr:2e-05 tokens_per_second_per_gpu:1234.5 \n";

    #[test]
    fn bars_of_torchtune_are_steps_where_it_logs_no_lines() {
        // The bar moves before its text changes.
        let bars = "  0%|          | 0/2 [00:00<?, ?it/s]\r 50%|#####     | 1/2 [00:02<00:02,  2.00s/it]\r\
                    1|1|Loss: 1.75:  50%|#####     | 1/2 [00:02<00:02,  2.00s/it]\r\
                    1|1|Loss: 1.75: 100%|##########| 2/2 [00:03<00:00,  1.50s/it]\r\
                    1|2|Loss: 1.5: 100%|##########| 2/2 [00:03<00:00,  1.50s/it]\n\
                    2|3|Loss: nan:  50%|#####     | 1/2 [00:01<00:01,  1.00s/it]\n";
        let log = read(bars.as_bytes()).expect("read");
        let series = &log.series[0];
        assert_eq!((log.garbled, log.series.len(), series.dialect), (0, 1, Dialect::TorchtuneBar));
        let steps: Vec<_> = series.steps.iter().map(|step| (step.iteration, step.seconds)).collect();
        assert_eq!(steps, [(1, Some(1.5)), (2, Some(1.5)), (3, Some(1.0))]);
        assert_eq!(series.steps[1].loss, Some(1.5));
        let codes: Vec<&str> = log.findings.iter().map(|finding| finding.code.as_str()).collect();
        assert_eq!(codes, ["training-loss-not-finite"]);
        for text in [format!("{bars}{LINES}"), format!("{LINES}{bars}")] {
            let log = read(text.as_bytes()).expect("read");
            let dialects: Vec<Dialect> = log.series.iter().map(|series| series.dialect).collect();
            assert_eq!((dialects, log.findings.len()), (vec![Dialect::Torchtune], 0), "{text}");
        }
    }

    #[test]
    fn early_bars_of_torchtune_count_again_in_each_epoch() {
        let bars = "1|2|Loss: 1.5: 100%|##########| 2/2 [00:03<00:00,  1.50s/it]\n\
                    2|1|Loss: 1.25:  50%|#####     | 1/2 [00:01<00:01,  1.00s/it]\n";
        let log = read(bars.as_bytes()).expect("read");
        let steps: Vec<u64> = log.series[0].steps.iter().map(|step| step.iteration).collect();
        assert_eq!((steps, log.findings.len()), (vec![2, 3], 0));
    }
}
