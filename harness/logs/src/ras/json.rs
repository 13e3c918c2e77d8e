//! Reads JSON of RAS: reports, and events of `MONITOR`, one document behind another. JSON has no verdict of NCCL: what
//! differs between ranks is derived from their counts.

use super::mend::mend;
use super::{
    Absence, Communicator, Event, MOST_RANKS, MissingRank, NotUnderstood, OperationCounts, Owner, RankErrors,
    RankOwner, RanksAtCount, RasLog, Report, StatusOfRanks, hash,
};
use metric::finding::Finding;
use serde::Deserialize;
use serde_json::Number;
use std::collections::{BTreeMap, BTreeSet};

/// The text from its first document on; nothing where it has none. Answers of the protocol may stand before it.
pub(super) fn begin(text: &str) -> Option<&str> {
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    while !rest.starts_with('{') {
        let line = rest.lines().next()?;
        if !(line.trim_end() == "OK" || line.starts_with("SERVER PROTOCOL ")) {
            return None;
        }
        rest = rest.get(line.len()..)?.trim_start();
    }
    Some(rest)
}

/// A report, or an event: each has keys of its own.
#[derive(Deserialize)]
struct Document {
    nccl_version: Option<String>,
    timestamp: Option<String>,
    communicators_count: Option<Number>,
    communicators: Option<Vec<CommunicatorJson>>,
    ras: Option<Collection>,
    event: Option<String>,
    peer: Option<Peer>,
    details: Option<String>,
}

#[derive(Deserialize)]
struct Collection {
    collection_time_sec: Option<f64>,
    timeouts_count: Option<Number>,
}

#[derive(Deserialize)]
struct Peer {
    host: Option<String>,
    addr: Option<String>,
    pid: Option<Number>,
    cuda_devs: Option<Vec<Number>>,
}

#[derive(Deserialize)]
struct CommunicatorJson {
    hash: Option<String>,
    secondary_hash: Option<String>,
    size: Option<Number>,
    ranks_count: Option<Number>,
    missing_ranks_count: Option<Number>,
    ranks: Option<Vec<RankJson>>,
    missing_ranks: Option<Vec<RankJson>>,
}

#[derive(Deserialize)]
struct RankJson {
    rank: Option<Number>,
    host: Option<String>,
    pid: Option<Number>,
    cuda_dev: Option<Number>,
    nvml_dev: Option<Number>,
    status: Option<StatusJson>,
    collective_counts: Option<BTreeMap<String, Number>>,
}

#[derive(Deserialize)]
struct StatusJson {
    init_state: Option<Number>,
    async_error: Option<Number>,
    finalize_called: Option<bool>,
    destroy_flag: Option<bool>,
    abort_flag: Option<bool>,
    unresponsive: Option<bool>,
    considered_dead: Option<bool>,
}

pub(super) fn read(text: &str, file: &str) -> Result<RasLog, NotUnderstood> {
    let (text, mended) = mend(text);
    let mut log = RasLog::default();
    if mended > 0 {
        let message = format!("commas behind `nvml_dev` that NCCL 2.28 leaves out, added: {mended}");
        log.findings.push(Finding::new("ras-mended", message).file(file));
    }
    for document in serde_json::Deserializer::from_str(&text).into_iter::<Document>() {
        match document {
            Ok(document) => add(document, file, &mut log)?,
            // What came before counts, and that the rest is missing is said.
            Err(error) if !(log.reports.is_empty() && log.events.is_empty()) => {
                let message = format!("JSON breaks off or is broken at line {}", error.line());
                log.findings.push(Finding::new("ras-cut", message).file(file));
                break;
            }
            Err(error) if error.is_eof() => {
                return Err(NotUnderstood { reason: "truncated JSON: the report is incomplete".to_owned() });
            }
            // The message of the parser gives a place and never a content.
            Err(error) => {
                let (line, column) = (error.line(), error.column());
                return Err(NotUnderstood { reason: format!("broken JSON at line {line}, column {column}") });
            }
        }
    }
    Ok(log)
}

fn add(document: Document, file: &str, log: &mut RasLog) -> Result<(), NotUnderstood> {
    if let Some(event) = document.event {
        let peer = document.peer.map(owner_of_peer).unwrap_or_default();
        let details = document.details.filter(|details| !details.is_empty());
        log.events.push(Event { time: document.timestamp, event, peer, details });
        return Ok(());
    }
    let Some(communicators) = document.communicators else {
        let reason = "JSON without `communicators`, which is no report of NCCL RAS".to_owned();
        return Err(NotUnderstood { reason });
    };
    let announced = document.communicators_count.as_ref().and_then(Number::as_u64);
    let timeouts = document.ras.as_ref().and_then(|ras| ras.timeouts_count.as_ref()?.as_u64());
    let mut report = Report {
        file: file.to_owned(),
        is_json: true,
        nccl_version: document.nccl_version,
        time: document.timestamp,
        collection_s: document.ras.as_ref().and_then(|ras| ras.collection_time_sec),
        timeouts: timeouts.unwrap_or_default(),
        has_end: document.ras.is_some(),
        communicators_count: communicators.len() as u64,
        ..Report::default()
    };
    if announced.is_some_and(|announced| announced != report.communicators_count) {
        let found = report.communicators_count;
        let message = format!("communicators listed: {found}, announced: {}", announced.unwrap_or_default());
        log.findings.push(Finding::new("ras-contradicts", message).file(file));
    }
    for communicator in communicators {
        report.communicators.extend(communicator.checked(file, &mut log.findings));
    }
    leave_out_doubled(&mut report, &mut log.findings);
    log.reports.push(report);
    Ok(())
}

/// Of a communicator that is there twice, one is of another answer, and so may all others be.
fn leave_out_doubled(report: &mut Report, findings: &mut Vec<Finding>) {
    if let Some(hash) = doubled(&report.communicators) {
        let message = format!("{hash} is listed twice: two answers in one report, left out");
        findings.push(Finding::new("ras-contradicts", message).file(&report.file));
        report.communicators.clear();
    }
}

fn doubled(all: &[Communicator]) -> Option<String> {
    let mut known = BTreeSet::new();
    let doubled = all.iter().find(|it| !known.insert((it.hash.as_str(), it.secondary_hash.as_deref())));
    doubled.map(|it| it.hash.clone())
}

fn owner_of_peer(peer: Peer) -> Owner {
    let gpus = peer.cuda_devs.unwrap_or_default();
    let gpus: Vec<String> = gpus.iter().map(ToString::to_string).collect();
    Owner {
        node: peer.host.or(peer.addr).filter(|host| host != "unknown"),
        pid: peer.pid.and_then(|pid| pid.as_u64()),
        gpu: (!gpus.is_empty()).then(|| gpus.join(",")),
    }
}

impl CommunicatorJson {
    /// Nothing where its numbers are those of unset memory, which is reported.
    fn checked(self, file: &str, findings: &mut Vec<Finding>) -> Option<Communicator> {
        let name = self.hash.as_deref().and_then(hash);
        let size = self.size.as_ref().and_then(Number::as_u64);
        let (Some(hash), Some(size @ 1..=MOST_RANKS)) = (name, size) else {
            let message = "communicator without a hash or a possible size: left out";
            findings.push(Finding::new("ras-absurd", message).file(file));
            return None;
        };
        let (ranks, missing) = (self.ranks.unwrap_or_default(), self.missing_ranks.unwrap_or_default());
        let number =
            |rank: &RankJson| rank.rank.as_ref().and_then(Number::as_u64).filter(|rank| *rank < size);
        let absurd = ranks.iter().chain(&missing).filter(|rank| number(rank).is_none()).count();
        if absurd > 0 {
            let message = format!("{absurd} rank numbers of {hash} beyond its size {size}: left out");
            findings.push(Finding::new("ras-absurd", message).file(file));
        }
        // Numbers of missing ranks may be those of unset memory.
        let mut numbers: Vec<u64> = ranks.iter().filter_map(number).collect();
        numbers.sort_unstable();
        if let Some(rank) = numbers.windows(2).find_map(|pair| (pair[0] == pair[1]).then_some(pair[0])) {
            let message = format!("{hash} lists rank {rank} more than once: left out");
            findings.push(Finding::new("ras-contradicts", message).file(file));
            return None;
        }
        let (present, absent) = (ranks.len() as u64, missing.len() as u64);
        let announced = |number: &Option<Number>, found: u64| {
            number.as_ref().is_some_and(|it| it.as_u64() != Some(found))
        };
        let differs = announced(&self.ranks_count, present) || announced(&self.missing_ranks_count, absent);
        if present + absent != size || differs {
            let message = format!(
                "{hash} has size {size}, with {present} ranks and {absent} missing: starting, ending or cut"
            );
            findings.push(Finding::new("ras-contradicts", message).file(file));
        }
        let mut communicator = Communicator {
            hash,
            secondary_hash: self.secondary_hash,
            size: Some(size),
            ranks: Some(present),
            missing_count: absent,
            ..Communicator::default()
        };
        let ranks: Vec<(RankOwner, RankJson)> =
            ranks.into_iter().filter_map(|rank| Some((rank.owner(number(&rank)?), rank))).collect();
        for rank in missing {
            let Some(number) = number(&rank) else { continue };
            let flag = |read: fn(&StatusJson) -> Option<bool>| rank.status.as_ref().and_then(read);
            let why = match (flag(|it| it.considered_dead), flag(|it| it.unresponsive)) {
                (Some(true), _) => Absence::Dead,
                (_, Some(false)) => Absence::NoMember,
                _ => Absence::Unresponsive,
            };
            communicator.missing.push(MissingRank { rank: rank.owner(number), why });
        }
        communicator.differing = differing(&ranks);
        communicator.statuses = statuses(&ranks);
        communicator.errors = errors(&ranks);
        Some(communicator)
    }
}

impl RankJson {
    fn owner(&self, rank: u64) -> RankOwner {
        let (cuda, nvml) = (self.cuda_dev.as_ref(), self.nvml_dev.as_ref());
        let cuda = cuda.and_then(Number::as_u64);
        let gpu = match (cuda, nvml.and_then(Number::as_u64)) {
            (Some(cuda), Some(nvml)) if cuda != nvml => Some(format!("{cuda} (NVML {nvml})")),
            (cuda, _) => cuda.map(|cuda| cuda.to_string()),
        };
        let node = self.host.clone().filter(|host| host != "unknown");
        RankOwner { rank, owner: Owner { node, pid: self.pid.as_ref().and_then(Number::as_u64), gpu } }
    }

    fn status(&self) -> &'static str {
        let Some(status) = &self.status else { return "unknown" };
        let is = |flag: Option<bool>| flag == Some(true);
        match status.init_state.as_ref().and_then(Number::as_i64) {
            _ if is(status.abort_flag) => "ABORT",
            _ if is(status.finalize_called) || is(status.destroy_flag) => "FINALIZE",
            Some(0) => "RUNNING",
            _ => "INIT",
        }
    }
}

/// By a key of each rank: the ranks that share it.
fn grouped<K: Ord>(
    ranks: &[(RankOwner, RankJson)],
    key: impl Fn(&RankJson) -> Option<K>,
) -> BTreeMap<K, Vec<RankOwner>> {
    let mut groups: BTreeMap<K, Vec<RankOwner>> = BTreeMap::new();
    for (owner, rank) in ranks {
        if let Some(key) = key(rank) {
            groups.entry(key).or_default().push(owner.clone());
        }
    }
    groups
}

const MOST_OPERATIONS: usize = 16;

fn differing(ranks: &[(RankOwner, RankJson)]) -> Vec<OperationCounts> {
    let names = ranks.iter().flat_map(|(_, rank)| rank.collective_counts.iter().flat_map(BTreeMap::keys));
    let mut names: Vec<&String> = names.collect();
    names.sort();
    names.dedup();
    // NCCL counts five.
    names.truncate(MOST_OPERATIONS);
    let counts = names.into_iter().filter_map(|name| {
        let groups = grouped(ranks, |rank| rank.collective_counts.as_ref()?.get(name)?.as_u64());
        let launched = groups.into_iter().map(|(launched, listed)| RanksAtCount {
            launched,
            ranks: listed.len() as u64,
            listed,
        });
        let launched: Vec<RanksAtCount> = launched.collect();
        (launched.len() > 1).then(|| OperationCounts { operation: Some(name.clone()), launched })
    });
    counts.collect()
}

fn statuses(ranks: &[(RankOwner, RankJson)]) -> Vec<StatusOfRanks> {
    let groups = grouped(ranks, |rank| Some(rank.status()));
    if groups.len() < 2 {
        return Vec::new();
    }
    let all = groups.into_iter().map(|(status, listed)| StatusOfRanks {
        status: status.to_owned(),
        ranks: listed.len() as u64,
        listed,
    });
    all.collect()
}

/// Which result of a rank is looked at.
type ResultCode = fn(&StatusJson) -> Option<&Number>;

fn errors(ranks: &[(RankOwner, RankJson)]) -> Vec<RankErrors> {
    /// In progress, which is no error.
    const IN_PROGRESS: i64 = 7;
    let phases: [(&str, ResultCode); 2] =
        [("initialization", |it| it.init_state.as_ref()), ("asynchronous", |it| it.async_error.as_ref())];
    let of_phase = |(phase, read): (&'static str, ResultCode)| {
        let code = move |rank: &RankJson| rank.status.as_ref().and_then(read).and_then(Number::as_i64);
        let groups = grouped(ranks, |rank| code(rank).filter(|code| *code != 0 && *code != IN_PROGRESS));
        groups.into_iter().map(move |(code, listed)| RankErrors {
            phase: phase.to_owned(),
            error: format!("ncclResult {code}"),
            ranks: listed.len() as u64,
            listed,
        })
    };
    phases.into_iter().flat_map(of_phase).collect()
}
