//! Values that are known to be secret, in all the forms in which an artefact may hold them. Where they come from is
//! described in `secrets.rs`.

use super::body::next_record;
use super::labels::label;
use super::{decoded, dumps, encodings, escapes, wide};
use std::collections::BTreeMap;

#[derive(Debug, Clone)]
pub(crate) struct Known {
    /// By the first byte: the forms, longest first, and what each is called.
    forms: BTreeMap<u8, Vec<(Vec<u8>, String)>>,
    /// The values themselves, which escapes may write in any mix, and what each is called.
    values: Vec<(Vec<u8>, String)>,
    /// By the first byte and the second one, a bit each: where any of them may begin.
    begins: Vec<[u64; 4]>,
    longest: usize,
}

impl Default for Known {
    fn default() -> Known {
        Known { forms: BTreeMap::new(), values: Vec::new(), begins: vec![[0; 4]; 256], longest: 0 }
    }
}

/// Shorter lines of a value may stand anywhere.
const LEAST: usize = 6;
/// Shorter forms stand by accident at the end of one line and the beginning of the next.
const LEAST_PARTED: usize = 8;
/// So much may stand within a form at most that is none of it.
const MOST_BETWEEN: usize = 256;
/// A form is looked for in pieces of one text where the first has so many bytes.
const LEAST_PIECE: usize = 4;
/// What may stand between the first byte of a form and the second, by how it begins; and of a value in escapes.
const PARTS: &[u8] = b"\0\x1b\\\r\n^";
const PARTS_OF_VALUE: &[u8] = b"\"'`=";
/// More than is looked at to see what stands there.
const SLACK: usize = 128;

impl Known {
    pub(crate) fn add(&mut self, name: &str, value: &str) {
        let mut parts = vec![value];
        // What is printed line by line comes so.
        parts.extend(value.lines().filter(|line| line.len() > LEAST && *line != value));
        for part in &parts {
            if part.len() >= LEAST && !self.values.iter().any(|(known, _)| known == part.as_bytes()) {
                self.add_value(name, part.as_bytes());
            }
        }
        for form in parts.into_iter().flat_map(forms) {
            let [first, second, ..] = *form.as_slice() else { continue };
            let forms = self.forms.entry(first).or_default();
            if forms.iter().any(|(known, _)| *known == form) {
                continue;
            }
            self.longest = self.longest.max(form.len());
            forms.push((form, name.to_owned()));
            forms.sort_by(|(a, _), (b, _)| b.len().cmp(&a.len()).then(a.cmp(b)));
            self.may_begin(first, [second].iter().chain(PARTS));
        }
    }

    fn add_value(&mut self, name: &str, value: &[u8]) {
        let [first, second, ..] = *value else { return };
        self.longest = self.longest.max(value.len() * decoded::MOST_A_BYTE);
        let all: Vec<u8> = (0..=u8::MAX).collect();
        for byte in decoded::BEGINS {
            self.may_begin(*byte, all.iter());
        }
        for byte in [first.to_ascii_lowercase(), first.to_ascii_uppercase()] {
            // A blank: what follows a letter in `od -c`, and what a plus sign stands for.
            let seconds = [second.to_ascii_lowercase(), second.to_ascii_uppercase(), b' ', b'+'];
            self.may_begin(byte, seconds.iter().chain(PARTS).chain(PARTS_OF_VALUE).chain(decoded::BEGINS));
        }
        for [first, second] in dumps::begins(first) {
            self.may_begin(first, [second].iter());
        }
        self.values.push((value.to_owned(), name.to_owned()));
        self.values.sort_by(|(a, _), (b, _)| b.len().cmp(&a.len()).then(a.cmp(b)));
    }

    fn may_begin<'a>(&mut self, first: u8, seconds: impl Iterator<Item = &'a u8>) {
        for second in seconds {
            self.begins[usize::from(first)][usize::from(second >> 6)] |= 1 << (second & 63);
        }
    }

    /// The length of the value that begins here, and its name.
    pub(crate) fn at(&self, rest: &[u8]) -> Option<(usize, &str)> {
        let first = *rest.first()?;
        if !self.begins(rest) {
            return None;
        }
        let forms = self.forms.get(&first).into_iter().flatten();
        let mut forms = forms.map(|(form, name)| (length(form, rest), name));
        let (length, name) = forms.find(|(length, _)| length.is_some()).or_else(|| {
            let written = |value| escaped_length(value, rest).or_else(|| dumps::length(value, rest));
            let mut values = self.values.iter().map(|(value, name)| (written(value), name));
            values.find(|(length, _)| length.is_some())
        })?;
        Some((length?, name.as_str()))
    }

    /// Whether any of them begins so.
    pub(crate) fn begins(&self, rest: &[u8]) -> bool {
        let [first, second, ..] = *rest else { return false };
        self.begins[usize::from(first)][usize::from(second >> 6)] >> (second & 63) & 1 == 1
    }

    pub(crate) fn longest(&self) -> usize {
        if self.longest == 0 { 0 } else { self.longest + MOST_BETWEEN + SLACK }
    }
}

/// How far a form goes that begins here, whatever colours stand within it and wherever its lines were broken.
fn length(form: &[u8], rest: &[u8]) -> Option<usize> {
    let mut is_broken = false;
    let whole = unbroken_length(form, rest, false, &mut is_broken);
    // What a launcher puts before a line may begin as the form goes on.
    whole.or_else(|| is_broken.then(|| unbroken_length(form, rest, true, &mut is_broken)).flatten())
}

/// The same; `has_labels` says that labels stand before lines wherever they may. Reports whether a line's end was passed.
fn unbroken_length(form: &[u8], rest: &[u8], has_labels: bool, is_broken: &mut bool) -> Option<usize> {
    let mut at = 0;
    let mut begins_line = false;
    for byte in form {
        while rest.get(at) != Some(byte) {
            let here = rest.get(at..)?;
            let mut more = between(here, begins_line);
            if more == 0 && at >= LEAST_PIECE {
                more = decoded::join(here).max(next_record(here));
            }
            if more == 0 || form.len() < LEAST_PARTED || at + more > form.len() + MOST_BETWEEN {
                return None;
            }
            let is_end = escapes::line_break(here) > 0;
            begins_line |= is_end;
            *is_broken |= is_end;
            at += more;
            at += if is_end && has_labels { label(&rest[at..]) } else { 0 };
        }
        begins_line &= *byte == b' ';
        at += 1;
    }
    Some(at)
}

/// The same of a value that escapes of any kind write, in any case of its letters.
fn escaped_length(value: &[u8], rest: &[u8]) -> Option<usize> {
    let (mut at, mut done) = (0, 0);
    let mut begins_line = false;
    while done < value.len() {
        let here = rest.get(at..)?;
        // A mark that ends one piece of a text may stand for itself, too.
        if let Some((length, bytes)) = decoded::unit(&value[done..], here) {
            begins_line &= here.first() == Some(&b' ');
            at += length;
            done += bytes;
            continue;
        }
        let more = between(here, begins_line).max(if done > 0 { decoded::join(here) } else { 0 });
        if more == 0
            || done == 0
            || value.len() < LEAST_PARTED
            || at + more > done * decoded::MOST_A_BYTE + MOST_BETWEEN
        {
            return None;
        }
        begins_line |= escapes::line_break(here) > 0;
        at += more;
    }
    Some(at)
}

/// The length of what shows nothing: a terminal's escape, a NUL, a line's end, and what a launcher puts before a line.
fn between(rest: &[u8], begins_line: bool) -> usize {
    match rest {
        [0, ..] => 1,
        [0x1b | b'\\' | b'\r' | b'\n', ..] => {
            escapes::length(rest).max(escapes::line_break(rest)).max(wide::nul(rest))
        }
        [b' ' | b'\t' | b':', ..] if begins_line => 1,
        [b'[' | b'(' | b'<' | b'0'..=b'9', ..] if begins_line => label(rest),
        _ => 0,
    }
}

/// A text as it is; as shells, messages and pages write it; each of these within JSON, and within JSON in JSON; and
/// encoded.
fn forms(value: &str) -> Vec<Vec<u8>> {
    let json = |text: &String| {
        let quoted = serde_json::Value::from(text.as_str()).to_string();
        quoted[1..quoted.len() - 1].to_owned()
    };
    let xml = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let mut forms = vec![
        value.to_owned(),
        value.to_uppercase(),
        value.to_lowercase(),
        value.replace('\'', r"'\''"),
        value.escape_debug().to_string(),
        encodings::ascii(&json(&value.to_owned())),
        xml.replace('"', "&quot;"),
        xml.replace('"', "&quot;").replace('\'', "&apos;"),
        xml.replace('"', "&quot;").replace('\'', "&#39;"),
        xml,
    ];
    for _ in 0..2 {
        let more: Vec<String> = forms.iter().map(json).collect();
        forms.extend(more);
        forms.sort();
        forms.dedup();
    }
    forms.extend(encodings::encodings(value));
    forms.sort();
    forms.dedup();
    forms.into_iter().map(String::into_bytes).collect()
}
