//! `torchrun ... torch_collective.py`: a collective over a sweep of sizes, by PyTorch. Its table is that of nccl-tests, and so
//! are its sizes; it has only the placements that PyTorch has, and its ranks find each other without MPI.

use super::options::Options;
use super::training::option;
use job::script::{Run, files};
use metric::op::Op;

/// What a command line asks for.
pub(crate) struct Call {
    pub options: Options,
    /// Ranks on each node.
    pub processes: u32,
}

/// Nothing where another program is called; the error is worded as PyTorch's.
pub(crate) fn read(run: &Run, gpus: u32, nodes: u32) -> Option<Result<Call, String>> {
    let at = run.argv.iter().position(|word| word == files::TORCH_COLLECTIVE)?;
    if run.argv.first()?.rsplit('/').next()? != "torchrun" {
        return None;
    }
    let (launcher, own) = (run.argv.get(1..at)?, run.argv.get(at + 1..)?);
    Some(call(launcher, own, gpus, nodes))
}

fn call(launcher: &[String], own: &[String], gpus: u32, nodes: u32) -> Result<Call, String> {
    let number = |name: &str| option(launcher, &[name]).and_then(|text| text.parse::<u32>().ok());
    let processes = number("--nproc_per_node").unwrap_or(1);
    let wanted = number("--nnodes").unwrap_or(1);
    if wanted != nodes {
        return Err(format!(
            "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError: {wanted} nodes wanted, {nodes} came\n"
        ));
    }
    if processes > gpus {
        return Err("RuntimeError: CUDA error: invalid device ordinal\n".to_owned());
    }
    let refused = |why: &str| format!("torch_collective.py: error: {why}\n");
    let (name, rest) = own.split_first().ok_or_else(|| refused("operation is missing"))?;
    let op = Op::from_name(name)
        .filter(|op| *op != Op::Hypercube)
        .ok_or_else(|| refused(&format!("argument operation: invalid choice: '{name}'")))?;
    let sweep: Vec<String> = rest.iter().filter(|word| !word.starts_with("--backend=")).cloned().collect();
    let options = Options::read(op, &sweep).map_err(|why| refused(&why))?;
    Ok(Call { options: Options { by_torch: true, ..options }, processes })
}
