//! A plan as text: everything that a run would send, where to, for how long, and what would come back.
//! It shows the plan as it is, and decides nothing.

use base::nodeset;
use base::text::SIMULATED;
use base::text::{command_line, count, duration, show, show_lines};
use model::artefact::{
    ControlRun, ExpectedFile, FileKind, JOB_PROPERTIES, Plan, PlannedAllocation, PlannedAssertion,
    PlannedBaseline, PlannedCase, PlannedIsolation, PlannedJob, PlannedNetwork,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use verdict::unjudged;

/// Expected files that are named one by one.
const MOST_FILES: usize = 8;
/// Jobs of a case that have a line each.
const MOST_JOBS: usize = 64;

/// The plan for a person. The first job of each case is shown in full, others in one line each, and beyond so many they
/// are counted, for they differ in nodes only; `verbose` shows all. `scripts` are the scripts that jobs share, by name:
/// the plan holds their digests alone.
pub(crate) fn dry_run(plan: &Plan, scripts: &[(&str, &str)], verbose: bool) -> String {
    let mut text = String::new();
    head(&mut text, plan);
    for case in &plan.cases {
        planned_case(&mut text, case, verbose);
    }
    for allocation in &plan.allocations {
        shared_allocation(&mut text, allocation, verbose);
    }
    shared(&mut text, plan, scripts);
    totals(&mut text, plan);
    for isolation in &plan.isolations {
        line(&mut text, 0, &if_red(isolation));
    }
    text
}

fn line(text: &mut String, indent: usize, what: &str) {
    writeln!(text, "{:indent$}{what}", "").unwrap_or_default();
}

fn head(text: &mut String, plan: &Plan) {
    line(text, 0, &format!("plan of run: {}", show(&plan.run_id)));
    if plan.simulated {
        line(text, 0, SIMULATED);
    }
    line(text, 0, &format!("harness: {}", show(&plan.harness)));
    line(text, 0, &format!("suites: {}", show(&plan.suites.join(", "))));
    let launcher = plan.launcher;
    let instance = show(&plan.instance.name);
    line(text, 0, &format!("inventory: {} ({instance}, launched by {launcher})", show(&plan.inventory)));
    line(text, 0, &format!("nodes: {}", nodes(&plan.nodes)));
    if let Some(network) = &plan.network {
        ranks(text, network);
    }
    line(text, 0, &format!("folder: {}", show(&plan.folder)));
    line(text, 0, &format!("seed: {}", plan.seed));
    for (key, value) in &plan.settings {
        line(text, 0, &format!("set {}: {}", show(key), show(value)));
    }
    for fault in &plan.sim_faults {
        line(text, 0, &format!("fault of the simulated cluster: {}", show(fault)));
    }
    if let Some(name) = &plan.reservation {
        line(text, 0, &format!("reservation: {}", show(name)));
    }
    if let Some(to) = &plan.publish {
        line(text, 0, &format!("published when it has ended: {}/ID", show(to.trim_end_matches('/'))));
    }
    if let Some(limit) = plan.limit_s {
        line(text, 0, &format!("time limit of the run: {}", duration(limit as f64)));
    }
    for source in &plan.sources {
        line(text, 0, &format!("made from {}, sha256: {}", show(&source.file), show(&source.sha256)));
    }
}

fn nodes(nodes: &[String]) -> String {
    format!("{} ({})", show(&nodeset::fold(nodes)), count(nodes.len(), "node"))
}

/// The order of ranks: the nodes of each switch in one line.
fn ranks(text: &mut String, network: &PlannedNetwork) {
    let (file, source) = (show(&network.file), show(&network.source));
    line(text, 0, &format!("ranks in the order of topology {file} ({source}):"));
    for together in network.places.chunk_by(|a, b| a.switches == b.switches) {
        let names: Vec<&String> = together.iter().map(|place| &place.node).collect();
        let switches = together.first().map(|place| place.switches.join("/")).unwrap_or_default();
        line(text, 2, &format!("{}: {}", show(&switches), show(&nodeset::fold(&names))));
    }
}

fn planned_case(text: &mut String, case: &PlannedCase, verbose: bool) {
    line(text, 0, "");
    line(text, 0, &format!("case {}::{}: {}", show(&case.suite), show(&case.name), show(&case.about)));
    if let Some(why) = &case.skip {
        line(text, 2, &format!("skipped: {}", show(why)));
        return;
    }
    if !case.after.is_empty() {
        line(text, 2, &format!("after: {}", show(&case.after.join(", "))));
    }
    if let Some(why) = &case.expected_failure {
        line(text, 2, &format!("expected to fail: {}", show(why)));
    }
    for fault in &case.sim_faults {
        line(text, 2, &format!("fault of the simulated cluster: {}", show(fault)));
    }
    if let Some((what, how)) = case.workload.notice() {
        line(text, 2, &format!("{what}: {}", show(how)));
    }
    for evidence in case.evidence_lines() {
        line(text, 2, &evidence);
    }
    line(text, 2, &format!("assertions: {}", case.assertions.len()));
    for key in predicted_keys(case) {
        line(text, 2, &format!("no baseline, predicted: {}", show(&key)));
    }
    let described = JOB_PROPERTIES.iter().filter_map(|property| (property.describe)(&case.properties));
    line(text, 2, &described.collect::<Vec<_>>().join(", "));
    let (jobs, took) = (count(first(case).count(), "job"), duration(estimate_s(case) as f64));
    line(text, 2, &format!("estimate: {jobs}, {took}, {:.2} node-hours", node_hours(case)));
    beside(text, case);
    let listed = if verbose { case.jobs.len() } else { case.jobs.len().min(MOST_JOBS) };
    let (listed, more) = case.jobs.split_at(listed);
    for (at, planned) in listed.iter().enumerate() {
        if at == 0 || verbose {
            job(text, planned);
        } else {
            let (name, launch) = (show(&planned.name), command_line(&planned.launch));
            line(text, 2, &format!("job {name} on {}: {launch}", nodes(&planned.nodes)));
        }
    }
    if !more.is_empty() {
        let on: BTreeSet<&String> = more.iter().flat_map(|job| &job.nodes).collect();
        let mut on: Vec<String> = on.into_iter().cloned().collect();
        nodeset::sort(&mut on);
        let jobs = count(more.len(), "more job");
        line(text, 2, &format!("and {jobs} on {}, which differ in nodes only: -v shows them", nodes(&on)));
    }
}

/// Each key that only a prediction stands for, once.
fn predicted_keys(case: &PlannedCase) -> BTreeSet<String> {
    let key = |one: &PlannedAssertion| match &one.bound.baseline {
        Some(PlannedBaseline::Provisional(numbers)) => {
            let (half_width, unit) = (numbers.predicted?, one.unit.name());
            Some(format!("{}: {:.0} +- {half_width:.0} {unit}", numbers.key, numbers.median))
        }
        _ => None,
    };
    case.assertions.iter().filter_map(key).collect()
}

/// The jobs that are always launched: no retries.
fn first(case: &PlannedCase) -> impl Iterator<Item = &PlannedJob> {
    case.jobs.iter().filter(|job| job.again_of.is_none())
}

/// The repeats, control runs and retries of a case.
fn beside(text: &mut String, case: &PlannedCase) {
    let repeats =
        first(case).filter(|job| matches!(job.control_run, Some(ControlRun::Repeat { .. }))).count();
    if repeats > 0 {
        let more = count(repeats, "independent repeat");
        line(text, 2, &format!("including {more}, judged together"));
    }
    let bare: Vec<f64> = first(case)
        .filter_map(|job| match &job.control_run {
            Some(ControlRun::Bare { cost_at_most, .. }) => Some(cost_at_most * 100.0),
            _ => None,
        })
        .collect();
    if let Some(most) = bare.first() {
        let control_runs = count(bare.len(), "run");
        let is_profiled = first(case).any(|job| job.profile.is_some());
        let without = match (is_profiled, first(case).any(PlannedJob::is_inspected)) {
            (false, true) => "NCCL's Inspector",
            (true, true) => "the profiler and NCCL's Inspector",
            _ => "the profiler",
        };
        line(
            text,
            2,
            &format!("including {control_runs} without {without}, whose overhead may be at most {most} %"),
        );
    }
    if case.jobs.iter().any(|job| job.again_of.is_some()) {
        line(
            text,
            2,
            "a job that the cluster itself ends is launched again once, which the estimate does not count",
        );
    }
}

/// What NCCL's Inspector costs a job and leaves out, by the variables in its script.
fn inspector(text: &mut String, job: &PlannedJob) {
    if !job.is_inspected() {
        return;
    }
    let script = job.files.iter().find(|file| file.name == job::script::files::JOB);
    let Some(Ok(script)) = script.and_then(|file| file.text.as_deref()).map(job::script::read) else {
        return;
    };
    let variables = script.steps.iter().find_map(|step| match step {
        job::script::Step::Environment { variables } => Some(variables),
        _ => None,
    });
    if let Some(variables) = variables {
        line(text, 4, &format!("NCCL Inspector: {}", show(&job::inspector::cost(variables))));
    }
}

fn job(text: &mut String, job: &PlannedJob) {
    line(text, 2, &format!("job {} on {}", show(&job.name), nodes(&job.nodes)));
    line(text, 4, &format!("round: {}, ranks: {}", job.round, job.ranks));
    let (estimate, limit) = (duration(job.estimate_s as f64), duration(job.limit_s as f64));
    line(text, 4, &format!("estimate: {estimate}, time limit: {limit}"));
    inspector(text, job);
    line(text, 4, &format!("folder: {}", show(&job.folder)));
    line(text, 4, &format!("launch: {}", command_line(&job.launch)));
    if let Some(window) = job.profile.as_ref().and_then(|profile| profile.window.as_ref()) {
        let (steps, why) = (window.steps, show(&window.why));
        line(text, 4, &format!("window: steps {steps}, by `{}`: {why}", window.way.name()));
    }
    for file in &job.files {
        match (&file.text, &file.sha256) {
            (Some(script), _) => {
                line(text, 4, &format!("file {}:", show(&file.name)));
                block(text, 6, script);
            }
            (None, Some(sha256)) => {
                line(text, 4, &format!("file {}, shared, sha256: {}", show(&file.name), show(sha256)));
            }
            (None, None) => line(text, 4, &format!("file {}: empty", show(&file.name))),
        }
    }
    expected(text, &job.expected);
}

fn shared_allocation(text: &mut String, allocation: &PlannedAllocation, verbose: bool) {
    let batch_job = &allocation.batch_job;
    line(text, 0, "");
    let (jobs, of) = (count(allocation.jobs.len(), "job"), nodes(&batch_job.nodes));
    line(text, 0, &format!("allocation {} on {of}, shared by {jobs}", show(&batch_job.name)));
    line(text, 2, &format!("time limit: {}", duration(batch_job.limit_s as f64)));
    for (turn, number) in allocation.jobs.iter().zip(1..) {
        line(text, 2, &format!("{number}: {}/{}", show(&turn.case), show(&turn.job)));
    }
    match verbose {
        true => job(text, batch_job),
        false => line(text, 2, &format!("launch: {}", command_line(&batch_job.launch))),
    }
}

fn block(text: &mut String, indent: usize, script: &str) {
    for row in show_lines(script).lines() {
        line(text, indent, format!("| {row}").trim_end());
    }
}

/// Many files of one kind, such as one per NIC, are counted and not listed.
fn expected(text: &mut String, files: &[ExpectedFile]) {
    let mut by_kind: BTreeMap<FileKind, Vec<String>> = BTreeMap::new();
    for file in files {
        by_kind.entry(file.kind).or_default().push(show(&file.name));
    }
    for names in by_kind.values() {
        match &names[..] {
            [first, .., last] if names.len() > MOST_FILES => {
                line(text, 4, &format!("expected: {} from {first} to {last}", count(names.len(), "file")));
            }
            names => line(text, 4, &format!("expected: {}", names.join(" "))),
        }
    }
}

/// The scripts that jobs share, once and at the end.
fn shared(text: &mut String, plan: &Plan, scripts: &[(&str, &str)]) {
    let batch_jobs = plan.allocations.iter().map(|allocation| &allocation.batch_job);
    let jobs = plan.cases.iter().flat_map(|case| &case.jobs);
    let files: Vec<&str> = jobs
        .chain(batch_jobs)
        .flat_map(|job| &job.files)
        .filter(|file| file.text.is_none())
        .map(|file| file.name.as_str())
        .collect();
    for (name, script) in scripts.iter().filter(|(name, _)| files.contains(name)) {
        line(text, 0, "");
        line(text, 0, &format!("shared file {}:", show(name)));
        block(text, 2, script);
    }
}

fn totals(text: &mut String, plan: &Plan) {
    let run: Vec<&PlannedCase> = plan.cases.iter().filter(|case| case.skip.is_none()).collect();
    let jobs: usize = run.iter().map(|case| first(case).count()).sum();
    let assertions: usize = plan.cases.iter().map(|case| case.assertions.len()).sum();
    let skipped = plan.cases.len() - run.len();
    line(text, 0, "");
    let sums = [count(run.len(), "case"), count(jobs, "job"), count(assertions, "assertion")];
    line(text, 0, &format!("total: {}; skipped: {}", sums.join(", "), count(skipped, "case")));
    let seconds: u64 = run.iter().map(|case| estimate_s(case)).sum();
    let hours: f64 = run.iter().map(|case| node_hours(case)).sum();
    let most = duration(seconds as f64);
    line(text, 0, &format!("estimate: {most} if cases run one after another, {hours:.2} node-hours"));
    if let (open @ 1.., all) = unjudged::planned(plan) {
        line(text, 0, &unjudged::line(open, all, plan.nodes.len()));
    }
}

/// The cost of the isolation that a red suite may start.
fn if_red(isolation: &PlannedIsolation) -> String {
    let suite = show(&isolation.suite);
    if let Some(why) = &isolation.refused {
        return format!("if `{suite}` is red: no isolation: {}", show(why));
    }
    let (best, worst) = (&isolation.best, &isolation.worst);
    let budget = isolation.budget_node_h;
    let whose = if isolation.budget_is_own { "its budget" } else { "the run's own estimate bounds it" };
    format!(
        "if `{suite}` is red: isolation by `{}`: at most {:.2} node-hours more ({whose}: {budget:.2}); rounds {} to {}, \
         runs {} to {}, node-hours {:.2} to {:.2}",
        show(&isolation.case),
        worst.node_h.min(budget),
        best.rounds,
        worst.rounds,
        best.runs,
        worst.runs,
        best.node_h,
        worst.node_h
    )
}

/// Rounds follow one another; the jobs of one round run side by side.
pub fn estimate_s(case: &PlannedCase) -> u64 {
    let mut rounds: BTreeMap<u32, u64> = BTreeMap::new();
    for job in first(case) {
        let longest = rounds.entry(job.round).or_default();
        *longest = (*longest).max(job.estimate_s);
    }
    rounds.values().sum()
}

/// Estimate for a case without retries: each job's nodes times its hours.
pub fn node_hours(case: &PlannedCase) -> f64 {
    let node_seconds: u64 = first(case).map(|job| job.nodes.len() as u64 * job.estimate_s).sum();
    node_seconds as f64 / 3600.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    #[test]
    fn a_plan_shows_scripts_arguments_nodes_files_and_time() {
        let scripts = [("counters.sh", "#!/bin/bash\nread -t 1\n"), ("unused.sh", "never")];
        insta::assert_snapshot!(dry_run(&fixture::plan(), &scripts, false), @r#"
        plan of run: 20261121T031000Z-nccl-p5-3f9c
        SIMULATED: nothing in this run was measured on real hardware
        harness: 0.1.0
        suites: nccl-p5
        inventory: default (sim-p5, launched by slurm)
        nodes: p5-[001-004] (4 nodes)
        folder: /fsx/runs/r
        seed: 1
        set iterations: 5
        fault of the simulated cluster: p5-003:nic-slow=0.4@rdmap113s0
        made from suites/nccl-p5.toml, sha256: cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd

        case nccl-p5::nics: each NIC at its rate
          assertions: 2
          time limit: 10 min, in the queue: 60 min
          estimate: 2 jobs, 90 s, 0.10 node-hours
          job p5-001-p5-002 on p5-[001-002] (2 nodes)
            round: 0, ranks: 64
            estimate: 90 s, time limit: 5 min
            folder: /fsx/runs/r/p5-001-p5-002
            launch: sbatch --parsable job.sh 'a b'
            file job.sh:
              | #!/bin/bash
              | export NCCL_DEBUG=WARN
              | 	srun x \x1b
            file counters.sh, shared, sha256: abababababababababababababababababababababababababababababababab
            expected: 40 files from rdmap0s0.out to rdmap39s0.out
            expected: stdout
          job p5-003-p5-004 on p5-[003-004] (2 nodes): sbatch --parsable job.sh 'a b'

        case nccl-p5::broken-link: each NIC at its rate
          skipped: faults of the simulated cluster hold on a simulated inventory only

        shared file counters.sh:
          | #!/bin/bash
          | read -t 1

        total: 1 case, 2 jobs, 2 assertions; skipped: 1 case
        estimate: 90 s if cases run one after another, 0.10 node-hours
        "#);
    }

    #[test]
    fn every_job_is_shown_in_full_where_that_is_asked_for() {
        let scripts = |verbose| dry_run(&fixture::plan(), &[], verbose).matches("| #!/bin/bash").count();
        assert_eq!((scripts(false), scripts(true)), (1, 2));
    }

    #[test]
    fn jobs_beyond_so_many_are_counted_where_not_all_are_asked_for() {
        let mut plan = fixture::plan();
        let first = plan.cases[0].jobs[0].clone();
        let job = |n: usize| PlannedJob {
            name: format!("j{n}"),
            nodes: vec![format!("p5-{n:03}")],
            ..first.clone()
        };
        plan.cases[0].jobs = (0..100).map(job).collect();
        let text = dry_run(&plan, &[], false);
        assert_eq!(text.matches("\n  job ").count(), MOST_JOBS);
        let more =
            "  and 36 more jobs on p5-[064-099] (36 nodes), which differ in nodes only: -v shows them\n";
        assert!(text.contains(more), "{text}");
        assert_eq!(dry_run(&plan, &[], true).matches("\n  job ").count(), 100);
    }

    #[test]
    fn rounds_add_up_and_jobs_of_one_round_do_not() {
        let mut case = fixture::plan().cases.remove(0);
        assert_eq!((estimate_s(&case), node_hours(&case)), (90, 0.1));
        case.jobs[1].round = 1;
        assert_eq!((estimate_s(&case), node_hours(&case)), (180, 0.1));
    }
}
