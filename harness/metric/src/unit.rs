//! The units of metrics, how a value with its unit is written and read, and which direction is better.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The unit that a metric's value carries. Comparisons happen between like units only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Unit {
    /// 10^9 bytes per second.
    #[serde(rename = "GB/s")]
    GigabytesPerSecond,
    /// 10^-6 seconds.
    #[serde(rename = "us")]
    Microseconds,
    /// 10^-9 seconds.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// Counted, so that a value is exact.
    #[serde(rename = "bytes")]
    Bytes,
    /// A number of things, or a figure without a unit.
    #[serde(rename = "count")]
    Count,
    /// A fraction of one.
    #[serde(rename = "ratio")]
    Ratio,
    /// Samples, tokens: whatever is counted, per second.
    #[serde(rename = "1/s")]
    PerSecond,
    /// 10^12 floating point operations per second.
    #[serde(rename = "TFLOP/s")]
    Teraflops,
}

impl Unit {
    /// Every unit once.
    pub const ALL: [Unit; 9] = [
        Unit::GigabytesPerSecond,
        Unit::Microseconds,
        Unit::Nanoseconds,
        Unit::Seconds,
        Unit::Bytes,
        Unit::Count,
        Unit::Ratio,
        Unit::PerSecond,
        Unit::Teraflops,
    ];

    /// As in files and messages: `GB/s`.
    pub fn name(self) -> &'static str {
        match self {
            Unit::GigabytesPerSecond => "GB/s",
            Unit::Microseconds => "us",
            Unit::Nanoseconds => "ns",
            Unit::Seconds => "s",
            Unit::Bytes => "bytes",
            Unit::Count => "count",
            Unit::Ratio => "ratio",
            Unit::PerSecond => "1/s",
            Unit::Teraflops => "TFLOP/s",
        }
    }

    /// Whether what carries it is measured, and so a little different in every run; what is counted is not.
    pub fn varies(self) -> bool {
        !matches!(self, Unit::Count | Unit::Bytes)
    }

    /// The inverse of `name`; `None` for any other text.
    pub fn from_name(name: &str) -> Option<Unit> {
        Unit::ALL.into_iter().find(|unit| unit.name() == name)
    }

    /// A value of this unit for a person: as many digits as its size deserves, and the unit where it says something.
    pub fn show(self, value: f64) -> String {
        match self {
            Unit::Count => plain(value),
            Unit::Bytes => format!("{} bytes", plain(value)),
            Unit::Ratio => format!("{value:.3}"),
            unit => {
                let digits = if value.abs() >= 1000.0 {
                    0
                } else if value.abs() >= 100.0 {
                    1
                } else if value.abs() >= 1.0 || value == 0.0 {
                    2
                } else {
                    4
                };
                format!("{value:.digits$} {}", unit.name())
            }
        }
    }
}

fn plain(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 { format!("{value:.0}") } else { format!("{value}") }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Which way a metric improves; `Neither` for what must simply hold, such as a number of ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// More is better, as of a rate.
    Higher,
    /// Less is better, as of a time.
    Lower,
    /// Neither direction is an improvement.
    Neither,
}

impl Better {
    /// As tables and pages name it: `higher`, `lower` or `neither`.
    pub const fn name(self) -> &'static str {
        match self {
            Better::Higher => "higher",
            Better::Lower => "lower",
            Better::Neither => "neither",
        }
    }
}
