//! The filter of a report: a time span, or the ranges of a name. Rows that overlap it are kept, and not cut. Under a
//! filter by ranges, GPU work is kept if the call that launched it is, where that call is known.

use super::launches::Calls;
use super::{Trace, nvtx};
use crate::export::{Export, ExportError, Rows};
use crate::tables::TableSpec;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// From `--filter-time` or `--filter-nvtx`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Filter {
    /// Rows that overlap a time span.
    Time(TimeFilter),
    /// Rows that overlap the NVTX ranges of a name.
    Range(RangeFilter),
}

/// `[start]/[end]`, in nanoseconds or with a unit; either side may be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeFilter {
    /// In nanoseconds of the session; `None` is open.
    pub start: Option<i64>,
    /// In nanoseconds of the session; `None` is open.
    pub end: Option<i64>,
}

/// `range[@domain][/index]`; a backslash takes the meaning of `@`, `/`, `*` and itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeFilter {
    /// Without domain and index; escapes are resolved.
    pub name: String,
    /// The default domain where it is not named.
    pub domain: Domain,
    /// Of the ranges of that name this one alone, from 0.
    pub index: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Domain {
    Default,
    Any,
    Named(String),
}

/// Why a filter cannot be parsed, with an example of a correct one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadFilter(String);

impl FromStr for TimeFilter {
    type Err = BadFilter;

    fn from_str(text: &str) -> Result<TimeFilter, BadFilter> {
        let bad = |why: &str| {
            BadFilter(format!(
                "invalid time span: {why}; expected for example `1ms/2.5s`, `/3s` or `500000/`"
            ))
        };
        let (start, end) = text.split_once('/').ok_or_else(|| bad("no `/`"))?;
        let side = |text: &str| match text.trim() {
            "" => Ok(None),
            text => nanoseconds(text).map(Some).ok_or_else(|| bad(&format!("`{text}` is not a time"))),
        };
        let (start, end) = (side(start)?, side(end)?);
        if start.is_none() && end.is_none() {
            return Err(bad("neither a start nor an end"));
        }
        if let (Some(start), Some(end)) = (start, end)
            && end <= start
        {
            return Err(bad("the end is not after the start"));
        }
        Ok(TimeFilter { start, end })
    }
}

/// The longest unit first where one ends as another does.
const UNITS: [(&str, f64); 8] = [
    ("nsec", 1.0),
    ("usec", 1e3),
    ("msec", 1e6),
    ("ns", 1.0),
    ("us", 1e3),
    ("ms", 1e6),
    ("min", 60e9),
    ("s", 1e9),
];

fn nanoseconds(text: &str) -> Option<i64> {
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let (number, unit) = UNITS.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit)))?;
    let number: f64 = number.trim_end().parse().ok().filter(|number: &f64| number.is_finite())?;
    let ns = (number * unit).round();
    (ns.abs() < 9e18).then_some(ns as i64)
}

impl FromStr for RangeFilter {
    type Err = BadFilter;

    fn from_str(text: &str) -> Result<RangeFilter, BadFilter> {
        let bad = |why: &str| {
            BadFilter(format!(
                "invalid range: {why}; expected for example `step`, `step@MyDomain`, `step@*` or `step/3`"
            ))
        };
        let (mut name, mut domain, mut index) = (String::new(), None::<String>, None::<String>);
        let mut any = false;
        let mut letters = text.chars();
        while let Some(letter) = letters.next() {
            let (letter, escaped) = match letter {
                '\\' => (letters.next().ok_or_else(|| bad("it ends with a backslash"))?, true),
                letter => (letter, false),
            };
            match (letter, escaped) {
                ('@', false) if index.is_some() => return Err(bad("`@` after `/` (the index comes last)")),
                ('@', false) if domain.is_some() => {
                    return Err(bad("two `@` (write `\\@` for one in a name)"));
                }
                ('@', false) => domain = Some(String::new()),
                ('/', false) if index.is_some() => {
                    return Err(bad("two `/` (write `\\/` for one in a name)"));
                }
                ('/', false) => index = Some(String::new()),
                ('*', false) if index.is_none() && domain.as_deref() == Some("") => any = true,
                (letter, _) => match (&mut index, &mut domain) {
                    (Some(index), _) => index.push(letter),
                    (None, Some(domain)) => domain.push(letter),
                    (None, None) => name.push(letter),
                },
            }
        }
        if name.is_empty() {
            return Err(bad("no name"));
        }
        let index = match index {
            Some(text) => {
                Some(text.parse().map_err(|_| bad(&format!("`{text}` is not an index of at least 0")))?)
            }
            None => None,
        };
        let domain = match domain {
            Some(rest) if any && !rest.is_empty() => return Err(bad("`*` stands alone, for all domains")),
            Some(_) if any => Domain::Any,
            Some(domain) if domain.is_empty() => return Err(bad("no domain after `@`")),
            Some(domain) => Domain::Named(domain),
            None => Domain::Default,
        };
        Ok(RangeFilter { name, domain, index })
    }
}

/// Spans of time, apart and in order.
pub(super) struct Windows {
    spans: Vec<(i64, i64)>,
    /// Whether a person named the span of time itself.
    is_time: bool,
    /// Under a filter by ranges: what called for the launches.
    calls: Option<Calls>,
}

/// The windows of a filter in this report.
pub(super) fn windows(trace: &Trace, filter: &Filter) -> Result<Windows, ExportError> {
    match filter {
        Filter::Time(time) => {
            let span = (time.start.unwrap_or(i64::MIN), time.end.unwrap_or(i64::MAX));
            Ok(Windows { spans: vec![span], is_time: true, calls: None })
        }
        Filter::Range(range) => {
            let found = nvtx::ranges_named(trace, range)?;
            if found.is_empty() {
                trace.note(format!("no range named `{}`", range.name));
            }
            Ok(Windows {
                spans: united(found),
                is_time: false,
                calls: Calls::from_export(&trace.export, &[])?,
            })
        }
    }
}

fn united(mut spans: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    spans.sort_unstable();
    let mut apart: Vec<(i64, i64)> = Vec::new();
    for (start, end) in spans {
        match apart.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => apart.push((start, end)),
        }
    }
    apart
}

impl Windows {
    /// The span of a filter by time; ranges stand on threads, and what they launched runs at another time.
    pub(super) fn time(&self) -> Option<(i64, i64)> {
        self.spans.first().copied().filter(|_| self.is_time)
    }

    /// Rows that overlap; a moment is kept where `start <= moment < end`.
    fn keeps(&self, start: i64, end: i64) -> bool {
        // The last window that begins early enough is the only one that can still reach.
        let before = self.spans.partition_point(|span| span.0 < end || (start == end && span.0 == start));
        before.checked_sub(1).is_some_and(|at| self.spans[at].1 > start)
    }

    pub(super) fn rows(
        &self,
        export: &Export,
        spec: &'static TableSpec,
        columns: &[&str],
    ) -> Result<Option<Rows>, ExportError> {
        let declared = |name: &&&str| spec.columns.iter().any(|column| column.name == **name);
        let mut asked = columns.to_vec();
        let needed = ["start", "end", "timestamp", "correlationId", "globalPid"];
        for name in needed.iter().filter(declared) {
            if !asked.contains(name) {
                asked.push(name);
            }
        }
        let Some(rows) = export.columns(spec, &asked)? else { return Ok(None) };
        let has = |name: &str| spec.columns.iter().any(|column| column.name == name);
        let begin = if has("start") { "start" } else { "timestamp" };
        if !has(begin) {
            // A table without times applies to the whole report.
            return Ok(Some(rows));
        }
        let starts = rows.ints(begin)?;
        let ends = if has("end") { Some(rows.maybe_ints("end")?) } else { None };
        let end = |row: usize| ends.as_ref().and_then(|ends| ends.get(row)).unwrap_or(starts[row]);
        let itself = |row: usize| self.keeps(starts[row], end(row));
        let kept: Vec<bool> = match (&self.calls, has("correlationId") && has("globalPid")) {
            (Some(calls), true) => {
                let (pids, ids) = (rows.maybe_ints("globalPid")?, rows.maybe_ints("correlationId")?);
                let (begun, done) = (calls.rows().ints("start")?, calls.rows().ints("end")?);
                let by_call = |row: usize| {
                    let of_row = calls.with_correlation(pids.get(row)?, ids.get(row)?);
                    of_row.map(|call| self.keeps(begun[call], done[call])).reduce(|any, one| any || one)
                };
                (0..rows.len()).map(|row| by_call(row).unwrap_or_else(|| itself(row))).collect()
            }
            _ => (0..rows.len()).map(itself).collect(),
        };
        rows.keeping(&kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_time_are_read_with_units_and_without() {
        let read = |text: &str| text.parse::<TimeFilter>();
        assert_eq!(read("1ms/2.5s"), Ok(TimeFilter { start: Some(1_000_000), end: Some(2_500_000_000) }));
        assert_eq!(read("/3"), Ok(TimeFilter { start: None, end: Some(3) }));
        assert_eq!(read("-5us/"), Ok(TimeFilter { start: Some(-5000), end: None }));
        for text in ["", "/", "5", "2/1", "1/1", "a/b", "1e400s/", "nan s/", "1 parsec/"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn ranges_are_read_with_their_escapes() {
        let read = |text: &str| text.parse::<RangeFilter>();
        let range = |name: &str, domain, index| Ok(RangeFilter { name: name.to_owned(), domain, index });
        assert_eq!(read("step"), range("step", Domain::Default, None));
        assert_eq!(read("step@NCCL/3"), range("step", Domain::Named("NCCL".to_owned()), Some(3)));
        assert_eq!(read("step@*"), range("step", Domain::Any, None));
        assert_eq!(read(r"a\@b\/c\\@d\*"), range(r"a@b/c\", Domain::Named("d*".to_owned()), None));
        assert_eq!(read(r"x@\*"), range("x", Domain::Named("*".to_owned()), None));
        for text in ["", "@x", "a@", "a/", "a/x", "a/-1", "a@b@c", "a/1/2", "a/1@b", "a@*b", "a\\"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_overlaps_is_kept_and_what_only_touches_is_not() {
        let windows =
            Windows { spans: united(vec![(30, 40), (10, 20), (15, 22)]), is_time: false, calls: None };
        assert_eq!(windows.spans, [(10, 22), (30, 40)]);
        for (start, end, kept) in [
            (0, 10, false),
            (0, 11, true),
            (22, 30, false),
            (21, 22, true),
            (5, 50, true),
            (40, 50, false),
            (10, 10, true),
            (22, 22, false),
            (39, 39, true),
        ] {
            assert_eq!(windows.keeps(start, end), kept, "{start} to {end}");
        }
    }

    #[test]
    fn messages() {
        let times = ["", "5", "/", "2/1", "a/b"];
        let times = times.map(|text| text.parse::<TimeFilter>().expect_err(text).to_string());
        let ranges = ["", "a\\", "a/1@b", "a@b@c", "a/1/2", "a/x", "a@*b", "a@"];
        let ranges = ranges.map(|text| text.parse::<RangeFilter>().expect_err(text).to_string());
        insta::assert_snapshot!(times.into_iter().chain(ranges).collect::<Vec<_>>().join("\n"));
    }
}
