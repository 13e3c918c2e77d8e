//! What libfabric's provider of EFA logs by itself of a transfer that failed: it names both instances, which the plugin's
//! own warning leaves out.

/// `libfabric:7:1708520807::efa:cq:efa_rdm_txe_handle_error():737<warn> err: 5, message: Invalid address My EFA addr: … My host
/// id: i-0db Peer EFA addr: … Peer host id: i-0ce (7)`: the message, from which host to which.
pub(super) fn failed_transfer(text: &str) -> Option<String> {
    let (_, text) = text.split_once("libfabric:")?;
    let (place, text) = text.split_once("<warn> err: ")?;
    let (_, text) = text.split_once("message: ").filter(|_| place.contains(":efa:"))?;
    let (message, hosts) = text.split_once(" My EFA addr: ")?;
    let host = |label: &str| hosts.split_once(label)?.1.split_whitespace().next();
    let (from, to) = (host("My host id: ")?, host("Peer host id: ")?);
    Some(format!("libfabric, efa: {}, from {from} to {to}", message.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_that_failed_names_both_hosts() {
        let line = "[1,3]<stderr>:libfabric:7:1708520807::efa:cq:efa_rdm_txe_handle_error():737<warn> err: 5, message: Invalid \
                    address My EFA addr: fi_addr_efa://[fe80::13]:0:107 My host id: i-0db7 Peer EFA addr: \
                    fi_addr_efa://[fe80::b8]:0:947 Peer host id: i-0ce6 (7)";
        let expected = "libfabric, efa: Invalid address, from i-0db7 to i-0ce6";
        assert_eq!(failed_transfer(line).as_deref(), Some(expected));
        for other in [
            "libfabric:7:1673041636:efa:core:rxr_info_to_rxr():506<warn> FI_HMEM capability requires RDMA",
            "libfabric:85:1747438790::core:core:fi_getinfo_():1392<warn> fi_getinfo: provider efa output empty list",
            "libfabric:7:1::efa:cq:f():737<warn> err: 5, message: Invalid address",
            "",
        ] {
            assert_eq!(failed_transfer(other), None, "{other}");
        }
    }
}
