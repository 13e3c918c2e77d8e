//! Small charts and what becomes of them on their way into a page, whole and thinned.

use super::*;
use recipes::chart::{Bar, Bins, ChartLine, HeatmapRow};
use serde_json::{Value, json};

fn chart(figure: Figure) -> Chart {
    Chart { name: "x".into(), title: "X".to_owned(), about: "x".to_owned(), figure }
}

fn wire(figure: Figure, most: usize) -> Value {
    serde_json::to_value(thinned(&chart(figure), most)).expect("json")
}

fn map(columns: usize, rows: usize) -> Figure {
    let row = |row: usize| HeatmapRow {
        label: format!("rank {row}"),
        rank: Some(row as i64),
        values: (0..columns).map(|column| (column != 1).then_some((column * row) as f64)).collect(),
    };
    Figure::Heatmap(Heatmap {
        x: Axis::linear("time", Quantity::Nanoseconds),
        edges: (0..=columns as i64).map(|at| 1_700_000_000_000_000_000 + 10 * at).collect(),
        value: Axis::linear("busy", Quantity::Percent),
        most: Some(100.0),
        rows: (0..rows).map(row).collect(),
    })
}

#[test]
fn a_small_map_is_whole_and_what_was_not_measured_is_no_zero() {
    let map = wire(map(3, 2), 6);
    assert_eq!(map["kind"], "heatmap");
    assert_eq!(map["from"], "1700000000000000000");
    assert_eq!(map["edges"], "0,10,20,30");
    assert_eq!(map["rows"][1]["values"], "0,,2");
    assert_eq!((&map["drawn"], &map["of"], &map["together"]), (&json!(6), &json!(6), &Value::Null));
}

#[test]
fn columns_of_a_large_map_are_put_together_in_pairs() {
    let map = wire(map(10, 1), 4);
    assert_eq!((&map["together"], &map["drawn"], &map["of"]), (&json!(5), &json!(4), &json!(10)));
    assert_eq!(map["edges"], "0,25,50,75,100");
    assert_eq!(wire(self::map(10, 2), 8)["rows"][1]["values"], "0,4,5,9");
}

#[test]
fn lines_pack_whole_numbers_as_steps_and_break_where_nothing_was_measured() {
    let points = vec![(3.0, Some(1.5)), (5.0, None), (9.0, Some(f64::NAN)), (10.0, Some(4.0))];
    let of = |points| {
        let line = ChartLine { label: "a\x1b".to_owned(), rank: None, points };
        let axis = || Axis::log("x", Quantity::Plain);
        wire(Figure::Lines(Lines { x: axis(), y: axis(), lines: vec![line], marks: vec![] }), 100)
    };
    let line = &of(points)["lines"][0];
    assert_eq!((&line["steps"], &line["ys"]), (&json!("3,2,4,1"), &json!("1.5,,,4")));
    assert_eq!(line["label"], "a\\x1b");
    assert_eq!(of(vec![(0.5, Some(1.0))])["lines"][0]["xs"], "0.5");
}

#[test]
fn counts_of_neighbouring_bins_add_up() {
    let series = vec![Bins { label: "all".to_owned(), rank: None, counts: vec![1, 2, 3, 4, 5] }];
    let edges = vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.5];
    let mark = |at| Mark { label: "mean".to_owned(), along: Along::X, at };
    let marks = vec![mark(2.5), mark(f64::NAN)];
    let x = Axis::linear("x", Quantity::Plain);
    let figure = Figure::Histogram(Histogram { x, edges, series, marks });
    let whole = wire(figure.clone(), 5);
    assert_eq!(
        (&whole["edges"], &whole["series"][0]["values"]),
        (&json!("0,1,2,3,4,5.5"), &json!("1,2,3,4,5"))
    );
    let thinned = wire(figure, 3);
    assert_eq!((&thinned["edges"], &thinned["series"][0]["values"]), (&json!("0,2,4,5.5"), &json!("3,7,5")));
    assert_eq!(thinned["marks"], json!([{"label": "mean", "along": "x", "at": 2.5}]));
}

#[test]
fn what_does_not_fit_is_thinned_until_it_does() {
    let name = "n".repeat(1_000);
    let bar = |at: usize| Bar { label: format!("{name}{at}"), rank: None, value: Some(at as f64) };
    let value = Axis::linear("x", Quantity::Plain);
    let bars = Bars { value, bars: (0..10_000).map(bar).collect(), marks: vec![] };
    let charts = [chart(Figure::Bars(bars)), chart(map(100, 100))];
    let drawn = page_figures(&charts);
    assert!(serde_json::to_string(&drawn).expect("json").len() <= MOST_BYTES);
    assert!(drawn[0].drawn < 10_000 && drawn[0].drawn > 500, "{}", drawn[0].drawn);
    let text = serde_json::to_value(&drawn[0]).expect("json");
    let last = text["bars"].as_array().expect("bars").last().expect("one");
    assert_eq!(last["values"], "9999", "the greatest is never left out");
}
