//! What an inventory asks of every node before jobs run on it: bounds on facts. Reading them from TOML is the
//! inventory's business.

use super::{FactType, fact, version};
use model::artefact::{ProbedNode, Value};
use std::cmp::Ordering;

/// One bound on one fact, from `[probe]` of an inventory.
#[derive(Debug, Clone, PartialEq)]
pub struct Requirement {
    /// The name of a fact, or `CLOCK_OFFSET_MS`.
    pub fact: String,
    /// Its value is of the fact's kind; milliseconds for the clock's offset.
    pub bound: Bound,
}

/// What a fact's value must be; of names, how many there are.
#[derive(Debug, Clone, PartialEq)]
pub enum Bound {
    /// `at_least`, inclusive.
    AtLeast(Value),
    /// `at_most`, inclusive.
    AtMost(Value),
    /// `equals`; of versions, number by number.
    Equals(Value),
    /// Names that must be in the list.
    Holds(Vec<String>),
}

impl Requirement {
    /// How far a clock may be off, either way, in milliseconds.
    pub(crate) const CLOCK_OFFSET_MS: &'static str = "clock_offset_ms";

    /// Why a node does not meet it. An unknown fact does not meet it.
    pub fn unmet(&self, node: &ProbedNode) -> Option<String> {
        let name = &self.fact;
        if name == Self::CLOCK_OFFSET_MS {
            return self.clock_unmet(node);
        }
        let Some(value) = node.facts.get(name) else {
            let why = node.unknown.get(name).map_or("no source on the node", String::as_str);
            return Some(format!("`{name}` must be {}, but is unknown: {why}", self.bound));
        };
        let kind = fact(name)?.kind;
        let is_met = match &self.bound {
            Bound::AtLeast(bound) => compare(kind, value, bound).is_some_and(Ordering::is_ge),
            Bound::AtMost(bound) => compare(kind, value, bound).is_some_and(Ordering::is_le),
            Bound::Equals(bound) => compare(kind, value, bound).is_some_and(Ordering::is_eq),
            Bound::Holds(names) => {
                matches!(value, Value::Names(value) if names.iter().all(|name| value.contains(name)))
            }
        };
        (!is_met).then(|| format!("`{name}` must be {}, but is {value}", self.bound))
    }

    /// Whether the node reports what the bound is about.
    pub fn is_known_of(&self, node: &ProbedNode) -> bool {
        match self.fact == Self::CLOCK_OFFSET_MS {
            true => node.clock_offset.is_some(),
            false => node.facts.contains_key(&self.fact),
        }
    }

    fn clock_unmet(&self, node: &ProbedNode) -> Option<String> {
        let Bound::AtMost(Value::Number(most)) = &self.bound else { return None };
        match &node.clock_offset {
            None => Some(format!("clock offset unknown, limit {most} ms")),
            // A clock that may be off by more is not known to be right.
            Some(offset) if offset.perhaps_off_ms() > *most as f64 => Some(format!(
                "clock is ahead by {} to {} ms, limit {most} ms",
                offset.at_least_ms, offset.at_most_ms
            )),
            Some(_) => None,
        }
    }
}

fn compare(kind: FactType, value: &Value, bound: &Value) -> Option<Ordering> {
    match (kind, value, bound) {
        (FactType::Bytes, Value::Text(_), Value::Text(_)) => Some(Ordering::Equal),
        (FactType::Bytes, Value::Text(_), Value::Number(_)) => Some(Ordering::Greater),
        (FactType::Bytes, Value::Number(_), Value::Text(_)) => Some(Ordering::Less),
        (FactType::Count | FactType::Bytes, Value::Number(value), Value::Number(bound)) => {
            Some(value.cmp(bound))
        }
        (FactType::Names, Value::Names(value), Value::Number(bound)) => Some((value.len() as u64).cmp(bound)),
        (FactType::Version, Value::Text(value), Value::Text(bound)) => Some(version::compare(value, bound)),
        (FactType::Text, Value::Text(value), Value::Text(bound)) => Some(value.cmp(bound)),
        _ => None,
    }
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Bound::AtLeast(bound) => write!(f, "at least {bound}"),
            Bound::AtMost(bound) => write!(f, "at most {bound}"),
            Bound::Equals(bound) => write!(f, "{bound}"),
            Bound::Holds(names) => write!(f, "a list with {}", names.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, value: Value) -> ProbedNode {
        ProbedNode { facts: [(name.to_owned(), value)].into(), ..ProbedNode::default() }
    }

    #[test]
    fn a_bound_holds_by_the_kind_of_its_fact() {
        let text = |text: &str| Value::Text(text.to_owned());
        let names = |names: &[&str]| Value::Names(names.iter().map(|name| (*name).to_owned()).collect());
        for (fact, value, bound, is_met) in [
            ("driver", text("570.133.20"), Bound::AtLeast(text("570.86")), true),
            ("driver", text("550.90"), Bound::AtLeast(text("570.86")), false),
            ("driver", text("550.90"), Bound::Equals(text("550.90.0")), true),
            ("memlock", text("unlimited"), Bound::AtLeast(Value::Number(1 << 34)), true),
            ("memlock", Value::Number(65_536), Bound::AtLeast(Value::Number(1 << 34)), false),
            ("memlock", Value::Number(65_536), Bound::Equals(text("unlimited")), false),
            ("xid", names(&[]), Bound::AtMost(Value::Number(0)), true),
            ("xid", names(&["Xid 79"]), Bound::AtMost(Value::Number(0)), false),
            ("nccl_tests", names(&["a_perf", "b_perf"]), Bound::Holds(vec!["a_perf".into()]), true),
            ("nccl_tests", names(&["b_perf"]), Bound::Holds(vec!["a_perf".into()]), false),
            ("gdrdrv", text("not loaded"), Bound::Equals(text("loaded")), false),
            ("gdrdrv", text("loaded"), Bound::Equals(text("loaded")), true),
        ] {
            let requirement = Requirement { fact: fact.to_owned(), bound };
            let unmet = requirement.unmet(&node(fact, value));
            assert_eq!(unmet.is_none(), is_met, "{requirement:?}: {unmet:?}");
        }
    }

    #[test]
    fn an_unknown_fact_does_not_meet_its_requirement() {
        let mut node = node("gpus", Value::Number(8));
        node.unknown.insert("gdrdrv".into(), "no /sys/module".into());
        let requirement =
            Requirement { fact: "gdrdrv".into(), bound: Bound::Equals(Value::Text("loaded".into())) };
        let why = "`gdrdrv` must be loaded, but is unknown: no /sys/module";
        assert_eq!(requirement.unmet(&node).as_deref(), Some(why));
        let clock = Requirement {
            fact: Requirement::CLOCK_OFFSET_MS.into(),
            bound: Bound::AtMost(Value::Number(50)),
        };
        assert!(clock.unmet(&node).is_some_and(|why| why.contains("unknown")));
    }
}
