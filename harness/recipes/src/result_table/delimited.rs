//! Tables for programs, a line a row: values between commas, and values between tabs.

use super::form::{FormSpec, NOHDR, OptionSpec, Options};
use super::{Cell, Shown};
use std::borrow::Cow;
use std::io::{self, Write};

pub(super) const CSV: FormSpec = FormSpec {
    name: "csv",
    extension: "csv",
    about: "values between commas; in quotes where a value has a comma, a quote or the end of a line in it",
    options: &[NOHDR],
    is_for_people: false,
    write: csv,
};

pub(super) const TSV: FormSpec = FormSpec {
    name: "tsv",
    extension: "tsv",
    about: "values between tabs; a tab or the end of a line in a value becomes a blank",
    options: &[
        NOHDR,
        OptionSpec { name: "esc", about: "it becomes `\\t`, `\\n` or `\\r` instead, and a backslash two" },
    ],
    is_for_people: false,
    write: tsv,
};

fn csv(options: &Options, result_table: &Shown, out: &mut dyn Write) -> io::Result<()> {
    lines(options, result_table, out, ",", &csv_text)
}

fn tsv(options: &Options, result_table: &Shown, out: &mut dyn Write) -> io::Result<()> {
    let between_tabs = |text: &str| match options.esc {
        true if text.contains(['\\', '\t', '\n', '\r']) => Cow::Owned(
            text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r"),
        ),
        false if text.contains(['\t', '\n', '\r']) => Cow::Owned(text.replace(['\t', '\n', '\r'], " ")),
        _ => Cow::Owned(text.to_owned()),
    };
    lines(options, result_table, out, "\t", &|text| plain(between_tabs(text)))
}

/// A cell between commas. A text that a spreadsheet would compute or a terminal obey stands for itself there.
pub fn csv_text(text: &str) -> Cow<'_, str> {
    let text = plain(Cow::Borrowed(text));
    match text.contains([',', '"', '\n', '\r']) {
        true => Cow::Owned(format!("\"{}\"", text.replace('"', "\"\""))),
        false => text,
    }
}

fn plain(text: Cow<'_, str>) -> Cow<'_, str> {
    let is_computed = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    if !is_computed && !text.contains(|c: char| c.is_control() && c != '\n' && c != '\t') {
        return text;
    }
    let mut shown = String::with_capacity(text.len() + 8);
    if is_computed {
        shown.push('\'');
    }
    let mut letters = text.chars().peekable();
    while let Some(c) = letters.next() {
        match c {
            '\n' | '\t' => shown.push(c),
            '\r' if letters.peek() == Some(&'\n') => shown.push(c),
            c if c.is_control() => shown.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

fn lines(
    options: &Options,
    result_table: &Shown,
    out: &mut dyn Write,
    between: &str,
    safe: &dyn Fn(&str) -> Cow<'_, str>,
) -> io::Result<()> {
    let mut line = String::new();
    if !options.nohdr {
        let headings: Vec<Cow<str>> =
            result_table.columns.iter().map(|column| safe(&column.heading)).collect();
        writeln!(out, "{}", headings.join(between))?;
    }
    for row in 0..result_table.height {
        line.clear();
        for (at, column) in result_table.columns.iter().enumerate() {
            if at > 0 {
                line.push_str(between);
            }
            match column.cell(row) {
                Cell::Empty => {}
                Cell::Text(text) => line.push_str(&safe(text)),
                Cell::Number(digits) => line.push_str(&digits),
            }
        }
        writeln!(out, "{line}")?;
    }
    Ok(())
}
