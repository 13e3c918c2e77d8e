//! The lines of the five scripts, and where these are wrong.

use super::super::{Compat, Explain, Script};
use super::{called, line};
use std::io::Cursor;

fn printed(script: Script, text: &str) -> String {
    let (mut compat, mut out) = (Compat::new(script), Vec::new());
    compat.read(Cursor::new(text.to_owned()), &mut out).expect("in memory");
    let lines = compat.finish(&mut out).expect("in memory");
    let out = String::from_utf8(out).expect("text");
    let headed = u64::from(script == Script::Aggregate && lines > 0);
    assert_eq!(out.lines().count() as u64, lines + headed);
    out
}

fn some() -> String {
    let big = called(0, 8, "AllReduce", 1 << 31, 0);
    let small = called(1, 8, "AllGather", 16_384, 0) + &called(1, 8, "AllGather", 16_385, 0);
    let none = called(2, 8, "Send", 0, 1) + &called(2, 8, "Send", 4, 1).replace("datatype 7", "datatype 12");
    big + &small + &none + &line(0, "Using network IB")
}

#[test]
fn calls_are_printed_as_gawk_prints_them() {
    let expected = "AllReduce 2147483648 7 8589934592\nAllGather 16384 7 65536\nAllGather 16385 7 65540\n";
    assert_eq!(printed(Script::Comm, &some()), expected);
    let labelled = called(0, 8, "AllReduce", 4, 0);
    assert_eq!(printed(Script::Comm, &format!("0: {labelled}")), "0 4 7 16\n");
}

#[test]
fn operations_buckets_and_kinds_are_gathered() {
    let per_op = "AllGather calls=2 min=65536 avg=65538 max=65540 total=131076\n\
                  AllReduce calls=1 min=8589934592 avg=8589934592 max=8589934592 total=8589934592\n";
    assert_eq!(printed(Script::PerOp, &some()), per_op);
    assert_eq!(printed(Script::Histogram, &some()), "AllGather:64KB-1MB 2\nAllReduce:>16MB 1\n");
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
    let expected = "calls op count dtype bytes_per_call 1 AllGather 16384 7 65536 1 AllGather 16385 7 65540 1 AllReduce \
                    2147483648 7 8589934592";
    assert_eq!(words(&printed(Script::Aggregate, &some())), expected);
}

#[test]
fn the_window_of_steps_is_both_ends_included_and_opens_with_a_word_alone() {
    let step = |at: u64| format!("Training epoch 0, iteration {at}/99 | lr: 1\nafter {at}\n");
    let text: String = (43..=52).map(step).collect();
    let expected: String = (45..=50).map(step).collect();
    assert_eq!(printed(Script::SeparateSteps, &text), expected);
    assert_eq!(printed(Script::SeparateSteps, &text.replace("iteration ", "iteration: ")), "");
}

#[test]
fn errors_of_the_scripts_on_an_input_are_listed() {
    let text = format!(
        "0: {}{}Training epoch 0, iteration 46/99 | lr: 1\n",
        called(0, 8, "AllGather", 4, 0),
        some()
    );
    let mut explain = Explain::default();
    explain.read(Cursor::new(text)).expect("in memory");
    let wrong: Vec<(u64, u64, String)> = explain
        .finish()
        .into_iter()
        .map(|it| (it.lines, it.line, it.what.split([':', ',']).next().unwrap_or_default().to_owned()))
        .collect();
    let expected = [
        (1, 1, "a label of the launcher is taken for the operation"),
        (1, 5, "a call of zero elements is silently left out"),
        (1, 6, "a data type unknown to the scripts"),
        (1, 2, "more than 2147483647 bytes"),
        (3, 1, "the bytes are those of one peer"),
        (4, 1, "the line of one rank is counted as a call"),
        (1, 3, "exactly at an edge"),
        (1, 8, "NeMo writes the line of an iteration at its end"),
    ];
    assert_eq!(wrong, expected.map(|(lines, line, what)| (lines, line, what.to_owned())));
}
