//! Runs that were there before a bisection and are of one of its two ends: the same jobs, by their nodes and scripts, on the
//! same cluster. A run that blames a node, or lacks a number, says nothing of a stack.

use super::measured::{self, Compared};
use model::artefact::{Plan, PlannedAssertion, PlannedCase, Summary};
use model::exit_code;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use store::{Home, Stored};
use verdict::bisect::record::{EarlierRun, RECORD};
use verdict::fingerprint::COMPARABLE;

/// Of each end, the newest.
const MOST: usize = 20;
/// So many runs are looked at, the newest first.
const MOST_READ: usize = 500;

/// What all earlier runs of one end have in common.
struct End<'a> {
    stack: usize,
    plan: &'a Plan,
    case: &'a PlannedCase,
    jobs: String,
}

impl<'a> End<'a> {
    fn new(stack: usize, plan: &'a Plan) -> Option<End<'a>> {
        let case = plan.cases.first()?;
        Some(End { stack, plan, case, jobs: jobs(plan, case)? })
    }

    /// Whether a run has the same jobs as this stack.
    fn is_of(&self, plan: &Plan, case: &PlannedCase) -> bool {
        plan.inventory == self.plan.inventory
            && plan.simulated == self.plan.simulated
            && plan.sim_faults == self.plan.sim_faults
            && case.suite == self.case.suite
            && case.sim_faults == self.case.sim_faults
            && case.workload == self.case.workload
            && jobs(plan, case).is_some_and(|jobs| jobs == self.jobs)
    }
}

/// The jobs of a case as text, without the id of their run; nothing where they cannot be compared.
fn jobs(plan: &Plan, case: &PlannedCase) -> Option<String> {
    let text = serde_json::to_string(&case.jobs).ok()?;
    Some(text.replace(&plan.run_id, "RUN")).filter(|_| !plan.run_id.is_empty())
}

/// Runs of the good stack, which is number 0, and of the bad one, which is number `last`; the newest first. Each plan is
/// of the one case that is compared.
pub(super) fn find(
    home: &Home,
    good: &Plan,
    bad: &Plan,
    last: usize,
    compared: &Compared,
) -> Vec<EarlierRun> {
    let (Some(good), Some(bad)) = (End::new(0, good), End::new(last, bad)) else { return Vec::new() };
    // Jobs that are the same do not say which stack they ran with.
    if good.jobs == bad.jobs {
        return Vec::new();
    }
    let mut found: Vec<EarlierRun> = Vec::new();
    for folder in home.runs().into_iter().rev().take(MOST_READ) {
        let is_open = |end: &&End<'_>| found.iter().filter(|run| run.stack == end.stack).count() < MOST;
        let open: Vec<&End<'_>> = [&good, &bad].into_iter().filter(is_open).collect();
        if open.is_empty() {
            break;
        }
        found.extend(read(&folder, &open, compared));
    }
    found
}

/// What a run measured, where it is of one of these ends. One that cannot be read is passed over.
fn read(folder: &Path, ends: &[&End<'_>], compared: &Compared) -> Option<EarlierRun> {
    if folder.join(RECORD).exists() || store::is_foreign(folder) {
        return None;
    }
    let stored = Stored::open(folder).ok()?;
    let plan = &stored.plan;
    let name = &ends.first()?.case.name;
    let case = plan.cases.iter().find(|case| case.name == *name && case.skip.is_none())?;
    let end = ends.iter().find(|end| end.is_of(plan, case))?;
    // The jobs of a replay are those of another run.
    let summary: Summary = store::read_json(&folder.join("summary.json")).ok()?;
    let is_interrupted = matches!(summary.exit_code, exit_code::INTERRUPTED | exit_code::TERMINATED);
    if plan.replayed_from.is_some() || is_interrupted {
        return None;
    }
    let unit_is_same =
        |assertion: &PlannedAssertion| assertion.metric == compared.metric && assertion.unit == compared.unit;
    let verdict = stored.verdict(name).ok()?.filter(|verdict| verdict.culprits.is_empty())?;
    let metrics = stored.metrics(name).ok()?;
    if !case.assertions.iter().any(unit_is_same) || measured::wrong_data(Some(&verdict)).is_some() {
        return None;
    }
    let numbers = compared.numbers(Some(&verdict), metrics.as_ref())?;
    let value = compared.level(&numbers);
    let run = plan.run_id.clone();
    value.is_finite().then_some(EarlierRun { run, stack: end.stack, value, versions: verdict.versions })
}

/// A part of the software that was another then, by what a run has reported since: `nccl 2.26.2, now 2.27.7`. A run of another
/// stack speaks only for parts that are the same in all `earlier` runs of both ends, since no stack changes them.
pub(super) fn changed(
    run: &EarlierRun,
    earlier: &[EarlierRun],
    now: &BTreeMap<String, BTreeSet<String>>,
    is_own_stack: bool,
) -> Option<String> {
    let has_both_ends = earlier.iter().any(|one| one.stack != run.stack);
    let is_shared = |part: &str| {
        has_both_ends && earlier.iter().all(|one| one.versions.get(part) == run.versions.get(part))
    };
    let join = |versions: &BTreeSet<String>| versions.iter().cloned().collect::<Vec<_>>().join(", ");
    COMPARABLE.into_iter().filter(|&part| is_own_stack || is_shared(part)).find_map(|part| {
        let (then, now) = (run.versions.get(part)?, now.get(part)?);
        (then != now).then(|| format!("{part} {}, now {}", join(then), join(now)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions(nccl: &str) -> BTreeMap<String, BTreeSet<String>> {
        BTreeMap::from([("nccl".to_owned(), BTreeSet::from([nccl.to_owned()]))])
    }

    fn earlier(stack: usize, nccl: &str) -> EarlierRun {
        EarlierRun { run: "a".to_owned(), stack, value: 6.0, versions: versions(nccl) }
    }

    #[test]
    fn an_earlier_run_with_other_software_is_known_by_what_both_report() {
        let run = earlier(0, "2.26.2");
        let alone = [run.clone()];
        let of = |nccl: &str| changed(&run, &alone, &versions(nccl), true);
        assert_eq!(of("2.27.7").as_deref(), Some("nccl 2.26.2, now 2.27.7"));
        assert_eq!(of("2.26.2"), None);
        assert_eq!(changed(&run, &alone, &BTreeMap::new(), true), None);
    }

    #[test]
    fn a_run_of_another_stack_speaks_only_for_what_no_stack_changes() {
        let run = earlier(0, "2.26.2");
        let by_other = |bad: &str| changed(&run, &[run.clone(), earlier(9, bad)], &versions("2.27.7"), false);
        assert_eq!(by_other("2.26.2").as_deref(), Some("nccl 2.26.2, now 2.27.7"));
        assert_eq!(by_other("2.27.7"), None);
        assert_eq!(changed(&run, std::slice::from_ref(&run), &versions("2.27.7"), false), None);
    }
}
