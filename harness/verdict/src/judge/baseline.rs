//! A number against what was measured before and accepted. Without a baseline nothing can be told; with a provisional
//! one only that all is well; and nothing can be told either where the software is another than the baseline's.

use super::{CaseData, JudgedBound, Measured, bound, support};
use crate::fingerprint::{VARIABLES, variables};
use model::artefact::{BaselineNumbers, JudgedBy, PlannedAssertion, PlannedBaseline, Status, Verdict};
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
            return unknown(
                measured,
                format!("a baseline, and the one for {} has expired", numbers.key),
                None,
            );
        }
        PlannedBaseline::Provisional(numbers) => (numbers, Status::Inconclusive),
        PlannedBaseline::Accepted(numbers) => (numbers, Status::Fail),
    };
    if let Some(difference) = difference(data, assertion, numbers) {
        let expected = format!("the software of the baseline for {}: {difference}", numbers.key);
        let next = "write what it is now beside the other in the baseline's `fingerprint`, if the two are comparable; else \
                    propose a baseline from runs on it (`harness baseline propose`)";
        return unknown(measured, expected, Some(next.to_owned()));
    }
    verdict.provisional = outside == Status::Inconclusive;
    verdict.baseline = Some(describe(numbers));
    if numbers.lower.is_none() && numbers.upper.is_none() {
        return unknown(measured, format!("bounds, and the baseline for {} has none", numbers.key), None);
    }
    let mut judged = bound::within(measured, numbers.lower, numbers.upper, expected(assertion, numbers))?;
    judged.by = if verdict.provisional { JudgedBy::Published } else { JudgedBy::AcceptedBaseline };
    if judged.status != Status::Fail {
        return Some(judged);
    }
    judged.status = outside;
    support::weigh(&mut judged, numbers.spread.map(|spread| spread * numbers.median.abs()));
    Some(judged)
}

/// The first part of the software that is not the baseline's, or that the run does not tell: here and there.
fn difference(data: &CaseData, assertion: &PlannedAssertion, numbers: &BaselineNumbers) -> Option<String> {
    let told = |job: &String, part: &String| match part.as_str() {
        VARIABLES => {
            let planned = data.case.jobs.iter().find(|planned| planned.name == *job)?;
            Some([variables(planned)].into())
        }
        _ => data.analysis.jobs.get(job)?.versions.get(part).cloned().filter(|versions| !versions.is_empty()),
    };
    numbers.fingerprint.iter().find_map(|(part, those)| {
        let accepted = those.join(" or ");
        let seen: BTreeSet<String> =
            assertion.jobs.iter().filter_map(|job| told(job, part)).flatten().collect();
        // What one job tells says nothing of another.
        let is_told = !seen.is_empty() && assertion.jobs.iter().all(|job| told(job, part).is_some());
        match seen.iter().find(|one| !those.contains(one)) {
            Some(other) => Some(format!("{part} is {other} here, {accepted} there")),
            None if !is_told => Some(format!("{part} is not told here, {accepted} there")),
            None => None,
        }
    })
}

fn unknown(measured: &Measured, expected: String, next: Option<String>) -> Option<JudgedBound> {
    let (_, number) = measured.numbers().next()?;
    Some(JudgedBound {
        status: Status::Inconclusive,
        observed: number.value,
        runs: number.runs.clone(),
        lower: None,
        upper: None,
        odd: Vec::new(),
        expected,
        next,
        by: JudgedBy::Published,
    })
}

fn expected(assertion: &PlannedAssertion, numbers: &BaselineNumbers) -> String {
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
        about.push_str(&format!(", drawn between {between}"));
    }
    if let Some(judged) = numbers.widened_for {
        about.push_str(&format!(", widened for {judged} numbers"));
    }
    format!("{range} ({about})")
}

fn describe(numbers: &BaselineNumbers) -> String {
    format!("{} (n = {}, median {}; {})", numbers.key, numbers.n, numbers.median, numbers.source)
}
