//! The published figures that ship with the harness: what was measured, by whom.

use crate::limit::{Hardware, Point};
use metric::op::Op;
use std::sync::OnceLock;

const FILE: &str = include_str!("../figures.csv");

/// One published bus bandwidth.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// `p5`
    pub instance: String,
    /// Of nccl-tests.
    pub op: Op,
    /// With 8 ranks each.
    pub nodes: u32,
    /// As nccl-tests prints it.
    pub size_bytes: u64,
    /// In GB/s, out of place.
    pub busbw: f64,
    /// Names one of the file's sources.
    pub source: String,
}

/// A figure and what the hardware sets for it.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) figure: Figure,
    pub(crate) point: Point,
}

/// All that the file holds.
#[derive(Debug, Default)]
pub(crate) struct Published {
    pub(crate) rows: Vec<Row>,
    pub(crate) hardware: Vec<Hardware>,
    pub(crate) aside: Vec<Row>,
    sources: Vec<(String, String)>,
}

impl Published {
    pub(crate) fn hardware_of(&self, instance: &str) -> Option<&Hardware> {
        self.hardware.iter().find(|one| one.instance == instance)
    }

    pub(crate) fn source(&self, name: &str) -> Option<&str> {
        self.sources.iter().find(|(id, _)| id == name).map(|(_, text)| text.as_str())
    }
}

/// Each source of figures by its short name, and where it is published.
pub fn sources() -> impl Iterator<Item = (&'static str, &'static str)> {
    published().sources.iter().map(|(id, text)| (id.as_str(), text.as_str()))
}

/// Figures of an older stack: they show what software alone costs, and no fit uses them.
pub(crate) fn unfitted() -> impl Iterator<Item = &'static Figure> {
    published().aside.iter().map(|row| &row.figure)
}

pub(crate) fn published() -> &'static Published {
    static READ: OnceLock<Published> = OnceLock::new();
    READ.get_or_init(|| read(FILE))
}

/// A line that is wrong is left out; a test holds that the shipped file has none.
fn read(text: &str) -> Published {
    let mut published = Published::default();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let _ = record(line, &mut published);
    }
    published
}

fn record(line: &str, published: &mut Published) -> Option<()> {
    let (kind, rest) = line.split_once(',')?;
    if kind == "source" {
        let (id, text) = rest.split_once(',')?;
        published.sources.push((id.to_owned(), text.to_owned()));
        return Some(());
    }
    let fields: Vec<&str> = rest.split(',').collect();
    match (kind, fields.as_slice()) {
        ("hardware", [instance, gpus, nvlink, wire]) => published.hardware.push(Hardware {
            instance: (*instance).to_owned(),
            gpus: gpus.parse().ok()?,
            nvlink_gb_s: nvlink.parse().ok()?,
            wire_gb_s: wire.parse().ok()?,
        }),
        ("row" | "aside", [instance, op, nodes, size, busbw, source]) => {
            let figure = Figure {
                instance: (*instance).to_owned(),
                op: Op::from_name(op)?,
                nodes: nodes.parse().ok()?,
                size_bytes: bytes(size)?,
                busbw: busbw.parse().ok()?,
                source: (*source).to_owned(),
            };
            published.source(&figure.source)?;
            let hardware = published.hardware_of(instance)?;
            let point = Point::new(hardware, figure.op, figure.size_bytes, figure.nodes)?;
            let rows = if kind == "row" { &mut published.rows } else { &mut published.aside };
            rows.push(Row { figure, point });
        }
        _ => return None,
    }
    Some(())
}

fn bytes(size: &str) -> Option<u64> {
    let (number, shift) = match (size.strip_suffix("GiB"), size.strip_suffix("MiB")) {
        (Some(number), _) => (number, 30),
        (_, Some(number)) => (number, 20),
        _ => return None,
    };
    Some(number.parse::<u64>().ok()? << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_file_is_read_and_every_source_used() {
        let published = published();
        let lines = |kind: &str| FILE.lines().filter(|line| line.split(',').next() == Some(kind)).count();
        assert_eq!(published.rows.len(), lines("row"));
        assert_eq!(published.aside.len(), lines("aside"));
        assert_eq!(published.hardware.len(), lines("hardware"));
        let all = FILE.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(all, lines("row") + lines("aside") + lines("hardware") + lines("source"));
        for (id, _) in &published.sources {
            let used = published.rows.iter().chain(&published.aside).any(|row| row.figure.source == *id);
            assert!(used, "source {id}");
        }
    }

    #[test]
    fn wrong_lines_are_left_out() {
        let text = "source,a,b\nhardware,x,8,450,400\nrow,x,all_reduce,2,1GiB,430,a\nrow,x,all_reduce,2,1GiB,430,c\n\
                    row,y,all_reduce,2,1GiB,430,a\nrow,x,all_reduce,two,1GiB,430,a\nrow,x,all_reduce,2,1TiB,430,a\nrow";
        assert_eq!(read(text).rows.len(), 1);
    }
}
