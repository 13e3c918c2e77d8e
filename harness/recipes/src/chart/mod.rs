//! Charts that recipes give beside their tables: what is to be seen, whole and exact. How a page draws and thins them is
//! left to the page.

use crate::result_table::Quantity;
use std::borrow::Cow;

/// Labels and titles may hold names out of reports, whatever stands in them.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// Within its recipe; for addresses and files.
    pub name: Cow<'static, str>,
    /// The heading above the chart.
    pub title: String,
    /// How it is read, in one sentence.
    pub about: String,
    /// The kind of chart and its data.
    pub figure: Figure,
}

/// The data of a chart, by kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Figure {
    /// Colours over time, one row per place.
    Heatmap(Heatmap),
    /// Numbers over numbers, as lines.
    Lines(Lines),
    /// How many values lie in each bin.
    Histogram(Histogram),
    /// One number per name.
    Bars(Bars),
    /// Quartiles of the values of each name.
    Boxes(Boxes),
}

/// What the numbers along an axis, or of a colour, are.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// Without a unit where the quantity has one, else with it.
    pub name: String,
    /// Decides the unit and the format of numbers along the axis.
    pub quantity: Quantity,
    /// Linear or logarithmic.
    pub scale: Scale,
}

/// How numbers are laid out along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Equal lengths for equal differences.
    Linear,
    /// Equal lengths for equal factors; there is no zero.
    Log,
}

/// One row per place (a rank's GPU, a host's NIC), one column per span of time.
#[derive(Debug, Clone, PartialEq)]
pub struct Heatmap {
    /// What `edges` are, mostly time.
    pub x: Axis,
    /// One more than there are columns, ascending.
    pub edges: Vec<i64>,
    /// What the colour stands for.
    pub value: Axis,
    /// What full colour stands for, where that does not depend on the data.
    pub most: Option<f64>,
    /// In the order in which they are drawn.
    pub rows: Vec<HeatmapRow>,
}

/// The values of one place over time.
#[derive(Debug, Clone, PartialEq)]
pub struct HeatmapRow {
    /// Such as `rank 1, GPU 0`.
    pub label: String,
    /// Pages hide rows by it; `None` where the row is of no single rank, and always shown.
    pub rank: Option<i64>,
    /// As many as there are columns; nothing where nothing was measured, which is never a zero.
    pub values: Vec<Option<f64>>,
}

/// Numbers over numbers, one line per rank or name.
#[derive(Debug, Clone, PartialEq)]
pub struct Lines {
    /// What the first number of each point is.
    pub x: Axis,
    /// What the second number of each point is.
    pub y: Axis,
    /// One per rank or name, over the same axes.
    pub lines: Vec<ChartLine>,
    /// Such as a threshold.
    pub marks: Vec<Mark>,
}

/// The points of one rank or name.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartLine {
    /// Such as `rank 0, GPU 1`.
    pub label: String,
    /// Pages hide lines by it; `None` where the line is of no single rank, and always shown.
    pub rank: Option<i64>,
    /// By ascending x; without a y the line is broken.
    pub points: Vec<(f64, Option<f64>)>,
}

/// How many values lie between two edges. Each value is counted in one of the series alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    /// What the counted values are.
    pub x: Axis,
    /// One more than there are bins, ascending. A value on an edge is of the bin above it, the last edge of the last bin.
    pub edges: Vec<f64>,
    /// All over the same `edges`.
    pub series: Vec<Bins>,
    /// Along x.
    pub marks: Vec<Mark>,
}

/// The counts of one series of a histogram.
#[derive(Debug, Clone, PartialEq)]
pub struct Bins {
    /// Such as `rank 0` or `all calls`.
    pub label: String,
    /// Pages hide series by it; `None` where the series is of no single rank, and always shown.
    pub rank: Option<i64>,
    /// One per bin: one fewer than the histogram has edges.
    pub counts: Vec<u64>,
}

/// A number that others are compared with: a line across the chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// Such as `threshold`.
    pub label: String,
    /// The axis on which `at` lies.
    pub along: Along,
    /// In the quantity of that axis; not drawn where it is not finite.
    pub at: f64,
}

/// On which axis a mark stands. The values of bars and boxes are along Y, however they are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Along {
    /// At a number on the axis `x`.
    X,
    /// At a number on the axis `y`, or among the values of bars and boxes.
    Y,
}

/// One number per name, in the order given.
#[derive(Debug, Clone, PartialEq)]
pub struct Bars {
    /// What the bars' numbers are.
    pub value: Axis,
    /// In the order in which they are drawn.
    pub bars: Vec<Bar>,
    /// All along `Along::Y`.
    pub marks: Vec<Mark>,
}

/// One name's number.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// Such as `rank 0, GPU 1`, or a class of kernels.
    pub label: String,
    /// Pages hide bars by it; `None` where the bar is of no single rank, and always shown.
    pub rank: Option<i64>,
    /// In the quantity of the axis; `None` where nothing was measured, which is never a zero.
    pub value: Option<f64>,
}

/// The spread of values per name, in the order given.
#[derive(Debug, Clone, PartialEq)]
pub struct Boxes {
    /// What the boxes' numbers are.
    pub value: Axis,
    /// In the order in which they are drawn.
    pub boxes: Vec<FiveNumbers>,
    /// All along `Along::Y`.
    pub marks: Vec<Mark>,
}

/// Minimum, quartiles, median and maximum of one name's values, in the axis's quantity.
#[derive(Debug, Clone, PartialEq)]
pub struct FiveNumbers {
    /// What the values are of: a rank, a kernel, a group of calls.
    pub label: String,
    /// Pages hide boxes by it; `None` where the box is of no single rank, and always shown.
    pub rank: Option<i64>,
    /// Number of values, at least one.
    pub count: u64,
    /// The smallest value.
    pub min: f64,
    /// Lower quartile, by linear interpolation.
    pub q1: f64,
    /// Mean of the two middle values where their number is even.
    pub median: f64,
    /// Upper quartile, by linear interpolation.
    pub q3: f64,
    /// The largest value.
    pub max: f64,
}

impl Axis {
    /// A linear axis of this name.
    pub fn linear(name: &str, quantity: Quantity) -> Axis {
        Axis { name: name.to_owned(), quantity, scale: Scale::Linear }
    }

    /// A logarithmic axis of this name.
    pub fn log(name: &str, quantity: Quantity) -> Axis {
        Axis { name: name.to_owned(), quantity, scale: Scale::Log }
    }
}
