//! Counters of EFA over time, of one source per host: what the harness's own sampler wrote, where a report has it beside
//! it, else the events of a plugin of the profiler.

mod names;
mod rates;
mod render;
mod source;
#[cfg(test)]
mod tests;

pub(crate) use rates::{NicRates, capture_files, capture_rates, report_rates};

use super::window::{BINS, Coverage, NO_SHIFT, PlacedReport, Window};
use crate::recipe::of_reports::columns::{OutputTable, TableDoc};
use crate::recipe::of_reports::generic::GENERIC_TABLES;
use crate::recipe::of_reports::together::{Extract as AnyExtract, Share, Together};
use crate::recipe::of_reports::{Made, RecipeKind, ReportExtract, ReportRecipe, encoding};
use crate::report::argument;
use crate::report::{ArgumentSpec, Arguments, Takes};
use logs::efa_counters::{is_called_so, read_file};
use nsys::regular_file;
use nsys::trace::Trace;
use serde::{Deserialize, Serialize};
use source::{Mode, Source, from_capture, from_events};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

pub(in super::super) const NETWORK_MAP_AWS: ReportRecipe = ReportRecipe {
    name: "network_map_aws",
    title: "EFA Counters over Time",
    about: "traffic and errors of each EFA device of each host, by counter and over time",
    definition: "one source per host: a capture of the harness's own sampler (a file `counters.NODE.txt` beside the \
                 report, or named as input), which has the counters as read; else the events of the EFA plugin in the \
                 first of the host's reports. Every device of a node is in each report of that node. A plugin's value \
                 is a rate over the time since the sample before it; `delta` and `total` say that the plugin ran in \
                 another mode. For a capture it is the difference of two readings over the time between them; where a \
                 counter fell, nothing is measured. A cell is the mean of the rates in its bin, weighted by time; \
                 where none is known it is empty, never 0. Counters at rest on every device are only in the totals. \
                 Values of 2,147,483,647 a second are reported as saturated, the maximum of samplers of 2024",
    arguments: &[BINS, NO_SHIFT, DELTA, TOTAL],
    tables: GENERIC_TABLES,
    kind: RecipeKind::Together(&OverHosts),
};

const DELTA: ArgumentSpec =
    argument!("delta", "values of events are increments since the sample before", Takes::Nothing, "mode");

const TOTAL: ArgumentSpec =
    argument!("total", "values of events are totals since the start", Takes::Nothing, "mode");

struct OverHosts;

/// The events of a report, and the captures beside it.
#[derive(Serialize, Deserialize)]
struct Extract {
    events: Option<Source>,
    captures: Vec<PathBuf>,
    asked: Option<(i64, i64)>,
}

/// Captures by their files: several reports lie beside one, and the first that comes reads it.
type Captures = BTreeMap<PathBuf, Option<Arc<Captured>>>;

#[derive(Serialize, Deserialize)]
struct Captured {
    node: String,
    utc_epoch_ns: Option<i64>,
    source: Option<Source>,
    why_not: Option<String>,
}

impl Together for OverHosts {
    fn tables(&self) -> Vec<OutputTable> {
        let tables: &[TableDoc] = &[
            TableDoc {
                name: "totals",
                about: "one row per counter of a device",
                columns: &[&[
                    "Host",
                    "Device",
                    "Counter",
                    "Unit",
                    "From: the source of the samples",
                    "Samples",
                    "Saturated: samples at the largest value that a counter holds",
                    "Measured",
                    "Mean",
                    "Max",
                ]],
            },
            TableDoc {
                name: "heatmap",
                about: "one row per bin of time of each",
                columns: &[&["Host", "Device", "Counter", "Unit", "Start", "End", "Measured", "Mean"]],
            },
        ];
        tables.iter().map(TableDoc::table).collect()
    }

    fn charts(&self) -> &'static [(&'static str, &'static str)] {
        &[("COUNTER", "the rate of each counter over time, by device")]
    }

    fn begin(&self) -> AnyExtract {
        Box::new(Captures::new())
    }

    /// A file that two processes read is one file.
    fn join(&self, all: &mut AnyExtract, more: AnyExtract) {
        let (Some(all), Ok(more)) = (all.downcast_mut::<Captures>(), more.downcast::<Captures>()) else {
            return;
        };
        for (path, captured) in *more {
            let known = all.entry(path).or_default();
            *known = known.take().or(captured);
        }
    }

    fn to_bytes(&self, extract: &AnyExtract) -> Result<Vec<u8>, String> {
        encoding::extract_to_bytes::<Extract>(extract)
    }

    fn read_bytes(&self, bytes: &[u8]) -> Result<AnyExtract, String> {
        encoding::extract_from_bytes::<Extract>(bytes)
    }

    fn all_to_bytes(&self, all: &AnyExtract) -> Result<Vec<u8>, String> {
        encoding::extract_to_bytes::<Captures>(all)
    }

    fn all_from_bytes(&self, bytes: &[u8]) -> Result<AnyExtract, String> {
        encoding::extract_from_bytes::<Captures>(bytes)
    }

    fn take(&self, trace: &Trace, arguments: &Arguments, all: &Mutex<AnyExtract>) -> Share<AnyExtract> {
        let mode = match (arguments.has(DELTA.name), arguments.has(TOTAL.name)) {
            (true, _) => Mode::SinceTheLast,
            (_, true) => Mode::SinceTheStart,
            _ => Mode::PerSecond,
        };
        let events = from_events(trace, mode)?;
        let captures = captures_at(trace);
        for path in &captures {
            // Its place is taken first, so that no other report reads it too.
            let is_new = {
                let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                all.downcast_mut::<Captures>().is_some_and(|all| {
                    let is_new = !all.contains_key(path);
                    all.entry(path.clone()).or_default();
                    is_new
                })
            };
            if is_new {
                let captured = Arc::new(captured(path));
                let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(all) = all.downcast_mut::<Captures>() {
                    all.insert(path.clone(), Some(captured));
                }
            }
        }
        if trace.is_filtered() && trace.asked_span().is_none() && !captures.is_empty() {
            trace.note("counter captures have no ranges, so they are shown in full".to_owned());
        }
        let values: u64 =
            events.iter().flat_map(|source| source.series.values()).map(|series| series.samples).sum();
        let rows = values + captures.len() as u64;
        let extract = Extract { events, captures, asked: trace.asked_span() };
        Ok((rows > 0).then(|| (Box::new(extract) as AnyExtract, rows)))
    }

    fn make(&self, all: AnyExtract, reports: Vec<ReportExtract<&AnyExtract>>, arguments: &Arguments) -> Made {
        let captures = all.downcast::<Captures>().map(|all| *all).unwrap_or_default();
        let reports: Vec<ReportExtract<&Extract>> = reports
            .into_iter()
            .filter_map(|report| {
                let extract = report.extract.downcast_ref::<Extract>()?;
                let ReportExtract { rank, file, host, utc_epoch_ns, .. } = report;
                Some(ReportExtract { rank, file, host, utc_epoch_ns, extract })
            })
            .collect();
        let mut notes = Vec::new();
        let hosts = chosen(&captures, &reports, &mut notes);
        let placed: Vec<PlacedReport> = hosts.iter().map(Host::placed).collect();
        let Some(window) = Window::over(&placed, arguments) else {
            return Made { notes, ..Made::default() };
        };
        notes.extend(window.notes.iter().cloned());
        render::made(&hosts, &placed, &window, notes)
    }
}

/// The capture that it is, or those that lie in the folder of the report's export.
fn captures_at(trace: &Trace) -> Vec<PathBuf> {
    let path = trace.export().path();
    if trace.export().capture().is_some() {
        return vec![path.to_owned()];
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut paths: Vec<PathBuf> =
        names.filter(|name| is_called_so(name)).map(|name| folder.join(name)).collect();
    paths.sort();
    paths
}

fn captured(path: &Path) -> Captured {
    let (mut why_not, mut node) = (None, String::new());
    let (mut utc_epoch_ns, mut source) = (None, None);
    // Others may be able to write the folder of a report: a pipe there would be waited for.
    let opened = regular_file::open(path).map_err(|error| error.to_string());
    match opened.and_then(|_| read_file(path)) {
        Ok(capture) => {
            source = from_capture(&capture);
            if source.is_none() {
                why_not = Some("it has no reading".to_owned());
            }
            utc_epoch_ns = capture.begin.utc_ns();
            node = capture.node;
        }
        Err(why) => why_not = Some(why),
    }
    Captured { node, utc_epoch_ns, source, why_not }
}

/// The source that is shown for one host.
struct Host<'a> {
    /// As rows name it.
    name: String,
    from: &'static str,
    file: String,
    source: &'a Source,
    utc_epoch_ns: Option<i64>,
    /// On its own clock.
    asked: Option<(i64, i64)>,
}

impl Host<'_> {
    fn placed(&self) -> PlacedReport<'_> {
        let mut coverage = self.source.coverage;
        coverage.asked = self.asked;
        PlacedReport { file: &self.file, coverage, utc_epoch_ns: self.utc_epoch_ns }
    }
}

/// One source of each host: captures before events, and what comes first before what comes later.
fn chosen<'a>(
    captures: &'a Captures,
    reports: &[ReportExtract<&'a Extract>],
    notes: &mut Vec<String>,
) -> Vec<Host<'a>> {
    let mut hosts: Vec<Host> = Vec::new();
    let mut left: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut used: BTreeSet<&Path> = BTreeSet::new();
    let mut put = |host: Host<'a>, hosts: &mut Vec<Host<'a>>| match hosts
        .iter()
        .find(|known| known.name == host.name)
    {
        Some(known) => {
            left.entry(format!("{}: using {}", known.name, known.file)).or_default().insert(host.file);
        }
        None => hosts.push(host),
    };
    for report in reports {
        for path in &report.extract.captures {
            let captured = captures.get(path.as_path()).and_then(Option::as_ref);
            let (Some(captured), true) = (captured, used.insert(path)) else { continue };
            let file = path.display().to_string();
            if let Some(why) = &captured.why_not {
                notes.push(format!("{file}: {why}"));
            }
            let Some(source) = &captured.source else { continue };
            // The filter's span is on the report's clock.
            let later = report.utc_epoch_ns.zip(captured.utc_epoch_ns);
            let later = later.and_then(|(report, capture)| report.checked_sub(capture));
            let asked = report.extract.asked.zip(later);
            let moved = |side: i64, later: i64| match side {
                i64::MIN | i64::MAX => side,
                side => side.saturating_add(later),
            };
            let asked = asked.map(|((from, to), later)| (moved(from, later), moved(to, later)));
            if report.extract.asked.is_some() && asked.is_none() {
                notes.push(format!("{file}: shown in full, since {} lacks its start time", report.file));
            }
            let (from, to) = Coverage { asked, ..source.coverage }.measured();
            if from > to {
                notes.push(format!("{file}: outside of the requested time"));
                continue;
            }
            notes.extend(source.notes.iter().map(|note| format!("{file}: {note}")));
            let (name, utc_epoch_ns) = (captured.node.clone(), captured.utc_epoch_ns);
            put(Host { name, from: "sampler", file, source, utc_epoch_ns, asked }, &mut hosts);
        }
    }
    for report in reports {
        let Some(source) = &report.extract.events else { continue };
        // Without a host's name a report stands for itself.
        let name = report.host.clone().unwrap_or_else(|| format!("rank {}", report.rank));
        let is_shown = hosts.iter().all(|host| host.name != name);
        if is_shown {
            notes.extend(source.notes.iter().map(|note| format!("{}: {note}", report.file)));
        }
        let (file, utc_epoch_ns, asked) = (report.file.clone(), report.utc_epoch_ns, report.extract.asked);
        put(Host { name, from: "nsys", file, source, utc_epoch_ns, asked }, &mut hosts);
    }
    for (host, files) in left {
        notes.push(format!("several sources of one host, {host}; left out: {}", files.len()));
    }
    hosts
}
