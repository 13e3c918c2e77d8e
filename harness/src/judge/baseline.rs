//! A number against what was measured before and accepted. Without a baseline nothing can be told; with a provisional
//! one only that all is well.

use super::{JudgedBound, Measured, bound};
use crate::artefact::{BaselineNumbers, PlannedAssertion, PlannedBaseline, Status, Verdict};

pub fn judge(
    assertion: &PlannedAssertion,
    measured: &Measured,
    verdict: &mut Verdict,
) -> Option<JudgedBound> {
    let baseline = assertion.bound.baseline.as_ref()?;
    let (numbers, outside) = match baseline {
        PlannedBaseline::None { key } => {
            return unknown(measured, format!("a baseline, and there is none for {key}"));
        }
        PlannedBaseline::Expired(numbers) => {
            return unknown(measured, format!("a baseline, and the one for {} has expired", numbers.key));
        }
        PlannedBaseline::Provisional(numbers) => {
            verdict.provisional = true;
            (numbers, Status::Inconclusive)
        }
        PlannedBaseline::Accepted(numbers) => (numbers, Status::Fail),
    };
    verdict.baseline = Some(describe(numbers));
    if numbers.lower.is_none() && numbers.upper.is_none() {
        return unknown(measured, format!("bounds, and the baseline for {} has none", numbers.key));
    }
    let mut judged = bound::within(measured, numbers.lower, numbers.upper, expected(assertion, numbers))?;
    if judged.status == Status::Fail {
        judged.status = outside;
    }
    Some(judged)
}

fn unknown(measured: &Measured, expected: String) -> Option<JudgedBound> {
    let (_, observed) = measured.values().next()?;
    Some(JudgedBound {
        status: Status::Inconclusive,
        observed,
        lower: None,
        upper: None,
        odd: Vec::new(),
        expected,
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
    format!("{range} (baseline {}, n = {}, median {})", numbers.key, numbers.n, unit.show(numbers.median))
}

fn describe(numbers: &BaselineNumbers) -> String {
    format!("{} (n = {}, median {}; {})", numbers.key, numbers.n, numbers.median, numbers.source)
}
