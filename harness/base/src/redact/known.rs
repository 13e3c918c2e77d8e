//! Values that are known to be secret, in all the forms in which an artefact may hold them. Where they come from is
//! described in `secrets.rs`.

use super::body::prefix;
use super::{decoded, encodings, escapes, wide};
use std::collections::BTreeMap;

#[derive(Debug, Clone)]
pub(crate) struct Known {
    /// By the first byte: the forms, longest first, and what each is called.
    forms: BTreeMap<u8, Vec<(Vec<u8>, String)>>,
    /// The values themselves, which escapes may write in any mix, and what each is called.
    values: Vec<(Vec<u8>, String)>,
    firsts: [bool; 256],
    longest: usize,
}

impl Default for Known {
    fn default() -> Known {
        Known { forms: BTreeMap::new(), values: Vec::new(), firsts: [false; 256], longest: 0 }
    }
}

/// Shorter lines of a value may stand anywhere.
const LEAST: usize = 6;
/// Shorter forms stand by accident at the end of one line and the beginning of the next.
const LEAST_PARTED: usize = 8;
/// So much may stand within a form at most that is none of it.
const MOST_BETWEEN: usize = 256;
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
            let Some(first) = form.first().copied() else { continue };
            let forms = self.forms.entry(first).or_default();
            if forms.iter().any(|(known, _)| *known == form) {
                continue;
            }
            self.longest = self.longest.max(form.len());
            self.firsts[usize::from(first)] = true;
            forms.push((form, name.to_owned()));
            forms.sort_by(|(a, _), (b, _)| b.len().cmp(&a.len()).then(a.cmp(b)));
        }
    }

    fn add_value(&mut self, name: &str, value: &[u8]) {
        let Some(first) = value.first() else { return };
        self.longest = self.longest.max(value.len() * decoded::MOST_A_BYTE);
        for byte in
            decoded::BEGINS.iter().copied().chain([first.to_ascii_lowercase(), first.to_ascii_uppercase()])
        {
            self.firsts[usize::from(byte)] = true;
        }
        self.values.push((value.to_owned(), name.to_owned()));
        self.values.sort_by(|(a, _), (b, _)| b.len().cmp(&a.len()).then(a.cmp(b)));
    }

    /// The length of the value that begins here, and its name.
    pub(crate) fn at(&self, rest: &[u8]) -> Option<(usize, &str)> {
        let first = *rest.first()?;
        if !self.firsts[usize::from(first)] {
            return None;
        }
        let forms = self.forms.get(&first).into_iter().flatten();
        let mut forms = forms.map(|(form, name)| (length(form, rest), name));
        let (length, name) = forms.find(|(length, _)| length.is_some()).or_else(|| {
            let mut values = self.values.iter().map(|(value, name)| (escaped_length(value, rest), name));
            values.find(|(length, _)| length.is_some())
        })?;
        Some((length?, name.as_str()))
    }

    /// Whether any of them begins so.
    pub(crate) fn begins(&self, byte: u8) -> bool {
        self.firsts[usize::from(byte)]
    }

    pub(crate) fn longest(&self) -> usize {
        if self.longest == 0 { 0 } else { self.longest + MOST_BETWEEN + SLACK }
    }
}

/// How far a form goes that begins here, whatever colours stand within it and wherever its lines were broken.
fn length(form: &[u8], rest: &[u8]) -> Option<usize> {
    let mut at = 0;
    let mut begins_line = false;
    for byte in form {
        while rest.get(at) != Some(byte) {
            let more = between(rest.get(at..)?, begins_line);
            if more == 0 || form.len() < LEAST_PARTED || at + more > form.len() + MOST_BETWEEN {
                return None;
            }
            begins_line |= escapes::line_break(&rest[at..]) > 0;
            at += more;
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
        [first @ (b'[' | b'(' | b'<'), ..] if begins_line => prefix(rest, *first),
        [b'0'..=b'9', ..] if begins_line => {
            let digits = rest.iter().take(8).take_while(|byte| byte.is_ascii_digit()).count();
            if rest[digits..].starts_with(b": ") { digits + 2 } else { 0 }
        }
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
