//! The cluster that kubectl's config leads to: read from the config alone, without a request and without a permission. One
//! reading gives the context and its server, so that no change of the config comes between the two; all later calls name
//! that context.

use super::kubectl::Kubectl;
use crate::reach::ReachError;
use model::artefact::{Format, RunCluster};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The context, and the server on a line of its own. The config also holds tokens, which are not asked for.
const TEMPLATE: &str =
    "--output=jsonpath={.current-context}{range .clusters[*]}{\"\\n\"}{.cluster.server}{end}";
const CONFIG_LIMIT: usize = 64 << 10;
const LONGEST_SERVER: usize = 512;
const LONGEST_CONTEXT: usize = 256;
const UNKNOWN: &str = "the cluster that kubectl leads to is unknown";
const ELSEWHERE: &str = "kubectl leads elsewhere by now";

/// Where the requests of this process go, by the context that was asked for: as it was at the first of them.
static TARGETS: Mutex<BTreeMap<Option<String>, Target>> = Mutex::new(BTreeMap::new());

/// The context of every call, and the server that it led to at the first one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// As the config spells it; none in a pod that has a service account instead of a config.
    pub(super) context: Option<String>,
    pub(super) server: String,
}

/// Where pods are made and looked for now, with this context or else with the one that was kubectl's at the first request of
/// this process.
pub async fn current_cluster(context: Option<&str>, namespace: &str) -> Result<RunCluster, String> {
    let kubectl = Kubectl::new(context, namespace);
    let Target { context, server } = kubectl.look().await.map_err(|error| error.to_string())?.1;
    let context = context.filter(|context| is_shown(context));
    Ok(RunCluster { format: Format, server, namespace: namespace.to_owned(), context })
}

impl Kubectl {
    fn first_target(&self) -> Option<Target> {
        TARGETS.lock().unwrap_or_else(PoisonError::into_inner).get(&self.context).cloned()
    }

    /// Where its requests go, also where somebody has chosen another context since.
    pub(super) async fn target(&self) -> Result<Target, ReachError> {
        match self.first_target() {
            Some(first) => Ok(first),
            None => Ok(self.look().await?.0),
        }
    }

    /// The same, where it leads to the same server still: the config may have been edited since.
    pub(super) async fn checked_target(&self) -> Result<Target, ReachError> {
        let (first, now) = self.look().await?;
        match first.server == now.server {
            true => Ok(first),
            false => Err(elsewhere(&first, &now)),
        }
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
        let words = ["config", "view", "--minify", TEMPLATE].map(str::to_owned);
        let output = self.ask_by(context, &words, b"", CONFIG_LIMIT).await?;
        if output.succeeded {
            return read(&output.stdout).map_err(unknown);
        }
        let why = output.complaint();
        let has_none = context.is_none() && why.contains("current-context must exist");
        let own = if has_none { server_of_own_pod(|name| std::env::var(name).ok()) } else { None };
        let server = own.ok_or_else(|| unknown(format!("`kubectl config view`: {why}")))?;
        Ok(Target { context: None, server })
    }
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

/// Whether nothing was asked since kubectl leads to another server by now. No later attempt is better.
pub(super) fn is_elsewhere(error: &ReachError) -> bool {
    matches!(error, ReachError::Failed { what, .. } if what == ELSEWHERE)
}

/// Without a config, kubectl in a pod asks the cluster of the pod.
fn server_of_own_pod(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let (host, port) = (variable("KUBERNETES_SERVICE_HOST")?, variable("KUBERNETES_SERVICE_PORT")?);
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    plain(&format!("https://{host}:{port}")).ok()
}

fn read(printed: &[u8]) -> Result<Target, String> {
    let text = std::str::from_utf8(printed).map_err(|_| "kubectl's config is no UTF-8".to_owned())?;
    let mut lines = text.trim_end_matches('\n').split('\n');
    let (Some(context), Some(server), None) = (lines.next(), lines.next(), lines.next()) else {
        return Err("kubectl's config names no server".to_owned());
    };
    let context = (!context.is_empty()).then(|| context.to_owned());
    Ok(Target { context, server: plain(server)? })
}

/// Whether it is written down, and printed as a word of a command.
fn is_shown(context: &str) -> bool {
    context.len() <= LONGEST_CONTEXT && base::text::show(context) == context
}

/// A server in the one spelling that is stored, compared and printed; what stands before `@` is a user and a password.
fn plain(server: &str) -> Result<String, String> {
    let odd = || "the server in kubectl's config is no plain URL".to_owned();
    let (scheme, rest) = match server.split_once("://") {
        Some((scheme, rest)) => (format!("{}://", scheme.to_ascii_lowercase()), rest),
        None => (String::new(), server),
    };
    if !["", "http://", "https://"].contains(&scheme.as_str()) || rest.contains(['?', '#']) {
        return Err(odd());
    }
    let rest = rest.rsplit('@').next().unwrap_or_default();
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._~:/[]%".contains(c);
    if rest.len() > LONGEST_SERVER || !rest.chars().all(allowed) {
        return Err(odd());
    }
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = host.to_ascii_lowercase();
    let host = match scheme.as_str() {
        "https://" => host.strip_suffix(":443").unwrap_or(&host),
        _ => &host,
    };
    match host.is_empty() {
        true => Err(odd()),
        false => Ok(format!("{scheme}{host}{}", path.trim_end_matches('/'))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_one_spelling_and_never_a_user_or_a_password() {
        for (written, stored) in [
            ("https://10.0.0.1:6443", "https://10.0.0.1:6443"),
            ("HTTPS://A.Example:443/", "https://a.example"),
            ("https://u:p@a.example/k8s/clusters/c-1/", "https://a.example/k8s/clusters/c-1"),
            ("https://u:p/w@a.example", "https://a.example"),
            ("u:p@a.example:8080", "a.example:8080"),
            ("https://[fd00::1]:6443", "https://[fd00::1]:6443"),
            (
                "https://0123456789ABCDEF0123456789ABCDEF.gr7.us-east-1.eks.amazonaws.com",
                "https://0123456789abcdef0123456789abcdef.gr7.us-east-1.eks.amazonaws.com",
            ),
        ] {
            assert_eq!(plain(written).as_deref(), Ok(stored));
            // Not taken for a secret where it is written down.
            assert_eq!(store::redactor().text(stored), stored);
        }
        let long = format!("https://{}", "a".repeat(600));
        for odd in [
            "",
            "https://",
            "https://u:p@",
            "ftp://a",
            "https://a?token=b",
            "https://u:p?w@a",
            "https://a/#b",
            "https://a b",
            "https://a\u{1b}[31m",
            "https://\u{202e}a",
            &long,
        ] {
            let why = plain(odd).expect_err(odd);
            assert_eq!(why, "the server in kubectl's config is no plain URL");
        }
    }

    #[test]
    fn what_kubectl_prints_of_its_config_is_a_context_and_a_server() {
        let both = |text: &str| read(text.as_bytes());
        let here = |context: Option<&str>| {
            Ok(Target { context: context.map(str::to_owned), server: "https://a".to_owned() })
        };
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
    fn a_context_that_leads_elsewhere_by_now_is_said_with_both_servers() {
        let at = |context: Option<&str>, server: &str| Target {
            context: context.map(str::to_owned),
            server: server.to_owned(),
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
    fn in_a_pod_without_a_config_it_is_the_pods_own() {
        let of = |host: &str| {
            let host = host.to_owned();
            server_of_own_pod(move |name| match name {
                "KUBERNETES_SERVICE_HOST" => Some(host.clone()),
                "KUBERNETES_SERVICE_PORT" => Some("443".to_owned()),
                _ => None,
            })
        };
        assert_eq!(of("10.100.0.1").as_deref(), Some("https://10.100.0.1"));
        assert_eq!(of("fd00::1").as_deref(), Some("https://[fd00::1]"));
        assert_eq!(server_of_own_pod(|_| None), None);
    }
}
