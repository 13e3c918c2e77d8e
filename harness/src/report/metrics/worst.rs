//! The value of each case and metric that is nearest to its bound or farthest beyond it. Which one that is, is chosen here; the
//! numbers are those of the verdicts.

use super::{MOST_CASES, Samples, label};
use crate::report::Report;
use model::artefact::Verdict;
use std::collections::BTreeMap;

/// Pairs of case and metric that have series; further ones are left out, since worst values do not add up.
const MOST_VALUES: usize = 2000;

/// By suite, case, metric and unit.
pub(super) fn samples(report: &Report, figure: fn(&Verdict) -> Option<f64>) -> Samples {
    let mut worst: BTreeMap<Vec<String>, (f64, &Verdict)> = BTreeMap::new();
    for case in report.cases.iter().take(MOST_CASES) {
        for verdict in &case.verdicts {
            let Some(room) = room(verdict) else { continue };
            let labels = [&case.suite, &case.case, &verdict.metric, verdict.unit.name()].map(label).to_vec();
            if !worst.contains_key(&labels) && worst.len() >= MOST_VALUES {
                continue;
            }
            let entry = worst.entry(labels).or_insert((room, verdict));
            if room < entry.0 {
                *entry = (room, verdict);
            }
        }
    }
    let values = worst.into_iter().filter_map(|(labels, (_, verdict))| Some((labels, figure(verdict)?)));
    Samples(values.collect())
}

/// How far a value is within its nearer bound, as a fraction of that bound; below 0 beyond it. `None` where there is no number
/// or no bound.
fn room(verdict: &Verdict) -> Option<f64> {
    let value = verdict.observed?;
    let scaled = |room: f64, bound: f64| room / if bound == 0.0 { 1.0 } else { bound.abs() };
    let below = verdict.lower.map(|lower| scaled(value - lower, lower));
    let above = verdict.upper.map(|upper| scaled(upper - value, upper));
    below.into_iter().chain(above).reduce(f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture::{self, Made, Reported as _};
    use model::artefact::Status;

    #[test]
    fn the_worst_is_the_value_with_the_least_room_and_without_a_bound_there_is_none() {
        // Value, bounds.
        let all = [
            (12.0, Some(11.0), None),
            (4.5, Some(5.0), None),
            (1e6, Some(1.0), Some(2e6)),
            (1.0, None, None),
            (9.9, None, Some(10.0)),
        ];
        let mut case = fixture::case("c");
        for (value, lower, upper) in all {
            let mut verdict = fixture::verdict("c", "rate", "n", "p", Status::Pass);
            (verdict.observed, verdict.lower, verdict.upper) = (Some(value), lower, upper);
            case.verdicts.push(verdict);
        }
        let figures = |made: &Made| {
            let of = |figure| samples(&made.report(), figure).0.into_values().collect::<Vec<f64>>();
            [of(|one| one.observed), of(|one| one.lower), of(|one| one.upper)]
        };
        let mut made = Made::from_cases(vec![case]);
        assert_eq!(figures(&made), [vec![4.5], vec![5.0], vec![]]);
        made.cases[0].verdicts.remove(1);
        assert_eq!(figures(&made), [vec![9.9], vec![], vec![10.0]]);
        made.cases[0].verdicts = vec![made.cases[0].verdicts[2].clone()];
        assert_eq!(figures(&made), [const { Vec::<f64>::new() }; 3]);
    }

    #[test]
    fn there_are_at_most_so_many() {
        let mut case = fixture::case("c");
        for n in 0..MOST_VALUES + 10 {
            let mut verdict = fixture::verdict("c", "rate", "n", "p", Status::Pass);
            verdict.metric = format!("own.m{n}");
            case.verdicts.push(verdict);
        }
        let made = Made::from_cases(vec![case]);
        assert_eq!(samples(&made.report(), |one| one.observed).0.len(), MOST_VALUES);
    }
}
