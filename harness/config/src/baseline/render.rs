//! Writes `baselines/*.toml` so that a change of one number is a change of one line.

use super::{Baseline, Baselines};
use base::size;
use metric::unit::Better;
use std::fmt::Write;

pub(super) fn render(baselines: &Baselines) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(text, "instance = {}", quoted(&baselines.instance));
    if baselines.simulated {
        text.push_str("simulated = true\n");
    }
    if baselines.between_sizes {
        text.push_str("between_sizes = true\n");
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
    let list = |words: Vec<String>| format!("[{}]", words.join(", "));
    let numbers = |numbers: &[f64]| list(numbers.iter().map(|one| number(*one)).collect());
    let quotes = |words: &[String]| list(words.iter().map(|word| quoted(word)).collect());
    let parts = entry.fingerprint.iter().map(|(part, those)| match those.as_slice() {
        [one] => format!("{} = {}", key(part), quoted(one)),
        many => format!("{} = {}", key(part), quotes(many)),
    });
    let fingerprint =
        (!entry.fingerprint.is_empty()).then(|| format!("{{ {} }}", parts.collect::<Vec<_>>().join(", ")));
    let spread = entry.spread;
    let lines = [
        ("metric", Some(quoted(&entry.metric))),
        ("op", entry.key.op.map(|op| quoted(op.name()))),
        ("size", entry.key.size_bytes.map(|bytes| quoted(&size::show(bytes)))),
        ("nodes", entry.key.nodes.map(|nodes| nodes.to_string())),
        ("ranks", entry.key.ranks.map(|ranks| ranks.to_string())),
        ("placement", word(&entry.key.placement)),
        ("training", word(&entry.key.training)),
        ("type", word(&entry.key.dtype)),
        ("algorithm", word(&entry.key.algorithm)),
        ("protocol", word(&entry.key.protocol)),
        ("runner", word(&entry.key.runner)),
        ("kernel", word(&entry.key.kernel)),
        ("unit", Some(quoted(entry.unit.name()))),
        ("better", Some(quoted(better))),
        ("state", Some(quoted(entry.state.name()))),
        ("lower", entry.lower.map(number)),
        ("upper", entry.upper.map(number)),
        ("floor", entry.floor.map(number)),
        ("floor_source", word(&entry.floor_source)),
        ("spread", spread.map(|spread| number(spread.relative))),
        ("freedom", spread.map(|spread| number(spread.freedom))),
        ("judged", spread.map(|spread| spread.judged.to_string())),
        ("pack", entry.pack.as_ref().map(|pack| quoted(&pack.signer))),
        ("pack_worth", entry.pack.as_ref().map(|pack| number(pack.worth))),
        ("samples", Some(numbers(&entry.samples))),
        ("quantiles", entry.quantiles.map(|four| numbers(&four))),
        ("fingerprint", fingerprint),
        ("runs", (!entry.runs.is_empty()).then(|| quotes(&entry.runs))),
        ("source", Some(quoted(&entry.source))),
        ("accepted_by", word(&entry.accepted_by)),
        ("rejected_by", word(&entry.rejected_by)),
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

/// A key of a table, bare where TOML takes it so.
fn key(text: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !text.is_empty() && text.chars().all(bare) {
        return text.to_owned();
    }
    // A key may not run over several lines, as a quoted text may.
    let escaped: String = text
        .chars()
        .map(|c| match c {
            '"' | '\\' => format!("\\{c}"),
            c if c.is_control() => format!("\\u{:04X}", u32::from(c)),
            c => c.to_string(),
        })
        .collect();
    format!("\"{escaped}\"")
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
