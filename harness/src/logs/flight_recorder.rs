//! `harness logs flight-recorder`: the first collective at which dumps of PyTorch's flight recorder disagree. Crate `logs`
//! reads them.

use super::joint::{self, JointFiles};
use super::{visible, write_json, write_short_finding};
use base::text::count;
use clap::{ArgAction, Args};
use logs::flight_recorder::{FlightLog, MOST_BYTES, Reader};
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::PathBuf;

/// Arguments of `harness logs flight-recorder`.
#[derive(Debug, Args)]
pub(crate) struct FlightRecorderArgs {
    /// Dumps of the ranks of one job, pickle or JSON, also packed by gzip; the rank is the number at the end of each name
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// `text`, or `json`: one object
    #[arg(long = "format", value_name = "FORMAT", default_value = "text", value_parser = crate::logs::is_json, action = ArgAction::Set)]
    json: bool,
    /// Exit with 1 if there are findings
    #[arg(long)]
    fail_on_findings: bool,
}

/// Prints what all dumps hold together, and gives the exit code.
pub(crate) fn run(args: &FlightRecorderArgs, out: &mut dyn Write, err: &mut dyn Write) -> i32 {
    let mut reader = Reader::default();
    let files = JointFiles::read(&args.files, MOST_BYTES, err, |bytes, file| reader.read(bytes, file));
    let log = reader.finish();
    let _ = match args.json {
        true => write_json(out, &joint::names(&args.files), &log),
        false => write(out, &log),
    };
    files.exit_code(args.fail_on_findings && !log.findings.is_empty())
}

fn write(out: &mut dyn Write, log: &FlightLog) -> io::Result<()> {
    if log.dumps.is_empty() {
        return Ok(());
    }
    let entries: u64 = log.dumps.iter().map(|dump| dump.entries).sum();
    let set = |value: fn(&logs::flight_recorder::DumpSummary) -> Option<&str>| {
        let values: BTreeSet<&str> = log.dumps.iter().filter_map(value).collect();
        values.into_iter().collect::<Vec<_>>().join(" and ")
    };
    let (version, library) = (set(|it| Some(&it.version)), set(|it| it.library.as_deref()));
    let library = if library.is_empty() { String::new() } else { format!(", library {}", visible(&library)) };
    let (dumps, ranks) = (count(log.dumps.len(), "dump"), count(log.ranks, "rank"));
    writeln!(out, "{dumps} of {ranks}, version {}{library}, entries: {entries}", visible(&version))?;
    for finding in &log.findings {
        write_short_finding(out, finding)?;
    }
    if log.findings.is_empty() {
        writeln!(out, "  all ranks entered the same collectives; sends and receives are not compared")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::testing;
    use serde_json::json;

    fn show(texts: &[&[u8]], flags: &[&str]) -> (i32, String, String) {
        testing::show(run, texts, flags)
    }

    /// Files are called `1.log`, `2.log` and so on.
    fn dump(collectives: u64) -> Vec<u8> {
        let entry = |number: u64| {
            json!({
                "record_id": number, "pg_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": number,
                "op_id": number, "profiling_name": "nccl:all_reduce", "input_sizes": [[4]], "input_dtypes": ["Float"],
                "output_sizes": [[4]], "output_dtypes": ["Float"], "state": if number == 1 { "completed" } else { "scheduled" },
                "retired": false, "is_p2p": false,
            })
        };
        let groups = json!({"0": {"name": "0", "desc": "default_pg", "ranks": "[1, 2, 3]"}});
        let entries: Vec<_> = (1..=collectives).map(entry).collect();
        let dump =
            json!({"version": "2.10", "comm_lib_version": "2.28.9", "pg_config": groups, "entries": entries});
        dump.to_string().into_bytes()
    }

    #[test]
    fn the_rank_that_never_came_is_shown() {
        let dumps = [dump(2), dump(1), dump(2)];
        let texts = dumps.each_ref().map(Vec::as_slice);
        let (code, out, err) = show(&texts, &[]);
        assert_eq!((code, err.as_str()), (0, ""));
        insta::assert_snapshot!(out, @r"
        3 dumps of 3 ranks, version 2.10, library 2.28.9, entries: 5
          fr-rank-missing: rank 2 did not enter all_reduce #2 of group 0 (default_pg); ranks 1, 3 wait
        ");
        assert_eq!(show(&texts, &["--fail-on-findings"]).0, 1);
        let (_, out, _) = show(&texts, &["--format", "json"]);
        let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        assert_eq!(report["disagreements"][0]["ranks"], json!([2]));
        assert_eq!(report["disagreements"][0]["what"], "missing");
        let all = [dump(1), dump(1), dump(1)];
        let (_, out, _) = show(&all.each_ref().map(Vec::as_slice), &["--fail-on-findings"]);
        assert!(
            out.ends_with(
                "\n  all ranks entered the same collectives; sends and receives are not compared\n"
            ),
            "{out}"
        );
    }

    #[test]
    fn what_is_no_dump_is_exit_3_and_a_file_that_is_not_there_exit_2() {
        let (code, out, err) = show(&[b"\x80\x02cos\nsystem\n."], &[]);
        assert_eq!(
            (code, out.as_str(), err.as_str()),
            (3, "", "1.log: refused: GLOBAL `os.system` would run code at byte 2\n")
        );
        assert_eq!(show(&[&dump(1)], &["/no/such/file"]).0, 2);
    }
}
