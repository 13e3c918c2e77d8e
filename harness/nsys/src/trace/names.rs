//! The strings of a report, by their ids.

use crate::export::{Export, ExportError};
use crate::tables::STRING_IDS;
use std::borrow::Cow;
use std::collections::HashMap;

/// What `STRING_IDS` holds.
#[derive(Debug, Default)]
pub struct Strings {
    of_id: HashMap<i64, String>,
}

impl Strings {
    pub(super) fn read(export: &Export) -> Result<Strings, ExportError> {
        let Some(rows) = export.table(&STRING_IDS)? else { return Ok(Strings::default()) };
        let (ids, values) = (rows.ints("id")?, rows.texts("value")?);
        // Where an id stands twice, the first one counts, in whatever form the export is.
        let mut of_id = HashMap::with_capacity(ids.len());
        for (id, value) in ids.iter().zip(values.iter()) {
            if let Some(value) = value {
                of_id.entry(*id).or_insert_with(|| value.to_owned());
            }
        }
        Ok(Strings { of_id })
    }

    /// `None` where the report has no such id.
    pub fn get(&self, id: i64) -> Option<&str> {
        self.of_id.get(&id).map(String::as_str)
    }

    /// What stands for it where it must be shown.
    pub fn render(&self, id: i64) -> Cow<'_, str> {
        match self.get(id) {
            Some(text) => Cow::Borrowed(text),
            None => Cow::Owned(format!("[no string {id}]")),
        }
    }
}
