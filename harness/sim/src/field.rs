//! What the simulated cluster shows to a field kit: Slurm's own commands, and the sections of a node, as its world has
//! them.

use super::World;
use super::cluster::Cluster;
use cluster::field_kit::NodeRequest;
use cluster::reach::Answer;
use metric::op::Op;
use std::fmt::Write;

/// What a Slurm without GRES says to whoever asks for some.
pub(crate) const NO_GRES: &str = "Invalid generic resource (gres) specification";

/// As `sinfo` prints the GRES of each node.
pub(crate) fn gres(world: &World) -> String {
    match world.cluster.world.gres {
        true => format!("gpu:{}", world.cluster.gpus),
        false => "(null)".to_owned(),
    }
}

/// Nothing where it is no command of a field kit.
pub(crate) fn cluster_command(world: &World, words: &[&str]) -> Option<Answer> {
    let settings = &world.cluster.world;
    let silent =
        || Answer::failed(1, "slurm_load_partitions: Unable to contact slurm controller (connect failure)\n");
    let gres = gres(world);
    let feature = format!("{}.48xlarge,SIMULATED", world.cluster.instance);
    let powered = if settings.boot_s > 0 { "idle~" } else { "idle" };
    Some(match words {
        ["sbatch", "--version"] => Answer::ok("slurm 24.11.5-SIMULATED\n"),
        ["srun", "--mpi=list"] => {
            let pmix = if settings.pmix { "pmix\npmix_v4\n" } else { "" };
            Answer::ok(format!("MPI plugin types are...\nnone\ncray_shasta\npmi2\n{pmix}"))
        }
        ["srun", "--help"] => {
            let is_there = |line: &&str| settings.overlap || !line.contains("--overlap");
            Answer::ok(HELP.split_inclusive('\n').filter(is_there).collect::<String>())
        }
        ["sinfo", ..] | ["scontrol", "show", "config"] | ["sbatch", "--test-only", ..]
            if !settings.controller =>
        {
            silent()
        }
        ["sbatch", "--test-only", options @ ..] => {
            let asks_gpus = |word: &&str| word.starts_with("--gres=gpu") || word.starts_with("--gpus");
            let lacks_gres = !settings.gres && options.iter().any(asks_gpus);
            let refusal = settings.sbatch_refuses.as_deref();
            match refusal.or(lacks_gres.then_some(NO_GRES)) {
                Some(why) => Answer::failed(1, format!("allocation failure: {why}\n")),
                None => Answer::ok(TAKEN),
            }
        }
        ["sinfo", "--noheader", "--Node", "--all", "--format=%N|%t|%P|%f"] => {
            let line = |node: &String| {
                let is_busy = world.slurm.is_busy(node);
                format!("{node}|{}|sim-queue*|{feature}\n", if is_busy { "alloc" } else { powered })
            };
            Answer::ok(world.cluster.nodes.iter().map(line).collect::<String>())
        }
        ["sinfo", "--noheader", "--all", "--format=%P|%G|%f|%t|%D"] => {
            let count = world.cluster.nodes.len();
            Answer::ok(format!("sim-queue*|{gres}|{feature}|{powered}|{count}\n"))
        }
        ["scontrol", "show", "config"] => {
            let types = if settings.gres { "gpu" } else { "(null)" };
            Answer::ok(format!("{CONFIG}GresTypes               = {types}\n"))
        }
        _ => return None,
    })
}

const TAKEN: &str =
    "sbatch: Job 1000 to start at 2026-11-22T04:00:00 using 192 processors on nodes in partition sim-queue\n";

const HELP: &str = "Usage: srun [OPTIONS...] executable [args...]\n\
      -N, --nodes=N               number of nodes on which to run (N = min[-max])\n\
      --ntasks-per-node=n     number of tasks to invoke on each node\n\
      -m, --distribution=type     distribution method for processes to nodes\n\
      --gres=list             required generic resources\n\
      --gpus-per-node=n       number of GPUs required per allocated node\n\
      --mem=MB                minimum amount of real memory\n\
      --mpi=type              type of MPI being used\n\
      --overlap               Allow other steps to overlap this step\n\
      --container-image=[USER@][REGISTRY#]IMAGE[:TAG]|PATH\n                              [pyxis] the image\n\
      --container-mounts=SRC:DST[:FLAGS][,SRC:DST...]\n\
      --container-env=NAME[,NAME...]\n\
      --container-name=NAME\n\
      --container-workdir=PATH\n\
      --container-mount-home\n\
      --container-remap-root\n";

const CONFIG: &str = "Configuration data as of 2026-11-22T04:00:00\n\
AccountingStorageEnforce = none\n\
AccountingStorageType   = accounting_storage/none\n\
ClusterName             = simulated\n\
JobSubmitPlugins        = (null)\n\
MinJobAge               = 300 sec\n\
MpiDefault              = none\n\
Prolog                  = (null)\n\
PrologSlurmctld         = (null)\n\
ResumeTimeout           = 1800 sec\n\
SelectType              = select/cons_tres\n\
SelectTypeParameters    = CR_CPU\n\
SLURM_VERSION           = 24.11.5-SIMULATED\n\
TaskPlugin              = task/affinity,task/cgroup\n";

/// What `node.sh` prints on a node.
pub(crate) fn node(cluster: &Cluster, request: &NodeRequest) -> String {
    let mut sections = Sections { text: String::new() };
    sections.add("environment", Some(0), &[]);
    sections.add("bash", Some(0), &["5.2.15(1)-release"]);
    sections.add("product", Some(0), &[&format!("{}.48xlarge", cluster.instance)]);
    hardware(&mut sections, cluster);
    tools(&mut sections, cluster, request);
    let interfaces: &[&str] =
        if cluster.world.docker0 { &["docker0", "ens32", "lo"] } else { &["ens32", "lo"] };
    sections.add("interfaces", Some(0), interfaces);
    sections.add("memlock", Some(0), &["unlimited"]);
    sections.add("gdrdrv", Some(0), &["module loaded device open"]);
    if request.peer.is_some() {
        sections.add("peer", Some(0), &[]);
    }
    sections.text.push_str("harness-field\tend\n");
    sections.text
}

struct Sections {
    text: String,
}

impl Sections {
    fn add(&mut self, name: &str, status: Option<i32>, lines: &[&str]) {
        let status = status.map_or_else(|| "absent".to_owned(), |status| status.to_string());
        // Infallible: writing to a string.
        let _ = writeln!(self.text, "harness-field\tsection\t{name}\t{status}");
        for line in lines {
            let _ = writeln!(self.text, "harness-field\tline\t{line}");
        }
    }

    fn add_all(&mut self, name: &str, lines: &[String]) {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        self.add(name, Some(0), &lines);
    }
}

/// Beside those that carry traffic; the last ones came with release 2.17 of the driver.
const COUNTERS: [&str; 6] = ["rx_bytes", "rx_drops", "rx_pkts", "send_bytes", "tx_bytes", "tx_pkts"];
const TRAFFIC: [&str; 5] =
    ["rdma_read_bytes", "rdma_read_resp_bytes", "rdma_write_bytes", "rdma_write_recv_bytes", "recv_bytes"];
/// Of all devices since the boot: NCCL writes on p5, and reads on p4.
const SENT: [&str; 3] =
    ["send_bytes 52428800000", "rdma_write_bytes 8796093022208", "rdma_read_resp_bytes 8796093022208"];
const RETRANS: [&str; 3] = ["retrans_bytes", "retrans_pkts", "retrans_timeout_events"];

fn hardware(sections: &mut Sections, cluster: &Cluster) {
    let per_switch = cluster.nics.len().div_ceil(cluster.gpus.max(1) as usize).max(1);
    let switch = |at: usize| format!("0000:{:02x}:01.0/0000:{:02x}:00.0", 16 + at, 32 + at);
    let efa = cluster.nics.iter().enumerate().map(|(at, nic)| {
        let (rate, path) = (cluster.line_gb_s * 8.0, switch(at / per_switch));
        format!(
            "{nic}|0x1d0f|4: ACTIVE|{rate} Gb/sec (4X EDR)|{path}/0000:{:02x}:0{}.0/0000:{:02x}:00.0",
            64 + at,
            1 + at % per_switch,
            128 + at
        )
    });
    let others = (0..cluster.world.other_rdma_devices).map(|at| {
        format!("ibp{}s0f{at}|0x15b3|1: DOWN|100 Gb/sec (4X EDR)|0000:00:05.0/0000:73:00.{at}", 115 + at)
    });
    sections.add_all("devices", &efa.chain(others).collect::<Vec<_>>());
    // A link that limits flows is of Gen4 x8; others carry what their NICs do.
    let (speed, lanes) = if cluster.host_link_gb_s.is_some() { (16, 8) } else { (64, 16) };
    let ports = 0..cluster.nics.len().div_ceil(per_switch);
    let links = ports.map(|at| format!("0000:{:02x}:01.0|{speed}.0 GT/s PCIe|{lanes}", 16 + at));
    sections.add_all("host_links", &links.collect::<Vec<_>>());
    let retrans: &[&str] = if cluster.world.retrans_counters { &RETRANS } else { &[] };
    sections.add("counters", Some(0), &[&COUNTERS[..], &TRAFFIC[..], retrans].concat());
    sections.add("traffic", Some(0), &SENT);
    let gpus = (0..cluster.gpus as usize).map(|gpu| {
        let path = switch(gpu);
        format!(
            "0000:{:02x}:00.0|{}|570.133.20-SIMULATED|{path}/0000:{:02x}:1f.0/0000:{:02x}:00.0",
            200 + gpu,
            cluster.gpu_name,
            220 + gpu,
            200 + gpu
        )
    });
    sections.add_all("gpus", &gpus.collect::<Vec<_>>());
}

fn tools(sections: &mut Sections, cluster: &Cluster, request: &NodeRequest) {
    let world = &cluster.world;
    sections.add("fi_info_version", Some(0), &["fi_info: 2.1.0-SIMULATED", "libfabric: 2.1.0-SIMULATED"]);
    let domains = cluster.nics.iter().flat_map(|nic| {
        ["provider: efa".to_owned(), format!("    domain: {nic}-rdm"), "    type: FI_EP_RDM".to_owned()]
    });
    sections.add_all("fi_info", &domains.collect::<Vec<_>>());
    match world.flow_tools {
        false => {
            sections.add("fi_rma_bw", None, &["no such program: fi_rma_bw"]);
            sections.add("ib_write_bw", None, &["no such program: ib_write_bw"]);
        }
        true => {
            sections.add("fi_rma_bw", Some(1), &FABTESTS);
            let cuda: &[&str] = if world.flow_tools_cuda { &["libcudart.so"] } else { &[] };
            sections.add("fi_rma_bw-cuda", Some(0), cuda);
            let types = if world.flow_tools_srd { "RC/XRC/UC/DC/SRD" } else { "RC/XRC/UC/DC" };
            let connection = format!("  -c, --connection=<{types}>  Connection type (default RC)");
            let cuda: &[&str] =
                if world.flow_tools_cuda { &["      --use_cuda=<cuda device id>"] } else { &[] };
            sections.add("ib_write_bw", Some(0), &[&[connection.as_str()], &PERFTEST[..], cuda].concat());
            sections.add("ib_write_bw-cuda", Some(0), &[]);
        }
    }
    sections.add("mpirun", Some(0), &[&format!("mpirun (Open MPI) {}.1.6-SIMULATED", world.openmpi)]);
    sections.add("mpirun_options", Some(0), &["exported"]);
    sections.add("mpirun_path", Some(0), &[&request.mpirun]);
    let programs: Vec<String> = Op::ALL.iter().map(|op| op.program()).collect();
    sections.add_all("nccl_tests", &programs);
    sections.add("nccl_tests_help", Some(0), &NCCL_TESTS);
    sections.add(
        "nccl_tests_libraries",
        Some(0),
        &[
            "libmpi.so.40 => /opt/amazon/openmpi/lib/libmpi.so.40 (0x1)",
            "libnccl.so.2 => /opt/amazon/nccl/lib/libnccl.so.2 (0x1)",
        ],
    );
    sections.add("nsys", Some(0), &["NVIDIA Nsight Systems version 2025.3.1.90-SIMULATED"]);
    sections.add("nsys_switches", Some(0), &NSYS);
    sections.add("torchrun", Some(0), &["usage: torchrun [-h] [--nnodes NNODES]"]);
    sections.add("fsdp", Some(0), &[&request.fsdp]);
    sections.add("fsdp_options", Some(0), &FSDP);
}

/// The options of the FSDP sample, as far as suites give them, its data set, and its line of a step.
const FSDP: [&str; 19] = [
    "--checkpoint_freq",
    "--dataset",
    "--dataset_config_name",
    "--logging_freq",
    "--max_steps",
    "--model_type",
    "--sharding_strategy",
    "--tokenizer",
    "--train_batch_size",
    "--validation_freq",
    "--num_layers",
    "--hidden_width",
    "--intermediate_size",
    "--num_heads",
    "--num_key_value_heads",
    "--max_context_width",
    "--vocab_size",
    "allenai/c4",
    "Loss: %.5f, Speed: %.2f samples/sec",
];

/// Of `nsys profile`, as far as a profile gives them.
const NSYS: [&str; 12] = [
    "--capture-range",
    "--capture-range-end",
    "--delay",
    "--duration",
    "--enable",
    "--env-var",
    "--force-overwrite",
    "--kill",
    "--nvtx-capture",
    "--output",
    "--sample",
    "--trace",
];

const FABTESTS: [&str; 9] = [
    "Usage:",
    "  -p <provider>  specific provider name eg sockets, verbs",
    "  -d <domain>    domain name",
    "  -e <ep_type>   Endpoint type: msg|rdm|dgram (default:rdm)",
    "  -D <device_iface>  Specify device interface",
    "  -I <number>    number of iterations",
    "  -S <size>      specific transfer size or 'all'",
    "  -m             machine readable output",
    "  -o <op>        rma op type: read|write|writedata   -E[=port] out-of-band address exchange",
];

const PERFTEST: [&str; 6] = [
    "  -d, --ib-dev=<dev>",
    "  -F, --CPU-freq",
    "  -n, --iters=<iters>",
    "  -p, --port=<port>",
    "  -s, --size=<size>",
    "  -x, --gid-index=<index>",
];

const NCCL_TESTS: [&str; 11] = [
    "USAGE: all_reduce_perf",
    "  [-g,--ngpus <gpus per thread>]",
    "  [-b,--minbytes <min size in bytes>]",
    "  [-e,--maxbytes <max size in bytes>]",
    "  [-f,--stepfactor <increment factor>]",
    "  [-n,--iters <iteration count>]",
    "  [-w,--warmup_iters <warmup iteration count>]",
    "  [-o,--op <sum/prod/min/max/avg/mulsum/all>]",
    "  [-d,--datatype <nccltype/all>]",
    "  [-r,--root <root>]",
    "  [-c,--check <check iteration count>]",
];
