//! Colours of what is printed, where the reader wants any.

use model::artefact::Status;

/// Paints texts for a terminal, or leaves them as they are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    pub color: bool,
}

impl Paint {
    fn with(self, code: u8, text: &str) -> String {
        if self.color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.with(31, text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.with(33, text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.with(32, text)
    }

    pub(crate) fn status(self, status: Status, text: &str) -> String {
        match status {
            Status::Fail | Status::UnexpectedPass => self.red(text),
            Status::Inconclusive | Status::Error => self.yellow(text),
            Status::Pass | Status::Skipped | Status::ExpectedFailure | Status::Unjudged => text.to_owned(),
        }
    }
}
