//! Reads what nvbandwidth prints, as JSON (`-j`, from 0.5 on) and as text. Each test has a matrix of rates in GB/s.

use super::{NoResult, agree, document, last_line};
use serde::Deserialize;

/// All tests of one call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bandwidths {
    /// In the order of the output.
    pub tests: Vec<Test>,
    /// Of nvbandwidth, where it is printed.
    pub version: Option<String>,
    /// Of the driver.
    pub driver: Option<String>,
}

/// One test.
#[derive(Debug, Clone, PartialEq)]
pub struct Test {
    /// Such as `host_to_device_memcpy_ce`.
    pub name: String,
    /// The rates, or why there are none.
    pub rates: Result<Matrix, NoResult>,
}

/// Rates in GB/s by row and column; nothing where a pair does not exist.
pub type Matrix = Vec<Vec<Option<f64>>>;

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
        return Err(format!(
            "nvbandwidth ended with an error: {}",
            error.trim().chars().take(300).collect::<String>()
        ));
    }
    let version = body.version.or(body.git_version).filter(|version| !version.is_empty());
    let tests = body
        .testcases
        .unwrap_or_default()
        .into_iter()
        .map(|test| Test { rates: matrix_of(&test), name: test.name });
    Ok(Bandwidths { tests: tests.collect(), version, driver: body.driver })
}

fn matrix_of(test: &TestJson) -> Result<Matrix, NoResult> {
    if let Some(error) = &test.error {
        return Err(error.trim().chars().take(300).collect());
    }
    match (test.status.as_deref(), &test.bandwidth_matrix) {
        (Some("Passed"), Some(matrix)) => {
            let row = |row: &Vec<String>| row.iter().map(|word| cell(word)).collect::<Result<Vec<_>, _>>();
            checked(matrix.iter().map(row).collect::<Result<Matrix, _>>()?, test.sum)
        }
        (Some("Waived"), _) => Err("waived: this machine cannot run it".to_owned()),
        (status, _) => Err(format!("it ended with status `{}`", status.unwrap_or("none"))),
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

/// `Running NAME.`, a heading, a row of columns, the rows, `SUM NAME 1985.60`.
fn lines(text: &str) -> Result<Bandwidths, NoResult> {
    let mut read = Bandwidths::default();
    let mut open: Option<(String, Matrix)> = None;
    let close = |open: &mut Option<(String, Matrix)>, sum: Option<f64>, tests: &mut Vec<Test>| {
        if let Some((name, matrix)) = open.take() {
            let rates = match sum {
                Some(_) => checked(matrix, sum),
                None => Err("it has no `SUM`: the output may be cut".to_owned()),
            };
            tests.push(Test { name, rates });
        }
    };
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["nvbandwidth", "Version:", version] => read.version = Some((*version).to_owned()),
            ["Driver", "Version:", version] => read.driver = Some((*version).to_owned()),
            ["Running", name] => {
                close(&mut open, None, &mut read.tests);
                open = Some((name.trim_end_matches('.').to_owned(), Vec::new()));
            }
            ["SUM", name, sum] if open.as_ref().is_some_and(|(open, _)| open == name) => {
                let sum = sum.parse().map_err(|_| format!("the sum of {name} is no number"))?;
                close(&mut open, Some(sum), &mut read.tests);
            }
            [row, rates @ ..] if open.is_some() && row.parse::<u32>().is_ok() => {
                let is_rate = |word: &&str| word.contains('.') || *word == "N/A";
                let Some((_, matrix)) = open.as_mut().filter(|_| rates.iter().any(is_rate)) else { continue };
                if matrix.len() <= MOST {
                    matrix.push(rates.iter().map(|word| cell(word)).collect::<Result<_, _>>()?);
                }
            }
            _ => {}
        }
    }
    close(&mut open, None, &mut read.tests);
    Ok(read)
}
