//! Nodes of Kubernetes, cordoned under a taint and a reason of ours. A patch names the version of the node that it was made
//! for: where somebody changed the node meanwhile, the server refuses it, and the node is read again.

use super::{Drained, NodeState, Queue, Wanted};
use crate::reach::Wait;
use crate::reach::pods::node_text::{Condition, fields, json as field, lines};
use crate::reach::pods::{Kubectl, leaving};
use base::digest::sha256;
use config::inventory::KubernetesReach;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The key of the taint, whose value is the code, and of the annotation that has the whole reason.
const KEY: &str = verdict::isolate::code::DRAINED;
/// The annotation that has the taints of others which kept pods off when the node was drained, behind a digest of the reason
/// that they go with.
const BESIDE: &str = "harness/drained-beside";
/// What the cordon itself brings.
const CORDONED: &str = "node.kubernetes.io/unschedulable";
/// HyperPod's word on a node, which its agents keep.
const HEALTH: (&str, &str) = ("sagemaker.amazonaws.com/node-health-status", "Schedulable");
/// Keys of the taints of a drained node: pods of a re-check bear them, so that the node stays out of everybody else's reach.
pub const BORNE_BY_RECHECKS: &[&str] = &[KEY, CORDONED];
const HOSTNAME: &str = "kubernetes.io/hostname";
const EFFECT: &str = "NoSchedule";
/// A line for each node, its fields parted by tabs; maps and lists are printed as JSON, in which no tab stands.
const FORMAT: &str = "jsonpath={range .items[*]}{.metadata.name}{\"\\t\"}{.metadata.resourceVersion}{\"\\t\"}\
     {.metadata.labels}{\"\\t\"}{.metadata.annotations}{\"\\t\"}{.spec.unschedulable}{\"\\t\"}{.spec.taints}{\"\\t\"}\
     {.status.conditions}{\"\\n\"}{end}";
const LIST_LIMIT: usize = 64 << 20;
/// The kubelet and controllers change nodes, too.
const MOST_ATTEMPTS: usize = 5;

/// The API server's nodes, by the user's own kubectl.
pub struct KubernetesQueue {
    kubectl: Kubectl,
}

/// A node as the server shows it.
#[derive(Debug, Clone, PartialEq)]
struct Node {
    name: String,
    /// As the inventory names it.
    hostname: String,
    version: String,
    is_cordoned: bool,
    is_ready: bool,
    reason: Option<String>,
    /// As `drained` wrote it.
    beside: Option<String>,
    /// By HyperPod.
    health: Option<String>,
    /// Whole, as they are written back.
    taints: Vec<Value>,
    /// Who has announced that it is about to go.
    leaving: Option<String>,
}

impl KubernetesQueue {
    /// Asks nothing yet.
    pub fn new(reach: &KubernetesReach) -> KubernetesQueue {
        KubernetesQueue { kubectl: Kubectl::from_reach(reach) }
    }

    async fn ask(&self, arguments: &[&str]) -> Result<Vec<u8>, String> {
        let arguments: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
        let asked = format!("`kubectl {}`", arguments.iter().take(2).cloned().collect::<Vec<_>>().join(" "));
        let answer = self.kubectl.ask(&arguments, b"", LIST_LIMIT).await;
        let answer = answer.map_err(|error| error.to_string())?;
        match answer.succeeded {
            true => Ok(answer.stdout),
            false => Err(format!("{asked}: {}", with_role(answer.complaint()))),
        }
    }

    async fn list(&self, selector: Option<&str>) -> Result<Vec<u8>, String> {
        let output = format!("--output={FORMAT}");
        let words: Vec<&str> = ["get", "nodes", &output].into_iter().chain(selector).collect();
        self.ask(&words).await
    }

    async fn node(&self, hostname: &str) -> Result<Node, String> {
        let selector = format!("--selector={HOSTNAME}={hostname}");
        let mut nodes = read(&self.list(Some(&selector)).await?).map_err(unreadable)?;
        // One without that label is known by its name.
        if nodes.is_empty() {
            nodes = read(&self.list(None).await?).map_err(unreadable)?;
        }
        let mut found = nodes.into_iter().filter(|node| node.hostname == hostname);
        match (found.next(), found.next()) {
            (Some(node), None) => Ok(node),
            (None, _) => Err(format!("Kubernetes has no node with the label {HOSTNAME}={hostname}")),
            (Some(one), Some(other)) => Err(format!(
                "two nodes have the label {HOSTNAME}={hostname}: {} and {}",
                one.name, other.name
            )),
        }
    }

    async fn cordon(&self, wanted: &Wanted) -> Drained {
        let mut refused = String::new();
        for _ in 0..MOST_ATTEMPTS {
            let before = match self.node(&wanted.node).await {
                Ok(before) => before,
                Err(why) => return Drained::Failed { why },
            };
            if let Some(done) = before.state().settled() {
                return done;
            }
            match self.patch(&before, &before.drained(&wanted.reason)).await {
                Err(why) if is_conflict(&why) => refused = why,
                // A patch whose answer was lost may have been made.
                patched => return self.read_back(wanted, patched.err()).await,
            }
        }
        Drained::Failed { why: changed_by_others(&refused) }
    }

    /// Puts a node back into the queue that is still drained for this reason. What pods of others could not have meanwhile
    /// they may have now.
    pub async fn put_back(&self, node: &str, reason: &str) -> Result<(), String> {
        let mut refused = String::new();
        for _ in 0..MOST_ATTEMPTS {
            let before = self.node(node).await?;
            if before.reason.as_deref() != Some(reason) || !before.is_cordoned {
                return Err(format!("somebody else changed it meanwhile: {}", before.state()));
            }
            if let Some(why) = before.relied_on() {
                return Err(why);
            }
            match self.patch(&before, &before.put_back()).await {
                Err(why) if is_conflict(&why) => refused = why,
                patched => {
                    let after = self.node(node).await?;
                    return match after.is_cordoned || after.reason.is_some() {
                        true => Err(patched.err().unwrap_or_else(|| unlike_patched(&after))),
                        false => Ok(()),
                    };
                }
            }
        }
        Err(changed_by_others(&refused))
    }

    async fn patch(&self, node: &Node, patch: &Value) -> Result<(), String> {
        let patch = patch.to_string();
        self.ask(&["patch", "node", &node.name, "--type=merge", "--patch", &patch]).await.map(|_| ())
    }

    async fn read_back(&self, wanted: &Wanted, error: Option<String>) -> Drained {
        match self.node(&wanted.node).await {
            Ok(after) if after.is_cordoned && after.reason.as_deref() == Some(&wanted.reason) => {
                Drained::Done
            }
            Ok(after) => Drained::Failed { why: error.unwrap_or_else(|| unlike_patched(&after)) },
            Err(why) => Drained::Failed { why: format!("its state could not be read back: {why}") },
        }
    }
}

impl Queue for KubernetesQueue {
    fn name(&self) -> &'static str {
        "Kubernetes"
    }

    fn show_all(&self) -> Wait<'_, Result<Vec<(String, NodeState)>, String>> {
        Box::pin(async move { read_nodes(&self.list(None).await?).map_err(unreadable) })
    }

    fn drain<'a>(&'a self, wanted: &'a Wanted) -> Wait<'a, Drained> {
        Box::pin(self.cordon(wanted))
    }

    fn undo(&self, node: &str) -> String {
        verdict::isolate::code::put_back_by_hand(Some(&self.kubectl.cluster_known()), node)
    }
}

impl Node {
    fn state(&self) -> NodeState {
        let ready = if self.is_ready { "Ready" } else { "NotReady" };
        let cordoned = if self.is_cordoned { ",SchedulingDisabled" } else { "" };
        // A cordon has no reason in Kubernetes: one without ours is somebody else's.
        let unnamed = || self.is_cordoned.then(|| "cordoned, without a reason of the harness".to_owned());
        NodeState {
            state: format!("{ready}{cordoned}"),
            // Nor is a node drained for its hardware that somebody takes away.
            reason: self.reason.clone().or_else(unnamed).or_else(|| self.leaving.clone()),
            by: None,
        }
    }

    fn taints_of_others(&self) -> Vec<Value> {
        let is_ours = |taint: &Value| taint.get("key").and_then(Value::as_str) == Some(KEY);
        self.taints.iter().filter(|taint| !is_ours(taint)).cloned().collect()
    }

    /// Why others rely on its cordon by now, which they could not set a second time, if they do.
    fn relied_on(&self) -> Option<String> {
        if let Some(health) = self.health.as_deref().filter(|health| *health != HEALTH.1) {
            return Some(format!(
                "its label {} is `{}`: its cordon stays",
                HEALTH.0,
                base::text::show(health)
            ));
        }
        let reason = self.reason.as_deref()?;
        // Where it was drained by hand, or by an older harness, what was there then is not known.
        let then = self.beside.as_deref()?.strip_prefix(&digest(reason))?;
        let then: Vec<&str> = then.split(' ').collect();
        let new: Vec<String> =
            self.blocking_taints().into_iter().filter(|taint| !then.contains(&taint.as_str())).collect();
        (!new.is_empty()).then(|| {
            let new = base::text::show(&new.join(", "));
            format!(
                "others have tainted it since it was drained: {new}; its cordon stays until they are gone"
            )
        })
    }

    /// Those of others that keep pods off, without what comes with a cordon: keys and effects.
    fn blocking_taints(&self) -> Vec<String> {
        let one = |taint: &Value| {
            let (key, effect) = (taint.get("key")?.as_str()?, taint.get("effect")?.as_str()?);
            let blocks = ["NoSchedule", "NoExecute"].contains(&effect) && key != CORDONED;
            blocks.then(|| format!("{key}:{effect}"))
        };
        self.taints_of_others().iter().filter_map(one).collect()
    }

    fn put_back(&self) -> Value {
        json!({
            "metadata": { "resourceVersion": self.version, "annotations": { KEY: null, BESIDE: null } },
            "spec": { "unschedulable": null, "taints": self.taints_of_others() },
        })
    }

    /// What makes it drained: other taints stay, and other annotations are not touched.
    fn drained(&self, reason: &str) -> Value {
        let beside = [vec![digest(reason)], self.blocking_taints()].concat().join(" ");
        let mut taints = self.taints_of_others();
        let code = reason.split_whitespace().nth(1).unwrap_or_default();
        let is_value = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let code: String = code.chars().filter(|c| is_value(*c)).take(63).collect();
        taints.push(json!({ "key": KEY, "value": code, "effect": EFFECT }));
        json!({
            "metadata": { "resourceVersion": self.version, "annotations": { KEY: reason, BESIDE: beside } },
            "spec": { "unschedulable": true, "taints": taints },
        })
    }
}

/// So much of one that it differs from that of another reason.
fn digest(reason: &str) -> String {
    sha256(reason.as_bytes()).chars().take(16).collect()
}

fn unreadable(why: String) -> String {
    format!("the answer of `kubectl get nodes` cannot be read: {why}")
}

fn is_conflict(why: &str) -> bool {
    why.contains("(Conflict)")
}

fn changed_by_others(refused: &str) -> String {
    format!("it was changed by others {MOST_ATTEMPTS} times meanwhile: {refused}")
}

fn unlike_patched(after: &Node) -> String {
    format!("`kubectl patch node` succeeded, but Kubernetes reports it as {}", after.state())
}

fn with_role(complaint: String) -> String {
    match complaint.contains("(Forbidden)") {
        true => {
            let role =
                "draining needs a ClusterRole: `harness inventory role --namespace NAME --drain` prints it";
            format!("{complaint}; {role}")
        }
        false => complaint,
    }
}

/// What kubectl printed of the nodes, by the names of the inventory.
pub fn read_nodes(answer: &[u8]) -> Result<Vec<(String, NodeState)>, String> {
    Ok(read(answer)?.into_iter().map(|node| (node.hostname.clone(), node.state())).collect())
}

/// A node that cannot be read makes the whole answer none: how many are drained would not be known.
fn read(answer: &[u8]) -> Result<Vec<Node>, String> {
    lines(answer, node)
}

fn node(line: &str) -> Result<Node, String> {
    let [name, version, labels, annotations, unschedulable, taints, conditions] = fields(line)?;
    if name.is_empty() || version.is_empty() {
        return Err("a node without a name or a version".to_owned());
    }
    let mut labels: BTreeMap<String, String> = field(labels, name, "labels")?;
    let mut annotations: BTreeMap<String, String> = field(annotations, name, "annotations")?;
    let conditions: Vec<Condition> = field(conditions, name, "conditions")?;
    let taints: Vec<Value> = field(taints, name, "taints")?;
    let keys = taints.iter().filter_map(|taint| taint.get("key")?.as_str());
    let leaving = leaving(keys, &conditions);
    let is_shown = |c: char| if c.is_control() { ' ' } else { c };
    Ok(Node {
        name: name.to_owned(),
        hostname: labels.get(HOSTNAME).map_or(name, String::as_str).to_owned(),
        version: version.to_owned(),
        is_cordoned: unschedulable == "true",
        is_ready: conditions.iter().any(|one| one.kind == "Ready" && one.status == "True"),
        beside: annotations.remove(BESIDE),
        health: labels.remove(HEALTH.0),
        reason: annotations.remove(KEY).map(|reason| reason.chars().map(is_shown).collect()),
        taints,
        leaving,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(unschedulable: &str, annotations: &str, taints: &str) -> String {
        let labels = r#"{"kubernetes.io/hostname":"p5-002"}"#;
        let ready = r#"[{"type":"Ready","status":"True"}]"#;
        format!("ip-10-0-0-2.ec2.internal\t77\t{labels}\t{annotations}\t{unschedulable}\t{taints}\t{ready}")
    }

    #[test]
    fn a_node_is_known_by_its_hostname_and_a_patch_keeps_the_taints_of_others() {
        let others = r#"[{"key":"nvidia.com/gpu","effect":"NoSchedule"},{"key":"node.kubernetes.io/unreachable","effect":"NoExecute","timeAdded":"2026-01-01T00:00:00Z"},{"key":"harness/drained","value":"OLD","effect":"NoSchedule"}]"#;
        let node = node(&line("", r#"{"a":"b\tc"}"#, others)).expect("a node");
        assert_eq!((node.hostname.as_str(), node.name.as_str()), ("p5-002", "ip-10-0-0-2.ec2.internal"));
        let patch = node.drained("[harness] HRN-NIC-DEAD rdmap113s0: moved no byte, run 1");
        let expected = json!({
            "metadata": { "resourceVersion": "77", "annotations": {
                "harness/drained": "[harness] HRN-NIC-DEAD rdmap113s0: moved no byte, run 1",
                "harness/drained-beside": format!(
                    "{} nvidia.com/gpu:NoSchedule node.kubernetes.io/unreachable:NoExecute",
                    digest("[harness] HRN-NIC-DEAD rdmap113s0: moved no byte, run 1")
                ) } },
            "spec": { "unschedulable": true, "taints": [
                { "key": "nvidia.com/gpu", "effect": "NoSchedule" },
                { "key": "node.kubernetes.io/unreachable", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z" },
                { "key": "harness/drained", "value": "HRN-NIC-DEAD", "effect": "NoSchedule" },
            ] },
        });
        assert_eq!(patch, expected);
        // The value of a taint takes few letters.
        let odd = node.drained("[harness] a/b\u{1b}:c");
        assert_eq!(odd["spec"]["taints"][2]["value"], "abc");
    }

    #[test]
    fn a_cordon_stays_where_others_have_tainted_the_node_since() {
        const GPU: &str = r#"{"key":"nvidia.com/gpu","effect":"NoSchedule"}"#;
        const REASON: &str = "[harness] HRN-NIC-DEAD x, run 1";
        let before = node(&line("", "", &format!("[{GPU}]"))).expect("a node");
        let written = &before.drained(REASON)["metadata"]["annotations"];
        let with = |annotations: &Value, more: &str| {
            let taints = format!(r#"[{GPU}{more},{{"key":"harness/drained","effect":"NoSchedule"}}]"#);
            node(&line("true", &annotations.to_string(), &taints)).expect("a node").relied_on()
        };
        let cordon = r#",{"key":"node.kubernetes.io/unschedulable","effect":"NoSchedule"}"#;
        let soft = r#",{"key":"soft","effect":"PreferNoSchedule"}"#;
        assert_eq!(with(written, &[cordon, soft].concat()), None);
        let ends =
            r#",{"key":"karpenter.sh/disrupted","effect":"NoSchedule"},{"key":"gone","effect":"NoExecute"}"#;
        let why = "others have tainted it since it was drained: karpenter.sh/disrupted:NoSchedule, gone:NoExecute; its \
                   cordon stays until they are gone";
        assert_eq!(with(written, ends).as_deref(), Some(why));
        // The same key that keeps pods off in another way.
        let harder = r#",{"key":"nvidia.com/gpu","effect":"NoExecute"}"#;
        assert!(with(written, harder).is_some());
        // Leftovers of an earlier drain, or none, say nothing of this one.
        let by_hand = json!({ "harness/drained": "[harness] HRN-NIC-DEAD x" });
        assert_eq!(with(&by_hand, ends), None);
        let mut stale = written.clone();
        stale["harness/drained"] = "[harness] HRN-NIC-DEAD x, run 2".into();
        assert_eq!(with(&stale, ends), None);
    }

    #[test]
    fn a_cordon_stays_where_hyperpod_calls_the_node_unschedulable() {
        let marked = |health: &str| {
            let labels = format!(r#"{{"sagemaker.amazonaws.com/node-health-status":"{health}"}}"#);
            let ready = r#"[{"type":"Ready","status":"True"}]"#;
            node(&format!("n1\t7\t{labels}\t\ttrue\t\t{ready}")).expect("a node").relied_on()
        };
        assert_eq!(marked("Schedulable"), None);
        assert_eq!(
            marked("UnschedulablePendingReplacement").as_deref(),
            Some(
                "its label sagemaker.amazonaws.com/node-health-status is `UnschedulablePendingReplacement`: its cordon stays"
            )
        );
    }

    #[test]
    fn cordons_of_others_stand_and_ours_are_ours() {
        let state = |unschedulable: &str, annotations: &str| {
            node(&line(unschedulable, annotations, "")).expect("a node").state()
        };
        let ours = r#"{"harness/drained":"[harness] HRN-NIC-DEAD x, run 1"}"#;
        let drained = state("true", ours);
        assert!(drained.is_draining() && drained.ours().is_some());
        assert_eq!(state("", ours).settled(), None, "somebody ended that drain");
        assert_eq!(state("", "").settled(), None);
        let Some(Drained::Others { state }) = state("true", "").settled() else { panic!("another's") };
        assert_eq!(state, "Ready,SchedulingDisabled: cordoned, without a reason of the harness");
    }

    #[test]
    fn a_node_that_somebody_takes_away_is_not_drained() {
        let taints = r#"[{"key":"karpenter.sh/disrupted","effect":"NoSchedule"}]"#;
        let leaving = node(&line("", "", taints)).expect("a node").state();
        let Some(Drained::Others { state }) = leaving.settled() else { panic!("another's") };
        assert_eq!(state, "Ready: Karpenter removes it: taint karpenter.sh/disrupted");
        // Ours stays ours.
        let ours = r#"{"harness/drained":"[harness] HRN-NIC-DEAD x, run 1"}"#;
        let drained = node(&line("true", ours, taints)).expect("a node").state();
        assert!(matches!(drained.settled(), Some(Drained::Already { .. })));
    }

    /// A condition's reason counts as its message does, for whoever reads it.
    #[test]
    fn a_node_that_azure_takes_away_is_not_drained_and_one_that_it_freezes_is() {
        let event = |reason: &str, message: &str| {
            let conditions = json!([
                { "type": "Ready", "status": "True" },
                { "type": "VMEventScheduled", "status": "True", "reason": reason, "message": message },
            ]);
            node(&format!("n1\t7\t\t\t\t\t{conditions}")).expect("a node").state()
        };
        let reboot = event("VMEventScheduled", "Reboot Scheduled: soon");
        let Some(Drained::Others { state }) = reboot.settled() else { panic!("another's") };
        assert_eq!(state, "Ready: Azure takes it away: VMEventScheduled: Reboot Scheduled: soon");
        assert_eq!(event("FreezeScheduled", "in 15 minutes").settled(), None);
    }

    #[test]
    fn what_is_no_list_of_nodes_is_refused() {
        for odd in ["x", "\t\t\t\t\t\t", "n\t1\t[]\t\t\t\t", "n\t1\t\t\t\t{}\t", "n\t1\t\t3\t\t\t"] {
            assert!(read(odd.as_bytes()).is_err(), "{odd:?}");
        }
        assert!(read(&[0xff]).is_err());
        assert_eq!(read(b"n\t1\t\t\t\t\t\n").expect("a list").len(), 1);
    }
}
