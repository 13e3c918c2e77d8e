//! When a fault of a window began, by the readings that were taken during the load.

use logs::node_tools::gpu_state::{Gpu, GpuStates, Phase, Reading, SLOWED};

/// The first reading that shows a fault.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Onset {
    /// Seconds since the soak began.
    pub soaked_s: f64,
    /// The window's first reading of that kind shows it already: it may have begun before.
    pub from_start: bool,
}

/// Of a failed number of this part; nothing where readings do not show when it began. A fault that had begun before the
/// window's first reading shows from its start.
pub fn onset(states: &GpuStates, metric: &str, part: Option<&str>) -> Option<Onset> {
    let shown: Vec<(f64, bool)> = match metric {
        "nic.flaps" => {
            let readings = states.host.links.get(part?)?;
            let counted = |at: usize| at > 0 && readings[at - 1].downed < readings[at].downed;
            let is_bad = |at: usize| !readings[at].active || counted(at);
            (0..readings.len()).map(|at| (readings[at].at_s, is_bad(at))).collect()
        }
        _ => {
            let gpu = states.gpus.get(&part?.strip_prefix("gpu")?.parse().ok()?)?;
            match metric {
                "gpu.slowed" | "burn.kept" | "burn.rate" => slowed(gpu),
                "gpu.ecc_uncorrected" => grown(gpu, |reading| reading.uncorrected),
                "gpu.ecc_corrected" => grown(gpu, |reading| reading.corrected),
                _ => return None,
            }
        }
    };
    let at = shown.iter().position(|(_, is_bad)| *is_bad)?;
    Some(Onset { soaked_s: states.soaked_s + shown[at].0, from_start: at == 0 })
}

/// Where a window ends in such a fault, the first reading of the unbroken rest that shows it.
pub fn trailing(states: &GpuStates, metric: &str, part: Option<&str>) -> Option<Onset> {
    if !matches!(metric, "gpu.slowed" | "burn.kept" | "burn.rate") {
        return None;
    }
    let shown = slowed(states.gpus.get(&part?.strip_prefix("gpu")?.parse().ok()?)?);
    let bad = shown.iter().rev().take_while(|(_, is_bad)| *is_bad).count();
    let at = shown.len() - bad;
    let (at_s, _) = shown.get(at)?;
    Some(Onset { soaked_s: states.soaked_s + at_s, from_start: at == 0 })
}

/// When it was read under load, and whether heat or hardware lowered the clocks.
fn slowed(gpu: &Gpu) -> Vec<(f64, bool)> {
    let under_load = gpu.readings.iter().filter(|reading| reading.phase == Phase::During);
    under_load.filter_map(|reading| Some((reading.at_s, reading.reasons? & SLOWED != 0))).collect()
}

/// When a counter was read, and whether it had grown since the reading before.
fn grown(gpu: &Gpu, counter: fn(&Reading) -> Option<u64>) -> Vec<(f64, bool)> {
    let read: Vec<(f64, u64)> =
        gpu.readings.iter().filter_map(|reading| Some((reading.at_s, counter(reading)?))).collect();
    read.windows(2).map(|pair| (pair[1].0, pair[1].1 > pair[0].1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use logs::node_tools::gpu_state;

    /// Readings of one GPU every minute, by the reasons and the corrected errors of each.
    fn states(soaked_s: u32, readings: &[(u32, u32)], nics: &[&str]) -> GpuStates {
        let mut text = format!(
            "harness-gpu-state 1\nsoaked {soaked_s}\nfields index,clocks_event_reasons.active,\
             ecc.errors.corrected.volatile.total\n"
        );
        for (at, (reasons, corrected)) in readings.iter().enumerate() {
            let phase = match at {
                0 => "before",
                at if at + 1 == readings.len() => "after",
                _ => "during",
            };
            text.push_str(&format!("at {phase} {}.00\n", 100 + at * 60));
            nics.get(at).into_iter().for_each(|nic| text.push_str(&format!("nic {nic}\n")));
            text.push_str(&format!("row 3, 0x{reasons:x}, {corrected}\n"));
        }
        text.push_str("end\n");
        gpu_state::read(text.as_bytes()).expect("in memory").expect("read")
    }

    #[test]
    fn the_first_reading_that_shows_a_fault_is_its_onset() {
        let read = states(3600, &[(1, 0), (4, 0), (0x48, 1), (4, 1), (1, 1)], &[]);
        let of = |metric: &str| onset(&read, metric, Some("gpu3"));
        assert_eq!(of("gpu.slowed"), Some(Onset { soaked_s: 3720.0, from_start: false }));
        assert_eq!(of("gpu.ecc_corrected"), Some(Onset { soaked_s: 3720.0, from_start: false }));
        assert_eq!(of("gpu.nvlink_errors"), None);
        assert_eq!(onset(&read, "gpu.slowed", Some("gpu4")), None);
        assert_eq!(onset(&read, "gpu.slowed", Some("rdmap79s0")), None);
        assert_eq!(onset(&read, "gpu.slowed", None), None);
        let flaps = states(0, &[(1, 0); 4], &["a ACTIVE -", "a DOWN -", "a ACTIVE -", "a ACTIVE -"]);
        assert_eq!(onset(&flaps, "nic.flaps", Some("a")), Some(Onset { soaked_s: 60.0, from_start: false }));
        let counted = states(0, &[(1, 0); 3], &["a ACTIVE 4", "a ACTIVE 4", "a ACTIVE 5"]);
        assert_eq!(onset(&counted, "nic.flaps", Some("a")).map(|onset| onset.soaked_s), Some(120.0));
    }

    #[test]
    fn a_fault_at_the_end_of_a_window_is_followed_back_to_where_it_is_unbroken() {
        let end = states(3600, &[(1, 0), (0x40, 0), (4, 0), (0x40, 0), (0x40, 0), (1, 0)], &[]);
        assert_eq!(
            trailing(&end, "gpu.slowed", Some("gpu3")),
            Some(Onset { soaked_s: 3780.0, from_start: false })
        );
        let whole = states(3600, &[(1, 0), (0x40, 0), (0x40, 0), (1, 0)], &[]);
        assert_eq!(
            trailing(&whole, "gpu.slowed", Some("gpu3")),
            Some(Onset { soaked_s: 3660.0, from_start: true })
        );
        let none = states(3600, &[(1, 0), (0x40, 0), (4, 0), (1, 0)], &[]);
        assert_eq!(trailing(&none, "gpu.slowed", Some("gpu3")), None);
        assert_eq!(trailing(&none, "nic.flaps", Some("gpu3")), None);
    }
}
