//! An error in a file that a person wrote, with its place. `toml_reader` and the readers built on it collect all errors
//! of a file before they report.

use base::text::show;
use std::fmt;

/// One error. `line` and `column` count from 1; line 0 says that the file as a whole is meant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub struct Diagnostic {
    /// As messages show it: `suites/nccl-p5.toml`.
    pub file: String,
    /// From 1; 0 for the file as a whole.
    pub line: usize,
    /// From 1; 0 for the file as a whole.
    pub column: usize,
    /// What is wrong; escaped only when it is shown.
    pub message: String,
    /// What to write instead, where that is known.
    pub suggestion: Option<String>,
}

impl Diagnostic {
    /// An error at a place, without a suggestion.
    pub fn at(file: &str, line: usize, column: usize, message: impl Into<String>) -> Diagnostic {
        Diagnostic { file: file.to_owned(), line, column, message: message.into(), suggestion: None }
    }

    /// An error of the file as a whole.
    pub fn in_file(file: &str, message: impl Into<String>) -> Diagnostic {
        Diagnostic::at(file, 0, 0, message)
    }

    /// Adds what to write instead; it is shown last.
    pub fn suggest(mut self, suggestion: impl Into<String>) -> Diagnostic {
        self.suggestion = Some(suggestion.into());
        self
    }
}

/// One line: what a file holds reaches no terminal and no CI as it is.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", show(&self.file), show(&self.message))?,
            line => write!(f, "{}:{line}:{}: {}", show(&self.file), self.column, show(&self.message))?,
        }
        match &self.suggestion {
            Some(suggestion) => write!(f, "; {}", show(suggestion)),
            None => Ok(()),
        }
    }
}

/// Every error of a file or of several, one a line.
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.0.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{diagnostic}")?;
        }
        Ok(())
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Diagnostics {
        Diagnostics(vec![diagnostic])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diagnostic_shows_its_place_first_and_its_suggestion_last() {
        let diagnostic =
            Diagnostic::at("suites/x.toml", 12, 5, "unknown key: `abuot`").suggest("did you mean `about`?");
        let expected = "suites/x.toml:12:5: unknown key: `abuot`; did you mean `about`?";
        assert_eq!(diagnostic.to_string(), expected);
        let unread = Diagnostic::in_file("suites/x.toml", "cannot be read");
        assert_eq!(
            Diagnostics(vec![diagnostic, unread]).to_string(),
            format!("{expected}\nsuites/x.toml: cannot be read")
        );
    }

    #[test]
    fn a_message_is_one_line_without_terminal_or_ci_commands() {
        let diagnostic =
            Diagnostic::in_file("suites/a\n::error ::b.toml", "no: `\n::stop-commands::x\u{1b}[2J`");
        let shown = diagnostic.suggest("try\r::error ::c").to_string();
        assert!(!shown.contains(char::is_control), "{shown:?}");
    }
}
