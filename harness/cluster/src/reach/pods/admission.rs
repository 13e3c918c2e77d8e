//! Pods that Kueue holds back by a scheduling gate until their local queue admits them: whether that queue admits any. Waiting for
//! others' work to end says nothing against a node; a queue that is missing or stopped is not worth a wait.
//!
//! The gate and the conditions are those of <https://kueue.sigs.k8s.io/docs/tasks/troubleshooting/troubleshooting_pods/> and of
//! <https://github.com/kubernetes-sigs/kueue/blob/main/pkg/controller/core/localqueue_controller.go>.

use super::kubectl::Kubectl;
use super::state::{self, PodFacts, PodState};
use base::text::show;
use serde_json::Value;

const QUEUES: &str = "localqueues.kueue.x-k8s.io";
const WORKLOADS: &str = "workloads.kueue.x-k8s.io";
const ANSWER_LIMIT: usize = 4 << 20;

/// Why the queue of these pods admits none, by one request. Nothing where it does, or where that may not be asked.
pub(super) async fn refusal(kubectl: &Kubectl, queue: &str) -> Option<String> {
    if queue.is_empty() {
        return Some("Kueue holds it back, and it names no queue: set `queue` in [reach]".to_owned());
    }
    let selector = format!("--field-selector=metadata.name={queue}");
    let words = ["get", QUEUES, &selector, "--output=json"].map(str::to_owned);
    let output = kubectl.ask(&words, b"", ANSWER_LIMIT).await.ok()?;
    if !output.succeeded {
        return None;
    }
    let (name, namespace) = (show(queue), &kubectl.namespace);
    match read(&output.stdout)? {
        Queue::Active => None,
        Queue::Missing => Some(format!(
            "Kueue has no local queue `{name}` in namespace {namespace}: set `queue` in [reach] to one of `{}`",
            kubectl.command(&["get", QUEUES])
        )),
        Queue::Inactive(why) => Some(format!(
            "local queue `{name}` of Kueue admits no pods: {why}; see `{}`",
            kubectl.command(&["describe", QUEUES, queue])
        )),
    }
}

/// The same pod with the reason that it waits for.
pub(super) fn explained(kubectl: &Kubectl, pod: PodFacts, refusal: Option<&String>) -> PodFacts {
    let (Some(queue), PodState::Waiting(_)) = (&pod.queue, &pod.state) else { return pod };
    let why = refusal.cloned().unwrap_or_else(|| {
        format!(
            "local queue `{}` of Kueue has not admitted it yet; see `{}`",
            show(queue),
            kubectl.command(&["get", WORKLOADS])
        )
    });
    PodFacts { state: PodState::Waiting(why), ..pod }
}

/// Why a pod stays that was deleted: it takes nothing by then, and its name is free once the workload of its group ends.
pub(super) fn kept(kubectl: &Kubectl, group: &str) -> String {
    let command = match group.is_empty() {
        true => kubectl.command(&["get", WORKLOADS]),
        false => kubectl.command(&["delete", WORKLOADS, group]),
    };
    format!("Kueue keeps it until its workload ends: `{command}`")
}

#[derive(Debug, PartialEq, Eq)]
enum Queue {
    Active,
    Missing,
    Inactive(String),
}

fn read(list: &[u8]) -> Option<Queue> {
    let list: Value = serde_json::from_slice(list).ok()?;
    let Some(queue) = list["items"].as_array()?.first() else { return Some(Queue::Missing) };
    let conditions = queue["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    // One that is new has none yet.
    let is_inactive = |one: &&Value| one["type"] == "Active" && one["status"] == "False";
    Some(
        conditions.iter().find(is_inactive).map_or(Queue::Active, |one| Queue::Inactive(state::because(one))),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_queue_that_is_missing_or_stopped_admits_no_pods() {
        let queue = |conditions: Value| {
            let list = json!({ "items": [{ "metadata": { "name": "gpus" }, "status": { "conditions": conditions } }] });
            read(list.to_string().as_bytes())
        };
        let active = |status: &str, reason: &str, message: &str| json!([{ "type": "Active", "status": status, "reason": reason, "message": message }]);
        assert_eq!(
            queue(active("True", "Ready", "Can submit new workloads to clusterQueue")),
            Some(Queue::Active)
        );
        assert_eq!(
            queue(active("False", "ClusterQueueIsInactive", "Can't submit new workloads to clusterQueue")),
            Some(Queue::Inactive(
                "ClusterQueueIsInactive: Can't submit new workloads to clusterQueue".to_owned()
            ))
        );
        assert_eq!(
            queue(active("False", "Stopped", "LocalQueue is stopped")),
            Some(Queue::Inactive("Stopped: LocalQueue is stopped".to_owned()))
        );
        assert_eq!(queue(Value::Null), Some(Queue::Active));
        assert_eq!(read(br#"{"items":[]}"#), Some(Queue::Missing));
        assert_eq!((read(b""), read(b"{}"), read(br#"{"items":{}}"#)), (None, None, None));
    }
}
