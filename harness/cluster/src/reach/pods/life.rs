//! The pods of a run, from their creation to their deletion: one for each node, found by the label of the run and by
//! names that only this run has, and deleted by their uids. One list answers for all of them, however many there are.

use super::admission;
use super::kubectl::{Kubectl, is_refusal, is_transient, refusals};
use super::manifest::{PodOwner, PodTemplate, RUN};
use super::server::{Target, is_elsewhere};
use super::state::{self, PodFacts, PodState};
use crate::interrupt;
use crate::reach::{Access, ReachError};
use futures::stream::{self, StreamExt};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// A list of a thousand pods has about 5 MB.
pub(super) const LIST_LIMIT: usize = 64 << 20;
/// Between one list and the next while pods start or end.
const LOOK: Duration = Duration::from_secs(2);
/// Pods are asked for so often where the server did not get to it.
const MOST_REQUESTS: usize = 3;
/// How long deleted pods may take to be gone.
const GONE_LIMIT: Duration = Duration::from_secs(60);
/// So many are deleted at the same time, each by a process of its own, since only so the uid is checked by the server.
const AT_ONCE: usize = 8;

/// A pod that is there under the label of the run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodLeft {
    /// Its name.
    pub name: String,
    /// Where it was placed, if it was.
    pub node: Option<String>,
    /// Why what it ran may still run once it is deleted.
    pub silent: Option<String>,
    uid: String,
    /// The group of Kueue that keeps it though it was deleted.
    kept_by: Option<String>,
}

impl PodLeft {
    pub(super) fn new(name: &str, facts: &PodFacts) -> PodLeft {
        let (node, uid) = (facts.node.clone(), facts.uid.clone());
        PodLeft { name: name.to_owned(), node, silent: silence(facts), uid, kept_by: facts.kept_by.clone() }
    }
}

/// What became of the request to delete a pod.
#[derive(Debug)]
enum Deletion {
    /// The server gave no answer.
    Unasked(String),
    Asked,
    Refused(String),
}

fn silence(facts: &PodFacts) -> Option<String> {
    match &facts.state {
        PodState::NodeSilent(why) => Some(why.clone()),
        _ => None,
    }
}

fn is_refused(error: &ReachError) -> bool {
    matches!(error, ReachError::Failed { why, .. } if is_refusal(why))
}

pub(super) struct Life<'a> {
    pub kubectl: &'a Kubectl,
    pub owner: &'a PodOwner,
}

impl Life<'_> {
    pub(super) async fn list(&self) -> Result<BTreeMap<String, PodFacts>, ReachError> {
        let selector = format!("--selector={RUN}={}", self.owner.label());
        let words = ["get", "pods", &selector, "--output=json"].map(str::to_owned);
        let output = self.kubectl.ask(&words, b"", LIST_LIMIT).await?;
        let failed = |why: String| ReachError::Failed { what: "`kubectl get pods`".to_owned(), why };
        if !output.succeeded {
            return Err(failed(output.complaint()));
        }
        let mut pods = state::read(&output.stdout).map_err(failed)?;
        pods.retain(|name, _| self.owner.is_own(name));
        Ok(pods)
    }

    /// By node, the pod that runs for it or why none does. `template`: what is not there is made, and waited for.
    pub(super) async fn ready(
        &self,
        nodes: &[String],
        template: Option<&PodTemplate>,
    ) -> Result<BTreeMap<String, Result<PodFacts, ReachError>>, ReachError> {
        let mut listed = self.list().await?;
        let mut refused = Vec::new();
        let mut until = Instant::now();
        if let Some(template) = template {
            listed = self.without_deleted(nodes, listed).await;
            until = Instant::now() + Duration::from_secs(template.reach.start_limit_s);
            for nth in 1..=MOST_REQUESTS {
                let absent = |node: &&String| !listed.contains_key(&self.owner.pod(node));
                let absent: Vec<&str> = nodes.iter().filter(absent).map(String::as_str).collect();
                if absent.is_empty() {
                    break;
                }
                refused = self.create(template, &absent).await?;
                listed = self.list().await?;
                // A part of a gang is never admitted.
                let is_again = !template.reach.gang && refused.iter().any(|why| is_transient(why));
                if !is_again || nth == MOST_REQUESTS || interrupt::asked().is_some() {
                    break;
                }
                tokio::time::sleep(LOOK).await;
            }
        }
        let waits = |listed: &BTreeMap<String, PodFacts>| {
            let facts = nodes.iter().filter_map(|node| listed.get(&self.owner.pod(node)));
            facts.into_iter().any(|facts| matches!(facts.state, PodState::Waiting(_)))
        };
        let queue = |listed: &BTreeMap<String, PodFacts>| {
            nodes.iter().find_map(|node| listed.get(&self.owner.pod(node))?.queue.clone())
        };
        let (mut is_asked, mut refusal) = (false, None);
        while waits(&listed) && Instant::now() < until && interrupt::asked().is_none() {
            if let Some(queue) = queue(&listed).filter(|_| !is_asked) {
                is_asked = true;
                refusal = admission::refusal(self.kubectl, &queue).await;
                if refusal.is_some() {
                    break;
                }
            }
            tokio::time::sleep(LOOK).await;
            // The server may be restarted meanwhile: what was known stands.
            if let Ok(now) = self.list().await {
                listed = now;
            }
        }
        let each = nodes.iter().map(|node| {
            let name = self.owner.pod(node);
            let pod = listed.get(&name).cloned().ok_or_else(|| {
                let refusal = refused.iter().find(|why| why.contains(&name)).or(refused.last());
                no_pod(node, refusal.cloned().unwrap_or_else(|| "it is gone".to_owned()))
            });
            let fits = |pod: PodFacts| match template.and_then(|template| {
                template.refused_limits(&pod.limits, &self.kubectl.command(&["get", "limitrange"]))
            }) {
                Some(why) => Err(no_pod(node, why)),
                None => Ok(pod),
            };
            let pod = pod.map(|pod| admission::explained(self.kubectl, pod, refusal.as_ref()));
            (node.clone(), pod.and_then(|pod| runs(node, pod)).and_then(fits))
        });
        Ok(each.collect())
    }

    /// Once pods that are being deleted are gone, as those of a harness that was killed at the end of its run: until then
    /// no other can have their names. A node that does not answer keeps its pod, and is not waited for.
    async fn without_deleted(
        &self,
        nodes: &[String],
        mut listed: BTreeMap<String, PodFacts>,
    ) -> BTreeMap<String, PodFacts> {
        let until = Instant::now() + GONE_LIMIT;
        let goes = |facts: &PodFacts| facts.is_deleted && silence(facts).is_none();
        while nodes.iter().any(|node| listed.get(&self.owner.pod(node)).is_some_and(goes))
            && Instant::now() < until
            && interrupt::asked().is_none()
        {
            tokio::time::sleep(LOOK).await;
            if let Ok(now) = self.list().await {
                listed = now;
            }
        }
        listed
    }

    /// What the server refused, a text for each.
    async fn create(&self, template: &PodTemplate, nodes: &[&str]) -> Result<Vec<String>, ReachError> {
        let list = template.list(self.owner, nodes).to_string();
        let output = self.kubectl.create(list.as_bytes(), nodes.len(), LIST_LIMIT).await?;
        if output.succeeded {
            return Ok(Vec::new());
        }
        Ok(refusals(&output.stderr))
    }

    /// All of the run, whichever process made them.
    pub(super) async fn left(&self) -> Result<Vec<PodLeft>, ReachError> {
        let pods = self.list().await?;
        Ok(pods.iter().map(|(name, facts)| PodLeft::new(name, facts)).collect())
    }

    /// Deletes these pods, and waits until they are gone. Gives those that are not, with the reason. A server that does
    /// not answer is asked again.
    pub(super) async fn delete(&self, pods: &[PodLeft]) -> Result<Vec<(PodLeft, String)>, ReachError> {
        let mut open: Vec<(PodLeft, Deletion)> =
            pods.iter().map(|pod| (pod.clone(), Deletion::Unasked(String::new()))).collect();
        let until = Instant::now() + GONE_LIMIT;
        loop {
            let target = match self.kubectl.checked_target().await {
                Err(error) if is_elsewhere(&error) => return Err(error),
                target => target,
            };
            let target = target.as_ref();
            let deleted = stream::iter(open.into_iter().map(|(pod, before)| async move {
                let now = match (before, target) {
                    (Deletion::Unasked(_), Ok(target)) => self.delete_one(&pod, target).await,
                    (Deletion::Unasked(_), Err(error)) => Deletion::Unasked(error.to_string()),
                    (asked, _) => asked,
                };
                (pod, now)
            }));
            open = deleted.buffered(AT_ONCE).collect().await;
            let is_late = Instant::now() >= until;
            match self.list().await {
                Ok(listed) => {
                    open.retain(|(pod, _)| listed.get(&pod.name).is_some_and(|facts| facts.uid == pod.uid));
                    for (pod, _) in &mut open {
                        let facts = listed.get(&pod.name);
                        pod.silent = facts.and_then(silence);
                        pod.kept_by = facts.and_then(|facts| facts.kept_by.clone());
                    }
                }
                Err(error) if is_late || is_refused(&error) || is_elsewhere(&error) => return Err(error),
                Err(_) => {}
            }
            let waits = |(pod, deletion): &(PodLeft, Deletion)| match deletion {
                Deletion::Unasked(_) => true,
                // Only its kubelet can end it.
                Deletion::Asked => pod.silent.is_none(),
                Deletion::Refused(_) => false,
            };
            if is_late || !open.iter().any(waits) {
                return Ok(open.into_iter().map(|(pod, deletion)| self.stays(pod, deletion)).collect());
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn stays(&self, pod: PodLeft, deletion: Deletion) -> (PodLeft, String) {
        let why = match (deletion, &pod.silent, &pod.kept_by) {
            (Deletion::Unasked(why) | Deletion::Refused(why), ..) => why,
            (Deletion::Asked, Some(silent), _) => format!("its node does not answer ({silent})"),
            (Deletion::Asked, None, Some(group)) => admission::kept(self.kubectl, group),
            (Deletion::Asked, None, None) => format!("not gone within {} s", GONE_LIMIT.as_secs()),
        };
        (pod, why)
    }

    /// The server compares the uid: a pod that has the name by now and is another one stays.
    async fn delete_one(&self, pod: &PodLeft, target: &Target) -> Deletion {
        let path = format!("/api/v1/namespaces/{}/pods/{}", self.kubectl.namespace, pod.name);
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": { "uid": pod.uid },
        });
        let words = ["delete", "--raw", &path, "--filename=-"].map(str::to_owned);
        match self.kubectl.ask_at(target, &words, options.to_string().as_bytes(), 1 << 20).await {
            Ok(output) if output.succeeded => Deletion::Asked,
            Ok(output) => deletion(&output.complaint()),
            Err(error) => Deletion::Unasked(error.to_string()),
        }
    }
}

/// What became of it where kubectl failed.
fn deletion(complaint: &str) -> Deletion {
    let why = format!("`kubectl delete`: {complaint}");
    match complaint.contains("Error from server (") && !is_transient(complaint) {
        _ if complaint.contains("(NotFound)") => Deletion::Asked,
        true => Deletion::Refused(why),
        false => Deletion::Unasked(why),
    }
}

pub(super) fn no_pod(node: &str, why: String) -> ReachError {
    ReachError::NoAccess { by: Access::Pod, host: node.to_owned(), why }
}

/// A pod that has ended, or never runs.
pub(super) fn over(node: &str, why: String) -> ReachError {
    ReachError::PodOver { host: node.to_owned(), why }
}

/// Whether a pod runs for a node: every reason why it does not is one without a culprit.
pub(super) fn runs(node: &str, pod: PodFacts) -> Result<PodFacts, ReachError> {
    match &pod.state {
        PodState::Running => Ok(pod),
        PodState::Waiting(why) => Err(no_pod(node, why.clone())),
        PodState::Over(why) => Err(over(node, why.clone())),
        PodState::NodeSilent(why) => Err(ReachError::Unreachable {
            host: node.to_owned(),
            why: format!("its kubelet is silent: {why}"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Kueue leaves pods of a group that it has not admitted: <https://github.com/kubernetes-sigs/kueue/issues/5130>.
    #[test]
    fn a_pod_that_kueue_keeps_is_left_with_the_command_that_ends_its_workload() {
        let pod = |deleted: &str, finalizer: &str| {
            let list = format!(
                r#"{{"items":[{{"metadata":{{"name":"a","uid":"u"{deleted},"finalizers":["{finalizer}"],
                "labels":{{"kueue.x-k8s.io/pod-group-name":"g1"}}}},"status":{{"phase":"Pending"}}}}]}}"#
            );
            PodLeft::new("a", &state::read(list.as_bytes()).expect("a list")["a"])
        };
        let (kubectl, owner) =
            (Kubectl::new(None, "bench"), PodOwner { run: "r".into(), person: "jo".into(), process: None });
        let life = Life { kubectl: &kubectl, owner: &owner };
        let deleted = r#","deletionTimestamp":"2026-01-01T00:00:00Z""#;
        let (_, why) = life.stays(pod(deleted, "kueue.x-k8s.io/managed"), Deletion::Asked);
        assert_eq!(
            why,
            "Kueue keeps it until its workload ends: `kubectl --namespace=bench delete workloads.kueue.x-k8s.io g1`"
        );
        for other in [pod(deleted, "example.com/x"), pod("", "kueue.x-k8s.io/managed")] {
            assert_eq!(life.stays(other, Deletion::Asked).1, "not gone within 60 s");
        }
    }

    /// As kubectl prints them while a control plane is upgraded, and where it refuses for good.
    #[test]
    fn a_deletion_that_the_server_did_not_get_to_is_asked_for_again() {
        for unasked in [
            "Error from server (ServiceUnavailable): the server is currently unable to handle the request",
            "Error from server (TooManyRequests): the server has received too many requests",
            "Error from server (Timeout): the server was unable to return a response in the time allotted",
            "Error from server (InternalError): Internal error occurred: failed calling webhook \"a.b\": EOF",
            "The connection to the server 10.0.0.1:6443 was refused - did you specify the right host or port?",
            "error: unexpected EOF",
        ] {
            assert!(matches!(deletion(unasked), Deletion::Unasked(_)), "{unasked}");
        }
        for refused in [
            "Error from server (Forbidden): pods \"a\" is forbidden: User \"u\" cannot delete resource \"pods\"",
            "Error from server (Conflict): the UID in the precondition does not match the UID in record",
        ] {
            assert!(matches!(deletion(refused), Deletion::Refused(_)), "{refused}");
        }
        let gone = deletion("Error from server (NotFound): pods \"a\" not found");
        assert!(matches!(gone, Deletion::Asked), "{gone:?}");
    }
}
