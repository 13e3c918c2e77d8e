//! A script cut into commands: where one ends, what continues on the next line, what is no command at all. Words are
//! read in `words`.

use super::{Command, Script, Slip};
use std::iter::Peekable;
use std::str::Chars;

/// Commands within commands; deeper ones are not read, and are an error.
pub(super) const DEEPEST: usize = 16;

pub(super) struct Reader<'a> {
    pub rest: Peekable<Chars<'a>>,
    pub line: usize,
    pub column: usize,
    pub script: Script,
    /// The ends of texts that follow the line.
    here: Vec<String>,
    pub depth: usize,
}

/// Words that open or close a block: the command follows.
const KEYWORDS: [&str; 12] =
    ["if", "then", "else", "elif", "fi", "do", "done", "while", "until", "!", "{", "time"];

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str, script: Script) -> Reader<'a> {
        Reader { rest: text.chars().peekable(), line: 1, column: 1, script, here: Vec::new(), depth: 0 }
    }

    pub(super) fn all(&mut self) {
        while self.rest.peek().is_some() {
            self.command();
        }
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let c = self.rest.next()?;
        if c == '\n' {
            self.line += 1;
            self.column = 1;
            self.skip_here();
        } else {
            self.column += 1;
        }
        Some(c)
    }

    /// Skips here-documents (`<<END`), which are not commands.
    fn skip_here(&mut self) {
        for end in std::mem::take(&mut self.here) {
            loop {
                let mut line = String::new();
                let mut ended = false;
                for c in self.rest.by_ref() {
                    if c == '\n' {
                        self.line += 1;
                        ended = true;
                        break;
                    }
                    line.push(c);
                }
                if line.trim() == end || !ended {
                    break;
                }
            }
        }
    }

    fn command(&mut self) {
        let mut command = Command::default();
        loop {
            match self.rest.peek().copied() {
                None => break,
                Some(' ' | '\t' | '\r') => {
                    self.next();
                }
                Some('\n') => {
                    self.next();
                    break;
                }
                Some('#') => {
                    while self.rest.peek().is_some_and(|c| *c != '\n') {
                        self.next();
                    }
                }
                Some(';' | '&' | '|' | '(' | ')') => {
                    self.next();
                    break;
                }
                Some('\\') if self.continues() => {}
                Some('<' | '>') => self.redirection(),
                Some(_) => self.word(&mut command),
            }
        }
        self.take(command);
    }

    fn take(&mut self, mut command: Command) {
        let keywords = command.words.iter().take_while(|word| KEYWORDS.contains(&word.text.as_str())).count();
        command.words.drain(..keywords);
        if !command.words.is_empty() {
            self.script.commands.push(command);
        }
    }

    /// A backslash at the end of a line; blanks behind it are a slip.
    pub(super) fn continues(&mut self) -> bool {
        let mut ahead = self.rest.clone();
        ahead.next();
        let blanks = ahead.by_ref().take_while(|c| matches!(c, ' ' | '\t')).count();
        let mut behind = self.rest.clone().skip(1 + blanks);
        match behind.next() {
            Some('\n') if blanks == 0 => {
                self.next();
                self.next();
                true
            }
            Some(end @ ('\n' | '#')) if blanks > 0 => {
                let what = if end == '#' { "a comment" } else { "blanks" };
                self.script.slips.push(Slip {
                    line: self.line,
                    column: self.column,
                    message: format!("a backslash followed by {what} passes a single blank as an argument"),
                    advice: "end the line with the backslash; put comments on lines of their own",
                });
                for _ in 0..=blanks {
                    self.next();
                }
                // As it was meant: the command goes on.
                if end == '#' {
                    while self.rest.peek().is_some_and(|c| *c != '\n') {
                        self.next();
                    }
                }
                self.next();
                true
            }
            _ => false,
        }
    }

    fn redirection(&mut self) {
        let mut marks = String::new();
        while let Some(c) = self.rest.peek().copied().filter(|c| matches!(c, '<' | '>' | '&' | '-')) {
            marks.push(c);
            self.next();
        }
        if marks.starts_with("<<") && !marks.starts_with("<<<") {
            while self.rest.peek().is_some_and(|c| matches!(c, ' ' | '\t')) {
                self.next();
            }
            let mut end = String::new();
            while let Some(c) = self.rest.peek().copied().filter(|c| !c.is_whitespace() && *c != ';') {
                end.push(c);
                self.next();
            }
            let end = end.replace(['"', '\'', '\\'], "");
            if !end.is_empty() {
                self.here.push(end);
            }
        }
    }
}
