//! Ranges of small reports: their names and domains, and events that are not ranges.

use super::nvtx::*;
use super::{Filter, RangeFilter, Trace};
use crate::testing::{Made, OTHER_PROCESS, PROCESS};

fn labels(trace: &Trace) -> Vec<String> {
    let ranges = Ranges::read(trace).expect("read").expect("ranges");
    (0..ranges.len()).map(|row| ranges.label(row).to_owned()).collect()
}

#[test]
fn domains_of_two_processes_may_have_one_number() {
    let made = Made::begin();
    for (process, name) in [(PROCESS, "NCCL"), (OTHER_PROCESS, "MPI")] {
        let tid = ("globalTid", (process | 3).into());
        let domain = ("domainId", 1i64.into());
        made.event(DOMAIN, 3, &[tid.clone(), domain.clone(), ("text", name.to_owned().into())]);
        let end = ("end", 5i64.into());
        made.event(PUSH_POP, 3, &[tid.clone(), domain, end.clone(), ("text", "x".to_owned().into())]);
        // The same number as a range of the default domain, and of one that was never named.
        made.event(PUSH_POP, 3, &[tid.clone(), end.clone(), ("text", "x".to_owned().into())]);
        made.event(PUSH_POP, 3, &[tid, end, ("domainId", 9i64.into()), ("text", "x".to_owned().into())]);
    }
    assert_eq!(labels(&made.trace()), ["NCCL:x", ":x", ":x", "MPI:x", ":x", ":x"]);
}

#[test]
fn a_range_is_called_by_its_own_text_else_by_its_registered_one() {
    let made = Made::begin();
    made.string(4, "registered");
    let end = ("end", 5i64.into());
    made.event(PUSH_POP, 3, &[end.clone(), ("text", "own".to_owned().into()), ("textId", 4i64.into())]);
    made.event(PUSH_POP, 3, &[end.clone(), ("textId", 4i64.into())]);
    made.event(PUSH_POP, 3, &[end.clone(), ("textId", 5i64.into())]);
    made.event(PUSH_POP, 3, &[end.clone(), ("textId", (-1i64).into())]);
    made.event(PUSH_POP, 3, &[end.clone(), ("text", String::new().into()), ("textId", 4i64.into())]);
    made.event(PUSH_POP, 3, &[end]);
    let expected = [":own", ":registered", ":[no string 5]", ":[no string -1]", ":", ":"];
    assert_eq!(labels(&made.trace()), expected);
}

#[test]
fn open_ranges_and_ranges_that_end_before_they_begin_are_counted_in_notes() {
    let made = Made::begin();
    made.range((9, 8), 3, "backwards").event(PUSH_POP, 3, &[("text", "open".to_owned().into())]);
    made.event(MARK, 3, &[("text", "mark".to_owned().into())]);
    let trace = made.trace();
    assert!(Ranges::read(&trace).expect("read").is_none());
    let notes =
        ["NVTX: ranges without an end, left out: 1", "NVTX: ranges that end before they begin, left out: 1"];
    assert_eq!(trace.notes(), notes);
}

#[test]
fn ranges_keep_their_numbers_and_their_second_threads() {
    let made = Made::begin();
    made.event(MARK, 3, &[]).started((0, 1), (3, 4), "a").started((0, 1), (3, 3), "b").range(
        (-9, -9),
        5,
        "c",
    );
    made.event(PUSH_POP, 3, &[("end", 5i64.into()), ("eventId", 77i64.into())]);
    let ranges = Ranges::read(&made.trace()).expect("read").expect("ranges");
    assert_eq!(ranges.id, [2, 3, 4, 77]);
    assert_eq!(ranges.end_tid, [Some(PROCESS | 4), None, None, None]);
    assert_eq!((ranges.start[2], ranges.ns(2)), (-9, 0));
}

#[test]
fn the_longest_range_there_can_be_has_its_length() {
    let made = Made::begin();
    made.range((i64::MIN, i64::MAX - 1), 3, "ever");
    let ranges = Ranges::read(&made.trace()).expect("read").expect("ranges");
    assert_eq!(ranges.ns(0), u64::MAX - 1);
}

#[test]
fn colons_in_names_do_not_make_domains() {
    let made = Made::begin();
    let domain = [("domainId", 1i64.into()), ("text", "a:b".to_owned().into())];
    made.event(DOMAIN, 3, &domain);
    made.range((0, 10), 3, "b:x").range((20, 30), 3, "x");
    let own = [
        ("start", 40i64.into()),
        ("end", 50i64.into()),
        ("domainId", 1i64.into()),
        ("text", "x".to_owned().into()),
    ];
    made.event(PUSH_POP, 3, &own);
    let trace = made.trace();
    assert_eq!(labels(&trace), [":b:x", ":x", "a:b:x"]);
    let spans = |text: &str| {
        let filter: RangeFilter = text.parse().expect("a range");
        ranges_named(&trace, &filter).expect("read")
    };
    assert_eq!(spans("x@*"), [(20, 30), (40, 50)]);
    assert_eq!(spans("x"), [(20, 30)]);
    assert_eq!(spans("x@a:b"), [(40, 50)]);
    assert_eq!(spans("b:x@a"), []);
    assert_eq!(spans("b:x"), [(0, 10)]);
    assert_eq!(spans("x@*/1"), [(40, 50)]);
    assert_eq!(spans("x@*/2"), []);
}

#[test]
fn a_filter_by_a_range_that_is_not_there_leaves_nothing() {
    let made = Made::begin();
    made.range((0, 10), 3, "x");
    let filter: RangeFilter = "y".parse().expect("a range");
    let trace = made.trace().filtered(&Filter::Range(filter)).expect("filtered");
    assert!(Ranges::read(&trace).expect("read").is_none());
    assert_eq!(trace.notes(), ["no range named `y`"]);
}
