//! Finds steps from the order of kernels on one stream alone. First it checks whether the order repeats at all; then
//! it looks for the rarest kernel between whose runs the same kernels occur equally often each time.
//!
//! Repetition is seen from runs of kernels so long that two of them would hardly ever be equal by chance: half of the
//! kernels must begin a run that occurs three times. A kernel that occurs only every so many steps, such as one that
//! writes a log, would merge these into one: where all kernels that take time occur a multiple of times, the period is
//! divided by that.

use super::ranges::evenness;
use super::{Found, HALF, Source, Step};
use std::collections::HashMap;

/// One kernel, or a graph that was traced as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ran {
    /// Of the labels that come with it.
    pub name: u32,
    /// Nanoseconds of the report.
    pub start: i64,
    /// Nanoseconds of the report, not before `start`.
    pub end: i64,
}

/// So many kernels must be there for anything to be said of their order.
const FEWEST_KERNELS: usize = 8;
/// So many whole steps must lie between kernels.
const FEWEST_STEPS: usize = 3;
/// The part of a step that must be as in the others, and the part of all steps of which this must hold.
const ALIKE: f64 = 0.9;
const MOST_OF_THEM: f64 = 0.8;
/// Of a step's time: what takes less does not count where a period is divided.
const COUNTS: f64 = 0.01;
/// So many kernels are tried as the first of a step, the rarest first.
const MOST_TRIED: usize = 512;

/// Kernels in the order of their beginnings; or why there are no steps to be seen.
pub(crate) fn find_by_kernels(ran: &[Ran], labels: &[String]) -> Result<Found, String> {
    if ran.len() < FEWEST_KERNELS {
        return Err(format!("too few kernels on the busiest stream to find a period: {}", ran.len()));
    }
    let mut places: Vec<Vec<usize>> = vec![Vec::new(); labels.len()];
    for (at, one) in ran.iter().enumerate() {
        places[one.name as usize].push(at);
    }
    let often = (0..labels.len()).max_by_key(|name| (places[*name].len(), std::cmp::Reverse(*name)));
    if let Some(often) = often.filter(|name| places[*name].len() as f64 >= NEARLY_ALL * ran.len() as f64) {
        let own: Vec<Ran> = places[often].iter().map(|at| ran[*at]).collect();
        return find_by_one_name(&own, &labels[often], ran.len() - own.len());
    }
    let repeats = repeats(ran, &places)?;
    if repeats < HALF {
        let part = 100.0 * repeats;
        return Err(format!("the order of kernels does not repeat: {part:.0} % of it does"));
    }
    let mut names: Vec<usize> = (0..labels.len()).filter(|name| places[*name].len() > FEWEST_STEPS).collect();
    names.sort_by_key(|name| (places[*name].len(), places[*name][0]));
    let mut first = None;
    for name in names.iter().take(MOST_TRIED) {
        if let Some(cut) = Cut::at(ran, &places[*name]) {
            first = Some(cut);
            break;
        }
    }
    let Some(mut cut) = first else {
        return Err("no kernel begins a period: the kernels between two runs of one vary".to_owned());
    };
    let parts = cut.parts(ran);
    let mut times = cut.at.len();
    // Into the most parts that are alike.
    for parts in (2..=parts).rev().filter(|part| parts.is_multiple_of(*part)) {
        let of_part = |name: &&usize| cut.typical.get(&(**name as u32)) == Some(&parts);
        let mut finer =
            names.iter().filter(of_part).take(MOST_TRIED).filter_map(|name| Cut::at(ran, &places[*name]));
        if let Some(finer) = finer.next() {
            times = finer.at.len();
            cut = finer;
            break;
        }
    }
    // All kernels that come once a step would do; best is the one before which the stream waits the longest.
    let rivals = names.iter().filter(|name| places[**name].len() == times).take(MOST_RIVALS);
    let best = rivals
        .filter_map(|name| Some((waits(ran, &places[*name]), *name, Cut::at(ran, &places[*name])?)))
        .max_by_key(|(wait, name, _)| (*wait, std::cmp::Reverse(places[*name][0])));
    if let Some((.., better)) = best {
        cut = better;
    }
    Ok(cut.found(ran, labels))
}

const MOST_RIVALS: usize = 32;
/// Where one kernel is so large a part of all, the others are what is done before and behind.
const NEARLY_ALL: f64 = 0.99;

/// The part of kernels that begin a run of kernels which comes three times or more.
fn repeats(ran: &[Ran], places: &[Vec<usize>]) -> Result<f64, String> {
    let n = ran.len() as f64;
    // How likely two kernels drawn from all are of one name.
    let equal: f64 = places.iter().map(|places| (places.len() as f64 / n).powi(2)).sum();
    let length = (2.0 * n.ln() / -equal.ln()).ceil().max(2.0) as usize;
    if length > ran.len() / 4 {
        return Err("nearly all kernels have one name, so no period can be found".to_owned());
    }
    let mut seen: HashMap<u64, u32> = HashMap::new();
    let runs: Vec<u64> = hashes(ran, length);
    for run in &runs {
        *seen.entry(*run).or_default() += 1;
    }
    let repeated = runs.iter().filter(|run| seen.get(run).is_some_and(|times| *times >= 3)).count();
    Ok(repeated as f64 / runs.len() as f64)
}

/// Of each run of so many names a number, equal for equal runs.
fn hashes(ran: &[Ran], length: usize) -> Vec<u64> {
    const BASE: u64 = 0x9e37_79b9_7f4a_7c15 | 1;
    let digit = |at: usize| {
        let mixed = (u64::from(ran[at].name) + 1).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ (mixed >> 29)
    };
    let top = (0..length).fold(1u64, |power, _| power.wrapping_mul(BASE));
    let mut run = (0..length).fold(0u64, |run, at| run.wrapping_mul(BASE).wrapping_add(digit(at)));
    let mut runs = vec![run];
    for at in length..ran.len() {
        run =
            run.wrapping_mul(BASE).wrapping_add(digit(at)).wrapping_sub(top.wrapping_mul(digit(at - length)));
        runs.push(run);
    }
    runs
}

/// Where nearly every kernel is the same, or every graph, each one is a step if they come at even distances.
fn find_by_one_name(ran: &[Ran], label: &str, others: usize) -> Result<Found, String> {
    let starts: Vec<i64> = ran.iter().map(|one| one.start).collect();
    let confidence = evenness(&starts);
    if confidence < MOST_OF_THEM {
        return Err("nearly all kernels have one name and run at uneven intervals".to_owned());
    }
    let step = |pair: &[Ran]| Step {
        number: None,
        start: pair[0].start,
        end: pair[1].start,
        alike: Some(1.0),
        has_end: true,
    };
    let mut steps: Vec<Step> = ran.windows(2).map(step).collect();
    steps.extend(ran.last().map(|last| Step {
        number: None,
        start: last.start,
        end: last.end,
        alike: Some(1.0),
        has_end: false,
    }));
    let notes = match others {
        0 => Vec::new(),
        _ => vec![format!("kernels of other names, in no step: {others}")],
    };
    Ok(Found { source: Source::Kernels, by: label.to_owned(), steps, confidence, notes })
}

/// How often each name comes.
type Counts = HashMap<u32, u64>;

/// The stream cut before each run of one kernel.
struct Cut {
    /// Where its runs are.
    at: Vec<usize>,
    /// Of each name how often it comes in most steps.
    typical: Counts,
    /// Of each step, what lies behind the last run included.
    alike: Vec<f64>,
}

impl Cut {
    /// Nothing where steps so made are not alike.
    fn at(ran: &[Ran], at: &[usize]) -> Option<Cut> {
        let lengths: Vec<usize> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
        if lengths.len() < FEWEST_STEPS {
            return None;
        }
        let most = |fit: usize| fit as f64 >= MOST_OF_THEM * lengths.len() as f64;
        // Cheap, and most kernels are none: their steps have different lengths.
        let middle = median(lengths.iter().map(|length| *length as u64).collect());
        let near = |length: &&usize| (**length as f64 - middle as f64).abs() <= 0.1 * middle as f64;
        if !most(lengths.iter().filter(near).count()) {
            return None;
        }
        let counts = |from: usize, to: usize| {
            let mut counts = Counts::new();
            for one in &ran[from..to] {
                *counts.entry(one.name).or_default() += 1;
            }
            counts
        };
        let mut segments: Vec<Counts> = at.windows(2).map(|pair| counts(pair[0], pair[1])).collect();
        let mut of_name: HashMap<u32, Vec<u64>> = HashMap::new();
        for segment in &segments {
            for (name, count) in segment {
                of_name.entry(*name).or_default().push(*count);
            }
        }
        let whole = segments.len();
        let typical = of_name.into_iter().map(|(name, mut counts)| {
            counts.resize(whole, 0);
            (name, median(counts))
        });
        let typical: Counts = typical.filter(|(_, count)| *count > 0).collect();
        segments.push(counts(*at.last()?, ran.len()));
        let alike: Vec<f64> = segments.iter().map(|segment| alike(segment, &typical)).collect();
        let enough = most(alike[..whole].iter().filter(|alike| **alike >= ALIKE).count());
        enough.then(|| Cut { at: at.to_vec(), typical, alike })
    }

    fn name(&self, ran: &[Ran]) -> usize {
        self.at.first().map_or(0, |at| ran[*at].name as usize)
    }

    /// Into how many equal ones each step falls by the kernels that take time.
    fn parts(&self, ran: &[Ran]) -> u64 {
        let (Some(first), Some(last)) = (self.at.first(), self.at.last()) else { return 1 };
        let mut ns: HashMap<u32, u128> = HashMap::new();
        for one in &ran[*first..*last] {
            *ns.entry(one.name).or_default() += u128::from(one.end.wrapping_sub(one.start) as u64);
        }
        let all: u128 = ns.values().sum();
        let counts = self
            .typical
            .iter()
            .filter(|(name, _)| ns.get(name).is_some_and(|ns| *ns as f64 >= COUNTS * all as f64));
        counts.fold(0, |parts, (_, count)| divisor(parts, *count)).max(1)
    }

    /// Whether in most steps the stream waits at least as long before the first kernel as before any other.
    fn begins_after_a_pause(&self, ran: &[Ran]) -> bool {
        let wait = |at: usize| ran[at].start.saturating_sub(ran[at - 1].end).max(0);
        let steps: Vec<_> = self.at.windows(2).filter(|pair| pair[0] > 0).collect();
        let paused = steps.iter().filter(|pair| {
            let longest = (pair[0] + 1..pair[1]).map(wait).max().unwrap_or(0);
            wait(pair[0]) > 0 && wait(pair[0]) >= longest
        });
        paused.count() as f64 >= MOST_OF_THEM * steps.len() as f64
    }

    fn found(self, ran: &[Ran], labels: &[String]) -> Found {
        let by = labels.get(self.name(ran)).cloned().unwrap_or_default();
        let alike = {
            let whole = &self.alike[..self.alike.len() - 1];
            whole.iter().sum::<f64>() / whole.len() as f64
        };
        let mut notes = Vec::new();
        // Layers repeat as steps do; only a pause distinguishes the first kernel of a step.
        let confidence = if self.begins_after_a_pause(ran) {
            alike
        } else {
            notes.push(
                "no pause marks where a step begins: what repeats may be a layer; name the steps with `range=`"
                    .to_owned(),
            );
            alike * HALF
        };
        let mut steps: Vec<Step> = self
            .at
            .windows(2)
            .zip(&self.alike)
            .map(|(pair, alike)| Step {
                number: None,
                start: ran[pair[0]].start,
                end: ran[pair[1]].start,
                alike: Some(*alike),
                has_end: true,
            })
            .collect();
        let odd = steps.iter().filter(|step| !step.is_whole()).count();
        if odd > 0 {
            notes.push(format!("steps unlike most others, left out of the figures: {odd}"));
        }
        let mut outside = self.at.first().copied().unwrap_or(0);
        let last = self.at.last().copied().unwrap_or(0);
        match self.alike.last() {
            Some(alike) if *alike >= ALIKE => {
                let end = ran[last..].iter().map(|one| one.end).max().unwrap_or(ran[last].end);
                let start = ran[last].start;
                steps.push(Step { number: None, start, end, alike: Some(*alike), has_end: false });
            }
            _ => outside += ran.len() - last,
        }
        if outside > 0 {
            notes.push(format!("kernels before the first or after the last complete step: {outside}"));
        }
        Found { source: Source::Kernels, by, steps, confidence, notes }
    }
}

/// The part of kernels whose name comes exactly as often as in most steps.
fn alike(segment: &Counts, typical: &Counts) -> f64 {
    let (mut same, mut all) = (0, 0);
    for (name, count) in typical {
        let here = segment.get(name).copied().unwrap_or(0);
        same += if here == *count { *count } else { 0 };
        all += here.max(*count);
    }
    all +=
        segment.iter().filter(|(name, _)| !typical.contains_key(name)).map(|(_, count)| count).sum::<u64>();
    if all == 0 { 0.0 } else { same as f64 / all as f64 }
}

/// How long the stream has nothing to run before most runs of a kernel.
fn waits(ran: &[Ran], at: &[usize]) -> u64 {
    let gaps = at.iter().filter(|at| **at > 0).map(|at| {
        let gap = ran[*at].start.saturating_sub(ran[at - 1].end);
        gap.max(0) as u64
    });
    median(gaps.collect())
}

/// The lower of the two in the middle; 0 of none.
fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(0)
}

fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}
