//! Jobs of flows between the NICs of two nodes.

use super::super::flow_path;
use super::super::placement::{self, Placed};
use super::{Context, JobPlan, LAUNCH_S, PlannedStep, Results, WorkloadPlanner};
use config::inventory::{Instance, Inventory};
use config::suite::{Case, NicPairs, Placement};
use job::script::{Flows, Step, files};
use model::artefact::{ExpectedFile, FileKind, WorkloadFacts};

impl WorkloadPlanner for NicPairs {
    fn place(&self, how: Placement, nodes: &[String]) -> Result<Vec<Placed>, String> {
        match how {
            Placement::Pairs => Ok(placement::ring(nodes)),
            _ => Err("a `nic-pairs` workload needs `placement = \"pairs\"`".to_owned()),
        }
    }

    fn step(&self, site: JobPlan<'_>) -> Result<PlannedStep, String> {
        let [from, to] = site.placed.nodes.as_slice() else {
            return Err("a flow needs exactly two nodes".to_owned());
        };
        let inventory = site.inventory;
        // A write moves data from the client to the server; a read moves it the other way.
        let reads = inventory.instance.flow_op.name() == "read";
        let (client, server) = if reads { (to, from) } else { (from, to) };
        let flows = Flows {
            tool: inventory.nic_tool.name().to_owned(),
            op: inventory.instance.flow_op.name().to_owned(),
            server: server.clone(),
            client: client.clone(),
            base_port: self.base_port,
            message_bytes: self.message_bytes,
            iterations: iterations(inventory, self),
            limit_s: flow_limit_s(self),
            memory: self.memory,
            devices: inventory.instance.nics.clone(),
            gpus: flow_path::gpus(&inventory.instance),
        };
        Ok(PlannedStep {
            step: Step::Flows(flows),
            tasks_per_node: 1,
            ranks: 2,
            helpers: vec!["flows.sh"],
            follows_topology: false,
        })
    }

    fn results(&self, inventory: &Inventory, _: &Case, _: &Placed) -> Results {
        let of_device = |device: &String| ExpectedFile {
            name: files::flow_out(device),
            kind: FileKind::Flow,
            node: None,
            part: Some(device.clone()),
            rank: None,
        };
        Results::Files(inventory.instance.nics.iter().map(of_device).collect())
    }

    fn estimate_s(&self, instance: &Instance, _: Placement, _: usize) -> f64 {
        LAUNCH_S + (self.seconds + 5.0) * flow_path::turns(instance, self.memory)
    }

    fn facts(&self, context: &Context, _: &Case) -> WorkloadFacts {
        let (instance, tool) = (&context.inventory.instance, context.inventory.nic_tool.name());
        WorkloadFacts::NicPairs {
            tool: tool.to_owned(),
            op: instance.flow_op.name().to_owned(),
            memory: Some(self.memory),
            path: Some(flow_path::planned(instance, tool, self.memory)),
        }
    }
}

/// Enough messages for the flow to last its time at line rate.
fn iterations(inventory: &Inventory, pairs: &NicPairs) -> u64 {
    let bytes = inventory.instance.nic_line_rate_gb_s * 1e9 * pairs.seconds;
    (bytes / pairs.message_bytes as f64).ceil() as u64
}

/// Of each turn. A flow at a tenth of line rate is slow, and is still to be measured.
fn flow_limit_s(pairs: &NicPairs) -> u64 {
    (pairs.seconds * 10.0).ceil() as u64 + 60
}
