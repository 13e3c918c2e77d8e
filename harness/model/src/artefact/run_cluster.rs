//! The cluster of Kubernetes that the pods of a run are in: what is of a run is looked for, ended and drained in no other.

use super::Format;
use base::digest::sha256;
use base::text::command_line;
use serde::{Deserialize, Serialize};

/// `cluster.json`: written before the first pod is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunCluster {
    /// Version of this layout.
    pub format: Format<1>,
    /// The URL of the API server, without a user and a password; where it is the address of a service, which many clusters
    /// have, with a digest of the cluster's certificates behind it.
    pub server: String,
    /// Of the pods.
    pub namespace: String,
    /// Of the kubeconfig, where it had one that leads there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
}

/// A command for a person: it reaches the cluster from any terminal, whatever kubectl's context is there by then. Where the
/// cluster is not recorded, kubectl's own context decides.
pub fn kubectl_command(cluster: Option<&RunCluster>, arguments: &[&str]) -> String {
    let context = cluster.and_then(|cluster| cluster.context.as_ref());
    let context = context.map(|context| format!("--context={context}"));
    let namespace = cluster.map(|cluster| format!("--namespace={}", cluster.namespace));
    // A later namespace would be another one, as that of a command in every namespace.
    let has_own =
        arguments.iter().any(|word| word.starts_with("--namespace=") || *word == "--all-namespaces");
    let namespace = namespace.filter(|_| !has_own);
    let words = ["kubectl".to_owned()].into_iter().chain(context).chain(namespace);
    command_line(&words.chain(arguments.iter().map(|word| (*word).to_owned())).collect::<Vec<_>>())
}

const LONGEST_SERVER: usize = 512;
/// Before the digest of the certificates that a cluster shows to its pods.
const AUTHORITY: &str = "#ca-";
const AUTHORITY_DIGITS: usize = 16;

/// A server in the one spelling that is stored, compared and printed; what stands before `@` is a user and a password. None
/// where it is no plain URL.
pub fn plain_server(server: &str) -> Option<String> {
    let (scheme, rest) = match server.split_once("://") {
        Some((scheme, rest)) => (format!("{}://", scheme.to_ascii_lowercase()), rest),
        None => (String::new(), server),
    };
    if !["", "http://", "https://"].contains(&scheme.as_str()) || rest.contains(['?', '#']) {
        return None;
    }
    let rest = rest.rsplit('@').next().unwrap_or_default();
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._~:/[]%".contains(c);
    if rest.len() > LONGEST_SERVER || !rest.chars().all(allowed) {
        return None;
    }
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = host.to_ascii_lowercase();
    let host = match scheme.as_str() {
        "https://" => host.strip_suffix(":443").unwrap_or(&host),
        _ => &host,
    };
    (!host.is_empty()).then(|| format!("{scheme}{host}{}", path.trim_end_matches('/')))
}

/// The server of the cluster that a pod is in. Its address is that of a service, such as 10.100.0.1 in most clusters of EKS:
/// what differs is the certificates.
pub fn server_of_pod(host: &str, port: &str, certificates: Option<&[u8]>) -> Option<String> {
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let server = plain_server(&format!("https://{host}:{port}"))?;
    let digest = |bytes: &[u8]| format!("{AUTHORITY}{}", &sha256(bytes)[..AUTHORITY_DIGITS]);
    Some(server + &certificates.map(digest).unwrap_or_default())
}

/// A server as a person names it: a whole URL without a user and a password, as the functions above give it.
pub fn named_server(text: &str) -> Option<String> {
    let (url, authority) = text.split_at(text.find(AUTHORITY).unwrap_or(text.len()));
    let is_digest = |digest: &str| {
        digest.len() == AUTHORITY_DIGITS
            && digest.chars().all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c))
    };
    if !authority.is_empty() && !is_digest(&authority[AUTHORITY.len()..]) {
        return None;
    }
    let server = plain_server(url).filter(|server| server.contains("://") && !url.contains('@'))?;
    Some(server + authority)
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
            assert_eq!(plain_server(written).as_deref(), Some(stored));
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
            assert_eq!(plain_server(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_command_for_a_person_names_the_context_and_the_namespace_of_the_run() {
        let cluster = |context: Option<&str>| RunCluster {
            format: Format,
            server: "https://a.example".to_owned(),
            namespace: "bench".to_owned(),
            context: context.map(str::to_owned),
        };
        let uncordon = ["uncordon", "-l", "kubernetes.io/hostname=n1"];
        for (cluster, arguments, command) in [
            (
                Some(cluster(Some("arn:aws:eks:us-east-1:1:cluster/train"))),
                &uncordon[..],
                "kubectl --context=arn:aws:eks:us-east-1:1:cluster/train --namespace=bench uncordon -l \
                 kubernetes.io/hostname=n1",
            ),
            (
                Some(cluster(Some("a b"))),
                &["get", "pods"],
                "kubectl '--context=a b' --namespace=bench get pods",
            ),
            (
                Some(cluster(Some("prod"))),
                &["get", "pods", "--namespace=kube-system"],
                "kubectl --context=prod get pods --namespace=kube-system",
            ),
            (Some(cluster(None)), &["get", "events"], "kubectl --namespace=bench get events"),
            (None, &["get", "events"], "kubectl get events"),
        ] {
            assert_eq!(kubectl_command(cluster.as_ref(), arguments), command);
        }
    }

    #[test]
    fn clusters_with_the_same_address_inside_differ_by_their_certificates() {
        let of = |host: &str, certificates| server_of_pod(host, "443", certificates);
        assert_eq!(of("10.100.0.1", None).as_deref(), Some("https://10.100.0.1"));
        assert_eq!(of("fd00::1", None).as_deref(), Some("https://[fd00::1]"));
        let (one, other) = (of("10.100.0.1", Some(b"one")), of("10.100.0.1", Some(b"other")));
        assert_eq!(one.as_deref(), Some("https://10.100.0.1#ca-7692c3ad3540bb80"));
        assert_ne!(one, other);
        assert_eq!(named_server(one.as_deref().unwrap_or_default()), one);
        assert_eq!(of("a b", None), None);
    }

    #[test]
    fn a_person_names_a_server_by_a_whole_url_without_a_password() {
        let same = |text: &str| named_server(text);
        assert_eq!(same("https://A.example:443/").as_deref(), Some("https://a.example"));
        assert_eq!(
            same("https://10.100.0.1#ca-0123456789abcdef").as_deref(),
            Some("https://10.100.0.1#ca-0123456789abcdef")
        );
        for odd in [
            "prod",
            "a.example:6443",
            "arn:aws:eks:us-east-1:123456789012:cluster/train",
            "https://u:p@a.example",
            "https://a#ca-",
            "https://a#ca-0123456789ABCDEF",
            "https://a#ca-0123456789abcdef0",
            "https://a#b",
            "#ca-0123456789abcdef",
        ] {
            assert_eq!(same(odd), None, "{odd}");
        }
    }
}
