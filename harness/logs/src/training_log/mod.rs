//! Logs of trainings, read line by line in bounded memory: which steps ran, how long they took, and what the program
//! says of each. Whatever else stands in a log is passed over.

mod automodel;
mod bar;
mod compat;
mod composer;
mod deepspeed;
mod figures;
mod flops;
mod gather;
mod llmc;
mod maxtext;
mod nanogpt;
mod nanotron;
mod numbers;
mod picotron;
mod pipes;
mod ranks;
mod records;
mod refused;
mod sample_rate;
mod samples;
mod step;
mod stops;
#[cfg(test)]
mod tests;
mod timm;
mod torchtune;
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
use std::collections::BTreeMap;
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
    /// Whether its program logs each step: what is not there was lost.
    #[serde(skip)]
    pub logs_each_step: bool,
    /// Lines with the time of whole epochs, and no step.
    pub of_epochs: u64,
    /// Lines of PAX, which have the time of a step and not its number.
    pub of_pax: u64,
    /// Of a log without a step, how many lines are of trainings and are not read as steps, by the reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<&'static str, u64>,
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

/// How the first line of `torch_ddp.py` begins, which logs each step.
const OWN_HEAD: &str = "torch_ddp.py: PyTorch ";

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
        reader.is_own = reader.is_own || line.contains(OWN_HEAD);
        let plain = text::plain(line, begins);
        let of_any = reader.of_any;
        let mut parts = bar::drawn(&plain.text).into_iter().peekable();
        while let Some(text) = parts.next() {
            reader.take(text, &plain, &piece, parts.peek().is_none())?;
        }
        let is_step = reader.of_any > of_any;
        if is_step {
            reader.stops.step(piece.line);
        }
        reader.stops.line(line, piece.line, is_step);
    }
    for ended in std::mem::take(&mut reader.blocks).finish() {
        reader.take_block(ended)?;
    }
    let lines = pieces.lines();
    let Reader { steps, timers, stops, is_own, of_epochs, of_pax, mut refused, summary, .. } = reader;
    let Tally { gathered, mut findings, of_steps, garbled, garbled_losses } =
        if steps.of_steps > 0 { steps } else { timers };
    if garbled > MOST_LISTED {
        let more = text::count(garbled - MOST_LISTED, "more step line");
        let why = format!("{more} could not be read");
        findings.push(Finding::new("training-garbled", why));
    }
    let series = gathered.series();
    let logs_each_step = is_own || series.iter().any(|series| series.dialect.logs_each_step());
    if !series.is_empty() {
        refused.clear();
    }
    findings.extend(gather::findings(&series));
    findings.extend(trainer::unnumbered(&series, summary.as_ref()));
    findings.extend(stops.findings());
    Ok(TrainingLog {
        lines,
        of_steps,
        garbled,
        garbled_losses,
        logs_each_step,
        of_epochs,
        of_pax,
        refused,
        series,
        summary,
        findings,
    })
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
        const WORDS: [&str; 9] =
            ["teration", "Batch ", "step: ", "step ", "Step", "iter ", "Train: ", "poch", "%|"];
        if !WORDS.iter().any(|word| text.contains(word)) {
            return None;
        }
        let plain = text::plain(text, begins);
        let text = &*plain.text;
        let parsed = pipes::parse(text).or_else(|| parse_line(text));
        let parsed = parsed.or_else(|| self.bars.parse(&plain.tag, text));
        let step = parsed?.ok()?.step;
        // A line without a number may stand for several steps.
        (!step.is_counted).then_some(step.iteration)
    }
}

/// A step that a line holds by itself, of all programs but those with pipes.
fn parse_line(text: &str) -> Parsed {
    const ALL: [fn(&str) -> Parsed; 11] = [
        samples::fsdp,
        maxtext::parse,
        nanotron::parse,
        picotron::parse,
        nanogpt::parse,
        llmc::parse,
        torchtune::parse,
        timm::parse,
        samples::torchtitan,
        automodel::parse,
        bar::parse,
    ];
    ALL.iter().find_map(|parse| parse(text))
}

/// Whether a text begins as a line of a step does.
fn begins(text: &str) -> bool {
    const FIRST: [&str; 20] = [
        "iteration ",
        "samples/sec: ",
        "Training epoch",
        "Epoch ",
        "Batch ",
        "step:",
        "{'",
        "{\"current_steps\"",
        "Step Time",
        "step ",
        "| INFO | ",
        "completed step: ",
        "iteration: ",
        "Step: ",
        "iter ",
        "Step ",
        "Train: ",
        "Train ",
        "[batch=",
        "[epoch=",
    ];
    FIRST.iter().any(|word| text.trim_start().starts_with(word))
}

#[derive(Default)]
struct Reader {
    steps: Tally,
    /// Of DeepSpeed's timer and torchtune's bar, which are printed beside lines of steps: these count where there are none.
    timers: Tally,
    bars: trainer::Bars,
    records: records::Records,
    blocks: composer::Blocks,
    /// What Megatron-Bridge said before the line of a step.
    tflops: Option<f64>,
    summary: Option<TrainerSummary>,
    stops: stops::Stops,
    is_own: bool,
    /// Lines of steps, and of timers before the first one.
    of_any: u64,
    of_epochs: u64,
    of_pax: u64,
    refused: BTreeMap<&'static str, u64>,
}

/// The lines of steps, and what they hold.
#[derive(Default)]
struct Tally {
    gathered: Gathered,
    findings: Vec<Finding>,
    of_steps: u64,
    garbled: u64,
    garbled_losses: u64,
}

impl Tally {
    fn add(&mut self, reported: ReportedStep) -> io::Result<()> {
        self.of_steps += 1;
        self.gathered.add(reported)
    }

    fn garble(&mut self, line: u64, what: &str) {
        self.of_steps += 1;
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
        parse_line(text).or_else(|| self.records.parse(who, text)).or_else(|| self.bars.parse(who, text))
    }

    /// Takes in a line, or a part of it that may be a step of its own.
    fn take(&mut self, text: &str, plain: &text::Plain<'_>, piece: &Piece, is_last: bool) -> io::Result<()> {
        if let Some(ended) = self.blocks.take(&plain.tag, text, (piece.line, plain.moment_ms, piece.ended)) {
            self.take_block(ended)?;
        }
        let timer = deepspeed::parse(text).or_else(|| torchtune::drawn(text));
        let is_timer = timer.is_some();
        let parsed = match timer {
            Some(parsed) => Some(parsed),
            None if is_last || !bar::is_cut(text) => self.parse(&plain.tag, text),
            None => Some(Err(Garbled { what: "a bar that the next one was drawn over".to_owned() })),
        };
        if is_last
            && !piece.ended
            && !is_timer
            && let Some(Ok(_)) = &parsed
            && !text.trim_end().ends_with(['|', ']', '}'])
        {
            // A number may go on where the file ends.
            self.tally(false).garble(piece.line, "the file ends mid-line");
            return Ok(());
        }
        match parsed {
            None => {
                self.of_epochs += u64::from(is_of_epoch(text));
                self.of_pax += u64::from(text.contains("[PAX STATUS]: train_step() took "));
                if let Some(reason) = refused::reason(text) {
                    *self.refused.entry(reason).or_default() += 1;
                }
            }
            Some(Ok(reported)) => {
                let moment_ms = plain.moment_ms.or(reported.step.moment_ms);
                let step = StepLine { line: piece.line, moment_ms, ..reported.step };
                let who = plain.tag.clone();
                self.tally(is_timer).add(ReportedStep { dialect: reported.dialect, who, step })?;
            }
            Some(Err(Garbled { what })) => {
                let cut = if piece.too_long { ", in a line cut for its length" } else { "" };
                self.tally(is_timer).garble(piece.line, &format!("{what}{cut}"));
            }
        }
        Ok(())
    }

    fn take_block(&mut self, (line, block): composer::Ended) -> io::Result<()> {
        match block {
            Ok(reported) => self.tally(false).add(reported)?,
            Err(Garbled { what }) => self.tally(false).garble(line, &what),
        }
        Ok(())
    }

    /// Where a line of a step counts. Those of timers are not kept beside any other.
    fn tally(&mut self, is_timer: bool) -> &mut Tally {
        self.of_any += u64::from(!is_timer || self.steps.of_steps == 0);
        if !is_timer {
            self.timers = Tally::default();
            return &mut self.steps;
        }
        if self.steps.of_steps > 0 {
            self.timers = Tally::default();
        }
        &mut self.timers
    }
}
