//! Nodes as `scontrol --all --json show nodes` prints them, and `sinfo --json` in older releases: the same fields, of which
//! some changed their types with 23.02.

use super::text::{comma_list, reason_of};
use super::{Node, Reason};
use crate::launch::slurm_json::number;
use crate::reach::slurm_gres::{gpus, mig};
use crate::reach::slurm_state::StateSet;
use serde_json::Value;
use std::collections::BTreeSet;
use store::iso8601;

/// The nodes of one partition. A node that lacks what it is chosen by makes the whole answer none.
pub(super) fn read(answer: &str, partition: &str) -> Result<Vec<Node>, String> {
    let answer: Value = serde_json::from_str(answer).map_err(|error| error.to_string())?;
    if let Some(error) = answer["errors"].as_array().and_then(|errors| errors.first()) {
        return Err(format!("Slurm reports an error: {error}"));
    }
    let nodes = answer["nodes"].as_array().ok_or("no list of nodes")?;
    let mut read = Vec::new();
    for node in nodes {
        let name = node["name"].as_str().filter(|name| !name.is_empty()).ok_or("a node without a name")?;
        let partitions = texts(&node["partitions"]).ok_or(format!("no partitions of the node `{name}`"))?;
        if !partitions.contains(partition) {
            continue;
        }
        let state = texts(&node["state"]).ok_or(format!("no state of the node `{name}`"))?;
        // Before 23.02 flags stood by themselves.
        let flags = texts(&node["state_flags"]).unwrap_or_default();
        let state: Vec<String> = state.into_iter().chain(flags).collect();
        let text = |key: &str| node[key].as_str().unwrap_or_default();
        read.push(Node {
            name: name.to_owned(),
            state: StateSet::parse(&state.join("+")),
            features: texts(&node["active_features"]).unwrap_or_default(),
            gpus: gpus(text("gres")),
            mig: mig(text("gres")),
            gpus_drained: gpus(text("gres_drained")).filter(|gpus| *gpus > 0),
            instance_type: Some(text("instance_type")).filter(|text| !text.is_empty()).map(str::to_owned),
            reason: reason(node),
        });
    }
    read.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(read)
}

/// A list of texts, or one text with commas, by release.
fn texts(value: &Value) -> Option<BTreeSet<String>> {
    match value {
        Value::String(text) => Some(comma_list(text)),
        Value::Array(list) => list.iter().map(|word| word.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}

fn reason(node: &Value) -> Option<Reason> {
    let since = number(&node["reason_changed_at"]).filter(|since| *since > 0);
    let since = since.map(|since| iso8601(since as f64)).unwrap_or_default();
    let by = node["reason_set_by_user"].as_str().unwrap_or_default();
    reason_of(node["reason"].as_str().unwrap_or_default(), by, &since.replace(".000Z", "Z"))
}
