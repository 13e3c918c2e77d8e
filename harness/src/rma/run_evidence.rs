//! What one run leaves for the vendor: its verdicts and culprits about the hardware, the commands that were run, and what
//! they printed on its node.

use super::folder::Folder;
use super::raw_file;
use super::return_case::ReturnCase;
use base::digest::sha256;
use base::text::command_line;
use job::script;
use metric::unit::Unit;
use model::artefact::{
    CollectedFile, FileKind, Format, JobRecord, PlannedCase, PlannedJob, ProbedNode, Status, Value, Verdict,
};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use store::vetting;
use verdict::history::hardware_record::{Scope, Sighting, verdicts};
use verdict::history::past::Run;

/// The facts of a probe that describe hardware and its drivers; others are the site's own business.
pub(super) const FACTS: [&str; 25] = [
    "instance",
    "machine",
    "gpu",
    "gpus",
    "gpu_ids",
    "gpu_vbios",
    "driver",
    "ecc",
    "ecc_errors",
    "gpu_clocks",
    "gpu_throttled",
    "xid",
    "nics",
    "nics_down",
    "nic_ids",
    "nic_firmware",
    "efa",
    "efa_installer",
    "libfabric",
    "ofi_nccl",
    "nccl",
    "cuda",
    "kernel",
    "os",
    "fabric_manager",
];

/// `runs/RUN/run.json`.
#[derive(Serialize)]
struct Excerpt<'a> {
    format: Format<1>,
    run: &'a str,
    made: &'a str,
    harness: &'a str,
    suites: &'a [String],
    instance: &'a str,
    simulated: bool,
    sim_faults: Vec<&'a String>,
    seed: u64,
    state: String,
    node: &'a str,
    part: Option<&'a str>,
    /// `probe` or `name`.
    identified_by: &'static str,
    culprits: Vec<BlameRow<'a>>,
    verdicts: Vec<VerdictRow<'a>>,
    versions: BTreeMap<&'a str, &'a BTreeSet<String>>,
    jobs: Vec<JobRow>,
    facts: BTreeMap<&'a str, &'a Value>,
    unknown: BTreeMap<&'a str, &'a str>,
}

#[derive(Serialize)]
struct BlameRow<'a> {
    part: &'a str,
    code: &'a str,
    alone: bool,
    evidence: &'a str,
}

#[derive(Serialize)]
struct VerdictRow<'a> {
    case: &'a str,
    scope: String,
    name: &'a str,
    status: Status,
    observed: Option<f64>,
    lower: Option<f64>,
    upper: Option<f64>,
    unit: Unit,
    n: u32,
    n_expected: u32,
    message: &'a str,
}

#[derive(Serialize)]
struct JobRow {
    case: String,
    #[serde(flatten)]
    record: JobRecord,
}

/// Writes `runs/RUN`.
pub(super) fn write(folder: &mut Folder, case: &ReturnCase<'_>, sighting: &Sighting) -> Result<(), String> {
    let run = case.run(sighting);
    let id = run.id();
    let probed = case.probed(sighting);
    let cases = cases(case, sighting);
    folder.write_json(&["runs", id, "run.json"], &excerpt(case, sighting, probed.as_ref(), &cases))?;
    let mut scripts: BTreeMap<&'static str, &'static str> = BTreeMap::new();
    for planned in &cases {
        for job in planned.jobs.iter().filter(|job| job.nodes.contains(&sighting.node)) {
            commands(folder, id, planned, job, &mut scripts)?;
        }
        raw(folder, case, sighting, planned)?;
    }
    for (name, text) in scripts {
        folder.write(&["runs", id, "scripts", name], text)?;
    }
    Ok(())
}

/// The cases that blame it or are red about it; all that it was in, where all are wanted.
fn cases<'a>(case: &ReturnCase<'a>, sighting: &Sighting) -> Vec<&'a PlannedCase> {
    let run = case.run(sighting);
    let blamed: BTreeSet<&str> = case
        .record
        .blames
        .iter()
        .filter(|blame| blame.run == sighting.run)
        .flat_map(|blame| blame.cases.iter().map(|(_, name)| name.as_str()))
        .collect();
    let is_blamed = case.is_blamed(sighting);
    let has_all = case.all || case.record.rounds.contains(&sighting.run);
    let is_meant = |planned: &&PlannedCase| {
        let is_in = planned.jobs.iter().any(|job| job.nodes.contains(&sighting.node));
        let judged = run.cases.iter().filter(|judged| judged.case == planned.name);
        let mut about = judged.flat_map(|judged| verdicts(judged, sighting));
        // What blames it may be a number of several nodes.
        let mut is_red =
            || about.any(|(scope, verdict)| (is_blamed || scope == Scope::Own) && verdict.status.is_red());
        is_in && (has_all || blamed.contains(planned.name.as_str()) || is_red())
    };
    run.plan().cases.iter().filter(is_meant).collect()
}

fn excerpt<'a>(
    case: &ReturnCase<'a>,
    sighting: &'a Sighting,
    probed: Option<&'a ProbedNode>,
    cases: &[&'a PlannedCase],
) -> Excerpt<'a> {
    let run = case.run(sighting);
    let plan = run.plan();
    let blames = case.record.blames.iter().filter(|blame| blame.run == sighting.run);
    let judged = || {
        run.cases
            .iter()
            .flat_map(|judged| verdicts(judged, sighting).into_iter().map(move |row| (judged, row)))
    };
    let mut versions: BTreeMap<&str, &BTreeSet<String>> = BTreeMap::new();
    for judged in &run.cases {
        versions.extend(judged.versions.iter().map(|(name, all)| (name.as_str(), all)));
    }
    let facts = probed.into_iter().flat_map(|node| &node.facts);
    let unknown = probed.into_iter().flat_map(|node| &node.unknown);
    Excerpt {
        format: Format,
        run: run.id(),
        made: &run.made,
        harness: &plan.harness,
        suites: &plan.suites,
        instance: &plan.instance.name,
        simulated: run.is_simulated(),
        sim_faults: plan
            .sim_faults
            .iter()
            .chain(plan.cases.iter().flat_map(|case| &case.sim_faults))
            .collect(),
        seed: plan.seed,
        state: run.state(),
        node: &sighting.node,
        part: sighting.part.as_deref(),
        identified_by: if sighting.is_probed { "probe" } else { "name" },
        culprits: blames
            .map(|blame| BlameRow {
                part: &blame.part,
                code: blame.code,
                alone: blame.alone,
                evidence: &blame.evidence,
            })
            .collect(),
        verdicts: judged().map(|(judged, (scope, verdict))| row(&judged.case, scope, verdict)).collect(),
        versions,
        jobs: cases.iter().flat_map(|planned| jobs(run, planned, &sighting.node)).collect(),
        facts: facts
            .filter(|(name, _)| FACTS.contains(&name.as_str()))
            .map(|(name, value)| (name.as_str(), value))
            .collect(),
        unknown: unknown
            .filter(|(name, _)| FACTS.contains(&name.as_str()))
            .map(|(name, why)| (name.as_str(), why.as_str()))
            .collect(),
    }
}

fn row<'a>(case: &'a str, scope: Scope, verdict: &'a Verdict) -> VerdictRow<'a> {
    VerdictRow {
        case,
        scope: scope_name(scope),
        name: &verdict.name,
        status: verdict.status,
        observed: verdict.observed,
        lower: verdict.lower,
        upper: verdict.upper,
        unit: verdict.unit,
        n: verdict.n,
        n_expected: verdict.n_expected,
        message: &verdict.message,
    }
}

/// For people and for `history.csv`.
pub(super) fn scope_name(scope: Scope) -> String {
    match scope {
        Scope::Own => "own".to_owned(),
        Scope::Node => "its node".to_owned(),
        Scope::Group(nodes) => format!("{nodes} nodes"),
    }
}

/// Jobs that ran on its node. A record that cannot be read has none; the run's state says so where it matters.
fn jobs(run: &Run, planned: &PlannedCase, node: &String) -> Vec<JobRow> {
    let is_of_node = |record: &JobRecord| {
        planned.jobs.iter().any(|job| job.name == record.name && job.nodes.contains(node))
    };
    let records = run.stored.jobs(&planned.name).ok().flatten().map(|jobs| jobs.jobs).unwrap_or_default();
    let own = records.into_iter().filter(is_of_node);
    own.map(|record| JobRow { case: planned.name.clone(), record }).collect()
}

/// How a job was started, and its own script; scripts that all jobs share are collected.
fn commands(
    folder: &mut Folder,
    run: &str,
    planned: &PlannedCase,
    job: &PlannedJob,
    scripts: &mut BTreeMap<&'static str, &'static str>,
) -> Result<(), String> {
    let path = |name| ["runs", run, "commands", &planned.name, &job.name, name];
    folder.write(&path("launch.txt"), &format!("{}\n", command_line(&job.launch)))?;
    for file in &job.files {
        let shared = script::SHARED.iter().find(|(name, _)| *name == file.name);
        match (&file.text, shared) {
            (Some(text), _) => folder.write(&path(&file.name), text)?,
            (None, Some((name, text))) if file.sha256.as_deref() == Some(&sha256(text.as_bytes())) => {
                scripts.insert(name, text);
            }
            (None, _) => {
                folder.leave_out(
                    &path(&file.name),
                    "a script of another version of the harness, which this one lacks",
                );
            }
        }
    }
    Ok(())
}

/// What the case's jobs printed on its node, or about all their nodes together.
fn raw(
    folder: &mut Folder,
    case: &ReturnCase<'_>,
    sighting: &Sighting,
    planned: &PlannedCase,
) -> Result<(), String> {
    let run = case.run(sighting);
    let collected = match run.stored.collected(&planned.name) {
        Ok(Some(collected)) => collected,
        Ok(None) => return Ok(()),
        Err(error) => {
            let path = ["runs", run.id(), "raw", &planned.name];
            folder.leave_out(&path, &format!("what was collected cannot be read: {error}"));
            return Ok(());
        }
    };
    let judged = run.cases.iter().filter(|judged| judged.case == planned.name);
    let cited: BTreeSet<String> = judged
        .flat_map(|judged| verdicts(judged, sighting))
        .filter(|(scope, _)| *scope == Scope::Own)
        .flat_map(|(_, verdict)| &verdict.evidence)
        .filter_map(|evidence| {
            evidence.file.strip_prefix(&format!("cases/{}/", planned.name)).map(str::to_owned)
        })
        .collect();
    let of_node: BTreeSet<&str> = planned
        .jobs
        .iter()
        .filter(|job| job.nodes.contains(&sighting.node))
        .map(|job| job.name.as_str())
        .collect();
    let is_about = |file: &CollectedFile| {
        let is_of_node = file.node.as_ref().is_none_or(|node| *node == sighting.node);
        let is_of_part =
            sighting.part.as_ref().is_none_or(|part| file.part.as_ref().is_none_or(|own| own == part));
        cited.contains(&file.path) || (is_of_node && is_of_part)
    };
    for file in collected.files.iter().filter(|file| of_node.contains(file.job.as_str()) && is_about(file)) {
        let inside = file.path.strip_prefix("raw/").unwrap_or(&file.path);
        let mut path = vec!["runs", run.id(), "raw", &planned.name];
        path.extend(inside.split('/'));
        if matches!(file.kind, FileKind::ProfileReport | FileKind::ProfileTable) {
            folder.leave_out(&path, "a profiler's report: it cannot be sanitised");
            continue;
        }
        let place = vetting::file_of_case(&run.stored.case(&planned.name), &file.path);
        let read = place.and_then(|place| raw_file::read(&place, &file.sha256, folder.sanitiser.redactor()));
        match read {
            Ok(read) => folder.write_redacted(&path, &read.text, read.cut, read.secrets + file.redacted)?,
            Err(why) => folder.leave_out(&path, &why),
        }
    }
    Ok(())
}
