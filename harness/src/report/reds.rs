//! What is red and explained by no culprit: grouped over all cases by what failed, or by the cause of the failure.

use super::Report;
use super::explained::Explanations;
use super::paint::Paint;
use super::terminal::{gap, line};
use crate::report::text::subject;
use base::nodeset;
use base::text::{count, shorten, show};
use model::artefact::{Plan, Status, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// Groups that are shown; the reports hold the others.
const MOST: usize = 9;
/// Parts of one group that are named one by one.
const MOST_PARTS: usize = 4;

/// Results that are red in the same way.
struct RedGroup<'a> {
    status: Status,
    /// The metric that is out of bounds, or why it could not be judged.
    what: &'a str,
    verdicts: Vec<&'a Verdict>,
    cases: BTreeSet<&'a str>,
}

/// Failures first, then errors, then inconclusive results; the larger groups of each first.
pub(super) fn unexplained(
    text: &mut String,
    report: &Report,
    explanations: &Explanations,
    paint: Paint,
    most: usize,
) {
    let mut found: BTreeMap<(Status, &str), RedGroup> = BTreeMap::new();
    for case in report.cases {
        for verdict in case.verdicts.iter().filter(|verdict| verdict.status.is_red()) {
            if explanations.index_of(verdict).is_some() {
                continue;
            }
            let is_failure = matches!(verdict.status, Status::Fail | Status::UnexpectedPass);
            let cause = verdict.cause.as_deref().filter(|_| !is_failure);
            let what = cause.unwrap_or(&verdict.metric);
            let group = found.entry((verdict.status, what)).or_insert_with(|| RedGroup {
                status: verdict.status,
                what,
                verdicts: Vec::new(),
                cases: BTreeSet::new(),
            });
            group.verdicts.push(verdict);
            group.cases.insert(&case.case);
        }
    }
    let mut groups: Vec<RedGroup> = found.into_values().collect();
    groups.sort_by_key(|group| (weight(group.status), std::cmp::Reverse(group.verdicts.len())));
    if groups.is_empty() {
        return;
    }
    gap(text);
    if !report.summary.culprits.is_empty() {
        line(text, "explained by no culprit:");
    }
    for group in groups.iter().take(MOST) {
        let shared = if group.status == Status::Error { shared_node(report.plan, group) } else { None };
        render_group(text, group, shared, paint, most);
    }
    if groups.len() > MOST {
        let more: usize = groups[MOST..].iter().map(|group| group.verdicts.len()).sum();
        line(text, &format!("{}: see `junit.xml`", count(more, "more red assertion")));
    }
}

fn weight(status: Status) -> u8 {
    match status {
        Status::Fail | Status::UnexpectedPass => 0,
        Status::Error => 1,
        _ => 2,
    }
}

fn render_group(text: &mut String, group: &RedGroup, shared: Option<&str>, paint: Paint, most: usize) {
    let first = group.verdicts[0];
    let name = match group.status {
        Status::Fail => "FAIL",
        other => other.name(),
    };
    let status = paint.status(group.status, name);
    let room = most.saturating_sub(name.len() + 1);
    let mut cases = group.cases.iter();
    let of = match (cases.next(), cases.next()) {
        (Some(only), None) => format!("`{}`", show(only)),
        _ => count(group.cases.len(), "case"),
    };
    if let [only] = group.verdicts[..] {
        line(text, &format!("{status} {}", in_room(&of, &only.message, room)));
    } else {
        let n = count(group.verdicts.len(), "assertion");
        let on = parts(&group.verdicts);
        let on = match shared {
            Some(node) if on != node => format!("{}, which is in each of their jobs", show(node)),
            _ => on,
        };
        let head = format!("{}: {n} of {of}, on {on}", show(group.what));
        line(text, &format!("{status} {}", shorten(&head, room)));
        line(text, &in_room("  first", &first.message, most));
    }
    if let Some(evidence) = first.evidence.first() {
        let at = evidence.line.map(|line| format!(":{line}")).unwrap_or_default();
        line(text, &format!("  where: {}{at}", show(&evidence.file)));
    }
    if let Some(next) = &first.next {
        line(text, &shorten(&format!("  next: {}", show(next)), most));
    }
}

/// Where a message is too long, what a program printed stands without the job and the file that it is of: that begins with
/// who failed.
fn in_room(of: &str, message: &str, room: usize) -> String {
    let whole = format!("{of}: {}", show(message));
    match printed(message) {
        Some(printed) if whole.chars().count() > room => shorten(&format!("{of}: {}", show(printed)), room),
        _ => shorten(&whole, room),
    }
}

/// What stands behind `raw/JOB/stderr:4: `.
fn printed(message: &str) -> Option<&str> {
    let (place, printed) = message.split_once(": raw/")?.1.split_once(": ")?;
    place.rsplit_once(':')?.1.parse::<u64>().ok().map(|_| printed)
}

/// The one node of which each of these results has a job, where there is one: a full disk fails whatever its node is in.
fn shared_node<'a>(plan: &'a Plan, group: &RedGroup) -> Option<&'a str> {
    let red: BTreeSet<&str> = group.verdicts.iter().map(|verdict| verdict.name.as_str()).collect();
    let mut shared: Option<BTreeSet<&str>> = None;
    let mut found = 0;
    for case in plan.cases.iter().filter(|case| group.cases.contains(case.name.as_str())) {
        let jobs: BTreeMap<&str, &[String]> =
            case.jobs.iter().map(|job| (job.name.as_str(), job.nodes.as_slice())).collect();
        // Most numbers are of the same jobs as the one before.
        let mut last: Option<&[String]> = None;
        for one in case.assertions.iter().filter(|one| red.contains(one.name.as_str())) {
            found += 1;
            if last.replace(&one.jobs) == Some(one.jobs.as_slice()) {
                continue;
            }
            let of_jobs = one.jobs.iter().filter_map(|job| jobs.get(job.as_str())).copied().flatten();
            let nodes: BTreeSet<&str> = of_jobs.map(String::as_str).collect();
            shared = Some(match shared {
                None => nodes,
                Some(before) => before.intersection(&nodes).copied().collect(),
            });
        }
    }
    match shared?.into_iter().collect::<Vec<_>>()[..] {
        [only] if found == red.len() => Some(only),
        _ => None,
    }
}

/// The parts one by one where they are few, otherwise their nodes.
fn parts(verdicts: &[&Verdict]) -> String {
    let subjects: BTreeSet<String> = verdicts.iter().map(|verdict| subject(verdict)).collect();
    if subjects.len() <= MOST_PARTS {
        return subjects.into_iter().collect::<Vec<_>>().join(", ");
    }
    let nodes: BTreeSet<&String> = verdicts.iter().filter_map(|verdict| verdict.node.as_ref()).collect();
    if nodes.is_empty() {
        return format!("{} sets of nodes", subjects.len());
    }
    let nodes: Vec<String> = nodes.into_iter().cloned().collect();
    show(&nodeset::fold(&nodes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_and_its_exception_are_not_cut_out_of_a_long_message() {
        let raised = "rank 9: RuntimeError: CUDA error: an illegal memory access was encountered";
        let message =
            format!("train.steps on n1: job n1: the job ended with exit code 1: raw/n1/stderr:4: {raised}");
        assert_eq!(in_room("`a`", &message, 200), format!("`a`: {message}"));
        assert_eq!(in_room("`a`", &message, 112), format!("`a`: {raised}"));
        assert!(in_room("`a`", &message, 60).starts_with("`a`: rank 9: RuntimeError: CUDA "));
        let other = "nccl.busbw on n1: not measured (0 of 1 numbers): raw/j/stdout: not there";
        assert_eq!(in_room("`a`", other, 50), shorten(&format!("`a`: {other}"), 50));
    }
}
