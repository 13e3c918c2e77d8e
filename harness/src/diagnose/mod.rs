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
    let (mut any, mut simulated, mut idle) = (false, false, Vec::new());
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
                    if diagnosis.simulated && !simulated {
                        messages.note(SIMULATED);
                        simulated = true;
                    }
                    match name {
                        Some(name) if !order.as_json && is_idle(&diagnosis) => idle.push(name),
                        name => print_set(name, reports, diagnosis, order, &named, out, &mut messages),
                    }
                }
            }
        }
    }
    if !idle.is_empty() {
        messages.note(&without_work(&idle));
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

/// Names of sets that one line holds.
const MOST_NAMES: usize = 4;

/// Whether there is nothing to say of these reports but that no GPU worked.
fn is_idle(diagnosis: &Diagnosis) -> bool {
    diagnosis.gpus == 0
        && diagnosis.findings.is_empty()
        && diagnosis.notes.is_empty()
        && diagnosis.unreadable.is_empty()
}

/// Most cases of a suite are not profiled for their kernels: they share a line.
fn without_work(names: &[String]) -> String {
    let first = names.iter().take(MOST_NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = match names.len().saturating_sub(MOST_NAMES) {
        0 => String::new(),
        n => format!(", {n} more"),
    };
    format!("no work of a GPU in the reports of {first}{more}")
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

#[cfg(test)]
mod tests {
    use super::{Diagnosis, is_idle, without_work};

    #[test]
    fn reports_without_work_of_a_gpu_share_a_line() {
        let idle = Diagnosis::default();
        assert!(is_idle(&idle));
        assert!(!is_idle(&Diagnosis { gpus: 1, ..Diagnosis::default() }));
        let noted = Diagnosis { notes: vec!["cut off".to_owned()], ..Diagnosis::default() };
        assert!(!is_idle(&noted), "a note is not left out");
        let names = ["a", "b", "c", "d", "e", "f"].map(str::to_owned);
        assert_eq!(without_work(&names), "no work of a GPU in the reports of a, b, c, d, 2 more");
        assert_eq!(without_work(&names[..2]), "no work of a GPU in the reports of a, b");
    }
}
