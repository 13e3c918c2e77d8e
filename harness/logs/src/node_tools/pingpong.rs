//! Reads what `links.sh` prints of `fi_pingpong`: for each NIC and size of message, how long one message takes, or why it was
//! not measured.

use super::{NoResult, cut, last_line};
use crate::range::Range;

/// Messages of one size from one NIC to its peer.
#[derive(Debug, Clone, PartialEq)]
pub struct Messages {
    /// As the instance profile names it.
    pub device: String,
    /// Of one message.
    pub bytes: u64,
    /// From one end to the other: half of what there and back take.
    pub latency_us: f64,
    /// In one direction at a time, in 10^9 bytes per second.
    pub rate_gb_s: f64,
}

/// What one client printed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Links {
    /// In the order of the output.
    pub measured: Vec<Messages>,
    /// Devices that did not connect, and what is known of it.
    pub silent: Vec<(String, String)>,
}

/// The columns of the table, in their order.
const COLUMNS: [&str; 8] = ["bytes", "#sent", "#ack", "total", "time", "MB/sec", "usec/xfer", "Mxfers/sec"];

/// Why nothing was tried: the server was not ready in time.
pub fn not_started(text: &str) -> Option<String> {
    text.lines().find_map(|line| line.strip_prefix("not-started ")).map(cut)
}

/// All rows of a text; an error where one contradicts itself, or there is none.
pub fn read(text: &str) -> Result<Links, NoResult> {
    let mut links = Links::default();
    // A device whose table has not come to its row.
    let (mut open, mut has_columns): (Option<&str>, bool) = (None, false);
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["device", device] => {
                if let Some(open) = open.replace(*device) {
                    return Err(format!("fi_pingpong printed no row for {}", cut(open)));
                }
                has_columns = false;
            }
            ["not-connected", device, why @ ..] => {
                links.silent.push((cut(device), cut_reason(&why.join(" "))));
            }
            ["not-started", why @ ..] => return Err(cut(&why.join(" "))),
            ["server", ..] | [] => {}
            columns if *columns == COLUMNS => has_columns = true,
            row if has_columns && row.len() == COLUMNS.len() => {
                let Some(device) = open.take() else {
                    return Err("fi_pingpong printed more rows than were asked for".to_owned());
                };
                links.measured.push(messages(device, row)?);
            }
            // Libraries print remarks of their own.
            _ => {}
        }
    }
    match open {
        Some(open) => Err(format!("the output ends before the row for {}", cut(open))),
        None if links.measured.is_empty() && links.silent.is_empty() => Err(match last_line(text) {
            Some(line) => format!("fi_pingpong printed no table; the last line: {line}"),
            None => "fi_pingpong printed nothing".to_owned(),
        }),
        None => Ok(links),
    }
}

/// What both sides complained of is part of it.
fn cut_reason(why: &str) -> String {
    why.chars().take(500).collect()
}

fn messages(device: &str, row: &[&str]) -> Result<Messages, NoResult> {
    let wrong = |what: &str| format!("{}: {what}: {}", cut(device), cut(&row.join(" ")));
    let [bytes, sent, acknowledged, .., rate, latency, _] = row else { return Err(wrong("no row")) };
    let size = scaled(bytes).ok_or_else(|| wrong("no size of a message"))?;
    if acknowledged.strip_prefix('=') != Some(*sent) {
        return Err(wrong("not all messages were acknowledged"));
    }
    let range = |word: &str| Range::printed(word).filter(|range| range.high > 0.0);
    let (Some(rates), Some(latencies)) = (range(rate), range(latency)) else {
        return Err(wrong("no rate or no time"));
    };
    // Megabytes of a million, in microseconds: bytes.
    if !rates.times(latencies).meets(Range::around(size as f64, 0.0)) {
        return Err(wrong("its rate and its time contradict each other"));
    }
    let number = |word: &str| word.parse::<f64>().ok().filter(|number| *number > 0.0);
    let (Some(rate), Some(latency_us)) = (number(rate), number(latency)) else {
        return Err(wrong("no rate or no time"));
    };
    Ok(Messages { device: device.to_owned(), bytes: size, latency_us, rate_gb_s: rate / 1000.0 })
}

/// `256`, `64k` or `1m`, by 1024.
fn scaled(word: &str) -> Option<u64> {
    let (digits, factor) = match word.strip_suffix(['k', 'm', 'g']) {
        Some(digits) if word.ends_with('k') => (digits, 1 << 10),
        Some(digits) if word.ends_with('m') => (digits, 1 << 20),
        Some(digits) => (digits, 1 << 30),
        None => (word, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(factor).filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n";

    /// Rows as libfabric's documentation of EFA and of other fabrics shows them.
    #[test]
    fn each_device_has_the_row_behind_its_name() {
        let text = format!(
            "device rdmap79s0\n{HEAD}256     10k     =10k     4.8m        0.09s     60.71       4.22       0.24\n\
             a remark of a library\ndevice rdmap79s0\n{HEAD}1m      10      =10      20m         0.01s   2359.00     \
             444.50       0.00\nnot-connected rdmap80s0 no answer in 30 s, attempts: 3\nserver p5-002\n"
        );
        let messages = |bytes, latency_us, rate_gb_s| Messages {
            device: "rdmap79s0".to_owned(),
            bytes,
            latency_us,
            rate_gb_s,
        };
        let silent = vec![("rdmap80s0".to_owned(), "no answer in 30 s, attempts: 3".to_owned())];
        let measured = vec![messages(256, 4.22, 0.06071), messages(1 << 20, 444.5, 2.359)];
        assert_eq!(read(&text), Ok(Links { measured, silent }));
    }

    #[test]
    fn what_is_missing_or_contradicts_itself_is_no_result() {
        let row = "256     10k     =10k     4.8m        0.09s     60.71       4.22       0.24\n";
        for (text, why) in [
            (String::new(), "fi_pingpong printed nothing"),
            ("hello\n".to_owned(), "no table; the last line: hello"),
            ("not-started server a was not ready after 30 s\n".to_owned(), "server a was not ready"),
            (format!("device a\n{HEAD}"), "ends before the row for a"),
            (format!("device a\n{HEAD}device b\n{HEAD}{row}"), "no row for a"),
            (format!("device a\n{HEAD}{row}{row}"), "more rows"),
            (format!("device a\n{HEAD}{}", row.replace("=10k", "-2")), "not all messages"),
            (format!("device a\n{HEAD}{}", row.replace("60.71", "90.71")), "contradict each other"),
            (format!("device a\n{HEAD}{}", row.replace("4.22", "nan")), "no rate or no time"),
            (format!("device a\n{HEAD}{}", row.replace("256 ", "0 ")), "no size"),
            (format!("device {}\n{HEAD}", "a".repeat(100_000)), "ends before the row for aaa"),
            (format!("device a\n{HEAD}{}", row.replace("256 ", &"9".repeat(100_000))), "no size"),
        ] {
            let error = read(&text).expect_err(why);
            assert!(error.contains(why) && error.len() < 500, "{error}");
        }
    }
}
