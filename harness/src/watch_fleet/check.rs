//! One check: planned, launched and stored as any run is, under an id that is known before anything is launched; and read or
//! gone on with where the process was ended meanwhile.

use super::WatchFleetRequest;
use super::readings::{self, CheckResult};
use crate::session::past_events::{PastEvents, read_ended_run};
use crate::session::planning::{self, make_plan_as};
use crate::session::preflight::{self, ProbeScope, Stopped};
use crate::session::{ReportedFacts, RunOptions, execution, gpu_request};
use base::nodeset;
use config::inventory::{GresReport, Inventory};
use job::script::GpuRequest;
use model::artefact::{Plan, Probe};
use store::{Home, Store, Stored};

/// Why a check measured nothing.
pub(super) enum NotChecked {
    Interrupted(i32),
    Failed(String),
}

/// Some cases of a suite on some nodes.
pub(super) struct Check<'a> {
    pub home: &'a Home,
    pub request: &'a WatchFleetRequest,
    pub id: &'a str,
    pub nodes: &'a [String],
    pub seed: u64,
}

impl Check<'_> {
    fn options(&self, nodes: &[String]) -> RunOptions {
        RunOptions {
            suites: vec![self.request.suite.clone()],
            inventory: self.request.inventory.clone(),
            nodes: Some(nodeset::fold(nodes)),
            seed: self.seed,
            sim_faults: self.request.sim_faults.clone(),
            no_probe: self.request.no_probe,
            probe: self.request.probe,
            on_failure: Some("nothing".to_owned()),
            ..RunOptions::quiet(self.request.ssh_fanout)
        }
    }

    /// The plan on all nodes of the inventory.
    pub(super) fn plan_all(&self) -> Result<(Plan, Inventory), Vec<String>> {
        self.plan_by(RunOptions { nodes: None, ..self.options(&[]) })
    }

    /// The plan on some nodes; or all that is wrong with what was asked for. Jobs ask Slurm for GPUs as `gpus` says, where the
    /// inventory leaves it open.
    fn plan(&self, nodes: &[String], gpus: Option<GpuRequest>) -> Result<(Plan, Inventory), Vec<String>> {
        let reported = ReportedFacts { gpus, ..ReportedFacts::default() };
        self.plan_by(RunOptions { reported, ..self.options(nodes) })
    }

    fn plan_by(&self, options: RunOptions) -> Result<(Plan, Inventory), Vec<String>> {
        let request = self.request;
        let (mut plan, inventory) = make_plan_as(self.home, &options, &request.catalogue, Some(self.id))?;
        if let Some(absent) =
            request.cases.iter().find(|name| !plan.cases.iter().any(|case| case.name == **name))
        {
            let near = base::suggest::nearest(absent, plan.cases.iter().map(|case| case.name.as_str()));
            let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            return Err(vec![format!("no case `{absent}` in suite `{}`{near}", request.suite)]);
        }
        // The plan on all nodes is the first that is made.
        if self.nodes.is_empty() {
            readings::refused(&plan, &request.cases).map_err(|why| vec![why])?;
        }
        if !request.cases.is_empty() {
            plan.cases.retain(|case| request.cases.contains(&case.name));
        }
        Ok((plan::share(plan, &inventory), inventory))
    }

    /// Launches it, and reads what came of it.
    pub(super) fn run(&self, inventory: &Inventory) -> Result<CheckResult, NotChecked> {
        let probe = self.probe(inventory)?;
        let mut nodes = self.nodes.to_vec();
        if let Some(probe) = &probe {
            let unfit = preflight::unfit(probe, inventory);
            nodes.retain(|node| !unfit.iter().any(|left| left.node == *node));
            if nodes.is_empty() {
                return Ok(readings::from_probe(probe, inventory));
            }
        }
        let failed = |why: String| NotChecked::Failed(why);
        let gpus = match &probe {
            Some(probe) => gpu_request::settled(inventory, &GresReport::from_probe(probe), true),
            None => {
                let scope = self.scope();
                let asked = preflight::ask_gpu_request_apart(&scope, inventory, &self.options(&nodes));
                asked.map_err(not_checked)?
            }
        };
        let (plan, inventory) = self.plan(&nodes, gpus).map_err(|why| failed(why.join("; ")))?;
        let secrets = planning::resolve_secrets(&plan).map_err(|why| failed(why.join("; ")))?;
        planning::check_holds_no_secret(&plan, &secrets).map_err(failed)?;
        let store = Store::create(self.home, &plan.run_id).map_err(|error| failed(error.to_string()))?;
        let store = store.hiding(secrets).simulated(plan.simulated);
        let write = || {
            if let Some(probe) = &probe {
                store.write_json(&store.folder().join("probe.json"), probe)?;
            }
            store.write_json(&store.folder().join("plan.json"), &plan)
        };
        write().map_err(|error| failed(error.to_string()))?;
        self.execute(&plan, &inventory, &store, None)?;
        self.read(&inventory)
    }

    /// What the nodes have now, where they are asked.
    fn probe(&self, inventory: &Inventory) -> Result<Option<Probe>, NotChecked> {
        let options = self.options(self.nodes);
        if !preflight::is_wanted(inventory, &options) {
            return Ok(None);
        }
        preflight::probe_apart(&self.scope(), inventory, &options).map(Some).map_err(not_checked)
    }

    fn scope(&self) -> ProbeScope<'_> {
        ProbeScope {
            name: format!("{}.probe", self.id),
            nodes: self.nodes,
            seed: self.seed,
            sim_faults: &self.request.sim_faults,
        }
    }

    fn execute(
        &self,
        plan: &Plan,
        inventory: &Inventory,
        store: &Store,
        past: Option<&PastEvents>,
    ) -> Result<(), NotChecked> {
        let options = RunOptions::quiet(self.request.ssh_fanout);
        let finished = execution::execute_and_write(plan, inventory, store, &options, past);
        finished.map(drop).map_err(NotChecked::Failed)
    }

    fn read(&self, inventory: &Inventory) -> Result<CheckResult, NotChecked> {
        let folder = self.home.path().join("runs").join(self.id);
        let stored = Stored::open(&folder).map_err(|error| NotChecked::Failed(error.to_string()))?;
        readings::read(&stored, inventory).map_err(NotChecked::Failed)
    }

    /// A check whose process was ended: nothing where nothing was launched; else it is awaited, and read as any other.
    pub(super) fn take_up(&self, inventory: &Inventory) -> Result<Option<CheckResult>, NotChecked> {
        let folder = self.home.path().join("runs").join(self.id);
        if !folder.join("plan.json").is_file() {
            return Ok(None);
        }
        if !folder.join("summary.json").is_file() {
            let failed = |why: String| NotChecked::Failed(why);
            let store = Store::open(self.home, self.id).map_err(|error| failed(error.to_string()))?;
            let (plan, inventory, past) =
                read_ended_run(self.home, &store, &self.request.inventory).map_err(failed)?;
            let secrets = planning::resolve_secrets(&plan).map_err(|why| failed(why.join("; ")))?;
            self.execute(&plan, &inventory, &store.hiding(secrets), Some(&past))?;
        }
        self.read(inventory).map(Some)
    }
}

fn not_checked(stopped: Stopped) -> NotChecked {
    match stopped {
        Stopped::Interrupted(code) => NotChecked::Interrupted(code),
        Stopped::Machinery(why) | Stopped::NoAnswer(why) => NotChecked::Failed(why),
    }
}
