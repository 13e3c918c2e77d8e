//! The reports of profiled ranks: the tables that were exported on the nodes, held against the digests that the nodes
//! took of them; and, once the case is judged, those reports that are to be kept whole.

use super::home::put_home;
use super::{missing, redacted_before, why};
use crate::artefact::{
    CaseEnd, Collected, ExpectedFile, FORMAT, FileKind, Kept, PlannedCase, PlannedJob, PlannedProfile,
};
use crate::digest::sha256;
use crate::launch::folder::{Folder, Folders};
use crate::profile::Keep;
use crate::profile::account::{self, Account};
use crate::store::{Store, StoreError};

/// A profiled rank of a job, by its account.
pub struct Rank<'a> {
    pub case: &'a PlannedCase,
    pub planned: &'a PlannedJob,
    pub expected: &'a ExpectedFile,
}

/// The tables that a rank's account names. An account that cannot be read is told by who reads it again (`analyze`).
pub async fn tables(
    rank: Rank<'_>,
    text: &[u8],
    folder: &Folder<'_>,
    before: Option<&Collected>,
    store: &Store,
    collected: &mut Collected,
) -> Result<(), StoreError> {
    let Rank { case, planned, expected } = rank;
    let Ok(account) = account::read(&String::from_utf8_lossy(text)) else { return Ok(()) };
    for table in &account.tables {
        let file = of_rank(expected, FileKind::ProfileTable, &table.name);
        let path = format!("raw/{}/{}", planned.name, table.name);
        // One that came home with a secret in it has been another since.
        let was =
            before.and_then(|before| before.files.iter().find(|was| was.path == path && was.redacted > 0));
        match fetch(folder, table, was.map(|was| was.sha256.as_str())).await {
            Ok(bytes) => {
                let (mut home, _) = put_home(case, planned, &file, &bytes, store)?;
                home.redacted += redacted_before(before, &home);
                collected.files.push(home);
            }
            Err(why) => collected.missing.push(missing(&planned.name, &file, why)),
        }
    }
    Ok(())
}

/// Brings home the whole reports that the suite wants kept, and frees the nodes of all that are not owed any more.
pub async fn keep(
    case: &PlannedCase,
    collected: &Collected,
    end: CaseEnd,
    folders: Folders<'_>,
    store: &Store,
) -> Result<Option<Kept>, StoreError> {
    if case.jobs.iter().all(|job| job.profile.is_none()) {
        return Ok(None);
    }
    let mut kept = Kept { format: FORMAT, files: Vec::new(), missing: Vec::new(), removed: Vec::new() };
    for planned in &case.jobs {
        let Some(profile) = &planned.profile else { continue };
        let folder = folders.of(planned);
        let accounts = accounts(planned, collected, case, store);
        let mut done_with = Vec::new();
        for (nth, (rank, account)) in accounts.iter().enumerate() {
            let Some(report) = &account.report else { continue };
            let mut whole = true;
            if wanted(profile, nth, end) {
                let file = of_rank(rank, FileKind::ProfileReport, &report.name);
                // A run that goes on after its process was ended may have it already, and have freed the node.
                let home = std::fs::read(store.raw(&case.name, &planned.name).join(&report.name)).ok();
                let fetched = match home.filter(|bytes| sha256(bytes) == report.sha256) {
                    Some(bytes) => Ok(bytes),
                    None => fetch(&folder, report, None).await,
                };
                match fetched {
                    Ok(bytes) => {
                        kept.files.push(put_home(case, planned, &file, &bytes, store)?.0);
                        let raw = store.raw(&case.name, &planned.name);
                        let tables: Vec<_> =
                            account.tables.iter().map(|table| raw.join(&table.name)).collect();
                        store.date_no_later(&raw.join(&report.name), &tables)?;
                    }
                    Err(why) => {
                        whole = false;
                        kept.missing.push(missing(&planned.name, &file, why));
                    }
                }
            }
            let is_home = |name: &str| {
                let path = format!("raw/{}/{name}", planned.name);
                collected.files.iter().any(|file| file.path == path)
            };
            if whole && account.tables.iter().all(|table| is_home(&table.name)) {
                done_with.push(report.name.clone());
                done_with.extend(account.tables.iter().map(|table| table.name.clone()));
            }
        }
        // What cannot be removed costs room and no verdict.
        if !done_with.is_empty() && folder.remove(&done_with).await.is_ok() {
            kept.removed.extend(done_with.into_iter().map(|name| format!("{}/{name}", planned.name)));
        }
    }
    Ok(Some(kept))
}

fn wanted(profile: &PlannedProfile, nth: usize, end: CaseEnd) -> bool {
    match profile.keep {
        Keep::Always => true,
        Keep::OnFailure => end != CaseEnd::Pass,
        Keep::First(n) => nth < n as usize,
    }
}

/// The accounts that came home, by rank.
fn accounts(
    planned: &PlannedJob,
    collected: &Collected,
    case: &PlannedCase,
    store: &Store,
) -> Vec<(ExpectedFile, Account)> {
    let expected = planned.expected.iter().filter(|file| file.kind == FileKind::ProfileAccount);
    expected
        .filter_map(|file| {
            let path = format!("raw/{}/{}", planned.name, file.name);
            collected.files.iter().find(|home| home.path == path)?;
            let text = std::fs::read_to_string(store.case(&case.name).join(&path)).ok()?;
            Some((file.clone(), account::read(&text).ok()?))
        })
        .collect()
}

fn of_rank(rank: &ExpectedFile, kind: FileKind, name: &str) -> ExpectedFile {
    ExpectedFile { name: name.to_owned(), kind, ..rank.clone() }
}

/// A file as its node saw it, or as it has been since: other bytes are a broken copy, and are asked for once more.
async fn fetch(folder: &Folder<'_>, file: &account::File, since: Option<&str>) -> Result<Vec<u8>, String> {
    let mut seen = String::new();
    for _ in 0..2 {
        let bytes = folder.get(&file.name).await.map_err(|error| why(&error))?;
        let digest = sha256(&bytes);
        if digest == file.sha256 || since == Some(digest.as_str()) {
            return Ok(bytes);
        }
        seen = format!(
            "{} bytes came with digest {}, the node had {} bytes with digest {}",
            bytes.len(),
            short(&digest),
            file.bytes,
            short(&file.sha256)
        );
    }
    Err(seen)
}

fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}

#[cfg(test)]
mod tests;
