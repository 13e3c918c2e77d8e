//! One node of a job over ssh: the calls of `supervisor.sh` there, and what its answers mean.
//! `ssh.rs` derives what becomes of the whole job.

use super::QUERY_LIMIT;
use crate::reach::{Command, Host, Reach, ReachError};
use job::script::start::{HOST, call};
use model::artefact::PlannedJob;

/// How the job is on one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Never started.
    Absent,
    Running,
    Ended {
        code: i32,
        reason: Reason,
    },
    /// Started, and vanished without an exit status.
    Lost,
    /// Started in a container that ended meanwhile: another one answers.
    Replaced,
}

/// Why the script ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    Itself,
    /// `end` was called.
    Asked,
    /// No heartbeat for too long.
    Heartbeat,
    /// By itself, after the kernel had ended a process of it for memory.
    OutOfMemory,
}

impl State {
    /// Nothing of the job runs there, as far as its supervisor knows.
    pub(super) fn is_over(self) -> bool {
        self != State::Running
    }

    fn read(line: &str) -> Option<State> {
        match line.split(' ').collect::<Vec<_>>().as_slice() {
            ["absent"] => Some(State::Absent),
            ["running"] => Some(State::Running),
            ["lost"] => Some(State::Lost),
            ["replaced"] => Some(State::Replaced),
            ["ended", code, reason] => {
                let reason = match *reason {
                    "itself" => Reason::Itself,
                    "asked" => Reason::Asked,
                    // The second is an older version's word: its script is on the nodes of a run that is resumed.
                    "heartbeat" | "lease" => Reason::Heartbeat,
                    "memory" => Reason::OutOfMemory,
                    _ => return None,
                };
                Some(State::Ended { code: code.parse().ok()?, reason })
            }
            _ => None,
        }
    }
}

/// How long the job goes on without being looked at, as its launch says.
pub(super) fn heartbeat_timeout_s(job: &PlannedJob) -> u64 {
    job.launch.last().and_then(|word| word.parse().ok()).unwrap_or_default()
}

/// Starts the job on a node, if that was not done before.
pub(super) async fn start(reach: &dyn Reach, job: &PlannedJob, node: &str) -> Result<State, ReachError> {
    let argv = job.launch.iter().map(|word| if word == HOST { node } else { word });
    ask(reach, node, argv.map(str::to_owned).collect()).await
}

/// `launch` is the planned argument list: it names the script and the job's folder.
pub(super) async fn look(reach: &dyn Reach, launch: &[String], node: &str) -> Result<State, ReachError> {
    ask(reach, node, call(launch, "look", node, &[]).unwrap_or_default()).await
}

/// Sends `TERM` or `KILL` to all that was started.
pub(super) async fn end(
    reach: &dyn Reach,
    launch: &[String],
    node: &str,
    signal: &str,
) -> Result<State, ReachError> {
    ask(reach, node, call(launch, "end", node, &[signal]).unwrap_or_default()).await
}

async fn ask(reach: &dyn Reach, node: &str, argv: Vec<String>) -> Result<State, ReachError> {
    let (Some(script), Some(verb)) = (argv.get(1).cloned(), argv.get(2).cloned()) else {
        let (what, why) = (format!("a query of {node}"), "the plan's launch is not one over ssh".to_owned());
        return Err(ReachError::Failed { what, why });
    };
    let script = script.rsplit('/').next().unwrap_or_default();
    let answer = reach.exec(&Host::Node(node.to_owned()), &Command::new(argv, QUERY_LIMIT)).await?;
    let failed = |why: String| ReachError::Failed { what: format!("`{script} {verb}` on {node}"), why };
    if !answer.succeeded() {
        return Err(failed(format!("{}: {}", answer.status, answer.complaint())));
    }
    // A shell's start-up files may print before it: the answer is the last line.
    let text = answer.stdout_text();
    let line = text.trim_end().lines().next_back().unwrap_or_default();
    State::read(line).ok_or_else(|| failed(format!("unexpected answer: `{}`", line.escape_debug())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answers_of_the_script_are_read_and_nothing_else() {
        let ended = |code, reason| Some(State::Ended { code, reason });
        for (line, state) in [
            ("absent", Some(State::Absent)),
            ("running", Some(State::Running)),
            ("lost", Some(State::Lost)),
            ("replaced", Some(State::Replaced)),
            ("ended 0 itself", ended(0, Reason::Itself)),
            ("ended 143 asked", ended(143, Reason::Asked)),
            ("ended 137 heartbeat", ended(137, Reason::Heartbeat)),
            ("ended 143 lease", ended(143, Reason::Heartbeat)),
            ("ended 137 memory", ended(137, Reason::OutOfMemory)),
            ("", None),
            ("ended", None),
            ("ended 0", None),
            ("ended x itself", None),
            ("ended 0 somehow", None),
            ("running late", None),
        ] {
            assert_eq!(State::read(line), state, "{line}");
        }
    }

    #[test]
    fn the_launch_names_the_heartbeat_timeout_and_leaves_the_node_open() {
        let argv = job::script::start::over_ssh("/fsx/r/c/j", 300);
        assert_eq!(argv.join(" "), "bash /fsx/r/c/j/supervisor.sh start /fsx/r/c/j {host} 300");
        let job = PlannedJob { launch: argv, ..crate::launch::ssh::tests::job(&["n1"]) };
        assert_eq!(heartbeat_timeout_s(&job), 300);
    }

    #[test]
    fn a_run_of_an_older_version_is_asked_by_the_script_that_it_started() {
        let script = format!("/f/{}", job::script::files::OLDER_SUPERVISOR);
        let older = ["bash", &script, "start", "/f", "{host}", "300"].map(str::to_owned);
        let argv = |verb, more: &[&str]| call(&older, verb, "n1", more).map(|argv| argv.join(" "));
        assert_eq!(argv("look", &[]).as_deref(), Some(format!("bash {script} look /f n1").as_str()));
        assert_eq!(argv("end", &["TERM"]).as_deref(), Some(format!("bash {script} end /f n1 TERM").as_str()));
        assert_eq!(call(&older[..3], "look", "n1", &[]), None);
    }
}
