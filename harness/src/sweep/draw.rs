//! Draws a cluster, a suite and faults from one seed. The suite and the inventory are text, so that reading them is
//! swept too. Faults are drawn with swarm weights: each seed has its own few kinds, which then come often.

use model::artefact::Launcher;
use model::fault::Fault;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::fmt::Write;

/// All that one seed draws.
pub struct Drawn {
    /// TOML text.
    pub inventory: String,
    /// TOML text.
    pub suite: String,
    /// As `--sim-fault` takes them.
    pub faults: Vec<String>,
    /// As `--max-fail`.
    pub max_fail: Option<u32>,
    /// As `--timeout`, in seconds.
    pub limit_s: Option<u64>,
}

pub(super) struct Dice(ChaCha8Rng);

impl Dice {
    pub(super) fn from_seed(seed: u64) -> Dice {
        Dice(ChaCha8Rng::seed_from_u64(seed))
    }

    /// From `low` to `high`, both included.
    fn number(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.next_u64() % (high - low + 1)
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.number(1, one_in) == 1
    }

    fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        let at = self.number(0, list.len() as u64 - 1) as usize;
        &list[at]
    }
}

struct Instance {
    name: &'static str,
    suite: &'static str,
    gpus: u64,
    nics: &'static [&'static str],
}

const INSTANCES: [Instance; 2] = [
    Instance {
        name: "sim-p5",
        suite: "p5",
        gpus: 8,
        nics: &["rdmap79s0", "rdmap96s0", "rdmap113s0", "rdmap201s0"],
    },
    Instance {
        name: "sim-p4de",
        suite: "p4de",
        gpus: 8,
        nics: &["rdmap16s27", "rdmap32s27", "rdmap144s27", "rdmap160s27"],
    },
];

const OPS: [&str; 9] = [
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "alltoall",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
    "sendrecv",
];

/// Draws an inventory, a suite and faults; the same for the same seed.
pub fn draw(seed: u64) -> Drawn {
    let mut dice = Dice::from_seed(seed);
    let instance = dice.pick(&INSTANCES);
    let nodes = dice.number(1, 6);
    let launcher = if dice.chance(3) { Launcher::Ssh } else { Launcher::Slurm };
    let inventory = format!(
        "kind = \"simulated\"\ninstance = \"{}\"\nnodes = \"n[1-{nodes}]\"\n[reach]\nvia = \"{launcher}\"\n",
        instance.name
    );
    let suite = suite(&mut dice, instance, nodes, launcher);
    let faults = faults(&mut dice, instance, nodes, launcher);
    let max_fail = dice.chance(12).then(|| dice.number(1, 3) as u32);
    let limit_s = dice.chance(12).then(|| dice.number(30, 900));
    Drawn { inventory, suite, faults, max_fail, limit_s }
}

/// Faults that show only to a probe, over the hours of a soak, or between groups of nodes, of which a random cluster has
/// none.
const NOT_DRAWN: [&str; 10] = [
    "gpu-missing",
    "gpu-busy",
    "driver-differs",
    "bad-fact",
    "link-slow",
    "throttles-after",
    "ecc-grows",
    "nvlink-replays",
    "nic-flaps",
    "driver-leaks",
];

fn faults(dice: &mut Dice, instance: &Instance, nodes: u64, launcher: Launcher) -> Vec<String> {
    // A third of the kinds, each with its own weight; some seeds have none at all.
    let mut weights: Vec<(&str, u64)> = Vec::new();
    for form in Fault::FORMS {
        let weight = if dice.chance(3) { dice.number(1, 5) } else { 0 };
        let kind = form.split(['=', '@']).next().unwrap_or(form);
        if weight > 0 && Fault::happens_on(kind, launcher) && !NOT_DRAWN.contains(&kind) {
            weights.push((form, weight));
        }
    }
    let all: u64 = weights.iter().map(|(_, weight)| weight).sum();
    if all == 0 || dice.chance(6) {
        return Vec::new();
    }
    let mut faults = Vec::new();
    for _ in 0..dice.number(1, 3) {
        let mut left = dice.number(1, all);
        let Some((form, _)) = weights.iter().find(|(_, weight)| {
            let hit = left <= *weight;
            left = left.saturating_sub(*weight);
            hit
        }) else {
            continue;
        };
        let fraction = *dice.pick(&["0.1", "0.4", "0.8", "0.99"]);
        let device = *dice.pick(instance.nics);
        let gpu = dice.number(0, instance.gpus - 1).to_string();
        let fault = form.replace("=F", &format!("={fraction}")).replace("@DEV", &format!("@{device}"));
        let fault = fault.replace("@N", &format!("@{gpu}")).replace("@RANK", &format!("@{gpu}"));
        let (ms, ppm) = (*dice.pick(&["0.2", "5", "50"]), *dice.pick(&["-50", "20"]));
        let fault = fault.replace("=MS", &format!("={ms}")).replace("=PPM", &format!("={ppm}"));
        let fault = fault.replace("=STEP", "=1");
        faults.push(format!("n{}:{fault}", dice.number(1, nodes)));
    }
    faults
}

fn suite(dice: &mut Dice, instance: &Instance, nodes: u64, launcher: Launcher) -> String {
    let mut text = format!("instance = \"{}\"\nabout = \"drawn\"\n", instance.suite);
    let cases = dice.number(1, 4);
    for at in 1..=cases {
        // Infallible: writing to a string.
        let _ = write!(text, "\n[[case]]\nname = \"c{at}\"\n");
        if at > 1 && dice.chance(5) {
            let _ = writeln!(text, "after = [\"c{}\"]", dice.number(1, at - 1));
        }
        if dice.chance(10) {
            text.push_str("expected_failure = \"drawn so\"\n");
        }
        if dice.chance(8) {
            let _ = writeln!(text, "requires = {{ min_nodes = {} }}", dice.number(1, nodes + 1));
        }
        if dice.chance(5) {
            let _ = writeln!(text, "limit_s = {}", dice.number(20, 400));
        }
        if dice.chance(10) {
            let _ = writeln!(text, "queue_limit_s = {}", dice.number(1, 300));
        }
        match dice.number(1, 10) {
            1 => flows(dice, &mut text),
            2 | 3 => command(dice, &mut text, launcher),
            4 => each_gpu(dice, &mut text),
            _ => collective(dice, &mut text, nodes),
        }
    }
    text
}

fn flows(dice: &mut Dice, text: &mut String) {
    text.push_str("placement = \"pairs\"\nworkload = { kind = \"nic-pairs\" }\nrecipes = [\"nic_flows\", \"efa_traffic\"]\n");
    let per = *dice.pick(&["nic", "node"]);
    let _ = write!(text, "[[case.assert]]\nmetric = \"nic.rate\"\nper = \"{per}\"\nat_least = \"9 GB/s\"\n");
    if dice.chance(2) {
        text.push_str("within_peers = \"5 %\"\n");
    }
}

fn command(dice: &mut Dice, text: &mut String, launcher: Launcher) {
    let programs = [
        "program = \"true\"",
        "program = \"false\"",
        "program = \"sleep\", args = [\"30\"]",
        "program = \"hostname\"",
        "program = \"echo\", args = [\"a b\", \"$HOME\"]",
        "program = \"python3\", args = [\"train.py\", \"--steps=3\", \"--layers=2\"]",
    ];
    let program = *dice.pick(&programs);
    let placement = *dice.pick(&["\"each\"", "\"all\"", "1"]);
    // Over ssh a command runs once on each node.
    let tasks = if launcher == Launcher::Ssh { 1 } else { dice.number(1, 8) };
    let _ = write!(
        text,
        "placement = {placement}\nworkload = {{ kind = \"command\", {program}, tasks_per_node = {tasks} }}\n\
         recipes = [\"command\"]\n[[case.assert]]\nmetric = \"command.exit_code\"\nequals = 0\n"
    );
}

fn each_gpu(dice: &mut Dice, text: &mut String) {
    let op = *dice.pick(&["all_reduce", "broadcast"]);
    let _ = write!(
        text,
        "placement = \"each gpu\"\nworkload = {{ kind = \"nccl-tests\", op = \"{op}\", from = \"64MiB\", to = \"1GiB\", factor = 4 }}\n\
         recipes = [\"nccl_tests\"]\n\
         [[case.assert]]\nmetric = \"nccl.algbw\"\nper = \"gpu\"\nsize = \"1GiB\"\nwithin_peers = \"10 %\"\n\
         [[case.assert]]\nmetric = \"nccl.wrong\"\nper = \"gpu\"\nequals = 0\n"
    );
}

fn collective(dice: &mut Dice, text: &mut String, nodes: u64) {
    let op = *dice.pick(&OPS);
    let number = dice.number(1, nodes).to_string();
    let placement = *dice.pick(&["\"each\"", "\"all\"", "\"pairs\"", "\"groups of 2\"", &number]);
    let (from, to) =
        *dice.pick(&[("64", "64MiB"), ("1MiB", "256MiB"), ("64MiB", "256MiB"), ("256MiB", "256MiB")]);
    let size = if to == "64MiB" { "64MiB" } else { "256MiB" };
    let iterations = dice.pick(&[1, 5, 20]);
    let check = !dice.chance(4);
    let profiled = dice.chance(2);
    let mut recipes = vec!["\"nccl_tests\""];
    let counted = dice.chance(2);
    if counted {
        recipes.push("\"efa_traffic\"");
    }
    if profiled {
        recipes.push("\"cuda_gpu_kern_sum\"");
    }
    let _ = write!(
        text,
        "placement = {placement}\nworkload = {{ kind = \"nccl-tests\", op = \"{op}\", from = \"{from}\", to = \"{to}\", factor = 4, \
         iterations = {iterations}, check = {check} }}\nrecipes = [{}]\n",
        recipes.join(", ")
    );
    if dice.chance(8) {
        text.push_str("counters = false\n");
    }
    if profiled {
        let ranks = *dice.pick(&["\"all\"", "\"one-per-node\"", "\"rank0\"", "\"every 3\"", "[0, 5]"]);
        let keep = *dice.pick(&["\"always\"", "\"on-failure\"", "1"]);
        let _ = write!(text, "[case.profile]\nranks = {ranks}\nkeep = {keep}\n");
        if dice.chance(4) {
            let _ = writeln!(text, "delay_s = {}", dice.pick(&[1, 7, 5000]));
        }
        let bound = *dice.pick(&["at_least = \"95 %\"", "at_most = \"50 %\""]);
        let _ = write!(text, "[[case.assert]]\nmetric = \"kernel.class_share\"\nclass = \"nccl\"\n{bound}\n");
    }
    let floor = *dice.pick(&["0.001 GB/s", "20 GB/s"]);
    let _ =
        write!(text, "[[case.assert]]\nmetric = \"nccl.busbw\"\nsize = \"{size}\"\nat_least = \"{floor}\"\n");
    if check {
        text.push_str("[[case.assert]]\nmetric = \"nccl.wrong\"\nequals = 0\n");
    }
    if counted {
        let (metric, bound) = *dice.pick(&[
            ("nic.present", "equals = 1"),
            ("nic.share", "at_least = 0.9"),
            ("nic.rx_drops", "at_most = 0"),
        ]);
        let per = *dice.pick(&["nic", "node"]);
        let _ = write!(text, "[[case.assert]]\nmetric = \"{metric}\"\nper = \"{per}\"\n{bound}\n");
    }
}
