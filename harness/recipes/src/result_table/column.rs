//! Tables for a terminal: columns side by side, and the same in boxes. Text stands left, numbers right; what is too wide
//! is cut on the right, and the cut shows.

use super::form::{FormSpec, NOHDR, OptionSpec, Options, WIDTH};
use super::{Cell, Shown, ShownColumn, visible};
use std::borrow::Cow;
use std::io::{self, Write};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

pub(super) const COLUMN: FormSpec = FormSpec {
    name: "column",
    extension: "txt",
    about: "columns side by side, for a terminal",
    options: OPTIONS,
    is_for_people: true,
    write: side_by_side,
};

pub(super) const TABLE: FormSpec = FormSpec {
    name: "table",
    extension: "txt",
    about: "the same in boxes",
    options: OPTIONS,
    is_for_people: true,
    write: boxed,
};

const OPTIONS: &[OptionSpec] = &[
    NOHDR,
    OptionSpec { name: "nolimit", about: "columns as wide as they need; else at most 100 characters" },
    OptionSpec { name: "nofmt", about: "no commas between thousands" },
    OptionSpec {
        name: WIDTH,
        about: "how wide the next column is; `.` as wide as its heading and first 100 rows need, 0 leaves it out",
    },
];

const MOST_WIDTH: usize = 100;
const LOOKED_AT: usize = 100;

fn side_by_side(options: &Options, result_table: &Shown, out: &mut dyn Write) -> io::Result<()> {
    let columns = laid_out(options, result_table);
    let line = |cells: Vec<String>| format!(" {}", cells.join("  ")).trim_end().to_owned();
    if !options.nohdr {
        writeln!(out, "{}", line(columns.iter().map(Laid::heading).collect()))?;
        writeln!(out, "{}", line(columns.iter().map(|column| "-".repeat(column.width)).collect()))?;
    }
    for row in 0..result_table.height {
        writeln!(out, "{}", line(columns.iter().map(|column| column.fitted(row)).collect()))?;
    }
    Ok(())
}

fn boxed(options: &Options, result_table: &Shown, out: &mut dyn Write) -> io::Result<()> {
    let columns = laid_out(options, result_table);
    let rules: Vec<String> = columns.iter().map(|column| "-".repeat(column.width + 2)).collect();
    let rule = format!("+{}+", rules.join("+"));
    let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    writeln!(out, "{rule}")?;
    if !options.nohdr {
        writeln!(out, "{}", line(columns.iter().map(Laid::heading).collect()))?;
        writeln!(out, "{rule}")?;
    }
    for row in 0..result_table.height {
        writeln!(out, "{}", line(columns.iter().map(|column| column.fitted(row)).collect()))?;
    }
    if result_table.height > 0 {
        writeln!(out, "{rule}")?;
    }
    Ok(())
}

struct Laid<'a> {
    column: &'a ShownColumn<'a>,
    grouped: bool,
    width: usize,
}

fn laid_out<'a>(options: &Options, result_table: &'a Shown<'a>) -> Vec<Laid<'a>> {
    let mut columns = Vec::new();
    for (at, column) in result_table.columns.iter().enumerate() {
        let mut laid = Laid { column, grouped: !options.nofmt, width: 0 };
        laid.width = match options.widths.get(at).copied().flatten() {
            Some(0) => continue,
            Some(width) => width,
            None => {
                let rows = (0..result_table.height.min(LOOKED_AT)).map(|row| laid.text(row).width());
                let widest = rows.max().unwrap_or(0).max(visible(&column.heading).width());
                if options.nolimit { widest } else { widest.min(MOST_WIDTH) }
            }
        };
        columns.push(laid);
    }
    columns
}

impl<'a> Laid<'a> {
    fn heading(&self) -> String {
        self.fit(&visible(&self.column.heading))
    }

    fn fitted(&self, row: usize) -> String {
        self.fit(&self.text(row))
    }

    fn text(&self, row: usize) -> Cow<'a, str> {
        match self.column.cell(row) {
            Cell::Empty => Cow::Borrowed(""),
            Cell::Text(text) => visible(text),
            Cell::Number(digits) if self.grouped => Cow::Owned(thousands(&digits)),
            Cell::Number(digits) => Cow::Owned(digits),
        }
    }

    fn fit(&self, text: &str) -> String {
        let text = cut(text, self.width);
        let blank = " ".repeat(self.width.saturating_sub(text.width()));
        if self.column.is_text() { format!("{text}{blank}") } else { format!("{blank}{text}") }
    }
}

fn cut(text: &str, width: usize) -> Cow<'_, str> {
    if text.width() <= width {
        return Cow::Borrowed(text);
    }
    let mut kept = String::new();
    // One place is the mark's.
    let mut left = width.saturating_sub(1);
    for c in text.chars() {
        let Some(rest) = left.checked_sub(c.width().unwrap_or(0)) else { break };
        left = rest;
        kept.push(c);
    }
    kept.push('…');
    Cow::Owned(kept)
}

fn thousands(digits: &str) -> String {
    let (sign, rest) = match digits.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", digits),
    };
    let (whole, decimals) = match rest.find('.') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let mut grouped = sign.to_owned();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + decimals
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_parted_before_the_point_only() {
        for (digits, grouped) in [
            ("0", "0"),
            ("999", "999"),
            ("1000", "1,000"),
            ("-123456", "-123,456"),
            ("1234567.8901", "1,234,567.8901"),
            ("-1.0", "-1.0"),
        ] {
            assert_eq!(thousands(digits), grouped);
        }
    }

    #[test]
    fn what_is_cut_is_as_wide_as_asked_for_and_says_so() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdef", 5), "abcd…");
        assert_eq!(cut("abcdef", 1), "…");
        // A wide character that does not fit leaves its place empty.
        assert_eq!(cut("核核核", 4), "核…");
        assert_eq!(cut("核核核", 6), "核核核");
    }
}
