//! What a case runs: `workload` of its table. Each kind of workload has a file here, with its keys, its parser and what
//! checking and linting ask of it; what planning asks of it lies beside `plan`.

mod arguments;
mod command;
pub mod model;
mod nccl_tests;
mod nic_pairs;
mod node_tool;
mod table;
mod torch_collective;
mod torch_ddp;
pub mod training;

pub use arguments::variables;
pub use command::Command;
pub use nccl_tests::{Algorithm, NcclTests, Step};
pub use nic_pairs::NicPairs;
pub use node_tool::{
    Fio, FioDirectory, LOCAL_DISKS, NicLatency, NodeTool, PROBED_PROGRAMS, PYTORCH, TORCHRUN, Tool, TorchBurn,
};
pub use table::{Refusal, Setting, SettingValue, WorkloadTable};
pub use torch_collective::{Backend, TorchRunner};
pub use torch_ddp::TorchDdp;

use super::matrix::Combination;
use crate::form::{Condition, Form, Key, Type};
use crate::toml_reader::Value;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use table::WorkloadKind;

/// What a case runs: `kind` of its `workload`.
#[derive(Debug, Clone, PartialEq)]
pub enum Workload {
    /// `nccl-tests` or `torch-collective`: an operation over a sweep of sizes.
    NcclTests(NcclTests),
    /// `nic-pairs`: flows between the NICs of two nodes.
    NicPairs(NicPairs),
    /// `command`: any program.
    Command(Command),
    /// `torchrun`, `fsdp`, `nemo`, `ddp`, `torch-ddp` or `mpi`.
    Training(training::Training),
    /// `dcgm-diag`, `nvbandwidth`, `gpu-burn`, `torch-burn`, `stream` or `fio`: a node by itself.
    NodeTool(NodeTool),
}

/// How each is read, in the order in which messages list them.
const KINDS: [&WorkloadKind; 5] =
    [&nccl_tests::KIND, &nic_pairs::KIND, &command::KIND, &training::KIND, &node_tool::KIND];

/// What reading, checking and linting ask of it.
impl Deref for Workload {
    type Target = dyn WorkloadTable;

    fn deref(&self) -> &Self::Target {
        match self {
            Workload::NcclTests(tests) => tests,
            Workload::NicPairs(pairs) => pairs,
            Workload::Command(command) => command,
            Workload::Training(training) => training,
            Workload::NodeTool(tool) => tool,
        }
    }
}

impl DerefMut for Workload {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Workload::NcclTests(tests) => tests,
            Workload::NicPairs(pairs) => pairs,
            Workload::Command(command) => command,
            Workload::Training(training) => training,
            Workload::NodeTool(tool) => tool,
        }
    }
}

/// The keys of all kinds that `--set` takes.
pub fn settings() -> impl Iterator<Item = &'static Setting> {
    KINDS.into_iter().flat_map(|kind| kind.settings)
}

/// `workload` of a case.
pub(super) fn form() -> Form {
    let stall_s = Key::usual(
        "stall_s",
        "by the kind",
        Type::Whole(LONGEST_STALL_S),
        "a job whose outputs and NIC counters stand still for so many seconds after its first output is ended; 180 for nccl-tests, 900 for trainings, off for commands; 0 turns it off",
    );
    let kind =
        Type::OneOf(|_| KINDS.iter().flat_map(|kind| kind.names).map(|name| (*name).to_owned()).collect());
    let form_of = |kind: &'static WorkloadKind| {
        kind.names.iter().map(move |name| (Condition::Is(name), (kind.form)(name)))
    };
    Form::new([Key::needed("kind", kind, "what is run"), stall_s])
        .by("kind", KINDS.into_iter().flat_map(form_of))
}

/// `environment` of workloads.
pub(in crate::suite) fn environment_key() -> Key {
    Key::optional(
        "environment",
        Type::map(Type::Text),
        "environment variables; they win over the inventory's. `env:NAME` stands for the value of that variable",
    )
}

/// `args` of workloads.
fn args_key() -> Key {
    Key::usual(
        "args",
        "[]",
        Type::texts(),
        "arguments of the program; `env:NAME` stands for the value of that variable",
    )
}

pub(super) fn read(value: &Value<'_>, combination: &Combination<'_>) -> Option<Workload> {
    let table =
        value.table()?.with(combination.values()).no_lists("to sweep, write `matrix = { KEY = [...] }`");
    let of_kind = |kind: &'static WorkloadKind| kind.names.iter().map(move |name| (*name, (kind, *name)));
    let kinds: Vec<_> = KINDS.into_iter().flat_map(of_kind).collect();
    let (kind, name) = table.need("kind")?.one_of(&kinds)?;
    let workload = (kind.read)(&table, name);
    // Read by `stall_s`; asked for here so that it is a known key.
    table.get("stall_s");
    table.close(form);
    workload
}

const LONGEST_STALL_S: std::ops::RangeInclusive<u64> = 0..=86_400;

/// How long a job of the workload may make no progress: as the suite says it, 0 for as long as it likes; else by what
/// it is.
pub(super) fn stall_s(value: &Value<'_>, workload: Option<&Workload>) -> Option<u64> {
    let own =
        value.table().and_then(|table| table.get("stall_s")).and_then(|value| value.whole(LONGEST_STALL_S));
    own.or(workload?.stall_s()).filter(|seconds| *seconds > 0)
}

/// Stands for a workload that could not be read while the rest of its case is.
pub(super) fn placeholder() -> Workload {
    let (program, args, environment) = (String::new(), Vec::new(), BTreeMap::new());
    Workload::Command(Command { program, args, environment, tasks_per_node: 1 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use recipes::catalogue::Catalogue;
    use std::collections::BTreeSet;

    #[test]
    fn each_kind_has_names_of_its_own() {
        let names: Vec<&str> = KINDS.into_iter().flat_map(|kind| kind.names).copied().collect();
        let different: BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(different.len(), names.len(), "{names:?}");
        assert!(KINDS.into_iter().all(|kind| !kind.names.is_empty()));
    }

    #[test]
    fn each_setting_of_a_kind_lies_in_a_workload_that_it_reads() {
        let suite = |workload: &str| {
            let text = format!(
                "instance = \"p5\"\nabout = \"x\"\n[[case]]\nname = \"c\"\nplacement = \"pairs\"\nrecipes = []\n\
                 workload = {{ {workload} }}"
            );
            let suite = crate::suite::Suite::read(&text, "suites/x.toml", &Catalogue::built_in());
            suite.expect("a suite").cases.remove(0).workload
        };
        let tests = "kind = \"nccl-tests\", op = \"all_reduce\", from = 8, to = 16";
        let mut all = [suite(tests), suite("kind = \"nic-pairs\"")];
        for kind in KINDS {
            for setting in kind.settings {
                let found = all.iter_mut().any(|workload| workload.setting(setting.key).is_some());
                assert!(found, "{}", setting.key);
            }
        }
    }
}
