//! What is wrong in a file that a person wrote, and where; told all at once. Who finds it is `toml_reader` and the
//! readers built on it.

use base::text::show;
use std::fmt;

/// One mistake. `line` and `column` count from 1; line 0 says that the file as a whole is meant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mistake {
    pub file: String,
    pub line: usize,
    pub column: usize,
    pub message: String,
    /// What to write instead, where that can be told.
    pub suggestion: Option<String>,
}

impl Mistake {
    pub fn at(file: &str, line: usize, column: usize, message: impl Into<String>) -> Mistake {
        Mistake { file: file.to_owned(), line, column, message: message.into(), suggestion: None }
    }

    pub fn of_file(file: &str, message: impl Into<String>) -> Mistake {
        Mistake::at(file, 0, 0, message)
    }

    pub fn suggest(mut self, suggestion: impl Into<String>) -> Mistake {
        self.suggestion = Some(suggestion.into());
        self
    }
}

/// One line: what a file holds reaches no terminal and no CI as it is.
impl fmt::Display for Mistake {
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

impl std::error::Error for Mistake {}

/// Every mistake of a file or of several, one a line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mistakes(pub Vec<Mistake>);

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, mistake) in self.0.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{mistake}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Mistakes {}

impl From<Mistake> for Mistakes {
    fn from(mistake: Mistake) -> Mistakes {
        Mistakes(vec![mistake])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_is_told_with_its_place_first_and_its_suggestion_last() {
        let mistake =
            Mistake::at("suites/x.toml", 12, 5, "unknown key: `abuot`").suggest("did you mean `about`?");
        let told = "suites/x.toml:12:5: unknown key: `abuot`; did you mean `about`?";
        assert_eq!(mistake.to_string(), told);
        let unread = Mistake::of_file("suites/x.toml", "cannot be read");
        assert_eq!(
            Mistakes(vec![mistake, unread]).to_string(),
            format!("{told}\nsuites/x.toml: cannot be read")
        );
    }

    #[test]
    fn a_message_is_one_line_that_neither_terminal_nor_ci_obeys() {
        let mistake = Mistake::of_file("suites/a\n::error ::b.toml", "no: `\n::stop-commands::x\u{1b}[2J`");
        let shown = mistake.suggest("try\r::error ::c").to_string();
        assert!(!shown.contains(char::is_control), "{shown:?}");
    }
}
