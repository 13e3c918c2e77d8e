//! A table for people and for programs: named columns of one kind of quantity each. How it is printed is described in the
//! files of its forms; where its figures come from, in reports and recipes.

mod cell;
mod column;
mod delimited;
mod form;
#[cfg(test)]
mod forms;
mod heading;
mod html;
mod integers;
mod json;
pub mod parquet;
mod texts;
mod visible;

pub use cell::{Cell, Look, Shown, ShownColumn};
pub use delimited::csv_text;
pub use form::{BadForm, Form, FormSpec, LIST as FORMS, OptionSpec, find as find_form};
pub use heading::{Headings, TimeUnit};
pub use html::escaped;
pub(crate) use integers::BLOCK;
pub use integers::Integers;
pub use texts::Texts;
pub use visible::visible;

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;

/// Every column is as long as every other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultTable {
    /// As the report or recipe that it belongs to is called.
    pub name: Cow<'static, str>,
    /// For a person.
    pub title: Cow<'static, str>,
    /// From left to right.
    pub columns: Vec<Column>,
}

/// Values of one quantity under one heading.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Without its unit.
    pub name: String,
    /// Decides the shown unit and the number of decimals.
    pub quantity: Quantity,
    /// One per row.
    pub values: Values,
}

/// What the numbers of a column are, in their own unit: forms turn them into the unit that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Quantity {
    /// Numbers and words as they stand.
    Plain,
    /// Shown in the unit of `--timeunit`, which the heading names.
    Nanoseconds,
    /// Nanoseconds too, in a column whose published heading has no unit.
    BareNanoseconds,
    /// Shown in MB of 10^6 bytes.
    Bytes,
    /// Shown in MB/s of 10^6 bytes.
    BytesPerSecond,
    /// 100 is the whole; a ratio may exceed it.
    Percent,
    /// A fraction, with enough digits to distinguish small ones.
    Fraction,
    /// Lines of a text, which stand in no table: they are printed as they are, without a heading.
    Verbatim,
}

/// `None` is a cell without a value, which is never a zero.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Values {
    /// Whole numbers in the column's quantity.
    Integers(Integers),
    /// Shown with one decimal, or as their quantity has it.
    Decimals(Vec<Option<f64>>),
    /// Each text is stored once where rows share it.
    Texts(Texts),
    /// Several numbers in one cell.
    Lists(Vec<Option<List>>),
}

/// Numbers, and how they look where a cell holds text: `[6, 7]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct List {
    numbers: Arc<[i64]>,
    shown: Arc<str>,
}

impl From<Vec<i64>> for List {
    fn from(numbers: Vec<i64>) -> List {
        List { shown: format!("{numbers:?}").into(), numbers: numbers.into() }
    }
}

impl List {
    /// In the order in which they are shown.
    pub(crate) fn numbers(&self) -> &[i64] {
        &self.numbers
    }

    /// As in a cell of text: `[6, 7]`.
    pub fn text(&self) -> &str {
        &self.shown
    }
}

impl Values {
    /// Number of rows, those without a value included.
    pub(crate) fn len(&self) -> usize {
        match self {
            Values::Integers(all) => all.len(),
            Values::Decimals(all) => all.len(),
            Values::Texts(all) => all.len(),
            Values::Lists(all) => all.len(),
        }
    }

    /// A column of the same kind without a row.
    pub(crate) fn none(&self) -> Values {
        match self {
            Values::Integers(_) => Values::Integers(Integers::default()),
            Values::Decimals(_) => Values::Decimals(Vec::new()),
            Values::Texts(_) => Values::Texts(Texts::default()),
            Values::Lists(_) => Values::Lists(Vec::new()),
        }
    }

    /// Puts the rows of another column of the same kind below; of another kind they are left empty.
    pub(crate) fn append(&mut self, other: &Values) {
        match (&mut *self, other) {
            (Values::Integers(all), Values::Integers(more)) => all.append(more.clone()),
            (Values::Decimals(all), Values::Decimals(more)) => all.extend(more),
            (Values::Texts(all), Values::Texts(more)) => all.append(more),
            (Values::Lists(all), Values::Lists(more)) => all.extend(more.iter().cloned()),
            (_, other) => self.append_empty(other.len()),
        }
    }

    /// Puts so many rows without a value below.
    pub(crate) fn append_empty(&mut self, rows: usize) {
        match self {
            Values::Integers(all) => all.append(std::iter::repeat_n(None, rows).collect()),
            Values::Decimals(all) => all.extend(std::iter::repeat_n(None, rows)),
            Values::Texts(all) => all.append_empty(rows),
            Values::Lists(all) => all.extend(std::iter::repeat_n(None, rows)),
        }
    }
}

impl ResultTable {
    /// The columns under the name of their report or recipe.
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        title: impl Into<Cow<'static, str>>,
        columns: Vec<Column>,
    ) -> ResultTable {
        ResultTable { name: name.into(), title: title.into(), columns }
    }

    /// Number of rows; 0 without columns.
    pub fn height(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }

    /// Its headings alone.
    pub(crate) fn without_rows(mut self) -> ResultTable {
        self.columns.iter_mut().for_each(|column| column.values = column.values.none());
        self
    }

    /// A text instead of a table: programs find its lines in the one column `Text`.
    pub fn from_lines(name: &'static str, title: &'static str, lines: Vec<String>) -> ResultTable {
        let mut column = Column::texts("Text", lines);
        column.quantity = Quantity::Verbatim;
        ResultTable::new(name, title, vec![column])
    }

    /// The lines, where it is a text.
    pub fn lines(&self) -> Option<impl Iterator<Item = &str>> {
        match self.columns.as_slice() {
            [Column { quantity: Quantity::Verbatim, values: Values::Texts(lines), .. }] => {
                Some(lines.iter().map(Option::unwrap_or_default))
            }
            _ => None,
        }
    }

    /// By its name without the unit: `Total Time`; the first of equals.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }
}

impl Column {
    /// A plain column with a text in each row.
    pub fn texts<T: Into<Arc<str>>>(name: &str, values: impl IntoIterator<Item = T>) -> Column {
        let values = values.into_iter().map(|value| Some(value.into())).collect();
        Column { name: name.to_owned(), quantity: Quantity::Plain, values: Values::Texts(values) }
    }

    /// A plain column of texts; `None` where a row has none.
    pub fn maybe_texts<T: Into<Arc<str>>>(name: &str, values: impl IntoIterator<Item = Option<T>>) -> Column {
        let values = values.into_iter().map(|value| value.map(Into::into)).collect();
        Column { name: name.to_owned(), quantity: Quantity::Plain, values: Values::Texts(values) }
    }

    /// A plain column of lists of numbers; `None` where a row has none.
    pub(crate) fn maybe_lists(name: &str, values: impl IntoIterator<Item = Option<Vec<i64>>>) -> Column {
        let values = values.into_iter().map(|value| value.map(List::from)).collect();
        Column { name: name.to_owned(), quantity: Quantity::Plain, values: Values::Lists(values) }
    }

    /// A column with a whole number in each row.
    pub fn integers(name: &str, quantity: Quantity, values: impl IntoIterator<Item = i64>) -> Column {
        let values = values.into_iter().map(Some).collect();
        Column { name: name.to_owned(), quantity, values: Values::Integers(values) }
    }

    /// A column of whole numbers; `None` where a row has none.
    pub fn maybe_integers(
        name: &str,
        quantity: Quantity,
        values: impl IntoIterator<Item = Option<i64>>,
    ) -> Column {
        Column { name: name.to_owned(), quantity, values: Values::Integers(values.into_iter().collect()) }
    }

    /// A column with a number in each row; NaN is shown as an empty cell.
    pub fn decimals(name: &str, quantity: Quantity, values: impl IntoIterator<Item = f64>) -> Column {
        let values = values.into_iter().map(Some).collect();
        Column { name: name.to_owned(), quantity, values: Values::Decimals(values) }
    }

    /// A column of numbers; `None` where a row has none.
    pub(crate) fn maybe_decimals(
        name: &str,
        quantity: Quantity,
        values: impl IntoIterator<Item = Option<f64>>,
    ) -> Column {
        Column { name: name.to_owned(), quantity, values: Values::Decimals(values.into_iter().collect()) }
    }
}
