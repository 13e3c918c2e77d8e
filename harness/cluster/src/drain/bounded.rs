//! Several nodes, one after the other, as long as no more of them are drained than may be: whoever else drains at the
//! same moment is seen before each node and behind it.

use super::{Drained, NodeState, Queue, Wanted};

/// How many nodes may be drained together.
pub trait Bound {
    /// Why `next` may not be drained on top of what the queue shows; with no next one, why it shows too many.
    fn exceeded(&self, next: Option<&Wanted>, all: &[(String, NodeState)]) -> Option<String>;
}

/// What became of the nodes, as far as it came, and why it came no farther.
pub async fn drain_all(
    queue: &dyn Queue,
    wanted: &[Wanted],
    bound: &dyn Bound,
) -> (Vec<Drained>, Option<String>) {
    let exceeded = async |next: Option<&Wanted>| match queue.show_all().await {
        Ok(all) => bound.exceeded(next, &all),
        Err(why) => Some(format!("the number of drained nodes is unknown: {why}")),
    };
    let mut done = Vec::new();
    for one in wanted {
        if let Some(why) = exceeded(Some(one)).await {
            return (done, Some(why));
        }
        let drained = queue.drain(one).await;
        let is_new = !matches!(drained, Drained::Already { .. } | Drained::Others { .. });
        done.push(drained);
        if is_new && let Some(why) = exceeded(None).await {
            return (done, Some(why));
        }
    }
    (done, None)
}
