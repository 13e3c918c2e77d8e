//! The JSON of `aws ec2 describe-instance-topology`: up to three or four network nodes for each instance, from the top down.

use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    instances: Vec<Instance>,
    next_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Instance {
    instance_id: String,
    #[serde(default)]
    network_nodes: Vec<String>,
}

pub(super) fn switches(
    text: &str,
    ids: &BTreeMap<String, String>,
    nodes: &[String],
) -> Result<BTreeMap<String, Vec<String>>, String> {
    let answer: Answer = serde_json::from_str(text)
        .map_err(|why| format!("no answer of `aws ec2 describe-instance-topology`: {why}"))?;
    let mut of_instance: BTreeMap<&str, &Vec<String>> = BTreeMap::new();
    for instance in &answer.instances {
        let before = of_instance.insert(&instance.instance_id, &instance.network_nodes);
        if before.is_some_and(|before| *before != instance.network_nodes) {
            return Err(format!("instance {} has two places", instance.instance_id));
        }
    }
    let mut whose: BTreeMap<&str, &String> = BTreeMap::new();
    let mut switches = BTreeMap::new();
    for node in nodes {
        let id = ids.get(node).unwrap_or(node);
        if let Some(other) = whose.insert(id, node) {
            return Err(format!("{other} and {node} are both instance {id}"));
        }
        let path = of_instance.get(id.as_str()).filter(|path| !path.is_empty());
        if let Some(path) = path {
            switches.insert(node.clone(), path.iter().map(|switch| switch.trim().to_owned()).collect());
        }
    }
    if switches.len() < nodes.len() && answer.next_token.is_some_and(|token| !token.is_empty()) {
        return Err("it is one page of several; write them all, without `--no-paginate`".to_owned());
    }
    if switches.is_empty() {
        return Err("it names none of the nodes; give their instances in `topology.instances`".to_owned());
    }
    Ok(switches)
}
