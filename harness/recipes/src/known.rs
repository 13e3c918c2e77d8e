//! Static texts, such as titles of tables, in what one process writes and another reads back: each is interned once
//! for the life of the process.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// By another name: serde takes a field of the plain type for one that borrows from what is read.
pub(crate) type Known = &'static str;

static READ: Mutex<BTreeSet<Known>> = Mutex::new(BTreeSet::new());

fn interned(text: String) -> Known {
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = read.get(text.as_str()) {
        return known;
    }
    let known: Known = text.leak();
    read.insert(known);
    known
}

pub(crate) fn serialize<S: Serializer>(text: &str, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(text)
}

pub(crate) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Known, D::Error> {
    String::deserialize(from).map(interned)
}

/// Several of them.
pub(crate) mod list {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(texts: &[Known], to: S) -> Result<S::Ok, S::Error> {
        texts.serialize(to)
    }

    pub(crate) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Vec<Known>, D::Error> {
        Ok(Vec::<String>::deserialize(from)?.into_iter().map(interned).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_read_twice_is_kept_once() {
        let (first, second) = (interned("a title".to_owned()), interned("a title".to_owned()));
        assert!(std::ptr::eq(first, second));
        assert_ne!(first, interned("another".to_owned()));
    }
}
