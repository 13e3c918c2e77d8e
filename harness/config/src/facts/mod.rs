//! The facts that a probe of a node reports, each declared once: its name, what it is, its kind, and whether nodes of
//! one cluster have it alike. A new fact is a line in `probe.sh` and its entry here.

mod changes;
mod compare;
mod requirement;
pub mod version;

pub use changes::{ChangedFact, changed_facts};
pub use compare::{Comparison, against_golden, against_majority};
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
pub const FACTS: [Fact; 42] = [
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
    shared_fact("launchers", FactType::Names, "mpirun and torchrun, and where they lie"),
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
