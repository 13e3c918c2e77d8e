//! What joins the ranks of a job: whether cards read the GPUs' memory themselves, the provider and the network that was chosen, and
//! whether all cards were found.

use super::Reader;
use super::tables::Checks;
use metric::finding::Finding;

/// Its interfaces are no cards for GPUs.
const SOCKET: &str = "NET/Socket";

pub(super) fn findings(reader: &Reader, checks: &mut Checks, all: &mut Vec<Finding>) {
    let tally = &reader.tally;
    let connections = tally.connections();
    let net: Vec<_> = connections.iter().filter(|it| it.transport.starts_with("NET/")).collect();
    let slow: Vec<_> = net.iter().filter(|it| !it.gdrdma).collect();
    (checks.net_pairs, checks.not_gdrdma) = (net.len() as u64, slow.len() as u64);
    if let Some(first) = slow.first() {
        let why = format!(
            "{} of {} pairs of ranks go through host memory, without GPUDirect RDMA, such as rank {} to {} via {}",
            slow.len(),
            net.len(),
            first.from,
            first.to,
            first.transport
        );
        let without = tally.wired.told_net().into_iter().find(|it| it.not_gdrdma > 0);
        let finding = Finding::new("nccl-not-gdrdma", why);
        all.push(match without {
            Some(it) if !it.host.is_empty() => finding.node(it.host),
            _ => finding,
        });
    }
    for provider in tally.providers.all() {
        let name = provider.text.split(',').next().unwrap_or_default();
        if name != "efa" && !name.starts_with("efa;") {
            let why = format!("{} lines tell of a provider other than `efa`: `{name}`", provider.lines);
            all.push(Finding::new("nccl-provider", why));
        }
    }
    for network in tally.networks.all().into_iter().filter(|network| network.text == "Socket") {
        let why = format!("{} lines tell of the network `Socket`: no plugin or card was used", network.lines);
        all.push(Finding::new("nccl-network-socket", why));
    }
    let nvls = tally.wired.told_nvls();
    if let (Some(_), Some(without)) =
        (nvls.iter().find(|it| it.available > 0), nvls.iter().find(|it| it.not_available > 0))
    {
        let why = format!("NVLS is available on some GPUs and not on others, such as of `{}`", without.host);
        all.push(Finding::new("nccl-nvls-differs", why).node(&without.host));
    }
    nics(reader, all);
}

/// A host whose processes found fewer cards than it is to have.
fn nics(reader: &Reader, all: &mut Vec<Finding>) {
    let told = reader.tally.wired.told_nics();
    for it in told.iter().filter(|it| it.by != SOCKET) {
        let expected = reader.nics.unwrap_or(it.most);
        if it.least < expected {
            let whose =
                if reader.nics.is_some() { "its instance has" } else { "another process there found" };
            let why =
                format!("a process found {} network cards of `{}`, {whose}: {expected}", it.least, it.by);
            all.push(Finding::new("nccl-nics-missing", why).node(&it.host));
        }
    }
}
