//! The profiler's own messages in a report: lost events, errors on the node, and the options of the capture.

use super::{RecipeKind, ReportRecipe};
use crate::result_table::{Column, Quantity, ResultTable};
use nsys::loss::reports_loss;
use nsys::tables::{DIAGNOSTIC_EVENT, META_DATA_CAPTURE};
use std::collections::BTreeMap;

pub(super) const DIAGNOSTICS: ReportRecipe = ReportRecipe {
    name: "diagnostics",
    title: "Messages of the Profiler",
    about: "events that were lost, errors on the node, and the options of the capture",
    definition: "each message of the profiler once, with its count; `Loss` is yes where it reports missing events: \
                 figures of such a report do not cover everything that ran",
    arguments: &[],
    tables: &[&DIAGNOSTIC_EVENT, &META_DATA_CAPTURE],
    kind: RecipeKind::Rows {
        columns: &[&[
            "Kind: event of the profiler, or option of the export",
            "Loss: whether it says that data was lost",
            "Count: how often it was reported",
            "Name: severity and source, or the option",
            "Text: what it says",
        ]],
        of: |trace, _| {
            let mut rows: Vec<(&str, String, String, i64, bool)> = Vec::new();
            if let Some(events) =
                trace.export().columns(&DIAGNOSTIC_EVENT, &["text", "severity", "source"])?
            {
                let (severities, sources) = (events.maybe_ints("severity")?, events.maybe_ints("source")?);
                let mut texts: BTreeMap<(i64, &str, i64), i64> = BTreeMap::new();
                for (row, text) in events.texts("text")?.iter().enumerate() {
                    let severity = severities.get(row).unwrap_or_default();
                    let source = sources.get(row).unwrap_or_default();
                    *texts.entry((gravity(severity), text.unwrap_or_default(), source)).or_default() += 1;
                }
                for ((gravity, text, source), count) in texts {
                    let name = format!("{} from {}", SEVERITIES[gravity as usize], source_name(source));
                    rows.push(("event", name, text.to_owned(), count, reports_loss(text)));
                }
            }
            // Messages of loss come first.
            rows.sort_by_key(|row| !row.4);
            if let Some(options) = trace.export().table(&META_DATA_CAPTURE)? {
                let mut named: Vec<(String, String)> = Vec::new();
                for (name, value) in options.texts("name")?.iter().zip(options.texts("value")?.iter()) {
                    named.push((name.unwrap_or_default().to_owned(), value.unwrap_or_default().to_owned()));
                }
                named.sort();
                rows.extend(named.into_iter().map(|(name, value)| ("option", name, value, 1, false)));
            }
            if rows.is_empty() {
                return Ok(None);
            }
            let columns = vec![
                Column::texts("Kind", rows.iter().map(|row| row.0)),
                Column::texts("Loss", rows.iter().map(|row| if row.4 { "yes" } else { "no" })),
                Column::integers("Count", Quantity::Plain, rows.iter().map(|row| row.3)),
                Column::texts("Name", rows.iter().map(|row| row.1.as_str())),
                Column::texts("Text", rows.iter().map(|row| row.2.as_str())),
            ];
            Ok(Some(ResultTable::new(DIAGNOSTICS.name, DIAGNOSTICS.title, columns)))
        },
    },
};

/// The gravest first.
const SEVERITIES: [&str; 5] = ["error", "warning", "unknown", "info", "verbose"];

fn gravity(severity: i64) -> i64 {
    match severity {
        3 => 0,
        2 => 1,
        1 => 3,
        4 => 4,
        _ => 2,
    }
}

fn source_name(source: i64) -> &'static str {
    match source {
        1 => "the program",
        2 => "the node",
        3 => "the analysis",
        _ => "unknown",
    }
}
