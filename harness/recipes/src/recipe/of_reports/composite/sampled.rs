//! Samples over time: NICs, switches, GPUs, and events of plugins.

use super::WHOLE;
use crate::recipe::of_reports::generic::{GENERIC_TABLES, generic_values, sources};
use crate::recipe::of_reports::samples::{GpuSamples, NetNames, gpu_of, net_samples};
use crate::recipe::of_reports::{RecipeKind, ReportRecipe};
use crate::result_table::{Column, Quantity, ResultTable};
use nsys::export::ExportError;
use nsys::tables::{
    GENERIC_EVENTS, GPU_METRICS, NET_IB_SWITCH_METRIC, NET_NIC_METRIC, NIC_ID_MAP, TARGET_INFO_GPU_METRICS,
    TARGET_INFO_NETWORK_METRICS, TARGET_INFO_NIC_INFO, TableSpec,
};
use nsys::trace::{Trace, nics};
use std::collections::BTreeMap;

const PLAIN: Quantity = Quantity::Plain;

pub(crate) const NIC: ReportRecipe = ReportRecipe {
    name: "NIC",
    title: "Samples of NICs",
    about: "traffic of NICs, one row per sample",
    definition: WHOLE,
    arguments: &[],
    tables: &[&NET_NIC_METRIC, &NIC_ID_MAP, &TARGET_INFO_NIC_INFO, &TARGET_INFO_NETWORK_METRICS],
    kind: RecipeKind::Rows {
        columns: &[&[
            "start",
            "end",
            "globalId",
            "value",
            "metricsListId",
            "metricsIdx",
            "nicId",
            "GUID",
            "nic_name",
            "metric_name",
        ]],
        of: |trace, _| network(trace, &NET_NIC_METRIC, &NIC),
    },
};

pub(crate) const IB_SWITCH: ReportRecipe = ReportRecipe {
    name: "IB_SWITCH",
    title: "Samples of InfiniBand Switches",
    about: "traffic of switches, one row per sample",
    definition: WHOLE,
    arguments: &[],
    tables: &[&NET_IB_SWITCH_METRIC, &TARGET_INFO_NETWORK_METRICS],
    kind: RecipeKind::Rows {
        columns: &[&["start", "end", "globalId", "value", "metricsListId", "metricsIdx", "metric_name"]],
        of: |trace, _| network(trace, &NET_IB_SWITCH_METRIC, &IB_SWITCH),
    },
};

fn network(
    trace: &Trace,
    spec: &'static TableSpec,
    recipe: &ReportRecipe<'static>,
) -> Result<Option<ResultTable>, ExportError> {
    let mut samples = net_samples(trace, spec)?;
    if samples.is_empty() {
        return Ok(None);
    }
    samples.sort_by_key(|one| (one.start, one.end, one.global_id, one.list, one.index, one.value));
    let names = NetNames::read(trace)?;
    let metric = Column::texts("metric_name", samples.iter().map(|one| names.name(one)));
    let mut columns = vec![
        Column::integers("start", PLAIN, samples.iter().map(|one| one.start)),
        Column::integers("end", PLAIN, samples.iter().map(|one| one.end)),
        Column::integers("globalId", PLAIN, samples.iter().map(|one| one.global_id)),
        Column::integers("value", PLAIN, samples.iter().map(|one| one.value)),
        Column::integers("metricsListId", PLAIN, samples.iter().map(|one| one.list)),
        Column::integers("metricsIdx", PLAIN, samples.iter().map(|one| one.index)),
    ];
    if spec.name == NET_NIC_METRIC.name {
        let nics = nics(trace)?;
        let nic = |id: i64| nics.get(&id);
        columns.push(Column::maybe_integers(
            "nicId",
            PLAIN,
            samples.iter().map(|one| nic(one.global_id).map(|n| n.id)),
        ));
        columns.push(Column::maybe_integers(
            "GUID",
            PLAIN,
            samples.iter().map(|one| nic(one.global_id).map(|n| n.guid)),
        ));
        let named = samples.iter().map(|one| nic(one.global_id).and_then(|nic| nic.name.clone()));
        columns.push(Column::maybe_texts("nic_name", named));
    }
    columns.push(metric);
    Ok(Some(ResultTable::new(recipe.name, recipe.title, columns)))
}

pub(crate) const GPU_METRICS_TABLE: ReportRecipe = ReportRecipe {
    name: "GPU_METRICS",
    title: "Samples of GPUs",
    about: "metrics of GPUs: one row per moment and GPU, one column per metric",
    definition: "a metric that was not sampled at a moment is empty there; older reports hold these as generic events",
    arguments: &[],
    tables: &[&GPU_METRICS, &TARGET_INFO_GPU_METRICS, &GENERIC_EVENTS],
    kind: RecipeKind::Rows {
        columns: &[&["timestamp", "typeId", "gpuId", "{metric}: one column per metric that was sampled"]],
        of: |trace, _| gpu_metrics(trace),
    },
};

fn gpu_metrics(trace: &Trace) -> Result<Option<ResultTable>, ExportError> {
    let all = GpuSamples::read(trace)?;
    let mut moments: BTreeMap<(i64, i64), Vec<Option<f64>>> = BTreeMap::new();
    for sample in &all.samples {
        let row = moments.entry((sample.timestamp, sample.type_id));
        row.or_insert_with(|| vec![None; all.metrics.len()])[sample.metric as usize] = Some(sample.value);
    }
    if moments.is_empty() {
        return Ok(None);
    }
    let mut columns = vec![
        Column::integers("timestamp", PLAIN, moments.keys().map(|(timestamp, _)| *timestamp)),
        Column::integers("typeId", PLAIN, moments.keys().map(|(_, kind)| *kind)),
        Column::integers("gpuId", PLAIN, moments.keys().map(|(_, kind)| gpu_of(*kind))),
    ];
    let mut order: Vec<usize> = (0..all.metrics.len()).collect();
    order.sort_by_key(|metric| &all.metrics[*metric]);
    for metric in order {
        let values = moments.values().map(|row| row[metric]);
        columns.push(Column::maybe_decimals(&all.metrics[metric], PLAIN, values));
    }
    Ok(Some(ResultTable::new("GPU_METRICS", "Samples of GPUs", columns)))
}

pub(crate) const GENERIC: ReportRecipe = ReportRecipe {
    name: "GENERIC",
    title: "Generic Events",
    about: "events that plugins write, such as counters of EFA: one row per value",
    definition: "the name is that of the field; `dataSrc` is the source and the type, with a slash between; values \
                 come from the table of data where there is one, else from each event's JSON",
    arguments: &[],
    tables: GENERIC_TABLES,
    kind: RecipeKind::Rows {
        columns: &[&[
            "timestamp",
            "typeId",
            "genericEventId: the event, by its number",
            "metricName: the field, by name",
            "metricValue: its number",
            "dataSrc: source and type of the event",
            "gpuId",
        ]],
        of: |trace, _| generic(trace),
    },
};

fn generic(trace: &Trace) -> Result<Option<ResultTable>, ExportError> {
    let mut values = generic_values(trace)?;
    if values.is_empty() {
        return Ok(None);
    }
    let sources = sources(trace)?;
    values.sort_by(|a, b| {
        (a.timestamp, a.type_id, a.event, &a.name).cmp(&(b.timestamp, b.type_id, b.event, &b.name))
    });
    let columns = vec![
        Column::integers("timestamp", PLAIN, values.iter().map(|one| one.timestamp)),
        Column::integers("typeId", PLAIN, values.iter().map(|one| one.type_id)),
        Column::maybe_integers("genericEventId", PLAIN, values.iter().map(|one| one.event)),
        Column::texts("metricName", values.iter().map(|one| one.name.clone())),
        Column::maybe_decimals("metricValue", PLAIN, values.iter().map(|one| one.value)),
        Column::maybe_texts("dataSrc", values.iter().map(|one| sources.get(&one.type_id).cloned())),
        Column::integers("gpuId", PLAIN, values.iter().map(|one| gpu_of(one.type_id))),
    ];
    Ok(Some(ResultTable::new(GENERIC.name, GENERIC.title, columns)))
}
