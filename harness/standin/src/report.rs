//! The report of a stand-in for nsys: what a profiled process was, written down so that the tables can be made of it when
//! they are exported. A process that is cut off leaves a record without its last line.

use super::MARK;
use super::job_run::JobRun;
use super::place::ProcessPlace;
use super::state::State;
use job::profile::nsys::Arguments;
use job::profile::{NsysVersion, Ranks};
use job::script::{Profile, Step};
use job::window::{Steps, Trigger};
use serde::{Deserialize, Serialize};
use sim::nsys::tables_of;
use sim::over::NamedTables;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The variable with the path at which the profiler expects the workload's record.
pub(crate) const RECORD: &str = "HARNESS_STANDIN_RECORD";
/// The last line.
const END: &str = "end\n";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ProfiledProcess {
    case: String,
    job: String,
    nodes: Vec<String>,
    steps: Vec<Step>,
    rank: u32,
    tasks: u32,
    pub node: String,
    begin_ns: i64,
    /// Of the profiler.
    #[serde(default)]
    switches: Vec<String>,
    /// What opens its window.
    #[serde(default)]
    window: Option<Trigger>,
    /// From when to when by the machine's clock, where the collection was started and stopped by hand.
    #[serde(default)]
    collected_ns: Option<(i64, i64)>,
}

/// The record of a process that goes on.
pub(crate) struct Record(PathBuf);

impl Record {
    /// Nothing where there is no profiler around the process.
    pub(crate) fn for_process(
        place: &ProcessPlace,
        life: &JobRun,
        steps: Vec<Step>,
    ) -> Result<Option<Record>, String> {
        let Some(path) = std::env::var_os(RECORD).map(PathBuf::from) else { return Ok(None) };
        let seen = ProfiledProcess {
            case: place.case.clone(),
            job: place.job.clone(),
            nodes: life.execution().nodes.clone(),
            steps,
            rank: place.rank,
            tasks: place.tasks,
            node: place.node.clone(),
            begin_ns: life.begin_ns(),
            switches: Vec::new(),
            window: hooked(),
            collected_ns: None,
        };
        fs::write(&path, seen.text(false)?).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Some(Record(path)))
    }

    pub(crate) fn close(self) -> Result<(), String> {
        let failed = |error| format!("{}: {error}", self.0.display());
        let mut file = OpenOptions::new().append(true).open(&self.0).map_err(failed)?;
        file.write_all(END.as_bytes()).map_err(failed)
    }
}

/// A stand-in is no python that would import the hook; it does what the hook would.
fn hooked() -> Option<Trigger> {
    let steps = std::env::var("HARNESS_WINDOW").ok()?;
    Steps::try_from(steps).ok().map(Trigger::Hook)
}

impl ProfiledProcess {
    /// By a profiler that was called so; from when to when, where the collection was controlled by hand.
    pub(crate) fn by(self, switches: Vec<String>, collected_ns: Option<(i64, i64)>) -> ProfiledProcess {
        ProfiledProcess { switches, collected_ns, ..self }
    }

    pub(crate) fn text(&self, whole: bool) -> Result<String, String> {
        let json = serde_json::to_string(self).map_err(|error| format!("no record: {error}"))?;
        Ok(format!("{MARK} a stand-in for nsys made this report\n{json}\n{}", if whole { END } else { "" }))
    }

    /// Of a whole file alone.
    pub(crate) fn read(path: &Path) -> Result<ProfiledProcess, String> {
        ProfiledProcess::parse_file(path, &|text| text.strip_suffix(END))
    }

    /// The same of a process that may go on.
    pub(crate) fn so_far(path: &Path) -> Result<ProfiledProcess, String> {
        ProfiledProcess::parse_file(path, &|text| Some(text.strip_suffix(END).unwrap_or(text)))
    }

    fn parse_file(path: &Path, whole: &dyn Fn(&str) -> Option<&str>) -> Result<ProfiledProcess, String> {
        let shown = path.display();
        let text = fs::read_to_string(path).map_err(|error| format!("{shown}: {error}"))?;
        let whole = whole(&text).filter(|text| text.starts_with(MARK));
        let whole = whole.ok_or_else(|| format!("report {shown} is incomplete"))?;
        let json = whole.split_once('\n').map(|(_, json)| json).unwrap_or_default();
        serde_json::from_str(json).map_err(|error| format!("report {shown} is incomplete: {error}"))
    }

    /// The tables of an export, or nothing where the profiler saw nothing: its window was never open.
    pub(crate) fn tables(&self, state: &State, tables: &[String]) -> Result<Option<Rc<NamedTables>>, String> {
        let version = NsysVersion::parse(&state.nsys_version);
        let profile = Profile {
            nsys: "nsys".to_owned(),
            version: version.ok_or_else(|| format!("no version of nsys: `{}`", state.nsys_version))?,
            tasks: self.tasks,
            ranks: Ranks::All,
            node_ranks: Ranks::None,
            name: String::new(),
            export: "parquetdir".to_owned(),
            tables: tables.to_vec(),
            words: Arguments { every: self.switches.clone(), once_per_node: Vec::new() },
            window: self.window.clone().map(Box::new),
        };
        let mut steps = self.steps.clone();
        for step in &mut steps {
            if let Step::Run(run) = step {
                run.profile = Some(profile.clone());
            }
        }
        let life = JobRun::new(state, (&self.case, &self.job), self.nodes.clone(), steps, self.begin_ns);
        let collected = self.collected_ns.map(|(from, to)| (life.in_job_ns(from), life.in_job_ns(to)));
        Ok(tables_of(&state.cluster, life.epoch_s(), &life.over, self.rank, collected))
    }
}
