//! Warnings of NCCL, each kind once, with its first line. What they mean is in `advice`.

use super::counts::Counts;
use super::tables::Warning;
use super::{advice, shape};
use std::collections::HashMap;

const MOST: usize = 256;
const LONGEST: usize = 400;

#[derive(Debug, Default)]
pub(super) struct Warnings {
    kinds: HashMap<String, usize>,
    all: Vec<Warning>,
    /// Lines by host.
    pub hosts: Counts,
    /// Lines of kinds that are one too many.
    pub beyond: u64,
}

impl Warnings {
    pub(super) fn add(&mut self, host: &str, text: &str, line: u64, file: &str) {
        self.hosts.count(host);
        let shape = shape(text);
        if let Some(at) = self.kinds.get(&shape) {
            if let Some(warning) = self.all.get_mut(*at) {
                warning.lines += 1;
            }
            return;
        }
        if self.all.len() >= MOST {
            self.beyond += 1;
            return;
        }
        self.kinds.insert(shape, self.all.len());
        let host = (!host.is_empty()).then(|| host.chars().take(LONGEST).collect());
        let text: String = text.chars().take(LONGEST).collect();
        let kind = advice::classify(&text);
        self.all.push(Warning { text, kind, host, line, file: file.to_owned(), lines: 1 });
    }

    pub(super) fn rename(&mut self, rename: &impl Fn(&str) -> Option<String>) {
        self.hosts.rename(rename);
        for warning in &mut self.all {
            warning.host = warning.host.as_deref().and_then(rename);
        }
    }

    /// In the order of their first lines.
    pub(super) fn all(self) -> Vec<Warning> {
        self.all
    }

    pub(super) fn as_slice(&self) -> &[Warning] {
        &self.all
    }
}
