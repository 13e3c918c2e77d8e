//! A collective over a sweep of sizes: by a program of nccl-tests, or by PyTorch (`torch_collective`).

use super::super::{Place, Placement};
use super::arguments::environment;
use super::table::{Refusal, Setting, SettingValue, WorkloadKind, WorkloadTable};
use super::torch_collective::{self, Backend, TorchRunner};
use super::{Workload, environment_key};
use crate::form::{Form, Key, Type};
use crate::toml_reader::quantity::size_of;
use crate::toml_reader::{Table, Value};
use job::profile::Window;
use metric::op::Op;
use std::collections::BTreeMap;

pub(super) const KIND: WorkloadKind = WorkloadKind {
    names: &["nccl-tests", torch_collective::NAME],
    form,
    read,
    settings: &[
        Setting { key: "iterations", about: "nccl-tests and torch-collective: measured operations per size" },
        Setting { key: "warmup", about: "nccl-tests and torch-collective: operations before those" },
    ],
};

/// A sweep, with its options as nccl-tests names them.
#[derive(Debug, Clone, PartialEq)]
pub struct NcclTests {
    /// Decides the program: `all_reduce_perf`.
    pub op: Op,
    /// `from` in suites, `-b`.
    pub min_bytes: u64,
    /// `to` in suites, `-e`.
    pub max_bytes: u64,
    /// `factor` or `step` in suites; doubles by default.
    pub step: Step,
    /// Measured operations for each size, `-n`; 20 by default.
    pub iterations: u32,
    /// Operations before those, `-w`; 5 by default.
    pub warmup: u32,
    /// Of the elements, `-d`; `float` by default.
    pub dtype: String,
    /// For operations that reduce, `-o`; `sum` by default.
    pub redop: String,
    /// The root of rooted operations; nccl-tests' own default where absent.
    pub root: Option<u32>,
    /// Whether results are checked (`#wrong`).
    pub check: bool,
    /// Wins over the inventory's.
    pub environment: BTreeMap<String, String>,
    /// Ranks with equal bits under this mask form one communicator.
    pub split_mask: Option<String>,
    /// Forced by `NCCL_ALGO`; left to NCCL where absent.
    pub algorithm: Option<Algorithm>,
    /// GPUs of a node reach each other through its NICs alone: NVLink and shared memory are turned off.
    pub through_nics: bool,
    /// Set where PyTorch runs the sweep, and not a program of nccl-tests.
    pub torch: Option<TorchRunner>,
}

/// From one size of a sweep to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Times this, `-f`.
    Factor(u64),
    /// Plus so many bytes, `-i`.
    Bytes(u64),
}

/// What `NCCL_ALGO` is set to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// `ring` in suites.
    Ring,
    /// `tree` in suites.
    Tree,
    /// `nvls` in suites: switches of NVLink reduce.
    Nvls,
    /// `nvlstree` in suites: NVLS within nodes, a tree between them.
    NvlsTree,
    /// `collnetdirect` in suites: switches of the fabric reduce.
    CollnetDirect,
    /// `collnetchain` in suites: switches of the fabric reduce.
    CollnetChain,
    /// `pat` in suites: parallel aggregated trees.
    Pat,
}

impl Algorithm {
    /// Every one that a suite may force.
    pub(crate) const ALL: [Algorithm; 7] = [
        Algorithm::Ring,
        Algorithm::Tree,
        Algorithm::Nvls,
        Algorithm::NvlsTree,
        Algorithm::CollnetDirect,
        Algorithm::CollnetChain,
        Algorithm::Pat,
    ];

    /// The name in suites.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Ring => "ring",
            Algorithm::Tree => "tree",
            Algorithm::Nvls => "nvls",
            Algorithm::NvlsTree => "nvlstree",
            Algorithm::CollnetDirect => "collnetdirect",
            Algorithm::CollnetChain => "collnetchain",
            Algorithm::Pat => "pat",
        }
    }

    /// The name in `NCCL_ALGO`.
    pub fn nccl_name(self) -> &'static str {
        match self {
            Algorithm::Ring => "Ring",
            Algorithm::Tree => "Tree",
            Algorithm::Nvls => "NVLS",
            Algorithm::NvlsTree => "NVLSTree",
            Algorithm::CollnetDirect => "CollNetDirect",
            Algorithm::CollnetChain => "CollNetChain",
            Algorithm::Pat => "PAT",
        }
    }
}

/// No sweep of nccl-tests has more sizes than this, so that a slip in a step cannot fill the memory.
const MOST_SIZES: usize = 1000;

const DTYPES: [&str; 12] = [
    "int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "float", "double", "bfloat16", "f8e4m3",
    "f8e5m2",
];
const REDOPS: [&str; 6] = ["sum", "prod", "min", "max", "avg", "mulsum"];

impl NcclTests {
    /// The sizes that the sweep visits, as nccl-tests counts them.
    pub fn sizes(&self) -> Vec<u64> {
        let next = |size: &u64| match self.step {
            Step::Factor(factor) => size.checked_mul(factor.max(2)),
            Step::Bytes(bytes) => size.checked_add(bytes.max(1)),
        };
        std::iter::successors(Some(self.min_bytes), next)
            .take_while(|size| *size > 0 && *size <= self.max_bytes)
            .take(MOST_SIZES)
            .collect()
    }

    /// PyTorch runs it, with NCCL.
    pub fn is_torch_on_gpus(&self) -> bool {
        self.torch.as_ref().is_some_and(|torch| torch.backend == Backend::Nccl)
    }

    /// The placements that are measured.
    pub fn places(&self) -> Place {
        if self.torch.is_some() { torch_collective::places(self.op) } else { Place::Both }
    }

    /// The one that stands for the operation where nothing says which: out of place where there is such.
    pub fn usual_place(&self) -> Place {
        if self.places() == Place::InPlace { Place::InPlace } else { Place::OutOfPlace }
    }

    /// How many communicators a split mask makes of a job's ranks.
    pub(crate) fn communicators(&self) -> u32 {
        match self.split_mask.as_deref().and_then(mask) {
            Some(mask) => 1u32.checked_shl(mask.count_ones()).unwrap_or(u32::MAX),
            None => 1,
        }
    }
}

impl WorkloadTable for NcclTests {
    fn environment(&self) -> &BTreeMap<String, String> {
        &self.environment
    }

    fn starts_task_per_gpu(&self) -> bool {
        self.torch.is_none()
    }

    fn stall_s(&self) -> Option<u64> {
        Some(180)
    }

    fn refuse_placement(&self, placement: Placement) -> Option<Refusal> {
        if self.through_nics && placement != Placement::Each {
            let why = "`through_nics` tests the NICs of one node, between its own GPUs";
            return Some((why, "write `placement = \"each\"`, or remove `through_nics`"));
        }
        let is_refused = self.torch.is_some() && placement == Placement::EachGpu;
        is_refused.then_some((
            "`torch-collective` uses all GPUs of its nodes",
            "write `placement = \"each\"`, or test single GPUs with `kind = \"nccl-tests\"`",
        ))
    }

    fn refuse_profile(&self) -> Option<&'static str> {
        self.torch.as_ref().map(
            |_| "`torch-collective` is not profiled; NCCL's Inspector shows its calls: `inspector = true`",
        )
    }

    fn refuse_nccl_log(&self) -> Option<&'static str> {
        let is_gloo = self.torch.as_ref().is_some_and(|torch| torch.backend == Backend::Gloo);
        is_gloo.then_some("gloo does not run NCCL; remove `nccl_log` from `recipes`")
    }

    fn refuse_window(&self, window: &Window) -> Option<(&'static str, Refusal)> {
        let instead = "write `delay_s` and `duration_s`, or remove it to profile the whole run";
        let (key, why) = match window {
            Window::CudaProfilerApi => {
                ("capture", "nccl-tests never call the profiler API, so the capture range would never open")
            }
            Window::Steps(_) => ("steps", "nccl-tests have no steps, only sizes"),
            _ => return None,
        };
        Some((key, (why, instead)))
    }

    fn setting(&mut self, key: &str) -> Option<SettingValue<'_>> {
        match key {
            "iterations" => Some(SettingValue::Count(&mut self.iterations)),
            "warmup" => Some(SettingValue::Count(&mut self.warmup)),
            _ => None,
        }
    }

    fn collective(&self) -> Option<&NcclTests> {
        Some(self)
    }
}

/// The keys of a sweep, whatever runs it, with the choices of its program.
pub(super) fn sweep_keys(ops: Type, dtypes: Type, redops: Type) -> Vec<Key> {
    vec![
        Key::needed("op", ops, "the operation: decides the program"),
        Key::needed("from", Type::Size, "the smallest size of the sweep"),
        Key::needed("to", Type::Size, "the largest size"),
        Key::usual("factor", "2", Type::WHOLE, "from one size to the next: times this"),
        Key::optional("step", Type::Size, "instead of `factor`: plus so many bytes"),
        Key::usual("iterations", "20", Type::WHOLE, "measured operations for each size"),
        Key::usual("warmup", "5", Type::WHOLE, "operations before those"),
        Key::usual("dtype", "\"float\"", dtypes, "of the elements"),
        Key::usual("redop", "\"sum\"", redops, "how operations that reduce do so"),
        Key::usual("root", "0", Type::WHOLE, "the root of rooted operations"),
        Key::usual("check", "true", Type::Boolean, "whether results are checked"),
    ]
}

fn form(kind: &str) -> Form {
    if kind == torch_collective::NAME {
        return torch_collective::form();
    }
    Form::new(sweep_keys(
        Type::OneOf(|_| Op::ALL.iter().map(|op| op.name().to_owned()).collect()),
        Type::OneOf(|_| DTYPES.map(str::to_owned).to_vec()),
        Type::OneOf(|_| REDOPS.map(str::to_owned).to_vec()),
    ))
    .and([
        environment_key(),
        Key::optional(
            "split_mask",
            Type::Pattern("^0x[0-9A-Fa-f]+$"),
            "ranks with equal bits under this mask form one communicator: `\"0x7\"` makes one per GPU index",
        ),
        Key::usual(
            "algorithm",
            "NCCL's choice",
            Type::OneOf(|_| Algorithm::ALL.map(|algorithm| algorithm.name().to_owned()).to_vec()),
            "fixes NCCL's algorithm",
        ),
        Key::usual(
            "through_nics",
            "false",
            Type::Boolean,
            "GPUs of a node reach each other through its NICs alone: NVLink and shared memory are turned off",
        ),
    ])
}

fn read(table: &Table<'_>, kind: &str) -> Option<Workload> {
    if kind == torch_collective::NAME {
        return torch_collective::read(table).map(Workload::NcclTests);
    }
    let sweep = read_sweep(table, &Op::ALL, &DTYPES, &REDOPS);
    let split_mask = table.get("split_mask").map(|value| {
        let text = value.text()?;
        if mask(&text).is_none() {
            let message =
                format!("`split_mask` must be a hexadecimal number, not: `{}`", text.escape_debug());
            value.diagnostic_with(message, "write `\"0x7\"` for one communicator per GPU index");
            return None;
        }
        Some(text)
    });
    let algorithms = Algorithm::ALL.map(|algorithm| (algorithm.name(), algorithm));
    let algorithm = table.get("algorithm").map(|value| value.one_of(&algorithms));
    let through_nics = table.get("through_nics").map_or(Some(false), |value| value.boolean());
    Some(Workload::NcclTests(NcclTests {
        split_mask: split_mask.unwrap_or_default(),
        algorithm: algorithm.unwrap_or_default(),
        through_nics: through_nics?,
        ..sweep?
    }))
}

/// The sweep alone; none where a value that it needs could not be read.
pub(super) fn read_sweep(
    table: &Table<'_>,
    ops: &[Op],
    dtypes: &[&'static str],
    redops: &[&'static str],
) -> Option<NcclTests> {
    let ops: Vec<(&str, Op)> = ops.iter().map(|op| (op.name(), *op)).collect();
    let op = table.need("op").and_then(|value| value.one_of(&ops));
    let from_value = table.need("from");
    let from = from_value.as_ref().and_then(size_of);
    let to = table.need("to").and_then(|value| size_of(&value));
    let factor = table.get("factor").map(|value| value.whole(2..=1 << 40));
    let step_value = table.get("step");
    let step = step_value.as_ref().map(size_of);
    let iterations = table.get("iterations").map_or(Some(20), |value| value.small(1..=1_000_000));
    let warmup = table.get("warmup").map_or(Some(5), |value| value.small(0..=1_000_000));
    let dtype = table.get("dtype").map_or(Some("float"), |value| name_in(&value, dtypes));
    let redop = table.get("redop").map_or(Some("sum"), |value| name_in(&value, redops));
    let root = table.get("root").map(|value| value.small(0..=1_000_000));
    let check = table.get("check").map_or(Some(true), |value| value.boolean());
    let environment = environment(table);
    if let (Some(_), Some(step)) = (factor, &step_value) {
        step.diagnostic("`step` and `factor` exclude each other");
    }
    let step = match (step, factor) {
        (Some(bytes), _) => bytes.map(Step::Bytes),
        (None, Some(factor)) => factor.map(Step::Factor),
        (None, None) => Some(Step::Factor(2)),
    };
    if let (Some(from), Some(to), Some(value)) = (from, to, &from_value) {
        if from > to {
            value.diagnostic(format!("`from` is above `to`: {from} > {to}"));
            return None;
        }
        if let (Some(Step::Bytes(bytes)), Some(step)) = (step, &step_value)
            && (to - from) / bytes >= MOST_SIZES as u64
        {
            step.diagnostic(format!(
                "the sweep has more than {MOST_SIZES} sizes: {}",
                (to - from) / bytes + 1
            ));
            return None;
        }
    }
    Some(NcclTests {
        op: op?,
        min_bytes: from?,
        max_bytes: to?,
        step: step?,
        iterations: iterations?,
        warmup: warmup?,
        dtype: dtype?.to_owned(),
        redop: redop?.to_owned(),
        root: root.unwrap_or_default(),
        check: check?,
        environment,
        split_mask: None,
        algorithm: None,
        through_nics: false,
        torch: None,
    })
}

/// The number that a split mask is written as.
fn mask(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) if !digits.starts_with('+') => u32::from_str_radix(digits, 16).ok(),
        _ => None,
    }
}

fn name_in(value: &Value<'_>, names: &[&'static str]) -> Option<&'static str> {
    let choices: Vec<(&str, &'static str)> = names.iter().map(|name| (*name, *name)).collect();
    value.one_of(&choices)
}
