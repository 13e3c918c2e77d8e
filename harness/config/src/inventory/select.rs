//! Which of an inventory's nodes a person means: ranges, and groups by `@name`.

use super::Inventory;
use base::nodeset;
use base::suggest::nearest_name;
use std::collections::BTreeSet;

pub(super) fn select(
    inventory: &Inventory,
    nodes: Option<&str>,
    exclude: Option<&str>,
) -> Result<Vec<String>, String> {
    let wanted = nodes.map(|text| meant(inventory, text)).transpose()?;
    let unwanted = exclude.map(|text| meant(inventory, text)).transpose()?.unwrap_or_default();
    let is_left = |node: &&String| {
        wanted.as_ref().is_none_or(|wanted| wanted.contains(*node)) && !unwanted.contains(*node)
    };
    let mut left: Vec<String> = inventory.nodes.iter().filter(is_left).cloned().collect();
    if left.is_empty() {
        return Err(format!("no nodes of inventory `{}` selected", inventory.name));
    }
    if let Some(network) = &inventory.network {
        network.sort(&mut left);
    }
    Ok(left)
}

fn meant(inventory: &Inventory, text: &str) -> Result<BTreeSet<String>, String> {
    let known: BTreeSet<&str> = inventory.nodes.iter().map(String::as_str).collect();
    let mut meant = BTreeSet::new();
    for (_, item) in nodeset::split(text)? {
        if let Some(group) = item.strip_prefix('@') {
            let Some(nodes) = inventory.groups.get(group) else {
                let near = nearest_name(group, inventory.groups.keys().map(String::as_str));
                return Err(unknown(
                    "group",
                    &format!("@{group}"),
                    near.map(|near| format!("@{near}")),
                    inventory,
                ));
            };
            meant.extend(nodes.iter().cloned());
            continue;
        }
        if let Some(nodes) = pattern_meant(item, inventory) {
            return Err(format!("`{}`: nodes are given as a range, write `{nodes}`", item.escape_debug()));
        }
        for node in nodeset::expand(item)? {
            if !known.contains(node.as_str()) {
                let near = nearest_name(&node, known.iter().copied()).map(str::to_owned);
                return Err(unknown("node", &node, near, inventory));
            }
            meant.insert(node);
        }
    }
    Ok(meant)
}

/// The nodes that `p5-*` would be, if there is any.
fn pattern_meant(item: &str, inventory: &Inventory) -> Option<String> {
    let (head, tail) = item.split_once('*')?;
    let is_meant = |node: &&String| {
        node.len() >= head.len() + tail.len() && node.starts_with(head) && node.ends_with(tail)
    };
    let nodes: Vec<&String> = inventory.nodes.iter().filter(is_meant).collect();
    (!nodes.is_empty()).then(|| nodeset::fold(&nodes))
}

fn unknown(what: &str, name: &str, near: Option<String>, inventory: &Inventory) -> String {
    let name = name.escape_debug();
    match near {
        Some(near) => {
            format!("inventory `{}` has no {what} `{name}`; did you mean `{near}`?", inventory.name)
        }
        None => {
            let nodes = nodeset::fold(&inventory.nodes);
            let other = if what == "node" { "; --inventory NAME chooses another" } else { "" };
            format!("inventory `{}` has no {what} `{name}`; it has {nodes}{other}", inventory.name)
        }
    }
}
