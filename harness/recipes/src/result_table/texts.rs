//! The words of a column: traces have few of them and very many rows, so that a word stands there once, and each row says
//! which it is.

use super::Integers;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// `None` is a cell without a word.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct Texts {
    words: Vec<Arc<str>>,
    of_row: Integers,
}

/// The same as it is read back, before it is known that each row has a word that is there.
#[derive(Deserialize)]
struct Written {
    words: Vec<Arc<str>>,
    of_row: Integers,
}

impl TryFrom<Written> for Texts {
    type Error = String;

    fn try_from(Written { words, of_row }: Written) -> Result<Texts, String> {
        let is_there = |number: &i64| usize::try_from(*number).is_ok_and(|number| number < words.len());
        match of_row.iter().flatten().find(|number| !is_there(number)) {
            None => Ok(Texts { words, of_row }),
            Some(number) => Err(format!("no text number {number} in the column")),
        }
    }
}

impl Texts {
    /// Of each row which of the words it has, from 0.
    pub(crate) fn shared(words: Vec<Arc<str>>, of_row: Integers) -> Texts {
        Texts { words, of_row }
    }

    /// Number of rows, those without a text included.
    pub(crate) fn len(&self) -> usize {
        self.of_row.len()
    }

    /// Nothing beyond the last row too.
    pub fn get(&self, row: usize) -> Option<&str> {
        self.word(self.of_row.get(row)?)
    }

    /// One item per row, `None` where it has no text.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Option<&str>> + '_ {
        self.of_row.iter().map(|number| self.word(number?))
    }

    /// Puts the rows of another column below.
    pub(crate) fn append(&mut self, more: &Texts) {
        let known = self.words.len() as i64;
        self.words.extend(more.words.iter().cloned());
        self.of_row.append(more.of_row.iter().map(|number| Some(known + number?)).collect());
    }

    /// Puts so many rows without a text below.
    pub(crate) fn append_empty(&mut self, rows: usize) {
        self.of_row.append(std::iter::repeat_n(None, rows).collect());
    }

    fn word(&self, number: i64) -> Option<&str> {
        self.words.get(usize::try_from(number).ok()?).map(|word| &**word)
    }
}

/// Neighbours of one word share it.
impl FromIterator<Option<Arc<str>>> for Texts {
    fn from_iter<I: IntoIterator<Item = Option<Arc<str>>>>(values: I) -> Texts {
        let mut words: Vec<Arc<str>> = Vec::new();
        let of_row = values.into_iter().map(|value| {
            let value = value?;
            if words.last() != Some(&value) {
                words.push(value);
            }
            Some(words.len() as i64 - 1)
        });
        let of_row = of_row.collect();
        Texts { words, of_row }
    }
}

/// Columns of the same words are equal, however they share them.
impl PartialEq for Texts {
    fn eq(&self, other: &Texts) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl fmt::Debug for Texts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(words: &[Option<&str>]) -> Texts {
        words.iter().map(|word| word.map(Arc::from)).collect()
    }

    #[test]
    fn a_column_has_its_words_whether_rows_share_them_or_not() {
        let plain = texts(&[Some("a"), Some("a"), None, Some("b"), Some("a")]);
        assert_eq!(plain.words.len(), 3);
        let of_row = [Some(1), Some(1), None, Some(0), Some(1)];
        let shared = Texts::shared(vec!["b".into(), "a".into()], of_row.into_iter().collect());
        assert_eq!(plain, shared);
        assert_eq!(
            (shared.get(0), shared.get(2), shared.get(3), shared.get(5)),
            (Some("a"), None, Some("b"), None)
        );
        assert_eq!(shared.iter().flatten().collect::<String>(), "aaba");
        assert_ne!(plain, texts(&[Some("a"), Some("a"), None, Some("b")]));
        assert_ne!(plain, texts(&[Some("a"), Some("a"), Some(""), Some("b"), Some("a")]));
    }

    #[test]
    fn texts_of_another_column_stand_below() {
        let mut all = texts(&[]);
        all.append(&texts(&[Some("a"), None]));
        all.append_empty(1);
        all.append(&texts(&[Some("b"), Some("a")]));
        assert_eq!(all, texts(&[Some("a"), None, None, Some("b"), Some("a")]));
        assert_eq!(all.len(), 5);
    }
}
