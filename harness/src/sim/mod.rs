//! A pretend cluster: it implements `Reach`, so that launchers, collection and all that follows run unchanged upon it.
//!
//! Slurm is a state machine (`slurm.rs`), bandwidth a model fitted to published figures (`model.rs`), and what a job
//! is sent is read back from the rendered text by the grammar of `script`. Time is tokio's, which is paused: a pretend
//! queue of two hours costs a millisecond. One seed gives the same bytes.
//!
//! What a fault does to a job that includes its node:
//!
//! | fault | collective | GPUs alone | flows | command |
//! |---|---|---|---|---|
//! | nic-slow | all at that NIC's pace | - | that NIC's flows slow | - |
//! | nic-dead, nic-missing | goes on without; the node's others carry its share | - | that NIC's do not connect | - |
//! | gpu-slow | all at that GPU's pace | that GPU's run slow | - | - |
//! | corrupt | `#wrong` above 0, exit 1 | that GPU's run wrong, exit 1 | - | - |
//! | rank-dies | breaks off, exit 137, srun names the node | same | same | exit 137 |
//! | hang | stands still until it is ended | same | same | same |
//! | node-fails | NODE_FAIL, the node is down for a while | same | same | same |
//! | queue-stuck | stays pending, the reason names the node | same | same | same |
//! | preempted | PREEMPTED | same | same | same |
//! | output-missing | no output | same | same | same |
//! | garbled | output mangled | same | same | same |
//! | disk-full | output cut, exit 1, stderr names the node | same | same | exit 1 |
//! | wrong-ranks | half the ranks | two ranks where one was meant | - | - |
//! | clock-jump | the node's wall clock jumps an hour in its captures | same | same | same |

mod counters;
pub mod fault;
mod model;
mod noise;
mod output;
mod programs;
mod slurm;
mod work;

use crate::inventory::{Inventory, Transport};
use crate::reach::{Answer, Command, Host, Reach, ReachError, Wait};
use crate::suggest;
use fault::NodeFault;
use model::{Family, Machine};
use slurm::{Slurm, State};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;
use work::Setting;

/// What never changes while the cluster runs.
pub(crate) struct Cluster {
    seed: u64,
    epoch_unix_s: i64,
    nodes: Vec<String>,
    nics: Vec<String>,
    by_reads: bool,
    machine: Machine,
    faults: Vec<NodeFault>,
    case_faults: BTreeMap<String, Vec<NodeFault>>,
}

pub struct PretendReach {
    cluster: Cluster,
    start: Instant,
    world: RefCell<World>,
}

struct World {
    slurm: Slurm,
    /// What was put on the shared folder.
    files: BTreeMap<String, Vec<u8>>,
    violations: Vec<String>,
}

impl PretendReach {
    pub fn new(
        inventory: &Inventory,
        seed: u64,
        faults: Vec<NodeFault>,
        case_faults: BTreeMap<String, Vec<NodeFault>>,
    ) -> Result<PretendReach, String> {
        let instance = &inventory.instance;
        for fault in faults.iter().chain(case_faults.values().flatten()) {
            check_fault(fault, inventory)?;
        }
        let family = match instance.transport {
            Transport::Sendrecv => Family::P4de,
            Transport::Rdma => Family::P5,
        };
        let cluster = Cluster {
            seed,
            epoch_unix_s: PretendReach::epoch_unix_s(seed),
            nodes: inventory.nodes.clone(),
            nics: instance.nics.clone(),
            by_reads: instance.transport == Transport::Sendrecv,
            machine: Machine {
                family,
                gpus: instance.gpus,
                nics: instance.nics.len() as u32,
                nic_line_rate_gb_s: instance.nic_line_rate_gb_s,
            },
            faults,
            case_faults,
        };
        let world = World { slurm: Slurm::new(), files: BTreeMap::new(), violations: Vec::new() };
        Ok(PretendReach { cluster, start: Instant::now(), world: RefCell::new(world) })
    }

    /// Pretend time starts at a date derived from the seed: midnight of a day from 2031 on.
    pub fn epoch_unix_s(seed: u64) -> i64 {
        1_924_992_000 + (seed % 3650) as i64 * 86_400
    }

    /// Forgets what lies in a job's folder, to bound memory. What Slurm knows of the job stays.
    pub fn release(&self, folder: &str) {
        let mut world = self.world.borrow_mut();
        let prefix = format!("{folder}/");
        world.files.retain(|path, _| !path.starts_with(&prefix));
    }

    /// What must not be, and was: programs that nobody has, nodes used twice, jobs left behind.
    pub fn violations(&self) -> Vec<String> {
        let mut world = self.world.borrow_mut();
        let now = self.now();
        world.slurm.advance(now);
        let mut violations = world.violations.clone();
        for (id, job) in &world.slurm.jobs {
            if !matches!(job.state, State::Ended { .. }) {
                violations.push(format!("job {id} ({}) is left {}", job.name, job.word()));
            }
        }
        violations
    }

    fn now(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    fn read(&self, path: &str) -> Option<Vec<u8>> {
        let mut world = self.world.borrow_mut();
        let now = self.now();
        world.slurm.advance(now);
        if let Some(bytes) = world.files.get(path) {
            return Some(bytes.clone());
        }
        let (folder, name) = path.rsplit_once('/')?;
        let job = world.slurm.jobs.values().find(|job| job.folder == folder)?;
        let (case, own) = case_and_job(folder);
        let setting = Setting { machine: &self.cluster.machine, seed: self.cluster.seed, case, job: own };
        match name.strip_prefix("counters.").and_then(|rest| rest.strip_suffix(".txt")) {
            Some(node) => counters::file(job, node, &self.cluster, &setting),
            None => output::file(job, name, &setting),
        }
    }
}

/// A job's folder ends in the names of its case and of itself.
fn case_and_job(folder: &str) -> (&str, &str) {
    let (rest, job) = folder.rsplit_once('/').unwrap_or(("", folder));
    (rest.rsplit('/').next().unwrap_or_default(), job)
}

impl Reach for PretendReach {
    fn exec<'a>(&'a self, _host: &'a Host, command: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            let mut world = self.world.borrow_mut();
            let now = self.now();
            world.slurm.advance(now);
            Ok(programs::run(&self.cluster, &mut world, &command.argv, now))
        })
    }

    fn put<'a>(
        &'a self,
        _host: &'a Host,
        path: &'a str,
        bytes: &'a [u8],
    ) -> Wait<'a, Result<(), ReachError>> {
        Box::pin(async move {
            self.world.borrow_mut().files.insert(path.to_owned(), bytes.to_vec());
            Ok(())
        })
    }

    fn get<'a>(&'a self, _host: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
        Box::pin(async move { self.read(path).ok_or_else(|| ReachError::NotFound { path: path.to_owned() }) })
    }
}

/// Whether the cluster has the node and the part that a fault names.
pub fn check_fault(fault: &NodeFault, inventory: &Inventory) -> Result<(), String> {
    let unknown = |what: &str, word: &str, known: &[String]| {
        let near = suggest::nearest(word, known.iter().map(String::as_str));
        let hint = near.map(|near| format!(", did you mean `{near}`")).unwrap_or_default();
        Err(format!("{fault}: no such {what}{hint}: `{word}`"))
    };
    if !inventory.nodes.contains(&fault.node) {
        return unknown("node", &fault.node, &inventory.nodes);
    }
    if let Some(device) = fault.fault.device()
        && !inventory.instance.nics.iter().any(|nic| nic == device)
    {
        return unknown("device", device, &inventory.instance.nics);
    }
    match fault.fault.gpu() {
        Some(gpu) if gpu >= inventory.instance.gpus => {
            Err(format!("{fault}: a node has GPUs 0 to {}, not: {gpu}", inventory.instance.gpus - 1))
        }
        _ => Ok(()),
    }
}
