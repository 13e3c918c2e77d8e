//! The output of any program that tests one node: it is recognised by texts that only this program prints, and its
//! results are rows. What is known and not read is refused by name.

use super::dcgm::{self, Status};
use super::nvbandwidth::Matrix;
use super::{NoResult, fio, gpu_burn, nvbandwidth, stream};
use serde::Serialize;
use std::collections::BTreeMap;

/// What a program printed.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct NodeOutput {
    /// As people call it: `dcgmi diag`.
    pub program: &'static str,
    /// Of the program, where it is printed.
    pub version: Option<String>,
    /// In the order of the output.
    pub rows: Vec<Row>,
    /// What the program itself calls a failure, one line each.
    pub failures: Vec<String>,
}

/// One result.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Row {
    /// What was tested or measured.
    pub what: String,
    /// By the program's number.
    pub gpu: Option<u32>,
    /// With its unit.
    pub value: Option<f64>,
    /// Of `value`.
    pub unit: &'static str,
    /// The result in words, where there is one.
    pub result: String,
}

/// Whose lines of Xids are counted, and not judged.
pub const KERNEL: &str = "the kernel";

type Read = fn(&str) -> Result<NodeOutput, NoResult>;

/// Programs by what only their output has; all texts of one of the lists must be in it.
const PROGRAMS: [(&[&[&str]], Read); 6] = [
    (&[&["DCGM Diagnostic\""], &["DCGM GPU Diagnostic\""], &["| Diagnostic ", "| Result "]], diagnosis),
    (&[&["\"nvbandwidth\""], &["nvbandwidth Version:"], &["memcpy", "bandwidth (GB/s)"]], copies),
    (&[&["\"fio version\""]], disks),
    (&[&["STREAM version", "Best Rate"]], memory),
    (&[&["proc'd:", "errors:"]], burn),
    (&[&["Xid (PCI:"]], kernel),
];

/// What is known and not read: its texts, what it is, and what to do.
const OTHERS: [(&[&str], &str, &str); 17] = [
    (&["=NVSMI LOG="], "`nvidia-smi -q`", PROBE),
    (&["<nvidia_smi_log"], "`nvidia-smi -q -x`", PROBE),
    (&["| NVIDIA-SMI "], "`nvidia-smi`", PROBE),
    (&["GPU0", "CPU Affinity"], "`nvidia-smi topo -m`", PROBE),
    (
        &["UUID: GPU-", "Link 0:"],
        "`nvidia-smi nvlink`",
        "suites `node-*` read the state of links before and after a load",
    ),
    (
        &["NVLINK Error Counts"],
        "`dcgmi nvlink -e`",
        "suites `node-*` count errors of links while a load runs",
    ),
    (
        &["\"children\"", "\"Link 0\""],
        "`dcgmi nvlink -e -j`",
        "suites `node-*` count errors of links while a load runs",
    ),
    (
        &["NvLink Link Status"],
        "`dcgmi nvlink -s`",
        "suites `node-*` read the state of links before and after a load",
    ),
    (&["GPUs found.", "GPU ID"], "`dcgmi discovery`", PROBE),
    (&["LnkCap:"], "`lspci -vv`", "suites `node-*` read PCIe links under load"),
    (&["<topology", "hwloc"], "hwloc's topology", "it holds no result"),
    (&["<system version="], "NCCL's topology file", "it holds no result"),
    (&["[CUDA Bandwidth Test]"], "CUDA's bandwidthTest", "use nvbandwidth"),
    (&["Gflops/s (min:"], "gpu-fryer", "use gpu-burn"),
    (
        &["STREAM Benchmark", "Buffer size(bytes)"],
        "gpustream",
        "use nvbandwidth for copies; STREAM is for memory of the host",
    ),
    (&["BW peak", "BW average"], "perftest", "`nic-pairs` in a suite runs and reads it"),
    (
        &["/hca_type:", "/ports/"],
        "files of /sys/class/infiniband",
        "`harness logs efa` reads counters of EFA devices",
    ),
];

const PROBE: &str = "`harness inventory probe` reads the state of GPUs itself";

/// The results in a text; an error that says why there are none.
pub fn read(text: &str) -> Result<NodeOutput, NoResult> {
    let has = |all: &&[&str]| all.iter().all(|one| text.contains(one));
    if let Some((_, read)) = PROGRAMS.iter().find(|(any, _)| any.iter().any(&has)) {
        return read(text);
    }
    match OTHERS.iter().find(|(all, ..)| has(all)) {
        Some((_, what, instead)) => Err(format!("{what}: not read; {instead}")),
        None if text.trim().is_empty() => Err("it is empty".to_owned()),
        None => Err("no output of `dcgmi diag`, nvbandwidth, gpu_burn, STREAM or fio, and no line of an Xid"
            .to_owned()),
    }
}

fn diagnosis(text: &str) -> Result<NodeOutput, NoResult> {
    let read = dcgm::read(text)?;
    let mut output = NodeOutput { program: "dcgmi diag", version: read.version, ..NodeOutput::default() };
    for result in read.results {
        let word = match result.status {
            Status::Skip => "not run",
            Status::Pass => "pass",
            Status::Warn => "warning",
            Status::Fail => "fail",
        };
        if result.status == Status::Fail {
            let gpu = result.gpu.map_or("the node".to_owned(), |gpu| format!("GPU {gpu}"));
            let why = result.why.first().map(|why| format!(": {why}")).unwrap_or_default();
            output.failures.push(format!("{} failed on {gpu}{why}", result.test));
        }
        output.rows.push(Row {
            what: result.test,
            gpu: result.gpu,
            result: word.to_owned(),
            ..Row::default()
        });
    }
    Ok(output)
}

fn copies(text: &str) -> Result<NodeOutput, NoResult> {
    let read = nvbandwidth::read(text)?;
    let mut output = NodeOutput { program: "nvbandwidth", version: read.version, ..NodeOutput::default() };
    for test in read.tests {
        match test.rates {
            Ok(rates) => output.rows.extend(least_and_most(&test.name, &rates)),
            Err(why) => {
                output.rows.push(Row {
                    what: test.name,
                    result: format!("not measured: {why}"),
                    ..Row::default()
                });
            }
        }
    }
    Ok(output)
}

fn least_and_most(test: &str, rates: &Matrix) -> Vec<Row> {
    let mut values: Vec<f64> = rates.iter().flatten().flatten().copied().collect();
    values.sort_by(f64::total_cmp);
    let row = |which: &str, value: Option<&f64>| Row {
        what: format!("{test}, {which} of {}", values.len()),
        value: value.copied(),
        unit: "GB/s",
        ..Row::default()
    };
    match values.len() {
        0 => vec![Row { what: test.to_owned(), result: "no pair of GPUs".to_owned(), ..Row::default() }],
        1 => vec![Row {
            what: test.to_owned(),
            value: values.first().copied(),
            unit: "GB/s",
            ..Row::default()
        }],
        _ => vec![row("least", values.first()), row("most", values.last())],
    }
}

fn burn(text: &str) -> Result<NodeOutput, NoResult> {
    let read = gpu_burn::read(text.as_bytes()).map_err(|error| error.to_string())??;
    let mut output = NodeOutput { program: "gpu_burn", ..NodeOutput::default() };
    for (number, gpu) in (0..).zip(&read.gpus) {
        let rates: Vec<f64> = gpu.rates.iter().flatten().copied().collect();
        let mean = rates.iter().sum::<f64>() / rates.len().max(1) as f64 / 1000.0;
        let is_closed = read.gpus.iter().any(|other| other.ok.is_some());
        let failure = match (gpu.died, gpu.errors, gpu.ok) {
            (true, ..) => Some("ended before the others"),
            (false, 0, _) if gpu.stopped.is_some() => Some("finished nothing any more while others did"),
            (false, 0, None) if is_closed => Some("has no closing line"),
            (false, 1.., _) => Some("computed wrong products"),
            (false, 0, Some(false)) => Some("is faulty by its closing line"),
            (false, 0, _) if !gpu.computed() => Some("computed nothing"),
            _ => None,
        };
        output.failures.extend(failure.map(|why| format!("GPU {number} {why}")));
        let result = match (failure, gpu.ok) {
            (Some(why), _) => why.to_owned(),
            (None, Some(_)) => "OK".to_owned(),
            (None, None) => "no closing line".to_owned(),
        };
        let value = Some(mean).filter(|_| !rates.is_empty());
        output.rows.push(Row {
            what: "products".to_owned(),
            gpu: Some(number),
            value,
            unit: "TFLOP/s",
            result,
        });
    }
    Ok(output)
}

fn memory(text: &str) -> Result<NodeOutput, NoResult> {
    let read = stream::read(text)?;
    let row =
        |what: &str, value| Row { what: what.to_owned(), value: Some(value), unit: "GB/s", ..Row::default() };
    let failures = if read.valid { Vec::new() } else { vec!["the sums came out wrong".to_owned()] };
    let rows = vec![row("copy", read.copy), row("triad", read.triad)];
    Ok(NodeOutput { program: "STREAM", version: None, rows, failures })
}

fn disks(text: &str) -> Result<NodeOutput, NoResult> {
    let read = fio::read(text)?;
    let mut output = NodeOutput { program: "fio", version: read.version, ..NodeOutput::default() };
    for (name, side) in [("read", read.read), ("write", read.write)] {
        let Some(side) = side else { continue };
        let row =
            |what: &str, value, unit| Row { what: format!("{name}, {what}"), value, unit, ..Row::default() };
        output.rows.push(row("rate", Some(side.rate_gb_s), "GB/s"));
        output.rows.push(row("operations", Some(side.operations), "1/s"));
        output.rows.push(row("latency, 99th percentile", side.p99_us, "us"));
    }
    if read.errors > 0 {
        output.failures.push(format!("{} jobs ended with an error of the disk", read.errors));
    }
    Ok(output)
}

/// How often each Xid stands in a log of the kernel, by device.
fn kernel(text: &str) -> Result<NodeOutput, NoResult> {
    let mut all: BTreeMap<(&str, &str, u32), u32> = BTreeMap::new();
    for line in text.lines() {
        let Some((before, rest)) = line.split_once("Xid (") else { continue };
        let Some((device, rest)) = rest.split_once("): ") else { continue };
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let Ok(number) = rest[..digits].parse::<u32>() else { continue };
        let kind = if before.ends_with('S') { "SXid" } else { "Xid" };
        *all.entry((kind, device, number)).or_default() += 1;
    }
    if all.is_empty() {
        return Err("no line of an Xid is complete".to_owned());
    }
    let row = |((kind, device, number), times): ((&str, &str, u32), u32)| Row {
        what: format!("{kind} {number} of {device}"),
        value: Some(f64::from(times)),
        unit: "lines",
        ..Row::default()
    };
    Ok(NodeOutput { program: KERNEL, rows: all.into_iter().map(row).collect(), ..NodeOutput::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xids_are_counted_by_device_and_number() {
        let text = "[1.0] NVRM: Xid (PCI:0000:53:00): 48, pid=1, name=x, DBE\n\
                    NVRM: Xid (PCI:0000:53:00): 48, again\n\
                    nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48\n\
                    NVRM: Xid (PCI:0000:53:00): cut";
        let rows: Vec<(String, Option<f64>)> =
            read(text).expect("read").rows.into_iter().map(|row| (row.what, row.value)).collect();
        let expected = [("SXid 20034 of PCI:0000:06:00.0", 1.0), ("Xid 48 of PCI:0000:53:00", 2.0)];
        assert_eq!(rows, expected.map(|(what, value)| (what.to_owned(), Some(value))));
        assert!(read("NVRM: Xid (PCI:").is_err());
    }

    #[test]
    fn what_is_not_read_is_refused_by_name() {
        let why = |text: &str| read(text).expect_err("refused");
        assert_eq!(why(" \n"), "it is empty");
        assert!(why("hello").starts_with("no output of `dcgmi diag`, nvbandwidth, gpu_burn, STREAM or fio"));
        assert_eq!(
            why("====NVSMI LOG====\n"),
            "`nvidia-smi -q`: not read; `harness inventory probe` reads the state of GPUs itself"
        );
        assert_eq!(why("{\"DCGM Diagnostic\": "), "the JSON of dcgmi is cut off");
    }
}
