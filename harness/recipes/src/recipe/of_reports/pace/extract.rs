//! The extract of a report until the shown name is known: totals of all names, and the instances of those with the most
//! time. Where another name is shown, the report is re-read: all instances of all reports would need as much memory as
//! the reports themselves.

use super::Subject;
use super::instances::{Instance, Instances, Name, Track};
use crate::recipe::of_reports::ReportExtract;
use crate::recipe::of_reports::together::Share;
use nsys::export::ExportError;
use nsys::trace::{Reopenable, Trace};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How many instances of a report are kept beside those of the name with the most time.
const ALSO_KEPT: usize = 20_000;

#[derive(Serialize, Deserialize)]
pub(super) struct Extract {
    again: Reopenable,
    names: Vec<Total>,
    places: Vec<Track>,
    /// By number of their name; whole, where there are any.
    kept: BTreeMap<u32, Vec<Instance>>,
}

#[derive(Serialize, Deserialize)]
struct Total {
    name: Name,
    ns: u128,
}

/// The instances of one place, in the order of their beginnings.
pub(super) struct Series {
    pub rank: i64,
    pub place: Track,
    /// The offset that makes its times relative to the zero of the earliest report.
    pub shift: Option<i64>,
    pub spans: Vec<(i64, i64)>,
}

impl Series {
    pub(super) fn ns(&self, at: usize) -> u64 {
        let (start, end) = self.spans[at];
        end.wrapping_sub(start) as u64
    }

    pub(super) fn durations(&self) -> Vec<u64> {
        (0..self.spans.len()).map(|at| self.ns(at)).collect()
    }

    /// From the end of the one before; nothing of the first, and where it does not fit.
    pub(super) fn distance(&self, at: usize) -> Option<i64> {
        self.spans[at].0.checked_sub(self.spans[at.checked_sub(1)?].1)
    }

    pub(super) fn common_start(&self, at: usize) -> Option<i64> {
        self.spans[at].0.checked_add(self.shift?)
    }
}

#[cfg(test)]
impl Extract {
    /// Whether it has the instances of a name that is there.
    pub(super) fn keeps(&self, asked: &str) -> bool {
        let mut of_name = self.names.iter().enumerate().filter(|(_, total)| total.name.is(asked));
        of_name.any(|(number, _)| self.kept.contains_key(&(number as u32)))
    }
}

/// The requested name: an exact one, or the largest that contains `like`, which may be empty.
pub(super) struct NameRequest<'a> {
    pub name: &'a str,
    pub like: &'a str,
}

pub(super) fn take(of: &Subject, trace: &Trace, asked: &NameRequest) -> Share<Extract> {
    let Some(read) = (of.source)(trace)? else { return Ok(None) };
    let rows = read.all.len() as u64;
    let mut totals = vec![(0u128, 0usize); read.names.len()];
    for one in &read.all {
        let total = &mut totals[one.name as usize];
        *total = (total.0 + u128::from(one.ns()), total.1 + 1);
    }
    let wanted: Vec<u32> = match asked.name {
        "" => {
            let mut order: Vec<u32> = (0..totals.len() as u32).collect();
            order.retain(|name| read.names[*name as usize].shown.contains(asked.like));
            order.sort_by_key(|name| std::cmp::Reverse(totals[*name as usize].0));
            let mut room = ALSO_KEPT;
            let mut wanted: Vec<u32> = order.first().copied().into_iter().collect();
            wanted.extend(order.into_iter().skip(1).take_while(|name| {
                let rest = room.checked_sub(totals[*name as usize].1);
                room = rest.unwrap_or(0);
                rest.is_some()
            }));
            wanted
        }
        asked => (0..totals.len() as u32).filter(|name| read.names[*name as usize].is(asked)).collect(),
    };
    let kept = instances_by_name(&read, &wanted);
    let names = read.names.into_iter().zip(totals).map(|(name, (ns, _))| Total { name, ns });
    Ok(Some((Extract { again: trace.reopenable(), names: names.collect(), places: read.places, kept }, rows)))
}

fn instances_by_name(read: &Instances, wanted: &[u32]) -> BTreeMap<u32, Vec<Instance>> {
    let mut kept: BTreeMap<u32, Vec<Instance>> = wanted.iter().map(|name| (*name, Vec::new())).collect();
    let mut is_wanted = vec![false; read.names.len()];
    wanted.iter().for_each(|name| is_wanted[*name as usize] = true);
    for one in read.all.iter().filter(|one| is_wanted[one.name as usize]) {
        kept.entry(one.name).or_default().push(*one);
    }
    kept
}

/// The name whose pace is shown.
pub(super) struct Chosen {
    asked: String,
    pub title: String,
    pub note: Option<String>,
}

/// Fails with the reason why nothing can be shown.
pub(super) fn choose(
    of: &Subject,
    reports: &[ReportExtract<&Extract>],
    asked: &NameRequest,
) -> Result<Chosen, String> {
    let NameRequest { name: asked, like } = *asked;
    let mut totals: BTreeMap<&str, (u128, &Name)> = BTreeMap::new();
    for total in reports.iter().flat_map(|report| &report.extract.names) {
        totals.entry(&total.name.shown).or_insert((0, &total.name)).0 += total.ns;
    }
    let mut order: Vec<(u128, &Name)> = totals.into_values().collect();
    // Of equal ones the first by name, as a stable sort leaves them.
    order.sort_by_key(|(ns, _)| std::cmp::Reverse(*ns));
    if order.is_empty() {
        return Err(format!("no {}", of.what));
    }
    if asked.is_empty() {
        let Some((_, largest)) = order.iter().find(|(_, name)| name.shown.contains(like)) else {
            return Err(format!("no {} name contains `{like}`; {}", of.what, near(of, &order, like)));
        };
        let shown = largest.shown.clone();
        let note = match like {
            "" => format!("no `name` given, using the {} with the largest total time: {shown}", of.what),
            like => {
                format!(
                    "of the {} with `{like}` in their names, using the one with the largest total time: {shown}",
                    of.whats
                )
            }
        };
        return Ok(Chosen { asked: shown.clone(), title: shown, note: Some(note) });
    }
    let found: Vec<&Name> = order.iter().map(|(_, name)| *name).filter(|name| name.is(asked)).collect();
    match found.as_slice() {
        [] => Err(format!("no {} named `{asked}`; {}", of.what, near(of, &order, asked))),
        [one] => Ok(Chosen { asked: asked.to_owned(), title: one.shown.clone(), note: None }),
        several => {
            let note = format!("{} {} named `{asked}` are counted together", several.len(), of.whats);
            Ok(Chosen { asked: asked.to_owned(), title: asked.to_owned(), note: Some(note) })
        }
    }
}

/// How many other names are suggested where one does not exist.
const SUGGESTIONS: usize = 3;

/// Names that have what was asked for in them, or are in it, whatever the case of their letters; then the largest.
fn near(of: &Subject, order: &[(u128, &Name)], asked: &str) -> String {
    let asked = asked.to_lowercase();
    let is_near = |name: &Name| {
        let short = name.short.to_lowercase();
        short.contains(&asked)
            || (!short.is_empty() && asked.contains(&short))
            || name.shown.to_lowercase().contains(&asked)
    };
    let (near, others): (Vec<&Name>, Vec<&Name>) =
        order.iter().map(|(_, name)| *name).partition(|name| is_near(name));
    let names: Vec<String> =
        near.iter().chain(&others).take(SUGGESTIONS).map(|name| format!("`{}`", name.shown)).collect();
    format!("existing {}: {}", of.whats, names.join(", "))
}

/// Of each report its series, or why it could not be read again.
pub(super) fn series(
    of: &Subject,
    reports: &[ReportExtract<&Extract>],
    chosen: &Chosen,
) -> Vec<Result<Vec<Series>, ExportError>> {
    reports.par_iter().map(|report| report_series(of, report, &chosen.asked)).collect()
}

fn report_series(
    of: &Subject,
    report: &ReportExtract<&Extract>,
    asked: &str,
) -> Result<Vec<Series>, ExportError> {
    let extract = report.extract;
    let names = || extract.names.iter().enumerate().filter(|(_, total)| total.name.is(asked));
    if names().all(|(number, _)| extract.kept.contains_key(&(number as u32))) {
        let all = names().flat_map(|(number, _)| &extract.kept[&(number as u32)]);
        return Ok(by_place(report.rank, &extract.places, all));
    }
    let Some(read) = (of.source)(&extract.again.open()?)? else { return Ok(Vec::new()) };
    let all = read.all.iter().filter(|one| read.names[one.name as usize].is(asked));
    Ok(by_place(report.rank, &read.places, all))
}

fn by_place<'a>(rank: i64, places: &[Track], all: impl Iterator<Item = &'a Instance>) -> Vec<Series> {
    let mut spans: BTreeMap<Track, Vec<(i64, i64)>> = BTreeMap::new();
    for one in all {
        spans.entry(places[one.place as usize]).or_default().push((one.start, one.end));
    }
    let of_place = spans.into_iter().map(|(place, mut spans)| {
        spans.sort_unstable();
        Series { rank, place, shift: None, spans }
    });
    of_place.collect()
}

/// The offset of each report's zero from the earliest; `None` where one report lacks it.
pub(super) fn shifts(reports: &[ReportExtract<&Extract>]) -> Option<Vec<i64>> {
    let zeros: Option<Vec<i64>> = reports.iter().map(|report| report.utc_epoch_ns).collect();
    let zeros = zeros?;
    let least = *zeros.iter().min()?;
    zeros.iter().map(|zero| zero.checked_sub(least)).collect()
}
