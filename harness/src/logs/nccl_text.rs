//! The tables that `harness logs nccl` prints for a person.

use super::{visible, write_finding, write_more};
use base::text::count;
use logs::nccl_debug::{NcclLog, Wrong, type_name};
use std::io::{self, Write};

/// Rows of a table that are printed; `--format json` prints them all.
const SHOWN: usize = 20;

pub(super) fn write(
    out: &mut dyn Write,
    files: &str,
    log: &NcclLog,
    wrong: Option<&[Wrong]>,
) -> io::Result<()> {
    let share = match log.of_nccl {
        0 => String::new(),
        of_nccl => format!(" ({:.1} %)", log.understood as f64 / of_nccl as f64 * 100.0),
    };
    writeln!(
        out,
        "{}: {}, {} of NCCL, {} of them understood{share}",
        visible(files),
        count(log.lines, "line"),
        log.of_nccl,
        log.understood
    )?;
    if log.cut > 0 {
        writeln!(out, "  {} cut by NCCL for length", count(log.cut, "line"))?;
    }
    let processes = if log.processes == 1 { "process" } else { "processes" };
    writeln!(
        out,
        "  {} {processes} on {}, {}",
        log.processes,
        count(log.hosts.len(), "host"),
        count(log.communicators.len() as u64 + log.communicators_beyond, "communicator")
    )?;
    for (name, texts) in [
        ("version", &log.versions),
        ("CUDA driver", &log.drivers),
        ("bootstrap", &log.bootstraps),
        ("network", &log.networks),
        ("provider", &log.providers),
        ("plugin", &log.plugins),
        ("set by environment", &log.variables),
        ("not understood", &log.unknown),
    ] {
        for it in texts.iter().take(SHOWN) {
            writeln!(out, "  {name}: {} ({})", visible(&it.text), count(it.lines, "line"))?;
        }
        write_more(out, texts.len().saturating_sub(SHOWN))?;
    }
    write_calls(out, log)?;
    write_steps(out, log)?;
    write_places(out, log)?;
    write_wires(out, log)?;
    for finding in &log.findings {
        write_finding(out, finding)?;
    }
    for it in wrong.unwrap_or_default() {
        writeln!(
            out,
            "  the scripts are wrong on {}, first on line {}: {}",
            count(it.lines, "line"),
            it.line,
            it.what
        )?;
    }
    Ok(())
}

/// A dash where a number is not known.
fn cell(value: Option<u64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

fn write_calls(out: &mut dyn Write, log: &NcclLog) -> io::Result<()> {
    if log.operations.is_empty() {
        return writeln!(out, "  no calls: they are logged if `NCCL_DEBUG_SUBSYS` has `COLL`");
    }
    writeln!(
        out,
        "  bytes: as logged, summed over the lines of all ranks; of the message: the payload of all ranks; on wires: the least that \
         leaves the GPUs"
    )?;
    writeln!(
        out,
        "  {:<14} {:>10} {:>8} {:>14} {:>16} {:>14} {:>20} {:>20} {:>20}",
        "operation",
        "calls",
        "empty",
        "min bytes",
        "mean bytes",
        "max bytes",
        "total bytes",
        "of the message",
        "on wires"
    )?;
    for it in &log.operations {
        let mean = it.mean_bytes.map_or_else(|| "-".to_owned(), |mean| format!("{mean:.1}"));
        writeln!(
            out,
            "  {:<14} {:>10} {:>8} {:>14} {mean:>16} {:>14} {:>20} {:>20} {:>20}",
            it.operation.name(),
            it.calls,
            it.empty,
            cell(it.min_bytes),
            cell(it.max_bytes),
            cell(it.total_bytes),
            cell(it.message_bytes),
            cell(it.wire_bytes)
        )?;
    }
    for it in &log.histogram {
        let below = it.below_bytes.map_or_else(|| "inf".to_owned(), |below| below.to_string());
        let bucket = format!("[{}, {below})", it.from_bytes);
        writeln!(
            out,
            "  {:<14} {bucket:<26} {:>10} calls {:>20} bytes",
            it.operation.name(),
            it.calls,
            cell(it.bytes)
        )?;
    }
    let mut calls: Vec<_> = log.calls.iter().collect();
    calls.sort_by_key(|it| std::cmp::Reverse(it.calls));
    for it in calls.iter().take(SHOWN) {
        let datatype = type_name(it.datatype).map_or_else(|| format!("type {}", it.datatype), str::to_owned);
        writeln!(
            out,
            "  {:>10} times {} of {} {datatype}: {} bytes each",
            it.calls,
            it.operation.name(),
            it.count,
            cell(it.bytes)
        )?;
    }
    write_more(out, calls.len().saturating_sub(SHOWN))
}

fn write_places(out: &mut dyn Write, log: &NcclLog) -> io::Result<()> {
    for it in log.gpus.iter().take(SHOWN) {
        writeln!(
            out,
            "  {}:{} GPU {}: {}, {} bytes",
            visible(&it.host),
            it.pid,
            cell(it.device),
            count(it.calls, &format!("{} call", it.operation.name())),
            cell(it.bytes)
        )?;
    }
    write_more(out, log.gpus.len().saturating_sub(SHOWN))?;
    for it in log.communicators.iter().take(SHOWN) {
        writeln!(
            out,
            "  communicator {}: {} of {} on {}, {} complete, {} to {} collective calls",
            it.id.as_deref().unwrap_or("without id"),
            it.ranks_seen,
            count(it.nranks, "rank"),
            count(it.hosts.len(), "host"),
            it.ranks_complete,
            it.fewest_calls,
            it.most_calls
        )?;
    }
    write_more(out, log.communicators.len().saturating_sub(SHOWN))?;
    for it in log.connections.iter().take(SHOWN) {
        let gdrdma = if it.gdrdma { ", GPUDirect RDMA" } else { "" };
        writeln!(
            out,
            "  rank {} to {}: {}{gdrdma} ({})",
            it.from,
            it.to,
            visible(&it.transport),
            count(it.lines, "line")
        )?;
    }
    write_more(out, log.connections.len().saturating_sub(SHOWN))?;
    for it in log.choices.iter().take(SHOWN) {
        let operation = it.operation.as_deref().unwrap_or("calls");
        writeln!(
            out,
            "  {} of {} to {} bytes: {} ({})",
            visible(operation),
            it.min_bytes,
            it.max_bytes,
            visible(&it.by),
            count(it.lines, "line")
        )?;
    }
    write_more(out, log.choices.len().saturating_sub(SHOWN))
}

fn write_steps(out: &mut dyn Write, log: &NcclLog) -> io::Result<()> {
    for it in log.steps.iter().take(SHOWN) {
        writeln!(
            out,
            "  step {} to line {}: {}, {} bytes",
            it.step,
            it.line,
            count(it.calls, &format!("{} call", it.operation.name())),
            cell(it.bytes)
        )?;
    }
    write_more(out, log.steps.len().saturating_sub(SHOWN))
}

/// `0 1 2 ...` of a ring that is long.
fn ranks<T: ToString>(ranks: &[T]) -> String {
    let shown: Vec<String> = ranks.iter().take(SHOWN).map(ToString::to_string).collect();
    let more = if ranks.len() > SHOWN { " ..." } else { "" };
    format!("{}{more}", shown.join(" "))
}

fn write_wires(out: &mut dyn Write, log: &NcclLog) -> io::Result<()> {
    for it in log.rings.iter().take(SHOWN) {
        writeln!(out, "  ring {}: {} ({})", it.channel, ranks(&it.ranks), count(it.lines, "line"))?;
    }
    write_more(out, log.rings.len().saturating_sub(SHOWN))?;
    for it in log.trees.iter().take(SHOWN) {
        let kind = if it.nvls { "NVLS tree" } else { "tree" };
        let (above, below) = (ranks(&it.above), ranks(&it.below));
        writeln!(out, "  {kind} {}: rank {}, parents {above}, children {below}", it.channel, it.rank)?;
    }
    write_more(out, log.trees.len().saturating_sub(SHOWN))?;
    for it in log.channels.iter().take(SHOWN) {
        writeln!(
            out,
            "  {}, {} of them for NVLS, {} for messages, {} for each peer ({})",
            count(it.coll, "channel"),
            cell(it.nvls),
            it.p2p,
            it.per_peer,
            count(it.lines, "line")
        )?;
    }
    for it in log.nvls.iter().take(SHOWN) {
        writeln!(
            out,
            "  {}: NVLS available in {}, not in {}",
            visible(&it.host),
            count(it.available, "line"),
            it.not_available
        )?;
    }
    for it in log.nics.iter().take(SHOWN) {
        writeln!(
            out,
            "  {}: {} to {} network cards of {}",
            visible(&it.host),
            it.least,
            it.most,
            visible(&it.by)
        )?;
    }
    write_more(out, log.nics.len().saturating_sub(SHOWN))?;
    for it in log.timings.iter().take(SHOWN) {
        let parts: Vec<String> = it
            .longest_parts_s
            .iter()
            .map(|(name, seconds)| format!("{} {seconds:.2}", visible(name)))
            .collect();
        writeln!(
            out,
            "  {} of {}: mean {:.2} s, {:.2} s on rank {} of {}; longest parts: {}",
            visible(it.function.as_deref().unwrap_or("init")),
            count(it.nranks, "rank"),
            it.mean_s,
            it.slowest_s,
            it.slowest_rank,
            visible(&it.slowest_host),
            parts.join(", ")
        )?;
    }
    write_more(out, log.timings.len().saturating_sub(SHOWN))
}
