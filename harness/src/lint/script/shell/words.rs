//! A word of a script: its quotes, its variables, and the commands within it.

use super::reader::{DEEPEST, Reader};
use super::{Command, Script, Slip, Use, Word, is_letter};

impl Reader<'_> {
    pub(super) fn word(&mut self, command: &mut Command) {
        let mut word = Word { line: self.line, column: self.column, ..Word::default() };
        while let Some(c) = self.rest.peek().copied() {
            match c {
                // Bash knows no list within a list.
                '(' if word.text.ends_with('=') && !word.is_quoted && command.list.is_none() => {
                    self.next();
                    let name = word.text.trim_end_matches(['=', '+']).to_owned();
                    command.words.push(word);
                    return self.list(name);
                }
                ' ' | '\t' | '\r' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
                '\\' => {
                    if self.continues() {
                        break;
                    }
                    self.next();
                    word.text.extend(self.next());
                }
                '\'' => self.single(&mut word),
                '"' => self.double(&mut word),
                '$' => self.dollar(&mut word),
                '`' => self.backtick(&mut word),
                _ => word.text.extend(self.next()),
            }
        }
        if !word.text.is_empty() || word.is_quoted {
            command.words.push(word);
        }
    }

    /// `NAME=( ... )`, behind its bracket.
    fn list(&mut self, name: String) {
        let mut list = Command { words: Vec::new(), list: Some(name) };
        loop {
            match self.rest.peek().copied() {
                None => break,
                Some(')') => {
                    self.next();
                    break;
                }
                Some(' ' | '\t' | '\r' | '\n' | '(' | ';' | '&' | '|' | '<' | '>') => {
                    self.next();
                }
                Some('#') => {
                    while self.rest.peek().is_some_and(|c| *c != '\n') {
                        self.next();
                    }
                }
                Some('\\') if self.continues() => {}
                Some(_) => self.word(&mut list),
            }
        }
        self.script.commands.push(list);
    }

    fn single(&mut self, word: &mut Word) {
        word.is_quoted = true;
        self.next();
        while let Some(c) = self.rest.peek().copied() {
            let (line, column) = (self.line, self.column);
            self.next();
            match c {
                '\'' => return,
                '$' => {
                    word.text.push('$');
                    let braced = self.rest.peek() == Some(&'{');
                    let rest: String =
                        self.rest.clone().skip(usize::from(braced)).take_while(is_letter).collect();
                    if rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
                        let (name, behind) = (rest, String::new());
                        word.uses.push(Use { name, behind, line, column, is_quoted: true });
                    }
                }
                c => word.text.push(c),
            }
        }
    }

    fn double(&mut self, word: &mut Word) {
        word.is_quoted = true;
        self.next();
        while let Some(c) = self.rest.peek().copied() {
            match c {
                '"' => {
                    self.next();
                    return;
                }
                '\\' => {
                    self.next();
                    word.text.extend(self.next());
                }
                '$' => self.dollar(word),
                '`' => self.backtick(word),
                _ => word.text.extend(self.next()),
            }
        }
    }

    fn backtick(&mut self, word: &mut Word) {
        word.text.extend(self.next());
        while let Some(c) = self.next() {
            word.text.push(c);
            if c == '`' {
                return;
            }
        }
    }

    fn dollar(&mut self, word: &mut Word) {
        let (line, column) = (self.line, self.column);
        word.text.extend(self.next());
        match self.rest.peek().copied() {
            Some('{') => {
                let inside = self.enclosed('{', '}');
                let inner = inside.trim_start_matches(['#', '!']);
                let end = inner.find(|c: char| !is_letter(&c)).unwrap_or(inner.len());
                let (name, behind) = (inner[..end].to_owned(), inner[end..].to_owned());
                if !name.is_empty() {
                    word.uses.push(Use { name, behind, line, column, is_quoted: false });
                }
                word.text.push_str(&format!("{{{inside}}}"));
            }
            Some('(') => {
                let (line, column) = (self.line, self.column + 1);
                let inside = self.enclosed('(', ')');
                word.text.push_str(&format!("({inside})"));
                // Sums are no commands.
                if !inside.starts_with('(') {
                    self.within(&inside, line, column);
                }
            }
            Some(c) if is_letter(&c) => {
                let mut name = String::new();
                while let Some(c) = self.rest.peek().copied().filter(is_letter) {
                    name.push(c);
                    self.next();
                }
                word.text.push_str(&name);
                word.uses.push(Use { name, behind: String::new(), line, column, is_quoted: false });
            }
            _ => {}
        }
    }

    /// Commands within a word.
    fn within(&mut self, text: &str, line: usize, column: usize) {
        if self.depth >= DEEPEST {
            self.script.slips.push(Slip {
                line,
                column,
                message: format!("commands nested more than {DEEPEST} deep, which are not checked"),
                advice: "close each `$(`, or assign the inner commands to variables",
            });
            return;
        }
        let mut inner = Reader::new(text, Script::default());
        (inner.line, inner.column, inner.depth) = (line, column, self.depth + 1);
        inner.all();
        self.script.commands.extend(inner.script.commands);
        self.script.slips.extend(inner.script.slips);
    }

    /// What stands between two brackets, others within it.
    fn enclosed(&mut self, open: char, close: char) -> String {
        self.next();
        let mut depth = 1;
        let mut inside = String::new();
        while let Some(c) = self.next() {
            depth += i32::from(c == open) - i32::from(c == close);
            if depth == 0 {
                break;
            }
            inside.push(c);
        }
        inside
    }
}
