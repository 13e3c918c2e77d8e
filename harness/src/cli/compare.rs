//! `harness compare`: what is worse in one stored run than in another, for a person or a program.

use super::columns::columns;
use super::home;
use crate::error::Error;
use crate::report::culprit_line::{MOST_LETTERS, culprit_line};
use crate::session::stored;
use base::nodeset;
use base::text::{SIMULATED, count, shorten, show};
use clap::Args;
use model::artefact::Culprit;
use std::fmt::Write;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use store::{Home, Stored};
use verdict::compare::{Changed, Comparison, Effect, NumberGroup, PartChanged, Side, VerdictGroup, compare};
use verdict::history::past::{self, Run};

const CODES: &str = "\
Exit codes: 0 nothing is worse by more than its variation; 1 something is; 2 wrong usage; 3 inconclusive: the runs cannot be \
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
    /// Show every verdict that changed and every number, not groups of them
    #[arg(short, long)]
    verbose: bool,
    /// How it is printed, for people or for programs
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json"])]
    format: String,
}

pub(super) fn run(args: &CompareArgs) -> Result<i32, Error> {
    let home = home()?;
    let b = args.b.as_deref().ok_or_else(|| Error::Usage(one_run(&home, &args.a)))?;
    let read = read(&home, &args.a).and_then(|a| Ok((a, read(&home, b)?)));
    let ((a, _held_a), (b, _held_b)) = read.map_err(Error::Usage)?;
    let comparison = compare(&a, &b).map_err(Error::Usage)?;
    let text = match args.format.as_str() {
        "json" => serde_json::to_string_pretty(&comparison).unwrap_or_default() + "\n",
        _ => text(&Compared { a: &a, b: &b, comparison: &comparison }, args.verbose),
    };
    crate::standard_output::print(text.as_bytes());
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
        _ => "two runs are compared, and there is one here at the most; make another with `harness run --suite NAME`".to_owned(),
    }
}

/// The run, and what holds its folder while its numbers are read.
fn read(home: &Home, word: &str) -> Result<(Run, Stored), String> {
    if is_other_file(Path::new(word)) {
        return Err(format!(
            "`{}` is neither a run nor a bundle; two profiler reports: `harness recipe diff --input A B`; two logs of \
             trainings: `harness logs steps A B`",
            word.escape_debug()
        ));
    }
    let stored = stored::open_results(home, word)?;
    let run = past::run(stored.folder()).map_err(|why| format!("`{word}`: {why}"))?;
    Ok((run, stored))
}

/// Whether it is a file that does not begin as bundles do, with gzip's two bytes.
fn is_other_file(path: &Path) -> bool {
    let mut begin = [0_u8; 2];
    path.is_file()
        && File::open(path).and_then(|mut file| file.read_exact(&mut begin)).is_ok()
        && begin != [0x1f, 0x8b]
}

/// So many of a kind are shown, unless all are requested.
const MOST: usize = 20;
/// Groups of verdicts, and groups of numbers, that are shown unless all are requested.
const MOST_GROUPS: usize = 8;
/// Culprits, and parts that fell behind, likewise.
const MOST_CULPRITS: usize = 4;
/// Names of what one run alone has, likewise.
const MOST_NAMES: usize = 2;

/// Both runs, and what came of comparing them.
struct Compared<'a> {
    a: &'a Run,
    b: &'a Run,
    comparison: &'a Comparison,
}

fn text(of: &Compared<'_>, verbose: bool) -> String {
    let comparison = of.comparison;
    let mut text = String::new();
    heading(&mut text, comparison, if verbose { usize::MAX } else { MOST_GROUPS });
    culprits(&mut text, of, if verbose { usize::MAX } else { MOST_CULPRITS });
    let (verdicts, metrics) = (&comparison.verdicts, &comparison.metrics);
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(text, "verdicts: {} changed, {} the same", verdicts.changed.len(), verdicts.same);
    if verbose {
        for one in &verdicts.changed {
            let _ =
                writeln!(text, "  {}: {} -> {}: {}", one.turned.word(), one.from, one.to, show(&one.message));
        }
    } else {
        verdict_groups(&mut text, &comparison.verdict_groups);
    }
    let most = if verbose { MOST } else { MOST_NAMES };
    names(&mut text, "  not judged in either", &verdicts.unknown_in_both, most);
    let beyond = metrics.all.iter().filter(|one| one.beyond.is_change()).count();
    let _ = writeln!(
        text,
        "numbers, each the median over nodes and parts: {beyond} of {} differ by more than their variation",
        metrics.compared
    );
    if verbose {
        let rows: Vec<Vec<String>> = metrics.all.iter().map(row).collect();
        text.push_str(&columns(&rows));
    } else {
        number_groups(&mut text, &comparison.number_groups);
    }
    parts(&mut text, &metrics.parts, if verbose { usize::MAX } else { MOST_CULPRITS });
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
    let outcome = format!("exit {}: {}", comparison.outcome.exit_code(), comparison.outcome.text());
    let because: Vec<String> = comparison.because.iter().map(|why| show(why)).collect();
    let most = if verbose { usize::MAX } else { MOST_LETTERS };
    let _ = writeln!(text, "{}", last_line(&outcome, &because, most));
    text
}

/// As many of the reasons as fit, the first at least.
fn last_line(outcome: &str, because: &[String], most: usize) -> String {
    let line = |shown: usize| {
        let reasons = because.iter().take(shown).map(String::as_str).collect::<Vec<_>>().join("; ");
        match because.len() - shown {
            0 => format!("{outcome}: {reasons}"),
            left => format!("{outcome}: {reasons}; {left} more: `--verbose`"),
        }
    };
    let fits = (1..=because.len()).rev().map(line).find(|line| line.chars().count() <= most);
    fits.unwrap_or_else(|| line(because.len().min(1)))
}

/// The parts that either run names, each with what became of the jobs with its node.
fn culprits(text: &mut String, of: &Compared<'_>, most: usize) {
    let all = &of.comparison.culprits;
    for (when, list, run) in [("new ", &all.new, of.b), ("", &all.same, of.b), ("gone ", &all.gone, of.a)] {
        for named in list.iter().take(most) {
            let plan = &run.stored.plan;
            let letters = if most == usize::MAX { most } else { MOST_LETTERS - when.len() };
            let line = culprit_line(&named.culprit, plan, &plan.run_id, letters);
            // Of what is gone there is nothing left to do.
            let line =
                if when == "gone " { line.split("; next: ").next().unwrap_or_default() } else { &line };
            let _ = writeln!(text, "{when}{line}");
            if let Some(effect) = named.effects.first() {
                let _ = writeln!(text, "  {}", effect_line(effect, &named.culprit));
            }
        }
        more(text, list.len(), most);
    }
}

/// `nccl.busbw -53 % on every job with p5-002 (3); others -0.1 % (2)`.
fn effect_line(effect: &Effect, culprit: &Culprit) -> String {
    let nodes = match culprit {
        Culprit::Culprit { node, .. } => format!(" with {}", show(node)),
        Culprit::Suspects { nodes, .. } => format!(" with {}", show(&nodeset::fold(nodes))),
        Culprit::Fleet { .. } => String::new(),
    };
    let jobs = match effect {
        Effect { changed: 0, jobs, .. } => {
            format!("{}{nodes}, no more than healthy runs", count(*jobs, "job"))
        }
        Effect { changed, jobs, .. } if changed == jobs => format!("every job{nodes} ({jobs})"),
        Effect { changed, all_that_span_nodes: true, .. } => {
            format!("every multi-node job{nodes} ({changed})")
        }
        Effect { changed, jobs, .. } => format!("{changed} of {}{nodes}", count(*jobs, "job")),
    };
    let others = effect.others.map(|others| format!("; others {} ({})", percent(others), effect.other_jobs));
    let (metric, change) = (show(&effect.metric), percent(effect.change));
    format!("{metric} {change} on {jobs}{}", others.unwrap_or_default())
}

fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    if percent.abs() < 10.0 { format!("{percent:+.1} %") } else { format!("{percent:+.0} %") }
}

fn verdict_groups(text: &mut String, groups: &[VerdictGroup]) {
    for group in groups.iter().take(MOST_GROUPS) {
        let what = show(group.cause.as_deref().unwrap_or(&group.metric));
        let cases = count(group.cases, "case");
        let head =
            format!("  {}: {} {} in {cases}: {what}: ", group.turned.word(), group.count, group.change);
        let room = MOST_LETTERS.saturating_sub(head.chars().count());
        let message = show(&group.message);
        let message = message.strip_prefix(&format!("{what} ")).unwrap_or(&message);
        let _ = writeln!(text, "{head}{}", shorten(message, room));
    }
    more_groups(text, groups.iter().skip(MOST_GROUPS).map(|group| group.count), "verdicts");
}

fn number_groups(text: &mut String, groups: &[NumberGroup]) {
    let row = |group: &NumberGroup| {
        vec![
            format!("  {}", group.beyond.word()),
            show(&group.metric),
            format!("{} of {}", group.count, group.of),
            group.change.map_or_else(|| "-".to_owned(), percent),
            format!("{} -> {}", group.unit.show(group.a), group.unit.show(group.b)),
        ]
    };
    let shown: Vec<&NumberGroup> = groups.iter().take(MOST_GROUPS).collect();
    let rows: Vec<Vec<String>> = shown.iter().map(|group| row(group)).collect();
    let table = columns(&rows);
    let width = table.lines().map(|line| line.trim_end().chars().count()).max().unwrap_or_default();
    for (line, group) in table.lines().zip(shown) {
        let place = show(&format!("{} {}", group.case, group.worst));
        let place = shorten(&place, MOST_LETTERS.saturating_sub(width + 2));
        let _ = writeln!(text, "{:width$}  {place}", line.trim_end());
    }
    more_groups(text, groups.iter().skip(MOST_GROUPS).map(|group| group.count), "numbers");
}

/// Each part that fell behind its peers, with the worst of its numbers; all of them where all are requested.
fn parts(text: &mut String, parts: &[PartChanged], most: usize) {
    let mut by_part: Vec<(&PartChanged, usize)> = Vec::new();
    for one in parts {
        match by_part.iter_mut().find(|(first, _)| most != usize::MAX && first.part == one.part) {
            Some((_, more)) => *more += 1,
            None => by_part.push((one, 0)),
        }
    }
    for (one, others) in by_part.iter().take(most) {
        let word = if one.is_known { "worse" } else { "worse?" };
        let others = if *others > 0 { format!("; {others} more of its numbers") } else { String::new() };
        let line = format!(
            "  {word}: {} {}: {} -> {} ({}), its {} {}: {} {}{others}",
            one.part,
            one.metric,
            one.unit.show(one.a),
            one.unit.show(one.b),
            percent(one.change),
            count(one.peers, "peer"),
            percent(one.peers_change),
            one.case,
            one.of_case,
        );
        let _ = writeln!(text, "{}", show(&line));
    }
    more(text, by_part.len(), most);
}

fn more_groups(text: &mut String, counts: impl ExactSizeIterator<Item = usize>, what: &str) {
    let groups = counts.len();
    if groups > 0 {
        let sum: usize = counts.sum();
        let _ =
            writeln!(text, "    and {sum} more {what} in {}; `-v` prints them all", count(groups, "group"));
    }
}

/// First whether they can be compared.
fn heading(text: &mut String, comparison: &Comparison, most: usize) {
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
            for one in those.iter().take(most) {
                let _ = writeln!(text, "  {}", show(&one.to_string()));
            }
            more(text, those.len(), most);
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
    for name in names.iter().take(most) {
        let _ = writeln!(text, "    {}", show(name));
    }
    more(text, names.len(), most);
}

fn more(text: &mut String, of: usize, most: usize) {
    if of > most {
        let _ = writeln!(text, "    and {} more; `--format json` prints them all", of - most);
    }
}

#[cfg(test)]
mod tests {
    use super::last_line;

    #[test]
    fn the_last_line_has_the_reasons_that_fit_and_counts_the_others() {
        let because = [
            "1 number is not counted: contradicted, not finite, or of other parts",
            "2 assertions are only in the first run",
            "3 numbers are only in the first run",
        ]
        .map(str::to_owned);
        let outcome = "exit 3: inconclusive";
        assert_eq!(last_line(outcome, &because[1..2], 80), format!("{outcome}: {}", because[1]));
        assert_eq!(
            last_line(outcome, &because, 120),
            format!("{outcome}: {}; 2 more: `--verbose`", because[0])
        );
        assert_eq!(last_line(outcome, &because, usize::MAX), format!("{outcome}: {}", because.join("; ")));
        assert_eq!(last_line(outcome, &because[..1], 20), format!("{outcome}: {}", because[0]));
    }
}
