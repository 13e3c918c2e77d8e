//! One isolation, from its request to its outcome: the evidence at hand first, then rounds. Which runs a round has is
//! decided in `verdict::isolate`.

use super::drain::{self, Drain};
use super::request::{IsolationOutcome, IsolationRequest};
use super::rounds::{self, Isolation, Stopped};
use super::{fleet, fleetwide, messages, observations, preflight, same_hardware};
use crate::report;
use crate::session::load::{self, Loaded};
use crate::session::output::Output;
use crate::session::rehearsal::Rehearsal;
use crate::session::{RunOptions, gpu_request, planning, report_error, run_cluster, stored};
use base::nodeset;
use cluster::drain::limits::{self, Limits};
use cluster::interrupt;
use config::inventory::Inventory;
use config::suite::Suite;
use model::artefact::{JobOutcome, Plan, Probe};
use model::exit_code;
use model::fault::NodeFault;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use store::{self, Home, Store, Stored};
use verdict::isolate::cost_estimate::cost_estimate;
use verdict::isolate::evidence::{self, Evidence, EvidenceLine};
use verdict::isolate::fleetwide::Fleetwide;
use verdict::isolate::observations::RunObservations;
use verdict::isolate::outcome;
use verdict::isolate::round::{IsolationScope, Probes, RECORD, Record};
use verdict::judge::common_failure::HANGS;

/// With fewer nodes nothing would be left to compare with.
pub(crate) const FEWEST: usize = 4;

pub(crate) fn isolate(
    home: &Home,
    request: &IsolationRequest,
    output: Output,
) -> Result<IsolationOutcome, Vec<String>> {
    let asked_for = request.run.as_deref().filter(|_| request.caused_by.is_none());
    let asked_for =
        asked_for.and_then(|word| stored::open_own(home, word).ok()).map(|run| run.plan.run_id.clone());
    let started = match &request.resume {
        Some(word) => resume(home, request, word, output)?,
        None => start(home, request, output)?,
    };
    let mut isolation = match started {
        Started::Ended(outcome) => return Ok(outcome),
        Started::Rounds(isolation) => isolation,
    };
    interrupt::watch();
    let (code, culprits, concluded) = match isolation.go() {
        Ok(conclusion) => {
            let lines = messages::culprits(&isolation, &conclusion);
            drain_found(home, &isolation, &lines, request);
            let all = fleetwide::compare(&isolation, isolation.baselines.as_ref());
            let is_fleet_slow = matches!(all, Fleetwide::Slow(_));
            let outcome =
                outcome::IsolationOutcome::new(&conclusion, &lines, &isolation.asked.nodes, is_fleet_slow);
            let stored = isolation.store_outcome(outcome.clone());
            let code = messages::end(&isolation, &conclusion, lines.len(), &all);
            // `latest` is again the run that was looked into, not a round of it.
            let stored = stored.and_then(|()| match &asked_for {
                Some(id) => Store::open(home, id).map(|run| run.is_latest()).map_err(|why| why.to_string()),
                None => Ok(()),
            });
            let code = stored.map_or_else(|why| exit_code::graver(code, report_error(&why)), |()| code);
            (code, lines, Some(outcome))
        }
        Err(Stopped::Interrupted(code)) => {
            eprintln!("interrupted: `harness isolate --resume {}` goes on", isolation.first());
            (code, isolation.known.clone(), None)
        }
        Err(Stopped::Budget(needed)) => {
            let code = messages::budget(&isolation, needed);
            let known = isolation.known.clone();
            let concluded = outcome::IsolationOutcome::from_lines(&known);
            (code, known, Some(concluded))
        }
        Err(Stopped::Broken(text)) => {
            eprint!("{text}");
            (exit_code::INCONCLUSIVE, Vec::new(), None)
        }
        Err(Stopped::Machinery(why)) => (report_error(&why), isolation.known.clone(), None),
    };
    let node_hours = isolation.node_hours();
    let (rounds, simulated) = (isolation.ids.clone(), isolation.simulated);
    Ok(IsolationOutcome { code, culprits, concluded, rounds, node_hours, simulated })
}

/// Drains the culprits of the rounds, where that was asked for.
fn drain_found(home: &Home, isolation: &Isolation, lines: &[EvidenceLine], request: &IsolationRequest) {
    let Some(asked) = &request.drain else { return };
    let mut limits = Limits::new(isolation.inventory.nodes.len(), asked.at_most);
    limits.hung_once.clone_from(&isolation.hung_once);
    // A resumed isolation runs nothing again, but does not know what the evidence before it had named.
    let command = match isolation.known.is_empty() {
        true => resumed_command(isolation.first(), asked.at_most),
        false => asked.command.clone(),
    };
    let drain = Drain {
        home,
        inventory: &isolation.inventory,
        ssh_fanout: request.ssh_fanout,
        lines,
        run: isolation.first(),
        simulated: isolation.simulated,
        limits,
        without_asking: asked.yes,
        command,
        output: isolation.output,
    };
    drain::drain(&drain);
}

fn resumed_command(first: &str, at_most: Option<u32>) -> String {
    let at_most = at_most.map(|n| format!(" --drain-at-most {n}")).unwrap_or_default();
    format!("`harness isolate --resume {first} --drain{at_most} --yes`")
}

enum Started {
    /// Without a round.
    Ended(IsolationOutcome),
    Rounds(Box<Isolation>),
}

fn resume(
    home: &Home,
    request: &IsolationRequest,
    word: &str,
    output: Output,
) -> Result<Started, Vec<String>> {
    let refused = |why: String| vec![format!("--resume: {why}")];
    let records: Vec<(PathBuf, Record)> = rounds::records(home, word).map_err(refused)?;
    let Some((folder, first)) = records.first() else { return Err(refused(format!("no round: `{word}`"))) };
    let asked = first.asked.clone();
    let (mut loaded, suite) =
        load_files(home, request, &asked.suite, &asked.inventory, asked.reservation.as_deref())?;
    // Rounds on nodes of two clusters, whose names may be the same, show nothing together.
    if let Err(why) = run_cluster::check_nodes(folder, &loaded.inventory) {
        let code = report_error(&format!("--resume: {why}"));
        return Ok(Started::Ended(IsolationOutcome { code, ..IsolationOutcome::default() }));
    }
    // As in the rounds before.
    if let Some(gpus) = Stored::open(folder).ok().and_then(|round| gpu_request::from_plan(&round.plan)) {
        loaded.inventory.settle_gpu_request(gpus);
    }
    let probes = Probes::choose(&suite, &loaded.inventory, Some(&asked.case)).map_err(|why| vec![why])?;
    let (sources, fleet) = (loaded.sources, first.fleet.clone());
    let mut isolation =
        Isolation::new(home, loaded.inventory, probes, fleet, asked, sources, request.ssh_fanout);
    isolation.baselines = loaded.baselines;
    isolation.output = output;
    isolation.name_left_out();
    isolation.take_up(&records).map_err(refused)?;
    messages::heading(&isolation);
    Ok(Started::Rounds(Box::new(isolation)))
}

/// The files of an isolation, and its suite; its nodes can be drained, where that was asked for.
fn load_files(
    home: &Home,
    request: &IsolationRequest,
    suite: &str,
    inventory: &str,
    reservation: Option<&str>,
) -> Result<(Loaded, Suite), Vec<String>> {
    let mut loaded = load::load(home, &[suite.to_owned()], inventory, None, &request.catalogue)?;
    if let Some(name) = reservation {
        loaded.inventory.reserve(name).map_err(|why| vec![format!("--reservation: {why}")])?;
    }
    let suite = loaded.suites.first().cloned().ok_or_else(|| vec!["no suite".to_owned()])?;
    if request.drain.is_some() {
        drain::refused(&loaded.inventory, "--drain").map_err(|why| vec![why])?;
    }
    Ok((loaded, suite))
}

fn start(home: &Home, request: &IsolationRequest, output: Output) -> Result<Started, Vec<String>> {
    let one = |why: String| vec![why];
    let given = request.sim_faults.len();
    let request = &as_in_its_run(home, request).map_err(one)?;
    // Those of a run have shown there what they show.
    let is_of_run = request.caused_by.is_some() || request.sim_faults.len() != given;
    let name = request.suite.clone().unwrap_or_default();
    let (loaded, suite) =
        load_files(home, request, &name, &request.inventory, request.reservation.as_deref())?;
    let mut inventory = loaded.inventory;
    check_faults(&request.sim_faults, &inventory).map_err(one)?;
    let of_run = nodes_of_run(home, request, &inventory).map_err(one)?;
    let range = request.nodes.clone().or_else(|| of_run.as_ref().map(|(_, nodes)| nodes.clone()));
    let nodes = inventory.select(range.as_deref(), request.exclude_nodes.as_deref()).map_err(one)?;
    if let Some((run, nodes)) = of_run.as_ref().filter(|_| nodes.len() < inventory.nodes.len()) {
        output.print(format_args!("nodes: {nodes}, those of run {run}; --nodes RANGE takes others"));
    }
    let found = match evidence_at_hand(home, request, &suite.name, &inventory, &nodes).map_err(one)? {
        AtHand::Nothing => None,
        AtHand::Evidence(mut found) => {
            let of_run = (found.run.as_str(), found.probe.as_ref());
            match same_hardware::keep(request, &inventory, of_run, &mut found.evidence) {
                Ok(()) => Some(found),
                Err(outcome) => return Ok(Started::Ended(outcome)),
            }
        }
        AtHand::Broken(text) => {
            eprint!("{text}");
            let code = exit_code::INCONCLUSIVE;
            return Ok(Started::Ended(IsolationOutcome { code, ..IsolationOutcome::default() }));
        }
    };
    let nodes = match &found {
        None => nodes,
        Some(found) => match unexplained_nodes(home, request, &inventory, found, nodes, output) {
            Ok(nodes) => nodes,
            Err(outcome) => return Ok(Started::Ended(outcome)),
        },
    };
    if nodes.len() < FEWEST {
        let more = if of_run.is_some() { "; --nodes RANGE adds others to those of the run" } else { "" };
        return Err(vec![format!(
            "at least {FEWEST} nodes are needed, so that some are left to compare with; selected: {}{more}",
            nodeset::fold(&nodes)
        )]);
    }
    let probes = Probes::choose(&suite, &inventory, request.case.as_deref()).map_err(one)?;
    let left_out = match request.dry_run {
        true => Vec::new(),
        false => match preflight::unfit(request, &mut inventory, &nodes) {
            Ok(left_out) => left_out,
            Err(outcome) => return Ok(Started::Ended(outcome)),
        },
    };
    let nodes: Vec<String> =
        nodes.into_iter().filter(|node| !left_out.iter().any(|left| left.node == *node)).collect();
    if nodes.len() < FEWEST {
        return Ok(Started::Ended(messages::too_few_are_fit(output, &inventory, &left_out, &nodes)));
    }
    let (fleet, groups) = fleet::number(&inventory, &nodes);
    let asked = IsolationScope {
        suite: name,
        inventory: request.inventory.clone(),
        case: probes.case.clone(),
        nodes,
        left_out,
        groups,
        budget: request.budget,
        seed: request.seed,
        sim_faults: request.sim_faults.clone(),
        reservation: request.reservation.clone(),
        brought_about_by: request.caused_by.clone(),
        unexplained: found.as_ref().filter(|found| found.has_failed).map(|found| found.run.clone()),
    };
    let mut isolation =
        Isolation::new(home, inventory, probes, fleet, asked, loaded.sources, request.ssh_fanout);
    if let Some(found) = found {
        isolation.known = found.evidence.lines;
        isolation.hung_once = found.hung_once;
    }
    isolation.name_left_out();
    isolation.baselines = loaded.baselines;
    isolation.output = output;
    messages::heading(&isolation);
    let cost_estimate = cost_estimate(&isolation.fleet);
    let first = isolation.first_round()?;
    let each_s = first.as_ref().map_or(0.0, |(_, each_s)| *each_s);
    messages::cost_estimate(output, &cost_estimate, each_s, request.budget);
    if request.dry_run {
        let code = exit_code::PASSED;
        return Ok(Started::Ended(IsolationOutcome { code, ..IsolationOutcome::default() }));
    }
    let asked_faults = if is_of_run { &[] } else { request.sim_faults.as_slice() };
    if let Some(code) = first.and_then(|(plan, _)| refused_rehearsal(&isolation, request, plan, asked_faults))
    {
        return Ok(Started::Ended(IsolationOutcome { code, ..IsolationOutcome::default() }));
    }
    Ok(Started::Rounds(Box::new(isolation)))
}

/// The exit code where a fault that was asked for cannot show in any round. Nodes that are known to be bad, or that the
/// probe has left out, need none.
fn refused_rehearsal(
    isolation: &Isolation,
    request: &IsolationRequest,
    plan: Plan,
    asked_faults: &[String],
) -> Option<i32> {
    let faults = planning::parse_faults(asked_faults).unwrap_or_default();
    let left_out = |fault: &NodeFault| isolation.asked.left_out.iter().any(|left| left.node == fault.node);
    let is_known =
        |fault: &NodeFault| left_out(fault) || isolation.known.iter().any(|line| line.node == fault.node);
    let faults: Vec<NodeFault> = faults.into_iter().filter(|fault| !is_known(fault)).collect();
    let rehearsal = Rehearsal {
        plans: &[plan],
        placeable_on: Some(&isolation.asked.nodes),
        is_probed: preflight::is_wanted(request, &isolation.inventory),
        asked_facts: &[],
        catalogue: &request.catalogue,
    };
    rehearsal.refused(&faults)
}

fn check_faults(texts: &[String], inventory: &Inventory) -> Result<(), String> {
    for text in texts {
        NodeFault::parse(text)
            .and_then(|fault| planning::check_fault(inventory, fault))
            .and_then(|()| refused_on_real(inventory))
            .map_err(|why| format!("--sim-fault: {why}"))?;
    }
    Ok(())
}

fn refused_on_real(inventory: &Inventory) -> Result<(), String> {
    match inventory.is_simulated() {
        true => Ok(()),
        false => Err(format!("needs a simulated cluster, `{}` is a real one", inventory.name)),
    }
}

/// The nodes to look among, without those that the evidence names; or how the isolation ends, where it explains all or
/// too few nodes are left.
fn unexplained_nodes(
    home: &Home,
    request: &IsolationRequest,
    inventory: &Inventory,
    found: &FoundEvidence,
    mut nodes: Vec<String>,
    output: Output,
) -> Result<Vec<String>, IsolationOutcome> {
    let evidence = &found.evidence;
    let all = nodes.len();
    let end = || {
        if let Some(asked) = &request.drain {
            let mut limits = Limits::new(inventory.nodes.len(), asked.at_most);
            limits.hung_once.clone_from(&found.hung_once);
            let drain = Drain {
                home,
                inventory,
                ssh_fanout: request.ssh_fanout,
                lines: &evidence.lines,
                run: &found.run,
                simulated: inventory.is_simulated(),
                limits,
                without_asking: asked.yes,
                command: asked.command.clone(),
                output,
            };
            drain::drain(&drain);
        }
        messages::sum(output, evidence.lines.len(), 0, all, 0.0, Some(exit_code::FAILED));
        let culprits = evidence.lines.clone();
        IsolationOutcome::without_rounds(exit_code::FAILED, culprits, inventory.is_simulated())
    };
    if evidence.explains_all {
        messages::evidence(output, inventory, &found.run, evidence);
        return Err(end());
    }
    if !found.has_failed && evidence.lines.is_empty() {
        output.print(format_args!("evidence: none, run {} has no failure on these nodes", found.run));
    } else {
        output.print(format_args!(
            "evidence: culprits that run {} names: {}; they do not explain the whole failure",
            found.run,
            evidence.lines.len()
        ));
    }
    messages::hints(output, &evidence.hints);
    // What is known to be bad is no part of the search.
    let known: BTreeSet<&str> = evidence.lines.iter().map(|line| line.node.as_str()).collect();
    nodes.retain(|node| !known.contains(node.as_str()));
    if nodes.len() < FEWEST && !evidence.lines.is_empty() {
        messages::evidence_alone(output, inventory, evidence, nodes.len());
        return Err(end());
    }
    Ok(nodes)
}

/// What the runs before this one show.
enum AtHand {
    Nothing,
    Evidence(Box<FoundEvidence>),
    /// Its launcher, image or tool was broken: nothing that is run now would show more.
    Broken(String),
}

struct FoundEvidence {
    run: String,
    /// It failed on nodes that are asked for.
    has_failed: bool,
    evidence: Evidence,
    /// Before its jobs.
    probe: Option<Probe>,
    /// Nodes that are named for one job alone that came to its time limit.
    hung_once: BTreeSet<String>,
}

/// Where a run is named and no suite: suite, inventory and simulated faults are those of the run.
fn as_in_its_run(home: &Home, request: &IsolationRequest) -> Result<IsolationRequest, String> {
    let mut request = request.clone();
    let (None, Some(word)) = (&request.suite, &request.run) else { return Ok(request) };
    let plan = stored::open_own(home, word).map_err(|why| format!("--run: {why}"))?.plan;
    let [suite] = plan.suites.as_slice() else {
        return Err(format!("--run: `{word}` has {} suites; add --suite NAME", plan.suites.len()));
    };
    request.suite = Some(suite.clone());
    let default = RunOptions::default();
    // A path to the same inventory stays: by its name alone it may not be found.
    let is_its_own =
        Path::new(&request.inventory).file_stem().is_some_and(|stem| stem == plan.inventory.as_str());
    if !request.is_inventory_typed && !is_its_own {
        request.inventory = plan.inventory.clone();
    }
    if plan.simulated && request.sim_faults.is_empty() && request.seed == default.seed {
        (request.sim_faults, request.seed) = (plan.sim_faults.clone(), plan.seed);
    }
    Ok(request)
}

/// The id and the nodes of the run that is named: the search takes no node that the run was not to touch.
fn nodes_of_run(
    home: &Home,
    request: &IsolationRequest,
    inventory: &Inventory,
) -> Result<Option<(String, String)>, String> {
    let (None, Some(word)) = (&request.nodes, &request.run) else { return Ok(None) };
    let plan = stored::open_own(home, word).map_err(|why| format!("--run: {why}"))?.plan;
    let is_its_own = plan.inventory == inventory.name && !plan.nodes.is_empty();
    Ok(is_its_own.then(|| (plan.run_id.clone(), nodeset::fold(&plan.nodes))))
}

/// The newest run of that suite on that cluster, and what it names by itself. No run, no evidence.
fn evidence_at_hand(
    home: &Home,
    request: &IsolationRequest,
    suite: &str,
    inventory: &Inventory,
    nodes: &[String],
) -> Result<AtHand, String> {
    if request.no_evidence {
        return Ok(AtHand::Nothing);
    }
    let stored = match &request.run {
        Some(word) => Some(stored::open_own(home, word).map_err(|why| format!("--run: {why}"))?),
        None => home.runs().iter().rev().find_map(|folder| {
            if store::is_foreign(folder) {
                return None;
            }
            let stored = Stored::open(folder).ok()?;
            let plan = &stored.plan;
            let fits = plan.suites.iter().any(|name| name == suite) && plan.inventory == inventory.name;
            let is_round = folder.join(RECORD).exists();
            (fits && !is_round && folder.join("summary.json").exists()).then_some(stored)
        }),
    };
    let Some(stored) = stored else { return Ok(AtHand::Nothing) };
    if let Err(why) = run_cluster::check_nodes(stored.folder(), inventory) {
        return Ok(AtHand::Broken(format!(
            "error: not isolated: {why}; --no-evidence begins without that run\n"
        )));
    }
    let path = stored.folder().join("summary.json");
    let summary: model::artefact::Summary = store::read_json(&path).map_err(|error| error.to_string())?;
    if let Some(failure) = &summary.common_failure {
        let headline = report::headline(failure);
        let words = report::last_lines(&failure.words);
        return Ok(AtHand::Broken(format!(
            "error: not isolated: in the newest run of `{suite}` {headline}; no node is to blame\n{words}check: {}\n\
             Run the suite again once that is done; --no-evidence begins without it. run folder: runs/{}/\n",
            failure.check, summary.run_id
        )));
    }
    let seen = observations::read(&stored, &summary)?;
    let mut found = evidence::from_observations(&seen);
    found.lines.retain(|line| nodes.contains(&line.node));
    found.explains_all &= !found.lines.is_empty();
    let hung_once = found.lines.iter().filter(|line| limits::is_hang(line)).map(|line| line.node.clone());
    let hung_once = hung_once.filter(|node| count_hangs(&seen, node) < 2).collect();
    let probe = seen.probe;
    let counts = &summary.counts;
    let has_failed = counts.fail + counts.unexpected_pass + counts.error > 0
        && stored.plan.nodes.iter().any(|node| nodes.contains(node));
    let run = summary.run_id;
    Ok(AtHand::Evidence(Box::new(FoundEvidence { run, has_failed, evidence: found, probe, hung_once })))
}

/// Jobs of the node that came to no end.
fn count_hangs(seen: &RunObservations, node: &String) -> usize {
    let hung = |job: &&JobOutcome| {
        let is_hang = job.bad.as_ref().is_some_and(|bad| HANGS.contains(&bad.cause.as_str()));
        is_hang && job.nodes.contains(node)
    };
    seen.jobs.iter().filter(hung).count()
}
