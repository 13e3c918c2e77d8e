//! Whether the ranks of a job do the same: that each communicator was made, that all its ranks make the same calls in the same order,
//! that each message has its receiver, and that all processes are of one world. What is not known is not held against anybody.

use super::checks::TOLD;
use super::communicators::{Communicator, Communicators};
use super::tables::Checks;
use super::{Reader, worlds};
use metric::finding::Finding;

pub(super) fn findings(reader: &Reader, checks: &mut Checks, all: &mut Vec<Finding>) {
    missing(reader, all);
    apart(reader, all);
    sequences(reader, checks, all);
    unmatched(reader, checks, all);
}

/// Processes that no communicator joins with the others.
fn apart(reader: &Reader, all: &mut Vec<Finding>) {
    let tally = &reader.tally;
    let worlds = worlds::of(&tally.communicators);
    let [(_, largest), (other, of_other), ..] = worlds.as_slice() else { return };
    let host = tally.processes.host(*other);
    let why = format!(
        "{} groups of processes share no communicator, such as one of {largest} and one of {of_other} on `{host}`: the logs are of \
         several jobs, or ranks did not find each other",
        worlds.len()
    );
    all.push(Finding::new("nccl-worlds-apart", why).node(host));
}

/// How a communicator is called.
fn name(at: usize, it: &Communicator) -> String {
    match it.id {
        Some(id) => format!("communicator 0x{id:x} of {} ranks", it.nranks),
        None => format!("communicator {} of {} ranks", at + 1, it.nranks),
    }
}

/// Ranks whose logs are not there: of them nothing is known, and no call of others is held against theirs.
fn missing(reader: &Reader, all: &mut Vec<Finding>) {
    let communicators = reader.tally.communicators.all.iter().enumerate();
    let lacking: Vec<_> = communicators.filter(|(_, it)| (it.members.len() as u64) < it.nranks).collect();
    if let Some((at, first)) = lacking.first() {
        let why = format!(
            "{} communicators lack ranks in these logs, of which nothing is known, such as {}: {} are there",
            lacking.len(),
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
            if unfinished <= TOLD {
                let why = format!(
                    "{name}: {} began and did not come to an end with its making, the first of them rank {rank}",
                    incomplete.len()
                );
                all.push(Finding::new("nccl-init-incomplete", why));
            }
        }
        let has_hole = |process: u32| tally.processes.get(process).is_some_and(|process| process.has_hole);
        let is_torn = it.members.values().any(|member| has_hole(member.process));
        if is_torn {
            // Behind a call that cannot be read, every other one would seem to differ.
            holes += 1;
            checks.not_compared += 1;
            continue;
        }
        if let Some(difference) = &it.difference {
            let why = format!("{name}: {}", Communicators::told(difference, &tally.distinct));
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
        let called = it.members.values().any(|member| member.calls > 0);
        let is_whole = it.members.len() as u64 >= it.nranks && !it.beyond;
        if called && it.nranks > 1 {
            checks.compared += u64::from(is_whole);
            checks.not_compared += u64::from(!is_whole);
        }
        let most = it.members.iter().max_by_key(|(rank, member)| (member.calls, std::cmp::Reverse(**rank)));
        let least = it.members.iter().min_by_key(|(rank, member)| (member.calls, **rank));
        if let (Some((_, most)), Some((rank, least))) = (most, least)
            && most.calls > least.calls
        {
            short += 1;
            checks.mismatches += 1;
            // A rank that is behind the others is seen, whoever else is missing.
            if !is_whole {
                checks.compared += 1;
                checks.not_compared -= 1;
            }
            if short <= TOLD {
                let behind = it.members.values().filter(|member| member.calls < most.calls).count();
                let why = format!(
                    "{name}: rank {rank} made {} collective calls where others made {}, the furthest behind of {behind}: it \
                     ended or hangs, or the log is not whole",
                    least.calls, most.calls
                );
                let node = tally.processes.host(least.process);
                all.push(Finding::new("nccl-sequence-short", why).node(node));
            }
        }
    }
    for (code, count, what) in [
        ("nccl-sequence-short", short, "have ranks that called less than others"),
        ("nccl-init-incomplete", unfinished, "were begun and not made"),
    ] {
        if count > TOLD {
            all.push(Finding::new(code, format!("{} more communicators {what}", count - TOLD)));
        }
    }
    if holes > 0 {
        let why = format!("the calls of {holes} communicators are not compared: lines of calls are garbled");
        all.push(Finding::new("nccl-sequence-not-compared", why));
    }
}

fn unmatched(reader: &Reader, checks: &mut Checks, all: &mut Vec<Finding>) {
    let tally = &reader.tally;
    let mut pairs: Vec<_> = tally.pairs.iter().collect();
    pairs.sort_by_key(|(key, _)| **key);
    let mut told = 0;
    for ((communicator, from, to), pair) in pairs {
        let Some(it) = tally.communicators.all.get(*communicator as usize) else { continue };
        // What a rank did whose log is not there is not known, nor where a line of it was garbled.
        let process = |rank: &u64| Some(tally.processes.get(it.members.get(rank)?.process)?.has_hole);
        let is_whole = process(from) == Some(false) && process(to) == Some(false);
        checks.pairs += u64::from(is_whole);
        if !is_whole || pair.sends == pair.receives {
            continue;
        }
        checks.unmatched += 1;
        told += 1;
        if told <= TOLD {
            let why = format!(
                "{}: rank {from} sends {} times to rank {to}, which receives {} times",
                name(*communicator as usize, it),
                pair.sends,
                pair.receives
            );
            all.push(Finding::new("nccl-send-unmatched", why));
        }
    }
    if told > TOLD {
        let why = format!("{} more pairs of ranks send and receive unequally", told - TOLD);
        all.push(Finding::new("nccl-send-unmatched", why));
    }
}
