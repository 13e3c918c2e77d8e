//! `harness logs nccl-tests`: the tables of outputs of nccl-tests. Crate `logs` reads them.

use super::{nccl_tests_csv, open, visible, write_finding, write_json};
use base::text::count;
use clap::ValueEnum;
use logs::nccl_tests::{self as source, Half, NcclRun, NcclTests, Wrong};
use model::exit_code;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::PathBuf;

/// As what the tables are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableFormat {
    /// For people.
    Text,
    /// One object per file
    Json,
    /// One line per size, with a heading
    Csv,
}

/// Prints what was read from each file; `-` is standard input. The exit code is the worst of all files: 2 where one
/// cannot be opened, then 1 where `fail_on_findings` holds and one has a failure or finding, then 3 where nothing in
/// one was understood, or no row of a table.
pub(crate) fn run(
    files: &[PathBuf],
    format: TableFormat,
    fail_on_findings: bool,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> i32 {
    let (mut unopened, mut found, mut not_understood) = (false, false, false);
    // A reader that has gone away is noticed with the rows.
    let _ = (format == TableFormat::Csv).then(|| nccl_tests_csv::write_head(out));
    for path in files {
        let file = path.display().to_string();
        let read = match open(path).and_then(|from| source::read_stream(from, &file)) {
            Ok(read) => read,
            Err(error) => {
                unopened = true;
                // A closed stderr is no error of the verb.
                let _ = writeln!(err, "{}: cannot be read: {error}", visible(&file));
                continue;
            }
        };
        let written = match read {
            Ok(mut read) => {
                for run in &read.runs {
                    let disagreeing = source::recompute(run, None).into_iter().chain(source::closing(run));
                    read.findings.extend(disagreeing.map(|finding| finding.file(&file)));
                    if run.rows.is_empty() && run.refused_rows > 0 {
                        not_understood = true;
                        let refused = run.refused_rows;
                        let _ = writeln!(
                            err,
                            "{}: no table row can be read; refused rows: {refused}",
                            visible(&file)
                        );
                    }
                }
                found |= !read.findings.is_empty() || read.runs.iter().any(|run| run.failure.is_some());
                match format {
                    TableFormat::Text => write_file(out, &file, &read),
                    TableFormat::Json => write_json(out, &file, &read),
                    TableFormat::Csv => nccl_tests_csv::write_rows(out, &file, &read),
                }
            }
            Err(error) => {
                not_understood = true;
                let printed = writeln!(err, "{}: not understood: {}", visible(&file), visible(&error.reason));
                if format == TableFormat::Json { write_json(out, &file, &error) } else { printed }
            }
        };
        if written.is_err() {
            break;
        }
    }
    match () {
        () if unopened => exit_code::USAGE,
        () if fail_on_findings && found => exit_code::FAILED,
        () if not_understood => exit_code::INCONCLUSIVE,
        () => exit_code::PASSED,
    }
}

fn write_file(out: &mut dyn Write, file: &str, read: &NcclTests) -> io::Result<()> {
    writeln!(out, "{}: {}, {} understood", visible(file), count(read.lines, "line"), read.understood)?;
    for (run, number) in read.runs.iter().zip(1..) {
        if read.runs.len() > 1 {
            writeln!(out, "  run {number} of {}", read.runs.len())?;
        }
        write_run(out, run)?;
    }
    for finding in &read.findings {
        write_finding(out, finding)?;
    }
    Ok(())
}

fn write_run(out: &mut dyn Write, run: &NcclRun) -> io::Result<()> {
    let or_unknown = |text: &Option<String>| text.as_deref().map_or_else(|| "unknown".to_owned(), visible);
    writeln!(out, "  program: {}", or_unknown(&run.program))?;
    let hosts: BTreeSet<&str> = run.ranks.iter().map(|rank| rank.host.as_str()).collect();
    match run.ranks.len() {
        0 => writeln!(out, "  ranks: unknown")?,
        listed if source::unlisted(run) > 0 => writeln!(
            out,
            "  ranks: unknown, JSON lists one of each process: {listed} on {}",
            count(hosts.len(), "host")
        )?,
        ranks => writeln!(out, "  ranks: {ranks} on {}", count(hosts.len(), "host"))?,
    }
    if let Some((ratio, implied)) = source::ranks_from_ratio(run) {
        let implied = implied.map_or_else(String::new, |ranks| format!(", as with {ranks} ranks"));
        writeln!(out, "  busbw/algbw: {ratio:.3}{implied}")?;
    }
    writeln!(out, "  NCCL: {}", or_unknown(&run.nccl_version))?;
    if !run.rows.is_empty() {
        let halves = "    time us    algbw    busbw   #wrong";
        writeln!(out, "  {:>14} {:>9} {:>6}{halves}{halves}", "size", "type", "redop")?;
    }
    for row in &run.rows {
        let redop = row.redop.as_deref().unwrap_or("-");
        write!(out, "  {:>14} {:>9} {redop:>6}", row.size_bytes, visible(&row.dtype))?;
        write_half(out, row.out_of_place.as_ref())?;
        write_half(out, row.in_place.as_ref())?;
        writeln!(out)?;
    }
    if let Some(bounds) = run.out_of_bounds {
        writeln!(out, "  values out of bounds: {}", bounds.count)?;
    }
    if let Some(average) = run.average_busbw_gb_s {
        writeln!(out, "  average busbw, comparable between equal sweeps only: {average}")?;
    }
    if let Some(failure) = &run.failure {
        let node = failure.node.as_ref().map_or_else(String::new, |node| format!(" on {}", visible(node)));
        writeln!(
            out,
            "  failure: {}{node}, line {}: {}",
            failure.class.name(),
            failure.line,
            visible(&failure.cause)
        )?;
    }
    Ok(())
}

fn write_half(out: &mut dyn Write, half: Option<&Half>) -> io::Result<()> {
    let Some(half) = half else { return write!(out, "  {:>9} {:>8} {:>8} {:>8}", "-", "-", "-", "-") };
    let wrong = match half.wrong {
        Wrong::Count(count) => format!("{count}"),
        Wrong::MaxError(error) => format!("<{error:.0e}"),
        Wrong::NotChecked => "-".to_owned(),
    };
    write!(out, "  {:>9.2} {:>8.2} {:>8.2} {wrong:>8}", half.time_us, half.algbw_gb_s, half.busbw_gb_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: &str = "1024 256 float sum -1 34.94 0.03 0.05 0 35.20 0.03 0.05 N/A\n";
    const END: &str = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 0.05 \n";

    fn show(texts: &[&str], format: TableFormat, fail: bool) -> (i32, String, String) {
        let folder = tempfile::tempdir().expect("a folder");
        let mut files = Vec::new();
        for (text, number) in texts.iter().zip(1..) {
            let path = folder.path().join(format!("{number}.log"));
            std::fs::write(&path, text).expect("a file");
            files.push(path);
        }
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let code = run(&files, format, fail, &mut out, &mut err);
        (code, String::from_utf8_lossy(&out).into_owned(), String::from_utf8_lossy(&err).into_owned())
    }

    #[test]
    fn rows_are_shown_with_findings_and_failure() {
        let failure = "n1: Test CUDA failure common.cu:9 'out of memory\x07'\n";
        let (code, out, err) = show(&[&format!("{ROW}{failure}")], TableFormat::Text, false);
        assert_eq!((code, err.as_str()), (0, ""));
        assert!(out.contains("program: unknown") && out.contains("34.94"), "{out}");
        assert!(
            out.contains(
                r"failure: out-of-memory on n1, line 2: n1: Test CUDA failure common.cu:9 'out of memory\x07'"
            ),
            "{out}"
        );
    }

    #[test]
    fn the_exit_code_is_that_of_the_worst_file() {
        let whole = format!("{ROW}{END}");
        assert_eq!(show(&[&whole], TableFormat::Text, true).0, 0);
        assert_eq!(show(&[ROW], TableFormat::Text, false).0, 0, "findings alone are no failure");
        assert_eq!(show(&[ROW], TableFormat::Text, true).0, 1);
        assert_eq!(show(&[&whole, "prose\n"], TableFormat::Text, false).0, 3);
        assert_eq!(show(&[ROW, "prose\n"], TableFormat::Text, true).0, 1);
        let (mut out, mut err) = (Vec::new(), Vec::new());
        assert_eq!(run(&[PathBuf::from("/no/such/file")], TableFormat::Text, false, &mut out, &mut err), 2);
        assert!(String::from_utf8_lossy(&err).starts_with("/no/such/file: cannot be read: "));
    }

    #[test]
    fn json_is_one_object_per_file() {
        let (code, out, _) = show(&[ROW, "prose\n"], TableFormat::Json, false);
        assert_eq!(code, 3);
        let lines: Vec<serde_json::Value> =
            out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let [read, refused] = lines.as_slice() else { panic!("{out}") };
        assert_eq!(read["runs"][0]["rows"][0]["size_bytes"], 1024);
        assert_eq!(refused["reason"], "no row, header or failure of nccl-tests");
    }

    #[test]
    fn a_table_of_which_no_row_can_be_read_is_not_understood() {
        let odd = ROW.replace(" 0.05 0 35.20", " 0.05 x 35.20");
        let (code, out, err) = show(&[&format!("{odd}{END}")], TableFormat::Text, false);
        assert_eq!(code, 3, "{out}");
        assert!(err.ends_with("1.log: no table row can be read; refused rows: 1\n"), "{err}");
        assert_eq!(show(&[&format!("{odd}{ROW}{END}")], TableFormat::Text, false).0, 0);
    }

    #[test]
    fn redundant_values_of_a_table_are_compared() {
        let head =
            "# nThread 1 nGpus 1 minBytes 1024 maxBytes 4096 step: 2(factor) warmup iters: 1 iters: 20\n";
        let rows = "1024 256 float sum -1 34.94 0.03 0.05 0 35.20 0.03 0.05 0\n2048 512 float sum -1 34.94 0.06 0.10 0 35.20 0.06 0.10 N/A\n\
                    4096 1024 float sum -1 34.94 0.12 0.20 0 35.20 0.12 0.20 0\n";
        let end = |wrong: u32, average: f64| {
            let word = if wrong == 0 { "OK" } else { "FAILED" };
            format!("# Out of bounds values : {wrong} {word}\n# Avg bus bandwidth    : {average}\n")
        };
        let middle: String = rows.split_inclusive('\n').filter(|row| !row.starts_with("2048")).collect();
        let table = [
            ("whole", format!("{head}{rows}{}", end(0, 0.1167)), ""),
            ("average", format!("{head}{rows}{}", end(0, 480.0)), "average-disagrees"),
            // Not read as 33, nor passed over.
            (
                "thousands apart",
                format!("{head}{}{}", rows.replace("2048 512", "2,048 512"), end(0, 0.125)),
                "rows-missing",
            ),
            ("a row lost", format!("{head}{middle}{}", end(0, 0.125)), "rows-missing"),
            ("no row", format!("{head}{}", end(0, 0.1167)), "no-rows"),
            (
                "wrong in a row",
                format!("{head}{}{}", rows.replacen(" 0 35", " 5 35", 1), end(0, 0.1167)),
                "wrong-disagrees",
            ),
        ];
        for (what, text, code) in table {
            let (exit, out, _) = show(&[&text], TableFormat::Text, true);
            assert_eq!(exit, i32::from(!code.is_empty()), "{what}: {out}");
            assert!(code.is_empty() || out.contains(&format!("finding: {code}")), "{what}: {out}");
        }
    }
}
