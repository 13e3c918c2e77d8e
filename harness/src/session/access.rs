//! Before anything is launched over ssh or in pods: whether each host that answers lets us work there, with commands and
//! with files.
//! One that does not is left out by name, with what it printed. A host that gives no answer is left to the launch.

use super::RunOptions;
use super::preflight::{Stopped, runtime};
use super::reached::Reached;
use cluster::probe::asked_to_end;
use cluster::reach::{Command, Host, Reach, ReachError};
use futures::stream::{self, StreamExt};
use model::artefact::{LeftOut, Plan};
use std::time::Duration;

/// How long a host may take to run nothing.
const LIMIT: Duration = Duration::from_secs(60);
/// A file that is nowhere: sftp has to say so.
const NO_FILE: &str = "/nonexistent/harness-access";

/// The hosts of a plan that refuse us.
pub(crate) fn refused(
    plan: &Plan,
    reached: Option<&Reached>,
    options: &RunOptions,
) -> Result<Vec<LeftOut>, Stopped> {
    let Some(reached) = reached.filter(|reached| matches!(reached, Reached::Ssh(_) | Reached::Pods(_)))
    else {
        return Ok(Vec::new());
    };
    let refused = runtime(false)?.block_on(async {
        reached.begin().await;
        let redactor = store::redactor();
        let clean = reached.clean(&redactor);
        let asked = plan.nodes.iter().map(|node| refusal(&clean, node));
        let all = stream::iter(asked).buffered((options.ssh_fanout as usize).max(1)).collect::<Vec<_>>();
        tokio::select! {
            biased;
            refused = all => Ok(refused.into_iter().flatten().collect::<Vec<LeftOut>>()),
            code = asked_to_end() => {
                reached.end().await;
                Err(Stopped::Interrupted(code))
            }
        }
    })?;
    match refused.first() {
        Some(first) if refused.len() == plan.nodes.len() => {
            let many = match refused.len() {
                1 => "nothing was launched".to_owned(),
                more => format!("all {more} nodes refuse, nothing was launched"),
            };
            let hint = match reached {
                Reached::Pods(_) => {
                    "look at `kubectl describe pods -l app.kubernetes.io/managed-by=harness`".to_owned()
                }
                _ => format!("try `ssh {} true`", first.node),
            };
            let why = format!("{}; {many}; {hint}", first.why);
            runtime(false)?.block_on(reached.end());
            Err(Stopped::Machinery(why))
        }
        _ => Ok(refused),
    }
}

async fn refusal(reach: &dyn Reach, node: &str) -> Option<LeftOut> {
    let host = Host::Node(node.to_owned());
    let command = Command::new(["true"], LIMIT);
    let refused = match reach.exec(&host, &command).await {
        Ok(_) => reach.get(&host, NO_FILE).await.err()?,
        Err(error) => error,
    };
    let (ReachError::NoAccess { .. } | ReachError::PodOver { .. }) = refused else { return None };
    // The account is every node's, and none's fault.
    Some(LeftOut { node: node.to_owned(), why: refused.to_string(), by_folder: true, after: None })
}
