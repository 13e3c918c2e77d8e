//! Reads what `dcgmi diag` prints: the JSON of DCGM 2 and 3 (`DCGM GPU Diagnostic`) and of DCGM 4 (`DCGM Diagnostic`), and
//! the table that it prints without `-j`. A test that was skipped has shown nothing.

use super::{NoResult, dcgm_table, document};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// What a diagnosis found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Diagnosis {
    /// One for each test and GPU; of a test that concerns no GPU, one.
    pub results: Vec<TestResult>,
    /// Of DCGM, where it is printed.
    pub version: Option<String>,
    /// Of the driver, where it is printed.
    pub driver: Option<String>,
    /// What is missing of a table: tests may have been printed there.
    pub incomplete: Option<&'static str>,
}

/// How one test ended.
#[derive(Debug, Clone, PartialEq)]
pub struct TestResult {
    /// As DCGM calls it: `memory`, `PCIe`.
    pub test: String,
    /// Its group: `Deployment`, `Hardware`, `Integration`, `Stress`.
    pub category: String,
    /// By DCGM's number; nothing where the test concerns the whole node.
    pub gpu: Option<u32>,
    /// Its result.
    pub status: Status,
    /// What DCGM says of it.
    pub why: Vec<String>,
}

impl TestResult {
    pub(super) fn new(
        test: &str,
        category: &str,
        (gpu, status): (Option<u32>, Status),
        why: &[String],
    ) -> TestResult {
        // A text may be cut at a blank.
        let squeezed = |text: &String| text.split_whitespace().collect::<String>();
        let is_own = |text: &String| {
            let text = squeezed(text);
            text.contains(DISTURBED) || gpu.is_none() && text.starts_with(INTERNAL)
        };
        let is_unmeasured = match status {
            Status::Fail => !why.is_empty() && why.iter().all(is_own),
            Status::Pass | Status::Warn => why.iter().any(|text| squeezed(text).contains(NO_ROOM)),
            Status::Skip | Status::Unmeasured => false,
        };
        TestResult {
            test: short(test),
            category: short(category),
            gpu,
            status: if is_unmeasured { Status::Unmeasured } else { status },
            why: why.iter().take(MOST_WHY).cloned().collect(),
        }
    }

    /// DCGM 4 lists settings, such as persistence mode, at each GPU: they are the node's. What `Deployment` says of a GPU's
    /// memory is not.
    pub fn is_of_node(&self) -> bool {
        const OF_MEMORY: [&str; 7] =
            ["remap", "page retirement", "retired", "inforom", "ecc", "uncorrect", "double bit"];
        let is_setting =
            self.test.eq_ignore_ascii_case("software") || self.category.eq_ignore_ascii_case("deployment");
        let text = self.why.join(" ").to_ascii_lowercase() + &self.test.to_ascii_lowercase();
        is_setting && !OF_MEMORY.iter().any(|word| text.contains(word))
    }
}

/// `The memory copy utilization for the GPU: 2 is greater than 10%. This may affect the results of the nvbandwidth test.`
const DISTURBED: &str = "mayaffecttheresultsof";
/// `Couldn't allocate at least 75.0% of GPU memory on GPU 2`, of a test that passes nevertheless.
const NO_ROOM: &str = "allocateatleast";
/// `There was an internal error during the test: 'Output of child process (11167) couldn't be parsed`; of no GPU.
const INTERNAL: &str = "Therewasaninternalerrorduringthetest";
/// What dcgmi prints where no daemon answers it.
const NOT_CONNECTED: &str = "nable to connect to host engine";
/// Explanations of a result.
const MOST_WHY: usize = 4;
/// Of which that many are looked at.
const MOST_WARNINGS: usize = 64;

/// The result of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// It did not run.
    Skip,
    /// All is well.
    Pass,
    /// It passed, and something is odd.
    Warn,
    /// It failed.
    Fail,
    /// DCGM calls it a failure, and says that the test itself was at fault: it has shown nothing.
    Unmeasured,
}

/// DCGM 4 prints no word where a test did not run (<https://github.com/NVIDIA/DCGM/blob/master/dcgmi/Diag.cpp>).
pub(super) const NOT_RUN: Status = Status::Skip;

impl Status {
    /// Whether it shows anything of what was tested.
    pub fn has_shown(self) -> bool {
        !matches!(self, Status::Skip | Status::Unmeasured)
    }

    pub(super) fn read(text: &str) -> Option<Status> {
        Some(match text.trim().to_ascii_lowercase().as_str() {
            "pass" => Status::Pass,
            "fail" => Status::Fail,
            "warn" | "warning" => Status::Warn,
            "skip" | "skipped" | "not run" | "notrun" => Status::Skip,
            _ => return None,
        })
    }
}

#[derive(Deserialize)]
struct Document {
    #[serde(rename = "DCGM Diagnostic")]
    new: Option<Body>,
    #[serde(rename = "DCGM GPU Diagnostic")]
    old: Option<Body>,
    metadata: Option<Metadata>,
}

#[derive(Deserialize)]
struct Body {
    test_categories: Option<Vec<Category>>,
    runtime_error: Option<String>,
    #[serde(rename = "Error")]
    error: Option<String>,
    version: Option<String>,
    #[serde(rename = "Driver Version Detected")]
    driver: Option<String>,
}

#[derive(Deserialize)]
struct Metadata {
    version: Option<String>,
    #[serde(rename = "Driver Version Detected")]
    driver: Option<String>,
}

#[derive(Deserialize)]
struct Category {
    #[serde(default)]
    category: String,
    tests: Vec<TestJson>,
}

#[derive(Deserialize)]
struct TestJson {
    name: String,
    #[serde(default)]
    results: Vec<ResultJson>,
    test_summary: Option<Summary>,
}

#[derive(Deserialize)]
struct ResultJson {
    status: String,
    gpu_id: Option<Value>,
    gpu_ids: Option<Value>,
    entity_group: Option<String>,
    entity_id: Option<Value>,
    #[serde(default)]
    warnings: Value,
}

#[derive(Deserialize)]
struct Summary {
    status: String,
    #[serde(default)]
    warnings: Value,
}

/// Whether a text has the table of `dcgmi diag`, or a part of it.
pub(super) fn is_table(text: &str) -> bool {
    dcgm_table::is_one(text)
}

/// The results in a text; an error where it has none, or one of an unknown status.
pub fn read(text: &str) -> Result<Diagnosis, NoResult> {
    let is_table = dcgm_table::is_one(text) && !text.trim_start().starts_with('{');
    let mut diagnosis = if is_table { dcgm_table::read(text)? } else { json(text)? };
    diagnosis.mark_unmeasured();
    Ok(diagnosis)
}

fn json(text: &str) -> Result<Diagnosis, NoResult> {
    let document: Document = match document(text, "dcgmi") {
        Err(_) if text.contains(NOT_CONNECTED) => {
            return Err(
                "dcgmi reaches no nv-hostengine; start it with `systemctl start nvidia-dcgm`".to_owned()
            );
        }
        read => read?,
    };
    let body = document.new.or(document.old).ok_or("the JSON of dcgmi has no diagnosis")?;
    if let Some(error) = body.runtime_error.or(body.error) {
        return Err(format!("dcgmi could not run the diagnosis: {}", short(&error)));
    }
    let metadata = document.metadata;
    let mut diagnosis = Diagnosis {
        version: body.version.or(metadata.as_ref().and_then(|metadata| metadata.version.clone())),
        driver: body.driver.or(metadata.and_then(|metadata| metadata.driver)),
        ..Diagnosis::default()
    };
    for category in body.test_categories.into_iter().flatten() {
        for test in category.tests {
            diagnosis.add(&category.category, &test)?;
        }
    }
    match diagnosis.results.is_empty() {
        true => Err("dcgmi lists no test".to_owned()),
        false => Ok(diagnosis),
    }
}

/// Tests times GPUs of a node, with room.
pub(super) const MOST_RESULTS: usize = 8192;
const MOST_GPUS: usize = 256;

impl Diagnosis {
    /// A test that gave up at one GPU fails on the others without a word: it has shown nothing of them.
    fn mark_unmeasured(&mut self) {
        let says_why = |result: &&TestResult| match result.status {
            Status::Unmeasured => true,
            Status::Fail => result.gpu.is_some() && !result.why.is_empty(),
            Status::Skip | Status::Pass | Status::Warn => false,
        };
        let explained = self.results.iter().filter(says_why);
        let tests: BTreeSet<String> = explained.map(|result| result.test.clone()).collect();
        for result in &mut self.results {
            if result.status == Status::Fail && result.why.is_empty() && tests.contains(&result.test) {
                result.status = Status::Unmeasured;
            }
        }
    }

    fn add(&mut self, category: &str, test: &TestJson) -> Result<(), NoResult> {
        let mut worst = None;
        let mut push = |gpu, status, why: Vec<String>| -> Result<(), NoResult> {
            if self.results.len() >= MOST_RESULTS {
                return Err(format!("dcgmi lists more than {MOST_RESULTS} results"));
            }
            let status = if status == Status::Pass && !why.is_empty() { Status::Warn } else { status };
            self.results.push(TestResult::new(&test.name, category, (gpu, status), &why));
            Ok(())
        };
        let status = |text: &str| match text.trim().is_empty() {
            true => Ok(NOT_RUN),
            false => status(&test.name, text),
        };
        for result in &test.results {
            let status = status(&result.status)?;
            worst = worst.max(Some(status));
            for gpu in gpus(result)? {
                push(gpu, status, warnings(&result.warnings))?;
            }
        }
        if test.results.is_empty() && test.test_summary.is_none() {
            push(None, NOT_RUN, Vec::new())?;
        }
        // What the summary alone knows concerns no GPU that is named.
        if let Some(summary) = &test.test_summary {
            let status = status(&summary.status)?;
            if Some(status) > worst {
                push(None, status, warnings(&summary.warnings))?;
            }
        }
        Ok(())
    }
}

pub(super) fn status(test: &str, text: &str) -> Result<Status, NoResult> {
    Status::read(text)
        .ok_or_else(|| format!("test `{}` of dcgmi has the unknown status `{}`", short(test), short(text)))
}

/// The GPUs of a result: `"gpu_id": 0`, `"gpu_ids": "0,3"`, or an entity. Other entities, such as switches and the CPU,
/// are the node's.
fn gpus(result: &ResultJson) -> Result<Vec<Option<u32>>, NoResult> {
    let is_gpu = result.entity_group.as_deref().is_none_or(|group| group.eq_ignore_ascii_case("gpu"));
    let of_entity = result.entity_id.as_ref().filter(|_| result.entity_group.is_some());
    let named = of_entity.or(result.gpu_id.as_ref()).or(result.gpu_ids.as_ref());
    let Some(named) = named.filter(|_| is_gpu) else { return Ok(vec![None]) };
    let text = match named {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        _ => return Err("a GPU of dcgmi is no number".to_owned()),
    };
    if text.trim().eq_ignore_ascii_case("all") {
        return Ok(vec![None]);
    }
    gpu_numbers(&text)
}

/// `0,3`: each once.
pub(super) fn gpu_numbers(text: &str) -> Result<Vec<Option<u32>>, NoResult> {
    let numbers: Result<BTreeSet<u32>, _> =
        text.split(',').take(MOST_GPUS).map(|one| one.trim().parse()).collect();
    let numbers = numbers.map_err(|_| format!("a GPU of dcgmi is no number: `{}`", short(text)))?;
    Ok(numbers.into_iter().map(Some).collect())
}

/// `warnings`: a text, a list of them, or a list of objects that each have one.
fn warnings(value: &Value) -> Vec<String> {
    let one = |value: &Value| match value {
        Value::String(text) => Some(short(text)),
        Value::Object(object) => object.get("warning").and_then(Value::as_str).map(short),
        _ => None,
    };
    match value {
        Value::Array(all) => all.iter().take(MOST_WARNINGS).filter_map(one).collect(),
        other => one(other).into_iter().collect(),
    }
}

pub(super) fn short(text: &str) -> String {
    text.trim().chars().take(300).collect()
}
