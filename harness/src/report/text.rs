//! Names and subjects, as the reports show them.

use base::text::show;
use metric::finding::Finding;
use model::artefact::Verdict;

/// The part of an assertion's name after suite and case.
pub(crate) fn own_name<'a>(name: &'a str, suite: &str, case: &str) -> &'a str {
    name.strip_prefix(suite)
        .and_then(|rest| rest.strip_prefix("::"))
        .and_then(|rest| rest.strip_prefix(case))
        .and_then(|rest| rest.strip_prefix("::"))
        .unwrap_or(name)
}

/// The number of a part that is a GPU; every other part is a NIC.
pub(crate) fn gpu_of(part: &str) -> Option<&str> {
    let number = part.strip_prefix("gpu")?;
    (!number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())).then_some(number)
}

/// What a verdict is about: a part of a node, a node, or a set of nodes.
pub(crate) fn subject(verdict: &Verdict) -> String {
    match (&verdict.node, &verdict.part) {
        (Some(node), Some(part)) => show(&format!("{node} {part}")),
        (Some(node), None) => show(node),
        (None, Some(part)) => show(&format!("{} {part}", verdict.nodes)),
        (None, None) => show(&verdict.nodes),
    }
}

/// The node and part of a finding, with a blank after each; empty if it concerns the whole case.
pub(crate) fn place(finding: &Finding) -> String {
    let words = [&finding.node, &finding.part].into_iter().flatten();
    words.map(|word| show(word) + " ").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_suite_and_case_and_nothing_else() {
        assert_eq!(own_name("s::c::busbw@p5-001", "s", "c"), "busbw@p5-001");
        assert_eq!(own_name("s::c::a::b", "s", "c"), "a::b");
        assert_eq!(own_name("other", "s", "c"), "other");
    }
}
