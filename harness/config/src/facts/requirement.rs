//! What an inventory asks of every node before jobs run on it: bounds on facts. Reading them from TOML is the
//! inventory's business.

use super::{Kind, fact, version};
use model::artefact::{ProbedNode, Value};
use std::cmp::Ordering;

#[derive(Debug, Clone, PartialEq)]
pub struct Requirement {
    /// The name of a fact, or `CLOCK_OFFSET_MS`.
    pub fact: String,
    pub bound: Bound,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Bound {
    AtLeast(Value),
    AtMost(Value),
    Equals(Value),
    /// Names that must be among those told.
    Holds(Vec<String>),
}

impl Requirement {
    /// How far a clock may be off, either way, in milliseconds.
    pub const CLOCK_OFFSET_MS: &'static str = "clock_offset_ms";

    /// Why a node does not meet it. What is not told is not met.
    pub fn unmet(&self, node: &ProbedNode) -> Option<String> {
        let name = &self.fact;
        if name == Self::CLOCK_OFFSET_MS {
            return self.clock_unmet(node);
        }
        let Some(told) = node.facts.get(name) else {
            let why = node.not_told.get(name).map_or("nothing on the node told it", String::as_str);
            return Some(format!("`{name}` must be {}, and is not told: {why}", self.bound));
        };
        let kind = fact(name)?.kind;
        let is_met = match &self.bound {
            Bound::AtLeast(bound) => compare(kind, told, bound).is_some_and(Ordering::is_ge),
            Bound::AtMost(bound) => compare(kind, told, bound).is_some_and(Ordering::is_le),
            Bound::Equals(bound) => compare(kind, told, bound).is_some_and(Ordering::is_eq),
            Bound::Holds(names) => {
                matches!(told, Value::Names(told) if names.iter().all(|name| told.contains(name)))
            }
        };
        (!is_met).then(|| format!("`{name}` must be {}, told: {told}", self.bound))
    }

    fn clock_unmet(&self, node: &ProbedNode) -> Option<String> {
        let Bound::AtMost(Value::Number(most)) = &self.bound else { return None };
        match &node.clock_offset {
            None => Some(format!("its clock may be off by {most} ms, and its offset is not known")),
            // By less than was measured it cannot be told to be right.
            Some(offset) if offset.perhaps_off_ms() > *most as f64 => Some(format!(
                "its clock may be off by {most} ms, and is ahead by {} to {} ms",
                offset.at_least_ms, offset.at_most_ms
            )),
            Some(_) => None,
        }
    }
}

fn compare(kind: Kind, told: &Value, bound: &Value) -> Option<Ordering> {
    match (kind, told, bound) {
        (Kind::Bytes, Value::Text(_), Value::Text(_)) => Some(Ordering::Equal),
        (Kind::Bytes, Value::Text(_), Value::Number(_)) => Some(Ordering::Greater),
        (Kind::Bytes, Value::Number(_), Value::Text(_)) => Some(Ordering::Less),
        (Kind::Count | Kind::Bytes, Value::Number(told), Value::Number(bound)) => Some(told.cmp(bound)),
        (Kind::Names, Value::Names(told), Value::Number(bound)) => Some((told.len() as u64).cmp(bound)),
        (Kind::Version, Value::Text(told), Value::Text(bound)) => Some(version::compare(told, bound)),
        (Kind::Text, Value::Text(told), Value::Text(bound)) => Some(told.cmp(bound)),
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
        for (fact, told, bound, is_met) in [
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
            let unmet = requirement.unmet(&node(fact, told));
            assert_eq!(unmet.is_none(), is_met, "{requirement:?}: {unmet:?}");
        }
    }

    #[test]
    fn what_is_not_told_is_not_met() {
        let mut node = node("gpus", Value::Number(8));
        node.not_told.insert("gdrdrv".into(), "no /sys/module".into());
        let requirement =
            Requirement { fact: "gdrdrv".into(), bound: Bound::Equals(Value::Text("loaded".into())) };
        let why = "`gdrdrv` must be loaded, and is not told: no /sys/module";
        assert_eq!(requirement.unmet(&node).as_deref(), Some(why));
        let clock = Requirement {
            fact: Requirement::CLOCK_OFFSET_MS.into(),
            bound: Bound::AtMost(Value::Number(50)),
        };
        assert!(clock.unmet(&node).is_some_and(|why| why.contains("not known")));
    }
}
