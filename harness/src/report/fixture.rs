//! Reports over small made-up runs.

use super::Report;
pub(crate) use fixture::*;

pub(crate) trait Reported {
    fn report(&self) -> Report<'_>;
}

impl Reported for Made {
    fn report(&self) -> Report<'_> {
        Report::new(&self.plan, &self.cases, &self.summary)
    }
}
