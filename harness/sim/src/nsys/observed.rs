//! What a profiler saw of one task: the events of its processes, on the clock of its node, within its window. What the
//! processes did is in `nccl_tests`; how an export writes it, in `report`.

use super::events::{Events, Kernel, Range};
use super::nccl_tests::{self, Process};
use super::window::{Opening, Watched};
use super::{FIRST_KERNEL_S, Rank, ns, training};
use crate::clock::HostClock;
use crate::training::{DRAWS, Placed, Training, Who};
use crate::work::{Table, Work, noise_of};
use crate::{nccl, noise};
use logs::window_mark::MARKS;

pub(super) struct Observed {
    /// In nanoseconds since the session's start.
    pub events: Events,
    /// Graphs that were traced as a whole: each one's first kernel, stretched to the end of its last.
    pub graphs: Vec<Kernel>,
    /// The session's start on the node's clock, since 1970.
    pub session_ns: i64,
}

/// Sessions of a job start within this time of each other.
const APART_NS: f64 = 0.2e9;

impl Observed {
    pub(super) fn new(rank: &Rank, epoch_s: f64) -> Observed {
        let (execution, over) = (&rank.over.execution, rank.over);
        let mut events = Events::default();
        if let Work::Tables(tables) = &execution.work
            && let Some(of_task) = nccl_tests_events(rank, tables)
        {
            events = of_task;
        }
        if let Some(training) = &execution.training {
            events = training_events(rank, training);
        }
        if !rank.traces("cuda") {
            (events.kernels, events.copies, events.calls) = Default::default();
        }
        if !rank.traces("nvtx") {
            events.ranges.clear();
        }
        // True moments: of the job's start, and of the time from which events are counted.
        let job_ns = epoch_s as i64 * 1_000_000_000 + ns(over.start_s);
        let origin_ns = job_ns + ns(execution.work_from_s) - ns(FIRST_KERNEL_S);
        let mut own =
            noise_of(rank.cluster, &execution.case, &execution.job, &format!("session{}", rank.rank));
        let started_ns = origin_ns - (own.fraction() * APART_NS) as i64;
        let clock = HostClock::new(rank.cluster, &execution.active_faults, (rank.node, rank.host()), job_ns);
        let session_ns = clock.shows(started_ns);
        let own_clock = |at| clock.shows(origin_ns + at) - session_ns;
        let opening = rank.opening();
        if let Opening::Steps(watched) = &opening
            && rank.is_hooked()
            && rank.traces("nvtx")
        {
            events.mark_steps(watched);
        }
        events.on_clock(own_clock);
        match opening {
            Opening::Never => events.within(f64::INFINITY, f64::INFINITY),
            Opening::Seconds(from_s, to_s) => events.within(from_s * 1e9, to_s * 1e9),
            Opening::Span(from, to) => events.within(own_clock(from) as f64, own_clock(to) as f64),
            Opening::Steps(watched) => {
                events.within(own_clock(watched.from) as f64, own_clock(watched.to) as f64);
            }
        }
        events.in_order();
        let whole = rank.profile.words.every.iter().any(|word| word.starts_with("--cuda-graph-trace=graph"));
        let graphs = if whole { events.whole_graphs() } else { Vec::new() };
        Observed { events, graphs, session_ns }
    }
}

/// The one process of a task of nccl-tests.
fn nccl_tests_events(rank: &Rank, tables: &[Table]) -> Option<Events> {
    let execution = &rank.over.execution;
    let gpus = tables.first()?.options.gpus.max(1);
    let first = rank.rank * gpus;
    let (which, table) = tables
        .iter()
        .enumerate()
        .find(|(_, table)| (table.world.first..table.world.first + table.ranks).contains(&first))?;
    let draws = |what: String| noise_of(rank.cluster, &execution.case, &execution.job, &what);
    let world = which.to_string();
    let communicator = |group: u32| {
        let words = ["communicator", &execution.case, &execution.job, &world, &group.to_string()];
        noise::digest(rank.cluster.seed, &words)
    };
    let communicators: Vec<u64> = (0..table.world.group.side_by_side.max(1)).map(communicator).collect();
    let mut pid = draws(format!("pid{:?}{:?}", table.world.nodes, table.world.gpu));
    // One process on one GPU sees that one alone; one that drives several numbers them.
    let devices = if gpus == 1 { vec![i64::from(rank.local)] } else { (0..i64::from(gpus)).collect() };
    let process = Process {
        table,
        first: first - table.world.first,
        devices,
        pid: nccl::first_pid(&mut pid) + u64::from((first - table.world.first) / gpus),
        communicators: &communicators,
        by_graphs: execution.active_faults.launches_graphs(rank.node),
    };
    let (shared, own) = (draws(format!("kernels of world {world}")), draws(format!("kernels{}", rank.rank)));
    Some(nccl_tests::events(&process, shared, own))
}

/// The processes of a task of the training program, each with a GPU of its own.
fn training_events(rank: &Rank, program: &Training) -> Events {
    let execution = &rank.over.execution;
    let first = rank.rank * program.processes;
    let own = first..first + program.processes;
    let mut placed: Vec<Vec<Placed>> = own.clone().map(|_| Vec::new()).collect();
    program.run(noise_of(rank.cluster, &execution.case, &execution.job, DRAWS), &mut |one| {
        let at = one.rank.checked_sub(first).and_then(|at| placed.get_mut(at as usize));
        at.into_iter().for_each(|placed| placed.push(one));
    });
    let mut pid = noise_of(rank.cluster, &execution.case, &execution.job, "pids");
    let first_pid = nccl::first_pid(&mut pid);
    let mut events = Events::default();
    for (of_job, placed) in own.zip(&placed) {
        let communicator = |who: Who| {
            let which = who.which(of_job, program.ranks_per_node).to_string();
            let words = ["communicator", &execution.case, &execution.job, &format!("{who:?}"), &which];
            noise::digest(rank.cluster.seed, &words)
        };
        let process = training::Process {
            rank: of_job,
            device: i64::from(of_job % program.ranks_per_node),
            pid: first_pid + u64::from(of_job),
            communicators: Who::ALL.map(communicator),
        };
        events.append(training::events(program, &process, placed));
    }
    events
}

impl Events {
    /// The ranges by which the hook reports the numbers of steps, on the thread of the session's first process.
    fn mark_steps(&mut self, watched: &Watched) {
        let Some(global_tid) = self.calls.first().map(|call| call.global_tid) else { return };
        for (number, (start, end)) in (watched.steps.first..).zip(&watched.spans) {
            let name = format!("{MARKS} {number}").into();
            // Inside of the program's own.
            let (start, end) = (start + 100, end - 100);
            self.ranges.push(Range { name, start, end, global_tid, of_nccl: false, payload: None });
        }
    }

    fn on_clock(&mut self, shows: impl Fn(i64) -> i64) {
        let spans = self.kernels.iter_mut().map(|kernel| (&mut kernel.start, &mut kernel.end));
        let spans = spans.chain(self.copies.iter_mut().map(|copy| (&mut copy.start, &mut copy.end)));
        let spans = spans.chain(self.calls.iter_mut().map(|call| (&mut call.start, &mut call.end)));
        let spans = spans.chain(self.ranges.iter_mut().map(|range| (&mut range.start, &mut range.end)));
        for (start, end) in spans {
            (*start, *end) = (shows(*start), shows(*end));
        }
    }

    /// What runs on a GPU is seen where it touches the window, what a thread does where it begins there.
    fn within(&mut self, from: f64, to: f64) {
        let begins = |start: i64| (from..to).contains(&(start as f64));
        let touches = |start: i64, end: i64| end as f64 >= from && (start as f64) < to;
        self.kernels.retain(|kernel| touches(kernel.start, kernel.end));
        self.copies.retain(|copy| touches(copy.start, copy.end));
        self.calls.retain(|call| begins(call.start));
        self.ranges.retain(|range| begins(range.start));
    }

    fn in_order(&mut self) {
        self.kernels.sort_by_key(|kernel| (kernel.start, kernel.device, kernel.correlation));
        self.copies.sort_by_key(|copy| (copy.start, copy.device, copy.correlation));
        self.calls.sort_by_key(|call| (call.start, call.global_tid, call.correlation));
        // The outer of two that begin together comes first.
        self.ranges.sort_by_key(|range| (range.start, range.global_tid, -range.end));
    }

    /// Takes the kernels of graphs out, and gives each launch on each GPU as one.
    fn whole_graphs(&mut self) -> Vec<Kernel> {
        let mut graphs: Vec<Kernel> = Vec::new();
        for kernel in self.kernels.extract_if(.., |kernel| kernel.node.is_some()) {
            let same = |graph: &&mut Kernel| {
                (graph.global_pid, graph.correlation, graph.device)
                    == (kernel.global_pid, kernel.correlation, kernel.device)
            };
            // The launches of one moment are few, and the latest stand at the end.
            match graphs.iter_mut().rev().take(64).find(same) {
                Some(graph) => graph.end = graph.end.max(kernel.end),
                None => graphs.push(kernel),
            }
        }
        graphs
    }
}
