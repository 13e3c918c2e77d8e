//! What a bisection prints.

use super::bisection::{Alone, Bisection, Done, Ending};
use base::nodeset;
use base::text::{count, show};
use model::artefact::Plan;
use model::exit_code;
use std::collections::{BTreeMap, BTreeSet};
use verdict::bisect::record::{EarlierRun, RunStack};
use verdict::bisect::{Posterior, SMALLEST};

/// More stacks than this are not listed.
const MOST_LISTED: usize = 8;
/// As in `harness bisect`.
const OF_95_PERCENT: f64 = 1.96;

pub(super) fn heading(bisection: &Bisection, is_simulated: bool) {
    let scope = &bisection.scope;
    let simulated = if is_simulated { " (SIMULATED)" } else { "" };
    println!(
        "bisect {} by `{}` on {}: {}, {}{simulated}",
        scope.suite,
        scope.case,
        nodeset::fold(&scope.nodes),
        count(scope.nodes.len(), "node"),
        count(bisection.stacks.len(), "stack"),
    );
    let last = bisection.stacks.len() - 1;
    let is_listed = |at: &usize| *at == 0 || *at == last || last < MOST_LISTED;
    for (at, stack) in bisection.stacks.iter().enumerate().filter(|(at, _)| is_listed(at)) {
        let role = if at == 0 {
            " (good)"
        } else if at == last {
            " (bad)"
        } else {
            ""
        };
        println!("stack {at}{role}: {}", show(&stack.to_string()));
    }
    println!(
        "compared: {}, {}; a step below {} % counts as none",
        scope.metric,
        count(bisection.compared.assertions.len(), "number"),
        SMALLEST * 100.0
    );
    for end in [0, last] {
        let of_end: Vec<&EarlierRun> = scope.earlier.iter().filter(|run| run.stack == end).collect();
        let (Some(newest), Some(oldest)) = (of_end.first(), of_end.last()) else { continue };
        let from = match newest.run == oldest.run {
            true => show(&newest.run),
            false => format!("{} to {}", show(&oldest.run), show(&newest.run)),
        };
        println!("{} of stack {end}: {from}", count(of_end.len(), "earlier run"));
    }
}

/// Earlier runs that no longer count since the pair with that number reported its software.
fn changed_by(bisection: &Bisection, number: usize) {
    let counted = |run: &&EarlierRun| bisection.changed_since(run, number.saturating_sub(1)).is_none();
    for run in bisection.scope.earlier.iter().filter(counted) {
        let Some(what) = bisection.changed_since(run, number) else { continue };
        println!("not counted: {} of stack {}: {}", show(&run.run), run.stack, show(&what));
    }
}

pub(super) fn cost_estimate(bisection: &Bisection, plan: &Plan) {
    let each = plan.node_seconds() / 3600.0;
    println!(
        "expected: at most {} of runs, {:.2} node-hours each, {:.2} in all",
        count(bisection.scope.pairs, "pair"),
        each * 2.0,
        each * 2.0 * bisection.scope.pairs as f64
    );
    if let Some(budget) = bisection.scope.budget {
        println!("budget: {budget} node-hours");
    }
}

/// After each pair: what it measured, and what is most probable now. `running` are the stacks that were running before it.
pub(super) fn pair(bisection: &Bisection, running: &[usize]) {
    let number = bisection.pairs();
    let of_pair = bisection.done.iter().filter(|done| done.pair == number);
    let measured: Vec<String> = of_pair.map(|done| one(bisection, done)).collect();
    let runs = bisection.ordered(running);
    let posterior = Posterior::new(running.len(), &runs);
    let best = posterior.best();
    let probability = posterior.steps.get(best).copied().unwrap_or_default();
    let name = |at: usize| running.get(at).copied().unwrap_or_default();
    let shown = match bisection.done.last().map(|done| done.stack) {
        Some(RunStack::Ordered(_)) => format!(
            "step between {} and {}: {:.0} %, none: {:.0} %",
            name(best),
            name(best + 1),
            probability * 100.0,
            posterior.no_step * 100.0
        ),
        _ => {
            let alone = Posterior::new(2, &bisection.alone_runs());
            format!("worse alone: {:.0} %", (1.0 - alone.no_step) * 100.0)
        }
    };
    println!("pair {number}: {}; {shown}; {:.2} node-hours", measured.join(", "), bisection.node_hours());
    changed_by(bisection, number);
    if number == 1 {
        println!("if it is interrupted: harness bisect --resume {}", bisection.first());
    }
}

fn one(bisection: &Bisection, done: &Done) -> String {
    let stack = match done.stack {
        RunStack::Ordered(number) => format!("stack {number}"),
        RunStack::Control => "stack 0".to_owned(),
        RunStack::Alone => "the setting alone".to_owned(),
    };
    match &done.numbers {
        Some(numbers) => format!("{stack} {}", bisection.compared.show(bisection.compared.level(numbers))),
        None => format!("{stack} not measured"),
    }
}

/// How it ended: its text, its exit code, and the settings that explain the step.
pub(super) struct Concluded {
    pub text: String,
    pub code: i32,
    pub settings: Vec<String>,
}

pub(super) fn conclude(bisection: &Bisection, ending: &Ending) -> Concluded {
    let open = |text: String| Concluded { text, code: exit_code::INCONCLUSIVE, settings: Vec::new() };
    let running = bisection.running();
    let runs = bisection.ordered(&running);
    let posterior = Posterior::new(running.len(), &runs);
    let last = bisection.stacks.len() - 1;
    match ending {
        Ending::Alike if bisection.failures_of(last) > bisection.failures_of(0) => open(format!(
            "inconclusive: stack {last} failed in {} of its runs, and is not worse in the others",
            bisection.failures_of(last)
        )),
        Ending::Alike if let Some(worst) = bisection.worst_number() => {
            open(format!("inconclusive: not worse on average, but {}", show(&worst)))
        }
        Ending::Alike => Concluded {
            text: format!(
                "no step: stack {last} is not worse than stack 0 by {} % or more",
                SMALLEST * 100.0
            ),
            code: exit_code::PASSED,
            settings: Vec::new(),
        },
        Ending::Step { after, before, alone } if before - after == 1 => {
            step(bisection, *after, *before, &posterior, *alone)
        }
        Ending::Step { after, before, .. } => open(format!(
            "inconclusive: a step between stack {after} and stack {before}; the stacks between them do not run\n{}",
            changes(bisection, *after, *before).join("\n")
        )),
        Ending::Several { after, before } => open(format!(
            "inconclusive: one step does not explain it; the largest is between stack {after} and stack {before}\n{}",
            changes(bisection, *after, *before).join("\n")
        )),
        Ending::Pairs => {
            let best = posterior.best();
            let name = |at: usize| running.get(at).copied().unwrap_or(last);
            let step = posterior.steps.get(best).copied().unwrap_or_default();
            let likeliest = match step > posterior.no_step {
                true => {
                    let (after, before) = (name(best), name(best + 1));
                    format!("a step between stack {after} and stack {before} ({:.0} %)", step * 100.0)
                }
                false => format!("no step ({:.0} %)", posterior.no_step * 100.0),
            };
            open(format!(
                "inconclusive after {}: most probable is {likeliest}\n{}",
                count(bisection.pairs(), "pair"),
                more_pairs(bisection)
            ))
        }
        Ending::Broken(stack) => {
            let which = if *stack == RunStack::Ordered(0) { "good" } else { "bad" };
            let failed = bisection.done.iter().rev().find(|done| done.stack == *stack);
            let why = failed.and_then(|done| done.why.as_deref()).unwrap_or("not all numbers were measured");
            let run = failed.map_or("", |done| &done.id);
            open(format!(
                "inconclusive: the {which} stack failed twice: {}\nnext: harness runs show {run}",
                show(why)
            ))
        }
    }
}

fn step(
    bisection: &Bisection,
    after: usize,
    before: usize,
    posterior: &Posterior,
    alone: Option<Alone>,
) -> Concluded {
    let settings = changes(bisection, after, before);
    let (size, error) = posterior.size;
    let probability = posterior.steps.get(posterior.best()).copied().unwrap_or_default();
    let mut lines = vec![format!(
        "the step is between stack {after} and stack {before}: {} worse, probability {:.1} %",
        percent(size, error),
        (probability * 100.0).min(99.9)
    )];
    lines.extend(settings.iter().cloned());
    lines.extend(versions(bisection, after, before));
    let (code, text) = match alone {
        Some(Alone::No) => (
            exit_code::INCONCLUSIVE,
            Some(
                "inconclusive: alone it makes no difference; it is slow only together with the settings before it"
                    .to_owned(),
            ),
        ),
        Some(Alone::Open) => (
            exit_code::INCONCLUSIVE,
            Some(format!(
                "inconclusive: whether it is as slow alone is not known\n{}",
                more_pairs(bisection)
            )),
        ),
        Some(Alone::Same(alone, of_alone)) if alone + 2.0 * of_alone.hypot(error) < size => (
            exit_code::INCONCLUSIVE,
            Some(format!(
                "inconclusive: alone it is {} worse, which does not explain the step",
                percent(alone, of_alone)
            )),
        ),
        Some(Alone::Same(size, error)) => {
            (exit_code::FAILED, Some(format!("the setting alone: {} worse", percent(size, error))))
        }
        None => (exit_code::FAILED, None),
    };
    lines.extend(text);
    let settings = if code == exit_code::FAILED { settings } else { Vec::new() };
    Concluded { text: lines.join("\n"), code, settings }
}

fn more_pairs(bisection: &Bisection) -> String {
    let pairs = bisection.pairs().saturating_mul(2).min(1000);
    format!("next: harness bisect --resume {} --pairs {pairs}", bisection.first())
}

/// `5.1 +- 0.8 %` of a difference of logarithms.
fn percent(size: f64, error: f64) -> String {
    let share = |size: f64| (1.0 - (-size).exp()) * 100.0;
    format!("{:.1} +- {:.1} %", share(size), OF_95_PERCENT * error * 100.0)
}

/// Each setting in which two stacks differ: `  NCCL_ALGO: Ring -> Tree`.
fn changes(bisection: &Bisection, after: usize, before: usize) -> Vec<String> {
    let (Some(from), Some(to)) = (bisection.stacks.get(after), bisection.stacks.get(before)) else {
        return Vec::new();
    };
    let names = from.differing(to).into_iter();
    names.map(|name| show(&format!("{name}: {} -> {}", from.value(&name), to.value(&name)))).collect()
}

/// The versions that runs of two stacks reported, where they differ.
fn versions(bisection: &Bisection, after: usize, before: usize) -> Vec<String> {
    let of = |number: usize| {
        let mut all: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for done in bisection.done.iter().filter(|done| done.stack == RunStack::Ordered(number)) {
            for (name, versions) in &done.versions {
                all.entry(name).or_default().extend(versions.iter().map(String::as_str));
            }
        }
        all
    };
    let (from, to) = (of(after), of(before));
    let join = |versions: &BTreeSet<&str>| versions.iter().copied().collect::<Vec<_>>().join(", ");
    let changed = |(name, versions): (&&str, &BTreeSet<&str>)| {
        let was = from.get(name).filter(|was| *was != versions)?;
        Some(show(&format!("reported {name}: {} -> {}", join(was), join(versions))))
    };
    to.iter().filter_map(changed).collect()
}
