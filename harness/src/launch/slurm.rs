//! Slurm: sbatch, squeue, scontrol and scancel, through `Reach`.
//! What the words of its states mean is told in `slurm_state.rs`.

use super::slurm_state::{JobState, StateSet};
use super::{Launch, NotLaunched, Poll, QUERY_LIMIT};
use crate::artefact::{Blamed, Ended, PlannedJob};
use crate::reach::{Command, Host, Reach, ReachError, Wait};
use crate::script::files;
use std::collections::BTreeMap;

pub struct Slurm;

/// Asked of squeue: fixed text, since its JSON differs between versions far more than this does.
const FORMAT: &str = "--format=%i|%T|%r|%N";

impl Launch for Slurm {
    fn submit<'a>(
        &'a self,
        reach: &'a dyn Reach,
        job: &'a PlannedJob,
    ) -> Wait<'a, Result<String, NotLaunched>> {
        Box::pin(async move {
            let answer = reach
                .exec(&Host::Here, &Command::new(job.launch.clone(), QUERY_LIMIT))
                .await
                .map_err(|error| error.to_string())?;
            if !answer.succeeded() {
                return Err(format!("`sbatch` ended with {}: {}", answer.status, answer.complaint()).into());
            }
            let text = answer.stdout_text();
            // `--parsable` prints the id, and after a semicolon the cluster's name where there are several.
            let id = text.trim().split(';').next().unwrap_or_default();
            if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(format!("`sbatch` printed no job id: `{}`", text.trim().escape_debug()).into());
            }
            Ok(id.to_owned())
        })
    }

    fn find_started<'a>(
        &'a self,
        reach: &'a dyn Reach,
        job: &'a PlannedJob,
    ) -> Wait<'a, Result<Option<String>, NotLaunched>> {
        Box::pin(async move {
            let by_name = format!("--name={}", job_name(job)?);
            let argv = ["squeue", "--noheader", "--states=all", "--format=%i", &by_name];
            let answer = reach
                .exec(&Host::Here, &Command::new(argv, QUERY_LIMIT))
                .await
                .map_err(|error| format!("whether it was launched before is not known: {error}"))?;
            if !answer.succeeded() {
                let why = answer.complaint();
                return Err(format!("whether it was launched before is not known: `squeue`: {why}").into());
            }
            let text = answer.stdout_text();
            if let Some(id) = text.lines().map(str::trim).find(|line| !line.is_empty()) {
                return Ok(Some(id.to_owned()));
            }
            // Slurm forgets a job some minutes after its end; the file of its output stays.
            match reach.get(&Host::Here, &format!("{}/{}", job.folder, files::BATCH_ERR)).await {
                Err(ReachError::NotFound { .. }) => Ok(None),
                Ok(_) => Err("it was launched before, and Slurm has forgotten it".to_owned().into()),
                Err(error) => Err(format!("whether it was launched before is not known: {error}").into()),
            }
        })
    }

    fn poll<'a>(
        &'a self,
        reach: &'a dyn Reach,
        jobs: &'a [(&'a PlannedJob, &'a str)],
    ) -> Wait<'a, Vec<Poll>> {
        Box::pin(async move {
            let ids: Vec<&str> = jobs.iter().map(|(_, id)| *id).collect();
            let argv = ["squeue", "--noheader", "--states=all", FORMAT, &format!("--jobs={}", ids.join(","))];
            let listed = match reach.exec(&Host::Here, &Command::new(argv, QUERY_LIMIT)).await {
                Ok(answer) if answer.succeeded() => lines_by_id(&answer.stdout_text()),
                // One id that squeue has forgotten spoils the whole answer: each is asked for by itself below.
                Ok(answer) if answer.complaint().contains("Invalid job id") => BTreeMap::new(),
                Ok(answer) => {
                    let why = format!("`squeue` ended with {}: {}", answer.status, answer.complaint());
                    return vec![Poll::Unknown(why); jobs.len()];
                }
                Err(error) => return vec![Poll::Unknown(error.to_string()); jobs.len()],
            };
            let mut polls = Vec::with_capacity(jobs.len());
            for (job, id) in jobs {
                let poll = match listed.get(*id) {
                    Some(line) if !line.state.has_ended() => line.poll(),
                    // Ended, or forgotten by squeue: scontrol knows the exit code, and knows a job a while longer.
                    _ => show_job(reach, job, id).await,
                };
                polls.push(poll);
            }
            polls
        })
    }

    fn interrupt<'a>(&'a self, reach: &'a dyn Reach, _job: &'a PlannedJob, handle: &'a str) -> Wait<'a, ()> {
        Box::pin(async move {
            let command = Command::new(["scancel", "--signal=INT", "--full", handle], QUERY_LIMIT);
            // Whether it worked is seen by polling; the cancel that follows does not depend on it.
            let _ = reach.exec(&Host::Here, &command).await;
        })
    }

    fn cancel<'a>(&'a self, reach: &'a dyn Reach, _job: &'a PlannedJob, handle: &'a str) -> Wait<'a, ()> {
        Box::pin(async move {
            let _ = reach.exec(&Host::Here, &Command::new(["scancel", handle], QUERY_LIMIT)).await;
        })
    }
}

/// As the job's script has it: it holds the run's id, the case and the job.
fn job_name(job: &PlannedJob) -> Result<String, String> {
    let script = job.files.iter().find(|file| file.name == files::JOB).and_then(|file| file.text.as_deref());
    let name = script.and_then(|text| text.lines().find_map(|line| line.strip_prefix("#SBATCH --job-name=")));
    name.map(str::to_owned).ok_or_else(|| "its script names no job".to_owned())
}

struct Line {
    state: JobState,
    reason: String,
}

impl Line {
    fn poll(&self) -> Poll {
        match &self.state {
            JobState::Pending => {
                Poll::Waiting { reason: self.reason.clone(), never: never_clears(&self.reason) }
            }
            JobState::Running => Poll::Running,
            JobState::Unknown(word) => Poll::Unknown(format!("`squeue` gave a state nobody knows: `{word}`")),
            _ => Poll::Running,
        }
    }
}

fn lines_by_id(text: &str) -> BTreeMap<String, Line> {
    text.lines()
        .filter_map(|line| {
            let mut fields = line.split('|').map(str::trim);
            let (id, state, reason) = (fields.next()?, fields.next()?, fields.next()?);
            Some((id.to_owned(), Line { state: JobState::of(state), reason: reason.to_owned() }))
        })
        .collect()
}

/// Reasons that no waiting clears: the request itself cannot be met.
fn never_clears(reason: &str) -> bool {
    let word = reason.trim_start_matches('(').split([',', ')']).next().unwrap_or_default();
    [
        "PartitionNodeLimit",
        "PartitionTimeLimit",
        "BadConstraints",
        "InvalidAccount",
        "InvalidQOS",
        "ReservationDeleted",
        "JobHoldMaxRequeue",
        "JobHeldAdmin",
    ]
    .contains(&word)
        || reason.contains("launch failed requeued held")
}

async fn show_job(reach: &dyn Reach, job: &PlannedJob, id: &str) -> Poll {
    let command = Command::new(["scontrol", "--oneliner", "show", "job", id], QUERY_LIMIT);
    let answer = match reach.exec(&Host::Here, &command).await {
        Ok(answer) if answer.succeeded() => answer,
        Ok(answer) => {
            return Poll::Unknown(format!(
                "`scontrol show job {id}` ended with {}: {}",
                answer.status,
                answer.complaint()
            ));
        }
        Err(error) => return Poll::Unknown(error.to_string()),
    };
    let text = answer.stdout_text();
    let field = |name: &str| {
        text.split_whitespace().find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=').map(str::to_owned))
    };
    let Some(state) = field("JobState").map(|word| JobState::of(&word)) else {
        return Poll::Unknown(format!("`scontrol show job {id}` gave no JobState"));
    };
    let Some(end) = ended(&state, field("ExitCode").as_deref(), job) else {
        let reason = field("Reason").unwrap_or_default();
        return Line { state, reason }.poll();
    };
    let blamed = match &end {
        Ended::NodeFail => down_node(reach, job).await,
        _ => None,
    };
    Poll::ended(end, blamed)
}

/// The end of a job by its state and `ExitCode=code:signal`; nothing while it goes on.
fn ended(state: &JobState, exit_code: Option<&str>, job: &PlannedJob) -> Option<Ended> {
    let (code, signal) = exit_code.and_then(|pair| pair.split_once(':')).unwrap_or_default();
    Some(match state {
        JobState::Completed | JobState::Failed => match (code.parse::<i32>(), signal.parse::<i32>()) {
            (_, Ok(signal)) if signal != 0 => Ended::Killed { signal },
            // Failed with exit code 0 happens where the batch host says so and the code was lost: no success.
            (Ok(0), _) if *state == JobState::Failed => {
                Ended::Lost { why: "FAILED with exit code 0".to_owned() }
            }
            (Ok(code), _) => Ended::Exited { code },
            (Err(_), _) => Ended::Lost { why: format!("no exit code: `{}`", exit_code.unwrap_or_default()) },
        },
        JobState::Timeout | JobState::Deadline => Ended::TimeLimit { limit_s: job.limit_s },
        JobState::NodeFail | JobState::BootFail => Ended::NodeFail,
        JobState::Preempted => Ended::Preempted,
        JobState::Cancelled => Ended::Cancelled,
        JobState::OutOfMemory => Ended::Killed { signal: 9 },
        JobState::Pending | JobState::Running | JobState::Unknown(_) => return None,
    })
}

/// Which of the job's nodes Slurm itself has given up on.
async fn down_node(reach: &dyn Reach, job: &PlannedJob) -> Option<Blamed> {
    let command = Command::new(["sinfo", "--noheader", "--Node", "--format=%N|%T|%E"], QUERY_LIMIT);
    let answer = reach.exec(&Host::Here, &command).await.ok().filter(|answer| answer.succeeded())?;
    answer.stdout_text().lines().find_map(|line| {
        let mut fields = line.split('|').map(str::trim);
        let (node, state, reason) = (fields.next()?, fields.next()?, fields.next().unwrap_or_default());
        let lost = StateSet::of(state).is_lost() && job.nodes.iter().any(|name| name == node);
        lost.then(|| Blamed { node: node.to_owned(), evidence: format!("`sinfo` says {state}: {reason}") })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reach::Answer;

    /// Answers each program with what was written down for it.
    struct Scripted(Vec<(&'static str, Result<Answer, ReachError>)>);

    impl Reach for Scripted {
        fn exec<'a>(&'a self, _: &'a Host, command: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
            let program = command.argv[0].as_str();
            let found = self.0.iter().find(|(name, _)| *name == program).map(|(_, answer)| answer.clone());
            let missing = ReachError::NoProgram { host: "here".into(), program: program.into() };
            Box::pin(async move { found.unwrap_or(Err(missing)) })
        }
        fn put<'a>(&'a self, _: &'a Host, _: &'a str, _: &'a [u8]) -> Wait<'a, Result<(), ReachError>> {
            Box::pin(async { Ok(()) })
        }
        fn get<'a>(&'a self, _: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
            Box::pin(async move { Err(ReachError::NotFound { path: path.into() }) })
        }
    }

    fn job() -> PlannedJob {
        PlannedJob {
            name: "j".into(),
            nodes: vec!["n1".into(), "n2".into()],
            round: 1,
            ranks: 16,
            folder: "/f".into(),
            files: Vec::new(),
            launch: vec!["sbatch".into(), "--parsable".into(), "/f/job.sh".into()],
            expected: Vec::new(),
            estimate_s: 1,
            limit_s: 60,
            profile: None,
        }
    }

    fn wait<T>(future: Wait<'_, T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
    }

    fn poll(answers: Vec<(&'static str, Result<Answer, ReachError>)>) -> Poll {
        let (job, reach) = (job(), Scripted(answers));
        wait(Slurm.poll(&reach, &[(&job, "7")])).remove(0)
    }

    fn said(text: &str) -> Result<Answer, ReachError> {
        Ok(Answer::ok(text))
    }

    #[test]
    fn a_failed_query_is_unknown_and_never_the_end_of_a_job() {
        let down = || Ok(Answer::failed(1, "slurm_load_jobs error: Unable to contact slurm controller"));
        let late = || Err(ReachError::TimedOut { what: "`squeue`".into(), limit_s: 60 });
        for answers in [
            vec![("squeue", down())],
            vec![("squeue", late())],
            vec![],
            vec![("squeue", said("")), ("scontrol", down())],
            vec![("squeue", said("")), ("scontrol", late())],
            vec![("squeue", said("7|COMPLETED|None|n1\n")), ("scontrol", down())],
            vec![("squeue", said("7|BLORP|None|n1\n"))],
            vec![("squeue", said("")), ("scontrol", said("JobId=7"))],
            vec![("squeue", Ok(Answer::failed(1, "Invalid job id specified"))), ("scontrol", down())],
        ] {
            let shown = format!("{answers:?}");
            assert!(matches!(poll(answers), Poll::Unknown(_)), "{shown}");
        }
    }

    #[test]
    fn a_waiting_job_tells_its_reason_and_whether_it_ever_clears() {
        for (reason, never) in [
            ("Resources", false),
            ("ReqNodeNotAvail, UnavailableNodes:n2", false),
            ("PartitionNodeLimit", true),
            ("(BadConstraints)", true),
            ("launch failed requeued held", true),
        ] {
            let line = format!("7|PENDING|{reason}|\n");
            assert_eq!(poll(vec![("squeue", said(&line))]), Poll::Waiting { reason: reason.into(), never });
        }
        assert_eq!(poll(vec![("squeue", said("7|RUNNING|None|n[1-2]\n"))]), Poll::Running);
        assert_eq!(poll(vec![("squeue", said("7|COMPLETING|None|n[1-2]\n"))]), Poll::Running);
    }

    #[test]
    fn the_end_of_a_job_is_what_scontrol_says() {
        let table = [
            ("COMPLETED", "0:0", Ended::Exited { code: 0 }),
            ("FAILED", "7:0", Ended::Exited { code: 7 }),
            ("FAILED", "0:11", Ended::Killed { signal: 11 }),
            ("TIMEOUT", "0:15", Ended::TimeLimit { limit_s: 60 }),
            ("NODE_FAIL", "0:1", Ended::NodeFail),
            ("BOOT_FAIL", "0:0", Ended::NodeFail),
            ("PREEMPTED", "0:15", Ended::Preempted),
            ("CANCELLED", "0:15", Ended::Cancelled),
            ("OUT_OF_MEMORY", "0:125", Ended::Killed { signal: 9 }),
        ];
        for (state, code, expected) in table {
            let shown =
                format!("JobId=7 JobName=x JobState={state} Reason=None ExitCode={code} NodeList=n[1-2]\n");
            let answers = vec![("squeue", said("")), ("scontrol", said(&shown))];
            match poll(answers) {
                Poll::Ended { end, .. } => assert_eq!(end, expected, "{state} {code}"),
                other => panic!("{state} {code}: {other:?}"),
            }
        }
        // An exit code that is not there, or that contradicts the state, is no success.
        for shown in ["JobState=COMPLETED", "JobState=COMPLETED ExitCode=x:y", "JobState=FAILED ExitCode=0:0"]
        {
            let answers = vec![("squeue", said("")), ("scontrol", said(shown))];
            assert!(matches!(poll(answers), Poll::Ended { end: Ended::Lost { .. }, .. }), "{shown}");
        }
    }

    #[test]
    fn a_lost_node_is_named_by_sinfo_if_it_is_the_jobs() {
        let ended = |sinfo: &str| {
            let shown = "JobState=NODE_FAIL ExitCode=0:1";
            let answers = vec![("squeue", said("")), ("scontrol", said(shown)), ("sinfo", said(sinfo))];
            match poll(answers) {
                Poll::Ended { blamed, .. } => blamed.map(|blamed| blamed.node),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(ended("n1|idle|none\nn2|down*|Not responding\n"), Some("n2".into()));
        assert_eq!(ended("n1|allocated+|none\nn9|down*|Not responding\n"), None);
        assert_eq!(ended(""), None);
    }

    #[test]
    fn a_submission_without_a_number_is_no_submission() {
        let submit = |answer| wait(Slurm.submit(&Scripted(vec![("sbatch", answer)]), &job()));
        assert_eq!(submit(said("1234\n")), Ok("1234".into()));
        assert_eq!(submit(said("1234;cluster\n")), Ok("1234".into()));
        for answer in [said(""), said("Submitted batch job 7\n"), Ok(Answer::failed(1, "sbatch: error: no"))]
        {
            assert!(submit(answer.clone()).is_err(), "{answer:?}");
        }
        assert!(wait(Slurm.submit(&Scripted(Vec::new()), &job())).is_err());
    }
}
