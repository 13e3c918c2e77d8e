//! A run that is there, read only: each artefact as it was written, nothing where it was not. What is broken is
//! reported by the file's name, and never taken for absent.

use super::{Scratch, StoreError, own_artefacts, parse_json, vetting};
use metric::Metrics;
use model::artefact::{
    Analyses, Analysis, CaseJobs, CaseOutcomes, CaseVerdict, Collected, KeptReports, Plan, Probe,
    RunArtefacts, RunRecord, Summary,
};
use serde::de::DeserializeOwned;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The folder of a run, and its plan.
#[derive(Debug)]
pub struct Stored {
    folder: PathBuf,
    /// As the plan of the run says.
    run_id: String,
    /// Read from `plan.json`; no name in it leads out of the folder.
    pub plan: Arc<Plan>,
    /// Where the run lies only as long as this is held.
    temporary: Option<Scratch>,
    /// By `run.json`, read when the first of them is.
    own: OnceLock<Option<RunArtefacts>>,
}

impl Stored {
    /// Reads `plan.json`; the other artefacts are read when they are asked for.
    pub fn open(folder: &Path) -> Result<Stored, StoreError> {
        let path = folder.join("plan.json");
        let absent =
            || StoreError::other(&path, &"not found: not a run, or stopped before its plan was written");
        let plan: Plan = optional(&path)?.ok_or_else(absent)?;
        match odd_name(&plan) {
            Some(name) => Err(StoreError::other(&path, &format!("{name:?} is not a file name inside a run"))),
            None => {
                let run_id = plan.run_id.clone();
                Ok(Stored::with_plan(folder, run_id, Arc::new(plan)))
            }
        }
    }

    /// The same of a run in a temporary folder, which is removed with this value.
    pub fn open_temporary(folder: &Path, temporary: Scratch) -> Result<Stored, StoreError> {
        Ok(Stored { temporary: Some(temporary), ..Stored::open(folder)? })
    }

    /// Whether nothing of it stays.
    pub fn is_temporary(&self) -> bool {
        self.temporary.is_some()
    }

    /// The same by a plan that is known already, and whose names are safe. Runs may share it, so that the id is not its own.
    pub fn with_plan(folder: &Path, run_id: String, plan: Arc<Plan>) -> Stored {
        Stored { folder: folder.to_owned(), run_id, plan, temporary: None, own: OnceLock::new() }
    }

    /// As `open` was given it.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// `cases/CASE`, there or not.
    pub fn case(&self, case: &str) -> PathBuf {
        self.folder.join("cases").join(case)
    }

    /// `run.json`; none where it is absent.
    pub fn record(&self) -> Result<Option<RunRecord>, StoreError> {
        let path = self.folder.join("run.json");
        let record: Option<RunRecord> = optional(&path)?;
        let own = record.as_ref().and_then(|record| record.artefacts.as_ref());
        self.check_id(&path, own.map(|own| &own.run_id))?;
        Ok(record)
    }

    /// A file that says by itself of which run it is.
    fn check_id(&self, path: &Path, id: Option<&String>) -> Result<(), StoreError> {
        match id.filter(|id| **id != self.run_id) {
            Some(id) => {
                let why = format!("of run `{id}`, but `plan.json` is of run `{}`", self.run_id);
                Err(StoreError::foreign(path, &format!("{why}; put the run's own file back")))
            }
            None => Ok(()),
        }
    }

    /// The artefact of that name; an error where the run was over, and had not written it.
    fn own<T>(
        &self,
        name: &str,
        parse: impl FnOnce(&Path, &[u8]) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let path = self.folder.join(name);
        let Some(bytes) = bytes(&path)? else { return Ok(None) };
        let value = parse(&path, &bytes)?;
        // While a run goes on, its files grow.
        let read = || {
            let ended = self.record()?.filter(|record| record.ended.is_some());
            Ok(ended.and_then(|record| record.artefacts))
        };
        let own = match self.own.get() {
            Some(own) => own,
            None => {
                let own = read()?;
                self.own.get_or_init(|| own)
            }
        };
        let is_own =
            |own: &Option<RunArtefacts>| own.as_ref().is_none_or(|own| own_artefacts::has(own, name, &bytes));
        // The run may have been resumed since.
        if is_own(own) || is_own(&read()?) {
            return Ok(Some(value));
        }
        Err(self.not_own(&path, name))
    }

    fn not_own(&self, path: &Path, name: &str) -> StoreError {
        let why = format!("not what run `{}` wrote, by the digest in its `run.json`", self.run_id);
        StoreError::foreign(path, &format!("{why}; {}", own_artefacts::advice(name)))
    }

    /// An error where `plan.json` of a run that has ended was changed since: a plan with fewer assertions passes more
    /// easily. Older runs have no digest of it.
    pub fn check_plan(&self) -> Result<(), StoreError> {
        let ended = self.record()?.filter(|record| record.ended.is_some());
        let Some(own) = ended.and_then(|record| record.artefacts) else { return Ok(()) };
        if !own.sha256.contains_key(own_artefacts::PLAN) {
            return Ok(());
        }
        let path = self.folder.join(own_artefacts::PLAN);
        match bytes(&path)? {
            Some(bytes) if own_artefacts::has(&own, own_artefacts::PLAN, &bytes) => Ok(()),
            _ => Err(self.not_own(&path, own_artefacts::PLAN)),
        }
    }

    fn own_json<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, StoreError> {
        self.own(name, parse_json)
    }

    /// What the nodes reported before the run, where they were probed.
    pub fn probe(&self) -> Result<Option<Probe>, StoreError> {
        self.own_json("probe.json")
    }

    /// A file that is not what the run wrote, by the digests of a run that has ended: changed, removed or put there since.
    pub fn changed(&self) -> Result<Option<String>, StoreError> {
        let ended = self.record()?.filter(|record| record.ended.is_some());
        let Some(own) = ended.and_then(|record| record.artefacts) else { return Ok(None) };
        let now = own_artefacts::digests(&self.folder, &self.plan)?;
        let names = own.sha256.keys().chain(now.sha256.keys());
        // Of its plan an older run has no digest.
        let has_digest = |name: &&String| *name != own_artefacts::PLAN || own.sha256.contains_key(*name);
        let mut changed =
            names.filter(has_digest).filter(|name| own.sha256.get(*name) != now.sha256.get(*name));
        Ok(changed.next().cloned())
    }

    /// Where tasks of a cluster read its reports, where any did.
    pub fn analyses(&self) -> Result<Option<Analyses>, StoreError> {
        self.own_json("analyses.json")
    }

    /// `summary.json`; none where it is absent.
    pub fn summary(&self) -> Result<Option<Summary>, StoreError> {
        let path = self.folder.join("summary.json");
        let summary: Option<Summary> = optional(&path)?;
        self.check_id(&path, summary.as_ref().map(|summary| &summary.run_id))?;
        Ok(summary)
    }

    /// `job.json`; none where the case did not run to its end.
    pub fn jobs(&self, case: &str) -> Result<Option<CaseJobs>, StoreError> {
        self.own_json(&case_file(case, "job.json"))
    }

    /// `collected.json`; a path in it that leads out of the case is an error.
    pub fn collected(&self, case: &str) -> Result<Option<Collected>, StoreError> {
        let path = self.case(case).join("collected.json");
        let collected: Option<Collected> = self.own_json(&case_file(case, "collected.json"))?;
        let odd = collected.iter().flat_map(|found| &found.files).find(|file| !is_inside(&file.path));
        match odd {
            Some(file) => {
                Err(StoreError::other(&path, &format!("{:?} is not a file inside the case", file.path)))
            }
            None => Ok(collected),
        }
    }

    /// The reports that were kept whole, where the case is profiled.
    pub fn kept(&self, case: &str) -> Result<Option<KeptReports>, StoreError> {
        self.own_json(&case_file(case, "reports.json"))
    }

    /// `analysis.json`; none where the case was not analyzed.
    pub fn analysis(&self, case: &str) -> Result<Option<Analysis>, StoreError> {
        self.own_json(&case_file(case, "analysis.json"))
    }

    /// `metrics.parquet`; none where the case was not analyzed.
    pub fn metrics(&self, case: &str) -> Result<Option<Metrics>, StoreError> {
        self.own(&case_file(case, "metrics.parquet"), |path, bytes| {
            recipes::parquet::from_parquet(bytes).map_err(|error| {
                StoreError::other(
                    path,
                    &format!("{error}; rebuild it from the collected files with `--from analyze`"),
                )
            })
        })
    }

    /// `verdict.json`; an error where it has not one verdict for each planned assertion.
    pub fn verdict(&self, case: &str) -> Result<Option<CaseVerdict>, StoreError> {
        let path = self.case(case).join("verdict.json");
        let verdict: Option<CaseVerdict> = self.own_json(&case_file(case, "verdict.json"))?;
        let planned = self.plan.cases.iter().find(|planned| planned.name == case);
        let names = planned.into_iter().flat_map(|planned| &planned.assertions).map(|one| &one.name);
        match &verdict {
            Some(verdict) if !names.eq(verdict.verdicts.iter().map(|one| &one.name)) => {
                let why = "does not have one verdict per assertion of the plan; rejudge with `--from judge`";
                Err(StoreError::other(&path, &why))
            }
            _ => Ok(verdict),
        }
    }

    /// `outcomes.json`; none where the case was not judged.
    pub fn outcomes(&self, case: &str) -> Result<Option<CaseOutcomes>, StoreError> {
        self.own_json(&case_file(case, "outcomes.json"))
    }

    /// The events of the run so far, in their order; none where there is no `events.jsonl`.
    pub fn events(&self) -> Result<Vec<serde_json::Value>, StoreError> {
        let bytes = bytes(&self.folder.join("events.jsonl"))?.unwrap_or_default();
        // A line that was cut off was never written.
        let lines = bytes.split(|byte| *byte == b'\n');
        Ok(lines.filter_map(|line| serde_json::from_slice(line).ok()).collect())
    }

    /// The times of the run's first and last events.
    pub fn first_and_last_event(&self) -> Result<Option<(String, String)>, StoreError> {
        let events = self.events()?;
        let moments: Vec<String> =
            events.iter().filter_map(|event| event["at"].as_str().map(str::to_owned)).collect();
        Ok(moments.first().cloned().zip(moments.last().cloned()))
    }
}

/// The path of a case's file in the run's folder.
fn case_file(case: &str, file: &str) -> String {
    format!("cases/{case}/{file}")
}

/// No file system has longer names, nor longer paths.
const LONGEST_NAME: usize = 255;
const LONGEST_PATH: usize = 4000;

/// Whether a path leads below where it starts, by plain names alone, which a terminal can show.
pub fn is_inside(path: &str) -> bool {
    !path.is_empty()
        && path.len() <= LONGEST_PATH
        && !path.contains(char::is_control)
        && !path.split('/').any(|name| name.is_empty() || name == "." || name.len() > LONGEST_NAME)
        && Path::new(path).components().all(|component| matches!(component, Component::Normal(_)))
}

/// Whether no name in a plan leads out of its run's folder.
pub fn has_safe_names(plan: &Plan) -> bool {
    odd_name(plan).is_none()
}

/// A name by which files would be written elsewhere than in the run's folder. Plans may come from other machines.
fn odd_name(plan: &Plan) -> Option<&str> {
    let one = |name: &&str| !is_inside(name) || name.contains('/');
    let jobs = || plan.cases.iter().flat_map(|case| &case.jobs);
    let single = std::iter::once(plan.run_id.as_str())
        .chain(plan.cases.iter().map(|case| case.name.as_str()))
        .chain(jobs().map(|job| job.name.as_str()))
        .find(one);
    let mut files = jobs().flat_map(|job| &job.expected).map(|file| file.name.as_str());
    single.or_else(|| files.find(|name| !is_inside(name)))
}

pub(super) fn optional<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, StoreError> {
    match bytes(path)? {
        Some(bytes) => parse_json(path, &bytes).map(Some),
        None => Ok(None),
    }
}

fn bytes(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    vetting::read(path, vetting::MOST).map_err(|why| StoreError::other(path, &why))
}

#[cfg(test)]
mod tests {
    use super::is_inside;

    #[test]
    fn only_plain_names_lead_inside() {
        for path in ["a", "raw/j/x", "a.b", "..a"] {
            assert!(is_inside(path), "{path}");
        }
        for path in [
            "",
            "/a",
            "..",
            "a/../b",
            "./a",
            "a//b",
            "a/",
            "a\0b",
            "a/..",
            "a/./b",
            "a\nb",
            "\u{1b}[2J",
            "a\u{9b}",
        ] {
            assert!(!is_inside(path), "{path:?}");
        }
        let long = "a".repeat(255);
        assert!(
            is_inside(&long) && !is_inside(&(long.clone() + "a")) && !is_inside(&vec![long; 16].join("/"))
        );
    }
}
