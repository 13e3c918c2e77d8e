//! Calls that make the host wait until a GPU has done all that it was given.

use super::note_none;
use crate::recipe::of_reports::{RecipeKind, ReportRecipe};
use crate::report::argument;
use crate::report::{ArgumentSpec, Takes, api_name};
use crate::result_table::{Column, Quantity, ResultTable};
use nsys::tables::{RUNTIME, STRING_IDS};
use nsys::trace::{Part, pid_of, tid_of};

pub(in super::super) const CUDA_API_SYNC: ReportRecipe = ReportRecipe {
    name: "cuda_api_sync",
    title: "Calls That Wait for a GPU",
    about: "calls that block the host until all work of a stream or a GPU is done; events wait for less",
    definition: "calls whose names begin with cudaDeviceSynchronize, cudaStreamSynchronize, cuCtxSynchronize or \
                 cuStreamSynchronize, the longest first. Waiting for events, which may replace them, does not count",
    arguments: &[LEAST],
    tables: &[&RUNTIME, &STRING_IDS],
    kind: RecipeKind::Rows {
        columns: &[&["Duration", "Start", "PID", "TID", "API: the call, by name"]],
        of: |trace, arguments| {
            let Some(rows) = trace.rows(&RUNTIME, &["start", "end", "nameId", "globalTid"])? else {
                return Ok(None);
            };
            let (starts, ends) = (rows.ints("start")?, rows.ints("end")?);
            let tids = rows.maybe_ints("globalTid")?;
            let names = Part::named(rows.ints("nameId")?.iter().copied(), trace.strings()?, api_name);
            let waits: Vec<bool> =
                names.labels.iter().map(|name| WAITING.iter().any(|start| name.starts_with(start))).collect();
            let ns = trace.durations("CUDA calls", starts, ends).into_ns();
            let least = arguments.number(&LEAST);
            let mut found: Vec<usize> = (0..rows.len())
                .filter(|row| {
                    waits[names.of_row[*row] as usize] && ends[*row] >= starts[*row] && ns[*row] >= least
                })
                .collect();
            found.sort_by_key(|row| (std::cmp::Reverse(ns[*row]), starts[*row], *row));
            note_none(trace, CUDA_API_SYNC.name, "calls", rows.len(), found.len());
            let columns = vec![
                Column::integers("Duration", Quantity::Nanoseconds, found.iter().map(|row| ns[*row] as i64)),
                Column::integers("Start", Quantity::Nanoseconds, found.iter().map(|row| starts[*row])),
                Column::maybe_integers(
                    "PID",
                    Quantity::Plain,
                    found.iter().map(|row| tids.get(*row).map(pid_of)),
                ),
                Column::maybe_integers(
                    "TID",
                    Quantity::Plain,
                    found.iter().map(|row| tids.get(*row).map(tid_of)),
                ),
                Column::texts(
                    "API",
                    found.iter().map(|row| names.labels[names.of_row[*row] as usize].as_str()),
                ),
            ];
            Ok(Some(ResultTable::new(CUDA_API_SYNC.name, CUDA_API_SYNC.title, columns)))
        },
    },
};

const LEAST: ArgumentSpec =
    argument!("least", "leave out calls shorter than this, in nanoseconds", Takes::Number(0));

const WAITING: [&str; 4] =
    ["cudaDeviceSynchronize", "cudaStreamSynchronize", "cuCtxSynchronize", "cuStreamSynchronize"];
