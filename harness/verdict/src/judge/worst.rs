//! The worst number of each job beside its limit: what is said of a node that is found by elimination.

use super::Verdict;
use super::measured::part_name;
use metric::{Dim, Limit};
use model::artefact::PlannedAssertion;
use recipes::recipe;
use std::collections::BTreeMap;

/// By job and metric.
#[derive(Default)]
pub(super) struct WorstNumbers<'a>(BTreeMap<(&'a str, &'a str), Worst>);

struct Worst {
    /// How far it is from its limit, as a fraction of the limit.
    miss: f64,
    text: String,
}

impl<'a> WorstNumbers<'a> {
    /// Keeps the number of a verdict that failed, unless the job has a worse one. `link` is what joins GPUs of one node.
    pub(super) fn add(
        &mut self,
        job: &'a str,
        (nodes, link): (usize, &str),
        assertion: &'a PlannedAssertion,
        verdict: &Verdict,
    ) {
        let Some(observed) = verdict.observed else { return };
        let below = verdict.lower.filter(|lower| observed < *lower);
        let Some(limit) = below.or(verdict.upper.filter(|upper| observed > *upper)) else { return };
        let miss = (observed - limit).abs() / limit.abs().max(f64::MIN_POSITIVE);
        let key = (job, assertion.metric.as_str());
        if self.0.get(&key).is_some_and(|worst| worst.miss >= miss) {
            return;
        }
        let declared = recipe::built_in(&assertion.metric).and_then(|metric| metric.limit);
        let what = match (declared, nodes) {
            (Some(Limit::BusBandwidth), 1) => format!("{link} "),
            (Some(Limit::BusBandwidth), _) => "bus bandwidth ".to_owned(),
            _ => String::new(),
        };
        let (observed, limit) = (verdict.unit.show(observed), verdict.unit.show(limit));
        let text = format!("{what}{observed}, limit {limit} ({})", conditions(job, nodes, assertion));
        self.0.insert(key, Worst { miss, text });
    }

    /// Those of a job, by metric.
    pub(super) fn for_job(&self, job: &str) -> BTreeMap<String, String> {
        let own = self.0.range((job, "")..).take_while(|((of, _), _)| *of == job);
        own.map(|((_, metric), worst)| ((*metric).to_owned(), worst.text.clone())).collect()
    }
}

/// Operation, size and how many nodes took part: `all_reduce 1GiB, this node alone`.
fn conditions(job: &str, nodes: usize, assertion: &PlannedAssertion) -> String {
    let of = |dim: Dim| assertion.dims.get(dim).map(|value| part_name(dim, &value.to_string()));
    let what: Vec<String> = [Dim::Op, Dim::SizeBytes].into_iter().filter_map(of).collect();
    let what = if what.is_empty() { format!("job {job}") } else { what.join(" ") };
    match nodes {
        1 => format!("{what}, this node alone"),
        nodes => format!("{what}, {nodes} nodes"),
    }
}
