//! Whether somebody has announced that a node is about to go: an autoscaler that removes it, or a cloud that takes back, moves or
//! restarts its machine. What ends or falls silent there says nothing against the node's hardware.

use super::kubectl::Kubectl;
use super::node_text::{Condition, fields, json, lines};
use base::text::{shorten, show};
use serde::Deserialize;

/// Keys of taints, and who says so by them.
const TAINTS: [(&str, &str); 10] = [
    ("karpenter.sh/disrupted", "Karpenter removes it"),
    // Before Karpenter 1.0.
    ("karpenter.sh/disruption", "Karpenter removes it"),
    ("ToBeDeletedByClusterAutoscaler", "the cluster autoscaler removes it"),
    ("aws-node-termination-handler/spot-itn", "AWS takes back the spot instance"),
    ("aws-node-termination-handler/scheduled-maintenance", "AWS maintains it"),
    ("aws-node-termination-handler/asg-lifecycle-termination", "its Auto Scaling group removes it"),
    ("cloud.google.com/impending-node-termination", "GKE ends it"),
    ("remediator.kubernetes.azure.com/unschedulable", "AKS drains it"),
    ("cloudprovider.azure.microsoft.com/draining", "AKS drains it"),
    ("node.cloudprovider.kubernetes.io/shutdown", "the cloud has shut it down"),
];
/// The condition by which AKS's node problem detector announces what Azure does with the machine.
const VM_EVENT: &str = "VMEventScheduled";
/// Then it stands still for seconds, and stays.
const FREEZE: &str = "freeze";
/// Of a condition's reason and message.
const LONGEST: usize = 120;
/// Of one node its taints and conditions, parted by a tab; lists are printed as JSON, in which no tab stands.
const FORMAT: &str =
    "--output=jsonpath={range .items[*]}{.spec.taints}{\"\\t\"}{.status.conditions}{\"\\n\"}{end}";
const LIST_LIMIT: usize = 1 << 20;

#[derive(Deserialize)]
struct Taint {
    key: String,
}

/// Who has announced it, by the keys of a node's taints, and by its conditions.
pub(crate) fn leaving<'a>(
    mut taints: impl Iterator<Item = &'a str>,
    conditions: &[Condition],
) -> Option<String> {
    let by_taint = taints.find_map(|key| {
        let (key, who) = TAINTS.iter().find(|(known, _)| *known == key)?;
        Some(format!("{who}: taint {key}"))
    });
    by_taint.or_else(|| {
        let mut events = conditions.iter().filter(|one| one.kind == VM_EVENT && one.status == "True");
        let because = events.find_map(|one| {
            Some(one.because()).filter(|because| !because.to_ascii_lowercase().contains(FREEZE))
        })?;
        Some(format!("Azure takes it away: {}", shorten(&show(&because), LONGEST)))
    })
}

/// The same of the node of this hostname, by one request. Nothing where that is not known: who may not list nodes.
pub(super) async fn announced(kubectl: &Kubectl, hostname: &str) -> Option<String> {
    let selector = format!("--selector=kubernetes.io/hostname={hostname}");
    let words = ["get", "nodes", &selector, FORMAT].map(str::to_owned);
    let output = kubectl.ask(&words, b"", LIST_LIMIT).await.ok()?;
    read(&output.stdout).filter(|_| output.succeeded)
}

/// What kubectl printed of one node. Where two have that hostname nothing is known of either.
fn read(printed: &[u8]) -> Option<String> {
    let nodes = lines(printed, |line| {
        let [taints, conditions] = fields(line)?;
        let taints: Vec<Taint> = json(taints, "", "taints")?;
        Ok((taints, json::<Vec<Condition>>(conditions, "", "conditions")?))
    });
    let nodes = nodes.ok()?;
    let [(taints, conditions)] = nodes.as_slice() else { return None };
    leaving(taints.iter().map(|taint| taint.key.as_str()), conditions)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(taints: &str, conditions: &str) -> Option<String> {
        read(format!("{taints}\t{conditions}\n").as_bytes())
    }

    #[test]
    fn a_node_is_leaving_by_the_taint_of_who_removes_it() {
        for (key, why) in TAINTS {
            let taints = format!(
                r#"[{{"key":"nvidia.com/gpu","effect":"NoSchedule"}},{{"key":"{key}","effect":"NoSchedule","value":"x"}}]"#
            );
            assert_eq!(parsed(&taints, ""), Some(format!("{why}: taint {key}")));
        }
        for stays in [
            "nvidia.com/gpu",
            "node.kubernetes.io/unreachable",
            "node.kubernetes.io/not-ready",
            // It is watched, and removed only if it stays idle.
            "DeletionCandidateOfClusterAutoscaler",
            "karpenter.sh/unregistered",
        ] {
            assert_eq!(
                parsed(&format!(r#"[{{"key":"{stays}","effect":"NoSchedule"}}]"#), "[]"),
                None,
                "{stays}"
            );
        }
    }

    #[test]
    fn a_node_is_leaving_by_an_event_that_azure_has_scheduled() {
        let event = |status: &str, message: &str| {
            format!(
                r#"[{{"type":"Ready","status":"True"}},{{"type":"VMEventScheduled","status":"{status}","reason":"VMEventScheduled","message":"{message}"}}]"#
            )
        };
        let preempt = "Preempt Scheduled: Mon, 02 Mar 2026 19:01:45 GMT";
        let why = format!("Azure takes it away: VMEventScheduled: {preempt}");
        assert_eq!(parsed("", &event("True", preempt)), Some(why));
        assert_eq!(parsed("", &event("True", "Freeze Scheduled: Mon, 02 Mar 2026 19:01:45 GMT")), None);
        assert_eq!(parsed("", &event("False", "VM has no scheduled event")), None);
        assert_eq!(parsed("", &event("Unknown", preempt)), None);
        // Other problems that a node problem detector finds are no announcement.
        let deadlock = r#"[{"type":"KernelDeadlock","status":"True","reason":"DockerHung","message":"x"}]"#;
        assert_eq!(parsed("", deadlock), None);
    }

    #[test]
    fn what_cannot_be_read_announces_nothing() {
        let karpenter = r#"[{"key":"karpenter.sh/disrupted"}]"#;
        let twice = format!("{karpenter}\t\n{karpenter}\t\n");
        let cut = format!("{karpenter}\t[{{");
        for odd in ["", "\n", karpenter, twice.as_str(), cut.as_str(), "{}\t[]\n", "[{}]\t[]\n", "[1]\t\n"] {
            assert_eq!(read(odd.as_bytes()), None, "{odd:?}");
        }
        assert_eq!(read(b"\xff\t[]\n"), None);
    }
}
