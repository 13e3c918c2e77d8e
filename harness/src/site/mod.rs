//! `harness site`: a folder of stored runs as static pages. Real, simulated and canary runs have a page each: their
//! numbers and suspicions say nothing about one another.

mod certificates;
mod folder;
mod grid;
mod headline;
mod node_status;
mod page;
mod results;
mod run_pages;
mod runs;
mod suspects;
#[cfg(test)]
mod tests;
mod trends;

use crate::accept::certificate_files;
use crate::report::not_counted;
use base::redact::mask_accounts;
use base::text::{count, show};
use folder::SiteFolder;
use model::exit_code;
use page::SitePage;
use std::fs;
use std::path::PathBuf;
use verdict::history::past::{self, Outlines, Past, RunKind};

/// Older runs are not read.
const MOST_RUNS: usize = 1_000;

pub(crate) struct SiteRequest {
    pub runs: PathBuf,
    /// Whether a person named it: then it must be there.
    pub is_runs_given: bool,
    pub deliveries: PathBuf,
    /// Whether a person named them: then they must be there.
    pub is_deliveries_given: bool,
    pub output: PathBuf,
    /// How many of the newest runs have a page in the site.
    pub pages: usize,
}

/// Writes the site, or brings it up to date; gives the exit code.
pub(crate) fn write(request: &SiteRequest) -> Result<i32, String> {
    if let (true, Err(error)) = (request.is_deliveries_given, fs::read_dir(&request.deliveries)) {
        let name = show(&request.deliveries.display().to_string());
        return Err(format!("--deliveries: `{name}`: {error}; give a folder of deliveries"));
    }
    let mut folder = SiteFolder::open(&request.output, &request.runs, &request.deliveries)?;
    let Outlines { past, older, notes } = match request.is_runs_given || request.runs.exists() {
        true => past::outlines(&request.runs, Some(MOST_RUNS))?,
        // Acceptances leave their runs in their deliveries.
        false => Outlines { past: Past::default(), older: 0, notes: Vec::new() },
    };
    let (certificates, mut unread) = certificate_files::read_all(&request.deliveries);
    notes.iter().for_each(|note| eprintln!("{}", show(note)));
    eprint!("{}", not_counted(&past));
    if older > 0 {
        unread.push(format!("{} older than the newest {MOST_RUNS}", count(older, "run")));
    }
    unread.extend(certificate_files::uncertified(&request.deliveries));
    let apart = certificate_files::runs_apart(&request.deliveries).filter(|_| !request.is_runs_given);
    unread.iter().chain(&apart).for_each(|why| eprintln!("not read: {}", show(why)));
    if past.runs.is_empty() && certificates.is_empty() {
        let runs = show(&request.runs.display().to_string());
        let of_delivery = certificate_files::hint_at_runs(&request.deliveries).unwrap_or_default();
        return Err(format!("no runs in `{runs}`; give a folder of runs with --runs{of_delivery}"));
    }
    for one in &certificates {
        if let Some(why) = &one.altered {
            let line = format!("{}: {why}", one.name);
            eprintln!("not counted: {}", show(&line));
            unread.push(line);
        }
    }
    let certificates: Vec<_> = certificates.into_iter().filter(|one| one.altered.is_none()).collect();
    let (total, kinds) = (past.runs.len(), by_kind(past));
    let has_certificate = |kind: RunKind| certificates.iter().any(|one| certificates::kind(one) == kind);
    let kinds: Vec<(RunKind, Past)> =
        kinds.into_iter().filter(|(kind, past)| !past.runs.is_empty() || has_certificate(*kind)).collect();
    let names: Vec<(RunKind, String)> = kinds
        .iter()
        .enumerate()
        .map(|(nth, (kind, _))| match nth {
            0 => (*kind, "index.html".to_owned()),
            _ => (*kind, format!("{}.html", kind.name())),
        })
        .collect();
    let mut written = 0;
    for (kind, past) in &kinds {
        let pages = run_pages::write(past, request.pages, &mut folder)?;
        written += pages.iter().flatten().count();
        let own = certificates.iter().filter(|one| certificates::kind(one) == *kind).collect();
        let page = SitePage::new(past, *kind, own, &unread, pages, &names);
        let name = names.iter().find(|(one, _)| one == kind).map_or("index.html", |(_, name)| name);
        let text =
            page.render().map_err(|why| format!("cannot make the page of {} runs: {why}", kind.name()))?;
        let text = store::redactor().bytes(&text).bytes;
        folder.write(name, mask_accounts(&String::from_utf8_lossy(&text)).as_bytes())?;
    }
    folder.close()?;
    let kinds: Vec<String> = kinds
        .iter()
        .filter(|(_, past)| !past.runs.is_empty())
        .map(|(kind, past)| format!("{} {}", past.runs.len(), kind.name()))
        .collect();
    println!(
        "site of {}: {}, with {}",
        match kinds.as_slice() {
            [] => format!("no run and {}", count(certificates.len(), "certificate")),
            kinds => format!("{} ({})", count(total, "run"), kinds.join(", ")),
        },
        show(&request.output.join("index.html").display().to_string()),
        match written {
            1 => "1 page of a run".to_owned(),
            n => format!("{n} pages of runs"),
        }
    );
    Ok(exit_code::PASSED)
}

/// The runs of each kind; each page names all that is not counted.
fn by_kind(past: Past) -> Vec<(RunKind, Past)> {
    let Past { runs, passed } = past;
    let mut kinds: Vec<(RunKind, Past)> = RunKind::ALL
        .into_iter()
        .map(|kind| (kind, Past { runs: Vec::new(), passed: passed.clone() }))
        .collect();
    for run in runs {
        if let Some((_, past)) = kinds.iter_mut().find(|(kind, _)| *kind == run.kind()) {
            past.runs.push(run);
        }
    }
    kinds
}
