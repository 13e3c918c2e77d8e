//! What is said of a case as soon as it is judged, while others run: who is bad and by how much, or that it passed.
//! Only what the case's own numbers show is said; the run as a whole is judged at its end.

use super::case_lines::{self, word};
use super::culprit_line::{evidence, subject};
use base::text::{count, shorten, show};
use model::artefact::{CaseVerdict, Culprit, Status, Verdict};

/// Parts that have a line each.
const MOST: usize = 3;
/// A line beside a counter and a clock, in letters.
pub(crate) const MOST_LETTERS: usize = 100;

/// Such as `FAIL nic-pairs p5-002 rdmap113s0 4.8 GB/s (limit 11 GB/s)`, in at most so many letters.
pub(crate) fn lines(case: &CaseVerdict, most: usize) -> Vec<String> {
    let cut = |head: &str, what: &str| shorten(&format!("{head} {what}"), most);
    let status = case_lines::worst(case);
    let name = show(&case.case);
    let head = format!("{:<4} {name}", word(status));
    let bad: Vec<&Verdict> = case.verdicts.iter().filter(|verdict| verdict.status == status).collect();
    if matches!(status, Status::Fail | Status::UnexpectedPass) {
        let mut named: Vec<String> =
            case.culprits.iter().filter_map(|culprit| named(culprit, &bad)).collect();
        // A NIC may be named for each of its directions.
        named.dedup();
        if !named.is_empty() {
            let more = named.len().saturating_sub(MOST);
            let mut lines: Vec<String> = named.iter().take(MOST).map(|who| cut(&head, who)).collect();
            if more > 0 {
                lines.push(format!("{head} {}", count(more, "more part")));
            }
            return lines;
        }
    }
    let total = case.verdicts.len();
    let what = match bad.first() {
        None => "no assertion".to_owned(),
        Some(_) if status == Status::Pass && bad.len() == total => count(total, "assertion"),
        Some(first) => match status {
            Status::Pass | Status::Unjudged | Status::ExpectedFailure => {
                format!("{} of {}", bad.len(), count(total, "assertion"))
            }
            Status::Skipped => {
                let why =
                    first.message.split_once(": skipped: ").map_or(first.message.as_str(), |(_, why)| why);
                show(why)
            }
            _ => format!("{}{}", measured(first), more(bad.len())),
        },
    };
    vec![cut(&head, &what)]
}

fn more(bad: usize) -> String {
    if bad > 1 { format!(", {} more", bad - 1) } else { String::new() }
}

/// A part that is blamed, with the number that shows it.
fn named(culprit: &Culprit, bad: &[&Verdict]) -> Option<String> {
    let Culprit::Culprit { node, part, .. } = culprit else { return None };
    let own = |verdict: &&&Verdict| {
        verdict.node.as_ref() == Some(node)
            && verdict.part.as_ref() == Some(part)
            && verdict.observed.is_some()
    };
    match bad.iter().find(own) {
        Some(verdict) => Some(measured(verdict)),
        None => {
            let who = subject(culprit);
            let who = who.strip_prefix("culprit ").unwrap_or(&who);
            Some(format!("{} {}", show(who), show(evidence(culprit))))
        }
    }
}

/// Who, what was measured, and the limit that it does not keep; or why nothing was measured.
fn measured(verdict: &Verdict) -> String {
    let who = super::text::subject(verdict);
    let Some(observed) = verdict.observed else {
        return format!("{who} {}", show(verdict.cause.as_deref().unwrap_or("not measured")));
    };
    let metric = if verdict.part.is_some() { String::new() } else { format!("{} ", show(&verdict.metric)) };
    let below = verdict.lower.filter(|lower| observed < *lower);
    let limit = below.or(verdict.upper.filter(|upper| observed > *upper));
    let limit = limit.map(|limit| format!(" (limit {})", verdict.unit.show(limit))).unwrap_or_default();
    format!("{who} {metric}{}{limit}", verdict.unit.show(observed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    #[test]
    fn a_judged_case_is_who_what_and_limit() {
        let red = fixture::red();
        let mut all: Vec<String> = red.cases.iter().flat_map(|case| lines(case, MOST_LETTERS)).collect();
        all.extend(fixture::green().cases.iter().flat_map(|case| lines(case, MOST_LETTERS)));
        let mut case = fixture::case("pair-all_reduce");
        case.verdicts = vec![fixture::verdict("c", "rate", "p5-001", "x", Status::Fail); 2];
        for verdict in &mut case.verdicts {
            (verdict.node, verdict.part) = (None, None);
            verdict.nodes = "p5-[001-002]".into();
        }
        all.extend(lines(&case, MOST_LETTERS));
        let mut many = fixture::case("nics");
        for n in 0..9 {
            let nic = format!("rdmap{n}s0");
            many.verdicts.push(fixture::verdict("nics", "rate", "p5-001", &nic, Status::Fail));
            many.culprits.push(Culprit::Culprit {
                node: "p5-001".into(),
                part: nic,
                evidence: "slow".into(),
                code: None,
            });
        }
        many.culprits.push(many.culprits[8].clone());
        all.extend(lines(&many, MOST_LETTERS));
        insta::assert_snapshot!(all.join("\n"), @r#"
        FAIL nics p5-003 rdmap113s0 4.10 GB/s (limit 11.00 GB/s)
        ERR  all-reduce p5-001 rdmap0s0 hang, 39 more
        xfail rest 1 of 2 assertions
        pass nics 2 assertions
        FAIL pair-all_reduce p5-[001-002] nic.rate 4.10 GB/s (limit 11.00 GB/s), 1 more
        FAIL nics p5-001 rdmap0s0 4.10 GB/s (limit 11.00 GB/s)
        FAIL nics p5-001 rdmap1s0 4.10 GB/s (limit 11.00 GB/s)
        FAIL nics p5-001 rdmap2s0 4.10 GB/s (limit 11.00 GB/s)
        FAIL nics 6 more parts
        "#);
    }
}
