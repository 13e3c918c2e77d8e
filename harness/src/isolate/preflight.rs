//! The probe before an isolation: nodes that cannot pass are named and left out, instead of making every set slow.

use super::request::{IsolationOutcome, IsolationRequest};
use crate::session::preflight::{self, ProbeScope, Stopped};
use crate::session::{RunOptions, gpu_request, no_answer, report_error};
use cluster::{interrupt, probe};
use config::inventory::{GresReport, Inventory};
use model::artefact::{LeftOut, Probe};
use model::exit_code;

fn options(request: &IsolationRequest) -> RunOptions {
    RunOptions {
        no_probe: request.no_probe,
        probe: request.probe,
        allow_busy: request.allow_busy,
        ..RunOptions::quiet(request.ssh_fanout)
    }
}

/// Whether nodes are probed before the first round.
pub(crate) fn is_wanted(request: &IsolationRequest, inventory: &Inventory) -> bool {
    preflight::is_wanted(inventory, &options(request))
}

/// The nodes that cannot pass; or how the isolation ends without a round. The inventory takes the names of their devices
/// where it has none, and how jobs ask Slurm for GPUs where it leaves that open.
pub(crate) fn unfit(
    request: &IsolationRequest,
    inventory: &mut Inventory,
    nodes: &[String],
) -> Result<Vec<LeftOut>, IsolationOutcome> {
    let end = |code| IsolationOutcome { code, ..IsolationOutcome::default() };
    let stopped = |stopped| match stopped {
        Stopped::Interrupted(code) => interrupted(code),
        Stopped::Machinery(why) | Stopped::NoAnswer(why) => end(report_error(&why)),
    };
    let Some(made) = probed(request, inventory, nodes).map_err(stopped)? else {
        let asked = preflight::ask_gpu_request_apart(&scope(request, nodes), inventory, &options(request));
        if let Some(gpus) = asked.map_err(stopped)? {
            inventory.settle_gpu_request(gpus);
        }
        return Ok(Vec::new());
    };
    if let Some(text) = no_answer::text(&made, inventory) {
        no_answer::print(&text);
        return Err(end(exit_code::INCONCLUSIVE));
    }
    eprint!("{}", probe::remarks(&made));
    if let Some(nics) = plan::reported_names(inventory, &made) {
        inventory.instance.take_device_names(&nics);
    }
    if let Some(gpus) = gpu_request::settled(inventory, &GresReport::from_probe(&made), false) {
        inventory.settle_gpu_request(gpus);
    }
    Ok(preflight::unfit(&made, inventory))
}

/// What nodes report now, where they are asked at all.
pub(crate) fn probed(
    request: &IsolationRequest,
    inventory: &Inventory,
    nodes: &[String],
) -> Result<Option<Probe>, Stopped> {
    let options = options(request);
    if !preflight::is_wanted(inventory, &options) {
        return Ok(None);
    }
    interrupt::watch();
    preflight::probe_apart(&scope(request, nodes), inventory, &options).map(Some)
}

fn scope<'a>(request: &'a IsolationRequest, nodes: &'a [String]) -> ProbeScope<'a> {
    ProbeScope {
        name: format!("{}.probe", store::new_run_id("isolate")),
        nodes,
        seed: request.seed,
        sim_faults: &request.sim_faults,
    }
}

/// How an isolation ends that was interrupted before anything was launched.
pub(crate) fn interrupted(code: i32) -> IsolationOutcome {
    eprintln!("interrupted while nodes were probed: nothing was launched");
    IsolationOutcome { code, ..IsolationOutcome::default() }
}
