//! Whose records there are: the ranks of a job's communicators, those of which nothing is there, and where each runs.

use crate::recipe::{JobInput, Workload};
use logs::inspector::{InspectorLog, MemberRecords};
use std::collections::{BTreeMap, BTreeSet};

/// Host and number.
type Process<'a> = (Option<&'a str>, Option<u64>);

pub(super) struct Ranks<'a> {
    job: &'a JobInput,
    log: &'a InspectorLog,
    /// Of a communicator of the job; none where a split mask divides them.
    declared: Option<u64>,
}

fn is_of(declared: Option<u64>, member: &MemberRecords) -> bool {
    member.records > 0 && declared.is_none_or(|ranks| ranks == member.ranks)
}

impl<'a> Ranks<'a> {
    pub(super) fn new(job: &'a JobInput, log: &'a InspectorLog) -> Ranks<'a> {
        let declared = match &job.workload {
            Workload::NcclTests { ranks_per_communicator, .. } => ranks_per_communicator.map(u64::from),
            _ => None,
        };
        Ranks { job, log, declared }
    }

    /// Those of the communicators that the job is about, with their places in the log.
    pub(super) fn members(&self) -> impl Iterator<Item = (usize, &'a MemberRecords)> {
        let declared = self.declared;
        let members = self.log.members.iter().enumerate();
        members.filter(move |(_, member)| is_of(declared, member))
    }

    pub(super) fn member(&self, at: usize) -> Option<&'a MemberRecords> {
        self.log.members.get(at).filter(|member| is_of(self.declared, member))
    }

    /// The ranks without a record, by communicator.
    fn absent(&self) -> Vec<(u64, Vec<u64>)> {
        let mut seen: BTreeMap<&str, (u64, BTreeSet<u64>)> = BTreeMap::new();
        for (_, member) in self.members() {
            let (ranks, seen) = seen.entry(&member.communicator).or_default();
            *ranks = member.ranks;
            seen.insert(member.rank);
        }
        // A header can claim any number.
        let most = (self.log.members.len() as u64).saturating_mul(2).max(1 << 16);
        let absent = seen.into_values().map(|(ranks, seen)| {
            (ranks, (0..ranks.min(most)).filter(|rank| !seen.contains(rank)).collect::<Vec<u64>>())
        });
        absent.filter(|(_, absent)| !absent.is_empty()).collect()
    }

    pub(super) fn are_all_there(&self) -> bool {
        self.members().next().is_some() && self.absent().is_empty()
    }

    /// Which ranks have none, for a person.
    pub(super) fn missing(&self) -> Option<String> {
        if self.log.records > 0 && self.members().next().is_none() {
            let declared = self.declared.unwrap_or_default();
            return Some(format!("no communicator of {declared} ranks has records"));
        }
        let absent = self.absent();
        let (ranks, first) = absent.first()?;
        let rank = first.first()?;
        let node = self.by_order(*rank, *ranks).map(|(node, gpu)| format!(" ({node} GPU {gpu})"));
        let all: usize = absent.iter().map(|(_, absent)| absent.len()).sum();
        let more = if all > 1 { format!(" and {} more", all - 1) } else { String::new() };
        Some(format!("rank {rank}{}{more} left no record", node.unwrap_or_default()))
    }

    /// Why some of the records are of another run: its processes are others, on the same hosts.
    pub(super) fn mixed(&self) -> Option<String> {
        let mut processes: BTreeMap<&str, BTreeSet<Process<'_>>> = BTreeMap::new();
        for (_, member) in self.members() {
            let process = (member.host.as_deref(), member.pid);
            processes.entry(&member.communicator).or_default().insert(process);
        }
        if let Workload::Training { ranks, .. } = &self.job.workload {
            let all: BTreeSet<&Process<'_>> = processes.values().flatten().collect();
            let has_more = all.len() as u64 > u64::from(*ranks);
            return has_more.then(|| {
                format!(
                    "records of {} processes, the job has {ranks} ranks: some are of another run",
                    all.len()
                )
            });
        }
        // GPUs that are tested alone have a communicator each.
        self.declared.filter(|ranks| *ranks > 1)?;
        let mut by_hosts: BTreeMap<BTreeSet<Option<&str>>, &BTreeSet<Process<'_>>> = BTreeMap::new();
        let is_mixed = processes.values().any(|these| {
            let hosts = these.iter().map(|(host, _)| *host).collect();
            *by_hosts.entry(hosts).or_insert(these) != these
        });
        is_mixed
            .then(|| "communicators of all ranks have other processes: some are of another run".to_owned())
    }

    /// Ranks are numbered along the nodes of their job.
    fn by_order(&self, rank: u64, ranks: u64) -> Option<(&'a str, u64)> {
        let per_node = ranks.checked_div(self.job.nodes.len() as u64).filter(|it| *it > 0)?;
        let node = self.job.nodes.get(usize::try_from(rank / per_node).ok()?)?;
        Some((node.as_str(), rank % per_node))
    }

    /// The node and GPU of a rank, where all of its job are in one communicator and its host says nothing else.
    pub(super) fn place(&self, member: &MemberRecords) -> Option<(&'a str, u64)> {
        self.declared?;
        let (node, gpu) = self.by_order(member.rank, member.ranks)?;
        let host = member.host.as_deref().and_then(|host| self.node_of_host(host));
        host.is_none_or(|host| host == node).then_some((node, gpu))
    }

    pub(super) fn node_of_host(&self, host: &str) -> Option<&'a str> {
        let short = |name: &'_ str| name.split('.').next().unwrap_or_default().to_owned();
        self.job.nodes.iter().find(|node| short(node) == short(host)).map(String::as_str)
    }
}
