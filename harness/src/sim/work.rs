//! What a job does on its nodes: how long it takes and how it ends, given the faults of those nodes.
//! Which bytes it leaves behind is told in `output.rs` and `counters.rs`.

use super::fault::{Fault, NodeFault};
use super::model::{Machine, Slowest};
use super::noise::Noise;
use crate::script::{Flows, Gpus, Run, Script, Step};
use recipes::op::Op;

/// Before a program does anything: wiring and warm caches; the sampler's quiet readings lie in it.
pub const SETUP_S: f64 = 6.0;
/// After it: the sampler's last readings.
pub const CLOSING_S: f64 = 2.0;
/// Where a job breaks off in the middle, this share of its work is done.
pub const BROKEN_AT: f64 = 0.4;

pub struct Work {
    pub kind: Kind,
    pub ending: Ending,
    pub faults: Vec<NodeFault>,
    /// How long the workload itself takes where nothing stops it.
    pub busy_s: f64,
}

pub enum Kind {
    Nccl(Nccl),
    Gpus(Nccl),
    Flows(Flows),
    Command { stdout: String, seconds: f64 },
}

#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    Exits(i32),
    Hangs,
    NodeFails { node: String },
    Preempted,
    NeverStarts { node: String },
}

/// The options of nccl-tests that matter here.
#[derive(Debug, Clone, PartialEq)]
pub struct Nccl {
    pub program: String,
    pub op: Op,
    pub sizes: Vec<u64>,
    pub step: String,
    pub iterations: u64,
    pub warmup: u64,
    pub check: bool,
    pub dtype: String,
}

/// What every part of a job's account is made from.
pub struct Setting<'a> {
    pub machine: &'a Machine,
    pub seed: u64,
    pub case: &'a str,
    pub job: &'a str,
}

impl Setting<'_> {
    pub fn noise(&self, words: &[&str]) -> Noise {
        let mut all = vec![self.case, self.job];
        all.extend(words);
        Noise::of(self.seed, &all)
    }
}

impl Work {
    /// The work of a script; what the pretend cluster has no program for is an error, and loud.
    pub fn of(script: &Script, faults: Vec<NodeFault>, setting: &Setting) -> Result<Work, String> {
        let mut works = script.steps.iter().filter_map(|step| match step {
            Step::Run(run) => Some(command(run, script)),
            Step::Gpus(Gpus { argv, .. }) => Some(Nccl::of(argv).map(|nccl| (Kind::Gpus(nccl), 0))),
            Step::Flows(flows) => Some(Ok((Kind::Flows(flows.clone()), 0))),
            Step::Environment { .. } | Step::CountersBegin(_) | Step::CountersEnd => None,
        });
        let (kind, code) = works.next().ok_or("the script runs nothing")??;
        if works.next().is_some() {
            return Err("the script runs more than one workload".to_owned());
        }
        let nodes = script.nodes.len() as u32;
        let slowest = slowest(&faults);
        let busy_s = match &kind {
            Kind::Nccl(nccl) => nccl.busy_s(|size| setting.machine.time_us(nccl.op, nodes, size, slowest)),
            Kind::Gpus(nccl) => nccl.busy_s(|size| setting.machine.own_memory_us(size, slowest.gpu)),
            Kind::Flows(flows) => {
                let bytes = flows.message_bytes as f64 * flows.iterations as f64;
                bytes / (setting.machine.nic_line_rate_gb_s * 1e9 * slowest.nic * 0.9) + 3.0
            }
            Kind::Command { seconds, .. } => *seconds,
        };
        let ending = ending(&kind, &faults, code);
        Ok(Work { kind, ending, faults, busy_s })
    }

    pub fn never_starts(&self) -> bool {
        matches!(self.ending, Ending::NeverStarts { .. })
    }

    /// From the start of the job until it ends by itself; nothing where it does not.
    pub fn ends_after_s(&self) -> Option<f64> {
        let whole = SETUP_S + self.busy_s + CLOSING_S;
        match self.ending {
            Ending::Hangs | Ending::NeverStarts { .. } => None,
            Ending::NodeFails { .. } | Ending::Preempted => Some(SETUP_S + self.busy_s * BROKEN_AT),
            Ending::Exits(_) if self.breaks_off() => Some(SETUP_S + self.busy_s * BROKEN_AT),
            Ending::Exits(_) => Some(whole),
        }
    }

    /// Whether the workload's output stops in the middle.
    pub fn breaks_off(&self) -> bool {
        let breaking = |fault: &Fault| matches!(fault, Fault::RankDies | Fault::DiskFull);
        !matches!(self.ending, Ending::Exits(_)) || self.faults.iter().any(|fault| breaking(&fault.fault))
    }

    pub fn has(&self, wanted: impl Fn(&Fault) -> bool) -> Option<&NodeFault> {
        self.faults.iter().find(|fault| wanted(&fault.fault))
    }

    pub fn slowest(&self) -> Slowest {
        slowest(&self.faults)
    }
}

fn slowest(faults: &[NodeFault]) -> Slowest {
    faults.iter().fold(Slowest::HEALTHY, |slowest, fault| match &fault.fault {
        Fault::NicSlow { left, .. } => Slowest { nic: slowest.nic.min(*left), ..slowest },
        Fault::GpuSlow { left, .. } => Slowest { gpu: slowest.gpu.min(*left), ..slowest },
        _ => slowest,
    })
}

/// The gravest fault decides.
fn ending(kind: &Kind, faults: &[NodeFault], code: i32) -> Ending {
    let node_of = |wanted: fn(&Fault) -> bool| faults.iter().find(|fault| wanted(&fault.fault));
    if let Some(fault) = node_of(|fault| *fault == Fault::QueueStuck) {
        return Ending::NeverStarts { node: fault.node.clone() };
    }
    if let Some(fault) = node_of(|fault| *fault == Fault::NodeFails) {
        return Ending::NodeFails { node: fault.node.clone() };
    }
    if node_of(|fault| *fault == Fault::Preempted).is_some() {
        return Ending::Preempted;
    }
    if node_of(|fault| *fault == Fault::Hang).is_some() {
        return Ending::Hangs;
    }
    if node_of(|fault| *fault == Fault::RankDies).is_some() {
        return Ending::Exits(137);
    }
    if node_of(|fault| *fault == Fault::DiskFull).is_some() {
        return Ending::Exits(1);
    }
    let checked = matches!(kind, Kind::Nccl(nccl) | Kind::Gpus(nccl) if nccl.check);
    if checked && node_of(|fault| matches!(fault, Fault::Corrupt { .. })).is_some() {
        return Ending::Exits(1);
    }
    Ending::Exits(code)
}

fn command(run: &Run, script: &Script) -> Result<(Kind, i32), String> {
    let program = run.argv.first().map(String::as_str).unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default();
    let args = &run.argv[1.min(run.argv.len())..];
    let each = |line: &dyn Fn(&str) -> String| {
        let nodes = script.nodes.iter().flat_map(|node| (0..run.tasks_per_node).map(move |_| node));
        nodes.map(|node| line(node) + "\n").collect::<String>()
    };
    match name {
        "true" => Ok((Kind::Command { stdout: String::new(), seconds: 0.1 }, 0)),
        "false" => Ok((Kind::Command { stdout: String::new(), seconds: 0.1 }, 1)),
        "sleep" => {
            let seconds =
                args.first().and_then(|word| word.parse::<f64>().ok()).filter(|s| s.is_finite() && *s >= 0.0);
            let seconds = seconds.ok_or("pretend `sleep`: no number of seconds")?;
            Ok((Kind::Command { stdout: String::new(), seconds }, 0))
        }
        "hostname" => Ok((Kind::Command { stdout: each(&|node| node.to_owned()), seconds: 0.1 }, 0)),
        "echo" => Ok((Kind::Command { stdout: each(&|_| args.join(" ")), seconds: 0.1 }, 0)),
        _ if name.ends_with("_perf") => {
            let variables = script.steps.iter().find_map(|step| match step {
                Step::Environment { variables } => Some(variables),
                _ => None,
            });
            if variables.is_some_and(|variables| variables.contains_key("NCCL_TESTS_SPLIT_MASK")) {
                return Err("the pretend cluster has no model of NCCL_TESTS_SPLIT_MASK".to_owned());
            }
            Ok((Kind::Nccl(Nccl::of(&run.argv)?), 0))
        }
        _ => Err(format!("pretend cluster: no such program: `{program}`")),
    }
}

impl Nccl {
    fn of(argv: &[String]) -> Result<Nccl, String> {
        let path = argv.first().map(String::as_str).unwrap_or_default();
        let program = path.rsplit('/').next().unwrap_or_default();
        let op = program.strip_suffix("_perf").and_then(Op::from_name);
        let op = op.ok_or_else(|| format!("pretend cluster: no such program: `{path}`"))?;
        let mut nccl = Nccl {
            program: program.to_owned(),
            op,
            sizes: Vec::new(),
            step: String::new(),
            iterations: 20,
            warmup: 1,
            check: true,
            dtype: "float".to_owned(),
        };
        let (mut min, mut max, mut factor, mut step) = (32u64 << 20, 32u64 << 20, 0u64, 1u64 << 20);
        for pair in argv[1..].chunks(2) {
            let [option, value] = pair else { return Err(format!("pretend `{program}`: odd options")) };
            let number = || {
                value.parse::<u64>().map_err(|_| format!("pretend `{program}`: no number: {option} {value}"))
            };
            match option.as_str() {
                "-b" => min = number()?,
                "-e" => max = number()?,
                "-f" => factor = number()?,
                "-i" => step = number()?,
                "-n" => nccl.iterations = number()?,
                "-w" => nccl.warmup = number()?,
                "-c" => nccl.check = number()? > 0,
                "-d" => nccl.dtype = value.clone(),
                "-g" | "-o" => {}
                _ => return Err(format!("pretend `{program}`: no such option: {option}")),
            }
        }
        if min == 0 || max < min || (factor < 2 && step == 0) {
            return Err(format!("pretend `{program}`: no sizes from {min} to {max}"));
        }
        let mut size = min;
        while size <= max && nccl.sizes.len() < 100_000 {
            nccl.sizes.push(size);
            let next = if factor > 1 { size.checked_mul(factor) } else { size.checked_add(step) };
            let Some(next) = next else { break };
            size = next;
        }
        nccl.step = if factor > 1 { format!("{factor}(factor)") } else { format!("{step}(bytes)") };
        Ok(nccl)
    }

    fn busy_s(&self, time_us: impl Fn(u64) -> f64) -> f64 {
        // Out of place and in place, each warmed up and checked.
        let rounds = 2.0 * (self.iterations + self.warmup + 2) as f64;
        self.sizes.iter().map(|size| rounds * time_us(*size) / 1e6).sum()
    }

    /// How many operations move each size in all.
    pub fn operations(&self) -> u64 {
        2 * (self.iterations + self.warmup + 2)
    }
}
