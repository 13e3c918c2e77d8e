//! What Slurm's accounting has of jobs that are not in the queue any more: where it says that one of them goes on, one of
//! the two is wrong. A cluster without accounting says nothing, and the queue alone counts.

use super::{Cleaned, Jobs};
use crate::launch::QUERY_LIMIT;
use crate::reach::slurm_state::JobState;
use crate::reach::{Answer, Command, Host, Reach};
use std::collections::BTreeMap;
use std::time::Duration;

const FORMAT: &str = "--format=JobIDRaw,State,JobName,WorkDir";
/// The accounting hears of an end a moment after the queue.
const TRIES: usize = 5;
const PAUSE: Duration = Duration::from_secs(2);
/// An argument list has its limits.
const AT_ONCE: usize = 200;

pub(super) async fn look(
    jobs: &Jobs,
    gone: &BTreeMap<String, String>,
    reach: &dyn Reach,
    cleaned: &mut Cleaned,
) {
    let ids: Vec<&str> = gone.keys().map(String::as_str).collect();
    for ids in ids.chunks(AT_ONCE) {
        let mut going = Vec::new();
        for tries in 0..TRIES {
            going = goes_on(jobs, ids, reach).await;
            if going.is_empty() || tries + 1 == TRIES {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
        cleaned.unclear.extend(going.into_iter().map(|(id, state)| {
            let job = gone.get(&id).map(String::as_str).unwrap_or_default();
            format!("job {id} ({job}) is {state} in the accounting, but not in the queue")
        }));
    }
}

/// Those of the run that have not ended, with their states.
async fn goes_on(jobs: &Jobs, ids: &[&str], reach: &dyn Reach) -> Vec<(String, String)> {
    let which = format!("--jobs={}", ids.join(","));
    let argv = ["sacct", "--noheader", "--parsable2", "--allocations", FORMAT, &which];
    let answer = reach.exec(&Host::Here, &Command::new(argv, QUERY_LIMIT)).await;
    let Some(answer) = answer.ok().filter(Answer::succeeded) else { return Vec::new() };
    let text = answer.stdout_text();
    let going = text.lines().filter_map(|line| {
        let mut fields = line.trim().splitn(3, '|');
        let (id, state, named) = (fields.next()?, fields.next()?, fields.next()?);
        let state_of = JobState::parse(state);
        let goes_on = !state_of.has_ended() && !matches!(state_of, JobState::Unknown(_));
        // An id that was given again is another's.
        let is_ours = ids.contains(&id) && jobs.find_listed(&format!("{named}|")).is_some();
        (goes_on && is_ours).then(|| (id.to_owned(), state.escape_debug().to_string()))
    });
    going.collect()
}
