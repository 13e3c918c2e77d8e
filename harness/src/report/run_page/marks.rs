//! The sign of each status: a letter and a class of the style, so that colour is never alone.

use model::artefact::Status;

/// How a status is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    /// Of a cell; behind an `s` where the result is one of a job that several nodes share.
    pub class: &'static str,
    /// In a cell.
    pub letter: &'static str,
    /// Of a word.
    pub word_class: &'static str,
}

pub(super) const fn mark(status: Status) -> Mark {
    let (class, letter, word_class) = match status {
        Status::Fail => ("f", "F", "s-fail"),
        Status::UnexpectedPass => ("w", "U", "s-unexpected"),
        Status::Error => ("e", "E", "s-error"),
        Status::Inconclusive => ("i", "?", "s-inconclusive"),
        Status::ExpectedFailure => ("x", "x", "s-expected"),
        Status::Unjudged => ("u", "u", "s-unjudged"),
        Status::Pass => ("p", "✓", "s-pass"),
        Status::Skipped => ("k", "–", "s-skipped"),
    };
    Mark { class, letter, word_class }
}

/// The worst comes first; what was measured and passed says more than what only reports.
pub(super) const BY_WEIGHT: [Status; 8] = [
    Status::Fail,
    Status::UnexpectedPass,
    Status::Error,
    Status::Inconclusive,
    Status::ExpectedFailure,
    Status::Unjudged,
    Status::Pass,
    Status::Skipped,
];

/// The place in that order.
pub(crate) fn weight(status: Status) -> usize {
    BY_WEIGHT.iter().position(|one| *one == status).unwrap_or(BY_WEIGHT.len())
}

/// The word of a status in its colour.
pub(super) fn word(status: Status) -> String {
    format!("<span class=\"badge {}\">{}</span>", mark(status).word_class, status.name())
}
