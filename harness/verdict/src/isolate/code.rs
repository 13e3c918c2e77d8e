//! The codes of culprits, which stay as they are, and what is told of each: the cause, what to do next, the line for Slurm.

use super::named::Place;

/// How grave it is: what is to be done with the node, gravest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Drain it, and have it replaced.
    Replace,
    Reboot,
    Reset,
    /// Nothing of it is broken: what it was told is.
    Configure,
    Watch,
}

impl Severity {
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

#[derive(Debug)]
pub struct Code {
    pub name: &'static str,
    pub severity: Severity,
    pub what: &'static str,
    pub cause: &'static str,
    pub next: &'static str,
    /// Whether taking a node out of the queue helps.
    pub drains: bool,
}

/// What reasons of drained nodes begin with, so that nobody else's is ever touched.
pub const REASON: &str = "[harness]";
/// In letters: lists of nodes are read by people.
const MOST_EVIDENCE: usize = 120;

impl Code {
    pub fn find(name: &str) -> Option<&'static Code> {
        CODES.iter().copied().find(|code| code.name.eq_ignore_ascii_case(name))
    }

    pub fn of(place: Place) -> &'static Code {
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

    /// That of a part that a run names, by what it says of it; none for a node that is only left over by elimination.
    pub fn of_culprit(part: &str, told: &str) -> Option<&'static Code> {
        let cause = told.split(':').next().unwrap_or_default();
        let code = match part {
            "node" => match cause {
                "NODE_FAIL" | "BOOT_FAIL" | "host-unreachable" => "HRN-NODE-LOST",
                "hang" | "stall" => "HRN-NODE-BROKEN",
                _ if cause.starts_with("exit ") || cause.starts_with("signal ") => "HRN-NODE-BROKEN",
                // Slow by elimination: which part of it is to be found out.
                _ => return None,
            },
            _ if told.contains("keeps the others waiting") || part.starts_with("rank") => "HRN-RANK-LATE",
            _ if part.starts_with("gpu") && told.contains("wrong") => "HRN-GPU-WRONG",
            _ if part.starts_with("gpu") => "HRN-GPU-SLOW",
            "fabric" => "HRN-PORT-SLOW",
            _ if told.contains("not listed") => "HRN-NIC-MISSING",
            _ if told.contains("moved no byte") => "HRN-NIC-DEAD",
            _ => "HRN-NIC-SLOW",
        };
        Code::find(code)
    }

    /// What Slurm is told of a node that is drained because of it: one line, for whoever looks at the queue.
    pub fn reason(&self, part: &str, evidence: &str, run: &str) -> String {
        let evidence: String = evidence.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let evidence = match evidence.char_indices().nth(MOST_EVIDENCE) {
            Some((at, _)) => format!("{}...", evidence.get(..at).unwrap_or_default()),
            None => evidence,
        };
        format!("{REASON} {} {part}: {evidence}, run {run}", self.name)
    }

    /// The exact line, which nobody runs unasked.
    pub fn drain(&self, node: &str, part: &str) -> String {
        format!("scontrol update nodename={node} state=drain reason=\"{REASON} {} {part}\"", self.name)
    }

    pub fn page(&self) -> String {
        let slurm = match self.drains {
            true => format!(
                "  {}\n{}  and after a run on it that passes, if the reason is still ours (`harness isolate \
                 --resume-drained` does both):\n  scontrol update nodename=NODE state=resume\n",
                self.drain("NODE", "PART"),
                match self.severity.asks_for_drain() {
                    true => "  `harness isolate --drain` does so\n",
                    false =>
                        "  `harness isolate --drain` leaves it to you: it takes no node out for this severity\n",
                }
            ),
            false => "  none: no node is at fault, and draining one changes nothing\n".to_owned(),
        };
        format!(
            "{}: {}\n\nseverity\n  {}\n\ncause\n  {}\n\nnext\n  {}\n\nSlurm\n{slurm}",
            self.name,
            self.what,
            self.severity.name(),
            self.cause,
            self.next
        )
    }
}

pub static CODES: [&Code; 20] = [
    &NODE_SLOW,
    &NODE_UNCLEAR,
    &NODE_BROKEN,
    &NODE_LOST,
    &NODE_UNFIT,
    &NODE_DIFFERS,
    &GPU_SLOW,
    &GPU_WRONG,
    &GPU_XID,
    &NVLINK_SLOW,
    &NIC_SLOW,
    &NIC_DEAD,
    &NIC_MISSING,
    &NIC_DOWN,
    &NIC_RETRANS,
    &PORT_SLOW,
    &LINK_SLOW,
    &NET_DOWNGRADED,
    &RANK_LATE,
    &FLEET_SLOW,
];

static NODE_SLOW: Code = Code {
    name: "HRN-NODE-SLOW",
    severity: Severity::Reboot,
    what: "a node on which everything is slow alike",
    cause: "what all of its parts have in common: power or thermal capping, a wrong CPU governor, another tenant's \
            process, memory or PCIe that trained down after a boot",
    next: "look at clocks, temperatures and throttle reasons (`nvidia-smi -q -d PERFORMANCE,CLOCK`), end what else \
           runs there, reboot it once and isolate again on it and good partners; replace it if it comes back",
    drains: true,
};

static NODE_UNCLEAR: Code = Code {
    name: "HRN-NODE-UNCLEAR",
    severity: Severity::Watch,
    what: "a node that is slow with every good partner, and none of whose parts is slow by itself",
    cause: "the way between its GPUs and its NICs (PCIe switches, GPUDirect, peer memory), its settings, or a fault that \
            costs less than can be told part by part",
    next: "compare its settings with those of the others (`harness inventory diff`), then isolate again on it and good \
           partners; reboot it if it stays",
    drains: true,
};

static NODE_BROKEN: Code = Code {
    name: "HRN-NODE-BROKEN",
    severity: Severity::Reboot,
    what: "a node with which runs end badly or hang, or come out wrong",
    cause: "a driver, a library or a device on it that fails outright",
    next: "look at stderr of its runs and at its kernel's log (Xid lines), reboot it, isolate again; replace it if it \
           comes back",
    drains: true,
};

static NODE_LOST: Code = Code {
    name: "HRN-NODE-LOST",
    severity: Severity::Replace,
    what: "a node that went away while a job ran on it, did not come up, or gives no answer",
    cause: "it crashed, lost its power or its network; the launcher said so itself",
    next: "look at its console and at the controller's log; a node that comes back is isolated with good partners before \
           it takes jobs again",
    drains: true,
};

static NODE_UNFIT: Code = Code {
    name: "HRN-NODE-UNFIT",
    severity: Severity::Configure,
    what: "a node that is not what it should be: devices, versions or settings differ",
    cause: "the probe's own words stand in the evidence",
    next: "make it like the others (`harness inventory diff` tells in what it is not), then probe it again",
    drains: true,
};

static GPU_SLOW: Code = Code {
    name: "HRN-GPU-SLOW",
    severity: Severity::Reset,
    what: "one GPU that is slower by itself than those of its like",
    cause: "thermal or power capping of that GPU, memory errors with remapping pending, a PCIe link of fewer lanes",
    next: "look at its clocks, temperature, throttle reasons and remapped rows (`nvidia-smi -q -i N`), reset it or reboot \
           the node, isolate again; replace the node if it comes back",
    drains: true,
};

static GPU_WRONG: Code = Code {
    name: "HRN-GPU-WRONG",
    severity: Severity::Replace,
    what: "one GPU whose results are wrong",
    cause: "silent corruption in that GPU or its memory",
    next: "take it out at once: results of jobs on it cannot be trusted; replace the node",
    drains: true,
};

static NVLINK_SLOW: Code = Code {
    name: "HRN-NVLINK-SLOW",
    severity: Severity::Reset,
    what: "a node whose GPUs are slow together, and each of them good alone",
    cause: "NVLink or NVSwitch with lanes down or retrying, or a fabric manager that does not run",
    next: "look at `nvidia-smi nvlink -s -e` and at the fabric manager, reset all GPUs of the node together or reboot it, \
           isolate again; replace the node if it comes back",
    drains: true,
};

static NIC_SLOW: Code = Code {
    name: "HRN-NIC-SLOW",
    severity: Severity::Replace,
    what: "one NIC that is slower than its namesakes with several good partners",
    cause: "the NIC, its PCIe link or its cable: retransmits and link speed tell which",
    next: "look at its retransmits and at its PCIe width and speed, reboot the node once; replace it if it comes back",
    drains: true,
};

static NIC_DEAD: Code = Code {
    name: "HRN-NIC-DEAD",
    severity: Severity::Replace,
    what: "a NIC that is listed and carries nothing",
    cause: "its link is down, or its driver lost it; collectives go on over the others and are slower",
    next: "look at its link state, reboot the node once; replace it if it comes back",
    drains: true,
};

static NIC_MISSING: Code = Code {
    name: "HRN-NIC-MISSING",
    severity: Severity::Reboot,
    what: "a NIC that the instance type has and the node does not list",
    cause: "it did not come up at boot, or it was never attached: a launch template with too few interfaces looks so on \
            every node",
    next: "compare with other nodes; alone, reboot it and then replace it; on all of them, correct the launch template",
    drains: true,
};

static PORT_SLOW: Code = Code {
    name: "HRN-PORT-SLOW",
    severity: Severity::Replace,
    what: "a node all of whose NICs are slow alike, and whose GPUs are good",
    cause: "what all of its NICs go through: the node's port at its switch, GPUDirect RDMA that is off, the driver or the \
            settings of the fabric",
    next: "compare its fabric settings and driver with the others (`harness inventory diff`); if they are alike, give the \
           port to whoever keeps the network, or replace the node",
    drains: true,
};

static LINK_SLOW: Code = Code {
    name: "HRN-LINK-SLOW",
    severity: Severity::Watch,
    what: "the way between two groups of nodes, proven with several sets of nodes that are good otherwise",
    cause: "a cable or a port between the switches of the two groups, or too much traffic of others on them",
    next: "give the two groups and the time to whoever keeps the network; until then place jobs within one of them",
    drains: false,
};

static RANK_LATE: Code = Code {
    name: "HRN-RANK-LATE",
    severity: Severity::Watch,
    what: "a rank that keeps the others waiting",
    cause: "what its process does between collectives: its CPU, its storage, its share of the work",
    next: "look at the load of its CPUs and at who else runs there; isolate again with another workload",
    drains: true,
};

static NIC_DOWN: Code = Code {
    name: "HRN-NIC-DOWN",
    severity: Severity::Reboot,
    what: "a NIC that is listed, and whose link is not active",
    cause: "its link did not train or was lost; nothing of a job can go over it",
    next: "reboot the node once; replace it if the link stays down",
    drains: true,
};

static NIC_RETRANS: Code = Code {
    name: "HRN-NIC-RETRANS",
    severity: Severity::Watch,
    what: "a NIC whose transmissions timed out while the runs that its node is in were slow",
    cause: "loss on its way: its cable or port, or a part of the network that many were on at the same time",
    next: "isolate again without this run's word (`--no-evidence`): where the NIC is slow by itself it is named so; where \
           not, give the node and the time to whoever keeps the network",
    drains: true,
};

static GPU_XID: Code = Code {
    name: "HRN-GPU-XID",
    severity: Severity::Reset,
    what: "a node whose driver told of a fault of a GPU (Xid), and that the runs speak against",
    cause: "the number of the Xid tells: 13, 31 and 43 mostly are the program's; 48, 63, 64, 94, 95 memory; 74 NVLink; 79 a \
            GPU that has fallen off its bus",
    next: "look the number up in the driver's manual, reset the GPU or reboot the node, isolate again; replace the node if \
           48, 74, 79 or 95 comes back",
    drains: true,
};

static NODE_DIFFERS: Code = Code {
    name: "HRN-NODE-DIFFERS",
    severity: Severity::Configure,
    what: "a node that the runs speak against, and whose software or settings are not those of most nodes",
    cause: "another image, a driver that was updated on some nodes only, a setting of its own",
    next: "make it like the others (`harness inventory diff`), then isolate again on it and good partners",
    drains: true,
};

static NET_DOWNGRADED: Code = Code {
    name: "HRN-NET-DOWNGRADED",
    severity: Severity::Configure,
    what: "a node whose NCCL did not take the way that it should: no GPUDirect RDMA, sockets, or another provider than `efa`",
    cause: "a module that is not loaded (gdrdrv, nvidia-peermem), a plugin that was not found, or a variable that says so",
    next: "read the log of NCCL on it (`harness logs nccl`) and its environment (`harness inventory diff`), correct it, \
           isolate again",
    drains: true,
};

static FLEET_SLOW: Code = Code {
    name: "HRN-FLEET-SLOW",
    severity: Severity::Configure,
    what: "all nodes slow alike, against what an accepted baseline lets a good cluster have; no node is blamed",
    cause: "what all of them have in common: a variable, an image, a driver, the network as a whole, or a baseline that was \
            made on something else",
    next: "compare the software with that of the baseline's runs (`harness baseline show`), lint the environment (`harness \
           check`), look at what was changed since; isolate compares nodes with each other, so that it finds nobody here",
    drains: false,
};
