//! Reads what a case runs: nccl-tests, flows between pairs of NICs, or any command; what trains a model has a file of its
//! own.

use super::matrix::Combination;
use super::{Algorithm, Command, MOST_SIZES, NcclTests, NicPairs, Step, Workload, training};
use crate::toml_reader::quantity::size_of;
use crate::toml_reader::{Table, Value};
use base::redact::{Reference, reference};
use job::script::FlowMemory;
use metric::op::Op;
use std::collections::BTreeMap;

const DTYPES: [&str; 12] = [
    "int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "float", "double", "bfloat16", "f8e4m3",
    "f8e5m2",
];
const REDOPS: [&str; 6] = ["sum", "prod", "min", "max", "avg", "mulsum"];

/// Keywords and builtins of bash, which run no program.
const OF_SHELLS: [&str; 58] = [
    "!", "[[", "{", "}", "if", "then", "elif", "else", "fi", "case", "esac", "for", "select", "while",
    "until", "do", "done", "in", "function", "time", "coproc", ".", ":", "alias", "bg", "bind", "break",
    "builtin", "caller", "cd", "command", "continue", "declare", "disown", "eval", "exec", "exit", "export",
    "fg", "getopts", "hash", "jobs", "let", "local", "mapfile", "popd", "pushd", "read", "readonly",
    "return", "set", "shift", "source", "times", "trap", "typeset", "unset", "wait",
];

#[derive(Clone, Copy)]
enum Kind {
    NcclTests,
    NicPairs,
    Command,
    Training(training::Kind),
}

pub(super) fn read(value: &Value<'_>, combination: &Combination<'_>) -> Option<Workload> {
    let table =
        value.table()?.with(combination.values()).no_lists("to sweep, write `matrix = { KEY = [...] }`");
    let mut kinds =
        vec![("nccl-tests", Kind::NcclTests), ("nic-pairs", Kind::NicPairs), ("command", Kind::Command)];
    kinds.extend(training::Kind::ALL.map(|(name, kind)| (name, Kind::Training(kind))));
    let workload = match table.need("kind")?.one_of(&kinds)? {
        Kind::NcclTests => read_nccl_tests(&table).map(Workload::NcclTests),
        Kind::NicPairs => read_nic_pairs(&table).map(Workload::NicPairs),
        Kind::Command => read_command(&table).map(Workload::Command),
        Kind::Training(kind) => training::read(&table, kind).map(Workload::Training),
    };
    // Read by `stall_s`; asked for here so that it is a known key.
    table.get("stall_s");
    table.close();
    workload
}

/// How long a job of the workload may make no progress: as the suite says it, 0 for as long as it likes; else by what
/// it is. A command may be silent for as long as it likes.
pub(super) fn stall_s(value: &Value<'_>, workload: Option<&Workload>) -> Option<u64> {
    let own = value.table().and_then(|table| table.get("stall_s")).and_then(|value| value.whole(0..=86_400));
    let usual = match workload? {
        Workload::NcclTests(_) => Some(180),
        // A flow prints its rate at its end.
        Workload::NicPairs(pairs) => Some(180 + 2 * pairs.seconds.ceil() as u64),
        // Checkpoints are written in silence.
        Workload::Training(_) => Some(900),
        Workload::Command(_) => None,
    };
    own.or(usual).filter(|seconds| *seconds > 0)
}

/// Stands for a workload that could not be read while the rest of its case is.
pub(super) fn placeholder() -> Workload {
    let (program, args, environment) = (String::new(), Vec::new(), BTreeMap::new());
    Workload::Command(Command { program, args, environment, tasks_per_node: 1 })
}

/// The number that a split mask is written as.
pub(super) fn mask(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) if !digits.starts_with('+') => u32::from_str_radix(digits, 16).ok(),
        _ => None,
    }
}

fn read_nccl_tests(table: &Table<'_>) -> Option<NcclTests> {
    let ops = Op::ALL.map(|op| (op.name(), op));
    let op = table.need("op").and_then(|value| value.one_of(&ops));
    let from_value = table.need("from");
    let from = from_value.as_ref().and_then(size_of);
    let to = table.need("to").and_then(|value| size_of(&value));
    let factor = table.get("factor").map(|value| value.whole(2..=1 << 40));
    let step_value = table.get("step");
    let step = step_value.as_ref().map(size_of);
    let iterations = table.get("iterations").map_or(Some(20), |value| value.small(1..=1_000_000));
    let warmup = table.get("warmup").map_or(Some(5), |value| value.small(0..=1_000_000));
    let dtype = table.get("dtype").map_or(Some("float"), |value| name_in(&value, &DTYPES));
    let redop = table.get("redop").map_or(Some("sum"), |value| name_in(&value, &REDOPS));
    let root = table.get("root").map(|value| value.small(0..=1_000_000));
    let check = table.get("check").map_or(Some(true), |value| value.boolean());
    let environment = environment(table);
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
        split_mask: split_mask.unwrap_or_default(),
        algorithm: algorithm.unwrap_or_default(),
    })
}

fn read_nic_pairs(table: &Table<'_>) -> Option<NicPairs> {
    let seconds = table.get("seconds").map_or(Some(5.0), |value| {
        let seconds = value.number()?;
        if !(5.0..=3600.0).contains(&seconds) {
            value.diagnostic(format!("a flow must last between 5 and 3600 s at line rate, not: {seconds}"));
            return None;
        }
        Some(seconds)
    });
    // Each device of a node has its own port from here on, so that some must be left above.
    let base_port = table.get("base_port").map_or(Some(18_515), |value| value.small(1024..=65_000));
    let message_bytes = table.get("message_bytes").map_or(Some(1 << 20), |value| size_of(&value));
    let memories = FlowMemory::ALL.map(|memory| (memory.name(), memory));
    let memory = table.get("memory").map_or(Some(FlowMemory::Auto), |value| value.one_of(&memories));
    Some(NicPairs {
        seconds: seconds?,
        base_port: u16::try_from(base_port?).ok()?,
        message_bytes: message_bytes?,
        memory: memory?,
    })
}

fn read_command(table: &Table<'_>) -> Option<Command> {
    let program = table.need("program").and_then(|value| program_of(&value));
    let args = table.get("args").and_then(|value| value.list()).unwrap_or_default();
    let args = args.iter().filter_map(argument).collect();
    let environment = environment(table);
    let tasks_per_node = table.get("tasks_per_node").map_or(Some(1), |value| value.small(1..=1024));
    Some(Command { program: program?, args, environment, tasks_per_node: tasks_per_node? })
}

/// A program that a shell would take for something of its own, or srun for an option, would not be what is run.
pub(super) fn program_of(value: &Value<'_>) -> Option<String> {
    let text = value.non_empty_text().filter(|_| argument(value).is_some())?;
    let is_path = text.contains('/');
    if text.starts_with('-') || (text.contains('=') && !is_path) {
        value.diagnostic_with(format!("not a program name: {text:?}"), "write its path");
        return None;
    }
    if !is_path && OF_SHELLS.contains(&text.as_str()) {
        value.diagnostic_with(
            format!("a shell keyword or builtin, not a program: `{text}`"),
            "write the path of a program",
        );
        return None;
    }
    Some(text)
}

pub(super) fn argument(value: &Value<'_>) -> Option<String> {
    let text = value.text().filter(|text| refers_well(value, text))?;
    if text.contains('\0') {
        value.diagnostic(format!("an argument cannot contain a zero byte: {text:?}"));
        return None;
    }
    Some(text)
}

/// An error where a value begins like the name of a variable, and is none.
fn refers_well(value: &Value<'_>, text: &str) -> bool {
    let is_broken = reference(text) == Reference::Broken;
    if is_broken {
        let message = format!("no variable name after `env:`: `{}`", text.escape_debug());
        value.diagnostic_with(message, "write `env:NAME`: the value of that variable is passed to the job");
    }
    !is_broken
}

pub(super) fn environment(table: &Table<'_>) -> BTreeMap<String, String> {
    table
        .get("environment")
        .and_then(|value| value.table())
        .map(|table| variables(&table))
        .unwrap_or_default()
}

/// Environment variables, as suites and inventories name them.
pub fn variables(table: &Table<'_>) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    for (name, span, value) in table.entries() {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(is_name) || name.starts_with(|c: char| c.is_ascii_digit()) {
            let message = format!("not an environment variable name: `{}`", name.escape_debug());
            table.source().diagnostic(&span, message);
            continue;
        }
        let Some(text) = value.text() else { continue };
        if text.contains(['\0', '\n']) {
            value.diagnostic(format!("an environment variable must be one line: `{name}`"));
            continue;
        }
        if !refers_well(&value, &text) {
            continue;
        }
        variables.insert(name.to_owned(), text);
    }
    variables
}

fn name_in(value: &Value<'_>, names: &[&'static str]) -> Option<&'static str> {
    let choices: Vec<(&str, &'static str)> = names.iter().map(|name| (*name, *name)).collect();
    value.one_of(&choices)
}
