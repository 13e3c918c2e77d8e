//! Runs of thousands of nodes: readers of JUnit stop at so many testcases, so what did not go red is counted in one
//! testcase for each assertion of the suite. What is red is never aggregated, and every verdict lies in the case's file.

use crate::report::Report;
use base::nodeset;
use base::text::thousands;
use model::artefact::{CaseVerdict, Evidence, Plan, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// Of a run with more assertions, testcases are aggregated.
pub(super) const MOST_TESTCASES: usize = 20_000;

/// Why testcases of a run are aggregated, as the documents say it; nothing where they are not.
pub(super) fn why(plan: &Plan) -> Option<String> {
    above(assertions(plan), MOST_TESTCASES)
}

fn above(assertions: usize, most: usize) -> Option<String> {
    (assertions > most).then(|| {
        let (has, most) = (thousands(assertions), thousands(most));
        format!(
            "what is not red: the run has {has} assertions, limit {most}; each is in its case's verdict.json"
        )
    })
}

fn assertions(plan: &Plan) -> usize {
    plan.cases.iter().map(|case| case.assertions.len()).sum()
}

/// The cases of a report as its document lists them, where the run is that large.
pub(super) fn cases(report: &Report) -> Option<Vec<CaseVerdict>> {
    why(report.plan).map(|_| report.cases.iter().map(case).collect())
}

/// A case with one verdict for each label and status that is not red, where the first of them stood.
pub(super) fn case(case: &CaseVerdict) -> CaseVerdict {
    let mut groups: BTreeMap<(&str, &str), Vec<&Verdict>> = BTreeMap::new();
    for verdict in case.verdicts.iter().filter(|verdict| !verdict.status.is_red()) {
        groups.entry(group(verdict)).or_default().push(verdict);
    }
    let mut verdicts = Vec::new();
    for verdict in &case.verdicts {
        match groups.remove(&group(verdict)).filter(|_| !verdict.status.is_red()) {
            Some(all) if all.len() > 1 => verdicts.push(aggregate(case, &all)),
            Some(_) => verdicts.push(verdict.clone()),
            None if verdict.status.is_red() => verdicts.push(verdict.clone()),
            None => {}
        }
    }
    CaseVerdict {
        verdicts,
        suite: case.suite.clone(),
        case: case.case.clone(),
        versions: case.versions.clone(),
        findings: case.findings.clone(),
        culprits: case.culprits.clone(),
        common_failure: case.common_failure.clone(),
        ..*case
    }
}

/// What an assertion of the suite made of each of its subjects.
fn group(verdict: &Verdict) -> (&str, &str) {
    let label = verdict.name.split_once('@').map_or(verdict.name.as_str(), |(label, _)| label);
    (label, verdict.status.name())
}

/// One verdict in place of several. It has no number: none of theirs stands for the others.
fn aggregate(case: &CaseVerdict, all: &[&Verdict]) -> Verdict {
    let first = all[0];
    let (label, status) = group(first);
    let nodes: BTreeSet<String> =
        all.iter().flat_map(|one| nodeset::expand(&one.nodes).unwrap_or_default()).collect();
    let nodes: Vec<String> = nodes.into_iter().collect();
    let number = format!("{} assertions", thousands(all.len()));
    Verdict {
        name: format!("{label}@{number}: {status}"),
        provisional: all.iter().any(|one| one.provisional),
        observed: None,
        runs: Vec::new(),
        nics: BTreeMap::new(),
        lower: None,
        upper: None,
        n: all.iter().map(|one| one.n).sum(),
        n_expected: all.iter().map(|one| one.n_expected).sum(),
        baseline: None,
        message: format!("{number} of `{label}` together: {status}; the first: {}", first.message),
        next: first.next.clone(),
        evidence: vec![Evidence { file: format!("cases/{}/verdict.json", case.case), line: None }],
        nodes: nodeset::fold(&nodes),
        node: None,
        part: None,
        cause: None,
        judged_by: None,
        seconds: all.iter().map(|one| one.seconds).fold(0.0, f64::max),
        ..first.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;
    use model::artefact::Status;

    fn made(verdicts: &[(&str, &str, Status)]) -> CaseVerdict {
        let mut made = fixture::case("c");
        made.verdicts = verdicts
            .iter()
            .map(|(label, node, status)| fixture::verdict("c", label, node, "p", *status))
            .collect();
        made
    }

    #[test]
    fn what_is_red_keeps_a_testcase_of_its_own_and_the_rest_is_counted_by_assertion_and_status() {
        let whole = made(&[
            ("rate", "n1", Status::Pass),
            ("rate", "n2", Status::Fail),
            ("rate", "n3", Status::Pass),
            ("rate", "n4", Status::Unjudged),
            ("rate", "n5", Status::Error),
            ("rate", "n6", Status::Inconclusive),
            ("rate", "n7", Status::Fail),
            ("wrong", "n1", Status::Pass),
        ]);
        let folded = case(&whole);
        let red = |case: &CaseVerdict| -> Vec<Verdict> {
            case.verdicts.iter().filter(|one| one.status.is_red()).cloned().collect()
        };
        assert_eq!(red(&folded), red(&whole));
        let others: Vec<&Verdict> = folded.verdicts.iter().filter(|one| !one.status.is_red()).collect();
        assert_eq!(others.len(), 3, "{others:?}");
        assert_eq!((others[0].n, others[0].observed), (whole.verdicts[0].n + whole.verdicts[2].n, None));
        assert!(others[0].name.ends_with("@2 assertions: pass"), "{}", others[0].name);
        assert_eq!(others[0].evidence[0].file, "cases/c/verdict.json");
        // One alone is what it was.
        assert_eq!((others[1], others[2]), (&whole.verdicts[3], &whole.verdicts[7]));
        assert_eq!(folded.findings, whole.findings);
    }

    #[test]
    fn a_run_is_aggregated_from_one_assertion_above_the_limit_and_says_so() {
        assert_eq!(above(20_000, MOST_TESTCASES), None);
        let why = above(20_001, MOST_TESTCASES).expect("above the limit");
        assert!(why.contains("20,001 assertions") && why.contains("20,000"), "{why}");
    }
}
