//! Lines of llm.c, `step   61/74 | loss 3.208939 (+0.12z)| norm 1.4800 (-0.30z)| lr 3.00e-04 | 44.57 ms | 49.1% bf16 MFU | 91886 tok/s`,
//! and of nanochat, `step 00001/21400 (0.00%) | loss: 10.81 | grad norm: 4.2 | lrm: 1.00 | dt: 460.12ms | tok/sec: 1,139,797 | ...`. Their
//! tokens are those of all GPUs, and the MFU of GPUs that llm.c does not know is -100 %: neither is read.

use super::numbers::{digits, number};
use super::step::{Dialect, Garbled, Parsed, ReportedStep, StepLine};
use crate::text::moment_ms;

pub(super) fn parse(text: &str) -> Parsed {
    let (before, iteration, of, fields) = head(text)?;
    let dialect = match (fields.contains("| dt: "), fields.contains(" tok/s")) {
        (true, _) => Dialect::Nanochat,
        (false, true) => Dialect::Llmc,
        (false, false) => return None,
    };
    if head(fields).is_some() {
        return Some(Err(Garbled { what: "two step lines in one".to_owned() }));
    }
    let step = StepLine { iteration, of: Some(of), moment_ms: moment_ms(before), ..StepLine::default() };
    Some(read(step, fields).map(|step| ReportedStep { dialect, who: String::new(), step }))
}

/// What stands before `step   61/74`, both numbers, and what follows.
fn head(text: &str) -> Option<(&str, u64, u64, &str)> {
    text.match_indices("step ").find_map(|(at, word)| {
        let (iteration, rest) = digits(text[at + word.len()..].trim_start())?;
        let (of, rest) = digits(rest.strip_prefix('/')?)?;
        let is_head = rest.starts_with([' ', ':']);
        is_head.then_some((&text[..at], iteration, of, rest))
    })
}

fn read(mut step: StepLine, fields: &str) -> Result<StepLine, Garbled> {
    // Older ones of llm.c: `: train loss 4.367631 (acc 4.367631) (80.639749 ms, 50793 tok/s)`.
    let fields = fields.strip_prefix(':').unwrap_or(fields);
    for field in fields.split('|').map(str::trim) {
        let (key, value) = match field.split_once(": ") {
            Some(pair) => pair,
            None => {
                let field = field.strip_prefix("train ").unwrap_or(field);
                field.split_once(' ').unwrap_or((field, ""))
            }
        };
        match key {
            "loss" => step.loss = Some(number(key, value)?),
            "norm" | "grad norm" => step.grad_norm = Some(number(key, value)?),
            "lr" => step.learning_rate = Some(number(key, value)?),
            _ => {}
        }
        if let Some(milliseconds) = milliseconds(field) {
            step.seconds = Some(number("ms", milliseconds)? / 1000.0);
        }
    }
    // Both stand in every line: without them it is incomplete.
    match (step.loss, step.seconds) {
        (Some(_), Some(_)) => Ok(step),
        _ => Err(Garbled { what: "no loss or no time".to_owned() }),
    }
}

/// `44.57 ms`, `dt: 460.12ms`, `... (80.639749 ms, 50793 tok/s)`.
fn milliseconds(field: &str) -> Option<&str> {
    let of_dt = field.strip_prefix("dt: ").and_then(|value| value.strip_suffix("ms"));
    let of_field = || field.strip_suffix(" ms");
    let of_older = || field.rsplit_once('(')?.1.split_once(" ms,").map(|(value, _)| value);
    of_dt.or_else(of_field).or_else(of_older)
}

#[cfg(test)]
mod tests {
    use super::super::{Dialect, StepLine, read};

    fn only(text: &str) -> (Dialect, StepLine) {
        let log = read(text.as_bytes()).expect("a reader in memory");
        assert_eq!((log.of_steps, log.garbled, log.series.len()), (1, 0, 1), "{text}");
        (log.series[0].dialect, log.series[0].steps[0].clone())
    }

    #[test]
    fn lines_of_llm_c_of_three_years_have_loss_and_time() {
        let new = "step   61/74 | loss 3.250000 (+nanz)| norm 1.4800 (+nanz)| lr 3.00e-04 | 44.57 ms | -100.0% bf16 MFU | 91886 tok/s\n";
        let middle = "step   61/74 | train loss 3.250000 | norm 1.4800 | lr 3.00e-04 | 44.57 ms | 52.9% bf16 MFU | 91886 tok/s\n";
        for text in [new, middle] {
            let (dialect, step) = only(text);
            assert_eq!((dialect, step.iteration, step.of), (Dialect::Llmc, 61, Some(74)));
            assert_eq!((step.loss, step.seconds), (Some(3.25), Some(44.57 / 1000.0)));
            assert_eq!((step.grad_norm, step.learning_rate), (Some(1.48), Some(3e-4)));
            assert_eq!((step.tokens_per_gpu_s, step.mfu_percent), (None, None));
        }
        let (_, old) = only("step    1/74: train loss 4.250000 (acc 4.250000) (80.5 ms, 50793 tok/s)\n");
        assert_eq!((old.iteration, old.loss, old.seconds), (1, Some(4.25), Some(80.5 / 1000.0)));
    }

    #[test]
    fn a_line_of_nanochat_has_loss_and_time() {
        let text = "step 00001/21400 (0.00%) | loss: 10.812500 | grad norm: 4.2153 | lrm: 1.00 | dt: 460.12ms | tok/sec: 1,139,797 | mfu: \
                    48.34 | total time: 0.00m\n";
        let (dialect, step) = only(text);
        assert_eq!((dialect, step.iteration, step.loss), (Dialect::Nanochat, 1, Some(10.8125)));
        assert_eq!((step.seconds, step.grad_norm), (Some(460.12 / 1000.0), Some(4.2153)));
    }

    #[test]
    fn a_line_without_its_time_is_garbled_and_another_is_none() {
        let of = |text: &str| {
            let log = read(text.as_bytes()).expect("a reader in memory");
            (log.of_steps, log.garbled)
        };
        assert_eq!(of("step   61/74 | loss 3.25 | 91886 tok/s\n"), (1, 1));
        let two = "step   61/74 | loss 3.25 | 44.57 ms | 91886 tok/s";
        assert_eq!(of(&format!("{two}{two}\n")), (1, 1));
        assert_eq!(of("val step 5/10 of the download\n"), (0, 0));
    }
}
