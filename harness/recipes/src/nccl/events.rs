//! The ranges that tell of NCCL, by thread and in the order in which they begin, each with its payload.

use super::fork;
use super::function::Function;
use super::payload::{self, Layouts, Payload, Refusal};
use crate::source::nsys_export::{ExportError, Rows};
use crate::tables::NVTX_EVENTS;
use crate::trace::nvtx::{Domains, PUSH_POP};
use crate::trace::{Trace, process_of};
use polars::prelude::PlHashMap;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU32;

const DOMAIN: &str = "NCCL";

/// Whether a range is one of NCCL's. A capture that began after the program did has no name for the domain: then the
/// names of C functions tell, in a domain that is not the default one.
pub fn is_of_nccl(domain: &str, domain_id: i64, text: &str) -> bool {
    domain == DOMAIN || (domain.is_empty() && domain_id != 0 && is_function(text))
}

/// `ncclAllReduce` and its like.
fn is_function(text: &str) -> bool {
    let name = text.strip_prefix("nccl").unwrap_or_default();
    name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Where a range stands, as far as its domain tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Where {
    Inside,
    /// In a domain of which the report has no name.
    Perhaps,
    Elsewhere,
}

impl Where {
    fn of(domain: &str, domain_id: i64) -> Where {
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
    fn of(text: &str) -> Name {
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
    pub fn payload(&self, event: &Event) -> Option<&Payload> {
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
        let why = format!("more rows than can be numbered: {}", rows.len());
        return Err(ExportError::Broken { table: NVTX_EVENTS.name, why });
    }
    let mut events = Reader::new(trace, &rows)?.events()?;
    let key = |event: &Event| (event.global_tid, event.start, Reverse(event.end), event.row);
    if !events.all.is_sorted_by_key(key) {
        events.all.sort_unstable_by_key(key);
    }
    Ok(events)
}

/// What a name stands for, and the payload of a fork's text.
type Meaning = Option<(Name, u32, Option<NonZeroU32>)>;

struct Reader<'a> {
    trace: &'a Trace,
    rows: &'a Rows,
    domains: Domains,
    layouts: Layouts,
    /// By id of the string.
    of_string: HashMap<(i64, Where), Meaning>,
    /// Names of ranges, each once: payloads without a declared layout are told apart by them.
    names: Vec<String>,
    payloads: Vec<Payload>,
    refused: BTreeMap<Refusal, (usize, i64)>,
}

/// One payload as it is stored: which range's, of which domain, text, bytes.
type Stored<'a> = (u32, i64, Option<&'a str>, Option<&'a [u8]>);

impl<'a> Reader<'a> {
    fn new(trace: &'a Trace, rows: &'a Rows) -> Result<Reader<'a>, ExportError> {
        Ok(Reader {
            trace,
            rows,
            domains: Domains::of(rows)?,
            layouts: Layouts::read(trace.export())?,
            of_string: HashMap::new(),
            names: Vec::new(),
            payloads: Vec::new(),
            refused: BTreeMap::new(),
        })
    }

    fn events(mut self) -> Result<Events, ExportError> {
        let rows = self.rows;
        let (starts, ends, types) = (rows.ints("start")?, rows.maybe_ints("end")?, rows.ints("eventType")?);
        let (tids, of_domain) = (rows.maybe_ints("globalTid")?, rows.maybe_ints("domainId")?);
        let (texts, text_ids) = (rows.texts("text")?, rows.maybe_ints("textId")?);
        let (jsons, json_ids) = (rows.texts("jsonText")?, rows.maybe_ints("jsonTextId")?);
        let blobs = rows.bytes("binaryData")?;
        let strings = self.trace.strings()?;
        let (mut open, mut backwards) = (0usize, 0usize);
        let mut last: Option<((i64, i64), Where)> = None;
        let mut payloads: PlHashMap<Stored<'_>, Option<Result<NonZeroU32, Refusal>>> = PlHashMap::default();
        let mut events = Vec::new();
        for row in 0..rows.len() {
            if types[row] != PUSH_POP {
                continue;
            }
            let (tid, domain) = (tids.get(row).unwrap_or_default(), of_domain.get(row).unwrap_or_default());
            let key = (process_of(tid), domain);
            let inside = match last {
                Some((known, inside)) if known == key => inside,
                _ => Where::of(self.domains.name(tid, domain), domain),
            };
            last = Some((key, inside));
            let meaning = match (texts.get(row), text_ids.get(row)) {
                (Some(text), _) => self.meaning(text, inside),
                (None, Some(id)) => match self.of_string.get(&(id, inside)) {
                    Some(meaning) => *meaning,
                    None => {
                        let meaning = strings.get(id).and_then(|text| self.meaning(text, inside));
                        self.of_string.insert((id, inside), meaning);
                        meaning
                    }
                },
                (None, None) => None,
            };
            let Some((name, function, told)) = meaning else { continue };
            let Some(end) = ends.get(row) else {
                open += 1;
                continue;
            };
            if end < starts[row] {
                backwards += 1;
                continue;
            }
            let json = jsons.get(row).or_else(|| json_ids.get(row).and_then(|id| strings.get(id)));
            let blob = blobs.get(row);
            let payload = match told {
                Some(told) => Some(told),
                None if json.is_none() && blob.is_none() => None,
                None => {
                    let read = *payloads.entry((function, domain, json, blob)).or_insert_with(|| {
                        let name = self.names.get(function as usize).map(String::as_str).unwrap_or_default();
                        let read = payload::read(name, json, blob, &self.layouts, domain)?;
                        Some(read.and_then(|payload| kept(&mut self.payloads, payload)))
                    });
                    match read {
                        Some(Ok(payload)) => Some(payload),
                        Some(Err(why)) => {
                            self.refused.entry(why).or_insert((0, rows.number(row))).0 += 1;
                            None
                        }
                        None => None,
                    }
                }
            };
            events.push(Event { start: starts[row], end, global_tid: tid, name, payload, row: row as u32 });
        }
        for (count, why) in
            [(open, "ranges without an end"), (backwards, "ranges that end before they begin")]
        {
            if count > 0 {
                self.trace.note(format!("NCCL: {why}, left out: {count}"));
            }
        }
        for (why, (count, row)) in &self.refused {
            self.trace.note(format!(
                "NCCL: payloads that cannot be read, so that nothing of them is known ({why}, first in row {row} of \
                 `{}`): {count}",
                NVTX_EVENTS.name
            ));
        }
        Ok(Events { all: events, payloads: self.payloads })
    }

    fn meaning(&mut self, text: &str, inside: Where) -> Meaning {
        if !text.starts_with("nccl") {
            return None;
        }
        if let Some((function, payload)) = fork::read(text) {
            return Some((Name::Call(function), 0, kept(&mut self.payloads, payload).ok()));
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
        Some((Name::of(text), number as u32, None))
    }
}

/// Its number from 1. More of them than can be numbered are more than there are rows.
fn kept(payloads: &mut Vec<Payload>, payload: Payload) -> Result<NonZeroU32, Refusal> {
    payloads.push(payload);
    u32::try_from(payloads.len()).ok().and_then(NonZeroU32::new).ok_or(Refusal::Unfit)
}
