//! A number against its baseline. A provisional baseline can pass a number but never fail it; without a baseline, or with
//! other software than the baseline's, the number is inconclusive. A prediction is a provisional one.

use super::{CaseData, JudgedBound, Measured, bound, support};
use crate::fingerprint::{VARIABLES, plain, variables};
use base::redact::mask_accounts;
use base::text::count;
use config::baseline::FEWEST_ACCEPTED;
use model::artefact::{BaselineNumbers, JudgedBy, PlannedAssertion, PlannedBaseline, Status, Verdict};
use recipes::recipe;
use std::collections::BTreeSet;

pub(super) fn judge(
    data: &CaseData,
    assertion: &PlannedAssertion,
    measured: &Measured,
    verdict: &mut Verdict,
) -> Option<JudgedBound> {
    let baseline = assertion.bound.baseline.as_ref()?;
    let (numbers, outside) = match baseline {
        PlannedBaseline::None { .. } => return None,
        PlannedBaseline::Expired(numbers) => {
            return not_compared(
                measured,
                format!("the baseline for {} has expired", numbers.key),
                Some("run it again, then `harness baseline propose` and accept the new one".to_owned()),
            );
        }
        PlannedBaseline::Provisional(numbers) => (numbers, Status::Inconclusive),
        PlannedBaseline::Accepted(numbers) => (numbers, Status::Fail),
    };
    if let Some(difference) = difference(data, assertion, numbers) {
        let next = "if the two versions are comparable, add this one to `fingerprint` of the baseline; else make a new \
                    baseline: `harness baseline propose`";
        return not_compared(measured, difference, Some(next.to_owned()));
    }
    verdict.provisional = outside == Status::Inconclusive;
    verdict.baseline = Some(describe(numbers));
    if numbers.lower.is_none() && numbers.upper.is_none() {
        let (why, next) = no_bounds(numbers);
        return not_compared(measured, why, next);
    }
    let resolution = recipe::built_in(&assertion.metric).map_or(0.0, |metric| metric.resolution);
    let widened = (resolution > 0.0).then(|| BaselineNumbers {
        lower: numbers.lower.map(|lower| lower - resolution),
        upper: numbers.upper.map(|upper| upper + resolution),
        ..numbers.clone()
    });
    let numbers = widened.as_ref().unwrap_or(numbers);
    let mut judged = bound::within(measured, numbers.lower, numbers.upper, comparison(assertion, numbers))?;
    judged.by = if verdict.provisional { JudgedBy::Published } else { JudgedBy::AcceptedBaseline };
    if judged.status != Status::Fail {
        return Some(judged);
    }
    judged.status = outside;
    support::weigh(&mut judged, numbers.spread.map(|spread| spread * numbers.median.abs()));
    Some(judged)
}

/// The first version that differs from the baseline's or is unknown: in this run and in the baseline.
fn difference(data: &CaseData, assertion: &PlannedAssertion, numbers: &BaselineNumbers) -> Option<String> {
    let reported = |job: &String, part: &String| match part.as_str() {
        VARIABLES => {
            let planned = data.case.jobs.iter().find(|planned| planned.name == *job)?;
            Some([variables(planned)].into())
        }
        _ => data.analysis.jobs.get(job)?.versions.get(part).cloned().filter(|versions| !versions.is_empty()),
    };
    numbers.fingerprint.iter().find_map(|(part, those)| {
        let accepted = those.join(" or ");
        let seen: BTreeSet<String> =
            assertion.jobs.iter().filter_map(|job| reported(job, part)).flatten().collect();
        // The versions of one job are not those of another.
        let is_known = !seen.is_empty() && assertion.jobs.iter().all(|job| reported(job, part).is_some());
        let accepts = plain(&those.iter().cloned().collect());
        match seen.iter().find(|one| !accepts.contains(&mask_accounts(one))) {
            Some(other) => {
                Some(format!("{part} is {other} in this run, {accepted} in the baseline for {}", numbers.key))
            }
            None if !is_known => {
                Some(format!("{part} is unknown in this run, {accepted} in the baseline for {}", numbers.key))
            }
            None => None,
        }
    })
}

/// Where the baseline stands, how many runs it lacks, and what to do.
fn no_bounds(numbers: &BaselineNumbers) -> (String, Option<String>) {
    let missing = (FEWEST_ACCEPTED as u32).saturating_sub(numbers.n);
    let (runs, file) = (count(numbers.n as usize, "run"), &numbers.file);
    let holds = match (missing, file.is_empty()) {
        (0, true) => String::new(),
        (0, false) => format!(" in `{file}`"),
        (_, true) => format!(": of {runs}, needs {missing} more"),
        (_, false) => format!(": `{file}` holds {runs}, needs {missing} more"),
    };
    let next = (missing > 0).then(|| {
        let times = count(missing as usize, "more time");
        format!("run it {times}, then `harness baseline propose` of all those runs, and accept the new one")
    });
    (format!("the baseline for {} has no bounds{holds}", numbers.key), next)
}

fn not_compared(measured: &Measured, why: String, next: Option<String>) -> Option<JudgedBound> {
    let (_, number) = measured.numbers().next()?;
    Some(JudgedBound {
        status: Status::Inconclusive,
        observed: number.value,
        runs: number.runs.clone(),
        lower: None,
        upper: None,
        odd: Vec::new(),
        comparison: format!("not compared: {why}"),
        next,
        by: JudgedBy::Published,
    })
}

/// `predicted 452 +- 31 GB/s, expected at least 421.0 GB/s`; nothing where the numbers were measured.
pub(super) fn predicted(assertion: &PlannedAssertion, numbers: &BaselineNumbers) -> Option<String> {
    let (half_width, unit) = (numbers.predicted?, assertion.unit);
    let least = numbers.lower.map(|lower| format!(", expected at least {}", unit.show(lower)));
    let least = least.unwrap_or_default();
    Some(format!("predicted {:.0} +- {half_width:.0} {}{least}", numbers.median, unit.name()))
}

fn comparison(assertion: &PlannedAssertion, numbers: &BaselineNumbers) -> String {
    if let Some(predicted) = predicted(assertion, numbers) {
        return format!("{predicted} ({})", numbers.key);
    }
    let unit = assertion.unit;
    let range = match (numbers.lower, numbers.upper) {
        (Some(lower), Some(upper)) => format!("{} to {}", unit.show(lower), unit.show(upper)),
        (Some(lower), None) => format!("at least {}", unit.show(lower)),
        (None, Some(upper)) => format!("at most {}", unit.show(upper)),
        (None, None) => String::new(),
    };
    let mut about =
        format!("baseline {}, n = {}, median {}", numbers.key, numbers.n, unit.show(numbers.median));
    if let Some(between) = &numbers.between {
        about.push_str(&format!(", interpolated between {between}"));
    }
    if let Some(pack) = &numbers.pack {
        about.push_str(&format!(", with pack {} as good as n = {:.0}", pack.signer, pack.worth));
    }
    if let Some(judged) = numbers.widened_for {
        about.push_str(&format!(", widened for {judged} numbers"));
    }
    format!("expected {range} ({about})")
}

fn describe(numbers: &BaselineNumbers) -> String {
    if let Some(half_width) = numbers.predicted {
        let BaselineNumbers { key, median, source, .. } = numbers;
        return format!("{key} (predicted {median:.0} +- {half_width:.0}; {source})");
    }
    format!("{} (n = {}, median {}; {})", numbers.key, numbers.n, numbers.median, numbers.source)
}
