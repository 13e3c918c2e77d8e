//! Whether all jobs of a case failed in the same way: then the launcher, the image or the tool is broken, and no node is.
//! Pure: from how jobs ended and the last lines that they printed to what they share.

use super::CaseData;
use super::ending::STEP_NOT_STARTED_NEXT;
use super::gate::Gate;
use base::nodeset;
use model::artefact::{
    CaseVerdict, CommonFailure, Ended, JobOutcome, JobRecord, MPI_REFUSED, PlannedCase, STEP_NOT_STARTED,
};
use std::collections::{BTreeMap, BTreeSet};

/// A job that was tried and failed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FailedJob<'a> {
    /// The nodes it was planned on.
    pub nodes: &'a [String],
    /// The node that its launcher or its workload names.
    pub named: Option<&'a str>,
    /// How it ended, as a cause.
    pub cause: &'a str,
    /// The last lines that its tools printed.
    pub last_lines: &'a [String],
    /// It never came to a node: sbatch refused it, or its folder could not be filled.
    pub refused: bool,
}

/// The last lines that all jobs share, one of each kind; nothing where they did not fail in the same way, or where a
/// single node is in all of them.
pub(crate) fn shared_by<'a>(jobs: &[FailedJob<'a>]) -> Option<Vec<&'a str>> {
    let (first, rest) = jobs.split_first()?;
    let is_alike = rest.iter().all(|job| job.cause == first.cause);
    let all_refused = jobs.iter().all(|job| job.refused);
    if !is_alike || (rest.is_empty() && !all_refused) || (!all_refused && one_node_has_all(jobs)) {
        return None;
    }
    let names: BTreeSet<&str> = jobs.iter().flat_map(|job| job.nodes).map(String::as_str).collect();
    let kinds = |job: &FailedJob| -> BTreeSet<String> {
        job.last_lines.iter().map(|line| normalised(line, &names)).collect()
    };
    // Where its output stops says nothing about a hang.
    let silent = jobs.iter().all(|job| job.last_lines.is_empty()) || HANGS.contains(&first.cause);
    let common = rest.iter().fold(kinds(first), |all, job| &all & &kinds(job));
    if !silent && common.is_empty() {
        return None;
    }
    let mut listed = BTreeSet::new();
    let is_common = |line: &&String| {
        let kind = normalised(line, &names);
        (silent || common.contains(&kind)) && listed.insert(kind)
    };
    Some(first.last_lines.iter().filter(is_common).map(String::as_str).collect())
}

/// Endings of jobs that went on without end.
pub const HANGS: [&str; 2] = ["hang", "stall"];

/// Whether all failures can be those of one node: it alone is in all jobs, or all name it.
fn one_node_has_all(jobs: &[FailedJob]) -> bool {
    let nodes = |job: &FailedJob| -> BTreeSet<String> { job.nodes.iter().cloned().collect() };
    let mut sets = jobs.iter().map(nodes);
    let first = sets.next().unwrap_or_default();
    let in_all = sets.fold(first, |all, more| &all & &more);
    let named: BTreeSet<Option<&str>> = jobs.iter().map(|job| job.named).collect();
    in_all.len() == 1 || (named.len() == 1 && named.iter().all(Option::is_some))
}

/// A line without what differs from node to node: names, ranks, numbers, paths.
pub fn normalised(line: &str, nodes: &BTreeSet<&str>) -> String {
    let word = |word: &str| {
        let bare = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let host = bare.split(['.', ':']).next().unwrap_or_default();
        if nodes.contains(bare) || nodes.contains(host) {
            return word.replacen(if nodes.contains(bare) { bare } else { host }, "NODE", 1);
        }
        match word.contains('/') {
            true => "PATH".to_owned(),
            false => word.to_owned(),
        }
    };
    let words: Vec<String> = line.split_whitespace().map(word).collect();
    let mut text = String::new();
    for c in words.join(" ").chars() {
        match c {
            '0'..='9' if text.ends_with('#') => {}
            '0'..='9' => text.push('#'),
            c => text.extend(c.to_lowercase()),
        }
    }
    text
}

/// What all jobs of a case that were tried failed by, if they failed alike.
pub(crate) fn find(data: &CaseData, gates: &BTreeMap<&str, Gate>) -> Option<CommonFailure> {
    let mut failed = Vec::new();
    for record in data.jobs.jobs.iter().filter(|record| was_tried(&record.end)) {
        let planned = data.case.jobs.iter().find(|planned| planned.name == record.name)?;
        let Some(Gate::Error { cause, .. }) = gates.get(record.name.as_str()) else { return None };
        let analysis = data.analysis.jobs.get(&record.name);
        failed.push(FailedJob {
            nodes: &planned.nodes,
            named: named(record, analysis.and_then(|analysis| analysis.failure.as_ref()?.node.as_deref())),
            cause,
            last_lines: analysis.map(|analysis| analysis.last_words.as_slice()).unwrap_or_default(),
            refused: is_refused(record) || [MPI_REFUSED, STEP_NOT_STARTED].contains(&cause.as_str()),
        });
    }
    let words = shared_by(&failed)?;
    let nodes: Vec<&String> =
        failed.iter().flat_map(|job| job.nodes).collect::<BTreeSet<_>>().into_iter().collect();
    let first = failed.first()?;
    let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    Some(CommonFailure {
        case: data.case.name.clone(),
        jobs: failed.len() as u32,
        nodes: nodeset::fold(&nodes),
        cause: first.cause.to_owned(),
        check: check(first.cause, &words, data.case).to_owned(),
        words,
        expected: data.case.must_end.is_some() || data.case.expected_failure.is_some(),
    })
}

fn named<'a>(record: &'a JobRecord, by_workload: Option<&'a str>) -> Option<&'a str> {
    record.blamed.as_ref().map(|blamed| blamed.node.as_str()).or(by_workload)
}

/// Whether it failed before any node had to do with it.
pub(crate) fn is_refused(record: &JobRecord) -> bool {
    matches!(record.end, Ended::LaunchFailed { .. } | Ended::FolderFailed { .. }) && record.blamed.is_none()
}

/// Whether its ending says anything about the launcher: it was neither stopped nor held back.
fn was_tried(end: &Ended) -> bool {
    !matches!(
        end,
        Ended::NotRun { .. }
            | Ended::LeftOut { .. }
            | Ended::Interrupted { .. }
            | Ended::Cancelled
            | Ended::Preempted
            | Ended::Requeued { .. }
            | Ended::AllocationOver { .. }
            | Ended::Deadline
    )
}

/// The one that ended a run.
pub fn ends_run<'a>(cases: impl IntoIterator<Item = &'a CaseVerdict>) -> Option<&'a CommonFailure> {
    cases.into_iter().filter_map(|case| case.common_failure.as_ref()).find(|failure| !failure.expected)
}

/// Takes out what failed by the same cause in other cases: one that was cut short may have had a single job by then.
pub fn clear(outcomes: &mut Vec<JobOutcome>, failure: Option<&CommonFailure>) {
    let is_common = |outcome: &JobOutcome| {
        failure.zip(outcome.bad.as_ref()).is_some_and(|(failure, bad)| bad.cause == failure.cause)
    };
    outcomes.retain(|outcome| !is_common(outcome));
}

/// The same for what a run before this rule had stored: the cause that all jobs of a case share.
pub(crate) fn find_in_outcomes(outcomes: &[JobOutcome]) -> Option<&str> {
    let mut words: Vec<Vec<String>> = Vec::new();
    for outcome in outcomes {
        words.push(vec![outcome.bad.as_ref()?.evidence.clone()]);
    }
    let mut failed = Vec::new();
    for (outcome, words) in outcomes.iter().zip(&words) {
        let bad = outcome.bad.as_ref()?;
        failed.push(FailedJob {
            nodes: &outcome.nodes,
            named: bad.node.as_deref(),
            cause: &bad.cause,
            last_lines: words,
            refused: bad.cause == "launch-failed" && bad.node.is_none(),
        });
    }
    shared_by(&failed)?;
    outcomes.first()?.bad.as_ref().map(|bad| bad.cause.as_str())
}

/// What to look at first, by what the tools said.
fn check(cause: &str, words: &[String], case: &PlannedCase) -> &'static str {
    let says = |signs: &[&str]| words.iter().any(|line| signs.iter().any(|sign| line.contains(sign)));
    if cause == STEP_NOT_STARTED {
        STEP_NOT_STARTED_NEXT
    } else if says(&[
        "Unable to contact slurm controller",
        "Socket timed out",
        "Unable to establish controller",
    ]) {
        "`sinfo` on this machine: slurmctld may be down, or slurm.conf may not be the cluster's"
    } else if says(&["unrecognized option '--overlap'"]) {
        "jobs need Slurm 20.11 or newer: `sinfo --version`"
    } else if says(&["generic resource", "(gres)"]) {
        "`sinfo -o %G`: this Slurm has no such GRES; see `gpus` in [reach] of the inventory"
    } else if says(&["account", "QOS", "qos", "partition", "Partition"]) {
        "partition, account and QOS of the inventory: `sacctmgr show assoc user=$USER`, `scontrol show partition`"
    } else if says(&["container.sh: ", "no container on "]) {
        "the command at the end of that line, on one node"
    } else if says(&["MPI_Init", "MPI_INIT", "PMI", "MPI type", "direct launched"]) {
        "`srun --mpi=list` and the MPI that the programs were built with; `mpi` in [reach] of the inventory"
    } else if says(&["pyxis", "enroot", "container"]) {
        "`srun --container-image=IMAGE true` by hand: image name, registry password, free space"
    } else if says(&[
        "No such file or directory",
        "command not found",
        "error while loading shared libraries",
    ]) {
        "[paths] of the inventory, and LD_LIBRARY_PATH of the jobs"
    } else if HANGS.contains(&cause) {
        match case.properties.limit_s {
            0..60 => "`limit_s` of the case, which is short; then the last output lines of the jobs",
            _ => "the last output lines of the jobs; OMPI_MCA_btl_tcp_if_exclude and NCCL_SOCKET_IFNAME",
        }
    } else if cause == "launch-failed" {
        "`harness plan`, and the command of its first job by hand"
    } else {
        "stderr of the jobs, and the command of the first of them by hand on one node"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::artefact::{Bad, WorkKind};

    struct Made(Vec<String>, Option<&'static str>, &'static str, Vec<String>, bool);

    fn job(nodes: &str, cause: &'static str, words: &str) -> Made {
        let list =
            |text: &str, by: char| text.split(by).filter(|one| !one.is_empty()).map(str::to_owned).collect();
        Made(list(nodes, ' '), None, cause, list(words, '\n'), false)
    }

    fn named(node: &'static str, made: Made) -> Made {
        Made(made.0, Some(node), made.2, made.3, made.4)
    }

    fn refused(made: Made) -> Made {
        Made(made.0, made.1, made.2, made.3, true)
    }

    fn shared(jobs: &[Made]) -> Option<String> {
        let jobs: Vec<FailedJob> = jobs
            .iter()
            .map(|Made(nodes, named, cause, words, refused)| FailedJob {
                nodes,
                named: *named,
                cause,
                last_lines: words,
                refused: *refused,
            })
            .collect();
        shared_by(&jobs).map(|words| words.join("|"))
    }

    #[test]
    fn the_same_last_lines_on_other_nodes_are_the_same_failure() {
        let on = |node: &str, rank: u32| {
            job(
                node,
                "exit 1",
                &format!(
                    "[{node}:{}] Local abort of rank {rank} in /fsx/{rank}/x\nSegmentation on {node}.local",
                    rank * 77
                ),
            )
        };
        let lines = shared(&[on("n1", 1), on("n2", 20)]).expect("the same");
        assert!(lines.starts_with("[n1:77] Local abort of rank 1"), "{lines}");
        for (name, jobs, is_common) in [
            ("other words", vec![job("n1", "exit 1", "no GPU"), job("n2", "exit 1", "no NIC")], false),
            ("other endings", vec![job("n1", "exit 1", "x"), job("n2", "exit 2", "x")], false),
            (
                "one common line is enough",
                vec![job("n1", "exit 1", "a\nb"), job("n2", "exit 1", "c\nb")],
                true,
            ),
            ("no words", vec![job("n1", "exit 1", ""), job("n2", "exit 1", "")], true),
            ("words on one side only", vec![job("n1", "exit 1", ""), job("n2", "exit 1", "x")], false),
            (
                "hangs, wherever they stop",
                vec![job("n1", "hang", "row 1"), job("n2", "hang", "line 9")],
                true,
            ),
            ("one job", vec![job("n1", "exit 1", "x")], false),
            ("one job on all nodes", vec![job("n1 n2", "exit 1", "x")], false),
            ("one job that sbatch refused", vec![refused(job("n1", "launch-failed", "no"))], true),
            ("one node in all", vec![job("n1 n2", "hang", ""), job("n2 n3", "hang", "")], false),
            ("the same two nodes, repeated", vec![job("n1 n2", "hang", ""), job("n1 n2", "hang", "")], true),
            (
                "all name the same node",
                vec![named("n1", job("n1 n2", "rank-died", "")), named("n1", job("n1 n2", "rank-died", ""))],
                false,
            ),
            ("nothing was tried", vec![], false),
        ] {
            assert_eq!(shared(&jobs).is_some(), is_common, "{name}");
        }
    }

    #[test]
    fn one_stored_job_is_a_failure_of_all_only_where_sbatch_refused_it_and_no_node_is_named() {
        let stored = |cause: &str, node: Option<&str>| JobOutcome {
            case: "c".into(),
            kind: WorkKind::Collective,
            job: "j".into(),
            nodes: vec!["n1".into(), "n2".into()],
            bad: Some(Bad { cause: cause.into(), node: node.map(str::to_owned), evidence: "x".into() }),
            judged: BTreeMap::new(),
            worst: Default::default(),
        };
        assert_eq!(find_in_outcomes(&[stored("launch-failed", None)]), Some("launch-failed"));
        assert_eq!(find_in_outcomes(&[stored("launch-failed", Some("n1"))]), None);
        assert_eq!(find_in_outcomes(&[stored("exit 1", None)]), None);
    }

    #[test]
    fn what_ended_the_run_blames_no_node_in_a_case_that_was_cut_short() {
        let outcome = |node: &str, cause: Option<&str>| JobOutcome {
            case: "second".into(),
            kind: WorkKind::Collective,
            job: node.into(),
            nodes: vec![node.into()],
            bad: cause.map(|cause| Bad {
                cause: cause.into(),
                node: Some(node.into()),
                evidence: String::new(),
            }),
            judged: BTreeMap::new(),
            worst: Default::default(),
        };
        let failure = CommonFailure {
            case: "first".into(),
            jobs: 2,
            nodes: "n[1-2]".into(),
            cause: "rank-failed".into(),
            words: Vec::new(),
            check: String::new(),
            expected: false,
        };
        let all = [outcome("n1", Some("rank-failed")), outcome("n2", Some("NODE_FAIL")), outcome("n3", None)];
        let mut cleared = all.to_vec();
        clear(&mut cleared, None);
        assert_eq!(cleared, all);
        clear(&mut cleared, Some(&failure));
        assert_eq!(cleared, all[1..]);
    }

    #[test]
    fn names_numbers_and_paths_do_not_make_lines_differ() {
        let nodes = BTreeSet::from(["p5-001", "ip-10-1-2-3"]);
        for (line, kind) in [
            ("srun: error: p5-001: task 12: Exited", "srun: error: NODE: task #: exited"),
            ("[ip-10-1-2-3:4711] at  /opt/x/y  0x7f", "[NODE:#] at PATH #x#f"),
            ("", ""),
        ] {
            assert_eq!(
                normalised(line, &nodes).replace("node", "NODE").replace("path", "PATH"),
                kind,
                "{line}"
            );
        }
    }
}
