//! How ranks are wired, which the log reports once per rank and channel: rings, trees, numbers of channels, NVLS, the
//! network cards a process found, and how long communicators took to begin. Bounded, as all tables.

use super::graph::{Edge, Tree};
use super::setup::Timings;
use super::tables::{OfChannels, OfChoiceOfHost, OfNet, OfNics, OfNvls, OfRing, OfTimings, OfTree};
use std::collections::BTreeMap;

pub(super) const MOST: usize = 1 << 14;
/// Longer rings are counted, and not shown.
const LONGEST_RING: usize = 4096;

/// Whether it is of NVLS, its channel, the rank, and who is above and below it.
type Place = (bool, u64, i64, Vec<i64>, Vec<i64>);

#[derive(Debug, Default)]
pub(super) struct Wired {
    rings: BTreeMap<(u64, Vec<u64>), u64>,
    trees: BTreeMap<Place, u64>,
    channels: BTreeMap<[Option<u64>; 5], u64>,
    /// By host: lines that say it is there, and that it is not.
    nvls: BTreeMap<String, (u64, u64)>,
    /// By host and what found them: the fewest and the most of its processes.
    nics: BTreeMap<(String, String), (u64, u64)>,
    /// By host, what is chosen and its name.
    chosen: BTreeMap<(String, &'static str, String), u64>,
    /// By host: connections over the network whose card reaches the GPU's memory itself, and others.
    net: BTreeMap<String, (u64, u64)>,
    /// By function and number of ranks.
    timings: BTreeMap<(String, u64), Timed>,
    pub beyond: u64,
}

#[derive(Debug, Default)]
struct Timed {
    lines: u64,
    sum_s: f64,
    slowest: Option<(f64, u64, String)>,
    parts: BTreeMap<String, f64>,
}

fn longest_first(parts: &BTreeMap<String, f64>) -> Vec<(String, f64)> {
    let mut parts: Vec<(String, f64)> =
        parts.iter().map(|(name, seconds)| (name.clone(), *seconds)).collect();
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    parts
}

/// Counts what a map holds, or has room for.
fn count<K: Ord>(map: &mut BTreeMap<K, u64>, beyond: &mut u64, key: K) {
    if map.len() < MOST || map.contains_key(&key) {
        *map.entry(key).or_default() += 1;
    } else {
        *beyond += 1;
    }
}

impl Wired {
    pub(super) fn ring(&mut self, channel: u64, ranks: &[u64]) {
        let mut ranks = ranks.to_vec();
        ranks.truncate(LONGEST_RING);
        count(&mut self.rings, &mut self.beyond, (channel, ranks));
    }

    pub(super) fn trees(&mut self, trees: &[Tree], is_nvls: bool) {
        for tree in trees {
            for half in &tree.halves {
                self.tree(is_nvls, tree.channel, half);
            }
        }
    }

    /// Below it are the ranks it gathers from, above it those it passes data to.
    pub(super) fn tree(&mut self, is_nvls: bool, channel: u64, edge: &Edge) {
        let key = (is_nvls, channel, edge.me, edge.behind.clone(), edge.before.clone());
        count(&mut self.trees, &mut self.beyond, key);
    }

    pub(super) fn channels(&mut self, numbers: [Option<u64>; 5]) {
        count(&mut self.channels, &mut self.beyond, numbers);
    }

    pub(super) fn nvls(&mut self, host: &str, available: bool) {
        if self.nvls.len() < MOST || self.nvls.contains_key(host) {
            let (there, not) = self.nvls.entry(host.to_owned()).or_default();
            *if available { there } else { not } += 1;
        } else {
            self.beyond += 1;
        }
    }

    pub(super) fn nics(&mut self, host: &str, by: &str, nics: u64) {
        let key = (host.to_owned(), by.to_owned());
        if self.nics.len() < MOST || self.nics.contains_key(&key) {
            let (least, most) = self.nics.entry(key).or_insert((u64::MAX, 0));
            (*least, *most) = ((*least).min(nics), (*most).max(nics));
        } else {
            self.beyond += 1;
        }
    }

    /// Which network or provider a process of a host uses.
    pub(super) fn chosen(&mut self, host: &str, what: &'static str, name: &str) {
        let name: String = name.chars().take(100).collect();
        count(&mut self.chosen, &mut self.beyond, (host.to_owned(), what, name));
    }

    pub(super) fn net(&mut self, host: &str, gdrdma: bool) {
        if self.net.len() < MOST || self.net.contains_key(host) {
            let (with, without) = self.net.entry(host.to_owned()).or_default();
            *if gdrdma { with } else { without } += 1;
        } else {
            self.beyond += 1;
        }
    }

    pub(super) fn begun(&mut self, host: &str, it: &Timings) {
        let key = (it.function.unwrap_or_default().to_owned(), it.nranks);
        if self.timings.len() >= MOST && !self.timings.contains_key(&key) {
            self.beyond += 1;
            return;
        }
        let timed = self.timings.entry(key).or_default();
        timed.lines += 1;
        timed.sum_s += it.total;
        if timed.slowest.as_ref().is_none_or(|(total, ..)| it.total > *total) {
            timed.slowest = Some((it.total, it.rank, host.to_owned()));
        }
        for (name, seconds) in &it.parts {
            if timed.parts.len() < 32 || timed.parts.contains_key(*name) {
                let longest = timed.parts.entry((*name).to_owned()).or_default();
                *longest = longest.max(*seconds);
            }
        }
    }

    /// Lines whose host is another are left out: the host has its own.
    pub(super) fn rename(&mut self, rename: &impl Fn(&str) -> Option<String>) {
        let is_own = |host: &String| rename(host).as_ref() == Some(host);
        self.nvls.retain(|host, _| is_own(host));
        self.nics.retain(|(host, _), _| is_own(host));
        self.chosen.retain(|(host, ..), _| is_own(host));
        self.net.retain(|host, _| is_own(host));
        for (_, _, host) in self.timings.values_mut().filter_map(|timed| timed.slowest.as_mut()) {
            *host = rename(host).unwrap_or_default();
        }
    }

    pub(super) fn ring_rows(&self) -> Vec<OfRing> {
        let one = |((channel, ranks), lines): (&(u64, Vec<u64>), &u64)| OfRing {
            channel: *channel,
            ranks: ranks.clone(),
            lines: *lines,
        };
        self.rings.iter().map(one).collect()
    }

    pub(super) fn tree_rows(&self) -> Vec<OfTree> {
        let one = |((nvls, channel, rank, above, below), lines): (&Place, &u64)| OfTree {
            nvls: *nvls,
            channel: *channel,
            rank: *rank,
            above: above.clone(),
            below: below.clone(),
            lines: *lines,
        };
        self.trees.iter().map(one).collect()
    }

    pub(super) fn channel_rows(&self) -> Vec<OfChannels> {
        let one = |([coll, collnet, nvls, p2p, per_peer], lines): (&[Option<u64>; 5], &u64)| OfChannels {
            coll: coll.unwrap_or_default(),
            collnet: *collnet,
            nvls: *nvls,
            p2p: p2p.unwrap_or_default(),
            per_peer: per_peer.unwrap_or_default(),
            lines: *lines,
        };
        self.channels.iter().map(one).collect()
    }

    pub(super) fn nvls_rows(&self) -> Vec<OfNvls> {
        let one = |(host, (there, not)): (&String, &(u64, u64))| OfNvls {
            host: host.clone(),
            available: *there,
            not_available: *not,
        };
        self.nvls.iter().map(one).collect()
    }

    pub(super) fn nic_rows(&self) -> Vec<OfNics> {
        let one = |((host, by), (least, most)): (&(String, String), &(u64, u64))| OfNics {
            host: host.clone(),
            by: by.clone(),
            least: *least,
            most: *most,
        };
        self.nics.iter().map(one).collect()
    }

    pub(super) fn chosen_rows(&self) -> Vec<OfChoiceOfHost> {
        let one = |((host, what, name), lines): (&(String, &'static str, String), &u64)| OfChoiceOfHost {
            host: host.clone(),
            what,
            name: name.clone(),
            lines: *lines,
        };
        self.chosen.iter().map(one).collect()
    }

    pub(super) fn net_rows(&self) -> Vec<OfNet> {
        let one = |(host, (with, without)): (&String, &(u64, u64))| OfNet {
            host: host.clone(),
            gdrdma: *with,
            not_gdrdma: *without,
        };
        self.net.iter().map(one).collect()
    }

    pub(super) fn timing_rows(&self) -> Vec<OfTimings> {
        let one = |((function, nranks), it): (&(String, u64), &Timed)| {
            let (slowest_s, slowest_rank, slowest_host) = it.slowest.clone().unwrap_or_default();
            OfTimings {
                function: (!function.is_empty()).then(|| function.clone()),
                nranks: *nranks,
                lines: it.lines,
                mean_s: it.sum_s / it.lines.max(1) as f64,
                slowest_s,
                slowest_rank,
                slowest_host,
                longest_parts_s: longest_first(&it.parts),
            }
        };
        self.timings.iter().map(one).collect()
    }
}
