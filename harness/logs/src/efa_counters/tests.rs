//! What was written is what is read, and no text makes the reader stumble.

use super::*;
use proptest::prelude::*;

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{1,6}[0-9]{0,3}", any::<String>()]
}

fn clock() -> impl Strategy<Value = Clock> {
    (0..u64::MAX, 0..u64::MAX).prop_map(|(wall_us, uptime_cs)| Clock { wall_us, uptime_cs })
}

fn phase() -> impl Strategy<Value = Phase> {
    prop::sample::select(Phase::ALL.to_vec())
}

fn capture() -> impl Strategy<Value = Capture> {
    let devices = prop::collection::btree_map(name(), any::<Option<u64>>(), 0..4).prop_map(|devices| {
        devices.into_iter().map(|(name, lifespan_ms)| Device { name, lifespan_ms }).collect::<Vec<_>>()
    });
    let head = (name(), name(), any::<u64>(), clock(), prop::collection::btree_set(name(), 0..5), devices);
    head.prop_flat_map(|(node, root, interval_cs, begin, columns, devices)| {
        let columns: Vec<String> = columns.into_iter().collect();
        let values = prop::collection::vec(any::<Option<u64>>(), columns.len());
        let reading = (phase(), any::<u64>(), 0..devices.len().max(1), values)
            .prop_map(|(phase, uptime_cs, device, values)| Reading { phase, uptime_cs, device, values });
        let readings = prop::collection::vec(reading, if devices.is_empty() { 0..1 } else { 0..9 });
        let missing = (name(), name()).prop_map(|(device, counter)| MissingCounter { device, counter });
        let bad =
            (name(), name(), name()).prop_map(|(device, counter, text)| BadReading { device, counter, text });
        let end = (clock(), any::<u64>(), prop::sample::select(Reason::ALL.to_vec()))
            .prop_map(|(clock, cost_ms, reason)| End { clock, cost_ms, reason });
        let notes = (
            prop::collection::vec(name(), 0..3),
            prop::collection::vec(missing, 0..3),
            prop::collection::vec(bad, 0..3),
            prop::collection::vec(phase(), 0..3),
        );
        (readings, notes, prop::option::of(end)).prop_map(
            move |(mut readings, (unreadable, missing, bad, not_quiet), end)| {
                readings.retain(|reading| reading.device < devices.len());
                Capture {
                    file: "f".to_owned(),
                    node: node.clone(),
                    root: root.clone(),
                    interval_cs,
                    columns: columns.clone(),
                    begin,
                    devices: devices.clone(),
                    unreadable,
                    missing,
                    bad,
                    not_quiet,
                    readings,
                    end,
                }
            },
        )
    })
}

proptest! {
    #[test]
    fn a_capture_is_read_as_it_was_written(capture in capture()) {
        prop_assert_eq!(read(render(&capture).as_bytes(), "f"), Ok(capture));
    }

    #[test]
    fn no_bytes_make_the_readers_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = (read(&bytes, "f"), read_totals(&bytes, "f"));
    }

    #[test]
    fn a_capture_cut_anywhere_behind_its_head_has_no_end(capture in capture(), at in any::<prop::sample::Index>()) {
        let text = render(&capture);
        let cut = &text.as_bytes()[..at.index(text.len())];
        if let Ok(read) = read(cut, "f") {
            prop_assert_eq!(read.end, None);
            prop_assert!(read.readings.len() <= capture.readings.len());
            prop_assert_eq!(&read.readings[..], &capture.readings[..read.readings.len()]);
        }
    }

    #[test]
    fn a_capture_with_any_byte_changed_is_read_or_refused(
        capture in capture(), at in any::<prop::sample::Index>(), byte in any::<u8>()
    ) {
        let mut text = render(&capture).into_bytes();
        let at = at.index(text.len());
        text[at] = byte;
        let _ = read(&text, "f");
    }
}

const HEAD: &str = "harness-counters 1\nnode n1\nroot /sys\ninterval_s 1.00\ncolumns tx_bytes rx_bytes\n\
                    begin wall=1700000000 uptime=10.5\ndevice d0 lifespan_ms=12\n";

#[test]
fn a_time_with_fewer_places_is_the_same_time() {
    let capture = read(HEAD.as_bytes(), "f").expect("a head is a capture");
    assert_eq!(capture.begin, Clock { wall_us: 1_700_000_000_000_000, uptime_cs: 1050 });
}

#[test]
fn what_is_not_understood_is_named_with_its_line() {
    let table = [
        ("", "f:1: capture ends within its header, before `harness-counters`"),
        ("harness-counters 2\n", "f:1: unknown capture format, expected 1: `2`"),
        ("node n1\n", "f:1: expected `harness-counters`, found `node`"),
        (&format!("{HEAD}before 1.0 d0 1\n"), "f:8: reading has 1 values, expected 2"),
        (&format!("{HEAD}before 1.0 d1 1 2\n"), "f:8: device not listed before: `d1`"),
        (&format!("{HEAD}before 1.0 d0 1 +2\n"), "f:8: value is not a counter: `+2`"),
        (&format!("{HEAD}before x d0 1 2\n"), "f:8: time is not a number: `x`"),
        (
            &format!("{HEAD}before 1.0 d0 1 18446744073709551616\n"),
            "f:8: value is not a counter: `18446744073709551616`",
        ),
        (&format!("{HEAD}device d0 lifespan_ms=-\n"), "f:8: device is listed twice: `d0`"),
        (&HEAD.replace("rx_bytes", "tx_bytes"), "f:5: duplicate counter: `tx_bytes`"),
        (&format!("{HEAD}bash: warning\n"), "f:8: unknown first word: `bash:`"),
        (&format!("{HEAD}unreadable %4\n"), "f:8: `%` without two digits: `%4`"),
    ];
    for (text, message) in table {
        assert_eq!(read(text.as_bytes(), "f").expect_err(message).to_string(), message);
    }
}

#[test]
fn an_exporter_value_is_read_as_the_whole_number_it_is() {
    let text = "# HELP x\nnode_load1 0.5\nnode_amazonefa_info{device=\"d\"} 1\n\
                node_amazonefa_tx_bytes{device=\"d\",port=\"1\"} 1.04739451962e+12\n\
                node_amazonefa_rx_pkts{device=\"d\",port=\"1\"} 6.4607e+06\n";
    let totals = read_totals(text.as_bytes(), "f").expect("it is the exporter's form");
    assert_eq!(totals.len(), 1);
    assert_eq!(totals[0].counters["tx_bytes"], 1_047_394_519_620);
    assert_eq!(totals[0].counters["rx_pkts"], 6_460_700);
    assert!(read_totals(b"node_amazonefa_a{device=\"d\",port=\"1\"} 1.5\n", "f").is_err());
}

#[test]
fn a_listing_names_no_device() {
    let totals = &read_totals(b"send_bytes :2\nsend_wrs :1\n", "f").expect("it is a listing")[0];
    assert_eq!((totals.device.as_str(), totals.counters["send_bytes"]), ("", 2));
    assert!(read_totals(b"Warning: a host was added\n", "f").is_err());
    // As in https://github.com/linux-rdma/perftest/issues/113
    for (text, why) in [
        (
            "client\n---------\ncmds_err :0\nrx_drops :0\n\nserver\n---------\nrx_drops :3\n",
            "counters below a title; ",
        ),
        ("NIC statistics:\n     tx_timeout: 0\n     queue_0_tx_cnt: 2005711\n", "output of `ethtool -S`, "),
    ] {
        let error = read_totals(text.as_bytes(), "f").expect_err("refused").to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn what_rdma_statistic_and_more_print_is_read_by_device() {
    let values = |text: &str| -> Vec<(String, u64)> {
        let totals = read_totals(text.as_bytes(), "f").expect(text);
        totals.iter().map(|device| (device.device.clone(), device.counters["tx_bytes"])).collect()
    };
    let wanted = [("rdmap1s0".to_owned(), 5), ("rdmap2s0".to_owned(), 6)];
    let pretty = "link rdmap1s0/1\n    tx_bytes 5\n    rx_bytes 0\nlink rdmap2s0/1\n    tx_bytes 6\n";
    let plain = "link rdmap1s0/1 tx_bytes 5 rx_bytes 0\nlink rdmap2s0/1 tx_bytes 6\n";
    let file = |device: &str, value: u64| {
        format!(
            "::::::::::::::\n/sys/class/infiniband/{device}/ports/1/hw_counters/tx_bytes\n::::::::::::::\n{value}\n"
        )
    };
    let link = |device: &str, value: u64| {
        format!("{{\"ifindex\":0,\"ifname\":\"{device}\",\"port\":1,\"tx_bytes\":{value},\"rx_bytes\":0}}")
    };
    let json = format!("[{},{}]", link("rdmap1s0", 5), link("rdmap2s0", 6));
    let pretty_json = json.replace("[{", "[ {\n").replace(',', ",\n    ");
    for text in [pretty, plain, &json, &pretty_json, &(file("rdmap1s0", 5) + &file("rdmap2s0", 6))] {
        assert_eq!(values(text), wanted, "{text}");
    }
    // grep, by the path among the devices, too; head
    for front in ["/sys/class/infiniband", "/sys/devices/pci0000:50/0000:50:00.0/0000:53:00.0/infiniband"] {
        let path = |device: &str| format!("{front}/{device}/ports/1/hw_counters/tx_bytes");
        let (one, other) = (path("rdmap1s0"), path("rdmap2s0"));
        assert_eq!(values(&format!("{one}:5\n{other}:6\n")), wanted);
        assert_eq!(values(&format!("==> {one} <==\n5\n\n==> {other} <==\n6\n")), wanted);
    }
    // In the order of the file; a device that is none of EFA may have several ports.
    let ports = [("d9", 1, 5), ("d9", 2, 6), ("d10", 1, 7)];
    let wanted = [("d9", 5), ("d9/2", 6), ("d10", 7)].map(|(device, value)| (device.to_owned(), value));
    let plain =
        ports.map(|(device, port, value)| format!("link {device}/{port} tx_bytes {value}\n")).concat();
    let json = ports.map(|(device, port, value)| link(device, value).replace(":1,", &format!(":{port},")));
    for text in [plain, format!("[{}]", json.join(","))] {
        assert_eq!(values(&text), wanted, "{text}");
    }
}

#[test]
fn totals_that_are_cut_or_contradict_each_other_are_refused_with_their_line() {
    let colons = "::::::::::::::\n";
    let path = "/sys/class/infiniband/d/ports/1/hw_counters/a\n";
    let scraped = "node_amazonefa_a{device=\"d\",port=\"1\"} ";
    for (text, why) in [
        ("link d/1 a 1 b", "f:1: no value: `b`"),
        ("link d/1 a 1\nlink e/1\n", "f:1: no counter of e"),
        ("link d/1 a 1 a 2", "f:1: duplicate counter: `a`"),
        ("link d/1 a 1\nlink e/1 a 2\nlink d/1 a 3\n", "f:3: device is listed twice: `d`"),
        ("[{\"ifname\":\"d\",\"a\":1},{\"ifname\":\"d\",\"a\":2}]", "f:1: device is listed twice: `d`"),
        ("[{\"ifname\":\"d\",\"a\":1,\"a\":2}]", "f:1: duplicate counter: `a`"),
        ("link d a 1", "f:1: no port: `d`"),
        ("link d/1 a -1", "f:1: not a whole number: `a -1`"),
        (&format!("{colons}{path}{colons}"), "f:3: no value: `a` of d"),
        ("/x/d/ports/1/hw_counters/a:1\n/x/d/ports/1/hw_counters/a:2\n", "f:2: duplicate counter: `a`"),
        ("/x/d/ports/1/hw_counters/a:1\n/x/d/ports/1/hw_counters/b:\n", "f:2: not a whole number: ``"),
        ("==> /x/d/ports/1/hw_counters/a <==\n", "f:1: no value: `a` of d"),
        (&format!("{colons}{path}{colons}7\n8\n"), "f:5: value without a file: `8`"),
        (&format!("{colons}/etc/passwd\n{colons}7\n"), "f:2: not a file of `hw_counters`: `/etc/passwd`"),
        (&format!("{colons}{path}{colons}7\n{colons}{path}{colons}7\n"), "f:8: duplicate counter: `a`"),
        ("[{\"ifname\":\"d\",\"port\":1,\"a\":-1}]", "f:1: not a whole number: `a`"),
        ("[{\"port\":1,\"a\":1}]", "f:1: `ifname` is missing"),
        ("[{\"ifname\":\"d\",\"port\":1}]", "f:1: no counter of d"),
        ("[", "f:1: broken JSON of `rdma statistic`: EOF while parsing a list at line 1 column 1"),
        ("", "f:1: file is empty"),
        ("a :1\nb :2\na :3\n", "f:3: duplicate counter: `a`"),
        (&format!("{scraped}1\n{scraped}2\n"), "f:2: duplicate counter: `a` of d"),
    ] {
        let error = read_totals(text.as_bytes(), "f").expect_err(text).to_string();
        assert_eq!(error, why, "{text}");
    }
}
