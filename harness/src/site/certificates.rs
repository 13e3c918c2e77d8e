//! Certificates of deliveries: who was accepted, who was not and why, and which of the accepted a later run blames.

use super::page::{LONGEST_NAME, SitePage};
use crate::accept::certificate_files::StoredCertificate;
use base::nodeset;
use base::text::{count, shorten, show};
use model::artefact::acceptance::Acceptance;
use recipes::result_table::escaped;
use std::io::{self, Write};
use verdict::history::past::{RunKind, moment};

const MOST: usize = 50;
/// Rejected nodes of one certificate that have a line.
const MOST_REJECTED: usize = 50;
const MOST_EVIDENCE: usize = 200;

/// Of the runs that it is made of.
pub(super) fn kind(certificate: &StoredCertificate) -> RunKind {
    if certificate.acceptance.simulated { RunKind::Simulated } else { RunKind::Real }
}

pub(super) fn section(page: &SitePage, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<section class=\"card\" id=\"certificates\">\n<h2>Certificates</h2>")?;
    if page.certificates.is_empty() {
        return writeln!(
            out,
            "<p>None: <code>harness accept</code> writes one for new nodes.</p>\n</section>"
        );
    }
    writeln!(
        out,
        "<p class=\"of\">An acceptance stands until a later run blames the node. The newest first.</p>"
    )?;
    let mut all: Vec<&Acceptance> = page.certificates.iter().map(|one| &one.acceptance).collect();
    all.sort_by(|a, b| b.delivery.cmp(&a.delivery));
    for acceptance in all.iter().take(MOST) {
        entry(page, acceptance, out)?;
    }
    if let more @ 1.. = all.len().saturating_sub(MOST) {
        writeln!(out, "<p class=\"drawn\">{}.</p>", count(more, "older certificate"))?;
    }
    writeln!(out, "</section>")
}

fn entry(page: &SitePage, of: &Acceptance, out: &mut dyn Write) -> io::Result<()> {
    let (accepted, rejected, open) = (of.accepted.len(), of.rejected.len(), of.undecided.len());
    writeln!(
        out,
        "<h3>{} <span class=\"of\">{}</span></h3>\n<dl class=\"facts\">",
        escaped(&shorten(&show(&of.nodes), MOST_EVIDENCE)),
        escaped(&shorten(&show(&of.delivery), LONGEST_NAME))
    )?;
    let mut fact = |name: &str, value: String| writeln!(out, "<dt>{name}</dt><dd>{value}</dd>");
    let made = moment(&of.delivery);
    fact("by", {
        let [suite, inventory, instance, vouched] = [&of.suite, &of.inventory, &of.instance, &of.vouched]
            .map(|name| shorten(&show(name), LONGEST_NAME));
        escaped(&format!("suite {suite} on {inventory} ({instance}), compared with {vouched}"))
    })?;
    let nodes = match accepted {
        0 => String::new(),
        _ => format!(": {}", escaped(&nodeset::fold(&of.accepted))),
    };
    fact("accepted", format!("<span class=\"s-pass\">{accepted} of {}</span>{nodes}", of.count))?;
    let blamed = blamed_since(page, of, made.as_deref());
    if !blamed.is_empty() {
        fact("blamed since", blamed.join("<br>"))?;
    }
    let mut lines: Vec<String> = of
        .rejected
        .iter()
        .take(MOST_REJECTED)
        .map(|one| {
            let first = one.culprits.first();
            let why =
                first.map(|one| format!(" {} {}: {}", one.code, one.part, one.evidence)).unwrap_or_default();
            let why = shorten(&show(&why), MOST_EVIDENCE);
            format!("{} at {}:{}", escaped(&one.node), escaped(&one.stage), escaped(&why))
        })
        .collect();
    if let more @ 1.. = rejected.saturating_sub(MOST_REJECTED) {
        lines.push(format!("{more} more"));
    }
    let class = if rejected > 0 { "s-fail" } else { "s-none" };
    fact("rejected", format!("<span class=\"{class}\">{rejected}</span><br>{}", lines.join("<br>")))?;
    let lines: Vec<String> = of
        .undecided_alike()
        .into_iter()
        .take(MOST_REJECTED)
        .map(|(stage, nodes, why)| {
            let why = shorten(&show(why), MOST_EVIDENCE);
            format!("{} at {}: {}", escaped(&nodeset::fold(&nodes)), escaped(stage), escaped(&why))
        })
        .collect();
    let class = if open > 0 { "s-error" } else { "s-none" };
    fact("not decided", format!("<span class=\"{class}\">{open}</span><br>{}", lines.join("<br>")))?;
    if !of.not_checked.is_empty() {
        fact("not checked", count(of.not_checked.len(), "line") + " in the certificate")?;
    }
    if !of.not_measured.is_empty() {
        fact("not measured", count(of.not_measured.len(), "line") + " in the certificate")?;
    }
    writeln!(out, "</dl>")
}

/// The accepted nodes that runs after the delivery blame, each with the first of these runs.
fn blamed_since(page: &SitePage, of: &Acceptance, made: Option<&str>) -> Vec<String> {
    let Some(made) = made else {
        return vec!["unknown: the name of the delivery does not begin with its time".to_owned()];
    };
    let mut lines = Vec::new();
    for suspect in &page.blamed.suspects {
        let part = &suspect.component;
        let is_accepted = of.accepted.contains(&part.node)
            && part.inventory == of.inventory
            && part.simulated == of.simulated;
        let later = suspect
            .blamed()
            .into_iter()
            .find(|run| page.past.runs.get(*run).is_some_and(|run| run.made.as_str() > made));
        if let (true, Some(run)) = (is_accepted, later) {
            let when = page.link(run, &page.past.runs[run].made);
            let now = if suspect.is_open() { "open" } else { "cleared since" };
            lines.push(format!("{} {} in {when}, {now}", escaped(&part.node), escaped(&part.part)));
        }
    }
    lines.truncate(MOST_REJECTED);
    lines
}
