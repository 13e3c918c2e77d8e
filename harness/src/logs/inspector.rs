//! `harness logs inspector`: calls that NCCL's Inspector recorded, by communicator, operation and size. Crate `logs` reads
//! them. Rows are ordered by what was called and never by time: the late rank has the shortest kernels.

use super::{open, visible, write_json, write_more, write_short_finding};
use base::text::count;
use clap::{ArgAction, Args};
use logs::inspector::{Gauge, InspectorLog, Reader, Series, Spread};
use model::exit_code;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;

/// Arguments of `harness logs inspector`.
#[derive(Debug, Args)]
pub(crate) struct InspectorArgs {
    /// Files of the ranks of one job: `HOST-pidPID.log` or `nccl_inspector_metrics_UUID.prom`, also packed by gzip; `-` is
    /// standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// A row for each rank, too
    #[arg(long)]
    each: bool,
    /// `text`, or `json`: one object
    #[arg(long = "format", value_name = "FORMAT", default_value = "text", value_parser = crate::logs::is_json, action = ArgAction::Set)]
    json: bool,
    /// Exit with 1 if there are findings
    #[arg(long)]
    fail_on_findings: bool,
}

/// Prints what all files hold together. The exit code is 2 where one cannot be read, then 1 where findings are to fail,
/// then 3 where there is no record.
pub(crate) fn run(args: &InspectorArgs, out: &mut dyn Write, err: &mut dyn Write) -> i32 {
    let mut reader = Reader::default();
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
    let is_empty = log.members.is_empty() && log.gauges.is_empty();
    if is_empty && (all || log.lines > 0) {
        let why = match log.lines {
            0 => "the file is empty; Inspector writes nothing without a dump interval".to_owned(),
            lines => format!("no record of NCCL's Inspector in {}", count(lines, "line")),
        };
        let _ = writeln!(err, "{}: {why}", visible(&files));
    }
    let _ = match args.json {
        true => write_json(out, &files, &log),
        false => write(out, &log, args.each),
    };
    match () {
        () if !all => exit_code::USAGE,
        () if args.fail_on_findings && !log.findings.is_empty() => exit_code::FAILED,
        () if is_empty => exit_code::INCONCLUSIVE,
        () => exit_code::PASSED,
    }
}

/// Rows that are printed; `--format json` prints them all.
const SHOWN: usize = 40;

/// All ranks of a communicator at one operation and size.
struct Row<'a> {
    series: Vec<&'a Series>,
}

fn write(out: &mut dyn Write, log: &InspectorLog, each: bool) -> io::Result<()> {
    let mut rows: BTreeMap<(&str, &str, u64), Row<'_>> = BTreeMap::new();
    for series in &log.series {
        let Some(member) = log.members.get(series.member) else { continue };
        let key = (member.communicator.as_str(), series.operation.as_str(), series.bytes);
        rows.entry(key).or_insert_with(|| Row { series: Vec::new() }).series.push(series);
    }
    if !log.members.is_empty() {
        let (records, members) = (count(log.records, "record"), count(log.members.len() as u64, "rank"));
        writeln!(out, "{records} of {members}; bytes are those of one rank, busbw in GB/s, times in us")?;
        writeln!(
            out,
            "  {:<18} {:<14} {:>13} {:>5} {:>9} {:>10} {:>10} {:>9} {:>9} {:>9}",
            "communicator",
            "operation",
            "bytes",
            "ranks",
            "records",
            "min",
            "mean",
            "algbw",
            "busbw",
            "lowest"
        )?;
    }
    let mut shown = 0;
    for ((communicator, operation, bytes), row) in &rows {
        let who = visible(communicator);
        if shown < SHOWN {
            write_row(out, &who, &visible(operation), *bytes, &row.series, &row.series.len().to_string())?;
        }
        shown += 1;
        for series in row.series.iter().filter(|_| each) {
            let rank = log.members.get(series.member).map_or(0, |member| member.rank);
            if shown < SHOWN {
                write_row(out, &format!("  rank {rank}"), "", *bytes, &[series], "")?;
            }
            shown += 1;
        }
    }
    write_more(out, shown.saturating_sub(SHOWN))?;
    for gauge in log.gauges.iter().take(SHOWN) {
        writeln!(out, "  {}", visible(&label(gauge)))?;
    }
    write_more(out, log.gauges.len().saturating_sub(SHOWN))?;
    for finding in &log.findings {
        write_short_finding(out, finding)?;
    }
    Ok(())
}

fn write_row(
    out: &mut dyn Write,
    who: &str,
    operation: &str,
    bytes: u64,
    series: &[&Series],
    ranks: &str,
) -> io::Result<()> {
    let records: u64 = series.iter().map(|it| it.calls).sum();
    let time = joined(series.iter().filter_map(|it| it.time_us));
    let algbw = joined(series.iter().filter_map(|it| it.algbw_gb_s));
    let busbw = joined(series.iter().filter_map(|it| it.busbw_gb_s));
    let cell = |spread: Option<Spread>, value: fn(Spread) -> f64| {
        spread.map_or_else(|| "-".to_owned(), |spread| format!("{:.2}", value(spread)))
    };
    writeln!(
        out,
        "  {who:<18} {operation:<14} {bytes:>13} {ranks:>5} {records:>9} {:>10} {:>10} {:>9} {:>9} {:>9}",
        cell(time, |it| it.min),
        cell(time, |it| it.mean),
        cell(algbw, |it| it.mean),
        cell(busbw, |it| it.mean),
        cell(busbw, |it| it.min),
    )
}

fn joined(all: impl Iterator<Item = Spread>) -> Option<Spread> {
    all.reduce(|a, b| {
        let n = a.n + b.n;
        let mean = (a.mean * a.n as f64 + b.mean * b.n as f64) / n as f64;
        Spread { n, min: a.min.min(b.min), mean, max: a.max.max(b.max) }
    })
}

/// Labels by which values differ, and the value.
fn label(gauge: &Gauge) -> String {
    let names =
        ["node", "gpu", "comm_name", "rank", "collective", "p2p_operation", "message_size", "algo_proto"];
    let labels = gauge.labels.iter().filter(|(name, _)| names.contains(&name.as_str()));
    let labels: Vec<&str> = labels.map(|(_, value)| value.as_str()).collect();
    format!("{} {}: {}", gauge.metric, labels.join(" "), gauge.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::testing;

    fn show(texts: &[&[u8]], flags: &[&str]) -> (i32, String, String) {
        testing::show(run, texts, flags)
    }

    fn rank(rank: u64) -> String {
        let record = |number: u64, time: u64| {
            let rate = 1048.576 / time as f64;
            format!(
                "{{\"header\":{{\"id\":\"0x7f8c496ae9f661\",\"comm_name\":\"dp\",\"rank\":{rank},\"n_ranks\":2,\"nnodes\":1}},\
                 \"metadata\":{{\"hostname\":\"n1\",\"pid\":{}}},\"coll_perf\":{{\"coll\":\"AllReduce\",\"coll_sn\":{number},\
                 \"coll_msg_size_bytes\":1048576,\"coll_exec_time_us\":{time},\"coll_timing_source\":\"kernel_gpu\",\
                 \"coll_algobw_gbs\":{rate:.6},\"coll_busbw_gbs\":{rate:.6}}}}}\n",
                70 + rank
            )
        };
        [record(1, 100 + rank), record(2, 200)].concat()
    }

    #[test]
    fn records_are_shown_by_communicator_operation_and_size() {
        let (code, out, err) =
            show(&[rank(0).as_bytes(), rank(1).as_bytes()], &["--fail-on-findings", "--each"]);
        assert_eq!((code, err.as_str()), (0, ""));
        insta::assert_snapshot!(out);
        let (_, out, _) = show(&[rank(0).as_bytes()], &["--format", "json"]);
        let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        assert_eq!(report["series"][0]["time_us"]["max"], 200.0);
        assert_eq!(report["members"][0]["host"], "n1");
        let (code, out, _) = show(&[rank(0).as_bytes()], &["--fail-on-findings"]);
        assert!(
            code == 1 && out.contains("\n  inspector-ranks: 0x7f8c496ae9f661: 1 of 2 ranks have records"),
            "{out}"
        );
    }

    #[test]
    fn bandwidths_that_contradict_bytes_and_time_are_a_finding() {
        let altered = rank(1).replacen("5.242880", "10.485760", 2);
        let (code, out, _) = show(&[rank(0).as_bytes(), altered.as_bytes()], &["--fail-on-findings"]);
        let finding = "\n  inspector-disagrees: 1 record with bandwidths";
        assert!(code == 1 && out.contains(finding), "{out}");
    }

    #[test]
    fn values_of_prometheus_are_shown_with_their_labels() {
        let text = "nccl_bus_bandwidth_gbs{version=\"v5.1\",node=\"n1\",gpu=\"GPU0\",comm_name=\"dp\",collective=\"AllReduce\",message_size=\"4-5GB\",algo_proto=\"Ring_ll\"} 678.25\n";
        let (code, out, _) = show(&[text.as_bytes()], &[]);
        assert_eq!(
            (code, out.as_str()),
            (0, "  nccl_bus_bandwidth_gbs n1 GPU0 dp AllReduce 4-5GB Ring_ll: 678.25\n")
        );
    }

    #[test]
    fn a_file_without_a_record_is_exit_3_and_one_that_is_not_there_exit_2() {
        let (code, _, err) = show(&[b"prose\n"], &[]);
        assert_eq!((code, err.as_str()), (3, "1.log: no record of NCCL's Inspector in 1 line\n"));
        let expected = "1.log: the file is empty; Inspector writes nothing without a dump interval\n";
        assert_eq!(show(&[b""], &[]).2, expected);
        assert_eq!(show(&[rank(0).as_bytes()], &["/no/such/file"]).0, 2);
    }
}
