//! The counter sampler as a real shell runs it, against a folder that is written like a node's; what it wrote is read
//! by the very reader that captures from a cluster meet. How captures are judged is tested with the analysis.

use logs::efa_counters::{Capture, Phase, Reason, read, render};
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use recipes::recipe::efa_traffic::analysis::{DirectionMap, ExpectedNode, analyze};
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const COUNTERS: [&str; 22] = [
    "tx_bytes",
    "rx_bytes",
    "tx_pkts",
    "rx_pkts",
    "rx_drops",
    "send_bytes",
    "send_wrs",
    "recv_bytes",
    "recv_wrs",
    "rdma_read_bytes",
    "rdma_read_wrs",
    "rdma_read_wr_err",
    "rdma_read_resp_bytes",
    "rdma_write_bytes",
    "rdma_write_wrs",
    "rdma_write_wr_err",
    "rdma_write_recv_bytes",
    "retrans_bytes",
    "retrans_pkts",
    "retrans_timeout_events",
    "unresponsive_remote_events",
    "impaired_remote_conn_events",
];

/// A written folder of devices, and the place where a sampler leaves its files.
struct Node {
    folder: TempDir,
}

impl Node {
    fn with(devices: &[&str]) -> Node {
        let node = Node { folder: TempDir::new().expect("a temporary folder") };
        fs::create_dir(node.path("sys-n1")).expect("the folder of devices");
        for device in devices {
            fs::create_dir_all(node.counter(device, "")).expect("a device's folder");
            for counter in COUNTERS {
                node.set(device, counter, "1000");
            }
            node.set(device, "lifespan", "12");
        }
        node
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn counter(&self, device: &str, counter: &str) -> PathBuf {
        self.path("sys-n1").join(device).join("ports/1/hw_counters").join(counter)
    }

    /// Replaced as a whole, so that a reader never meets half of it.
    fn set(&self, device: &str, counter: &str, value: &str) {
        let new = self.path("new-value");
        fs::write(&new, format!("{value}\n")).expect("a value");
        fs::rename(new, self.counter(device, counter)).expect("a counter");
    }

    /// Starts a sampler that finds no program to call.
    fn sampler(&self, interval_s: &str, limit_s: &str) -> Child {
        self.sampler_of("sys-{host}", interval_s, limit_s)
    }

    fn sampler_of(&self, root: &str, interval_s: &str, limit_s: &str) -> Child {
        let script = crate::project::root().join("harness/job/src/script/counters.sh");
        Command::new(bash())
            .arg(script)
            .args([root, "counters.{host}.txt", "ready.{host}", "stop", interval_s, limit_s])
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", "/nonexistent")
            .env("SLURMD_NODENAME", "n1")
            .stdin(Stdio::null())
            .spawn()
            .expect("bash starts")
    }

    fn wait_until_ready(&self) {
        until("the sampler is ready", || self.path("ready.n1").exists());
    }

    fn stop(&self, mut sampler: Child) -> Capture {
        fs::write(self.path("stop"), "").expect("a file to stop at");
        assert!(sampler.wait().expect("the sampler ends").success());
        self.capture()
    }

    fn text(&self) -> String {
        fs::read_to_string(self.path("counters.n1.txt")).unwrap_or_default()
    }

    fn capture(&self) -> Capture {
        let text = self.text();
        read(text.as_bytes(), "counters.n1.txt").unwrap_or_else(|error| panic!("{error}\n{text}"))
    }
}

fn bash() -> &'static str {
    ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"]
        .into_iter()
        .find(|path| Path::new(path).exists())
        .expect("bash is at one of its places")
}

/// Waits for what must come; only a sampler that hangs ever meets the end of it.
fn until(what: &str, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60), "waited in vain until {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

fn value(capture: &Capture, phase: Phase, counter: &str) -> Vec<Option<u64>> {
    let at = capture.columns.iter().position(|column| column == counter).expect("a column of the sampler");
    capture
        .readings
        .iter()
        .filter(|reading| reading.phase == phase)
        .map(|reading| reading.values[at])
        .collect()
}

#[test]
fn counters_that_move_under_a_workload_are_read_before_during_and_after_it() {
    let node = Node::with(&["rdmap16s27"]);
    let sampler = node.sampler("0.2", "60");
    node.wait_until_ready();
    let running = AtomicBool::new(true);
    let moved = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut moved = 1000u64;
            while running.load(Ordering::Relaxed) {
                moved += 5000;
                for counter in ["rdma_write_bytes", "send_bytes", "rdma_read_resp_bytes"] {
                    node.set("rdmap16s27", counter, &moved.to_string());
                }
                node.set("rdmap16s27", "tx_bytes", &(3 * moved).to_string());
                thread::sleep(Duration::from_millis(2));
            }
            moved
        });
        until("four readings are there", || node.text().matches("\nduring ").count() >= 4);
        running.store(false, Ordering::Relaxed);
        writer.join().expect("the writer ends")
    });
    let capture = node.stop(sampler);
    assert_eq!((capture.node.as_str(), capture.root.as_str(), capture.interval_cs), ("n1", "sys-n1", 20));
    assert_eq!(capture.columns, COUNTERS);
    assert_eq!(capture.devices[0].lifespan_ms, Some(12));
    assert_eq!(capture.end.map(|end| end.reason), Some(Reason::Stop));
    assert_eq!(value(&capture, Phase::Before, "rdma_write_bytes"), [Some(1000); 2]);
    assert_eq!(value(&capture, Phase::After, "rdma_write_bytes").last(), Some(&Some(moved)));
    let during = value(&capture, Phase::During, "rdma_write_bytes");
    assert!(during.windows(2).all(|pair| pair[0] <= pair[1]), "{during:?}");
    assert!(
        capture.readings.windows(2).all(|pair| pair[1].uptime_cs - pair[0].uptime_cs >= 19),
        "at most five a second"
    );
    let map = DirectionMap {
        sent: vec!["rdma_write_bytes".to_owned()],
        received: vec!["rdma_write_recv_bytes".to_owned()],
        conservation_shown: false,
    };
    let expected = ExpectedNode { node: "n1".to_owned(), devices: vec!["rdmap16s27".to_owned()] };
    let traffic = analyze(&[capture], &[expected], &map);
    assert_eq!((traffic.nics[0].tx_bytes, traffic.nics[0].rx_bytes), (Some(moved - 1000), Some(0)));
}

#[test]
fn what_the_sampler_writes_is_what_the_library_writes() {
    let node = Node::with(&["rdmap16s27", "a b;$(x)"]);
    let sampler = node.sampler("0.2", "60");
    node.wait_until_ready();
    let capture = node.stop(sampler);
    assert_eq!(capture.devices[0].name, "a b;$(x)");
    // Shells older than five know no fractions of the wall clock's seconds.
    if !capture.begin.wall_us.is_multiple_of(1_000_000) {
        assert_eq!(render(&capture), node.text());
    }
}

#[test]
fn a_counter_that_is_absent_or_no_number_is_reported_once_and_never_zero() {
    let node = Node::with(&["d0"]);
    fs::remove_file(node.counter("d0", "retrans_pkts")).expect("the counter was there");
    node.set("d0", "rx_drops", "n/a 1");
    node.set("d0", "tx_bytes", "18446744073709551616");
    node.set("d0", "rx_bytes", "18446744073709551615");
    let sampler = node.sampler("0.2", "60");
    node.wait_until_ready();
    let capture = node.stop(sampler);
    assert_eq!(capture.missing.len(), 1);
    assert_eq!(capture.missing[0].counter, "retrans_pkts");
    let bad: Vec<_> = capture.bad.iter().map(|bad| (bad.counter.as_str(), bad.text.as_str())).collect();
    assert_eq!(bad, [("tx_bytes", "18446744073709551616"), ("rx_drops", "n/a 1")]);
    for (counter, expected) in
        [("retrans_pkts", None), ("rx_drops", None), ("tx_bytes", None), ("rx_bytes", Some(u64::MAX))]
    {
        assert_eq!(value(&capture, Phase::Before, counter), [expected; 2], "{counter}");
    }
}

#[test]
fn a_device_that_goes_away_leaves_gaps() {
    let node = Node::with(&["d0", "d1"]);
    let sampler = node.sampler("0.2", "60");
    node.wait_until_ready();
    fs::remove_dir_all(node.path("sys-n1/d1")).expect("the device was there");
    let capture = node.stop(sampler);
    assert_eq!(capture.devices.len(), 2);
    assert_eq!(value(&capture, Phase::Before, "tx_bytes"), [Some(1000); 4]);
    assert_eq!(value(&capture, Phase::After, "tx_bytes"), [Some(1000), None, Some(1000), None]);
    assert_eq!(capture.missing.len(), COUNTERS.len());
}

#[test]
fn a_folder_that_is_not_there_holds_no_workload_up() {
    let node = Node::with(&[]);
    let sampler = node.sampler_of("nowhere-{host}", "0.2", "60");
    node.wait_until_ready();
    let capture = node.stop(sampler);
    assert_eq!(capture.unreadable, ["nowhere-n1"]);
    assert_eq!((capture.devices.len(), capture.readings.len()), (0, 0));
}

#[test]
fn a_sampler_that_is_asked_to_end_says_so_in_its_last_line() {
    let node = Node::with(&["d0"]);
    let mut sampler = node.sampler("5", "60");
    node.wait_until_ready();
    let kill = Command::new(bash()).arg("-c").arg(format!("kill -TERM {}", sampler.id())).status();
    assert!(kill.expect("bash starts").success());
    assert_eq!(sampler.wait().expect("the sampler ends").code(), Some(143));
    assert_eq!(node.capture().end.map(|end| end.reason), Some(Reason::Signal));
}

#[test]
fn a_sampler_that_is_killed_leaves_what_it_has_read() {
    let node = Node::with(&["d0"]);
    let mut sampler = node.sampler("5", "60");
    node.wait_until_ready();
    sampler.kill().expect("the sampler runs");
    sampler.wait().expect("the sampler ends");
    let capture = node.capture();
    assert_eq!((capture.readings.len(), capture.end), (2, None));
}

#[test]
fn a_sampler_that_is_not_stopped_ends_at_its_limit() {
    let node = Node::with(&["d0"]);
    let mut sampler = node.sampler("0.2", "1");
    assert!(sampler.wait().expect("the sampler ends").success());
    let capture = node.capture();
    assert_eq!(capture.end.map(|end| end.reason), Some(Reason::Limit));
    assert_eq!(value(&capture, Phase::After, "tx_bytes"), [Some(1000); 2]);
}

#[test]
fn counters_that_never_rest_are_reported_and_hold_no_workload_up() {
    let node = Node::with(&["d0"]);
    let counter = node.counter("d0", "tx_bytes");
    fs::remove_file(&counter).expect("the counter was there");
    // A pipe gives every reading another number, however slow this machine is.
    mkfifo(&counter, Mode::S_IRWXU).expect("a pipe");
    let (moving, running) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicBool::new(true)));
    let (writer_moving, writer_running, pipe) = (moving.clone(), running.clone(), counter.clone());
    // Not joined where an assertion fails: it may wait for a reader that never comes.
    let writer = thread::spawn(move || {
        let mut moved = 1000u64;
        while let Ok(mut file) = fs::OpenOptions::new().write(true).open(&pipe)
            && writer_running.load(Ordering::Relaxed)
        {
            moved += u64::from(writer_moving.load(Ordering::Relaxed));
            // The reader may be gone already.
            let _ = file.write_all(format!("{moved}\n").as_bytes());
            drop(file);
            thread::sleep(Duration::from_millis(1));
        }
    });
    let sampler = node.sampler("0.2", "60");
    node.wait_until_ready();
    moving.store(false, Ordering::Relaxed);
    let capture = node.stop(sampler);
    running.store(false, Ordering::Relaxed);
    // Held until the writer has ended: it may be about to reopen the pipe, or never again.
    let no_wait = OFlag::O_NONBLOCK.bits();
    let reader = fs::OpenOptions::new().read(true).custom_flags(no_wait).open(&counter);
    writer.join().expect("the writer ends");
    drop(reader);
    assert_eq!(capture.not_quiet, [Phase::Before]);
}

#[test]
fn arguments_that_are_no_numbers_are_refused() {
    let node = Node::with(&[]);
    let mut sampler = node.sampler("often", "60");
    assert_eq!(sampler.wait().expect("the sampler ends").code(), Some(2));
    assert!(!node.path("counters.n1.txt").exists());
}

#[test]
fn devices_of_other_makers_are_not_sampled_beside_efa_devices() {
    let node = Node::with(&["ibp115s0f0", "rdmap79s0"]);
    for (device, vendor) in [("ibp115s0f0", "0x15b3"), ("rdmap79s0", "0x1d0f")] {
        fs::create_dir_all(node.path("sys-n1").join(device).join("device")).expect("a folder");
        fs::write(node.path("sys-n1").join(device).join("device/vendor"), format!("{vendor}\n"))
            .expect("a maker");
    }
    let names = |node: &Node| {
        let _ = fs::remove_file(node.path("stop"));
        let _ = fs::remove_file(node.path("ready.n1"));
        let sampler = node.sampler("1", "60");
        node.wait_until_ready();
        let capture = node.stop(sampler);
        capture.devices.iter().map(|device| device.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(&node), ["rdmap79s0"]);
    fs::write(node.path("sys-n1").join("rdmap79s0/device/vendor"), "0x15b3\n").expect("a maker");
    assert_eq!(names(&node), ["ibp115s0f0", "rdmap79s0"], "where there is no EFA, all are sampled");
}
