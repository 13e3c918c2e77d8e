//! Why a flow has no rate, and what installs its tool: every message.

use super::{Tool, read};

const FABTESTS: &str = "---\nfi_rma_bw -e rdm -m -p efa :\n- { xfer_size: 1048576, iterations: 60000, \
    total: 62914560000, time: 5.242880, MB/sec: 12000.000000, usec/xfer: 87.381332, Mxfers/sec: 0.011444 }\n";
const TABLE: &str = "bytes   iters   total       time     MB/sec    usec/xfer   Mxfers/sec\n\
    1m      60k     58g         5.24s  12000.00      87.38       0.01\n";
const PERFTEST: &str = " #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]\n \
    1048576    5000             15128.13            15121.79\t\t   0.015122\n";

#[test]
fn messages() {
    let texts = [
        ("nothing", String::new()),
        ("no tool", "tool-missing fi_rma_bw p5-002\n".to_owned()),
        ("no tool, no node", "tool-missing ib_write_bw\n".to_owned()),
        ("refused", "tool-refused ib_write_bw on p5-001: SRD connection only possible\n".to_owned()),
        ("not started", "not-started server p5-001 was not ready after 60 s\n".to_owned()),
        ("gave up", "not-connected no rate in 60 s, attempts: 3, last status: 124\n".to_owned()),
        ("tool gave up", "Couldn't connect to p5-001:18600\n".to_owned()),
        ("prose", "hello\n".to_owned()),
        ("cut before the rate", "---\nfi_rma_bw -m :\n".to_owned()),
        ("cut within the rate", FABTESTS.trim_end().to_owned()),
        ("two rates", format!("{FABTESTS}{FABTESTS}")),
        ("fabtests: no brace", FABTESTS.replace(" }", "")),
        ("fabtests: no field", FABTESTS.replace("MB/sec", "GB/sec")),
        ("fabtests: rate that is no number", FABTESTS.replace("12000.000000", "fast")),
        ("fabtests: size that is no number", FABTESTS.replace("xfer_size: 1048576", "xfer_size: 1m")),
        ("fabtests: negative rate", FABTESTS.replace("12000.000000", "-1")),
        ("fabtests: no time", FABTESTS.replace("5.242880", "0")),
        ("fabtests: no message", FABTESTS.replace("iterations: 60000", "iterations: 0")),
        ("fabtests: another rate", FABTESTS.replace("time: 5.2", "time: 4.2")),
        ("table: no column", TABLE.replace("iters", "count")),
        ("table: negative count", TABLE.replace("60k", "-1k")),
        ("perftest: another unit", PERFTEST.replace("average[MiB/sec]", "average[KB/sec]")),
        ("perftest: wrong unit", PERFTEST.replace("MiB/sec", "Gb/sec")),
        ("perftest: no average", PERFTEST.replace("BW average[MiB/sec]", "BW")),
        ("perftest: two ports", PERFTEST.replace("MsgRate", "MsgRate-Port1")),
        ("perftest: short row", PERFTEST.replace("15121.79\t\t   0.015122", "")),
        ("perftest: no iterations", PERFTEST.replace("5000", "many")),
        ("perftest: no rate", PERFTEST.replace("15121.79", "0.00")),
    ];
    let gap = |(what, text): &(&str, String)| {
        let gap = read(text.as_bytes(), "rdmap79s0.out").expect_err(what);
        format!("{what}: {}: {gap}", gap.kind())
    };
    let mut lines: Vec<String> = texts.iter().map(gap).collect();
    let tools = [Tool::FiRmaBw, Tool::IbWriteBw];
    lines.extend(tools.map(|tool| format!("to install {}: {}", tool.name(), tool.to_install())));
    insta::assert_snapshot!(lines.join("\n"));
}
