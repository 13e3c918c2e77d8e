//! The texts that a workload leaves behind: nccl-tests tables, flow outputs, and what srun says when things go wrong.

use super::fault::Fault;
use super::slurm::{Job, State};
use super::work::{BROKEN_AT, Ending, Kind, Nccl, Setting, Work};
use crate::script::{Flows, files};
use recipes::op::Op;
use recipes::source::flow_log::{Flow, Tool, render};
use std::fmt::Write;

/// The file of that name, if the job has left it by now.
pub fn file(job: &Job, name: &str, setting: &Setting) -> Option<Vec<u8>> {
    let State::Ended { since, word, .. } = &job.state else { return None };
    (*since)?;
    let work = &job.work;
    let nodes = &job.script.nodes;
    if name == files::STDERR || name == files::BATCH_ERR {
        return Some(
            if name == files::STDERR { complaints(work, nodes, word) } else { String::new() }.into_bytes(),
        );
    }
    if name == files::BATCH_OUT || name == files::SAMPLER_LOG {
        return Some(Vec::new());
    }
    let is_workloads = match &work.kind {
        Kind::Nccl(_) | Kind::Command { .. } => name == files::STDOUT,
        Kind::Gpus(_) => name.starts_with("gpu"),
        Kind::Flows(_) => name.ends_with(".out"),
    };
    if !is_workloads || work.has(|fault| *fault == Fault::OutputMissing).is_some() {
        return None;
    }
    let text = match &work.kind {
        Kind::Command { stdout, .. } => stdout.clone(),
        Kind::Nccl(nccl) => collective(nccl, work, nodes, setting),
        Kind::Gpus(nccl) => one_gpu(nccl, work, nodes, name, setting)?,
        Kind::Flows(flows) => flow(flows, work, name, setting)?,
    };
    let mut bytes = text.into_bytes();
    if work.has(|fault| *fault == Fault::Garbled).is_some() {
        garble(&mut bytes);
    }
    Some(bytes)
}

/// Mangled in transit: digits and separators alike are no longer what they were.
fn garble(bytes: &mut [u8]) {
    for (at, byte) in bytes.iter_mut().enumerate() {
        if at % 3 != 0 && *byte != b'\n' {
            *byte = b'?' + (*byte % 13);
        }
    }
}

fn complaints(work: &Work, nodes: &[String], word: &str) -> String {
    let task = |node: &str| nodes.iter().position(|name| name == node).unwrap_or(0) * 8 + 1;
    let mut text = String::new();
    for fault in &work.faults {
        let node = &fault.node;
        let _ = match fault.fault {
            Fault::RankDies => {
                writeln!(
                    text,
                    "srun: error: {node}: task {}: Killed\nsrun: Terminating StepId=1001.0",
                    task(node)
                )
            }
            Fault::NodeFails => writeln!(text, "srun: error: Node failure on {node}"),
            Fault::DiskFull => writeln!(
                text,
                "{node}: write: No space left on device\nsrun: error: {node}: task {}: Exited with exit code 1",
                task(node)
            ),
            _ => Ok(()),
        };
    }
    if word == "TIMEOUT" || (work.ending == Ending::Hangs && word == "CANCELLED") {
        let first = nodes.first().map(String::as_str).unwrap_or_default();
        let _ = writeln!(
            text,
            "slurmstepd: error: *** STEP 1001.0 ON {first} CANCELLED AT 2030-01-01T00:00:00 ***"
        );
    }
    text
}

fn collective(nccl: &Nccl, work: &Work, nodes: &[String], setting: &Setting) -> String {
    let machine = setting.machine;
    if work.has(|fault| *fault == Fault::WrongRanks).is_some() {
        // Every rank found a world of its own half: one table of half the ranks.
        let ranks = (nodes.len() as u32 * machine.gpus / 2).max(1);
        let listed: Vec<(String, u32)> =
            listed(nodes, machine.gpus).into_iter().take(ranks as usize).collect();
        return table(nccl, &listed, ranks, work, 0.0, setting.noise(&["wrong"]).factor(0.01), &|size| {
            machine.time_us(nccl.op, nodes.len() as u32, size, work.slowest())
        });
    }
    let ranks = nodes.len() as u32 * machine.gpus;
    let wrong = if work.has(|fault| matches!(fault, Fault::Corrupt { .. })).is_some() { 4096.0 } else { 0.0 };
    let noise = setting.noise(&["rows"]).factor(0.01);
    table(nccl, &listed(nodes, machine.gpus), ranks, work, wrong, noise, &|size| {
        machine.time_us(nccl.op, nodes.len() as u32, size, work.slowest())
    })
}

fn listed(nodes: &[String], gpus: u32) -> Vec<(String, u32)> {
    nodes.iter().flat_map(|node| (0..gpus).map(move |gpu| (node.clone(), gpu))).collect()
}

fn one_gpu(nccl: &Nccl, work: &Work, nodes: &[String], name: &str, setting: &Setting) -> Option<String> {
    let (gpu, node) = name
        .strip_prefix("gpu")?
        .strip_suffix(".out")
        .or(name.strip_prefix("gpu")?.strip_suffix(".err"))?
        .split_once('.')?;
    if name.ends_with(".err") {
        return Some(String::new());
    }
    let gpu: u32 = gpu.parse().ok()?;
    nodes.iter().find(|known| *known == node)?;
    let of_gpu = |fault: &&super::fault::NodeFault| fault.node == node && fault.fault.gpu() == Some(gpu);
    let left = work.faults.iter().filter(of_gpu).find_map(|fault| match fault.fault {
        Fault::GpuSlow { left, .. } => Some(left),
        _ => None,
    });
    let wrong = work.faults.iter().filter(of_gpu).any(|fault| matches!(fault.fault, Fault::Corrupt { .. }));
    let of_node = |wanted: Fault| work.faults.iter().any(|fault| fault.node == node && fault.fault == wanted);
    let ranks = if of_node(Fault::WrongRanks) { 2 } else { 1 };
    let listed: Vec<(String, u32)> = (0..ranks).map(|more| (node.to_owned(), gpu + more)).collect();
    let noise = setting.noise(&["gpu", name]).factor(0.008);
    let wrong = if wrong { 4096.0 } else { 0.0 };
    Some(table(nccl, &listed, ranks, work, wrong, noise, &|size| {
        setting.machine.own_memory_us(size, left.unwrap_or(1.0))
    }))
}

/// nccl-tests' own text, as it prints it since 2.17.3.
fn table(
    nccl: &Nccl,
    listed: &[(String, u32)],
    ranks: u32,
    work: &Work,
    wrong: f64,
    noise: f64,
    time_us: &dyn Fn(u64) -> f64,
) -> String {
    let mut text = String::with_capacity(8192);
    let min = nccl.sizes.first().copied().unwrap_or_default();
    let max = nccl.sizes.last().copied().unwrap_or_default();
    let _ = write!(
        text,
        "# nccl-tests version 2.17.6 nccl-headers=22809 nccl-library=22809\n\
         # Collective test starting: {program}\n\
         # nThread 1 nGpus 1 minBytes {min} maxBytes {max} step: {step} warmup iters: {warmup} iters: {iters} agg iters: 1 validation: {check} graph: 0\n\
         #\n# Using devices\n",
        program = nccl.program,
        step = nccl.step,
        warmup = nccl.warmup,
        iters = nccl.iterations,
        check = u8::from(nccl.check),
    );
    for (rank, (node, gpu)) in listed.iter().enumerate() {
        let pid = 40_000 + rank;
        let bus = 0x53 + 0x11 * gpu;
        let _ = writeln!(
            text,
            "#  Rank {rank:2} Group  0 Pid {pid:6} on {node:>10} device {gpu:2} [0000:{bus:02x}:00] NVIDIA GPU"
        );
    }
    let time = "time";
    let _ = write!(
        text,
        "#\n#{:>65}{:>37}\n#{:>11}{:>14}{:>10}{:>8}{:>8}{time:>9}{:>8}{:>8}{:>7}{time:>9}{:>8}{:>8}{:>7}\n",
        "out-of-place",
        "in-place",
        "size",
        "count",
        "type",
        "redop",
        "root",
        "algbw",
        "busbw",
        "#wrong",
        "algbw",
        "busbw",
        "#wrong"
    );
    let _ = writeln!(
        text,
        "#{:>11}{:>14}{:>26}{:>9}{:>8}{:>8}{:>16}{:>8}{:>8}",
        "(B)", "(elements)", "", "(us)", "(GB/s)", "(GB/s)", "(us)", "(GB/s)", "(GB/s)"
    );
    let stops =
        if work.breaks_off() { (nccl.sizes.len() as f64 * BROKEN_AT) as usize } else { nccl.sizes.len() };
    let mut sum = 0.0;
    for size in nccl.sizes.iter().take(stops) {
        sum += row(&mut text, nccl, *size, ranks, wrong, noise, time_us);
    }
    if work.breaks_off() {
        return text;
    }
    let verdict = if wrong > 0.0 { format!("{} FAILED", nccl.sizes.len() * 2) } else { "0 OK".to_owned() };
    let average = sum / (2 * nccl.sizes.len().max(1)) as f64;
    let _ = write!(
        text,
        "# Out of bounds values : {verdict}\n# Avg bus bandwidth    : {average:.4} \n#\n# Collective test concluded: {}\n#\n\n",
        nccl.program
    );
    text
}

/// One row, out of place and in place; gives the sum of its two bus bandwidths.
fn row(
    text: &mut String,
    nccl: &Nccl,
    size: u64,
    ranks: u32,
    wrong: f64,
    noise: f64,
    time_us: &dyn Fn(u64) -> f64,
) -> f64 {
    let op = nccl.op;
    let per_rank = !matches!(op, Op::AllReduce | Op::Broadcast | Op::Reduce | Op::SendRecv);
    // Counts per rank are rounded down to 16 bytes.
    let each = size / u64::from(ranks) / 16 * 16;
    let (size, count) = if per_rank { (each * u64::from(ranks), each / 4) } else { (size, size / 4) };
    let redop = if matches!(op, Op::AllReduce | Op::Reduce | Op::ReduceScatter) { "sum" } else { "none" };
    let root = if matches!(op, Op::Broadcast | Op::Reduce | Op::Gather | Op::Scatter) { 0 } else { -1 };
    let _ = write!(text, "{size:>12}{count:>14}{:>10}{redop:>8}{root:>8}", nccl.dtype);
    let mut sum = 0.0;
    // In place is a little faster, and has its own noise from the size alone: rows of one run lie on one curve.
    for (at, place) in [1.0, 0.997].into_iter().enumerate() {
        let wiggle = 1.0 + 0.002 * (((size.trailing_zeros() as usize + at * 3) % 5) as f64 / 5.0 - 0.4);
        let time = time_us(size) * noise * place * wiggle;
        let printed: f64 = fit(time).parse().unwrap_or(time);
        let algbw = op.algbw_gb_s(size, ranks, printed);
        let busbw = algbw * op.bus_factor(ranks);
        sum += busbw;
        let bad = match (op, at, nccl.check) {
            (_, _, false) | (Op::AllToAll, 1, _) => "N/A".to_owned(),
            _ => format!("{wrong:.0}"),
        };
        let _ = write!(text, "{:>9}{algbw:>8.2}{busbw:>8.2}{bad:>7}", fit(time));
    }
    text.push('\n');
    sum
}

/// As many decimals as seven characters hold.
fn fit(time_us: f64) -> String {
    if time_us >= 10_000.0 {
        format!("{time_us:.0}")
    } else if time_us >= 1_000.0 {
        format!("{time_us:.1}")
    } else {
        format!("{time_us:.2}")
    }
}

fn flow(flows: &Flows, work: &Work, name: &str, setting: &Setting) -> Option<String> {
    let device = name.strip_suffix(".out")?;
    flows.devices.iter().find(|known| *known == device)?;
    if work.breaks_off() {
        return None;
    }
    let on_device = || work.faults.iter().filter(|fault| fault.fault.device() == Some(device));
    let apart =
        on_device().any(|fault| matches!(fault.fault, Fault::NicDead { .. } | Fault::NicMissing { .. }));
    if apart {
        return Some(format!("not-connected no rate in {} s, attempts: 12, last status: 1\n", flows.limit_s));
    }
    let left = on_device().fold(1.0, |left: f64, fault| match fault.fault {
        Fault::NicSlow { left: own, .. } => left.min(own),
        _ => left,
    });
    let rate = setting.machine.nic_line_rate_gb_s
        * super::model::NIC_EFFICIENCY
        * left
        * setting.noise(&["flow", device]).factor(0.004);
    let tool = Tool::named(&flows.tool)?;
    Flow::printed(tool, flows.message_bytes, flows.iterations, rate).map(|flow| render(&flow))
}
