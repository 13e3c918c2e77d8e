//! YAML as a tree with the place of each value, of bounded size: what a manifest may hold, whatever its author meant.

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span, StrInput};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Where a value stands: the number of the file, and its line and column from 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    pub(super) file: usize,
    pub(super) line: usize,
    pub(super) column: usize,
}

#[derive(Debug, Clone)]
pub(super) struct Node {
    /// Of a block, the first character that is not an empty line.
    pub(super) place: Position,
    pub(super) value: Value,
    /// Whether it is a text behind `|`, line by line as in the file.
    pub(super) is_block: bool,
}

#[derive(Debug, Clone)]
pub(super) enum Value {
    Null,
    Bool(bool),
    /// As it is written.
    Number(Rc<str>),
    Text(Rc<str>),
    List(Vec<Rc<Node>>),
    Map(Vec<Entry>),
}

#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) place: Position,
    pub(super) key: Rc<str>,
    pub(super) value: Rc<Node>,
    /// Whether the same map has this key before.
    pub(super) is_repeated: bool,
}

/// Why a text could not be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SyntaxError {
    pub(super) place: Position,
    pub(super) message: String,
    pub(super) advice: &'static str,
}

/// Deeper nesting is refused, so that a hostile file cannot exhaust the stack.
const DEEPEST: usize = 64;
/// Values with all that aliases stand for, of 64 bytes each; a megabyte of manifests has some 50,000.
const MOST_VALUES: usize = 400_000;

impl Node {
    pub(super) fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Map(entries) => entries,
            _ => &[],
        }
    }

    pub(super) fn items(&self) -> &[Rc<Node>] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// Of a map; the last of several.
    pub(super) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().rfind(|entry| &*entry.key == key)
    }

    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &*entry.value)
    }

    /// Down a path of keys.
    pub(super) fn at(&self, path: &[&str]) -> Option<&Node> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    pub(super) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A text or a number, as it is written.
    pub(super) fn scalar(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) | Value::Number(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn is_true(&self) -> bool {
        matches!(self.value, Value::Bool(true))
    }

    pub(super) fn number(&self) -> Option<u64> {
        self.scalar()?.parse().ok()
    }

    /// What kind of value it is, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::Text(_) => "a string",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }
}

/// Each document of a text.
pub(super) fn documents(text: &str, file: usize) -> Result<Vec<Rc<Node>>, SyntaxError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if let Some((line, column)) = control(text) {
        let place = Position { file, line, column };
        let message = "control characters are not allowed in YAML".to_owned();
        return Err(SyntaxError { place, message, advice: "remove them" });
    }
    let mut reader =
        Reader { parser: Parser::new_from_str(text), file, values: 0, anchors: BTreeMap::new(), deepest: 0 };
    let mut documents = Vec::new();
    while let Some((event, _)) = reader.next()? {
        match event {
            Event::StreamEnd => break,
            Event::DocumentStart(_) => {
                reader.anchors.clear();
                if let Some((event, span)) = reader.next()? {
                    documents.push(reader.node(event, span, 0)?);
                }
            }
            _ => {}
        }
    }
    Ok(documents)
}

/// The first character that YAML refuses.
fn control(text: &str) -> Option<(usize, usize)> {
    let refused = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\u{85}');
    let at = text.find(refused)?;
    let before = &text[..at];
    let line = before.matches('\n').count() + 1;
    Some((line, before.rsplit('\n').next().unwrap_or_default().chars().count() + 1))
}

struct Reader<'a> {
    parser: Parser<'a, StrInput<'a>>,
    file: usize,
    /// Of all documents so far, aliases counted as what they stand for.
    values: usize,
    anchors: BTreeMap<usize, Anchored>,
    /// Of the deepest value of the node that is read.
    deepest: usize,
}

#[derive(Clone)]
struct Anchored {
    node: Rc<Node>,
    values: usize,
    /// Levels below the node.
    height: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<Option<(Event<'a>, Span)>, SyntaxError> {
        match self.parser.next_event() {
            None => Ok(None),
            Some(Ok(next)) => Ok(Some(next)),
            Some(Err(error)) => Err(SyntaxError {
                place: self.place(*error.marker()),
                message: format!("invalid YAML: {}", error.info()),
                advice: "check indentation, quotation marks and brackets; tabs do not indent",
            }),
        }
    }

    fn place(&self, marker: Marker) -> Position {
        Position { file: self.file, line: marker.line(), column: marker.col() + 1 }
    }

    fn count(&mut self, more: usize, place: Position) -> Result<(), SyntaxError> {
        self.values = self.values.saturating_add(more);
        match self.values > MOST_VALUES {
            false => Ok(()),
            true => {
                let message = format!("more than {MOST_VALUES} values, with what aliases stand for");
                Err(SyntaxError { place, message, advice: "write fewer aliases, or split the file" })
            }
        }
    }

    fn reach(&mut self, depth: usize, place: Position) -> Result<(), SyntaxError> {
        self.deepest = self.deepest.max(depth);
        match depth > DEEPEST {
            false => Ok(()),
            true => {
                let message = format!("nested more than {DEEPEST} levels deep");
                Err(SyntaxError { place, message, advice: "no field of Kubernetes is that deep" })
            }
        }
    }

    /// The node that an event begins.
    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Rc<Node>, SyntaxError> {
        let place = self.place(span.start);
        self.reach(depth, place)?;
        let before = (self.values, std::mem::replace(&mut self.deepest, depth));
        self.count(1, place)?;
        if let Event::Scalar(text, ..) = &event {
            self.count(text.len() / 64, place)?;
        }
        let is_block = matches!(event, Event::Scalar(_, ScalarStyle::Literal, _, _));
        let (value, anchor) = match event {
            Event::Alias(anchor) => {
                let Some(anchored) = self.anchors.get(&anchor).cloned() else {
                    let message = "an alias within its own anchor".to_owned();
                    return Err(SyntaxError { place, message, advice: "write the value" });
                };
                self.count(anchored.values, place)?;
                self.deepest = before.1;
                self.reach(depth + anchored.height, place)?;
                return Ok(anchored.node);
            }
            Event::Scalar(text, style, anchor, tag) => {
                let is_text = tag.is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix == "str");
                let is_plain = style == ScalarStyle::Plain && !is_text;
                (if is_plain { plain(&text) } else { Value::Text(text.as_ref().into()) }, anchor)
            }
            Event::SequenceStart(anchor, _) => (self.list(depth)?, anchor),
            Event::MappingStart(anchor, _) => (self.map(depth)?, anchor),
            _ => (Value::Null, 0),
        };
        let node = Rc::new(Node { place, value, is_block });
        if anchor > 0 {
            let (values, height) = (self.values - before.0, self.deepest - depth);
            self.anchors.insert(anchor, Anchored { node: Rc::clone(&node), values, height });
        }
        self.deepest = self.deepest.max(before.1);
        Ok(node)
    }

    fn list(&mut self, depth: usize) -> Result<Value, SyntaxError> {
        let mut items = Vec::new();
        while let Some((event, span)) = self.next()? {
            if matches!(event, Event::SequenceEnd) {
                break;
            }
            items.push(self.node(event, span, depth + 1)?);
        }
        Ok(Value::List(items))
    }

    fn map(&mut self, depth: usize) -> Result<Value, SyntaxError> {
        let (mut entries, mut merged) = (Vec::<Entry>::new(), Vec::new());
        let mut known = std::collections::BTreeSet::new();
        while let Some((event, span)) = self.next()? {
            if matches!(event, Event::MappingEnd) {
                break;
            }
            let key = self.node(event, span, depth + 1)?;
            let Some((event, span)) = self.next()? else { break };
            let value = self.node(event, span, depth + 1)?;
            let name: Rc<str> = match &key.value {
                Value::Text(text) | Value::Number(text) => Rc::clone(text),
                Value::Null => "".into(),
                Value::Bool(is_true) => is_true.to_string().into(),
                Value::List(_) | Value::Map(_) => {
                    let message = "a key must be a string".to_owned();
                    let advice = "write `key: value`; `{{ ... }}` must be in quotation marks";
                    return Err(SyntaxError { place: key.place, message, advice });
                }
            };
            if &*name == "<<" {
                merged.push(value);
                continue;
            }
            let is_repeated = !known.insert(Rc::clone(&name));
            entries.push(Entry { place: key.place, key: name, value, is_repeated });
        }
        // `<<: *anchor`: what the map does not have itself.
        for value in merged {
            let of_list = value.items().iter().map(|node| &**node);
            for from in of_list.chain([&*value]).flat_map(Node::entries) {
                if known.insert(Rc::clone(&from.key)) {
                    self.count(1, from.place)?;
                    entries.push(Entry { is_repeated: false, ..from.clone() });
                }
            }
        }
        Ok(Value::Map(entries))
    }
}

/// A word without quotation marks, as kubectl takes it: `yes` and `off` are booleans, `10:20:30` is a text.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Value::Bool(true),
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Value::Bool(false),
        _ if is_number(text) => Value::Number(text.into()),
        _ => Value::Text(text.into()),
    }
}

fn is_number(text: &str) -> bool {
    let bare = text.strip_prefix(['-', '+']).unwrap_or(text);
    if let Some(digits) = bare.strip_prefix("0x") {
        return !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    }
    let begins = bare.starts_with(|c: char| c.is_ascii_digit())
        || bare.strip_prefix('.').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    begins && bare.replace('_', "").parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<Rc<Node>> {
        documents(text, 0).expect("YAML")
    }

    #[test]
    fn values_have_the_types_that_kubectl_gives_them_and_their_places() {
        let all = read("a: 1\nb: \"1\"\nc: [yes, ~, 10:20:30, 1e3, 0x1f, !!str 7]\n---\nd:\n");
        let kinds: Vec<&str> = all[0].get("c").expect("c").items().iter().map(|item| item.kind()).collect();
        assert_eq!(kinds, ["a boolean", "nothing", "a string", "a number", "a number", "a string"]);
        assert_eq!(
            (all[0].get("a").map(Node::kind), all[0].get("b").map(Node::kind)),
            (Some("a number"), Some("a string"))
        );
        let place = all[0].get("b").expect("b").place;
        assert_eq!((place.line, place.column), (2, 4));
        assert_eq!((all.len(), all[1].get("d").map(Node::kind)), (2, Some("nothing")));
    }

    #[test]
    fn aliases_and_merged_maps_stand_for_their_values() {
        let all = read("a: &a {x: 1, y: 2}\nb: {<<: *a, x: 3}\nc: *a\nx: 1\nx: 2\n");
        let number = |path: &[&str]| all[0].at(path).and_then(Node::number);
        assert_eq!(
            [number(&["b", "x"]), number(&["b", "y"]), number(&["c", "x"]), number(&["x"])],
            [Some(3), Some(2), Some(1), Some(2)]
        );
        let block = read("a: |\n\n    x\n");
        let block = block[0].get("a").expect("a");
        assert!(
            block.is_block
                && block.place == Position { file: 0, line: 3, column: 5 }
                && block.text() == Some("\nx\n")
        );
        assert!(all[0].entries().last().is_some_and(|entry| entry.is_repeated));
    }

    #[test]
    fn hostile_texts_are_refused_with_one_error() {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for at in 1..12 {
            let before = format!("*a{}, ", at - 1).repeat(9);
            bomb += &format!("a{at}: &a{at} [{}]\n", before.trim_end_matches(", "));
        }
        // Each alias is as deep as it may be, and stands within the next.
        let mut chain = format!("a0: &a0 {}{}\n", "[".repeat(40), "]".repeat(40));
        for at in 1..50 {
            chain += &format!("a{at}: &a{at} {}*a{}{}\n", "[".repeat(40), at - 1, " ]".repeat(40));
        }
        let deep = (0..100).map(|at| format!("{}a:\n", " ".repeat(at))).collect::<String>();
        let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), "*a, ".repeat(100));
        for (text, message) in [
            (long.as_str(), "more than 400000 values, with what aliases stand for"),
            (bomb.as_str(), "more than 400000 values, with what aliases stand for"),
            (&chain, "nested more than 64 levels deep"),
            (&deep, "nested more than 64 levels deep"),
            (&"[".repeat(200), "nested more than 64 levels deep"),
            (&"[".repeat(100_000), "invalid YAML: recursion limit exceeded"),
            ("a: &a [*a]\n", "an alias within its own anchor"),
            ("a: \u{1b}[31m\n", "control characters are not allowed in YAML"),
            ("{{ .Values.image }}: 1\n", "a key must be a string"),
        ] {
            assert_eq!(documents(text, 0).expect_err(message).message, message);
        }
        assert!(documents("a: [1\nb: 2\n", 0).is_err() && documents("a: *b\n", 0).is_err());
    }
}
