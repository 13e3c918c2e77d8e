//! Files that grow, are rotated, cut, replaced and damaged, and what the verb says of them: with the simulator's writer.

use super::*;
use sim::inspector::{LongFault, LongJob};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::os::unix::fs::symlink;

const HOUR_S: f64 = 3600.0;

fn job(faults: Vec<LongFault>) -> LongJob {
    LongJob { seed: 5, nodes: 16, columns: 4, gpus: 1, step_s: 10.0, epoch_s: 1_700_000_000.0, faults }
}

/// A folder of records, and the folders of the verb beside it.
struct Bed {
    folder: tempfile::TempDir,
}

struct Look {
    code: i32,
    out: String,
    err: String,
}

impl Bed {
    fn new() -> Bed {
        let bed = Bed { folder: tempfile::tempdir().expect("a folder") };
        fs::create_dir(bed.records()).expect("made");
        bed
    }

    fn records(&self) -> PathBuf {
        self.folder.path().join("inspector")
    }

    fn file(&self, job: &LongJob, process: usize) -> PathBuf {
        self.records().join(format!("{}-pid{}.log", job.host(process), job.pid(process)))
    }

    /// Adds what the job's threads write in these seconds.
    fn write(&self, job: &LongJob, from_s: f64, to_s: f64) {
        let mut texts = vec![String::new(); job.processes()];
        job.calls(from_s, to_s, &mut |call| job.line(call, &mut texts[call.process]));
        for (process, text) in texts.iter().enumerate() {
            append(&self.file(job, process), text.as_bytes());
        }
    }

    fn request(&self) -> ObserveRequest {
        ObserveRequest {
            folder: self.records(),
            state: self.folder.path().join("state"),
            events: None,
            metrics: Some(self.folder.path().join("harness.prom")),
            every: Duration::from_secs(1),
            once: true,
        }
    }

    /// As a process that is started for one look.
    fn look(&self) -> Look {
        let request = self.request();
        let mut session = Session::open(&request).expect("opened");
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let code = session.look(&mut out, &mut err).expect("looked");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        Look { code, out: text(out), err: text(err) }
    }

    fn events(&self) -> Vec<Logged> {
        let text = fs::read_to_string(self.folder.path().join("state").join(EVENTS)).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("an event")).collect()
    }

    fn records_read(&self) -> u64 {
        let request = self.request();
        Session::open(&request).expect("opened").state.observer.coverage().records
    }
}

fn append(path: &Path, bytes: &[u8]) {
    let mut file = OpenOptions::new().create(true).append(true).open(path).expect("opened");
    file.write_all(bytes).expect("written");
}

#[test]
fn a_sinking_nic_is_found_in_one_look_at_an_hour_and_reported_once() {
    let bed = Bed::new();
    let job = job(vec![LongFault::Nic { node: 6, gpu: 0, from_s: HOUR_S / 2.0, factor: 0.9 }]);
    bed.write(&job, 0.0, HOUR_S);
    let before: Vec<(PathBuf, u64)> = sizes(&bed.records());
    let look = bed.look();
    assert_eq!((look.code, look.err.as_str()), (1, ""), "{}", look.out);
    insta::assert_snapshot!(look.out);
    let again = bed.look();
    assert_eq!(again.code, 1, "it lasts");
    assert!(again.out.contains(" since then: p5-007 rank "), "{}", again.out);
    let found = bed.events();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(sizes(&bed.records()), before, "nothing is written there");
    let metrics = fs::read_to_string(bed.folder.path().join("harness.prom")).expect("metrics");
    let metrics = metrics.replace(&bed.folder.path().display().to_string(), "HOME");
    insta::assert_snapshot!("metrics", metrics);
}

fn sizes(folder: &Path) -> Vec<(PathBuf, u64)> {
    let mut all: Vec<(PathBuf, u64)> = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry"))
        .map(|entry| (entry.path(), entry.metadata().expect("data").len()))
        .collect();
    all.sort();
    all
}

#[test]
fn minute_by_minute_and_restarted_each_time_it_finds_the_same_as_in_one_look() {
    let late = LongFault::Late { node: 9, gpu: 0, from_s: 900.0, us: 4000.0 };
    let job = job(vec![late]);
    let (whole, parts) = (Bed::new(), Bed::new());
    whole.write(&job, 0.0, 2400.0);
    assert_eq!(whole.look().code, 1);
    for minute in 0..40 {
        parts.write(&job, f64::from(minute) * 60.0, f64::from(minute + 1) * 60.0);
        parts.look();
    }
    let about = |bed: &Bed| -> Vec<(Vec<String>, String)> {
        let events = bed.events();
        let found = events.iter().filter_map(|it| match &it.event {
            Event::Found(finding) => Some((finding.hosts.clone(), finding.kind.name().to_owned())),
            Event::Over { .. } => None,
        });
        found.collect()
    };
    assert_eq!(about(&parts), [(vec!["p5-010".to_owned()], "straggler".to_owned())]);
    assert_eq!(about(&whole), about(&parts));
}

#[test]
fn healthy_hours_pass_and_a_job_without_files_or_times_is_inconclusive() {
    let bed = Bed::new();
    let look = bed.look();
    assert_eq!(look.code, 3);
    assert!(
        look.err.starts_with("inconclusive: no file `*.log` or `*.jsonl`: Inspector writes none without")
    );
    let job = job(Vec::new());
    bed.write(&job, 0.0, 60.0);
    let look = bed.look();
    assert_eq!(look.code, 3);
    assert!(look.err.contains("too few calls of which all ranks have a record"), "{}", look.err);
    bed.write(&job, 60.0, 1800.0);
    let look = bed.look();
    assert_eq!((look.code, look.err.as_str()), (0, ""), "{}", look.out);
    assert!(look.out.contains("judged 8 of 8 communicators"), "{}", look.out);

    let bed = Bed::new();
    bed.write(&job, 0.0, 900.0);
    for process in 0..job.processes() {
        let path = bed.file(&job, process);
        let text = fs::read_to_string(&path).expect("read").replace("kernel_gpu", "kernel_cpu");
        fs::write(&path, text).expect("written");
    }
    let look = bed.look();
    assert_eq!(look.code, 3);
    assert!(look.err.contains("without a time of the GPU"), "{}", look.err);
}

#[test]
fn a_rank_without_a_file_is_inconclusive_for_its_communicators() {
    let bed = Bed::new();
    let job = job(Vec::new());
    bed.write(&job, 0.0, 1800.0);
    fs::remove_file(bed.file(&job, 3)).expect("removed");
    let look = bed.look();
    assert_eq!(look.code, 3);
    assert!(look.out.contains("judged 6 of 8 communicators"), "{}", look.out);
}

#[test]
fn files_that_are_rotated_truncated_or_replaced_lose_no_record_and_give_none_twice() {
    let bed = Bed::new();
    let job = job(Vec::new());
    bed.write(&job, 0.0, 600.0);
    bed.look();
    // Renamed with lines that were not read yet, and a new file by its name.
    bed.write(&job, 600.0, 700.0);
    fs::rename(bed.file(&job, 0), bed.records().join("old.1")).expect("renamed");
    bed.look();
    // Cut, after its lines were copied away.
    OpenOptions::new().write(true).truncate(true).open(bed.file(&job, 1)).expect("truncated");
    // Replaced by a copy of itself that goes on.
    let path = bed.file(&job, 2);
    let whole = fs::read(&path).expect("read");
    fs::write(bed.folder.path().join("copy"), whole).expect("written");
    fs::rename(bed.folder.path().join("copy"), &path).expect("renamed");
    bed.write(&job, 700.0, 1200.0);
    bed.look();
    // A row and a column for each of 16 processes, 120 steps.
    assert_eq!(bed.records_read(), 2 * 16 * 120);
    let request = bed.request();
    let session = Session::open(&request).expect("opened");
    let coverage = session.state.observer.coverage();
    assert_eq!((coverage.contradictory, coverage.incomplete_calls), (0, 0));
}

#[test]
fn a_line_is_read_when_its_end_is_written() {
    let bed = Bed::new();
    let job = job(Vec::new());
    let mut text = String::new();
    job.calls(0.0, 60.0, &mut |call| {
        if call.process == 0 {
            job.line(call, &mut text);
        }
    });
    let records = 2 * 6;
    for (at, byte) in text.bytes().enumerate() {
        append(&bed.file(&job, 0), &[byte]);
        if at % 211 == 0 {
            bed.look();
        }
    }
    bed.look();
    assert_eq!(bed.records_read(), records);
}

#[test]
fn links_pipes_huge_lines_and_damage_are_counted_and_the_rest_is_read() {
    let bed = Bed::new();
    let job = job(Vec::new());
    bed.write(&job, 0.0, 60.0);
    let secret = bed.folder.path().join("elsewhere");
    fs::write(&secret, fs::read(bed.file(&job, 0)).expect("read")).expect("written");
    symlink(&secret, bed.records().join("link.log")).expect("linked");
    nix::unistd::mkfifo(&bed.records().join("pipe.log"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    append(&bed.file(&job, 1), &vec![b'{'; 300_000]);
    append(
        &bed.file(&job, 1),
        b"\n{\"header\":{\"id\":\"0x1\",\"rank\":-1},\"coll_perf\":{}}\n\xff\xfe\nloss 3.1\n",
    );
    bed.write(&job, 60.0, 120.0);
    let look = bed.look();
    assert_eq!(bed.records_read(), 2 * 16 * 12);
    assert!(look.out.contains("note: 2 lines damaged, left out"), "{}", look.out);
    assert!(look.out.contains("note: 2 names of a link or a pipe, not opened"), "{}", look.out);
}

#[test]
fn nothing_is_written_into_the_folder_of_records_and_a_state_is_of_one_folder() {
    let bed = Bed::new();
    let refused = |request: ObserveRequest| Session::open(&request).err().expect("refused");
    for request in [
        ObserveRequest { state: bed.records().join("state"), ..bed.request() },
        ObserveRequest { metrics: Some(bed.records().join("../inspector/a.prom")), ..bed.request() },
        ObserveRequest { events: Some(bed.records().join("events.jsonl")), ..bed.request() },
    ] {
        let why = refused(request);
        assert!(why.contains(": lies in --dir "), "{why}");
        assert!(why.ends_with(", where nothing is written; choose another place"), "{why}");
    }
    assert_eq!(fs::read_dir(bed.records()).expect("a folder").count(), 0);
    bed.look();
    let why = refused(ObserveRequest { folder: bed.folder.path().join("other"), ..bed.request() });
    assert!(why.contains(": is of ") && why.contains("; give another --state for "), "{why}");
    let state = bed.folder.path().join("state/state.json");
    let text = fs::read_to_string(&state).expect("read");
    assert!(text.contains("\"window_s\":10,"), "{text}");
    fs::write(&state, text.replace("\"window_s\":10,", "\"window_s\":0,")).expect("written");
    let why = refused(bed.request());
    assert!(why.ends_with(": contradicts itself; remove it to start without a past"), "{why}");
    fs::write(&state, "{\"format\":1").expect("written");
    let why = refused(bed.request());
    assert!(why.contains("; to start without a past, remove "), "{why}");
}

/// The text with the times of its lines moved by so many seconds.
fn moved(text: &str, by_s: i64) -> String {
    const FIELD: &str = "\"dump_timestamp_us\":";
    let mut parts = text.split(FIELD);
    let mut moved = parts.next().expect("a part").to_owned();
    for part in parts {
        let end = part.find(|letter: char| !letter.is_ascii_digit()).expect("an end");
        let at: i64 = part[..end].parse().expect("a time");
        moved += &format!("{FIELD}{}{}", at + by_s * 1_000_000, &part[end..]);
    }
    moved
}

impl Bed {
    /// Adds what these seconds have, of one process with a clock that is off.
    fn write_off(&self, job: &LongJob, (from_s, to_s): (f64, f64), process: usize, by_s: i64) {
        let path = self.file(job, process);
        let before = fs::read_to_string(&path).unwrap_or_default();
        self.write(job, from_s, to_s);
        let text = fs::read_to_string(&path).expect("read");
        let (_, new) = text.split_at(before.len());
        fs::write(&path, before.clone() + &moved(new, by_s)).expect("written");
    }
}

#[test]
fn a_clock_that_jumps_ahead_is_set_right_by_the_calls_and_hides_no_straggler() {
    for by_s in [90, 4000, 2_000_000_000] {
        for hosts_first in [3, 15] {
            let bed = Bed::new();
            let job = job(vec![LongFault::Late { node: 9, gpu: 0, from_s: 1200.0, us: 4000.0 }]);
            bed.write(&job, 0.0, 900.0);
            bed.write_off(&job, (900.0, 2400.0), hosts_first, by_s);
            let look = bed.look();
            assert_eq!((look.code, look.err.as_str()), (1, ""), "{by_s}: {}", look.out);
            assert!(look.out.contains("p5-010 rank "), "{}", look.out);
            assert!(look.out.contains("note: 1 file by a clock that is ahead"), "{}", look.out);
            assert_eq!(bed.events().len(), 1, "{by_s}");
        }
    }
}

#[test]
fn one_line_with_a_wrong_time_blinds_no_later_look() {
    for by_s in [2_000_000_000, -1_600_000_000] {
        let bed = Bed::new();
        let job = job(vec![LongFault::Late { node: 9, gpu: 0, from_s: 1200.0, us: 4000.0 }]);
        bed.write(&job, 0.0, 890.0);
        bed.write_off(&job, (890.0, 900.0), 3, by_s);
        let look = bed.look();
        assert_eq!((look.code, look.err.as_str()), (0, ""), "{by_s}: {}", look.out);
        bed.write(&job, 900.0, 2400.0);
        let look = bed.look();
        assert_eq!((look.code, look.err.as_str()), (1, ""), "{by_s}: {}", look.out);
        assert!(look.out.contains("p5-010 rank "), "{}", look.out);
    }
}

#[test]
fn calls_that_came_too_late_to_be_judged_make_their_look_inconclusive() {
    let bed = Bed::new();
    let job = job(Vec::new());
    bed.write(&job, 0.0, 900.0);
    assert_eq!(bed.look().code, 0);
    let lengths: BTreeMap<PathBuf, u64> = sizes(&bed.records()).into_iter().collect();
    bed.write(&job, 900.0, 930.0);
    for (path, length) in lengths {
        let text = fs::read_to_string(&path).expect("read");
        let (before, new) = text.split_at(length as usize);
        fs::write(&path, before.to_owned() + &moved(new, -200)).expect("written");
    }
    let look = bed.look();
    assert_eq!(look.code, 3, "{}", look.out);
    assert!(look.err.contains("24 calls came after their time was judged"), "{}", look.err);
    bed.write(&job, 930.0, 960.0);
    assert_eq!(bed.look().code, 0, "each look speaks of its own");
}

#[test]
fn no_output_takes_the_place_of_another_file() {
    let bed = Bed::new();
    let at = |name: &str| Some(bed.folder.path().join(name));
    fs::write(bed.folder.path().join("important.txt"), "mine").expect("written");
    symlink(bed.folder.path().join("state"), bed.folder.path().join("link")).expect("linked");
    nix::unistd::mkfifo(&bed.folder.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    for (events, metrics, expected) in [
        (None, at("important.txt"), "does not end in .prom"),
        (at("x.prom"), at("x.prom"), "is both --events and --metrics"),
        (at("x.prom"), at("y/../x.prom"), "is both --events and --metrics"),
        (at("state/state.json"), None, "lies in the state's folder"),
        (at("link/state.json"), None, "lies in the state's folder"),
        (None, at("state/x.prom"), "lies in the state's folder"),
        (at("important.txt"), None, "holds something else than events"),
        (at("pipe"), None, "pipe: not a regular file"),
    ] {
        let request = ObserveRequest { events, metrics, ..bed.request() };
        let why = Session::open(&request).err().expect("refused");
        assert!(why.contains(expected), "{expected}: {why}");
    }
    assert_eq!(fs::read_to_string(bed.folder.path().join("important.txt")).expect("read"), "mine");
    let events = at("state/events.jsonl");
    assert!(Session::open(&ObserveRequest { events, ..bed.request() }).is_ok(), "its usual place");
}

#[test]
fn a_folder_that_is_absent_or_a_file_is_called_a_folder() {
    let bed = Bed::new();
    fs::remove_dir(bed.records()).expect("removed");
    let absent = bed.look();
    fs::write(bed.records(), "").expect("written");
    let file = bed.look();
    for look in [absent, file] {
        assert_eq!(look.code, 3);
        assert!(look.err.starts_with("inconclusive: the folder cannot be read: "), "{}", look.err);
        assert_eq!(look.err.lines().count(), 1, "{}", look.err);
    }
}

#[test]
fn a_huge_file_without_a_line_does_not_keep_the_others_from_being_read() {
    let bed = Bed::new();
    let job = job(Vec::new());
    bed.write(&job, 0.0, 600.0);
    let sparse = fs::File::create(bed.records().join("a.jsonl")).expect("made");
    sparse.set_len(1 << 42).expect("a hole");
    bed.look();
    let without = Bed::new();
    without.write(&job, 0.0, 600.0);
    without.look();
    assert!(bed.records_read() > 0);
    assert_eq!(bed.records_read(), without.records_read());
}
