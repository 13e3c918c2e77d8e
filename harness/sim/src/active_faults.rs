//! The faults of a job's nodes, sorted by what they do: one that ends the job, and those that change what it measures
//! or leaves behind. When and how a job ends is decided in `execution`.

use super::cluster::Cluster;
use model::artefact::AGAIN;
use model::fault::Fault;

/// What ails the nodes of one job. Nodes, NICs and GPUs are counted in the order of the job and of the profile.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ActiveFaults {
    /// The fault that keeps the job from ending well, and its node.
    pub ending: Option<(Ending, usize)>,
    nics: Vec<(usize, usize, Nic)>,
    gpus: Vec<(usize, u32, f64)>,
    nvlink: Vec<(usize, f64)>,
    corrupt: Vec<(usize, u32)>,
    /// What only programs that test a node by itself show.
    for_tools: Vec<(usize, Fault)>,
    missing: Vec<usize>,
    garbled: Vec<usize>,
    wrong_ranks: Vec<usize>,
    clock_jump: Vec<usize>,
    connection_drops: Vec<usize>,
    reports: Vec<(usize, Report)>,
    stragglers: Vec<(usize, u32, f64)>,
    /// Ranks that load their batches late, and by how many milliseconds.
    loaders: Vec<(usize, u32, f64)>,
    /// Ranks whose numbers are none, and from which step on.
    nans: Vec<(usize, u32, u32)>,
    /// Ranks that stop calling collectives.
    desyncs: Vec<(usize, u32)>,
    /// Ranks that call another collective than the others, or the same with another size.
    odd_calls: Vec<OddCall>,
    /// Nodes whose NCCL has no Inspector, or does not find its plugin.
    without_inspector: Vec<usize>,
    comm_exposed: Vec<usize>,
    no_gdrdma: Vec<usize>,
    graph_launch: Vec<usize>,
    /// How far a clock is ahead, in milliseconds, and how fast it runs, in parts per million.
    clock_offset: Vec<(usize, f64)>,
    clock_drift: Vec<(usize, f64)>,
    /// The remaining fraction of the pace of anything that is profiled, or recorded by NCCL's Inspector.
    profiler_costs: Vec<f64>,
}

/// In the order in which they would come about: a job that never starts cannot hang.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// The job stays pending.
    QueueStuck,
    /// The node fails in the middle of the job, which ends as NODE_FAIL.
    NodeFails,
    /// Slurm takes the nodes away in the middle of the job.
    Preempted,
    /// Its ranks stop in the middle, and wait until somebody ends the job.
    Hang,
    /// One rank calls no collective any more; of a training the others give up in the end.
    Desync,
    /// One rank is killed; the job exits with 137.
    RankDies,
    /// The node's disk fills up: outputs are cut off, and the job exits with 1.
    DiskFull,
}

/// What is wrong with the reports of a node's profiled ranks. Of several the first counts: without nsys there is no
/// report to cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Report {
    /// The node has no nsys: its ranks run unprofiled.
    NsysMissing,
    /// The node's nsys is too old: its ranks run unprofiled.
    NsysOld,
    /// nsys leaves no report.
    Missing,
    /// The report has no byte.
    Empty,
    /// The report is cut off: nsys cannot export it.
    Truncated,
    /// The report's own diagnostics say that events were lost.
    EventsDropped,
    /// Whoever was to open the window could not.
    WindowShut,
}

/// Facts without whose sound values the ranks of a node leave no records of NCCL's Inspector.
const INSPECTOR_FACTS: [&str; 2] = ["nccl", "nccl_inspector"];

/// A rank that calls otherwise than its peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OddCall {
    /// In the order of the job.
    pub node: usize,
    /// Number on its node, from 0.
    pub rank: u32,
    /// In what its call differs.
    pub differs_in: Differs,
}

/// In what the call of a rank differs from those of its peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Differs {
    /// It is another collective.
    Operation,
    /// It is the same collective with another number of elements.
    Size,
}

/// What a fault leaves of a NIC.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Nic {
    /// The fraction of its rate that is left.
    Left(f64),
    /// Listed on the node, but carries nothing.
    Dead,
    /// Not listed on the node, and carries nothing.
    Missing,
}

impl ActiveFaults {
    /// By the software of a job: on all of its nodes alike.
    pub(crate) fn with_all_slow(mut self, cluster: &Cluster, nodes: usize, left: f64) -> ActiveFaults {
        if left > 0.0 && left < 1.0 {
            for node in 0..nodes {
                self.gpus.extend((0..cluster.gpus).map(|gpu| (node, gpu, left)));
                self.nics.extend((0..cluster.nics.len()).map(|nic| (node, nic, Nic::Left(left))));
            }
        }
        self
    }

    /// Some ail the first attempt of a job alone.
    pub(crate) fn new(cluster: &Cluster, case: &str, job: &str, nodes: &[String]) -> ActiveFaults {
        let is_first = !job.ends_with(AGAIN);
        let mut active_faults = ActiveFaults::default();
        for fault in cluster.faults_of(case, nodes) {
            let Some(node) = cluster.stands_for(fault, nodes) else { continue };
            let nic = |device: &String| cluster.nics.iter().position(|nic| nic == device).unwrap_or_default();
            let mut report = |what| active_faults.reports.push((node, what));
            match &fault.fault {
                Fault::ReportTruncated => report(Report::Truncated),
                Fault::ReportMissing => report(Report::Missing),
                Fault::ReportEmpty => report(Report::Empty),
                Fault::NsysMissing => report(Report::NsysMissing),
                Fault::NsysOld => report(Report::NsysOld),
                Fault::EventsDropped => report(Report::EventsDropped),
                Fault::WindowShut => report(Report::WindowShut),
                _ => {}
            }
            let mut ending = |how| {
                let this = (how, node);
                active_faults.ending = Some(active_faults.ending.map_or(this, |other| other.min(this)));
            };
            match &fault.fault {
                Fault::NicSlow { left, device } => {
                    active_faults.nics.push((node, nic(device), Nic::Left(*left)))
                }
                Fault::NicDead { device } => active_faults.nics.push((node, nic(device), Nic::Dead)),
                Fault::NicMissing { device } => active_faults.nics.push((node, nic(device), Nic::Missing)),
                Fault::GpuSlow { left, gpu } => active_faults.gpus.push((node, *gpu, *left)),
                Fault::NodeSlow { left } => {
                    active_faults.gpus.extend((0..cluster.gpus).map(|gpu| (node, gpu, *left)));
                    active_faults
                        .nics
                        .extend((0..cluster.nics.len()).map(|nic| (node, nic, Nic::Left(*left))));
                }
                Fault::NvlinkSlow { left } => active_faults.nvlink.push((node, *left)),
                Fault::PortSlow { left } | Fault::LinkSlow { left, .. } => {
                    active_faults
                        .nics
                        .extend((0..cluster.nics.len()).map(|nic| (node, nic, Nic::Left(*left))));
                }
                Fault::Corrupt { gpu } => active_faults.corrupt.push((node, *gpu)),
                Fault::OutputMissing => active_faults.missing.push(node),
                Fault::Garbled => active_faults.garbled.push(node),
                Fault::WrongRanks => active_faults.wrong_ranks.push(node),
                Fault::ClockJump => active_faults.clock_jump.push(node),
                Fault::ConnectionDrops => active_faults.connection_drops.push(node),
                Fault::Straggler { ms, rank } => active_faults.stragglers.push((node, *rank, *ms)),
                Fault::SlowLoader { ms, rank } => active_faults.loaders.push((node, *rank, *ms)),
                Fault::NanLoss { step, rank } => active_faults.nans.push((node, *rank, *step)),
                Fault::Desync { rank } => {
                    ending(Ending::Desync);
                    active_faults.desyncs.push((node, *rank));
                }
                Fault::Mismatch { rank } => {
                    ending(Ending::Hang);
                    let call = OddCall { node, rank: *rank, differs_in: Differs::Operation };
                    active_faults.odd_calls.push(call);
                }
                Fault::MismatchSize { rank } => {
                    ending(Ending::Hang);
                    let call = OddCall { node, rank: *rank, differs_in: Differs::Size };
                    active_faults.odd_calls.push(call);
                }
                Fault::CommExposed => active_faults.comm_exposed.push(node),
                Fault::NoGdrdma => {
                    active_faults.no_gdrdma.push(node);
                    // What goes through host memory crosses it twice.
                    active_faults.nics.extend((0..cluster.nics.len()).map(|nic| (node, nic, Nic::Left(0.5))));
                }
                Fault::GraphLaunch => active_faults.graph_launch.push(node),
                Fault::NodeFailsOnce if is_first => ending(Ending::NodeFails),
                Fault::PreemptedOnce if is_first => ending(Ending::Preempted),
                Fault::NodeFailsOnce | Fault::PreemptedOnce => {}
                Fault::ProfilerCosts { left } => active_faults.profiler_costs.push(*left),
                Fault::ClockOffset { ms } => active_faults.clock_offset.push((node, *ms)),
                Fault::ClockDrift { ppm } => active_faults.clock_drift.push((node, *ppm)),
                Fault::RankDies => ending(Ending::RankDies),
                Fault::Hang => ending(Ending::Hang),
                Fault::NodeFails => ending(Ending::NodeFails),
                Fault::QueueStuck => ending(Ending::QueueStuck),
                Fault::Preempted => ending(Ending::Preempted),
                Fault::DiskFull => ending(Ending::DiskFull),
                Fault::ReportTruncated
                | Fault::ReportMissing
                | Fault::ReportEmpty
                | Fault::NsysMissing
                | Fault::NsysOld
                | Fault::EventsDropped
                | Fault::WindowShut => {}
                // Such a node has no jobs.
                Fault::HostUnreachable => {}
                Fault::NicLate { .. }
                | Fault::PcieSlow { .. }
                | Fault::EccErrors { .. }
                | Fault::NvlinkErrors { .. }
                | Fault::NvlinkDown { .. }
                | Fault::Throttles { .. }
                | Fault::ThrottlesAfter { .. }
                | Fault::EccGrows { .. }
                | Fault::NvlinkReplays { .. }
                | Fault::NicFlaps { .. }
                | Fault::DriverLeaks { .. }
                | Fault::MemorySlow { .. }
                | Fault::MemoryWrong
                | Fault::CpuSlow { .. }
                | Fault::CpuShared { .. }
                | Fault::TcpSlow { .. }
                | Fault::GpusUnconstrained
                | Fault::DiskSlow { .. }
                | Fault::DiskErrors => active_faults.for_tools.push((node, fault.fault.clone())),
                Fault::BadFact { fact } if INSPECTOR_FACTS.contains(&fact.as_str()) => {
                    active_faults.without_inspector.push(node);
                }
                // What only a probe sees.
                Fault::GpuMissing { .. }
                | Fault::GpuBusy { .. }
                | Fault::DriverDiffers
                | Fault::BadFact { .. } => {}
            }
        }
        active_faults
    }

    /// The faults of a node that only programs show that test it by itself.
    pub(crate) fn tool_faults(&self, node: usize) -> impl Iterator<Item = &Fault> {
        self.for_tools.iter().filter(move |(at, _)| *at == node).map(|(_, fault)| fault)
    }

    /// The fraction of its pace that is left to what is profiled, or recorded by NCCL's Inspector.
    pub(crate) fn left_by_profiler(&self) -> f64 {
        self.profiler_costs.iter().copied().fold(1.0, f64::min)
    }

    /// The node whose fault ends the job in this way, by its place in the job.
    pub(crate) fn fails_by(&self, how: Ending) -> Option<usize> {
        self.ending.filter(|(ending, _)| *ending == how).map(|(_, node)| node)
    }

    /// The fraction of its rate that the NIC has left; nothing where it carries nothing.
    pub(crate) fn nic_left(&self, node: usize, nic: usize) -> Option<f64> {
        self.nics.iter().filter(|(at, which, _)| (*at, *which) == (node, nic)).try_fold(
            1.0f64,
            |left, (.., state)| match state {
                Nic::Left(fraction) => Some(left.min(*fraction)),
                Nic::Dead | Nic::Missing => None,
            },
        )
    }

    /// Whether the node does not list the NIC.
    pub(crate) fn nic_is_missing(&self, node: usize, nic: usize) -> bool {
        self.nics.contains(&(node, nic, Nic::Missing))
    }

    /// Whether any NIC of the job is slow, dead or missing.
    pub(crate) fn has_ailing_nics(&self) -> bool {
        !self.nics.is_empty()
    }

    /// The fraction of the GPU's pace that is left; 1 without a fault.
    pub(crate) fn gpu_left(&self, node: usize, gpu: u32) -> f64 {
        let left =
            self.gpus.iter().filter(|(at, which, _)| (*at, *which) == (node, gpu)).map(|(.., left)| *left);
        left.fold(1.0, f64::min)
    }

    /// The fraction of its rate that is left to what connects the GPUs of a node.
    pub(crate) fn nvlink_left(&self, node: usize) -> f64 {
        self.nvlink.iter().filter(|(at, _)| *at == node).map(|(_, left)| *left).fold(1.0, f64::min)
    }

    /// Of the slowest GPU among the nodes, and of what is between them.
    pub(crate) fn least_gpu_left(&self, nodes: std::ops::Range<usize>) -> f64 {
        let gpus = self.gpus.iter().filter(|(at, ..)| nodes.contains(at)).map(|(.., left)| *left);
        let nvlink = self.nvlink.iter().filter(|(at, _)| nodes.contains(at)).map(|(_, left)| *left);
        gpus.chain(nvlink).fold(1.0, f64::min)
    }

    /// Whether the GPU returns wrong data.
    pub(crate) fn is_corrupt(&self, node: usize, gpu: u32) -> bool {
        self.corrupt.contains(&(node, gpu))
    }

    /// Whether any GPU of these nodes returns wrong data.
    pub(crate) fn any_corrupt(&self, nodes: std::ops::Range<usize>) -> bool {
        self.corrupt.iter().any(|(at, _)| nodes.contains(at))
    }

    /// Whether the node leaves no output.
    pub fn output_missing(&self, node: usize) -> bool {
        self.missing.contains(&node)
    }

    /// Whether any node leaves no output.
    pub(crate) fn any_output_missing(&self) -> bool {
        !self.missing.is_empty()
    }

    /// Whether the node's output is mangled.
    pub fn garbled(&self, node: usize) -> bool {
        self.garbled.contains(&node)
    }

    /// Whether any node's output is mangled.
    pub(crate) fn any_garbled(&self) -> bool {
        !self.garbled.is_empty()
    }

    /// The first node whose ranks do not find the others.
    pub(crate) fn wrong_ranks(&self) -> Option<usize> {
        self.wrong_ranks.first().copied()
    }

    /// Whether the node's ranks do not find the others.
    pub(crate) fn has_wrong_ranks(&self, node: usize) -> bool {
        self.wrong_ranks.contains(&node)
    }

    /// What is wrong with the reports of the node's ranks, if anything.
    pub(crate) fn report(&self, node: usize) -> Option<Report> {
        self.reports.iter().filter(|(at, _)| *at == node).map(|(_, what)| *what).min()
    }

    /// Whether ssh to the node is cut off for a while in each job.
    pub(crate) fn connection_drops(&self, node: usize) -> bool {
        self.connection_drops.contains(&node)
    }

    /// Whether the node's wall clock is an hour ahead at the end of its capture.
    pub(crate) fn clock_jumps(&self, node: usize) -> bool {
        self.clock_jump.contains(&node)
    }

    /// The ranks that come late, by node and number there, and by how many milliseconds.
    pub(crate) fn stragglers(&self) -> &[(usize, u32, f64)] {
        &self.stragglers
    }

    /// Ranks that load batches late: node, number there, milliseconds.
    pub(crate) fn loaders(&self) -> &[(usize, u32, f64)] {
        &self.loaders
    }

    /// By node, number there and step.
    pub(crate) fn nans(&self) -> &[(usize, u32, u32)] {
        &self.nans
    }

    /// The first rank that stops calling collectives, by node and number there.
    pub(crate) fn desync(&self) -> Option<(usize, u32)> {
        self.desyncs.first().copied()
    }

    /// The first rank that calls another collective than the others, or the same with another size.
    pub(crate) fn odd_call(&self) -> Option<OddCall> {
        self.odd_calls.first().copied()
    }

    /// Whether ranks of the node leave no records of NCCL's Inspector.
    pub(crate) fn lacks_inspector(&self, node: usize) -> bool {
        self.without_inspector.contains(&node)
    }

    /// Whether the node's cards do not reach the memory of its GPUs.
    pub(crate) fn lacks_gdrdma(&self, node: usize) -> bool {
        self.no_gdrdma.contains(&node)
    }

    /// Whether communication of a training does not hide behind computation.
    pub(crate) fn any_comm_exposed(&self) -> bool {
        !self.comm_exposed.is_empty()
    }

    /// Whether graphs launch the kernels of the node's ranks.
    pub(crate) fn launches_graphs(&self, node: usize) -> bool {
        self.graph_launch.contains(&node)
    }

    /// How far the node's clock is ahead for its faults, in milliseconds, and how fast it runs, in parts per million.
    pub(crate) fn clock(&self, node: usize) -> (f64, f64) {
        let sum = |faults: &[(usize, f64)]| {
            faults.iter().filter(|(at, _)| *at == node).map(|(_, value)| *value).sum()
        };
        (sum(&self.clock_offset), sum(&self.clock_drift))
    }
}
