//! `harness logs ras`: what NCCL's RAS reports of a job: ranks that are missing, dead or behind. Crate `logs` reads it.

use super::joint::{self, JointFiles};
use super::{visible, write_json, write_short_finding};
use base::text::count;
use clap::{ArgAction, Args};
use logs::ras::{MOST_BYTES, RasLog, Reader, Report};
use std::io::{self, Write};
use std::path::PathBuf;

/// Arguments of `harness logs ras`.
#[derive(Debug, Args)]
pub(crate) struct RasArgs {
    /// What `ncclras` printed or port 28028 sent, text or JSON, of one job, oldest first; also packed by gzip; `-` is
    /// standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// `text`, or `json`: one object
    #[arg(long = "format", value_name = "FORMAT", default_value = "text", value_parser = crate::logs::is_json, action = ArgAction::Set)]
    json: bool,
    /// Exit with 1 if there are findings
    #[arg(long)]
    fail_on_findings: bool,
}

/// Prints what all files hold together, and gives the exit code.
pub(crate) fn run(args: &RasArgs, out: &mut dyn Write, err: &mut dyn Write) -> i32 {
    let mut reader = Reader::default();
    let files = JointFiles::read(&args.files, MOST_BYTES, err, |bytes, file| reader.read(bytes, file));
    let log = reader.finish();
    let _ = match args.json {
        true => write_json(out, &joint::names(&args.files), &log),
        false => write(out, &log),
    };
    files.exit_code(args.fail_on_findings && !log.findings.is_empty())
}

fn write(out: &mut dyn Write, log: &RasLog) -> io::Result<()> {
    for report in &log.reports {
        writeln!(out, "{}", head(report))?;
    }
    if !log.events.is_empty() {
        let events = count(log.events.len(), "event");
        writeln!(out, "{events} of the monitor, the last: {}", visible(&last_event(log)))?;
    }
    for finding in &log.findings {
        write_short_finding(out, finding)?;
    }
    if log.findings.is_empty() && !log.reports.is_empty() {
        // RAS counts what the host launched: this is no proof that a job moves.
        writeln!(
            out,
            "  no rank missing, dead or behind; a hang within the last operation does not show here"
        )?;
    }
    Ok(())
}

fn head(report: &Report) -> String {
    let version = report.nccl_version.as_deref().unwrap_or("of unknown version");
    let mut parts = vec![format!("NCCL {version}"), count(report.communicators_count, "communicator")];
    let processes = report.processes.map(|all| format!("processes: {all}"));
    let collected = report.collection_s.map(|seconds| format!("collected in {seconds} s"));
    parts.extend(processes.into_iter().chain(collected).chain(report.time.clone()));
    format!("{}: {}", visible(&report.file), visible(&parts.join(", ")))
}

fn last_event(log: &RasLog) -> String {
    let last = log.events.last();
    last.map(|it| format!("{} {}", it.event, it.time.as_deref().unwrap_or_default())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::testing;

    fn show(texts: &[&[u8]], flags: &[&str]) -> (i32, String, String) {
        testing::show(run, texts, flags)
    }

    const TEXT: &[u8] = b"NCCL version 2.27.5 compiled with CUDA 12.9\n\nCommunicators... (0.01s)\n=============\n\n    0  1  2  2  4  4  RUNNING  MISMATCH\n\n\
        Errors\n======\n\nWarnings\n========\n\n#0-0 (f3) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n  \
        3 ranks have launched up to operation 101\n  \
        Rank 3 has launched up to operation 100 -- GPU 3 managed by process 33 on node 10.0.0.1\n";

    #[test]
    fn the_rank_that_is_behind_is_shown() {
        let (code, out, err) = show(&[TEXT], &[]);
        assert_eq!((code, err.as_str()), (0, ""));
        insta::assert_snapshot!(out, @r"
        1.log: NCCL 2.27.5, 1 communicator, collected in 0.01 s
          ras-rank-behind: rank 3 of 0xf3: 100 AllReduce, 3 others 101; 10.0.0.1 GPU 3 pid 33; in one report
        ");
        assert_eq!(show(&[TEXT], &["--fail-on-findings"]).0, 1);
        let (_, out, _) = show(&[TEXT], &["--format", "json"]);
        let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        assert_eq!(report["findings"][0]["node"], "10.0.0.1");
        assert_eq!(report["reports"][0]["communicators"][0]["differing"][0]["launched"][0]["launched"], 100);
    }

    #[test]
    fn a_report_without_a_fault_is_no_proof_that_the_job_moves() {
        let text = String::from_utf8_lossy(TEXT).replace("MISMATCH\n\n", "OK\n\n");
        let healthy = text.split("#0-0").next().expect("its head");
        let event = "[2026-01-02 03:04:05] PEER_NEW: Process 7 on node 10.0.0.1 managing GPU 0\n";
        let (code, out, _) = show(&[healthy.as_bytes(), event.as_bytes()], &["--fail-on-findings"]);
        assert_eq!(code, 0);
        insta::assert_snapshot!(out, @r"
        1.log: NCCL 2.27.5, 1 communicator, collected in 0.01 s
        1 event of the monitor, the last: PEER_NEW 2026-01-02 03:04:05
          no rank missing, dead or behind; a hang within the last operation does not show here
        ");
    }

    #[test]
    fn what_is_no_report_is_exit_3_and_a_file_that_is_not_there_exit_2() {
        let (code, _, err) = show(&[b"prose\n"], &[]);
        let expected = "1.log: no report of NCCL RAS; expected the output of `ncclras`, text or JSON\n";
        assert_eq!((code, err.as_str()), (3, expected));
        let (code, out, _) = show(&[TEXT], &["/no/such/file"]);
        assert!(code == 2 && out.contains("rank 3"), "{out}");
    }
}
