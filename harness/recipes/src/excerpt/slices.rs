//! What one rank did in the window: kernels by stream, ranges and calls of NCCL by thread. Of each kind the longest
//! slices are kept; the others are counted, by track and bin of time.

use super::lanes::lay;
use crate::kernel_class::{class_of_both, communicates};
use crate::result_table::visible;
use nsys::export::ExportError;
use nsys::nccl::{NcclCalls, is_of_nccl};
use nsys::tables::{KERNEL, MEMCPY, MEMSET};
use nsys::trace::nvtx::Ranges;
use nsys::trace::{Trace, tid_of};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

/// What a slice is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum SliceKind {
    Range,
    NcclCall,
    Communication,
    Compute,
    Memory,
}

impl SliceKind {
    /// The category in the file.
    pub(super) fn name(self) -> &'static str {
        match self {
            SliceKind::Range => "nvtx",
            SliceKind::NcclCall => "nccl",
            SliceKind::Communication => "communication",
            SliceKind::Compute => "compute",
            SliceKind::Memory => "memory",
        }
    }
}

/// Ranges, calls, and what runs on GPUs: each kind has its own room.
pub(super) const KINDS: usize = 3;
/// Bins of time in which shorter slices are counted: fewer where few slices are kept, so that they take no more room.
const MOST_BINS: i64 = 100;
const LEAST_BINS: i64 = 5;
/// Tracks of a rank; what is on further ones is counted as on one more.
const MOST_TRACKS: usize = 48;
/// Letters of a name.
const MOST_NAME: usize = 160;

/// One slice, in nanoseconds since the begin of the window.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Slice {
    pub kind: SliceKind,
    pub start: i64,
    pub ns: u64,
    pub name: String,
    /// Its whole length, where the window cuts it.
    pub whole_ns: Option<u64>,
    /// Of a call of NCCL.
    pub bytes: Option<u64>,
    pub communicator: Option<u64>,
}

/// Slices that are not shown one by one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Merged {
    pub start: i64,
    pub ns: u64,
    pub count: u64,
    /// The sum of their lengths.
    pub total_ns: u64,
}

/// A row of a rank. Its slices nest or follow each other.
#[derive(Debug)]
pub(super) struct Track {
    pub name: String,
    pub slices: Vec<Slice>,
    pub merged: Vec<Merged>,
}

/// Of one report.
pub(super) struct Tracks {
    pub tracks: Vec<Track>,
    pub kept: u64,
    pub merged: u64,
}

/// A row of one of the report's tables; names are looked up for those that are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    ns: u64,
    start: i64,
    end: i64,
    track: usize,
    kind: SliceKind,
    /// Of a name, a range or a call.
    source: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum TrackKey {
    Ranges(i64),
    Calls(i64),
    Stream { process: i64, device: i64, stream: i64 },
}

/// All slices of one kind, the longest one by one.
struct Longest {
    most: usize,
    heap: BinaryHeap<Reverse<Candidate>>,
}

/// By track and bin: how many, and their length.
type Rest = BTreeMap<(usize, i64), (u64, u64)>;

struct Collector {
    span: (i64, i64),
    bins: i64,
    keys: BTreeMap<TrackKey, usize>,
    rest: Rest,
}

/// The tracks of a report whose filter is the window; `at` makes times of the report those of the window.
pub(super) fn tracks(
    trace: &Trace,
    span: (i64, i64),
    at: &dyn Fn(i64) -> i128,
    most: usize,
) -> Result<Tracks, ExportError> {
    let bins = i64::try_from(most).unwrap_or(MOST_BINS).clamp(LEAST_BINS, MOST_BINS);
    let mut all = Collector { span, bins, keys: BTreeMap::new(), rest: Rest::new() };
    let new = || Longest { most, heap: BinaryHeap::new() };
    let (mut ranges_kept, mut calls_kept, mut work_kept) = (new(), new(), new());
    let ranges = Ranges::read(trace)?;
    if let Some(ranges) = &ranges {
        for row in 0..ranges.len() {
            if !is_of_nccl(ranges.domain(row), ranges.domain_id[row], ranges.name(row)) {
                let times = (ranges.start[row], ranges.end[row]);
                all.add(
                    TrackKey::Ranges(ranges.global_tid[row]),
                    SliceKind::Range,
                    times,
                    row as i64,
                    &mut ranges_kept,
                );
            }
        }
    }
    let calls = NcclCalls::read(trace)?.unwrap_or_default();
    for (at, call) in calls.calls.iter().enumerate() {
        let times = (call.start, call.end);
        all.add(TrackKey::Calls(call.global_tid), SliceKind::NcclCall, times, at as i64, &mut calls_kept);
    }
    gpu_work(trace, &mut all, &mut work_kept)?;
    let name = |candidate: &Candidate| -> Result<String, ExportError> {
        Ok(match candidate.kind {
            SliceKind::Range => {
                let row = candidate.source as usize;
                ranges
                    .as_ref()
                    .map_or_else(String::new, |ranges| short(ranges.label(row).trim_start_matches(':')))
            }
            SliceKind::NcclCall => calls.calls[candidate.source as usize].function.name().to_owned(),
            SliceKind::Memory => MEMORY[(candidate.source as usize).min(1)].to_owned(),
            _ => short(&trace.strings()?.render(candidate.source)),
        })
    };
    let mut of_track: BTreeMap<usize, Vec<Slice>> = BTreeMap::new();
    for candidate in
        [ranges_kept, calls_kept, work_kept].into_iter().flat_map(|kept| kept.heap).map(|kept| kept.0)
    {
        let call = (candidate.kind == SliceKind::NcclCall).then(|| &calls.calls[candidate.source as usize]);
        let (start, end) = (candidate.start.max(span.0), candidate.end.min(span.1));
        let (from, to) = (narrow(at(start)), narrow(at(end)));
        let is_cut = (start, end) != (candidate.start, candidate.end);
        of_track.entry(candidate.track).or_default().push(Slice {
            kind: candidate.kind,
            start: from,
            ns: to.saturating_sub(from).max(0) as u64,
            name: name(&candidate)?,
            whole_ns: is_cut.then_some(candidate.ns),
            bytes: call.and_then(|call| call.bytes),
            communicator: call.and_then(|call| call.communicator),
        });
    }
    let tracks = all.into_tracks(of_track, at);
    let of_all = |count: fn(&Track) -> u64| tracks.iter().map(count).sum();
    let kept = of_all(|track| track.slices.len() as u64);
    let merged = of_all(|track| track.merged.iter().map(|merged| merged.count).sum());
    Ok(Tracks { tracks, kept, merged })
}

const MEMORY: [&str; 2] = ["copy", "fill"];

fn gpu_work(trace: &Trace, all: &mut Collector, kept: &mut Longest) -> Result<(), ExportError> {
    let columns = ["start", "end", "deviceId", "streamId", "shortName", "demangledName", "globalPid"];
    if let Some(rows) = trace.rows(&KERNEL, &columns)? {
        let (starts, ends) = (rows.ints("start")?, rows.ints("end")?);
        let (devices, streams) = (rows.ints("deviceId")?, rows.ints("streamId")?);
        let (shorts, wholes) = (rows.ints("shortName")?, rows.ints("demangledName")?);
        let pids = rows.maybe_ints("globalPid")?;
        let strings = trace.strings()?;
        let mut kinds: HashMap<(i64, i64), SliceKind> = HashMap::new();
        trace.durations("kernels", starts, ends);
        for row in 0..rows.len() {
            let kind = *kinds.entry((shorts[row], wholes[row])).or_insert_with(|| {
                let class = class_of_both(&strings.render(shorts[row]), &strings.render(wholes[row]));
                if communicates(class) { SliceKind::Communication } else { SliceKind::Compute }
            });
            let process = pids.get(row).unwrap_or_default();
            let key = TrackKey::Stream { process, device: devices[row], stream: streams[row] };
            all.add(key, kind, (starts[row], ends[row]), shorts[row], kept);
        }
    }
    for (spec, which) in [(&MEMCPY, 0), (&MEMSET, 1)] {
        let Some(rows) = trace.rows(spec, &["start", "end", "deviceId", "streamId", "globalPid"])? else {
            continue;
        };
        let (starts, ends) = (rows.ints("start")?, rows.ints("end")?);
        let (devices, streams) = (rows.ints("deviceId")?, rows.maybe_ints("streamId")?);
        let pids = rows.maybe_ints("globalPid")?;
        trace.durations("memory operations", starts, ends);
        for row in 0..rows.len() {
            let process = pids.get(row).unwrap_or_default();
            let stream = streams.get(row).unwrap_or_default();
            let key = TrackKey::Stream { process, device: devices[row], stream };
            all.add(key, SliceKind::Memory, (starts[row], ends[row]), which, kept);
        }
    }
    Ok(())
}

impl Collector {
    /// Rows that end before they begin are in a note already.
    fn add(
        &mut self,
        key: TrackKey,
        kind: SliceKind,
        (start, end): (i64, i64),
        source: i64,
        kept: &mut Longest,
    ) {
        if end < start {
            return;
        }
        let tracks = self.keys.len();
        let track = match self.keys.get(&key) {
            Some(track) => *track,
            None if tracks < MOST_TRACKS => *self.keys.entry(key).or_insert(tracks),
            None => {
                self.count(&Candidate {
                    ns: end.abs_diff(start),
                    start,
                    end,
                    track: MOST_TRACKS,
                    kind,
                    source,
                });
                return;
            }
        };
        kept.heap.push(Reverse(Candidate { ns: end.abs_diff(start), start, end, track, kind, source }));
        if kept.heap.len() > kept.most
            && let Some(Reverse(shortest)) = kept.heap.pop()
        {
            self.count(&shortest);
        }
    }

    /// In the bin of its begin.
    fn count(&mut self, one: &Candidate) {
        let begin = one.start.clamp(self.span.0, self.span.1).saturating_sub(self.span.0);
        let bin = (i128::from(begin) * i128::from(self.bins) / i128::from(self.length()))
            .min(i128::from(self.bins - 1));
        let (count, ns) = self.rest.entry((one.track, bin as i64)).or_default();
        *count += 1;
        let within = one.end.min(self.span.1).saturating_sub(one.start.max(self.span.0)).max(0);
        *ns = ns.saturating_add(within as u64);
    }

    fn length(&self) -> i64 {
        self.span.1.saturating_sub(self.span.0).max(1)
    }

    /// In the order of their keys; slices that would cross others of their track are on a further one.
    fn into_tracks(self, mut of_track: BTreeMap<usize, Vec<Slice>>, at: &dyn Fn(i64) -> i128) -> Vec<Track> {
        let bin_ns = self.length() as f64 / self.bins as f64;
        let border = |bin: i64| narrow(at(self.span.0.saturating_add((bin as f64 * bin_ns) as i64)));
        let merged = |track: usize| {
            let of_track = self.rest.range((track, 0)..(track + 1, 0));
            let merged = of_track.map(|((_, bin), (count, total_ns))| Merged {
                start: border(*bin),
                ns: border(bin + 1).saturating_sub(border(*bin)).max(1) as u64,
                count: *count,
                total_ns: *total_ns,
            });
            merged.collect::<Vec<_>>()
        };
        let mut tracks = Vec::new();
        for (key, track) in &self.keys {
            let name = key.name();
            let (lanes, crossing) = lay(of_track.remove(track).unwrap_or_default());
            let count = lanes.len();
            for (at, slices) in lanes.into_iter().enumerate() {
                let name = if count > 1 { format!("{name} ({} of {count})", at + 1) } else { name.clone() };
                tracks.push(Track { name, slices, merged: Vec::new() });
            }
            for (name, merged) in [("shorter ones", merged(*track)), ("crossing ones", crossing)] {
                if !merged.is_empty() {
                    tracks.push(Track {
                        name: format!("{}: {name}", key.name()),
                        slices: Vec::new(),
                        merged,
                    });
                }
            }
        }
        let others = merged(MOST_TRACKS);
        if !others.is_empty() {
            tracks.push(Track {
                name: "more threads and streams".to_owned(),
                slices: Vec::new(),
                merged: others,
            });
        }
        tracks
    }
}

impl TrackKey {
    fn name(&self) -> String {
        match self {
            TrackKey::Ranges(tid) => format!("NVTX, thread {}", tid_of(*tid)),
            TrackKey::Calls(tid) => format!("NCCL calls, thread {}", tid_of(*tid)),
            TrackKey::Stream { device, stream, .. } => format!("GPU {device}, stream {stream}"),
        }
    }
}

/// A name that is fit to be shown.
pub(super) fn short(name: &str) -> String {
    let visible = visible(name);
    match visible.char_indices().nth(MOST_NAME) {
        Some((at, _)) => format!("{}…", &visible[..at]),
        None => visible.into_owned(),
    }
}

fn narrow(time: i128) -> i64 {
    i64::try_from(time).unwrap_or(if time < 0 { i64::MIN } else { i64::MAX })
}
