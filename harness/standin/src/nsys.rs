//! nsys: `--version`, `status`, `profile` and `export`, in the words that the harness uses. Sessions that are started and
//! stopped by hand are in `session`, the contents of a report in `report`.

use super::place::ProcessPlace;
use super::profiling::{free_report, generate, in_folder, switches, under, value};
use super::report::ProfiledProcess;
use super::state::State;
use super::{print_line, session};
use model::fault::Fault;
use std::fs;
use std::path::{Path, PathBuf};

/// A release that knows none of what profiles need.
const OLD: &str = "2023.2.1";

pub(crate) async fn answer(state: &State, words: &[String]) -> Result<i32, String> {
    match words.split_first() {
        Some((word, _)) if word == "--version" || word == "-v" => {
            let place = ProcessPlace::from_environment()?;
            let old = state.ails(&place.node).iter().any(|fault| matches!(fault, Fault::NsysOld));
            let version = if old { OLD } else { &state.nsys_version };
            print_line(format!("NVIDIA Nsight Systems version {version}.0-SIMULATED"));
            Ok(0)
        }
        Some((word, _)) if word == "status" => {
            print_line(
                "SIMULATED: a stand-in for nsys\nTimestamp counter supported: Yes\nCPU Profiling Environment Check\nSampling Environment: OK",
            );
            Ok(0)
        }
        Some((word, rest)) if word == "profile" => profile(state, rest).await,
        Some((word, rest)) if word == "export" => export(state, rest),
        Some((word, rest)) if session::VERBS.contains(&word.as_str()) => {
            session::answer(state, word, rest).await
        }
        _ => Err(format!(
            "known commands are --version, status, profile, export, {}; not `{}`",
            session::VERBS.join(", "),
            words.join(" ")
        )),
    }
}

async fn profile(state: &State, words: &[String]) -> Result<i32, String> {
    let (switches, command) = switches(words);
    let name = value(&switches, &["--output", "-o"]).unwrap_or("report1");
    let (record, report) = (in_folder(&format!("{name}.qdstrm"))?, free_report(name, &switches)?);
    let code = under(command, &record, &mut |_| Ok(())).await?;
    if code == 0 {
        if !record.exists() {
            return Err(format!("no record for {name}.nsys-rep: the profiled program is not a stand-in"));
        }
        generate(state, &ProfiledProcess::read(&record)?.by(switches, None), &record, &report)?;
        fs::remove_file(&record).map_err(|error| format!("{}: {error}", record.display()))?;
    }
    Ok(code)
}

fn export(state: &State, words: &[String]) -> Result<i32, String> {
    let (switches, rest) = switches(words);
    let [report] = rest else { return Err("`export` needs exactly one report".to_owned()) };
    if let Some(form) = value(&switches, &["--type", "-t"]).filter(|form| *form != "parquetdir") {
        return Err(format!("`{form}` is not supported; it exports `parquetdir` only"));
    }
    let tables: Vec<String> = value(&switches, &["--tables"])
        .map(|list| list.split(',').map(str::to_owned).collect())
        .unwrap_or_default();
    let own = report.strip_suffix(".nsys-rep").unwrap_or(report);
    let output = value(&switches, &["--output", "-o"]).map_or_else(|| format!("{own}_pqtdir"), str::to_owned);
    if Path::new(&output).exists() && value(&switches, &["--force-overwrite", "-f"]) != Some("true") {
        return Err(format!("output exists already: {output}"));
    }
    let made = ProfiledProcess::read(Path::new(report))?.tables(state, &tables)?.unwrap_or_default();
    let part = PathBuf::from(format!("{output}.part"));
    let failed = |error| format!("{}: {error}", part.display());
    fs::create_dir_all(&part).map_err(failed)?;
    for (name, bytes) in made.iter() {
        fs::write(part.join(name), bytes).map_err(failed)?;
    }
    fs::rename(&part, &output).map_err(failed)?;
    Ok(0)
}
