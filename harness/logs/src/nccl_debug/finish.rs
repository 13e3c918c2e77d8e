//! The result of all lines of all streams. The tables are described in `tables`.

use super::tables::NcclLog;
use super::{Reader, checks, worlds};

impl Reader {
    /// The result of all streams together.
    pub fn finish(mut self) -> NcclLog {
        self.mend_hosts();
        let mut findings = self.findings.clone();
        let (found, checks) = checks::findings(&self);
        findings.extend(found);
        let Reader { tally, .. } = self;
        let mut hosts: Vec<String> = tally.processes.hosts();
        hosts.sort();
        NcclLog {
            lines: self.lines,
            of_nccl: self.of_nccl,
            understood: self.understood,
            cut: self.cut,
            garbled_calls: self.garbled_calls,
            unknown_calls: self.unknown_calls,
            unknown_operations: self.unknown_operations.all(),
            unknown: self.unknown.all(),
            looks_like: self.looks_like.filter(|_| self.of_nccl == 0),
            processes: tally.processes.count() as u64,
            hosts,
            warned: self.warnings.hosts.all(),
            versions: tally.versions.all(),
            drivers: tally.drivers.all(),
            networks: tally.networks.all(),
            providers: tally.providers.all(),
            plugins: tally.plugins.all(),
            variables: tally.variables.all(),
            operations: tally.operations.table(),
            histogram: tally.operations.histogram(),
            calls: tally.calls(),
            steps: tally.steps.table(),
            gpus: tally.gpus(),
            communicators: tally.communicator_rows(),
            communicators_beyond: tally.communicators.beyond,
            worlds: worlds::groups(&tally.communicators).into_iter().map(|(_, size)| size).collect(),
            rings: tally.wired.ring_rows(),
            trees: tally.wired.tree_rows(),
            channels: tally.wired.channel_rows(),
            nvls: tally.wired.nvls_rows(),
            nics: tally.wired.nic_rows(),
            chosen: tally.wired.chosen_rows(),
            net: tally.wired.net_rows(),
            timings: tally.wired.timing_rows(),
            bootstraps: tally.bootstraps.all(),
            connections: tally.connections(),
            choices: tally.choices(),
            warnings: self.warnings.all(),
            timed_out: self.timed_out,
            reached: self.reached,
            checks,
            findings,
        }
    }
}
