//! What the run was made with: versions of the software, the files that were read, settings, and the scripts that ran.

use super::Context;
use base::text::{cap, command_line, show, show_lines};
use recipes::result_table::escaped;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

/// Of one script or argument list.
const MOST_SCRIPT_BYTES: usize = 16 * 1024;
/// Of all scripts together.
const MOST_BYTES: usize = 400 * 1024;

pub(super) fn section(context: &Context, out: &mut dyn Write) -> io::Result<()> {
    let plan = context.report.plan;
    writeln!(out, "<section class=\"card\" id=\"environment\">\n<h2>Environment</h2>\n<dl class=\"facts\">")?;
    let mut fact = |name: &str, value: String| {
        writeln!(out, "<dt>{}</dt><dd>{}</dd>", escaped(&show(name)), escaped(&show(&value)))
    };
    fact("harness", plan.harness.clone())?;
    fact("inventory", format!("{} ({}, {})", plan.inventory, plan.instance.name, plan.launcher))?;
    if let Some(parent) = &plan.parent {
        fact("made from run", parent.clone())?;
    }
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, seen) in context.report.cases.iter().flat_map(|case| &case.versions) {
        versions.entry(name).or_default().extend(seen.iter().map(String::as_str));
    }
    for (name, seen) in versions {
        let differ =
            if seen.len() > 1 { format!(" ({} versions in one run)", seen.len()) } else { String::new() };
        fact(name, format!("{}{differ}", seen.into_iter().collect::<Vec<_>>().join(", ")))?;
    }
    for (name, value) in &plan.settings {
        fact(&format!("--set {name}"), value.clone())?;
    }
    if !plan.sim_faults.is_empty() {
        fact("simulated faults", plan.sim_faults.join(", "))?;
    }
    if plan.simulated {
        fact("seed", plan.seed.to_string())?;
    }
    writeln!(out, "</dl>")?;
    writeln!(out, "<details>\n<summary>Files that were read</summary>\n<ul>")?;
    for source in &plan.sources {
        let digest: String = source.sha256.chars().take(16).collect();
        writeln!(
            out,
            "<li><code>{}</code> sha256 <code>{}</code></li>",
            escaped(&show(&source.file)),
            escaped(&show(&digest))
        )?;
    }
    writeln!(out, "</ul>\n</details>")?;
    scripts(context, out)?;
    writeln!(out, "</section>")
}

/// The script of the first job of each case; of a case that runs the same one, its name.
fn scripts(context: &Context, out: &mut dyn Write) -> io::Result<()> {
    let plan = context.report.plan;
    let mut left = MOST_BYTES;
    writeln!(out, "<details>\n<summary>What was launched</summary>")?;
    writeln!(
        out,
        "<p class=\"of\">The first job of each case; all of them are in {}.</p>",
        context.link("plan.json", "plan.json")
    )?;
    for case in &plan.cases {
        let Some(job) = case.jobs.first() else { continue };
        let script =
            job.files.iter().find_map(|file| file.text.as_deref().map(|text| (file.name.as_str(), text)));
        let launch = show(&cap(&command_line(&job.launch), MOST_SCRIPT_BYTES));
        let (name, text) = script.unwrap_or(("", ""));
        let text = cap(text, MOST_SCRIPT_BYTES);
        let size = launch.len() + text.len();
        if size > left {
            writeln!(
                out,
                "<p class=\"drawn\">{}: only in plan.json, the page would grow too large.</p>",
                escaped(&case.name)
            )?;
            continue;
        }
        left -= size;
        writeln!(
            out,
            "<details>\n<summary>{} <span class=\"of\">{}</span></summary>\n<pre>{}</pre>",
            escaped(&case.name),
            escaped(&job.name),
            escaped(&launch)
        )?;
        if !text.is_empty() {
            let lines: String = show_lines(&text).lines().map(|line| escaped(line) + "\n").collect();
            writeln!(out, "<p><code>{}</code></p>\n<pre>{lines}</pre>", escaped(&show(name)))?;
        }
        writeln!(out, "</details>")?;
    }
    writeln!(out, "</details>")
}
