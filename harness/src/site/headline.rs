//! The heading of a site: the worst of the newest run of each suite and of the suspects that no run has cleared. A newest
//! run that passed says nothing of another suite's.

use super::page::{LONGEST_NAME, SitePage};
use super::results::{RunResult, Tone};
use super::runs::newest_of_each;
use base::text::{count, shorten, show};
use verdict::history::past::RunKind;
use verdict::history::suspects::Suspect;

/// Suites that are named one by one.
const MOST_SUITES: usize = 2;

pub(super) fn headline(page: &SitePage) -> RunResult {
    let newest = newest_of_each(page);
    let Some((last, newest_result)) = newest.first().and_then(|at| Some((*at, page.results.get(*at)?)))
    else {
        return RunResult { tone: Tone::Amber, line: "No run yet".to_owned() };
    };
    if page.kind == RunKind::Canary {
        return newest_result.clone();
    }
    let is_red = newest_result.tone != Tone::Green;
    let mut words: Vec<String> = is_red.then(|| newest_result.line.clone()).into_iter().collect();
    let mut tone = newest_result.tone;
    // A red newest run has its own suspects in its line.
    let is_elsewhere =
        |suspect: &&Suspect| suspect.is_open() && !(is_red && suspect.blamed().last() == Some(&last));
    let open: Vec<&Suspect> = page.blamed.suspects.iter().filter(is_elsewhere).collect();
    if let Some(latest) = open.iter().max_by_key(|suspect| suspect.blamed().last().copied()) {
        tone = Tone::Red;
        let more = if is_red { "other " } else { "" };
        let the_last = if open.len() > 1 { "the last " } else { "" };
        words.push(format!(
            "{}: {the_last}{}",
            count(open.len(), &format!("{more}open suspect")),
            name(latest)
        ));
    }
    let others = newest.iter().skip(1).filter_map(|at| Some((*at, page.results.get(*at)?)));
    let others: Vec<(usize, &RunResult)> = others.filter(|(_, result)| result.tone != Tone::Green).collect();
    for (at, result) in others.iter().take(MOST_SUITES) {
        let suites = page.past.runs.get(*at).map(|run| run.plan().suites.join(", ")).unwrap_or_default();
        let line = shorten(&result.line, LONGEST_NAME);
        words.push(format!("newest run of {}: {line}", shorten(&show(&suites), LONGEST_NAME)));
    }
    if let more @ 1.. = others.len().saturating_sub(MOST_SUITES) {
        words.push(format!("{} not green", count(more, "more suite")));
    }
    if tone != Tone::Red
        && let Some((_, worst)) = others.iter().max_by_key(|(_, result)| result.tone == Tone::Red)
    {
        tone = worst.tone;
    }
    match words.is_empty() {
        true => newest_result.clone(),
        false => RunResult { tone, line: words.join("; ") },
    }
}

/// `p5-002 rdmap113s0 (HRN-NIC-SLOW)`.
fn name(suspect: &Suspect) -> String {
    let [node, part] =
        [&suspect.component.node, &suspect.component.part].map(|name| shorten(&show(name), LONGEST_NAME));
    match suspect.codes.iter().find(|code| **code != "-") {
        Some(code) => format!("{node} {part} ({code})"),
        None => format!("{node} {part}"),
    }
}
