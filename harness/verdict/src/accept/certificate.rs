//! The certificate as Markdown, for the buyer and the supplier of a delivery. It shows what `acceptance.json` holds, and
//! computes nothing.

use super::soak::moment;
use base::nodeset;
use base::text::show;
use model::artefact::acceptance::{Acceptance, Limit, SoakRecord};
use std::fmt::Write;

/// The text of `acceptance.md`.
pub fn markdown(of: &Acceptance) -> String {
    let mut text = String::new();
    // Infallible: writing to a string.
    let _ = certificate(&mut text, of);
    text
}

fn certificate(text: &mut String, of: &Acceptance) -> std::fmt::Result {
    writeln!(text, "# Acceptance of {}\n", of.nodes)?;
    if let Some(note) = &of.note {
        writeln!(text, "**{note}**\n")?;
    }
    let (accepted, rejected, undecided) = (of.accepted.len(), of.rejected.len(), of.undecided.len());
    writeln!(text, "| | |\n|---|---|")?;
    let mut row = |what: &str, value: &str| writeln!(text, "| {what} | {} |", cell(value));
    row("nodes", &format!("{}: {}", of.count, of.nodes))?;
    row("accepted", &sum(accepted, &of.accepted))?;
    row("rejected", &sum(rejected, &names(of.rejected.iter().map(|one| &one.node))))?;
    row("not decided", &sum(undecided, &names(of.undecided.iter().map(|one| &one.node))))?;
    if !of.not_checked.is_empty() {
        row("not checked", &of.not_checked.join("; "))?;
    }
    row("compared with", &of.vouched)?;
    row("suite", &format!("{}, inventory {}, instance {}", of.suite, of.inventory, of.instance))?;
    if let Some(soak) = &of.soak {
        row("soak", &soaked(soak))?;
    }
    row("node-hours", &hours(of))?;
    row("from, to", &format!("{}, {}", of.began, of.ended))?;
    row("delivery", &format!("{}, seed {}, harness {}", of.delivery, of.seed, of.harness))?;
    writeln!(
        text,
        "\nA node is accepted only if every assertion of every stage passed for it; numbers that have nothing to \
         compare with are counted as unjudged. A case that only narrowly missed a baseline is repeated, and passes by \
         two of three runs. Other inconclusive results leave it not decided, which is no acceptance. `sha256sum -c \
         SHA256SUMS` in this folder shows that no file was changed; each folder below `runs` is a complete run, which `harness replay --run PATH --from judge` judges again."
    )?;
    rejected_nodes(text, of)?;
    open_nodes(text, of)?;
    stages(text, of)?;
    judged_by(text, of)?;
    limits(text, &of.limits)?;
    writeln!(text, "\n## Software and hardware\n")?;
    if of.stack.is_empty() {
        writeln!(text, "Unknown.")?;
    } else {
        writeln!(text, "| part | what | nodes |\n|---|---|---|")?;
    }
    for part in &of.stack {
        writeln!(text, "| {} | {} | {} |", cell(&part.part), cell(&part.value), cell(&part.nodes))?;
    }
    hardware(text, of)?;
    if !of.not_checked.is_empty() {
        writeln!(text, "\n## What was not checked\n")?;
        writeln!(
            text,
            "These cases were skipped on nodes that do not have the program: nothing is known of what they test.\n"
        )?;
    }
    for what in &of.not_checked {
        writeln!(text, "- {}", line(what))?;
    }
    writeln!(text, "\n## What was not measured\n")?;
    for what in &of.not_measured {
        writeln!(text, "- {}", line(what))?;
    }
    if of.not_measured.is_empty() {
        writeln!(text, "Nothing that the suite asks for.")?;
    }
    Ok(())
}

/// How long, in how many windows, and judged by what.
fn soaked(soak: &SoakRecord) -> String {
    let length = |seconds: u64| moment(seconds as f64);
    let completed = if soak.completed.is_empty() { "no node" } else { &soak.completed };
    format!(
        "{} on each node in {} windows of {}; {} judged, each when it ended, by the limits of the suite; passed to the end: \
         {completed}; slow growth is named from {} windows on, by chance in at most {:.0} % of soaks",
        length(soak.planned_s),
        soak.windows,
        length(soak.window_s),
        soak.judged,
        soak.fewest_for_growth,
        soak.false_alarm * 100.0
    )
}

/// The parts that were accepted or not, whatever their nodes are called.
fn hardware(text: &mut String, of: &Acceptance) -> std::fmt::Result {
    if of.hardware.is_empty() {
        return Ok(());
    }
    writeln!(
        text,
        "\n| node | machine | GPUs: UUID, serial number | NICs: GUID, PCI address |\n|---|---|---|---|"
    )?;
    for one in &of.hardware {
        let machine = one.machine.as_deref().unwrap_or("unknown");
        let list = |all: &[String]| if all.is_empty() { "unknown".to_owned() } else { all.join(", ") };
        let (gpus, nics) = (list(&one.gpus), list(&one.nics));
        writeln!(text, "| {} | {} | {} | {} |", one.node, cell(machine), cell(&gpus), cell(&nics))?;
    }
    Ok(())
}

fn rejected_nodes(text: &mut String, of: &Acceptance) -> std::fmt::Result {
    writeln!(text, "\n## Rejected\n")?;
    if of.rejected.is_empty() {
        return writeln!(text, "None.");
    }
    writeln!(text, "| node | stage | code | do | part | evidence | run |\n|---|---|---|---|---|---|---|")?;
    for one in &of.rejected {
        for culprit in &one.culprits {
            writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {} |",
                one.node,
                one.stage,
                culprit.code,
                in_certificate(&culprit.severity),
                cell(&culprit.part),
                cell(&culprit.evidence),
                one.run.as_deref().unwrap_or("probe.json")
            )?;
        }
    }
    writeln!(text, "\n`harness explain CODE` prints the cause and the next step of each.")
}

/// What is to be done: a vendor reads `watch` as to do nothing.
fn in_certificate(severity: &str) -> &str {
    if severity == "watch" { "look into" } else { severity }
}

fn open_nodes(text: &mut String, of: &Acceptance) -> std::fmt::Result {
    writeln!(text, "\n## Not decided\n")?;
    if of.undecided.is_empty() {
        writeln!(text, "None.")?;
    } else {
        writeln!(text, "| nodes | stage | why |\n|---|---|---|")?;
    }
    for (stage, nodes, why) in of.undecided_alike() {
        writeln!(text, "| {} | {stage} | {} |", nodeset::fold(&nodes), cell(why))?;
    }
    if !of.withdrawn.is_empty() {
        writeln!(text, "\n## Partners with faults\n\n| node | stage | why |\n|---|---|---|")?;
    }
    for one in &of.withdrawn {
        writeln!(text, "| {} | {} | {} |", one.node, one.stage, cell(&one.why))?;
    }
    Ok(())
}

fn stages(text: &mut String, of: &Acceptance) -> std::fmt::Result {
    writeln!(text, "\n## Stages\n\n| stage | entered | passed | runs | node-hours |\n|---|---|---|---|---|")?;
    for stage in &of.stages {
        writeln!(
            text,
            "| {} | {} | {} | {} | {:.2} |",
            stage.name,
            none(&stage.entered),
            none(&stage.passed),
            stage.runs.len(),
            stage.node_hours
        )?;
    }
    writeln!(
        text,
        "\n| run | what for | nodes | jobs | node-hours, planned | seconds, planned |\n|---|---|---|---|---|---|"
    )?;
    for run in of.stages.iter().flat_map(|stage| &stage.runs) {
        writeln!(
            text,
            "| {} | {} | {} | {} | {:.2}, {:.2} | {:.0}, {} |",
            run.run,
            cell(&run.about),
            run.nodes,
            run.jobs,
            run.node_hours,
            run.planned_node_hours,
            run.seconds,
            run.planned_s
        )?;
    }
    Ok(())
}

fn judged_by(text: &mut String, of: &Acceptance) -> std::fmt::Result {
    if of.judged_by.is_empty() {
        return Ok(());
    }
    writeln!(text, "\n## What each node was judged by\n")?;
    writeln!(
        text,
        "| nodes | accepted baseline | peers, at most | published figure | published floor | stated limit | unjudged \
         |\n|---|---|---|---|---|---|---|"
    )?;
    for one in &of.judged_by {
        writeln!(
            text,
            "| {} | {} | {}, {} | {} | {} | {} | {} |",
            one.nodes,
            one.accepted_baseline,
            one.peers,
            one.most_peers,
            one.published,
            one.floor,
            one.limit,
            one.unjudged
        )?;
    }
    writeln!(text, "\nCounts of numbers. Unjudged numbers had no effect.")
}

fn limits(text: &mut String, limits: &[Limit]) -> std::fmt::Result {
    writeln!(text, "\n## Limits and measured values\n")?;
    writeln!(
        text,
        "| stage | case | what | limit | state | n, spread | source | measured: n; least, median, most; spread | passed, \
         failed, open |\n|---|---|---|---|---|---|---|---|---|"
    )?;
    for of in limits {
        let share = |share: f64| format!("{:.1} %", share * 100.0);
        let made_of = match (of.n, of.spread) {
            (Some(n), Some(spread)) => format!("{n}, {}", share(spread)),
            (Some(n), None) => n.to_string(),
            (None, _) => String::new(),
        };
        let show = |value: Option<f64>| value.map_or_else(|| "none".to_owned(), |value| of.unit.show(value));
        let seen = &of.observed;
        let measured = match seen.n {
            0 => "nothing".to_owned(),
            n => format!(
                "{n}; {}, {}, {}; {}",
                show(seen.least),
                show(seen.median),
                show(seen.most),
                seen.spread.map(share).unwrap_or_default()
            ),
        };
        let source = match of.fingerprint.is_empty() {
            true => of.source.clone(),
            false => format!("{} ({})", of.source, of.fingerprint),
        };
        writeln!(
            text,
            "| {} | {} | {} | {} | {} | {made_of} | {} | {measured} | {}, {}, {} |",
            of.stage,
            cell(&of.case),
            cell(&of.what),
            cell(&of.limit),
            of.state,
            cell(&source),
            of.passed,
            of.failed,
            of.open
        )?;
    }
    Ok(())
}

fn hours(of: &Acceptance) -> String {
    match of.budget_node_hours {
        Some(budget) => format!("{:.2} of a budget of {budget}", of.node_hours),
        None => format!("{:.2}", of.node_hours),
    }
}

fn names<'a>(nodes: impl Iterator<Item = &'a String>) -> Vec<String> {
    nodes.cloned().collect()
}

fn sum(n: usize, nodes: &[String]) -> String {
    if n == 0 { "0".to_owned() } else { format!("{n}: {}", nodeset::fold(nodes)) }
}

fn none(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}

/// One line, with the separators of table cells escaped.
pub fn cell(text: &str) -> String {
    line(text).replace('|', "\\|")
}

/// One line of text in which nothing is markup: some of it was printed by nodes that are not trusted yet.
pub fn line(text: &str) -> String {
    let line = show(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    let line = line.replace('\\', r"\\").replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    // What makes a link of brackets: ranges of nodes have brackets too, and stay readable.
    line.replace("](", r"]\(").replace("][", r"]\[").replace("]:", r"]\:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_node_prints_is_text_and_neither_markup_nor_terminal_escape() {
        for (raw, shown) in [
            ("\u{1b}[2J\u{1b}]0;owned\u{7}", "\\\\x1b[2J\\\\x1b]0;owned\\\\x07"),
            ("<img src=x onerror=y>", "&lt;img src=x onerror=y&gt;"),
            ("[a](http://e)", r"[a]\(http://e)"),
            ("[a]: http://e", r"[a]\: http://e"),
            (r"a \| b | c", r"a \\\| b \| c"),
            ("two\n  lines", "two lines"),
            ("p5-001 rdmap79s0: 4.8 GB/s", "p5-001 rdmap79s0: 4.8 GB/s"),
        ] {
            assert_eq!(cell(raw), shown);
        }
    }
}
