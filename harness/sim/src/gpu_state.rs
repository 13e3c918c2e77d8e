//! What `gpu_state.sh` writes on a simulated node: readings of nvidia-smi, links, and the kernel's lines, by the faults of
//! the node. It shares nothing with the reader of that file.

use super::active_faults::Ending;
use super::cluster::Cluster;
use super::over::Over;
use model::fault::Fault;
use std::fmt::Write as _;

const FIELDS: &str = "index,pcie.link.gen.current,pcie.link.gen.max,pcie.link.width.current,pcie.link.width.max,\
                      clocks.current.sm,temperature.gpu,power.draw,clocks_event_reasons.active,\
                      ecc.errors.uncorrected.volatile.total,ecc.errors.corrected.volatile.total,retired_pages.pending,\
                      remapped_rows.pending,remapped_rows.failure";
/// NVLinks of A100, and of later GPUs.
const LINKS: [u32; 2] = [12, 18];
/// Bits of the reasons: idle; power limit; slowdown by hardware on account of heat.
const IDLE: u64 = 0x1;
const POWER: u64 = 0x4;
const HEAT: u64 = 0x8 | 0x40;

/// The file of a node; nothing where the job reads no state, or did not come to it.
pub(crate) fn file(cluster: &Cluster, over: &Over, node: usize) -> Option<String> {
    let execution = &over.execution;
    let interval_s = execution.gpu_state_s?;
    if execution.active_faults.output_missing(node) || over.run_s < execution.work_from_s {
        return None;
    }
    let lasts_s = over.run_s.min(execution.work_to_s) - execution.work_from_s;
    let state = State { cluster, over, node, lasts_s };
    // Infallible: writing to a string.
    let mut text = format!("harness-gpu-state 1\nfields {FIELDS}\n");
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
}

impl State<'_> {
    fn has(&self, is: impl Fn(&Fault) -> bool) -> bool {
        self.over.execution.active_faults.tool_faults(self.node).any(is)
    }

    fn reading(&self, text: &mut String, phase: &str, at_s: f64) {
        let _ = writeln!(text, "at {phase} {:.2}", 4000.0 + at_s);
        let during = phase == "during";
        for gpu in 0..self.cluster.gpus {
            let throttles =
                self.has(|fault| matches!(fault, Fault::Throttles { gpu: which, .. } if *which == gpu));
            let is_hot = during && throttles && at_s > 0.4 * self.lasts_s;
            let narrow =
                self.has(|fault| matches!(fault, Fault::PcieSlow { gpu: which, .. } if *which == gpu));
            let has_ecc = self.has(|fault| *fault == Fault::EccErrors { gpu });
            let (generation, most) = if self.cluster.gpu_name.contains("A100") { (4, 4) } else { (5, 5) };
            let (clock, heat, power, reasons) = match (during, is_hot) {
                (false, _) => (345, 33, 71.2, IDLE),
                (true, false) => (1605, 66, 699.1, POWER),
                (true, true) => (1005, 88, 450.4, POWER | HEAT),
            };
            // One more with every reading under load.
            let uncorrected = if has_ecc && phase != "before" { 1 + (at_s / 60.0) as u64 } else { 0 };
            let pending = if has_ecc && phase == "after" { "Yes" } else { "No" };
            let generation = if during { generation } else { 1 };
            let width = if narrow { 8 } else { 16 };
            let _ = writeln!(
                text,
                "row {gpu}, {generation}, {most}, {width}, 16, {clock}, {heat}, {power}, 0x{reasons:016x}, {uncorrected}, 0, \
                 [N/A], {pending}, No"
            );
        }
    }

    fn around(&self, text: &mut String, after: bool) {
        let links = LINKS[usize::from(!self.cluster.gpu_name.contains("A100"))];
        for gpu in 0..self.cluster.gpus {
            let _ = writeln!(text, "link GPU {gpu}: {} (UUID: GPU-{gpu:08x})", self.cluster.gpu_name);
            let is_down = |link: u32| link == 7 && self.has(|fault| *fault == Fault::NvlinkDown { gpu });
            for link in 0..links {
                let rate = if is_down(link) { "<inactive>" } else { "26.562 GB/s" };
                let _ = writeln!(text, "link          Link {link}: {rate}");
            }
        }
        let errors = |gpu: u32| match self.has(|fault| *fault == Fault::NvlinkErrors { gpu }) {
            true if after => 3 + (self.lasts_s / 30.0) as u64,
            _ => 0,
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
