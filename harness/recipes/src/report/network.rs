//! Where NICs had data to send and could not.

use super::{ArgumentSpec, ReportSpec, Takes};
use crate::report::argument;
use crate::result_table::{Column, Quantity, ResultTable};
use nsys::export::ExportError;
use nsys::tables::{NET_NIC_METRIC, NIC_ID_MAP, TARGET_INFO_NETWORK_METRICS, TARGET_INFO_NIC_INFO};
use nsys::trace::{Trace, nics};
use std::collections::HashSet;

const THRESHOLD: ArgumentSpec = argument!(
    "ticks_threshold",
    "intervals with more ticks per millisecond than this are listed",
    Takes::Number(10_000)
);

pub(super) const NETWORK_CONGESTION: ReportSpec = ReportSpec {
    name: "network_congestion",
    title: "Network Devices Congestion",
    about: "intervals in which a NIC waited to send for more ticks per millisecond than the threshold",
    data: "network device",
    arguments: &[THRESHOLD],
    tables: &[&NET_NIC_METRIC, &NIC_ID_MAP, &TARGET_INFO_NIC_INFO, &TARGET_INFO_NETWORK_METRICS],
    run: |trace, arguments| {
        let threshold = arguments.number(&THRESHOLD);
        let columns = ["start", "end", "globalId", "metricsListId", "metricsIdx", "value"];
        let Some(rows) = trace.rows(&NET_NIC_METRIC, &columns)? else { return Ok(None) };
        let waits = waits(trace)?;
        if waits.is_empty() {
            return Ok(None);
        }
        let (starts, ends, values) = (rows.ints("start")?, rows.ints("end")?, rows.ints("value")?);
        let (lists, indexes) = (rows.ints("metricsListId")?, rows.ints("metricsIdx")?);
        trace.durations("samples of NICs", starts, ends);
        let devices = rows.ints("globalId")?;
        let nics = nics(trace)?;
        let mut found: Vec<usize> = (0..rows.len())
            .filter(|row| {
                waits.contains(&(lists[*row], indexes[*row]))
                    && ends[*row] >= starts[*row]
                    && u64::try_from(values[*row]).is_ok_and(|value| value > threshold)
            })
            .collect();
        found.sort_by_key(|row| (starts[*row], ends[*row], devices[*row], *row));
        let nic = |row: &usize| nics.get(&devices[*row]);
        let (plain, ns) = (Quantity::Plain, Quantity::BareNanoseconds);
        let columns = vec![
            Column::integers("Start", ns, found.iter().map(|row| starts[*row])),
            Column::integers("End", ns, found.iter().map(|row| ends[*row])),
            Column::integers("Duration", ns, found.iter().map(|row| ends[*row].saturating_sub(starts[*row]))),
            Column::integers("Send wait rate", plain, found.iter().map(|row| values[*row])),
            Column::maybe_texts(
                "GUID",
                found.iter().map(|row| nic(row).map(|nic| format!("{:#x}", nic.guid))),
            ),
            Column::maybe_texts("Name", found.iter().map(|row| nic(row).and_then(|nic| nic.name.clone()))),
        ];
        Ok(Some(ResultTable::new("network_congestion", "Network Devices Congestion", columns)))
    },
};

/// Which of the sampled things are waits. Their rate is in ticks per millisecond; another unit is noted.
fn waits(trace: &Trace) -> Result<HashSet<(i64, i64)>, ExportError> {
    let mut waits = HashSet::new();
    let Some(rows) = trace.export().table(&TARGET_INFO_NETWORK_METRICS)? else { return Ok(waits) };
    let (lists, indexes) = (rows.ints("metricsListId")?, rows.ints("metricsIdx")?);
    let (names, units) = (rows.texts("name")?, rows.texts("unit")?);
    for row in 0..rows.len() {
        if names.get(row).is_some_and(|name| name.to_lowercase().contains("send wait")) {
            waits.insert((lists[row], indexes[row]));
            let unit = units.get(row).unwrap_or_default();
            if !unit.replace(' ', "").to_lowercase().contains("ticks/ms") {
                trace.note(format!("send waits are in `{unit}`, expected ticks/ms"));
            }
        }
    }
    Ok(waits)
}
