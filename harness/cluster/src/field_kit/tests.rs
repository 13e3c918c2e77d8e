//! What is made of the answers of real clusters: each row is an answer as a tool prints it, and what it shows.

use super::evidence::{Evidence, NodeEvidence, Section, read_sections};
use super::{Finding, Outcome, check, counts, render};
use config::inventory::{Instances, Inventory};
use model::artefact::{Probe, ProbedNode, Value};
use std::collections::BTreeMap;
use std::path::Path;

fn inventory(text: &str) -> Inventory {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the root");
    let instances = Instances::load(root).expect("profiles");
    Inventory::read(text, "inventory/lab.toml", &instances).expect("an inventory")
}

fn slurm() -> Inventory {
    inventory(
        "kind = \"real\"\ninstance = \"p5\"\nnodes = \"lab-[1-2]\"\nreach = { via = \"slurm\", partition = \"gpu\" }\n\
         paths = { shared = \"/fsx/lab\" }\nnic_tool = \"ib_write_bw\"\n\
         [environment]\nNCCL_SOCKET_IFNAME = \"^docker,lo,veth\"\n",
    )
}

/// What a command of the cluster printed.
fn here(name: &'static str, status: i32, text: &str) -> (&'static str, Result<Section, String>) {
    (name, Ok(Section::from_text(Some(status), text)))
}

fn outcome(evidence: &Evidence<'_>, id: &str) -> Outcome {
    let findings = check(evidence);
    findings.into_iter().find(|finding| finding.id == id).unwrap_or_else(|| panic!("no {id}")).outcome
}

/// The word for an outcome, and what was seen.
fn described(outcome: &Outcome) -> (char, &str) {
    match outcome {
        Outcome::Holds(seen) => ('h', seen),
        Outcome::Differs(seen) => ('d', seen),
        Outcome::NotSeen(why) => ('n', why),
    }
}

fn assert_outcome(outcome: &Outcome, wanted: char, part: &str, of: &str) {
    let (word, seen) = described(outcome);
    assert!(word == wanted && seen.contains(part), "{of}: {outcome:?}");
}

#[test]
fn answers_of_slurm_show_what_holds() {
    let inventory = slurm();
    let refused = "slurm_load_partitions: Unable to contact slurm controller (connect failure)";
    for (id, command, status, text, wanted, part) in [
        ("slurm.controller", "nodes", 0, "lab-1|idle|gpu*|x", 'h', ""),
        ("slurm.controller", "nodes", 1, refused, 'd', "Unable to contact"),
        ("slurm.release", "version", 0, "slurm 22.05.8", 'h', "22.05.8"),
        ("slurm.release", "version", 0, "slurm 19.05.5", 'd', "19.05.5"),
        ("slurm.release", "version", 0, "what", 'n', "no release"),
        ("slurm.gres", "partitions", 0, "gpu*|gpu:h100:8(S:0-1)|p5.48xlarge|idle|2", 'h', "gpu:h100"),
        ("slurm.gres", "partitions", 0, "gpu*|gpu:h100_7g.80gb:8(S:0-1)|x|idle|2", 'd', "7g.80gb"),
        // Stock HyperPod.
        ("slurm.gres", "partitions", 0, "gpu*|(null)|(null)|idle|2", 'h', "(null)"),
        ("slurm.gres", "partitions", 0, "gpu*|(null)|x|idle|1\ngpu*|gpu:8|x|idle|1", 'd', "(null); gpu:8"),
        ("slurm.gres", "partitions", 0, "gpu*|gpu:4|(null)|idle|2", 'd', "gpu:4"),
        ("slurm.gres", "partitions", 1, refused, 'n', "Unable to contact"),
        (
            "slurm.mpi",
            "mpi",
            0,
            "MPI plugin types are...\nnone\npmix\npmi2\nspecific pmix plugin versions available: pmix_v4",
            'h',
            "pmix",
        ),
        (
            "slurm.mpi",
            "mpi",
            0,
            "srun: MPI types are...\nsrun: cray_shasta\nsrun: pmi2\nsrun: none",
            'd',
            "pmi2",
        ),
        ("slurm.memory", "config", 0, "SelectTypeParameters    = CR_CPU", 'h', "CR_CPU"),
        // EnableMemoryBasedScheduling of ParallelCluster.
        ("slurm.memory", "config", 0, "SelectTypeParameters    = CR_CPU_MEMORY", 'd', "CR_CPU_MEMORY"),
        ("slurm.memory", "config", 0, "MinJobAge = 300 sec", 'n', "no SelectTypeParameters"),
        ("slurm.limits", "config", 0, "AccountingStorageEnforce = none", 'h', "none"),
        ("slurm.limits", "config", 0, "AccountingStorageEnforce = associations,limits,qos", 'd', "qos"),
        ("slurm.job_submit", "config", 0, "JobSubmitPlugins        = (null)", 'h', ""),
        ("slurm.job_submit", "config", 0, "JobSubmitPlugins        = lua", 'd', "lua"),
        ("slurm.prolog", "config", 0, "Prolog = (null)\nPrologSlurmctld = (null)", 'h', ""),
        // In newer releases a key stands there once for each, or not at all.
        ("slurm.prolog", "config", 0, "PrologFlags             = Alloc\n", 'h', "Prolog none"),
        (
            "slurm.prolog",
            "config",
            0,
            "Prolog[0]               = /opt/x/prolog.sh\nPrologSlurmctld[0]      = /opt/y.sh",
            'd',
            "Prolog /opt/x/prolog.sh, PrologSlurmctld /opt/y.sh",
        ),
        (
            "slurm.prolog",
            "config",
            0,
            "Prolog = /opt/x/prolog.sh\nPrologSlurmctld = (null)",
            'd',
            "prolog.sh",
        ),
        ("slurm.min_job_age", "config", 0, "MinJobAge               = 300 sec", 'h', "300"),
        ("slurm.min_job_age", "config", 0, "MinJobAge               = 2 sec", 'd', "2 sec"),
        ("slurm.nodes", "nodes", 0, "lab-1|idle|gpu*|x\nlab-2|idle|gpu*|x", 'h', "2 nodes"),
        ("slurm.nodes", "nodes", 0, "lab-1|idle|gpu*|x", 'd', "lab-2"),
        (
            "slurm.request",
            "request",
            0,
            "sbatch: Job 7 to start at 2026-01-01T00:00:00 using 192 processors on nodes lab-1 in partition gpu",
            'h',
            "accepted",
        ),
        (
            "slurm.request",
            "request",
            1,
            "site: welcome\nallocation failure: Invalid qos specification\n",
            'd',
            "Invalid qos",
        ),
        (
            "slurm.request",
            "request",
            1,
            "allocation failure: Unable to contact slurm controller (connect failure)",
            'n',
            "",
        ),
        ("slurm.request", "nodes", 0, "lab-1|idle|gpu*|x", 'n', "not queried"),
        (
            "slurm.srun_options",
            "srun_help",
            0,
            "-N, --nodes=N\n--ntasks-per-node=n\n-m, --distribution=type\n--mpi=type\n--gres=list\n--mem=MB\n--overlap",
            'h',
            "--overlap --mem --gres",
        ),
        // Before 20.11.
        (
            "slurm.srun_options",
            "srun_help",
            0,
            "-N, --nodes=N\n--ntasks-per-node=n\n-m, --distribution=type\n--mpi=type\n--gres=list\n--mem-bind=type",
            'd',
            "no --overlap --mem",
        ),
        ("slurm.srun_options", "srun_help", 1, "srun: fatal: no configuration source", 'n', "fatal"),
        ("slurm.powered_up", "nodes", 0, "lab-1|mix|gpu*|x\nlab-2|alloc|gpu*|x", 'h', "2 nodes"),
        ("slurm.powered_up", "nodes", 0, "lab-1|idle~|gpu*|x\nlab-2|idle|gpu*|x", 'd', "lab-1: idle~"),
        ("slurm.boot_time", "config", 0, "ResumeTimeout           = 1800 sec", 'h', "1800 sec"),
        ("slurm.boot_time", "config", 0, "ResumeTimeout           = 3601 sec", 'd', "3601 sec"),
        ("slurm.boot_time", "config", 0, "ResumeTimeout           = INFINITE", 'n', "not a number"),
        ("slurm.boot_time", "config", 0, "MinJobAge = 300 sec", 'n', "no ResumeTimeout"),
        // ParallelCluster, HyperPod, another queue, and a cluster that names no types.
        ("slurm.instance_type", "nodes", 0, "lab-1|idle|gpu*|static,p5.48xlarge,efa", 'h', "p5.48xlarge"),
        ("slurm.instance_type", "nodes", 0, "lab-1|idle|ml.p5.48xlarge*|(null)", 'h', "ml.p5.48xlarge"),
        ("slurm.instance_type", "nodes", 0, "lab-1|idle|gpu*|p5en.48xlarge", 'd', "the inventory has p5"),
        (
            "slurm.instance_type",
            "nodes",
            0,
            "lab-1|idle|gpu*|efa\nx|idle|gpu*|p5.48xlarge",
            'n',
            "no feature",
        ),
        ("slurm.instance_type", "nodes", 1, refused, 'n', "Unable to contact"),
    ] {
        let evidence = Evidence {
            inventory: &inventory,
            here: BTreeMap::from([here(command, status, text)]),
            nodes: Vec::new(),
            probe: None,
        };
        assert_outcome(&outcome(&evidence, id), wanted, part, &format!("{id} of {text:?}"));
    }
}

#[test]
fn gres_of_other_partitions_than_the_default_one_is_not_compared() {
    let inventory = inventory(
        "kind = \"real\"\ninstance = \"p5\"\nnodes = \"lab-[1-2]\"\npaths = { shared = \"/fsx/lab\" }\n\
         reach = { via = \"slurm\", gpus = \"gres\" }\n",
    );
    for (text, wanted) in [
        ("cpu|(null)|x|idle|4\ngpu*|gpu:8|x|idle|2", 'h'),
        ("cpu*|(null)|x|idle|4\ngpu|gpu:8|x|idle|2", 'd'),
        // Without a default, sbatch asks for a partition.
        ("cpu|(null)|x|idle|4\ngpu|gpu:8|x|idle|2", 'd'),
    ] {
        let evidence = Evidence {
            inventory: &inventory,
            here: BTreeMap::from([here("partitions", 0, text)]),
            nodes: Vec::new(),
            probe: None,
        };
        assert_outcome(&outcome(&evidence, "slurm.gres"), wanted, "", text);
    }
}

#[test]
fn gres_is_compared_with_how_the_inventory_asks_for_gpus() {
    let (none, eight) = ("gpu*|(null)|(null)|idle|2", "gpu*|gpu:8|(null)|idle|2");
    for (gpus, text, wanted) in [
        ("gres", none, 'd'),
        ("gres", eight, 'h'),
        ("none", none, 'h'),
        // Jobs would not see their GPUs.
        ("none", eight, 'd'),
        ("auto", none, 'h'),
        ("auto", eight, 'h'),
    ] {
        let inventory = inventory(&format!(
            "kind = \"real\"\ninstance = \"p5\"\nnodes = \"lab-[1-2]\"\npaths = {{ shared = \"/fsx/lab\" }}\n\
             reach = {{ via = \"slurm\", partition = \"gpu\", gpus = \"{gpus}\" }}\n"
        ));
        let evidence = Evidence {
            inventory: &inventory,
            here: BTreeMap::from([here("partitions", 0, text)]),
            nodes: Vec::new(),
            probe: None,
        };
        assert_outcome(&outcome(&evidence, "slurm.gres"), wanted, "", &format!("{gpus} of {text}"));
    }
}

#[test]
fn steps_have_all_processors_where_jobs_are_exclusive_or_nothing_confines_them() {
    for (exclusive, config, wanted) in [
        (true, "TaskPlugin = task/affinity,task/cgroup\nSelectType = select/cons_tres", 'h'),
        (false, "TaskPlugin = task/affinity,task/cgroup\nSelectType = select/cons_tres", 'd'),
        (false, "TaskPlugin = task/affinity\nSelectType = select/linear", 'h'),
        // srun says that it cannot bind, and goes on.
        (false, "TaskPlugin = task/none\nSelectType = select/cons_tres", 'h'),
        (false, "TaskPlugin = (null)", 'h'),
        (true, "SelectType = select/cons_tres", 'n'),
    ] {
        let inventory = inventory(&format!(
            "kind = \"real\"\ninstance = \"p5\"\nnodes = \"lab-[1-2]\"\npaths = {{ shared = \"/fsx/lab\" }}\n\
             reach = {{ via = \"slurm\", exclusive = {exclusive} }}\n"
        ));
        let here = BTreeMap::from([here("config", 0, config)]);
        let evidence = Evidence { inventory: &inventory, here, nodes: Vec::new(), probe: None };
        assert_outcome(&outcome(&evidence, "slurm.processors"), wanted, "", config);
    }
}

#[test]
fn a_command_that_is_not_there_differs_and_one_without_an_answer_is_not_seen() {
    let inventory = slurm();
    for (why, wanted) in [
        ("no such program on this machine: `sinfo`", 'd'),
        ("login1 cannot be reached: connection timed out", 'n'),
    ] {
        let here = BTreeMap::from([("nodes", Err(why.to_owned()))]);
        let evidence = Evidence { inventory: &inventory, here, nodes: Vec::new(), probe: None };
        assert_outcome(&outcome(&evidence, "slurm.controller"), wanted, why, why);
    }
}

/// One node's sections.
fn node(sections: &[(&str, Option<i32>, &str)]) -> NodeEvidence {
    let of = |(name, status, text): &(&str, Option<i32>, &str)| {
        ((*name).to_owned(), Section::from_text(*status, text))
    };
    NodeEvidence { node: "lab-1".to_owned(), sections: Ok(sections.iter().map(of).collect()) }
}

/// As `ib_write_bw --help` of Debian's perftest 4.5 says it.
const PERFTEST_4_5: &str = "Usage:\n  ib_write_bw            start a server and wait for connection\nOptions:\n  \
    -c, --connection=<RC/XRC/UC/DC>  Connection type RC/XRC/UC/DC (default RC)\n  -d, --ib-dev=<dev>\n";
const PERFTEST_24: &str = "Usage:\n  ib_write_bw\nOptions:\n  -c, --connection=<RC/XRC/UC/DC/SRD>\n  -d, --ib-dev=<dev>\n  \
    -F, --CPU-freq\n  -n, --iters=<iters>\n  -p, --port=<port>\n  -s, --size=<size>\n  -x, --gid-index=<index>\n      \
    --use_cuda=<cuda device id>\n";

/// Options of the FSDP sample, and its data set, as the kit reads them.
const FSDP: &str = "--checkpoint_freq\n--dataset\n--dataset_config_name\n--hidden_width\n--intermediate_size\n--logging_freq\n\
    --max_context_width\n--max_steps\n--model_type\n--num_heads\n--num_key_value_heads\n--num_layers\n--sharding_strategy\n\
    --tokenizer\n--train_batch_size\n--validation_freq\n--vocab_size\nallenai/c4\nLoss: %.5f, Speed: %.2f samples/sec";

/// Switches of `nsys profile`, as the kit reads them.
const NSYS: &str = "--capture-range\n--capture-range-end\n--delay\n--duration\n--enable\n--env-var\n--force-overwrite\n\
    --kill\n--nvtx-capture\n--output\n--sample\n--trace";

#[test]
fn sections_of_a_node_show_what_holds() {
    let inventory = slurm();
    let p5 = |from: u32| {
        let names: Vec<String> = inventory.instance.nics.iter().skip(from as usize).cloned().collect();
        names
            .iter()
            .map(|nic| {
                format!("{nic}|0x1d0f|4: ACTIVE|100 Gb/sec (4X EDR)|0000:44:00.0/0000:45:00.0/0000:4f:00.0\n")
            })
            .collect::<String>()
    };
    let whole = p5(0);
    let with_mlx5 = format!("{whole}ibp115s0f0|0x15b3|1: DOWN|400 Gb/sec (4X NDR)|0000:00:05.0\n");
    let gpu =
        "0000:53:00.0|NVIDIA H100 80GB HBM3|570.133.20|0000:44:00.0/0000:52:00.0/0000:53:00.0\n".repeat(8);
    let elsewhere = "0000:53:00.0|NVIDIA H100 80GB HBM3|570.133.20|0000:99:00.0/0000:53:00.0\n".repeat(8);
    let ok = Some(0);
    type Sections<'a> = &'a [(&'a str, Option<i32>, &'a str)];
    let rows: &[(&str, Sections<'_>, char, &str)] = &[
        ("node.instance", &[("product", ok, "p5.48xlarge")], 'h', "p5.48xlarge"),
        ("node.instance", &[("product", ok, "p5en.48xlarge")], 'd', "p5en.48xlarge, the inventory has p5"),
        ("node.instance", &[("product", None, "not readable: x")], 'n', "not readable"),
        ("node.gpus", &[("gpus", ok, &gpu)], 'h', "8 x NVIDIA H100"),
        ("node.gpus", &[("gpus", ok, "a|NVIDIA H100|1|x")], 'd', "1 x"),
        ("node.gpus", &[("gpus", None, "no such program: nvidia-smi")], 'n', "nvidia-smi"),
        ("node.nic_names", &[("devices", ok, &whole)], 'h', "rdmap[79-82"),
        ("node.nic_names", &[("devices", ok, &with_mlx5)], 'h', "rdmap[79-82"),
        ("node.nic_names", &[("devices", ok, &p5(1))], 'd', "31 of 32"),
        ("node.nic_names", &[("devices", ok, "odd row")], 'n', "unexpected row"),
        ("node.other_rdma", &[("devices", ok, &with_mlx5)], 'd', "ibp115s0f0 0x15b3"),
        ("node.other_rdma", &[("devices", ok, &whole)], 'h', "32 devices"),
        (
            "node.links",
            &[("devices", ok, &whole.replacen("4: ACTIVE", "1: DOWN", 1))],
            'd',
            "rdmap79s0 1: DOWN",
        ),
        ("node.links", &[("devices", ok, &with_mlx5)], 'h', "32 active"),
        ("node.line_rate", &[("devices", ok, &whole)], 'h', "100 Gb/sec"),
        ("node.line_rate", &[("devices", ok, &whole.replace("100 Gb", "200 Gb"))], 'd', "200 Gb/sec"),
        ("node.line_rate", &[("devices", ok, &whole.replace("100 Gb/sec (4X EDR)", "-"))], 'n', "no rate"),
        (
            "node.counters",
            &[("counters", ok, "rdma_write_bytes\nrdma_write_recv_bytes\nrx_drops")],
            'h',
            "3 counters",
        ),
        ("node.counters", &[("counters", ok, "rdma_read_bytes\nrx_drops")], 'd', "no rdma_write_bytes"),
        // Drivers before 2.17.
        ("node.retrans", &[("counters", ok, "rdma_write_bytes\nrx_drops")], 'd', "no retrans_bytes"),
        (
            "node.rdma_traffic",
            &[("traffic", ok, "send_bytes 5000000000\nrdma_write_bytes 900000000000")],
            'h',
            "900 GB by rdma_write_bytes, 5 GB by messages",
        ),
        // OFI_NCCL_PROTOCOL=SENDRECV.
        (
            "node.rdma_traffic",
            &[("traffic", ok, "send_bytes 900000000000\nrdma_write_bytes 0")],
            'd',
            "0 GB by rdma_write_bytes, 900 GB by messages",
        ),
        (
            "node.rdma_traffic",
            &[("traffic", ok, "send_bytes 900\nrdma_write_bytes 0")],
            'n',
            "no job has run",
        ),
        ("node.rdma_traffic", &[("traffic", ok, "send_bytes -9")], 'n', "unexpected row"),
        ("node.rdma_traffic", &[("traffic", ok, "rdma_write_bytes 9")], 'n', "no send_bytes"),
        ("node.rx_drops", &[("counters", ok, "rx_drops")], 'h', ""),
        ("node.gpu_of_nic", &[("devices", ok, &whole), ("gpus", ok, &gpu)], 'h', "32 NICs"),
        ("node.gpu_of_nic", &[("devices", ok, &whole), ("gpus", ok, &elsewhere)], 'd', "32 of 32 NICs"),
        ("node.gpu_of_nic", &[("devices", ok, &whole), ("gpus", ok, "a|b|c|")], 'n', "no PCIe path"),
        (
            "node.host_link",
            &[("host_links", ok, "0000:44:00.0|16.0 GT/s PCIe|8")],
            'h',
            "1 link of 15.75 GB/s",
        ),
        // Twice as much: flows from the host's memory would not have to take turns.
        ("node.host_link", &[("host_links", ok, "0000:44:00.0|16.0 GT/s PCIe|16")], 'd', "31.51 GB/s"),
        (
            "node.host_link",
            &[("host_links", ok, "0000:44:00.0|16.0 GT/s PCIe|8\n0000:54:00.0|16.0 GT/s PCIe|4")],
            'd',
            "2 links of 15.75 and 7.88 GB/s",
        ),
        ("node.host_link", &[("host_links", ok, "0000:44:00.0|-|-")], 'n', "unexpected row"),
        ("node.host_link", &[("host_links", ok, "x|NaN GT/s|8")], 'n', "unexpected row"),
        ("node.host_link", &[("host_links", ok, "")], 'n', "unexpected row"),
        ("node.host_link", &[("host_links", None, "sysfs shows no root port")], 'n', "no root port"),
        ("node.memlock", &[("memlock", ok, "unlimited")], 'h', ""),
        ("node.memlock", &[("memlock", ok, "8192")], 'd', "8192 KiB"),
        ("node.gdrdrv", &[("gdrdrv", ok, "module loaded device open")], 'h', "opens"),
        ("node.gdrdrv", &[("gdrdrv", ok, "module absent device absent")], 'd', "not loaded"),
        // An image that is given GPUs and NICs, and not this device.
        ("node.gdrdrv", &[("gdrdrv", ok, "module loaded device absent")], 'd', "no /dev/gdrdrv"),
        ("node.gdrdrv", &[("gdrdrv", ok, "module loaded device refused")], 'd', "may not be opened"),
        ("node.gdrdrv", &[("gdrdrv", ok, "module")], 'n', "unexpected row"),
        ("node.bash", &[("bash", ok, "4.2.46(2)-release")], 'h', "4.2.46"),
        ("node.bash", &[("bash", ok, "4.1.2(1)-release")], 'd', "4.1.2"),
        ("node.interfaces", &[("interfaces", ok, "ens32\nlo")], 'h', "none"),
        // The inventory's environment says nothing to Open MPI, and jobs leave docker0 out by themselves.
        ("node.interfaces", &[("interfaces", ok, "docker0\nens32\nlo")], 'h', "docker0 excluded"),
        ("node.interfaces", &[("interfaces", ok, "veth12\nens32")], 'd', "OMPI_MCA_btl_tcp_if_exclude"),
        ("node.environment", &[("environment", ok, "")], 'h', ""),
        ("node.environment", &[("environment", ok, "NCCL_SOCKET_IFNAME=^docker,lo,veth")], 'h', ""),
        (
            "node.environment",
            &[("environment", ok, "NCCL_ALGO=Tree\nLD_LIBRARY_PATH=/home/x")],
            'd',
            "NCCL_ALGO LD_LIBRARY_PATH",
        ),
        ("tools.mpirun", &[("mpirun", ok, "mpirun (Open MPI) 4.1.6")], 'h', "4.1.6"),
        ("tools.mpirun", &[("mpirun", ok, "Intel(R) MPI Library for Linux")], 'd', "Intel"),
        ("tools.mpirun", &[("mpirun", None, "no such program: mpirun")], 'd', "no such program"),
        ("tools.nsys_switches", &[("nsys_switches", ok, NSYS)], 'h', "--kill"),
        ("tools.nsys_switches", &[("nsys_switches", ok, &NSYS.replace("--kill", ""))], 'd', "no --kill"),
        ("tools.nsys_switches", &[("nsys_switches", ok, "")], 'n', "no options"),
        ("tools.nsys_switches", &[("nsys_switches", None, "no such program: nsys")], 'n', "no such program"),
        ("tools.nccl_tests", &[("nccl_tests", ok, "")], 'd', "none in /opt/nccl-tests/build"),
        ("tools.nccl_tests", &[("nccl_tests", ok, "all_reduce_perf")], 'd', "all_gather_perf"),
        (
            "tools.nccl_tests_libraries",
            &[("nccl_tests_libraries", ok, "libnccl.so.2 => not found")],
            'd',
            "libnccl.so.2",
        ),
        (
            "tools.nccl_tests_libraries",
            &[("nccl_tests_libraries", Some(1), "No such file")],
            'n',
            "No such file",
        ),
        (
            "tools.nccl_tests_mpi",
            &[("nccl_tests_libraries", ok, "libmpi.so.40 => /opt/amazon/openmpi/lib/libmpi.so.40 (0x1)")],
            'h',
            "libmpi.so.40",
        ),
        (
            "tools.nccl_tests_mpi",
            &[("nccl_tests_libraries", ok, "libnccl.so.2 => /lib/libnccl.so.2 (0x1)")],
            'd',
            "no libmpi.so",
        ),
        ("tools.nccl_tests_mpi", &[("nccl_tests_libraries", ok, "statically linked")], 'n', "statically"),
        ("tools.nccl_tests_mpi", &[("nccl_tests_libraries", Some(1), "No such file")], 'n', "No such file"),
        ("tools.efa_provider", &[("fi_info", Some(61), "fi_getinfo: -61 (No data available)")], 'd', "-61"),
        (
            "tools.efa_provider",
            &[("fi_info", ok, "provider: efa\n    domain: rdmap79s0-rdm")],
            'd',
            "31 of 32 missing",
        ),
        ("tools.flow_tool", &[("ib_write_bw", ok, PERFTEST_4_5)], 'h', "ib_write_bw"),
        ("tools.flow_tool", &[("ib_write_bw", None, "no such program: ib_write_bw")], 'd', "no such program"),
        ("tools.flow_tool_cuda", &[("ib_write_bw", ok, PERFTEST_4_5)], 'd', "without CUDA"),
        ("tools.flow_tool_cuda", &[("ib_write_bw", ok, PERFTEST_24)], 'h', ""),
        // Debian 12 and Ubuntu 22.04.
        ("tools.flow_tool_options", &[("ib_write_bw", ok, PERFTEST_4_5)], 'd', "no SRD"),
        ("tools.flow_tool_options", &[("ib_write_bw", ok, PERFTEST_24)], 'h', ""),
        ("tools.fsdp_sample", &[("fsdp", None, "not readable: /fsx/x")], 'n', "not readable"),
        ("tools.fsdp_options", &[("fsdp_options", ok, FSDP)], 'h', "17 options"),
        // As the sample was before llm-foundry's data set moved.
        ("tools.fsdp_options", &[("fsdp_options", ok, &FSDP.replace("allenai/c4", ""))], 'd', "allenai/c4"),
        (
            "tools.fsdp_options",
            &[("fsdp_options", ok, &FSDP.replace("--tokenizer", "--tokenizers"))],
            'd',
            "no --tokenizer",
        ),
        ("tools.fsdp_options", &[("fsdp_options", ok, "")], 'n', "no option is read"),
        ("tools.fsdp_options", &[("fsdp_options", None, "not readable: /fsx/x")], 'n', "not readable"),
        ("tools.fsdp_line", &[("fsdp_options", ok, FSDP)], 'h', "Speed: %.2f samples/sec"),
        (
            "tools.fsdp_line",
            &[("fsdp_options", ok, &FSDP.replace("samples/sec", "tokens/s"))],
            'd',
            "Speed: %.2f tokens/s",
        ),
        ("tools.fsdp_line", &[("fsdp_options", ok, "--dataset\nallenai/c4")], 'n', "is not found"),
    ];
    for (id, sections, wanted, part) in rows {
        let nodes = vec![node(sections)];
        let evidence = Evidence { inventory: &inventory, here: BTreeMap::new(), nodes, probe: None };
        assert_outcome(&outcome(&evidence, id), *wanted, part, &format!("{id} of {sections:?}"));
    }
}

#[test]
fn a_profile_without_a_limit_of_its_switches_needs_links_for_all_nics() {
    let inventory = inventory(
        "kind = \"real\"\ninstance = \"p4de\"\nnodes = \"lab-1\"\nreach = { via = \"ssh\" }\n\
         paths = { shared = \"/fsx/lab\" }\n",
    );
    for (links, wanted, part) in [
        ("0000:10:00.0|16.0 GT/s PCIe|16", 'h', "1 link of 31.51 GB/s, for 1 x 12.5 GB/s"),
        ("0000:10:00.0|8.0 GT/s PCIe|8", 'd', "1 link of 7.88 GB/s"),
        ("0000:10:00.0|5.0 GT/s|8", 'd', "1 link of 4.00 GB/s"),
    ] {
        let nodes = vec![node(&[("host_links", Some(0), links)])];
        let evidence = Evidence { inventory: &inventory, here: BTreeMap::new(), nodes, probe: None };
        assert_outcome(&outcome(&evidence, "node.host_link"), wanted, part, links);
    }
}

#[test]
fn nvlinks_of_the_probe_are_compared_with_the_profile() {
    let inventory = slurm();
    for (links, wanted, part) in [
        (Some(&["144 at 26.562 GB/s"][..]), 'h', "144 at 26.562"),
        (Some(&["143 at 26.562 GB/s", "1 at 19.922 GB/s"]), 'd', "1 at 19.922"),
        (Some(&["126 at 26.562 GB/s", "gpu3 has none"]), 'd', "gpu3 has none"),
        (Some(&["136 at 26.562 GB/s"]), 'h', "136 at"),
        (Some(&["96 at 26.562 GB/s"]), 'd', "319 GB/s of a GPU, the profile has 450"),
        (Some(&["144 at inf GB/s"]), 'n', "unexpected list"),
        (Some(&[]), 'n', "no NVLink"),
        (None, 'n', "the probe has no `nvlinks`"),
    ] {
        let names = |links: &[&str]| Value::Names(links.iter().map(|link| (*link).to_owned()).collect());
        let facts = links.map(|links| ("nvlinks".to_owned(), names(links)));
        let probe = Probe {
            format: model::artefact::Format,
            harness: String::new(),
            simulated: false,
            inventory: String::new(),
            instance: String::new(),
            at: String::new(),
            nodes: vec![ProbedNode { facts: facts.into_iter().collect(), ..ProbedNode::default() }],
        };
        let (here, nodes) = (BTreeMap::new(), Vec::new());
        let evidence = Evidence { inventory: &inventory, here, nodes, probe: Some(probe) };
        assert_outcome(&outcome(&evidence, "node.nvlink"), wanted, part, &format!("{links:?}"));
    }
}

#[test]
fn a_rank_of_mpirun_shows_that_its_options_are_taken() {
    let inventory = inventory(
        "kind = \"real\"\ninstance = \"p5\"\nnodes = \"lab-1\"\nreach = { via = \"ssh\" }\n\
         paths = { shared = \"/fsx/lab\" }\n",
    );
    for (status, text, wanted, part) in [
        (Some(0), "a banner\nexported", 'h', "has the variable"),
        (Some(0), "", 'd', "has no variable"),
        (Some(213), "mpirun: unrecognized option: -N", 'd', "unrecognized option"),
        (None, "no such program: mpirun", 'n', "no such program"),
    ] {
        let nodes = vec![node(&[("mpirun_options", status, text)])];
        let evidence = Evidence { inventory: &inventory, here: BTreeMap::new(), nodes, probe: None };
        assert_outcome(&outcome(&evidence, "tools.mpirun_options"), wanted, part, text);
    }
}

#[test]
fn pyxis_has_the_options_that_jobs_are_given() {
    let whole = "--container-image=x\n--container-mounts=x\n--container-env=x\n--container-workdir=x\n\
                 --container-mount-home\n--container-remap-root\n";
    let kept = format!("{whole}--container-name=x\n");
    for (reuse, status, text, wanted, part) in [
        (false, 0, whole, 'h', "all of them"),
        (true, 0, kept.as_str(), 'h', "all of them"),
        (true, 0, whole, 'd', "srun has no --container-name"),
        (false, 0, "--container-image=x\n", 'd', "--container-workdir"),
        (false, 1, "srun: error: x", 'n', "srun: error"),
    ] {
        let inventory = inventory(&format!(
            "kind = \"real\"\ninstance = \"p5\"\nnodes = \"lab-1\"\nreach = {{ via = \"slurm\" }}\n\
             paths = {{ shared = \"/fsx/lab\" }}\ncontainer = {{ image = \"/fsx/a.sqsh\", reuse = {reuse} }}\n"
        ));
        let here = BTreeMap::from([here("srun_help", status, text)]);
        let evidence = Evidence { inventory: &inventory, here, nodes: Vec::new(), probe: None };
        assert_outcome(&outcome(&evidence, "slurm.pyxis"), wanted, part, text);
    }
}

#[test]
fn nothing_that_was_not_seen_holds() {
    let inventory = slurm();
    let silent = NodeEvidence { node: "lab-1".to_owned(), sections: Err("no answer".to_owned()) };
    let empty = NodeEvidence { node: "lab-2".to_owned(), sections: Ok(BTreeMap::new()) };
    for nodes in [vec![], vec![silent], vec![empty]] {
        let evidence = Evidence { inventory: &inventory, here: BTreeMap::new(), nodes, probe: None };
        let findings = check(&evidence);
        assert_eq!(counts(&findings), [0, 0, findings.len()], "{findings:?}");
    }
}

#[test]
fn one_node_that_differs_or_is_silent_decides_for_all() {
    let inventory = slurm();
    let of = |name: &str, memlock: Option<&str>| {
        let sections =
            memlock.map(|text| BTreeMap::from([("memlock".to_owned(), Section::from_text(Some(0), text))]));
        NodeEvidence { node: name.to_owned(), sections: sections.ok_or_else(|| "no answer".to_owned()) }
    };
    for (second, wanted, part) in [
        (Some("unlimited"), 'h', "unlimited"),
        (Some("64"), 'd', "lab-2: 64 KiB"),
        (None, 'n', "lab-2: no answer"),
    ] {
        let nodes = vec![of("lab-1", Some("unlimited")), of("lab-2", second)];
        let evidence = Evidence { inventory: &inventory, here: BTreeMap::new(), nodes, probe: None };
        assert_outcome(&outcome(&evidence, "node.memlock"), wanted, part, part);
    }
}

#[test]
fn answers_of_nodes_that_are_cut_or_odd_are_refused_and_bounded() {
    let whole = "motd\nharness-field\tsection\ta\t0\nharness-field\tline\tx\ty\nharness-field\tend\n";
    let sections = read_sections(whole).expect("whole");
    assert_eq!(sections["a"], Section { status: Some(0), lines: vec!["x y".to_owned()] });
    for (text, part) in [
        ("harness-field\tsection\ta\t0\n", "truncated"),
        ("", "truncated"),
        ("harness-field\tline\tx\nharness-field\tend\n", "unexpected line"),
        ("harness-field\tsection\t../../etc\t0\nharness-field\tend\n", "invalid section name"),
        ("harness-field\tother\nharness-field\tend\n", "unexpected line"),
    ] {
        let why = read_sections(text).expect_err(text);
        assert!(why.contains(part), "{text:?}: {why}");
    }
    let many: String = (0..5000).map(|n| format!("harness-field\tline\t{n}{}\n", "é".repeat(900))).collect();
    let text = format!("harness-field\tsection\ta\t0\n{many}harness-field\tend\n");
    let section = &read_sections(&text).expect("read")["a"];
    assert!(section.lines.len() == 2000 && section.lines.iter().all(|line| line.len() <= 400));
}

#[test]
fn every_assumption_has_an_id_of_its_own_and_says_its_source() {
    let mut ids: Vec<&str> = super::assumptions().map(|assumption| assumption.id).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
    assert!(
        super::assumptions()
            .all(|it| !it.assumed.is_empty() && !it.source.is_empty() && !it.checked_by.is_empty())
    );
}

#[test]
fn a_person_reads_lines_of_bounded_width() {
    let finding = Finding {
        id: "node.x",
        assumed: "a",
        checked_by: "b",
        source: "c",
        outcome: Outcome::Differs(format!("first\nsecond {}", "long ".repeat(60))),
    };
    let text = render(&[finding], "lab", 2, false);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("DIFFERS  node.x: first second long") && lines[0].len() <= 120, "{text}");
    assert_eq!(
        lines[1..],
        ["         assumed: a", "lab: 1 assumption on 2 nodes: 0 hold, 1 differ, 0 not seen"]
    );
}

#[test]
fn a_request_is_tried_with_all_that_the_inventory_asks_for_and_submits_nothing() {
    let inventory = inventory(
        "kind = \"real\"\ninstance = \"p5\"\nnodes = \"lab-[1-2]\"\npaths = { shared = \"/fsx/lab\" }\n\
         reach = { via = \"slurm\", partition = \"gpu\", qos = \"high\", mem = \"0\", sbatch = [\"--licenses=x:1\"] }\n",
    );
    let slurm = inventory.reach.slurm().expect("Slurm");
    assert_eq!(
        super::request::test_only(slurm, 8, &inventory.nodes).join(" "),
        "sbatch --test-only --parsable --chdir=/ --output=/dev/null --time=15 --no-requeue --nodes=2 --nodelist=lab-[1-2] \
         --ntasks-per-node=8 --gres=gpu:8 --partition=gpu --qos=high --mem=0 --exclusive --licenses=x:1 --wrap=true"
    );
}
