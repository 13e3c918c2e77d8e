//! NVLink throughput, as sampled by GPUs.

use super::samples::{GpuSamples, gpu_of};
use super::{RecipeKind, ReportRecipe};
use crate::result_table::{Column, Quantity, ResultTable};
use nsys::tables::{GENERIC_EVENTS, GPU_METRICS, TARGET_INFO_GPU_METRICS};
use std::collections::BTreeMap;

pub(super) const NVLINK_SUM: ReportRecipe = ReportRecipe {
    name: "nvlink_sum",
    title: "NVLink Summary",
    about: "the throughput of NVLink, by GPU and direction",
    definition: "GPU metrics with `NVLink` in their names; whether a value is percent or bytes depends on the GPU's \
                 generation and is part of the name; all samples have the same weight",
    arguments: &[],
    tables: &[&GPU_METRICS, &TARGET_INFO_GPU_METRICS, &GENERIC_EVENTS],
    kind: RecipeKind::Rows {
        columns: &[&["GPU", "Metric", "Samples", "Avg", "Med", "Min", "Max"]],
        of: |trace, _| {
            let all = GpuSamples::read(trace)?;
            let linked: Vec<bool> =
                all.metrics.iter().map(|name| name.to_lowercase().contains("nvlink")).collect();
            let mut values: BTreeMap<(i64, &str), Vec<f64>> = BTreeMap::new();
            for sample in all.samples.iter().filter(|sample| linked[sample.metric as usize]) {
                let key = (gpu_of(sample.type_id), all.metrics[sample.metric as usize].as_str());
                values.entry(key).or_default().push(sample.value);
            }
            // GPUs sampled without an NVLink metric give an empty table.
            if all.samples.is_empty() {
                return Ok(None);
            }
            values.values_mut().for_each(|values| values.sort_by(f64::total_cmp));
            let rows: Vec<(&(i64, &str), &Vec<f64>)> = values.iter().collect();
            let plain = Quantity::Plain;
            let of = |value: fn(&[f64]) -> f64| rows.iter().map(move |(_, values)| value(values));
            let columns = vec![
                Column::integers("GPU", plain, rows.iter().map(|((gpu, _), _)| *gpu)),
                Column::texts("Metric", rows.iter().map(|((_, name), _)| *name)),
                Column::integers("Samples", plain, rows.iter().map(|(_, values)| values.len() as i64)),
                Column::decimals("Avg", plain, of(|values| values.iter().sum::<f64>() / values.len() as f64)),
                Column::decimals("Med", plain, of(median)),
                Column::decimals("Min", plain, of(|values| values.first().copied().unwrap_or_default())),
                Column::decimals("Max", plain, of(|values| values.last().copied().unwrap_or_default())),
            ];
            Ok(Some(ResultTable::new(NVLINK_SUM.name, NVLINK_SUM.title, columns)))
        },
    },
};

/// Of sorted values, at least one.
fn median(sorted: &[f64]) -> f64 {
    (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0
}
