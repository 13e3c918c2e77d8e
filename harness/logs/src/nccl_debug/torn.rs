//! Torn host names. Where processes write into one file at once, a line may begin within another, and what stands
//! before its process is no name of a host. Such lines are the host's that they can be traced to, or no host's. Where
//! any host initialised a communicator, a name that did not is none, however many lines it has.

use super::Reader;
use super::processes::Processes;
use crate::text::count;
use metric::finding::Finding;
use std::collections::{BTreeSet, HashMap};

/// A host whose name is part of another's name is torn where it has fewer lines than this part of the other's.
const RARE: u64 = 20;
/// Each is compared with each.
const MOST: usize = 4096;

struct Host<'a> {
    name: &'a str,
    lines: u64,
    has_begun: bool,
    has_warned: bool,
    pids: BTreeSet<u64>,
    first: usize,
}

impl Host<'_> {
    /// Whether the name is torn from that of another host, or holds it.
    fn is_torn_from(&self, other: &Host) -> bool {
        let is_part = is_part(self.name, other.name);
        let is_rare = self.lines == 1 || self.lines.saturating_mul(RARE) <= other.lines;
        is_part && is_rare && !self.has_warned && (!self.has_begun || self.pids.is_subset(&other.pids))
    }
}

/// Whether a name may be the end of the other's, alone or behind the beginning of another line.
fn is_part(name: &str, other: &str) -> bool {
    holds(name, other) || other.ends_with(name)
}

/// Whether a name holds another as torn lines do: `nodnode-a` holds `node-a`, and `node-10` is no torn `node-1`.
fn holds(name: &str, other: &str) -> bool {
    name.match_indices(other).any(|(at, _)| {
        let goes_on = name[at + other.len()..].starts_with(|next: char| next.is_ascii_digit());
        !(goes_on && other.ends_with(|last: char| last.is_ascii_digit()))
    })
}

/// Names that are of no host, and whose lines they are where that is known.
fn find(processes: &Processes) -> HashMap<String, Option<String>> {
    let mut by_name: HashMap<&str, Host> = HashMap::new();
    for (at, it) in processes.all().iter().enumerate() {
        let host = by_name.entry(&it.host).or_insert_with(|| Host {
            name: &it.host,
            lines: 0,
            has_begun: false,
            has_warned: false,
            pids: BTreeSet::new(),
            first: at,
        });
        host.lines += it.lines;
        host.has_begun |= it.has_begun;
        host.has_warned |= it.has_warned;
        host.pids.insert(it.pid);
    }
    let mut hosts: Vec<Host> = by_name.into_values().collect();
    // What is surely there comes first.
    hosts.sort_by_key(|it| (!it.has_begun, std::cmp::Reverse(it.lines), it.first));
    let any_begun = hosts.first().is_some_and(|it| it.has_begun);
    let mut real: Vec<Host> = Vec::new();
    let mut torn = HashMap::new();
    for host in hosts {
        let of =
            real.iter().take(MOST).find(|other| host.is_torn_from(other)).map(|other| other.name.to_owned());
        // A host is there once it initialised a communicator or warned; where none did, the log may begin later.
        let is_stray = any_begun && !host.has_begun && !host.has_warned;
        match of.is_some() || is_stray {
            true => drop(torn.insert(host.name.to_owned(), of)),
            false => real.push(host),
        }
    }
    torn
}

impl Reader {
    /// Counts lines under torn names as lost by the processes that may have written them, so that what others did is
    /// compared all the same.
    fn lose_torn(&mut self, torn: &HashMap<String, Option<String>>) {
        let processes = &mut self.tally.processes;
        let of_torn = processes.all().iter().filter(|it| torn.contains_key(&it.host));
        let of_torn: Vec<(String, u64, u64)> =
            of_torn.map(|it| (it.host.clone(), it.pid, it.counted)).collect();
        for (at, (name, pid, lines)) in of_torn.into_iter().enumerate() {
            let may_be = |host: &str| !torn.contains_key(host) && is_part(&name, host);
            if at >= MOST || !processes.lose(&name, pid, lines, may_be) {
                self.lost = self.lost.saturating_add(lines);
            }
        }
    }

    /// Takes names out that are of no host, before tables are made.
    pub(super) fn mend_hosts(&mut self) {
        let torn = find(&self.tally.processes);
        let Some((name, of)) = torn.iter().min() else { return };
        let of = of
            .as_ref()
            .map_or_else(|| ", which initialised no communicator".to_owned(), |of| format!(" for `{of}`"));
        let lines: u64 = {
            let of_torn = |it: &&super::processes::Process| torn.contains_key(&it.host);
            self.tally.processes.all().iter().filter(of_torn).map(|it| it.lines).sum()
        };
        self.lose_torn(&torn);
        let name: String = name.chars().take(100).collect();
        let why = format!(
            "torn host name at the start of {}, for example `{name}`{of}; set NCCL_DEBUG_FILE=/path/%h.%p for one file per \
             process",
            count(lines, "line")
        );
        let mut finding = Finding::new("nccl-torn", why);
        finding.file = self.files.first().filter(|_| self.files.len() == 1).cloned();
        self.findings.push(finding);
        let rename = |host: &str| -> Option<String> {
            torn.get(host).map_or_else(|| Some(host.to_owned()), Clone::clone)
        };
        for finding in &mut self.findings {
            finding.node = finding.node.as_deref().and_then(rename);
        }
        self.tally.processes.rename(&rename);
        self.tally.wired.rename(&rename);
        self.warnings.rename(&rename);
    }
}
