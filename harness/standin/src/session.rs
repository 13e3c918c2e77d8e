//! Sessions of nsys that collect on command: `launch` runs a program in one, `start` and `stop` begin and end its
//! collection by the machine's clock, `shutdown` ends it. They stand in the state folder, one to a host and name.

use super::place::ProcessPlace;
use super::profiling::{free_report, generate, in_folder, switches, under, value};
use super::report::ProfiledProcess;
use super::state::State;
use super::world;
use model::fault::Fault;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::sleep;

pub(crate) const VERBS: [&str; 4] = ["launch", "start", "stop", "shutdown"];

/// A program that has ended waits so long for a collection that is being stopped.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(50);

/// The parameters of a session at its launch.
#[derive(Serialize, Deserialize)]
struct Launched {
    record: PathBuf,
    switches: Vec<String>,
    process: Option<u32>,
}

/// The parameters of a collection at its start.
#[derive(Serialize, Deserialize)]
struct Started {
    report: PathBuf,
    switches: Vec<String>,
    at_ns: i64,
}

pub(crate) async fn answer(state: &State, verb: &str, arguments: &[String]) -> Result<i32, String> {
    let place = ProcessPlace::from_environment()?;
    let (switches, command) = switches(arguments);
    let name = value(&switches, &[if verb == "launch" { "--session-new" } else { "--session" }]);
    let name = name.ok_or_else(|| format!("`{verb}` needs a session"))?;
    if name.is_empty() || name.contains('/') || name.starts_with('.') {
        return Err(format!("`{name}` is not a valid session name"));
    }
    let session = Session(state.folder.join("sessions").join(&place.node).join(name));
    match verb {
        "launch" => session.launch(state, &switches, command).await,
        "start" => session.start(state, &place, &switches),
        "stop" => session.stop(state),
        _ => session.shutdown(value(&switches, &["--kill"]).unwrap_or("sigterm")),
    }
}

/// The folder of one.
struct Session(PathBuf);

impl Session {
    async fn launch(&self, state: &State, switches: &[String], command: &[String]) -> Result<i32, String> {
        let failed = |error| format!("cannot create session {}: {error}", self.name());
        fs::create_dir_all(self.0.parent().unwrap_or(&state.folder)).map_err(failed)?;
        fs::create_dir(&self.0).map_err(failed)?;
        let record = in_folder(&format!("{}.qdstrm", self.name()))?;
        let mut begun = |process| {
            self.put("launched", &Launched { record: record.clone(), switches: switches.to_vec(), process })
        };
        let ended = match under(command, &record, &mut begun).await {
            Ok(code) => self.end(state, &record, code).await.map(|()| code),
            Err(why) => Err(why),
        };
        // A program that is no stand-in recorded nothing.
        let _ = fs::remove_file(&record);
        let _ = fs::remove_dir_all(&self.0);
        ended
    }

    /// What still collects when the program ends ends with it; of a program that failed there is nothing.
    async fn end(&self, state: &State, record: &Path, code: i32) -> Result<(), String> {
        let mut waited = Duration::ZERO;
        while self.has("stopping") && !self.has("stopped") && waited < PATIENCE {
            sleep(LOOK).await;
            waited += LOOK;
        }
        if code != 0 || !self.has("started") || self.has("stopping") {
            return Ok(());
        }
        self.collect(state, ProfiledProcess::read(record)?)
    }

    fn start(&self, state: &State, place: &ProcessPlace, switches: &[String]) -> Result<i32, String> {
        if state.ails(&place.node).iter().any(|fault| matches!(fault, Fault::WindowShut)) {
            return Err("cannot start the collection".to_owned());
        }
        if !self.has("launched") {
            return Err(format!("no session named {}", self.name()));
        }
        let name = value(switches, &["--output", "-o"]).unwrap_or("report1");
        let report = free_report(name, switches)?;
        self.put("started", &Started { report, switches: switches.to_vec(), at_ns: world::now_ns() })?;
        Ok(0)
    }

    fn stop(&self, state: &State) -> Result<i32, String> {
        if !self.has("started") {
            return Err(format!("session {} is not collecting", self.name()));
        }
        let launched: Launched = self.get("launched")?;
        self.put("stopping", &())?;
        let collected = ProfiledProcess::so_far(&launched.record).and_then(|seen| self.collect(state, seen));
        self.put("stopped", &())?;
        collected.map(|()| 0)
    }

    /// Until now.
    fn collect(&self, state: &State, seen: ProfiledProcess) -> Result<(), String> {
        let (launched, started): (Launched, Started) = (self.get("launched")?, self.get("started")?);
        let collected_ns = Some((started.at_ns, world::now_ns()));
        let switches = [launched.switches, started.switches].concat();
        generate(state, &seen.by(switches, collected_ns), &launched.record, &started.report)
    }

    /// The program goes with its session unless it is to stay.
    fn shutdown(&self, signal: &str) -> Result<i32, String> {
        let launched: Launched = self.get("launched")?;
        let process = launched.process.and_then(|number| i32::try_from(number).ok()).map(Pid::from_raw);
        let signal = match signal {
            "none" => None,
            "sigterm" => Some(Signal::SIGTERM),
            "sigkill" => Some(Signal::SIGKILL),
            other => return Err(format!("unknown signal `{other}`")),
        };
        if let Some((process, signal)) = process.zip(signal) {
            kill(process, signal).map_err(|error| format!("{process}: {error}"))?;
        }
        Ok(0)
    }

    fn name(&self) -> String {
        self.0.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    fn has(&self, what: &str) -> bool {
        self.0.join(what).exists()
    }

    /// Once: two that start or stop one collection at the same time have not both done so.
    fn put<T: Serialize>(&self, what: &str, value: &T) -> Result<(), String> {
        let failed = |error: &dyn std::fmt::Display| format!("session {}, `{what}`: {error}", self.name());
        let text = serde_json::to_vec(value).map_err(|error| failed(&error))?;
        let part = self.0.join(format!("{what}.{}", std::process::id()));
        let mut file =
            OpenOptions::new().write(true).create_new(true).open(&part).map_err(|error| failed(&error))?;
        file.write_all(&text).map_err(|error| failed(&error))?;
        let linked = fs::hard_link(&part, self.0.join(what)).map_err(|error| failed(&error));
        fs::remove_file(&part).map_err(|error| failed(&error))?;
        linked
    }

    fn get<T: DeserializeOwned>(&self, what: &str) -> Result<T, String> {
        let failed = |error: &dyn std::fmt::Display| format!("session {}, `{what}`: {error}", self.name());
        let text = fs::read(self.0.join(what)).map_err(|error| failed(&error))?;
        serde_json::from_slice(&text).map_err(|error| failed(&error))
    }
}
