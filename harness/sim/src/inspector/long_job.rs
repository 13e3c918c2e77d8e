//! A training that goes on for hours, as its ranks' plugins record it: nodes in a grid, with communicators along its rows and
//! its columns for each GPU. What hits a link slows each communicator that uses it, for all its members.

use super::record::{self, Call, Member};
use crate::noise::{Noise, stream};
use metric::op::Op;

/// What happens to it from a second on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LongFault {
    /// The NIC of a GPU carries only this part.
    Nic {
        /// From 0 on.
        node: usize,
        /// Of the node.
        gpu: usize,
        /// Since the start.
        from_s: f64,
        /// Of its rate.
        factor: f64,
    },
    /// The process of a GPU comes to each call so much later.
    Late {
        /// From 0 on.
        node: usize,
        /// Of the node.
        gpu: usize,
        /// Since the start.
        from_s: f64,
        /// Microseconds.
        us: f64,
    },
    /// All calls take longer: a job that does something else, or a fabric that is shared.
    All {
        /// Since the start.
        from_s: f64,
        /// Of all rates.
        factor: f64,
    },
}

/// The job.
#[derive(Debug, Clone)]
pub struct LongJob {
    /// Of its noise.
    pub seed: u64,
    /// A multiple of `columns`.
    pub nodes: usize,
    /// Nodes in a row of the grid.
    pub columns: usize,
    /// GPUs of a node, with a process each.
    pub gpus: usize,
    /// Between two steps: in each, all rows gather and all columns reduce.
    pub step_s: f64,
    /// When it begins, in seconds since 1970.
    pub epoch_s: f64,
    /// What happens to it.
    pub faults: Vec<LongFault>,
}

/// A call of one rank, of which the text is not made yet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LongCall {
    /// Number of the process: nodes after each other.
    pub process: usize,
    /// Its hash.
    pub communicator: u64,
    /// In it.
    pub rank: usize,
    /// Of it.
    pub ranks: usize,
    /// `AllGather` along rows, `AllReduce` along columns.
    pub op: Op,
    /// Of the communicator and the operation.
    pub number: u64,
    /// As the caller gave it.
    pub bytes: u64,
    /// Of its kernel.
    pub us: u64,
    /// When it was written, in microseconds since 1970.
    pub at_us: u64,
}

const BYTES: u64 = 128 << 20;
/// What a rail of a node carries, in bytes a microsecond.
const RATE: f64 = 45e3;
/// Relative, of one call.
const SCATTER: f64 = 0.02;
/// Ranks come to a call apart by so many microseconds, on average.
const APART_US: f64 = 120.0;
/// Of so many calls one takes twice as long, as where a switch is busy.
const ONE_DOUBLED_OF: f64 = 200.0;
/// A checkpoint slows all calls: every so many seconds, for so long.
const CHECKPOINTS_S: (f64, f64) = (1800.0, 40.0);

impl LongJob {
    /// As the simulated nodes are called.
    pub fn host(&self, process: usize) -> String {
        format!("p5-{:03}", process / self.gpus + 1)
    }

    /// Of the process on its host.
    pub fn pid(&self, process: usize) -> u64 {
        70_000 + (process % self.gpus) as u64
    }

    /// All its processes.
    pub fn processes(&self) -> usize {
        self.nodes * self.gpus
    }

    /// Every call of the seconds from `from_s` up to `to_s`, whole steps, in the order of time.
    pub fn calls(&self, from_s: f64, to_s: f64, each: &mut dyn FnMut(&LongCall)) {
        let (first, last) = ((from_s / self.step_s).round() as u64, (to_s / self.step_s).round() as u64);
        let words = ["long job", &first.to_string()];
        let mut noise = stream(self.seed, &words);
        let rows = self.nodes / self.columns;
        for step in first..last {
            let now_s = step as f64 * self.step_s;
            for gpu in 0..self.gpus {
                for row in 0..rows {
                    let nodes: Vec<usize> =
                        (0..self.columns).map(|column| row * self.columns + column).collect();
                    let id = (1 << 40) + (gpu * rows + row) as u64;
                    self.call((id, Op::AllGather), &nodes, gpu, (step, now_s), &mut noise, each);
                }
                for column in 0..self.columns {
                    let nodes: Vec<usize> = (0..rows).map(|row| row * self.columns + column).collect();
                    let id = (1 << 41) + (gpu * self.columns + column) as u64;
                    self.call((id, Op::AllReduce), &nodes, gpu, (step, now_s), &mut noise, each);
                }
            }
        }
    }

    fn call(
        &self,
        (id, op): (u64, Op),
        nodes: &[usize],
        gpu: usize,
        (step, now_s): (u64, f64),
        noise: &mut Noise,
        each: &mut dyn FnMut(&LongCall),
    ) {
        let mut rate = noise.factor(SCATTER);
        if noise.fraction() * ONE_DOUBLED_OF < 1.0 {
            rate *= 0.5;
        }
        if now_s % CHECKPOINTS_S.0 >= CHECKPOINTS_S.0 - CHECKPOINTS_S.1 {
            rate *= 0.7;
        }
        let mut late_us = vec![0.0; nodes.len()];
        for fault in &self.faults {
            match *fault {
                LongFault::All { from_s, factor } if now_s >= from_s => rate *= factor,
                LongFault::Nic { node, gpu: of, from_s, factor } if now_s >= from_s && of == gpu => {
                    rate *= if nodes.contains(&node) { factor } else { 1.0 };
                }
                LongFault::Late { node, gpu: of, from_s, us } if now_s >= from_s && of == gpu => {
                    if let Some(at) = nodes.iter().position(|it| *it == node)
                        && let Some(late) = late_us.get_mut(at)
                    {
                        *late += us;
                    }
                }
                _ => {}
            }
        }
        for late in &mut late_us {
            *late -= APART_US * (1.0 - noise.fraction()).ln();
        }
        let last_us = late_us.iter().copied().fold(0.0, f64::max);
        let ranks = nodes.len();
        let steps =
            if op == Op::AllReduce { 2.0 } else { ranks as f64 } * (ranks as f64 - 1.0) / ranks as f64;
        let us = BYTES as f64 * steps / (RATE * rate);
        for ((rank, node), late) in nodes.iter().enumerate().zip(&late_us) {
            each(&LongCall {
                process: node * self.gpus + gpu,
                communicator: id,
                rank,
                ranks,
                op,
                number: step,
                bytes: BYTES,
                us: (us + last_us - late) as u64,
                // Each thread writes at a moment of its own.
                at_us: ((self.epoch_s + now_s + (node % 10) as f64 * 0.1) * 1e6) as u64,
            });
        }
    }

    /// The line of a call, in the form of v4.2, with the marker before it.
    pub fn line(&self, call: &LongCall, text: &mut String) {
        let host = self.host(call.process);
        let member = Member {
            id: call.communicator,
            rank: call.rank as u32,
            ranks: call.ranks as u32,
            nodes: call.ranks as u32,
            host: &host,
            pid: self.pid(call.process),
        };
        let coll = if call.op == Op::AllReduce { "AllReduce" } else { "AllGather" };
        record::marker(text, &member, call.at_us, 1, (0, 0));
        let line = Call { coll, op: call.op, number: call.number, bytes: call.bytes, us: call.us };
        record::call(text, &member, call.at_us, &line);
    }
}
