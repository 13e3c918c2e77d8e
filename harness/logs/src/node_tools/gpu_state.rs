//! Reads what `gpu_state.sh` left: readings of nvidia-smi before, during and after a program, states and error counters of
//! NVLink, and the kernel's lines about Xids.

use super::NoResult;
use super::host_state::HostStates;
use crate::stream::Pieces;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead};

/// The readings of one node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GpuStates {
    /// By GPU.
    pub gpus: BTreeMap<u32, Gpu>,
    /// Lines about Xids that the kernel wrote in between; nothing where its log could not be read both times.
    pub new_xids: Option<Vec<String>>,
    /// Readings that failed, with what nvidia-smi said.
    pub failed: Vec<String>,
    /// Links of NICs, and memory of the host.
    pub host: HostStates,
    /// Seconds of the soak before the first reading; 0 where it is no window of one.
    pub soaked_s: f64,
    /// Seconds between two readings under load, as asked for; nothing where none were.
    pub every_s: Option<f64>,
    /// When the last reading was taken, in seconds since the first.
    pub last_s: f64,
    /// Whether it came to its end.
    pub complete: bool,
}

/// What was read of one GPU.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gpu {
    /// In the order of time.
    pub readings: Vec<Reading>,
    /// Links that were active both before and after; nothing where they were not listed both times.
    pub links: Option<u32>,
    /// Errors of its links that were counted in between; nothing where they were not read twice.
    pub link_errors: Option<u64>,
    /// Listed before the program, and not after it, where nvidia-smi listed others of the node and came to its end or said of
    /// as many GPUs that they are lost.
    pub lost: bool,
}

/// When a reading was taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Phase {
    /// Before the program.
    #[default]
    Before,
    /// While it ran.
    During,
    /// After it.
    After,
}

/// One reading; a field is absent where the driver does not know it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reading {
    /// Seconds since the first reading.
    pub at_s: f64,
    /// When it was taken.
    pub phase: Phase,
    /// Lanes of PCIe: current, and the most of the GPU.
    pub width: Option<(f64, f64)>,
    /// Generation of PCIe: current, and the most; an idle GPU lowers it.
    pub generation: Option<(f64, f64)>,
    /// In MHz: current, and the most of the GPU.
    pub clock: Option<(f64, f64)>,
    /// In degrees Celsius.
    pub temperature: Option<f64>,
    /// Why its clocks are lowered, by bit.
    pub reasons: Option<u64>,
    /// Memory errors that were not corrected, since the driver was loaded.
    pub uncorrected: Option<u64>,
    /// Those that were.
    pub corrected: Option<u64>,
    /// A row or page is to be taken out of use, or could not be.
    pub memory_pending: Option<bool>,
    /// Bytes of its memory in use.
    pub memory_used: Option<f64>,
}

/// Of the reasons: nothing runs on the GPU.
pub const IDLE: u64 = 0x1;
/// Slowdown by hardware: heat, power brake, or the driver on account of heat. That a GPU reached its power limit is usual
/// under full load.
pub const SLOWED: u64 = 0x8 | 0x20 | 0x40 | 0x80;

/// A day of readings every ten seconds.
const MOST_READINGS: usize = 10_000;
const MOST_GPUS: usize = 64;

#[derive(Default)]
struct Reader {
    states: GpuStates,
    fields: Vec<String>,
    phase: Phase,
    first_s: Option<f64>,
    now_s: f64,
    /// The GPU that lines about links are of.
    linked: Option<u32>,
    /// By GPU and phase, the links that were listed, and whether each was down: both listings may show one that is.
    links: BTreeMap<(u32, bool), BTreeMap<u32, bool>>,
    /// GPUs of which nvidia-smi lists no link, since none is active.
    linkless: BTreeSet<(u32, bool)>,
    errors: BTreeMap<(u32, bool), u64>,
    xids: BTreeMap<bool, BTreeSet<String>>,
    no_log: bool,
    /// Whether the reading after the program failed, or has a row that cannot be read.
    failed_after: bool,
    odd_row_after: bool,
    /// Its lines that say of a GPU that it is lost.
    said_lost: BTreeSet<String>,
    /// Why no state was read.
    absent: Option<String>,
}

/// Reads a file as a stream.
pub fn read(from: impl BufRead) -> io::Result<Result<GpuStates, NoResult>> {
    let mut pieces = Pieces::new(from);
    let mut reader = Reader::default();
    let mut is_ours = false;
    while let Some(piece) = pieces.next_piece()? {
        let (word, rest) = piece.text.split_once(' ').unwrap_or((piece.text.trim(), ""));
        match word {
            // Each run writes a file of its own: the end of one says nothing of another.
            "harness-gpu-state" if is_ours => {
                return Ok(Err("two runs wrote the file of GPU states".to_owned()));
            }
            "harness-gpu-state" => is_ours = rest == "1",
            "" => {}
            _ if reader.states.complete => {
                return Ok(Err("lines stand behind the end of the GPU states".to_owned()));
            }
            _ if !is_ours => return Ok(Err("not a file of GPU states".to_owned())),
            // A line without its end may be cut.
            _ if !piece.ended => break,
            _ => reader.take(word, rest),
        }
    }
    Ok(match is_ours {
        true => match reader.absent.take() {
            Some(why) if reader.xids.values().all(BTreeSet::is_empty) => Err(why),
            why => {
                let mut states = reader.finish();
                states.failed.extend(why);
                Ok(states)
            }
        },
        false => Err("the file of GPU states is empty".to_owned()),
    })
}

impl Reader {
    fn take(&mut self, word: &str, rest: &str) {
        match word {
            "fields" => {
                let name =
                    |field: &str| field.trim().replace("clocks_throttle_reasons", "clocks_event_reasons");
                self.fields = rest.split(',').map(name).collect();
            }
            "at" => {
                let (phase, uptime) = rest.split_once(' ').unwrap_or((rest, ""));
                self.phase = match phase {
                    "during" => Phase::During,
                    "after" => Phase::After,
                    _ => Phase::Before,
                };
                let uptime = uptime.trim().parse::<f64>().ok().filter(|uptime| uptime.is_finite());
                let first = *self.first_s.get_or_insert(uptime.unwrap_or_default());
                self.now_s = (uptime.unwrap_or(first) - first).max(0.0);
                self.linked = None;
                self.states.last_s = self.states.last_s.max(self.now_s);
                if self.phase == Phase::During && self.states.host.read_at.len() < MOST_READINGS {
                    self.states.host.read_at.push(self.now_s);
                }
            }
            "row" => self.row(rest),
            "failed" => self.failed(rest.trim().chars().take(200).collect()),
            "link" => self.link(rest.trim()),
            "xid" if self.xids.values().map(BTreeSet::len).sum::<usize>() < 1000 => {
                let line = rest.trim().chars().take(300).collect();
                self.xids.entry(self.is_after()).or_default().insert(line);
            }
            "kernellog" => {
                self.xids.entry(self.is_after()).or_default();
            }
            "every" => {
                self.states.every_s =
                    rest.trim().parse().ok().filter(|every: &f64| every.is_finite() && *every > 0.0);
            }
            "nicsunread" if self.phase == Phase::During => {
                self.states.host.read_at.pop();
            }
            "nic" => self.states.host.link(rest, self.now_s, self.phase),
            "memory" => self.states.host.memory(rest, self.phase),
            "soaked" => {
                // A year of load is none.
                let soaked = rest.trim().parse::<u32>().ok().filter(|soaked| *soaked < 31_536_000);
                self.states.soaked_s = soaked.map_or(0.0, f64::from);
            }
            "absent" => self.absent = Some(rest.trim().chars().take(200).collect()),
            "nokernellog" => self.no_log = true,
            "end" => self.states.complete = true,
            _ => {}
        }
    }

    fn is_after(&self) -> bool {
        self.phase == Phase::After
    }

    fn gpu(&mut self, gpu: u32) -> Option<&mut Gpu> {
        let has_room = self.states.gpus.len() < MOST_GPUS || self.states.gpus.contains_key(&gpu);
        has_room.then(|| self.states.gpus.entry(gpu).or_default())
    }

    fn failed(&mut self, why: String) {
        if self.is_after() {
            self.failed_after = true;
            if self.said_lost.len() < MOST_GPUS && SAID_LOST.iter().any(|words| why.contains(words)) {
                self.said_lost.insert(why.clone());
            }
        }
        if self.states.failed.len() < 4 {
            self.states.failed.push(why);
        }
    }

    fn row(&mut self, row: &str) {
        let values: Vec<&str> = row.split(',').map(str::trim).collect();
        if values.len() != self.fields.len() {
            self.odd_row_after |= self.is_after();
            return;
        }
        let value = |name: &str| {
            let at = self.fields.iter().position(|field| field == name)?;
            values.get(at).copied()
        };
        let number = |name: &str| value(name)?.parse::<f64>().ok().filter(|number| number.is_finite());
        let count = |name: &str| value(name)?.parse::<u64>().ok();
        let hex = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
        let yes = |name: &str| match value(name)? {
            "Yes" | "yes" | "1" => Some(true),
            "No" | "no" | "0" => Some(false),
            _ => None,
        };
        let pending =
            [yes("retired_pages.pending"), yes("remapped_rows.pending"), yes("remapped_rows.failure")];
        let reading = Reading {
            at_s: self.now_s,
            phase: self.phase,
            width: number("pcie.link.width.current").zip(number("pcie.link.width.max")),
            generation: number("pcie.link.gen.current").zip(number("pcie.link.gen.max")),
            clock: number("clocks.current.sm").zip(number("clocks.max.sm")),
            temperature: number("temperature.gpu"),
            reasons: value("clocks_event_reasons.active").and_then(hex),
            uncorrected: count("ecc.errors.uncorrected.volatile.total"),
            corrected: count("ecc.errors.corrected.volatile.total"),
            memory_pending: pending.into_iter().flatten().reduce(|one, other| one || other),
            // nvidia-smi counts in MiB.
            memory_used: number("memory.used").map(|used| used * 1_048_576.0),
        };
        let Some(index) = value("index").and_then(|index| index.parse::<u32>().ok()) else { return };
        if let Some(gpu) = self.gpu(index).filter(|gpu| gpu.readings.len() < MOST_READINGS) {
            gpu.readings.push(reading);
        }
    }

    /// `GPU 0: NVIDIA H100 (UUID: ...)`, `Link 3: 26.562 GB/s`, `Link 3: <inactive>`, `Link 3: Replay Errors: 0`.
    fn link(&mut self, line: &str) {
        if let Some(rest) = line.strip_prefix("GPU ") {
            self.linked = rest.split(':').next().and_then(|gpu| gpu.trim().parse().ok());
            return;
        }
        if let Some(gpu) = self.linked.filter(|_| line.to_ascii_lowercase().contains(LINKLESS)) {
            if self.linkless.len() < 2 * MOST_GPUS {
                self.linkless.insert((gpu, self.is_after()));
            }
            return;
        }
        let (Some(gpu), Some(rest)) = (self.linked, line.strip_prefix("Link ")) else { return };
        let Some((link, what)) = rest.split_once(':') else { return };
        let (what, key) = (what.trim(), (gpu, self.is_after()));
        if self.errors.len() + self.links.len() > 4 * MOST_GPUS {
            return;
        }
        match what.rsplit_once(':') {
            Some((name, count)) if is_error(name) => {
                if let Ok(count) = count.trim().parse::<u64>() {
                    let sum = self.errors.entry(key).or_default();
                    *sum = sum.saturating_add(count);
                }
            }
            Some(_) => {}
            None => {
                let Some(link) = link.trim().parse::<u32>().ok().filter(|link| *link < 256) else { return };
                *self.links.entry(key).or_default().entry(link).or_default() |= what.contains("inactive");
            }
        }
    }

    /// A query that broke off, or a row that cannot be read, leaves out GPUs that are sound.
    fn find_lost(&mut self) {
        let listed = |gpu: &Gpu, phase: Phase| gpu.readings.iter().any(|reading| reading.phase == phase);
        let gpus = self.states.gpus.values();
        let missing =
            gpus.clone().filter(|gpu| listed(gpu, Phase::Before) && !listed(gpu, Phase::After)).count();
        let has_others = gpus.clone().any(|gpu| listed(gpu, Phase::After));
        let is_explained = !self.failed_after || missing <= self.said_lost.len();
        if self.states.complete && has_others && is_explained && !self.odd_row_after {
            for gpu in self.states.gpus.values_mut() {
                gpu.lost = listed(gpu, Phase::Before) && !listed(gpu, Phase::After);
            }
        }
    }

    fn finish(mut self) -> GpuStates {
        self.find_lost();
        // Where no GPU of the node has links, none misses any.
        if !self.links.is_empty() {
            for key in &self.linkless {
                self.links.entry(*key).or_default();
            }
        }
        let linked: BTreeSet<u32> =
            self.links.keys().chain(self.errors.keys()).map(|(gpu, _)| *gpu).collect();
        for index in linked {
            let active = |after: bool| -> Option<BTreeSet<u32>> {
                let links = self.links.get(&(index, after))?;
                Some(links.iter().filter(|(_, is_down)| !**is_down).map(|(link, _)| *link).collect())
            };
            let links =
                active(false).zip(active(true)).map(|(one, other)| one.intersection(&other).count() as u32);
            let errors = |after: bool| self.errors.get(&(index, after)).copied();
            // Counters that were reset in between count from 0.
            let link_errors = errors(false)
                .zip(errors(true))
                .map(|(before, after)| if after < before { after } else { after - before });
            if let Some(gpu) = self.gpu(index) {
                (gpu.links, gpu.link_errors) = (links, link_errors);
            }
        }
        if let (Some(before), Some(after), false) = (self.xids.get(&false), self.xids.get(&true), self.no_log)
        {
            self.states.new_xids = Some(after.difference(before).cloned().collect());
        }
        self.states
    }
}

/// `NVML: Unable to retrieve Nvlink information as all links are inActive`, below the GPU's name.
const LINKLESS: &str = "all links are inactive";

/// In what nvidia-smi says of a GPU that it goes on without.
const SAID_LOST: [&str; 2] = ["Unable to determine", "is lost"];

/// What speaks against a link. Words that were mended on the way (`FEC`, `Raw`, `Symbol`) are counted by the million on sound
/// ones from NVLink 5 on.
fn is_error(name: &str) -> bool {
    const AGAINST: [&str; 11] = [
        "replay error",
        "recovery error",
        "crc",
        "malformed packet",
        "buffer overrun",
        "local link integrity",
        "link recovery failed",
        "effective error",
        "rx errors",
        "rx remote errors",
        "rx general errors",
    ];
    let name = name.to_ascii_lowercase();
    AGAINST.iter().any(|word| name.contains(word))
}
