//! `harness logs nccl`: calls, communicators and networks from logs of NCCL. Crate `logs` reads them, `nccl_text` prints the
//! tables.

use super::nccl_text::write;
use super::{open, visible, write_json};
use base::text::count;
use clap::{ArgAction, Args, ValueEnum};
use logs::nccl_debug::{Compat, EDGES, Explain, NcclLog, Reader, Script, Wrong};
use model::exit_code;
use serde::Serialize;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;

/// Arguments of `harness logs nccl`.
#[derive(Debug, Args)]
pub(crate) struct NcclArgs {
    /// Logs of one job, also packed by gzip; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Edges of the histogram in bytes, such as `64K,1M,16M`; each bucket holds its lower edge and not its upper one
    #[arg(long, value_name = "EDGES", value_delimiter = ',', value_parser = edge)]
    edges: Vec<u64>,
    /// Print the lines of an awk script that people use for such logs, in any order, as gawk does
    #[arg(long, value_name = "SCRIPT", conflicts_with_all = ["json", "edges", "explain"])]
    compat: Option<CompatScript>,
    /// Compare the number of network cards that hosts find with those of this instance type, such as `p5`
    #[arg(long, value_name = "NAME")]
    pub instance: Option<String>,
    /// The number of network cards of that instance type, set by the caller.
    #[arg(skip)]
    pub nics: Option<u64>,
    /// Show where those scripts are wrong on these logs
    #[arg(long)]
    explain: bool,
    /// `text`, or `json`: one object
    #[arg(long = "format", value_name = "FORMAT", default_value = "text", value_parser = crate::logs::is_json, action = ArgAction::Set)]
    json: bool,
    /// Exit with 1 if there are findings
    #[arg(long)]
    fail_on_findings: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum CompatScript {
    SeparateSteps,
    Comm,
    PerOp,
    Histogram,
    Aggregate,
}

impl CompatScript {
    fn script(self) -> Script {
        match self {
            CompatScript::SeparateSteps => Script::SeparateSteps,
            CompatScript::Comm => Script::Comm,
            CompatScript::PerOp => Script::PerOp,
            CompatScript::Histogram => Script::Histogram,
            CompatScript::Aggregate => Script::Aggregate,
        }
    }
}

/// `65536`, `64K`, `1M`, `16MiB`.
pub(super) fn edge(text: &str) -> Result<u64, String> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at_checked(end).unwrap_or((text, ""));
    let times = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => Some(1_u64),
        "k" | "kib" => Some(1 << 10),
        "m" | "mib" => Some(1 << 20),
        "g" | "gib" => Some(1 << 30),
        _ => None,
    };
    let bytes =
        digits.parse().ok().zip(times).and_then(|(digits, times): (u64, u64)| digits.checked_mul(times));
    bytes
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "expected a size above 0, such as `65536` or `64K`".to_owned())
}

/// Prints what all files hold together. The exit code is 2 where one cannot be read, then 1 where findings are to fail,
/// then 3 where no line is NCCL's.
pub(crate) fn run(args: &NcclArgs, out: &mut dyn Write, err: &mut dyn Write) -> i32 {
    match args.compat {
        Some(named) => run_compat(args, named.script(), out, err),
        None => run_read(args, out, err),
    }
}

/// Passes each file to a reader; returns whether all could be read.
fn read_each(
    args: &NcclArgs,
    err: &mut dyn Write,
    mut read: impl FnMut(Box<dyn BufRead>, &str) -> io::Result<()>,
) -> bool {
    let mut all = true;
    for path in &args.files {
        let file = path.display().to_string();
        match open(path).and_then(|from| read(from, &file)) {
            Ok(()) => {}
            // A closed stderr is no error of the verb.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break,
            Err(error) => {
                all = false;
                let _ = writeln!(err, "{}: cannot be read: {error}", visible(&file));
            }
        }
    }
    all
}

fn run_compat(args: &NcclArgs, script: Script, out: &mut dyn Write, err: &mut dyn Write) -> i32 {
    let mut compat = Compat::new(script);
    let all = read_each(args, err, |from, _| compat.read(from, &mut *out));
    match compat.finish(out) {
        _ if !all => exit_code::USAGE,
        Ok(0) => {
            let _ = writeln!(err, "the script prints nothing: it matches no line");
            exit_code::INCONCLUSIVE
        }
        _ => exit_code::PASSED,
    }
}

fn run_read(args: &NcclArgs, out: &mut dyn Write, err: &mut dyn Write) -> i32 {
    let mut reader = Reader::new(if args.edges.is_empty() { &EDGES } else { &args.edges });
    if let Some(nics) = args.nics {
        reader.expect_nics(nics);
    }
    let mut all = read_each(args, err, |from, file| reader.read(from, file));
    let log = reader.finish();
    if !all && log.lines == 0 {
        return exit_code::USAGE;
    }
    let mut wrong = None;
    if args.explain {
        let mut explain = Explain::default();
        let from_input = args.files.iter().any(|path| path.as_os_str() == "-");
        if from_input {
            let _ = writeln!(
                err,
                "`--explain` reads the logs a second time, which standard input does not allow"
            );
            return exit_code::USAGE;
        }
        all &= read_each(args, err, |from, _| explain.read(from));
        wrong = Some(explain.finish());
    }
    let files: Vec<String> = args.files.iter().map(|path| path.display().to_string()).collect();
    let files = files.join(" ");
    if log.of_nccl == 0 {
        let why = match log.lines {
            0 => "the file is empty".to_owned(),
            lines => match log.looks_like {
                Some(what) => format!("no NCCL line in {}; it looks like {what}", count(lines, "line")),
                None => format!("no NCCL line in {}; was `NCCL_DEBUG=INFO` set?", count(lines, "line")),
            },
        };
        let _ = writeln!(err, "{}: {why}", visible(&files));
    }
    // A reader that has gone away is no error of the verb.
    let _ = match args.json {
        true => write_json(out, &files, &JsonReport { log: &log, wrong: wrong.as_deref() }),
        false => write(out, &files, &log, wrong.as_deref()),
    };
    match () {
        () if !all => exit_code::USAGE,
        () if args.fail_on_findings && !log.findings.is_empty() => exit_code::FAILED,
        () if log.of_nccl == 0 => exit_code::INCONCLUSIVE,
        () => exit_code::PASSED,
    }
}

/// The tables as JSON.
#[derive(Serialize)]
struct JsonReport<'a> {
    #[serde(flatten)]
    log: &'a NcclLog,
    #[serde(skip_serializing_if = "Option::is_none")]
    wrong: Option<&'a [Wrong]>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::testing;

    fn show(texts: &[&[u8]], flags: &[&str]) -> (i32, String, String) {
        testing::show(run, texts, flags)
    }

    fn rank(rank: u64) -> String {
        let line = |text: &str| format!("a:1{rank}:2 [{rank}] NCCL INFO {text}\n");
        let call = |operation: &str, count: u64| {
            line(&format!(
                "{operation}: opCount 0 sendbuff 0x1 recvbuff 0x2 count {count} datatype 7 op 0 root 0 comm 0x5 [nranks=2] stream 0x6"
            ))
        };
        [
            line("NCCL version 2.27.7+cuda13.0"),
            line("Using network AWS Libfabric"),
            line("NET/OFI Selected provider is efa, fabric is efa (found 32 nics)"),
            line(&format!(
                "ncclCommInitRank comm 0x5 rank {rank} nranks 2 cudaDev {rank} nvmlDev {rank} busId 1 commId 0xabc - Init COMPLETE"
            )),
            line(&format!("Channel 00/0 : {rank}[0] -> {}[0] [send] via NET/AWS Libfabric/0/GDRDMA", 1 - rank)),
            call("AllReduce", 1 << 30),
            call("AllReduce", 16_384),
            call("AllGather", 5),
            line("Flux capacitor 88"),
        ]
        .concat()
    }

    #[test]
    fn logs_of_all_ranks_are_shown_together() {
        let (code, out, err) = show(&[rank(0).as_bytes(), rank(1).as_bytes()], &["--explain"]);
        assert_eq!((code, err.as_str()), (0, ""));
        insta::assert_snapshot!(out);
    }

    #[test]
    fn the_exit_code_is_that_of_the_worst_file() {
        let (whole, short) = (rank(0), rank(1).replace("AllGather:", "Broadcast:"));
        assert_eq!(show(&[whole.as_bytes(), rank(1).as_bytes()], &["--fail-on-findings"]).0, 0);
        assert_eq!(show(&[whole.as_bytes(), short.as_bytes()], &[]).0, 0);
        let (code, out, _) = show(&[whole.as_bytes(), short.as_bytes()], &["--fail-on-findings"]);
        assert_eq!(code, 1);
        assert!(out.contains("finding: nccl-sequence-differs, line 8: "), "{out}");
        assert_eq!(show(&[whole.as_bytes()], &["/no/such/file"]).0, 2);
        let (code, _, err) = show(&[b"prose\n"], &[]);
        assert_eq!((code, err.as_str()), (3, "1.log: no NCCL line in 1 line; was `NCCL_DEBUG=INFO` set?\n"));
        assert_eq!(show(&[b""], &[]), (3, show(&[b""], &[]).1, "1.log: the file is empty\n".to_owned()));
        let (code, _, err) = show(&[&[0xff, 0, 0x1b, 7, b'\n', 0x80]], &[]);
        assert_eq!((code, err.contains("no NCCL line")), (3, true));
    }

    #[test]
    fn a_gzipped_log_is_read_and_half_of_one_is_refused() {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(rank(0).as_bytes()).expect("in memory");
        let packed = packed.finish().expect("in memory");
        assert_eq!(show(&[&packed], &[]), show(&[rank(0).as_bytes()], &[]));
        assert_eq!(show(&[&packed[..packed.len() / 2]], &[]).0, 2);
    }

    #[test]
    fn the_lines_of_a_script_are_printed_alone() {
        let (code, out, err) = show(&[rank(0).as_bytes()], &["--compat", "comm"]);
        let expected = "AllReduce 1073741824 7 4294967296\nAllReduce 16384 7 65536\nAllGather 5 7 20\n";
        assert_eq!((code, out.as_str(), err.as_str()), (0, expected, ""));
        for script in ["per-op", "histogram", "aggregate"] {
            assert_eq!(show(&[rank(0).as_bytes()], &["--compat", script]).0, 0, "{script}");
        }
        assert_eq!(show(&[rank(0).as_bytes()], &["--compat", "separate-steps"]).0, 3);
    }

    #[test]
    fn json_holds_the_tables() {
        let (_, out, _) = show(&[rank(0).as_bytes()], &["--format", "json", "--edges", "64K,1G"]);
        let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        assert_eq!(report["operations"][1]["total_bytes"], 4_295_032_832_u64);
        assert_eq!(report["histogram"][2]["from_bytes"], 1_u64 << 30);
    }

    /// Bad logs, each with the exit code and the message.
    #[test]
    fn each_bad_input_has_its_stated_outcome() {
        let whole = rank(0) + &rank(1);
        let stamped =
            |s: u64| format!("[2025-01-31 12:00:{s:02}] a:10:2 [0] NCCL INFO Using network Libfabric\n");
        let long = format!("a:10:2 [0] NCCL INFO Setting affinity for GPU 0 to {}\n", "0,".repeat(500));
        let other = whole.replace("0xabc", "0xdef").replace("a:1", "a:7").replace("2.27.7", "2.19.3");
        let version =
            "a:10:2 [0] NCCL INFO NCCL version 2.99.1+cuda17.0\na:10:2 [0] NCCL INFO Warp drive 7 engaged\n";
        let table: [(&str, String, i32, &str, &str); 10] = [
            ("an empty log", String::new(), 3, "", "1.log: the file is empty"),
            ("a binary log", "\u{0}\u{1}\u{fffd}\n\u{7}".to_owned(), 3, "", "no NCCL line in 2 lines"),
            ("no line of NCCL", "loss 2.5\n".to_owned(), 3, "", "no NCCL line in 1 line;"),
            (
                "half a line at the end",
                whole.trim_end().rsplit_once(" datatype").expect("a call").0.to_owned(),
                1,
                "nccl-garbled, line 17: skipped a call line: cannot read `datatype`; the file ends mid-line",
                "",
            ),
            (
                "lines cut at 1023 characters",
                long.chars().take(1023).collect(),
                0,
                "1 line cut by NCCL for length",
                "",
            ),
            (
                "several jobs in one file",
                whole.clone() + &other,
                1,
                "nccl-worlds-apart: 2 groups of processes",
                "",
            ),
            (
                "a clock that goes back",
                stamped(8) + &stamped(7),
                1,
                "nccl-clock-back, line 2: `a`: clock goes back",
                "",
            ),
            (
                "a version that is not known",
                version.to_owned(),
                0,
                "not understood: Warp drive # engaged (1 line)",
                "",
            ),
            (
                "JSON",
                "{\n  \"rank\": 0\n}\n".to_owned(),
                3,
                "",
                "no NCCL line in 3 lines; it looks like JSON",
            ),
            (
                "two lines in one",
                whole.replacen(" datatype 7 op 0 root 0 comm 0x5 [nranks=2] stream 0x6\n", "", 1),
                1,
                "nccl-garbled",
                "",
            ),
        ];
        for (what, text, code, out, err) in table {
            let (exit, printed, why) = show(&[text.as_bytes()], &["--fail-on-findings"]);
            assert_eq!(exit, code, "{what}: {printed}{why}");
            assert!(printed.contains(out) && why.contains(err), "{what}: {printed}{why}");
        }
    }

    #[test]
    fn edges_are_bytes_with_or_without_a_unit() {
        assert_eq!(
            (edge("65536"), edge("64k"), edge("16MiB"), edge("1G")),
            (Ok(65_536), Ok(65_536), Ok(16 << 20), Ok(1 << 30))
        );
        for text in ["", "0", "-1", "1T", "K", "99999999999G"] {
            assert!(edge(text).is_err(), "{text}");
        }
    }
}
