//! A round as an ordinary run: what is to be tried becomes cases of a suite with their sets of nodes, and the numbers of
//! the stored run become answers. `next` decides which runs a round has.

use super::outcome::IsolationOutcome;
use super::trial::{Answer, Fleet, Found, Shape, Trial};
use config::diagnostic::Diagnostic;
use config::inventory::Inventory;
use config::suite::{
    Assertion, Bound, Case, Evidence, NcclTests, NicPairs, OnFailure, Per, Placement, Requires, Step, Suite,
    Workload,
};
use metric::op::Op;
use metric::{Dim, Metric, Metrics};
use model::artefact::{CaseJobs, Ended, Format, LeftOut};
use plan::Placed;
use recipes::recipe::{nccl_tests, nic_flows};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `isolation.json` of a round's folder: what it was for. The answers are in the run itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Version of this layout.
    pub format: Format<1>,
    /// The run of the first round, by which all of them are known.
    pub first: String,
    /// Counted from 1.
    pub round: usize,
    /// The same in all rounds of an isolation.
    pub asked: IsolationScope,
    /// Numbers the nodes in the order of `asked.nodes`.
    pub fleet: Fleet,
    /// In the order in which the round was decided.
    pub tried: Vec<Tried>,
    /// Of the last round, once the isolation has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<IsolationOutcome>,
}

/// The name of `Record` in a round's folder.
pub const RECORD: &str = "isolation.json";

/// The options of an isolation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IsolationScope {
    /// By name, or by path as given on the command line.
    pub suite: String,
    /// By name, or by path as given on the command line.
    pub inventory: String,
    /// The case that is run on sets of nodes.
    pub case: String,
    /// Names in the order of their numbers in `Fleet`.
    pub nodes: Vec<String>,
    /// Nodes that the probe before the first round left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// The names of topology groups, where they are known.
    pub groups: Vec<String>,
    /// Node-hours of all rounds; `None` for no limit.
    pub budget: Option<f64>,
    /// From `--seed`; each round derives its own from it.
    pub seed: u64,
    /// From `--sim-fault`, such as `p5-002:nic-slow=0.4@rdmap113s0`.
    pub sim_faults: Vec<String>,
    /// The Slurm reservation to run in, which overrides the inventory's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<String>,
    /// The run whose failure started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brought_about_by: Option<String>,
    /// The run that failed on these nodes, where what it shows does not explain all of its failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unexplained: Option<String>,
}

/// A trial, and the jobs that are it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// As it was decided, with node numbers.
    pub trial: Trial,
    /// The case of the round's run, such as `together-4` or `nics`.
    pub case: String,
    /// Names of its jobs in that case; two for NICs, one for each direction.
    pub jobs: Vec<String>,
}

/// What is run on sets of nodes, on each GPU and on each NIC: as the suite does it, at one size.
#[derive(Debug, Clone)]
pub struct Probes {
    suite: Suite,
    together: Case,
    gpus: Case,
    nics: Case,
    /// Of the case that is run on sets of nodes.
    pub case: String,
}

const GIB: u64 = 1 << 30;
const INSIDE: &str = "inside";
const GPUS: &str = "gpus";
const NICS: &str = "nics";

impl Probes {
    /// By the case of that name; else by the first that spans nodes, all_gather before others, since it loads every NIC.
    pub fn choose(suite: &Suite, inventory: &Inventory, named: Option<&str>) -> Result<Probes, String> {
        let is = |case: &Case, op: Op| case.workload.collective().is_some_and(|tests| tests.op == op);
        let mut able = suite.cases.iter().filter(|case| spans(case)).collect::<Vec<_>>();
        able.sort_by_key(|case| (case.profile.is_some(), !is(case, Op::AllGather), !is(case, Op::AllReduce)));
        let chosen = match named {
            None => able.first().copied(),
            Some(name) => able.iter().copied().find(|case| case.name == name),
        };
        let Some(case) = chosen else {
            let names: Vec<&str> = able.iter().map(|case| case.name.as_str()).collect();
            return Err(match named {
                Some(name) => format!(
                    "no case of nccl-tests over several nodes is named `{name}`; known: `{}`",
                    names.join("`, `")
                ),
                None => format!("suite `{}` has no case of nccl-tests over several nodes", suite.name),
            });
        };
        let Some(tests) = case.workload.collective() else { return Err("no nccl-tests".to_owned()) };
        let size = largest_asserted(case, tests);
        let together = bare(
            case,
            Workload::NcclTests(one_size(tests, size)),
            case.placement,
            vec![none_wrong(tests, size)],
        );
        let alone = suite.cases.iter().find(|case| case.placement == Placement::EachGpu);
        let gpus = match alone.and_then(|case| Some((case, case.workload.collective()?))) {
            Some((case, tests)) => {
                let size = largest_asserted(case, tests);
                let workload = Workload::NcclTests(one_size(tests, size));
                bare(case, workload, Placement::EachGpu, vec![none_wrong(tests, size)])
            }
            _ => {
                let tests = NcclTests { op: Op::AllReduce, root: None, torch: None, ..one_size(tests, GIB) };
                let none_wrong = none_wrong(&tests, GIB);
                bare(case, Workload::NcclTests(tests), Placement::EachGpu, vec![none_wrong])
            }
        };
        let flows = suite.cases.iter().find(|case| case.workload.flows().is_some());
        let mut nics = match flows {
            Some(flows) => bare(flows, flows.workload.clone(), Placement::Pairs, flows.assertions.clone()),
            None => {
                let pairs = NicPairs {
                    seconds: 5.0,
                    base_port: 18515,
                    message_bytes: 1 << 20,
                    memory: job::script::FlowMemory::Auto,
                };
                let half =
                    Bound { at_least: Some(inventory.instance.nic_line_rate_gb_s / 2.0), ..Bound::default() };
                let assertion = Assertion {
                    metric: nic_flows::NIC_RATE.name.into(),
                    sizes: Vec::new(),
                    per: Per::Nic,
                    bound: half,
                    ..none_wrong(tests, GIB)
                };
                bare(case, Workload::NicPairs(pairs), Placement::Pairs, vec![assertion])
            }
        };
        nics.recipes = vec![nic_flows::SPEC.name.to_owned()];
        Ok(Probes { suite: suite.clone(), case: case.name.clone(), together, gpus, nics })
    }

    /// The same, with an assertion of the rate on whole nodes against its baseline: used to look the bound up, never run.
    pub fn judged(&self) -> Probes {
        let mut judged = self.clone();
        let none_wrong = judged.together.assertions.first().cloned();
        judged.together.assertions.extend(none_wrong.map(|assertion| Assertion {
            metric: nccl_tests::BUSBW.name.to_string(),
            bound: Bound { baseline: true, ..Bound::default() },
            ..assertion
        }));
        judged
    }

    /// The suite of a round, where each of its cases is placed, and which jobs are which trial.
    pub fn round(
        &self,
        nodes: &[String],
        trials: &[Trial],
    ) -> (Suite, BTreeMap<String, Vec<Placed>>, Vec<Tried>) {
        let mut suite = Suite { cases: Vec::new(), ..self.suite.clone() };
        let mut sets: BTreeMap<String, Vec<Placed>> = BTreeMap::new();
        let mut tried = Vec::new();
        for (at, trial) in trials.iter().enumerate() {
            let names: Vec<String> =
                trial.nodes.iter().filter_map(|node| nodes.get(*node)).cloned().collect();
            let (name, case, placement) = match trial.shape {
                Shape::Together { nodes, across } => {
                    let name = format!("{}-{nodes}", if across { "across" } else { "together" });
                    (name, &self.together, Placement::Groups(nodes as u32))
                }
                Shape::Inside => (INSIDE.to_owned(), &self.together, Placement::Each),
                Shape::Gpus => (GPUS.to_owned(), &self.gpus, Placement::EachGpu),
                Shape::Nics => (NICS.to_owned(), &self.nics, Placement::Pairs),
            };
            let placed = match (trial.shape, names.as_slice()) {
                (Shape::Nics, [a, b]) => vec![
                    Placed { name: format!("{a}-to-{b}"), nodes: vec![a.clone(), b.clone()], round: 1 },
                    Placed { name: format!("{b}-to-{a}"), nodes: vec![b.clone(), a.clone()], round: 2 },
                ],
                _ => vec![Placed { name: format!("run-{:03}", at + 1), nodes: names, round: 1 }],
            };
            tried.push(Tried {
                trial: trial.clone(),
                case: name.clone(),
                jobs: placed.iter().map(|placed| placed.name.clone()).collect(),
            });
            sets.entry(name.clone()).or_default().extend(placed);
            if !suite.cases.iter().any(|known| known.name == name) {
                suite.cases.push(Case { name, placement, ..case.clone() });
            }
        }
        (suite, sets, tried)
    }
}

/// Whether a case can be run on any set of nodes, and shows by its rate whether they are good.
pub fn spans(case: &Case) -> bool {
    let several = !matches!(case.placement, Placement::Each | Placement::EachGpu | Placement::Nodes(1));
    case.workload.collective().is_some_and(|tests| several && tests.split_mask.is_none())
}

/// Why what a suite wants done where it is red cannot be.
pub fn lint(suite: &Suite) -> Option<Diagnostic> {
    let wants = matches!(suite.on_failure, OnFailure::Isolate { .. });
    (wants && !suite.cases.iter().any(spans)).then(|| {
        let why =
            "`on_failure = \"isolate\"` needs a case of nccl-tests over several nodes, and there is none";
        Diagnostic::in_file(&suite.file, why.to_owned())
            .suggest("add one whose `placement` is several nodes, or remove `on_failure`".to_owned())
    })
}

fn largest_asserted(case: &Case, tests: &NcclTests) -> u64 {
    let asserted = case.assertions.iter().flat_map(|assertion| &assertion.sizes).max().copied();
    let sizes = tests.sizes();
    asserted
        .filter(|size| sizes.contains(size))
        .or_else(|| sizes.iter().filter(|size| **size <= GIB).max().copied())
        .unwrap_or(tests.max_bytes)
}

fn one_size(tests: &NcclTests, size: u64) -> NcclTests {
    NcclTests { min_bytes: size, max_bytes: size, step: Step::Factor(2), check: true, ..tests.clone() }
}

fn none_wrong(tests: &NcclTests, size: u64) -> Assertion {
    Assertion {
        name: None,
        metric: nccl_tests::WRONG.name.to_string(),
        sizes: vec![size],
        place: tests.usual_place(),
        per: Per::Job,
        of: None,
        bound: Bound { equals: Some(0.0), ..Bound::default() },
        line: 0,
    }
}

/// The case without what is not for one of many small runs: profiles and other evidence, counters, preconditions,
/// expectations.
fn bare(case: &Case, workload: Workload, placement: Placement, assertions: Vec<Assertion>) -> Case {
    let mut bare = Case {
        about: "one of the runs that isolate a culprit".to_owned(),
        tags: Vec::new(),
        workload,
        placement,
        recipes: vec![nccl_tests::SPEC.name.to_owned()],
        profile: None,
        evidence: Evidence::default(),
        requires: Requires::default(),
        where_installed: false,
        after: Vec::new(),
        expected_failure: None,
        must_end: None,
        repeats: 1,
        retry_infrastructure: false,
        assertions,
        ..case.clone()
    };
    bare.counters.enabled = false;
    bare
}

/// What a stored round has of one case.
pub struct CaseRows {
    /// From `metrics.parquet` of the case.
    pub metrics: Metrics,
    /// From `job.json` of the case, with how each job ended.
    pub jobs: CaseJobs,
}

/// A value that stands for a complete failure: far below that of any slow part.
const NOTHING: f64 = 1e-6;

/// One answer for each trial, in their order; `Unknown` where the case is not in `stored`.
pub fn answers(
    tried: &[Tried],
    gpus: usize,
    nics: &[String],
    stored: &BTreeMap<String, CaseRows>,
) -> Vec<Answer> {
    tried
        .iter()
        .map(|tried| {
            let found = match stored.get(&tried.case) {
                Some(of_case) => found(tried, gpus, nics, of_case),
                None => Found::Unknown,
            };
            Answer { trial: tried.trial.clone(), found }
        })
        .collect()
}

fn found(tried: &Tried, gpus: usize, nics: &[String], of_case: &CaseRows) -> Found {
    let rows = |name: &str| {
        let of_job = |row: &&Metric| {
            let job = row.dims.word(Dim::Job);
            tried.jobs.iter().any(|name| Some(name.as_str()) == job)
        };
        let in_place = |row: &&Metric| row.dims.word(Dim::Place) == Some("in");
        let named = of_case.metrics.rows().iter().filter(of_job).filter(|row| *row.name == *name);
        let all: Vec<&Metric> = named.collect();
        let out_of_place: Vec<&Metric> = all.iter().copied().filter(|row| !in_place(row)).collect();
        // An operation may have no other placement.
        if out_of_place.is_empty() { all } else { out_of_place }
    };
    let values: Vec<Option<f64>> = match tried.trial.shape {
        Shape::Gpus => {
            let (rates, wrong) = (rows(&nccl_tests::ALGBW.name), rows(&nccl_tests::WRONG.name));
            (0..gpus as u64)
                .map(|gpu| {
                    let of = |row: &&&Metric| row.dims.number(Dim::Gpu) == Some(gpu);
                    let is_wrong = wrong.iter().filter(of).any(|row| row.value > 0.0);
                    let rate = rates.iter().find(of).map(|row| row.value);
                    if is_wrong { Some(NOTHING) } else { rate }
                })
                .collect()
        }
        Shape::Nics => {
            let rates = rows(&nic_flows::FLOW_RATE.name);
            let of_nic = |nic: &String| {
                let of: Vec<f64> = rates
                    .iter()
                    .filter(|row| row.dims.word(Dim::Nic) == Some(nic))
                    .map(|row| row.value)
                    .collect();
                // Both directions are measured, each from both ends; without one of them there is no number.
                (of.len() == 2 * tried.jobs.len()).then(|| of.into_iter().fold(f64::INFINITY, f64::min))
            };
            let values: Vec<Option<f64>> = nics.iter().map(of_nic).collect();
            let measured = values.iter().flatten().count();
            // Where the flows of its peers went well, one that did not connect is the NIC's own fault.
            match measured * 2 > values.len() {
                true => values.into_iter().map(|value| value.or(Some(NOTHING))).collect(),
                false => values,
            }
        }
        Shape::Together { .. } | Shape::Inside => {
            match rows(&nccl_tests::WRONG.name).iter().any(|row| row.value > 0.0) {
                true => return Found::Broke,
                false => match rows(&nccl_tests::BUSBW.name).as_slice() {
                    [row] => vec![Some(row.value)],
                    _ => vec![None],
                },
            }
        }
    };
    if values.iter().any(Option::is_some) {
        return Found::Values(values);
    }
    let mut ends = of_case.jobs.jobs.iter().filter(|job| tried.jobs.contains(&job.name)).map(|job| &job.end);
    match ends.any(broke) {
        true => Found::Broke,
        false => Found::Unknown,
    }
}

/// Whether the workload itself ended badly, rather than what carried it.
fn broke(end: &Ended) -> bool {
    match end {
        Ended::Exited { code } => *code != 0,
        Ended::Killed { .. }
        | Ended::TimeLimit { .. }
        | Ended::Stall { .. }
        | Ended::NodeFail
        | Ended::BootFail
        | Ended::OutOfMemory
        | Ended::HostUnreachable { .. } => true,
        _ => false,
    }
}
