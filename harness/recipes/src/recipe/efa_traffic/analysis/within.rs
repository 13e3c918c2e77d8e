//! Bytes that a node sent between two moments of its capture, by linear interpolation between readings. Where that
//! would be mostly a guess, no number is given.

use super::{DirectionMap, clock_jump_s};
use logs::efa_counters::{Capture, Reading, Step};

/// At least this many sampler intervals must fit between the moments; with fewer, most is a guess.
const FEWEST: f64 = 2.0;
const NS_PER_CS: f64 = 1e7;

/// Sum over these devices between two moments of UTC; or why it is unknown.
pub(crate) fn sent_within(
    capture: &Capture,
    devices: &[String],
    map: &DirectionMap,
    (from_ns, to_ns): (i64, i64),
) -> Result<u64, String> {
    let begin = capture.begin.utc_ns().ok_or("the capture's start time is out of range")?;
    // The moments are of the wall clock, and the readings are ordered by the uptime.
    if let Some(seconds) = clock_jump_s(capture) {
        return Err(format!("the node's wall clock jumped by {seconds:+.1} s during the capture"));
    }
    let uptime = |ns: i64| capture.begin.uptime_cs as f64 + (ns as f64 - begin as f64) / NS_PER_CS;
    let (from, to) = (uptime(from_ns), uptime(to_ns));
    let interval_s = capture.interval_cs as f64 / 100.0;
    let seconds = (to - from) / 100.0;
    if seconds < FEWEST * interval_s {
        return Err(format!(
            "window of {seconds:.2} s, counters read every {interval_s:.2} s; set `counters = {{ interval_s = {:.1} }}`",
            (seconds / FEWEST * 10.0).floor().max(2.0) / 10.0
        ));
    }
    let columns: Option<Vec<usize>> =
        map.sent.iter().map(|name| capture.columns.iter().position(|column| column == name)).collect();
    let columns =
        columns.filter(|columns| !columns.is_empty()).ok_or("the counters of sent bytes are not captured")?;
    let mut bytes = 0.0;
    for name in devices {
        let of_device = |why: &str| format!("{name}: {why}");
        let device = capture.devices.iter().position(|device| device.name == *name);
        let device = device.ok_or_else(|| of_device("no reading"))?;
        let readings: Vec<&Reading> =
            capture.readings.iter().filter(|reading| reading.device == device).collect();
        let grown = grown(&readings, &columns).map_err(of_device)?;
        let at = |moment: f64| {
            at(&grown, moment).ok_or_else(|| of_device("no readings on both sides of the window"))
        };
        bytes += at(to)? - at(from)?;
    }
    Ok(bytes.round() as u64)
}

/// How much the counters grew since the first reading, by moment.
fn grown(readings: &[&Reading], columns: &[usize]) -> Result<Vec<(f64, f64)>, &'static str> {
    let mut sum = 0_u128;
    let mut all = Vec::with_capacity(readings.len());
    for (at, reading) in readings.iter().enumerate() {
        if let Some(before) = at.checked_sub(1).and_then(|before| readings.get(before)) {
            let cs = reading.uptime_cs.saturating_sub(before.uptime_cs);
            for column in columns {
                let value = |reading: &Reading| reading.values.get(*column).copied().flatten();
                let (Some(from), Some(to)) = (value(before), value(reading)) else {
                    return Err("a counter has a missing value");
                };
                match Step::between(from, to, cs) {
                    Step::On(moved) | Step::Wrapped(moved) => sum += u128::from(moved),
                    Step::Narrow | Step::Fell => return Err("a counter fell"),
                }
            }
        }
        all.push((reading.uptime_cs as f64, sum as f64));
    }
    Ok(all)
}

fn at(grown: &[(f64, f64)], moment: f64) -> Option<f64> {
    let behind = grown.partition_point(|(cs, _)| *cs <= moment);
    let (from, before) = *grown.get(behind.checked_sub(1)?)?;
    let (to, after) = *grown.get(behind)?;
    Some(before + (after - before) * ((moment - from) / (to - from)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use logs::efa_counters::{Clock, Device, End, Phase, Reason};

    const BEGIN_US: u64 = 1_700_000_000_000_000;

    /// Readings of two devices, a second apart from the fifth second on; each grows by so much in the second before.
    fn capture(grows: &[u64]) -> Capture {
        let mut readings = Vec::new();
        let mut value = 7_u64;
        for (at, more) in (0_u64..).zip(grows) {
            value = value.wrapping_add(*more);
            for device in 0..2 {
                let values = vec![Some(value), Some(3)];
                readings.push(Reading { phase: Phase::During, uptime_cs: 1500 + at * 100, device, values });
            }
        }
        let device = |name: &str| Device { name: name.to_owned(), lifespan_ms: None };
        Capture {
            file: "counters.n1.txt".to_owned(),
            node: "n1".to_owned(),
            root: "/sys".to_owned(),
            interval_cs: 100,
            columns: vec!["sent".to_owned(), "other".to_owned()],
            begin: Clock { wall_us: BEGIN_US, uptime_cs: 1000 },
            devices: vec![device("a"), device("b")],
            unreadable: Vec::new(),
            missing: Vec::new(),
            bad: Vec::new(),
            not_quiet: Vec::new(),
            readings,
            end: None,
        }
    }

    fn sent(capture: &Capture, from_s: f64, to_s: f64) -> Result<u64, String> {
        let map =
            DirectionMap { sent: vec!["sent".to_owned()], received: Vec::new(), conservation_shown: true };
        let ns = |seconds: f64| (BEGIN_US * 1000) as i64 + (seconds * 1e9) as i64;
        sent_within(capture, &["a".to_owned(), "b".to_owned()], &map, (ns(from_s), ns(to_s)))
    }

    #[test]
    fn bytes_between_two_moments_are_summed_over_devices_and_interpolated() {
        let evenly = capture(&[0, 100, 100, 100, 400, 100]);
        assert_eq!(sent(&evenly, 5.0, 8.0), Ok(600));
        assert_eq!(sent(&evenly, 5.5, 8.5), Ok(2 * (50 + 200 + 200)));
    }

    #[test]
    fn a_wrapped_counter_is_followed_and_a_reset_one_gives_no_number() {
        let mut wrapped = capture(&[0, 100, 100, 100]);
        for reading in &mut wrapped.readings {
            reading.values[0] = reading.values[0].map(|value| value.wrapping_sub(107));
        }
        assert_eq!(sent(&wrapped, 5.0, 8.0).map_err(|_| ()), Err(()), "the last reading is at 8.0 itself");
        assert_eq!(sent(&wrapped, 5.0, 7.5), Ok(500));
        let mut fell = capture(&[0, 100, 100, 100]);
        fell.readings[4].values[0] = Some(1);
        assert_eq!(sent(&fell, 5.0, 7.5), Err("a: a counter fell".to_owned()));
        let mut gone = capture(&[0, 100, 100, 100]);
        gone.readings[3].values[0] = None;
        assert_eq!(sent(&gone, 5.0, 7.5), Err("b: a counter has a missing value".to_owned()));
    }

    #[test]
    fn a_clock_that_jumped_places_no_moment() {
        let mut jumped = capture(&[0, 100, 100, 100]);
        let end = |wall_us: u64| {
            Some(End { clock: Clock { wall_us, uptime_cs: 1900 }, cost_ms: 1, reason: Reason::Stop })
        };
        jumped.end = end(BEGIN_US + 9_000_000);
        assert_eq!(sent(&jumped, 5.0, 7.5), Ok(500));
        jumped.end = end(BEGIN_US + 13_000_000);
        let why = "the node's wall clock jumped by +4.0 s during the capture";
        assert_eq!(sent(&jumped, 5.0, 7.5), Err(why.to_owned()));
    }

    #[test]
    fn windows_without_readings_on_both_sides_or_below_two_intervals_give_no_number() {
        let few = capture(&[0, 100, 100, 100]);
        for (from, to, expected) in [
            (4.0, 7.0, "a: no readings on both sides"),
            (6.0, 9.0, "a: no readings on both sides"),
            (5.1, 6.6, "window of 1.50 s, counters read every 1.00 s; set `counters = { interval_s = 0.7 }`"),
        ] {
            let why = sent(&few, from, to).expect_err(expected);
            assert!(why.contains(expected), "{why}");
        }
        let none = DirectionMap { sent: Vec::new(), received: Vec::new(), conservation_shown: true };
        assert!(sent_within(&few, &["a".to_owned()], &none, (0, i64::MAX)).is_err());
    }
}
