//! The stage `soak`: hours of load on each node, each window a run of its own that is judged when it ends. A window that is
//! over is a checkpoint: a delivery that is resumed goes on with the first that is not.

use super::acceptance_session::{AcceptanceSession, Sets};
use super::delivery::{Stopped, machinery};
use super::messages;
use super::soak_windows::window_suite;
use base::nodeset;
use config::suite::{Soak, Suite};
use logs::node_tools::gpu_state::{self, GpuStates};
use model::artefact::acceptance::SoakRecord;
use model::artefact::{CollectedFile, FileKind, Status};
use recipes::recipe::onset::{Onset, onset, trailing};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::sync::Arc;
use store::Stored;
use verdict::accept::node_status::NodeStatus;
use verdict::accept::schedule::{RunResult, line};
use verdict::accept::soak::alike;
use verdict::accept::soak::growth::{FALSE_ALARM, Windows};
use verdict::accept::stages::Stage;

/// A window of the soak, of so many.
#[derive(Clone, Copy)]
struct Window {
    /// From 1.
    at: u32,
    soak: Soak,
}

impl AcceptanceSession {
    pub(super) fn soak(&mut self) -> Result<(), Stopped> {
        let (Some(suite), Some(soak)) = (self.suites.get(&Stage::Soak).cloned(), self.soak_of(Stage::Soak))
        else {
            return Ok(());
        };
        let windows = soak.windows();
        let mut followed = Windows::default();
        let mut record = SoakRecord {
            planned_s: u64::from(soak.total_s),
            window_s: u64::from(soak.window_s),
            windows,
            judged: 0,
            completed: String::new(),
            fewest_for_growth: 0,
            false_alarm: FALSE_ALARM,
        };
        for at in 1..=windows {
            let before = self.schedule.candidates.len();
            if before == 0 {
                break;
            }
            let window = Window { at, soak };
            let of_window = window_suite(&suite, soak, at - 1);
            let over = self.window(window, &of_window, &mut followed);
            if over.is_ok() {
                record.judged = at;
                record.fewest_for_growth = followed.fewest(windows);
            }
            if at == windows && over.is_ok() {
                record.completed = nodeset::fold(&self.schedule.candidates);
            }
            self.soak = Some(record.clone());
            over?;
            let left = before - self.schedule.candidates.len();
            let soaked_s = at * soak.window_s;
            self.output.print(messages::window_over(at, windows, soaked_s, &self.schedule, left));
        }
        if record.judged < record.fewest_for_growth {
            self.notes.push(messages::too_short_for_growth(record.judged, record.fewest_for_growth));
        }
        let unread = followed.unread(&self.schedule.candidates);
        self.notes.extend(unread.iter().map(|(metric, nodes)| messages::growth_unread(metric, nodes)));
        Ok(())
    }

    /// Runs and judges one window; what an infrastructure failure kept from being measured is run a second time.
    fn window(&mut self, window: Window, suite: &Suite, followed: &mut Windows) -> Result<(), Stopped> {
        let Window { at, soak } = window;
        let about = messages::window(at, soak.windows(), (at - 1) * soak.window_s, at * soak.window_s);
        let nodes = self.schedule.candidates.clone();
        let mut result = self.run(Stage::Soak, &about, suite, &nodes, Sets::new())?;
        // After a failure that all jobs share, the others were not begun.
        let is_common = self.delivery.made.last().is_some_and(|made| made.summary.common_failure.is_some());
        let is_broken = |of: &NodeStatus| {
            !of.is_red() && of.bad.iter().any(|bad| is_common || bad.status == Status::Error)
        };
        let statuses = std::mem::take(&mut result.node_statuses);
        let (broken, judged): (BTreeMap<_, _>, BTreeMap<_, _>) =
            statuses.into_iter().partition(|(_, of)| is_broken(of));
        result.node_statuses = judged;
        self.follow(at, followed, &|node| !broken.contains_key(node))?;
        self.settle_window(window, result)?;
        self.drop_numbers();
        if !broken.is_empty() {
            let mut nodes: Vec<String> = broken.into_keys().collect();
            nodeset::sort(&mut nodes);
            let about = messages::retry_of_window(&about);
            let result = self.run(Stage::Soak, &about, suite, &nodes, Sets::new())?;
            self.follow(at, followed, &|_| true)?;
            self.settle_window(window, result)?;
            self.drop_numbers();
        }
        self.settle_growth(window, followed);
        Ok(())
    }

    /// Adds the numbers of the last run that are followed over windows.
    fn follow(
        &self,
        window: u32,
        followed: &mut Windows,
        is_measured: &dyn Fn(&str) -> bool,
    ) -> Result<(), Stopped> {
        let made = self.delivery.made.last().ok_or_else(|| machinery("no run was made"))?;
        for case in &made.stored.plan.cases {
            let metrics = made.stored.metrics(&case.name).map_err(machinery)?;
            metrics.iter().for_each(|metrics| followed.add(window, metrics.rows(), is_measured));
        }
        Ok(())
    }

    /// They are counted, and lie in the run's folder: hundreds of windows are not held at once.
    fn drop_numbers(&mut self) {
        if let Some(made) = self.delivery.made.last_mut() {
            for case in &mut Arc::make_mut(&mut made.stored.plan).cases {
                (case.assertions, case.jobs) = (Vec::new(), Vec::new());
            }
            made.verdicts.iter_mut().for_each(|case| case.verdicts = Vec::new());
            made.summary.cases = Vec::new();
        }
    }

    /// Who failed leaves, with the moment from which on it shows.
    fn settle_window(&mut self, window: Window, mut result: RunResult) -> Result<(), Stopped> {
        for (node, why) in alike::set_apart(&mut result) {
            self.schedule.leave_open(Stage::Soak, &node, &why);
        }
        let known = self.schedule.rejected.len();
        let open = self.schedule.first(Stage::Soak, &result);
        for one in self.schedule.settle_alone(Stage::Soak, open, false) {
            self.schedule.leave_open(Stage::Soak, &one.node, &one.node_status.why());
        }
        let new: Vec<String> = self.schedule.rejected[known..].iter().map(|one| one.node.clone()).collect();
        for (at, node) in new.iter().enumerate() {
            let from = match result.node_statuses.get(node) {
                Some(status) => self.began(node, status)?,
                None => None,
            };
            let Some(rejected) = self.schedule.rejected.get_mut(known + at) else { continue };
            let end_s = f64::from(window.at * window.soak.window_s);
            rejected.soaked_s = Some(from.unwrap_or(end_s) as u64);
            for culprit in &mut rejected.culprits {
                culprit.evidence =
                    messages::soaked(&culprit.evidence, from, window.at, window.soak.windows());
            }
        }
        Ok(())
    }

    /// When the first of the failures of a node began, by the readings of the last run and of those before it.
    fn began(&self, node: &str, status: &NodeStatus) -> Result<Option<f64>, Stopped> {
        let made = self.delivery.made.iter().rev().filter(|made| made.stage == Stage::Soak);
        let runs: Vec<&Stored> = made.map(|made| &made.stored).collect();
        let Some(last) = runs.first() else { return Ok(None) };
        let Some(states) = states(last, node)? else { return Ok(None) };
        let failed = status.bad.iter().filter(|bad| bad.status == Status::Fail);
        let mut first: Option<f64> = None;
        for bad in failed {
            let part = bad.part.as_deref();
            let Some(mut began) = onset(&states, &bad.metric, part) else { continue };
            for before in &runs[1..] {
                if !began.from_start {
                    break;
                }
                let earlier: Option<Onset> = match self::states(before, node)? {
                    Some(states) => trailing(&states, &bad.metric, part),
                    // A retry of other nodes.
                    None => continue,
                };
                match earlier {
                    Some(earlier) => began = earlier,
                    None => break,
                }
            }
            first = Some(first.map_or(began.soaked_s, |first| first.min(began.soaked_s)));
        }
        Ok(first)
    }

    /// What grows over windows, below the limits of each.
    fn settle_growth(&mut self, window: Window, followed: &Windows) {
        let windows = window.soak.windows();
        let run = self.delivery.made.last().map(|made| made.summary.run_id.clone());
        for growth in followed.grown(&self.schedule.candidates, windows) {
            if !self.schedule.is_in(&growth.node) {
                continue;
            }
            if !growth.is_own {
                self.schedule.leave_open(Stage::Soak, &growth.node, &messages::grows_alike(&growth));
                continue;
            }
            let evidence = messages::soaked(&growth.evidence, None, window.at, windows);
            let lines = [line(growth.code, &growth.node, &growth.part, &evidence)];
            let status = NodeStatus::default();
            self.schedule.reject(Stage::Soak, &growth.node, &lines, &status, run.as_deref());
            if let Some(rejected) = self.schedule.rejected.last_mut() {
                rejected.soaked_s = Some(u64::from(window.at * window.soak.window_s));
            }
        }
    }
}

/// What was read on a node in a run of the soak; nothing where it left no such file.
fn states(stored: &Stored, node: &str) -> Result<Option<GpuStates>, Stopped> {
    for case in &stored.plan.cases {
        let Some(collected) = stored.collected(&case.name).map_err(machinery)? else { continue };
        let mut files = collected.files.iter();
        let is_of_node =
            |file: &&CollectedFile| file.kind == FileKind::GpuState && file.node.as_deref() == Some(node);
        let Some(file) = files.find(is_of_node) else { continue };
        let opened = File::open(stored.case(&case.name).join(&file.path)).map_err(machinery)?;
        let read = gpu_state::read(BufReader::new(opened)).map_err(machinery)?;
        return Ok(read.ok());
    }
    Ok(None)
}
