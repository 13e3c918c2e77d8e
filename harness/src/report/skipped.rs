//! What was not run, or cannot be judged, and why: grouped by the reason, before the launch and at the end.

use super::culprit_line::MOST_LETTERS;
use base::text::{count, shorten, show};
use model::artefact::{CaseVerdict, Plan, Status, Verdict};
use std::collections::BTreeSet;

/// Reasons that are shown; the reports hold the others.
const MOST: usize = 4;

/// What is skipped for one reason.
#[derive(Debug, Default)]
struct SkippedGroup<'a> {
    why: String,
    assertions: usize,
    cases: BTreeSet<&'a str>,
}

/// A line for each reason, the one of most assertions first.
pub(crate) fn lines(cases: &[CaseVerdict], most: usize) -> Vec<String> {
    let skipped = cases.iter().flat_map(|case| {
        let is_skipped = |verdict: &&Verdict| verdict.status == Status::Skipped;
        case.verdicts.iter().filter(is_skipped).map(|verdict| (case.case.as_str(), why(verdict), 1))
    });
    render(skipped, "skipped", most)
}

/// The same of a plan, before anything is launched.
pub(crate) fn planned(plan: &Plan) -> Vec<String> {
    let skipped = plan
        .cases
        .iter()
        .filter_map(|case| Some((case.name.as_str(), case.skip.clone()?, case.assertions.len())));
    render(skipped, "will skip", MOST_LETTERS)
}

fn render<'a>(
    skipped: impl Iterator<Item = (&'a str, String, usize)>,
    verb: &str,
    most: usize,
) -> Vec<String> {
    let mut groups: Vec<SkippedGroup> = Vec::new();
    for (case, why, assertions) in skipped {
        let at = groups.iter().position(|group| group.why == why).unwrap_or_else(|| {
            groups.push(SkippedGroup { why, ..SkippedGroup::default() });
            groups.len() - 1
        });
        groups[at].assertions += assertions;
        groups[at].cases.insert(case);
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.assertions));
    let mut lines: Vec<String> =
        groups.iter().take(MOST).map(|group| shorten(&line(group, verb), most)).collect();
    if groups.len() > MOST {
        let more: usize = groups[MOST..].iter().map(|group| group.assertions).sum();
        lines.push(format!("{verb} {} for other reasons: see `junit.xml`", count(more, "assertion")));
    }
    lines
}

fn line(group: &SkippedGroup, verb: &str) -> String {
    let mut cases = group.cases.iter();
    let of = match (cases.next(), cases.next()) {
        (Some(only), None) => format!("`{}`", show(only)),
        _ => count(group.cases.len(), "case"),
    };
    format!("{verb} {} of {of}: {}", count(group.assertions, "assertion"), show(&group.why))
}

/// Why an assertion was skipped, without what it is about: many are skipped for one reason.
pub(super) fn why(verdict: &Verdict) -> String {
    const DEPENDS: &str = "it depends on `";
    if let Some((_, why)) = verdict.message.split_once(": skipped: ") {
        return match why.strip_prefix(DEPENDS).and_then(|rest| rest.split_once("`, which ended: ")) {
            Some((_, end)) => format!("a case that they come after ended: {end}"),
            None => why.to_owned(),
        };
    }
    match verdict.cause.as_deref() {
        Some("warning") => "a warning, which only reports".to_owned(),
        Some(cause) => cause.to_owned(),
        None => verdict.message.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    fn skipped(case: &str, messages: &[&str]) -> CaseVerdict {
        let mut of_case = fixture::case(case);
        for message in messages {
            let mut verdict = fixture::verdict(case, "rate", "p5-001", "gpu3", Status::Skipped);
            verdict.message = (*message).to_owned();
            of_case.verdicts.push(verdict);
        }
        of_case
    }

    #[test]
    fn skips_are_grouped_by_their_reason_and_the_largest_group_comes_first() {
        let few = "nccl.busbw on p5-001: skipped: it needs 2 nodes";
        let cases = [
            skipped(
                "kernels-scatter",
                &["a on b: skipped: it is profiled, and the inventory has no `nsys_version`"],
            ),
            skipped("pair-all_reduce", &[few, few]),
            skipped("pair-broadcast", &[few]),
            skipped("all-all_reduce", &["x: skipped: it depends on `node-all_reduce`, which ended: fail"]),
            skipped("all-broadcast", &["x: skipped: it depends on `node-broadcast`, which ended: fail"]),
        ];
        insta::assert_snapshot!(lines(&cases, MOST_LETTERS).join("\n"), @r"
        skipped 3 assertions of 2 cases: it needs 2 nodes
        skipped 2 assertions of 2 cases: a case that they come after ended: fail
        skipped 1 assertion of `kernels-scatter`: it is profiled, and the inventory has no `nsys_version`
        ");
    }

    #[test]
    fn many_reasons_are_counted_and_none_is_lost() {
        let messages: Vec<String> = (0..9).map(|n| format!("m: skipped: reason {n}")).collect();
        let case = skipped("c", &messages.iter().map(String::as_str).collect::<Vec<_>>());
        let lines = lines(&[case], MOST_LETTERS);
        assert_eq!(lines.len(), MOST + 1);
        assert_eq!(lines[MOST], "skipped 5 assertions for other reasons: see `junit.xml`");
    }

    #[test]
    fn a_plan_says_what_it_will_skip() {
        let mut plan = fixture::plan();
        plan.cases[1].assertions = plan.cases[0].assertions.clone();
        assert_eq!(
            planned(&plan),
            [
                "will skip 2 assertions of `broken-link`: faults of the simulated cluster hold on a simulated inventory only"
            ]
        );
    }
}
