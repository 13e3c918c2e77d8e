//! `kind = "torch-ddp"`: a small model, trained by the harness's own script of PyTorch under torchrun, whose weights are
//! compared over all ranks after the last step.

use super::arguments::environment;
use super::environment_key;
use super::model::Model;
use super::torch_collective::{Backend, backend_key, read_backend};
use super::training::{
    Batch, MOST_STEPS, Program, Training, container_key, port_key, processes_key, read_container, read_port,
    read_processes, read_samples,
};
use crate::form::{Form, Key, Type};
use crate::toml_reader::Table;

/// The kind, as suites say it.
pub(super) const NAME: &str = "torch-ddp";

/// The shape of the model, and what moves its gradients.
#[derive(Debug, Clone, PartialEq)]
pub struct TorchDdp {
    /// Width of each layer.
    pub hidden: u32,
    /// Residual pairs of linear layers.
    pub layers: u32,
    /// Of `torch.distributed`.
    pub backend: Backend,
}

const USUAL_STEPS: u32 = 50;
const USUAL_BATCH: u64 = 256;
const USUAL_HIDDEN: u32 = 2048;
const USUAL_LAYERS: u32 = 4;

pub(super) fn form() -> Form {
    Form::new([
        Key::usual("steps", "50", Type::WHOLE, "how many steps it runs"),
        Key::usual("batch", "256", Type::WHOLE, "samples of one step on each rank"),
        Key::usual("hidden", "2048", Type::WHOLE, "width of each layer"),
        Key::usual(
            "layers",
            "4",
            Type::WHOLE,
            "residual pairs of linear layers, 8 x hidden x hidden weights each",
        ),
        backend_key(),
        port_key(),
        processes_key(),
        container_key(),
        environment_key(),
    ])
}

pub(super) fn read(table: &Table<'_>) -> Option<Training> {
    let number = |key: &'static str, usual: u32, most: u32| {
        table.get(key).map_or(Some(usual), |value| value.small(1..=most))
    };
    let steps = number("steps", USUAL_STEPS, MOST_STEPS);
    let batch = table.get("batch").map_or(Some(USUAL_BATCH), |value| read_samples(&value));
    let hidden = number("hidden", USUAL_HIDDEN, 65_536);
    let layers = number("layers", USUAL_LAYERS, 1024);
    let backend = read_backend(table);
    let (port, processes, container) = (read_port(table), read_processes(table), read_container(table));
    let environment = environment(table);
    let program = TorchDdp { hidden: hidden?, layers: layers?, backend: backend? };
    Some(Training {
        program: Program::TorchDdp(program),
        steps: Some(steps?),
        batch: Batch::PerRank(batch?),
        processes: processes.unwrap_or_default(),
        port: port?,
        container: container?,
        environment,
        model: Model::default(),
    })
}
