//! `harness baseline propose`: selects the numbers of runs that can be a baseline, and writes proposals.

use super::{files, packs};
use crate::cli::usage;
use crate::session::stored;
use base::text::count;
use clap::Args;
use config::baseline::pack::Pack;
use config::baseline::propose::{Number, Origin, PackUse, Proposed, RunNumbers, propose};
use config::baseline::review::{name, render};
use config::baseline::{Baselines, PENDING};
use metric::Role;
use model::artefact::{Plan, PlannedBaseline, Status, Verdict};
use model::exit_code;
use recipes::recipe;
use std::collections::{BTreeMap, BTreeSet};
use store::{Home, Stored};
use verdict::fingerprint::{COMPARABLE, VARIABLES, variables};

#[derive(Debug, Args)]
pub(crate) struct ProposeArgs {
    /// The runs: ids, the beginning of them, `latest`, or their folders; each counts once, even if it was judged again
    #[arg(long = "run", value_name = "ID|PATH", required = true, num_args = 1..)]
    runs: Vec<String>,
}

pub(super) fn run(home: &Home, args: &ProposeArgs) -> i32 {
    let mut opened = Vec::new();
    for word in &args.runs {
        match stored::open_own(home, word) {
            Ok(run) => opened.push(run),
            Err(why) => return usage(&format!("--run: {why}")),
        }
    }
    let instance = opened.first().map(|run| run.plan.instance.name.clone()).unwrap_or_default();
    let made = packs::imported(home, &instance).and_then(|packs| proposal(&opened, &packs));
    match made {
        Ok(made) => write(home, &made),
        Err(why) => usage(&why),
    }
}

struct Proposal {
    proposed: Proposed,
    instance: String,
    simulated: bool,
    runs: usize,
    unfit: Vec<String>,
    /// Keys of runs that are fit otherwise.
    left_out: LeftOut,
}

/// Numbers that cannot be a baseline: by case and reason, how many, and one of them.
#[derive(Default)]
struct LeftOut(BTreeMap<(String, String), (usize, String)>);

/// So many lines are printed.
const MOST_LINES: usize = 6;

impl LeftOut {
    fn add(&mut self, case: &str, why: &str, what: String) {
        self.0.entry((case.to_owned(), why.to_owned())).or_insert((0, what)).0 += 1;
    }

    fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self
            .0
            .iter()
            .take(MOST_LINES)
            .map(|((case, why), (n, first))| match n {
                1 => format!("excluded `{case}`: {why}: {first}"),
                n => format!("excluded `{case}`: {n} numbers: {why}, first {first}"),
            })
            .collect();
        if self.0.len() > MOST_LINES {
            let more: usize = self.0.values().skip(MOST_LINES).map(|(n, _)| n).sum();
            let (more, cases) = (count(more, "more number"), count(self.0.len() - MOST_LINES, "case"));
            lines.push(format!("excluded {more} of {cases}"));
        }
        lines
    }
}

fn proposal(runs: &[Stored], packs: &[Pack]) -> Result<Proposal, String> {
    let first = runs.first().ok_or("no run is named")?;
    let instance = first.plan.instance.name.clone();
    if let Some(other) = runs.iter().find(|run| run.plan.instance.name != instance) {
        let plan = &other.plan;
        return Err(format!(
            "the runs are of two instances, `{instance}` and `{}` (`{}`); propose them separately",
            plan.instance.name, plan.run_id
        ));
    }
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    let (mut numbers, mut unfit, mut left_out) = (Vec::new(), Vec::new(), LeftOut::default());
    let mut software: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    let (mut judged, mut newest) = (0, None);
    for run in runs {
        let plan = &run.plan;
        // Judged again, it is still the same jobs: one run.
        let jobs_of = match &plan.replayed_from {
            Some(_) => plan.parent.clone().unwrap_or_else(|| plan.run_id.clone()),
            None => plan.run_id.clone(),
        };
        if let Some(other) = seen.insert(jobs_of, plan.run_id.clone()) {
            unfit.push(format!("{}: the same jobs as {other}", plan.run_id));
            continue;
        }
        match read(run, &mut left_out)? {
            Usability::Fit { runs: fit, versions } => {
                for (part, version) in versions {
                    software.entry(part).or_default().insert(version, plan.run_id.clone());
                }
                judged = judged.max(compared_with_baselines(plan));
                newest =
                    newest.max(run.record().map_err(|error| error.to_string())?.map(|record| record.started));
                numbers.extend(fit);
            }
            Usability::Unfit(why) => unfit.push(format!("{}: {why}", plan.run_id)),
        }
    }
    if let Some((part, those)) = software.iter().find(|(_, those)| those.len() > 1) {
        let versions_of_runs: Vec<String> =
            those.iter().map(|(version, run)| format!("{version} in {run}")).collect();
        return Err(format!(
            "the runs used different software; propose them separately: {part} is {}",
            versions_of_runs.join(", ")
        ));
    }
    let simulated = first.plan.simulated;
    let origin = Origin {
        source: match simulated {
            true => "runs of the simulated cluster".to_owned(),
            false => format!("runs of this fleet, inventory {}", first.plan.inventory),
        },
        date: newest.map(|started| started.chars().take(10).collect()),
        judged,
        simulated,
    };
    let runs = numbers.len();
    Ok(Proposal { proposed: propose(&numbers, packs, &origin), instance, simulated, runs, unfit, left_out })
}

enum Usability {
    Fit { runs: Vec<RunNumbers>, versions: Vec<(String, String)> },
    Unfit(String),
}

/// The run's numbers, without those that were not measured or contradict each other; or why none can be a baseline: its
/// cross-checks disagree, its nodes have different software, or it is simulated.
fn read(run: &Stored, left_out: &mut LeftOut) -> Result<Usability, String> {
    let message_of = |error: store::StoreError| error.to_string();
    let plan = &run.plan;
    // By independent run: repeats of a case are each one.
    let mut numbers: BTreeMap<usize, Vec<Number>> = BTreeMap::new();
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    if !plan.sim_faults.is_empty() {
        return Ok(Usability::Unfit(format!("it ran with faults: {}", plan.sim_faults.join(", "))));
    }
    if let Some(why) = disagreement(run)? {
        return Ok(Usability::Unfit(why));
    }
    for case in plan.cases.iter().filter(|case| case.skip.is_none() && case.sim_faults.is_empty()) {
        let asks = case.assertions.iter().any(|one| one.bound.baseline.is_some());
        if !asks {
            continue;
        }
        let Some(verdict) = run.verdict(&case.name).map_err(message_of)? else {
            left_out.add(&case.name, "the case was not judged", plan.run_id.clone());
            continue;
        };
        let doubts = run.analysis(&case.name).map_err(message_of)?.map(|analysis| {
            let of_jobs = analysis.jobs.into_values().flat_map(|job| job.doubts);
            of_jobs.map(|one| one.why).next()
        });
        if verdict.simulated && !plan.simulated {
            let why = "its output is marked as simulated";
            return Ok(Usability::Unfit(format!("case `{}`: {why}", case.name)));
        }
        if let Some(why) = doubts.flatten() {
            left_out.add(&case.name, &format!("two measurements of it disagree: {why}"), plan.run_id.clone());
            continue;
        }
        if verdict.verdicts.len() != case.assertions.len() {
            left_out.add(&case.name, "it has fewer verdicts than assertions", plan.run_id.clone());
            continue;
        }
        let mut software = BTreeMap::new();
        for (part, those) in verdict.versions.iter().filter(|(part, _)| COMPARABLE.contains(&part.as_str())) {
            versions.entry(part.clone()).or_default().extend(those.iter().cloned());
            software.extend(those.first().map(|version| (part.clone(), version.clone())));
        }
        // Cases may set other ones than their neighbours, and no other ones than in another run.
        if let Some(set) = case.jobs.first().map(variables) {
            versions.entry(format!("{VARIABLES} of `{}`", case.name)).or_default().insert(set.clone());
            software.insert(VARIABLES.to_owned(), set);
        }
        for (assertion, verdict) in case.assertions.iter().zip(&verdict.verdicts) {
            let Some(baseline) = &assertion.bound.baseline else { continue };
            let value = match usable(verdict) {
                Ok(value) => value,
                Err(why) => {
                    left_out.add(&case.name, &why, format!("{} in {}", verdict.name, plan.run_id));
                    continue;
                }
            };
            let Some((metric, key)) = plan::read_shown(plan::key(baseline)) else { continue };
            let values = if verdict.runs.is_empty() { vec![value] } else { verdict.runs.clone() };
            for (run, value) in values.into_iter().enumerate() {
                numbers.entry(run).or_default().push(Number {
                    metric: metric.clone(),
                    unit: assertion.unit,
                    better: assertion.better,
                    key: key.clone(),
                    subject: subject(verdict),
                    value,
                    software: software.clone(),
                });
            }
        }
    }
    if let Some((part, those)) = versions.iter().find(|(_, those)| those.len() > 1) {
        let those: Vec<&str> = those.iter().map(String::as_str).collect();
        return Ok(Usability::Unfit(format!(
            "its nodes have different software: {part} {}",
            those.join(", ")
        )));
    }
    let versions =
        versions.into_iter().flat_map(|(part, those)| those.into_iter().map(move |one| (part.clone(), one)));
    let id = |run: usize| match run {
        0 => plan.run_id.clone(),
        repeat => format!("{}#{}", plan.run_id, repeat + 1),
    };
    let runs: Vec<RunNumbers> =
        numbers.into_iter().map(|(run, numbers)| RunNumbers { id: id(run), numbers }).collect();
    match runs.is_empty() {
        true => Ok(Usability::Unfit("nothing in it is compared with a baseline".to_owned())),
        false => Ok(Usability::Fit { runs, versions: versions.collect() }),
    }
}

/// Whether cross-checks disagree anywhere in the run: then its other numbers are not trusted either.
fn disagreement(run: &Stored) -> Result<Option<String>, String> {
    let message_of = |error: store::StoreError| error.to_string();
    for case in run.plan.cases.iter().filter(|case| case.skip.is_none() && case.sim_faults.is_empty()) {
        let verdicts =
            run.verdict(&case.name).map_err(message_of)?.map(|judged| judged.verdicts).unwrap_or_default();
        let is_red = |one: &&Verdict| {
            recipe::has_role(&one.metric, Role::CrossCheck)
                && !matches!(one.status, Status::Pass | Status::Skipped)
        };
        if let Some(one) = verdicts.iter().find(is_red) {
            return Ok(Some(format!("case `{}`: its cross-checks disagree: {}", case.name, one.message)));
        }
        let metrics = run.metrics(&case.name).map_err(message_of)?.unwrap_or_default();
        let disagree = metrics
            .rows()
            .iter()
            .find(|row| row.value > 0.0 && recipe::has_role(&row.name, Role::Disagreement));
        if let Some(row) = disagree {
            let calls = row.unit.show(row.value);
            return Ok(Some(format!(
                "case `{}`: its cross-checks disagree: two sources report different sizes for {calls} calls of a rank",
                case.name
            )));
        }
    }
    Ok(None)
}

/// The number of a verdict, or why it cannot be a baseline.
fn usable(verdict: &Verdict) -> Result<f64, String> {
    let why = match verdict.status {
        Status::Skipped | Status::ExpectedFailure | Status::UnexpectedPass => {
            verdict.status.name().to_owned()
        }
        // Without a cause it was measured, and there was nothing to judge it by.
        Status::Error | Status::Inconclusive | Status::Fail if verdict.cause.is_some() => {
            verdict.cause.clone().unwrap_or_default()
        }
        Status::Error => "error".to_owned(),
        _ => match verdict.observed.filter(|value| value.is_finite()) {
            Some(value) => return Ok(value),
            None => "not measured".to_owned(),
        },
    };
    Err(why)
}

fn subject(verdict: &Verdict) -> String {
    match (&verdict.node, &verdict.part) {
        (Some(node), Some(part)) => format!("{node} {part}"),
        (Some(node), None) => node.clone(),
        (None, _) => verdict.nodes.clone(),
    }
}

fn compared_with_baselines(plan: &Plan) -> u32 {
    let all = plan.cases.iter().filter(|case| case.skip.is_none()).flat_map(|case| &case.assertions);
    all.filter(|one: &&model::artefact::PlannedAssertion| {
        matches!(&one.bound.baseline, Some(baseline) if !matches!(baseline, PlannedBaseline::Expired(_)))
    })
    .count() as u32
}

/// Of one metric: how well a pack predicts these runs.
fn used_pack(used: &PackUse) -> String {
    let (pack, keys) = (format!("pack {}: {}", used.signer, used.metric), count(used.shared, "key"));
    match used.error {
        Some(error) => format!("{pack}: predicts the medians of {keys} to {:.1} %", error * 100.0),
        None => format!(
            "{pack}: not used: of {keys}, which are too few, predicted too badly, or of the same runs"
        ),
    }
}

fn write(home: &Home, made: &Proposal) -> i32 {
    for why in &made.unfit {
        eprintln!("excluded {why}");
    }
    for line in made.left_out.lines() {
        eprintln!("{line}");
    }
    if made.proposed.entries.is_empty() {
        eprintln!("no run is usable for a proposal; make one without faults: `harness run --suite NAME`");
        return exit_code::INCONCLUSIVE;
    }
    let path = files::pending(home, &made.instance);
    let read =
        files::read_in_force(home, &made.instance).and_then(|old| Ok((old, files::read(home, &path)?)));
    let (old, pending) = match read {
        Ok(read) => read,
        Err(why) => return usage(&why),
    };
    let file = format!("baselines/{}{PENDING}", made.instance);
    let mut pending = pending.unwrap_or_else(|| Baselines::none(&made.instance, made.simulated, &file));
    for entry in &made.proposed.entries {
        println!("{} {}", made.instance, name(&entry.metric, &entry.key));
        print!("{}", render(old.as_ref(), entry));
        pending.entries.retain(|other| other.metric != entry.metric || other.key != entry.key);
        pending.entries.push(entry.clone());
    }
    for left in &made.proposed.left_out {
        println!(
            "excluded {}: {} {} in {}, the others are about {}",
            left.subject,
            name(&left.metric, &left.key),
            left.unit.show(left.value),
            left.run,
            left.unit.show(left.middle)
        );
    }
    for used in &made.proposed.packs {
        println!("{}", used_pack(used));
    }
    for one in &made.proposed.off_predicted {
        let side = if one.off < 0.0 { "below" } else { "above" };
        println!(
            "look before you accept: {} is {:.0} % {side} what the pack predicts",
            name(&one.metric, &one.key),
            one.off.abs() * 100.0
        );
    }
    for part in &made.proposed.partly_reported {
        eprintln!("not in the fingerprint, because some runs do not report it: {part}");
    }
    if let Err(why) = files::write_proposals(home, &pending) {
        return usage(&why);
    }
    let few = made
        .proposed
        .entries
        .iter()
        .filter(|entry| entry.state == config::baseline::State::Provisional)
        .count();
    let provisional = if few == 0 { String::new() } else { format!(", {few} of them provisional") };
    println!(
        "{} from {}{provisional}: {file}; review: harness baseline review {}",
        count(made.proposed.entries.len(), "proposal"),
        count(made.runs, "run"),
        made.instance
    );
    exit_code::PASSED
}
