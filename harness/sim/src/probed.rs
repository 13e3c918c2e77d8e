//! What a simulated node reports when it is probed, in the format of `probe.sh`. Whether that is good is not asked
//! here.

use super::active_faults::ActiveFaults;
use super::bad_facts::{self, Answer, Gpus};
use super::clock::HostClock;
use super::cluster::Cluster;
use super::{noise, software};
use base::nodeset;
use cluster::probe::ProbeRequest;
use config::suite::{LOCAL_DISKS, PROBED_PROGRAMS, PYTORCH, TORCHRUN};
use metric::op::Op;
use model::artefact::HOST_ENGINE;
use model::fault::Fault;
use std::fmt::Write;

const GIB: u64 = 1 << 30;

pub(crate) fn answer(cluster: &Cluster, ask: &ProbeRequest, true_s: f64) -> String {
    let nodes = [ask.node.clone()];
    let faults: Vec<&Fault> = cluster.faults_of("", &nodes).map(|fault| &fault.fault).collect();
    let mut answer = ProbeAnswer { text: String::new() };
    answer.line("clock", "begin", &clock(cluster, &ask.node, true_s));
    gpus(&mut answer, cluster, &faults);
    identity(&mut answer, cluster, &ask.node, &faults);
    let is_missing = |nic: &String| {
        faults.iter().any(|fault| matches!(fault, Fault::NicMissing { device } if device == nic))
    };
    let nics: Vec<String> = cluster.nics.iter().filter(|nic| !is_missing(nic)).cloned().collect();
    // Listed by the kernel beside them, and of another maker.
    let others: Vec<String> =
        (0..cluster.world.other_rdma_devices).map(|at| format!("ibp{}s0f0", 115 + at)).collect();
    answer.list("nics", &nics);
    let is_dead = |nic: &&String| {
        faults.iter().any(|fault| matches!(fault, Fault::NicDead { device } if device == *nic))
    };
    let down: Vec<String> = nics.iter().filter(is_dead).map(|nic| format!("{nic} 1: DOWN")).collect();
    answer.list("other_rdma_devices", &others);
    answer.list("nics_down", &down);
    let programs: Vec<String> = Op::ALL.iter().map(|op| op.program()).collect();
    answer.list("nccl_tests", &programs);
    nsys(&mut answer, &faults);
    let is_full = faults.iter().any(|fault| **fault == Fault::DiskFull);
    for (key, value) in [
        ("efa", "2.17.2".to_owned()),
        ("efa_installer", "1.43.1".to_owned()),
        ("libfabric", "2.1.0amzn4.0".to_owned()),
        ("nccl", software::NCCL.to_owned()),
        ("cuda", "12.8.1".to_owned()),
        ("kernel", "6.8.0-1031-SIMULATED".to_owned()),
        ("os", "a simulated system".to_owned()),
        ("gdrdrv", "loaded".to_owned()),
        ("fabric_manager", "active".to_owned()),
        ("memlock", "unlimited".to_owned()),
        ("huge_pages", "5128".to_owned()),
        ("shared", "writable".to_owned()),
        ("shared_free", (if is_full { 0 } else { 1000 * GIB }).to_string()),
        ("shared_source", "10.0.0.1@tcp:/simulated".to_owned()),
    ] {
        answer.line("fact", key, &value);
    }
    match cluster.world.ofi_plugin {
        true => answer.line("fact", "ofi_nccl", software::OFI_NCCL),
        false => answer.line("none", "ofi_nccl", "no libnccl-net with a version"),
    }
    let gpus_of_node = Gpus { count: cluster.gpus, are_a100: cluster.gpu_name.contains("A100") };
    let of_kubernetes = bad_facts::kubernetes_answers(gpus_of_node, &faults, |fact| cluster.has_bad(fact));
    for (key, found) in bad_facts::answers(gpus_of_node, &faults).chain(of_kubernetes) {
        match found {
            Answer::Fact(value) => answer.line("fact", key, &value),
            Answer::List(items) => answer.list(key, &items),
            Answer::Unreported(why) => answer.line("none", key, &why),
        }
    }
    answer.list("nccl_tests_missing_libraries", &[]);
    answer.list("flow_tools", &flow_tools(cluster));
    answer.list("node_programs", &node_programs(cluster, &ask.node));
    answer.list("launchers", &["mpirun /opt/amazon/openmpi/bin/mpirun".to_owned()]);
    answer.list("open_programs", &[]);
    answer.line("none", "instance", "a simulated node has no firmware");
    answer.list("containers", &[]);
    answer.list("environment", &[]);
    answer.line("clock", "end", &clock(cluster, &ask.node, true_s));
    answer.text.push_str("harness-probe\tend\n");
    answer.text
}

/// What the node's clock shows at a true moment, as `date` prints it.
pub(crate) fn clock(cluster: &Cluster, node: &str, true_s: f64) -> String {
    let active_faults = ActiveFaults::new(cluster, "", "", &[node.to_owned()]);
    let true_ns = (true_s * 1e9) as i64;
    let shown = HostClock::new(cluster, &active_faults, (0, node), true_ns).shows(true_ns);
    format!("{}.{:09}", shown.div_euclid(1_000_000_000), shown.rem_euclid(1_000_000_000))
}

struct ProbeAnswer {
    text: String,
}

impl ProbeAnswer {
    fn line(&mut self, word: &str, key: &str, value: &str) {
        // Infallible: writing to a string.
        let _ = writeln!(self.text, "harness-probe\t{word}\t{key}\t{value}");
    }

    fn list(&mut self, key: &str, items: &[String]) {
        let _ = writeln!(self.text, "harness-probe\tlist\t{key}");
        for item in items {
            self.line("item", key, item);
        }
    }
}

fn gpus(answer: &mut ProbeAnswer, cluster: &Cluster, faults: &[&Fault]) {
    let driver = match faults.iter().any(|fault| **fault == Fault::DriverDiffers) {
        true => "550.163.01-SIMULATED",
        false => "570.133.20-SIMULATED",
    };
    let missing = faults
        .iter()
        .filter(|fault| matches!(fault, Fault::GpuMissing { .. }))
        .filter_map(|fault| fault.gpu());
    let missing: Vec<u32> = missing.collect();
    let (sm, memory) = if cluster.gpu_name.contains("A100") { (1410, 1593) } else { (1980, 2619) };
    // The driver counts those that it sees, from 0.
    let rows = (0..cluster.gpus).filter(|gpu| !missing.contains(gpu)).enumerate().map(|(index, _)| {
        let errors = if index == 0 { bad_facts::ecc_errors(faults) } else { 0 };
        format!(
            "{index}, {}, {driver}, Enabled, {errors}, {sm}, {memory}, 0x0000000000000001",
            cluster.gpu_name
        )
    });
    answer.list("gpus", &rows.collect::<Vec<_>>());
    let busy =
        faults.iter().filter(|fault| matches!(fault, Fault::GpuBusy { .. })).filter_map(|fault| fault.gpu());
    let busy = busy.map(|gpu| {
        let id = 4000 + noise::digest(cluster.seed, &["busy", &gpu.to_string()]) % 1000;
        format!("{id}, python3")
    });
    let mut busy: Vec<String> = busy.collect();
    nodeset::sort(&mut busy);
    answer.list("processes", &busy);
}

/// By the node's name, and not by the seed: another run on the cluster finds the same hardware.
fn identity(answer: &mut ProbeAnswer, cluster: &Cluster, node: &str, faults: &[&Fault]) {
    let replaced = |part: &str| cluster.world.replaced.iter().filter(|one| *one == part).count();
    let id = |part: &str| {
        let of_node = replaced(node).to_string();
        let of_part = replaced(&format!("{node}:{part}")).to_string();
        noise::digest(0, &["hardware", node, &of_node, part, &of_part])
    };
    answer.line("fact", "machine", &format!("i-{:017x}", id("node") >> 4));
    let is_missing = |gpu: u32| {
        let same = |fault: &&Fault| matches!(fault, Fault::GpuMissing { gpu: other } if *other == gpu);
        faults.iter().any(same)
    };
    let there = (0..cluster.gpus).filter(|gpu| !is_missing(*gpu));
    let gpus: Vec<String> = there
        .enumerate()
        .map(|(index, gpu)| {
            let id = id(&format!("gpu{gpu}"));
            let (a, b, c) = (id >> 32, (id >> 16) & 0xffff, id & 0xffff);
            format!("gpu{index} GPU-{a:08x}-{b:04x}-{c:04x}-0000-51a0{id:08x} 165{:010}", id % 10_000_000_000)
        })
        .collect();
    answer.list("gpu_ids", &gpus);
    answer.list("gpu_vbios", &["96.00.74.00.1F".to_owned()]);
    let nics: Vec<String> = cluster
        .nics
        .iter()
        .enumerate()
        .map(|(at, nic)| format!("{nic} {:016x} 0000:{:02x}:00.0", id(nic), 0x4f + at))
        .collect();
    answer.list("nic_ids", &nics);
    answer.list("nic_firmware", &["0.0.0.0".to_owned()]);
}

/// As the script lists them: each tool, and what it can do.
fn flow_tools(cluster: &Cluster) -> Vec<String> {
    let world = &cluster.world;
    let mut tools = Vec::new();
    for tool in ["fi_rma_bw", "ib_write_bw", "ib_read_bw"].iter().filter(|_| world.flow_tools) {
        tools.push((*tool).to_owned());
        if world.flow_tools_cuda {
            tools.push(format!("{tool}:cuda"));
        }
        // Reads over SRD are older than writes.
        if *tool == "ib_read_bw" || (*tool == "ib_write_bw" && world.flow_tools_srd) {
            tools.push(format!("{tool}:srd"));
        }
    }
    tools
}

fn node_programs(cluster: &Cluster, node: &str) -> Vec<String> {
    let all = PROBED_PROGRAMS.into_iter().chain([LOCAL_DISKS, HOST_ENGINE, PYTORCH, TORCHRUN]);
    all.filter(|program| cluster.world.has_program(node, program)).map(str::to_owned).collect()
}

fn nsys(answer: &mut ProbeAnswer, faults: &[&Fault]) {
    if faults.iter().any(|fault| **fault == Fault::NsysMissing) {
        answer.line("none", "nsys", "no such program: nsys");
        answer.line("none", "nsys_plugins", "no nsys");
        return;
    }
    let version = match faults.iter().any(|fault| **fault == Fault::NsysOld) {
        true => "2023.2.1",
        false => "2025.3.1",
    };
    answer.line("fact", "nsys", version);
    answer.line("fact", "nsys_path", &format!("/opt/nvidia/nsight-systems/{version}/target-linux-x64/nsys"));
    answer.list("nsys_plugins", &["efa_metrics", "network_interface"].map(str::to_owned));
}
