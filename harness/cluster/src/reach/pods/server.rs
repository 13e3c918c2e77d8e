//! The cluster that kubectl's config leads to: read from the config alone, without a request and without a permission.

use super::kubectl::Kubectl;
use model::artefact::{Format, RunCluster};

/// The context, and the server on a line of its own. The config also holds tokens, which are not asked for.
const TEMPLATE: &str =
    "--output=jsonpath={.current-context}{range .clusters[*]}{\"\\n\"}{.cluster.server}{end}";
const CONFIG_LIMIT: usize = 64 << 10;
const LONGEST_SERVER: usize = 512;
const LONGEST_CONTEXT: usize = 256;

/// Where pods are made and looked for now, with this context or else kubectl's current one.
pub async fn current_cluster(context: Option<&str>, namespace: &str) -> Result<RunCluster, String> {
    let kubectl = Kubectl { context: context.map(str::to_owned), namespace: namespace.to_owned() };
    let unknown = |why: String| format!("the cluster that kubectl leads to is unknown: {why}");
    let words = ["config", "view", "--minify", TEMPLATE].map(str::to_owned);
    let output = kubectl.ask(&words, b"", CONFIG_LIMIT).await.map_err(|error| unknown(error.to_string()))?;
    let (context, server) = match output.succeeded {
        true => read(&output.stdout).map_err(unknown)?,
        false => {
            let why = output.complaint();
            let has_none = context.is_none() && why.contains("current-context must exist");
            let own = if has_none { server_of_own_pod(|name| std::env::var(name).ok()) } else { None };
            (None, own.ok_or_else(|| unknown(format!("`kubectl config view`: {why}")))?)
        }
    };
    Ok(RunCluster { format: Format, server, namespace: namespace.to_owned(), context })
}

/// Without a config, kubectl in a pod asks the cluster of the pod.
fn server_of_own_pod(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let (host, port) = (variable("KUBERNETES_SERVICE_HOST")?, variable("KUBERNETES_SERVICE_PORT")?);
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    plain(&format!("https://{host}:{port}")).ok()
}

fn read(printed: &[u8]) -> Result<(Option<String>, String), String> {
    let text = std::str::from_utf8(printed).map_err(|_| "kubectl's config is no UTF-8".to_owned())?;
    let mut lines = text.trim_end_matches('\n').split('\n');
    let (Some(context), Some(server), None) = (lines.next(), lines.next(), lines.next()) else {
        return Err("kubectl's config names no server".to_owned());
    };
    let is_shown = !context.is_empty() && context.len() <= LONGEST_CONTEXT;
    let is_plain = base::text::show(context) == context;
    Ok(((is_shown && is_plain).then(|| context.to_owned()), plain(server)?))
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
        let here = "https://a".to_owned();
        assert_eq!(both("prod\nhttps://a"), Ok((Some("prod".to_owned()), here.clone())));
        assert_eq!(both("\nhttps://a\n"), Ok((None, here.clone())));
        assert_eq!(both("a\u{1b}[2J\nhttps://u:p@a"), Ok((None, here)));
        for odd in ["", "prod", "prod\n", "prod\nhttps://a\nhttps://b"] {
            assert!(both(odd).is_err(), "{odd:?}");
        }
        assert!(read(b"a\nhttps://\xff").is_err());
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
