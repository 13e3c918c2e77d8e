//! Which nodes each job of a case runs on.

use config::suite::Placement;
use recipes::recipe::ring as partners;

/// The nodes of one job of a case.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    /// Good as a folder's name, unique within the case.
    pub name: String,
    /// Of a flow the sender, then the receiver.
    pub nodes: Vec<String>,
    /// Jobs of one round are disjoint.
    pub round: u32,
}

/// Empty where there are too few nodes.
pub fn place(how: &Placement, nodes: &[String]) -> Vec<Placed> {
    let n = nodes.len();
    let placed = |name: String, nodes: &[String], round| Placed { name, nodes: nodes.to_vec(), round };
    match how {
        Placement::All => vec![placed("all".to_owned(), nodes, 1)],
        Placement::Each | Placement::EachGpu => {
            nodes.iter().map(|node| placed(node.clone(), std::slice::from_ref(node), 1)).collect()
        }
        Placement::Nodes(k) => match nodes.get(..*k as usize) {
            Some(first) if !first.is_empty() => vec![placed(format!("nodes-{k}"), first, 1)],
            _ => Vec::new(),
        },
        Placement::Pairs => groups(nodes, 2, &|chunk| chunk.join("+")),
        Placement::Groups(k) if n >= *k as usize && *k > 0 => {
            groups(nodes, *k as usize, &|chunk| format!("{}+{}", chunk[0], chunk.len() - 1))
        }
        Placement::Groups(_) => Vec::new(),
    }
}

/// Disjoint groups in order. Nodes left over form a last group with nodes that were used already, in a second round,
/// so that every node is covered and all groups are of one size.
fn groups(nodes: &[String], size: usize, name: &dyn Fn(&[String]) -> String) -> Vec<Placed> {
    if nodes.len() < size {
        return Vec::new();
    }
    let mut placed: Vec<Placed> = nodes
        .chunks_exact(size)
        .map(|chunk| Placed { name: name(chunk), nodes: chunk.to_vec(), round: 1 })
        .collect();
    if !nodes.len().is_multiple_of(size) {
        let last = &nodes[nodes.len() - size..];
        placed.push(Placed { name: name(last), nodes: last.to_vec(), round: 2 });
    }
    placed
}

/// Pairs along a ring, each in both directions: the first node of a job sends, the second receives.
pub fn ring(nodes: &[String]) -> Vec<Placed> {
    let mut placed = Vec::new();
    for (round, pairs) in partners::rounds(nodes).into_iter().enumerate() {
        for way in [false, true] {
            for (a, b) in &pairs {
                let (from, to) = if way { (b, a) } else { (a, b) };
                let (Some(from), Some(to)) = (nodes.get(*from), nodes.get(*to)) else { continue };
                placed.push(Placed {
                    name: format!("{from}-to-{to}"),
                    nodes: vec![from.clone(), to.clone()],
                    round: round as u32 + 1,
                });
            }
        }
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(n: usize) -> Vec<String> {
        (1..=n).map(|i| format!("n{i}")).collect()
    }

    fn names(placed: &[Placed]) -> Vec<String> {
        placed.iter().map(|job| format!("{}:{}", job.round, job.nodes.join("+"))).collect()
    }

    #[test]
    fn every_node_is_covered_by_groups_of_one_size() {
        assert_eq!(names(&place(&Placement::Pairs, &nodes(4))), ["1:n1+n2", "1:n3+n4"]);
        assert_eq!(names(&place(&Placement::Pairs, &nodes(5))), ["1:n1+n2", "1:n3+n4", "2:n4+n5"]);
        assert_eq!(names(&place(&Placement::Groups(3), &nodes(4))), ["1:n1+n2+n3", "2:n2+n3+n4"]);
        assert_eq!(names(&place(&Placement::Each, &nodes(2))), ["1:n1", "1:n2"]);
        assert_eq!(names(&place(&Placement::Nodes(2), &nodes(3))), ["1:n1+n2"]);
        assert_eq!(names(&place(&Placement::All, &nodes(2))), ["1:n1+n2"]);
    }

    #[test]
    fn too_few_nodes_are_no_placement() {
        for how in [Placement::Pairs, Placement::Nodes(2), Placement::Groups(2)] {
            assert_eq!(place(&how, &nodes(1)), [], "{how:?}");
        }
        assert_eq!(ring(&nodes(1)), []);
    }

    #[test]
    fn a_ring_runs_each_pair_in_both_directions() {
        assert_eq!(names(&ring(&nodes(2))), ["1:n1+n2", "1:n2+n1"]);
        let four = ring(&nodes(4));
        assert_eq!(four.len(), 8);
        for node in nodes(4) {
            let partners: std::collections::BTreeSet<&String> =
                four.iter().filter(|job| job.nodes[0] == node).map(|job| &job.nodes[1]).collect();
            assert_eq!(partners.len(), 2, "{node}");
        }
    }
}
