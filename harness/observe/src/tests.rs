//! What is found in a job of 16 nodes in a grid, from its records: whom it blames, when, and what it leaves alone.

use crate::{Coverage, Event, Finding, FindingKind, Observer};
use logs::inspector::lines::CallRecord;

const EPOCH_S: u64 = 1_700_000_000;
/// Rows and columns of nodes, with one process each.
const SIDE: u64 = 4;

/// Numbers that look drawn, from 0 to 1.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / f64::from(1_u32 << 31)
    }
}

fn record(communicator: String, node: u64, rank: u64, number: u64) -> CallRecord {
    CallRecord {
        communicator,
        rank,
        ranks: SIDE,
        host: format!("n{node}"),
        pid: 7,
        operation: "AllReduce".into(),
        is_p2p: false,
        number,
        bytes: 1 << 27,
        time_us: Some(0.0),
        busbw: Some(100.0),
        at_us: Some((EPOCH_S + 10 * number) * 1_000_000 + 1000 * rank),
    }
}

/// What one call does to a communicator, given its nodes: the factor of its time, and how late each rank comes.
type Effect<'a> = &'a dyn Fn(u64, &[u64]) -> (f64, [f64; SIDE as usize]);

struct Job<'a> {
    effect: Effect<'a>,
    has_columns: bool,
    draws: Draws,
}

impl Job<'_> {
    fn new(effect: Effect<'_>) -> Job<'_> {
        Job { effect, has_columns: true, draws: Draws(3) }
    }

    /// All records of one step.
    fn step(&mut self, number: u64) -> Vec<CallRecord> {
        let mut records = Vec::new();
        let rows = (0..SIDE).map(|row| (format!("0xa{row}"), (0..SIDE).map(|it| row * SIDE + it).collect()));
        let columns = (0..SIDE)
            .map(|column| (format!("0xb{column}"), (0..SIDE).map(|it| it * SIDE + column).collect()));
        let communicators: Vec<(String, Vec<u64>)> =
            rows.chain(columns.filter(|_| self.has_columns)).collect();
        for (id, nodes) in communicators {
            let (factor, late) = (self.effect)(number, &nodes);
            let late: Vec<f64> = late.iter().map(|late| late + 60.0 * self.draws.next()).collect();
            let last = late.iter().copied().fold(0.0, f64::max);
            let time = 2000.0 * factor * (0.98 + 0.04 * self.draws.next());
            for ((rank, node), late) in (0..).zip(&nodes).zip(&late) {
                records.push(CallRecord {
                    time_us: Some((time + last - late).floor()),
                    ..record(id.clone(), *node, rank, number)
                });
            }
        }
        records
    }
}

struct Observed {
    found: Vec<Finding>,
    over: Vec<u64>,
    coverage: Coverage,
}

fn observe(job: &mut Job<'_>, steps: u64) -> Observed {
    let mut observer = Observer::new(10);
    let (mut found, mut over) = (Vec::new(), Vec::new());
    for number in 0..steps {
        job.step(number).iter().for_each(|record| observer.take(record));
        for event in observer.advance() {
            match event {
                Event::Found(finding) => found.push(finding),
                Event::Over { number, .. } => over.push(number),
            }
        }
    }
    Observed { found, over, coverage: observer.coverage() }
}

fn hosts(finding: &Finding) -> Vec<&str> {
    finding.hosts.iter().map(String::as_str).collect()
}

const ON_TIME: [f64; SIDE as usize] = [0.0; SIDE as usize];

#[test]
fn a_healthy_job_and_one_that_changes_what_it_does_blame_no_node() {
    let healthy = observe(&mut Job::new(&|_, _| (1.0, ON_TIME)), 400);
    assert_eq!((healthy.found, healthy.coverage.judged, healthy.coverage.unjudged), (Vec::new(), 8, 0));
    let slower = observe(&mut Job::new(&|number, _| (if number < 150 { 1.0 } else { 1.3 }, ON_TIME)), 300);
    assert!(!slower.found.is_empty());
    for finding in &slower.found {
        assert_eq!((finding.kind, finding.processes_in_all), (FindingKind::AllSlower, 0), "{finding:?}");
        assert!((0.2..0.26).contains(&finding.lower_by), "{finding:?}");
    }
}

#[test]
fn a_nic_that_sinks_by_a_tenth_is_where_the_slow_row_and_column_cross() {
    let effect = |number, nodes: &[u64]| {
        let is_slow = (150..260).contains(&number) && nodes.contains(&6);
        (if is_slow { 1.0 / 0.9 } else { 1.0 }, ON_TIME)
    };
    let observed = observe(&mut Job::new(&effect), 400);
    assert_eq!(observed.found.len(), 1, "{:?}", observed.found);
    let finding = &observed.found[0];
    assert_eq!(
        (finding.kind, hosts(finding), finding.processes_in_all),
        (FindingKind::Sinking, vec!["n6"], 1)
    );
    assert_eq!((finding.communicators_in_all, finding.peers), (2, (7, 7)));
    assert!((0.08..0.13).contains(&finding.lower_by), "{finding:?}");
    let windows = (finding.at_s - EPOCH_S) / 10 - 150;
    assert!(windows <= 30, "{windows} windows");
    assert_eq!(observed.over, [1], "it ends with the fault");
}

#[test]
fn without_columns_the_four_nodes_of_the_row_are_not_separated() {
    let effect =
        |number, nodes: &[u64]| (if number >= 150 && nodes.contains(&6) { 1.0 / 0.9 } else { 1.0 }, ON_TIME);
    let mut job = Job { has_columns: false, ..Job::new(&effect) };
    let observed = observe(&mut job, 260);
    assert_eq!(observed.found.len(), 1, "{:?}", observed.found);
    assert_eq!(hosts(&observed.found[0]), ["n4", "n5", "n6", "n7"]);
    assert!(!observed.found[0].is_whole_host);
}

#[test]
fn the_rank_that_waits_least_is_the_late_one_and_bandwidth_blames_none() {
    let effect = |number, nodes: &[u64]| {
        let late = |node: &u64| if number >= 100 && *node == 9 { 900.0 } else { 0.0 };
        (1.0, std::array::from_fn(|at| late(&nodes[at])))
    };
    let observed = observe(&mut Job::new(&effect), 250);
    assert_eq!(observed.found.len(), 1, "{:?}", observed.found);
    let finding = &observed.found[0];
    assert_eq!(
        (finding.kind, hosts(finding), finding.communicators_in_all),
        (FindingKind::Straggler, vec!["n9"], 2)
    );
    assert!((0.2..0.4).contains(&finding.lower_by), "{finding:?}");
}

#[test]
fn a_state_that_was_written_and_read_after_any_step_finds_the_same() {
    let effect =
        |number, nodes: &[u64]| (if number >= 120 && nodes.contains(&6) { 1.0 / 0.9 } else { 1.0 }, ON_TIME);
    let expected = observe(&mut Job::new(&effect), 200).found;
    let mut job = Job::new(&effect);
    let mut observer = Observer::new(10);
    let mut found = Vec::new();
    for number in 0..200 {
        for record in job.step(number) {
            observer.take(&record);
        }
        let events = observer.advance();
        found.extend(events.into_iter().filter_map(|event| match event {
            Event::Found(finding) => Some(finding),
            Event::Over { .. } => None,
        }));
        if number % 7 == 0 {
            let text = serde_json::to_string(&observer).expect("JSON");
            observer = serde_json::from_str(&text).expect("the same");
            assert!(observer.restore());
        }
    }
    assert_eq!(found, expected);
}

#[test]
fn a_rank_without_records_is_not_judged_and_late_ranks_join() {
    let mut job = Job::new(&|_, _| (1.0, ON_TIME));
    let mut observer = Observer::new(10);
    for number in 0..200 {
        for record in job.step(number).iter().filter(|it| it.host != "n6" || number >= 120) {
            observer.take(record);
        }
        assert_eq!(observer.advance(), []);
        if number == 119 {
            let coverage = observer.coverage();
            assert_eq!(coverage.judged, 6, "its row and its column are not");
            assert!(coverage.incomplete_calls > 200);
        }
    }
    assert!(observer.coverage().whole_calls > 1300);
}

#[test]
fn a_rank_whose_records_stop_after_healthy_hours_is_judged_no_longer() {
    let mut job = Job::new(&|_, _| (1.0, ON_TIME));
    let mut observer = Observer::new(10);
    for number in 0..320 {
        for record in job.step(number).iter().filter(|it| it.host != "n6" || number < 240) {
            observer.take(record);
        }
        assert_eq!(observer.advance(), []);
        if number == 239 {
            assert_eq!((observer.coverage().judged, observer.coverage().unjudged), (8, 0));
        }
    }
    let coverage = observer.coverage();
    assert_eq!((coverage.judged, coverage.unjudged), (6, 2), "its row and its column are not");
}

#[test]
fn absurd_records_take_no_room_and_are_counted() {
    let mut observer = Observer::new(10);
    let base = record("0x1".into(), 1, 0, 1);
    for odd in [
        CallRecord { ranks: u64::MAX, ..base.clone() },
        CallRecord { time_us: None, ..base.clone() },
        CallRecord { at_us: Some(u64::MAX), ..base.clone() },
        CallRecord { is_p2p: true, ..base.clone() },
        CallRecord { bytes: u64::MAX, ..base.clone() },
    ] {
        observer.take(&odd);
    }
    observer.take(&base);
    observer.take(&CallRecord { pid: 8, ..base.clone() });
    observer.take(&CallRecord { ranks: 5, ..base });
    assert_eq!(observer.advance(), []);
    let coverage = observer.coverage();
    assert_eq!((coverage.records, coverage.no_room, coverage.untimed), (8, 1, 2));
    assert_eq!((coverage.sends, coverage.contradictory, coverage.communicators), (1, 2, 1));
}

/// Steps of communicators of four nodes each, by how long their calls take; none where one has no call.
fn peers(steps: u64, time: impl Fn(u64, u64) -> Option<f64>) -> Vec<Finding> {
    let (mut observer, mut draws, mut found) = (Observer::new(10), Draws(5), Vec::new());
    for number in 0..steps {
        for communicator in 0..12 {
            let Some(time) = time(communicator, number) else { continue };
            let time = time * (0.98 + 0.04 * draws.next());
            for rank in 0..SIDE {
                let record = record(format!("0xc{communicator}"), communicator * SIDE + rank, rank, number);
                observer.take(&CallRecord { time_us: Some(time + 60.0 * draws.next()), ..record });
            }
        }
        found.extend(observer.advance().into_iter().filter_map(|event| match event {
            Event::Found(finding) => Some(finding),
            Event::Over { .. } => None,
        }));
    }
    found
}

#[test]
fn faster_peers_that_join_and_slower_ones_that_end_blame_none_of_the_others() {
    let joins = |it, number| match it < 4 {
        true => Some(2500.0),
        false => (number >= 150).then_some(2000.0),
    };
    assert_eq!(peers(320, joins), []);
    let ends = |it, number| match it {
        0..3 => (number < 150).then_some(2500.0),
        3..5 => Some(2500.0),
        _ => Some(2000.0),
    };
    assert_eq!(peers(320, ends), []);
    let fast_ends = |it, number| match it < 5 {
        true => Some(2500.0),
        false => (number < 150).then_some(2000.0),
    };
    assert_eq!(peers(320, fast_ends), []);
    // Only the one that sank itself.
    let sinks = |it, number| match it < 4 {
        true => Some(if it == 1 && number >= 200 { 3000.0 } else { 2500.0 }),
        false => (number >= 150).then_some(2000.0),
    };
    let found = peers(320, sinks);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].kind, hosts(&found[0])), (FindingKind::Sinking, vec!["n4", "n5", "n6", "n7"]));
}

#[test]
fn the_root_of_an_operation_has_less_to_do_and_is_not_judged() {
    let mut observer = Observer::new(10);
    for number in 0..300 {
        for rank in 0..SIDE {
            let time_us = Some(60.0 + 20.0 * rank as f64);
            for operation in ["Broadcast", "Reduce", "Gather"] {
                let record = record("0x1".into(), rank, rank, number);
                observer.take(&CallRecord { time_us, operation: operation.into(), ..record });
            }
        }
        assert_eq!(observer.advance(), []);
    }
    let coverage = observer.coverage();
    assert_eq!((coverage.rooted, coverage.judged), (3 * 300 * SIDE, 0));
}

/// A row of four hosts of which one comes late from step 200 on, with what befalls a record.
fn row(change: impl Fn(u64, &mut CallRecord)) -> Observed {
    let effect = |number, nodes: &[u64]| {
        let late = |node: &u64| if number >= 200 && *node == 1 { 2000.0 } else { 0.0 };
        (1.0, std::array::from_fn(|at| late(&nodes[at])))
    };
    let mut job = Job { has_columns: false, ..Job::new(&effect) };
    let (mut observer, mut found, mut over) = (Observer::new(10), Vec::new(), Vec::new());
    for number in 0..360 {
        for mut record in job.step(number).into_iter().filter(|it| it.communicator == "0xa0") {
            change(number, &mut record);
            observer.take(&record);
        }
        for event in observer.advance() {
            match event {
                Event::Found(finding) => found.push(finding),
                Event::Over { number, .. } => over.push(number),
            }
        }
    }
    Observed { found, over, coverage: observer.coverage() }
}

#[test]
fn a_damaged_time_or_a_wrong_clock_of_one_of_four_hosts_hides_nothing() {
    let one_line = |number: u64, record: &mut CallRecord| {
        if number == 149 && record.rank == 3 {
            record.at_us = record.at_us.map(|at| at + 2_000_000_000_000_000);
        }
    };
    let clock = |number: u64, record: &mut CallRecord| {
        if number >= 150 && record.rank == 3 {
            record.at_us = record.at_us.map(|at| at + 5_400_000_000);
        }
    };
    for observed in [row(one_line), row(clock)] {
        assert_eq!(observed.found.len(), 1, "{:?}", observed.found);
        assert_eq!(hosts(&observed.found[0]), ["n1"]);
        assert_eq!((observed.over.as_slice(), observed.coverage.too_late), (&[][..], 0));
        assert_eq!(observed.coverage.last_s, EPOCH_S + 3590);
    }
    // Alone, one line proves nothing.
    let mut observer = Observer::new(10);
    let at = |s: u64| CallRecord { at_us: Some(s * 1_000_000), ..record("0x1".into(), 1, 1, s) };
    for s in [EPOCH_S, 2 * EPOCH_S] {
        observer.take(&at(s));
        observer.advance();
        assert_eq!(observer.coverage().last_s, EPOCH_S);
    }
}

#[test]
fn processes_of_jobs_that_ended_do_not_hide_that_a_whole_host_is_late() {
    let (mut observer, mut draws, mut found) = (Observer::new(10), Draws(9), Vec::new());
    for number in 0..420 {
        let run = (number / 140).min(2);
        for communicator in 0..4_u64 {
            for rank in 0..SIDE {
                let is_late = number >= 380 && rank == 1;
                let time_us = Some(if is_late { 2000.0 } else { 4000.0 } + 60.0 * draws.next());
                let id = format!("0x{run}{communicator}");
                let pid = 1000 * run + communicator;
                observer.take(&CallRecord { time_us, pid, ..record(id, rank, rank, number) });
            }
        }
        found.extend(observer.advance().into_iter().filter_map(|event| match event {
            Event::Found(finding) => Some(finding),
            Event::Over { .. } => None,
        }));
    }
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((hosts(&found[0]), found[0].is_whole_host), (vec!["n1"], true));
}

#[test]
fn a_number_of_ranks_that_is_only_claimed_takes_no_room_from_others() {
    let mut observer = Observer::new(10);
    for number in 0..20 {
        observer.take(&CallRecord { ranks: 262_144, ..record(format!("0xe{number}"), 99, 0, number) });
    }
    let mut job = Job::new(&|_, _| (1.0, ON_TIME));
    for number in 0..100 {
        job.step(number).iter().for_each(|record| observer.take(record));
        observer.advance();
    }
    let coverage = observer.coverage();
    assert_eq!((coverage.no_room, coverage.judged), (0, 8));
}
