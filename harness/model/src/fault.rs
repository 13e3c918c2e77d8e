//! The faults that a simulated cluster can have, and how a person writes them: `NODE:FAULT`.
//! What each does to a job is in the files of the simulated cluster that apply it.

use crate::artefact::Launcher;
use std::fmt;

/// One fault of one node. It holds for the whole run and hits every job that includes the node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeFault {
    /// As in the simulated inventory: `p5-002`.
    pub node: String,
    /// What is wrong with it.
    pub fault: Fault,
}

/// `F` in the written form is the fraction of the healthy rate that is left, `RANK` the number of a rank on its node.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// One NIC is slow.
    NicSlow {
        /// Fraction of its rate, above 0 and below 1.
        left: f64,
        /// As the instance profile lists it: `rdmap113s0`.
        device: String,
    },
    /// Listed, but its counters stand still and its flows do not connect; collectives go on without it.
    NicDead {
        /// As the instance profile lists it.
        device: String,
    },
    /// Not listed.
    NicMissing {
        /// As the instance profile lists it.
        device: String,
    },
    /// Messages of one NIC take longer, at whatever size.
    NicLate {
        /// Milliseconds, above 0 and at most 10000.
        ms: f64,
        /// As the instance profile lists it.
        device: String,
    },
    /// One GPU is slow.
    GpuSlow {
        /// Fraction of its rate, above 0 and below 1.
        left: f64,
        /// Index on the node, from 0.
        gpu: u32,
    },
    /// One GPU returns wrong data.
    Corrupt {
        /// Index on the node, from 0.
        gpu: u32,
    },
    /// A rank dies in the middle of the job.
    RankDies,
    /// The job stops making progress in its middle, and never ends by itself.
    Hang,
    /// The node is lost in the middle of the job.
    NodeFails,
    /// Over Slurm: its jobs stay pending, and the reason names the node.
    QueueStuck,
    /// Over Slurm: its jobs are preempted in their middle.
    Preempted,
    /// The job's stdout and the node's own files are absent.
    OutputMissing,
    /// Every third byte of stdout and of the node's files is no text.
    Garbled,
    /// The job fails in its middle, and files are cut; a probe finds no free space.
    DiskFull,
    /// Ranks do not find those of other nodes, so each node runs by itself.
    WrongRanks,
    /// The wall clock is an hour ahead when the counter sampler ends.
    ClockJump,
    /// Cut off: nsys cannot export it.
    ReportTruncated,
    /// nsys leaves no report.
    ReportMissing,
    /// nsys leaves a report of 0 bytes.
    ReportEmpty,
    /// There is no nsys on the node; ranks run unprofiled.
    NsysMissing,
    /// nsys is older than the inventory's `nsys_version`; ranks run unprofiled.
    NsysOld,
    /// The report says itself that it lacks events.
    EventsDropped,
    /// The window of steps never opens on it.
    WindowShut,
    /// Over ssh: it is gone for a while in the middle of each job, and so is the answer to the start.
    ConnectionDrops,
    /// Over ssh: it never answers.
    HostUnreachable,
    /// One rank comes late to every collective; the others wait for it within theirs.
    Straggler {
        /// Milliseconds late, above 0 and at most 10000.
        ms: f64,
        /// Number on its node, from 0.
        rank: u32,
    },
    /// One rank of a training waits for each of its batches.
    SlowLoader {
        /// Milliseconds for each batch, above 0 and at most 10000.
        ms: f64,
        /// Number on its node, from 0.
        rank: u32,
    },
    /// From a step on, numbers of one rank of a training are none.
    NanLoss {
        /// The first such step, from 0.
        step: u32,
        /// Number on its node, from 0.
        rank: u32,
    },
    /// One rank stops calling collectives in the middle of the run.
    Desync {
        /// Number on its node, from 0.
        rank: u32,
    },
    /// One rank calls another collective than the others, in the middle of the run.
    Mismatch {
        /// Number on its node, from 0.
        rank: u32,
    },
    /// One rank calls the same collective as the others with another size, in the middle of the run.
    MismatchSize {
        /// Number on its node, from 0.
        rank: u32,
    },
    /// Communication of training no longer hides behind computation.
    CommExposed,
    /// Network cards do not reach the memory of GPUs: what they carry goes through that of the host.
    NoGdrdma,
    /// Kernels are launched by graphs.
    GraphLaunch,
    /// As `NodeFails`, in the first attempt of a job alone.
    NodeFailsOnce,
    /// As `Preempted`, in the first attempt of a job alone.
    PreemptedOnce,
    /// Whatever is profiled, or recorded by NCCL's Inspector, goes at this fraction of its rate.
    ProfilerCosts {
        /// Above 0 and below 1.
        left: f64,
    },
    /// The node's clock is ahead, or behind where the number is below 0.
    ClockOffset {
        /// Milliseconds, at most an hour either way, and not 0.
        ms: f64,
    },
    /// The node's clock runs fast, or slow where the number is below 0.
    ClockDrift {
        /// Parts per million, at most 1000 either way, and not 0.
        ppm: f64,
    },
    /// The driver does not list it. Jobs do not notice: these change only what a probe sees of a node.
    GpuMissing {
        /// Index on the node, from 0.
        gpu: u32,
    },
    /// Somebody computes on it.
    GpuBusy {
        /// Index on the node, from 0.
        gpu: u32,
    },
    /// Another release of the driver than the other nodes have.
    DriverDiffers,
    /// A probe finds one of its facts bad, or unlike that of the other nodes. Jobs do not notice.
    BadFact {
        /// As a probe names it: `nvme_drives`.
        fact: String,
    },
    /// All of its GPUs and NICs alike.
    NodeSlow {
        /// Fraction of their rates, above 0 and below 1.
        left: f64,
    },
    /// Between its GPUs; each of them alone is good.
    NvlinkSlow {
        /// Fraction of its rate, above 0 and below 1.
        left: f64,
    },
    /// All of its NICs alike.
    PortSlow {
        /// Fraction of their rates, above 0 and below 1.
        left: f64,
    },
    /// The way of one GPU to the host's memory.
    PcieSlow {
        /// Fraction of its rate, above 0 and below 1.
        left: f64,
        /// Index on the node, from 0.
        gpu: u32,
    },
    /// The memory of one GPU has errors that cannot be corrected: DCGM's diagnosis shows them.
    EccErrors {
        /// Index on the node, from 0.
        gpu: u32,
    },
    /// The NVLinks of one GPU count errors, and are repaired by themselves.
    NvlinkErrors {
        /// Index on the node, from 0.
        gpu: u32,
    },
    /// One NVLink of a GPU is inactive.
    NvlinkDown {
        /// Index on the node, from 0.
        gpu: u32,
    },
    /// One GPU slows down in the middle of a long load.
    Throttles {
        /// Fraction of its rate that is left then, above 0 and below 1.
        left: f64,
        /// Index on the node, from 0.
        gpu: u32,
    },
    /// One GPU is slowed down by heat from some minute of a load on.
    ThrottlesAfter {
        /// Minutes since the load or the soak began, at least 0.
        minutes: f64,
        /// Index on the node, from 0.
        gpu: u32,
    },
    /// The memory of one GPU has more errors that are corrected with every hour.
    EccGrows {
        /// Minutes since the load or the soak began, at least 0.
        minutes: f64,
        /// Index on the node, from 0.
        gpu: u32,
    },
    /// One NVLink of a GPU replays packets, two a minute.
    NvlinkReplays {
        /// Minutes since the load or the soak began, at least 0.
        minutes: f64,
        /// Index on the node, from 0.
        gpu: u32,
    },
    /// One NIC is not listed for 90 seconds every half hour, as EFA does with one that fails.
    NicFlaps {
        /// Minutes since the load or the soak began, at least 0.
        minutes: f64,
        /// As the instance profile lists it.
        device: String,
    },
    /// A driver keeps memory of the host.
    DriverLeaks {
        /// MB for each hour of load.
        mb_per_hour: f64,
    },
    /// The memory of the host.
    MemorySlow {
        /// Fraction of its rate, above 0 and below 1.
        left: f64,
    },
    /// The memory of the host returns wrong data.
    MemoryWrong,
    /// The processors of the host.
    CpuSlow {
        /// Fraction of their rate, above 0 and below 1.
        left: f64,
    },
    /// Another process has the processors of the host, too.
    CpuShared {
        /// The part of their time that is left, above 0 and below 1.
        left: f64,
    },
    /// TCP to and from the node.
    TcpSlow {
        /// Fraction of its rate, above 0 and below 1.
        left: f64,
    },
    /// Slurm lets each step on the node use all of its GPUs.
    GpusUnconstrained,
    /// The disks of the node.
    DiskSlow {
        /// Fraction of their rate, above 0 and below 1.
        left: f64,
    },
    /// The disks of the node return errors.
    DiskErrors,
    /// The way between the inventory's groups of two nodes.
    LinkSlow {
        /// Fraction of its rate, above 0 and below 1.
        left: f64,
        /// A node of the group at the other end.
        other: String,
    },
}

impl Fault {
    /// Every way to write a fault.
    pub const FORMS: [&'static str; 65] = [
        "nic-slow=F@DEV",
        "nic-dead@DEV",
        "nic-missing@DEV",
        "nic-late=MS@DEV",
        "gpu-slow=F@N",
        "corrupt@N",
        "rank-dies",
        "hang",
        "node-fails",
        "queue-stuck",
        "preempted",
        "output-missing",
        "garbled",
        "disk-full",
        "wrong-ranks",
        "clock-jump",
        "report-truncated",
        "report-missing",
        "report-empty",
        "nsys-missing",
        "nsys-old",
        "events-dropped",
        "window-shut",
        "connection-drops",
        "host-unreachable",
        "straggler=MS@RANK",
        "slow-loader=MS@RANK",
        "nan-loss=STEP@RANK",
        "desync@RANK",
        "mismatch@RANK",
        "mismatch-size@RANK",
        "comm-exposed",
        "no-gdrdma",
        "graph-launch",
        "clock-offset=MS",
        "clock-drift=PPM",
        "node-slow=F",
        "nvlink-slow=F",
        "port-slow=F",
        "link-slow=F@OTHER-NODE",
        "node-fails-once",
        "preempted-once",
        "profiler-costs=F",
        "gpu-missing@N",
        "gpu-busy@N",
        "driver-differs",
        "bad-fact@FACT",
        "pcie-slow=F@N",
        "ecc-errors@N",
        "throttles=F@N",
        "nvlink-errors@N",
        "nvlink-down@N",
        "memory-slow=F",
        "memory-wrong",
        "cpu-slow=F",
        "cpu-shared=F",
        "tcp-slow=F",
        "gpus-unconstrained",
        "disk-slow=F",
        "disk-errors",
        "throttles-after=MIN@N",
        "ecc-grows=MIN@N",
        "nvlink-replays=MIN@N",
        "nic-flaps=MIN@DEV",
        "driver-leaks=MB",
    ];

    /// The kind alone, as it begins in the written form.
    pub fn kind(&self) -> &'static str {
        match self {
            Fault::NicSlow { .. } => "nic-slow",
            Fault::NicDead { .. } => "nic-dead",
            Fault::NicMissing { .. } => "nic-missing",
            Fault::NicLate { .. } => "nic-late",
            Fault::GpuSlow { .. } => "gpu-slow",
            Fault::Corrupt { .. } => "corrupt",
            Fault::RankDies => "rank-dies",
            Fault::Hang => "hang",
            Fault::NodeFails => "node-fails",
            Fault::QueueStuck => "queue-stuck",
            Fault::Preempted => "preempted",
            Fault::OutputMissing => "output-missing",
            Fault::Garbled => "garbled",
            Fault::DiskFull => "disk-full",
            Fault::WrongRanks => "wrong-ranks",
            Fault::ClockJump => "clock-jump",
            Fault::ReportTruncated => "report-truncated",
            Fault::ReportMissing => "report-missing",
            Fault::ReportEmpty => "report-empty",
            Fault::NsysMissing => "nsys-missing",
            Fault::NsysOld => "nsys-old",
            Fault::EventsDropped => "events-dropped",
            Fault::WindowShut => "window-shut",
            Fault::ConnectionDrops => "connection-drops",
            Fault::HostUnreachable => "host-unreachable",
            Fault::Straggler { .. } => "straggler",
            Fault::SlowLoader { .. } => "slow-loader",
            Fault::NanLoss { .. } => "nan-loss",
            Fault::Desync { .. } => "desync",
            Fault::Mismatch { .. } => "mismatch",
            Fault::MismatchSize { .. } => "mismatch-size",
            Fault::CommExposed => "comm-exposed",
            Fault::NoGdrdma => "no-gdrdma",
            Fault::GraphLaunch => "graph-launch",
            Fault::NodeFailsOnce => "node-fails-once",
            Fault::PreemptedOnce => "preempted-once",
            Fault::ProfilerCosts { .. } => "profiler-costs",
            Fault::ClockOffset { .. } => "clock-offset",
            Fault::ClockDrift { .. } => "clock-drift",
            Fault::GpuMissing { .. } => "gpu-missing",
            Fault::GpuBusy { .. } => "gpu-busy",
            Fault::DriverDiffers => "driver-differs",
            Fault::BadFact { .. } => "bad-fact",
            Fault::NodeSlow { .. } => "node-slow",
            Fault::NvlinkSlow { .. } => "nvlink-slow",
            Fault::PortSlow { .. } => "port-slow",
            Fault::LinkSlow { .. } => "link-slow",
            Fault::PcieSlow { .. } => "pcie-slow",
            Fault::EccErrors { .. } => "ecc-errors",
            Fault::Throttles { .. } => "throttles",
            Fault::NvlinkErrors { .. } => "nvlink-errors",
            Fault::NvlinkDown { .. } => "nvlink-down",
            Fault::MemorySlow { .. } => "memory-slow",
            Fault::MemoryWrong => "memory-wrong",
            Fault::CpuSlow { .. } => "cpu-slow",
            Fault::CpuShared { .. } => "cpu-shared",
            Fault::TcpSlow { .. } => "tcp-slow",
            Fault::GpusUnconstrained => "gpus-unconstrained",
            Fault::DiskSlow { .. } => "disk-slow",
            Fault::DiskErrors => "disk-errors",
            Fault::ThrottlesAfter { .. } => "throttles-after",
            Fault::EccGrows { .. } => "ecc-grows",
            Fault::NvlinkReplays { .. } => "nvlink-replays",
            Fault::NicFlaps { .. } => "nic-flaps",
            Fault::DriverLeaks { .. } => "driver-leaks",
        }
    }

    /// Whether a fault of that kind can come about on nodes where jobs are started that way.
    pub fn happens_on(kind: &str, launcher: Launcher) -> bool {
        match kind {
            "queue-stuck" | "preempted" | "preempted-once" | "gpus-unconstrained" => {
                launcher == Launcher::Slurm
            }
            "connection-drops" | "host-unreachable" => launcher == Launcher::Ssh,
            _ => true,
        }
    }

    /// The NIC that the fault concerns, if it concerns one.
    pub fn device(&self) -> Option<&str> {
        match self {
            Fault::NicSlow { device, .. }
            | Fault::NicDead { device }
            | Fault::NicMissing { device }
            | Fault::NicLate { device, .. }
            | Fault::NicFlaps { device, .. } => Some(device),
            _ => None,
        }
    }

    /// The GPU that it concerns; ranks are counted as the GPUs that they drive.
    pub fn gpu(&self) -> Option<u32> {
        match self {
            Fault::GpuSlow { gpu, .. }
            | Fault::PcieSlow { gpu, .. }
            | Fault::EccErrors { gpu }
            | Fault::NvlinkErrors { gpu }
            | Fault::NvlinkDown { gpu }
            | Fault::Throttles { gpu, .. }
            | Fault::ThrottlesAfter { gpu, .. }
            | Fault::EccGrows { gpu, .. }
            | Fault::NvlinkReplays { gpu, .. }
            | Fault::Corrupt { gpu }
            | Fault::GpuMissing { gpu }
            | Fault::GpuBusy { gpu } => Some(*gpu),
            Fault::Straggler { rank, .. }
            | Fault::SlowLoader { rank, .. }
            | Fault::NanLoss { rank, .. }
            | Fault::Desync { rank }
            | Fault::Mismatch { rank }
            | Fault::MismatchSize { rank } => Some(*rank),
            _ => None,
        }
    }

    fn parse(text: &str) -> Result<Fault, String> {
        let (head, part) = match text.split_once('@') {
            Some((head, part)) => (head, Some(part)),
            None => (text, None),
        };
        let (kind, value) = match head.split_once('=') {
            Some((kind, value)) => (kind, Some(value)),
            None => (head, None),
        };
        let form = Fault::FORMS.iter().find(|form| form.split(['=', '@']).next() == Some(kind));
        let Some(form) = form else {
            let kinds: Vec<&str> =
                Fault::FORMS.iter().filter_map(|form| form.split(['=', '@']).next()).collect();
            let near = base::suggest::nearest(kind, kinds.iter().copied());
            return Err(match near {
                Some(near) => format!("unknown fault `{kind}`; did you mean `{near}`?"),
                None => format!(
                    "unknown fault `{kind}`; the nearest: `{}`; `harness list --print sim-faults` lists all",
                    base::suggest::most_alike(kind, kinds, 3).join("`, `")
                ),
            });
        };
        if form.contains('=') != value.is_some()
            || form.contains('@') != part.is_some_and(|part| !part.is_empty())
        {
            return Err(format!("`{text}`: a `{kind}` fault is written `NODE:{form}`"));
        }
        let number = |fits: fn(f64) -> bool, bounds: &str| match value.map(str::parse::<f64>) {
            Some(Ok(number)) if number.is_finite() && fits(number) => Ok(number),
            _ => Err(format!("`{text}`: {bounds}")),
        };
        let left = || {
            number(|left| left > 0.0 && left < 1.0, "the remaining fraction must be between 0 and 1").map_err(
                |why| match value.and_then(|value| value.trim_end_matches('%').parse::<f64>().ok()) {
                    Some(percent) if percent > 1.0 && percent < 100.0 => {
                        let at = part.map(|part| format!("@{part}")).unwrap_or_default();
                        format!("{why}; write `{kind}={}{at}`", percent / 100.0)
                    }
                    _ => why,
                },
            )
        };
        let late =
            || number(|ms| ms > 0.0 && ms <= 10_000.0, "milliseconds must be above 0 and at most 10000");
        // A week of load, in minutes.
        let minutes =
            || number(|minutes| (0.0..=10_080.0).contains(&minutes), "minutes must lie between 0 and 10080");
        let part = part.unwrap_or_default();
        let device = || part.to_owned();
        let gpu = || {
            part.parse::<u32>().map_err(|_| {
                let meant = part.strip_prefix("gpu").filter(|number| number.parse::<u32>().is_ok());
                let meant = meant.map(|number| format!("; write `{head}@{number}`")).unwrap_or_default();
                format!("`{text}`: a GPU is a number from 0{meant}")
            })
        };
        let rank = || part.parse().map_err(|_| format!("`{text}`: a rank of a node is a number from 0"));
        Ok(match kind {
            "nic-slow" => Fault::NicSlow { left: left()?, device: device() },
            "nic-dead" => Fault::NicDead { device: device() },
            "nic-missing" => Fault::NicMissing { device: device() },
            "nic-late" => Fault::NicLate { ms: late()?, device: device() },
            "gpu-slow" => Fault::GpuSlow { left: left()?, gpu: gpu()? },
            "corrupt" => Fault::Corrupt { gpu: gpu()? },
            "rank-dies" => Fault::RankDies,
            "hang" => Fault::Hang,
            "node-fails" => Fault::NodeFails,
            "queue-stuck" => Fault::QueueStuck,
            "preempted" => Fault::Preempted,
            "output-missing" => Fault::OutputMissing,
            "garbled" => Fault::Garbled,
            "disk-full" => Fault::DiskFull,
            "wrong-ranks" => Fault::WrongRanks,
            "clock-jump" => Fault::ClockJump,
            "report-truncated" => Fault::ReportTruncated,
            "report-missing" => Fault::ReportMissing,
            "report-empty" => Fault::ReportEmpty,
            "nsys-missing" => Fault::NsysMissing,
            "nsys-old" => Fault::NsysOld,
            "events-dropped" => Fault::EventsDropped,
            "window-shut" => Fault::WindowShut,
            "connection-drops" => Fault::ConnectionDrops,
            "straggler" => Fault::Straggler { ms: late()?, rank: rank()? },
            "slow-loader" => Fault::SlowLoader { ms: late()?, rank: rank()? },
            "nan-loss" => {
                let step = value.unwrap_or_default();
                let step = step.parse().map_err(|_| format!("`{text}`: a step is a number from 0"))?;
                Fault::NanLoss { step, rank: rank()? }
            }
            "desync" => Fault::Desync { rank: rank()? },
            "mismatch" => Fault::Mismatch { rank: rank()? },
            "mismatch-size" => Fault::MismatchSize { rank: rank()? },
            "comm-exposed" => Fault::CommExposed,
            "no-gdrdma" => Fault::NoGdrdma,
            "graph-launch" => Fault::GraphLaunch,
            "node-fails-once" => Fault::NodeFailsOnce,
            "preempted-once" => Fault::PreemptedOnce,
            "profiler-costs" => Fault::ProfilerCosts { left: left()? },
            "clock-offset" => Fault::ClockOffset {
                ms: number(
                    |ms| ms != 0.0 && ms.abs() <= 3_600_000.0,
                    "a clock offset is at most an hour, and not 0",
                )?,
            },
            "clock-drift" => Fault::ClockDrift {
                ppm: number(
                    |ppm| ppm != 0.0 && ppm.abs() <= 1000.0,
                    "a clock drift is at most 1000 ppm, and not 0",
                )?,
            },
            "gpu-missing" => Fault::GpuMissing { gpu: gpu()? },
            "gpu-busy" => Fault::GpuBusy { gpu: gpu()? },
            "driver-differs" => Fault::DriverDiffers,
            "bad-fact" => Fault::BadFact { fact: part.to_owned() },
            "node-slow" => Fault::NodeSlow { left: left()? },
            "nvlink-slow" => Fault::NvlinkSlow { left: left()? },
            "port-slow" => Fault::PortSlow { left: left()? },
            "pcie-slow" => Fault::PcieSlow { left: left()?, gpu: gpu()? },
            "ecc-errors" => Fault::EccErrors { gpu: gpu()? },
            "throttles" => Fault::Throttles { left: left()?, gpu: gpu()? },
            "nvlink-errors" => Fault::NvlinkErrors { gpu: gpu()? },
            "nvlink-down" => Fault::NvlinkDown { gpu: gpu()? },
            "memory-slow" => Fault::MemorySlow { left: left()? },
            "memory-wrong" => Fault::MemoryWrong,
            "cpu-slow" => Fault::CpuSlow { left: left()? },
            "cpu-shared" => Fault::CpuShared { left: left()? },
            "tcp-slow" => Fault::TcpSlow { left: left()? },
            "gpus-unconstrained" => Fault::GpusUnconstrained,
            "disk-slow" => Fault::DiskSlow { left: left()? },
            "disk-errors" => Fault::DiskErrors,
            "throttles-after" => Fault::ThrottlesAfter { minutes: minutes()?, gpu: gpu()? },
            "ecc-grows" => Fault::EccGrows { minutes: minutes()?, gpu: gpu()? },
            "nvlink-replays" => Fault::NvlinkReplays { minutes: minutes()?, gpu: gpu()? },
            "nic-flaps" => Fault::NicFlaps { minutes: minutes()?, device: device() },
            "driver-leaks" => Fault::DriverLeaks {
                mb_per_hour: number(
                    |mb| mb > 0.0 && mb <= 1e6,
                    "MB in an hour must be above 0 and at most 1000000",
                )?,
            },
            "link-slow" => Fault::LinkSlow { left: left()?, other: device() },
            "host-unreachable" => Fault::HostUnreachable,
            _ => return Err(format!("`{text}`: fault `{kind}` is listed but not implemented")),
        })
    }
}

impl NodeFault {
    /// Reads `NODE:FAULT`, for example `p5-002:hang`; an error names the right form.
    pub fn parse(text: &str) -> Result<NodeFault, String> {
        let Some((node, fault)) = text.split_once(':') else {
            return Err(format!("`{text}`: a fault is written `NODE:FAULT`, for example `p5-002:hang`"));
        };
        if node.is_empty() {
            return Err(format!("`{text}`: no node before the colon"));
        }
        Ok(NodeFault { node: node.to_owned(), fault: Fault::parse(fault)? })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::NicSlow { left, device } => write!(f, "nic-slow={left}@{device}"),
            Fault::NicDead { device } | Fault::NicMissing { device } => write!(f, "{}@{device}", self.kind()),
            Fault::GpuSlow { left, gpu } | Fault::PcieSlow { left, gpu } | Fault::Throttles { left, gpu } => {
                write!(f, "{}={left}@{gpu}", self.kind())
            }
            Fault::EccErrors { gpu }
            | Fault::NvlinkErrors { gpu }
            | Fault::NvlinkDown { gpu }
            | Fault::Corrupt { gpu }
            | Fault::GpuMissing { gpu }
            | Fault::GpuBusy { gpu } => {
                write!(f, "{}@{gpu}", self.kind())
            }
            Fault::NicLate { ms, device } => write!(f, "nic-late={ms}@{device}"),
            Fault::Straggler { ms, rank } => write!(f, "straggler={ms}@{rank}"),
            Fault::SlowLoader { ms, rank } => write!(f, "slow-loader={ms}@{rank}"),
            Fault::NanLoss { step, rank } => write!(f, "nan-loss={step}@{rank}"),
            Fault::Desync { rank } => write!(f, "desync@{rank}"),
            Fault::Mismatch { rank } => write!(f, "mismatch@{rank}"),
            Fault::MismatchSize { rank } => write!(f, "mismatch-size@{rank}"),
            Fault::NodeSlow { left }
            | Fault::NvlinkSlow { left }
            | Fault::PortSlow { left }
            | Fault::MemorySlow { left }
            | Fault::CpuSlow { left }
            | Fault::CpuShared { left }
            | Fault::TcpSlow { left }
            | Fault::DiskSlow { left }
            | Fault::ProfilerCosts { left } => {
                write!(f, "{}={left}", self.kind())
            }
            Fault::ThrottlesAfter { minutes, gpu }
            | Fault::EccGrows { minutes, gpu }
            | Fault::NvlinkReplays { minutes, gpu } => write!(f, "{}={minutes}@{gpu}", self.kind()),
            Fault::NicFlaps { minutes, device } => write!(f, "nic-flaps={minutes}@{device}"),
            Fault::DriverLeaks { mb_per_hour } => write!(f, "driver-leaks={mb_per_hour}"),
            Fault::BadFact { fact } => write!(f, "bad-fact@{fact}"),
            Fault::LinkSlow { left, other } => write!(f, "link-slow={left}@{other}"),
            Fault::ClockOffset { ms } => write!(f, "clock-offset={ms}"),
            Fault::ClockDrift { ppm } => write!(f, "clock-drift={ppm}"),
            other => f.write_str(other.kind()),
        }
    }
}

impl fmt::Display for NodeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.node, self.fault)
    }
}

#[cfg(test)]
mod tests;
