//! How much of a text is held: rows and heads up to a number of bytes, findings and complaints up to a number of each.
//! What a text holds is not asked here.

use super::super::Failure;
use super::super::failure::{self, Complaint};
use metric::finding::Finding;
use std::collections::BTreeMap;

/// Rows, ranks, heads and labels together, in bytes of memory: more than the largest cluster prints of a long sweep.
pub(in super::super) const MOST_BYTES: usize = 256 << 20;
/// Of a row, a rank or a run beside its text.
pub(super) const ENTRY: usize = 512;
/// Of a label, whose lines may hold a row of which the rest is to come.
pub(in super::super) const LABEL: usize = 4096;
/// Longer rows are none.
pub(super) const LONGEST_ROW: usize = 4096;

/// Findings of one code, and complaints of one run.
const MOST: usize = 1000;
/// Of a text that is held for a message.
const LONGEST_TEXT: usize = 400;

/// The findings of a text, of each code so many.
#[derive(Default)]
pub(super) struct Findings {
    held: Vec<Finding>,
    counts: BTreeMap<String, u64>,
}

impl Findings {
    pub(super) fn push(&mut self, finding: Finding) {
        let count = self.counts.entry(finding.code.clone()).or_default();
        *count += 1;
        if *count <= MOST as u64 {
            self.held.push(finding);
        }
    }

    /// Counts what was found and is held nowhere.
    pub(super) fn count(&mut self, code: &str, more: u64) {
        if more > 0 {
            *self.counts.entry(code.to_owned()).or_default() += more;
        }
    }

    /// By their lines.
    pub(super) fn all(mut self) -> Vec<Finding> {
        self.held.sort_by_key(|finding| finding.line);
        for (code, count) in &self.counts {
            let more = count.saturating_sub(MOST as u64);
            if more > 0 {
                self.held.push(Finding::new(code, format!("{more} more of these after the first {MOST}")));
            }
        }
        self.held
    }
}

/// The complaints of a run: the first ones, and of the rest those on which its failure depends.
#[derive(Default)]
pub(super) struct Complaints {
    first: Vec<Complaint>,
    nearest: Option<Complaint>,
    first_hard: Option<Complaint>,
    more: u64,
    is_hard: bool,
}

impl Complaints {
    pub(super) fn push(&mut self, complaint: Complaint) {
        self.is_hard |= complaint.hard;
        if self.first.len() < MOST {
            self.first.push(complaint);
            return;
        }
        self.more += 1;
        if complaint.hard && self.first_hard.is_none() {
            self.first_hard = Some(complaint.clone());
        }
        let key = |complaint: &Complaint| (complaint.depth, complaint.failure.line);
        if self.nearest.as_ref().is_none_or(|nearest| key(&complaint) < key(nearest)) {
            self.nearest = Some(complaint);
        }
    }

    pub(super) fn append(&mut self, others: Complaints) {
        others.first.into_iter().for_each(|complaint| self.push(complaint));
        let more = self.more + others.more;
        [others.nearest, others.first_hard].into_iter().flatten().for_each(|complaint| self.push(complaint));
        self.more = more;
    }

    /// The same, where a run began all the same: what kept one from starting is a warning.
    pub(super) fn without_starts(mut self) -> Complaints {
        let all = self.first.iter_mut().chain(&mut self.nearest).chain(&mut self.first_hard);
        all.for_each(|complaint| complaint.hard &= !complaint.before_start);
        let mut rest = self.first.iter().chain(&self.nearest).chain(&self.first_hard);
        self.is_hard = rest.any(|complaint| complaint.hard);
        self
    }

    /// Whether one of them ended the run.
    pub(super) fn is_hard(&self) -> bool {
        self.is_hard
    }

    pub(super) fn failure(&self, concluded: bool) -> Option<Failure> {
        failure::first(self.first.iter().chain(&self.nearest).chain(&self.first_hard), concluded)
    }

    pub(super) fn held(&self) -> &[Complaint] {
        &self.first
    }

    /// How many are not held.
    pub(super) fn more(&self) -> u64 {
        self.more
    }
}

/// Errors that may turn out to be none: where they stand, and what they say.
#[derive(Default)]
pub(super) struct Errors {
    pub held: Vec<(u64, String)>,
    pub more: u64,
}

impl Errors {
    pub(super) fn push(&mut self, line: u64, text: &str) {
        match self.held.len() < MOST {
            true => self.held.push((line, text.chars().take(LONGEST_TEXT).collect())),
            false => self.more += 1,
        }
    }
}
