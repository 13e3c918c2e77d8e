//! `runs/.index.parquet`: the outlines of the runs of a folder, so that one that has not changed is not read again. It is
//! made from the runs, can be removed at any time, and is never believed where a part is blamed.

use super::hardware::OfNodes;
use super::outline;
use super::past::{Run, Summarised, run};
use crate::bisect;
use crate::isolate::round;
use base::digest::sha256;
use base::text::count;
use model::artefact::{CaseVerdict, Culprit, Plan};
use recipes::text_rows;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::vetting;
use store::{RunFacts, Stored, has_safe_names, is_inside, read_json, write_private_by};

/// The name of the file. Names that begin so are no runs.
pub const INDEX: &str = ".index.parquet";

/// Raised whenever an outline has more or less in it than before.
const FORMAT: &str = concat!("1 ", env!("CARGO_PKG_VERSION"));
/// A larger one is not read, and not written.
const MOST_BYTES: u64 = 1 << 30;
const COLUMNS: [&str; 4] = ["kind", "name", "stamp", "text"];

/// The files of a run that its outline is made of, beside those of its cases.
const PLAN: &str = "plan.json";
const OF_RUN: [&str; 6] =
    [PLAN, "run.json", "summary.json", "probe.json", round::RECORD, bisect::record::RECORD];
const OF_CASE: [&str; 2] = ["verdict.json", "outcomes.json"];

/// The index of one folder of runs.
pub struct RunIndex {
    runs: PathBuf,
    plans: Bodies<Plan>,
    cases: Bodies<CaseVerdict>,
    hardware: Bodies<OfNodes>,
    /// By the folder of the run.
    entries: BTreeMap<String, Entry>,
    is_changed: bool,
    notes: Vec<String>,
}

/// What the index has of one run.
struct Entry {
    stamp: String,
    text: String,
}

/// The text of an entry. What many runs share is named by its number.
#[derive(Serialize, Deserialize)]
struct Outline {
    id: String,
    made: String,
    ended: Option<String>,
    exit: Option<(i32, usize)>,
    partial: Vec<String>,
    culprits: Vec<Culprit>,
    plan: usize,
    cases: Vec<usize>,
    hardware: usize,
}

/// Values that many runs share, each once.
struct Bodies<T> {
    kind: &'static str,
    texts: Vec<String>,
    values: Vec<Option<Arc<T>>>,
    /// By their digests; made when the first one is added.
    known: Option<BTreeMap<String, usize>>,
}

impl RunIndex {
    /// Of a folder of runs. One that is absent, damaged, of another version or somebody else's is empty.
    pub fn open(runs: &Path) -> RunIndex {
        let mut index = RunIndex::empty(runs);
        let path = runs.join(INDEX);
        let read = vetting::read_own(&path, MOST_BYTES)
            .and_then(|bytes| bytes.map_or(Ok(()), |bytes| index.take(&bytes)));
        if let Err(why) = read {
            index = RunIndex::empty(runs);
            index.notes.push(format!("index not used: {}: {why}; every run is read", path.display()));
        }
        index
    }

    fn empty(runs: &Path) -> RunIndex {
        RunIndex {
            runs: runs.to_owned(),
            plans: Bodies::new("plan"),
            cases: Bodies::new("case"),
            hardware: Bodies::new("hardware"),
            entries: BTreeMap::new(),
            is_changed: false,
            notes: Vec::new(),
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), String> {
        let mut format = None;
        text_rows::from_parquet(bytes, &COLUMNS, &mut |row| {
            let [kind, name, stamp, text] = row else { return };
            match *kind {
                "format" => format = Some((*text).to_owned()),
                "plan" => self.plans.texts.push((*text).to_owned()),
                "case" => self.cases.texts.push((*text).to_owned()),
                "hardware" => self.hardware.texts.push((*text).to_owned()),
                "run" => {
                    let entry = Entry { stamp: (*stamp).to_owned(), text: (*text).to_owned() };
                    self.entries.insert((*name).to_owned(), entry);
                }
                _ => {}
            }
        })?;
        match format.as_deref() {
            Some(FORMAT) => Ok(()),
            // It is made from the runs: another version of the harness makes its own.
            Some(_) => {
                *self = RunIndex::empty(&self.runs);
                Ok(())
            }
            None => Err("not an index of runs".to_owned()),
        }
    }

    /// The outline of a run by its folder: of the index where the run's files have not changed, else of the files.
    pub fn run(&mut self, folder: &Path) -> Result<Run, String> {
        let name = file_name(folder);
        if let Some(known) = name.as_ref().and_then(|name| self.known(folder, name)) {
            return Ok(known);
        }
        let before = facts_before(folder);
        let mut read = run(folder)?;
        // A probe that cannot be read now may be read the next time.
        read.is_settled &= read.stored.probe().is_ok();
        read.hardware = Some(read.hardware());
        outline::trim(&mut read);
        let after = facts(folder, &read.stored.plan);
        let is_steady =
            before.zip(after.as_ref()).is_some_and(|(before, after)| after.are_unchanged_since(&before));
        if let (true, true, Some(name), Some(after)) = (read.is_settled, is_steady, name, after) {
            self.add(name, after.digest(), &mut read);
        }
        Ok(read)
    }

    fn known(&mut self, folder: &Path, name: &str) -> Option<Run> {
        let entry = self.entries.get(name)?;
        let outline: Outline = serde_json::from_str(&entry.text).ok()?;
        let plan = self.plans.get(outline.plan, &has_safe_names)?;
        let facts = facts(folder, &plan)?;
        if facts.digest() != entry.stamp || !is_inside(&outline.id) || outline.id.contains('/') {
            return None;
        }
        let cases: Vec<Arc<CaseVerdict>> =
            outline.cases.iter().map(|nth| self.cases.get(*nth, &|_| true)).collect::<Option<_>>()?;
        let hardware = self.hardware.get(outline.hardware, &|_| true)?;
        let stored = Stored::with_plan(folder, outline.id.clone(), plan);
        // What an isolation concluded is asked of its own record.
        let round = match facts.has(round::RECORD) {
            true => Some(read_json(&folder.join(round::RECORD)).ok()?),
            false => None,
        };
        let is_simulated = stored.plan.simulated || cases.iter().any(|case| case.simulated);
        let run = Run {
            id: outline.id,
            made: outline.made,
            cases,
            partial: outline.partial,
            culprits: outline.culprits,
            summarised: outline.exit.map(|(exit_code, culprits)| Summarised { exit_code, culprits }),
            ended: outline.ended,
            written: facts.written(PLAN).filter(|_| is_simulated),
            round,
            is_of_bisection: facts.has(bisect::record::RECORD),
            hardware: Some(hardware),
            is_settled: true,
            stored,
        };
        blames_what_its_summary_does(&run).then_some(run)
    }

    fn add(&mut self, name: String, stamp: String, run: &mut Run) {
        let (plan, hardware) = (run.stored.plan.clone(), run.hardware());
        let added = (|| {
            let (nth_plan, plan) = self.plans.add(plan)?;
            let (nth_hardware, hardware) = self.hardware.add(hardware)?;
            let cases =
                run.cases.iter().map(|case| self.cases.add(case.clone())).collect::<Option<Vec<_>>>()?;
            let (numbers, cases): (Vec<usize>, Vec<Arc<CaseVerdict>>) = cases.into_iter().unzip();
            (run.stored.plan, run.hardware, run.cases) = (plan, Some(hardware), cases);
            serde_json::to_string(&Outline {
                id: run.id.clone(),
                made: run.made.clone(),
                ended: run.ended.clone(),
                exit: run.summarised.map(|summary| (summary.exit_code, summary.culprits)),
                partial: run.partial.clone(),
                culprits: run.culprits.clone(),
                plan: nth_plan,
                cases: numbers,
                hardware: nth_hardware,
            })
            .ok()
        })();
        if let Some(text) = added {
            self.entries.insert(name, Entry { stamp, text });
            self.is_changed = true;
        }
    }

    /// Writes what was added, and gives what is wrong with the index, for a person.
    pub fn close(mut self) -> Vec<String> {
        // A folder that was only to be read is somebody else's.
        if self.is_changed && store::trust::is_own_folder(&self.runs) {
            let path = self.runs.join(INDEX);
            if let Err(why) = self.write(&path) {
                self.notes.push(format!("index not written: {why}; the next list reads these runs again"));
            }
        }
        self.notes
    }

    fn write(&mut self, path: &Path) -> Result<(), String> {
        let is_here = |name: &String| fs::symlink_metadata(self.runs.join(name)).is_ok();
        self.entries.retain(|name, _| is_here(name));
        let outlines: Vec<(&String, &Entry, Outline)> = self
            .entries
            .iter()
            .filter_map(|(name, entry)| Some((name, entry, serde_json::from_str(&entry.text).ok()?)))
            .collect();
        let (mut plans, mut cases, mut hardware) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for (.., outline) in &outlines {
            plans.insert(outline.plan);
            cases.extend(outline.cases.iter().copied());
            hardware.insert(outline.hardware);
        }
        let mut rows = vec![vec!["format", "", "", FORMAT]];
        let plans = self.plans.rows(plans, &mut rows);
        let cases = self.cases.rows(cases, &mut rows);
        let hardware = self.hardware.rows(hardware, &mut rows);
        let texts: Vec<(&str, &str, String)> = outlines
            .into_iter()
            .filter_map(|(name, entry, mut outline)| {
                outline.plan = *plans.get(&outline.plan)?;
                outline.hardware = *hardware.get(&outline.hardware)?;
                outline.cases =
                    outline.cases.iter().map(|nth| cases.get(nth).copied()).collect::<Option<_>>()?;
                Some((name.as_str(), entry.stamp.as_str(), serde_json::to_string(&outline).ok()?))
            })
            .collect();
        rows.extend(texts.iter().map(|(name, stamp, text)| vec!["run", *name, *stamp, text.as_str()]));
        let bytes = text_rows::to_parquet(&COLUMNS, &rows)?;
        if bytes.len() as u64 > MOST_BYTES {
            return Err(format!("{}: {}, limit {MOST_BYTES}", path.display(), count(bytes.len(), "byte")));
        }
        write_private_by(path, &mut |file| file.write_all(&bytes)).map_err(|error| error.to_string())
    }
}

impl<T: Serialize + DeserializeOwned> Bodies<T> {
    fn new(kind: &'static str) -> Bodies<T> {
        Bodies { kind, texts: Vec::new(), values: Vec::new(), known: None }
    }

    fn get(&mut self, nth: usize, is_sound: &dyn Fn(&T) -> bool) -> Option<Arc<T>> {
        let text = self.texts.get(nth)?;
        self.values.resize_with(self.texts.len(), || None);
        if self.values[nth].is_none() {
            self.values[nth] = serde_json::from_str(text).ok().filter(is_sound).map(Arc::new);
        }
        self.values[nth].clone()
    }

    /// Its number, and the one that all share; nothing of what cannot be written.
    fn add(&mut self, value: Arc<T>) -> Option<(usize, Arc<T>)> {
        let text = serde_json::to_string(&*value).ok()?;
        let texts = &self.texts;
        let by_digest =
            || texts.iter().enumerate().map(|(nth, text)| (sha256(text.as_bytes()), nth)).collect();
        let known = self.known.get_or_insert_with(by_digest);
        let digest = sha256(text.as_bytes());
        self.values.resize_with(self.texts.len(), || None);
        if let Some(nth) = known.get(&digest).copied() {
            let shared = self.values[nth].get_or_insert(value);
            return Some((nth, shared.clone()));
        }
        let nth = self.texts.len();
        known.insert(digest, nth);
        self.texts.push(text);
        self.values.push(Some(value.clone()));
        Some((nth, value))
    }

    /// Adds a row for each of these, and gives their new numbers.
    fn rows<'a>(&'a self, used: BTreeSet<usize>, rows: &mut Vec<Vec<&'a str>>) -> BTreeMap<usize, usize> {
        let used = used.into_iter().filter_map(|nth| Some((nth, self.texts.get(nth)?)));
        used.enumerate()
            .map(|(new, (old, text))| {
                rows.push(vec![self.kind, "", "", text.as_str()]);
                (old, new)
            })
            .collect()
    }
}

fn file_name(folder: &Path) -> Option<String> {
    Some(folder.file_name()?.to_str()?.to_owned())
}

/// Of the files that the outline of a run with this plan is made of.
fn facts(folder: &Path, plan: &Plan) -> Option<RunFacts> {
    let cases = plan.cases.iter().filter(|case| case.skip.is_none()).map(|case| case.name.as_str());
    RunFacts::read(folder, paths(cases))
}

/// The same before the plan was read: of every case that has a folder.
fn facts_before(folder: &Path) -> Option<RunFacts> {
    let cases = fs::read_dir(folder.join("cases")).into_iter().flatten().flatten();
    let names: Vec<String> = cases.filter_map(|case| case.file_name().into_string().ok()).collect();
    RunFacts::read(folder, paths(names.iter().map(String::as_str)))
}

fn paths<'a>(cases: impl Iterator<Item = &'a str>) -> impl Iterator<Item = String> {
    let of_cases = cases.flat_map(|case| OF_CASE.map(|name| format!("cases/{case}/{name}")));
    OF_RUN.map(str::to_owned).into_iter().chain(of_cases)
}

/// Nothing is blamed by an index alone: the summary of the run blames the same.
fn blames_what_its_summary_does(run: &Run) -> bool {
    let left_out = &run.plan().left_out;
    if run.culprits.is_empty() && left_out.is_empty() {
        return true;
    }
    let Ok(Some(summary)) = run.stored.summary() else { return false };
    let is_in_summary = |culprit: &Culprit| {
        summary.culprits.iter().any(|own| match (own, culprit) {
            // Some of them may have been taken back.
            (Culprit::Suspects { nodes, evidence }, Culprit::Suspects { nodes: named, evidence: why }) => {
                evidence == why && named.iter().all(|node| nodes.contains(node))
            }
            _ => own == culprit,
        })
    };
    run.culprits.iter().all(is_in_summary) && left_out.iter().all(|left| summary.left_out.contains(left))
}
