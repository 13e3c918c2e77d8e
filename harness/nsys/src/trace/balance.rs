//! NVTX ranges that lack one half: pushed and never popped, popped and never pushed, started and never ended. Recipes
//! judge what that means for a run.

use super::nvtx::{Domains, PUSH_POP, START_END};
use super::{Trace, pid_of, tid_of};
use crate::export::{ExportError, Rows};
use crate::tables::NVTX_EVENTS;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Halves that the profiler could not put together stand in rows of their own.
const PUSH: i64 = 35;
const POP: i64 = 36;
const START: i64 = 37;
const END: i64 = 38;

/// What a range lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Lack {
    /// It was pushed and never popped.
    Pop,
    /// It was popped and never pushed.
    Push,
    /// It was started and never ended.
    End,
    /// It was ended and never started.
    Start,
    /// It ends before it begins.
    Order,
}

impl Lack {
    /// In lower case, such as `pop`.
    pub fn name(self) -> &'static str {
        match self {
            Lack::Pop => "pop",
            Lack::Push => "push",
            Lack::End => "end",
            Lack::Start => "start",
            Lack::Order => "order",
        }
    }
}

/// A range that lacks one half, or ends before it begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Odd {
    /// What is missing or wrong.
    pub lack: Lack,
    /// Process id of the operating system.
    pub pid: i64,
    /// Thread id of the operating system.
    pub tid: i64,
    /// `domain:name`; a pop has no name.
    pub label: String,
    /// When the half that is there happened.
    pub at: i64,
    /// Which of those that lack the same under one name on one thread, from 1.
    pub nth: u64,
}

/// Complete and incomplete NVTX ranges of one report.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Balance {
    /// Ranges that have both halves.
    pub whole: u64,
    /// By process, thread and time.
    pub odd: Vec<Odd>,
}

impl Balance {
    /// How many ranges lack this.
    pub fn count(&self, lack: Lack) -> u64 {
        self.odd.iter().filter(|odd| odd.lack == lack).count() as u64
    }

    /// Pushes of a name that was open already on its thread by a push before, and never popped either: a capture that
    /// ends within a range leaves one open, and a program that forgets to pop one each time.
    pub fn repeated(&self) -> u64 {
        self.odd.iter().filter(|odd| odd.lack == Lack::Pop && odd.nth > 1).count() as u64
    }

    /// Nothing where the report has no range of NVTX at all.
    pub fn read(trace: &Trace) -> Result<Option<Balance>, ExportError> {
        let columns = ["start", "end", "eventType", "text", "textId", "globalTid", "domainId"];
        match trace.rows(&NVTX_EVENTS, &columns)? {
            Some(rows) => Balance::from_rows(trace, &rows),
            None => Ok(None),
        }
    }

    fn from_rows(trace: &Trace, rows: &Rows) -> Result<Option<Balance>, ExportError> {
        let (starts, ends, types) = (rows.ints("start")?, rows.maybe_ints("end")?, rows.ints("eventType")?);
        let (tids, domain_ids) = (rows.maybe_ints("globalTid")?, rows.maybe_ints("domainId")?);
        let (texts, text_ids) = (rows.texts("text")?, rows.maybe_ints("textId")?);
        let (domains, strings) = (Domains::read(trace.export())?, trace.strings()?);
        let tid = |row: usize| tids.get(row).unwrap_or_default();
        let mut whole = 0;
        let mut lacking: Vec<(Lack, usize)> = Vec::new();
        let mut halves: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
        for (row, kind) in types.iter().enumerate() {
            let lack = match (*kind, ends.get(row)) {
                (PUSH_POP | START_END, Some(end)) if end < starts[row] => Lack::Order,
                (PUSH_POP | START_END, Some(_)) => {
                    whole += 1;
                    continue;
                }
                (PUSH_POP, None) => Lack::Pop,
                // Nothing says which end belongs to which start.
                (START_END | START, None) => Lack::End,
                (END, _) => Lack::Start,
                (PUSH | POP, _) => {
                    halves.entry(tid(row)).or_default().push(row);
                    continue;
                }
                _ => continue,
            };
            lacking.push((lack, row));
        }
        for rows in halves.values_mut() {
            rows.sort_by_key(|row| (starts[*row], *row));
            let mut open = Vec::new();
            for row in rows.iter().copied() {
                match (types[row], open.is_empty()) {
                    (PUSH, _) => open.push(row),
                    (_, true) => lacking.push((Lack::Push, row)),
                    (_, false) => {
                        open.pop();
                        whole += 1;
                    }
                }
            }
            lacking.extend(open.into_iter().map(|row| (Lack::Pop, row)));
        }
        if whole == 0 && lacking.is_empty() {
            return Ok(None);
        }
        lacking.sort_by_key(|(lack, row)| (tid(*row), starts[*row], *lack, *row));
        let mut seen: BTreeMap<(i64, Lack, String), u64> = BTreeMap::new();
        let odd = lacking.into_iter().map(|(lack, row)| {
            let name = match (texts.get(row), text_ids.get(row)) {
                (Some(text), _) => text.to_owned(),
                (None, Some(id)) => strings.render(id).into_owned(),
                (None, None) => String::new(),
            };
            let domain = domains.name(tid(row), domain_ids.get(row).unwrap_or_default());
            let label = format!("{domain}:{name}");
            let nth = seen.entry((tid(row), lack, label.clone())).or_default();
            *nth += 1;
            let (pid, thread) = (pid_of(tid(row)), tid_of(tid(row)));
            Odd { lack, pid, tid: thread, label, at: starts[row], nth: *nth }
        });
        Ok(Some(Balance { whole, odd: odd.collect() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Made;

    type Row = (Lack, i64, i64, String, u64);

    fn balance(made: &Made) -> (u64, Vec<Row>) {
        let balance = Balance::read(&made.trace()).expect("read").expect("ranges");
        let odd = balance.odd.into_iter().map(|odd| (odd.lack, odd.tid, odd.at, odd.label, odd.nth));
        (balance.whole, odd.collect())
    }

    fn half(made: &Made, kind: i64, thread: i64, at: i64, text: &str) {
        made.event(kind, thread, &[("start", at.into()), ("text", text.to_owned().into())]);
    }

    #[test]
    fn a_range_without_one_half_is_reported_with_its_thread_and_time() {
        let made = Made::begin();
        made.range((0, 10), 3, "step").started((0, 10), (3, 4), "load");
        half(&made, PUSH_POP, 4, 70, "forward");
        half(&made, PUSH_POP, 3, 50, "forward");
        half(&made, PUSH_POP, 3, 60, "forward");
        half(&made, START_END, 3, 20, "load");
        half(&made, POP, 3, 5, "");
        made.range((30, 20), 3, "odd");
        let (whole, odd) = balance(&made);
        let expected = [
            (Lack::Push, 3, 5, ":", 1),
            (Lack::End, 3, 20, ":load", 1),
            (Lack::Order, 3, 30, ":odd", 1),
            (Lack::Pop, 3, 50, ":forward", 1),
            (Lack::Pop, 3, 60, ":forward", 2),
            (Lack::Pop, 4, 70, ":forward", 1),
        ];
        assert_eq!(whole, 2);
        let expected = expected.map(|(lack, tid, at, label, nth)| (lack, tid, at, label.to_owned(), nth));
        assert_eq!(odd, expected);
    }

    #[test]
    fn halves_that_stand_alone_are_put_together_on_their_own_thread() {
        let made = Made::begin();
        for (kind, thread, at) in [(PUSH, 3, 0), (PUSH, 3, 1), (POP, 3, 2), (POP, 4, 3), (END, 4, 4)] {
            half(&made, kind, thread, at, "a");
        }
        let (whole, odd) = balance(&made);
        let lacks: Vec<(Lack, i64, i64)> = odd.iter().map(|odd| (odd.0, odd.1, odd.2)).collect();
        assert_eq!((whole, lacks), (1, vec![(Lack::Pop, 3, 0), (Lack::Push, 4, 3), (Lack::Start, 4, 4)]));
    }

    #[test]
    fn names_stand_with_their_domains_and_a_report_without_ranges_has_no_balance() {
        let made = Made::begin();
        made.string(7, "ncclAllReduce");
        made.event(
            super::super::nvtx::DOMAIN,
            3,
            &[("domainId", 2.into()), ("text", "NCCL".to_owned().into())],
        );
        assert_eq!(Balance::read(&made.trace()).expect("read"), None);
        made.event(PUSH_POP, 3, &[("domainId", 2.into()), ("textId", 7.into())]);
        assert_eq!(balance(&made).1[0].3, "NCCL:ncclAllReduce");
        let nothing = Made::begin();
        nothing.string(1, "a");
        assert_eq!(Balance::read(&nothing.trace()).expect("read"), None);
    }
}
