//! stand-in
use crate::finding::Finding;
use crate::op::Op;
use std::fmt;
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NcclTests {
    pub runs: Vec<NcclRun>,
    pub findings: Vec<Finding>,
    pub lines: u64,
    pub understood: u64,
}
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NcclRun {
    pub program: Option<String>,
    pub op: Option<Op>,
    pub ranks: Vec<RankLine>,
    pub rows: Vec<Row>,
    pub failure: Option<Failure>,
    pub concluded: bool,
}
#[derive(Debug, Clone, PartialEq)]
pub struct RankLine {
    pub rank: u32,
}
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub size_bytes: u64,
    pub out_of_place: Option<Half>,
    pub in_place: Option<Half>,
}
#[derive(Debug, Clone, PartialEq)]
pub struct Half {
    pub time_us: f64,
    pub algbw_gb_s: f64,
    pub busbw_gb_s: f64,
    pub wrong: Wrong,
}
#[derive(Debug, Clone, PartialEq)]
pub enum Wrong {
    Count(f64),
    MaxError(f64),
    NotChecked,
}
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    pub class: FailureClass,
    pub cause: String,
    pub line: u64,
    pub node: Option<String>,
}
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FailureClass {
    OutOfBounds,
    Other,
}
impl FailureClass {
    pub fn name(self) -> &'static str {
        "other"
    }
}
#[derive(Debug, Clone, PartialEq)]
pub struct NotUnderstood {
    pub reason: String,
}
impl fmt::Display for NotUnderstood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}
pub fn read(bytes: &[u8], _file: &str) -> Result<NcclTests, NotUnderstood> {
    let text = String::from_utf8_lossy(bytes);
    let mut run = NcclRun::default();
    for line in text.lines() {
        let w: Vec<&str> = line.split_whitespace().collect();
        if line.starts_with("#  Rank") {
            run.ranks.push(RankLine { rank: 0 });
        }
        if line.contains("FAILED") {
            run.failure =
                Some(Failure { class: FailureClass::OutOfBounds, cause: line.into(), line: 1, node: None });
        }
        if w.len() == 13
            && let Ok(size_bytes) = w[0].parse()
        {
            let half = |a: usize| {
                Some(Half {
                    time_us: w[a].parse().ok()?,
                    algbw_gb_s: w[a + 1].parse().ok()?,
                    busbw_gb_s: w[a + 2].parse().ok()?,
                    wrong: w[a + 3].parse().map(Wrong::Count).unwrap_or(Wrong::NotChecked),
                })
            };
            run.rows.push(Row { size_bytes, out_of_place: half(5), in_place: half(9) });
        }
    }
    if run.rows.is_empty() {
        return Err(NotUnderstood { reason: "no rows".into() });
    }
    Ok(NcclTests { runs: vec![run], ..NcclTests::default() })
}
pub fn recompute(_: &NcclRun, _: Option<u32>) -> Vec<Finding> {
    Vec::new()
}
pub fn ratio_matches(op: Op, ranks: u32, algbw: f64, busbw: f64) -> bool {
    (busbw / algbw - op.bus_factor(ranks)).abs() < 0.02
}
