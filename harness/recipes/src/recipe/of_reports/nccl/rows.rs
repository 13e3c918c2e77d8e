//! One row for each call of NCCL.

use super::messages::{Message, Messages};
use super::msg::Taken;
use crate::recipe::of_reports::{Of, ReportRecipe};
use crate::sheet::{Column, Quantity, Sheet, Values};
use crate::trace::{pid_of, tid_of};
use polars::prelude::PlHashMap;
use rayon::prelude::*;
use std::sync::Arc;

const PLAIN: Quantity = Quantity::Plain;
const TIME: Quantity = Quantity::Nanoseconds;

pub(super) fn sheet(recipe: &ReportRecipe, reports: &[Of<&Taken>], messages: &Messages) -> Sheet {
    let all = &messages.all;
    let number = |name: &str, quantity, value: fn(&Message) -> Option<i64>| {
        Column::maybe_integers(name, quantity, all.iter().map(value))
    };
    let whole = |value: Option<u64>| value.and_then(|value| i64::try_from(value).ok());
    let totals: Vec<Option<i64>> = messages.keys.iter().map(|key| whole(key.total_bytes())).collect();
    let ranks: Vec<Option<i64>> = messages.keys.iter().map(|key| key.ranks.map(i64::from)).collect();
    let kernels = |message: &Message| reports[message.report as usize].taken.nccl.kernels_of(message.call);
    // Each column by itself, as these are many and long.
    let make: &[&(dyn Fn() -> Column + Sync)] = &[
        &|| Column::integers("Rank", PLAIN, all.iter().map(|message| reports[message.report as usize].rank)),
        &|| shared("Operation", all, |message| Some(message.call.function), ToString::to_string),
        &|| number("Bytes", PLAIN, |message| message.call.bytes.and_then(|bytes| i64::try_from(bytes).ok())),
        &|| {
            Column::maybe_integers(
                "Total Bytes",
                PLAIN,
                all.iter().map(|message| totals[message.key as usize]),
            )
        },
        &|| shared("Communicator", all, |message| message.call.communicator, |id| super::communicator(*id)),
        &|| Column::maybe_integers("Ranks", PLAIN, all.iter().map(|message| ranks[message.key as usize])),
        &|| number("Comm Rank", PLAIN, |message| message.call.rank.map(i64::from)),
        &|| number("Root", PLAIN, |message| message.call.root.map(i64::from)),
        &|| number("Peer", PLAIN, |message| message.call.peer.map(i64::from)),
        &|| shared("Reduction", all, |message| message.call.reduction, ToString::to_string),
        &|| number("Group", PLAIN, |message| message.call.group.map(i64::from)),
        &|| number("Instance", PLAIN, |message| Some(message.instance.into())),
        &|| {
            shared(
                "Part",
                all,
                |message| message.place.map(|place| place.part.name()),
                |name| (*name).to_owned(),
            )
        },
        &|| {
            shared(
                "Placement",
                all,
                |message| message.place?.placement,
                |placement| placement.name().to_owned(),
            )
        },
        &|| number("Start", TIME, |message| Some(message.call.start)),
        &|| number("End", TIME, |message| Some(message.call.end)),
        &|| number("PID", PLAIN, |message| Some(pid_of(message.call.global_tid))),
        &|| number("TID", PLAIN, |message| Some(tid_of(message.call.global_tid))),
        &|| number("Kernels", PLAIN, |message| Some(message.call.kernels.len() as i64)),
        &|| number("Kernel Start", TIME, |message| message.span.map(|(start, _)| start)),
        &|| number("Kernel End", TIME, |message| message.span.map(|(_, end)| end)),
        &|| {
            number("Kernel Duration", TIME, |message| {
                message.span.and_then(|(start, end)| end.checked_sub(start))
            })
        },
        &|| {
            shared(
                "Shares Kernels",
                all,
                |message| (!message.alone).then_some("yes"),
                |yes| (*yes).to_owned(),
            )
        },
        &|| {
            Column::maybe_integers(
                "Device",
                PLAIN,
                all.iter().map(|message| Some(kernels(message).first()?.device)),
            )
        },
        &|| {
            Column::maybe_integers(
                "Stream",
                PLAIN,
                all.iter().map(|message| Some(kernels(message).first()?.stream)),
            )
        },
        &|| {
            Column::maybe_integers(
                "Launch Start",
                TIME,
                all.iter()
                    .map(|message| kernels(message).iter().filter_map(|kernel| kernel.launch_start).min()),
            )
        },
        &|| {
            shared(
                "Kernel",
                all,
                |message| Some((message.report, kernels(message).first()?.name_number())),
                |(report, number)| reports[*report as usize].taken.nccl.name_of(*number).to_owned(),
            )
        },
    ];
    let columns = make.par_iter().map(|make| make()).collect();
    Sheet { name: recipe.name, title: recipe.title, columns }
}

/// Rows of one value share its word.
fn shared<T: Copy + Eq + std::hash::Hash>(
    name: &str,
    all: &[Message],
    value: impl Fn(&Message) -> Option<T>,
    word: impl Fn(&T) -> String,
) -> Column {
    let mut known: PlHashMap<T, Arc<str>> = PlHashMap::default();
    let mut last: Option<(T, Arc<str>)> = None;
    let values = all.iter().map(|message| {
        let value = value(message)?;
        if let Some((_, word)) = last.as_ref().filter(|(before, _)| *before == value) {
            return Some(word.clone());
        }
        let word = known.entry(value).or_insert_with(|| Arc::from(word(&value))).clone();
        last = Some((value, word.clone()));
        Some(word)
    });
    Column { name: name.to_owned(), quantity: PLAIN, values: Values::Texts(values.collect()) }
}
