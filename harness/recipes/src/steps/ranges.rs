//! Steps from NVTX ranges: those that a person names, or those that repeat like steps.

use super::name::{speaks_of_steps, stem};
use super::{Found, Source, Step};
use metric::quantile::quantile;
use std::collections::{BTreeMap, HashMap};

/// A range that began and ended on one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span<'a> {
    /// `globalTid` of the report: process and thread.
    pub thread: i64,
    /// Empty for the default domain.
    pub domain: &'a str,
    /// As the program gave it, with its number: `step 12`.
    pub name: &'a str,
    /// Nanoseconds of the report.
    pub start: i64,
    /// Nanoseconds of the report.
    pub end: i64,
}

/// The ranges of this name: `step`, `step 12` without its number or with `#` in place of it, each with `domain:` before
/// it or without.
pub(crate) fn asked_for(name: &str, spans: &[Span]) -> Option<Found> {
    let asked = stem(name).text;
    let is_asked = |span: &Span, text: &str| {
        let whole = |text: &str| format!("{}:{text}", span.domain);
        // `step` means `step 12` too.
        let bare = text.trim_end_matches(|c: char| "#= _-:".contains(c));
        [text, bare, span.name]
            .into_iter()
            .any(|text| text == name || text == asked || whole(text) == name || whole(text) == asked)
    };
    let mut known: HashMap<(&str, &str), bool> = HashMap::new();
    let of_name = spans.iter().filter(|span| {
        *known.entry((span.domain, span.name)).or_insert_with(|| is_asked(span, &stem(span.name).text))
    });
    let of_name: Vec<Span> = of_name.copied().collect();
    let mut series = series(&of_name);
    series.sort_by(|a, b| b.steps.len().cmp(&a.steps.len()).then(a.name().cmp(&b.name())));
    let mut series = series.into_iter();
    let first = series.next()?;
    let others: usize = series.map(|series| series.steps.len()).sum();
    let mut found = first.found();
    if others > 0 {
        found
            .notes
            .push(format!("ranges of this name on other threads or of other domains, left out: {others}"));
    }
    Some(found)
}

/// At least so many times something must come to be a step.
const FEWEST: usize = 3;
/// Less sure than this nothing is said to be a step.
const SURE: f64 = 0.5;
/// Nor, where it is not called as steps are, less sure than this.
const SURE_OF_ANY: f64 = 0.8;

/// A window that opens and closes while a process is within a step cuts one at either end.
const MOST_CUT: usize = 2;

/// The ranges that repeat as steps do, where there are such: those that are called steps before others, numbered ones
/// before others, then the surest, then those that last longest. Threads of one session mark the same steps, and a window
/// cuts those of some: of the same ranges those count of which none is cut.
pub fn repeated(spans: &[Span]) -> Option<Found> {
    let mut candidates: Vec<Series> = series(spans).into_iter().filter(Series::may_be_steps).collect();
    candidates.sort_by(|a, b| {
        let kind = |series: &Series| (series.speaks, series.is_numbered());
        let last = |series: &Series| series.steps.iter().map(|step| u128::from(step.ns())).sum::<u128>();
        kind(b)
            .cmp(&kind(a))
            .then(b.confidence().total_cmp(&a.confidence()))
            .then(last(b).cmp(&last(a)))
            .then(a.name().cmp(&b.name()))
    });
    let surest = candidates.first()?;
    let same = |series: &Series| {
        let is_it = (&series.domain, &series.text) == (&surest.domain, &surest.text);
        is_it && series.is_numbered() == surest.is_numbered()
    };
    let most = surest.steps.len() + MOST_CUT;
    let of_same =
        candidates.iter().enumerate().filter(|(_, series)| same(series) && series.steps.len() <= most);
    // Of several as long the surest.
    let whole = of_same.max_by_key(|(at, series)| (series.steps.len(), std::cmp::Reverse(*at)))?.0;
    Some(candidates.swap_remove(whole).found())
}

/// The ranges of one thread, domain and stem, outermost ones only.
struct Series {
    thread: i64,
    domain: String,
    text: String,
    speaks: bool,
    steps: Vec<Step>,
    nested: usize,
}

fn series(spans: &[Span]) -> Vec<Series> {
    // Names are few and spans are many: each name is looked into once.
    let (mut of_name, mut texts) = (HashMap::<&str, (usize, Option<u64>)>::new(), Vec::<String>::new());
    let mut of_text: HashMap<String, usize> = HashMap::new();
    let mut groups: BTreeMap<(i64, &str, usize), Vec<Step>> = BTreeMap::new();
    for span in spans {
        let (text, number) = *of_name.entry(span.name).or_insert_with(|| {
            let stem = stem(span.name);
            let text = *of_text.entry(stem.text.clone()).or_insert_with(|| {
                texts.push(stem.text);
                texts.len() - 1
            });
            (text, stem.number)
        });
        let step = Step { number, start: span.start, end: span.end, alike: None, has_end: true };
        groups.entry((span.thread, span.domain, text)).or_default().push(step);
    }
    let of_group = |((thread, domain, text), mut all): ((i64, &str, usize), Vec<Step>)| {
        all.sort_by_key(|step| (step.start, std::cmp::Reverse(step.end)));
        let (mut steps, mut nested) = (Vec::<Step>::new(), 0);
        for step in all {
            if steps.last().is_some_and(|last| step.start < last.end) {
                nested += 1;
            } else {
                steps.push(step);
            }
        }
        let text = texts[text].clone();
        Series { thread, domain: domain.to_owned(), speaks: speaks_of_steps(&text), text, steps, nested }
    };
    groups.into_iter().map(of_group).collect()
}

impl Series {
    fn name(&self) -> (&str, &str, i64) {
        (&self.domain, &self.text, self.thread)
    }

    /// Each number once, and growing, by one most of the time: what numbers of calls or of objects do not.
    fn is_numbered(&self) -> bool {
        let numbers: Option<Vec<u64>> = self.steps.iter().map(|step| step.number).collect();
        numbers.is_some_and(|numbers| {
            let by_one = numbers.windows(2).filter(|pair| pair[0].checked_add(1) == Some(pair[1])).count();
            numbers.is_sorted_by(|a, b| a < b) && 2 * by_one >= numbers.len() - 1
        })
    }

    fn may_be_steps(&self) -> bool {
        let sure = if self.speaks || self.is_numbered() { SURE } else { SURE_OF_ANY };
        // What libraries write of their calls is no step of the program.
        let of_library =
            ["NCCL", "CCCL", "cuBLAS", "cuDNN", "MPI", "AWS_OFI_NCCL"].contains(&self.domain.as_str());
        self.steps.len() >= FEWEST && !of_library && self.confidence() >= sure
    }

    /// How much of the time from the first to the last is within them, times how alike the distances of their beginnings
    /// are.
    fn confidence(&self) -> f64 {
        let (Some(first), Some(last)) = (self.steps.first(), self.steps.last()) else { return 0.0 };
        let all = last.end.wrapping_sub(first.start) as u64;
        let within: u128 = self.steps.iter().map(|step| u128::from(step.ns())).sum();
        let covered = if all == 0 { 0.0 } else { within as f64 / all as f64 };
        let starts: Vec<i64> = self.steps.iter().map(|step| step.start).collect();
        let even = evenness(&starts);
        covered * even
    }

    fn found(mut self) -> Found {
        let mut notes = Vec::new();
        if self.nested > 0 {
            notes.push(format!("ranges within a range of the same name, left out: {}", self.nested));
        }
        if self.is_numbered() {
            let numbers: Vec<u64> = self.steps.iter().filter_map(|step| step.number).collect();
            let missing = holes(&numbers);
            if !missing.is_empty() {
                notes.push(format!("missing step numbers: {}", missing.join(", ")));
            }
        }
        // A number that counts something else does not identify a step.
        if !self.speaks && !self.is_numbered() {
            self.steps.iter_mut().for_each(|step| step.number = None);
        }
        let confidence = self.confidence();
        let by = format!("{}:{}", self.domain, self.text);
        Found { source: Source::Ranges, by, steps: self.steps, confidence, notes }
    }
}

/// How alike the distances of moments are: 1 less the median distance of these from their own median, as a fraction of
/// it.
pub(super) fn evenness(moments: &[i64]) -> f64 {
    let mut apart: Vec<u64> = moments.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]) as u64).collect();
    apart.sort_unstable();
    let middle = quantile(&apart, 0.5).unwrap_or(0.0);
    let mut off: Vec<u64> = apart.iter().map(|ns| (*ns as f64 - middle).abs() as u64).collect();
    off.sort_unstable();
    if middle > 0.0 { 1.0 - (quantile(&off, 0.5).unwrap_or(0.0) / middle).min(1.0) } else { 0.0 }
}

/// More holes than this are not listed one by one.
const MOST_HOLES: usize = 20;

fn holes(numbers: &[u64]) -> Vec<String> {
    let between = |pair: &[u64]| match pair[1] - pair[0] {
        0 | 1 => None,
        2 => Some(format!("{}", pair[0] + 1)),
        _ => Some(format!("{} to {}", pair[0] + 1, pair[1] - 1)),
    };
    let mut holes: Vec<String> = numbers.windows(2).filter_map(between).collect();
    if holes.len() > MOST_HOLES {
        let more = holes.len() - MOST_HOLES;
        holes.truncate(MOST_HOLES);
        holes.push(format!("and {more} more"));
    }
    holes
}
