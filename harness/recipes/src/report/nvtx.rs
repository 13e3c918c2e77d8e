//! Ranges that programs wrote into their traces, by name and style.

use super::ReportSpec;
use super::summary::{Groups, Summary};
use crate::result_table::ResultTable;
use nsys::export::ExportError;
use nsys::tables::{NVTX_EVENTS, STRING_IDS};
use nsys::trace::NO_GROUP;
use nsys::trace::nvtx::{Ranges, Style};
use nsys::trace::{Keys, Part, Trace};

const DATA: &str = "NV Tools Extension (NVTX)";

pub(super) const NVTX_SUM: ReportSpec = ReportSpec {
    name: "nvtx_sum",
    title: "NVTX Range Summary",
    about: "ranges by domain and name, and by style; ranges without an end are left out",
    data: DATA,
    arguments: &[],
    tables: &[&NVTX_EVENTS, &STRING_IDS],
    run: |trace, _| style_summary(trace, None, "nvtx_sum", "NVTX Range Summary"),
};

pub(super) const NVTX_PUSHPOP_SUM: ReportSpec = ReportSpec {
    name: "nvtx_pushpop_sum",
    title: "NVTX Push/Pop Range Summary",
    about: "ranges that were pushed and popped, by domain and name",
    data: DATA,
    arguments: &[],
    tables: &[&NVTX_EVENTS, &STRING_IDS],
    run: |trace, _| {
        style_summary(trace, Some(Style::PushPop), "nvtx_pushpop_sum", "NVTX Push/Pop Range Summary")
    },
};

pub(super) const NVTX_STARTEND_SUM: ReportSpec = ReportSpec {
    name: "nvtx_startend_sum",
    title: "NVTX Start/End Range Summary",
    about: "ranges that were started and ended, by domain and name",
    data: DATA,
    arguments: &[],
    tables: &[&NVTX_EVENTS, &STRING_IDS],
    run: |trace, _| {
        style_summary(trace, Some(Style::StartEnd), "nvtx_startend_sum", "NVTX Start/End Range Summary")
    },
};

fn style_summary(
    trace: &Trace,
    only: Option<Style>,
    name: &'static str,
    title: &'static str,
) -> Result<Option<ResultTable>, ExportError> {
    let Some(groups) = by_name(trace, only)? else { return Ok(None) };
    let words: &[&str] = if only.is_some() { &["Range"] } else { &["Style", "Range"] };
    Summary::new(groups).time_table(name, title, "Instances", words).map(Some)
}

/// Ranges by name, with their durations: of one style, or of both in separate rows.
pub(crate) fn by_name(trace: &Trace, only: Option<Style>) -> Result<Option<Groups>, ExportError> {
    let Some(ranges) = Ranges::read(trace)? else { return Ok(None) };
    let styles = Part::numbers(ranges.style.iter().map(|style| i64::from(*style == Style::StartEnd)));
    let mut keys = Keys::by(&[&styles.of_row, &ranges.label.of_row]);
    if let Some(only) = only {
        for (group, style) in keys.of_row.iter_mut().zip(&ranges.style) {
            if *style != only {
                *group = NO_GROUP;
            }
        }
    }
    let labels = keys.groups.iter().map(|group| {
        let style = if styles.labels[group[0] as usize] == 1 { Style::StartEnd } else { Style::PushPop };
        let label = ranges.label.labels[group[1] as usize].clone();
        if only.is_some() { vec![label] } else { vec![style.name().to_owned(), label] }
    });
    let values = (0..ranges.len()).map(|row| ranges.ns(row)).collect();
    Ok(Groups { labels: labels.collect(), of_row: keys.of_row, values }.any())
}
