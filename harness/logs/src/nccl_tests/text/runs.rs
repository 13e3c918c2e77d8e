//! Separates runs, fills in what stands around their tables, and finds the cause of each run's failure.
//! What a comment says is asked of `super::super::head`.

use super::super::cell::WrongColumn;
use super::super::failure::{self, Depth};
use super::super::head::{self, Comment};
use super::super::{FailureClass, Format, NcclRun, RankLine};
use super::limits::{self, Complaints, Errors, Findings};
use super::{Reader, render, sweep};
use metric::finding::Finding;
use metric::op::Op;
use std::collections::BTreeSet;

#[derive(Default)]
pub(super) struct State {
    pub(super) run: NcclRun,
    pub(super) seen: BTreeSet<Stage>,
    pub(super) ranks: BTreeSet<u32>,
    pub(super) complaints: Complaints,
    pub(super) errors: Errors,
    pub(super) calls: BTreeSet<&'static str>,
    pub(super) op_of_failure: Option<Op>,
    pub(super) began: u64,
    /// Its rows may be another's.
    pub(super) is_mixed: bool,
    /// The hosts of a run that began before this one, and had neither printed a row nor ended: its rows may be that one's.
    pub(super) rivals: BTreeSet<String>,
}

/// The parts of a run in their order. A part that comes again, or after a later one, is another run's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    Version,
    Starting,
    Parameters,
    Ranks,
    Headings,
    Rows,
    Closing,
    Concluded,
}

impl Reader {
    /// The run that rows of this stream belong to.
    pub(super) fn rows_begin(&mut self, at: usize, line: u64) -> Option<&mut State> {
        self.enter(at, Stage::Rows, line)
    }

    /// The run that a part belongs to: the one at hand, or a new one where that one is past it.
    pub(super) fn enter(&mut self, at: usize, stage: Stage, line: u64) -> Option<&mut State> {
        let at_hand = self.streams.get(at).and_then(|stream| stream.run);
        let repeats = matches!(stage, Stage::Ranks | Stage::Headings | Stage::Rows | Stage::Closing);
        let past = at_hand.and_then(|run| self.runs.get(run)).is_some_and(|state| {
            let later = state.seen.iter().next_back().is_some_and(|seen| *seen > stage);
            let again = !repeats && state.seen.contains(&stage);
            // Headings may stand above closing lines that lost their rows; what is concluded stays so.
            let closed = state.seen.contains(&Stage::Concluded) && stage < Stage::Concluded;
            let broken = stage <= Stage::Headings && state.complaints.is_hard();
            later || again || closed || broken
        });
        if at_hand.is_none() || past {
            let (is_mixed, rivals) = self.mixes(at_hand.filter(|_| past), stage, line);
            let program = self.launched.take();
            let run = NcclRun { program, nccl_version: self.nccl_version.take(), ..NcclRun::default() };
            self.held += 2 * limits::ENTRY;
            self.runs.push(State { run, began: line, is_mixed, rivals, ..State::default() });
            let stream = self.streams.get_mut(at)?;
            stream.run = Some(self.runs.len() - 1);
            if stage < Stage::Headings {
                stream.layout = None;
            }
            stream.row_length = 0;
            // A new table does not end the row of the one before.
            if stage != Stage::Rows
                && let Some(broken) = stream.pending.take()
            {
                self.cut(at, broken.line, "another run begins before it ends");
            }
        }
        let run = self.streams.get(at)?.run?;
        let state = self.runs.get_mut(run)?;
        state.seen.insert(stage);
        Some(state)
    }

    /// Whether a run that begins behind an open one is mixed with it: what ran one after the other has closing lines,
    /// or a failure, in between. And the hosts of the open one, where it may be.
    fn mixes(&mut self, open: Option<usize>, stage: Stage, line: u64) -> (bool, BTreeSet<String>) {
        let none = BTreeSet::new();
        let Some(earlier) = open.and_then(|run| self.runs.get_mut(run)) else { return (false, none) };
        let is_open = !earlier.seen.contains(&Stage::Closing)
            && !earlier.seen.contains(&Stage::Concluded)
            && !earlier.complaints.is_hard();
        if stage > Stage::Headings {
            // It has no head of its own.
            return (earlier.is_mixed, earlier.rivals.clone());
        }
        let has_rows = earlier.seen.contains(&Stage::Rows);
        if !is_open || !has_rows && stage > Stage::Parameters {
            return (false, none);
        }
        let mut hosts = std::mem::take(&mut earlier.rivals);
        hosts.extend(earlier.run.ranks.iter().map(|rank| rank.host.clone()));
        let message = match has_rows {
            true => format!(
                "a header stands within the table of line {}: two runs wrote at once, no row is attributable; give \
                 each run its own file",
                earlier.began
            ),
            false => format!(
                "a run begins before the run of line {} printed a row: if both ran at once, their rows are mixed",
                earlier.began
            ),
        };
        self.findings.push(Finding::new("interleaved-tables", message).line(line));
        earlier.is_mixed |= has_rows;
        (has_rows, hosts)
    }

    pub(super) fn comment(&mut self, at: usize, comment: Comment, line: u64) {
        let stage = match &comment {
            Comment::Version { .. } | Comment::Torch { .. } => Stage::Version,
            Comment::Starting(_) => Stage::Starting,
            Comment::Parameters(_) => Stage::Parameters,
            Comment::MaxBytes(_) => Stage::Ranks,
            Comment::Rank(rank) => {
                // A rank that was listed already is another run's.
                let run = self.streams.get(at).and_then(|stream| self.runs.get_mut(stream.run?));
                if let Some(state) = run
                    && !state.ranks.insert(rank.rank)
                {
                    state.seen.insert(Stage::Headings);
                }
                Stage::Ranks
            }
            Comment::Headings(..) => Stage::Headings,
            Comment::OutOfBounds(_) | Comment::Average(..) | Comment::OddClosing(_) => Stage::Closing,
            Comment::Concluded(_) => Stage::Concluded,
            Comment::Error(text) => {
                if let Some(state) = self.state_of(at) {
                    state.errors.push(line, text);
                }
                return;
            }
            Comment::Known => return,
        };
        if let Comment::Headings(layout, wide) = &comment {
            if !layout.foreign.is_empty() {
                let message = format!(
                    "unknown column, not printed by nccl-tests: `{}`",
                    render(&layout.foreign.join(" "))
                );
                self.findings.push(Finding::new("foreign-column", message).line(line));
            }
            let format = match layout.wrong {
                WrongColumn::MaxError => Format::ErrorText,
                _ if *wide => Format::WideText,
                _ => Format::WrongText,
            };
            let layout = layout.clone();
            let cpu_time = layout.cpu_time;
            if let Some(state) = self.enter(at, stage, line) {
                state.run.format = format;
                state.run.cpu_time = cpu_time;
            }
            if let Some(stream) = self.streams.get_mut(at) {
                stream.layout = Some(layout);
            }
            return;
        }
        if stage >= Stage::Closing
            && let Some(broken) = self.streams.get_mut(at).and_then(|stream| stream.pending.take())
        {
            self.cut(at, broken.line, "the table ends within it");
        }
        let Some(state) = self.enter(at, stage, line) else { return };
        let run = &mut state.run;
        match comment {
            Comment::Version { nccl_tests, nccl } => {
                run.nccl_tests_version = Some(nccl_tests);
                run.nccl_version = nccl.or(run.nccl_version.take());
            }
            Comment::Torch { pytorch, nccl } => {
                run.pytorch_version = Some(pytorch);
                run.nccl_version = nccl.or(run.nccl_version.take());
            }
            Comment::Starting(program) => {
                run.program = Some(program);
                run.has_start = true;
            }
            Comment::Parameters(parameters) => run.parameters = Some(parameters),
            Comment::MaxBytes(bytes) => {
                let parameters = run.parameters.get_or_insert_default();
                parameters.max_bytes = Some(bytes);
                parameters.min_bytes = parameters.min_bytes.map(|min| min.min(bytes));
            }
            Comment::Rank(rank) => {
                state.ranks.insert(rank.rank);
                run.ranks.push(rank);
            }
            Comment::OutOfBounds(bounds) => {
                run.out_of_bounds = Some(bounds);
                if !bounds.ok {
                    let cause = format!("values out of bounds: {}", bounds.count);
                    let class = FailureClass::OutOfBounds;
                    state.complaints.push(failure::complaint(class, Depth::Root, true, &cause, None, line));
                }
            }
            Comment::Average(average, short) => {
                run.average_busbw_gb_s = average.is_finite().then_some(average);
                run.concluded = true;
                if !average.is_finite() {
                    run.odd_closing = Some(format!("Avg bus bandwidth: {average}"));
                }
                if short {
                    let cause = format!("average bus bandwidth below the requested minimum: {average}");
                    let class = FailureClass::BelowMinimum;
                    state.complaints.push(failure::complaint(class, Depth::Root, true, &cause, None, line));
                }
            }
            Comment::OddClosing(line) => run.odd_closing = Some(line),
            Comment::Concluded(program) => {
                run.has_end = true;
                if run.program.is_none() && !program.is_empty() {
                    run.program = Some(program);
                }
                run.concluded = true;
            }
            Comment::Headings(..) | Comment::Error(_) | Comment::Known => (),
        }
    }
}

impl State {
    pub(super) fn finish(mut self, findings: &mut Findings) -> NcclRun {
        let mut run = self.run;
        if let Some(why) = sweep::odd(&run).filter(|_| !self.is_mixed) {
            let line = run.rows.first().map_or(self.began, |row| row.line);
            findings.push(Finding::new("interleaved-tables", why).line(line));
            self.is_mixed = true;
        }
        let is_others = |rank: &RankLine| !self.rivals.contains(&rank.host);
        // The rows are of one of both: of which is a guess, unless it is the same nodes that try again.
        self.is_mixed |= !self.rivals.is_empty() && run.ranks.iter().any(is_others);
        if self.is_mixed {
            run.refused_rows += run.rows.len() as u64;
            run.rows.clear();
        }
        let named = run.program.as_deref().and_then(head::op_of);
        let mut calls = self.calls.iter();
        let called = match (calls.next(), calls.next()) {
            (Some(&"AllReduce: opCount"), None) => Some(Op::AllReduce),
            (Some(&"AllGather: opCount"), None) => Some(Op::AllGather),
            (Some(&"ReduceScatter: opCount"), None) => Some(Op::ReduceScatter),
            (Some(&"Broadcast: opCount"), None) => Some(Op::Broadcast),
            (Some(&"Reduce: opCount"), None) => Some(Op::Reduce),
            _ => None,
        };
        // A program of unknown name is of an unknown operation, whatever NCCL calls it is made of.
        run.op = if run.program.is_some() { named } else { self.op_of_failure.or(called) };
        let whole = run.concluded && !run.rows.is_empty();
        for (line, text) in self.errors.held {
            // NCCL's last error is printed although the run may have got over it.
            if whole {
                let message = format!("last NCCL error, though the run completed: {}", render(&text));
                findings.push(Finding::new("error-noted", message).line(line));
            } else {
                let class = FailureClass::NcclError;
                self.complaints.push(failure::complaint(class, Depth::Symptom, true, &text, None, line));
            }
        }
        if whole {
            findings.count("error-noted", self.errors.more);
        }
        run.failure = self.complaints.failure(run.concluded);
        if run.failure.is_none() {
            for complaint in self.complaints.held() {
                let (code, what) = match complaint.before_start {
                    true => ("error-noted", "an earlier try did not start"),
                    false => ("nccl-warn", "NCCL warning"),
                };
                let message =
                    format!("{what}, though the run completed: {}", render(&complaint.failure.cause));
                findings.push(Finding::new(code, message).line(complaint.failure.line));
            }
            findings.count("nccl-warn", self.complaints.more());
        }
        if !run.concluded && run.failure.is_none() {
            let (code, message) = match run.rows.len() {
                0 if run.out_of_bounds.is_some() => {
                    ("no-rows", "run has closing lines, and no row that could be read".to_owned())
                }
                0 => ("no-rows", "run has no rows, no closing lines and no failure".to_owned()),
                rows => ("not-concluded", format!("run has no closing lines; rows: {rows}")),
            };
            findings.push(Finding::new(code, message).line(self.began));
        }
        run
    }
}
