//! Waits for tasks and reads their files. A task that ends without a complete file is restarted a few times, on another
//! node; then it is lost, and the reason is reported.

use super::queue::Queue;
use super::{AnalysisFolder, PART, part};
use base::text::count;
use cluster::interrupt;
use cluster::reach::ReachError;
use cluster::reach::task_state::Task;
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
/// Who starts them may give no answer for so long.
const AWAY: Duration = Duration::from_secs(600);
/// So long a task waits for another node than the one that lost it.
const ELSEWHERE: Duration = Duration::from_secs(300);

pub(super) struct Gathered<T> {
    pub parts: Vec<T>,
    /// By number of the task.
    pub lost: BTreeMap<usize, String>,
}

/// A task that goes on, as far as is known.
struct OpenTask {
    array: String,
    tries: usize,
    /// Since it is known to have ended.
    ended: Duration,
    /// It is kept off nodes.
    elsewhere: bool,
    waited: Duration,
}

/// A task that is to be started.
struct TaskStart {
    tries: usize,
    /// The node that lost it before.
    off: Option<String>,
}

/// The state of a task at one poll.
enum TaskState<T> {
    GoesOn,
    Done(T),
    /// It failed, or its file is incomplete; unless `is_final`, a restart may help.
    Lost {
        why: String,
        is_final: bool,
        on: Option<String>,
    },
}

/// Reads the files of tasks.
pub(super) trait PartReader {
    type Part;

    /// Reads the file of a task, or says why it cannot be read.
    fn part(&self, task: usize, bytes: &[u8]) -> Result<Self::Part, String>;

    /// Called with each part as it arrives.
    fn done(&mut self, part: &Self::Part);
}

pub(super) async fn gather<R: PartReader>(
    queue: &Queue<'_>,
    place: &AnalysisFolder<'_>,
    digest: &str,
    tasks: usize,
    read: &mut R,
    notify: &mut dyn FnMut(&str),
) -> Result<Gathered<R::Part>, super::Failed> {
    let mut gathered = Gathered { parts: Vec::new(), lost: BTreeMap::new() };
    let mut open: BTreeMap<usize, OpenTask> = BTreeMap::new();
    let mut to_start: BTreeMap<usize, TaskStart> =
        (1..=tasks).map(|task| (task, TaskStart { tries: 1, off: None })).collect();
    let (mut started, mut pause, mut away) = (0, FIRST_PAUSE, Duration::ZERO);
    // The ids of all that were started.
    let mut submitted: BTreeSet<String> = BTreeSet::new();
    let name = place.folder.rsplit('/').next().unwrap_or_default();
    while !to_start.is_empty() || !open.is_empty() {
        if !to_start.is_empty() {
            started += 1;
            let tasks: BTreeSet<usize> = to_start.keys().copied().collect();
            let off: BTreeSet<String> = to_start.values().filter_map(|start| start.off.clone()).collect();
            match queue.submit(&analysis_names::array(name, started), &tasks, &off, &submitted).await {
                Ok(array) => {
                    open.extend(std::mem::take(&mut to_start).into_iter().map(|(task, start)| {
                        let (ended, waited) = (Duration::ZERO, Duration::ZERO);
                        let array = array.clone();
                        (
                            task,
                            OpenTask { array, tries: start.tries, ended, elsewhere: !off.is_empty(), waited },
                        )
                    }));
                    submitted.insert(array);
                }
                Err(why) if interrupt::asked().is_none() => {
                    // Nothing runs yet: there is nothing that could be joined.
                    if open.is_empty() && gathered.parts.is_empty() {
                        return Err(why.into());
                    }
                    for task in tasks {
                        gathered.lost.insert(task, format!("its task could not be restarted: {why}"));
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
            // By their names, also where no answer came any more; and by their ids.
            let names: Vec<String> =
                (1..=started).map(|number| analysis_names::array(name, number)).collect();
            queue.cancel_all(&names, &submitted).await;
            return Err(super::Failed::Interrupted(code));
        }
        let known = queue.poll(&ids).await;
        away = if known.is_ok() { Duration::ZERO } else { away + pause };
        for (task, mut of_task) in std::mem::take(&mut open) {
            let state = known.as_ref().map(|known| known.get(&(of_task.array.clone(), task)));
            match poll_task(queue, place, (digest, &*read), task, &mut of_task, state, pause).await {
                TaskState::GoesOn if away > AWAY => {
                    let why = known.as_ref().err().map_or("", String::as_str);
                    gathered.lost.insert(
                        task,
                        format!("{} does not report the state of its task: {why}", queue.name()),
                    );
                }
                TaskState::GoesOn => {
                    open.insert(task, of_task);
                }
                TaskState::Done(part) => {
                    read.done(&part);
                    gathered.parts.push(part);
                }
                TaskState::Lost { why, is_final: false, on } if of_task.tries < TRIES => {
                    notify(&format!("task {task} was lost and is restarted: {why}"));
                    to_start.insert(task, TaskStart { tries: of_task.tries + 1, off: on });
                }
                TaskState::Lost { why, .. } => {
                    let why =
                        format!("its task was started {} and lost: {why}", count(of_task.tries, "time"));
                    gathered.lost.insert(task, why);
                }
            }
        }
        if away > AWAY {
            queue.cancel(&ids).await;
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    Ok(gathered)
}

async fn poll_task<R: PartReader>(
    queue: &Queue<'_>,
    place: &AnalysisFolder<'_>,
    (digest, read): (&str, &R),
    task: usize,
    open: &mut OpenTask,
    // Nothing of a task that is not known any more; an error where it gives no answer.
    state: Result<Option<&Task>, &String>,
    since: Duration,
) -> TaskState<R::Part> {
    let on = match state {
        Ok(Some(Task::Running)) => return TaskState::GoesOn,
        Ok(Some(Task::Waiting { never: refused })) => {
            open.waited += since;
            let why = match refused {
                Some(reason) => format!("{} does not start it: {reason}", queue.name()),
                None if open.elsewhere && open.waited > ELSEWHERE => {
                    format!("no other node started it within {} s", ELSEWHERE.as_secs())
                }
                None => return TaskState::GoesOn,
            };
            queue.cancel(&BTreeSet::from([format!("{}_{task}", open.array)])).await;
            // The node that lost it may be all that there is.
            return TaskState::Lost { why, is_final: !open.elsewhere, on: None };
        }
        Ok(Some(Task::Ended { node, .. })) => Some(node.clone()).filter(|node| !node.is_empty()),
        Ok(None) | Err(_) => None,
    };
    let file = match place.reach.get(place.host, &place.path(&format!("{PART}{task}"))).await {
        Ok(file) => file,
        Err(ReachError::NotFound { .. }) => {
            let why = match state {
                // It may go on.
                Err(_) => return TaskState::GoesOn,
                Ok(Some(Task::Ended { state, completed: false, node })) if node.is_empty() => state.clone(),
                Ok(Some(Task::Ended { state, completed: false, node })) => format!("{state} on {node}"),
                Ok(_) => {
                    open.ended += since;
                    if open.ended < LATE {
                        return TaskState::GoesOn;
                    }
                    "it ended and left no file".to_owned()
                }
            };
            return TaskState::Lost {
                why: format!("{why}{}", last_log_line(place, task).await),
                is_final: false,
                on,
            };
        }
        Err(error) => return TaskState::Lost { why: format!("its file: {error}"), is_final: false, on },
    };
    match part::read(digest, task, &file).and_then(|bytes| read.part(task, bytes)) {
        Ok(part) => TaskState::Done(part),
        Err(why) => TaskState::Lost { why: format!("its file: {why}"), is_final: false, on },
    }
}

/// The last line of a task's log.
async fn last_log_line(place: &AnalysisFolder<'_>, task: usize) -> String {
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
