//! Where the ranks of one start meet before any of them goes on, as those of a real program do: files of the state
//! folder. What they do afterwards they do by one clock, from one moment.

use super::place::ProcessPlace;
use super::state::State;
use base::digest::sha256;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::{Instant, sleep};

/// Who came, and when all go on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Met {
    /// Of each rank.
    pub hosts: Vec<String>,
    pub begin_ns: i64,
}

/// A rank that does not come is waited for so long.
const PATIENCE: Duration = Duration::from_secs(300);
const LOOK: Duration = Duration::from_millis(20);
/// From the last rank's coming to the common beginning: all must have seen it by then.
const NOTICE_NS: i64 = 60_000_000;

/// Alone, without waiting.
pub(crate) fn alone(place: &ProcessPlace) -> Met {
    Met { hosts: vec![place.node.clone()], begin_ns: now_ns() }
}

pub(crate) async fn meet(state: &State, place: &ProcessPlace) -> Result<Met, String> {
    let failed = |error: io::Error| format!("meeting point of ranks: {error}");
    let key: String = sha256(place.start.as_bytes()).chars().take(16).collect();
    let worlds = state.folder.join("worlds");
    let mut nth = 0;
    // Whoever was here before under the same number was another start of the same program.
    let folder = loop {
        let folder = worlds.join(format!("{key}.{nth}"));
        fs::create_dir_all(&folder).map_err(failed)?;
        let part = folder.join(format!("part.{}", place.rank));
        fs::write(&part, &place.node).map_err(failed)?;
        match fs::hard_link(&part, folder.join(format!("rank.{}", place.rank))) {
            Ok(()) => break folder,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => nth += 1,
            Err(error) => return Err(failed(error)),
        }
    };
    let since = Instant::now();
    loop {
        if place.rank == 0 && come(&folder, place.tasks) {
            let part = folder.join("begin.part");
            fs::write(&part, (now_ns() + NOTICE_NS).to_string()).map_err(failed)?;
            fs::rename(&part, folder.join("begin")).map_err(failed)?;
        }
        if let Ok(text) = fs::read_to_string(folder.join("begin")) {
            let begin_ns = text.trim().parse().map_err(|_| format!("`{text}` is not a start time"))?;
            let host = |rank: u32| fs::read_to_string(folder.join(format!("rank.{rank}"))).map_err(failed);
            let hosts = (0..place.tasks).map(host).collect::<Result<_, _>>()?;
            return Ok(Met { hosts, begin_ns });
        }
        if since.elapsed() > PATIENCE {
            return Err(format!("fewer than {} ranks started within {} s", place.tasks, PATIENCE.as_secs()));
        }
        sleep(LOOK).await;
    }
}

fn come(folder: &Path, tasks: u32) -> bool {
    (0..tasks).all(|rank| folder.join(format!("rank.{rank}")).exists())
}

/// The machine's clock. Real servers and the sampler live by it, and a report must say when it was made.
#[allow(clippy::disallowed_methods)]
pub(crate) fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// The hosts in the order of their first rank.
pub(crate) fn nodes(hosts: &[String]) -> Vec<String> {
    let mut nodes: Vec<String> = Vec::new();
    for host in hosts {
        if !nodes.contains(host) {
            nodes.push(host.clone());
        }
    }
    nodes
}
