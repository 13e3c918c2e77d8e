//! The failing windows of a page: the rank to look at first, few bars, and foreign words as words.

use super::super::run_page;
use crate::report::Report;
use crate::report::fixture::{self, Reported as _};
use recipes::excerpt::{ReadProcess, ReadSlice, ReadTrace, ReadTrack};
use std::collections::BTreeMap;

fn slice(category: &str, name: &str, start: f64, length: f64) -> ReadSlice {
    ReadSlice { category: category.to_owned(), name: name.to_owned(), start, length }
}

fn rank(name: &str, slices: Vec<ReadSlice>) -> ReadProcess {
    let tracks = vec![ReadTrack { name: "GPU 0, stream 7".to_owned(), slices }];
    ReadProcess { name: name.to_owned(), tracks, counters: BTreeMap::new() }
}

fn trace(processes: Vec<ReadProcess>) -> ReadTrace {
    ReadTrace {
        window: "AllReduce number 3".to_owned(),
        ns: 1_000_000,
        is_aligned: true,
        clocks: "2 clocks aligned".to_owned(),
        look: "rank 3 on p5-002: the others wait".to_owned(),
        kept: 5,
        merged: 1_200,
        processes,
    }
}

fn page(traces: &[(String, Result<ReadTrace, String>)]) -> String {
    let made = fixture::red();
    let report = Report { traces, ..made.report() };
    String::from_utf8(run_page(&report).expect("a page")).expect("text")
}

fn section(page: &str) -> &str {
    let behind = &page[page.find("id=\"windows\"").expect("a section")..];
    &behind[..behind.find("</section>").expect("an end")]
}

#[test]
fn each_rank_is_a_row_of_lanes_on_one_axis_in_the_order_of_the_file() {
    let late = rank(
        "rank 3 · p5-002",
        vec![slice("compute", "gemm", 0.0, 500.0), slice("communication", "all", 500.0, 500.0)],
    );
    let early = rank("rank 0 · p5-001", vec![slice("communication", "all", 250.0, 750.0)]);
    let page = page(&[("gather".to_owned(), Ok(trace(vec![late, early])))]);
    let open = section(&page);
    assert!(open.contains("<strong>Look at</strong> rank 3 on p5-002: the others wait"), "{open}");
    assert!(
        open.contains("5 of 1,205 slices") && open.contains("href=\"cases/gather/trace.json\""),
        "{open}"
    );
    assert!(open.find("rank 3 · p5-002") < open.find("rank 0 · p5-001"), "{open}");
    for bar in [
        "<rect class=v x=\"0.0\" width=\"500.0\" y=\"15\" height=\"4\"><title>gemm, 500.0 us</title>",
        "<rect class=c x=\"500.0\" width=\"500.0\" y=\"10\" height=\"4\"><title>all, 500.0 us</title>",
        "<rect class=c x=\"250.0\" width=\"750.0\"",
    ] {
        assert!(open.contains(bar), "no {bar} in {open}");
    }
    assert!(page.contains("<a href=\"#windows\">"));
    assert!(page.find("id=\"grid\"") < page.find("id=\"windows\""), "which node comes first");
    // Without an excerpt there is neither section nor link.
    assert!(!self::page(&[]).contains("#windows"));
}

#[test]
fn a_window_without_a_collective_is_named_once() {
    let all = "all that was recorded";
    let one = ReadTrace {
        window: all.to_owned(),
        look: format!("{all} of 1 ranks"),
        ..trace(vec![rank("rank 0", vec![slice("compute", "k", 0.0, 500.0)])])
    };
    let page = page(&[("gather".to_owned(), Ok(one))]);
    assert_eq!(section(&page).matches(all).count(), 1, "{}", section(&page));
}

#[test]
fn what_is_many_is_few_bars_and_what_cannot_be_read_is_said() {
    let many: Vec<ReadSlice> =
        (0..9_000).map(|at| slice("compute", "k", f64::from(at) / 9.0, 0.05)).collect();
    let ranks = (0..99).map(|at| {
        rank(
            &format!("rank {at}"),
            many.iter().map(|one| slice("compute", "k", one.start, one.length)).collect(),
        )
    });
    let traces = [
        ("a".to_owned(), Ok(trace(ranks.collect()))),
        ("b".to_owned(), Err("larger than 16 MiB".to_owned())),
    ];
    let page = page(&traces);
    let open = section(&page);
    assert!(open.matches("<rect").count() <= 8 * 60, "{}", open.matches("<rect").count());
    assert!(open.contains("91 more ranks in the file") && open.contains("larger than 16 MiB"), "{open}");
    assert!(open.len() < 100_000, "{}", open.len());
}

#[test]
fn nics_that_carry_least_are_shown_beside_the_one_that_carries_most() {
    let nic =
        |at: usize, rate: f64| (format!("rdmap{at}s0 tx_bytes (bytes/s)"), vec![(0.0, rate), (500.0, rate)]);
    let counters = (0..32).map(|at| nic(at, if at == 17 { 4.0e9 } else { 12.0e9 })).collect();
    let nics = ReadProcess { name: "NICs · p5-002".to_owned(), tracks: Vec::new(), counters };
    let page = page(&[("gather".to_owned(), Ok(trace(vec![nics])))]);
    let open = section(&page);
    let slow = open.find("p5-002 rdmap17s0: 4.0 GB/s").expect("the slow one");
    assert!(slow < open.find(": 12.0 GB/s").expect("its peers"), "{open}");
    assert!(open.contains("6 of 32 NICs"), "{open}");
}

#[test]
fn nics_of_a_node_whose_clock_is_not_aligned_are_drawn_on_the_axis_of_its_ranks() {
    let own = rank("rank 8 · p5-002", vec![slice("communication", "all", 6_000_000.0, 700.0)]);
    let points = vec![(5_999_700.0, 2.0e9), (6_000_500.0, 4.0e9)];
    let counters = BTreeMap::from([("rdmap79s0 rx_bytes (bytes/s)".to_owned(), points)]);
    let nics = ReadProcess { name: "NICs · p5-002".to_owned(), tracks: Vec::new(), counters };
    let apart = ReadTrace { is_aligned: false, ..trace(vec![own, nics]) };
    let page = page(&[("gather".to_owned(), Ok(apart))]);
    let open = section(&page);
    for bar in ["<rect class=k x=\"0.0\" width=\"500.0\"", "<rect class=k x=\"500.0\" width=\"200.0\""] {
        assert!(open.contains(bar), "{bar}: {open}");
    }
    assert!(!open.contains("x=\"1000.0\""), "nothing is drawn behind the end: {open}");
}

#[test]
fn foreign_words_of_an_excerpt_stay_words() {
    const HOSTILE: &str = "\"><script>alert(1)</script>\u{202e}";
    let mut hostile = trace(vec![rank(HOSTILE, vec![slice("compute", HOSTILE, f64::MAX, f64::MAX)])]);
    hostile.look = HOSTILE.to_owned();
    hostile.window = HOSTILE.to_owned();
    hostile.clocks = HOSTILE.to_owned();
    hostile.processes[0]
        .counters
        .insert(format!("{HOSTILE} {HOSTILE} (bytes/s)"), vec![(f64::MAX, f64::MAX), (f64::MIN, f64::MAX)]);
    let page = page(&[("../../etc".to_owned(), Ok(hostile))]);
    let open = section(&page);
    assert!(!open.contains("<script") && !open.contains('\u{202e}') && !open.contains("NaN"), "{open}");
    assert!(!open.contains("href=\"cases/../"), "{open}");
}
