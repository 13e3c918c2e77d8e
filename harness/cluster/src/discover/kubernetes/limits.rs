//! Limits of processors and memory that a namespace gives to pods without any, or wants of each: jobs are slow or ended in pods
//! with small ones, which are not used. What an inventory has to ask for is known before the first run.

use super::quantity::milli;
use super::scopes::{Counted, counted};
use crate::reach::pods::Kubectl;
use base::text::{shorten, show};
use serde_json::Value;

/// What a namespace may hold of such objects.
const LIST_LIMIT: usize = 8 << 20;
/// Of a name or a quantity that is printed.
const LONGEST: usize = 63;
const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

/// What all pods of one node can have: the least of the nodes, in thousandths of a processor and of a byte.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Room {
    pub cpu: Option<u128>,
    pub memory: Option<u128>,
}

/// What a pod may ask for, and why it has to.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Wanted {
    /// `cpu` or `memory`, in `[reach]` as in Kubernetes.
    pub key: &'static str,
    /// As an inventory writes it; nothing where no value can work.
    pub value: Option<String>,
    /// Which object wants it.
    pub why: String,
}

/// The objects of a namespace that limit its pods, as `kubectl get --output=json` prints them.
#[derive(Debug, Default)]
pub(super) struct Limits {
    ranges: Vec<Value>,
    quotas: Vec<Value>,
    /// The priority class of pods of the harness.
    class: Option<String>,
}

/// Beside them what could not be listed, and the next step.
pub(super) async fn list(kubectl: &Kubectl, class: Option<&str>) -> (Limits, Vec<String>) {
    let (mut notes, mut all) = (Vec::new(), [Vec::new(), Vec::new()]);
    for (kind, listed) in ["limitranges", "resourcequotas"].into_iter().zip(&mut all) {
        match items(kubectl, kind).await {
            Ok(items) => *listed = items,
            Err(why) => notes.push(why),
        }
    }
    let [ranges, quotas] = all;
    (Limits { ranges, quotas, class: class.map(str::to_owned) }, notes)
}

async fn items(kubectl: &Kubectl, kind: &str) -> Result<Vec<Value>, String> {
    let words = ["get", kind, "--output=json"].map(str::to_owned);
    let unknown = |why: String| format!("limits of pods are unknown: `kubectl get {kind}`: {why}");
    let answer = kubectl.ask(&words, b"", LIST_LIMIT).await.map_err(|error| unknown(error.to_string()))?;
    if !answer.succeeded {
        let why = answer.complaint();
        let next = match why.contains("(Forbidden)") {
            true => format!("; it needs `list` of {kind}: `harness inventory role --nodes` prints it"),
            false => String::new(),
        };
        return Err(unknown(why + &next));
    }
    let list: Value =
        serde_json::from_slice(&answer.stdout).map_err(|error| unknown(format!("no JSON: {error}")))?;
    let items = list["items"].as_array().ok_or_else(|| unknown("no list".to_owned()))?;
    Ok(items.clone())
}

impl Limits {
    /// What pods on so many nodes have to ask for.
    pub(super) fn wanted(&self, nodes: usize, room: Room) -> Vec<Wanted> {
        let of = |key, room| self.want(key, nodes.max(1), room);
        [of("cpu", room.cpu), of("memory", room.memory)].into_iter().flatten().collect()
    }

    /// Which quotas of processors or memory may count pods otherwise than was taken here.
    pub(super) fn notes(&self) -> Vec<String> {
        let limits = |quota: &Value, key| {
            resources(key).iter().any(|resource| !quota["spec"]["hard"][resource].is_null())
        };
        let quotas = self.quotas.iter().filter(|quota| limits(quota, "cpu") || limits(quota, "memory"));
        let note = |quota: &Value| {
            let name = named("ResourceQuota", quota);
            match counted(&quota["spec"], self.class.as_deref()) {
                Counted::Ours | Counted::Others => None,
                Counted::Unclear(why) => {
                    Some(format!("{name} is counted, though it may be one of other pods: {why}"))
                }
                Counted::OfPriority(names) => Some(format!(
                    "{name} is not counted: it is for the priority class {names}; `--priority-class NAME` counts it \
                     and sets `cpu` and `memory` by it"
                )),
            }
        };
        quotas.filter_map(note).collect()
    }

    /// One that may count pods of the harness does: to ask for limits costs less than a run that is refused.
    fn counts_ours(&self, quota: &Value) -> bool {
        matches!(counted(&quota["spec"], self.class.as_deref()), Counted::Ours | Counted::Unclear(_))
    }

    fn want(&self, key: &'static str, nodes: usize, room: Option<u128>) -> Option<Wanted> {
        let mut found = Found::default();
        for range in &self.ranges {
            let name = named("LimitRange", range);
            for limit in range["spec"]["limits"].as_array().into_iter().flatten() {
                found.add_range(&name, limit, key);
            }
        }
        for quota in self.quotas.iter().filter(|quota| self.counts_ours(quota)) {
            found.add_quota(&named("ResourceQuota", quota), quota, key, nodes);
        }
        let why = found.why.first()?.clone();
        // Daemons of the node have requests, too.
        let share = room.map(|room| whole_of(key, room / 10 * 9, true));
        let most = found.most.iter().map(|most| whole_of(key, *most, false)).chain(share).min();
        let least = if key == "cpu" { 1 } else { GIB };
        let value = most.filter(|most| *most >= least && found.least <= scaled(*most));
        Some(Wanted { key, value: value.map(|value| written(key, value)), why })
    }
}

/// What the objects say of one key.
#[derive(Default)]
struct Found {
    /// Why pods have to ask for it.
    why: Vec<String>,
    /// Upper bounds of one pod, in thousandths.
    most: Vec<u128>,
    /// The highest lower bound.
    least: u128,
}

impl Found {
    fn add_range(&mut self, name: &str, limit: &Value, key: &str) {
        let quantity = |bound: &str| text(&limit[bound][key]).and_then(|text| Some((milli(&text)?, text)));
        let (most, least) = (quantity("max"), quantity("min"));
        let is_container = limit["type"] == "Container";
        if !is_container && limit["type"] != "Pod" {
            return;
        }
        self.most.extend(most.iter().map(|(most, _)| *most));
        self.least = self.least.max(least.as_ref().map_or(0, |(least, _)| *least));
        // The server takes a container's maximum for its default.
        let given = quantity("default").or(most.clone()).filter(|_| is_container);
        if let Some((_, given)) = given {
            self.why.push(format!("{name} gives a pod that asks for none {key} {given}"));
        } else if let Some((_, most)) = most {
            self.why.push(format!("{name} takes no pod without a limit of {key}, at most {most}"));
        } else if !limit["maxLimitRequestRatio"][key].is_null() {
            self.why
                .push(format!("{name} takes no pod without a limit of {key}, by its maxLimitRequestRatio"));
        } else if let Some((_, least)) = least.filter(|(least, _)| *least > asked(key)) {
            self.why.push(format!("{name} wants at least {key} {least}"));
        }
    }

    /// What is in use already, and pods of the harness beside it.
    fn add_quota(&mut self, name: &str, quota: &Value, key: &str, nodes: usize) {
        let hard = &quota["spec"]["hard"];
        for resource in resources(key) {
            let Some((all, written)) = text(&hard[&resource]).and_then(|text| Some((milli(&text)?, text)))
            else {
                continue;
            };
            let used = text(&quota["status"]["used"][&resource]).and_then(|used| milli(&used)).unwrap_or(0);
            self.most.push(all.saturating_sub(used) / nodes as u128);
            if resource.starts_with("limits.") {
                self.why
                    .push(format!("{name} takes no pod without a limit of {key}, {written} for all of them"));
            }
        }
    }
}

/// What a pod asks for where the inventory says nothing, in thousandths.
fn asked(key: &str) -> u128 {
    if key == "cpu" { 1000 } else { scaled(GIB) }
}

fn scaled(whole: u64) -> u128 {
    u128::from(whole) * 1000
}

/// What a quota limits of one key.
fn resources(key: &str) -> [String; 3] {
    [format!("limits.{key}"), format!("requests.{key}"), key.to_owned()]
}

/// Rounded down to what an inventory can name; a share of a node to whole GiB.
fn whole_of(key: &str, milli: u128, is_share: bool) -> u64 {
    let whole = u64::try_from(milli / 1000).unwrap_or(u64::MAX);
    match (key, is_share) {
        ("cpu", _) => whole.min(4096),
        (_, true) => whole / GIB * GIB,
        (_, false) => whole / MIB * MIB,
    }
}

fn written(key: &str, value: u64) -> String {
    match key {
        "cpu" => value.to_string(),
        _ if value.is_multiple_of(GIB) => format!("\"{}GiB\"", value / GIB),
        _ => format!("\"{}MiB\"", value / MIB),
    }
}

fn named(kind: &str, object: &Value) -> String {
    format!("{kind} {}", text(&object["metadata"]["name"]).unwrap_or_else(|| "?".to_owned()))
}

/// A client may have written a number.
fn text(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    Some(shorten(&show(&text), LONGEST))
}

impl Wanted {
    /// For a person.
    pub(super) fn note(&self) -> String {
        match &self.value {
            Some(value) => format!("pods ask for {} = {value}: {}", self.key, self.why),
            None => format!(
                "pods need `{}` in [reach], and no value is known that is large enough: {}",
                self.key, self.why
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Of a p5: 192 processors and 2 TiB, as EKS offers them to pods.
    fn room() -> Room {
        Room { cpu: milli("191450m"), memory: milli("2061359464Ki") }
    }

    fn range(limits: Value) -> Limits {
        let range = json!({ "metadata": { "name": "small" }, "spec": { "limits": limits } });
        Limits { ranges: vec![range], ..Limits::default() }
    }

    fn quota(spec: &Value, used: &Value) -> Limits {
        let quota = json!({ "metadata": { "name": "team" }, "spec": spec, "status": { "used": used } });
        Limits { quotas: vec![quota], ..Limits::default() }
    }

    fn notes(limits: &Limits) -> Vec<String> {
        limits.wanted(2, room()).iter().map(Wanted::note).collect()
    }

    #[test]
    fn a_namespace_without_limits_wants_nothing() {
        assert_eq!(notes(&Limits::default()), [""; 0]);
        let of_claims =
            json!([{ "type": "PersistentVolumeClaim", "max": { "storage": "1Gi", "memory": "1Gi" } }]);
        assert_eq!(notes(&range(of_claims)), [""; 0]);
        let requests = json!([{ "type": "Container", "defaultRequest": { "cpu": "100m" } }]);
        assert_eq!(notes(&range(requests)), [""; 0], "pods of the harness ask for some");
        let best_effort = json!({ "hard": { "limits.cpu": "4" }, "scopes": ["BestEffort"] });
        assert_eq!(notes(&quota(&best_effort, &json!({}))), [""; 0]);
    }

    #[test]
    fn a_default_is_replaced_by_most_of_what_nodes_offer() {
        let limits = json!([{ "type": "Container", "default": { "cpu": "500m", "memory": "512Mi" } }]);
        assert_eq!(
            notes(&range(limits)),
            [
                "pods ask for cpu = 172: LimitRange small gives a pod that asks for none cpu 500m",
                "pods ask for memory = \"1769GiB\": LimitRange small gives a pod that asks for none memory 512Mi",
            ]
        );
    }

    #[test]
    fn a_maximum_bounds_what_is_asked_for_and_one_that_is_too_small_is_said() {
        let limits = json!([
            { "type": "Container", "default": { "memory": "512Mi" }, "max": { "memory": "1000Gi", "cpu": "64" } },
            { "type": "Pod", "max": { "memory": "1536Mi" } },
        ]);
        assert_eq!(
            notes(&range(limits)),
            [
                "pods ask for cpu = 64: LimitRange small gives a pod that asks for none cpu 64",
                "pods ask for memory = \"1536MiB\": LimitRange small gives a pod that asks for none memory 512Mi",
            ]
        );
        let of_pods = json!([{ "type": "Pod", "max": { "cpu": "96" } }]);
        assert_eq!(
            notes(&range(of_pods)),
            ["pods ask for cpu = 96: LimitRange small takes no pod without a limit of cpu, at most 96"]
        );
        let tiny = range(json!([{ "type": "Container", "max": { "memory": "512Mi" } }]));
        assert_eq!(tiny.wanted(2, room())[0].value, None);
        let why = "pods need `memory` in [reach], and no value is known that is large enough: LimitRange small gives ";
        assert!(notes(&tiny)[0].starts_with(why), "{:?}", notes(&tiny));
        let ratio = range(json!([{ "type": "Pod", "maxLimitRequestRatio": { "cpu": "2" } }]));
        let why = "pods ask for cpu = 172: LimitRange small takes no pod without a limit of cpu, by its maxLimitRequestRatio";
        assert_eq!(notes(&ratio), [why]);
        let least = range(json!([{ "type": "Container", "min": { "cpu": "4" } }]));
        assert_eq!(notes(&least), ["pods ask for cpu = 172: LimitRange small wants at least cpu 4"]);
    }

    #[test]
    fn a_quota_that_counts_limits_is_parted_among_the_nodes() {
        let spec = json!({ "hard": { "limits.memory": "1000Gi", "requests.cpu": "100" } });
        let found = quota(&spec, &json!({ "limits.memory": "200Gi" }));
        assert_eq!(
            notes(&found),
            [
                "pods ask for memory = \"400GiB\": ResourceQuota team takes no pod without a limit of memory, 1000Gi for all \
              of them"
            ]
        );
        let spent = quota(&spec, &json!({ "limits.memory": "1000Gi" }));
        assert_eq!(spent.wanted(2, room())[0].value, None);
    }

    #[test]
    fn a_quota_of_other_pods_is_not_counted_and_an_unclear_one_is_with_a_note() {
        let hard = json!({ "limits.cpu": "40" });
        let by = |scope: &str, operator: &str, values: &[&str]| {
            let term = json!({ "scopeName": scope, "operator": operator, "values": values });
            quota(&json!({ "hard": hard, "scopeSelector": { "matchExpressions": [term] } }), &json!({}))
        };
        let other = by("BestEffort", "Exists", &[]);
        assert_eq!((notes(&other), other.notes()), (vec![], vec![]));
        let ours = by("Terminating", "Exists", &[]);
        assert_eq!((notes(&ours).len(), ours.notes()), (1, vec![]));
        let high = by("PriorityClass", "In", &["high"]);
        let why = "ResourceQuota team is not counted: it is for the priority class high; `--priority-class NAME` counts it and \
                   sets `cpu` and `memory` by it";
        assert_eq!((notes(&high), high.notes()), (vec![], vec![why.to_owned()]));
        let high = Limits { class: Some("high".to_owned()), ..high };
        assert_eq!((notes(&high).len(), high.notes()), (1, vec![]), "pods of that class are counted");
        let low = Limits { class: Some("low".to_owned()), ..high };
        assert_eq!((notes(&low), low.notes()), (vec![], vec![]), "pods of another class are not");
        let new = by("New", "Exists", &[]);
        let why = "ResourceQuota team is counted, though it may be one of other pods: its scope `New Exists` is not known here";
        assert_eq!((notes(&new).len(), new.notes()), (1, vec![why.to_owned()]));
        let of_pods = json!({ "hard": { "pods": "4" }, "scopes": ["New"] });
        assert_eq!(quota(&of_pods, &json!({})).notes(), [""; 0], "of neither");
    }

    #[test]
    fn what_is_no_quantity_and_no_text_is_passed_over_or_shown_safely() {
        let odd = json!([{ "type": "Container", "default": { "cpu": "many", "memory": ["8Gi"] } }, 7]);
        assert_eq!(notes(&range(odd)), [""; 0]);
        let named = json!({ "metadata": { "name": "a\u{1b}[2J" }, "spec": { "limits": [
            { "type": "Container", "default": { "cpu": 2 } },
        ] } });
        let limits = Limits { ranges: vec![named], ..Limits::default() };
        let note = &notes(&limits)[0];
        assert!(note.contains(r"LimitRange a\x1b[2J gives a pod that asks for none cpu 2"), "{note}");
        let unknown = limits.wanted(2, Room::default());
        assert_eq!(unknown[0].value, None, "nothing is known that would be enough");
    }
}
