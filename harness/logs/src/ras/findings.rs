//! What reports say together: ranks that are missing, dead or behind, and what the reports cannot show. The ranks that a
//! report lists are the smaller set, which is not always the late one: only the majority of a communicator says who is.

use super::{Absence, Communicator, OperationCounts, Owner, RankOwner, RasLog, Report};
use crate::text::count;
use metric::finding::Finding;
use std::collections::{BTreeMap, BTreeSet};

/// So many ranks of one communicator are named.
const MOST_NAMED: usize = 16;
/// A collection that takes longer waits for peers.
const SLOW_S: f64 = 2.0;

pub(super) fn add(log: &mut RasLog) {
    let mut found = Vec::new();
    other_versions(&log.reports, &mut found);
    let last = last_reports(&log.reports);
    let lags = lags(&log.reports);
    for (at, report) in log.reports.iter().enumerate() {
        report_findings(report, &mut found);
        for communicator in &report.communicators {
            if last.get(&key(communicator)) == Some(&at) {
                communicator_findings(report, communicator, &lags, &mut found);
            }
        }
    }
    let dead = log.events.iter().filter(|event| event.event.contains("DEAD"));
    for event in dead {
        let time = event.time.as_deref().unwrap_or("unknown time");
        let who = owner(&event.peer);
        let message = format!("process died as RAS sees it, {time}: {who}");
        found.push(placed(Finding::new("ras-process-dead", message), &event.peer));
    }
    log.findings.extend(found);
}

/// All processes of a job have the same NCCL.
fn other_versions(reports: &[Report], found: &mut Vec<Finding>) {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for report in reports {
        versions.entry(&report.file).or_default().extend(report.nccl_version.as_deref());
    }
    for (file, versions) in versions.into_iter().filter(|(_, versions)| versions.len() > 1) {
        let versions: Vec<&str> = versions.into_iter().collect();
        let message = format!("answers of NCCL {}: of different jobs", versions.join(" and "));
        found.push(Finding::new("ras-contradicts", message).file(file));
    }
}

fn key(communicator: &Communicator) -> (&str, Option<&str>) {
    (&communicator.hash, communicator.secondary_hash.as_deref())
}

/// The last report with each communicator: what an earlier one says may be over.
fn last_reports(reports: &[Report]) -> BTreeMap<(&str, Option<&str>), usize> {
    let all = reports.iter().enumerate();
    all.flat_map(|(at, report)| report.communicators.iter().map(move |it| (key(it), at))).collect()
}

/// `10.0.0.1 GPU 5 pid 17`, as far as it is known.
fn owner(owner: &Owner) -> String {
    let part = |name: &str, value: Option<String>| value.map(|value| format!("{name} {value}"));
    let parts = [
        owner.node.clone(),
        part("GPU", owner.gpu.clone()),
        part("pid", owner.pid.map(|pid| pid.to_string())),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "process unknown".to_owned() } else { parts.join(" ") }
}

fn placed(finding: Finding, owner: &Owner) -> Finding {
    let finding = match &owner.node {
        Some(node) => finding.node(node),
        None => finding,
    };
    match owner.gpu.as_deref().and_then(|gpu| gpu.split(' ').next()) {
        Some(gpu) if gpu.bytes().all(|byte| byte.is_ascii_digit()) => finding.part(format!("gpu{gpu}")),
        _ => finding,
    }
}

fn report_findings(report: &Report, found: &mut Vec<Finding>) {
    let mut find = |code: &str, message: String| found.push(Finding::new(code, message).file(&report.file));
    if !report.has_end {
        let message = "report ends before its last part: cut, and incomplete".to_owned();
        find("ras-cut", message);
    }
    if report.timeouts > 0 {
        let timeouts = count(report.timeouts, "time-out");
        find("ras-incomplete", format!("{timeouts} while RAS collected: the report is incomplete"));
    }
    if report.silent.count > 0 {
        let listed = report.silent.listed.len();
        let silent = report.silent.count;
        find("ras-incomplete", format!("processes without an answer: {silent}, {listed} of them listed"));
    }
    if let Some(seconds) = report.collection_s.filter(|seconds| *seconds >= SLOW_S) {
        find("ras-slow", format!("RAS collected for {seconds} s, limit {SLOW_S} s: peers are slow or gone"));
    }
    if report.communicators_count == 0 && report.communicators.is_empty() {
        find("ras-incomplete", "report lists no communicator".to_owned());
    }
    for error in &report.unexplained {
        find("ras-incomplete", format!("{error} without its ranks: the report does not list them"));
    }
    let groups = [("ras-process-silent", "did not answer", &report.silent)];
    let groups = groups.into_iter().chain([("ras-process-dead", "dead, 60 s without contact", &report.dead)]);
    for (code, what, processes) in groups {
        for process in processes.listed.iter().take(MOST_NAMED) {
            let finding = Finding::new(code, format!("process {what}: {}", owner(process)));
            found.push(placed(finding.file(&report.file), process));
        }
        let more = processes.count.saturating_sub(processes.listed.len().min(MOST_NAMED) as u64);
        if more > 0 {
            let message = format!("{more} more processes {what}, not listed");
            found.push(Finding::new(code, message).file(&report.file));
        }
    }
}

fn communicator_findings(
    report: &Report,
    communicator: &Communicator,
    lags: &Lags<'_>,
    found: &mut Vec<Finding>,
) {
    let hash = &communicator.hash;
    let gone = communicator.missing.iter().filter(|it| it.why != Absence::NoMember);
    for missing in gone.clone().take(MOST_NAMED) {
        let (code, what) = match missing.why {
            Absence::Dead => ("ras-rank-dead", "dead, 60 s without contact"),
            _ => ("ras-rank-missing", "no answer"),
        };
        let message = format!("rank {} of {hash}: {what}; {}", missing.rank.rank, owner(&missing.rank.owner));
        found.push(placed(Finding::new(code, message).file(&report.file), &missing.rank.owner));
    }
    let strangers = communicator.missing.iter().filter(|it| it.why == Absence::NoMember).count() as u64;
    if strangers > 0 {
        let message =
            format!("ranks of {hash} that answered and are no members: {strangers}; starting or ending");
        found.push(Finding::new("ras-no-member", message).file(&report.file));
    }
    let named = gone.count().min(MOST_NAMED) as u64 + strangers;
    let more = communicator.missing_count.saturating_sub(named);
    if more > 0 {
        let message = format!("{} of {hash} missing, not listed", count(more, "more rank"));
        found.push(Finding::new("ras-rank-missing", message).file(&report.file));
    }
    for counts in &communicator.differing {
        behind(report, communicator, counts, lags, found);
    }
    for errors in &communicator.errors {
        let ranks = ranks(&errors.listed, errors.ranks);
        let message = format!("{} error on {ranks} of {hash}: {}", errors.phase, errors.error);
        let finding = Finding::new("ras-rank-error", message).file(&report.file);
        let owner = errors.listed.first().filter(|_| errors.ranks == 1).map(|it| it.owner.clone());
        found.push(placed(finding, &owner.unwrap_or_default()));
    }
    if communicator.statuses.len() > 1 {
        let statuses = communicator.statuses.iter();
        let sets: Vec<String> =
            statuses.map(|it| format!("{}: {}", it.status, ranks(&it.listed, it.ranks))).collect();
        let message = format!("ranks of {hash} differ in status: {}", sets.join("; "));
        found.push(Finding::new("ras-status-differs", message).file(&report.file));
    }
}

/// `rank 3`, `ranks 3, 7`, or their number where they are many or not listed.
fn ranks(listed: &[RankOwner], all: u64) -> String {
    match listed {
        [one] if all == 1 => format!("rank {}", one.rank),
        [_, ..] if listed.len() as u64 == all && all <= 4 => {
            let numbers: Vec<String> = listed.iter().map(|it| it.rank.to_string()).collect();
            format!("ranks {}", numbers.join(", "))
        }
        _ => count(all, "rank"),
    }
}

/// Ranks below what more than half of the communicator launched. Without such a majority none is named.
fn behind(
    report: &Report,
    communicator: &Communicator,
    counts: &OperationCounts,
    lags: &Lags<'_>,
    found: &mut Vec<Finding>,
) {
    let hash = &communicator.hash;
    let operation = counts.operation.as_deref().unwrap_or("operations");
    if counts.launched.is_empty() {
        let message = format!("{operation} of {hash}: ranks differ, the report does not list them");
        found.push(Finding::new("ras-counts-differ", message).file(&report.file));
        return;
    }
    let seen: u64 = counts.launched.iter().map(|it| it.ranks).fold(0, u64::saturating_add);
    let mut listed: Vec<u64> =
        counts.launched.iter().flat_map(|set| &set.listed).map(|owner| owner.rank).collect();
    listed.sort_unstable();
    if let Some(rank) = listed.windows(2).find_map(|pair| (pair[0] == pair[1]).then_some(pair[0])) {
        let message = format!("{operation} of {hash}: two counts of rank {rank}; no culprit");
        found.push(Finding::new("ras-contradicts", message).file(&report.file));
        return;
    }
    let size = communicator.size.unwrap_or(seen).max(seen);
    let majority = counts.launched.iter().find(|it| it.ranks > size / 2);
    let Some(majority) = majority else {
        let sets: Vec<String> = counts
            .launched
            .iter()
            .map(|it| format!("{} at {}", count(it.ranks, "rank"), it.launched))
            .collect();
        let message = format!("{operation} of {hash}: {}; no majority, no culprit", sets.join(", "));
        found.push(Finding::new("ras-counts-differ", message).file(&report.file));
        return;
    };
    for set in counts.launched.iter().filter(|it| it.launched > majority.launched) {
        // The late ones are most of the communicator: these wait, and are not late.
        let message = format!(
            "{operation} of {hash}: {} at {}, {} others at {}: the few wait, no culprit",
            ranks(&set.listed, set.ranks),
            set.launched,
            majority.ranks,
            majority.launched
        );
        found.push(Finding::new("ras-counts-differ", message).file(&report.file));
    }
    for set in counts.launched.iter().filter(|it| it.launched < majority.launched) {
        for rank in set.listed.iter().take(MOST_NAMED) {
            let lag = lag(communicator, counts, rank.rank, set.launched);
            let times = lags.get(&lag).map_or(1, BTreeSet::len);
            let proof = if times > 1 { format!("in {times} reports") } else { "in one report".to_owned() };
            let message = format!(
                "rank {} of {hash}: {} {operation}, {} others {}; {}; {proof}",
                rank.rank,
                set.launched,
                majority.ranks,
                majority.launched,
                owner(&rank.owner)
            );
            found.push(placed(Finding::new("ras-rank-behind", message).file(&report.file), &rank.owner));
        }
        let more = set.ranks.saturating_sub(set.listed.len().min(MOST_NAMED) as u64);
        if more > 0 {
            let message = format!(
                "{} of {hash}, not listed: {} {operation}, {} others {}",
                count(more, "more rank"),
                set.launched,
                majority.ranks,
                majority.launched
            );
            found.push(Finding::new("ras-rank-behind", message).file(&report.file));
        }
    }
}

/// A communicator, an operation, a rank, and how many it launched.
type Lag<'a> = ((&'a str, Option<&'a str>), Option<&'a str>, u64, u64);
/// When each was seen. Every node of a job gives the same report: one time counts once.
type Lags<'a> = BTreeMap<Lag<'a>, BTreeSet<Result<&'a str, usize>>>;

fn lag<'a>(communicator: &'a Communicator, counts: &'a OperationCounts, rank: u64, launched: u64) -> Lag<'a> {
    (key(communicator), counts.operation.as_deref(), rank, launched)
}

fn lags(reports: &[Report]) -> Lags<'_> {
    let mut lags = Lags::new();
    for (at, report) in reports.iter().enumerate() {
        let time = report.time.as_deref().ok_or(at);
        for communicator in &report.communicators {
            for counts in &communicator.differing {
                for set in &counts.launched {
                    for rank in &set.listed {
                        let lag = lag(communicator, counts, rank.rank, set.launched);
                        lags.entry(lag).or_default().insert(time);
                    }
                }
            }
        }
    }
    lags
}
