//! Which stored runs are evidence: for baselines that were made from them, and for culprits that no later run has cleared.

use config::toml_reader::file;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use store::Home;
use toml::Value;
use verdict::bisect::record::{self, BisectionRecord};
use verdict::history::past::{self, RunKind};
use verdict::history::suspects;
use verdict::isolate::round::{self, Record};

/// By the id of a run: why it stays. An error where that cannot be found out.
pub(super) fn reasons(home: &Home) -> Result<BTreeMap<String, String>, String> {
    let mut reasons = BTreeMap::new();
    let folder = home.path().join("runs");
    if folder.is_dir() {
        // What a rehearsal has shown is no evidence against a node.
        let past = past::read(&folder)?;
        for skipped in past.passed.iter().map(|skipped| &skipped.name) {
            let run = folder.join(skipped);
            if let (false, Err(why)) = (store::is_foreign(&run), past::run(&run)) {
                reasons.insert(skipped.clone(), format!("what it shows cannot be read: {why}"));
            }
        }
        let past = past.only(RunKind::Real);
        for suspect in suspects::suspects(&past).iter().filter(|suspect| suspect.is_open()) {
            let part = &suspect.component;
            for run in suspect.blamed().iter().filter_map(|at| past.runs.get(*at)) {
                let why = format!("it blames {} {}, which no run has cleared", part.node, part.part);
                reasons.insert(run.id().to_owned(), why);
            }
        }
    }
    for path in baseline_files(&home.path().join("baselines"))? {
        let shown = home.display_path(&path);
        let text = file::read(&path).map_err(|error| format!("{shown}: {error}"))?;
        let table: toml::Table = text.parse().map_err(|error| format!("{shown}: {error}"))?;
        let mut runs = Vec::new();
        named(&Value::Table(table), &mut runs);
        for run in runs {
            reasons.insert(run, format!("{shown} was made from it"));
        }
    }
    keep_together(&folder, &mut reasons);
    Ok(reasons)
}

/// The rounds of an isolation stay together, and so do the runs of a bisection; one that has not ended stays.
fn keep_together(folder: &Path, reasons: &mut BTreeMap<String, String>) {
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut ended = BTreeSet::new();
    for run in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let Some(id) = run.file_name().and_then(|name| name.to_str()).filter(|_| !run.is_symlink()) else {
            continue;
        };
        if let Ok(record) = store::read_json::<Record>(&run.join(round::RECORD)) {
            ended.insert(record.first.clone());
            groups.entry(record.first).or_default().push(id.to_owned());
        }
        if let Ok(record) = store::read_json::<BisectionRecord>(&run.join(record::RECORD)) {
            if record.outcome.is_some() {
                ended.insert(record.first.clone());
            }
            groups.entry(record.first).or_default().push(id.to_owned());
        }
    }
    for (first, runs) in groups {
        let why = runs.iter().find_map(|run| reasons.get(run).cloned());
        let open = (!ended.contains(&first)).then(|| format!("bisection {first} has not ended"));
        if let Some(why) = why.or(open) {
            runs.into_iter().for_each(|run| drop(reasons.insert(run, why.clone())));
        }
    }
}

/// Those in force, and those that are proposed, which may lie one folder deeper.
fn baseline_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        if !folder.is_dir() {
            continue;
        }
        let error = |error: std::io::Error| format!("{}: {error}", folder.display());
        for entry in fs::read_dir(&folder).map_err(error)? {
            let path = entry.map_err(error)?.path();
            if path.is_dir() && !path.is_symlink() && depth == 0 {
                folders.push((path, depth + 1));
            } else if path.extension().is_some_and(|end| end == "toml") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The texts of every key `run` and `runs`.
fn named(value: &Value, runs: &mut Vec<String>) {
    match value {
        Value::Table(table) => {
            for (key, value) in table {
                match (key.as_str(), value) {
                    ("run", Value::String(run)) => runs.push(run.clone()),
                    ("runs", Value::Array(all)) => {
                        runs.extend(all.iter().filter_map(Value::as_str).map(str::to_owned));
                    }
                    _ => named(value, runs),
                }
            }
        }
        Value::Array(all) => all.iter().for_each(|value| named(value, runs)),
        _ => {}
    }
}

/// Of all files of a run that no other run shares.
pub(super) fn bytes(folder: &Path) -> u64 {
    let files = store::files(folder).unwrap_or_default();
    let data = files.iter().filter_map(|file| fs::symlink_metadata(folder.join(file)).ok());
    data.filter(|data| data.nlink() == 1).map(|data| data.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_baselines_name_and_runs_that_cannot_be_read_are_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = Home::bare(folder.path());
        let write = |name: &str, text: &str| {
            let path = folder.path().join("baselines").join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        };
        write("p5.toml", "[[baseline]]\nmetric = \"m\"\nruns = [\"r1\", \"r2\"]\n");
        write("proposed/p5.toml", "[[baseline]]\nsamples = [{ run = \"r3\", value = 1 }]\n");
        let found = reasons(&home).expect("found");
        assert_eq!(found.keys().collect::<Vec<_>>(), ["r1", "r2", "r3"]);
        assert_eq!(found["r1"], "baselines/p5.toml was made from it");
        let skipped = folder.path().join("runs/20260101T000001Z-nccl-p5-0001");
        fs::create_dir_all(&skipped).expect("made");
        fs::write(skipped.join("plan.json"), "{").expect("written");
        let why = reasons(&home).expect("found");
        let why = &why["20260101T000001Z-nccl-p5-0001"];
        assert!(why.starts_with("what it shows cannot be read: "), "{why}");
        write("broken.toml", "runs = [");
        assert!(reasons(&home).is_err_and(|why| why.starts_with("baselines/broken.toml: ")));
    }
}
