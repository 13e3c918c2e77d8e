//! Lifetime totals in the two forms in which people publish them: the node exporter's text and a `name :value` list.
//! Nothing of the harness writes these; they are what the conservation law can be tried on.

use super::NotUnderstood;
use super::word::decimal;
use std::collections::BTreeMap;

/// All counters of one device since its driver was loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Totals {
    /// Empty where the form does not name it.
    pub device: String,
    pub counters: BTreeMap<String, u64>,
}

/// The node exporter's text, in whatever a terminal put around it. Other collectors' lines are passed over.
pub fn read_exporter(text: &[u8], file: &str) -> Result<Vec<Totals>, NotUnderstood> {
    let text = String::from_utf8_lossy(text);
    let mut devices: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for (line, number) in text.lines().zip(1..) {
        let Some(rest) = line.strip_prefix("node_amazonefa_") else { continue };
        // `info` has no port and is no counter.
        let Some((counter, (labels, value))) =
            rest.split_once('{').and_then(|(counter, rest)| Some((counter, rest.rsplit_once("} ")?)))
        else {
            continue;
        };
        if !labels.contains("port=\"") {
            continue;
        }
        let bad = |why: String| NotUnderstood { file: file.to_owned(), line: number, why };
        let device = labels
            .split(',')
            .find_map(|label| label.trim().strip_prefix("device=\"")?.strip_suffix('"'))
            .ok_or_else(|| bad(format!("`device` is missing: `{counter}`")))?;
        // A timestamp may follow the value.
        let value = value.split(' ').next().unwrap_or_default();
        let total = scientific(value).ok_or_else(|| bad(format!("value is no whole number: `{value}`")))?;
        devices.entry(device.to_owned()).or_default().insert(counter.to_owned(), total);
    }
    let totals: Vec<Totals> =
        devices.into_iter().map(|(device, counters)| Totals { device, counters }).collect();
    if totals.is_empty() {
        let why = "no counter of the `amazonefa` collector in it".to_owned();
        return Err(NotUnderstood { file: file.to_owned(), line: 1, why });
    }
    Ok(totals)
}

/// One device's counters as `name :value`, a line each.
pub fn read_listing(text: &[u8], file: &str) -> Result<Totals, NotUnderstood> {
    let text = String::from_utf8_lossy(text);
    let mut counters = BTreeMap::new();
    for (line, number) in text.lines().zip(1..) {
        if line.trim().is_empty() {
            continue;
        }
        let read = line.split_once(':').and_then(|(name, value)| {
            let name = name.trim();
            let plain =
                !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            Some((plain.then_some(name)?, decimal(value.trim().as_bytes())?))
        });
        let Some((name, value)) = read else {
            let why = "line must be a name, a colon and a whole number".to_owned();
            return Err(NotUnderstood { file: file.to_owned(), line: number, why });
        };
        counters.insert(name.to_owned(), value);
    }
    if counters.is_empty() {
        return Err(NotUnderstood { file: file.to_owned(), line: 1, why: "no counter in it".to_owned() });
    }
    Ok(Totals { device: String::new(), counters })
}

/// `1.047241117296e+12` as the whole number that it is; through a float it would be one by luck.
fn scientific(word: &str) -> Option<u64> {
    let (mantissa, exponent) = word.split_once(['e', 'E']).unwrap_or((word, "0"));
    let exponent = usize::try_from(exponent.parse::<i32>().ok()?).ok()?;
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let part = part.trim_end_matches('0');
    // Twenty places are more than a counter has.
    if part.len() > exponent || exponent > 20 {
        return None;
    }
    let zeros = "0".repeat(exponent - part.len());
    decimal(format!("{whole}{part}{zeros}").as_bytes())
}
