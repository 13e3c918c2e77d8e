//! What Slurm and EC2 print, and the order of ranks that comes of it.

use super::*;

fn read_as(text: &str, instances: &[(&str, &str)], nodes: &str) -> Result<String, String> {
    let instances = instances.iter().map(|(node, id)| ((*node).to_owned(), (*id).to_owned())).collect();
    let wanted = TopologyFile { file: "t".to_owned(), instances };
    let topology = Topology::read(text, &wanted, &nodeset::expand(nodes).expect("nodes"))?;
    let shown = topology.paths.iter().map(|(node, path)| format!("{}:{node}", path.join("/")));
    Ok(format!("{} {}", topology.source, shown.collect::<Vec<_>>().join(" ")))
}

fn order(text: &str, nodes: &str) -> Result<String, String> {
    read_as(text, &[], nodes)
}

/// Printed by Slurm 22.05.
const TREE: &str = "SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[1,3]\n\
                    SwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=n[2,4]\n\
                    SwitchName=spine Level=1 LinkSpeed=1 Nodes=n[1-4] Switches=leaf[1-2]\n";

#[test]
fn nodes_of_one_switch_of_a_tree_stand_together() {
    assert_eq!(
        order(TREE, "n[1-4]").as_deref(),
        Ok("Slurm spine/leaf1:n1 spine/leaf1:n3 spine/leaf2:n2 spine/leaf2:n4")
    );
    // The order of the file and of the inventory changes nothing.
    let turned: String = TREE.lines().rev().map(|line| format!("{line}\n")).collect();
    assert_eq!(order(&turned, "n4,n2,n3,n1"), order(TREE, "n[1-4]"));
    // Other nodes than the inventory's do not matter.
    assert_eq!(order(TREE, "n[3-4]").as_deref(), Ok("Slurm spine/leaf1:n3 spine/leaf2:n4"));
}

/// Printed by Slurm 24.11 and 26.05.
#[test]
fn nodes_of_one_block_stand_together_and_so_do_blocks_of_one_aggregate() {
    let blocks = "BlockName=b1 BlockIndex=0 Nodes=n[1,3] BlockSize=2\n\
                  BlockName=b2 BlockIndex=1 Nodes=n[2,4] BlockSize=2\n\
                  AggregatedBlock=b[1-2] BlockIndex=2 Nodes=n[1-4] BlockSize=4\n";
    let shown = "Slurm b[1-2]/b1:n1 b[1-2]/b1:n3 b[1-2]/b2:n2 b[1-2]/b2:n4";
    assert_eq!(order(blocks, "n[1-4]").as_deref(), Ok(shown));
}

/// As 23.11 and 24.05 print blocks, and 26.05 rings and tori, whose further lines name no nodes.
#[test]
fn blocks_without_a_size_rings_and_tori_are_read() {
    let blocks = "BlockName=b1 BlockIndex=0 Nodes=n[1,3]\nBlockName=b2 BlockIndex=1 Nodes=n[2,4]\n";
    assert_eq!(order(blocks, "n[1-4]").as_deref(), Ok("Slurm b1:n1 b1:n3 b2:n2 b2:n4"));
    let rings = "RingName=r1 Nodes=n[1,3] RingSize=2\nRingName=r2 Nodes=n[2,4] RingSize=2\n";
    assert_eq!(order(rings, "n[1-4]").as_deref(), Ok("Slurm r1:n1 r1:n3 r2:n2 r2:n4"));
    let torus = "TorusName=t1 Dims=2x2x1 Nodes=n[1-4]\n  TorusName=t1 PlacementDims=2x1x1(2) Anchors=2\n";
    assert_eq!(order(torus, "n[1-2]").as_deref(), Ok("Slurm t1:n1 t1:n2"));
    assert!(order("RingName=r1 BlockName=b1 Nodes=n1\n", "n1").is_err());
}

#[test]
fn a_level_at_which_a_node_has_two_switches_does_not_count() {
    let two_cores = format!("{TREE}SwitchName=other Level=1 LinkSpeed=1 Nodes=n[1-4] Switches=leaf[1-2]\n");
    assert_eq!(order(&two_cores, "n[1-4]").as_deref(), Ok("Slurm leaf1:n1 leaf1:n3 leaf2:n2 leaf2:n4"));
}

const EC2: &str = r#"{"Instances": [
  {"InstanceId": "i-1", "InstanceType": "p5.48xlarge", "NetworkNodes": ["nn-a", "nn-b", "nn-c"], "AvailabilityZone": "us-east-1a"},
  {"InstanceId": "i-2", "NetworkNodes": ["nn-a", "nn-d", "nn-e"]},
  {"InstanceId": "i-3", "NetworkNodes": ["nn-a", "nn-b", "nn-f"]}]}"#;

#[test]
fn instances_of_ec2_are_nodes_by_their_ids_or_as_the_inventory_maps_them() {
    let shown = "EC2 nn-a/nn-b/nn-c:i-1 nn-a/nn-b/nn-f:i-3 nn-a/nn-d/nn-e:i-2";
    assert_eq!(order(EC2, "i-[1-3]").as_deref(), Ok(shown));
    let mapped = read_as(EC2, &[("p1", "i-2"), ("p2", "i-1"), ("p3", "i-3")], "p[1-3]");
    assert_eq!(mapped.as_deref(), Ok("EC2 nn-a/nn-d/nn-e:p1 nn-a/nn-b/nn-c:p2 nn-a/nn-b/nn-f:p3"));
}

#[test]
fn what_orders_no_ranks_says_why() {
    let paged = EC2.replace("]}]}", "]}], \"NextToken\": \"x\"}");
    let huge = "SwitchName=s Level=0 Nodes=n[1-90000]\n".repeat(12);
    let shared = "SwitchName=a Level=0 Nodes=n[1-2]\nSwitchName=b Level=0 Nodes=n[2-3]\n";
    let rows: Vec<(String, String)> = [
        (" \n", "n1"),
        ("No topology information available\n", "n1"),
        ("scontrol: error: unable to contact\n", "n1"),
        ("SwitchName=s Level=x Nodes=n1\n", "n1"),
        ("SwitchName=s Level=0 Nodes=n[1\n", "n1"),
        (TREE, "n[1-9]"),
        (shared, "n[1-3]"),
        (&huge, "n1"),
        ("{\"Instances\": 1}", "n1"),
        (EC2, "p[1-2]"),
        (EC2, "i-[1-5]"),
        (&paged, "i-[1-5]"),
    ]
    .map(|(text, nodes)| (nodes.to_owned(), order(text, nodes).expect_err("no order")))
    .to_vec();
    let messages: String = rows.iter().map(|(nodes, why)| format!("{nodes}: {why}\n")).collect();
    let twice = read_as(EC2, &[("p1", "i-1"), ("p2", "i-1")], "p[1-2]").expect_err("no order");
    insta::assert_snapshot!(messages + &twice, @"
    n1: the file is empty
    n1: Slurm has no topology
    n1: line 1 is none of `scontrol show topology`
    n1: line 1 is none of `scontrol show topology`
    n1: line 1: `n[1`: `[` without `]` at position 2; write `n[1]`
    n[1-9]: it does not name n[5-9]
    n[1-3]: n2 is in a and in b
    n1: line 12: more than 1000000 names of nodes
    n1: no answer of `aws ec2 describe-instance-topology`: invalid type: integer `1`, expected a sequence at line 1 column 15
    p[1-2]: it names none of the nodes; give their instances in `topology.instances`
    i-[1-5]: it does not name i-[4-5]
    i-[1-5]: it is one page of several; write them all, without `--no-paginate`
    p1 and p2 are both instance i-1
    ");
}
