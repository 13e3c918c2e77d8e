//! Every finding of a probe against a node, as a person reads it.

use cluster::probe::weigh;
use config::inventory::{Instances, Inventory};
use model::artefact::{ClockOffset, ProbedNode, Value};
use std::path::Path;

fn inventory(text: &str) -> Inventory {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a root");
    let instances = Instances::load(home).expect("sound instances");
    Inventory::read(text, "inventory/x.toml", &instances).expect("good")
}

fn findings(facts: &[(&str, Value)], unreported: &[(&str, &str)]) -> Vec<String> {
    let inventory = inventory(
        "kind = \"simulated\"\ninstance = \"sim-p5\"\nnodes = \"p5-[001-004]\"\nnsys_version = \"2025.3\"\n\
         reach = { via = \"ssh\" }\n",
    );
    let mut node = ProbedNode {
        node: "p5-001".into(),
        clock_offset: Some(ClockOffset { at_least_ms: 4980.0, at_most_ms: 5020.0 }),
        ..ProbedNode::default()
    };
    node.facts.extend(facts.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    node.unknown.extend(unreported.iter().map(|(name, why)| ((*name).to_owned(), (*why).to_owned())));
    weigh(&mut node, ["`gpus` cannot be read: nvidia-smi ended with 9".to_owned()], &inventory, false);
    let unfit = node.unfit.iter().map(|line| format!("cannot pass: {line}"));
    unfit.chain(node.notes.iter().map(|line| format!("note: {line}"))).collect()
}

#[test]
fn messages() {
    let text = |text: &str| Value::Text(text.into());
    let names = |names: &[&str]| Value::Names(names.iter().map(|name| (*name).to_owned()).collect());
    let mut lines = findings(
        &[
            ("gpus", Value::Number(7)),
            ("gpu", text("NVIDIA A100-SXM4-80GB")),
            ("nics", names(&["rdmap79s0", "mlx5_0"])),
            ("nics_down", names(&["rdmap79s0 1: DOWN"])),
            ("shared", text("not writable: /fsx")),
            ("shared_free", Value::Number(1 << 20)),
            ("busy", names(&["4711 python3"])),
            ("xid", names(&["NVRM: Xid 79"])),
            ("gpu_throttled", names(&["gpu3 0x40"])),
            ("nccl_tests_missing_libraries", names(&["libnccl.so.2"])),
            ("open_programs", names(&["/fsx/bin", "/opt/nccl-tests/build/all_reduce_perf"])),
            ("ecc_errors", Value::Number(2)),
            ("memlock", Value::Number(8 << 20)),
            ("nsys", text("2023.2.1")),
            ("instance", text("p4d.24xlarge")),
        ],
        &[],
    );
    lines.extend(findings(
        &[],
        &[("gpus", "no nvidia-smi on PATH"), ("nics", "no such folder"), ("ofi_nccl", "no libnccl-net")],
    ));
    insta::assert_snapshot!(lines.join("\n"));
}
