//! What connects the ranks of a job: GPUDirect RDMA, the provider and the network that were chosen, and
//! whether all cards were found.

use super::Reader;
use super::tables::Checks;
use crate::text::count;
use metric::finding::Finding;

/// Its interfaces are not the network cards of GPUs.
const SOCKET: &str = "NET/Socket";

pub(super) fn findings(reader: &Reader, checks: &mut Checks, all: &mut Vec<Finding>) {
    let tally = &reader.tally;
    let connections = tally.connections();
    let net: Vec<_> = connections.iter().filter(|it| it.transport.starts_with("NET/")).collect();
    let slow: Vec<_> = net.iter().filter(|it| !it.gdrdma).collect();
    (checks.net_pairs, checks.not_gdrdma) = (net.len() as u64, slow.len() as u64);
    if let Some(first) = slow.first() {
        let why = format!(
            "{} of {} pairs of ranks use no GPUDirect RDMA (through host memory), for example rank {} to {} via {}",
            slow.len(),
            net.len(),
            first.from,
            first.to,
            first.transport
        );
        let without = tally.wired.net_rows().into_iter().find(|it| it.not_gdrdma > 0);
        let finding = Finding::new("nccl-not-gdrdma", why);
        all.push(match without {
            Some(it) if !it.host.is_empty() => finding.node(it.host),
            _ => finding,
        });
    }
    for provider in tally.providers.all() {
        let name = provider.text.split(',').next().unwrap_or_default();
        if name != "efa" && !name.starts_with("efa;") {
            let why = format!("provider `{name}` in {}, expected `efa`", count(provider.lines, "line"));
            all.push(Finding::new("nccl-provider", why));
        }
    }
    for network in tally.networks.all().into_iter().filter(|network| network.text == "Socket") {
        let lines = count(network.lines, "line");
        let why = format!("network `Socket` in {lines}: NCCL used no plugin and no RDMA card");
        all.push(Finding::new("nccl-network-socket", why));
    }
    let nvls = tally.wired.nvls_rows();
    if let (Some(_), Some(without)) =
        (nvls.iter().find(|it| it.available > 0), nvls.iter().find(|it| it.not_available > 0))
    {
        let why = format!(
            "NVLS is not available on some GPUs, for example on `{}`, and is on others",
            without.host
        );
        all.push(Finding::new("nccl-nvls-differs", why).node(&without.host));
    }
    nics(reader, all);
}

/// Hosts on which a process found fewer network cards than expected.
fn nics(reader: &Reader, all: &mut Vec<Finding>) {
    let rows = reader.tally.wired.nic_rows();
    for it in rows.iter().filter(|it| it.by != SOCKET) {
        let expected = reader.nics.unwrap_or(it.most);
        if it.least < expected {
            let whose =
                if reader.nics.is_some() { "the instance type has" } else { "another process on it found" };
            let why =
                format!("a process found {} network cards of `{}`, {whose} {expected}", it.least, it.by);
            all.push(Finding::new("nccl-nics-missing", why).node(&it.host));
        }
    }
}
