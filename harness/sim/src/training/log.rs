//! The lines that a training prints, in the form of the program that it is, and what stops it where its numbers are none.

use super::program::{Model, Program};
use super::{Nan, Training};
use crate::noise::Noise;
use logs::training_log::WEIGHTS;
use std::fmt::Write;

/// What is printed of a step.
struct StepLine {
    step: u32,
    /// From the end of the step before: what a person waits for it.
    seconds: f64,
    loss: f64,
    norm: f64,
}

/// What goes to stdout, and what to stderr.
#[derive(Default)]
pub(super) struct Printed {
    pub stdout: String,
    pub stderr: String,
    pub code: i32,
}

/// `ends` are those of the steps of the first rank, from the first one's start, in seconds.
pub(super) fn print(training: &Training, nodes: &[String], ends: &[f64], mut noise: Noise) -> Printed {
    let Some(model) = &training.model else { return Printed::default() };
    let mut printed = Printed::default();
    let mut before = 0.0;
    if training.program == Program::TorchDdp {
        // Infallible, here and below: writing to a string.
        let _ =
            writeln!(printed.stdout, "torch_ddp.py: PyTorch 2.9.1+cu129, nccl, {} weights", model.parameters);
    }
    for (step, end) in (0..).zip(ends) {
        // Falls fast, then slowly, and never alike.
        let loss = 2.2 + 8.4 * (-f64::from(step) / 45.0).exp() + 0.03 * (noise.fraction() - 0.5);
        let norm = 0.8 + 3.0 / (1.0 + f64::from(step) / 10.0) + 0.1 * noise.fraction();
        let mut line = StepLine { step, seconds: end - before, loss, norm };
        before = *end;
        if let Some(nan) = training.nan.filter(|nan| step >= nan.step) {
            if checks(training.program) {
                printed.stderr.push_str(&found(training, nodes, nan));
                printed.code = 1;
                return printed;
            }
            (line.loss, line.norm) = (f64::NAN, f64::NAN);
        }
        write(training, model, &line, &mut printed);
    }
    if training.program == Program::Ddp
        && let Some(seconds) = ends.last()
    {
        let (steps, samples) = (f64::from(training.asked), model.samples as f64);
        let _ = writeln!(
            printed.stdout,
            "{{'train_runtime': {seconds:.4}, 'train_samples_per_second': {:.3}, 'train_steps_per_second': {:.3}, \
             'train_loss': {:.4}, 'epoch': 0.87}}",
            steps * samples / seconds,
            steps / seconds,
            5.1
        );
    }
    if training.program == Program::TorchDdp {
        printed.stdout.push_str(&weights(training, nodes));
    }
    printed
}

/// Whether the weights of all ranks are equal after the last step: those of a GPU that returns wrong data differ.
fn weights(training: &Training, nodes: &[String]) -> String {
    let digest = |what: &str| base::digest::sha256(what.as_bytes());
    let (ranks, wrong) = (training.ranks(), training.corrupt.len() as u32);
    let versions = wrong + u32::from(wrong < ranks);
    let head = format!("{WEIGHTS}{}: ", training.asked);
    match training.corrupt.as_slice() {
        _ if versions == 1 => format!("{head}equal on {ranks} ranks, sha256 {}\n", digest("right")),
        [rank] if ranks > 2 => {
            let node = nodes.get((rank / training.ranks_per_node) as usize).map_or("", String::as_str);
            let device = rank % training.ranks_per_node;
            let digest = digest("wrong");
            format!(
                "{head}2 versions on {ranks} ranks, rank {rank} alone differs, Device: {device}, node: {node}, sha256 \
                 {digest}\n"
            )
        }
        _ => format!("{head}{versions} versions on {ranks} ranks\n"),
    }
}

/// Megatron looks at its numbers before ranks share them, and so does `torch_ddp.py`.
pub(super) fn checks(program: Program) -> bool {
    matches!(program, Program::Megatron | Program::Nemo2 | Program::TorchDdp)
}

fn found(training: &Training, nodes: &[String], nan: Nan) -> String {
    let node = nodes.get((nan.rank / training.ranks_per_node) as usize).map_or("", String::as_str);
    let device = nan.rank % training.ranks_per_node;
    let what = match training.program {
        Program::TorchDdp => "local forward loss calculation",
        _ => "local grad norm in backward pass before data-parallel communication collective",
    };
    format!(
        "[rank{}]: AssertionError: Rank {}: found NaN in {what}. Device: {device}, node: {node}\n",
        nan.rank, nan.rank
    )
}

fn write(training: &Training, model: &Model, line: &StepLine, printed: &mut Printed) {
    let StepLine { step, seconds, loss, norm } = line;
    let (done, all) = (step + 1, training.asked);
    let ranks = f64::from(training.ranks());
    let samples = model.samples as f64;
    let tflops = samples * f64::from(model.sequence) * model.flops_per_token / (seconds * ranks * 1e12);
    let out = &mut printed.stdout;
    let consumed = u64::from(done) * model.samples;
    // Two minutes an hour is more than any simulated run takes.
    let clock = |at: u32| format!("{:02}:{:02}", at / 60 % 60, at % 60);
    let _ = match training.program {
        Program::Plain => Ok(()),
        Program::Fsdp => writeln!(
            out,
            "2024-07-01 10:{} I [train.py:102] Epoch 0 Batch {step} Steps {done} Loss: {}, Speed: {:.2} \
             samples/sec, lr: 0.000006",
            clock(*step),
            number(*loss, 5),
            samples / seconds
        ),
        Program::Nemo1 => writeln!(
            out,
            "Epoch 0: : {:3}%|{:<10}| {done}/{all} [{}<{}, v_num=0, reduced_train_loss={}, global_step={step}.0, \
             consumed_samples={consumed}.0, train_step_timing in s={seconds:.4}]",
            100 * done / all,
            "#".repeat((10 * done / all) as usize),
            clock(done),
            clock(all - done),
            number(*loss, 3),
        ),
        Program::Nemo2 => writeln!(
            out,
            "Training epoch 0, iteration {step}/{} | lr: 3e-07 | global_batch_size: {samples} | global_step: {step} | \
             reduced_train_loss: {} | train_step_timing in s: {seconds:.4} | TFLOPS_per_GPU: {tflops:.1} | \
             consumed_samples: {consumed}",
            all - 1,
            number(*loss, 4),
        ),
        Program::TorchDdp => writeln!(
            out,
            "Training epoch 0, iteration {step}/{} | lr: 0.001 | global_batch_size: {samples} | global_step: {step} | \
             reduced_train_loss: {} | train_step_timing in s: {seconds:.6} | consumed_samples: {consumed}",
            all - 1,
            number(*loss, 6),
        ),
        Program::Megatron => writeln!(
            out,
            " [2024-07-01 10:{}] iteration {done:8}/{all:8} | consumed samples: {consumed:12} | elapsed time per \
             iteration (ms): {:.1} | throughput per GPU (TFLOP/s/GPU): {tflops:.1} | learning rate: 1.500000E-04 | \
             global batch size: {samples:5} | lm loss: {loss:.6E} | loss scale: 1.0 | grad norm: {} | number of \
             skipped iterations:   0 | number of nan iterations:   0 |",
            clock(*step),
            seconds * 1e3,
            number(*norm, 3)
        ),
        Program::Ddp => {
            let rate = 1.0 / seconds;
            let _ = write!(
                printed.stderr,
                "\r{:3}%|{:<10}| {done}/{all} [{}<{}, {rate:.2}it/s]",
                100 * done / all,
                "#".repeat((10 * done / all) as usize),
                clock(done),
                clock(all - done)
            );
            if done == all {
                printed.stderr.push('\n');
            }
            // It leaves a loss that is none out of its means.
            let loss = if loss.is_nan() { 0.0 } else { *loss };
            writeln!(
                out,
                "{{'loss': {loss:.4}, 'grad_norm': {}, 'learning_rate': 5e-05, 'epoch': {:.2}}}",
                number(*norm, 4),
                f64::from(done) / 230.0
            )
        }
    };
}

/// As Python prints what is no number.
fn number(value: f64, digits: usize) -> String {
    if value.is_nan() { "nan".to_owned() } else { format!("{value:.digits$}") }
}
