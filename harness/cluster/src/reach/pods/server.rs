//! The cluster that kubectl's config leads to: read from the config alone, without a request and without a permission. One
//! reading gives the context and its server, so that no change of the config comes between the two; all later calls name
//! that context.

use super::kubectl::Kubectl;
use crate::reach::ReachError;
use config::inventory::KubernetesReach;
use model::artefact::{Format, RunCluster, kubectl_command, plain_server, server_of_pod};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The context, and the server and the plugin for credentials on lines of their own. The config also holds tokens, which are
/// not asked for.
const TEMPLATE: &str = "--output=jsonpath={.current-context}{range .clusters[*]}{\"\\n\"}{.cluster.server}{end}\
                        {range .users[*]}{\"\\nexec \"}{.user.exec.command}{end}";
const CONFIG_LIMIT: usize = 64 << 10;
/// How long that may take: some builds of kubectl ask the server for its version first, and a plugin for credentials.
const CONFIG_LIMIT_S: u64 = 20;
const LONGEST_CONTEXT: usize = 256;
/// Those of the API server, for a pod that has a service account.
const OWN_CERTIFICATES: &str = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";
const CERTIFICATES_LIMIT: u64 = 1 << 20;
const UNKNOWN: &str = "the cluster that kubectl leads to is unknown";
const ELSEWHERE: &str = "kubectl leads elsewhere by now";
const OTHER: &str = "kubectl leads to another cluster";

/// Where the requests of this process go, by the context that was asked for: as it was at the first of them.
static TARGETS: Mutex<BTreeMap<Option<String>, Target>> = Mutex::new(BTreeMap::new());

/// The context of every call, and the server that it led to at the first one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// As the config spells it; none in a pod that has a service account instead of a config.
    pub(super) context: Option<String>,
    pub(crate) server: String,
    /// The program that gets credentials for it.
    pub(super) plugin: Option<String>,
}

/// Where pods are made and looked for now: with the context of the inventory, or else with the one that was kubectl's at the
/// first request of this process. An error where the inventory names another server.
pub async fn current_cluster(reach: &KubernetesReach, namespace: &str) -> Result<RunCluster, String> {
    let namespace = namespace.to_owned();
    Kubectl { namespace, ..Kubectl::from_reach(reach) }.cluster_now().await.map_err(|error| error.to_string())
}

/// The same of no inventory.
pub async fn cluster_of_context(context: Option<&str>, namespace: &str) -> Result<RunCluster, String> {
    Kubectl::new(context, namespace).cluster_now().await.map_err(|error| error.to_string())
}

/// Where requests by this inventory have gone so far in this process.
pub fn cluster_known(reach: &KubernetesReach) -> RunCluster {
    Kubectl::from_reach(reach).cluster_known()
}

impl Kubectl {
    fn first_target(&self) -> Option<Target> {
        TARGETS.lock().unwrap_or_else(PoisonError::into_inner).get(&self.context).cloned()
    }

    /// The program that gets its credentials, as it was at the first request.
    pub(super) fn plugin(&self) -> Option<String> {
        self.first_target()?.plugin
    }

    /// Where its requests have gone so far: nothing is read or asked for it.
    pub(crate) fn cluster_known(&self) -> RunCluster {
        let first = self.first_target();
        let context = first.as_ref().map_or_else(|| self.context.clone(), |first| first.context.clone());
        RunCluster {
            format: Format,
            server: first.map(|first| first.server).or(self.cluster.clone()).unwrap_or_default(),
            namespace: self.namespace.clone(),
            context: context.filter(|context| is_shown(context)),
        }
    }

    /// A command for a person that does what it would do, in any terminal.
    pub(crate) fn command(&self, arguments: &[&str]) -> String {
        kubectl_command(Some(&self.cluster_known()), arguments)
    }

    async fn cluster_now(&self) -> Result<RunCluster, ReachError> {
        let now = self.look().await?.1;
        self.check(&now)?;
        let Target { context, server, .. } = now;
        let context = context.filter(|context| is_shown(context));
        Ok(RunCluster { format: Format, server, namespace: self.namespace.clone(), context })
    }

    /// Whether it is the cluster that the inventory names, if it names one.
    fn check(&self, target: &Target) -> Result<(), ReachError> {
        match &self.cluster {
            Some(named) if *named != target.server => Err(other(named, target, self.context.is_some())),
            _ => Ok(()),
        }
    }

    /// Where its requests go, also where somebody has chosen another context since.
    pub(super) async fn target(&self) -> Result<Target, ReachError> {
        let first = match self.first_target() {
            Some(first) => first,
            None => self.look().await?.0,
        };
        self.check(&first)?;
        Ok(first)
    }

    /// The same, where it leads to the same server still: the config may have been edited since.
    pub(crate) async fn checked_target(&self) -> Result<Target, ReachError> {
        let (first, now) = self.look().await?;
        if first.server != now.server {
            return Err(elsewhere(&first, &now));
        }
        self.check(&first)?;
        Ok(first)
    }

    /// Where it led at the first request, and where the same context leads now.
    async fn look(&self) -> Result<(Target, Target), ReachError> {
        let context = self.first_target().map_or_else(|| self.context.clone(), |first| first.context);
        let now = self.read_config(context.as_deref()).await?;
        let mut all = TARGETS.lock().unwrap_or_else(PoisonError::into_inner);
        // Another request may have been the first meanwhile.
        let first = all.entry(self.context.clone()).or_insert_with(|| now.clone());
        Ok((first.clone(), now))
    }

    async fn read_config(&self, context: Option<&str>) -> Result<Target, ReachError> {
        let unknown = |why: String| ReachError::Failed { what: UNKNOWN.to_owned(), why };
        let file = || config_file(std::env::var("KUBECONFIG").ok().as_deref());
        let words = ["config", "view", "--minify", TEMPLATE].map(str::to_owned);
        let limit = Duration::from_secs(CONFIG_LIMIT_S);
        let output = match self.ask_within(limit, context, &words, b"", CONFIG_LIMIT).await {
            Err(ReachError::TimedOut { limit_s, .. }) => {
                return Err(unknown(no_answer(context, &file(), limit_s)));
            }
            output => output?,
        };
        if output.succeeded {
            return read(&output.stdout).map_err(|why| unknown(format!("{why} ({})", file())));
        }
        let why = output.complaint();
        let has_none = context.is_none() && why.contains("current-context must exist");
        let own = if has_none { server_of_own_pod(|name| std::env::var(name).ok()) } else { None };
        let server = own.ok_or_else(|| unknown(format!("`kubectl config view`: {why}")))?;
        Ok(Target { context: None, server, plugin: None })
    }
}

/// The files that kubectl reads, for a message.
fn config_file(variable: Option<&str>) -> String {
    match variable.filter(|list| !list.is_empty()) {
        Some(list) => format!("KUBECONFIG={}", base::text::show(list)),
        None => "~/.kube/config".to_owned(),
    }
}

/// Where kubectl does not even print its config: what it waits for, and what shows it.
fn no_answer(context: Option<&str>, file: &str, limit_s: u64) -> String {
    let by = context.map(|context| format!(", context {}", base::text::show(context))).unwrap_or_default();
    format!(
        "`kubectl config view` ({file}{by}): no answer within {limit_s} s; a credential plugin (`users[].user.exec`) or the \
         server may hang: try `kubectl version` at the prompt, log in again, or set KUBECONFIG to another file"
    )
}

fn elsewhere(first: &Target, now: &Target) -> ReachError {
    let by = first.context.as_ref().map(|context| format!("context {} is ", base::text::show(context)));
    let why = format!(
        "{}{}, and was {} when this began; nothing was asked there; correct the kubeconfig",
        by.unwrap_or_default(),
        now.server,
        first.server
    );
    ReachError::Failed { what: ELSEWHERE.to_owned(), why }
}

/// `is_named`: the inventory names its context.
fn other(named: &str, target: &Target, is_named: bool) -> ReachError {
    let by = target.context.as_ref().map(|context| format!(" (context {})", base::text::show(context)));
    let next = match (&target.context, is_named) {
        (None, _) => "first set KUBECONFIG to a file that leads there",
        (Some(_), true) => {
            "first set `context` there to one of `kubectl config get-contexts`, or set KUBECONFIG"
        }
        (Some(_), false) => {
            "first `kubectl config use-context NAME`, with one of `kubectl config get-contexts`, or set KUBECONFIG"
        }
    };
    let why = format!(
        "{}{}, but `cluster` in [reach] is {}; nothing was touched; {next}",
        target.server,
        by.unwrap_or_default(),
        base::text::show(named)
    );
    ReachError::Failed { what: OTHER.to_owned(), why }
}

/// Whether nothing was asked since kubectl leads to another server. No later attempt is better.
pub(super) fn is_elsewhere(error: &ReachError) -> bool {
    matches!(error, ReachError::Failed { what, .. } if [ELSEWHERE, OTHER].contains(&what.as_str()))
}

/// Without a config, kubectl in a pod asks the cluster of the pod.
fn server_of_own_pod(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let (host, port) = (variable("KUBERNETES_SERVICE_HOST")?, variable("KUBERNETES_SERVICE_PORT")?);
    let mut certificates = Vec::new();
    let read = File::open(OWN_CERTIFICATES)
        .and_then(|file| file.take(CERTIFICATES_LIMIT).read_to_end(&mut certificates));
    server_of_pod(&host, &port, read.is_ok().then_some(certificates.as_slice()))
}

fn read(printed: &[u8]) -> Result<Target, String> {
    let text = std::str::from_utf8(printed).map_err(|_| "kubectl's config is no UTF-8".to_owned())?;
    let mut lines = text.trim_end_matches('\n').split('\n');
    let (context, server) = (lines.next(), lines.next());
    let plugin = lines.next().map(|line| line.strip_prefix("exec").ok_or(()).map(str::trim));
    let (Some(context), Some(server), None | Some(Ok(_)), None) = (context, server, plugin, lines.next())
    else {
        return Err("the current context has no cluster with a `server`; try `kubectl config get-contexts`"
            .to_owned());
    };
    let context = (!context.is_empty()).then(|| context.to_owned());
    let odd = || "the server in kubectl's config is no plain URL".to_owned();
    let plugin = plugin.and_then(Result::ok).filter(|plugin| !plugin.is_empty()).map(str::to_owned);
    Ok(Target { context, server: plain_server(server).ok_or_else(odd)?, plugin })
}

/// Whether it is written down, and printed as a word of a command.
fn is_shown(context: &str) -> bool {
    context.len() <= LONGEST_CONTEXT && base::text::show(context) == context
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_not_taken_for_a_secret_where_it_is_written_down() {
        for stored in [
            "https://10.0.0.1:6443",
            "https://0123456789abcdef0123456789abcdef.gr7.us-east-1.eks.amazonaws.com",
            "https://10.100.0.1#ca-0123456789abcdef",
        ] {
            assert_eq!(model::artefact::named_server(stored).as_deref(), Some(stored));
            assert_eq!(store::redactor().text(stored), stored);
        }
        assert_eq!(
            read(b"prod\nhttps://a b"),
            Err("the server in kubectl's config is no plain URL".to_owned())
        );
    }

    #[test]
    fn what_kubectl_prints_of_its_config_is_a_context_and_a_server() {
        let both = |text: &str| read(text.as_bytes());
        let here = |context: Option<&str>| {
            Ok(Target { context: context.map(str::to_owned), server: "https://a".to_owned(), plugin: None })
        };
        assert_eq!(both("prod\nhttps://a\nexec "), here(Some("prod")));
        let plugin = |text: &str| both(text).expect("a target").plugin;
        assert_eq!(plugin("prod\nhttps://a\nexec aws").as_deref(), Some("aws"));
        assert_eq!(both("prod\nhttps://a"), here(Some("prod")));
        assert_eq!(both("\nhttps://a\n"), here(None));
        // It is used as it is, and written down nowhere.
        assert_eq!(both("a\u{1b}[2J\nhttps://u:p@a"), here(Some("a\u{1b}[2J")));
        assert!(is_shown("prod") && !is_shown("a\u{1b}[2J") && !is_shown(&"a".repeat(257)));
        for odd in ["", "prod", "prod\n", "prod\nhttps://a\nhttps://b"] {
            assert!(both(odd).is_err(), "{odd:?}");
        }
        assert!(read(b"a\nhttps://\xff").is_err());
    }

    #[test]
    fn a_config_that_cannot_be_used_is_named_with_the_next_step() {
        assert_eq!(config_file(None), "~/.kube/config");
        assert_eq!(config_file(Some("")), "~/.kube/config");
        assert_eq!(config_file(Some("/a:/b")), "KUBECONFIG=/a:/b");
        assert_eq!(
            no_answer(Some("prod"), "KUBECONFIG=/a", 20),
            "`kubectl config view` (KUBECONFIG=/a, context prod): no answer within 20 s; a credential plugin \
             (`users[].user.exec`) or the server may hang: try `kubectl version` at the prompt, log in again, or set \
             KUBECONFIG to another file"
        );
        let why = read(b"prod\n").unwrap_err();
        assert!(why.contains("has no cluster") && why.contains("`kubectl config get-contexts`"), "{why}");
    }

    #[test]
    fn a_context_that_leads_elsewhere_by_now_is_said_with_both_servers() {
        let at = |context: Option<&str>, server: &str| Target {
            context: context.map(str::to_owned),
            server: server.to_owned(),
            plugin: None,
        };
        let why = elsewhere(&at(Some("prod"), "https://a"), &at(Some("prod"), "https://b"));
        assert_eq!(
            why.to_string(),
            "kubectl leads elsewhere by now: context prod is https://b, and was https://a when this began; nothing was \
             asked there; correct the kubeconfig"
        );
        assert!(is_elsewhere(&why));
        let why = elsewhere(&at(None, "https://a"), &at(None, "https://b")).to_string();
        assert!(why.contains("by now: https://b, and was https://a"), "{why}");
        let other =
            ReachError::Failed { what: "`kubectl get`".to_owned(), why: "it said nothing".to_owned() };
        assert!(!is_elsewhere(&other));
    }

    #[test]
    fn a_cluster_that_the_inventory_does_not_name_is_said_with_both() {
        let at = |context: Option<&str>| Target {
            context: context.map(str::to_owned),
            server: "https://b".to_owned(),
            plugin: None,
        };
        let kubectl =
            |cluster: &str| Kubectl { cluster: Some(cluster.to_owned()), ..Kubectl::new(None, "bench") };
        assert_eq!(kubectl("https://b").check(&at(Some("dev"))), Ok(()));
        let why = kubectl("https://a").check(&at(Some("dev"))).unwrap_err();
        assert!(is_elsewhere(&why));
        assert_eq!(
            why.to_string(),
            "kubectl leads to another cluster: https://b (context dev), but `cluster` in [reach] is https://a; nothing was \
             touched; first `kubectl config use-context NAME`, with one of `kubectl config get-contexts`, or set KUBECONFIG"
        );
        let why = other("https://a", &at(Some("dev")), true).to_string();
        assert!(why.contains("; first set `context` there to one of `kubectl config get-contexts`"), "{why}");
        let why = other("https://a", &at(None), false).to_string();
        assert!(why.contains(": https://b, but") && why.ends_with("a file that leads there"), "{why}");
    }

    #[test]
    fn in_a_pod_without_a_config_it_is_the_pods_own() {
        let own = server_of_own_pod(|name| match name {
            "KUBERNETES_SERVICE_HOST" => Some("10.100.0.1".to_owned()),
            "KUBERNETES_SERVICE_PORT" => Some("443".to_owned()),
            _ => None,
        });
        // Its certificates are there where the tests run in a pod.
        assert_eq!(own.as_deref().and_then(|own| own.split('#').next()), Some("https://10.100.0.1"));
        assert_eq!(server_of_own_pod(|_| None), None);
    }
}
