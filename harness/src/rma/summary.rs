//! `summary.md`: one page for the vendor: which hardware, what failed and how often, what speaks against that, and what
//! was not measured.

use super::certificates::Certificates;
use super::return_case::ReturnCase;
use base::text::{SIMULATED, count};
use model::artefact::{Status, Value, Verdict};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use verdict::accept::certificate::{cell, line};
use verdict::history::hardware_record::{HardwareBlame, Scope, verdicts};
use verdict::history::identifiers::Identity;
use verdict::history::past::SkippedRun;
use verdict::isolate::code::Code;

/// So many rows of a table; the rest is counted.
const MOST: usize = 12;

pub(super) fn markdown(case: &ReturnCase<'_>, certificates: &Certificates) -> String {
    let mut text = String::new();
    // Infallible: writing to a string.
    let _ = page(&mut text, case, certificates);
    text
}

/// What it is, in a few words: `GPU gpu3 of p5-003`.
pub(super) fn title(case: &ReturnCase<'_>) -> String {
    let subject = case.subject;
    match &subject.part {
        Some(part) => format!("{part} of {}", subject.node),
        None => format!("node {}", subject.node),
    }
}

fn page(text: &mut String, case: &ReturnCase<'_>, certificates: &Certificates) -> std::fmt::Result {
    writeln!(text, "# Return case: {}\n", line(&title(case)))?;
    if case.record.seen.iter().any(|one| case.run(one).is_simulated()) {
        writeln!(text, "**{SIMULATED}**\n")?;
    }
    hardware(text, case)?;
    failed(text, case)?;
    contradicts(text, case)?;
    not_measured(text, case)?;
    left_out(text, case)?;
    if !certificates.lines.is_empty() || !certificates.unread.is_empty() {
        writeln!(text, "\n## Acceptance\n")?;
        list(text, certificates.lines.iter().map(|one| line(one)), "further records: `certificates`")?;
        list(
            text,
            certificates.unread.iter().map(|one| format!("not read: {}", line(one))),
            "further records",
        )?;
    }
    writeln!(
        text,
        "\n## Files\n\n`history.csv`: every verdict about it. `runs/RUN/run.json`: verdicts, jobs and hardware of one run; `raw`: \
         what its jobs printed; `commands`, `scripts`: what was run. `certificates`: acceptance records. `manifest.json`: each \
         file with its digest, and what was left out with the reason. Other nodes are `peer-N` unless names were kept; secrets, users, \
         addresses and paths of the site were taken out."
    )
}

fn hardware(text: &mut String, case: &ReturnCase<'_>) -> std::fmt::Result {
    writeln!(text, "| | |\n|---|---|")?;
    let mut row = |what: &str, value: &str| writeln!(text, "| {what} | {} |", cell(value));
    let newest = case.record.seen.last().map(|one| case.run(one));
    row("instance type", newest.map_or("unknown", |run| run.plan().instance.name.as_str()))?;
    let probed = case.record.seen.iter().rev().find_map(|one| Some((one, case.probed(one)?)));
    let Some((sighting, node)) = probed else {
        return row("hardware", "unknown: no run has probed it; it is known by its name alone");
    };
    let fact = |name: &str| match node.facts.get(name) {
        Some(Value::Names(all)) if all.is_empty() => "none".to_owned(),
        Some(Value::Names(all)) => all.join(", "),
        Some(value) => value.to_string(),
        None => {
            let why = node.unknown.get(name).map(|why| format!(": {why}")).unwrap_or_default();
            format!("unknown{why}")
        }
    };
    row("machine (instance id, else chassis serial)", &fact("machine"))?;
    row("board serial", "unknown: a probe does not read it")?;
    let blamed: BTreeSet<&str> = case.record.blames.iter().map(|blame| blame.part.as_str()).collect();
    for (what, name) in [("UUID, serial", "gpu_ids"), ("GUID, PCI address", "nic_ids")] {
        let Some(Value::Names(all)) = node.facts.get(name) else { continue };
        for one in all {
            if let Some((part, numbers)) = one.split_once(' ')
                && sighting.part.is_none()
                && blamed.contains(part)
            {
                row(&format!("{}: {what}", cell(part)), numbers)?;
            }
        }
    }
    let of_part = |name: &str| match (node.facts.get(name), &sighting.part) {
        (Some(Value::Names(all)), Some(part)) => {
            let own = all.iter().find(|row| row.split(' ').next() == Some(part));
            own.cloned()
        }
        (_, None) => Some(fact(name)),
        _ => None,
    };
    if let Some(gpus) = of_part("gpu_ids") {
        row("GPU: UUID, serial", &gpus)?;
    }
    if let Some(nics) = of_part("nic_ids") {
        row("NIC: GUID, PCI address", &nics)?;
    }
    for (what, name) in [
        ("GPU model", "gpu"),
        ("VBIOS", "gpu_vbios"),
        ("NVIDIA driver", "driver"),
        ("NIC firmware", "nic_firmware"),
        ("EFA driver", "efa"),
        ("kernel", "kernel"),
        ("uncorrected ECC errors since boot", "ecc_errors"),
        ("Xid lines", "xid"),
    ] {
        row(what, &fact(name))?;
    }
    row("as read in run", case.run(sighting).id())?;
    let mut places: BTreeMap<(&str, Option<&str>), Vec<&str>> = BTreeMap::new();
    for one in &case.record.seen {
        let place = (one.node.as_str(), one.part.as_deref());
        places.entry(place).or_default().push(&case.run(one).made);
    }
    if places.len() > 1 {
        for ((node, part), made) in places {
            let (first, last) = (made.iter().min(), made.iter().max());
            let part = part.map(|part| format!(" {part}")).unwrap_or_default();
            let of = format!("{node}{part}: {}", span(made.len(), first.copied(), last.copied()));
            row("was in", &of)?;
        }
    }
    Ok(())
}

fn span(runs: usize, first: Option<&str>, last: Option<&str>) -> String {
    let (first, last) = (first.unwrap_or_default(), last.unwrap_or_default());
    match first == last {
        true => format!("{}, {first}", count(runs, "run")),
        false => format!("{}, {first} to {last}", count(runs, "run")),
    }
}

fn failed(text: &mut String, case: &ReturnCase<'_>) -> std::fmt::Result {
    writeln!(text, "\n## What failed\n")?;
    let record = case.record;
    if record.blames.is_empty() {
        return writeln!(text, "No run names it. This is no evidence of a fault.");
    }
    writeln!(
        text,
        "| part | code | named alone | one of several | of runs | first | last | suites | last evidence |\n|---|---|---|---|---|---|---|---|---|"
    )?;
    let mut by_code: BTreeMap<(&str, &str), Vec<&HardwareBlame>> = BTreeMap::new();
    for blame in &record.blames {
        by_code.entry((&blame.part, blame.code)).or_default().push(blame);
    }
    let counted = record.seen.len() - record.uncounted.len();
    for ((part, code), blames) in by_code.iter().take(MOST) {
        let runs = |alone: bool| -> BTreeSet<usize> {
            blames.iter().filter(|blame| blame.alone == alone).map(|blame| blame.run).collect()
        };
        let made = |at: usize| case.past.runs[at].made.as_str();
        let (Some(first), Some(last)) = (blames.first(), blames.last()) else { continue };
        let suites: BTreeSet<String> =
            blames.iter().flat_map(|blame| case.past.runs[blame.run].plan().suites.clone()).collect();
        writeln!(
            text,
            "| {} | {} | {} | {} | {counted} | {} | {} | {} | {} |",
            cell(part),
            cell(code),
            runs(true).len(),
            runs(false).len(),
            made(first.run),
            made(last.run),
            cell(&suites.into_iter().collect::<Vec<_>>().join(", ")),
            cell(&last.evidence)
        )?;
    }
    more(text, by_code.len(), "further codes: `runs/RUN/run.json`")?;
    let codes: BTreeSet<&str> = record.blames.iter().map(|blame| blame.code).collect();
    let known: Vec<&Code> = codes.iter().filter_map(|code| Code::find(code)).collect();
    if !known.is_empty() {
        writeln!(text)?;
    }
    for code in known {
        writeln!(
            text,
            "- {} ({}): {}. Usual cause: {}",
            code.name,
            code.severity.name(),
            line(code.what),
            line(code.cause)
        )?;
    }
    if record.blames.iter().all(|blame| !blame.alone) {
        writeln!(text, "\nNo run names it alone: in each of them another node may be at fault as well.")?;
    }
    limits(text, case)
}

/// One assertion of a part over all runs.
#[derive(Default)]
struct Row<'a> {
    failed: usize,
    passed: usize,
    open: usize,
    worst: Option<&'a Verdict>,
    newest: Option<&'a Verdict>,
}

fn by_assertion<'a>(case: &ReturnCase<'a>) -> BTreeMap<(&'a str, &'a str, String), Row<'a>> {
    let mut rows: BTreeMap<(&str, &str, String), Row<'_>> = BTreeMap::new();
    for sighting in &case.record.seen {
        if case.record.uncounted.iter().any(|(at, _)| *at == sighting.run) {
            continue;
        }
        for judged in &case.run(sighting).cases {
            let own = verdicts(judged, sighting).into_iter().filter(|(scope, _)| *scope == Scope::Own);
            for (_, verdict) in own {
                // The name ends with the node and part, which may have moved.
                let label = verdict.name.rsplit_once('@').map_or(verdict.name.as_str(), |(label, _)| label);
                let label = label.rsplit("::").next().unwrap_or(label);
                let part = verdict.part.as_deref().filter(|_| sighting.part.is_none());
                let label = part.map_or(label.to_owned(), |part| format!("{label} {part}"));
                let row = rows.entry((&judged.suite, &judged.case, label)).or_default();
                row.newest = Some(verdict);
                match verdict.status {
                    Status::Fail | Status::UnexpectedPass => {
                        row.failed += 1;
                        if is_worse(verdict, row.worst) {
                            row.worst = Some(verdict);
                        }
                    }
                    Status::Pass => row.passed += 1,
                    Status::Inconclusive | Status::Error => row.open += 1,
                    Status::Skipped | Status::ExpectedFailure | Status::Unjudged => {}
                }
            }
        }
    }
    rows
}

/// By how far it is beyond its limit.
fn is_worse(verdict: &Verdict, than: Option<&Verdict>) -> bool {
    let beyond = |verdict: &Verdict| {
        let observed = verdict.observed?;
        let below = verdict.lower.map(|lower| lower - observed);
        let above = verdict.upper.map(|upper| observed - upper);
        below.into_iter().chain(above).max_by(f64::total_cmp)
    };
    than.is_none_or(|than| beyond(verdict) > beyond(than))
}

fn limits(text: &mut String, case: &ReturnCase<'_>) -> std::fmt::Result {
    let rows = by_assertion(case);
    let mut red: Vec<_> = rows.iter().filter(|(_, row)| row.failed > 0).collect();
    red.sort_by_key(|(key, row)| (std::cmp::Reverse(row.failed), *key));
    if red.is_empty() {
        return writeln!(
            text,
            "\nNo number of its own was out of bounds: it was named by what its jobs or its probe reported."
        );
    }
    writeln!(
        text,
        "\n| suite, case | what | failed | passed | not decided | worst | limit |\n|---|---|---|---|---|---|---|"
    )?;
    for ((suite, name, label), row) in red.iter().take(MOST) {
        let Some(worst) = row.worst else { continue };
        let value = worst.observed.map_or_else(|| "none".to_owned(), |value| worst.unit.show(value));
        writeln!(
            text,
            "| {}, {} | {} | {} | {} | {} | {value} | {} |",
            cell(suite),
            cell(name),
            cell(label),
            row.failed,
            row.passed,
            row.open,
            limit(worst)
        )?;
    }
    more(text, red.len(), "further assertions: `history.csv`")
}

fn limit(verdict: &Verdict) -> String {
    match (verdict.lower, verdict.upper) {
        (Some(lower), Some(upper)) => format!("{} to {}", verdict.unit.show(lower), verdict.unit.show(upper)),
        (Some(lower), None) => format!("at least {}", verdict.unit.show(lower)),
        (None, Some(upper)) => format!("at most {}", verdict.unit.show(upper)),
        (None, None) => "none stated".to_owned(),
    }
}

fn contradicts(text: &mut String, case: &ReturnCase<'_>) -> std::fmt::Result {
    writeln!(text, "\n## What speaks against a fault\n")?;
    let record = case.record;
    let made = |at: &usize| case.past.runs[*at].made.as_str();
    match record.passed.as_slice() {
        [] => writeln!(text, "No run in which it passed all of a case that blames it.")?,
        passed => {
            let (first, last) = (passed.first().map(made), passed.last().map(made));
            let which = if record.blames.is_empty() {
                "Passed"
            } else {
                "Passed all of a case that blames it elsewhere"
            };
            writeln!(text, "{which}: {}.", span(passed.len(), first, last))?;
        }
    }
    if let Some(last) = record.blames.last() {
        let since = record.passed.iter().filter(|at| **at > last.run).count();
        match since {
            0 => writeln!(text, "It has not passed since it was blamed last.")?,
            n => writeln!(
                text,
                "{} of these after it was blamed last: it may have been repaired, or fail at times.",
                count(n, "run")
            )?,
        }
    }
    match case.red_without_blame() {
        0 => Ok(()),
        n => writeln!(
            text,
            "In {} a verdict about it was red, and nothing separated it from its peers.",
            count(n, "further run")
        ),
    }
}

fn not_measured(text: &mut String, case: &ReturnCase<'_>) -> std::fmt::Result {
    writeln!(text, "\n## What was not measured\n")?;
    let mut lines = vec!["board serial: a probe does not read it".to_owned()];
    let record = case.record;
    let by_name = record.seen.iter().filter(|one| !one.is_probed).count();
    if by_name > 0 {
        let why = match case.subject.identity {
            Identity::Name => {
                "no run has probed it: that all of them are about the same hardware is not shown"
            }
            _ => "not probed; the nearest probes before and after show it",
        };
        lines.push(format!("{} identified by name: {why}", count(by_name, "run")));
    }
    for (at, why) in &record.uncounted {
        lines.push(format!("{}: not counted: {why}", case.past.runs[*at].id()));
    }
    for one in record.seen.iter().filter(|one| !case.run(one).partial.is_empty()) {
        lines.push(format!("{}: incomplete: {}", case.run(one).id(), case.run(one).partial.join("; ")));
    }
    let open: Vec<_> = by_assertion(case).into_iter().filter(|(_, row)| row.open > 0).collect();
    for ((suite, name, label), row) in &open {
        let why = row.newest.and_then(|verdict| verdict.cause.as_deref());
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        lines.push(format!("{suite}, {name}, {label}: not decided in {}{why}", count(row.open, "run")));
    }
    list(text, lines.iter().map(|one| line(one)), "more: `history.csv`")
}

fn left_out(text: &mut String, case: &ReturnCase<'_>) -> std::fmt::Result {
    let (other, passed) = (&case.record.other, &case.past.passed);
    if other.is_empty() && passed.is_empty() {
        return Ok(());
    }
    writeln!(text, "\n## Runs left out\n")?;
    let mut by_reason: BTreeMap<&str, usize> = BTreeMap::new();
    for one in other {
        *by_reason.entry(one.why).or_default() += 1;
    }
    let other = by_reason.iter().map(|(why, runs)| format!("{}: {why}", count(*runs, "run")));
    list(text, other, "further reasons")?;
    let unread = passed.iter().map(|SkippedRun { name, why }| line(&format!("not counted: {name}: {why}")));
    list(text, unread, "further runs that are not counted")
}

fn list(text: &mut String, lines: impl Iterator<Item = String>, rest: &str) -> std::fmt::Result {
    let mut of = 0;
    for (at, line) in lines.enumerate() {
        of = at + 1;
        if at < MOST {
            writeln!(text, "- {line}")?;
        }
    }
    match of > MOST {
        true => writeln!(text, "- and {} {rest}", of - MOST),
        false => Ok(()),
    }
}

fn more(text: &mut String, of: usize, what: &str) -> std::fmt::Result {
    match of > MOST {
        true => writeln!(text, "\nAnd {} {what}.", of - MOST),
        false => Ok(()),
    }
}
