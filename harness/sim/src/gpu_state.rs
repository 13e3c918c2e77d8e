//! What `gpu_state.sh` writes on a simulated node: readings of nvidia-smi, links, and the kernel's lines, by the faults of
//! the node. It shares nothing with the reader of that file.

use super::active_faults::Ending;
use super::cluster::Cluster;
use super::noise;
use super::over::Over;
use model::fault::Fault;
use std::fmt::Write as _;

const FIELDS: &str = "index,pcie.link.gen.current,pcie.link.gen.max,pcie.link.width.current,pcie.link.width.max,\
                      clocks.current.sm,temperature.gpu,power.draw,clocks_event_reasons.active,\
                      ecc.errors.uncorrected.volatile.total,ecc.errors.corrected.volatile.total,retired_pages.pending,\
                      remapped_rows.pending,remapped_rows.failure,memory.used,clocks.max.sm";
/// NVLinks of A100, and of later GPUs.
const LINKS: [u32; 2] = [12, 18];
/// Bits of the reasons: idle; power limit; slowdown by hardware on account of heat.
const IDLE: u64 = 0x1;
const POWER: u64 = 0x4;
const HEAT: u64 = 0x8 | 0x40;

/// The file of a node; nothing where the job reads no state, or did not come to it.
pub(crate) fn file(cluster: &Cluster, over: &Over, node: usize) -> Option<String> {
    let execution = &over.execution;
    let wanted = execution.gpu_state?;
    let interval_s = wanted.interval_s;
    if execution.active_faults.output_missing(node) || over.run_s < execution.work_from_s {
        return None;
    }
    let lasts_s = over.run_s.min(execution.work_to_s) - execution.work_from_s;
    let state = State { cluster, over, node, lasts_s, soaked_s: wanted.soaked_s };
    let mut text = "harness-gpu-state 1\n".to_owned();
    // Infallible: writing to a string.
    if wanted.soaked_s > 0.0 {
        let _ = writeln!(text, "soaked {:.0}", wanted.soaked_s);
    }
    let _ = writeln!(text, "every {interval_s}\nfields {FIELDS}");
    state.reading(&mut text, "before", 0.0);
    state.around(&mut text, false);
    let mut at_s = interval_s;
    while interval_s > 0.0 && at_s < lasts_s {
        state.reading(&mut text, "during", at_s);
        at_s += interval_s;
    }
    if execution.active_faults.ending.is_none() {
        state.reading(&mut text, "after", lasts_s);
        state.around(&mut text, true);
        text.push_str("end\n");
    } else if execution.active_faults.fails_by(Ending::DiskFull).is_some() {
        text.truncate(text.len() * 2 / 3);
    }
    Some(text)
}

struct State<'a> {
    cluster: &'a Cluster,
    over: &'a Over,
    node: usize,
    lasts_s: f64,
    /// Load of the node before.
    soaked_s: f64,
}

impl State<'_> {
    fn has(&self, is: impl Fn(&Fault) -> bool) -> bool {
        self.over.execution.active_faults.tool_faults(self.node).any(is)
    }

    fn reading(&self, text: &mut String, phase: &str, at_s: f64) {
        let _ = writeln!(text, "at {phase} {:.2}", 4000.0 + at_s);
        self.nics(text, phase, at_s);
        let during = phase == "during";
        for gpu in 0..self.cluster.gpus {
            let throttles =
                self.has(|fault| matches!(fault, Fault::Throttles { gpu: which, .. } if *which == gpu));
            let by_minute = self.since(|fault| match fault {
                Fault::ThrottlesAfter { minutes, gpu: which } if *which == gpu => Some(*minutes),
                _ => None,
            });
            let is_hot = during
                && ((throttles && at_s > 0.4 * self.lasts_s) || by_minute.is_some_and(|from| at_s >= from));
            let narrow =
                self.has(|fault| matches!(fault, Fault::PcieSlow { gpu: which, .. } if *which == gpu));
            let has_ecc = self.has(|fault| *fault == Fault::EccErrors { gpu });
            let (generation, most) = if self.cluster.gpu_name.contains("A100") { (4, 4) } else { (5, 5) };
            let is_a100 = self.cluster.gpu_name.contains("A100");
            let (clock, heat, power, reasons) = match (during, is_hot) {
                (false, _) => (345, 33, 71.2, IDLE),
                (true, false) => (if is_a100 { 1290 } else { 1605 }, 66, 699.1, POWER),
                (true, true) => (if is_a100 { 705 } else { 975 }, 88, 450.4, POWER | HEAT),
            };
            // One more with every reading under load.
            let uncorrected = if has_ecc && phase != "before" { 1 + (at_s / 60.0) as u64 } else { 0 };
            let pending = if has_ecc && phase == "after" { "Yes" } else { "No" };
            let most_clock = if is_a100 { 1410 } else { 1980 };
            let generation = if during { generation } else { 1 };
            let width = if narrow { 8 } else { 16 };
            let _ = writeln!(
                text,
                "row {gpu}, {generation}, {most}, {width}, 16, {clock}, {heat}, {power}, 0x{reasons:016x}, {uncorrected}, \
                 {}, [N/A], {pending}, No, {}, {most_clock}",
                self.corrected(gpu, at_s),
                if during { 73_412 } else { 4 }
            );
        }
    }

    /// The seconds of this job from which on a fault acts that begins in some minute of the load; below 0 where it began before.
    fn since(&self, minutes: impl Fn(&Fault) -> Option<f64>) -> Option<f64> {
        let faults = self.over.execution.active_faults.tool_faults(self.node);
        faults.filter_map(minutes).reduce(f64::min).map(|minutes| minutes * 60.0 - self.soaked_s)
    }

    /// Errors that were corrected, since the driver was loaded: on sound GPUs one in a few days of load.
    fn corrected(&self, gpu: u32, at_s: f64) -> u64 {
        let name = self.over.execution.nodes.get(self.node).map_or("", String::as_str);
        // Of the GPU and not of the run: the counter goes on in the next one.
        let every_h = noise::stream(0, &["corrected", name, &gpu.to_string()]).between(30.0, 300.0);
        let usual = (self.soaked_s + at_s) / 3600.0 / every_h;
        let from = self.since(|fault| match fault {
            Fault::EccGrows { minutes, gpu: which } if *which == gpu => Some(*minutes),
            _ => None,
        });
        let hours = from.map_or(0.0, |from| (at_s - from).max(0.0) / 3600.0);
        usual as u64 + (hours * hours) as u64
    }

    /// Links of NICs that are not as they were at the last reading. EFA counts nothing and shows all links up: a NIC that
    /// fails is not listed.
    fn nics(&self, text: &mut String, phase: &str, at_s: f64) {
        let every_s = self.over.execution.gpu_state.map_or(0.0, |wanted| wanted.interval_s);
        for device in &self.cluster.nics {
            let from = self.since(|fault| match fault {
                Fault::NicFlaps { minutes, device: which } if which == device => Some(*minutes),
                _ => None,
            });
            let is_down = |at_s: f64| from.is_some_and(|from| at_s >= from && (at_s - from) % 1800.0 < 90.0);
            if phase == "during" && is_down(at_s) == is_down(at_s - every_s) {
                continue;
            }
            // What the script never saw it cannot miss.
            if phase == "before" && is_down(at_s) {
                continue;
            }
            let state = if is_down(at_s) { "GONE" } else { "ACTIVE" };
            let _ = writeln!(text, "nic {device} {state} -");
        }
    }

    /// In KiB.
    fn memory(&self, text: &mut String, at_s: f64) {
        let leaks =
            self.over.execution.active_faults.tool_faults(self.node).filter_map(|fault| match fault {
                Fault::DriverLeaks { mb_per_hour } => Some(*mb_per_hour),
                _ => None,
            });
        let name = self.over.execution.nodes.get(self.node).map_or("", String::as_str);
        let when = format!("{at_s:.0}");
        let mut draws = noise::stream(self.cluster.seed, &["memory", name, &when]);
        let leaked = leaks.sum::<f64>() * 1e6 / 1024.0 * (self.soaked_s + at_s) / 3600.0;
        // What its kernel holds changes by some dozen MB from one reading to the next.
        let kernel = (6_291_456.0 * draws.factor(0.004) + leaked) as u64;
        let (programs, cached) = (3_145_728, 20_971_520);
        let free = 2_113_929_216u64.saturating_sub(kernel + programs + cached + 1_048_576 + 524_288);
        let _ = writeln!(
            text,
            "memory MemTotal=2113929216 MemFree={free} Buffers=524288 Cached={cached} SReclaimable=1048576 \
             AnonPages={programs} HugePages_Total=0 Hugepagesize=2048"
        );
    }

    fn around(&self, text: &mut String, after: bool) {
        self.memory(text, if after { self.lasts_s } else { 0.0 });
        let links = LINKS[usize::from(!self.cluster.gpu_name.contains("A100"))];
        for gpu in 0..self.cluster.gpus {
            let _ = writeln!(text, "link GPU {gpu}: {} (UUID: GPU-{gpu:08x})", self.cluster.gpu_name);
            let is_down = |link: u32| link == 7 && self.has(|fault| *fault == Fault::NvlinkDown { gpu });
            for link in 0..links {
                let rate = if is_down(link) { "<inactive>" } else { "26.562 GB/s" };
                let _ = writeln!(text, "link          Link {link}: {rate}");
            }
        }
        let errors = |gpu: u32| {
            let from = self.since(|fault| match fault {
                Fault::NvlinkReplays { minutes, gpu: which } if *which == gpu => Some(*minutes),
                _ => None,
            });
            let now_s = if after { self.lasts_s } else { 0.0 };
            let replays = from.map_or(0, |from| ((now_s - from).max(0.0) / 30.0) as u64);
            match self.has(|fault| *fault == Fault::NvlinkErrors { gpu }) {
                true if after => 3 + (self.lasts_s / 30.0) as u64,
                _ => replays,
            }
        };
        for gpu in 0..self.cluster.gpus {
            let _ = writeln!(text, "link GPU {gpu}: {} (UUID: GPU-{gpu:08x})", self.cluster.gpu_name);
            for link in 0..links {
                let replays = if link == 4 { errors(gpu) } else { 0 };
                let _ = writeln!(text, "link          Link {link}: Replay Errors: {replays}");
                let _ = writeln!(text, "link          Link {link}: Recovery Errors: 0");
                let _ = writeln!(text, "link          Link {link}: CRC Errors: 0");
            }
        }
        text.push_str("kernellog\n");
        let has_ecc = (0..self.cluster.gpus).any(|gpu| self.has(|fault| *fault == Fault::EccErrors { gpu }));
        if has_ecc && after {
            text.push_str("xid [ 4127.193] NVRM: Xid (PCI:0000:53:00): 48, pid=2317, name=gpu_burn, DBE (double bit error)\n");
        }
    }
}
