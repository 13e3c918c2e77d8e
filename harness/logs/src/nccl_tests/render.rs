//! Prints a run as nccl-tests 2.17.3 and later do, for simulated clusters and for tests of the reader.
//! Where the numbers come from is the caller's business; what does not fit the columns is rounded as there.

use super::cell::{error, fit, general};
use super::{Half, IterStats, NcclRun, Row, Step, Wrong};
use std::fmt::Write;

/// The text of a run. A run that did not conclude ends with the cause of its failure, if it has one.
pub fn render(run: &NcclRun) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_head(&mut out, run);
    let _ = write_table(&mut out, run);
    let _ = write_end(&mut out, run);
    out
}

fn write_head(out: &mut String, run: &NcclRun) -> std::fmt::Result {
    let nccl = run.nccl_version.as_deref();
    let code = nccl.and_then(code_of_version);
    if let Some(version) = &run.nccl_tests_version {
        let code = code.unwrap_or(0);
        writeln!(out, "# nccl-tests version {version} nccl-headers={code} nccl-library={code}")?;
    }
    let program = run.program.clone().or_else(|| run.op.map(|op| op.program()));
    if let Some(program) = &program {
        writeln!(out, "# Collective test starting: {program}")?;
    }
    if let Some(p) = &run.parameters {
        let or = |value: Option<u64>, default: u64| value.unwrap_or(default);
        let (step, unit) = match p.step {
            Some(Step::Factor(factor)) => (factor, "factor"),
            Some(Step::Bytes(bytes)) => (bytes, "bytes"),
            None => (1 << 20, "bytes"),
        };
        write!(out, "# nThread {} nGpus {} ", or(p.threads, 1), or(p.gpus_per_thread, 1))?;
        write!(out, "minBytes {} maxBytes {} ", or(p.min_bytes, 32 << 20), or(p.max_bytes, 32 << 20))?;
        write!(
            out,
            "step: {step}({unit}) warmup iters: {} iters: {} ",
            or(p.warmup, 1),
            or(p.iterations, 20)
        )?;
        write!(out, "agg iters: {} validation: {} ", or(p.agg_iterations, 1), or(p.validation, 1))?;
        writeln!(out, "graph: {}", or(p.graph, 0))?;
        writeln!(out, "#")?;
    }
    if !run.ranks.is_empty() {
        writeln!(out, "# Using devices")?;
    }
    for r in &run.ranks {
        write!(out, "#  Rank {:2} ", r.rank)?;
        if let Some(group) = r.group {
            write!(out, "Group {group:2} ")?;
        }
        writeln!(out, "Pid {:6} on {:>10} device {:2} [{}] {}", r.pid, r.host, r.device, r.bus_id, r.name)?;
    }
    // NCCL says its version itself, with more in it than the code of nccl-tests has.
    if let Some(version) = nccl
        && (run.nccl_tests_version.is_none()
            || code.and_then(super::head::version_of_code).as_deref() != nccl)
    {
        writeln!(out, "NCCL version {version}")?;
    }
    Ok(())
}

/// 2.26.2 is 22602.
fn code_of_version(version: &str) -> Option<u64> {
    let bare = version.split('+').next()?;
    let mut parts = bare.split('.').map(|part| part.parse::<u64>().ok().filter(|part| *part < 100));
    let (major, minor, patch) = (parts.next()??, parts.next()??, parts.next()??);
    Some(if (major, minor) < (2, 9) {
        major * 1000 + minor * 100 + patch
    } else {
        major * 10_000 + minor * 100 + patch
    })
}

fn write_table(out: &mut String, run: &NcclRun) -> std::fmt::Result {
    let halves = || run.rows.iter().flat_map(|row| [&row.out_of_place, &row.in_place]).flatten();
    let iterations = halves().any(|half| half.iterations.is_some());
    let stamps = run.rows.iter().any(|row| row.timestamp.is_some());
    let time = if run.cpu_time { "cputime" } else { "time" };
    writeln!(out, "#")?;
    write!(out, "# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}", "", "", "", "", "")?;
    out.push_str(if iterations {
        "              out-of-place (+ per-iteration)                                in-place (+ per-iteration)\n"
    } else {
        "           out-of-place                       in-place          \n"
    });
    let mut headings = |first: [&str; 5], half: [&str; 8], stamp: &str| {
        let [size, count, dtype, redop, root] = first;
        write!(out, "# {size:>10}  {count:>12}  {dtype:>8}  {redop:>6}  {root:>6}")?;
        for _ in 0..2 {
            let [time, algbw, busbw, wrong, statistics @ ..] = half;
            write!(out, "  {time:>7}  {algbw:>6}  {busbw:>6}  {wrong:>6}")?;
            for name in statistics.iter().filter(|_| iterations) {
                write!(out, "  {name:>7}")?;
            }
        }
        writeln!(out, " {stamp:>width$}", width = if stamps { 19 } else { 0 })
    };
    let names = [time, "algbw", "busbw", "#wrong", "i_min", "i_max", "i_p99", "i_cv%"];
    headings(["size", "count", "type", "redop", "root"], names, if stamps { "timestamp" } else { "" })?;
    let units = ["(us)", "(GB/s)", "(GB/s)", "", "(us)", "(us)", "(us)", "(%)"];
    headings(["(B)", "(elements)", "", "", ""], units, if stamps { "%Y-%m-%d %H:%M:%S" } else { "" })?;
    for row in &run.rows {
        write_row(out, row, iterations, stamps)?;
    }
    Ok(())
}

fn write_row(out: &mut String, row: &Row, iterations: bool, stamps: bool) -> std::fmt::Result {
    let redop = row.redop.as_deref().unwrap_or("none");
    let root = row.root.unwrap_or(-1);
    write!(out, "{:12}  {:12}  {:>8}  {redop:>6}  {root:6}", row.size_bytes, row.count, row.dtype)?;
    for half in [&row.out_of_place, &row.in_place] {
        write_half(out, half.as_ref(), iterations)?;
    }
    if stamps {
        write!(out, "{:>21}", row.timestamp.as_deref().unwrap_or("1970-01-01 00:00:00"))?;
    }
    writeln!(out)
}

fn write_half(out: &mut String, half: Option<&Half>, iterations: bool) -> std::fmt::Result {
    let Some(half) = half else {
        // No version leaves a placement out; variants of it print this.
        write!(out, "  {:>7}  {:>6}  {:>6}    N/A", "N/A", "N/A", "N/A")?;
        return if iterations { write!(out, "{}", "      N/A".repeat(4)) } else { Ok(()) };
    };
    let (time, algbw, busbw) = (fit(half.time_us, 7), fit(half.algbw_gb_s, 6), fit(half.busbw_gb_s, 6));
    let wrong = match half.wrong {
        Wrong::Count(count) => format!("{:>6}", general(count)),
        Wrong::MaxError(value) => format!("{:>6}", error(value)),
        // One column less than a number takes, as there.
        Wrong::NotChecked => "  N/A".to_owned(),
    };
    write!(out, "  {time:>7}  {algbw:>6}  {busbw:>6}  {wrong}")?;
    if iterations {
        let none = IterStats { min_us: 0.0, max_us: 0.0, p99_us: 0.0, cv_pct: 0.0 };
        let IterStats { min_us, max_us, p99_us, cv_pct } = half.iterations.unwrap_or(none);
        for value in [min_us, max_us, p99_us, cv_pct] {
            write!(out, "  {:>7}", fit(value, 7))?;
        }
    }
    Ok(())
}

fn write_end(out: &mut String, run: &NcclRun) -> std::fmt::Result {
    if !run.concluded {
        return match &run.failure {
            Some(failure) => writeln!(out, "{}", failure.cause),
            None => Ok(()),
        };
    }
    if let Some(bounds) = run.out_of_bounds {
        let word = if bounds.ok { "OK" } else { "FAILED" };
        writeln!(out, "# Out of bounds values : {} {word}", bounds.count)?;
    }
    if let Some(average) = run.average_busbw_gb_s {
        writeln!(out, "# Avg bus bandwidth    : {} ", general(average))?;
    }
    writeln!(out, "#")?;
    let program = run.program.clone().or_else(|| run.op.map(|op| op.program())).unwrap_or_default();
    writeln!(out, "# Collective test concluded: {program}")?;
    writeln!(out, "#\n")
}
