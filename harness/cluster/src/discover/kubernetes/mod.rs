//! Which nodes Kubernetes has, asked once through the user's own kubectl and written into an inventory. Each node is looked
//! at by itself: what the first one has says nothing about the others.

mod limits;
mod nodes;
mod quantity;
mod render;
mod scopes;
mod selection;
#[cfg(test)]
mod tests;

pub(crate) use nodes::Node;
pub use nodes::read;
pub use render::render;
pub(crate) use selection::{health_labels, hostname, takes_pods, unhealthy};

use super::{Failure, LeftOut};
use crate::reach::pods::Kubectl;
use config::inventory::Instances;
use model::artefact::named_server;
use nodes::Taint;
use std::collections::BTreeMap;

/// What the API server may print about all nodes: 3 kB each for ten thousand of them, and more.
const LIST_LIMIT: usize = 64 << 20;

/// What a person asks for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    /// Of the kubeconfig; its current one, where absent.
    pub context: Option<String>,
    /// Where pods will be made.
    pub namespace: String,
    /// Of every pod.
    pub image: String,
    /// The claim that every pod mounts.
    pub claim: String,
    /// Only nodes with these labels, as kubectl's `--selector` takes them.
    pub selector: Option<String>,
    /// Keys of taints that pods bear, beside those of GPUs and of EFA.
    pub tolerations: Vec<String>,
    /// `priorityClassName` of the pods, which quotas may count by.
    pub priority_class: Option<String>,
    /// A profile, or EC2's name of an instance type; what the nodes' labels say, where absent.
    pub instance: Option<String>,
}

/// What Kubernetes reports, as far as an inventory is written from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Discovered {
    /// The profile that the nodes match, such as `p5`.
    pub instance: String,
    /// By their label `kubernetes.io/hostname`, in natural order.
    pub nodes: Vec<String>,
    /// Zones, node groups and parts of the network that some of the nodes share, and not all of them.
    pub groups: BTreeMap<String, Vec<String>>,
    /// Nodes that take no pods of ours, or do not match the profile.
    pub left_out: Vec<LeftOut>,
    /// The API server that was asked.
    cluster: Option<String>,
    /// Of the nodes: pods have to bear them.
    taints: Vec<Taint>,
    /// Whether the nodes offer EFA devices.
    has_efa: bool,
    /// Whether they have the huge pages that pods with EFA devices ask for.
    has_hugepages: bool,
    /// What one node has for pods.
    room: limits::Room,
    /// What the namespace wants of pods.
    wanted: Vec<limits::Wanted>,
    /// What a person should know beside it.
    pub notes: Vec<String>,
}

/// Asks the API server for its nodes. Nothing is changed there.
pub async fn discover(request: &Request, instances: &Instances) -> Result<Discovered, Failure> {
    let kubectl = Kubectl::new(request.context.as_deref(), &request.namespace);
    let nodes = list(&kubectl, request.selector.as_deref()).await.map_err(Failure::NoAnswer)?;
    if nodes.is_empty() {
        let with = request.selector.as_ref().map(|labels| format!(" with the labels `{labels}`"));
        return Err(Failure::InvalidRequest(format!(
            "--via kubernetes: there is no node{}",
            with.unwrap_or_default()
        )));
    }
    // As it was when they were listed.
    let target = kubectl.checked_target().await.map_err(|error| Failure::NoAnswer(error.to_string()))?;
    let mut found = selection::select(nodes, request, instances)?;
    let (limits, unknown) = limits::list(&kubectl, request.priority_class.as_deref()).await;
    found.wanted = limits.wanted(found.nodes.len(), found.room);
    let notes = found.wanted.iter().map(limits::Wanted::note);
    found.notes.extend(notes.chain(limits.notes()).chain(unknown));
    Ok(Discovered { cluster: named_server(&target.server), ..found })
}

/// The nodes of the cluster, or why they are not known.
pub(crate) async fn list(kubectl: &Kubectl, selector: Option<&str>) -> Result<Vec<Node>, String> {
    let mut arguments = vec!["get".to_owned(), "nodes".to_owned(), format!("--output={}", nodes::FORMAT)];
    arguments.extend(selector.map(|labels| format!("--selector={labels}")));
    let answer = kubectl.ask(&arguments, b"", LIST_LIMIT).await.map_err(|error| error.to_string())?;
    if !answer.succeeded {
        let why = answer.complaint();
        let hint = if why.contains("(Forbidden)") {
            "; listing nodes needs a ClusterRole: `harness inventory role --nodes` prints it"
        } else {
            ""
        };
        return Err(format!("`kubectl get nodes`: {why}{hint}"));
    }
    read(&answer.stdout).map_err(|why| format!("the answer of `kubectl get nodes` cannot be read: {why}"))
}
