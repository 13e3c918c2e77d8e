//! Reads what gpu-burn prints: a line of progress that it writes over and over, with the rate and the errors of each GPU,
//! and at its end `GPU 3: OK`. A GPU that died in between counts -1 operations; its closing line says nothing of that.

use super::NoResult;
use crate::stream::Pieces;
use std::io::{self, BufRead};

/// What one run of gpu-burn measured, by GPU in CUDA's order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Burn {
    /// From 0 on.
    pub gpus: Vec<Gpu>,
    /// The first line of a process that could not begin or go on: the closing lines say `OK` all the same.
    pub error: Option<String>,
}

/// What one GPU did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gpu {
    /// Mean rate in Gflop/s for each hundredth of the run, 0 where it finished nothing while others did; nothing where
    /// that is not known.
    pub rates: Vec<Option<f64>>,
    /// Products that came out wrong; of a process that died the count says nothing.
    pub errors: u64,
    /// A count of wrong products was negative, or not a number behind a warning: `errors` is too low.
    pub overflowed: bool,
    /// Its process ended before the others.
    pub died: bool,
    /// The hundredth of the run behind which it finished nothing, while others did to the end.
    pub stopped: Option<usize>,
    /// By its closing line; nothing where that is missing.
    pub ok: Option<bool>,
    tally: Vec<(f64, u32)>,
    last_errors: u64,
    done: i64,
}

impl Gpu {
    /// Whether it finished anything at all.
    pub fn computed(&self) -> bool {
        self.rates.iter().flatten().any(|rate| *rate > 0.0)
    }

    /// Whether products came out wrong.
    pub fn is_wrong(&self) -> bool {
        self.errors > 0 || self.overflowed
    }

    /// How many products came out wrong, for a message.
    pub fn wrong_products(&self) -> String {
        match (self.overflowed, self.errors) {
            (true, 0) => "more products than gpu-burn can count".to_owned(),
            (true, errors) => format!("more than {errors} products"),
            (false, errors) => format!("{errors} products"),
        }
    }
}

/// Parts of a run over which rates are averaged.
pub const PARTS: usize = 100;
const MOST_GPUS: usize = 64;
/// Beginnings of lines by which a process gives up.
const ERRORS: [&str; 2] = ["Couldn't init", "Failure during "];
/// A GPU that finished nothing for so many parts stands still, if another finished so much in them.
const STILL: usize = 5;
const BUSY: u32 = 3;
/// By how many hundredths of a run a clock that is set may put its progress back.
const CLOCK_SLACK: f64 = 2.0;

/// Reads an output as a stream.
pub fn read(from: impl BufRead) -> io::Result<Result<Burn, NoResult>> {
    let mut pieces = Pieces::new(from);
    let mut burn = Burn::default();
    let (mut is_closing, mut last) = (false, None);
    let (mut reached, mut has_restarted) = (0.0_f64, false);
    while let Some(piece) = pieces.next_piece()? {
        let text = piece.plain();
        let text = text.trim();
        if let Some((at, rest)) = progress(text) {
            has_restarted |= is_closing || at + CLOCK_SLACK < reached;
            reached = reached.max(at);
            // Where its process was ended in the middle of a line, the numbers of that line are cut.
            if piece.ended && !piece.too_long {
                burn.take(at, rest);
            }
        } else if text.starts_with("Tested ") && text.ends_with(" GPUs:") {
            is_closing = true;
        } else if let Some((gpu, ok)) = closing(text).filter(|_| is_closing) {
            let gpu = burn.gpu(gpu);
            gpu.ok = Some(ok && gpu.ok.unwrap_or(true));
        } else if !text.is_empty() {
            let line = text.chars().take(200).collect::<String>();
            if ERRORS.iter().any(|error| line.starts_with(error)) {
                burn.error.get_or_insert_with(|| line.clone());
            }
            last = Some(line);
        }
    }
    // Closing lines of one run say nothing of another.
    if has_restarted {
        return Ok(Err("gpu-burn's progress goes back: it ran more than once".to_owned()));
    }
    burn.finish();
    Ok(match burn.gpus.iter().any(|gpu| gpu.ok.is_some() || gpu.computed()) {
        true => Ok(burn),
        false => Err(match last {
            Some(line) => format!("gpu-burn measured nothing; its last line: {line}"),
            None => "gpu-burn printed nothing".to_owned(),
        }),
    })
}

impl Burn {
    fn gpu(&mut self, gpu: usize) -> &mut Gpu {
        if self.gpus.len() <= gpu {
            self.gpus.resize_with(gpu + 1, Gpu::default);
        }
        &mut self.gpus[gpu]
    }

    /// `10 (500 Gflop/s) - 9 (490 Gflop/s)   errors: 0 - 3  (WARNING!)- 0   temps: ...`: between two GPUs stands `- `.
    fn take(&mut self, percent: f64, rest: &str) {
        let (rates, rest) = rest.split_once("errors:").unwrap_or((rest, ""));
        let errors = rest.split("temps:").next().unwrap_or_default();
        let rates: Vec<&str> = rates.split("- ").take(MOST_GPUS).collect();
        let errors: Vec<&str> = errors.split("- ").take(MOST_GPUS).collect();
        // Whose errors they are is known only where each GPU has an entry.
        let has_errors = errors.len() == rates.len();
        for (gpu, part) in rates.iter().enumerate() {
            let gpu = self.gpu(gpu);
            let Some(done) = part.split_whitespace().next().and_then(|done| done.parse::<i64>().ok()) else {
                continue;
            };
            if done == -1 {
                gpu.died = true;
                continue;
            }
            let rate = part.split_once('(').and_then(|(_, rate)| rate.split_whitespace().next());
            let Some(rate) = rate.and_then(|rate| rate.parse::<f64>().ok()) else { continue };
            // A GPU that finished nothing since the line before keeps its last rate there.
            if done != gpu.done && rate.is_finite() && rate > 0.0 {
                gpu.tally.resize(PARTS, (0.0, 0));
                let (sum, count) = &mut gpu.tally[(percent as usize).min(PARTS - 1)];
                (*sum, *count) = (*sum + rate, count.saturating_add(1));
            }
            gpu.done = done;
        }
        for (gpu, part) in errors.iter().enumerate().filter(|_| has_errors) {
            let gpu = self.gpu(gpu);
            gpu.died |= part.contains("DIED");
            if gpu.died {
                continue;
            }
            let count = part.split_whitespace().next().and_then(|count| count.parse::<i64>().ok());
            // The counter has 32 bits, and turns negative; the warning stands behind whatever it shows.
            let Some(count) = count.and_then(|count| u64::try_from(count).ok()) else {
                gpu.overflowed |= count.is_some() || part.contains("WARNING");
                continue;
            };
            gpu.overflowed |= count == 0 && part.contains("WARNING");
            // It counts from 0 again after each summary.
            if count < gpu.last_errors {
                gpu.errors = gpu.errors.saturating_add(gpu.last_errors);
            }
            gpu.last_errors = count;
        }
    }

    fn finish(&mut self) {
        let count = |gpu: &Gpu, parts: std::ops::Range<usize>| -> u32 {
            let counts = gpu.tally.get(parts).into_iter().flatten().map(|(_, count)| *count);
            counts.fold(0, u32::saturating_add)
        };
        let around = |part: usize| part.saturating_sub(STILL / 2)..(part + STILL / 2 + 1).min(PARTS);
        let busiest: Vec<u32> = (0..PARTS)
            .map(|part| self.gpus.iter().map(|gpu| count(gpu, around(part))).max().unwrap_or_default())
            .collect();
        for gpu in &mut self.gpus {
            gpu.errors = gpu.errors.saturating_add(gpu.last_errors);
            gpu.tally.resize(PARTS, (0.0, 0));
            let rate = |part: usize| match gpu.tally[part] {
                (sum, n) if n > 0 => Some(sum / f64::from(n)),
                _ => (count(gpu, around(part)) == 0 && busiest[part] >= BUSY).then_some(0.0),
            };
            gpu.rates = (0..PARTS).map(rate).collect();
            let last = gpu.tally.iter().rposition(|(_, n)| *n > 0);
            let still = last.map_or(0..0, |last| last + 1..PARTS);
            let is_still = still.len() >= STILL && still.clone().any(|part| gpu.rates[part] == Some(0.0));
            gpu.stopped = last.filter(|_| is_still);
            (gpu.tally, gpu.last_errors, gpu.done) = (Vec::new(), 0, 0);
        }
    }
}

/// `50.0%  proc'd: ...`.
fn progress(text: &str) -> Option<(f64, &str)> {
    let (percent, rest) = text.split_once("%  proc'd:")?;
    let percent = percent.trim().parse::<f64>().ok().filter(|percent| (0.0..=100.0).contains(percent))?;
    Some((percent, rest))
}

/// `GPU 3: FAULTY`.
fn closing(text: &str) -> Option<(usize, bool)> {
    let (gpu, word) = text.strip_prefix("GPU ")?.split_once(": ")?;
    let gpu = gpu.parse().ok().filter(|gpu| *gpu < MOST_GPUS)?;
    match word {
        "OK" => Some((gpu, true)),
        "FAULTY" => Some((gpu, false)),
        _ => None,
    }
}
