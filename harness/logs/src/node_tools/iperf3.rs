//! Reads the JSON of iperf3's client (`-J`): what TCP moved from it to the server.

use super::{NoResult, agree, cut, document};
use serde::Deserialize;

/// What one call moved, over all its streams.
#[derive(Debug, Clone, PartialEq)]
pub struct Tcp {
    /// As the server received it, in 10^9 bytes per second.
    pub rate_gb_s: f64,
    /// Of the client: `iperf 3.12`.
    pub version: Option<String>,
}

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    start: Start,
    #[serde(default)]
    end: End,
    error: Option<String>,
}

#[derive(Default, Deserialize)]
struct Start {
    version: Option<String>,
}

#[derive(Default, Deserialize)]
struct End {
    sum_received: Option<Sum>,
}

#[derive(Deserialize)]
struct Sum {
    seconds: f64,
    bytes: f64,
    bits_per_second: f64,
}

/// The rate in a text; an error where iperf3 reports one, or its numbers contradict each other.
pub fn read(text: &str) -> Result<Tcp, NoResult> {
    if let Some(why) = text.lines().find_map(|line| line.strip_prefix("not-")) {
        return Err(format!("not {}", cut(why)));
    }
    let read: Document = document(text, "iperf3")?;
    if let Some(error) = read.error.filter(|error| !error.is_empty()) {
        return Err(format!("iperf3 failed: {}", cut(&error)));
    }
    let Some(sum) = read.end.sum_received else {
        return Err("iperf3 printed no sum of what was received".to_owned());
    };
    let (rate, again) = (sum.bits_per_second / 8e9, sum.bytes / sum.seconds / 1e9);
    if !(rate.is_finite() && rate > 0.0 && again.is_finite()) {
        return Err(format!("iperf3 moved nothing: {} bytes in {} s", sum.bytes, sum.seconds));
    }
    if !agree(rate, again) {
        return Err(format!("columns of iperf3 disagree: {rate:.2} and {again:.2} GB/s"));
    }
    Ok(Tcp { rate_gb_s: rate, version: read.start.version.as_deref().map(cut) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(seconds: f64, bytes: f64, bits: f64) -> String {
        format!(
            "a remark\n{{\"start\": {{\"version\": \"iperf 3.12\"}}, \"intervals\": [], \"end\": {{\"sum_sent\": \
             {{\"seconds\": 10.0, \"bytes\": 5, \"bits_per_second\": 4, \"retransmits\": 7}}, \"sum_received\": \
             {{\"seconds\": {seconds}, \"bytes\": {bytes}, \"bits_per_second\": {bits}, \"sender\": true}}}}}}\n"
        )
    }

    #[test]
    fn the_rate_is_that_of_what_was_received() {
        let read = read(&text(10.0, 4e10, 3.2e10)).expect("read");
        assert_eq!(read, Tcp { rate_gb_s: 4.0, version: Some("iperf 3.12".to_owned()) });
    }

    #[test]
    fn an_error_or_a_contradiction_is_no_rate() {
        for (text, why) in [
            (String::new(), "iperf3 printed nothing"),
            ("{\"start\": {}".to_owned(), "is cut off"),
            (
                "{\"end\": {}, \"error\": \"unable to connect to server\"}".to_owned(),
                "failed: unable to connect",
            ),
            ("{\"end\": {}}".to_owned(), "no sum of what was received"),
            (text(10.0, 0.0, 0.0), "moved nothing: 0 bytes in 10 s"),
            (text(10.0, 4e10, 9.2e10), "disagree: 11.50 and 4.00 GB/s"),
            ("not-started server a was not ready after 40 s\n".to_owned(), "not started server a"),
        ] {
            let error = read(&text).expect_err(why);
            assert!(error.contains(why), "{error}");
        }
    }
}
