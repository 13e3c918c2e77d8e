//! The decision on a pending baseline: accepted, it replaces the old one; rejected, it stays in its file with the reason,
//! until it is proposed again.

use super::{Baseline, BaselineKey, Baselines, FEWEST_ACCEPTED};
use base::text::count;
use std::fmt::Write;

/// The reviewer's, on one pending baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It replaces the accepted one of its metric and key.
    Accept,
    /// It stays pending, with the reason.
    Reject,
}

/// Who decided, when, and why.
pub struct Reviewer<'a> {
    /// `--by NAME`, or `$USER`.
    pub by: &'a str,
    /// `--reason TEXT`, or the answer at the terminal.
    pub reason: &'a str,
    /// Day of the review: `2026-11-21`.
    pub date: &'a str,
}

/// Those without a decision, in the order of the file.
pub fn open(pending: &Baselines) -> Vec<(String, BaselineKey)> {
    let open = pending.entries.iter().filter(|entry| entry.rejected_by.is_none());
    open.map(|entry| (entry.metric.clone(), entry.key.clone())).collect()
}

/// Whether there was such a pending baseline.
pub fn decide(
    accepted: &mut Baselines,
    pending: &mut Baselines,
    metric: &str,
    key: &BaselineKey,
    decision: Decision,
    who: &Reviewer<'_>,
) -> bool {
    let is_it = |entry: &Baseline| entry.metric == metric && entry.key == *key;
    let Some(at) = pending.entries.iter().position(is_it) else { return false };
    match decision {
        Decision::Accept => {
            let mut entry = pending.entries.remove(at);
            entry.accepted_by = Some(who.by.to_owned());
            entry.rejected_by = None;
            entry.reason = Some(who.reason.to_owned());
            entry.date = Some(who.date.to_owned());
            accepted.entries.retain(|old| !is_it(old));
            accepted.entries.push(entry);
        }
        Decision::Reject => {
            if let Some(entry) = pending.entries.get_mut(at) {
                entry.rejected_by = Some(who.by.to_owned());
                entry.reason = Some(who.reason.to_owned());
                entry.date = Some(who.date.to_owned());
            }
        }
    }
    true
}

/// Why a proposal cannot be accepted: it has no bounds yet, and would replace a baseline that judges.
pub fn refusal(in_force: &Baselines, new: &Baseline) -> Option<String> {
    let old =
        in_force.find_for(&new.metric, &new.key).filter(|old| new.lacks_bounds() && !old.lacks_bounds())?;
    let missing = FEWEST_ACCEPTED.saturating_sub(new.samples.len());
    let needs =
        if missing == 0 { String::new() } else { format!("; it needs {}", count(missing, "more run")) };
    Some(format!(
        "it has no bounds, the baseline of `{}` has (n = {}){needs}",
        in_force.file,
        old.samples.len()
    ))
}

/// The baseline that judges now and the new one beside each other, for the reviewer.
pub fn render(in_force: Option<&Baselines>, new: &Baseline) -> String {
    let old_of = in_force.and_then(|of| Some((of, of.find_for(&new.metric, &new.key)?)));
    let old = old_of.map(|(_, old)| old);
    let mut text = String::new();
    let mut line = |name: &str, what: String| {
        let _ = writeln!(text, "  {name:<9} {what}");
    };
    line(
        "old",
        old_of.map_or_else(|| "none".to_owned(), |(of, old)| format!("{}: {}", of.file, numbers(old))),
    );
    line("new", numbers(new));
    if let Some(old) = old.filter(|old| old.median() != 0.0) {
        line("change", percent(new.median() / old.median() - 1.0));
    }
    let spread = new.spread.map_or_else(
        || "unknown, too few runs".to_owned(),
        |spread| format!("{:.1} %, bounds for {} numbers at once", spread.relative * 100.0, spread.judged),
    );
    line("RSD", spread);
    line(
        "runs",
        if new.runs.is_empty() { new.source.escape_debug().to_string() } else { new.runs.join(", ") },
    );
    if let Some(pack) = &new.pack {
        line("pack", format!("{}, with it as good as n = {:.0}", pack.signer, pack.worth));
    }
    let software = software(old, new);
    if !software.is_empty() {
        line("software", software);
    }
    text
}

fn numbers(entry: &Baseline) -> String {
    let show = |value: Option<f64>| value.map_or_else(|| "any".to_owned(), |value| entry.unit.show(value));
    format!(
        "{}, {} to {}, n = {}, {}",
        entry.unit.show(entry.median()),
        show(entry.lower),
        show(entry.upper),
        entry.samples.len(),
        entry.state.name()
    )
}

/// A share with its sign.
pub fn percent(share: f64) -> String {
    format!("{:+.1} %", share * 100.0)
}

/// Each part of the software that is not what it was, or all of it where nothing is to be compared.
fn software(old: Option<&Baseline>, new: &Baseline) -> String {
    let none = Default::default();
    let was = old.map_or(&none, |old| &old.fingerprint);
    let parts: std::collections::BTreeSet<&String> = was.keys().chain(new.fingerprint.keys()).collect();
    let versions =
        |those: Option<&Vec<String>>| those.map_or_else(|| "unknown".to_owned(), |those| those.join(" or "));
    let words = parts.into_iter().map(|part| match (was.get(part), new.fingerprint.get(part)) {
        (a, b) if a == b => format!("{part} {}", versions(a)),
        (None, b) if old.is_none() => format!("{part} {}", versions(b)),
        (a, b) => format!("{part} {} -> {}", versions(a), versions(b)),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Metric and key as one text, which a person can search by a part of it.
pub fn name(metric: &str, key: &BaselineKey) -> String {
    format!("{metric} {key}").trim_end().to_owned()
}
