//! What NCCL reports by its RAS of a job that runs, in the form of 2.27: a text, in which only ranks that differ from most are
//! listed. Counts are of operations that the host launched; sends and receives are not counted.

use super::active_faults::{Differs, Ending};
use super::cluster::Cluster;
use super::execution::Execution;
use super::nccl;
use super::work::{Work, noise_of};
use metric::op::Op;
use std::fmt::Write;

/// Two reports of the same moments, some seconds apart; nothing where no communicator is there yet.
pub(crate) fn reports(cluster: &Cluster, execution: &Execution, run_s: f64) -> Option<String> {
    let job = Job::new(cluster, execution).filter(|_| run_s >= execution.work_from_s)?;
    let launched = |at_s: f64| {
        let worked_s = at_s.min(execution.work_to_s) - execution.work_from_s;
        1000 + (worked_s * 20.0) as u64
    };
    Some(format!("{}\n{}\n", job.report(launched(run_s)), job.report(launched(run_s + 3.0))))
}

/// The address of a node of a job, the one that NCCL's log has.
pub(crate) fn address(node: usize) -> String {
    format!("10.0.0.{}", node % 250 + 1)
}

/// The ranks of a job, in communicators of one size side by side.
struct Job {
    nodes: usize,
    per_node: u64,
    /// How many communicators.
    side_by_side: u64,
    operation: Option<&'static str>,
    /// They launched one operation less.
    behind: Vec<u64>,
    /// They launched another one instead.
    elsewhere: Vec<u64>,
    first_pid: u64,
    id: u64,
}

impl Job {
    fn new(cluster: &Cluster, execution: &Execution) -> Option<Job> {
        let faults = &execution.active_faults;
        let (per_node, side_by_side, operation, what) = match (&execution.training, &execution.work) {
            (Some(training), _) => (training.ranks_per_node, 1, Some("AllReduce"), "pids".to_owned()),
            (None, Work::Tables(tables)) => {
                let [table] = tables.as_slice() else { return None };
                let what = format!("pid{:?}{:?}", table.world.nodes, table.world.gpu);
                let side_by_side = table.world.group.side_by_side.max(1);
                (table.world.per_node, side_by_side, counted(table.options.op), what)
            }
            _ => return None,
        };
        let per_node = u64::from(per_node);
        let of = |(node, rank): (usize, u32)| node as u64 * per_node + u64::from(rank);
        let all_of = |node: usize| (0..per_node).map(|rank| node as u64 * per_node + rank).collect();
        let odd = faults.odd_call();
        // Who calls with another size launches as many operations as all others: their counts are equal.
        let elsewhere = odd.filter(|odd| odd.differs_in == Differs::Operation);
        let behind = match faults.ending {
            _ if odd.is_some() => Vec::new(),
            // Of a training one rank stops, the one that the flight recorder misses as well.
            Some((Ending::Hang, node)) if execution.training.is_some() => {
                vec![of((node, super::flight_recorder::stopped(cluster, execution)))]
            }
            Some((Ending::Hang, node)) => all_of(node),
            Some((Ending::Desync, node)) => vec![of(faults.desync().unwrap_or((node, 0)))],
            _ => Vec::new(),
        };
        let first_pid = nccl::first_pid(&mut noise_of(cluster, &execution.case, &execution.job, &what));
        let mut noise = noise_of(cluster, &execution.case, &execution.job, "ras");
        Some(Job {
            nodes: execution.nodes.len(),
            per_node,
            side_by_side: u64::from(side_by_side),
            operation,
            behind,
            elsewhere: elsewhere.into_iter().map(|odd| of((odd.node, odd.rank))).collect(),
            first_pid,
            id: noise.whole() | 1 << 60,
        })
    }

    fn ranks(&self) -> u64 {
        self.nodes as u64 * self.per_node
    }

    /// Those of one communicator, by their number in it.
    fn own<'a>(&'a self, which: u64, all: &'a [u64]) -> Vec<(u64, u64)> {
        let of_it = all.iter().filter(|rank| *rank % self.side_by_side == which);
        of_it.map(|rank| (rank / self.side_by_side, *rank)).collect()
    }

    fn report(&self, launched: u64) -> String {
        let size = self.ranks() / self.side_by_side;
        let (nodes, per_node, ranks) = (self.nodes, self.per_node, self.ranks());
        let mut details = String::new();
        let mut odd = 0;
        for which in 0..self.side_by_side {
            let mut counts = String::new();
            if let Some(operation) = self.operation {
                let behind = self.own(which, &self.behind);
                self.differing(operation, (size, &behind), (launched, launched - 1), &mut counts);
                let elsewhere = self.own(which, &self.elsewhere);
                self.differing(operation, (size, &elsewhere), (launched, launched - 1), &mut counts);
                self.differing("AllGather", (size, &elsewhere), (40, 41), &mut counts);
            }
            if !counts.is_empty() {
                let hash = self.id.rotate_left(which as u32);
                // Infallible: writing to a string.
                let _ = writeln!(details, "\n#0-{odd} ({hash:016x}) MISMATCH\n{}", counts.trim_end());
                odd += 1;
            }
        }
        let of_node = per_node / self.side_by_side.min(per_node).max(1);
        let line = |group: u64, comms: u64, errors: &str| {
            format!(
                "{group:5}{comms:10}{nodes:10}{of_node:10}{size:10}{:10}   RUNNING  {errors}\n",
                comms * size
            )
        };
        let (fine, version) = (self.side_by_side - odd, crate::software::NCCL);
        let mut table = if odd > 0 { line(0, odd, "MISMATCH") } else { String::new() };
        if fine > 0 {
            table.push_str(&line(u64::from(odd > 0), fine, "OK"));
        }
        format!(
            "NCCL version {version} compiled with CUDA 12.9\nCUDA runtime version 12090, driver version 12090\n\n\
             Job summary\n===========\n\n  Nodes  Processes         GPUs  Processes     GPUs\n\
             (total)   per node  per process    (total)  (total)\n{nodes:7}{per_node:11}{:13}{ranks:11}{ranks:9}\n\n\
             Communicators... (0.00s)\n=============\n\n\
             Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n    \
             #  in group  per comm  per node  per comm  in group\n{table}\n\
             Errors\n======\n\nWarnings\n========\n{details}",
            1
        )
    }

    /// Ranks of one communicator that launched another number than its others. Half of them or more are not listed.
    fn differing(
        &self,
        operation: &str,
        (size, few): (u64, &[(u64, u64)]),
        (most, other): (u64, u64),
        text: &mut String,
    ) {
        if few.is_empty() {
            return;
        }
        let ranks = few.len() as u64;
        let _ = writeln!(text, "  Communicator ranks have different {operation} operation counts");
        let _ = writeln!(text, "  {} ranks have launched up to operation {most}", size - ranks);
        let place = |rank: u64| {
            let (node, gpu) = (rank / self.per_node, rank % self.per_node);
            let (pid, address) = (self.first_pid + rank, address(node as usize));
            format!("GPU {gpu} managed by process {pid} on node {address}")
        };
        if let [(own, rank)] = few {
            let place = place(*rank);
            let _ = writeln!(text, "  Rank {own} has launched up to operation {other} -- {place}");
            return;
        }
        let _ = writeln!(text, "  {ranks} ranks have launched up to operation {other}");
        for (own, rank) in few.iter().filter(|_| ranks * 2 < size) {
            let _ = writeln!(text, "  Rank {own} -- {}", place(*rank));
        }
    }
}

/// How RAS names what an operation of nccl-tests calls; what is made of sends and receives has no count.
fn counted(op: Op) -> Option<&'static str> {
    match op {
        Op::AllReduce => Some("AllReduce"),
        Op::AllGather => Some("AllGather"),
        Op::ReduceScatter => Some("ReduceScatter"),
        Op::Broadcast => Some("Broadcast"),
        Op::Reduce => Some("Reduce"),
        _ => None,
    }
}
