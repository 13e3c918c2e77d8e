//! Lifetime totals in the forms in which people have them: `rdma statistic show` with `-p` or `-j`, `more`, `head` or `grep`
//! of the files in `hw_counters`, the node exporter's text, and a list of `name :value`. Nothing of the harness writes these.

use super::NotUnderstood;
use super::escapes::decimal;
use serde::Serialize;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// All counters of one device since its driver was loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Empty where the form does not name it.
    pub device: String,
    /// Totals by the name of the counter, such as `rx_bytes`.
    pub counters: BTreeMap<String, u64>,
}

/// Text of more bytes is none of these.
pub const MOST_BYTES: usize = 16 << 20;

/// The totals of every device of a text, in whichever of the forms it is.
pub fn read_totals(text: &[u8], file: &str) -> Result<Vec<Totals>, NotUnderstood> {
    let bad = |why: &str| NotUnderstood { file: file.to_owned(), line: 1, why: why.to_owned() };
    if text.len() > MOST_BYTES {
        return Err(bad("file is larger than 16 MiB"));
    }
    let decoded = String::from_utf8_lossy(text);
    let first = decoded.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match first {
        "" => Err(bad("file is empty")),
        _ if first.starts_with("::::::::::::::") || first.contains(FOLDER) => read_files(&decoded, file),
        _ if first.starts_with("link ") => read_statistic(&decoded, file),
        // With `-p` the bracket stands apart, or alone.
        _ if first
            .strip_prefix('[')
            .is_some_and(|rest| matches!(rest.trim_start().get(..1), None | Some("{"))) =>
        {
            read_json(&decoded, file)
        }
        _ if decoded.lines().any(|line| line.starts_with("node_amazonefa_")) => read_exporter(text, file),
        _ => read_listing(text, file).map(|totals| vec![totals]),
    }
}

/// `link DEVICE/PORT`, then names and values; with `-p` each pair on a line of its own.
fn read_statistic(text: &str, file: &str) -> Result<Vec<Totals>, NotUnderstood> {
    let mut devices: Vec<Totals> = Vec::new();
    let mut named = BTreeSet::new();
    for (line, number) in text.lines().zip(1..) {
        let bad = |why: String| NotUnderstood { file: file.to_owned(), line: number, why };
        let mut words = line.split_whitespace();
        while let Some(name) = words.next() {
            let value = words.next().ok_or_else(|| bad(format!("no value: `{name}`")))?;
            if name == "link" {
                let (device, port) =
                    value.split_once('/').ok_or_else(|| bad(format!("no port: `{value}`")))?;
                let device = port_name(device, port);
                if !named.insert(device.clone()) {
                    return Err(bad(listed_twice(&device)));
                }
                devices.push(Totals { device, counters: BTreeMap::new() });
                continue;
            }
            let device =
                devices.last_mut().ok_or_else(|| bad(format!("counter without a device: `{name}`")))?;
            let value = decimal(value.as_bytes())
                .ok_or_else(|| bad(format!("not a whole number: `{name} {value}`")))?;
            if device.counters.insert(name.to_owned(), value).is_some() {
                return Err(bad(format!("duplicate counter: `{name}`")));
            }
        }
    }
    whole(devices, file)
}

/// EFA devices have one port, and some others beside them two.
fn port_name(device: &str, port: &str) -> String {
    if port == "1" { device.to_owned() } else { format!("{device}/{port}") }
}

/// Two readings, or those of two nodes: neither is the total.
fn listed_twice(device: &str) -> String {
    format!("device is listed twice: `{device}`")
}

/// The fields of a port in their order: a map would keep the last of two of one name.
struct Link(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Link {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Link, D::Error> {
        from.deserialize_map(LinkFields)
    }
}

struct LinkFields;

impl<'de> Visitor<'de> for LinkFields {
    type Value = Link;

    fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("an object for each port")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Link, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = access.next_entry()? {
            fields.push(field);
        }
        Ok(Link(fields))
    }
}

/// The same as JSON (`rdma -j statistic show`): an object for each port, with its counters beside its name.
fn read_json(text: &str, file: &str) -> Result<Vec<Totals>, NotUnderstood> {
    let bad = |why: String| NotUnderstood { file: file.to_owned(), line: 1, why };
    let links: Vec<Link> = serde_json::from_str(text)
        .map_err(|error| bad(format!("broken JSON of `rdma statistic`: {error}")))?;
    let mut devices = Vec::new();
    let mut named = BTreeSet::new();
    for Link(fields) in &links {
        let mut names = BTreeSet::new();
        if let Some((name, _)) = fields.iter().find(|(name, _)| !names.insert(name.as_str())) {
            return Err(bad(format!("duplicate counter: `{name}`")));
        }
        let field = |wanted: &str| fields.iter().find(|(name, _)| name == wanted).map(|(_, value)| value);
        let device = field("ifname").and_then(Value::as_str);
        let device = device.ok_or_else(|| bad("`ifname` is missing".to_owned()))?;
        let port = field("port").and_then(Value::as_u64).unwrap_or(1);
        let device = port_name(device, &port.to_string());
        let mut counters = BTreeMap::new();
        for (name, value) in fields {
            if matches!(name.as_str(), "ifindex" | "ifname" | "port") {
                continue;
            }
            let value = value.as_u64().ok_or_else(|| bad(format!("not a whole number: `{name}`")))?;
            counters.insert(name.clone(), value);
        }
        if !named.insert(device.clone()) {
            return Err(bad(listed_twice(&device)));
        }
        devices.push(Totals { device, counters });
    }
    whole(devices, file)
}

const FOLDER: &str = "/hw_counters/";

/// Device and counter of `/sys/class/infiniband/DEVICE/ports/1/hw_counters/COUNTER`, or of its path among the devices.
fn counter_file(path: &str) -> Option<(String, String)> {
    let (folder, counter) = path.split_once(FOLDER)?;
    let (device, port) = folder.rsplit_once("/ports/")?;
    let device = device.rsplit('/').next()?;
    (!device.is_empty() && !port.contains('/')).then(|| (port_name(device, port), counter.to_owned()))
}

/// What `more` prints of several files: a line of colons, the path, a line of colons, and the value. `head` and `tail`
/// print `==> PATH <==` before the value, and grep `PATH:VALUE`.
fn read_files(text: &str, file: &str) -> Result<Vec<Totals>, NotUnderstood> {
    let mut devices: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    let mut open: Option<(String, String)> = None;
    for (line, number) in text.lines().map(str::trim).zip(1..) {
        let bad = |why: String| NotUnderstood { file: file.to_owned(), line: number, why };
        if line.is_empty() || line.bytes().all(|byte| byte == b':') {
            continue;
        }
        let is_path = line.starts_with('/') || line.contains(FOLDER);
        let (path, value) = match line.strip_prefix("==> ").and_then(|rest| rest.strip_suffix(" <==")) {
            Some(path) => (path, None),
            None => match line.rsplit_once(':').filter(|_| is_path) {
                Some((path, value)) if path.contains(FOLDER) => (path, Some(value)),
                _ => (line, None),
            },
        };
        if is_path {
            if let Some((device, counter)) = &open {
                return Err(bad(format!("no value: `{counter}` of {device}")));
            }
            open = Some(
                counter_file(path).ok_or_else(|| bad(format!("not a file of `hw_counters`: `{path}`")))?,
            );
            if value.is_none() {
                continue;
            }
        }
        let line = value.unwrap_or(line);
        let (device, counter) = open.take().ok_or_else(|| bad(format!("value without a file: `{line}`")))?;
        let value = decimal(line.as_bytes()).ok_or_else(|| bad(format!("not a whole number: `{line}`")))?;
        if devices.entry(device).or_default().insert(counter.clone(), value).is_some() {
            return Err(bad(format!("duplicate counter: `{counter}`")));
        }
    }
    if let Some((device, counter)) = open {
        let why = format!("no value: `{counter}` of {device}");
        return Err(NotUnderstood { file: file.to_owned(), line: text.lines().count() as u64, why });
    }
    whole(devices.into_iter().map(|(device, counters)| Totals { device, counters }).collect(), file)
}

/// A text that was cut off has a device with nothing.
fn whole(devices: Vec<Totals>, file: &str) -> Result<Vec<Totals>, NotUnderstood> {
    let empty = devices.iter().find(|device| device.counters.is_empty()).map(|device| &device.device);
    match (devices.is_empty(), empty) {
        (true, _) => {
            Err(NotUnderstood { file: file.to_owned(), line: 1, why: "no device in the file".to_owned() })
        }
        (_, Some(device)) => {
            let why = format!("no counter of {device}");
            Err(NotUnderstood { file: file.to_owned(), line: 1, why })
        }
        (false, None) => Ok(devices),
    }
}

/// The node exporter's text, in whatever a terminal put around it. Other collectors' lines are passed over.
fn read_exporter(text: &[u8], file: &str) -> Result<Vec<Totals>, NotUnderstood> {
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
        let total =
            scientific(value).ok_or_else(|| bad(format!("value is not a whole number: `{value}`")))?;
        // Two scrapes, or those of two nodes: neither is the total.
        if devices.entry(device.to_owned()).or_default().insert(counter.to_owned(), total).is_some() {
            return Err(bad(format!("duplicate counter: `{counter}` of {device}")));
        }
    }
    let totals: Vec<Totals> =
        devices.into_iter().map(|(device, counters)| Totals { device, counters }).collect();
    if totals.is_empty() {
        let why = "no counter of the `amazonefa` collector".to_owned();
        return Err(NotUnderstood { file: file.to_owned(), line: 1, why });
    }
    Ok(totals)
}

/// A counter and its value: `name :value`.
fn listed(line: &str) -> Option<(&str, u64)> {
    let (name, value) = line.split_once(':')?;
    let name = name.trim();
    let plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    Some((plain.then_some(name)?, decimal(value.trim().as_bytes())?))
}

/// Why a text whose first line is no counter has none.
fn no_listing(text: &str) -> &'static str {
    let is_efa = |name: &str| ["rx_drops", "submitted_cmds", "keep_alive_rcvd"].contains(&name);
    if text.trim_start().starts_with("NIC statistics:") {
        "output of `ethtool -S`, which has no EFA counters; expected the output of `rdma -p statistic show`"
    } else if text.lines().filter_map(listed).any(|(name, _)| is_efa(name)) {
        "counters below a title; expected those of one device alone, or the output of `rdma -p statistic show`"
    } else {
        "no EFA counters; expected the output of `rdma -p statistic show`"
    }
}

/// One device's counters as `name :value`, a line each.
fn read_listing(text: &[u8], file: &str) -> Result<Totals, NotUnderstood> {
    let text = String::from_utf8_lossy(text);
    let mut counters = BTreeMap::new();
    for (line, number) in text.lines().zip(1..) {
        if line.trim().is_empty() {
            continue;
        }
        let Some((name, value)) = listed(line) else {
            let why = match counters.is_empty() {
                true => no_listing(&text).to_owned(),
                false => "line must be a name, a colon and a whole number".to_owned(),
            };
            return Err(NotUnderstood { file: file.to_owned(), line: number, why });
        };
        if counters.insert(name.to_owned(), value).is_some() {
            let why = format!("duplicate counter: `{name}`");
            return Err(NotUnderstood { file: file.to_owned(), line: number, why });
        }
    }
    if counters.is_empty() {
        return Err(NotUnderstood {
            file: file.to_owned(),
            line: 1,
            why: "no counter in the file".to_owned(),
        });
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
