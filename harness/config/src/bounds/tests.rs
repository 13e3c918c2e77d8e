//! Quantiles against printed tables, and what bounds do as runs, numbers and spreads grow.

use super::*;
use proptest::prelude::*;

#[test]
fn quantiles_are_those_of_printed_tables() {
    // Two-sided 1 %, 0.1 % and 0.01 %, as tables of Student's distribution have them.
    for (freedom, outside, printed) in [
        (4.0, 0.005, 4.604),
        (4.0, 0.0005, 8.610),
        (9.0, 0.005, 3.250),
        (19.0, 0.0005, 3.883),
        (f64::INFINITY, 0.005, 2.576),
        (f64::INFINITY, 0.0005, 3.291),
        (f64::INFINITY, 5e-6, 4.417),
    ] {
        let quantile = student::upper_quantile(outside, freedom);
        assert!((quantile - printed).abs() < 1e-3, "{freedom} {outside}: {quantile}");
    }
    assert!(student::upper_quantile(0.01, 0.0).is_infinite());
    assert!(student::upper_quantile(0.01, f64::NAN).is_infinite());
}

#[test]
fn few_runs_and_many_numbers_widen_the_bounds() {
    let k = |n, judged, freedom| factor(n, judged, freedom);
    assert!(k(5, 100, 20.0) > k(10, 100, 20.0));
    assert!(k(5, 1000, 20.0) > k(5, 100, 20.0));
    assert!(k(5, 100, 4.0) > k(5, 100, 20.0));
    assert_eq!(widening(5, 20.0, 100, 10), 1.0, "fewer never narrow what stands in the file");
    assert!(widening(5, 20.0, 100, 1000) > 1.1);
}

#[test]
fn the_floor_is_declared_and_few_samples_do_not_widen_it() {
    let still = Spread { relative: 0.001, freedom: 4.0 };
    let Bounds { lower, upper } = bounds(100.0, 5, 10, 0.02, still);
    assert!((92.0..93.5).contains(&lower) && (107.0..108.5).contains(&upper), "{lower} {upper}");
    let unknown = Spread { relative: 0.0, freedom: 0.0 };
    assert_eq!(bounds(100.0, 1, 10, 0.02, unknown).lower, 0.0, "nothing is known: nothing is out of bounds");
}

#[test]
fn a_number_just_out_of_bounds_needs_more() {
    assert_eq!(supports(10.0, 2.0, 1), Ok(()));
    assert_eq!(supports(2.0, 2.0, 1), Err(2));
    assert_eq!(supports(2.0, 2.0, 3), Ok(()));
    assert_eq!(supports(0.0, 0.0, 1), Err(0), "not beyond at all");
}

#[test]
fn two_sets_of_numbers_lie_apart_by_chance_as_far_as_they_vary() {
    let spread = |relative| Spread { relative, freedom: 15.0 };
    let of = |relative, n, pairs| between((n, spread(relative)), (n, spread(relative)), pairs);
    assert!((two_runs(0.02) - 2.576 * 2f64.sqrt() * 0.02).abs() < 1e-4, "{}", two_runs(0.02));
    assert!(of(0.05, 16, 1) > of(0.05, 64, 1) && of(0.05, 16, 100) > of(0.05, 16, 1));
    assert!((0.04..0.08).contains(&of(0.05, 16, 1)), "{}", of(0.05, 16, 1));
    let unknown = Spread { relative: 0.0, freedom: 0.0 };
    assert!(between((1, unknown), (16, spread(0.01)), 1).is_infinite());
}

#[test]
fn outliers_leave_one_after_the_other_and_the_middle_follows() {
    let values = [100.0, 101.0, 99.0, 100.5, 99.5, 60.0, 20.0, f64::NAN];
    assert_eq!(outliers::kept(&values, 0.01), [true, true, true, true, true, false, false, false]);
    assert_eq!(outliers::kept(&[5.0], 0.01), [true]);
    assert_eq!(outliers::kept(&[], 0.01), [] as [bool; 0]);
    assert_eq!(outliers::kept(&[0.0, 0.0, 0.0, 1.0], 0.01), [true, true, true, false]);
}

#[test]
fn a_bad_node_is_left_out_in_every_run_and_another_mode_is_not() {
    let node = |run: f64, health: f64| run * health;
    let runs: Vec<Vec<f64>> = [100.0, 92.0, 101.0, 99.0, 93.0]
        .iter()
        .map(|run| vec![node(*run, 1.0), node(*run, 0.5), node(*run, 1.01), node(*run, 0.99)])
        .collect();
    let measured = Measured::from_runs(&runs, 0.02);
    assert!(measured.kept.iter().all(|run| *run == [true, false, true, true]), "{:?}", measured.kept);
    assert_eq!(measured.samples, [100.0, 92.0, 101.0, 99.0, 93.0]);
    assert_eq!(measured.middle, 99.0);
    let spread = measured.spread().expect("a spread").relative;
    assert!((0.03..0.05).contains(&spread), "{spread}");
}

#[test]
fn keys_that_are_alike_lend_each_other_freedom_and_others_do_not() {
    let alike: Vec<KeySpread> =
        (0..50).map(|at| KeySpread { relative: 0.02 + 0.0001 * f64::from(at % 5), freedom: 4.0 }).collect();
    let pool = Pool::fit(&alike, 0.005).expect("a pool");
    let spread = pool.spread(Some(KeySpread { relative: 0.002, freedom: 4.0 }), 5);
    assert!(spread.freedom > 100.0 && (0.019..0.022).contains(&spread.relative), "{spread:?}");
    let unlike: Vec<KeySpread> =
        (0..50).map(|at| KeySpread { relative: 0.001 * 1.2f64.powi(at % 25), freedom: 4.0 }).collect();
    let spread = Pool::fit(&unlike, 0.0001)
        .expect("a pool")
        .spread(Some(KeySpread { relative: 0.05, freedom: 4.0 }), 5);
    assert!(spread.freedom < 10.0 && spread.relative > 0.02, "{spread:?}");
    assert_eq!(Pool::fit(&alike[..4], 0.005), None, "four keys do not show how alike they are");
}

#[test]
fn trigamma_and_its_inverse_are_those_of_printed_tables() {
    for (x, printed) in [(0.5, 4.934_802_2), (1.0, 1.644_934_1), (2.0, 0.644_934_1), (10.0, 0.105_166_3)] {
        assert!((pool::trigamma(x) - printed).abs() < 1e-6, "{x}");
        assert!((pool::inverse_trigamma(printed) / x - 1.0).abs() < 1e-6, "{x}");
    }
}

proptest! {
    #[test]
    fn bounds_are_never_nan_and_hold_the_middle(
        runs in prop::collection::vec(prop::collection::vec(prop::num::f64::ANY, 0..4), 0..8), judged in 0u32..5000,
    ) {
        let measured = Measured::from_runs(&runs, 0.02);
        let n = measured.samples.len() as u32;
        prop_assume!(n > 0 && measured.middle.is_finite() && measured.middle >= 0.0 && measured.middle < 1e300);
        let bounds = bounds(measured.middle, n, judged, 0.02, spread(None, measured.spread(), n));
        prop_assert!(bounds.lower <= measured.middle && measured.middle <= bounds.upper, "{bounds:?}");
    }
}

#[test]
fn few_runs_know_little_of_their_own_median() {
    assert_eq!(half_interval(1.0, 1), f64::INFINITY);
    let halves: Vec<f64> = [2, 3, 5, 20].map(|runs| half_interval(1.0, runs)).to_vec();
    assert!(halves.is_sorted_by(|few, many| few > many), "{halves:?}");
    assert!((halves[1] - 2.92 * (std::f64::consts::FRAC_PI_2 / 3.571).sqrt()).abs() < 0.01, "{halves:?}");
}
