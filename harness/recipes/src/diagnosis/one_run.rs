//! Whether reports are of one run: each was recorded while every other was.

use super::outcome;
use super::rows::Tables;
use crate::duration::time;
use crate::recipe::of_reports::{Input, Outcome};
use nsys::trace::Trace;

/// Clocks of nodes differ by less, and ranks begin within it.
const SLACK_NS: f64 = 60e9;

/// Windows of one long training are recorded hours apart.
const DAY_NS: f64 = 86_400e9;

/// Says that reports which are numbered as ranks of one run were started more than a day apart. Only their starts are read,
/// so that it costs little whatever is computed of them.
pub fn started_apart(inputs: &[Input]) -> Option<String> {
    let mut started = Vec::new();
    for input in inputs {
        if let Some(zero) =
            Trace::open(&input.path).ok().and_then(|trace| trace.utc_epoch_ns().ok().flatten())
        {
            started.push((zero, input));
        }
    }
    let (first, of_first) = started.iter().min_by_key(|(zero, _)| *zero)?;
    let (last, of_last) = started.iter().max_by_key(|(zero, _)| *zero)?;
    let gap = last.saturating_sub(*first) as f64;
    (gap > DAY_NS).then(|| {
        format!(
            "these reports are not of one run: {} was started {} after {}; give those of one run alone",
            of_last.shown,
            time(gap),
            of_first.shown
        )
    })
}

/// When the GPUs of a report worked, in UTC.
struct Recorded<'a> {
    input: &'a Input,
    begin_ns: f64,
    end_ns: f64,
}

/// Says which reports cannot be compared with each other, and why; nothing where they can, or where there is only one.
pub(super) fn apart(inputs: &[Input], outcomes: &[Outcome]) -> Option<String> {
    if inputs.len() < 2 || outcome(outcomes, "breakdown").is_none_or(|outcome| outcome.tables.is_empty()) {
        return None;
    }
    let recorded: Vec<Recorded> =
        inputs.iter().filter_map(|input| recorded(input, outcomes, inputs.len())).collect();
    let first_to_end = recorded.iter().min_by(|a, b| a.end_ns.total_cmp(&b.end_ns))?;
    let last_to_begin = recorded.iter().max_by(|a, b| a.begin_ns.total_cmp(&b.begin_ns))?;
    let gap = last_to_begin.begin_ns - first_to_end.end_ns;
    (gap > SLACK_NS).then(|| {
        format!(
            "these reports are not of one run: {} begins {} after {} ended; each is diagnosed by itself",
            last_to_begin.input.shown,
            time(gap),
            first_to_end.input.shown
        )
    })
}

/// `None` where the report does not say when time zero was, or has no work of a GPU.
fn recorded<'a>(input: &'a Input, outcomes: &[Outcome], reports: usize) -> Option<Recorded<'a>> {
    let tables = Tables { outcomes };
    let files = tables.rows("breakdown", "files");
    let rank = match reports {
        1 => None,
        _ => Some(files.iter().find(|row| row.text("File") == Some(input.shown.as_str()))?.word("Rank")),
    };
    let gpus = tables.gpus();
    let own: Vec<_> =
        gpus.iter().filter(|row| rank.as_ref().is_none_or(|rank| row.word("Rank") == *rank)).collect();
    let begins = own.iter().filter_map(|row| row.number("Start"));
    let begin = begins.min_by(f64::total_cmp)?;
    let ends = own.iter().filter_map(|row| Some(row.number("Start")? + row.number("Window")?));
    let end = ends.max_by(f64::total_cmp)?;
    let zero = Trace::open(&input.path).ok()?.utc_epoch_ns().ok()?? as f64;
    Some(Recorded { input, begin_ns: zero + begin, end_ns: zero + end })
}
