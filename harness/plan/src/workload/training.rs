//! The command line of a training, for the nodes that it is placed on: where its processes meet, how the model is divided
//! among them, and what the readers of its log need to know.

use super::super::samples::{self, Sample};
use super::{Context, JobPlan, LAUNCH_S, PlannedStep, WorkloadPlanner};
use base::nodeset;
use config::baseline::BaselineKey;
use config::inventory::{Instance, Inventory};
use config::suite::training::{Batch, Nemo, NemoForm, Program, Training, Within};
use config::suite::{Case, Placement, TorchDdp};
use job::script::{Container, Run, Step, files};
use metric::TrainingFacts;
use model::artefact::WorkloadFacts;

/// How long a step takes is not known before it was measured.
const SECONDS_OF_STEP: f64 = 1.0;

impl WorkloadPlanner for Training {
    fn step(&self, site: JobPlan<'_>) -> Result<PlannedStep, String> {
        let (run, ranks) = run(self, site)?;
        let tasks_per_node = run.tasks_per_node;
        let follows_topology = !run.argv.iter().any(|word| word == C10D);
        let helpers = match self.program {
            Program::TorchDdp(_) => vec![files::TORCH_DDP],
            _ => Vec::new(),
        };
        Ok(PlannedStep { step: Step::Run(run), tasks_per_node, ranks, helpers, follows_topology })
    }

    fn image(&self) -> Option<&str> {
        match &self.container {
            Within::Image(image) => Some(image),
            Within::Inventory | Within::Host => None,
        }
    }

    fn estimate_s(&self, _: &Instance, _: Placement, _: usize) -> f64 {
        LAUNCH_S + f64::from(self.steps.unwrap_or_default()) * SECONDS_OF_STEP
    }

    fn facts(&self, context: &Context, _: &Case) -> WorkloadFacts {
        let (samples_per_rank, samples) = match self.batch {
            Batch::PerRank(samples) => (Some(samples), None),
            Batch::Global(samples) => (None, Some(samples)),
            Batch::Unknown => (None, None),
        };
        WorkloadFacts::Training {
            program: self.kind().to_owned(),
            facts: TrainingFacts {
                steps: self.steps,
                samples_per_rank,
                samples,
                tokens_per_sample: self.model.sequence.map(u64::from),
                flops_per_token: self.model.flops_per_token(),
                peak_tflops: context.inventory.instance.bf16_tflops,
            },
        }
    }

    fn distinguish(&self, key: &mut BaselineKey, inventory: &Inventory, case: &Case, nodes: u32) {
        key.ranks = Some(nodes * processes(self, inventory));
        key.training = Some(case.name.clone());
    }

    fn has_flight_recorder(&self) -> bool {
        !matches!(self.program, Program::Mpi { .. }) && !self.is_on_cpus()
    }

    fn has_ras(&self) -> bool {
        !self.is_on_cpus()
    }

    fn nsys_callback(&self) -> Option<u32> {
        match &self.program {
            Program::Nemo(nemo) => nemo.nsys_callback,
            _ => None,
        }
    }
}

/// The run and its number of ranks.
fn run(training: &Training, site: JobPlan<'_>) -> Result<(Run, u32), String> {
    let nodes = site.placed.nodes.len() as u32;
    let processes = processes(training, site.inventory);
    let gpus = site.inventory.instance.gpus;
    if processes > gpus {
        return Err(format!(
            "`processes_per_node` is {processes}, but a node of {} has {gpus} GPUs",
            site.inventory.instance.name
        ));
    }
    let ranks = nodes * processes;
    let planner = site.inventory.reach.planner();
    let own = Own { training, nodes, processes, ranks };
    let in_image = is_in_image(&training.container, &site);
    let samples = &site.inventory.paths.samples;
    let script = |given: &Option<String>, sample: Sample| {
        given.clone().unwrap_or_else(|| sample.script(samples, in_image))
    };
    // A script of the suite's own runs in an environment of the user's own.
    let torchrun = |given: Option<&Option<String>>, rest: Vec<String>| {
        let sample = matches!((given, &training.program), (Some(None), Program::Fsdp { .. }));
        let program = samples::torchrun(sample.then_some(Sample::Fsdp), samples, in_image);
        torchrun(program, &site, (processes, training.port), rest)
    };
    let (argv, tasks_per_node, mpi) = match &training.program {
        Program::Torchrun { script, args } => {
            let rest = std::iter::once(script).chain(args).cloned().collect();
            (torchrun(None, rest), 1, None)
        }
        Program::Fsdp { script: given, sharding, args } => {
            let words = own.fsdp(&script(given, Sample::Fsdp), sharding, args);
            (torchrun(Some(given), words), 1, None)
        }
        Program::Ddp { script: given, pretrained, args } => {
            (torchrun(None, own.ddp(&script(given, Sample::Ddp), pretrained, args)), 1, None)
        }
        Program::TorchDdp(ddp) => (torchrun(None, own.torch_ddp(ddp)), 1, None),
        Program::Nemo(nemo) => {
            own.check_division(nemo)?;
            match nemo.form {
                NemoForm::Megatron => {
                    let script = script(&nemo.program, Sample::Megatron);
                    (torchrun(None, own.megatron(script, nemo)), 1, None)
                }
                // Under Slurm each rank is a task, as the launcher of NeMo has it; elsewhere tasks are not numbered.
                NemoForm::Nemo1 if planner.numbers_tasks() => {
                    let mut argv = vec!["python3".to_owned(), "-u".to_owned()];
                    argv.extend(own.nemo1(script(&nemo.program, Sample::Nemo1), nemo));
                    (argv, processes, site.wiring)
                }
                NemoForm::Nemo1 => {
                    let script = script(&nemo.program, Sample::Nemo1);
                    (torchrun(None, own.nemo1(script, nemo)), 1, None)
                }
                NemoForm::Nemo2 if planner.numbers_tasks() => (own.nemo2(nemo), processes, site.wiring),
                NemoForm::Nemo2 => {
                    let mut rest = vec!["--no-python".to_owned()];
                    rest.extend(own.nemo2(nemo));
                    (torchrun(None, rest), 1, None)
                }
            }
        }
        Program::Mpi { program, args } => {
            let Some(wiring) = site.wiring else {
                return Err(
                    "an `mpi` workload over ssh needs `start = \"mpirun\"` in the inventory".to_owned()
                );
            };
            (std::iter::once(program).chain(args).cloned().collect(), processes, Some(wiring))
        }
    };
    let mpi = mpi.map(str::to_owned);
    let container = container(&training.container, site)?;
    Ok((Run { argv, tasks_per_node, mpi, container, profile: None }, ranks))
}

/// Whether it runs in the image of a container.
pub(super) fn is_in_image(within: &Within, site: &JobPlan<'_>) -> bool {
    match within {
        Within::Inventory => site.container.is_some(),
        Within::Host => false,
        Within::Image(_) => true,
    }
}

/// What a job runs in.
pub(super) fn container(within: &Within, site: JobPlan<'_>) -> Result<Option<Container>, String> {
    let image = match within {
        Within::Inventory => return Ok(site.container),
        Within::Host => return Ok(None),
        Within::Image(image) => image,
    };
    let runtime = site.container.as_ref().and_then(|container| container.runtime);
    if runtime.is_none() && !site.inventory.reach.planner().runs_images() {
        return Err(format!("container `{image}` needs Slurm with Pyxis"));
    }
    let shared = &site.inventory.paths.shared;
    let usual = Container {
        runtime: None,
        image: String::new(),
        mounts: vec![format!("{shared}:{shared}")],
        mount_home: false,
        remap_root: false,
        workdir: None,
        env: Vec::new(),
        name: None,
    };
    Ok(Some(Container { image: image.clone(), ..site.container.unwrap_or(usual) }))
}

fn processes(training: &Training, inventory: &Inventory) -> u32 {
    training.processes.unwrap_or(inventory.instance.gpus)
}

/// torchrun's own meeting, which numbers nodes by their names.
const C10D: &str = "--rdzv_backend=c10d";

/// One launcher on each node; the processes of all meet on the first.
pub(super) fn torchrun(
    program: String,
    site: &JobPlan<'_>,
    (processes, port): (u32, u16),
    rest: Vec<String>,
) -> Vec<String> {
    let mut nodes = site.placed.nodes.clone();
    nodeset::sort(&mut nodes);
    let first = nodes.first().map_or("localhost", String::as_str);
    let mut argv = vec![
        program,
        format!("--nnodes={}", nodes.len()),
        format!("--nproc_per_node={processes}"),
        // Names the meeting of its processes: no other job may have the same.
        format!("--rdzv_id={}.{}.{}", site.run_id, site.case.name, site.placed.name),
        C10D.to_owned(),
        format!("--rdzv_endpoint={first}:{port}"),
    ];
    argv.extend(rest);
    argv
}

/// A training with its extent.
struct Own<'a> {
    training: &'a Training,
    nodes: u32,
    processes: u32,
    ranks: u32,
}

impl Own<'_> {
    /// The model is on as many ranks as there are, and a step's samples are whole for each.
    fn check_division(&self, nemo: &Nemo) -> Result<(), String> {
        let (tensor, pipeline, ranks) = (nemo.tensor, nemo.pipeline, self.ranks);
        let model = u64::from(tensor) * u64::from(pipeline);
        let of_data = u64::from(ranks) / model;
        if of_data * model != u64::from(ranks) {
            return Err(format!(
                "{ranks} ranks are not divisible by tensor x pipeline parallel, {tensor} x {pipeline}"
            ));
        }
        if let Some(data) = nemo.data.filter(|data| u64::from(*data) != of_data) {
            return Err(format!(
                "tensor x pipeline x data parallel is {tensor} x {pipeline} x {data} = {}, must equal the number of \
                 ranks, {ranks}",
                model * u64::from(data)
            ));
        }
        let at_once = of_data * u64::from(nemo.micro_batch);
        match self.training.batch.global(ranks) {
            Some(samples) if samples % at_once != 0 => Err(format!(
                "`global_batch` is {samples}, must be a multiple of micro batch x data parallel, {} x {of_data}",
                nemo.micro_batch
            )),
            _ => Ok(()),
        }
    }

    fn steps(&self) -> String {
        self.training.steps.unwrap_or_default().to_string()
    }

    fn samples(&self) -> String {
        self.training.batch.global(self.ranks).unwrap_or_default().to_string()
    }

    /// Options for what is stated of the model.
    fn model_options(&self, names: [Option<&str>; 7]) -> impl Iterator<Item = (String, u32)> {
        let model = &self.training.model;
        let stated = [
            model.layers,
            model.hidden,
            model.intermediate,
            model.heads,
            model.key_value_heads,
            model.sequence,
            model.vocabulary,
        ];
        let pairs = names.into_iter().zip(stated);
        pairs.filter_map(|(name, value)| Some((name?.to_owned(), value?))).collect::<Vec<_>>().into_iter()
    }

    fn fsdp(&self, script: &str, sharding: &str, args: &[String]) -> Vec<String> {
        let names = [
            Some("num_layers"),
            Some("hidden_width"),
            Some("intermediate_size"),
            Some("num_heads"),
            Some("num_key_value_heads"),
            Some("max_context_width"),
            Some("vocab_size"),
        ];
        let batch = self.training.batch.global(1).unwrap_or(1);
        let mut words = vec![script.to_owned(), format!("--max_steps={}", self.steps())];
        words.push(format!("--train_batch_size={batch}"));
        words.push(format!("--sharding_strategy={sharding}"));
        words.extend(self.model_options(names).map(|(name, value)| format!("--{name}={value}")));
        // A line for each step: who judges a run by its log has nothing else.
        words.push("--logging_freq=1".to_owned());
        words.extend(args.iter().cloned());
        words
    }

    fn ddp(&self, script: &str, pretrained: &str, args: &[String]) -> Vec<String> {
        let batch = self.training.batch.global(1).unwrap_or(1).to_string();
        let steps = self.steps();
        let pairs = [
            ("--model_name_or_path", pretrained),
            ("--per_device_train_batch_size", batch.as_str()),
            ("--max_steps", steps.as_str()),
            ("--logging_steps", "1"),
        ];
        let mut words = vec![script.to_owned(), "--do_train".to_owned()];
        words.extend(pairs.into_iter().flat_map(|(name, value)| [name.to_owned(), value.to_owned()]));
        if let Some(sequence) = self.training.model.sequence {
            words.extend(["--block_size".to_owned(), sequence.to_string()]);
        }
        words.extend(args.iter().cloned());
        words
    }

    fn torch_ddp(&self, ddp: &TorchDdp) -> Vec<String> {
        let batch = self.training.batch.global(1).unwrap_or(1);
        vec![
            files::TORCH_DDP.to_owned(),
            format!("--steps={}", self.steps()),
            format!("--batch={batch}"),
            format!("--hidden={}", ddp.hidden),
            format!("--layers={}", ddp.layers),
            format!("--backend={}", ddp.backend.name()),
        ]
    }

    fn megatron(&self, script: String, nemo: &Nemo) -> Vec<String> {
        let names = [
            Some("num-layers"),
            Some("hidden-size"),
            Some("ffn-hidden-size"),
            Some("num-attention-heads"),
            Some("num-query-groups"),
            Some("seq-length"),
            None,
        ];
        let mut pairs: Vec<(String, String)> = vec![
            ("tensor-model-parallel-size".to_owned(), nemo.tensor.to_string()),
            ("pipeline-model-parallel-size".to_owned(), nemo.pipeline.to_string()),
            ("micro-batch-size".to_owned(), nemo.micro_batch.to_string()),
            ("global-batch-size".to_owned(), self.samples()),
            ("train-iters".to_owned(), self.steps()),
        ];
        pairs.extend(self.model_options(names).map(|(name, value)| (name, value.to_string())));
        if let Some(sequence) = self.training.model.sequence {
            pairs.push(("max-position-embeddings".to_owned(), sequence.to_string()));
        }
        if self.training.model.key_value_heads.is_some() {
            pairs.push(("group-query-attention".to_owned(), String::new()));
        }
        pairs.push(("log-interval".to_owned(), "1".to_owned()));
        let mut words = vec![script];
        for (name, value) in pairs {
            words.push(format!("--{name}"));
            words.extend(Some(value).filter(|value| !value.is_empty()));
        }
        words.push("--log-throughput".to_owned());
        words.extend(nemo.args.iter().cloned());
        words
    }

    fn nemo1(&self, script: String, nemo: &Nemo) -> Vec<String> {
        let names = [
            Some("model.num_layers"),
            Some("model.hidden_size"),
            Some("model.ffn_hidden_size"),
            Some("model.num_attention_heads"),
            Some("model.num_query_groups"),
            Some("model.encoder_seq_length"),
            None,
        ];
        let mut words = vec![
            script,
            format!("trainer.num_nodes={}", self.nodes),
            format!("trainer.devices={}", self.processes),
            format!("trainer.max_steps={}", self.steps()),
            "trainer.log_every_n_steps=1".to_owned(),
            format!("model.tensor_model_parallel_size={}", nemo.tensor),
            format!("model.pipeline_model_parallel_size={}", nemo.pipeline),
            format!("model.micro_batch_size={}", nemo.micro_batch),
            format!("model.global_batch_size={}", self.samples()),
        ];
        words.extend(self.model_options(names).map(|(name, value)| format!("{name}={value}")));
        words.extend(nemo.args.iter().cloned());
        words
    }

    fn nemo2(&self, nemo: &Nemo) -> Vec<String> {
        let mut words: Vec<String> = ["nemo", "llm", "pretrain", "--factory"].map(str::to_owned).to_vec();
        words.extend(nemo.program.clone());
        words.push("--yes".to_owned());
        words.extend([
            format!("trainer.num_nodes={}", self.nodes),
            format!("trainer.devices={}", self.processes),
            format!("trainer.max_steps={}", self.steps()),
            "trainer.log_every_n_steps=1".to_owned(),
            format!("trainer.strategy.tensor_model_parallel_size={}", nemo.tensor),
            format!("trainer.strategy.pipeline_model_parallel_size={}", nemo.pipeline),
            format!("data.micro_batch_size={}", nemo.micro_batch),
            format!("data.global_batch_size={}", self.samples()),
        ]);
        if let Some(sequence) = self.training.model.sequence {
            words.push(format!("data.seq_length={sequence}"));
        }
        words.extend(nemo.args.iter().cloned());
        words
    }
}
