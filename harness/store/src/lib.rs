//! The only code that reads or writes `runs/`, and the only code that asks the machine's clock and randomness: a run
//! id carries both, everything else of a run is given the time.

mod atomic_file;
mod carry;
mod checksums;
mod destination;
mod find;
mod held;
mod journal;
mod lines;
#[cfg(test)]
mod message_tests;
mod opening;
mod origin;
mod own_artefacts;
mod remove;
mod service;
mod stamp;
mod stored;
mod strict_json;
pub mod trust;
pub mod vetting;

pub use atomic_file::{
    Part, check_output, is_stream, remove_earlier, write_output, write_output_by, write_private_by,
    write_private_output_by, write_whole, write_whole_by,
};
pub use carry::{every_file, files, left_out, no_files, unfinished};
pub use checksums::{CHECKSUMS, checksums};
pub use find::{Named, runs_in};
pub use lines::Lines;
pub use opening::Opening;
pub use origin::{is_foreign, mark_foreign};
pub use own_artefacts::digests;
pub use remove::{remove_leftovers, remove_run};
pub use service::Service;
pub use stamp::RunFacts;
pub use stored::{Stored, has_safe_names, is_inside};

use self::held::{FolderId, Held, hold};
use self::journal::Appender;
use base::redact::{Redactor, Secrets};
use model::artefact::{Probe, RunCluster, is_newer};
use rand::rngs::SysRng;
use rand::{Rng, TryRng};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use time::OffsetDateTime;
use time::macros::format_description;

/// The folder that holds `suites/`, `inventory/`, `baselines/` and `runs/`.
#[derive(Debug, Clone)]
pub struct Home(PathBuf);

impl Home {
    /// The nearest folder at or above `from` that has suites and inventories.
    pub fn find(from: &Path) -> Option<Home> {
        from.ancestors()
            .find(|folder| folder.join("suites").is_dir() && folder.join("inventory").is_dir())
            .map(|folder| Home(folder.to_owned()))
    }

    /// A folder that has neither: enough to look at runs, which bring along all that they need.
    pub fn bare(folder: &Path) -> Home {
        Home(folder.to_owned())
    }

    /// Of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A path as artefacts and messages show it: relative to home, or the bare name for a file from elsewhere.
    pub fn display_path(&self, path: &Path) -> String {
        match path.strip_prefix(&self.0) {
            Ok(inside) => inside.display().to_string(),
            Err(_) => path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
        }
    }
}

/// One run's folder.
#[derive(Debug, Clone)]
pub struct Store {
    runs: PathBuf,
    id: String,
    journal: Arc<Appender>,
    /// No text of an artefact is written without it.
    redactor: Arc<Redactor>,
    secrets: Arc<Secrets>,
    /// As long as it is held no other process goes on with the run, or cleans up after it.
    _held: Arc<Option<Held>>,
    /// The folder that is held: another one may take its name while the run goes on.
    began_in: Option<FolderId>,
}

impl Store {
    /// Makes the folder of a new run and points `runs/latest` to it.
    pub fn create(home: &Home, id: &str) -> Result<Store, StoreError> {
        Store::create_in(&home.path().join("runs"), id)
    }

    /// The same below another folder than home's.
    pub fn create_in(runs: &Path, id: &str) -> Result<Store, StoreError> {
        let mut store = Store::at(runs, id);
        fs::create_dir_all(&store.runs).map_err(|error| StoreError::at(&store.runs, error))?;
        let folder = store.folder();
        // Not with all above it: a run is written once, and an id that is taken must not be written into.
        atomic_file::create_private(&folder).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => StoreError::taken(runs, id),
            _ => StoreError::at(&folder, error),
        })?;
        store._held = Arc::new(hold(&folder)?);
        store.began_in = store.folder_id();
        store.link_latest();
        Ok(store)
    }

    /// Points `runs/latest` to it again, after others that it brought about.
    pub fn is_latest(&self) {
        self.link_latest();
    }

    /// The folder of a run that is there already.
    pub fn open(home: &Home, id: &str) -> Result<Store, StoreError> {
        let mut store = Store::at(&home.path().join("runs"), id);
        if !store.folder().is_dir() {
            return Err(StoreError::other(&store.folder(), &"no such run"));
        }
        store._held = Arc::new(hold(&store.folder())?);
        store.began_in = store.folder_id();
        Ok(store)
    }

    fn at(runs: &Path, id: &str) -> Store {
        let redactor = Arc::new(redactor());
        Store {
            runs: runs.to_owned(),
            id: id.to_owned(),
            journal: Arc::default(),
            redactor,
            secrets: Arc::default(),
            _held: Arc::default(),
            began_in: None,
        }
    }

    /// A simulated run has no jobs that a power failure could leave behind: its lines need not wait for the disk.
    pub fn simulated(mut self, is_simulated: bool) -> Store {
        self.journal = Arc::new(Appender::new(!is_simulated));
        self
    }

    /// Keeps these values for the run's jobs, and writes none of them from here on.
    pub fn hiding(mut self, secrets: Secrets) -> Store {
        self.redactor = Arc::new(Redactor::clone(&self.redactor).and(&secrets));
        self.secrets = Arc::new(secrets);
        self
    }

    /// For the run's jobs; none before `hiding`.
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Hides what this process knows to be secret, and what `hiding` was given.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// The name of the run's folder.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// `runs/ID`, there or not.
    pub fn folder(&self) -> PathBuf {
        self.runs.join(&self.id)
    }

    /// `runs/ID/cases/CASE`, there or not.
    pub fn case(&self, case: &str) -> PathBuf {
        self.folder().join("cases").join(case)
    }

    /// Where the files of one job lie, as fetched; also the path shown in findings, relative to the case's folder.
    pub fn raw(&self, case: &str, job: &str) -> PathBuf {
        self.case(case).join("raw").join(job)
    }

    /// An artefact, without its secrets, for the user alone.
    pub fn write_json<T: Serialize>(&self, path: &Path, value: &T) -> Result<(), StoreError> {
        let bad = |error| StoreError::at(path, io::Error::other(error));
        let mut text = serde_json::to_vec_pretty(value).map_err(bad)?;
        if let Some(clean) = self.clean(value, &text).map_err(bad)? {
            text = serde_json::to_vec_pretty(&clean).map_err(bad)?;
        }
        text.push(b'\n');
        self.write(path, &text)
    }

    /// A text that was made of artefacts, such as a report.
    pub fn write_text(&self, path: &Path, text: &[u8]) -> Result<Vec<u8>, StoreError> {
        let clean = self.redactor.bytes(text).bytes;
        self.write(path, &clean)?;
        Ok(clean)
    }

    /// Bytes in which there is no secret any more: whoever brings them has seen to that.
    pub fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
        self.check_place()?;
        write_private_by(path, &mut |file| file.write_all(bytes))
    }

    /// A file of the run that comes piece by piece, for `keep_part`.
    pub fn begin_part(&self, path: &Path) -> io::Result<Part> {
        self.check_place().map_err(io::Error::other)?;
        Part::begin(path)
    }

    /// Gives it its name, where the folder is still that of the run.
    pub fn keep_part(&self, part: Part) -> io::Result<()> {
        self.check_place().map_err(io::Error::other)?;
        part.keep()
    }

    /// As long as the folder is held, its file system gives it no other number.
    fn folder_id(&self) -> Option<FolderId> {
        self._held.is_some().then(|| FolderId::from_path(&self.folder())).flatten()
    }

    /// The lock and the files that are there stay with the folder that was moved or removed: what is written elsewhere
    /// would be half a run that no process holds, or lie wherever a link leads.
    fn check_place(&self) -> Result<(), StoreError> {
        let folder = self.folder();
        match self.began_in.is_none() || self.began_in == FolderId::from_path(&folder) {
            true => Ok(()),
            false => Err(StoreError::other(
                &folder,
                &"moved, removed or replaced: not the folder in which this run began; move that one back",
            )),
        }
    }

    /// A file without a name, for the user alone, for what must not stay: it goes with the process, too.
    pub fn unnamed(&self) -> io::Result<fs::File> {
        self.check_place().map_err(io::Error::other)?;
        let file = tempfile::tempfile_in(self.folder())?;
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
        Ok(file)
    }

    /// The value without its secrets, where there are any in its text.
    fn clean<T: Serialize>(
        &self,
        value: &T,
        text: &[u8],
    ) -> Result<Option<serde_json::Value>, serde_json::Error> {
        if self.redactor.first(text).is_none() {
            return Ok(None);
        }
        let mut value = serde_json::to_value(value)?;
        self.redactor.value(&mut value);
        Ok(Some(value))
    }

    fn append<T: Serialize>(&self, name: &str, entry: &T) -> Result<(), StoreError> {
        self.check_place()?;
        let path = self.folder().join(name);
        let bad = |error| StoreError::at(&path, io::Error::other(error));
        let text = serde_json::to_vec(entry).map_err(bad)?;
        match self.clean(entry, &text).map_err(bad)? {
            Some(clean) => self.journal.append(&path, &clean),
            None => self.journal.append(&path, entry),
        }
    }

    /// Says of a file that it was written no later than the others. The profiler writes a report before its tables, and
    /// they come home in another order: later readers would take the tables for stale.
    pub fn date_no_later(&self, path: &Path, others: &[PathBuf]) -> Result<(), StoreError> {
        let times =
            others.iter().filter_map(|other| fs::metadata(other).and_then(|data| data.modified()).ok());
        let Some(oldest) = times.min() else { return Ok(()) };
        let file = fs::File::options().write(true).open(path);
        file.and_then(|file| file.set_modified(oldest)).map_err(|error| StoreError::at(path, error))
    }

    /// Appends one line to `events.jsonl`: what happened.
    pub fn event<T: Serialize>(&self, event: &T) -> Result<(), StoreError> {
        self.append("events.jsonl", event)
    }

    /// Appends one line to `simulated.jsonl`: what the simulated cluster was asked.
    pub fn asked_of_simulation<T: Serialize>(&self, entry: &T) -> Result<(), StoreError> {
        self.append("simulated.jsonl", entry)
    }

    /// What the nodes reported before the run, where they were probed.
    pub fn probe(&self) -> Result<Option<Probe>, StoreError> {
        stored::optional(&self.folder().join("probe.json"))
    }

    /// Records the cluster that its pods will be in.
    pub fn is_in(&self, cluster: &RunCluster) -> Result<(), StoreError> {
        self.write_json(&self.folder().join(own_artefacts::CLUSTER), cluster)
    }

    /// The lines of a file that is only appended to.
    pub fn lines<T: DeserializeOwned>(&self, name: &str) -> Result<Vec<T>, StoreError> {
        journal::read(&self.folder().join(name))
    }

    /// What processes that were ended left in the run's folder, under names that say so. They go, if that is wanted.
    pub fn unfinished(&self, removes: bool) -> Result<Vec<PathBuf>, StoreError> {
        let parts = carry::unfinished(&self.folder())?;
        if removes {
            for part in &parts {
                let path = self.folder().join(part);
                fs::remove_file(&path).map_err(|error| StoreError::at(&path, error))?;
            }
        }
        Ok(parts)
    }

    fn link_latest(&self) {
        let link = self.runs.join("latest");
        let fresh = self.runs.join(format!(".latest-{}", self.id));
        let linked = std::os::unix::fs::symlink(&self.id, &fresh).and_then(|()| fs::rename(&fresh, &link));
        if let Err(error) = linked {
            // Nothing of it stays; where it was not made there is nothing.
            let _ = fs::remove_file(&fresh);
            eprintln!(
                "warning: {}: does not point to this run: {error}; move what lies there away",
                link.display()
            );
        }
    }
}

/// Secrets that this process knows by itself.
pub fn redactor() -> Redactor {
    // A name or a value that is no text is looked for nowhere: no artefact could hold it.
    let variables = std::env::vars_os();
    Redactor::from_environment(
        variables.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))),
    )
}

/// A folder for temporary runs; it is removed with this value.
#[derive(Debug)]
pub struct Scratch(tempfile::TempDir);

impl Scratch {
    /// Made where the system keeps temporary files.
    pub fn new() -> io::Result<Scratch> {
        let folder = std::env::temp_dir();
        trust::check_temporary(&folder)?;
        tempfile::tempdir_in(folder).map(Scratch)
    }

    /// Of the folder.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

/// The cluster that the pods of the run in this folder are in, where that is recorded.
pub fn cluster_of(folder: &Path) -> Result<Option<RunCluster>, StoreError> {
    stored::optional(&folder.join(own_artefacts::CLUSTER))
}

/// Reads an artefact; its type refuses one of a newer format, before anything else of it is read.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, StoreError> {
    match vetting::read(path, MOST_JSON) {
        Ok(Some(bytes)) => parse_json(path, &bytes),
        Ok(None) => Err(StoreError::at(path, io::Error::from_raw_os_error(nix::libc::ENOENT))),
        Err(why) => Err(StoreError::other(path, &why)),
    }
}

/// The plan of a run on 10,000 nodes has half of it.
const MOST_JSON: u64 = 8 << 30;

fn parse_json<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T, StoreError> {
    let bad = |why: String| StoreError::other(path, &why);
    let format = strict_json::check(bytes).map_err(|error| bad(error.to_string()))?;
    let format = format.ok_or_else(|| bad("no `format`: not an artefact of this harness".to_owned()))?;
    // Read before the fields that a newer format may have changed.
    let alone = serde_json::from_value::<T>(serde_json::json!({ "format": format }));
    if let Some(newer) = alone.err().map(|error| error.to_string()).filter(|why| is_newer(why)) {
        return Err(bad(newer));
    }
    serde_json::from_slice(bytes).map_err(|error| bad(error.to_string()))
}

/// The machine's clock, in seconds since 1970. Called once per run.
#[allow(clippy::disallowed_methods)]
pub fn wall_clock_s() -> f64 {
    let now = OffsetDateTime::now_utc();
    now.unix_timestamp_nanos() as f64 / 1e9
}

/// The time at which a run begins, as its id begins with it: `20261121T031000Z`.
pub fn run_time(unix_s: f64) -> String {
    let text: String = iso8601(unix_s).chars().filter(|c| !"-:".contains(*c)).take(15).collect();
    text + "Z"
}

/// `20261121T031000Z-nccl-p5-3f9c`: when, which suite, and four digits that distinguish runs of one second.
#[allow(clippy::disallowed_methods)]
pub fn new_run_id(suite: &str) -> String {
    let mut random = [0u8; 1];
    rand::rng().fill_bytes(&mut random);
    run_id(OffsetDateTime::now_utc(), suite, random[0])
}

/// 32 hexadecimal digits that no other process has, by which one is known to others.
pub fn new_token() -> io::Result<String> {
    let mut random = [0u8; 16];
    SysRng.try_fill_bytes(&mut random).map_err(io::Error::other)?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Its last digits are the millisecond and six random bits, so that runs of one second sort in the order they were made.
fn run_id(now: OffsetDateTime, suite: &str, random: u8) -> String {
    let format = format_description!("[year][month][day]T[hour][minute][second]Z");
    let when = now.format(format).unwrap_or_default();
    let tail = (now.millisecond() << 6) | u16::from(random & 0x3f);
    format!("{when}-{suite}-{tail:04x}")
}

/// Seconds since 1970 as ISO 8601, to the millisecond.
pub fn iso8601(unix_s: f64) -> String {
    let format = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");
    OffsetDateTime::from_unix_timestamp_nanos((unix_s * 1e3).round() as i128 * 1_000_000)
        .ok()
        .and_then(|when| when.format(format).ok())
        .unwrap_or_else(|| "1970-01-01T00:00:00.000Z".to_owned())
}

/// A file of a run that could not be read or written, and why.
#[derive(Debug, thiserror::Error)]
#[error("{why}")]
pub struct StoreError {
    why: String,
    is_foreign: bool,
}

impl StoreError {
    fn at(path: &Path, error: io::Error) -> Self {
        StoreError::other(path, &error)
    }

    fn taken(runs: &Path, id: &str) -> Self {
        let why = format!("run `{id}` exists already in {}; choose another id", runs.display());
        StoreError { why, is_foreign: false }
    }

    /// What could not be made, and so not be written.
    pub fn other(path: &Path, error: &dyn fmt::Display) -> Self {
        StoreError { why: format!("{}: {error}", path.display()), is_foreign: false }
    }

    /// A file that lies in a run's folder and is not the run's.
    fn foreign(path: &Path, error: &dyn fmt::Display) -> Self {
        StoreError { is_foreign: true, ..StoreError::other(path, error) }
    }

    /// Whether a file in a run's folder is not the run's.
    pub fn is_foreign(&self) -> bool {
        self.is_foreign
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_one_second_sort_in_the_order_they_were_made() {
        let at = |millisecond: i128| {
            OffsetDateTime::from_unix_timestamp_nanos((1_774_000_000_000 + millisecond) * 1_000_000)
                .expect("a time")
        };
        let ids: Vec<String> =
            [(7, 255), (8, 0), (999, 3)].map(|(ms, random)| run_id(at(ms), "canary", random)).to_vec();
        assert!(ids.is_sorted(), "{ids:?}");
        assert!(ids[2].ends_with("Z-canary-f9c3"), "{ids:?}");
    }

    #[test]
    fn a_folder_in_the_place_of_the_latest_link_stops_no_run() {
        let home = tempfile::tempdir().expect("a folder");
        let latest = home.path().join("runs/latest");
        fs::create_dir_all(latest.join("mine")).expect("made");
        let store = Store::create(&Home::bare(home.path()), "run").expect("made");
        assert!(store.folder().is_dir() && latest.join("mine").is_dir());
        let left = fs::read_dir(home.path().join("runs")).expect("read").flatten();
        let mut left: Vec<_> = left.map(|entry| entry.file_name().into_string().expect("a name")).collect();
        left.sort();
        assert_eq!(left, ["latest", "run"]);
    }

    #[test]
    fn a_file_appears_whole_and_a_newer_format_is_refused_by_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("deep/plan.json");
        write_whole(&path, b"{\"started\": [], \"format\": 99}").expect("written");
        let error = read_json::<model::artefact::RunRecord>(&path).expect_err("too new").to_string();
        assert!(error.contains("format 99"), "{error}");
        write_whole(&path, b"{}").expect("written");
        assert!(
            read_json::<serde_json::Value>(&path).expect_err("no format").to_string().contains("no `format`")
        );
    }

    #[test]
    fn a_run_id_names_the_time_and_the_suite() {
        let id = new_run_id("nccl-p5");
        let parts: Vec<&str> = id.splitn(2, '-').collect();
        assert_eq!(parts[0].len(), "20261121T031000Z".len(), "{id}");
        assert!(parts[1].starts_with("nccl-p5-") && parts[1].len() == "nccl-p5-3f9c".len(), "{id}");
    }

    #[test]
    fn moments_are_written_to_the_millisecond() {
        assert_eq!(iso8601(0.0), "1970-01-01T00:00:00.000Z");
        assert_eq!(iso8601(1.0e9 + 0.1234), "2001-09-09T01:46:40.123Z");
    }
}
