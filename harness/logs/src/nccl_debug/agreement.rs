//! Whether the ranks of a job do the same: that each communicator was made, that all its ranks make the same calls in
//! the same order, that each message has its receiver, and that all processes are of one world. A rank without a log is
//! compared with no other.

use super::checks::MOST_LISTED;
use super::communicators::{Communicator, Communicators};
use super::tables::Checks;
use super::{Reader, worlds};
use crate::text::count;
use metric::finding::Finding;
use std::collections::BTreeSet;

pub(super) fn findings(reader: &Reader, checks: &mut Checks, all: &mut Vec<Finding>) {
    missing(reader, all);
    apart(reader, all);
    sequences(reader, checks, all);
    unmatched(reader, checks, all);
}

/// Processes that no communicator joins with the others.
fn apart(reader: &Reader, all: &mut Vec<Finding>) {
    let tally = &reader.tally;
    let worlds = worlds::groups(&tally.communicators);
    let [(_, largest), (other, of_other), ..] = worlds.as_slice() else { return };
    let host = tally.processes.host(*other);
    let why = format!(
        "{} groups of processes share no communicator ({largest}, and {of_other} on `{host}`): several jobs, or ranks \
         that did not connect",
        worlds.len()
    );
    all.push(Finding::new("nccl-worlds-apart", why).node(host));
}

/// The name of a communicator in messages.
fn name(at: usize, it: &Communicator) -> String {
    match it.id {
        Some(id) => format!("communicator 0x{id:x} of {} ranks", it.nranks),
        None => format!("communicator {} of {} ranks", at + 1, it.nranks),
    }
}

/// Calls and lines of communicators that torn lines may have lost of processes.
fn lost_lines(reader: &Reader, processes: impl Iterator<Item = u32>) -> u64 {
    let processes: BTreeSet<u32> = processes.collect();
    let of = |process: &u32| reader.tally.processes.get(*process).map_or(0, |process| process.lost);
    processes.iter().map(of).fold(reader.lost, u64::saturating_add)
}

/// Ranks whose logs are missing: no call of others is compared with theirs.
fn missing(reader: &Reader, all: &mut Vec<Finding>) {
    let communicators = reader.tally.communicators.all.iter().enumerate();
    let lacking: Vec<_> = communicators.filter(|(_, it)| (it.members.len() as u64) < it.nranks).collect();
    if let Some((at, first)) = lacking.first() {
        let why = format!(
            "ranks without a log in {}, for example {}: {} logged",
            count(lacking.len() as u64, "communicator"),
            name(*at, first),
            first.members.len()
        );
        all.push(Finding::new("nccl-ranks-missing", why));
    }
}

fn sequences(reader: &Reader, checks: &mut Checks, all: &mut Vec<Finding>) {
    let tally = &reader.tally;
    let (mut short, mut holes, mut unfinished) = (0, 0, 0);
    for (at, it) in tally.communicators.all.iter().enumerate() {
        let name = name(at, it);
        let incomplete: Vec<u64> =
            it.members.iter().filter(|(_, member)| !member.complete).map(|(rank, _)| *rank).collect();
        if let Some(rank) = incomplete.first() {
            unfinished += 1;
            if unfinished <= MOST_LISTED {
                let ranks = count(incomplete.len() as u64, "rank");
                let members = incomplete.iter().filter_map(|rank| it.members.get(rank));
                let lost = lost_lines(reader, members.map(|member| member.process));
                let why = match incomplete.len() as u64 > lost {
                    true => format!(
                        "{name}: {ranks} began initialization and never completed it, the first rank {rank}"
                    ),
                    false => format!(
                        "{name}: no line says that {ranks} completed initialization; lost to torn lines: up to {lost}"
                    ),
                };
                all.push(Finding::new("nccl-init-incomplete", why));
            }
        }
        let has_hole = |process: u32| tally.processes.get(process).is_some_and(|process| process.has_hole);
        let is_torn = it.members.values().any(|member| has_hole(member.process));
        // A rank that is behind by no more calls than torn lines lost may have made them all; and one that is not behind
        // may have made fewer than one whose lines were torn.
        let called = it.nranks > 1 && it.members.values().any(|member| member.calls > 0);
        let calls = || it.members.values().map(|member| member.calls);
        let behind = calls().max().unwrap_or_default() - calls().min().unwrap_or_default();
        let lost = lost_lines(reader, it.members.values().map(|member| member.process));
        let is_explained = lost > 0 && called && (it.difference.is_some() || behind <= lost);
        if is_torn || is_explained {
            // Behind a call that cannot be read, every other one would seem to differ.
            holes += 1;
            checks.not_compared += 1;
            continue;
        }
        if let Some(difference) = &it.difference {
            let why = format!("{name}: {}", Communicators::describe(difference, &tally.distinct));
            let mut finding = Finding::new("nccl-sequence-differs", why).line(difference.line);
            if let Some(file) = reader.files.get(difference.file as usize) {
                finding = finding.file(file.clone());
            }
            if let Some(member) = it.members.get(&difference.rank) {
                finding = finding.node(tally.processes.host(member.process));
            }
            all.push(finding);
            checks.compared += 1;
            checks.mismatches += 1;
            continue;
        }
        let is_complete = it.members.len() as u64 >= it.nranks && !it.beyond;
        if called {
            checks.compared += u64::from(is_complete);
            checks.not_compared += u64::from(!is_complete);
        }
        let most = it.members.iter().max_by_key(|(rank, member)| (member.calls, std::cmp::Reverse(**rank)));
        let least = it.members.iter().min_by_key(|(rank, member)| (member.calls, **rank));
        if let (Some((_, most)), Some((rank, least))) = (most, least)
            && most.calls > least.calls
        {
            short += 1;
            checks.mismatches += 1;
            // A rank that is behind the others is seen, whoever else is missing.
            if !is_complete {
                checks.compared += 1;
                checks.not_compared -= 1;
            }
            if short <= MOST_LISTED {
                let behind = it.members.values().filter(|member| member.calls < most.calls).count();
                let why = format!(
                    "{name}: rank {rank} made {}, others {}; furthest behind of {behind}: exited, \
                     hung, or its log is incomplete",
                    count(least.calls, "collective call"),
                    most.calls
                );
                let node = tally.processes.host(least.process);
                all.push(Finding::new("nccl-sequence-short", why).node(node));
            }
        }
    }
    for (code, found, what) in [
        ("nccl-sequence-short", short, "in which ranks made fewer calls than others"),
        ("nccl-init-incomplete", unfinished, "not fully initialized"),
    ] {
        if found > MOST_LISTED {
            let more = count((found - MOST_LISTED) as u64, "more communicator");
            all.push(Finding::new(code, format!("{more} {what}")));
        }
    }
    if holes > 0 {
        let communicators = count(holes, "communicator");
        let why = format!("calls of {communicators} are not compared: garbled or torn call lines");
        all.push(Finding::new("nccl-sequence-not-compared", why));
    }
}

fn unmatched(reader: &Reader, checks: &mut Checks, all: &mut Vec<Finding>) {
    let tally = &reader.tally;
    let mut pairs: Vec<_> = tally.pairs.iter().collect();
    pairs.sort_by_key(|(key, _)| **key);
    let mut unmatched_pairs = 0;
    for ((communicator, from, to), pair) in pairs {
        let Some(it) = tally.communicators.all.get(*communicator as usize) else { continue };
        // Unknown where the rank's log is missing or has a garbled line.
        let process = |rank: &u64| Some(tally.processes.get(it.members.get(rank)?.process)?.has_hole);
        let is_complete = process(from) == Some(false) && process(to) == Some(false);
        let members = [from, to].into_iter().filter_map(|rank| it.members.get(rank));
        let lost = lost_lines(reader, members.map(|member| member.process));
        let apart = pair.sends.abs_diff(pair.receives);
        // What torn lines lost may be the messages that lack, or one too many.
        let is_compared = is_complete && (lost == 0 || apart > lost);
        checks.pairs += u64::from(is_compared);
        checks.pairs_not_compared += u64::from(!is_compared);
        if !is_compared || apart == 0 {
            continue;
        }
        checks.unmatched += 1;
        unmatched_pairs += 1;
        if unmatched_pairs <= MOST_LISTED {
            let why = format!(
                "{}: rank {from} sends {} to rank {to}, which receives {}",
                name(*communicator as usize, it),
                count(pair.sends, "time"),
                count(pair.receives, "time")
            );
            all.push(Finding::new("nccl-send-unmatched", why));
        }
    }
    if unmatched_pairs > MOST_LISTED {
        let more = count((unmatched_pairs - MOST_LISTED) as u64, "more pair");
        let why = format!("{more} of ranks with unequal sends and receives");
        all.push(Finding::new("nccl-send-unmatched", why));
    }
}
