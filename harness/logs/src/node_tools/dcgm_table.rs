//! Reads the table that `dcgmi diag` prints: results by GPU in the rows below a test, as DCGM 2 and 3 and as DCGM 4 write
//! them, and explanations that go on over several rows.

use super::NoResult;
use super::dcgm::{Diagnosis, MOST_RESULTS, NOT_RUN, Status, TestResult, gpu_numbers, short, status};
use std::collections::BTreeSet;

/// Letters of a cell: a longer text goes on in the next row, in the middle of a word.
const CELL: usize = 45;
/// Explanations of a test.
const MOST_TEXTS: usize = 64;
/// Of a cell that goes on: more rows than that explain nothing.
const LONGEST: usize = 4096;

/// Whether a text has such a table, or a part of one.
pub(super) fn is_one(text: &str) -> bool {
    let mut has_rule = false;
    text.lines().any(|line| {
        has_rule |= is_rule(line.trim()) || heading(line.trim()).is_some();
        is_head(line) || has_rule && is_result(line)
    })
}

fn is_head(line: &str) -> bool {
    line.contains("| Diagnostic ") && line.contains("| Result ")
}

/// `| PCIe                      | Fail - All    |`.
fn is_result(line: &str) -> bool {
    cells(line.trim()).is_some_and(|(name, value)| !name.is_empty() && is_status(value))
}

/// `Pass`, `Pass - All`, `Fail - GPUs: 1, 3`.
fn is_status(value: &str) -> bool {
    let (word, rest) = value.split_once(" - ").unwrap_or((value, ""));
    Status::read(word).is_some()
        && (rest.is_empty() || rest == "All" || rest.starts_with("GPU") || rest.starts_with("CPU"))
}

/// `+-----------+-----------+`.
fn is_rule(line: &str) -> bool {
    line.starts_with("+-") && line.ends_with("-+") && line.bytes().all(|byte| matches!(byte, b'+' | b'-'))
}

/// `|-----  Deployment  --------+------|`: the name of a category.
fn heading(line: &str) -> Option<&str> {
    let row = line.strip_prefix(['|', '+'])?.strip_prefix("-----  ")?;
    Some(row.split_once('+')?.0.trim_matches(['-', ' ']))
}

/// Name and value of a row.
fn cells(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.strip_prefix('|')?.split_once('|')?;
    let value = value.trim_end().trim_end_matches('|');
    Some((name.trim(), value.strip_prefix(' ').unwrap_or(value).trim_end()))
}

/// `Warning`, `Warning: GPU0`: the GPU that a row explains, where it names one, and whether it warns.
fn explanation(name: &str) -> Option<(Option<u32>, bool)> {
    let (word, whom) = name.split_once(':').unwrap_or((name, ""));
    let whom = (!whom.is_empty()).then(|| entity(whom));
    let is_one = matches!(word.trim(), "Warning" | "Error" | "Info") && whom != Some(None);
    let gpu = whom.flatten().filter(|(kind, _)| *kind == "GPU").map(|(_, number)| number);
    is_one.then_some((gpu, word.trim() != "Info"))
}

/// `GPU0`, `CPU1`, `NVSwitch 2`: its kind and its number.
fn entity(text: &str) -> Option<(&str, u32)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (kind, number) = text.split_at_checked(end)?;
    let number = number.trim_start().parse().ok()?;
    (!kind.is_empty()).then_some((kind, number))
}

pub(super) fn read(text: &str) -> Result<Diagnosis, NoResult> {
    let mut table = Table::default();
    for line in text.lines() {
        table.line(line.trim())?;
    }
    table.close()?;
    let mut diagnosis = table.diagnosis;
    diagnosis.incomplete = match () {
        () if table.is_mixed => Some("two tables were written at once"),
        () if table.headless => Some("the table has no beginning"),
        () if table.is_open => Some("the table has no closing rule"),
        () => None,
    };
    match diagnosis.results.is_empty() {
        true => Err("dcgmi lists no test".to_owned()),
        false => Ok(diagnosis),
    }
}

/// What the rows below a row add to.
enum Last {
    /// The GPUs of a status.
    List(Status, String),
    /// An explanation.
    Why(Why),
}

/// What DCGM says of a test.
#[derive(Default)]
struct Why {
    /// That its heading or its text names.
    gpu: Option<u32>,
    text: String,
    /// Its heading says `Warning` or `Error`.
    warns: bool,
}

#[derive(Default)]
struct Table {
    diagnosis: Diagnosis,
    category: String,
    test: Option<Test>,
    is_open: bool,
    /// Results stood outside of a table.
    headless: bool,
    /// A table began within another.
    is_mixed: bool,
}

/// A test whose rows are not all read.
#[derive(Default)]
struct Test {
    name: String,
    /// Of the test as a whole: in DCGM 4 its results by GPU follow.
    summary: Option<Status>,
    results: Vec<(Option<u32>, Status)>,
    why: Vec<Why>,
    last: Option<Last>,
}

impl Test {
    /// `Fail - GPUs: 1, 3`, `Pass - All`, `Fail`.
    fn result(&mut self, value: &str) -> Result<(), NoResult> {
        let (word, rest) = value.split_once('-').unwrap_or((value, ""));
        let status = if value.is_empty() { NOT_RUN } else { status(&self.name, word)? };
        self.flush()?;
        let rest = rest.trim();
        let gpus = rest.strip_prefix("GPUs").or_else(|| rest.strip_prefix("GPU"));
        match gpus {
            Some(gpus) => {
                self.last = Some(Last::List(status, gpus.trim_start_matches([':', ' ']).to_owned()))
            }
            None if rest.is_empty() || rest.eq_ignore_ascii_case("all") => {
                self.summary = self.summary.max(Some(status));
            }
            // Of switches and CPUs.
            None => self.results.push((None, status)),
        }
        Ok(())
    }

    /// A row without a name: of the list or the text above it, or another result.
    fn goes_on(&mut self, value: &str) -> Result<(), NoResult> {
        if let Some(Last::List(_, list)) = &mut self.last
            && value.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b',' | b' '))
            && list.len() < LONGEST
        {
            list.push_str(value);
            return Ok(());
        }
        // `GPU1: Fail`, `GPU1:`.
        let result = value.split_once(": ").or_else(|| Some((value.strip_suffix(':')?, "")));
        if let Some((whom, word)) = result
            && let Some((kind, number)) = entity(whom)
            && let Some(status) = Status::read(word).or(word.is_empty().then_some(NOT_RUN))
        {
            self.flush()?;
            // Here DCGM 4 writes `Fail` for a warning, too. Its test as a whole fails where one of its results did.
            let is_warning = status == Status::Fail && self.summary == Some(Status::Warn);
            let status = if is_warning { Status::Warn } else { status };
            self.results.push(((kind == "GPU").then_some(number), status));
            return Ok(());
        }
        if is_status(value) {
            return self.result(value);
        }
        match &mut self.last {
            Some(Last::Why(Why { text, .. })) if text.len() < LONGEST => {
                // A blank at the end of a full cell is not seen there.
                if text.chars().count() % CELL == CELL - 1 {
                    text.push(' ');
                }
                text.push_str(value);
            }
            Some(Last::Why(..)) => {}
            _ => {
                self.flush()?;
                self.last = Some(Last::Why(Why { text: value.to_owned(), ..Why::default() }));
            }
        }
        Ok(())
    }

    fn explain(&mut self, (gpu, warns): (Option<u32>, bool), value: &str) -> Result<(), NoResult> {
        self.flush()?;
        self.last = Some(Last::Why(Why { gpu, text: value.to_owned(), warns }));
        Ok(())
    }

    /// Takes in what later rows may have added to.
    fn flush(&mut self) -> Result<(), NoResult> {
        match self.last.take() {
            Some(Last::List(status, list)) => {
                let gpus = gpu_numbers(list.trim_end_matches([',', ' ']))?;
                self.results.extend(gpus.into_iter().map(|gpu| (gpu, status)));
            }
            Some(Last::Why(Why { gpu, text, warns })) if self.why.len() < MOST_TEXTS => {
                let gpu = gpu.or_else(|| leading_gpu(&text));
                self.why.push(Why { gpu, text: short(&text), warns });
            }
            Some(Last::Why(..)) | None => {}
        }
        match self.results.len() > MOST_RESULTS {
            true => Err(format!("dcgmi lists more than {MOST_RESULTS} results")),
            false => Ok(()),
        }
    }

    /// Its results, each with what explains it: the text about its GPU, or one that is about none of the results and
    /// stands at the worst of them.
    fn finish(mut self, category: &str) -> Result<Vec<TestResult>, NoResult> {
        self.flush()?;
        let worst = self.results.iter().map(|(_, status)| *status).max();
        // What the summary alone knows concerns no GPU that is named.
        if let Some(summary) = self.summary.filter(|summary| Some(*summary) > worst) {
            self.results.push((None, summary));
        }
        let worst = self.results.iter().map(|(_, status)| *status).max();
        let listed: BTreeSet<u32> = self.results.iter().filter_map(|(gpu, _)| *gpu).collect();
        let of = |gpu: Option<u32>, status: Status| -> Vec<&Why> {
            let is_its = |about: Option<u32>| match about.is_some_and(|gpu| listed.contains(&gpu)) {
                true => about == gpu,
                false => Some(status) == worst,
            };
            self.why.iter().filter(|why| is_its(why.gpu)).collect()
        };
        let result = |(gpu, status): &(Option<u32>, Status)| {
            let why = of(*gpu, *status);
            let is_warned = *status == Status::Pass && why.iter().any(|why| why.warns);
            let status = if is_warned { Status::Warn } else { *status };
            let texts: Vec<String> = why.into_iter().map(|why| why.text.clone()).collect();
            TestResult::new(&self.name, category, (*gpu, status), &texts)
        };
        Ok(self.results.iter().map(result).collect())
    }
}

/// `GPU 1 Max power of ...`.
fn leading_gpu(text: &str) -> Option<u32> {
    let rest = text.strip_prefix("GPU ")?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest.get(..end)?.parse().ok()
}

impl Table {
    fn line(&mut self, line: &str) -> Result<(), NoResult> {
        if is_head(line) {
            self.close()?;
            self.is_mixed |= self.is_open;
            self.is_open = true;
            return Ok(());
        }
        if let Some(category) = heading(line) {
            self.close()?;
            self.headless |= !self.is_open;
            self.is_open = true;
            self.category = short(category);
            return Ok(());
        }
        if is_rule(line) {
            self.is_open = false;
            return self.close();
        }
        if !self.is_open && is_result(line) {
            (self.headless, self.is_open) = (true, true);
        }
        let Some((name, value)) = cells(line).filter(|_| self.is_open) else { return Ok(()) };
        if self.category == "Metadata" {
            let metadata = match name {
                "DCGM Version" => &mut self.diagnosis.version,
                "Driver Version Detected" => &mut self.diagnosis.driver,
                _ => return Ok(()),
            };
            *metadata = Some(short(value));
            return Ok(());
        }
        if name.is_empty() {
            return self.test.as_mut().map_or(Ok(()), |test| test.goes_on(value));
        }
        if let Some(explained) = explanation(name) {
            return self.test.as_mut().map_or(Ok(()), |test| test.explain(explained, value));
        }
        self.close()?;
        let mut test = Test { name: short(name), ..Test::default() };
        test.result(value)?;
        self.test = Some(test);
        Ok(())
    }

    /// Takes in the test that is open.
    fn close(&mut self) -> Result<(), NoResult> {
        let Some(test) = self.test.take() else { return Ok(()) };
        let results = test.finish(&self.category)?;
        if self.diagnosis.results.len() + results.len() > MOST_RESULTS {
            return Err(format!("dcgmi lists more than {MOST_RESULTS} results"));
        }
        self.diagnosis.results.extend(results);
        Ok(())
    }
}
