//! What stands of the host in a file of GPU states: links of its NICs, and the memory that its kernel holds.

use super::gpu_state::Phase;
use std::collections::BTreeMap;

/// As often as GPUs were read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostStates {
    /// By device, in the order of time.
    pub links: BTreeMap<String, Vec<LinkReading>>,
    /// Seconds since the first reading, when links were read under load, changed or not.
    pub read_at: Vec<f64>,
    /// When it was read, and the bytes that neither programs nor caches account for: the kernel and its drivers hold them.
    pub kernel_memory: Vec<(Phase, f64)>,
}

/// One reading of a NIC's link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkReading {
    /// Seconds since the first reading of the file.
    pub at_s: f64,
    /// Before, during or after the program.
    pub phase: Phase,
    /// Whether it could carry anything then.
    pub active: bool,
    /// How often it went down since the driver was loaded, where that is counted.
    pub downed: Option<u64>,
}

const MOST_NICS: usize = 256;
const MOST_READINGS: usize = 10_000;

impl HostStates {
    /// `rdmap79s0 ACTIVE 0`; the last is `-` where nothing counts it.
    pub(super) fn link(&mut self, line: &str, at_s: f64, phase: Phase) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [device, state, downed] = words[..] else { return };
        // A state that could not be read is none.
        if device.len() > 64 || state == "unknown" {
            return;
        }
        let has_room = self.links.len() < MOST_NICS || self.links.contains_key(device);
        let readings = match has_room {
            true => self.links.entry(device.to_owned()).or_default(),
            false => return,
        };
        if readings.len() < MOST_READINGS {
            readings.push(LinkReading {
                at_s,
                phase,
                active: state == "ACTIVE",
                downed: downed.parse().ok(),
            });
        }
    }

    /// `MemTotal=2113929216 MemFree=...`, in KiB as in `/proc/meminfo`. Without one of them nothing is known.
    pub(super) fn memory(&mut self, line: &str, phase: Phase) {
        let value = |name: &str| {
            let mut pairs = line.split_whitespace().filter_map(|word| word.split_once('='));
            pairs.find(|(key, _)| *key == name)?.1.parse::<u64>().ok()
        };
        let accounted = || {
            let plain = ["MemFree", "Buffers", "Cached", "SReclaimable", "AnonPages"];
            let sum = plain.into_iter().try_fold(0u64, |sum, name| sum.checked_add(value(name)?))?;
            // A kernel without huge pages lists none.
            let huge =
                value("HugePages_Total").unwrap_or(0).checked_mul(value("Hugepagesize").unwrap_or(0))?;
            sum.checked_add(huge)
        };
        let kept = || value("MemTotal")?.checked_sub(accounted()?)?.checked_mul(1024);
        if let Some(bytes) = kept().filter(|_| self.kernel_memory.len() < MOST_READINGS) {
            self.kernel_memory.push((phase, bytes as f64));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_the_kernel_is_what_neither_programs_nor_caches_account_for() {
        let mut host = HostStates::default();
        let whole = "MemTotal=1000 MemFree=400 Buffers=10 Cached=90 SReclaimable=50 AnonPages=150 HugePages_Total=2 \
                     Hugepagesize=50";
        host.memory(whole, Phase::Before);
        assert_eq!(host.kernel_memory, [(Phase::Before, 204_800.0)]);
        let odd = [
            "",
            "MemTotal=1000",
            "MemTotal=1000 MemFree=2000 Buffers=0 Cached=0 SReclaimable=0 AnonPages=0",
            "MemTotal=x MemFree=1 Buffers=1 Cached=1 SReclaimable=1 AnonPages=1",
            "MemTotal=18446744073709551615 MemFree=1 Buffers=1 Cached=1 SReclaimable=1 AnonPages=1",
        ];
        odd.into_iter().for_each(|line| host.memory(line, Phase::After));
        assert_eq!(host.kernel_memory.len(), 1);
    }

    #[test]
    fn a_link_is_read_with_its_counter_where_there_is_one() {
        let mut host = HostStates::default();
        host.link("mlx5_0 ACTIVE 3", 0.0, Phase::Before);
        host.link("mlx5_0 DOWN 4", 10.0, Phase::During);
        host.link("rdmap79s0 ACTIVE -", 0.0, Phase::Before);
        for odd in ["", "mlx5_0", "mlx5_0 unknown -", "mlx5_0 ACTIVE 3 4"] {
            host.link(odd, 20.0, Phase::After);
        }
        let of = |device: &str| {
            let readings = host.links[device].iter();
            readings.map(|reading| (reading.at_s, reading.active, reading.downed)).collect::<Vec<_>>()
        };
        assert_eq!(of("mlx5_0"), [(0.0, true, Some(3)), (10.0, false, Some(4))]);
        assert_eq!(of("rdmap79s0"), [(0.0, true, None)]);
    }
}
