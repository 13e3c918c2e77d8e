//! A training of a real PyTorch with gloo under torchrun, over a real Slurm: a rank that does not come to a collective is named
//! by real dumps of the flight recorder. What asks for them is the pipe of PyTorch with NCCL, which a thread of the training
//! stands in for.

use super::bench::Bench;
use crate::fact::Fact;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

pub(super) const NIGHTLY: &[Fact] = &[
    ("a_rank_of_a_real_pytorch_that_stops_is_named_by_its_dumps", a_rank_that_stops_is_named),
    ("collectives_by_a_real_pytorch_pass_on_two_nodes", collectives_pass_on_two_nodes),
];

fn python() -> String {
    std::env::var("HARNESS_PYTHON_WITH_TORCH").unwrap_or_else(|_| "python3".to_owned())
}

pub(super) fn absent() -> Option<&'static str> {
    let records = "from torch._C._distributed_c10d import _dump_fr_trace";
    let mut command = Command::new(python());
    command.args(["-c", records]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let is_there = command.status().is_ok_and(|status| status.success());
    (!is_there).then_some("no python3 with a PyTorch whose gloo records: set HARNESS_PYTHON_WITH_TORCH")
}

/// Two nodes that are both this machine: each has an address of its own on the loopback.
const TORCHRUN: &str = r#"export GLOO_SOCKET_IFNAME=lo
exec "PYTHON" -m torch.distributed.run --local-addr="127.0.0.$(hostname | tr -d n)" "${@/endpoint=n1:/endpoint=127.0.0.1:}""#;

const CASE: &str = r#"
[[case]]
name = "trained"
placement = "all"
workload = { kind = "torchrun", script = "SCRIPT", processes_per_node = 2, port = 29741, stall_s = 30 }
recipes = ["training_log"]
counters = false
limit_s = 240
[[case.assert]]
metric = "train.steps_missing"
equals = 0
"#;

/// Two nodes with two GPUs each, as far as the inventory says.
fn bench(cases: &str) -> Bench {
    let bench = Bench::on(2, &["no-gres"], "gpus = \"none\"", cases);
    bench.program("torchrun", &TORCHRUN.replace("PYTHON", &python()));
    let file = |name: &str| bench.project.path().join(name);
    let read = |name: &str| fs::read_to_string(file(name)).expect("it is there");
    let p5 = read("inventory/instances/p5.toml");
    bench.project.write("inventory/instances/two.toml", &p5.replace("gpus = 8", "gpus = 2"));
    for name in ["inventory/live.toml", "suites/live.toml"] {
        bench.project.write(name, &read(name).replace("\"p5\"", "\"two\""));
    }
    let torchrun = format!("torchrun = \"{}/bin/torchrun\"\n", bench.folder());
    bench.project.write("inventory/live.toml", &(read("inventory/live.toml") + &torchrun));
    bench
}

const COLLECTIVES: &str = r#"
[[case]]
name = "all-{op}"
placement = "all"
matrix = { op = ["all_reduce", "all_gather", "alltoall", "sendrecv"] }
workload = { kind = "torch-collective", backend = "gloo", from = "4KiB", to = "64KiB", factor = 4, iterations = 3, port = 29751 }
recipes = ["nccl_tests", "nccl_shape"]
counters = false
limit_s = 240
[[case.assert]]
metric = "nccl.wrong"
place = "both"
equals = 0
[[case.assert]]
metric = "nccl.sizes_missing"
equals = 0
"#;

fn collectives_pass_on_two_nodes() {
    let bench = bench(COLLECTIVES);
    let ran = bench.run();
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert!(ran.all().contains("ranks 4/4"), "{}", ran.all());
}

fn a_rank_that_stops_is_named() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/live/slurm/torch_hang.py");
    let bench = bench(&CASE.replace("SCRIPT", &script.display().to_string()));
    let ran = bench.run();
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    let verdict = bench.project.json("cases/trained/verdict.json").to_string();
    assert!(verdict.contains("rank 2 did not enter all_reduce #8"), "{verdict}");
    // Both nodes are this machine and share its pipes: which of them has the rank is not shown.
    assert!(ran.blamed().is_empty(), "{}", ran.all());
}
