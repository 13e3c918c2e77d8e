//! Lines on stdout and stderr, and the exit codes that go with errors.

use crate::standard_output;
use base::text::show_lines;
use model::exit_code;
use std::fmt::Display;

/// Where lines go that a person reads: to stderr where a program reads stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    Stdout,
    Stderr,
}

impl Output {
    /// Of a verb with `--format text|json`: stdout holds nothing but JSON where that is asked for.
    pub(crate) fn from_format(format: &str) -> Output {
        if format == "json" { Output::Stderr } else { Output::Stdout }
    }

    pub(crate) fn print(self, line: impl Display) {
        match self {
            Output::Stdout => println!("{line}"),
            Output::Stderr => eprintln!("{line}"),
        }
    }
}

/// Prints an error of the harness or of what it runs on; the exit code says that nothing is known of the nodes.
pub(crate) fn report_error(why: &str) -> i32 {
    eprintln!("error: {}", show_lines(why));
    exit_code::INCONCLUSIVE
}

/// Prints all that is wrong with what was asked for.
pub(crate) fn print_errors(diagnostics: &[String]) -> i32 {
    for diagnostic in diagnostics {
        eprintln!("error: {}", show_lines(diagnostic));
    }
    exit_code::USAGE
}

/// Stops nothing where it cannot be printed: the reports are written by then.
pub(crate) fn print_quietly(text: &str) {
    standard_output::print(text.as_bytes());
}
