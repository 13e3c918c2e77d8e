//! Why a verb ended without an answer. The exit code follows from the type of the error.

use crate::publish::Failure;
use base::text::show_lines;
use model::exit_code;

/// What ends a verb before it has an answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// What was typed, or what it names, is wrong.
    #[error("{0}")]
    Usage(String),
    /// Files that a person wrote have errors.
    #[error(transparent)]
    Files(#[from] config::diagnostic::Diagnostics),
    /// A publication or a fetch ended.
    #[error(transparent)]
    Publication(#[from] Failure),
}

impl Error {
    /// The code that the program ends with.
    pub(crate) fn exit_code(&self) -> i32 {
        match self {
            Error::Usage(_) | Error::Files(_) => exit_code::USAGE,
            Error::Publication(failure) => failure.exit_code(),
        }
    }
}

/// The exit code of a verb, with its error printed.
pub(crate) fn end(result: Result<i32, Error>) -> i32 {
    result.unwrap_or_else(|error| {
        eprintln!("error: {}", show_lines(&error.to_string()));
        error.exit_code()
    })
}
