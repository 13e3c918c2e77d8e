//! What the API server says of the pods of a run, in one list for all of them: which run, and why others do not. No cause
//! names a node as bad: a node that is lost is silent, and silence is judged where it is heard.

use super::manifest::{CONTAINER, GROUP, QUEUE};
use serde_json::Value;
use std::collections::BTreeMap;

/// A pod, as far as a run needs it.
#[derive(Debug, Clone, PartialEq)]
pub struct PodFacts {
    /// Differs from that of any other pod that has or had its name.
    pub uid: String,
    /// Where it was placed.
    pub node: Option<String>,
    /// Of its own network, once it has one.
    pub ip: Option<String>,
    /// It was deleted, and keeps its name until it is gone.
    pub is_deleted: bool,
    /// Its container ended by itself, with 0.
    pub has_succeeded: bool,
    /// What the container may use of processors and memory, where that is limited.
    pub limits: Vec<(&'static str, String)>,
    /// The local queue of Kueue, where Kueue holds it back.
    pub queue: Option<String>,
    /// The group of Kueue that keeps it though it was deleted; empty where it has none.
    pub kept_by: Option<String>,
    /// Whether it runs, and why not.
    pub state: PodState,
}

#[derive(Debug, Clone, PartialEq)]
pub enum PodState {
    /// And it answers.
    Running,
    /// It is not running yet, and may be.
    Waiting(String),
    /// It will not run any more, or never will.
    Over(String),
    /// It ran when its node was last heard of.
    NodeSilent(String),
}

/// By name. Names and messages are foreign text.
pub fn read(list: &[u8]) -> Result<BTreeMap<String, PodFacts>, String> {
    let list: Value = serde_json::from_slice(list).map_err(|error| format!("not a list of pods: {error}"))?;
    let items = list["items"].as_array().ok_or("not a list of pods: it has no `items`")?;
    let one = |pod: &Value| {
        let text = |value: &Value| value.as_str().map(one_line).filter(|text| !text.is_empty());
        let facts = PodFacts {
            uid: text(&pod["metadata"]["uid"])?,
            node: text(&pod["spec"]["nodeName"]),
            ip: pod["status"]["podIP"].as_str().filter(|ip| is_address(ip)).map(str::to_owned),
            is_deleted: is_deleted(pod),
            has_succeeded: has_succeeded(pod),
            limits: limits(pod),
            queue: queue(pod),
            kept_by: kept_by(pod),
            state: state(pod),
        };
        Some((text(&pod["metadata"]["name"])?, facts))
    };
    Ok(items.iter().filter_map(one).collect())
}

fn limits(pod: &Value) -> Vec<(&'static str, String)> {
    let all = pod["spec"]["containers"].as_array().map(Vec::as_slice).unwrap_or_default();
    let own = all.iter().find(|container| container["name"] == CONTAINER).unwrap_or(&Value::Null);
    let limit = |name: &'static str| match &own["resources"]["limits"][name] {
        Value::Null => None,
        Value::String(text) => Some((name, one_line(text))),
        // What a client wrote as a number.
        other => Some((name, one_line(&other.to_string()))),
    };
    ["cpu", "memory"].into_iter().filter_map(limit).collect()
}

/// Kueue takes its gates away once it admits a pod.
fn queue(pod: &Value) -> Option<String> {
    let gates = pod["spec"]["schedulingGates"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_of_kueue =
        |gate: &Value| gate["name"].as_str().is_some_and(|name| name.starts_with("kueue.x-k8s.io/"));
    gates.iter().any(is_of_kueue).then(|| text(&pod["metadata"]["labels"][QUEUE]))
}

/// As <https://kueue.sigs.k8s.io/docs/tasks/troubleshooting/troubleshooting_pods/> describes.
fn kept_by(pod: &Value) -> Option<String> {
    let finalizers = pod["metadata"]["finalizers"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_kept = is_deleted(pod) && finalizers.iter().any(|one| one == "kueue.x-k8s.io/managed");
    is_kept.then(|| text(&pod["metadata"]["labels"][GROUP]))
}

fn is_address(text: &str) -> bool {
    text.parse::<std::net::IpAddr>().is_ok()
}

/// Why a pod ends that was deleted, whose container ends as if by itself: who takes it away for somebody else writes down why
/// before. Kueue's condition is that of <https://github.com/kubernetes-sigs/kueue/blob/main/pkg/controller/jobs/pod/pod_controller.go>.
fn deleted(pod: &Value) -> PodState {
    let by = |kind| condition(pod, kind).filter(|condition| condition["status"] == "True");
    PodState::Over(if let Some(target) = by("TerminationTarget") {
        format!("Kueue ended it: {}", because(target))
    } else if let Some(target) = by("DisruptionTarget") {
        with(preempted(&text(&target["reason"]), Some(target)), text(&target["message"]))
    } else {
        "it is being deleted: somebody deleted or evicted it".to_owned()
    })
}

fn condition<'a>(pod: &'a Value, kind: &str) -> Option<&'a Value> {
    let all = pod["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().find(|condition| condition["type"] == kind)
}

/// Reason and message of a condition.
pub(super) fn because(condition: &Value) -> String {
    with(text(&condition["reason"]), text(&condition["message"]))
}

fn text(value: &Value) -> String {
    value.as_str().map(one_line).unwrap_or_default()
}

fn with(reason: String, message: String) -> String {
    match (reason.is_empty(), message.is_empty()) {
        (_, true) => reason,
        (true, false) => message,
        (false, false) => format!("{reason}: {message}"),
    }
}

/// By how its container ended.
fn over(pod: &Value, ended: &Value) -> PodState {
    let reason = text(&ended["reason"]);
    if is_deleted(pod) && ["", "Completed", "Error"].contains(&reason.as_str()) {
        return deleted(pod);
    }
    let code = ended["exitCode"].as_i64().map(|code| format!("exit code {code}")).unwrap_or_default();
    PodState::Over(with(reason, with(code, text(&ended["message"]))))
}

/// The pod itself may go on with another container, or end as that one does.
fn has_succeeded(pod: &Value) -> bool {
    let was_ended = is_deleted(pod) || !text(&pod["status"]["reason"]).is_empty();
    container(pod)["state"]["terminated"]["exitCode"] == 0 && !was_ended
}

fn is_deleted(pod: &Value) -> bool {
    pod["metadata"]["deletionTimestamp"].is_string()
}

/// Why a kubelet that answers calls a pod not ready: containers that others put beside ours, and gates.
const OF_KUBELET: [&str; 2] = ["ContainersNotReady", "ReadinessGatesNotReady"];

/// Ours of its containers, which kubelets list by name: webhooks put proxies and agents beside it.
fn container(pod: &Value) -> &Value {
    let all = pod["status"]["containerStatuses"].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().find(|container| container["name"] == CONTAINER).unwrap_or(&Value::Null)
}

fn state(pod: &Value) -> PodState {
    let status = &pod["status"];
    let container = container(pod);
    let waits = &container["state"]["waiting"];
    let ended = &container["state"]["terminated"];
    let is_deleted = is_deleted(pod);
    match status["phase"].as_str() {
        Some("Failed" | "Succeeded") => {
            let (reason, message) = (text(&status["reason"]), text(&status["message"]));
            if !reason.is_empty() {
                return PodState::Over(with(preempted(&reason, condition(pod, "DisruptionTarget")), message));
            }
            if !ended.is_object() && !is_deleted {
                let why = beside(pod).unwrap_or_else(|| "it ended before its container began".to_owned());
                return PodState::Over(why);
            }
            over(pod, ended)
        }
        Some("Running") if ended.is_object() => over(pod, ended),
        Some("Running") if container["state"]["running"].is_object() => {
            let is_silent = |ready: &&Value| {
                let of_kubelet = ready["reason"].as_str().is_some_and(|reason| OF_KUBELET.contains(&reason));
                ready["status"] != "True" && container["ready"] == true && !of_kubelet
            };
            match condition(pod, "Ready").filter(is_silent) {
                Some(ready) => PodState::NodeSilent(with("NotReady".to_owned(), text(&ready["message"]))),
                None if is_deleted => deleted(pod),
                None => PodState::Running,
            }
        }
        // One that waits may have a finalizer, such as Kueue's, and be there for long.
        _ if is_deleted => deleted(pod),
        _ => {
            let reason = text(&waits["reason"]);
            let why = with(reason.clone(), text(&waits["message"]));
            // Of these the first attempt to pull has failed, or none will be made.
            let never =
                ["ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError"];
            if never.contains(&reason.as_str()) {
                return PodState::Over(why);
            }
            let placed = condition(pod, "PodScheduled").filter(|placed| placed["status"] == "False");
            PodState::Waiting(match placed {
                Some(placed) => with(text(&placed["reason"]), text(&placed["message"])),
                None if !NO_CAUSES.contains(&reason.as_str()) => why,
                None => beside(pod)
                    .or((!why.is_empty()).then_some(why))
                    .unwrap_or_else(|| "not started yet".to_owned()),
            })
        }
    }
}

/// Why a container waits that nothing is wrong with by itself.
const NO_CAUSES: [&str; 3] = ["", "PodInitializing", "ContainerCreating"];

/// What is wrong with a container beside ours, or with one that must end before ours begins: webhooks put some there.
fn beside(pod: &Value) -> Option<String> {
    let lists = ["initContainerStatuses", "containerStatuses"].map(|kind| &pod["status"][kind]);
    let all = lists.into_iter().filter_map(Value::as_array).flatten();
    all.filter(|one| one["name"] != CONTAINER).find_map(|one| {
        let (waits, ended) = (&one["state"]["waiting"], &one["state"]["terminated"]);
        let (reason, message) = match ended["exitCode"].as_i64() {
            Some(0) => return None,
            Some(code) => {
                (text(&ended["reason"]), with(format!("exit code {code}"), text(&ended["message"])))
            }
            None => (text(&waits["reason"]), text(&waits["message"])),
        };
        let is_cause = !NO_CAUSES.contains(&reason.as_str()) || ended.is_object();
        is_cause.then(|| format!("container {}: {}", text(&one["name"]), with(reason, message)))
    })
}

/// Whoever ended it for somebody else says so in a condition.
fn preempted(reason: &str, target: Option<&Value>) -> String {
    match target.and_then(|target| target["reason"].as_str()) {
        Some(by) if by.starts_with("Preempt") => "Preempted".to_owned(),
        _ => reason.to_owned(),
    }
}

/// One line without what moves a terminal.
fn one_line(text: &str) -> String {
    const SHOWN: usize = 240;
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(SHOWN)
        .collect::<String>()
        .trim()
        .to_owned()
}
