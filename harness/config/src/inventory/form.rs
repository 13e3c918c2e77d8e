//! The forms of inventories and instance profiles. Launchers have theirs beside their readers.

use super::instance::{FLOWS, TRANSPORTS};
use super::read::{KINDS, NIC_TOOLS, RUNTIMES};
use super::{Kind, hardware, launcher, topology};
use crate::facts::requirement_keys;
use crate::form::{Condition, Form, Key, Type, names};

/// A file of `inventory`.
pub(crate) fn file() -> Form {
    let node_set = || Type::Either(vec![Type::Text, Type::texts()]);
    let instance = Type::Either(vec![Type::Text, Type::table(own_instance())]);
    let by_kind = |(word, kind)| {
        let key = |name, default, form, about| match kind {
            Kind::Real => Key::needed(name, Type::table(form), about),
            Kind::Simulated => Key::usual(name, default, Type::table(form), about),
        };
        let reach = key("reach", "Slurm", launcher::form(), "how nodes are reached");
        let paths = key("paths", "as below", paths(Some(kind)), "where things lie on the nodes");
        (Condition::Is(word), Form::new([reach, paths]))
    };
    Form::new([
        Key::needed("kind", Type::OneOf(|_| names(&KINDS)), "whether there are machines behind it"),
        Key::needed("instance", instance, "the name of a profile of `inventory/instances`, or a table"),
        Key::needed("nodes", node_set(), "`\"p5-[001-032,040]\"`, or a list of such"),
        Key::optional("groups", Type::map(node_set()), "`rack1 = \"p5-[001-016]\"`, for `--nodes @rack1`"),
        Key::optional(
            "topology",
            Type::table(topology::form()),
            "the network of the nodes: ranks are numbered along it",
        ),
        Key::optional("container", Type::table(container()), "the image that jobs run in"),
        Key::optional("environment", Type::map(Type::Text), "variables of every job; a case's own win"),
        Key::optional("publish", Type::table(publish()), "where every run is published when it has ended"),
        Key::usual(
            "nic_tool",
            "\"fi_rma_bw\"",
            Type::OneOf(|_| NIC_TOOLS.map(|tool| tool.name().to_owned()).to_vec()),
            "what makes the flows of nic-pairs",
        ),
        Key::usual(
            "nsys_version",
            "from `paths.nsys`",
            Type::Text,
            "as `nsys --version` prints it; without it profiled cases are skipped",
        ),
        Key::optional(
            "probe",
            Type::keys(requirement_keys()),
            "what each node must be: facts, each with `at_least`, `at_most`, `equals` or `holds`",
        ),
        Key::optional(
            "hardware",
            Type::tables(hardware::form()),
            "the numbers of nodes as they were delivered: `harness accept` refuses a node whose hardware is other",
        ),
        Key::optional("world", Type::table(world()), "how a simulated cluster behaves"),
    ])
    .by("kind", KINDS.map(by_kind))
}

/// `[paths]`.
pub(super) fn paths(kind: Option<Kind>) -> Form {
    let path = |name, default, about| Key::usual(name, default, Type::Pattern("^/"), about);
    let shared = "a folder that this machine and all nodes see";
    let shared = match kind {
        Some(Kind::Simulated) => path("shared", "/fsx/harness", shared),
        Some(Kind::Real) | None => Key::needed("shared", Type::Pattern("^/"), shared),
    };
    let found = "the one that is found";
    let published = "where it is published";
    Form::new([
        shared,
        path("nccl_tests", "/opt/nccl-tests/build", "the folder of `all_reduce_perf` and the others"),
        path("mpirun", found, "where jobs start over ssh or in pods"),
        path(
            "nccl_inspector",
            "`inspector`, which NCCL looks for as libnccl-profiler-inspector.so",
            "the library of NCCL's Inspector",
        ),
        path("nsys", "the newest that a node has", "for profiled jobs"),
        path("slurm", "PATH", "the folder of Slurm's commands"),
        Key::optional("harness", Type::Pattern("^/"), "a copy of this program, for `--analyze-on`"),
        path(
            "counters",
            "/sys/class/infiniband",
            "where EFA counters lie; `{host}` in it is the node's name",
        ),
        path("fsdp", published, "the FSDP sample: its folder, or its `train.py`"),
        path("nemo", published, "NeMo: its folder, or `megatron_gpt_pretraining.py`"),
        path("megatron", published, "Megatron-LM: its folder, or `pretrain_gpt.py`"),
        path("ddp", published, "transformers of Hugging Face: its folder, or `run_clm.py`"),
        path("torchrun", found, "of the environment that the samples run in"),
    ])
}

/// `[container]`.
pub(super) fn container() -> Form {
    Form::new([
        Key::usual(
            "runtime",
            "Pyxis",
            Type::OneOf(|_| names(&RUNTIMES)),
            "what runs the image over ssh; under Slurm it is Pyxis",
        ),
        Key::needed("image", Type::Text, "its name; with Pyxis `--container-image` of srun"),
        Key::usual("mounts", "[]", Type::list(Type::Pattern("^/[^,]*$")), "each `/source:/target`"),
        Key::usual("mount_home", "false", Type::Boolean, "the home folder is mounted"),
        Key::usual("remap_root", "false", Type::Boolean, "with Pyxis: `--container-remap-root` of srun"),
        Key::usual("reuse", "true", Type::Boolean, "with Pyxis: unpacked once on each node for a run"),
    ])
}

/// `[publish]`.
pub(super) fn publish() -> Form {
    let to = Type::Pattern("^(s3|gs|az)://[A-Za-z0-9._$-]+/[^?#@ ]+$|^file:///[^?#@]+$");
    Form::new([Key::needed(
        "to",
        to,
        "a prefix of an object store, `s3://BUCKET/PREFIX`: each run goes below it",
    )])
}

/// `[world]`.
pub(super) fn world() -> Form {
    let yes = |name, about| Key::usual(name, "true", Type::Boolean, about);
    let no = |name, about| Key::usual(name, "false", Type::Boolean, about);
    let text = |name, about| Key::optional(name, Type::Text, about);
    let variables = |name, about| Key::optional(name, Type::map(Type::Text), about);
    Form::new([
        yes("gres", "Slurm has GRES configured"),
        yes("controller", "the Slurm controller answers"),
        yes("tools_on_path", "Slurm's commands and mpirun are on the PATH of a shell that is no login shell"),
        yes("pmix", "srun has the PMIx plugin"),
        yes("overlap", "srun knows `--overlap`"),
        yes(
            "steps_overlap",
            "steps with `--overlap` share memory and GPUs too; else one waits for what another holds",
        ),
        yes("sampler_starts", "srun starts the sampler of a job"),
        yes("docker0", "nodes have docker0 with the same address on each"),
        yes("retrans_counters", "the EFA driver has the `retrans_*` counters"),
        yes("flow_tools", "the flow tools are installed"),
        yes("flow_tools_cuda", "they can move GPU memory"),
        yes("flow_tools_srd", "ib_write_bw knows SRD writes"),
        Key::usual(
            "absent_programs",
            "[]",
            Type::texts(),
            "programs of tests of a node that no node has, as `dcgmi`, or one node has not, as `p5-002:dcgmi`; with \
             `nv-hostengine` that daemon does not run",
        ),
        yes("ofi_plugin", "aws-ofi-nccl is installed; without it NCCL talks TCP"),
        Key::usual("boot_s", "0", Type::WHOLE, "idle nodes are powered down, and boot for so many seconds"),
        Key::usual("openmpi", "4", Type::Whole(4..=5), "Open MPI's major release"),
        Key::usual("other_rdma_devices", "0", Type::WHOLE, "RDMA devices on each node that are not EFA"),
        variables("image_env", "what the container image's own ENV sets"),
        Key::optional("run_noise", Type::Quantity, "relative standard deviation from run to run"),
        Key::optional("node_noise", Type::Quantity, "relative standard deviation from node to node"),
        Key::optional("most_submitted", Type::WHOLE, "jobs that the user's QOS takes at the same time"),
        variables("shell_env", "what the shell that submits jobs exports"),
        Key::optional("outlier_every", Type::WHOLE, "one value in so many is 10 % low, by chance"),
        text("sbatch_refuses", "what sbatch and srun print when they refuse every request"),
        Key::optional("max_minutes", Type::WHOLE, "the partition's MaxTime in minutes"),
        text("job_name", "what the site's submit plugin calls every job"),
        text("job_folder", "the working folder that it gives every job"),
        no("mpi_start_fails", "every rank aborts in MPI_Init"),
        no("image_import_fails", "no node can import or pull the container image"),
        Key::usual(
            "ssh_launch_s",
            "0.5",
            Type::Number,
            "seconds that the start of a job takes on one node over ssh",
        ),
        Key::optional(
            "replaced",
            Type::texts(),
            "nodes, GPUs as `p5-002:gpu3` and NICs as `p5-002:rdmap79s0` that are other hardware under their old names",
        ),
        Key::optional(
            "slow_with",
            Type::map(Type::Number),
            "by `VARIABLE=VALUE` or image: the remaining fraction of every rate in jobs that have it; 0: they do not start",
        ),
        Key::optional(
            "ssh_answer_s",
            Type::map(Type::WHOLE),
            "by host: seconds that each answer takes over ssh",
        ),
    ])
}

/// A file of `inventory/instances`.
pub(crate) fn instance() -> Form {
    let keys = |is_needed: bool| {
        let of = move |name, value, about| match is_needed {
            true => Key::needed(name, value, about),
            false => Key::usual(name, "the other's", value, about),
        };
        let counters = || Type::list(Type::Pattern("^[a-z0-9_]+$"));
        Form::new([
            of("gpus", Type::WHOLE, "GPUs of a node"),
            of(
                "gpu",
                Type::Text,
                "the model, as `H100`; the driver's name for it must contain the first word",
            ),
            Key::optional("bf16_tflops", Type::Number, "what a GPU can compute of dense bfloat16 at most"),
            of("nvlink_gb_s", Type::Number, "GB/s of a GPU's NVLink, one way"),
            of("nics", Type::Text, "device names: `\"rdmap[0-31]s0\"`"),
            of(
                "nic_line_rate",
                Type::Pattern("^ *[0-9.]+ *(Gb/s|Gbit/s) *$"),
                "of one NIC, one way: `\"100 Gb/s\"`",
            ),
            Key::optional(
                "host_link_gb_s",
                Type::Number,
                "GB/s that the NICs of one GPU's PCIe switch move together to and from the host's memory",
            ),
            of("transport", Type::OneOf(|_| names(&TRANSPORTS)), "what aws-ofi-nccl uses"),
            of("tx_counters", counters(), "counters that grow with data that leaves the node"),
            of("rx_counters", counters(), "counters that grow with data that arrives"),
            of("flow_op", Type::OneOf(|_| names(&FLOWS)), "the operation by which data crosses the fabric"),
            of(
                "conservation_shown",
                Type::Boolean,
                "whether the conservation law of the counters has been shown",
            ),
            Key::usual(
                "device_names_seen",
                "true",
                Type::Boolean,
                "false: the device names stand in for those that a preflight reads, or that are to be filled in",
            ),
            of("source", Type::Text, "where the figures come from"),
        ])
    };
    let like =
        Key::optional("like", Type::Text, "the profile that this one is like: it names only what differs");
    let variants = [(Condition::Absent, keys(true)), (Condition::Present, keys(false))];
    Form::new([like]).by("like", variants)
}

/// `[instance]` of an inventory.
pub(super) fn own_instance() -> Form {
    let name = Key::needed(
        "name",
        Type::Text,
        "what the profile is called; those of simulated clusters begin with `sim-`",
    );
    let mut form = instance();
    form.keys.insert(0, name);
    form
}
