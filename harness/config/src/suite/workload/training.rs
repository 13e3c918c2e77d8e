//! Reads workloads that train a model, by what starts them: torchrun and any script, the FSDP samples, NeMo and Megatron,
//! the example of the Trainer of Hugging Face, any program of MPI. Their command lines are made in the plan, which knows
//! the nodes.

use super::super::Placement;
use super::Workload;
use super::arguments::{argument, environment, program_of};
use super::model::{self, Model};
use super::node_tool::{PYTORCH, TORCHRUN};
use super::table::{Refusal, WorkloadKind, WorkloadTable};
use super::torch_collective::Backend;
use super::torch_ddp::{self, TorchDdp};
use super::{args_key, environment_key};
use crate::form::{Condition, Form, Key, Type, names};
use crate::toml_reader::value::Scalar;
use crate::toml_reader::{Table, Value};
use std::collections::BTreeMap;

/// A workload that trains a model, as the suite states it.
#[derive(Debug, Clone, PartialEq)]
pub struct Training {
    /// What is started, by `kind` of the workload.
    pub program: Program,
    /// How many steps it runs, as the suite sets it or as is known.
    pub steps: Option<u32>,
    /// `global_batch`, or `batch` on each rank (1 by default for `fsdp` and `ddp`).
    pub batch: Batch,
    /// Processes on each node, one to a GPU; as many as there are GPUs where absent.
    pub processes: Option<u32>,
    /// Where torchrun's processes meet, on the job's first node.
    pub port: u16,
    /// As in the inventory by default.
    pub container: Within,
    /// Wins over the inventory's.
    pub environment: BTreeMap<String, String>,
    /// Nothing in it is set where the suite has none.
    pub model: Model,
}

/// What is started, with what only its kind needs.
#[derive(Debug, Clone, PartialEq)]
pub enum Program {
    /// Any script of PyTorch.
    Torchrun {
        /// A path on the nodes.
        script: String,
        /// Behind the script.
        args: Vec<String>,
    },
    /// `train.py` of the FSDP samples.
    Fsdp {
        /// As the suite says; absent, where the inventory says, or where it is published.
        script: Option<String>,
        /// `full` or `hybrid` (the default): `--sharding_strategy`.
        sharding: String,
        /// Behind those that the harness sets.
        args: Vec<String>,
    },
    /// NeMo 1, NeMo 2 or Megatron.
    Nemo(Nemo),
    /// `run_clm.py` of Hugging Face.
    Ddp {
        /// As for `Fsdp`.
        script: Option<String>,
        /// `--model_name_or_path`; `gpt2` by default.
        pretrained: String,
        /// Behind those that the harness sets.
        args: Vec<String>,
    },
    /// The harness's own script of PyTorch, which compares the weights of all ranks.
    TorchDdp(TorchDdp),
    /// Any program of MPI.
    Mpi {
        /// A name or a path.
        program: String,
        /// Behind the program.
        args: Vec<String>,
    },
}

/// NeMo and Megatron: how the model is divided among ranks.
#[derive(Debug, Clone, PartialEq)]
pub struct Nemo {
    /// Decides the command line.
    pub form: NemoForm,
    /// The script, where the suite says one; of NeMo 2 the recipe that its command line is asked for.
    pub program: Option<String>,
    /// Ranks that share each layer; 1 by default.
    pub tensor: u32,
    /// Ranks that the layers are divided among; 1 by default.
    pub pipeline: u32,
    /// Follows from the ranks where absent.
    pub data: Option<u32>,
    /// Samples that one replica of the model computes at once; 1 by default.
    pub micro_batch: u32,
    /// Of NeMo 2: where its recipe has an `NsysCallback` among the callbacks of its trainer, if it has one.
    pub nsys_callback: Option<u32>,
    /// Behind those that the harness sets.
    pub args: Vec<String>,
}

/// `form` of a workload of kind `nemo`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NemoForm {
    /// NeMo 1, in the words of its launcher.
    Nemo1,
    /// `nemo llm pretrain`, with a recipe as its factory.
    Nemo2,
    /// Megatron-LM, by torchrun.
    Megatron,
}

/// Samples of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Batch {
    /// The suite states none.
    Unknown,
    /// Of each rank.
    PerRank(u64),
    /// Of all ranks together.
    Global(u64),
}

impl Batch {
    /// Of all ranks together.
    pub fn global(self, ranks: u32) -> Option<u64> {
        match self {
            Batch::Unknown => None,
            Batch::PerRank(samples) => Some(samples * u64::from(ranks)),
            Batch::Global(samples) => Some(samples),
        }
    }
}

/// What a job of Slurm runs in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Within {
    /// As the inventory has it.
    Inventory,
    /// On the host, whatever the inventory says.
    Host,
    /// This image, by Pyxis.
    Image(String),
}

pub(super) const KIND: WorkloadKind = WorkloadKind {
    names: &["torchrun", "fsdp", "nemo", "ddp", torch_ddp::NAME, "mpi"],
    form,
    read,
    settings: &[],
};

/// `kind` of a workload that trains.
#[derive(Debug, Clone, Copy)]
enum TrainingKind {
    /// Any script of PyTorch.
    Torchrun,
    /// `train.py` of the FSDP samples.
    Fsdp,
    /// NeMo 1, NeMo 2 or Megatron.
    Nemo,
    /// `run_clm.py` of Hugging Face.
    Ddp,
    /// Any program of MPI.
    Mpi,
}

impl TrainingKind {
    /// By its name in suites.
    fn named(name: &str) -> Option<TrainingKind> {
        match name {
            "torchrun" => Some(TrainingKind::Torchrun),
            "fsdp" => Some(TrainingKind::Fsdp),
            "nemo" => Some(TrainingKind::Nemo),
            "ddp" => Some(TrainingKind::Ddp),
            "mpi" => Some(TrainingKind::Mpi),
            _ => None,
        }
    }
}

impl Training {
    /// The kind, as suites say it.
    pub fn kind(&self) -> &'static str {
        match self.program {
            Program::Torchrun { .. } => "torchrun",
            Program::Fsdp { .. } => "fsdp",
            Program::Nemo(_) => "nemo",
            Program::Ddp { .. } => "ddp",
            Program::TorchDdp(_) => torch_ddp::NAME,
            Program::Mpi { .. } => "mpi",
        }
    }

    /// Gloo moves its data, and no GPU takes part.
    pub fn is_on_cpus(&self) -> bool {
        matches!(&self.program, Program::TorchDdp(ddp) if ddp.backend == Backend::Gloo)
    }

    /// The words that a person wrote, in which a value may be referred to.
    fn written(&self) -> impl Iterator<Item = &String> {
        let none: &[String] = &[];
        let (first, args) = match &self.program {
            Program::Torchrun { script, args } => (Some(script), args.as_slice()),
            Program::Fsdp { script, args, .. } | Program::Ddp { script, args, .. } => {
                (script.as_ref(), args.as_slice())
            }
            Program::Nemo(nemo) => (nemo.program.as_ref(), nemo.args.as_slice()),
            Program::TorchDdp(_) => (None, none),
            Program::Mpi { program, args } => (Some(program), args.as_slice()),
        };
        first.into_iter().chain(args)
    }

    /// The script that it is by its usual name, where the suite names none.
    fn usual_script(&self) -> Option<&'static str> {
        match &self.program {
            Program::Fsdp { script: None, .. } => Some("train.py"),
            Program::Ddp { script: None, .. } => Some("run_clm.py"),
            Program::Nemo(Nemo { program: None, form, .. }) => match form {
                NemoForm::Nemo1 => Some("megatron_gpt_pretraining.py"),
                NemoForm::Megatron => Some("pretrain_gpt.py"),
                NemoForm::Nemo2 => None,
            },
            _ => None,
        }
    }
}

impl WorkloadTable for Training {
    fn environment(&self) -> &BTreeMap<String, String> {
        &self.environment
    }

    fn written_arguments(&self) -> Vec<&String> {
        self.written().collect()
    }

    /// Those of the table are followed by more that the plan adds.
    fn known_arguments(&self) -> Option<Vec<String>> {
        let script = self.usual_script().map(str::to_owned);
        Some(script.into_iter().chain(self.written().cloned()).collect())
    }

    fn steps(&self) -> Option<u32> {
        self.steps
    }

    fn starts_task_per_gpu(&self) -> bool {
        let by_launcher = match &self.program {
            Program::Nemo(nemo) => nemo.form != NemoForm::Megatron,
            Program::Mpi { .. } => true,
            Program::Torchrun { .. } | Program::Fsdp { .. } | Program::Ddp { .. } | Program::TorchDdp(_) => {
                false
            }
        };
        by_launcher && self.processes != Some(1)
    }

    /// Of a training without files of its own. An image that the suite names is looked into by no probe.
    fn probed_programs(&self) -> Vec<&'static str> {
        let is_own =
            matches!(self.program, Program::TorchDdp(_)) && !matches!(self.container, Within::Image(_));
        if is_own { vec![PYTORCH, TORCHRUN] } else { Vec::new() }
    }

    /// Checkpoints are written in silence.
    fn stall_s(&self) -> Option<u64> {
        Some(900)
    }

    fn refuse_profile(&self) -> Option<&'static str> {
        matches!(self.program, Program::TorchDdp(_))
            .then_some("`torch-ddp` is not profiled; NCCL's Inspector shows its calls: `inspector = true`")
    }

    fn refuse_nccl_log(&self) -> Option<&'static str> {
        self.is_on_cpus().then_some("gloo does not run NCCL; remove `nccl_log` from `recipes`")
    }

    fn refuse_placement(&self, placement: Placement) -> Option<Refusal> {
        let instead = "write `placement = \"each\"` and `processes_per_node`";
        (placement == Placement::EachGpu).then_some(("a training uses all GPUs of its nodes", instead))
    }
}

pub(super) const MOST_STEPS: u32 = 100_000_000;
const SHARDINGS: [(&str, ()); 2] = [("full", ()), ("hybrid", ())];

fn form(name: &str) -> Form {
    if name == torch_ddp::NAME {
        return torch_ddp::form();
    }
    let needed = |name, about| Key::needed(name, Type::WHOLE, about);
    let optional = |name, about| Key::optional(name, Type::WHOLE, about);
    let one = |name, about| Key::usual(name, "1", Type::WHOLE, about);
    let steps = "how many steps it runs";
    let global_batch = "samples of one step, of all ranks together";
    let script = Key::usual("script", "the inventory's, or where it is published", Type::Text, "the program");
    let port = port_key;
    let own = match TrainingKind::named(name) {
        Some(TrainingKind::Torchrun) => vec![
            Key::needed("script", Type::Text, "the program"),
            optional("steps", steps),
            optional("global_batch", global_batch),
            port(),
        ],
        Some(TrainingKind::Fsdp) => vec![
            script,
            needed("steps", steps),
            one("batch", "samples of one step on each rank"),
            Key::usual(
                "sharding",
                "\"hybrid\"",
                Type::OneOf(|_| names(&SHARDINGS)),
                "how parameters are sharded",
            ),
            port(),
        ],
        Some(TrainingKind::Ddp) => vec![
            script,
            needed("steps", steps),
            one("batch", "samples of one step on each rank"),
            Key::usual("pretrained", "\"gpt2\"", Type::Text, "the model"),
            port(),
        ],
        Some(TrainingKind::Nemo) => vec![
            Key::needed("form", Type::OneOf(|_| names(&FORMS)), "decides the command line"),
            needed("steps", steps),
            needed("global_batch", global_batch),
            one("tensor_parallel", "ranks that share each layer"),
            one("pipeline_parallel", "ranks that the layers are divided among"),
            Key::usual("data_parallel", "follows from the ranks", Type::WHOLE, "replicas of the model"),
            one("micro_batch", "samples that one replica of the model computes at once"),
            port(),
        ],
        Some(TrainingKind::Mpi) => vec![
            Key::needed("program", Type::Text, "the program"),
            optional("steps", steps),
            optional("global_batch", global_batch),
        ],
        None => Vec::new(),
    };
    let form = Form::new(own).and([
        processes_key(),
        container_key(),
        Key::optional(
            "model",
            Type::table(model::form()),
            "the shape of the model: what MFU is computed from",
        ),
        args_key(),
        environment_key(),
    ]);
    let script = || Form::new([Key::usual("script", "where it is published", Type::Text, "the program")]);
    match TrainingKind::named(name) {
        Some(TrainingKind::Nemo) => form.by(
            "form",
            FORMS.map(|(word, form)| match form {
                NemoForm::Nemo1 | NemoForm::Megatron => (Condition::Is(word), script()),
                NemoForm::Nemo2 => (
                    Condition::Is(word),
                    Form::new([
                        Key::needed("recipe", Type::Text, "the recipe that its command line is asked for"),
                        optional("nsys_callback", "where its recipe has an `NsysCallback`, from 0"),
                    ]),
                ),
            }),
        ),
        _ => form,
    }
}

fn read(table: &Table<'_>, name: &str) -> Option<Workload> {
    if name == torch_ddp::NAME {
        return torch_ddp::read(table).map(Workload::Training);
    }
    read_kind(table, TrainingKind::named(name)?).map(Workload::Training)
}

/// None where a value that it needs could not be read.
fn read_kind(table: &Table<'_>, kind: TrainingKind) -> Option<Training> {
    let steps_value = match kind {
        TrainingKind::Torchrun | TrainingKind::Mpi => table.get("steps"),
        TrainingKind::Fsdp | TrainingKind::Nemo | TrainingKind::Ddp => table.need("steps"),
    };
    let steps = steps_value.map(|value| value.small(1..=MOST_STEPS));
    let batch = match kind {
        TrainingKind::Nemo => {
            table.need("global_batch").and_then(|value| read_samples(&value)).map(Batch::Global)
        }
        TrainingKind::Fsdp | TrainingKind::Ddp => {
            table.get("batch").map_or(Some(1), |value| read_samples(&value)).map(Batch::PerRank)
        }
        TrainingKind::Torchrun | TrainingKind::Mpi => match table.get("global_batch") {
            Some(value) => read_samples(&value).map(Batch::Global),
            None => Some(Batch::Unknown),
        },
    };
    let processes = read_processes(table);
    let port = match kind {
        TrainingKind::Mpi => Some(USUAL_PORT),
        _ => read_port(table),
    };
    let container = read_container(table);
    let environment = environment(table);
    let args = table.get("args").and_then(|value| value.list()).unwrap_or_default();
    let args: Vec<String> = args.iter().filter_map(argument).collect();
    let model = table.get("model").and_then(|value| value.table()).map(|table| model::read(&table));
    let program = match kind {
        TrainingKind::Torchrun => table
            .need("script")
            .and_then(|value| program_of(&value))
            .map(|script| Program::Torchrun { script, args }),
        TrainingKind::Fsdp => {
            let script = script(table);
            let sharding = table.get("sharding").map_or(Some("hybrid".to_owned()), |value| {
                value.one_of(&SHARDINGS)?;
                value.text()
            });
            Some(Program::Fsdp { script: script?, sharding: sharding?, args })
        }
        TrainingKind::Nemo => nemo(table, args).map(Program::Nemo),
        TrainingKind::Ddp => {
            let script = script(table);
            let pretrained =
                table.get("pretrained").map_or(Some("gpt2".to_owned()), |value| argument(&value));
            Some(Program::Ddp { script: script?, pretrained: pretrained?, args })
        }
        TrainingKind::Mpi => table
            .need("program")
            .and_then(|value| program_of(&value))
            .map(|program| Program::Mpi { program, args }),
    };
    Some(Training {
        program: program?,
        steps: steps.unwrap_or_default(),
        batch: batch?,
        processes: processes.unwrap_or_default(),
        port: port?,
        container: container?,
        environment,
        model: model.unwrap_or_default(),
    })
}

/// The script that a suite names, if it names one.
fn script(table: &Table<'_>) -> Option<Option<String>> {
    table.get("script").map_or(Some(None), |value| program_of(&value).map(Some))
}

const FORMS: [(&str, NemoForm); 3] =
    [("nemo1", NemoForm::Nemo1), ("nemo2", NemoForm::Nemo2), ("megatron", NemoForm::Megatron)];

fn nemo(table: &Table<'_>, args: Vec<String>) -> Option<Nemo> {
    let form = table.need("form").and_then(|value| value.one_of(&FORMS));
    let program = match form {
        Some(NemoForm::Nemo2) => table.need("recipe").and_then(|value| argument(&value)).map(Some),
        Some(NemoForm::Nemo1 | NemoForm::Megatron) => script(table),
        None => {
            // Whichever it should have been, none of its keys is an error.
            let _ = (table.get("recipe"), table.get("script"), table.get("nsys_callback"));
            None
        }
    };
    let nsys_callback = match form {
        Some(NemoForm::Nemo2) => table.get("nsys_callback").map(|value| value.small(0..=1000)),
        _ => None,
    };
    let parallel = |key| table.get(key).map_or(Some(1), |value| value.small(1..=1_000_000));
    let (tensor, pipeline) = (parallel("tensor_parallel"), parallel("pipeline_parallel"));
    let data = table.get("data_parallel").map(|value| value.small(1..=1_000_000));
    let micro_batch = parallel("micro_batch");
    Some(Nemo {
        form: form?,
        program: program?,
        tensor: tensor?,
        pipeline: pipeline?,
        data: data.unwrap_or_default(),
        micro_batch: micro_batch?,
        nsys_callback: nsys_callback.unwrap_or_default(),
        args,
    })
}

/// As many as there are GPUs where absent.
pub(super) fn read_processes(table: &Table<'_>) -> Option<Option<u32>> {
    table.get("processes_per_node").map(|value| value.small(1..=1024))
}

pub(super) fn processes_key() -> Key {
    Key::usual("processes_per_node", "one per GPU", Type::WHOLE, "processes on each node")
}

pub(super) fn read_samples(value: &Value<'_>) -> Option<u64> {
    value.whole(1..=1 << 32)
}

/// An image, or `false` for none.
pub(super) fn read_container(table: &Table<'_>) -> Option<Within> {
    table.get("container").map_or(Some(Within::Inventory), |value| within(&value))
}

pub(super) fn container_key() -> Key {
    let image = Type::Either(vec![Type::Text, Type::Off]);
    Key::usual(
        "container",
        "the inventory's",
        image,
        "an image for `srun --container-image`, or `false` for the host",
    )
}

const USUAL_PORT: u16 = 29_500;

pub(super) fn read_port(table: &Table<'_>) -> Option<u16> {
    let own = |value: Value<'_>| u16::try_from(value.small(1024..=65_535)?).ok();
    table.get("port").map_or(Some(USUAL_PORT), own)
}

pub(super) fn port_key() -> Key {
    Key::usual("port", "29500", Type::WHOLE, "where torchrun's processes meet, on rank 0's node")
}

fn within(value: &Value<'_>) -> Option<Within> {
    match value.scalar() {
        Some(Scalar::Boolean(false)) => Some(Within::Host),
        Some(Scalar::Text(_)) => argument(value).map(Within::Image),
        _ => value.wrong("an image, such as `\"/fsx/train.sqsh\"`, or `false` for the host"),
    }
}
