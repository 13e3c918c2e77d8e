//! A job in an allocation of Slurm that it shares with others: given its turn, watched and ended by files that
//! it and `allocation.sh` have in common. The allocation itself is launched and asked for like any job, in `slurm.rs`.

use super::folder::refresh;
use super::{NotLaunched, Poll, slurm_end};
use crate::reach::{Host, Reach, ReachError};
use job::script::files;
use model::artefact::{Ended, PlannedJob};

/// The job that was given that turn, by its number in the allocation, if one was.
pub(crate) async fn given(
    reach: &dyn Reach,
    batch_job: &PlannedJob,
    turn: u32,
) -> Result<Option<usize>, NotLaunched> {
    match reach.get(&Host::Here, &path(batch_job, &files::turn(turn))).await {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            let number = text
                .trim()
                .parse()
                .map_err(|_| format!("unknown which job was given turn {turn}: `{}`", text.escape_debug()))?;
            Ok(Some(number))
        }
        Err(ReachError::NotFound { .. }) => Ok(None),
        Err(error) => Err(format!("unknown which job was given turn {turn}: {error}").into()),
    }
}

/// Gives the turn to the job of that number.
pub(crate) async fn give(
    reach: &dyn Reach,
    batch_job: &PlannedJob,
    turn: u32,
    number: usize,
) -> Result<(), NotLaunched> {
    let text = format!("{number}\n");
    reach
        .put(&Host::Here, &path(batch_job, &files::turn(turn)), text.as_bytes())
        .await
        .map_err(|error| NotLaunched { end: Ended::FolderFailed { why: error.to_string() }, blamed: None })
}

/// Nothing more is given: the allocation ends when the job that runs in it has.
pub(crate) async fn close(reach: &dyn Reach, batch_job: &PlannedJob) {
    // An allocation that misses it is cancelled.
    let _ = reach.put(&Host::Here, &path(batch_job, files::CLOSE), b"\n").await;
}

/// Asks a job to end by itself.
pub(crate) async fn interrupt(reach: &dyn Reach, job: &PlannedJob) {
    let _ = reach.put(&Host::Here, &path(job, files::INTERRUPT), b"\n").await;
}

/// Ends a job, and leaves the allocation to the others.
pub(crate) async fn cancel(reach: &dyn Reach, job: &PlannedJob) {
    let _ = reach.put(&Host::Here, &path(job, files::CANCEL), b"\n").await;
}

/// How a job is that was given its turn, where Slurm says `of_batch_job` of its allocation.
pub(crate) async fn poll(
    reach: &dyn Reach,
    job: &PlannedJob,
    batch_job: &PlannedJob,
    of_batch_job: &Poll,
) -> Poll {
    if let Some(poll) = recorded(reach, job).await {
        return poll;
    }
    match of_batch_job {
        Poll::Unknown(why) => return Poll::Unknown(why.clone()),
        Poll::Waiting { reason, never } => return Poll::Waiting { reason: reason.clone(), never: *never },
        Poll::Starting { reason } => return Poll::Starting { reason: reason.clone() },
        Poll::Running | Poll::Suspended | Poll::Ended { .. } => {}
    }
    // It was looked for in vain, which can be remembered for longer than the job goes on.
    refresh(reach, &job.folder).await;
    if let Some(poll) = recorded(reach, job).await {
        return poll;
    }
    if let Poll::Ended { end, blamed, .. } = of_batch_job {
        return Poll::ended(lost_with(end, batch_job), blamed.clone());
    }
    match reach.get(&Host::Here, &path(job, files::BEGAN)).await {
        Ok(_) if *of_batch_job == Poll::Suspended => Poll::Suspended,
        Ok(_) => Poll::Running,
        Err(ReachError::NotFound { .. }) => Poll::Waiting {
            reason: "its allocation runs, but has not started it yet".to_owned(),
            never: false,
        },
        Err(error) => Poll::Unknown(error.to_string()),
    }
}

/// What the record of its end makes known, where there is one or none can be read.
async fn recorded(reach: &dyn Reach, job: &PlannedJob) -> Option<Poll> {
    match ended(reach, job).await {
        Ok(end) => end.map(|end| Poll::ended(end, None)),
        Err(why) => Some(Poll::Unknown(why)),
    }
}

/// The end of a job that had not ended when its allocation did.
pub(crate) fn lost_with(of_allocation: &Ended, batch_job: &PlannedJob) -> Ended {
    match of_allocation {
        Ended::TimeLimit { .. } => Ended::AllocationOver { limit_s: batch_job.limit_s },
        Ended::Exited { .. } | Ended::Killed { .. } => Ended::Lost {
            why: format!(
                "its allocation ended by {}, and how the job ended was not recorded",
                of_allocation.cause()
            ),
        },
        other => other.clone(),
    }
}

async fn ended(reach: &dyn Reach, job: &PlannedJob) -> Result<Option<Ended>, String> {
    match reach.get(&Host::Here, &path(job, files::ENDED)).await {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let bad = || format!("unexpected record of its end: `{}`", text.trim().escape_debug());
            let end = read_end(text.trim(), job).ok_or_else(bad)?;
            Ok(Some(slurm_end::with_step(reach, job, end).await))
        }
        Err(ReachError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

fn read_end(text: &str, job: &PlannedJob) -> Option<Ended> {
    Some(match text.split_once(' ') {
        Some(("exited", code)) => Ended::Exited { code: code.parse().ok()? },
        Some(("signal", signal)) => Ended::Killed { signal: signal.parse().ok()? },
        None if text == "asked" => Ended::Cancelled,
        None if text == "limit" => Ended::TimeLimit { limit_s: job.limit_s },
        _ => return None,
    })
}

fn path(job: &PlannedJob, name: &str) -> String {
    format!("{}/{name}", job.folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::ssh::tests::job;
    use crate::reach::{Answer, Command, Wait};
    use model::artefact::Blamed;
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    /// A folder, in which a file may show only once something was written there.
    #[derive(Default)]
    struct Folder {
        files: RefCell<BTreeMap<String, Vec<u8>>>,
        late: RefCell<Option<(String, Vec<u8>)>>,
        broken: bool,
    }

    impl Reach for Folder {
        fn exec<'a>(&'a self, _: &'a Host, _: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
            Box::pin(async { Ok(Answer::failed(1, "")) })
        }
        fn put<'a>(
            &'a self,
            _: &'a Host,
            path: &'a str,
            bytes: &'a [u8],
        ) -> Wait<'a, Result<(), ReachError>> {
            Box::pin(async move {
                let mut files = self.files.borrow_mut();
                files.insert(path.to_owned(), bytes.to_vec());
                files.extend(self.late.borrow_mut().take());
                Ok(())
            })
        }
        fn get<'a>(&'a self, _: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
            Box::pin(async move {
                if self.broken {
                    return Err(ReachError::Failed { what: path.into(), why: "stale".into() });
                }
                let found = self.files.borrow().get(path).cloned();
                found.ok_or_else(|| ReachError::NotFound { path: path.into() })
            })
        }
    }

    fn folder(files: &[(&str, &str)]) -> Folder {
        let folder = Folder::default();
        let named = |(name, text): &(&str, &str)| (path(&job(&["n1"]), name), text.as_bytes().to_vec());
        folder.files.borrow_mut().extend(files.iter().map(named));
        folder
    }

    fn now<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(work)
    }

    fn seen(folder: &Folder, of_batch_job: &Poll) -> Poll {
        let mut batch_job = job(&["n1"]);
        batch_job.folder = "/f/batch".into();
        batch_job.limit_s = 900;
        now(poll(folder, &job(&["n1"]), &batch_job, of_batch_job))
    }

    #[test]
    fn the_end_record_of_a_job_counts_whatever_became_of_its_allocation() {
        let limit_s = job(&["n1"]).limit_s;
        let table = [
            ("exited 0\n", Ended::Exited { code: 0 }),
            ("exited 9\n", Ended::Exited { code: 9 }),
            ("signal 9\n", Ended::Killed { signal: 9 }),
            ("asked\n", Ended::Cancelled),
            ("limit\n", Ended::TimeLimit { limit_s }),
        ];
        for (text, end) in table {
            for of_batch_job in
                [Poll::Running, Poll::Unknown("away".into()), Poll::ended(Ended::NodeFail, None)]
            {
                let polled = seen(&folder(&[("ended", text)]), &of_batch_job);
                assert_eq!(polled, Poll::ended(end.clone(), None), "{text}");
            }
        }
    }

    #[test]
    fn an_invalid_end_record_is_no_end() {
        for text in ["", "exited", "exited x", "well", "asked 3"] {
            let polled = seen(&folder(&[("ended", text)]), &Poll::Running);
            assert!(matches!(polled, Poll::Unknown(_)), "{text}: {polled:?}");
        }
        let broken = Folder { broken: true, ..Folder::default() };
        assert!(matches!(seen(&broken, &Poll::ended(Ended::NodeFail, None)), Poll::Unknown(_)));
    }

    #[test]
    fn a_job_waits_as_long_as_its_allocation_does_and_runs_from_when_it_was_begun() {
        let waiting = Poll::Waiting { reason: "Resources".into(), never: false };
        assert_eq!(seen(&folder(&[]), &waiting), waiting);
        assert!(matches!(seen(&folder(&[]), &Poll::Running), Poll::Waiting { never: false, .. }));
        for of_batch_job in [Poll::Running, Poll::Suspended] {
            assert_eq!(seen(&folder(&[("began", "")]), &of_batch_job), of_batch_job);
        }
        let away = Poll::Unknown("away".into());
        assert_eq!(seen(&folder(&[("began", "")]), &away), away);
    }

    #[test]
    fn an_allocation_that_is_lost_gives_its_cause_and_its_node_to_those_that_had_not_ended() {
        let blamed = Some(Blamed { node: "n1".into(), evidence: "down".into() });
        let with = |end: Ended| seen(&folder(&[("began", "")]), &Poll::ended(end, blamed.clone()));
        for end in [Ended::NodeFail, Ended::Preempted, Ended::Cancelled, Ended::OutOfMemory] {
            assert_eq!(with(end.clone()), Poll::ended(end, blamed.clone()));
        }
        let over = Ended::AllocationOver { limit_s: 900 };
        assert_eq!(with(Ended::TimeLimit { limit_s: 900 }), Poll::ended(over, blamed.clone()));
        for end in [Ended::Exited { code: 0 }, Ended::Killed { signal: 9 }] {
            assert!(matches!(with(end), Poll::Ended { end: Ended::Lost { .. }, .. }));
        }
    }

    #[test]
    fn an_end_record_delayed_by_nfs_is_honoured_and_seen_while_the_allocation_runs() {
        for of_batch_job in [Poll::ended(Ended::NodeFail, None), Poll::Running] {
            let folder = folder(&[("began", "")]);
            *folder.late.borrow_mut() = Some((path(&job(&["n1"]), "ended"), b"exited 0\n".to_vec()));
            assert_eq!(seen(&folder, &of_batch_job), Poll::ended(Ended::Exited { code: 0 }, None));
        }
    }

    #[test]
    fn a_turn_is_given_once_and_re_read_by_a_resumed_run() {
        let (folder, batch_job) = (folder(&[]), job(&["n1"]));
        assert_eq!(now(given(&folder, &batch_job, 1)), Ok(None));
        assert_eq!(now(give(&folder, &batch_job, 1, 12)), Ok(()));
        assert_eq!(now(given(&folder, &batch_job, 1)), Ok(Some(12)));
        folder.files.borrow_mut().insert(path(&batch_job, "turn.2"), b"x".to_vec());
        assert!(now(given(&folder, &batch_job, 2)).is_err());
    }

    #[test]
    fn messages() {
        let unclear = ["exited", "asked 3"].map(|text| seen(&folder(&[("ended", text)]), &Poll::Running));
        let running = seen(&folder(&[]), &Poll::Running);
        let lost = seen(&folder(&[]), &Poll::ended(Ended::Exited { code: 0 }, None));
        let broken = Folder { broken: true, ..Folder::default() };
        let turns = [&folder(&[("turn.2", "x")]), &broken].map(|folder| now(given(folder, &job(&["n1"]), 2)));
        let polls = unclear.iter().chain([&running, &lost]).map(|poll| format!("{poll:?}"));
        let turns = turns.map(|turn| format!("{:?}", turn.map_err(|error| error.end)));
        insta::assert_snapshot!(polls.chain(turns).collect::<Vec<_>>().join("\n"));
    }
}
