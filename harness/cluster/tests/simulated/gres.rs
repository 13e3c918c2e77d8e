//! How a probe asks Slurm for GPUs, by the GRES that Slurm reports: on a cluster that has it, that has none, that has it on some
//! nodes, and that does not answer.

use cluster::probe::{Probing, gres, is_external, make};
use cluster::reach::{Answer, Command, Host, Reach, ReachError, Wait};
use cluster::run::Clock;
use config::inventory::{GresReport, Instances, Inventory};
use model::artefact::Probe;
use sim::SimulatedReach;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

fn inventory(reach: &str, world: &str) -> Inventory {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a root");
    let instances = Instances::load(home).expect("sound instances");
    let text = format!(
        "kind = \"simulated\"\ninstance = \"sim-p5\"\nnodes = \"p5-[001-004]\"\n[reach]\nvia = \"slurm\"\n{reach}\n\
         [world]\n{world}\n"
    );
    Inventory::read(&text, "inventory/x.toml", &instances).expect("good")
}

/// A simulated cluster whose `sinfo` is changed on its way.
struct Edited<'a> {
    of: &'a SimulatedReach,
    sinfo: &'a dyn Fn(String) -> Result<String, ReachError>,
    asked: RefCell<Vec<String>>,
}

impl Reach for Edited<'_> {
    fn exec<'a>(&'a self, host: &'a Host, command: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
        Box::pin(async move {
            self.asked.borrow_mut().push(command.argv.join(" "));
            let answer = self.of.exec(host, command).await?;
            match command.argv.first().is_some_and(|program| program == "sinfo") {
                true => Ok(Answer::ok((self.sinfo)(answer.stdout_text())?)),
                false => Ok(answer),
            }
        })
    }

    fn put<'a>(&'a self, host: &'a Host, path: &'a str, bytes: &'a [u8]) -> Wait<'a, Result<(), ReachError>> {
        self.of.put(host, path, bytes)
    }

    fn get<'a>(&'a self, host: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
        self.of.get(host, path)
    }
}

/// The report of Slurm alone, the probe, and the commands of the probe that start something on nodes.
fn probed(
    inventory: &Inventory,
    sinfo: &dyn Fn(String) -> Result<String, ReachError>,
) -> (GresReport, Probe, Vec<String>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let simulated = SimulatedReach::new(inventory, 3, Vec::new(), BTreeMap::new()).expect("a cluster");
        let reach = Edited { of: &simulated, sinfo, asked: RefCell::default() };
        let report = gres(&reach, inventory, &inventory.nodes).await;
        assert_eq!(reach.asked.take().len(), 1, "one question");
        let probing = Probing {
            inventory,
            nodes: &inventory.nodes,
            reach: &reach,
            clock: Clock::starting_at(SimulatedReach::epoch_unix_s(3) as f64),
            fanout: 8,
            name: "probe",
            allow_busy: false,
        };
        let made = make(&probing).await.expect("not interrupted");
        let starts = reach.asked.take().into_iter().filter(|line| line.starts_with("srun ")).collect();
        (report, made, starts)
    })
}

#[test]
fn a_probe_asks_for_gpus_by_gres_only_where_slurm_has_it() {
    for (reach, world, asks, gpus) in [
        ("", "", true, 8),
        ("gpus = \"auto\"", "gres = false", false, 0),
        ("", "gres = false", false, 0),
        ("gpus = \"none\"", "", false, 8),
    ] {
        let inventory = inventory(reach, world);
        let (report, made, starts) = probed(&inventory, &Ok);
        assert_eq!(starts.len(), 4, "{starts:?}");
        assert!(
            starts.iter().all(|line| line.contains("--gres=gpu:8") == asks),
            "{reach} {world}: {starts:?}"
        );
        for node in &made.nodes {
            assert_eq!((node.gres_gpus, &node.unprobed), (Some(gpus), &None), "{reach} {world}");
            assert!(node.unfit.is_empty(), "{reach} {world}: {:?}", node.unfit);
        }
        // A resumed acceptance decides by what is stored.
        assert_eq!(GresReport::from_probe(&made), report);
        let expected = if gpus == 0 { GresReport::NoNode } else { GresReport::EveryNode };
        assert_eq!(report, expected, "{reach} {world}");
    }
}

#[test]
fn a_slurm_without_gres_refuses_the_probe_that_the_inventory_has_ask_for_it() {
    let (_, made, starts) = probed(&inventory("gpus = \"gres\"", "gres = false"), &Ok);
    assert!(starts.iter().all(|line| line.contains("--gres=gpu:8")), "{starts:?}");
    for node in &made.nodes {
        let why = node.unprobed.as_deref().unwrap_or_default();
        assert!(why.contains("Invalid generic resource") && why.contains("gpus = \"none\""), "{why}");
    }
}

#[test]
fn a_node_without_the_gres_of_the_others_is_left_out_and_not_blamed() {
    let one_without = |text: String| -> Result<String, ReachError> {
        let lines = text.lines().map(|line| match line.starts_with("p5-002|") {
            true => line.replace("gpu:8", "(null)") + "\n",
            false => line.to_owned() + "\n",
        });
        Ok(lines.collect())
    };
    let open = inventory("", "");
    let (report, made, starts) = probed(&open, &one_without);
    assert_eq!(report, GresReport::NotOf(vec!["p5-002".to_owned()]));
    let unfit: Vec<(&str, &[String])> = made
        .nodes
        .iter()
        .filter(|node| !node.unfit.is_empty())
        .map(|node| (node.node.as_str(), node.unfit.as_slice()))
        .collect();
    let why = "no GRES: Slurm's GRES of it names no GPU, that of other nodes does; set `gpus` in `[reach]`";
    assert_eq!(unfit, [("p5-002", &[why.to_owned()][..])]);
    assert!(is_external(&made.nodes[1], &made, &open), "it is Slurm's configuration");
    // Nothing is started there that Slurm would refuse.
    assert!(starts.len() == 3 && starts.iter().all(|line| line.contains("--gres=gpu:8")), "{starts:?}");
    // Who says how GPUs are asked for has every node asked.
    let (_, made, starts) = probed(&inventory("gpus = \"gres\"", ""), &one_without);
    assert_eq!(starts.len(), 4);
    assert!(made.nodes.iter().all(|node| node.unfit.is_empty()));
}

#[test]
fn without_an_answer_gpus_are_asked_for_by_gres() {
    let refused = |_: String| -> Result<String, ReachError> {
        Err(ReachError::NoProgram { host: "this machine".to_owned(), program: "sinfo".to_owned() })
    };
    let odd = |_: String| -> Result<String, ReachError> { Ok("what\n|||\np5-001\np5-002|idle\n".to_owned()) };
    let (report, made, starts) = probed(&inventory("", ""), &refused);
    assert_eq!(report, GresReport::Unknown);
    assert!(starts.len() == 4 && starts.iter().all(|line| line.contains("--gres=gpu:8")), "{starts:?}");
    assert!(made.nodes.iter().all(|node| node.gres_gpus.is_none() && node.unfit.is_empty()));
    let (report, _, starts) = probed(&inventory("", ""), &odd);
    assert_eq!((report, starts.len()), (GresReport::Unknown, 4));
}
