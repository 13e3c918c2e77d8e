//! The ranges of NCCL, by thread and in the order in which they begin, each with its payload.

use super::fork;
use super::function::Function;
use super::payload::{self, Layouts, Payload, Refusal};
use crate::export::{ExportError, Rows};
use crate::tables::NVTX_EVENTS;
use crate::trace::nvtx::{Domains, PUSH_POP};
use crate::trace::{Strings, Trace, process_of};
use polars::prelude::PlHashMap;
use rayon::prelude::*;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::ops::Range;

const DOMAIN: &str = "NCCL";

/// Whether a range is one of NCCL's. A capture that began after the program did has no name for the domain: then the
/// names of C functions decide, in a domain that is not the default one.
pub fn is_of_nccl(domain: &str, domain_id: i64, text: &str) -> bool {
    domain == DOMAIN || (domain.is_empty() && domain_id != 0 && is_function(text))
}

/// `ncclAllReduce` and the other functions.
fn is_function(text: &str) -> bool {
    let name = text.strip_prefix("nccl").unwrap_or_default();
    name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Whether a range is NCCL's, as far as its domain shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Where {
    Inside,
    /// In a domain of which the report has no name.
    Perhaps,
    Elsewhere,
}

impl Where {
    fn from_domain(domain: &str, domain_id: i64) -> Where {
        match domain {
            DOMAIN => Where::Inside,
            "" if domain_id != 0 => Where::Perhaps,
            _ => Where::Elsewhere,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    Call(Function),
    GroupStart,
    GroupEnd,
    /// A function that makes a communicator.
    Makes,
    /// One that ends it.
    Ends,
    Other,
}

impl Name {
    fn from_text(text: &str) -> Name {
        if let Some(function) = Function::from_name(text) {
            return Name::Call(function);
        }
        match text {
            "ncclGroupStart" => Name::GroupStart,
            "ncclGroupEnd" => Name::GroupEnd,
            "ncclCommInitRank"
            | "ncclCommInitRankConfig"
            | "ncclCommInitRankScalable"
            | "ncclCommInitAll"
            | "ncclCommSplit"
            | "ncclCommShrink"
            | "ncclCommGrow" => Name::Makes,
            "ncclCommDestroy" | "ncclCommAbort" | "ncclCommFinalize" | "ncclCommRevoke" => Name::Ends,
            _ => Name::Other,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Event {
    pub start: i64,
    pub end: i64,
    pub global_tid: i64,
    pub name: Name,
    /// Which of the payloads.
    payload: Option<NonZeroU32>,
    /// Which row of its table it is, from 0.
    pub row: u32,
}

/// By thread and in the order in which they begin. Many say the same of themselves.
#[derive(Debug, Default)]
pub(super) struct Events {
    pub all: Vec<Event>,
    payloads: Vec<Payload>,
}

impl Events {
    /// `None` where nothing of it is known.
    pub(super) fn payload(&self, event: &Event) -> Option<&Payload> {
        self.payloads.get(event.payload?.get() as usize - 1)
    }
}

const COLUMNS: &[&str] = &[
    "start",
    "end",
    "eventType",
    "text",
    "textId",
    "globalTid",
    "domainId",
    "jsonText",
    "jsonTextId",
    "binaryData",
];

/// All of a report, whatever part of it is looked at: groups and communicators begin before their calls.
pub(super) fn read(trace: &Trace) -> Result<Events, ExportError> {
    let Some(rows) = trace.export().columns(&NVTX_EVENTS, COLUMNS)? else { return Ok(Events::default()) };
    if u32::try_from(rows.len()).is_err() {
        let why = format!("more than 4294967295 rows: {}", rows.len());
        return Err(ExportError::Broken { table: NVTX_EVENTS.name, why });
    }
    let (domains, layouts) = (Domains::from_rows(&rows)?, Layouts::read(trace.export())?);
    let reader = Reader { rows: &rows, strings: trace.strings()?, domains, layouts };
    let mut events = reader.events(trace)?;
    let key = |event: &Event| (event.global_tid, event.start, Reverse(event.end), event.row);
    if !events.all.is_sorted_by_key(key) {
        events.all.sort_unstable_by_key(key);
    }
    Ok(events)
}

/// What a name stands for, its number, and the payload of a fork's text.
type Meaning = Option<(Name, u32, Option<NonZeroU32>)>;

/// The name of a row that is a range of NCCL, and which of the payloads it has.
type NcclRange = Option<(Name, Option<NonZeroU32>)>;

/// What all rows are read with.
struct Reader<'a> {
    rows: &'a Rows,
    strings: &'a Strings,
    domains: Domains,
    layouts: Layouts,
}

/// Neighbouring rows, which are read by one core.
#[derive(Default)]
struct Part {
    ranges: Vec<NcclRange>,
    payloads: Vec<Payload>,
    /// Ranges without an end, and those that end before they begin.
    open: usize,
    backwards: usize,
    /// By reason how many, and the first one's row.
    refused: BTreeMap<Refusal, (usize, i64)>,
    /// By id of the string.
    of_string: PlHashMap<(i64, Where), Meaning>,
    /// Names of ranges, each once: payloads without a declared layout are distinguished by them.
    names: Vec<String>,
}

/// So many rows are worth a core of their own. Tests have few rows, and are to cross the borders of parts.
const PART: usize = if cfg!(test) { 3 } else { 1 << 16 };

/// One payload as it is stored: which range's, of which domain, text, bytes.
type Stored<'a> = (u32, i64, Option<&'a str>, Option<&'a [u8]>);

impl Reader<'_> {
    fn events(&self, trace: &Trace) -> Result<Events, ExportError> {
        let rows = self.rows;
        let firsts: Vec<usize> = (0..rows.len()).step_by(PART).collect();
        let parts = firsts.par_iter().map(|first| self.part(*first..rows.len().min(first + PART)));
        let parts: Vec<Part> = parts.collect::<Result<_, _>>()?;
        let (starts, ends) = (rows.ints("start")?, rows.maybe_ints("end")?);
        let tids = rows.maybe_ints("globalTid")?;
        let found = parts.iter().flat_map(|part| &part.ranges).flatten().count();
        let mut events = Events { all: Vec::with_capacity(found), payloads: Vec::new() };
        let (mut open, mut backwards) = (0, 0);
        let mut refused: BTreeMap<Refusal, (usize, i64)> = BTreeMap::new();
        for (first, part) in firsts.into_iter().zip(parts) {
            let before = events.payloads.len() as u32;
            for (row, range) in (first..).zip(part.ranges) {
                let (Some((name, payload)), Some(end)) = (range, ends.get(row)) else { continue };
                let payload = payload.and_then(|number| number.checked_add(before));
                let global_tid = tids.get(row).unwrap_or_default();
                events.all.push(Event {
                    start: starts[row],
                    end,
                    global_tid,
                    name,
                    payload,
                    row: row as u32,
                });
            }
            events.payloads.extend(part.payloads);
            (open, backwards) = (open + part.open, backwards + part.backwards);
            for (why, (count, row)) in part.refused {
                refused.entry(why).or_insert((0, row)).0 += count;
            }
        }
        for (count, why) in
            [(open, "ranges without an end"), (backwards, "ranges that end before they begin")]
        {
            if count > 0 {
                trace.note(format!("NCCL: {why}, left out: {count}"));
            }
        }
        for (why, (count, row)) in &refused {
            trace.note(format!(
                "NCCL: unreadable payloads ({why}, first in row {row} of `{}`): {count}",
                NVTX_EVENTS.name
            ));
        }
        Ok(events)
    }

    fn part(&self, of: Range<usize>) -> Result<Part, ExportError> {
        let rows = self.rows;
        let (starts, ends, types) = (rows.ints("start")?, rows.maybe_ints("end")?, rows.ints("eventType")?);
        let (tids, of_domain) = (rows.maybe_ints("globalTid")?, rows.maybe_ints("domainId")?);
        let (texts, text_ids) = (rows.texts("text")?, rows.maybe_ints("textId")?);
        let (jsons, json_ids) = (rows.texts("jsonText")?, rows.maybe_ints("jsonTextId")?);
        let blobs = rows.bytes("binaryData")?;
        let mut last: Option<((i64, i64), Where)> = None;
        let mut payloads: PlHashMap<Stored<'_>, Option<Result<NonZeroU32, Refusal>>> = PlHashMap::default();
        let mut part = Part { ranges: vec![None; of.len()], ..Part::default() };
        for (at, row) in of.enumerate() {
            if types[row] != PUSH_POP {
                continue;
            }
            let (tid, domain) = (tids.get(row).unwrap_or_default(), of_domain.get(row).unwrap_or_default());
            let key = (process_of(tid), domain);
            let inside = match last {
                Some((known, inside)) if known == key => inside,
                _ => Where::from_domain(self.domains.name(tid, domain), domain),
            };
            last = Some((key, inside));
            let meaning = match (texts.get(row), text_ids.get(row)) {
                (Some(text), _) => part.meaning(text, inside),
                (None, Some(id)) => part.meaning_of(id, inside, self.strings),
                (None, None) => None,
            };
            let Some((name, function, of_fork)) = meaning else { continue };
            let Some(end) = ends.get(row) else {
                part.open += 1;
                continue;
            };
            if end < starts[row] {
                part.backwards += 1;
                continue;
            }
            let json = jsons.get(row).or_else(|| json_ids.get(row).and_then(|id| self.strings.get(id)));
            let blob = blobs.get(row);
            let payload = match of_fork {
                Some(payload) => Some(payload),
                None if json.is_none() && blob.is_none() => None,
                None => {
                    let read = *payloads.entry((function, domain, json, blob)).or_insert_with(|| {
                        let name = part.names.get(function as usize).map(String::as_str).unwrap_or_default();
                        let read = payload::read(name, json, blob, &self.layouts, domain)?;
                        Some(read.and_then(|payload| stored(&mut part.payloads, payload)))
                    });
                    match read {
                        Some(Ok(payload)) => Some(payload),
                        Some(Err(why)) => {
                            part.refused.entry(why).or_insert((0, rows.number(row))).0 += 1;
                            None
                        }
                        None => None,
                    }
                }
            };
            part.ranges[at] = Some((name, payload));
        }
        Ok(part)
    }
}

impl Part {
    fn meaning_of(&mut self, id: i64, inside: Where, strings: &Strings) -> Meaning {
        if let Some(meaning) = self.of_string.get(&(id, inside)) {
            return *meaning;
        }
        let meaning = strings.get(id).and_then(|text| self.meaning(text, inside));
        self.of_string.insert((id, inside), meaning);
        meaning
    }

    fn meaning(&mut self, text: &str, inside: Where) -> Meaning {
        if !text.starts_with("nccl") {
            return None;
        }
        if let Some((function, payload)) = fork::read(text) {
            return Some((Name::Call(function), 0, stored(&mut self.payloads, payload).ok()));
        }
        match inside {
            Where::Inside => {}
            Where::Perhaps if is_function(text) => {}
            Where::Perhaps | Where::Elsewhere => return None,
        }
        let number = match self.names.iter().position(|name| name == text) {
            Some(number) => number,
            None => {
                self.names.push(text.to_owned());
                self.names.len() - 1
            }
        };
        Some((Name::from_text(text), number as u32, None))
    }
}

/// Its number from 1. More of them than can be numbered are more than there are rows.
fn stored(payloads: &mut Vec<Payload>, payload: Payload) -> Result<NonZeroU32, Refusal> {
    payloads.push(payload);
    u32::try_from(payloads.len()).ok().and_then(NonZeroU32::new).ok_or(Refusal::Unfit)
}
