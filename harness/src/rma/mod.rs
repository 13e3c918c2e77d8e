//! The evidence about one node or part as one folder for its vendor, without names and secrets of the site. Which runs
//! are about that hardware is decided in `verdict::history`.

mod certificates;
mod folder;
mod raw_file;
mod return_case;
mod run_evidence;
mod sanitiser;
mod summary;
mod verdict_history;

use crate::accept::certificate_files;
use crate::error::Error;
use crate::session::{load, report_error};
use base::text::{SIMULATED, count, show};
use cluster::interrupt;
use config::inventory::Inventory;
use folder::{Folder, Sealing};
use model::exit_code;
use return_case::ReturnCase;
use sanitiser::Sanitiser;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use store::Home;
use verdict::history::hardware_record;
use verdict::history::identifiers::{self, Subject};
use verdict::history::past::{self, Past, RunKind};

/// Longer names of folders are cut.
const LONGEST_NAME: usize = 60;

pub(crate) struct RmaRequest {
    /// A node's name, `NODE:PART` or a number that a probe has read.
    pub word: String,
    pub runs: PathBuf,
    /// Whether a person named it: then it must be there, and no other is read.
    pub is_runs_given: bool,
    pub deliveries: PathBuf,
    pub inventory: Option<String>,
    pub kind: Option<RunKind>,
    pub output: Option<PathBuf>,
    pub keep_names: bool,
    pub all: bool,
}

/// Gives the exit code.
pub(crate) fn collect(home: &Home, request: &RmaRequest) -> Result<i32, Error> {
    if let Some(output) = &request.output {
        check_output(output, request).map_err(Error::Usage)?;
    }
    let own = std::iter::once(request.runs.clone()).filter(|runs| request.is_runs_given || runs.exists());
    // Acceptances leave their runs in their deliveries.
    let of_deliveries = match request.is_runs_given {
        true => Vec::new(),
        false => certificate_files::folders_of_runs(&request.deliveries),
    };
    let folders: Vec<PathBuf> = own.chain(of_deliveries).collect();
    let mut past = past::read_all(&folders).map_err(Error::Usage)?;
    past.runs.retain(|run| request.kind.is_none_or(|kind| run.kind() == kind));
    if past.runs.is_empty() {
        let unread: Vec<String> = past
            .passed
            .iter()
            .take(3)
            .map(|one| format!("; {}: {}", show(&one.name), show(&one.why)))
            .collect();
        return Err(Error::Usage(format!(
            "no {}runs in `{}`; give a folder of runs with --runs{}",
            request.kind.map(|kind| format!("{} ", kind.name())).unwrap_or_default(),
            request.runs.display(),
            unread.concat()
        )));
    }
    let subject =
        identifiers::find(&past, &request.word, request.inventory.as_deref()).map_err(Error::Usage)?;
    let record = hardware_record::record(&past, &subject);
    let case = ReturnCase { past: &past, subject: &subject, record: &record, all: request.all };
    if record.blames.is_empty() && !request.all {
        return Ok(no_case(&case));
    }
    let output = match &request.output {
        Some(output) => output.clone(),
        None => default_output(&subject),
    };
    check_output(&output, request).map_err(Error::Usage)?;
    interrupt::watch();
    match write(home, request, &case, &output) {
        Err(_) if interrupt::asked().is_some() => {
            eprintln!("stopped: nothing was written; run it again");
            Ok(interrupt::asked().unwrap_or(exit_code::INCONCLUSIVE))
        }
        Ok(written) => {
            println!("{}: {}", show(&summary::title(&case)), verdict_line(&case));
            if subject.simulated {
                println!("{SIMULATED}");
            }
            let left_out = if written.1 > 0 { format!(", {} left out", written.1) } else { String::new() };
            let folder = output.components().as_path().display();
            println!("written: {folder}/ ({}{left_out})", count(written.0, "file"));
            println!("read summary.md and look through the folder before you send it");
            Ok(exit_code::PASSED)
        }
        Err(why) => Ok(report_error(&why)),
    }
}

fn verdict_line(case: &ReturnCase<'_>) -> String {
    let record = case.record;
    let blamed: BTreeSet<usize> = record.blames.iter().map(|blame| blame.run).collect();
    let other = match record.other.len() {
        0 => String::new(),
        n => format!("; left out: {} of other hardware under this name", count(n, "run")),
    };
    let uncounted = match record.uncounted.len() {
        0 => String::new(),
        n => format!("; not counted: {} of a canary, a bisection or an isolation", count(n, "run")),
    };
    format!(
        "blamed in {} of {}, passed in {}{uncounted}{other}",
        blamed.len(),
        count(record.seen.len() - record.uncounted.len(), "run"),
        record.passed.len()
    )
}

/// Says that there is nothing to return it for.
fn no_case(case: &ReturnCase<'_>) -> i32 {
    let red = match case.red_without_blame() {
        0 => String::new(),
        n => format!("; red in {}, where nothing separated it from its peers", count(n, "run")),
    };
    eprintln!(
        "no return case: {}: {}{red}; nothing was written; write it anyway with --all",
        show(&summary::title(case)),
        verdict_line(case)
    );
    exit_code::INCONCLUSIVE
}

/// Files that were written, and that were left out.
fn write(
    home: &Home,
    request: &RmaRequest,
    case: &ReturnCase<'_>,
    output: &Path,
) -> Result<(usize, usize), String> {
    let inventories = inventories(home, case.past);
    let names = case.site_names(&inventories, request.keep_names);
    let sanitiser = Sanitiser::new(names, store::redactor())?;
    let mut folder = Folder::begin(output, sanitiser)?;
    let certificates = certificates::write(&mut folder, case, &request.deliveries)?;
    folder.write(&["summary.md"], &summary::markdown(case, &certificates))?;
    folder.write(&["history.csv"], &verdict_history::csv(case))?;
    // The newest first: where there is room for some alone, it is for these.
    for sighting in case.runs_with_files().into_iter().rev() {
        run_evidence::write(&mut folder, case, sighting)?;
    }
    let counts = folder.counts();
    folder.seal(&Sealing { simulated: case.subject.simulated, keeps_names: request.keep_names })?;
    Ok(counts)
}

/// Those of the project that the runs name. One that is gone or broken has no names to give.
fn inventories(home: &Home, past: &Past) -> Vec<Inventory> {
    let names: BTreeSet<&str> = past.runs.iter().map(|run| run.plan().inventory.as_str()).collect();
    let plain = names.into_iter().filter(|name| store::is_inside(name) && !name.contains('/'));
    plain.filter_map(|name| load::without_suite(home, name).ok()).map(|loaded| loaded.inventory).collect()
}

/// Refuses a folder that is there, and one among the runs or deliveries.
fn check_output(output: &Path, request: &RmaRequest) -> Result<(), String> {
    if fs::symlink_metadata(output).is_ok() {
        return Err(format!("--output: `{}` already exists; give another folder", output.display()));
    }
    let above = output.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let above = above.canonicalize().map_err(|error| format!("--output: `{}`: {error}", above.display()))?;
    let lies_in = |place: &Path| place.canonicalize().is_ok_and(|place| above.starts_with(place));
    let is_own = |delivery: &PathBuf| delivery.parent().is_some_and(lies_in);
    let is_among =
        lies_in(&request.runs) || certificate_files::folders_of_runs(&request.deliveries).iter().any(is_own);
    match is_among {
        true => Err(format!("--output: `{}` lies among the runs; give a folder elsewhere", output.display())),
        false => Ok(()),
    }
}

/// `rma-p5-002-20261128T140000Z` in this folder.
fn default_output(subject: &Subject) -> PathBuf {
    let part = subject.part.as_ref().map(|part| format!("-{part}")).unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let name = format!("{}{part}", subject.node);
    let name: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).take(LONGEST_NAME).collect();
    PathBuf::from(format!("rma-{name}-{}", store::run_time(store::wall_clock_s())))
}
