//! `harness observe`: jobs that run, by what NCCL's Inspector writes of them. It reads their folder and writes nowhere in it.

mod exposition;
mod follow;
mod messages;
#[cfg(test)]
mod tests;

use crate::error::Error;
use crate::session::execution::new_runtime;
use base::text::show;
use follow::{Follower, Looked};
use model::artefact::Format;
use model::exit_code;
use observe::{Event, Observer};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;
use store::{Service, write_whole};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Of calls that are compared together, in seconds.
const WINDOW_S: u32 = 10;
/// The journal of events, where no other place is given.
const EVENTS: &str = "events.jsonl";

/// Each event begins so.
const FIRST: &str = "{\"sequence\":";

/// What a person wants.
pub(crate) struct ObserveRequest {
    /// Of the records.
    pub folder: PathBuf,
    /// Of the state.
    pub state: PathBuf,
    /// A line of JSON for each event.
    pub events: Option<PathBuf>,
    /// For node_exporter.
    pub metrics: Option<PathBuf>,
    /// Between two looks.
    pub every: Duration,
    /// One look.
    pub once: bool,
}

/// An event as it stands in the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Logged {
    sequence: u64,
    /// Of the records.
    at: String,
    message: String,
    #[serde(flatten)]
    event: Event,
}

/// All that goes on after a restart.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct State {
    format: Format<1>,
    folder: String,
    follower: Follower,
    observer: Observer,
    /// Events that may not be in the journal yet.
    pending: Vec<Logged>,
    /// Events so far.
    events: u64,
    /// Calls that came too late, by the last look.
    too_late: u64,
}

/// Looks again and again, or once; gives the exit code of the last look.
pub(crate) fn observe(request: &ObserveRequest) -> Result<i32, Error> {
    let mut session = Session::open(request).map_err(Error::Usage)?;
    let waiting = new_runtime(false).map_err(Error::Usage)?;
    loop {
        let code = match session.look(&mut io::stdout(), &mut io::stderr()) {
            Ok(code) => code,
            // Without a state it would report what it finds twice: started again, it goes on from the last one.
            Err(why) => {
                eprintln!("error: {why}");
                return Ok(exit_code::INCONCLUSIVE);
            }
        };
        if request.once {
            return Ok(code);
        }
        waiting.block_on(async { tokio::time::sleep(request.every).await });
    }
}

struct Session<'a> {
    request: &'a ObserveRequest,
    service: Service,
    state: State,
    journal: PathBuf,
    /// What was printed last of what cannot be judged.
    gaps: Vec<String>,
}

impl<'a> Session<'a> {
    fn open(request: &'a ObserveRequest) -> Result<Session<'a>, String> {
        let ObserveRequest { folder, state, events, metrics, .. } = request;
        // A link that a person named is followed; one that took the place of the journal is not.
        let named = events.clone().map(|path| if path.is_symlink() { real(&path) } else { path });
        let journal = named.unwrap_or_else(|| state.join(EVENTS));
        let written =
            [("--state", Some(state)), ("--events", Some(&journal)), ("--metrics", metrics.as_ref())];
        for (flag, path) in written.into_iter().filter_map(|(flag, path)| Some((flag, path?))) {
            if is_within(path, folder) {
                let (path, folder) = (show(&path.display().to_string()), show(&folder.display().to_string()));
                return Err(format!(
                    "{flag} {path}: lies in --dir {folder}, where nothing is written; choose another place"
                ));
            }
        }
        let service = Service::open(state).map_err(|error| error.to_string())?;
        // The folder is there by now, so that links into it show.
        check_places(state, events.as_deref(), metrics.as_deref())?;
        let folder = real(folder).display().to_string();
        let loaded: Option<State> = service
            .load()
            .map_err(|error| format!("{error}; to start without a past, remove {}", state.display()))?;
        let mut state = loaded.unwrap_or_else(|| State {
            format: Format,
            folder: folder.clone(),
            follower: Follower::default(),
            observer: Observer::new(WINDOW_S),
            pending: Vec::new(),
            events: 0,
            too_late: 0,
        });
        let place = service.state_path();
        if state.folder != folder {
            let (known, place) = (show(&state.folder), place.display());
            return Err(format!("{place}: is of {known}; give another --state for {}", show(&folder)));
        }
        if !state.observer.restore() {
            return Err(format!(
                "{}: contradicts itself; remove it to start without a past",
                place.display()
            ));
        }
        check_journal(&journal)?;
        let known: Vec<Logged> = service.lines(&journal).map_err(|error| error.to_string())?;
        let last = known.last().map_or(0, |last| last.sequence);
        let pending = std::mem::take(&mut state.pending);
        state.events = state.events.max(last);
        let session = Session { request, service, state, journal, gaps: Vec::new() };
        // What was to be written when the process was ended.
        for logged in pending.iter().filter(|logged| logged.sequence > last) {
            session.add(logged, &mut io::stdout())?;
        }
        Ok(session)
    }

    fn add(&self, logged: &Logged, out: &mut dyn Write) -> Result<(), String> {
        self.service.append(&self.journal, logged).map_err(|error| error.to_string())?;
        // A reader that has gone away needs no error.
        let _ = writeln!(out, "{} {}", logged.at, logged.message);
        Ok(())
    }

    /// One look at the folder. The exit code is 1 while a finding lasts or where one is new, and 3 where the records do
    /// not suffice.
    fn look(&mut self, out: &mut dyn Write, err: &mut dyn Write) -> Result<i32, String> {
        let ObserveRequest { folder, metrics, once, .. } = self.request;
        let mut events = Vec::new();
        let State { follower, observer, .. } = &mut self.state;
        let mut looked = follower.poll(folder, observer, &mut events).unwrap_or_else(|error| Looked {
            folder: Some(format!("{}: {error}", folder.display())),
            ..Looked::default()
        });
        let coverage = observer.coverage();
        looked.too_late = coverage.too_late.saturating_sub(self.state.too_late);
        self.state.too_late = coverage.too_late;
        self.state.pending = (self.state.events + 1..)
            .zip(events)
            .map(|(sequence, event)| Logged {
                sequence,
                at: time_of(&event),
                message: messages::line(&event),
                event,
            })
            .collect();
        self.state.events += self.state.pending.len() as u64;
        // A mistyped folder has no past, and the right one is not refused for it.
        let is_first = looked.folder.is_some() && !self.service.state_path().exists();
        if !is_first {
            self.service.save(&self.state).map_err(|error| error.to_string())?;
        }
        for logged in &self.state.pending {
            self.add(logged, out)?;
        }
        let odd = &self.state.follower.odd;
        let gaps = messages::gaps(&looked, &coverage);
        if let Some(path) = metrics {
            let all = (&looked, odd, &coverage);
            let text = exposition::render(
                &folder.display().to_string(),
                self.state.observer.findings(),
                all,
                gaps.is_empty(),
            );
            write_whole(path, &text).map_err(|error| error.to_string())?;
        }
        let has_found = self.state.pending.iter().any(|it| matches!(it.event, Event::Found(_)));
        if *once {
            let going_on = self.state.observer.findings().iter().cloned().map(Event::Found);
            let is_new = |event: &Event| self.state.pending.iter().any(|it| it.event == *event);
            for event in going_on.filter(|event| !is_new(event)) {
                let _ = writeln!(out, "{} since then: {}", time_of(&event), messages::line(&event));
            }
            let _ = writeln!(out, "{}", messages::covered(&looked, &coverage));
            for note in messages::notes(&looked, odd, &coverage) {
                let _ = writeln!(out, "note: {note}");
            }
        }
        // Numbers grow with each look; what they are about is new only once.
        let about = |gaps: &[String]| -> Vec<String> {
            gaps.iter().map(|gap| gap.chars().filter(|letter| !letter.is_ascii_digit()).collect()).collect()
        };
        if about(&gaps) != about(&self.gaps) {
            for gap in &gaps {
                let _ = writeln!(err, "inconclusive: {gap}");
            }
        }
        let is_complete = gaps.is_empty();
        self.gaps = gaps;
        Ok(match (has_found || !self.state.observer.findings().is_empty(), is_complete) {
            (true, _) => exit_code::FAILED,
            (false, true) => exit_code::PASSED,
            (false, false) => exit_code::INCONCLUSIVE,
        })
    }
}

fn time_of(event: &Event) -> String {
    let at_s = match event {
        Event::Found(finding) => finding.at_s,
        Event::Over { at_s, .. } => *at_s,
    };
    let time = OffsetDateTime::from_unix_timestamp(i64::try_from(at_s).unwrap_or_default()).ok();
    time.and_then(|time| time.format(&Rfc3339).ok()).unwrap_or_else(|| at_s.to_string())
}

/// The path without links, also where its end is not there yet.
fn real(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let there = path.ancestors().find_map(|above| Some((above, fs::canonicalize(above).ok()?)));
    match there {
        Some((above, real)) => match path.strip_prefix(above) {
            Ok(rest) => rest.components().fold(real, |mut path, part| {
                match part {
                    Component::ParentDir => drop(path.pop()),
                    part => path.push(part),
                }
                path
            }),
            Err(_) => path,
        },
        None => path,
    }
}

/// No file that is written may be another one that is: each would damage the other.
fn check_places(state: &Path, events: Option<&Path>, metrics: Option<&Path>) -> Result<(), String> {
    let named = |path: &Path| show(&path.display().to_string());
    if let Some(metrics) = metrics.filter(|it| it.extension().is_none_or(|it| it != "prom")) {
        return Err(format!(
            "--metrics {}: does not end in .prom: node_exporter would not read it, and what is there would be replaced",
            named(metrics)
        ));
    }
    let journal = state.join(EVENTS);
    let is_journal = |path: &Path| real(path) == real(&journal);
    let in_state = |path: &&Path| is_within(path, state);
    let wrong = metrics.filter(in_state).or(events.filter(in_state).filter(|it| !is_journal(it)));
    if let Some(path) = wrong {
        return Err(format!(
            "{}: lies in the state's folder {}; choose another place",
            named(path),
            named(state)
        ));
    }
    if let (Some(events), Some(metrics)) = (events, metrics)
        && real(events) == real(metrics)
    {
        return Err(format!("{}: is both --events and --metrics; give two names", named(events)));
    }
    Ok(())
}

/// A file of something else has no line that was cut off, and nothing is removed from it.
fn check_journal(journal: &Path) -> Result<(), String> {
    // What is absent or no file is refused, or made, where it is opened.
    if !fs::metadata(journal).is_ok_and(|data| data.is_file()) {
        return Ok(());
    }
    let mut start = Vec::new();
    let read = fs::File::open(journal).and_then(|file| file.take(FIRST.len() as u64).read_to_end(&mut start));
    let path = show(&journal.display().to_string());
    read.map_err(|error| format!("{path}: {error}"))?;
    match FIRST.as_bytes().starts_with(&start) {
        true => Ok(()),
        false => Err(format!("{path}: holds something else than events of `observe`; choose another place")),
    }
}

fn is_within(path: &Path, folder: &Path) -> bool {
    real(path).starts_with(real(folder))
}
