//! Healthy captures give numbers and no finding; each kind of trouble gives its finding and takes the numbers that it
//! touches, and no others.

use super::*;
use logs::efa_counters::{BadReading, Clock, Device, End};

const COLUMNS: [&str; 12] = [
    "tx_bytes",
    "rx_bytes",
    "rx_drops",
    "send_bytes",
    "recv_bytes",
    "rdma_read_bytes",
    "rdma_read_resp_bytes",
    "rdma_write_bytes",
    "rdma_write_recv_bytes",
    "retrans_pkts",
    "retrans_timeout_events",
    "rdma_write_wrs",
];
const GB: u64 = 1_000_000_000;

fn column(name: &str) -> usize {
    COLUMNS.iter().position(|column| *column == name).expect("a column of these tests")
}

/// Ten seconds at 10 GB/s in both directions on every device, between two equal readings on either side.
fn healthy(node: &str, devices: &[&str]) -> Capture {
    let mut readings = Vec::new();
    let phases = [(Phase::Before, 1000, 0), (Phase::Before, 1020, 0)]
        .into_iter()
        .chain((1..=10).map(|second| (Phase::During, 1020 + second * 100, second * 10 * GB)))
        .chain([(Phase::After, 2040, 100 * GB), (Phase::After, 2060, 100 * GB)]);
    for (phase, uptime_cs, moved) in phases {
        for device in 0..devices.len() {
            let mut values = vec![Some(7); COLUMNS.len()];
            for name in ["rdma_write_bytes", "rdma_write_recv_bytes"] {
                values[column(name)] = Some(5 * GB + moved);
            }
            for name in ["tx_bytes", "rx_bytes"] {
                values[column(name)] = Some(5 * GB + moved + 14);
            }
            readings.push(Reading { phase, uptime_cs, device, values });
        }
    }
    let clock = |cs: u64| Clock { wall_us: 1_700_000_000_000_000 + cs * 10_000, uptime_cs: cs };
    Capture {
        file: format!("counters.{node}.txt"),
        node: node.to_owned(),
        root: "/sys".to_owned(),
        interval_cs: 100,
        columns: COLUMNS.map(str::to_owned).to_vec(),
        begin: clock(990),
        devices: devices
            .iter()
            .map(|name| Device { name: (*name).to_owned(), lifespan_ms: Some(12) })
            .collect(),
        unreadable: Vec::new(),
        missing: Vec::new(),
        bad: Vec::new(),
        not_quiet: Vec::new(),
        readings,
        end: Some(End { clock: clock(2070), cost_ms: 108, reason: Reason::Stop }),
    }
}

fn expected(node: &str) -> ExpectedNode {
    ExpectedNode { node: node.to_owned(), devices: vec!["d0".to_owned(), "d1".to_owned()] }
}

fn map() -> DirectionMap {
    DirectionMap {
        sent: vec!["rdma_write_bytes".to_owned()],
        received: vec!["rdma_write_recv_bytes".to_owned()],
        conservation_shown: true,
    }
}

fn one(capture: Capture) -> Traffic {
    analyze(&[capture], &[expected("n1")], &map())
}

fn codes(traffic: &Traffic) -> Vec<&str> {
    traffic.findings.iter().map(|finding| finding.code.as_str()).collect()
}

/// Changes one counter of the first device, from the reading with this number on.
fn change(capture: &mut Capture, name: &str, from: usize, change: impl Fn(u64) -> Option<u64>) {
    for reading in capture.readings.iter_mut().filter(|reading| reading.device == 0).skip(from) {
        let value = &mut reading.values[column(name)];
        *value = value.and_then(&change);
    }
}

#[test]
fn a_healthy_capture_gives_every_number_and_no_finding() {
    let captures = [healthy("n1", &["d0", "d1"]), healthy("n2", &["d0", "d1"])];
    let traffic = analyze(&captures, &[expected("n1"), expected("n2")], &map());
    assert_eq!(traffic.findings, []);
    assert_eq!(traffic.nics.len(), 4);
    for nic in &traffic.nics {
        assert_eq!((nic.tx_bytes, nic.rx_bytes), (Some(100 * GB), Some(100 * GB)));
        assert_eq!((nic.all_tx_bytes, nic.all_rx_bytes), (Some(100 * GB), Some(100 * GB)));
        assert_eq!((nic.plateau_tx_gb_s, nic.plateau_rx_gb_s), (Some(10.0), Some(10.0)));
        assert_eq!((nic.retrans_pkts, nic.retrans_timeouts, nic.rx_drops), (Some(0), Some(0), Some(0)));
        assert_eq!((nic.listed, nic.samples, nic.missing.len()), (Some(true), 10, 0));
    }
    assert_eq!(traffic.samplers[0].share, Some(0.01));
    let sums = traffic.job_conservation.expect("all of the job is known");
    assert_eq!(
        (sums.sent, sums.received, sums.writes),
        (u128::from(400 * GB), u128::from(400 * GB), u128::from(400 * GB))
    );
}

type Trouble = fn(&mut Capture);
/// The trouble; its findings; tx by the map and the plateau of the first device; tx of the second one.
type Row = (&'static str, Trouble, &'static [&'static str], Option<u64>, Option<f64>, Option<u64>);

fn troubles() -> [Row; 14] {
    let (all, rate) = (Some(100 * GB), Some(10.0));
    [
        (
            "wrap at 2^64",
            |c| {
                for name in ["rdma_write_bytes", "tx_bytes"] {
                    change(c, name, 0, |value| Some(value.wrapping_sub(50 * GB)));
                }
            },
            &["counter-wrap"],
            all,
            rate,
            all,
        ),
        (
            "wrap at 2^32",
            |c| {
                change(c, "rdma_write_wrs", 0, |_| Some(u64::from(u32::MAX) - 9));
                change(c, "rdma_write_wrs", 5, |_| Some(9));
            },
            &["counter-wrap"],
            all,
            rate,
            all,
        ),
        ("reset", |c| change(c, "rx_drops", 6, |_| Some(0)), &["counter-reset"], None, None, all),
        (
            "readings nearer than the cache lives",
            |c| c.devices[0].lifespan_ms = Some(500),
            &["reading-stale"],
            all,
            rate,
            all,
        ),
        (
            "every reading of the workload from one cache",
            |c| {
                let rest: Vec<_> = c.readings[..2].iter().map(|reading| reading.values.clone()).collect();
                for reading in c.readings.iter_mut().filter(|reading| reading.phase == Phase::During) {
                    reading.values = rest[reading.device].clone();
                }
            },
            &["reading-stale"],
            all,
            None,
            all,
        ),
        (
            "wall clock set",
            |c| c.end.as_mut().expect("it has an end").clock.wall_us += 3_000_000,
            &["clock-jump"],
            all,
            rate,
            all,
        ),
        (
            "wall clock slewed",
            |c| c.end.as_mut().expect("it has an end").clock.wall_us -= 1_900_000,
            &[],
            all,
            rate,
            all,
        ),
        (
            "chosen counter absent",
            |c| change(c, "rdma_write_bytes", 0, |_| None),
            &["counter-missing"],
            None,
            None,
            all,
        ),
        (
            "chosen counter gone at the end",
            |c| change(c, "rdma_write_bytes", 12, |_| None),
            &["counter-missing"],
            None,
            rate,
            all,
        ),
        (
            "drops hold a word",
            |c| {
                change(c, "rx_drops", 0, |_| None);
                let (device, counter) = ("d0".to_owned(), "rx_drops".to_owned());
                c.bad.push(BadReading { device, counter, text: "n/a".to_owned() });
            },
            &["counter-bad"],
            all,
            rate,
            all,
        ),
        ("killed", |c| c.end = None, &["capture-cut"], None, None, None),
        (
            "limit passed",
            |c| c.end.as_mut().expect("it has an end").reason = Reason::Limit,
            &["capture-cut"],
            None,
            None,
            None,
        ),
        (
            "never at rest before",
            |c| change(c, "send_bytes", 1, |value| Some(value + 1)),
            &["conservation-broken", "not-quiet"],
            all,
            rate,
            all,
        ),
        (
            "parts without their whole",
            |c| change(c, "recv_bytes", 4, |value| Some(value + 8)),
            &["conservation-broken"],
            all,
            rate,
            all,
        ),
    ]
}

#[test]
fn every_trouble_has_its_finding_and_takes_only_the_numbers_it_touches() {
    for (name, trouble, findings, tx, plateau, other) in troubles() {
        let mut capture = healthy("n1", &["d0", "d1"]);
        trouble(&mut capture);
        let traffic = one(capture);
        assert_eq!(codes(&traffic), findings, "{name}: {:?}", traffic.findings);
        let nic = &traffic.nics[0];
        assert_eq!((nic.tx_bytes, nic.plateau_tx_gb_s), (tx, plateau), "{name}");
        assert_eq!(traffic.nics[1].tx_bytes, other, "{name}");
    }
}

#[test]
fn a_device_that_is_not_listed_moves_nothing_known() {
    let traffic = one(healthy("n1", &["d1"]));
    assert_eq!(codes(&traffic), ["nic-missing"]);
    assert_eq!(traffic.findings[0].part.as_deref(), Some("d0"));
    assert_eq!((traffic.nics[0].listed, traffic.nics[0].tx_bytes), (Some(false), None));
    assert_eq!(traffic.nics[1].tx_bytes, Some(100 * GB));
}

#[test]
fn a_name_that_is_part_of_another_is_another_device() {
    assert_eq!(one(healthy("n1", &["d01", "d1"])).nics[0].listed, Some(false));
}

#[test]
fn a_device_beyond_the_profile_is_a_finding_only_where_it_moves_data() {
    assert_eq!(codes(&one(healthy("n1", &["d0", "d1", "d2"]))), ["nic-unexpected"]);
    let mut capture = healthy("n1", &["d2", "d0", "d1"]);
    for name in COLUMNS {
        change(&mut capture, name, 0, |_| Some(3));
    }
    assert_eq!(codes(&one(capture)), [""; 0]);
}

#[test]
fn devices_of_an_unreadable_folder_are_unknown() {
    let mut capture = healthy("n1", &[]);
    capture.unreadable.push("/sys".to_owned());
    let traffic = one(capture);
    assert_eq!(codes(&traffic), ["folder-unreadable"]);
    assert_eq!(traffic.unreadable, ["n1"]);
    assert_eq!(traffic.nics[0].listed, None);
}

#[test]
fn a_capture_that_was_cut_does_not_show_that_its_devices_stayed() {
    let mut capture = healthy("n1", &["d0"]);
    capture.end = None;
    let traffic = one(capture);
    let listed: Vec<Option<bool>> = traffic.nics.iter().map(|nic| nic.listed).collect();
    assert_eq!(listed, [None, Some(false)], "d1 was absent from the beginning");
}

#[test]
fn a_node_without_a_capture_is_a_finding() {
    let traffic = analyze(&[], &[expected("n1")], &map());
    assert_eq!(codes(&traffic), ["capture-missing"]);
    assert_eq!((traffic.nics.len(), traffic.nics[0].listed), (2, None));
}

#[test]
fn captures_of_unknown_nodes_are_ignored_and_of_two_captures_neither_counts() {
    let whole = || healthy("n1", &["d0", "d1"]);
    // One of them may be of an earlier run, whichever was read first.
    for captures in [[whole(), healthy("n1", &[])], [healthy("n1", &[]), whole()], [whole(), whole()]] {
        let captures: Vec<Capture> = captures.into_iter().chain([healthy("n9", &[])]).collect();
        let traffic = analyze(&captures, &[expected("n1")], &map());
        assert_eq!(codes(&traffic), ["capture-duplicate", "capture-unexpected"]);
        let nics: Vec<_> = traffic.nics.iter().map(|nic| (nic.listed, nic.tx_bytes)).collect();
        assert_eq!(nics, [(None, None); 2]);
        assert_eq!(traffic.job_conservation, None);
    }
}

#[test]
fn the_same_trouble_on_many_devices_of_a_node_is_one_finding() {
    let names: Vec<String> = (0..32).map(|at| format!("d{at}")).collect();
    let traffic =
        analyze(&[healthy("n1", &[])], &[ExpectedNode { node: "n1".to_owned(), devices: names }], &map());
    assert_eq!(codes(&traffic), ["nic-missing"]);
    assert!(traffic.findings[0].message.ends_with("`d31`"), "{}", traffic.findings[0].message);
}

#[test]
fn bytes_sent_but_not_received_break_the_jobs_sum() {
    let mut captures = [healthy("n1", &["d0", "d1"]), healthy("n2", &["d0", "d1"])];
    for name in ["tx_bytes", "send_bytes"] {
        change(&mut captures[0], name, 8, |value| Some(value + 4096));
    }
    let nodes = [expected("n1"), expected("n2")];
    let traffic = analyze(&captures, &nodes, &map());
    assert_eq!(codes(&traffic), ["conservation-broken"]);
    assert!(traffic.findings[0].message.ends_with(", +4096"), "{}", traffic.findings[0].message);
    let unproven = DirectionMap { conservation_shown: false, ..map() };
    assert_eq!(codes(&analyze(&captures, &nodes, &unproven)), ["conservation-not-shown"]);
}

#[test]
fn a_torn_reading_under_traffic_is_tolerated_up_to_the_traffic_meanwhile() {
    // `rx_bytes` stands still for some readings while its parts move on.
    let held = |until: usize| {
        let mut capture = healthy("n1", &["d0", "d1"]);
        for reading in 4..until {
            let value = capture.readings[8].values[column("rx_bytes")];
            capture.readings[reading * 2].values[column("rx_bytes")] = value;
        }
        codes(&one(capture)).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(held(6), [""; 0]);
    assert_eq!(held(9), ["conservation-broken"]);
}

#[test]
fn idle_time_is_no_part_of_a_plateau() {
    let mut capture = healthy("n1", &["d0", "d1"]);
    for name in ["rdma_write_bytes", "tx_bytes"] {
        change(&mut capture, name, 0, |value| Some(value.max(75 * GB)));
    }
    assert_eq!(one(capture).nics[0].plateau_tx_gb_s, Some(10.0));
}

#[test]
fn messages() {
    let mut findings = Vec::new();
    for (_, trouble, ..) in troubles() {
        let mut capture = healthy("n1", &["d0", "d1"]);
        trouble(&mut capture);
        findings.extend(one(capture).findings);
    }
    let mut unreadable = healthy("n1", &[]);
    unreadable.unreadable.push("/sys".to_owned());
    for capture in [healthy("n1", &["d1"]), healthy("n1", &["d0", "d1", "d2"]), unreadable] {
        findings.extend(one(capture).findings);
    }
    findings.extend(analyze(&[], &[expected("n1")], &map()).findings);
    let captures = [healthy("n1", &["d0", "d1"]), healthy("n1", &[]), healthy("n9", &[])];
    findings.extend(analyze(&captures, &[expected("n1")], &map()).findings);
    let messages = findings.iter().map(|it| format!("{}: {}", it.code, it.message));
    insta::assert_snapshot!(messages.collect::<Vec<_>>().join("\n"));
}
