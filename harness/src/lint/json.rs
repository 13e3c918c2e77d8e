//! JSON with the place of each value, so that an error can be shown where it stands. The meaning of
//! values is left to the caller.

/// A place counts lines and characters from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    pub line: usize,
    pub column: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Value {
    pub place: Position,
    pub kind: ValueKind,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum ValueKind {
    Null,
    Bool,
    Number(f64),
    Text(String),
    List(Vec<Value>),
    /// In the order of the file, copies too.
    Object(Vec<(Position, String, Value)>),
}

impl ValueKind {
    pub(super) fn name(&self) -> &'static str {
        match self {
            ValueKind::Null => "null",
            ValueKind::Bool => "a boolean",
            ValueKind::Number(_) => "a number",
            ValueKind::Text(_) => "a string",
            ValueKind::List(_) => "a list",
            ValueKind::Object(_) => "an object",
        }
    }
}

/// Where a text is not JSON, what is wrong there, and what to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SyntaxError {
    pub place: Position,
    pub what: String,
    pub advice: &'static str,
}

pub(super) fn read(text: &str) -> Result<Value, SyntaxError> {
    let mut reader =
        Reader { rest: text.chars().peekable(), place: Position { line: 1, column: 1 }, depth: 0 };
    reader.space()?;
    let value = reader.value()?;
    reader.space()?;
    match reader.rest.peek() {
        None => Ok(value),
        Some(_) => Err(reader.syntax_error("trailing text after the value", "put everything into one list")),
    }
}

/// Deeper nesting is refused, so that a hostile file cannot exhaust the stack.
const DEEPEST: usize = 64;

struct Reader<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    place: Position,
    depth: usize,
}

impl Reader<'_> {
    fn syntax_error(&self, what: &str, advice: &'static str) -> SyntaxError {
        SyntaxError { place: self.place, what: what.to_owned(), advice }
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest.next()?;
        match c {
            '\n' => self.place = Position { line: self.place.line + 1, column: 1 },
            _ => self.place.column += 1,
        }
        Some(c)
    }

    fn space(&mut self) -> Result<(), SyntaxError> {
        while self.rest.peek().is_some_and(|c| matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{feff}')) {
            self.next();
        }
        match self.rest.peek() {
            Some('/' | '#') => Err(self.syntax_error(
                "JSON has no comments",
                "remove it, or write it as a key such as `\"_comment\"`",
            )),
            _ => Ok(()),
        }
    }

    fn value(&mut self) -> Result<Value, SyntaxError> {
        let place = self.place;
        let kind = match self.rest.peek() {
            None => {
                return Err(
                    self.syntax_error("the file ends where a value is expected", "close every open bracket")
                );
            }
            Some('{') => self.object()?,
            Some('[') => self.list()?,
            Some('"') => ValueKind::Text(self.text()?),
            Some('\'' | '\u{2018}' | '\u{2019}' | '\u{201c}' | '\u{201d}') => {
                return Err(self.syntax_error("invalid quotation mark", "use \""));
            }
            Some(_) => self.word()?,
        };
        Ok(Value { place, kind })
    }

    fn word(&mut self) -> Result<ValueKind, SyntaxError> {
        let begin = self.place;
        let mut word = String::new();
        while self.rest.peek().is_some_and(|c| c.is_alphanumeric() || matches!(c, '+' | '-' | '.' | '_')) {
            word.extend(self.next());
        }
        let is_number = word.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b))
            && !word.starts_with(['+', '.'])
            && word.ends_with(|c: char| c.is_ascii_digit());
        match word.as_str() {
            "null" => Ok(ValueKind::Null),
            "true" | "false" => Ok(ValueKind::Bool),
            _ => match word.parse() {
                Ok(number) if is_number => Ok(ValueKind::Number(number)),
                _ => Err(SyntaxError {
                    place: begin,
                    what: match word.is_empty() {
                        true => "expected a value".to_owned(),
                        false => format!("not a JSON value: `{}`", word.escape_debug()),
                    },
                    advice: "quote strings with \"\", and put no comma after the last value",
                }),
            },
        }
    }

    fn text(&mut self) -> Result<String, SyntaxError> {
        let begin = self.place;
        self.next();
        let mut text = String::new();
        loop {
            let at = self.place;
            let syntax_error = |what: &str, advice| SyntaxError { place: at, what: what.to_owned(), advice };
            match self.next() {
                Some('"') => return Ok(text),
                Some('\\') => match self.next() {
                    Some(c @ ('"' | '\\' | '/')) => text.push(c),
                    Some('n') => text.push('\n'),
                    Some('t') => text.push('\t'),
                    Some('r') => text.push('\r'),
                    Some('b') => text.push('\x08'),
                    Some('f') => text.push('\x0c'),
                    Some('u') => {
                        let digits: String = (0..4).filter_map(|_| self.next()).collect();
                        let code = u32::from_str_radix(&digits, 16).map_err(|_| {
                            syntax_error("invalid escape sequence", "write four hex digits after `\\u`")
                        })?;
                        text.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                    }
                    _ => {
                        return Err(syntax_error("invalid escape sequence", "write `\\\\` for a backslash"));
                    }
                },
                None | Some('\n') => {
                    return Err(SyntaxError {
                        place: begin,
                        what: "unterminated string".to_owned(),
                        advice: "close it with \" on the same line",
                    });
                }
                Some(c) => text.push(c),
            }
        }
    }

    fn deeper(&mut self) -> Result<(), SyntaxError> {
        self.depth += 1;
        match self.depth > DEEPEST {
            true => Err(self
                .syntax_error(&format!("nested more than {DEEPEST} levels deep"), "write a list of objects")),
            false => Ok(()),
        }
    }

    /// Behind a value: whether another one follows.
    fn goes_on(&mut self, end: char) -> Result<bool, SyntaxError> {
        self.space()?;
        match self.rest.peek() {
            Some(',') => {
                let comma = self.place;
                self.next();
                self.space()?;
                match self.rest.peek() == Some(&end) {
                    true => Err(SyntaxError {
                        place: comma,
                        what: "trailing comma".to_owned(),
                        advice: "remove it",
                    }),
                    false => Ok(true),
                }
            }
            Some(c) if *c == end => {
                self.next();
                Ok(false)
            }
            _ => {
                Err(self.syntax_error(&format!("expected `,` or `{end}`"), "put it after the previous value"))
            }
        }
    }

    fn list(&mut self) -> Result<ValueKind, SyntaxError> {
        self.deeper()?;
        self.next();
        self.space()?;
        let mut values = Vec::new();
        if self.rest.peek() == Some(&']') {
            self.next();
        } else {
            loop {
                values.push(self.value()?);
                if !self.goes_on(']')? {
                    break;
                }
            }
        }
        self.depth -= 1;
        Ok(ValueKind::List(values))
    }

    fn object(&mut self) -> Result<ValueKind, SyntaxError> {
        self.deeper()?;
        self.next();
        self.space()?;
        let mut fields = Vec::new();
        if self.rest.peek() == Some(&'}') {
            self.next();
        } else {
            loop {
                let place = self.place;
                if self.rest.peek() != Some(&'"') {
                    return Err(self.syntax_error("expected a key", "quote keys with \"\""));
                }
                let key = self.text()?;
                self.space()?;
                if self.rest.peek() != Some(&':') {
                    return Err(self.syntax_error("expected `:` after the key", "write `\"key\": value`"));
                }
                self.next();
                self.space()?;
                fields.push((place, key, self.value()?));
                if !self.goes_on('}')? {
                    break;
                }
            }
        }
        self.depth -= 1;
        Ok(ValueKind::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn place(text: &str) -> (usize, usize, String) {
        let syntax_error = read(text).expect_err("no JSON");
        (syntax_error.place.line, syntax_error.place.column, syntax_error.what)
    }

    #[test]
    fn values_are_read_with_their_places() {
        let value = read("[\n  {\"a\": [1, -2.5e3, null, true, \"x\\u0041\\n\"]}]").expect("JSON");
        let ValueKind::List(entries) = &value.kind else { panic!("a list") };
        let ValueKind::Object(fields) = &entries[0].kind else { panic!("an object") };
        assert_eq!(
            (entries[0].place, fields[0].0),
            (Position { line: 2, column: 3 }, Position { line: 2, column: 4 })
        );
        let ValueKind::List(values) = &fields[0].2.kind else { panic!("a list") };
        assert_eq!(
            (&values[1].kind, &values[4].kind),
            (&ValueKind::Number(-2500.0), &ValueKind::Text("xA\n".to_owned()))
        );
    }

    #[test]
    fn syntax_errors_have_their_place() {
        let table = [
            ("", 1, 1, "the file ends"),
            ("[1,\n 2,]", 2, 3, "trailing comma"),
            ("{'a': 1}", 1, 2, "expected a key"),
            ("[\u{201c}a\u{201d}]", 1, 2, "invalid quotation mark"),
            ("[1] // all", 1, 5, "JSON has no comments"),
            ("[\"a\n\"]", 1, 2, "unterminated string"),
            ("[1 2]", 1, 4, "expected `,` or `]`"),
            ("[0x10]", 1, 2, "not a JSON value: `0x10`"),
            ("{\"a\" 1}", 1, 6, "expected `:`"),
            ("[] []", 1, 4, "trailing text"),
            ("[\"\\x\"]", 1, 3, "invalid escape"),
        ];
        for (text, line, column, what) in table {
            let found = place(text);
            assert!((found.0, found.1) == (line, column) && found.2.starts_with(what), "{text}: {found:?}");
        }
        assert!(place(&"[".repeat(1000)).2.starts_with("nested more than 64 levels"));
    }

    proptest! {
        #[test]
        fn whatever_serde_reads_is_read_and_nothing_else(text in "[\\[\\]{}\",:0-9a-z \\\\.-]{0,24}") {
            // This reader also accepts numbers such as `01`, and copies of keys.
            if serde_json::from_str::<serde_json::Value>(&text).is_ok() {
                prop_assert!(read(&text).is_ok(), "{}", text);
            }
        }
    }
}
