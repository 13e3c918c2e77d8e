//! The facts that a probe of a node reports, each declared once: its name, what it is, its kind, and whether nodes of
//! one cluster have it alike. A new fact is a line in `probe.sh` and its entry here; what Kubernetes
//! reports of a node is read in `kubernetes.rs` of the probe.

mod changes;
mod compare;
mod reader;
mod requirement;
pub mod version;

pub use changes::{ChangedFact, changed_facts};
pub use compare::{Comparison, against_golden, against_majority, missing_and_additional};
pub(crate) use reader::{requirement_keys, requirements};
pub use requirement::{Bound, Requirement};
pub use version::compare as compare_versions;

/// What a fact's value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactType {
    /// A whole number.
    Count,
    /// Or `unlimited`.
    Bytes,
    /// Compared number by number: 1.10 is above 1.9.
    Version,
    /// Only `equals` may be asked of it.
    Text,
    /// Things by name; a bound holds for how many there are.
    Names,
}

/// The declaration of a fact; its value is in `ProbedNode::facts`.
pub struct Fact {
    /// As in `probe.sh` and in `[probe]`: `driver`.
    pub name: &'static str,
    /// What it is, for people.
    pub about: &'static str,
    /// How it is read and compared.
    pub kind: FactType,
    /// Whether it is part of a fingerprint.
    pub is_alike: bool,
}

const fn shared_fact(name: &'static str, kind: FactType, about: &'static str) -> Fact {
    Fact { name, about, kind, is_alike: true }
}

/// A node's own, and of this moment.
const fn node_fact(name: &'static str, kind: FactType, about: &'static str) -> Fact {
    Fact { name, about, kind, is_alike: false }
}

/// Every fact that a probe may report.
pub const FACTS: [Fact; 100] = [
    shared_fact("gpus", FactType::Count, "GPUs that nvidia-smi lists"),
    shared_fact("gpu", FactType::Text, "their model, as the driver calls it"),
    shared_fact("driver", FactType::Version, "NVIDIA's driver"),
    shared_fact("ecc", FactType::Text, "whether the GPUs' memory is checked"),
    node_fact(
        "ecc_errors",
        FactType::Count,
        "errors of that memory which were not corrected, since the last boot",
    ),
    shared_fact("gpu_clocks", FactType::Text, "the highest clocks of GPUs and of their memory, in MHz"),
    node_fact(
        "gpu_throttled",
        FactType::Names,
        "GPUs that run slower than they could, with the driver's reason",
    ),
    node_fact("gpu_ids", FactType::Names, "the UUID and the serial number of each GPU"),
    shared_fact("gpu_vbios", FactType::Names, "versions of the GPUs' firmware"),
    shared_fact("nvswitch_firmware", FactType::Names, "versions of the NVSwitches' firmware"),
    node_fact("machine", FactType::Text, "the instance id, else the machine's serial number"),
    node_fact("busy", FactType::Names, "processes that compute on the GPUs"),
    node_fact(
        "xid",
        FactType::Names,
        "the newest lines of the kernel's log in which the driver reports a fault",
    ),
    shared_fact("nics", FactType::Names, "EFA devices"),
    node_fact("nics_down", FactType::Names, "devices whose link is not active"),
    node_fact("nic_ids", FactType::Names, "the GUID and the PCI address of each device"),
    shared_fact("nic_firmware", FactType::Names, "versions of the devices' firmware"),
    shared_fact("other_rdma_devices", FactType::Names, "RDMA devices that are not EFA"),
    shared_fact("efa", FactType::Version, "the kernel's EFA driver"),
    shared_fact("efa_installer", FactType::Version, "the installer of the fabric's software"),
    shared_fact("libfabric", FactType::Version, "libfabric"),
    shared_fact("ofi_nccl", FactType::Version, "NCCL's plugin for libfabric"),
    shared_fact("nccl", FactType::Version, "NCCL, by its library's name"),
    shared_fact(
        "nccl_inspector",
        FactType::Text,
        "the plugin of NCCL's Inspector: `nccl_inspector` of `[paths]`, else where the loader looks",
    ),
    shared_fact("nccl_tests", FactType::Names, "programs of nccl-tests"),
    shared_fact(
        "nccl_tests_missing_libraries",
        FactType::Names,
        "libraries that all_reduce_perf is linked with and that are not found",
    ),
    shared_fact(
        "flow_tools",
        FactType::Names,
        "tools of nic-pairs cases; `TOOL:cuda` can move GPU memory, `TOOL:srd` goes over EFA's connections",
    ),
    node_fact(
        "node_programs",
        FactType::Names,
        "programs that test a node by itself (`where_installed` of a case), and the folder of the local disks",
    ),
    shared_fact("launchers", FactType::Names, "mpirun and torchrun, and where they lie"),
    node_fact(
        "open_programs",
        FactType::Names,
        "programs of `[paths]`, and folders above them, that every user can write",
    ),
    shared_fact("nsys", FactType::Version, "the nsys that a job would use"),
    shared_fact("nsys_path", FactType::Text, "where it lies"),
    shared_fact("nsys_plugins", FactType::Names, "its plugins"),
    shared_fact("cuda", FactType::Version, "the CUDA toolkit"),
    shared_fact("kernel", FactType::Text, "the kernel"),
    shared_fact("os", FactType::Text, "the operating system"),
    shared_fact("instance", FactType::Text, "the instance type, as the firmware reports it"),
    shared_fact(
        "gdrdrv",
        FactType::Text,
        "`loaded` or `not loaded`: the module that copies from GPUs' memory",
    ),
    shared_fact("fabric_manager", FactType::Text, "the state of its service: `active`"),
    shared_fact("containers", FactType::Names, "what runs containers: enroot, pyxis"),
    shared_fact("memlock", FactType::Bytes, "how much memory a process may lock"),
    shared_fact("huge_pages", FactType::Count, "huge pages that are set aside"),
    shared_fact("shared", FactType::Text, "`writable`, or what is wrong with the folder that all nodes see"),
    node_fact("shared_free", FactType::Bytes, "room in that folder"),
    shared_fact("shared_source", FactType::Text, "what is mounted there"),
    shared_fact(
        "environment",
        FactType::Names,
        "variables of NCCL, libfabric and its plugin that a job finds set",
    ),
    shared_fact(
        "gpu_persistence",
        FactType::Text,
        "`Enabled` where the driver stays loaded while no program runs",
    ),
    shared_fact(
        "gpu_fabric",
        FactType::Text,
        "how the GPUs are registered with the NVSwitches: `Completed, Success`",
    ),
    shared_fact("gpu_power_limits", FactType::Text, "how much power a GPU may draw"),
    shared_fact(
        "gpu_app_clocks",
        FactType::Text,
        "the clocks that programs get, of GPUs and of their memory, in MHz",
    ),
    node_fact("gpu_power_reduced", FactType::Names, "GPUs whose power limit is below their default"),
    node_fact("gpu_errors", FactType::Names, "what `nvidia-smi -q` shows as an error, or that it failed"),
    shared_fact("nvlinks", FactType::Names, "how many NVLinks run at which speed"),
    node_fact(
        "sram_errors",
        FactType::Names,
        "GPUs with uncorrected errors of their caches, in their whole life",
    ),
    node_fact(
        "ecc_corrected",
        FactType::Count,
        "memory errors that were corrected, in the whole life of the GPU with most",
    ),
    node_fact(
        "rows_remapped",
        FactType::Count,
        "rows or pages of memory that are out of use, of the GPU with most",
    ),
    node_fact(
        "rows_pending",
        FactType::Names,
        "GPUs with a row or page that waits to be taken out of use, or could not be",
    ),
    node_fact(
        "rows_spent",
        FactType::Names,
        "GPUs with banks of memory that have few spare rows left, or none",
    ),
    node_fact(
        "dcgm_health",
        FactType::Text,
        "what the watches of a running DCGM have found, of all GPUs: `Healthy`, `Warning`, `Failure`",
    ),
    node_fact("pcie_replays", FactType::Names, "GPUs that repeat more than 8 packets a minute on PCIe"),
    node_fact("xid_faults", FactType::Names, "those lines of `xid` whose Xid speaks against hardware"),
    node_fact(
        "kernel_errors",
        FactType::Names,
        "lines of the kernel's log about broken drives, memory, NVSwitches or PCIe, and GPUs that its driver lost or could not start",
    ),
    shared_fact("cpus", FactType::Count, "processors that the kernel runs"),
    shared_fact("cpu_model", FactType::Text, "their model"),
    shared_fact("sockets", FactType::Count, "sockets with a processor"),
    shared_fact("numa_nodes", FactType::Count, "NUMA nodes"),
    shared_fact("cpu_governor", FactType::Text, "what chooses their clocks: `performance`"),
    shared_fact("cpu_max_mhz", FactType::Count, "the highest clock that it may choose"),
    shared_fact("clock_source", FactType::Text, "what the kernel reads the time from"),
    shared_fact("numa_balancing", FactType::Text, "`0` where the kernel moves no memory between NUMA nodes"),
    node_fact("memory", FactType::Bytes, "memory of the host"),
    node_fact("swap", FactType::Names, "devices and files that memory is swapped to"),
    node_fact(
        "host_ecc",
        FactType::Names,
        "memory controllers of the host with errors that were not corrected",
    ),
    shared_fact(
        "pci_devices",
        FactType::Names,
        "GPUs, NVSwitches, NICs and local drives on PCI: place, model, lanes",
    ),
    node_fact("pci_lost", FactType::Names, "devices on PCI that no longer answer"),
    node_fact(
        "pcie_errors",
        FactType::Names,
        "devices whose PCIe link counts errors that were not corrected",
    ),
    shared_fact("iommu_groups", FactType::Count, "groups of the IOMMU; 0 where it is off"),
    shared_fact("nvme_drives", FactType::Count, "local NVMe drives; volumes of the network are not counted"),
    shared_fact("nvme_bytes", FactType::Bytes, "their size together"),
    node_fact("nvme_broken", FactType::Names, "NVMe drives whose controller is not live"),
    node_fact(
        "nvme_critical",
        FactType::Names,
        "local NVMe drives with a critical warning of SMART; mostly root alone may ask",
    ),
    node_fact("nvme_media_errors", FactType::Names, "those that could not read or write some data, by SMART"),
    shared_fact("ethernet", FactType::Names, "network interfaces: driver, state, MTU"),
    node_fact(
        "link_losses",
        FactType::Count,
        "how often one interface or port has lost its link since the boot, of the one with most",
    ),
    shared_fact("nic_rates", FactType::Text, "rates of the ports of RDMA devices"),
    shared_fact("os_image", FactType::Text, "the image that the node was started from: `ami-...`"),
    node_fact("cloud_init", FactType::Text, "how the setup of the image ended: `done`"),
    shared_fact(
        "services_failed",
        FactType::Names,
        "services of systemd that have failed, but for those that a timer starts",
    ),
    node_fact("clock_synchronised", FactType::Text, "`yes` where the clock follows a time server"),
    node_fact("name_resolves", FactType::Text, "`yes` where the node's own name leads to an address"),
    shared_fact(
        "mounts",
        FactType::Names,
        "file systems of disks and of the network; not what is mounted when somebody looks, or by a user",
    ),
    node_fact("disks_full", FactType::Names, "local file systems of which more than 90 % are used"),
    shared_fact("open_files", FactType::Count, "how many files a process may open"),
    node_fact("node_ready", FactType::Text, "Kubernetes' condition `Ready` of the node: `True`"),
    node_fact(
        "node_pressure",
        FactType::Names,
        "what Kubernetes reports the node to be short of: `MemoryPressure`, `DiskPressure`, `PIDPressure`",
    ),
    node_fact("node_health", FactType::Names, "HyperPod's labels of the node's health, as `KEY=VALUE`"),
    node_fact(
        "gpu_labels",
        FactType::Names,
        "labels `nvidia.com/gpu.count` and `gpu.product` that the node itself contradicts",
    ),
    node_fact(
        "mig_labels",
        FactType::Names,
        "labels `nvidia.com/mig*` by which GPUs are parted, or are to be",
    ),
    shared_fact(
        "device_pods",
        FactType::Names,
        "daemons of the GPU operator and device plugins whose pods on the node are ready",
    ),
    node_fact(
        "device_pods_bad",
        FactType::Names,
        "pods of such daemons on the node that are not, with the reason",
    ),
];

/// None where no fact has that name.
pub fn fact(name: &str) -> Option<&'static Fact> {
    FACTS.iter().find(|fact| fact.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_fact_is_declared_once() {
        let names: BTreeSet<&str> = FACTS.iter().map(|fact| fact.name).collect();
        assert_eq!(names.len(), FACTS.len());
    }
}
