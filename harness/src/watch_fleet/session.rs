//! The watch from its request to its exit code: round after round, with its state whole at any moment.

use super::check::{Check, NotChecked};
use super::exposition::{self, RoundState};
use super::queue;
use super::readings::CheckResult;
use super::{WatchFleetRequest, clock, messages, place, priority};
use crate::isolate::drain::{self, Drain};
use crate::session::execution::new_runtime;
use crate::session::output::Output;
use crate::session::run_cluster;
use base::nodeset;
use base::text::show;
use cluster::drain::limits::Limits;
use cluster::interrupt;
use config::inventory::Inventory;
use fleet::{Chosen, Event, Fall, Fleet, Terms};
use model::artefact::{Format, Plan, RunCluster};
use model::exit_code;
use serde::{Deserialize, Serialize};
use sim::SimulatedReach;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::{Home, Service, StoreError, write_whole};
use verdict::isolate::code::Code;
use verdict::isolate::evidence::EvidenceLine;

/// The journal in the state's folder.
const EVENTS: &str = "events.jsonl";
const STATE: &str = "state.json";
/// What claims more rounds, events or simulated seconds was edited.
const MOST: u64 = 1 << 40;
/// A signal is answered within this time.
const NAP: Duration = Duration::from_millis(200);

/// An event as it stands in the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Logged {
    sequence: u64,
    at: String,
    message: String,
    #[serde(flatten)]
    event: Event,
}

/// A check that was begun: its run is found by its id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Running {
    id: String,
    nodes: Vec<String>,
    seed: u64,
    /// What it costs at most, in node-seconds, should nothing be known of its end.
    node_s: f64,
}

/// All that goes on after a restart.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct State {
    format: Format<1>,
    inventory: String,
    /// Its numbers are no past of real nodes.
    simulated: bool,
    /// Where its nodes are, in Kubernetes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cluster: Option<RunCluster>,
    fleet: Fleet,
    /// The time of the last round.
    now_s: u64,
    rounds: u64,
    running: Option<Running>,
    /// Events that may not be in the journal yet.
    pending: Vec<Logged>,
    /// Events so far.
    events: u64,
}

struct Session<'a> {
    home: &'a Home,
    request: &'a WatchFleetRequest,
    inventory: Inventory,
    service: Service,
    state: State,
    terms: Terms,
    /// Nodes of a check, at least.
    fewest: usize,
    /// The alarms whose nodes are all drained: what failed or was refused is tried again after the next check.
    drained: Vec<Fall>,
    /// Nodes that were idle in the last round.
    idle: usize,
}

/// Round after round; gives the exit code of the last.
pub(crate) fn watch_fleet(home: &Home, request: &WatchFleetRequest) -> Result<i32, Vec<String>> {
    let one = |why: String| vec![why];
    let id = "watch-fleet";
    let check = Check { home, request, id, nodes: &[], seed: request.seed };
    let (plan, inventory) = check.plan_all()?;
    priority::refused(&inventory, request.assume_idle).map_err(one)?;
    if request.drain.is_some() {
        drain::refused(&inventory, "--drain").map_err(one)?;
    }
    let folder = place::folder(&home.path().join("runs"), &inventory.name).map_err(one)?;
    check_metrics(request.metrics.as_deref(), &folder).map_err(one)?;
    let spans = plan.cases.iter().flat_map(|case| &case.jobs).any(|job| job.nodes.len() > 1);
    let terms = Terms {
        budget: request.budget,
        nodes: inventory.nodes.len(),
        check_s: estimate_s(&plan),
        spans,
        seed: request.seed,
    };
    let fewest = if spans { 2 } else { 1 };
    let place = folder.join(STATE);
    if request.dry_run {
        // Read only: a watch that goes on is not disturbed.
        let loaded = match std::fs::symlink_metadata(&place) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            _ => store::read_json(&place).map(Some),
        };
        let state = restored(loaded, &place, &inventory, request.seed).map_err(one)?;
        check_budget(&state, &terms, fewest).map_err(one)?;
        return preview(&inventory, request, &terms, fewest, state).map_err(one);
    }
    let service = Service::open(&folder).map_err(|error| one(error.to_string()))?;
    let mut state = restored(service.load(), &place, &inventory, request.seed).map_err(one)?;
    check_budget(&state, &terms, fewest).map_err(one)?;
    interrupt::watch();
    let pending = std::mem::take(&mut state.pending);
    let mut session =
        Session { home, request, inventory, service, state, terms, fewest, drained: Vec::new(), idle: 0 };
    session.open(&pending).map_err(one)?;
    Ok(session.go())
}

fn new_state(inventory: &Inventory, seed: u64) -> State {
    let simulated_s = u64::try_from(SimulatedReach::epoch_unix_s(seed)).unwrap_or_default();
    State {
        format: Format,
        inventory: inventory.name.clone(),
        simulated: inventory.is_simulated(),
        cluster: None,
        fleet: Fleet::default(),
        now_s: if inventory.is_simulated() { simulated_s } else { 0 },
        rounds: 0,
        running: None,
        pending: Vec::new(),
        events: 0,
    }
}

/// The state as it was written, or a new one; an error where it is damaged or of something else.
fn restored(
    loaded: Result<Option<State>, StoreError>,
    place: &Path,
    inventory: &Inventory,
    seed: u64,
) -> Result<State, String> {
    let loaded = loaded.map_err(|error| format!("{error}; to start without a past, move it away"))?;
    let mut state = loaded.unwrap_or_else(|| new_state(inventory, seed));
    let place = place.display();
    if state.inventory != inventory.name {
        return Err(format!("{place}: is of inventory `{}`; move it away", show(&state.inventory)));
    }
    if state.simulated != inventory.is_simulated() {
        return Err(format!("{place}: simulated and real nodes are no past of each other; move it away"));
    }
    let running = state.running.as_ref();
    let is_inside = running.is_none_or(|it| store::is_inside(&it.id) && !it.id.contains('/'));
    let is_possible = state.now_s <= MOST && state.rounds <= MOST && state.events <= MOST;
    // Nodes that left the inventory meanwhile are not watched.
    if let Some(running) = &mut state.running {
        running.nodes.retain(|node| inventory.nodes.contains(node));
    }
    match state.fleet.restore(state.now_s) && is_inside && is_possible {
        true => Ok(state),
        false => Err(format!("{place}: contradicts itself; move it away to start without a past")),
    }
}

fn check_budget(state: &State, terms: &Terms, fewest: usize) -> Result<(), String> {
    if state.fleet.is_possible(terms, fewest) {
        return Ok(());
    }
    let needed = state.fleet.cost_s(terms) * fewest as f64 / 3600.0;
    let allowed = terms.budget * terms.nodes as f64 * 7.0 * 24.0;
    Err(format!(
        "--budget: {allowed:.2} node-hours in 7 days never pay for a check, which takes {needed:.2}; give a larger one"
    ))
}

/// node_exporter would not read another name, and what has one is something else.
fn check_metrics(metrics: Option<&Path>, state: &Path) -> Result<(), String> {
    let Some(path) = metrics else { return Ok(()) };
    let shown = show(&path.display().to_string());
    if path.extension().is_none_or(|it| it != "prom") {
        return Err(format!(
            "--metrics {shown}: does not end in .prom: node_exporter would not read it, and what is there would be replaced"
        ));
    }
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    match absolute(path).starts_with(absolute(state)) {
        true => Err(format!("--metrics {shown}: lies in the state's folder; choose another place")),
        false => Ok(()),
    }
}

/// Of one node, in seconds.
fn estimate_s(plan: &Plan) -> f64 {
    plan.node_seconds() / plan.nodes.len().max(1) as f64
}

/// What would be checked, and why.
fn preview(
    inventory: &Inventory,
    request: &WatchFleetRequest,
    terms: &Terms,
    fewest: usize,
    mut state: State,
) -> Result<i32, String> {
    let now_s = advance(inventory, &mut state, request);
    let queue = queue::ask(inventory, request.ssh_fanout)?;
    state.fleet.inventory(now_s, grouped(inventory));
    let chosen = state.fleet.choose(now_s, &queue.idle, terms, fewest);
    println!("{} of {} idle", queue.idle.len(), base::text::count(inventory.nodes.len(), "node"));
    match chosen.is_empty() {
        true => {
            let free = Terms { budget: f64::INFINITY, ..*terms };
            let is_due = || !state.fleet.choose(now_s, &queue.idle, &free, fewest).is_empty();
            let why = match queue.idle.len() {
                0 => "no node is idle".to_owned(),
                idle if idle < fewest => format!("{idle} is idle, and a check takes {fewest} nodes"),
                _ if is_due() => "the budget is spent for now".to_owned(),
                _ => "no idle node is due".to_owned(),
            };
            println!("nothing would be checked: {why}");
        }
        false => messages::chosen(&chosen).iter().for_each(|line| println!("would check {line}")),
    }
    let cost = state.fleet.cost_s(terms);
    println!("a check of a node takes about {} of it", base::text::duration(cost));
    println!("{}", messages::covered(&state.fleet.coverage(now_s, terms)));
    if inventory.is_simulated() {
        println!("SIMULATED: nothing in this was measured on real hardware");
    }
    Ok(exit_code::PASSED)
}

/// The time of the round that begins.
fn advance(inventory: &Inventory, state: &mut State, request: &WatchFleetRequest) -> u64 {
    state.now_s = match inventory.is_simulated() {
        true => state.now_s.saturating_add(request.every.as_secs()),
        false => {
            let (now_s, back_s) = clock::time(store::wall_clock_s().max(0.0) as u64, state.now_s);
            if let Some(back_s) = back_s {
                eprintln!("{}", clock::set_back(back_s));
                state.fleet.set_back(now_s);
            }
            now_s
        }
    };
    state.now_s
}

fn grouped(inventory: &Inventory) -> impl Iterator<Item = (&str, Option<&str>)> {
    inventory.nodes.iter().map(|node| {
        let group = inventory.groups.iter().find(|(_, members)| members.contains(node));
        (node.as_str(), group.map(|(name, _)| name.as_str()))
    })
}

impl Session<'_> {
    /// Writes what was to be written when the process was ended, and reads the check that was running then.
    fn open(&mut self, pending: &[Logged]) -> Result<(), String> {
        let journal = self.journal();
        let known: Vec<Logged> = self.service.lines(&journal).map_err(|error| error.to_string())?;
        let last = known.last().map_or(0, |last| last.sequence);
        self.state.events = self.state.events.max(last);
        for logged in pending.iter().filter(|logged| logged.sequence > last) {
            self.service.append(&journal, logged).map_err(|error| error.to_string())?;
            println!("{} {}", show(&logged.at), show(&logged.message));
        }
        Ok(())
    }

    fn journal(&self) -> PathBuf {
        self.service.state_path().with_file_name(EVENTS)
    }

    fn go(&mut self) -> i32 {
        let mut code = self.take_up();
        let mut rounds = 0;
        loop {
            if let Some(signal) = interrupt::asked() {
                return signal;
            }
            if self.request.rounds == Some(rounds) {
                break;
            }
            code = self.round();
            rounds += 1;
            if self.request.rounds != Some(rounds)
                && let Err(why) = self.wait()
            {
                return broken(&why);
            }
        }
        println!("{}", messages::covered(&self.state.fleet.coverage(self.state.now_s, &self.terms)));
        let alarms = self.state.fleet.alarms();
        for fall in &alarms {
            println!("alarm lasts: {}", messages::alarm(fall));
        }
        for test in self.state.fleet.fell() {
            println!("many nodes are lower, and none is blamed: {}", show(test));
        }
        let unattributed = self.state.fleet.unattributed_nodes();
        if !unattributed.is_empty() {
            println!("the suite fails on {}, and blames none of them", nodeset::fold(&unattributed));
        }
        if let Some(first) = alarms.first() {
            println!("next: harness explain {}", show(messages::code_of(first)));
        }
        if self.inventory.is_simulated() {
            println!("SIMULATED: nothing in this was measured on real hardware");
        }
        code
    }

    /// Simulated time passes by itself.
    fn wait(&self) -> Result<(), String> {
        if self.inventory.is_simulated() {
            return Ok(());
        }
        new_runtime(false)?.block_on(async {
            let until = tokio::time::Instant::now() + self.request.every;
            while tokio::time::Instant::now() < until && interrupt::asked().is_none() {
                tokio::time::sleep(NAP.min(self.request.every)).await;
            }
        });
        Ok(())
    }

    /// A check that was running when the process was ended is awaited, and counts once.
    fn take_up(&mut self) -> i32 {
        let Some(running) = self.state.running.clone() else { return exit_code::PASSED };
        let check = Check {
            home: self.home,
            request: self.request,
            id: &running.id,
            nodes: &running.nodes,
            seed: running.seed,
        };
        let result = match check.take_up(&self.inventory) {
            Ok(Some(result)) => Ok(result),
            // Its nodes are as they were: they are chosen again by the next round.
            Ok(None) => {
                return match self.record(self.state.now_s, Vec::new(), None) {
                    Ok(()) => exit_code::PASSED,
                    Err(why) => broken(&why),
                };
            }
            Err(NotChecked::Failed(why)) => Err(NotChecked::Failed(format!(
                "this check was running when the process was ended, and cannot be resumed: {why}"
            ))),
            Err(stopped) => Err(stopped),
        };
        let now_s = self.state.now_s;
        self.settle(now_s, &running, result)
    }

    /// Chooses, checks and judges. The exit code is 1 while an alarm lasts, or something fails without a culprit, and 3
    /// where something was to be measured, and was not.
    fn round(&mut self) -> i32 {
        // Numbers of another cluster's nodes, which may have the same names, are no past of these.
        if let Err(why) = run_cluster::keep(&mut self.state.cluster, &self.inventory) {
            eprintln!("inconclusive: {why}");
            return exit_code::INCONCLUSIVE;
        }
        let now_s = advance(&self.inventory, &mut self.state, self.request);
        self.state.rounds += 1;
        let queue = match queue::ask(&self.inventory, self.request.ssh_fanout) {
            Ok(queue) => queue,
            Err(why) => {
                eprintln!("inconclusive: which nodes are idle is not known: {why}");
                return self.finish(now_s, Vec::new(), false);
            }
        };
        self.idle = queue.idle.len();
        if queue.unknown > 0 {
            eprintln!(
                "warning: the queue does not know {} of the inventory",
                base::text::count(queue.unknown, "node")
            );
        }
        let mut events = self.state.fleet.inventory(now_s, grouped(&self.inventory));
        events.extend(self.state.fleet.queue(&queue.out, &queue.within));
        let chosen = self.state.fleet.choose(now_s, &queue.idle, &self.terms, self.fewest);
        if chosen.is_empty() {
            return self.finish(now_s, events, true);
        }
        let running = self.begin(&chosen);
        // What was found in the queue is not lost with a process that is ended in the check.
        if let Err(why) = self.record(now_s, events, Some(running.clone())) {
            return broken(&why);
        }
        let check = Check {
            home: self.home,
            request: self.request,
            id: &running.id,
            nodes: &running.nodes,
            seed: running.seed,
        };
        let result = check.run(&self.inventory);
        self.settle(now_s, &running, result)
    }

    fn begin(&self, chosen: &[Chosen]) -> Running {
        let nodes: Vec<String> = chosen.iter().map(|one| one.node.clone()).collect();
        let node_s = self.state.fleet.cost_s(&self.terms) * nodes.len() as f64;
        Running {
            id: store::new_run_id("watch-fleet"),
            seed: self.request.seed.wrapping_add(7919_u64.wrapping_mul(self.state.rounds)),
            nodes,
            node_s,
        }
    }

    /// Takes what a check measured, once: with the same write it is no longer running.
    fn settle(&mut self, now_s: u64, running: &Running, result: Result<CheckResult, NotChecked>) -> i32 {
        let fleet = &mut self.state.fleet;
        let (events, is_complete) = match result {
            Ok(result) => {
                let mut events = Vec::new();
                for (node, ids) in result.hardware.iter().filter(|(node, _)| running.nodes.contains(node)) {
                    events.extend(fleet.hardware(node, ids));
                }
                let (nodes, measured_s) = result.measured;
                fleet.charge(now_s, nodes, measured_s.min(result.node_s));
                fleet.charge(now_s, 0, (result.node_s - measured_s).max(0.0));
                events.extend(fleet.take(now_s, &result.readings, &self.terms));
                events.extend(fleet.unattributed(&running.nodes, &result.unattributed));
                let is_measured = |node: &String| result.readings.iter().any(|it| it.node == *node);
                let tried: Vec<String> =
                    running.nodes.iter().filter(|node| !is_measured(node)).cloned().collect();
                fleet.tried(now_s, &tried);
                for line in messages::checked(&running.nodes, &result) {
                    println!("{} {line}", at(now_s));
                }
                (events, !result.readings.is_empty())
            }
            Err(NotChecked::Interrupted(code)) => {
                // Nothing was launched.
                return match self.record(now_s, Vec::new(), None) {
                    Ok(()) => code,
                    Err(why) => broken(&why),
                };
            }
            Err(NotChecked::Failed(why)) => {
                let nodes = nodeset::fold(&running.nodes);
                let next = format!("`harness clean --run {}` ends what may be running still", running.id);
                eprintln!("inconclusive: {nodes} not measured: {why}; {next}");
                fleet.charge(now_s, 0, running.node_s);
                fleet.tried(now_s, &running.nodes);
                (Vec::new(), false)
            }
        };
        let code = self.finish(now_s, events, is_complete);
        self.drain(&running.id);
        interrupt::asked().unwrap_or(code)
    }

    /// Writes the state, then the events that it holds.
    fn record(&mut self, now_s: u64, events: Vec<Event>, running: Option<Running>) -> Result<(), String> {
        let text = |error: StoreError| error.to_string();
        self.state.running = running;
        self.state.pending = (self.state.events + 1..)
            .zip(events)
            .map(|(sequence, event)| Logged {
                sequence,
                at: at(now_s),
                message: messages::line(&event),
                event,
            })
            .collect();
        self.state.events += self.state.pending.len() as u64;
        self.service.save(&self.state).map_err(text)?;
        let journal = self.journal();
        for logged in &self.state.pending {
            self.service.append(&journal, logged).map_err(text)?;
            // A reader that has gone away needs no error.
            let _ = writeln!(std::io::stdout(), "{} {}", logged.at, logged.message);
        }
        Ok(())
    }

    fn finish(&mut self, now_s: u64, events: Vec<Event>, is_complete: bool) -> i32 {
        if let Err(why) = self.record(now_s, events, None) {
            return broken(&why);
        }
        let fleet = &self.state.fleet;
        let alarms = fleet.alarms();
        if let Some(path) = &self.request.metrics {
            let coverage = fleet.coverage(now_s, &self.terms);
            let text = exposition::render(&RoundState {
                inventory: &self.inventory.name,
                now_s,
                alarms: &alarms,
                suspects: fleet.suspects().len(),
                fell: fleet.fell().count(),
                unattributed: fleet.unattributed_nodes().len(),
                coverage: &coverage,
                idle: self.idle,
                is_complete,
            });
            if let Err(error) = write_whole(path, &text) {
                return broken(&error.to_string());
            }
        }
        let has_failed =
            !alarms.is_empty() || fleet.fell().next().is_some() || !fleet.unattributed_nodes().is_empty();
        match (has_failed, is_complete) {
            (true, _) => exit_code::FAILED,
            (false, true) => exit_code::PASSED,
            (false, false) => exit_code::INCONCLUSIVE,
        }
    }

    /// Nodes with an alarm, out of the queue: where that is wanted, and as many as may be.
    fn drain(&mut self, run: &str) {
        let Some(at_most) = self.request.drain else { return };
        let alarms = self.state.fleet.alarms();
        if alarms.is_empty() || alarms == self.drained {
            self.drained = alarms;
            return;
        }
        let lines: Vec<EvidenceLine> = alarms.iter().filter_map(evidence_line).collect();
        let is_drained = drain::drain(&Drain {
            home: self.home,
            inventory: &self.inventory,
            ssh_fanout: self.request.ssh_fanout,
            lines: &lines,
            run,
            simulated: self.inventory.is_simulated(),
            limits: Limits::new(self.inventory.nodes.len(), at_most),
            without_asking: true,
            command: String::new(),
            output: Output::Stdout,
        });
        self.drained = if is_drained { alarms } else { Vec::new() };
    }
}

fn evidence_line(fall: &Fall) -> Option<EvidenceLine> {
    let code = Code::find(messages::code_of(fall))?.name;
    Some(EvidenceLine {
        code,
        node: fall.node.clone(),
        part: fall.part.clone(),
        evidence: messages::evidence(fall),
    })
}

fn at(now_s: u64) -> String {
    store::iso8601(now_s as f64)
}

fn broken(why: &str) -> i32 {
    eprintln!("error: {why}");
    exit_code::INCONCLUSIVE
}
