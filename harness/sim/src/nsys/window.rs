//! When the collection of a simulated session begins and ends: by the clock, or with steps of the training in it. What
//! the hook or the watcher reports of it stands in its mark.

use super::{FIRST_KERNEL_S, Rank, Report, ns};
use crate::training::{DRAWS, Doing};
use crate::work::noise_of;
use job::window::{Steps, Trigger};

/// When a session collects.
pub(super) enum Opening {
    Never,
    /// In seconds from the start of nsys.
    Seconds(f64, f64),
    /// In true nanoseconds from there.
    Span(i64, i64),
    Steps(Watched),
}

/// Steps that were watched, and in true nanoseconds from when to when.
pub(super) struct Watched {
    pub steps: Steps,
    pub from: i64,
    pub to: i64,
    /// By step, for who marks each of them in the trace.
    pub spans: Vec<(i64, i64)>,
}

/// From the profiler's start to the first step's, and from the last one's end to its stop.
const MARGIN_NS: i64 = 500;

impl Rank<'_> {
    pub(super) fn opening(&self) -> Opening {
        if let Some((from, to)) = self.collected {
            let origin = ns(self.over.execution.work_from_s) - ns(FIRST_KERNEL_S);
            return Opening::Span(from - origin, to - origin);
        }
        let words = &self.profile.words.every;
        let waits = words.iter().any(|word| word.starts_with("--capture-range="));
        let Some(asked) = self.asked() else {
            // nccl-tests call no profiler.
            let of = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.parse::<f64>().ok());
            let delay = of("--delay=").unwrap_or(0.0);
            return match of("--duration=").map_or(f64::INFINITY, |duration| delay + duration) {
                // A short workload ends before a long delay.
                _ if waits || delay >= self.seconds() => Opening::Never,
                to => Opening::Seconds(delay, to),
            };
        };
        match self.ailing() {
            Some(Report::WindowShut) => Opening::Never,
            _ => self.watched(asked).map_or(Opening::Never, Opening::Steps),
        }
    }

    /// The steps passed to the hook, the watcher or the program itself.
    fn asked(&self) -> Option<Steps> {
        match &self.profile.window {
            Some(trigger) => Some(trigger.steps()),
            None => self.over.execution.training.as_ref()?.watches,
        }
    }

    /// As far as the training goes.
    fn watched(&self, asked: Steps) -> Option<Watched> {
        let execution = &self.over.execution;
        let training = execution.training.as_ref()?;
        let last = asked.last.min(u64::from(training.steps).checked_sub(1)?);
        if asked.first > last {
            return None;
        }
        let lowest = self.rank * training.processes;
        let mut spans = Vec::new();
        let origin = ns(FIRST_KERNEL_S);
        training.run(noise_of(self.cluster, &execution.case, &execution.job, DRAWS), &mut |one| {
            let is_in = (asked.first..=last).contains(&u64::from(one.step));
            if one.rank == lowest && one.doing == Doing::Step && is_in {
                spans.push((origin + one.start, origin + one.end));
            }
        });
        let (from, to) = (spans.first()?.0 - MARGIN_NS, spans.last()?.1 + MARGIN_NS);
        Some(Watched { steps: Steps { first: asked.first, last }, from, to, spans })
    }

    /// The hook marks each of its steps in the trace.
    pub(super) fn is_hooked(&self) -> bool {
        matches!(self.profile.window.as_deref(), Some(Trigger::Hook(_)))
    }

    /// What the hook or the watcher leaves, where there is one that saw a step.
    pub(super) fn mark(&self) -> Option<String> {
        let way = match self.profile.window.as_deref()? {
            Trigger::Hook(_) => "hook",
            Trigger::Watch(_) => "watch",
        };
        let asked = self.asked()?;
        let steps = self.over.execution.training.as_ref()?.steps;
        let number = |number: Option<u64>| number.map_or("null".to_owned(), |number| number.to_string());
        let (opened, closed, error) = match (self.opening(), self.ailing()) {
            (Opening::Steps(watched), _) => {
                let closed = (watched.steps.last == asked.last).then_some(asked.last);
                (Some(watched.steps.first), closed, "null")
            }
            (_, Some(Report::WindowShut)) if way == "hook" => {
                (None, None, "\"RuntimeError: cudaProfilerStart: error 36 of CUDA\"")
            }
            (_, Some(Report::WindowShut)) => (None, None, "\"nsys start failed\""),
            _ => (None, None, "null"),
        };
        Some(format!(
            "{{\"way\":\"{way}\",\"opened\":{},\"closed\":{},\"steps\":{steps},\"error\":{error}}}",
            number(opened),
            number(closed)
        ))
    }
}
