//! Each rank's calls in order by NCCL's log, and the host of each rank.

use super::super::{FileRole, InputFile, JobInput};
use logs::nccl_debug::events::{Event, for_each_event};
use logs::nccl_debug::{Operation, type_bytes};
use nsys::nccl::Function;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufReader;

/// More calls than this are not compared, since they are kept in memory.
const MOST: usize = 1 << 21;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Logged {
    pub operation: Operation,
    /// As logged: of a rank, or of one peer of it. `None` for a type of unknown size.
    pub bytes: Option<u64>,
    pub comm: u64,
    pub op_count: u64,
    pub root: u64,
}

impl Logged {
    pub(super) fn function(&self) -> Option<Function> {
        Function::from_name(&format!("nccl{}", self.operation.name()))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Communicator {
    Id(u64),
    /// Without a logged id: all of one size are taken for one.
    Size(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Member {
    pub communicator: Communicator,
    pub rank: u64,
    pub nranks: u64,
}

#[derive(Debug, Default)]
pub(super) struct Process {
    pub host: String,
    /// By the pointers that its calls name.
    pub members: BTreeMap<u64, Member>,
    pub calls: Vec<Logged>,
}

impl Process {
    /// Its place in the largest of its communicators.
    pub(super) fn world(&self) -> Option<Member> {
        self.members.values().copied().max_by_key(|member| (member.nranks, std::cmp::Reverse(member.rank)))
    }
}

#[derive(Debug, Default)]
pub(super) struct Log {
    /// By host and number of the process.
    pub processes: BTreeMap<(String, u64), Process>,
    choices: BTreeMap<(Option<String>, u64), String>,
    pub garbled: u64,
    calls: usize,
}

impl Log {
    /// Says why there is none.
    pub(super) fn read(job: &JobInput) -> Result<Log, String> {
        let mut log = Log::default();
        for file in job.files.iter().filter(|file| is_printed(file)) {
            let read = File::open(&file.path).and_then(|from| {
                for_each_event(BufReader::with_capacity(256 << 10, from), |event| log.take(event))
            });
            read.map_err(|error| format!("{}: {error}", file.shown))?;
        }
        if log.processes.values().all(|process| process.calls.is_empty()) {
            return Err("no NCCL call in the job's output; set `NCCL_DEBUG=INFO` and add `COLL` to `NCCL_DEBUG_SUBSYS`"
                .to_owned());
        }
        if log.calls > MOST {
            return Err(format!("too many calls to compare: {}, limit {MOST}", log.calls));
        }
        if log.garbled > 0 {
            return Err(format!("unreadable lines of calls: {}", log.garbled));
        }
        Ok(log)
    }

    fn take(&mut self, event: &Event) {
        match event {
            Event::Call { host, pid, call } => {
                self.calls += 1;
                if self.calls > MOST {
                    return;
                }
                let logged = Logged {
                    operation: call.operation,
                    bytes: type_bytes(call.datatype).and_then(|size| size.checked_mul(call.count)),
                    comm: call.comm,
                    op_count: call.op_count,
                    root: call.root,
                };
                self.process(host, *pid).calls.push(logged);
            }
            Event::Rank { host, pid, comm, rank, nranks, comm_id } => {
                let communicator = comm_id.map_or(Communicator::Size(*nranks), Communicator::Id);
                let member = Member { communicator, rank: *rank, nranks: *nranks };
                self.process(host, *pid).members.insert(*comm, member);
            }
            Event::Choice { operation, bytes, by } => {
                self.choices.insert((operation.map(str::to_owned), *bytes), by.clone());
            }
            Event::Garbled => self.garbled += 1,
        }
    }

    fn process(&mut self, host: &str, pid: u64) -> &mut Process {
        let process = self.processes.entry((host.to_owned(), pid)).or_default();
        if process.host.is_empty() {
            host.clone_into(&mut process.host);
        }
        process
    }

    /// By what the log says that a call is carried out, if it does.
    pub(super) fn choice(&self, operation: Operation, bytes: u64) -> Option<&str> {
        let named = self.choices.get(&(Some(operation.name().to_owned()), bytes));
        named.or_else(|| self.choices.get(&(None, bytes))).map(String::as_str)
    }

    /// The hosts of a communicator's ranks, as far as they are known.
    pub(super) fn hosts(&self, communicator: Communicator) -> BTreeMap<u64, &str> {
        let of = self
            .processes
            .values()
            .flat_map(|process| process.members.values().map(move |member| (member, process.host.as_str())));
        of.filter(|(member, _)| member.communicator == communicator)
            .map(|(member, host)| (member.rank, host))
            .collect()
    }

    /// The processes by their ranks in the world; nothing where two are the same rank.
    pub(super) fn by_rank(&self) -> Result<BTreeMap<u64, &Process>, String> {
        let mut ranks = BTreeMap::new();
        let mut twice = BTreeSet::new();
        for process in self.processes.values().filter(|process| !process.calls.is_empty()) {
            let Some(world) = process.world() else {
                return Err(format!("a process on `{}` has no rank in the log", process.host));
            };
            if ranks.insert(world.rank, process).is_some() {
                twice.insert(world.rank);
            }
        }
        match twice.first() {
            None => Ok(ranks),
            Some(rank) => Err(format!("several processes are rank {rank}: the log covers several jobs")),
        }
    }
}

/// Whether the workload printed it.
fn is_printed(file: &InputFile) -> bool {
    let name = file.shown.rsplit('/').next().unwrap_or_default();
    file.role == FileRole::NcclTests || name.starts_with("stdout") || name.starts_with("stderr")
}
