//! A simulated cluster that implements `Reach`: the launchers, the collection and everything after them run upon it as
//! they run upon a real one. What the harness does with what it sees is none of its business.
//!
//! It is Slurm as a state machine (`slurm`, `programs`), or nodes that are reached one by one over ssh (`ssh`,
//! `over_ssh`), as the inventory has it; over nodes with GPUs and NICs (`cluster`), whose workloads take
//! the time that published measurements suggest (`model`, `traffic`, `work`, `rounds`, `training`) and leave files in
//! the forms of the real tools (`outputs`, `nccl`, `counters`, `flows`, `nsys`), stamped by clocks of their nodes
//! (`clock`). The text of a job is read back by the strict grammar of `script`, so
//! what is tested is what would be sent.
//!
//! The law: a collective runs at the pace of its slowest NIC or GPU, on all nodes. The plugin fixes each NIC's share of
//! a node's traffic, so one slow NIC lowers the rate of every NIC in the job alike, and none of the bytes.
//!
//! What a fault (`fault`) of one node does to a job that includes it:
//!
//! | fault | nccl-tests over the nodes | a GPU each | flows | command |
//! |---|---|---|---|---|
//! | nic-slow | pace of the slow NIC, on all NICs; none on one node | - | F of the rate, both ways | - |
//! | nic-dead | its counters stand still, its node's others carry its share | - | `not-connected` | - |
//! | nic-missing | not listed, else as dead | - | `not-connected` | - |
//! | gpu-slow | time / F beyond the latency | that GPU alone | - | training: what it computes / F |
//! | corrupt | `#wrong` above 0, FAILED, exit 1 (only where `-c 1`) | that GPU alone | - | `torch-ddp`: other weights on that rank |
//! | rank-dies | stdout cut, `srun: error: NODE: task N: Killed`, exit 137 | the same | the same | the same |
//! | hang | no row more, counters at rest, until somebody ends it; INT is ignored | the same | the same | the same |
//! | node-fails | NODE_FAIL, capture cut; `down*` for 120 s, later jobs wait for it | the same | the same | the same |
//! | queue-stuck | PENDING, `ReqNodeNotAvail, UnavailableNodes:NODE` | the same | the same | the same |
//! | preempted | PREEMPTED mid-run | the same | the same | the same |
//! | output-missing | COMPLETED, no stdout, no capture of the node | the node's outputs | all outputs | no stdout |
//! | garbled | stdout and the node's capture mangled | the node's outputs | all outputs | stdout |
//! | disk-full | stdout and the node's capture cut, stderr names the node, exit 1 | the same | the same | the same |
//! | wrong-ranks | a world for each node; two worlds on one node | worlds of two | the node's end never comes | fewer tasks |
//! | report-truncated, report-missing, report-empty | the report of each profiled rank of the node | - | - | as nccl-tests |
//! | nsys-missing, nsys-old | profiled ranks of the node run bare | - | - | as nccl-tests |
//! | events-dropped | the node's reports say that they lack events | - | - | as nccl-tests |
//! | window-shut | - | - | - | training: a window of steps never opens on the node |
//! | clock-jump | the node's wall clock is an hour ahead at the end of its capture; uptime is right | the same | the same | the same |
//! | straggler | each collective MS longer, whichever its size; in its report the rank's kernels begin late | - | - | training: its forward MS longer a step |
//! | slow-loader | - | - | - | training: the rank begins each step MS later |
//! | nan-loss | - | - | - | training: from STEP on the loss is none; Megatron and `torch-ddp` name the rank and end with 1 |
//! | desync | as hang | as hang | as hang | training: all other ranks give up after ten minutes, exit 1 |
//! | mismatch | as hang | as hang | as hang | training: the rank and its peers call different collectives, and all wait |
//! | mismatch-size | as hang | as hang | as hang | training: the rank calls the same collective with another size, and all wait |
//! | comm-exposed | - | - | - | training: nothing runs beside communication, steps are longer |
//! | no-gdrdma | as if each NIC of the node were slow by half; its log says so | - | half the rate, both ways | - |
//! | graph-launch | in its reports what is timed is launched by graphs | - | - | training: what it computes; where it trains a model, what it reduces |
//! | clock-offset, clock-drift | the node's wall clock is off in reports and captures | the same | the same | the same |
//! | connection-drops | over ssh: the answer to the start is lost, and 25 s in the middle of the job | the same | the same | the same |
//! | host-unreachable | over ssh: no answer, ever; nothing starts there | the same | the same | the same |
//!
//! A probe (`probed`) sees NICs that are missing or dead, clocks, room and nsys by those faults, and by three of its own
//! that change no job: gpu-missing, gpu-busy, driver-differs, bad-fact (but of nccl and nccl_inspector, without which the
//! ranks of a node leave no records of NCCL's Inspector).
//!
//! Over ssh mpirun speaks where srun would (`ssh_errors`), a node that fails is silent and has lost its job when it is
//! back, and without a scheduler there is neither queue-stuck nor preempted.
//!
//! Of several faults that end a job, the one that would come about first counts; the others add up.

pub mod active_faults;
mod bad_facts;
mod broken_start;
mod calendar;
mod clean;
mod clock;
pub mod cluster;
mod commands;
pub mod counters;
mod drained;
mod environment;
pub mod execution;
mod field;
pub mod flight_recorder;
mod flight_wanted;
pub mod flows;
mod gpu_state;
mod gpu_state_wanted;
pub mod inspector;
pub mod inspector_wanted;
pub mod journal;
pub mod mangled;
mod model;
pub mod mpi_start;
pub mod nccl;
pub mod nccl_debug;
mod nccl_wanted;
pub mod noise;
pub mod nsys;
pub mod options;
pub mod outputs;
pub mod over;
mod over_ssh;
pub mod pci;
mod probed;
mod programs;
mod progress;
mod ras;
mod rounds;
mod secrets;
pub mod slurm;
mod slurm_tools;
pub mod software;
pub mod spread;
mod ssh;
mod ssh_errors;
mod stall;
mod steps;
#[cfg(test)]
mod tests;
pub mod timeline;
mod torch_collective;
mod traffic;
pub mod training;
mod turns;
pub mod work;

pub use self::programs::case_and_job;

use self::cluster::Cluster;
use self::journal::{Content, Entry, Journal};
use self::over::Over;
use self::slurm::Slurm;
use self::ssh::Ssh;
use ::cluster::reach::{Answer, Command, Host, Reach, ReachError, Wait, slurm_calls};
use ::model::fault::NodeFault;
use config::inventory::Inventory;
use job::script::files;
use std::cell::{RefCell, RefMut};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;

/// The simulated cluster. It lives on one thread, on tokio's clock, which should be paused.
pub struct SimulatedReach {
    world: RefCell<World>,
    start: Instant,
    journal: Option<Box<Journal>>,
}

/// Whether the cluster of an inventory has the node and the part that a fault names.
pub fn check_fault(inventory: &Inventory, fault: NodeFault) -> Result<(), String> {
    Cluster::new(inventory, 0, vec![fault], BTreeMap::new()).map(|_| ())
}

struct World {
    cluster: Cluster,
    slurm: Slurm,
    ssh: Ssh,
    /// The shared folder, as far as somebody put something there.
    files: BTreeMap<String, Vec<u8>>,
    /// Jobs that are over, by folder: their files are made when they are asked for.
    over: BTreeMap<String, Over>,
    /// Files that jobs left and somebody removed.
    removed: BTreeSet<String>,
    violations: Vec<String>,
    epoch_s: f64,
    now_s: f64,
    /// Jobs of a cluster that has been used before do not start at 1.
    first_id: u64,
}

/// What a command and what a file take.
const EXEC: Duration = Duration::from_millis(40);
const FILE: Duration = Duration::from_millis(1);
/// How long a host that does not answer is tried.
const CONNECT: Duration = Duration::from_secs(10);

impl SimulatedReach {
    /// A healthy cluster but for `faults`, and for `case_faults` in the jobs of the cases that they name. A fault of
    /// what is not there is an error.
    pub fn new(
        inventory: &Inventory,
        seed: u64,
        faults: Vec<NodeFault>,
        case_faults: BTreeMap<String, Vec<NodeFault>>,
    ) -> Result<Self, String> {
        let cluster = Cluster::new(inventory, seed, faults, case_faults)?;
        let mut slurm = Slurm::default();
        if cluster.world.boot_s > 0 {
            slurm.save_power(&cluster.nodes, cluster.world.boot_s as f64);
        }
        let world = World {
            cluster,
            slurm,
            ssh: Ssh::default(),
            files: BTreeMap::new(),
            over: BTreeMap::new(),
            removed: BTreeSet::new(),
            violations: Vec::new(),
            epoch_s: Self::epoch_unix_s(seed) as f64,
            now_s: 0.0,
            first_id: 1000 + noise::digest(seed, &["first job"]) % 9000,
        };
        Ok(SimulatedReach { world: RefCell::new(world), start: Instant::now(), journal: None })
    }

    /// Every request that changes something is written there before it is answered.
    pub fn with_journal(mut self, journal: Box<Journal>) -> Self {
        self.journal = Some(journal);
        self
    }

    /// Makes this cluster what it was after these requests, each at its own time; and lets its jobs go on until `until`.
    pub async fn restore(&self, entries: &[Entry], until: Duration) -> Result<(), String> {
        self.pause_heartbeat_timeouts(true);
        for entry in entries {
            tokio::time::sleep_until(self.start + Duration::from_micros(entry.at_us())).await;
            match entry {
                Entry::Put { path, content, .. } => {
                    let bytes = content.bytes()?;
                    self.world().put(path, bytes);
                }
                Entry::Exec { host, argv, .. } => {
                    // Whoever asked then had the answer.
                    let _ = self.world().exec(host, argv);
                }
            }
        }
        tokio::time::sleep_until(self.start + until).await;
        self.pause_heartbeat_timeouts(false);
        Ok(())
    }

    fn pause_heartbeat_timeouts(&self, rest: bool) {
        let mut world = self.world();
        let now_s = world.now_s;
        world.ssh.pause_heartbeat_timeouts(rest, now_s);
    }

    fn note(&self, entry: impl Fn(u64) -> Entry) -> Result<(), ReachError> {
        let Some(journal) = &self.journal else { return Ok(()) };
        let at_us = u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX);
        journal(&entry(at_us))
            .map_err(|why| ReachError::Failed { what: "the simulated cluster's journal".to_owned(), why })
    }

    /// The moment at which simulated time starts, by the seed.
    pub fn epoch_unix_s(seed: u64) -> i64 {
        calendar::epoch_unix_s(seed)
    }

    /// Simulated time now, in seconds since 1970.
    #[cfg(test)]
    pub(crate) fn unix_now(&self) -> f64 {
        self.world.borrow().epoch_s + self.start.elapsed().as_secs_f64()
    }

    /// What must never be, and was: two jobs on one node, a job that was never ended, a program that does not exist.
    pub fn violations(&self) -> Vec<String> {
        let world = self.world();
        let mut violations = world.violations.clone();
        violations.extend(
            world
                .slurm
                .live()
                .map(|job| format!("job neither ended nor cancelled: {} ({})", job.id, job.name)),
        );
        let live = world.ssh.live();
        violations.extend(live.map(|(folder, node)| format!("neither ended nor killed on {node}: {folder}")));
        violations
    }

    /// Forgets everything in a folder: it has been collected.
    pub fn release(&self, folder: &str) {
        let folder = folder.trim_end_matches('/');
        let mut world = self.world();
        world.over.remove(folder);
        world.ssh.release(folder);
        world.slurm.release(folder);
        let within = format!("{folder}/");
        let gone: Vec<String> = world
            .files
            .range(within.clone()..)
            .take_while(|(path, _)| path.starts_with(&within))
            .map(|(path, _)| path.clone())
            .collect();
        for path in gone {
            world.files.remove(&path);
        }
    }

    /// The world as it is now.
    fn world(&self) -> RefMut<'_, World> {
        let mut world = self.world.borrow_mut();
        world.now_s = self.start.elapsed().as_secs_f64();
        let now_s = world.now_s;
        let over = world.slurm.advance(now_s);
        world.keep(over);
        let over = world.ssh.advance(now_s);
        world.keep(over);
        world
    }

    /// Whether the host answers at all. One that is gone is waited for, one that was just heard of is not.
    async fn answers(&self, host: &Host, path: &str) -> Result<(), ReachError> {
        let silent = self.world().silent(host, path);
        let Some((why, is_immediate)) = silent else { return Ok(()) };
        if !is_immediate {
            tokio::time::sleep(CONNECT).await;
        }
        Err(ReachError::Unreachable { host: host.to_string(), why: why.to_owned() })
    }
}

impl World {
    /// What a command takes on a host beyond the usual.
    fn over_ssh(&self, host: &Host, argv: &[String]) -> Duration {
        let Host::Node(node) = host else { return Duration::ZERO };
        let of_world = &self.cluster.world;
        let answer_s = of_world.ssh_answer_s.get(node).copied().unwrap_or_default();
        let launch_s = if over_ssh::starts(argv) { of_world.ssh_launch_s } else { 0.0 };
        Duration::from_secs(answer_s) + Duration::from_secs_f64(launch_s)
    }

    fn keep(&mut self, over: impl IntoIterator<Item = Over>) {
        self.over.extend(over.into_iter().map(|over| (over.folder.trim_end_matches('/').to_owned(), over)));
    }

    /// Stores a file, and passes some to the part that waits for them.
    fn put(&mut self, path: &str, bytes: Vec<u8>) {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        self.files.insert(path.to_owned(), bytes);
        let Some((folder, name)) = path.rsplit_once('/') else { return };
        let now_s = self.now_s;
        if matches!(name, files::INTERRUPT | files::CANCEL) {
            let over = self.slurm.end_turn(folder, now_s, name == files::INTERRUPT);
            self.keep(over);
        } else if let Some(shared) = self.slurm.shared(folder) {
            if name == files::CLOSE {
                shared.close(now_s);
            } else if let Some(turn) = name.strip_prefix("turn.").and_then(|turn| turn.parse().ok())
                && let Some((of, limit_s)) = text.trim().parse().ok().and_then(|number| shared.job(number))
            {
                match programs::taken(self, &format!("{of}/{}", files::JOB)) {
                    Ok((_, execution)) => {
                        let next = turns::Next { folder: of, limit_s, execution };
                        self.slurm.give(folder, turn, now_s, next);
                    }
                    Err(why) => self.violations.push(format!("no job for turn {turn}: {why}")),
                }
            }
        }
    }

    fn exec(&mut self, host: &Host, argv: &[String]) -> Result<Answer, ReachError> {
        if let Some((verb, node, folders)) = clean::asked(argv) {
            return Ok(clean::run(self, verb, node, folders));
        }
        if let Some(paths) = ::cluster::reach::removed(argv) {
            return Ok(programs::remove(self, paths));
        }
        let node = match host {
            Host::Node(node) => Some(node.as_str()),
            Host::Here => None,
        };
        if let Some(answer) = stall::answer(self, argv, node) {
            return Ok(answer);
        }
        match host {
            Host::Here if !self.cluster.by_ssh => Ok(programs::run(self, argv)),
            Host::Node(node) if self.cluster.by_ssh && self.cluster.nodes.contains(node) => {
                over_ssh::run(self, node, argv)
            }
            _ => Ok(programs::unknown(self, argv)),
        }
    }

    /// What becomes of a command of Slurm, called by its name or `in_full`, before anybody looks at what it asks: how
    /// long it takes, and what it says where it does not come to that.
    fn admit_slurm(
        &self,
        host: &Host,
        argv: &[String],
        in_full: bool,
    ) -> (Duration, Option<Result<Answer, ReachError>>) {
        let settings = &self.cluster.world;
        if *host != Host::Here || self.cluster.by_ssh || !slurm_calls::is_one(argv) {
            return (Duration::ZERO, None);
        }
        if !settings.tools_on_path && !in_full {
            let program = argv.first().cloned().unwrap_or_default();
            let absent = ReachError::NoProgram { host: host.to_string(), program };
            return (Duration::ZERO, Some(Err(absent)));
        }
        if !settings.controller {
            return (slurm_tools::UNANSWERED, Some(Ok(slurm_tools::unanswered(argv))));
        }
        let boots = slurm_tools::node_of_srun(argv).is_some_and(|node| self.slurm.is_asleep(&node));
        (Duration::from_secs(if boots { settings.boot_s } else { 0 }), None)
    }

    /// Why a host gives no answer to what concerns a path, and whether it is known at once.
    fn silent(&self, host: &Host, path: &str) -> Option<(&'static str, bool)> {
        let Host::Node(node) = host else { return None };
        let case = self.cluster.case_of(path);
        if self.cluster.is_unreachable(case, node) {
            return Some(("connection timed out", false));
        }
        self.ssh.silent(node, self.now_s)
    }

    fn read(&self, path: &str) -> Option<Vec<u8>> {
        if let Some(bytes) = self.files.get(path) {
            return Some(bytes.clone());
        }
        if let Some(mark) = self.slurm.marked(path) {
            return Some(mark.clone().into_bytes());
        }
        if self.removed.contains(path) {
            return None;
        }
        let (folder, name) = path.rsplit_once('/')?;
        // Slurm makes them when the script begins.
        if matches!(name, files::BATCH_OUT | files::BATCH_ERR) && self.slurm.has_begun(folder) {
            return Some(Vec::new());
        }
        if let Some(over) = self.over.get(folder) {
            return outputs::file(&self.cluster, self.epoch_s, over, name);
        }
        // The tables of a report lie in a folder of their own, below the job's.
        let (folder, _) = folder.rsplit_once('/')?;
        let name = &path[folder.len() + 1..];
        nsys::file(&self.cluster, self.epoch_s, self.over.get(folder)?, name).map(|(_, bytes)| bytes)
    }
}

impl Reach for SimulatedReach {
    fn exec<'a>(&'a self, host: &'a Host, command: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
        Box::pin(async move {
            let inner = slurm_calls::read(&command.argv);
            let argv = inner.unwrap_or(&command.argv);
            let takes = EXEC + self.world.borrow().over_ssh(host, argv);
            tokio::time::timeout(command.limit, tokio::time::sleep(takes)).await.map_err(|_| {
                ReachError::TimedOut {
                    what: format!("a command on {host}"),
                    limit_s: command.limit.as_secs(),
                }
            })?;
            let path = argv.iter().find(|word| word.starts_with('/'));
            self.answers(host, path.map_or("", String::as_str)).await?;
            let (takes, refused) = self.world().admit_slurm(host, argv, inner.is_some());
            tokio::time::sleep(takes.min(command.limit)).await;
            if takes > command.limit {
                let what = format!("`{}`", argv.first().map_or("", String::as_str));
                return Err(ReachError::TimedOut { what, limit_s: command.limit.as_secs() });
            }
            if let Some(refused) = refused {
                return refused;
            }
            // A dump that was asked for is there from then on.
            let dumps = stall::is_request(argv);
            let only_asks = !dumps && (programs::only_asks(argv) || over_ssh::only_asks(argv));
            if !only_asks && clean::asked(argv).is_none_or(|(verb, ..)| verb != "look") {
                self.note(|at_us| Entry::Exec { at_us, host: host.clone(), argv: argv.to_vec() })?;
            }
            self.world().exec(host, argv)
        })
    }

    fn put<'a>(&'a self, host: &'a Host, path: &'a str, bytes: &'a [u8]) -> Wait<'a, Result<(), ReachError>> {
        Box::pin(async move {
            tokio::time::sleep(FILE).await;
            self.answers(host, path).await?;
            self.note(|at_us| Entry::Put {
                at_us,
                host: host.clone(),
                path: path.to_owned(),
                content: Content::classify(path, bytes),
            })?;
            self.world().put(path, bytes.to_vec());
            Ok(())
        })
    }

    fn get<'a>(&'a self, host: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
        Box::pin(async move {
            tokio::time::sleep(FILE).await;
            self.answers(host, path).await?;
            self.world().read(path).ok_or_else(|| ReachError::NotFound { path: path.to_owned() })
        })
    }
}
