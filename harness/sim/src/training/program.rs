//! Which training program a command line calls, and what it is asked for: a plain `train.py`, that of the FSDP samples,
//! NeMo and Megatron, `run_clm.py` of Hugging Face, `torch_ddp.py`. An option that is not simulated changes nothing.

use job::script::{Run, files};
use job::window::{self, Steps};

#[derive(Debug, Clone, PartialEq)]
pub(super) struct TrainingOptions {
    pub program: Program,
    pub steps: u32,
    pub layers: u32,
    /// Of one task.
    pub processes: u32,
    pub ranks_per_node: u32,
    /// What a plain program does not have.
    pub model: Option<Model>,
    /// The steps around which it calls the profiler, by its own options.
    pub watches: Option<Steps>,
}

/// By what it prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// Prints what NeMo 2 does.
    Plain,
    /// `train.py` of the FSDP samples; it has `--max_steps`.
    Fsdp,
    /// `megatron_gpt_pretraining.py`.
    Nemo1,
    /// The program `nemo`.
    Nemo2,
    /// `pretrain_gpt.py`.
    Megatron,
    /// `run_clm.py`, which holds the whole model on each rank.
    Ddp,
    /// `torch_ddp.py`, which does so, too, and compares the weights of all ranks.
    TorchDdp,
}

impl Program {
    /// Each rank holds the whole model, and only gradients are reduced.
    pub(crate) fn holds_whole_model(self) -> bool {
        matches!(self, Program::Ddp | Program::TorchDdp)
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Model {
    pub parameters: f64,
    pub hidden: u32,
    pub sequence: u32,
    /// Of one step and all ranks.
    pub samples: u64,
    pub flops_per_token: f64,
}

/// Beyond these the program refuses; they bound what a report can hold.
const MOST_STEPS: u32 = 10_000;
const MOST_LAYERS: u32 = 128;
/// Layers run in so many units at most: a report of a large model is no larger for it.
const MOST_UNITS: u32 = 8;

/// Nothing where another program is called, an error as the program prints it.
pub(super) fn read(gpus: u32, nodes: u32, run: &Run) -> Option<Result<TrainingOptions, String>> {
    let called = run.argv.first()?.rsplit('/').next()?;
    let script = run.argv.iter().position(|word| named(word).is_some())?;
    let program = named(run.argv.get(script)?)?;
    let launcher = run.argv.get(1..script).unwrap_or_default();
    let own = run.argv.get(script + 1..)?;
    let program = match program {
        Program::Plain if option(own, &["--max_steps"]).is_some() => Program::Fsdp,
        other => other,
    };
    let processes = match called {
        "torchrun" => match option(launcher, &["--nproc_per_node", "--nproc-per-node"]) {
            None => Some(1),
            Some(number) => number.parse().ok(),
        },
        "python" | "python3" => Some(1),
        "nemo" if program == Program::Nemo2 => Some(1),
        _ => return None,
    };
    Some(asked(gpus, nodes, run.tasks_per_node, program, processes, (launcher, own)))
}

/// Whether a word of a command line is the path of a training program that is simulated.
pub fn is_script(word: &str) -> bool {
    named(word).is_some()
}

fn named(word: &str) -> Option<Program> {
    Some(match word.rsplit('/').next()? {
        "train.py" => Program::Plain,
        "megatron_gpt_pretraining.py" => Program::Nemo1,
        "pretrain_gpt.py" => Program::Megatron,
        "run_clm.py" => Program::Ddp,
        files::TORCH_DDP => Program::TorchDdp,
        "nemo" => Program::Nemo2,
        _ => return None,
    })
}

fn asked(
    gpus: u32,
    nodes: u32,
    tasks_per_node: u32,
    program: Program,
    processes: Option<u32>,
    (launcher, own): (&[String], &[String]),
) -> Result<TrainingOptions, String> {
    let processes = processes.filter(|number| *number > 0).ok_or("torchrun: error: --nproc_per_node\n")?;
    let ranks_per_node = tasks_per_node * processes;
    if ranks_per_node > gpus {
        return Err("RuntimeError: CUDA error: invalid device ordinal\n".to_owned());
    }
    // Who waits for nodes that never come gives up; fewer than there are make worlds of their own.
    if let Some(wanted) = option(launcher, &["--nnodes"])
        && wanted.parse() != Ok(nodes)
    {
        return Err(format!(
            "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError: {wanted} nodes wanted, {nodes} came\n"
        ));
    }
    let words = Words { program, own };
    let steps = words.number(words.names(Of::Steps), 20, MOST_STEPS)?;
    let layers = words.number(words.names(Of::Layers), words.usual().layers, MOST_LAYERS)?;
    let model = match program {
        Program::Plain => None,
        _ => Some(words.model(layers, nodes * ranks_per_node)?),
    };
    let layers = if model.is_some() { layers.min(MOST_UNITS) } else { layers };
    let watches = window::profiled_steps(own);
    Ok(TrainingOptions { program, steps, layers, processes, ranks_per_node, model, watches })
}

/// What an option says something of.
#[derive(Clone, Copy)]
enum Of {
    Steps,
    Layers,
    Hidden,
    Intermediate,
    Sequence,
    Batch,
}

/// What a program does by default.
struct Usual {
    layers: u32,
    hidden: u32,
    intermediate: u32,
    sequence: u32,
    vocabulary: f64,
    /// Matrices of a layer's second half: two, or three where one of them gates.
    matrices: f64,
}

struct Words<'a> {
    program: Program,
    own: &'a [String],
}

impl Words<'_> {
    fn names(&self, of: Of) -> &'static str {
        match (self.program, of) {
            (Program::Plain | Program::TorchDdp, Of::Steps) => "--steps",
            (Program::Plain | Program::TorchDdp, Of::Layers) => "--layers",
            (Program::TorchDdp, Of::Hidden) => "--hidden",
            (Program::TorchDdp, Of::Batch) => "--batch",
            (Program::Fsdp | Program::Ddp, Of::Steps) => "--max_steps",
            (Program::Fsdp, Of::Layers) => "--num_layers",
            (Program::Fsdp, Of::Hidden) => "--hidden_width",
            (Program::Fsdp, Of::Intermediate) => "--intermediate_size",
            (Program::Fsdp, Of::Sequence) => "--max_context_width",
            (Program::Fsdp, Of::Batch) => "--train_batch_size",
            (Program::Ddp, Of::Sequence) => "--block_size",
            (Program::Ddp, Of::Batch) => "--per_device_train_batch_size",
            (Program::Megatron, Of::Steps) => "--train-iters",
            (Program::Megatron, Of::Layers) => "--num-layers",
            (Program::Megatron, Of::Hidden) => "--hidden-size",
            (Program::Megatron, Of::Intermediate) => "--ffn-hidden-size",
            (Program::Megatron, Of::Sequence) => "--seq-length",
            (Program::Megatron, Of::Batch) => "--global-batch-size",
            (Program::Nemo1 | Program::Nemo2, Of::Steps) => "trainer.max_steps",
            (Program::Nemo1, Of::Layers) => "model.num_layers",
            (Program::Nemo1, Of::Hidden) => "model.hidden_size",
            (Program::Nemo1, Of::Intermediate) => "model.ffn_hidden_size",
            (Program::Nemo1, Of::Sequence) => "model.encoder_seq_length",
            (Program::Nemo1, Of::Batch) => "model.global_batch_size",
            (Program::Nemo2, Of::Sequence) => "data.seq_length",
            (Program::Nemo2, Of::Batch) => "data.global_batch_size",
            // A recipe or a trained model decides these itself.
            _ => "--",
        }
    }

    fn usual(&self) -> Usual {
        let is_15b = self.own.iter().any(|word| word.contains("nemotron4_15b"));
        match self.program {
            Program::Plain => Usual::new(4, 0, 0, 0, 0.0, 0.0),
            Program::Ddp => Usual::new(12, 768, 3072, 1024, 50_257.0, 2.0),
            Program::TorchDdp => Usual::new(4, 2048, 0, 1, 0.0, 0.0),
            Program::Nemo2 if is_15b => Usual::new(32, 6144, 24_576, 4096, 256_000.0, 2.0),
            Program::Nemo1 => Usual::new(32, 6144, 24_576, 4096, 256_000.0, 2.0),
            Program::Fsdp | Program::Megatron | Program::Nemo2 => {
                Usual::new(32, 4096, 11_008, 4096, 32_000.0, 3.0)
            }
        }
    }

    fn number(&self, name: &str, otherwise: u32, most: u32) -> Result<u32, String> {
        let Some(text) = option(self.own, &[name]) else { return Ok(otherwise) };
        text.parse().ok().filter(|number| (1..=most).contains(number)).ok_or_else(|| {
            format!("train.py: error: argument {name}: invalid value: '{text}' (1 to {most})\n")
        })
    }

    fn model(&self, layers: u32, ranks: u32) -> Result<Model, String> {
        let usual = self.usual();
        let number = |of, otherwise| self.number(self.names(of), otherwise, 1 << 24);
        let hidden = number(Of::Hidden, usual.hidden)?;
        let intermediate = number(Of::Intermediate, usual.intermediate)?;
        let sequence = number(Of::Sequence, usual.sequence)?;
        let samples = u64::from(number(Of::Batch, 1)?);
        let is_per_rank = matches!(self.program, Program::Fsdp | Program::Ddp | Program::TorchDdp);
        let (width, depth) = (f64::from(hidden), f64::from(layers));
        let layer = 4.0 * width * width + usual.matrices * width * f64::from(intermediate);
        // Words in and words out: small models have one table for both.
        let tables = if hidden < 1024 { 1.0 } else { 2.0 };
        let parameters = match self.program {
            // Pairs of linear layers that are four times as wide between them, and one behind all pairs.
            Program::TorchDdp => (8.0 * depth + 1.0) * width * width,
            _ => depth * layer + tables * usual.vocabulary * width,
        };
        Ok(Model {
            parameters,
            hidden,
            sequence,
            samples: if is_per_rank { samples * u64::from(ranks) } else { samples },
            flops_per_token: 6.0 * parameters + 12.0 * depth * width * f64::from(sequence),
        })
    }
}

impl Usual {
    fn new(
        layers: u32,
        hidden: u32,
        intermediate: u32,
        sequence: u32,
        vocabulary: f64,
        matrices: f64,
    ) -> Usual {
        Usual { layers, hidden, intermediate, sequence, vocabulary, matrices }
    }
}

/// The value of an option, behind it or glued to it.
pub(crate) fn option<'a>(words: &'a [String], names: &[&str]) -> Option<&'a str> {
    words.iter().enumerate().find_map(|(at, word)| {
        names.iter().find_map(|name| match word.strip_prefix(name)? {
            "" => words.get(at + 1).map(String::as_str),
            glued => glued.strip_prefix('='),
        })
    })
}
