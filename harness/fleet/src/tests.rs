//! Fleets that are checked for simulated months.

use super::*;
use std::collections::BTreeMap;

const HOUR_S: u64 = 3600;
const START_S: u64 = 1_800_000_000;

/// Numbers that look drawn, about normal, with a standard deviation of 1.
struct Noise(u64);

impl Noise {
    fn draw(&mut self) -> f64 {
        let mut sum = 0.0;
        for _ in 0..12 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            sum += (self.0 >> 33) as f64 / f64::from(1_u32 << 31);
        }
        sum - 6.0
    }
}

struct Site {
    fleet: Fleet,
    noise: Noise,
    terms: Terms,
    now_s: u64,
    events: Vec<Event>,
    /// By node and part: logarithms that are added to what is measured.
    faults: BTreeMap<(String, String), f64>,
    /// Of all nodes.
    step: f64,
}

fn name(at: usize) -> String {
    format!("n{at:02}")
}

fn nodes(n: usize) -> Vec<String> {
    (0..n).map(name).collect()
}

impl Site {
    fn new(n: usize) -> Site {
        let terms = Terms { budget: 0.02, nodes: n, check_s: 600.0, spans: false, seed: 1 };
        let mut site = Site {
            fleet: Fleet::default(),
            noise: Noise(7),
            terms,
            now_s: START_S,
            events: Vec::new(),
            faults: BTreeMap::new(),
            step: 0.0,
        };
        site.fleet.inventory(START_S, nodes(n).iter().map(|node| (node.as_str(), Some("rack"))));
        site
    }

    fn idle(&self) -> Vec<String> {
        nodes(self.terms.nodes)
    }

    fn fault(&mut self, node: usize, part: &str, factor: f64) {
        self.faults.insert((name(node), part.to_owned()), factor.ln());
    }

    fn reading(&mut self, node: &str) -> Reading {
        let common = 0.01 * self.noise.draw() + self.step;
        let of =
            |part: &str| self.faults.get(&(node.to_owned(), part.to_owned())).copied().unwrap_or_default();
        let of_node = of("node");
        let gpus: BTreeMap<String, f64> =
            (0..8).map(|gpu| format!("gpu{gpu}")).map(|gpu| (gpu.clone(), of(&gpu))).collect();
        let values = gpus.into_iter().map(|(gpu, fault)| {
            let value = 4.0 + common + of_node + fault + 0.01 * self.noise.draw();
            (gpu, value)
        });
        let values = BTreeMap::from([("copies".to_owned(), values.collect())]);
        Reading { node: node.to_owned(), values, failures: Vec::new() }
    }

    fn run(&mut self, hours: u64) {
        for _ in 0..hours {
            self.now_s += HOUR_S;
            let chosen = self.fleet.choose(self.now_s, &self.idle(), &self.terms, 1);
            let readings: Vec<Reading> = chosen.iter().map(|one| self.reading(&one.node)).collect();
            if !readings.is_empty() {
                self.fleet.charge(self.now_s, readings.len(), 600.0 * readings.len() as f64);
            }
            let events = self.fleet.take(self.now_s, &readings, &self.terms);
            self.events.extend(events);
        }
    }

    fn alarms(&self) -> Vec<(String, String)> {
        let alarms = self.events.iter().filter_map(|event| match event {
            Event::Alarm(fall) => Some((fall.node.clone(), fall.part.clone())),
            _ => None,
        });
        alarms.collect()
    }
}

fn pair(node: &str, part: &str) -> (String, String) {
    (node.to_owned(), part.to_owned())
}

#[test]
fn a_healthy_fleet_raises_no_alarm_and_keeps_to_its_budget() {
    let mut site = Site::new(20);
    site.run(24 * 365);
    assert_eq!(site.alarms(), []);
    assert_eq!(count(&site.events, |event| matches!(event, Event::FleetFell { .. })), 0);
    let spent = site.fleet.spent.total / (20.0 * 365.0 * 86_400.0);
    assert!(spent <= 0.02 && spent > 0.014, "{spent}");
    let coverage = site.fleet.coverage(site.now_s, &site.terms);
    assert_eq!((coverage.recent, coverage.never, coverage.with_past), (20, 0, 20));
}

#[test]
fn a_gpu_that_loses_5_percent_is_the_only_alarm_and_its_end_is_reported() {
    let mut site = Site::new(20);
    site.run(24 * 30);
    site.fault(3, "gpu5", 0.95);
    site.run(24 * 7);
    assert_eq!(site.alarms(), [pair("n03", "gpu5")]);
    let lower_by = site.fleet.alarms().first().map(|fall| fall.lower_by).unwrap_or_default();
    assert!((lower_by - 0.05).abs() < 0.015, "{lower_by}");
    site.faults.clear();
    site.run(24 * 14);
    assert_eq!(site.fleet.alarms(), []);
    assert!(site.events.iter().any(|event| matches!(event, Event::Cleared(fall) if fall.part == "gpu5")));
    assert_eq!(site.alarms().len(), 1);
}

#[test]
fn a_node_that_loses_20_percent_is_named_and_its_parts_are_not() {
    let mut site = Site::new(20);
    site.run(24 * 30);
    site.fault(7, "node", 0.8);
    site.run(24 * 7);
    assert_eq!(site.alarms(), [pair("n07", "node")]);
}

#[test]
fn a_step_of_all_nodes_blames_none() {
    let mut site = Site::new(20);
    site.run(24 * 30);
    site.step = -0.1;
    site.run(24 * 60);
    assert_eq!(site.alarms(), []);
    site.fault(7, "node", 0.8);
    site.run(24 * 7);
    assert_eq!(site.alarms(), [pair("n07", "node")]);
}

#[test]
fn a_quarter_of_the_nodes_that_falls_is_reported_and_blames_none() {
    let mut site = Site::new(20);
    site.run(24 * 30);
    (0..5).for_each(|node| site.fault(node, "node", 0.8));
    site.run(24 * 7);
    let fell = site.events.iter().filter(|event| matches!(event, Event::FleetFell { .. })).count();
    assert_eq!(fell, 1, "{:?}", site.events);
    assert!(site.alarms().len() <= 2, "{:?}", site.alarms());
}

#[test]
fn one_bad_check_is_a_suspicion_that_passes() {
    let mut site = Site::new(20);
    site.run(24 * 30);
    site.fault(3, "gpu5", 0.5);
    let before = site.fleet.by_name.get("n03").and_then(|at| site.fleet.records[*at].last_s);
    while site.fleet.named("n03").and_then(|record| record.last_s) == before {
        site.run(1);
    }
    site.faults.clear();
    assert!(matches!(site.events.last(), Some(Event::Suspected(fall)) if fall.part == "gpu5"));
    site.run(24 * 7);
    assert_eq!(site.alarms(), []);
    assert_eq!(site.fleet.suspects(), []);
}

#[test]
fn what_the_suite_blames_three_times_in_a_row_is_an_alarm_and_twice_is_none() {
    let mut site = Site::new(4);
    let failure = Failure { part: "gpu3".to_owned(), code: "HRN-GPU-WRONG".to_owned() };
    let bad = Reading { node: "n01".to_owned(), failures: vec![failure], ..Reading::default() };
    let good = Reading { failures: Vec::new(), ..bad.clone() };
    let mut changes = Vec::new();
    for reading in [&bad, &bad, &good, &bad, &bad, &bad, &bad, &good] {
        site.now_s += 3 * HOUR_S;
        changes.extend(site.fleet.take(site.now_s, std::slice::from_ref(reading), &site.terms));
        // Checks that follow each other closely count once.
        changes.extend(site.fleet.take(site.now_s + 60, std::slice::from_ref(reading), &site.terms));
    }
    let fall = Fall { node: "n01".into(), part: "gpu3".into(), test: "HRN-GPU-WRONG".into(), lower_by: 0.0 };
    let expected = [
        Event::Suspected(fall.clone()),
        Event::Cleared(fall.clone()),
        Event::Suspected(fall.clone()),
        Event::Alarm(fall.clone()),
        Event::Cleared(fall),
    ];
    assert_eq!(changes, expected);
}

#[test]
fn suspects_come_first_with_controls_then_nodes_that_came_back_new_ones_and_the_oldest() {
    let mut site = Site::new(6);
    site.terms.budget = 1.0;
    site.run(24 * 3);
    site.fleet.inventory(site.now_s, nodes(7).iter().map(|node| (node.as_str(), None)));
    site.terms.nodes = 7;
    let failing = |site: &mut Site, node: usize| {
        let failure = Failure { part: "gpu3".to_owned(), code: "HRN-GPU-WRONG".to_owned() };
        let reading = Reading { failures: vec![failure], ..site.reading(&name(node)) };
        site.fleet.take(site.now_s, &[reading], &site.terms);
    };
    site.now_s += 3 * HOUR_S;
    failing(&mut site, 2);
    assert_eq!(site.fleet.queue(&[name(4)], &[]), []);
    site.now_s += 3 * HOUR_S;
    assert_eq!(site.fleet.queue(&[], &[name(4), name(5)]), []);
    let chosen = site.fleet.choose(site.now_s, &site.idle(), &site.terms, 1);
    let reasons: Vec<(&str, &Reason)> = chosen.iter().map(|one| (one.node.as_str(), &one.reason)).collect();
    assert_eq!(reasons[0], ("n02", &Reason::Suspect));
    assert_eq!(reasons.iter().filter(|(_, reason)| **reason == Reason::Control).count(), 2);
    assert!(reasons.iter().any(|(node, reason)| *node == "n06" && **reason == Reason::New), "{reasons:?}");
    assert!(reasons[3..].iter().all(|(_, reason)| **reason != Reason::Suspect));
    // A node that was tried in vain is left alone for a while, and one that is not idle is not chosen.
    site.fleet.tried(site.now_s, &[name(2)]);
    let idle = [name(2), name(0)];
    let chosen = site.fleet.choose(site.now_s, &idle, &site.terms, 1);
    assert_eq!(chosen.iter().map(|one| one.node.as_str()).collect::<Vec<_>>(), ["n00"]);
    assert_eq!(site.fleet.choose(site.now_s, &idle, &site.terms, 2), []);
}

#[test]
fn neighbours_of_a_fault_are_checked_before_their_time() {
    let mut site = Site::new(20);
    site.run(24 * 30);
    site.fault(3, "gpu5", 0.9);
    while site.alarms().is_empty() {
        site.run(1);
    }
    let chosen =
        site.fleet.choose(site.now_s + 2 * HOUR_S, &site.idle(), &Terms { budget: 1.0, ..site.terms }, 1);
    assert!(chosen.iter().any(|one| one.reason == Reason::Neighbour), "{chosen:?}");
}

#[test]
fn the_past_goes_with_the_hardware() {
    let mut site = Site::new(4);
    let ids = |machine: &str| -> BTreeMap<String, String> {
        (0..8).map(|gpu| (format!("gpu{gpu}"), format!("GPU-{machine}-{gpu}"))).collect()
    };
    for node in 0..4 {
        assert_eq!(site.fleet.hardware(&name(node), &ids(&name(node))), []);
    }
    site.terms.budget = 0.5;
    site.run(24 * 14);
    let past = |site: &Site, node: &str| site.fleet.named(node).map_or(0, |record| record.checks);
    let (first, second) = (past(&site, "n00"), past(&site, "n01"));
    assert!(first > 12);
    // A GPU is exchanged.
    let mut others = ids("n00");
    others.insert("gpu3".to_owned(), "GPU-new".to_owned());
    let parts = vec!["gpu3".to_owned()];
    assert_eq!(site.fleet.hardware("n00", &others), [Event::Replaced { node: "n00".into(), parts }]);
    assert_eq!(site.fleet.hardware("n00", &others), []);
    assert_eq!(past(&site, "n00"), first);
    let trends = |site: &Site, part: &str| {
        site.fleet.named("n00").and_then(|record| record.trends.get("copies")?.get(part).cloned())
    };
    assert!(trends(&site, "gpu3").is_none() && trends(&site, "gpu4").is_some());
    // The names of two machines are exchanged, by way of a new one.
    let replaced = |node: &str| vec![Event::Replaced { node: node.to_owned(), parts: Vec::new() }];
    assert_eq!(site.fleet.hardware("n01", &ids("new")), replaced("n01"));
    assert_eq!(past(&site, "n01"), 0);
    assert_eq!(site.fleet.hardware("n00", &ids("n01")), replaced("n00"));
    assert_eq!(past(&site, "n00"), second);
    assert_eq!(site.fleet.hardware("n01", &others), replaced("n01"));
    assert_eq!(past(&site, "n01"), first);
    assert!(site.fleet.restore(site.now_s));
}

#[test]
fn a_state_that_is_written_and_read_goes_on_as_one_that_was_not() {
    let (mut one, mut other) = (Site::new(8), Site::new(8));
    for site in [&mut one, &mut other] {
        site.run(24 * 20);
        site.fault(3, "gpu5", 0.93);
    }
    for _ in 0..10 {
        one.run(24);
        other.run(24);
        let text = serde_json::to_string(&other.fleet).expect("JSON");
        other.fleet = serde_json::from_str(&text).expect("the same");
        assert!(other.fleet.restore(other.now_s));
    }
    assert_eq!(one.events, other.events);
    assert_eq!(one.alarms(), [pair("n03", "gpu5")]);
}

#[test]
fn a_state_that_contradicts_itself_is_seen() {
    let mut site = Site::new(4);
    site.run(24);
    let later = site.now_s + 1;
    let edits: [&dyn Fn(&mut serde_json::Value); 5] = [
        &|value| value["records"][1]["last_s"] = later.into(),
        &|value| value["records"][1]["tried_s"] = later.into(),
        &|value| value["records"][1]["name"] = value["records"][0]["name"].clone(),
        &|value| value["of_nodes"]["copies"]["total"] = 7.into(),
        &|value| value["check_s"] = (-1.0).into(),
    ];
    for edit in edits {
        let mut value = serde_json::to_value(&site.fleet).expect("JSON");
        edit(&mut value);
        let mut fleet: Fleet = serde_json::from_value(value).expect("of that form");
        assert!(!fleet.restore(site.now_s));
    }
}

#[test]
fn numbers_that_are_none_are_no_measurement_of_a_test() {
    let mut site = Site::new(4);
    let values = BTreeMap::from([("copies".to_owned(), BTreeMap::from([("node".to_owned(), f64::NAN)]))]);
    let reading = Reading { node: name(1), values, failures: Vec::new() };
    assert_eq!(site.fleet.take(site.now_s, &[reading], &site.terms), []);
    assert!(site.fleet.named("n01").is_some_and(|record| record.trends.is_empty()));
}

fn failing(node: usize, part: &str, code: &str) -> Reading {
    let failure = Failure { part: part.to_owned(), code: code.to_owned() };
    Reading { node: name(node), failures: vec![failure], ..Reading::default() }
}

fn count(events: &[Event], is_it: impl Fn(&Event) -> bool) -> usize {
    events.iter().filter(|event| is_it(event)).count()
}

#[test]
fn nodes_that_the_suite_blames_one_after_another_are_many_and_none_is_blamed() {
    let mut site = Site::new(8);
    let slow = "HRN-NODE-SLOW";
    let mut events = Vec::new();
    for slowed in 1..=4 {
        for _ in 0..4 {
            site.now_s += 3 * HOUR_S;
            let readings: Vec<Reading> = (0..slowed).map(|node| failing(node, "node", slow)).collect();
            events.extend(site.fleet.take(site.now_s, &readings, &site.terms));
        }
    }
    assert_eq!(count(&events, |event| matches!(event, Event::Alarm(_))), 2, "{events:?}");
    assert_eq!(count(&events, |event| matches!(event, Event::Withdrawn(_))), 2);
    assert_eq!(count(&events, |event| matches!(event, Event::FleetFell { test, .. } if test == slow)), 1);
    assert_eq!(site.fleet.alarms(), []);
    assert_eq!(site.fleet.fell().collect::<Vec<_>>(), [slow]);
    // Two are mended: the others are theirs again.
    site.now_s += 3 * HOUR_S;
    let good = |node: usize| Reading { node: name(node), ..Reading::default() };
    let readings = [good(0), good(1), failing(2, "node", slow), failing(3, "node", slow)];
    site.fleet.take(site.now_s, &readings, &site.terms);
    assert_eq!(site.fleet.alarms().len(), 2);
    assert_eq!(site.fleet.fell().count(), 0);
}

#[test]
fn alarms_of_nodes_that_fell_one_after_another_are_withdrawn_and_do_not_come_back_when_they_recover() {
    let mut site = Site::new(8);
    site.terms.budget = 0.1;
    site.run(24 * 30);
    for node in 0..4 {
        site.fault(node, "node", 0.9);
        site.run(24 * 7);
    }
    assert_eq!(site.fleet.alarms(), []);
    let withdrawn = count(&site.events, |event| matches!(event, Event::Withdrawn(_)));
    assert_eq!(withdrawn, site.alarms().len(), "{:?}", site.events);
    assert!(withdrawn > 0);
    assert_eq!(count(&site.events, |event| matches!(event, Event::FleetFell { .. })), 1);
    let before = site.alarms().len();
    site.faults.clear();
    site.run(24 * 30);
    assert_eq!(site.alarms().len(), before);
    assert_eq!(site.fleet.fell().count(), 0);
}

#[test]
fn an_alarm_that_leaves_the_inventory_is_reported_and_returns_with_the_node() {
    let mut site = Site::new(4);
    site.terms.budget = 0.5;
    site.run(24 * 14);
    site.fault(1, "gpu5", 0.93);
    site.run(24 * 4);
    let alarms = site.fleet.alarms();
    assert_eq!(alarms.len(), 1, "{:?}", site.events);
    let past = site.fleet.named("n01").map(|record| record.checks);
    let inventory = |site: &mut Site, nodes: &[String]| {
        site.fleet.inventory(site.now_s, nodes.iter().map(|node| (node.as_str(), None)))
    };
    assert_eq!(inventory(&mut site, &[name(0), name(2)]), [Event::Left(alarms[0].clone())]);
    assert_eq!(site.fleet.alarms(), []);
    let text = serde_json::to_string(&site.fleet).expect("JSON");
    site.fleet = serde_json::from_str(&text).expect("the same");
    assert!(site.fleet.restore(site.now_s));
    assert_eq!(inventory(&mut site, &nodes(4)), [Event::Returned(alarms[0].clone())]);
    assert_eq!(site.fleet.alarms(), alarms);
    assert_eq!(site.fleet.named("n01").map(|record| record.checks), past);
    assert_eq!(inventory(&mut site, &nodes(4)), []);
}

#[test]
fn hardware_that_left_the_inventory_has_its_past_under_another_name() {
    let mut site = Site::new(4);
    let ids =
        BTreeMap::from([("gpu0".to_owned(), "GPU-a".to_owned()), ("gpu1".to_owned(), "GPU-b".to_owned())]);
    site.fleet.hardware("n01", &ids);
    site.terms.budget = 0.5;
    site.run(24 * 14);
    let past = site.fleet.named("n01").map(|record| record.checks);
    let others = [name(0), name(2), "x07".to_owned()];
    site.fleet.inventory(site.now_s, others.iter().map(|node| (node.as_str(), None)));
    let replaced = Event::Replaced { node: "x07".to_owned(), parts: Vec::new() };
    assert_eq!(site.fleet.hardware("x07", &ids), [replaced]);
    assert_eq!(site.fleet.named("x07").map(|record| record.checks), past);
    assert!(site.fleet.restore(site.now_s));
    assert_eq!(site.fleet.by_name.len(), 3);
}

#[test]
fn a_part_in_another_place_keeps_its_past_and_its_alarm() {
    let mut site = Site::new(4);
    let ids = |order: [usize; 4]| -> BTreeMap<String, String> {
        (0..4).map(|gpu| (format!("gpu{gpu}"), format!("GPU-{}", order[gpu]))).collect()
    };
    site.fleet.hardware("n01", &ids([0, 1, 2, 3]));
    for _ in 0..3 {
        site.now_s += 3 * HOUR_S;
        site.fleet.take(site.now_s, &[failing(1, "gpu1", "HRN-GPU-WRONG")], &site.terms);
    }
    let fall = |part: &str| Fall {
        node: name(1),
        part: part.to_owned(),
        test: "HRN-GPU-WRONG".to_owned(),
        lower_by: 0.0,
    };
    assert_eq!(site.fleet.alarms(), [fall("gpu1")]);
    // All are numbered otherwise: the machine is the same.
    let events = site.fleet.hardware("n01", &ids([1, 0, 3, 2]));
    assert_eq!(events, [Event::Left(fall("gpu1")), Event::Returned(fall("gpu0"))]);
    assert_eq!(site.fleet.alarms(), [fall("gpu0")]);
    // It is taken out: its alarm goes with it, and that is reported.
    let parts = vec!["gpu0".to_owned()];
    let events = site.fleet.hardware("n01", &ids([7, 0, 3, 2]));
    assert_eq!(events, [Event::Replaced { node: name(1), parts }, Event::Left(fall("gpu0"))]);
    assert_eq!(site.fleet.alarms(), []);
}

#[test]
fn nodes_that_give_no_measurement_do_not_take_the_budget_of_others() {
    let mut site = Site::new(8);
    site.terms.budget = 0.002;
    let dead = nodes(3);
    let mut tried = [0, 0];
    for _ in 0..24 * 30 {
        site.now_s += HOUR_S;
        let chosen = site.fleet.choose(site.now_s, &site.idle(), &site.terms, 1);
        let names: Vec<String> = chosen.into_iter().map(|one| one.node).collect();
        let (failed, good): (Vec<String>, Vec<String>) = names.into_iter().partition(|it| dead.contains(it));
        tried[0] += failed.len();
        tried[1] += good.len();
        let readings: Vec<Reading> = good.iter().map(|node| site.reading(node)).collect();
        site.fleet.charge(site.now_s, readings.len(), 600.0 * (readings.len() + failed.len()) as f64);
        site.fleet.tried(site.now_s, &failed);
        site.fleet.take(site.now_s, &readings, &site.terms);
    }
    assert!(tried[1] >= tried[0] && tried[0] >= 9, "{tried:?}");
    let coverage = site.fleet.coverage(site.now_s, &site.terms);
    assert_eq!((coverage.tried_in_vain, coverage.recent), (dead, 5));
}

#[test]
fn a_suspect_of_a_pair_is_checked_beside_others_where_none_has_a_past() {
    let mut site = Site::new(4);
    (site.terms.spans, site.terms.budget) = (true, 1.0);
    let readings: Vec<Reading> = (0..4)
        .map(|node| match node {
            1 => failing(1, "node", "HRN-NODE-HUNG"),
            _ => site.reading(&name(node)),
        })
        .collect();
    site.fleet.take(site.now_s, &readings, &site.terms);
    site.now_s += 3 * HOUR_S;
    let chosen = site.fleet.choose(site.now_s, &site.idle(), &site.terms, 2);
    assert_eq!(chosen.first().map(|one| (one.node.as_str(), &one.reason)), Some(("n01", &Reason::Suspect)));
    assert!(chosen.len() >= 2, "{chosen:?}");
    // Two suspects, and no other node: better together than never.
    site.fleet.take(site.now_s, &[failing(0, "node", "HRN-NODE-HUNG")], &site.terms);
    site.now_s += 3 * HOUR_S;
    assert_eq!(site.fleet.choose(site.now_s, &nodes(2), &site.terms, 2).len(), 2);
}

#[test]
fn a_clock_that_was_ahead_and_is_set_back_stops_no_check() {
    let mut site = Site::new(4);
    site.terms.budget = 0.5;
    site.now_s += 30 * 24 * HOUR_S;
    site.run(24);
    site.fleet.tried(site.now_s, &[name(1)]);
    let now_s = START_S + 24 * HOUR_S;
    assert_eq!(site.fleet.choose(now_s, &site.idle(), &site.terms, 1), []);
    assert!(!site.fleet.clone().restore(now_s));
    site.fleet.set_back(now_s);
    assert!(site.fleet.restore(now_s));
    assert_eq!(site.fleet.choose(now_s + 3 * HOUR_S, &site.idle(), &site.terms, 1).len(), 4);
}

#[test]
fn what_the_suite_fails_on_without_a_culprit_is_reported_until_it_passes() {
    let mut site = Site::new(4);
    let why = |nodes: &[usize]| nodes.iter().map(|node| (name(*node), "all alike".to_owned())).collect();
    let failed = Event::Unattributed { nodes: nodes(2), why: "all alike".to_owned() };
    assert_eq!(site.fleet.unattributed(&nodes(2), &why(&[0, 1])), [failed]);
    assert_eq!(site.fleet.unattributed(&nodes(2), &why(&[0, 1])), []);
    assert_eq!(site.fleet.unattributed(&[name(2), name(3)], &why(&[])), []);
    assert_eq!(site.fleet.unattributed(&[name(0)], &why(&[])), []);
    assert_eq!(site.fleet.unattributed_nodes(), [name(1)]);
    assert_eq!(site.fleet.unattributed(&[name(1)], &why(&[])), [Event::Attributed]);
}

#[test]
fn a_suspect_does_not_enter_the_ranks_by_which_it_is_judged_and_a_healthy_one_does_later() {
    let mut site = Site::new(4);
    site.terms.budget = 0.5;
    site.run(24 * 14);
    let total = |site: &Site| site.fleet.of_parts["copies"].count();
    // Only that part is measured and suspected: the ranks stay as they are.
    site.fault(1, "gpu5", 0.95);
    let mut apart = 0;
    for _ in 0..8 {
        let before = total(&site);
        site.now_s += 3 * HOUR_S;
        let reading = site.reading(&name(1));
        site.fleet.take(site.now_s, &[reading], &site.terms);
        if !site.fleet.suspects().is_empty() {
            assert_eq!(total(&site) - before, 7);
            apart += 1;
        }
        if site.fleet.alarms().is_empty() && apart == 2 {
            break;
        }
    }
    assert!(apart > 0);
    site.faults.clear();
    for _ in 0..12 {
        site.now_s += 3 * HOUR_S;
        let reading = site.reading(&name(1));
        site.fleet.take(site.now_s, &[reading], &site.terms);
    }
    assert_eq!(site.fleet.suspects(), []);
}
