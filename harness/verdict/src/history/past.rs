//! The runs of a folder, in the order in which they were made. Each set of jobs counts once, as it was judged last;
//! unreadable and incomplete runs are listed by name.

use super::agreement;
use super::blameless;
use super::hardware::{self, OfNodes};
use super::index::RunIndex;
use crate::bisect;
use crate::fingerprint::{self, Fingerprint};
use crate::isolate::round::{RECORD, Record};
use base::text::count;
use model::artefact::{CaseVerdict, Culprit, LeftOut, Plan, Summary};
use model::exit_code;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use store::vetting;
use store::{Stored, is_foreign, read_json};

/// A run that can be read, at least in part.
#[derive(Debug)]
pub struct Run {
    /// Its folder, from which metrics and analyses are read on demand.
    pub stored: Stored,
    /// When it was made, `2026-11-21 03:10:00`: what orders the runs. Of a simulated one too, whose own time is made up.
    pub made: String,
    /// The verdicts that can be read, one for each case that was not skipped.
    pub cases: Vec<Arc<CaseVerdict>>,
    /// Why it is incomplete: it was stopped, or some of it cannot be read. Empty where it is complete.
    pub partial: Vec<String>,
    /// Those of `summary.json`, else of its cases; without nodes that `blameless` clears. None where these disagree.
    pub culprits: Vec<Culprit>,
    /// What it exited with, and how many parts its summary blames; nothing where it has no summary that can be read.
    pub summarised: Option<Summarised>,
    /// As in its plan.
    pub(super) id: String,
    /// When it ended, on a real clock; nothing where it has not ended or its time is made up.
    pub(super) ended: Option<String>,
    /// When its plan was written, of a simulated run: its own times are made up.
    pub(super) written: Option<SystemTime>,
    /// Of a round of an isolation.
    pub(super) round: Option<Record>,
    /// Made with a software stack that is compared with another: what is slow there is no node's.
    pub(super) is_of_bisection: bool,
    /// What its probe read, where that was asked for already.
    pub(super) hardware: Option<Arc<OfNodes>>,
    /// It has ended, and all of its files that are there can be read.
    pub(super) is_settled: bool,
}

/// The end of a run, by its summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summarised {
    /// What the process exited with.
    pub exit_code: i32,
    /// How many culprits, groups of suspects and causes of the whole fleet it lists.
    pub culprits: usize,
}

/// What a run shows. Numbers and suspicions of one kind say nothing about another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunKind {
    /// All of it was measured on a real cluster.
    Real,
    /// All or some of it is simulated.
    Simulated,
    /// Its suite makes cases go red on purpose, as `canary` does.
    Canary,
}

impl RunKind {
    /// Each once.
    pub const ALL: [RunKind; 3] = [RunKind::Real, RunKind::Simulated, RunKind::Canary];

    /// As `--kind` takes it.
    pub fn name(self) -> &'static str {
        match self {
            RunKind::Real => "real",
            RunKind::Simulated => "simulated",
            RunKind::Canary => "canary",
        }
    }

    /// Of the runs of such a plan.
    pub fn from_plan(plan: &Plan) -> RunKind {
        let is_red_on_purpose = plan.cases.iter().any(|case| case.must_end.is_some());
        match (is_red_on_purpose, plan.simulated) {
            (true, _) => RunKind::Canary,
            (false, true) => RunKind::Simulated,
            (false, false) => RunKind::Real,
        }
    }
}

/// A folder that is not counted, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedRun {
    /// The folder's name or the run's id.
    pub name: String,
    /// For people: no plan, imported, or the same jobs as another run.
    pub why: String,
}

/// The runs of one folder.
#[derive(Debug, Default)]
pub struct Past {
    /// The runs that count, oldest first.
    pub runs: Vec<Run>,
    /// Folders that are not counted, by name.
    pub passed: Vec<SkippedRun>,
}

impl Past {
    /// Only the runs of one kind; the others are named among those that are not counted.
    pub fn only(self, kind: RunKind) -> Past {
        let Past { runs, mut passed } = self;
        let (kept, others): (Vec<Run>, Vec<Run>) = runs.into_iter().partition(|run| run.kind() == kind);
        passed.extend(others.iter().map(|run| SkippedRun {
            name: run.id().to_owned(),
            why: format!("a {0} run; `--kind {0}` shows those", run.kind().name()),
        }));
        Past { runs: kept, passed }
    }
}

/// Every run of a folder, from its own files.
pub fn read(folder: &Path) -> Result<Past, String> {
    let all = all_folders(folder)?;
    Ok(read_runs(&all, &mut |path| run(path)))
}

/// Every run of several folders, such as those of deliveries beside the project's own.
pub fn read_all(all: &[PathBuf]) -> Result<Past, String> {
    let mut found = Vec::new();
    for folder in all {
        found.append(&mut all_folders(folder)?);
    }
    Ok(read_runs(&found, &mut |path| run(path)))
}

/// Runs as lists need them, from the index where they have not changed.
#[derive(Debug)]
pub struct Outlines {
    /// Without scripts, files, words and numbers of verdicts.
    pub past: Past,
    /// How many older folders were not read.
    pub older: usize,
    /// What is wrong with the index; for a person.
    pub notes: Vec<String>,
}

/// The newest runs of a folder, at most so many, or all of them, for what shows many and decides nothing.
pub fn outlines(folder: &Path, most: Option<usize>) -> Result<Outlines, String> {
    let mut all = all_folders(folder)?;
    let is_run = |path: &Path| path.join("plan.json").is_file() && !path.is_symlink();
    let mut index = RunIndex::open(folder);
    let (mut newest, mut read) = (Vec::new(), 0);
    match most {
        None => newest.append(&mut all),
        // What is no run takes no run's place.
        Some(most) => {
            while let Some(path) = all.pop_if(|_| read < most) {
                read += usize::from(is_run(&path));
                newest.push(path);
            }
        }
    }
    let past = read_runs(&newest, &mut |path| index.run(path));
    let older = all.iter().filter(|path| is_run(path)).count();
    Ok(Outlines { past, older, notes: index.close() })
}

fn all_folders(folder: &Path) -> Result<Vec<PathBuf>, String> {
    if folder.join("plan.json").is_file() {
        return Err(format!("`{}` is a single run; give the folder that contains it", folder.display()));
    }
    folders(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

/// The newest runs of a folder, at most so many, without some. A folder that cannot be read has none.
pub fn newest(folder: &Path, most: usize, but: &[Option<&str>]) -> Past {
    let all = folders(folder).unwrap_or_default();
    let others = all.into_iter().rev().filter(|path| !but.contains(&Some(name(path).as_str())));
    read_runs(&others.take(most).collect::<Vec<_>>(), &mut |path| run(path))
}

/// The link that the harness keeps beside the runs.
const LATEST: &str = "latest";

/// The folders, and links, which are named and not followed.
pub(super) fn folders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    let mut folders: Vec<PathBuf> = entries
        .into_iter()
        .filter(|entry| {
            let (kind, name) = (entry.file_type(), entry.file_name());
            let is_link = || kind.as_ref().is_ok_and(fs::FileType::is_symlink);
            let is_wanted = kind.as_ref().is_ok_and(fs::FileType::is_dir) || (is_link() && name != LATEST);
            is_wanted && !name.to_string_lossy().starts_with('.')
        })
        .map(|entry| entry.path())
        .collect();
    folders.sort();
    Ok(folders)
}

fn read_runs(folders: &[PathBuf], read: &mut dyn FnMut(&Path) -> Result<Run, String>) -> Past {
    let mut past = Past::default();
    for folder in folders {
        if folder.is_symlink() {
            let why = "a link, which is not followed".to_owned();
            past.passed.push(SkippedRun { name: name(folder), why });
            continue;
        }
        if is_foreign(folder) {
            let why = "imported from a bundle: its nodes are not those of this project".to_owned();
            past.passed.push(SkippedRun { name: name(folder), why });
            continue;
        }
        match read(folder) {
            Ok(run) => past.runs.push(run),
            Err(why) => past.passed.push(SkippedRun { name: name(folder), why }),
        }
    }
    past.runs.sort_by(in_order);
    once_each(&mut past);
    past
}

/// By the second in which they were made. Of runs of one second: by their end, where a real clock has it, or by when the
/// plan of a simulated one was written, then reruns after others; where nothing decides, the red one is the newest, so that no good one hides it.
fn in_order(a: &Run, b: &Run) -> Ordering {
    let is_open = |run: &Run| run.ended.is_none() && !run.is_simulated();
    let is_red = |run: &Run| !run.partial.is_empty() || !run.culprits.is_empty() || run.red_verdicts() > 0;
    let key =
        |run: &Run| (is_open(run), run.ended.clone(), run.written, run.plan().parent.is_some(), is_red(run));
    a.made.cmp(&b.made).then_with(|| key(a).cmp(&key(b))).then_with(|| a.id().cmp(b.id()))
}

/// Whether it is known to have been made after another. Of two real runs of one second it is not.
pub(super) fn is_later(run: &Run, other: &Run) -> bool {
    other.was_made_before(&run.made, run.written)
}

pub(super) fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// One run by its folder, from its own files. One with a link, a pipe or an endless file in the place of an artefact is
/// not opened.
pub fn run(folder: &Path) -> Result<Run, String> {
    if let Some(why) = vetting::refused(folder) {
        return Err(why);
    }
    if !folder.join("plan.json").is_file() {
        return Err("no `plan.json`: not a run, or stopped before its plan was written".to_owned());
    }
    let within = |error: store::StoreError| {
        let message = error.to_string();
        let of_folder = format!("{}/", folder.display());
        message.strip_prefix(&of_folder).map_or(message.clone(), str::to_owned)
    };
    let stored = Stored::open(folder).map_err(within)?;
    let path = folder.join(RECORD);
    let round = path.is_file().then(|| read_json(&path)).transpose().map_err(within)?;
    let (mut partial, mut unread) = (Vec::new(), 0);
    let record = match stored.record() {
        Ok(record) => record,
        Err(error) => {
            unread += 1;
            partial.push(within(error));
            None
        }
    };
    match &record {
        None if partial.is_empty() => partial.push("the run never started".to_owned()),
        Some(record) if record.ended.is_none() => partial.push("the run did not finish".to_owned()),
        Some(record) => partial.extend(record.stopped.clone()),
        None => {}
    }
    let mut cases = Vec::new();
    for case in stored.plan.cases.iter().filter(|case| case.skip.is_none()) {
        match stored.verdict(&case.name) {
            Ok(Some(verdict)) => cases.push(Arc::new(verdict)),
            Ok(None) => partial.push(format!("case `{}` was not judged", case.name)),
            Err(error) => {
                unread += 1;
                partial.push(within(error));
            }
        }
    }
    let summary = stored.summary();
    let summarised = summary
        .as_ref()
        .ok()
        .and_then(Option::as_ref)
        .map(|summary| Summarised { exit_code: summary.exit_code, culprits: summary.culprits.len() });
    let mut culprits = match summary {
        // It says passed, and its cases say otherwise: what they blame is not passed over.
        Ok(Some(summary)) if summary.culprits.is_empty() && says_passed(&summary) && red(&cases) > 0 => {
            culprits_of_cases(&cases)
        }
        Ok(Some(summary)) => match agreement::disagrees(&stored, &summary, &cases) {
            Ok(false) => summary.culprits,
            Ok(true) => {
                partial.push(agreement::DISAGREES.to_owned());
                Vec::new()
            }
            Err(error) => {
                unread += 1;
                partial.push(within(error));
                Vec::new()
            }
        },
        Ok(None) => culprits_of_cases(&cases),
        Err(error) => {
            unread += 1;
            partial.push(within(error));
            culprits_of_cases(&cases)
        }
    };
    // A record that cannot be read is the reason why no artefact is known from another run's.
    let mut given = BTreeSet::new();
    partial.retain(|why| given.insert(why.clone()));
    blameless::clear(&stored, &cases, &mut culprits);
    let is_simulated = stored.plan.simulated || cases.iter().any(|case| case.simulated);
    let ended = record.as_ref().and_then(|record| record.ended.clone()).filter(|_| !is_simulated);
    let made =
        moment(&stored.plan.run_id).or_else(|| Some(record.as_ref()?.started.get(..19)?.replace('T', " ")));
    let made = made.ok_or("start time unknown: neither the run id nor `run.json` has one")?;
    let is_of_bisection = folder.join(bisect::record::RECORD).is_file();
    let written = written(folder).filter(|_| is_simulated);
    let is_settled = unread == 0 && record.is_some_and(|record| record.ended.is_some());
    Ok(Run {
        id: stored.plan.run_id.clone(),
        stored,
        made,
        cases,
        partial,
        culprits,
        summarised,
        ended,
        written,
        round,
        is_of_bisection,
        hardware: None,
        is_settled,
    })
}

/// When the plan of a run was written.
pub(super) fn written(folder: &Path) -> Option<SystemTime> {
    fs::metadata(folder.join("plan.json")).and_then(|data| data.modified()).ok()
}

fn says_passed(summary: &Summary) -> bool {
    matches!(summary.exit_code, exit_code::PASSED | exit_code::OWES)
}

fn red(cases: &[Arc<CaseVerdict>]) -> usize {
    cases.iter().flat_map(|case| &case.verdicts).filter(|one| one.status.is_red()).count()
}

fn culprits_of_cases(cases: &[Arc<CaseVerdict>]) -> Vec<Culprit> {
    cases.iter().flat_map(|case| case.culprits.iter().cloned()).collect()
}

/// The moment that an id begins with, `20261121T031000Z`, as `2026-11-21 03:10:00`.
pub fn moment(id: &str) -> Option<String> {
    let stamp = id.split('-').next()?;
    let is_one = stamp.len() == 16
        && stamp.char_indices().all(|(at, c)| match at {
            8 => c == 'T',
            15 => c == 'Z',
            _ => c.is_ascii_digit(),
        });
    if !is_one {
        return None;
    }
    let of = |from: usize, to: usize| stamp.get(from..to).unwrap_or_default();
    Some(format!("{}-{}-{} {}:{}:{}", of(0, 4), of(4, 6), of(6, 8), of(9, 11), of(11, 13), of(13, 15)))
}

/// Judged again, the same jobs are still one run: the last judgement counts, a complete one before an incomplete one.
fn once_each(past: &mut Past) {
    let parents: BTreeMap<String, String> = past
        .runs
        .iter()
        .filter(|run| run.plan().replayed_from.is_some())
        .filter_map(|run| Some((run.id().to_owned(), run.plan().parent.clone()?)))
        .collect();
    let jobs_of = |run: &Run| {
        let mut id = run.id();
        // A chain of replays has no more links than there are runs, whatever their files say.
        for _ in 0..=parents.len() {
            match parents.get(id) {
                Some(parent) => id = parent,
                None => break,
            }
        }
        id.to_owned()
    };
    let mut counted: BTreeMap<String, usize> = BTreeMap::new();
    for (at, run) in past.runs.iter().enumerate() {
        let one = counted.entry(jobs_of(run)).or_insert(at);
        if run.partial.is_empty() || !past.runs[*one].partial.is_empty() {
            *one = at;
        }
    }
    let firsts: BTreeMap<String, String> =
        past.runs.iter().map(|run| (run.id().to_owned(), run.made.clone())).collect();
    // By folder: a run that was carried here or judged again may have the id of the first.
    let counts: BTreeMap<String, String> =
        counted.iter().map(|(jobs, at)| (jobs.clone(), past.runs[*at].id().to_owned())).collect();
    // What a round was for stays with the first of its runs.
    let mut rounds: BTreeMap<String, Record> =
        past.runs.iter().filter_map(|run| Some((run.id().to_owned(), run.round.clone()?))).collect();
    let mut kept = Vec::new();
    for (at, mut run) in std::mem::take(&mut past.runs).into_iter().enumerate() {
        let jobs = jobs_of(&run);
        if counted.get(&jobs) == Some(&at) {
            // Its jobs ran when the first of them was made.
            run.round = run.round.or_else(|| rounds.remove(&jobs));
            run.made = firsts.get(&jobs).cloned().or_else(|| moment(&jobs)).unwrap_or(run.made);
            kept.push(run);
        } else {
            let why = format!("same jobs as {}, which counts", counts[&jobs]);
            past.passed.push(SkippedRun { name: run.id().to_owned(), why });
        }
    }
    kept.sort_by(in_order);
    past.runs = kept;
    past.passed.sort_by(|a, b| a.name.cmp(&b.name));
}

impl Run {
    /// The run's id, as in its plan.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its `plan.json`, whose id is not to be asked for here: runs with the same plan share it.
    pub fn plan(&self) -> &Plan {
        &self.stored.plan
    }

    /// Whether all of it, or some of it, is simulated.
    pub fn is_simulated(&self) -> bool {
        self.plan().simulated || self.cases.iter().any(|case| case.simulated)
    }

    /// How many of its verdicts are red.
    pub(crate) fn red_verdicts(&self) -> usize {
        red(&self.cases)
    }

    /// Why its summary is not believed: it says passed and its files do not, or it names other parts than its cases.
    pub fn contradiction(&self) -> Option<String> {
        let has_passed = matches!(self.summarised?.exit_code, exit_code::PASSED | exit_code::OWES);
        let red = self.red_verdicts();
        match self.partial.first() {
            Some(why) if has_passed => Some(format!("INCOMPLETE: {why}")),
            Some(_) if self.partial.iter().any(|why| why == agreement::DISAGREES) => {
                Some(format!("CONTRADICTORY: {}", agreement::DISAGREES))
            }
            None if has_passed && red > 0 => Some(format!(
                "CONTRADICTORY: `summary.json` says passed, and {} red; `harness replay --run {}` judges it again",
                count(red, "verdict") + if red == 1 { " is" } else { " are" },
                self.id()
            )),
            _ => None,
        }
    }

    /// Whether it is known to have been made before a moment, and before the plan was written that another has of it.
    pub(super) fn was_made_before(&self, made: &str, written: Option<SystemTime>) -> bool {
        let is_older = || self.written.is_some() && written.is_some() && self.written < written;
        self.made.as_str() < made || self.made == made && is_older()
    }

    /// What the probe before it read of its nodes; nothing of a probe that cannot be read.
    pub(super) fn hardware(&self) -> Arc<OfNodes> {
        self.hardware.clone().unwrap_or_else(|| {
            let probe = self.stored.probe().ok().flatten();
            Arc::new(probe.map(|probe| hardware::read_probe(&probe)).unwrap_or_default())
        })
    }

    /// What it shows.
    pub fn kind(&self) -> RunKind {
        match RunKind::from_plan(self.plan()) {
            RunKind::Real if self.is_simulated() => RunKind::Simulated,
            kind => kind,
        }
    }

    /// Nodes that its plan leaves out, with the reason.
    pub(crate) fn left_out(&self) -> &[LeftOut] {
        &self.plan().left_out
    }

    /// The software of its cases, the harness's version and the digests of its suites.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        fingerprint::from_run(self.plan(), self.cases.iter().map(AsRef::as_ref))
    }

    /// Short: `complete`, or why it is incomplete.
    pub fn state(&self) -> String {
        let mut words: Vec<String> = Vec::new();
        match self.partial.as_slice() {
            [] => words.push("complete".to_owned()),
            [one] => words.push(format!("partial: {one}")),
            [first, more @ ..] => words.push(format!("partial: {first}, and {} more", more.len())),
        }
        if self.is_simulated() {
            words.push("simulated".to_owned());
        }
        let faults = self.plan().sim_faults.iter();
        let faults = faults.chain(self.plan().cases.iter().flat_map(|case| &case.sim_faults)).count();
        if faults > 0 {
            words.push(count(faults, "simulated fault"));
        }
        words.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::moment;

    #[test]
    fn the_start_time_is_read_from_the_id() {
        assert_eq!(moment("20261121T031000Z-nccl-p5-3f9c").as_deref(), Some("2026-11-21 03:10:00"));
        for other in ["nccl-p5", "20261121-nccl", "2026112éT31000Z-x", ""] {
            assert_eq!(moment(other), None, "{other}");
        }
    }
}
