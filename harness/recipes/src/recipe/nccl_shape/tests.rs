//! Sweeps as nccl-tests print them, sound and not, and what is made of their shape.

use super::*;
use crate::recipe::FileRole;
use crate::recipe::testing::{file_with, job, job_file, nccl_workload};
use metric::op::Op;
use std::fmt::Write;

const RANKS: u32 = 16;

/// A table of all_reduce from 16 MiB to 4 GiB, whose time out of place and in place a test changes as it needs.
fn output(times: impl Fn(u64) -> Option<(f64, f64)>) -> Output {
    let sizes: Vec<u64> = (24..=32).map(|power| 1u64 << power).collect();
    let mut text = String::from("# nccl-tests version 2.17.6 nccl-headers=22809 nccl-library=22809\n");
    text.push_str("# Collective test starting: all_reduce_perf\n");
    text.push_str("# nThread 1 nGpus 1 warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0\n#\n");
    text.push_str("# Using devices\n");
    for rank in 0..RANKS {
        writeln!(
            text,
            "#  Rank {rank:2} Group  0 Pid   1001 on         n1 device  {} [0000:{rank:02x}:00] G",
            rank % 8
        )
        .expect("text");
    }
    text.push_str("#\n#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong\n");
    let mut rates = Vec::new();
    for bytes in &sizes {
        let Some((out, inside)) = times(*bytes) else { continue };
        let half = |us: f64| {
            let algbw = Op::AllReduce.algbw_gb_s(*bytes, RANKS, us);
            format!("  {us:.2}  {algbw:.2}  {:.2}       0", algbw * Op::AllReduce.bus_factor(RANKS))
        };
        let rate = |us: f64| Op::AllReduce.algbw_gb_s(*bytes, RANKS, us) * Op::AllReduce.bus_factor(RANKS);
        rates.extend([rate(out), rate(inside)]);
        writeln!(text, "{bytes:12} {:12}     float     sum      -1{}{}", bytes / 4, half(out), half(inside))
            .expect("text");
    }
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    writeln!(text, "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : {mean:.3} ").expect("text");
    text.push_str("#\n# Collective test concluded: all_reduce_perf\n#\n");
    let file = file_with(&text);
    let workload = nccl_workload(Op::AllReduce, &sizes, Some(RANKS));
    let mut job = job(workload, &[], |_| "n1".to_owned(), 0);
    job.files.push(job_file(FileRole::NcclTests, file.path(), "stdout"));
    run(&job)
}

fn sound(bytes: u64) -> f64 {
    100.0 + bytes as f64 / 200e3
}

fn value(output: &Output, metric: &str, bytes: Option<u64>, place: Option<&str>) -> Option<f64> {
    let row = output.metrics.iter().find(|row| {
        &*row.name == metric
            && row.dims.number(Dim::SizeBytes) == bytes
            && (place.is_none() || row.dims.word(Dim::Place) == place)
    });
    row.map(|row| row.value)
}

#[test]
fn a_sound_sweep_has_no_dip_and_lies_on_its_line() {
    let output = output(|bytes| Some((sound(bytes), sound(bytes) * 1.01)));
    assert_eq!(output.not_comparable, None);
    assert_eq!(value(&output, "nccl.sizes_missing", None, None), Some(0.0));
    let latency = value(&output, "nccl.fit_latency", None, Some("out")).expect("latency");
    let bandwidth = value(&output, "nccl.fit_busbw", None, Some("out")).expect("bandwidth");
    assert!((latency - 100.0).abs() < 0.5, "{latency}");
    assert!((bandwidth - 200.0 * 1.875).abs() < 1.0, "{bandwidth}");
    for bytes in (27..=32).map(|power| 1u64 << power) {
        assert_eq!(value(&output, "nccl.dip", Some(bytes), Some("in")), Some(0.0), "{bytes}");
        let ratio = value(&output, "nccl.in_over_out", Some(bytes), None).expect("a ratio");
        assert!((ratio - 1.0 / 1.01).abs() < 0.001, "{ratio}");
        assert!(value(&output, "nccl.fit_residual", Some(bytes), Some("out")).expect("one") < 0.001);
    }
    // From 64 MiB up, and a fall needs something to fall from.
    assert_eq!(value(&output, "nccl.dip", Some(1 << 26), Some("out")), None);
    assert!(value(&output, "nccl.in_over_out", Some(1 << 26), None).is_some());
    assert_eq!(value(&output, "nccl.in_over_out", Some(1 << 25), None), None);
}

#[test]
fn the_size_that_is_slower_than_the_one_below_it_has_the_dip() {
    let output = output(|bytes| {
        let slow = if bytes == 1 << 29 { 1.5 } else { 1.0 };
        Some((sound(bytes) * slow, sound(bytes)))
    });
    let dip = value(&output, "nccl.dip", Some(1 << 29), Some("out")).expect("a dip");
    assert!((0.28..0.34).contains(&dip), "{dip}");
    assert_eq!(value(&output, "nccl.dip", Some(1 << 30), Some("out")), Some(0.0));
    assert_eq!(value(&output, "nccl.dip", Some(1 << 29), Some("in")), Some(0.0));
    let ratio = value(&output, "nccl.in_over_out", Some(1 << 29), None).expect("a ratio");
    assert!((ratio - 1.5).abs() < 0.01, "{ratio}");
    let off = value(&output, "nccl.fit_residual", Some(1 << 29), Some("out")).expect("off");
    assert!((off - 0.5).abs() < 0.01, "{off}");
}

#[test]
fn missing_sizes_of_a_sweep_are_counted_and_named() {
    let output = output(|bytes| (bytes < 1 << 28).then(|| (sound(bytes), sound(bytes))));
    assert_eq!(value(&output, "nccl.sizes_missing", None, None), Some(5.0));
    let codes: Vec<&str> = output.findings.iter().map(|finding| finding.code.as_str()).collect();
    assert_eq!(codes, ["size-missing", "too-few-sizes", "too-few-sizes"]);
    assert!(output.findings[0].message.contains("5 of 9 declared sizes"), "{}", output.findings[0].message);
    // Two points lie on any line.
    assert_eq!(value(&output, "nccl.fit_latency", None, Some("out")), None);
}

#[test]
fn metrics_are_given_for_the_sizes_that_apply() {
    let sizes = vec![1 << 20, 1 << 25, 1 << 26, 1 << 27, 1 << 28];
    assert_eq!(sizes_of(&DIP, sizes.clone()), [1 << 27, 1 << 28]);
    assert_eq!(sizes_of(&IN_OVER_OUT, sizes.clone()), [1 << 26, 1 << 27, 1 << 28]);
    assert_eq!(sizes_of(&BANDWIDTH, sizes.clone()), sizes);
    assert!(DIP.is(Role::ComparesWithin) && !BANDWIDTH.is(Role::ComparesWithin));
}

#[test]
fn a_size_without_a_bandwidth_is_not_measured_rather_than_sound() {
    let half = |power: u32, busbw: f64| Half { bytes: 1 << power, busbw, us: 1.0 };
    let halves = [half(26, 100.0), half(27, f64::NAN), half(28, 0.0), half(29, 100.0), half(30, 100.0)];
    let mut output = Output::default();
    dips(&Dims::new().with(Dim::Place, "out"), &halves, &mut output);
    let dips: Vec<f64> = output.metrics.iter().map(|row| row.value).collect();
    assert!(dips[..3].iter().all(|dip| dip.is_nan()) && dips[3..] == [0.0], "{dips:?}");
}

#[test]
fn messages() {
    let small = |bytes: u64| (bytes < 128 << 20).then(|| (sound(bytes), sound(bytes)));
    insta::assert_snapshot!(crate::recipe::testing::messages(&[output(small)]));
}
