//! What each rank of a training that stands still had recorded: the collectives of its last steps, in the order of its program,
//! up to where it waits. Its thread runs ahead of its GPU: calls behind the one that it waits in are recorded, too.

use super::pickle::{Value, bytes};
use crate::active_faults::Differs;
use crate::execution::Execution;
use crate::noise::Noise;
use crate::training::{Collective, Training, Who};
use crate::work::Work;

/// When ranks were asked, and who no longer calls.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    /// The start of the work, in seconds since 1970.
    pub epoch_s: f64,
    /// From there to the moment at which the ranks stood still.
    pub worked_s: f64,
    pub silent: Option<u32>,
    /// Who calls another collective than the others, or the same with another size.
    pub odd: Option<(u32, Differs)>,
}

pub(super) struct Recorded<'a> {
    training: Option<&'a Training>,
    moment: Moment,
    seconds: f64,
    /// Of one step.
    calls: Vec<Collective>,
    /// The collective at which it began, counted from the first step on.
    begins: usize,
    /// How many collectives each rank entered and completed, from the first step on.
    entered: Vec<usize>,
    completed: Vec<usize>,
}

/// A thread is ahead of its GPU by so many collectives at most.
const MOST_AHEAD: u64 = 4;
/// Steps that a dump goes back.
const STEPS: usize = 2;

impl<'a> Recorded<'a> {
    pub(super) fn new(moment: Moment, execution: &'a Execution, mut noise: Noise) -> Recorded<'a> {
        let training = execution.training.as_ref();
        let calls = training.map(Training::collectives).unwrap_or_default();
        let seconds = match &execution.work {
            Work::Command { seconds, .. } => seconds.max(1e-9),
            _ => 1.0,
        };
        let ranks = training.map_or(0, Training::ranks) as usize;
        let total = training.map_or(0, |training| training.steps as usize) * calls.len();
        let done = ((moment.worked_s / seconds).clamp(0.0, 1.0) * total as f64) as usize;
        let done = done.min(total.saturating_sub(1));
        let mut recorded = Recorded {
            training,
            moment,
            seconds,
            calls,
            begins: done,
            entered: vec![done; ranks],
            completed: vec![done; ranks],
        };
        recorded.go_on(total);
        for rank in 0..ranks {
            if moment.silent != Some(rank as u32) {
                let ahead = (noise.whole() % MOST_AHEAD) as usize;
                recorded.entered[rank] = (recorded.entered[rank] + ahead).min(total);
            }
        }
        recorded
    }

    /// Each rank goes on to the first collective that one of its communicator does not enter.
    fn go_on(&mut self, total: usize) {
        let most = self.entered.iter().max().copied().unwrap_or_default() + STEPS * self.calls.len();
        loop {
            let mut has_moved = false;
            for rank in 0..self.entered.len() {
                if self.moment.silent == Some(rank as u32) || self.entered[rank] >= total.min(most) {
                    continue;
                }
                let at = self.entered[rank];
                let waits = at > self.completed[rank];
                if !waits {
                    self.entered[rank] += 1;
                    has_moved = true;
                } else if self.is_done(rank, at - 1) {
                    self.completed[rank] = at;
                    has_moved = true;
                }
            }
            if !has_moved {
                return;
            }
        }
    }

    /// Whether all ranks of its communicator entered the collective of that number, and as the same one.
    fn is_done(&self, rank: usize, at: usize) -> bool {
        let members = self.members(rank, at);
        let is_odd = |member: &usize| self.moment.odd.is_some_and(|(odd, _)| odd as usize == *member);
        let is_mismatch = at == self.begins && members.iter().any(is_odd);
        !is_mismatch && members.iter().all(|member| self.entered[*member] > at)
    }

    /// The ranks of the communicator of the collective that a rank entered as its `at`th.
    fn members(&self, rank: usize, at: usize) -> Vec<usize> {
        let (Some(training), Some(call)) = (self.training, self.calls.get(at % self.calls.len().max(1)))
        else {
            return Vec::new();
        };
        let of = |rank: usize| call.who.which(rank as u32, training.ranks_per_node);
        (0..self.entered.len()).filter(|other| of(*other) == of(rank)).collect()
    }

    /// The file of a rank; nothing of one that there is not.
    pub(super) fn dump(&self, rank: u32) -> Option<Vec<u8>> {
        let (training, at) = (self.training?, rank as usize);
        let (entered, completed) = (*self.entered.get(at)?, *self.completed.get(at)?);
        let steps_back = STEPS * self.calls.len();
        let first = completed.saturating_sub(steps_back);
        let mut entries = Vec::new();
        // Of each kind of communicator the rank is in one; their numbers are the process's own.
        let mut counts = [0_u64; 3];
        let mut last = [(-1_i64, -1_i64); 3];
        for index in 0..entered {
            let Some(call) = self.calls.get(index % self.calls.len().max(1)) else { break };
            let kind = Who::ALL.iter().position(|who| *who == call.who).unwrap_or_default();
            counts[kind] += 1;
            let number = i64::try_from(counts[kind]).unwrap_or(i64::MAX);
            last[kind].0 = number;
            if index < completed {
                last[kind].1 = number;
            }
            if index >= first {
                entries.push(self.entry(
                    training,
                    rank,
                    (index, counts[kind]),
                    (*call, kind),
                    index < completed,
                ));
            }
        }
        let is_used = |kind: &usize| *kind == 0 || self.calls.iter().any(|call| call.who == Who::ALL[*kind]);
        let groups: Vec<usize> = (0..3).filter(is_used).collect();
        let config = groups.iter().map(|kind| {
            let (name, description) = group(training, rank, *kind);
            let mut members: Vec<u32> = Vec::new();
            let of = |rank: u32| Who::ALL[*kind].which(rank, training.ranks_per_node);
            members.extend((0..training.ranks()).filter(|other| of(*other) == of(rank)));
            let about = vec![
                ("name", Value::text(name.clone())),
                ("desc", Value::text(description)),
                ("ranks", Value::text(format!("{members:?}"))),
            ];
            (Value::text(name), Value::Dict(about))
        });
        let status = groups.iter().map(|kind| {
            let of_group = vec![
                ("last_enqueued_collective", Value::Int(last[*kind].0)),
                // Without timing no start is recorded.
                ("last_started_collective", Value::Int(-1)),
                ("last_completed_collective", Value::Int(last[*kind].1)),
            ];
            (Value::text(kind.to_string()), Value::Dict(of_group))
        });
        Some(bytes(&Value::Dict(vec![
            ("version", Value::text("2.10")),
            ("comm_lib_version", Value::text(crate::software::NCCL)),
            ("pg_config", Value::Map(config.collect())),
            ("pg_status", Value::Map(status.collect())),
            ("entries", Value::List(entries)),
        ])))
    }

    fn entry(
        &self,
        training: &Training,
        rank: u32,
        (index, number): (usize, u64),
        (call, kind): (Collective, usize),
        is_done: bool,
    ) -> Value {
        let total = training.steps as usize * self.calls.len();
        let created_s = self.moment.epoch_s + self.seconds * index as f64 / total.max(1) as f64;
        let created_ns = (created_s * 1e6) as i64 * 1000;
        let members = u64::from(call.who.member(rank, training.ranks_per_node, training.nodes).1);
        let odd = self.moment.odd.filter(|(odd, _)| *odd == rank && index == self.begins);
        let differs_in = odd.map(|(_, differs_in)| differs_in);
        let is_other = differs_in == Some(Differs::Operation);
        // Two bytes each; whoever calls with another size, with twice as many.
        let elements = if differs_in == Some(Differs::Size) { call.bytes } else { call.bytes / 2 };
        let (name, input, output) = match call.function {
            "ncclAllGather" => ("nccl:_all_gather_base", elements, elements * members),
            "ncclReduceScatter" => ("nccl:_reduce_scatter_base", elements * members, elements),
            _ => ("nccl:all_reduce", elements, elements),
        };
        let name = match name {
            "nccl:all_reduce" if is_other => "nccl:_all_gather_base",
            _ if is_other => "nccl:all_reduce",
            name => name,
        };
        let shape = |elements: u64| Value::List(vec![Value::List(vec![Value::int(elements)])]);
        let types = || Value::List(vec![Value::text("BFloat16")]);
        let (group, description) = group(training, rank, kind);
        let seen = if is_done { Value::Int(created_ns + 40_000_000) } else { Value::None };
        let frame = |name: &str, file: &str, line: i64| {
            Value::Dict(vec![
                ("name", Value::text(name)),
                ("filename", Value::text(file)),
                ("line", Value::Int(line)),
            ])
        };
        Value::Dict(vec![
            (
                "frames",
                Value::List(vec![
                    frame("forward", "/opt/model.py", 88),
                    frame("<module>", "/opt/train.py", 131),
                ]),
            ),
            ("record_id", Value::int(index as u64)),
            ("pg_id", Value::int(kind as u64)),
            ("process_group", Value::pair(Value::text(group), Value::text(description))),
            ("collective_seq_id", Value::int(number)),
            ("p2p_seq_id", Value::Int(0)),
            ("op_id", Value::int(number)),
            ("profiling_name", Value::text(name)),
            ("time_created_ns", Value::Int(created_ns)),
            ("duration_ms", Value::None),
            ("input_sizes", shape(input)),
            ("input_dtypes", types()),
            ("output_sizes", shape(output)),
            ("output_dtypes", types()),
            ("state", Value::text(if is_done { "completed" } else { "scheduled" })),
            ("time_discovered_started_ns", Value::None),
            ("time_discovered_completed_ns", seen),
            ("retired", Value::Bool(is_done)),
            ("timeout_ms", Value::Int(600_000)),
            ("is_p2p", Value::Bool(false)),
            ("thread_id", Value::text((140_000_000_000_000_u64 + u64::from(rank)).to_string())),
            ("thread_name", Value::text("pt_autograd_0")),
        ])
    }
}

/// Name and description of the communicator of that kind. Names are counted over all that the program makes.
fn group(training: &Training, rank: u32, kind: usize) -> (String, &'static str) {
    let which = Who::ALL[kind].which(rank, training.ranks_per_node);
    match Who::ALL[kind] {
        Who::World => ("0".to_owned(), "default_pg"),
        Who::Node => ((1 + which).to_string(), "fsdp_shard"),
        Who::Across => ((1 + training.nodes + which).to_string(), "fsdp_replicate"),
    }
}
