//! Reads the `profile` table of a case: which ranks nsys watches, what it traces, when, and which reports are kept.
//! Whether the nodes' release of nsys has all that is asked by the plan, which knows the release.

use super::{Placement, Workload};
use crate::profile::{Keep, Profile, Ranks, Window, nsys};
use crate::toml_reader::{Table, Value};
use toml::de::DeValue;

/// What nsys can trace.
const TRACES: [&str; 13] = [
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

pub fn read(value: &Value<'_>, workload: Option<&Workload>, placement: Option<Placement>) -> Option<Profile> {
    match (workload, placement) {
        (Some(Workload::NicPairs(_)), _) => {
            value.mistake("`nic-pairs` runs nothing on a GPU: there is nothing to profile");
            return None;
        }
        (_, Some(Placement::EachGpu)) => {
            value.mistake_with(
                "single-GPU runs side by side are not profiled: nsys has one session for a node's GPUs",
                "profile a case that is placed on `each`",
            );
            return None;
        }
        _ => {}
    }
    let table = value.table()?;
    let ranks = table.get("ranks").map_or(Some(Ranks::OnePerNode), |value| ranks(&value));
    let trace =
        table.get("trace").map_or(Some(vec!["cuda".to_owned(), "nvtx".to_owned()]), |value| trace(&value));
    let window = window(&table);
    if let (Some(Workload::NcclTests(_)), Some(Window::CudaProfilerApi), Some(value)) =
        (workload, &window, table.get("capture"))
    {
        value.mistake_with(
            "nccl-tests never call the profiler's API: the range would never open, and no report be made",
            "write `delay_s` and `duration_s`, or profile the whole of it",
        );
    }
    let efa = table.get("efa").and_then(|value| value.boolean());
    let gpu_metrics = table.get("gpu_metrics").and_then(|value| value.boolean());
    let python_functions = table.get("python_functions").and_then(|value| value.words());
    let extra_value = table.get("extra");
    let extra = extra_value.as_ref().map(|value| value.texts()).unwrap_or_default();
    for switch in &extra {
        let Err(why) = nsys::check_extra(switch) else { continue };
        let item = extra_value.as_ref().and_then(|value| value.list()).unwrap_or_default();
        match (item.iter().find(|item| item.is_text(switch)), &extra_value) {
            (Some(item), _) => item.mistake(why),
            (None, Some(value)) => value.mistake(why),
            (None, None) => {}
        }
    }
    let unchecked = table.get("unchecked").map(|value| value.texts()).unwrap_or_default();
    let keep = table.get("keep").map_or(Some(Keep::OnFailure), |value| keep(&value));
    table.close();
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
    })
}

/// `all`, `one-per-node`, `rank0`, `every 8`, or a list of numbers.
fn ranks(value: &Value<'_>) -> Option<Ranks> {
    if let DeValue::Array(_) = value.raw().get_ref() {
        let list: Vec<u32> = value.list()?.iter().filter_map(|item| item.small(0..=1_000_000)).collect();
        if list.is_empty() {
            value.mistake_with("no rank is profiled", "leave `profile` out, or name ranks");
            return None;
        }
        return Some(Ranks::list(list));
    }
    let text = value.text()?;
    if let Some(n) = text.strip_prefix("every ") {
        let n = n.trim().parse::<u32>().ok().filter(|n| *n > 0);
        if n.is_none() {
            value.mistake(format!("`every` has a number from 1 behind it: `{}`", text.escape_debug()));
        }
        return n.map(Ranks::Every);
    }
    let names = [("all", Ranks::All), ("one-per-node", Ranks::OnePerNode), ("rank0", Ranks::List(vec![0]))];
    let found = names.iter().find(|(name, _)| *name == text).map(|(_, ranks)| ranks.clone());
    if found.is_none() {
        value.unknown(&text, names.iter().map(|(name, _)| *name).chain(["every 8"]));
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

fn window(table: &Table<'_>) -> Option<Window> {
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
            value.mistake(format!("`{name}` and `capture` both say when to collect: one of them"));
        }
    }
    let text = capture.words()?;
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

fn keep(value: &Value<'_>) -> Option<Keep> {
    match value.raw().get_ref() {
        DeValue::Integer(_) => Some(Keep::First(value.small(0..=1_000_000)?)),
        _ => value.one_of(&[("always", Keep::Always), ("on-failure", Keep::OnFailure)]),
    }
}
