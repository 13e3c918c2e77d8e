//! The bottleneck by the shares of kernels and calls, and what to try. Every threshold is an argument; the defaults are
//! those of a published script.

use super::{Classes, Extract, classes};
use crate::kernel_class::communicates;
use crate::report::argument;
use crate::report::{ArgumentSpec, Arguments, Takes};

const fn threshold(name: &'static str, about: &'static str, number: u64) -> ArgumentSpec {
    argument!(name, about, Takes::Number(number))
}

pub(super) const COMMUNICATION: ArgumentSpec = threshold(
    "communication",
    "percentage of kernel time above which the work is bound by communication",
    40,
);
pub(super) const SYNC: ArgumentSpec =
    threshold("sync", "percentage of call time above which it is bound by synchronisation", 60);
pub(super) const COMPUTE: ArgumentSpec =
    threshold("compute", "percentage of kernel time above which it is bound by compute", 70);
pub(super) const MEMORY: ArgumentSpec =
    threshold("memory", "percentage of kernel time above which it is bound by memory transfers", 20);
pub(super) const ADVISE_COMMUNICATION: ArgumentSpec = threshold(
    "advise-communication",
    "percentage of kernel time above which there is advice on communication",
    30,
);
pub(super) const ADVISE_TRANSFERS: ArgumentSpec = threshold(
    "advise-transfers",
    "MB copied between host and GPUs above which there is advice on transfers",
    50_000,
);
pub(super) const ADVISE_SYNC: ArgumentSpec =
    threshold("advise-sync", "percentage of call time above which there is advice on synchronisation", 50);
pub(super) const ADVISE_SPREAD: ArgumentSpec = threshold(
    "advise-spread",
    "deviation of a kernel, as a percentage of its mean, above which there is advice",
    50,
);
pub(super) const ADVISE_RUNS: ArgumentSpec =
    threshold("advise-runs", "fewest runs of a kernel, exclusive, for its deviation to count", 50);

/// Deviations are checked only of this many kernels with the most time.
const LOOKED_AT: usize = 10;

/// Percentages of one report, or of all.
pub(super) struct Figures {
    /// Nothing of all reports together.
    pub rank: Option<i64>,
    pub communication: f64,
    /// Of calls; nothing where none were recorded.
    pub sync: Option<f64>,
    pub compute: f64,
    pub memory: f64,
    /// In MB.
    pub transfers: Option<f64>,
    pub spreads: Vec<Spread>,
}

/// A kernel's deviation in percent of its mean.
pub(super) struct Spread {
    pub name: String,
    pub runs: u64,
    pub percent: f64,
}

pub(super) fn figures(rank: Option<i64>, reports: &[&Extract], compat: bool) -> Figures {
    let sum =
        Classes::sum(reports.iter().flat_map(|extract| extract.gpus.iter().map(|(_, classes)| classes)));
    let share = |wanted: &dyn Fn(&str) -> bool| {
        let of: u128 = classes(compat)
            .iter()
            .zip(&sum.of)
            .filter(|(class, _)| wanted(class))
            .map(|(_, time)| if compat { time.sum } else { time.union })
            .sum();
        let all = if compat { sum.all.sum } else { sum.all.union };
        if all > 0 { 100.0 * of as f64 / all as f64 } else { 0.0 }
    };
    let calls: Vec<_> = reports.iter().filter_map(|extract| extract.calls).collect();
    let sync = match (calls.as_slice(), compat) {
        ([one], true) => Some(one.printed_percent),
        ([], true) => Some(0.0),
        ([], false) => None,
        (calls, _) => {
            let all: u128 = calls.iter().map(|calls| calls.all).sum();
            let waiting: u128 = calls.iter().map(|calls| calls.waiting).sum();
            (calls.len() == reports.len()).then(|| 100.0 * waiting as f64 / all as f64)
        }
    };
    let transfers: Vec<u64> = reports.iter().filter_map(|extract| extract.host_bytes).collect();
    Figures {
        rank,
        communication: share(&|class| communicates(class) || (compat && class.starts_with("NCCL"))),
        sync,
        compute: share(&|class| {
            matches!(
                class,
                "gemm" | "attention" | "GEMM (Compute)" | "Flash Attention" | "Softmax" | "Triton"
            )
        }),
        memory: share(&|class| matches!(class, "memory" | "Memory Copy")),
        transfers: (!transfers.is_empty()).then(|| transfers.iter().sum::<u64>() as f64 / 1e6),
        spreads: match reports {
            [one] => spreads(one),
            // Deviations are given per report only.
            _ => Vec::new(),
        },
    }
}

fn spreads(extract: &Extract) -> Vec<Spread> {
    let mut names: Vec<_> = extract.names.iter().collect();
    names.sort_by(|one, two| two.stats.total.cmp(&one.stats.total).then(one.name.cmp(&two.name)));
    let percent = |stats: &crate::figures::Stats| match stats.mean > 0.0 {
        true => 100.0 * stats.stddev / stats.mean,
        false => 0.0,
    };
    let looked_at = names.into_iter().take(LOOKED_AT);
    looked_at
        .map(|named| Spread {
            name: named.name.clone(),
            runs: named.stats.count,
            percent: percent(&named.stats),
        })
        .collect()
}

impl Figures {
    /// The bottleneck, with the observed share and its bound.
    pub(super) fn bound(&self, arguments: &Arguments) -> (&'static str, Option<(f64, u64)>) {
        let over = |share: f64, spec: &ArgumentSpec| {
            let bound = arguments.number(spec);
            (share > bound as f64).then_some((share, bound))
        };
        if let Some(why) = over(self.communication, &COMMUNICATION) {
            return ("Communication Bound", Some(why));
        }
        let Some(sync) = self.sync else { return ("not known", None) };
        let rules = [
            (sync, &SYNC, "Synchronization Bound"),
            (self.compute, &COMPUTE, "Compute Bound"),
            (self.memory, &MEMORY, "Memory Transfer Bound"),
        ];
        let mut bound =
            rules.into_iter().filter_map(|(share, spec, name)| Some((name, Some(over(share, spec)?))));
        bound.next().unwrap_or(("Mixed / Balanced", None))
    }

    pub(super) fn advice(&self, arguments: &Arguments) -> Vec<Advice> {
        let mut all = Vec::new();
        let mut advise = |topic, observed: Option<f64>, spec: &ArgumentSpec, unit, text: String| {
            let bound = arguments.number(spec);
            if let Some(observed) = observed.filter(|observed| *observed > bound as f64) {
                all.push(Advice { topic, observed, bound, unit, text });
            }
        };
        advise(
            "communication",
            Some(self.communication),
            &ADVISE_COMMUNICATION,
            "% of kernel time",
            "see with `breakdown` how much of it is exposed; check that NCCL's log names the network plugin, not \
             sockets; more work per GPU and step reduces the share of communication"
                .to_owned(),
        );
        advise(
            "transfers",
            self.transfers,
            &ADVISE_TRANSFERS,
            "MB",
            "host and GPUs exchange much data, such as offloaded activations or optimizer states; keep them on the \
             GPUs where memory is free"
                .to_owned(),
        );
        advise(
            "synchronisation",
            self.sync,
            &ADVISE_SYNC,
            "% of call time",
            "threads wait for GPUs: look in the loop for values that are read back in every step (`.item()`, `.cpu()`, \
             logging of losses) and for copies from pageable memory"
                .to_owned(),
        );
        let runs = arguments.number(&ADVISE_RUNS);
        let bound = arguments.number(&ADVISE_SPREAD) as f64;
        if let Some(spread) = self.spreads.iter().find(|one| one.runs > runs && one.percent > bound) {
            let text = format!(
                "durations of a kernel vary much over {} runs; if it communicates, some rank arrives late: {}",
                spread.runs, spread.name
            );
            advise("spread", Some(spread.percent), &ADVISE_SPREAD, "% of the mean", text);
        }
        all
    }
}

pub(super) struct Advice {
    pub topic: &'static str,
    pub observed: f64,
    pub bound: u64,
    pub unit: &'static str,
    pub text: String,
}
