//! The output of `ib_write_bw` and `ib_read_bw` of perftest: a table after a heading that names its unit.
//! What is called MB/sec there, in later versions MiB/sec, is 2^20 bytes; Gb/sec is 10^9 bits.

use super::{Flow, Row, Tool};

const MIB: f64 = 1_048_576.0;

/// What was seen so far of the output.
#[derive(Default)]
pub(super) struct Table {
    /// Bytes per second of one unit of the rate columns, once their heading came; or why they cannot be read.
    unit: Option<Result<f64, String>>,
}

impl Table {
    pub(super) fn begun(&self) -> bool {
        self.unit.is_some()
    }

    /// The row in this line; nothing where the line is no row.
    pub(super) fn row(&mut self, line: &str) -> Option<Result<Row, String>> {
        if line.starts_with("#bytes") {
            self.unit = Some(unit(line));
            return None;
        }
        let unit = self.unit.as_ref()?;
        let words: Vec<&str> = line.split_whitespace().collect();
        // Tools print remarks and rulers among their rows: a row begins with the size of a message.
        let bytes = words.first()?.parse().ok()?;
        Some(unit.clone().and_then(|unit| row(bytes, &words, unit)))
    }
}

pub(super) fn render(flow: &Flow) -> String {
    let ruler = "-".repeat(87);
    let bytes_s = flow.rate_gb_s * 1e9;
    format!(
        "{ruler}\n #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n \
         {:<7}    {:<10}       {:<7.2}            {:<7.2}\t\t   {:<7.6}\n{ruler}\n",
        flow.bytes,
        flow.iterations,
        bytes_s / MIB,
        bytes_s / MIB,
        bytes_s / flow.bytes as f64 / 1e6
    )
}

fn unit(heading: &str) -> Result<f64, String> {
    if heading.contains("#sl") || heading.contains("Port1") {
        return Err("table has columns per service level or port".to_owned());
    }
    let rest = heading.split_once("BW average[").map(|(_, rest)| rest);
    match rest.and_then(|rest| rest.split_once(']')).map(|(unit, _)| unit) {
        Some("MB/sec" | "MiB/sec") => Ok(MIB),
        Some("Gb/sec") => Ok(1e9 / 8.0),
        Some(other) => Err(format!("unknown unit of the rate: `{other}`")),
        None => Err("table has no average rate".to_owned()),
    }
}

fn row(bytes: u64, words: &[&str], unit: f64) -> Result<Row, String> {
    let cell =
        |at: usize, what: &str| words.get(at).copied().ok_or_else(|| format!("column is missing: {what}"));
    let number = |word: &str| word.parse::<f64>().map_err(|_| format!("not a number: `{word}`"));
    let iterations = cell(1, "iterations")?;
    let iterations: u64 = iterations.parse().map_err(|_| format!("not a whole number: `{iterations}`"))?;
    let bytes_s = number(cell(3, "average rate")?)? * unit;
    let flow = Flow {
        tool: Tool::IbWriteBw,
        bytes,
        iterations,
        seconds: bytes as f64 * iterations as f64 / bytes_s,
        rate_gb_s: bytes_s / 1e9,
    };
    // Messages per second times their size is the rate again, in bytes: a unit read wrongly shows here. The column
    // ends at one message per second; rates are printed to a hundredth of their unit.
    let again_gb_s = match words.get(4) {
        Some(word) => {
            let again = number(word)? * 1e6 * bytes as f64 / 1e9;
            Some((again, again * 0.02 + (bytes as f64 + unit * 0.01) / 1e9))
        }
        None => None,
    };
    Ok(Row { flow, again_gb_s })
}
