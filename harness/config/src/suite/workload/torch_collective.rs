//! `kind = "torch-collective"`: the same sweep as nccl-tests, by PyTorch under torchrun. It needs neither MPI nor nccl-tests.

use super::super::Place;
use super::environment_key;
use super::nccl_tests::{self, NcclTests};
use super::training::{Within, container_key, port_key, read_container, read_port};
use crate::form::{Form, Key, Type};
use crate::toml_reader::Table;
use metric::op::Op;

/// The kind, as suites say it.
pub(super) const NAME: &str = "torch-collective";

/// What a sweep has beside its sizes where PyTorch runs it.
#[derive(Debug, Clone, PartialEq)]
pub struct TorchRunner {
    /// What moves the data.
    pub backend: Backend,
    /// Where torchrun's processes meet, on the job's first node.
    pub port: u16,
    /// As in the inventory by default.
    pub container: Within,
}

/// A backend of `torch.distributed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// Between GPUs.
    Nccl,
    /// Between CPUs: tries the network and the wiring out where there is no GPU.
    Gloo,
}

impl Backend {
    const ALL: [Backend; 2] = [Backend::Nccl, Backend::Gloo];

    /// As in suites and for PyTorch.
    pub fn name(self) -> &'static str {
        match self {
            Backend::Nccl => "nccl",
            Backend::Gloo => "gloo",
        }
    }
}

/// PyTorch has no other.
const OPS: [Op; 9] = [
    Op::AllReduce,
    Op::AllGather,
    Op::ReduceScatter,
    Op::Broadcast,
    Op::Reduce,
    Op::AllToAll,
    Op::SendRecv,
    Op::Gather,
    Op::Scatter,
];
const DTYPES: [&str; 8] = ["int8", "uint8", "int32", "int64", "half", "float", "double", "bfloat16"];
const REDOPS: [&str; 5] = ["sum", "prod", "min", "max", "avg"];

/// The placements of an operation that PyTorch has.
pub(crate) fn places(op: Op) -> Place {
    match op {
        Op::AllReduce | Op::Broadcast | Op::Reduce => Place::InPlace,
        Op::AllGather | Op::ReduceScatter => Place::Both,
        _ => Place::OutOfPlace,
    }
}

pub(super) fn backend_key() -> Key {
    let backend = Type::OneOf(|_| Backend::ALL.map(|backend| backend.name().to_owned()).to_vec());
    Key::usual("backend", "\"nccl\"", backend, "what moves the data; `gloo` runs on CPUs")
}

pub(super) fn read_backend(table: &Table<'_>) -> Option<Backend> {
    let backends = Backend::ALL.map(|backend| (backend.name(), backend));
    table.get("backend").map_or(Some(Backend::Nccl), |value| value.one_of(&backends))
}

pub(super) fn form() -> Form {
    Form::new(nccl_tests::sweep_keys(
        Type::OneOf(|_| OPS.iter().map(|op| op.name().to_owned()).collect()),
        Type::OneOf(|_| DTYPES.map(str::to_owned).to_vec()),
        Type::OneOf(|_| REDOPS.map(str::to_owned).to_vec()),
    ))
    .and([backend_key(), port_key(), container_key(), environment_key()])
}

pub(super) fn read(table: &Table<'_>) -> Option<NcclTests> {
    let sweep = nccl_tests::read_sweep(table, &OPS, &DTYPES, &REDOPS);
    let backend = read_backend(table);
    let port = read_port(table);
    let container = read_container(table);
    let sweep = sweep?;
    if sweep.redop == "avg" && sweep.dtype.contains("int") {
        let value = table.get("redop")?;
        value.diagnostic_with(
            "`avg` needs a type of floating point",
            "write `dtype = \"float\"` or another `redop`",
        );
        return None;
    }
    Some(NcclTests {
        torch: Some(TorchRunner { backend: backend?, port: port?, container: container? }),
        ..sweep
    })
}
