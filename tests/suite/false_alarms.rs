//! What baselines promise, over generated fleets whose truth is known: healthy suites stay green, bad parts do not. The
//! whole table is that of the bench of this name.

#[path = "../fleets/mod.rs"]
pub(crate) mod fleets;

use fleets::{Score, TRUTHS, Truth, Way, scores};

/// Of the ways in their order.
fn score(scores: &[Score; 4], way: Way) -> Score {
    scores[way as usize]
}

fn red(score: Score) -> f64 {
    f64::from(score.red_suites) / f64::from(score.suites)
}

fn missed(score: Score) -> f64 {
    score.missed as f64 / score.bad as f64
}

#[test]
fn at_most_two_of_a_hundred_healthy_suites_are_red_whatever_the_noise_is_like() {
    for truth in TRUTHS {
        let (mut suites, mut red, mut failed) = (0, 0, 0);
        for (judged, n, seeds) in [(10, 5, 150), (10, 20, 150), (100, 5, 40), (100, 10, 40)] {
            let ours = score(&scores(truth, judged, n, 0..seeds), Way::Ours);
            (suites, red, failed) =
                (suites + ours.suites, red + ours.red_suites, failed + ours.failed_suites);
        }
        assert!(red * 100 <= suites * 2, "{truth:?}: {red} of {suites}");
        assert!(failed * 200 <= suites, "{truth:?}: {failed} of {suites} failed outright");
    }
}

#[test]
fn a_thousand_numbers_judged_at_once_are_no_redder_than_ten() {
    for truth in [Truth::Noise(0.05), Truth::Mixed, Truth::TwoModes] {
        let scores = scores(truth, 1000, 5, 0..8);
        assert_eq!(score(&scores, Way::Ours).red_suites, 0, "{truth:?}");
        for other in [Way::Fixed, Way::ThreeSigma, Way::IteratedMean] {
            assert!(red(score(&scores, other)) > 0.2, "{truth:?} {other:?}");
        }
    }
}

#[test]
fn no_bad_part_passes_where_numbers_vary_by_two_percent() {
    for truth in [Truth::Noise(0.01), Truth::Noise(0.02), Truth::Drift, Truth::BadNodes] {
        let scores = scores(truth, 100, 5, 0..20);
        assert!(missed(score(&scores, Way::Ours)) < 0.0005, "{truth:?}: {scores:?}");
    }
    // Bad nodes in the baseline itself blow three standard deviations up until nothing is outside.
    let scores = scores(Truth::BadNodes, 100, 10, 0..20);
    assert!(missed(score(&scores, Way::ThreeSigma)) > 0.2);
}

#[test]
fn more_runs_let_fewer_bad_parts_pass() {
    let ours = |n| missed(score(&scores(Truth::Noise(0.04), 100, n, 0..20), Way::Ours));
    let [few, many] = [5, 50].map(ours);
    assert!(many < few && few < 0.05, "{few} {many}");
}
