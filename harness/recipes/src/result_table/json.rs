//! A table as one array of objects on one line, keyed by the headings.

use super::form::{FormSpec, Options};
use super::{Cell, Shown};
use std::io::{self, Write};

pub(super) const JSON: FormSpec = FormSpec {
    name: "json",
    extension: "json",
    about: "an array on one line, an object a row; numbers as csv has them, and \"\" where there is no value",
    options: &[],
    is_for_people: false,
    write: json,
};

fn json(_: &Options, result_table: &Shown, out: &mut dyn Write) -> io::Result<()> {
    let mut keys = Vec::new();
    for column in &result_table.columns {
        keys.push(quoted(&column.heading)?);
    }
    let mut line = String::new();
    write!(out, "[")?;
    for row in 0..result_table.height {
        line.clear();
        for (at, (key, column)) in keys.iter().zip(&result_table.columns).enumerate() {
            line.push_str(if at > 0 { "," } else { "{" });
            line.push_str(key);
            line.push(':');
            match column.cell(row) {
                Cell::Empty => line.push_str("\"\""),
                Cell::Text(text) => line.push_str(&quoted(text)?),
                Cell::Number(digits) => line.push_str(&digits),
            }
        }
        write!(out, "{}{line}}}", if row > 0 { "," } else { "" })?;
    }
    writeln!(out, "]")
}

/// JSON leaves alone some of what terminals obey; in a string an escape means the same.
fn quoted(text: &str) -> io::Result<String> {
    let plain = serde_json::to_string(text)?;
    if !plain.contains(|c| matches!(c, '\x7f'..='\u{9f}')) {
        return Ok(plain);
    }
    let mut quoted = String::with_capacity(plain.len());
    for c in plain.chars() {
        match c {
            '\x7f'..='\u{9f}' => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    Ok(quoted)
}
