//! What goes on, as metrics for node_exporter. The number of series is bounded.

use super::follow::{Looked, Oddities};
use crate::report::metrics::{Gauges, Labels, expose};
use observe::{Coverage, Finding};
use std::collections::BTreeMap;

/// Findings with series of their own; `harness_observe_findings` counts them all.
const MOST_FINDINGS: usize = 100;

pub(super) fn render(
    folder: &str,
    findings: &[Finding],
    (looked, odd, coverage): (&Looked, &Oddities, &Coverage),
    is_complete: bool,
) -> Vec<u8> {
    let one = |name, about, value: f64| Gauges {
        name,
        about,
        samples: vec![(vec![("folder", folder.to_owned())], value)],
    };
    let labels = |finding: &Finding| {
        let host = match finding.hosts.as_slice() {
            [host] => host.clone(),
            // Several hosts, of which one is meant, are no label.
            _ => String::new(),
        };
        let rank = match finding.processes.as_slice() {
            [process] => process.rank.to_string(),
            _ => String::new(),
        };
        let kind = finding.kind.name().to_owned();
        vec![("folder", folder.to_owned()), ("kind", kind), ("node", host), ("rank", rank)]
    };
    // Each set of labels once, with the worst of them.
    let mut worst: BTreeMap<Labels, f64> = BTreeMap::new();
    for finding in findings.iter().take(MOST_FINDINGS) {
        let value = worst.entry(labels(finding)).or_default();
        *value = value.max(finding.lower_by);
    }
    let count = |value: u64| value as f64;
    expose(&[
        one("harness_observe_findings", "Findings that last", count(findings.len() as u64)),
        Gauges {
            name: "harness_observe_finding_ratio",
            about: "A finding that lasts: by which part the bandwidth, or the waiting of a late rank, is lower",
            samples: worst.into_iter().collect(),
        },
        one(
            "harness_observe_complete",
            "1 where the records suffice to say that there is nothing else",
            f64::from(u8::from(is_complete)),
        ),
        one(
            "harness_observe_last_record_timestamp_seconds",
            "When the last record was written, by the median of the hosts' clocks",
            count(coverage.last_s),
        ),
        one("harness_observe_files", "Files that are followed", count(looked.files)),
        one("harness_observe_hosts", "Hosts that have records", count(coverage.hosts)),
        one("harness_observe_records", "Records of calls that were read", count(coverage.records)),
        one("harness_observe_damaged_lines", "Lines that could not be read", count(odd.damaged)),
        one(
            "harness_observe_incomplete_calls",
            "Calls without a record of each rank, which are not judged",
            count(coverage.incomplete_calls),
        ),
        one("harness_observe_communicators", "Communicators of the jobs", count(coverage.communicators)),
        one(
            "harness_observe_communicators_judged",
            "Communicators with enough whole calls to be judged",
            count(coverage.judged),
        ),
    ])
}
