//! The lines of five small awk scripts that people take calls out of logs with, the same on the same input, as gawk prints them.
//! Their order is that of awk's hashes or of the locale: theirs and ours are equal as sets. Where they are wrong is reported by
//! `explain`.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read, Write};

/// Which script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Script {
    /// The lines of the log from iteration 45 to 50, as they stand.
    SeparateSteps,
    /// Operation, count, type and bytes of each call.
    Comm,
    /// Calls, and the minimum, mean, maximum and total of bytes, by operation.
    PerOp,
    /// Calls by operation and size range, such as `AllReduce:64KB-1MB`.
    Histogram,
    /// Calls by operation, count, type and bytes, as a table.
    Aggregate,
}

/// Longer lines than these are not NCCL's, nor a text's.
const LONGEST: u64 = 1 << 20;
/// So many different calls are gathered; a log of more is refused, and nothing is left out.
const MOST: usize = 1 << 20;

/// One script at work.
#[derive(Debug)]
pub struct Compat {
    script: Script,
    iteration: u64,
    printed: u64,
    operations: BTreeMap<String, Sum>,
    buckets: BTreeMap<String, u64>,
    kinds: BTreeMap<(String, String, String, String), u64>,
}

/// Numbers are awk's: floating.
#[derive(Debug, Clone, Copy)]
struct Sum {
    calls: f64,
    min: f64,
    max: f64,
    total: f64,
}

impl Compat {
    /// One for all files: sums go over all that is read.
    pub fn new(script: Script) -> Self {
        Compat {
            script,
            iteration: 0,
            printed: 0,
            operations: BTreeMap::new(),
            buckets: BTreeMap::new(),
            kinds: BTreeMap::new(),
        }
    }

    /// Reads one stream; what needs no end of all is written at once.
    pub fn read(&mut self, mut from: impl BufRead, out: &mut dyn Write) -> io::Result<()> {
        let mut line = Vec::new();
        while next(&mut from, &mut line)? {
            if self.script == Script::SeparateSteps {
                self.step(&line, out)?;
            } else if let Some(seen) = ScriptFields::parse(&String::from_utf8_lossy(&line))
                && seen.is_printed()
            {
                self.call(&seen, out)?;
            }
        }
        Ok(())
    }

    /// The window of the script, with its ends.
    fn step(&mut self, line: &[u8], out: &mut dyn Write) -> io::Result<()> {
        if let Some(iteration) = iteration(&String::from_utf8_lossy(line)) {
            self.iteration = iteration;
        }
        if (45..=50).contains(&self.iteration) {
            self.printed += 1;
            out.write_all(line)?;
            out.write_all(b"\n")?;
        }
        Ok(())
    }

    fn call(&mut self, seen: &ScriptFields, out: &mut dyn Write) -> io::Result<()> {
        let bytes = number(seen.bytes());
        let ScriptFields { operation, count, datatype, .. } = *seen;
        match self.script {
            Script::SeparateSteps => {}
            Script::Comm => {
                self.printed += 1;
                writeln!(out, "{operation} {count} {datatype} {bytes}")?;
            }
            Script::PerOp => {
                let bytes = seen.bytes();
                let none = Sum { calls: 0.0, min: f64::INFINITY, max: 0.0, total: 0.0 };
                let sum = self.operations.entry(operation.to_owned()).or_insert(none);
                sum.calls += 1.0;
                sum.min = sum.min.min(bytes);
                sum.max = sum.max.max(bytes);
                sum.total += bytes;
            }
            Script::Histogram => {
                *self.buckets.entry(format!("{operation}:{}", bucket(seen.bytes()))).or_default() += 1;
            }
            Script::Aggregate => {
                let kind = (operation.to_owned(), count.to_owned(), datatype.to_owned(), bytes);
                *self.kinds.entry(kind).or_default() += 1;
            }
        }
        let gathered = self.operations.len().max(self.buckets.len()).max(self.kinds.len());
        if gathered > MOST {
            let why = format!("more than {MOST} distinct calls: too many to aggregate");
            return Err(io::Error::new(io::ErrorKind::OutOfMemory, why));
        }
        Ok(())
    }

    /// Writes what was gathered; gives how many lines were written in all.
    pub fn finish(self, out: &mut dyn Write) -> io::Result<u64> {
        for (operation, sum) in &self.operations {
            let Sum { calls, min, max, total } = *sum;
            let (average, calls) = (number(total / calls), number(calls));
            let (min, max, total) = (number(min), number(max), number(total));
            writeln!(out, "{operation} calls={calls} min={min} avg={average} max={max} total={total}")?;
        }
        for (bucket, calls) in &self.buckets {
            writeln!(out, "{bucket} {calls}")?;
        }
        if !self.kinds.is_empty() {
            writeln!(out, "{}", columns(["calls", "op", "count", "dtype", "bytes_per_call"]))?;
        }
        for ((operation, count, datatype, bytes), calls) in &self.kinds {
            writeln!(out, "{}", columns([&calls.to_string(), operation, count, datatype, bytes]))?;
        }
        Ok(self.printed + (self.operations.len() + self.buckets.len() + self.kinds.len()) as u64)
    }
}

fn columns(cells: [&str; 5]) -> String {
    let [calls, operation, count, datatype, bytes] = cells;
    format!("{calls:<10} {operation:<15} {count:<12} {datatype:<10} {bytes:<12}")
}

/// The next line without its end; false where there is none.
pub(super) fn next(from: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    from.by_ref().take(LONGEST).read_until(b'\n', line)?;
    if line.last() == Some(&b'\n') {
        line.pop();
        return Ok(true);
    }
    if line.len() as u64 >= LONGEST {
        let why = format!("a line is longer than {LONGEST} bytes: not a log");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    Ok(!line.is_empty())
}

/// What the second script takes out of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ScriptFields<'a> {
    /// The first field that ends in a colon, whatever it is.
    pub operation: &'a str,
    pub count: &'a str,
    pub datatype: &'a str,
    /// Of the type; zero where it is not known.
    pub size: f64,
}

impl<'a> ScriptFields<'a> {
    /// Nothing where the line is passed over.
    pub(super) fn parse(line: &'a str) -> Option<ScriptFields<'a>> {
        if !line.contains("opCount") || !line.contains("NCCL INFO") {
            return None;
        }
        let mut seen = ScriptFields { operation: "", count: "", datatype: "", size: 0.0 };
        let mut before = "";
        for field in line.split([' ', '\t']).filter(|field| !field.is_empty()) {
            if seen.operation.is_empty()
                && let Some(operation) = field.strip_suffix(':')
            {
                seen.operation = operation;
            }
            match before {
                "count" => seen.count = field.trim_end_matches(','),
                "datatype" => seen.datatype = field.trim_end_matches(','),
                _ => {}
            }
            before = field;
        }
        seen.size = size(seen.datatype);
        Some(seen)
    }

    pub(super) fn elements(&self) -> f64 {
        let end = self.count.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.count.len());
        self.count.get(..end).and_then(|digits| digits.parse().ok()).unwrap_or(0.0)
    }

    pub(super) fn bytes(&self) -> f64 {
        self.elements() * self.size
    }

    pub(super) fn is_printed(&self) -> bool {
        !self.operation.is_empty() && self.elements() > 0.0 && self.size > 0.0
    }
}

fn size(datatype: &str) -> f64 {
    match datatype {
        "0" | "1" | "10" | "11" | "int8" | "uint8" | "fp8_e4m3" | "fp8_e5m2" => 1.0,
        "6" | "9" | "fp16" | "bf16" => 2.0,
        "2" | "3" | "7" | "int32" | "uint32" | "fp32" => 4.0,
        "4" | "5" | "8" | "int64" | "uint64" | "fp64" => 8.0,
        _ => 0.0,
    }
}

/// The iteration that a line of a training sets: the word `iteration` alone, and a number before a slash.
pub(super) fn iteration(line: &str) -> Option<u64> {
    if !line.contains("Training epoch") {
        return None;
    }
    let mut fields = line.split_whitespace();
    fields.find(|field| *field == "iteration")?;
    let number = fields.next()?.split('/').next()?;
    let end = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
    // What is no number is zero to awk.
    Some(number.get(..end)?.parse().unwrap_or(0))
}

fn bucket(bytes: f64) -> &'static str {
    match bytes {
        bytes if bytes < 65_536.0 => "<64KB",
        bytes if bytes < 1_048_576.0 => "64KB-1MB",
        bytes if bytes < 16_777_216.0 => "1MB-16MB",
        _ => ">16MB",
    }
}

/// As gawk prints a number: whole ones in full, others with six digits.
fn number(value: f64) -> String {
    if value.fract() == 0.0 {
        return format!("{value:.0}");
    }
    let scientific = format!("{value:.5e}");
    let (digits, power) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let power: i32 = power.parse().unwrap_or(0);
    let short = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    match power {
        -4..=5 => short(&format!("{value:.*}", usize::try_from(5 - power).unwrap_or(0))),
        _ => format!("{}e{}{:02}", short(digits), if power < 0 { '-' } else { '+' }, power.abs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_that_gawk_prints() {
        let table = [
            (8_589_934_592.0, "8589934592"),
            (1_234_567.5, "1.23457e+06"),
            (262_144.5, "262144"),
            (0.5, "0.5"),
            (1.0 / 3.0, "0.333333"),
            (0.0, "0"),
            (100.25, "100.25"),
            (0.000_012_5, "1.25e-05"),
        ];
        for (value, expected) in table {
            assert_eq!(number(value), expected);
        }
    }
}
