//! Which artefacts a run wrote: `run.json` has their digests, by which a file of another run in their place is found.

use super::{StoreError, vetting};
use base::digest::{sha256, sha256_of_file};
use model::artefact::{Plan, RunArtefacts};
use std::path::Path;

/// The cluster that its pods are in.
pub(crate) const CLUSTER: &str = "cluster.json";
/// What was decided before the launch. Older runs have no digest of it.
pub(crate) const PLAN: &str = "plan.json";
/// Of the run's folder.
const OF_RUN: [&str; 3] = ["probe.json", "analyses.json", CLUSTER];
/// Of each case.
const OF_CASE: [&str; 7] = [
    "job.json",
    "collected.json",
    "reports.json",
    "analysis.json",
    "metrics.parquet",
    "verdict.json",
    "outcomes.json",
];

/// Those that lie in the run's folder.
pub fn digests(folder: &Path, plan: &Plan) -> Result<RunArtefacts, StoreError> {
    let of_cases =
        plan.cases.iter().flat_map(|case| OF_CASE.map(|file| format!("cases/{}/{file}", case.name)));
    let mut own = RunArtefacts { run_id: plan.run_id.clone(), sha256: Default::default() };
    for name in OF_RUN.map(str::to_owned).into_iter().chain(of_cases) {
        let path = folder.join(&name);
        if let Some(bytes) =
            vetting::read(&path, vetting::MOST).map_err(|why| StoreError::other(&path, &why))?
        {
            own.sha256.insert(name, sha256(&bytes));
        }
    }
    let plan = folder.join(PLAN);
    if plan.is_file() {
        let digest = sha256_of_file(&plan).map_err(|error| StoreError::other(&plan, &error))?;
        own.sha256.insert(PLAN.to_owned(), digest);
    }
    Ok(own)
}

/// Whether the run wrote these bytes under that name.
pub(crate) fn has(own: &RunArtefacts, name: &str, bytes: &[u8]) -> bool {
    own.sha256.get(name).is_some_and(|digest| *digest == sha256(bytes))
}

/// What a person does about a file that the run did not write.
pub(crate) fn advice(name: &str) -> &'static str {
    match name.rsplit('/').next() {
        Some("analysis.json" | "metrics.parquet") => "rebuild it with `--from analyze`",
        Some("verdict.json" | "outcomes.json") => "rebuild it with `--from judge`",
        _ => "put the run's own file back",
    }
}
