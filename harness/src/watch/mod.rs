//! `harness watch`: a run from another terminal. It reads the run's folder alone, and changes nothing.

mod follow;
mod web;

use self::follow::run_state;
use self::web::PageServer;
use crate::report::{self, Ending, Mode, Progress, Report, RunState, narrow};
use crate::session::execution::new_runtime;
use crate::session::stored;
use crate::stored_page::{PageArtefacts, disbelieve};
use base::text::show;
use model::artefact::{CaseVerdict, Ended, Summary};
use model::exit_code;
use recipes::catalogue::Catalogue;
use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;
use store::{Home, Stored};
use time::OffsetDateTime;
use time::format_description::well_known::Iso8601;
use tokio::runtime::Runtime;

/// Between two looks at the folder.
const EVERY: Duration = Duration::from_secs(2);
/// A run without an event for so long may have lost its process; jobs alone take a while.
const SILENT: Duration = Duration::from_secs(1800);

/// What is shown of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WatchRequest<'a> {
    /// The run, as a person names it.
    pub run: &'a str,
    /// Only what is known now.
    pub once: bool,
    /// Whether stdout wants colours.
    pub color: bool,
    /// The port of its page on this machine, 0 for any that is free; none where no page is asked for.
    pub web: Option<u16>,
}

/// Shows the run until it is over, and gives its exit code; with `once`, 0 where it goes on.
pub(crate) fn watch(home: &Home, request: &WatchRequest) -> Result<i32, String> {
    let mode = match request.once {
        true => Mode::Plain,
        false => Mode::Auto { is_terminal: io::stderr().is_terminal() },
    };
    let mut watched = Watched { progress: Progress::new(mode), events: 0, judged: BTreeSet::new() };
    watched.progress.begin(&stored::open(home, request.run)?.plan);
    let waiting = new_runtime(false)?;
    let mut web: Option<LivePage> = None;
    loop {
        // A plan changes when nodes are quarantined.
        let stored = stored::open(home, request.run)?;
        watched.take_new(&stored)?;
        if let Some(mut summary) = finished(&stored)? {
            watched.progress.done();
            if let Some(page) = &web {
                // The exit code is the run's, whatever becomes of its page.
                match PageArtefacts::read(&stored).and_then(|artefacts| artefacts.render(None)) {
                    Ok(last) => page.server.show(&last),
                    Err(why) => eprintln!("no last page: {}", show(&why)),
                }
                waiting.block_on(page.server.farewell());
            }
            if let Some(why) = disbelieve(&stored, &mut summary) {
                eprintln!("error: {}", show(&why));
                summary.exit_code = exit_code::INCONCLUSIVE;
            }
            return print_end(&stored, &summary, request.color);
        }
        if request.once {
            let now = watched.progress.now();
            watched.progress.note(&now);
            return Ok(exit_code::PASSED);
        }
        if let Some(port) = request.web {
            match &mut web {
                Some(page) => page.renew(&stored)?,
                none => *none = Some(LivePage::start(&waiting, port, &stored)?),
            }
        }
        // Made within the runtime: a timer belongs to one.
        waiting.block_on(async { tokio::time::sleep(EVERY).await });
    }
}

/// The page of the run while it goes on.
struct LivePage {
    server: PageServer,
    shown: Option<RunState>,
    /// What was there when the page was made: how many events and files of verdicts.
    seen: Option<(usize, usize)>,
}

impl LivePage {
    /// Prints where it is.
    fn start(runtime: &Runtime, port: u16, stored: &Stored) -> Result<LivePage, String> {
        let server = PageServer::start(runtime, port)?;
        let mut page = LivePage { server, shown: None, seen: None };
        page.renew(stored)?;
        let mut out = io::stdout().lock();
        // A reader that has gone away needs no error.
        let _ = writeln!(out, "page: {}", page.server.address).and_then(|()| out.flush());
        Ok(page)
    }

    /// Made again where the run has gone on.
    fn renew(&mut self, stored: &Stored) -> Result<(), String> {
        let events = stored.events().map_err(|error| error.to_string())?;
        let files = stored.plan.cases.iter().flat_map(|case| {
            ["verdict.json", "outcomes.json"].map(|file| stored.case(&case.name).join(file))
        });
        let now = (events.len(), files.filter(|file| file.exists()).count());
        // All artefacts of a large run are not read every two seconds.
        if self.seen == Some(now) {
            return Ok(());
        }
        let artefacts = PageArtefacts::so_far(stored, &Catalogue::built_in())?;
        let state = run_state(stored, &events, artefacts.judged());
        if self.shown.as_ref() != Some(&state) {
            self.server.show(&artefacts.render_live(&state)?);
            self.shown = Some(state);
        }
        self.seen = Some(now);
        Ok(())
    }
}

/// What of the folder was shown already.
struct Watched {
    progress: Progress,
    events: usize,
    judged: BTreeSet<String>,
}

impl Watched {
    fn take_new(&mut self, stored: &Stored) -> Result<(), String> {
        let events = stored.events().map_err(|error| error.to_string())?;
        let began = events.first().and_then(|event| moment(event["at"].as_str()?));
        for event in events.iter().skip(self.events) {
            let at = event["at"].as_str().and_then(moment);
            if let (Some(began), Some(at)) = (began, at) {
                self.progress.tick(Duration::try_from(at - began).unwrap_or_default());
            }
            self.show(event);
            if event["event"] == "job-ended" {
                let case = event["case"].as_str().unwrap_or_default();
                if is_last_of_its_case(&events, event) {
                    self.case(stored, case)?;
                }
            }
        }
        self.events = events.len();
        // Simulated hours pass in no time; real ones pass while nothing happens, too.
        if let Some(began) = began.filter(|_| !stored.plan.simulated) {
            let now = store::wall_clock_s() - began.unix_timestamp() as f64;
            let now = Duration::try_from_secs_f64(now).unwrap_or_default();
            self.progress.tick(now);
            let last = events.last().and_then(|event| moment(event["at"].as_str()?)).unwrap_or(began);
            let silent = now.saturating_sub(Duration::try_from(last - began).unwrap_or_default());
            if silent > SILENT && self.judged.insert(String::new()) {
                let id = &stored.plan.run_id;
                let note =
                    format!("no event since {last}; if its process was ended: harness resume --run {id}");
                self.progress.note(&note);
            }
        }
        for case in &stored.plan.cases {
            self.case(stored, &case.name)?;
        }
        Ok(())
    }

    /// The line of a case, once it is judged.
    fn case(&mut self, stored: &Stored, name: &str) -> Result<(), String> {
        if self.judged.contains(name) {
            return Ok(());
        }
        if let Some(verdict) = stored.verdict(name).map_err(|error| error.to_string())? {
            self.judged.insert(name.to_owned());
            self.progress.case_judged(&verdict);
        }
        Ok(())
    }

    fn show(&mut self, event: &serde_json::Value) {
        let text = |key: &str| event[key].as_str().unwrap_or_default();
        match text("event") {
            "job-submitted" => {
                let nodes = event["nodes"].as_array().into_iter().flatten();
                let nodes: Vec<String> = nodes.filter_map(|node| node.as_str().map(str::to_owned)).collect();
                let estimate_s = event["estimate_s"].as_u64().unwrap_or_default();
                self.progress.job_started(text("case"), text("job"), &nodes, estimate_s);
            }
            "job-started" => self.progress.job_began(text("case"), text("job")),
            "job-starting" => self.progress.job_starting(text("case"), text("job"), text("reason")),
            "job-ended" => {
                let end = serde_json::from_value(event["end"].clone());
                let end = end.unwrap_or_else(|_| Ended::Lost { why: "its end cannot be read".to_owned() });
                self.progress.job_ended(text("case"), text("job"), &end);
            }
            "node-quarantined" => {
                let why = format!("{} quarantined after {}: {}", text("node"), text("after"), text("why"));
                self.progress.note(&why);
            }
            "run-stopped" => self.progress.stopping(text("why")),
            _ => {}
        }
    }
}

fn is_last_of_its_case(events: &[serde_json::Value], event: &serde_json::Value) -> bool {
    let of_case =
        |other: &&serde_json::Value| other["event"] == "job-ended" && other["case"] == event["case"];
    events.iter().rev().find(of_case).is_some_and(|last| last["job"] == event["job"])
}

fn moment(text: &str) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(text, &Iso8601::DEFAULT).ok()
}

/// The summary of a run that is over.
fn finished(stored: &Stored) -> Result<Option<Summary>, String> {
    let record = stored.record().map_err(|error| error.to_string())?;
    match record.is_some_and(|record| record.ended.is_some()) {
        true => stored.summary().map_err(|error| error.to_string()),
        false => Ok(None),
    }
}

/// The end of the run's own output.
fn print_end(stored: &Stored, summary: &Summary, color: bool) -> Result<i32, String> {
    let mut cases: Vec<CaseVerdict> = Vec::new();
    for case in &stored.plan.cases {
        cases.extend(stored.verdict(&case.name).map_err(|error| format!("{}: {error}", show(&case.name)))?);
    }
    let report = Report::new(&stored.plan, &cases, summary);
    let text = report::broken(&report, None)
        .unwrap_or_else(|| report::closing(&report, Ending { color, ..Ending::default() }));
    crate::standard_output::print(narrow::fit(&text, io::stdout()).as_bytes());
    Ok(summary.exit_code)
}
