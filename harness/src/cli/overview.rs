//! `harness --help`: every verb in one line, by what it is for.

use model::exit_code;

const HEAD: &str = "\
Checks whether the nodes of a GPU cluster are good, and names the faulty component if not.
Usage: harness VERB [OPTIONS], or harness --suite NAME [OPTIONS] [FILTER], the same as `harness run`
";

const TAIL: &str = "
`harness help VERB` describes a verb. Exit codes: 0 passed, 1 failed, 2 wrong usage, 3 inconclusive, 4 nothing selected,
5 still pending, 130 interrupted; all of them: `harness help run`.
";

/// The verbs by what they are for, each line with a few words.
pub(super) const GROUPS: [(&str, &[(&str, &str)]); 6] = [
    (
        "Run",
        &[
            ("run", "run suites, judge every number, name the faulty component"),
            ("plan, manifest", "print what a run would launch; the same as a job for Kubernetes"),
            ("list", "suites, inventories, instances, baselines; with --suite assertions"),
            ("check", "lint every file of the project, offline"),
            ("resume, rerun", "go on with a run that was ended; repeat what failed or was inconclusive"),
            ("replay", "judge a stored run again, without a cluster"),
        ],
    ),
    (
        "Find",
        &[
            ("isolate", "find the faulty component with few short runs"),
            ("bisect", "find the setting, version or image that made a case slower"),
            ("accept", "accept or reject new nodes, with a certificate"),
            ("explain", "what the code of a culprit means, and what to do"),
            ("observe", "stragglers and sinking bandwidth of running jobs, without a profiler"),
            ("watch-fleet", "check idle nodes for months, within a budget, and report what fell"),
            ("history", "how a metric changed from run to run; suspects"),
            ("compare", "what is worse in one run than in another"),
        ],
    ),
    (
        "Runs",
        &[
            ("runs", "list, show and prune stored runs"),
            ("watch", "show a run that goes on, from another terminal"),
            ("page, site", "a stored run as one page of HTML; a folder of runs as a site"),
            ("bundle, rma", "pack a run into one file; the evidence about a part, for its vendor"),
            ("publish, fetch", "send a run to an object store, and bring it back"),
            ("clean", "end the leftovers of a run on its nodes and in the queue"),
        ],
    ),
    (
        "Decide",
        &[
            ("baseline", "propose, review, accept, show, diff, lint, export and import baselines"),
            ("predict", "bus bandwidth to expect before any baseline exists, with its error"),
        ],
    ),
    (
        "Profiles",
        &[
            ("diagnose", "what limits the work in profiler reports, the largest effect first"),
            ("recipe", "tables and pages computed from profiler reports"),
            ("trace", "one window of all ranks as a trace for Perfetto"),
            ("stats", "tables of statistics of profiler reports"),
            ("logs", "calls, steps and counters of logs"),
            ("lint", "errors in scripts and manifests that launch jobs"),
        ],
    ),
    (
        "Set up",
        &[
            ("init", "write a project into this folder"),
            ("inventory", "discover, probe and diff the nodes of a cluster"),
            ("field-kit", "check what the harness assumes of a cluster"),
            ("provision", "unpack programs that jobs need"),
            ("schema, man", "JSON Schemas of the files of a project; manual pages"),
            ("completions", "completion of verbs and flags in a shell"),
            ("sweep", "random suites and faults on simulated clusters"),
        ],
    ),
];

/// All of it, at most 40 lines.
pub(super) fn text() -> String {
    let mut text = HEAD.to_owned();
    for (group, verbs) in GROUPS {
        for (at, (verb, about)) in verbs.iter().enumerate() {
            let group = if at == 0 { group } else { "" };
            text.push_str(&format!("{group:<9} {verb:<14} {about}\n"));
        }
    }
    text + TAIL
}

/// For the exit code of whoever asked for it.
pub(super) fn print() -> i32 {
    print!("{}", text());
    exit_code::PASSED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_overview_has_at_most_40_lines_and_each_verb_once() {
        let text = text();
        assert!(text.lines().count() <= 40, "{} lines", text.lines().count());
        let verbs = GROUPS.iter().flat_map(|(_, verbs)| verbs.iter()).map(|(verb, _)| *verb);
        let mut listed: Vec<&str> = verbs.flat_map(|verbs| verbs.split(", ")).collect();
        listed.sort_unstable();
        let mut known = super::super::verbs::names();
        known.sort();
        assert_eq!(listed, known);
    }
}
