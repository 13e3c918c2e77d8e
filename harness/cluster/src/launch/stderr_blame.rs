//! The node that srun, slurmstepd, mpirun and shells blame in a job's stderr, with their message as evidence.
//! Pure: text in, blame out. The workload's own account is read by the recipes.

use crate::reach::slurm_refusal::next_step;
use base::nodeset;
use base::text::shorten;
use job::script::{AGENT_NO_MPIRUN, AGENT_SAYS, CONTAINER_SAYS, NO_TORCH};
use logs::slurmstepd;
use logs::stream::Pieces;
use model::artefact::{
    CONTAINER_FAILED, CREDENTIAL_EXPIRED, DISK_FULL, DISK_QUOTA, MPI_REFUSED, STEP_NOT_STARTED, TOOL_MISSING,
    WorkloadFailure,
};
use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;

/// What the files of a job blame, read line by line.
pub struct Blame<'a> {
    nodes: &'a [String],
    lost: Option<WorkloadFailure>,
    first: Option<WorkloadFailure>,
    /// Nodes whose tasks ended by themselves, by how they did.
    ended: BTreeMap<&'static str, BTreeSet<String>>,
    full_disk: Option<String>,
    missing_tool: Option<String>,
    quota: Option<String>,
    of_node: Option<WorkloadFailure>,
    in_pods: bool,
    of_agent: Option<WorkloadFailure>,
}

impl<'a> Blame<'a> {
    /// `nodes` are those of the job: no others can be blamed.
    pub fn new(nodes: &'a [String]) -> Self {
        Blame {
            nodes,
            lost: None,
            first: None,
            ended: BTreeMap::new(),
            full_disk: None,
            missing_tool: None,
            quota: None,
            of_node: None,
            in_pods: false,
            of_agent: None,
        }
    }

    /// The job ran in pods: these end for many reasons, and one that is lost says nothing about its node.
    #[must_use]
    pub fn in_pods(mut self) -> Self {
        self.in_pods = true;
        self
    }

    fn only_node(&self) -> Option<&'a str> {
        match self.nodes {
            [node] => Some(node),
            _ => None,
        }
    }

    /// Reads a file as far as it can be read; `node` alone wrote it.
    pub fn read(&mut self, from: impl BufRead, node: Option<&str>) {
        let mut pieces = Pieces::new(from);
        while let Ok(Some(piece)) = pieces.next_piece() {
            self.line(&piece.plain(), node);
        }
    }

    fn line(&mut self, line: &str, node: Option<&str>) {
        let evidence = || shorten(line.trim(), 300);
        // Both say more than srun's line on the exit code that comes of it.
        let place = node.or(self.only_node()).filter(|node| !line.contains(*node));
        let at_place = |words: &str| {
            place.map(|node| format!("{node}: ")).unwrap_or_default() + &shorten(words.trim(), 300)
        };
        // Its node is known by who ended first.
        if let Some(what) = line.strip_prefix(CONTAINER_SAYS) {
            let what = shorten(what.trim(), 300);
            self.of_agent.get_or_insert_with(|| unattributed(CONTAINER_FAILED, what));
            return;
        }
        if line.contains(NO_SPACE) {
            self.full_disk.get_or_insert_with(|| at_place(line));
            return;
        }
        if is_missing_tool(line) {
            self.missing_tool.get_or_insert_with(|| at_place(without_script(line)));
            return;
        }
        if self.quota.is_none() && line.contains(QUOTA_EXCEEDED) {
            self.quota = Some(evidence());
        }
        if let Some(node) = node.filter(|_| self.of_node.is_none()) {
            // Bash reports a command that a signal ended so: `job.sh: line 21:  4711 Killed ...`.
            let of_shell = line.contains(".sh: line ").then(|| death(line)).flatten();
            self.of_node = of_shell.map(|cause| blame(cause, node, evidence()));
        }
        if let Some(what) = line.strip_prefix(AGENT_SAYS) {
            let cause = if what.starts_with(AGENT_NO_MPIRUN) { TOOL_MISSING } else { LAUNCH_AGENT };
            self.of_agent.get_or_insert_with(|| unattributed(cause, shorten(what.trim(), 300)));
            return;
        }
        if line.contains(INVALID_MPI) {
            self.of_agent.get_or_insert_with(|| unattributed(MPI_REFUSED, evidence()));
            return;
        }
        if REFUSED.iter().any(|begin| line.trim_start().starts_with(begin)) {
            let what = evidence() + &next_step(line);
            self.of_agent.get_or_insert_with(|| unattributed(LAUNCH_FAILED, what));
            return;
        }
        // srun names a node, and refuses the processors that were asked for.
        if line.contains(NO_LAYOUT) {
            self.of_agent.get_or_insert_with(|| unattributed(LAUNCH_FAILED, evidence()));
            return;
        }
        // The tasks of the other nodes are killed for it.
        if line.contains(EXPIRED) {
            let what = evidence() + &next_step(line);
            self.first.get_or_insert_with(|| unattributed(CREDENTIAL_EXPIRED, what));
            return;
        }
        let Some(cause) = cause_of(line) else { return };
        if cause == NODE_FAIL && self.in_pods {
            self.of_agent.get_or_insert_with(|| unattributed(POD_LOST, evidence()));
            return;
        }
        let mut named = self.listed(line);
        if named.len() < 2 {
            let node = recipes::recipe::nccl_tests::named_node(line, self.nodes);
            named = node.or_else(|| self.stepd_node(line)).into_iter().collect();
        }
        let failure = match named.as_slice() {
            [] => return,
            [node] => blame(cause, node, evidence()),
            // Which of them was first is not known.
            _ => unattributed(cause, evidence()),
        };
        if cause == NODE_FAIL {
            self.lost.get_or_insert_with(|| failure.clone());
        }
        self.first.get_or_insert(failure);
        if let Some(how) = own_end(line) {
            self.ended.entry(how).or_default().extend(named);
        }
    }

    /// srun folds nodes whose tasks ended alike: `srun: error: p5-[001-002]: tasks 0-15: Exited with exit code 1`.
    fn listed(&self, line: &str) -> Vec<String> {
        let list = line.split_once("srun: error: ").and_then(|(_, rest)| rest.split_once(": "));
        let listed = list.and_then(|(list, _)| nodeset::expand(list).ok()).unwrap_or_default();
        let short = |node: &String| node.split('.').next().unwrap_or_default().to_owned();
        let is_listed = |node: &&String| listed.contains(node) || listed.contains(&short(node));
        self.nodes.iter().filter(is_listed).cloned().collect()
    }

    /// Where the daemon of a step names its node: `slurmstepd-p5-001: error: ...`.
    fn stepd_node(&self, line: &str) -> Option<String> {
        let name = slurmstepd::parse_error(line)?.node?;
        let is_named = |node: &&String| *node == name || node.split('.').next() == Some(name);
        self.nodes.iter().find(is_named).cloned()
    }

    /// A quota of the user, then a node that was lost, then a full disk, then the first node that is named, then what a
    /// file of one node says. Quotas and full disks blame no node, nor does a missing program where tasks exited by it.
    pub fn failure(self) -> Option<WorkloadFailure> {
        if let Some(evidence) = self.quota {
            return Some(unattributed(DISK_QUOTA, evidence));
        }
        if let (None, Some(evidence)) = (&self.lost, self.full_disk) {
            return Some(unattributed(DISK_FULL, evidence));
        }
        // A rank that a signal ended is no matter of a program that some script lacks.
        let weak = |failure: &WorkloadFailure| {
            [RANK_FAILED, LAUNCH_FAILED].contains(&failure.cause.as_str())
                && death(&failure.evidence).is_none()
        };
        if let Some(evidence) = self.missing_tool
            && self.lost.is_none()
            && self.first.as_ref().is_none_or(weak)
            && self.of_node.is_none()
            && self.of_agent.is_none()
        {
            return Some(unattributed(TOOL_MISSING, evidence));
        }
        // When a node is lost, the tasks of the others are killed, and their lines may come first.
        let Some(first) = self.lost.or(self.first) else { return self.of_agent.or(self.of_node) };
        // Where the tasks of all nodes ended alike and by themselves, who is listed first is no proof.
        let nodes_like_first = own_end(&first.evidence).and_then(|how| self.ended.get(how));
        let is_of_all =
            nodes_like_first.is_some_and(|ended| self.nodes.iter().all(|node| ended.contains(node)));
        match self.nodes.len() > 1 && is_of_all {
            true => Some(WorkloadFailure { node: None, ..first }),
            false => Some(first),
        }
    }
}

fn blame(cause: &str, node: &str, evidence: String) -> WorkloadFailure {
    WorkloadFailure { cause: cause.to_owned(), node: Some(node.to_owned()), evidence }
}

fn unattributed(cause: &str, evidence: String) -> WorkloadFailure {
    WorkloadFailure { cause: cause.to_owned(), node: None, evidence }
}

const NODE_FAIL: &str = "NODE_FAIL";
/// Of no node, as the judge has them.
const LAUNCH_AGENT: &str = "launch-agent";
const POD_LOST: &str = "pod-lost";
/// The cause where a task exited with an exit code of its own, or aborted.
pub const RANK_FAILED: &str = "rank-failed";

const LAUNCH_FAILED: &str = "launch-failed";

/// Whether a failure with this cause is of no node, whatever else is known of the job.
pub fn is_of_no_node(cause: &str) -> bool {
    [CREDENTIAL_EXPIRED, DISK_QUOTA, DISK_FULL, MPI_REFUSED, STEP_NOT_STARTED, TOOL_MISSING].contains(&cause)
}

/// How srun refuses a step, of whose MPI it has no plugin.
const INVALID_MPI: &str = "srun: error: Invalid MPI type";

/// How srun refuses what it is given, before any node has a part in it: an option that its release or its plugins lack, or
/// two that contradict each other.
const REFUSED: [&str; 3] = ["srun: unrecognized option '", "srun: invalid option -- ", "srun: fatal: "];

/// How srun refuses tasks of which a node cannot have as many, or with as many processors each.
const NO_LAYOUT: &str = "Unable to layout tasks on given cpus";

/// How srun reports a node that took the permission of a step for too old: the controller or the network took minutes, or
/// clocks differ, and which of them is wrong this line does not say.
const EXPIRED: &str = "Job credential expired";

/// How slurmstepd, mpirun, shells and the loader say that a program or a library is not there.
fn is_missing_tool(line: &str) -> bool {
    let line = line.trim_end();
    let not_there = line.ends_with("No such file or directory");
    line.ends_with(": command not found")
        || (line.contains(".sh: line ") && line.contains(": exec: ") && line.ends_with(": not found"))
        // Of the first process of a container.
        || (line.starts_with("sh: ") && line.ends_with(": not found"))
        || line.starts_with(NO_TORCH)
        || line.contains("error while loading shared libraries: ")
        || line.contains("unable to find the specified executable file")
        || (not_there && (line.contains("execve(): ") || line.contains(".sh: line ")))
}

/// Without the place in a script that Bash puts before its words.
fn without_script(line: &str) -> &str {
    let words = line.split_once(".sh: line ").and_then(|(_, rest)| rest.split_once(": "));
    words.map_or(line, |(_, words)| words)
}

/// How the system calls it where a user or a group may write no more: it hits every node alike.
const QUOTA_EXCEEDED: &str = "Disk quota exceeded";

/// How the system calls it where nothing more can be written.
const NO_SPACE: &str = "No space left on device";

fn death(line: &str) -> Option<&'static str> {
    let lower = line.to_ascii_lowercase();
    let crashes = ["killed", "segmentation fault", "bus error"];
    let crash = crashes.iter().any(|crash| lower.contains(crash)).then_some("rank-died");
    // An abort is the program's own act, as an exit is: so ends who waited for a rank of another node.
    crash.or_else(|| lower.contains("aborted").then_some(RANK_FAILED))
}

/// As slurmstepd and srun write it; node names such as `room1-04` hold `oom`, too.
const OUT_OF_MEMORY: [&str; 5] = ["oom_kill", "oom-kill", "oom kill", "out of memory", "out-of-memory"];

/// How a task ended where nothing else ended it: srun itself sends SIGTERM and SIGKILL.
fn own_end(line: &str) -> Option<&'static str> {
    const ENDS: [&str; 6] = [
        "exited with exit code",
        "out of memory",
        "aborted",
        "segmentation fault",
        "bus error",
        "task launch for",
    ];
    let lower = line.to_ascii_lowercase();
    let is_of_task = lower.contains("srun: error: ") && lower.contains("task");
    ENDS.into_iter().find(|end| is_of_task && lower.contains(end))
}

/// The cause in a word, where the line is one that blames.
fn cause_of(line: &str) -> Option<&'static str> {
    let from_slurm = line.contains("srun: error:") || slurmstepd::parse_error(line).is_some();
    // mpirun names the first rank that a signal ended, whatever the signal; Open MPI 5 breaks the line before that.
    if line.contains("noticed that process rank") && line.contains("exited on") {
        return death(line).or(Some("rank-died"));
    }
    if line.trim_start().starts_with("Remote daemon:") {
        return Some(NODE_FAIL);
    }
    if !from_slurm {
        return None;
    }
    let lower = line.to_ascii_lowercase();
    // `JOB 7 ON n1 CANCELLED AT ... DUE TO TIME LIMIT` names the batch host, whichever node hangs: it blames no node.
    if lower.contains("cancelled at") && !lower.contains("node failure") {
        return None;
    }
    if lower.contains("node failure on") {
        Some(NODE_FAIL)
    } else if lower.contains("unable to create") || lower.contains("task launch") {
        Some(LAUNCH_FAILED)
    } else if OUT_OF_MEMORY.iter().any(|words| lower.contains(words)) {
        Some("out-of-memory")
    } else if let Some(cause) = death(line) {
        Some(cause)
    } else if lower.contains("exited with exit code") {
        Some(RANK_FAILED)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, nodes: &[&str], node: Option<&str>) -> Option<(String, String)> {
        let nodes: Vec<String> = nodes.iter().map(|node| (*node).to_owned()).collect();
        let mut blame = Blame::new(&nodes);
        blame.read(text.as_bytes(), node);
        blame.failure().map(|failure| (failure.cause, failure.node.unwrap_or_default()))
    }

    fn blamed(text: &str) -> Option<(String, String)> {
        read(text, &["p5-001", "p5-002"], None)
    }

    #[test]
    fn colours_and_tags_hide_no_line() {
        let line = |text: &str| blamed(text).map(|(cause, _)| cause);
        assert_eq!(
            line("\u{1b}[31msrun: error: Node failure on p5-002\u{1b}[0m\n").as_deref(),
            Some("NODE_FAIL")
        );
        let tagged = "<stderr rank=\"0\">write error: No space left on\u{1b}[0m device</stderr>\n";
        assert_eq!(line(tagged).as_deref(), Some("disk-full"));
    }

    #[test]
    fn an_mpi_that_srun_does_not_know_is_of_no_node() {
        let refused = "srun: error: MPI: Unable to load any plugin\n\
                       srun: error: Invalid MPI type 'pmix', --mpi=list for acceptable types\n";
        let of_no_node = Some(("mpi-refused".to_owned(), String::new()));
        assert_eq!(blamed(refused), of_no_node);
        assert_eq!(read(refused, &["p5-001"], None), of_no_node);
        assert!(is_of_no_node(MPI_REFUSED));
        let lost = format!("{refused}srun: error: Node failure on p5-002\n");
        assert_eq!(blamed(&lost), Some(("NODE_FAIL".into(), "p5-002".into())));
    }

    #[test]
    fn what_srun_refuses_before_it_starts_anything_is_of_no_node() {
        for refused in [
            "srun: unrecognized option '--container-image=/img/x.sqsh'\nTry \"srun --help\" for more information\n",
            "srun: unrecognized option '--overlap'\nTry \"srun --help\" for more information\n",
            "srun: fatal: cpus-per-task set by two different environment variables SLURM_CPUS_PER_TASK=8 != \
             SLURM_TRES_PER_TASK=cpu:4\n",
        ] {
            for nodes in [["p5-001"].as_slice(), &["p5-001", "p5-002"]] {
                let found = read(refused, nodes, None);
                assert_eq!(found, Some(("launch-failed".into(), String::new())), "{refused}");
            }
            let lost = format!("{refused}srun: error: Node failure on p5-002\n");
            assert_eq!(blamed(&lost), Some(("NODE_FAIL".into(), "p5-002".into())));
        }
        let nodes = ["p5-001".to_owned()];
        let mut blame = Blame::new(&nodes);
        blame.read(&b"srun: unrecognized option '--overlap'\n"[..], None);
        let evidence = blame.failure().expect("a failure").evidence;
        assert!(
            evidence.starts_with("srun: unrecognized option '--overlap'; jobs need Slurm 20.11 or newer"),
            "{evidence}"
        );
    }

    #[test]
    fn a_slurmstepd_that_names_its_node_is_read_as_any_other() {
        let full = "slurmstepd-p5-002: error: Detected 1 oom_kill event in StepId=7.0. Some of the step tasks have been \
                    OOM Killed.\n";
        assert_eq!(blamed(full), Some(("out-of-memory".into(), "p5-002".into())));
        assert_eq!(blamed(&full.replace("p5-002", "p5-0021")), None);
        let killed = "[2026-06-14T11:23:15.694] error: p5-002: task 9: Killed\n";
        assert_eq!(blamed(killed), Some(("rank-died".into(), "p5-002".into())));
    }

    #[test]
    fn a_full_disk_blames_no_node_and_its_evidence_says_where_it_is() {
        let full = "head: error writing 'standard output': No space left on device\n";
        let exited = "srun: error: p5-001: tasks 0-7: Exited with exit code 1\n";
        let lost = "srun: error: Node failure on p5-002\n";
        let failure = |text: &str, nodes: &[&str], node| {
            let nodes: Vec<String> = nodes.iter().map(|node| (*node).to_owned()).collect();
            let mut blame = Blame::new(&nodes);
            blame.read(text.as_bytes(), node);
            blame.failure().map(|failure| (failure.cause, failure.node, failure.evidence))
        };
        let full_at = |place: &str| {
            let said = "head: error writing 'standard output': No space left on device";
            Some(("disk-full".to_owned(), None, format!("{place}{said}")))
        };
        let text = [full, exited].concat();
        assert_eq!(failure(&text, &["p5-001"], None), full_at("p5-001: "));
        assert_eq!(failure(&text, &["p5-001", "p5-002"], Some("p5-001")), full_at("p5-001: "));
        assert_eq!(failure(&text, &["p5-001", "p5-002"], None), full_at(""));
        // A line that names its node says it once.
        let named = "slurmstepd: error: [p5-002] write error: No space left on device\n";
        let (cause, node, evidence) = failure(named, &["p5-001", "p5-002"], None).expect("a failure");
        assert_eq!((cause.as_str(), node, evidence.as_str()), ("disk-full", None, named.trim_end()));
        let (cause, node, _) =
            failure(&[full, lost].concat(), &["p5-001", "p5-002"], None).expect("a failure");
        assert_eq!((cause.as_str(), node.as_deref()), ("NODE_FAIL", Some("p5-002")));
        let alone = failure(exited, &["p5-001"], None).expect("a failure");
        assert_eq!((alone.0.as_str(), alone.1.as_deref()), ("rank-failed", Some("p5-001")));
    }

    #[test]
    fn a_missing_program_or_library_blames_no_node_and_a_dead_rank_beside_it_does() {
        let exited = "srun: error: p5-001: tasks 0-7: Exited with exit code 127\n";
        for missing in [
            "slurmstepd: error: execve(): /opt/all_reduce_perf: No such file or directory",
            "/f/job.sh: line 24: mpirun: command not found",
            "/f/gpus.sh: line 14: /opt/all_reduce_perf: No such file or directory",
            "gpu_state.sh: line 135: exec: gpu_burn: not found",
            "gpu_state.sh: line 135: /opt/gpu_burn: No such file or directory",
            "/opt/all_reduce_perf: error while loading shared libraries: libnccl.so.2: cannot open shared object",
            "mpirun was unable to find the specified executable file, and therefore",
            "torch_burn.py: PyTorch is missing (No module named 'torch'): install it, or set `program`",
        ] {
            for text in [format!("{missing}\n{exited}"), format!("{exited}{missing}\n")] {
                let found = read(&text, &["p5-001", "p5-002"], None);
                assert_eq!(found, Some(("tool-missing".into(), String::new())), "{text}");
            }
            let died = format!("{missing}\nsrun: error: p5-002: task 9: Killed\n");
            assert_eq!(blamed(&died), Some(("rank-died".into(), "p5-002".into())), "{died}");
        }
        // The last line of a screen is short: the program comes first there.
        let nodes = ["p5-001".to_owned()];
        let mut blame = Blame::new(&nodes);
        blame.read(&b"/a/long/way/job.sh: line 24: mpirun: command not found\n"[..], None);
        assert_eq!(blame.failure().expect("a failure").evidence, "p5-001: mpirun: command not found");
        // A file that a program looked for is no program.
        let data = format!("open /data/x: No such file or directory\n{exited}");
        assert_eq!(blamed(&data), Some(("rank-failed".into(), "p5-001".into())));
    }

    #[test]
    fn an_exhausted_quota_is_no_fault_of_the_node_that_met_it() {
        let text = "cat: write error: Disk quota exceeded\n\
                    srun: error: p5-001: tasks 0-7: Exited with exit code 1\n";
        for nodes in [["p5-001"].as_slice(), &["p5-001", "p5-002"]] {
            assert_eq!(read(text, nodes, Some("p5-001")), Some(("disk-quota".into(), String::new())));
        }
    }

    #[test]
    fn the_first_node_that_slurm_names_is_the_one() {
        let text = "srun: job 10 queued and waiting\n\
                    srun: error: p5-002: task 9: Killed\n\
                    srun: error: p5-001: tasks 0-7: Terminated\n";
        assert_eq!(blamed(text), Some(("rank-died".into(), "p5-002".into())));
        assert_eq!(
            blamed("srun: error: Node failure on p5-002"),
            Some(("NODE_FAIL".into(), "p5-002".into()))
        );
        assert_eq!(
            blamed("srun: error: p5-002: task 1: Exited with exit code 6"),
            Some(("rank-failed".into(), "p5-002".into()))
        );
    }

    #[test]
    fn tasks_that_exited_on_every_node_name_none() {
        let text = "srun: error: p5-001: tasks 0-7: Exited with exit code 1\n\
                    srun: error: p5-002: tasks 8-15: Exited with exit code 1\n";
        assert_eq!(blamed(text), Some(("rank-failed".into(), String::new())));
    }

    #[test]
    fn tasks_that_died_alike_on_every_node_name_none() {
        // A watchdog aborts every rank; a model that is too large is so on every node.
        for (word, cause) in [("Aborted (core dumped)", "rank-failed"), ("Out Of Memory", "out-of-memory")] {
            let first = format!("srun: error: p5-001: tasks 0-7: {word}\n");
            let other = format!("srun: error: p5-002: tasks 8-15: {word}\n");
            assert_eq!(blamed(&format!("{first}{other}")), Some((cause.into(), String::new())));
            assert_eq!(blamed(&first), Some((cause.into(), "p5-001".into())));
        }
        let crash = "srun: error: p5-002: task 9: Segmentation fault\n\
                     srun: error: p5-001: tasks 0-7: Aborted (core dumped)\n";
        assert_eq!(blamed(crash), Some(("rank-died".into(), "p5-002".into())));
        // srun kills the others itself.
        let killed = "srun: error: p5-002: task 9: Killed\nsrun: error: p5-001: tasks 0-7: Killed\n";
        assert_eq!(blamed(killed), Some(("rank-died".into(), "p5-002".into())));
    }

    #[test]
    fn an_abort_is_an_exit_and_no_crash() {
        let failed = Some(("rank-failed".to_owned(), "p5-002".to_owned()));
        let aborted = "srun: error: p5-002: task 9: Aborted (core dumped)\n";
        assert_eq!(blamed(aborted), failed);
        let by_mpirun =
            "mpirun noticed that process rank 9 with PID 42 on node p5-002 exited on signal 6 (Aborted).\n";
        assert_eq!(blamed(by_mpirun), failed);
        let by_shell = "job.sh: line 21:  4711 Aborted   \"$@\"\n";
        assert_eq!(read(by_shell, &["p5-001", "p5-002"], Some("p5-002")), failed);
        // Yet no missing program explains it.
        assert_eq!(blamed(&format!("/f/job.sh: line 24: helper: command not found\n{aborted}")), failed);
    }

    #[test]
    fn a_launch_that_fails_everywhere_or_by_its_request_names_none() {
        let failed = |node: &str, why: &str| {
            format!("srun: error: Task launch for StepId=7.0 failed on node {node}: {why}\n")
        };
        let lost = "Communication connection failure";
        let one = Some(("launch-failed".to_owned(), "p5-001".to_owned()));
        assert_eq!(blamed(&failed("p5-001", lost)), one);
        let all = failed("p5-001", lost) + &failed("p5-002", lost);
        assert_eq!(blamed(&all), Some(("launch-failed".into(), String::new())));
        let no_layout = failed("p5-001", "Unable to layout tasks on given cpus");
        assert_eq!(blamed(&no_layout), Some(("launch-failed".into(), String::new())));
    }

    #[test]
    fn a_credential_that_expired_names_no_node_and_neither_do_the_tasks_killed_for_it() {
        let expired = "srun: error: Task launch for StepId=989.0 failed on node p5-001: Job credential expired\n\
                       srun: error: Application launch failed: Job credential expired\n";
        let none = Some(("credential-expired".to_owned(), String::new()));
        assert_eq!(blamed(expired), none);
        let killed = "srun: error: p5-002: tasks 8-15: Killed\n";
        assert_eq!(blamed(&[expired, killed].concat()), none);
        assert_eq!(read(expired, &["p5-001"], None), none);
        // A node that was lost, or a rank that died before, says more.
        let lost = "srun: error: Node failure on p5-002\n";
        assert_eq!(blamed(&[expired, lost].concat()), Some(("NODE_FAIL".into(), "p5-002".into())));
        assert_eq!(blamed(&[killed, expired].concat()), Some(("rank-died".into(), "p5-002".into())));
    }

    #[test]
    fn nodes_that_srun_folds_are_not_read_past() {
        let folded = "srun: error: p5-[001-002]: tasks 0-15: Exited with exit code 1\n\
                      srun: error: p5-003: tasks 16-23: Killed\n";
        let nodes = ["p5-001", "p5-002", "p5-003"];
        assert_eq!(read(folded, &nodes, None), Some(("rank-failed".into(), String::new())));
        let apart = "srun: error: p5-001,p5-003: tasks 0,16: Segmentation fault\n";
        assert_eq!(read(apart, &nodes, None), Some(("rank-died".into(), String::new())));
        let foreign = "srun: error: x-[001-002]: tasks 0-15: Exited with exit code 1\n";
        assert_eq!(read(foreign, &nodes, None), None);
    }

    #[test]
    fn a_node_called_after_its_room_has_not_run_out_of_memory() {
        let nodes = ["room1-01", "room1-02"];
        let exited = "srun: error: room1-02: task 9: Exited with exit code 1\n";
        assert_eq!(read(exited, &nodes, None), Some(("rank-failed".into(), "room1-02".into())));
    }

    #[test]
    fn a_lost_node_comes_before_the_tasks_that_were_killed_for_it() {
        let text = "srun: error: p5-001: tasks 0-7: Killed\nsrun: error: Node failure on p5-002\n";
        assert_eq!(blamed(text), Some(("NODE_FAIL".into(), "p5-002".into())));
    }

    #[test]
    fn mpirun_names_the_first_rank_that_died_and_the_node_that_it_lost() {
        let died = "prterun noticed that process rank 9 with PID 4242 on node p5-002 exited on signal 11 (Segmentation fault).";
        assert_eq!(blamed(died), Some(("rank-died".into(), "p5-002".into())));
        let lost = "ORTE has lost communication with a remote daemon.\n\
                    \x20 HNP daemon   : [[1,0],0] on node p5-001\n  Remote daemon: [[1,0],1] on node p5-002\n";
        assert_eq!(blamed(lost), Some(("NODE_FAIL".into(), "p5-002".into())));
    }

    #[test]
    fn a_line_that_open_mpi_5_breaks_names_its_node() {
        let died =
            "prterun noticed that process rank 9 with PID 42 on node p5-002 exited on\nsignal 9 (Killed).\n";
        assert_eq!(blamed(died), Some(("rank-died".into(), "p5-002".into())));
    }

    #[test]
    fn a_pod_that_is_lost_and_a_missing_mpirun_blame_no_node() {
        let nodes = ["p5-001", "p5-002"].map(str::to_owned);
        let cause = |text: &str| {
            let mut blame = Blame::new(&nodes).in_pods();
            blame.read(text.as_bytes(), None);
            blame.failure().map(|failure| (failure.cause, failure.node))
        };
        let lost = "  Remote daemon: [[1,0],1] on node p5-002\n";
        assert_eq!(cause(lost), Some(("pod-lost".into(), None)));
        let silent = "agent.sh: p5-002: no sign of life for 60 s, its pod is gone or does not answer\n";
        assert_eq!(cause(silent), Some(("launch-agent".into(), None)));
        let missing = "agent.sh: tool-missing mpirun: it is not at /x/mpirun\n";
        assert_eq!(cause(missing), Some(("tool-missing".into(), None)));
        // A rank that a signal ended is of its node there, too.
        let died =
            "mpirun noticed that process rank 9 with PID 42 on node p5-002 exited on signal 9 (Killed).\n";
        assert_eq!(cause(&[silent, died].concat()), Some(("rank-died".into(), Some("p5-002".into()))));
    }

    #[test]
    fn a_file_of_one_node_need_not_name_it() {
        let cause_of_text =
            |text: &str| read(text, &["p5-001", "p5-002"], Some("p5-002")).map(|(cause, _)| cause);
        assert_eq!(
            cause_of_text("hello\ngpus.sh: line 18:  4711 Killed   \"$@\"\n"),
            Some("rank-died".into())
        );
        for text in ["", "Killed"] {
            assert_eq!(cause_of_text(text), None, "{text}");
        }
    }

    #[test]
    fn a_cancelled_job_and_a_foreign_node_are_not_attributable() {
        for text in [
            "slurmstepd: error: *** JOB 7 ON p5-001 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***",
            "[2026-06-14T11:23:15.694] error: *** JOB 7 ON p5-001 CANCELLED AT 2026-06-14T11:23:15 DUE to SIGNAL Terminated ***",
            "srun: error: p5-0021: task 9: Killed",
            "p5-002 said hello, and was Killed",
            // srun ends tasks by SIGTERM when something else went wrong, or on request.
            "srun: error: p5-001: task 0: Terminated",
            "",
        ] {
            assert_eq!(blamed(text), None, "{text}");
        }
    }
}
