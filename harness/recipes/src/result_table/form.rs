//! The forms in which a table is printed, by name, and their options: `csv:nohdr`, `column:nolimit:.:20`. Add one by its
//! declaration in the file of its family and its line in `LIST`.

use super::{Shown, column, delimited, html, json};
use std::io::{self, Write};

/// Every format, in the order of `--help-formats`.
pub const LIST: [&FormSpec; 7] = [
    &column::COLUMN,
    &column::TABLE,
    &delimited::CSV,
    &delimited::TSV,
    &json::JSON,
    &html::HTABLE,
    &html::HDOC,
];

/// What a form declares: the manual is written from it.
#[derive(Debug)]
pub struct FormSpec {
    /// As in `--format NAME`: `csv`.
    pub name: &'static str,
    /// Of a file in this form.
    pub extension: &'static str,
    /// One line for `--help-formats`.
    pub about: &'static str,
    /// Accepted behind the name, as in `csv:nohdr`; empty where there are none.
    pub options: &'static [OptionSpec],
    /// Made for a person at a terminal, who wants to know which table it is.
    pub is_for_people: bool,
    pub(super) write: fn(&Options, &Shown, &mut dyn Write) -> io::Result<()>,
}

/// One option of a format.
#[derive(Debug)]
pub struct OptionSpec {
    /// `nohdr`, or `title=` where a value stands behind it, or `WIDTH` for the width of the next column.
    pub name: &'static str,
    /// Its effect, for `--help-formats NAME`.
    pub about: &'static str,
}

pub(super) const NOHDR: OptionSpec = OptionSpec { name: "nohdr", about: "no headings" };
pub(super) const WIDTH: &str = "WIDTH";

/// A form with its options, ready to print.
#[derive(Debug, Clone)]
pub struct Form {
    spec: &'static FormSpec,
    options: Options,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Options {
    pub(super) nohdr: bool,
    pub(super) nolimit: bool,
    pub(super) nofmt: bool,
    pub(super) esc: bool,
    pub(super) title: Option<String>,
    pub(super) css: Option<String>,
    /// Column by column; `None` is as wide as it needs.
    pub(super) widths: Vec<Option<usize>>,
}

/// No terminal and no file has use for a column beyond that.
const MOST_WIDTH: usize = 100_000;

/// Why an option of a format was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadForm(String);

/// By its exact name; `None` for an unknown one.
pub fn find(name: &str) -> Option<&'static FormSpec> {
    LIST.into_iter().find(|spec| spec.name == name)
}

impl FormSpec {
    /// The format without options.
    pub fn plain(&'static self) -> Form {
        Form { spec: self, options: Options::default() }
    }

    /// Parses options such as `nohdr`, `title=X` or a width.
    pub fn read(&'static self, words: &[&str]) -> Result<Form, BadForm> {
        let mut form = self.plain();
        for word in words {
            self.option(word, &mut form.options)?;
        }
        Ok(form)
    }

    fn option(&self, word: &str, options: &mut Options) -> Result<(), BadForm> {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (format!("{name}="), value),
            None => (word.to_owned(), ""),
        };
        if self.options.iter().any(|option| option.name == name && name != WIDTH) {
            match name.as_str() {
                "nohdr" => options.nohdr = true,
                "nolimit" => options.nolimit = true,
                "nofmt" => options.nofmt = true,
                "esc" => options.esc = true,
                "title=" => options.title = Some(value.to_owned()),
                _ => options.css = Some(value.to_owned()),
            }
            return Ok(());
        }
        let is_wide = self.options.iter().any(|option| option.name == WIDTH);
        if is_wide && word == "." {
            options.widths.push(None);
            return Ok(());
        }
        if is_wide && word.starts_with(|c: char| c.is_ascii_digit()) {
            let width = word.parse().ok().filter(|width| *width <= MOST_WIDTH);
            let width = width.ok_or_else(|| {
                BadForm(format!("`{}`: column width `{word}` is not a number up to {MOST_WIDTH}", self.name))
            })?;
            options.widths.push(Some(width));
            return Ok(());
        }
        let names: Vec<&str> = self.options.iter().map(|option| option.name).collect();
        let has = match names.is_empty() {
            true => "it has none".to_owned(),
            false => format!("it has: {}", names.join(", ")),
        };
        let colon = if word.starts_with("//") { "; a colon in a value is written `\\:`" } else { "" };
        Err(BadForm(format!("`{}` has no option `{word}`; {has}{colon}", self.name)))
    }
}

impl Form {
    /// The declaration of its format.
    pub fn spec(&self) -> &'static FormSpec {
        self.spec
    }

    /// One table, with the end of its last line.
    pub fn write(&self, result_table: &Shown, out: &mut dyn Write) -> io::Result<()> {
        (self.spec.write)(&self.options, result_table, out)
    }
}
