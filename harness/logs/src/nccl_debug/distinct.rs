//! The calls that differ, each once and under a small number: a log repeats few of them millions of times. Bounded: of
//! more than `MOST` kinds the rest are counted together.

use super::call::{Call, Operation};
use super::hasher::Mixed;

pub(super) const MOST: usize = 1 << 18;
/// The number of all calls that are one kind too many.
pub(super) const OTHER: u32 = u32::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Kind {
    pub operation: Operation,
    pub count: u64,
    pub datatype: u64,
    pub redop: u64,
    pub root: u64,
}

impl Kind {
    pub(super) fn render(&self) -> String {
        let Kind { operation, count, datatype, redop, root } = self;
        format!("{} of count {count}, type {datatype}, op {redop}, root {root}", operation.name())
    }
}

#[derive(Debug, Default)]
pub(super) struct Distinct {
    ids: Mixed<Kind, u32>,
    kinds: Vec<(Kind, u64)>,
    pub beyond: u64,
}

impl Distinct {
    pub(super) fn count(&mut self, call: &Call) -> u32 {
        let Call { operation, count, datatype, redop, root, .. } = *call;
        let kind = Kind { operation, count, datatype, redop, root };
        let id = match self.ids.get(&kind) {
            Some(id) => *id,
            None if self.kinds.len() >= MOST => {
                self.beyond += 1;
                return OTHER;
            }
            None => {
                let id = u32::try_from(self.kinds.len()).unwrap_or(OTHER);
                self.kinds.push((kind, 0));
                self.ids.insert(kind, id);
                id
            }
        };
        if let Some((_, calls)) = self.kinds.get_mut(id as usize) {
            *calls += 1;
        }
        id
    }

    pub(super) fn kind(&self, id: u32) -> Option<&Kind> {
        self.kinds.get(id as usize).map(|(kind, _)| kind)
    }

    pub(super) fn all(&self) -> &[(Kind, u64)] {
        &self.kinds
    }
}
