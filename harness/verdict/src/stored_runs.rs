//! Stored runs for tests: written by `store`, read back as `history` and `compare` read them.

use crate::history::past::{self, Past, Run};
use metric::{Dim, Dims, Metric, Metrics};
use model::artefact::{
    Analysis, CaseOutcomes, CaseVerdict, CoverageSets, Culprit, Format, JobAnalysis, JobOutcome, LeftOut,
    Plan, Probe, ProbedNode, RunRecord, Status,
};
use recipes::recipe::nic_flows;
use std::path::Path;
use store::{Scratch, Store};

pub(crate) const NIC: &str = "rdmap79s0";
/// The first job of the fixture's plan.
pub(crate) const JOB: &str = "p5-001-p5-002";

/// A run of real nodes, before it is written: the fixture's plan with its one case, whole and green.
#[derive(Clone)]
pub(crate) struct Made {
    pub(crate) plan: Plan,
    pub(crate) case: CaseVerdict,
    pub(crate) rows: Vec<Metric>,
    pub(crate) analysis: Analysis,
    pub(crate) outcomes: Vec<JobOutcome>,
    pub(crate) record: Option<RunRecord>,
    /// What was read before it.
    pub(crate) probed: Vec<ProbedNode>,
}

impl Made {
    /// The `minute`th run of an hour; `values` are what its NIC reached, one row each.
    pub(crate) fn at(minute: usize, values: &[f64]) -> Made {
        let mut plan = fixture::plan();
        plan.run_id = format!("20261121T03{minute:02}00Z-nccl-p5-{minute:04}");
        plan.simulated = false;
        plan.sim_faults.clear();
        plan.cases.truncate(1);
        plan.cases[0].assertions.truncate(1);
        let mut case = fixture::case("nics");
        case.verdicts = vec![fixture::verdict("nics", "rate", "p5-001", NIC, Status::Pass)];
        let analysis = Analysis {
            format: Format,
            jobs: [(JOB.to_owned(), JobAnalysis::default())].into_iter().collect(),
        };
        Made {
            plan,
            case,
            rows: values.iter().enumerate().map(|(at, value)| row(at, *value)).collect(),
            analysis,
            outcomes: Vec::new(),
            record: Some(RunRecord {
                format: Format,
                started: "2026-03-01T08:00:00Z".into(),
                ended: Some("2026-03-01T08:02:00Z".into()),
                seconds: Some(120.0),
                stopped: None,
                signal_exit_code: None,
                artefacts: None,
            }),
            probed: Vec::new(),
        }
    }

    pub(crate) fn ending(mut self, status: Status) -> Made {
        self.case.verdicts = vec![fixture::verdict("nics", "rate", "p5-001", NIC, status)];
        self
    }

    pub(crate) fn naming(mut self, culprits: Vec<Culprit>) -> Made {
        self.case.culprits = culprits;
        self
    }

    pub(crate) fn leaving_out(mut self, left: LeftOut) -> Made {
        self.plan.left_out = vec![left];
        self
    }

    pub(crate) fn software(mut self, part: &str, version: &str) -> Made {
        self.case.versions = [(part.to_owned(), [version.to_owned()].into())].into();
        self
    }

    pub(crate) fn write(&self, runs: &Path) {
        let store = Store::create_in(runs, &self.plan.run_id).expect("a folder");
        let json = |name: &str, value: &dyn Fn(&Path)| value(&store.folder().join(name));
        json("plan.json", &|path| store.write_json(path, &self.plan).expect("a plan"));
        if let Some(record) = &self.record {
            json("run.json", &|path| store.write_json(path, record).expect("a record"));
        }
        if !self.probed.is_empty() {
            let probe = Probe {
                format: Format,
                harness: "0.1.0".into(),
                simulated: false,
                inventory: self.plan.inventory.clone(),
                instance: "p5".into(),
                at: "2026-03-01T08:00:00Z".into(),
                nodes: self.probed.clone(),
            };
            json("probe.json", &|path| store.write_json(path, &probe).expect("a probe"));
        }
        let case = store.case(&self.case.case);
        store.write_json(&case.join("verdict.json"), &self.case).expect("a verdict");
        store.write_json(&case.join("analysis.json"), &self.analysis).expect("an analysis");
        let outcomes =
            CaseOutcomes { format: Format, jobs: self.outcomes.clone(), coverage: CoverageSets::default() };
        store.write_json(&case.join("outcomes.json"), &outcomes).expect("outcomes");
        if !self.rows.is_empty() {
            let metrics = Metrics::from_rows(self.rows.clone());
            let bytes = recipes::parquet::to_parquet(&metrics).expect("metrics");
            store.write(&case.join("metrics.parquet"), &bytes).expect("metrics");
        }
    }
}

/// One number of the NIC; each repeat is a step of its own.
pub(crate) fn row(step: usize, value: f64) -> Metric {
    let dims = Dims::new()
        .with(Dim::Case, "nics")
        .with(Dim::Job, JOB)
        .with(Dim::Node, "p5-001")
        .with(Dim::Nic, NIC)
        .with(Dim::Direction, "tx")
        .with(Dim::Step, step as u64);
    nic_flows::NIC_RATE.of(dims, value)
}

/// All of these in one folder, which lives as long as the first value.
pub(crate) fn past(made: &[Made]) -> (Scratch, Past) {
    let folder = Scratch::new().expect("a folder");
    made.iter().for_each(|one| one.write(folder.path()));
    let past = past::read(folder.path()).expect("runs");
    (folder, past)
}

/// Exactly these, in their order.
pub(crate) fn runs(made: &[Made]) -> (Scratch, Vec<Run>) {
    let (folder, past) = past(made);
    assert_eq!((past.runs.len(), past.passed.as_slice()), (made.len(), [].as_slice()));
    (folder, past.runs)
}

pub(crate) fn culprit(node: &str, part: &str) -> Culprit {
    Culprit::Culprit {
        node: node.into(),
        part: part.into(),
        evidence: "4.1 GB/s, the others at 11.9".into(),
        code: Some("HRN-NIC-SLOW".into()),
    }
}
