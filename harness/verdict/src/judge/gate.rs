//! Whether a job can be judged at all: first how it ended, then whether it was what was declared. Neither makes a
//! failure: what was not measured is no bad number.

use super::CaseData;
use super::case_index::CaseIndex;
use super::culprit::are_most;
use super::ending::{by_end, step_not_started};
use super::peers::few_peers;
use super::worst::WorstNumbers;
use crate::profile_audit::{CAUSES as REPORT_CAUSES, OUTSIDE_WINDOW};
use job::window::mark;
use logs::flow_log::{GapKind, Tool};
use metric::finding::{Finding, Meaning};
use metric::lacks::NOT_READ;
use metric::{DataCheck, Files};
use model::artefact::INTERNAL_ERROR;
use model::artefact::{
    BELOW_FLOOR, Bad, CONTAINER_FAILED, CREDENTIAL_EXPIRED, DISK_FULL, DISK_QUOTA, Ended, FileKind,
    JobAnalysis, JobOutcome, JobRecord, MPI_REFUSED, NOT_RUN, PlannedAssertion, PlannedJob, STEP_NOT_STARTED,
    Status, TOOL_MISSING, Verdict, kubectl_command,
};
use recipes::catalogue::Catalogue;
use recipes::recipe;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) enum Gate {
    Open,
    /// The machinery failed: every assertion on the job is an error.
    Error {
        cause: String,
        message: String,
        next: String,
    },
    /// It ran, but not what was declared: every assertion on the job is inconclusive.
    Inconclusive {
        cause: String,
        message: String,
        next: String,
    },
}

impl Gate {
    fn cause(&self) -> Option<&str> {
        match self {
            Gate::Open => None,
            Gate::Error { cause, .. } | Gate::Inconclusive { cause, .. } => Some(cause),
        }
    }
}

const TOOL_REFUSED: &str = "tool-refused";
const OUTPUT_REFUSED: &str = "output-refused";
/// What nccl-tests and NCCL call a full file system, usually /dev/shm.
const NO_SPACE: &str = "no-space";
const LAUNCH_AGENT: &str = "launch-agent";
const POD_LOST: &str = "pod-lost";
const RAW_EDITED: &str = "raw-edited";
const RAW_GONE: &str = "raw-gone";
const LAUNCH_FAILED: &str = "launch-failed";
/// A shell's exit code where the program is not there.
const NOT_FOUND: i32 = 127;
/// Causes that say nothing about a node: tools that are missing or too old, files that were refused, panics of the
/// harness, reports that were never read, a quota, a full disk, pods that ended or that mpirun did not reach, an MPI
/// that srun does not know, a step that it never started, one whose permission had expired, and files that were changed
/// or removed after they were collected.
const OF_NO_NODE: [&str; 15] = [
    CREDENTIAL_EXPIRED,
    MPI_REFUSED,
    STEP_NOT_STARTED,
    TOOL_MISSING,
    TOOL_REFUSED,
    OUTPUT_REFUSED,
    INTERNAL_ERROR,
    NOT_READ,
    DISK_QUOTA,
    DISK_FULL,
    NO_SPACE,
    LAUNCH_AGENT,
    POD_LOST,
    RAW_EDITED,
    RAW_GONE,
];

pub(super) fn gates<'a>(data: &'a CaseData, index: &CaseIndex) -> BTreeMap<&'a str, Gate> {
    data.case
        .jobs
        .iter()
        .map(|planned| {
            let gate = match index.record(&planned.name) {
                Some(record) => match gate(data, &record.end, data.analysis.jobs.get(&planned.name)) {
                    Gate::Open => refused(index, &planned.name).unwrap_or(Gate::Open),
                    shut => shut,
                },
                None => error(NOT_RUN, "the job has no record", "run it again"),
            };
            (planned.name.as_str(), gate)
        })
        .collect()
}

/// A job whose output was refused (a link, a device, too large) is not trusted: none of its numbers counts.
fn refused(index: &CaseIndex, job: &str) -> Option<Gate> {
    let file = index.refused(job)?;
    let next = "check the file on its node: a job's output must be a regular file below the size limit";
    Some(error(OUTPUT_REFUSED, &format!("{}: {}", file.name, file.why), next))
}

fn gate(data: &CaseData, end: &Ended, analysis: Option<&JobAnalysis>) -> Gate {
    let failure = analysis.and_then(|analysis| analysis.failure.as_ref());
    let data_wrong = analysis.is_some_and(|analysis| analysis.data_wrong);
    // Whatever the harness, Slurm or the script's own end made of the wait.
    if let Some(failure) = failure.filter(|failure| failure.cause == STEP_NOT_STARTED) {
        return step_not_started(&failure.evidence);
    }
    if let Ended::Exited { code } = end {
        let workload = &data.case.workload;
        if let (job::script::EXIT_NO_TOOL, Some(tool)) = (*code, workload.flow_tool()) {
            return Gate::Inconclusive {
                cause: TOOL_MISSING.to_owned(),
                message: format!("`{tool}` is not installed on a node of the pair"),
                next: format!("install {}; or set `nic_tool` in the inventory", to_install(tool)),
            };
        }
        if let (job::script::EXIT_TOOL_REFUSED, Some(tool)) = (*code, workload.flow_tool()) {
            let findings = analysis.map(|analysis| analysis.findings.as_slice()).unwrap_or_default();
            let is_refused =
                |finding: &&Finding| GapKind::from_code(&finding.code) == Some(GapKind::ToolRefused);
            let refused = findings.iter().find(is_refused);
            let reason = refused.map_or("its output is missing", |finding| finding.message.as_str());
            return Gate::Inconclusive {
                cause: TOOL_REFUSED.to_owned(),
                message: format!("`{tool}` refused its arguments: {reason}"),
                next: format!("install {}", to_install(tool)),
            };
        }
        // Where the exit code is the result, a line about a program is the workload's own, but for the shell's code.
        let may_lack_tool = *code == NOT_FOUND || (*code != 0 && !workload.traits().exit_code_is_result);
        if let Some(failure) = failure.filter(|failure| may_lack_tool && failure.cause == TOOL_MISSING) {
            return Gate::Inconclusive {
                cause: TOOL_MISSING.to_owned(),
                message: failure.evidence.clone(),
                next: match failure.evidence.contains("mpirun") {
                    true => "install Open MPI (in pods: in `image` of `[reach]`), or set `paths.mpirun`",
                    false => "install it on the nodes that lack it, or set its path in the inventory",
                }
                .to_owned(),
            };
        }
        // Not the exit code of the program.
        if let (125, Some(failure)) = (*code, failure.filter(|failure| failure.cause == CONTAINER_FAILED)) {
            return error(CONTAINER_FAILED, &failure.evidence, "run the command at the end of that line");
        }
        let of_pod = |cause: &str| [LAUNCH_AGENT, POD_LOST].contains(&cause);
        if let (true, Some(failure)) = (*code != 0, failure.filter(|failure| of_pod(&failure.cause))) {
            let events = kubectl_command(data.cluster, &["get", "events"]);
            let next = format!("look at its log in the case's raw files; in pods also at `{events}`");
            return error(&failure.cause, &failure.evidence, &next);
        }
        // The exit code of srun, which refused the step before its program began.
        let is_refused = failure.is_some_and(|failure| {
            failure.node.is_none()
                && [CREDENTIAL_EXPIRED, LAUNCH_FAILED, MPI_REFUSED].contains(&failure.cause.as_str())
        });
        let is_result = workload.traits().exit_code_is_result && !is_refused;
        // nccl-tests exits with 1 where data came out wrong: a measurement, and the worst one.
        if *code != 0 && !is_result && !data_wrong {
            let (cause, evidence) = match failure {
                Some(failure) => (failure.cause.clone(), failure.evidence.clone()),
                None => (end.cause(), "no cause found in its output".to_owned()),
            };
            return error(
                &cause,
                &format!("the job ended with exit code {code}: {evidence}"),
                match cause.as_str() {
                    DISK_FULL | NO_SPACE => "free space on the node, see `df -h` and `df -h /dev/shm` there",
                    DISK_QUOTA => "free space, or ask for a larger quota: see `quota` on the node",
                    MPI_REFUSED => "set `mpi` in `[reach]`; `srun --mpi=list` lists the plugins",
                    _ => "look at stderr of the job",
                },
            );
        }
        // Where nothing asks for the exit code itself, what stands beside it must not end as a pass.
        let mut assertions = data.case.assertions.iter();
        if *code != 0
            && workload.traits().exit_code_is_result
            && !assertions.any(|assertion| recipe::is_exit_code(&assertion.metric))
        {
            return Gate::Inconclusive {
                cause: EXIT_CODE.to_owned(),
                message: format!("the program ended with exit code {code}, and no assertion checks it"),
                next: "assert `command.exit_code` with `equals = 0`, or look at stderr of the job".to_owned(),
            };
        }
        // A bandwidth reached with wrong data is no bandwidth. Where nothing asks for the data itself, the numbers beside
        // it must not end as a pass.
        if let Some(check) = unasserted(data).filter(|_| data_wrong) {
            return Gate::Inconclusive {
                cause: check.cause.to_owned(),
                message: format!("{}, and no assertion checks it", check.wrong),
                next: check.next.to_owned(),
            };
        }
        if let Some(not) = analysis.and_then(|analysis| analysis.not_comparable.as_ref()) {
            let next = match not.cause.as_str() {
                cause if let Meaning::Advice(next) = data.catalogue.meaning(cause) => next,
                RAW_EDITED | RAW_GONE => "restore the file, or accept the current one with `--from collect`",
                "not-analyzed" => "try `harness replay --from analyze`, or run it again with `harness rerun`",
                _ => "check the job's output and the free space of the shared folder, then rerun the case",
            };
            return Gate::Inconclusive {
                cause: not.cause.clone(),
                message: not.why.clone(),
                next: next.to_owned(),
            };
        }
        return Gate::Open;
    }
    by_end(data.launcher, data.cluster, end, failure)
}

/// Where no recipe of the case declares a check.
const UNDECLARED: DataCheck = DataCheck {
    sound: 0.0,
    cause: "data-wrong",
    wrong: "the output reports wrong data",
    next: "add the recipe that reads it, and assert its metric",
};

/// The cause where a program failed and its exit code is not asserted.
const EXIT_CODE: &str = "exit-code";

/// The check of data that the case should assert: of what its recipes give, one with numbers comes first.
/// The check of data that no assertion makes, if there is one: one that shows wrong data, else any where none is asserted.
fn unasserted(data: &CaseData) -> Option<DataCheck> {
    let recipes = data.case.recipes.iter().filter_map(|name| data.catalogue.job_recipe(name));
    let checks: Vec<(&str, DataCheck)> = recipes
        .flat_map(|recipe| recipe.metrics)
        .filter_map(|metric| Some((&*metric.name, metric.checks?)))
        .collect();
    let rows = || data.metrics.rows().iter();
    let is_asserted = |name: &str| data.case.assertions.iter().any(|assertion| assertion.metric == name);
    let is_checked = data.case.assertions.iter().any(|assertion| recipe::checks_data(&assertion.metric));
    let is_wrong =
        |name: &str, check: &DataCheck| rows().any(|row| &*row.name == name && row.value != check.sound);
    let forgotten = checks.iter().find(|(name, check)| is_wrong(name, check) && !is_asserted(name));
    let any = || {
        let measured = checks.iter().find(|(name, _)| rows().any(|row| &*row.name == *name));
        measured.or(checks.first()).map_or(UNDECLARED, |(_, check)| *check)
    };
    forgotten.map(|(_, check)| *check).or_else(|| (!is_checked).then(any))
}

fn to_install(tool: &str) -> &'static str {
    Tool::named(tool).map_or("it", Tool::to_install)
}

pub(super) fn error(cause: &str, message: &str, next: &str) -> Gate {
    Gate::Error { cause: cause.to_owned(), message: message.to_owned(), next: next.to_owned() }
}

/// The gate that an assertion meets, if one is shut: status, cause, message, next step.
pub(super) fn shut(
    gates: &BTreeMap<&str, Gate>,
    assertion: &PlannedAssertion,
    any_job_will_do: bool,
) -> Option<(Status, String, String, String)> {
    let mut worst: Option<(Status, String, String, String)> = None;
    let mut open = 0;
    for job in &assertion.jobs {
        let (status, cause, message, next) = match gates.get(job.as_str()) {
            Some(Gate::Open) => {
                open += 1;
                continue;
            }
            Some(Gate::Error { cause, message, next }) => (Status::Error, cause, message, next),
            Some(Gate::Inconclusive { cause, message, next }) => (Status::Inconclusive, cause, message, next),
            None => continue,
        };
        let message = format!("job {job}: {message}");
        if worst.as_ref().is_none_or(|(seen, ..)| *seen == Status::Inconclusive && status == Status::Error) {
            worst = Some((status, cause.clone(), message, next.clone()));
        }
    }
    if open == 0 && worst.is_none() {
        let next = "run it again".to_owned();
        return Some((Status::Error, NOT_RUN.to_owned(), "none of its jobs was run".to_owned(), next));
    }
    // One good flow proves both its ends, whatever became of the other rounds.
    if any_job_will_do && open > 0 { None } else { worst }
}

/// Why numbers of an assertion's jobs are missing, as far as collection and recipes know: cause and message.
pub(super) fn why_missing(data: &CaseData, assertion: &PlannedAssertion) -> Option<(String, String)> {
    assertion
        .jobs
        .iter()
        .find_map(|job| why_job_lacks(data, job, assertion.node.as_deref(), &assertion.metric))
        .map(|lack| (lack.cause, lack.why))
}

/// Whether a metric is read from files of that kind.
pub(super) fn feeds(catalogue: &Catalogue, kind: FileKind, metric: &str) -> bool {
    kind.files() == Some(files_of(catalogue, metric))
}

/// The files that a metric is read from; what no recipe gives any more was printed.
fn files_of(catalogue: &Catalogue, metric: &str) -> Files {
    catalogue.metric(metric).map_or(Files::Output, |(_, metric)| metric.files)
}

/// Whether a metric is read from the reports of a profiler.
fn is_from_reports(catalogue: &Catalogue, metric: &str) -> bool {
    files_of(catalogue, metric) == Files::Reports
}

/// Whether a metric is read from what a job leaves only under a profiler or NCCL's Inspector.
pub(super) fn is_of_recording(catalogue: &Catalogue, metric: &str) -> bool {
    matches!(files_of(catalogue, metric), Files::Reports | Files::Inspector)
}

/// Whether findings of this code are why a recipe may not have given the metric, by its own declaration.
fn explains(catalogue: &Catalogue, metric: &str, code: &str) -> bool {
    catalogue.metric(metric).is_some_and(|(recipe, _)| recipe.is_cause(code))
}

/// The cause of a number that the evidence of its job cannot give.
const OTHER_EVIDENCE: &str = "other-evidence";

/// Why the job left nothing that the metric is read from, where its case names several sources.
fn other_evidence(data: &CaseData, job: &str, metric: &str) -> Option<String> {
    let planned = data.case.jobs.iter().find(|planned| planned.name == job)?;
    let evidence = planned.evidence.as_ref()?;
    let (recipe, _) = data.catalogue.metric(metric)?;
    evidence.without.iter().any(|name| *name == recipe.name).then(|| {
        let (recipe, source, why) = (recipe.name, evidence.name(), &evidence.why);
        format!("recipe `{recipe}` does not read `{source}`, the evidence of job {job}: {why}")
    })
}

/// Why a number is not there.
struct Lack {
    cause: String,
    why: String,
    /// The node whose report it is.
    node: Option<String>,
    /// The recording is lacking, which is no node's.
    is_of_no_node: bool,
}

fn why_job_lacks(data: &CaseData, job: &str, node: Option<&str>, metric: &str) -> Option<Lack> {
    let lack =
        |cause: &str, why: String| Lack { cause: cause.to_owned(), why, node: None, is_of_no_node: false };
    if let Some(why) = other_evidence(data, job, metric) {
        return Some(Lack { is_of_no_node: true, ..lack(OTHER_EVIDENCE, why) });
    }
    if is_from_reports(data.catalogue, metric) {
        let findings = &data.analysis.jobs.get(job)?.findings;
        let findings = findings.iter().filter(|finding| {
            (REPORT_CAUSES.contains(&finding.code.as_str())
                || explains(data.catalogue, metric, &finding.code))
                && (node.is_none() || finding.node.is_none() || finding.node.as_deref() == node)
        });
        // A window that the program or the workload does not reach, or a full buffer.
        let planned = data.case.jobs.iter().find(|planned| planned.name == job);
        let by_inspector = planned.is_some_and(|job| job.is_inspected() && job.profile.is_none());
        let is_of_no_node = |finding: &Finding| {
            if by_inspector {
                return true;
            }
            [mark::MISSED, OUTSIDE_WINDOW].contains(&finding.code.as_str())
                || matches!(data.catalogue.meaning(&finding.code), Meaning::NotRecorded(_))
        };
        let finding = findings.min_by_key(|finding| is_of_no_node(finding))?;
        let file = finding.file.as_deref().unwrap_or(job);
        let why = format!("{file}: {}", finding.message);
        return Some(Lack {
            cause: finding.code.clone(),
            why,
            node: finding.node.clone(),
            is_of_no_node: is_of_no_node(finding),
        });
    }
    if files_of(data.catalogue, metric) == Files::Inspector {
        let findings = data.analysis.jobs.get(job).map(|analysis| analysis.findings.as_slice());
        let mut findings = findings.unwrap_or_default().iter();
        if let Some(finding) = findings.find(|finding| explains(data.catalogue, metric, &finding.code)) {
            return Some(Lack { is_of_no_node: true, ..lack(&finding.code, finding.message.clone()) });
        }
    }
    let means = |finding: &Finding| data.catalogue.meaning(&finding.code);
    // A sampler that ended says why its capture is not there.
    let ended = data.analysis.jobs.get(job).and_then(|analysis| {
        let of_node =
            |finding: &&Finding| node.is_none() || finding.node.is_none() || finding.node.as_deref() == node;
        analysis.findings.iter().filter(of_node).find(|finding| means(finding) == Meaning::NotCounted)
    });
    if let Some(finding) = ended.filter(|_| feeds(data.catalogue, FileKind::Counters, metric)) {
        let file = finding.file.as_deref().unwrap_or(job);
        let why = format!("{file}: {}", finding.message);
        return Some(Lack { node: finding.node.clone(), ..lack(&finding.code, why) });
    }
    let missing = data.collected.missing.iter().find(|missing| {
        missing.job == job
            && feeds(data.catalogue, missing.kind, metric)
            && (node.is_none() || missing.node.is_none() || missing.node.as_deref() == node)
    });
    if let Some(missing) = missing {
        return Some(lack("output-missing", format!("raw/{job}/{}: {}", missing.name, missing.why)));
    }
    let analysis = data.analysis.jobs.get(job)?;
    let damaged = analysis.findings.iter().find_map(|finding| match means(finding) {
        Meaning::NoOutput => Some((finding.code.as_str(), finding)),
        Meaning::Garbled => Some(("garbled", finding)),
        _ => None,
    });
    if let Some((cause, finding)) = damaged {
        let file = finding.file.as_deref().unwrap_or(job);
        return Some(lack(cause, format!("{file}: {}", finding.message)));
    }
    let failure = analysis.failure.as_ref()?;
    Some(lack(&failure.cause, failure.evidence.clone()))
}

/// Whether every job over several nodes ran with software or a setting that the instance's profile does not expect.
fn other_setup_everywhere(data: &CaseData) -> bool {
    let mut over_nodes = data.case.jobs.iter().filter(|job| job.nodes.len() > 1).peekable();
    let is_other = |job: &PlannedJob| {
        let findings = data.analysis.jobs.get(&job.name).map(|analysis| analysis.findings.as_slice());
        let mut findings = findings.unwrap_or_default().iter();
        findings.any(|finding| data.catalogue.meaning(&finding.code) == Meaning::Setup)
    };
    over_nodes.peek().is_some() && over_nodes.all(is_other)
}

/// Whether most nodes of a job lack their reports or counters for the same reason: the profiler's setup, the program's, or
/// that of the sampler beside it.
fn is_of_most(data: &CaseData, planned: &PlannedJob, lack: &Lack) -> bool {
    if lack.node.is_none() {
        return false;
    }
    let ranks = planned.profile.iter().flat_map(|profile| &profile.ranks);
    let asked: BTreeSet<&str> = match data.catalogue.meaning(&lack.cause) {
        Meaning::NotCounted => planned.nodes.iter().map(String::as_str).collect(),
        _ => ranks.map(|rank| rank.node.as_str()).collect(),
    };
    let findings = data.analysis.jobs.get(&planned.name).map(|analysis| analysis.findings.as_slice());
    let findings = findings.unwrap_or_default().iter().filter(|finding| finding.code == lack.cause);
    let lacking: BTreeSet<&str> = findings.filter_map(|finding| finding.node.as_deref()).collect();
    are_most(lacking.intersection(&asked).count(), asked.len())
}

/// How each job of the case went.
pub(super) fn outcomes(
    data: &CaseData,
    index: &CaseIndex,
    gates: &BTreeMap<&str, Gate>,
    verdicts: &[Verdict],
) -> Vec<JobOutcome> {
    // What all jobs over several nodes share is a setting or a library that all lack, and no node's fault.
    let everywhere = other_setup_everywhere(data);
    let mut judged: BTreeMap<&str, BTreeMap<String, bool>> = BTreeMap::new();
    let mut worst = WorstNumbers::default();
    let nodes_of: BTreeMap<&str, usize> =
        data.case.jobs.iter().map(|job| (job.name.as_str(), job.nodes.len())).collect();
    let mut unmeasured: BTreeMap<&str, Lack> = BTreeMap::new();
    for (assertion, verdict) in data.case.assertions.iter().zip(verdicts) {
        for job in &assertion.jobs {
            match verdict.status {
                // Nothing separates it from its peers: it neither clears nor blames a node.
                Status::Fail if verdict.cause.as_deref() == Some(BELOW_FLOOR) => {}
                // Few peers that agree may all be low, or each hold a bad node: that clears no node.
                Status::Pass if few_peers(verdict).is_some() => {}
                Status::Pass | Status::Fail => {
                    let failed = judged.entry(job).or_default().entry(assertion.metric.clone()).or_default();
                    *failed |= verdict.status == Status::Fail && !everywhere;
                    if verdict.status == Status::Fail {
                        let nodes = nodes_of.get(job.as_str()).copied().unwrap_or_default();
                        worst.add(job, (nodes, data.case.workload.link_within_node()), assertion, verdict);
                    }
                }
                // A number that is missing: where the job ended well, something happened to its output. Of a job that
                // did not, its gate says more, and is asked first.
                Status::Inconclusive => {
                    let node = assertion.node.as_deref();
                    if verdict.cause.is_some()
                        && let Some(why) = why_job_lacks(data, job, node, &assertion.metric)
                    {
                        let is_more = |known: &Lack| known.is_of_no_node && !why.is_of_no_node;
                        if unmeasured.get(job.as_str()).is_none_or(is_more) {
                            unmeasured.insert(job, why);
                        }
                    }
                }
                _ => {}
            }
        }
    }
    // A job that was stopped, pushed aside, that waited in the queue or that failed on this machine is evidence against no
    // node.
    let ran = |record: &JobRecord| match &record.end {
        Ended::NotRun { .. }
        | Ended::Interrupted { .. }
        | Ended::Cancelled
        | Ended::Preempted
        | Ended::Requeued { .. }
        | Ended::FolderFailed { .. }
        | Ended::AllocationOver { .. }
        | Ended::Deadline => false,
        // What sbatch refuses has come to no node; how a lost job ended is unknown; memory is the program's, or its limit's;
        // what kept several nodes from answering is no node's.
        Ended::LaunchFailed { .. }
        | Ended::OutOfMemory
        | Ended::HostUnreachable { .. }
        | Ended::QueueStuck { .. }
        | Ended::LeftOut { .. }
        | Ended::Lost { .. } => record.blamed.is_some(),
        _ => true,
    };
    data.case
        .jobs
        .iter()
        .filter_map(|planned| {
            let record = index.record(&planned.name)?;
            if !ran(record) {
                return None;
            }
            let gate = gates.get(planned.name.as_str());
            let lack = unmeasured.get(planned.name.as_str());
            let cause = gate.and_then(Gate::cause);
            let is_unrecorded = cause.is_none()
                && lack.is_some_and(|lack| lack.is_of_no_node || is_of_most(data, planned, lack));
            let cause = cause.or_else(|| lack.map(|lack| lack.cause.as_str()));
            let judged = judged.remove(planned.name.as_str()).unwrap_or_default();
            // What else it measured counts all the same.
            if (is_unrecorded && judged.is_empty()) || cause.is_some_and(|cause| OF_NO_NODE.contains(&cause))
            {
                return None;
            }
            let failure =
                data.analysis.jobs.get(&planned.name).and_then(|analysis| analysis.failure.as_ref());
            let blamed =
                record.blamed.as_ref().map(|blamed| (Some(blamed.node.clone()), blamed.evidence.clone()));
            // Either end of a failed rendezvous may be at fault, and an exception is the program's.
            let blames_no_node = |cause: &str| data.catalogue.meaning(cause) == Meaning::NoPlace;
            if !matches!(record.end, Ended::Exited { code: 0 })
                && failure.is_some_and(|failure| blames_no_node(&failure.cause))
            {
                return None;
            }
            let bad = match gate {
                Some(Gate::Error { cause, message, .. }) => {
                    let (node, evidence) = blamed
                        .or_else(|| failure.map(|failure| (failure.node.clone(), failure.evidence.clone())))
                        .unwrap_or((None, message.clone()));
                    Some(Bad { cause: cause.clone(), node, evidence })
                }
                Some(Gate::Inconclusive { cause, message, .. }) => {
                    Some(Bad { cause: cause.clone(), node: None, evidence: message.clone() })
                }
                _ => lack.filter(|_| !is_unrecorded).map(|lack| Bad {
                    cause: lack.cause.clone(),
                    node: lack.node.clone(),
                    evidence: lack.why.clone(),
                }),
            };
            Some(JobOutcome {
                case: data.case.name.clone(),
                kind: data.case.workload.traits().work,
                job: planned.name.clone(),
                nodes: planned.nodes.clone(),
                bad,
                judged,
                worst: worst.for_job(&planned.name),
            })
        })
        .collect()
}
