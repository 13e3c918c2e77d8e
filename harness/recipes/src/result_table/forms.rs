//! One table in every form.

use super::*;

/// Of every quantity, with names that programs wrote to be misread.
fn result_table() -> ResultTable {
    let names = ["gemm<float, 2>", "say \"hi\",\t<script>\r\nx\\y", "\x1b[31m\0核&'"];
    ResultTable {
        name: "cuda_gpu_kern_sum".into(),
        title: "CUDA GPU Kernel <Summary>".into(),
        columns: vec![
            Column::decimals("Time", Quantity::Percent, [66.66, 33.33, 0.01]),
            Column::integers("Total Time", Quantity::Nanoseconds, [1_234_567, 8000, 7]),
            Column::decimals("Avg", Quantity::Nanoseconds, [617_283.5, 8000.0, f64::NAN]),
            Column::decimals("Med", Quantity::Nanoseconds, [617_283.5, 8000.0, 7.0]),
            Column::maybe_integers("Size", Quantity::Bytes, [Some(4_194_304), None, Some(0)]),
            Column::maybe_decimals("Rate", Quantity::BytesPerSecond, [None, Some(1.5e9), None]),
            Column::maybe_texts("GUID", [Some("0x1"), None, None]),
            Column::texts("Name", names),
        ],
    }
}

fn printed_as(form: &str, result_table: &ResultTable, look: Look) -> String {
    let words: Vec<&str> = form.split(':').collect();
    let spec = find_form(words[0]).expect("known");
    let form = spec.read(&words[1..]).unwrap_or_else(|error| panic!("{form}: {error}"));
    let mut out = Vec::new();
    form.write(&result_table.render(look), &mut out).expect("written");
    String::from_utf8(out).expect("text")
}

fn printed(form: &str) -> String {
    printed_as(form, &result_table(), Look::default())
}

#[test]
fn column_puts_text_left_and_numbers_right_with_thousands_parted() {
    let expected = r#" Time (%)  Total Time (ns)   Avg (ns)   Med (ns)  Size (MB)  Rate (MB/s)  GUID  Name
 --------  ---------------  ---------  ---------  ---------  -----------  ----  -------------------------------------
     66.7        1,234,567  617,283.5  617,283.5      4.194               0x1   gemm<float, 2>
     33.3            8,000    8,000.0    8,000.0               1,500.000        say "hi",\x09<script>\x0d\x0ax\y
      0.0                7                   7.0      0.000                     \x1b[31m\x00核&'
"#;
    let shown = printed("column");
    let lines: Vec<&str> = shown.lines().collect();
    let wanted: Vec<&str> = expected.lines().collect();
    assert_eq!(lines[0], wanted[0]);
    assert_eq!(lines[2..], wanted[2..], "{shown}");
    assert!(lines[1].starts_with(" --------  ---------------  ---------") && lines[1].ends_with("----"));
}

#[test]
fn column_obeys_its_options() {
    assert_eq!(
        printed("column:nohdr:nofmt:.:0:0:0:0:0:0:6").lines().collect::<Vec<_>>(),
        ["     66.7  gemm<…", "     33.3  say \"…", "      0.0  \\x1b[…"]
    );
    // Numbers are cut as words are, and the cut shows.
    assert_eq!(
        printed("column:nohdr:0:4:0:0:0:0:0:0").lines().collect::<Vec<_>>(),
        [" 1,2…", " 8,0…", "    7"]
    );
}

#[test]
fn a_column_is_as_wide_as_its_heading_and_first_hundred_rows_and_at_most_a_hundred() {
    let of = |names: Vec<String>| ResultTable {
        name: "x".into(),
        title: "X".into(),
        columns: vec![Column::texts("Name", names)],
    };
    let long = of(vec!["x".repeat(10_000)]);
    let line = |form: &str, result_table: &ResultTable, at: usize| {
        printed_as(form, result_table, Look::default()).lines().nth(at).unwrap_or_default().to_owned()
    };
    assert_eq!(line("column", &long, 2), format!(" {}…", "x".repeat(99)));
    assert_eq!(line("column:nolimit", &long, 2), format!(" {}", "x".repeat(10_000)));
    assert_eq!(line("column:200", &long, 2), format!(" {}…", "x".repeat(199)));
    let mut names = vec!["abcdef".to_owned(); 100];
    names.push("abcdefg".to_owned());
    assert_eq!(line("column", &of(names), 102), " abcde…");
    assert_eq!(line("column", &of(vec!["a".to_owned()]), 1), " ----");
}

#[test]
fn table_is_the_same_in_boxes() {
    let expected = r"+----------+-----------------+
| Time (%) | Total Time (ns) |
+----------+-----------------+
|     66.7 |       1,234,567 |
|     33.3 |           8,000 |
|      0.0 |               7 |
+----------+-----------------+
";
    assert_eq!(printed("table:.:.:0:0:0:0:0:0"), expected);
    assert_eq!(printed("table:nohdr:4:0:0:0:0:0:0:0").lines().nth(1), Some("| 66.7 |"));
}

#[test]
fn csv_quotes_what_has_a_comma_a_quote_or_the_end_of_a_line() {
    let expected = concat!(
        "Time (%),Total Time (ns),Avg (ns),Med (ns),Size (MB),Rate (MB/s),GUID,Name\n",
        "66.7,1234567,617283.5,617283.5,4.194,,0x1,\"gemm<float, 2>\"\n",
        "33.3,8000,8000.0,8000.0,,1500.000,,\"say \"\"hi\"\",\t<script>\r\nx\\y\"\n",
        "0.0,7,,7.0,0.000,,,\\x1b[31m\\x00核&'\n",
    );
    assert_eq!(printed("csv"), expected);
    assert_eq!(printed("csv:nohdr"), expected.split_once('\n').expect("a heading").1);
}

#[test]
fn texts_that_a_spreadsheet_would_compute_stand_for_themselves_and_numbers_stay() {
    let names = ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "a=b", "x\ry"];
    let values: Vec<i64> = (-4..4).collect();
    let columns = vec![Column::texts("Name", names), Column::integers("Bytes", Quantity::Plain, values)];
    let result_table = ResultTable::new("x", "X", columns);
    let csv = "Name,Bytes\n'=cmd|' /C calc'!A0,-4\n'+1,-3\n'-1,-2\n'@SUM(A1),-1\n'\tx,0\n'\\x0dx,1\na=b,2\nx\\x0dy,3\n";
    assert_eq!(printed_as("csv", &result_table, Look::default()), csv);
    assert!(
        printed_as("tsv", &result_table, Look::default()).contains("\n'=cmd|' /C calc'!A0\t-4\n'+1\t-3\n")
    );
}

#[test]
fn tsv_has_no_tab_and_no_end_of_a_line_in_a_value() {
    let last = |form: &str| {
        let text = printed(form);
        let row = text.lines().rev().nth(1).unwrap_or_default().to_owned();
        row.rsplit('\t').next().unwrap_or_default().to_owned()
    };
    assert_eq!(last("tsv"), "say \"hi\", <script>  x\\y");
    assert_eq!(last("tsv:nohdr:esc"), "say \"hi\",\\t<script>\\r\\nx\\\\y");
    assert!(printed("tsv").starts_with("Time (%)\tTotal Time (ns)\t"));
    assert!(printed("tsv:nohdr").starts_with("66.7\t1234567\t"));
}

#[test]
fn json_is_read_back_to_what_csv_shows() {
    let text = printed("json");
    assert_eq!(text.lines().count(), 1);
    let rows: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(rows.as_array().map(Vec::len), Some(3));
    assert_eq!(rows[0]["Total Time (ns)"], 1_234_567);
    assert_eq!(rows[0]["Time (%)"], 66.7);
    assert_eq!(rows[0]["Size (MB)"], 4.194);
    assert_eq!(rows[1]["Name"], "say \"hi\",\t<script>\r\nx\\y");
    assert_eq!(rows[2]["Name"], "\x1b[31m\0核&'");
    for empty in [&rows[2]["Avg (ns)"], &rows[1]["Size (MB)"], &rows[2]["GUID"]] {
        assert_eq!(empty, "");
    }
    let none = ResultTable::new("x", "X", vec![Column::texts::<&str>("Name", [])]);
    assert_eq!(printed_as("json", &none, Look::default()), "[]\n");
    let controls = ResultTable::new("x", "X", vec![Column::texts("Name", ["\u{9b}\x7f"])]);
    assert_eq!(printed_as("json", &controls, Look::default()), "[{\"Name\":\"\\u009b\\u007f\"}]\n");
}

#[test]
fn html_gives_a_browser_nothing_to_run() {
    let table = printed("htable");
    assert!(table.starts_with("<table>\n<thead>\n<tr><th>Time (%)</th>") && table.ends_with("</table>\n"));
    for expected in [
        "<td class=\"number\">1234567</td>",
        "<td>gemm&lt;float, 2&gt;</td>",
        "say &quot;hi&quot;,\\x09&lt;script&gt;",
        "\\x1b[31m\\x00核&amp;&#39;",
        "<td></td>",
    ] {
        assert!(table.contains(expected), "no `{expected}` in\n{table}");
    }
    assert!(!table.contains("<script"));
    let page = printed("hdoc");
    assert!(page.starts_with("<!DOCTYPE html>\n") && page.contains(&table));
    assert!(page.contains("<title>CUDA GPU Kernel &lt;Summary&gt;</title>") && page.contains("<style>"));
    let page = printed("hdoc:title=A & B:css=x\">.css");
    assert!(page.contains("<h1>A &amp; B</h1>") && page.contains("href=\"x&quot;&gt;.css\""), "{page}");
    assert!(!page.contains("<style>"));
}

#[test]
fn headings_of_2022_have_no_median_in_any_form() {
    let look = Look { headings: Headings::Of2022, unit: TimeUnit::Microseconds };
    let text = printed_as("csv", &result_table(), look);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "Time(%),Total Time (us),Average,Size (MB),Rate (MB/s),GUID,Name");
    assert!(lines[1].starts_with("66.7,1234.567,617.284,4.194,"), "{text}");
}

#[test]
fn options_are_those_that_a_form_declares() {
    let read = |form: &str| {
        let words: Vec<&str> = form.split(':').collect();
        let read = find_form(words[0]).expect("known").read(&words[1..]);
        read.map(|_| ()).map_err(|error| error.to_string())
    };
    for form in ["column:nohdr:nolimit:nofmt:.:3:0", "csv:nohdr", "tsv:esc:nohdr", "hdoc:title=:css=a=b"] {
        assert_eq!(read(form), Ok(()), "{form}");
    }
    for (form, expected) in [
        ("csv:nohdrs", "`csv` has no option `nohdrs`; it has: nohdr"),
        ("csv:3", "no option `3`"),
        ("json:nohdr", "it has none"),
        ("column:-3", "no option `-3`"),
        ("column:3x", "column width `3x`"),
        ("column:999999999999999999999", "is not a number up to 100000"),
        ("column:WIDTH", "no option `WIDTH`"),
        ("hdoc:title", "it has: title=, css="),
        ("hdoc:css=https://x", "a colon in a value is written `\\:`"),
        ("csv:", "no option ``"),
    ] {
        assert!(read(form).expect_err(form).contains(expected), "{form}: {:?}", read(form));
    }
    assert!(find_form("xml").is_none());
}

#[test]
fn messages() {
    let messages =
        ["csv:nohdrs", "json:nohdr", "column:3x", "column:200000", "hdoc:css=https://x"].map(|form| {
            let words: Vec<&str> = form.split(':').collect();
            let read = find_form(words[0]).expect("known").read(&words[1..]);
            read.map(|_| ()).expect_err(form).to_string()
        });
    insta::assert_snapshot!(messages.join("\n"));
}
