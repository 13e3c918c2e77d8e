//! `--drain` and `--resume-drained`: culprits out of Slurm's queue, and back into it once they have passed. What is told of
//! each node stands here; how Slurm is asked, in `cluster::drain`.

use super::super::reached::{Reached, through_slurm};
use super::super::{RunArgs, run_suites};
use super::{IsolateArgs, consent};
use clap::Parser;
use cluster::drain::limits::{self, Limits};
use cluster::drain::{self, Drained, Shown, Wanted};
use cluster::interrupt;
use cluster::reach::Reach;
use config::inventory::{Inventory, Kind, ReachBy};
use model::exit_code;
use sim::SimulatedReach;
use std::collections::BTreeMap;
use verdict::isolate::evidence::Line;

/// Why an inventory's nodes have no queue to be taken out of, if so.
pub(super) fn refused(inventory: &Inventory, flag: &str) -> Result<(), String> {
    match &inventory.reach {
        ReachBy::Slurm(_) => Ok(()),
        ReachBy::Ssh(_) | ReachBy::Local => Err(format!(
            "{flag}: only Slurm drains nodes, and those of this inventory are reached without it: `{}`",
            inventory.name
        )),
    }
}

/// What is drained of what was found, and who has to agree.
pub(super) struct Drain<'a> {
    pub inventory: &'a Inventory,
    pub lines: &'a [Line],
    pub run: &'a str,
    pub simulated: bool,
    pub limits: Limits,
    /// The command that drains the same nodes without asking.
    pub command: String,
}

/// Drains the culprits where somebody agrees, and says of each what became of it.
pub(super) fn drain(drain: &Drain, args: &IsolateArgs) {
    let (mut wanted, left) = limits::of_lines(drain.lines, drain.run, &drain.limits);
    left.iter().for_each(|line| println!("{line}"));
    if drain.simulated {
        // Whoever reads the queue is not to take it for a measurement.
        wanted.iter_mut().for_each(|wanted| wanted.reason.push_str(" (SIMULATED)"));
    }
    if wanted.is_empty() {
        return;
    }
    if !args.yes {
        match with(drain.inventory, args.ssh_fanout, async |reach| refuse(reach, drain, &wanted).await) {
            Ok(None) => {}
            Ok(Some(why)) => return println!("{why}"),
            Err(why) => return println!("not drained, Slurm cannot be asked: {why}"),
        }
        if let Err(why) = consent::ask(&wanted, &drain.command) {
            return println!("{why}");
        }
    }
    let done = with(drain.inventory, args.ssh_fanout, async |reach| {
        // Another call may have drained some while somebody thought about it.
        if let Some(why) = refuse(reach, drain, &wanted).await {
            return Err(why);
        }
        Ok(drain::drain_all(reach, &wanted, &drain.limits).await)
    });
    let (done, stopped) = match done {
        Ok(Ok(done)) => done,
        Ok(Err(why)) => return println!("{why}"),
        Err(why) => return println!("not drained, Slurm cannot be asked: {why}"),
    };
    let rest: Vec<&str> = wanted.iter().skip(done.len()).map(|wanted| wanted.node.as_str()).collect();
    for (wanted, done) in wanted.iter().zip(done) {
        let node = &wanted.node;
        match done {
            Drained::Done => println!("drained {node}: {}", wanted.reason),
            Drained::Already { reason } => println!("drained {node} before: {reason}"),
            Drained::Others { told } => {
                println!("not drained {node}, somebody else has said something of it: {told}");
            }
            Drained::Failed { why } => println!("not drained {node}: {why}"),
        }
    }
    match stopped {
        Some(why) if rest.is_empty() => {
            println!(
                "too many are drained: {why}; `scontrol update NodeName=NODE State=RESUME` puts one back"
            );
        }
        Some(why) => println!("not drained {}: {why}", rest.join(", ")),
        None => {}
    }
}

/// Why none of them is drained, if so.
async fn refuse(reach: &dyn Reach, drain: &Drain<'_>, wanted: &[Wanted]) -> Option<String> {
    match drain::show_all(reach).await {
        Ok(all) => drain.limits.refuse(wanted, &all),
        Err(why) => Some(format!("nothing is drained, how many nodes are drained is not known: {why}")),
    }
}

/// Every node of those asked for that is drained for a reason of ours: run on again, with a good partner.
pub(super) fn resume(inventory: &Inventory, nodes: &[String], args: &IsolateArgs) -> i32 {
    let asked = with(inventory, args.ssh_fanout, async |reach| {
        for node in nodes {
            drain::take_up(reach, node).await.map_err(|why| format!("{node}: {why}"))?;
        }
        drain::show_all(reach).await
    });
    let all: BTreeMap<String, Shown> = match asked.and_then(|told| told) {
        Ok(all) => all.into_iter().collect(),
        Err(why) => return run_suites::machinery(&why),
    };
    let mut code = exit_code::PASSED;
    let mut ours = 0;
    for node in nodes {
        let Some(shown) = all.get(node) else {
            println!("{node}: Slurm has no such node");
            code = exit_code::graver(code, exit_code::INCONCLUSIVE);
            continue;
        };
        if !shown.is_draining() {
            continue;
        }
        if shown.ours().is_none() {
            println!("{node} stays drained, somebody else has said why: {shown}");
            continue;
        }
        ours += 1;
        code = exit_code::graver(code, one(inventory, node, &all, args));
        if let Some(signal) = interrupt::asked() {
            return signal;
        }
    }
    if ours == 0 {
        println!("no node is drained for a reason of the harness");
    }
    code
}

fn one(inventory: &Inventory, node: &str, all: &BTreeMap<String, Shown>, args: &IsolateArgs) -> i32 {
    let is_good = |partner: &&String| {
        *partner != node && all.get(*partner).is_some_and(|shown| shown.is_idle() && shown.reason.is_none())
    };
    let Some(partner) = inventory.nodes.iter().find(is_good) else {
        println!("{node} stays drained: no other node is idle to run with it");
        return exit_code::INCONCLUSIVE;
    };
    let held = with(inventory, args.ssh_fanout, async |reach| drain::hold(reach, node, partner).await);
    let held = match held.and_then(|held| held) {
        Ok(held) => held,
        Err(why) => {
            println!("{node} was not looked at again: {why}");
            return exit_code::INCONCLUSIVE;
        }
    };
    println!("re-check of {node} with {partner}, in reservation `{}`", held.reservation);
    let suite = args.suite.clone().unwrap_or_default();
    let both = format!("{node},{partner}");
    let words = [
        "harness",
        "--suite",
        &suite,
        "--inventory",
        &args.inventory,
        "--nodes",
        &both,
        "--reservation",
        &held.reservation,
        "--on-failure",
        "nothing",
        "--ssh-fanout",
        &args.ssh_fanout.to_string(),
    ];
    let code = match RunArgs::try_parse_from(words) {
        Ok(args) => run_suites::run(args),
        Err(why) => run_suites::machinery(&why.to_string()),
    };
    let has_passed = code == exit_code::PASSED;
    let released =
        with(inventory, args.ssh_fanout, async |reach| drain::release(reach, &held, has_passed).await);
    match released.and_then(|released| released) {
        Err(why) => {
            println!("{node}: {why}");
            exit_code::INCONCLUSIVE
        }
        Ok(()) if has_passed => {
            println!("resumed {node}: its re-check has passed, it was drained for: {}", held.reason);
            exit_code::PASSED
        }
        Ok(()) => {
            println!("{node} stays drained, its re-check ended with exit code {code}: {}", held.reason);
            if code == exit_code::FAILED { code } else { exit_code::INCONCLUSIVE }
        }
    }
}

/// Does something with the inventory's Slurm. A simulated one is rehearsed on, and remembers nothing of it.
fn with<T>(
    inventory: &Inventory,
    ssh_fanout: u32,
    act: impl AsyncFnOnce(&dyn Reach) -> T,
) -> Result<T, String> {
    let simulated = inventory.kind == Kind::Simulated;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(simulated).build();
    runtime.map_err(|error| error.to_string())?.block_on(async {
        if simulated {
            let reach = SimulatedReach::new(inventory, 0, Vec::new(), BTreeMap::new())?;
            return Ok(act(&through_slurm(inventory, &reach)).await);
        }
        let reached = Reached::of(inventory, 0, ssh_fanout as usize)?;
        reached.begin().await;
        let done = act(reached.reach()).await;
        reached.end().await;
        Ok(done)
    })
}
