//! `harness logs node`: what programs printed that test one node. Crate `logs` reads it.

use super::{bytes, is_json, visible, write_json, write_more};
use base::text::{count, shorten, show};
use clap::{ArgAction, Args};
use logs::node_tools::output::{self, KERNEL, NodeOutput, Row};
use model::exit_code;
use std::io::{self, Write};
use std::path::PathBuf;

/// More than that no such program prints.
const MOST_BYTES: usize = 64 << 20;
/// Rows of a file that a person is shown.
const MOST_ROWS: usize = 40;
const LINE_LETTERS: usize = 120;

/// Arguments of `harness logs node`.
#[derive(Debug, Args)]
pub(crate) struct NodeArgs {
    /// What `dcgmi diag`, nvbandwidth, gpu_burn, STREAM, fio, `nvidia-smi -q [-x]` or `nvidia-smi topo -m` printed, the log of
    /// Fabric Manager, or a kernel log with Xids, lost GPUs or memory errors; several of them may be in one file, of several
    /// nodes too; also packed by gzip; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// `text`, or `json`: one object per program and node of a file
    #[arg(long = "format", value_name = "FORMAT", default_value = "text", value_parser = is_json, action = ArgAction::Set)]
    json: bool,
    /// Exit with 1 if a program reports a failure, or a finding says that its output is incomplete
    #[arg(long)]
    fail_on_findings: bool,
}

/// Prints what each file holds, and gives the exit code.
pub(crate) fn run(args: &NodeArgs, out: &mut dyn Write, err: &mut dyn Write) -> i32 {
    let mut code = exit_code::PASSED;
    let (mut is_absent, mut has_failed) = (false, false);
    for path in &args.files {
        let file = path.display().to_string();
        let bytes = match bytes(path, MOST_BYTES) {
            Ok(bytes) => bytes,
            Err(error) => {
                is_absent = true;
                // A closed stderr is no error of the verb.
                let _ = writeln!(err, "{}: cannot be read: {error}", visible(&file));
                continue;
            }
        };
        let read = match bytes.len() > MOST_BYTES {
            true => Err(format!("larger than {} MiB", MOST_BYTES >> 20)),
            false => output::read(&String::from_utf8_lossy(&bytes)),
        };
        match read {
            Ok(outputs) => {
                for read in &outputs {
                    has_failed |= !read.failures.is_empty() || !read.findings.is_empty();
                    let _ = if args.json { write_json(out, &file, read) } else { write(out, &file, read) };
                }
            }
            Err(why) => {
                code = exit_code::INCONCLUSIVE;
                let _ = writeln!(err, "{}: {}", visible(&file), visible(&why));
            }
        }
    }
    match () {
        () if is_absent => exit_code::USAGE,
        () if args.fail_on_findings && has_failed => exit_code::FAILED,
        () => code,
    }
}

fn write(out: &mut dyn Write, file: &str, read: &NodeOutput) -> io::Result<()> {
    let version = read.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
    let failures = match read.failures.len() {
        0 if !read.findings.is_empty() => "no failure, but incomplete".to_owned(),
        0 if read.program == KERNEL => "not judged".to_owned(),
        0 => "no failure".to_owned(),
        failures => count(failures, "failure"),
    };
    let rows = count(read.rows.len(), "row");
    let who = if read.who.is_empty() { String::new() } else { format!("{}: ", read.who) };
    let head = format!("{file}: {who}{}{version}: {rows}, {failures}", read.program);
    writeln!(out, "{}", show(&head))?;
    for row in read.rows.iter().take(MOST_ROWS) {
        writeln!(out, "{}", shorten(&show(&format!("  {}", line(row))), LINE_LETTERS))?;
    }
    write_more(out, read.rows.len().saturating_sub(MOST_ROWS))?;
    for failure in &read.failures {
        writeln!(out, "{}", shorten(&show(&format!("  failure: {failure}")), LINE_LETTERS))?;
    }
    for finding in &read.findings {
        writeln!(out, "{}", shorten(&show(&format!("  finding: {finding}")), LINE_LETTERS))?;
    }
    Ok(())
}

fn line(row: &Row) -> String {
    let gpu = row.gpu.map(|gpu| format!("GPU {gpu} ")).unwrap_or_default();
    let value = row.value.map(|value| match row.unit {
        "lines" => count(value as u64, "line"),
        unit => format!("{} {unit}", rounded(value)),
    });
    let parts: Vec<String> =
        value.into_iter().chain(Some(row.result.clone()).filter(|result| !result.is_empty())).collect();
    format!("{gpu}{}: {}", row.what, parts.join(", "))
}

/// With as many digits as a person compares.
fn rounded(value: f64) -> String {
    if value.abs() >= 100.0 || value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::testing;

    fn show_files(texts: &[&[u8]], flags: &[&str]) -> (i32, String, String) {
        testing::show(run, texts, flags)
    }

    const DIAGNOSIS: &str = r#"{"DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": [{"name": "memory",
        "results": [{"entity_group": "GPU", "entity_id": 3, "status": "Fail", "warnings": [{"warning": "page \u001b[31m bad"}]}]}]}]}}"#;

    #[test]
    fn failures_are_shown_and_fail_where_that_is_asked_for() {
        let (code, out, err) = show_files(&[DIAGNOSIS.as_bytes()], &[]);
        assert_eq!((code, err.as_str()), (exit_code::PASSED, ""));
        assert!(out.starts_with("1.log: dcgmi diag: 1 row, 1 failure\n  GPU 3 memory: fail\n  failure: memory failed on GPU 3: page "), "{out}");
        assert!(!out.contains('\x1b'), "{out:?}");
        assert_eq!(show_files(&[DIAGNOSIS.as_bytes()], &["--fail-on-findings"]).0, exit_code::FAILED);
    }

    #[test]
    fn what_is_not_read_is_inconclusive_and_what_is_absent_wrong_usage() {
        let (code, out, err) = show_files(&[b"hello", DIAGNOSIS.as_bytes()], &[]);
        assert_eq!(code, exit_code::INCONCLUSIVE);
        assert!(err.starts_with("1.log: no output of `dcgmi diag`"), "{err}");
        assert!(out.starts_with("2.log: dcgmi diag"), "{out}");
    }

    #[test]
    fn every_program_and_node_of_a_file_is_shown() {
        let text = "n-1: Running a.\nn-1: memcpy CE bandwidth (GB/s)\nn-1:  0\nn-1: 0 55.10\nn-1: SUM a 55.10\n\
                    n-2: Running a.\nn-2: memcpy CE bandwidth (GB/s)\nn-2:  0\nn-2: 0 54.10\n\
                    [3.5] NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.\n";
        let (code, out, err) = show_files(&[text.as_bytes()], &["--fail-on-findings"]);
        let expected = "1.log: the kernel: 1 row, 1 failure\n  fallen off the bus: 0000:3b:00: 1 line\n  \
                        failure: 0000:3b:00 has fallen off the bus\n\
                        1.log: n-1: nvbandwidth: 1 row, no failure\n  a: 55.10 GB/s\n\
                        1.log: n-2: nvbandwidth: 1 row, no failure, but incomplete\n  \
                        a: not measured: it has no `SUM`: the output may be cut\n  \
                        finding: a: it has no `SUM`: the output may be cut\n";
        assert_eq!((code, out.as_str(), err.as_str()), (exit_code::FAILED, expected, ""));
    }

    #[test]
    fn json_is_one_object_per_file() {
        let (code, out, _) = show_files(&[DIAGNOSIS.as_bytes()], &["--format=json"]);
        let value: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        assert_eq!(code, exit_code::PASSED);
        assert_eq!(value["program"], "dcgmi diag");
        assert_eq!(value["rows"][0]["gpu"], 3);
    }
}
