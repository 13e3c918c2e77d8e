//! Nodes as kubectl prints them: of each only what decides, since an object of a node has 20 kB.

use super::quantity;
use crate::reach::pods::leaving;
use crate::reach::pods::node_text::{Condition, fields, json, lines};
use serde::Deserialize;
use std::collections::BTreeMap;

/// A line for each node, its fields parted by tabs; maps and lists are printed as JSON, in which no tab stands.
pub(super) const FORMAT: &str = "jsonpath={range .items[*]}{.metadata.name}{\"\\t\"}{.metadata.labels}{\"\\t\"}\
     {.spec.unschedulable}{\"\\t\"}{.spec.taints}{\"\\t\"}{.status.allocatable}{\"\\t\"}{.status.conditions}{\"\\n\"}{end}";

/// A node, as far as an inventory and a probe need it.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// As Kubernetes calls it.
    pub name: String,
    /// By their keys.
    pub labels: BTreeMap<String, String>,
    /// `kubectl cordon`.
    pub is_cordoned: bool,
    /// Pods have to bear them.
    pub taints: Vec<Taint>,
    /// What pods may ask for, devices among it.
    allocatable: BTreeMap<String, String>,
    conditions: Vec<Condition>,
}

/// Pods that do not bear it stay off the node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct Taint {
    /// Such as `nvidia.com/gpu`.
    pub key: String,
    /// May be empty.
    #[serde(default)]
    pub value: String,
    /// Such as `NoSchedule`.
    pub effect: String,
}

impl Node {
    pub(super) fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// How many of a device pods may ask for; nothing where the node offers none of that name.
    pub(super) fn allocatable(&self, resource: &str) -> Option<u64> {
        self.allocatable.get(resource).and_then(|quantity| quantity::whole(quantity))
    }

    /// The same of processors or bytes, in thousandths.
    pub(super) fn allocatable_milli(&self, resource: &str) -> Option<u128> {
        self.allocatable.get(resource).and_then(|quantity| quantity::milli(quantity))
    }

    pub(crate) fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.kind == kind)
    }

    /// Who has announced that it is about to go.
    pub(crate) fn leaving(&self) -> Option<String> {
        leaving(self.taints.iter().map(|taint| taint.key.as_str()), &self.conditions)
    }

    /// Why it is not ready, in the kubelet's or the controller's words.
    pub(crate) fn not_ready(&self) -> Option<String> {
        let Some(ready) = self.condition("Ready") else {
            return Some("it has no condition `Ready`".to_owned());
        };
        (ready.status != "True").then(|| format!("not ready: {}", ready.because()))
    }
}

/// A node that cannot be read makes the whole answer none: who is left out has a reason.
pub fn read(answer: &[u8]) -> Result<Vec<Node>, String> {
    lines(answer, node)
}

fn node(line: &str) -> Result<Node, String> {
    let [name, labels, unschedulable, taints, allocatable, conditions] = fields(line)?;
    if name.is_empty() {
        return Err("a node without a name".to_owned());
    }
    Ok(Node {
        name: name.to_owned(),
        labels: json(labels, name, "labels")?,
        is_cordoned: unschedulable == "true",
        taints: json(taints, name, "taints")?,
        allocatable: json(allocatable, name, "allocatable")?,
        conditions: json(conditions, name, "conditions")?,
    })
}
