//! nsys: `--version`, `status`, `profile` and `export`, in the words that the harness uses. What a report holds is told
//! in `report`.

use super::place::Place;
use super::report::{RECORD, Seen};
use super::state::State;
use super::tell;
use crate::sim::fault::Fault;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

/// A release that knows none of what profiles need.
const OLD: &str = "2023.2.1";

pub async fn answer(state: &State, words: &[String]) -> Result<i32, String> {
    match words.split_first() {
        Some((word, _)) if word == "--version" || word == "-v" => {
            let place = Place::of_process()?;
            let old = state.ails(&place.node).iter().any(|fault| matches!(fault, Fault::NsysOld));
            let version = if old { OLD } else { &state.nsys_version };
            tell(format!("NVIDIA Nsight Systems version {version}.0-SIMULATED"));
            Ok(0)
        }
        Some((word, _)) if word == "status" => {
            tell(
                "SIMULATED: a stand-in for nsys\nTimestamp counter supported: Yes\nCPU Profiling Environment Check\nSampling Environment: OK",
            );
            Ok(0)
        }
        Some((word, rest)) if word == "profile" => profile(state, rest).await,
        Some((word, rest)) if word == "export" => export(state, rest),
        _ => Err(format!("it knows --version, status, profile and export: `{}`", words.join(" "))),
    }
}

/// The switches, each with its value, and what comes behind them.
fn switches(words: &[String]) -> (Vec<String>, &[String]) {
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

fn value<'a>(switches: &'a [String], names: &[&str]) -> Option<&'a str> {
    let of = |switch: &'a String| {
        let (name, value) = switch.split_once('=')?;
        names.contains(&name).then_some(value)
    };
    switches.iter().find_map(of)
}

async fn profile(state: &State, words: &[String]) -> Result<i32, String> {
    let (switches, command) = switches(words);
    let name = value(&switches, &["--output", "-o"]).unwrap_or("report1");
    let [program, arguments @ ..] = command else { return Err("no program to profile".to_owned()) };
    let folder = std::env::current_dir().map_err(|error| format!("no working folder: {error}"))?;
    let (record, report) = (folder.join(format!("{name}.qdstrm")), folder.join(format!("{name}.nsys-rep")));
    if report.exists() && !switches.iter().any(|switch| switch == "--force-overwrite=true") {
        return Err(format!("the report is there already: {}", report.display()));
    }
    let told = |error| format!("`{program}`: {error}");
    let (mut term, mut int) = (asked(SignalKind::terminate())?, asked(SignalKind::interrupt())?);
    let mut child = Command::new(program).args(arguments).env(RECORD, &record).spawn().map_err(told)?;
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
    let pass = |signal| pid.map(|pid| kill(pid, signal));
    let status = loop {
        tokio::select! {
            biased;
            status = child.wait() => break status.map_err(told)?,
            _ = term.recv() => { pass(Signal::SIGTERM); }
            _ = int.recv() => { pass(Signal::SIGINT); }
        }
    };
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    if code == 0 {
        finish(state, &switches, &record, &report, name)?;
    }
    Ok(code)
}

fn asked(kind: SignalKind) -> Result<tokio::signal::unix::Signal, String> {
    signal(kind).map_err(|error| format!("no signals: {error}"))
}

/// Makes the report of what the process recorded; what recorded nothing is no workload that this knows.
fn finish(
    state: &State,
    switches: &[String],
    record: &Path,
    report: &Path,
    name: &str,
) -> Result<(), String> {
    if !record.exists() {
        return Err(format!("the program left nothing to make {name}.nsys-rep of: it is no stand-in"));
    }
    let mut seen = Seen::read(record)?;
    seen.switches = switches.to_vec();
    let told = |error| format!("{}: {error}", report.display());
    let remove = || fs::remove_file(record).map_err(|error| format!("{}: {error}", record.display()));
    let nothing = seen.tables(state, &["META_DATA_EXPORT".to_owned()])?.is_none();
    let mut text = seen.text(true)?;
    for fault in state.ails(&seen.node) {
        match fault {
            Fault::ReportMissing => return remove(),
            Fault::ReportEmpty => text.clear(),
            Fault::ReportTruncated => text.truncate(text.len() * 2 / 3),
            _ => {}
        }
    }
    if nothing {
        tell("No reports were generated.");
        return remove();
    }
    let part = report.with_extension("nsys-rep.part");
    fs::write(&part, text).map_err(told)?;
    fs::rename(&part, report).map_err(told)?;
    remove()?;
    tell(format!(
        "Generating '{}'\n[1/1] [========================100%] {name}.nsys-rep\nGenerated:\n    {}",
        record.display(),
        report.display()
    ));
    Ok(())
}

fn export(state: &State, words: &[String]) -> Result<i32, String> {
    let (switches, rest) = switches(words);
    let [report] = rest else { return Err("one report is exported at a time".to_owned()) };
    if let Some(form) = value(&switches, &["--type", "-t"]).filter(|form| *form != "parquetdir") {
        return Err(format!("it exports `parquetdir` alone: `{form}`"));
    }
    let tables: Vec<String> = value(&switches, &["--tables"])
        .map(|list| list.split(',').map(str::to_owned).collect())
        .unwrap_or_default();
    let own = report.strip_suffix(".nsys-rep").unwrap_or(report);
    let output = value(&switches, &["--output", "-o"]).map_or_else(|| format!("{own}_pqtdir"), str::to_owned);
    if Path::new(&output).exists() && value(&switches, &["--force-overwrite", "-f"]) != Some("true") {
        return Err(format!("it is there already: {output}"));
    }
    let made = Seen::read(Path::new(report))?.tables(state, &tables)?.unwrap_or_default();
    let part = PathBuf::from(format!("{output}.part"));
    let told = |error| format!("{}: {error}", part.display());
    fs::create_dir_all(&part).map_err(told)?;
    for (name, bytes) in made.iter() {
        fs::write(part.join(name), bytes).map_err(told)?;
    }
    fs::rename(&part, &output).map_err(told)?;
    Ok(0)
}
