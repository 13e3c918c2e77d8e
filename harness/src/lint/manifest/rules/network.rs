//! Rules about the network of pods: interfaces of sockets, names of peers, and the provider of libfabric.

use super::resources::EFA;
use super::{Findings, Rule, Weight};
use crate::lint::manifest::objects::{Manifests, settings};
use crate::lint::manifest::yaml::Node;

pub(super) const SOCKET_INTERFACE: Rule = Rule {
    code: "socket-interface",
    weight: Weight::Error,
    what: "`NCCL_SOCKET_IFNAME` that leaves out eth0, which is all that a pod without `hostNetwork` has",
    harm: "NCCL finds no interface for its bootstrap and stops",
};
pub(super) const HOST_DNS: Rule = Rule {
    code: "host-dns",
    weight: Weight::Warning,
    what: "`hostNetwork` without `dnsPolicy: ClusterFirstWithHostNet`",
    harm: "names of other pods are not resolved, and the launcher reaches no worker",
};
pub(super) const PROVIDER: Rule = Rule {
    code: "provider",
    weight: Weight::Warning,
    what: "`FI_PROVIDER` of another provider where EFA devices are requested",
    harm: "the test measures TCP while the NICs that it holds stay idle",
};

pub(super) fn check(manifests: &Manifests, findings: &mut Findings) {
    for document in &manifests.documents {
        let has_efa = document.pods.iter().any(|pod| pod.count(EFA).is_some());
        for pod in &document.pods {
            let is_on_host = pod.is_on_host_network();
            if let Some(entry) = pod.spec.entry("hostNetwork").filter(|_| is_on_host) {
                let policy = pod.spec.get("dnsPolicy").and_then(Node::text);
                if policy.is_none_or(|policy| policy == "ClusterFirst") {
                    let advice = "add `dnsPolicy: ClusterFirstWithHostNet`";
                    findings.add(&HOST_DNS, entry.place, "`hostNetwork` with the DNS of the node", advice);
                }
            }
            for (name, value, place) in pod.containers().flat_map(settings) {
                if value.contains('$') {
                    continue;
                }
                if name == "NCCL_SOCKET_IFNAME" && !is_on_host && !allows_eth0(&value) {
                    let advice = "remove it, write `eth0`, or set `hostNetwork: true`";
                    findings.add(
                        &SOCKET_INTERFACE,
                        place,
                        format!("`NCCL_SOCKET_IFNAME={value}` leaves out eth0"),
                        advice,
                    );
                }
                if name == "FI_PROVIDER"
                    && has_efa
                    && !value.is_empty()
                    && !value.split([',', ';']).any(|provider| provider == "efa")
                {
                    let advice = "write `efa`, or request no EFA devices";
                    findings.add(&PROVIDER, place, format!("`FI_PROVIDER={value}` with EFA devices"), advice);
                }
            }
        }
    }
}

/// `^a,b`: all but these; `=a`: this name exactly; else beginnings of names.
fn allows_eth0(value: &str) -> bool {
    let value = value.trim_matches(['"', '\'']);
    let (is_list_of_others, names) = value.strip_prefix('^').map_or((false, value), |rest| (true, rest));
    let (is_exact, names) = names.strip_prefix('=').map_or((false, names), |rest| (true, rest));
    let mut names = names.split(',').filter(|name| !name.is_empty());
    let matches = |name: &str| {
        if is_exact { name == "eth0" } else { "eth0".starts_with(name.split(':').next().unwrap_or(name)) }
    };
    names.any(matches) != is_list_of_others || value.is_empty()
}

#[cfg(test)]
mod tests {
    use super::allows_eth0;

    #[test]
    fn interfaces_are_read_as_nccl_reads_them() {
        for fine in ["eth0", "eth", "=eth0", "^lo,docker", "^lo", "ens,eth", "^=eth"] {
            assert!(allows_eth0(fine), "{fine}");
        }
        for wrong in ["ens", "^eth", "^lo,eth0", "=eth", "enp71s0", "^=eth0"] {
            assert!(!allows_eth0(wrong), "{wrong}");
        }
    }
}
