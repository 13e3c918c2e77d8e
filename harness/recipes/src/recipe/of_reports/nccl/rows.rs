//! One row for each call of NCCL.

use super::messages::{Message, Messages};
use super::msg::Extract;
use crate::recipe::of_reports::{ReportExtract, ReportRecipe};
use crate::result_table::{BLOCK, Column, Integers, Quantity, ResultTable, Texts, Values};
use nsys::nccl::sequence::{Part, Placement};
use nsys::nccl::{Kernel, Reduction};
use nsys::trace::{pid_of, tid_of};
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const PLAIN: Quantity = Quantity::Plain;
const TIME: Quantity = Quantity::Nanoseconds;

/// The input of a row.
struct Row<'a> {
    message: &'a Message<'a>,
    /// None where only their length is known.
    kernels: &'a [Kernel],
    has_lengths_only: bool,
    of_all: &'a SharedValues,
}

/// One column, and how some rows of it are made.
struct Made {
    name: &'static str,
    holds: Holds,
    rows: Box<OfRows>,
}

type OfRows = dyn Fn(&[Row]) -> Integers + Sync;

enum Holds {
    Numbers(Quantity),
    /// Rows refer to them by number.
    Words(Vec<Arc<str>>),
}

/// A loop over rows for each column, with its own value in it.
fn made(name: &'static str, holds: Holds, value: impl Fn(&Row) -> Option<i64> + Sync + 'static) -> Made {
    Made { name, holds, rows: Box::new(move |rows| rows.iter().map(&value).collect()) }
}

pub(super) fn result_table(
    recipe: &ReportRecipe<'static>,
    reports: &[ReportExtract<&Extract>],
    messages: &Messages,
) -> ResultTable {
    let (of_all, words) = SharedValues::new(reports, messages);
    let (number, time) = (|| Holds::Numbers(PLAIN), || Holds::Numbers(TIME));
    let columns = vec![
        made("Rank", number(), |row| Some(row.of_all.ranks[row.message.report as usize])),
        made("Operation", Holds::Words(words.functions), |row| Some(row.key().function)),
        made("Bytes", number(), |row| row.key().bytes),
        made("Total Bytes", number(), |row| row.key().total_bytes),
        made("Communicator", Holds::Words(words.communicators), |row| row.key().communicator),
        made("Ranks", number(), |row| row.key().ranks),
        made("Comm Rank", number(), |row| row.message.call.rank.map(i64::from)),
        made("Root", number(), |row| row.message.call.root.map(i64::from)),
        made("Peer", number(), |row| row.message.call.peer.map(i64::from)),
        made("Reduction", Holds::Words(words.reductions), |row| {
            Some(row.of_all.reduction(row.message.call.reduction?))
        }),
        made("Group", number(), |row| row.message.call.group.map(i64::from)),
        made("Instance", number(), |row| Some(row.message.instance.into())),
        made("Part", Holds::Words(named(&PARTS.map(Part::name))), |row| row.message.part.map(part)),
        made("Placement", Holds::Words(named(&PLACEMENTS.map(Placement::name))), |row| row.key().placement),
        made("Start", time(), |row| row.recorded(|row| Some(row.message.call.start))),
        made("End", time(), |row| row.recorded(|row| Some(row.message.call.end))),
        made("PID", number(), |row| row.recorded(|row| Some(pid_of(row.message.call.global_tid)))),
        made("TID", number(), |row| row.recorded(|row| Some(tid_of(row.message.call.global_tid)))),
        made("Kernels", number(), |row| row.recorded(|row| Some(row.message.call.kernels.len() as i64))),
        made("Kernel Start", time(), |row| row.recorded(|row| Some(row.message.span?.0))),
        made("Kernel End", time(), |row| row.recorded(|row| Some(row.message.span?.1))),
        made("Kernel Duration", time(), |row| {
            row.message.span.and_then(|(start, end)| end.checked_sub(start))
        }),
        made("Shares Kernels", Holds::Words(named(&["yes"])), |row| (!row.message.alone).then_some(0)),
        made("Device", number(), |row| Some(row.kernels.first()?.device)),
        made("Stream", number(), |row| Some(row.kernels.first()?.stream)),
        made("Launch Start", time(), |row| row.kernels.iter().filter_map(|kernel| kernel.launch_start).min()),
        made("Kernel", Holds::Words(words.kernels), |row| {
            let first = row.of_all.first_names[row.message.report as usize];
            Some(first + i64::from(row.kernels.first()?.name_number()))
        }),
    ];
    // A block of all columns at a time, so that each message comes near once and not for every column.
    let blocks = messages.all.par_chunks(BLOCK).map(|messages| {
        let rows = messages.iter().map(|message| {
            let Extract { nccl, has_lengths_only, .. } = reports[message.report as usize].extract;
            let kernels: &[Kernel] = if *has_lengths_only { &[] } else { nccl.kernels_of(message.call) };
            Row { message, kernels, has_lengths_only: *has_lengths_only, of_all: &of_all }
        });
        let rows: Vec<Row> = rows.collect();
        columns.iter().map(|column| (column.rows)(&rows)).collect()
    });
    let blocks: Vec<Vec<Integers>> = blocks.collect();
    let mut values = vec![Integers::default(); columns.len()];
    for block in blocks {
        values.iter_mut().zip(block).for_each(|(all, block)| all.append(block));
    }
    let columns = columns.into_iter().zip(values).map(|(column, values)| {
        let (quantity, values) = match column.holds {
            Holds::Numbers(quantity) => (quantity, Values::Integers(values)),
            Holds::Words(words) => (PLAIN, Values::Texts(Texts::shared(words, values))),
        };
        Column { name: column.name.to_owned(), quantity, values }
    });
    ResultTable::new(recipe.name, recipe.title, columns.collect())
}

impl Row<'_> {
    /// What records of lengths alone do not say.
    fn recorded(&self, value: impl Fn(&Row) -> Option<i64>) -> Option<i64> {
        if self.has_lengths_only { None } else { value(self) }
    }

    fn key(&self) -> &KeyValues {
        &self.of_all.keys[self.message.key as usize]
    }
}

/// Values that many rows share, by number.
struct SharedValues {
    keys: Vec<KeyValues>,
    /// Of each report.
    ranks: Vec<i64>,
    /// Of each report, which of all names of kernels its first one is.
    first_names: Vec<i64>,
    /// Those that programs made.
    own_reductions: BTreeMap<u32, i64>,
}

struct KeyValues {
    function: i64,
    bytes: Option<i64>,
    total_bytes: Option<i64>,
    communicator: Option<i64>,
    ranks: Option<i64>,
    placement: Option<i64>,
}

/// Indexed by their numbers.
struct TextColumns {
    functions: Vec<Arc<str>>,
    communicators: Vec<Arc<str>>,
    reductions: Vec<Arc<str>>,
    kernels: Vec<Arc<str>>,
}

impl SharedValues {
    fn new(reports: &[ReportExtract<&Extract>], messages: &Messages) -> (SharedValues, TextColumns) {
        let whole = |value: Option<u64>| value.and_then(|value| i64::try_from(value).ok());
        let functions = numbered(messages.keys.iter().map(|key| key.function));
        let communicators = numbered(messages.keys.iter().filter_map(|key| key.communicator));
        let keys = messages.keys.iter().map(|key| KeyValues {
            function: functions[&key.function],
            bytes: whole(key.bytes),
            total_bytes: whole(key.total_bytes()),
            communicator: key.communicator.map(|id| communicators[&id]),
            ranks: key.ranks.map(i64::from),
            placement: key.placement.map(placement),
        });
        let keys = keys.collect();
        let own = messages.all.par_iter().filter_map(|message| match message.call.reduction {
            Some(Reduction::Own(number)) => Some(number),
            _ => None,
        });
        let own: BTreeSet<u32> = own.collect();
        let own_reductions = numbered(own.into_iter());
        let own = own_reductions.keys().map(|number| Reduction::Own(*number));
        let reductions = REDUCTIONS.into_iter().chain(own);
        let mut kernels = Vec::new();
        let first_names = reports.iter().map(|of| {
            let first = kernels.len() as i64;
            kernels.extend(of.extract.nccl.names().iter().map(|name| Arc::from(name.as_str())));
            first
        });
        let first_names = first_names.collect();
        let words = TextColumns {
            functions: functions.keys().map(|function| Arc::from(function.name())).collect(),
            communicators: communicators.keys().map(|id| Arc::from(super::communicator(*id))).collect(),
            reductions: reductions.map(|reduction| Arc::from(reduction.to_string())).collect(),
            kernels,
        };
        let ranks = reports.iter().map(|of| of.rank).collect();
        (SharedValues { keys, ranks, first_names, own_reductions }, words)
    }

    fn reduction(&self, reduction: Reduction) -> i64 {
        match reduction {
            Reduction::Sum => 0,
            Reduction::Product => 1,
            Reduction::Max => 2,
            Reduction::Min => 3,
            Reduction::Avg => 4,
            Reduction::Own(number) => REDUCTIONS.len() as i64 + self.own_reductions[&number],
        }
    }
}

/// Each once, in order, and which of them it is.
fn numbered<T: Ord>(values: impl Iterator<Item = T>) -> BTreeMap<T, i64> {
    let mut all: BTreeMap<T, i64> = values.map(|value| (value, 0)).collect();
    all.values_mut().zip(0..).for_each(|(number, at)| *number = at);
    all
}

fn named(words: &[&str]) -> Vec<Arc<str>> {
    words.iter().map(|word| Arc::from(*word)).collect()
}

const REDUCTIONS: [Reduction; 5] =
    [Reduction::Sum, Reduction::Product, Reduction::Max, Reduction::Min, Reduction::Avg];

const PARTS: [Part; 4] = [Part::WarmUp, Part::Sync, Part::Timed { iteration: 0 }, Part::Check];

fn part(part: Part) -> i64 {
    match part {
        Part::WarmUp => 0,
        Part::Sync => 1,
        Part::Timed { .. } => 2,
        Part::Check => 3,
    }
}

const PLACEMENTS: [Placement; 2] = [Placement::OutOfPlace, Placement::InPlace];

fn placement(placement: Placement) -> i64 {
    match placement {
        Placement::OutOfPlace => 0,
        Placement::InPlace => 1,
    }
}
