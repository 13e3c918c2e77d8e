//! New nodes, from the preflight to all at once, each stage a run of its own; and the certificate of what became of
//! them. The rules are in `verdict::accept`.

mod acceptance_session;
pub(crate) mod certificate;
pub(crate) mod certificate_files;
pub(crate) mod contexts;
mod cost_estimate;
mod delivery;
pub(crate) mod hardware_numbers;
#[cfg(test)]
pub(crate) mod message_tests;
mod messages;
mod partners;
mod placement;
mod rejection_line;
mod repeats;
pub(crate) mod request;
mod soak;
mod soak_windows;
mod stages;
mod suspects;
mod vendor;

use crate::library::Library;
use crate::own_recipes;
use crate::session::output::Output;
use crate::session::rehearsal::Rehearsal;
use crate::session::{load, planning, print_errors, report_error};
use acceptance_session::AcceptanceSession;
use cluster::interrupt;
use cluster::reach::openssh::FANOUT;
use config::baseline::Baselines;
use config::hardware_limits;
use config::inventory::Inventory;
use config::suite::Suite;
use delivery::{Delivery, DeliveryRequest, Record, Stopped};
use model::artefact::acceptance::Acceptance;
use model::artefact::{Format, Plan};
use model::exit_code;
use model::fault::NodeFault;
use recipes::catalogue::Catalogue;
use request::AcceptRequest;
use std::fs;
use std::path::Path;
use store::{self, Home};
use verdict::accept::stages::{Stage, divide};
use verdict::isolate::round::Probes;

/// Gives the exit code, and the certificate where the delivery has come to its end.
pub(crate) fn accept(home: &Home, request: &AcceptRequest, output: Output) -> (i32, Option<Acceptance>) {
    let mut accepting = match begin(home, request) {
        Ok(accepting) => accepting,
        Err(diagnostics) => return (print_errors(&diagnostics), None),
    };
    accepting.output = output;
    let (asked, folder) = (&accepting.delivery.record.asked, accepting.delivery.folder.clone());
    let is_simulated = accepting.delivery.inventory.is_simulated();
    print(output, &[messages::heading(&asked.nodes, &asked.suite, &asked.vouched, is_simulated)]);
    print(output, &[messages::delivery(&folder)]);
    print(output, &messages::cost_estimate(&cost_estimate::estimate(&accepting), asked.budget));
    if request.dry_run {
        return (exit_code::PASSED, None);
    }
    if let Some(code) = refused_rehearsal(&accepting) {
        return (code, None);
    }
    interrupt::watch();
    let code = match go_through(home, &mut accepting) {
        Ok((code, acceptance)) => return (code, Some(acceptance)),
        Err(Stopped::Interrupted(code)) => {
            eprintln!("{}", messages::interrupted(&folder));
            code
        }
        Err(Stopped::Budget(needed)) => report_error(&messages::over_budget(needed)),
        Err(Stopped::Machinery(why)) => {
            let code = report_error(&why);
            eprintln!("{}", messages::continues(&folder));
            code
        }
    };
    (code, None)
}

fn print(output: Output, lines: &[String]) {
    lines.iter().for_each(|line| output.print(line));
}

/// Of the stage that was the last.
fn print_stage(accepting: &AcceptanceSession) {
    if let Some(stage) = accepting.stages.last() {
        let lines = messages::stage(stage, &accepting.schedule, accepting.delivery.node_hours());
        print(accepting.output, &lines);
    }
}

fn go_through(home: &Home, accepting: &mut AcceptanceSession) -> Result<(i32, Acceptance), Stopped> {
    accepting.delivery.write_record()?;
    accepting.go(&mut print_stage)?;
    if accepting.delivery.record.asked.strict {
        certificate::leave_unchecked_open(accepting);
    }
    let acceptance = certificate::new(accepting);
    certificate::write(accepting, &acceptance)?;
    let copied = match accepting.delivery.record.asked.sanitise {
        true => Some(vendor::write(home, &accepting.delivery)?),
        false => None,
    };
    let folder = &accepting.delivery.folder;
    let vendor = folder.join(certificate::VENDOR);
    let copied = copied.map(|files| (files, vendor.as_path()));
    let lines = messages::conclusion(&acceptance, &folder.join(certificate::MARKDOWN), copied);
    print(accepting.output, &lines);
    Ok((messages::outcome_code(&acceptance), acceptance))
}

fn begin(home: &Home, request: &AcceptRequest) -> Result<AcceptanceSession, Vec<String>> {
    let library = Library::for_project(home.path());
    let catalogue =
        own_recipes::load(Some(&library), None).map_err(|diagnostics| planning::to_lines(&diagnostics))?;
    match &request.resume {
        Some(folder) => begin_resumed(home, request, folder, &catalogue),
        None => begin_new(home, request, &catalogue),
    }
}

fn begin_resumed(
    home: &Home,
    request: &AcceptRequest,
    folder: &Path,
    catalogue: &Catalogue,
) -> Result<AcceptanceSession, Vec<String>> {
    let record = delivery::read_record(folder).map_err(|why| vec![format!("--resume: {why}")])?;
    let asked = DeliveryRequest {
        // More may be spent than was thought, and a copy be wanted afterwards.
        budget: request.budget.or(record.asked.budget),
        sanitise: request.sanitise || record.asked.sanitise,
        strict: request.strict || record.asked.strict,
        ..record.asked
    };
    let (suite, inventory) = (asked.suite.clone(), asked.inventory.clone());
    assemble(home, request, catalogue, folder, &suite, &inventory, |_| Ok(Record { asked, ..record }))
}

/// The suite of the instance itself; where it has none, that of the one that it is like.
fn default_suite(library: &Library, instance: &str, like: Option<&str>) -> String {
    let own = format!("acceptance-{instance}");
    match like {
        Some(like) if library.find("suites", &own).is_none() => format!("acceptance-{like}"),
        _ => own,
    }
}

fn begin_new(
    home: &Home,
    request: &AcceptRequest,
    catalogue: &Catalogue,
) -> Result<AcceptanceSession, Vec<String>> {
    let one = |why: String| vec![why];
    let suite = match &request.suite {
        Some(suite) => suite.clone(),
        None => {
            let loaded = load::load(home, &[], &request.inventory, None, catalogue)?;
            let instance = loaded.inventory.instance;
            default_suite(&Library::for_project(home.path()), &instance.name, instance.like.as_deref())
        }
    };
    let stem = Path::new(&suite).file_stem().and_then(|stem| stem.to_str()).unwrap_or("suite");
    let id = store::new_run_id(&format!("accept-{stem}"));
    let folder = request.out.clone().unwrap_or_else(|| home.path().join("deliveries").join(&id));
    let is_taken = fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_some());
    if is_taken {
        return Err(one(messages::folder_taken(&folder)));
    }
    assemble(home, request, catalogue, &folder, &suite, &request.inventory, |inventory| {
        let nodes = inventory.select(request.nodes.as_deref(), None).map_err(one)?;
        let faults = request.sim_faults.iter().map(|text| {
            let fault = NodeFault::parse(text).and_then(|fault| planning::check_fault(inventory, fault));
            fault.map_err(|why| format!("--sim-fault: {why}"))
        });
        faults.collect::<Result<Vec<()>, String>>().map_err(one)?;
        if !inventory.is_simulated() && !request.sim_faults.is_empty() {
            return Err(one(messages::fault_of_real_cluster(&inventory.name)));
        }
        let partners = partners::choose(home, inventory, &nodes, request.partners.as_deref()).map_err(one)?;
        let asked = DeliveryRequest {
            suite: suite.clone(),
            inventory: request.inventory.clone(),
            nodes,
            partners: partners.nodes,
            vouched: partners.vouched,
            vouching: partners.vouching,
            budget: request.budget,
            seed: request.seed,
            sim_faults: request.sim_faults.clone(),
            allow_busy: request.allow_busy,
            sanitise: request.sanitise,
            strict: request.strict,
            soak_s: request.soak_s,
        };
        Ok(Record { format: Format, delivery: id.clone(), asked })
    })
}

/// Everything read and checked, and nothing launched.
fn assemble(
    home: &Home,
    request: &AcceptRequest,
    catalogue: &Catalogue,
    folder: &Path,
    suite: &str,
    inventory: &str,
    record: impl FnOnce(&Inventory) -> Result<Record, Vec<String>>,
) -> Result<AcceptanceSession, Vec<String>> {
    let loaded = load::load(home, &[suite.to_owned()], inventory, None, catalogue)?;
    let inventory = loaded.inventory;
    let read = loaded.suites.first().ok_or_else(|| vec!["no suite".to_owned()])?;
    let mut diagnostics: Vec<String> =
        hardware_limits::lint(read, &inventory.instance, loaded.baselines.as_ref())
            .iter()
            .map(ToString::to_string)
            .collect();
    let stages = divide(read).map_err(|more| diagnostics.extend(more)).unwrap_or_default();
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    let record = record(&inventory)?;
    let stages = soak_windows::resize(stages, record.asked.soak_s).map_err(|why| vec![why])?;
    let probes = Probes::choose(read, &inventory, None).ok();
    let delivery = Delivery::new(folder, record, inventory, request.ssh_fanout);
    let accepting =
        AcceptanceSession::new(delivery, stages, probes, loaded.baselines, loaded.sources, catalogue.clone());
    // Errors of a plan are reported before anything is launched.
    first_plans(&accepting)?;
    Ok(accepting)
}

/// A delivery of all nodes of an inventory that is read already, compared with each other and without a soak; nothing of
/// it is printed.
pub(crate) fn accept_all(
    folder: &Path,
    suite: &Suite,
    inventory: Inventory,
    baselines: &Baselines,
    seed: u64,
) -> Result<Acceptance, String> {
    let asked = DeliveryRequest {
        suite: suite.name.clone(),
        inventory: inventory.name.clone(),
        nodes: inventory.nodes.clone(),
        partners: Vec::new(),
        vouched: "each other".to_owned(),
        vouching: None,
        budget: None,
        seed,
        sim_faults: Vec::new(),
        allow_busy: true,
        sanitise: false,
        strict: false,
        soak_s: Some(0),
    };
    let record = Record { format: Format, delivery: format!("accept-{seed}"), asked };
    let stages = divide(suite).map_err(|diagnostics| diagnostics.join("; "))?;
    let stages = soak_windows::resize(stages, record.asked.soak_s)?;
    let probes = Probes::choose(suite, &inventory, None).ok();
    let delivery = Delivery::new(folder, record, inventory, FANOUT as u32);
    let baselines = Some(baselines.clone());
    let catalogue = Catalogue::built_in();
    let mut accepting = AcceptanceSession::new(delivery, stages, probes, baselines, Vec::new(), catalogue);
    match accepting.go(&mut |_| {}) {
        Ok(()) => Ok(certificate::new(&accepting)),
        Err(Stopped::Machinery(why)) => Err(why),
        Err(Stopped::Interrupted(_) | Stopped::Budget(_)) => Err("interrupted".to_owned()),
    }
}

/// Of each stage that runs jobs.
fn first_plans(accepting: &AcceptanceSession) -> Result<Vec<Plan>, Vec<String>> {
    let plan = |(stage, suite): (&Stage, &Suite)| {
        let (suite, nodes, sets) = accepting.first_of(*stage, suite);
        accepting.plan(&suite, "none", nodes, sets)
    };
    accepting.suites.iter().map(plan).collect()
}

/// The exit code where no stage can detect a fault that was asked for.
fn refused_rehearsal(accepting: &AcceptanceSession) -> Option<i32> {
    let asked = &accepting.delivery.record.asked;
    let plans = first_plans(accepting).unwrap_or_default();
    let bounds = accepting.suites.values().flat_map(|suite| &suite.probe);
    let bounds = bounds.chain(&accepting.delivery.inventory.probe).map(|bound| &bound.fact);
    let alike = accepting.suites.values().flat_map(|suite| &suite.alike);
    let asked_facts: Vec<String> = bounds.chain(alike).cloned().collect();
    let rehearsal = Rehearsal {
        plans: &plans,
        placeable_on: Some(&[asked.nodes.as_slice(), asked.partners.as_slice()].concat()),
        is_probed: true,
        asked_facts: &asked_facts,
        catalogue: &accepting.catalogue,
    };
    rehearsal.refused(&planning::parse_faults(&asked.sim_faults).unwrap_or_default())
}
