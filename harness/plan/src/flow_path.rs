//! By which path the flows of a nic-pairs case move data: through GPU memory, or through the host's in turns. What is
//! known when the plan is made, and what the preflight adds.

use base::nodeset;
use base::text::count;
use config::inventory::Instance;
use job::script::FlowMemory;
use model::artefact::{Plan, Probe, Value, WorkloadFacts};

/// For each NIC the GPU that shares its PCIe switch.
pub(crate) fn gpus(instance: &Instance) -> Vec<u32> {
    (0..instance.nics.len()).map(|nic| instance.gpu_of_nic(nic)).collect()
}

/// How many turns flows are sure to take.
pub(crate) fn turns(instance: &Instance, memory: FlowMemory) -> f64 {
    match memory {
        FlowMemory::Host => f64::from(instance.nics_of_gpu()),
        FlowMemory::Auto | FlowMemory::Gpu => 1.0,
    }
}

/// Before any node was asked.
pub(crate) fn planned(instance: &Instance, tool: &str, memory: FlowMemory) -> String {
    let turns = count(instance.nics_of_gpu(), "turn");
    let link = match instance.host_link_gb_s {
        Some(link) => format!(", whose link to the CPU moves {link} GB/s"),
        None => String::new(),
    };
    let host = format!("host memory, one NIC of each PCIe switch{link}, at a time: {turns}");
    match memory {
        FlowMemory::Gpu => GPU.to_owned(),
        FlowMemory::Host => format!("{host}; the case asks for it"),
        FlowMemory::Auto => {
            format!("{GPU}, where `{tool}` of both nodes can use CUDA; else {host}; decided on the nodes")
        }
    }
}

const GPU: &str = "GPU memory, each NIC with the GPU behind its PCIe switch";

/// With what the nodes reported of their tools. Nodes that reported nothing of them leave the choice open.
pub fn settle(plan: &mut Plan, probe: &Probe) {
    let nodes = plan.nodes.clone();
    for case in &mut plan.cases {
        let WorkloadFacts::NicPairs { tool, op, memory: Some(FlowMemory::Auto), path: Some(path) } =
            &mut case.workload
        else {
            continue;
        };
        let program = if tool.as_str() == "ib_write_bw" { format!("ib_{op}_bw") } else { tool.clone() };
        let reported = |node: &&String| {
            let node = probe.nodes.iter().find(|probed| probed.node == **node)?;
            match node.facts.get("flow_tools") {
                Some(Value::Names(tools)) => Some(tools.contains(&format!("{program}:cuda"))),
                _ => None,
            }
        };
        let can: Option<Vec<bool>> = nodes.iter().map(|node| reported(&node)).collect();
        let Some(can) = can.filter(|can| !can.is_empty()) else { continue };
        let cannot: Vec<&String> =
            nodes.iter().zip(&can).filter(|(_, can)| !**can).map(|(node, _)| node).collect();
        *path = match cannot.as_slice() {
            [] => format!("{GPU}: `{program}` of all {} nodes can use CUDA", nodes.len()),
            _ => format!(
                "host memory, one NIC of each PCIe switch at a time, in pairs with {}: `{program}` there cannot use CUDA",
                nodeset::fold(&cannot)
            ),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::artefact::ProbedNode;

    fn settled(tools: &[&[&str]]) -> String {
        let mut plan = fixture::plan();
        plan.nodes.truncate(tools.len());
        let nodes = plan.nodes.iter().zip(tools).map(|(node, tools)| {
            let tools = Value::Names(tools.iter().map(|tool| (*tool).to_owned()).collect());
            let facts = std::collections::BTreeMap::from([("flow_tools".to_owned(), tools)]);
            ProbedNode { node: node.clone(), facts, ..ProbedNode::default() }
        });
        let probe = Probe {
            format: model::artefact::Format,
            harness: String::new(),
            simulated: true,
            inventory: String::new(),
            instance: String::new(),
            at: String::new(),
            nodes: nodes.collect(),
        };
        let (memory, path) = (Some(FlowMemory::Auto), Some("open".to_owned()));
        plan.cases[0].workload =
            WorkloadFacts::NicPairs { tool: "fi_rma_bw".into(), op: "write".into(), memory, path };
        settle(&mut plan, &probe);
        match &plan.cases[0].workload {
            WorkloadFacts::NicPairs { path: Some(path), .. } => path.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_path_follows_what_all_nodes_reported() {
        let cuda: &[&str] = &["fi_rma_bw", "fi_rma_bw:cuda"];
        assert_eq!(settled(&[cuda, cuda]), format!("{GPU}: `fi_rma_bw` of all 2 nodes can use CUDA"));
        assert!(
            settled(&[cuda, &["fi_rma_bw"]])
                .ends_with("in pairs with p5-002: `fi_rma_bw` there cannot use CUDA")
        );
        assert!(settled(&[cuda, &["ib_write_bw:cuda"]]).starts_with("host memory"));
    }

    #[test]
    fn a_case_of_host_memory_takes_a_turn_for_each_nic_of_a_switch() {
        let home = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a root");
        let instances = config::inventory::Instances::load(home).expect("sound instances");
        let of = |name: &str| instances.get(name).expect("a profile");
        for (name, expected) in [("p5", 4.0), ("p5en", 2.0), ("p4de", 1.0), ("p6-b200", 1.0)] {
            assert_eq!(turns(of(name), FlowMemory::Host), expected, "{name}");
            assert_eq!(turns(of(name), FlowMemory::Auto), 1.0, "{name}");
        }
        assert_eq!(gpus(of("p5"))[..9], [0, 0, 0, 0, 1, 1, 1, 1, 2]);
        assert_eq!(gpus(of("p4d")), [0, 2, 4, 6]);
        let text = planned(of("p5"), "fi_rma_bw", FlowMemory::Auto);
        assert!(
            text.contains("moves 14.2 GB/s") && text.ends_with("4 turns; decided on the nodes"),
            "{text}"
        );
        let text = planned(of("p4de"), "fi_rma_bw", FlowMemory::Host);
        assert!(text.ends_with("at a time: 1 turn; the case asks for it"), "{text}");
    }
}
