//! Tables for browsers: the bare element, and a whole page that loads nothing from elsewhere unless `css=` is given.

use super::form::{FormSpec, OptionSpec, Options};
use super::{Cell, Shown, visible};
use std::io::{self, Write};

pub(super) const HTABLE: FormSpec = FormSpec {
    name: "htable",
    extension: "html",
    about: "an HTML table, to be put into a page",
    options: &[],
    is_for_people: false,
    write: |_, result_table, out| table(result_table, out),
};

pub(super) const HDOC: FormSpec = FormSpec {
    name: "hdoc",
    extension: "html",
    about: "a whole HTML page",
    options: &[
        OptionSpec { name: "title=", about: "of the page; else that of the report" },
        OptionSpec { name: "css=", about: "the address of a style sheet; a colon in it is written `\\:`" },
    ],
    is_for_people: false,
    write: page,
};

const STYLE: &str = "table { border-collapse: collapse; font-family: monospace; } \
                     th, td { border: 1px solid #999; padding: 2px 6px; text-align: left; } \
                     td.number { text-align: right; }";

fn page(options: &Options, result_table: &Shown, out: &mut dyn Write) -> io::Result<()> {
    let title = escaped(options.title.as_deref().unwrap_or(result_table.title));
    writeln!(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">")?;
    writeln!(out, "<title>{title}</title>")?;
    match &options.css {
        Some(css) => writeln!(out, "<link rel=\"stylesheet\" href=\"{}\">", escaped(css))?,
        None => writeln!(out, "<style>{STYLE}</style>")?,
    }
    writeln!(out, "</head>\n<body>\n<h1>{title}</h1>")?;
    table(result_table, out)?;
    writeln!(out, "</body>\n</html>")
}

fn table(result_table: &Shown, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<table>\n<thead>")?;
    let headings = result_table.columns.iter().map(|column| format!("<th>{}</th>", escaped(&column.heading)));
    writeln!(out, "<tr>{}</tr>\n</thead>\n<tbody>", headings.collect::<String>())?;
    for row in 0..result_table.height {
        write!(out, "<tr>")?;
        for column in &result_table.columns {
            match column.cell(row) {
                Cell::Empty => write!(out, "<td></td>")?,
                Cell::Text(text) => write!(out, "<td>{}</td>", escaped(text))?,
                Cell::Number(digits) => write!(out, "<td class=\"number\">{digits}</td>")?,
            }
        }
        writeln!(out, "</tr>")?;
    }
    writeln!(out, "</tbody>\n</table>")
}

/// Pages cannot hold control characters at all, not even as references: they are shown as terminals are shown them.
pub fn escaped(text: &str) -> String {
    let text = visible(text);
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}
