//! What a drained node is blamed for, by the stored verdicts of the run that had it drained, and whether a later run has
//! measured just that on it and found it good. A pass of other work shows nothing.

use super::past::{self, Run};
use crate::judge::{FEWEST_TO_NAME, few_peers};
use base::nodeset;
use base::text::count;
use model::artefact::{CaseVerdict, Culprit, LEFT_OUT, LeftOut, Status, Verdict};
use recipes::recipe::nccl_tests;
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use store::{is_foreign, is_inside};

/// One thing that a later run has to find good.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ground {
    /// A number that was bad, in a job of one node or of several: a metric may be of NVLink in the one and of NICs in the
    /// other.
    Number {
        /// As a recipe declares it.
        metric: String,
        /// `gpuN` or a device, where the number is of one.
        part: Option<String>,
        /// It is of several nodes together.
        spans: bool,
    },
    /// A case that failed without a number.
    Case {
        /// Stem of the suite's file.
        suite: String,
        /// Its name.
        case: String,
        /// Its rates were compared with each other: an exact number, such as that of wrong values, shows nothing of them.
        is_compared: bool,
    },
    /// An isolation that compared the bandwidth of sets of nodes.
    Isolated {
        /// Stem of the suite's file.
        suite: String,
        /// The case that it ran on them.
        case: String,
    },
    /// What the probe before the run found.
    Probe,
}

/// All that one node is blamed for.
#[derive(Debug, PartialEq, Eq)]
pub struct Grounds {
    /// The run that blames it.
    run: String,
    is_simulated: bool,
    /// The suites that show whether it is good again.
    suites: BTreeSet<String>,
    all: BTreeSet<Ground>,
}

/// The run that a reason of ours names: `[harness] CODE PART: EVIDENCE, run ID`, with ` (SIMULATED)` of a rehearsal.
pub fn run_of_reason(reason: &str) -> Option<&str> {
    let (_, run) = reason.strip_suffix(" (SIMULATED)").unwrap_or(reason).rsplit_once(", run ")?;
    (is_inside(run) && !run.contains(['/', ' '])).then_some(run)
}

/// The newest run that names the part which a reason given by hand has: `[harness] CODE PART`, as isolate prints it.
pub fn run_that_names(runs: &Path, inventory: &str, node: &str, reason: &str) -> Option<String> {
    let mut words = reason.split(' ').skip(2);
    let (Some(part), None) = (words.next(), words.next()) else { return None };
    let names = |culprit: &Culprit| matches!(culprit, Culprit::Culprit { node: own, part: of, .. } if own == node && of == part);
    let past = past::read(runs).ok()?;
    let run = past.runs.iter().rev().filter(|run| run.plan().inventory == inventory).find(|run| {
        let outcome = run.round.as_ref().and_then(|record| record.outcome.as_ref());
        run.culprits.iter().chain(outcome.iter().flat_map(|outcome| &outcome.culprits)).any(names)
    })?;
    Some(run.round.as_ref().map_or_else(|| run.id().to_owned(), |record| record.first.clone()))
}

/// What the run of that id blames the node for; an error where that is not known.
pub fn cases_that_blame(runs: &Path, id: &str, node: &str) -> Result<Grounds, String> {
    let run = open(runs, id)?;
    let mut of = &run;
    let explained;
    if let Some(record) = &run.round {
        let has = |left: &LeftOut| left.node == node;
        let asked = &record.asked;
        if asked.nodes.iter().any(|one| one == node) {
            // Alone, a round shows what it was made to try: its case is what compared the nodes.
            let suite = run.plan().suites.first().cloned().unwrap_or_default();
            let ground = Ground::Isolated { suite, case: asked.case.clone() };
            return Ok(Grounds::new(&run, [ground].into()));
        }
        if asked.left_out.iter().any(has) {
            return Ok(Grounds::new(&run, [Ground::Probe].into()));
        }
        // What an earlier run had named is no part of an isolation.
        let Some(earlier) = &asked.unexplained else { return Err(blames_not(id, node)) };
        explained = open(runs, earlier)?;
        of = &explained;
    }
    let all = from_run(of, node);
    match all.is_empty() {
        true => Err(blames_not(of.id(), node)),
        false => Ok(Grounds::new(of, all)),
    }
}

fn blames_not(id: &str, node: &str) -> String {
    format!("run {id} has no verdict against {node}")
}

fn open(runs: &Path, id: &str) -> Result<Run, String> {
    let folder = runs.join(id);
    if !is_inside(id) || id.contains('/') || !folder.is_dir() || folder.is_symlink() {
        return Err(format!("run {id} is gone"));
    }
    if is_foreign(&folder) {
        return Err(format!("run {id} came in a bundle"));
    }
    let run = past::run(&folder).map_err(|why| format!("run {id} cannot be read: {why}"))?;
    if run.id() != id {
        return Err(format!("run {id} is gone: its folder has run {}", run.id()));
    }
    // One verdict that cannot be read may be the one that blames it.
    match run.partial.first() {
        Some(why) if !run.is_settled => Err(format!("run {id} cannot be read: {why}")),
        _ => Ok(run),
    }
}

fn from_run(run: &Run, node: &str) -> BTreeSet<Ground> {
    let mut grounds = BTreeSet::new();
    if run.left_out().iter().any(|left| left.node == node && left.after.is_none()) {
        grounds.insert(Ground::Probe);
    }
    let mut is_named_by_case = false;
    for case in &run.cases {
        for culprit in &case.culprits {
            let Culprit::Culprit { node: own, part, .. } = culprit else { continue };
            if own == node {
                is_named_by_case = true;
                grounds.extend(from_case(case, node, part));
            }
        }
    }
    let is_of_node = |one: &Culprit| matches!(one, Culprit::Culprit { part, .. } if part == "node");
    let is_by_run = |one: &&Culprit| one.nodes().contains(&node) && (!is_named_by_case || is_of_node(one));
    let by_run: Vec<&Culprit> = run.culprits.iter().filter(is_by_run).collect();
    if !is_named_by_case || !by_run.is_empty() {
        grounds.extend(from_all_cases(run, node, &by_run));
    }
    grounds
}

/// By the numbers of the part, else of the node, else of its jobs.
fn from_case(case: &CaseVerdict, node: &str, part: &str) -> Vec<Ground> {
    let red: Vec<&Verdict> = red(case, node).collect();
    let is_of_part = |one: &&&Verdict| one.node.as_deref() == Some(node) && one.part.as_deref() == Some(part);
    let is_of_node = |one: &&&Verdict| one.node.as_deref() == Some(node);
    let of_part: Vec<&Verdict> = red.iter().filter(is_of_part).copied().collect();
    let of_node: Vec<&Verdict> = red.iter().filter(is_of_node).copied().collect();
    let chosen = [of_part, of_node, red].into_iter().find(|some| !some.is_empty()).unwrap_or_default();
    if chosen.is_empty() {
        // Its rates were compared with each other.
        return vec![from_whole_case(case, true)];
    }
    chosen.into_iter().map(|one| from_verdict(case, one)).collect()
}

/// By elimination: the number that the evidence begins with, else what has no number, else all that is red.
fn from_all_cases(run: &Run, node: &str, by_run: &[&Culprit]) -> Vec<Ground> {
    let all: Vec<(&CaseVerdict, &Verdict)> =
        run.cases.iter().flat_map(|case| red(case, node).map(|one| (&**case, one))).collect();
    let causes: BTreeSet<&str> = by_run.iter().map(|one| cause(one)).collect();
    let is_cause = |one: &&(&CaseVerdict, &Verdict)| causes.contains(one.1.metric.as_str());
    let has_no_number = |one: &&(&CaseVerdict, &Verdict)| one.1.observed.is_none();
    let mut chosen: Vec<_> = all.iter().filter(is_cause).copied().collect();
    let are_numbers = |cause: &&str| chosen.iter().any(|(_, one)| one.metric == *cause);
    if !causes.iter().all(are_numbers) {
        chosen.extend(all.iter().filter(has_no_number).copied());
    }
    if chosen.is_empty() {
        chosen = all;
    }
    chosen.into_iter().map(|(case, one)| from_verdict(case, one)).collect()
}

fn cause(culprit: &Culprit) -> &str {
    let (Culprit::Culprit { evidence, .. }
    | Culprit::Suspects { evidence, .. }
    | Culprit::Fleet { evidence }) = culprit;
    evidence.split(':').next().unwrap_or_default()
}

fn red<'a>(case: &'a CaseVerdict, node: &'a str) -> impl Iterator<Item = &'a Verdict> {
    let is_left_out = |one: &Verdict| one.cause.as_deref() == Some(LEFT_OUT);
    let all = case.verdicts.iter().filter(move |one| one.status.is_red() && !is_left_out(one));
    all.filter(move |one| is_about(one, node))
}

fn is_about(verdict: &Verdict, node: &str) -> bool {
    match &verdict.node {
        Some(own) => own == node,
        None => nodes(verdict).iter().any(|one| one == node),
    }
}

fn nodes(verdict: &Verdict) -> Vec<String> {
    nodeset::expand(&verdict.nodes).unwrap_or_default()
}

fn from_verdict(case: &CaseVerdict, verdict: &Verdict) -> Ground {
    match verdict.observed {
        Some(_) => Ground::Number {
            metric: verdict.metric.clone(),
            part: verdict.part.clone(),
            spans: nodes(verdict).len() > 1,
        },
        None => from_whole_case(case, false),
    }
}

fn from_whole_case(case: &CaseVerdict, is_compared: bool) -> Ground {
    Ground::Case { suite: case.suite.clone(), case: case.case.clone(), is_compared }
}

/// Measured and within accepted bounds: what has nothing to be compared with, or a provisional baseline only, is no pass.
fn is_judged_pass(verdict: &Verdict) -> bool {
    verdict.status == Status::Pass && !verdict.provisional && verdict.observed.is_some()
}

impl Ground {
    /// Whether it was bad beside its peers: a pass by few of them, within their wider bound, shows nothing of it.
    fn needs_peers(&self) -> bool {
        !matches!(self, Ground::Probe | Ground::Case { is_compared: false, .. })
    }

    fn is_shown_by(&self, case: &CaseVerdict, verdict: &Verdict) -> bool {
        let spans_nodes = || nodes(verdict).len() > 1;
        let is_of = |suite: &String, name: &String| (&case.suite, &case.case) == (suite, name);
        let is_exact = verdict.lower.is_some() && verdict.lower == verdict.upper;
        match self {
            Ground::Number { metric, part, spans } => {
                *metric == verdict.metric
                    && *spans == spans_nodes()
                    && (verdict.part.is_none() || verdict.part == *part)
            }
            Ground::Case { suite, case, is_compared } => is_of(suite, case) && !(*is_compared && is_exact),
            Ground::Isolated { suite, case } => {
                is_of(suite, case) && !is_exact || verdict.metric == nccl_tests::BUSBW.name && spans_nodes()
            }
            Ground::Probe => true,
        }
    }
}

impl Grounds {
    fn new(run: &Run, all: BTreeSet<Ground>) -> Grounds {
        let suites = run.plan().suites.iter().cloned().collect();
        Grounds { run: run.id().to_owned(), is_simulated: run.is_simulated(), suites, all }
    }

    /// Why a run that began after the node was drained, and passed, does not show that it is good again.
    pub fn check(&self, later: &Run, node: &str) -> Result<(), String> {
        if later.is_simulated() && !self.is_simulated {
            return Err("but was simulated".to_owned());
        }
        if let Some(why) = later.partial.first() {
            return Err(format!("but is incomplete: {why}"));
        }
        let passes: Vec<(&CaseVerdict, &Verdict)> = later
            .cases
            .iter()
            .flat_map(|case| case.verdicts.iter().map(|one| (&**case, one)))
            .filter(|(_, one)| is_judged_pass(one) && is_about(one, node))
            .collect();
        let open: Vec<&Ground> = self
            .all
            .iter()
            .filter(|ground| {
                let is_probed = || **ground != Ground::Probe || was_fit(later, node);
                let mut shown = passes.iter().filter(|(case, one)| ground.is_shown_by(case, one));
                let is_shown = shown.any(|(_, one)| !ground.needs_peers() || few_peers(one).is_none());
                !(is_shown && is_probed())
            })
            .collect();
        let Some(first) = open.first() else { return Ok(()) };
        let mut shown = passes.iter().filter(|(case, one)| first.is_shown_by(case, one));
        if let Some(peers) = shown.find_map(|(_, one)| few_peers(one).filter(|_| first.needs_peers())) {
            return Err(format!(
                "but compared {first} on it with {} only, and run {} blames it: {} are needed, or an accepted baseline",
                count(peers, "peer"),
                self.run,
                FEWEST_TO_NAME - 1
            ));
        }
        let suites = self.suites.iter().cloned().collect::<Vec<_>>().join(" --suite ");
        let more = open.len() - 1;
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        Err(format!(
            "but has no judged pass of {first}{more} on it, for which run {} blames it; give --suite {suites}",
            self.run
        ))
    }
}

fn was_fit(run: &Run, node: &str) -> bool {
    let probe = run.stored.probe().ok().flatten();
    let of_node = probe.as_ref().and_then(|probe| probe.nodes.iter().find(|one| one.node == node));
    of_node.is_some_and(|one| one.unprobed.is_none() && one.unfit.is_empty())
}

impl fmt::Display for Ground {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ground::Number { metric, part: Some(part), .. } => write!(f, "`{metric}` of {part}"),
            Ground::Number { metric, part: None, .. } => write!(f, "`{metric}`"),
            Ground::Case { suite, case, is_compared: false } => write!(f, "case `{case}` of {suite}"),
            Ground::Case { suite, case, is_compared: true } | Ground::Isolated { suite, case } => {
                write!(f, "a rate of case `{case}` of {suite}")
            }
            Ground::Probe => f.write_str("the probe"),
        }
    }
}
