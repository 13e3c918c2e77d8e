//! The rows of nccl-tests as CSV: the columns of `nccl_to_csv.py` of AWS's nccl-tests recipes, then what it lacks.

use logs::nccl_tests::{Half, NcclRun, NcclTests, Row, Wrong, unlisted};
use recipes::result_table::csv_text;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{self, Write};

/// Columns of one placement, behind `OOP_` or `IP_`. In the first table up to `Errors`, the rest in the second.
const OF_HALF: [&str; 4] = ["Time_us", "AlgBW_GBps", "BusBW_GBps", "Errors"];
const MORE_OF_HALF: [&str; 5] = ["Max_Error", "Min_us", "Max_us", "P99_us", "CV_pct"];
const PLACES: [&str; 2] = ["OOP", "IP"];
const OF_ROW: [&str; 7] = ["Size_Bytes", "Size_KB", "Size_MB", "Count", "Data_Type", "Operation", "Root"];
const OF_RUN: [&str; 11] = [
    "File",
    "Run",
    "Line",
    "Program",
    "Collective",
    "Ranks",
    "Hosts",
    "NCCL_Version",
    "NCCL_Tests_Version",
    "Clock",
    "Timestamp",
];

/// Written once, before the rows of the first file.
pub(super) fn write_head(out: &mut dyn Write) -> io::Result<()> {
    let of_places = |names: &[&str]| -> Vec<String> {
        PLACES.iter().flat_map(|place| names.iter().map(move |name| format!("{place}_{name}"))).collect()
    };
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let head = [owned(&OF_ROW), of_places(&OF_HALF), owned(&OF_RUN), of_places(&MORE_OF_HALF)].concat();
    writeln!(out, "{}", head.join(","))
}

/// The rows of all runs of one file.
pub(super) fn write_rows(out: &mut dyn Write, file: &str, read: &NcclTests) -> io::Result<()> {
    for (run, number) in read.runs.iter().zip(1u64..) {
        for row in &run.rows {
            write_row(out, file, number, run, row)?;
        }
    }
    Ok(())
}

fn write_row(out: &mut dyn Write, file: &str, number: u64, run: &NcclRun, row: &Row) -> io::Result<()> {
    let halves = [row.out_of_place.as_ref(), row.in_place.as_ref()];
    let hosts: BTreeSet<&str> = run.ranks.iter().map(|rank| rank.host.as_str()).collect();
    let counted = |count: usize| if count == 0 { Cow::from("") } else { count.to_string().into() };
    let text = |text: &Option<String>| {
        text.as_deref().map_or(Cow::from(""), |text| csv_text(text).into_owned().into())
    };
    let mut cells: Vec<Cow<'_, str>> = vec![
        row.size_bytes.to_string().into(),
        (row.size_bytes as f64 / 1024.0).to_string().into(),
        (row.size_bytes as f64 / (1024.0 * 1024.0)).to_string().into(),
        row.count.to_string().into(),
        csv_text(&row.dtype),
        csv_text(row.redop.as_deref().unwrap_or("none")),
        row.root.unwrap_or(-1).to_string().into(),
    ];
    for half in halves {
        cells.extend(half_cells(half));
    }
    cells.extend([
        csv_text(file),
        number.to_string().into(),
        row.line.to_string().into(),
        text(&run.program),
        run.op.map_or("", |op| op.name()).into(),
        counted(if unlisted(run) > 0 { 0 } else { run.ranks.len() }),
        counted(hosts.len()),
        text(&run.nccl_version),
        text(&run.nccl_tests_version),
        if run.cpu_time { "cpu" } else { "gpu" }.into(),
        text(&row.timestamp),
    ]);
    for half in halves {
        cells.extend(statistics_cells(half));
    }
    writeln!(out, "{}", cells.join(","))
}

/// A placement that was not measured is empty, and one whose data was not checked has `N/A` for its errors: never 0.
fn half_cells(half: Option<&Half>) -> [Cow<'static, str>; OF_HALF.len()] {
    let Some(half) = half else { return Default::default() };
    let errors = match half.wrong {
        Wrong::Count(count) => count.to_string().into(),
        Wrong::MaxError(_) => "".into(),
        Wrong::NotChecked => "N/A".into(),
    };
    [
        half.time_us.to_string().into(),
        half.algbw_gb_s.to_string().into(),
        half.busbw_gb_s.to_string().into(),
        errors,
    ]
}

fn statistics_cells(half: Option<&Half>) -> [Cow<'static, str>; MORE_OF_HALF.len()] {
    let Some(half) = half else { return Default::default() };
    let max_error = match half.wrong {
        Wrong::MaxError(error) => error.to_string().into(),
        Wrong::Count(_) | Wrong::NotChecked => "".into(),
    };
    let Some(stats) = half.iterations else { return [max_error, "".into(), "".into(), "".into(), "".into()] };
    [
        max_error,
        stats.min_us.to_string().into(),
        stats.max_us.to_string().into(),
        stats.p99_us.to_string().into(),
        stats.cv_pct.to_string().into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use logs::nccl_tests as source;

    /// As a program that knows RFC 4180 reads them.
    fn rows(file: &str, text: &str) -> Vec<Vec<(String, String)>> {
        let read = source::read_stream(text.as_bytes(), file).expect("read").expect("understood");
        let mut out = Vec::new();
        write_head(&mut out).expect("in memory");
        write_rows(&mut out, file, &read).expect("in memory");
        let text = String::from_utf8(out).expect("text");
        let mut records = vec![vec![String::new()]];
        let (mut quoted, mut letters) = (false, text.chars().peekable());
        while let Some(c) = letters.next() {
            let record = records.last_mut().expect("a record");
            match c {
                '"' if quoted && letters.peek() == Some(&'"') => {
                    letters.next();
                    record.last_mut().expect("a cell").push('"');
                }
                '"' => quoted = !quoted,
                ',' if !quoted => record.push(String::new()),
                '\n' if !quoted => records.push(vec![String::new()]),
                c => record.last_mut().expect("a cell").push(c),
            }
        }
        records.pop();
        let head = records.remove(0);
        let named = |cells: Vec<String>| {
            assert_eq!(cells.len(), head.len(), "{cells:?}");
            head.iter().cloned().zip(cells).collect()
        };
        records.into_iter().map(named).collect()
    }

    fn cell<'a>(row: &'a [(String, String)], name: &str) -> &'a str {
        &row.iter().find(|(head, _)| head == name).unwrap_or_else(|| panic!("no column {name}")).1
    }

    #[test]
    fn the_first_columns_are_those_of_the_converter_that_people_have() {
        let mut out = Vec::new();
        write_head(&mut out).expect("in memory");
        let head = "Size_Bytes,Size_KB,Size_MB,Count,Data_Type,Operation,Root,OOP_Time_us,OOP_AlgBW_GBps,OOP_BusBW_GBps,\
                    OOP_Errors,IP_Time_us,IP_AlgBW_GBps,IP_BusBW_GBps,IP_Errors,";
        assert!(String::from_utf8_lossy(&out).starts_with(head));
    }

    #[test]
    fn no_type_prefix_exponent_or_missing_check_is_lost() {
        let table = "\
            1048576 262144 float sum -1 34.94 30.01 56.27 0 35.20 29.79 55.86 N/A\n\
            2097152 1048576 bfloat16 avg -1 1.2e+02 17.48 32.77 1e+06 64.1 32.72 61.34 0\n";
        let tagged: String = table.lines().map(|line| format!("0: {line}\n")).collect();
        for text in [table.to_owned(), tagged] {
            let rows = rows("a.log", &text);
            let of = |at: usize, name: &str| cell(&rows[at], name).to_owned();
            assert_eq!(rows.len(), 2);
            assert_eq!(
                (of(0, "Size_KB"), of(0, "Size_MB"), of(0, "Root")),
                ("1024".into(), "1".into(), "-1".into())
            );
            assert_eq!((of(0, "OOP_Errors"), of(0, "IP_Errors")), ("0".into(), "N/A".into()));
            assert_eq!((of(1, "Data_Type"), of(1, "Operation")), ("bfloat16".into(), "avg".into()));
            assert_eq!((of(1, "OOP_Time_us"), of(1, "OOP_Errors")), ("120".into(), "1000000".into()));
            assert_eq!(
                (of(1, "IP_BusBW_GBps"), of(1, "Line"), of(1, "Ranks")),
                ("61.34".into(), "2".into(), "".into())
            );
        }
    }

    #[test]
    fn foreign_text_is_quoted_and_never_a_formula() {
        let table = "1048576 262144 float sum -1 34.94 30.01 56.27 0 35.20 29.79 55.86 0\n";
        for (file, shown) in [
            ("=HYPERLINK(\"http://x\",\"y\")", "'=HYPERLINK(\"http://x\",\"y\")"),
            ("@a,b\nc", "'@a,b\nc"),
            ("+1+cmd|' /C calc'!A0", "'+1+cmd|' /C calc'!A0"),
            ("a\x1b[31m", "a\\x1b[31m"),
        ] {
            assert_eq!(cell(&rows(file, table)[0], "File"), shown);
        }
        let of_log = table.replace("sum", "=1+2");
        let odd = source::read_stream(of_log.as_bytes(), "a").expect("read");
        let formulas = odd.ok().into_iter().flat_map(|read| read.runs).flat_map(|run| run.rows);
        for row in formulas {
            assert!(csv_text(row.redop.as_deref().unwrap_or_default()).starts_with('\''));
        }
    }
}
