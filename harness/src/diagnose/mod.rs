//! The verb `harness diagnose`: what limits the work in some reports, or in each case of a run. `recipes::diagnosis`
//! finds it; this reads the inputs and prints.

pub(crate) mod kept;
mod text;

use crate::publish::RemoteInputs;
use crate::recipe::{self, Messages};
use crate::stats::Exporting;
use base::text::SIMULATED;
use model::exit_code;
use recipes::diagnosis::{Diagnosis, diagnose};
use serde::Serialize;
use std::io::{self, Write};
use std::path::PathBuf;

/// Reports that belong together, under their name: the case of a run, or nothing.
pub(crate) type ReportSet = (Option<String>, Vec<PathBuf>);

/// What the command line asks for.
pub(crate) struct Order {
    pub sets: Vec<ReportSet>,
    /// What their paths are called.
    pub names: RemoteInputs,
    /// How reports without an export are read.
    pub exporting: Exporting,
    /// How many reports are open at once.
    pub jobs: usize,
    pub as_json: bool,
}

/// A set of reports, as programs read it.
#[derive(Serialize)]
struct Diagnosed<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<&'a str>,
    reports: usize,
    #[serde(flatten)]
    diagnosis: Diagnosis,
}

/// Findings go to `out`, all else to `err`. The exit code is 2 where an input could not be read, then 0 where anything
/// was diagnosed, then 3.
pub(crate) fn run(order: &Order, out: &mut dyn Write, err: &mut dyn Write) -> i32 {
    let mut messages = Messages::naming(err, &order.names);
    let mut any = false;
    for (name, named) in &order.sets {
        let (inputs, _exports) = recipe::inputs(&[named.as_slice()], &order.exporting, &mut messages);
        if inputs.is_empty() {
            continue;
        }
        let together = diagnose(&inputs, order.jobs, &|_| {});
        let mut sets = vec![(name.clone(), named.clone(), together, inputs.len())];
        if let Some((_, _, Ok(Diagnosis { apart: Some(why), .. }), _)) = sets.first() {
            messages.note(why);
            let each = inputs.iter().map(|input| {
                let alone = diagnose(std::slice::from_ref(input), order.jobs, &|_| {});
                (Some(input.shown.clone()), vec![input.path.clone()], alone, 1)
            });
            sets = each.collect();
        }
        for (name, named, diagnosis, reports) in sets {
            match diagnosis {
                Err(why) => messages.error(&why),
                Ok(diagnosis) => {
                    any |= diagnosis.gpus > 0;
                    print_set(name, reports, diagnosis, order, &named, out, &mut messages);
                }
            }
        }
    }
    order.names.notes().iter().for_each(|note| messages.note(note));
    match (messages.is_bad, any) {
        (true, _) => exit_code::USAGE,
        (false, true) => exit_code::PASSED,
        (false, false) => {
            messages.note(
                "no report has work of a GPU to diagnose; profile a training: `harness run --suite NAME --tag profile`",
            );
            exit_code::INCONCLUSIVE
        }
    }
}

fn print_set(
    name: Option<String>,
    reports: usize,
    diagnosis: Diagnosis,
    order: &Order,
    named: &[PathBuf],
    out: &mut dyn Write,
    messages: &mut Messages<'_>,
) {
    for (report, why) in &diagnosis.unreadable {
        messages.error(&format!("{report}: {why}"));
    }
    if diagnosis.simulated {
        messages.note(SIMULATED);
    }
    let diagnosed = Diagnosed { of: name.as_deref(), reports, diagnosis };
    match print(&diagnosed, order, named, out) {
        Ok(()) => {}
        // The reader of stdout has gone away.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        Err(error) => messages.error(&error.to_string()),
    }
}

fn print(diagnosed: &Diagnosed<'_>, order: &Order, named: &[PathBuf], out: &mut dyn Write) -> io::Result<()> {
    match order.as_json {
        true => writeln!(out, "{}", serde_json::to_string(diagnosed).map_err(io::Error::other)?),
        false => {
            let text = text::render(diagnosed.of, diagnosed.reports, &diagnosed.diagnosis, named);
            out.write_all(order.names.as_given(&text).as_bytes())
        }
    }
}
