//! Writes `baselines/*.toml` so that a change of one number is a change of one line.

use super::{Baseline, Baselines};
use crate::size;
use recipes::unit::Better;
use std::fmt::Write;

pub fn render(baselines: &Baselines) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(text, "instance = {}", quoted(&baselines.instance));
    if baselines.simulated {
        text.push_str("simulated = true\n");
    }
    let mut entries: Vec<&Baseline> = baselines.entries.iter().collect();
    entries.sort_by(|a, b| (&a.metric, &a.key).cmp(&(&b.metric, &b.key)));
    for entry in entries {
        render_one(&mut text, entry);
    }
    text
}

fn render_one(text: &mut String, entry: &Baseline) {
    let better = match entry.better {
        Better::Higher => "higher",
        Better::Lower => "lower",
        Better::Neither => "neither",
    };
    let word = |word: &Option<String>| word.as_deref().map(quoted);
    let samples = entry.samples.iter().map(|sample| number(*sample)).collect::<Vec<_>>().join(", ");
    let lines = [
        ("metric", Some(quoted(&entry.metric))),
        ("op", entry.key.op.map(|op| quoted(op.name()))),
        ("size", entry.key.size_bytes.map(|bytes| quoted(&size::show(bytes)))),
        ("nodes", entry.key.nodes.map(|nodes| nodes.to_string())),
        ("ranks", entry.key.ranks.map(|ranks| ranks.to_string())),
        ("training", word(&entry.key.training)),
        ("unit", Some(quoted(entry.unit.name()))),
        ("better", Some(quoted(better))),
        ("state", Some(quoted(entry.state.name()))),
        ("lower", entry.lower.map(number)),
        ("upper", entry.upper.map(number)),
        ("samples", Some(format!("[{samples}]"))),
        ("source", Some(quoted(&entry.source))),
        ("accepted_by", word(&entry.accepted_by)),
        ("reason", word(&entry.reason)),
        ("date", word(&entry.date)),
    ];
    text.push_str("\n[[baseline]]\n");
    for (key, value) in lines {
        if let Some(value) = value {
            let _ = writeln!(text, "{key} = {value}");
        }
    }
}

/// The shortest form that reads back as the same number, always with a point or an exponent.
fn number(value: f64) -> String {
    format!("{value:?}")
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
