//! Compares two runs: first whether they are comparable, then the verdicts that changed and the numbers that differ by
//! more than their noise. What is in one run only is listed, and never counts as the same.

mod effect;
mod groups;
mod numbers;
mod parts;
#[cfg(test)]
mod runs_tests;
#[cfg(test)]
mod tests;
mod verdicts;

pub use effect::{Culprits, Effect, Named};
pub use groups::{NumberGroup, VerdictGroup};
pub use numbers::{Beyond, Changed, Numbers};
pub use parts::PartChanged;
pub use verdicts::{Turned, Verdicts};

use crate::fingerprint::{Difference, differences};
use crate::history::past::{Run, RunKind};
use base::nodeset;
use model::artefact::Format;
use model::exit_code;
use serde::Serialize;

/// What `harness compare` shows, and prints as JSON.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// Version of this layout.
    pub format: Format<1>,
    /// The run given first, which the other is compared with.
    pub a: Side,
    /// The run given second, which is judged.
    pub b: Side,
    /// Why the runs are not comparable. Empty where they are.
    pub apart: Vec<String>,
    /// The software and settings that differ, or are known in one run only.
    pub software: Vec<Difference>,
    /// The parts that either run names, and what they cost.
    pub culprits: Culprits,
    /// The verdicts that changed, by metric and cause: the worse ones first.
    pub verdict_groups: Vec<VerdictGroup>,
    /// The numbers that changed, by metric: the worse ones first, and of those the judged ones.
    pub number_groups: Vec<NumberGroup>,
    /// The assertions of both runs, by name.
    pub verdicts: Verdicts,
    /// The numbers of both runs, by metric and key.
    pub metrics: Numbers,
    /// The result, which sets the exit code.
    pub outcome: Outcome,
    /// What made it so.
    pub because: Vec<String>,
}

/// One of the two runs.
#[derive(Debug, Serialize)]
pub struct Side {
    /// The run's id.
    pub run: String,
    /// When it was made, `2026-11-21 03:10:00`.
    pub made: String,
    /// Names of its suites.
    pub suites: Vec<String>,
    /// The inventory's name.
    pub inventory: String,
    /// The instance type's name.
    pub instance: String,
    /// All nodes of its plan, folded: `p5-[001-004]`.
    pub nodes: String,
    /// Whether all or some of it is simulated.
    pub simulated: bool,
    /// `whole`, or why it is incomplete; and whether it is simulated, with how many faults.
    pub state: String,
}

/// How the second run compares with the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Or better.
    Same,
    /// A verdict or number of the second run is worse by more than its noise.
    Worse,
    /// Not comparable, or something is missing or unknown.
    #[serde(rename = "could-not-tell")]
    Inconclusive,
}

impl Outcome {
    /// The exit code of `harness compare`: 0, 1 or 3.
    pub fn exit_code(self) -> i32 {
        match self {
            Outcome::Same => exit_code::PASSED,
            Outcome::Worse => exit_code::FAILED,
            Outcome::Inconclusive => exit_code::INCONCLUSIVE,
        }
    }

    /// The wording of the last line of the output.
    pub fn text(self) -> &'static str {
        match self {
            Outcome::Same => "the same, or better",
            Outcome::Worse => "worse",
            Outcome::Inconclusive => "inconclusive",
        }
    }
}

/// Compares run `b` with run `a`; an error where the metrics of one cannot be read.
pub fn compare(a: &Run, b: &Run) -> Result<Comparison, String> {
    let verdicts = verdicts::compare(a, b);
    let metrics = numbers::compare(a, b)?;
    let apart = apart(a, b);
    let (outcome, because) = outcome(&apart, &verdicts, &metrics);
    Ok(Comparison {
        format: Format,
        a: side(a),
        b: side(b),
        apart,
        software: differences(&a.fingerprint(), &b.fingerprint()),
        culprits: effect::culprits(a, b)?,
        verdict_groups: groups::group_verdicts(&verdicts, b),
        number_groups: groups::group_numbers(&metrics, [a, b]),
        verdicts,
        metrics,
        outcome,
        because,
    })
}

fn side(run: &Run) -> Side {
    let plan = run.plan();
    Side {
        run: plan.run_id.clone(),
        made: run.made.clone(),
        suites: plan.suites.clone(),
        inventory: plan.inventory.clone(),
        instance: plan.instance.name.clone(),
        nodes: nodeset::fold(&plan.nodes),
        simulated: run.is_simulated(),
        state: run.state(),
    }
}

fn apart(a: &Run, b: &Run) -> Vec<String> {
    let mut why = Vec::new();
    let (of_a, of_b) = (&a.plan().instance.name, &b.plan().instance.name);
    if of_a != of_b {
        why.push(format!("different instance types: `{of_a}` and `{of_b}`"));
    }
    if a.is_simulated() != b.is_simulated() {
        let simulated = if a.is_simulated() { a } else { b };
        why.push(format!("only one of the runs is simulated: {}", simulated.id()));
    }
    if a.is_simulated() == b.is_simulated() && a.kind() != b.kind() {
        let canary = if a.kind() == RunKind::Canary { a } else { b };
        why.push(format!("only one of the runs goes red on purpose: {}", canary.id()));
    }
    if a.id() == b.id() {
        why.push(format!("both are the same run: {}", a.id()));
    }
    why
}

/// Worse beats inconclusive, and inconclusive beats the same.
fn outcome(apart: &[String], verdicts: &Verdicts, metrics: &Numbers) -> (Outcome, Vec<String>) {
    if !apart.is_empty() {
        return (Outcome::Inconclusive, apart.to_vec());
    }
    let counted =
        |n: usize, one: &str, many: &str| (n > 0).then(|| format!("{n} {}", if n == 1 { one } else { many }));
    let worse: Vec<String> = [
        counted(verdicts.worse(), "verdict is worse", "verdicts are worse"),
        counted(
            metrics.worse(),
            "number is worse by more than its noise",
            "numbers are worse by more than their noise",
        ),
        counted(
            metrics.worse_parts(true),
            "number of one part is worse while its peers are not",
            "numbers of single parts are worse while their peers are not",
        ),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !worse.is_empty() {
        return (Outcome::Worse, worse);
    }
    let nothing = verdicts.known_in_both == 0 && metrics.compared == 0;
    let open: Vec<String> = [
        nothing.then(|| "no number was measured in both runs".to_owned()),
        counted(
            verdicts.unknown(),
            "verdict of the second run is inconclusive",
            "verdicts of the second run are inconclusive",
        ),
        counted(
            metrics.unknown(),
            "number is worse, but its noise is unknown",
            "numbers are worse, but their noise is unknown",
        ),
        counted(
            metrics.worse_parts(false),
            "number of one part is worse, but how much such parts vary is unknown",
            "numbers of single parts are worse, but how much such parts vary is unknown",
        ),
        counted(
            metrics.moved(),
            "number without a better direction changed",
            "numbers without a better direction changed",
        ),
        counted(
            verdicts.only_a.len(),
            "assertion is only in the first run",
            "assertions are only in the first run",
        ),
        counted(metrics.only_a.len(), "number is only in the first run", "numbers are only in the first run"),
        counted(
            metrics.uncounted.len(),
            "number is not counted: contradicted, not finite, or of other parts",
            "numbers are not counted: contradicted, not finite, or of other parts",
        ),
    ]
    .into_iter()
    .flatten()
    .collect();
    match open.is_empty() {
        true => {
            let alone = if metrics.parts_compared > 0 { ", nor one part alone" } else { "" };
            (Outcome::Same, vec![format!("nothing is worse by more than its noise{alone}")])
        }
        false => (Outcome::Inconclusive, open),
    }
}
