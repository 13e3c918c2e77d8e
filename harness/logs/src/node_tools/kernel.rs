//! Lines of NVIDIA's driver in a kernel log: Xids, and the GPUs that it lost, of which some never get the number of an Xid.

use super::NoResult;
use super::output::{KERNEL, NodeOutput, Row};
use std::collections::{BTreeMap, BTreeSet};

/// A message of the driver may take so many lines, of which the first names the GPU.
const LINES: usize = 3;
pub(super) const LOST: &str = "fallen off the bus";
pub(super) const NOT_STARTED: &str = "probe routine failed";
/// In newer drivers with the GPU's address before it.
pub(super) const FAILED_STARTS: [&str; 2] = ["RmInitAdapter failed", "rm_init_adapter failed"];
pub(super) const OF_GSP: &str = "GSP Timeout";

/// How often each Xid stands in a log of the kernel, by device; GPUs that it lost are failures.
pub(super) fn read(text: &str) -> Result<NodeOutput, NoResult> {
    let mut all: BTreeMap<(&str, &str, u32), u32> = BTreeMap::new();
    let mut events: BTreeMap<(&str, String), u32> = BTreeMap::new();
    let mut lost: BTreeSet<String> = BTreeSet::new();
    let mut failed_starts: BTreeSet<String> = BTreeSet::new();
    let mut failed_probes = 0_u32;
    // The GPU that the driver named last, and how many of its lines ago.
    let mut named: Option<(&str, usize)> = None;
    for line in text.lines() {
        if let Some(xid) = xid(line) {
            *all.entry(xid).or_default() += 1;
        }
        let Some((_, message)) = line.split_once("NVRM: ") else { continue };
        named = match message.split_whitespace().find_map(device) {
            Some(device) => Some((device, 0)),
            None => named.map(|(device, lines)| (device, lines + 1)).filter(|(_, lines)| *lines < LINES),
        };
        let gpu = || named.map_or("a GPU that is not named".to_owned(), |(device, _)| device.to_owned());
        if message.contains(LOST) {
            lost.insert(gpu());
            *events.entry((LOST, gpu())).or_default() += 1;
        } else if message.contains(NOT_STARTED) {
            failed_probes += 1;
        } else if FAILED_STARTS.iter().any(|words| message.contains(words)) {
            // Other lines may be of another GPU.
            let gpu = message.split_whitespace().find_map(device).unwrap_or("a GPU that is not named");
            failed_starts.insert(gpu.to_owned());
            *events.entry((FAILED_STARTS[0], gpu.to_owned())).or_default() += 1;
        } else if message.contains(OF_GSP) {
            let gpu = message.split_whitespace().next().filter(|word| word.starts_with("GPU"));
            let gpu = gpu.map_or("a GPU that is not named".to_owned(), str::to_owned);
            *events.entry(("GSP timeout", gpu)).or_default() += 1;
        }
    }
    let row = |what: String, times: u32| Row {
        what,
        value: Some(f64::from(times)),
        unit: "lines",
        ..Row::default()
    };
    let mut rows: Vec<Row> = all
        .into_iter()
        .map(|((kind, device, number), times)| row(format!("{kind} {number} of {device}"), times))
        .collect();
    rows.extend(events.into_iter().map(|((what, gpu), times)| row(format!("{what}: {gpu}"), times)));
    let mut failures: Vec<String> = lost.into_iter().map(|gpu| format!("{gpu} has {LOST}")).collect();
    let not_started = |gpu: String| format!("the driver could not start {gpu}: `{}`", FAILED_STARTS[0]);
    failures.extend(failed_starts.into_iter().map(not_started));
    if failed_probes > 0 {
        rows.push(row(NOT_STARTED.to_owned(), failed_probes));
        failures.push(format!("the driver could not start a GPU: `{NOT_STARTED}`"));
    }
    match rows.is_empty() {
        true => Err("no line of an Xid is complete, and no GPU was lost".to_owned()),
        false => Ok(NodeOutput { program: KERNEL, rows, failures, ..NodeOutput::default() }),
    }
}

/// `NVRM: Xid (PCI:0000:53:00): 48, pid=1, ...`.
fn xid(line: &str) -> Option<(&'static str, &str, u32)> {
    let (before, rest) = line.split_once("Xid (")?;
    let (device, rest) = rest.split_once("): ")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let number = rest.get(..digits)?.parse().ok()?;
    Some((if before.ends_with('S') { "SXid" } else { "Xid" }, device, number))
}

/// The PCI address in `0000:b3:00.0`, `(PCI:0000:b3:00):` and the like, without its function.
fn device(word: &str) -> Option<&str> {
    let word = word.trim_matches(|c: char| matches!(c, '(' | ')' | ':' | ','));
    let word = word.strip_prefix("PCI:").unwrap_or(word);
    let word = word.split('.').next()?;
    let mut parts = word.split(':');
    let is_hex = |part: Option<&str>, lengths: &[usize]| {
        part.is_some_and(|part| {
            lengths.contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
    };
    let is_one = is_hex(parts.next(), &[4, 8]) && is_hex(parts.next(), &[2]) && is_hex(parts.next(), &[2]);
    (is_one && parts.next().is_none()).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::super::output::read;

    #[test]
    fn xids_are_counted_by_device_and_number() {
        let text = "[1.0] NVRM: Xid (PCI:0000:53:00): 48, pid=1, name=x, DBE\n\
                    NVRM: Xid (PCI:0000:53:00): 48, again\n\
                    nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48\n\
                    NVRM: Xid (PCI:0000:53:00): cut";
        let outputs = read(text).expect("read");
        let [output] = &outputs[..] else { panic!("of one program") };
        let rows: Vec<(&str, Option<f64>)> =
            output.rows.iter().map(|row| (row.what.as_str(), row.value)).collect();
        let expected = [("SXid 20034 of PCI:0000:06:00.0", 1.0), ("Xid 48 of PCI:0000:53:00", 2.0)];
        assert_eq!(rows, expected.map(|(what, value)| (what, Some(value))));
        assert!(output.failures.is_empty());
        assert!(read("NVRM: Xid (PCI:").is_err());
    }

    #[test]
    fn a_lost_gpu_without_an_xid_is_a_failure() {
        let text = "[ 12.5] NVRM: The NVIDIA GPU 0000:c1:00.0\n\
                    NVRM: (PCI ID: 10de:2330) installed in this system has\n\
                    NVRM: fallen off the bus and is not responding to commands.\n\
                    [ 12.6] NVRM: The NVIDIA probe routine failed for 1 device(s).\n\
                    [ 13.0] NVRM: Xid (PCI:0000:44:00): 43, pid=1, name=python\n";
        let outputs = read(text).expect("read");
        let [output] = &outputs[..] else { panic!("of one program") };
        assert_eq!(
            output.failures,
            ["0000:c1:00 has fallen off the bus", "the driver could not start a GPU: `probe routine failed`"]
        );
        let of_gsp = "NVRM: GPU5 _kgspLogRpcTimeout: *** GSP Timeout ***\n";
        let outputs = read(of_gsp).expect("read");
        let [output] = &outputs[..] else { panic!("of one program") };
        assert_eq!(output.rows[0].what, "GSP timeout: GPU5");
    }

    #[test]
    fn a_gpu_that_the_driver_cannot_start_is_a_failure_with_its_address() {
        let text = "[ 1.0] NVRM: GPU 0000:5d:00.0: RmInitAdapter failed! (0x62:0x65:1842)\n\
                    [ 1.0] NVRM: GPU 0000:5d:00.0: rm_init_adapter failed, device minor number 3\n\
                    [ 2.0] NVRM: GPU 0000:5d:00.0: RmInitAdapter failed! (0x62:0x65:1842)\n";
        let outputs = read(text).expect("read");
        let [output] = &outputs[..] else { panic!("of one program") };
        let rows: Vec<(&str, Option<f64>)> =
            output.rows.iter().map(|row| (row.what.as_str(), row.value)).collect();
        assert_eq!(rows, [("RmInitAdapter failed: 0000:5d:00", Some(3.0))]);
        assert_eq!(output.failures, ["the driver could not start 0000:5d:00: `RmInitAdapter failed`"]);
        let unnamed = "NVRM: Xid (PCI:0000:44:00): 43, pid=1\nNVRM: rm_init_adapter failed for device bearing minor number 0\n";
        let outputs = read(unnamed).expect("read");
        let [output] = &outputs[..] else { panic!("of one program") };
        assert_eq!(
            output.failures,
            ["the driver could not start a GPU that is not named: `RmInitAdapter failed`"]
        );
    }

    #[test]
    fn a_lost_gpu_that_no_line_before_names_gets_no_other_gpus_name() {
        let text =
            "NVRM: Xid (PCI:0000:44:00): 43, pid=1\nNVRM: a\nNVRM: b\nNVRM: c\nNVRM: fallen off the bus\n";
        let outputs = read(text).expect("read");
        let [output] = &outputs[..] else { panic!("of one program") };
        assert_eq!(output.failures, ["a GPU that is not named has fallen off the bus"]);
    }
}
