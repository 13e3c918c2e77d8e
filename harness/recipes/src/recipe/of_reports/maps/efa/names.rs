//! The counters of EFA, and how a plugin's events name them and their devices. Where in an event both stand is not
//! published: they are found by their words, wherever these stand, so that a real report that has them elsewhere needs a
//! change here and nowhere else.

pub(super) struct Counter {
    pub name: &'static str,
    pub unit: &'static str,
}

const BYTES: &str = "bytes/s";
const PACKETS: &str = "packets/s";
const REQUESTS: &str = "work requests/s";
const EVENTS: &str = "events/s";

const fn counter(name: &'static str, unit: &'static str) -> Counter {
    Counter { name, unit }
}

/// In the order in which they are shown: what carries first, what goes wrong last.
pub(super) const COUNTERS: [Counter; 22] = [
    counter("tx_bytes", BYTES),
    counter("rx_bytes", BYTES),
    counter("rdma_write_bytes", BYTES),
    counter("rdma_write_recv_bytes", BYTES),
    counter("rdma_read_bytes", BYTES),
    counter("rdma_read_resp_bytes", BYTES),
    counter("send_bytes", BYTES),
    counter("recv_bytes", BYTES),
    counter("tx_pkts", PACKETS),
    counter("rx_pkts", PACKETS),
    counter("rdma_write_wrs", REQUESTS),
    counter("rdma_read_wrs", REQUESTS),
    counter("send_wrs", REQUESTS),
    counter("recv_wrs", REQUESTS),
    counter("retrans_bytes", BYTES),
    counter("retrans_pkts", PACKETS),
    counter("rx_drops", PACKETS),
    counter("rdma_write_wr_err", EVENTS),
    counter("rdma_read_wr_err", EVENTS),
    counter("retrans_timeout_events", EVENTS),
    counter("unresponsive_remote_events", EVENTS),
    counter("impaired_remote_conn_events", EVENTS),
];

impl Counter {
    pub(super) fn is_of_bytes(&self) -> bool {
        self.unit == BYTES
    }
}

/// Its place among `COUNTERS`.
pub(super) fn by_name(name: &str) -> Option<usize> {
    COUNTERS.iter().position(|counter| counter.name == name)
}

/// A device that a text names, and a counter: `rdmap16s27:1`, `efa_0/rdma_read_bytes`, `rdma_write_bytes per second`.
pub(super) fn named(text: &str) -> (Option<&str>, Option<usize>) {
    let (mut device, mut counter) = (None, None);
    for word in text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_') {
        let of_word = device_in(word);
        device = device.or(of_word);
        // Behind a device's name, where both are one word.
        let rest = of_word.and_then(|device| word.strip_prefix(device)?.strip_prefix('_')).unwrap_or(word);
        counter = counter.or_else(|| by_name(&rest.to_ascii_lowercase()));
    }
    (device, counter)
}

/// `rdmap<bus>s<slot>` or `efa_<n>`, with nothing or an underscore behind it.
fn device_in(word: &str) -> Option<&str> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let end = if let Some(rest) = word.strip_prefix("rdmap") {
        let bus = digits(rest);
        let slot = digits(rest.get(bus..)?.strip_prefix('s')?);
        (bus > 0 && slot > 0).then_some("rdmap".len() + bus + 1 + slot)?
    } else {
        let number = digits(word.strip_prefix("efa_")?);
        (number > 0).then_some("efa_".len() + number)?
    };
    let rest = &word[end..];
    (rest.is_empty() || rest.starts_with('_')).then_some(&word[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_and_counters_are_found_wherever_they_stand() {
        let read = |text| {
            let (device, counter) = named(text);
            (device, counter.map(|at| COUNTERS[at].name))
        };
        assert_eq!(read("AWS EFAs/rdmap16s27:1"), (Some("rdmap16s27"), None));
        assert_eq!(read("rdma_write_bytes per second"), (None, Some("rdma_write_bytes")));
        assert_eq!(read("efa_0/rdma_read_resp_bytes"), (Some("efa_0"), Some("rdma_read_resp_bytes")));
        assert_eq!(
            read("rdmap79s0_rdma_write_recv_bytes"),
            (Some("rdmap79s0"), Some("rdma_write_recv_bytes"))
        );
        assert_eq!(read("rdmap79s0.recv_bytes"), (Some("rdmap79s0"), Some("recv_bytes")));
        for other in
            ["efa_metrics/nic_sampler", "rdmap", "rdmap16", "rdmap16s", "xrdmap1s2", "SMs Active", ""]
        {
            assert_eq!(read(other), (None, None), "{other}");
        }
    }

    #[test]
    fn no_counter_is_named_twice() {
        for (at, counter) in COUNTERS.iter().enumerate() {
            assert_eq!(by_name(counter.name), Some(at));
        }
    }
}
