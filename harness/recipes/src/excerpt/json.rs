//! The excerpt as a trace of Chrome's JSON format, which Perfetto reads: a process for each rank, a thread for each of its
//! tracks, a process for the NICs of each node. It is written event by event.

use super::slices::{Merged, Slice, Track};
use super::{Excerpt, Process};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Of what `otherData` holds.
const FORMAT: u32 = 1;

/// Writes the file; gives its number of events.
pub fn write(excerpt: &Excerpt, out: &mut dyn Write) -> io::Result<u64> {
    let other = OtherData {
        excerpt: FORMAT,
        window: &excerpt.window,
        window_ns: excerpt.ns,
        is_aligned: excerpt.is_aligned,
        clocks: &excerpt.clocks,
        look: &excerpt.look,
        simulated: excerpt.is_simulated,
        kept: excerpt.kept,
        merged: excerpt.merged,
        notes: &excerpt.notes,
        unreadable: excerpt.unreadable.iter().map(|(report, why)| format!("{report}: {why}")).collect(),
    };
    write!(out, "{{\"displayTimeUnit\":\"ns\",\"otherData\":{},\n\"traceEvents\":[", json(&other)?)?;
    let mut events = Events { out, count: 0 };
    for (at, process) in excerpt.processes.iter().enumerate() {
        process_events(at + 1, process, &mut events)?;
    }
    counter_events(excerpt, &mut events)?;
    let count = events.count;
    writeln!(out, "\n]}}")?;
    Ok(count)
}

#[derive(Serialize)]
struct OtherData<'a> {
    excerpt: u32,
    window: &'a str,
    window_ns: u64,
    is_aligned: bool,
    clocks: &'a str,
    look: &'a str,
    simulated: bool,
    kept: u64,
    merged: u64,
    notes: &'a [String],
    unreadable: Vec<String>,
}

struct Events<'a> {
    out: &'a mut dyn Write,
    count: u64,
}

impl Events<'_> {
    fn put(&mut self, event: &str) -> io::Result<()> {
        let comma = if self.count > 0 { "," } else { "" };
        self.count += 1;
        write!(self.out, "{comma}\n{event}")
    }

    /// What names or sorts a process or thread.
    fn metadata(&mut self, pid: usize, tid: usize, what: &str, args: &impl Serialize) -> io::Result<()> {
        let args = json(args)?;
        self.put(&format!(
            "{{\"ph\":\"M\",\"pid\":{pid},\"tid\":{tid},\"ts\":0,\"name\":\"{what}\",\"args\":{args}}}"
        ))
    }

    fn name(&mut self, pid: usize, tid: usize, what: &str, name: &str) -> io::Result<()> {
        self.metadata(pid, tid, what, &Text { name })
    }
}

fn process_events(pid: usize, process: &Process, events: &mut Events<'_>) -> io::Result<()> {
    events.name(pid, 0, "process_name", &format!("{} · {}", process.called, process.node))?;
    events.metadata(pid, 0, "process_labels", &BTreeMap::from([("labels", &process.file)]))?;
    sort(pid, 0, "process_sort_index", pid, events)?;
    for (at, track) in process.tracks.iter().enumerate() {
        let tid = at + 1;
        events.name(pid, tid, "thread_name", &track.name)?;
        sort(pid, tid, "thread_sort_index", tid, events)?;
        track_events(pid, tid, track, events)?;
    }
    Ok(())
}

fn sort(pid: usize, tid: usize, what: &str, place: usize, events: &mut Events<'_>) -> io::Result<()> {
    events.metadata(pid, tid, what, &BTreeMap::from([("sort_index", place)]))
}

fn track_events(pid: usize, tid: usize, track: &Track, events: &mut Events<'_>) -> io::Result<()> {
    for slice in &track.slices {
        let Slice { kind, start, ns, name, whole_ns, bytes, communicator } = slice;
        let communicator = communicator.map(|id| format!("{id:#x}"));
        let args = Args { whole_ns: *whole_ns, bytes: *bytes, communicator, ..Args::default() };
        events.put(&complete((pid, tid), (*start, *ns), kind.name(), name, &args)?)?;
    }
    for Merged { start, ns, count, total_ns } in &track.merged {
        let args = Args { count: Some(*count), total_ns: Some(*total_ns), ..Args::default() };
        let name = format!("{count} slices, {} in all", micros(*total_ns as i64) + " us");
        events.put(&complete((pid, tid), (*start, *ns), "merged", &name, &args)?)?;
    }
    Ok(())
}

fn complete(
    (pid, tid): (usize, usize),
    (start, ns): (i64, u64),
    category: &str,
    name: &str,
    args: &Args,
) -> io::Result<String> {
    let (ts, dur) = (micros(start), micros(i64::try_from(ns).unwrap_or(i64::MAX)));
    let args = match args {
        none if *none == Args::default() => String::new(),
        some => format!(",\"args\":{}", json(some)?),
    };
    Ok(format!(
        "{{\"ph\":\"X\",\"pid\":{pid},\"tid\":{tid},\"ts\":{ts},\"dur\":{dur},\"cat\":\"{category}\",\"name\":{}{args}}}",
        json(&name)?
    ))
}

fn counter_events(excerpt: &Excerpt, events: &mut Events<'_>) -> io::Result<()> {
    let mut pids: BTreeMap<&str, usize> = BTreeMap::new();
    for counter in &excerpt.counters {
        let next = excerpt.processes.len() + pids.len() + 1;
        let pid = *pids.entry(&counter.node).or_insert(next);
        if pid == next {
            events.name(pid, 0, "process_name", &format!("NICs · {}", counter.node))?;
            sort(pid, 0, "process_sort_index", pid, events)?;
        }
        let coarse = counter.coarse_ns.map(|ns| format!(", mean of {} ms", ns.div_ceil(1_000_000)));
        let coarse = coarse.unwrap_or_default();
        let name = json(&format!("{} {} ({}{coarse})", counter.device, counter.counter, counter.unit))?;
        for (start, value) in &counter.points {
            let ts = micros(*start);
            let value = json(value)?;
            events.put(&format!(
                "{{\"ph\":\"C\",\"pid\":{pid},\"tid\":0,\"ts\":{ts},\"name\":{name},\"args\":{{\"value\":{value}}}}}"
            ))?;
        }
    }
    Ok(())
}

/// Microseconds with all their nanoseconds: 64 bits of a float would not hold them.
fn micros(ns: i64) -> String {
    let (sign, ns) = (if ns < 0 { "-" } else { "" }, ns.unsigned_abs());
    match ns % 1000 {
        0 => format!("{sign}{}", ns / 1000),
        part => format!("{sign}{}.{part:03}", ns / 1000),
    }
}

fn json(value: &impl Serialize) -> io::Result<String> {
    serde_json::to_string(value).map_err(io::Error::other)
}

/// The name of a process or thread.
#[derive(Serialize)]
struct Text<'a> {
    name: &'a str,
}

/// Of a slice.
#[derive(Default, PartialEq, Serialize)]
struct Args {
    #[serde(skip_serializing_if = "Option::is_none")]
    whole_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    communicator: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_ns: Option<u64>,
}
