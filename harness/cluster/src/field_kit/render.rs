//! The findings of a field kit for a person: what differs and what was not seen, each in a line.

use super::{Finding, Outcome, counts};
use base::text::{count, shorten};
use std::fmt::Write;

const WIDTH: usize = 120;

/// `verbose` lists also what holds, and how each was checked, in whole lines.
pub fn render(findings: &[Finding], inventory: &str, nodes: usize, verbose: bool) -> String {
    let most = if verbose { usize::MAX } else { WIDTH };
    let mut text = String::new();
    for finding in findings {
        let (word, seen) = match &finding.outcome {
            Outcome::Differs(seen) => ("DIFFERS ", seen),
            Outcome::NotSeen(why) => ("not seen", why),
            Outcome::Holds(_) if !verbose => continue,
            Outcome::Holds(seen) => ("holds   ", seen),
        };
        let line = format!("{word} {}: {}", finding.id, one_line(seen));
        let _ = writeln!(text, "{}", shorten(&line, most));
        if verbose || matches!(finding.outcome, Outcome::Differs(_)) {
            let _ = writeln!(text, "         assumed: {}", finding.assumed);
        }
        if verbose {
            let _ = writeln!(text, "         checked by: {}; source: {}", finding.checked_by, finding.source);
        }
    }
    let [holds, differs, not_seen] = counts(findings);
    let _ = writeln!(
        text,
        "{inventory}: {} on {}: {holds} hold, {differs} differ, {not_seen} not seen",
        count(findings.len(), "assumption"),
        count(nodes, "node")
    );
    text
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
