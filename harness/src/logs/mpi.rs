//! `harness logs mpi`: calls and ranks from logs of MPI messages. Crate `logs` reads them.

use super::nccl::edge;
use super::{open, visible, write_finding, write_json, write_more};
use base::text::count;
use clap::{ArgAction, Args};
use logs::mpi_log::{MpiLog, Reader};
use logs::nccl_debug::EDGES;
use model::exit_code;
use std::io::{self, Write};
use std::path::PathBuf;

/// Arguments of `harness logs mpi`.
#[derive(Debug, Args)]
pub(crate) struct MpiArgs {
    /// Logs of the ranks of one job, also packed by gzip; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Edges of the histogram in bytes, such as `64K,1M,16M`; each bucket holds its lower edge and not its upper one
    #[arg(long, value_name = "EDGES", value_delimiter = ',', value_parser = edge)]
    edges: Vec<u64>,
    /// `text`, or `json`: one object
    #[arg(long = "format", value_name = "FORMAT", default_value = "text", value_parser = crate::logs::is_json, action = ArgAction::Set)]
    json: bool,
    /// Exit with 1 if there are findings
    #[arg(long)]
    fail_on_findings: bool,
}

/// Prints what all files hold together. The exit code is 2 where one cannot be read, then 1 where findings are to fail,
/// then 3 where no line is the logger's.
pub(crate) fn run(args: &MpiArgs, out: &mut dyn Write, err: &mut dyn Write) -> i32 {
    let mut reader = Reader::new(if args.edges.is_empty() { &EDGES } else { &args.edges });
    let mut all = true;
    for path in &args.files {
        let file = path.display().to_string();
        if let Err(error) = open(path).and_then(|from| reader.read(from, &file)) {
            all = false;
            // A closed stderr is no error of the verb.
            let _ = writeln!(err, "{}: cannot be read: {error}", visible(&file));
        }
    }
    let log = reader.finish();
    let files: Vec<String> = args.files.iter().map(|path| path.display().to_string()).collect();
    let files = files.join(" ");
    if log.of_mpi == 0 && (all || log.lines > 0) {
        let why = match log.lines {
            0 => "the file is empty".to_owned(),
            lines => format!(
                "no line of an MPI message logger in {}; expected such as `[1.5] MPI_Send: world_rank=0 ...`",
                count(lines, "line")
            ),
        };
        let _ = writeln!(err, "{}: {why}", visible(&files));
    }
    let _ = match args.json {
        true => write_json(out, &files, &log),
        false => write(out, &files, &log),
    };
    match () {
        () if !all => exit_code::USAGE,
        () if args.fail_on_findings && !log.findings.is_empty() => exit_code::FAILED,
        () if log.of_mpi == 0 => exit_code::INCONCLUSIVE,
        () => exit_code::PASSED,
    }
}

/// Rows of a table that are printed; `--format json` prints them all.
const SHOWN: usize = 20;

/// A dash where a number is beyond 64 bits.
fn cell(value: Option<u64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

fn write(out: &mut dyn Write, files: &str, log: &MpiLog) -> io::Result<()> {
    let share = match log.of_mpi {
        0 => String::new(),
        of_mpi => format!(" ({:.1} %)", log.understood as f64 / of_mpi as f64 * 100.0),
    };
    writeln!(
        out,
        "{}: {}, {} of MPI, {} of them understood{share}",
        visible(files),
        count(log.lines, "line"),
        log.of_mpi,
        log.understood
    )?;
    if !log.operations.is_empty() {
        writeln!(out, "  bytes are those passed by the ranks; for a receive, the size of its buffer")?;
        writeln!(
            out,
            "  {:<14} {:>10} {:>8} {:>14} {:>16} {:>14} {:>20}",
            "operation", "calls", "empty", "min bytes", "mean bytes", "max bytes", "total bytes"
        )?;
    }
    for it in &log.operations {
        writeln!(
            out,
            "  {:<14} {:>10} {:>8} {:>14} {:>16.1} {:>14} {:>20}",
            it.operation.name(),
            it.calls,
            it.empty,
            it.min_bytes,
            it.mean_bytes,
            it.max_bytes,
            cell(it.total_bytes)
        )?;
    }
    for it in &log.histogram {
        let below = it.below_bytes.map_or_else(|| "inf".to_owned(), |below| below.to_string());
        let bucket = format!("[{}, {below})", it.from_bytes);
        let (name, bytes) = (it.operation.name(), cell(it.bytes));
        writeln!(out, "  {name:<14} {bucket:<26} {:>10} calls {bytes:>20} bytes", it.calls)?;
    }
    let mut calls: Vec<_> = log.calls.iter().collect();
    calls.sort_by_key(|it| std::cmp::Reverse(it.calls));
    for it in calls.iter().take(SHOWN) {
        writeln!(out, "  {:>10} times {} of {} bytes", it.calls, it.operation.name(), it.bytes)?;
    }
    write_more(out, calls.len().saturating_sub(SHOWN))?;
    for it in log.ranks.iter().take(SHOWN) {
        let bytes = cell(it.bytes);
        let calls = count(it.calls, &format!("{} call", it.operation.name()));
        writeln!(out, "  rank {}: {calls}, {bytes} bytes", it.rank)?;
    }
    write_more(out, log.ranks.len().saturating_sub(SHOWN))?;
    for finding in &log.findings {
        write_finding(out, finding)?;
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

    fn rank(rank: u64) -> String {
        let other = 1 - rank;
        format!(
            "[1.0] MPI_Init: world_rank={rank}\n\
             [1.5] MPI_Send: world_rank={rank} comm_rank={rank} -> dest={other} tag=5 bytes=4294967296 comm=0x1\n\
             [1.5] MPI_Recv: world_rank={rank} comm_rank={rank} <- source={other} tag=5 bytes=4294967296 comm=0x1\n\
             [2.0] MPI_Allreduce: world_rank={rank} comm_rank={rank} comm_size=2 bytes=1024 comm=0x1\n\
             [9.0] MPI_Finalize: world_rank={rank}\n"
        )
    }

    #[test]
    fn logs_of_all_ranks_are_shown_together() {
        let (code, out, err) = show(&[rank(0).as_bytes(), rank(1).as_bytes()], &["--fail-on-findings"]);
        assert_eq!((code, err.as_str()), (0, ""));
        insta::assert_snapshot!(out);
    }

    #[test]
    fn the_exit_code_is_that_of_the_worst_file() {
        assert_eq!(show(&[rank(0).as_bytes()], &[]).0, 0);
        let (code, out, _) = show(&[rank(0).as_bytes()], &["--fail-on-findings"]);
        assert!(code == 1 && out.contains("finding: mpi-ranks-missing: 1 of 2 ranks logged"), "{out}");
        assert_eq!(show(&[rank(0).as_bytes()], &["/no/such/file"]).0, 2);
        let (code, _, err) = show(&[b"prose\n"], &[]);
        assert!(code == 3 && err.starts_with("1.log: no line of an MPI message logger in 1 line;"), "{err}");
        assert_eq!((show(&[b""], &[]).0, show(&[b""], &[]).2), (3, "1.log: the file is empty\n".to_owned()));
    }

    #[test]
    fn json_holds_the_tables_with_exact_bytes() {
        let (_, out, _) =
            show(&[rank(0).as_bytes(), rank(1).as_bytes()], &["--format", "json", "--edges", "1K"]);
        let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        assert_eq!(report["operations"][2]["operation"], "Send");
        assert_eq!(report["operations"][2]["total_bytes"], 1_u64 << 33);
        assert_eq!(report["histogram"][0]["from_bytes"], 1024);
    }
}
