//! Before anything is launched: the nodes of a plan are probed, and those that cannot pass are left out of it by name.
//! How nodes are probed, and which cannot pass, is `probe`'s business; what a plan without them is, `plan`'s.

use super::execution::{new_runtime, reached_by};
use super::options::ReportedFacts;
use super::planning::{Replanning, make_plan_as, parse_faults};
use super::reached::{ReachScope, Reached, redactor, through_slurm};
use super::{RunOptions, gpu_request, no_answer};
use base::nodeset;
use base::text::show;
use cluster::probe::{self, NotMade, Probing, asked_to_end};
use cluster::reach::Reach;
use cluster::run::Clock;
use config::inventory::{GresReport, Inventory, Kind};
use job::profile::NsysVersion;
use job::script::GpuRequest;
use model::artefact::{LeftOut, Plan, Probe, Value, WorkloadFacts};
use sim::SimulatedReach;
use std::collections::BTreeMap;
use store::{self, Home};

pub(crate) enum Stopped {
    /// By a signal, with its exit code.
    Interrupted(i32),
    Machinery(String),
    /// No node answered: what is broken lies between here and the nodes. The message for it, in a few lines.
    NoAnswer(String),
}

/// Whether nodes are asked at all. A simulated cluster is only where that is wanted: its runs are what they are by seed.
pub(crate) fn is_wanted(inventory: &Inventory, options: &RunOptions) -> bool {
    match inventory.kind {
        Kind::Real => !options.no_probe,
        Kind::Simulated => options.probe,
    }
}

/// What comes of a preflight.
pub(crate) struct Checked {
    /// On the nodes that may pass.
    pub plan: Plan,
    /// What all nodes reported.
    pub probe: Probe,
    /// What the plan was made with that only the nodes report.
    pub reported: ReportedFacts,
}

/// The plan on the nodes that may pass. `reached` is how a real inventory's are reached; `refused` are nodes that take no
/// part in any case.
pub(crate) fn before(
    home: &Home,
    plan: Plan,
    inventory: &Inventory,
    reached: Option<&Reached>,
    refused: Vec<LeftOut>,
    options: &RunOptions,
    replanning: &Replanning<'_>,
) -> Result<Checked, Stopped> {
    let scope = ProbeScope::from_plan(&plan);
    let made = probe_nodes(&scope, inventory, reached, options)?;
    if let Some(text) = no_answer::text(&made, inventory) {
        return Err(Stopped::NoAnswer(text));
    }
    if !options.libtest.quiet {
        eprint!("{}", probe::remarks(&made));
    }
    let mut unfit = unfit(&made, inventory);
    unfit.retain(|left| !refused.iter().any(|before| before.node == left.node));
    let left_out = [refused, unfit].concat();
    let asks_for_evidence = plan::asks_for_evidence(&plan);
    let is_absent = inventory.nsys_version.is_none() && (has_profiled_skip(&plan) || asks_for_evidence);
    let nsys_version = is_absent.then(|| nsys_of(&made)).flatten();
    let reported = ReportedFacts {
        nsys_version,
        nics: plan::reported_names(inventory, &made),
        gpus: gpu_request::settled(inventory, &GresReport::from_probe(&made), options.libtest.quiet),
        evidence: asks_for_evidence.then(|| plan::evidence_lacks(&made, inventory)),
        programs: if has_node_tools(&plan) { plan::node_programs(&made) } else { BTreeMap::new() },
    };
    let version = nsys_version.filter(|_| has_profiled_skip(&plan)).map(|version| {
        format!("profiled with nsys {version}, which the nodes report; the inventory has no `nsys_version`")
    });
    let names = reported
        .nics
        .as_ref()
        .map(|nics| format!("planned with the NICs that all nodes report: {}", nodeset::fold(nics)));
    for note in version.into_iter().chain(names).filter(|_| !options.libtest.quiet) {
        eprintln!("note: {note}");
    }
    let by_reports = RunOptions { reported: reported.clone(), ..replanning.options.clone() };
    let replanning = &Replanning { options: &by_reports, ..*replanning };
    let plan = by_what_is_reported(home, plan, replanning)?;
    let mut plan = without(home, plan, left_out, replanning)?;
    plan::settle_flows(&mut plan, &made);
    plan::skip_without_mpirun(&mut plan, &made);
    if !options.libtest.quiet {
        for note in plan::inspector_notes(&plan, &made).into_iter().chain(plan::evidence_notes(&plan)) {
            eprintln!("note: {}", show(&note));
        }
    }
    Ok(Checked { plan, probe: made, reported })
}

/// The plan where no node is probed, without those that are refused, and what Slurm reported for it.
pub(crate) fn unprobed(
    home: &Home,
    plan: Plan,
    inventory: &Inventory,
    reached: Option<&Reached>,
    refused: Vec<LeftOut>,
    options: &RunOptions,
    replanning: &Replanning<'_>,
) -> Result<(Plan, ReportedFacts), Stopped> {
    let gpus = ask_gpu_request(&ProbeScope::from_plan(&plan), inventory, reached, options)?;
    let reported = ReportedFacts { gpus, ..ReportedFacts::default() };
    let by_reports = RunOptions { reported: reported.clone(), ..replanning.options.clone() };
    let replanning = &Replanning { options: &by_reports, ..*replanning };
    let plan = by_what_is_reported(home, plan, replanning)?;
    let plan = without(home, plan, refused, replanning)?;
    for note in plan::evidence_notes(&plan).iter().filter(|_| !options.libtest.quiet) {
        eprintln!("note: {}", show(note));
    }
    Ok((plan, reported))
}

/// The plan made a second time where anything was reported that changes it.
fn by_what_is_reported(home: &Home, plan: Plan, replanning: &Replanning<'_>) -> Result<Plan, Stopped> {
    if replanning.options.reported == ReportedFacts::default() {
        return Ok(plan);
    }
    let planned = make_plan_as(home, replanning.options, replanning.catalogue, Some(&plan.run_id));
    let (planned, _) = planned.map_err(|diagnostics| Stopped::Machinery(diagnostics.join("; ")))?;
    Ok(Plan { parent: plan.parent, pending: plan.pending, ..(replanning.choose)(planned) })
}

/// Whether a case waits for the version of nsys alone.
fn has_profiled_skip(plan: &Plan) -> bool {
    plan.cases.iter().any(|case| case.skip.as_deref().is_some_and(|why| why.contains("nsys_version")))
}

/// Whether a case may want a program only where it is installed.
fn has_node_tools(plan: &Plan) -> bool {
    plan.cases.iter().any(|case| match &case.workload {
        WorkloadFacts::NodeTool { .. } => true,
        WorkloadFacts::Training { program, .. } => program == "torch-ddp",
        _ => false,
    })
}

/// The oldest nsys of the nodes that may pass; none where one of them has none, or does not report it.
fn nsys_of(made: &Probe) -> Option<NsysVersion> {
    let fit = made.nodes.iter().filter(|node| node.unprobed.is_none() && node.unfit.is_empty());
    let versions = fit.map(|node| match node.facts.get("nsys") {
        Some(Value::Text(version)) => NsysVersion::parse(version),
        _ => None,
    });
    versions.collect::<Option<Vec<NsysVersion>>>()?.into_iter().min()
}

/// The nodes that cannot pass, with why.
pub(crate) fn unfit(made: &Probe, inventory: &Inventory) -> Vec<LeftOut> {
    let unfit = made.nodes.iter().filter(|node| !node.unfit.is_empty());
    unfit
        .map(|node| LeftOut {
            node: node.node.clone(),
            why: node.unfit.join("; "),
            by_folder: probe::is_external(node, made, inventory),
            after: None,
        })
        .collect()
}

/// The plan on the nodes that are not left out.
pub(crate) fn without(
    home: &Home,
    plan: Plan,
    left_out: Vec<LeftOut>,
    replanning: &Replanning<'_>,
) -> Result<Plan, Stopped> {
    if left_out.is_empty() {
        return Ok(plan);
    }
    let is_left = |node: &&String| !left_out.iter().any(|left| left.node == **node);
    let rest: Vec<String> = plan.nodes.iter().filter(is_left).cloned().collect();
    let rest = match rest.is_empty() {
        true => None,
        false => {
            let fewer = RunOptions {
                nodes: Some(nodeset::fold(&rest)),
                exclude_nodes: None,
                ..replanning.options.clone()
            };
            // It was planned once: what is wrong now is wrong with fewer nodes only.
            let planned = make_plan_as(home, &fewer, replanning.catalogue, Some(&plan.run_id));
            let (rest, _) = planned.map_err(|diagnostics| Stopped::Machinery(diagnostics.join("; ")))?;
            Some((replanning.choose)(rest))
        }
    };
    Ok(plan::leave_out(plan, rest, left_out))
}

/// The plan on some of its nodes, as it was chosen; nothing where it cannot be made.
pub(crate) fn on(home: &Home, plan: &Plan, nodes: &[String], replanning: &Replanning<'_>) -> Option<Plan> {
    let fewer =
        RunOptions { nodes: Some(nodeset::fold(nodes)), exclude_nodes: None, ..replanning.options.clone() };
    let (rest, _) = make_plan_as(home, &fewer, replanning.catalogue, Some(&plan.run_id)).ok()?;
    Some((replanning.choose)(rest))
}

pub(crate) fn runtime(paused: bool) -> Result<tokio::runtime::Runtime, Stopped> {
    new_runtime(paused).map_err(Stopped::Machinery)
}

/// Which nodes are probed, and on which simulated cluster.
pub(crate) struct ProbeScope<'a> {
    /// Of the probe's folder on the nodes, unique for each.
    pub name: String,
    pub nodes: &'a [String],
    pub seed: u64,
    pub sim_faults: &'a [String],
}

impl<'a> ProbeScope<'a> {
    fn from_plan(plan: &'a Plan) -> ProbeScope<'a> {
        let name = format!("{}.probe", plan.run_id);
        ProbeScope { name, nodes: &plan.nodes, seed: plan.seed, sim_faults: &plan.sim_faults }
    }
}

/// Asks the nodes what they have, by connections and pods that serve nothing else.
pub(crate) fn probe_apart(
    scope: &ProbeScope<'_>,
    inventory: &Inventory,
    options: &RunOptions,
) -> Result<Probe, Stopped> {
    apart(scope, inventory, options, |reached| probe_nodes(scope, inventory, reached, options))
}

/// How jobs ask Slurm for GPUs, where no node is probed, by connections that serve nothing else.
pub(crate) fn ask_gpu_request_apart(
    scope: &ProbeScope<'_>,
    inventory: &Inventory,
    options: &RunOptions,
) -> Result<Option<GpuRequest>, Stopped> {
    if !inventory.leaves_gpu_request_open() {
        return Ok(None);
    }
    apart(scope, inventory, options, |reached| ask_gpu_request(scope, inventory, reached, options))
}

fn apart<T>(
    scope: &ProbeScope<'_>,
    inventory: &Inventory,
    options: &RunOptions,
    ask: impl FnOnce(Option<&Reached>) -> Result<T, Stopped>,
) -> Result<T, Stopped> {
    let fanout = options.ssh_fanout as usize;
    let reach =
        ReachScope { run: &scope.name, nodes: scope.nodes, seed: scope.seed, fanout, has_folder: false };
    let reached = reached_by(inventory, &reach).map_err(Stopped::Machinery)?;
    let answer = ask(reached.as_ref());
    if let Some(reached) = &reached {
        runtime(false)?.block_on(reached.end());
    }
    answer
}

/// One question to Slurm; no job of ours is started for it.
fn ask_gpu_request(
    scope: &ProbeScope<'_>,
    inventory: &Inventory,
    reached: Option<&Reached>,
    options: &RunOptions,
) -> Result<Option<GpuRequest>, Stopped> {
    if !inventory.leaves_gpu_request_open() {
        return Ok(None);
    }
    let runtime = runtime(inventory.kind == Kind::Simulated)?;
    let report: Result<GresReport, Stopped> = runtime.block_on(async {
        let Some(reached) = reached else {
            let faults = parse_faults(scope.sim_faults).map_err(Stopped::Machinery)?;
            // The run's own cluster begins when the run does.
            let reach = SimulatedReach::new(inventory, scope.seed, faults, BTreeMap::new());
            let reach = reach.map_err(Stopped::Machinery)?;
            return Ok(probe::gres(&through_slurm(inventory, &reach), inventory, scope.nodes).await);
        };
        reached.begin().await;
        let redactor = redactor(inventory);
        let clean = reached.clean(&redactor);
        tokio::select! {
            biased;
            report = probe::gres(&clean, inventory, scope.nodes) => Ok(report),
            code = asked_to_end() => Err(Stopped::Interrupted(code)),
        }
    });
    Ok(gpu_request::settled(inventory, &report?, options.libtest.quiet))
}

pub(crate) fn probe_nodes(
    scope: &ProbeScope<'_>,
    inventory: &Inventory,
    reached: Option<&Reached>,
    options: &RunOptions,
) -> Result<Probe, Stopped> {
    let simulated = inventory.kind == Kind::Simulated;
    let runtime = runtime(simulated)?;
    let made = runtime.block_on(async {
        match reached {
            Some(reached) => {
                reached.begin().await;
                let clock = Clock::starting_at(store::wall_clock_s());
                let redactor = redactor(inventory);
                let clean = reached.clean(&redactor);
                let made = probe::make(&probing(scope, inventory, &clean, clock, options)).await;
                if made.is_err() {
                    reached.end().await;
                }
                Ok(made)
            }
            None => {
                let faults = parse_faults(scope.sim_faults)?;
                // The run's own cluster begins when the run does, and remembers nothing of this.
                let reach = SimulatedReach::new(inventory, scope.seed, faults, BTreeMap::new())?;
                let clock = Clock::starting_at(SimulatedReach::epoch_unix_s(scope.seed) as f64);
                let calls = through_slurm(inventory, &reach);
                Ok(probe::make(&probing(scope, inventory, &calls, clock, options)).await)
            }
        }
    });
    made.map_err(Stopped::Machinery)?.map_err(|NotMade::Interrupted(code)| Stopped::Interrupted(code))
}

fn probing<'a>(
    scope: &'a ProbeScope<'_>,
    inventory: &'a Inventory,
    reach: &'a dyn Reach,
    clock: Clock,
    options: &RunOptions,
) -> Probing<'a> {
    Probing {
        inventory,
        nodes: scope.nodes,
        reach,
        clock,
        fanout: options.ssh_fanout as usize,
        name: &scope.name,
        allow_busy: options.allow_busy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::artefact::ProbedNode;

    #[test]
    fn the_oldest_nsys_of_the_fit_nodes_counts_and_one_without_it_leaves_all_unprofiled() {
        let node = |nsys: Option<&str>, unfit: bool| ProbedNode {
            facts: nsys.map(|nsys| ("nsys".to_owned(), Value::Text(nsys.to_owned()))).into_iter().collect(),
            unfit: if unfit { vec!["7 GPUs of 8".to_owned()] } else { Vec::new() },
            ..ProbedNode::default()
        };
        let of = |nodes: &[ProbedNode]| {
            let made = Probe {
                format: model::artefact::Format,
                harness: String::new(),
                simulated: false,
                inventory: String::new(),
                instance: String::new(),
                at: String::new(),
                nodes: nodes.to_vec(),
            };
            nsys_of(&made).map(|version| version.to_string())
        };
        let (new, old) = (node(Some("2025.3.1"), false), node(Some("2024.4.1.61-244134315967v0"), false));
        assert_eq!(of(&[new.clone(), old.clone()]), Some("2024.4.1".to_owned()));
        assert_eq!(of(&[new.clone(), node(None, false)]), None);
        assert_eq!(of(&[new.clone(), node(Some("none"), false)]), None);
        assert_eq!(of(&[new, node(None, true)]), Some("2025.3.1".to_owned()), "an unfit node takes no part");
        assert_eq!(of(&[]), None);
    }
}
