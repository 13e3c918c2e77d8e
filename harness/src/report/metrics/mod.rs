//! The run as metrics for Prometheus: each family of them is declared once, with its name, labels and where its values come
//! from. Names and labels are stable. How many there are is bounded, whatever the size of the cluster.

mod exposition;
mod worst;

pub(crate) use exposition::{Gauges, Labels, expose};
pub(super) use exposition::{open_metrics, prometheus};

use super::{Report, ReportError};
use base::text::{shorten, show};
use model::artefact::{Counts, Culprit, Share, Status};
use std::collections::BTreeMap;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use verdict::isolate::code::Code;

/// Cases with series of their own; those of all others are added up under `case="other"`.
const MOST_CASES: usize = 500;
/// Culprits with a series of their own; `harness_culprits` counts all.
const MOST_CULPRITS: usize = 100;
/// Of a label's value, in letters.
const MOST_LETTERS: usize = 120;
/// The case and suite of what is added up.
const OTHER: &str = "other";

/// Of every metric: the inventory, and the suites of the run, so that files of several runs do not collide.
const COMMON_LABELS: [&str; 2] = ["inventory", "suites"];

/// Metrics of one name.
#[derive(Debug)]
pub struct Family {
    /// Such as `harness_run_exit_code`.
    pub name: &'static str,
    /// What the value is.
    pub about: &'static str,
    /// Beside those that every metric has.
    pub labels: &'static [&'static str],
    collect: fn(&Report) -> Result<Samples, ReportError>,
}

/// Values by labels, each once: those of the family, in their order.
#[derive(Debug, Default)]
struct Samples(BTreeMap<Vec<String>, f64>);

impl Samples {
    fn one(value: impl Into<f64>) -> Result<Samples, ReportError> {
        Ok(Samples([(Vec::new(), value.into())].into()))
    }

    fn set(&mut self, labels: &[&str], value: f64) {
        self.0.insert(labels.iter().map(|text| label(text)).collect(), value);
    }

    fn add(&mut self, labels: &[&str], value: f64) {
        *self.0.entry(labels.iter().map(|text| label(text)).collect()).or_default() += value;
    }
}

fn label(text: &str) -> String {
    shorten(&show(text), MOST_LETTERS)
}

/// Every family, in the order of the file.
pub const FAMILIES: [Family; 19] = [
    Family {
        name: "harness_run_info",
        about: "Always 1. Which run the file is about",
        labels: &["run", "version", "instance_type", "nodes"],
        collect: |report| {
            let summary = report.summary;
            let mut samples = Samples::default();
            samples.set(&[&summary.run_id, &summary.harness, &summary.instance, &summary.nodes], 1.0);
            Ok(samples)
        },
    },
    Family {
        name: "harness_run_start_timestamp_seconds",
        about: "When the run began, in seconds since 1970; of the simulated clock where it is simulated",
        labels: &[],
        collect: |report| Samples::one(seconds(&report.summary.started)?),
    },
    Family {
        name: "harness_run_end_timestamp_seconds",
        about: "When the run ended, in seconds since 1970: its age is `time()` less this",
        labels: &[],
        collect: |report| Samples::one(seconds(&report.summary.ended)?),
    },
    Family {
        name: "harness_run_duration_seconds",
        about: "How long the run took",
        labels: &[],
        collect: |report| Samples::one(report.summary.seconds),
    },
    Family {
        name: "harness_run_exit_code",
        about: "0 passed, 1 failed, 3 inconclusive, 4 nothing was run, 5 assertions are pending, 130 and 143 interrupted",
        labels: &[],
        collect: |report| Samples::one(report.summary.exit_code),
    },
    Family {
        name: "harness_run_simulated",
        about: "1 where nothing in the run was measured on real hardware",
        labels: &[],
        collect: |report| Samples::one(u8::from(report.summary.simulated)),
    },
    Family {
        name: "harness_run_interrupted",
        about: "1 where the run stopped before its end",
        labels: &[],
        collect: |report| Samples::one(u8::from(report.summary.interrupted.is_some())),
    },
    Family {
        name: "harness_assertions_planned",
        about: "Assertions that were to be judged",
        labels: &[],
        collect: |report| {
            let planned: usize = report.plan.cases.iter().map(|case| case.assertions.len()).sum();
            Samples::one(planned.max(report.summary.counts.total as usize) as f64)
        },
    },
    Family {
        name: "harness_assertions_judged",
        about: "Assertions that were measured and judged: the rest is no pass",
        labels: &[],
        collect: |report| {
            let Counts { pass, fail, expected_failure, unexpected_pass, .. } = report.summary.counts;
            Samples::one(pass + fail + expected_failure + unexpected_pass)
        },
    },
    Family {
        name: "harness_assertions_pending",
        about: "What an earlier run left open, and this one too",
        labels: &[],
        collect: |report| Samples::one(report.summary.pending.len() as f64),
    },
    Family {
        name: "harness_assertions",
        about: "Assertions of a case, by what they came to",
        labels: &["suite", "case", "status"],
        collect: |report| Ok(by_case(report)),
    },
    Family {
        name: "harness_culprits",
        about: "Parts, suspects and fleets that are blamed",
        labels: &[],
        collect: |report| Samples::one(report.summary.culprits.len() as f64),
    },
    Family {
        name: "harness_culprit",
        about: "Always 1. Of kind `culprit` a part that is blamed, of `suspect` a node, of `fleet` all parts alike",
        labels: &["kind", "node", "part", "code"],
        collect: |report| Ok(culprits(report)),
    },
    Family {
        name: "harness_nodes_left_out",
        about: "Nodes that nothing, or nothing more, was launched on",
        labels: &[],
        collect: |report| Samples::one(report.summary.left_out.len() as f64),
    },
    Family {
        name: "harness_coverage_expected",
        about: "Nodes, ranks, NICs and message sizes that the plan covers",
        labels: &["of"],
        collect: |report| Ok(coverage(report, |share| share.expected)),
    },
    Family {
        name: "harness_coverage_measured",
        about: "Those of them that have a number",
        labels: &["of"],
        collect: |report| Ok(coverage(report, |share| share.measured)),
    },
    Family {
        name: "harness_worst_value",
        about: "Of each case and metric with a bound: the value that is nearest to its bound, or farthest beyond it",
        labels: &["suite", "case", "metric", "unit"],
        collect: |report| Ok(worst::samples(report, |verdict| verdict.observed)),
    },
    Family {
        name: "harness_worst_value_lower_bound",
        about: "The least that this value may be",
        labels: &["suite", "case", "metric", "unit"],
        collect: |report| Ok(worst::samples(report, |verdict| verdict.lower)),
    },
    Family {
        name: "harness_worst_value_upper_bound",
        about: "The most that this value may be",
        labels: &["suite", "case", "metric", "unit"],
        collect: |report| Ok(worst::samples(report, |verdict| verdict.upper)),
    },
];

fn seconds(time: &str) -> Result<f64, ReportError> {
    let parsed = OffsetDateTime::parse(time, &Rfc3339)
        .map_err(|why| ReportError(format!("not a time ({why}): `{}`", show(time))))?;
    Ok((parsed.unix_timestamp_nanos() / 1_000_000) as f64 / 1000.0)
}

/// Suite and case of each series; the first cases have their own.
fn place<'a>(suite: &'a str, case: &'a str, at: usize) -> [&'a str; 2] {
    if at < MOST_CASES { [suite, case] } else { [OTHER, OTHER] }
}

/// Every status of each case, also where it is 0: a series that comes and goes is of no use to an alert.
fn by_case(report: &Report) -> Samples {
    let mut samples = Samples::default();
    for (at, case) in report.cases.iter().enumerate() {
        let [suite, name] = place(&case.suite, &case.case, at);
        for status in Status::ALL {
            let n = case.verdicts.iter().filter(|verdict| verdict.status == status).count();
            samples.add(&[suite, name, &status.name().replace(' ', "-")], n as f64);
        }
    }
    samples
}

fn culprits(report: &Report) -> Samples {
    let mut samples = Samples::default();
    for culprit in &report.summary.culprits {
        let code = Code::for_culprit(culprit).map_or("", |code| code.name);
        let rows = match culprit {
            Culprit::Culprit { node, part, .. } => vec![["culprit", node, part, code]],
            Culprit::Suspects { nodes, .. } => nodes.iter().map(|node| ["suspect", node, "", code]).collect(),
            Culprit::Fleet { .. } => vec![["fleet", "", "", code]],
        };
        for row in rows {
            if samples.0.len() < MOST_CULPRITS {
                samples.set(&row, 1.0);
            }
        }
    }
    samples
}

fn coverage(report: &Report, figure: fn(&Share) -> u32) -> Samples {
    let coverage = &report.summary.coverage;
    let mut samples = Samples::default();
    for (of, share) in [
        ("nodes", &coverage.nodes),
        ("ranks", &coverage.ranks),
        ("nics", &coverage.nics),
        ("sizes", &coverage.sizes),
    ] {
        samples.set(&[of], f64::from(figure(share)));
    }
    samples
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture::{self, Made, Reported as _};

    fn lines(made: &Made) -> Vec<String> {
        String::from_utf8(prometheus(&made.report()).unwrap()).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn names_are_of_this_program_and_each_is_there_once() {
        let mut names: Vec<&str> = FAMILIES.iter().map(|family| family.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FAMILIES.len());
        for family in &FAMILIES {
            assert!(
                family.name.starts_with("harness_") && !family.name.ends_with("_total"),
                "{}",
                family.name
            );
            let mut made = fixture::red();
            made.cases[0].verdicts[1].upper = Some(12.0);
            let samples = (family.collect)(&made.report()).unwrap();
            assert!(!samples.0.is_empty(), "{} has no sample", family.name);
            assert!(samples.0.keys().all(|labels| labels.len() == family.labels.len()), "{}", family.name);
        }
    }

    #[test]
    fn many_cases_and_culprits_are_added_up() {
        let cases = (0..MOST_CASES + 7).map(|n| {
            let mut case = fixture::case(&format!("case-{n}"));
            case.verdicts = vec![fixture::verdict("c", "rate", "n", "p", Status::Fail); 2];
            case.culprits = vec![Culprit::Suspects {
                nodes: (0..64).map(|node| format!("n{n}-{node}")).collect(),
                evidence: "slow".into(),
            }];
            case
        });
        let made = Made::from_cases(cases.collect());
        let lines = lines(&made);
        let of = |name: &str| lines.iter().filter(|line| line.starts_with(&format!("{name}{{"))).count();
        assert_eq!(of("harness_assertions"), (MOST_CASES + 1) * Status::ALL.len());
        assert_eq!(of("harness_culprit"), MOST_CULPRITS);
        let other = "suite=\"other\",case=\"other\",status=\"fail\"} 14";
        assert!(lines.iter().any(|line| line.contains(other)), "{other}");
        assert!(lines.iter().any(|line| line.starts_with("harness_culprits{") && line.ends_with(" 507")));
        assert!(lines.len() < 20_000, "{}", lines.len());
    }

    #[test]
    fn a_time_that_is_none_is_refused_with_its_text() {
        let mut made = fixture::green();
        made.summary.ended = "never".into();
        let error = prometheus(&made.report()).unwrap_err().to_string();
        assert!(error.contains("`never`"), "{error}");
    }
}
