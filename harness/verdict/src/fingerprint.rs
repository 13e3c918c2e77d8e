//! The software and settings that a job's numbers depend on: versions from its own log and from the probe of its nodes,
//! the image that it ran in, and the variables that its script sets. The caller decides what a difference means.

use base::redact::mask_accounts;
use job::script::{self, GpuRequest, Start, Step, files};
use model::artefact::{CaseVerdict, Plan, PlannedJob, Probe};
use std::collections::{BTreeMap, BTreeSet};

/// Each part with every version that was reported.
pub(crate) type Fingerprint = BTreeMap<String, BTreeSet<String>>;

/// Parts that must be equal for two numbers to be comparable: facts of the probe by name, the version that NCCL prints,
/// and the image.
pub const COMPARABLE: [&str; 9] =
    ["nccl", "driver", "cuda", "libfabric", "efa_installer", "ofi_nccl", "kernel", "nsys", IMAGE];

/// Parts that are reported too, and make no number incomparable by themselves.
const INFORMATIVE: [&str; 6] = ["nccl-tests", "efa", "os", "gdrdrv", "environment", "gpu_clocks"];

const IMAGE: &str = "image";
const SLURM: &str = "slurm";

/// The part of a baseline's fingerprint that is read from a job's plan, so that it is always known.
pub const VARIABLES: &str = "variables";

/// How variables begin that change what a transfer costs.
const MATTERING: [&str; 5] = ["NCCL_", "OFI_NCCL_", "FI_", "RDMAV_", "CUDA_DEVICE_MAX_CONNECTIONS"];
/// Those of them that only change what is logged.
const LOGGING: [&str; 2] = ["NCCL_DEBUG", "FI_LOG_"];

/// Whether a variable changes what a transfer costs, by its name.
pub fn matters(name: &str) -> bool {
    MATTERING.iter().any(|with| name.starts_with(with)) && !LOGGING.iter().any(|with| name.starts_with(with))
}

/// Adds the facts of the job's nodes from the probe, and the image with the `digests` that its nodes have of it, to the versions
/// from the job's log, which come first. A part that one of the nodes does not report is left unknown.
pub fn complete(
    fingerprint: &mut Fingerprint,
    job: &PlannedJob,
    probe: Option<&Probe>,
    digests: &BTreeSet<String>,
) {
    let names = COMPARABLE.iter().chain(&INFORMATIVE).filter(|name| **name != IMAGE);
    for name in names {
        if !fingerprint.contains_key(*name)
            && let Some(versions) = probe.and_then(|probe| node_versions(probe, &job.nodes, name))
        {
            fingerprint.insert((*name).to_owned(), versions);
        }
    }
    // Which nsys lies on the nodes says nothing of a job that is not profiled.
    if job.profile.is_none() {
        fingerprint.remove("nsys");
    }
    if let Some(image) = image(job) {
        let images = match digests.is_empty() {
            true => [image].into(),
            false => digests.iter().map(|digest| with_digest(&image, digest)).collect(),
        };
        fingerprint.insert(IMAGE.to_owned(), images);
    }
    if let Some(asked) = slurm(job) {
        fingerprint.insert(SLURM.to_owned(), [asked].into());
    }
}

/// The options of Slurm beside nodes and time that can change numbers; nothing where they are the defaults of an
/// inventory.
fn slurm(job: &PlannedJob) -> Option<String> {
    let text = job.files.iter().find(|file| file.name == files::JOB)?.text.as_deref()?;
    let script = text.contains("#SBATCH").then(|| script::read(text).ok())??;
    let Start::Slurm(asked) = &script.start else { return None };
    let gpus = match asked.gpus {
        GpuRequest::Gres => None,
        GpuRequest::GpusPerNode => Some("gpus=gpus-per-node".to_owned()),
        GpuRequest::None => Some("gpus=none".to_owned()),
    };
    let mpi = script.steps.iter().find_map(|step| match step {
        Step::Run(run) => run.mpi.as_ref().filter(|mpi| *mpi != "pmix"),
        _ => None,
    });
    let mut parts: Vec<String> = gpus.into_iter().collect();
    parts.extend(mpi.map(|mpi| format!("mpi={mpi}")));
    parts.extend(asked.mem.iter().map(|mem| format!("mem={mem}")));
    parts.extend(asked.sbatch.iter().map(|argument| format!("sbatch={argument}")));
    parts.extend(asked.srun.iter().map(|argument| format!("srun={argument}")));
    (!parts.is_empty()).then(|| parts.join(" "))
}

fn node_versions(probe: &Probe, nodes: &[String], name: &str) -> Option<BTreeSet<String>> {
    let one = |node: &String| {
        let probed = probe.nodes.iter().find(|probed| probed.node == *node)?;
        probed.facts.get(name).map(ToString::to_string)
    };
    nodes.iter().map(one).collect::<Option<BTreeSet<String>>>().filter(|versions| !versions.is_empty())
}

fn with_digest(image: &str, digest: &str) -> String {
    format!("{}@{digest}", image.split('@').next().unwrap_or_default())
}

/// The container's image, as the job's script names it.
pub fn image(job: &PlannedJob) -> Option<String> {
    if job.files.iter().any(|file| file.name == files::CONTAINER) {
        let text = job.files.iter().find(|file| file.name == files::JOB)?.text.as_deref()?;
        return script::read(text).ok()?.image().map(|(_, image)| image.to_owned());
    }
    let texts = job.files.iter().filter_map(|file| file.text.as_deref()).flat_map(str::split_whitespace);
    let mut words = job.launch.iter().map(String::as_str).chain(texts);
    let image = words.find_map(|word| word.trim_matches(['\'', '"']).strip_prefix("--container-image="))?;
    Some(image.trim_matches(['\'', '"']).to_owned())
}

/// Those that the job's script sets, by name. That it sets none is said too: a job that sets one is another.
pub fn variables(job: &PlannedJob) -> String {
    let lines = job.files.iter().filter_map(|file| file.text.as_deref()).flat_map(str::lines);
    let is_one = |set: &&str| set.contains('=') && matters(set);
    let set: BTreeSet<&str> =
        lines.filter_map(|line| line.trim_start().strip_prefix("export ")).filter(is_one).collect();
    match set.is_empty() {
        true => "none".to_owned(),
        false => set.into_iter().collect::<Vec<_>>().join(" "),
    }
}

/// Of a whole run: the versions of its cases and of the harness.
pub(crate) fn from_run<'a>(plan: &Plan, cases: impl Iterator<Item = &'a CaseVerdict>) -> Fingerprint {
    let mut all = Fingerprint::new();
    for (part, versions) in cases.flat_map(|case| &case.versions) {
        all.entry(part.clone()).or_default().extend(versions.iter().cloned());
    }
    all.insert("harness".to_owned(), [plan.harness.clone()].into());
    // What a suite asks for is part of what its numbers are of.
    for source in plan.sources.iter().filter(|source| source.file.starts_with("suites/")) {
        all.entry(source.file.clone()).or_default().insert(source.sha256.chars().take(12).collect());
    }
    all
}

/// One part that is not the same on both sides. A side where it is unknown has no versions.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Difference {
    /// The key in both fingerprints, such as `nccl` or `driver`.
    pub part: String,
    /// Versions on the first side.
    pub before: BTreeSet<String>,
    /// Versions on the second side.
    pub after: BTreeSet<String>,
}

/// Without numbers of accounts, which a run that came in a bundle does not have.
pub(crate) fn plain(versions: &BTreeSet<String>) -> BTreeSet<String> {
    versions.iter().map(|version| mask_accounts(version)).collect()
}

/// Every part that differs, or that is known on one side only.
pub(crate) fn differences(before: &Fingerprint, after: &Fingerprint) -> Vec<Difference> {
    let parts: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let of = |side: &Fingerprint, part: &String| side.get(part).cloned().unwrap_or_default();
    let all = parts.into_iter().map(|part| Difference {
        part: part.clone(),
        before: of(before, part),
        after: of(after, part),
    });
    all.filter(|difference| plain(&difference.before) != plain(&difference.after)).collect()
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let render = |versions: &BTreeSet<String>| match versions.is_empty() {
            true => "unknown".to_owned(),
            false => versions.iter().map(String::as_str).collect::<Vec<_>>().join(" or "),
        };
        write!(f, "{} {} -> {}", self.part, render(&self.before), render(&self.after))
    }
}

#[cfg(test)]
#[path = "fingerprint_tests.rs"]
mod tests;
