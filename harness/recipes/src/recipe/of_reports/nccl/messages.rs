//! Calls of all reports as messages: which of them are the same message on several ranks, which were measured, and how
//! long their kernels took.

use super::msg::{AGGREGATED, CHECKS, Extract, ITERATIONS, OUT_OF_PLACE, RANKS, WARMUP};
use crate::recipe::of_reports::ReportExtract;
use crate::report::Arguments;
use nsys::nccl::sequence::{CallPosition, Difference, Part, Placement, Plan, assign, plan_of};
use nsys::nccl::{Call, Function, NcclCalls};
use nsys::trace::process_of;
use polars::prelude::PlHashMap;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// The properties that messages share whose times are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key {
    pub function: Function,
    pub communicator: Option<u64>,
    pub ranks: Option<u32>,
    pub bytes: Option<u64>,
    pub placement: Option<Placement>,
}

impl Key {
    pub(super) fn total_bytes(&self) -> Option<u64> {
        self.function.total_bytes(self.bytes?, self.ranks)
    }
}

/// One call on one rank.
pub(super) struct Message<'a> {
    pub call: &'a Call,
    /// Which of the reports.
    pub report: u32,
    /// Which of the keys.
    pub key: u32,
    /// Number of the call among those of its key on its rank, from 0.
    pub instance: u32,
    /// Of a run of nccl-tests.
    pub part: Option<Part>,
    /// Whether its time counts.
    pub counts: bool,
    /// From the first of its kernels to the last, where it has some.
    pub span: Option<(i64, i64)>,
    /// Whether its kernels are no other call's.
    pub alone: bool,
}

impl Message<'_> {
    /// The time that it took by itself.
    pub(super) fn ns(&self) -> Option<u64> {
        let (start, end) = self.span.filter(|_| self.alone)?;
        Some(end.wrapping_sub(start) as u64)
    }
}

pub(super) struct Messages<'a> {
    /// In the order of the reports, and in each by their beginnings.
    pub all: Vec<Message<'a>>,
    pub keys: Vec<Key>,
}

impl Messages<'_> {
    /// Of each key which messages are of it, in their order.
    pub(super) fn by_key(&self) -> OfKeys {
        let mut ends = vec![0u32; self.keys.len()];
        self.all.iter().for_each(|message| ends[message.key as usize] += 1);
        let mut begin = 0;
        for end in &mut ends {
            begin += std::mem::replace(end, begin);
        }
        let mut numbers = vec![0; self.all.len()];
        for (number, message) in (0..).zip(&self.all) {
            let end = &mut ends[message.key as usize];
            numbers[*end as usize] = number;
            *end += 1;
        }
        OfKeys { numbers, ends }
    }
}

/// Numbers of messages, those of one key together.
pub(super) struct OfKeys {
    numbers: Vec<u32>,
    /// Of each key.
    ends: Vec<u32>,
}

impl OfKeys {
    pub(super) fn get(&self, key: usize) -> &[u32] {
        let begin = key.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.numbers[begin as usize..self.ends[key] as usize]
    }
}

pub(super) fn all<'a>(
    reports: &[ReportExtract<&'a Extract>],
    arguments: &Arguments,
    notes: &mut Vec<String>,
) -> Messages<'a> {
    let ranks = u32::try_from(arguments.number(&RANKS)).ok().filter(|ranks| *ranks > 0);
    let plan = plan(arguments);
    let warmup = if plan.is_some() { 0 } else { arguments.number(&WARMUP) };
    let calls = reports.iter().map(|of| of.extract.nccl.calls.len()).sum();
    let (mut all, mut keys) = (Vec::with_capacity(calls), Vec::new());
    let mut of_key: PlHashMap<Key, u32> = PlHashMap::default();
    for (report, of) in reports.iter().enumerate() {
        let nccl: &'a NcclCalls = &of.extract.nccl;
        let places = match (&plan, &of.extract.printed) {
            (Some(plan), _) => Some(places_asked_for(nccl, plan, &of.file, notes)),
            (None, Some(printed)) if !arguments.has(WARMUP.name) => {
                places_printed(nccl, &printed.plans, &of.file, notes)
            }
            (None, _) => None,
        };
        let place = |at: usize| places.as_ref().and_then(|places| places[at]);
        let key = |at: usize, call: &Call| Key {
            function: call.function,
            communicator: call.communicator,
            ranks: call.ranks.or(ranks),
            bytes: call.bytes,
            placement: place(at).and_then(|place| place.placement),
        };
        let found =
            nccl.calls.par_chunks(NEIGHBOURS).zip((0..nccl.calls.len()).into_par_iter().step_by(NEIGHBOURS));
        let found = found
            .map(|(calls, first)| Found::from_keys((first..).zip(calls).map(|(at, call)| key(at, call))));
        let found: Vec<Found> = found.collect();
        let of_calls = found.into_iter().flat_map(|found| {
            let numbers = found.keys.into_iter().map(|key| {
                *of_key.entry(key).or_insert_with(|| {
                    keys.push(key);
                    keys.len() as u32 - 1
                })
            });
            let numbers: Vec<u32> = numbers.collect();
            found.of_call.into_iter().map(move |number| numbers[number as usize])
        });
        let mut instances = Instances::default();
        for ((at, call), number) in nccl.calls.iter().enumerate().zip(of_calls) {
            let place = place(at);
            let instance = instances.next((process_of(call.global_tid), call.rank), number);
            let counts = match (&places, place) {
                (Some(_), place) => matches!(place, Some(CallPosition { part: Part::Timed { .. }, .. })),
                (None, _) => u64::from(instance) >= warmup,
            };
            all.push(Message {
                call,
                report: report as u32,
                key: number,
                instance,
                part: place.map(|place| place.part),
                counts,
                span: None,
                alone: true,
            });
        }
    }
    all.par_iter_mut().for_each(|message: &mut Message| {
        let nccl = &reports[message.report as usize].extract.nccl;
        let kernels = nccl.kernels_of(message.call);
        let begin = kernels.iter().map(|kernel| kernel.start).min();
        message.span = begin.zip(kernels.iter().map(|kernel| kernel.end).max());
        message.alone = nccl.is_alone(message.call);
    });
    Messages { all, keys }
}

/// Calls per parallel task. Tests have few calls, and must cross the borders between tasks.
const NEIGHBOURS: usize = if cfg!(test) { 3 } else { 1 << 14 };

/// The keys of neighbouring calls, each once, and which of them each call has.
#[derive(Default)]
struct Found {
    keys: Vec<Key>,
    of_call: Vec<u32>,
}

impl Found {
    fn from_keys(keys: impl Iterator<Item = Key>) -> Found {
        let mut found = Found::default();
        let mut of_key: PlHashMap<Key, u32> = PlHashMap::default();
        let mut last: Option<(Key, u32)> = None;
        for key in keys {
            let number = match last {
                Some((known, number)) if known == key => number,
                _ => *of_key.entry(key).or_insert_with(|| {
                    found.keys.push(key);
                    found.keys.len() as u32 - 1
                }),
            };
            last = Some((key, number));
            found.of_call.push(number);
        }
        found
    }
}

/// By process and rank in the communicator, as those of one report mostly have one: how many calls of each key there
/// were.
#[derive(Default)]
struct Instances {
    of_rank: PlHashMap<(i64, Option<u32>), usize>,
    counts: Vec<Vec<u32>>,
    last: Option<((i64, Option<u32>), usize)>,
}

impl Instances {
    fn next(&mut self, rank: (i64, Option<u32>), key: u32) -> u32 {
        let at = match self.last {
            Some((known, at)) if known == rank => at,
            _ => *self.of_rank.entry(rank).or_insert_with(|| {
                self.counts.push(Vec::new());
                self.counts.len() - 1
            }),
        };
        self.last = Some((rank, at));
        let (counts, key) = (&mut self.counts[at], key as usize);
        if counts.len() <= key {
            counts.resize(key + 1, 0);
        }
        counts[key] += 1;
        counts[key] - 1
    }
}

/// The arguments of nccl-tests, without the sizes.
fn plan(arguments: &Arguments) -> Option<Plan> {
    let number = |spec| u32::try_from(arguments.number(spec)).unwrap_or(u32::MAX);
    let iterations = number(&ITERATIONS);
    (iterations > 0).then(|| Plan {
        rows: Vec::new(),
        warmup_rows: Vec::new(),
        warmup: number(&WARMUP),
        iterations,
        aggregated: number(&AGGREGATED),
        checks: number(&CHECKS),
        in_place: !arguments.has(OUT_OF_PLACE.name),
        cycles: 1,
    })
}

/// The place of each call of a report in a run of nccl-tests, where its rank's calls match such a run; otherwise a note
/// with the difference.
fn places_asked_for(
    nccl: &NcclCalls,
    plan: &Plan,
    file: &str,
    notes: &mut Vec<String>,
) -> Vec<Option<CallPosition>> {
    let (places, differences) = places(nccl, |sizes| {
        let plan = plan_of(sizes, plan)?;
        assign(sizes, &plan)
    });
    notes.extend(differences.into_iter().map(|difference| {
        format!(
            "{}: calls do not match the given `iterations`, so none counts: {}",
            describe_sequence(file, &difference.0),
            difference.1
        )
    }));
    places
}

/// The same by the output of the run. Where the calls differ from it, the timed ones are unknown.
fn places_printed(
    nccl: &NcclCalls,
    plans: &[Plan],
    file: &str,
    notes: &mut Vec<String>,
) -> Option<Vec<Option<CallPosition>>> {
    let today = plans.first()?;
    let (places, differences) = places(nccl, |sizes| {
        let plan = plans.iter().find(|plan| plan.calls() == sizes.len() as u64).unwrap_or(today);
        // The output lacks the sizes of the warm-up.
        let warmups = plan.warmup_rows.len() * plan.warmup as usize;
        let sizes: Vec<Option<u64>> =
            sizes.iter().enumerate().map(|(at, bytes)| bytes.filter(|_| at >= warmups)).collect();
        assign(&sizes, plan)
    });
    let Some(difference) = differences.first() else { return Some(places) };
    notes.push(format!(
        "{}: calls do not match the output of nccl-tests, so all count, warm-up and checks too: {}",
        describe_sequence(file, &difference.0),
        difference.1
    ));
    None
}

/// The calls of one rank: its process, its communicator and its number there.
type Sequence = (i64, Option<u64>, Option<u32>);

/// The place of each call, by the sizes of its rank's steps; and of which ranks they have none, and why.
fn places(
    nccl: &NcclCalls,
    find: impl Fn(&[Option<u64>]) -> Result<Vec<CallPosition>, Difference>,
) -> (Vec<Option<CallPosition>>, Vec<(Sequence, Difference)>) {
    let mut places = vec![None; nccl.calls.len()];
    let mut sequences: BTreeMap<Sequence, Vec<usize>> = BTreeMap::new();
    for (at, call) in nccl.calls.iter().enumerate() {
        let key = (process_of(call.global_tid), call.communicator, call.rank);
        sequences.entry(key).or_default().push(at);
    }
    let mut differences = Vec::new();
    for (sequence, calls) in sequences {
        let steps = steps(nccl, &calls);
        let sizes: Vec<Option<u64>> = steps.iter().map(|step| nccl.calls[step[0]].bytes).collect();
        match find(&sizes) {
            Ok(found) => {
                for (step, place) in steps.iter().zip(found) {
                    step.iter().for_each(|at| places[*at] = Some(place));
                }
            }
            Err(why) => differences.push((sequence, why)),
        }
    }
    (places, differences)
}

/// Sends and receives of one group are one step of a test that is made of them.
fn steps(nccl: &NcclCalls, calls: &[usize]) -> Vec<Vec<usize>> {
    let mut steps: Vec<Vec<usize>> = Vec::new();
    for at in calls {
        let call = &nccl.calls[*at];
        let is_pair = matches!(call.function, Function::Send | Function::Recv);
        let before = steps.last().and_then(|step| step.first()).map(|first| &nccl.calls[*first]);
        match (before, steps.last_mut()) {
            (Some(first), Some(step)) if is_pair && call.group.is_some() && first.group == call.group => {
                step.push(*at);
            }
            _ => steps.push(vec![*at]),
        }
    }
    steps
}

/// The report, and whose calls in it.
fn describe_sequence(file: &str, (_, communicator, rank): &Sequence) -> String {
    match (communicator, rank) {
        (Some(id), Some(rank)) => format!("{file}, communicator {}, rank {rank}", super::communicator(*id)),
        (Some(id), None) => format!("{file}, communicator {}", super::communicator(*id)),
        (None, _) => file.to_owned(),
    }
}
