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

/// What was found.
#[derive(Debug, Default)]
pub struct InjectorLeftovers {
    /// Its deployments run, or what a webhook calls is there: it is installed, and what was found belongs to it.
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
        InjectorSearch { kubectl: Kubectl { namespace: INJECTOR.to_owned(), ..Kubectl::from_reach(reach) } }
    }

    /// As a person would remove it.
    pub fn command(&self, leftover: &InjectorLeftover) -> String {
        self.kubectl.command(&leftover.remove.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Lists what the injector left in the whole cluster. What cannot be listed is an error: less is no answer.
    pub async fn find(&self) -> Result<InjectorLeftovers, String> {
        let mut is_installed = !self.items(&["get", "deployments.apps"]).await?.is_empty();
        let webhooks = self.items(&["get", "mutatingwebhookconfigurations"]).await?;
        for item in webhooks.iter().filter(|item| name(item).is_some_and(|name| is_of_injector(name, item))) {
            for called in called(item) {
                is_installed |= self.is_there(called).await?;
            }
        }
        let mut found = Vec::new();
        let mut leave = |kind: &str, name: &str, what, remove: &[&str]| {
            let remove = remove.iter().map(|word| (*word).to_owned()).collect();
            found.push(InjectorLeftover { object: format!("{kind}/{name}"), what, remove });
        };
        for item in &webhooks {
            let Some(name) = name(item).filter(|name| is_of_injector(name, item)) else { continue };
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
                match self.others().await {
                    Ok(None) => {
                        leave("namespace", name, "its own namespace", &["delete", "namespace", name]);
                    }
                    // Nothing of others is deleted with it.
                    Ok(Some(_)) | Err(_) => {
                        let within = format!("--namespace={INJECTOR}");
                        let what = "its own namespace, which may hold what is of others";
                        leave("namespace", name, what, &["get", "all,configmaps,secrets", &within]);
                    }
                }
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
        Ok(InjectorLeftovers { is_installed, found })
    }

    /// Removes one of them; or why that was refused.
    pub async fn remove(&self, leftover: &InjectorLeftover) -> Result<(), String> {
        let mut arguments = leftover.remove.clone();
        if leftover.object == format!("namespace/{INJECTOR}") {
            // Asked again: it may have got something since it was listed.
            if let Some(other) = self.others().await? {
                return Err(format!(
                    "it holds {other}, which is not the injector's: delete it yourself, see `{}`",
                    self.kubectl.command(&["get", "all,configmaps,secrets"])
                ));
            }
            arguments = ["delete", "namespace", INJECTOR].map(str::to_owned).to_vec();
        }
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

    /// Whether there is the service that a webhook calls. One that is called by an address may be anywhere.
    async fn is_there(&self, called: Option<(&str, &str)>) -> Result<bool, String> {
        let Some((namespace, service)) = called else { return Ok(true) };
        let (within, field) =
            (format!("--namespace={namespace}"), format!("--field-selector=metadata.name={service}"));
        let found = self.items(&["get", "services", &within, &field]).await?;
        Ok(found.iter().any(|item| {
            name(item) == Some(service) && item["metadata"]["namespace"].as_str() == Some(namespace)
        }))
    }

    /// Something in the injector's namespace that is not its own, if there is: of all kinds that can be listed there.
    async fn others(&self) -> Result<Option<String>, String> {
        let asked = ["api-resources", "--verbs=list", "--namespaced", "--output=name"].map(str::to_owned);
        let answer = self.kubectl.ask(&asked, b"", LIST_LIMIT).await.map_err(|error| error.to_string())?;
        if !answer.succeeded {
            return Err(format!("`kubectl {}`: {}", asked.join(" "), answer.complaint()));
        }
        let text = String::from_utf8_lossy(&answer.stdout);
        let kinds: Vec<&str> = text.split_whitespace().filter(|kind| is_name(kind)).collect();
        if kinds.is_empty() {
            return Err(format!("`kubectl {}`: no kinds", asked.join(" ")));
        }
        let items = self.items(&["get", &kinds.join(",")]).await?;
        Ok(items.iter().find(|item| !is_own(item)).map(|item| {
            let word = |value: &Value| base::text::show(value.as_str().unwrap_or("?"));
            format!("{}/{}", word(&item["kind"]), word(&item["metadata"]["name"]))
        }))
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

/// The services that the webhooks of a configuration call, by namespace and name; none for what is no such service.
fn called(item: &Value) -> Vec<Option<(&str, &str)>> {
    let webhooks = item["webhooks"].as_array().map_or(&[][..], Vec::as_slice);
    webhooks.iter().map(service).collect()
}

fn service(webhook: &Value) -> Option<(&str, &str)> {
    let service = webhook.pointer("/clientConfig/service")?;
    let part = |key: &str| service[key].as_str().filter(|text| is_name(text));
    part("namespace").zip(part("name"))
}

/// Whether an object of the injector's namespace goes with it: the injector's by its name, or what every namespace has.
fn is_own(item: &Value) -> bool {
    let Some(name) = name(item) else { return false };
    let is_of_all = match item["kind"].as_str() {
        Some("Event") => true,
        Some("ConfigMap") => ["kube-root-ca.crt", "openshift-service-ca.crt"].contains(&name),
        Some("ServiceAccount") => name == "default",
        Some("Secret") => name.starts_with("default-token-"),
        _ => false,
    };
    is_of_all || [INJECTOR, WEBHOOK].iter().any(|own| name.strip_prefix(own).is_some_and(is_end_of_name))
}

/// What Kubernetes or the chart puts behind a name.
fn is_end_of_name(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with(['-', '.'])
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

    #[test]
    fn what_a_webhook_calls_is_a_service_or_unknown() {
        let config = |client: Value| json!({ "webhooks": [{ "clientConfig": client }] });
        let known = config(json!({ "service": { "namespace": "tools", "name": "svc" } }));
        assert_eq!(called(&known), [Some(("tools", "svc"))]);
        for odd in [
            json!({ "url": "https://a" }),
            json!({ "service": { "name": "svc" } }),
            json!({ "service": { "namespace": "--all", "name": "svc" } }),
        ] {
            assert_eq!(called(&config(odd)), [None]);
        }
        assert!(called(&json!({})).is_empty());
    }

    #[test]
    fn only_what_is_the_injectors_or_of_every_namespace_goes_with_its_namespace() {
        let object = |kind: &str, name: &str| json!({ "kind": kind, "metadata": { "name": name } });
        for (kind, name) in [
            ("ConfigMap", "kube-root-ca.crt"),
            ("ServiceAccount", "default"),
            ("Event", "x.17"),
            ("Secret", "nvidia-devtools-sidecar-injector-certs"),
            ("Service", "nvidia-devtools-sidecar-injector"),
        ] {
            assert!(is_own(&object(kind, name)), "{kind}/{name}");
        }
        for (kind, name) in [
            ("ConfigMap", "default"),
            ("PersistentVolumeClaim", "results"),
            ("Pod", "nvidia-devtools-sidecar-injectors"),
            ("Secret", ""),
        ] {
            assert!(!is_own(&object(kind, name)), "{kind}/{name}");
        }
    }
}
