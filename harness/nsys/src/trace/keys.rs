//! Groups of rows by one value or by several: each row gets the number of its group, each group its values.

use super::Strings;
use std::borrow::Cow;
use std::collections::HashMap;

/// The group of a row that belongs to none.
pub const NO_GROUP: u32 = u32::MAX;

/// One value by which rows are grouped: the number of each row's value, and the values.
pub struct Part<L> {
    /// For each row an index of `labels`, or `NO_GROUP`.
    pub of_row: Vec<u32>,
    /// Each value once, in the order of first rows.
    pub labels: Vec<L>,
}

/// Ids below this are looked up in a list; names and numbers of devices are small in a sound report.
const LISTED: i64 = 1 << 22;

impl Part<i64> {
    /// Rows by a number that every row has.
    pub fn numbers(values: impl ExactSizeIterator<Item = i64>) -> Part<i64> {
        let mut labels = Vec::new();
        let mut known = Known::new();
        let of_row = values
            .map(|value| {
                known.number(value, || {
                    labels.push(value);
                    labels.len() as u32 - 1
                })
            })
            .collect();
        Part { of_row, labels }
    }
}

impl Part<String> {
    /// Rows by the string that an id stands for, made fit by `rename`: two ids of one text are one value.
    pub fn named(
        ids: impl ExactSizeIterator<Item = i64>,
        strings: &Strings,
        rename: impl Fn(&str) -> &str,
    ) -> Part<String> {
        let mut labels: Vec<String> = Vec::new();
        let mut of_text: HashMap<String, u32> = HashMap::new();
        let mut known = Known::new();
        let of_row = ids
            .map(|id| {
                known.number(id, || {
                    let shown = strings.render(id);
                    let text = rename(&shown);
                    if let Some(number) = of_text.get(text) {
                        return *number;
                    }
                    labels.push(text.to_owned());
                    let number = labels.len() as u32 - 1;
                    of_text.insert(labels[number as usize].clone(), number);
                    number
                })
            })
            .collect();
        Part { of_row, labels }
    }

    /// Rows by texts of their own.
    pub fn texts<'a>(values: impl Iterator<Item = Option<Cow<'a, str>>>) -> Part<String> {
        let mut labels: Vec<String> = Vec::new();
        let mut of_text: HashMap<String, u32> = HashMap::new();
        let of_row = values
            .map(|text| {
                let Some(text) = text else { return NO_GROUP };
                if let Some(number) = of_text.get(text.as_ref()) {
                    return *number;
                }
                labels.push(text.into_owned());
                let number = labels.len() as u32 - 1;
                of_text.insert(labels[number as usize].clone(), number);
                number
            })
            .collect();
        Part { of_row, labels }
    }
}

/// Numbers that were given to ids so far.
struct Known {
    listed: Vec<u32>,
    others: HashMap<i64, u32>,
    /// Of the others the last one: threads and processes stand in long runs.
    last: Option<(i64, u32)>,
}

impl Known {
    fn new() -> Known {
        Known { listed: Vec::new(), others: HashMap::new(), last: None }
    }

    #[inline]
    fn number(&mut self, id: i64, fresh: impl FnOnce() -> u32) -> u32 {
        if (0..LISTED).contains(&id) {
            let at = id as usize;
            match self.listed.get(at) {
                Some(number) if *number != NO_GROUP => return *number,
                Some(_) => {}
                None => self.listed.resize((at + 1).next_power_of_two(), NO_GROUP),
            }
            let number = fresh();
            self.listed[at] = number;
            return number;
        }
        match self.last {
            Some((last, number)) if last == id => number,
            _ => {
                let number = *self.others.entry(id).or_insert_with(fresh);
                self.last = Some((id, number));
                number
            }
        }
    }
}

/// Rows by several parts at once.
pub struct Keys {
    /// For each row an index of `groups`, or `NO_GROUP`.
    pub of_row: Vec<u32>,
    /// Of each group the numbers of its parts' values, in the order in which the parts were given.
    pub groups: Vec<Vec<u32>>,
}

impl Keys {
    /// Groups in the order in which their first rows come. A row that has no value in some part is in no group.
    pub fn by(parts: &[&[u32]]) -> Keys {
        let Some((first, others)) = parts.split_first() else {
            return Keys { of_row: Vec::new(), groups: Vec::new() };
        };
        let mut of_row: Vec<u32> = first.to_vec();
        let mut groups: Vec<Vec<u32>> = Vec::new();
        // A single part is renumbered too, so that every group has a row.
        renumber(&mut of_row, first, |number, _| vec![number], &mut groups, 0);
        for part in others {
            let before = std::mem::take(&mut groups);
            let width = part.iter().filter(|number| **number != NO_GROUP).max().map_or(1, |most| most + 1);
            let joined = |number: u32, other: u32| {
                let mut group = before[number as usize].clone();
                group.push(other);
                group
            };
            renumber(&mut of_row, part, joined, &mut groups, width);
        }
        Keys { of_row, groups }
    }
}

/// Tables of pairs up to this many are lists.
const MOST_PAIRS: u64 = 1 << 22;

/// Gives each pair (number so far, number in `part`) its own number. With a `width` of 0 the pair is the first alone.
fn renumber(
    of_row: &mut [u32],
    part: &[u32],
    joined: impl Fn(u32, u32) -> Vec<u32>,
    groups: &mut Vec<Vec<u32>>,
    width: u32,
) {
    let most =
        of_row.iter().filter(|number| **number != NO_GROUP).max().map_or(0, |most| u64::from(*most) + 1);
    let pairs = most * u64::from(width.max(1));
    let mut listed = if pairs <= MOST_PAIRS { vec![NO_GROUP; pairs as usize] } else { Vec::new() };
    let mut others: HashMap<u64, u32> = HashMap::new();
    for (number, other) in of_row.iter_mut().zip(part) {
        if *number == NO_GROUP || *other == NO_GROUP {
            *number = NO_GROUP;
            continue;
        }
        let pair = if width == 0 {
            u64::from(*number)
        } else {
            u64::from(*number) * u64::from(width) + u64::from(*other)
        };
        let known = if pairs <= MOST_PAIRS {
            &mut listed[pair as usize]
        } else {
            others.entry(pair).or_insert(NO_GROUP)
        };
        if *known == NO_GROUP {
            *known = groups.len() as u32;
            groups.push(joined(*number, *other));
        }
        *number = *known;
    }
}
