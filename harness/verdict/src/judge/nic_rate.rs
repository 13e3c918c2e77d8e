//! The rate of a NIC over its rounds: compared with its floor and its peers, and which end of a slow flow is at fault.
//! The recipe reasons over the ring of partners; here its result becomes a verdict.

use super::CaseData;
use crate::isolate::siblings::{Part, Rate};
use logs::flow_log::GapKind;
use logs::flow_log::Tool;
use metric::finding::Meaning;
use metric::unit::Unit;
use metric::{Dim, Query, Role};
use model::artefact::{Culprit, JudgedBy, PlannedAssertion, PlannedBaseline, Status, Verdict};
use recipes::recipe::nic_rate::{self, Blame, FlowResult, NicRates, NicVerdict};
use std::collections::{BTreeMap, BTreeSet};

/// Judging the ring looks at all flows of the case at once, so it is done once per floor and not once per NIC.
#[derive(Default)]
pub(crate) struct NicRateCache {
    by_bound: BTreeMap<(u64, u64), Rates>,
}

/// Where no NIC of any node connected.
const CHECK_FABRIC: &str = "check that the EFA security group admits all traffic from and to itself, and that `nics` of \
                            the instance are names of `ls /sys/class/infiniband`";

struct Rates {
    rates: NicRates,
    index: BTreeMap<(String, String, &'static str), usize>,
}

pub(super) fn judges(assertion: &PlannedAssertion) -> bool {
    recipes::recipe::has_role(&assertion.metric, Role::OverRounds)
}

pub(super) fn judge(
    data: &CaseData,
    cache: &mut NicRateCache,
    assertion: &PlannedAssertion,
    verdict: &mut Verdict,
) {
    let Some(floor) = floor(assertion, verdict) else {
        verdict.status = Status::Inconclusive;
        verdict.message = format!("{}: no floor to compare with", super::subject(assertion));
        verdict.next = Some("add `at_least` to the assertion, or accept a baseline".to_owned());
        return;
    };
    let tolerance = assertion.bound.within_peers.unwrap_or(1.0);
    let rates = cache
        .by_bound
        .entry((floor.to_bits(), tolerance.to_bits()))
        .or_insert_with(|| Rates::collect(data, floor, tolerance));
    verdict.lower = Some(floor);
    let (mut worst, mut measured) = (None, 0);
    let direction = assertion.dims.word(Dim::Direction);
    let node = assertion.node.as_deref().unwrap_or_default();
    let devices: Vec<&str> = match assertion.dims.word(Dim::Nic) {
        Some(nic) => vec![nic],
        None => assertion.parts.iter().filter_map(|part| part.word(Dim::Nic)).collect(),
    };
    let directions: Vec<&'static str> =
        ["tx", "rx"].into_iter().filter(|d| direction.is_none_or(|only| only == *d)).collect();
    let expected = devices.len() * directions.len();
    let mut odd = Vec::new();
    for device in &devices {
        for direction in &directions {
            let key = (node.to_owned(), (*device).to_owned(), *direction);
            let Some(rate) = rates.index.get(&key).and_then(|at| rates.rates.nics.get(*at)) else { continue };
            measured += usize::from(rate.best_gb_s.is_some());
            if let (Some(rate), true) = (rate.best_gb_s, devices.len() > 1) {
                let known = verdict.nics.entry((*device).to_owned()).or_insert(rate);
                *known = known.min(rate);
            }
            let status = match rate.verdict {
                NicVerdict::Pass => Status::Pass,
                NicVerdict::Fail => Status::Fail,
                NicVerdict::Inconclusive => Status::Inconclusive,
            };
            if status != Status::Pass && !odd.contains(device) {
                odd.push(device);
            }
            let graver = worst.as_ref().is_none_or(|(seen, best, _): &(Status, Option<f64>, String)| {
                let (seen, now) = (super::gravity(*seen), super::gravity(status));
                now > seen || (now == seen && rate.best_gb_s < *best)
            });
            if graver {
                worst = Some((status, rate.best_gb_s, rate.evidence.clone()));
            }
        }
    }
    verdict.n = measured as u32;
    verdict.n_expected = expected as u32;
    let unit = assertion.unit;
    let Some((status, observed, evidence)) = worst else {
        verdict.status = Status::Inconclusive;
        verdict.message = format!("{}: no flow was measured", super::subject(assertion));
        verdict.cause = Some("not-measured".to_owned());
        verdict.next = Some("look at the `.out` files of the pair's jobs".to_owned());
        return;
    };
    verdict.status = status;
    verdict.judged_by = Some(JudgedBy::Limit);
    verdict.observed = observed;
    verdict.message = match status {
        Status::Pass => match observed {
            Some(rate) => format!(
                "{}: {}, expected at least {}",
                super::subject(assertion),
                unit.show(rate),
                unit.show(floor)
            ),
            None => format!("{}: passed", super::subject(assertion)),
        },
        _ if devices.len() > 1 => {
            format!(
                "{}: {} of {} NICs below {}: {}; {evidence}",
                super::subject(assertion),
                odd.len(),
                devices.len(),
                unit.show(floor),
                base::text::first_few(&odd, super::MOST_NAMED)
            )
        }
        _ => {
            // Where the subject ends with the part, the evidence need not begin with it.
            let subject = super::subject(assertion);
            let own = format!("{node} {}", devices.first().copied().unwrap_or_default());
            let rest = evidence.strip_prefix(&own).and_then(|rest| rest.strip_prefix(": "));
            let evidence = rest.filter(|_| subject.ends_with(&own)).unwrap_or(&evidence);
            format!("{subject}: {evidence}; expected at least {}", unit.show(floor))
        }
    };
    if let Some(path) = path(data, assertion) {
        verdict.message.push_str(&format!(", {path}"));
    }
    if status == Status::Inconclusive {
        verdict.cause = Some("flow-missing".to_owned());
    }
    if status != Status::Pass {
        verdict.next = Some(super::next_step(assertion, Status::Fail));
    }
    if status == Status::Inconclusive && rates.rates.fleet_unconnected.is_some() {
        verdict.next = Some(CHECK_FABRIC.to_owned());
    }
    if status == Status::Inconclusive
        && let Some(reason) = refused(data, assertion, &devices)
    {
        verdict.cause = Some("tool-refused".to_owned());
        verdict.message.push_str(&format!("; the tool refused its arguments: {reason}"));
        if let Some(tool) = data.case.workload.flow_tool().and_then(Tool::named) {
            verdict.next = Some(format!("install {}", tool.to_install()));
        }
    }
}

/// The metric of single flows.
fn flow_rate() -> Option<String> {
    recipes::recipe::only_with(Role::Flow).map(|metric| metric.name.to_string())
}

/// Through which memory (GPU or host) the flows of the assertion's jobs went, where their outputs say so.
fn path(data: &CaseData, assertion: &PlannedAssertion) -> Option<&'static str> {
    let of_job = |job: &&String| data.analysis.jobs.get(job.as_str());
    let mut findings = assertion.jobs.iter().filter_map(|job| of_job(&job)).flat_map(|job| &job.findings);
    let remark = findings.find_map(|finding| match data.catalogue.meaning(&finding.code) {
        Meaning::Remark(remark) => Some(remark),
        _ => None,
    });
    if remark.is_some() {
        return remark;
    }
    let mut dims = metric::Dims::new();
    if let Some(node) = assertion.node.as_deref() {
        dims.set(Dim::Node, node);
    }
    let rows = data.metrics.select(&Query { metric: flow_rate()?, dims });
    let moved_gpu = rows.first().is_some_and(|row| row.dims.get(Dim::Gpu).is_some());
    moved_gpu.then_some("through GPU memory")
}

/// What the tool printed where it refused every flow of these devices.
fn refused<'a>(data: &'a CaseData, assertion: &PlannedAssertion, devices: &[&str]) -> Option<&'a str> {
    let findings = assertion.jobs.iter().filter_map(|job| data.analysis.jobs.get(job.as_str()));
    let of_devices = findings.flat_map(|job| &job.findings).filter_map(|finding| {
        let gap = GapKind::from_code(&finding.code)?;
        finding.part.as_deref().is_some_and(|part| devices.contains(&part)).then_some((gap, finding))
    });
    let mut of_devices = of_devices.peekable();
    let first = of_devices.peek()?.1;
    of_devices.all(|(gap, _)| gap == GapKind::ToolRefused).then_some(first.message.as_str())
}

/// The floor stated in the suite, or the lower bound of the baseline, whichever is higher.
fn floor(assertion: &PlannedAssertion, verdict: &mut Verdict) -> Option<f64> {
    let stated = assertion.bound.at_least;
    let known = match &assertion.bound.baseline {
        Some(PlannedBaseline::Accepted(numbers)) => {
            verdict.baseline = Some(numbers.key.clone());
            numbers.lower
        }
        _ => None,
    };
    match (stated, known) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (a, b) => a.or(b),
    }
}

impl Rates {
    fn collect(data: &CaseData, floor: f64, tolerance: f64) -> Rates {
        let flows = flows(data);
        let mut seen = BTreeSet::new();
        let all = data.case.jobs.iter().flat_map(|job| &job.nodes);
        let nodes: Vec<String> = all.filter(|node| seen.insert(*node)).cloned().collect();
        let rates = nic_rate::judge(&flows, &nodes, &data.instance.nics, floor, tolerance);
        let index = rates
            .nics
            .iter()
            .enumerate()
            .map(|(at, nic)| ((nic.node.clone(), nic.device.clone(), nic.direction.name()), at))
            .collect();
        Rates { rates, index }
    }
}

/// Every flow that was planned and whose job ran: its rate, or that it has none.
fn flows(data: &CaseData) -> Vec<FlowResult> {
    if data.case.workload.flow_tool().is_none() {
        return Vec::new();
    }
    let mut flows = Vec::new();
    let exited = data.jobs.jobs.iter().filter(|record| super::exited(&record.end).is_some());
    let ran: BTreeSet<&str> = exited.map(|record| record.name.as_str()).collect();
    for job in &data.case.jobs {
        let [from, to] = job.nodes.as_slice() else { continue };
        if !ran.contains(job.name.as_str()) {
            continue;
        }
        let Some(metric) = flow_rate() else { continue };
        let query = Query {
            metric,
            dims: metric::Dims::new()
                .with(Dim::Node, from.as_str())
                .with(Dim::Direction, "tx")
                .with(Dim::Job, job.name.as_str()),
        };
        let rates: BTreeMap<&str, f64> = data
            .metrics
            .select(&query)
            .into_iter()
            .filter_map(|row| Some((row.dims.word(Dim::Nic)?, row.value)))
            .collect();
        let gaps = gaps(data, &job.name);
        for device in &data.instance.nics {
            // Only a flow that reports it did not connect; missing output is no evidence about the ends.
            let gap = gaps.get(device.as_str()).copied().unwrap_or(GapKind::NoOutput);
            flows.push(FlowResult {
                tx_node: from.clone(),
                rx_node: to.clone(),
                device: device.clone(),
                outcome: rates.get(device.as_str()).copied().ok_or(gap),
            });
        }
    }
    flows
}

/// Why the flows of a job have no rate, by device.
fn gaps<'a>(data: &'a CaseData, job: &str) -> BTreeMap<&'a str, GapKind> {
    let findings =
        data.analysis.jobs.get(job).map(|analysis| analysis.findings.as_slice()).unwrap_or_default();
    findings
        .iter()
        .filter_map(|finding| {
            let kind = GapKind::from_code(&finding.code)?;
            Some((finding.part.as_deref()?, kind))
        })
        .collect()
}

/// Of the rates that are judged here.
fn unit() -> Unit {
    recipes::recipe::only_with(Role::OverRounds).map_or(Unit::GigabytesPerSecond, |metric| metric.unit)
}

impl NicRateCache {
    /// NICs that the flows blame, with the rate of good ones.
    pub(crate) fn parts(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        for rates in self.by_bound.values().filter(|rates| rates.rates.fleet_low.is_none()) {
            let good = rates.rates.nics.iter().filter(|nic| nic.verdict == NicVerdict::Pass);
            let mut good: Vec<f64> = good.filter_map(|nic| nic.best_gb_s).collect();
            good.sort_by(f64::total_cmp);
            let healthy = good.get(good.len() / 2).copied();
            for nic in rates.rates.nics.iter().filter(|nic| nic.blame == Blame::Culprit) {
                // A culprit's line begins with the part; its evidence need not say it again.
                let own = format!("{} {}: ", nic.node, nic.device);
                let unit = unit();
                parts.push(Part {
                    node: nic.node.clone(),
                    part: nic.device.clone(),
                    code: Some("HRN-NIC-SLOW"),
                    evidence: nic.evidence.strip_prefix(&own).unwrap_or(&nic.evidence).to_owned(),
                    rate: nic.best_gb_s.map(|value| Rate { value, healthy, unit }),
                });
            }
        }
        parts
    }

    /// Suspects, and slowness of the whole fleet: findings that name no single NIC.
    pub(crate) fn others(&self) -> Vec<Culprit> {
        let mut culprits = Vec::new();
        for rates in self.by_bound.values() {
            let of_all = rates.rates.fleet_low.as_ref().or(rates.rates.fleet_unconnected.as_ref());
            if let Some(evidence) = of_all {
                culprits.push(Culprit::Fleet { evidence: evidence.clone() });
                continue;
            }
            for nic in &rates.rates.nics {
                if let Blame::Suspect { with } = &nic.blame {
                    let mut nodes = with.clone();
                    nodes.push(nic.node.clone());
                    nodes.sort();
                    nodes.dedup();
                    culprits.push(Culprit::Suspects { nodes, evidence: nic.evidence.clone() });
                }
            }
        }
        culprits
    }
}
