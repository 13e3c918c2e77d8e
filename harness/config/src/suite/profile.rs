//! Reads the `profile` table of a case: which ranks nsys watches, what it traces, when, and which reports are kept.
//! Whether the nodes' release of nsys has all that is asked by the plan, which knows the release.

use super::{Placement, Workload, form};
use crate::toml_reader::quantity::share_of;
use crate::toml_reader::{Table, Value};
use job::profile::{Keep, Profile, Ranks, Window, nsys};
use job::window::{StepWindow, Steps, Way};
use toml::de::DeValue;

/// What nsys can trace.
pub(super) const TRACES: [&str; 13] = [
    "cuda",
    "nvtx",
    "osrt",
    "cublas",
    "cudnn",
    "cusparse",
    "cusolver",
    "mpi",
    "ucx",
    "openacc",
    "openmp",
    "python-gil",
    "nvvideo",
];

/// What stands for a case whose `evidence` lists nsys, and that has no table.
pub(super) fn usual(
    value: &Value<'_>,
    workload: Option<&Workload>,
    placement: Option<Placement>,
) -> Option<Profile> {
    if is_refused(value, workload, placement) {
        return None;
    }
    Some(Profile {
        ranks: Ranks::OnePerNode,
        trace: USUAL_TRACE.map(str::to_owned).to_vec(),
        window: Window::Whole,
        efa: true,
        gpu_metrics: false,
        python_functions: None,
        extra: Vec::new(),
        unchecked: Vec::new(),
        keep: Keep::OnFailure,
        unprofiled_control_run: None,
    })
}

const USUAL_TRACE: [&str; 2] = ["cuda", "nvtx"];

/// Whether there is nothing that nsys could profile: an error at the value.
fn is_refused(value: &Value<'_>, workload: Option<&Workload>, placement: Option<Placement>) -> bool {
    if let Some(why) = workload.and_then(|workload| workload.refuse_profile()) {
        value.diagnostic(why);
        return true;
    }
    if placement == Some(Placement::EachGpu) {
        value.diagnostic_with(
            "single-GPU runs side by side are not profiled: nsys has one session for a node's GPUs",
            "profile a case that is placed on `each`",
        );
        return true;
    }
    false
}

pub(super) fn read(
    value: &Value<'_>,
    workload: Option<&Workload>,
    placement: Option<Placement>,
) -> Option<Profile> {
    if is_refused(value, workload, placement) {
        return None;
    }
    let table = value.table()?;
    let ranks = table.get("ranks").map_or(Some(Ranks::OnePerNode), |value| ranks(&value));
    let usual_trace = || Some(USUAL_TRACE.map(str::to_owned).to_vec());
    let trace = table.get("trace").map_or_else(usual_trace, |value| trace(&value));
    let window = window(&table);
    let never = workload.zip(window.as_ref()).and_then(|(workload, window)| workload.refuse_window(window));
    if let Some((key, (why, instead))) = never
        && let Some(value) = table.get(key)
    {
        value.diagnostic_with(why, instead);
    }
    let efa = table.get("efa").and_then(|value| value.boolean());
    let gpu_metrics = table.get("gpu_metrics").and_then(|value| value.boolean());
    let python_functions = table.get("python_functions").and_then(|value| value.non_empty_text());
    let extra_value = table.get("extra");
    let extra = extra_value.as_ref().map(|value| value.texts()).unwrap_or_default();
    for switch in &extra {
        let Err(why) = nsys::check_extra(switch) else { continue };
        let item = extra_value.as_ref().and_then(|value| value.list()).unwrap_or_default();
        match (item.iter().find(|item| item.is_text(switch)), &extra_value) {
            (Some(item), _) => item.diagnostic(why),
            (None, Some(value)) => value.diagnostic(why),
            (None, None) => {}
        }
    }
    let unchecked = table.get("unchecked").map(|value| value.texts()).unwrap_or_default();
    let keep = table.get("keep").map_or(Some(Keep::OnFailure), |value| keep(&value));
    let unprofiled_control_run = unprofiled_control_run(&table);
    table.close(form::profile);
    Some(Profile {
        ranks: ranks?,
        trace: trace?,
        window: window?,
        efa: efa.unwrap_or(true),
        gpu_metrics: gpu_metrics.unwrap_or(false),
        python_functions,
        extra,
        unchecked,
        keep: keep?,
        unprofiled_control_run: unprofiled_control_run?,
    })
}

/// Beyond this fraction a profiled rate is no longer that of the program.
pub(super) const COSTS_AT_MOST: f64 = 0.03;

/// Whether there is to be one, and what the profiler may cost.
fn unprofiled_control_run(table: &Table<'_>) -> Option<Option<f64>> {
    let control_run = table.get("unprofiled_control_run").map_or(Some(false), |value| value.boolean())?;
    let Some(value) = table.get("costs_at_most") else { return Some(control_run.then_some(COSTS_AT_MOST)) };
    if !control_run {
        value.diagnostic_with(
            "`costs_at_most` needs a run without the profiler",
            "add `unprofiled_control_run = true`",
        );
        return None;
    }
    share_of(&value).map(Some)
}

/// A word for ranks, and what it stands for.
type NamedRanks = (&'static str, fn() -> Ranks);

pub(super) const RANKS: [NamedRanks; 3] =
    [("all", || Ranks::All), ("one-per-node", || Ranks::OnePerNode), ("rank0", || Ranks::List(vec![0]))];

/// `all`, `one-per-node`, `rank0`, `every 8`, or a list of numbers.
fn ranks(value: &Value<'_>) -> Option<Ranks> {
    if let DeValue::Array(_) = value.raw().get_ref() {
        let list: Vec<u32> = value.list()?.iter().filter_map(|item| item.small(0..=1_000_000)).collect();
        if list.is_empty() {
            value.diagnostic_with("no rank is profiled", "remove `profile`, or name ranks");
            return None;
        }
        return Some(Ranks::list(list));
    }
    let text = value.text()?;
    if let Some(n) = text.strip_prefix("every ") {
        let n = n.trim().parse::<u32>().ok().filter(|n| *n > 0);
        if n.is_none() {
            value.diagnostic(format!("`every` needs a number of at least 1: `{}`", text.escape_debug()));
        }
        return n.map(Ranks::Every);
    }
    let found = RANKS.iter().find(|(name, _)| *name == text).map(|(_, ranks)| ranks());
    if found.is_none() {
        value.unknown(&text, RANKS.iter().map(|(name, _)| *name).chain(["every 8"]));
    }
    found
}

fn trace(value: &Value<'_>) -> Option<Vec<String>> {
    let traces = value.texts();
    for item in value.list()? {
        let Some(text) = item.text() else { continue };
        if !TRACES.contains(&text.as_str()) {
            item.unknown(&text, TRACES.iter().copied());
        }
    }
    Some(traces)
}

/// The keys that say how a window of steps is watched, beside the one that says which.
const OF_STEPS: [&str; 5] = ["compat", "way", "options", "step_line", "first_step"];

fn steps(table: &Table<'_>, value: &Value<'_>) -> Option<Window> {
    if let Some(capture) = table.get("capture") {
        capture.diagnostic("`steps` and `capture` exclude each other");
    }
    let read = value.text().and_then(|text| value.parsed(Steps::try_from(text)));
    let compat = table.get("compat").and_then(|value| value.boolean()).unwrap_or(false);
    let steps = match read {
        Some(steps) if compat => steps.without_last().or_else(|| {
            value.diagnostic("with `compat` a window ends where its last step begins, so this one is empty");
            None
        }),
        read => read,
    };
    let ways = Way::ALL.map(|way| (way.name(), way));
    let way_value = table.get("way");
    let way = way_value.as_ref().map(|value| value.one_of(&ways));
    let options = table.get("options").map(|value| value.texts()).unwrap_or_default();
    let line = table.get("step_line").map(|value| step_line(&value));
    let counts_from = table.get("first_step").map_or(Some(0), |value| value.small(0..=1_000_000));
    let seconds = |name: &'static str, least: u64| table.get(name).map(|value| value.whole(least..=86_400));
    let (delay_s, duration_s) = (seconds("delay_s", 0), seconds("duration_s", 1));
    Some(Window::Steps(StepWindow {
        steps: steps?,
        way: match way {
            Some(way) => Some(way?),
            None => None,
        },
        options,
        line: match line {
            Some(line) => Some(line?),
            None => None,
        },
        counts_from: counts_from?,
        delay_s: delay_s.flatten(),
        duration_s: duration_s.flatten(),
    }))
}

/// Bash on the nodes checks the expression itself; here only that it has a group and is one line.
fn step_line(value: &Value<'_>) -> Option<String> {
    let text = value.non_empty_text()?;
    let is_group = text.find('(').is_some_and(|at| text[at..].contains(')'));
    if !is_group || text.chars().any(char::is_control) {
        value.diagnostic_with(
            format!(
                "`step_line` must be a regular expression whose first group is the step number: `{}`",
                text.escape_debug()
            ),
            "for example `\"iteration +([0-9]+)/\"`",
        );
        return None;
    }
    Some(text)
}

fn window(table: &Table<'_>) -> Option<Window> {
    if let Some(value) = table.get("steps") {
        return steps(table, &value);
    }
    for name in OF_STEPS {
        if let Some(value) = table.get(name) {
            value.diagnostic(format!("`{name}` needs `steps`"));
        }
    }
    let delay = table.get("delay_s");
    let duration = table.get("duration_s");
    let Some(capture) = table.get("capture") else {
        let delay_s = delay.as_ref().map_or(Some(0), |value| value.whole(0..=86_400));
        let duration_s = duration.as_ref().map(|value| value.whole(1..=86_400));
        return match (delay_s?, duration_s) {
            (0, None) => Some(Window::Whole),
            (delay_s, None) => Some(Window::Seconds { delay_s, duration_s: None }),
            (delay_s, Some(duration_s)) => Some(Window::Seconds { delay_s, duration_s: Some(duration_s?) }),
        };
    };
    for (value, name) in [(&delay, "delay_s"), (&duration, "duration_s")] {
        if let Some(value) = value {
            value.diagnostic(format!("`{name}` and `capture` exclude each other"));
        }
    }
    let text = capture.non_empty_text()?;
    if text == "cudaProfilerApi" {
        return Some(Window::CudaProfilerApi);
    }
    match text.strip_prefix("nvtx:") {
        Some(range) if !range.is_empty() && !range.chars().any(char::is_control) => {
            Some(Window::NvtxRange(range.to_owned()))
        }
        _ => {
            let near = ["cudaProfilerApi", "nvtx:RANGE", "nvtx:RANGE@DOMAIN"];
            capture.unknown(&text, near.into_iter());
            None
        }
    }
}

pub(super) const KEEPS: [(&str, Keep); 2] = [("always", Keep::Always), ("on-failure", Keep::OnFailure)];

fn keep(value: &Value<'_>) -> Option<Keep> {
    match value.raw().get_ref() {
        DeValue::Integer(_) => Some(Keep::First(value.small(0..=1_000_000)?)),
        _ => value.one_of(&KEEPS),
    }
}
