//! Charts of results, from columns that the recipe names. What cannot be drawn as requested is an error.

use super::RANK;
use crate::chart::{
    Axis, Bar, Bars, Bins, Boxes, Chart, ChartLine, Figure, FiveNumbers, Heatmap, HeatmapRow, Histogram,
    Lines, Scale,
};
use crate::result_table::{Column, ResultTable, Values};
use std::collections::{BTreeMap, BTreeSet};

/// A chart that a recipe declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChartSpec {
    /// `name` in the file, else the kind of chart; unique within the recipe.
    pub name: String,
    /// `title` in the file, which must give one.
    pub title: String,
    /// `about` in the file; empty where it has none.
    pub about: String,
    /// Of which result.
    pub of: &'static str,
    /// The kind of chart and its columns.
    pub shape: Shape,
    /// Whether the numbers' axis is logarithmic.
    pub log: bool,
}

/// The columns that it is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// One bar per row.
    Bars {
        /// Columns whose values name a bar.
        label: Vec<String>,
        /// The column of the bars' numbers.
        value: String,
    },
    /// One line per label, or per rank.
    Lines {
        /// Columns whose values name a line; rows that agree in them are its points.
        label: Vec<String>,
        /// The column of the points' x; a row without a value is left out.
        x: String,
        /// The column of the points' y; the line is broken at a row without a value.
        y: String,
    },
    /// The values of each label, or of each rank, between equal edges.
    Histogram {
        /// Columns whose values name a series.
        label: Vec<String>,
        /// The column whose values are counted.
        value: String,
        /// Number of bins, from 1 to 10000; 30 where the file gives none.
        bins: u32,
    },
    /// The spread of values per label.
    Boxes {
        /// Columns whose values name a box.
        label: Vec<String>,
        /// The column whose quartiles are drawn.
        value: String,
    },
    /// One row per label; columns begin where `x` says and are `width` wide.
    Heatmap {
        /// Columns whose values name a row of the chart.
        label: Vec<String>,
        /// The column of whole numbers at which cells begin.
        x: String,
        /// The column of the cells' numbers.
        value: String,
        /// Width of a cell, in the unit of `x`.
        width: u64,
    },
}

impl Shape {
    /// Values of `kind` in `[[chart]]`, one per variant.
    pub const KINDS: [&'static str; 5] = ["bars", "lines", "histogram", "boxes", "heatmap"];
}

/// The chart, or why there is none.
pub(super) fn chart(spec: &ChartSpec, result_table: &ResultTable) -> Result<Chart, String> {
    let why = |why: &str| format!("chart `{}`: {why}", spec.name);
    let of = |name: &str| result_table.column(name).ok_or_else(|| why(&format!("no column `{name}`")));
    let scale = if spec.log { Scale::Log } else { Scale::Linear };
    let axis = |name: &str, scale: Scale| -> Result<Axis, String> {
        Ok(Axis { name: name.to_owned(), quantity: of(name)?.quantity, scale })
    };
    let labels = Labels::read(spec, result_table)?;
    let figure = match &spec.shape {
        Shape::Bars { value, .. } => {
            let column = of(value)?;
            let bars = (0..result_table.height()).map(|row| {
                let (label, rank) = labels.label_and_rank(row);
                Bar { label, rank, value: number(column, row) }
            });
            Figure::Bars(Bars { value: axis(value, scale)?, bars: bars.collect(), marks: Vec::new() })
        }
        Shape::Lines { x, y, .. } => {
            let (xs, ys) = (of(x)?, of(y)?);
            let mut lines: BTreeMap<_, Vec<(f64, Option<f64>)>> = BTreeMap::new();
            for row in 0..result_table.height() {
                let Some(at) = number(xs, row) else { continue };
                lines.entry(labels.key(row)).or_default().push((at, number(ys, row)));
            }
            let lines = lines.into_iter().map(|((rank, label), mut points)| {
                points.sort_by(|a, b| a.0.total_cmp(&b.0));
                ChartLine { label, rank, points }
            });
            Figure::Lines(Lines {
                x: axis(x, Scale::Linear)?,
                y: axis(y, scale)?,
                lines: lines.collect(),
                marks: Vec::new(),
            })
        }
        Shape::Histogram { value, bins, .. } => {
            let grouped = grouped(&labels, of(value)?, result_table.height());
            let edges = edges(grouped.values().flatten().copied(), *bins, spec.log)
                .ok_or_else(|| why("no value to count"))?;
            let series = grouped.into_iter().map(|((rank, label), values)| {
                let mut counts = vec![0; edges.len() - 1];
                for value in values {
                    let at = edges.partition_point(|edge| *edge <= value);
                    counts[at.saturating_sub(1).min(edges.len() - 2)] += 1;
                }
                Bins { label, rank, counts }
            });
            let series = series.collect();
            Figure::Histogram(Histogram { x: axis(value, scale)?, edges, series, marks: Vec::new() })
        }
        Shape::Boxes { value, .. } => {
            let boxes = grouped(&labels, of(value)?, result_table.height()).into_iter().filter_map(
                |((rank, label), mut all)| {
                    all.sort_by(f64::total_cmp);
                    let (min, max) = (*all.first()?, *all.last()?);
                    let at = |part: f64| quantile(&all, part);
                    let (q1, median, q3) = (at(0.25), at(0.5), at(0.75));
                    Some(FiveNumbers { label, rank, count: all.len() as u64, min, q1, median, q3, max })
                },
            );
            Figure::Boxes(Boxes { value: axis(value, scale)?, boxes: boxes.collect(), marks: Vec::new() })
        }
        Shape::Heatmap { x, value, width, .. } => heatmap(&labels, (of(x)?, of(value)?), *width)
            .map(|(edges, rows)| -> Result<Figure, String> {
                let (x, value) = (axis(x, Scale::Linear)?, axis(value, scale)?);
                Ok(Figure::Heatmap(Heatmap { x, edges, value, most: None, rows }))
            })
            .map_err(|error| why(&error))??,
    };
    Ok(Chart { name: spec.name.clone().into(), title: spec.title.clone(), about: spec.about.clone(), figure })
}

/// By rank, then by label.
type Key = (Option<i64>, String);

struct Labels<'a> {
    columns: Vec<&'a Column>,
    ranks: Option<&'a Column>,
}

impl<'a> Labels<'a> {
    fn read(spec: &ChartSpec, result_table: &'a ResultTable) -> Result<Labels<'a>, String> {
        let (Shape::Bars { label, .. }
        | Shape::Lines { label, .. }
        | Shape::Histogram { label, .. }
        | Shape::Boxes { label, .. }
        | Shape::Heatmap { label, .. }) = &spec.shape;
        let columns = label.iter().map(|name| {
            result_table.column(name).ok_or_else(|| format!("chart `{}`: no column `{name}`", spec.name))
        });
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        // A rank is named where it is part of the label; else rows of several ranks are of one.
        let ranks = columns.iter().find(|column| column.name == RANK).copied();
        Ok(Labels { columns, ranks })
    }

    fn label_and_rank(&self, row: usize) -> (String, Option<i64>) {
        let (rank, label) = self.key(row);
        (label, rank)
    }

    fn key(&self, row: usize) -> Key {
        let rank = self.ranks.and_then(|column| match &column.values {
            Values::Integers(all) => all.get(row),
            _ => None,
        });
        let words = self.columns.iter().map(|column| match (column.name.as_str(), word(column, row)) {
            (RANK, Some(word)) => format!("rank {word}"),
            (_, Some(word)) if matches!(column.values, Values::Texts(_)) => word,
            (name, Some(word)) => format!("{name} {word}"),
            (name, None) => format!("no {name}"),
        });
        let words: Vec<String> = words.collect();
        let label = if words.is_empty() { "all".to_owned() } else { words.join(", ") };
        (rank, label)
    }
}

fn word(column: &Column, row: usize) -> Option<String> {
    match &column.values {
        Values::Integers(all) => all.get(row).map(|value| value.to_string()),
        Values::Decimals(all) => all[row].map(|value| value.to_string()),
        Values::Texts(all) => all.get(row).map(str::to_owned),
        Values::Lists(all) => all[row].as_ref().map(|list| list.text().to_owned()),
    }
}

fn number(column: &Column, row: usize) -> Option<f64> {
    match &column.values {
        Values::Integers(all) => all.get(row).map(|value| value as f64),
        Values::Decimals(all) => all[row],
        Values::Texts(_) | Values::Lists(_) => None,
    }
}

fn grouped(labels: &Labels, column: &Column, height: usize) -> BTreeMap<Key, Vec<f64>> {
    let mut grouped: BTreeMap<Key, Vec<f64>> = BTreeMap::new();
    for row in 0..height {
        if let Some(value) = number(column, row) {
            grouped.entry(labels.key(row)).or_default().push(value);
        }
    }
    grouped
}

/// Equal steps from the least value to the greatest, or equal factors. Nothing where there is no value, or where factors
/// are asked for and a value is not above zero.
fn edges(values: impl Iterator<Item = f64>, bins: u32, log: bool) -> Option<Vec<f64>> {
    let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
    values.for_each(|value| (least, most) = (least.min(value), most.max(value)));
    if !least.is_finite() || (log && least <= 0.0) {
        return None;
    }
    if least == most {
        let wide = if least == 0.0 { 1.0 } else { least.abs() * 0.01 };
        return Some(vec![least, least + wide]);
    }
    let at = |part: f64| if log { least * (most / least).powf(part) } else { least + (most - least) * part };
    let mut edges: Vec<f64> = (0..bins).map(|bin| at(f64::from(bin) / f64::from(bins))).collect();
    edges.push(most);
    edges.dedup();
    Some(edges)
}

/// By linear interpolation, of values in order.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    let at = (sorted.len() - 1) as f64 * part;
    let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    below + (above - below) * at.fract()
}

/// More columns than any screen shows.
const MOST_COLUMNS: i64 = 100_000;
const MOST_CELLS: i64 = 4_000_000;

fn heatmap(
    labels: &Labels,
    (xs, values): (&Column, &Column),
    width: u64,
) -> Result<(Vec<i64>, Vec<HeatmapRow>), String> {
    let Values::Integers(xs) = &xs.values else {
        return Err("the x column of a heatmap needs whole numbers".to_owned());
    };
    let width = i64::try_from(width).map_err(|error| error.to_string())?;
    let starts: BTreeSet<i64> = xs.iter().flatten().collect();
    let (Some(first), Some(last)) = (starts.first().copied(), starts.last().copied()) else {
        return Err("the x column of the heatmap has no value".to_owned());
    };
    let columns = last.checked_sub(first).map(|span| span / width + 1).filter(|count| *count <= MOST_COLUMNS);
    let columns =
        columns.ok_or_else(|| format!("heatmap has more than {MOST_COLUMNS} columns of width {width}"))?;
    if let Some(odd) = starts.iter().find(|start| (**start - first) % width != 0) {
        return Err(format!("heatmap column at {odd} is off the grid of width {width}"));
    }
    let mut rows: BTreeMap<Key, Vec<Option<f64>>> = BTreeMap::new();
    for (row, start) in xs.iter().enumerate() {
        let Some(start) = start else { continue };
        let key = labels.key(row);
        if !rows.contains_key(&key) && (rows.len() as i64 + 1) * columns > MOST_CELLS {
            return Err(format!("heatmap has more than {MOST_CELLS} cells"));
        }
        let cells = rows.entry(key).or_insert_with(|| vec![None; columns as usize]);
        let cell = &mut cells[((start - first) / width) as usize];
        if cell.is_some() {
            let (_, label) = labels.key(row);
            return Err(format!("two values for one heatmap cell: `{label}` at {start}"));
        }
        *cell = number(values, row);
    }
    let edges = (0..=columns).map(|at| first.saturating_add(at.saturating_mul(width))).collect();
    let rows = rows.into_iter().map(|((rank, label), values)| HeatmapRow { label, rank, values });
    Ok((edges, rows.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result_table::Quantity;

    fn result_table() -> ResultTable {
        let plain = Quantity::Plain;
        ResultTable {
            name: "n".into(),
            title: "t".into(),
            columns: vec![
                Column::integers(RANK, plain, [0, 0, 1, 1, 0]),
                Column::texts("kernel", ["a", "b", "a", "b", "a"]),
                Column::integers("start", Quantity::Nanoseconds, [10, 20, 10, 30, 20]),
                Column::maybe_decimals(
                    "ns",
                    Quantity::Nanoseconds,
                    [Some(1.0), Some(4.0), Some(2.0), None, Some(3.0)],
                ),
            ],
        }
    }

    fn made(shape: Shape, log: bool) -> Result<Figure, String> {
        let (title, about) = ("T".to_owned(), String::new());
        let spec = ChartSpec { name: "p".to_owned(), title, about, of: "rows", shape, log };
        chart(&spec, &result_table()).map(|chart| chart.figure)
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn lines_are_of_ranks_and_names_and_break_where_nothing_was_measured() {
        let shape = Shape::Lines { label: names(&[RANK, "kernel"]), x: "start".into(), y: "ns".into() };
        let Figure::Lines(lines) = made(shape, false).expect("drawn") else { panic!("lines") };
        let shown: Vec<_> =
            lines.lines.iter().map(|line| (line.label.as_str(), line.rank, line.points.clone())).collect();
        assert_eq!(
            shown,
            [
                ("rank 0, a", Some(0), vec![(10.0, Some(1.0)), (20.0, Some(3.0))]),
                ("rank 0, b", Some(0), vec![(20.0, Some(4.0))]),
                ("rank 1, a", Some(1), vec![(10.0, Some(2.0))]),
                ("rank 1, b", Some(1), vec![(30.0, None)]),
            ]
        );
        assert_eq!(lines.y.quantity, Quantity::Nanoseconds);
    }

    #[test]
    fn a_histogram_counts_every_value_once_and_the_last_edge_is_of_the_last_bin() {
        let shape = Shape::Histogram { label: names(&[RANK]), value: "ns".into(), bins: 3 };
        let Figure::Histogram(histogram) = made(shape, false).expect("drawn") else { panic!("a histogram") };
        assert_eq!(histogram.edges, [1.0, 2.0, 3.0, 4.0]);
        let counts: Vec<_> = histogram.series.iter().map(|bins| (bins.rank, bins.counts.clone())).collect();
        assert_eq!(counts, [(Some(0), vec![1, 0, 2]), (Some(1), vec![0, 1, 0])]);
        assert_eq!(edges([5.0, 5.0].into_iter(), 3, false), Some(vec![5.0, 5.05]));
        assert_eq!(edges([1.0, 100.0].into_iter(), 2, true), Some(vec![1.0, 10.0, 100.0]));
        assert_eq!(edges([0.0, 1.0].into_iter(), 2, true), None);
        assert_eq!(edges(std::iter::empty(), 2, false), None);
    }

    #[test]
    fn boxes_have_quartiles_by_linear_interpolation() {
        let shape = Shape::Boxes { label: Vec::new(), value: "ns".into() };
        let Figure::Boxes(boxes) = made(shape, true).expect("drawn") else { panic!("boxes") };
        let [one] = boxes.boxes.as_slice() else { panic!("{boxes:?}") };
        assert_eq!((one.label.as_str(), one.rank, one.count), ("all", None, 4));
        assert_eq!([one.min, one.q1, one.median, one.q3, one.max], [1.0, 1.75, 2.5, 3.25, 4.0]);
        assert_eq!(boxes.value.scale, Scale::Log);
    }

    #[test]
    fn a_heatmap_has_a_row_per_label_and_no_two_values_in_one_place() {
        let of = |label: &[&str], width| Shape::Heatmap {
            label: names(label),
            x: "start".into(),
            value: "ns".into(),
            width,
        };
        let Figure::Heatmap(heatmap) = made(of(&[RANK, "kernel"], 10), false).expect("drawn") else {
            panic!("a heatmap")
        };
        assert_eq!(heatmap.edges, [10, 20, 30, 40]);
        let rows: Vec<_> = heatmap.rows.iter().map(|row| (row.label.as_str(), row.values.clone())).collect();
        assert_eq!(rows[0], ("rank 0, a", vec![Some(1.0), Some(3.0), None]));
        assert_eq!(rows[3], ("rank 1, b", vec![None, None, None]));
        assert!(
            made(of(&[RANK], 10), false)
                .is_err_and(|why| why.contains("two values for one heatmap cell: `rank 0` at 20"))
        );
        assert!(
            made(of(&["kernel"], 7), false)
                .is_err_and(|why| why.contains("column at 20 is off the grid of width 7"))
        );
    }
}
