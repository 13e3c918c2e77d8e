//! The NCCL calls in a report by process, and the kernels that they launched.

use super::super::InputFile;
use crate::recipe::shared_findings::{CallFinding, ReportFinding};
use nsys::export::ExportError;
use nsys::loss::loss;
use nsys::nccl::{Call, Function, NcclCalls};
use nsys::trace::{Trace, process_of};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Reported {
    /// In the largest of the process's communicators, with the number of its ranks; where the report has them.
    pub place: Option<(u32, u32)>,
    /// In the order in which they were made, with the bytes of their payloads.
    pub calls: Vec<(Function, Option<u64>)>,
    /// The same with the calls of a group as one.
    pub units: Vec<Option<u64>>,
    /// Kernels of NCCL that no call of the report launched.
    pub kernels_of_none: u64,
    /// Calls of at least one byte that launched none.
    pub calls_of_none: u64,
    /// Kernels whose name is that of another operation than their call, the first with both.
    pub of_another: u64,
    pub first_of_another: Option<(String, String)>,
}

/// Of each process that calls NCCL: torchrun has several in one session. A report without calls of NCCL has none, and no
/// kernels of it either.
pub(super) fn read(file: &InputFile) -> Result<Vec<Reported>, (&'static str, String)> {
    let unreadable = |error: ExportError| (ReportFinding::Unreadable.code(), error.to_string());
    let trace = Trace::open(&file.path).map_err(unreadable)?;
    // Missing calls may be among the lost events.
    if let Some((code, text)) = loss(trace.export()).map_err(unreadable)? {
        return Err((code, format!("the profiler reported: {text}")));
    }
    match NcclCalls::read(&trace).map_err(unreadable)? {
        Some(calls) if !calls.calls.is_empty() => Ok(by_process(&calls)),
        _ => {
            let why = "no NCCL call was traced; trace `nvtx`, and use an NCCL built with NVTX ranges";
            Err((CallFinding::NoNcclCalls.code(), why.to_owned()))
        }
    }
}

fn by_process(all: &NcclCalls) -> Vec<Reported> {
    let processes: BTreeSet<i64> = all.calls.iter().map(|call| process_of(call.global_tid)).collect();
    let is_alone = processes.len() == 1;
    processes.into_iter().map(|process| count_calls(all, process, is_alone)).collect()
}

/// Kernels of a process that calls nothing count where there is one alone that does.
fn count_calls(all: &NcclCalls, process: i64, is_alone: bool) -> Reported {
    let own: Vec<&Call> = all.calls.iter().filter(|call| process_of(call.global_tid) == process).collect();
    let of_none = all.kernels_of_none().iter().filter(|kernel| is_alone || kernel.process == process);
    let mut reported = Reported {
        place: place(all, process),
        calls: own.iter().map(|call| (call.function, call.bytes)).collect(),
        units: Vec::new(),
        kernels_of_none: of_none.count() as u64,
        calls_of_none: 0,
        of_another: 0,
        first_of_another: None,
    };
    let mut groups = BTreeSet::new();
    for call in own {
        if call.group.is_none_or(|group| groups.insert(group)) {
            reported.units.push(call.bytes);
        }
        let kernels = all.kernels_of(call);
        reported.calls_of_none += u64::from(kernels.is_empty() && call.bytes != Some(0));
        if !all.is_alone(call) || matches!(call.function, Function::Send | Function::Recv) {
            continue;
        }
        for kernel in kernels {
            let name = all.name(kernel);
            if operation_of(name).is_some_and(|function| function != call.function) {
                reported.of_another += 1;
                let both = || (call.function.name().to_owned(), name.to_owned());
                reported.first_of_another.get_or_insert_with(both);
            }
        }
    }
    reported
}

fn place(all: &NcclCalls, process: i64) -> Option<(u32, u32)> {
    let own = all.communicators.iter().filter(|made| made.process == process);
    let known: BTreeSet<(u32, u32)> = own.filter_map(|made| Some((made.ranks?, made.rank?))).collect();
    let (ranks, rank) = known.last().copied()?;
    // A process that drives several GPUs is several ranks.
    let is_one = known.iter().filter(|(of, _)| *of == ranks).count() == 1;
    is_one.then_some((rank, ranks))
}

/// The operation in a kernel's name: `ncclDevKernel_AllReduce_Sum_f32_RING_LL`.
fn operation_of(kernel: &str) -> Option<Function> {
    let (_, rest) = kernel.split_once("Kernel_").filter(|(before, _)| before.starts_with("nccl"))?;
    let word = rest.split(['_', '(', '<']).next()?;
    Function::from_name(&format!("nccl{word}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_names_give_their_operation_or_none() {
        let table = [
            ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", Some(Function::AllReduce)),
            ("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096>)", Some(Function::AllGather)),
            ("ncclKernel_Broadcast_RING_LL_Sum_int8_t", Some(Function::Broadcast)),
            ("ncclDevKernel_SendRecv", None),
            ("ncclDevKernel_Generic", None),
            ("gemmKernel_AllReduce", None),
        ];
        for (name, function) in table {
            assert_eq!(operation_of(name), function, "{name}");
        }
    }
}
