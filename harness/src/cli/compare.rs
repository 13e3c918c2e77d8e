//! `harness compare`: what is worse in one stored run than in another, for a person or a program.

use super::columns::columns;
use super::home;
use crate::error::Error;
use crate::session::stored;
use base::text::SIMULATED;
use base::text::show;
use clap::Args;
use std::fmt::Write;
use std::io::{self, Write as _};
use store::Home;
use verdict::compare::{Beyond, Changed, Comparison, Side, compare};
use verdict::history::past::{self, Run};

const CODES: &str = "\
Exit codes: 0 nothing is worse by more than its variation; 1 something is; 2 wrong usage; 3 inconclusive: the runs cannot be
compared, nothing was measured in both, or something of the first was not measured in the second. 1 beats 3.";

/// `harness compare`
#[derive(Debug, Args)]
#[command(
    about = "Show what is worse in run B than in run A, and whether they can be compared.",
    after_help = CODES
)]
pub(super) struct CompareArgs {
    /// The run before: its id, the beginning of it, `latest`, its folder or its bundle
    #[arg(value_name = "A")]
    a: String,
    /// The run after
    #[arg(value_name = "B")]
    b: Option<String>,
    /// Show every number, not only those that differ by more than their variation
    #[arg(long)]
    all: bool,
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json"])]
    format: String,
}

pub(super) fn run(args: &CompareArgs) -> Result<i32, Error> {
    let home = home()?;
    let b = args.b.as_deref().ok_or_else(|| Error::Usage(one_run(&home, &args.a)))?;
    let read = read(&home, &args.a).and_then(|a| Ok((a, read(&home, b)?)));
    let compared = read.and_then(|(a, b)| compare(&a, &b));
    let comparison = compared.map_err(Error::Usage)?;
    let text = match args.format.as_str() {
        "json" => serde_json::to_string_pretty(&comparison).unwrap_or_default() + "\n",
        _ => text(&comparison, args.all),
    };
    // A reader that has gone away has read enough.
    let _ = io::stdout().lock().write_all(text.as_bytes());
    Ok(comparison.outcome.exit_code())
}

/// Two runs are compared; which other one is meant is seen from those that are here.
fn one_run(home: &Home, word: &str) -> String {
    let runs = home.runs();
    let name =
        |at: usize| Some(runs.get(runs.len().checked_sub(at)?)?.file_name()?.to_string_lossy().into_owned());
    match (name(1), name(2)) {
        (Some(newest), Some(before)) if word == "latest" || word == newest => {
            format!("two runs are compared; with the one before: `harness compare {before} latest`")
        }
        (Some(_), Some(_)) => {
            format!("two runs are compared: `harness compare {} latest`", word.escape_debug())
        }
        _ => "two runs are compared, and there is one here at the most".to_owned(),
    }
}

fn read(home: &Home, word: &str) -> Result<Run, String> {
    let stored = stored::open(home, word)?;
    past::run(stored.folder()).map_err(|why| format!("`{word}`: {why}"))
}

/// So many of a kind are shown, unless all are requested.
const MOST: usize = 20;

fn text(comparison: &Comparison, all: bool) -> String {
    let mut text = String::new();
    let most = if all { usize::MAX } else { MOST };
    heading(&mut text, comparison);
    let verdicts = &comparison.verdicts;
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(text, "verdicts: {} changed, {} the same", verdicts.changed.len(), verdicts.same);
    for one in verdicts.changed.iter().take(most) {
        let _ = writeln!(text, "  {}: {} -> {}: {}", one.turned.word(), one.from, one.to, show(&one.message));
    }
    more(&mut text, verdicts.changed.len(), most);
    names(&mut text, "  not judged in either", &verdicts.unknown_in_both, most);
    let metrics = &comparison.metrics;
    let shown: Vec<&Changed> = metrics.all.iter().filter(|one| all || one.beyond != Beyond::No).collect();
    let beyond = metrics.all.iter().filter(|one| one.beyond != Beyond::No).count();
    let _ = writeln!(text, "numbers: {beyond} of {} differ by more than their variation", metrics.compared);
    let rows: Vec<Vec<String>> = shown.iter().take(most).map(|one| row(one)).collect();
    text.push_str(&columns(&rows));
    more(&mut text, shown.len(), most);
    names(&mut text, "  not counted", &metrics.uncounted, most);
    for (which, of) in [
        ("only in the first", (&verdicts.only_a, &metrics.only_a)),
        ("only in the second", (&verdicts.only_b, &metrics.only_b)),
    ] {
        names(&mut text, &format!("{which}: assertions"), of.0, most);
        names(&mut text, &format!("{which}: numbers"), of.1, most);
    }
    if comparison.a.simulated || comparison.b.simulated {
        let _ = writeln!(text, "{SIMULATED}");
    }
    let because = comparison.because.iter().map(|why| show(why)).collect::<Vec<_>>().join("; ");
    let code = comparison.outcome.exit_code();
    let _ = writeln!(text, "exit {code}: {}: {because}", comparison.outcome.text());
    text
}

/// First whether they can be compared.
fn heading(text: &mut String, comparison: &Comparison) {
    let side = |name: &str, side: &Side| {
        [name, &side.run, &side.made, &side.suites.join("+"), &side.inventory, &side.nodes, &side.state]
            .iter()
            .map(|cell| show(cell))
            .collect::<Vec<_>>()
    };
    text.push_str(&columns(&[side("a", &comparison.a), side("b", &comparison.b)]));
    for why in &comparison.apart {
        let _ = writeln!(text, "not comparable: {}", show(why));
    }
    match comparison.software.as_slice() {
        [] => text.push_str("software and settings: the same, as far as recorded\n"),
        those => {
            text.push_str("software and settings that differ:\n");
            for one in those {
                let _ = writeln!(text, "  {}", show(&one.to_string()));
            }
        }
    }
}

fn row(one: &Changed) -> Vec<String> {
    let within = one.within.map_or_else(
        || "variation unknown".to_owned(),
        |within| format!("variation {:.1} %", within * 100.0),
    );
    vec![
        format!("  {}", one.beyond.word()),
        show(&format!("{} {}", one.metric, one.of)),
        format!("{} -> {}", one.unit.show(one.a), one.unit.show(one.b)),
        one.change.map_or_else(|| "-".to_owned(), |change| format!("{:+.1} %", change * 100.0)),
        format!("n = {}, {}", one.n_a, one.n_b),
        within,
    ]
}

fn names(text: &mut String, what: &str, names: &[String], most: usize) {
    if names.is_empty() {
        return;
    }
    let _ = writeln!(text, "{what}: {}", names.len());
    for name in names.iter().take(most.min(MOST)) {
        let _ = writeln!(text, "    {}", show(name));
    }
    more(text, names.len(), most.min(MOST));
}

fn more(text: &mut String, of: usize, most: usize) {
    if of > most {
        let _ = writeln!(text, "    and {} more; `--format json` prints them all", of - most);
    }
}
