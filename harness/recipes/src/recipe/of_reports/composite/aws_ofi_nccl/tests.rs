//! Requests of the plugin on small exports.

use super::*;
use crate::result_table::Values;
use crate::testing::{Made, PROCESS};
use nsys::trace::nvtx::{DOMAIN, MARK};

fn domain(made: &Made, id: i64, name: &str) {
    made.event(DOMAIN, 0, &[("domainId", id.into()), ("text", name.to_owned().into())]);
}

fn request(made: &Made, domain: i64, (start, end): (i64, Option<i64>), name: &str) {
    let mut own = vec![
        ("start", start.into()),
        ("domainId", domain.into()),
        ("text", name.to_owned().into()),
        ("endGlobalTid", (PROCESS | 9).into()),
    ];
    own.extend(end.map(|end| ("end", end.into())));
    made.event(nsys::trace::nvtx::START_END, 3, &own);
}

fn made_of(trace: &Trace) -> Tables {
    let extract = take(trace, &Arguments::default()).expect("sound").expect("events").0;
    let of =
        ReportExtract { rank: 4, file: "r".to_owned(), host: None, utc_epoch_ns: None, extract: &extract };
    let made = make(&[of], &Arguments::default());
    Tables(made)
}

/// The results, by table and column.
struct Tables(crate::recipe::of_reports::Made);

impl Tables {
    fn texts(&self, table: &str, column: &str) -> Vec<String> {
        let result_table = &self.0.tables.iter().find(|(name, _)| *name == table).expect("a table").1;
        match &result_table.column(column).expect("a column").values {
            Values::Texts(all) => all.iter().map(|text| text.unwrap_or("-").to_owned()).collect(),
            Values::Integers(all) => {
                all.iter().map(|value| value.map_or("-".to_owned(), |value| value.to_string())).collect()
            }
            Values::Decimals(all) => {
                all.iter().map(|value| value.map_or("-".to_owned(), |value| value.to_string())).collect()
            }
            Values::Lists(all) => panic!("lists: {all:?}"),
        }
    }
}

fn full() -> Made {
    let made = Made::begin();
    domain(&made, 5, "aws-ofi-nccl s_comm 0x7f01_3");
    domain(&made, 6, "aws-ofi-nccl dev 2_0");
    domain(&made, 7, "aws-ofi-nccl dev 2_1");
    domain(&made, 8, "NCCL");
    request(&made, 5, (0, Some(90)), "Send");
    for at in [10, 20, 30] {
        request(&made, 6, (at, Some(at + 15)), "Send_write_seg");
    }
    request(&made, 7, (12, None), "Send_write_seg");
    request(&made, 8, (13, Some(14)), "ncclSend");
    made.event(MARK, 3, &[("start", 50.into()), ("text", "Flush".to_owned().into())]);
    made.event(MARK, 3, &[("start", 51.into()), ("text", "my mark".to_owned().into())]);
    made
}

#[test]
fn requests_stand_with_their_places_and_open_ones_are_shown_and_counted() {
    let made = made_of(&full().trace());
    assert_eq!(made.texts("rows", "kind"), ["s_comm", "dev", "dev", "dev", "dev", "default"]);
    assert_eq!(made.texts("rows", "comm"), ["0x7f01", "-", "-", "-", "-", "-"]);
    assert_eq!(made.texts("rows", "slot"), ["3", "-", "-", "-", "-", "-"]);
    assert_eq!(made.texts("rows", "rail"), ["-", "0", "1", "0", "0", "-"]);
    assert_eq!(made.texts("rows", "duration"), ["90", "15", "-", "15", "15", "-"]);
    assert_eq!(made.texts("rows", "open"), ["-", "-", "yes", "-", "-", "-"]);
    assert_eq!(made.texts("rows", "end tid")[..2], ["9", "9"]);
    assert_eq!(made.0.notes, ["AWS_OFI_NCCL: ranges without an end: 1 of 6"]);
}

#[test]
fn rails_are_held_beside_each_other() {
    let made = made_of(&full().trace());
    assert_eq!(made.texts("rails", "event"), ["Flush", "Send_write_seg", "Send_write_seg", "Send"]);
    assert_eq!(made.texts("rails", "Count"), ["1", "3", "1", "1"]);
    assert_eq!(made.texts("rails", "Open"), ["0", "0", "1", "0"]);
    assert_eq!(made.texts("rails", "Of Device"), ["-", "75", "25", "-"]);
    assert_eq!(made.texts("rails", "Most at Once"), ["-", "2", "-", "1"]);
}

#[test]
fn marks_of_such_names_in_a_program_without_the_plugin_are_its_own() {
    let made = Made::begin();
    made.event(MARK, 3, &[("start", 50.into()), ("text", "Read".to_owned().into())]);
    assert!(take(&made.trace(), &Arguments::default()).expect("sound").is_none());
}

#[test]
fn a_text_of_lttng_beside_a_report_gives_sizes_and_one_that_is_none_is_an_error() {
    let made = full();
    let beside = made.path().with_file_name("r.lttng.txt");
    let line = |rail: u32, size: u32| {
        format!(
            "[1.5] h nccl_ofi_plugin:Send_write_segment_start: {{ dev = 2, rail_id = {rail}, size = {size} }}\n"
        )
    };
    std::fs::write(&beside, line(0, 3000) + &line(1, 1000)).expect("written");
    let tables = made_of(&made.trace());
    assert_eq!(tables.texts("lttng", "size"), ["3000", "1000"]);
    assert_eq!(tables.texts("lttng_rails", "Of Device"), ["75", "25"]);
    std::fs::write(&beside, "nothing of it\n").expect("written");
    let error = take(&made.trace(), &Arguments::default()).map(|_| ()).expect_err("no events").to_string();
    assert!(
        error.contains("`r.lttng.txt` is not a readable export: line 1 is not a babeltrace event"),
        "{error}"
    );
}
