//! The reports of profiled ranks: the tables that were exported on the nodes, compared with the digests that the nodes
//! took of them; and, once the case is judged, the complete reports that are to be kept.

use super::arrival::{Arrival, Arrived};
use super::{missing, redacted_before, why};
use crate::launch::folder::{Folder, Folders};
use crate::reach::ReachError;
use crate::reach::sink::{Sink, pour};
use base::digest::{Sum, sha256_of_file};
use job::profile::Keep;
use job::profile::account::{self, Account};
use model::artefact::{
    CaseEnd, Collected, ExpectedFile, FileKind, Format, KeptReports, PlannedCase, PlannedJob, PlannedProfile,
};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use store::{Store, StoreError};

/// What an account may have: some lines for each rank.
const ACCOUNT_LIMIT: u64 = 16 << 20;

/// A profiled rank of a job, by its account.
pub(super) struct Rank<'a> {
    pub case: &'a PlannedCase,
    pub planned: &'a PlannedJob,
    pub expected: &'a ExpectedFile,
}

/// The tables that a rank's account names. An account that cannot be read is reported by `analyze`, which re-reads it.
pub(super) async fn tables(
    rank: Rank<'_>,
    folder: &Folder<'_>,
    before: Option<&Collected>,
    store: &Store,
    collected: &mut Collected,
) -> Result<(), StoreError> {
    let Rank { case, planned, expected } = rank;
    let raw = store.raw(&case.name, &planned.name);
    let Some(text) = small(&raw.join(&expected.name)) else { return Ok(()) };
    let Ok(account) = account::read(&String::from_utf8_lossy(&text)) else { return Ok(()) };
    for table in &account.tables {
        let file = rank_file(expected, FileKind::ProfileTable, &table.name);
        let path = format!("raw/{}/{}", planned.name, table.name);
        // One that came home with a secret in it has been another since.
        let was =
            before.and_then(|before| before.files.iter().find(|was| was.path == path && was.redacted > 0));
        let mut arrival = Arrival::new(case, planned, &table.name, store);
        let fetched = fetch(folder, table, was.map(|was| was.sha256.as_str()), &mut arrival).await?;
        let kept = match fetched {
            Ok(()) => arrival.keep(planned, &file)?,
            Err(why) => Err(why),
        };
        match kept {
            Ok(Arrived { file: mut home, .. }) => {
                home.redacted += redacted_before(before, &home);
                collected.files.push(home);
            }
            Err(why) => collected.missing.push(missing(&planned.name, &file, why)),
        }
    }
    Ok(())
}

/// Collects the complete reports that the suite keeps, and removes from the nodes those that are no longer pending.
pub async fn keep(
    case: &PlannedCase,
    collected: &Collected,
    end: CaseEnd,
    folders: Folders<'_>,
    store: &Store,
) -> Result<Option<KeptReports>, StoreError> {
    if case.jobs.iter().all(|job| job.profile.is_none()) {
        return Ok(None);
    }
    let mut kept =
        KeptReports { format: Format, files: Vec::new(), missing: Vec::new(), removed: Vec::new() };
    let paths: BTreeSet<&str> = collected.files.iter().map(|file| file.path.as_str()).collect();
    for planned in &case.jobs {
        let Some(profile) = &planned.profile else { continue };
        let folder = folders.for_job(planned);
        let accounts = accounts(planned, collected, case, store);
        let mut done_with = Vec::new();
        for (nth, (rank, account)) in accounts.iter().enumerate() {
            let Some(report) = &account.report else { continue };
            let mut is_complete = true;
            if wanted(profile, nth, end) {
                let file = rank_file(rank, FileKind::ProfileReport, &report.name);
                // A run that goes on after its process was ended may have it already, and have freed the node.
                let raw = store.raw(&case.name, &planned.name);
                let home = raw.join(&report.name);
                let is_home = sha256_of_file(&home).is_ok_and(|digest| digest == report.sha256);
                let mut arrival = Arrival::new(case, planned, &report.name, store);
                let fetched = match is_home {
                    true => again(&home, &mut arrival).map(Ok)?,
                    false => fetch(&folder, report, None, &mut arrival).await?,
                };
                let arrived = match fetched {
                    Ok(()) => arrival.keep(planned, &file)?,
                    Err(why) => Err(why),
                };
                match arrived {
                    Ok(arrived) => {
                        kept.files.push(arrived.file);
                        let tables: Vec<_> =
                            account.tables.iter().map(|table| raw.join(&table.name)).collect();
                        store.date_no_later(&raw.join(&report.name), &tables)?;
                    }
                    Err(why) => {
                        is_complete = false;
                        kept.missing.push(missing(&planned.name, &file, why));
                    }
                }
            }
            let is_home = |name: &str| {
                let path = format!("raw/{}/{name}", planned.name);
                paths.contains(path.as_str())
            };
            if is_complete && account.tables.iter().all(|table| is_home(&table.name)) {
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
            let text = String::from_utf8(small(&store.case(&case.name).join(&path))?).ok()?;
            Some((file.clone(), account::read(&text).ok()?))
        })
        .collect()
}

fn rank_file(rank: &ExpectedFile, kind: FileKind, name: &str) -> ExpectedFile {
    ExpectedFile { name: name.to_owned(), kind, ..rank.clone() }
}

/// A file as its node saw it, or as it has been since: other bytes are a broken copy, and are fetched again.
async fn fetch(
    folder: &Folder<'_>,
    file: &account::File,
    since: Option<&str>,
    arrival: &mut Arrival<'_>,
) -> Result<Result<(), String>, StoreError> {
    let mut seen = String::new();
    for _ in 0..2 {
        let mut sink = Digested { sink: arrival, digest: Sum::default() };
        let bytes = match folder.fetch(&file.name, &mut sink).await {
            Ok(bytes) => bytes,
            Err(ReachError::Unwritten { why }) => return Err(arrival.failed(&why)),
            Err(error) => return Ok(Err(why(&error))),
        };
        let digest = sink.digest.to_hex();
        if digest == file.sha256 || since == Some(digest.as_str()) {
            return Ok(Ok(()));
        }
        seen = format!(
            "fetched {bytes} bytes with digest {}, the node reported {} bytes with digest {}",
            short(&digest),
            file.bytes,
            short(&file.sha256)
        );
    }
    Ok(Err(seen))
}

/// A file that is home already.
fn again(home: &Path, arrival: &mut Arrival<'_>) -> Result<(), StoreError> {
    let failed = |error: io::Error| ReachError::Unwritten { why: error.to_string() };
    let poured = File::open(home).map_err(failed).and_then(|mut file| pour(&mut file, arrival, failed));
    poured.map(|_| ()).map_err(|error| arrival.failed(&error.to_string()))
}

/// The bytes that come have a digest, which is not that of the file at home.
struct Digested<'a> {
    sink: &'a mut dyn Sink,
    digest: Sum,
}

impl Sink for Digested<'_> {
    fn restart(&mut self) -> io::Result<()> {
        self.digest = Sum::default();
        self.sink.restart()
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.digest.update(bytes);
        self.sink.append(bytes)
    }
}

/// An account that came home. A file of more bytes is none.
fn small(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(ACCOUNT_LIMIT + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= ACCOUNT_LIMIT).then_some(bytes)
}

fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}

#[cfg(test)]
mod tests;
