//! Logs that are larger than what is held of them.

use super::super::text::limits;
use super::super::*;
use super::{WHOLE, codes, only, text};
use std::io::Read;

/// Lines that are made as they are read, and are nowhere there together.
struct Lines<I> {
    lines: I,
    at_hand: std::io::Cursor<Vec<u8>>,
}

impl<I: Iterator<Item = String>> Read for Lines<I> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at_hand.position() == self.at_hand.get_ref().len() as u64 {
            self.at_hand = io::Cursor::new(self.lines.next().unwrap_or_default().into_bytes());
        }
        self.at_hand.read(into)
    }
}

fn streamed(lines: impl Iterator<Item = String>) -> Result<NcclTests, NotUnderstood> {
    let from = Lines { lines, at_hand: io::Cursor::default() };
    read_stream(io::BufReader::new(from), "log").expect("a stream that does not break off")
}

fn once(text: &str) -> impl Iterator<Item = String> {
    std::iter::once(text.to_owned())
}

/// More than is looked at beforehand.
fn chatter() -> impl Iterator<Item = String> {
    let rest = "x".repeat(8 << 10);
    let count = 2 * HEAD / rest.len();
    (0..count).map(move |n| format!("alpha-{}:1001:1002 [1] NCCL INFO {rest}\n", n % 8))
}

#[test]
fn a_table_behind_more_lines_of_nccl_than_are_held_is_read_as_it_stands() {
    let before = chatter().count() as u64;
    let read = streamed(chatter().chain(once(WHOLE)).chain(chatter())).expect("read");
    assert_eq!(codes(&read), Vec::<&str>::new());
    assert_eq!(read.lines, 2 * before + WHOLE.lines().count() as u64);
    let mut run = only(&read).clone();
    run.rows.iter_mut().for_each(|row| row.line -= before);
    assert_eq!(run, *only(&text(WHOLE)));
}

#[test]
fn a_host_that_only_lines_behind_the_head_name_is_known_where_it_sticks_to_a_cell() {
    let stuck = WHOLE.replacen("      -1    83.33", "      -110-0-0-1:7:8 [1] NCCL INFO x\n    83.33", 1);
    let named = "10-0-0-1:7:8 [1] NCCL INFO Bootstrap\n";
    let read = streamed(chatter().chain(once(named)).chain(once(&stuck))).expect("read");
    assert_eq!((only(&read).rows.len(), codes(&read)), (3, vec![]));
}

#[test]
fn endless_findings_and_complaints_are_capped_and_the_cause_is_kept() {
    let odd: String = (0..3000).map(|_| "8 2 float sum -1 34.94 0.00 0.00 0 35.20 0.00 x 0\n").collect();
    let read = text(&format!("{WHOLE}{odd}"));
    assert_eq!(codes(&read).iter().filter(|code| **code == "row-odd").count(), 1001);
    assert_eq!(read.findings.last().map(|it| &*it.message), Some("2000 more of these after the first 1000"));
    let (head, rows) = WHOLE.split_at(WHOLE.find("     8388608").expect("a row"));
    let warning = "alpha-1:1001:1002 [1] misc/socket.cc:9 NCCL WARN Net : Call to connect failed : Connection refused\n";
    let flood = warning.repeat(3000);
    let read = text(&format!("{head}{flood}{rows}"));
    assert_eq!(codes(&read).iter().filter(|code| **code == "nccl-warn").count(), 1001, "harmless as it is");
    let failed = text(&format!("{head}{flood}srun: error: Node failure on alpha-2\n"));
    let failure = only(&failed).failure.as_ref().expect("a failure");
    assert_eq!((failure.class, failure.node.as_deref()), (FailureClass::NodeFailure, Some("alpha-2")));
}

#[test]
fn reading_stops_at_the_memory_limit_and_that_is_reported() {
    let labels = (0..=limits::MOST_BYTES / limits::LABEL).map(|n| format!("{n}: #\n"));
    let read = streamed(once(WHOLE).chain(labels.clone()).chain(once(WHOLE))).expect("read");
    assert_eq!((only(&read).rows.len(), codes(&read)), (3, vec!["read-in-part"]));
    let refused = streamed(labels.chain(once(WHOLE))).expect_err("no room for it");
    assert!(refused.reason.starts_with("nothing after line 65"), "{refused}");
}

#[test]
fn a_line_without_end_is_cut_and_reported() {
    let long = "x".repeat(100 << 10);
    let read = text(&format!("{long}\n{WHOLE}"));
    assert_eq!((only(&read).rows.len(), codes(&read)), (3, vec!["line-too-long"]));
    // What is left out may belong to the last cell.
    let last = format!("152.24  152.24      12{}3\n", " ".repeat(100 << 10));
    let read = text(&WHOLE.replace("152.24  152.24       0\n", &last));
    assert_eq!(only(&read).rows.len(), 2);
    assert!(
        codes(&read).contains(&"row-cut") && codes(&read).contains(&"line-too-long"),
        "{:?}",
        codes(&read)
    );
}

#[test]
fn json_that_is_too_large_for_one_document_is_refused_and_a_log_behind_a_line_of_it_is_not() {
    let long = std::iter::repeat_n("x".repeat(1 << 20), 17);
    let whole = once("{\"config\":{},\"results\":[\"").chain(long.clone()).chain(once("\"]}"));
    let why = "JSON document larger than the limit of 16 MiB";
    assert_eq!(streamed(whole).map_err(|refused| refused.reason), Err(why.to_owned()));
    let log = once("{\"level\":\"info\"}\n").chain(long).chain(once("\n")).chain(once(WHOLE));
    assert_eq!(only(&streamed(log).expect("read")).rows.len(), 3);
}
