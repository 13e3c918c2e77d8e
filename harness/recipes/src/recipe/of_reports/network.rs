//! Traffic of NICs and switches.

use super::samples::{NetNames, net_samples};
use super::{RecipeKind, ReportRecipe};
use crate::result_table::{Column, Quantity, ResultTable};
use nsys::export::ExportError;
use nsys::tables::{
    NET_IB_SWITCH_METRIC, NET_NIC_METRIC, NIC_ID_MAP, TARGET_INFO_NETWORK_METRICS, TARGET_INFO_NIC_INFO,
};
use nsys::trace::{Trace, nics};
use std::collections::BTreeMap;

pub(super) const NETWORK_SUM: ReportRecipe = ReportRecipe {
    name: "network_sum",
    title: "Network Devices Summary",
    about: "traffic of NICs and switches, by device and counter",
    definition: "samples are rates over intervals, in the unit that the report states; the total is the sum of rate \
                 times interval and is empty where the unit names no time; the mean is weighted by interval. Every \
                 adapter of a node is in each report of that node: add up only one report per node",
    arguments: &[],
    tables: &[
        &NET_NIC_METRIC,
        &NET_IB_SWITCH_METRIC,
        &NIC_ID_MAP,
        &TARGET_INFO_NIC_INFO,
        &TARGET_INFO_NETWORK_METRICS,
    ],
    kind: RecipeKind::Rows {
        columns: &[&[
            "Device",
            "Metric",
            "Unit",
            "Samples",
            "Total: the sum over the time of the samples",
            "Avg Rate: the mean of the rates",
            "Max Rate: the largest rate",
        ]],
        of: |trace, _| sums(trace),
    },
};

#[derive(Default)]
struct Sum {
    samples: i64,
    /// Rate times nanoseconds, which 128 bits hold exactly.
    weighted: i128,
    ns: i128,
    most: Option<i64>,
}

fn sums(trace: &Trace) -> Result<Option<ResultTable>, ExportError> {
    let (names, nics) = (NetNames::read(trace)?, nics(trace)?);
    let mut sums: BTreeMap<(String, String, String), Sum> = BTreeMap::new();
    for (spec, kind) in [(&NET_NIC_METRIC, "nic"), (&NET_IB_SWITCH_METRIC, "switch")] {
        for sample in net_samples(trace, spec)? {
            let known =
                nics.get(&sample.global_id).filter(|_| kind == "nic").and_then(|nic| nic.name.clone());
            let device = known.unwrap_or_else(|| format!("{kind} {}", sample.global_id));
            let key = (device, names.name(&sample), names.unit(&sample).to_owned());
            let sum = sums.entry(key).or_default();
            let ns = i128::from(sample.end) - i128::from(sample.start);
            sum.samples += 1;
            sum.weighted += i128::from(sample.value) * ns;
            sum.ns += ns;
            sum.most = sum.most.max(Some(sample.value));
        }
    }
    if sums.is_empty() {
        return Ok(None);
    }
    let rows: Vec<(&(String, String, String), &Sum)> = sums.iter().collect();
    let plain = Quantity::Plain;
    let total = |(key, sum): &(&(String, String, String), &Sum)| Some(sum.weighted as f64 / per(&key.2)?);
    let mean = |(_, sum): &(&(String, String, String), &Sum)| {
        (sum.ns > 0).then(|| sum.weighted as f64 / sum.ns as f64)
    };
    let columns = vec![
        Column::texts("Device", rows.iter().map(|(key, _)| key.0.as_str())),
        Column::texts("Metric", rows.iter().map(|(key, _)| key.1.as_str())),
        Column::texts("Unit", rows.iter().map(|(key, _)| key.2.as_str())),
        Column::integers("Samples", plain, rows.iter().map(|(_, sum)| sum.samples)),
        Column::maybe_decimals("Total", plain, rows.iter().map(total)),
        Column::maybe_decimals("Avg Rate", plain, rows.iter().map(mean)),
        Column::maybe_integers("Max Rate", plain, rows.iter().map(|(_, sum)| sum.most)),
    ];
    Ok(Some(ResultTable::new(NETWORK_SUM.name, NETWORK_SUM.title, columns)))
}

/// The nanoseconds that a rate is per.
pub(super) fn per(unit: &str) -> Option<f64> {
    match unit.rsplit_once('/')?.1.trim() {
        "ns" => Some(1.0),
        "us" => Some(1e3),
        "ms" => Some(1e6),
        "s" | "sec" => Some(1e9),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_per_the_time_that_its_unit_names() {
        assert_eq!(per("bytes/ms"), Some(1e6));
        assert_eq!(per("Bytes / s"), Some(1e9));
        for unit in ["", "bytes", "packets/frame"] {
            assert_eq!(per(unit), None, "{unit}");
        }
    }
}
