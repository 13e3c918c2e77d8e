//! What reading, checking and linting a suite ask of a workload, before any node is known.

use super::super::Placement;
use super::{NcclTests, NicPairs, Workload};
use crate::form::Form;
use crate::toml_reader::Table;
use job::profile::Window;
use std::collections::BTreeMap;

/// A kind of workload: how it is called, and how it is read.
pub(super) struct WorkloadKind {
    /// `kind` in suites; several where one parser reads them all.
    pub names: &'static [&'static str],
    /// The keys of the kind with that name, beside those that every kind has.
    pub form: fn(&str) -> Form,
    /// The rest of the table, of the kind with that name; `None` where a value that it needs could not be read.
    pub read: fn(&Table<'_>, &str) -> Option<Workload>,
    /// Its keys that `--set` takes.
    pub settings: &'static [Setting],
}

/// A key that `--set` takes.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// As in suites.
    pub key: &'static str,
    /// What it is, for the help.
    pub about: &'static str,
}

/// Where the value of a setting lies in a workload.
pub enum SettingValue<'a> {
    /// A whole number above zero.
    Count(&'a mut u32),
    /// A number of at least `least`.
    Number {
        /// The number.
        value: &'a mut f64,
        /// The smallest that is accepted.
        least: f64,
    },
}

/// Why something is refused, and what to write instead.
pub type Refusal = (&'static str, &'static str);

static NO_VARIABLES: BTreeMap<String, String> = BTreeMap::new();

/// A workload by what its table says. What most workloads have alike is the default.
pub trait WorkloadTable {
    /// Its environment variables, which win over the inventory's.
    fn environment(&self) -> &BTreeMap<String, String> {
        &NO_VARIABLES
    }

    /// The program and its arguments as a person wrote them: values in them may be referred to, and scripts among them
    /// are linted. Empty where only the plan has a command line.
    fn written_arguments(&self) -> Vec<&String> {
        Vec::new()
    }

    /// The command line as far as it is known without nodes, by which windows of steps are checked.
    fn known_arguments(&self) -> Option<Vec<String>> {
        None
    }

    /// How many steps it runs, where its table says so.
    fn steps(&self) -> Option<u32> {
        None
    }

    /// Processes that are started on each node as tasks of the launcher, where its table says so.
    fn tasks_per_node(&self) -> Option<u32> {
        None
    }

    /// Whether the launcher may start each rank as a task of its own, rather than one task for all of a node.
    fn starts_task_per_gpu(&self) -> bool {
        self.tasks_per_node().is_some_and(|tasks| tasks > 1)
    }

    /// A job that makes no progress for so long is ended, where the suite says nothing; never, where absent.
    fn stall_s(&self) -> Option<u64>;

    /// What a node must have for it, of what the probe looks for: a program, or a folder by its path. Empty where the probe does
    /// not look for its program.
    fn probed_programs(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// Where the suite names none.
    fn usual_placement(&self) -> Option<Placement> {
        None
    }

    /// Why it cannot be placed so, if it cannot.
    fn refuse_placement(&self, placement: Placement) -> Option<Refusal>;

    /// Why it cannot be profiled, if it cannot.
    fn refuse_profile(&self) -> Option<&'static str> {
        None
    }

    /// The key of such a window, and why that window would never open, if it would not.
    fn refuse_window(&self, _window: &Window) -> Option<(&'static str, Refusal)> {
        None
    }

    /// Why independent repeats of it are of no use, if they are not.
    fn refuse_repeats(&self) -> Option<Refusal> {
        None
    }

    /// Why there is no log of NCCL to read, if there is none.
    fn refuse_nccl_log(&self) -> Option<&'static str> {
        None
    }

    /// The NICs' counters are read unless the suite says otherwise.
    fn reads_counters(&self) -> bool {
        true
    }

    /// The value of one of its settings.
    fn setting(&mut self, _key: &str) -> Option<SettingValue<'_>> {
        None
    }

    /// The collective that it measures over a sweep of sizes, if it does.
    fn collective(&self) -> Option<&NcclTests> {
        None
    }

    /// The flows between NICs that it measures, if it does.
    fn flows(&self) -> Option<&NicPairs> {
        None
    }
}
