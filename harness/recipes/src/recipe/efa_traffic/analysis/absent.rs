//! Counters that a node does not have at all, since its EFA driver is older than they are. One that is there on some of a
//! node's devices and not on others is no such counter: that is a gap in what was read.

use logs::efa_counters::{Capture, Reading};

/// The release of the EFA driver that brought them.
pub(crate) const SINCE_DRIVER: &str = "2.17";

/// The counters that came with it, of those that numbers are made of.
const NAMES: [&str; 3] = ["retrans_bytes", "retrans_pkts", "retrans_timeout_events"];

/// Those that no reading of any of these devices has, and that the sampler itself reported as missing on each of them,
/// while it read `tx_bytes` of each.
pub(super) fn counters(capture: &Capture, devices: &[&[&Reading]]) -> Vec<&'static str> {
    let column = |name: &str| capture.columns.iter().position(|column| column == name);
    let Some(always) = column("tx_bytes") else { return Vec::new() };
    let value = |reading: &Reading, at: usize| reading.values.get(at).copied().flatten();
    let is_read = |readings: &&[&Reading]| {
        !readings.is_empty() && readings.iter().all(|reading| value(reading, always).is_some())
    };
    if devices.is_empty() || !devices.iter().all(is_read) {
        return Vec::new();
    }
    let is_absent = |name: &&&'static str| {
        let at = column(name);
        devices.iter().all(|readings| {
            let none = at.is_some_and(|at| readings.iter().all(|reading| value(reading, at).is_none()));
            let device = readings.first().and_then(|first| capture.devices.get(first.device));
            let reported = device.is_some_and(|device| {
                capture.missing.iter().any(|lack| lack.device == device.name && lack.counter == **name)
            });
            none && reported
        })
    };
    NAMES.iter().filter(is_absent).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use logs::efa_counters::{Clock, Device, MissingCounter, Phase};

    /// Two devices; by device whether it has the counter, and whether the sampler reported it as missing.
    fn absent(devices: [(bool, bool); 2]) -> Vec<&'static str> {
        let columns = ["tx_bytes", "retrans_timeout_events"].map(str::to_owned).to_vec();
        let device = |name: &str| Device { name: name.to_owned(), lifespan_ms: Some(12) };
        let readings: Vec<Reading> = (0..4)
            .map(|at| {
                let device = at % 2;
                let values = vec![Some(5), devices[device].0.then_some(0)];
                Reading { phase: Phase::Before, uptime_cs: 1000 + at as u64, device, values }
            })
            .collect();
        let missing = devices.iter().zip(["d0", "d1"]).filter(|((_, reported), _)| *reported);
        let lack = |device: &str| MissingCounter {
            device: device.to_owned(),
            counter: "retrans_timeout_events".to_owned(),
        };
        let capture = Capture {
            file: String::new(),
            node: "n1".to_owned(),
            root: "/sys".to_owned(),
            interval_cs: 100,
            columns,
            begin: Clock { wall_us: 0, uptime_cs: 0 },
            devices: vec![device("d0"), device("d1")],
            unreadable: Vec::new(),
            missing: missing.map(|(_, name)| lack(name)).collect(),
            bad: Vec::new(),
            not_quiet: Vec::new(),
            readings,
            end: None,
        };
        let of = |device: usize| -> Vec<&Reading> {
            capture.readings.iter().filter(|reading| reading.device == device).collect()
        };
        counters(&capture, &[&of(0), &of(1)])
    }

    #[test]
    fn a_counter_is_absent_where_no_device_has_it_and_the_sampler_reported_each() {
        assert_eq!(absent([(false, true), (false, true)]), ["retrans_timeout_events"]);
        for devices in
            [[(true, false), (false, true)], [(false, true), (false, false)], [(true, false), (true, false)]]
        {
            assert_eq!(absent(devices), [] as [&str; 0], "{devices:?}");
        }
    }
}
