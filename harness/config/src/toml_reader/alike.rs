//! Words that people bring along from other programs, and what is written here instead. They are errors; the suggestion
//! names the right word.

/// The key as typed, a key that the table must know for the suggestion to hold, and the suggestion.
const KEYS: [(&str, &str, &str); 16] = [
    ("timeout", "limit_s", "write `limit_s`, in seconds"),
    ("timeout_s", "limit_s", "write `limit_s`, in seconds"),
    ("time_limit", "limit_s", "write `limit_s`, in seconds"),
    ("retries", "retry_infrastructure", "write `retry_infrastructure = 1`"),
    ("retry", "retry_infrastructure", "write `retry_infrastructure = 1`"),
    ("env", "workload", "write it into the workload: `workload.environment`"),
    ("environment", "workload", "write it into the workload: `workload.environment`"),
    ("env", "environment", "write `environment`"),
    ("min", "assert", "write `at_least` into a `[[case.assert]]`"),
    ("max", "assert", "write `at_most` into a `[[case.assert]]`"),
    ("tolerance", "assert", "write `spread`, or `within_peers`, into a `[[case.assert]]`"),
    ("expect", "assert", "write `[[case.assert]]`"),
    ("min", "at_least", "write `at_least`"),
    ("max", "at_most", "write `at_most`"),
    (
        "tolerance",
        "spread",
        "write `spread`, the largest share by which repeats may differ, or `within_peers`",
    ),
    ("threshold", "at_least", "write `at_least` or `at_most`"),
];

/// The key, the value as typed, and the suggestion.
const VALUES: [(&str, &str, &str); 3] = [
    (
        "via",
        "kubernetes",
        "Kubernetes is not supported yet; nodes that allow ssh are reached with `via = \"ssh\"`",
    ),
    ("via", "k8s", "Kubernetes is not supported yet; nodes that allow ssh are reached with `via = \"ssh\"`"),
    ("via", "eks", "Kubernetes is not supported yet; nodes that allow ssh are reached with `via = \"ssh\"`"),
];

/// What to write instead of an unknown key, in a table that has these keys.
pub(super) fn key(typed: &str, known: &[&str]) -> Option<&'static str> {
    let found = KEYS.iter().find(|(word, needed, _)| *word == typed && known.contains(needed));
    found.map(|(_, _, suggestion)| *suggestion)
}

/// What to write instead of an unknown value of a key.
pub(super) fn value(key: &str, typed: &str) -> Option<&'static str> {
    let found = VALUES.iter().find(|(of, word, _)| *of == key && *word == typed);
    found.map(|(_, _, suggestion)| *suggestion)
}
