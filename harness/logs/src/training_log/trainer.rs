//! What the Trainer of Hugging Face prints: Python dictionaries, whose step is in its progress bar, and one at the end.

use super::bar::bar;
use super::gather::Series;
use super::numbers::{count, digits, number};
use super::step::{Dialect, Garbled, Parsed, ReportedStep, StepLine};
use crate::text;
use metric::finding::Finding;
use serde::Serialize;
use std::collections::BTreeMap;

/// What stands in the dictionary at the end: means over the whole run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TrainerSummary {
    /// The whole run (`train_runtime`).
    pub seconds: f64,
    /// As `train_steps_per_second`.
    pub steps_per_s: f64,
    /// As `train_samples_per_second`.
    pub samples_per_s: f64,
}

/// Nothing where the line is another, or a number of it is none.
pub(super) fn summary(text: &str) -> Option<TrainerSummary> {
    let fields = fields(text.split_once("{'")?.1.split_once('}')?.0);
    let value = |name: &str| {
        let (key, value) = fields.iter().find(|(key, _)| *key == name)?;
        number(key, value).ok().filter(|value| value.is_finite() && *value > 0.0)
    };
    Some(TrainerSummary {
        seconds: value("train_runtime")?,
        steps_per_s: value("train_steps_per_second")?,
        samples_per_s: value("train_samples_per_second")?,
    })
}

impl TrainerSummary {
    /// How many steps the run had, by its time and its rate, which is rounded to three decimals: the fewest and the most.
    fn steps(&self) -> (f64, f64) {
        const HALF: f64 = 0.0005;
        (self.seconds * (self.steps_per_s - HALF) - 0.5, self.seconds * (self.steps_per_s + HALF) + 0.5)
    }

    /// How many steps the lines of a series stand for, where they are counted and the run had many more steps than lines.
    /// Of the numbers that fit, it is the one that was planned.
    pub fn steps_of(&self, series: &Series, planned: Option<u64>) -> Option<u64> {
        let total = (self.seconds * self.steps_per_s).round();
        if !series.is_counted() || total <= 1.5 * series.steps.len() as f64 {
            return None;
        }
        let (fewest, most) = self.steps();
        let fits = |planned: &u64| (fewest..=most).contains(&(*planned as f64));
        Some(planned.filter(fits).unwrap_or(total as u64))
    }
}

/// Dictionaries without a bar are counted, and nothing but the summary says for how many steps each stands.
pub(super) fn unnumbered(series: &[Series], summary: Option<&TrainerSummary>) -> Option<Finding> {
    let one = series.iter().find(|it| it.is_counted())?;
    let (lines, last) = (text::count(one.steps.len() as u64, "line"), one.steps.last()?);
    let what = match summary {
        Some(summary) => {
            format!("{} steps by its summary: a line stands for several", summary.steps_of(one, None)?)
        }
        None => "and no summary: a line may stand for several steps".to_owned(),
    };
    let why = format!("{}: {lines} without a step's number, {what}", one.render());
    Some(Finding::new("training-gap", why).line(last.line))
}

/// What axolotl adds: tokens with a loss, of one GPU. It divides the rate of the last step by the steps between two lines, so
/// that of a line for several steps is none (`log` in its `core/trainers/base.py`).
const TOKEN_RATES: [&str; 2] = ["tokens/train_per_sec_per_gpu", "tokens_per_second_per_gpu"];

/// No job has more ranks; what else is called so is not counted with them.
const MOST_BARS: usize = 1 << 16;

/// How far the bars are, by who draws them.
#[derive(Debug, Default)]
pub(super) struct Bars {
    last: BTreeMap<String, Drawn>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Drawn {
    at: u64,
    of: u64,
    seconds: Option<f64>,
    /// How many dictionaries were printed without a bar.
    dictionaries: u64,
    /// Whether the last one stood behind a logger's prefix, its loss, and its epoch.
    last: Option<(bool, f64, f64)>,
    /// The step of the last dictionary.
    logged: Option<u64>,
}

impl Drawn {
    /// Takes in the step of a dictionary; whether it stands for that step alone.
    fn is_single(&mut self, iteration: u64) -> bool {
        let before = self.logged.replace(iteration);
        iteration == before.map_or(1, |before| before.saturating_add(1))
    }

    /// Whether a dictionary has the step of the one before it: LlamaFactory's web interface logs each of the Trainer's a second
    /// time, with four and two decimals (`LogCallback` in its `callbacks.py`).
    fn has_printed(&mut self, is_logged: bool, loss: f64, epoch: f64) -> bool {
        let is_same = self.last.is_some_and(|(was_logged, before, at)| {
            was_logged != is_logged && (before - loss).abs() < 1e-4 && (at - epoch).abs() < 0.01
        });
        self.last = (!is_same).then_some((is_logged, loss, epoch));
        is_same
    }
}

impl Bars {
    /// A dictionary as a step. A bar alone is none, and is kept for the dictionary that follows it.
    pub(super) fn parse(&mut self, who: &str, text: &str) -> Parsed {
        let dictionary = text.find("{'");
        if self.last.len() >= MOST_BARS && !self.last.contains_key(who) {
            return dictionary.map(|_| Err(Garbled { what: format!("more than {MOST_BARS} ranks") }));
        }
        if let Some(bar) = bar(&text[..dictionary.unwrap_or(text.len())])
            && is_nameless(bar.head)
        {
            let drawn = self.last.entry(who.to_owned()).or_default();
            let (at, of, seconds, logged) = (bar.at, bar.of, bar.seconds, drawn.logged);
            *drawn = Drawn { at, of, seconds, logged, ..Drawn::default() };
        }
        let rest = &text[dictionary? + 1..];
        let fields = fields(rest.split_once('}')?.0);
        let value = |name: &str| fields.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        let (loss, epoch) = (value("loss")?, value("epoch")?);
        let drawn = self.last.entry(who.to_owned()).or_default();
        // ms-swift and others print the number of the step in the dictionary itself.
        let own = value("global_step/max_steps").or_else(|| value("global_step")).or_else(|| value("step"));
        let own = own.and_then(own_step);
        let is_counted = own.is_none() && drawn.at == 0;
        let (iteration, of) = match (own, drawn.at) {
            (Some(own), _) => own,
            (None, 0) => {
                let is_logged = text[..dictionary?].ends_with(">> ");
                let numbers = number("loss", loss).ok().zip(number("epoch", epoch).ok());
                let is_again = numbers.is_some_and(|(loss, epoch)| drawn.has_printed(is_logged, loss, epoch));
                drawn.dictionaries += u64::from(!is_again);
                (drawn.dictionaries, None)
            }
            (None, at) => (at, Some(drawn.of)),
        };
        // The mean over the whole run so far.
        let speed = value("train_speed(iter/s)").and_then(|speed| number("speed", speed).ok());
        let by_speed = speed.filter(|speed| speed.is_finite() && *speed > 0.0).map(|speed| 1.0 / speed);
        let seconds = drawn.seconds.or(by_speed);
        let is_single = drawn.is_single(iteration) && !is_counted;
        let tokens = TOKEN_RATES.iter().find_map(|name| value(name)).filter(|_| is_single);
        let tokens = tokens.map(|tokens| number("tokens per second", tokens));
        let read = || -> Result<StepLine, Garbled> {
            number("epoch", epoch)?;
            let of_key = |key| value(key).map(|value| number(key, value)).transpose();
            Ok(StepLine {
                iteration,
                of,
                is_counted,
                seconds,
                is_running_mean: seconds.is_some(),
                loss: Some(number("loss", loss)?),
                grad_norm: of_key("grad_norm")?,
                learning_rate: of_key("learning_rate")?,
                tokens_per_gpu_s: tokens.transpose()?.filter(|rate| *rate > 0.0),
                ..StepLine::default()
            })
        };
        Some(read().map(|step| ReportedStep { dialect: Dialect::Trainer, who: String::new(), step }))
    }
}

/// `'56/176'`, `56`: the step, and how many there are to be.
fn own_step(text: &str) -> Option<(u64, Option<u64>)> {
    let (at, of) = text.trim_matches(['\'', '"']).split_once('/').unwrap_or((text, ""));
    Some((count("step", at).ok()?, digits(of).map(|(of, _)| of)))
}

/// Whether nothing but a percentage stands before a bar: one that is drawn for something else has its name
/// there.
fn is_nameless(head: &str) -> bool {
    let Some((front, _)) = head.split_once('%') else { return false };
    let percent = front.trim();
    !percent.is_empty() && percent.bytes().all(|b| b.is_ascii_digit())
}

/// `'key': value` with commas between; values are numbers, or texts of numbers.
fn fields(inside: &str) -> Vec<(&str, &str)> {
    let parts = inside.split(',').filter_map(|part| part.split_once(':'));
    parts.map(|(key, value)| (key.trim().trim_matches(['\'', '"']), value.trim())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_stand_for_several_steps_by_the_summary_are_a_finding() {
        let found = |numbered: bool, rate: &str| {
            let line = |at: u64| match numbered {
                true => format!("{{'loss': 2.5, 'epoch': 0.1, 'global_step/max_steps': '{}/30'}}\n", at * 6),
                false => "{'loss': '2.5', 'epoch': '0.1'}\n".to_owned(),
            };
            let end = format!(
                "{{'train_runtime': '31.5', 'train_samples_per_second': '15.2', 'train_steps_per_second': '{rate}', 'epoch': '1'}}\n"
            );
            let text = (1..=5).map(line).collect::<String>() + &end;
            let log = super::super::read(text.as_bytes()).expect("read");
            log.findings.into_iter().map(|it| it.message).collect::<Vec<String>>()
        };
        let why =
            "trainer: 5 lines without a step's number, 30 steps by its summary: a line stands for several";
        assert_eq!(found(false, "0.952"), [why]);
        assert_eq!(found(false, "0.159"), Vec::<String>::new(), "five steps");
        assert_eq!(found(true, "0.952"), Vec::<String>::new());
    }

    #[test]
    fn lines_without_numbers_and_summary_are_not_taken_for_single_steps() {
        let found = |more: &str| {
            let text = format!("{{'loss': 2.5, 'epoch': 0.1{more}}}\n").repeat(3);
            let log = super::super::read(text.as_bytes()).expect("read");
            log.findings.into_iter().map(|it| it.message).collect::<Vec<String>>()
        };
        let why =
            "trainer: 3 lines without a step's number, and no summary: a line may stand for several steps";
        assert_eq!(found(""), [why]);
        assert_eq!(found(", 'step': 1"), Vec::<String>::new(), "three ranks at one step");
    }

    #[test]
    fn a_step_that_is_logged_a_second_time_is_counted_once() {
        let own = |step: u32| format!("{{'loss': 2.{step}1234, 'grad_norm': 0.5, 'epoch': 0.{step}12}}\n");
        let logged = |step: u32| {
            format!(
                "[INFO|2026-11-20 10:00:01] llamafactory.train.callbacks:143 >> {{'loss': 2.{step}123, 'epoch': 0.{step}1}}\n"
            )
        };
        let steps = |text: String| {
            let log = super::super::read(text.as_bytes()).expect("read");
            log.series[0].steps.iter().map(|step| (step.iteration, step.copies)).collect::<Vec<_>>()
        };
        let both = [(1, 1), (2, 1), (3, 1)];
        assert_eq!(steps((1..4).map(|step| logged(step) + &own(step)).collect()), both);
        assert_eq!(steps((1..4).map(|step| own(step) + &logged(step)).collect()), both);
        let one = [(1, 0), (2, 0), (3, 0)];
        assert_eq!(steps((1..4).map(logged).collect()), one);
        assert_eq!(steps(own(1).repeat(3)), one, "equal by chance");
    }

    #[test]
    fn tokens_per_second_of_axolotl_are_read_where_each_step_has_a_line() {
        let line = |at: u64| {
            format!(
                "{at}0%|##        | {at}/10 [00:09<00:10,  1.50s/it]\n{{'loss': 2.0312, 'grad_norm': 59.5, 'learning_rate': 4.95e-06, \
                 'memory/max_active (GiB)': 34.89, 'tokens/train_per_sec_per_gpu': 1534.25, 'epoch': 0.{at}}}\n"
            )
        };
        let rates = |steps: &[u64]| {
            let text: String = steps.iter().map(|at| line(*at)).collect();
            let log = super::super::read(text.as_bytes()).expect("read");
            assert_eq!((log.garbled, log.series.len()), (0, 1), "{log:?}");
            log.series[0].steps.iter().map(|step| step.tokens_per_gpu_s).collect::<Vec<_>>()
        };
        assert_eq!(rates(&[1, 2, 3]), [Some(1534.25); 3]);
        assert_eq!(rates(&[2, 4, 6]), [None; 3], "a rate divided by the steps of a line");
        assert_eq!(rates(&[5, 6, 7]), [None, Some(1534.25), Some(1534.25)], "resumed");
    }

    #[test]
    fn the_steps_that_counted_lines_stand_for_are_those_of_the_summary() {
        let log = super::super::read(&b"{'loss': 2.5, 'epoch': 0.1}\n{'loss': 2.4, 'epoch': 0.2}\n"[..])
            .expect("read");
        // 10,000 s at a rate of 0.12 are 1,195 to 1,205 steps.
        let summary = TrainerSummary { seconds: 10_000.0, steps_per_s: 0.12, samples_per_s: 1.0 };
        for (planned, steps) in [(None, 1200), (Some(1203), 1203), (Some(1206), 1200), (Some(2), 1200)] {
            assert_eq!(summary.steps_of(&log.series[0], planned), Some(steps), "{planned:?}");
        }
        let short = TrainerSummary { seconds: 2.0, steps_per_s: 1.0, samples_per_s: 1.0 };
        assert_eq!(short.steps_of(&log.series[0], Some(2)), None, "as many as lines");
    }

    #[test]
    fn more_labels_than_a_job_has_ranks_are_not_kept() {
        let mut bars = Bars::default();
        let line = "{'loss': 2.5, 'epoch': 0.1}";
        assert!(
            (0..MOST_BARS).all(|who| bars.parse(&who.to_string(), line).is_some_and(|read| read.is_ok()))
        );
        assert!(bars.parse("one more", line).is_some_and(|read| read.is_err()));
        assert!(bars.parse("7", line).is_some_and(|read| read.is_ok()), "known");
        assert_eq!(bars.last.len(), MOST_BARS);
    }
}
