//! `harness logs efa`: the counters of EFA devices since their driver was loaded, as printed on a node. Crate `logs` reads
//! the text.

use super::{bytes, visible, write_json};
use base::text::count;
use clap::{ArgAction, Args};
use logs::efa_counters::{MOST_BYTES, Totals, read_totals};
use model::exit_code;
use std::io::{self, Write};
use std::path::PathBuf;

/// Arguments of `harness logs efa`.
#[derive(Debug, Args)]
pub(crate) struct EfaArgs {
    /// Output of `rdma -p statistic show`, of `more /sys/class/infiniband/*/ports/1/hw_counters/* | cat`, of a node
    /// exporter, or a list of `name :value`; also packed by gzip; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// `text`, or `json`: one object per file
    #[arg(long = "format", value_name = "FORMAT", default_value = "text", value_parser = crate::logs::is_json, action = ArgAction::Set)]
    json: bool,
}

/// Prints every file. The exit code is 2 where one cannot be opened, then 3 where one has no counters.
pub(crate) fn run(args: &EfaArgs, out: &mut dyn Write, err: &mut dyn Write) -> i32 {
    let (mut all_open, mut all_read) = (true, true);
    for path in &args.files {
        let file = path.display().to_string();
        let bytes = match bytes(path, MOST_BYTES) {
            Ok(bytes) => bytes,
            Err(error) => {
                all_open = false;
                // A closed stderr is no error of the verb.
                let _ = writeln!(err, "{}: cannot be read: {error}", visible(&file));
                continue;
            }
        };
        match read_totals(&bytes, &file) {
            Ok(devices) => {
                let _ = match args.json {
                    true => write_json(out, &file, &Devices { devices: &devices }),
                    false => write(out, &file, &devices),
                };
            }
            Err(why) => {
                all_read = false;
                let _ = writeln!(err, "{}", visible(&why.to_string()));
            }
        }
    }
    match (all_open, all_read) {
        (false, _) => exit_code::USAGE,
        (true, false) => exit_code::INCONCLUSIVE,
        (true, true) => exit_code::PASSED,
    }
}

#[derive(serde::Serialize)]
struct Devices<'a> {
    devices: &'a [Totals],
}

/// Counters of traffic always, all others where they are not 0.
fn write(out: &mut dyn Write, file: &str, devices: &[Totals]) -> io::Result<()> {
    let (file, all) = (visible(file), count(devices.len(), "device"));
    writeln!(out, "{file}: {all}, counters since the driver was loaded")?;
    for device in devices {
        let name = if device.device.is_empty() { "unnamed device" } else { &device.device };
        writeln!(out, "  {}", visible(name))?;
        let is_traffic = |counter: &str| counter.ends_with("_bytes") || counter.ends_with("_pkts");
        for (counter, value) in device.counters.iter().filter(|(name, value)| is_traffic(name) || **value > 0)
        {
            writeln!(out, "    {:<28} {value:>20}", visible(counter))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::testing;

    fn show(texts: &[&[u8]], flags: &[&str]) -> (i32, String, String) {
        testing::show(run, texts, flags)
    }

    const STATISTIC: &[u8] =
        b"link rdmap16s27/1\n    tx_bytes 1047394519620\n    rx_bytes 7\n    rx_drops 3\n    send_wrs 0\n";

    #[test]
    fn counters_are_shown_for_each_device() {
        let (code, out, err) = show(&[STATISTIC], &[]);
        assert_eq!((code, err.as_str()), (0, ""));
        insta::assert_snapshot!(out, @r"
        1.log: 1 device, counters since the driver was loaded
          rdmap16s27
            rx_bytes                                        7
            rx_drops                                        3
            tx_bytes                            1047394519620
        ");
        let (_, out, _) = show(&[STATISTIC], &["--format", "json"]);
        let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        assert_eq!(report["devices"][0]["counters"]["send_wrs"], 0);
    }

    #[test]
    fn a_text_without_counters_is_exit_3_and_a_file_that_is_not_there_exit_2() {
        let (code, _, err) = show(&[b"prose\n"], &[]);
        assert_eq!(
            (code, err.as_str()),
            (3, "1.log:1: no EFA counters; expected the output of `rdma -p statistic show`\n")
        );
        let (code, out, _) = show(&[STATISTIC], &["/no/such/file"]);
        assert!(code == 2 && out.contains("rdmap16s27"), "{out}");
    }
}
