//! `kind = "command"`: any program.

use super::super::Placement;
use super::Workload;
use super::arguments::{argument, environment, program_of};
use super::table::{Refusal, WorkloadKind, WorkloadTable};
use super::{args_key, environment_key};
use crate::form::{Form, Key, Type};
use crate::toml_reader::Table;
use std::collections::BTreeMap;

pub(super) const KIND: WorkloadKind = WorkloadKind { names: &["command"], form, read, settings: &[] };

/// Any program, as `kind = "command"` has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    /// A name or a path; no keyword or builtin of a shell.
    pub program: String,
    /// One that is `env:NAME` is replaced by that variable's value when the job starts.
    pub args: Vec<String>,
    /// Wins over the inventory's.
    pub environment: BTreeMap<String, String>,
    /// 1 by default, and always 1 over ssh.
    pub tasks_per_node: u32,
}

impl WorkloadTable for Command {
    fn environment(&self) -> &BTreeMap<String, String> {
        &self.environment
    }

    fn written_arguments(&self) -> Vec<&String> {
        std::iter::once(&self.program).chain(&self.args).collect()
    }

    fn known_arguments(&self) -> Option<Vec<String>> {
        Some(self.written_arguments().into_iter().cloned().collect())
    }

    fn tasks_per_node(&self) -> Option<u32> {
        Some(self.tasks_per_node)
    }

    /// It may be silent for as long as it likes.
    fn stall_s(&self) -> Option<u64> {
        None
    }

    fn refuse_placement(&self, placement: Placement) -> Option<Refusal> {
        let instead = "write `placement = \"each\"` and `tasks_per_node`";
        (placement == Placement::EachGpu).then_some(("`command` is not bound to a GPU", instead))
    }

    fn reads_counters(&self) -> bool {
        false
    }
}

fn form(_: &str) -> Form {
    Form::new([
        Key::needed("program", Type::Text, "a program by its name or path; no keyword of a shell"),
        args_key(),
        environment_key(),
        Key::usual("tasks_per_node", "1", Type::WHOLE, "processes on each node; always 1 over ssh"),
    ])
}

fn read(table: &Table<'_>, _: &str) -> Option<Workload> {
    let program = table.need("program").and_then(|value| program_of(&value));
    let args = table.get("args").and_then(|value| value.list()).unwrap_or_default();
    let args = args.iter().filter_map(argument).collect();
    let environment = environment(table);
    let tasks_per_node = table.get("tasks_per_node").map_or(Some(1), |value| value.small(1..=1024));
    let command = Command { program: program?, args, environment, tasks_per_node: tasks_per_node? };
    Some(Workload::Command(command))
}
