//! Blocks of Composer's console logger, as LLM Foundry prints them: `[batch=20/100]:`, and behind it a line `Train key: value` for
//! each figure. Its rates are means of the last batches.

use super::numbers::{count, digits, number};
use super::step::{Dialect, Garbled, ReportedStep, StepLine};
use std::collections::BTreeMap;

/// No job has more ranks; what else is called so is not read.
const MOST_BLOCKS: usize = 1 << 16;

/// With four decimals, a smaller rate has fewer than three digits.
const LEAST_RATE: f64 = 0.01;

/// The blocks that go on, by who prints them.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    open: BTreeMap<String, Block>,
}

#[derive(Debug, Default)]
struct Block {
    /// Its line is that of the block's head.
    step: StepLine,
    /// The batch by the head, and that before it by a figure.
    batch: Option<u64>,
    before: Option<u64>,
    error: Option<Garbled>,
}

/// The line where a block begins, and what it holds.
pub(super) type Ended = (u64, Result<ReportedStep, Garbled>);

impl Blocks {
    /// The block that this line ends, because it begins the next one.
    pub(super) fn take(
        &mut self,
        who: &str,
        text: &str,
        (line, moment_ms, is_ended): (u64, Option<i64>, bool),
    ) -> Option<Ended> {
        let text = text.trim();
        if let Some(Head { epoch, batch, of }) = head(text) {
            let step = StepLine { line, epoch, of, moment_ms, ..StepLine::default() };
            let next = Block { step, batch, ..Block::default() };
            let ended = self.open.remove(who);
            if self.open.len() < MOST_BLOCKS {
                self.open.insert(who.to_owned(), next);
            }
            return ended.map(|block| block.finish(who));
        }
        let figure = text.strip_prefix("Train ")?;
        let block = self.open.get_mut(who)?;
        if let Err(error) = block.add(figure, is_ended) {
            block.error.get_or_insert(error);
        }
        None
    }

    /// The blocks that the end of the log ends.
    pub(super) fn finish(self) -> impl Iterator<Item = Ended> {
        self.open.into_iter().map(|(who, block)| block.finish(&who))
    }
}

/// What `[batch=20/100]:` and `[epoch=1][batch=5/90]:` say of the block. A length in tokens or samples counts no batches.
#[derive(Debug, Default)]
struct Head {
    epoch: Option<u64>,
    batch: Option<u64>,
    /// How many batches there are to be.
    of: Option<u64>,
}

fn head(text: &str) -> Option<Head> {
    let inside = text.strip_prefix('[')?.strip_suffix("]:")?;
    let mut head = Head::default();
    for part in inside.split("][") {
        let (name, value) = part.split_once('=')?;
        let (at, rest) = digits(value)?;
        match name {
            "epoch" => head.epoch = Some(at),
            "batch" => {
                head.batch = Some(at);
                head.of = rest.strip_prefix('/').and_then(digits).map(|(of, _)| of);
            }
            "token" | "sample" => {}
            _ => return None,
        }
    }
    Some(head)
}

impl Block {
    fn add(&mut self, figure: &str, is_ended: bool) -> Result<(), Garbled> {
        let Some((key, value)) = figure.split_once(": ") else { return Ok(()) };
        let step = &mut self.step;
        let of_key = |value: &str| number(key, value);
        let (place, value) = match key {
            "time/batch" => {
                self.before = Some(count(key, value)?);
                return Ok(());
            }
            "loss/train/total" => (&mut step.loss, of_key(value)?),
            "l2_norm/grad/global" => (&mut step.grad_norm, of_key(value)?),
            "throughput/samples_per_sec" => (&mut step.samples_per_s, of_key(value)?),
            "throughput/device/tokens_per_sec" => (&mut step.tokens_per_gpu_s, of_key(value)?),
            "throughput/device/flops_per_sec" => (&mut step.tflops_per_gpu, of_key(value)? / 1e12),
            "throughput/device/mfu" => (&mut step.mfu_percent, of_key(value)? * 100.0),
            "throughput/batches_per_sec" => {
                let rate = of_key(value)?;
                step.is_running_mean = true;
                if rate < LEAST_RATE {
                    return Ok(());
                }
                (&mut step.seconds, 1.0 / rate)
            }
            _ => return Ok(()),
        };
        if place.replace(value).is_some() {
            return Err(Garbled { what: format!("`{key}` twice in a block") });
        }
        match is_ended {
            true => Ok(()),
            // A number may go on where the file ends.
            false => Err(Garbled { what: "the file ends within a block".to_owned() }),
        }
    }

    fn finish(self, who: &str) -> Ended {
        let line = self.step.line;
        let who = who.to_owned();
        (line, self.into_step().map(|step| ReportedStep { dialect: Dialect::Composer, who, step }))
    }

    fn into_step(self) -> Result<StepLine, Garbled> {
        if let Some(error) = self.error {
            return Err(error);
        }
        // Of several epochs, the head counts those of its own.
        let in_all = self.batch.filter(|_| self.step.epoch.is_none());
        let by_figure = self.before.map(|before| before.saturating_add(1));
        if let (Some(batch), Some(other)) = (in_all, by_figure)
            && batch != other
        {
            return Err(Garbled {
                what: format!("block of batch {batch} with the figures of batch {other}"),
            });
        }
        let rates = [self.step.samples_per_s, self.step.tokens_per_gpu_s, self.step.tflops_per_gpu];
        let has_rate = self.step.is_running_mean || rates.iter().any(Option::is_some);
        match (self.batch.or(by_figure), self.step.loss.is_some() || has_rate) {
            (Some(iteration), true) => Ok(StepLine { iteration, is_running_mean: has_rate, ..self.step }),
            (None, _) => Err(Garbled { what: "a block without the number of its batch".to_owned() }),
            (_, false) => Err(Garbled { what: "a block without loss and throughput".to_owned() }),
        }
    }
}
