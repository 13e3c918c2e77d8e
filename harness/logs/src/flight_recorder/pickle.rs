//! An unpickler that knows data and nothing else: numbers, texts, lists, tuples and dicts. An opcode that names a class or
//! calls something is refused by name; nothing of a file is executed.

use super::tree::{Tree, Value};
use std::collections::HashMap;

/// Marks that are open at a time.
const DEEPEST: usize = 256;

/// Opcodes that name, make or call what is no data.
const CODE: &[(u8, &str)] = &[
    (b'c', "GLOBAL"),
    (0x93, "STACK_GLOBAL"),
    (b'R', "REDUCE"),
    (b'b', "BUILD"),
    (b'i', "INST"),
    (b'o', "OBJ"),
    (0x81, "NEWOBJ"),
    (0x92, "NEWOBJ_EX"),
    (0x82, "EXT1"),
    (0x83, "EXT2"),
    (0x84, "EXT4"),
    (b'P', "PERSID"),
    (b'Q', "BINPERSID"),
    (0x97, "NEXT_BUFFER"),
    (0x98, "READONLY_BUFFER"),
];

/// Whether a file begins as a pickle of protocol 2 or later does.
pub(super) fn looks_like_it(bytes: &[u8]) -> bool {
    matches!(bytes, [0x80, 2..=5, ..])
}

struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    tree: Tree,
    stack: Vec<u32>,
    /// Heights of the stack.
    marks: Vec<usize>,
    memo: HashMap<u32, u32>,
}

type Step<T> = Result<T, String>;

/// The one value of a pickle.
pub(super) fn read(bytes: &[u8]) -> Result<Tree, String> {
    let tree = Tree::default();
    let mut machine =
        Machine { bytes, at: 0, tree, stack: Vec::new(), marks: Vec::new(), memo: HashMap::new() };
    loop {
        let at = machine.at;
        let opcode = machine.byte()?;
        if opcode == b'.' {
            break;
        }
        machine.step(opcode).map_err(|why| format!("{why} at byte {at}"))?;
    }
    let rest = bytes.len() - machine.at;
    if rest > 0 {
        return Err(format!("{rest} bytes behind the end of the pickle"));
    }
    machine.tree.root = machine.pop()?;
    Ok(machine.tree)
}

impl Machine<'_> {
    fn step(&mut self, opcode: u8) -> Step<()> {
        match opcode {
            0x80 => match self.byte()? {
                0..=5 => Ok(()),
                version => Err(format!("pickle of protocol {version}, known: 0 to 5")),
            },
            // The length of a frame: only a hint.
            0x95 => self.take(8).map(|_| ()),
            b'(' => {
                if self.marks.len() >= DEEPEST {
                    return Err(format!("nested deeper than {DEEPEST}"));
                }
                self.marks.push(self.stack.len());
                Ok(())
            }
            b'0' => self.pop().map(|_| ()),
            b'1' => self.above_mark().map(|_| ()),
            b'2' => {
                let top = self.top()?;
                self.stack.push(top);
                Ok(())
            }
            b'N' => self.push(Value::None),
            0x88 => self.push(Value::Bool(true)),
            0x89 => self.push(Value::Bool(false)),
            b'J' => {
                let int = i64::from(i32::from_le_bytes(self.array()?));
                self.push(Value::Int(int))
            }
            b'K' => {
                let int = i64::from(self.byte()?);
                self.push(Value::Int(int))
            }
            b'M' => {
                let int = i64::from(u16::from_le_bytes(self.array()?));
                self.push(Value::Int(int))
            }
            0x8a => {
                let length = usize::from(self.byte()?);
                self.long(length)
            }
            0x8b => {
                let length = self.length4()?;
                self.long(length)
            }
            b'G' => {
                let float = f64::from_be_bytes(self.array()?);
                self.push(Value::Float(float))
            }
            b'X' | b'T' => {
                let length = self.length4()?;
                self.text(length)
            }
            0x8c | b'U' => {
                let length = usize::from(self.byte()?);
                self.text(length)
            }
            0x8d => {
                let length = self.length8()?;
                self.text(length)
            }
            b'C' => {
                let length = usize::from(self.byte()?);
                self.opaque(length)
            }
            b'B' => {
                let length = self.length4()?;
                self.opaque(length)
            }
            0x8e | 0x96 => {
                let length = self.length8()?;
                self.opaque(length)
            }
            _ => self.container(opcode),
        }
    }

    fn container(&mut self, opcode: u8) -> Step<()> {
        match opcode {
            b']' | b')' => self.push(Value::List(Vec::new())),
            b'}' => self.push(Value::Dict(Vec::new())),
            b'l' | b't' => {
                let items = self.above_mark()?;
                self.push(Value::List(items))
            }
            0x85..=0x87 => {
                let items = self.top_items(usize::from(opcode - 0x84))?;
                self.push(Value::List(items))
            }
            b'd' => {
                let items = self.above_mark()?;
                let pairs = pairs(&items)?;
                self.push(Value::Dict(pairs))
            }
            b'a' => {
                let items = self.top_items(1)?;
                self.append(items)
            }
            b'e' => {
                let items = self.above_mark()?;
                self.append(items)
            }
            b's' => {
                let items = self.top_items(2)?;
                self.set(&items)
            }
            b'u' => {
                let items = self.above_mark()?;
                self.set(&items)
            }
            b'q' => {
                let key = u32::from(self.byte()?);
                self.put(key)
            }
            b'r' => {
                let key = u32::from_le_bytes(self.array()?);
                self.put(key)
            }
            0x94 => {
                let key = u32::try_from(self.memo.len()).map_err(|_| "too many values")?;
                self.put(key)
            }
            b'h' => {
                let key = u32::from(self.byte()?);
                self.get(key)
            }
            b'j' => {
                let key = u32::from_le_bytes(self.array()?);
                self.get(key)
            }
            _ => Err(match CODE.iter().find(|(code, _)| *code == opcode) {
                Some((_, name)) => format!("refused: {name}{} would run code", self.argument(opcode)),
                None => format!("opcode {opcode:#04x}, which no dump has"),
            }),
        }
    }

    /// What a `GLOBAL` asks for.
    fn argument(&self, opcode: u8) -> String {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let lines: Vec<&[u8]> = rest.split(|byte| *byte == b'\n').take(2).collect();
        match lines.as_slice() {
            [module, name] if opcode == b'c' && module.len() + name.len() < 80 => {
                format!(" `{}.{}`", String::from_utf8_lossy(module), String::from_utf8_lossy(name))
            }
            _ => String::new(),
        }
    }

    fn take(&mut self, length: usize) -> Step<&[u8]> {
        let end = self.at.checked_add(length).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or("truncated: the pickle ends early")?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn byte(&mut self) -> Step<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn array<const N: usize>(&mut self) -> Step<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn length4(&mut self) -> Step<usize> {
        self.array().map(|bytes| u32::from_le_bytes(bytes) as usize)
    }

    fn length8(&mut self) -> Step<usize> {
        let length = u64::from_le_bytes(self.array()?);
        usize::try_from(length).map_err(|_| "truncated: the pickle ends early".to_owned())
    }

    fn push(&mut self, value: Value) -> Step<()> {
        let at = self.tree.push(value).ok_or("too many values")?;
        self.stack.push(at);
        Ok(())
    }

    fn long(&mut self, length: usize) -> Step<()> {
        let bytes = self.take(length)?;
        let value = match bytes.len() {
            0 => Value::Int(0),
            1..=8 => {
                let negative = bytes.last().is_some_and(|byte| *byte >= 0x80);
                let mut all = [if negative { 0xff } else { 0 }; 8];
                all[..bytes.len()].copy_from_slice(bytes);
                Value::Int(i64::from_le_bytes(all))
            }
            _ => Value::Opaque,
        };
        self.push(value)
    }

    fn text(&mut self, length: usize) -> Step<()> {
        let text = String::from_utf8_lossy(self.take(length)?).as_ref().into();
        self.push(Value::Text(text))
    }

    fn opaque(&mut self, length: usize) -> Step<()> {
        self.take(length)?;
        self.push(Value::Opaque)
    }

    /// The lowest height that an opcode may take from.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn top(&self) -> Step<u32> {
        let top = self.stack.last().filter(|_| self.stack.len() > self.floor());
        top.copied().ok_or_else(|| "broken: a value is missing".to_owned())
    }

    fn pop(&mut self) -> Step<u32> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    fn top_items(&mut self, count: usize) -> Step<Vec<u32>> {
        let from = self.stack.len().checked_sub(count).filter(|from| *from >= self.floor());
        Ok(self.stack.split_off(from.ok_or("broken: a value is missing")?))
    }

    fn above_mark(&mut self) -> Step<Vec<u32>> {
        let mark = self.marks.pop().ok_or("broken: a mark is missing")?;
        Ok(self.stack.split_off(mark))
    }

    fn append(&mut self, more: Vec<u32>) -> Step<()> {
        let into = self.top()? as usize;
        match self.tree.values.get_mut(into) {
            Some(Value::List(items)) => {
                items.extend(more);
                Ok(())
            }
            _ => Err("broken: no list to append to".to_owned()),
        }
    }

    fn set(&mut self, items: &[u32]) -> Step<()> {
        let more = pairs(items)?;
        let into = self.top()? as usize;
        match self.tree.values.get_mut(into) {
            Some(Value::Dict(items)) => {
                items.extend(more);
                Ok(())
            }
            _ => Err("broken: no dict to fill".to_owned()),
        }
    }

    fn put(&mut self, key: u32) -> Step<()> {
        let top = self.top()?;
        self.memo.insert(key, top);
        Ok(())
    }

    fn get(&mut self, key: u32) -> Step<()> {
        let value = self.memo.get(&key).ok_or("broken: a value that was never kept")?;
        self.stack.push(*value);
        Ok(())
    }
}

fn pairs(items: &[u32]) -> Step<Vec<(u32, u32)>> {
    let (pairs, rest) = items.as_chunks::<2>();
    match rest {
        [] => Ok(pairs.iter().map(|[key, value]| (*key, *value)).collect()),
        _ => Err("broken: a key without a value".to_owned()),
    }
}
