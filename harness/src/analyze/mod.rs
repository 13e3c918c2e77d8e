//! Computes metrics and findings from collected files, with the recipes that the plan names. It judges nothing.

mod by_job;
mod inherited;
mod inspector_records;
mod last_words;
mod reports;

use self::by_job::ByJob;
use crate::panics;
use cluster::launch::stderr_blame;
use cluster::launch::waiting_step::waiting_step;
use job::script::files;
use logs::nccl_tests::FailureClass;
use metric::finding::Finding;
use metric::lacks::NotComparable;
use metric::{Dim, Dims, Metric, Metrics};
use model::artefact::{
    Analysis, CaseJobs, Change, Collected, CollectedFile, Ended, FileKind, Format, INTERNAL_ERROR,
    InstanceFacts, JobAnalysis, JobRecord, PlannedCase, PlannedJob, Probe, ProbedNode, STEP_NOT_STARTED,
    Unfit, Value, WorkloadFacts, WorkloadFailure,
};
use recipes::catalogue::Catalogue;
use recipes::recipe::training_log::torch_failure::EXCEPTION;
use recipes::recipe::{ExtractStore, FileRole, InputFile, JobInput, Workload, nccl_tests, nic_flows};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;
use verdict::fingerprint;
use verdict::profile_audit::RankReport;

/// The metrics of a case, and the findings of its recipes. `folder` is the case's folder; `kept` holds extracts of
/// reports that were already read.
pub(crate) fn analyze(
    case: &PlannedCase,
    instance: &InstanceFacts,
    jobs: &CaseJobs,
    collected: &Collected,
    unfit: &Unfit,
    folder: &Path,
    (catalogue, kept, probe): (&Catalogue, &Arc<ExtractStore>, Option<&Probe>),
) -> (Metrics, Analysis) {
    let mut analysis = Analysis { format: Format, jobs: BTreeMap::new() };
    let mut rows: Vec<Metric> = Vec::new();
    let by_job = ByJob::new(collected);
    for (planned, record) in jobs_that_ran(case, jobs) {
        if let Some(why) = unfit.get(&planned.name) {
            let mut result = JobAnalysis { not_comparable: Some(why.clone()), ..JobAnalysis::default() };
            result.findings.push(Finding::new(&why.cause, why.why.clone()));
            analysis.jobs.insert(planned.name.clone(), result);
            continue;
        }
        let collected = &by_job.job(&planned.name);
        let job = AnalyzedJob { case, instance, planned, record, collected, folder, catalogue, probe };
        let analysed = panics::caught("analyze", || analyze_job(job, kept));
        let (metrics, result) = analysed.unwrap_or_else(|why| (Vec::new(), not_analysed(planned, &why)));
        rows.extend(metrics);
        analysis.jobs.insert(planned.name.clone(), result);
    }
    rows.extend(nic_rates(&rows));
    rows.extend(inspector_records::overheads(case, &rows));
    (Metrics::from_rows(rows), analysis)
}

/// What is known of a job that ran.
#[derive(Clone, Copy)]
struct AnalyzedJob<'a> {
    case: &'a PlannedCase,
    instance: &'a InstanceFacts,
    planned: &'a PlannedJob,
    record: &'a JobRecord,
    collected: &'a Collected,
    folder: &'a Path,
    catalogue: &'a Catalogue,
    probe: Option<&'a Probe>,
}

fn analyze_job(job: AnalyzedJob<'_>, kept: &Arc<ExtractStore>) -> (Vec<Metric>, JobAnalysis) {
    let AnalyzedJob { case, instance, planned, record, collected, folder, catalogue, probe } = job;
    let reports = reports::audit(planned, collected, folder);
    let kept = kept.clone();
    let mut rows = Vec::new();
    let gpu_places = probe.map(|probe| gpu_places(planned, probe)).unwrap_or_default();
    let input = job_input(case, instance, planned, record, collected, &reports, folder);
    // A container may have a name of its own.
    let on_hosts = probe.filter(|_| fingerprint::image(planned).is_none());
    let host_names = on_hosts.map(|probe| host_names(&planned.nodes, probe)).unwrap_or_default();
    let input = JobInput { kept, gpu_places, host_names, ..input };
    let mut result = JobAnalysis::default();
    result.findings.extend(reports.into_iter().flat_map(|report| report.findings));
    result.findings.extend(reports::chatter(planned, collected, folder));
    if let Some(inherited) = inherited::read(planned, collected, folder) {
        result.versions.insert(inherited::PART.to_owned(), [inherited.variables].into());
        result.findings.extend(inherited.finding);
    }
    for name in &case.recipes {
        // The plan refuses a suite that names a recipe which does not exist.
        let Some(recipe) = catalogue.job_recipe(name) else { continue };
        // Without the profiler there are no reports, and none is missing.
        if planned.is_bare() && !recipe.tables.is_empty() {
            continue;
        }
        // What reads another evidence than the job has would report that as missing.
        if planned.evidence.as_ref().is_some_and(|evidence| evidence.without.contains(name)) {
            continue;
        }
        let mut output = (recipe.run)(&input);
        if let Some(probe) = probe {
            inspector_records::explain(planned, probe, &mut output.findings);
        }
        rows.extend(output.metrics);
        result.findings.extend(output.findings);
        result.data_wrong |= output.data_wrong;
        for (name, versions) in output.versions {
            result.versions.entry(name).or_default().extend(versions);
        }
        result.not_comparable = result.not_comparable.or(output.not_comparable);
        result.doubts.extend(output.doubts);
        result.absent.extend(output.absent);
        result.failure = result.failure.or(output.failure.map(|failure| WorkloadFailure {
            cause: failure.cause,
            node: failure.node,
            evidence: failure.evidence,
        }));
    }
    result.findings.extend(planned.evidence.as_ref().map(|evidence| {
        Finding::new("evidence-source", format!("evidence: {}: {}", evidence.name(), evidence.why))
    }));
    result.findings.extend(record.findings.iter().cloned());
    result.findings.extend(missing_files(planned, collected));
    result.findings.extend(changed_files(planned, collected));
    // The node that the launcher blames comes before the workload's, unless it only exited first; except for a training
    // that reports itself whom it waited for: there the first to exit is one of those that waited.
    // An exception says more than an exit code, and less than a lost rank or node.
    let weak = result.failure.as_ref().is_some_and(|own| own.cause == EXCEPTION);
    let knows = result.failure.is_some() && case.workload.traits().names_culprit && !weak;
    result.last_words = last_words::collect(planned, &record.end, collected, folder);
    let blamed = launcher_blame(planned, &record.end, collected, folder).filter(|_| !knows);
    let blamed = step_not_started(planned, &record.end, collected, folder).or(blamed);
    if let Some(blamed) = blamed.filter(|blamed| !(weak && blamed.cause == stderr_blame::RANK_FAILED)) {
        let blamed = in_own_words(blamed, &result.last_words);
        result.failure = Some(merged(result.failure.take().filter(|_| !weak), blamed, &planned.nodes));
    }
    (rows, result)
}

/// The failure of a job of which its workload reports one, and its launcher another.
fn merged(own: Option<WorkloadFailure>, by_launcher: WorkloadFailure, nodes: &[String]) -> WorkloadFailure {
    // NCCL's own error without a reason is what ranks say whose peer is gone, and what they say of themselves.
    let of_peers = [FailureClass::ConnectionLost, FailureClass::TimedOut, FailureClass::NcclError]
        .map(FailureClass::name);
    let of_reporters = [FailureClass::CudaError, FailureClass::OutOfMemory, FailureClass::NetworkNotFound]
        .map(FailureClass::name);
    let names_reporter = |own: &WorkloadFailure| {
        let said = own.evidence.split_once(": ").map_or(own.evidence.as_str(), |(_, said)| said);
        nccl_tests::named_node(own.node.as_deref().unwrap_or(said), nodes).is_some()
    };
    match own {
        // The workload names a node by a fault of its own, or says less.
        Some(own) if stderr_blame::is_of_no_node(&by_launcher.cause) => match own.node {
            Some(_) => own,
            None => by_launcher,
        },
        // Who exits first has noticed it first: the peer that it missed may be the one at fault.
        Some(own)
            if by_launcher.cause == stderr_blame::RANK_FAILED && of_peers.contains(&own.cause.as_str()) =>
        {
            own
        }
        // Nodes complain of their own: one alone is at fault, several alike are not, whoever exited first.
        Some(own)
            if by_launcher.cause == stderr_blame::RANK_FAILED
                && of_reporters.contains(&own.cause.as_str())
                && names_reporter(&own) =>
        {
            WorkloadFailure { node: own.node.and_then(|host| nccl_tests::named_node(&host, nodes)), ..own }
        }
        Some(own) => WorkloadFailure { node: by_launcher.node, ..own },
        None => by_launcher,
    }
}

/// By the fact `pci_devices`: `0000:53:00.0 10de:2330 x16`.
fn gpu_places(planned: &PlannedJob, probe: &Probe) -> BTreeMap<String, BTreeSet<String>> {
    let of_node = |node: &ProbedNode| {
        let Some(Value::Names(devices)) = node.facts.get("pci_devices") else { return BTreeSet::new() };
        let place = |device: &String| {
            let (place, model) = device.split_once(' ')?;
            let place = place.rsplit_once('.').map_or(place, |(place, _function)| place);
            model.starts_with("10de:").then(|| place.to_owned())
        };
        devices.iter().filter_map(place).collect()
    };
    let of_job = probe.nodes.iter().filter(|node| planned.nodes.contains(&node.node));
    of_job.map(|node| (node.node.clone(), of_node(node))).filter(|(_, places)| !places.is_empty()).collect()
}

/// By node. A name that several nodes have names none of them.
fn host_names(nodes: &[String], probe: &Probe) -> BTreeMap<String, String> {
    let first_part = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    let named = || probe.nodes.iter().filter_map(|node| Some((node, node.host_name.as_deref()?)));
    let mut nodes_of: BTreeMap<String, usize> = BTreeMap::new();
    named().for_each(|(_, name)| *nodes_of.entry(first_part(name)).or_default() += 1);
    let of_job = named().filter(|(node, _)| nodes.contains(&node.node));
    let names_one = of_job.filter(|(_, name)| nodes_of.get(&first_part(name)) == Some(&1));
    names_one.map(|(node, name)| (node.node.clone(), name.to_owned())).collect()
}

/// The result of a job whose files made a recipe panic: it has no metrics, and the other jobs stand.
fn not_analysed(planned: &PlannedJob, why: &str) -> JobAnalysis {
    let message = format!("internal error while the job's files were read: {}", why.escape_debug());
    let mut finding = Finding::new(INTERNAL_ERROR, &message);
    if let [node] = planned.nodes.as_slice() {
        finding = finding.node(node);
    }
    JobAnalysis {
        findings: vec![finding],
        not_comparable: Some(NotComparable { cause: INTERNAL_ERROR.to_owned(), why: message }),
        ..JobAnalysis::default()
    }
}

/// The input of recipes for each job with collected files.
pub(crate) fn inputs(
    case: &PlannedCase,
    instance: &InstanceFacts,
    jobs: &CaseJobs,
    collected: &Collected,
    unfit: &Unfit,
    folder: &Path,
) -> Vec<JobInput> {
    let by_job = ByJob::new(collected);
    let fit = jobs_that_ran(case, jobs).filter(|(planned, _)| !unfit.contains_key(&planned.name));
    fit.map(|(planned, record)| {
        let collected = &by_job.job(&planned.name);
        let reports = reports::audit(planned, collected, folder);
        job_input(case, instance, planned, record, collected, &reports, folder)
    })
    .collect()
}

fn jobs_that_ran<'a>(
    case: &'a PlannedCase,
    jobs: &'a CaseJobs,
) -> impl Iterator<Item = (&'a PlannedJob, &'a JobRecord)> {
    // Of two records of one name the first counts.
    let records: BTreeMap<&str, &JobRecord> =
        jobs.jobs.iter().rev().map(|record| (record.name.as_str(), record)).collect();
    let recorded =
        case.jobs.iter().filter_map(move |planned| Some((planned, *records.get(planned.name.as_str())?)));
    recorded.filter(|(_, record)| !matches!(record.end, Ended::NotRun { .. } | Ended::LeftOut { .. }))
}

fn job_input(
    case: &PlannedCase,
    instance: &InstanceFacts,
    planned: &PlannedJob,
    record: &JobRecord,
    collected: &Collected,
    reports: &[RankReport],
    folder: &Path,
) -> JobInput {
    let files = collected.files.iter().filter(|file| file.job == planned.name).map(|file| InputFile {
        role: match file.kind {
            FileKind::NcclTests => FileRole::NcclTests,
            FileKind::GpuNcclTests => FileRole::GpuNcclTests,
            FileKind::Counters => FileRole::Counters,
            FileKind::Flow => FileRole::Flow,
            FileKind::Stdout => FileRole::Stdout,
            FileKind::Stderr => FileRole::Stderr,
            FileKind::FlightDump => FileRole::FlightDump,
            FileKind::FlightRequest => FileRole::FlightRequest,
            FileKind::Ras => FileRole::Ras,
            FileKind::GpuState => FileRole::GpuState,
            FileKind::Inspector => FileRole::Inspector,
            // The stdout of a command, which may print nothing.
            FileKind::Log if is_stdout(&file.path) => FileRole::Stdout,
            FileKind::Log | FileKind::ProfileAccount | FileKind::ProfileTable | FileKind::ProfileReport => {
                FileRole::Other
            }
        },
        path: folder.join(&file.path),
        shown: file.path.clone(),
        node: file.node.clone(),
        part: file.part.clone(),
        rank: file.rank,
    });
    JobInput {
        case: case.name.clone(),
        job: planned.name.clone(),
        round: planned.round,
        nodes: planned.nodes.clone(),
        nics: instance.nics.clone(),
        tx_counters: instance.tx_counters.clone(),
        rx_counters: instance.rx_counters.clone(),
        conservation_shown: instance.conservation_shown,
        workload: match &case.workload {
            WorkloadFacts::NcclTests {
                op, sizes, ranks_per_communicator, checked, by_torch, sweep, ..
            } => Workload::NcclTests {
                op: *op,
                sizes: sizes.clone(),
                ranks_per_communicator: *ranks_per_communicator,
                checked: *checked,
                by_torch: *by_torch,
                sweep: sweep.clone(),
            },
            WorkloadFacts::NicPairs { tool, op, .. } => {
                Workload::NicPairs { tool: tool.clone(), op: op.clone() }
            }
            WorkloadFacts::Command { .. } => Workload::Command,
            WorkloadFacts::NodeTool { seconds, level, .. } => {
                Workload::NodeTool { seconds: *seconds, level: *level }
            }
            WorkloadFacts::Training { facts, .. } => {
                Workload::Training { facts: facts.clone(), ranks: planned.ranks }
            }
        },
        exit_code: match record.end {
            Ended::Exited { code } => Some(code),
            _ => None,
        },
        seconds: record.seconds,
        files: files.chain(reports.iter().filter_map(|report| reports::export(report, folder))).collect(),
        expected_exports: reports.iter().map(|report| (report.rank, report.node.clone())).collect(),
        window: reports::window(planned, collected, folder),
        gpu_places: BTreeMap::new(),
        host_names: BTreeMap::new(),
        kept: Arc::default(),
    }
}

fn is_stdout(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    name == files::STDOUT || name.starts_with(&files::node_file(files::STDOUT, ""))
}

/// One finding per kind of file that was not collected, with the names.
fn missing_files(planned: &PlannedJob, collected: &Collected) -> Vec<Finding> {
    let mut by_reason: BTreeMap<(FileKind, &str), Vec<&str>> = BTreeMap::new();
    for missing in collected.missing.iter().filter(|missing| missing.job == planned.name) {
        by_reason.entry((missing.kind, &missing.why)).or_default().push(&missing.name);
    }
    by_reason
        .into_iter()
        .map(|((_, why), names)| {
            let names = base::text::first_few(&names, 4);
            Finding::new("output-missing", format!("{}: {names}: {why}", planned.name))
        })
        .collect()
}

/// Files that were changed after the run are findings, so that their numbers are marked.
fn changed_files(planned: &PlannedJob, collected: &Collected) -> impl Iterator<Item = Finding> {
    let of_job = collected.changed.iter().filter(|changed| changed.job == planned.name);
    of_job.map(|changed| {
        let how = match changed.how {
            Change::Added => "was added after the run collected its files",
            Change::Edited => "was changed after the run collected it; the current content is used",
            Change::Gone => "was deleted after the run collected it",
        };
        Finding::new("raw-changed", format!("{}: {how}", changed.path)).file(changed.path.as_str())
    })
}

/// The node that the launcher's output blames. Where a job was ended from outside, by its limit or a person, the output
/// names only whose tasks ended first, so that no node is blamed.
fn launcher_blame(
    planned: &PlannedJob,
    end: &Ended,
    collected: &Collected,
    folder: &Path,
) -> Option<WorkloadFailure> {
    let failed_by_itself = match end {
        Ended::Exited { code } => *code != 0,
        Ended::Killed { .. }
        | Ended::NodeFail
        | Ended::BootFail
        | Ended::OutOfMemory
        | Ended::Lost { .. } => true,
        _ => false,
    };
    if !failed_by_itself {
        return None;
    }
    let files = collected.files.iter().filter(|file| file.job == planned.name);
    let mut blame = stderr_blame::Blame::new(&planned.nodes);
    if planned.files.iter().any(|file| file.name == files::AGENT) {
        blame = blame.in_pods();
    }
    let may_blame = |file: &&CollectedFile| matches!(file.kind, FileKind::Stderr | FileKind::Log);
    for file in files.filter(|file| may_blame(file) && !is_of_sampler(file)) {
        if let Ok(opened) = File::open(folder.join(&file.path)) {
            blame.read(BufReader::new(opened), file.node.as_deref());
        }
    }
    blame.failure()
}

/// What ended the steps of samplers did not end the workload's.
fn is_of_sampler(file: &CollectedFile) -> bool {
    file.path.rsplit('/').next() == Some(files::SAMPLER_LOG)
}

/// Of a job that ended while srun waited to start its workload: no node had to do with that. A node that was lost says more.
fn step_not_started(
    planned: &PlannedJob,
    end: &Ended,
    collected: &Collected,
    folder: &Path,
) -> Option<WorkloadFailure> {
    let may_wait = match end {
        Ended::Exited { code } => *code != 0,
        Ended::TimeLimit { .. } | Ended::Stall { .. } | Ended::Killed { .. } => true,
        _ => false,
    };
    if !may_wait {
        return None;
    }
    let files = collected.files.iter().filter(|file| file.job == planned.name);
    let mut errors = files.filter(|file| file.kind == FileKind::Stderr);
    let waiting = errors.find_map(|file| {
        let opened = File::open(folder.join(&file.path)).ok()?;
        waiting_step(BufReader::new(opened))
    });
    waiting.map(|evidence| WorkloadFailure { cause: STEP_NOT_STARTED.to_owned(), node: None, evidence })
}

/// Puts the last line of output before the exit of a task, which says less.
fn in_own_words(mut blamed: WorkloadFailure, words: &[String]) -> WorkloadFailure {
    if blamed.cause == stderr_blame::RANK_FAILED
        && let Some(last) = words.last()
    {
        blamed.evidence = format!("{last} ({})", blamed.evidence);
    }
    blamed
}

/// The rate of a NIC in a direction: the best of its flows over all rounds.
fn nic_rates(rows: &[Metric]) -> Vec<Metric> {
    let mut best: BTreeMap<Dims, f64> = BTreeMap::new();
    for row in rows.iter().filter(|row| *row.name == nic_flows::FLOW_RATE.name) {
        let mut dims = Dims::new();
        for dim in [Dim::Case, Dim::Node, Dim::Nic, Dim::Direction] {
            if let Some(value) = row.dims.get(dim) {
                dims.set(dim, value.clone());
            }
        }
        let best = best.entry(dims).or_insert(row.value);
        *best = best.max(row.value);
    }
    best.into_iter().map(|(dims, rate)| nic_flows::NIC_RATE.of(dims, rate)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_exits_first_because_a_peer_is_gone_is_not_blamed() {
        let failure = |cause: &str, node: Option<&str>| WorkloadFailure {
            cause: cause.to_owned(),
            node: node.map(str::to_owned),
            evidence: String::new(),
        };
        let of =
            |own: &str, launcher: &str| merged(Some(failure(own, None)), failure(launcher, Some("n1")), &[]);
        for own in ["connection-lost", "timed-out", "nccl-error"] {
            assert_eq!(of(own, "rank-failed"), failure(own, None));
            assert_eq!(of(own, "rank-died"), failure(own, Some("n1")));
        }
        assert_eq!(of("cuda-error", "rank-failed"), failure("cuda-error", Some("n1")));
        assert_eq!(of("connection-lost", "disk-quota"), failure("disk-quota", Some("n1")));
    }

    #[test]
    fn who_complains_of_its_own_is_named_and_not_who_exits_first() {
        let nodes = ["n1", "n2"].map(str::to_owned);
        let of = |node: Option<&str>, said: &str| {
            let own = WorkloadFailure {
                cause: "out-of-memory".to_owned(),
                node: node.map(str::to_owned),
                evidence: format!("n1.out:7: {said}"),
            };
            let exited = WorkloadFailure {
                cause: "rank-failed".to_owned(),
                node: Some("n1".to_owned()),
                evidence: String::new(),
            };
            merged(Some(own), exited, &nodes).node
        };
        let said = "n2: Test CUDA failure common.cu:892 'out of memory'";
        assert_eq!(of(Some("n2"), said).as_deref(), Some("n2"));
        assert_eq!(of(Some("n2.x"), said).as_deref(), Some("n2"));
        // Several said so.
        assert_eq!(of(None, said), None);
        // Who it was is known by nothing else.
        assert_eq!(of(None, "Cuda failure common.cu:77 'out of memory'").as_deref(), Some("n1"));
        assert_eq!(of(Some("pod-7"), said).as_deref(), Some("n1"));
    }

    #[test]
    fn what_ended_a_sampler_is_not_why_the_workload_died() {
        let folder = tempfile::tempdir().expect("a folder");
        let expired =
            "srun: error: Task launch for StepId=4.0 failed on node p5-001: Job credential expired\n";
        let died = "srun: error: p5-002: task 8: Segmentation fault (core dumped)\n";
        std::fs::write(folder.path().join(files::SAMPLER_LOG), expired).expect("written");
        std::fs::write(folder.path().join(files::STDERR), died).expect("written");
        let planned = fixture::plan().cases.remove(0).jobs.remove(0);
        let file = |name: &str, kind| CollectedFile {
            job: planned.name.clone(),
            path: name.to_owned(),
            kind,
            node: None,
            part: None,
            rank: None,
            bytes: 1,
            sha256: String::new(),
            redacted: 0,
        };
        let files = [file(files::SAMPLER_LOG, FileKind::Log), file(files::STDERR, FileKind::Stderr)];
        let end = Ended::Exited { code: 139 };
        let collected = |files: &[CollectedFile]| Collected {
            format: Format,
            files: files.to_vec(),
            missing: Vec::new(),
            changed: Vec::new(),
            simulated: Vec::new(),
        };
        let blamed = |files: &[CollectedFile]| {
            let blamed = launcher_blame(&planned, &end, &collected(files), folder.path());
            blamed.map(|failure| (failure.cause, failure.node.unwrap_or_default()))
        };
        assert_eq!(blamed(&files), Some(("rank-died".to_owned(), "p5-002".to_owned())));
        assert_eq!(blamed(&files[..1]), None);
        assert!(last_words::collect(&planned, &end, &collected(&files[..1]), folder.path()).is_empty());
    }

    #[test]
    fn a_host_name_that_several_nodes_have_names_none_of_them() {
        let node = |(node, name): &(&str, Option<&str>)| ProbedNode {
            node: (*node).to_owned(),
            host_name: name.map(str::to_owned),
            ..ProbedNode::default()
        };
        let probe = |nodes: &[(&str, Option<&str>)]| Probe {
            format: Format,
            harness: "0.1.0".to_owned(),
            simulated: false,
            inventory: "a".to_owned(),
            instance: "p5".to_owned(),
            at: "2026-01-01T00:00:00Z".to_owned(),
            nodes: nodes.iter().map(node).collect(),
        };
        let of_job = ["a", "b"].map(str::to_owned);
        let read = |nodes: &[(&str, Option<&str>)]| host_names(&of_job, &probe(nodes));
        let known = read(&[("a", Some("ip-1.x")), ("b", None), ("c", Some("ip-3"))]);
        assert_eq!(known, [("a".to_owned(), "ip-1.x".to_owned())].into());
        assert!(read(&[("a", Some("ip-1.x")), ("c", Some("ip-1.y"))]).is_empty());
    }
}
