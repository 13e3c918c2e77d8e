//! Which pods a `ResourceQuota` counts, by all of its scopes. Pods of the harness end after a time and ask for processors and
//! memory; their priority class is the one that `discover` was asked for, or none.

use base::text::{shorten, show};
use serde_json::Value;

/// Of a name that is printed.
const LONGEST: usize = 100;

/// What scopes say of pods of the harness; of several the last in this order holds, since all of them must match.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Counted {
    Ours,
    /// Why it is not known: it may count them.
    Unclear(String),
    /// Not while pods have none of these priority classes.
    OfPriority(String),
    Others,
}

/// Whether a quota with this `spec` counts pods of the harness, which have this priority class.
pub(super) fn counted(spec: &Value, class: Option<&str>) -> Counted {
    let plain = terms(&spec["scopes"]).map(|scope| match scope {
        Ok(scope) => by_scope(scope.as_str().unwrap_or_default(), "Exists", &Value::Null, class),
        Err(why) => why,
    });
    let selected = terms(&spec["scopeSelector"]["matchExpressions"]).map(|term| match term {
        Ok(term) => {
            let text = |key: &str| term[key].as_str().unwrap_or_default();
            by_scope(text("scopeName"), text("operator"), &term["values"], class)
        }
        Err(why) => why,
    });
    plain.chain(selected).max().unwrap_or(Counted::Ours)
}

fn terms(list: &Value) -> impl Iterator<Item = Result<&Value, Counted>> {
    let unreadable = !list.is_null() && !list.is_array();
    let why = unreadable.then(|| Err(Counted::Unclear("its scopes cannot be read".to_owned())));
    list.as_array().into_iter().flatten().map(Ok).chain(why)
}

fn by_scope(scope: &str, operator: &str, values: &Value, class: Option<&str>) -> Counted {
    if let ("PriorityClass", Some(class)) = (scope, class) {
        return by_priority(operator, values, class);
    }
    match (scope, operator) {
        ("Terminating" | "NotBestEffort", "Exists") => Counted::Ours,
        // The last: pods that are kept near pods of other namespaces, or away from them.
        ("NotTerminating" | "BestEffort" | "CrossNamespacePodAffinity", "Exists") => Counted::Others,
        // A pod without a class is in none of them.
        ("PriorityClass", "NotIn" | "DoesNotExist") => Counted::Ours,
        ("PriorityClass", "Exists") => Counted::OfPriority("any".to_owned()),
        ("PriorityClass", "In") => {
            let names = values.as_array().into_iter().flatten().filter_map(Value::as_str);
            Counted::OfPriority(printable(&names.collect::<Vec<_>>().join(" or ")))
        }
        _ => unknown_scope(scope, operator),
    }
}

/// Of pods that have this class.
fn by_priority(operator: &str, values: &Value, class: &str) -> Counted {
    let is_named = || values.as_array().into_iter().flatten().any(|value| value.as_str() == Some(class));
    match operator {
        "Exists" => Counted::Ours,
        "DoesNotExist" => Counted::Others,
        "In" if is_named() => Counted::Ours,
        "In" => Counted::Others,
        "NotIn" if is_named() => Counted::Others,
        "NotIn" => Counted::Ours,
        _ => unknown_scope("PriorityClass", operator),
    }
}

fn unknown_scope(scope: &str, operator: &str) -> Counted {
    Counted::Unclear(format!("its scope `{}` is not known here", printable(&format!("{scope} {operator}"))))
}

fn printable(text: &str) -> String {
    shorten(&show(text.trim()), LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_quota_counts_pods_that_all_of_its_scopes_match() {
        let selector = |scope: &str, operator: &str, values: &[&str]| {
            json!({ "scopeSelector": { "matchExpressions": [
                { "scopeName": scope, "operator": operator, "values": values },
            ] } })
        };
        let of_priority = |names: &str| Counted::OfPriority(names.to_owned());
        let unclear = |why: &str| Counted::Unclear(why.to_owned());
        for (spec, expected) in [
            (json!({}), Counted::Ours),
            (json!({ "scopes": null, "scopeSelector": { "matchExpressions": [] } }), Counted::Ours),
            (json!({ "scopes": ["Terminating", "NotBestEffort"] }), Counted::Ours),
            (json!({ "scopes": ["Terminating", "BestEffort"] }), Counted::Others),
            (json!({ "scopes": ["NotTerminating"] }), Counted::Others),
            (json!({ "scopes": ["CrossNamespacePodAffinity"] }), Counted::Others),
            (json!({ "scopes": ["PriorityClass"] }), of_priority("any")),
            (selector("BestEffort", "Exists", &[]), Counted::Others),
            (selector("Terminating", "Exists", &[]), Counted::Ours),
            (selector("PriorityClass", "In", &["high", "low"]), of_priority("high or low")),
            (selector("PriorityClass", "Exists", &[]), of_priority("any")),
            (selector("PriorityClass", "NotIn", &["high"]), Counted::Ours),
            (selector("PriorityClass", "DoesNotExist", &[]), Counted::Ours),
            (json!({ "scopes": ["New"] }), unclear("its scope `New Exists` is not known here")),
            (selector("Terminating", "Odd", &[]), unclear("its scope `Terminating Odd` is not known here")),
            (json!({ "scopes": ["New", "BestEffort"] }), Counted::Others),
            (json!({ "scopes": "BestEffort" }), unclear("its scopes cannot be read")),
            (json!({ "scopes": [7] }), unclear("its scope `Exists` is not known here")),
        ] {
            assert_eq!(counted(&spec, None), expected, "{spec}");
        }
        for (spec, expected) in [
            (json!({}), Counted::Ours),
            (json!({ "scopes": ["PriorityClass"] }), Counted::Ours),
            (json!({ "scopes": ["PriorityClass", "BestEffort"] }), Counted::Others),
            (selector("PriorityClass", "In", &["high", "low"]), Counted::Ours),
            (selector("PriorityClass", "In", &["high"]), Counted::Others),
            (selector("PriorityClass", "NotIn", &["low"]), Counted::Others),
            (selector("PriorityClass", "NotIn", &["high"]), Counted::Ours),
            (selector("PriorityClass", "Exists", &[]), Counted::Ours),
            (selector("PriorityClass", "DoesNotExist", &[]), Counted::Others),
            (
                selector("PriorityClass", "Odd", &[]),
                unclear("its scope `PriorityClass Odd` is not known here"),
            ),
        ] {
            assert_eq!(counted(&spec, Some("low")), expected, "{spec} of pods of a class");
        }
        let both = json!({ "scopes": ["NotTerminating"], "scopeSelector": { "matchExpressions": [
            { "scopeName": "PriorityClass", "operator": "In", "values": ["a"] },
        ] } });
        assert_eq!(counted(&both, None), Counted::Others);
        let Counted::Unclear(why) = counted(&json!({ "scopes": ["a\u{1b}[2J"] }), None) else {
            panic!("unknown")
        };
        assert!(!why.contains('\u{1b}'), "{why}");
    }
}
