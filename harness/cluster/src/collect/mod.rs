//! Collects what a case's jobs left, digests it, and names what is missing. It reads no measurement; the reports of
//! profiled ranks have a file of their own (`reports.rs`).

mod arrival;
mod digest_check;
#[cfg(test)]
mod memory_tests;
mod recollect;
mod reports;
#[cfg(test)]
mod tests;

pub use digest_check::unfit;
pub use recollect::collect_again;
pub use reports::keep;

use self::arrival::{Arrival, Arrived};
use self::reports::Rank;
use crate::launch::folder::{Folder, Folders};
use crate::reach::ReachError;
use futures::stream::{self, StreamExt};
use job::script::SIMULATED;
use model::artefact::{
    CaseJobs, Collected, CollectedFile, Ended, ExpectedFile, FileKind, FolderAccess, Format, JobRecord,
    MissingFile, PlannedCase, PlannedJob,
};
use std::collections::BTreeMap;
use store::{Store, StoreError};

/// From nodes so many jobs' files are fetched side by side: each comes from a host of its own, and one may be slow.
const AT_ONCE: usize = 8;

/// Every file that the plan expects of the case's jobs is found in `files` or in `missing`. `before` is what an earlier
/// look at the same files found.
pub async fn collect(
    case: &PlannedCase,
    jobs: &CaseJobs,
    folders: Folders<'_>,
    before: Option<&Collected>,
    store: &Store,
) -> Result<Collected, StoreError> {
    let mut collected = Collected {
        format: Format,
        files: Vec::new(),
        missing: Vec::new(),
        changed: Vec::new(),
        simulated: Vec::new(),
    };
    let at_once = match folders.launcher.facts().folder {
        FolderAccess::Nodes => AT_ONCE,
        FolderAccess::ThisMachine => 1,
    };
    let records: BTreeMap<&str, &JobRecord> =
        jobs.jobs.iter().rev().map(|record| (record.name.as_str(), record)).collect();
    let fetches = case.jobs.iter().map(|planned| {
        fetch(case, planned, records.get(planned.name.as_str()).copied(), folders.for_job(planned), store)
    });
    let mut fetched = stream::iter(fetches).buffered(at_once);
    while let Some(of_job) = fetched.next().await {
        let (planned, folder, files) = of_job?;
        let is_printed = case.workload.prints_once() && files.iter().any(is_output);
        for (expected, file) in files {
            match file {
                Found::Empty if is_printed && is_of_output(expected) => {}
                // An empty file where something had to be printed is as good as none, and says so.
                Found::Empty => {
                    collected.missing.push(missing(&planned.name, expected, "empty".to_owned()));
                }
                Found::Home { mut file, simulated } => {
                    file.redacted += redacted_before(before, &file);
                    if simulated {
                        collected.simulated.push(file.path.clone());
                    }
                    collected.files.push(file);
                    if expected.kind == FileKind::ProfileAccount {
                        let rank = Rank { case, planned, expected };
                        reports::tables(rank, &folder, before, store, &mut collected).await?;
                    }
                }
                Found::Lacking { why, refused } => {
                    // What was refused lies on its node still, and not here.
                    let was = before.and_then(|before| refused_before(before, planned, expected));
                    if let Some(was) = was {
                        collected.missing.push(was.clone());
                    } else if refused || expected.kind.is_required() {
                        let lost = missing(&planned.name, expected, why);
                        collected.missing.push(MissingFile { refused, ..lost });
                    }
                }
            }
        }
    }
    Ok(collected)
}

/// Whether a job prints its results into it.
fn is_of_output(expected: &ExpectedFile) -> bool {
    matches!(expected.kind, FileKind::Stdout | FileKind::NcclTests)
}

/// Whether results came home.
fn is_output((expected, file): &(&ExpectedFile, Found)) -> bool {
    is_of_output(expected) && matches!(file, Found::Home { .. })
}

type Fetched<'a> = (&'a PlannedJob, Folder<'a>, Vec<(&'a ExpectedFile, Found)>);

enum Found {
    Home { file: CollectedFile, simulated: bool },
    Empty,
    Lacking { why: String, refused: bool },
}

fn refused_before<'a>(
    before: &'a Collected,
    planned: &PlannedJob,
    expected: &ExpectedFile,
) -> Option<&'a MissingFile> {
    let is_it = |was: &&MissingFile| was.refused && was.job == planned.name && was.name == expected.name;
    before.missing.iter().find(is_it)
}

/// Collects the files of a job, or says why they are missing.
async fn fetch<'a>(
    case: &PlannedCase,
    planned: &'a PlannedJob,
    record: Option<&JobRecord>,
    folder: Folder<'a>,
    store: &Store,
) -> Result<Fetched<'a>, StoreError> {
    let mut files = Vec::with_capacity(planned.expected.len());
    let is_well = record.is_some_and(|record| record.end == Ended::Exited { code: 0 });
    for expected in planned.expected.iter().filter(|expected| !(is_well && expected.kind.is_of_failures())) {
        let file = match record.map(never_ran) {
            Some(None) => {
                let mut arrival = Arrival::new(case, planned, &expected.name, store);
                let mut fetched = folder.fetch(&expected.name, &mut arrival).await;
                if matches!(fetched, Err(ReachError::NotFound { .. })) && folder.refresh().await {
                    fetched = folder.fetch(&expected.name, &mut arrival).await;
                }
                match fetched {
                    Ok(0) if expected.kind.is_required() => Found::Empty,
                    Ok(_) => match arrival.keep(planned, expected)? {
                        Ok(Arrived { file, head }) => Found::Home { file, simulated: says_simulated(&head) },
                        Err(why) => Found::Lacking { why, refused: true },
                    },
                    Err(ReachError::Unwritten { why }) => return Err(arrival.failed(&why)),
                    Err(error) => Found::Lacking {
                        why: why(&error),
                        refused: matches!(error, ReachError::Failed { .. }),
                    },
                }
            }
            Some(Some(why)) => Found::Lacking { why, refused: false },
            None => Found::Lacking { why: "the job has no record".to_owned(), refused: false },
        };
        files.push((expected, file));
    }
    Ok((planned, folder, files))
}

/// How many secrets an earlier look took out of what lies there since.
fn redacted_before(before: Option<&Collected>, home: &CollectedFile) -> u64 {
    let was = before.and_then(|before| before.files.iter().find(|was| was.path == home.path));
    was.filter(|was| was.sha256 == home.sha256).map_or(0, |was| was.redacted)
}

/// Whether a text is marked as simulated: on nodes that a real inventory names, programs may stand in
/// for those of a cluster. Other lines may come first, but not many: `head` is how it begins.
fn says_simulated(head: &[u8]) -> bool {
    head.split(|byte| *byte == b'\n').any(|line| line.starts_with(SIMULATED.as_bytes()))
}

/// Why a job can have left nothing at all.
fn never_ran(record: &JobRecord) -> Option<String> {
    match &record.end {
        Ended::NotRun { why } => Some(format!("the job was not run: {why}")),
        Ended::LeftOut { node, .. } => Some(format!("the job was not launched: {node} was left out")),
        Ended::LaunchFailed { .. } | Ended::FolderFailed { .. } => {
            Some("the job was not launched".to_owned())
        }
        Ended::HostUnreachable { .. } if record.handle.is_none() => {
            Some("the job was not launched".to_owned())
        }
        _ => None,
    }
}

fn missing(job: &str, expected: &ExpectedFile, why: String) -> MissingFile {
    MissingFile {
        job: job.to_owned(),
        name: expected.name.clone(),
        kind: expected.kind,
        node: expected.node.clone(),
        part: expected.part.clone(),
        rank: expected.rank,
        why,
        refused: false,
    }
}

fn why(error: &ReachError) -> String {
    match error {
        ReachError::NotFound { .. } => "not there".to_owned(),
        error => error.to_string(),
    }
}
