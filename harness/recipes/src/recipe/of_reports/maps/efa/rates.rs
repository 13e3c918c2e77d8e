//! Rates of the NICs of a host over time, one by one: for views of a short window, which show no map.

use super::names::COUNTERS;
use super::source::{Mode, Source, from_events};
use super::{Captured, captured, captures_at};
use crate::recipe::of_reports::samples::{NetNames, net_samples};
use nsys::export::ExportError;
use nsys::tables::NET_NIC_METRIC;
use nsys::trace::{Trace, nics};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Begin, end and mean rate.
pub(crate) type Interval = (i64, i64, f64);

/// One counter of one NIC.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NicRates {
    pub device: String,
    pub counter: String,
    pub unit: String,
    /// In the order of time.
    pub samples: Vec<Interval>,
}

/// What the harness's own sampler wrote on a node.
pub(crate) struct CaptureRates {
    pub node: String,
    /// UTC of the time zero of its samples.
    pub utc_epoch_ns: i64,
    pub nics: Vec<NicRates>,
}

/// Captures beside a report's export.
pub(crate) fn capture_files(trace: &Trace) -> Vec<PathBuf> {
    captures_at(trace)
}

/// The rates of a capture; the error is for a person.
pub(crate) fn capture_rates(path: &Path) -> Result<CaptureRates, String> {
    let Captured { node, utc_epoch_ns, source, why_not } = captured(path);
    let source = source.ok_or_else(|| why_not.unwrap_or_else(|| "it has no reading".to_owned()))?;
    let utc_epoch_ns = utc_epoch_ns.ok_or("its begin has no time")?;
    Ok(CaptureRates { node, utc_epoch_ns, nics: nics_of_source(&source) })
}

/// What the report itself has: samples of NICs, else events of the EFA plugin. Times are those of the report.
pub(crate) fn report_rates(trace: &Trace) -> Result<Vec<NicRates>, ExportError> {
    let (names, nics) = (NetNames::read(trace)?, nics(trace)?);
    let mut rates: BTreeMap<(String, String, String), Vec<Interval>> = BTreeMap::new();
    for sample in net_samples(trace, &NET_NIC_METRIC)? {
        let known = nics.get(&sample.global_id).and_then(|nic| nic.name.clone());
        let device = known.unwrap_or_else(|| format!("nic {}", sample.global_id));
        let key = (device, names.name(&sample), names.unit(&sample).to_owned());
        rates.entry(key).or_default().push((sample.start, sample.end, sample.value as f64));
    }
    if rates.is_empty() {
        return Ok(from_events(trace, Mode::PerSecond)?.as_ref().map(nics_of_source).unwrap_or_default());
    }
    let rates = rates.into_iter().map(|((device, counter, unit), mut samples)| {
        samples.sort_by_key(|(start, end, _)| (*start, *end));
        NicRates { device, counter, unit, samples }
    });
    Ok(rates.collect())
}

fn nics_of_source(source: &Source) -> Vec<NicRates> {
    let series = source.series.iter().map(|((device, counter), series)| NicRates {
        device: device.clone(),
        counter: COUNTERS[*counter].name.to_owned(),
        unit: COUNTERS[*counter].unit.to_owned(),
        samples: series.rates.iter().map(|one| (one.start, one.end, one.value)).collect(),
    });
    series.collect()
}
