//! Brings home what a case's jobs left, digests it, and names what is missing. It reads no measurement; the reports of
//! profiled ranks have a file of their own (`reports.rs`).

mod again;
mod fit;
mod reports;
#[cfg(test)]
mod tests;

pub use again::collect_again;
pub use fit::unfit;
pub use reports::keep;

use crate::artefact::{
    CaseJobs, Collected, CollectedFile, Ended, ExpectedFile, FORMAT, FileKind, JobRecord, MissingFile,
    PlannedCase, PlannedJob,
};
use crate::digest::sha256;
use crate::launch::folder::Folders;
use crate::reach::ReachError;
use crate::script::SIMULATED;
use crate::store::{Store, StoreError};

/// Every file that the plan expects of the case's jobs is found in `files` or in `missing`.
pub async fn collect(
    case: &PlannedCase,
    jobs: &CaseJobs,
    folders: Folders<'_>,
    store: &Store,
) -> Result<Collected, StoreError> {
    let mut collected = Collected {
        format: FORMAT,
        files: Vec::new(),
        missing: Vec::new(),
        changed: Vec::new(),
        simulated: Vec::new(),
    };
    for planned in &case.jobs {
        let record = jobs.jobs.iter().find(|record| record.name == planned.name);
        let folder = folders.of(planned);
        for expected in &planned.expected {
            let fetched = match record.map(never_ran) {
                Some(None) => folder.get(&expected.name).await.map_err(|error| why(&error)),
                Some(Some(reason)) => Err(reason),
                None => Err("the job has no record".to_owned()),
            };
            match fetched {
                // An empty file where something had to be printed is as good as none, and says so.
                Ok(bytes) if bytes.is_empty() && expected.kind.is_required() => {
                    collected.missing.push(missing(&planned.name, expected, "empty".to_owned()));
                }
                Ok(bytes) => {
                    let home = put_home(case, planned, expected, &bytes, store)?;
                    if says_simulated(&bytes) {
                        collected.simulated.push(home.path.clone());
                    }
                    collected.files.push(home);
                    if expected.kind == FileKind::ProfileAccount {
                        reports::tables(case, planned, expected, &bytes, &folder, store, &mut collected)
                            .await?;
                    }
                }
                Err(why) => {
                    if expected.kind.is_required() {
                        collected.missing.push(missing(&planned.name, expected, why));
                    }
                }
            }
        }
    }
    Ok(collected)
}

/// A file that has come: it lies in the run's folder from here on.
fn put_home(
    case: &PlannedCase,
    planned: &PlannedJob,
    file: &ExpectedFile,
    bytes: &[u8],
    store: &Store,
) -> Result<CollectedFile, StoreError> {
    store.write(&store.raw(&case.name, &planned.name).join(&file.name), bytes)?;
    Ok(CollectedFile {
        job: planned.name.clone(),
        path: format!("raw/{}/{}", planned.name, file.name),
        kind: file.kind,
        node: file.node.clone(),
        part: file.part.clone(),
        rank: file.rank,
        bytes: bytes.len() as u64,
        sha256: sha256(bytes),
    })
}

/// Whether a text says of itself that nothing real made it: on nodes that a real inventory names, programs may stand in
/// for those of a cluster. Other lines may come first, but not many.
fn says_simulated(bytes: &[u8]) -> bool {
    const HEAD: usize = 64 << 10;
    let head = bytes.get(..HEAD).unwrap_or(bytes);
    head.split(|byte| *byte == b'\n').any(|line| line.starts_with(SIMULATED.as_bytes()))
}

/// Why a job can have left nothing at all.
fn never_ran(record: &JobRecord) -> Option<String> {
    match &record.end {
        Ended::NotRun { why } => Some(format!("the job was not run: {why}")),
        Ended::LeftOut { node, .. } => Some(format!("the job was not launched: {node} was left out")),
        Ended::LaunchFailed { .. } => Some("the job was not launched".to_owned()),
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
    }
}

fn why(error: &ReachError) -> String {
    match error {
        ReachError::NotFound { .. } => "not there".to_owned(),
        error => error.to_string(),
    }
}
