//! What limits the work in the reports of a case, as a run keeps it for its page: `diagnosis.json`. A process with limits of
//! its own finds it; a case whose reports are too many or too large for that is named with the reason.

use crate::limited::{self, Failed, Limits};
use crate::page::limits::{self, FoundLimits, MOST_BYTES};
use crate::panics;
use crate::trace::of_run::{CaseArtefacts, TracedJob};
use base::text::count;
use model::artefact::{Format, Plan, PlannedCase, WorkKind};
use recipes::diagnosis::{Diagnosis, diagnose};
use recipes::recipe::of_reports::Input;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use store::{Store, StoreError};

/// The verb by which the program starts itself; no person types it.
pub(crate) const VERB: &str = "diagnose-case";
/// In the folder of the case.
pub(crate) const NAME: &str = limits::NAME;
/// Reports of one job.
const MOST_REPORTS: usize = 64;
/// Their exports together.
const MOST_EXPORT_BYTES: u64 = 256 << 20;
/// Tables of one export; no nsys writes as many.
const MOST_TABLES: usize = 1_000;
const SECONDS: u64 = 300;
const MEMORY: u64 = 4 << 30;

/// `diagnosis.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseDiagnosis {
    format: Format<1>,
    /// The job whose reports were read.
    pub job: String,
    /// How many reports it has.
    pub reports: usize,
    /// Why they were not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
    /// What was found in them; none where they were not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<FoundLimits>,
}

/// Diagnoses by case; one that cannot be read is the reason.
pub(crate) type CaseDiagnoses = [(String, Result<CaseDiagnosis, String>)];

#[derive(Serialize, Deserialize)]
struct Question {
    /// Exports, with their names for messages.
    reports: Vec<(PathBuf, String)>,
}

/// The one finding that a benchmark of communication can have, too.
const STRAGGLER: &str = "straggler";

/// Whether there is work that could be arranged otherwise: a benchmark of communication computes nothing beside it.
pub(crate) fn is_work(case: &PlannedCase) -> bool {
    case.workload.traits().work == WorkKind::Command
}

/// Writes the diagnosis of a case that has reports.
pub(crate) async fn keep(artefacts: &CaseArtefacts<'_>, store: &Store) -> Result<(), StoreError> {
    let Some(TracedJob { case, job, inputs, .. }) = artefacts.traced() else { return Ok(()) };
    let path = store.case(&case).join(NAME);
    let reports: Vec<(PathBuf, String)> = inputs.into_iter().map(|input| (input.path, input.shown)).collect();
    let n = reports.len();
    let found = match too_much(&reports) {
        Some(why) => Err(why),
        None => {
            let found = tokio::task::spawn_blocking(move || ask(&Question { reports })).await;
            found.map_err(|error| StoreError::other(&path, &error))?
        }
    };
    let (found, left_out) = match found {
        Ok(found) => (Some(found), None),
        Err(why) => (None, Some(why)),
    };
    store.write_json(&path, &CaseDiagnosis { format: Format, job, reports: n, left_out, found })
}

/// Why the reports are left to `harness diagnose`.
fn too_much(reports: &[(PathBuf, String)]) -> Option<String> {
    if reports.len() > MOST_REPORTS {
        return Some(format!("{}, limit {MOST_REPORTS}", count(reports.len(), "report")));
    }
    let bytes: u64 = reports.iter().map(|(path, _)| export_bytes(path)).fold(0, u64::saturating_add);
    (bytes > MOST_EXPORT_BYTES)
        .then(|| format!("its reports have {} MiB, limit {} MiB", bytes >> 20, MOST_EXPORT_BYTES >> 20))
}

/// Of a file, or of the tables of a folder. What cannot be read has as much as is too much.
fn export_bytes(path: &Path) -> u64 {
    match fs::symlink_metadata(path) {
        Ok(facts) if facts.is_dir() => {
            let Ok(entries) = fs::read_dir(path) else { return u64::MAX };
            let sizes = entries
                .take(MOST_TABLES)
                .map(|entry| entry.and_then(|entry| entry.metadata()).map_or(u64::MAX, |facts| facts.len()));
            sizes.fold(0, u64::saturating_add)
        }
        Ok(facts) => facts.len(),
        Err(_) => u64::MAX,
    }
}

fn ask(question: &Question) -> Result<FoundLimits, String> {
    let bytes = serde_json::to_vec(question).map_err(|error| error.to_string())?;
    let limits = Limits { memory: MEMORY, seconds: SECONDS, threads: 1, answer: MOST_BYTES };
    let answer = limited::ask(VERB, bytes, &limits).map_err(|failed| match failed {
        Failed::NotStarted(error) => format!("cannot start a process: {error}"),
        Failed::Timeout => format!("its reports were not read within {} min", SECONDS / 60),
        Failed::Memory => format!("its reports need more than {} GiB of memory", MEMORY >> 30),
        Failed::Answer => format!("the diagnosis is larger than {} MiB", MOST_BYTES >> 20),
        Failed::Message(line) => line,
        Failed::Silent(status) => format!("the process that read its reports ended: {status}"),
    })?;
    serde_json::from_slice(&answer).map_err(|error| error.to_string())
}

/// Entry of the process that diagnoses for another.
pub(crate) fn serve(words: &[String]) -> i32 {
    limited::serve(VERB, words, |question| {
        let found = panics::caught(VERB, || find(question));
        found.unwrap_or_else(|why| Err(format!("internal error: {}", why.escape_debug())))
    })
}

fn find(question: &[u8]) -> Result<Vec<u8>, String> {
    let Question { reports } = serde_json::from_slice(question).map_err(|error| error.to_string())?;
    let inputs = reports.into_iter().map(|(path, shown)| Input { path, shown, side: 0 });
    let diagnosis: Diagnosis = diagnose(&inputs.collect::<Vec<_>>(), 1, &|_| {})?;
    serde_json::to_vec(&diagnosis).map_err(|error| error.to_string())
}

/// Of every case that has one, in the order of the plan.
pub(crate) fn read_all(
    plan: &Plan,
    folder: &dyn Fn(&str) -> PathBuf,
) -> Vec<(String, Result<CaseDiagnosis, String>)> {
    let read = |case: &PlannedCase| {
        let mut read: Result<CaseDiagnosis, String> = limits::read(&folder(&case.name).join(NAME))?;
        if !is_work(case) {
            let found = read.as_mut().ok()?.found.as_mut()?;
            found.findings.retain(|finding| finding.code == STRAGGLER);
            (!found.findings.is_empty()).then_some(())?;
        }
        Some((case.name.clone(), read))
    };
    plan.cases.iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn reports_that_are_too_many_too_large_or_gone_are_left_to_the_command() {
        let folder = tempfile::tempdir().expect("a folder");
        let (small, large) = (folder.path().join("small"), folder.path().join("large"));
        fs::write(&small, "x").expect("written");
        File::create(&large).and_then(|file| file.set_len(MOST_EXPORT_BYTES)).expect("made");
        let reports = |paths: &[&PathBuf]| -> Vec<(PathBuf, String)> {
            paths.iter().map(|path| ((*path).clone(), "r".to_owned())).collect()
        };
        assert_eq!(too_much(&reports(&[&small])), None);
        assert_eq!(too_much(&reports(&[&large])), None);
        let why = too_much(&reports(&[&small, &large])).expect("too large");
        assert_eq!(why, "its reports have 256 MiB, limit 256 MiB");
        let why = too_much(&reports(&[&small; 65])).expect("too many");
        assert_eq!(why, "65 reports, limit 64");
        assert!(too_much(&reports(&[&folder.path().join("gone")])).is_some());
        // The tables of a folder count together.
        let tables = folder.path().join("tables");
        fs::create_dir(&tables).expect("made");
        for name in ["a", "b"] {
            File::create(tables.join(name)).and_then(|file| file.set_len(200 << 20)).expect("made");
        }
        assert!(too_much(&reports(&[&tables])).expect("too large").contains("400 MiB"));
    }
}
