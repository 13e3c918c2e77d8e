//! Reports over small exports.

use super::*;
use crate::report::argument;
use crate::result_table::{Headings, TimeUnit, Values};

/// The cells of a report as `name` or `name:argument` asks for it, the headings first; none where it has nothing.
pub(super) fn lines(trace: &Trace, asked: &str) -> Vec<String> {
    let result_table = run(trace, asked).expect("read");
    let Some(result_table) = result_table else { return Vec::new() };
    let heading =
        |column: &crate::result_table::Column| column.heading(Headings::Today, TimeUnit::Nanoseconds);
    let cell = |values: &Values, row: usize| match values {
        Values::Integers(all) => all.get(row).map(|value| value.to_string()),
        Values::Decimals(all) => all[row].map(|value| format!("{value:.1}")),
        Values::Texts(all) => all.get(row).map(str::to_owned),
        Values::Lists(all) => all[row].as_ref().map(|list| list.text().to_owned()),
    };
    let mut lines = vec![result_table.columns.iter().filter_map(heading).collect::<Vec<_>>().join("|")];
    lines.extend((0..result_table.height()).map(|row| {
        let cells = result_table.columns.iter().map(|column| cell(&column.values, row).unwrap_or_default());
        cells.collect::<Vec<_>>().join("|")
    }));
    lines
}

pub(super) fn run(trace: &Trace, asked: &str) -> Result<Option<ResultTable>, ExportError> {
    let mut words = asked.split(':');
    let report = find(words.next().unwrap_or_default()).expect("a report");
    let arguments = Arguments::read(report.name, report.arguments, &words.collect::<Vec<_>>());
    (report.run)(trace, &arguments.expect("known"))
}

#[test]
fn each_report_has_a_name_of_its_own_and_says_what_it_lacks() {
    for (at, report) in LIST.iter().enumerate() {
        assert!(LIST[..at].iter().all(|other| other.name != report.name), "{}", report.name);
        assert!(!report.data.is_empty() && !report.about.is_empty(), "{}", report.name);
        assert_eq!(find(report.name).map(|found| found.title), Some(report.title));
        assert!(find(&report.name.replace('_', "")).is_some(), "{}", report.name);
    }
    for (older, name) in [
        ("cudaapisum", "cuda_api_sum"),
        ("gpukernsum", "cuda_gpu_kern_sum"),
        ("gpumemtimesum", "cuda_gpu_mem_time_sum"),
        ("nvtxppsum", "nvtx_pushpop_sum"),
        ("osrtsum", "osrt_sum"),
    ] {
        assert_eq!(find(older).map(|report| report.name), Some(name), "{older}");
    }
    assert!(DEFAULT.iter().all(|name| find(name).is_some()));
}

#[test]
fn arguments_are_those_that_a_report_declares() {
    let report = find("cuda_gpu_kern_sum").expect("there");
    let read = |words: &[&str]| {
        Arguments::read(report.name, report.arguments, words).map_err(|error| error.to_string())
    };
    assert!(read(&["base"]).expect("known").has("base"));
    assert!(read(&["bse"]).expect_err("unknown").contains("it has: base, mangled"));
    assert!(read(&["base", "mangled"]).expect_err("both").contains("exclude each other"));
    assert!(read(&["base=3"]).expect_err("a value").contains("takes no value"));
    let report = find("network_congestion").expect("there");
    let spec = &report.arguments[0];
    let read = |words: &[&str]| Arguments::read(report.name, report.arguments, words);
    assert_eq!(read(&[]).expect("none").number(spec), 10_000);
    assert_eq!(read(&["ticks_threshold=5"]).expect("a number").number(spec), 5);
    assert!(read(&["ticks_threshold"]).is_err() && read(&["ticks_threshold=x"]).is_err());
}

#[test]
fn a_span_is_two_numbers_the_lesser_first() {
    const KNOWN: &[ArgumentSpec] = &[argument!("window", "steps", Takes::Span)];
    let read = |word: &str| Arguments::read("steps", KNOWN, &[word]);
    assert_eq!(read("window=70..75").expect("a span").span(&KNOWN[0]), Some((70, 75)));
    assert_eq!(read("window=7..7").expect("a span").span(&KNOWN[0]), Some((7, 7)));
    assert_eq!(Arguments::default().span(&KNOWN[0]), None);
    for word in ["window", "window=", "window=70", "window=75..70", "window=a..b", "window=-1..3"] {
        let error = read(word).expect_err(word).to_string();
        assert!(error.contains("window=70..75"), "{error}");
    }
}

#[test]
fn messages() {
    const KNOWN: &[ArgumentSpec] = &[
        argument!("base", "", Takes::Nothing, "name"),
        argument!("mangled", "", Takes::Nothing, "name"),
        argument!("bins", "", Takes::Number(60)),
        argument!("limit", "", Takes::Decimal("0.5")),
        argument!("window", "", Takes::Span),
        argument!("range", "", Takes::Text("")),
    ];
    let messages =
        ["bse", "base=3", "base:mangled", "bins", "bins=x", "limit=x", "window", "window=75..70", "range="]
            .map(|words| {
                let words: Vec<&str> = words.split(':').collect();
                Arguments::read("steps", KNOWN, &words).expect_err("refused").to_string()
            });
    insta::assert_snapshot!(messages.join("\n"));
}
