//! Charts that recipes give beside their tables: what is to be seen, whole and exact. How a page draws and thins them is
//! left to the page.

use crate::result_table::Quantity;

/// Labels and titles may hold names out of reports, whatever stands in them.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// Within its recipe; for addresses and files.
    pub name: &'static str,
    pub title: String,
    /// How it is read, in one sentence.
    pub about: String,
    pub figure: Figure,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Figure {
    Heatmap(Heatmap),
    Lines(Lines),
    Histogram(Histogram),
    Bars(Bars),
    Boxes(Boxes),
}

/// What the numbers along an axis, or of a colour, are.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// Without a unit where the quantity has one, else with it.
    pub name: String,
    pub quantity: Quantity,
    pub scale: Scale,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    Linear,
    Log,
}

/// One row per place (a rank's GPU, a host's NIC), one column per span of time.
#[derive(Debug, Clone, PartialEq)]
pub struct Heatmap {
    pub x: Axis,
    /// One more than there are columns, ascending.
    pub edges: Vec<i64>,
    pub value: Axis,
    /// What full colour stands for, where that does not depend on the data.
    pub most: Option<f64>,
    pub rows: Vec<HeatmapRow>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct HeatmapRow {
    pub label: String,
    pub rank: Option<i64>,
    /// As many as there are columns; nothing where nothing was measured, which is never a zero.
    pub values: Vec<Option<f64>>,
}

/// Numbers over numbers, one line per rank or name.
#[derive(Debug, Clone, PartialEq)]
pub struct Lines {
    pub x: Axis,
    pub y: Axis,
    pub lines: Vec<Line>,
    pub marks: Vec<Mark>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub label: String,
    pub rank: Option<i64>,
    /// By ascending x; without a y the line is broken.
    pub points: Vec<(f64, Option<f64>)>,
}

/// How many values lie between two edges. Each value is counted in one of the series alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    pub x: Axis,
    /// One more than there are bins, ascending. A value on an edge is of the bin above it, the last edge of the last bin.
    pub edges: Vec<f64>,
    pub series: Vec<Bins>,
    /// Along x.
    pub marks: Vec<Mark>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Bins {
    pub label: String,
    pub rank: Option<i64>,
    pub counts: Vec<u64>,
}

/// A number that others are compared with: a line across the chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    pub label: String,
    pub along: Along,
    pub at: f64,
}

/// On which axis a mark stands. The values of bars and boxes are along Y, however they are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Along {
    X,
    Y,
}

/// One number per name, in the order given.
#[derive(Debug, Clone, PartialEq)]
pub struct Bars {
    pub value: Axis,
    pub bars: Vec<Bar>,
    pub marks: Vec<Mark>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    pub label: String,
    pub rank: Option<i64>,
    pub value: Option<f64>,
}

/// The spread of values per name, in the order given.
#[derive(Debug, Clone, PartialEq)]
pub struct Boxes {
    pub value: Axis,
    pub boxes: Vec<FiveNumbers>,
    pub marks: Vec<Mark>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct FiveNumbers {
    pub label: String,
    pub rank: Option<i64>,
    pub count: u64,
    pub min: f64,
    pub q1: f64,
    pub median: f64,
    pub q3: f64,
    pub max: f64,
}

impl Axis {
    pub fn linear(name: &str, quantity: Quantity) -> Axis {
        Axis { name: name.to_owned(), quantity, scale: Scale::Linear }
    }

    pub fn log(name: &str, quantity: Quantity) -> Axis {
        Axis { name: name.to_owned(), quantity, scale: Scale::Log }
    }
}
