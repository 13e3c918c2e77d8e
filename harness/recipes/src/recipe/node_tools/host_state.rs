//! Numbers of the host around a program, from the readings of GPU states: links of NICs that went down, memory of the kernel.

use super::super::Output;
use super::gpu_state::is_covered;
use logs::node_tools::gpu_state::{GpuStates, Phase};
use logs::node_tools::host_state::LinkReading;
use metric::unit::{Better, Unit};
use metric::{Blames, Covers, Dim, Dims, Files, MetricSpec, Names};

pub(super) const FLAPS: MetricSpec = MetricSpec::new(
    "nic.flaps",
    "how often its link went down while the program ran, by its driver's counter or as seen by readings; 1 where it was down all \
     the time; EFA's driver always shows links up: there a NIC that vanishes is all that counts",
    Unit::Count,
    Better::Lower,
    Files::GpuState,
)
.per(&[Dim::Node, Dim::Nic])
.blaming(Blames::Part)
.naming(Names::Coded(None, "HRN-NIC-DOWN"))
.covering(Covers::NoNics)
.next("look at `dmesg` on {nodes} for its link; check cable and port, or replace the node");

const fn host_metric(name: &'static str, about: &'static str) -> MetricSpec {
    MetricSpec::new(name, about, Unit::Bytes, Better::Lower, Files::GpuState)
        .per(&[Dim::Node])
        .blaming(Blames::OddNode)
        .naming(Names::Coded(Some("node"), "HRN-NODE-LEAK"))
        .covering(Covers::NoNics)
        .next("compare `/proc/meminfo` and `slabtop` on {nodes} with a peer; reboot, and report the driver if it grows again")
}

pub(super) const KERNEL: MetricSpec = host_metric(
    "host.kernel_memory",
    "memory of the host before the program that neither programs nor caches account for: what the kernel and its drivers hold",
);
pub(super) const GROWTH: MetricSpec = host_metric(
    "host.kernel_growth",
    "how much more of it the kernel and its drivers hold after the program than before it",
);

/// `dims` are those of the node. What was not read both before and after the program shows nothing of what came in between.
pub(super) fn put(states: &GpuStates, dims: &Dims, output: &mut Output) {
    let read = |phase: Phase| {
        let mut of_phase = states.host.kernel_memory.iter().filter(|(read, _)| *read == phase);
        of_phase.next().map(|(_, bytes)| *bytes)
    };
    let before = read(Phase::Before);
    output.metrics.extend(before.map(|bytes| KERNEL.of(dims.clone(), bytes)));
    if !states.complete {
        return;
    }
    if let (Some(before), Some(after)) = (before, read(Phase::After)) {
        output.metrics.push(GROWTH.of(dims.clone(), (after - before).max(0.0)));
    }
    for (device, readings) in &states.host.links {
        let dims = || dims.clone().with(Dim::Nic, device.as_str());
        let is_counted = readings.iter().all(|reading| reading.downed.is_some());
        // What was seen counts, but that nothing was seen counts only where somebody looked.
        let is_known = is_counted || is_covered(states, states.host.read_at.iter().copied());
        let flaps = flaps(readings).filter(|flaps| *flaps > 0 || is_known);
        output.metrics.extend(flaps.map(|flaps| FLAPS.of(dims(), flaps as f64)));
    }
}

/// Of a link that was read before and after.
fn flaps(readings: &[LinkReading]) -> Option<u64> {
    let has = |phase: Phase| readings.iter().any(|reading| reading.phase == phase);
    if !has(Phase::Before) || !has(Phase::After) {
        return None;
    }
    let was_down = readings.first().is_some_and(|reading| !reading.active);
    let falls = readings.windows(2).filter(|pair| pair[0].active && !pair[1].active).count() as u64;
    let counts: Vec<u64> = readings.iter().filter_map(|reading| reading.downed).collect();
    // A counter that starts from 0, as after a reload of the driver, has counted what it shows.
    let grown = counts.windows(2).map(|pair| if pair[1] < pair[0] { pair[1] } else { pair[1] - pair[0] });
    Some((falls + u64::from(was_down)).max(grown.fold(0, u64::saturating_add)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the link is active, and what the driver has counted.
    type Read = (bool, Option<u64>);

    fn readings(of: &[Read]) -> Vec<LinkReading> {
        let phase = |at: usize| match at {
            0 => Phase::Before,
            at if at + 1 == of.len() => Phase::After,
            _ => Phase::During,
        };
        let reading = |(at, (active, downed)): (usize, &Read)| LinkReading {
            at_s: at as f64,
            phase: phase(at),
            active: *active,
            downed: *downed,
        };
        of.iter().enumerate().map(reading).collect()
    }

    #[test]
    fn readings_must_lie_over_most_of_the_time() {
        let states = |every_s: Option<f64>| GpuStates { every_s, last_s: 3600.0, ..GpuStates::default() };
        let minutes = |n: u32| (1..=n).map(|at| f64::from(at) * 60.0);
        assert!(is_covered(&states(Some(60.0)), minutes(59)));
        assert!(is_covered(&states(Some(60.0)), minutes(50)), "one that hung for some minutes");
        assert!(!is_covered(&states(Some(60.0)), minutes(1)));
        assert!(!is_covered(&states(Some(60.0)), minutes(40)));
        assert!(is_covered(&states(None), minutes(0)), "none were asked for");
    }

    #[test]
    fn a_link_that_was_not_looked_at_has_no_flaps_unless_one_was_seen() {
        let read = |nics: &[&str], during: u32| {
            let nic = |at: usize| nics.get(at).map(|nic| format!("nic a {nic}\n")).unwrap_or_default();
            let mut text = format!("harness-gpu-state 1\nevery 60\nfields index\nat before 0\n{}", nic(0));
            (1..=during).for_each(|at| text.push_str(&format!("at during {}\n", at * 60)));
            text.push_str(&format!("{}at after 3600\n{}end\n", nic(2), nic(1)));
            let read = logs::node_tools::gpu_state::read(text.as_bytes()).expect("in memory").expect("read");
            let mut output = Output::default();
            put(&read, &Dims::new(), &mut output);
            output.metrics.iter().map(|metric| metric.value).collect::<Vec<f64>>()
        };
        let up = ["ACTIVE -"; 2];
        assert_eq!(read(&up, 59), [0.0]);
        assert!(read(&up, 1).is_empty());
        assert_eq!(read(&["ACTIVE -", "ACTIVE -", "GONE -"], 1), [1.0]);
        assert_eq!(read(&["ACTIVE 3"; 2], 1), [0.0], "its driver counts");
    }

    #[test]
    fn flaps_are_counted_by_the_driver_or_as_seen_whichever_is_more() {
        let cases: [(&[Read], Option<u64>); 7] = [
            (&[(true, None), (true, None), (true, None)], Some(0)),
            (&[(true, None), (false, None), (true, None), (false, None), (true, None)], Some(2)),
            (&[(false, None), (false, None)], Some(1)),
            (&[(true, Some(3)), (true, Some(5)), (true, Some(5))], Some(2)),
            (&[(true, Some(3)), (true, Some(1))], Some(1)),
            (&[(true, Some(3)), (false, Some(3)), (true, Some(4))], Some(1)),
            (&[(true, None)], None),
        ];
        for (of, expected) in cases {
            assert_eq!(flaps(&readings(of)), expected, "{of:?}");
        }
    }
}
