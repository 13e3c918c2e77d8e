//! From alarms to findings: which communicators do the same and are compared, and whom the slow ones have in common.

use crate::communicator::{Communicator, FEWEST_RANKS, Series};
use crate::finding::{Event, Finding, FindingKind, Place, Process};
use crate::separate::separate;
use crate::sequential::{Change, SinkTest, to_units};
use crate::state::{Observer, ProcessRow};
use std::collections::{BTreeMap, BTreeSet};

/// Processes, hosts and communicators that a finding lists; it counts them all.
const MOST_LISTED: usize = 64;

/// So many windows without a call are the end of what was compared.
const PAUSE: u32 = 60;

/// A series that is compared with its peers: those with a past of their own.
struct Changed<'a> {
    rate: &'a Rate,
    /// By how much its bandwidth is above its own past.
    units: i32,
}

/// The bandwidth of one communicator in a window.
struct Rate {
    id: String,
    operation: String,
    class: u32,
    units: i32,
    busbw: f32,
}

/// Communicators that do the same in a window: an operation of similar size, on as many ranks and hosts.
pub(crate) struct Groups {
    window: u32,
    rates: BTreeMap<String, Vec<Rate>>,
}

/// Slow series of one communicator.
struct Slow<'a> {
    id: &'a str,
    communicator: &'a Communicator,
    series: Vec<(&'a str, u32, &'a Series)>,
}

/// A group that sank, with the communicators in it and their bandwidths.
struct Sunk<'a> {
    test: &'a SinkTest,
    members: Vec<(&'a str, f32)>,
}

/// A process that comes last.
#[derive(Default)]
struct Late {
    /// In one of these it is an alarm that was not reported.
    is_new: bool,
    /// Communicators, with its rank there and by how much less it waits.
    places: Vec<(String, usize, f32)>,
}

fn series_mut<'a>(observer: &'a mut Observer, rate: &Rate) -> Option<&'a mut Series> {
    let communicator = observer.communicators.get_mut(&rate.id)?;
    communicator.operations.get_mut(&rate.operation)?.series.get_mut(&rate.class)
}

fn key(operation: &str, class: u32, ranks: usize, hosts: usize) -> String {
    format!("{operation} {class} {ranks} {hosts}")
}

fn hosts_of(observer: &Observer, communicator: &Communicator) -> BTreeSet<u32> {
    let rows = communicator.processes().filter_map(|it| observer.processes.get(it as usize));
    rows.map(|row| row.host).collect()
}

impl Groups {
    pub(crate) fn new(observer: &Observer, window: u32) -> Groups {
        let mut groups: BTreeMap<String, Vec<Rate>> = BTreeMap::new();
        for (id, communicator) in &observer.communicators {
            let hosts = hosts_of(observer, communicator).len();
            for (operation, of_operation) in &communicator.operations {
                for (class, series) in &of_operation.series {
                    let Some(rates) = series.windows.get(&window).filter(|it| it.calls > 0) else { continue };
                    let calls = f64::from(rates.calls);
                    groups.entry(key(operation, *class, communicator.ranks, hosts)).or_default().push(Rate {
                        id: id.clone(),
                        operation: operation.clone(),
                        class: *class,
                        units: to_units(rates.sum / calls),
                        busbw: (rates.busbw / calls) as f32,
                    });
                }
            }
        }
        Groups { window, rates: groups }
    }

    /// Whether something sank that had not before.
    pub(crate) fn step(&self, observer: &mut Observer, threshold: f64) -> bool {
        let mut is_new = false;
        for (key, rates) in &self.rates {
            // Each with its own past first: others that join or end, faster or slower, change nothing of it.
            let mut changed = Vec::new();
            for rate in rates {
                let Some(series) = series_mut(observer, rate) else { continue };
                series.busbw = rate.busbw;
                if series.own.is_ready() {
                    changed.push(Changed { rate, units: rate.units.saturating_sub(series.own.usual()) });
                }
                let change = series.own.step(rate.units, threshold);
                series.is_reported &= series.has_peers || change != Change::Calm;
            }
            if changed.len() >= FEWEST_RANKS {
                let usual = crate::sequential::median(changed.iter().map(|it| it.units));
                let group = observer.groups.entry(key.clone()).or_default();
                // After a long pause it may be another job.
                if self.window.saturating_sub(group.last) > PAUSE {
                    group.test = SinkTest::default();
                }
                group.last = self.window;
                is_new |= group.test.step(usual, threshold) == Change::Alarm;
                for Changed { rate, units } in &changed {
                    let Some(series) = series_mut(observer, rate) else { continue };
                    if !series.has_peers {
                        (series.has_peers, series.is_reported) = (true, false);
                    }
                    if series.test.step(units.saturating_sub(usual), threshold) == Change::Calm {
                        series.is_reported = false;
                    }
                }
            }
            let is_due = |rate: &Rate| series_mut(observer, rate).is_some_and(|it| it.is_due(threshold));
            is_new |= rates.iter().any(is_due);
        }
        is_new
    }

    /// Of its peers those with a higher bandwidth, and how many there are.
    fn peers(&self, key: &str, id: &str) -> (usize, usize) {
        let Some(rates) = self.rates.get(key) else { return (0, 0) };
        let Some(own) = rates.iter().find(|rate| rate.id == id) else { return (0, rates.len()) };
        (rates.iter().filter(|rate| rate.units > own.units).count(), rates.len() - 1)
    }
}

/// Reports what sank since the last time, and marks it as reported.
pub(crate) fn report_sinking(
    observer: &mut Observer,
    groups: &Groups,
    threshold: f64,
    events: &mut Vec<Event>,
) {
    let mut found = alike(observer);
    for crosses_hosts in [true, false] {
        found.extend(separated(observer, groups, crosses_hosts, threshold));
    }
    for finding in found {
        for place in &finding.shows {
            let Place::Series(id, operation, class) = place else { continue };
            let operation =
                observer.communicators.get_mut(id).and_then(|it| it.operations.get_mut(operation));
            if let Some(series) = operation.and_then(|it| it.series.get_mut(class)) {
                series.is_reported = true;
            }
        }
        add_or_extend(observer, finding, events);
    }
}

/// What sank on all alike, and what has no peers: neither blames anyone.
fn alike(observer: &Observer) -> Vec<Finding> {
    let is_known = |key: &str| {
        let place = Place::Group(key.to_owned());
        observer.findings.iter().any(|finding| finding.shows.contains(&place))
    };
    let mut groups: BTreeMap<&str, Sunk<'_>> = BTreeMap::new();
    let active = observer.groups.iter().filter(|(_, group)| group.test.evidence.is_active());
    for (key, group) in active.filter(|(key, _)| !is_known(key)) {
        groups.insert(key, Sunk { test: &group.test, members: Vec::new() });
    }
    let mut found = Vec::new();
    for (id, communicator) in &observer.communicators {
        let hosts = hosts_of(observer, communicator).len();
        for (operation, of_operation) in &communicator.operations {
            for (class, series) in &of_operation.series {
                if series.has_peers {
                    let key = key(operation, *class, communicator.ranks, hosts);
                    if let Some(sunk) = groups.get_mut(key.as_str()) {
                        sunk.members.push((id, series.busbw));
                    }
                } else if series.own.evidence.is_active() && !series.is_reported {
                    let shows = vec![Place::Series(id.clone(), operation.clone(), *class)];
                    let mut finding =
                        finding(FindingKind::AllSlower, operation, *class, series.own.drop(), shows);
                    finding.busbw = rate(series.busbw);
                    (finding.communicators, finding.communicators_in_all) = (vec![id.clone()], 1);
                    found.push(finding);
                }
            }
        }
    }
    for (key, Sunk { test, members }) in groups {
        let mut parts = key.split(' ');
        let operation = parts.next().unwrap_or_default();
        let class = parts.next().and_then(|class| class.parse().ok()).unwrap_or_default();
        let mut finding = finding(
            FindingKind::AllSlower,
            operation,
            class,
            test.drop(),
            vec![Place::Group(key.to_owned())],
        );
        let sum: f32 = members.iter().map(|(_, busbw)| busbw).sum();
        finding.busbw = rate(sum / members.len().max(1) as f32);
        finding.communicators_in_all = members.len();
        finding.communicators = members.iter().take(MOST_LISTED).map(|(id, _)| (*id).to_owned()).collect();
        found.push(finding);
    }
    found
}

fn rate(busbw: f32) -> Option<f64> {
    (busbw > 0.0).then(|| f64::from(busbw))
}

fn finding(kind: FindingKind, operation: &str, class: u32, lower_by: f64, shows: Vec<Place>) -> Finding {
    Finding {
        number: 0,
        kind,
        processes: Vec::new(),
        processes_in_all: 0,
        hosts: Vec::new(),
        is_whole_host: false,
        communicators: Vec::new(),
        communicators_in_all: 0,
        operation: operation.to_owned(),
        bytes: 1_u64.checked_shl(class).unwrap_or_default(),
        lower_by,
        busbw: None,
        peers: (0, 0),
        at_s: 0,
        shows,
    }
}

/// Slow communicators of one scope, by the processes that explain them.
fn separated(observer: &Observer, groups: &Groups, crosses_hosts: bool, threshold: f64) -> Vec<Finding> {
    let of_scope: Vec<(&String, &Communicator, usize)> = observer
        .communicators
        .iter()
        .map(|(id, it)| (id, it, hosts_of(observer, it).len()))
        .filter(|(_, _, hosts)| (*hosts > 1) == crosses_hosts)
        .collect();
    let series_of = |communicator: &'_ Communicator, hosts: usize| {
        let ranks = communicator.ranks;
        let all = communicator.operations.iter().flat_map(move |(operation, of_operation)| {
            of_operation.series.keys().map(move |class| (operation.clone(), *class))
        });
        all.map(move |(operation, class)| (key(&operation, class, ranks, hosts), operation, class))
            .collect::<Vec<_>>()
    };
    let mut slow: Vec<Slow<'_>> = Vec::new();
    let mut slow_keys: BTreeSet<String> = BTreeSet::new();
    let mut is_new = false;
    for (id, communicator, hosts) in &of_scope {
        let mut series = Vec::new();
        for (operation, of_operation) in &communicator.operations {
            for (class, one) in &of_operation.series {
                if one.is_slow(threshold) {
                    slow_keys.insert(key(operation, *class, communicator.ranks, *hosts));
                    is_new |= one.is_due(threshold);
                    series.push((operation.as_str(), *class, one));
                }
            }
        }
        if !series.is_empty() {
            slow.push(Slow { id, communicator, series });
        }
    }
    if !is_new {
        return Vec::new();
    }
    let mut clear: Vec<BTreeSet<u32>> = Vec::new();
    for (_, communicator, hosts) in &of_scope {
        let mut compared = series_of(communicator, *hosts);
        compared.retain(|(key, _, _)| slow_keys.contains(key));
        let is_clear = |operation: &str, class: u32| {
            let series = communicator.operations.get(operation).and_then(|it| it.series.get(&class));
            series.is_some_and(|it| it.has_peers && it.test.is_ready() && it.test.evidence.is_clear())
        };
        if !compared.is_empty() && compared.iter().all(|(_, operation, class)| is_clear(operation, *class)) {
            clear.push(communicator.processes().collect());
        }
    }
    let members: Vec<BTreeSet<u32>> = slow.iter().map(|it| it.communicator.processes().collect()).collect();
    let mut by_host: BTreeMap<u32, (BTreeSet<u32>, Vec<usize>, usize)> = BTreeMap::new();
    let mut found = Vec::new();
    for explained in separate(&members, &clear) {
        let mut hosts = explained.processes.iter().filter_map(|it| observer.processes.get(*it as usize));
        let first = hosts.next().map(|row| row.host);
        match first.filter(|first| hosts.all(|row| row.host == *first)) {
            Some(host) => {
                let (processes, places, sets) = by_host.entry(host).or_default();
                processes.extend(explained.processes);
                places.extend(explained.slow);
                *sets += 1;
            }
            None => found.push(sinking(observer, groups, &slow, &explained.processes, &explained.slow)),
        }
    }
    // Several processes of a host are one fault more likely than several.
    for (processes, places, sets) in by_host.into_values() {
        let mut finding = sinking(observer, groups, &slow, &processes, &places);
        finding.is_whole_host = sets > 1;
        found.push(finding);
    }
    found
}

fn sinking(
    observer: &Observer,
    groups: &Groups,
    slow: &[Slow<'_>],
    processes: &BTreeSet<u32>,
    places: &[usize],
) -> Finding {
    let mut shows = Vec::new();
    let mut communicators = Vec::new();
    let mut worst: Option<(f64, &Slow<'_>, &str, u32, &Series)> = None;
    for one in places.iter().filter_map(|at| slow.get(*at)) {
        communicators.push(one.id.to_owned());
        for (operation, class, series) in &one.series {
            shows.push(Place::Series(one.id.to_owned(), (*operation).to_owned(), *class));
            let drop = series.test.drop();
            if worst.as_ref().is_none_or(|worst| drop > worst.0) {
                worst = Some((drop, one, operation, *class, series));
            }
        }
    }
    let (drop, operation, class) = worst.as_ref().map_or((0.0, "", 0), |it| (it.0, it.2, it.3));
    let mut finding = finding(FindingKind::Sinking, operation, class, drop, shows);
    if let Some((_, one, operation, class, series)) = worst {
        let hosts = hosts_of(observer, one.communicator).len();
        finding.busbw = rate(series.busbw);
        finding.peers = groups.peers(&key(operation, class, one.communicator.ranks, hosts), one.id);
    }
    finding.communicators_in_all = communicators.len();
    communicators.truncate(MOST_LISTED);
    finding.communicators = communicators;
    name(observer, &mut finding, processes);
    finding
}

fn name(observer: &Observer, finding: &mut Finding, processes: &BTreeSet<u32>) {
    finding.processes_in_all = processes.len();
    let hosts: BTreeSet<String> = processes
        .iter()
        .filter_map(|it| observer.processes.get(*it as usize))
        .filter_map(|row| observer.hosts.get(row.host as usize))
        .map(|host| host.name.clone())
        .collect();
    finding.hosts = hosts.into_iter().take(MOST_LISTED).collect();
    finding.processes =
        processes.iter().take(MOST_LISTED).filter_map(|process| observer.describe(*process)).collect();
}

/// Reports ranks that come last since the last time, and marks them as reported.
pub(crate) fn report_late(observer: &mut Observer, window: u32, threshold: f64, events: &mut Vec<Event>) {
    let mut late: BTreeMap<u32, Late> = BTreeMap::new();
    for (id, communicator) in &observer.communicators {
        for (rank, test) in communicator.late.iter().enumerate() {
            let member = communicator.members.get(&rank).copied();
            let Some(process) = member.filter(|_| test.evidence.is_strong(threshold)) else { continue };
            let late = late.entry(process).or_default();
            late.is_new |= test.evidence.is_active() && !test.is_reported;
            late.places.push((id.clone(), rank, test.less));
        }
    }
    let mut by_host: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for process in late.keys() {
        let Some(row) = observer.processes.get(*process as usize) else { continue };
        by_host.entry(row.host).or_default().insert(*process);
    }
    for (host, processes) in by_host {
        // Those of jobs that ended are no part of it.
        let goes_on = |(at, row): &(u32, &ProcessRow)| {
            row.host == host && (processes.contains(at) || observer.goes_on(row))
        };
        let on_host = (0..).zip(&observer.processes).filter(goes_on).count();
        let is_whole_host = processes.len() > 1 && processes.len() * 2 >= on_host;
        let sets: Vec<BTreeSet<u32>> = match is_whole_host {
            true => vec![processes],
            false => processes.into_iter().map(|one| BTreeSet::from([one])).collect(),
        };
        for set in sets {
            let rows: Vec<&Late> = set.iter().filter_map(|it| late.get(it)).collect();
            if !rows.iter().any(|late| late.is_new) {
                continue;
            }
            let places: Vec<&(String, usize, f32)> = rows.iter().flat_map(|late| &late.places).collect();
            let shows = places.iter().map(|(id, rank, _)| Place::Rank(id.clone(), *rank)).collect();
            let less = places.iter().map(|(_, _, less)| f64::from(*less)).fold(0.0, f64::max);
            let mut finding = finding(FindingKind::Straggler, "", 0, less, shows);
            let ids: BTreeSet<&String> = places.iter().map(|(id, _, _)| id).collect();
            finding.communicators_in_all = ids.len();
            finding.communicators = ids.into_iter().take(MOST_LISTED).cloned().collect();
            finding.bytes = 0;
            finding.is_whole_host = is_whole_host;
            let peers = places.iter().filter_map(|(id, _, _)| observer.communicators.get(id));
            let peers = peers.map(|it| it.ranks).max().unwrap_or(1) - 1;
            finding.peers = (peers, peers);
            finding.at_s = u64::from(window) * u64::from(observer.window_s());
            name(observer, &mut finding, &set);
            for place in &finding.shows {
                let Place::Rank(id, rank) = place else { continue };
                let test = observer.communicators.get_mut(id).and_then(|it| it.late.get_mut(*rank));
                if let Some(test) = test {
                    test.is_reported = true;
                }
            }
            add_or_extend(observer, finding, events);
        }
    }
}

/// What is known already shows in more places; what is known better replaces it.
fn add_or_extend(observer: &mut Observer, mut finding: Finding, events: &mut Vec<Event>) {
    if finding.at_s == 0 {
        finding.at_s = observer.closing_s();
    }
    let is_same_kind = |it: &&mut Finding| it.kind == finding.kind && finding.kind != FindingKind::AllSlower;
    let ids = |it: &Finding| -> BTreeSet<Process> { it.processes.iter().cloned().collect() };
    let new = ids(&finding);
    let known = observer.findings.iter_mut().filter(is_same_kind).find(|it| {
        let old = ids(it);
        let is_covered = it.is_whole_host && finding.hosts == it.hosts;
        is_covered || (old.is_superset(&new) && (!new.is_empty() || old.is_empty()))
    });
    let Some(known) = known else { return observer.add(finding, events) };
    let is_narrower = !known.is_whole_host && finding.processes_in_all < known.processes_in_all;
    if !is_narrower {
        known.shows.append(&mut finding.shows);
        known.shows.sort();
        known.shows.dedup();
        return;
    }
    let (number, kind, hosts, at_s) = (known.number, known.kind, known.hosts.clone(), finding.at_s);
    observer.findings.retain(|it| it.number != number);
    events.push(Event::Over { number, kind, hosts, at_s });
    observer.add(finding, events);
}
