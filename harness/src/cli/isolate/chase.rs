//! One isolation from what was asked to what is told of it: the evidence at hand, then rounds. Which runs a round has is
//! decided in `verdict::isolate`.

use super::super::{load, run_suites, stored};
use super::drained::Drain;
use super::rounds::{self, Isolation, Stopped};
use super::voice::{Voice, say};
use super::{IsolateArgs, drained, fleet, fleetwide, seen, told};
use crate::report;
use base::nodeset;
use cluster::drain::limits::{self, Limits};
use cluster::interrupt;
use config::inventory::Inventory;
use model::artefact::JobOutcome;
use model::exit_code;
use model::fault::NodeFault;
use std::collections::BTreeSet;
use store::{self, Home, Stored};
use verdict::isolate::evidence::{self, Evidence, Line};
use verdict::isolate::outlook::outlook;
use verdict::isolate::round::{Asked, Probes};
use verdict::isolate::seen::Seen;
use verdict::judge::common_failure::HANGS;

/// Fewer cannot be told apart: nothing would be left to compare with.
pub(super) const FEWEST: usize = 4;

/// What became of it.
#[derive(Debug, Default)]
pub(super) struct Chased {
    pub code: i32,
    pub culprits: Vec<Line>,
    /// The ids of its rounds.
    pub rounds: Vec<String>,
    pub node_hours: f64,
}

/// `by`: the run that brought it about.
pub(super) fn chase(
    home: &Home,
    args: &IsolateArgs,
    voice: Voice,
    by: Option<&str>,
) -> Result<Chased, Vec<String>> {
    let mut isolation = match begin(home, args, voice, by)? {
        Begun::Told(chased) => return Ok(chased),
        Begun::Rounds(isolation) => isolation,
    };
    interrupt::watch();
    let (code, culprits) = match isolation.go() {
        Ok(conclusion) => {
            let lines = told::culprits(&isolation, &conclusion);
            if args.drain {
                let mut limits = Limits::of(isolation.inventory.nodes.len(), args.drain_at_most);
                limits.hung_once.clone_from(&isolation.hung_once);
                // A resumed isolation runs nothing again, but does not know what the evidence before it had named.
                let command = match isolation.known.is_empty() {
                    true => resumed_command(isolation.first(), args.drain_at_most),
                    false => own_command(),
                };
                let drain = Drain {
                    inventory: &isolation.inventory,
                    lines: &lines,
                    run: isolation.first(),
                    simulated: isolation.simulated,
                    limits,
                    command,
                };
                drained::drain(&drain, args);
            }
            let all = fleetwide::told(&isolation, isolation.baselines.as_ref());
            (told::end(&isolation, &conclusion, lines.len(), &all), lines)
        }
        Err(Stopped::Interrupted(code)) => {
            eprintln!("interrupted: `harness isolate --resume {}` goes on", isolation.first());
            (code, isolation.known.clone())
        }
        Err(Stopped::Budget(needed)) => (told::budget(&isolation, needed), isolation.known.clone()),
        Err(Stopped::Broken(text)) => {
            eprint!("{text}");
            (exit_code::INCONCLUSIVE, Vec::new())
        }
        Err(Stopped::Machinery(why)) => (run_suites::machinery(&why), isolation.known.clone()),
    };
    let node_hours = isolation.node_hours();
    Ok(Chased { code, culprits, rounds: isolation.ids.clone(), node_hours })
}

/// This call again, with the consent that it lacked.
fn own_command() -> String {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words = shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "));
    format!("`harness {words} --yes`")
}

fn resumed_command(first: &str, at_most: Option<u32>) -> String {
    let at_most = at_most.map(|n| format!(" --drain-at-most {n}")).unwrap_or_default();
    format!("`harness isolate --resume {first} --drain{at_most} --yes`")
}

enum Begun {
    Told(Chased),
    Rounds(Box<Isolation>),
}

fn begin(home: &Home, args: &IsolateArgs, voice: Voice, by: Option<&str>) -> Result<Begun, Vec<String>> {
    let resumed = match &args.resume {
        Some(word) => Some(rounds::records(home, word).map_err(|why| vec![format!("--resume: {why}")])?),
        None => None,
    };
    let first = resumed.as_ref().and_then(|records| records.first()).map(|(_, record)| &record.asked);
    let suite = first.map_or_else(|| args.suite.clone().unwrap_or_default(), |asked| asked.suite.clone());
    let named = first.map_or(&args.inventory, |asked| &asked.inventory);
    let loaded = load::load(home, std::slice::from_ref(&suite), named, None)?;
    let mut inventory = loaded.inventory;
    let reservation = first.map_or(&args.reservation, |asked| &asked.reservation);
    if let Some(name) = reservation {
        inventory.reserve(name).map_err(|why| vec![format!("--reservation: {why}")])?;
    }
    let suite_read = loaded.suites.first().ok_or_else(|| vec!["no suite".to_owned()])?;
    let one = |why: String| vec![why];
    if args.drain {
        drained::refused(&inventory, "--drain").map_err(one)?;
    }
    if let (Some(records), Some(asked)) = (resumed.as_ref(), first) {
        let probes = Probes::of(suite_read, &inventory, Some(&asked.case)).map_err(one)?;
        let fleet = records
            .first()
            .map(|(_, record)| record.fleet.clone())
            .unwrap_or_else(|| fleet::flat(&inventory, 0));
        let sources = loaded.sources;
        let mut isolation =
            Isolation::new(home, inventory, probes, fleet, asked.clone(), sources, args.ssh_fanout);
        isolation.baselines = loaded.baselines;
        isolation.take_up(records).map_err(|why| vec![format!("--resume: {why}")])?;
        told::heading(&isolation);
        return Ok(Begun::Rounds(Box::new(isolation)));
    }
    for text in &args.sim_faults {
        NodeFault::parse(text)
            .and_then(|fault| run_suites::check_fault(&inventory, fault))
            .and_then(|()| refused_on_real(&inventory))
            .map_err(|why| vec![format!("--sim-fault: {why}")])?;
    }
    let mut nodes = inventory.select(args.nodes.as_deref(), args.exclude_nodes.as_deref()).map_err(one)?;
    let seen = match evidence_at_hand(home, args, &suite_read.name, &inventory, &nodes).map_err(one)? {
        AtHand::Nothing => None,
        AtHand::Evidence(id, found, hung_once) => Some((id, found, hung_once)),
        AtHand::Broken(text) => {
            eprint!("{text}");
            return Ok(Begun::Told(Chased { code: exit_code::INCONCLUSIVE, ..Chased::default() }));
        }
    };
    let mut limits = Limits::of(inventory.nodes.len(), args.drain_at_most);
    if let Some((_, _, hung_once)) = &seen {
        limits.hung_once.clone_from(hung_once);
    }
    let drain_culprits = |id: &str, found: &Evidence| {
        if args.drain {
            let drain = Drain {
                inventory: &inventory,
                lines: &found.lines,
                run: id,
                simulated: inventory.is_simulated(),
                limits: limits.clone(),
                command: own_command(),
            };
            drained::drain(&drain, args);
        }
    };
    if let Some((id, found, _)) = &seen {
        if found.explains_all {
            told::evidence(voice, &inventory, id, found);
            drain_culprits(id, found);
            told::sum(voice, found.lines.len(), 0, nodes.len(), 0.0);
            let culprits = found.lines.clone();
            return Ok(Begun::Told(Chased { code: exit_code::FAILED, culprits, ..Chased::default() }));
        }
        say!(voice, "evidence: run {id} names {} by itself, and that is not all", found.lines.len());
        told::hints(voice, &found.hints);
        // What is known to be bad is no part of the search.
        let known: BTreeSet<&str> = found.lines.iter().map(|line| line.node.as_str()).collect();
        let all = nodes.len();
        nodes.retain(|node| !known.contains(node.as_str()));
        if nodes.len() < FEWEST && !found.lines.is_empty() {
            told::evidence_alone(voice, found, nodes.len());
            drain_culprits(id, found);
            told::sum(voice, found.lines.len(), 0, all, 0.0);
            let culprits = found.lines.clone();
            return Ok(Begun::Told(Chased { code: exit_code::FAILED, culprits, ..Chased::default() }));
        }
    }
    if nodes.len() < FEWEST {
        return Err(vec![format!(
            "{FEWEST} nodes at least are needed, so that something is left to compare with, there are: {}",
            nodeset::fold(&nodes)
        )]);
    }
    let probes = Probes::of(suite_read, &inventory, args.case.as_deref()).map_err(one)?;
    let (fleet, groups) = fleet::of(&inventory, &nodes);
    let asked = Asked {
        suite,
        inventory: args.inventory.clone(),
        case: probes.case.clone(),
        nodes,
        groups,
        budget: args.budget,
        seed: args.seed,
        sim_faults: args.sim_faults.clone(),
        reservation: args.reservation.clone(),
        brought_about_by: by.map(str::to_owned),
    };
    let known = seen.map(|(_, found, _)| found.lines).unwrap_or_default();
    let mut isolation =
        Isolation::new(home, inventory, probes, fleet, asked, loaded.sources, args.ssh_fanout);
    isolation.known = known;
    isolation.hung_once = limits.hung_once;
    isolation.baselines = loaded.baselines;
    isolation.voice = voice;
    told::heading(&isolation);
    let outlook = outlook(&isolation.fleet);
    let each_s = isolation.seconds_each()?;
    told::outlook(voice, &outlook, each_s, args.budget);
    if args.dry_run {
        return Ok(Begun::Told(Chased { code: exit_code::PASSED, ..Chased::default() }));
    }
    Ok(Begun::Rounds(Box::new(isolation)))
}

/// What the runs before this say.
enum AtHand {
    Nothing,
    /// The run, what it names, and the nodes that one job alone speaks against, by its time limit.
    Evidence(String, Evidence, BTreeSet<String>),
    /// Its launcher, image or tool was broken: nothing that is run now would tell more.
    Broken(String),
}

/// The newest run of that suite on that cluster, and what it names by itself. No run, no evidence.
fn evidence_at_hand(
    home: &Home,
    args: &IsolateArgs,
    suite: &str,
    inventory: &Inventory,
    nodes: &[String],
) -> Result<AtHand, String> {
    if args.no_evidence {
        return Ok(AtHand::Nothing);
    }
    let stored = match &args.run {
        Some(word) => Some(stored::open_own(home, word).map_err(|why| format!("--run: {why}"))?),
        None => home.runs().iter().rev().find_map(|folder| {
            if store::is_foreign(folder) {
                return None;
            }
            let stored = Stored::open(folder).ok()?;
            let plan = &stored.plan;
            let fits = plan.suites.iter().any(|name| name == suite) && plan.inventory == inventory.name;
            let is_round = folder.join(rounds::RECORD).exists();
            (fits && !is_round && folder.join("summary.json").exists()).then_some(stored)
        }),
    };
    let Some(stored) = stored else { return Ok(AtHand::Nothing) };
    let path = stored.folder().join("summary.json");
    let summary: model::artefact::Summary = store::read_json(&path).map_err(|error| error.to_string())?;
    if let Some(failure) = &summary.common_failure {
        let headline = report::headline(failure);
        let words = report::last_words(&failure.words);
        return Ok(AtHand::Broken(format!(
            "error: not isolated: in the newest run of `{suite}` {headline}; no node is to be found\n{words}check: {}\n\
             Run the suite again once that is done; --no-evidence begins without it. run folder: runs/{}/\n",
            failure.check, summary.run_id
        )));
    }
    let seen = seen::of(&stored, &summary)?;
    let mut found = evidence::of_seen(&seen);
    found.lines.retain(|line| nodes.contains(&line.node));
    found.explains_all &= !found.lines.is_empty();
    let hung_once = found.lines.iter().filter(|line| limits::is_hang(line)).map(|line| line.node.clone());
    let hung_once = hung_once.filter(|node| hangs_of(&seen, node) < 2).collect();
    Ok(AtHand::Evidence(summary.run_id, found, hung_once))
}

/// Jobs of the node that came to no end.
fn hangs_of(seen: &Seen, node: &String) -> usize {
    let hung = |job: &&JobOutcome| {
        let is_hang = job.bad.as_ref().is_some_and(|bad| HANGS.contains(&bad.cause.as_str()));
        is_hang && job.nodes.contains(node)
    };
    seen.jobs.iter().filter(hung).count()
}

fn refused_on_real(inventory: &Inventory) -> Result<(), String> {
    match inventory.is_simulated() {
        true => Ok(()),
        false => Err(format!(
            "faults exist on a simulated cluster only, and this is a real one: {}",
            inventory.name
        )),
    }
}
