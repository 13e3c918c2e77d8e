//! The extract of one report that stragglers are found by: of each GPU its communication kernels with their
//! communicators, and the durations of its compute kernels. It is small beside the report.

use crate::kernel_class::{class_of_both, communicates};
use crate::stragglers::robust::median;
use crate::stragglers::{Collective, Compute, Evidence, Rank, Work};
use nsys::export::ExportError;
use nsys::nccl::{Call, Function, NcclCalls};
use nsys::tables::KERNEL;
use nsys::trace::{Keys, Part, Trace};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct KernelExtract {
    /// By process and device.
    pub gpus: Vec<Gpu>,
    /// How many ranks a communicator has.
    pub sizes: BTreeMap<u64, u32>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Gpu {
    pub device: i64,
    /// In the largest communicator that it is part of.
    pub nccl_rank: Option<u32>,
    lead_ns: Option<i64>,
    work: Vec<Work>,
    compute: Vec<Compute>,
}

/// One report among others.
pub(crate) struct RankReport<'a> {
    pub rank: i64,
    pub node: &'a str,
    /// The clock of its times, and the offset that turns them into times of that clock.
    pub clock: &'a str,
    pub zero: i64,
    pub extract: &'a KernelExtract,
}

impl KernelExtract {
    /// From the begin of the first collective to the end of the last.
    pub(crate) fn span(&self) -> Option<(i64, i64)> {
        let all = || self.gpus.iter().flat_map(|gpu| &gpu.work);
        Some((all().map(|work| work.start).min()?, all().map(|work| work.end).max()?))
    }
}

/// At most this many kernel names per GPU are compared with those of the peers, those with the most time; and at most
/// this many kernels per name.
const MOST_NAMES: usize = 16;
const MOST_KERNELS: usize = 2048;

/// `None` where no kernel communicates; else with the number of kernels read.
pub(crate) fn take(trace: &Trace) -> Result<Option<(KernelExtract, u64)>, ExportError> {
    let columns = ["start", "end", "deviceId", "streamId", "shortName", "demangledName", "globalPid"];
    let Some(rows) = trace.rows(&KERNEL, &columns)? else { return Ok(None) };
    let (starts, ends) = (rows.ints("start")?, rows.ints("end")?);
    let (devices, streams) = (rows.ints("deviceId")?, rows.ints("streamId")?);
    let pids = rows.maybe_ints("globalPid")?;
    let names = Part::named(rows.ints("shortName")?.iter().copied(), trace.strings()?, |name| name);
    let whole = Part::named(rows.ints("demangledName")?.iter().copied(), trace.strings()?, |name| name);
    let both = Keys::by(&[&names.of_row, &whole.of_row]);
    let communicate: Vec<bool> = both
        .groups
        .iter()
        .map(|both| {
            let (short, whole) = (&names.labels[both[0] as usize], &whole.labels[both[1] as usize]);
            communicates(class_of_both(short, whole))
        })
        .collect();
    let calls = NcclCalls::read(trace)?.unwrap_or_default();
    let index = CallIndex::new(&calls);
    let mut gpus: BTreeMap<(i64, i64), Kernels> = BTreeMap::new();
    let mut backwards = 0;
    for row in 0..rows.len() {
        let (start, end) = (starts[row], ends[row]);
        if end < start {
            backwards += 1;
            continue;
        }
        let gpu = gpus.entry((pids.get(row).unwrap_or_default(), devices[row])).or_default();
        let name = names.of_row[row];
        if !communicate[both.of_row[row] as usize] {
            gpu.compute.entry(name).or_default().push((start, end.abs_diff(start)));
            gpu.busy.push((start, end));
            continue;
        }
        let key = KernelKey { start, end, device: devices[row], stream: streams[row] };
        let (communicator, kind) = match index.of_kernel.get(&key) {
            Some(said) => *said,
            None => (None, kind_of(&names.labels[name as usize])),
        };
        gpu.work.push((Work { communicator, stream: 0, kind, start, end, busy_ns: 0 }, streams[row]));
        gpu.leads.extend(index.launches.get(&key).map(|launch| start.saturating_sub(*launch)));
    }
    if backwards > 0 {
        trace.note(format!("kernels: rows that end before they begin, left out: {backwards}"));
    }
    let gpus: Vec<Gpu> = gpus
        .into_iter()
        .filter(|(_, kernels)| !kernels.work.is_empty())
        .map(|((process, device), kernels)| {
            kernels.gpu(device, nccl_rank(&calls, process, device), &names.labels)
        })
        .collect();
    let looked = rows.len() as u64;
    Ok((!gpus.is_empty()).then(|| (KernelExtract { gpus, sizes: sizes(&calls) }, looked)))
}

/// Identifies a kernel both in the kernel table and in the calls.
#[derive(PartialEq, Eq, Hash)]
struct KernelKey {
    start: i64,
    end: i64,
    device: i64,
    stream: i64,
}

/// Communicator, kind and launch time of each kernel, by the NCCL calls.
#[derive(Default)]
struct CallIndex {
    of_kernel: HashMap<KernelKey, (Option<u64>, Collective)>,
    launches: HashMap<KernelKey, i64>,
}

impl CallIndex {
    fn new(calls: &NcclCalls) -> CallIndex {
        let key = |kernel: &nsys::nccl::Kernel| KernelKey {
            start: kernel.start,
            end: kernel.end,
            device: kernel.device,
            stream: kernel.stream,
        };
        let mut index = CallIndex::default();
        for kernel in &calls.kernels {
            if let Some(launch) = kernel.launch_start {
                index.launches.insert(key(kernel), launch);
            }
        }
        for call in &calls.calls {
            let said = (call.communicator, kind(call));
            for kernel in calls.kernels_of(call) {
                let known = index.of_kernel.entry(key(kernel)).or_insert(said);
                // Of calls that differ and share their kernels it is not known which kernel is whose.
                if *known != said {
                    let communicator = known.0.filter(|_| known.0 == said.0);
                    *known = (communicator, Collective::Other);
                }
            }
        }
        index
    }
}

fn kind(call: &Call) -> Collective {
    match call.function {
        Function::AllReduce => Collective::AllReduce,
        Function::AllGather => Collective::AllGather,
        Function::ReduceScatter => Collective::ReduceScatter,
        Function::AllToAll => Collective::AlltoAll,
        _ => Collective::Other,
    }
}

/// By its name alone.
fn kind_of(name: &str) -> Collective {
    let kinds =
        [Collective::AllReduce, Collective::AllGather, Collective::ReduceScatter, Collective::AlltoAll];
    let named = |kind: &Collective| name.starts_with("nccl") && name.contains(&format!("_{}", kind.name()));
    kinds.into_iter().find(named).unwrap_or(Collective::Other)
}

fn sizes(calls: &NcclCalls) -> BTreeMap<u64, u32> {
    let made = calls.communicators.iter().filter_map(|made| Some((made.id?, made.ranks?)));
    let used = calls.calls.iter().filter_map(|call| Some((call.communicator?, call.ranks?)));
    made.chain(used).collect()
}

fn nccl_rank(calls: &NcclCalls, process: i64, device: i64) -> Option<u32> {
    let own = || calls.communicators.iter().filter(|made| made.process == process);
    let largest = own().map(|made| made.ranks).max()?;
    let mut ranks: Vec<u32> = own()
        .filter(|made| made.ranks == largest)
        .filter(|made| made.device.is_none_or(|of| i64::from(of) == device))
        .filter_map(|made| made.rank)
        .collect();
    ranks.dedup();
    if ranks.len() == 1 { ranks.pop() } else { None }
}

/// The kernels of one GPU.
#[derive(Default)]
struct Kernels {
    /// With the stream, as the report numbers it.
    work: Vec<(Work, i64)>,
    leads: Vec<i64>,
    /// By name: start and duration.
    compute: BTreeMap<u32, Vec<(i64, u64)>>,
    /// When kernels that compute ran.
    busy: Vec<(i64, i64)>,
}

impl Kernels {
    fn gpu(mut self, device: i64, nccl_rank: Option<u32>, names: &[String]) -> Gpu {
        self.work.sort_by_key(|(work, stream)| (work.start, work.end, *stream));
        let mut order: Vec<i64> = Vec::new();
        let work = self.work.into_iter().map(|(work, stream)| {
            let known = order.iter().position(|known| *known == stream);
            let stream = known.unwrap_or_else(|| {
                order.push(stream);
                order.len() - 1
            });
            Work { stream: stream as u32, ..work }
        });
        let mut work: Vec<Work> = work.collect();
        mark_busy(&mut work, self.busy);
        let mut compute: Vec<Compute> = self
            .compute
            .into_iter()
            .map(|(name, mut kernels)| {
                kernels.sort_unstable();
                Compute {
                    name: names[name as usize].clone(),
                    count: kernels.len() as u64,
                    total_ns: kernels.iter().fold(0u64, |sum, (_, ns)| sum.saturating_add(*ns)),
                    first_ns: kernels
                        .iter()
                        .take(MOST_KERNELS)
                        .map(|(_, ns)| u32::try_from(*ns).unwrap_or(u32::MAX))
                        .collect(),
                }
            })
            .collect();
        compute.sort_by(|a, b| (b.total_ns, &a.name).cmp(&(a.total_ns, &b.name)));
        compute.truncate(MOST_NAMES);
        compute.sort_by(|a, b| a.name.cmp(&b.name));
        Gpu { device, nccl_rank, lead_ns: median(&mut self.leads), work, compute }
    }
}

/// How long kernels that compute ran within each piece of work, where no earlier work runs; work in the order of its
/// starts.
fn mark_busy(work: &mut [Work], mut busy: Vec<(i64, i64)>) {
    busy.sort_unstable();
    let mut next = 0;
    // All before it is counted.
    let mut counted = i64::MIN;
    for work in work {
        counted = counted.max(work.start);
        while let Some((start, end)) = busy.get(next).filter(|(start, _)| *start < work.end) {
            let (from, to) = (counted.max(*start), work.end.min(*end));
            if from < to {
                work.busy_ns = work.busy_ns.saturating_add(to.saturating_sub(from));
                counted = to;
            }
            // A kernel that runs on counts for the next piece of work, too.
            if *end > work.end {
                break;
            }
            next += 1;
        }
        counted = counted.max(work.end);
    }
}

/// All reports together. Where none of them records a communicator, streams stand for them.
pub(crate) fn evidence<'a>(reports: &[RankReport<'a>]) -> Evidence<'a> {
    let all = || reports.iter().flat_map(|report| report.extract.gpus.iter().map(move |gpu| (report, gpu)));
    let ranks = all().map(|(report, gpu)| Rank {
        rank: report.rank,
        node: report.node,
        gpu: Some(gpu.device),
        clock: report.clock,
        zero: report.zero,
        lead_ns: gpu.lead_ns,
        work: &gpu.work,
        compute: &gpu.compute,
    });
    let collective = |work: &&Work| work.kind != Collective::Other;
    let collectives = || all().flat_map(|(_, gpu)| &gpu.work).filter(collective);
    Evidence {
        ranks: ranks.collect(),
        sizes: reports.iter().flat_map(|report| report.extract.sizes.clone()).collect(),
        by_order: collectives().next().is_some() && collectives().all(|work| work.communicator.is_none()),
        ends_assumed: false,
    }
}

/// A report's clock, and what makes its times those of that clock: reports of one host share it where each says what its
/// zero was.
pub(crate) fn clock<'a>(host: Option<&'a str>, utc_epoch_ns: Option<i64>, file: &'a str) -> (&'a str, i64) {
    match (host, utc_epoch_ns) {
        (Some(host), Some(zero)) => (host, zero),
        _ => (file, 0),
    }
}

/// Why a part of the evidence was not used, for a person.
pub(crate) fn describe_flaw(flaw: &crate::stragglers::Flaw, evidence: &Evidence) -> String {
    use crate::stragglers::Flaw;
    let name = |communicator: u64| communicator_name(communicator, evidence.by_order);
    match flaw {
        Flaw::NotRecorded { communicator, recorded, of } => {
            format!("{}: not used, recorded by {recorded} of {of} ranks", name(*communicator))
        }
        Flaw::UnequalCounts { communicator, kind, fewest, most } => format!(
            "{}: {} not used, its ranks recorded different counts: rank {} {} times, rank {} {} times",
            name(*communicator),
            kind.name(),
            fewest.0,
            fewest.1,
            most.0,
            most.1,
        ),
    }
}

/// The communicator's name in messages.
pub(crate) fn communicator_name(communicator: u64, by_order: bool) -> String {
    match by_order {
        true => format!("stream {communicator} in order of use"),
        false => format!("communicator {communicator:#x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compute_beside_communication_is_counted_once() {
        let busy = |work: &[(i64, i64)], kernels: &[(i64, i64)]| {
            let work = work.iter().map(|(start, end)| Work {
                communicator: None,
                stream: 0,
                kind: Collective::Other,
                start: *start,
                end: *end,
                busy_ns: 0,
            });
            let mut work: Vec<Work> = work.collect();
            mark_busy(&mut work, kernels.to_vec());
            work.iter().map(|work| work.busy_ns).collect::<Vec<_>>()
        };
        assert_eq!(busy(&[(10, 20), (30, 40)], &[(0, 12), (11, 14), (35, 99)]), [4, 5]);
        assert_eq!(busy(&[(10, 20), (30, 40)], &[(0, 100), (5, 200)]), [10, 10], "what runs on");
        assert_eq!(busy(&[(0, 100), (50, 150)], &[(40, 120)]), [60, 20], "where no earlier work runs");
        assert_eq!(busy(&[(0, 100), (20, 30)], &[(10, 200)]), [90, 0]);
        assert_eq!(busy(&[(10, 20)], &[(0, 10), (20, 30)]), [0]);
        assert_eq!(busy(&[(i64::MIN, i64::MAX)], &[(i64::MIN, i64::MAX)]), [i64::MAX]);
    }

    #[test]
    fn kernel_names_give_the_kind_of_collective() {
        for (name, kind) in [
            ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", Collective::AllReduce),
            ("ncclKernel_AllGather_RING_LL_Sum_int8_t", Collective::AllGather),
            ("ncclSymkDevKernel_ReduceScatter_LD", Collective::ReduceScatter),
            ("ncclDevKernel_AlltoAll", Collective::AlltoAll),
            ("ncclDevKernel_SendRecv", Collective::Other),
            ("ncclDevKernel_Reduce_Sum_f32_RING_LL", Collective::Other),
            ("my_AllReduce", Collective::Other),
        ] {
            assert_eq!(kind_of(name), kind, "{name}");
        }
    }
}
