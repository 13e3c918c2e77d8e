//! The findings of a field kit for a person: what differs and what was not seen, each in a line.

use super::{Finding, Outcome, counts};
use base::text::{count, shorten};
use std::fmt::Write;

const WIDTH: usize = 120;

/// `verbose` lists also what holds, and how each was checked, in whole lines.
pub fn render(findings: &[Finding], inventory: &str, nodes: usize, verbose: bool) -> String {
    let most = if verbose { usize::MAX } else { WIDTH };
    let mut text = String::new();
    for (at, finding) in findings.iter().enumerate() {
        if !verbose && let Some(why) = not_seen(finding) {
            // One reason can hide most of the list: it is said once, at its first finding.
            let alike: Vec<&str> =
                findings[at..].iter().filter(|one| not_seen(one) == Some(why)).map(|one| one.id).collect();
            if !findings[..at].iter().any(|one| not_seen(one) == Some(why)) {
                let line = match alike.as_slice() {
                    [one] => format!("not seen {one}: {}", one_line(why)),
                    [one, more @ ..] => {
                        format!("not seen {one} and {} more (-v): {}", more.len(), one_line(why))
                    }
                    [] => continue,
                };
                let _ = writeln!(text, "{}", shorten(&line, most));
            }
            continue;
        }
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

fn not_seen(finding: &Finding) -> Option<&str> {
    match &finding.outcome {
        Outcome::NotSeen(why) => Some(why),
        Outcome::Holds(_) | Outcome::Differs(_) => None,
    }
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
