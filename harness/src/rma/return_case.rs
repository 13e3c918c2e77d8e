//! One return case: the hardware, what all runs say of it, and the site's own names.

use super::sanitiser::SiteNames;
use crate::accept::contexts::contexts;
use crate::accept::hardware_numbers::numbers_of;
use config::inventory::Inventory;
use model::artefact::{Plan, ProbedNode};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use verdict::accept::site_names;
use verdict::history::hardware_record::{HardwareRecord, Scope, Sighting, verdicts};
use verdict::history::identifiers::Subject;
use verdict::history::past::{Past, Run};

pub(super) struct ReturnCase<'a> {
    pub past: &'a Past,
    pub subject: &'a Subject,
    pub record: &'a HardwareRecord,
    /// Runs in which nothing speaks against it are wanted, too.
    pub all: bool,
}

impl<'a> ReturnCase<'a> {
    pub(super) fn run(&self, sighting: &Sighting) -> &'a Run {
        &self.past.runs[sighting.run]
    }

    /// What the run's probe read of its node, where it shows the hardware.
    pub(super) fn probed(&self, sighting: &Sighting) -> Option<ProbedNode> {
        let probe = self.run(sighting).stored.probe().ok().flatten()?;
        let node = probe.nodes.into_iter().find(|node| node.node == sighting.node)?;
        sighting.is_probed.then_some(node)
    }

    /// Whether a verdict about it is red in that run.
    pub(super) fn is_red(&self, sighting: &Sighting) -> bool {
        let mut own = self.run(sighting).cases.iter().flat_map(|judged| verdicts(judged, sighting));
        own.any(|(scope, verdict)| scope == Scope::Own && verdict.status.is_red())
    }

    /// The counted runs that are red about it and do not blame it.
    pub(super) fn red_without_blame(&self) -> usize {
        let is_counted = |one: &&Sighting| !self.record.uncounted.iter().any(|(at, _)| *at == one.run);
        let counted = self.record.seen.iter().filter(is_counted);
        counted.filter(|one| !self.is_blamed(one) && self.is_red(one)).count()
    }

    pub(super) fn is_blamed(&self, sighting: &Sighting) -> bool {
        self.record.blames.iter().any(|blame| blame.run == sighting.run)
    }

    /// The runs that leave files: those that blame it or are red about it and the rounds of such an isolation, or all.
    pub(super) fn runs_with_files(&self) -> Vec<&'a Sighting> {
        let wanted = |sighting: &&Sighting| {
            let is_counted = !self.record.uncounted.iter().any(|(at, _)| *at == sighting.run);
            let is_against = self.is_blamed(sighting) || (is_counted && self.is_red(sighting));
            self.all || is_against || self.record.rounds.contains(&sighting.run)
        };
        self.record.seen.iter().filter(wanted).collect()
    }

    /// What stays and what goes, by all runs; also what each pseudonym of a node stands for.
    pub(super) fn site_names(&self, inventories: &[Inventory], keep_names: bool) -> SiteNames {
        let mut own: BTreeSet<String> = self.record.seen.iter().map(|one| one.node.clone()).collect();
        own.insert(self.subject.node.clone());
        let mut stay: BTreeSet<String> = BTreeSet::new();
        for sighting in &self.record.seen {
            let probed = self.probed(sighting);
            stay.extend(probed.iter().flat_map(numbers_of).map(str::to_owned));
            own.extend(probed.and_then(|node| node.host_name));
        }
        let mut names = SiteNames::default();
        let mut peers: BTreeSet<String> =
            inventories.iter().flat_map(|one| one.nodes.iter().cloned()).collect();
        let mut others: BTreeMap<String, &str> = BTreeMap::new();
        for run in &self.past.runs {
            let probe = run.stored.probe().ok().flatten();
            let probed = probe.as_ref().map(|probe| probe.nodes.as_slice()).unwrap_or_default();
            names.numbers.add(probed.iter(), &stay);
            let named = probed.iter().flat_map(|node| [Some(&node.node), node.host_name.as_ref()]).flatten();
            peers.extend(run.plan().nodes.iter().chain(named).cloned());
            for (what, name) in names_in(run.plan()) {
                others.entry(name).or_insert(what);
            }
        }
        let contexts = contexts(self.past.runs.iter().map(|run| run.stored.folder()));
        for context in contexts.into_iter().filter(|context| site_names::is_own(context, 3)) {
            others.entry(context).or_insert("context-1");
        }
        peers.retain(|peer| !own.contains(peer));
        let mut peers: Vec<String> = peers.into_iter().collect();
        // By chance, and kept nowhere: an order of names would say which node is the first.
        let chance = RandomState::new();
        peers.sort_by_cached_key(|peer| chance.hash_one(peer));
        if !keep_names {
            let numbered = peers.into_iter().enumerate().map(|(at, name)| (name, format!("peer-{}", at + 1)));
            names.peers = numbered.collect();
        }
        // Its numbers are looked for too: a node's name may be the beginning of one.
        names.own = own.into_iter().chain(stay).collect();
        let of_inventories = inventories.iter().flat_map(site_names::inventory_names);
        names.others = of_inventories.chain(site_names::machine_names()).collect();
        names.others.extend(others.into_iter().map(|(name, what)| (what.to_owned(), name)));
        names
    }
}

/// The options of Slurm that name what is the site's own.
const OPTIONS: [(&str, &str); 4] = [
    ("--partition=", "partition-1"),
    ("--account=", "account-1"),
    ("--reservation=", "reservation-1"),
    ("--qos=", "qos-1"),
];
/// Where homes of users lie.
const HOMES: [&str; 3] = ["/home/", "/Users/", "/users/"];

/// Queues, accounts and users that a plan names, each with what stands for it.
fn names_in(plan: &Plan) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let mut add = |what: &'static str, name: &str| {
        if site_names::is_own(name, 3) && name != plan.instance.name {
            found.push((what, name.to_owned()));
        }
    };
    add("cluster-1", &plan.inventory);
    add("/shared", plan.folder.strip_suffix(&format!("/{}", plan.run_id)).unwrap_or_default());
    add("reservation-1", plan.reservation.as_deref().unwrap_or_default());
    let jobs = plan.cases.iter().flat_map(|case| &case.jobs);
    let texts = jobs.flat_map(|job| {
        job.launch.iter().chain(job.files.iter().filter_map(|file| file.text.as_ref())).map(String::as_str)
    });
    for text in texts.chain([plan.folder.as_str()]) {
        for (option, what) in OPTIONS {
            for (at, _) in text.match_indices(option) {
                add(what, word(&text[at + option.len()..]));
            }
        }
        for home in HOMES {
            for (at, _) in text.match_indices(home) {
                add("user-1", word(&text[at + home.len()..]));
            }
        }
    }
    found
}

fn word(text: &str) -> &str {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c))).next().unwrap_or_default()
}
