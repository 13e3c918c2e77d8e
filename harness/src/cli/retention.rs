//! Which stored runs are evidence: for baselines that were made from them, for certificates that stand on them, and for
//! culprits that no later run has cleared. It is asked of the runs themselves, and of no index.

use crate::accept::certificate_files::{self, StoredCertificate};
use config::toml_reader::file;
use model::artefact::acceptance::Acceptance;
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
    let (mut certificates, mut unread) = certificate_files::read_all(&home.path().join("deliveries"));
    // A delivery whose folder is the project's has its runs here.
    match certificate_files::read(home.path()) {
        None => {}
        Some(Ok(certificate)) => certificates.push(certificate),
        Some(Err(why)) => unread.push(why),
    }
    if let Some(why) = unread.first() {
        return Err(format!("certificates: {why}"));
    }
    for StoredCertificate { acceptance, .. } in certificates {
        let why = format!("the certificate of {} stands on it", acceptance.delivery);
        for run in runs_of(acceptance) {
            reasons.insert(run, why.clone());
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

/// The runs that a certificate names.
fn runs_of(acceptance: Acceptance) -> impl Iterator<Item = String> {
    let of_stages = acceptance.stages.into_iter().flat_map(|stage| stage.runs).map(|one| one.run);
    of_stages.chain(acceptance.rejected.into_iter().filter_map(|rejected| rejected.run))
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
    use crate::accept::message_tests::acceptance;
    use crate::report::fixture::{self, Made};
    use model::artefact::{Culprit, RunRecord, Status};

    /// A run of that second on a real cluster, whose node passed, or of which a NIC is blamed.
    fn made(second: usize, is_red: bool) -> Made {
        let (node, nic) = ("p5-001", "rdmap79s0");
        let mut case = fixture::case("nics");
        let status = if is_red { Status::Fail } else { Status::Pass };
        case.simulated = false;
        case.verdicts = vec![fixture::verdict("nics", "rate", node, nic, status)];
        case.culprits = match is_red {
            true => vec![Culprit::Culprit {
                node: node.to_owned(),
                part: nic.to_owned(),
                evidence: "4.8 GB/s, limit 11 GB/s".to_owned(),
                code: Some("HRN-NIC-SLOW".to_owned()),
            }],
            false => Vec::new(),
        };
        let mut made = Made::from_cases(vec![case]);
        made.plan.run_id = format!("20260101T0000{second:02}Z-nccl-p5-{second:04}");
        made.plan.simulated = false;
        made.plan.sim_faults.clear();
        made.plan.cases.truncate(1);
        made.plan.cases[0].assertions.truncate(1);
        made.plan.cases[0].name = "nics".to_owned();
        made.plan.cases[0].assertions[0].name.clone_from(&made.cases[0].verdicts[0].name);
        (made.summary.run_id, made.summary.simulated) = (made.plan.run_id.clone(), false);
        made
    }

    fn put(home: &Home, made: &Made) {
        let record = RunRecord {
            format: model::artefact::Format,
            started: "2026-01-01T00:00:00.000Z".into(),
            ended: Some("2026-01-01T00:01:00.000Z".into()),
            seconds: Some(60.0),
            stopped: None,
            signal_exit_code: None,
            artefacts: None,
        };
        let folder = home.path().join("runs").join(&made.plan.run_id);
        let json = |text: Result<Vec<u8>, serde_json::Error>| text.expect("JSON");
        for (name, text) in [
            ("plan.json", json(serde_json::to_vec(&made.plan))),
            ("run.json", json(serde_json::to_vec(&record))),
            ("summary.json", json(serde_json::to_vec(&made.summary))),
            ("cases/nics/verdict.json", json(serde_json::to_vec(&made.cases[0]))),
        ] {
            store::write_whole(&folder.join(name), &text).expect("written");
        }
    }

    #[test]
    fn a_run_that_blames_a_part_of_a_real_cluster_stays_until_a_later_run_clears_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = Home::bare(folder.path());
        let (red, green) = (made(1, true), made(2, false));
        let mut simulated = made(3, true);
        (simulated.plan.simulated, simulated.cases[0].simulated) = (true, true);
        put(&home, &simulated);
        assert_eq!(reasons(&home), Ok(BTreeMap::new()), "a rehearsal is no evidence");
        put(&home, &red);
        let kept: BTreeMap<String, String> =
            [(red.plan.run_id.clone(), "it blames p5-001 rdmap79s0, which no run has cleared".to_owned())]
                .into();
        assert_eq!(reasons(&home), Ok(kept.clone()));
        // An index that says otherwise, or says nothing, removes no evidence.
        past::outlines(&home.path().join("runs"), None).expect("runs");
        assert!(home.path().join("runs/.index.parquet").is_file());
        assert_eq!(reasons(&home), Ok(kept.clone()));
        fs::write(home.path().join("runs/.index.parquet"), "").expect("written");
        assert_eq!(reasons(&home), Ok(kept));
        put(&home, &green);
        assert_eq!(reasons(&home), Ok(BTreeMap::new()), "a later run clears it");
        put(&home, &made(4, true));
        let both: Vec<String> = reasons(&home).expect("found").into_keys().collect();
        assert_eq!(both, [red.plan.run_id, made(4, true).plan.run_id], "blamed again, both are evidence");
    }

    #[test]
    fn runs_that_a_certificate_names_are_kept_and_one_that_cannot_be_read_removes_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = Home::bare(folder.path());
        let mut certificate = acceptance();
        certificate.rejected[0].run = Some("d-03-groups".to_owned());
        let text = serde_json::to_vec(&certificate).expect("JSON");
        for place in ["deliveries/d/acceptance.json", "acceptance.json"] {
            let place = folder.path().join(place);
            store::write_whole(&place, &text).expect("written");
            let found = reasons(&home).expect("found");
            assert_eq!(found.keys().collect::<Vec<_>>(), ["d-02-pairs", "d-03-groups"]);
            assert_eq!(found["d-02-pairs"], "the certificate of d stands on it");
            store::write_whole(&place, b"{").expect("written");
            let why = reasons(&home).expect_err("refused");
            assert!(why.starts_with("certificates: "), "{why}");
            fs::remove_file(&place).expect("removed");
            std::os::unix::fs::symlink("/dev/zero", &place).expect("linked");
            let why = reasons(&home).expect_err("refused");
            assert!(why.contains("acceptance.json: a link, no regular file or too large"), "{why}");
            fs::remove_file(&place).expect("removed");
        }
        assert_eq!(reasons(&home), Ok(BTreeMap::new()));
    }

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
