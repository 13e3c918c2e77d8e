//! The text of LTTng that lies beside a report, as rows.

use crate::recipe::of_reports::ReportRecipe;
use crate::result_table::{Column, Quantity, ResultTable};
use logs::lttng::{self, Event};
use nsys::export::ExportError;
use nsys::regular_file;
use nsys::trace::Trace;
use std::io::BufReader;
use std::path::PathBuf;

const ENDING: &str = ".lttng.txt";

/// None where no such text is there.
pub(super) fn beside(trace: &Trace) -> Result<Vec<Event>, ExportError> {
    let path = trace.export().path();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let base = ["_pqtdir", "_arwdir", ".sqlite", ".arrows"].iter().find_map(|end| name.strip_suffix(end));
    let Some(base) = base else { return Ok(Vec::new()) };
    let text: PathBuf = path.with_file_name(format!("{base}{ENDING}"));
    let from = match regular_file::open(&text) {
        Ok(from) => BufReader::new(from),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(ExportError::NotAnExport { path: text, why: error.to_string() }),
    };
    let read = lttng::read(from);
    let read = read.map_err(|why| ExportError::NotAnExport { path: text, why })?;
    if read.others > 0 {
        trace.note(format!(
            "AWS_OFI_NCCL: events of LTTng that are not the plugin's, left out: {}",
            read.others
        ));
    }
    Ok(read.events)
}

pub(super) fn rows(recipe: &ReportRecipe<'static>, all: &[(i64, &Event)]) -> ResultTable {
    let plain = Quantity::Plain;
    let number = |name: &str, value: fn(&Event) -> Option<i64>| {
        Column::maybe_integers(name, plain, all.iter().map(|(_, event)| value(event)))
    };
    let columns = vec![
        Column::integers("Rank", plain, all.iter().map(|(rank, _)| *rank)),
        number("time", |event| Some(event.ns)),
        Column::maybe_texts("host", all.iter().map(|(_, event)| event.host.clone())),
        Column::texts("event", all.iter().map(|(_, event)| event.name.as_str())),
        number("dev", |event| event.dev),
        number("rail", |event| event.rail),
        number("size", |event| i64::try_from(event.size?).ok()),
        Column::maybe_texts("comm", all.iter().map(|(_, event)| event.comm.clone())),
        number("msg_seq_num", |event| event.sequence),
        Column::maybe_texts("request", all.iter().map(|(_, event)| event.request.clone())),
    ];
    ResultTable::new(recipe.name, "Requests by LTTng", columns)
}
