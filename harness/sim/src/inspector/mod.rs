//! NCCL's Inspector in a job of nccl-tests: what its thread wrote for each process by the end of the job, as the script
//! puts it into one text. Only the thread writes: what came after its last period is lost, and so is what its ring
//! could not hold.

mod long_job;
mod record;
#[cfg(test)]
mod tests;

pub use long_job::{LongCall, LongFault, LongJob};

use super::cluster::Cluster;
use super::inspector_wanted::Plugin;
use super::mangled::mangle;
use super::nccl;
use super::over::{How, Over};
use super::work::{Table, Work, noise_of};
use job::inspector::LIMIT;
use job::script::SIMULATED;
use metric::op::Op;
use record::{Call, Member};
use std::collections::{BTreeMap, VecDeque};

/// What the script left, if it came so far.
pub(crate) fn file(cluster: &Cluster, epoch_s: f64, over: &Over) -> Option<String> {
    let execution = &over.execution;
    let plugin = execution.inspector.as_ref()?;
    if !matches!(over.how, How::Exit(_)) {
        return None;
    }
    let mut text = format!("harness-inspector 1\n{SIMULATED} records of NCCL's Inspector\n");
    for (name, value) in &plugin.settings {
        text.push_str(&format!("== set {name}={value}\n"));
    }
    let mut processes = BTreeMap::new();
    if let (Work::Tables(tables), Some(interval_s)) = (&execution.work, plugin.interval_s) {
        for table in tables {
            let what = format!("pid{:?}{:?}", table.world.nodes, table.world.gpu);
            let mut noise = noise_of(cluster, &execution.case, &execution.job, &what);
            let first_pid = nccl::first_pid(&mut noise);
            let stop_s = execution.work_to_s.min(over.run_s) - execution.work_from_s;
            let dumps =
                Dumps { plugin, interval_s, epoch_s: epoch_s + over.start_s + execution.work_from_s, stop_s };
            let id = 0x9d00_0000_0000_0000 | (noise.whole() >> 8);
            for rank in 0..table.ranks {
                let node = table.world.nodes.start + (rank / table.world.per_node.max(1)) as usize;
                let faults = &execution.active_faults;
                if faults.output_missing(node) || faults.lacks_inspector(node) {
                    continue;
                }
                let host =
                    execution.nodes.get(node).map_or("", |node| node.split('.').next().unwrap_or(node));
                let pid = first_pid + u64::from(rank / table.options.gpus.max(1));
                let written = dumps.rank(table, (host, pid), (id, rank));
                let bytes = match execution.active_faults.garbled(node) {
                    true => String::from_utf8_lossy(&mangle(written.into_bytes())).into_owned(),
                    false => written,
                };
                processes.entry(format!("{host}-pid{pid}.log")).or_insert_with(String::new).push_str(&bytes);
            }
        }
    }
    let part = LIMIT as usize / processes.len().max(1);
    for (name, bytes) in processes {
        let taken = bytes.get(..part.min(bytes.len())).unwrap_or(&bytes);
        text.push_str(&format!("== file {name} {} {}\n{taken}\n", bytes.len(), taken.len()));
    }
    text.push_str("== end\n");
    Some(text)
}

/// The writings of one job's threads.
struct Dumps<'a> {
    plugin: &'a Plugin,
    interval_s: f64,
    /// Of the first call.
    epoch_s: f64,
    /// When the program was stopped, in seconds from its first call.
    stop_s: f64,
}

impl Dumps<'_> {
    /// All that is written of one rank.
    fn rank(&self, table: &Table, (host, pid): (&str, u64), (id, rank): (u64, u32)) -> String {
        let Some(coll) = name(table.options.op) else { return String::new() };
        let group = table.world.group;
        let groups = group.side_by_side.max(1);
        let member = Member {
            id: id + u64::from(rank % groups),
            rank: rank / groups,
            ranks: group.ranks,
            nodes: group.nodes,
            host,
            pid,
        };
        let own_late =
            table.late.iter().filter(|(late, _)| *late == rank).map(|(_, us)| *us).fold(0.0, f64::max);
        let mut text = String::new();
        let mut kept: VecDeque<Call> = VecDeque::new();
        let (mut dropped, mut dropped_before) = (0_u64, 0_u64);
        let mut next_s = self.interval_s;
        let mut number = 0_u64;
        let mut write = |at_s: f64, kept: &mut VecDeque<Call>, dropped: u64| {
            if kept.is_empty() && dropped == dropped_before {
                return;
            }
            let at_us = ((self.epoch_s + at_s) * 1e6) as u64;
            record::marker(&mut text, &member, at_us, kept.len(), (dropped, dropped - dropped_before));
            kept.drain(..).for_each(|call| record::call(&mut text, &member, at_us, &call));
            dropped_before = dropped;
        };
        for round in table.rounds() {
            let operations = round.operations();
            let each_us = round.seconds() * 1e6 / f64::from(operations.max(1));
            for done in 1..=operations {
                let end_s = round.from_s + f64::from(done) * each_us * 1e-6;
                if end_s > self.stop_s {
                    break;
                }
                while next_s < end_s {
                    write(next_s, &mut kept, dropped);
                    // Nothing happens in a long pause.
                    let periods = ((end_s - next_s) / self.interval_s).floor().max(0.0);
                    next_s += self.interval_s * (periods + 1.0);
                }
                let bytes = round.count * table.options.element_bytes();
                number += 1;
                if bytes < self.plugin.min_bytes {
                    continue;
                }
                if kept.len() == self.plugin.ring {
                    kept.pop_front();
                    dropped += 1;
                }
                // Who comes late waits least in its kernel.
                let us = (each_us - own_late).max(1.0) as u64;
                kept.push_back(Call { coll, op: table.options.op, number: number - 1, bytes, us });
            }
        }
        text
    }
}

/// As the plugin calls a collective.
fn name(op: Op) -> Option<&'static str> {
    Some(match op {
        Op::AllReduce => "AllReduce",
        Op::AllGather => "AllGather",
        Op::ReduceScatter => "ReduceScatter",
        Op::Broadcast => "Broadcast",
        Op::Reduce => "Reduce",
        _ => return None,
    })
}
