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

fn csv(options: &Options, sheet: &Shown, out: &mut dyn Write) -> io::Result<()> {
    lines(options, sheet, out, ",", &|text| {
        if text.contains([',', '"', '\n', '\r']) {
            Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")))
        } else {
            Cow::Borrowed(text)
        }
    })
}

fn tsv(options: &Options, sheet: &Shown, out: &mut dyn Write) -> io::Result<()> {
    lines(options, sheet, out, "\t", &|text| match options.esc {
        true if text.contains(['\\', '\t', '\n', '\r']) => Cow::Owned(
            text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r"),
        ),
        false if text.contains(['\t', '\n', '\r']) => Cow::Owned(text.replace(['\t', '\n', '\r'], " ")),
        _ => Cow::Borrowed(text),
    })
}

fn lines(
    options: &Options,
    sheet: &Shown,
    out: &mut dyn Write,
    between: &str,
    safe: &dyn Fn(&str) -> Cow<'_, str>,
) -> io::Result<()> {
    let mut line = String::new();
    if !options.nohdr {
        let headings: Vec<Cow<str>> = sheet.columns.iter().map(|column| safe(&column.heading)).collect();
        writeln!(out, "{}", headings.join(between))?;
    }
    for row in 0..sheet.height {
        line.clear();
        for (at, column) in sheet.columns.iter().enumerate() {
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
