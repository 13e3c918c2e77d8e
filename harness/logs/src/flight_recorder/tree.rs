//! Values of a dump, whichever form it has. They lie in one list and name each other by number, so that a value which
//! stands in many places is held once, and one that contains itself does no harm.

use std::cell::Cell;
use std::rc::Rc;

/// A small dump has some thousand values.
pub(super) const MOST_VALUES: usize = 8 << 20;
/// Looks at each value, on average: one that stands in many places is looked at often.
const VISITS_EACH: u64 = 64;
/// And so many in a small dump.
const FEW_VISITS: u64 = 1 << 20;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    None,
    Bool(bool),
    Int(i64),
    /// A number beyond 64 bits, or bytes: nothing that a dump is read for.
    Opaque,
    Float(f64),
    Text(Rc<str>),
    /// A list or a tuple.
    List(Vec<u32>),
    Dict(Vec<(u32, u32)>),
}

#[derive(Debug, Default)]
pub(super) struct Tree {
    pub values: Vec<Value>,
    pub root: u32,
    visits: Cell<u64>,
}

/// A value that is looked at.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    tree: &'a Tree,
    at: u32,
}

impl Tree {
    pub(super) fn root(&self) -> Node<'_> {
        Node { tree: self, at: self.root }
    }

    /// Whether values were looked at more often than any real dump needs; the looks that are left out gave nothing.
    pub(super) fn is_exhausted(&self) -> bool {
        self.visits.get() > FEW_VISITS + VISITS_EACH * self.values.len() as u64
    }

    /// Nothing where there are too many.
    pub(super) fn push(&mut self, value: Value) -> Option<u32> {
        let at = u32::try_from(self.values.len()).ok().filter(|_| self.values.len() < MOST_VALUES)?;
        self.values.push(value);
        Some(at)
    }

    /// The depth is that of the parser's limit.
    pub(super) fn push_json(&mut self, json: serde_json::Value) -> Option<u32> {
        use serde_json::Value as Json;
        let value = match json {
            Json::Null => Value::None,
            Json::Bool(value) => Value::Bool(value),
            Json::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(int), _) => Value::Int(int),
                (None, Some(float)) => Value::Float(float),
                _ => Value::Opaque,
            },
            Json::String(text) => Value::Text(text.into()),
            Json::Array(items) => {
                let items: Option<Vec<u32>> = items.into_iter().map(|item| self.push_json(item)).collect();
                Value::List(items?)
            }
            Json::Object(map) => {
                let mut items = Vec::new();
                for (key, value) in map {
                    items.push((self.push(Value::Text(key.into()))?, self.push_json(value)?));
                }
                Value::Dict(items)
            }
        };
        self.push(value)
    }
}

impl<'a> Node<'a> {
    fn value(self) -> &'a Value {
        self.tree.visits.set(self.tree.visits.get() + 1);
        if self.tree.is_exhausted() {
            return &Value::None;
        }
        self.tree.values.get(self.at as usize).unwrap_or(&Value::None)
    }

    fn beside(self, at: u32) -> Node<'a> {
        Node { at, ..self }
    }

    pub(super) fn get(self, key: &str) -> Option<Node<'a>> {
        let mut items = self.items().into_iter().flatten();
        items.find(|(name, _)| name.text().as_deref() == Some(key)).map(|(_, value)| value)
    }

    /// Of a dict.
    pub(super) fn items(self) -> Option<impl Iterator<Item = (Node<'a>, Node<'a>)>> {
        let Value::Dict(items) = self.value() else { return None };
        Some(items.iter().map(move |(key, value)| (self.beside(*key), self.beside(*value))))
    }

    /// Of a list or a tuple.
    pub(super) fn list(self) -> Option<impl Iterator<Item = Node<'a>>> {
        let Value::List(items) = self.value() else { return None };
        Some(items.iter().map(move |item| self.beside(*item)))
    }

    pub(super) fn text(self) -> Option<Rc<str>> {
        match self.value() {
            Value::Text(text) => Some(Rc::clone(text)),
            _ => None,
        }
    }

    /// JSON writes some numbers as texts.
    pub(super) fn int(self) -> Option<i64> {
        match self.value() {
            Value::Int(int) => Some(*int),
            Value::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    pub(super) fn count(self) -> Option<u64> {
        self.int().and_then(|int| u64::try_from(int).ok())
    }

    pub(super) fn bool(self) -> Option<bool> {
        match self.value() {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }
}
