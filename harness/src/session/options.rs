//! How a run is made: what the flags of the default verb say, without the command line that they come from.

use super::output::Output;
use super::webhook::Webhook;
use crate::filters::Filters;
use crate::report::{JunitFlavor, RequestedReport};
use cluster::reach::openssh;
use config::inventory::{Inventory, Stack};
use config::suite::Suite;
use job::profile::NsysVersion;
use job::script::GpuRequest;
use model::artefact::{Isolated, Plan, PlannedCase, PlannedIsolation, Source};
use std::fmt::Debug;
use std::path::PathBuf;
use store::Home;

#[derive(Debug, Clone)]
pub(crate) struct RunOptions {
    /// Names or paths, as are `inventory` and `baselines`.
    pub suites: Vec<String>,
    pub inventory: String,
    pub baselines: Option<PathBuf>,
    pub recipe_path: Option<PathBuf>,
    pub nodes: Option<String>,
    pub exclude_nodes: Option<String>,
    pub settings: Vec<(String, String)>,
    /// Software in place of what the inventory says.
    pub stack: Stack,
    pub seed: u64,
    pub sim_faults: Vec<String>,
    pub reservation: Option<String>,
    /// Keys of taints that pods bear, beside those of the inventory.
    pub bears: &'static [&'static str],
    pub no_probe: bool,
    /// Probe simulated nodes too.
    pub probe: bool,
    pub allow_busy: bool,
    pub dry_run: bool,
    pub verbose: bool,
    /// Copies of the reports beside those in the run's folder.
    pub junit: Option<PathBuf>,
    /// What the reader of that JUnit report accepts.
    pub junit_flavor: JunitFlavor,
    pub json: Option<PathBuf>,
    /// Those in formats that the run's folder does not hold.
    pub requested: Vec<RequestedReport>,
    /// Where the outcome is sent.
    pub webhook: Option<Webhook>,
    pub max_fail: Option<u32>,
    /// Errors count towards `max_fail`.
    pub errors: bool,
    pub strict: bool,
    pub keep_bad_nodes: bool,
    /// `isolate` or `nothing`, in place of what the suites say.
    pub on_failure: Option<String>,
    /// Seconds for the whole run.
    pub timeout: Option<u64>,
    pub ssh_fanout: u32,
    /// Where reports are read, if not here.
    pub analyze_on: Option<String>,
    pub filters: Filters,
    /// What the nodes reported where the inventory does not say.
    pub reported: ReportedFacts,
    /// What else is selected, and how results are printed.
    pub libtest: libtest_mimic::Arguments,
    /// What follows a failed suite; nothing follows where absent.
    pub after_run: Option<&'static dyn AfterRun>,
}

/// What the preflight found out, or Slurm alone without one, by which runs are planned a second time.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ReportedFacts {
    /// The nsys that profiled cases are planned with.
    pub nsys_version: Option<NsysVersion>,
    /// The names of the EFA devices, where those of the profile stand in for them.
    pub nics: Option<Vec<String>>,
    /// How jobs ask Slurm for GPUs, where the inventory leaves it open and it is not by GRES.
    pub gpus: Option<GpuRequest>,
    /// What nodes lack for the sources of evidence that cases list.
    pub evidence: Option<plan::EvidenceLacks>,
    /// What nodes have of the programs that a suite wants only where they are installed.
    pub programs: plan::NodePrograms,
}

impl Default for RunOptions {
    fn default() -> RunOptions {
        RunOptions {
            suites: Vec::new(),
            inventory: "default".to_owned(),
            baselines: None,
            recipe_path: None,
            nodes: None,
            exclude_nodes: None,
            settings: Vec::new(),
            stack: Stack::default(),
            seed: 1,
            sim_faults: Vec::new(),
            reservation: None,
            bears: &[],
            no_probe: false,
            probe: false,
            allow_busy: false,
            dry_run: false,
            verbose: false,
            junit: None,
            junit_flavor: JunitFlavor::Default,
            json: None,
            requested: Vec::new(),
            webhook: None,
            max_fail: None,
            errors: false,
            strict: false,
            keep_bad_nodes: false,
            on_failure: None,
            timeout: None,
            ssh_fanout: openssh::FANOUT as u32,
            analyze_on: None,
            filters: Filters::default(),
            reported: ReportedFacts::default(),
            libtest: libtest_mimic::Arguments::default(),
            after_run: None,
        }
    }
}

impl RunOptions {
    /// Why no assertion is left, by what was asked for.
    pub(crate) fn nothing_selected(&self, plan: &Plan) -> String {
        let skip = self.libtest.skip.iter().map(|word| format!("--skip {word}"));
        let words = self.libtest.filter.iter().cloned().chain(skip).chain(self.filters.arguments());
        let words: Vec<String> =
            words.map(|word| format!("`{}`", word.escape_debug().to_string().replace("\\'", "'"))).collect();
        match words.is_empty() {
            true => format!("no assertion in `{}`", self.suites.join("`, `")),
            false => {
                let near = self.filters.nearest(plan).map(|near| format!("did you mean `{near}`? "));
                let near = near.unwrap_or_default();
                let words = words.join(" with ");
                let suites: String = plan.suites.iter().map(|name| format!(" --suite {name}")).collect();
                format!("no test matches {words}; {near}`harness list{suites}` names them all")
            }
        }
    }

    /// For a run that is one of several: its caller prints what came of it.
    pub(crate) fn quiet(ssh_fanout: u32) -> RunOptions {
        let libtest = libtest_mimic::Arguments { quiet: true, ..Default::default() };
        RunOptions { ssh_fanout, libtest, ..RunOptions::default() }
    }
}

/// Isolates the faulty component of a suite that failed. Runs of its own are made for it, so the engine of runs knows
/// it by this alone.
pub(crate) trait AfterRun: Debug + Sync {
    /// What each suite that asks for an isolation may add to the run at most.
    fn plan(
        &self,
        home: &Home,
        plan: &Plan,
        suites: &[Suite],
        inventory: &Inventory,
        sources: &[Source],
    ) -> Vec<PlannedIsolation>;

    /// Isolates; or why that cannot be done. `options` name the run's files as its user did.
    fn isolate(
        &self,
        home: &Home,
        failed: &FailedSuite<'_>,
        options: &RunOptions,
        output: Output,
    ) -> Result<Isolated, String>;
}

/// A suite with an isolation in its plan, and the case of it that failed.
pub(crate) struct FailedSuite<'a> {
    pub plan: &'a Plan,
    pub planned: &'a PlannedIsolation,
    pub case: &'a PlannedCase,
}
