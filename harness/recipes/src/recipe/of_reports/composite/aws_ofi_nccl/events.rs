//! Ranges and marks of the plugin in one report.

use super::domain::EventDomain;
use nsys::export::ExportError;
use nsys::tables::NVTX_EVENTS;
use nsys::trace::nvtx::{Domains, MARK, PUSH_POP, START_END};
use nsys::trace::{Trace, process_of};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Event {
    pub place: EventDomain,
    pub name: String,
    pub start: i64,
    /// That of a mark is none.
    pub end: Option<i64>,
    pub is_mark: bool,
    pub global_tid: i64,
    /// Where it ended on another thread.
    pub end_tid: Option<i64>,
}

impl Event {
    pub(super) fn is_open(&self) -> bool {
        !self.is_mark && self.end.is_none()
    }

    pub(super) fn ns(&self) -> Option<i64> {
        self.end.and_then(|end| end.checked_sub(self.start)).filter(|ns| *ns >= 0)
    }
}

/// Marks of the plugin that stand in the default domain.
const DEFAULT_MARKS: [&str; 5] = ["Flush", "Read", "Write", "Pending_insert", "Pending_remove"];

const COLUMNS: [&str; 8] =
    ["start", "end", "eventType", "text", "textId", "globalTid", "endGlobalTid", "domainId"];

/// In the order of their beginnings.
pub(super) fn read(trace: &Trace) -> Result<Vec<Event>, ExportError> {
    let Some(rows) = trace.rows(&NVTX_EVENTS, &COLUMNS)? else { return Ok(Vec::new()) };
    let (starts, ends, types) = (rows.ints("start")?, rows.maybe_ints("end")?, rows.ints("eventType")?);
    let (tids, end_tids) = (rows.maybe_ints("globalTid")?, rows.maybe_ints("endGlobalTid")?);
    let (texts, ids, of_domain) =
        (rows.texts("text")?, rows.maybe_ints("textId")?, rows.maybe_ints("domainId")?);
    let (domains, strings) = (Domains::read(trace.export())?, trace.strings()?);
    let mut places: HashMap<(i64, i64), Option<EventDomain>> = HashMap::new();
    let mut processes = HashSet::new();
    let mut place_of = |tid: i64, domain: i64| {
        let process = process_of(tid);
        let place =
            places.entry((process, domain)).or_insert_with(|| EventDomain::parse(domains.name(tid, domain)));
        if place.is_some() {
            processes.insert(process);
        }
        place.clone()
    };
    let (mut events, mut backwards) = (Vec::new(), 0usize);
    for row in 0..rows.len() {
        let is_mark = types[row] == MARK;
        if !is_mark && types[row] != START_END && types[row] != PUSH_POP {
            continue;
        }
        let tid = tids.get(row).unwrap_or_default();
        let domain = of_domain.get(row).unwrap_or_default();
        let name = match (texts.get(row), ids.get(row)) {
            (Some(text), _) => text.to_owned(),
            (None, Some(id)) => strings.render(id).into_owned(),
            (None, None) => String::new(),
        };
        let place = match place_of(tid, domain) {
            Some(place) => place,
            None if is_mark && domain == 0 && DEFAULT_MARKS.contains(&name.as_str()) => {
                EventDomain::default()
            }
            None => continue,
        };
        let end = ends.get(row).filter(|_| !is_mark);
        if end.is_some_and(|end| end < starts[row]) {
            backwards += 1;
            continue;
        }
        let end_tid = end_tids.get(row).filter(|other| *other != tid && !is_mark);
        events.push(Event { place, name, start: starts[row], end, is_mark, global_tid: tid, end_tid });
    }
    if backwards > 0 {
        trace.note(format!("AWS_OFI_NCCL: ranges that end before they begin, left out: {backwards}"));
    }
    // Other programs have marks of such names too.
    events.retain(|event| {
        event.place != EventDomain::default() || processes.contains(&process_of(event.global_tid))
    });
    events.sort_by_key(|event| event.start);
    Ok(events)
}
