//! Samples of NICs, switches and GPUs as rows with names: what several recipes read.

use nsys::export::ExportError;
use nsys::tables::{
    GENERIC_EVENTS, GPU_METRICS, TARGET_INFO_GPU_METRICS, TARGET_INFO_NETWORK_METRICS, TableSpec,
};
use nsys::trace::Trace;
use std::collections::{BTreeSet, HashMap};

/// One interval of one counter of one device.
pub(super) struct NetSample {
    pub start: i64,
    pub end: i64,
    pub global_id: i64,
    pub list: i64,
    pub index: i64,
    pub value: i64,
    /// The port of the device, where it is recorded.
    pub port: Option<i64>,
}

pub(super) fn net_samples(trace: &Trace, spec: &'static TableSpec) -> Result<Vec<NetSample>, ExportError> {
    let columns = ["start", "end", "globalId", "metricsListId", "metricsIdx", "value", "portId"];
    let Some(rows) = trace.rows(spec, &columns)? else { return Ok(Vec::new()) };
    let (starts, ends, ids) = (rows.ints("start")?, rows.ints("end")?, rows.ints("globalId")?);
    let (lists, indexes, values) =
        (rows.ints("metricsListId")?, rows.ints("metricsIdx")?, rows.ints("value")?);
    let ports = rows.maybe_ints("portId")?;
    // Counts what is left out, for the note.
    trace.durations("samples of networks", starts, ends);
    let kept = (0..rows.len()).filter(|row| ends[*row] >= starts[*row]);
    let samples = kept.map(|row| NetSample {
        start: starts[row],
        end: ends[row],
        global_id: ids[row],
        list: lists[row],
        index: indexes[row],
        value: values[row],
        port: ports.get(row),
    });
    Ok(samples.collect())
}

/// Names and units of what is sampled on networks.
pub(super) struct NetNames(HashMap<(i64, i64), (String, String)>);

impl NetNames {
    pub(super) fn read(trace: &Trace) -> Result<NetNames, ExportError> {
        let mut names = HashMap::new();
        if let Some(rows) = trace.export().table(&TARGET_INFO_NETWORK_METRICS)? {
            let (lists, indexes) = (rows.ints("metricsListId")?, rows.ints("metricsIdx")?);
            let (texts, units) = (rows.texts("name")?, rows.texts("unit")?);
            for row in 0..rows.len() {
                let of = |texts: Option<&str>| texts.unwrap_or_default().to_owned();
                names.insert((lists[row], indexes[row]), (of(texts.get(row)), of(units.get(row))));
            }
        }
        Ok(NetNames(names))
    }

    pub(super) fn name(&self, sample: &NetSample) -> String {
        match self.0.get(&(sample.list, sample.index)) {
            Some((name, _)) => name.clone(),
            None => format!("metric {}/{}", sample.list, sample.index),
        }
    }

    pub(super) fn unit(&self, sample: &NetSample) -> &str {
        self.0.get(&(sample.list, sample.index)).map(|(_, unit)| unit.as_str()).unwrap_or_default()
    }
}

/// One value of one metric of one GPU.
pub(super) struct GpuSample {
    pub timestamp: i64,
    pub type_id: i64,
    pub metric: u32,
    pub value: f64,
}

#[derive(Default)]
pub(super) struct GpuSamples {
    pub samples: Vec<GpuSample>,
    pub metrics: Vec<String>,
    /// Names of other sampled metrics that were not requested.
    pub others: BTreeSet<String>,
}

/// The GPU that a sample's type names.
pub(super) fn gpu_of(type_id: i64) -> i64 {
    type_id & 0xff
}

impl GpuSamples {
    /// Nothing for one that is not wanted.
    fn metric(
        &mut self,
        known: &mut HashMap<String, Option<u32>>,
        wanted: &dyn Fn(&str) -> bool,
        name: String,
    ) -> Option<u32> {
        if let Some(metric) = known.get(&name) {
            return *metric;
        }
        let metric = wanted(&name).then(|| {
            self.metrics.push(name.clone());
            self.metrics.len() as u32 - 1
        });
        if metric.is_none() {
            self.others.insert(name.clone());
        }
        known.insert(name, metric);
        metric
    }

    pub(super) fn read(trace: &Trace) -> Result<GpuSamples, ExportError> {
        GpuSamples::read_those(trace, &|_| true)
    }

    /// Those of the metrics that are wanted; of the others, which may be many times as many, nothing but their names is
    /// kept. From their own table; in older exports from generic events, whose data is JSON of texts.
    pub(super) fn read_those(
        trace: &Trace,
        wanted: &dyn Fn(&str) -> bool,
    ) -> Result<GpuSamples, ExportError> {
        let mut all = GpuSamples::default();
        let mut known = HashMap::new();
        if let Some(rows) = trace.rows(&GPU_METRICS, &["timestamp", "typeId", "metricId", "value"])? {
            let mut names: HashMap<(i64, i64), String> = HashMap::new();
            if let Some(info) = trace.export().table(&TARGET_INFO_GPU_METRICS)? {
                let keys = info.ints("typeId")?.iter().zip(info.ints("metricId")?);
                for ((kind, id), name) in keys.zip(info.texts("metricName")?.iter()) {
                    names.insert((*kind, *id), name.unwrap_or_default().to_owned());
                }
            }
            let (times, types) = (rows.ints("timestamp")?, rows.ints("typeId")?);
            let (ids, values) = (rows.ints("metricId")?, rows.ints("value")?);
            let mut of_key: HashMap<(i64, i64), Option<u32>> = HashMap::new();
            for row in 0..rows.len() {
                let key = (types[row], ids[row]);
                let metric = match of_key.get(&key) {
                    Some(metric) => *metric,
                    None => {
                        let name = names.get(&key).cloned().unwrap_or_else(|| format!("metric {}", key.1));
                        let metric = all.metric(&mut known, wanted, name);
                        of_key.insert(key, metric);
                        metric
                    }
                };
                let Some(metric) = metric else { continue };
                let (timestamp, type_id, value) = (times[row], types[row], values[row] as f64);
                all.samples.push(GpuSample { timestamp, type_id, metric, value });
            }
            return Ok(all);
        }
        let Some(rows) = trace.rows(&GENERIC_EVENTS, &["timestamp", "typeId", "data"])? else {
            return Ok(all);
        };
        let (times, types, data) = (rows.ints("timestamp")?, rows.ints("typeId")?, rows.texts("data")?);
        let mut odd = 0;
        for row in 0..rows.len() {
            let Some(text) = data.get(row) else { continue };
            // Events of other plugins than the GPUs' are not objects of numbers.
            let Ok(serde_json::Value::Object(values)) = serde_json::from_str(text) else {
                odd += 1;
                continue;
            };
            for (name, value) in values {
                let number = match &value {
                    serde_json::Value::String(text) => text.trim().parse().ok(),
                    value => value.as_f64(),
                };
                if let Some(value) = number.filter(|value: &f64| value.is_finite())
                    && let Some(metric) = all.metric(&mut known, wanted, name)
                {
                    all.samples.push(GpuSample { timestamp: times[row], type_id: types[row], metric, value });
                }
            }
        }
        if odd > 0 {
            trace.note(format!("generic events skipped, not JSON objects: {odd}"));
        }
        Ok(all)
    }
}
