//! Writes values as libtorch pickles them: protocol 2, without classes; a text that was written before is named by its number.
//! It shares no code with the reader.

use std::collections::BTreeMap;

/// What stands in a dump.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    None,
    Bool(bool),
    Int(i64),
    Text(String),
    List(Vec<Value>),
    Pair(Box<(Value, Value)>),
    Dict(Vec<(&'static str, Value)>),
    /// By keys that are no fixed names.
    Map(Vec<(Value, Value)>),
}

impl Value {
    pub(super) fn text(text: impl Into<String>) -> Value {
        Value::Text(text.into())
    }

    pub(super) fn pair(first: Value, second: Value) -> Value {
        Value::Pair(Box::new((first, second)))
    }

    pub(super) fn int(number: u64) -> Value {
        Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// The bytes of a whole file.
pub(super) fn bytes(value: &Value) -> Vec<u8> {
    let mut writer = Writer { bytes: vec![0x80, 2], known: BTreeMap::new() };
    writer.value(value);
    writer.bytes.push(b'.');
    writer.bytes
}

struct Writer {
    bytes: Vec<u8>,
    known: BTreeMap<String, u32>,
}

impl Writer {
    fn value(&mut self, value: &Value) {
        match value {
            Value::None => self.bytes.push(b'N'),
            Value::Bool(value) => self.bytes.push(if *value { 0x88 } else { 0x89 }),
            Value::Int(number) => self.int(*number),
            Value::Text(text) => self.text(text),
            Value::List(items) => {
                self.bytes.extend(*b"](");
                items.iter().for_each(|item| self.value(item));
                self.bytes.push(b'e');
            }
            Value::Pair(pair) => {
                self.value(&pair.0);
                self.value(&pair.1);
                self.bytes.push(0x86);
            }
            Value::Dict(items) => {
                self.bytes.extend(*b"}(");
                for (key, value) in items {
                    self.text(key);
                    self.value(value);
                }
                self.bytes.push(b'u');
            }
            Value::Map(items) => {
                self.bytes.extend(*b"}(");
                for (key, value) in items {
                    self.value(key);
                    self.value(value);
                }
                self.bytes.push(b'u');
            }
        }
    }

    fn int(&mut self, number: i64) {
        if let Ok(small) = u8::try_from(number) {
            self.bytes.extend([b'K', small]);
        } else if let Ok(small) = u16::try_from(number) {
            self.bytes.push(b'M');
            self.bytes.extend(small.to_le_bytes());
        } else if let Ok(int) = i32::try_from(number) {
            self.bytes.push(b'J');
            self.bytes.extend(int.to_le_bytes());
        } else {
            self.bytes.extend([0x8a, 8]);
            self.bytes.extend(number.to_le_bytes());
        }
    }

    fn text(&mut self, text: &str) {
        if let Some(number) = self.known.get(text) {
            match u8::try_from(*number) {
                Ok(small) => self.bytes.extend([b'h', small]),
                Err(_) => {
                    self.bytes.push(b'j');
                    self.bytes.extend(number.to_le_bytes());
                }
            }
            return;
        }
        let number = u32::try_from(self.known.len()).unwrap_or(u32::MAX);
        self.known.insert(text.to_owned(), number);
        self.bytes.push(b'X');
        self.bytes.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
        self.bytes.extend(text.as_bytes());
        match u8::try_from(number) {
            Ok(small) => self.bytes.extend([b'q', small]),
            Err(_) => {
                self.bytes.push(b'r');
                self.bytes.extend(number.to_le_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `pickletools` disassembles the dumps of real ranks.
    #[test]
    fn values_are_written_by_the_instructions_of_protocol_2() {
        let value = Value::Dict(vec![
            ("a", Value::List(vec![Value::Int(5), Value::Int(300), Value::Int(-1), Value::Int(1 << 40)])),
            ("b", Value::pair(Value::text("a"), Value::None)),
            ("c", Value::Bool(true)),
        ]);
        let mut expected =
            b"\x80\x02}(X\x01\0\0\0aq\0](K\x05M\x2c\x01J\xff\xff\xff\xff\x8a\x08\0\0\0\0\0\x01\0\0e".to_vec();
        expected.extend(b"X\x01\0\0\0bq\x01h\0N\x86X\x01\0\0\0cq\x02\x88u.");
        assert_eq!(bytes(&value), expected);
    }
}
