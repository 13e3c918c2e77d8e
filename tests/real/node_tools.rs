//! What programs that test one node printed on real machines: each output is read, or refused with the reason.

use crate::corpus;
use crate::fact::Fact;
use logs::node_tools::dcgm::{self, Status};
use logs::node_tools::{fio, gpu_burn, nvbandwidth, output, stream};
use std::fs;

pub(crate) const FACTS: &[Fact] = &[
    ("diagnoses_of_dcgm_are_read_in_all_their_forms", diagnoses_of_dcgm_are_read_in_all_their_forms),
    ("copies_of_nvbandwidth_are_read_in_all_their_forms", copies_of_nvbandwidth_are_read_in_all_their_forms),
    ("a_burn_of_eight_gpus_is_read", a_burn_of_eight_gpus_is_read),
    ("stream_and_fio_are_read", stream_and_fio_are_read),
    (
        "each_sample_of_hardware_is_read_or_refused_by_name",
        each_sample_of_hardware_is_read_or_refused_by_name,
    ),
];

fn text(name: &str) -> String {
    let bytes = fs::read(corpus::file(name)).expect(name);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn diagnoses_of_dcgm_are_read_in_all_their_forms() {
    // Tests, and the ones that failed.
    let cases: [(&str, usize, &[&str]); 7] = [
        ("hardware/dcgm-r1-deepops-pass.txt", 9, &[]),
        (
            "hardware/dcgm-r1-deepops-fail.txt",
            9,
            &[
                "Persistence Mode",
                "Environment Variables",
                "Page Retirement",
                "Graphics Processes",
                "Inforom",
            ],
        ),
        ("hardware/dcgm-r4-a100-pass.txt", 18, &[]),
        ("hardware/dcgm3-json-pass.json", 9, &[]),
        ("hardware/dcgm3-json-fail.json", 9, &["Persistence Mode"]),
        ("hardware/dcgm4-json-gb10-level1.json", 1, &["software"]),
        ("hardware/dcgm4-json-gb10-level2-plugins-gated.json", 3, &["software"]),
    ];
    for (name, tests, failed) in cases {
        let read = dcgm::read(&text(name)).expect(name);
        let bad: Vec<&str> = read
            .results
            .iter()
            .filter(|result| result.status == Status::Fail)
            .map(|result| result.test.as_str())
            .collect();
        assert_eq!((read.results.len(), bad.as_slice()), (tests, failed), "{name}");
    }
    let gated = dcgm::read(&text("hardware/dcgm4-json-gb10-level2-plugins-gated.json")).expect("read");
    assert_eq!(gated.results.iter().filter(|result| result.status == Status::Skip).count(), 2);
    assert!(gated.results[0].why[0].starts_with("Persistence Mode: Persistence mode for GPU 0 is disabled."));
    let both = dcgm::read(&text("node-health/p5-dcgmi-diag-220.out")).expect("two nodes of p5");
    assert!(both.results.iter().all(|result| result.status <= Status::Pass));
    assert_eq!(both.driver.as_deref(), Some("535.54.03"));
}

fn copies_of_nvbandwidth_are_read_in_all_their_forms() {
    let rates = |name: &str, test: &str| {
        let read = nvbandwidth::read(&text(name)).expect(name);
        let found = read.tests.into_iter().find(|one| one.name == test).expect(test);
        let mut rates: Vec<f64> = found.rates.expect(test).into_iter().flatten().flatten().collect();
        rates.sort_unstable_by(f64::total_cmp);
        (rates.len(), rates[0], rates[rates.len() - 1])
    };
    let pairs = rates("hardware/nvbandwidth-h100x8-v0.4-d2d.txt", "device_to_device_memcpy_read_ce");
    assert_eq!(pairs, (56, 370.26, 372.96));
    // Of an older release, without a sum: it may be cut.
    let old = nvbandwidth::read(&text("hardware/nvbandwidth-readme-a100x8-d2d.txt")).expect("a test");
    let cut = nvbandwidth::NoRates::Unclear("it has no `SUM`: the output may be cut".to_owned());
    assert_eq!(old.tests[0].rates, Err(cut));
    assert_eq!(
        rates("hardware/nvbandwidth-json-1gpu-full.json", "host_to_device_memcpy_ce"),
        (1, 12.3964, 12.3964)
    );
    assert_eq!(rates("hardware/nvbandwidth-gh200-v0.6.log", "host_to_device_memcpy_ce"), (6, 269.33, 412.11));
    let whole = nvbandwidth::read(&text("hardware/nvbandwidth-json-1gpu-full.json")).expect("read");
    let waived = whole.tests.iter().filter(|test| test.rates.is_err()).count();
    assert!(waived > 0 && whole.tests.len() > waived, "{waived} of {}", whole.tests.len());
}

fn a_burn_of_eight_gpus_is_read() {
    let bytes = fs::read(corpus::file("hardware/gpuburn-a100x8.log")).expect("a log");
    let burn = gpu_burn::read(bytes.as_slice()).expect("in memory").expect("a result");
    assert_eq!(burn.gpus.len(), 8);
    for gpu in &burn.gpus {
        assert_eq!((gpu.ok, gpu.errors, gpu.died), (Some(true), 0, false));
        assert!(gpu.rates.iter().flatten().all(|rate| (5000.0..20_000.0).contains(rate)), "{:?}", gpu.rates);
    }
    // Another program, with a verdict of its own.
    let other = text("hardware/gpufryer-tail.txt");
    let why = gpu_burn::read(other.as_bytes()).expect("in memory").expect_err("not gpu-burn");
    assert!(why.starts_with("gpu-burn measured nothing; its last line: "), "{why}");
}

fn stream_and_fio_are_read() {
    let rates = stream::read(&text("hardware/stream-5.10-neo.log")).expect("rates");
    assert_eq!((rates.copy, rates.triad, rates.valid), (108.1805, 105.256, true));
    let measured = fio::read(&text("hardware/fio-3.16-nvme-randrw.json")).expect("a result");
    let read = measured.read.expect("reads");
    assert_eq!((read.rate_gb_s, read.p99_us), (0.348_743_777, Some(2244.608)));
    assert_eq!(measured.errors, 0);
    // STREAM of GPUs has other lines: it is no STREAM of the host.
    assert!(stream::read(&text("hardware/gpustream-b200.log")).is_err());
}

/// Samples of programs that are read, with what they end with; all others are refused as what they are.
fn each_sample_of_hardware_is_read_or_refused_by_name() {
    let refused = "bandwidthtest dcgm-discovery dcgm-nvlink gpufryer gpustream hwloc ib_write_bw lspci nccl-topo nvsmi-capture \
                   nvsmi-h100x8 nvsmi-nvlink sysfs";
    let folder = corpus::file("hardware/stream-5.10-neo.log");
    let all = fs::read_dir(folder.parent().expect("a folder")).expect("read");
    let names: Vec<String> =
        all.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    assert!(names.len() >= 37, "{names:?}");
    for name in names {
        let is_refused = refused.split(' ').any(|beginning| name.starts_with(beginning));
        match output::read(&text(&format!("hardware/{name}"))) {
            Ok(read) => {
                assert!(!is_refused && read.iter().all(|one| !one.rows.is_empty()), "{name}: {read:?}");
            }
            Err(why) => assert!(is_refused && why.contains(": not read; "), "{name}: {why}"),
        }
    }
}
