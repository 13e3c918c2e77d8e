//! `harness baseline show`, `lint`, `diff` and `export`: baselines as they are, for people and for programs.

use super::{files, packs};
use crate::check;
use crate::cli::columns::{columns, comma_separated};
use crate::cli::usage;
use base::text::count;
use clap::Args;
use config::baseline::review::{name, percent};
use config::baseline::{Baseline, Baselines};
use config::bounds;
use model::exit_code;
use serde_json::json;
use std::path::{Path, PathBuf};
use store::Home;

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The instance; by default all
    #[arg(value_name = "INSTANCE")]
    instance: Option<String>,
    /// Only baselines whose name contains this
    #[arg(long, value_name = "PART")]
    only: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The instance, or a file
    #[arg(value_name = "A")]
    a: String,
    #[arg(value_name = "B")]
    b: String,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The instance; by default all
    #[arg(value_name = "INSTANCE")]
    instance: Option<String>,
    /// How it is printed, for people or for programs
    #[arg(long, value_name = "FORMAT", default_value = "csv", value_parser = ["csv", "json"])]
    format: String,
    /// Make a pack: without names of nodes, runs, people, trainings and recipes of your own
    #[arg(long, requires_all = ["sign", "output"], conflicts_with = "format")]
    sanitise: bool,
    /// The private key that signs the pack: `openssl genpkey -algorithm ed25519 -out KEY.pem`
    #[arg(long, value_name = "KEY", requires = "sanitise")]
    sign: Option<PathBuf>,
    /// Where the pack is written
    #[arg(long, value_name = "FILE", requires = "sanitise")]
    output: Option<PathBuf>,
}

pub(super) fn show(home: &Home, args: &ShowArgs) -> i32 {
    let all = match read(home, args.instance.as_deref()) {
        Ok(all) => all,
        Err(why) => return usage(&why),
    };
    let mut rows = vec![
        ["baseline", "state", "n", "median", "MAD", "RSD", "lower", "upper", "floor", "from"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for (of, entry) in all.iter().flat_map(|of| of.entries.iter().map(move |entry| (of, entry))) {
        let name = format!("{} {}", of.instance, name(&entry.metric, &entry.key));
        if args.only.as_ref().is_some_and(|part| !name.contains(part.as_str())) {
            continue;
        }
        let show = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| entry.unit.show(value));
        let state = match (of.is_pending(), &entry.rejected_by) {
            (true, Some(_)) => "rejected".to_owned(),
            (true, None) => format!("proposed {}", entry.state.name()),
            (false, _) => entry.state.name().to_owned(),
        };
        rows.push(vec![
            name,
            state,
            entry.samples.len().to_string(),
            entry.unit.show(entry.median()),
            show(bounds::mad(&entry.samples)),
            entry.spread.map_or_else(|| "-".to_owned(), |spread| format!("{:.1} %", spread.relative * 100.0)),
            show(entry.lower),
            show(entry.upper),
            show(entry.floor),
            origin(entry),
        ]);
    }
    if let (1, Some(part)) = (rows.len(), &args.only) {
        let of = args.instance.as_ref().map(|instance| format!(" of `{}`", instance.escape_debug()));
        eprintln!("no baseline{} contains `{}`", of.unwrap_or_default(), part.escape_debug());
        return exit_code::NOTHING_SELECTED;
    }
    print!("{}", columns(&rows));
    exit_code::PASSED
}

/// Reviewer accepted it and why, or where it was published.
fn origin(entry: &Baseline) -> String {
    let source = entry.source.escape_debug().to_string();
    match (&entry.accepted_by, &entry.reason) {
        (Some(by), Some(reason)) => format!("{source}; {}: {}", by.escape_debug(), reason.escape_debug()),
        _ => source,
    }
}

/// The errors of `harness check` in baselines and suites.
pub(super) fn lint(home: &Home) -> i32 {
    let report = check::check(home.path());
    let is_ours = |file: &str| file.starts_with("baselines/") || file.starts_with("suites/");
    // An inventory without baselines is a warning of `check`, and an error here.
    let without = report.warnings.iter().filter(|warning| warning.message.contains("baselines"));
    let diagnostics = report.diagnostics.iter().filter(|diagnostic| is_ours(&diagnostic.file));
    let errors: Vec<_> = diagnostics.chain(without).collect();
    errors.iter().for_each(|diagnostic| println!("{diagnostic}"));
    let files = report.files.iter().filter(|file| is_ours(file)).count();
    println!("{}, {}", count(files, "file"), count(errors.len(), "error"));
    if errors.is_empty() { exit_code::PASSED } else { exit_code::USAGE }
}

pub(super) fn diff(home: &Home, args: &DiffArgs) -> i32 {
    let (a, b) = match (named(home, &args.a), named(home, &args.b)) {
        (Ok(a), Ok(b)) => (a, b),
        (Err(why), _) | (_, Err(why)) => return usage(&why),
    };
    let lines = differences(&a, &b);
    lines.iter().for_each(|line| println!("{line}"));
    println!("{} differences", lines.len());
    if lines.is_empty() { exit_code::PASSED } else { exit_code::FAILED }
}

fn differences(a: &Baselines, b: &Baselines) -> Vec<String> {
    let mut lines = Vec::new();
    for old in &a.entries {
        let name = name(&old.metric, &old.key);
        let Some(new) = b.find(&old.metric, &old.key) else {
            lines.push(format!("only in {}: {name}", a.file));
            continue;
        };
        let show = |value: Option<f64>| value.map_or_else(|| "any".to_owned(), |value| old.unit.show(value));
        let mut parts = Vec::new();
        if old.median() != new.median() {
            let (was, is) = (old.median(), new.median());
            let share = if was == 0.0 { String::new() } else { format!(" ({})", percent(is / was - 1.0)) };
            parts.push(format!("median {} -> {}{share}", old.unit.show(was), old.unit.show(is)));
        }
        for (word, was, is) in [
            ("lower", old.lower, new.lower),
            ("upper", old.upper, new.upper),
            ("floor", old.floor, new.floor),
        ] {
            if was != is {
                parts.push(format!("{word} {} -> {}", show(was), show(is)));
            }
        }
        if old.state != new.state {
            parts.push(format!("{} -> {}", old.state.name(), new.state.name()));
        }
        if old.samples.len() != new.samples.len() {
            parts.push(format!("n {} -> {}", old.samples.len(), new.samples.len()));
        }
        if old.fingerprint != new.fingerprint {
            parts.push("different software".to_owned());
        }
        if !parts.is_empty() {
            lines.push(format!("{name}: {}", parts.join(", ")));
        }
    }
    let added = b.entries.iter().filter(|new| a.find(&new.metric, &new.key).is_none());
    lines.extend(added.map(|new| format!("only in {}: {}", b.file, name(&new.metric, &new.key))));
    lines
}

pub(super) fn export(home: &Home, args: &ExportArgs) -> i32 {
    if let (Some(key), Some(output)) = (&args.sign, &args.output) {
        return packs::export(home, args.instance.as_deref(), key, output);
    }
    let all = match read(home, args.instance.as_deref()) {
        Ok(all) => all,
        Err(why) => return usage(&why),
    };
    let in_force = all.iter().filter(|of| !of.is_pending());
    let entries: Vec<(&Baselines, &Baseline)> =
        in_force.flat_map(|of| of.entries.iter().map(move |entry| (of, entry))).collect();
    if args.format == "json" {
        let rows: Vec<_> = entries.iter().map(|(of, entry)| object(of, entry)).collect();
        println!("{:#}", serde_json::Value::Array(rows));
        return exit_code::PASSED;
    }
    println!(
        "instance,metric,op,size_bytes,nodes,ranks,placement,type,algorithm,protocol,runner,kernel,unit,better,state,n,median,lower,upper,simulated"
    );
    for (of, entry) in entries {
        let row = object(of, entry);
        let names = [
            "instance",
            "metric",
            "op",
            "size_bytes",
            "nodes",
            "ranks",
            "placement",
            "type",
            "algorithm",
            "protocol",
            "runner",
            "kernel",
            "unit",
            "better",
            "state",
            "n",
            "median",
            "lower",
            "upper",
            "simulated",
        ];
        let cells = names.map(|name| match &row[name] {
            serde_json::Value::Null => String::new(),
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        println!("{}", comma_separated(cells.iter().map(String::as_str)));
    }
    exit_code::PASSED
}

fn object(of: &Baselines, entry: &Baseline) -> serde_json::Value {
    let key = &entry.key;
    json!({
        "instance": of.instance,
        "metric": entry.metric,
        "op": key.op.map(|op| op.name()),
        "size_bytes": key.size_bytes,
        "nodes": key.nodes,
        "ranks": key.ranks,
        "placement": key.placement,
        "type": key.dtype,
        "algorithm": key.algorithm,
        "protocol": key.protocol,
        "runner": key.runner,
        "kernel": key.kernel,
        "unit": entry.unit.name(),
        "better": entry.better,
        "state": entry.state.name(),
        "n": entry.samples.len(),
        "median": entry.median(),
        "lower": entry.lower,
        "upper": entry.upper,
        "floor": entry.floor,
        "floor_source": entry.floor_source,
        "spread": entry.spread.map(|spread| spread.relative),
        "samples": entry.samples,
        "quantiles": entry.quantiles,
        "fingerprint": entry.fingerprint,
        "runs": entry.runs,
        "source": entry.source,
        "accepted_by": entry.accepted_by,
        "reason": entry.reason,
        "date": entry.date,
        "simulated": of.simulated,
    })
}

/// Those in force and those proposed, of one instance or of all.
fn read(home: &Home, instance: Option<&str>) -> Result<Vec<Baselines>, String> {
    let mut all = Vec::new();
    let is_meant = |name: &String| instance.is_none_or(|one| one == name);
    for name in files::with_baselines(home).iter().filter(|name| is_meant(name)) {
        all.extend(files::read_in_force(home, name)?);
    }
    for name in files::with_proposals(home).iter().filter(|name| is_meant(name)) {
        all.extend(files::read(home, &files::pending(home, name))?);
    }
    match (all.is_empty(), instance) {
        (true, Some(instance)) => Err(format!(
            "no baselines for `{instance}`; known: `{}`",
            files::with_baselines(home).join("`, `")
        )),
        _ => Ok(all),
    }
}

fn named(home: &Home, word: &str) -> Result<Baselines, String> {
    let is_path = word.contains('/') || word.ends_with(".toml");
    let read = if is_path { files::read(home, Path::new(word)) } else { files::read_in_force(home, word) };
    read?.ok_or_else(|| format!("no file of baselines `{word}`"))
}
