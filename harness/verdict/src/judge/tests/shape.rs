//! Comparisons within one run against bounds that are moved apart by the declared spread.

use super::*;
use config::bounds;
use model::artefact::PlannedSpread;
use sim::noise;

/// The bound of `nccl.dip`: 10 %, and what so many numbers of such a spread vary by.
fn bound(spread: f64, judged: u32) -> PlannedBound {
    let allows = Some(bounds::factor(1, judged, f64::INFINITY) * spread);
    let spread = Some(PlannedSpread { relative: spread, judged, allows });
    PlannedBound { at_most: Some(0.1), spread, ..PlannedBound::default() }
}

fn dips(bound: PlannedBound, dips: &[f64]) -> Verdict {
    let mut world = World::new(bound);
    let dims = |at: usize| Dims::new().with(Dim::SizeBytes, 1u64 << (27 + at));
    let assertion = &mut world.case.assertions[0];
    assertion.metric = "nccl.dip".into();
    assertion.unit = Unit::Ratio;
    assertion.better = Better::Lower;
    assertion.parts = (0..dips.len()).map(dims).collect();
    world.rows = dips
        .iter()
        .enumerate()
        .map(|(at, dip)| row("nccl.dip", *dip, &[(Dim::SizeBytes, &(1u64 << (27 + at)).to_string())]))
        .collect();
    world.one()
}

#[test]
fn a_dip_beyond_the_bound_and_the_spread_fails_and_names_its_size() {
    let verdict = dips(bound(0.02, 100), &[0.0, 0.4, 0.02]);
    assert_eq!(verdict.status, Status::Fail);
    let reason =
        "0.400 (256MiB), expected at most 0.100, widened by 0.110 for a spread of 2 % over 100 numbers";
    assert!(verdict.message.ends_with(reason), "{}", verdict.message);
    assert_eq!(dips(bound(0.02, 100), &[0.0, 0.2, 0.02]).status, Status::Pass);
    assert_eq!(dips(bound(0.02, 10_000), &[0.0, 0.4]).status, Status::Fail);
    let plain = PlannedBound { at_most: Some(0.1), ..PlannedBound::default() };
    assert_eq!(dips(plain, &[0.11]).status, Status::Fail);
}

/// Two numbers of the same part, each with its own noise: the larger's over the smaller's.
fn ratio(noise: &mut noise::Noise, deviation: f64) -> f64 {
    let mut normal = || {
        let (a, b) = (1.0 - noise.fraction(), noise.fraction());
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    };
    (deviation * (normal() - normal())).exp()
}

#[test]
fn at_most_one_of_a_hundred_healthy_suites_is_red_for_a_dip_at_five_percent_noise() {
    // The bound allows 10 % beside the noise; without it the promise is the same, and harder to keep.
    for (deviation, least) in [(0.01, 0.0), (0.02, 0.0), (0.05, 0.0), (0.05, 0.1)] {
        let judged = 100;
        let allows = bounds::factor(1, judged, f64::INFINITY) * deviation;
        let suites = 1000u64;
        let is_red = |seed: u64| {
            let mut noise = noise::stream(seed, &["shape"]);
            (0..judged).any(|_| 1.0 - ratio(&mut noise, deviation) > least + allows)
        };
        let red = (0..suites).filter(|seed| is_red(*seed)).count();
        assert!(red <= 10, "noise {deviation}, beside {least}: {red} of {suites}");
    }
}

#[test]
fn in_place_like_out_of_place_holds_at_five_percent_noise_too() {
    let judged = 100;
    let allows = bounds::factor(1, judged, f64::INFINITY) * 0.05;
    let is_red = |seed: u64| {
        let mut noise = noise::stream(seed, &["places"]);
        (0..judged).any(|_| !(0.9 - allows..=1.1 + allows).contains(&ratio(&mut noise, 0.05)))
    };
    let red = (0..1000).filter(|seed| is_red(*seed)).count();
    assert!(red <= 10, "{red}");
}
