//! What kubectl prints of nodes, and the inventories that come of it.

use super::*;
use config::inventory::{Inventory, ReachBy};
use std::path::Path;

fn instances() -> Instances {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Instances::load(&home).expect("the profiles that ship")
}

fn request() -> Request {
    Request {
        namespace: "bench".to_owned(),
        image: "registry.example/nccl:1".to_owned(),
        claim: "fsx".to_owned(),
        ..Request::default()
    }
}

/// A node as kubectl 1.32 prints it, with what differs from a healthy p5.
struct NodeLine {
    name: &'static str,
    labels: &'static str,
    unschedulable: &'static str,
    taints: &'static str,
    allocatable: &'static str,
    conditions: &'static str,
}

const HEALTHY: NodeLine = NodeLine {
    name: "",
    labels: "",
    unschedulable: "",
    taints: r#"[{"effect":"NoSchedule","key":"nvidia.com/gpu","value":"true"}]"#,
    allocatable: r#"{"cpu":"190","hugepages-2Mi":"10Gi","nvidia.com/gpu":"8","vpc.amazonaws.com/efa":"32"}"#,
    conditions: r#"[{"status":"False","type":"MemoryPressure"},{"message":"kubelet is posting ready status","reason":"KubeletReady","status":"True","type":"Ready"}]"#,
};

impl NodeLine {
    fn line(&self) -> String {
        let comma = if self.labels.is_empty() { "" } else { "," };
        let labels = format!(
            r#"{{"kubernetes.io/hostname":"{0}","node.kubernetes.io/instance-type":"p5.48xlarge"{comma}{1}}}"#,
            self.name, self.labels
        );
        let NodeLine { name, unschedulable, taints, allocatable, conditions, .. } = self;
        format!("{name}.ec2.internal\t{labels}\t{unschedulable}\t{taints}\t{allocatable}\t{conditions}\n")
    }
}

fn found(lines: &[NodeLine], request: &Request) -> Result<Discovered, Failure> {
    let text: String = lines.iter().map(NodeLine::line).collect();
    selection::select(nodes::read(text.as_bytes()).expect("read"), request, &instances())
}

const LAYERS: [&str; 3] = [
    r#""topology.kubernetes.io/zone":"us-east-1a","topology.k8s.aws/network-node-layer-3":"nn-1""#,
    r#""topology.kubernetes.io/zone":"us-east-1a","topology.k8s.aws/network-node-layer-3":"nn-2""#,
    r#""topology.kubernetes.io/zone":"us-east-1a""#,
];

#[test]
fn an_inventory_is_written_from_the_nodes_and_is_read_as_it_is() {
    let lines = [
        NodeLine { name: "ip-10-0-1-11", labels: LAYERS[0], ..HEALTHY },
        NodeLine { name: "ip-10-0-1-12", labels: LAYERS[0], ..HEALTHY },
        NodeLine { name: "ip-10-0-1-13", labels: LAYERS[1], ..HEALTHY },
        NodeLine { name: "ip-10-0-1-14", labels: LAYERS[1], unschedulable: "true", ..HEALTHY },
    ];
    let request = Request { context: Some("prod".to_owned()), ..request() };
    let found = found(&lines, &request).expect("found");
    let found = Discovered { cluster: Some("https://a.example".to_owned()), ..found };
    let text = render(&found, &request, "/fsx/harness", "2026-11-25T00:00:00Z");
    insta::assert_snapshot!(text);
    let inventory = Inventory::read(&text, "inventory/x.toml", &instances()).expect("an inventory");
    assert_eq!(inventory.nodes, ["ip-10-0-1-11", "ip-10-0-1-12", "ip-10-0-1-13"]);
    let ReachBy::Kubernetes(pods) = inventory.reach else { panic!("{:?}", inventory.reach) };
    assert_eq!(pods.cluster.as_deref(), Some("https://a.example"));
    assert_eq!(pods.tolerations.len(), 1, "of the taint that all of them have");
}

#[test]
fn each_node_that_takes_no_pods_is_left_out_with_its_own_reason() {
    let lines = [
        NodeLine { name: "a1", ..HEALTHY },
        NodeLine {
            name: "a2",
            conditions: r#"[{"message":"Kubelet stopped posting node status.","reason":"NodeStatusUnknown","status":"Unknown","type":"Ready"}]"#,
            ..HEALTHY
        },
        NodeLine { name: "a3", conditions: "", ..HEALTHY },
        NodeLine { name: "a4", unschedulable: "true", ..HEALTHY },
        NodeLine { name: "a5", taints: r#"[{"effect":"NoExecute","key":"team","value":"b"}]"#, ..HEALTHY },
        NodeLine { name: "a6", taints: r#"[{"effect":"PreferNoSchedule","key":"team"}]"#, ..HEALTHY },
        NodeLine {
            name: "a7",
            labels: r#""sagemaker.amazonaws.com/node-health-status":"UnschedulablePendingReplacement""#,
            ..HEALTHY
        },
        NodeLine {
            name: "a8",
            labels: r#""sagemaker.amazonaws.com/deep-health-check-status":"InProgress""#,
            ..HEALTHY
        },
        NodeLine {
            name: "a9",
            labels: r#""sagemaker.amazonaws.com/node-health-status":"Schedulable","sagemaker.amazonaws.com/deep-health-check-status":"Passed""#,
            ..HEALTHY
        },
        NodeLine {
            name: "b1",
            allocatable: r#"{"hugepages-2Mi":"10Gi","nvidia.com/gpu":"7","vpc.amazonaws.com/efa":"32"}"#,
            ..HEALTHY
        },
        NodeLine {
            name: "b2",
            allocatable: r#"{"hugepages-2Mi":"10Gi","nvidia.com/gpu":"8","vpc.amazonaws.com/efa":"31"}"#,
            ..HEALTHY
        },
        NodeLine {
            name: "b3",
            allocatable: r#"{"hugepages-2Mi":"0","nvidia.com/gpu":"8","vpc.amazonaws.com/efa":"32"}"#,
            ..HEALTHY
        },
        NodeLine { name: "b4", allocatable: r#"{"cpu":"4"}"#, ..HEALTHY },
    ];
    let found = found(&lines, &request()).expect("found");
    assert_eq!(found.nodes, ["a1", "a6", "a9"]);
    let why: Vec<String> = found
        .left_out
        .iter()
        .map(|left| format!("{}: {}", left.node.replace(".ec2.internal", ""), left.why))
        .collect();
    insta::assert_snapshot!(why.join("\n"));
}

#[test]
fn a_node_that_is_about_to_go_is_left_out_by_who_takes_it_away() {
    let lines = [
        NodeLine { name: "a1", ..HEALTHY },
        NodeLine {
            name: "a2",
            taints: r#"[{"effect":"NoSchedule","key":"karpenter.sh/disrupted"}]"#,
            ..HEALTHY
        },
        NodeLine {
            name: "a3",
            conditions: r#"[{"status":"True","type":"Ready"},{"message":"Preempt Scheduled: soon","reason":"VMEventScheduled","status":"True","type":"VMEventScheduled"}]"#,
            ..HEALTHY
        },
    ];
    // No toleration makes it one that stays.
    let request = Request { tolerations: vec!["karpenter.sh/disrupted".to_owned()], ..request() };
    let found = found(&lines, &request).expect("found");
    assert_eq!(found.nodes, ["a1"]);
    let why: Vec<&str> = found.left_out.iter().map(|left| left.why.as_str()).collect();
    let expected = [
        "leaving: Karpenter removes it: taint karpenter.sh/disrupted",
        "leaving: Azure takes it away: VMEventScheduled: Preempt Scheduled: soon",
    ];
    assert_eq!(why, expected);
}

#[test]
fn a_taint_that_pods_may_bear_keeps_no_node_out() {
    let lines =
        [NodeLine { name: "a1", taints: r#"[{"effect":"NoExecute","key":"team","value":"b"}]"#, ..HEALTHY }];
    let Err(Failure::NoUsableNode(left)) = found(&lines, &request()) else {
        panic!("the taint keeps pods away")
    };
    assert_eq!(left.len(), 1);
    let request = Request { tolerations: vec!["team".to_owned()], ..request() };
    let found = found(&lines, &request).expect("found");
    let text = render(&found, &request, "/fsx", "now");
    assert!(text.contains(r#"tolerations = [{ key = "team", effect = "NoExecute" }]"#), "{text}");
}

#[test]
fn without_efa_or_huge_pages_pods_ask_for_none_and_a_note_says_so() {
    let none = r#"{"hugepages-2Mi":"0","nvidia.com/gpu":"8"}"#;
    let found_none =
        found(&[NodeLine { name: "a1", allocatable: none, ..HEALTHY }], &request()).expect("found");
    let text = render(&found_none, &request(), "/fsx", "now");
    assert!(text.contains("efa = 0 # no node offers EFA devices\n"), "{text}");
    assert!(found_none.notes[0].contains("NCCL will talk TCP"), "{:?}", found_none.notes);
    let small = r#"{"hugepages-2Mi":"2Gi","nvidia.com/gpu":"8","vpc.amazonaws.com/efa":"32"}"#;
    let found_small =
        found(&[NodeLine { name: "a1", allocatable: small, ..HEALTHY }], &request()).expect("found");
    let text = render(&found_small, &request(), "/fsx", "now");
    assert!(text.contains("hugepages = false # no node offers them\n"), "{text}");
    assert_eq!(found_small.notes.len(), 1);
}

#[test]
fn what_the_namespace_wants_of_pods_is_written_and_read_as_it_is() {
    let allocatable = r#"{"cpu":"190","memory":"2061359464Ki","nvidia.com/gpu":"8"}"#;
    let smaller = r#"{"cpu":"191450m","memory":"1900Gi","nvidia.com/gpu":"8"}"#;
    let lines = [
        NodeLine { name: "a1", allocatable, ..HEALTHY },
        NodeLine { name: "a2", allocatable: smaller, ..HEALTHY },
    ];
    let found = found(&lines, &request()).expect("found");
    assert_eq!((found.room.cpu, found.room.memory), (Some(190_000), Some((1900 << 30) * 1000)));
    let wanted = |key, value: Option<&str>| limits::Wanted {
        key,
        value: value.map(str::to_owned),
        why: "LimitRange small gives a pod that asks for none 1".to_owned(),
    };
    let found = Discovered { wanted: vec![wanted("cpu", None), wanted("memory", Some("\"8GiB\""))], ..found };
    let text = render(&found, &request(), "/fsx", "now");
    assert!(text.contains("\nmemory = \"8GiB\" # LimitRange small gives "), "{text}");
    let inventory = Inventory::read(&text, "inventory/x.toml", &instances()).expect("an inventory");
    let ReachBy::Kubernetes(pods) = inventory.reach else { panic!("{:?}", inventory.reach) };
    assert_eq!((pods.cpu, pods.memory), (None, Some(8 << 30)));
}

#[test]
fn a_priority_class_is_written_and_read_as_it_is() {
    let request = Request { priority_class: Some("checks".to_owned()), ..request() };
    let found = found(&[NodeLine { name: "a1", ..HEALTHY }], &request).expect("found");
    let text = render(&found, &request, "/fsx", "now");
    assert!(text.contains("\npriority_class = \"checks\"\n"), "{text}");
    let inventory = Inventory::read(&text, "inventory/x.toml", &instances()).expect("an inventory");
    let ReachBy::Kubernetes(pods) = inventory.reach else { panic!("{:?}", inventory.reach) };
    assert_eq!(pods.priority_class.as_deref(), Some("checks"));
}

#[test]
fn two_nodes_of_one_hostname_make_no_inventory() {
    let lines = [NodeLine { name: "a1", ..HEALTHY }, NodeLine { name: "a1", ..HEALTHY }];
    let Err(Failure::NoAnswer(why)) = found(&lines, &request()) else { panic!("they are one to a pod") };
    assert_eq!(why, "2 nodes have the label `kubernetes.io/hostname=a1`, and pods are pinned by it");
}

#[test]
fn a_label_value_of_different_sets_of_nodes_names_no_group() {
    let lines = [
        NodeLine {
            name: "a1",
            labels: r#""eks.amazonaws.com/nodegroup":"x","karpenter.sh/nodepool":"y""#,
            ..HEALTHY
        },
        NodeLine { name: "a2", labels: r#""eks.amazonaws.com/nodegroup":"x""#, ..HEALTHY },
        NodeLine { name: "a3", labels: r#""karpenter.sh/nodepool":"x""#, ..HEALTHY },
    ];
    let found = found(&lines, &request()).expect("found");
    assert_eq!(found.groups.keys().collect::<Vec<_>>(), ["y"]);
    assert_eq!(found.notes.len(), 1, "{:?}", found.notes);
}

#[test]
fn what_is_no_list_of_nodes_is_refused() {
    let whole = NodeLine { name: "a1", ..HEALTHY }.line();
    for cut in 1..whole.len() - 1 {
        if whole.is_char_boundary(cut) {
            // A cut list must not become a shorter one with other facts.
            let read = nodes::read(&whole.as_bytes()[..cut]);
            assert!(read.is_err() || whole[..cut].ends_with('\t'), "cut at {cut}: {read:?}");
        }
    }
    for bad in
        ["a\tb\n", "\t{}\t\t\t\t\n", "a\t[]\t\t\t\t\n", "a\t{}\t\t{}\t\t\n", "a\t{}\t\t\t{\"x\":1}\t\n"]
    {
        assert!(nodes::read(bad.as_bytes()).is_err(), "{bad:?}");
    }
    assert!(nodes::read(b"a\xff\t\t\t\t\t\n").is_err());
    // A node without conditions is read, and is not ready.
    let bare = nodes::read(b"a\t{}\t\t\t\t\n").expect("read");
    assert_eq!(bare[0].not_ready().as_deref(), Some("it has no condition `Ready`"));
}

#[test]
fn quantities_are_those_of_kubernetes() {
    for (quantity, expected) in [
        ("8", Some(8)),
        ("5Gi", Some(5 << 30)),
        ("5120Mi", Some(5 << 30)),
        ("10k", Some(10_000)),
        ("1500m", None),
        ("", None),
        ("99999999999999999999", None),
        ("20000000000Gi", None),
    ] {
        let line = format!("a\t{{}}\t\t\t{{\"nvidia.com/gpu\":\"{quantity}\"}}\t\n");
        let node = nodes::read(line.as_bytes()).expect("read");
        assert_eq!(node[0].allocatable("nvidia.com/gpu"), expected, "{quantity}");
    }
}
