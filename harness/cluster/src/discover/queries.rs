//! Slurm's commands: JSON where the release supports it, else text. A failed query is retried, and a missing answer is
//! never taken for an empty one.

use super::{Failure, Node, json, text};
use crate::launch::QUERY_LIMIT;
use crate::reach::slurm_refusal::next_step;
use crate::reach::{Command, Host, Reach};
use base::nodeset;
use base::suggest::nearest;
use std::collections::BTreeSet;
use std::time::Duration;

/// A controller that restarts is back after some seconds.
const TRIES: usize = 3;
const PAUSE: Duration = Duration::from_secs(2);

/// From here on numbers, states and exit codes in JSON are what the text says.
const JSON_FROM: (u32, u32) = (24, 11);

pub(super) struct Slurm {
    pub version: String,
    number: Option<(u32, u32)>,
}

/// The nodes that a reservation sets aside.
pub(super) struct Reserved {
    pub nodes: BTreeSet<String>,
    /// Why it does not hold now.
    pub is_not_active: Option<String>,
}

pub(super) async fn version(reach: &dyn Reach) -> Result<Slurm, Failure> {
    let version = ask(reach, &["sinfo", "--version"]).await?;
    let version = version.trim().to_owned();
    let number = version.split_whitespace().last().and_then(|word| {
        let mut parts = word.split('.').map(|part| part.parse::<u32>().ok());
        Some((parts.next()??, parts.next()??))
    });
    Ok(Slurm { version, number })
}

pub(super) async fn nodes(reach: &dyn Reach, slurm: &Slurm, partition: &str) -> Result<Vec<Node>, Failure> {
    if slurm.number.is_some_and(|number| number >= JSON_FROM) {
        // Slurm may have been built without it, which is no reason to give up.
        if let Ok(answer) = once(reach, &["scontrol", "--all", "--json", "show", "nodes"]).await
            && let Ok(nodes) = json::read(&answer, partition)
        {
            return Ok(nodes);
        }
    }
    let format = format!("--format={}", text::FORMAT);
    let partition = format!("--partition={partition}");
    // sinfo refuses `--all` beside a partition, and lists a hidden one that is named.
    let answer = ask(reach, &["sinfo", "--noheader", "--Node", &partition, &format]).await?;
    text::read(&answer)
        .map_err(|why| Failure::NoAnswer(format!("the answer of `sinfo` cannot be read: {why}")))
}

pub(super) async fn reservation(reach: &dyn Reach, name: &str) -> Result<Reserved, Failure> {
    let answer = match once(reach, &["scontrol", "--oneliner", "show", "reservation", name]).await {
        Err(Unanswered::Said(said)) if said.to_lowercase().contains("not found") => {
            return Err(Failure::InvalidRequest(format!("--reservation: no reservation named `{name}`")));
        }
        Err(_) => ask(reach, &["scontrol", "--oneliner", "show", "reservation", name]).await?,
        Ok(answer) => answer,
    };
    let word = |key: &str| answer.split_whitespace().find_map(|word| word.strip_prefix(key));
    let nodes = match word("Nodes=") {
        // As of licences alone.
        Some("" | "(null)") => Vec::new(),
        nodes => nodeset::expand(nodes.unwrap_or_default()).map_err(|why| {
            Failure::NoAnswer(format!("the nodes of the reservation `{name}` cannot be read: {why}"))
        })?,
    };
    let is_not_active = word("State=").filter(|state| *state != "ACTIVE").map(|state| {
        let from = word("StartTime=").unwrap_or("an unknown time");
        format!("the reservation `{name}` is {}, it begins at {from}", state.to_lowercase())
    });
    Ok(Reserved { nodes: nodes.into_iter().collect(), is_not_active })
}

/// Why there are no nodes: mostly a partition that does not exist, of which `sinfo` says nothing.
pub(super) async fn no_nodes(reach: &dyn Reach, partition: &str) -> Failure {
    let Ok(answer) = ask(reach, &["sinfo", "--noheader", "--all", "--format=%R"]).await else {
        return Failure::NoAnswer(format!("`sinfo` lists no nodes of partition `{partition}`"));
    };
    let mut names: Vec<&str> = answer.lines().map(str::trim).filter(|name| !name.is_empty()).collect();
    names.sort_unstable();
    names.dedup();
    if names.contains(&partition) {
        return Failure::InvalidRequest(format!("--partition: `{partition}` has no nodes"));
    }
    let hint = match nearest(partition, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("partitions: `{}`", names.join("`, `")),
    };
    Failure::InvalidRequest(format!("--partition: no partition named `{partition}`; {hint}"))
}

/// The partition of jobs that name none, which has a star; nothing where there is none. Asked once: who asks has a way to go
/// on without an answer.
pub(super) async fn default_partition(reach: &dyn Reach) -> Result<Option<String>, String> {
    let answer = match once(reach, &["sinfo", "--noheader", "--all", "--format=%P"]).await {
        Ok(answer) => answer,
        Err(Unanswered::Said(why) | Unanswered::Failed(why)) => return Err(why),
    };
    let name = |line: &str| line.trim().strip_suffix('*').filter(|name| !name.is_empty()).map(str::to_owned);
    Ok(answer.lines().find_map(name))
}

/// The controller's settings; empty where it gives no answer.
pub(super) async fn config(reach: &dyn Reach) -> String {
    once(reach, &["scontrol", "show", "config"]).await.unwrap_or_default()
}

/// Its switches, blocks, rings or tori. Most clusters have none, which is no failure.
pub(super) async fn topology(reach: &dyn Reach) -> Option<String> {
    let printed = once(reach, &["scontrol", "show", "topology"]).await.ok()?;
    let names = ["SwitchName=", "BlockName=", "RingName=", "TorusName="];
    names.iter().any(|name| printed.contains(name)).then_some(printed)
}

/// The MPI plugin that srun is to wire ranks together with: the best that it has. Older releases list it on stderr.
pub(super) async fn mpi(reach: &dyn Reach) -> Option<String> {
    let command = Command::new(["srun", "--mpi=list"], QUERY_LIMIT);
    let answer = reach.exec(&Host::Here, &command).await.ok()?;
    let text = answer.stdout_text() + "\n" + &String::from_utf8_lossy(&answer.stderr);
    let is_list = text.contains("MPI plugin types are") || text.contains("MPI types are");
    let words: BTreeSet<&str> = text.split(|c: char| c.is_whitespace() || c == ',').collect();
    let has = |name: &&str| words.contains(*name);
    ["pmix", "pmi2", "none"].iter().copied().find(has).filter(|_| is_list).map(str::to_owned)
}

pub(super) enum Unanswered {
    Said(String),
    Failed(String),
}

async fn ask(reach: &dyn Reach, argv: &[&str]) -> Result<String, Failure> {
    let mut tried = 0;
    loop {
        tried += 1;
        let why = match once(reach, argv).await {
            Ok(answer) => return Ok(answer),
            Err(Unanswered::Said(why) | Unanswered::Failed(why)) => why,
        };
        if tried == TRIES {
            let program = argv.first().copied().unwrap_or_default();
            let next = next_step(&why);
            return Err(Failure::NoAnswer(format!(
                "`{program}` gave no answer in {TRIES} tries: {why}{next}"
            )));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

pub(super) async fn once(reach: &dyn Reach, argv: &[&str]) -> Result<String, Unanswered> {
    let command = Command::new(argv.iter().copied(), QUERY_LIMIT);
    match reach.exec(&Host::Here, &command).await {
        Ok(answer) if answer.succeeded() => Ok(answer.stdout_text()),
        Ok(answer) => {
            let stderr = String::from_utf8_lossy(&answer.stderr).into_owned();
            let said = if stderr.trim().is_empty() { answer.stdout_text() } else { stderr };
            Err(Unanswered::Said(said.trim().to_owned()))
        }
        Err(error) => Err(Unanswered::Failed(error.to_string())),
    }
}
