//! The facts that a probe of a node reports, each declared once: its name, what it is, its kind, and whether nodes of
//! one cluster have it alike. A new fact is a line in `probe.sh` and its entry here.

mod compare;
mod requirement;
pub mod version;

pub use compare::{Comparison, against_golden, against_majority};
pub use requirement::{Bound, Requirement};
pub use version::compare as compare_versions;

/// What a fact's value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
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
    pub kind: Kind,
    /// Whether it is part of a fingerprint.
    pub is_alike: bool,
}

const fn of_kind(name: &'static str, kind: Kind, about: &'static str) -> Fact {
    Fact { name, about, kind, is_alike: true }
}

/// A node's own, and of this moment.
const fn of_node(name: &'static str, kind: Kind, about: &'static str) -> Fact {
    Fact { name, about, kind, is_alike: false }
}

/// Every fact that a probe may report.
pub const FACTS: [Fact; 37] = [
    of_kind("gpus", Kind::Count, "GPUs that nvidia-smi lists"),
    of_kind("gpu", Kind::Text, "their model, as the driver calls it"),
    of_kind("driver", Kind::Version, "NVIDIA's driver"),
    of_kind("ecc", Kind::Text, "whether the GPUs' memory is checked"),
    of_node("ecc_errors", Kind::Count, "errors of that memory which were not corrected, since the last boot"),
    of_kind("gpu_clocks", Kind::Text, "the highest clocks of GPUs and of their memory, in MHz"),
    of_node("gpu_throttled", Kind::Names, "GPUs that run slower than they could, with the driver's reason"),
    of_node("busy", Kind::Names, "processes that compute on the GPUs"),
    of_node("xid", Kind::Names, "the newest lines of the kernel's log in which the driver reports a fault"),
    of_kind("nics", Kind::Names, "EFA devices"),
    of_node("nics_down", Kind::Names, "devices whose link is not active"),
    of_kind("other_rdma_devices", Kind::Names, "RDMA devices that are not EFA"),
    of_kind("efa", Kind::Version, "the kernel's EFA driver"),
    of_kind("efa_installer", Kind::Version, "the installer of the fabric's software"),
    of_kind("libfabric", Kind::Version, "libfabric"),
    of_kind("ofi_nccl", Kind::Version, "NCCL's plugin for libfabric"),
    of_kind("nccl", Kind::Version, "NCCL, by its library's name"),
    of_kind("nccl_tests", Kind::Names, "programs of nccl-tests"),
    of_kind(
        "nccl_tests_missing_libraries",
        Kind::Names,
        "libraries that all_reduce_perf is linked with and that are not found",
    ),
    of_kind(
        "flow_tools",
        Kind::Names,
        "tools of nic-pairs cases; `TOOL:cuda` can move GPU memory, `TOOL:srd` goes over EFA's connections",
    ),
    of_kind("launchers", Kind::Names, "mpirun and torchrun, and where they lie"),
    of_kind("nsys", Kind::Version, "the nsys that a job would use"),
    of_kind("nsys_path", Kind::Text, "where it lies"),
    of_kind("nsys_plugins", Kind::Names, "its plugins"),
    of_kind("cuda", Kind::Version, "the CUDA toolkit"),
    of_kind("kernel", Kind::Text, "the kernel"),
    of_kind("os", Kind::Text, "the operating system"),
    of_kind("instance", Kind::Text, "the instance type, as the firmware reports it"),
    of_kind("gdrdrv", Kind::Text, "`loaded` or `not loaded`: the module that copies from GPUs' memory"),
    of_kind("fabric_manager", Kind::Text, "the state of its service: `active`"),
    of_kind("containers", Kind::Names, "what runs containers: enroot, pyxis"),
    of_kind("memlock", Kind::Bytes, "how much memory a process may lock"),
    of_kind("huge_pages", Kind::Count, "huge pages that are set aside"),
    of_kind("shared", Kind::Text, "`writable`, or what is wrong with the folder that all nodes see"),
    of_node("shared_free", Kind::Bytes, "room in that folder"),
    of_kind("shared_source", Kind::Text, "what is mounted there"),
    of_kind("environment", Kind::Names, "variables of NCCL, libfabric and its plugin that a job finds set"),
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
