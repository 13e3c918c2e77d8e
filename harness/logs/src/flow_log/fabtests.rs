//! The output of `fi_rma_bw` of fabtests: the machine-readable line that the script asks for with `-m`, and the table
//! that people see. Both count megabytes of 10^6 bytes.

use super::{Flow, Row, Tool};

/// What was seen so far of the output.
#[derive(Default)]
pub(super) struct Table {
    begun: bool,
    /// The names of the columns, once their line came.
    columns: Vec<String>,
}

impl Table {
    pub(super) fn begun(&self) -> bool {
        self.begun
    }

    /// The row in this line; nothing where the line is no row.
    pub(super) fn row(&mut self, line: &str) -> Option<Result<Row, String>> {
        if let Some(fields) = line.strip_prefix("- {") {
            return Some(machine_row(fields));
        }
        if line == "---" {
            self.begun = true;
            return None;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.contains(&"MB/sec") && words.contains(&"bytes") {
            self.begun = true;
            self.columns = words.iter().map(|word| (*word).to_owned()).collect();
            return None;
        }
        (!self.columns.is_empty() && words.len() == self.columns.len()).then(|| self.human_row(&words))
    }

    fn human_row(&self, words: &[&str]) -> Result<Row, String> {
        let cell = |name: &str| {
            let at = self.columns.iter().position(|column| column == name);
            at.and_then(|at| words.get(at)).copied().ok_or_else(|| format!("column is missing: `{name}`"))
        };
        let seconds = number(cell("time")?.trim_end_matches('s'))?;
        let flow = Flow {
            tool: Tool::FiRmaBw,
            bytes: scaled(cell("bytes")?, 1024)?,
            iterations: scaled(cell("iters")?, 1000)?,
            seconds,
            rate_gb_s: number(cell("MB/sec")?)? / 1e3,
        };
        // This form shortens its counts to a letter, so the rate cannot be compared with an exact value.
        Ok(Row { flow, again_gb_s: None })
    }
}

pub(super) fn render(flow: &Flow) -> String {
    let Flow { bytes, iterations, seconds, rate_gb_s, .. } = flow;
    let total = u128::from(*bytes) * u128::from(*iterations);
    let each = seconds * 1e6 / *iterations as f64;
    format!(
        "---\nfi_rma_bw -m -S {bytes} -I {iterations} :\n- {{ xfer_size: {bytes}, iterations: {iterations}, total: \
         {total}, time: {seconds:.6}, MB/sec: {:.6}, usec/xfer: {each:.6}, Mxfers/sec: {:.6} }}\n",
        rate_gb_s * 1e3,
        1.0 / each
    )
}

fn machine_row(fields: &str) -> Result<Row, String> {
    let inside = fields.trim().strip_suffix('}').ok_or("a row without its closing brace")?;
    let cell = |name: &str| {
        let mut pairs = inside.split(',').filter_map(|pair| pair.split_once(':'));
        let found = pairs.find(|(key, _)| key.trim() == name);
        found.map(|(_, value)| value.trim()).ok_or_else(|| format!("field is missing: `{name}`"))
    };
    let flow = Flow {
        tool: Tool::FiRmaBw,
        bytes: whole(cell("xfer_size")?)?,
        iterations: whole(cell("iterations")?)?,
        seconds: number(cell("time")?)?,
        rate_gb_s: number(cell("MB/sec")?)? / 1e3,
    };
    let again = flow.bytes as f64 * flow.iterations as f64 / (flow.seconds * 1e9);
    // The time is printed to the microsecond.
    let slack = again * (0.01 + 1e-6 / flow.seconds) + 1e-9;
    Ok(Row { flow, again_gb_s: Some((again, slack)) })
}

fn number(word: &str) -> Result<f64, String> {
    word.parse().map_err(|_| format!("not a number: `{word}`"))
}

fn whole(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("not a whole number: `{word}`"))
}

/// A count shortened by a letter, such as `1m` or `1.5k`.
fn scaled(word: &str, base: u64) -> Result<u64, String> {
    let power = match word.chars().last() {
        Some('k') => 1,
        Some('m') => 2,
        Some('g' | 'b') => 3,
        _ => return whole(word),
    };
    let value = number(&word[..word.len() - 1])? * (base as f64).powi(power);
    if value.is_finite() && value >= 0.0 { Ok(value as u64) } else { Err(format!("not a count: `{word}`")) }
}
