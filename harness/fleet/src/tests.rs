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
        assert_eq!(site.fleet.hardware(&name(node), &ids(&name(node))), None);
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
    assert_eq!(site.fleet.hardware("n00", &others), Some(Event::Replaced { node: "n00".into(), parts }));
    assert_eq!(site.fleet.hardware("n00", &others), None);
    assert_eq!(past(&site, "n00"), first);
    let trends = |site: &Site, part: &str| {
        site.fleet.named("n00").and_then(|record| record.trends.get("copies")?.get(part).cloned())
    };
    assert!(trends(&site, "gpu3").is_none() && trends(&site, "gpu4").is_some());
    // The names of two machines are exchanged, by way of a new one.
    let replaced = |node: &str| Some(Event::Replaced { node: node.to_owned(), parts: Vec::new() });
    assert_eq!(site.fleet.hardware("n01", &ids("new")), replaced("n01"));
    assert_eq!(past(&site, "n01"), 0);
    assert_eq!(site.fleet.hardware("n00", &ids("n01")), replaced("n00"));
    assert_eq!(past(&site, "n00"), second);
    assert_eq!(site.fleet.hardware("n01", &others), replaced("n01"));
    assert_eq!(past(&site, "n01"), first);
    assert!(site.fleet.restore());
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
        assert!(other.fleet.restore());
    }
    assert_eq!(one.events, other.events);
    assert_eq!(one.alarms(), [pair("n03", "gpu5")]);
}

#[test]
fn a_state_that_contradicts_itself_is_seen() {
    let mut site = Site::new(4);
    site.run(24);
    let edits: [&dyn Fn(&mut serde_json::Value); 3] = [
        &|value| value["records"][1]["name"] = value["records"][0]["name"].clone(),
        &|value| value["of_nodes"]["copies"]["total"] = 7.into(),
        &|value| value["check_s"] = (-1.0).into(),
    ];
    for edit in edits {
        let mut value = serde_json::to_value(&site.fleet).expect("JSON");
        edit(&mut value);
        let mut fleet: Fleet = serde_json::from_value(value).expect("of that form");
        assert!(!fleet.restore());
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
