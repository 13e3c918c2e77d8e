//! What the probe of a simulated node finds of its host and of the health of its GPUs, and what it finds where one of
//! these facts is bad: one row each.

use crate::pci;
use model::fault::Fault;

/// A fact as the lines of `probe.sh` give it.
pub(crate) enum Answer {
    Fact(String),
    List(Vec<String>),
    /// Why it has no value.
    Unreported(String),
}

/// The GPUs of a simulated node.
#[derive(Clone, Copy)]
pub(crate) struct Gpus {
    pub count: u32,
    pub are_a100: bool,
}

/// The value of a healthy node, and the bad one.
struct HostFact {
    name: &'static str,
    healthy: FactValue,
    bad: FactValue,
}

#[derive(Clone, Copy)]
enum FactValue {
    Is(&'static str),
    Has(&'static [&'static str]),
    /// It is absent, for this reason.
    Lacks(&'static str),
    /// What differs by instance: of a p5, and of a p4de.
    ByGpu(&'static str, &'static str),
    /// Each line for every GPU, NIC and drive.
    Devices {
        lanes_of_first: u32,
    },
}

use FactValue::{ByGpu, Devices, Has, Is, Lacks};

const fn row(name: &'static str, healthy: FactValue, bad: FactValue) -> HostFact {
    HostFact { name, healthy, bad }
}

const XID: &str = "[ 4127.193] NVRM: Xid (PCI:0000:53:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.";

/// Read from the lines of the list `xid`.
const XID_FAULTS: &str = "xid_faults";

/// Printed by every probe.
static HOST: [HostFact; 47] = [
    row("gpu_persistence", Is("Enabled"), Is("Disabled")),
    row("gpu_fabric", Is("Completed, Success"), Is("Completed, Success and In Progress, N/A")),
    row("gpu_power_limits", ByGpu("700.00 W", "400.00 W"), Is("500.00 W")),
    row("gpu_power_reduced", Has(&[]), Has(&["gpu3 500.00 W of 700.00 W"])),
    row("gpu_app_clocks", ByGpu("1980/2619", "1410/1593"), Is("1095/1215")),
    row("gpu_errors", Has(&[]), Has(&["gpu3 GPU Recovery Action: Reset"])),
    row(
        "nvlinks",
        ByGpu("144 at 26.562 GB/s", "96 at 25 GB/s"),
        Has(&["143 at 26.562 GB/s", "1 at 19.922 GB/s"]),
    ),
    row("nvswitch_firmware", Has(&["96.10.57.00.01"]), Has(&["96.10.57.00.01", "96.10.6d.00.01"])),
    row("sram_errors", Has(&[]), Has(&["gpu3 Uncorrectable SEC-DED: 4"])),
    row("ecc_corrected", Is("3"), Is("20000001")),
    row("rows_remapped", Is("0"), Is("11")),
    row("rows_pending", Has(&[]), Has(&["gpu3 Pending"])),
    row("rows_spent", Has(&[]), Has(&["gpu3 1 banks: Low"])),
    row("dcgm_health", Is("Healthy"), Is("Failure")),
    row("pcie_replays", Has(&[]), Has(&["gpu3 90210 replays in 60 minutes"])),
    row(XID_FAULTS, Has(&[]), Has(&[XID])),
    row("kernel_errors", Has(&[]), Has(&["[ 912.4] I/O error, dev nvme3n1, sector 7812 op 0x0:(READ)"])),
    row("cpus", ByGpu("192", "96"), Is("191")),
    row(
        "cpu_model",
        ByGpu("AMD EPYC 7R13 Processor", "Intel(R) Xeon(R) Platinum 8275CL CPU"),
        Is("AMD EPYC"),
    ),
    row("sockets", Is("2"), Is("1")),
    row("numa_nodes", Is("2"), Is("1")),
    row("cpu_governor", Is("performance"), Is("powersave")),
    row("cpu_max_mhz", Is("3600"), Is("2650")),
    row("clock_source", Is("tsc"), Is("hpet")),
    row("numa_balancing", Is("0"), Is("1")),
    row("memory", ByGpu("2164663517184", "1204521435136"), Is("1030792151040")),
    row("swap", Has(&[]), Has(&["/dev/nvme0n1p2"])),
    row("host_ecc", Has(&[]), Has(&["mc0: 2 errors not corrected"])),
    row("pci_devices", Devices { lanes_of_first: 16 }, Devices { lanes_of_first: 8 }),
    row("pci_lost", Has(&[]), Has(&["0000:53:00.0 10de:2330"])),
    row("pcie_errors", Has(&[]), Has(&["0000:53:00.0 10de:2330: 3 nonfatal errors"])),
    row("iommu_groups", Is("0"), Is("61")),
    row("nvme_drives", Is("8"), Is("7")),
    row("nvme_bytes", ByGpu("30400000000000", "8000000000000"), Is("26600000000000")),
    row("nvme_broken", Has(&[]), Has(&["nvme3 dead"])),
    row("nvme_critical", Has(&[]), Has(&["nvme3 critical warning 4"])),
    row("nvme_media_errors", Has(&[]), Has(&["nvme3 media errors 12"])),
    row("ethernet", Has(&["ens32 ena up mtu 9001"]), Has(&["ens32 ena up mtu 1500"])),
    row("link_losses", Is("1"), Is("6")),
    row("nic_rates", Is("100 Gb/sec (4X EDR)"), Is("25 Gb/sec (1X EDR)")),
    row("os_image", Is("ami-0123456789abcdef0"), Is("ami-0fedcba9876543210")),
    row("cloud_init", Is("done"), Is("error")),
    row("services_failed", Has(&[]), Has(&["chrony.service"])),
    row("clock_synchronised", Is("yes"), Is("no")),
    row("name_resolves", Is("yes"), Is("no")),
    row(
        "nccl_inspector",
        Is("/usr/lib/x86_64-linux-gnu/libnccl-profiler-inspector.so"),
        Lacks("no libnccl-profiler-inspector.so in LD_LIBRARY_PATH or in the loader's folders"),
    ),
    row("mounts", Has(&["/ ext4", "/fsx lustre"]), Has(&["/ ext4"])),
];

/// Beside them; the probe has them from elsewhere where they are sound.
static OTHERS: [HostFact; 16] = [
    row("disks_full", Has(&[]), Has(&["/ 97 % used"])),
    row("open_files", Is("1048576"), Is("1024")),
    row("ecc_errors", Is("0"), Is("2")),
    row("kernel", Is(""), Is("6.8.0-1018-SIMULATED")),
    row("os", Is(""), Is("another simulated system")),
    row("nccl", Is(""), Is("2.23.4")),
    row("efa", Is(""), Is("2.13.0")),
    row("libfabric", Is(""), Is("1.22.0amzn5.0")),
    row("ofi_nccl", Is(""), Is("1.13.2")),
    row("cuda", Is(""), Is("12.4.1")),
    row("gdrdrv", Is(""), Is("not loaded")),
    row("fabric_manager", Is(""), Is("failed")),
    row("memlock", Is(""), Is("8388608")),
    row("huge_pages", Is(""), Is("0")),
    row("gpu_vbios", Has(&[]), Has(&["96.00.30.00.01"])),
    row("nic_firmware", Has(&[]), Has(&["0.0.0.1"])),
];

/// Of a cluster with Kubernetes: all its nodes have these where a fault concerns one of them.
static KUBERNETES: [HostFact; 5] = [
    row("node_ready", Is("True"), Is("Unknown")),
    row("gpu_labels", Has(&[]), Has(&["nvidia.com/gpu.count=7: nvidia-smi lists 8"])),
    row("mig_labels", Has(&[]), Has(&["nvidia.com/mig.config=all-1g.10gb"])),
    row(
        "device_pods",
        Has(&["aws-efa-k8s-device-plugin", "nvidia-device-plugin"]),
        Has(&["aws-efa-k8s-device-plugin"]),
    ),
    row(
        "device_pods_bad",
        Has(&[]),
        Has(&["kube-system/nvidia-device-plugin-x7x2k: not ready: CrashLoopBackOff"]),
    ),
];

/// The facts that a simulated node can have bad.
pub(crate) fn names() -> impl Iterator<Item = &'static str> + Clone {
    HOST.iter().chain(&OTHERS).chain(&KUBERNETES).map(|fact| fact.name)
}

/// What Kubernetes reports of a node with these faults; `is_asked` are the facts that a fault of some node concerns.
pub(crate) fn kubernetes_answers<'a>(
    gpus: Gpus,
    faults: &'a [&'a Fault],
    is_asked: impl Fn(&str) -> bool + 'a,
) -> impl Iterator<Item = (&'static str, Answer)> + 'a {
    KUBERNETES.iter().filter(move |fact| is_asked(fact.name)).map(move |fact| {
        let given = if is_bad(faults, fact.name) { fact.bad } else { fact.healthy };
        (fact.name, answer(gpus, fact.name, given))
    })
}

fn is_bad(faults: &[&Fault], name: &str) -> bool {
    faults.iter().any(|fault| matches!(fault, Fault::BadFact { fact } if fact == name))
}

/// Each fact with what a node with these faults answers.
pub(crate) fn answers<'a>(
    gpus: Gpus,
    faults: &'a [&'a Fault],
) -> impl Iterator<Item = (&'static str, Answer)> + 'a {
    let is_bad = move |name: &str| is_bad(faults, name);
    let of_host = HOST.iter().chain(&OTHERS[..2]).map(move |fact| {
        let given = if is_bad(fact.name) { fact.bad } else { fact.healthy };
        (fact.name, answer(gpus, fact.name, given))
    });
    // A list goes on, and a fact is replaced.
    let of_others = OTHERS[2..].iter().filter(move |fact| is_bad(fact.name) && fact.name != ECC);
    let all = of_host.chain(of_others.map(move |fact| (fact.name, answer(gpus, fact.name, fact.bad))));
    all.map(|(name, answer)| (if name == XID_FAULTS { "xid" } else { name }, answer))
}

/// Uncorrected errors of the first GPU, which nvidia-smi prints in the row of that GPU.
pub(crate) fn ecc_errors(faults: &[&Fault]) -> u32 {
    if is_bad(faults, ECC) { 2 } else { 0 }
}

const ECC: &str = "ecc_errors";

fn answer(gpus: Gpus, name: &str, given: FactValue) -> Answer {
    match given {
        Is(text) => Answer::Fact(text.to_owned()),
        Has(items) => Answer::List(items.iter().map(|item| (*item).to_owned()).collect()),
        Lacks(why) => Answer::Unreported(why.to_owned()),
        ByGpu(newer, older) => {
            let text = if gpus.are_a100 { older } else { newer }.to_owned();
            if name == "nvlinks" { Answer::List(vec![text]) } else { Answer::Fact(text) }
        }
        Devices { lanes_of_first } => {
            let model = if gpus.are_a100 { "10de:20b2" } else { "10de:2330" };
            let on_bus = (0..gpus.count).map(|gpu| {
                let lanes = if gpu == 0 { lanes_of_first } else { 16 };
                format!("0000:{:02x}:00.0 {model} x{lanes}", pci::bus(gpus.count, gpu as usize))
            });
            let drives = (0..8).map(|drive| format!("0000:{:02x}:1f.0 1d0f:cd01 x4", 0x20 + drive));
            Answer::List(on_bus.chain(drives).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_is_a_declared_fact_whose_bad_value_differs_from_the_good_one() {
        let shown = |given: FactValue| match given {
            Is(text) | ByGpu(text, _) | Lacks(text) => text.to_owned(),
            Has(items) => items.join(", "),
            Devices { lanes_of_first } => lanes_of_first.to_string(),
        };
        for fact in HOST.iter().chain(&OTHERS).chain(&KUBERNETES) {
            assert!(config::facts::fact(fact.name).is_some(), "{}", fact.name);
            assert_ne!(shown(fact.healthy), shown(fact.bad), "{}", fact.name);
        }
    }
}
