//! Two run folders laid beside each other: in which files they differ, and in which fields of these. What must differ is
//! listed here, with the reason; everything else is strange.

use recipes::parquet::from_parquet;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

#[derive(Debug, Default)]
pub(super) struct Differences {
    /// By file, field and reason, how many files.
    pub reported: BTreeMap<String, usize>,
    pub strange: BTreeSet<String>,
}

const WHICH: &str = "which run it is, and where its jobs lie";
const WHAT: &str = "which inventory and instance, whose baselines";
const CLOCK: &str = "the machine's clock";
const PART: &str = "stand-ins live through the last part of a workload";
const MARK: &str = "the mark of stand-ins";
const BYTES: &str = "bytes and digests of what differs";
const ORDER: &str = "the order in which nodes list their files";
const SIMULATED: &str = "what a simulated cluster remembers of itself";
const IN_PODS: &str = "the cluster that the pods were in";
const PROBED: &str = "what real nodes are, asked before a suite";

/// Files and their fields. `*` stands for a case, a job, a host and every number.
const MUST: &[(&str, &[&str], &str)] = &[
    ("plan.json", &["run_id", "folder", "cases[].jobs[].folder", "cases[].jobs[].launch[]"], WHICH),
    ("plan.json", &["cases[].jobs[].files[].text"], WHICH),
    ("plan.json", &["simulated", "seed", "inventory", "instance.name", "sources", "sources[].file"], WHAT),
    (
        "plan.json",
        &[
            "sources[].sha256",
            "cases[].assertions[].bound.baseline.key",
            "cases[].assertions[].bound.baseline.file",
        ],
        WHAT,
    ),
    ("run.json", &["run_id", "artefacts.run_id"], WHICH),
    ("run.json", &["started", "ended", "seconds"], CLOCK),
    ("summary.json", &["run_id"], WHICH),
    ("summary.json", &["simulated", "seed", "inventory", "instance"], WHAT),
    ("summary.json", &["started", "ended", "seconds", "cases[].seconds"], CLOCK),
    ("cases/*/job.json", &["jobs[].handle"], WHICH),
    ("cases/*/job.json", &["jobs[].submitted", "jobs[].started", "jobs[].ended", "jobs[].seconds"], CLOCK),
    ("cases/*/collected.json", &["simulated"], MARK),
    ("cases/*/collected.json", &["files[].bytes", "files[].sha256"], BYTES),
    ("cases/*/reports.json", &["files[].bytes", "files[].sha256"], BYTES),
    ("cases/*/diagnosis.json", &["found.simulated"], MARK),
    ("cases/*/verdict.json", &["simulated"], MARK),
    ("cases/*/verdict.json", &["verdicts[].baseline", "verdicts[].message"], WHAT),
    ("cases/*/verdict.json", &["seconds", "verdicts[].seconds", "verdicts[].observed"], CLOCK),
    ("cases/*/verdict.json", &["verdicts[].evidence[].file"], ORDER),
    ("cases/*/metrics.parquet", &["node.efa_tx", "node.efa_rx"], CLOCK),
    ("cases/*/metrics.parquet", &["nic.tx_bytes", "nic.rx_bytes", "nic.share"], PART),
    ("cases/*/raw/*/counters.*.txt", &["text"], CLOCK),
    ("cases/*/raw/*/profile.rank*.txt", &["text"], CLOCK),
    ("cases/*/raw/*/*TARGET_INFO_SESSION_START_TIME.parquet", &["bytes"], CLOCK),
    ("events.jsonl", &["text"], CLOCK),
    ("junit.xml", &["text"], CLOCK),
    ("index.html", &["text"], CLOCK),
    ("simulated.jsonl", &["only one has it"], SIMULATED),
    ("probe.json", &["only one has it"], PROBED),
    ("cluster.json", &["only one has it"], IN_PODS),
    ("plan.json", &["cases[].workload.path"], PROBED),
    ("cases/*/raw/*/environment.txt", &["text"], PROBED),
    ("cases/*/analysis.json", OF_NODES, PROBED),
    ("cases/*/verdict.json", OF_NODES, PROBED),
];

/// What a probe adds to the software that a job's own log reports.
const OF_NODES: &[&str] = &[
    "versions.cuda",
    "versions.driver",
    "versions.efa",
    "versions.efa_installer",
    "versions.environment",
    "versions.gdrdrv",
    "versions.gpu_clocks",
    "versions.inherited",
    "versions.kernel",
    "versions.libfabric",
    "versions.ofi_nccl",
    "versions.os",
    "versions.slurm",
];

pub(super) fn between(one: &Path, two: &Path) -> Differences {
    let (first, second) = (files(one), files(two));
    let mut seen = Differences::default();
    for name in first.keys().chain(second.keys()).collect::<BTreeSet<_>>() {
        let fields = match (first.get(name), second.get(name)) {
            (Some(one), Some(two)) if one == two => continue,
            (Some(one), Some(two)) => differing_fields(name, one, two),
            _ => BTreeSet::from(["only one has it".to_owned()]),
        };
        for field in fields {
            seen.take(name, &field);
        }
    }
    seen
}

impl Differences {
    fn take(&mut self, name: &str, field: &str) {
        // Digests of files that are compared themselves.
        if name == "run.json" && field.starts_with("artefacts.sha256.") {
            return;
        }
        let pattern = pattern(name);
        // Of whichever job.
        let part = field.split_once("versions.").map(|(_, part)| format!("versions.{part}"));
        let field = part.as_deref().unwrap_or(field);
        let is = |(file, fields, _): &&(&str, &[&str], &str)| fits(&pattern, file) && fields.contains(&field);
        match MUST.iter().find(is) {
            Some((file, _, why)) => *self.reported.entry(format!("{file} {field} ({why})")).or_default() += 1,
            None => {
                self.strange.insert(format!("{name}: {field}"));
            }
        }
    }
}

/// By their names, as far as these do not report how many steps a job had before.
fn files(run: &Path) -> BTreeMap<String, Vec<u8>> {
    // `latest` is a link.
    let run = run.canonicalize().expect("a run");
    let mut found = BTreeMap::new();
    let mut folders = vec![run.clone()];
    while let Some(folder) = folders.pop() {
        for entry in
            fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())).flatten()
        {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(&run).expect("below it").display().to_string();
                found.insert(without_step_number(&name), fs::read(&path).expect("read"));
            }
        }
    }
    found
}

/// Under Slurm the sampler is a step of its own, so that the workload is the next one.
fn without_step_number(text: &str) -> String {
    text.replace(".step1.", ".step0.")
}

/// Cases, jobs and numbers of a name as `*`.
fn pattern(name: &str) -> String {
    let mut parts: Vec<String> = name.split('/').map(str::to_owned).collect();
    for (before, at) in [("cases", 1), ("raw", 3)] {
        if parts.get(at - 1).is_some_and(|part| part == before)
            && let Some(part) = parts.get_mut(at)
        {
            "*".clone_into(part);
        }
    }
    parts.join("/")
}

/// Whether a name is one that a pattern with stars means.
fn fits(name: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        None => name == pattern,
        Some((head, rest)) => name.strip_prefix(head).is_some_and(|name| {
            (0..=name.len()).filter(|at| name.is_char_boundary(*at)).any(|at| fits(&name[at..], rest))
        }),
    }
}

fn differing_fields(name: &str, one: &[u8], two: &[u8]) -> BTreeSet<String> {
    let mut fields = BTreeSet::new();
    if name.ends_with("/metrics.parquet") {
        metrics(one, two, &mut fields);
    } else if name.ends_with(".parquet") {
        fields.insert("bytes".to_owned());
    } else {
        let texts = [one, two].map(|bytes| without_step_number(&String::from_utf8_lossy(bytes)));
        if name.ends_with(".json") {
            let [one, two] = texts.map(|text| sorted(serde_json::from_str(&text).expect("JSON")));
            values(&one, &two, "", &mut fields);
        } else if said(&texts[0]) != said(&texts[1]) {
            fields.insert("text".to_owned());
        }
    }
    fields
}

/// The lines, without those in which stand-ins, the profiler and srun speak of themselves.
fn said(text: &str) -> Vec<&str> {
    let own = ["SIMULATED", ".nsys-rep", ".qdstrm", "srun: cluster configuration lacks support"];
    let lines =
        text.lines().filter(|line| *line != "Generated:" && !own.iter().any(|word| line.contains(word)));
    lines.map(which_gpu).collect()
}

/// The GPU of a flow, without whether a PCIe tree or the profile named it: machines of tests show no tree.
fn which_gpu(line: &str) -> &str {
    match line.strip_prefix("path gpu ") {
        Some(_) => line.strip_suffix(" sysfs").or(line.strip_suffix(" profile")).unwrap_or(line),
        None => line,
    }
}

/// Lists of files in the order of their names: nodes list them in one, models in another.
fn sorted(value: Value) -> Value {
    match value {
        Value::Array(items) => {
            let mut items: Vec<Value> = items.into_iter().map(sorted).collect();
            let key = |item: &Value| {
                let of = item["path"].as_str().or(item["file"].as_str()).or(item.as_str());
                of.map(str::to_owned)
            };
            if items.iter().all(|item| key(item).is_some()) {
                items.sort_by_key(key);
            }
            Value::Array(items)
        }
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, sorted(value))).collect(),
        value => value,
    }
}

fn values(one: &Value, two: &Value, path: &str, fields: &mut BTreeSet<String>) {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match (one, two) {
        (Value::Object(one), Value::Object(two)) => {
            for name in one.keys().chain(two.keys()).collect::<BTreeSet<_>>() {
                let [one, two] = [one, two].map(|fields| fields.get(name).unwrap_or(&Value::Null));
                values(one, two, &below(name), fields);
            }
        }
        (Value::Array(one), Value::Array(two)) if one.len() == two.len() => {
            for (one, two) in one.iter().zip(two) {
                values(one, two, &format!("{path}[]"), fields);
            }
        }
        (one, two) if one == two => {}
        _ => {
            fields.insert(path.to_owned());
        }
    }
}

/// The metrics of which any row differs.
fn metrics(one: &[u8], two: &[u8], fields: &mut BTreeSet<String>) {
    let rows = |bytes: &[u8]| {
        let metrics = from_parquet(bytes).expect("metrics");
        let row = |row: &metric::Metric| {
            let dims: Vec<String> =
                row.dims.iter().map(|(dim, value)| format!("{}={value}", dim.name())).collect();
            ((row.name.to_string(), without_step_number(&dims.join(" "))), row.value.to_bits())
        };
        metrics.rows().iter().map(row).collect::<BTreeMap<_, _>>()
    };
    let (one, two) = (rows(one), rows(two));
    for key in one.keys().chain(two.keys()) {
        if one.get(key) != two.get(key) {
            fields.insert(key.0.clone());
        }
    }
}
