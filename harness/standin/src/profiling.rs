//! What `nsys profile` and its sessions share: switches, the program that is profiled, and the report that is made of it.

use super::print_line;
use super::report::{ProfiledProcess, RECORD};
use super::state::State;
use model::fault::Fault;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

/// The switches, each with its value, and what comes behind them.
pub(crate) fn switches(words: &[String]) -> (Vec<String>, &[String]) {
    let mut found = Vec::new();
    let mut rest = words;
    while let [word, more @ ..] = rest
        && word.starts_with('-')
    {
        rest = more;
        // A short one has its value behind it.
        match (word.starts_with("--"), more) {
            (false, [value, more @ ..]) if word.len() == 2 => {
                found.push(format!("{word}={value}"));
                rest = more;
            }
            _ => found.push(word.clone()),
        }
    }
    (found, rest)
}

pub(crate) fn value<'a>(switches: &'a [String], names: &[&str]) -> Option<&'a str> {
    let of = |switch: &'a String| {
        let (name, value) = switch.split_once('=')?;
        names.contains(&name).then_some(value)
    };
    switches.iter().find_map(of)
}

pub(crate) fn in_folder(name: &str) -> Result<PathBuf, String> {
    let folder = std::env::current_dir().map_err(|error| format!("no working folder: {error}"))?;
    Ok(folder.join(name))
}

/// The path of the report of this name, if it is free.
pub(crate) fn free_report(name: &str, switches: &[String]) -> Result<PathBuf, String> {
    let report = in_folder(&format!("{name}.nsys-rep"))?;
    match report.exists() && !switches.iter().any(|switch| switch == "--force-overwrite=true") {
        true => Err(format!("report exists already: {}", report.display())),
        false => Ok(report),
    }
}

/// Runs a program that leaves its record there, hands signals on to it, and gives its exit code. `begun` gets its
/// process number.
pub(crate) async fn under(
    command: &[String],
    record: &Path,
    begun: &mut dyn FnMut(Option<u32>) -> Result<(), String>,
) -> Result<i32, String> {
    let [program, arguments @ ..] = command else { return Err("no program to profile".to_owned()) };
    let failed = |error| format!("`{program}`: {error}");
    let (mut term, mut int) = (asked(SignalKind::terminate())?, asked(SignalKind::interrupt())?);
    let mut child = Command::new(program).args(arguments).env(RECORD, record).spawn().map_err(failed)?;
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
    begun(child.id())?;
    let pass = |signal| pid.map(|pid| kill(pid, signal));
    let status = loop {
        tokio::select! {
            biased;
            status = child.wait() => break status.map_err(failed)?,
            _ = term.recv() => { pass(Signal::SIGTERM); }
            _ = int.recv() => { pass(Signal::SIGINT); }
        }
    };
    Ok(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default()))
}

fn asked(kind: SignalKind) -> Result<tokio::signal::unix::Signal, String> {
    signal(kind).map_err(|error| format!("no signals: {error}"))
}

/// Makes the report of what a process recorded; what recorded nothing is no workload that this knows.
pub(crate) fn generate(
    state: &State,
    seen: &ProfiledProcess,
    record: &Path,
    report: &Path,
) -> Result<(), String> {
    let failed = |error| format!("{}: {error}", report.display());
    let nothing = seen.tables(state, &["META_DATA_EXPORT".to_owned()])?.is_none();
    let mut text = seen.text(true)?;
    for fault in state.ails(&seen.node) {
        match fault {
            Fault::ReportMissing => return Ok(()),
            Fault::ReportEmpty => text.clear(),
            Fault::ReportTruncated => text.truncate(text.len() * 2 / 3),
            _ => {}
        }
    }
    if nothing {
        print_line("No reports were generated.");
        return Ok(());
    }
    let part = report.with_extension("nsys-rep.part");
    fs::write(&part, text).map_err(failed)?;
    fs::rename(&part, report).map_err(failed)?;
    let name = report.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    print_line(format!(
        "Generating '{}'\n[1/1] [========================100%] {name}\nGenerated:\n    {}",
        record.display(),
        report.display()
    ));
    Ok(())
}
