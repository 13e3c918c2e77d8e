//! Which part of an nccl-tests run each call is (warm-up, synchronisation, timed, check), of which size, and in place
//! or not. Payloads do not say; the order of the calls does. It looks at sizes and counts alone; recipes compute times
//! and rates.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What the program was asked for. A call is one call of NCCL; where a test is made of sends and receives in groups, one
/// group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The size of one call at each row of the output, in their order, as payloads count it.
    pub rows: Vec<u64>,
    /// The same for warm-up calls: doubled from the least to the greatest, whatever the steps of the rows are.
    pub warmup_rows: Vec<u64>,
    /// Warm-up calls at each size of `warmup_rows`.
    pub warmup: u32,
    /// Timed iterations at each row and placement.
    pub iterations: u32,
    /// So many calls at each iteration.
    pub aggregated: u32,
    /// Calls behind the timed ones whose results are checked, at each row and placement.
    pub checks: u32,
    /// Whether each size is run a second time, in place.
    pub in_place: bool,
    /// How often all rows are run; the warm-up is done once.
    pub cycles: u32,
}

/// Which of its two results in one row of the output a call counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Placement {
    /// Data is received into another buffer than it is sent from.
    OutOfPlace,
    /// One buffer holds what is sent and what is received.
    InPlace,
}

impl Placement {
    /// `out of place` or `in place`.
    pub fn name(self) -> &'static str {
        match self {
            Placement::OutOfPlace => "out of place",
            Placement::InPlace => "in place",
        }
    }
}

/// What a call is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// Before the first row; not timed.
    WarmUp,
    /// One call before time is taken.
    Sync,
    /// Counts in the printed time.
    Timed {
        /// From 0; aggregated calls share one.
        iteration: u32,
    },
    /// Made for the check of the result; not timed.
    Check,
}

impl Part {
    /// `warm-up`, `sync`, `timed` or `check`.
    pub fn name(self) -> &'static str {
        match self {
            Part::WarmUp => "warm-up",
            Part::Sync => "sync",
            Part::Timed { .. } => "timed",
            Part::Check => "check",
        }
    }
}

/// Where one call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallPosition {
    /// What the call is made for.
    pub part: Part,
    /// Which of the plan's rows; of a warm-up call, which of its warm-up rows.
    pub row: u32,
    /// None of a warm-up call.
    pub placement: Option<Placement>,
    /// Which pass over all rows, from 0; 0 for a warm-up call.
    pub cycle: u32,
}

/// By what a sequence differs from its plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// As many calls should be there.
    Count {
        /// By the plan.
        expected: u64,
        /// In the report.
        seen: u64,
    },
    /// The call of this number, from 0, should have another size.
    Size {
        /// From 0.
        call: u64,
        /// Bytes by the plan.
        expected: u64,
        /// Bytes in the payload.
        seen: u64,
    },
    /// The sizes are none of a sweep: the calls behind this one do not make whole rows.
    Rows {
        /// How many calls come before, warm-up included.
        call: u64,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Count { expected, seen } => {
                write!(f, "expected {expected} NCCL calls, the report has {seen}")
            }
            Difference::Size { call, expected, seen } => {
                write!(f, "call {}: {seen} bytes, expected {expected}", call + 1)
            }
            Difference::Rows { call } => {
                write!(f, "calls after number {call} do not form complete rows of one size")
            }
        }
    }
}

impl Plan {
    /// How many calls each placement of a row has.
    fn per_placement(&self) -> u64 {
        1 + u64::from(self.iterations) * u64::from(self.aggregated.max(1)) + u64::from(self.checks)
    }

    fn placements(&self) -> &'static [Placement] {
        match self.in_place {
            true => &[Placement::OutOfPlace, Placement::InPlace],
            false => &[Placement::OutOfPlace],
        }
    }

    /// How many calls each rank makes.
    pub fn calls(&self) -> u64 {
        let warmup = self.warmup_rows.len() as u64 * u64::from(self.warmup);
        let rows = self.rows.len() as u64 * u64::from(self.cycles.max(1));
        warmup + rows * self.placements().len() as u64 * self.per_placement()
    }

    /// The place of each call, in their order, with its size.
    fn places(&self) -> impl Iterator<Item = (CallPosition, u64)> + '_ {
        let warmup = self.warmup_rows.iter().enumerate().flat_map(|(row, bytes)| {
            let place = CallPosition { part: Part::WarmUp, row: row as u32, placement: None, cycle: 0 };
            std::iter::repeat_n((place, *bytes), self.warmup as usize)
        });
        let rows = (0..self.cycles.max(1)).flat_map(move |cycle| {
            self.rows.iter().enumerate().flat_map(move |(row, bytes)| {
                self.placements().iter().flat_map(move |placement| {
                    let place = move |part| {
                        (CallPosition { part, row: row as u32, placement: Some(*placement), cycle }, *bytes)
                    };
                    let timed = (0..self.iterations).flat_map(move |iteration| {
                        let times = self.aggregated.max(1) as usize;
                        std::iter::repeat_n(place(Part::Timed { iteration }), times)
                    });
                    let checks = std::iter::repeat_n(place(Part::Check), self.checks as usize);
                    std::iter::once(place(Part::Sync)).chain(timed).chain(checks)
                })
            })
        });
        warmup.chain(rows)
    }
}

/// The place of each call of one rank, in the order in which it made them. A size that was not recorded is taken to be as
/// planned.
pub fn assign(calls: &[Option<u64>], plan: &Plan) -> Result<Vec<CallPosition>, Difference> {
    let (expected, seen) = (plan.calls(), calls.len() as u64);
    let mut places = Vec::with_capacity(calls.len());
    for (call, (bytes, (place, planned))) in calls.iter().zip(plan.places()).enumerate() {
        if let Some(seen) = bytes.filter(|bytes| *bytes != planned) {
            return Err(Difference::Size { call: call as u64, expected: planned, seen });
        }
        places.push(place);
    }
    match expected == seen {
        true => Ok(places),
        false => Err(Difference::Count { expected, seen }),
    }
}

/// The sizes from the least to the greatest, doubled, as the warm-up takes them.
pub fn doubled(least: u64, greatest: u64) -> Vec<u64> {
    if least == 0 {
        return vec![0];
    }
    std::iter::successors(Some(least), |bytes| bytes.checked_mul(2).filter(|next| *next <= greatest))
        .collect()
}

/// A plan without its rows, which are found in the calls: whole rows of one size each, the first of the size of the first
/// call, the last of the size of the last one. Every size must be recorded.
pub fn plan_of(calls: &[Option<u64>], asked: &Plan) -> Result<Plan, Difference> {
    let seen = calls.len() as u64;
    let none = Difference::Rows { call: 0 };
    let (Some(Some(first)), Some(Some(last))) = (calls.first(), calls.last()) else { return Err(none) };
    let mut plan = Plan { cycles: 1, ..asked.clone() };
    plan.warmup_rows = if plan.warmup == 0 { Vec::new() } else { doubled(*first, *last) };
    let warmup = plan.warmup_rows.len() as u64 * u64::from(plan.warmup);
    let per_row = plan.per_placement() * plan.placements().len() as u64;
    let Some(rest) = calls.get(usize::try_from(warmup).unwrap_or(usize::MAX)..) else {
        return Err(Difference::Count { expected: warmup + per_row, seen });
    };
    let length = usize::try_from(per_row).unwrap_or(usize::MAX);
    plan.rows.clear();
    for (row, calls) in rest.chunks(length).enumerate() {
        match calls.first() {
            Some(Some(bytes)) if calls.len() == length => plan.rows.push(*bytes),
            _ => return Err(Difference::Rows { call: warmup + row as u64 * per_row }),
        }
    }
    if plan.rows.is_empty() { Err(none) } else { Ok(plan) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        Plan {
            rows: vec![8, 32, 40],
            warmup_rows: doubled(8, 40),
            warmup: 1,
            iterations: 3,
            aggregated: 2,
            checks: 1,
            in_place: true,
            cycles: 1,
        }
    }

    fn sizes(plan: &Plan) -> Vec<Option<u64>> {
        plan.places().map(|(_, bytes)| Some(bytes)).collect()
    }

    #[test]
    fn each_call_has_its_part_size_and_placement() {
        let plan = plan();
        assert_eq!(plan.warmup_rows, [8, 16, 32]);
        assert_eq!(plan.calls(), 3 + 3 * 2 * (1 + 6 + 1));
        let calls = sizes(&plan);
        let places = assign(&calls, &plan).expect("as planned");
        let of = |at: usize| (places[at].part, places[at].row, places[at].placement);
        assert_eq!(of(2), (Part::WarmUp, 2, None));
        assert_eq!(of(3), (Part::Sync, 0, Some(Placement::OutOfPlace)));
        assert_eq!(of(4), (Part::Timed { iteration: 0 }, 0, Some(Placement::OutOfPlace)));
        assert_eq!(of(9), (Part::Timed { iteration: 2 }, 0, Some(Placement::OutOfPlace)));
        assert_eq!(of(10), (Part::Check, 0, Some(Placement::OutOfPlace)));
        assert_eq!(of(11), (Part::Sync, 0, Some(Placement::InPlace)));
        assert_eq!(of(50), (Part::Check, 2, Some(Placement::InPlace)));
        let unrecorded: Vec<Option<u64>> = calls.iter().map(|_| None).collect();
        assert_eq!(assign(&unrecorded, &plan), Ok(places));
    }

    #[test]
    fn a_sequence_says_by_what_it_differs() {
        let plan = plan();
        let mut calls = sizes(&plan);
        calls.pop();
        assert_eq!(assign(&calls, &plan), Err(Difference::Count { expected: 51, seen: 50 }));
        let mut calls = sizes(&plan);
        calls.push(Some(8));
        assert_eq!(assign(&calls, &plan), Err(Difference::Count { expected: 51, seen: 52 }));
        let mut calls = sizes(&plan);
        calls[1] = Some(8);
        let difference = assign(&calls, &plan).expect_err("another size");
        assert_eq!(difference, Difference::Size { call: 1, expected: 16, seen: 8 });
        assert_eq!(difference.to_string(), "call 2: 8 bytes, expected 16");
        // A call that is missing in the middle shows where sizes move on.
        let mut calls = sizes(&plan);
        calls.remove(5);
        assert_eq!(assign(&calls, &plan), Err(Difference::Size { call: 18, expected: 8, seen: 32 }));
    }

    #[test]
    fn rows_are_found_in_the_calls() {
        let whole = plan();
        let asked = Plan { rows: Vec::new(), warmup_rows: Vec::new(), ..whole.clone() };
        assert_eq!(plan_of(&sizes(&whole), &asked), Ok(whole.clone()));
        let mut calls = sizes(&whole);
        calls.remove(10);
        assert_eq!(plan_of(&calls, &asked), Err(Difference::Rows { call: 35 }));
        assert_eq!(plan_of(&[], &asked), Err(Difference::Rows { call: 0 }));
        assert_eq!(plan_of(&[None, Some(8)], &asked), Err(Difference::Rows { call: 0 }));
        assert!(matches!(plan_of(&[Some(8); 3], &asked), Err(Difference::Rows { call: 1 })));
    }

    #[test]
    fn cycles_repeat_the_rows_and_not_the_warm_up() {
        let plan = Plan { cycles: 2, in_place: false, ..plan() };
        assert_eq!(plan.calls(), 3 + 2 * 3 * 8);
        let places = assign(&sizes(&plan), &plan).expect("as planned");
        assert_eq!(places.last().map(|place| (place.cycle, place.row)), Some((1, 2)));
    }
}
