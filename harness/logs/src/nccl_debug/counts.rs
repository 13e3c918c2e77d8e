//! Counts of distinct texts, up to a limit: a log may say anything, and memory is bounded.

use super::tables::Counted;
use std::collections::HashMap;

const MOST: usize = 256;
/// Of longer texts the rest is left out.
const LONGEST: usize = 300;

#[derive(Debug, Default)]
pub(super) struct Counts {
    counts: HashMap<String, u64>,
    /// Lines of texts that are one too many.
    pub beyond: u64,
}

impl Counts {
    pub(super) fn count(&mut self, text: &str) {
        let text = match text.char_indices().nth(LONGEST) {
            Some((end, _)) => text.get(..end).unwrap_or(text),
            None => text,
        };
        if let Some(lines) = self.counts.get_mut(text) {
            *lines += 1;
        } else if self.counts.len() < MOST {
            self.counts.insert(text.to_owned(), 1);
        } else {
            self.beyond += 1;
        }
    }

    /// Texts that become the same are counted together, and those that become nothing under no text.
    pub(super) fn rename(&mut self, rename: &impl Fn(&str) -> Option<String>) {
        for (text, lines) in std::mem::take(&mut self.counts) {
            *self.counts.entry(rename(&text).unwrap_or_default()).or_default() += lines;
        }
    }

    /// The most frequent first.
    pub(super) fn all(&self) -> Vec<Counted> {
        let counted = |(text, lines): (&String, &u64)| Counted { text: text.clone(), lines: *lines };
        let mut all: Vec<Counted> = self.counts.iter().map(counted).collect();
        all.sort_by(|a, b| (b.lines, &a.text).cmp(&(a.lines, &b.text)));
        all
    }
}
