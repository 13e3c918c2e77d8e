//! What stands for a key without a baseline and without a published figure: a prediction from those of other keys.

use config::baseline::BaselineKey;
use config::inventory::Instance;
use metric::Limit;
use model::artefact::{BaselineNumbers, PlannedBaseline};
use predict::{Hardware, Key, NoPrediction, Prediction, predict};
use recipes::recipe;

/// The links of a node, as the model names them.
pub fn hardware(instance: &Instance) -> Hardware {
    Hardware {
        instance: instance.name.clone(),
        gpus: instance.gpus,
        nvlink_gb_s: instance.nvlink_gb_s,
        wire_gb_s: instance.node_wire_gb_s(),
    }
}

/// What was found; where that is nothing, what is predicted, provisionally.
pub(crate) fn or_predicted(
    found: PlannedBaseline,
    instance: &Instance,
    metric: &str,
    key: &BaselineKey,
) -> PlannedBaseline {
    let PlannedBaseline::None { key: shown } = found else { return found };
    match prediction(instance, metric, key) {
        Some(Ok(one)) => PlannedBaseline::Provisional(numbers(shown, &one)),
        Some(Err(_)) | None => PlannedBaseline::None { key: shown },
    }
}

/// `None` where the key is not one of those that a model is for.
fn prediction(
    instance: &Instance,
    metric: &str,
    key: &BaselineKey,
) -> Option<Result<Prediction, NoPrediction>> {
    let (op, size_bytes, nodes, ranks) = (key.op?, key.size_bytes?, key.nodes?, key.ranks?);
    let is_busbw = recipe::built_in(metric).and_then(|metric| metric.limit) == Some(Limit::BusBandwidth);
    if !is_busbw || key.training.is_some() || key.kernel.is_some() || key.runner.is_some() {
        return None;
    }
    let chosen = [("algorithm", &key.algorithm), ("protocol", &key.protocol), ("type", &key.dtype)];
    let chosen = chosen.iter().find_map(|(what, name)| Some(format!("{what} {}", name.as_ref()?)));
    let hardware = hardware(instance);
    let key = Key { hardware: &hardware, op, size_bytes, nodes, ranks, chosen: chosen.as_deref() };
    Some(predict(&key))
}

/// The lower end of the interval is the floor: below it a number fails, and nowhere else.
fn numbers(key: String, one: &Prediction) -> BaselineNumbers {
    let digits = |value: f64| (value * 10.0).round() / 10.0;
    BaselineNumbers {
        key,
        n: u32::try_from(one.figures).unwrap_or(u32::MAX),
        median: digits(one.value),
        lower: Some(digits(one.lower)),
        floor: Some(digits(one.lower)),
        predicted: Some(digits(one.half_width())),
        source: format!("predicted; fitted to {} published figures, {}", one.figures, one.reach),
        ..BaselineNumbers::default()
    }
}

#[cfg(test)]
#[path = "predicted_tests.rs"]
mod tests;
