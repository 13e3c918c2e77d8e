//! The runs that were made before one and are comparable with it: what they measured of each of its numbers, and what
//! differs between it and the last of them. How many are read is bounded, and what was not read is counted.

use super::past::{self, Run, RunKind};
use crate::fingerprint::{self, Difference, Fingerprint, differences};
use base::text::count;
use config::facts::{ChangedFact, changed_facts};
use metric::Dims;
use metric::unit::Unit;
use model::artefact::{CaseVerdict, Plan, PlannedCase, Probe, Status};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use store::{Stored, is_foreign};

/// Runs whose numbers are shown.
const MOST_RUNS: usize = 20;
/// Folders that are looked into for them.
const MOST_FOLDERS: usize = 200;
/// Of the plans and verdicts that are read.
const MOST_BYTES: u64 = 128 << 20;
/// A chain of replays is followed so far.
const LONGEST_CHAIN: usize = 16;

/// What is known of the comparable runs before one.
#[derive(Debug, Default)]
pub struct RunsBefore {
    /// By the name of an assertion: what each of them measured, the oldest first.
    pub numbers: BTreeMap<String, Vec<f64>>,
    /// How many runs these are of.
    pub runs: usize,
    /// Whether there may be more, which were not read.
    pub is_cut: bool,
    /// The newest of them.
    pub last: Option<LastRun>,
    /// Runs that could not be read: their folder and why.
    pub unread: Vec<(String, String)>,
}

/// The comparable run before, and what is not as it was then.
#[derive(Debug)]
pub struct LastRun {
    /// Its id.
    pub id: String,
    /// When it was made.
    pub made: String,
    /// Versions, suites and other files, settings and variables.
    pub software: Vec<Difference>,
    /// Nodes of the run that it did not have, and nodes that it had beside.
    pub nodes: Difference,
    /// Facts of nodes; none where one of the runs was not probed.
    pub facts: Vec<ChangedFact>,
    /// Whether the nodes of both were probed.
    pub is_probed: bool,
}

/// The run before which others are looked for.
pub struct RunOf<'a> {
    /// Its folder, among those of the others.
    pub folder: &'a Path,
    /// What was to be run.
    pub plan: &'a Plan,
    /// What was judged of it.
    pub cases: &'a [CaseVerdict],
    /// What its nodes reported.
    pub probe: Option<&'a Probe>,
}

impl RunsBefore {
    /// Reads the newest runs beside it. `refused` says why a folder must not be read.
    pub fn read(run: &RunOf<'_>, refused: &dyn Fn(&Path) -> Option<String>) -> RunsBefore {
        let mut before = RunsBefore::default();
        // What came from elsewhere has no past here.
        let Some(runs) = run.folder.parent().filter(|_| !is_foreign(run.folder)) else { return before };
        let own = Own::new(run, runs, refused);
        let all = past::folders(runs).unwrap_or_default();
        let mut candidates = all.into_iter().rev().filter(|path| own.may_be_before(path));
        let (mut left, mut found) = (MOST_BYTES, Vec::new());
        for folder in candidates.by_ref().take(MOST_FOLDERS) {
            if found.len() == MOST_RUNS {
                before.is_cut = true;
                break;
            }
            if let Some(why) = refused(&folder) {
                before.unread.push((past::name(&folder), why));
                continue;
            }
            let size = size(&folder);
            if size > left {
                before.is_cut = true;
                break;
            }
            left -= size;
            match past::run(&folder) {
                Ok(one) if own.is_comparable(&one) => found.push(Found::new(&one, &own, found.is_empty())),
                Ok(_) => {}
                Err(why) => before.unread.push((past::name(&folder), why)),
            }
        }
        before.is_cut |= candidates.next().is_some();
        before.runs = found.len();
        for one in found.into_iter().rev() {
            for (name, value) in one.numbers {
                before.numbers.entry(name).or_default().push(value);
            }
            before.last = one.last.or(before.last);
        }
        before
    }
}

/// What of a run decides whether another is comparable with it.
struct Own<'a> {
    run: &'a RunOf<'a>,
    kind: RunKind,
    /// When its jobs were launched.
    made: String,
    written: Option<SystemTime>,
    /// The runs that have the same jobs.
    same_jobs: BTreeSet<String>,
    shapes: BTreeMap<&'a str, Shape<'a>>,
}

impl<'a> Own<'a> {
    fn new(run: &'a RunOf<'a>, runs: &Path, refused: &dyn Fn(&Path) -> Option<String>) -> Own<'a> {
        let kind = match RunKind::from_plan(run.plan) {
            RunKind::Real if run.cases.iter().any(|case| case.simulated) => RunKind::Simulated,
            kind => kind,
        };
        let mut same_jobs = BTreeSet::from([run.plan.run_id.clone()]);
        let mut first = run.plan.run_id.clone();
        let mut parent = run.plan.replayed_from.as_ref().and(run.plan.parent.clone());
        // A replay has the jobs of its parent, and what was measured since is not before them.
        for _ in 0..LONGEST_CHAIN {
            let Some(id) = parent.filter(|id| store::is_inside(id) && !same_jobs.contains(id)) else { break };
            let folder = Some(runs.join(&id)).filter(|path| !path.is_symlink() && refused(path).is_none());
            let plan = folder.and_then(|folder| Stored::open(&folder).ok()).map(|stored| stored.plan);
            parent = plan.and_then(|plan| plan.replayed_from.as_ref().and(plan.parent.clone()));
            same_jobs.insert(id.clone());
            first = id;
        }
        Own {
            run,
            kind,
            made: past::moment(&first).unwrap_or_default(),
            written: past::written(&runs.join(&first)),
            same_jobs,
            shapes: shapes(run.plan),
        }
    }

    /// By its name alone, so that few folders are read.
    fn may_be_before(&self, folder: &Path) -> bool {
        let name = past::name(folder);
        let made = past::moment(&name);
        !folder.is_symlink()
            && !self.same_jobs.contains(&name)
            && made.is_some_and(|made| made <= self.made)
            && folder.join("plan.json").is_file()
            && !is_foreign(folder)
    }

    fn is_comparable(&self, other: &Run) -> bool {
        let (plan, own) = (other.plan(), self.run.plan);
        other.kind() == self.kind
            && plan.suites == own.suites
            && plan.inventory == own.inventory
            && plan.instance.name == own.instance.name
            // Its jobs are those of a run that counts by itself.
            && plan.replayed_from.is_none()
            && !self.same_jobs.contains(&plan.run_id)
            && other.round.is_none()
            && !other.is_of_bisection
            && other.was_made_before(&self.made, self.written)
    }
}

/// What one run before says.
struct Found {
    numbers: Vec<(String, f64)>,
    last: Option<LastRun>,
}

impl Found {
    fn new(run: &Run, own: &Own<'_>, is_last: bool) -> Found {
        let theirs = shapes(run.plan());
        let is_same = |name: &str| own.shapes.get(name).is_some_and(|shape| theirs.get(name) == Some(shape));
        let all = run.cases.iter().flat_map(|case| &case.verdicts);
        // A number that another source contradicts proves nothing.
        let counts = |status| !matches!(status, Status::Inconclusive | Status::Error | Status::Skipped);
        let numbers = all
            .filter(|one| counts(one.status) && is_same(&one.name))
            .filter_map(|one| Some((one.name.clone(), one.observed.filter(|value| value.is_finite())?)));
        Found { numbers: numbers.collect(), last: is_last.then(|| last_run(run, own.run)) }
    }
}

/// What a number is of: two with the same name are compared only where all of it is the same.
#[derive(PartialEq)]
struct Shape<'a> {
    metric: &'a str,
    unit: Unit,
    dims: &'a Dims,
    /// Nodes and ranks of its jobs.
    jobs: Vec<(usize, u32)>,
}

/// Of every assertion, by its name.
fn shapes(plan: &Plan) -> BTreeMap<&str, Shape<'_>> {
    let mut all = BTreeMap::new();
    for case in &plan.cases {
        let jobs: BTreeMap<&str, (usize, u32)> =
            case.jobs.iter().map(|job| (job.name.as_str(), (job.nodes.len(), job.ranks))).collect();
        for one in &case.assertions {
            let jobs = one.jobs.iter().filter_map(|name| jobs.get(name.as_str()).copied()).collect();
            let shape = Shape { metric: &one.metric, unit: one.unit, dims: &one.dims, jobs };
            all.insert(one.name.as_str(), shape);
        }
    }
    all
}

/// The sizes of the files that a run is read from.
fn size(folder: &Path) -> u64 {
    let of = |path: PathBuf| fs::symlink_metadata(path).map_or(0, |facts| facts.len());
    let cases = fs::read_dir(folder.join("cases")).into_iter().flatten().flatten();
    let verdicts: u64 = cases.map(|case| of(case.path().join("verdict.json"))).sum();
    verdicts + of(folder.join("plan.json")) + of(folder.join("probe.json"))
}

fn last_run(last: &Run, run: &RunOf<'_>) -> LastRun {
    let (plan, own) = (last.plan(), run.plan);
    let mut software = differences(&last.fingerprint(), &fingerprint::from_run(own, run.cases.iter()));
    software.extend(differences(&files(plan), &files(own)));
    software.extend(differences(&settings(plan), &settings(own)));
    software.extend(variables(plan, own));
    let probed = last.stored.probe().ok().flatten();
    let facts = probed.as_ref().zip(run.probe).map(|(theirs, own)| changed_facts(theirs, own));
    let nodes = |plan: &Plan| plan.nodes.iter().cloned().collect::<BTreeSet<String>>();
    let (before, after) = (nodes(plan), nodes(own));
    LastRun {
        id: last.id().to_owned(),
        made: last.made.clone(),
        software,
        nodes: Difference {
            part: "nodes".to_owned(),
            before: before.difference(&after).cloned().collect(),
            after: after.difference(&before).cloned().collect(),
        },
        is_probed: facts.is_some(),
        facts: facts.unwrap_or_default(),
    }
}

/// What was read beside suites, which are part of the fingerprint.
fn files(plan: &Plan) -> Fingerprint {
    let others = plan.sources.iter().filter(|source| !source.file.starts_with("suites/"));
    others.map(|one| (one.file.clone(), [one.sha256.chars().take(12).collect()].into())).collect()
}

fn settings(plan: &Plan) -> Fingerprint {
    let given = plan.settings.iter().map(|(name, value)| (format!("--set {name}"), [value.clone()].into()));
    let mut all: Fingerprint = given.collect();
    if !plan.sim_faults.is_empty() {
        all.insert("simulated faults".to_owned(), plan.sim_faults.iter().cloned().collect());
    }
    all
}

/// Variables that change what a transfer costs, of cases that both runs have: one difference for all cases with it.
fn variables(before: &Plan, after: &Plan) -> Vec<Difference> {
    let of = |case: &PlannedCase| -> BTreeSet<String> {
        let all = case.jobs.first().map(fingerprint::variables).unwrap_or_default();
        all.split(' ').filter(|set| set.contains('=')).map(str::to_owned).collect()
    };
    let mut cases: BTreeMap<(BTreeSet<String>, BTreeSet<String>), Vec<&str>> = BTreeMap::new();
    for case in after.cases.iter().filter(|case| case.skip.is_none()) {
        let is_same = |other: &&PlannedCase| other.name == case.name && other.suite == case.suite;
        let Some(other) = before.cases.iter().find(|other| is_same(other) && other.skip.is_none()) else {
            continue;
        };
        let (theirs, own) = (of(other), of(case));
        if theirs != own {
            let only = |a: &BTreeSet<String>, b: &BTreeSet<String>| a.difference(b).cloned().collect();
            cases.entry((only(&theirs, &own), only(&own, &theirs))).or_default().push(&case.name);
        }
    }
    let named = cases.into_iter().map(|((before, after), names)| Difference {
        part: match names.as_slice() {
            [one] => format!("variables of {one}"),
            [first, rest @ ..] => format!("variables of {first} and {}", count(rest.len(), "other case")),
            [] => "variables".to_owned(),
        },
        before,
        after,
    });
    named.collect()
}
