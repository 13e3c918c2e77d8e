//! Waits for tasks and takes in what they leave. A task that ends without a whole file is started again, so many times and
//! on another node; then it is lost, and why is told.

use super::{PART, Place, part};
use cluster::interrupt;
use cluster::launch::slurm_array::{Arrays, Task};
use cluster::reach::ReachError;
use model::analysis_names;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// So often a task is started.
const TRIES: usize = 3;
/// From one question to the next.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// A file that its task left may be seen elsewhere later than its end.
const LATE: Duration = Duration::from_secs(60);
/// Slurm may give no answer for so long.
const AWAY: Duration = Duration::from_secs(600);
/// So long a task waits for another node than the one that lost it.
const ELSEWHERE: Duration = Duration::from_secs(300);

pub(super) struct Gathered<T> {
    pub parts: Vec<T>,
    /// By number of the task.
    pub lost: BTreeMap<usize, String>,
}

/// A task that goes on, as far as is known.
struct Open {
    array: String,
    tries: usize,
    /// Since it is known to have ended.
    ended: Duration,
    /// It is kept off nodes.
    elsewhere: bool,
    waited: Duration,
}

/// A task that is to be started.
struct Start {
    tries: usize,
    /// The node that lost it before.
    off: Option<String>,
}

/// What is seen of a task at one look.
enum Seen<T> {
    GoesOn,
    Done(T),
    /// It ended so, or its file is not whole; another start may help where nobody says `never`.
    Lost {
        why: String,
        never: bool,
        on: Option<String>,
    },
}

/// What the files of tasks are read for.
pub(super) trait Read {
    type Part;

    /// What is in the file of a task; else why it is none.
    fn part(&self, task: usize, bytes: &[u8]) -> Result<Self::Part, String>;

    /// Told of each part as it comes.
    fn done(&mut self, part: &Self::Part);
}

pub(super) async fn gather<R: Read>(
    arrays: &Arrays<'_>,
    place: &Place<'_>,
    digest: &str,
    tasks: usize,
    read: &mut R,
    tell: &mut dyn FnMut(&str),
) -> Result<Gathered<R::Part>, super::Failed> {
    let mut gathered = Gathered { parts: Vec::new(), lost: BTreeMap::new() };
    let mut open: BTreeMap<usize, Open> = BTreeMap::new();
    let mut to_start: BTreeMap<usize, Start> =
        (1..=tasks).map(|task| (task, Start { tries: 1, off: None })).collect();
    let (mut started, mut pause, mut away) = (0, FIRST_PAUSE, Duration::ZERO);
    // The ids of all that were started.
    let mut of_slurm: BTreeSet<String> = BTreeSet::new();
    let name = place.folder.rsplit('/').next().unwrap_or_default();
    while !to_start.is_empty() || !open.is_empty() {
        if !to_start.is_empty() {
            started += 1;
            let tasks: BTreeSet<usize> = to_start.keys().copied().collect();
            let off: BTreeSet<String> = to_start.values().filter_map(|start| start.off.clone()).collect();
            match arrays.submit(&analysis_names::array(name, started), &tasks, &off, &of_slurm).await {
                Ok(array) => {
                    open.extend(std::mem::take(&mut to_start).into_iter().map(|(task, start)| {
                        let (ended, waited) = (Duration::ZERO, Duration::ZERO);
                        let array = array.clone();
                        (task, Open { array, tries: start.tries, ended, elsewhere: !off.is_empty(), waited })
                    }));
                    of_slurm.insert(array);
                }
                Err(why) if interrupt::asked().is_none() => {
                    // Nothing runs yet: there is nothing that could be joined.
                    if open.is_empty() && gathered.parts.is_empty() {
                        return Err(why.into());
                    }
                    for task in tasks {
                        gathered.lost.insert(task, format!("its task could not be started again: {why}"));
                    }
                    to_start.clear();
                }
                Err(_) => {}
            }
            pause = FIRST_PAUSE;
        }
        let ids: BTreeSet<String> = open.values().map(|open| open.array.clone()).collect();
        wait(pause).await;
        if let Some(code) = interrupt::asked() {
            // By their names, also where the answer to `sbatch` did not come any more; and by their ids.
            let names = (1..=started).map(|number| format!("--name={}", analysis_names::array(name, number)));
            arrays.cancel(&names.chain(of_slurm).collect()).await;
            return Err(super::Failed::Interrupted(code));
        }
        let known = arrays.poll(&ids).await;
        away = if known.is_ok() { Duration::ZERO } else { away + pause };
        for (task, mut of_task) in std::mem::take(&mut open) {
            let state = known.as_ref().map(|known| known.get(&(of_task.array.clone(), task)));
            match look(arrays, place, (digest, &*read), task, &mut of_task, state, pause).await {
                Seen::GoesOn if away > AWAY => {
                    let why = known.as_ref().err().map_or("", String::as_str);
                    gathered.lost.insert(task, format!("nobody can tell what became of its task: {why}"));
                }
                Seen::GoesOn => {
                    open.insert(task, of_task);
                }
                Seen::Done(part) => {
                    read.done(&part);
                    gathered.parts.push(part);
                }
                Seen::Lost { why, never: false, on } if of_task.tries < TRIES => {
                    tell(&format!("task {task} is started again, as it was lost: {why}"));
                    to_start.insert(task, Start { tries: of_task.tries + 1, off: on });
                }
                Seen::Lost { why, .. } => {
                    let why = format!("its task was lost, which was started {} times: {why}", of_task.tries);
                    gathered.lost.insert(task, why);
                }
            }
        }
        if away > AWAY {
            arrays.cancel(&ids).await;
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    Ok(gathered)
}

async fn look<R: Read>(
    arrays: &Arrays<'_>,
    place: &Place<'_>,
    (digest, read): (&str, &R),
    task: usize,
    open: &mut Open,
    // Nothing of a task that Slurm does not know any more; an error where it gives no answer.
    state: Result<Option<&Task>, &String>,
    since: Duration,
) -> Seen<R::Part> {
    let on = match state {
        Ok(Some(Task::Running)) => return Seen::GoesOn,
        Ok(Some(Task::Waiting { never })) => {
            open.waited += since;
            let why = match never {
                Some(reason) => format!("Slurm does not start it: {reason}"),
                None if open.elsewhere && open.waited > ELSEWHERE => {
                    format!("no other node has taken it in: {} s", ELSEWHERE.as_secs())
                }
                None => return Seen::GoesOn,
            };
            arrays.cancel(&BTreeSet::from([format!("{}_{task}", open.array)])).await;
            // The node that lost it may be all that there is.
            return Seen::Lost { why, never: !open.elsewhere, on: None };
        }
        Ok(Some(Task::Ended { node, .. })) => Some(node.clone()).filter(|node| !node.is_empty()),
        Ok(None) | Err(_) => None,
    };
    let file = match place.reach.get(place.host, &place.path(&format!("{PART}{task}"))).await {
        Ok(file) => file,
        Err(ReachError::NotFound { .. }) => {
            let why = match state {
                // It may go on.
                Err(_) => return Seen::GoesOn,
                Ok(Some(Task::Ended { state, completed: false, node })) => format!("{state} on {node}"),
                Ok(_) => {
                    open.ended += since;
                    if open.ended < LATE {
                        return Seen::GoesOn;
                    }
                    "it ended and left no file".to_owned()
                }
            };
            return Seen::Lost { why: format!("{why}{}", said(place, task).await), never: false, on };
        }
        Err(error) => return Seen::Lost { why: format!("its file: {error}"), never: false, on },
    };
    match part::read(digest, task, &file).and_then(|bytes| read.part(task, bytes)) {
        Ok(part) => Seen::Done(part),
        Err(why) => Seen::Lost { why: format!("its file: {why}"), never: false, on },
    }
}

/// The last line that it said.
async fn said(place: &Place<'_>, task: usize) -> String {
    let log = place.reach.get(place.host, &place.path(&format!("task-{task}.log"))).await.unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    let last = log.lines().map(str::trim).rfind(|line| !line.is_empty());
    last.map(|line| format!(": {line}")).unwrap_or_default()
}

/// Shorter where somebody wants it to end.
async fn wait(long: Duration) {
    let mut left = long;
    while !left.is_zero() && interrupt::asked().is_none() {
        let some = left.min(FIRST_PAUSE);
        tokio::time::sleep(some).await;
        left -= some;
    }
}
