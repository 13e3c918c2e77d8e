//! Which assertions of a plan a command line selects beside libtest's filter: by tag, by case, and by expressions.

mod expression;

pub(crate) use expression::Expression;

use base::{nodeset, suggest};
use model::artefact::{Plan, PlannedAssertion, PlannedCase};
use std::collections::{BTreeMap, BTreeSet};

/// `--tag`, `--case` and `-E`. What is given several times selects what any of them does; the three narrow each other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filters {
    pub tags: Vec<String>,
    pub cases: Vec<String>,
    pub expressions: Vec<Expression>,
}

/// An assertion as expressions see it.
struct Candidate<'a> {
    case: &'a PlannedCase,
    assertion: &'a PlannedAssertion,
    nodes: &'a [String],
}

impl Filters {
    /// The names of the assertions that are selected; all where nothing is given.
    pub(crate) fn select(&self, plan: &Plan) -> Option<BTreeSet<String>> {
        if self.tags.is_empty() && self.cases.is_empty() && self.expressions.is_empty() {
            return None;
        }
        let mut folded: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for assertion in plan.cases.iter().flat_map(|case| &case.assertions) {
            let expand = || nodeset::expand(&assertion.nodes).unwrap_or_default();
            folded.entry(&assertion.nodes).or_insert_with(expand);
        }
        let mut selected = BTreeSet::new();
        for case in &plan.cases {
            let by_tag = self.tags.is_empty() || self.tags.iter().any(|tag| case.tags.contains(tag));
            let by_case = self.cases.is_empty() || self.cases.contains(&case.name);
            if !by_tag || !by_case {
                continue;
            }
            for assertion in &case.assertions {
                let nodes = match &assertion.node {
                    Some(node) => std::slice::from_ref(node),
                    None => folded.get(assertion.nodes.as_str()).map(Vec::as_slice).unwrap_or_default(),
                };
                let candidate = Candidate { case, assertion, nodes };
                let matches = |one: &Expression| one.matches(&candidate);
                if self.expressions.is_empty() || self.expressions.iter().any(matches) {
                    selected.insert(assertion.name.clone());
                }
            }
        }
        Some(selected)
    }

    /// A case or tag of the plan that is like one that was asked for and is not there.
    pub(crate) fn nearest(&self, plan: &Plan) -> Option<String> {
        let cases: Vec<&str> = plan.cases.iter().map(|case| case.name.as_str()).collect();
        let tags: Vec<&str> = plan.cases.iter().flat_map(|case| &case.tags).map(String::as_str).collect();
        let like = |words: &[String], known: &[&str], flag: &str| {
            let word = words.iter().find(|word| !known.contains(&word.as_str()))?;
            suggest::nearest(word, known.iter().copied()).map(|near| format!("{flag} {near}"))
        };
        like(&self.cases, &cases, "--case").or_else(|| like(&self.tags, &tags, "--tag"))
    }

    /// As they were typed, for a message that nothing is selected.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let tags = self.tags.iter().map(|tag| format!("--tag {tag}"));
        let cases = self.cases.iter().map(|case| format!("--case {case}"));
        let expressions = self.expressions.iter().map(|one| format!("-E '{}'", one.text()));
        tags.chain(cases).chain(expressions).collect()
    }
}
