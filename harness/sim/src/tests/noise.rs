//! Noise as the world is set to have it: from run to run, from node to node, and a low value now and then.

use super::inventory;
use crate::active_faults::ActiveFaults;
use crate::cluster::Cluster;
use crate::model::Group;
use crate::options::Options;
use crate::work::{World, noise_of, table};
use config::inventory::WorldSettings;
use metric::op::Op;

fn cluster(world: WorldSettings, seed: u64) -> Cluster {
    let inventory = config::inventory::Inventory { world, ..inventory("p5", "p5-[001-400]") };
    Cluster::new(&inventory, seed, Vec::new(), Default::default()).expect("a cluster")
}

/// Out-of-place times of one node's job on 1 GiB and more.
fn times(cluster: &Cluster, job: &str, node: &str) -> Vec<f64> {
    let arguments = ["-b", "1G", "-e", "16G", "-f", "2", "-g", "1"].map(str::to_owned);
    let options = Options::read(Op::AllReduce, &arguments).expect("options");
    let group = Group { nodes: 1, ranks: 8, side_by_side: 1 };
    let world = World { nodes: 0..1, gpu: None, group, first: 0, per_node: 8, through_nics: false };
    let names = [node.to_owned()];
    let active_faults = ActiveFaults::new(cluster, "c", job, &names);
    let mut noise = noise_of(cluster, "c", job, "work");
    table(cluster, &active_faults, &options, world, &names, &mut noise)
        .rows
        .iter()
        .map(|row| row.out_us)
        .collect()
}

fn relative_deviation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares = values.iter().map(|value| (value / mean - 1.0).powi(2)).sum::<f64>();
    (squares / (values.len() - 1) as f64).sqrt()
}

#[test]
fn runs_and_nodes_vary_by_what_the_world_says() {
    let run = WorldSettings { run_noise: Some(0.02), ..WorldSettings::default() };
    let one = cluster(run, 1);
    let runs: Vec<f64> = (0..400).map(|job| times(&one, &format!("j{job}"), "p5-001")[0]).collect();
    assert!((0.018..0.022).contains(&relative_deviation(&runs)), "{}", relative_deviation(&runs));
    let node = WorldSettings { run_noise: Some(0.0), node_noise: Some(0.01), ..WorldSettings::default() };
    let one = cluster(node, 1);
    let name = |n: usize| format!("p5-{n:03}");
    let nodes: Vec<f64> = (1..=400).map(|n| times(&one, &format!("j{n}"), &name(n))[0]).collect();
    assert!((0.009..0.012).contains(&relative_deviation(&nodes)), "{}", relative_deviation(&nodes));
    // A node stays what it is.
    let again: Vec<f64> = (0..50).map(|job| times(&one, &format!("k{job}"), "p5-007")[0]).collect();
    assert!(relative_deviation(&again) < 0.005, "{}", relative_deviation(&again));
}

#[test]
fn one_value_in_so_many_is_low_by_a_tenth() {
    let world = WorldSettings { outlier_every: Some(50), ..WorldSettings::default() };
    let (plain, odd) = (cluster(WorldSettings::default(), 1), cluster(world, 1));
    let (mut low, mut all) = (0, 0);
    for job in 0..1000 {
        let job = format!("j{job}");
        for (was, is) in times(&plain, &job, "p5-001").iter().zip(times(&odd, &job, "p5-001")) {
            let left = was / is;
            assert!((left - 1.0).abs() < 1e-9 || (left - 0.9).abs() < 1e-9, "{left}");
            (low, all) = (low + u32::from(left < 0.95), all + 1);
        }
    }
    let share = f64::from(low) / f64::from(all);
    assert!((0.014..0.026).contains(&share), "{low} of {all}");
}
