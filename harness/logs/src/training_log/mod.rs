//! Logs of trainings, read line by line in bounded memory: which steps ran, how long they took, and what the program
//! says of each. Whatever else stands in a log is passed over.

mod automodel;
mod bar;
mod compat;
mod figures;
mod flops;
mod gather;
mod numbers;
mod pipes;
mod ranks;
mod samples;
mod step;
mod stops;
#[cfg(test)]
mod tests;
mod trainer;

pub use compat::{ITERATIONS, mean_of_steps};
pub use figures::{Figures, figures};
pub use flops::CODE as FLOPS_DISAGREE;
pub use gather::{Restart, Series};
pub use ranks::{CODE as RANKS_DISAGREE, slowest};
pub use step::{Dialect, StepLine};
pub use trainer::TrainerSummary;

use super::stream::{Piece, Pieces};
use super::text;
use gather::Gathered;
use metric::finding::Finding;
use serde::Serialize;
use std::io::{self, BufRead};
use step::{Garbled, Parsed, ReportedStep};

/// The contents of a log.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrainingLog {
    /// All lines of the log, whatever they hold.
    pub lines: u64,
    /// Lines that are a step's, whether they could be read or not.
    pub of_steps: u64,
    /// Those of them of which something could not be read: they count for nothing.
    pub garbled: u64,
    /// Those of them whose loss could not be read.
    #[serde(skip)]
    pub garbled_losses: u64,
    /// Lines with the time of whole epochs, and no step.
    pub of_epochs: u64,
    /// Lines of PAX, which have the time of a step and not its number.
    pub of_pax: u64,
    /// By program, rank and run; empty where no step was logged.
    pub series: Vec<Series>,
    /// Where the Trainer of Hugging Face came to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<TrainerSummary>,
    /// Such as `training-gap` and `training-loss-not-finite`.
    pub findings: Vec<Finding>,
}

/// How the line of `torch_ddp.py` begins that compares the weights of all ranks; the number of steps follows.
pub const WEIGHTS: &str = "torch_ddp.py: weights after step ";

/// Code of the findings that say why a training failed.
pub const FAILURE: &str = stops::CODE;

/// At most this many lines that could not be read are listed one by one.
const MOST_LISTED: u64 = 3;

/// Reads to the end. A log without any step has no series; one of more than a million is refused.
pub fn read(mut from: impl BufRead) -> io::Result<TrainingLog> {
    // What cannot be read is an error of the first line.
    let numbers_lines = from.fill_buf().is_ok_and(numbers_lines);
    let mut pieces = Pieces::new(from);
    let mut reader = Reader::default();
    while let Some(piece) = pieces.next_piece()? {
        let line = match numbers_lines {
            true => behind_number(&piece.text).map_or(piece.text.as_str(), |(_, rest)| rest),
            false => piece.text.as_str(),
        };
        let plain = text::plain(line, begins);
        let of_steps = reader.of_steps;
        let mut parts = bar::drawn(&plain.text).into_iter().peekable();
        while let Some(text) = parts.next() {
            reader.take(text, &plain, &piece, parts.peek().is_none())?;
        }
        let is_step = reader.of_steps > of_steps;
        if is_step {
            reader.stops.step(piece.line);
        }
        reader.stops.line(line, piece.line, is_step);
    }
    let Reader { gathered, mut findings, of_steps, garbled, garbled_losses, .. } = reader;
    let (of_epochs, of_pax, summary, stops) = (reader.of_epochs, reader.of_pax, reader.summary, reader.stops);
    if garbled > MOST_LISTED {
        let more = text::count(garbled - MOST_LISTED, "more step line");
        let why = format!("{more} could not be read");
        findings.push(Finding::new("training-garbled", why));
    }
    let series = gathered.series();
    findings.extend(gather::findings(&series));
    findings.extend(stops.findings());
    let lines = pieces.lines();
    Ok(TrainingLog { lines, of_steps, garbled, garbled_losses, of_epochs, of_pax, series, summary, findings })
}

/// Whether something numbered the lines of a log: `[1743] `, and a greater one in each line that follows. Ranks begin at 0,
/// and come again.
fn numbers_lines(beginning: &[u8]) -> bool {
    const LEAST: usize = 4;
    let text = String::from_utf8_lossy(beginning);
    // The last one may go on.
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let numbers: Option<Vec<u64>> =
        whole.lines().map(|line| behind_number(line).map(|(number, _)| number)).collect();
    let rises = |numbers: &Vec<u64>| {
        numbers.len() >= LEAST && numbers[0] > 0 && numbers.windows(2).all(|pair| pair[0] < pair[1])
    };
    numbers.is_some_and(|numbers| rises(&numbers))
}

/// `[1743] text`: the number, and the text.
fn behind_number(line: &str) -> Option<(u64, &str)> {
    let (number, rest) = numbers::digits(line.strip_prefix('[')?)?;
    let rest = rest.strip_prefix(']')?;
    Some((number, rest.strip_prefix(' ').unwrap_or(rest)))
}

/// The steps that lines end, in logs that are not of trainings alone. The Trainer of Hugging Face prints a step's
/// number in its bar, before the line that ends it.
#[derive(Debug, Default)]
pub(super) struct Ends {
    bars: trainer::Bars,
}

impl Ends {
    /// The step that a line ends.
    pub(crate) fn step_ended_by(&mut self, text: &str) -> Option<u64> {
        // Most lines hold none of their words.
        if !["teration", "Batch ", "step: ", "poch", "%|"].iter().any(|word| text.contains(word)) {
            return None;
        }
        let plain = text::plain(text, begins);
        let text = &*plain.text;
        let parsed = pipes::parse(text).or_else(|| samples::fsdp(text)).or_else(|| samples::torchtitan(text));
        let parsed = parsed.or_else(|| automodel::parse(text)).or_else(|| bar::parse(text));
        let parsed = parsed.or_else(|| self.bars.parse(&plain.tag, text));
        Some(parsed?.ok()?.step.iteration)
    }
}

/// Whether a text begins as a line of a step does.
fn begins(text: &str) -> bool {
    const FIRST: [&str; 10] = [
        "iteration ",
        "samples/sec: ",
        "Training epoch",
        "Epoch ",
        "Batch ",
        "step:",
        "{'",
        "Step Time",
        "step ",
        "| INFO | ",
    ];
    FIRST.iter().any(|word| text.trim_start().starts_with(word))
}

#[derive(Default)]
struct Reader {
    gathered: Gathered,
    bars: trainer::Bars,
    /// What Megatron-Bridge said before the line of a step.
    tflops: Option<f64>,
    summary: Option<TrainerSummary>,
    findings: Vec<Finding>,
    stops: stops::Stops,
    of_steps: u64,
    garbled: u64,
    garbled_losses: u64,
    of_epochs: u64,
    of_pax: u64,
}

/// `Time taken for epoch 3 is 725.65 sec`, and the like.
fn is_of_epoch(text: &str) -> bool {
    let behind = |(at, word): (usize, &str)| text[at + word.len()..].trim_start_matches([' ', ':', '=']);
    let numbered = text.match_indices("poch").map(behind);
    text.contains("sec") && numbered.into_iter().any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

impl Reader {
    fn parse(&mut self, who: &str, text: &str) -> Parsed {
        if let Some(mut parsed) = pipes::parse(text) {
            let before = self.tflops.take();
            if let Ok(reported) = &mut parsed {
                reported.step.tflops_per_gpu = reported.step.tflops_per_gpu.or(before);
            }
            return Some(parsed);
        }
        if let Some(tflops) = pipes::tflops_before(text) {
            self.tflops = Some(tflops);
            return None;
        }
        if let Some(summary) = trainer::summary(text) {
            self.summary = Some(summary);
            return None;
        }
        samples::fsdp(text)
            .or_else(|| samples::torchtitan(text))
            .or_else(|| automodel::parse(text))
            .or_else(|| bar::parse(text))
            .or_else(|| self.bars.parse(who, text))
    }

    /// Takes in a line, or a part of it that may be a step of its own.
    fn take(&mut self, text: &str, plain: &text::Plain<'_>, piece: &Piece, is_last: bool) -> io::Result<()> {
        let parsed = match is_last || !bar::is_cut(text) {
            true => self.parse(&plain.tag, text),
            false => Some(Err(Garbled { what: "a bar that the next one was drawn over".to_owned() })),
        };
        if is_last
            && !piece.ended
            && let Some(Ok(_)) = &parsed
            && !text.trim_end().ends_with(['|', ']', '}'])
        {
            // A number may go on where the file ends.
            self.of_steps += 1;
            self.garble(piece.line, "the file ends mid-line");
            return Ok(());
        }
        match parsed {
            None => {
                self.of_epochs += u64::from(is_of_epoch(text));
                self.of_pax += u64::from(text.contains("[PAX STATUS]: train_step() took "));
            }
            Some(Ok(reported)) => {
                self.of_steps += 1;
                let moment_ms = plain.moment_ms.or(reported.step.moment_ms);
                let step = StepLine { line: piece.line, moment_ms, ..reported.step };
                let who = plain.tag.clone();
                self.gathered.add(ReportedStep { dialect: reported.dialect, who, step })?;
            }
            Some(Err(Garbled { what })) => {
                self.of_steps += 1;
                let cut = if piece.too_long { ", in a line cut for its length" } else { "" };
                self.garble(piece.line, &format!("{what}{cut}"));
            }
        }
        Ok(())
    }

    fn garble(&mut self, line: u64, what: &str) {
        self.garbled += 1;
        // `lm loss`, `Loss`, `train_loss_step`.
        let key = what.split('`').nth(1).unwrap_or_default();
        self.garbled_losses += u64::from(key.to_ascii_lowercase().contains("loss"));
        if self.garbled <= MOST_LISTED {
            let why = format!("skipped a step line: {what}");
            self.findings.push(Finding::new("training-garbled", why).line(line));
        }
    }
}
