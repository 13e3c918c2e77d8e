//! Which changes are worse, which are inconclusive, and the outcome of a comparison.

use super::numbers::Known;
use super::verdicts::{Changed as Turn, turned};
use super::*;
use crate::history::series::{Key, Samples};
use config::bounds::{KeySpread, Pool};
use metric::unit::{Better, Unit};
use metric::{Dims, RunNoise};
use model::artefact::{Status, Verdict};

fn verdict(status: Status, cause: Option<&str>, observed: Option<f64>) -> Verdict {
    serde_json::from_value(serde_json::json!({
        "name": "s::c::x@n", "status": status, "provisional": false, "metric": "nccl.busbw", "unit": "GB/s",
        "observed": observed, "lower": null, "upper": null, "n": 1, "n_expected": 1, "baseline": null, "message": "m",
        "next": null, "evidence": [], "nodes": "n1", "node": "n1", "part": null, "cause": cause, "seconds": 1.0,
    }))
    .expect("a verdict")
}

#[test]
fn a_verdict_turns_worse_better_or_unknown() {
    let pass = || verdict(Status::Pass, None, Some(1.0));
    let fail = || verdict(Status::Fail, None, Some(1.0));
    let open = || verdict(Status::Inconclusive, None, Some(1.0));
    let missing = || verdict(Status::Inconclusive, Some("not-measured"), None);
    let error = || verdict(Status::Error, Some("hang"), None);
    for (was, is, turn) in [
        (pass(), fail(), Turned::Worse),
        (pass(), verdict(Status::UnexpectedPass, None, Some(1.0)), Turned::Worse),
        (pass(), open(), Turned::Worse),
        (open(), fail(), Turned::Red),
        (error(), fail(), Turned::Red),
        (fail(), pass(), Turned::Better),
        (pass(), missing(), Turned::Unknown),
        (fail(), error(), Turned::Unknown),
        (pass(), verdict(Status::Skipped, None, None), Turned::Unknown),
        (error(), pass(), Turned::Known),
        (open(), pass(), Turned::Known),
    ] {
        assert_eq!(turned(&was, &is), turn, "{} -> {}", was.status, is.status);
    }
}

fn key() -> (String, Key) {
    let dims = Dims::new();
    let (instance, suite, case) = ("p5".to_owned(), "s".to_owned(), "c".to_owned());
    ("m".to_owned(), Key { instance, suite, case, nodes: Some(2), ranks: Some(16), dims })
}

fn samples(values: &[f64]) -> Samples {
    Samples { finite: values.to_vec(), ..Samples::default() }
}

fn beyond(better: Better, was: &[f64], is: &[f64], pool: Option<&Pool>) -> Beyond {
    let unit = Unit::GigabytesPerSecond;
    let known = Known { pool, resolution: 0.0, pairs: 1, noise: RunNoise::Relative };
    numbers::changed(&key(), (unit, better), &samples(was), &samples(is), &known).beyond
}

#[test]
fn a_number_is_worse_where_it_differs_by_more_than_the_noise_of_both() {
    let level = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2];
    let of = |factor: f64| level.map(|value| value * factor);
    for (better, factor, is) in [
        (Better::Higher, 0.90, Beyond::Worse),
        (Better::Higher, 0.985, Beyond::No),
        (Better::Higher, 1.10, Beyond::Better),
        (Better::Lower, 1.10, Beyond::Worse),
        (Better::Lower, 0.90, Beyond::Better),
        (Better::Neither, 0.90, Beyond::Moved),
        (Better::Neither, 1.0, Beyond::No),
    ] {
        assert_eq!(beyond(better, &level, &of(factor), None), is, "{better:?} {factor}");
    }
    let wild = [100.0, 60.0, 140.0, 90.0, 120.0, 75.0];
    assert_eq!(beyond(Better::Higher, &wild, &wild.map(|value| value * 0.9), None), Beyond::No);
}

#[test]
fn one_number_alone_is_judged_by_the_noise_of_its_metric_or_not_at_all() {
    assert_eq!(beyond(Better::Higher, &[100.0], &[80.0], None), Beyond::Unknown);
    assert_eq!(beyond(Better::Higher, &[100.0], &[99.0], None), Beyond::No, "less than what is declared");
    assert_eq!(beyond(Better::Higher, &[100.0], &[120.0], None), Beyond::Better);
    let alike = [KeySpread { relative: 0.01, freedom: 5.0 }; 8];
    let pool = Pool::fit(&alike, 0.005).expect("a pool");
    assert_eq!(beyond(Better::Higher, &[100.0], &[80.0], Some(&pool)), Beyond::Worse);
    assert_eq!(beyond(Better::Higher, &[100.0], &[97.5], Some(&pool)), Beyond::No);
}

#[test]
fn from_nothing_to_something_is_beyond_any_spread() {
    assert_eq!(beyond(Better::Lower, &[0.0, 0.0], &[12.0, 0.0, 12.0], None), Beyond::Worse);
    assert_eq!(beyond(Better::Higher, &[10.0, 10.0], &[0.0, 0.0], None), Beyond::Worse);
    assert_eq!(beyond(Better::Lower, &[0.0], &[0.0], None), Beyond::No);
}

#[test]
fn a_change_of_the_last_digit_that_a_program_prints_is_none() {
    let known = Known { pool: None, resolution: 0.01, pairs: 1, noise: RunNoise::Relative };
    let beyond = |was: f64, is: f64| {
        let (was, is) = (samples(&[was; 4]), samples(&[is; 4]));
        let of = (Unit::GigabytesPerSecond, Better::Higher);
        numbers::changed(&key(), of, &was, &is, &known).beyond
    };
    assert_eq!(beyond(0.14, 0.13), Beyond::No);
    assert_eq!(beyond(0.01, 0.0), Beyond::No);
    assert_eq!(beyond(0.14, 0.11), Beyond::Worse);
}

#[test]
fn a_change_that_is_not_shown_or_within_the_declared_noise_is_none() {
    let beyond = |unit: Unit, noise: RunNoise, was: f64, is: f64| {
        let known = Known { pool: None, resolution: 0.0, pairs: 1, noise };
        let (was, is) = (samples(&[was; 4]), samples(&[is; 4]));
        numbers::changed(&key(), (unit, Better::Lower), &was, &is, &known).beyond
    };
    for (unit, noise, was, is, expected) in [
        (Unit::Ratio, RunNoise::Relative, 0.0001, 0.0004, Beyond::No),
        (Unit::Ratio, RunNoise::Relative, 0.0, 0.01, Beyond::Worse),
        (Unit::Ratio, RunNoise::FRACTION, 0.0, 0.01, Beyond::No),
        (Unit::Ratio, RunNoise::FRACTION, 0.0, 0.1, Beyond::Worse),
        (Unit::Ratio, RunNoise::FRACTION, 0.1, 0.0, Beyond::Better),
        (Unit::Seconds, RunNoise::Absolute(1.5), 15.0, 20.0, Beyond::No),
        (Unit::Seconds, RunNoise::Absolute(1.5), 15.0, 21.0, Beyond::Worse),
        (Unit::Seconds, RunNoise::Relative, 15.0, 20.0, Beyond::Worse),
        (Unit::Microseconds, RunNoise::NotComparable, -300.0, 500.0, Beyond::NotComparable),
    ] {
        assert_eq!(beyond(unit, noise, was, is), expected, "{unit:?} {noise:?}: {was}, {is}");
    }
}

#[test]
fn no_digit_of_a_count_is_rounded() {
    let known = Known { pool: None, resolution: 1.0, pairs: 1, noise: RunNoise::Relative };
    for unit in [Unit::Count, Unit::Bytes] {
        for (was, is, better) in [(0.0, 1.0, Better::Lower), (3.0, 2.0, Better::Higher)] {
            let found =
                numbers::changed(&key(), (unit, better), &samples(&[was; 4]), &samples(&[is; 4]), &known);
            assert_eq!(found.beyond, Beyond::Worse, "{unit:?}: {was}, {is}");
        }
    }
}

#[test]
fn the_last_digit_of_a_number_is_its_last_decimal_or_its_ones() {
    for (value, place) in
        [(12.34, 0.01), (12.0, 1.0), (1500.0, 1.0), (12e9, 1.0), (0.25, 0.01), (5e-6, 1e-6), (-1.5, 0.1)]
    {
        let found = numbers::last_digit(value);
        assert!((found - place).abs() < place * 1e-9, "{value}: {found}, expected {place}");
    }
}

#[test]
fn the_printed_resolution_needs_three_numbers_and_is_no_coarser_than_their_last_digit() {
    for (values, step) in [
        (&[30.0, 20.0, 10.0][..], 1.0),
        (&[0.13, 0.14, 0.15], 0.01),
        (&[100.0, 101.5, 120.0], 0.1),
        (&[12e9, 9e9], 0.0),
        (&[12.0, 12.0, 9.0, 9.0], 0.0),
        (&[12.0], 0.0),
        (&[], 0.0),
    ] {
        let found = numbers::resolution(values.to_vec());
        assert!((found - step).abs() <= step * 1e-9, "{values:?}: {found}, expected {step}");
    }
}

fn turn(turned: Turned) -> Turn {
    Turn { name: "x".into(), from: Status::Pass, to: Status::Fail, turned, message: "m".into() }
}

#[test]
fn worse_beats_inconclusive_and_nothing_in_common_is_not_the_same() {
    let known = || Verdicts { known_in_both: 3, same: 3, ..Verdicts::default() };
    let numbers = || Numbers { compared: 1, ..Numbers::default() };
    let come = |verdicts: Verdicts, numbers: Numbers| outcome(&[], &verdicts, &numbers).0;
    assert_eq!(come(known(), numbers()), Outcome::Same);
    assert_eq!(come(Verdicts::default(), Numbers::default()), Outcome::Inconclusive);
    let worse = || Verdicts { changed: vec![turn(Turned::Worse), turn(Turned::Unknown)], ..known() };
    assert_eq!(come(worse(), numbers()), Outcome::Worse);
    assert_eq!(come(Verdicts { changed: vec![turn(Turned::Better)], ..known() }, numbers()), Outcome::Same);
    for verdicts in [
        Verdicts { changed: vec![turn(Turned::Unknown)], ..known() },
        Verdicts { changed: vec![turn(Turned::Red)], ..known() },
        Verdicts { unknown_in_both: vec!["x".into()], ..known() },
        Verdicts { only_a: vec!["x".into()], ..known() },
    ] {
        assert_eq!(come(verdicts, numbers()), Outcome::Inconclusive);
    }
    for numbers in [
        Numbers { only_a: vec!["x".into()], ..numbers() },
        Numbers { uncounted: vec!["x".into()], ..numbers() },
    ] {
        assert_eq!(come(known(), numbers), Outcome::Inconclusive);
    }
    let only_b = Numbers { only_b: vec!["x".into()], ..numbers() };
    assert_eq!(come(Verdicts { only_b: vec!["x".into()], ..known() }, only_b), Outcome::Same);
    let apart = outcome(&["two instances".to_owned()], &worse(), &numbers());
    assert_eq!(apart, (Outcome::Inconclusive, vec!["two instances".to_owned()]));
}

#[test]
fn messages() {
    let changed = |beyond: Beyond| {
        let numbers = numbers::changed(
            &key(),
            (Unit::GigabytesPerSecond, Better::Higher),
            &samples(&[100.0]),
            &samples(&[80.0]),
            &Known { pool: None, resolution: 0.0, pairs: 1, noise: RunNoise::Relative },
        );
        Changed { beyond, ..numbers }
    };
    let of = |beyond| Numbers { compared: 1, all: vec![changed(beyond)], ..Numbers::default() };
    let known = || Verdicts { known_in_both: 3, same: 3, ..Verdicts::default() };
    let name = || vec!["x".to_owned()];
    let cases = [
        (known(), of(Beyond::No)),
        (Verdicts::default(), Numbers::default()),
        (Verdicts { changed: vec![turn(Turned::Worse)], ..known() }, of(Beyond::Worse)),
        (Verdicts { changed: vec![turn(Turned::Unknown)], ..known() }, of(Beyond::Unknown)),
        (Verdicts { only_a: name(), ..known() }, of(Beyond::Moved)),
        (known(), Numbers { only_a: name(), uncounted: name(), ..of(Beyond::No) }),
    ];
    let line = |(verdicts, numbers): &(Verdicts, Numbers)| {
        let (outcome, because) = outcome(&[], verdicts, numbers);
        format!("{}: {}", outcome.text(), because.join("; "))
    };
    insta::assert_snapshot!(cases.iter().map(line).collect::<Vec<_>>().join("\n"));
}
