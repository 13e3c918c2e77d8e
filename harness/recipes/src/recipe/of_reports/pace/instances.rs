//! The instances of all names in one report: kernels, ranges, and ranges projected on the GPUs.

use nsys::export::ExportError;
use nsys::tables::KERNEL;
use nsys::trace::nesting::threads;
use nsys::trace::nvtx::Ranges;
use nsys::trace::projection::project;
use nsys::trace::{Keys, Part, Trace, pid_of, process_of};
use serde::{Deserialize, Serialize};

/// Reads them; nothing where a report has none.
pub(super) type Source = fn(&Trace) -> Result<Option<Instances>, ExportError>;

pub(super) struct Instances {
    pub names: Vec<Name>,
    pub places: Vec<Track>,
    pub all: Vec<Instance>,
}

/// How something is called, and how else it may be asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Name {
    pub shown: String,
    pub short: String,
}

impl Name {
    /// The default domain has no name, and its colon may be left out.
    pub(super) fn is(&self, asked: &str) -> bool {
        [self.shown.as_str(), self.short.as_str()].contains(&asked)
            || asked.strip_prefix(':') == Some(self.shown.as_str())
    }
}

/// Where instances follow one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Track {
    pub pid: Option<i64>,
    /// None of a range.
    pub device: Option<i64>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Instance {
    pub name: u32,
    pub place: u32,
    pub start: i64,
    pub end: i64,
}

impl Instance {
    /// None ends before it begins, and the distance of any two 64-bit numbers fits.
    pub(super) fn ns(&self) -> u64 {
        self.end.wrapping_sub(self.start) as u64
    }
}

pub(super) fn kernels(trace: &Trace) -> Result<Option<Instances>, ExportError> {
    let columns = ["start", "end", "deviceId", "globalPid", "demangledName", "shortName"];
    let Some(rows) = trace.rows(&KERNEL, &columns)? else { return Ok(None) };
    let (starts, ends) = (rows.ints("start")?, rows.ints("end")?);
    // Counts what is left out, for the note.
    trace.durations("kernels", starts, ends);
    let strings = trace.strings()?;
    let whole = Part::named(rows.ints("demangledName")?.iter().copied(), strings, |name| name);
    let shorts = rows.ints("shortName")?;
    let mut names: Vec<Option<Name>> = vec![None; whole.labels.len()];
    for (number, short) in whole.of_row.iter().zip(shorts) {
        let number = *number as usize;
        if names[number].is_none() {
            let (shown, short) = (whole.labels[number].clone(), strings.render(*short).into_owned());
            names[number] = Some(Name { shown, short });
        }
    }
    let processes = rows.maybe_ints("globalPid")?;
    // A process is no negative number; what was not recorded is.
    let process = Part::numbers((0..starts.len()).map(|row| processes.get(row).map_or(-1, pid_of)));
    let device = Part::numbers(rows.ints("deviceId")?.iter().copied());
    let keys = Keys::by(&[&process.of_row, &device.of_row]);
    let places = keys.groups.iter().map(|group| Track {
        pid: Some(process.labels[group[0] as usize]).filter(|pid| *pid >= 0),
        device: Some(device.labels[group[1] as usize]),
    });
    let places = places.collect();
    let kept = (0..starts.len()).filter(|row| ends[*row] >= starts[*row]);
    let all = kept.map(|row| Instance {
        name: whole.of_row[row],
        place: keys.of_row[row],
        start: starts[row],
        end: ends[row],
    });
    let all = all.collect();
    Ok(some(Instances { names: names.into_iter().flatten().collect(), places, all }))
}

pub(super) fn ranges(trace: &Trace) -> Result<Option<Instances>, ExportError> {
    let Some(ranges) = Ranges::read(trace)? else { return Ok(None) };
    let spans = (0..ranges.len()).map(|row| (row, ranges.start[row], ranges.end[row])).collect();
    Ok(from_ranges(&ranges, spans))
}

pub(super) fn projections(trace: &Trace) -> Result<Option<Instances>, ExportError> {
    let Some(ranges) = Ranges::read(trace)? else { return Ok(None) };
    let work = project(trace, &ranges, &threads(&ranges))?;
    let across = ranges.end_tid.iter().flatten().count();
    if across > 0 {
        trace.note(format!("NVTX: ranges that end on another thread, not projected: {across}"));
    }
    let work = work.iter().enumerate().filter_map(|(row, work)| Some((row, (*work)?)));
    Ok(from_ranges(&ranges, work.map(|(row, work)| (row, work.start, work.end)).collect()))
}

/// Rows of ranges with what is asked of each.
fn from_ranges(ranges: &Ranges, spans: Vec<(usize, i64, i64)>) -> Option<Instances> {
    let mut names: Vec<Option<Name>> = vec![None; ranges.label.labels.len()];
    for (row, ..) in &spans {
        let name = &mut names[ranges.label.of_row[*row] as usize];
        if name.is_none() {
            let short = ranges.name(*row).to_owned();
            let shown = match ranges.domain(*row) {
                "" => short.clone(),
                _ => ranges.label(*row).to_owned(),
            };
            *name = Some(Name { shown, short });
        }
    }
    // Labels that no span has are none of the names.
    let mut number = vec![0; names.len()];
    let mut kept = Vec::new();
    for (label, name) in names.into_iter().enumerate() {
        if let Some(name) = name {
            number[label] = kept.len() as u32;
            kept.push(name);
        }
    }
    let process = Part::numbers(spans.iter().map(|(row, ..)| pid_of(process_of(ranges.global_tid[*row]))));
    let places = process.labels.iter().map(|pid| Track { pid: Some(*pid), device: None }).collect();
    let all = spans.iter().zip(&process.of_row).map(|((row, start, end), place)| Instance {
        name: number[ranges.label.of_row[*row] as usize],
        place: *place,
        start: *start,
        end: *end,
    });
    some(Instances { names: kept, places, all: all.collect() })
}

fn some(instances: Instances) -> Option<Instances> {
    (!instances.all.is_empty()).then_some(instances)
}
