//! The assertions of a case, one per subject: job, node, NIC or GPU, and size. Each gets exactly one verdict.

use super::Context;
use super::plan_size::NICS_ONE_BY_ONE;
use super::{baseline, predicted, workload};
use base::nodeset;
use base::size;
use config::baseline::BaselineKey;
use config::suite::{Assertion, Case, NcclTests, Per, Place, Placement, Suite};
use metric::op::Op;
use metric::{Dim, Dims, MetricSpec, Role};
use model::artefact::{PlannedAssertion, PlannedBaseline, PlannedBound, PlannedJob, PlannedSpread};
use recipes::recipe::nccl_shape;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) fn assertions(
    context: &Context,
    suite: &Suite,
    case: &Case,
    jobs: &[PlannedJob],
) -> Result<Vec<PlannedAssertion>, String> {
    let mut planned = Vec::new();
    let index = Index::new(jobs);
    for assertion in &case.assertions {
        let (_, metric) = context
            .catalogue
            .metric(&assertion.metric)
            .ok_or_else(|| format!("no recipe produces metric `{}`", assertion.metric))?;
        let one =
            One { context, suite, case, jobs, index: &index, assertion, metric, parts: OnceCell::new() };
        one.expand(&mut planned);
    }
    Ok(planned)
}

/// The assertions of a case that is not run: one each, so that the report says what was not asked.
pub(crate) fn plan_skipped(context: &Context, suite: &Suite, case: &Case) -> Vec<PlannedAssertion> {
    let nodes = nodeset::fold(&context.request.nodes);
    case.assertions
        .iter()
        .filter_map(|assertion| {
            let (_, metric) = context.catalogue.metric(&assertion.metric)?;
            let one = One {
                context,
                suite,
                case,
                jobs: &[],
                index: &Index::new(&[]),
                assertion,
                metric,
                parts: OnceCell::new(),
            };
            let sizes: Vec<String> = assertion.sizes.iter().map(|size| size::show(*size)).collect();
            let label =
                if sizes.is_empty() { one.label() } else { format!("{}/{}", one.label(), sizes.join("+")) };
            Some(one.planned(
                &label,
                &nodes,
                Dims::new(),
                Vec::new().into(),
                Vec::new(),
                nodes.clone(),
                None,
                None,
                None,
            ))
        })
        .collect()
}

/// What is asked of the jobs again and again, for hundreds of nodes.
struct Index<'a> {
    /// Each job's nodes, folded.
    folded: Vec<String>,
    /// How many jobs run on the very same nodes.
    alike: BTreeMap<String, usize>,
    of_node: BTreeMap<&'a str, Vec<usize>>,
}

impl<'a> Index<'a> {
    fn new(jobs: &'a [PlannedJob]) -> Index<'a> {
        let mut index = Index { folded: Vec::new(), alike: BTreeMap::new(), of_node: BTreeMap::new() };
        for (at, job) in jobs.iter().enumerate() {
            let folded = nodeset::fold(&job.nodes);
            *index.alike.entry(folded.clone()).or_default() += 1;
            index.folded.push(folded);
            for node in &job.nodes {
                index.of_node.entry(node).or_default().push(at);
            }
        }
        index
    }
}

struct One<'a> {
    context: &'a Context<'a>,
    suite: &'a Suite,
    case: &'a Case,
    jobs: &'a [PlannedJob],
    index: &'a Index<'a>,
    assertion: &'a Assertion,
    metric: &'a MetricSpec,
    /// Made once, for the first subject.
    parts: OnceCell<Arc<[Dims]>>,
}

impl One<'_> {
    fn expand(&self, planned: &mut Vec<PlannedAssertion>) {
        let nics = &self.context.inventory.instance.nics;
        let all_nics = nics.len() * self.context.request.nodes.len();
        match self.assertion.per {
            Per::Job => {
                for (at, job) in self.jobs.iter().enumerate() {
                    let subject = self.job_subject(at, job);
                    self.per_size(planned, &subject, Dims::new(), at, None, None);
                }
            }
            Per::Node => self.per_node(planned, &[None]),
            Per::Nic if all_nics > NICS_ONE_BY_ONE => self.per_node(planned, &[None]),
            Per::Nic => {
                let parts: Vec<Option<(Dim, String)>> =
                    nics.iter().map(|nic| Some((Dim::Nic, nic.clone()))).collect();
                self.per_node(planned, &parts);
            }
            Per::Gpu => {
                let gpus = self.context.inventory.instance.gpus;
                let parts: Vec<Option<(Dim, String)>> =
                    (0..gpus).map(|gpu| Some((Dim::Gpu, gpu.to_string()))).collect();
                self.per_node(planned, &parts);
            }
        }
    }

    /// One assertion per node and part: of each job that the node is in, or over all of them for the rate of a NIC.
    fn per_node(&self, planned: &mut Vec<PlannedAssertion>, parts: &[Option<(Dim, String)>]) {
        let over_all_jobs = self.metric.is(Role::OverRounds);
        for node in &self.context.request.nodes {
            let of_node = self.index.of_node.get(node.as_str()).cloned().unwrap_or_default();
            let jobs: Vec<Vec<usize>> = if over_all_jobs {
                vec![of_node]
            } else {
                of_node.into_iter().map(|job| vec![job]).collect()
            };
            let several = jobs.len() > 1;
            for jobs in jobs.iter().filter(|jobs| !jobs.is_empty()) {
                for part in parts {
                    let mut dims = Dims::new().with(Dim::Node, node.as_str());
                    let mut subject = node.clone();
                    let mut name = None;
                    if let Some((dim, part)) = part {
                        match part.parse::<u64>() {
                            Ok(number) if *dim == Dim::Gpu => dims.set(*dim, number),
                            _ => dims.set(*dim, part.as_str()),
                        }
                        let shown = if *dim == Dim::Gpu { format!("gpu{part}") } else { part.clone() };
                        subject = format!("{node}/{shown}");
                        name = Some(shown);
                    }
                    if several {
                        subject = format!("{subject}#{}", self.jobs[jobs[0]].name);
                    }
                    if over_all_jobs {
                        let names = jobs.iter().map(|job| self.jobs[*job].name.clone()).collect();
                        let parts = self.parts.get_or_init(|| self.parts_of_node(&dims).into()).clone();
                        let baseline = self.baseline(2, None);
                        planned.push(self.planned(
                            &self.label(),
                            &subject,
                            dims,
                            parts,
                            names,
                            node.clone(),
                            Some(node.clone()),
                            name,
                            baseline,
                        ));
                    } else {
                        self.per_size(planned, &subject, dims, jobs[0], Some(node.clone()), name);
                    }
                }
            }
        }
    }

    fn per_size(
        &self,
        planned: &mut Vec<PlannedAssertion>,
        subject: &str,
        dims: Dims,
        at: usize,
        node: Option<String>,
        part: Option<String>,
    ) {
        let job = &self.jobs[at];
        let mut dims = dims;
        if self.metric.dims.contains(&Dim::Op)
            && let Some(op) = self.op()
        {
            dims.set(Dim::Op, op.name());
        }
        if let Some((dim, name)) = &self.assertion.of {
            dims.set(*dim, name.as_str());
        }
        let has_place = self.metric.dims.contains(&Dim::Place);
        if has_place && let Some(place) = place_name(self.assertion.place) {
            dims.set(Dim::Place, place);
        }
        let nodes = node.clone().unwrap_or_else(|| self.index.folded[at].clone());
        let jobs = vec![job.name.clone()];
        let sizes: Vec<Option<u64>> = if self.assertion.sizes.is_empty() {
            vec![None]
        } else {
            self.assertion.sizes.iter().copied().map(Some).collect()
        };
        for size in sizes {
            let mut dims = dims.clone();
            let mut label = self.label();
            if let Some(size) = size {
                dims.set(Dim::SizeBytes, size);
                label = format!("{label}/{}", size::show(size));
            }
            let parts = self.parts.get_or_init(|| self.parts_of(job, &dims)).clone();
            let baseline = self.baseline(job.nodes.len() as u32, size);
            planned.push(self.planned(
                &label,
                subject,
                dims,
                parts,
                jobs.clone(),
                nodes.clone(),
                node.clone(),
                part.clone(),
                baseline,
            ));
        }
    }

    /// Every size of the sweep that an operation can print as itself. Below it, counts per rank are rounded to 16
    /// bytes, and several sizes collapse into one.
    fn sizes_asked(&self, job: &PlannedJob) -> Vec<u64> {
        let Some(tests) = self.case.workload.collective() else { return Vec::new() };
        let ranks = match self.case.placement {
            Placement::EachGpu => 1,
            _ => u64::from(job.ranks),
        };
        tests.sizes().into_iter().filter(|size| *size >= 16 * 4 * ranks).collect()
    }

    /// The parts that each job's assertion must have a number for. They are the same for every subject of one assertion
    /// of the suite, and are shared between them: hundreds of nodes ask for the same NICs.
    fn parts_of(&self, job: &PlannedJob, dims: &Dims) -> Arc<[Dims]> {
        let mut parts = self.parts_of_node(dims);
        if self.assertion.sizes.is_empty() && self.metric.dims.contains(&Dim::SizeBytes) {
            let sizes = self.sizes_asked(job);
            let sizes = nccl_shape::sizes_of(self.metric, sizes);
            parts = sizes.into_iter().map(|size| Dims::new().with(Dim::SizeBytes, size)).collect();
        }
        if self.metric.dims.contains(&Dim::Place) && self.assertion.place == Place::Both {
            parts = with_places(parts, self.places());
        }
        parts.into()
    }

    /// The parts of a whole node.
    fn parts_of_node(&self, dims: &Dims) -> Vec<Dims> {
        // What lies between the NICs of two nodes is of no single node.
        if dims.get(Dim::Node).is_none() && self.metric.dims.contains(&Dim::Node) {
            return Vec::new();
        }
        let open = |dim: Dim| self.metric.dims.contains(&dim) && dims.get(dim).is_none();
        if open(Dim::Nic) {
            let nics = self.context.inventory.instance.nics.iter();
            return nics.map(|nic| Dims::new().with(Dim::Nic, nic.as_str())).collect();
        }
        Vec::new()
    }

    fn op(&self) -> Option<Op> {
        self.case.workload.collective().map(|tests| tests.op)
    }

    /// alltoall and sendrecv of nccl-tests have no check in place, and print N/A there.
    fn places(&self) -> &'static [&'static str] {
        let tests = self.case.workload.collective();
        match tests.map_or(Place::Both, NcclTests::places) {
            Place::InPlace => &["in"],
            Place::OutOfPlace => &["out"],
            Place::Both => match tests.filter(|tests| tests.torch.is_none()).map(|tests| tests.op) {
                Some(Op::AllToAll | Op::SendRecv) if self.metric.checks.is_some() => &["out"],
                _ => &["out", "in"],
            },
        }
    }

    fn label(&self) -> String {
        match &self.assertion.name {
            Some(name) => name.clone(),
            None => {
                let metric = self.metric.short_name();
                match &self.assertion.of {
                    Some((_, name)) => format!("{metric}[{name}]"),
                    None => metric.to_owned(),
                }
            }
        }
    }

    fn job_subject(&self, at: usize, job: &PlannedJob) -> String {
        let folded = &self.index.folded[at];
        match self.index.alike.get(folded) {
            Some(1) => folded.clone(),
            _ => job.name.clone(),
        }
    }

    fn baseline(&self, nodes: u32, size: Option<u64>) -> Option<PlannedBaseline> {
        if !self.assertion.bound.baseline {
            return None;
        }
        let mut key = BaselineKey {
            op: self.op(),
            size_bytes: size,
            nodes: Some(nodes),
            placement: Some(self.case.placement.kind().to_owned()),
            kernel: self.assertion.of.as_ref().map(|(_, name)| name.clone()),
            ..BaselineKey::default()
        };
        let workload = workload::planner(&self.case.workload);
        workload.distinguish(&mut key, self.context.inventory, self.case, nodes);
        let instance = &self.context.inventory.instance;
        let found = baseline::look_up(self.context.baselines, &instance.name, &self.assertion.metric, &key);
        // The communicators of a split mask have a shape of their own.
        let is_split = self.case.workload.collective().is_some_and(|tests| tests.split_mask.is_some());
        Some(if is_split {
            found
        } else {
            predicted::or_predicted(found, instance, &self.assertion.metric, &key)
        })
    }

    #[allow(clippy::too_many_arguments)]
    fn planned(
        &self,
        label: &str,
        subject: &str,
        dims: Dims,
        parts: Arc<[Dims]>,
        jobs: Vec<String>,
        nodes: String,
        node: Option<String>,
        part: Option<String>,
        baseline: Option<PlannedBaseline>,
    ) -> PlannedAssertion {
        let bound = &self.assertion.bound;
        PlannedAssertion {
            name: format!("{}::{}::{label}@{subject}", self.suite.name, self.case.name),
            metric: self.assertion.metric.clone(),
            unit: self.metric.unit,
            better: self.metric.better,
            dims,
            parts,
            jobs,
            nodes,
            node,
            part,
            bound: PlannedBound {
                at_least: bound.at_least,
                at_most: bound.at_most,
                equals: bound.equals,
                within_peers: bound.within_peers,
                baseline,
                ceiling: None,
                spread: bound.spread.map(|relative| PlannedSpread { relative, ..PlannedSpread::default() }),
                warn: bound.warn,
            },
        }
    }
}

fn place_name(place: Place) -> Option<&'static str> {
    match place {
        Place::OutOfPlace => Some("out"),
        Place::InPlace => Some("in"),
        Place::Both => None,
    }
}

/// Each part once per place; or the places alone where there are no other parts.
fn with_places(parts: Vec<Dims>, places: &[&str]) -> Vec<Dims> {
    let parts = if parts.is_empty() { vec![Dims::new()] } else { parts };
    let placed = |part: Dims| places.iter().map(move |place| part.clone().with(Dim::Place, *place));
    parts.into_iter().flat_map(placed).collect()
}
