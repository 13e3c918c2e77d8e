//! The stable codes of culprits, with the cause, the next step and the `scontrol` command of each.

use super::named::Place;
use base::text::shorten;
use model::artefact::{Culprit, Launcher, Plan, RunCluster, kubectl_command};
use recipes::recipe;
use recipes::recipe::nic_rate::UNCONNECTED;

/// How grave it is: what is to be done with the node, gravest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Drain it, and have it replaced.
    Replace,
    /// Reboot the node; replace it if the fault returns.
    Reboot,
    /// Reset the GPU or all GPUs of the node, or reboot it.
    Reset,
    /// No part of it is broken: its settings are wrong.
    Configure,
    /// Investigate further; the harness does not drain a node for it.
    Watch,
}

impl Severity {
    /// As printed: `replace`.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Replace => "replace",
            Severity::Reboot => "reboot",
            Severity::Reset => "reset",
            Severity::Configure => "configure",
            Severity::Watch => "watch",
        }
    }

    /// Whether a node is of no use to others until something has been done to it.
    pub fn asks_for_drain(self) -> bool {
        matches!(self, Severity::Replace | Severity::Reboot | Severity::Reset)
    }
}

/// A kind of fault, as `harness explain CODE` prints it.
#[derive(Debug)]
pub struct Code {
    /// Stable, such as `HRN-NIC-SLOW`.
    pub name: &'static str,
    /// What is to be done with the node.
    pub severity: Severity,
    /// The fault in one phrase.
    pub what: &'static str,
    /// What is usually behind it.
    pub cause: &'static str,
    /// What to check and do next.
    pub next: &'static str,
}

/// The key of the taint and of the annotation of a node of Kubernetes that is drained for a reason of ours.
pub const DRAINED: &str = "harness/drained";

/// The prefix of our reasons of drained nodes, so that no other reason is ever touched.
pub const REASON: &str = "[harness]";
/// In letters: lists of nodes are read by people.
const MOST_EVIDENCE: usize = 120;

impl Code {
    /// By name, in upper or lower case.
    pub fn find(name: &str) -> Option<&'static Code> {
        CODES.iter().copied().find(|code| code.name.eq_ignore_ascii_case(name))
    }

    /// The code of a part that an isolation named by its own runs.
    pub fn for_place(place: Place) -> &'static Code {
        match place {
            Place::Node(_) => &NODE_SLOW,
            Place::Somewhere(_) => &NODE_UNCLEAR,
            Place::Gpu(..) => &GPU_SLOW,
            Place::NvLink(_) => &NVLINK_SLOW,
            Place::Nic(..) => &NIC_SLOW,
            Place::Port(_) => &PORT_SLOW,
            Place::Link(..) => &LINK_SLOW,
        }
    }

    /// That of a part that a run names, by its evidence; none for a node that is only left over by elimination.
    pub(crate) fn from_evidence(part: &str, evidence: &str) -> Option<&'static Code> {
        let cause = evidence.split(':').next().unwrap_or_default();
        let code = match part {
            "node" => match cause {
                "NODE_FAIL" | "BOOT_FAIL" | "host-unreachable" => "HRN-NODE-LOST",
                "hang" | "stall" => "HRN-NODE-BROKEN",
                _ if cause.starts_with("exit ") || cause.starts_with("signal ") => "HRN-NODE-BROKEN",
                // Slow by elimination: which part of it is to be found out.
                _ => return None,
            },
            _ if evidence.contains("keeps the others waiting") || part.starts_with("rank") => "HRN-RANK-LATE",
            _ if part.starts_with("gpu") && evidence.contains("wrong") => "HRN-GPU-WRONG",
            _ if part.starts_with("gpu") => "HRN-GPU-SLOW",
            "fabric" => "HRN-PORT-SLOW",
            _ if evidence.contains("not listed") => "HRN-NIC-MISSING",
            _ if evidence.contains("moved no byte") => "HRN-NIC-DEAD",
            _ => "HRN-NIC-SLOW",
        };
        Code::find(code)
    }

    /// That of a reason why a node cannot pass, as the probe words it: what is broken or absent is not a setting.
    pub fn for_unfit(why: &str) -> &'static Code {
        match why {
            _ if why.starts_with("NICs whose link is not active") => &NIC_DOWN,
            _ if why.starts_with("NICs: ") && why.contains("missing: ") => &NIC_MISSING,
            _ if lacks_gpus(why) || lacks_drives(why) => &NODE_PART_MISSING,
            _ => &NODE_UNFIT,
        }
    }

    /// That of what a run names. Suspects have none: nothing shows which of them is at fault.
    pub fn for_culprit(culprit: &Culprit) -> Option<&'static Code> {
        match culprit {
            Culprit::Culprit { part, evidence, code, .. } => {
                let stored = code.as_deref().and_then(Code::find);
                stored.or_else(|| Code::from_evidence(part, evidence)).or(Some(&NODE_UNCLEAR))
            }
            Culprit::Suspects { .. } => None,
            Culprit::Fleet { evidence } if evidence.starts_with(UNCONNECTED) => Some(&FLEET_UNCONNECTED),
            Culprit::Fleet { .. } => Some(&FLEET_SLOW),
        }
    }

    /// Whether further runs with good partners show more than its page does: what is slow without a known part, or
    /// what may as well be the other end's fault.
    pub fn asks_for_isolation(&self, evidence: &str, plan: &Plan) -> bool {
        match self.name {
            "HRN-NIC-SLOW" | "HRN-PORT-SLOW" | "HRN-NODE-SLOW" => true,
            // A job that failed is looked at in its own output; a number that is low is isolated.
            "HRN-NODE-UNCLEAR" => is_of_metric(evidence, plan),
            _ => false,
        }
    }

    /// The reason of a drained node in Slurm: one line, for people who look at the queue.
    pub fn reason(&self, part: &str, evidence: &str, run: &str) -> String {
        let evidence: String = evidence.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let evidence = shorten(&evidence, MOST_EVIDENCE);
        format!("{REASON} {} {part}: {evidence}, run {run}", self.name)
    }

    /// The exact command that takes the node out of its queue, which is only printed; absent where it is in none, or the
    /// severity asks for no drain.
    pub fn drain(
        &self,
        launcher: Launcher,
        cluster: Option<&RunCluster>,
        node: &str,
        part: &str,
    ) -> Option<String> {
        let command = match launcher {
            Launcher::Slurm => {
                format!(
                    "scontrol update nodename={node} state=drain reason=\"{REASON} {} {part}\"",
                    self.name
                )
            }
            // A cordon without the annotation would be somebody else's, which stands.
            Launcher::Kubernetes => {
                let by = by_hostname(node);
                let reason = format!("{DRAINED}={REASON} {} {part}", self.name);
                format!(
                    "{} && {}",
                    kubectl_command(cluster, &["annotate", "nodes", "-l", &by, &reason]),
                    kubectl_command(cluster, &["cordon", "-l", &by])
                )
            }
            Launcher::Ssh | Launcher::Local => return None,
        };
        self.severity.asks_for_drain().then_some(command)
    }

    /// The text of `harness explain CODE`.
    pub fn page(&self) -> String {
        let drain = |launcher| self.drain(launcher, None, "NODE", "PART");
        let queue = match (drain(Launcher::Slurm), drain(Launcher::Kubernetes)) {
            (Some(slurm), Some(kubernetes)) => format!(
                "  {slurm}\n  `harness isolate --drain` runs it\n  after a run on it that passes, if the reason is still ours \
                 (`harness isolate --resume-drained` does both):\n  scontrol update nodename=NODE state=resume\n\n\
                 Kubernetes\n  {kubernetes}\n  `harness isolate --drain` does that, and adds a taint\n  after a run on it that passes \
                 (`harness isolate --resume-drained` does both):\n  {}\n",
                put_back_by_hand(None, "NODE")
            ),
            _ => format!("  none: the severity `{}` asks for no drain\n", self.severity.name()),
        };
        format!(
            "{}: {}\n\nseverity\n  {}\n\ncause\n  {}\n\nnext\n  {}\n\nSlurm\n{queue}",
            self.name,
            self.what,
            self.severity.name(),
            self.cause,
            self.next
        )
    }
}

/// The commands that put a node of Kubernetes back, which are only printed.
pub fn put_back_by_hand(cluster: Option<&RunCluster>, node: &str) -> String {
    let (by, key) = (by_hostname(node), format!("{DRAINED}-"));
    let uncordon = kubectl_command(cluster, &["uncordon", "-l", &by]);
    let of = |verb| kubectl_command(cluster, &[verb, "nodes", "-l", &by, &key]);
    format!("{uncordon}; {}; {}", of("taint"), of("annotate"))
}

/// Nodes are named so in inventories, and otherwise in Kubernetes.
fn by_hostname(node: &str) -> String {
    format!("kubernetes.io/hostname={node}")
}

/// Of `nvidia-smi lists 7 GPUs, expected 8`: more than expected, or none at all, is a profile or a driver.
fn lacks_gpus(why: &str) -> bool {
    let number = |text: &str| text.split(' ').next().and_then(|word| word.parse::<u32>().ok());
    let rest = why.strip_prefix("nvidia-smi lists ");
    let expected = why.split_once(", expected ").and_then(|(_, expected)| number(expected));
    rest.and_then(number).zip(expected).is_some_and(|(there, expected)| 0 < there && there < expected)
}

/// Below the suite's limit, or fewer than most nodes have.
fn lacks_drives(why: &str) -> bool {
    let Some(rest) = why.strip_prefix("`nvme_drives` ") else { return false };
    let numbers = rest.strip_prefix("is ").and_then(|rest| rest.split_once(", on most nodes "));
    let fewer = |(own, most): (&str, &str)| {
        own.parse::<u32>().ok().zip(most.parse().ok()).is_some_and(|(a, b)| a < b)
    };
    rest.starts_with("must be at least ") || numbers.is_some_and(fewer)
}

/// Whether evidence begins with the name of a metric, be it one of a user's recipe, and not with the cause by which a job
/// failed.
fn is_of_metric(evidence: &str, plan: &Plan) -> bool {
    let first = evidence.split(':').next().unwrap_or_default();
    let is_asserted = || plan.cases.iter().flat_map(|case| &case.assertions).any(|one| one.metric == first);
    recipe::built_in(first).is_some() || is_asserted()
}

/// Every code once, as `harness explain` lists them.
pub static CODES: [&Code; 35] = [
    &NODE_SLOW,
    &NODE_UNCLEAR,
    &NODE_BROKEN,
    &NODE_LOST,
    &NODE_UNFIT,
    &NODE_DIFFERS,
    &NODE_PART_MISSING,
    &GPU_SLOW,
    &GPU_WRONG,
    &GPU_XID,
    &GPU_DIAGNOSIS,
    &GPU_DIED,
    &GPU_PCIE_SLOW,
    &GPU_THROTTLES,
    &GPU_ECC,
    &GPU_NVLINK,
    &NVLINK_SLOW,
    &NIC_SLOW,
    &NIC_DEAD,
    &NIC_MISSING,
    &NIC_DOWN,
    &NIC_LOOPBACK,
    &NIC_RETRANS,
    &PORT_SLOW,
    &LINK_SLOW,
    &NET_DOWNGRADED,
    &RANK_LATE,
    &MEMORY_SLOW,
    &CPU_SLOW,
    &CPU_SHARED,
    &NODE_LEAK,
    &DISK_SLOW,
    &DISK_ERRORS,
    &FLEET_SLOW,
    &FLEET_UNCONNECTED,
];

static NODE_SLOW: Code = Code {
    name: "HRN-NODE-SLOW",
    severity: Severity::Reboot,
    what: "a node on which everything is equally slow",
    cause: "a fault that all of its parts share: power or thermal capping, a wrong CPU governor, another tenant's \
            process, memory or PCIe that trained down after a boot",
    next: "check clocks, temperatures and throttle reasons (`nvidia-smi -q -d PERFORMANCE,CLOCK`), stop other \
           processes there, reboot it once and isolate again with good partners; replace it if the fault returns",
};

static NODE_UNCLEAR: Code = Code {
    name: "HRN-NODE-UNCLEAR",
    severity: Severity::Watch,
    what: "a node that fails or is slow where its peers are not, while no part of it was shown to be the cause",
    cause: "a part that the run did not measure by itself, the path between its GPUs and NICs (PCIe switches, GPUDirect, \
            peer memory), its settings, a full disk, or a fault too small to show in a single part",
    next: "read the evidence and stderr of its jobs; compare its settings with other nodes (`harness inventory diff`), then \
           isolate it with good partners (`harness isolate --run ID`); reboot it if it stays slow",
};

static NODE_BROKEN: Code = Code {
    name: "HRN-NODE-BROKEN",
    severity: Severity::Reboot,
    what: "a node with which runs fail, hang or give wrong results",
    cause: "a driver, a library or a device on it that fails outright",
    next: "check stderr of its runs and its kernel log (Xid lines), reboot it, isolate again; replace it if the fault \
           returns",
};

static NODE_LOST: Code = Code {
    name: "HRN-NODE-LOST",
    severity: Severity::Replace,
    what: "a node that was lost during a job, did not boot, or does not answer",
    cause: "it crashed, or lost power or network; the launcher reported it",
    next: "check its console and the controller's log; when it is back, isolate it with good partners before it takes \
           jobs again",
};

static NODE_UNFIT: Code = Code {
    name: "HRN-NODE-UNFIT",
    severity: Severity::Configure,
    what: "a node that does not meet its requirements: devices, versions or settings differ",
    cause: "see the evidence: it holds the message of the probe",
    next: "bring it in line with the other nodes (`harness inventory diff` lists the differences), then probe it again",
};

static NODE_PART_MISSING: Code = Code {
    name: "HRN-NODE-PART-MISSING",
    severity: Severity::Reboot,
    what: "a node that lists fewer GPUs, drives or other parts than its instance type has",
    cause: "a part that is not there, did not come up at boot, or has fallen off its bus",
    next: "reboot the node once and probe it again (`harness inventory probe`); replace it if the part stays away",
};

static GPU_SLOW: Code = Code {
    name: "HRN-GPU-SLOW",
    severity: Severity::Reset,
    what: "one GPU that is slower by itself than its peers",
    cause: "thermal or power capping of that GPU, memory errors with remapping pending, a PCIe link of fewer lanes",
    next: "check its clocks, temperature, throttle reasons and remapped rows (`nvidia-smi -q -i N`), reset it or reboot \
           the node, isolate again; replace the node if the fault returns",
};

static GPU_WRONG: Code = Code {
    name: "HRN-GPU-WRONG",
    severity: Severity::Replace,
    what: "one GPU whose results are wrong",
    cause: "silent corruption in that GPU or its memory",
    next: "drain it at once: results of jobs on it cannot be trusted; replace the node",
};

static GPU_DIAGNOSIS: Code = Code {
    name: "HRN-GPU-DIAGNOSIS",
    severity: Severity::Reset,
    what: "one GPU on which tests of DCGM's diagnosis fail",
    cause: "see the evidence: it holds DCGM's message, such as memory errors that cannot be corrected or a row that could \
            not be remapped",
    next: "do what the message says; reset the GPU or reboot the node, and run the diagnosis again (`harness run --suite \
           node-p5 diagnosis`); replace the node if the test fails again",
};

static GPU_DIED: Code = Code {
    name: "HRN-GPU-DIED",
    severity: Severity::Reset,
    what: "one GPU on which a program died or stood still under full load, while the others of its node went on",
    cause: "an error of its memory, its power or its connection: the kernel log has an Xid of that moment",
    next: "look for the Xid in the kernel log, reset the GPU or reboot the node, load it again (`harness run --suite node-p5 \
           load`); replace the node if it dies again",
};

static GPU_PCIE_SLOW: Code = Code {
    name: "HRN-GPU-PCIE-SLOW",
    severity: Severity::Reboot,
    what: "one GPU that copies slowly to or from the host or falls off the bus, while its peers do not",
    cause: "a PCIe link that came up narrower or at a lower speed, replays on it, or its loss",
    next: "compare `pcie.link.width.current` and `pcie.link.gen.current` of `nvidia-smi` with its peers under load, reboot \
           the node once; replace it if the link stays so",
};

static GPU_THROTTLES: Code = Code {
    name: "HRN-GPU-THROTTLES",
    severity: Severity::Replace,
    what: "one GPU that slows down under long full load, while its peers keep their rate",
    cause: "cooling or power of that GPU: the evidence says after how long it began",
    next: "watch its temperature and throttle reasons under load (`nvidia-smi -q -d PERFORMANCE,TEMPERATURE`); replace the \
           node",
};

static GPU_ECC: Code = Code {
    name: "HRN-GPU-ECC",
    severity: Severity::Reset,
    what: "one GPU whose memory has errors that are not corrected, more and more that are, or a row that waits to be replaced",
    cause: "a cell of its memory: the GPU takes the row out of use at its next reset, as long as it has spare ones",
    next: "reset the GPU or reboot the node, and load it again (`harness run --suite node-p5 load`); replace the node if errors \
           come back or remapping fails",
};

static GPU_NVLINK: Code = Code {
    name: "HRN-GPU-NVLINK",
    severity: Severity::Reset,
    what: "one GPU with NVLinks that are down or count errors",
    cause: "a link that did not train, a switch, or the fabric manager",
    next: "look at `nvidia-smi nvlink -s -e` and the fabric manager, reset all GPUs of the node together or reboot it; \
           replace the node if it returns",
};

static MEMORY_SLOW: Code = Code {
    name: "HRN-MEMORY-SLOW",
    severity: Severity::Reboot,
    what: "a node whose host memory is slower than that of its peers",
    cause: "a memory module that is missing or was taken out after errors, another NUMA or power setting, another \
            process",
    next: "compare the size of its memory and its kernel log (EDAC, machine checks) with a peer, reboot it once; replace it if \
           it stays slow",
};

static CPU_SLOW: Code = Code {
    name: "HRN-CPU-SLOW",
    severity: Severity::Reboot,
    what: "a node whose processors are slower under load than those of its peers",
    cause: "heat or a power limit that lowers their clocks, or another governor",
    next: "compare clocks, temperatures and governor of its processors under load with a peer, reboot it once; replace it if \
           it stays slow",
};

static CPU_SHARED: Code = Code {
    name: "HRN-CPU-SHARED",
    severity: Severity::Watch,
    what: "a node whose processors had less time for the load than those of its peers",
    cause: "another process on the node, or a limit of processor time for its jobs",
    next: "run `ps -eo pid,user,pcpu,comm --sort=-pcpu | head` on the node under load, end or move what stands there, then rerun \
           the case",
};

static NODE_LEAK: Code = Code {
    name: "HRN-NODE-LEAK",
    severity: Severity::Reboot,
    what: "a node on which memory of the host or of a GPU is not given back, while its peers give it back",
    cause: "a driver or a module of its kernel that keeps memory with every job, or processes that are left",
    next: "compare `/proc/meminfo`, `slabtop` and `nvidia-smi` with a peer, reboot the node; report its driver if the memory \
           grows again",
};

static DISK_SLOW: Code = Code {
    name: "HRN-DISK-SLOW",
    severity: Severity::Watch,
    what: "a node whose disk is slower than those of its peers",
    cause: "a drive that is worn or missing from its array, or other traffic on a shared file system",
    next: "look at `dmesg`, `smartctl -a` and the array of the disk; of a shared file system, at its servers and its client \
           on the node",
};

static DISK_ERRORS: Code = Code {
    name: "HRN-DISK-ERRORS",
    severity: Severity::Replace,
    what: "a node whose disk returns errors",
    cause: "a drive that fails, or the connection to it; of a shared file system, its servers or its client on the node",
    next: "look at `dmesg` and `smartctl -a` of the disk; replace the drive or the node, or mend the shared file system",
};

static NVLINK_SLOW: Code = Code {
    name: "HRN-NVLINK-SLOW",
    severity: Severity::Reset,
    what: "a node whose GPUs are slow together, while each of them is good alone",
    cause: "NVLink or NVSwitch lanes down or retrying, or a fabric manager that is not running",
    next: "check `nvidia-smi nvlink -s -e` and the fabric manager, reset all GPUs of the node together or reboot it, \
           isolate again; replace the node if the fault returns",
};

static NIC_SLOW: Code = Code {
    name: "HRN-NIC-SLOW",
    severity: Severity::Replace,
    what: "one NIC that is slower than its peers with several good partners",
    cause: "the NIC, its PCIe link or its cable: compare retransmits and link speed",
    next: "check its retransmits and its PCIe width and speed, reboot the node once; replace it if the fault returns",
};

static NIC_DEAD: Code = Code {
    name: "HRN-NIC-DEAD",
    severity: Severity::Replace,
    what: "a NIC that is listed but carries no traffic",
    cause: "its link is down, or its driver lost it; collectives use the other NICs and are slower",
    next: "check its link state, reboot the node once; replace it if the fault returns",
};

static NIC_MISSING: Code = Code {
    name: "HRN-NIC-MISSING",
    severity: Severity::Reboot,
    what: "a NIC of the instance type that the node does not list",
    cause: "it did not come up at boot, or was never attached: on all nodes, the launch template has too few interfaces",
    next: "compare with other nodes; on one node only, reboot it, then replace it; on all nodes, fix the launch template",
};

static PORT_SLOW: Code = Code {
    name: "HRN-PORT-SLOW",
    severity: Severity::Reboot,
    what: "a node whose NICs are all equally slow, while its GPUs are good",
    cause: "a part that all of its NICs share: the node's switch port, GPUDirect RDMA that is off, the driver or the \
            fabric settings",
    next: "compare its fabric settings and driver with other nodes (`harness inventory diff`), reboot it once and isolate \
           again; if it stays slow, have the network team try its port, and replace the node only if the port is good",
};

static LINK_SLOW: Code = Code {
    name: "HRN-LINK-SLOW",
    severity: Severity::Watch,
    what: "a slow link between two groups of nodes, shown with several sets of otherwise good nodes",
    cause: "a cable or port between the switches of the two groups, or heavy traffic of other jobs on them",
    next: "report the two groups and the time to the network team; until then place jobs within one group",
};

static RANK_LATE: Code = Code {
    name: "HRN-RANK-LATE",
    severity: Severity::Watch,
    what: "a rank that keeps the others waiting",
    cause: "the host side of its process, between collectives: CPU, data loader, storage, its share of the work; or \
            kernels that take longer on its GPU than on the others",
    next: "check CPU load, data loader and storage of that process, and other processes on its node; compare its kernels \
           with those of other ranks (`harness recipe cuda_gpu_kern_pace --input REPORTS`, the job's folder below `raw`); \
           load its GPU by itself (`harness run --suite node-p5 load`)",
};

static NIC_DOWN: Code = Code {
    name: "HRN-NIC-DOWN",
    severity: Severity::Reboot,
    what: "a NIC that is listed, but whose link is not active, or goes down under load",
    cause: "its link did not train or was lost; no job can use it meanwhile",
    next: "reboot the node once; replace it if the link stays down",
};

static NIC_LOOPBACK: Code = Code {
    name: "HRN-NIC-LOOPBACK",
    severity: Severity::Reboot,
    what: "a NIC that is slower than its peers in messages to itself",
    cause: "the NIC or its PCIe link: no other node takes part",
    next: "check its PCIe width and speed, reboot the node once; replace it if the fault returns",
};

static NIC_RETRANS: Code = Code {
    name: "HRN-NIC-RETRANS",
    severity: Severity::Watch,
    what: "a NIC with transmission timeouts during slow runs of its node",
    cause: "packet loss on its path: its cable or port, or a congested part of the network",
    next: "isolate again without the evidence of this run (`--no-evidence`); if the NIC is not slow by itself, report the \
           node and the time to the network team",
};

static GPU_XID: Code = Code {
    name: "HRN-GPU-XID",
    severity: Severity::Reset,
    what: "a node whose driver reported a GPU fault (Xid), and whose runs are bad",
    cause: "by Xid: 13, 31 and 43 are mostly the program's fault; 48, 63, 64, 94, 95 memory; 74 NVLink; 79 a GPU that has \
            fallen off the bus",
    next: "look up the Xid in the driver's manual, reset the GPU or reboot the node, isolate again; replace the node if \
           48, 74, 79 or 95 returns",
};

static NODE_DIFFERS: Code = Code {
    name: "HRN-NODE-DIFFERS",
    severity: Severity::Configure,
    what: "a node whose runs are bad, and whose software or settings differ from most nodes",
    cause: "another image, a driver that was updated on some nodes only, or a setting of this node",
    next: "bring it in line with the other nodes (`harness inventory diff`), then isolate again with good partners",
};

static NET_DOWNGRADED: Code = Code {
    name: "HRN-NET-DOWNGRADED",
    severity: Severity::Configure,
    what: "a node whose NCCL used a slow transport: no GPUDirect RDMA, sockets, or another provider than `efa`",
    cause: "a module that is not loaded (gdrdrv, nvidia-peermem), a missing plugin, or a variable that disables it",
    next: "read its NCCL log (`harness logs nccl FILE`) and its environment (`harness inventory diff`), fix it, isolate again",
};

static FLEET_SLOW: Code = Code {
    name: "HRN-FLEET-SLOW",
    severity: Severity::Configure,
    what: "all nodes are equally slow, below the accepted baseline; no node is blamed",
    cause: "something that all of them share: a variable, an image, a driver, the network as a whole, or a baseline that \
            was made on other software",
    next: "compare the software with that of the baseline's runs (`harness baseline show INSTANCE`), lint the environment (`harness \
           check`), check recent changes; of a training also its NCCL settings (`harness compare RUN`, `harness \
           diagnose latest`); isolate compares nodes with each other: it finds no culprit where all are slow, but of a \
           training a slow NIC or link",
};

static FLEET_UNCONNECTED: Code = Code {
    name: "HRN-FLEET-UNCONNECTED",
    severity: Severity::Configure,
    what: "no NIC of any node connected to another; no node is blamed",
    cause: "something that all of them share: an EFA security group that does not admit all traffic from and to itself, \
            device names of the profile that the nodes do not have, subnets or placement that EFA does not cross, or \
            the flow tool",
    next: "check that the security group of the EFA interfaces admits all traffic from and to itself, inbound and \
           outbound; compare `nics` of the instance with `ls /sys/class/infiniband` of a node; run `fi_info -p efa` \
           there; then read the `.out` file of one flow",
};

#[cfg(test)]
mod tests {
    use super::{CODES, Code};

    #[test]
    fn what_a_probe_finds_broken_or_absent_is_no_setting() {
        for (why, code) in [
            ("NICs whose link is not active: rdmap79s0 1: DOWN", "HRN-NIC-DOWN"),
            ("NICs: 31 of 32, missing: rdmap79s0", "HRN-NIC-MISSING"),
            ("nvidia-smi lists 7 GPUs, expected 8 (`p5`)", "HRN-NODE-PART-MISSING"),
            ("nvidia-smi lists 1 GPU, expected 8 (`p5`)", "HRN-NODE-PART-MISSING"),
            ("nvidia-smi lists 8 GPUs, expected 4 (`p5`)", "HRN-NODE-UNFIT"),
            ("nvidia-smi lists 0 GPUs, expected 8 (`p5`)", "HRN-NODE-UNFIT"),
            ("`nvme_drives` must be at least 8, but is 7", "HRN-NODE-PART-MISSING"),
            ("`nvme_drives` is 7, on most nodes 8", "HRN-NODE-PART-MISSING"),
            ("`nvme_drives` is 9, on most nodes 8", "HRN-NODE-UNFIT"),
            ("`kernel` is 6.5, on most nodes 6.8", "HRN-NODE-UNFIT"),
            ("nvidia-smi lists many, expected few", "HRN-NODE-UNFIT"),
        ] {
            assert_eq!(Code::for_unfit(why).name, code, "{why}");
        }
    }

    #[test]
    fn messages() {
        insta::assert_snapshot!(CODES.map(|code| code.page()).join("\n"));
    }
}
