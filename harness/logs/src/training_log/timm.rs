//! Lines of timm: `Train: 0 [  50/1251 (  4%)]  Loss: 6.95 (6.97)  Time: 0.412s, 2485.44/s  (0.523s, 1957.93/s)  LR: 1.000e-06 ...`:
//! what stands in brackets are means of the epoch so far. Time and samples per second of both are of the same samples.

use super::numbers::{count, digits, number, part_near};
use super::step::{Dialect, Garbled, Parsed, ReportedStep, StepLine};
use crate::range::Range;
use crate::text::moment_ms;

pub(super) fn parse(text: &str) -> Parsed {
    let (before, epoch, iteration, of, rest) = head(text)?;
    if head(rest).is_some() {
        return Some(Err(Garbled { what: "two step lines in one".to_owned() }));
    }
    let (epoch, of, moment_ms) = (Some(epoch), Some(of), moment_ms(before));
    let step = StepLine { epoch, iteration, of, moment_ms, ..StepLine::default() };
    Some(read(step, rest).map(|step| ReportedStep { dialect: Dialect::Timm, who: String::new(), step }))
}

/// What stands before `Train: 0 [  50/1251 (  4%)]`, its epoch, its number, how many there are, and what follows.
fn head(text: &str) -> Option<(&str, u64, u64, u64, &str)> {
    text.match_indices("Train: ").find_map(|(at, word)| {
        let (epoch, rest) = digits(&text[at + word.len()..])?;
        let (inside, rest) = part_near(rest.strip_prefix(" [")?, "]")?;
        let (iteration, of) = inside.split_once('/')?;
        let (of, percent) = digits(of)?;
        let iteration = count("step", iteration).ok()?;
        percent.trim().ends_with("%)").then_some((&text[..at], epoch, iteration, of, rest))
    })
}

fn read(mut step: StepLine, fields: &str) -> Result<StepLine, Garbled> {
    let missing = |what: &str| Garbled { what: format!("no `{what}`") };
    let (_, loss) = fields.split_once(" Loss: ").ok_or_else(|| missing("Loss"))?;
    step.loss = Some(number("Loss", loss)?);
    let (_, rest) = fields.split_once("Time: ").ok_or_else(|| missing("Time"))?;
    let (of_step, rest) = rest.split_once('(').ok_or_else(|| missing("Time"))?;
    let (of_epoch, _) = rest.split_once(')').ok_or_else(|| missing("Time"))?;
    let (seconds, rate) = pair(of_step)?;
    let (mean, mean_rate) = pair(of_epoch)?;
    if !seconds.1.times(rate.1).meets(mean.1.times(mean_rate.1)) {
        return Err(Garbled { what: "time and samples per second are not of the same samples".to_owned() });
    }
    (step.seconds, step.samples_per_s) = (Some(seconds.0), Some(rate.0));
    Ok(step)
}

type Figure = (f64, Range);

/// `0.412s, 2485.44/s`.
fn pair(text: &str) -> Result<(Figure, Figure), Garbled> {
    let bad = || Garbled { what: "`Time` is not in s, with samples per second".to_owned() };
    let (seconds, rate) = text.trim().split_once("s,").ok_or_else(bad)?;
    let rate = rate.trim().strip_suffix("/s").ok_or_else(bad)?;
    let figure = |text: &str| -> Result<Figure, Garbled> {
        Ok((number("Time", text)?, Range::printed(text.trim()).ok_or_else(bad)?))
    };
    Ok((figure(seconds)?, figure(rate)?))
}
