//! What a report says of its session: time zero and host.

use super::Trace;
use crate::export::ExportError;
use crate::tables::{SESSION_START, SIMULATED, SYSTEM_ENV};

impl Trace {
    /// The time zero in UTC, by the clock of the report's host.
    pub fn utc_epoch_ns(&self) -> Result<Option<i64>, ExportError> {
        if let Some(capture) = self.export().capture() {
            return Ok(capture.begin.utc_ns());
        }
        let Some(rows) = self.export().columns(&SESSION_START, &["utcEpochNs"])? else { return Ok(None) };
        let epochs = rows.maybe_ints("utcEpochNs")?;
        Ok((0..rows.len()).find_map(|row| epochs.get(row)))
    }

    /// The machine that the report was taken on; `None` if not recorded.
    pub fn host(&self) -> Result<Option<String>, ExportError> {
        if let Some(capture) = self.export().capture() {
            return Ok(Some(capture.node.clone()));
        }
        let Some(rows) = self.export().table(&SYSTEM_ENV)? else { return Ok(None) };
        let names = rows.texts("name")?.iter().zip(rows.texts("value")?.iter());
        let mut hosts =
            names.filter(|(name, _)| name.is_some_and(|name| name.eq_ignore_ascii_case("hostname")));
        Ok(hosts.find_map(|(_, value)| value.map(str::to_owned)))
    }

    /// Reports of simulated clusters say so wherever they are taken.
    pub fn is_simulated(&self) -> Result<bool, ExportError> {
        if self.export().capture().is_some() {
            return Ok(false);
        }
        let Some(rows) = self.export().table(&SYSTEM_ENV)? else { return Ok(false) };
        Ok(rows.texts("name")?.iter().any(|name| name == Some(SIMULATED)))
    }
}
