//! Stand-ins of training programs as real processes: what each prints is read by the reader of training logs, every
//! step of it.

use crate::bed::{StandIns, codes};
use logs::training_log::{Dialect, TrainingLog, read};
use std::fs;
use std::path::Path;

const STEPS: u64 = 6;

/// How each program is called, with how many tasks on a node, and whose lines it prints.
const PROGRAMS: [(&str, u32, Dialect); 8] = [
    ("torchrun --nproc_per_node=4 train.py --steps 6", 1, Dialect::Nemo2),
    (
        "torchrun --nproc_per_node=4 train.py --max_steps=6 --train_batch_size=1 --sharding_strategy=hybrid",
        1,
        Dialect::Fsdp,
    ),
    (
        "torchrun --nproc_per_node=4 pretrain_gpt.py --train-iters 6 --global-batch-size 16",
        1,
        Dialect::Megatron,
    ),
    (
        "torchrun --nproc_per_node=4 run_clm.py --max_steps 6 --per_device_train_batch_size 1 --logging_steps 1",
        1,
        Dialect::Trainer,
    ),
    ("torchrun --nproc_per_node=4 torch_ddp.py --steps=6 --batch=8 --backend=nccl", 1, Dialect::Nemo2),
    (
        "python3 -u /opt/NeMo/megatron_gpt_pretraining.py trainer.max_steps=6 model.global_batch_size=16",
        4,
        Dialect::Nemo1,
    ),
    (
        "torchrun --nproc_per_node=4 megatron_gpt_pretraining.py trainer.max_steps=6 model.global_batch_size=16",
        1,
        Dialect::Nemo1,
    ),
    (
        "nemo llm pretrain --factory nemotron4_15b --yes trainer.max_steps=6 data.global_batch_size=16",
        4,
        Dialect::Nemo2,
    ),
];

fn log(path: &Path) -> TrainingLog {
    let text = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    read(text.as_slice()).expect("read")
}

#[test]
fn what_each_training_prints_is_read_with_every_step() {
    let bed = StandIns::new("n[1-2]", "seed = 7");
    for (number, (line, per_node, dialect)) in PROGRAMS.into_iter().enumerate() {
        let folder = bed.job(&format!("trains-{number}"), "all");
        let argv: Vec<&str> = line.split(' ').collect();
        let codes = codes(bed.srun(&folder, &["n1", "n2"], per_node, &argv));
        let said = fs::read_to_string(folder.join("err.0")).expect("said");
        assert!(codes.iter().all(|code| *code == 0), "{line}: {codes:?}: {said}");
        let printed = fs::read_to_string(folder.join("out.0")).expect("printed");
        assert!(printed.starts_with("# SIMULATED:"), "{line}: {printed}");
        let read = log(&folder.join("out.0"));
        assert_eq!((read.garbled, read.series.len()), (0, 1), "{line}: {printed}");
        let series = &read.series[0];
        assert_eq!((series.dialect, series.steps.len() as u64), (dialect, STEPS), "{line}: {printed}");
        assert!(
            series.steps.iter().all(|step| step.loss.is_some_and(f64::is_finite) || number == 0),
            "{line}"
        );
        // The others print nothing.
        for rank in 1..2 * per_node {
            let others = log(&folder.join(format!("out.{rank}")));
            assert_eq!((others.of_steps, others.garbled), (0, 0), "{line}: rank {rank}");
        }
    }
}
