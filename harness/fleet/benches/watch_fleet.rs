//! How soon the watch finds parts that fell, how often it is wrong, and what it costs, beside a weekly sweep and beside the same
//! checks with fixed thresholds: all on the same simulated years.
//!
//!     cargo bench -p fleet --bench watch_fleet [-- NODES [YEARS]]
//!
//! Without numbers 1,000 nodes for 10 years.

use fleet::{Event, Fleet, Reading, Terms};
use std::collections::BTreeMap;

const HOUR_S: u64 = 3600;
const DAY_S: u64 = 24 * HOUR_S;
const START_S: u64 = 1_800_000_000;
/// Of a check of a node.
const CHECK_S: u64 = 360;
const ROUND_S: u64 = 1800;
const BUDGET: f64 = 0.005;
/// Slurm's GraceTime: what a job of a user waits for where a check is in its way.
const GRACE_S: f64 = 30.0;
/// Means of the times in which a node is used, and is not: 85 % of it is used.
const BUSY_S: f64 = 8.0 * 3600.0;
const IDLE_S: f64 = 1.4 * 3600.0;
/// A fault that is not found is repaired after so long.
const MOST_S: u64 = 60 * DAY_S;
/// From one fault of a node to the next, at least, and on average beyond that.
const BETWEEN_S: u64 = 120 * DAY_S;
const MORE_S: f64 = 400.0 * 86_400.0;
const GPUS: usize = 8;
const NICS: usize = 32;
const KINDS: [(&str, f64); 3] = [("NIC at 90 %", 0.9), ("GPU at 95 %", 0.95), ("node at 80 %", 0.8)];

/// A xorshift generator: the same numbers everywhere.
#[derive(Clone)]
struct Noise(u64);

impl Noise {
    fn new(seed: u64) -> Noise {
        let mut noise = Noise(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        (0..8).for_each(|_| {
            noise.uniform();
        });
        noise
    }

    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// With a standard deviation of 1.
    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * self.uniform().ln()
    }
}

#[derive(Clone)]
struct Fault {
    kind: usize,
    part: usize,
    from_s: u64,
    /// When it is repaired: found and mended, or else after 60 days.
    to_s: u64,
    found_s: Option<u64>,
}

/// One node: its use, its lasting differences, its faults.
#[derive(Clone)]
struct Node {
    noise: Noise,
    /// By how much its numbers scatter, of 1 %.
    scatter: f64,
    is_idle: bool,
    changes_s: f64,
    /// Something else disturbs it until then, by this factor.
    disturbed: (f64, f64),
    next_disturbance_s: f64,
    offsets: Vec<f64>,
    faults: Vec<Fault>,
}

/// What a strategy did.
#[derive(Default)]
struct Outcome {
    false_alarms: usize,
    delays: [Vec<f64>; 3],
    missed: [usize; 3],
    checks: u64,
    preempted: u64,
    node_s: f64,
    delay_s: f64,
}

struct World {
    nodes: Vec<Node>,
    end_s: u64,
    names: Vec<String>,
    parts: Vec<String>,
    round: Noise,
}

impl World {
    /// Numbers of a node scatter by 1 % to `most` %.
    fn new(n: usize, years: f64, most: f64) -> World {
        let end_s = START_S + (years * 365.25 * DAY_S as f64) as u64;
        let nodes = (0..n).map(|at| {
            let mut noise = Noise::new(at as u64 + 11);
            let offsets = (0..GPUS + NICS + 2).map(|_| 0.007 * noise.normal()).collect();
            let mut faults = Vec::new();
            let mut from_s = START_S + BETWEEN_S / 2 + noise.exponential(MORE_S) as u64;
            while from_s + MOST_S < end_s {
                let kind = (noise.uniform() * 3.0) as usize % 3;
                let part = (noise.uniform() * 1000.0) as usize;
                faults.push(Fault { kind, part, from_s, to_s: from_s + MOST_S, found_s: None });
                from_s += BETWEEN_S + noise.exponential(MORE_S) as u64;
            }
            let share = Noise::new(at as u64 + 1_000_003).uniform();
            Node {
                scatter: 1.0 + (most - 1.0) * share,
                is_idle: false,
                changes_s: START_S as f64 + noise.exponential(BUSY_S),
                disturbed: (0.0, 1.0),
                next_disturbance_s: START_S as f64 + noise.exponential(200.0 * 3600.0),
                offsets,
                faults,
                noise,
            }
        });
        let parts =
            (0..GPUS).map(|gpu| format!("gpu{gpu}")).chain((0..NICS).map(|nic| format!("rdmap{nic}s0")));
        World {
            nodes: nodes.collect(),
            end_s,
            names: (0..n).map(|at| format!("n{at:05}")).collect(),
            parts: parts.collect(),
            round: Noise::new(5),
        }
    }

    /// Lets time pass on a node.
    fn advance(&mut self, at: usize, now_s: u64) {
        let node = &mut self.nodes[at];
        while node.changes_s <= now_s as f64 {
            node.is_idle = !node.is_idle;
            node.changes_s += node.noise.exponential(if node.is_idle { IDLE_S } else { BUSY_S });
        }
        // Half a percent of the time something else runs there, such as a scrub or a leftover process.
        while node.next_disturbance_s <= now_s as f64 {
            let begins_s = node.next_disturbance_s;
            let lasts_s = node.noise.exponential(3600.0);
            node.disturbed = (begins_s + lasts_s, 0.7 + 0.25 * node.noise.uniform());
            node.next_disturbance_s = begins_s + lasts_s + node.noise.exponential(200.0 * 3600.0);
        }
    }

    fn fault(&self, at: usize, now_s: u64) -> Option<usize> {
        self.nodes[at].faults.iter().position(|it| it.from_s <= now_s && now_s < it.to_s)
    }

    /// `common` is the same for all of a round.
    fn reading(&mut self, at: usize, now_s: u64, common: f64) -> Reading {
        let fault = self.fault(at, now_s).map(|it| self.nodes[at].faults[it].clone());
        let years = (now_s - START_S) as f64 / (365.25 * DAY_S as f64);
        // New software after two years and seven: for all.
        let step = if years > 7.0 {
            -0.05
        } else if years > 2.0 {
            -0.03
        } else {
            0.0
        };
        let node = &mut self.nodes[at];
        let mut of_node = common + step + 0.01 * node.scatter * node.noise.normal();
        if node.disturbed.0 > now_s as f64 {
            of_node += node.disturbed.1.ln();
        }
        if fault.as_ref().is_some_and(|it| it.kind == 2) {
            of_node += KINDS[2].1.ln();
        }
        let mut values = [BTreeMap::new(), BTreeMap::new()];
        for (part, name) in self.parts.iter().enumerate() {
            let is_nic = part >= GPUS;
            let mut value = of_node + node.offsets[part] + node.offsets[GPUS + NICS + usize::from(is_nic)];
            value += 0.01 * node.scatter * node.noise.normal();
            // One check of a part in 5,000 finds it in other company.
            if node.noise.uniform() < 0.0002 {
                value += (0.8 + 0.15 * node.noise.uniform()).ln();
            }
            value += match &fault {
                Some(it) if it.kind == 0 && is_nic && part - GPUS == it.part % NICS => KINDS[0].1.ln(),
                Some(it) if it.kind == 1 && !is_nic && part == it.part % GPUS => KINDS[1].1.ln(),
                _ => 0.0,
            };
            values[usize::from(is_nic)].insert(name.clone(), value);
        }
        let [gpus, nics] = values;
        let values = BTreeMap::from([("gpu".to_owned(), gpus), ("nic".to_owned(), nics)]);
        Reading { node: self.names[at].clone(), values, failures: Vec::new() }
    }

    /// Books an alarm; gives whether the node is mended for it, right or wrong.
    fn alarm(&mut self, at: usize, part: &str, now_s: u64, outcome: &mut Outcome) {
        let fault = self.fault(at, now_s);
        let Some(fault) = fault.map(|it| &mut self.nodes[at].faults[it]) else {
            outcome.false_alarms += 1;
            return;
        };
        let is_it = match fault.kind {
            0 => part == format!("rdmap{}s0", fault.part % NICS),
            1 => part == format!("gpu{}", fault.part % GPUS),
            _ => part == "node",
        };
        match is_it {
            true => {
                fault.found_s.get_or_insert(now_s);
                fault.to_s = now_s + DAY_S;
            }
            false => outcome.false_alarms += 1,
        }
    }

    fn finish(&self, outcome: &mut Outcome) {
        for fault in self.nodes.iter().flat_map(|node| &node.faults) {
            match fault.found_s {
                Some(found_s) => {
                    outcome.delays[fault.kind].push((found_s - fault.from_s) as f64 / DAY_S as f64)
                }
                None => outcome.missed[fault.kind] += 1,
            }
        }
        outcome.delays.iter_mut().for_each(|delays| delays.sort_by(f64::total_cmp));
    }
}

/// The parts that are lower than the others by this factor, and the node if it is.
fn below(reading: &Reading, usual: &mut BTreeMap<String, Vec<f64>>, factor: f64) -> Vec<String> {
    let mut found = Vec::new();
    for (test, parts) in &reading.values {
        let mut all: Vec<f64> = parts.values().copied().collect();
        all.sort_by(f64::total_cmp);
        let level = all[all.len() / 2];
        found.extend(
            parts.iter().filter(|(_, value)| **value < level + factor.ln()).map(|(part, _)| part.clone()),
        );
        // Compared with the nodes that were checked before it.
        let levels = usual.entry(test.clone()).or_default();
        if levels.len() >= 50 {
            let mut sorted = levels.clone();
            sorted.sort_by(f64::total_cmp);
            if level < sorted[sorted.len() / 2] + factor.ln() && !found.iter().any(|part| part == "node") {
                found.push("node".to_owned());
            }
        }
        levels.push(level);
        if levels.len() > 100 {
            levels.remove(0);
        }
    }
    found
}

/// Idle nodes by the rules of the watch; judged by them too, or by a fixed threshold in so many checks in a row.
fn watch(mut world: World, threshold: Option<(f64, u32)>) -> Outcome {
    let mut outcome = Outcome::default();
    let n = world.nodes.len();
    let terms = Terms { budget: BUDGET, nodes: n, check_s: CHECK_S as f64, spans: false, seed: 1 };
    let mut fleet = Fleet::default();
    fleet.inventory(START_S, world.names.iter().map(|name| (name.as_str(), None)));
    let index: BTreeMap<String, usize> = world.names.iter().cloned().zip(0..).collect();
    let mut usual = BTreeMap::new();
    let mut in_a_row: BTreeMap<(usize, String), u32> = BTreeMap::new();
    // A node with an alarm is out of the queue for a day, and comes back mended.
    let mut out: BTreeMap<usize, u64> = BTreeMap::new();
    let mut now_s = START_S;
    while now_s < world.end_s {
        now_s += ROUND_S;
        (0..n).for_each(|at| world.advance(at, now_s));
        let back: Vec<usize> = out.iter().filter(|(_, until)| **until <= now_s).map(|(at, _)| *at).collect();
        for at in back {
            out.remove(&at);
            let name = world.names[at].clone();
            fleet.queue(std::slice::from_ref(&name), &[]);
            fleet.queue(&[], std::slice::from_ref(&name));
        }
        let is_idle = |at: &usize| world.nodes[*at].is_idle && !out.contains_key(at);
        let idle: Vec<String> = (0..n).filter(is_idle).map(|at| world.names[at].clone()).collect();
        let chosen = fleet.choose(now_s, &idle, &terms, 1);
        let common = 0.005 * world.round.normal();
        let (mut readings, mut preempted) = (Vec::new(), Vec::new());
        for one in &chosen {
            let at = index[&one.node];
            let left_s = world.nodes[at].changes_s - now_s as f64;
            outcome.checks += 1;
            if left_s < CHECK_S as f64 {
                fleet.charge(now_s, 0, left_s + GRACE_S);
                outcome.node_s += left_s + GRACE_S;
                outcome.delay_s += GRACE_S;
                outcome.preempted += 1;
                preempted.push(one.node.clone());
                continue;
            }
            fleet.charge(now_s, 1, CHECK_S as f64);
            outcome.node_s += CHECK_S as f64;
            let mut reading = world.reading(at, now_s, common);
            if let Some((factor, needed)) = threshold {
                let mut found = below(&reading, &mut usual, factor);
                in_a_row.retain(|(node, part), _| *node != at || found.contains(part));
                found.retain(|part| {
                    let count = in_a_row.entry((at, part.clone())).or_default();
                    *count += 1;
                    *count >= needed
                });
                for part in &found {
                    world.alarm(at, part, now_s, &mut outcome);
                }
                if !found.is_empty() {
                    out.insert(at, now_s + DAY_S);
                }
                reading.values.clear();
            }
            readings.push(reading);
        }
        fleet.tried(now_s, &preempted);
        for event in fleet.take(now_s, &readings, &terms) {
            let Event::Alarm(fall) = event else { continue };
            let at = index[&fall.node];
            world.alarm(at, &fall.part, now_s, &mut outcome);
            out.insert(at, now_s + DAY_S);
        }
    }
    let bytes = serde_json::to_vec(&fleet).map_or(0, |bytes| bytes.len());
    if threshold.is_none() {
        println!("state of {n} nodes x {} parts: {:.1} MB", GPUS + NICS, bytes as f64 / 1e6);
    }
    world.finish(&mut outcome);
    outcome
}

/// Each node once a week, taken from its users.
fn sweep(mut world: World, factor: f64) -> Outcome {
    let mut outcome = Outcome::default();
    let n = world.nodes.len();
    let mut usual = BTreeMap::new();
    let mut now_s = START_S;
    while now_s < world.end_s {
        now_s += 7 * DAY_S;
        let common = 0.005 * world.round.normal();
        for at in 0..n {
            world.advance(at, now_s);
            outcome.checks += 1;
            outcome.node_s += CHECK_S as f64;
            // Somebody waits for the node while it is checked, as much as it is used.
            outcome.delay_s += CHECK_S as f64 * BUSY_S / (BUSY_S + IDLE_S);
            let reading = world.reading(at, now_s, common);
            for part in below(&reading, &mut usual, factor) {
                world.alarm(at, &part, now_s, &mut outcome);
            }
        }
    }
    world.finish(&mut outcome);
    outcome
}

fn main() {
    // `cargo test --benches` calls it too; a benchmark is not a test.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let mut numbers = std::env::args().skip(1).filter_map(|argument| argument.parse::<f64>().ok());
    let n = numbers.next().unwrap_or(1000.0) as usize;
    let years = numbers.next().unwrap_or(10.0);
    let node_years = n as f64 * years;
    println!("{n} nodes for {years} years, {BUDGET} of their time, a check takes {CHECK_S} s");
    println!(
        "| | false alarms per 1,000 nodes and year | checks per node and year | pushed aside | node-hours per node and year | delay of jobs per node and year |"
    );
    println!("|---|---|---|---|---|---|");
    let strategies: [(&str, &dyn Fn() -> Outcome); 7] = [
        ("watch-fleet", &|| watch(World::new(n, years, 1.0), None)),
        ("watch-fleet, nodes scatter by 1 to 3 %", &|| watch(World::new(n, years, 3.0), None)),
        ("the same checks, below 90 %", &|| watch(World::new(n, years, 1.0), Some((0.9, 1)))),
        ("the same checks, below 90 % twice in a row", &|| watch(World::new(n, years, 1.0), Some((0.9, 2)))),
        ("the same checks, below 96 % twice in a row", &|| watch(World::new(n, years, 1.0), Some((0.96, 2)))),
        ("weekly sweep, below 90 %", &|| sweep(World::new(n, years, 1.0), 0.9)),
        ("weekly sweep, below 96 %", &|| sweep(World::new(n, years, 1.0), 0.96)),
    ];
    let mut rows = Vec::new();
    for (name, run) in strategies {
        let outcome = run();
        println!(
            "| {name} | {:.2} | {:.0} | {:.1} % | {:.1} | {:.2} h |",
            outcome.false_alarms as f64 / node_years * 1000.0,
            outcome.checks as f64 / node_years,
            100.0 * outcome.preempted as f64 / outcome.checks.max(1) as f64,
            outcome.node_s / 3600.0 / node_years,
            outcome.delay_s / 3600.0 / node_years,
        );
        rows.push((name, outcome));
    }
    println!(
        "\n| days until it is named: median, 95 of 100; never within 60 | {} |",
        KINDS.map(|kind| kind.0).join(" | ")
    );
    println!("|---|---|---|---|");
    for (name, outcome) in rows {
        let cells = (0..3).map(|kind| {
            let (delays, missed) = (&outcome.delays[kind], outcome.missed[kind]);
            let all = delays.len() + missed;
            let at = |share: f64| {
                let place = (all as f64 * share) as usize;
                delays.get(place).map_or_else(|| "-".to_owned(), |days| format!("{days:.1}"))
            };
            format!("{}, {}; {:.1} % of {all}", at(0.5), at(0.95), 100.0 * missed as f64 / all.max(1) as f64)
        });
        println!("| {name} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
}
