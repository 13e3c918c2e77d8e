//! A drained node while it is looked at again: back in the queue for one user alone, with a good partner, by a
//! reservation that lasts until somebody ends it. So a harness that is ended in the middle leaves no unproven node to
//! others.

use super::{NodeState, Wanted, drain, scontrol, show, update};
use crate::launch::QUERY_LIMIT;
use crate::reach::{Command, Host, Reach};
use std::time::Duration;

/// A node that was drained for a reason of ours, and is held for a re-check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The node that is rechecked.
    pub node: String,
    /// A good node that shares the reservation with it.
    pub partner: String,
    /// Why it was drained; the same again where it does not pass.
    pub reason: String,
    /// `harness_recheck_NODE`.
    pub reservation: String,
}

/// A daemon registers some seconds after its node was resumed.
const ANSWERS_WITHIN: Duration = Duration::from_secs(90);
const PAUSE: Duration = Duration::from_secs(1);

/// What a node that a harness left in the middle is drained for.
const ENDED: &str = "a re-check was interrupted before it passed";

fn name(node: &str) -> String {
    format!("harness_recheck_{node}")
}

/// What became of the reservation that an earlier re-check of a node may have left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leftover {
    /// There is none.
    Absent,
    /// Its node is drained, and it is gone.
    Ended,
    /// That re-check may be going on: node and reservation are left as they are, for this reason.
    InUse(String),
}

/// Drains what a harness that was ended had put back, and ends its reservation. One of another user, or with jobs, is that of a
/// re-check that goes on.
pub async fn take_up(reach: &dyn Reach, node: &str) -> Result<Leftover, String> {
    let reservation = name(node);
    let printed = match scontrol(reach, &["--oneliner", "show", "reservation", &reservation]).await {
        Err(why) if why.to_lowercase().contains("not found") => return Ok(Leftover::Absent),
        shown => shown?,
    };
    let users = printed.split_whitespace().find_map(|word| word.strip_prefix("Users=")).unwrap_or("unknown");
    if users != user(reach).await? {
        return Ok(Leftover::InUse(format!(
            "reservation `{reservation}` is of user {users}: a re-check may be going on; left as it is"
        )));
    }
    let jobs = jobs_in(reach, &reservation).await?;
    if !jobs.is_empty() {
        return Ok(Leftover::InUse(format!(
            "a re-check is going on in reservation `{reservation}`, jobs {}; left as it is",
            jobs.join(" ")
        )));
    }
    let shown = show(reach, node).await?;
    if !shown.is_draining() && shown.reason.is_none() {
        let reason = format!("{} {ENDED}", verdict::isolate::code::REASON);
        drain_again(reach, node, &reason).await?;
    }
    end(reach, &reservation).await?;
    Ok(Leftover::Ended)
}

async fn user(reach: &dyn Reach) -> Result<String, String> {
    let id = reach.exec(&Host::Here, &Command::new(["id", "-un"], QUERY_LIMIT)).await;
    Ok(id.map_err(|error| error.to_string())?.stdout_text().trim().to_owned())
}

/// Those that wait or run in it.
async fn jobs_in(reach: &dyn Reach, reservation: &str) -> Result<Vec<String>, String> {
    let of = format!("--reservation={reservation}");
    let command = Command::new(["squeue", "--noheader", "--all", of.as_str(), "--format=%i"], QUERY_LIMIT);
    match reach.exec(&Host::Here, &command).await {
        Ok(answer) if answer.succeeded() => {
            Ok(answer.stdout_text().split_whitespace().map(str::to_owned).collect())
        }
        Ok(answer) => Err(format!("`squeue` ended with {}: {}", answer.status, answer.complaint())),
        Err(error) => Err(format!("`squeue`: {error}")),
    }
}

/// Puts a node back for us alone. Whatever goes wrong leaves it drained, and no reservation.
pub async fn hold(reach: &dyn Reach, node: &str, partner: &str) -> Result<Held, String> {
    if let Leftover::InUse(why) = take_up(reach, node).await? {
        return Err(why);
    }
    let shown = show(reach, node).await?;
    let reason = shown.ours().filter(|_| shown.is_draining()).map(str::to_owned);
    let reason = reason.ok_or_else(|| format!("it is no longer drained by the harness: {shown}"))?;
    let user = user(reach).await?;
    let reservation = name(node);
    let words = [
        "create".to_owned(),
        "reservation".to_owned(),
        format!("ReservationName={reservation}"),
        "StartTime=now".to_owned(),
        "Duration=infinite".to_owned(),
        format!("Nodes={node},{partner}"),
        format!("Users={user}"),
        "Flags=IGNORE_JOBS".to_owned(),
    ];
    scontrol(reach, &words.iter().map(String::as_str).collect::<Vec<_>>()).await?;
    let held = Held { node: node.to_owned(), partner: partner.to_owned(), reason, reservation };
    match put_back(reach, node, &shown).await {
        Ok(()) => Ok(held),
        Err(why) => match release(reach, &held, false).await {
            Ok(()) => Err(why),
            Err(more) => Err(format!("{why}; {more}")),
        },
    }
}

async fn put_back(reach: &dyn Reach, node: &str, drained: &NodeState) -> Result<(), String> {
    // Somebody may have taken it over meanwhile.
    let now = show(reach, node).await?;
    if now.reason != drained.reason {
        return Err(format!("somebody else changed its reason meanwhile: {now}"));
    }
    update(reach, node, "RESUME", None).await?;
    let mut waited = Duration::ZERO;
    loop {
        let shown = show(reach, node).await?;
        if shown.answers() {
            return Ok(());
        }
        if waited >= ANSWERS_WITHIN {
            return Err(format!("it was resumed and does not answer: {shown}"));
        }
        tokio::time::sleep(PAUSE).await;
        waited += PAUSE;
    }
}

/// The end of a re-check: a node that has passed stays in the queue, another one is drained for its old reason before
/// others may have it.
pub async fn release(reach: &dyn Reach, held: &Held, has_passed: bool) -> Result<(), String> {
    if !has_passed {
        drain_again(reach, &held.node, &held.reason)
            .await
            .map_err(|why| format!("{why}; reservation `{}` keeps others off it", held.reservation))?;
    }
    end(reach, &held.reservation).await
}

async fn drain_again(reach: &dyn Reach, node: &str, reason: &str) -> Result<(), String> {
    use super::Drained;
    let wanted = Wanted { node: node.to_owned(), reason: reason.to_owned() };
    match drain(reach, &wanted).await {
        Drained::Done | Drained::Already { .. } => Ok(()),
        // With somebody else's reason the node is in their hands, unless jobs still start on it.
        Drained::Others { .. } => match show(reach, node).await? {
            shown if shown.answers() => Err(format!("it could not be drained again: {shown}")),
            _ => Ok(()),
        },
        Drained::Failed { why } => Err(format!("it could not be drained again: {why}")),
    }
}

async fn end(reach: &dyn Reach, reservation: &str) -> Result<(), String> {
    let name = format!("ReservationName={reservation}");
    scontrol(reach, &["delete", &name])
        .await
        .map(|_| ())
        .map_err(|why| format!("reservation `{reservation}` could not be deleted: {why}"))
}
