//! Jobs whose nodes an epilog holds after their end, and jobs that end with their partition.

use super::tests::{Scripted, job, poll, said, slurm, wait};
use super::*;
use model::artefact::Ended;

/// A job whose script has ended, and wrote this.
struct Wrote(Scripted, &'static str);

impl Reach for Wrote {
    fn exec<'a>(&'a self, host: &'a Host, command: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
        self.0.exec(host, command)
    }
    fn put<'a>(&'a self, host: &'a Host, path: &'a str, bytes: &'a [u8]) -> Wait<'a, Result<(), ReachError>> {
        self.0.put(host, path, bytes)
    }
    fn get<'a>(&'a self, host: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
        match path.rsplit('/').next() {
            Some(files::BATCH_ERR) => Box::pin(async { Ok(Vec::new()) }),
            Some(files::EXIT_CODE) if !self.1.is_empty() => {
                Box::pin(async { Ok(self.1.as_bytes().to_vec()) })
            }
            _ => self.0.get(host, path),
        }
    }
}

/// Health checks of DCGM in an epilog take minutes, in which squeue has the job as COMPLETING.
#[test]
fn an_epilog_that_holds_the_nodes_is_no_time_of_the_job() {
    let polls = |wrote, code: &str, reason: &str| {
        let shown =
            format!("JobId=7 JobState=COMPLETING Reason={reason} Restarts=0 ExitCode={code} NodeList=n1\n");
        let shown = said(&shown);
        let answers = vec![("squeue", said("7|COMPLETING|None|n[1-2]\n")), ("scontrol", shown)];
        let (job, reach, launcher) = (job(), Wrote(Scripted::new(answers), wrote), slurm());
        wait(Box::pin(async move {
            let jobs = [(&job, "7")];
            let first = launcher.poll(&reach, &jobs).await.remove(0);
            tokio::time::sleep(COMPLETING_LIMIT).await;
            (first, launcher.poll(&reach, &jobs).await.remove(0))
        }))
    };
    for (wrote, code, reason) in [("0\n", 0, "None"), ("7\n", 7, "NonZeroExitCode")] {
        let end = Poll::ended(Ended::Exited { code }, None);
        assert_eq!(polls(wrote, &format!("{code}:0"), reason), (Poll::Running, end), "{wrote:?}");
    }
    // A script that has not ended, and one that something else ended.
    for (wrote, code, reason) in [
        ("", "0:0", "None"),
        ("143\n", "0:15", "None"),
        ("0\n", "0:1", "None"),
        ("143\n", "143:0", "TimeLimit"),
        ("1\n", "1:0", "NodeDown"),
    ] {
        let polled = polls(wrote, code, reason);
        assert_eq!(polled, (Poll::Running, Poll::Running), "{wrote:?} {code} {reason}");
    }
}

#[test]
fn a_job_that_ended_with_its_partition_is_no_sign_of_a_node() {
    let end = |reason: &str| {
        let shown = format!("JobId=7 JobState=NODE_FAIL Reason={reason} Restarts=0 ExitCode=0:0\n");
        let sinfo = said("n1|down*|Not responding\n");
        match poll(vec![("squeue", said("")), ("scontrol", said(&shown)), ("sinfo", sinfo)]) {
            Poll::Ended { end, blamed, .. } => (end, blamed.map(|blamed| blamed.node)),
            other => panic!("{other:?}"),
        }
    };
    let (lost, blamed) = end("PartitionDown");
    assert!(matches!(lost, Ended::Lost { why } if why.contains("PartitionDown")));
    assert_eq!(blamed, None);
    assert_eq!(end("NodeDown"), (Ended::NodeFail, Some("n1".to_owned())));
}
