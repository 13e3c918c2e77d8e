//! The state of GPUs before, during and after a program: PCIe links, heat, memory errors, NVLink, Xids.

use super::host_state::{FLAPS, GROWTH, KERNEL};
use super::{about, host_state};
use crate::recipe::shared_findings::FileFinding;
use crate::recipe::{FileRole, InputFile, JobInput, Output, RecipeSpec, read_stream};
use logs::node_tools::gpu_state::{self as source, Gpu, GpuStates, IDLE, Phase, Reading, SLOWED};
use logs::xid;
use metric::finding_kinds;
use metric::unit::{Better, Unit};
use metric::{Blames, Covers, Dim, Dims, Files, MetricSpec, Names};

const fn gpu_metric(
    name: &'static str,
    about: &'static str,
    unit: Unit,
    better: Better,
    code: &'static str,
) -> MetricSpec {
    MetricSpec::new(name, about, unit, better, Files::GpuState)
        .per(&[Dim::Node, Dim::Gpu])
        .blaming(Blames::Part)
        .naming(Names::Coded(None, code))
        .covering(Covers::NoNics)
}

const WIDTH: MetricSpec = gpu_metric(
    "gpu.pcie_width",
    "lanes of its PCIe link, as a fraction of its maximum: the least of all readings; 0 where the GPU was lost while the program \
     ran, and others of its node were not",
    Unit::Ratio,
    Better::Higher,
    "HRN-GPU-PCIE-SLOW",
)
.explained_by(&[StateFinding::Gone.code()])
.next("compare with a peer (`nvidia-smi -q -i N`), reboot {nodes} once; replace it if the link stays narrow");
const GENERATION: MetricSpec = gpu_metric(
    "gpu.pcie_generation",
    "generation of its PCIe link under load, as a fraction of its maximum; not given where the GPU was idle, which lowers it",
    Unit::Ratio,
    Better::Higher,
    "HRN-GPU-PCIE-SLOW",
)
.next("compare with a peer (`nvidia-smi -q -i N`), reboot {nodes} once; replace it if the link stays slow");
const HOT: MetricSpec = gpu_metric(
    "gpu.slowed",
    "part of the readings under load in which hardware or heat lowered the clocks; a power limit does not count; not given \
     where readings are missing for a quarter of the time",
    Unit::Ratio,
    Better::Lower,
    "HRN-GPU-THROTTLES",
)
.explained_by(&[StateFinding::Slowed.code()])
.next("look at `nvidia-smi -q -d PERFORMANCE,TEMPERATURE` on {nodes} under load");
const CLOCK: MetricSpec = gpu_metric(
    "gpu.clock",
    "its clock under load, as a fraction of its highest: the median of the readings under load; not given where readings are \
     missing for a quarter of the time",
    Unit::Ratio,
    Better::Higher,
    "HRN-GPU-THROTTLES",
)
.next("look at `nvidia-smi -q -d CLOCK,PERFORMANCE,POWER` on {nodes} under load; compare with a peer");
const UNCORRECTED: MetricSpec = gpu_metric(
    "gpu.ecc_uncorrected",
    "memory errors that were not corrected: new ones while the program ran",
    Unit::Count,
    Better::Lower,
    "HRN-GPU-ECC",
)
.next("drain {nodes}; reset the GPU, and replace the node if errors come back");
const PENDING: MetricSpec = gpu_metric(
    "gpu.memory_pending",
    "1 where a row or page of its memory waits to be taken out of use, or could not be, else 0",
    Unit::Count,
    Better::Lower,
    "HRN-GPU-ECC",
)
.next("reset the GPU or reboot {nodes}: the row is replaced then; where that failed, replace the node");
const CORRECTED: MetricSpec = gpu_metric(
    "gpu.ecc_corrected",
    "memory errors that were corrected: new ones while the program ran; a few a day are usual",
    Unit::Count,
    Better::Lower,
    "HRN-GPU-ECC",
)
.next("look at `nvidia-smi -q -d ECC,ROW_REMAPPER` on {nodes}; reset the GPU, and replace the node if they keep coming");
const IDLE_MEMORY: MetricSpec = gpu_metric(
    "gpu.memory_idle",
    "bytes of its memory in use before the program, while nothing ran",
    Unit::Bytes,
    Better::Lower,
    "HRN-NODE-LEAK",
)
.next("look at `nvidia-smi` and for processes that are left on {nodes}; reset the GPU or reboot");
const LINKS: MetricSpec = gpu_metric(
    "gpu.nvlinks",
    "NVLinks of the GPU that are active both before and after the program",
    Unit::Count,
    Better::Higher,
    "HRN-GPU-NVLINK",
)
.next("look at `nvidia-smi nvlink -s` and the fabric manager on {nodes}; reset all of its GPUs together");
const LINK_ERRORS: MetricSpec = gpu_metric(
    "gpu.nvlink_errors",
    "errors of its NVLinks that were counted while the program ran",
    Unit::Count,
    Better::Lower,
    "HRN-GPU-NVLINK",
)
.next("look at `nvidia-smi nvlink -e` on {nodes}; replace it if errors keep coming");
const XIDS: MetricSpec = MetricSpec::new(
    "gpu.xids",
    "lines about Xids of hardware that the kernel wrote while the program ran; not given where its log cannot be read",
    Unit::Count,
    Better::Lower,
    Files::GpuState,
)
.per(&[Dim::Node])
.blaming(Blames::OddNode)
.naming(Names::Coded(Some("node"), "HRN-GPU-XID"))
.covering(Covers::NoNics)
.explained_by(&[StateFinding::Xid.code()])
.next("look up the Xid in the driver's manual; `dmesg` needs root where `kernel.dmesg_restrict` is 1");

pub(crate) const SPEC: RecipeSpec<'static> = RecipeSpec {
    name: "gpu_state",
    about: "GPUs before, during and after a program, by nvidia-smi: PCIe links, heat, memory errors, NVLink; links of NICs",
    metrics: &[
        WIDTH,
        GENERATION,
        HOT,
        CLOCK,
        UNCORRECTED,
        CORRECTED,
        PENDING,
        IDLE_MEMORY,
        LINKS,
        LINK_ERRORS,
        XIDS,
        FLAPS,
        KERNEL,
        GROWTH,
    ],
    tables: &[],
    findings: &[StateFinding::ALL, FileFinding::ALL],
    reads_nccl_log: false,
    compares_clocks: false,
    reads_inspector: false,
    run: &run,
};

finding_kinds! {
    /// Of the state of GPUs.
    pub(crate) enum StateFinding {
        /// It could not be read at all.
        NotRead = "gpu-state-not-read": NoNumber,
        /// nvidia-smi failed once.
        Failed = "gpu-state-failed": Note,
        /// A GPU that was listed before, and not after.
        Gone = "gpu-gone": NoNumber,
        Slowed = "gpu-slowed": Note,
        Xid = "gpu-xid": Note,
    }
}

fn run(job: &JobInput) -> Output {
    let mut output = Output::default();
    for file in job.files_of(FileRole::GpuState) {
        let Some(read) = read_stream(file, &mut output, source::read) else { continue };
        let mut note = |code: StateFinding, gpu: Option<u32>, message: String| {
            output.findings.push(about(job, file, code.code(), gpu, message));
        };
        let states = match read {
            Ok(states) => states,
            Err(why) => {
                note(StateFinding::NotRead, None, format!("no state of GPUs: {why}"));
                continue;
            }
        };
        for why in &states.failed {
            note(StateFinding::Failed, None, format!("nvidia-smi failed: {why}"));
        }
        if !states.complete {
            note(
                StateFinding::NotRead,
                None,
                "no state of GPUs after the program: it was ended before".to_owned(),
            );
        }
        for (gpu, seen) in &states.gpus {
            let listed = |phase: Phase| seen.readings.iter().any(|reading| reading.phase == phase);
            if states.complete && listed(Phase::Before) && !listed(Phase::After) {
                let why = "listed before the program, and not after it".to_owned();
                note(StateFinding::Gone, Some(*gpu), why);
            }
            if let Some(at_s) = first_slowed(seen) {
                let hottest = seen.readings.iter().filter_map(|reading| reading.temperature).reduce(f64::max);
                let heat = hottest.map(|degrees| format!("; hottest: {degrees:.0} C")).unwrap_or_default();
                let when = super::after(states.soaked_s + at_s);
                note(
                    StateFinding::Slowed,
                    Some(*gpu),
                    format!("hardware or heat lowered its clocks {when}{heat}"),
                );
            }
        }
        for line in hardware_xids(&states).take(4) {
            note(StateFinding::Xid, None, format!("new in the kernel log: {line}"));
        }
        put(job, file, &states, &mut output);
    }
    output
}

fn put(job: &JobInput, file: &InputFile, states: &GpuStates, output: &mut Output) {
    let Some(node) = file.node.as_deref().or(job.nodes.first().map(String::as_str)) else { return };
    let dims = job.dims().with(Dim::Node, node);
    for (gpu, seen) in &states.gpus {
        let at = dims.clone().with(Dim::Gpu, *gpu);
        let mut add = |metric: &MetricSpec, value: Option<f64>, at: &Dims| {
            output.metrics.extend(value.map(|value| metric.of(at.clone(), value)));
        };
        add(&WIDTH, width(seen), &at);
        add(&GENERATION, generation(seen), &at);
        add(&HOT, slowed(states, seen), &at);
        add(&CLOCK, clock(states, seen), &at);
        let idle = seen.readings.iter().find(|reading| reading.phase == Phase::Before);
        add(&IDLE_MEMORY, idle.and_then(|reading| reading.memory_used), &at);
        // A state that was not read at the end says nothing of what came in between.
        if states.complete {
            add(&UNCORRECTED, growth(seen, |reading| reading.uncorrected), &at);
            add(&CORRECTED, growth(seen, |reading| reading.corrected), &at);
            let after = seen.readings.iter().rfind(|reading| reading.phase == Phase::After);
            let pending = after.and_then(|reading| reading.memory_pending);
            add(&PENDING, pending.map(|pending| f64::from(u8::from(pending))), &at);
            add(&LINKS, seen.links.map(f64::from), &at);
            add(&LINK_ERRORS, seen.link_errors.map(|errors| errors as f64), &at);
        }
    }
    host_state::put(states, &dims, output);
    if states.complete && states.new_xids.is_some() {
        output.metrics.push(XIDS.of(dims, hardware_xids(states).count() as f64));
    }
}

/// Of new ones, those that speak against hardware.
fn hardware_xids(states: &GpuStates) -> impl Iterator<Item = &String> {
    states.new_xids.iter().flatten().filter(|line| xid::is_of_hardware(line))
}

fn part((now, most): (f64, f64)) -> Option<f64> {
    (most > 0.0).then(|| (now / most).min(1.0))
}

/// Read before and after at least. A GPU that is lost has no link.
fn width(gpu: &Gpu) -> Option<f64> {
    if gpu.lost {
        return Some(0.0);
    }
    let read = |reading: &Reading| reading.width.and_then(part);
    let has =
        |phase: Phase| gpu.readings.iter().any(|reading| reading.phase == phase && read(reading).is_some());
    let all = gpu.readings.iter().filter_map(read).reduce(f64::min);
    all.filter(|_| has(Phase::Before) && has(Phase::After))
}

fn loaded(gpu: &Gpu) -> impl Iterator<Item = &Reading> {
    let is_loaded = |reading: &&Reading| {
        reading.phase == Phase::During && reading.reasons.is_some_and(|reasons| reasons & IDLE == 0)
    };
    gpu.readings.iter().filter(is_loaded)
}

/// The lower one of the two in the middle: a clock that is low for half of the time is low.
fn clock(states: &GpuStates, gpu: &Gpu) -> Option<f64> {
    let read = || loaded(gpu).filter_map(|reading| Some((reading.at_s, part(reading.clock?)?)));
    if !is_covered(states, read().map(|(at_s, _)| at_s)) {
        return None;
    }
    let mut clocks: Vec<f64> = read().map(|(_, clock)| clock).collect();
    clocks.sort_by(f64::total_cmp);
    clocks.get(clocks.len().checked_sub(1)? / 2).copied()
}

/// The best under load.
fn generation(gpu: &Gpu) -> Option<f64> {
    loaded(gpu).filter_map(|reading| reading.generation.and_then(part)).reduce(f64::max)
}

fn is_slowed(reading: &Reading) -> Option<bool> {
    reading.reasons.filter(|_| reading.phase == Phase::During).map(|reasons| reasons & SLOWED != 0)
}

/// Whether these moments lie over most of the time: one that came late stands for two intervals, not for hours.
pub(super) fn is_covered(states: &GpuStates, read_at: impl Iterator<Item = f64>) -> bool {
    let Some(every_s) = states.every_s else { return true };
    let longest = 2.0 * every_s + 5.0;
    let (mut last, mut covered) = (0.0, 0.0);
    for at in read_at.chain([states.last_s]) {
        covered += (at - last).clamp(0.0, longest);
        last = at.max(last);
    }
    covered >= 0.75 * states.last_s
}

fn slowed(states: &GpuStates, gpu: &Gpu) -> Option<f64> {
    let read = gpu.readings.iter().filter(|reading| is_slowed(reading).is_some());
    if !is_covered(states, read.map(|reading| reading.at_s)) {
        return None;
    }
    let readings: Vec<bool> = gpu.readings.iter().filter_map(is_slowed).collect();
    let slowed = readings.iter().filter(|is| **is).count();
    (!readings.is_empty()).then(|| slowed as f64 / readings.len() as f64)
}

fn first_slowed(gpu: &Gpu) -> Option<f64> {
    gpu.readings.iter().find(|reading| is_slowed(reading) == Some(true)).map(|reading| reading.at_s)
}

/// Of a counter that was read before and after. One that starts from 0 again, as after a reset, has counted what it shows.
fn growth(gpu: &Gpu, counter: fn(&Reading) -> Option<u64>) -> Option<f64> {
    let has = |phase: Phase| {
        gpu.readings.iter().any(|reading| reading.phase == phase && counter(reading).is_some())
    };
    if !has(Phase::Before) || !has(Phase::After) {
        return None;
    }
    let mut counts = gpu.readings.iter().filter_map(counter);
    let (mut last, mut grown) = (counts.next()?, 0u64);
    for count in counts {
        grown = grown.saturating_add(if count < last { count } else { count - last });
        last = count;
    }
    Some(grown as f64)
}
