//! What a report says of the session that it is of: when its time zero was.

use super::Trace;
use crate::source::nsys_export::ExportError;
use crate::tables::SESSION_START;

impl Trace {
    /// The time zero in UTC, by the clock of the report's host.
    pub fn utc_epoch_ns(&self) -> Result<Option<i64>, ExportError> {
        let Some(rows) = self.export().columns(&SESSION_START, &["utcEpochNs"])? else { return Ok(None) };
        let epochs = rows.maybe_ints("utcEpochNs")?;
        Ok((0..rows.len()).find_map(|row| epochs.get(row)))
    }
}
