//! Words that people bring along from other programs, and what is written here instead. They are errors; the suggestion
//! names the right word.

/// The key as typed, a key that the table must know for the suggestion to hold, and the suggestion.
const KEYS: [(&str, &str, &str); 45] = [
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
    ("nodes", "requires", "write `requires = { min_nodes = 2 }`"),
    ("min_nodes", "requires", "write `requires = { min_nodes = 2 }`"),
    ("depends_on", "after", "write `after`"),
    ("depends", "after", "write `after`"),
    ("needs", "after", "write `after`"),
    ("iters", "iterations", "write `iterations`"),
    ("itres", "iterations", "write `iterations`"),
    ("min", "from", "write `from`"),
    ("max", "to", "write `to`"),
    ("baseline", "against", "write `against = \"baseline\"`"),
    ("expected", "equals", "write `equals`"),
    ("assert", "case", "write `[[case.assert]]`"),
    ("hosts", "nodes", "write `nodes`"),
    ("launcher", "reach", "write `reach = { via = \"slurm\" }`, or `\"ssh\"`, or `\"kubernetes\"`"),
    ("queue", "partition", "write `partition`"),
    ("gres", "gpus", "write `gpus`"),
    ("gers", "gpus", "write `gpus`"),
    ("key", "config", "write `config`, a configuration of ssh that names it"),
    ("partition", "heartbeat_timeout_s", "only `via = \"slurm\"` has it"),
    ("partition", "reach", "write it into `[reach]`"),
    ("account", "reach", "write it into `[reach]`"),
    ("qos", "reach", "write it into `[reach]`"),
    ("via", "reach", "write it into `[reach]`"),
    ("user", "reach", "write it into `[reach]`"),
    ("login", "reach", "write it into `[reach]`"),
    ("shared", "paths", "write it into `[paths]`"),
    ("nccl_tests", "paths", "write it into `[paths]`"),
    ("mpirun", "paths", "write it into `[paths]`"),
    ("image", "container", "write it into `[container]`"),
];

/// Keys that must stand, and how they are written.
const EXAMPLES: [(&str, &str); 13] = [
    ("about", "write `about = \"what it shows\"`"),
    ("instance", "write `instance = \"p5\"`"),
    ("case", "write `[[case]]`"),
    ("name", "write `name = \"one\"`"),
    ("placement", "write `placement = \"each\"`, or `\"pairs\"`, or `\"all\"`"),
    ("metric", "write `metric = \"nccl.busbw\"`"),
    ("from", "write `from = \"1GiB\"`"),
    ("to", "write `to = \"1GiB\"`"),
    ("nodes", "write `nodes = \"n[1-4]\"`"),
    ("shared", "write `shared = \"/fsx/harness\"`, a folder that all nodes see"),
    ("via", "write `via = \"slurm\"`, or `\"ssh\"`, or `\"kubernetes\"`"),
    ("image", "write `image = \"REGISTRY/IMAGE:TAG\"`"),
    ("recipes", "write `recipes = [\"nccl_tests\"]`, or the recipes that give the metrics"),
];

/// The key, the value as typed, and the suggestion.
const VALUES: [(&str, &str, &str); 2] =
    [("via", "k8s", "write `via = \"kubernetes\"`"), ("via", "eks", "write `via = \"kubernetes\"`")];

/// What to write instead of an unknown key, in a table that has these keys.
pub(super) fn key(typed: &str, known: &[&str]) -> Option<&'static str> {
    let found = KEYS.iter().find(|(word, needed, _)| *word == typed && known.contains(needed));
    found.map(|(_, _, suggestion)| *suggestion)
}

/// How a missing key is written.
pub(super) fn example(key: &str) -> Option<&'static str> {
    EXAMPLES.iter().find(|(name, _)| *name == key).map(|(_, example)| *example)
}

/// What to write instead of an unknown value of a key.
pub(super) fn value(key: &str, typed: &str) -> Option<&'static str> {
    let found = VALUES.iter().find(|(of, word, _)| *of == key && *word == typed);
    found.map(|(_, _, suggestion)| *suggestion)
}
