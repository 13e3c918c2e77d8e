//! Prometheus text of the plugin: `nccl_bus_bandwidth_gbs{version="v5.1",...} 678.2`, one value a line.

use super::Gauge;

const MOST_LABELS: usize = 32;

/// Nothing of a line of something else, an error of a damaged one. The file is filled in by the caller.
pub(super) fn parse(line: &str) -> Option<Result<Gauge, ()>> {
    let (metric, rest) = line.split_once('{')?;
    let is_name = metric.starts_with("nccl_")
        && metric.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    is_name.then(|| gauge(metric, rest).ok_or(()))
}

fn gauge(metric: &str, mut rest: &str) -> Option<Gauge> {
    let mut labels = Vec::new();
    while !rest.starts_with('}') {
        let (name, quoted) = rest.split_once("=\"")?;
        let (value, behind) = quoted_value(quoted)?;
        let is_name =
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_name || labels.len() >= MOST_LABELS {
            return None;
        }
        labels.push((name.to_owned(), value));
        rest = behind.strip_prefix(',').unwrap_or(behind);
    }
    let mut words = rest.strip_prefix('}')?.split_whitespace();
    let value = words.next()?.parse().ok().filter(|value: &f64| value.is_finite())?;
    // A time stamp may follow.
    let is_end = words.next().is_none_or(|word| word.parse::<i64>().is_ok()) && words.next().is_none();
    is_end.then(|| Gauge { file: String::new(), metric: metric.to_owned(), labels, value })
}

/// Up to the quote that ends it, and what stands behind.
fn quoted_value(text: &str) -> Option<(String, &str)> {
    let (mut value, mut letters) = (String::new(), text.char_indices());
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((value, text.get(at + 1..)?)),
            '\\' => match letters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}
