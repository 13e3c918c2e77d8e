//! The output of one flow between two NICs: what the tool printed, or the script's own line on why it printed nothing.
//! Each tool's form has its file; what a rate says about a NIC is `recipes::recipe::nic_rate`'s business.

mod fabtests;
#[cfg(test)]
mod message_tests;
mod path;
mod perftest;

pub use path::FlowPath;

use crate::text::plain;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One flow as its tool measured it at the client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// Known by the form of its output.
    pub tool: Tool,
    /// The size of one message.
    pub bytes: u64,
    /// Messages that were moved, of `bytes` each.
    pub iterations: u64,
    /// perftest prints no time: there it follows from the rate.
    pub seconds: f64,
    /// In 10^9 bytes per second, whatever unit the tool prints.
    pub rate_gb_s: f64,
}

/// A program that measures one flow between two NICs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tool {
    /// Of libfabric's fabtests.
    #[serde(rename = "fi_rma_bw")]
    FiRmaBw,
    /// Also `ib_read_bw`, which prints the same.
    #[serde(rename = "ib_write_bw")]
    IbWriteBw,
}

/// Why a flow has no rate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowGap {
    /// Only `NotConnected` speaks about the NICs.
    pub kind: GapKind,
    /// For people, such as `no output`; without the line.
    pub reason: String,
    /// As passed to `read`.
    pub file: String,
    /// One-based line in `file`.
    pub line: Option<u64>,
}

/// Why a flow has no rate; the finding's code is `flow-` and this name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GapKind {
    /// Tried until the limit and gave no rate. The only gap that speaks about the NICs.
    NotConnected,
    /// The file is empty, or the other node was not ready (`not-started`).
    NoOutput,
    /// The tool is not installed on a node (`tool-missing`).
    ToolMissing,
    /// The tool took none of its arguments, or cannot do what they ask for. It speaks about no NIC.
    ToolRefused,
    /// The output ends before the rate, or within it.
    Cut,
    /// No rate, several, or one that the other columns contradict.
    NotUnderstood,
}

/// How the script reports that no attempt ended well.
const GAVE_UP: &str = "not-connected ";

/// Of what a tool printed, in characters.
const MOST_WORDS: usize = 200;

/// The flow in `text`; `file` names it in the gap.
pub fn read(text: &[u8], file: &str) -> Result<Flow, FlowGap> {
    let gap = |kind, reason: String, line: Option<u64>| FlowGap { kind, reason, file: file.to_owned(), line };
    if text.trim_ascii().is_empty() {
        return Err(gap(GapKind::NoOutput, "no output".to_owned(), None));
    }
    let mut perftest = perftest::Table::default();
    let mut fabtests = fabtests::Table::default();
    let (mut found, mut refused, mut gave_up) = (None, None, None);
    let mut number = 0;
    for whole in text.split_inclusive(|byte| *byte == b'\n') {
        number += 1;
        let line = String::from_utf8_lossy(whole);
        let line = plain(line.trim_end(), begins);
        let line = line.text.trim();
        if let Some(what) = line.strip_prefix("tool-missing ") {
            let (tool, node) = what.split_once(' ').unwrap_or((what, "a node"));
            let reason = format!("`{tool}` is not installed on {node}");
            return Err(gap(GapKind::ToolMissing, reason, Some(number)));
        }
        if let Some(reason) = line.strip_prefix("tool-refused ") {
            let reason = reason.chars().take(MOST_WORDS).collect();
            return Err(gap(GapKind::ToolRefused, reason, Some(number)));
        }
        if FlowPath::is_one(line) {
            continue;
        }
        // The other node never came: that says nothing about a NIC.
        if let Some(reason) = line.strip_prefix("not-started ") {
            return Err(gap(GapKind::NoOutput, reason.to_owned(), Some(number)));
        }
        if line.starts_with(GAVE_UP) {
            gave_up = Some(number);
        }
        if let Some(reason) = refusal(line) {
            refused = refused.or(Some((reason, number)));
            continue;
        }
        let Some(row) = fabtests.row(line).or_else(|| perftest.row(line)) else { continue };
        // A row without its line end may lack the last digits of its numbers.
        if !whole.ends_with(b"\n") {
            return Err(gap(GapKind::Cut, "output ends within the rate".to_owned(), Some(number)));
        }
        let flow = row.and_then(plausible).map_err(|why| gap(GapKind::NotUnderstood, why, Some(number)))?;
        if found.replace(flow).is_some() {
            return Err(gap(GapKind::NotUnderstood, "more than one rate".to_owned(), Some(number)));
        }
    }
    let begun = perftest.begun() || fabtests.begun();
    match (found, refused) {
        // The tool ended badly behind its rate, or the rate is another attempt's.
        (Some(_), _) if gave_up.is_some() => {
            Err(gap(GapKind::NotUnderstood, "a rate beside `not-connected`".to_owned(), gave_up))
        }
        (Some(flow), _) => Ok(flow),
        (None, Some((reason, line))) => Err(gap(GapKind::NotConnected, reason, Some(line))),
        (None, None) if begun || !text.ends_with(b"\n") => {
            Err(gap(GapKind::Cut, "output ends before the rate".to_owned(), Some(number)))
        }
        (None, None) => Err(gap(GapKind::NotUnderstood, "no rate in the output".to_owned(), Some(number))),
    }
}

/// The text in the form of the flow's tool.
pub fn render(flow: &Flow) -> String {
    match flow.tool {
        Tool::FiRmaBw => fabtests::render(flow),
        Tool::IbWriteBw => perftest::render(flow),
    }
}

impl Flow {
    /// The flow as reading the tool's print of it gives it: with the digits that the tool prints. None where these
    /// digits leave nothing of it, such as a rate that prints as zero.
    #[cfg(test)]
    pub(crate) fn printed(tool: Tool, bytes: u64, iterations: u64, rate_gb_s: f64) -> Option<Flow> {
        let seconds = bytes as f64 * iterations as f64 / (rate_gb_s * 1e9);
        read(render(&Flow { tool, bytes, iterations, seconds, rate_gb_s }).as_bytes(), "").ok()
    }
}

impl Tool {
    /// As on the command line of `flows.sh`, such as `fi_rma_bw`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Tool::FiRmaBw => "fi_rma_bw",
            Tool::IbWriteBw => "ib_write_bw",
        }
    }

    /// Inverse of `name`; None for `ib_read_bw` too.
    pub fn named(name: &str) -> Option<Tool> {
        [Tool::FiRmaBw, Tool::IbWriteBw].into_iter().find(|tool| tool.name() == name)
    }

    /// What puts the tool on a node that lacks it.
    pub fn to_install(self) -> &'static str {
        match self {
            Tool::FiRmaBw => {
                "fabtests: build it from github.com/ofiwg/libfabric, folder `fabtests`, with \
                 `./configure --with-cuda=/usr/local/cuda`; the EFA installer does not bring it"
            }
            Tool::IbWriteBw => {
                "perftest 24 or newer: build it from github.com/linux-rdma/perftest with \
                 `./configure CUDA_H_PATH=/usr/local/cuda/include/cuda.h`; 4.5 cannot write over SRD"
            }
        }
    }
}

impl FlowGap {
    /// Same as the field.
    pub fn kind(&self) -> GapKind {
        self.kind
    }
}

impl fmt::Display for FlowGap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)?;
        self.line.map_or(Ok(()), |line| write!(f, " (line {line})"))
    }
}

/// What the codes of these findings begin with.
const CODE: &str = "flow-";

impl GapKind {
    /// All kinds, in the order of declaration.
    pub(crate) const ALL: [GapKind; 6] = [
        GapKind::NotConnected,
        GapKind::NoOutput,
        GapKind::ToolMissing,
        GapKind::ToolRefused,
        GapKind::Cut,
        GapKind::NotUnderstood,
    ];

    /// As in JSON, and in findings behind `flow-`: `not-connected`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            GapKind::NotConnected => "not-connected",
            GapKind::NoOutput => "no-output",
            GapKind::ToolMissing => "tool-missing",
            GapKind::ToolRefused => "tool-refused",
            GapKind::Cut => "cut",
            GapKind::NotUnderstood => "not-understood",
        }
    }

    /// The code of a finding about a flow with such a gap: `flow-not-connected`.
    pub fn code(self) -> String {
        format!("{CODE}{}", self.name())
    }

    /// Inverse of `code`.
    pub fn from_code(code: &str) -> Option<GapKind> {
        let name = code.strip_prefix(CODE)?;
        GapKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for GapKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A row of either tool, before it is validated.
struct Row {
    flow: Flow,
    /// The rate recomputed from the row's other columns, and the rounding error of their few digits.
    again_gb_s: Option<(f64, f64)>,
}

/// Whether a text begins as a line of the script or of a tool does.
fn begins(text: &str) -> bool {
    const FIRST: [&str; 8] =
        ["path ", "tool-missing ", "tool-refused ", "not-started ", "not-connected ", "#bytes", "- {", "---"];
    let bare = text.trim_start();
    let is_row = || {
        let words = || bare.split_whitespace();
        let is_figure = |word: &str| word.starts_with(|c: char| c.is_ascii_digit()) && !word.contains(':');
        words().all(is_figure) && words().nth(3).is_some()
    };
    FIRST.iter().any(|word| bare.starts_with(word)) || is_row()
}

/// The script's own line on a flow that it gave up, or a tool's words where both streams went to one file.
fn refusal(line: &str) -> Option<String> {
    if let Some(reason) = line.strip_prefix(GAVE_UP) {
        return Some(reason.to_owned());
    }
    let words =
        ["Couldn't connect to", "Unable to init the socket connection", "connect: Connection refused"];
    words.iter().any(|words| line.contains(words)).then(|| format!("tool reports: {line}"))
}

fn plausible(row: Row) -> Result<Flow, String> {
    let flow = row.flow;
    for (what, value) in [("rate", flow.rate_gb_s), ("time", flow.seconds)] {
        if !(value.is_finite() && value > 0.0) {
            return Err(format!("{what} is not a number above zero: {value}"));
        }
    }
    if flow.bytes == 0 || flow.iterations == 0 {
        return Err(format!("no data moved: {} messages of {} bytes", flow.iterations, flow.bytes));
    }
    let Some((again, slack)) = row.again_gb_s else { return Ok(flow) };
    // Asked this way round, a comparison with what is no number does not pass.
    if (again - flow.rate_gb_s).abs() <= slack {
        Ok(flow)
    } else {
        Err(format!("columns disagree on the rate: {:.2} and {again:.2} GB/s", flow.rate_gb_s))
    }
}

#[cfg(test)]
mod tests;
