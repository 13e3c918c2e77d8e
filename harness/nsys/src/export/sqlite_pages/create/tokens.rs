//! The tokens of a statement: names, quoted names, values and signs, without the blanks and comments between them.

#[derive(Debug, PartialEq)]
pub(in super::super) struct Token {
    what: What,
    /// Where it is written.
    pub start: usize,
    pub end: usize,
}

#[derive(Debug, PartialEq)]
enum What {
    /// A name or a keyword.
    Plain(String),
    Quoted(String),
    /// A number, or a text in single quotes.
    Value,
    Sign(char),
}

impl Token {
    pub(super) fn is_key(&self, key: &str) -> bool {
        matches!(&self.what, What::Plain(token) if token.eq_ignore_ascii_case(key))
    }

    pub(super) fn is_plain(&self) -> bool {
        matches!(self.what, What::Plain(_))
    }

    pub(super) fn is_value(&self) -> bool {
        matches!(self.what, What::Value | What::Plain(_) | What::Quoted(_))
    }

    pub(super) fn is_sign(&self, sign: char) -> bool {
        self.what == What::Sign(sign)
    }

    pub(super) fn name(&self) -> Option<&str> {
        match &self.what {
            What::Plain(name) | What::Quoted(name) => Some(name),
            _ => None,
        }
    }
}

/// `None` where something is not closed, or nothing that is known begins.
pub(super) fn tokenize(statement: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(rest) = statement.get(at..).filter(|rest| !rest.is_empty()) {
        let first = rest.chars().next()?;
        let length = if first.is_ascii_whitespace() {
            at += 1;
            continue;
        } else if rest.starts_with("--") {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        } else if rest.starts_with("/*") {
            at += rest.get(2..)?.find("*/")? + 4;
            continue;
        } else if begins_name(first) {
            rest.find(|c: char| !begins_name(c) && !c.is_ascii_digit() && c != '$').unwrap_or(rest.len())
        } else if first.is_ascii_digit() {
            rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(rest.len())
        } else {
            match first {
                '"' | '`' | '\'' => quoted(rest, first)?,
                '[' => rest.find(']')? + 1,
                '(' | ')' | ',' | '.' | '+' | '-' | '*' | '/' | '<' | '>' | '=' | '!' | '%' | '|' | '&'
                | '~' => 1,
                _ => return None,
            }
        };
        let written = rest.get(..length)?;
        let inside = || written.get(1..length - 1).unwrap_or_default();
        let what = match first {
            '"' | '`' => What::Quoted(inside().replace(&format!("{first}{first}"), &first.to_string())),
            '[' => What::Quoted(inside().to_owned()),
            '\'' => What::Value,
            c if c.is_ascii_digit() => What::Value,
            c if begins_name(c) => What::Plain(written.to_owned()),
            sign => What::Sign(sign),
        };
        tokens.push(Token { what, start: at, end: at + length });
        at += length;
    }
    Some(tokens)
}

fn begins_name(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || !c.is_ascii()
}

/// How long a quoted word is; two quotes beside each other stand for one.
fn quoted(text: &str, quote: char) -> Option<usize> {
    let mut rest = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = rest.next() {
        if c == quote && rest.next_if(|(_, next)| *next == quote).is_none() {
            return Some(at + 1);
        }
    }
    None
}
