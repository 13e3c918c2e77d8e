//! What a suite asks of nodes before they are accepted, beside what every node must have: bounds on facts, and facts that
//! all nodes must have alike. A fact that is unknown speaks against no node; the certificate lists it.

use base::nodeset;
use config::facts::{Requirement, missing_and_additional};
use config::inventory::Inventory;
use model::artefact::{Probe, ProbedNode, Value};
use std::collections::BTreeMap;

/// Fewer nodes have no majority that proves anything.
const LEAST_NODES: usize = 3;

/// Adds to each node why it does not meet the suite. Gives the facts in which no value is that of most nodes, since they
/// then speak against none.
pub fn hold_to(made: &mut Probe, bounds: &[Requirement], alike: &[String]) -> Vec<String> {
    for node in made.nodes.iter_mut().filter(|node| was_asked(node)) {
        let is_known = |bound: &&Requirement| bound.is_known_of(node);
        let unmet: Vec<String> =
            bounds.iter().filter(is_known).filter_map(|bound| bound.unmet(node)).collect();
        node.unfit.extend(unmet);
    }
    alike.iter().filter_map(|fact| compare(made, fact)).collect()
}

/// Adds to each node how its hardware differs from that which was delivered. Gives a note on new nodes that are not
/// listed, where others are; and by node what is listed and the node did not report.
pub fn hold_to_delivery(
    made: &mut Probe,
    inventory: &Inventory,
    is_new: &dyn Fn(&str) -> bool,
) -> (Option<String>, BTreeMap<String, String>) {
    let (mut unlisted, mut uncompared) = (Vec::new(), BTreeMap::new());
    for node in made.nodes.iter_mut().filter(|node| node.fingerprint.is_some()) {
        match inventory.hardware.get(&node.node) {
            Some(delivered) => {
                node.unfit.extend(delivered.differences(&node.facts));
                let unread = delivered.uncompared(&node.facts);
                if !unread.is_empty() {
                    uncompared.insert(node.node.clone(), why_uncompared(node, &unread));
                }
            }
            None if is_new(&node.node) => unlisted.push(node.node.clone()),
            None => {}
        }
    }
    let note = (!inventory.hardware.is_empty() && !unlisted.is_empty()).then(|| {
        format!("hardware, by `[[hardware]]` of the inventory, does not list: {}", nodeset::fold(&unlisted))
    });
    (note, uncompared)
}

fn why_uncompared(node: &ProbedNode, unread: &[&str]) -> String {
    let why = |fact: &&str| match node.unknown.get(*fact) {
        Some(why) => format!("`{fact}`: {why}"),
        None => format!("`{fact}`: nothing on the node reported it"),
    };
    let facts = unread.iter().map(why).collect::<Vec<_>>().join("; ");
    format!("not compared with `[[hardware]]` of the inventory: {facts}")
}

/// Whether it was to answer. Of one that did not, what Kubernetes reports may say why: a daemon that gives no devices keeps its
/// pod from starting. One that was left out before has its reason, and may be no culprit.
fn was_asked(node: &ProbedNode) -> bool {
    node.fingerprint.is_some() || node.unprobed.is_some()
}

fn compare(made: &mut Probe, fact: &str) -> Option<String> {
    let mut nodes_of: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for node in made.nodes.iter().filter(|node| was_asked(node)) {
        if let Some(value) = node.facts.get(fact) {
            nodes_of.entry(value.to_string()).or_default().push(node.node.clone());
        }
    }
    if nodes_of.len() < 2 {
        return None;
    }
    let known: usize = nodes_of.values().map(Vec::len).sum();
    let most = nodes_of.iter().find(|(_, nodes)| 2 * nodes.len() > known && known >= LEAST_NODES);
    let Some((usual, _)) = most else {
        let values: Vec<String> =
            nodes_of.iter().map(|(value, nodes)| format!("{value} on {}", nodes.len())).collect();
        return Some(format!("`{fact}` differs, and no value is that of most nodes: {}", values.join("; ")));
    };
    let usual = usual.clone();
    for node in made.nodes.iter_mut().filter(|node| was_asked(node)) {
        if node.facts.get(fact).is_some_and(|value| value.to_string() != usual) {
            let why = difference(node, fact, &usual);
            node.unfit.push(why);
        }
    }
    None
}

fn difference(node: &ProbedNode, fact: &str, usual: &str) -> String {
    match node.facts.get(fact) {
        Some(Value::Names(names)) => {
            format!("`{fact}` is unlike most nodes: {}", missing_and_additional(names, usual))
        }
        Some(value) => format!("`{fact}` is {value}, on most nodes {usual}"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::facts::Bound;
    use config::inventory::Instances;
    use model::artefact::Format;
    use std::path::Path;

    fn probe(nodes: &[(&str, Option<Value>)]) -> Probe {
        let node = |(name, value): &(&str, Option<Value>)| ProbedNode {
            node: (*name).to_owned(),
            facts: value.iter().map(|value| ("kernel".to_owned(), value.clone())).collect(),
            fingerprint: Some(String::new()),
            ..ProbedNode::default()
        };
        Probe {
            format: Format,
            harness: String::new(),
            simulated: false,
            inventory: String::new(),
            instance: String::new(),
            at: String::new(),
            nodes: nodes.iter().map(node).collect(),
        }
    }

    fn text(text: &str) -> Option<Value> {
        Some(Value::Text(text.to_owned()))
    }

    fn unfit(made: &Probe) -> Vec<&str> {
        made.nodes.iter().filter(|node| !node.unfit.is_empty()).map(|node| node.node.as_str()).collect()
    }

    #[test]
    fn the_odd_node_of_a_majority_is_refused_and_one_that_reports_nothing_is_not() {
        let alike = ["kernel".to_owned()];
        let mut made = probe(&[("a", text("6.8")), ("b", text("6.5")), ("c", text("6.8")), ("d", None)]);
        assert_eq!(hold_to(&mut made, &[], &alike), [""; 0]);
        assert_eq!(unfit(&made), ["b"]);
        assert_eq!(made.nodes[1].unfit, ["`kernel` is 6.5, on most nodes 6.8"]);
    }

    #[test]
    fn without_a_majority_no_node_is_refused_and_the_values_are_reported() {
        let alike = ["kernel".to_owned()];
        for nodes in [
            vec![("a", text("6.8")), ("b", text("6.5"))],
            vec![("a", text("6.8")), ("b", text("6.5")), ("c", text("6.8")), ("d", text("6.5"))],
            vec![("a", text("1")), ("b", text("2")), ("c", text("3"))],
        ] {
            let mut made = probe(&nodes);
            let notes = hold_to(&mut made, &[], &alike);
            assert!(notes.len() == 1 && notes[0].contains("no value is that of most nodes"), "{notes:?}");
            assert!(unfit(&made).is_empty(), "{made:?}");
        }
    }

    #[test]
    fn what_a_server_reports_counts_where_a_node_gave_no_answer_and_not_where_it_was_left_out_before() {
        let good = ["a", "b", "c"].map(|name| (name, text("6.8")));
        let made = || {
            let mut made = probe(&[&good[..], &[("d", text("6.5")), ("e", text("6.5"))]].concat());
            let [.., silent, out] = &mut made.nodes[..] else { panic!("five nodes") };
            (silent.fingerprint, silent.unprobed) = (None, Some("its pod did not start".to_owned()));
            out.fingerprint = None;
            made
        };
        let bound =
            Requirement { fact: "kernel".to_owned(), bound: Bound::Equals(Value::Text("6.8".to_owned())) };
        let mut by_bound = made();
        hold_to(&mut by_bound, &[bound], &[]);
        assert_eq!(unfit(&by_bound), ["d"]);
        let mut alike = made();
        assert_eq!(hold_to(&mut alike, &[], &["kernel".to_owned()]), [""; 0]);
        assert_eq!(unfit(&alike), ["d"]);
    }

    #[test]
    fn hardware_that_a_listed_node_does_not_report_is_not_as_delivered() {
        let home = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a root");
        let instances = Instances::load(home).expect("sound instances");
        let text = "kind = \"real\"\ninstance = \"p5\"\nnodes = \"n[1-3]\"\npaths = { shared = \"/fsx\" }\n\
                    reach = { via = \"ssh\" }\n[[hardware]]\nnode = \"n1\"\nmachine = \"i-1\"\n\
                    [[hardware]]\nnode = \"n2\"\ngpus = [\"GPU-a\"]\n";
        let inventory = Inventory::read(text, "inventory/x.toml", &instances);
        let inventory = inventory.map_err(|why| why.to_string()).expect("good");
        let mut made = probe(&[("n1", None), ("n2", None), ("n3", None)]);
        made.nodes[0].facts.insert("machine".to_owned(), Value::Text("i-1".to_owned()));
        made.nodes[1].unknown.insert("gpu_ids".to_owned(), "no such program: nvidia-smi".to_owned());
        let (note, uncompared) = hold_to_delivery(&mut made, &inventory, &|_| true);
        assert!(unfit(&made).is_empty() && note.is_some_and(|note| note.ends_with(": n3")), "{made:?}");
        let why = "not compared with `[[hardware]]` of the inventory: `gpu_ids`: no such program: nvidia-smi";
        assert_eq!(uncompared, BTreeMap::from([("n2".to_owned(), why.to_owned())]));
    }

    #[test]
    fn an_unknown_fact_meets_no_bound_and_breaks_none() {
        let bound =
            Requirement { fact: "kernel".to_owned(), bound: Bound::Equals(Value::Text("6.8".to_owned())) };
        let mut made = probe(&[("a", text("6.8")), ("b", text("6.5")), ("c", None)]);
        hold_to(&mut made, &[bound], &[]);
        assert_eq!(unfit(&made), ["b"]);
        assert_eq!(made.nodes[1].unfit, ["`kernel` must be 6.8, but is 6.5"]);
    }
}
