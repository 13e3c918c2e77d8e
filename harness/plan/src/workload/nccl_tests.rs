//! Jobs of a collective: programs of nccl-tests, whose ranks are wired by MPI, one process on each node, or one program for
//! each GPU; or PyTorch, wired by torchrun.

use super::super::placement::Placed;
use super::super::samples;
use super::{Context, JobPlan, LAUNCH_S, PlannedStep, Results, WorkloadPlanner, training};
use config::baseline::BaselineKey;
use config::inventory::{Instance, Inventory};
use config::suite::training::Within;
use config::suite::{Backend, Case, NcclTests, Placement, Step as Sizes, TorchRunner};
use job::script::{Gpus, Run, Step, files};
use metric::SweepFacts;
use model::artefact::{ExpectedFile, FileKind, WorkloadFacts};
use std::collections::BTreeMap;

/// What it measures with where the suite says nothing.
const DTYPE: &str = "float";

/// What keeps GPUs of a node from each other but through the network: AWS's gpu-cluster-healthcheck
/// (awslabs/awsome-distributed-ai at 95b939cd) sets the first two; NVLink's switches are another way around, and so is
/// libfabric's own shared memory (stas00/ml-engineering, network/README.md).
const THROUGH_NICS: [(&str, &str); 4] = [
    ("NCCL_P2P_DISABLE", "1"),
    ("NCCL_SHM_DISABLE", "1"),
    ("NCCL_NVLS_ENABLE", "0"),
    ("FI_EFA_ENABLE_SHM_TRANSFER", "0"),
];

impl WorkloadPlanner for NcclTests {
    fn needs_mpi(&self, placement: Placement) -> bool {
        placement != Placement::EachGpu && self.torch.is_none()
    }

    fn image(&self) -> Option<&str> {
        match &self.torch.as_ref()?.container {
            Within::Image(image) => Some(image),
            Within::Inventory | Within::Host => None,
        }
    }

    fn has_flight_recorder(&self) -> bool {
        self.is_torch_on_gpus()
    }

    fn has_ras(&self) -> bool {
        self.torch.is_none() || self.is_torch_on_gpus()
    }

    fn variables(&self) -> Vec<(&'static str, String)> {
        let algorithm = self.algorithm.map(|algorithm| ("NCCL_ALGO", algorithm.nccl_name().to_owned()));
        let mask = self.split_mask.clone().map(|mask| ("NCCL_TESTS_SPLIT_MASK", mask));
        let apart = THROUGH_NICS.iter().filter(|_| self.through_nics);
        let apart = apart.map(|(name, value)| (*name, (*value).to_owned()));
        algorithm.into_iter().chain(mask).chain(apart).collect()
    }

    fn complete(&self, variables: &mut BTreeMap<String, String>) {
        leave_out_docker0(variables);
    }

    fn step(&self, site: JobPlan<'_>) -> Result<PlannedStep, String> {
        let gpus = site.inventory.instance.gpus;
        if let Some(torch) = &self.torch {
            return by_torch(self, torch, site);
        }
        if site.case.placement == Placement::EachGpu {
            let argv = arguments(site.inventory, self, 1);
            let step = Step::Gpus(Gpus { argv, gpus, container: site.container });
            return Ok(PlannedStep {
                step,
                tasks_per_node: 1,
                ranks: 1,
                helpers: vec!["gpus.sh"],
                follows_topology: false,
            });
        }
        // Without MPI to wire ranks together, one process drives all GPUs of its node.
        let is_spared =
            site.placed.nodes.len() == 1 && site.inventory.reach.planner().spares_mpi_on_one_node();
        let wiring = site.wiring.filter(|_| !is_spared);
        let (tasks_per_node, gpus_per_rank) = if wiring.is_some() { (gpus, 1) } else { (1, gpus) };
        let run = Run {
            argv: arguments(site.inventory, self, gpus_per_rank),
            tasks_per_node,
            mpi: wiring.map(str::to_owned),
            container: site.container,
            profile: None,
        };
        let ranks = gpus * site.placed.nodes.len() as u32;
        Ok(PlannedStep {
            step: Step::Run(run),
            tasks_per_node,
            ranks,
            helpers: Vec::new(),
            follows_topology: true,
        })
    }

    fn results(&self, inventory: &Inventory, case: &Case, placed: &Placed) -> Results {
        if case.placement != Placement::EachGpu {
            return Results::Printed(FileKind::NcclTests);
        }
        let mut expected = Vec::new();
        for node in &placed.nodes {
            for gpu in 0..inventory.instance.gpus {
                let printed = [
                    (files::gpu_out(gpu, node), FileKind::GpuNcclTests),
                    (files::gpu_err(gpu, node), FileKind::Stderr),
                ];
                expected.extend(printed.map(|(name, kind)| ExpectedFile {
                    name,
                    kind,
                    node: Some(node.clone()),
                    part: Some(format!("gpu{gpu}")),
                    rank: None,
                }));
            }
        }
        Results::Files(expected)
    }

    fn estimate_s(&self, instance: &Instance, placement: Placement, nodes: usize) -> f64 {
        let wire = instance.nic_line_rate_gb_s * instance.nics.len() as f64;
        let gb_s = match (placement, nodes) {
            // Each GPU by its part of the wire, and twice its bytes.
            _ if self.through_nics => wire / f64::from(instance.gpus.max(1)) * 0.5,
            (Placement::EachGpu, _) => instance.nvlink_gb_s,
            (_, 1) => instance.nvlink_gb_s * 0.5,
            _ => wire * 0.4,
        };
        // Out of place and in place, each warmed up and checked.
        let rounds = 2.0 * f64::from(self.iterations + self.warmup + 2);
        let one = |size: u64| 100e-6 + size as f64 / (gb_s * 1e9);
        LAUNCH_S + self.sizes().into_iter().map(|size| rounds * one(size)).sum::<f64>()
    }

    fn facts(&self, context: &Context, case: &Case) -> WorkloadFacts {
        let gpus = context.inventory.instance.gpus;
        WorkloadFacts::NcclTests {
            op: self.op,
            sizes: self.sizes(),
            // A split mask divides the ranks into groups by rules of its own: their size is then not declared.
            ranks_per_communicator: match (&case.placement, &self.split_mask) {
                (Placement::EachGpu, _) => Some(1),
                (_, Some(_)) => None,
                (Placement::All, None) => Some(context.request.nodes.len() as u32 * gpus),
                (Placement::Nodes(k) | Placement::Groups(k), None) => Some(k * gpus),
                (Placement::Pairs, None) => Some(2 * gpus),
                (Placement::Each, None) => Some(gpus),
            },
            checked: self.check,
            each_gpu: case.placement == Placement::EachGpu,
            by_torch: self.torch.is_some(),
            through_nics: self.through_nics,
            sweep: Some(SweepFacts {
                iterations: self.iterations.into(),
                warmup: self.warmup.into(),
                dtype: self.dtype.clone(),
                redop: reduces(self).then(|| self.redop.clone()),
                root: has_root(self).then(|| self.root.unwrap_or_default()),
                gpu: context.inventory.instance.gpu.clone(),
            }),
        }
    }

    fn distinguish(&self, key: &mut BaselineKey, inventory: &Inventory, case: &Case, nodes: u32) {
        let alone = case.placement == Placement::EachGpu;
        key.ranks = Some(if alone { 1 } else { nodes * inventory.instance.gpus });
        key.dtype = Some(self.dtype.clone()).filter(|dtype| dtype != DTYPE);
        key.algorithm = self.algorithm.map(|algorithm| algorithm.name().to_owned());
        key.protocol = self.environment.get("NCCL_PROTO").cloned();
        key.runner = match self.torch.as_ref().map(|torch| torch.backend) {
            Some(Backend::Nccl) => Some("torch".to_owned()),
            Some(Backend::Gloo) => Some("torch gloo".to_owned()),
            // On one node others are numbers of NVLink.
            None => self.through_nics.then(|| "nccl-tests through NICs".to_owned()),
        };
    }
}

fn reduces(tests: &NcclTests) -> bool {
    matches!(tests.op.name(), "all_reduce" | "reduce" | "reduce_scatter")
}

fn has_root(tests: &NcclTests) -> bool {
    matches!(tests.op.name(), "broadcast" | "reduce" | "gather" | "scatter")
}

/// One torchrun on each node, a process for each of its GPUs.
fn by_torch(tests: &NcclTests, torch: &TorchRunner, site: JobPlan<'_>) -> Result<PlannedStep, String> {
    let gpus = site.inventory.instance.gpus;
    let ranks = gpus * site.placed.nodes.len() as u32;
    let program = samples::torchrun(
        None,
        &site.inventory.paths.samples,
        training::is_in_image(&torch.container, &site),
    );
    let mut rest = vec![files::TORCH_COLLECTIVE.to_owned(), tests.op.name().to_owned()];
    rest.extend(sweep(tests));
    rest.push(format!("--backend={}", torch.backend.name()));
    let argv = training::torchrun(program, &site, (gpus, torch.port), rest);
    let container = training::container(&torch.container, site)?;
    let run = Run { argv, tasks_per_node: 1, mpi: None, container, profile: None };
    Ok(PlannedStep {
        step: Step::Run(run),
        tasks_per_node: 1,
        ranks,
        helpers: vec![files::TORCH_COLLECTIVE],
        // torchrun numbers nodes by their names.
        follows_topology: false,
    })
}

fn arguments(inventory: &Inventory, tests: &NcclTests, gpus_per_rank: u32) -> Vec<String> {
    let program = format!("{}/{}", inventory.paths.nccl_tests.trim_end_matches('/'), tests.op.program());
    let mut argv = vec![program];
    argv.extend(sweep(tests));
    argv.extend(["-g".to_owned(), gpus_per_rank.to_string()]);
    argv
}

/// The options of a sweep, which are the same for both.
fn sweep(tests: &NcclTests) -> Vec<String> {
    let mut argv = Vec::new();
    let mut option = |name: &str, value: String| argv.extend([name.to_owned(), value]);
    option("-b", tests.min_bytes.to_string());
    option("-e", tests.max_bytes.to_string());
    match tests.step {
        Sizes::Factor(factor) => option("-f", factor.to_string()),
        Sizes::Bytes(bytes) => option("-i", bytes.to_string()),
    }
    option("-n", tests.iterations.to_string());
    option("-w", tests.warmup.to_string());
    option("-d", tests.dtype.clone());
    if reduces(tests) {
        option("-o", tests.redop.clone());
    }
    if let Some(root) = tests.root {
        option("-r", root.to_string());
    }
    option("-c", u8::from(tests.check).to_string());
    argv
}

/// docker0 and HyperPod's veth_def_agent have the same address on every node: Open MPI would take them for a path to the
/// others and wait for ever. What a person chose stands.
fn leave_out_docker0(variables: &mut BTreeMap<String, String>) {
    let (exclude, interfaces) = EXCLUDED_INTERFACES;
    if !variables.contains_key("OMPI_MCA_btl_tcp_if_include") {
        variables.entry(exclude.to_owned()).or_insert_with(|| interfaces.to_owned());
    }
}

/// The variable that jobs of nccl-tests get where no interfaces were chosen, and its value.
pub const EXCLUDED_INTERFACES: (&str, &str) = ("OMPI_MCA_btl_tcp_if_exclude", "lo,docker0,veth_def_agent");
