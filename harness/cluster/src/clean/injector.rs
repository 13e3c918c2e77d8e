//! Leftovers of NVIDIA's older sidecar injector in a cluster: its chart leaves webhooks, certificates, config maps and labels
//! behind, and a webhook without its service refuses or delays pods. Found by the injector's own names; nothing else is
//! looked at or changed.

use crate::reach::pods::Kubectl;
use config::inventory::KubernetesReach;
use serde_json::Value;

/// The label, the namespace and the beginning of the names of what the chart made.
const INJECTOR: &str = "nvidia-devtools-sidecar-injector";
/// The other name that webhooks of it have had; others may use it, too.
const WEBHOOK: &str = "sidecar-injector-webhook";
const LIST_LIMIT: usize = 64 << 20;

/// Something that it left, or its installation itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct InjectorLeftover {
    /// `kubectl`'s words for it, such as `namespace/train`.
    pub object: String,
    /// What it is.
    pub what: &'static str,
    /// The arguments of kubectl that remove it.
    remove: Vec<String>,
}

impl InjectorLeftover {
    /// As a person would remove it.
    pub fn command(&self) -> String {
        format!("kubectl {}", self.remove.join(" "))
    }
}

/// What was found.
#[derive(Debug, Default)]
pub struct InjectorLeftovers {
    /// Its deployments run: it is installed, and what was found belongs to it.
    pub is_installed: bool,
    /// Sorted.
    pub found: Vec<InjectorLeftover>,
}

/// The API server, by the user's own kubectl.
pub struct InjectorSearch {
    kubectl: Kubectl,
}

impl InjectorSearch {
    /// Asks nothing yet.
    pub fn new(reach: &KubernetesReach) -> InjectorSearch {
        InjectorSearch { kubectl: Kubectl { context: reach.context.clone(), namespace: INJECTOR.to_owned() } }
    }

    /// Lists what the injector left in the whole cluster. What cannot be listed is an error: less is no answer.
    pub async fn find(&self) -> Result<InjectorLeftovers, String> {
        let deployments = self.items(&["get", "deployments.apps"]).await?;
        let mut found = Vec::new();
        let mut leave = |kind: &str, name: &str, what, remove: &[&str]| {
            let remove = remove.iter().map(|word| (*word).to_owned()).collect();
            found.push(InjectorLeftover { object: format!("{kind}/{name}"), what, remove });
        };
        for item in self.items(&["get", "mutatingwebhookconfigurations"]).await? {
            let Some(name) = name(&item).filter(|name| is_of_injector(name, &item)) else { continue };
            let kind = "mutatingwebhookconfiguration";
            leave(kind, name, "webhook that every new pod passes", &["delete", kind, name]);
        }
        for item in self.items(&["get", "certificatesigningrequests"]).await? {
            let Some(name) = name(&item).filter(|name| name.starts_with(INJECTOR)) else { continue };
            let kind = "certificatesigningrequest";
            leave(kind, name, "certificate of the webhook", &["delete", kind, name]);
        }
        for item in self.items(&["get", "namespaces"]).await? {
            let Some(name) = name(&item) else { continue };
            if name == INJECTOR {
                leave("namespace", name, "its own namespace", &["delete", "namespace", name]);
            } else if item["metadata"]["labels"].get(INJECTOR).is_some() {
                let without = format!("{INJECTOR}-");
                leave(
                    "namespace",
                    name,
                    "label that asks for a profiler",
                    &["label", "namespace", name, &without],
                );
            }
        }
        for own in [INJECTOR.to_owned(), format!("{INJECTOR}-custom")] {
            let field = format!("--field-selector=metadata.name={own}");
            for item in self.items(&["get", "configmaps", "--all-namespaces", &field]).await? {
                let namespace = item["metadata"]["namespace"].as_str().unwrap_or_default();
                // That one goes with its namespace.
                if name(&item) != Some(own.as_str()) || !is_name(namespace) || namespace == INJECTOR {
                    continue;
                }
                let within = format!("--namespace={namespace}");
                let object = format!("{own} in {namespace}");
                leave(
                    "configmap",
                    &object,
                    "settings of the profiler",
                    &["delete", "configmap", &own, &within],
                );
            }
        }
        found.sort();
        found.dedup();
        Ok(InjectorLeftovers { is_installed: !deployments.is_empty(), found })
    }

    /// Removes one of them; or why that was refused.
    pub async fn remove(&self, leftover: &InjectorLeftover) -> Result<(), String> {
        let mut arguments = leftover.remove.clone();
        if arguments.first().is_some_and(|verb| verb == "delete") {
            arguments.extend(["--ignore-not-found", "--wait=false"].map(str::to_owned));
        }
        let answer =
            self.kubectl.ask(&arguments, b"", LIST_LIMIT).await.map_err(|error| error.to_string())?;
        match answer.succeeded {
            true => Ok(()),
            false => Err(answer.complaint()),
        }
    }

    async fn items(&self, arguments: &[&str]) -> Result<Vec<Value>, String> {
        let asked = format!("`kubectl {}`", arguments.join(" "));
        let arguments = arguments.iter().copied().chain(["--output=json"]).map(str::to_owned);
        let answer = self.kubectl.ask(&arguments.collect::<Vec<_>>(), b"", LIST_LIMIT).await;
        let answer = answer.map_err(|error| error.to_string())?;
        if !answer.succeeded {
            return Err(format!("{asked}: {}", answer.complaint()));
        }
        let mut list: Value =
            serde_json::from_slice(&answer.stdout).map_err(|error| format!("{asked}: no JSON: {error}"))?;
        match list["items"].take() {
            Value::Array(items) => Ok(items),
            _ => Err(format!("{asked}: no list")),
        }
    }
}

/// The name of an object, where it can be one.
fn name(item: &Value) -> Option<&str> {
    item["metadata"]["name"].as_str().filter(|name| is_name(name))
}

fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.:".contains(c);
    !name.is_empty() && name.len() <= 253 && !name.starts_with('-') && name.chars().all(allowed)
}

/// A name that others may have, too, is the injector's where its webhooks call the injector's namespace or service, or
/// look for its label.
fn is_of_injector(name: &str, item: &Value) -> bool {
    if name.starts_with(INJECTOR) {
        return true;
    }
    let webhooks = item["webhooks"].as_array().map_or(&[][..], Vec::as_slice);
    name == WEBHOOK
        && !webhooks.is_empty()
        && webhooks.iter().all(|webhook| webhook.to_string().contains(INJECTOR))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_webhook_of_a_common_name_is_the_injectors_only_where_it_says_so() {
        let calls = |namespace: &str| json!({ "webhooks": [{ "clientConfig": { "service": { "namespace": namespace } } }] });
        assert!(is_of_injector("nvidia-devtools-sidecar-injector-webhook", &json!({})));
        assert!(is_of_injector(WEBHOOK, &calls(INJECTOR)));
        assert!(!is_of_injector(WEBHOOK, &calls("istio-system")));
        assert!(!is_of_injector(WEBHOOK, &json!({ "webhooks": [] })));
        assert!(!is_of_injector("istio-sidecar-injector", &calls(INJECTOR)));
    }

    #[test]
    fn what_is_no_name_of_an_object_becomes_no_argument() {
        for odd in ["", "-A", "--all", "a b", "A", "a/b", "a\u{1b}"] {
            assert!(!is_name(odd), "{odd}");
        }
        assert!(is_name("csr.nvidia-devtools:1"));
    }
}
