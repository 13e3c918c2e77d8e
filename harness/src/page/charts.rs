//! Charts as the scripts of a page read them: thinned where they are large, numbers packed.

use super::{numbers, thin};
use recipes::chart::{Along, Axis, Bars, Boxes, Chart, Figure, Heatmap, Histogram, Lines, Mark, Scale};
use recipes::result_table::{Quantity, visible};
use serde::Serialize;

/// All charts of a page together take no more than this.
const MOST_BYTES: usize = 2_900_000;
/// How many marks (cells, points, bars) are tried first.
const MOST_MARKS: usize = 400_000;

#[derive(Debug, Serialize)]
pub(super) struct PageFigure {
    name: String,
    pub title: String,
    pub about: String,
    #[serde(flatten)]
    figure: FigureData,
    /// How many marks are drawn, of how many there are.
    pub drawn: usize,
    pub of: usize,
}

#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum FigureData {
    Heatmap(Map),
    Lines(Curves),
    Histogram(Counts),
    Bars(BarData),
    Boxes(Spreads),
}

#[derive(Debug, Serialize)]
struct Map {
    x: Shape,
    value: Shape,
    most: Option<f64>,
    /// The first edge in full: it may be too large for a script's numbers. The edges are offsets from it.
    from: String,
    edges: String,
    /// How many columns a pair stands for, where columns were put together.
    together: Option<usize>,
    rows: Vec<Track>,
}

#[derive(Debug, Serialize)]
struct Curves {
    x: Shape,
    y: Shape,
    lines: Vec<Curve>,
    marks: Vec<MarkLine>,
}

#[derive(Debug, Serialize)]
struct Curve {
    label: String,
    rank: Option<i64>,
    /// Steps from one to the next, or the numbers themselves where they are no integers.
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    xs: Option<String>,
    ys: String,
}

#[derive(Debug, Serialize)]
struct Counts {
    x: Shape,
    edges: String,
    series: Vec<Track>,
    marks: Vec<MarkLine>,
}

#[derive(Debug, Serialize)]
struct BarData {
    value: Shape,
    bars: Vec<Track>,
    marks: Vec<MarkLine>,
}

#[derive(Debug, Serialize)]
struct Spreads {
    value: Shape,
    /// How many values, then least, lower quartile, median, upper quartile and most.
    boxes: Vec<Track>,
    marks: Vec<MarkLine>,
}

#[derive(Debug, Serialize)]
struct Track {
    label: String,
    rank: Option<i64>,
    values: String,
}

#[derive(Debug, Serialize)]
struct MarkLine {
    label: String,
    along: &'static str,
    at: f64,
}

#[derive(Debug, Serialize)]
struct Shape {
    name: String,
    quantity: &'static str,
    log: bool,
}

impl PageFigure {
    pub(super) fn kind(&self) -> &'static str {
        match self.figure {
            FigureData::Heatmap(_) => "heatmap",
            FigureData::Lines(_) => "lines",
            FigureData::Histogram(_) => "histogram",
            FigureData::Bars(_) => "bars",
            FigureData::Boxes(_) => "boxes",
        }
    }
}

/// As many marks of each as fit into a page, the larger ones thinned in equal parts.
pub(super) fn page_figures(charts: &[Chart]) -> Vec<PageFigure> {
    let all: usize = charts.iter().map(|chart| marks_of(&chart.figure)).sum();
    let mut most = MOST_MARKS;
    loop {
        let of = |chart: &Chart| {
            let marks = marks_of(&chart.figure);
            let share =
                if all > most { (marks as u128 * most as u128 / all as u128) as usize } else { marks };
            thinned(chart, share)
        };
        let drawn: Vec<PageFigure> = charts.iter().map(of).collect();
        let bytes = serde_json::to_string(&drawn).map_or(0, |text| text.len());
        if bytes <= MOST_BYTES || most == 0 {
            return drawn;
        }
        most = most * 4 / 5;
    }
}

fn marks_of(figure: &Figure) -> usize {
    match figure {
        Figure::Heatmap(map) => map.rows.iter().map(|row| row.values.len()).sum(),
        Figure::Lines(lines) => lines.lines.iter().map(|line| line.points.len()).sum(),
        Figure::Histogram(histogram) => histogram.series.iter().map(|series| series.counts.len()).sum(),
        Figure::Bars(bars) => bars.bars.len(),
        Figure::Boxes(boxes) => boxes.boxes.len(),
    }
}

fn thinned(chart: &Chart, most: usize) -> PageFigure {
    let (figure, drawn) = match &chart.figure {
        Figure::Heatmap(map) => heatmap(map, most),
        Figure::Lines(all) => lines(all, most),
        Figure::Histogram(all) => histogram(all, most),
        Figure::Bars(all) => bars(all, most),
        Figure::Boxes(all) => boxes(all, most),
    };
    let of = marks_of(&chart.figure);
    PageFigure {
        name: chart.name.to_string(),
        title: label(&chart.title),
        about: label(&chart.about),
        figure,
        drawn,
        of,
    }
}

fn heatmap(map: &Heatmap, most: usize) -> (FigureData, usize) {
    let columns = map.edges.len().saturating_sub(1);
    let each = most / map.rows.len().max(1);
    // Two columns are drawn of each that are put together.
    let together = (columns > each).then(|| (2 * columns).div_ceil(each.max(2)).max(3));
    let from = map.edges.first().copied().unwrap_or_default();
    let offset = |edge: i64| Some((i128::from(edge) - i128::from(from)) as f64);
    let edges: Vec<Option<f64>> = match together {
        None => map.edges.iter().map(|edge| offset(*edge)).collect(),
        Some(together) => {
            let starts = (0..columns).step_by(together).flat_map(|start| {
                let (start, end) =
                    (offset(map.edges[start]), offset(map.edges[columns.min(start + together)]));
                [start, start.zip(end).map(|(start, end)| (start + end) / 2.0)]
            });
            starts.chain([map.edges.last().and_then(|edge| offset(*edge))]).collect()
        }
    };
    let drawn = edges.len().saturating_sub(1) * map.rows.len();
    let rows = map.rows.iter().map(|row| {
        let mut values = row.values.clone();
        // A row that is too short was not measured to the end.
        values.resize(columns, None);
        if let Some(together) = together {
            values = thin::pairs(&values, together);
        }
        let values = numbers::packed(values, map.value.quantity);
        Track { label: label(&row.label), rank: row.rank, values }
    });
    let shown = Map {
        x: shape(&map.x),
        value: shape(&map.value),
        most: map.most.filter(|most| most.is_finite()),
        from: from.to_string(),
        edges: numbers::packed(edges, map.x.quantity),
        together,
        rows: rows.collect(),
    };
    (FigureData::Heatmap(shown), drawn)
}

fn lines(all: &Lines, most: usize) -> (FigureData, usize) {
    let points: usize = all.lines.iter().map(|line| line.points.len()).sum();
    let mut drawn = 0;
    let lines = all.lines.iter().map(|line| {
        let share = match points > most {
            // A line keeps its ends and its extremes, however many lines there are.
            true => ((line.points.len() as u128 * most as u128 / points as u128) as usize).max(5),
            false => line.points.len(),
        };
        let ys: Vec<Option<f64>> = line.points.iter().map(|(_, y)| *y).collect();
        let kept = thin::points(&ys, share);
        drawn += kept.len();
        let xs: Vec<f64> = kept.iter().map(|at| line.points[*at].0).collect();
        let steps = numbers::steps(&xs);
        Curve {
            label: label(&line.label),
            rank: line.rank,
            xs: steps.is_none().then(|| numbers::packed(xs.into_iter().map(Some), all.x.quantity)),
            steps,
            ys: numbers::packed(kept.iter().map(|at| ys[*at]), all.y.quantity),
        }
    });
    let lines = lines.collect();
    (FigureData::Lines(Curves { x: shape(&all.x), y: shape(&all.y), lines, marks: marks(&all.marks) }), drawn)
}

fn histogram(all: &Histogram, most: usize) -> (FigureData, usize) {
    let bins = all.edges.len().saturating_sub(1);
    let each = (most / all.series.len().max(1)).max(1);
    // Counts of neighbouring bins add up to what one bin would have counted.
    let together = bins.div_ceil(each).max(1);
    let mut edges: Vec<Option<f64>> = all.edges.iter().copied().map(Some).step_by(together).collect();
    if !bins.is_multiple_of(together) {
        edges.push(all.edges.last().copied());
    }
    let drawn = edges.len().saturating_sub(1) * all.series.len();
    let series = all.series.iter().map(|series| {
        let counts = series.counts.chunks(together).map(|bins| Some(bins.iter().sum::<u64>() as f64));
        let values = numbers::packed(counts, Quantity::Plain);
        Track { label: label(&series.label), rank: series.rank, values }
    });
    let series = series.collect();
    let edges = numbers::packed(edges, Quantity::Plain);
    (FigureData::Histogram(Counts { x: shape(&all.x), edges, series, marks: marks(&all.marks) }), drawn)
}

fn bars(all: &Bars, most: usize) -> (FigureData, usize) {
    let values: Vec<Option<f64>> = all.bars.iter().map(|bar| bar.value).collect();
    let kept = thin::points(&values, most);
    let bars = kept.iter().map(|at| &all.bars[*at]).map(|bar| Track {
        label: label(&bar.label),
        rank: bar.rank,
        values: numbers::packed([bar.value], all.value.quantity),
    });
    let bars = bars.collect();
    (FigureData::Bars(BarData { value: shape(&all.value), bars, marks: marks(&all.marks) }), kept.len())
}

fn boxes(all: &Boxes, most: usize) -> (FigureData, usize) {
    let medians: Vec<Option<f64>> = all.boxes.iter().map(|five| Some(five.median)).collect();
    let kept = thin::points(&medians, most);
    let boxes = kept.iter().map(|at| &all.boxes[*at]).map(|five| {
        let numbers = [five.count as f64, five.min, five.q1, five.median, five.q3, five.max];
        let values = numbers::packed(numbers.map(Some), all.value.quantity);
        Track { label: label(&five.label), rank: five.rank, values }
    });
    let boxes = boxes.collect();
    (FigureData::Boxes(Spreads { value: shape(&all.value), boxes, marks: marks(&all.marks) }), kept.len())
}

fn marks(marks: &[Mark]) -> Vec<MarkLine> {
    let is_number = |mark: &&Mark| mark.at.is_finite();
    let along = |along: Along| match along {
        Along::X => "x",
        Along::Y => "y",
    };
    marks
        .iter()
        .filter(is_number)
        .map(|mark| MarkLine { label: label(&mark.label), along: along(mark.along), at: mark.at })
        .collect()
}

fn shape(axis: &Axis) -> Shape {
    let quantity = match axis.quantity {
        Quantity::Nanoseconds | Quantity::BareNanoseconds => "nanoseconds",
        Quantity::Bytes => "bytes",
        Quantity::BytesPerSecond => "bytes_per_second",
        Quantity::Percent => "percent",
        Quantity::Plain | Quantity::Fraction | Quantity::Verbatim => "plain",
    };
    Shape { name: label(&axis.name), quantity, log: axis.scale == Scale::Log }
}

/// No label is so long that a page is nothing but labels.
const MOST_LETTERS: usize = 2_000;

fn label(text: &str) -> String {
    let text = visible(text);
    match text.char_indices().nth(MOST_LETTERS) {
        None => text.into_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests;
