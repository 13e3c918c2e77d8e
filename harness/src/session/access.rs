//! Before anything is launched over ssh or in pods: whether each host that answers lets us work there, with commands and
//! with files.
//! One that does not is left out by name, with what it printed. A host that gives no answer is left to the launch. Where
//! others can replace files in the shared folder, as one of them sees it, nothing is launched.

use super::RunOptions;
use super::preflight::{Stopped, runtime};
use super::reached::Reached;
use cluster::probe::asked_to_end;
use cluster::reach::{Host, Reach, ReachError, node_folder};
use futures::stream::{self, StreamExt};
use model::artefact::{LeftOut, Plan};

/// A file that is nowhere: sftp has to say so.
const NO_FILE: &str = "/nonexistent/harness-access";

/// The hosts of a plan that refuse us.
pub(crate) fn refused(
    plan: &Plan,
    shared: &str,
    reached: Option<&Reached>,
    options: &RunOptions,
) -> Result<Vec<LeftOut>, Stopped> {
    let Some(reached) = reached.filter(|reached| matches!(reached, Reached::Ssh(_) | Reached::Pods(_)))
    else {
        return Ok(Vec::new());
    };
    let refused: Vec<LeftOut> = runtime(false)?.block_on(async {
        reached.begin().await;
        let redactor = store::redactor();
        let clean = reached.clean(&redactor);
        let asked = plan.nodes.iter().map(|node| refusal(&clean, node, shared));
        let all = stream::iter(asked).buffered((options.ssh_fanout as usize).max(1)).collect::<Vec<_>>();
        tokio::select! {
            biased;
            answers = all => {
                let answers: Result<Vec<Option<LeftOut>>, String> = answers.into_iter().collect();
                if answers.is_err() {
                    reached.end().await;
                }
                let unsafe_folder = |why| Stopped::Machinery(format!("{why}; nothing was launched"));
                answers.map(|refused| refused.into_iter().flatten().collect()).map_err(unsafe_folder)
            }
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
                // Pods that were made are deleted below, and their events stay.
                Reached::Pods(pods) => {
                    let made = runtime(false)?.block_on(pods.left());
                    let has_any = made.is_ok_and(|made| !made.is_empty());
                    if has_any { format!("; look at `{}`", pods.events_command()) } else { String::new() }
                }
                _ => format!("; try `ssh {} true`", first.node),
            };
            let why = format!("{}; {many}{hint}", first.why);
            runtime(false)?.block_on(reached.end());
            Err(Stopped::Machinery(why))
        }
        _ => Ok(refused),
    }
}

/// The error is that the shared folder is not safe.
async fn refusal(reach: &dyn Reach, node: &str, shared: &str) -> Result<Option<LeftOut>, String> {
    let host = Host::Node(node.to_owned());
    let refused = match node_folder::check(reach, &host, shared).await {
        Ok(Err(why)) => return Err(why),
        // A host that answers otherwise vouches for nothing: the folder is checked again when it is made.
        Ok(Ok(())) | Err(ReachError::Failed { .. } | ReachError::NoProgram { .. }) => {
            reach.get(&host, NO_FILE).await.err()
        }
        Err(error) => Some(error),
    };
    let Some(refused @ (ReachError::NoAccess { .. } | ReachError::PodOver { .. })) = refused else {
        return Ok(None);
    };
    // The account is every node's, and none's fault.
    Ok(Some(LeftOut { node: node.to_owned(), why: refused.to_string(), by_folder: true, after: None }))
}
