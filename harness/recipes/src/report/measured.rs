//! Summaries with several measures of each group, such as the times of a launch: which columns they have, and how
//! these are made of groups. Tables of one report and recipes over many share them.

use crate::figures::{Figure, FigureValue, Gathered, Stats};
use crate::result_table::{Column, Quantity};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// What names a group.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum GroupKey {
    Number(i64),
    Text(String),
}

/// A group of the rows of a report, and of each measure what is kept of its values.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Group<K> {
    pub words: Vec<GroupKey>,
    pub measures: Vec<Option<Gathered<K>>>,
}

/// One column.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shows {
    /// A word of its group.
    Text(&'static str, usize),
    /// A word that is a number.
    Number(&'static str, usize),
    Figure {
        name: &'static str,
        quantity: Quantity,
        measure: usize,
        figure: Figure,
    },
}

impl Shows {
    /// The name of its column.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Shows::Text(name, _) | Shows::Number(name, _) | Shows::Figure { name, .. } => name,
        }
    }

    pub(super) const fn ns(name: &'static str, measure: usize, figure: Figure) -> Shows {
        Shows::Figure { name, quantity: Quantity::Nanoseconds, measure, figure }
    }

    pub(super) const fn plain(name: &'static str, measure: usize, figure: Figure) -> Shows {
        Shows::Figure { name, quantity: Quantity::Plain, measure, figure }
    }

    pub(super) const fn bare(name: &'static str, measure: usize, figure: Figure) -> Shows {
        Shows::Figure { name, quantity: Quantity::BareNanoseconds, measure, figure }
    }
}

/// The largest total of the first measure first, then by words.
pub(crate) fn sort(groups: &mut [Group<Stats>]) {
    let total = |group: &Group<Stats>| group.measures.first()?.as_ref().map(Gathered::total);
    groups.sort_by(|a, b| (Reverse(total(a)), &a.words).cmp(&(Reverse(total(b)), &b.words)));
}

/// Numbers of values of a measure that a group lacks are zero, all else of it is empty. `fit` says what becomes of a sum
/// that no cell can hold.
pub(crate) fn columns<E>(
    groups: &[Group<Stats>],
    shows: &[Shows],
    fit: impl Fn(u128) -> Result<Option<i64>, E>,
) -> Result<Vec<Column>, E> {
    let column = |shows: &Shows| {
        Ok(match *shows {
            Shows::Text(name, at) => Column::maybe_texts(
                name,
                groups.iter().map(|group| match group.words.get(at) {
                    Some(GroupKey::Text(text)) => Some(text.as_str()),
                    Some(GroupKey::Number(_)) | None => None,
                }),
            ),
            Shows::Number(name, at) => Column::maybe_integers(
                name,
                Quantity::Plain,
                groups.iter().map(|group| match group.words.get(at) {
                    Some(GroupKey::Number(number)) => Some(*number),
                    Some(GroupKey::Text(_)) | None => None,
                }),
            ),
            Shows::Figure { name, quantity, measure, figure } => {
                let values = groups.iter().map(|group| {
                    let gathered = group.measures.get(measure).and_then(Option::as_ref);
                    match (gathered, figure) {
                        (Some(gathered), _) => gathered.value(figure),
                        (None, Figure::Count) => Some(FigureValue::Whole(0)),
                        (None, _) => None,
                    }
                });
                if figure.is_whole() {
                    let whole = values.map(|value| match value {
                        Some(FigureValue::Whole(whole)) => fit(whole),
                        Some(FigureValue::Real(_)) | None => Ok(None),
                    });
                    Column::maybe_integers(name, quantity, whole.collect::<Result<Vec<_>, E>>()?)
                } else {
                    let real = values.map(|value| match value {
                        Some(FigureValue::Real(real)) => Some(real),
                        Some(FigureValue::Whole(_)) | None => None,
                    });
                    Column::maybe_decimals(name, quantity, real)
                }
            }
        })
    };
    shows.iter().map(column).collect()
}
