//! The probe on the simulated cluster, by both launchers: facts, nodes that cannot pass, and nodes that differ.

use cluster::probe::*;
use cluster::run::Clock;
use config::facts::{FACTS, against_golden, against_majority};
use config::inventory::{Instances, Inventory};
use model::artefact::{Probe, ProbedNode, Value};
use model::fault::NodeFault;
use sim::SimulatedReach;
use std::collections::BTreeMap;
use std::path::Path;

fn inventory(via: &str, more: &str) -> Inventory {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a root");
    let instances = Instances::load(home).expect("sound instances");
    let text = format!(
        "kind = \"simulated\"\ninstance = \"sim-p5\"\nnodes = \"p5-[001-004]\"\nreach = {{ via = \"{via}\" }}\n{more}"
    );
    Inventory::read(&text, "inventory/x.toml", &instances).expect("good")
}

fn probed(via: &str, more: &str, faults: &[&str], allow_busy: bool) -> Probe {
    let inventory = inventory(via, more);
    let faults = faults.iter().map(|text| NodeFault::parse(text).expect("a fault")).collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let reach = SimulatedReach::new(&inventory, 3, faults, BTreeMap::new()).expect("a cluster");
        let clock = Clock::starting_at(SimulatedReach::epoch_unix_s(3) as f64);
        let nodes = &inventory.nodes;
        let probing = Probing {
            inventory: &inventory,
            nodes,
            reach: &reach,
            clock,
            fanout: 8,
            name: "probe",
            allow_busy,
        };
        let made = make(&probing).await.expect("not interrupted");
        assert_eq!(reach.violations(), [] as [String; 0]);
        made
    })
}

fn node<'a>(probe: &'a Probe, name: &str) -> &'a ProbedNode {
    probe.nodes.iter().find(|node| node.node == name).expect("the node")
}

#[test]
fn healthy_nodes_report_all_facts_and_are_fit_and_alike() {
    for via in ["slurm", "ssh"] {
        let made = probed(via, "", &[], false);
        assert!(made.simulated);
        assert_eq!(made.nodes.len(), 4);
        for node in &made.nodes {
            assert_eq!(
                (&node.unprobed, node.unfit.as_slice(), node.notes.as_slice()),
                (&None, &[][..], &[][..])
            );
            assert_eq!(node.facts["gpus"], Value::Number(8));
            assert_eq!(node.facts["nccl"], Value::Text("2.30.7".into()));
            assert!(matches!(&node.facts["nics"], Value::Names(nics) if nics.len() == 32));
            assert_eq!(node.unknown.keys().collect::<Vec<_>>(), ["instance"], "{via}");
            assert_eq!(node.fingerprint, made.nodes[0].fingerprint);
            // Over ssh the question that follows on the same connection takes one round trip of 40 ms.
            let offset = node.clock_offset.expect("known");
            assert!(offset.at_most_ms - offset.at_least_ms <= 40.001, "{via}: {offset:?}");
            assert!(offset.at_least_ms <= 2.0 && offset.at_most_ms >= -2.0, "{offset:?}");
        }
        let compared = against_majority(&made);
        assert_eq!((compared.compared, compared.differences.len(), compared.ties.len()), (4, 0, 0));
    }
}

#[test]
fn each_fault_that_a_probe_sees_makes_its_node_unfit_and_no_other() {
    for (fault, why) in [
        ("gpu-missing@3", "nvidia-smi lists 7 GPUs, expected 8 (`sim-p5`)"),
        ("nic-missing@rdmap113s0", "NICs: 31 of 32, missing: rdmap113s0"),
        ("nic-dead@rdmap113s0", "NICs whose link is not active: rdmap113s0 1: DOWN"),
        ("disk-full", "shared folder `/fsx/harness`: 0 MiB free, limit 256 MiB"),
        ("gpu-busy@3", "busy: its GPUs are in use by "),
    ] {
        for via in ["slurm", "ssh"] {
            let made = probed(via, "", &[&format!("p5-002:{fault}")], false);
            let unfit = &node(&made, "p5-002").unfit;
            assert!(unfit.len() == 1 && unfit[0].starts_with(why), "{fault} {via}: {unfit:?}");
            assert!(made.nodes.iter().all(|node| node.node == "p5-002" || node.unfit.is_empty()), "{fault}");
        }
    }
}

#[test]
fn a_folder_that_is_full_for_all_is_no_nodes_fault_however_an_older_version_worded_it() {
    const FULL: [&str; 4] = ["p5-001:disk-full", "p5-002:disk-full", "p5-003:disk-full", "p5-004:disk-full"];
    let inventory = inventory("ssh", "");
    let mut full = probed("ssh", "", &FULL, false);
    let by_folder = |probe: &Probe, at: usize| is_external(&probe.nodes[at], probe, &inventory);
    assert!((0..4).all(|at| by_folder(&full, at)), "{:?}", full.nodes[0].unfit);
    full.nodes[0].unfit = vec!["room in the shared folder `/fsx/harness`, in MiB: 0".into()];
    full.nodes[1].unfit.push("7 GPUs, expected 8 (`sim-p5`)".into());
    assert!(by_folder(&full, 0) && !by_folder(&full, 1));
}

#[test]
fn a_job_on_its_gpus_is_no_fault_of_the_node_and_a_missing_gpu_beside_it_is() {
    let inventory = inventory("ssh", "");
    let made = probed("ssh", "", &["p5-002:gpu-busy@3", "p5-003:gpu-busy@3", "p5-003:gpu-missing@1"], false);
    let is_external = |name: &str| is_external(node(&made, name), &made, &inventory);
    assert!(is_external("p5-002") && !is_external("p5-003") && !is_external("p5-001"));
}

#[test]
fn a_node_that_somebody_takes_away_is_unfit_through_no_fault_of_its_own() {
    let inventory = inventory("ssh", "");
    let mut made = probed("ssh", "", &[], false);
    made.nodes[1].unfit = vec!["leaving: Karpenter removes it: taint karpenter.sh/disrupted".into()];
    assert!(is_external(&made.nodes[1], &made, &inventory));
}

#[test]
fn busy_nodes_are_fit_where_that_is_allowed() {
    let made = probed("ssh", "", &["p5-002:gpu-busy@3"], true);
    let busy = node(&made, "p5-002");
    assert!(busy.unfit.is_empty() && busy.notes[0].starts_with("busy"), "{busy:?}");
}

#[test]
fn harmless_oddities_are_notes_unless_the_inventory_requires_otherwise() {
    let faults = ["p5-002:clock-offset=5000", "p5-003:nsys-old", "p5-004:driver-differs"];
    let made = probed("ssh", "nsys_version = \"2025.3\"", &faults, false);
    assert!(made.nodes.iter().all(|node| node.unfit.is_empty()));
    assert!(node(&made, "p5-002").notes[0].ends_with(" ms ahead of this machine's"));
    assert_eq!(
        node(&made, "p5-003").notes,
        ["nsys 2023.2.1 is older than 2025.3; its ranks run without nsys"]
    );
    let asked = "[probe]\nclock_offset_ms = { at_most = 100 }\nnsys = { at_least = \"2024.4\" }\n\
                 driver = { at_least = \"570\" }\ninstance = { equals = \"p5.48xlarge\" }";
    let made = probed("ssh", asked, &faults, false);
    let why = |name: &str| node(&made, name).unfit.join("; ");
    assert!(why("p5-002").starts_with("clock is ahead by 4"), "{}", why("p5-002"));
    assert!(why("p5-002").contains("limit 100 ms"), "{}", why("p5-002"));
    assert!(why("p5-003").contains("`nsys` must be at least 2024.4, but is 2023.2.1"), "{}", why("p5-003"));
    assert!(why("p5-004").contains("`driver` must be at least 570, but is 550.163.01-SIMULATED"));
    // A fact that was asked for and is unknown makes a node unfit.
    let unknown = "`instance` must be p5.48xlarge, but is unknown: a simulated node has no firmware";
    assert!(made.nodes.iter().all(|node| node.unfit.iter().any(|why| why == unknown)));
}

#[test]
fn a_silent_node_is_not_reported_as_bad() {
    let made = probed("ssh", "", &["p5-002:host-unreachable"], false);
    let silent = node(&made, "p5-002");
    assert!(silent.unfit.is_empty() && silent.fingerprint.is_none() && silent.facts.is_empty());
    assert_eq!(silent.unprobed.as_deref(), Some("p5-002 cannot be reached: connection timed out"));
    let compared = against_majority(&made);
    assert_eq!((compared.compared, compared.unprobed.len(), compared.differences.len()), (3, 1, 0));
    let text = table(&made);
    assert!(text.contains("4 nodes: 3 fit, 0 cannot pass, 1 not probed"), "{text}");
}

#[test]
fn nodes_unlike_the_majority_are_named_with_what_differs() {
    let faults = ["p5-002:driver-differs", "p5-003:nic-missing@rdmap113s0", "p5-003:nsys-missing"];
    let compared = against_majority(&probed("slurm", "", &faults, false));
    let differing: Vec<String> =
        compared.differences.iter().map(|one| format!("{} {} {}", one.node, one.fact, one.value)).collect();
    assert_eq!(
        differing,
        [
            "p5-002 driver 550.163.01-SIMULATED",
            "p5-003 nics without rdmap113s0",
            "p5-003 nsys unknown: no such program: nsys",
            "p5-003 nsys_path unknown: nothing on the node reported it",
            "p5-003 nsys_plugins unknown: no nsys",
        ]
    );
    assert_eq!(compared.ties, []);
    let text = differences(&compared);
    assert!(text.contains("p5-002: driver 550.163.01-SIMULATED, expected 570.133.20-SIMULATED\n"), "{text}");
    assert!(text.contains("4 nodes compared with majority: 2 differ, 0 ties\nSIMULATED"), "{text}");
}

#[test]
fn a_value_without_a_majority_is_a_tie_and_no_node_is_named() {
    let compared =
        against_majority(&probed("slurm", "", &["p5-001:driver-differs", "p5-002:driver-differs"], false));
    assert_eq!(compared.differences, []);
    assert_eq!(compared.ties.len(), 1);
    let text = differences(&compared);
    let wanted = "tie: driver: 550.163.01-SIMULATED on p5-[001-002]; 570.133.20-SIMULATED on p5-[003-004]\n";
    assert!(text.starts_with(wanted), "{text}");
}

#[test]
fn a_golden_probe_says_what_nodes_must_be_like_even_where_all_are_alike() {
    let golden = probed("slurm", "", &[], false);
    let all = ["p5-001", "p5-002", "p5-003", "p5-004"].map(|node| format!("{node}:driver-differs"));
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let made = probed("slurm", "", &all, false);
    assert_eq!(against_majority(&made).differences, []);
    let compared = against_golden(&made, &golden, "golden.json").expect("a golden one");
    assert_eq!(compared.differences.len(), 4);
    assert!(compared.differences.iter().all(|one| one.expected == "570.133.20-SIMULATED"));
    let tied = probed("slurm", "", &all[..2], false);
    let why = against_golden(&made, &tied, "x").expect_err("no golden one");
    assert!(why.contains("its nodes differ in `driver`, and no value has a majority"), "{why}");
    let mut other = golden.clone();
    other.instance = "sim-p4de".into();
    assert!(
        against_golden(&made, &other, "x").is_err_and(|why| why.contains("it is for instance `sim-p4de`"))
    );
    other = golden.clone();
    other.nodes.clear();
    assert!(against_golden(&made, &other, "x").is_err());
    let mut real = made.clone();
    real.simulated = false;
    assert!(against_golden(&real, &golden, "x").is_err_and(|why| why.contains("simulated")));
}

#[test]
fn one_seed_gives_the_same_probe() {
    let once = |via| serde_json::to_string(&probed(via, "", &["p5-002:gpu-missing@1"], false)).expect("JSON");
    assert_eq!(once("slurm"), once("slurm"));
    let back: Probe = serde_json::from_str(&once("ssh")).expect("read back");
    assert_eq!(serde_json::to_string(&back).expect("JSON"), once("ssh"));
}

#[test]
fn a_truncated_or_odd_answer_is_refused() {
    let complete = "motd\nharness-probe\tfact\tcuda\t12.8\nharness-probe\tend\n";
    let read = answer::read(complete).expect("complete");
    assert_eq!(read.facts["cuda"], Value::Text("12.8".into()));
    // Every fact has a value, or a reason why not.
    // Seven are read of the API server, not on the node.
    assert_eq!(read.facts.len() + read.unreported.len(), FACTS.len() - 7);
    let of_server =
        answer::read("harness-probe\tfact\tnode_ready\tTrue\nharness-probe\tend\n").expect("complete");
    assert!(!of_server.facts.contains_key("node_ready"), "a node cannot vouch for what the server reports");
    for cut in 0..complete.len() - 1 {
        assert!(answer::read(&complete[..cut]).is_err() || cut > complete.len() - 2, "{cut}");
    }
    assert!(answer::read("").is_err());
    assert!(answer::read("harness-probe\tnonsense\tx\ty\nharness-probe\tend\n").is_err());
    let odd = answer::read(
        "harness-probe\tfact\tmemlock\t-1\nharness-probe\tfact\tdriver\tnew\nharness-probe\tfact\tcuda\t\n\
         harness-probe\tbad\tgpus\tnvidia-smi ended with 9\nharness-probe\tend\n",
    )
    .expect("whole");
    for fact in ["memlock", "driver", "cuda", "gpus", "ecc_errors"] {
        assert!(!odd.facts.contains_key(fact), "{fact}");
    }
    assert_eq!(odd.unreported["memlock"], "not a whole number: `-1`");
    assert_eq!(odd.unreported["ecc"], "nvidia-smi ended with 9");
    assert_eq!(odd.broken["gpus"], "nvidia-smi ended with 9");
    let host = |name: &str| {
        answer::read(&format!("harness-probe\thost\tname\t{name}\nharness-probe\tend\n"))
            .expect("whole")
            .host_name
    };
    assert_eq!(host("ip-10-0-3-7.ec2.internal").as_deref(), Some("ip-10-0-3-7.ec2.internal"));
    for none in ["", "(none)", "a b", &"a".repeat(300)] {
        assert_eq!(host(none), None, "{none}");
    }
}

#[test]
fn missing_gpu_values_are_unknown_and_never_0() {
    let of = |rows: &[&str]| {
        let items: String = rows.iter().map(|row| format!("harness-probe\titem\tgpus\t{row}\n")).collect();
        answer::read(&format!("harness-probe\tlist\tgpus\n{items}harness-probe\tend\n")).expect("whole")
    };
    let read = of(&[
        "0, NVIDIA H100, 570.1, Enabled, 0, 1980, 2619, 0x0000000000000001",
        "1, NVIDIA H100, 570.1, Enabled, 3, 1980, 2619, 0x0000000000000040",
    ]);
    assert_eq!(read.facts["ecc_errors"], Value::Number(3));
    assert_eq!(read.facts["gpu_throttled"], Value::Names(vec!["gpu1 0x40".into()]));
    assert_eq!(read.facts["gpu_clocks"], Value::Text("1980/2619".into()));
    let read = of(&["0, NVIDIA H100, 570.1, [N/A], [N/A], [Not Supported], 2619, [N/A]"]);
    assert_eq!(read.facts["driver"], Value::Text("570.1".into()));
    for fact in ["ecc", "ecc_errors", "gpu_clocks", "gpu_throttled"] {
        assert!(!read.facts.contains_key(fact) && read.unreported.contains_key(fact), "{fact}");
    }
    let none = of(&[]);
    assert_eq!(none.facts["gpus"], Value::Number(0));
    assert!(!none.facts.contains_key("gpu") && !none.facts.contains_key("ecc_errors"));
    // One GPU that answers nothing does not hide what the others answer, nor does it answer for them.
    let healthy = |gpu: u32| format!("{gpu}, NVIDIA H100, 570.1, Enabled, 0, 1980, 2619, 0x0000000000000001");
    let lost = "3, NVIDIA H100, 570.1, Enabled, [GPU requires reset], 1980, 2619, [GPU requires reset]";
    let read = of(&[&healthy(0), lost, "6, NVIDIA H100, 570.1, Enabled, 7, 1980, 2619, 0x0000000000000040"]);
    assert_eq!(read.facts["ecc_errors"], Value::Number(7));
    assert_eq!(read.facts["gpu_throttled"], Value::Names(vec!["gpu6 0x40".into()]));
    let fault = Value::Names(vec!["gpu3 reports `[GPU requires reset]`".into()]);
    assert_eq!(read.facts["gpu_errors"], fault);
    let read = of(&[&healthy(0), lost]);
    assert_eq!(read.facts["gpu_errors"], fault);
    assert!(!read.facts.contains_key("ecc_errors") && !read.facts.contains_key("gpu_throttled"));
    let read = of(&[&healthy(0), "1, NVIDIA H100, 570.1, [N/A], [N/A], 1980, 2619, 0x0000000000000001"]);
    assert_eq!(read.facts["ecc"], Value::Text("Enabled and not reported".into()));
    assert!(!read.facts.contains_key("ecc_errors") && !read.facts.contains_key("gpu_errors"));
    let short = of(&["0, NVIDIA H100, 570.1"]);
    assert_eq!((&short.facts["gpus"], short.facts.contains_key("ecc")), (&Value::Number(1), false));
}

#[test]
fn a_node_is_compared_with_the_profile_of_its_instance() {
    let weighed = |facts: &[(&str, Value)]| {
        let mut node = ProbedNode { node: "p5-001".into(), ..ProbedNode::default() };
        node.facts.extend(facts.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        weigh(&mut node, [], &inventory("ssh", ""), false);
        (node.unfit, node.notes)
    };
    let text = |text: &str| Value::Text(text.into());
    let names = |names: &[&str]| Value::Names(names.iter().map(|name| (*name).to_owned()).collect());
    let nics = inventory("ssh", "").instance.nics;
    assert_eq!(weighed(&[]), (Vec::new(), Vec::new()), "unknown facts count against no node");
    let (unfit, _) = weighed(&[("gpus", Value::Number(0)), ("nics", names(&[]))]);
    assert_eq!(unfit[0], "nvidia-smi lists 0 GPUs, expected 8 (`sim-p5`)");
    assert!(
        unfit[1]
            .starts_with("NICs: 0 of 32, missing: rdmap79s0, rdmap80s0, rdmap81s0, rdmap82s0 and 28 more")
    );
    let (unfit, _) = weighed(&[("gpu", text("NVIDIA A100-SXM4-80GB and NVIDIA H100 80GB HBM3"))]);
    assert!(unfit[0].ends_with(", expected H100 (`sim-p5`)"), "{unfit:?}");
    let (unfit, _) = weighed(&[("nics", names(&["mlx5_0", "mlx5_1"]))]);
    assert!(unfit[0].contains("; other devices: mlx5_0, mlx5_1"), "{unfit:?}");
    let mut more = nics.clone();
    more.push("ens5".into());
    let (unfit, notes) = weighed(&[("nics", Value::Names(more)), ("memlock", Value::Number(8 << 20))]);
    assert_eq!(unfit, [] as [String; 0]);
    assert_eq!(notes[0], "NICs beyond those of `sim-p5`: ens5");
    assert!(
        notes[1] == "a process may lock 8 MiB of memory, transfers between nodes need 16384 MiB",
        "{notes:?}"
    );
    let (unfit, notes) = weighed(&[
        ("shared", text("not writable: /fsx")),
        ("xid", names(&["NVRM: Xid 79"])),
        ("ecc_errors", Value::Number(2)),
        ("gpu_throttled", names(&["gpu3 0x40"])),
        ("instance", text("p4d.24xlarge")),
    ]);
    assert_eq!(unfit, ["shared folder `/fsx/harness`: not writable: /fsx"]);
    assert_eq!(notes.len(), 4, "{notes:?}");
    assert_eq!(weighed(&[("instance", text("p5.48xlarge"))]), (Vec::new(), Vec::new()));
    let environment = names(&["NCCL_DEBUG=INFO", "NCCL_DEBUG_TIME=1", "FI_PROVIDR=efa"]);
    let (unfit, notes) = weighed(&[("environment", environment), ("nccl", text("2.27.7"))]);
    assert!(unfit.is_empty() && notes.len() == 2, "{notes:?}");
    assert!(notes[0].starts_with("environment: `NCCL_DEBUG_TIME`"), "{notes:?}");
    assert!(
        notes[1].starts_with("environment: `FI_PROVIDR`") && notes[1].contains("FI_PROVIDER"),
        "{notes:?}"
    );
}

#[test]
fn nodes_are_asked_in_the_environment_of_their_jobs_without_its_secrets() {
    let more = "[environment]\nNCCL_DEBUG = \"INFO\"\nNCCL_COMM_ID = \"env:PLANTED\"\nLD_LIBRARY_PATH = \"/opt/it's\"\n";
    let ask = ProbeRequest::for_node(&inventory("ssh", more), "p5-001");
    assert_eq!(ask.environment.keys().collect::<Vec<_>>(), ["LD_LIBRARY_PATH", "NCCL_DEBUG"]);
    assert!(!ask.argv().iter().any(|word| word.contains("PLANTED")));
    for via in ["slurm", "ssh"] {
        assert!(probed(via, more, &[], false).nodes.iter().all(|node| node.unfit.is_empty()), "{via}");
    }
}

#[test]
fn a_node_without_the_plugin_cannot_pass_and_shows_no_version_of_another_library() {
    let made = probed("slurm", "[world]\nofi_plugin = false\n", &[], false);
    for node in &made.nodes {
        assert!(!node.facts.contains_key("ofi_nccl") && node.facts.contains_key("libfabric"), "{node:?}");
        let why = "no aws-ofi-nccl plugin, so NCCL uses TCP: no libnccl-net with a version";
        assert_eq!(node.unfit, [why]);
    }
}

#[test]
fn devices_of_other_makers_are_no_nics_and_their_links_do_not_matter() {
    let made = probed("ssh", "[world]\nother_rdma_devices = 2\n", &[], false);
    for node in &made.nodes {
        assert_eq!((node.unfit.as_slice(), node.notes.as_slice()), (&[][..], &[][..]));
        assert!(matches!(&node.facts["nics"], Value::Names(nics) if nics.len() == 32));
        let others = Value::Names(vec!["ibp115s0f0".into(), "ibp116s0f0".into()]);
        assert_eq!(node.facts["other_rdma_devices"], others);
    }
}

#[test]
fn the_tools_of_flows_are_listed_with_what_they_can_do() {
    let tools = |world: &str| {
        let made = probed("slurm", &format!("[world]\n{world}\n"), &[], false);
        made.nodes[0].facts["flow_tools"].to_string()
    };
    assert!(tools("").contains("fi_rma_bw:cuda") && tools("").contains("ib_write_bw:srd"), "{}", tools(""));
    assert!(!tools("flow_tools_cuda = false").contains("cuda"));
    assert!(!tools("flow_tools_srd = false").contains("ib_write_bw:srd"));
    assert!(!tools("flow_tools = false").contains("fi_rma_bw"));
}

#[test]
fn what_every_p_instance_has_and_a_node_does_not_report_keeps_it_from_passing() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a root");
    let instances = Instances::load(home).expect("sound instances");
    let weighed_with = |product: &str, more: &str, plugin: &str| {
        let text = format!(
            "kind = \"real\"\ninstance = \"p5\"\nnodes = \"p5-[001-004]\"\nreach = {{ via = \"slurm\" }}\n\
             paths = {{ shared = \"/fsx\" }}\n{more}"
        );
        let inventory = Inventory::read(&text, "inventory/x.toml", &instances).expect("good");
        let mut node = ProbedNode { node: "p5-001".into(), ..ProbedNode::default() };
        node.facts.insert("instance".into(), Value::Text(product.into()));
        for (fact, why) in
            [("gpus", "no nvidia-smi on PATH"), ("nics", "no such folder"), ("ofi_nccl", plugin)]
        {
            node.unknown.insert(fact.into(), why.into());
        }
        weigh(&mut node, [], &inventory, false);
        (node.unfit, node.notes)
    };
    let weighed = |product: &str, more: &str| weighed_with(product, more, "no libnccl-net");
    let lines = [
        "no GPU can be read: no nvidia-smi on PATH",
        "no EFA device can be read: no such folder",
        "no aws-ofi-nccl plugin, so NCCL uses TCP: no libnccl-net",
    ];
    assert_eq!(weighed("p5.48xlarge", "").0, lines);
    // One that was built from a checkout has no number.
    let built = "aws-ofi-nccl git-6e504db of /opt/amazon/ofi-nccl/lib/libnccl-net.so";
    assert_eq!(weighed_with("p5.48xlarge", "", built).0, lines[..2]);
    // A container brings its own plugin.
    assert_eq!(weighed("p5.48xlarge", "container = { image = \"x.sqsh\" }\n").0, lines[..2]);
    // A machine that says that it is something else is odd, and fit.
    let (unfit, notes) = weighed("Standard PC", "");
    assert_eq!((unfit.as_slice(), &notes[..3]), (&[][..], &lines.map(str::to_owned)[..]));
}

#[test]
fn a_golden_file_of_an_older_harness_asks_nothing_of_facts_that_it_does_not_know() {
    let mut golden = probed("slurm", "", &[], false);
    for node in &mut golden.nodes {
        node.facts.remove("flow_tools");
    }
    let made = probed("slurm", "", &[], false);
    let compared = against_golden(&made, &golden, "golden.json").expect("a golden one");
    assert_eq!(compared.differences, []);
}

#[test]
fn nodes_whose_profile_does_not_name_their_nics_are_noted_with_the_lines_to_write() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a root");
    let instances = Instances::load(home).expect("sound instances");
    let text = "kind = \"real\"\ninstance = \"p6-b200\"\nnodes = \"n[1-2]\"\nreach = { via = \"slurm\" }\n\
                paths = { shared = \"/fsx\" }\n";
    let mut inventory = Inventory::read(text, "inventory/x.toml", &instances).expect("good");
    // The kernel lists them by letters.
    let nics: Vec<String> = [100, 101, 102, 103, 96, 97, 98, 99].map(|bus| format!("rdmap{bus}s0")).into();
    let weighed = |inventory: &Inventory| {
        let mut node = ProbedNode { node: "n1".into(), ..ProbedNode::default() };
        node.facts.insert("nics".into(), Value::Names(nics.clone()));
        weigh(&mut node, [], inventory, false);
        (node.unfit, node.notes)
    };
    let line = "its profile does not name its NICs: write `nics = \"rdmap[96-103]s0\"` and `device_names_seen = true` \
                into the profile of `p6-b200`";
    assert_eq!(weighed(&inventory), (Vec::new(), vec![line.to_owned()]));
    inventory.instance.take_device_names(&nics);
    assert_eq!(weighed(&inventory), (Vec::new(), Vec::new()));
}
