//! What Kubernetes itself reports of the nodes that pods stand for, by two lists before they are asked: conditions that their
//! kubelets keep, HyperPod's word on their health, labels of their GPUs, and the daemons that give pods devices. Who may not
//! list nodes or pods has these facts as unknown, with the reason.

use super::fitness::{LEAVING, PRESSURE};
use super::on_node::{NodeJob, OnNode, Reported};
use super::{device_pods, gpu_labels};
use crate::discover::kubernetes::{Node, health_labels, hostname, list, unhealthy};
use crate::reach::pods::Kubectl;
use crate::reach::{Host, Wait};
use base::text::{shorten, show};
use config::inventory::KubernetesReach;
use model::artefact::Value;
use std::collections::BTreeMap;

const READY: &str = "node_ready";
const UNDER_PRESSURE: &str = "node_pressure";
const HEALTH: &str = "node_health";
/// What no node reports of itself.
pub(super) const FACTS: [&str; 7] = [
    READY,
    UNDER_PRESSURE,
    HEALTH,
    gpu_labels::CONTRADICTED,
    gpu_labels::MIG,
    device_pods::READY,
    device_pods::BAD,
];
/// What a kubelet reports of its node, before it evicts pods.
const PRESSURES: [&str; 3] = ["MemoryPressure", "DiskPressure", "PIDPressure"];
/// Of what the server says of one node.
const LONGEST: usize = 200;

impl OnNode for KubernetesReach {
    fn reported<'a>(&'a self, nodes: &'a [String]) -> Wait<'a, BTreeMap<String, Reported>> {
        Box::pin(async move {
            let kubectl = Kubectl::from_reach(self);
            let listed = match list(&kubectl, None).await {
                Ok(listed) => listed,
                Err(why) => return nodes.iter().map(|name| (name.clone(), unknown(why.clone()))).collect(),
            };
            let pods = device_pods::list(&kubectl, &self.device_namespaces).await;
            let one = |name: &String| {
                let reported = one_of(&listed, name).map_or_else(unknown, |node| {
                    let mut reported = read_node(node);
                    device_pods::report(&pods, &node.name, &mut reported);
                    reported
                });
                (name.clone(), reported)
            };
            nodes.iter().map(one).collect()
        })
    }

    fn command(&self, node: &str, argv: Vec<String>, _job: &NodeJob<'_>) -> (Host, Vec<String>) {
        (Host::Node(node.to_owned()), argv)
    }
}

fn unknown(why: String) -> Reported {
    let unknown = FACTS.map(|fact| (fact.to_owned(), why.clone()));
    Reported { unknown: BTreeMap::from(unknown), ..Reported::default() }
}

fn one_of<'a>(all: &'a [Node], name: &str) -> Result<&'a Node, String> {
    let mut found = all.iter().filter(|node| hostname(node) == Some(name));
    match (found.next(), found.next()) {
        (Some(node), None) => Ok(node),
        (None, _) => Err("Kubernetes lists no node of that hostname".to_owned()),
        _ => Err("Kubernetes lists several nodes of that hostname".to_owned()),
    }
}

fn read_node(node: &Node) -> Reported {
    let mut reported = Reported::default();
    let line = |text: &str| shorten(&show(text), LONGEST);
    match node.condition("Ready") {
        Some(ready) => {
            reported.facts.insert(READY.to_owned(), Value::Text(line(&ready.status)));
        }
        None => {
            reported.unknown.insert(READY.to_owned(), lists_no("Ready"));
        }
    }
    let pressures = PRESSURES.map(|kind| (kind, node.condition(kind)));
    match pressures
        .iter()
        .find(|(_, found)| found.is_none_or(|one| !["True", "False"].contains(&one.status.as_str())))
    {
        Some((kind, None)) => {
            reported.unknown.insert(UNDER_PRESSURE.to_owned(), lists_no(kind));
        }
        Some((kind, Some(one))) => {
            let why = format!("{kind} is {}: {}", line(&one.status), line(&one.because()));
            reported.unknown.insert(UNDER_PRESSURE.to_owned(), why);
        }
        None => {
            let there = pressures.iter().filter(|(_, found)| found.is_some_and(|one| one.status == "True"));
            let names = there.map(|(kind, _)| (*kind).to_owned()).collect();
            reported.facts.insert(UNDER_PRESSURE.to_owned(), Value::Names(names));
        }
    }
    let labels = health_labels(node).map(|(key, value)| line(&format!("{key}={value}"))).collect();
    reported.facts.insert(HEALTH.to_owned(), Value::Names(labels));
    let labels = gpu_labels::select(&node.labels);
    gpu_labels::report_mig(&labels, &mut reported);
    reported.gpu_labels = Some(labels);
    let pressed = pressures.iter().find_map(|(kind, found)| {
        let one = (*found)?;
        (one.status == "True")
            .then(|| format!("{PRESSURE}Kubernetes reports {kind}: {}", line(&one.because())))
    });
    let not_ready = node.condition("Ready").and_then(|_| node.not_ready());
    let unusable = not_ready.map(|why| line(&format!("Kubernetes reports it as {why}")));
    let leaving = node.leaving().map(|why| format!("{LEAVING}{why}"));
    reported.unusable = leaving.or(unusable).or_else(|| unhealthy(node).map(|why| line(&why))).or(pressed);
    reported
}

fn lists_no(kind: &str) -> String {
    format!("Kubernetes lists no condition `{kind}` of it")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::kubernetes::read;

    fn node(labels: &str, conditions: &str) -> Node {
        let labels = format!(r#"{{"kubernetes.io/hostname":"n1"{labels}}}"#);
        let line = format!("ip-1\t{labels}\t\t\t\t{conditions}");
        read(line.as_bytes()).expect("a node").remove(0)
    }

    const WELL: &str = r#"{"type":"MemoryPressure","status":"False"},{"type":"DiskPressure","status":"False"},{"type":"PIDPressure","status":"False"}"#;
    const READY_NOW: &str = r#"{"type":"Ready","status":"True","reason":"KubeletReady"}"#;

    fn names(reported: &Reported, fact: &str) -> String {
        reported.facts.get(fact).map_or_else(String::new, Value::to_string)
    }

    #[test]
    fn a_node_that_is_well_has_its_facts_and_no_finding() {
        let reported = read_node(&node("", &format!("[{WELL},{READY_NOW}]")));
        assert_eq!(reported.unusable, None);
        assert_eq!(
            [READY, UNDER_PRESSURE, HEALTH].map(|fact| names(&reported, fact)),
            ["True", "none", "none"]
        );
        assert_eq!(reported.unknown.keys().collect::<Vec<_>>(), [gpu_labels::MIG]);
        let healthy = r#","sagemaker.amazonaws.com/node-health-status":"Schedulable""#;
        let reported = read_node(&node(healthy, &format!("[{WELL},{READY_NOW}]")));
        assert_eq!(reported.unusable, None);
        assert_eq!(names(&reported, HEALTH), "sagemaker.amazonaws.com/node-health-status=Schedulable (1)");
    }

    #[test]
    fn a_node_under_pressure_not_ready_or_marked_by_hyperpod_cannot_pass() {
        let full = WELL.replace(
            r#""DiskPressure","status":"False""#,
            r#""DiskPressure","status":"True","reason":"KubeletHasDiskPressure","message":"kubelet has disk pressure""#,
        );
        let reported = read_node(&node("", &format!("[{full},{READY_NOW}]")));
        assert_eq!(
            reported.unusable.as_deref(),
            Some(
                "pressure: Kubernetes reports DiskPressure: KubeletHasDiskPressure: kubelet has disk pressure"
            )
        );
        assert_eq!(names(&reported, UNDER_PRESSURE), "DiskPressure (1)");

        let silent = r#"{"type":"Ready","status":"Unknown","reason":"NodeStatusUnknown","message":"Kubelet stopped posting node status."}"#;
        let pressures = WELL.replace("False", "Unknown");
        let reported = read_node(&node("", &format!("[{pressures},{silent}]")));
        assert_eq!(
            reported.unusable.as_deref(),
            Some(
                "Kubernetes reports it as not ready: NodeStatusUnknown: Kubelet stopped posting node status."
            )
        );
        assert_eq!(names(&reported, READY), "Unknown");
        assert!(reported.unknown[UNDER_PRESSURE].starts_with("MemoryPressure is Unknown"), "{reported:?}");

        let marked = r#","sagemaker.amazonaws.com/node-health-status":"UnschedulablePendingReplacement""#;
        let reported = read_node(&node(marked, &format!("[{WELL},{READY_NOW}]")));
        assert_eq!(
            reported.unusable.as_deref(),
            Some(
                "HyperPod's label sagemaker.amazonaws.com/node-health-status is `UnschedulablePendingReplacement`"
            )
        );
    }

    #[test]
    fn a_node_that_is_about_to_go_is_not_judged_by_what_it_becomes_then() {
        let silent = r#"{"type":"Ready","status":"Unknown","reason":"NodeStatusUnknown"}"#;
        let labels = r#"{"kubernetes.io/hostname":"n1"}"#;
        let taints = r#"[{"key":"ToBeDeletedByClusterAutoscaler","value":"1","effect":"NoSchedule"}]"#;
        let line = format!("ip-1\t{labels}\t\t{taints}\t\t[{WELL},{silent}]");
        let reported = read_node(&read(line.as_bytes()).expect("a node").remove(0));
        assert_eq!(
            reported.unusable.as_deref(),
            Some("leaving: the cluster autoscaler removes it: taint ToBeDeletedByClusterAutoscaler")
        );
    }

    #[test]
    fn what_the_server_does_not_report_is_unknown_and_no_finding() {
        let reported = read_node(&node("", ""));
        assert_eq!(reported.unusable, None);
        assert_eq!(reported.unknown[READY], "Kubernetes lists no condition `Ready` of it");
        assert_eq!(reported.unknown[UNDER_PRESSURE], "Kubernetes lists no condition `MemoryPressure` of it");
        let all = [node("", ""), node("", "")];
        assert_eq!(one_of(&all, "n2").unwrap_err(), "Kubernetes lists no node of that hostname");
        assert_eq!(one_of(&all, "n1").unwrap_err(), "Kubernetes lists several nodes of that hostname");
        assert!(one_of(&all[..1], "n1").is_ok());
        let reported = unknown("Forbidden".to_owned());
        assert_eq!((reported.unknown.len(), reported.facts.len(), reported.unusable), (7, 0, None));
    }
}
