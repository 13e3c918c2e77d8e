//! Reads an excerpt back from its file, for pages. The file may come from anywhere: its size is bounded, and what is not
//! as this program writes it is an error.

use serde::Deserialize;
use std::collections::BTreeMap;

/// A file that is larger was not written by this program for a page.
pub const MOST_BYTES: u64 = 16 << 20;

/// An excerpt as a page shows it: ranks in the order of the file, the one to look at first.
#[derive(Debug, PartialEq)]
pub struct ReadTrace {
    /// As in `Excerpt::window`.
    pub window: String,
    /// As in `Excerpt::ns`.
    pub ns: u64,
    /// As in `Excerpt::is_aligned`.
    pub is_aligned: bool,
    /// As in `Excerpt::clocks`.
    pub clocks: String,
    /// As in `Excerpt::look`.
    pub look: String,
    /// As in `Excerpt::kept`.
    pub kept: u64,
    /// As in `Excerpt::merged`.
    pub merged: u64,
    /// Ranks first, then the NICs of nodes.
    pub processes: Vec<ReadProcess>,
}

/// A rank, or the NICs of a node.
#[derive(Debug, Default, PartialEq)]
pub struct ReadProcess {
    /// `rank 3 · p5-001`.
    pub name: String,
    /// In the order of the file.
    pub tracks: Vec<ReadTrack>,
    /// By its name: begins in microseconds and values.
    pub counters: BTreeMap<String, Vec<(f64, f64)>>,
}

/// A row of a rank.
#[derive(Debug, Default, PartialEq)]
pub struct ReadTrack {
    /// `GPU 0, stream 7`.
    pub name: String,
    /// In the order of the file.
    pub slices: Vec<ReadSlice>,
}

/// One slice, in microseconds.
#[derive(Debug, PartialEq)]
pub struct ReadSlice {
    /// `compute`, `communication`, `nccl`, `nvtx`, `memory` or `merged`.
    pub category: String,
    /// Of the kernel, range or call.
    pub name: String,
    /// Since the begin of the window, where clocks are aligned.
    pub start: f64,
    /// Its length.
    pub length: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    other_data: OtherData,
    trace_events: Vec<Event>,
}

#[derive(Deserialize)]
struct OtherData {
    window: String,
    window_ns: u64,
    is_aligned: bool,
    clocks: String,
    look: String,
    kept: u64,
    merged: u64,
}

#[derive(Deserialize)]
struct Event {
    ph: char,
    pid: u32,
    tid: u32,
    ts: f64,
    #[serde(default)]
    dur: f64,
    #[serde(default)]
    cat: String,
    name: String,
    #[serde(default)]
    args: Args,
}

#[derive(Default, Deserialize)]
struct Args {
    #[serde(default)]
    name: String,
    #[serde(default)]
    value: Option<f64>,
}

/// The excerpt in the bytes of a file.
pub fn read(bytes: &[u8]) -> Result<ReadTrace, String> {
    if bytes.len() as u64 > MOST_BYTES {
        return Err(format!("larger than {} MiB", MOST_BYTES >> 20));
    }
    let file: File = serde_json::from_slice(bytes).map_err(|error| format!("not an excerpt: {error}"))?;
    let mut processes: BTreeMap<u32, (ReadProcess, BTreeMap<u32, ReadTrack>)> = BTreeMap::new();
    for event in file.trace_events {
        let (process, tracks) = processes.entry(event.pid).or_default();
        match (event.ph, event.name.as_str()) {
            ('M', "process_name") => process.name = event.args.name,
            ('M', "thread_name") => tracks.entry(event.tid).or_default().name = event.args.name,
            ('X', _) => tracks.entry(event.tid).or_default().slices.push(ReadSlice {
                category: event.cat,
                name: event.name,
                start: event.ts,
                length: event.dur.max(0.0),
            }),
            ('C', _) => {
                let points = process.counters.entry(event.name).or_default();
                points.extend(event.args.value.map(|value| (event.ts, value)));
            }
            _ => {}
        }
    }
    let processes = processes.into_values().map(|(process, tracks)| {
        let tracks = tracks.into_values().collect();
        ReadProcess { tracks, ..process }
    });
    let OtherData { window, window_ns, is_aligned, clocks, look, kept, merged } = file.other_data;
    let processes = processes.collect();
    Ok(ReadTrace { window, ns: window_ns, is_aligned, clocks, look, kept, merged, processes })
}
