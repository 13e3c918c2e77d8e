//! Rows in pieces, rows that are cut, and bytes of no row.

use super::super::*;
use super::{WHOLE, codes, only, text};
use proptest::prelude::*;

const INFO: &str = "alpha-1:1001:1002 [1] NCCL INFO AllReduce: opCount 0 count 2 [nranks=2]";

/// `WHOLE`, with a line of NCCL between any two pieces that `cut` makes of the first row.
fn broken(cut: impl Fn(&str) -> String) -> String {
    WHOLE
        .split_inclusive('\n')
        .map(|line| if line.contains(" 83.33 ") { cut(line) } else { line.to_owned() })
        .collect()
}

#[test]
fn a_row_broken_by_an_nccl_line_is_joined() {
    let rows = only(&text(WHOLE)).rows.clone();
    let original = WHOLE.lines().find(|line| line.contains(" 83.33 ")).expect("a row");
    for at in 1..original.len() {
        let (head, tail) = original.split_at(at);
        let read = text(&broken(|_| format!("{head}\n{INFO}\n{INFO}\n{tail}\n")));
        let got = &only(&read).rows;
        // A piece of nothing but blanks or of the size's first digits may be lost, and then it is reported.
        assert!(got.len() == 3 || !read.findings.is_empty(), "{at}: {read:#?}");
        let begun = original.find("8388608").expect("a size") < at;
        assert!(got.len() == 3 || !begun, "{at}: {read:#?}");
        for row in got {
            let same =
                rows.iter().any(|r| r.size_bytes == row.size_bytes && r.out_of_place == row.out_of_place);
            assert!(same, "{at}: {row:?}");
        }
    }
}

#[test]
fn a_row_with_nccl_stuck_to_its_cells_is_joined() {
    let rows = only(&text(WHOLE)).rows.clone();
    let stuck = broken(|line| {
        let (head, rest) = line.split_once("    83.33").expect("a time");
        let (first, second) = rest.split_once("    80.98").expect("a time");
        format!("{head}{INFO}\n{INFO}\n    83.33{first}{INFO}\n    80.98{second}")
    });
    let read = text(&stuck);
    let got: Vec<Row> = only(&read).rows.iter().cloned().map(|row| Row { line: 0, ..row }).collect();
    let expected: Vec<Row> = rows.into_iter().map(|row| Row { line: 0, ..row }).collect();
    assert_eq!(got, expected);
    assert_eq!(codes(&read), Vec::<&str>::new());
}

#[test]
fn a_row_that_another_follows_is_cut() {
    let read = text(&broken(|line| line.replace("    80.98  103.59  103.59       0", "")));
    assert_eq!((only(&read).rows.len(), codes(&read)), (2, vec!["row-cut"]));
}

#[test]
fn figures_that_are_no_numbers_make_no_row() {
    for figure in ["  nan", " -nan", "  inf", "-3.25"] {
        let read = text(&WHOLE.replacen("83.33", figure, 1));
        assert_eq!((only(&read).rows.len(), codes(&read)), (2, vec!["not-a-number"]), "{figure}");
    }
    for cell in ["83.3x", "83\u{fffd}33", "8,333", "    0"] {
        let read = text(&WHOLE.replacen("83.33", cell, 1));
        assert_eq!((only(&read).rows.len(), codes(&read)), (2, vec!["row-odd"]), "{cell}");
    }
}

#[test]
fn a_log_cut_anywhere_gives_no_row_that_was_not_there() {
    let stuck = broken(|line| {
        let (head, rest) = line.split_once("    83.33").expect("a time");
        format!("{head}{INFO}\n    83.33{rest}")
    });
    for log in [WHOLE.replace("       0\n", "     120\n"), stuck, WHOLE.replace('\n', "\r\n")] {
        let whole = text(&log);
        for end in 0..log.len() {
            let Ok(read) = read(&log.as_bytes()[..end], "x") else { continue };
            for (row, original) in read.runs.iter().flat_map(|run| &run.rows).zip(&only(&whole).rows) {
                assert_eq!(row, original, "{end}");
            }
            let rows = read.runs.iter().map(|run| run.rows.len()).sum::<usize>();
            assert!(
                read.runs.iter().any(|run| run.concluded) || rows == 0 || !read.findings.is_empty(),
                "{end}"
            );
        }
    }
}

#[test]
fn a_last_line_without_a_break_is_a_row_where_its_end_is_sure() {
    let row = "8 2 float sum -1 34.94 0.00 0.00 0 35.20 0.00 0.00 ";
    for (end, rows) in [("0", 1), ("N/A", 1), ("1", 0), ("12", 0)] {
        let read = read(
            format!(
                "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n{row}{end}"
            )
            .as_bytes(),
            "x",
        );
        assert_eq!(read.map(|read| only(&read).rows.len()), Ok(rows), "{end}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = read(&bytes, "x");
    }

    #[test]
    fn no_change_of_a_log_makes_it_panic(
        at in 0..WHOLE.len(), length in 0_usize..60,
        insert in prop::sample::select(vec!["", "\0", "\r", "\n", "\x1b[", "nan", "é", "{", "[1,0]<stdout>:", "0: ", "NCCL WARN ", "# "]),
    ) {
        let mut bytes = WHOLE.as_bytes().to_vec();
        let end = (at + length).min(bytes.len());
        bytes.splice(at..end, insert.bytes());
        if let Ok(read) = read(&bytes, "x") {
            for run in &read.runs {
                let _ = (recompute(run, Some(2)), recompute(run, None), ranks_from_ratio(run), render(run));
            }
        }
    }
}

/// `WHOLE` in three parts: what stands above the rows, the rows, what stands below.
fn parts() -> (String, Vec<String>, String) {
    let lines: Vec<&str> = WHOLE.split_inclusive('\n').collect();
    let rows = |line: &&str| line.contains(" float ");
    let first = lines.iter().position(rows).expect("a row");
    (
        lines[..first].concat(),
        lines[first..first + 3].iter().map(|it| (*it).to_owned()).collect(),
        lines[first + 3..].concat(),
    )
}

#[test]
fn tables_that_ran_at_once_are_mixed_and_give_no_row() {
    let (head, rows, end) = parts();
    let [a, b, c] = rows.as_slice() else { panic!("{rows:?}") };
    let other = head.replace("alpha-1", "beta-1");
    let table = [
        ("begun after a row", format!("{head}{a}{other}{b}{a}{c}{end}{b}{c}{end}")),
        ("begun after rows of which none comes again", format!("{head}{a}{other}{b}{c}{end}")),
        ("a size that goes back", format!("{head}{a}{c}{b}{end}")),
        ("a size that comes twice", format!("{head}{a}{a}{b}{b}{c}{c}{end}")),
    ];
    for (what, log) in table {
        let read = text(&log);
        assert!(codes(&read).contains(&"interleaved-tables"), "{what}: {read:#?}");
        assert!(read.runs.iter().all(|run| run.rows.is_empty()), "{what}: {read:#?}");
    }
}

#[test]
fn sweeps_that_a_program_repeats_are_no_mixed_tables() {
    let (head, rows, end) = parts();
    let [a, b, c] = rows.as_slice() else { panic!("{rows:?}") };
    let int = |row: &str| row.replace("float", "int32");
    let zero = "           0             0     float     sum      -1     3.10    0.00    0.00       0     3.00    0.00    0.00       0\n";
    let table = [
        ("cycles", format!("{head}{a}{b}{c}{a}{b}{c}{end}"), 6),
        ("types", format!("{head}{a}{b}{c}{}{}{}{end}", int(a), int(b), int(c)), 6),
        ("one size", format!("{head}{a}{a}{a}{end}"), 3),
        ("sizes below a rank's part", format!("{head}{zero}{zero}{a}{b}{end}"), 4),
        ("one after the other", format!("{head}{a}{b}{c}{end}{head}{a}{b}{c}{end}"), 6),
    ];
    for (what, log, expected) in table {
        let read = text(&log);
        let rows: usize = read.runs.iter().map(|run| run.rows.len()).sum();
        assert_eq!((rows, codes(&read)), (expected, vec![]), "{what}");
    }
}
