//! Where the time of GPUs went: to compute, to communication, to memory, to several at once, or to nothing; per GPU, per
//! stream and per step. `compat` gives the numbers of an older script, which takes all GPUs for one.

mod charts;
mod compat;
mod steps;
#[cfg(test)]
mod tests;

use super::{Across, Made, RecipeKind, ReportExtract, ReportRecipe};
use crate::busy::{Busy, Sets, Shares};
use crate::recipe::of_reports::columns::TableDoc;
use crate::report::argument;
use crate::report::{ArgumentSpec, Arguments, Takes};
use crate::result_table::{Column, Quantity, ResultTable, visible};
use compat::Compat;
use nsys::export::ExportError;
use nsys::tables::{ANALYSIS_DETAILS, GRAPH_TRACE, KERNEL, MEMCPY, MEMSET, NVTX_EVENTS, RUNTIME, STRING_IDS};
use nsys::trace::Trace;
use serde::{Deserialize, Serialize};

pub(super) const BREAKDOWN: ReportRecipe = ReportRecipe {
    name: "breakdown",
    title: "Where the Time of GPUs Went",
    about: "compute, communication, memory and idle time of each GPU, each stream and each step; exposed communication",
    definition: "a GPU is a device as one process numbers it. Communication is the union of kernels of the classes \
                 nccl and comm, compute that of all other kernels, memory that of copies and fills. The window is from \
                 the first beginning to the last end on any GPU of the report, cut to a filter by time; each moment of \
                 it is in one of seven parts (one of the three alone, two at once, all three), in `Graphs Alone` or \
                 idle, and the parts add up to the window. Exposed communication is communication beside which the GPU \
                 computes nothing; where graphs were traced as a whole it is unknown and left empty, and the parts are \
                 lower bounds. `Session` is the length of the session by the report. A step is a range of the \
                 requested name; its window on a GPU is from the first start to the last end of the operations \
                 launched by calls of its process that begin within the range, on any thread; all operations of the \
                 GPU in that window count. `compat` gives the ten numbers of an older published script, in its format: \
                 all GPUs and processes of a report in one timeline, so that work on one GPU beside work on another \
                 counts as overlap; of the whole report, whatever the filter",
    arguments: &[COMPAT, STEP],
    tables: &[
        &KERNEL,
        &MEMCPY,
        &MEMSET,
        &GRAPH_TRACE,
        &STRING_IDS,
        &ANALYSIS_DETAILS,
        &RUNTIME,
        &NVTX_EVENTS,
    ],
    kind: RecipeKind::Together(&Across {
        tables: &[
            TableDoc {
                name: "compat",
                about: "the ten numbers of the older script, as lines in its format",
                columns: &[&["Text: a line"]],
            },
            TableDoc {
                name: "compat_numbers",
                about: "the same numbers, one row per report",
                columns: &[&[
                    "Rank",
                    "Session",
                    "Active",
                    "Idle",
                    "Compute",
                    "Communication",
                    "Memory",
                    "Compute and Communication",
                    "Compute and Memory",
                    "Communication and Memory",
                    "Utilisation: active time as a share of the session",
                ]],
            },
            TableDoc { name: "gpus", about: "one row per GPU of each process", columns: &[PLACE, PARTS] },
            TableDoc {
                name: "streams",
                about: "one row per stream of a GPU",
                columns: &[PLACE, &["Stream"], PARTS],
            },
            TableDoc {
                name: "steps",
                about: "one row per step on a GPU",
                columns: &[PLACE, &["Step"], PARTS],
            },
        ],
        charts: &[
            ("shares", "the parts of the time of all GPUs, as bars"),
            ("idle", "the idle time of each GPU, as bars"),
            ("exposed", "the exposed communication of each GPU, as bars"),
        ],
        take,
        make,
    }),
};

const PLACE: &[&str] = &["Rank", "PID", "Device"];

/// The parts of the time of each row.
const PARTS: &[&str] = &[
    "Start",
    "Window: time from the first beginning to the last end",
    "Operations: kernels, copies and fills",
    "Active",
    "Idle",
    "Idle of Window: idle time as a share of the window",
    "Compute",
    "Communication",
    "Memory",
    "Exposed Communication",
    "Exposed of Communication",
    "Exposed of Window: exposed communication as a share of the window",
    "Compute Alone",
    "Communication Alone",
    "Memory Alone: time in which nothing but copies or fills ran",
    "Compute and Communication",
    "Compute and Memory",
    "Communication and Memory",
    "All Three",
    "Graphs Alone: time in which nothing but graphs traced as a whole ran",
    "Session",
];

const COMPAT: ArgumentSpec = argument!(
    "compat",
    "first the ten numbers of the older script, in its format, then the correct ones",
    Takes::Nothing
);

const STEP: ArgumentSpec = argument!(
    "step",
    "also per step: the name of the step's range, with or without its domain before a colon",
    Takes::Text("")
);

#[derive(Serialize, Deserialize)]
struct Extract {
    gpus: Vec<Row>,
    streams: Vec<Row>,
    steps: Option<Vec<Row>>,
    session: Option<i64>,
    compat: Option<Compat>,
}

/// Some operations of one GPU, and their shares of a window.
#[derive(Serialize, Deserialize)]
struct Row {
    pid: Option<i64>,
    device: i64,
    /// Of the stream, or of the step; nothing of a GPU.
    number: Option<i64>,
    start: i64,
    operations: u64,
    shares: Shares,
}

fn take(trace: &Trace, arguments: &Arguments) -> Result<Option<(Extract, u64)>, ExportError> {
    let Some(busy) = Busy::read(trace)? else { return Ok(None) };
    let (start, end) = busy.window;
    let (mut gpus, mut streams) = (Vec::new(), Vec::new());
    let mut sets = Vec::new();
    for gpu in &busy.gpus {
        let row = |number, operations: usize, shares| Row {
            pid: gpu.pid(),
            device: gpu.device,
            number,
            start,
            operations: operations as u64,
            shares,
        };
        let of_gpu = Sets::from_operations(gpu.operations.iter());
        gpus.push(row(None, gpu.operations.len(), of_gpu.within(start, end)));
        sets.push(of_gpu);
        let mut of_stream: Vec<_> = gpu.operations.iter().map(|one| (one.stream, *one)).collect();
        of_stream.sort_by_key(|(stream, _)| *stream);
        for operations in of_stream.chunk_by(|one, two| one.0 == two.0) {
            let shares = Sets::from_operations(operations.iter().map(|(_, one)| one)).within(start, end);
            streams.push(row(operations[0].0, operations.len(), shares));
        }
    }
    let steps = match arguments.text(&STEP) {
        "" => None,
        name => Some(steps::rows_of_steps(trace, &busy, &sets, name)?),
    };
    let compat = if arguments.has(COMPAT.name) { compat::read(trace)? } else { None };
    let session = compat::session(trace)?;
    Ok(Some((Extract { gpus, streams, steps, session, compat }, busy.rows)))
}

fn make(reports: &[ReportExtract<&Extract>], arguments: &Arguments) -> Made {
    let mut made = Made::default();
    if arguments.has(COMPAT.name) {
        let mut lines = Vec::new();
        for report in reports {
            if reports.len() > 1 {
                lines.push(visible(&report.file).into_owned());
            }
            lines.extend(report.extract.compat.iter().flat_map(Compat::lines));
        }
        let all: Vec<(i64, Compat)> =
            reports.iter().filter_map(|report| Some((report.rank, report.extract.compat?))).collect();
        if !all.is_empty() {
            made.tables.push(("compat", ResultTable::from_lines(BREAKDOWN.name, BREAKDOWN.title, lines)));
            made.tables.push(("compat_numbers", compat::result_table(&all)));
        }
    }
    let all = |of: fn(&Extract) -> &[Row]| -> Vec<(i64, Option<i64>, &Row)> {
        let rows = reports.iter().flat_map(|report| {
            of(report.extract).iter().map(|row| (report.rank, report.extract.session, row))
        });
        rows.collect()
    };
    let gpus = all(|extract| &extract.gpus);
    made.charts = charts::render(&gpus);
    made.tables.push(("gpus", result_table(&gpus, None)));
    made.tables.push(("streams", result_table(&all(|extract| &extract.streams), Some("Stream"))));
    if !arguments.text(&STEP).is_empty() {
        let steps = all(|extract| extract.steps.as_deref().unwrap_or_default());
        made.tables.push(("steps", result_table(&steps, Some("Step"))));
    }
    made
}

fn result_table(rows: &[(i64, Option<i64>, &Row)], number: Option<&str>) -> ResultTable {
    let (plain, ns) = (Quantity::Plain, Quantity::Nanoseconds);
    let time = |name: &str, of: &dyn Fn(&Row) -> u64| {
        Column::maybe_integers(name, ns, rows.iter().map(|(.., row)| i64::try_from(of(row)).ok()))
    };
    let share = |name: &str, of: &dyn Fn(&Shares) -> (Option<u64>, u64)| {
        let shares = rows.iter().map(|(.., row)| match of(&row.shares) {
            (Some(part), whole) if whole > 0 => Some(100.0 * part as f64 / whole as f64),
            _ => None,
        });
        Column::maybe_decimals(name, Quantity::Percent, shares)
    };
    let mut columns = vec![
        Column::integers("Rank", plain, rows.iter().map(|(rank, ..)| *rank)),
        Column::maybe_integers("PID", plain, rows.iter().map(|(.., row)| row.pid)),
        Column::integers("Device", plain, rows.iter().map(|(.., row)| row.device)),
    ];
    if let Some(name) = number {
        columns.push(Column::maybe_integers(name, plain, rows.iter().map(|(.., row)| row.number)));
    }
    columns.extend([
        Column::integers("Start", ns, rows.iter().map(|(.., row)| row.start)),
        time("Window", &|row| row.shares.window),
        Column::integers("Operations", plain, rows.iter().map(|(.., row)| row.operations as i64)),
        time("Active", &|row| row.shares.active()),
        time("Idle", &|row| row.shares.idle),
        share("Idle of Window", &|shares| (Some(shares.idle), shares.window)),
        time("Compute", &|row| row.shares.compute()),
        time("Communication", &|row| row.shares.communication()),
        time("Memory", &|row| row.shares.memory()),
        Column::maybe_integers(
            "Exposed Communication",
            ns,
            rows.iter().map(|(.., row)| row.shares.exposed().and_then(|ns| i64::try_from(ns).ok())),
        ),
        share("Exposed of Communication", &|shares| (shares.exposed(), shares.communication())),
        share("Exposed of Window", &|shares| (shares.exposed(), shares.window)),
        time("Compute Alone", &|row| row.shares.compute_alone),
        time("Communication Alone", &|row| row.shares.communication_alone),
        time("Memory Alone", &|row| row.shares.memory_alone),
        time("Compute and Communication", &|row| row.shares.compute_communication),
        time("Compute and Memory", &|row| row.shares.compute_memory),
        time("Communication and Memory", &|row| row.shares.communication_memory),
        time("All Three", &|row| row.shares.all_three),
        time("Graphs Alone", &|row| row.shares.graphs_alone),
        Column::maybe_integers("Session", ns, rows.iter().map(|(_, session, _)| *session)),
    ]);
    ResultTable::new(BREAKDOWN.name, BREAKDOWN.title, columns)
}
