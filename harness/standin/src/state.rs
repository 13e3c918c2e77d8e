//! Where stand-ins keep their state, and what `cluster.toml` in it says that they simulated to be.

use super::Call;
use config::inventory::{Instances, Inventory};
use model::fault::{Fault, NodeFault};
use serde::Deserialize;
use sim::cluster::Cluster;
use std::collections::BTreeMap;
use std::iter;
use std::path::{Path, PathBuf};

/// The variable that names the folder. Without it the folder is the one above the folder of the program's own path.
pub(crate) const STATE: &str = "HARNESS_STANDIN_STATE";

pub(crate) struct State {
    pub folder: PathBuf,
    pub cluster: Cluster,
    /// The part of a workload's time that is lived through, and the seconds that it has at least.
    pub time_factor: f64,
    floor_s: f64,
    case_floor_s: BTreeMap<String, f64>,
    pub nsys_version: String,
}

/// `cluster.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StateFile {
    /// The folder that holds `inventory/instances`.
    home: PathBuf,
    /// The profile of a simulated instance.
    instance: String,
    nodes: String,
    #[serde(default = "first_seed")]
    seed: u64,
    #[serde(default)]
    faults: Vec<String>,
    /// By case.
    #[serde(default)]
    case_faults: BTreeMap<String, Vec<String>>,
    #[serde(default = "time_factor")]
    time_factor: f64,
    #[serde(default = "floor_s")]
    floor_s: f64,
    /// By case: where rates are read off the machine's clock there must be enough of it.
    #[serde(default)]
    case_floor_s: BTreeMap<String, f64>,
    #[serde(default = "nsys_version")]
    nsys_version: String,
    /// How the cluster differs from a stock one.
    #[serde(default)]
    world: toml::Table,
}

fn first_seed() -> u64 {
    1
}

fn time_factor() -> f64 {
    0.001
}

fn floor_s() -> f64 {
    0.3
}

fn nsys_version() -> String {
    "2025.3.1".to_owned()
}

/// What only servers, clocks and folders themselves can do to a job.
const OF_SERVERS: [&str; 7] = [
    "node-fails",
    "queue-stuck",
    "preempted",
    "connection-drops",
    "host-unreachable",
    "clock-jump",
    "nsys-missing",
];

impl State {
    /// The folder that the environment names, or else the one in which the program lies.
    pub(crate) fn find(call: &Call) -> Result<State, String> {
        let named = std::env::var_os(STATE).map(PathBuf::from);
        let folder = named.or_else(|| Self::above(call)).ok_or_else(|| {
            format!(
                "where its state lies is not known: set {STATE}, or call it as STATE/bin/{}",
                call.program
            )
        })?;
        Self::read(&folder)
    }

    fn above(call: &Call) -> Option<PathBuf> {
        let own = call.path.as_deref()?;
        let of = |program: &Path| {
            let folder = program.parent()?.parent()?;
            folder.join(FILE).is_file().then(|| folder.to_owned())
        };
        if own.components().count() > 1 {
            return of(own);
        }
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path)
            .map(|folder| folder.join(own))
            .find(|program| program.is_file())
            .as_deref()
            .and_then(of)
    }

    pub(crate) fn read(folder: &Path) -> Result<State, String> {
        let file = folder.join(FILE);
        let shown = file.display();
        let text = std::fs::read_to_string(&file).map_err(|error| format!("{shown}: {error}"))?;
        let file_values: StateFile = toml::from_str(&text).map_err(|error| format!("{shown}: {error}"))?;
        if !(file_values.time_factor > 0.0 && file_values.time_factor <= 1.0) {
            return Err(format!(
                "{shown}: `time_factor` is a number above 0, 1 at most: {}",
                file_values.time_factor
            ));
        }
        for (key, floor_s) in iter::once(("floor_s", &file_values.floor_s))
            .chain(file_values.case_floor_s.iter().map(|(case, s)| (case.as_str(), s)))
        {
            if !(0.0..=3600.0).contains(floor_s) {
                return Err(format!("{shown}: `{key}` is a number from 0 to 3600: {floor_s}"));
            }
        }
        let cluster = file_values.cluster().map_err(|why| format!("{shown}: {why}"))?;
        Ok(State {
            folder: folder.to_owned(),
            cluster,
            time_factor: file_values.time_factor,
            floor_s: file_values.floor_s,
            case_floor_s: file_values.case_floor_s,
            nsys_version: file_values.nsys_version,
        })
    }

    /// The seconds that a job of a case is lived through at least.
    pub(crate) fn floor_s(&self, case: &str) -> f64 {
        self.case_floor_s.get(case).copied().unwrap_or(self.floor_s)
    }

    /// The tree of a host's devices, as the kernel would show it.
    pub(crate) fn counters(&self, node: &str) -> PathBuf {
        self.folder.join("hosts").join(node)
    }

    /// What ails a node whatever runs there.
    pub(crate) fn ails(&self, node: &str) -> Vec<Fault> {
        self.cluster.faults_of("", &[node.to_owned()]).map(|fault| fault.fault.clone()).collect()
    }
}

const FILE: &str = "cluster.toml";

impl StateFile {
    fn cluster(&self) -> Result<Cluster, String> {
        let instances = Instances::load(&self.home).map_err(|diagnostics| diagnostics.to_string())?;
        let mut text =
            format!("kind = \"simulated\"\ninstance = {:?}\nnodes = {:?}\n", self.instance, self.nodes);
        // The machines are real ones, and so are their interfaces.
        text.push_str(&format!("[world]\ndocker0 = false\n{}", self.world));
        let inventory =
            Inventory::read(&text, FILE, &instances).map_err(|diagnostics| diagnostics.to_string())?;
        let faults = faults(&self.faults)?;
        let of_cases = self.case_faults.iter().map(|(case, list)| Ok((case.clone(), faults_of_case(list)?)));
        Cluster::new(&inventory, self.seed, faults, of_cases.collect::<Result<_, String>>()?)
    }
}

fn faults(list: &[String]) -> Result<Vec<NodeFault>, String> {
    let one = |text: &String| {
        let fault = NodeFault::parse(text)?;
        match OF_SERVERS.contains(&fault.fault.kind()) {
            true => Err(format!("fault `{text}` cannot be produced by a stand-in; produce it on the server")),
            false => Ok(fault),
        }
    };
    list.iter().map(one).collect()
}

fn faults_of_case(list: &[String]) -> Result<Vec<NodeFault>, String> {
    let faults = faults(list)?;
    match faults.iter().find(|fault| matches!(fault.fault, Fault::NicMissing { .. })) {
        Some(fault) => Err(format!("fault `{fault}`: a device is missing in all cases or in none")),
        None => Ok(faults),
    }
}
