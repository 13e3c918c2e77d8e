//! A line of cells as a row of the table, by the headings above it, where there are any.
//! Which line is a row's, and how its pieces are put together, is `text`'s business.

use super::cell::{self, Cell, WrongColumn};
use super::{Half, IterStats, Row};

/// The columns that the headings announce.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Layout {
    /// Columns before `size`, which no nccl-tests prints.
    pub foreign: Vec<String>,
    /// Nothing known without headings.
    root: Option<bool>,
    /// The columns of each half.
    halves: Vec<Vec<Column>>,
    /// Columns after the halves; nothing known without headings.
    trailing: Option<Vec<Column>>,
    pub wrong: WrongColumn,
    pub cpu_time: bool,
    /// Microseconds of a unit of its times.
    time_unit_us: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Time,
    AlgBw,
    BusBw,
    Wrong,
    Min,
    Max,
    P99,
    Cv,
    Timestamp,
    /// Of a variant of nccl-tests; passed over.
    Other,
}

const PLAIN: [Column; 4] = [Column::Time, Column::AlgBw, Column::BusBw, Column::Wrong];

impl Layout {
    /// What is assumed where no headings were seen.
    pub(super) fn bare() -> Layout {
        Layout {
            foreign: Vec::new(),
            root: None,
            halves: vec![PLAIN.to_vec(), PLAIN.to_vec()],
            trailing: None,
            wrong: WrongColumn::Unknown,
            cpu_time: false,
            time_unit_us: 1.0,
        }
    }

    /// Reads `size count type redop root time algbw busbw #wrong ...`, in NCCL 1 and nccl-tests 1 `bytes N type op root time algbw
    /// busbw res ...`; nothing where a line is no such headings.
    pub(super) fn from_headings(words: &[&str]) -> Option<Layout> {
        let place = |names: [&str; 3]| words.windows(3).position(|three| three == names);
        let oldest = place(["bytes", "N", "type"]);
        let size = place(["size", "count", "type"]).or(oldest)?;
        let mut layout = Layout::bare();
        // They print milliseconds.
        layout.time_unit_us = if oldest.is_some() { 1000.0 } else { 1.0 };
        layout.foreign = words.iter().take(size).map(|word| (*word).to_owned()).collect();
        layout.root = Some(false);
        layout.halves.clear();
        let mut trailing = Vec::new();
        for word in words.iter().skip(size + 3) {
            let column = match *word {
                "redop" | "op" if layout.halves.is_empty() => continue,
                "root" if layout.halves.is_empty() => {
                    layout.root = Some(true);
                    continue;
                }
                "time" | "cputime" => {
                    layout.cpu_time |= *word == "cputime";
                    layout.halves.push(Vec::new());
                    Column::Time
                }
                "algbw" => Column::AlgBw,
                "busbw" => Column::BusBw,
                "#wrong" | "error" | "res" => {
                    let error = *word != "#wrong";
                    layout.wrong = if error { WrongColumn::MaxError } else { WrongColumn::Count };
                    Column::Wrong
                }
                "i_min" => Column::Min,
                "i_max" => Column::Max,
                "i_p99" => Column::P99,
                "i_cv%" => Column::Cv,
                "timestamp" => {
                    trailing.push(Column::Timestamp);
                    continue;
                }
                _ => Column::Other,
            };
            layout.halves.last_mut()?.push(column);
        }
        // What the last half has and the first has not stands once, at the end of the line.
        if let [first, last] = layout.halves.as_mut_slice()
            && last.len() > first.len()
        {
            trailing.splice(0..0, last.split_off(first.len()));
        }
        let whole = |half: &Vec<Column>| half.starts_with(&PLAIN[..3]) && half.contains(&Column::Wrong);
        if !(1..=2).contains(&layout.halves.len()) || !layout.halves.iter().all(whole) {
            return None;
        }
        layout.trailing = Some(trailing);
        Some(layout)
    }
}

/// What a line of cells is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Parsed {
    /// Whole, and whether its end may be trusted although nothing follows it.
    Row(Box<Row>, bool),
    /// The beginning of a row.
    Partial,
    /// As many cells as a row, and something in it that is not printed there.
    Odd(&'static str),
    NotANumber,
    /// Not the beginning of a row at all.
    Other,
}

/// Whether the words begin as a row does.
pub(super) fn begins(words: &[&str]) -> bool {
    matches!(words, [size, count, dtype, ..]
        if cell::whole(size).is_some() && cell::whole(count).is_some() && cell::is_dtype(dtype))
}

/// Whether the words may be the beginning of what begins as a row does.
pub(super) fn may_begin(words: &[&str]) -> bool {
    match words {
        [size] => cell::whole(size).is_some(),
        [size, count] => cell::whole(size).is_some() && cell::whole(count).is_some(),
        [size, count, dtype] => {
            cell::whole(size).is_some() && cell::whole(count).is_some() && cell::may_become_dtype(dtype)
        }
        _ => false,
    }
}

/// Whether a line can be the rest of a row of which the beginning is missing.
pub(super) fn ends(words: &[&str]) -> bool {
    let figures = || words.iter().filter(|word| matches!(cell::figure(word), Cell::Figure(_))).count();
    let begins = words
        .windows(2)
        .any(|two| matches!(two, [count, dtype] if cell::whole(count).is_some() && cell::is_dtype(dtype)));
    (begins && words.len() >= 8 && figures() >= 5)
        || (words.iter().all(|word| may_continue(word)) && figures() >= 3)
}

/// Whether the size of a row may lack its first digits: nothing pads it, and it does not hold its elements. A size is
/// a multiple of what the count makes.
pub(super) fn size_is_torn(text: &str, row: &Row) -> bool {
    let padded =
        text.starts_with(char::is_whitespace) || text.find(char::is_whitespace).is_some_and(|end| end >= 12);
    let bytes = row.count.saturating_mul(cell::element_bytes(&row.dtype).unwrap_or(1));
    !padded
        && if bytes == 0 {
            row.size_bytes != 0
        } else {
            row.size_bytes == 0 || !row.size_bytes.is_multiple_of(bytes)
        }
}

/// Whether a word may be the continuation of a row.
pub(super) fn may_continue(word: &str) -> bool {
    !word.is_empty()
        && (word == "N/A"
            || matches!(cell::figure(word), Cell::NotANumber)
            || cell::is_redop(word)
            || cell::is_dtype(word)
            || word.bytes().all(|b| b.is_ascii_digit() || b"+-.e:".contains(&b)))
}

/// Reads a row that began on `line`.
pub(super) fn parse(words: &[&str], layout: &Layout, line: u64) -> Parsed {
    let Some(words) = words.get(layout.foreign.len()..) else { return Parsed::Other };
    if !begins(words) {
        return Parsed::Other;
    }
    let [size, count, dtype, rest @ ..] = words else { return Parsed::Other };
    let (Some(size), Some(count)) = (cell::whole(size), cell::whole(count)) else { return Parsed::Other };
    let (redop, rest) = match rest {
        [redop, rest @ ..] if cell::is_redop(redop) => (Some(*redop), rest),
        _ => (None, rest),
    };
    let row = |root, out_of_place, in_place, timestamp| Row {
        size_bytes: size,
        count,
        dtype: (*dtype).to_owned(),
        redop: redop.filter(|redop| *redop != "none").map(str::to_owned),
        root,
        out_of_place,
        in_place,
        timestamp,
        line,
    };
    let mut verdict = Parsed::Partial;
    for (root, halves, trailing) in shapes(layout) {
        let width: usize = halves.iter().map(Vec::len).sum();
        let tail: usize =
            trailing.iter().map(|column| if *column == Column::Timestamp { 2 } else { 1 }).sum();
        let need = usize::from(root) + width + tail;
        if rest.len() != need {
            // Too many cells for every shape: neither a row nor the beginning of one.
            if rest.len() > need && verdict == Parsed::Partial {
                verdict = Parsed::Odd("more cells than columns");
            } else if rest.len() < need && matches!(verdict, Parsed::Odd("more cells than columns")) {
                verdict = Parsed::Partial;
            }
            continue;
        }
        let (root_cell, cells) = rest.split_at(usize::from(root));
        let root = match root_cell.first().map(|cell| signed(cell)) {
            None => None,
            Some(Some(-1)) => None,
            Some(Some(root)) if root >= 0 => Some(root),
            Some(_) => {
                verdict = Parsed::Odd("a root that is no rank");
                continue;
            }
        };
        let mut cells = cells.iter().copied();
        let mut read = Vec::new();
        let mut failed = None;
        for columns in halves {
            match half(columns, &mut cells, layout) {
                Ok(half) => read.push(half),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if let Some(error) = failed {
            // A shape that fits but for a NaN says more than one that does not fit.
            if verdict != Parsed::NotANumber {
                verdict = error;
            }
            continue;
        }
        let timestamp = match timestamp(trailing, &mut cells) {
            Ok(timestamp) => timestamp,
            Err(error) => {
                verdict = error;
                continue;
            }
        };
        let sure = ends_surely(rest.last().copied().unwrap_or(""), halves, trailing, layout.wrong);
        let mut read = read.into_iter();
        return Parsed::Row(
            Box::new(row(root, read.next().flatten(), read.next().flatten(), timestamp)),
            sure,
        );
    }
    verdict
}

/// Whether there is a root, the columns of each half, and those behind the halves.
type Shape<'a> = (bool, &'a [Vec<Column>], &'a [Column]);

/// Every shape that a row may have: with a root or without, with what follows the halves or without.
fn shapes(layout: &Layout) -> Vec<Shape<'_>> {
    let roots: &[bool] = match layout.root {
        Some(true) => &[true],
        Some(false) => &[false],
        None => &[true, false],
    };
    let trailings: Vec<&[Column]> = match &layout.trailing {
        Some(trailing) => vec![trailing],
        None => vec![&[], &[Column::Timestamp]],
    };
    let mut shapes = Vec::new();
    for root in roots {
        for trailing in &trailings {
            shapes.push((*root, layout.halves.as_slice(), *trailing));
        }
    }
    shapes
}

fn signed(text: &str) -> Option<i64> {
    match text.strip_prefix('-') {
        Some(digits) => cell::whole(digits).and_then(|n| i64::try_from(n).ok()).map(|n| -n),
        None => cell::whole(text).and_then(|n| i64::try_from(n).ok()),
    }
}

fn half<'a>(
    columns: &[Column],
    cells: &mut impl Iterator<Item = &'a str>,
    layout: &Layout,
) -> Result<Option<Half>, Parsed> {
    let (mut figures, mut missing, mut wrong) = (Vec::new(), 0, None);
    let (mut iterations, mut failed) = (Vec::new(), None);
    for column in columns {
        let Some(text) = cells.next() else { return Err(Parsed::Partial) };
        match column {
            Column::Wrong => wrong = cell::wrong(text, layout.wrong),
            Column::Other | Column::Timestamp => (),
            _ => match cell::figure(text) {
                Cell::Figure(figure) if matches!(column, Column::Time | Column::AlgBw | Column::BusBw) => {
                    figures.push(figure);
                }
                Cell::Figure(figure) => iterations.push(figure.value),
                Cell::NotApplicable => missing += 1,
                Cell::NotANumber => failed = Some(Parsed::NotANumber),
                Cell::Odd => return Err(Parsed::Odd("a value in an unknown format")),
            },
        }
    }
    let Some(wrong) = wrong else { return Err(Parsed::Odd("no count of wrong values in its column")) };
    if let Some(failed) = failed {
        return Err(failed);
    }
    match (figures.as_slice(), missing) {
        ([time, algbw, busbw], 0) => {
            let mut half = Half::new(*time, *algbw, *busbw, wrong);
            half.time_us *= layout.time_unit_us;
            half.rounding.time_us *= layout.time_unit_us;
            if let [min_us, max_us, p99_us, cv_pct] = iterations[..] {
                half.iterations = Some(IterStats { min_us, max_us, p99_us, cv_pct });
            }
            Ok(Some(half))
        }
        ([], missing) if missing >= 3 => Ok(None),
        _ => Err(Parsed::Odd("`N/A` beside values")),
    }
}

fn timestamp<'a>(
    trailing: &[Column],
    cells: &mut impl Iterator<Item = &'a str>,
) -> Result<Option<String>, Parsed> {
    let mut stamp = None;
    for column in trailing {
        let Some(first) = cells.next() else { return Err(Parsed::Partial) };
        if *column == Column::Timestamp {
            let Some(second) = cells.next() else { return Err(Parsed::Partial) };
            if !shaped(first, "dddd-dd-dd") || !shaped(second, "dd:dd:dd") {
                return Err(Parsed::Odd("no timestamp in its column"));
            }
            stamp = Some(format!("{first} {second}"));
        }
    }
    Ok(stamp)
}

/// Whether a text has the form of a pattern, in which `d` stands for a digit.
pub(super) fn shaped(text: &str, pattern: &str) -> bool {
    text.len() == pattern.len()
        && text.bytes().zip(pattern.bytes()).all(|(b, p)| if p == b'd' { b.is_ascii_digit() } else { b == p })
}

/// Whether the last cell cannot be the beginning of a longer one.
fn ends_surely(last: &str, halves: &[Vec<Column>], trailing: &[Column], wrong: WrongColumn) -> bool {
    match trailing.last().or_else(|| halves.last().and_then(|half| half.last())) {
        Some(Column::Timestamp) => true,
        Some(Column::Wrong) => cell::wrong_is_complete(last, wrong),
        Some(Column::Cv) => last.split_once('.').is_some_and(|(_, decimals)| decimals.len() == 2),
        _ => false,
    }
}
