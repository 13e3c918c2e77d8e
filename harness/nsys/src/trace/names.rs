//! The strings of a report, by their ids.

use crate::export::{Export, ExportError};
use crate::tables::STRING_IDS;
use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// What `STRING_IDS` holds.
#[derive(Debug, Default)]
pub struct Strings {
    of_id: HashMap<i64, String>,
}

impl Strings {
    pub(super) fn read(export: &Export) -> Result<Strings, ExportError> {
        let Some(rows) = export.table(&STRING_IDS)? else { return Ok(Strings::default()) };
        let (ids, values) = (rows.ints("id")?, rows.texts("value")?);
        let mut of_id: HashMap<i64, String> = HashMap::with_capacity(ids.len());
        for (id, value) in ids.iter().zip(values.iter()) {
            let Some(value) = value else { continue };
            match of_id.entry(*id) {
                Entry::Vacant(place) => {
                    place.insert(value.to_owned());
                }
                // Which of two kernels an id names, nothing shows.
                Entry::Occupied(known) if known.get() != value => {
                    let why = format!("id {id} has two texts: of two reports, export it again");
                    return Err(ExportError::Broken { table: STRING_IDS.name, why });
                }
                Entry::Occupied(_) => {}
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Made;

    #[test]
    fn an_id_with_two_texts_is_refused_and_one_that_is_there_twice_is_not() {
        let made = Made::begin();
        made.string(1, "a").string(2, "b").string(1, "a");
        let read = || Strings::read(&Export::open(&made.path()).expect("opens"));
        assert_eq!(read().expect("read").get(1), Some("a"));
        made.string(1, "b");
        let refused = read().expect_err("refused").to_string();
        assert!(refused.contains("id 1 has two texts"), "{refused}");
    }
}
