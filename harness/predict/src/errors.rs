//! How wrong the predictions are: each published figure predicted without its node count, or without its source.

use crate::figures::{Figure, Row, published, unfitted};
use crate::fit::median;
use crate::limit::Point;
use crate::model::{Model, without_each_node_count};
use metric::op::Op;
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// A figure and what was predicted for it without it.
#[derive(Debug, Clone)]
pub struct Tested {
    /// What was measured.
    pub figure: Figure,
    /// The predicted busbw, in GB/s.
    pub value: f64,
    /// The lower end of the 95 % interval.
    pub lower: f64,
    /// The upper end of the 95 % interval.
    pub upper: f64,
}

impl Tested {
    /// Predicted over measured, less 1.
    pub fn error(&self) -> f64 {
        self.value / self.figure.busbw - 1.0
    }

    /// Whether the interval holds what was measured.
    pub fn is_covered(&self) -> bool {
        (self.lower..=self.upper).contains(&self.figure.busbw)
    }

    /// Half of the interval, as a fraction of the value.
    pub fn half_width(&self) -> f64 {
        (self.upper - self.lower) / 2.0 / self.value
    }
}

/// The errors of several figures together.
#[derive(Debug, Clone, Copy)]
pub struct Summary {
    /// How many.
    pub figures: usize,
    /// Of the error without its sign.
    pub median_error: f64,
    /// What fraction of the intervals hold what was measured.
    pub covered: f64,
    /// Median of half of the interval over the value.
    pub half_width: f64,
}

impl Summary {
    /// `None` of no figures.
    pub fn new<'a>(tested: impl IntoIterator<Item = &'a Tested>) -> Option<Summary> {
        let tested: Vec<&Tested> = tested.into_iter().collect();
        let of =
            |value: fn(&Tested) -> f64| median(&tested.iter().map(|one| value(one)).collect::<Vec<f64>>());
        let covered = tested.iter().filter(|one| one.is_covered()).count();
        Some(Summary {
            figures: tested.len(),
            median_error: of(|one| one.error().abs())?,
            covered: covered as f64 / tested.len() as f64,
            half_width: of(Tested::half_width)?,
        })
    }
}

/// All that was tested.
#[derive(Debug)]
pub struct Errors {
    /// Each figure without all those of its node count, of every instance.
    pub without_node_count: Vec<Tested>,
    /// Each figure of a key that two sources have, without all those of its source.
    pub without_source: Vec<Tested>,
    /// Those of an older stack, by all the others.
    pub older_stack: Vec<Tested>,
}

impl Errors {
    /// The figures furthest off, the worst first.
    pub fn worst(tested: &[Tested], most: usize) -> Vec<&Tested> {
        let mut sorted: Vec<&Tested> = tested.iter().collect();
        sorted.sort_by(|a, b| b.error().abs().total_cmp(&a.error().abs()));
        sorted.truncate(most);
        sorted
    }
}

/// Computed once, from the figures alone.
pub fn errors() -> &'static Errors {
    static ERRORS: OnceLock<Errors> = OnceLock::new();
    ERRORS.get_or_init(|| {
        let mut errors =
            Errors { without_node_count: Vec::new(), without_source: Vec::new(), older_stack: Vec::new() };
        for op in Op::ALL {
            let rows: Vec<&Row> = published().rows.iter().filter(|row| row.figure.op == op).collect();
            for (rest, left_out) in without_each_node_count(&rows) {
                errors.without_node_count.extend(tested(&rest, &left_out));
            }
            for (rest, left_out) in without_each_source(&rows) {
                errors.without_source.extend(tested(&rest, &left_out));
            }
            let aside: Vec<&Row> = published().aside.iter().filter(|row| row.figure.op == op).collect();
            errors.older_stack.extend(tested(&rows, &aside));
        }
        debug_assert_eq!(errors.older_stack.len(), unfitted().count());
        errors
    })
}

fn tested(rest: &[&Row], left_out: &[&Row]) -> Vec<Tested> {
    let Some(model) = Model::new(rest) else { return Vec::new() };
    let of = |row: &&Row| {
        let point: &Point = &row.point;
        let interval = model.at(point);
        Tested {
            figure: row.figure.clone(),
            value: interval.value,
            lower: interval.lower,
            upper: interval.upper,
        }
    };
    left_out.iter().map(of).collect()
}

/// For each source: the rows of all others, and those of its own whose key another has, too.
fn without_each_source<'a>(rows: &[&'a Row]) -> Vec<(Vec<&'a Row>, Vec<&'a Row>)> {
    let sources: BTreeSet<&str> = rows.iter().map(|row| row.figure.source.as_str()).collect();
    let split = |source: &str| {
        let (rest, own): (Vec<&Row>, Vec<&Row>) =
            rows.iter().copied().partition(|row| row.figure.source != source);
        let key = |one: &Figure| (one.instance.clone(), one.nodes, one.size_bytes);
        let shared =
            own.into_iter().filter(|row| rest.iter().any(|other| key(&other.figure) == key(&row.figure)));
        let shared: Vec<&Row> = shared.collect();
        (rest, shared)
    };
    sources.into_iter().map(split).collect()
}

#[cfg(test)]
#[path = "errors_tests.rs"]
mod tests;
