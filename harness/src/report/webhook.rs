//! What a webhook is sent of a run: a small document with the outcome, counts and culprits. `text` is what chat servers show.

use super::culprit_line::{MOST_LETTERS, culprit_line, evidence, next_command, subject};
use super::last_line::last_line;
use super::{Report, json};
use base::redact::mask_accounts;
use base::text::{SIMULATED, cap, show};
use serde_json::{Value, json};
use verdict::isolate::code::Code;

/// Culprits that are listed; `culprits_total` counts all.
const MOST: usize = 50;
/// Of a text, in bytes.
const MOST_BYTES: usize = 2048;
/// Culprits in the text.
const MOST_LINES: usize = 5;

/// The document, in one line.
pub(crate) fn webhook_body(report: &Report) -> String {
    let summary = report.summary;
    let mut text = vec![format!("harness {}: {}", show(&summary.suites.join(" ")), last_line(report))];
    if summary.simulated {
        text.push(SIMULATED.to_owned());
    }
    let lines = summary.culprits.iter().take(MOST_LINES);
    text.extend(lines.map(|one| culprit_line(one, report.plan, &summary.run_id, 2 * MOST_LETTERS)));
    let culprits: Vec<Value> = summary
        .culprits
        .iter()
        .take(MOST)
        .map(|culprit| {
            json!({
                "subject": cap(&show(&subject(culprit)), MOST_BYTES),
                "code": Code::for_culprit(culprit).map(|code| code.name),
                "evidence": cap(&show(evidence(culprit)), MOST_BYTES),
                "next": next_command(culprit, report.plan, &summary.run_id),
            })
        })
        .collect();
    let body = json::line(&json!({
        "format": 1, "event": "run-ended", "text": text.join("\n"), "run": summary.run_id,
        "simulated": summary.simulated, "exit_code": summary.exit_code, "outcome": last_line(report),
        "suites": summary.suites, "inventory": summary.inventory, "instance": summary.instance,
        "nodes": cap(&summary.nodes, MOST_BYTES), "started": summary.started, "ended": summary.ended,
        "seconds": summary.seconds, "interrupted": summary.interrupted, "counts": summary.counts,
        "coverage": summary.coverage, "culprits": culprits, "culprits_total": summary.culprits.len(),
    }));
    mask_accounts(&body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture::{self, Reported as _};
    use model::artefact::Culprit;

    #[test]
    fn a_red_run_is_its_outcome_and_its_culprits() {
        let body: Value = serde_json::from_str(&webhook_body(&fixture::red().report())).unwrap();
        insta::assert_snapshot!(format!("{body:#}"));
    }

    #[test]
    fn it_is_small_whatever_happened() {
        let mut made = fixture::red();
        let nodes = |n: usize| (0..500).map(|node| format!("node-{n}-{node}")).collect();
        made.summary.culprits = (0..1000)
            .map(|n| Culprit::Suspects { nodes: nodes(n), evidence: "slow ".repeat(10_000) })
            .collect();
        let body = webhook_body(&made.report());
        assert!(body.len() < 300_000 && body.contains("\"culprits_total\":1000"), "{}", body.len());
    }
}
