//! Values that are known to be secret, in all the forms in which an artefact may hold them. Where they come from is told
//! in `secrets.rs`.

use super::encodings;
use std::collections::BTreeMap;

#[derive(Debug, Clone)]
pub struct Known {
    /// By the first byte: the forms, longest first, and what each is called.
    forms: BTreeMap<u8, Vec<(Vec<u8>, String)>>,
    firsts: [bool; 256],
    longest: usize,
}

impl Default for Known {
    fn default() -> Known {
        Known { forms: BTreeMap::new(), firsts: [false; 256], longest: 0 }
    }
}

/// Shorter lines of a value may stand anywhere.
const LEAST: usize = 6;

impl Known {
    pub fn add(&mut self, name: &str, value: &str) {
        let mut parts = vec![value];
        // What is printed line by line comes so.
        parts.extend(value.lines().filter(|line| line.len() > LEAST && *line != value));
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

    /// The length of the value that begins here, and its name.
    pub fn at(&self, rest: &[u8]) -> Option<(usize, &str)> {
        let first = *rest.first()?;
        if !self.firsts[usize::from(first)] {
            return None;
        }
        let forms = self.forms.get(&first)?;
        let (form, name) = forms.iter().find(|(form, _)| rest.starts_with(form))?;
        Some((form.len(), name))
    }

    /// Whether any of them begins so.
    pub fn begins(&self, byte: u8) -> bool {
        self.firsts[usize::from(byte)]
    }

    pub fn longest(&self) -> usize {
        self.longest
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
        value.replace('\'', r"'\''"),
        value.escape_debug().to_string(),
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
    forms.extend(encodings::of(value));
    forms.into_iter().map(String::into_bytes).collect()
}
