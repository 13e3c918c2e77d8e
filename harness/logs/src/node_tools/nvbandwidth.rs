//! Reads what nvbandwidth prints, as JSON (`-j`, from 0.5 on) and as text. Each test has a matrix of rates in GB/s.

use super::{NoResult, agree, document, last_line};
use serde::Deserialize;
use std::fmt;

/// All tests of one call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bandwidths {
    /// In the order of the output.
    pub tests: Vec<Test>,
    /// Of nvbandwidth, where it is printed.
    pub version: Option<String>,
    /// Of the driver.
    pub driver: Option<String>,
    /// Errors that it printed outside of its tests, such as the end of its process.
    pub errors: Vec<String>,
}

/// One test.
#[derive(Debug, Clone, PartialEq)]
pub struct Test {
    /// Such as `host_to_device_memcpy_ce`.
    pub name: String,
    /// The rates, or why there are none.
    pub rates: Result<Matrix, NoRates>,
}

/// Why a test has no rates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoRates {
    /// This machine cannot run it.
    Waived,
    /// It failed, by the line that says why.
    Failed(String),
    /// Its figures are missing, or contradict each other.
    Unclear(String),
}

impl fmt::Display for NoRates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoRates::Waived => f.write_str("waived: this machine cannot run it"),
            NoRates::Failed(why) | NoRates::Unclear(why) => f.write_str(why),
        }
    }
}

impl From<NoResult> for NoRates {
    fn from(why: NoResult) -> NoRates {
        NoRates::Unclear(why)
    }
}

/// Rates in GB/s by row and column; nothing where a pair does not exist.
pub type Matrix = Vec<Vec<Option<f64>>>;

/// How a test is called that the output does not name.
const NAMELESS: &str = "a test without a name";

/// Of a node: more GPUs or pairs than that are none.
const MOST: usize = 256;

#[derive(Deserialize)]
struct Document {
    nvbandwidth: Body,
}

#[derive(Deserialize)]
struct Body {
    version: Option<String>,
    git_version: Option<String>,
    #[serde(rename = "Driver Version")]
    driver: Option<String>,
    error: Option<String>,
    testcases: Option<Vec<TestJson>>,
}

#[derive(Deserialize)]
struct TestJson {
    name: String,
    status: Option<String>,
    error: Option<String>,
    bandwidth_matrix: Option<Vec<Vec<String>>>,
    sum: Option<f64>,
}

/// The tests in a text; an error where it has none.
pub fn read(text: &str) -> Result<Bandwidths, NoResult> {
    let is_json = text.lines().any(|line| line.trim_start().starts_with('{'));
    let read = if is_json { json(text) } else { lines(text) }?;
    match (read.tests.is_empty(), last_line(text)) {
        (true, Some(line)) if !is_json => Err(format!("nvbandwidth lists no test; its last line: {line}")),
        (true, _) => Err("nvbandwidth lists no test".to_owned()),
        (false, _) => Ok(read),
    }
}

fn json(text: &str) -> Result<Bandwidths, NoResult> {
    let Document { nvbandwidth: body } = document(text, "nvbandwidth")?;
    if let Some(error) = &body.error {
        return Err(format!("nvbandwidth ended with an error: {}", short(error)));
    }
    let version = body.version.or(body.git_version).filter(|version| !version.is_empty());
    let tests = body
        .testcases
        .unwrap_or_default()
        .into_iter()
        .map(|test| Test { rates: matrix_of(&test), name: test.name });
    Ok(Bandwidths { tests: tests.collect(), version, driver: body.driver, errors: Vec::new() })
}

fn matrix_of(test: &TestJson) -> Result<Matrix, NoRates> {
    if let Some(error) = &test.error {
        return Err(NoRates::Failed(short(error)));
    }
    match (test.status.as_deref(), &test.bandwidth_matrix) {
        (Some("Passed"), Some(matrix)) => {
            let row = |row: &Vec<String>| row.iter().map(|word| cell(word)).collect::<Result<Vec<_>, _>>();
            Ok(checked(matrix.iter().map(row).collect::<Result<Matrix, _>>()?, test.sum)?)
        }
        (Some("Waived"), _) => Err(NoRates::Waived),
        (Some(status), _) => Err(NoRates::Failed(format!("it ended with status `{}`", short(status)))),
        (None, _) => Err(NoRates::Unclear("it ended with status `none`".to_owned())),
    }
}

fn cell(word: &str) -> Result<Option<f64>, NoResult> {
    match word.parse::<f64>() {
        // Older releases print the pair of a GPU with itself so.
        Ok(0.0) => Ok(None),
        Ok(rate) if rate.is_finite() && rate > 0.0 => Ok(Some(rate)),
        _ if word == "N/A" => Ok(None),
        _ => Err(format!("not a rate: `{}`", word.chars().take(40).collect::<String>())),
    }
}

/// The sum stands beside the matrix, and is that of its rates.
fn checked(matrix: Matrix, sum: Option<f64>) -> Result<Matrix, NoResult> {
    if matrix.len() > MOST || matrix.iter().any(|row| row.len() > MOST) {
        return Err(format!("more than {MOST} rows or columns"));
    }
    let rates = || matrix.iter().flatten().flatten();
    if rates().next().is_none() {
        return Err("it has no rate".to_owned());
    }
    let own: f64 = rates().sum();
    match sum.filter(|sum| !agree(*sum, own)) {
        Some(sum) => Err(format!("its sum is {sum:.2}, that of its rates {own:.2}")),
        None => Ok(matrix),
    }
}

/// A test whose end is still to come.
#[derive(Default)]
struct Open {
    name: String,
    matrix: Matrix,
    error: Option<String>,
    /// The last of its matrices was read: those of both directions come before their total, each with a sum of its own.
    has_total: bool,
}

impl Open {
    fn new(name: String) -> Open {
        Open { name, ..Open::default() }
    }

    /// Nothing where all of its matrices were tests of their own.
    fn close(self, sum: Option<f64>) -> Option<Test> {
        if self.has_total && self.matrix.is_empty() && self.error.is_none() {
            return None;
        }
        let rates = match (self.error, sum) {
            (Some(error), _) => Err(NoRates::Failed(error)),
            (None, Some(_)) => checked(self.matrix, sum).map_err(NoRates::Unclear),
            (None, None) => Err(NoRates::Unclear("it has no `SUM`: the output may be cut".to_owned())),
        };
        Some(Test { name: self.name, rates })
    }

    /// Whether a sum is that of one of its matrices: `device_to_device_bidirectional_memcpy_read_ce_read1`.
    fn has_part(&self, name: &str) -> bool {
        let part = name.strip_prefix(&self.name).and_then(|part| part.strip_prefix('_'));
        part.is_some_and(|part| ["read1", "read2", "write1", "write2", "total"].contains(&part))
    }

    /// The matrix that was read last, as a test.
    fn part(&mut self, name: &str, sum: f64) -> Test {
        self.has_total = name.ends_with("_total");
        let matrix = std::mem::take(&mut self.matrix);
        Test { name: name.to_owned(), rates: checked(matrix, Some(sum)).map_err(NoRates::Unclear) }
    }
}

/// Errors that are listed.
const MOST_ERRORS: usize = 16;

/// `Running NAME.`, a heading, a row of columns, the rows, `SUM NAME 1985.60`.
fn lines(text: &str) -> Result<Bandwidths, NoResult> {
    let mut read = Bandwidths::default();
    let mut open: Option<Open> = None;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["nvbandwidth", "Version:", version] => read.version = Some((*version).to_owned()),
            ["Driver", "Version:", version] => read.driver = Some((*version).to_owned()),
            ["Running", name] => {
                read.tests.extend(open.take().and_then(|open| open.close(None)));
                open = Some(Open::new(name.trim_end_matches('.').to_owned()));
            }
            ["Waiving", name] => {
                // The test that is waived may be the one that was begun.
                let name = name.trim_end_matches('.').to_owned();
                let other = open.take().filter(|open| open.name != name);
                read.tests.extend(other.and_then(|open| open.close(None)));
                read.tests.push(Test { name, rates: Err(NoRates::Waived) });
            }
            // Newer releases name in the text only the tests that they run.
            ["Waived:", ..] => {
                read.tests.extend(open.take().and_then(|open| open.close(None)));
                read.tests.push(Test { name: NAMELESS.to_owned(), rates: Err(NoRates::Waived) });
            }
            ["SUM", name, sum] if open.as_ref().is_some_and(|open| open.name == *name) => {
                let sum = sum_of(name, sum)?;
                read.tests.extend(open.take().and_then(|open| open.close(Some(sum))));
            }
            ["SUM", name, sum] if open.as_ref().is_some_and(|open| open.has_part(name)) => {
                let sum = sum_of(name, sum)?;
                read.tests.extend(open.as_mut().map(|open| open.part(name, sum)));
            }
            _ if is_error(line.trim()) => match &mut open {
                Some(open) => {
                    open.error.get_or_insert_with(|| short(line));
                }
                None if read.errors.len() < MOST_ERRORS => read.errors.push(short(line)),
                None => {}
            },
            [row, rates @ ..] if row.parse::<u32>().is_ok() => {
                let is_rate = |word: &&str| word.contains('.') || *word == "N/A";
                let open = open.as_mut().filter(|_| rates.iter().any(is_rate));
                let Some(Open { matrix, .. }) = open else { continue };
                if matrix.len() <= MOST {
                    matrix.push(rates.iter().map(|word| cell(word)).collect::<Result<_, _>>()?);
                }
            }
            _ => {}
        }
    }
    read.tests.extend(open.and_then(|open| open.close(None)));
    Ok(read)
}

fn sum_of(name: &str, sum: &str) -> Result<f64, NoResult> {
    sum.parse().map_err(|_| format!("the sum of {} is no number", short(name)))
}

/// What nvbandwidth prints of a test that failed, and before it ends with an error, and what a shell says of a process that
/// ended so.
fn is_error(line: &str) -> bool {
    const BEGIN: [&str; 10] = [
        "Error: ",
        "ERROR: ",
        "ASSERT in expression",
        "Invalid value when checking the pattern",
        "CUDA_ERROR_",
        "NVML_ERROR_",
        "terminate called after",
        "Aborted",
        "Segmentation fault",
        "Killed",
    ];
    let line = line.strip_prefix('[').unwrap_or(line);
    BEGIN.iter().any(|begin| line.starts_with(begin)) || line.contains("(core dumped)")
}

fn short(text: &str) -> String {
    text.trim().chars().take(300).collect()
}
