//! The nodes of an inventory as an isolation sees them: numbered, in their topology groups where these are known.

use config::inventory::Inventory;
use verdict::isolate::Fleet;

/// The inventory's groups are those of the topology where each node is in exactly one of them.
pub(crate) fn number(inventory: &Inventory, nodes: &[String]) -> (Fleet, Vec<String>) {
    let of_nodes: Vec<(&String, Vec<usize>)> = inventory
        .groups
        .iter()
        .map(|(name, members)| {
            let within = |(at, node): (usize, &String)| members.contains(node).then_some(at);
            (name, nodes.iter().enumerate().filter_map(within).collect())
        })
        .filter(|(_, within): &(_, Vec<usize>)| !within.is_empty())
        .collect();
    let mut groups: Vec<Option<usize>> = vec![None; nodes.len()];
    for (group, (_, within)) in of_nodes.iter().enumerate() {
        for node in within {
            if groups.get(*node).is_some_and(Option::is_some) {
                return (flat(inventory, nodes.len()), Vec::new());
            }
            if let Some(of_node) = groups.get_mut(*node) {
                *of_node = Some(group);
            }
        }
    }
    let groups: Option<Vec<usize>> = groups.into_iter().collect();
    match groups {
        Some(groups) if of_nodes.len() > 1 => {
            let fleet = Fleet { groups, ..flat(inventory, 0) };
            (fleet, of_nodes.into_iter().map(|(name, _)| name.clone()).collect())
        }
        _ => (flat(inventory, nodes.len()), Vec::new()),
    }
}

pub(crate) fn flat(inventory: &Inventory, nodes: usize) -> Fleet {
    Fleet::flat(nodes, inventory.instance.gpus as usize, inventory.instance.nics.len())
}
