//! Whether the kernels of a rank run longer than the same kernels of ranks that do the same work: on a slow GPU they
//! do, on a late host they do not.

use super::Evidence;
use super::robust::median;
use super::rounds::Group;
use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ratio {
    pub ratio: f64,
    /// In a round.
    pub extra_ns: i64,
}

/// Of the members whose kernels can be compared: those of a name of which every member ran as many.
pub(super) fn ratios(evidence: &Evidence, group: &Group) -> Vec<(usize, Ratio)> {
    let mut of_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for rank in &group.members {
        for (at, compute) in evidence.ranks[*rank].compute.iter().enumerate() {
            of_name.entry(&compute.name).or_default().push(at);
        }
    }
    let mut extra = vec![0.0; group.members.len()];
    let mut total = vec![0.0; group.members.len()];
    for places in of_name.values().filter(|places| places.len() == group.members.len()) {
        let kernels = group.members.iter().zip(places);
        let kernels: Vec<_> = kernels.map(|(rank, at)| &evidence.ranks[*rank].compute[*at]).collect();
        let first = kernels[0];
        if kernels
            .iter()
            .any(|other| other.count != first.count || other.first_ns.len() != first.first_ns.len())
        {
            continue;
        }
        let mut ratios: Vec<Vec<f64>> = kernels.iter().map(|_| Vec::new()).collect();
        for place in 0..first.first_ns.len() {
            let mut sorted: Vec<i64> =
                kernels.iter().map(|kernels| i64::from(kernels.first_ns[place])).collect();
            sorted.sort_unstable();
            for (member, kernels) in kernels.iter().enumerate() {
                let own = i64::from(kernels.first_ns[place]);
                let at = sorted.partition_point(|ns| *ns < own);
                let others = super::robust::median_of_others(&sorted, at).unwrap_or(own);
                if others > 0 {
                    ratios[member].push(own as f64 / others as f64);
                }
            }
        }
        for (member, kernels) in kernels.iter().enumerate() {
            if let Some(ratio) = median(&mut ratios[member]).filter(|ratio| *ratio > 0.0) {
                let usual = kernels.total_ns as f64 / ratio;
                extra[member] += kernels.total_ns as f64 - usual;
                total[member] += usual;
            }
        }
    }
    let compared = group.members.iter().enumerate().filter(|(member, _)| total[*member] > 0.0);
    let compared = compared.map(|(member, rank)| {
        let rounds = group.rounds[member].rounds as f64 + 1.0;
        let ratio = 1.0 + extra[member] / total[member];
        (*rank, Ratio { ratio, extra_ns: (extra[member] / rounds).round() as i64 })
    });
    compared.collect()
}

#[cfg(test)]
mod tests {
    use crate::stragglers::made::Job;
    use crate::stragglers::{Compute, Limits, judge};

    #[test]
    fn kernels_of_which_a_rank_ran_more_are_not_compared() {
        let ran =
            Job { hosts: 1, per_host: 4, steps: 20, across: false, global: false, ..Job::seeded(1) }.run();
        let kernels = |name: &str, count: u64, ns: u32| Compute {
            name: name.to_owned(),
            count,
            total_ns: count * u64::from(ns),
            first_ns: vec![ns; 4],
        };
        let mut computes: Vec<Vec<Compute>> =
            (0..4).map(|_| vec![kernels("gemm", 4, 100), kernels("norm", 4, 10)]).collect();
        let ratios = |computes: &[Vec<Compute>]| {
            let judgement = judge(&ran.evidence(computes), &Limits::default());
            judgement.ranks.iter().map(|rank| rank.compute_ratio).collect::<Vec<_>>()
        };
        assert_eq!(ratios(&computes), [Some(1.0); 4]);
        computes[2][0] = kernels("gemm", 5, 300);
        assert_eq!(ratios(&computes), [Some(1.0); 4], "by what is left");
        computes[2][1] = kernels("other", 4, 10);
        assert_eq!(ratios(&computes), [None; 4]);
    }
}
