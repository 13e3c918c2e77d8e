//! What a recipe declares of a metric before it computes one: all that planner, judge and reports know of it.

use crate::unit::{Better, Unit};
use crate::{Dim, Dims, Metric};
use std::borrow::Cow;
use std::mem;
use std::sync::Arc;

/// Whom a metric that is out of bounds speaks against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Blames {
    /// What a program does is the same on whatever nodes.
    #[default]
    NoNode,
    /// The parts that it names by itself, and no node by elimination.
    Part,
    /// Nodes, by elimination.
    Node,
    /// Nodes, where most that ran the same did well: what most show alike is the program's.
    OddNode,
}

/// The files that a metric is computed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Files {
    /// What the workload printed.
    Output,
    /// The captures of EFA counters.
    Counters,
    /// The output of flows between NICs.
    Flows,
    /// Reports of profilers.
    Reports,
    /// Records of NCCL's Inspector.
    Inspector,
    /// Readings of the state of GPUs.
    GpuState,
}

/// The part that a number out of bounds names by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// None.
    Nothing,
    /// The device at zero, which the instance has and the node does not list.
    Unlisted,
    /// The device at zero, which is listed.
    Unmoved,
    /// The GPU that ran alone.
    GpuAlone,
    /// The part of the assertion, or else this part of its node, with the code of a culprit.
    Coded(Option<&'static str>, &'static str),
    /// That of the first finding with this code, on whatever node.
    FirstFinding(&'static str),
    /// Those of all findings with this code on the assertion's node.
    Findings(&'static str),
}

/// The parts that a number judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Covers {
    /// All that took part in the job.
    All,
    /// NICs, and no GPU.
    Nics,
    /// All but NICs.
    NoNics,
    /// None: right data shows no rate of what computed and carried it.
    Nothing,
}

/// The hardware limit that a metric cannot exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// The bus bandwidth of the operation on that many ranks and nodes.
    BusBandwidth,
    /// The same as size over time.
    AlgorithmBandwidth,
    /// The time that the size takes at that bandwidth.
    Time,
    /// The line rate of a NIC.
    NicLine,
    /// The line rate of all NICs of a node.
    NodeLine,
    /// 1: it is either there or not.
    One,
}

/// The sizes of a sweep that a metric exists for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sizes {
    /// Each that the operation prints as itself.
    All,
    /// Those from 64 MiB up.
    Large,
    /// The same without the first, which has no smaller neighbour.
    LargeButFirst,
}

/// What else planner and judge have to know of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A rate that shows whether a node is good.
    Rate,
    /// Time-outs of a NIC's connections.
    Timeouts,
    /// NCCL uses a slower way than on other nodes.
    Downgrade,
    /// Its rows show which sizes and ranks were measured.
    ShowsSizes,
    /// Its rows show which NICs were measured.
    ShowsNics,
    /// Counted only where data leaves a node.
    Traffic,
    /// It compares numbers of one job with each other.
    ComparesWithin,
    /// It compares the ranks of a job with each other: within bounds, none keeps the others waiting.
    ComparesRanks,
    /// A share of time that grows where communication is slow, such as by one NIC: no rank is late then.
    ShowsCommunication,
    /// Judged over all rounds of a case at once.
    OverRounds,
    /// Of one flow between two NICs; what is judged over all rounds is made from these.
    Flow,
    /// A baseline of it holds for one training.
    OfTraining,
    /// Out of bounds it shows that sources of a run disagree: its numbers become no baseline.
    CrossCheck,
    /// The same, whenever it is not zero.
    Disagreement,
    /// Of a job of several nodes it shows what joins them: passing it vouches for them.
    BetweenNodes,
    /// Its name in an assertion is what stands behind the first dot.
    ShortName,
}

/// How much two runs of a healthy cluster may differ in a metric, beside what its unit declares as a fraction of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RunNoise {
    /// No more than that.
    Relative,
    /// One standard deviation in the metric's own unit. What deviates from zero varies by as much as the numbers that it
    /// was made from, however small it is itself.
    Absolute(f64),
    /// It describes one run, such as the offset of a clock: it is not compared with that of another.
    NotComparable,
}

impl RunNoise {
    /// Of a fraction of something measured: 2 % of that, as of a bandwidth.
    pub const FRACTION: RunNoise = RunNoise::Absolute(0.02);
}

/// What is reported where data came out wrong, and no assertion asks whether it came out right.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DataCheck {
    /// The value where all is well.
    pub sound: f64,
    /// A short code: `data-wrong`.
    pub cause: &'static str,
    /// What is wrong, as a sentence begins: `nccl-tests reports wrong data`.
    pub wrong: &'static str,
    /// What the suite should assert.
    pub next: &'static str,
}

/// What a recipe declares of a metric.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricSpec {
    /// Such as `nccl.busbw`.
    pub name: Cow<'static, str>,
    /// A phrase for the manual: what it measures, and how.
    pub about: Cow<'static, str>,
    /// Of every value.
    pub unit: Unit,
    /// Which direction is an improvement.
    pub better: Better,
    /// The files that it is computed from.
    pub files: Files,
    /// The dimensions of every row, beside `Case` and `Job`.
    pub dims: Cow<'static, [Dim]>,
    /// Whom the judge may blame where it is out of bounds.
    pub blames: Blames,
    /// The part that it names by itself.
    pub names: Names,
    /// The parts that it judges.
    pub covers: Covers,
    /// Codes of findings that explain a number out of bounds.
    pub explained_by: &'static [&'static str],
    /// A phrase of such an explanation, and the code of the culprit where it stands in the verdict.
    pub coded_by_phrase: Option<(&'static str, &'static str)>,
    /// What hardware allows.
    pub limit: Option<Limit>,
    /// Of a metric with dimension `SizeBytes`.
    pub sizes: Sizes,
    /// Between runs of a healthy cluster.
    pub run_noise: RunNoise,
    /// How far two numbers of the same thing may lie apart by the way they are taken alone, in the metric's unit: less
    /// than that separates nothing from its peers or from a baseline.
    pub resolution: f64,
    /// It shows whether data came out right, and must be asserted where data came out wrong.
    pub checks: Option<DataCheck>,
    /// Beside the above.
    pub roles: &'static [Role],
    /// What to do about a number out of bounds; `{nodes}` stands for those of the assertion.
    pub next: &'static str,
}

impl MetricSpec {
    /// The next step where no better one is known.
    pub const NEXT: &'static str = "look at the files of the evidence line";

    /// A metric of the whole job that blames no node.
    pub const fn new(
        name: &'static str,
        about: &'static str,
        unit: Unit,
        better: Better,
        files: Files,
    ) -> MetricSpec {
        MetricSpec {
            name: Cow::Borrowed(name),
            about: Cow::Borrowed(about),
            unit,
            better,
            files,
            dims: Cow::Borrowed(&[]),
            blames: Blames::NoNode,
            names: Names::Nothing,
            covers: Covers::All,
            explained_by: &[],
            coded_by_phrase: None,
            limit: None,
            sizes: Sizes::All,
            run_noise: RunNoise::Relative,
            resolution: 0.0,
            checks: None,
            roles: &[],
            next: MetricSpec::NEXT,
        }
    }

    /// The same declaration with a row for each of these.
    pub const fn per(mut self, dims: &'static [Dim]) -> MetricSpec {
        // An assignment would drop the old value, which constants cannot do.
        mem::forget(mem::replace(&mut self.dims, Cow::Borrowed(dims)));
        self
    }

    /// The same declaration with other blame.
    pub const fn blaming(mut self, blames: Blames) -> MetricSpec {
        self.blames = blames;
        self
    }

    /// The same declaration with a part that it names.
    pub const fn naming(mut self, names: Names) -> MetricSpec {
        self.names = names;
        self
    }

    /// The same declaration of other parts.
    pub const fn covering(mut self, covers: Covers) -> MetricSpec {
        self.covers = covers;
        self
    }

    /// The same declaration, explained by findings with these codes.
    pub const fn explained_by(mut self, codes: &'static [&'static str]) -> MetricSpec {
        self.explained_by = codes;
        self
    }

    /// The same declaration with another code of a culprit where an explanation has the phrase.
    pub const fn coding(mut self, phrase: &'static str, code: &'static str) -> MetricSpec {
        self.coded_by_phrase = Some((phrase, code));
        self
    }

    /// The same declaration with what hardware allows.
    pub const fn limited(mut self, limit: Limit) -> MetricSpec {
        self.limit = Some(limit);
        self
    }

    /// The same declaration for other sizes.
    pub const fn at(mut self, sizes: Sizes) -> MetricSpec {
        self.sizes = sizes;
        self
    }

    /// The same declaration of a check of data.
    pub const fn checking(mut self, check: DataCheck) -> MetricSpec {
        self.checks = Some(check);
        self
    }

    /// The same declaration with other noise between runs.
    pub const fn varying(mut self, noise: RunNoise) -> MetricSpec {
        self.run_noise = noise;
        self
    }

    /// The same declaration of a number that is taken no more exactly than that.
    pub const fn resolved_to(mut self, resolution: f64) -> MetricSpec {
        self.resolution = resolution;
        self
    }

    /// The same declaration with other roles.
    pub const fn with(mut self, roles: &'static [Role]) -> MetricSpec {
        self.roles = roles;
        self
    }

    /// The same declaration with another next step.
    pub const fn next(mut self, next: &'static str) -> MetricSpec {
        self.next = next;
        self
    }

    /// The part that a program's number speaks against, and the code of that culprit, by the message of the verdict.
    pub fn culprit_code(&self, message: &str) -> Option<(Option<&'static str>, &'static str)> {
        let Names::Coded(part, code) = self.names else { return None };
        let by_phrase = self.coded_by_phrase.filter(|(phrase, _)| message.contains(*phrase));
        Some((part, by_phrase.map_or(code, |(_, code)| code)))
    }

    /// Whether it has the role.
    pub fn is(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    /// Its name in the names of assertions.
    pub fn short_name(&self) -> &str {
        match self.name.split_once('.').filter(|_| self.is(Role::ShortName)) {
            Some((_, short)) => short,
            None => &self.name,
        }
    }

    /// A row of this metric.
    pub fn of(&self, dims: Dims, value: f64) -> Metric {
        Metric { name: Arc::from(&*self.name), dims, value, unit: self.unit, better: self.better }
    }
}
