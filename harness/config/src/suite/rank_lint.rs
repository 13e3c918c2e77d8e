//! Assertions that compare all ranks of a job with each other, in a case whose profile leaves some of them out.

use super::{Case, Placement, Suite};
use crate::diagnostic::Diagnostic;
use job::profile::Ranks;
use metric::Role;
use recipes::recipe;
use std::collections::BTreeSet;

/// A warning for each: a rank that is late and not profiled is not seen, so that the verdict is often inconclusive.
pub fn lint(suite: &Suite) -> Vec<Diagnostic> {
    let mut warnings = Vec::new();
    // Cases of one matrix have the same assertions.
    let mut lines: BTreeSet<usize> = BTreeSet::new();
    for case in suite.cases.iter().filter(|case| leaves_ranks_out(case)) {
        for assertion in &case.assertions {
            if recipe::has_role(&assertion.metric, Role::ComparesRanks) && lines.insert(assertion.line) {
                let message = format!(
                    "case `{}`: `{}` compares the ranks that are profiled, and not all of them are",
                    case.name, assertion.metric
                );
                let warning = Diagnostic::at(&suite.file, assertion.line, 1, message);
                warnings.push(warning.suggest("write `ranks = \"all\"` in `profile` of the case"));
            }
        }
    }
    warnings
}

/// One session of nsys sees all ranks of a node that one task starts.
fn leaves_ranks_out(case: &Case) -> bool {
    let Some(profile) = &case.profile else { return false };
    let tasks = match case.placement {
        _ if case.workload.starts_task_per_gpu() => None,
        Placement::Each => Some(1),
        Placement::Pairs => Some(2),
        Placement::Nodes(nodes) | Placement::Groups(nodes) => Some(nodes.max(1)),
        Placement::All | Placement::EachGpu => None,
    };
    match &profile.ranks {
        Ranks::All | Ranks::Every(1) => false,
        Ranks::OnePerNode => case.workload.starts_task_per_gpu(),
        Ranks::Every(_) => tasks != Some(1),
        Ranks::List(ranks) => tasks.is_none_or(|tasks| (0..tasks).any(|task| !ranks.contains(&task))),
        Ranks::None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recipes::catalogue::Catalogue;

    const NEMO: &str = "kind = \"nemo\", form = \"nemo1\", steps = 20, global_batch = 32, model = { parameters = 15_600_000_000, \
                        layers = 32, hidden = 6144, intermediate = 24_576, heads = 48, key_value_heads = 8, \
                        sequence = 4096, vocabulary = 256_000 }";
    const TORCHRUN: &str = "kind = \"torchrun\", script = \"train.py\"";

    fn linted(placement: &str, workload: &str, profile: &str) -> Vec<String> {
        let text = format!(
            "instance = \"p5\"\nabout = \"x\"\n[[case]]\nname = \"late\"\nplacement = {placement}\n\
             recipes = [\"stragglers\"]\nworkload = {{ {workload} }}\nprofile = {{ {profile} }}\n\
             [[case.assert]]\nmetric = \"straggler.late_share\"\nper = \"node\"\nat_most = \"1 %\"\n\
             [[case.assert]]\nmetric = \"clock.residual\"\nper = \"node\"\nat_most = \"100 us\"\n"
        );
        let suite = Suite::read(&text, "suites/x.toml", &Catalogue::built_in()).expect("a suite");
        lint(&suite).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_assertion_on_stragglers_without_all_ranks_is_reported_with_its_line_and_the_key() {
        let warning = "suites/x.toml:9:1: case `late`: `straggler.late_share` compares the ranks that are profiled, and \
                       not all of them are; write `ranks = \"all\"` in `profile` of the case";
        for (placement, workload, profile) in [
            ("2", NEMO, "keep = \"on-failure\""),
            (
                "\"all\"",
                "kind = \"nccl-tests\", op = \"all_reduce\", from = \"1GiB\", to = \"1GiB\"",
                "ranks = \"one-per-node\"",
            ),
            ("\"each\"", NEMO, "ranks = \"rank0\""),
            ("2", TORCHRUN, "ranks = \"rank0\""),
            ("\"all\"", TORCHRUN, "ranks = [0, 1]"),
            ("2", TORCHRUN, "ranks = \"every 8\""),
            ("2", "kind = \"command\", program = \"x\", tasks_per_node = 8", "keep = \"always\""),
        ] {
            assert_eq!(linted(placement, workload, profile), [warning], "{workload} {profile}");
        }
    }

    #[test]
    fn sessions_that_see_all_ranks_are_not_reported() {
        for (placement, workload, profile) in [
            ("2", NEMO, "ranks = \"all\""),
            ("2", NEMO, "ranks = \"every 1\""),
            // One task starts all processes of its node.
            ("\"all\"", TORCHRUN, "keep = \"on-failure\""),
            ("2", TORCHRUN, "ranks = [0, 1]"),
            ("\"each\"", TORCHRUN, "ranks = \"rank0\""),
            ("\"each\"", "kind = \"command\", program = \"x\"", "keep = \"always\""),
        ] {
            assert_eq!(linted(placement, workload, profile), [] as [String; 0], "{workload} {profile}");
        }
    }
}
