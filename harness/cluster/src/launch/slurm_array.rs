//! An array of small tasks in Slurm that hand over files: submitted, watched and ended as one. What a task does, and
//! whether its file is complete, is for its caller to say; jobs of a run are launched in `slurm.rs`.

use super::QUERY_LIMIT;
use super::slurm::{PAUSES_S, REVOKED, cluster, id, is_bare, pause, refuse_elsewhere};
use crate::reach::slurm_refusal::is_away;
use crate::reach::slurm_state::{JobState, never_clears};
use crate::reach::task_state::Task;
use crate::reach::{Command, Host, Reach, ReachError};
use std::collections::{BTreeMap, BTreeSet};

/// How arrays are asked for.
pub struct Arrays<'a> {
    /// Runs sbatch, squeue and scancel.
    pub reach: &'a dyn Reach,
    /// Where Slurm's commands are called.
    pub host: &'a Host,
    /// What stands behind `sbatch` for every array, such as its partition.
    pub options: Vec<String>,
    /// Of all nodes to be seen; a task's number in it stands as `SLURM_ARRAY_TASK_ID`.
    pub script: String,
}

impl Arrays<'_> {
    /// `name` is this array's alone. Where the answer to `sbatch` was lost the array is found again by it, or as the one that
    /// runs the script and is not `known`, for a submit plugin renames jobs. It is kept off some nodes, unless Slurm has no
    /// others for it.
    pub async fn submit(
        &self,
        name: &str,
        tasks: &BTreeSet<usize>,
        off: &BTreeSet<String>,
        known: &BTreeSet<String>,
    ) -> Result<String, String> {
        let numbers: Vec<String> = tasks.iter().map(usize::to_string).collect();
        let mut argv =
            ["sbatch", "--parsable", "--no-requeue", "--nodes=1", "--ntasks=1"].map(str::to_owned).to_vec();
        argv.extend([format!("--job-name={name}"), format!("--array={}", numbers.join(","))]);
        argv.extend(self.options.iter().cloned());
        let submit = |off: Option<String>| {
            let last = off.map(|nodes| format!("--exclude={nodes}")).into_iter().chain([self.script.clone()]);
            Command::new(argv.iter().cloned().chain(last), QUERY_LIMIT)
        };
        let mut off = (!off.is_empty()).then(|| off.iter().cloned().collect::<Vec<_>>().join(","));
        let mut pauses = PAUSES_S.iter();
        let mut may_be_there = false;
        // Why the answer of a submission that succeeded names no array for certain.
        let mut unread: Option<String> = None;
        loop {
            let why = if may_be_there {
                match self.find(name, known).await {
                    Ok(Some(id)) => return Ok(id),
                    Ok(None) if unread.is_some() => return Err(unread.unwrap_or_default()),
                    Ok(None) => {
                        may_be_there = false;
                        continue;
                    }
                    Err(why) => why,
                }
            } else {
                match self.reach.exec(self.host, &submit(off.clone())).await {
                    Ok(answer) if answer.succeeded() => match id(&answer) {
                        Ok(id) if cluster(&answer).is_some() => {
                            // Each cluster has its own numbers, and only that of the queue here is asked and ended.
                            if let Ok(Some(found)) = self.find(name, known).await
                                && found == id
                            {
                                return Ok(id);
                            }
                            let cluster = cluster(&answer).unwrap_or_default();
                            return Err(refuse_elsewhere(self.reach, self.host, &id, &cluster, name).await);
                        }
                        Ok(id) if is_bare(&answer) => return Ok(id),
                        Ok(id) => unread.insert(format!("job {id} of `sbatch` is not in the queue")).clone(),
                        Err(not) => unread.insert(not.why().to_owned()).clone(),
                    },
                    Ok(answer) => {
                        let why = format!("`sbatch` ended with {}: {}", answer.status, answer.complaint());
                        if !is_away(&answer.complaint()) {
                            match off.take() {
                                Some(_) => continue,
                                None => return Err(why),
                            }
                        }
                        why
                    }
                    Err(error @ (ReachError::TimedOut { .. } | ReachError::Unreachable { .. })) => {
                        error.to_string()
                    }
                    Err(error) => return Err(error.to_string()),
                }
            };
            may_be_there = true;
            match pauses.next() {
                Some(seconds) if pause(*seconds).await => {}
                _ => return Err(why),
            }
        }
    }

    async fn find(&self, name: &str, known: &BTreeSet<String>) -> Result<Option<String>, String> {
        let text = self.ask(&OWN).await?;
        let lines = text.lines().map(str::trim).filter_map(|line| line.split_once('|'));
        let unknown: BTreeMap<&str, &str> = lines.filter(|(id, _)| !known.contains(*id)).collect();
        let is_named = |listed: &str| listed.strip_prefix(name).is_some_and(|rest| rest.starts_with('|'));
        let runs = |listed: &str| listed.strip_suffix(&self.script).is_some_and(|rest| rest.ends_with('|'));
        let named = unknown.iter().find(|(_, listed)| is_named(listed));
        let found = named.or_else(|| unknown.iter().find(|(_, listed)| runs(listed)));
        Ok(found.map(|(id, _)| (*id).to_owned()))
    }

    /// Of the tasks of these arrays what is known of them, each array's by their numbers. Slurm forgets tasks some
    /// minutes after their end: then they are not among them.
    pub async fn poll(&self, ids: &BTreeSet<String>) -> Result<BTreeMap<(String, usize), Task>, String> {
        let mut known = BTreeMap::new();
        for id in ids {
            // One id that is forgotten spoils the answer for all: each is asked for by itself.
            let argv =
                ["squeue", "--noheader", "--all", "--states=all", "--array", FORMAT, &format!("--jobs={id}")];
            match self.ask(&argv).await {
                Ok(text) => {
                    let tasks = text.lines().filter_map(line);
                    known.extend(tasks.map(|(number, task)| ((id.clone(), number), task)));
                }
                Err(why) if why.contains("Invalid job id") => {}
                Err(why) => return Err(why),
            }
        }
        Ok(known)
    }

    /// Arrays or tasks, as `scancel` names them. Ending what has ended already is no error.
    pub async fn cancel(&self, which: &BTreeSet<String>) {
        for which in which {
            let _ = self.reach.exec(self.host, &Command::new(["scancel", which], QUERY_LIMIT)).await;
        }
    }

    async fn ask(&self, argv: &[&str]) -> Result<String, String> {
        let program = argv.first().copied().unwrap_or_default();
        let command = Command::new(argv.iter().copied(), QUERY_LIMIT);
        match self.reach.exec(self.host, &command).await {
            Ok(answer) if answer.succeeded() => Ok(answer.stdout_text()),
            Ok(answer) => Err(format!("`{program}` ended with {}: {}", answer.status, answer.complaint())),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// All arrays of the user, with their names and scripts, which may hold anything.
const OWN: [&str; 6] = ["squeue", "--noheader", "--all", "--me", "--states=all", "--format=%F|%j|%o"];

/// The task's number, its state, why it waits, and its node.
const FORMAT: &str = "--format=%K|%T|%r|%N";

/// A line that says nothing is left out: its task is asked for again.
fn line(text: &str) -> Option<(usize, Task)> {
    let mut fields = text.split('|').map(str::trim);
    let (number, state, reason) = (fields.next()?, fields.next()?, fields.next()?);
    let node = fields.next().unwrap_or_default();
    let task = match JobState::parse(state) {
        JobState::Pending => Task::Waiting { never: never_clears(reason).then(|| reason.to_owned()) },
        JobState::Configuring => Task::Waiting { never: None },
        JobState::Revoked => Task::Waiting { never: Some(REVOKED.to_owned()) },
        JobState::Running | JobState::Completing | JobState::Suspended | JobState::Unknown(_) => {
            Task::Running
        }
        ended => Task::Ended {
            state: state.to_owned(),
            completed: ended == JobState::Completed,
            node: node.to_owned(),
        },
    };
    Some((number.parse().ok()?, task))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reach::{Answer, Wait};
    use std::cell::RefCell;

    /// Gives its answers one by one, and keeps what it was asked.
    struct Answers(RefCell<Vec<Answer>>, RefCell<Vec<String>>);

    impl Reach for Answers {
        fn exec<'a>(&'a self, _: &'a Host, command: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
            Box::pin(async move {
                self.1.borrow_mut().push(command.argv.join(" "));
                Ok(self.0.borrow_mut().remove(0))
            })
        }
        fn put<'a>(&'a self, _: &'a Host, _: &'a str, _: &'a [u8]) -> Wait<'a, Result<(), ReachError>> {
            Box::pin(async { Ok(()) })
        }
        fn get<'a>(&'a self, _: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
            Box::pin(async move { Err(ReachError::NotFound { path: path.to_owned() }) })
        }
    }

    fn asked<T>(answers: Vec<Answer>, work: impl AsyncFnOnce(&Arrays) -> T) -> (T, Vec<String>) {
        let reach = Answers(RefCell::new(answers), RefCell::default());
        let options = vec!["--partition=gpu".to_owned()];
        let arrays = Arrays { reach: &reach, host: &Host::Here, options, script: "/s/task.sh".to_owned() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let result = runtime.expect("a runtime").block_on(work(&arrays));
        (result, reach.1.into_inner())
    }

    fn none() -> BTreeSet<String> {
        BTreeSet::new()
    }

    #[test]
    fn an_array_is_submitted_with_the_numbers_of_its_tasks() {
        let work =
            async |arrays: &Arrays| arrays.submit("a.1", &BTreeSet::from([2, 5]), &none(), &none()).await;
        let (result, asked) = asked(vec![Answer::ok("77\n")], work);
        assert_eq!(result, Ok("77".to_owned()));
        assert_eq!(
            asked,
            [
                "sbatch --parsable --no-requeue --nodes=1 --ntasks=1 --job-name=a.1 --array=2,5 --partition=gpu /s/task.sh"
            ]
        );
    }

    #[test]
    fn an_array_on_a_cluster_that_is_not_asked_here_is_ended_there_and_refused() {
        let work = async |arrays: &Arrays| arrays.submit("a.1", &BTreeSet::from([1]), &none(), &none()).await;
        let named = || Answer::ok("77;gpu\n");
        let (result, asked_of) = asked(vec![named(), Answer::ok("77|a.1|/s/task.sh\n")], work);
        assert_eq!((result, asked_of.len()), (Ok("77".to_owned()), 2));
        let others = Answer::ok("77|my-training|/home/jo/train.sh\n");
        let (result, asked_of) = asked(vec![named(), others, Answer::ok("")], work);
        assert!(result.is_err_and(|why| why.contains("job 77 on cluster `gpu`")));
        assert_eq!(asked_of[2..], ["scancel --clusters=gpu --name=a.1 77"]);
    }

    #[test]
    fn an_array_is_kept_off_nodes_unless_there_are_no_others() {
        let off = BTreeSet::from(["n1".to_owned(), "n3".to_owned()]);
        let work = async |arrays: &Arrays| arrays.submit("a.2", &BTreeSet::from([2]), &off, &none()).await;
        let (result, asked_of) = asked(vec![Answer::ok("77\n")], work);
        assert_eq!(result, Ok("77".to_owned()));
        assert!(asked_of[0].ends_with("--partition=gpu --exclude=n1,n3 /s/task.sh"), "{asked_of:?}");
        let refused = || Answer::failed(1, "Requested node configuration is not available");
        let (result, asked_of) = asked(vec![refused(), Answer::ok("78\n")], work);
        assert_eq!(result, Ok("78".to_owned()));
        assert!(asked_of[1].ends_with("--partition=gpu /s/task.sh"), "{asked_of:?}");
        let (result, asked_of) = asked(vec![refused(), refused()], work);
        assert_eq!((result.is_err(), asked_of.len()), (true, 2));
    }

    #[test]
    fn where_the_controller_was_away_the_array_is_looked_for_before_it_is_submitted_again() {
        let known = BTreeSet::from(["70".to_owned()]);
        let work = async |arrays: &Arrays| arrays.submit("a.1", &BTreeSet::from([1]), &none(), &known).await;
        let away = || Answer::failed(1, "sbatch: error: Batch job submission failed: Socket timed out");
        let (result, asked_of) =
            asked(vec![away(), Answer::ok("78|a.1|/s/task.sh\n78|a.1|/s/task.sh\n")], work);
        assert_eq!((result, asked_of.len()), (Ok("78".to_owned()), 2));
        // A submit plugin has renamed them all: that of an earlier array, that of another analysis, and this one.
        let listed = "70|mine|/s/task.sh\n71|mine|/other/s/task.sh\n72|mine|(null)\n78|mine|/s/task.sh\n";
        let (result, asked_of) = asked(vec![away(), Answer::ok(listed)], work);
        assert_eq!((result, asked_of.len()), (Ok("78".to_owned()), 2), "{asked_of:?}");
        let (result, asked_of) = asked(vec![away(), Answer::ok(""), Answer::ok("79\n")], work);
        assert_eq!((result, asked_of.len()), (Ok("79".to_owned()), 3));
        let (result, _) = asked(vec![Answer::failed(1, "invalid partition specified: gpu")], work);
        assert!(result.is_err_and(|why| why.contains("invalid partition")));
    }

    #[test]
    fn below_a_banner_the_array_is_looked_for_by_its_name() {
        let work = async |arrays: &Arrays| arrays.submit("a.1", &BTreeSet::from([1]), &none(), &none()).await;
        let banner = || Answer::ok("Welcome\n\n--> Verifying valid submit host (login1)...OK\n78\n");
        let (result, asked_of) = asked(vec![banner(), Answer::ok("78|a.1|/s/task.sh\n")], work);
        assert_eq!((result, asked_of.len()), (Ok("78".to_owned()), 2));
        let (result, asked_of) = asked(vec![banner(), Answer::ok("")], work);
        assert_eq!((result, asked_of.len()), (Err("job 78 of `sbatch` is not in the queue".to_owned()), 2));
    }

    #[test]
    fn states_of_tasks_are_distinguished_and_a_forgotten_array_is_no_failure() {
        let text = "1|COMPLETED|None|n1\n2|RUNNING|None|n2\n3|PENDING|Resources|\n4|PENDING|JobHeldUser|\n\
                    5|CANCELLED|None|n4\n6|ODD|None|n4\n7|REVOKED|None|\nnonsense\n";
        let work =
            async |arrays: &Arrays| arrays.poll(&BTreeSet::from(["7".to_owned(), "8".to_owned()])).await;
        let forgotten = Answer::failed(1, "slurm_load_jobs error: Invalid job id specified");
        let (result, _) = asked(vec![Answer::ok(text), forgotten], work);
        let result = result.expect("an answer");
        let of = |number: usize| result.get(&("7".to_owned(), number)).cloned();
        let ended = |state: &str, completed, node: &str| {
            Some(Task::Ended { state: state.to_owned(), completed, node: node.to_owned() })
        };
        assert_eq!(of(1), ended("COMPLETED", true, "n1"));
        assert_eq!((of(2), of(6)), (Some(Task::Running), Some(Task::Running)));
        assert_eq!(of(3), Some(Task::Waiting { never: None }));
        assert_eq!(of(4), Some(Task::Waiting { never: Some("JobHeldUser".to_owned()) }));
        assert_eq!(of(7), Some(Task::Waiting { never: Some(REVOKED.to_owned()) }));
        assert_eq!((of(5), result.len()), (ended("CANCELLED", false, "n4"), 7));
        let (result, _) = asked(vec![Answer::failed(1, "Unable to contact slurm controller")], work);
        assert!(result.is_err());
    }
}
