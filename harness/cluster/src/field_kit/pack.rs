//! The bundle of a field kit: findings and what they were read from, without secrets and without names of the site. What
//! would leave a name or a secret in is not written.

use super::evidence::{Evidence, Section};
use super::{Finding, NodeEvidence};
use base::redact::Redactor;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use std::path::Path;
use tar::{Builder, Header};
use verdict::accept::pseudonyms::{PUBLIC_PATHS, Pseudonyms};
use verdict::accept::site_names;

const FORMAT: u32 = 1;
const FOLDER: &str = "field-kit";

const README: &str = "What `harness field-kit` saw on a cluster: findings.json says of each assumption whether it holds, `cluster` holds what\n\
commands of Slurm printed, `nodes` what single nodes did, and probe.json what the probe reported. Names of nodes, users, hosts,\n\
addresses, and paths of the site were replaced, secrets taken out. Look at it before you send it.\n";

#[derive(Serialize)]
struct Report<'a> {
    format: u32,
    harness: &'a str,
    /// No real hardware reported any of this.
    simulated: bool,
    at: &'a str,
    instance: &'a str,
    reach: &'a str,
    container: bool,
    nodes: usize,
    findings: &'a [Finding],
}

/// What was written.
#[derive(Debug, PartialEq, Eq)]
pub struct Packed {
    /// How many files the bundle holds.
    pub files: usize,
}

/// Writes the bundle to `out`; nothing where a file would hold a secret or a name of the site.
pub fn pack(
    evidence: &Evidence<'_>,
    findings: &[Finding],
    at: &str,
    redactor: &Redactor,
    out: &Path,
) -> Result<Packed, String> {
    let mut names = site_names::pseudonyms_for(evidence.inventory);
    names.keep(&PUBLIC_PATHS);
    for partition in partitions(evidence) {
        site_names::add(&mut names, evidence.inventory, "partition-1", partition);
    }
    let mut files = Vec::new();
    for (name, text) in texts(evidence, findings, at)? {
        let name = names.text(&name);
        let text = names.text(&redactor.text(&text));
        if let Some(left) = left_in(&names, redactor, &text).or_else(|| left_in(&names, redactor, &name)) {
            return Err(format!("nothing is packed: `{name}` would hold {left}"));
        }
        files.push((name, text));
    }
    store::write_private_output_by(out, &mut |file| {
        let mut builder = Builder::new(GzEncoder::new(file, Compression::default()));
        for (name, text) in &files {
            let mut header = Header::new_gnu();
            header.set_size(text.len() as u64);
            header.set_mode(0o600);
            builder.append_data(&mut header, Path::new(FOLDER).join(name), text.as_bytes())?;
        }
        builder.into_inner()?.finish().map(|_| ())
    })
    .map_err(|error| error.to_string())?;
    Ok(Packed { files: files.len() })
}

fn left_in(names: &Pseudonyms, redactor: &Redactor, text: &str) -> Option<String> {
    let name = names.first_left(text).map(|name| format!("a name of the site: `{name}`"));
    name.or_else(|| {
        redactor.first(text.as_bytes()).map(|(line, what)| format!("a secret in line {line}: `{what}`"))
    })
}

fn partitions<'e>(evidence: &'e Evidence<'_>) -> Vec<&'e str> {
    let rows = |name: &str, at: usize| {
        let section = evidence.here.get(name).and_then(|section| section.as_ref().ok());
        section
            .into_iter()
            .flat_map(move |section| section.names().filter_map(move |row| row.split('|').nth(at)))
    };
    rows("nodes", 2).chain(rows("partitions", 0)).map(|name| name.trim_end_matches('*')).collect()
}

fn texts(evidence: &Evidence<'_>, findings: &[Finding], at: &str) -> Result<Vec<(String, String)>, String> {
    let inventory = evidence.inventory;
    let simulated = inventory.is_simulated() || evidence.probe.as_ref().is_some_and(|probe| probe.simulated);
    let report = Report {
        format: FORMAT,
        harness: env!("CARGO_PKG_VERSION"),
        simulated,
        at,
        instance: &inventory.instance.name,
        reach: inventory.reach.launcher().name(),
        container: inventory.container.is_some(),
        nodes: evidence.nodes.len(),
        findings,
    };
    let mark = if simulated { "SIMULATED: no real hardware reported any of this.\n" } else { "" };
    let mut texts = vec![
        ("README.txt".to_owned(), format!("{mark}{README}")),
        ("findings.json".to_owned(), json(&report)?),
    ];
    if let Some(probe) = &evidence.probe {
        texts.push(("probe.json".to_owned(), json(probe)?));
    }
    for (name, section) in &evidence.here {
        let text = match section {
            Ok(section) => render_section(section),
            Err(why) => format!("# {why}\n"),
        };
        texts.push((format!("cluster/{name}.txt"), text));
    }
    for NodeEvidence { node, sections } in &evidence.nodes {
        match sections {
            Ok(sections) => texts.extend(
                sections
                    .iter()
                    .map(|(name, section)| (format!("nodes/{node}/{name}.txt"), render_section(section))),
            ),
            Err(why) => texts.push((format!("nodes/{node}/error.txt"), format!("# {why}\n"))),
        }
    }
    Ok(texts)
}

fn json<T: Serialize>(value: &T) -> Result<String, String> {
    serde_json::to_string_pretty(value).map(|text| text + "\n").map_err(|error| error.to_string())
}

fn render_section(section: &Section) -> String {
    let status = section.status.map_or_else(|| "absent".to_owned(), |status| format!("exit status {status}"));
    let lines: String = section.lines.iter().map(|line| format!("{line}\n")).collect();
    format!("# {status}\n{lines}")
}
