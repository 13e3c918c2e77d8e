//! Reads what the script printed: typed facts, and for every other fact the reason why it is not known. An answer
//! without its last line is refused. `fitness.rs` checks the facts.

use super::kubernetes;
use base::nodeset;
use config::facts::version;
use config::facts::{FACTS, Fact, FactType, fact};
use logs::xid;
use model::artefact::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What one node reported to the probe.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// By the names of `config::facts`, such as `driver`.
    pub facts: BTreeMap<String, Value>,
    /// Facts without a value, and why.
    pub unreported: BTreeMap<String, String>,
    /// What is there, and says itself that it is broken.
    pub broken: BTreeMap<String, String>,
    /// What its kernel calls itself.
    pub host_name: Option<String>,
    /// The node's clock when the script began, in seconds since 1970.
    pub began_s: Option<f64>,
    /// The same when it ended.
    pub ended_s: Option<f64>,
}

const MARK: &str = "harness-probe\t";
/// Lists that are made into other facts.
const GPUS: &str = "gpus";
const PROCESSES: &str = "processes";
/// A list with another fact in it.
const XID: &str = "xid";
const XID_FAULTS: &str = "xid_faults";

/// Lines that do not bear the mark are a shell's or a scheduler's own, and are passed over.
pub fn read(text: &str) -> Result<Answer, String> {
    let mut answer = parse(text)?;
    for fact in kubernetes::FACTS {
        answer.facts.remove(fact);
    }
    Ok(answer)
}

/// The same of a simulated node, which has no server beside it: what Kubernetes would report of it is in its answer.
pub(super) fn read_simulated(text: &str) -> Result<Answer, String> {
    parse(text)
}

/// Every fact that there is a line of.
fn parse(text: &str) -> Result<Answer, String> {
    let mut answer = Answer::default();
    let mut lists: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut is_complete = false;
    for line in text.lines().filter_map(|line| line.strip_prefix(MARK)) {
        let mut fields = line.splitn(3, '\t');
        let (word, key, value) = (fields.next().unwrap_or_default(), fields.next(), fields.next());
        match (word, key.unwrap_or_default(), value.unwrap_or_default()) {
            ("end", ..) => is_complete = true,
            ("list", key, _) => {
                lists.entry(key).or_default();
            }
            ("item", key, value) => lists.entry(key).or_default().push(value),
            ("none", key, why) => {
                answer.unreported.insert(fact_name(key).to_owned(), why.to_owned());
            }
            ("bad", key, why) => {
                answer.broken.insert(fact_name(key).to_owned(), why.to_owned());
            }
            ("clock", "begin", value) => answer.began_s = value.parse().ok(),
            ("clock", "end", value) => answer.ended_s = value.parse().ok(),
            ("host", "name", value) => answer.host_name = is_host_name(value).then(|| value.to_owned()),
            ("fact", key, value) => answer.take(key, value),
            _ => return Err(format!("unexpected line: `{}`", line.escape_debug())),
        }
    }
    if !is_complete {
        let last = text.lines().last().unwrap_or_default();
        return Err(format!("the answer is truncated after `{}`", shortened(last)));
    }
    for (key, items) in lists {
        match key {
            GPUS => answer.gpus(&items),
            PROCESSES => answer.names("busy", &items),
            key => answer.names(key, &items),
        }
    }
    answer.explain_rest();
    Ok(answer)
}

impl Answer {
    fn take(&mut self, key: &str, text: &str) {
        let Some(fact) = fact(key) else { return };
        match value(fact, text) {
            Ok(value) => {
                self.facts.insert(key.to_owned(), value);
            }
            Err(why) => {
                self.unreported.insert(key.to_owned(), why);
            }
        }
    }

    fn names(&mut self, key: &str, items: &[&str]) {
        if fact(key).is_some_and(|fact| fact.kind == FactType::Names) {
            let mut names: Vec<String> = items.iter().map(|item| (*item).to_owned()).collect();
            // Lists in order of time keep it.
            if ![XID, "kernel_errors"].contains(&key) {
                nodeset::sort(&mut names);
            }
            if key == XID {
                let faults = names.iter().filter(|line| xid::is_of_hardware(line)).cloned().collect();
                self.facts.insert(XID_FAULTS.to_owned(), Value::Names(faults));
            }
            self.facts.insert(key.to_owned(), Value::Names(names));
        }
    }

    /// A row for each GPU: index, name, driver, and where the driver reports them ECC, its errors, clocks, throttling.
    fn gpus(&mut self, rows: &[&str]) {
        let rows: Vec<Vec<&str>> = rows.iter().map(|row| row.split(',').map(str::trim).collect()).collect();
        self.facts.insert(GPUS.to_owned(), Value::Number(rows.len() as u64));
        // A GPU without a value where others have one differs from them.
        let column = |at: usize| -> Option<Vec<&str>> {
            let has_one = rows.iter().any(|row| cell(row, at).is_some());
            has_one.then(|| rows.iter().map(|row| cell(row, at).unwrap_or(NOT_REPORTED)).collect())
        };
        for (name, value) in [
            ("gpu", column(1).map(distinct)),
            ("driver", column(2).map(distinct)),
            ("ecc", column(3).map(distinct)),
            ("gpu_clocks", column(5).zip(column(6)).map(|(sm, memory)| clocks(&sm, &memory))),
        ] {
            if let Some(text) = value {
                self.take(name, &text);
            }
        }
        // What some GPUs report is enough against a node, and not enough for it.
        let errors: Vec<Option<u64>> = rows.iter().map(|row| cell(row, 4)?.parse().ok()).collect();
        let sum = errors.iter().flatten().try_fold(0u64, |sum, errors| sum.checked_add(*errors));
        if let Some(sum) = sum.filter(|sum| is_known(&errors) || *sum > 0) {
            self.facts.insert("ecc_errors".to_owned(), Value::Number(sum));
        }
        let hex = |cell: &str| u64::from_str_radix(cell.trim_start_matches("0x"), 16).ok();
        let reasons: Vec<Option<u64>> = rows.iter().map(|row| hex(cell(row, 7)?)).collect();
        let is_slow = |reason: &u64| reason & !IDLE != 0;
        let slow = rows.iter().zip(&reasons).filter_map(|(row, reason)| Some((row, reason.filter(is_slow)?)));
        let slow: Vec<String> = slow.map(|(row, reason)| format!("{} 0x{reason:x}", name(row))).collect();
        if is_known(&reasons) || !slow.is_empty() {
            self.facts.insert("gpu_throttled".to_owned(), Value::Names(slow));
        }
        self.gpu_faults(&rows);
    }

    /// Cells in which nvidia-smi prints a fault of the GPU in place of a value.
    fn gpu_faults(&mut self, rows: &[Vec<&str>]) {
        let is_fault = |cell: &str| FAULTS.iter().any(|fault| cell.contains(fault));
        let of = |row: &Vec<&str>| {
            let cell = row.iter().find(|cell| is_fault(cell))?;
            Some(format!("{} reports `{cell}`", name(row)))
        };
        let found: Vec<String> = rows.iter().filter_map(of).collect();
        if found.is_empty() {
            return;
        }
        let known = self.facts.entry("gpu_errors".to_owned()).or_insert_with(|| Value::Names(Vec::new()));
        if let Value::Names(known) = known {
            known.extend(found);
            nodeset::sort(known);
        }
    }

    /// Every fact that a node reports of itself has a value, is broken, or has a reason why it is unknown.
    fn explain_rest(&mut self) {
        // Without the list of GPUs there is nothing of them.
        let of_xids = self.unreported.get(XID).cloned();
        let of_gpus = self.unreported.get(GPUS).or_else(|| self.broken.get(GPUS)).cloned();
        for fact in &FACTS {
            if kubernetes::FACTS.contains(&fact.name) {
                self.broken.remove(fact.name);
                self.unreported.remove(fact.name);
                continue;
            }
            let is_of_gpus = ["gpu", "driver", "ecc", "ecc_errors", "gpu_clocks", "gpu_throttled"];
            if self.facts.contains_key(fact.name) {
                self.unreported.remove(fact.name);
            } else if !self.broken.contains_key(fact.name) {
                let why = match &of_gpus {
                    Some(why) if is_of_gpus.contains(&fact.name) => why.clone(),
                    _ if fact.name == XID_FAULTS && of_xids.is_some() => of_xids.clone().unwrap_or_default(),
                    _ => "nothing on the node reported it".to_owned(),
                };
                self.unreported.entry(fact.name.to_owned()).or_insert(why);
            }
        }
    }
}

const NOT_REPORTED: &str = "not reported";
const FAULTS: [&str; 4] = ["ERR!", "Unknown Error", "GPU is lost", "requires reset"];

/// The value that a row has there.
fn cell<'a>(row: &[&'a str], at: usize) -> Option<&'a str> {
    row.get(at).copied().filter(|cell| has_value(cell))
}

/// As in the facts of `gpu_health.sh`.
fn name(row: &[&str]) -> String {
    format!("gpu{}", row.first().unwrap_or(&"?"))
}

fn is_known<T>(cells: &[Option<T>]) -> bool {
    !cells.is_empty() && cells.iter().all(Option::is_some)
}

/// A GPU that has nothing to do runs slower by its own choice.
const IDLE: u64 = 1;

/// A kernel without one calls itself `(none)`.
fn is_host_name(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    (1..=253).contains(&text.len()) && text.chars().all(is_part)
}

fn fact_name(key: &str) -> &str {
    if key == PROCESSES { "busy" } else { key }
}

/// nvidia-smi prints what a GPU does not have in brackets.
fn has_value(cell: &str) -> bool {
    !cell.is_empty() && !cell.starts_with('[') && cell != "N/A"
}

fn distinct(cells: Vec<&str>) -> String {
    cells.into_iter().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(" and ")
}

fn clocks(sm: &[&str], memory: &[&str]) -> String {
    let pairs: BTreeSet<String> =
        sm.iter().zip(memory).map(|(sm, memory)| format!("{sm}/{memory}")).collect();
    pairs.into_iter().collect::<Vec<_>>().join(" and ")
}

fn value(fact: &Fact, text: &str) -> Result<Value, String> {
    let odd = |what: &str| Err(format!("not {what}: `{}`", shortened(text)));
    match fact.kind {
        _ if text.is_empty() => Err("empty value".to_owned()),
        FactType::Bytes if text == "unlimited" => Ok(Value::Text(text.to_owned())),
        FactType::Count | FactType::Bytes => match text.parse() {
            Ok(number) => Ok(Value::Number(number)),
            Err(_) => odd("a whole number"),
        },
        FactType::Version if !version::is_one(text) => odd("a version"),
        FactType::Version | FactType::Text => Ok(Value::Text(text.to_owned())),
        FactType::Names => odd("a list"),
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(120).flat_map(char::escape_debug).collect()
}
