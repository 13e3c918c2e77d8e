//! The ranges that a program wrote into its trace, with their names and domains.

use super::filter::{Domain, RangeFilter};
use super::{Keys, Part, Trace, process_of};
use crate::export::{Export, ExportError, Rows};
use crate::tables::NVTX_EVENTS;
use std::borrow::Cow;
use std::collections::HashMap;

/// `eventType` of a mark, which has no duration.
pub const MARK: i64 = 34;
/// `eventType` of a push/pop range.
pub const PUSH_POP: i64 = 59;
/// `eventType` of a start/end range.
pub const START_END: i64 = 60;
/// `eventType` of a row that names a domain.
pub const DOMAIN: i64 = 75;

/// Names of domains, by process and id: ids of two processes may be equal and mean two domains.
pub struct Domains {
    of_process: HashMap<(i64, i64), String>,
}

impl Domains {
    /// Reads the names of all domains; there are none in an export without NVTX.
    pub fn read(export: &Export) -> Result<Domains, ExportError> {
        let columns = ["eventType", "text", "globalTid", "domainId"];
        match export.columns(&NVTX_EVENTS, &columns)? {
            Some(rows) => Domains::from_rows(&rows),
            None => Ok(Domains { of_process: HashMap::new() }),
        }
    }

    /// From rows of all events, with at least these columns.
    pub(crate) fn from_rows(rows: &Rows) -> Result<Domains, ExportError> {
        let (types, texts) = (rows.ints("eventType")?, rows.texts("text")?);
        let (tids, ids) = (rows.maybe_ints("globalTid")?, rows.maybe_ints("domainId")?);
        let mut of_process = HashMap::new();
        for (row, kind) in types.iter().enumerate() {
            // Of a domain that was recreated under its old id the last name counts.
            if let (DOMAIN, Some(id), Some(text)) = (*kind, ids.get(row), texts.get(row)) {
                of_process.insert((process_of(tids.get(row).unwrap_or_default()), id), text.to_owned());
            }
        }
        Ok(Domains { of_process })
    }

    /// The default domain has no name.
    pub fn name(&self, global_tid: i64, domain: i64) -> &str {
        self.of_process.get(&(process_of(global_tid), domain)).map(String::as_str).unwrap_or_default()
    }
}

/// The ranges of a report that have an end, both styles, column by column.
pub struct Ranges {
    /// In nanoseconds of the session.
    pub start: Vec<i64>,
    /// In nanoseconds of the session; never before `start`.
    pub end: Vec<i64>,
    /// By which functions it was made.
    pub style: Vec<Style>,
    /// The thread that it began on.
    pub global_tid: Vec<i64>,
    /// Where a start/end range ended on another thread: that thread.
    pub end_tid: Vec<Option<i64>>,
    /// Id within its process; 0 is the default domain.
    pub domain_id: Vec<i64>,
    /// `domain:name`.
    pub label: Part<String>,
    /// Without the domain.
    pub name: Part<String>,
    /// Its number in the report, from 1.
    pub id: Vec<i64>,
}

/// By which functions a range is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Ranges of one thread that nest.
    PushPop,
    /// Ranges that may cross, and end on another thread.
    StartEnd,
}

impl Style {
    /// `PushPop` or `StartEnd`, as tables show it.
    pub fn name(self) -> &'static str {
        match self {
            Style::PushPop => "PushPop",
            Style::StartEnd => "StartEnd",
        }
    }
}

impl Ranges {
    /// How many ranges there are.
    pub fn len(&self) -> usize {
        self.start.len()
    }

    /// Whether there is no range.
    pub fn is_empty(&self) -> bool {
        self.start.is_empty()
    }

    /// `domain:name` of a range.
    pub fn label(&self, row: usize) -> &str {
        &self.label.labels[self.label.of_row[row] as usize]
    }

    /// Name of a range, without its domain.
    pub fn name(&self, row: usize) -> &str {
        &self.name.labels[self.name.of_row[row] as usize]
    }

    /// Empty for the default domain. Both parts of a label may have a colon of their own.
    pub fn domain(&self, row: usize) -> &str {
        let label = self.label(row);
        &label[..label.len() - self.name(row).len() - 1]
    }

    /// How long it lasted: the distance of any two 64-bit numbers fits.
    pub fn ns(&self, row: usize) -> u64 {
        self.end[row].wrapping_sub(self.start[row]) as u64
    }

    /// All of them; `None` where the report has none. Ranges still open and ranges that end before they begin are left
    /// out and counted in a note.
    pub fn read(trace: &Trace) -> Result<Option<Ranges>, ExportError> {
        let Some(rows) = trace.rows(&NVTX_EVENTS, COLUMNS)? else { return Ok(None) };
        let ranges = Ranges::from_rows(trace, &rows)?;
        Ok((!ranges.is_empty()).then_some(ranges))
    }

    fn from_rows(trace: &Trace, rows: &Rows) -> Result<Ranges, ExportError> {
        let (starts, ends, types) = (rows.ints("start")?, rows.maybe_ints("end")?, rows.ints("eventType")?);
        let (tids, end_tids) = (rows.maybe_ints("globalTid")?, rows.maybe_ints("endGlobalTid")?);
        let (texts, text_ids) = (rows.texts("text")?, rows.maybe_ints("textId")?);
        let (domain_ids, event_ids) = (rows.maybe_ints("domainId")?, rows.maybe_ints("eventId")?);
        let (mut open, mut backwards) = (0, 0);
        let mut kept = Vec::new();
        for (row, kind) in types.iter().enumerate() {
            if *kind != PUSH_POP && *kind != START_END {
                continue;
            }
            match ends.get(row) {
                None => open += 1,
                Some(end) if end < starts[row] => backwards += 1,
                Some(_) => kept.push(row),
            }
        }
        for (count, why) in
            [(open, "ranges without an end"), (backwards, "ranges that end before they begin")]
        {
            if count > 0 {
                trace.note(format!("NVTX: {why}, left out: {count}"));
            }
        }
        let (domains, strings) = (Domains::read(trace.export())?, trace.strings()?);
        // By domain and by string first, so that a name is put together once and not once per row.
        let name = Part::texts(kept.iter().map(|row| match (texts.get(*row), text_ids.get(*row)) {
            (Some(text), _) => Some(Cow::Borrowed(text)),
            (None, Some(id)) => Some(strings.render(id)),
            (None, None) => Some(Cow::Borrowed("")),
        }));
        let tid = |row: usize| tids.get(row).unwrap_or_default();
        let process = Part::numbers(kept.iter().map(|row| process_of(tid(*row))));
        let domain = Part::numbers(kept.iter().map(|row| domain_ids.get(*row).unwrap_or_default()));
        let keys = Keys::by(&[&process.of_row, &domain.of_row, &name.of_row]);
        let labels = keys.groups.iter().map(|group| {
            let domain = domains.name(process.labels[group[0] as usize], domain.labels[group[1] as usize]);
            format!("{domain}:{}", name.labels[group[2] as usize])
        });
        let labels: Vec<String> = labels.collect();
        let of_label = Part::texts(labels.iter().map(|label| Some(Cow::Borrowed(label.as_str()))));
        let of_row = keys.of_row.iter().map(|group| of_label.of_row[*group as usize]).collect();
        Ok(Ranges {
            start: kept.iter().map(|row| starts[*row]).collect(),
            end: kept.iter().filter_map(|row| ends.get(*row)).collect(),
            style: kept
                .iter()
                .map(|row| if types[*row] == PUSH_POP { Style::PushPop } else { Style::StartEnd })
                .collect(),
            global_tid: kept.iter().map(|row| tid(*row)).collect(),
            end_tid: kept.iter().map(|row| end_tids.get(*row).filter(|other| *other != tid(*row))).collect(),
            domain_id: domain.of_row.iter().map(|number| domain.labels[*number as usize]).collect(),
            label: Part { of_row, labels: of_label.labels },
            name,
            id: kept.iter().map(|row| event_ids.get(*row).unwrap_or_else(|| rows.number(*row))).collect(),
        })
    }
}

const COLUMNS: &[&str] =
    &["start", "end", "eventType", "text", "textId", "globalTid", "endGlobalTid", "domainId", "eventId"];

/// The spans of the ranges that a filter names, in the order of their beginnings.
pub fn ranges_named(trace: &Trace, filter: &RangeFilter) -> Result<Vec<(i64, i64)>, ExportError> {
    let Some(ranges) = Ranges::read(trace)? else { return Ok(Vec::new()) };
    let mut spans: Vec<(i64, i64)> = (0..ranges.len())
        .filter(|row| ranges.name(*row) == filter.name)
        .filter(|row| match &filter.domain {
            Domain::Default => ranges.domain(*row).is_empty(),
            Domain::Named(domain) => ranges.domain(*row) == domain,
            Domain::Any => true,
        })
        .map(|row| (ranges.start[row], ranges.end[row]))
        .collect();
    spans.sort_unstable();
    Ok(match filter.index {
        Some(index) => spans.get(index).copied().into_iter().collect(),
        None => spans,
    })
}
