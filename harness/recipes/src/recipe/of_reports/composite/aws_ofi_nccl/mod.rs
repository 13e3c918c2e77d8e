//! Requests of NCCL's network plugin on AWS: from ranges and marks, and from text of LTTng where such a trace lies
//! beside the report. `domain` reads names of domains.

mod domain;
mod events;
mod lttng;
mod rails;
#[cfg(test)]
mod tests;

use crate::recipe::of_reports::columns::TableDoc;
use crate::recipe::of_reports::{Across, Made, RecipeKind, ReportExtract, ReportRecipe};
use crate::report::Arguments;
use crate::result_table::{Column, Quantity, ResultTable};
use events::Event;
use logs::lttng as source;
use nsys::export::ExportError;
use nsys::tables::{NVTX_EVENTS, STRING_IDS};
use nsys::trace::{Trace, pid_of, tid_of};
use serde::{Deserialize, Serialize};

pub(crate) const AWS_OFI_NCCL: ReportRecipe = ReportRecipe {
    name: "AWS_OFI_NCCL",
    title: "Requests of the AWS OFI NCCL Plugin",
    about: "sends, receives, writes and control messages of the plugin, by communicator and slot, or by device and rail; \
            and how evenly rails carried them",
    definition: "ranges and marks of domains that begin with `aws-ofi-nccl `, and marks of the default domain that the \
                 plugin writes there, in processes that have such a domain. Ranges without an end were open when the \
                 capture ended, or their end was lost: they have an empty end and are counted by rail. Events have no \
                 size; a text of LTTng beside the report, as babeltrace prints it, under the report's name with \
                 `.lttng.txt`, has sizes and rails of each request",
    arguments: &[],
    tables: &[&NVTX_EVENTS, &STRING_IDS],
    kind: RecipeKind::Together(&Across {
        tables: &[
            TableDoc {
                name: "rows",
                about: "one row per request or mark of the plugin",
                columns: &[&[
                    "Rank",
                    "kind: whether it is of a communicator or of a rail",
                    "comm",
                    "slot: the slot of the communicator",
                    "dev",
                    "rail",
                    "event",
                    "start",
                    "end",
                    "duration: time from start to end",
                    "open: yes where it has no end",
                    "pid",
                    "tid",
                    "end tid: the thread that ended it",
                ]],
            },
            TableDoc {
                name: "rails",
                about: "one row per kind of request on a rail",
                columns: &[&[
                    "Rank",
                    "kind: whether it is of a communicator or of a rail",
                    "dev",
                    "rail",
                    "event",
                    "Count",
                    "Open: requests without an end",
                    "Of Device: requests of the rail as a share of its device's",
                    "Avg: the mean time",
                    "Most at Once: the most requests under way at a time",
                ]],
            },
            TableDoc {
                name: "lttng",
                about: "one row per event of the LTTng text beside the report",
                columns: &[&[
                    "Rank",
                    "time: when it was written",
                    "host: the host",
                    "event",
                    "dev",
                    "rail",
                    "size: bytes",
                    "comm",
                    "msg_seq_num: the number of the message",
                    "request: the request, by its address",
                ]],
            },
            TableDoc {
                name: "lttng_rails",
                about: "one row per kind of such events on a rail",
                columns: &[&[
                    "Rank",
                    "dev",
                    "rail",
                    "event",
                    "Count",
                    "Bytes: the sum of their sizes",
                    "Of Device: bytes of the rail as a share of its device's",
                ]],
            },
        ],
        charts: &[],
        take,
        make,
    }),
};

#[derive(Serialize, Deserialize)]
struct Extract {
    events: Vec<Event>,
    requests: Vec<source::Event>,
}

fn take(trace: &Trace, _: &Arguments) -> Result<Option<(Extract, u64)>, ExportError> {
    let events = events::read(trace)?;
    let requests = lttng::beside(trace)?;
    let rows = (events.len() + requests.len()) as u64;
    Ok((rows > 0).then_some((Extract { events, requests }, rows)))
}

fn make(reports: &[ReportExtract<&Extract>], _: &Arguments) -> Made {
    let mut made = Made::default();
    let all: Vec<(i64, &Event)> = reports
        .iter()
        .flat_map(|report| report.extract.events.iter().map(|event| (report.rank, event)))
        .collect();
    if !all.is_empty() {
        made.tables.push(("rows", rows(&all)));
        made.tables.push(("rails", rails::event_rails(&AWS_OFI_NCCL, &all)));
    }
    let open = all.iter().filter(|(_, event)| event.is_open()).count();
    if open > 0 {
        made.notes.push(format!("AWS_OFI_NCCL: ranges without an end: {open} of {}", all.len()));
    }
    let requests: Vec<(i64, &source::Event)> = reports
        .iter()
        .flat_map(|report| report.extract.requests.iter().map(|event| (report.rank, event)))
        .collect();
    if !requests.is_empty() {
        made.tables.push(("lttng", lttng::rows(&AWS_OFI_NCCL, &requests)));
        made.tables.push(("lttng_rails", rails::request_rails(&AWS_OFI_NCCL, &requests)));
    }
    made
}

fn rows(all: &[(i64, &Event)]) -> ResultTable {
    let (plain, time) = (Quantity::Plain, Quantity::Nanoseconds);
    let number = |name: &str, quantity, value: &dyn Fn(&Event) -> Option<i64>| {
        Column::maybe_integers(name, quantity, all.iter().map(|(_, event)| value(event)))
    };
    let columns = vec![
        Column::integers("Rank", plain, all.iter().map(|(rank, _)| *rank)),
        Column::texts("kind", all.iter().map(|(_, event)| event.place.kind())),
        Column::maybe_texts("comm", all.iter().map(|(_, event)| event.place.handle.clone())),
        number("slot", plain, &|event| event.place.slot),
        number("dev", plain, &|event| event.place.dev),
        number("rail", plain, &|event| event.place.rail),
        Column::texts("event", all.iter().map(|(_, event)| event.name.as_str())),
        number("start", time, &|event| Some(event.start)),
        number("end", time, &|event| event.end),
        number("duration", time, &Event::ns),
        Column::maybe_texts("open", all.iter().map(|(_, event)| event.is_open().then_some("yes"))),
        number("pid", plain, &|event| Some(pid_of(event.global_tid))),
        number("tid", plain, &|event| Some(tid_of(event.global_tid))),
        number("end tid", plain, &|event| event.end_tid.map(tid_of)),
    ];
    ResultTable::new(AWS_OFI_NCCL.name, AWS_OFI_NCCL.title, columns)
}
