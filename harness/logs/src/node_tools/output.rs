//! The output of any program that tests one node: it is recognised by texts that only this program prints, and its
//! results are rows. What is known and not read is refused by name.

use super::dcgm::{self, Status};
use super::nvbandwidth::{Matrix, NoRates};
use super::{
    NoResult, fabric_manager, fio, gpu_burn, gpu_query, kernel, kernel_firmware, kernel_hardware, labels,
    nvbandwidth, stream, topology,
};
use serde::Serialize;

/// What a program printed.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct NodeOutput {
    /// The label that a launcher put before its lines: a node or a task; empty where none did.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub who: String,
    /// As people call it: `dcgmi diag`.
    pub program: &'static str,
    /// Of the program, where it is printed.
    pub version: Option<String>,
    /// In the order of the output.
    pub rows: Vec<Row>,
    /// What the program itself calls a failure, one line each.
    pub failures: Vec<String>,
    /// What is missing or contradictory: without a failure it is no pass either.
    pub findings: Vec<String>,
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

/// Whose lines of Xids are counted; those that may be of a program are not judged.
pub const KERNEL: &str = "the kernel";

type Read = fn(&str) -> Result<NodeOutput, NoResult>;

/// Whether a text is of the program.
type Knows = fn(&str) -> bool;

/// Programs by what only their output has.
const PROGRAMS: [(Knows, Read); 11] = [
    (
        |text| has_any(text, &[&["DCGM Diagnostic\""], &["DCGM GPU Diagnostic\""]]) || dcgm::is_table(text),
        diagnosis,
    ),
    (
        |text| {
            has_key(text, "\"nvbandwidth\"")
                || has_any(text, &[&["nvbandwidth Version:"], &["memcpy", "bandwidth (GB/s)"]])
        },
        copies,
    ),
    (|text| text.contains("\"fio version\""), disks),
    (|text| has_any(text, &[&["STREAM version", "Best Rate"]]), memory),
    (|text| has_any(text, &[&["proc'd:", "errors:"], &["Tested ", " GPUs:", "GPU 0: "]]), burn),
    (
        |text| {
            has_any(
                text,
                &[
                    &["Xid (PCI:"],
                    &["NVRM:", kernel::LOST],
                    &["NVRM:", kernel::NOT_STARTED],
                    &["NVRM:", kernel::FAILED_STARTS[0]],
                    &["NVRM:", kernel::FAILED_STARTS[1]],
                    &["NVRM:", kernel::OF_GSP],
                    &["NVRM:", kernel::ANSWERS[0]],
                    &["NVRM:", kernel::ANSWERS[1]],
                ],
            )
        },
        kernel::read,
    ),
    (
        |text| {
            has_any(
                text,
                &[
                    &["detected NVSwitch ", " pci bus id "],
                    &["Fabric Manager Log initializing"],
                    &["configured all the available NVSwitches"],
                    &["NVSwitch driver failed with error"],
                    &["] [tid ", "NVSwitch"],
                    &["] [tid ", "multicast team"],
                ],
            )
        },
        fabric_manager::read,
    ),
    (kernel_hardware::is_in, kernel_hardware::read),
    (kernel_firmware::is_in, kernel_firmware::read),
    (|text| has_any(text, &[&["=NVSMI LOG="], &["<nvidia_smi_log"]]), gpu_query::read),
    (|text| text.lines().any(topology::is_head), topology::read),
];

/// Whether all texts of one of the lists are in a text.
fn has_any(text: &str, any: &[&[&str]]) -> bool {
    any.iter().any(|all| all.iter().all(|one| text.contains(one)))
}

/// Whether a name of a JSON is this one; DCGM has a test that is called like the program.
fn has_key(text: &str, key: &str) -> bool {
    text.split(key).skip(1).any(|rest| rest.trim_start().starts_with(':'))
}

/// What is known and not read: its texts, what it is, and what to do.
const OTHERS: [(&[&str], &str, &str); 45] = [
    (&["| NVIDIA-SMI "], "`nvidia-smi`", PROBE),
    (&["UUID: GPU-", "Link 0:"], "`nvidia-smi nvlink`", LINKS),
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
    (&["NvLink Link Status"], "`dcgmi nvlink -s`", LINKS),
    (&["GPUs found.", "GPU ID"], "`dcgmi discovery`", PROBE),
    (
        &["Health Monitor Report"],
        "`dcgmi health`",
        "suites `node-*` read errors of GPUs and the kernel's log",
    ),
    (&["|-----  Execution Stats"], "`dcgmi stats`", "suites `node-*` read GPUs while a load runs"),
    (&["NIC statistics:"], "`ethtool -S`", "`harness logs efa` reads counters of EFA devices"),
    (&["CA '", "CA type:", "Port 1:"], "`ibstat`", LINKS),
    (&["smartctl", "smart_status"], "smartctl", "use fio for disks"),
    (&["smartctl", "www.smartmontools.org"], "smartctl", "use fio for disks"),
    // The names of its other values differ between its text, its JSON and smartctl's.
    (&["critical_warning", "host_read_commands"], "`nvme smart-log`", "use fio for disks"),
    (
        &["Python v", "Thread ", "): \"MainThread\""],
        "`py-spy dump`",
        "`harness logs flight-recorder` reads where ranks wait",
    ),
    (&["LnkCap:"], "`lspci -vv`", "suites `node-*` read PCIe links under load"),
    (&["LnkSta:"], "`lspci -vv`", "suites `node-*` read PCIe links under load"),
    (&["link ", " physical_state "], "`rdma link`", LINKS),
    (&["-I- Stage"], "ibdiagnet", LINKS),
    (&["provider: ", "protocol: FI_"], "`fi_info`", "`harness inventory probe` lists devices of EFA itself"),
    (&["available: ", "node distances:"], "`numactl -H`", HOST),
    (&["# OSU MPI"], "OSU's micro-benchmarks", "`harness logs nccl-tests` reads nccl-tests"),
    (&["NodeName=", "CPUAlloc="], "`scontrol show node`", SLURM),
    (&["JobID|"], "`sacct -P`", SLURM),
    (&["JobID ", " State ", "------------ "], "`sacct`", SLURM),
    (&["PARTITION ", "AVAIL ", "NODELIST"], "`sinfo`", SLURM),
    (&["REASON ", "NODELIST"], "`sinfo -R`", SLURM),
    (
        &["Conditions:", "LastHeartbeatTime"],
        "`kubectl describe node`",
        "`harness inventory discover --via kubernetes` asks the cluster itself",
    ),
    (&["# TYPE DCGM_FI_"], "metrics of dcgm-exporter", PROBE),
    (&["Reference ID", "Leap status"], "`chronyc tracking`", HOST),
    (&["Architecture:", "CPU op-mode"], "lscpu", HOST),
    (&["hca_id:", "phys_port_cnt:"], "`ibv_devinfo`", LINKS),
    (&["<topology", "hwloc"], "hwloc's topology", "it holds no result"),
    (&["<system version="], "NCCL's topology file", "it holds no result"),
    (&["[CUDA Bandwidth Test]"], "CUDA's bandwidthTest", "use nvbandwidth"),
    (&["P2P Connectivity Matrix"], "CUDA's p2pBandwidthLatencyTest", "use nvbandwidth"),
    (&["Gflops/s (min:"], "gpu-fryer", "use gpu-burn"),
    (&["HPLinpack "], "HPL", PRODUCTS),
    (&["HPL-NVIDIA "], "HPL", PRODUCTS),
    (&["HPCG result is "], "HPCG", "use nvbandwidth and STREAM for memory"),
    (
        &["STREAM Benchmark", "Buffer size(bytes)"],
        "gpustream",
        "use nvbandwidth for copies; STREAM is for memory of the host",
    ),
    (&["\"sum_received\"", "\"bits_per_second\""], "iperf3", "a case of kind `iperf3` runs and reads it"),
    (&["stress-ng: ", "bogo ops"], "stress-ng", "a case of kind `stress-ng` runs and reads it"),
    (&["#sent", "usec/xfer"], "fi_pingpong", "a case of kind `nic-latency` runs and reads it"),
    (&["BW peak", "BW average"], "perftest", "`nic-pairs` in a suite runs and reads it"),
    (
        &["/hca_type:", "/ports/"],
        "files of /sys/class/infiniband",
        "`harness logs efa` reads counters of EFA devices",
    ),
];

const PRODUCTS: &str = "use gpu-burn, whose products show the rate and the errors of each GPU";
const LINKS: &str = "suites `node-*` read the state of links before and after a load";
const HOST: &str = "`harness inventory probe` reads processors and the clock itself";
const SLURM: &str = "`harness inventory discover` and runs over Slurm ask it themselves";
const PROBE: &str = "`harness inventory probe` reads the state of GPUs itself";

/// What each program in a text printed, by label; an error that says why there is nothing.
pub fn read(text: &str) -> Result<Vec<NodeOutput>, NoResult> {
    if text.trim().is_empty() {
        return Err("it is empty".to_owned());
    }
    let (mut outputs, mut refused) = (Vec::new(), Vec::new());
    for (who, text) in labels::by_label(text) {
        for (_, read) in PROGRAMS.iter().filter(|(is_its, _)| is_its(&text)) {
            match read(&text) {
                Ok(output) => outputs.push(NodeOutput { who: who.clone(), ..output }),
                Err(why) => refused.push((who.clone(), why)),
            }
        }
    }
    // What of one program is not read beside what of another is, is no pass.
    match (outputs.first_mut(), refused.first()) {
        (Some(output), Some(_)) => {
            let more = refused.iter().map(|(who, why)| match who.is_empty() {
                true => format!("also in the file, and not read: {why}"),
                false => format!("also in the file, from {who}, and not read: {why}"),
            });
            output.findings.extend(more.take(MOST_REFUSED));
            Ok(outputs)
        }
        (Some(_), None) => Ok(outputs),
        (None, Some((_, why))) => Err(why.clone()),
        (None, None) => Err(match OTHERS.iter().find(|(all, ..)| has_any(text, &[*all])) {
            Some((_, what, instead)) => format!("{what}: not read; {instead}"),
            None => "no output of `dcgmi diag`, nvbandwidth, gpu_burn, STREAM or fio, and no line of an Xid"
                .to_owned(),
        }),
    }
}

/// Of parts of one file.
const MOST_REFUSED: usize = 16;

fn diagnosis(text: &str) -> Result<NodeOutput, NoResult> {
    let read = dcgm::read(text)?;
    let mut output = NodeOutput { program: "dcgmi diag", version: read.version, ..NodeOutput::default() };
    for result in read.results {
        let word = match result.status {
            Status::Skip => "not run",
            Status::Pass => "pass",
            Status::Warn => "warning",
            Status::Fail => "fail",
            Status::Unmeasured => "not measured",
        };
        let gpu = result.gpu.filter(|_| !result.is_of_node());
        let gpu = gpu.map_or("the node".to_owned(), |gpu| format!("GPU {gpu}"));
        let why = result.why.first().map(|why| format!(": {why}")).unwrap_or_default();
        match result.status {
            Status::Fail => output.failures.push(format!("{} failed on {gpu}{why}", result.test)),
            Status::Unmeasured => {
                output.findings.push(format!("{} measured nothing on {gpu}{why}", result.test));
            }
            Status::Skip | Status::Pass | Status::Warn => {}
        }
        output.rows.push(Row {
            what: result.test,
            gpu: result.gpu,
            result: word.to_owned(),
            ..Row::default()
        });
    }
    let incomplete = read.incomplete.map(|what| format!("{what}: tests may be missing"));
    output.findings.extend(incomplete);
    Ok(output)
}

fn copies(text: &str) -> Result<NodeOutput, NoResult> {
    let read = nvbandwidth::read(text)?;
    let mut output = NodeOutput { program: "nvbandwidth", version: read.version, ..NodeOutput::default() };
    for test in read.tests {
        match test.rates {
            Ok(rates) => output.rows.extend(least_and_most(&test.name, &rates)),
            Err(why) => {
                match &why {
                    NoRates::Waived => {}
                    NoRates::Failed(why) => output.failures.push(format!("{}: {why}", test.name)),
                    NoRates::Unclear(why) => output.findings.push(format!("{}: {why}", test.name)),
                }
                output.rows.push(Row {
                    what: test.name,
                    result: format!("not measured: {why}"),
                    ..Row::default()
                });
            }
        }
    }
    output.failures.extend(read.errors);
    Ok(output)
}

fn least_and_most(test: &str, rates: &Matrix) -> Vec<Row> {
    let mut values: Vec<f64> = rates.iter().flatten().flatten().copied().collect();
    values.sort_by(f64::total_cmp);
    // As the tests are called that measure one: `host_device_latency_sm`.
    let unit = if test.contains("latency") { "ns" } else { "GB/s" };
    let row = |which: &str, value: Option<&f64>| Row {
        what: format!("{test}, {which} of {}", values.len()),
        value: value.copied(),
        unit,
        ..Row::default()
    };
    match values.len() {
        0 => vec![Row { what: test.to_owned(), result: "no pair of GPUs".to_owned(), ..Row::default() }],
        1 => vec![Row { what: test.to_owned(), value: values.first().copied(), unit, ..Row::default() }],
        _ => vec![row("least", values.first()), row("most", values.last())],
    }
}

fn burn(text: &str) -> Result<NodeOutput, NoResult> {
    let read = gpu_burn::read(text.as_bytes()).map_err(|error| error.to_string())??;
    let mut output = NodeOutput { program: "gpu_burn", ..NodeOutput::default() };
    output.failures.extend(read.error.clone());
    let is_closed = read.gpus.iter().any(|gpu| gpu.ok.is_some());
    if !is_closed {
        output
            .findings
            .push("it has no closing lines: it did not come to its end, or the output is cut".to_owned());
    }
    for (number, gpu) in (0..).zip(&read.gpus) {
        let rates: Vec<f64> = gpu.rates.iter().flatten().copied().collect();
        let mean = rates.iter().sum::<f64>() / rates.len().max(1) as f64 / 1000.0;
        let failure = match (gpu.died, gpu.is_wrong(), gpu.ok) {
            (true, ..) => Some("ended before the others"),
            (false, false, _) if gpu.stopped.is_some() => Some("finished nothing any more while others did"),
            (false, false, None) if is_closed => Some("has no closing line"),
            (false, true, _) => Some("computed wrong products"),
            (false, false, Some(false)) => Some("is faulty by its closing line"),
            _ => None,
        };
        output.failures.extend(failure.map(|why| format!("GPU {number} {why}")));
        // A process that never began, or a run that printed no progress, shows nothing of the GPU.
        let is_unmeasured = failure.is_none() && !gpu.computed();
        if is_unmeasured {
            output.findings.push(format!("GPU {number} is not measured: it finished no product"));
        }
        let result = match (failure, gpu.ok) {
            (Some(why), _) => why.to_owned(),
            (None, _) if is_unmeasured => "not measured".to_owned(),
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
    Ok(NodeOutput { program: "STREAM", rows, failures, ..NodeOutput::default() })
}

fn disks(text: &str) -> Result<NodeOutput, NoResult> {
    let groups = fio::read_groups(text)?;
    let mut output = NodeOutput { program: "fio", ..NodeOutput::default() };
    let is_one = groups.len() == 1;
    for (group, read) in groups {
        let group = if is_one { String::new() } else { format!("{group}, ") };
        for (name, side) in [("read", read.read), ("write", read.write)] {
            let Some(side) = side else { continue };
            let row = |what: &str, value, unit| Row {
                what: format!("{group}{name}, {what}"),
                value,
                unit,
                ..Row::default()
            };
            output.rows.push(row("rate", Some(side.rate_gb_s), "GB/s"));
            output.rows.push(row("operations", Some(side.operations), "1/s"));
            output.rows.push(row("latency, 99th percentile", side.p99_us, "us"));
        }
        if read.errors > 0 {
            output.failures.push(format!("{group}{} jobs had an error of the disk", read.errors));
        }
        output.version = read.version;
    }
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_read_is_refused_by_name() {
        let why = |text: &str| read(text).expect_err("refused");
        assert_eq!(why(" \n"), "it is empty");
        assert!(why("hello").starts_with("no output of `dcgmi diag`, nvbandwidth, gpu_burn, STREAM or fio"));
        assert_eq!(
            why("| NVIDIA-SMI 550.90.07   Driver Version: 550.90.07   CUDA Version: 12.4 |\n"),
            "`nvidia-smi`: not read; `harness inventory probe` reads the state of GPUs itself"
        );
        for (text, what) in [
            ("{\"end\": {\"sum_received\": {\"bits_per_second\": 1}}}", "iperf3: not read; "),
            ("stress-ng: metrc: [1] stressor       bogo ops real time\n", "stress-ng: not read; "),
            (
                "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n",
                "fi_pingpong: not read; ",
            ),
            ("NIC statistics:\n     tx_packets: 7\n", "`ethtool -S`: not read; "),
            ("CA 'mlx5_0'\n\tCA type: MT4129\n\tPort 1:\n\t\tState: Active\n", "`ibstat`: not read; "),
            (
                "{\"smartctl\": {\"version\": [7, 4]}, \"smart_status\": {\"passed\": true}}",
                "smartctl: not read; ",
            ),
            (
                "{\"critical_warning\":0,\"percent_used\":3,\"host_read_commands\":7}",
                "`nvme smart-log`: not read; ",
            ),
            (
                "smartctl 7.4 2023-08-01\nCopyright (C) 2002-23, www.smartmontools.org\n",
                "smartctl: not read; ",
            ),
            (
                "Process 7: python train.py\nPython v3.10.12\n\nThread 7 (idle): \"MainThread\"\n",
                "`py-spy dump`: not read; ",
            ),
            ("| Health Monitor Report |\n", "`dcgmi health`: not read; "),
            ("\t\tLnkSta:\tSpeed 16GT/s (downgraded), Width x8 (downgraded)\n", "`lspci -vv`: not read; "),
            ("link mlx5_1/1 state DOWN physical_state DISABLED netdev eth1\n", "`rdma link`: not read; "),
            (
                "-I- Stage        Warnings   Errors     Comment\n-I- Discovery  0   0\n",
                "ibdiagnet: not read; ",
            ),
            (
                "provider: efa\n    fabric: efa\n    domain: rdmap79s0-rdm\n    protocol: FI_PROTO_EFA\n",
                "`fi_info`: not read; ",
            ),
            (
                "available: 2 nodes (0-1)\nnode 0 cpus: 0 1\nnode distances:\nnode   0   1\n",
                "`numactl -H`: not read; ",
            ),
            (
                "# OSU MPI-CUDA Bandwidth Test v7.3\n# Size   Bandwidth (MB/s)\n",
                "OSU's micro-benchmarks: not read; ",
            ),
            ("NodeName=p5-001 Arch=x86_64\n   CPUAlloc=0 CPUTot=192\n", "`scontrol show node`: not read; "),
            ("JobID|JobName|State\n7|train|FAILED\n", "`sacct -P`: not read; "),
            (
                "JobID         State ExitCode\n------------ ---------- --------\n7     NODE_FAIL 1:0\n",
                "`sacct`: not read; ",
            ),
            (
                "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\ngpu up 1 fail* p5-001\n",
                "`sinfo`: not read; ",
            ),
            (
                "REASON   USER  TIMESTAMP  NODELIST\nKill task failed root Unknown p5-001\n",
                "`sinfo -R`: not read; ",
            ),
            (
                "Conditions:\n  Type   Status  LastHeartbeatTime\n  Ready  False  Mon\n",
                "`kubectl describe node`: not read; ",
            ),
            (
                "# TYPE DCGM_FI_DEV_XID_ERRORS gauge\nDCGM_FI_DEV_XID_ERRORS{gpu=\"0\"} 79\n",
                "metrics of dcgm-exporter: not read; ",
            ),
            ("Reference ID    : A9FEA97B\nLeap status     : Normal\n", "`chronyc tracking`: not read; "),
            ("Architecture: x86_64\n  CPU op-mode(s): 32-bit, 64-bit\n", "lscpu: not read; "),
            ("hca_id:\trdmap79s0\n\tphys_port_cnt:\t1\n", "`ibv_devinfo`: not read; "),
            (
                "HPLinpack 2.3  --  High-Performance Linpack benchmark  --   December 2, 2018\n",
                "HPL: not read; ",
            ),
            (
                "[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\nP2P Connectivity Matrix\n     D\\D     0     1\n",
                "CUDA's p2pBandwidthLatencyTest: not read; ",
            ),
            ("Final Summary::HPCG result is VALID with a GFLOP/s rating of=5.99649\n", "HPCG: not read; "),
            ("| GPU ID: 0 |\n|-----  Execution Stats  ---+\n", "`dcgmi stats`: not read; "),
        ] {
            assert!(why(text).starts_with(what), "{text}");
        }
        assert_eq!(why("{\"DCGM Diagnostic\": "), "the JSON of dcgmi is cut off");
    }

    /// As in https://github.com/wilicc/gpu-burn/issues/123
    #[test]
    fn an_error_of_gpu_burn_is_a_failure_though_its_closing_lines_are_good() {
        let text = "Couldn't init a GPU test: Error: CUDA_ERROR_UNKNOWN\n\
                    100.0%  proc'd: 0 (0 Gflop/s)   errors: 0   temps: 41 C\nKilling processes.. done\n\n\
                    Tested 1 GPUs:\n\tGPU 0: OK\n";
        let outputs = read(text).expect("read");
        assert_eq!(outputs[0].failures, ["Couldn't init a GPU test: Error: CUDA_ERROR_UNKNOWN"]);
        assert_eq!(outputs[0].findings, ["GPU 0 is not measured: it finished no product"]);
    }
}
