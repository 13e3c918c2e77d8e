//! What follows a run: where a suite that failed is to be isolated, the isolation, and its results in the run's own
//! reports.

use super::load::Loaded;
use super::options::{FailedSuite, RunOptions};
use super::output::Output;
use super::{github, publication, reports, webhook};
use crate::pipeline::Finished;
use crate::report::Report;
use cluster::interrupt;
use libtest_mimic::FormatSetting;
use model::artefact::{Plan, PlannedCase, PlannedIsolation, Status};
use model::exit_code;
use store::{Home, Store};

/// The isolations of a new plan.
pub(super) fn plan(home: &Home, plan: &Plan, loaded: &Loaded, options: &RunOptions) -> Vec<PlannedIsolation> {
    let Some(after_run) = options.after_run else { return Vec::new() };
    after_run.plan(home, plan, &loaded.suites, &loaded.inventory, &loaded.sources)
}

/// Closes the run, with all that follows it, and adds it to the page of a job of GitHub Actions and to a webhook. Gives the exit code.
pub(crate) fn close(
    home: &Home,
    plan: &Plan,
    mut finished: Finished,
    store: &Store,
    options: &RunOptions,
    planned_by: &RunOptions,
) -> i32 {
    let code = close_and_isolate(home, plan, &mut finished, store, options, planned_by);
    let report = Report::new(plan, &finished.cases, &finished.summary);
    github::add_summary(&report, store.redactor());
    webhook::send(&report, store.redactor(), options.webhook.as_ref());
    publication::publish(home, plan, store, code, output(options));
    code
}

/// Stdout holds nothing but JSON where that is asked for.
fn output(options: &RunOptions) -> Output {
    match options.libtest.format {
        Some(FormatSetting::Json) => Output::Stderr,
        _ => Output::Stdout,
    }
}

/// Closes the run, isolates what failed in it, and adds that to its reports. Gives the run's own exit code, whatever was
/// isolated. `planned_by` are the options that the run was planned by.
fn close_and_isolate(
    home: &Home,
    plan: &Plan,
    finished: &mut Finished,
    store: &Store,
    options: &RunOptions,
    planned_by: &RunOptions,
) -> i32 {
    let code = reports::close(plan, finished, store, options);
    let Some(after_run) = planned_by.after_run.filter(|_| finished.summary.interrupted.is_none()) else {
        return code;
    };
    let output = output(options);
    let mut isolated = Vec::new();
    for planned in &plan.isolations {
        let Some(case) = failed_case(plan, finished, &planned.suite) else { continue };
        if interrupt::asked().is_some() {
            break;
        }
        output.print("");
        match after_run.isolate(home, &FailedSuite { plan, planned, case }, planned_by, output) {
            Ok(one) => isolated.push(one),
            Err(why) => output.print(format_args!("not isolated: {why}")),
        }
    }
    if isolated.is_empty() {
        return code;
    }
    finished.summary.isolations = isolated;
    let code = exit_code::graver(code, reports::write(plan, finished, store, options));
    store.is_latest();
    output.print(format_args!("the run's own exit code stays: {code}"));
    interrupt::asked().unwrap_or(code)
}

/// A case of the suite that was measured and is out of bounds, and that further runs of collectives can look into.
fn failed_case<'a>(plan: &'a Plan, finished: &Finished, suite: &str) -> Option<&'a PlannedCase> {
    let has_failed = |case: &&PlannedCase| {
        finished.cases.iter().any(|verdicts| {
            verdicts.suite == case.suite
                && verdicts.case == case.name
                && verdicts.verdicts.iter().any(|verdict| verdict.status == Status::Fail)
        })
    };
    let is_of_fabric = |case: &&PlannedCase| case.workload.traits().isolates;
    plan.cases.iter().filter(|case| case.suite == suite).filter(is_of_fabric).find(has_failed)
}
