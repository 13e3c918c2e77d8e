//! A bisection from its request to its exit code.

use super::bisection::{Bisection, Ending, Stopped};
use super::measured::Compared;
use super::stacks::Stacks;
use super::{BisectRequest, earlier, messages, runs};
use crate::session::planning::make_plan_as;
use crate::session::preflight::{self, ProbeScope};
use crate::session::{ReportedFacts, RunOptions, gpu_request, no_answer, report_error, run_cluster};
use base::nodeset;
use cluster::{interrupt, probe};
use config::inventory::{GresReport, Inventory, Stack};
use job::script::GpuRequest;
use model::artefact::{Plan, PlannedCase, Source};
use model::exit_code;
use store::{Home, Stored};
use verdict::bisect::record::{BisectionOutcome, BisectionScope};

/// Where --pairs does not say.
const PAIRS: usize = 60;
const MOST_PAIRS: usize = 1000;
/// So many stacks of a list are planned before the first run: errors in them are reported before it.
const PLANNED: usize = 20;

/// Gives the exit code; or all that is wrong with what was asked for.
pub(crate) fn bisect(home: &Home, request: &BisectRequest) -> Result<i32, Vec<String>> {
    let started = match &request.resume {
        Some(word) => resume(home, request, word),
        None => start(home, request),
    };
    let mut bisection = match started? {
        Started::Ended(code) => return Ok(code),
        Started::Pairs(bisection) => bisection,
    };
    let ending = bisection.go();
    Ok(end(&bisection, ending))
}

enum Started {
    /// Without a pair.
    Ended(i32),
    Pairs(Box<Bisection>),
}

fn end(bisection: &Bisection, ending: Result<Ending, Stopped>) -> i32 {
    let next = format!("next: harness bisect --resume {}", bisection.first());
    let spent = bisection.node_hours();
    let concluded = match ending {
        Ok(ending) => messages::conclude(bisection, &ending),
        Err(Stopped::Interrupted(code)) => {
            println!("interrupted after {:.2} node-hours; {next}", bisection.node_hours());
            return code;
        }
        Err(Stopped::Budget(needed)) => {
            let next = match bisection.done.is_empty() {
                true => "next: give a larger --budget".to_owned(),
                false => format!("{next} --budget TOTAL"),
            };
            println!("inconclusive: the next run needs {needed:.2} node-hours, {spent:.2} are spent\n{next}");
            return exit_code::INCONCLUSIVE;
        }
        Err(Stopped::Machinery(why)) => return report_error(&why),
    };
    println!("{}", concluded.text);
    println!(
        "pairs {}, runs {}, node-hours {:.2}: runs/{}",
        bisection.pairs(),
        bisection.done.len(),
        bisection.node_hours(),
        bisection.done.last().map_or("", |done| &done.id)
    );
    if bisection.simulated {
        println!("SIMULATED: nothing in this was measured on real hardware");
    }
    let outcome = BisectionOutcome {
        text: concluded.text,
        exit_code: concluded.code,
        settings: concluded.settings,
        pairs: bisection.pairs(),
        node_hours: bisection.node_hours(),
    };
    match bisection.store_outcome(outcome) {
        Ok(()) => concluded.code,
        Err(why) => report_error(&why),
    }
}

fn start(home: &Home, request: &BisectRequest) -> Result<Started, Vec<String>> {
    let one = |why: String| vec![why];
    let stacks = Stacks::new(request).map_err(one)?;
    let suite = request.suite.clone().unwrap_or_default();
    let good = stacks.all.first().cloned().unwrap_or_default();
    let (plan, inventory) = plan(home, request, &suite, request.nodes.clone(), &good, None)?;
    let case = choose(&plan, request.case.as_deref()).map_err(one)?.name.clone();
    let (left, gpus) = match request.dry_run {
        true => (plan.nodes.clone(), None),
        false => match fit(request, &inventory, &plan.nodes) {
            Ok(fit) => fit,
            Err(code) => return Ok(Started::Ended(code)),
        },
    };
    let (plan, _) = self::plan(home, request, &suite, Some(nodeset::fold(&left)), &good, gpus)?;
    let planned = choose(&plan, Some(&case)).map_err(one)?;
    let compared = Compared::new(planned, request.metric.as_deref()).map_err(one)?;
    let last = stacks.all.len() - 1;
    for (at, stack) in stacks.all.iter().enumerate().skip(1).filter(|(at, _)| *at == last || *at < PLANNED) {
        let (other, _) = self::plan(home, request, &suite, Some(nodeset::fold(&left)), stack, gpus)
            .map_err(|why| why.into_iter().map(|why| format!("stack {at}: {why}")).collect::<Vec<_>>())?;
        if at == last
            && good.differing(stack).iter().all(|name| name != "image")
            && is_alike(&plan, &other, &case)
        {
            return Err(vec![format!(
                "case `{case}` runs the same with both stacks: it sets {} itself, or the inventory has it already",
                good.differing(stack).join(", ")
            )]);
        }
    }
    let scope = BisectionScope {
        suite,
        inventory: request.inventory.clone(),
        case,
        metric: compared.metric.clone(),
        nodes: left,
        stacks: stacks.all.iter().map(|stack| stack.settings().collect()).collect(),
        by_setting: stacks.by_setting,
        pairs: request.pairs.unwrap_or(PAIRS),
        budget: request.budget,
        seed: request.seed,
        reservation: request.reservation.clone(),
        earlier: Vec::new(),
    };
    let stored = serde_json::to_value(&scope).map_err(|error| one(error.to_string()))?;
    if store::redactor().first_within(&stored).is_some() {
        return Err(one(
            "a setting looks like a secret; name its variable instead: `NAME=env:VARIABLE`".to_owned()
        ));
    }
    let bad = stacks.all.last().cloned().unwrap_or_default();
    let mut bisection = Bisection { gpus, ..new(home, request, scope, stacks.all, compared, plan.sources) };
    let (plan, _) = bisection.plan(&good, 1)?;
    let (of_bad, _) = bisection.plan(&bad, 1)?;
    if !request.no_earlier_runs {
        bisection.scope.earlier = earlier::find(home, &plan, &of_bad, last, &bisection.compared);
    }
    messages::heading(&bisection, inventory.is_simulated());
    messages::cost_estimate(&bisection, &plan);
    match request.dry_run {
        true => Ok(Started::Ended(exit_code::PASSED)),
        false => Ok(Started::Pairs(Box::new(bisection))),
    }
}

fn new(
    home: &Home,
    request: &BisectRequest,
    scope: BisectionScope,
    stacks: Vec<Stack>,
    compared: Compared,
    sources: Vec<Source>,
) -> Bisection {
    interrupt::watch();
    Bisection {
        home: home.clone(),
        scope,
        stacks,
        compared,
        catalogue: request.catalogue.clone(),
        ssh_fanout: request.ssh_fanout,
        gpus: None,
        done: Vec::new(),
        node_seconds: 0.0,
        simulated: false,
        sources,
        held: None,
    }
}

fn resume(home: &Home, request: &BisectRequest, word: &str) -> Result<Started, Vec<String>> {
    let refused = |why: String| vec![format!("--resume: {why}")];
    let records = runs::records(home, word).map_err(refused)?;
    let Some((folder, first)) = records.first() else { return Err(refused(format!("no run: `{word}`"))) };
    let mut scope = first.scope.clone();
    scope.pairs = request.pairs.unwrap_or(scope.pairs).min(MOST_PAIRS);
    scope.budget = request.budget.or(scope.budget);
    let parse = |words: &Vec<String>| Stack::parse(words.iter().map(String::as_str));
    let stacks: Vec<Stack> = scope.stacks.iter().map(parse).collect::<Result<_, _>>().map_err(refused)?;
    if stacks.len() < 2 {
        return Err(refused(format!("`{word}` names fewer than two stacks")));
    }
    let as_then = BisectRequest {
        inventory: scope.inventory.clone(),
        exclude_nodes: None,
        reservation: scope.reservation.clone(),
        seed: scope.seed,
        ..request.clone()
    };
    let good = stacks.first().cloned().unwrap_or_default();
    let nodes = Some(nodeset::fold(&scope.nodes));
    // As in the runs before.
    let gpus = Stored::open(folder).ok().and_then(|run| gpu_request::from_plan(&run.plan));
    let (plan, inventory) = plan(home, &as_then, &scope.suite, nodes, &good, gpus)?;
    if let Err(why) = run_cluster::check_nodes(folder, &inventory) {
        return Ok(Started::Ended(report_error(&format!("--resume: {why}"))));
    }
    let planned = choose(&plan, Some(&scope.case)).map_err(refused)?;
    let compared = Compared::new(planned, Some(&scope.metric)).map_err(refused)?;
    let mut bisection = Bisection { gpus, ..new(home, request, scope, stacks, compared, plan.sources) };
    if let Err(why) = bisection.hold(&records) {
        return Ok(Started::Ended(report_error(&why)));
    }
    match bisection.take_up(&records) {
        Ok(()) => {}
        Err(Stopped::Interrupted(code)) => return Ok(Started::Ended(code)),
        Err(Stopped::Machinery(why)) => return Ok(Started::Ended(report_error(&why))),
        Err(Stopped::Budget(_)) => {}
    }
    messages::heading(&bisection, inventory.is_simulated());
    Ok(Started::Pairs(Box::new(bisection)))
}

/// The suite on nodes, with a stack.
fn plan(
    home: &Home,
    request: &BisectRequest,
    suite: &str,
    nodes: Option<String>,
    stack: &Stack,
    gpus: Option<GpuRequest>,
) -> Result<(Plan, Inventory), Vec<String>> {
    let options = RunOptions {
        suites: vec![suite.to_owned()],
        inventory: request.inventory.clone(),
        nodes,
        exclude_nodes: request.exclude_nodes.clone(),
        stack: stack.clone(),
        seed: request.seed,
        reservation: request.reservation.clone(),
        on_failure: Some("nothing".to_owned()),
        reported: ReportedFacts { gpus, ..ReportedFacts::default() },
        ..RunOptions::quiet(request.ssh_fanout)
    };
    make_plan_as(home, &options, &request.catalogue, Some("bisect"))
}

/// The case of that name, else the first that spans nodes, else the first.
fn choose<'a>(plan: &'a Plan, named: Option<&str>) -> Result<&'a PlannedCase, String> {
    let able: Vec<&PlannedCase> = plan.cases.iter().filter(|case| case.skip.is_none()).collect();
    if let Some(name) = named {
        return able.iter().copied().find(|case| case.name == name).ok_or_else(|| {
            let known: Vec<&str> = able.iter().map(|case| case.name.as_str()).collect();
            let near = base::suggest::nearest(name, known.iter().copied());
            let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            format!("no case `{name}` that can run here{near}")
        });
    }
    let spans = |case: &&PlannedCase| case.jobs.iter().any(|job| job.nodes.len() > 1);
    let found = able.iter().copied().find(|case| spans(case)).or(able.first().copied());
    found.ok_or_else(|| "no case of the suite can run here".to_owned())
}

/// Whether a case runs the same in both plans.
fn is_alike(a: &Plan, b: &Plan, case: &str) -> bool {
    let of = |plan: &Plan| plan.cases.iter().find(|one| one.name == case).cloned();
    of(a) == of(b)
}

/// The nodes that can pass, and how jobs ask Slurm for GPUs there where the inventory leaves it open; or how it ends.
fn fit(
    request: &BisectRequest,
    inventory: &Inventory,
    nodes: &[String],
) -> Result<(Vec<String>, Option<GpuRequest>), i32> {
    let options = RunOptions {
        no_probe: request.no_probe,
        probe: request.probe,
        allow_busy: request.allow_busy,
        ..RunOptions::quiet(request.ssh_fanout)
    };
    let stopped = |stopped| match stopped {
        preflight::Stopped::Interrupted(code) => {
            eprintln!("interrupted while nodes were probed: nothing was launched");
            code
        }
        preflight::Stopped::Machinery(why) | preflight::Stopped::NoAnswer(why) => report_error(&why),
    };
    interrupt::watch();
    let name = format!("{}.probe", store::new_run_id("bisect"));
    let scope = ProbeScope { name, nodes, seed: request.seed, sim_faults: &[] };
    if !preflight::is_wanted(inventory, &options) {
        let gpus = preflight::ask_gpu_request_apart(&scope, inventory, &options).map_err(stopped)?;
        return Ok((nodes.to_vec(), gpus));
    }
    let made = preflight::probe_apart(&scope, inventory, &options).map_err(stopped)?;
    if let Some(text) = no_answer::text(&made, inventory) {
        no_answer::print(&text);
        return Err(exit_code::INCONCLUSIVE);
    }
    eprint!("{}", probe::remarks(&made));
    let unfit = preflight::unfit(&made, inventory);
    let left: Vec<String> =
        nodes.iter().filter(|node| !unfit.iter().any(|left| left.node == **node)).cloned().collect();
    match left.is_empty() {
        true => Err(report_error("no node is left that can pass")),
        false => Ok((left, gpu_request::settled(inventory, &GresReport::from_probe(&made), false))),
    }
}
