//! A job as the model has it, and the last part of it that a process lives through: how far it is at a moment, and what
//! the counters of its host show then.

use super::MARK;
use super::state::State;
use super::world;
use job::script::{Flows, Script, Start, Step};
use sim::counters;
use sim::execution::{Execution, execution};
use sim::flows::MARK_S;
use sim::over::{How, Over};
use sim::timeline::{NicTimeline, nic_timelines_since};
use sim::work::Work;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::sleep;

pub(crate) struct JobRun {
    pub over: Over,
    /// Since 1970, in nanoseconds: when the part that is lived through begins.
    begin_ns: i64,
    /// In seconds of the job.
    from_s: f64,
}

/// So often what happens is looked at.
const TICK: Duration = Duration::from_millis(25);

impl JobRun {
    pub(crate) fn new(
        state: &State,
        (case, job): (&str, &str),
        nodes: Vec<String>,
        steps: Vec<Step>,
        begin_ns: i64,
    ) -> JobRun {
        // Without a launcher whose own lines the program would print.
        let script = Script { start: Start::Ssh, nodes, steps };
        JobRun::from_execution(state, execution(&state.cluster, &script, case, job), begin_ns)
    }

    /// Of one flow among those of a job: the others have lives of their own.
    pub(crate) fn for_flow(
        state: &State,
        (case, job): (&str, &str),
        nodes: Vec<String>,
        flows: Flows,
        device: usize,
        begin_ns: i64,
    ) -> JobRun {
        let script = Script { start: Start::Ssh, nodes, steps: vec![Step::Flows(flows)] };
        let mut execution = execution(&state.cluster, &script, case, job);
        if let (Work::Flows(flows, _), None) = (&execution.work, execution.active_faults.ending)
            && let Some(flow) = flows.get(device)
        {
            execution.work_to_s = execution.work_from_s + MARK_S + flow.seconds;
            execution.ends_s = None;
        }
        JobRun::from_execution(state, execution, begin_ns)
    }

    fn from_execution(state: &State, execution: Execution, begin_ns: i64) -> JobRun {
        let whole_s = execution.work_to_s - execution.work_from_s;
        let lived_s = (whole_s * state.time_factor).max(state.floor_s(&execution.case)).min(whole_s);
        let from_s = execution.work_to_s - lived_s;
        let run_s = execution.ends_s.unwrap_or(execution.work_to_s).max(execution.work_to_s);
        let start_ns = begin_ns - (from_s * 1e9) as i64;
        let over = Over {
            id: 0,
            folder: String::new(),
            execution: Rc::new(execution),
            start_s: start_ns.rem_euclid(1_000_000_000) as f64 * 1e-9,
            run_s,
            how: How::Exit(0),
            interrupted_s: None,
            reports: Default::default(),
        };
        JobRun { over, begin_ns, from_s }
    }

    pub(crate) fn execution(&self) -> &Execution {
        &self.over.execution
    }

    pub(crate) fn begin_ns(&self) -> i64 {
        self.begin_ns
    }

    /// The whole second in which the job began, as the model counts.
    pub(crate) fn epoch_s(&self) -> f64 {
        let start_ns = self.begin_ns - (self.from_s * 1e9) as i64;
        start_ns.div_euclid(1_000_000_000) as f64
    }

    /// Seconds of the job that have passed, at most until the end of its workload.
    pub(crate) fn at_s(&self) -> f64 {
        let passed_s = (world::now_ns() - self.begin_ns) as f64 * 1e-9;
        (self.from_s + passed_s.max(0.0)).min(self.execution().work_to_s)
    }

    /// A moment of the machine's clock in nanoseconds since the job's start.
    pub(crate) fn in_job_ns(&self, at_ns: i64) -> i64 {
        at_ns - self.begin_ns + (self.from_s * 1e9) as i64
    }

    pub(crate) async fn tick(&self) {
        sleep(TICK).await;
    }

    /// The first line of what is printed.
    pub(crate) fn mark(&self) -> String {
        let execution = self.execution();
        format!(
            "{MARK} printed by a stand-in, which lived through the last {:.2} s of {:.2} s\n",
            execution.work_to_s - self.from_s,
            execution.work_to_s - execution.work_from_s
        )
    }

    /// The counters of a node, or those of one device there.
    pub(crate) fn counters(&self, state: &State, node: &str, device: Option<&str>) -> Counters {
        let Some(at) = self.execution().nodes.iter().position(|name| name == node) else {
            return Counters::default();
        };
        let timelines = nic_timelines_since(&state.cluster, &self.over, at, self.from_s);
        let named = state.cluster.nics.iter().zip(timelines);
        let chosen = named.filter(|(name, _)| device.is_none_or(|device| device == name.as_str()));
        let nics = chosen.map(|(name, execution)| Nic {
            folder: state.counters(node).join(name).join("ports/1/hw_counters"),
            execution,
            files: Vec::new(),
        });
        let mut counters = Counters { nics: nics.collect(), reads: self.execution().reads };
        counters.open(self.execution().work_to_s);
        counters
    }
}

/// Counters that a process moves. Each number is written over the last one at once, so that who reads it meanwhile finds
/// a complete one: a counter only ever grows.
#[derive(Default)]
pub(crate) struct Counters {
    nics: Vec<Nic>,
    reads: bool,
}

struct Nic {
    folder: PathBuf,
    execution: NicTimeline,
    files: Vec<Counter>,
}

struct Counter {
    name: &'static str,
    file: File,
    base: u64,
    shown: u64,
}

impl Counters {
    /// Those that will have grown by the end. A device that is not there has none.
    fn open(&mut self, end_s: f64) {
        for nic in &mut self.nics {
            for (name, _) in
                counters::grown(&nic.execution, end_s, self.reads).iter().filter(|(_, by)| *by > 0)
            {
                let path = nic.folder.join(name);
                let base = std::fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok());
                let file = OpenOptions::new().write(true).open(&path);
                if let (Some(base), Ok(file)) = (base, file) {
                    nic.files.push(Counter { name, file, base, shown: 0 });
                }
            }
        }
    }

    pub(crate) fn show(&mut self, at_s: f64) -> Result<(), String> {
        for nic in &mut self.nics {
            for (name, by) in counters::grown(&nic.execution, at_s, self.reads) {
                let Some(counter) = nic.files.iter_mut().find(|counter| counter.name == name) else {
                    continue;
                };
                if by > counter.shown {
                    let text = format!("{}\n", counter.base + by);
                    let failed = |error| format!("{}/{name}: {error}", nic.folder.display());
                    counter.file.write_all_at(text.as_bytes(), 0).map_err(failed)?;
                    counter.shown = by;
                }
            }
        }
        Ok(())
    }
}
