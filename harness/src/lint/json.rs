//! JSON with the place of each value, so that an error can be shown where it stands. What values mean is their reader's
//! business.

/// A place counts lines and characters from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub line: usize,
    pub column: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Value {
    pub place: Place,
    pub kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Null,
    Bool,
    Number(f64),
    Text(String),
    List(Vec<Value>),
    /// In the order of the file, copies too.
    Object(Vec<(Place, String, Value)>),
}

impl Kind {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Kind::Null => "null",
            Kind::Bool => "true or false",
            Kind::Number(_) => "a number",
            Kind::Text(_) => "a text",
            Kind::List(_) => "a list",
            Kind::Object(_) => "an object",
        }
    }
}

/// Where a text is no JSON, what is wrong there, and what to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NoJson {
    pub place: Place,
    pub what: String,
    pub advice: &'static str,
}

pub(super) fn read(text: &str) -> Result<Value, NoJson> {
    let mut reader = Reader { rest: text.chars().peekable(), place: Place { line: 1, column: 1 }, depth: 0 };
    reader.space()?;
    let value = reader.value()?;
    reader.space()?;
    match reader.rest.peek() {
        None => Ok(value),
        Some(_) => Err(reader.wrong("more follows behind the end", "put everything into one list")),
    }
}

/// Deeper ones are nobody's.
const DEEPEST: usize = 64;

struct Reader<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    place: Place,
    depth: usize,
}

impl Reader<'_> {
    fn wrong(&self, what: &str, advice: &'static str) -> NoJson {
        NoJson { place: self.place, what: what.to_owned(), advice }
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest.next()?;
        match c {
            '\n' => self.place = Place { line: self.place.line + 1, column: 1 },
            _ => self.place.column += 1,
        }
        Some(c)
    }

    fn space(&mut self) -> Result<(), NoJson> {
        while self.rest.peek().is_some_and(|c| matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{feff}')) {
            self.next();
        }
        match self.rest.peek() {
            Some('/' | '#') => Err(self
                .wrong("JSON has no comments", "take it out, or write it as a key such as `\"_comment\"`")),
            _ => Ok(()),
        }
    }

    fn value(&mut self) -> Result<Value, NoJson> {
        let place = self.place;
        let kind = match self.rest.peek() {
            None => return Err(self.wrong("the file ends where a value is expected", "close what is open")),
            Some('{') => self.object()?,
            Some('[') => self.list()?,
            Some('"') => Kind::Text(self.text()?),
            Some('\'' | '\u{2018}' | '\u{2019}' | '\u{201c}' | '\u{201d}') => {
                return Err(self.wrong("a quotation mark that JSON does not know", "write \""));
            }
            Some(_) => self.word()?,
        };
        Ok(Value { place, kind })
    }

    fn word(&mut self) -> Result<Kind, NoJson> {
        let begin = self.place;
        let mut word = String::new();
        while self.rest.peek().is_some_and(|c| c.is_alphanumeric() || matches!(c, '+' | '-' | '.' | '_')) {
            word.extend(self.next());
        }
        let is_number = word.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b))
            && !word.starts_with(['+', '.'])
            && word.ends_with(|c: char| c.is_ascii_digit());
        match word.as_str() {
            "null" => Ok(Kind::Null),
            "true" | "false" => Ok(Kind::Bool),
            _ => match word.parse() {
                Ok(number) if is_number => Ok(Kind::Number(number)),
                _ => Err(NoJson {
                    place: begin,
                    what: match word.is_empty() {
                        true => "a value is expected".to_owned(),
                        false => format!("no value of JSON: `{}`", word.escape_debug()),
                    },
                    advice: "write texts in \"\", and no comma behind the last value",
                }),
            },
        }
    }

    fn text(&mut self) -> Result<String, NoJson> {
        let begin = self.place;
        self.next();
        let mut text = String::new();
        loop {
            let at = self.place;
            let wrong = |what: &str, advice| NoJson { place: at, what: what.to_owned(), advice };
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
                            wrong("an escape that JSON does not know", "write four digits behind `\\u`")
                        })?;
                        text.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                    }
                    _ => {
                        return Err(wrong(
                            "an escape that JSON does not know",
                            "write `\\\\` for a backslash",
                        ));
                    }
                },
                None | Some('\n') => {
                    return Err(NoJson {
                        place: begin,
                        what: "a text without an end".to_owned(),
                        advice: "close it with \" on the same line",
                    });
                }
                Some(c) => text.push(c),
            }
        }
    }

    fn deeper(&mut self) -> Result<(), NoJson> {
        self.depth += 1;
        match self.depth > DEEPEST {
            true => Err(self.wrong("values stand too deep in one another", "write a list of objects")),
            false => Ok(()),
        }
    }

    /// Behind a value: whether another one follows.
    fn goes_on(&mut self, end: char) -> Result<bool, NoJson> {
        self.space()?;
        match self.rest.peek() {
            Some(',') => {
                let comma = self.place;
                self.next();
                self.space()?;
                match self.rest.peek() == Some(&end) {
                    true => Err(NoJson {
                        place: comma,
                        what: "a comma behind the last value".to_owned(),
                        advice: "take it out",
                    }),
                    false => Ok(true),
                }
            }
            Some(c) if *c == end => {
                self.next();
                Ok(false)
            }
            _ => Err(self.wrong(&format!("`,` or `{end}` is expected"), "put it behind the value before")),
        }
    }

    fn list(&mut self) -> Result<Kind, NoJson> {
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
        Ok(Kind::List(values))
    }

    fn object(&mut self) -> Result<Kind, NoJson> {
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
                    return Err(self.wrong("a key is expected", "write keys in \"\""));
                }
                let key = self.text()?;
                self.space()?;
                if self.rest.peek() != Some(&':') {
                    return Err(self.wrong("`:` is expected behind a key", "write `\"key\": value`"));
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
        Ok(Kind::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn place(text: &str) -> (usize, usize, String) {
        let wrong = read(text).expect_err("no JSON");
        (wrong.place.line, wrong.place.column, wrong.what)
    }

    #[test]
    fn values_are_read_with_their_places() {
        let value = read("[\n  {\"a\": [1, -2.5e3, null, true, \"x\\u0041\\n\"]}]").expect("JSON");
        let Kind::List(entries) = &value.kind else { panic!("a list") };
        let Kind::Object(fields) = &entries[0].kind else { panic!("an object") };
        assert_eq!(
            (entries[0].place, fields[0].0),
            (Place { line: 2, column: 3 }, Place { line: 2, column: 4 })
        );
        let Kind::List(values) = &fields[0].2.kind else { panic!("a list") };
        assert_eq!(
            (&values[1].kind, &values[4].kind),
            (&Kind::Number(-2500.0), &Kind::Text("xA\n".to_owned()))
        );
    }

    #[test]
    fn what_is_no_json_is_told_where_it_stands() {
        let table = [
            ("", 1, 1, "the file ends"),
            ("[1,\n 2,]", 2, 3, "a comma behind the last value"),
            ("{'a': 1}", 1, 2, "a key is expected"),
            ("[\u{201c}a\u{201d}]", 1, 2, "a quotation mark"),
            ("[1] // all", 1, 5, "JSON has no comments"),
            ("[\"a\n\"]", 1, 2, "a text without an end"),
            ("[1 2]", 1, 4, "`,` or `]` is expected"),
            ("[0x10]", 1, 2, "no value of JSON: `0x10`"),
            ("{\"a\" 1}", 1, 6, "`:` is expected"),
            ("[] []", 1, 4, "more follows"),
            ("[\"\\x\"]", 1, 3, "an escape"),
        ];
        for (text, line, column, what) in table {
            let found = place(text);
            assert!((found.0, found.1) == (line, column) && found.2.starts_with(what), "{text}: {found:?}");
        }
        assert!(place(&"[".repeat(1000)).2.starts_with("values stand too deep"));
    }

    proptest! {
        #[test]
        fn whatever_serde_reads_is_read_and_nothing_else(text in "[\\[\\]{}\",:0-9a-z \\\\.-]{0,24}") {
            // Beyond it are numbers such as `01`, and copies of keys.
            if serde_json::from_str::<serde_json::Value>(&text).is_ok() {
                prop_assert!(read(&text).is_ok(), "{}", text);
            }
        }
    }
}
